/* One line per event, as key=value or as JSON: time, level, role, process, category, request, trace, message. On standard error, or in a
 * file that is rotated by its size; the last lines are kept for whoever asks. Thread-safe; lines never interleave, and are ASCII: other
 * bytes become '?'. No secrets in any text. Between log_start() and log_stop() nobody who writes a line waits for whoever takes them: one
 * thread writes, and what it cannot get rid of is dropped and counted. */
#ifndef GPUREST_BASE_LOG_H
#define GPUREST_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

#include "base/bounds.h"
#include "base/problem.h"
#include "base/span.h"

enum log_level {
#define LOG_LEVEL(id, name) LOG_LEVEL_##id,
#include "base/log.def"
    LOG_LEVELS
};

enum log_category {
#define LOG_CATEGORY(id, name) LOG_CATEGORY_##id,
#include "base/log.def"
    LOG_CATEGORIES
};

/* RELAY: level, category and message alone, as the front-end takes them from its workers. */
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON, LOG_FORMAT_RELAY };

/* Once, before threads start. `role` is a static string, e.g. "frontend". A worker takes level and format from the environment that the
 * front-end gave it (log_tell_workers) in place of `most` and text. */
void log_init(const char *role, enum log_level most);
void log_format_set(enum log_format format);
/* From now on into that file, which is kept below `bytes_max`; `files` of them, older ones as PATH.1, PATH.2, … It is a regular file of this
 * user's with no other name, or there is none yet: a link that somebody planted is not followed. Before threads start. */
enum status log_file_open(const char *path, uint64_t bytes_max, unsigned files, struct problem *why);
void        log_file_close(void);
/* From now on a thread of its own writes the lines, also those of a process that dies of a fault. False without threads. */
bool log_start(void);
/* The last lines have LOG_FLUSH_MS to be taken. Without log_start() nothing happens. */
void log_stop(void);

/* From now on the lines of the processes that are started come by pipes of theirs, each marked with whose it is. False without threads or
 * descriptors. */
bool log_relay_start(void);
/* Once those processes have ended: what they wrote is in the log. Without a relay nothing happens. */
void log_relay_stop(void);
bool log_relay_runs(void);
/* Takes the read end of the pipe that is the process's standard error. `role` is a name of roles.def. */
void log_relay_add(int read_end, struct span role, pid_t pid);
/* Sets the variables that log_init() looks at in processes that are started from now on. Before threads start. */
bool log_tell_workers(enum log_level most);

bool        log_level_parse(struct span name, enum log_level *out);
const char *log_level_name(enum log_level level);
bool        log_category_parse(struct span name, enum log_category *out);
const char *log_category_name(enum log_category c);
/* Lines of the category up to that level are written. Any thread, any time. */
void           log_level_set(enum log_category c, enum log_level most);
enum log_level log_level_get(enum log_category c);

/* What this thread writes from now on belongs to that request. Both are borrowed until the next call; NULL: to none. */
void log_request(const char *request_id, const char *trace_id);

/* `category` is a name of log.def. Long lines are cut. */
void log_write(enum log_level level, const char *category, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A further member of a line. */
struct log_field {
    const char *key;  /* a plain name */
    struct span text; /* data NULL: the number */
    double      number;
};
void log_event(enum log_level level, enum log_category category, const char *message, const struct log_field *fields, size_t count);

#define log_critical(...) log_write(LOG_LEVEL_CRITICAL, __VA_ARGS__)
#define log_error(...)    log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)     log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)     log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)    log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_trace(...)    log_write(LOG_LEVEL_TRACE, __VA_ARGS__)

/* ---- the last LOG_LINES_KEPT lines ---- */

/* Number of the newest line; the first is 1. */
uint64_t log_newest(void);
/* Appends the next line behind *last that is at least as grave to `out`, LOG_LINE_BYTES at most, and says its length; 0 when there is none.
 * Lines that are gone already are passed over. */
size_t log_next(uint64_t *last, enum log_level most, char *out);

#endif
