/* Format and destination of log lines; internal to log.c. */
#pragma once

#include "base/log/log.h"
#include "limits.h"

/* A line under construction; text that does not fit is left out. */
struct log_line {
    char            text[LOG_LINE_BYTES]; /* not NUL-terminated */
    size_t          bytes;
    enum log_format format;
};

void log_line_begin(struct log_line *l, enum log_format format);
void log_line_text(struct log_line *l, const char *key, struct span value);
void log_line_number(struct log_line *l, const char *key, double value);
void log_line_count(struct log_line *l, const char *key, uint64_t value); /* async-signal-safe, like log_line_text() */
/* Formats a line for the front-end: level, category, message. log_line_unwire() parses it; false: not such a line. */
void log_line_wire(struct log_line *l, enum log_level level, enum log_category category, const char *message);
bool log_line_unwire(struct span line, enum log_level *level, enum log_category *category, struct span *message);
/* With its line feed. */
void log_line_end(struct log_line *l);

/* ---- log.c ---- */
/* Logs a line of a child process, if its level is enabled. `message` can have any bytes. */
void log_relayed(struct span role, pid_t pid, enum log_level level, enum log_category category, struct span message);
/* The line that reports the number of lines dropped here. */
void log_line_dropped(struct log_line *l, uint64_t count);
/* For crash.c, async-signal-safe: writes a critical line at once. */
void log_crash_line(const char *role, enum log_category category, const char *message);

/* ---- log_sink.c ---- for a crash, async-signal-safe: waits until the writer has written the lines before it, then writes one past it */
void log_crash_flush(void);
void log_crash_write(const struct log_line *l);
/* Queues the line for writing and keeps it. Thread-safe; never waits after log_start(). */
void log_sink_write(enum log_level level, const struct log_line *l);
