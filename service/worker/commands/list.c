/* Lists of commands in flight together. They are watched in groups: one event behind each and, where events tell nothing after a fault,
 * a mark that the device writes into the run's state. So reported progress is correct even when the context was lost. */
#include "base/deadline.h"

#include <stdlib.h>

#include "ipc/command_list.h"
#include "worker/bounds.h"
#include "worker/commands/internal.h"

struct group {
    uint32_t             end;    /* entries of the list up to here */
    struct device_event *before; /* NULL: no launch of it is timed */
    struct device_event *timed;  /* NULL: `after` ends the time, too */
    struct device_event *after;  /* behind everything, including the mark */
};

struct run {
    struct run_cursor    cursor;
    struct run_state    *state; /* in staging: the front-end's to read, never ours */
    struct device_graph *graph; /* of a GRAPH_RUN; borrowed */
    uint32_t             count, issued, done;
    uint32_t             group_size;
    bool                 timed;                 /* a launch of it is */
    uint64_t             landed_ns;             /* ... or when the first group was opened */
    struct group         open;                  /* being issued; after NULL = none */
    struct group         groups[RUN_ITEMS_MAX]; /* issued, a ring */
    unsigned             first, groups_count;
    enum status          refused; /* by the device: what is behind is not issued */
    struct problem       why;
    bool                 blind; /* an event could not be queried: progress is unknown from here on */
};

/* One for each accepted command. Memory that is never touched takes none. */
static struct run runs[RING_SLOTS];

/* The list stays in the staging memory until the command is answered. So nothing is allocated here: a list that is valid is always taken, and
 * the records in it are always made. */
static enum status run_open(struct device_worker *w, struct accepted_command *k, const struct shm_ref *list, const struct shm_ref *state,
                            uint32_t count, struct problem *why)
{
    struct run    *r = &runs[k - w->accepted];
    unsigned char *from, *to;
    enum status    st = shm_piece(&w->shm, *list, &from);

    if (!st)
        st = shm_piece(&w->shm, *state, &to);
    if (st || state->bytes < sizeof(struct run_state) || state->offset % sizeof(uint64_t) != 0)
        return problem_set(why, STATUS_INVALID_REQUEST, "a list or its state lies outside the staging memory");
    *r = (struct run){.cursor = {from, list->bytes}, .state = (struct run_state *)(void *)to, .count = count};
    k->run = r;
    return STATUS_OK;
}

static void group_give(struct device_worker *w, struct group *g)
{
    event_give(w, g->before);
    event_give(w, g->timed);
    event_give(w, g->after);
    *g = (struct group){0};
}

void run_close(struct device_worker *w, struct run *r)
{
    if (!r)
        return;
    for (; r->groups_count; r->groups_count--, r->first = (r->first + 1) % RUN_ITEMS_MAX)
        group_give(w, &r->groups[r->first]);
    group_give(w, &r->open);
}

/* ---- taking a list ---- */

static enum status check_entry(struct device_worker *w, const struct run_entry *e, uint32_t stream, struct problem *why)
{
    const void *body = run_entry_body(e);

    if (*(const uint32_t *)body != stream && e->message != MESSAGE_LAUNCH)
        return problem_set(why, STATUS_INVALID_REQUEST, "a list is of one stream");
    switch (e->message) {
    case MESSAGE_LAUNCH:
        return launch_check(w, (struct msg_launch *)(uintptr_t)body, why);
    case MESSAGE_MEM_FILL:
        return fill_check(body, why);
    case MESSAGE_EVENT_RECORD:
    case MESSAGE_EVENT_WAIT:
        return event_name_valid(((const struct msg_event_record *)body)->event)
                   ? STATUS_OK
                   : problem_set(why, STATUS_INVALID_REQUEST, "there is no such event");
    case MESSAGE_MEM_COPY:
        return STATUS_OK;
    default: /* of a number: command_list_next() lets no other message pass */
        return problem_set(why, STATUS_INVALID_REQUEST, "a list has no such operation");
    }
}

static bool is_timed(const struct run_entry *e)
{
    return e->message == MESSAGE_LAUNCH && !((const struct msg_launch *)run_entry_body(e))->untimed;
}

/* Exactly `count` entries, each valid as a command of its own. */
static enum status check_list(struct device_worker *w, struct run *r, uint32_t stream, bool launches_only, struct problem *why)
{
    struct run_cursor       c = r->cursor;
    bool                    malformed = false;
    uint32_t                n = 0;
    enum status             st = STATUS_OK;
    const struct run_entry *e;

