/* The client's log: to the embedder's callback, or to standard error. Categories: "transport", "session", and the embedder's own. */
#ifndef GPUREST_SDK_LOG_H
#define GPUREST_SDK_LOG_H

#include <stdbool.h>

#include "base/limits.h"
#include "gpurest/gpurest.h"

struct log_level {
    char category[LOG_CATEGORY_BYTES]; /* "": all others */
    int  level;                        /* lines up to it are written; 0: none */
};

/* Fixed once the client is open; the callback may be called by any thread. */
struct log {
    void (*call)(void *arg, int level, const char *message); /* NULL: standard error */
    void            *arg;
    struct log_level levels[LOG_CATEGORIES_MAX];
    unsigned         count;
};

/* From options.log and options.log_level, else $GPUREST_LOG. INVAL: a level is not understood. */
gpurest_status log_init(struct log *l, const gpurest_options *o);
bool           log_wants(const struct log *l, const char *category, int level);
void log_write(const struct log *l, const char *category, int level, const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
