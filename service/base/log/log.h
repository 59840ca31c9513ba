/* One line per event, as key=value or as JSON: time, level, role, process, category, request, trace, message. On standard error, or in a
 * file that is rotated by its size. The last lines are kept for readers. Thread-safe; lines never interleave, and are ASCII: other
 * bytes become '?'. No text contains secrets. Between log_start() and log_stop() a caller that logs never waits for the reader of the log: one
 * thread writes, and lines that it cannot write are dropped and counted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

#include "base/bounds.h"
#include "base/problem.h"
#include "base/span.h"

enum log_level {
#define LOG_LEVEL(id, name) LOG_LEVEL_##id,
#include "base/log/log.def"
    LOG_LEVELS
};

enum log_category {
#define LOG_CATEGORY(id, name) LOG_CATEGORY_##id,
#include "base/log/log.def"
    LOG_CATEGORIES
};

/* RELAY: level, category and message only, the format of workers' lines to the front-end. */
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON, LOG_FORMAT_RELAY };

/* Call once, before threads start. `role` is a static string, e.g. "frontend". In a worker, level and format from the environment, set by
 * log_set_for_workers() in the front-end, replace `most` and text. */
void log_init(const char *role, enum log_level most);
void log_format_set(enum log_format format);
bool log_is_json(void);
/* The node's name in all lines, "" = none; borrowed. Call before threads start. */
void log_node_set(const char *node);
/* Logs to that file and rotates it at `bytes_max`; keeps `files` files, older ones as PATH.1, PATH.2, … The file must be a regular file that this
 * user owns and that has one hard link, or not exist: a planted link is not followed. Call before threads start. */
enum status log_file_open(const char *path, uint64_t bytes_max, unsigned files, struct problem *why);
void        log_file_close(void);
/* Writes lines to that descriptor instead of standard error. Call before threads start. */
void log_output(int fd);
/* Starts the thread that writes the lines; crash.c waits for it. False: no thread. */
bool log_start(void);
/* Waits up to LOG_FLUSH_MS for the last lines to be written. Does nothing without log_start(). */
void log_stop(void);

/* Reads the lines of child processes from their pipes and marks each with its process. False: no thread or descriptor. */
bool log_relay_start(void);
/* Call when the child processes have exited: afterwards the log has all their lines. Does nothing without a relay. */
void log_relay_stop(void);
bool log_relay_runs(void);
/* Takes ownership of the read end of the pipe that is the process's standard error. `role` is a name of roles.def. */
void log_relay_add(int read_end, struct span role, pid_t pid);
/* Sets the variables that log_init() reads in child processes. Call before threads start. */
bool log_set_for_workers(enum log_level most);

bool        log_level_parse(struct span name, enum log_level *out);
const char *log_level_name(enum log_level level);
bool        log_category_parse(struct span name, enum log_category *out);
const char *log_category_name(enum log_category c);
/* Sets the level of a category. Any thread, any time. */
void           log_level_set(enum log_category c, enum log_level most);
enum log_level log_level_get(enum log_category c);

/* Sets the request of this thread's lines. Both are borrowed until the next call; NULL = no request. */
void log_request(const char *request_id, const char *trace_id);

/* `category` is a name of log.def. Long lines are truncated. */
void log_write(enum log_level level, const char *category, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* An additional member of a line. */
struct log_field {
    const char *key;  /* a plain name */
    struct span text; /* data NULL = use the number */
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
/* Appends the next line after *last with at least this severity to `out`, at most LOG_LINE_BYTES, and returns its length; 0 = none.
 * Skips lines that are no longer kept. */
size_t log_next(uint64_t *last, enum log_level most, char *out);
