/* How a line looks, and where lines go: the parts of log.c. */
#ifndef GPUREST_BASE_LOG_LINES_H
#define GPUREST_BASE_LOG_LINES_H

#include "base/log.h"
#include "limits.h"

/* A line being made; what does not fit is left out. */
struct log_line {
    char            text[LOG_LINE_BYTES]; /* no NUL at its end */
    size_t          bytes;
    enum log_format format;
};

void log_line_begin(struct log_line *l, enum log_format format);
void log_line_text(struct log_line *l, const char *key, struct span value);
void log_line_number(struct log_line *l, const char *key, double value);
/* All of a line as it goes to the front-end: level, category, message. log_line_unwire() takes it apart; false: it is no such line. */
void log_line_wire(struct log_line *l, enum log_level level, enum log_category category, const char *message);
bool log_line_unwire(struct span line, enum log_level *level, enum log_category *category, struct span *message);
/* With its line feed. */
void log_line_end(struct log_line *l);

/* ---- log.c ---- */
/* A line of another process of ours, if its level is one that is told. `message` may be anything. */
void log_relayed(struct span role, pid_t pid, enum log_level level, enum log_category category, struct span message);
/* The line that says how many are missing in this place. */
void log_line_dropped(struct log_line *l, uint64_t count);

/* ---- log_sink.c ---- has it written where lines go, and keeps it. Thread-safe, and waits for nobody once log_start() was called. */
void log_sink_write(enum log_level level, const struct log_line *l);

#endif
