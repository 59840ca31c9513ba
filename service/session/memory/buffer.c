/* Buffers: device memory by id, filled and copied on the device. */
#include "session/memory/internal.h"

#include "base/threads/held.h"

#include <inttypes.h>
#include <stdlib.h>

struct contents contents_of(const struct worker_session *c, const struct buffer *b)
{
    assert(held(&c->session->lock));
    return (struct contents){.generation = c->session->generation, .epoch = c->session->epoch, .buffer = b->number};
}

static enum status contents_check(const struct worker_session *c, const struct buffer *b, const struct contents *only, struct problem *why)
{
    struct contents now = contents_of(c, b);

    if (!only ||
        (only->generation == now.generation && only->buffer == now.buffer && (only->epoch == EPOCH_ANY || only->epoch == now.epoch)))
        return STATUS_OK;
    return problem_set(why, STATUS_PRECONDITION_FAILED, "the buffer now has another entity tag");
}

static void describe_buffer(const struct worker_session *c, const struct buffer *b, struct buffer_info *out)
{
    memcpy(out->id, b->entry.id, sizeof out->id);
    if (b->texture)
        texels_id(b->entry.id, out->id);
    out->bytes = b->bytes;
    out->address = texture_lies_in_order(b) ? b->address : 0;
    out->created_wall_ns = b->created_wall_ns;
    out->shareable = b->shareable;
    out->contents = contents_of(c, b);
}

static enum status buffer_not_found(struct problem *why)
{
    return problem_set(why, STATUS_BUFFER_NOT_FOUND, "the session has no buffer with this id");
}

struct buffer *buffer_find(struct worker_session *c, struct span id)
{
    struct buffer *b = (struct buffer *)table_get(&c->buffers, id);

    if (global_is_name(id))
        return global_find(c, id);
    if (texture_is_name(id))
        return texture_texels(c, id);
    if (!b)
        b = (struct buffer *)table_get(&c->temp_buffers, id);
    return b && b->ready ? b : NULL;
}

void buffer_unref(struct buffer *b)
{
    assert(b->refs > 0);
    if (--b->refs > 0)
        return;
    free(b->texture);
    free(b);
}

/* With session.lock held: what that id names, if it has these contents (NULL: any). */
static enum status find_if(struct worker_session *c, struct span id, const struct contents *only, struct buffer **out, struct problem *why)
{
    *out = buffer_find(c, id);
    assert(held(&c->session->lock));
    if (!*out)
        return only ? problem_set(why, STATUS_PRECONDITION_FAILED, "the buffer was deleted") : buffer_not_found(why);
    return contents_check(c, *out, only, why);
}

enum status buffer_pin(struct worker_session *c, struct span id, struct buffer **out, struct problem *why)
{
    assert(held(&c->session->lock));
    return buffer_pin_if(c, id, NULL, out, why);
}

enum status buffer_pin_if(struct worker_session *c, struct span id, const struct contents *only, struct buffer **out, struct problem *why)
{
    struct buffer *b;
    enum status    st = find_if(c, id, only, &b, why);

    if (st)
        return st;
    b->refs++;
    b->pins++;
    if (b->module)
        global_hold(b);
    *out = b;
    return STATUS_OK;
}

void buffer_unpin(struct buffer *b)
{
    assert(b->pins > 0);
    b->pins--;
    if (!b->module) {
        buffer_unref(b);
        return;
    }
    b->refs--;
    global_release(b); /* may free it */
}

bool buffer_where(void *context, struct span id, uint64_t *address, uint64_t *bytes)
{
    return buffer_where_is(context, buffer_find(context, id), id, address, bytes);
}

bool buffer_where_is(const struct worker_session *c, const struct buffer *b, struct span id, uint64_t *address, uint64_t *bytes)
{
    if (!b) {
        *bytes = 0;
        return texture_is_name(id) && texture_where(c, id, address);
    }
    *address = b->address;
    *bytes = b->bytes;
    return texture_lies_in_order(b);
}

