/* Does a batch's operations: each becomes a call or two, given to the worker without waiting for those before it, except where the
 * host needs a result. */
#include <inttypes.h>
#include <stdlib.h>

#include "ipc/command_list.h"
#include "session/batch/program_internal.h"
#include "session/launch/builtin.h"

static enum status no_buffer(const char *pointer, struct problem *why)
{
    return problem_field(why, STATUS_BUFFER_NOT_FOUND, pointer, "not_found",
                         "neither the batch nor the session has a buffer with this name");
}

static const struct batch_op *op_of(const struct batch *b, const struct batch_order *o)
{
    return &b->spec->ops[o->op];
}

/* A call that was waited for: a fault in it is the session's. */
enum status batch_noted(struct worker_session *c, enum status st, const struct problem *why)
{
    if (!st || !worker_session_use(c))
        return st;
    return worker_session_leave_with(c, st, why);
}

/* ---- copies and fills ---- */

/* The rest of the buffer behind `offset`, or what was asked for. */
static enum status extent(const struct buffer *buffer, uint64_t offset, const struct batch_op *op, uint64_t *bytes, struct problem *why)
{
    uint64_t rest = offset < buffer->bytes ? buffer->bytes - offset : 0;

    if (!op->has_bytes)
        *bytes = rest < *bytes ? rest : *bytes;
    return range_check(buffer, offset, op->has_bytes ? op->bytes : 0, why);
}

static enum status address_copy(struct batch *b, struct batch_order *o, struct problem *why)
{
    const struct batch_op *op = op_of(b, o);
    struct buffer         *to = batch_buffer(b, op->to);
    struct buffer         *from = batch_buffer(b, op->from);
    uint64_t               bytes = op->has_bytes ? op->bytes : UINT64_MAX;
    enum status            st;

    if (!to || !from)
        return no_buffer(to ? "/from" : "/to", why);
    st = extent(to, op->offset, op, &bytes, why);
    if (!st)
        st = extent(from, op->from_offset, op, &bytes, why);
    if (!st && to == from && op->offset < op->from_offset + bytes && op->from_offset < op->offset + bytes)
        st = problem_field(why, STATUS_INVALID_FIELD, "/from_offset", "overlap", "the ranges overlap");
    o->body.mem_copy = (struct msg_mem_copy){0, to->address + op->offset, from->address + op->from_offset, bytes};
    o->nothing = bytes == 0;
    return st;
}

/* From where the segment was put when it came. */
static enum status address_write(struct batch *b, struct batch_order *o, struct problem *why)
{
    const struct batch_op     *op = op_of(b, o);
    const struct batch_target *t = &b->targets[op->segment];
    struct buffer             *to = batch_buffer(b, op->to);
    uint64_t                   bytes = b->spec->segments[op->segment];

    if (!to)
        return no_buffer("/to", why);
    o->body.mem_copy = (struct msg_mem_copy){0, to->address + op->offset, t->temp ? t->temp->buffer.address : 0, bytes};
    o->nothing = bytes == 0;
    return range_check(to, op->offset, bytes, why);
}

static enum status address_fill(struct batch *b, struct batch_order *o, struct problem *why)
{
    const struct batch_op *op = op_of(b, o);
    struct buffer         *to = batch_buffer(b, op->to);
    uint64_t               bytes = op->has_bytes ? op->bytes : UINT64_MAX;
    enum status            st;

    if (!to)
        return no_buffer("/to", why);
    st = buffer_fill_check(to, why);
    if (!st)
        st = extent(to, op->offset, op, &bytes, why);
    if (!st)
        st = pattern_check(op->offset, bytes, op->pattern_bytes, why);
    o->body.mem_fill = (struct msg_mem_fill){
        .pattern_bytes = op->pattern_bytes, .to = to->address + op->offset, .pattern = op->pattern, .count = bytes / op->pattern_bytes};
    o->nothing = bytes == 0;
    return st;
}

/* Of the default stream, which is the one of everything but launches and events. */
static enum status list_transfer(struct batch *b, unsigned i, enum message m, struct problem *why)
{
    return command_batch_add(b, 0, &(struct batch_item){.op = i, .message = m}, why);
}

