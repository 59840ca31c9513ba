/* The client's log, by level and category. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/failure.h"

static const char *const level_names[] = {"off", "warn", "info", "debug"};

static int level_of(const char *text, size_t bytes)
{
    for (int i = 0; i <= GPUREST_LOG_DEBUG; i++)
        if (strlen(level_names[i]) == bytes && strncmp(level_names[i], text, bytes) == 0)
            return i;
    return -1;
}

/* "debug", or "transport=debug". False: not understood, or too many. */
static bool add_level(struct log *l, const char *text, size_t bytes)
{
    const char *equals = memchr(text, '=', bytes);
    size_t      name = equals ? (size_t)(equals - text) : 0, before = equals ? name + 1 : 0;
    int         level = level_of(text + before, bytes - before);

    if (level < 0 || (equals && name == 0) || name >= LOG_CATEGORY_BYTES || l->count == LOG_CATEGORIES_MAX)
        return false;
    memcpy(l->levels[l->count].category, text, name);
    l->levels[l->count].category[name] = '\0';
    l->levels[l->count++].level = level;
    return true;
}

gpurest_status log_init(struct log *l, const gpurest_options *o)
{
    const char *text = o->log_level ? o->log_level : getenv("GPUREST_LOG");

    *l = (struct log){.call = o->log, .arg = o->log_arg};
    if (!text || !text[0])
        text = o->log ? "debug" : "off";
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!add_level(l, at, strcspn(at, ",")))
            return fail_invalid("\"%.100s\" is no log level: use off, warn, info or debug, for all or by category as in "
                                "warn,transport=debug",
                                text);
    return GPUREST_OK;
}

bool log_wants(const struct log *l, const char *category, int level)
{
    int general = 0;

    for (unsigned i = 0; i < l->count; i++) {
        if (strcmp(l->levels[i].category, category) == 0)
            return level <= l->levels[i].level;
        if (!l->levels[i].category[0])
            general = l->levels[i].level;
    }
    return level <= general;
}

void log_write(const struct log *l, const char *category, int level, const char *format, ...)
{
    char    text[MESSAGE_BYTES];
    int     head;
    va_list arguments;

    if (!log_wants(l, category, level))
        return;
    head = snprintf(text, sizeof text, "%s: ", category);
    va_start(arguments, format);
    vsnprintf(text + head, sizeof text - (size_t)head, format, arguments);
    va_end(arguments);
    if (l->call)
        l->call(l->arg, level, text);
    else
        fprintf(stderr, "gpurest: %s: %s\n", level_names[level], text);
}
