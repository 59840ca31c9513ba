/* Batches: their making, the segments that stream into them, their end. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/threads/held.h"
#include "session/batch/program_internal.h"
#include "session/launch/builtin.h"

enum status batch_set_failed_op(struct problem *why, enum status st, unsigned op, unsigned completed)
{
    char pointer[PROBLEM_POINTER_BYTES];

    if (!st || st == STATUS_PENDING || why->has_op)
        return st;
    snprintf(pointer, sizeof pointer, "/ops/%u", op);
    problem_within(why, pointer);
    why->has_op = true;
    why->op_index = op;
    why->completed_ops = completed;
    why->has_unsatisfied_range = false;
    return st;
}

void batch_set_failed_op_up_to(struct problem *why, unsigned last)
{
    size_t used = strnlen(why->detail, sizeof why->detail);

    if (!why->has_op || last <= why->op_index || why->op_index_last)
        return;
    why->op_index_last = last;
    snprintf(why->detail + used, sizeof why->detail - used, "; one of the operations %u to %u failed", why->op_index, last);
}

/* ---- names ---- */

struct batch_name *batch_name_of(struct batch *b, struct span name)
{
    return (struct batch_name *)table_get(&b->names, name);
}

/* ":<variable>", of the module of the batch. */
static bool names_own_module(struct span name)
{
    return span_starts(name, ":");
}

/* ":<variable>" is one of the batch's module. */
static struct buffer *own_global(struct batch *b, struct span name)
{
    struct module *m = b->spec->program ? b->spec->program->made : b->module;

    if (!m && b->spec->module.bytes)
        m = (struct module *)table_get(&b->worker_session->modules, b->spec->module);
    return m && m->ready ? module_global(m, span_from(name, 1)) : NULL;
}

struct buffer *batch_buffer(struct batch *b, struct span name)
{
    struct batch_name *own;
    struct buffer     *buffer;

    if (span_starts(name, "$")) {
        own = batch_name_of(b, name);
        return own && own->temp ? &own->temp->buffer : NULL;
    }
    if (names_own_module(name))
        return own_global(b, name);
    if (global_is_name(name))
        return global_find(b->worker_session, name);
    if (texture_is_name(name))
        return texture_texels(b->worker_session, name);
    buffer = (struct buffer *)table_get(&b->worker_session->buffers, name);
    return buffer && buffer->ready ? buffer : NULL;
}

static enum status add_name(struct batch *b, struct span name, struct problem *why)
{
    struct batch_name *n = &b->name_items[b->names_count];

    if (!span_copy(name, n->entry.id, sizeof n->entry.id) || table_get(&b->names, name))
        return problem_set(why, STATUS_INTERNAL, "the batch was not checked");
    if (table_put(&b->names, &n->entry))
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a batch");
    b->names_count++;
    return STATUS_OK;
}

static enum status add_names(struct batch *b, struct problem *why)
{
    const struct batch_spec *spec = b->spec;
    enum status              st = STATUS_OK;

    for (unsigned i = 0; b->names_count < b->kinds[BATCH_ALLOC] && !st; i++)
        if (spec->ops[i].kind == BATCH_ALLOC)
            st = add_name(b, spec->ops[i].to, why);
    return st;
}

/* ---- making ---- */

enum status batch_temp_buffer(struct batch *b, uint64_t bytes, struct temp_buffer **out, struct problem *why)
{
    enum status st;

    if (bytes == 0)
        return problem_field(why, STATUS_INVALID_FIELD, "/size", "range", "a buffer must have at least 1 byte");
    st = temp_buffer_create(b->worker_session, bytes, out, why);
    if (st)
        return st;
    (*out)->of_batch = b->temp_buffers;
    b->temp_buffers = *out;
    return STATUS_OK;
}

enum status batch_allocate(struct batch *b, const struct batch_op *op, struct problem *why)
{
    uint64_t bytes = op->segment == BATCH_NO_SEGMENT ? op->bytes : b->spec->segments[op->segment];

    if (b->spec->program) {
        batch_name_of(b, op->to)->temp = b->spec->program->temp_buffers[op - b->spec->ops];
        return STATUS_OK;
    }
    return batch_temp_buffer(b, bytes, &batch_name_of(b, op->to)->temp, why);
}

/* What fails here is found before anything was done. */
static enum status allocate_all(struct batch *b, struct problem *why)
{
    bool        freed = false;
    enum status st = STATUS_OK;