static enum status run_write(struct batch *b, unsigned i, struct problem *why)
{
    if (b->spec->program)
        return list_transfer(b, i, MESSAGE_MEM_COPY, why);
    return b->targets[b->spec->ops[i].segment].direct ? STATUS_OK : list_transfer(b, i, MESSAGE_MEM_COPY, why);
}

/* ---- reads ---- */

/* What is not handed out yet of a READ. */
static enum status address_read(struct batch *b, struct batch_order *o, struct problem *why)
{
    const struct batch_op     *op = op_of(b, o);
    const struct batch_result *r = &b->results[o->op];
    const struct buffer       *from = batch_buffer(b, op->from);
    uint64_t                   done = (uint64_t)(o->to - r->data);

    if (!from)
        return no_buffer("/from", why);
    o->body.mem_read.from = from->address + op->offset + done;
    return range_check(from, op->offset, r->data_bytes, why);
}

static enum status read_bytes(struct batch *b, const struct batch_op *op, uint64_t *bytes, struct problem *why)
{
    struct session      *s = b->session;
    const struct buffer *from;
    enum status          st;

    *bytes = op->has_bytes ? op->bytes : UINT64_MAX;
    pthread_mutex_lock(&s->lock);
    from = batch_buffer(b, op->from);
    st = from ? extent(from, op->offset, op, bytes, why) : no_buffer("/from", why);
    pthread_mutex_unlock(&s->lock);
    if (!st && *bytes > b->spec->answer_bytes_max - b->answer_bytes && !b->spec->answer_streams)
        st = problem_limit(why, STATUS_BODY_TOO_LARGE, b->spec->answer_limit, b->spec->answer_bytes_max, b->answer_bytes, *bytes);
    return st;
}

/* A buffer that is not there yet is looked at when its READ runs. */
enum status batch_check_reads(struct batch *b, struct problem *why)
{
    enum status st = STATUS_OK;

    for (unsigned i = 0; b->kinds[BATCH_READ] && i < b->spec->ops_count && !st && !b->spec->answer_streams; i++) {
        const struct batch_op *op = &b->spec->ops[i];
        struct problem         late;
        uint64_t               bytes;

        if (op->kind != BATCH_READ)
            continue;
        st = read_bytes(b, op, &bytes, &late);
        if (!st)
            b->answer_bytes += bytes;
        else if (st == STATUS_BODY_TOO_LARGE)
            *why = late;
        else
            st = STATUS_OK;
        batch_set_failed_op(why, st, i, 0);
    }
    b->answer_bytes = 0;
    return st;
}

static enum status read_piece(struct batch *b, unsigned i, size_t at, struct problem *why)
{
    struct batch_result *r = &b->results[i];
    struct batch_order   o;
    size_t               bytes = r->data_bytes - at < STAGING_SLICE_BYTES ? r->data_bytes - at : STAGING_SLICE_BYTES;
    enum status          st;

    batch_order_init(&o, i, MESSAGE_MEM_READ);
    o.to = r->data + at;
    st = batch_staging(b, bytes, &o.slice, why);
    if (st)
        return st;
    o.body.mem_read = (struct msg_mem_read){.to = {o.slice.ref.offset, bytes}};
    st = batch_submit(b, &o, address_read, why);
    if (st)
        staging_give(b->worker_session->worker, &o.slice);
    return st;
}

static enum status run_read(struct batch *b, unsigned i, struct problem *why)
{
    struct batch_result *r = &b->results[i];
    uint64_t             bytes;
    enum status          st = command_batch_send(b, why);

    if (!st)
        st = read_bytes(b, &b->spec->ops[i], &bytes, why);
    if (st || b->preparing)
        return st;
    if (bytes > b->spec->answer_bytes_max - b->answer_bytes)
        return batch_noted(b->worker_session, batch_read_later(b, i, bytes, why), why);
    r->data = malloc(bytes ? (size_t)bytes : 1);
    if (!r->data)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the bytes to read");
    r->data_bytes = (size_t)bytes;
    b->answer_bytes += bytes;
    for (size_t at = 0; at < r->data_bytes && !st; at += STAGING_SLICE_BYTES)
        st = read_piece(b, i, at, why);
    return st;
}

