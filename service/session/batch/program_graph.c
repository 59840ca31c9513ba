/* The graphs of a program: made when it is prepared; a run sends what differs from the run before, which often is nothing. */
#include <stdlib.h>

#include "ipc/command_list.h"
#include "session/batch/program_internal.h"
#include "session/bounds.h"

/* All launches of a list, each with as many parameters as there may be, and the state before them. */
enum { LIST_BYTES_MAX = RUN_ITEMS_MAX * (sizeof(struct run_entry) + offsetof(struct msg_launch, params) + GRAPH_PARAM_BYTES_MAX + 8) };

static_assert(LIST_BYTES_MAX + sizeof(struct run_state) <= 2 * STAGING_SLICE_BYTES, "a graph's list fits two pieces of staging memory");

bool program_graphable(const struct batch_item *item)
{
    struct msg_launch m;

    if (item->message != MESSAGE_LAUNCH)
        return false;
    memcpy(&m, item->launch, sizeof item->launch);
    return !m.cooperative && item->module->table.kernels[m.kernel].params_bytes <= GRAPH_PARAM_BYTES_MAX;
}

/* The same bytes for the same launch, whichever run it is of. */
static enum status encode_one(struct batch *b, unsigned i, struct command_list *l, struct problem *why)
{
    static _Thread_local struct batch_order o; /* 33 KiB */
    const struct batch_item                *item = &b->list.items[i];
    struct msg_launch                      *m = &o.body.launch;
    enum status                             st;

    o.op = item->op;
    o.message = MESSAGE_LAUNCH;
    o.module = item->module;
    memcpy(m, item->launch, sizeof item->launch);
    st = batch_item_address(b, item, &o, why);
    if (st)
        return batch_set_failed_op(why, st, item->op, item->op);
    m->tag = i;
    m->timeout_ms = 0;
    if (!command_list_add(l, MESSAGE_LAUNCH, m, message_bytes(MESSAGE_LAUNCH), m->params, m->params_bytes))
        return problem_set(why, STATUS_INTERNAL, "a list of launches does not fit its room");
    return STATUS_OK;
}

static enum status encode(struct batch *b, struct command_list *l, struct problem *why)
{
    enum status st = STATUS_OK;

    for (unsigned i = 0; i < b->list.count && !st; i++)
        st = encode_one(b, i, l, why);
    return st;
}

static struct program *program_of(const struct batch *b)
{
    return b->spec->program;
}

size_t program_scratch_bytes(void)
{
    return LIST_BYTES_MAX;
}

static struct command_list scratch_list(struct program *p)
{
    return (struct command_list){.at = p->scratch, .room = LIST_BYTES_MAX};
}

/* ---- making ---- */

static enum status address_whole(struct batch *b, struct batch_order *o, struct problem *why)
{
    struct program     *p = program_of(b);
    struct command_list l = scratch_list(p);
    enum status         st = encode(b, &l, why);

    o->nothing = true;
    o->body.graph_create = (struct msg_graph_create){l.count, {o->slice.ref.offset, l.bytes}};
    if (!st)
        memcpy(o->slice.data, p->scratch, l.bytes);
    return st;
}

static enum status keep(const struct batch *b, const struct msg_graph_create *m, uint32_t number, struct problem *why)
{
    struct program       *p = program_of(b);
    struct program_graph *g = &p->graphs[p->graphs_count];
    unsigned char        *held = malloc(m->list.bytes);

    if (!held)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a program");
    memcpy(held, p->scratch, m->list.bytes);
    *g = (struct program_graph){.number = number,
                                .stream = b->list.stream,
                                .first = b->list.items[0].op,
                                .end = b->list.items[b->list.count - 1].op + 1,
                                .held = held,
                                .bytes = m->list.bytes,
                                .count = m->count};
    p->graphs_count++;
    return STATUS_OK;
}

/* Behind all earlier work, however long that takes. */
static void destroy(struct worker_session *c, uint32_t number)
{
    worker_graph_destroy(c->worker, &(struct msg_graph_destroy){number}, NULL, DEADLINE_NEVER, NULL);
}

static enum status make(struct batch *b, struct batch_order *o, struct problem *why)
{
    struct worker_session        *c = b->worker_session;
    struct msg_graph_create_reply got;
    enum status                   st = batch_submit(b, o, address_whole, why);

    if (st)
        return st;
    st = worker_graph_create(c->worker, &o->body.graph_create, &got, deadline_after_ms(WORKER_CALL_DEADLINE_MS), why);
    if (st)
        return st;
    st = keep(b, &o->body.graph_create, got.graph, why);
    if (st)
        destroy(c, got.graph);
    return st;
}

/* ---- running ---- */

/* Puts what differs into `to`, and into what is held. Both lists have the same entries of the same lengths. */
static uint32_t differences(struct program_graph *g, const unsigned char *fresh, unsigned char *to, size_t *bytes)
{
    uint32_t n = 0;
    size_t   entry;

    *bytes = 0;
    if (!g->stale && memcmp(g->held, fresh, g->bytes) == 0)
        return 0;
    for (size_t at = 0; at < g->bytes; at += entry) {
        struct run_entry head;

        memcpy(&head, fresh + at, sizeof head);
        entry = sizeof head + (head.bytes + 7u) / 8 * 8;
        if (!g->stale && memcmp(g->held + at, fresh + at, entry) == 0)
            continue;
        memcpy(to + *bytes, fresh + at, entry);
        *bytes += entry;
        n++;
    }
    memcpy(g->held, fresh, g->bytes);
    return n;
}