    for (; !st && (e = command_list_next(&c, &malformed)) != NULL; n++) {
        if (launches_only && e->message != MESSAGE_LAUNCH)
            malformed = true;
        r->timed = r->timed || is_timed(e);
        st = check_entry(w, e, stream, why);
    }
    if (!st && (malformed || n != r->count || n > RUN_ITEMS_MAX))
        st = problem_set(why, STATUS_INVALID_REQUEST, "a list of operations is malformed");
    return st;
}

static bool is_exact(const struct device_worker *w, const struct run *r)
{
    return w->ops->events_are_cheap || r->count <= RUN_EXACT_ITEMS_MAX;
}

static void publish_groups(struct run *r)
{
    for (uint32_t i = 0; i < RUN_ITEMS_MAX; i++)
        r->state->gpu_us[i] = -1;
    r->state->group = r->group_size;
    atomic_store(&r->state->completed, 0);
}

enum status run_accept(struct device_worker *w, struct accepted_command *k, struct problem *why)
{
    const struct msg_command_list *m = &k->command.body.command_list;
    enum status                    st = run_open(w, k, &m->list, &m->state, m->count, why);

    if (st)
        return st;
    st = m->count == 0 ? problem_set(why, STATUS_INVALID_REQUEST, "a list has at least one operation")
                       : check_list(w, k->run, m->stream, false, why);
    k->run->group_size = is_exact(w, k->run) ? 1 : RUN_GROUP_ITEMS;
    if (!st)
        publish_groups(k->run);
    return st;
}

/* ---- graphs ---- */

static struct graph *graph_find(struct device_worker *w, uint32_t id)
{
    uint32_t slot = (id & 0xffff) - 1;

    if (slot >= COUNT(w->graphs) || !w->graphs[slot].graph || w->graphs[slot].generation != id >> 16)
        return NULL;
    return &w->graphs[slot];
}

/* The launches of a list. Their parameters stay in the list. */
static enum status describe_all(struct device_worker *w, const struct run *r, struct device_launch *out, struct problem *why)
{
    struct run_cursor       c = r->cursor;
    bool                    malformed = false;
    enum status             st = STATUS_OK;
    const struct run_entry *e;

    for (uint32_t i = 0; !st && (e = command_list_next(&c, &malformed)) != NULL; i++) {
        st = launch_describe(w, run_entry_body(e), &out[i], why);
        if (!st && out[i].cooperative)
            st = problem_set(why, STATUS_INVALID_REQUEST, "a cooperative launch cannot be prepared");
        out[i].deadline_ms = EXECUTION_TIMEOUT_MS_MAX; /* a run has its own */
    }
    return st;
}

static enum status make_graph(struct device_worker *w, const struct run *r, struct device_graph **out, struct problem *why)
{
    struct device_launch *launches = calloc(r->count, sizeof *launches);
    enum status           st;

    if (!launches)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "no host memory for a graph");
    st = describe_all(w, r, launches, why);
    if (!st)
        st = w->ops->graph_create(w->device, launches, r->count, out, why);
    free(launches);
    return st;
}

static struct graph *graph_slot_free(struct device_worker *w)
{
    for (unsigned i = 0; i < COUNT(w->graphs); i++)
        if (!w->graphs[i].graph)
            return &w->graphs[i];
    return NULL;
}

enum status graph_make(struct device_worker *w, struct accepted_command *k, uint32_t *id, struct problem *why)
{
    const struct msg_graph_create *m = &k->command.body.graph_create;
    struct graph                  *slot = graph_slot_free(w);
    enum status                    st;

    if (!slot)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "graphs", GRAPHS_PER_WORKER_MAX, GRAPHS_PER_WORKER_MAX, 1);
    st = run_open(w, k, &m->list, &(struct shm_ref){0, sizeof(struct run_state)}, m->count, why);
    if (st)
        return st;
    st = m->count == 0 ? problem_set(why, STATUS_INVALID_REQUEST, "a graph has at least one launch") : check_list(w, k->run, 0, true, why);
    if (!st)
        st = make_graph(w, k->run, &slot->graph, why);
    if (!st) {
        slot->count = m->count;
        slot->timed = k->run->timed;
        slot->generation++;
        *id = (uint32_t)slot->generation << 16 | (uint32_t)(slot - w->graphs + 1);
    }
    return st;
}

bool graph_exists(struct device_worker *w, uint32_t id)
{
    return graph_find(w, id) != NULL;
}

void graph_end(struct device_worker *w, uint32_t id)
{
    struct graph *g = graph_find(w, id);

    if (!g)
        return;
    w->ops->graph_destroy(w->device, g->graph);
    g->graph = NULL;
}

/* Counts as many entries as the graph has; its list holds only the changed ones. */
enum status graph_run_accept(struct device_worker *w, struct accepted_command *k, struct problem *why)
{
    const struct msg_graph_run *m = &k->command.body.graph_run;
    const struct graph         *g = graph_find(w, m->graph);
    enum status                 st;

