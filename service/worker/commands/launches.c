/* Untimed launches on a stream: how their ends are seen, and which may stand behind one another on the device.
 *
 * A mark, a word that the device writes behind a launch, tells its end; the driver is asked now and then, for faults.
 *
 * A launch is given to the device behind one that still runs, so that the device does not wait for this process between two short ones. What is
 * given cannot be taken back, so it cannot be cancelled any more. Therefore only launches that were brief each time lately stand behind each other,
 * few of them, and only while the running one has not run for longer: they end before a request to cancel them comes. Their marks tell the end of
 * each also when the next one faults; their deadlines count from the end of the one before. When the rest took
 * longer, 16 connections on one session of an H200 did 105,000 launches/s so, and 93,000 without; fewer connections, and one alone, did as many either
 * way (medians of four turns, 2026-11-29). */
#include "base/deadline.h"
#include "worker/commands/internal.h"

#include <assert.h>

static const uint64_t FORM_MIX = 0x9e3779b97f4a7c15; /* 2^64 divided by the golden ratio: its multiples spread over the high bits */

bool uses_marks(const struct device_worker *w)
{
    return w->ops->mark && !w->marks_fail;
}

/* What is asked for, but for the arguments, as a place of w->brief. Forms that share one are only misjudged. */
static uint8_t *form_of(struct device_worker *w, const struct msg_launch *m)
{
    const uint32_t members[] = {m->module, m->kernel, m->grid[0], m->grid[1], m->grid[2], m->block[0], m->block[1], m->block[2]};
    uint64_t       mixed = 0;

    for (size_t i = 0; i < COUNT(members); i++)
        mixed = (mixed ^ members[i]) * FORM_MIX;
    return &w->brief[(mixed >> 32) % COUNT(w->brief)];
}

void overlap_learn(struct device_worker *w, const struct msg_launch *m, uint64_t ran_ns)
{
    uint8_t *times = form_of(w, m);

    if (ran_ns > BRIEF_US * NS_PER_US)
        *times = 0;
    else if (*times < BRIEF_TIMES)
        ++*times;
}

static bool is_brief(struct device_worker *w, const struct accepted_command *k)
{
    const struct msg_launch *m = &k->command.body.launch;

    return m->untimed && *form_of(w, m) == BRIEF_TIMES;
}

/* The oldest one runs, and not for long yet. */
static bool runs_briefly(const struct stream *s)
{
    const struct accepted_command *first = TAILQ_FIRST(&s->queue);

    return first->command.message == MESSAGE_LAUNCH && now_ns() - first->started_ns < BRIEF_US * NS_PER_US;
}

static _Atomic uint32_t *mark_of(struct device_worker *w, const struct stream *s)
{
    return &w->shm.marks[s - w->streams];
}

bool overlap_allowed(struct device_worker *w, const struct stream *s, const struct accepted_command *k)
{
    assert(s->last && s->launches > 0);
    return s->launches < LAUNCHES_IN_FLIGHT_MAX && s->last->mark && !w->prints && is_brief(w, k) && is_brief(w, s->last) && runs_briefly(s);
}

struct device_mark mark_next(struct device_worker *w, const struct stream *s)
{
    if (!uses_marks(w))
        return (struct device_mark){0};
    return (struct device_mark){mark_of(w, s), s->marks + 1 ? s->marks + 1 : 1};
}

static bool mark_reached(struct device_worker *w, const struct stream *s, const struct accepted_command *k)
{
    return k->mark && (int32_t)(atomic_load_explicit(mark_of(w, s), memory_order_acquire) - k->mark) >= 0;
}

enum status launch_query(struct device_worker *w, struct stream *s, const struct accepted_command *k, struct problem *why)
{
    enum status st;
    uint64_t    now;

    if (mark_reached(w, s, k))
        return STATUS_OK;
    now = now_ns();
    if (k->mark && now - (s->asked_ns > k->started_ns ? s->asked_ns : k->started_ns) < STREAM_ASKED_US * NS_PER_US)
        return STATUS_PENDING;
    s->asked_ns = now;
    st = w->ops->stream_query(w->device, s->handle, why);
    if (!status_is_fatal(st) || !mark_reached(w, s, k))
        return st;
    *why = (struct problem){0}; /* a later one has lost the context */
    return STATUS_OK;
}