static bool replaces_nothing(const struct batch *b)
{
    return b->spec->ops == program_of(b)->text->spec.ops;
}

/* Which is looked up and checked for each run. */
static bool has_builtin(const struct batch *b)
{
    bool has = false;

    for (unsigned i = 0; i < b->list.count; i++)
        has = has || b->calls[b->list.items[i].op];
    return has;
}

static enum status address_changes(struct batch *b, struct batch_order *o, struct problem *why)
{
    struct program       *p = program_of(b);
    struct program_graph *g = &p->graphs[b->graph_next];
    struct msg_graph_run *m = &o->body.graph_run;
    struct command_list   l = scratch_list(p);
    const size_t          head = sizeof(struct run_state);
    enum status           st = encode(b, &l, why);
    size_t                bytes;

    if (!st && (l.count != g->count || l.bytes != g->bytes))
        st = problem_set(why, STATUS_INTERNAL, "a run differs from its program");
    if (st)
        return st;
    m->count = differences(g, p->scratch, o->slice.data + head, &bytes);
    g->stale = false;
    g->fixed = replaces_nothing(b) && !has_builtin(b);
    g->names = b->worker_session->names_ended;
    m->list = (struct shm_ref){o->slice.ref.offset + head, bytes};
    m->state = (struct shm_ref){o->slice.ref.offset, head};
    o->count = b->list.count;
    o->first = b->listed_count;
    for (unsigned i = 0; i < o->count; i++)
        b->listed[o->first + i] = b->list.items[i].op;
    return STATUS_OK;
}

static enum status run(struct batch *b, struct batch_order *o, struct problem *why)
{
    struct msg_graph_run *m = &o->body.graph_run;
    enum status           st = batch_time_left(b, &m->timeout_ms, why);

    m->stream = b->list.stream;
    m->graph = program_of(b)->graphs[b->graph_next].number;
    return st ? st : batch_submit(b, o, address_changes, why);
}

bool program_is_one_graph(const struct program *p)
{
    return p->graphs_count == 1 && p->graphs[0].first == 0 && p->graphs[0].end == p->text->spec.ops_count;
}

const struct program_graph *program_graph_fixed(const struct batch *b, unsigned op)
{
    const struct program       *p = program_of(b);
    const struct program_graph *g = &p->graphs[b->graph_next];

    if (b->preparing || b->graph_next >= p->graphs_count || g->first != op || !replaces_nothing(b))
        return NULL;
    return g->fixed && !g->stale ? g : NULL;
}

static void list_launches(struct batch *b, const struct program_graph *g)
{
    unsigned n = 0;

    for (unsigned i = g->first; i < g->end; i++)
        if (b->spec->ops[i].kind == BATCH_LAUNCH)
            b->listed[b->listed_count + n++] = i;
    assert(n == g->count);
}

static enum status address_nothing(struct batch *b, struct batch_order *o, struct problem *why)
{
    const struct program_graph *g = &program_of(b)->graphs[b->graph_next];
    const size_t                head = sizeof(struct run_state);

    (void)why;
    o->nothing = g->names != b->worker_session->names_ended;
    o->body.graph_run.list = (struct shm_ref){o->slice.ref.offset + head, 0};
    o->body.graph_run.state = (struct shm_ref){o->slice.ref.offset, head};
    return STATUS_OK;
}

enum status program_graph_repeat(struct batch *b, const struct program_graph *g, struct slice *state, bool *sent, struct problem *why)
{
    struct batch_order    o;
    struct msg_graph_run *m = &o.body.graph_run;
    enum status           st;

    assert(b->list.count == 0);
    batch_order_init(&o, g->first, MESSAGE_GRAPH_RUN);
    st = batch_time_left(b, &m->timeout_ms, why);
    m->stream = o.stream = g->stream;
    m->graph = g->number;
    o.slice = *state;
    o.first = b->listed_count;
    o.count = g->count;
    list_launches(b, g);
    if (!st)
        st = batch_submit(b, &o, address_nothing, why);
    *sent = !st && !o.nothing;
    if (*sent)
        b->graph_next++;
    else
        staging_give(b->worker_session->worker, state);
    return batch_set_failed_op(why, st, g->first, g->first);
}

enum status program_graph_send(struct batch *b, struct problem *why)
{
    struct program    *p = program_of(b);
    struct batch_order o;
    enum status        st = b->preparing ? (p->graphs_count < GRAPHS_PER_PROGRAM_MAX ? STATUS_OK : STATUS_INTERNAL)
                                         : (b->graph_next < p->graphs_count ? STATUS_OK : STATUS_INTERNAL);

    if (st)
        return problem_set(why, st, "a run differs from its program");
    batch_order_init(&o, b->list.items[0].op, MESSAGE_GRAPH_RUN);
    o.stream = b->list.stream;
    st = batch_staging(b, 2 * STAGING_SLICE_BYTES, &o.slice, why);
    if (st)
        return st;
    st = b->preparing ? make(b, &o, why) : run(b, &o, why);
    if (st || b->preparing)
        staging_give(b->worker_session->worker, &o.slice);
    b->graph_next++;
    return st;
}

void program_graphs_doubt(struct program *p)
{
    for (unsigned i = 0; i < p->graphs_count; i++)
        p->graphs[i].stale = true;
}

void program_graphs_end(struct program *p)
{
    for (unsigned i = 0; i < p->graphs_count; i++)
        destroy(p->worker_session, p->graphs[i].number);
}

void program_graphs_free(struct program *p)
{
    for (unsigned i = 0; i < p->graphs_count; i++)
        free(p->graphs[i].held);
    p->graphs_count = 0;
}