/* ---- launches ---- */

static bool where(void *context, struct span name, uint64_t *address, uint64_t *bytes)
{
    struct batch *b = context;

    return buffer_where_is(b->worker_session, batch_buffer(b, name), name, address, bytes);
}

/* Referenced: the reference keeps it from being unloaded until the call is on its way. */
static struct module *module_of(struct batch *b, unsigned op, enum status *st, struct problem *why)
{
    const struct launch_spec *spec = b->spec->ops[op].launch;
    struct session           *s = b->session;
    struct span               id = spec->module.bytes ? spec->module : b->spec->module;
    struct module            *m = spec->module.bytes ? NULL : b->module;

    pthread_mutex_lock(&s->lock);
    if (b->calls[op])
        m = b->calls[op]->module;
    else if (b->spec->program)
        m = b->spec->program->modules[op];
    if (m)
        m->refs++;
    else if (id.bytes)
        *st = module_find(b->worker_session, id, &m, why);
    else
        *st = problem_field(why, STATUS_INVALID_FIELD, "/module", "required", "module is required in the launch or in the batch");
    pthread_mutex_unlock(&s->lock);
    return m;
}

static enum status pack(struct batch *b, struct batch_order *o, struct module *m, struct problem *why)
{
    const struct builtin_call *call = b->calls[o->op];
    const struct launch_spec  *spec = call ? &call->spec : op_of(b, o)->launch;
    struct msg_launch         *msg = &o->body.launch;
    struct packed              packed;
    enum status                st = call ? builtin_check(call, where, b, why) : STATUS_OK;

    if (!st)
        st = params_pack(&m->table.kernels[msg->kernel], spec, where, b, &packed, why);
    if (st)
        return st;
    msg->params_bytes = packed.bytes;
    memcpy(msg->params, packed.data, packed.bytes);
    msg->tag = ++b->worker_session->launch_number;
    return STATUS_OK;
}

static enum status address_launch(struct batch *b, struct batch_order *o, struct problem *why)
{
    return pack(b, o, o->module, why);
}

enum status batch_time_left(const struct batch *b, uint64_t *ms, struct problem *why)
{
    uint64_t left = deadline_left_ns(b->deadline_ns);

    if (left == 0)
        return problem_set(why, STATUS_EXECUTION_TIMEOUT, "the batch timed out before this operation");
    *ms = left / NS_PER_MS + 1;
    return STATUS_OK;
}

/* A kernel that may print goes alone, so that it is known what it printed. */
static enum status launch_alone(struct batch *b, unsigned i, struct module *m, const struct msg_launch *msg, struct problem *why)
{
    struct batch_order o;
    enum status        st = command_batch_send(b, why);

    batch_order_init(&o, i, MESSAGE_LAUNCH);
    o.module = m;
    o.stream = msg->stream;
    memcpy(&o.body.launch, msg, offsetof(struct msg_launch, params));
    return st ? st : batch_submit(b, &o, address_launch, why);
}

/* Takes the reference over, on failure too. */
static enum status launch_listed(struct batch *b, unsigned i, struct module *m, const struct msg_launch *msg, struct problem *why)
{
    struct batch_item item = {.op = i, .message = MESSAGE_LAUNCH, .module = m};

    memcpy(item.launch, msg, sizeof item.launch);
    return command_batch_add(b, msg->stream, &item, why);
}

static enum status describe_launch(struct batch *b, unsigned i, struct module *m, struct msg_launch *msg, struct problem *why)
{
    const struct batch_op *op = &b->spec->ops[i];
    enum status            st = batch_time_left(b, &msg->timeout_ms, why);

    if (st)
        return st;
    msg->of_batch = 1;
    st = launch_configure(b->worker_session, m, b->calls[i] ? &b->calls[i]->spec : op->launch, msg, why);
    if (!st)
        st = stream_number(b->worker_session, op->stream, &msg->stream, why);
    return batch_noted(b->worker_session, st, why);
}

