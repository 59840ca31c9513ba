/* Calls that wait for earlier work: what each waits for, and what it does then. */
#include "worker/commands/internal.h"

#include <assert.h>

static bool events_passed(struct device_worker *w, const struct msg_event_elapsed *m)
{
    struct problem unused = {0};

    return named_event_query(w, m->from, &unused) != STATUS_PENDING && named_event_query(w, m->to, &unused) != STATUS_PENDING;
}

/* Between two events that are done. */
static enum status elapsed_between(struct device_worker *w, const struct msg_event_elapsed *m, struct msg_event_elapsed_reply *reply,
                                   struct problem *why)
{
    enum status st = named_event_query(w, m->from, why);

    if (!st)
        st = named_event_query(w, m->to, why);
    if (!st && (st = named_event_elapsed(w, m->from, m->to, &reply->us)) != STATUS_OK)
        problem_set(why, st, "cannot read the time between two events");
    return st;
}

static bool barrier_passed(struct device_worker *w, const struct accepted_command *k)
{
    const union message_body *b = &k->command.body;

    if (k->command.message == MESSAGE_EVENT_ELAPSED)
        return events_passed(w, &b->event_elapsed);
    if (k->command.message == MESSAGE_STREAM_DESTROY)
        return streams_passed(w, stream_find(w, b->stream_destroy.stream), UINT64_MAX); /* no work at all may be left on it */
    if (k->command.message == MESSAGE_STREAM_SYNC && !b->stream_sync.all)
        return streams_passed(w, stream_find(w, b->stream_sync.stream), k->sequence);
    return streams_passed(w, NULL, k->sequence);
}

static void stream_close(struct device_worker *w, struct stream *s)
{
    assert(s->used && s->handle && TAILQ_EMPTY(&s->queue) && s->issued == 0);
    w->ops->stream_destroy(w->device, s->handle);
    s->handle = NULL;
    s->used = false;
}

static enum status evict(struct device_worker *w, const struct msg_mem_evict *m, struct msg_mem_evict_reply *reply, struct problem *why)
{
    enum status st = w->ops->mem_evict ? w->ops->mem_evict(w->device, m->address, &reply->bytes) : STATUS_NOT_IMPLEMENTED;

    if (st != STATUS_NOT_IMPLEMENTED)
        return st ? problem_set(why, st, "cannot give the memory of an allocation back to the device") : STATUS_OK;
    reply->bytes = 0;
    return STATUS_OK;
}

static enum status barrier_do(struct device_worker *w, const struct accepted_command *k, union message_reply *reply, struct problem *why)
{
    const union message_body *b = &k->command.body;
    enum status               st = STATUS_OK;

    if (k->command.message == MESSAGE_MEM_FREE) {
        st = w->ops->mem_free(w->device, b->mem_free.address);
        if (st)
            problem_set(why, st, "cannot free device memory");
        host_end_beside(w, b->mem_free.address);
    } else if (k->command.message == MESSAGE_MEM_EVICT) {
        st = evict(w, &b->mem_evict, &reply->mem_evict, why);
    } else if (k->command.message == MESSAGE_TEXTURE_DESTROY) {
        st = w->ops->texture_destroy(w->device, b->texture_destroy.texture);
        if (st)
            problem_set(why, st, "cannot free a texture");
    } else if (k->command.message == MESSAGE_HOST_UNMAP) {
        host_end(w, b->host_unmap.host);
    } else if (k->command.message == MESSAGE_HOST_MAP) {
        st = host_map(w, &b->host_map, &reply->host_map.host, why);
    } else if (k->command.message == MESSAGE_MODULE_UNLOAD && loaded_module_find(w, b->module_unload.module)) {
        w->ops->module_unload(w->device, loaded_module_find(w, b->module_unload.module));
        w->modules[(b->module_unload.module & 0xffff) - 1].module = NULL;
    } else if (k->command.message == MESSAGE_STREAM_DESTROY && stream_find(w, b->stream_destroy.stream)) {
        stream_close(w, stream_find(w, b->stream_destroy.stream));
    } else if (k->command.message == MESSAGE_GRAPH_DESTROY) {
        graph_end(w, b->graph_destroy.graph);
    } else if (k->command.message == MESSAGE_EVENT_ELAPSED) {
        st = elapsed_between(w, &b->event_elapsed, &reply->event_elapsed, why);
    }
    return st;
}

/* One pass over the list: each call is taken out, and put back at the end if it must wait longer. */
bool barriers_advance(struct device_worker *w)
{
    struct accepted_command *last = TAILQ_LAST(&w->barriers, command_queue);
    bool                     moved = false;
    bool                     end = last == NULL;

    while (!end && !w->lost) {
        struct accepted_command *k = TAILQ_FIRST(&w->barriers);
        struct completion        done = {0};
        struct problem           why = {0};
        enum status              st;

        TAILQ_REMOVE(&w->barriers, k, queued);
        end = k == last;
        if (!barrier_passed(w, k)) {
            TAILQ_INSERT_TAIL(&w->barriers, k, queued);
            continue;
        }
        st = barrier_do(w, k, &done.reply, &why);
        moved = true;
        command_answer(w, k, st, &done, &why);
    }
    return moved;
}