enum status range_check(const struct buffer *b, uint64_t offset, uint64_t bytes, struct problem *why)
{
    unsigned unit = texture_lies_in_order(b) ? 1 : texture_texel_bytes(&b->texture->desc);

    if (offset % unit || bytes % unit)
        return problem_set(why, STATUS_RANGE_NOT_SATISFIABLE, "%" PRIu64 " bytes at offset %" PRIu64 " are not whole texels of %u bytes",
                           bytes, offset, unit);
    if (offset <= b->bytes && bytes <= b->bytes - offset)
        return STATUS_OK;
    problem_set(why, STATUS_RANGE_NOT_SATISFIABLE, "%" PRIu64 " bytes at offset %" PRIu64 " are outside the buffer of %" PRIu64 " bytes",
                bytes, offset, b->bytes);
    if (why) {
        why->has_unsatisfied_range = true;
        why->range_size = b->bytes;
    }
    return STATUS_RANGE_NOT_SATISFIABLE;
}

static enum status existing_buffer(const struct worker_session *c, const struct buffer *b, const struct buffer *like,
                                   struct buffer_info *out, struct problem *why)
{
    if (!b->ready)
        return problem_set(why, STATUS_BUFFER_BUSY, "a buffer with this id is being created or deleted");
    if (b->bytes != like->bytes)
        return problem_field(why, STATUS_SPEC_CONFLICT, "/size", "conflict", "the buffer exists with %" PRIu64 " bytes", b->bytes);
    if (b->shareable != like->shareable)
        return problem_field(why, STATUS_SPEC_CONFLICT, "/shareable", "conflict", "the buffer exists and is %sshareable",
                             b->shareable ? "" : "not ");
    describe_buffer(c, b, out);
    return STATUS_OK;
}

/* With session.lock held: quota and a place in the table for b, which is not ready yet; or the one that exists. */
static enum status place_buffer(struct worker_session *c, struct buffer *b, struct buffer_info *out, bool *created, struct problem *why)
{
    const struct buffer *known = (struct buffer *)table_get(&c->buffers, span_of(b->entry.id));
    enum status          st;

    assert(held(&c->session->lock));
    *created = !known;
    if (known)
        return existing_buffer(c, known, b, out, why);
    if (c->buffers.count >= BUFFERS_PER_SESSION_MAX)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "buffers", BUFFERS_PER_SESSION_MAX, c->buffers.count, 1);
    st = quota_reserve(c, b->charged, why);
    if (st)
        return st;
    st = table_put(&c->buffers, &b->entry);
    if (st) {
        quota_release(c, b->charged);
        return problem_set(why, st, "not enough memory for a buffer");
    }
    b->number = ++c->session->buffers_made;
    return STATUS_OK;
}

static void unplace_buffer(struct worker_session *c, struct buffer *b)
{
    table_remove(&c->buffers, &b->entry);
    share_detach(c, b);
    quota_release(c, b->charged);
    buffer_unref(b);
}

static enum status allocate_buffer(struct worker_session *c, struct buffer *b, struct buffer_info *out, struct problem *why)
{
    uint64_t    address = 0;
    enum status st = b->shareable ? share_allocate(c, b, &address, why) : memory_allocate(c, b->bytes, &address, why);

    pthread_mutex_lock(&c->session->lock);
    if (st) {
        unplace_buffer(c, b);
    } else {
        b->address = address;
        b->ready = true;
        pending_free_reused(c, b->bytes);
        describe_buffer(c, b, out);
    }
    pthread_mutex_unlock(&c->session->lock);
    return st;
}

enum status buffer_init(struct buffer *b, uint64_t bytes, unsigned refs, struct problem *why)
{
    b->bytes = b->charged = bytes;
    b->refs = refs;
    b->created_wall_ns = wall_ns();
    return entry_name(&b->entry, (struct span){0}, "b_", why);
}