    if (!g)
        return problem_set(why, STATUS_INVALID_REQUEST, "there is no such graph");
    st = run_open(w, k, &m->list, &m->state, m->count, why);
    if (st)
        return st;
    st = check_list(w, k->run, 0, true, why);
    k->run->graph = g->graph;
    k->run->timed = g->timed;
    k->run->count = k->run->group_size = g->count;
    if (!st)
        publish_groups(k->run);
    return st;
}

/* ---- issue ---- */

/* Events before the first entry of a group. */
static enum status open_group(struct device_worker *w, struct stream *s, struct run *r)
{
    enum status st = event_take(w, &r->open.after);

    if (r->groups_count == 0)
        r->landed_ns = now_ns();
    if (!st && r->timed)
        st = event_take(w, &r->open.before);
    if (!st && r->timed && r->group_size > 1)
        st = w->ops->event_record(w->device, s->handle, r->open.before);
    return st ? issue_refused(w, r->open.after, st, "the device made or recorded no event", &r->why) : STATUS_OK;
}

static enum status mark_group(struct device_worker *w, struct stream *s, struct run *r)
{
    enum status st =
        uses_marks(w) ? w->ops->mark(w->device, s->handle, (struct device_mark){&r->state->completed, r->issued}) : STATUS_NOT_IMPLEMENTED;

    w->marks_fail = w->marks_fail || st == STATUS_NOT_IMPLEMENTED;
    return st == STATUS_NOT_IMPLEMENTED || !st ? STATUS_OK : issue_refused(w, r->open.after, st, "the device marked no progress", &r->why);
}

static void close_group(struct run *r)
{
    r->open.end = r->issued;
    r->groups[(r->first + r->groups_count++) % RUN_ITEMS_MAX] = r->open;
    r->open = (struct group){0};
}

/* The last event of a group stands behind the mark: when it is done, the mark is visible, and nothing more is written into the state. */
static enum status end_group(struct device_worker *w, struct stream *s, struct run *r)
{
    enum status st = mark_group(w, s, r);

    if (!st) {
        st = w->ops->event_record(w->device, s->handle, r->open.after);
        if (st)
            st = issue_refused(w, r->open.after, status_is_fatal(st) ? st : STATUS_DEVICE_ERROR, "the device recorded no event", &r->why);
    }
    if (!st)
        close_group(r);
    return st;
}

static void give_before(struct device_worker *w, struct run *r)
{
    event_give(w, r->open.before);
    r->open.before = NULL;
}

/* One entry that is watched by itself. */
static enum status issue_exactly(struct device_worker *w, struct stream *s, struct run *r, const struct run_entry *e)
{
    bool                timed = is_timed(e), marked = uses_marks(w);
    struct issue_events events = {timed ? r->open.before : NULL, r->open.after, {0}};
    enum status         st = STATUS_OK;

    if (timed && marked && (st = event_take(w, &r->open.timed)) != STATUS_OK)
        return issue_refused(w, r->open.after, st, "cannot create an event", &r->why);
    if (marked)
        events.after = r->open.timed;
    st = issue_command(w, s, e->message, run_entry_body(e), &events, &r->why);
    r->issued += !st;
    if (!timed)
        give_before(w, r);
    if (!st && marked)
        return end_group(w, s, r);
    if (!st)
        close_group(r);
    return st;
}

static enum status issue_in_group(struct device_worker *w, struct stream *s, struct run *r, const struct run_entry *e)
{
    static const struct issue_events none;
    enum status                      st = issue_command(w, s, e->message, run_entry_body(e), &none, &r->why);

    r->issued += !st;
    if (!st && (r->issued == r->count || r->issued % r->group_size == 0))
        st = end_group(w, s, r);
    return st;
}

static enum status issue_entry(struct device_worker *w, struct stream *s, struct run *r, const struct run_entry *e)
{
    enum status st = r->open.after ? STATUS_OK : open_group(w, s, r);

    if (st)
        return st;
    return r->group_size == 1 ? issue_exactly(w, s, r, e) : issue_in_group(w, s, r, e);
}

/* The issued part of a group is waited for even if a later entry was refused. The records behind it are still made, since other streams
 * may wait for them. */
static void give_up_run(struct device_worker *w, struct stream *s, struct run *r)
{
    static const struct issue_events none;
    const struct run_entry          *e;
    bool                             malformed = false;

    if (!status_is_fatal(r->refused) && r->open.after && r->group_size > 1 && r->issued > r->done && r->issued % r->group_size != 0) {
        struct problem first = r->why;
        enum status    st = end_group(w, s, r);

        if (!status_is_fatal(st))
            r->why = first;
        else
            r->refused = st;
    }
    while (!status_is_fatal(r->refused) && (e = command_list_next(&r->cursor, &malformed)) != NULL)
        if (e->message == MESSAGE_EVENT_RECORD)
            issue_command(w, s, e->message, run_entry_body(e), &none, &(struct problem){0});
}

