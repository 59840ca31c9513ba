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
/* A whole line that another process made; anything but printable ASCII becomes '?'. */
void log_line_raw(struct log_line *l, struct span text);
/* With its line feed. */
void log_line_end(struct log_line *l);

/* ---- log_sink.c ---- writes it where lines go, and keeps it. Thread-safe. */
void log_sink_write(enum log_level level, const struct log_line *l);

#endif