static enum status make_buffer(const struct session *s, struct span id, uint64_t bytes, struct buffer **out, struct problem *why)
{
    struct buffer *b;
    enum status    st;

    if (bytes == 0)
        return problem_field(why, STATUS_INVALID_FIELD, "/size", "range", "a buffer must have at least 1 byte");
    b = calloc(1, sizeof *b);
    if (!b)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a buffer");
    st = buffer_init(b, bytes, 1, why);
    if (!st && id.bytes)
        st = session_name_object(s, &b->entry, id, "b_", why);
    if (st)
        free(b);
    else
        *out = b;
    return st;
}

enum status buffer_create(struct session *s, struct span id, uint64_t bytes, bool shareable, struct buffer_info *out, bool *created,
                          struct problem *why)
{
    struct buffer         *b = NULL;
    struct worker_session *c;
    enum status            st = worker_session_enter_to_change(s, &c, why);

    if (st)
        return st;
    st = make_buffer(s, id, bytes, &b, why);
    if (st)
        goto leave;
    b->shareable = shareable;
    st = shareable ? share_plan(c, b, why) : STATUS_OK;
    if (st) {
        free(b);
        goto leave;
    }
    pthread_mutex_lock(&s->lock);
    st = place_buffer(c, b, out, created, why);
    if (st || !*created)
        buffer_unref(b);
    pthread_mutex_unlock(&s->lock);
    if (!st && *created)
        st = allocate_buffer(c, b, out, why);
    if (st && shareable)
        reaper_flush(&s->registry->reaper); /* frees the rejected buffer's host memory */
leave:
    return worker_session_leave_with(c, st, why);
}

enum status buffer_info_of(struct session *s, struct span id, struct buffer_info *out, struct problem *why)
{
    const struct buffer *b;
    enum status          st;

