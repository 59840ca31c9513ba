/* Requests, answers and progress. */
#include "transport/exchange.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

void exchange_init(struct exchange *x, const char *method, const char *path)
{
    memset(x, 0, sizeof *x);
    x->descriptor = -1;
    x->method = method;
    x->path = path;
    x->repeatable =
        strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "DELETE") == 0;
    x->bounded = strcmp(method, "DELETE") == 0;
    buf_init(&x->head, ANSWER_HEAD_BYTES_MAX);
    buf_init(&x->body, ANSWER_BODY_BYTES_MAX);
}

static void drop_descriptor(struct exchange *x)
{
    descriptor_close(x->descriptor);
    x->descriptor = -1;
}

void exchange_finish(struct exchange *x)
{
    drop_descriptor(x);
    buf_finish(&x->head);
    buf_finish(&x->body);
}

void exchange_reset(struct exchange *x)
{
    drop_descriptor(x);
    buf_clear(&x->head);
    buf_clear(&x->body);
    x->status = 0;
    x->into_done = 0;
    x->sent = x->followed = false;
}

uint64_t exchange_body_bytes(const struct exchange *x)
{
    uint64_t total = x->source ? x->source_bytes : 0;

    for (size_t i = 0; i < x->upload_count; i++)
        total += x->upload[i].bytes;
    return total;
}

/* Of the line that begins there; NULL: it has none. */
static const char *end_of_line(const char *line)
{
    const char *end = strchr(line, '\r');

    while (end && end[1] != '\n')
        end = strchr(end + 1, '\r');
    return end;
}

bool exchange_header(const struct exchange *x, const char *name, char *out, size_t room)
{
    size_t      chars = strlen(name);
    const char *line = buf_text(&x->head), *end;

    for (; *line; line = end + 2) {
        end = end_of_line(line);
        if (!end)
            return false;
        if ((size_t)(end - line) <= chars || line[chars] != ':' || strncasecmp(line, name, chars) != 0)
            continue;
        line += chars + 1;
        while (*line == ' ' || *line == '\t')
            line++;
        if ((size_t)(end - line) >= room)
            return false;
        memcpy(out, line, (size_t)(end - line));
        out[end - line] = '\0';
        return true;
    }
    return false;
}

static bool success(const struct exchange *x)
{
    return x->status / 100 == 2;
}

static gpurest_status too_long(const struct exchange *x)
{
    return fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer to %s %.200s is too long", x->method,
                x->path);
}

gpurest_status exchange_take(struct exchange *x, const void *data, size_t bytes)
{
    if (x->sink && (success(x) || (x->sink_any && x->status != 421))) {
        if (!x->sink(x->sink_arg, data, bytes))
            return failure_last()->status;
    } else if (x->into && success(x)) {
        if (bytes > x->into_bytes - x->into_done)
            return too_long(x);
        memcpy((char *)x->into + x->into_done, data, bytes);
        x->into_done += bytes;
    } else {
        if (!success(x) && x->body.bytes + bytes > PROBLEM_BYTES_MAX)
            return too_long(x);
        if (!buf_add(&x->body, data, bytes))
            return bytes > x->body.max - x->body.bytes ? too_long(x) : fail_memory();
    }
    return success(x) ? progress_add(x->receiving, bytes) : GPUREST_OK;
}

void *exchange_place(struct exchange *x, size_t *room)
{
    if (!x->into || x->sink || !success(x))
        return NULL;
    *room = x->into_bytes - x->into_done;
    return *room ? (char *)x->into + x->into_done : NULL;
}

gpurest_status exchange_placed(struct exchange *x, size_t bytes)
{
    x->into_done += bytes;
    return progress_add(x->receiving, bytes);
}

gpurest_status exchange_stalled(struct exchange *x, void (*interrupt)(void *arg), void *arg)
{
    bool lives;

    cancel_leave(x->cancel); /* what asks can be cancelled, too */
    lives = x->lives && x->lives(x->lives_arg, x);
    if (!cancel_enter(x->cancel, interrupt, arg))
        return fail(GPUREST_E_CANCELLED, NULL, "the operation was cancelled");
    if (lives)
        return GPUREST_OK;
    return fail(GPUREST_E_TIMEOUT, "check the service and the network, or raise idle_timeout_ms", "no data for %d ms in %s %.200s",
                x->idle_ms, x->method, x->path);
}

gpurest_status exchange_end(struct exchange *x)
{
    if (x->into && !x->sink && success(x) && x->into_done != x->into_bytes)
        return fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service",
                    "the answer to %s %.200s has %zu bytes instead of %zu", x->method, x->path, x->into_done, x->into_bytes);
    return GPUREST_OK;
}

/* ---- progress ---- */

void progress_init(struct progress *p, gpurest_progress_cb report, void *arg, uint64_t total)
{
    *p = (struct progress){.report = report, .arg = arg, .total = total};
    pthread_mutex_init(&p->lock, NULL);
}

void progress_finish(struct progress *p)
{
    pthread_mutex_destroy(&p->lock);
}

static gpurest_status add_locked(struct progress *p, uint64_t bytes)
{
    p->done += bytes;
    if (p->done > p->total) /* after a retry */
        p->done = p->total;
    if (!p->given_up && (p->done - p->reported >= PROGRESS_STEP_BYTES || (p->done == p->total && p->reported < p->total))) {
        p->reported = p->done;
        p->given_up = p->report(p->arg, p->done, p->total) != 0;
    }
    return p->given_up ? fail(GPUREST_E_CANCELLED, NULL, "the progress callback cancelled the transfer") : GPUREST_OK;
}

gpurest_status progress_add(struct progress *p, uint64_t bytes)
{
    gpurest_status st;

    if (!p || !p->report)
        return GPUREST_OK;
    pthread_mutex_lock(&p->lock);
    st = add_locked(p, bytes);
    pthread_mutex_unlock(&p->lock);
    return st;
}
