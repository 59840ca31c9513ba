/* Work on streams: issues it to the device in order, and answers it in order as it completes.
 *
 * Copies, fills and runs go to the device up to a window. A launch goes alone, and nothing behind it until it is done, but for brief launches
 * (launches.c): so all waiting work can still be cancelled, and a deadline covers only the launch that runs. A run belongs to a batch, whose parts
 * are not cancelled and have no deadlines. */
#include "base/deadline.h"

#include "worker/bounds.h"
#include "worker/commands/internal.h"
#include <assert.h>

struct stream *stream_find(struct device_worker *w, uint32_t id)
{
    uint32_t slot = id & 0xffff;

    if (slot >= w->streams_end || !w->streams[slot].used || w->streams[slot].generation != id >> 16)
        return NULL;
    return &w->streams[slot];
}

/* ---- issue ---- */

struct device_event *stream_first_event(const struct stream *s)
{
    const struct accepted_command *k = TAILQ_FIRST(&s->queue);

    if (!k || !k->issued || k->refused)
        return NULL;
    return k->run ? run_first_event(k->run) : k->after;
}

static bool is_timed(const struct accepted_command *k)
{
    return k->command.message == MESSAGE_LAUNCH && !k->command.body.launch.untimed;
}

/* Nothing is issued behind it without its mark, so the stream's end is its end. */
static bool watched_by_stream(const struct device_worker *w, const struct accepted_command *k)
{
    return k->command.message == MESSAGE_LAUNCH && !is_timed(k) && w->ops->stream_query;
}

/* Before issuing anything: the end of what runs must be seen. */
static enum status take_events(struct device_worker *w, struct accepted_command *k)
{
    enum status st = watched_by_stream(w, k) ? STATUS_OK : event_take(w, &k->after);

    if (!st && is_timed(k))
        st = event_take(w, &k->before);
    return st ? issue_refused(w, k->after, st, "cannot create an event", &k->why) : STATUS_OK;
}

/* Without a mark the stream is asked. */
static enum status issue_marked(struct device_worker *w, struct stream *s, struct accepted_command *k, struct issue_events *events)
{
    enum status st;

    events->mark = mark_next(w, s);
    st = issue_command(w, s, k->command.message, &k->command.body, events, &k->why);
    if (st == STATUS_NOT_IMPLEMENTED && events->mark.word) {
        w->marks_fail = true;
        k->why.status = STATUS_OK;
        events->mark = (struct device_mark){0};
        st = issue_command(w, s, k->command.message, &k->command.body, events, &k->why);
    }
    if (!st && events->mark.word)
        k->mark = s->marks = events->mark.value;
    return st;
}

static enum status issue_accepted(struct device_worker *w, struct stream *s, struct accepted_command *k)
{
    enum status         st = take_events(w, k);
    struct issue_events events = {k->before, k->after, {0}};

    if (!st && watched_by_stream(w, k))
        return issue_marked(w, s, k, &events);
    return st ? st : issue_command(w, s, k->command.message, &k->command.body, &events, &k->why);
}

static bool may_issue(struct device_worker *w, const struct stream *s)
{
    const struct accepted_command *k = s->waiting;

    if (!k || (k->command.message == MESSAGE_LAUNCH && s->runs))
        return false;
    if (s->last)
        return k->command.message == MESSAGE_LAUNCH && overlap_allowed(w, s, k);
    if (k->run)
        return k->issued || s->issued < COPIES_IN_FLIGHT_MAX;
    return s->issued < COPIES_IN_FLIGHT_MAX && !issue_blocked(w, k->command.message, &k->command.body);
}

/* Zeros where streams run side by side. */
static struct device_progress progress_of(struct device_worker *w)
{
    struct device_progress p = {0};

    if (w->ops->progress)
        w->ops->progress(w->device, &p);
    return p;
}

static void begin_command(struct device_worker *w, struct stream *s, struct accepted_command *k)
{
    assert(k == s->waiting);
    if (k->issued)
        return;
    k->issued = true;
    k->started_ns = s->last ? 0 : now_ns();
    k->place = progress_of(w).given;
    k->order = ++w->issues;
    s->issued++;
    s->runs += k->run != NULL;
}

