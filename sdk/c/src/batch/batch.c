/* Queueing the operations of a batch. */
#include "batch/batch.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- adding an operation ---- */

/* The state to restore if an operation fails. */
struct mark {
    size_t bytes, segments, places, results;
};

static gpurest_status op_open(gpurest_batch *b, const char *kind, struct mark *m)
{
    *m = (struct mark){b->ops.bytes, b->segments_count, b->places_count, b->results_count};
    if (b->ops_count >= BATCH_OPS_MAX)
        return fail(GPUREST_E_LIMIT, "submit it and begin another", "a batch has at most %d operations", BATCH_OPS_MAX);
    json_open(&b->ops, NULL, '{');
    json_string(&b->ops, "op", kind);
    return GPUREST_OK;
}

static gpurest_status op_close(gpurest_batch *b, const struct mark *m, gpurest_status st)
{
    json_close(&b->ops, '}');
    if (!st && b->ops.failed)
        st = b->ops.bytes >= b->ops.max / 2 ? fail(GPUREST_E_LIMIT, "submit it and begin another",
                                                   "the operations of a batch have at most %d bytes", BATCH_JSON_BYTES_MAX)
                                            : fail_memory();
    if (!st) {
        b->ops_count++;
        return GPUREST_OK;
    }
    while (b->segments_count > m->segments)
        free((void *)(uintptr_t)b->segments[--b->segments_count].data);
    b->places_count = m->places;
    b->results_count = m->results;
    b->ops.failed = false;
    b->ops.bytes = m->bytes;
    if (b->ops.data)
        b->ops.data[m->bytes] = '\0';
    return st;
}

/* Makes room for one more item; doubles at powers of two. */
static gpurest_status grow_list(void **items, size_t count, size_t each)
{
    void *more;

    if (count & (count - 1))
        return GPUREST_OK;
    more = realloc(*items, (count ? 2 * count : 1) * each);
    if (!more)
        return fail_memory();
    *items = more;
    return GPUREST_OK;
}

static gpurest_status add_made(struct batch_made **list, size_t *count, gpurest_buffer buffer, size_t op)
{
    void          *items = *list;
    gpurest_status st = grow_list(&items, *count, sizeof **list);

    *list = items;
    if (!st)
        (*list)[(*count)++] = (struct batch_made){.buffer = buffer, .op = op};
    return st;
}

static gpurest_status add_result(gpurest_batch *b, gpurest_launch_result *launch, float *elapsed_ms)
{
    void          *items = b->results;
    gpurest_status st = grow_list(&items, b->results_count, sizeof *b->results);

    b->results = items;
    if (!st)
        b->results[b->results_count++] = (struct batch_result){b->ops_count, launch, elapsed_ms};
    return st;
}

/* "segment": a copy of the bytes. */
static gpurest_status add_segment(gpurest_batch *b, const void *src, size_t bytes)
{
    char  id[24];
    void *copy;

    if (b->segments_count >= BATCH_SEGMENTS_MAX)
        return fail(GPUREST_E_LIMIT, "submit it and begin another", "a batch uploads at most %d pieces of data", BATCH_SEGMENTS_MAX);
    copy = malloc(bytes);
    if (!copy)
        return fail_memory();
    memcpy(copy, src, bytes);
    snprintf(id, sizeof id, "s%zu", b->segments_count);
    json_string(&b->ops, "segment", id);
    b->segments[b->segments_count++] = (struct piece){copy, bytes};
    return GPUREST_OK;
}

/* ---- the operations ---- */

gpurest_status batch_alloc(gpurest_batch *b, gpurest_buffer *out, const void *src, size_t bytes)
{
    char           name[NAME_BYTES], own[NAME_BYTES];
    gpurest_buffer made = {0};
    struct mark    m;
    gpurest_status st = op_open(b, "alloc", &m);

    if (st)
        return st;
    session_name(b->session, 'b', own);
    snprintf(name, sizeof name, "$%.*s", NAME_BYTES - 2, own);
    json_string(&b->ops, "as", name);
    if (src)
        st = add_segment(b, src, bytes);
    else
        json_u64(&b->ops, "size", bytes);
    if (!st)
        st = session_add_buffer(b->session, name, bytes, b, &made);
    if (!st)
        st = add_made(&b->made, &b->made_count, made, b->ops_count);
    st = op_close(b, &m, st);
    if (!st)
        *out = made;
    else if (made.id)
        session_remove_buffer(b->session, made);
    if (st && b->made_count && b->made[b->made_count - 1].buffer.id == made.id && made.id)
        b->made_count--;
    return st;
}