/* Takes the module's reference over, on failure too: it goes with the list, so that session.lock is taken once for a launch. */
static enum status launch_with(struct batch *b, unsigned i, struct module *m, struct problem *why)
{
    struct msg_launch msg; /* its parameters come when it is sent */
    enum status       st;

    memset(&msg, 0, offsetof(struct msg_launch, params));
    st = describe_launch(b, i, m, &msg, why);
    if (!st && !m->table.prints)
        return launch_listed(b, i, m, &msg, why);
    if (!st)
        st = launch_alone(b, i, m, &msg, why);
    pthread_mutex_lock(&b->session->lock);
    module_unref(m);
    pthread_mutex_unlock(&b->session->lock);
    return st;
}

static enum status run_launch(struct batch *b, unsigned i, struct problem *why)
{
    enum status    st = b->spec->ops[i].launch->dtype.bytes ? batch_builtin_open(b, i, why) : STATUS_OK;
    struct module *m = st ? NULL : module_of(b, i, &st, why);

    return st ? st : launch_with(b, i, m, why);
}

/* ---- making and freeing buffers in the middle ---- */

static enum status run_alloc(struct batch *b, unsigned i, struct problem *why)
{
    const struct batch_op *op = &b->spec->ops[i];
    enum status            st;

    if (b->spec->program && op->segment != BATCH_NO_SEGMENT)
        return list_transfer(b, i, MESSAGE_MEM_COPY, why);
    if (batch_name_of(b, op->to)->temp)
        return STATUS_OK;
    st = command_batch_send(b, why);
    if (st)
        return st;
    /* What was freed before is to be there for it. */
    for (struct temp_buffer *l = b->temp_buffers; l; l = l->of_batch)
        temp_buffer_await(b->worker_session, l);
    return batch_noted(b->worker_session, batch_allocate(b, op, why), why);
}

/* Behind everything that was submitted before, which the worker sees to. */
static enum status run_free(struct batch *b, unsigned i, struct problem *why)
{
    const struct batch_op *op = &b->spec->ops[i];
    struct batch_name     *own = batch_name_of(b, op->to);
    enum status            st = b->spec->program ? STATUS_OK : command_batch_send(b, why);

    if (st || b->spec->program) /* whose buffers live as long as it does */
        return st;
    if (!span_starts(op->to, "$"))
        return buffer_delete(b->session, op->to, NULL, why);
    if (!own || !own->temp)
        return no_buffer("/buf", why);
    pthread_mutex_lock(&b->session->lock);
    temp_buffer_abandon(b->worker_session, own->temp);
    own->temp = NULL;
    pthread_mutex_unlock(&b->session->lock);
    temp_buffer_free_some(b->worker_session);
    return STATUS_OK;
}

/* ---- all ---- */

enum status batch_item_address(struct batch *b, const struct batch_item *item, struct batch_order *o, struct problem *why)
{
    switch (b->spec->ops[item->op].kind) {
    case BATCH_COPY:
        return address_copy(b, o, why);
    case BATCH_ALLOC: /* of a program: its contents come with every run */
    case BATCH_WRITE:
        return address_write(b, o, why);
    case BATCH_FILL:
        return address_fill(b, o, why);
    case BATCH_LAUNCH:
        return address_launch(b, o, why);
    case BATCH_RECORD:
        o->body.event_record = (struct msg_event_record){b->list.stream, item->event};
        return STATUS_OK;
    case BATCH_WAIT:
        o->body.event_wait = (struct msg_event_wait){b->list.stream, item->event};
        return STATUS_OK;
    case BATCH_READ:
    case BATCH_FREE:
    case BATCH_ELAPSED:
    case BATCH_SYNC:
        break;
    }
    return problem_set(why, STATUS_INTERNAL, "the operation cannot be part of a command list");
}

static enum status run_copy(struct batch *b, unsigned i, struct problem *why)
{
    return list_transfer(b, i, MESSAGE_MEM_COPY, why);
}

static enum status run_fill(struct batch *b, unsigned i, struct problem *why)
{
    return list_transfer(b, i, MESSAGE_MEM_FILL, why);
}

typedef enum status run_one(struct batch *b, unsigned i, struct problem *why);