/* False: nothing could be issued. */
static bool issue_next(struct device_worker *w, struct stream *s)
{
    struct accepted_command *k = s->waiting;
    bool                     moved = true;

    begin_command(w, s, k);
    if (k->run)
        moved = run_issue(w, s, k->run);
    if (!k->run || run_all_issued(k->run))
        s->waiting = TAILQ_NEXT(k, queued);
    if (k->run)
        return moved;
    k->refused = issue_accepted(w, s, k);
    if (k->refused)
        return true;
    if (k->command.message == MESSAGE_LAUNCH) {
        s->last = k;
        s->launches++;
    }
    return true;
}

/* A long run lets other streams and commands in between. */
static bool issue_some(struct device_worker *w, struct stream *s)
{
    bool any = false, more = true;

    while (more && !w->lost && may_issue(w, s)) {
        struct accepted_command *k = s->waiting;
        more = issue_next(w, s);
        any = any || more;
        more = more && s->waiting != k;
    }
    return any;
}

void stream_push(struct device_worker *w, struct stream *s, struct accepted_command *k)
{
    assert(s->used && !k->issued);
    TAILQ_INSERT_TAIL(&s->queue, k, queued);
    if (!s->waiting)
        s->waiting = k;
    issue_some(w, s);
}

/* ---- reap ---- */

/* All timeouts are bounded when they are accepted. 0: none. */
static uint64_t timeout_ms(const struct accepted_command *k)
{
    if (k->command.message == MESSAGE_LAUNCH)
        return k->command.body.launch.timeout_ms;
    if (k->command.message == MESSAGE_COMMAND_LIST)
        return k->command.body.command_list.timeout_ms;
    return k->command.message == MESSAGE_GRAPH_RUN ? k->command.body.graph_run.timeout_ms : 0;
}

bool command_reached(struct device_worker *w, const struct accepted_command *k)
{
    return progress_of(w).done >= k->place;
}

/* Whether another stream's work that was given earlier is not done. The first of all waits for nothing: a device that hangs is found out by it. */
static bool others_are_before(struct device_worker *w, const struct accepted_command *k)
{
    bool any = false;

    for (unsigned i = 0; i < w->streams_end; i++) {
        const struct accepted_command *first = TAILQ_FIRST(&w->streams[i].queue);

        any = any || (first && first->issued && first->order < k->order);
    }
    return any;
}

/* Whether a launch stands behind other streams' work: these may share a queue of the device. Without an event before it nothing tells. */
static bool stands_behind(struct device_worker *w, const struct accepted_command *k)
{
    return k->before && !w->ops->progress && others_are_before(w, k) && w->ops->event_query(w->device, k->before, NULL) == STATUS_PENDING;
}

/* It is the oldest, has been given to the device, and is not done. True: it is overdue. What waits there for other streams' work has not started. */
static bool runs_on(struct device_worker *w, struct accepted_command *k)
{
    uint64_t limit_ms = timeout_ms(k), now = now_ns();
    bool     reached = command_reached(w, k), tells;

    if (!limit_ms)
        return false;
    tells = reached && !k->told && now - k->started_ns > (k->run ? RUN_TOLD_US : START_TOLD_US) * NS_PER_US;
    if (tells && stands_behind(w, k))
        reached = tells = false;
    if (tells)
        command_started(w, k);
    if (!reached)
        k->started_ns = now;
    return now - k->started_ns > limit_ms * NS_PER_MS;
}

static enum status query_device(struct device_worker *w, struct stream *s, const struct accepted_command *k, struct problem *why)
{
    return k->after ? w->ops->event_query(w->device, k->after, why) : launch_query(w, s, k, why);
}

static enum status query_command(struct device_worker *w, struct stream *s, struct accepted_command *k, bool *moved, struct problem *why)
{
    enum status st;

    if (k->refused) {
        *why = k->why;
        why->status = k->refused;
        return k->refused;
    }
    st = k->run ? run_poll(w, s, k->run, moved, why) : query_device(w, s, k, why);
    if (st != STATUS_PENDING || !runs_on(w, k))
        return st;
    st = overdue_judge(w, k, timeout_ms(k), why);
    k->overdue = st == STATUS_EXECUTION_TIMEOUT;
    if (k->overdue && w->ops->cancel)
        w->ops->cancel(w->device);
    return st;
}