    for (unsigned i = 0; b->kinds[BATCH_ALLOC] && i < b->spec->ops_count && !st; i++) {
        const struct batch_op *op = &b->spec->ops[i];
        freed = freed || op->kind == BATCH_FREE;
        /* Behind a FREE its memory is counted on; contents that come with the request need their place at once. */
        if (op->kind == BATCH_ALLOC && (!freed || op->segment != BATCH_NO_SEGMENT))
            st = batch_set_failed_op(why, batch_allocate(b, op, why), i, 0);
    }
    return st;
}

/* A segment may go straight to its place when nothing before its operation could see or change that: the batch begins with it and others
 * like it, in the order of their coming. */
static enum status plan_upload(struct batch *b, unsigned i, bool *early, int *last, struct problem *why)
{
    const struct batch_op *op = &b->spec->ops[i];
    struct batch_target   *t;

    *early = *early && (op->kind == BATCH_ALLOC || op->kind == BATCH_WRITE);
    if (op->segment == BATCH_NO_SEGMENT || b->preparing)
        return STATUS_OK;
    t = &b->targets[op->segment];
    *t = (struct batch_target){.op = i, .left = b->spec->segments[op->segment], .sent = b->spec->segments[op->segment] == 0};
    if (b->spec->program) /* another run may be using its buffers */
        return t->left ? batch_temp_buffer(b, t->left, &t->temp, why) : STATUS_OK;
    if (op->kind == BATCH_ALLOC) {
        t->direct = true;
        t->temp = batch_name_of(b, op->to)->temp;
        return STATUS_OK;
    }
    *early = *early && op->segment > *last && !names_own_module(op->to); /* whose module may still have to be compiled */
    t->direct = *early;
    *last = op->segment;
    if (!t->direct && t->left)
        return batch_temp_buffer(b, t->left, &t->temp, why);
    if (span_starts(op->to, "$") && batch_name_of(b, op->to))
        t->temp = batch_name_of(b, op->to)->temp;
    return STATUS_OK;
}

static enum status plan_uploads(struct batch *b, struct problem *why)
{
    bool        early = true;
    int         last = -1;
    enum status st = STATUS_OK;

    for (unsigned i = 0; b->spec->segments_count && i < b->spec->ops_count && !st; i++)
        st = batch_set_failed_op(why, plan_upload(b, i, &early, &last, why), i, 0);
    return st;
}

static void count_kinds(struct batch *b)
{
    for (unsigned i = 0; i < b->spec->ops_count; i++) {
        assert((unsigned)b->spec->ops[i].kind < BATCH_KINDS);
        b->kinds[b->spec->ops[i].kind]++;
    }
}

static bool make_parts(struct batch *b)
{
    const struct batch_spec *spec = b->spec;

    b->name_items = calloc(b->kinds[BATCH_ALLOC] + 1u, sizeof *b->name_items);
    b->targets = calloc(spec->segments_count + 1u, sizeof *b->targets);
    b->results = calloc(spec->ops_count + 1u, sizeof *b->results);
    b->events = calloc(b->kinds[BATCH_RECORD] + 1u, sizeof *b->events);
    b->kept = calloc(spec->keep_count + 1u, sizeof *b->kept);
    b->later = b->kinds[BATCH_READ] ? calloc(spec->ops_count, sizeof *b->later) : NULL;
    b->calls = calloc(spec->ops_count + 1u, sizeof *b->calls);
    b->flights = malloc(BATCH_CALLS_IN_FLIGHT_MAX * sizeof *b->flights); /* 200 KiB: each is set when it is used */
    b->list.items = malloc(RUN_ITEMS_MAX * sizeof *b->list.items);
    b->listed = calloc(spec->ops_count + 1u, sizeof *b->listed);
    b->groups = calloc(b->kinds[BATCH_LAUNCH] + 1u, sizeof *b->groups);
    return b->list.items && b->listed && b->groups && b->name_items && b->targets && b->results && b->events && b->kept &&
           (b->later || !b->kinds[BATCH_READ]) && b->calls && b->flights;
}

static void note_woken(struct waker *w)
{
    struct batch *b = (struct batch *)((char *)w - offsetof(struct batch, waker));

    pthread_mutex_lock(&b->lock);
    b->woken = true;
    pthread_cond_broadcast(&b->landed);
    pthread_mutex_unlock(&b->lock);
}

static struct batch *make(struct session *s, struct worker_session *c, const struct batch_spec *spec)
{
    struct batch *b = calloc(1, sizeof *b);

    if (!b)
        return NULL;
    b->session = s;
    b->worker_session = c;
    b->spec = spec;
    b->preparing = spec->prepare;
    count_kinds(b);
    pthread_mutex_init(&b->lock, NULL);
    pthread_mutex_init(&b->clock.lock, NULL);
    pthread_cond_init(&b->landed, NULL);
    b->waker.wake = note_woken;
    pthread_mutex_lock(&s->lock);
    worker_session_ref(c);
    c->batches++;
    b->open = true;
    pthread_mutex_unlock(&s->lock);
    session_pin(s);
    if (make_parts(b))
        return b;
    batch_destroy(b);
    return NULL;
}