static void mark_freed(gpurest_session *s, gpurest_buffer buffer, bool freed)
{
    struct buffer_entry *e;

    pthread_mutex_lock(&s->lock);
    e = handles_get(&s->buffers, buffer.id);
    if (e)
        e->freed_in_batch = freed;
    pthread_mutex_unlock(&s->lock);
}

gpurest_status batch_free(gpurest_batch *b, gpurest_buffer buffer, const struct buffer_entry *e)
{
    struct mark    m;
    gpurest_status st = op_open(b, "free", &m);

    if (st)
        return st;
    json_string(&b->ops, "buf", e->name);
    if (!e->made_in)
        st = add_made(&b->freed, &b->freed_count, buffer, b->ops_count);
    st = op_close(b, &m, st);
    if (st)
        return st;
    for (size_t i = 0; i < b->made_count; i++)
        if (b->made[i].buffer.id == buffer.id)
            b->made[i].freed = true;
    mark_freed(b->session, buffer, true);
    return GPUREST_OK;
}

gpurest_status batch_write(gpurest_batch *b, const struct buffer_entry *e, size_t offset, const void *src, size_t bytes)
{
    struct mark    m;
    gpurest_status st;

    if (bytes == 0)
        return GPUREST_OK;
    st = op_open(b, "write", &m);
    if (st)
        return st;
    json_string(&b->ops, "to", e->name);
    json_u64(&b->ops, "offset", offset);
    return op_close(b, &m, add_segment(b, src, bytes));
}

gpurest_status batch_read(gpurest_batch *b, const struct buffer_entry *e, size_t offset, void *dst, size_t bytes)
{
    struct frame_place *p = &b->places[b->places_count];
    struct mark         m;
    gpurest_status      st;

    if (bytes == 0)
        return GPUREST_OK;
    if (b->places_count >= BATCH_SEGMENTS_MAX)
        return fail(GPUREST_E_LIMIT, "submit it and begin another", "a batch has at most %d reads", BATCH_SEGMENTS_MAX);
    st = op_open(b, "read", &m);
    if (st)
        return st;
    snprintf(p->id, sizeof p->id, "r%zu", b->places_count++);
    p->data = dst;
    p->bytes = bytes;
    json_string(&b->ops, "from", e->name);
    json_u64(&b->ops, "offset", offset);
    json_u64(&b->ops, "size", bytes);
    json_string(&b->ops, "segment", p->id);
    return op_close(b, &m, GPUREST_OK);
}

static gpurest_status default_stream_only(const char *stream)
{
    return stream[0] ? fail(GPUREST_E_UNSUPPORTED, "use the default stream, or copy outside the batch",
                            "copies and fills in a batch support only the default stream")
                     : GPUREST_OK;
}

gpurest_status batch_copy(gpurest_batch *b, const struct buffer_entry *to, size_t to_offset, const struct buffer_entry *from,
                          size_t from_offset, size_t bytes, const char *stream)
{
    struct mark    m;
    gpurest_status st = default_stream_only(stream);

    if (!st)
        st = op_open(b, "copy", &m);
    if (st)
        return st;
    json_string(&b->ops, "from", from->name);
    json_u64(&b->ops, "from_offset", from_offset);
    json_string(&b->ops, "to", to->name);
    json_u64(&b->ops, "offset", to_offset);
    json_u64(&b->ops, "size", bytes);
    return op_close(b, &m, GPUREST_OK);
}

gpurest_status batch_fill(gpurest_batch *b, const struct buffer_entry *e, size_t offset, const char *type, uint32_t value, size_t bytes,
                          const char *stream)
{
    struct mark    m;
    gpurest_status st = default_stream_only(stream);

    if (!st)
        st = op_open(b, "fill", &m);
    if (st)
        return st;
    json_string(&b->ops, "to", e->name);
    json_u64(&b->ops, "offset", offset);
    json_u64(&b->ops, "size", bytes);
    json_open(&b->ops, "pattern", '{');
    json_u64(&b->ops, type, value);
    json_close(&b->ops, '}');
    return op_close(b, &m, GPUREST_OK);
}

/* Notes the open operation as a launch; the caller counts it. */
static gpurest_status note_launch(gpurest_batch *b)
{
    void          *items = b->launches;
    gpurest_status st = grow_list(&items, b->launches_count, sizeof *b->launches);

    b->launches = items;
    if (!st)
        b->launches[b->launches_count] = b->ops_count;
    return st;
}