static run_one *const runs[] = {
    [BATCH_ALLOC] = run_alloc,     [BATCH_WRITE] = run_write,           [BATCH_COPY] = run_copy,
    [BATCH_FILL] = run_fill,       [BATCH_LAUNCH] = run_launch,         [BATCH_READ] = run_read,
    [BATCH_FREE] = run_free,       [BATCH_RECORD] = batch_run_record,   [BATCH_WAIT] = batch_run_wait,
    [BATCH_SYNC] = batch_run_sync, [BATCH_ELAPSED] = batch_run_elapsed,
};

static run_one *run_of(enum batch_kind kind)
{
    assert((size_t)kind < COUNT(runs) && runs[kind]);
    return runs[kind];
}

/* The launches from i on that are a graph in which the run changes nothing: *next is behind them, or i when there are none. */
static enum status run_graph(struct batch *b, unsigned i, unsigned *next, struct problem *why)
{
    const struct program_graph *g = b->spec->program ? program_graph_fixed(b, i) : NULL;
    struct slice                state;
    bool                        sent = false;
    enum status                 st = g ? command_batch_send(b, why) : STATUS_OK;

    if (!st && g)
        st = batch_staging(b, sizeof(struct run_state), &state, why);
    if (!st && g)
        st = program_graph_repeat(b, g, &state, &sent, why);
    *next = sent ? g->end : i;
    return st;
}

static enum status run_next(struct batch *b, unsigned i, unsigned *next, struct problem *why)
{
    enum status st = batch_still_wanted(b, why);

    if (!st)
        st = run_graph(b, i, next, why);
    if (!st && *next > i)
        return st;
    *next = i + 1;
    return st ? st : run_of(b->spec->ops[i].kind)(b, i, why);
}

/* What is still under way at the end of the operations, of which those before `next` were tried. */
static enum status end_ops(struct batch *b, enum status st, unsigned next, struct problem *why)
{
    batch_drain(b);
    device_events_give(b->worker_session, b->events, b->events_count);
    b->events_count = 0;
    b->done = b->failed ? b->completed : st && next ? next - 1 : next;
    if (b->given_up)
        return problem_set(why, STATUS_CANCELLED, "the client has disconnected");
    /* The first that failed, even if a later one was refused before we heard of it. */
    return b->failed ? batch_failure(b, why) : st;
}

static enum status run_ops(struct batch *b, struct problem *why)
{
    enum status st = STATUS_OK;
    unsigned    next = 0;

    for (unsigned i = 0; i < b->spec->ops_count && !st; i = next) {
        st = run_next(b, i, &next, why);
        batch_set_failed_op(why, st, i, i);
    }
    if (!st)
        st = command_batch_send(b, why);
    command_batch_drop(b);
    return end_ops(b, st, next, why);
}

static enum status keep(struct batch *b, struct problem *why)
{
    struct session *s = b->session;
    enum status     st;