enum status batch_create(struct session *s, const struct batch_spec *spec, struct batch **out, struct problem *why)
{
    struct worker_session *c;
    struct batch          *b;
    enum status            st = session_admits_work(s, why);

    if (!st)
        st = worker_session_enter_to_change(s, &c, why);
    if (st)
        return st;
    b = make(s, c, spec);
    st = b ? add_names(b, why) : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a batch");
    if (!st)
        st = allocate_all(b, why);
    if (!st)
        st = plan_uploads(b, why);
    if (!st)
        st = batch_check_reads(b, why);
    if (!st)
        *out = b;
    else if (b)
        batch_release(b);
    if (st)
        batch_destroy(b);
    return worker_session_leave_with(c, st, why);
}

/* ---- segments ---- */

static enum status begin_transfer(struct batch *b, struct batch_target *t, struct problem *why)
{
    const struct batch_op *op = &b->spec->ops[t->op];
    struct session        *s = b->session;
    struct span            id = t->temp ? span_of(t->temp->buffer.entry.id) : op->to;
    enum status            st;

    if (!t->temp && span_starts(op->to, "$"))
        return problem_field(why, STATUS_BUFFER_NOT_FOUND, "/to", "not_found", "the batch has no buffer with this name at this operation");
    pthread_mutex_lock(&s->lock);
    st = worker_session_still_usable(b->worker_session, why);
    pthread_mutex_unlock(&s->lock);
    return st ? st : transfer_write_begin(s, id, t->direct ? op->offset : 0, t->left, NULL, &t->transfer, why);
}

static enum status write_some(struct batch *b, struct batch_target *t, struct span piece, size_t *consumed, struct waker *w,
                              struct problem *why)
{
    enum status st = t->transfer ? STATUS_OK : begin_transfer(b, t, why);

    if (!st && t->left)
        st = transfer_write(t->transfer, piece, consumed, w, why);
    t->left -= *consumed;
    /* The next segment needs staging memory: this one must let go of its last slice first. */
    if (!st && t->left == 0 && !t->sent) {
        st = transfer_write_flush(t->transfer, w, why);
        t->sent = !st;
    }
    return st;
}

enum status batch_write(struct batch *b, unsigned segment, struct span piece, size_t *consumed, struct waker *w, struct problem *why)
{
    struct batch_target *t = b->unsent;
    enum status          st = STATUS_OK;
    size_t               none = 0;

    *consumed = 0;
    if (t && t != &b->targets[segment] && !t->sent)
        st = batch_set_failed_op(why, write_some(b, t, (struct span){0}, &none, w, why), t->op, 0);
    if (st)
        return st;
    b->unsent = t = &b->targets[segment];
    if (piece.bytes > t->left)
        return problem_set(why, STATUS_LENGTH_MISMATCH, "a segment is longer than announced");
    st = write_some(b, t, piece, consumed, w, why);
    /* What was taken is told first; the end of the segment is waited for before the next one begins. */
    if (st == STATUS_PENDING && *consumed)
        return STATUS_OK;
    return batch_set_failed_op(why, st, t->op, 0);
}