gpurest_status batch_launch(gpurest_batch *b, const struct launch *l)
{
    struct launch  named = *l;
    struct mark    m;
    gpurest_status st = op_open(b, "launch", &m);

    if (st)
        return st;
    if (!b->default_module[0] && !l->kernel->module->builtin)
        snprintf(b->default_module, sizeof b->default_module, "%s", l->kernel->module->id);
    named.default_module = b->default_module;
    if (l->config.timeout_ms)
        st = fail(GPUREST_E_UNSUPPORTED, "use gpurest_batch_timeout_ms for the whole batch", "a launch in a batch cannot have a timeout");
    if (!st)
        st = launch_write(&b->ops, b->session, b, &named);
    if (!st && l->result)
        st = add_result(b, l->result, NULL);
    if (!st)
        st = note_launch(b);
    st = op_close(b, &m, st);
    if (!st)
        b->launches_count++;
    return st;
}

bool batch_is_launch(const gpurest_batch *b)
{
    return b->ops_count == 1 && b->launches_count == 1 && b->results_count == 0;
}

gpurest_status batch_sync(gpurest_batch *b, const char *stream)
{
    struct mark    m;
    gpurest_status st = op_open(b, "sync", &m);

    if (st)
        return st;
    if (stream && stream[0])
        json_string(&b->ops, "stream", stream);
    return op_close(b, &m, GPUREST_OK);
}

/* ---- events ---- */

static gpurest_status event_batch(gpurest_session *s, gpurest_batch **out)
{
    gpurest_status st = session_check(s);

    if (st)
        return st;
    *out = session_batch(s);
    return *out ? GPUREST_OK
                : fail(GPUREST_E_UNSUPPORTED, "call gpurest_batch_begin first",
                       "events exist only in a batch, and this thread has begun none");
}

static gpurest_status event_name(const gpurest_batch *b, gpurest_event event, char out[NAME_BYTES])
{
    if (event.id >> 32 != b->serial || (uint32_t)event.id == 0 || (uint32_t)event.id > b->events)
        return fail_invalid("the event belongs to another batch");
    snprintf(out, NAME_BYTES, "e%u", (uint32_t)event.id);
    return GPUREST_OK;
}

/* record and wait. */
gpurest_status batch_event(gpurest_batch *b, const char *kind, const char *event, const char *stream)
{
    struct mark    m;
    gpurest_status st = op_open(b, kind, &m);

    if (st)
        return st;
    json_string(&b->ops, "event", event);
    if (stream[0])
        json_string(&b->ops, "stream", stream);
    return op_close(b, &m, GPUREST_OK);
}

gpurest_status gpurest_event_record(gpurest_session *s, gpurest_event *out, gpurest_stream stream)
{
    char           name[NAME_BYTES], event[NAME_BYTES];
    gpurest_batch *b;
    gpurest_status st = event_batch(s, &b);

    if (!st)
        st = out ? session_stream(s, stream, name) : fail_invalid("out is NULL");
    if (st)
        return st;
    snprintf(event, sizeof event, "e%u", b->events + 1);
    st = batch_event(b, "record", event, name);
    if (!st)
        out->id = (uint64_t)b->serial << 32 | ++b->events;
    return st;
}

gpurest_status gpurest_stream_wait(gpurest_session *s, gpurest_stream stream, gpurest_event event)
{
    char           name[NAME_BYTES], of[NAME_BYTES];
    gpurest_batch *b;
    gpurest_status st = event_batch(s, &b);

    if (!st)
        st = session_stream(s, stream, name);
    if (!st)
        st = event_name(b, event, of);
    return st ? st : batch_event(b, "wait", of, name);
}

gpurest_status batch_elapsed(gpurest_batch *b, const char *from, const char *to, float *out_ms)
{
    struct mark    m;
    gpurest_status st = op_open(b, "elapsed", &m);

    if (st)
        return st;
    json_string(&b->ops, "from", from);
    json_string(&b->ops, "to", to);
    return op_close(b, &m, add_result(b, NULL, out_ms));
}

gpurest_status gpurest_event_elapsed_ms(gpurest_session *s, gpurest_event from, gpurest_event to, float *out_ms)
{
    char           first[NAME_BYTES], second[NAME_BYTES];
    gpurest_batch *b;
    gpurest_status st = event_batch(s, &b);

    if (!st)
        st = out_ms ? event_name(b, from, first) : fail_invalid("out_ms is NULL");
    if (!st)
        st = event_name(b, to, second);
    return st ? st : batch_elapsed(b, first, second, out_ms);
}