static void launch_reply(struct device_worker *w, const struct stream *s, const struct accepted_command *k, uint64_t ran_ns,
                         struct msg_launch_reply *r)
{
    if (!k->before)
        r->gpu_us = (float)ran_ns / (float)NS_PER_US;
    else if (w->ops->event_elapsed(w->device, k->before, k->after, &r->gpu_us) || !(r->gpu_us >= 0))
        r->gpu_us = 0; /* an unexpected value from a driver is no reason to be killed */
    r->output_bytes = output_keep(w, s->handle, k->command.body.launch.tag);
}

/* What the device refused behind the one before is still in the queue, and starts nothing. */
static void start_next_launch(struct stream *s, uint64_t now)
{
    struct accepted_command *k = TAILQ_FIRST(&s->queue);

    while (k->refused)
        k = TAILQ_NEXT(k, queued);
    k->started_ns = now;
}

/* It was given to the device behind what has just ended. */
static void start_next_run(struct stream *s)
{
    struct accepted_command *k = TAILQ_FIRST(&s->queue);

    if (k && k->issued && k->run)
        k->started_ns = now_ns();
}

/* It ran, and nothing is issued behind it, but for launches. */
static void launch_ends(struct device_worker *w, struct stream *s, struct accepted_command *k, enum status st,
                        struct msg_launch_reply *reply)
{
    uint64_t now = now_ns(), ran_ns = now - k->started_ns;

    assert(s->launches > 0 && k->started_ns);
    if (--s->launches > 0)
        start_next_launch(s, now);
    if (s->last == k)
        s->last = NULL;
    overlap_learn(w, &k->command.body.launch, ran_ns);
    if (!st)
        launch_reply(w, s, k, ran_ns, reply);
}

/* The oldest one is done, or failed as st and *why say. */
static void reap_done(struct device_worker *w, struct stream *s, struct accepted_command *k, enum status st, struct problem *why)
{
    struct completion done = {0};

    if (s->waiting == k)
        s->waiting = TAILQ_NEXT(k, queued); /* a run that was given up */
    assert(k == TAILQ_FIRST(&s->queue) && k->issued && s->issued > 0);
    TAILQ_REMOVE(&s->queue, k, queued);
    s->issued--;
    if (k->command.message == MESSAGE_LAUNCH && !k->refused)
        launch_ends(w, s, k, st, &done.reply.launch);
    else if (s->launches > 0)
        start_next_launch(s, now_ns()); /* it stood behind this copy */
    assert(!k->run || s->runs > 0);
    s->runs -= k->run != NULL;
    start_next_run(s);
    event_give(w, k->before);
    event_give(w, k->after);
    command_answer(w, k, st, &done, why);
}

/* ---- the end for an overdue one ---- */

static enum status query_first(struct device_worker *w, struct stream *s, struct accepted_command *k, struct problem *why)
{
    bool moved;

    return k->run ? run_poll(w, s, k->run, &moved, why) : query_device(w, s, k, why);
}

/* What is done by now, and was not looked at since. */
static void reap_all_done(struct device_worker *w, struct stream *s)
{
    struct problem           unused = {0};
    struct accepted_command *k;

    while ((k = TAILQ_FIRST(&s->queue)) && k->issued && !k->refused && !k->overdue && query_first(w, s, k, &unused) == STATUS_OK)
        reap_done(w, s, k, STATUS_OK, &unused);
}

static void answer_overdue(struct device_worker *w, struct stream *s, struct accepted_command *k, const struct problem *why)
{
    struct completion done = {0};

    TAILQ_REMOVE(&s->queue, k, queued);
    command_answer(w, k, STATUS_EXECUTION_TIMEOUT, &done, why);
}

static void answer_if_overdue(struct device_worker *w, struct stream *s, struct accepted_command *k)
{
    struct problem why = {0};

    if (!k || !k->issued || k->refused || !runs_on(w, k))
        return;
    overdue_describe(w, k, timeout_ms(k), &why);
    answer_overdue(w, s, k, &why);
}