    pthread_mutex_lock(&s->lock);
    st = worker_session_still_usable(b->worker_session, why);
    for (unsigned i = 0; i < b->spec->keep_count && !st; i++) {
        struct batch_name *n = batch_name_of(b, b->spec->keep[i]);
        st = n && n->temp ? temp_buffer_keep(b->worker_session, n->temp, why) : no_buffer("/keep", why);
        if (!st)
            b->kept[i] = n->temp;
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* One run of a program at a time: they share its buffers. */
static enum status run_program(struct batch *b, struct problem *why)
{
    struct program *p = b->spec->program;
    enum status     st = program_enter(p, why);

    if (st)
        return st;
    st = run_ops(b, why);
    if (st)
        program_graphs_doubt(p);
    program_leave(p, true);
    return st;
}

uint64_t batch_deadline_ns(const struct batch *b)
{
    return deadline_after_ms(b->spec->timeout_ms ? b->spec->timeout_ms : EXECUTION_TIMEOUT_MS_DEFAULT);
}

/* Milliseconds since then; *start is now. */
static double lap_ms(uint64_t *start)
{
    uint64_t before = *start;

    *start = now_ns();
    return (double)(*start - before) / (double)NS_PER_MS;
}

static enum status run_all(struct batch *b, struct problem *why)
{
    uint64_t    start = now_ns();
    double      compiled_ms = b->times.compile_ms;
    enum status st = batch_finish_uploads(b, why);

    b->times.upload_ms = lap_ms(&start);
    if (!st)
        st = worker_session_wait_order(b->worker_session, why);
    b->times.queue_ms = lap_ms(&start);
    if (st)
        return st;
    b->deadline_ns = batch_deadline_ns(b);
    st = b->spec->program ? run_program(b, why) : run_ops(b, why);
    b->times.run_ms = lap_ms(&start) - (b->times.compile_ms - compiled_ms);
    return st ? st : keep(b, why);
}

/* Of a run that has begun and landed. */
static enum status end_begun(struct batch *b, struct problem *why)
{
    struct program *p = b->spec->program;
    uint64_t        start = b->began_ns;
    enum status     st = end_ops(b, STATUS_OK, b->spec->ops_count, why);

    if (st)
        program_graphs_doubt(p);
    program_leave(p, true);
    b->begun = false;
    b->times.run_ms = lap_ms(&start);
    return st ? st : keep(b, why);
}

/* ---- the module ---- */

static bool module_room(const struct problem *why)
{
    return strcmp(why->limit_name, "modules") == 0 || strcmp(why->limit_name, "module_code_bytes") == 0;
}

static void unload_all(struct session *s)
{
    char        ids[16][ID_BYTES];
    struct page page = {.limit = COUNT(ids)};
    unsigned    n;

    while ((n = module_list(s, &page, ids)) > 0)
        for (unsigned i = 0; i < n; i++)
            if (module_delete(s, span_of(ids[i]), NULL) != STATUS_OK)
                return;
}

enum status batch_make_module(struct worker_session *c, const struct module_spec *source, struct arena *arena, struct module **out,
                              struct problem *why)
{
    bool        created;
    enum status st = module_create(c->session, source, arena, out, &created, why);

    if (st) {
        problem_within(why, "/module");
        *out = NULL;
        return st;
    }
    if ((*out)->worker_session == c)
        return STATUS_OK;
    return problem_set(why, STATUS_SESSION_BUSY, "the session was reset or deleted during the request");
}

static enum status get_module(struct batch *b, struct arena *arena, struct problem *why)
{
    uint64_t    start = now_ns();
    enum status st = batch_make_module(b->worker_session, b->spec->source, arena, &b->module, why);

    if (st == STATUS_QUOTA_EXCEEDED && b->spec->evict && module_room(why)) {
        unload_all(b->session);
        st = batch_make_module(b->worker_session, b->spec->source, arena, &b->module, why);
    }
    b->times.compile_ms = (double)(now_ns() - start) / (double)NS_PER_MS;
    if (b->module)
        span_copy(span_of(b->module->entry.id), b->module_id, sizeof b->module_id);
    return st;
}

enum status batch_run(struct batch *b, struct arena *arena, struct problem *why)
{
    struct worker_session *c = b->worker_session;
    enum status            st = STATUS_OK;

    if (b->spec->source && !b->begun)
        st = get_module(b, arena, why);
    if (!b->begun && !worker_session_use(c))
        return st ? st : problem_set(why, STATUS_SESSION_BUSY, "the session was reset or deleted during the request");
    if (!st)
        st = b->begun ? end_begun(b, why) : run_all(b, why);
    b->succeeded = !st;
    batch_measure(b, st);
    batch_publish(b);
    batch_release(b);
    pthread_mutex_lock(&b->session->lock);
    batch_settle(b);
    pthread_mutex_unlock(&b->session->lock);
    worker_session_leave(c);
    return st;
}

enum status batch_prepare(struct batch *b, struct problem *why)
{
    struct worker_session *c = b->worker_session;
    enum status            st;

    if (!worker_session_use(c))
        return problem_set(why, STATUS_SESSION_BUSY, "the session was reset or deleted during the request");
    b->deadline_ns = deadline_after_ms(EXECUTION_TIMEOUT_MS_MAX);
    st = run_ops(b, why);
    worker_session_leave(c);
    return st;
}
