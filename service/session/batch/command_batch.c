/* Collects operations of a batch that follow each other on one stream, and gives them to the worker in one message: a list in staging
 * memory. What is alone goes as the message that it is. Launches of a session are not put together so: each can be cancelled while it waits, and has
 * a deadline of its own. */
#include "ipc/command_list.h"
#include "session/batch/program_internal.h"

void command_batch_drop(struct batch *b)
{
    pthread_mutex_lock(&b->session->lock);
    for (unsigned i = 0; i < b->list.count; i++)
        if (b->list.items[i].module)
            module_unref(b->list.items[i].module);
    pthread_mutex_unlock(&b->session->lock);
    b->list.count = 0;
}

/* ---- sending ---- */

static void start_of(const struct batch_item *item, struct batch_order *o)
{
    o->op = item->op;
    o->message = item->message;
    o->module = item->module;
    o->nothing = false;
    if (item->message == MESSAGE_LAUNCH)
        memcpy(&o->body.launch, item->launch, sizeof item->launch);
}

static enum status address_item(struct batch *b, struct batch_order *o, struct problem *why)
{
    return batch_item_address(b, &b->list.items[0], o, why);
}

static enum status send_alone(struct batch *b, struct problem *why)
{
    struct batch_order o;

    batch_order_init(&o, 0, MESSAGE_LAUNCH);
    o.stream = b->list.stream;
    start_of(&b->list.items[0], &o);
    return batch_submit(b, &o, address_item, why);
}

/* Appends one item. False: it has no place in the slice any more. */
static bool encode(struct command_list *l, const struct batch_order *o)
{
    const struct msg_launch *launch = &o->body.launch;

    if (o->message != MESSAGE_LAUNCH)
        return command_list_add(l, o->message, &o->body, message_bytes(o->message), NULL, 0);
    return command_list_add(l, o->message, launch, message_bytes(MESSAGE_LAUNCH), launch->params, launch->params_bytes);
}

/* As many as there is place for, from the first one not yet sent. What fails is reported when those before it were sent. */
static enum status address_list(struct batch *b, struct batch_order *list, struct problem *why)
{
    static _Thread_local struct batch_order o; /* 33 KiB */
    struct command_batch                   *of = &b->list;
    const size_t                            head = sizeof(struct run_state);
    struct command_list                     l = {.at = list->slice.data + head, .room = list->slice.ref.bytes - head};
    bool                                    room = true;

    list->count = 0;
    list->first = b->listed_count;
    of->failed = STATUS_OK;
    for (unsigned i = list->op; i < of->count && room && !of->failed; i++) {
        start_of(&of->items[i], &o);
        of->failed = batch_item_address(b, &of->items[i], &o, &of->why);
        if (of->failed)
            of->failed = batch_set_failed_op(&of->why, of->failed, of->items[i].op, of->items[i].op);
        else
            room = o.nothing || encode(&l, &o);
        if (!of->failed && room && !o.nothing)
            b->listed[list->first + list->count++] = of->items[i].op;
        if (!of->failed && room)
            list->tried = i + 1;
    }
    list->nothing = list->count == 0;
    list->body.command_list.count = l.count;
    list->body.command_list.list = (struct shm_ref){list->slice.ref.offset + head, l.bytes};
    list->body.command_list.state = (struct shm_ref){list->slice.ref.offset, head};
    (void)why;
    return STATUS_OK;
}

/* One slice full of items from `from` on; *next is the first one that had no place. */
static enum status send_some(struct batch *b, unsigned from, unsigned *next, struct problem *why)
{
    struct batch_order o;
    enum status        st;

    batch_order_init(&o, from, MESSAGE_COMMAND_LIST);
    o.tried = from;
    o.stream = b->list.stream;
    st = batch_time_left(b, &o.body.command_list.timeout_ms, why);
    if (!st)
        st = batch_staging(b, STAGING_SLICE_BYTES, &o.slice, why);
    if (st)
        return st;
    o.body.command_list.stream = b->list.stream;
    st = batch_submit(b, &o, address_list, why);
    if (st || o.nothing || b->preparing)
        staging_give(b->worker_session->worker, &o.slice);
    *next = o.tried;
    return st;
}