static enum status change_graph(struct device_worker *w, struct run *r)
{
    bool                    malformed = false;
    enum status             st = STATUS_OK;
    struct device_launch    l;
    const struct run_entry *e;

    while (!st && (e = command_list_next(&r->cursor, &malformed)) != NULL) {
        const struct msg_launch *m = run_entry_body(e);

        st = launch_describe(w, m, &l, &r->why);
        l.deadline_ms = EXECUTION_TIMEOUT_MS_MAX;
        if (!st)
            st = w->ops->graph_set(w->device, r->graph, (uint32_t)m->tag, &l, &r->why);
    }
    return st;
}

static enum status issue_graph(struct device_worker *w, struct stream *s, struct run *r)
{
    enum status st = change_graph(w, r);

    if (!st)
        st = open_group(w, s, r);
    if (!st && r->open.before && r->group_size == 1)
        st = w->ops->event_record(w->device, s->handle, r->open.before);
    if (!st)
        st = w->ops->graph_run(w->device, s->handle, r->graph, &r->why);
    if (st)
        return st;
    r->issued = r->count;
    return end_group(w, s, r);
}

bool run_all_issued(const struct run *r)
{
    return r->refused || r->issued == r->count;
}

bool run_issue(struct device_worker *w, struct stream *s, struct run *r)
{
    uint32_t    until = r->issued + RUN_ISSUE_AT_ONCE, before = r->issued;
    enum status st = STATUS_OK;

    if (r->graph)
        st = issue_graph(w, s, r);
    while (!st && r->issued < r->count && r->issued < until && s->items + (r->issued - before) < STREAM_ITEMS_IN_FLIGHT_MAX) {
        struct run_cursor       ahead = r->cursor;
        bool                    malformed = false;
        const struct run_entry *e = command_list_next(&ahead, &malformed);

        if (issue_blocked(w, e->message, run_entry_body(e)))
            break;
        r->cursor = ahead;
        st = issue_entry(w, s, r, e);
    }
    s->items += r->issued - before;
    if (st) {
        r->refused = st;
        give_up_run(w, s, r);
    }
    return st || r->issued != before;
}

/* ---- reap ---- */

/* Without events it is the time since the group before it was done, or since it was given to the device. */
static void measure_group(struct device_worker *w, struct run *r, const struct group *g)
{
    uint32_t index = r->done / r->group_size;
    uint64_t before = r->landed_ns;

    r->landed_ns = now_ns();
    if (index >= RUN_ITEMS_MAX)
        return;
    if (!g->before)
        r->state->gpu_us[index] = (float)(r->landed_ns - before) / (float)NS_PER_US;
    else if (w->ops->event_elapsed(w->device, g->before, g->timed ? g->timed : g->after, &r->state->gpu_us[index]))
        r->state->gpu_us[index] = -1;
}

static void land_group(struct device_worker *w, struct stream *s, struct run *r)
{
    struct group *g = &r->groups[r->first];

    measure_group(w, r, g);
    s->items -= g->end - r->done;
    r->done = g->end;
    if (!uses_marks(w) && !r->blind)
        atomic_store(&r->state->completed, r->done); /* else the device writes it, and may be ahead of this */
    group_give(w, g);
    r->first = (r->first + 1) % RUN_ITEMS_MAX;
    r->groups_count--;
}

struct device_event *run_first_event(const struct run *r)
{
    return r->groups_count ? r->groups[r->first].after : NULL;
}

/* The first failure counts. */
static void fail_run(struct device_worker *w, struct stream *s, struct run *r, enum status st, const struct problem *why)
{
    r->blind = true;
    if (r->refused)
        return;
    r->refused = st;
    r->why = *why;
    give_up_run(w, s, r);
}

enum status run_poll(struct device_worker *w, struct stream *s, struct run *r, bool *moved, struct problem *why)
{
    enum status st = STATUS_OK;

    if (status_is_fatal(r->refused)) {
        *why = r->why;
        return r->refused;
    }
    while (r->groups_count) {
        st = w->ops->event_query(w->device, r->groups[r->first].after, why);
        if (st == STATUS_PENDING || status_is_fatal(st))
            return st;
        if (st)
            fail_run(w, s, r, st, why);
        land_group(w, s, r);
        *moved = true;
    }
    if (r->refused)
        *why = r->why;
    return run_all_issued(r) ? r->refused : STATUS_PENDING;
}