/* The context ends for `k`, the first of `s`. It is told first, as the first report is the session's; what has done nothing wrong is told why. */
static void lose_overdue(struct device_worker *w, struct stream *s, struct accepted_command *k, const struct problem *why)
{
    struct problem innocent;

    for (unsigned i = 0; i < w->streams_end; i++)
        if (&w->streams[i] != s)
            reap_all_done(w, &w->streams[i]);
    w->lost = true;
    problem_set(&innocent, STATUS_WORKER_LOST,
                w->probe.unsure_ms ? "ended for other work of the session, unless this faulted: %s"
                                   : "ended for other work of the session: %s",
                why->detail);
    answer_overdue(w, s, k, why);
    for (unsigned i = 0; i < w->streams_end; i++)
        if (&w->streams[i] != s)
            answer_if_overdue(w, &w->streams[i], TAILQ_FIRST(&w->streams[i].queue));
    worker_lose(w, why, &innocent);
}

/* ---- reap, go on ---- */

static void reap_command(struct device_worker *w, struct stream *s, struct accepted_command *k, enum status st, struct problem *why)
{
    why->status = st;
    if (k->overdue)
        lose_overdue(w, s, k, why);
    else if (status_is_fatal(st))
        worker_lose(w, why, NULL);
    else
        reap_done(w, s, k, st, why);
}

/* Answers the oldest one when it is done. Polled all the time while something runs, so it clears nothing large. */
static bool reap_first(struct device_worker *w, struct stream *s)
{
    struct problem          *why = &w->told;
    struct accepted_command *k = TAILQ_FIRST(&s->queue);
    bool                     moved = false;
    enum status              st;

    if (!k || !k->issued)
        return false;
    st = query_command(w, s, k, &moved, why);
    if (st != STATUS_PENDING)
        reap_command(w, s, k, st, why);
    if (why->status)
        *why = (struct problem){0};
    return moved || st != STATUS_PENDING;
}

bool streams_advance(struct device_worker *w)
{
    bool moved = false;

    for (unsigned i = 0; i < w->streams_end; i++) {
        struct stream *s = &w->streams[i];

        while (!w->lost && reap_first(w, s))
            moved = true;
        moved = issue_some(w, s) || moved;
    }
    return moved;
}

bool streams_in_flight(const struct device_worker *w)
{
    for (unsigned i = 0; i < w->streams_end; i++)
        if (w->streams[i].issued > 0)
            return true;
    return false;
}

bool streams_passed(const struct device_worker *w, const struct stream *s, uint64_t sequence)
{
    if (s)
        return TAILQ_EMPTY(&s->queue) || TAILQ_FIRST(&s->queue)->sequence > sequence;
    for (unsigned i = 0; i < w->streams_end; i++) {
        const struct accepted_command *first = TAILQ_FIRST(&w->streams[i].queue);

        if (first && first->sequence < sequence)
            return false;
    }
    return true;
}

/* ---- taking out ---- */

struct accepted_command *streams_withdraw(struct device_worker *w, uint64_t tag)
{
    struct accepted_command *k;

    for (unsigned i = 0; i < w->streams_end; i++) {
        struct stream *s = &w->streams[i];

        TAILQ_FOREACH(k, &s->queue, queued) {
            if (k->command.message != MESSAGE_LAUNCH || k->command.body.launch.tag != tag)
                continue;
            if (k->issued)
                return NULL;
            assert(!k->run);
            if (s->waiting == k)
                s->waiting = TAILQ_NEXT(k, queued);
            TAILQ_REMOVE(&s->queue, k, queued);
            return k;
        }
    }
    return NULL;
}

struct accepted_command *streams_pop_any(struct device_worker *w)
{
    for (unsigned i = 0; i < w->streams_end; i++) {
        struct stream           *s = &w->streams[i];
        struct accepted_command *k = TAILQ_FIRST(&s->queue);

        s->waiting = s->last = NULL;
        s->issued = s->runs = s->items = s->launches = 0;
        if (!k)
            continue;
        TAILQ_REMOVE(&s->queue, k, queued);
        return k;
    }
    return NULL;
}