    pthread_mutex_lock(&s->lock);
    st = session_usable_locked(s, why);
    if (!st) {
        b = buffer_find(s->worker_session, id);
        if (b)
            describe_buffer(s->worker_session, b, out);
        else
            st = buffer_not_found(why);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* Removes the buffer from look-ups; its id stays in use until its memory is freed. With session.lock held. */
static enum status detach_buffer(struct worker_session *c, struct span id, const struct contents *only, struct buffer **out,
                                 struct problem *why)
{
    struct buffer *b;
    enum status    st = find_if(c, id, only, &b, why);

    if (st)
        return st;
    if (b->module)
        return problem_set(why, STATUS_INVALID_REQUEST, "a variable is part of its module; delete the module");
    if (b->texture)
        return problem_set(why, STATUS_INVALID_REQUEST, "texels are part of their texture; delete the texture");
    if (b->textures)
        return problem_set(why, STATUS_BUFFER_BUSY, "%u of the session's textures read this buffer; delete them first", b->textures);
    if (b->pins)
        return problem_set(why, STATUS_BUFFER_BUSY, "the buffer is being read, written, filled or copied");
    b->ready = false;
    c->names_ended++;
    *out = b;
    return STATUS_OK;
}

static enum status free_in_worker(struct worker_session *c, const struct buffer *b, struct problem *why)
{
    if (b->texture)
        return worker_texture_destroy(c->worker, &(struct msg_texture_destroy){b->texture->number}, NULL, DEADLINE_NEVER, why);
    return worker_mem_free(c->worker, &(struct msg_mem_free){b->address}, NULL, DEADLINE_NEVER, why);
}

enum status buffer_release(struct worker_session *c, struct buffer *b, struct problem *why)
{
    enum status st;

    /* A launch that found the address, or a texture's number, holds the submit lock until it is on its way. */
    pthread_mutex_lock(&c->submit_lock);
    pthread_mutex_unlock(&c->submit_lock);
    st = worker_session_wait_order(c, why);
    if (!st)
        st = free_in_worker(c, b, why);
    pthread_mutex_lock(&c->session->lock);
    if (st) {
        b->ready = true;
    } else {
        pending_free_cached(c, b->texture ? b->charged : b->bytes);
        (b->texture ? texture_unplace : unplace_buffer)(c, b);
    }
    pthread_mutex_unlock(&c->session->lock);
    return st;
}

enum status buffer_delete(struct session *s, struct span id, const struct contents *only, struct problem *why)
{
    struct buffer         *b = NULL;
    struct worker_session *c;
    enum status            st;
    bool                   shared;

    st = worker_session_enter_to_change(s, &c, why);
    if (st)
        return st;
    pthread_mutex_lock(&s->lock);
    st = detach_buffer(c, id, only, &b, why);
    shared = !st && b->share;
    pthread_mutex_unlock(&s->lock);
    if (!st)
        st = buffer_release(c, b, why);
    if (shared)
        reaper_flush(&s->registry->reaper); /* the answer promises that clients have lost the memory */
    return worker_session_leave_with(c, st, why);
}

static void buffer_freed(struct worker_session *c, const struct call *call, void *buffer)
{
    (void)call;
    pending_free_cached(c, ((struct buffer *)buffer)->bytes);
    unplace_buffer(c, buffer);
}

/* With session.lock held: NULL when the id is nobody's, or launches that wait here may still name it. */
static struct buffer *detach_unused(struct worker_session *c, struct span id)
{
    struct buffer *b = buffer_find(c, id);

    assert(held(&c->session->lock));
    if (!b || !TAILQ_EMPTY(&c->backlog) || b->textures)
        return NULL;
    b->ready = false;
    c->names_ended++;
    return b;
}

void buffer_abandon(struct session *s, struct span id)
{
    struct worker_session *c;
    struct buffer         *b;
    struct problem         why;

    if (worker_session_enter(s, &c, &why))
        return;
    /* A launch that found the address holds the submit lock until it is on its way. */
    pthread_mutex_lock(&c->submit_lock);
    pthread_mutex_lock(&s->lock);
    b = detach_unused(c, id);
    pthread_mutex_unlock(&s->lock);
    if (b && !worker_session_call_async(c, MESSAGE_MEM_FREE, &(struct msg_mem_free){b->address}, buffer_freed, b)) {
        pthread_mutex_lock(&s->lock);
        b->ready = true;
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&c->submit_lock);
    worker_session_leave(c);
}

unsigned buffer_list(struct session *s, struct page *page, struct buffer_info *items)
{
    const struct worker_session *c;
    struct entry *const         *at;
    unsigned                     n;

    pthread_mutex_lock(&s->lock);
    c = s->worker_session;
    n = table_page(c ? &c->buffers : NULL, page, &at);
    for (unsigned i = 0; i < n; i++)
        describe_buffer(c, (struct buffer *)at[i], &items[i]);
    pthread_mutex_unlock(&s->lock);
    return n;
}

enum status pattern_check(uint64_t offset, uint64_t bytes, unsigned pattern_bytes, struct problem *why)
{
    const char *pointer = offset % pattern_bytes ? "/offset" : "/size";

    if (offset % pattern_bytes == 0 && bytes % pattern_bytes == 0)
        return STATUS_OK;
    return problem_field(why, STATUS_INVALID_FIELD, pointer, "alignment", "must be a multiple of the pattern's %u bytes", pattern_bytes);
}

/* The source or the destination of a fill or copy. */
struct side {
    struct span    id;
    uint64_t       offset;
    struct buffer *buffer; /* pinned, once found */
};

static bool sides_overlap(const struct side *a, const struct side *b, uint64_t bytes)
{
    return a->buffer == b->buffer && a->offset < b->offset + bytes && b->offset < a->offset + bytes;
}

enum status buffer_fill_check(const struct buffer *b, struct problem *why)
{
    return texture_lies_in_order(b) ? STATUS_OK
                                    : problem_set(why, STATUS_INVALID_REQUEST,
                                                  "the texels of a texture cannot be filled; write them, or copy them from a buffer");
}

static enum status pin_sides(struct worker_session *c, struct side *sides, unsigned count, uint64_t bytes, struct problem *why)
{
    enum status st = STATUS_OK;

    pthread_mutex_lock(&c->session->lock);
    for (unsigned i = 0; i < count && !st; i++) {
        st = buffer_pin(c, sides[i].id, &sides[i].buffer, why);
        if (!st)
            st = range_check(sides[i].buffer, sides[i].offset, bytes, why);
    }
    if (!st && count == 1)
        st = buffer_fill_check(sides[0].buffer, why);
    if (!st && count == 2 && sides_overlap(&sides[0], &sides[1], bytes))
        st = problem_field(why, STATUS_INVALID_FIELD, "/from_offset", "overlap", "the ranges overlap");
    if (!st)
        c->session->epoch++;
    pthread_mutex_unlock(&c->session->lock);
    return st;
}

static void unpin_sides(struct worker_session *c, struct side *sides, unsigned count)
{
    pthread_mutex_lock(&c->session->lock);
    for (unsigned i = 0; i < count; i++)
        if (sides[i].buffer)
            buffer_unpin(sides[i].buffer);
    pthread_mutex_unlock(&c->session->lock);
}

enum status buffer_fill(struct session *s, struct span id, uint64_t offset, uint64_t bytes, uint64_t pattern, unsigned pattern_bytes,
                        struct span stream, struct problem *why)
{
    struct msg_mem_fill    m = {.pattern_bytes = pattern_bytes, .pattern = pattern};
    struct side            to = {id, offset, NULL};
    struct worker_session *c;
    enum status            st = worker_session_enter_to_change(s, &c, why);

    if (st)
        return st;
    if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 && pattern_bytes != 8)
        st = problem_field(why, STATUS_INVALID_FIELD, "/pattern", "size", "a pattern must have 1, 2, 4 or 8 bytes");
    else
        st = pattern_check(offset, bytes, pattern_bytes, why);
    if (!st)
        st = pin_sides(c, &to, 1, bytes, why);
    if (!st)
        st = stream_number(c, stream, &m.stream, why);
    if (!st)
        st = worker_session_wait_order(c, why);
    if (!st && bytes) {
        m.to = to.buffer->address + offset;
        m.count = bytes / pattern_bytes;
        st = worker_mem_fill(c->worker, &m, NULL, DEADLINE_NEVER, why);
    }
    unpin_sides(c, &to, 1);
    return worker_session_leave_with(c, st, why);
}

enum status buffer_copy(struct session *s, struct span to, uint64_t offset, struct span from, uint64_t from_offset, uint64_t bytes,
                        struct span stream, struct problem *why)
{
    struct msg_mem_copy    m = {.bytes = bytes};
    struct side            sides[2] = {{to, offset, NULL}, {from, from_offset, NULL}};
    struct worker_session *c;
    enum status            st = worker_session_enter_to_change(s, &c, why);

    if (st)
        return st;
    st = pin_sides(c, sides, 2, bytes, why);
    if (!st)
        st = stream_number(c, stream, &m.stream, why);
    if (!st)
        st = worker_session_wait_order(c, why);
    if (!st && bytes) {
        m.to = sides[0].buffer->address + offset;
        m.from = sides[1].buffer->address + from_offset;
        st = worker_mem_copy(c->worker, &m, NULL, DEADLINE_NEVER, why);
    }
    unpin_sides(c, sides, 2);
    return worker_session_leave_with(c, st, why);
}

void buffer_drop_all(struct worker_session *c)
{
    struct entry *e;

    assert(held(&c->session->lock));
    while ((e = table_pop(&c->buffers)) != NULL) {
        share_detach(c, (struct buffer *)e);
        buffer_unref((struct buffer *)e);
    }
}
