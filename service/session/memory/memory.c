/* The worker's figures of device memory, releasing its cache, and counting its peak anew. */
#include "session/bounds.h"
#include "session/memory/internal.h"

#include <math.h>

/* The share of free memory that a single allocation cannot get. */
static double fragmentation_of(const struct device_memory *m)
{
    if (m->largest_free_bytes == DEVICE_LARGEST_UNKNOWN)
        return (double)NAN;
    if (m->free_bytes == 0 || m->largest_free_bytes >= m->free_bytes)
        return 0;
    return 1 - (double)m->largest_free_bytes / (double)m->free_bytes;
}

static void describe_memory(struct session *s, const struct device_memory *m, struct session_memory *out)
{
    uint64_t limit;

    pthread_mutex_lock(&s->lock);
    limit = s->memory_limit;
    pthread_mutex_unlock(&s->lock);
    *out = (struct session_memory){
        .allocated_bytes = m->allocated_bytes,
        .cached_bytes = m->reserved_bytes > m->allocated_bytes ? m->reserved_bytes - m->allocated_bytes : 0,
        .reserved_bytes = m->reserved_bytes,
        .free_bytes = m->free_bytes,
        .peak_bytes = m->peak_bytes,
        .limit_bytes = limit,
        .fragmentation = fragmentation_of(m),
    };
}

static enum status ask_memory_info(struct worker_session *c, enum memory_action action, struct msg_memory_info_reply *got,
                                   struct problem *why)
{
    const struct msg_memory_info ask = {.reset_peak = action == MEMORY_RESET_PEAK};
    uint64_t                     deadline = deadline_after_ms(WORKER_CALL_DEADLINE_MS);
    enum status                  st = STATUS_OK;

    if (action == MEMORY_TRIM)
        st = worker_mem_trim(c->worker, &(struct msg_mem_trim){0}, NULL, deadline, why);
    if (action == MEMORY_TRIM && !st)
        pending_free_trimmed(c);
    return st ? st : worker_memory_info(c->worker, &ask, got, deadline, why);
}

enum status session_memory_of(struct session *s, enum memory_action action, struct session_memory *out, struct problem *why)
{
    struct msg_memory_info_reply got = {0};
    struct worker_session       *c;
    enum status                  st = worker_session_enter(s, &c, why);

    if (st)
        return st;
    st = ask_memory_info(c, action, &got, why);
    if (!st)
        describe_memory(s, &got.memory, out);
    return worker_session_leave_with(c, st, why);
}