static enum status send_all(struct batch *b, struct problem *why)
{
    unsigned    next = 0;
    enum status st = STATUS_OK;

    while (!st && next < b->list.count) {
        unsigned from = next;

        st = send_some(b, from, &next, why);
        if (!st && b->list.failed) {
            *why = b->list.why;
            st = b->list.failed;
        }
        if (!st && next == from)
            st = problem_set(why, STATUS_INTERNAL, "an operation does not fit into a piece of staging memory");
    }
    return st;
}

enum status command_batch_send(struct batch *b, struct problem *why)
{
    unsigned    first = b->list.count ? b->list.items[0].op : 0;
    enum status st = STATUS_OK;

    if (b->list.count == 0)
        return st;
    if (b->list.count == 1)
        st = send_alone(b, why);
    else if (b->spec->program && program_graphable(&b->list.items[0]))
        st = program_graph_send(b, why);
    else
        st = send_all(b, why);
    command_batch_drop(b);
    /* What failed is one of these, not the operation that had them sent. */
    return batch_set_failed_op(why, st, first, first);
}

/* Programs keep launches that are prepared apart from everything else. */
static bool divided(const struct batch *b, const struct batch_item *item)
{
    return b->spec->program && program_graphable(item) != program_graphable(&b->list.items[0]);
}

enum status command_batch_add(struct batch *b, uint32_t stream, const struct batch_item *item, struct problem *why)
{
    enum status st = STATUS_OK;

    if (b->list.count == RUN_ITEMS_MAX || (b->list.count && (b->list.stream != stream || divided(b, item))))
        st = command_batch_send(b, why);
    b->list.stream = stream;
    b->list.items[b->list.count++] = *item; /* also on failure: it goes with the list */
    return st;
}

/* ---- landing ---- */

static bool has_launch(const struct batch *b, unsigned first, unsigned end)
{
    bool has = false;

    for (unsigned i = first; i < end; i++)
        has = has || b->spec->ops[b->listed[i]].kind == BATCH_LAUNCH;
    return has;
}

static bool has_timed_launch(const struct batch *b, unsigned first, unsigned end)
{
    bool has = false;

    for (unsigned i = first; i < end; i++) {
        const struct batch_op *op = &b->spec->ops[b->listed[i]];
        has = has || (op->kind == BATCH_LAUNCH && !op->launch->untimed);
    }
    return has;
}

/* The session's use counts in every case; of launches that are not timed it is the worker's time. */
static void note_time(struct batch *b, unsigned first, unsigned end, float reported)
{
    struct batch_result *r = &b->results[b->listed[first]];
    double               us;

    if (!gpu_us_check(reported, &us) || !has_launch(b, first, end))
        return;
    if (end - first == 1) {
        r->gpu_us = us;
        r->timed = has_timed_launch(b, first, end);
        b->timed_count += r->timed;
    } else if (has_timed_launch(b, first, end)) {
        b->groups[b->groups_count++] = (struct batch_group){b->listed[first], b->listed[end - 1], us};
    }
    b->kernel_us += us;
    pthread_mutex_lock(&b->session->lock);
    use_add_time(b->session, us);
    pthread_mutex_unlock(&b->session->lock);
}

void command_batch_unstarted(const struct slice *slice)
{
    struct run_state *state = (struct run_state *)(void *)slice->data;

    state->group = 0;
    atomic_store(&state->completed, 0);
}

void command_batch_landed(struct batch *b, struct flight_call *f)
{
    const struct run_state *state = (const struct run_state *)(const void *)f->slice.data;
    unsigned                n = f->count;

    f->group = state->group;
    f->completed = atomic_load(&state->completed);
    if (f->group == 0 || f->group > n)
        f->group = n;
    if (f->completed > n)
        f->completed = n; /* written by the worker or the device: neither is trusted */
    for (unsigned at = 0; at < n && !f->call.status; at += f->group)
        note_time(b, f->first + at, f->first + (n - at < f->group ? n : at + f->group), state->gpu_us[at / f->group]);
}