/* Sleeps for BATCH_WATCH_MS, or until the waker is woken: then it is true. */
static bool sleep_until_woken(struct batch *b)
{
    struct timespec until = timespec_of_ns(deadline_after_ms(BATCH_WATCH_MS));
    bool            woken;

    pthread_mutex_lock(&b->lock);
    while (!b->woken && pthread_cond_clockwait(&b->landed, &b->lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT) {
    }
    woken = b->woken;
    b->woken = false;
    pthread_mutex_unlock(&b->lock);
    return woken;
}

static enum status write_whole(struct batch *b, unsigned segment, struct span data, struct problem *why)
{
    enum status st = STATUS_OK;
    size_t      consumed = 1;

    while (!st && (data.bytes || consumed)) { /* once more when all was taken: its last slice is to be on its way, too */
        st = batch_write(b, segment, data, &consumed, &b->waker, why);
        data = span_from(data, consumed);
        if (st != STATUS_PENDING)
            continue;
        while (!sleep_until_woken(b))
            if (b->unwanted && b->unwanted(b->unwanted_context))
                return problem_set(why, STATUS_CANCELLED, "the client has disconnected");
        consumed = 1;
        st = STATUS_OK;
    }
    return st;
}

enum status batch_write_all(struct batch *b, const struct span *segments, struct problem *why)
{
    enum status st = STATUS_OK;

    for (unsigned i = 0; i < b->spec->segments_count && !st; i++)
        if (segments[i].bytes)
            st = write_whole(b, i, segments[i], why);
    return st;
}

bool batch_overwrote(const struct batch *b)
{
    for (unsigned i = 0; i < b->spec->segments_count; i++)
        if (b->targets[i].direct && !b->targets[i].temp && b->targets[i].transfer)
            return true;
    return false;
}

static enum status finish_upload(struct batch_target *t, struct problem *why)
{
    enum status st = STATUS_OK;

    if (t->left)
        return problem_set(why, STATUS_LENGTH_MISMATCH, "a segment is shorter than announced");
    if (!t->transfer)
        return STATUS_OK;
    st = transfer_write_finish(t->transfer, why);
    transfer_destroy(t->transfer);
    t->transfer = NULL;
    return batch_set_failed_op(why, st, t->op, 0);
}

enum status batch_finish_uploads(struct batch *b, struct problem *why)
{
    enum status st = STATUS_OK;

    for (unsigned i = 0; i < b->spec->segments_count && !st; i++)
        st = finish_upload(&b->targets[i], why);
    return st;
}

/* ---- results and end ---- */

const struct batch_result *batch_result_of(const struct batch *b, unsigned op)
{
    return &b->results[op];
}

bool batch_has_results(const struct batch *b)
{
    return b->timed_count || b->holds_text || b->calls_count || b->kinds[BATCH_ELAPSED];
}

bool batch_has(const struct batch *b, enum batch_kind kind)
{
    return b->kinds[kind] > 0;
}

char *batch_data_take(struct batch *b, unsigned op)
{
    char *data = b->results[op].data;

    b->results[op].data = NULL;
    return data;
}

const struct batch_group *batch_groups_of(const struct batch *b, unsigned *count)
{
    *count = b->groups_count;
    return b->groups;
}

const char *batch_kept_id(const struct batch *b, unsigned keep)
{
    return b->kept[keep] ? b->kept[keep]->buffer.entry.id : "";
}

const char *batch_module_id(const struct batch *b)
{
    return b->module_id;
}

void batch_release(struct batch *b)
{
    struct session *s = b->session;

    if (!b->temp_buffers)
        return;
    pthread_mutex_lock(&s->lock);
    for (struct temp_buffer *l = b->temp_buffers; l; l = l->of_batch)
        if (!l->wanted || !b->succeeded)
            temp_buffer_abandon(b->worker_session, l);
    pthread_mutex_unlock(&s->lock);
    temp_buffer_free_some(b->worker_session);
    for (struct temp_buffer *l = b->temp_buffers; l; l = l->of_batch)
        temp_buffer_await(b->worker_session, l);
}

void batch_settle(struct batch *b)
{
    assert(held(&b->session->lock));
    b->worker_session->batches -= b->open;
    b->open = false;
}

static void let_go(struct batch *b)
{
    struct temp_buffer *l = b->temp_buffers;

    pthread_mutex_lock(&b->session->lock);
    while (l) {
        struct temp_buffer *next = l->of_batch;
        temp_buffer_abandon(b->worker_session, l);
        buffer_unref(&l->buffer);
        l = next;
    }
    if (b->module)
        module_unref(b->module);
    batch_settle(b);
    worker_session_unref(b->worker_session);
    pthread_mutex_unlock(&b->session->lock);
}

static void free_parts(struct batch *b)
{
    for (unsigned i = 0; (b->kinds[BATCH_READ] || b->holds_text) && b->results && i < b->spec->ops_count; i++) {
        free(b->results[i].output);
        free(b->results[i].data);
    }
    table_finish(&b->names);
    free(b->name_items);
    free(b->targets);
    free(b->results);
    free(b->events);
    free(b->kept);
    free(b->later);
    free(b->calls);
    free(b->flights);
    free(b->list.items);
    free(b->listed);
    free(b->groups);
    pthread_cond_destroy(&b->landed);
    pthread_mutex_destroy(&b->clock.lock);
    pthread_mutex_destroy(&b->lock);
}

void batch_destroy(struct batch *b)
{
    struct session *s;

    if (!b)
        return;
    assert(!b->begun);
    s = b->session;
    for (unsigned i = 0; b->targets && i < b->spec->segments_count; i++)
        transfer_destroy(b->targets[i].transfer);
    for (unsigned i = 0; b->calls_count && i < b->spec->ops_count; i++)
        builtin_close(b->worker_session, b->calls[i]);
    let_go(b);
    free_parts(b);
    free(b);
    session_unpin(s, true);
}
