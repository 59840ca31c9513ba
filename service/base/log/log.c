/* Selects the lines to write and builds their members. */
#include "base/log/log.h"
#include "base/bounds.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/digits.h"
#include "base/log/log_lines.h"

#define LEVEL_VARIABLE  "GPUREST_WORKER_LOG_LEVEL"
#define FORMAT_VARIABLE "GPUREST_WORKER_LOG_FORMAT"
#define RELAY_FORMAT    "relay"

static const char *const level_names[] = {
#define LOG_LEVEL(id, name) name,
#include "base/log/log.def"
};

static const char *const category_names[] = {
#define LOG_CATEGORY(id, name) name,
#include "base/log/log.def"
};

static const char               *log_role = "gpurestd";
static const char               *log_node = "";
static enum log_format           log_format = LOG_FORMAT_TEXT;
static _Atomic int               levels[LOG_CATEGORIES]; /* level + 1, so that 0 before log_init() means LOG_LEVEL_INFO */
static _Thread_local const char *request, *trace;

/* ---- levels ---- */

static bool find_name(const char *const *names, size_t count, struct span name, unsigned *out)
{
    for (unsigned i = 0; i < count; i++)
        if (span_is(name, names[i])) {
            *out = i;
            return true;
        }
    return false;
}

bool log_level_parse(struct span name, enum log_level *out)
{
    unsigned i;

    if (!find_name(level_names, COUNT(level_names), name, &i))
        return false;
    *out = i;
    return true;
}

bool log_category_parse(struct span name, enum log_category *out)
{
    unsigned i;

    if (!find_name(category_names, COUNT(category_names), name, &i))
        return false;
    *out = i;
    return true;
}

const char *log_level_name(enum log_level level)
{
    return level_names[level];
}

const char *log_category_name(enum log_category c)
{
    return category_names[c];
}

void log_level_set(enum log_category c, enum log_level most)
{
    atomic_store_explicit(&levels[c], (int)most + 1, memory_order_relaxed);
}

enum log_level log_level_get(enum log_category c)
{
    int level = atomic_load_explicit(&levels[c], memory_order_relaxed);

    return level ? (enum log_level)(level - 1) : LOG_LEVEL_INFO;
}

void log_format_set(enum log_format format)
{
    log_format = format;
}

bool log_is_json(void)
{
    return log_format == LOG_FORMAT_JSON;
}

void log_node_set(const char *node)
{
    log_node = node;
}

void log_init(const char *role, enum log_level most)
{
    const char *told = getenv(LEVEL_VARIABLE), *format = getenv(FORMAT_VARIABLE);

    log_role = role;
    if (told)
        log_level_parse(span_of(told), &most);
    for (unsigned c = 0; c < LOG_CATEGORIES; c++)
        log_level_set(c, most);
    if (format && span_is(span_of(format), RELAY_FORMAT))
        log_format = LOG_FORMAT_RELAY;
}

bool log_set_for_workers(enum log_level most)
{
    return setenv(LEVEL_VARIABLE, log_level_name(most), 1) == 0 && setenv(FORMAT_VARIABLE, RELAY_FORMAT, 1) == 0;
}

void log_request(const char *request_id, const char *trace_id)
{
    request = request_id;
    trace = trace_id;
}

/* ---- lines ---- */

static void add_head(struct log_line *l, struct span role, pid_t pid, enum log_level level, enum log_category category)
{
    char now[TIME_TEXT_BYTES];

    log_line_begin(l, log_format);
    log_line_text(l, "time", time_text(wall_ns(), now));
    log_line_text(l, "level", span_of(level_names[level]));
    if (log_node[0])
        log_line_text(l, "node", span_of(log_node));
    log_line_text(l, "role", role);
    log_line_count(l, "pid", (uint64_t)pid);
    log_line_text(l, "category", span_of(category_names[category]));
    if (request)
        log_line_text(l, "request", span_of(request));
    if (trace && *trace)
        log_line_text(l, "trace", span_of(trace));
}

void log_event(enum log_level level, enum log_category category, const char *message, const struct log_field *fields, size_t count)
{
    struct log_line l;

    if (level > log_level_get(category))
        return;
    if (log_format == LOG_FORMAT_RELAY) {
        log_line_wire(&l, level, category, message);
        log_sink_write(level, &l);
        return;
    }
    add_head(&l, span_of(log_role), getpid(), level, category);
    for (size_t i = 0; i < count; i++)
        if (fields[i].text.data)
            log_line_text(&l, fields[i].key, fields[i].text);
        else
            log_line_number(&l, fields[i].key, fields[i].number);
    log_line_text(&l, "message", span_of(message));
    log_line_end(&l);
    log_sink_write(level, &l);
}

void log_relayed(struct span of, pid_t pid, enum log_level level, enum log_category category, struct span message)
{
    struct log_line l;

    if (level > log_level_get(category))
        return;
    add_head(&l, of, pid, level, category);
    log_line_text(&l, "message", message);
    log_line_end(&l);
    log_sink_write(level, &l);
}

void log_line_dropped(struct log_line *l, uint64_t count)
{
    char text[64];

    snprintf(text, sizeof text, "%llu log lines were dropped", (unsigned long long)count);
    add_head(l, span_of(log_role), getpid(), LOG_LEVEL_WARN, LOG_CATEGORY_FRONTEND);
    log_line_text(l, "message", span_of(text));
    log_line_end(l);
}

void log_crash_line(const char *role, enum log_category category, const char *message)
{
    static struct log_line l; /* one thread of a process reports its crash */

    if (log_format == LOG_FORMAT_RELAY) {
        log_line_wire(&l, LOG_LEVEL_CRITICAL, category, message);
    } else {
        add_head(&l, span_of(role), getpid(), LOG_LEVEL_CRITICAL, category);
        log_line_text(&l, "message", span_of(message));
        log_line_end(&l);
    }
    log_crash_write(&l);
}

void log_write(enum log_level level, const char *category, const char *format, ...)
{
    enum log_category c = LOG_CATEGORY_FRONTEND;
    char              message[LOG_MESSAGE_BYTES];
    va_list           args;

    log_category_parse(span_of(category), &c);
    if (level > log_level_get(c))
        return;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    log_event(level, c, message, NULL, 0);
}
