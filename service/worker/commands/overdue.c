/* Work whose deadline has passed: whether it still runs, or has faulted and the driver has not told yet. Faults of some kinds are told late
 * (device_ops.faults_late_ms). So before the worker ends for a timeout, it gives the device an event on a stream of its own: one that comes is a
 * sign that the context lives and the kernel runs on; a context that has faulted answers with the fault, or not at all until the driver tells. */
#include <stdarg.h>
#include <stdio.h>

#include "base/deadline.h"
#include "worker/commands/internal.h"

enum status probe_prepare(struct device_worker *w, struct problem *why)
{
    struct probe *p = &w->probe;
    enum status   st = STATUS_OK;

    if (!w->ops->faults_late_ms)
        return st;
    if (!p->stream)
        st = w->ops->stream_create(w->device, &p->stream);
    if (!st && !p->event)
        st = w->ops->event_create(w->device, &p->event);
    return st ? problem_set(why, st, "cannot create the stream that is asked at deadlines") : st;
}

/* A record that fails for another reason leaves it unknown. */
static enum status ask(struct device_worker *w, struct problem *why)
{
    struct probe *p = &w->probe;
    enum status   st = w->ops->event_record(w->device, p->stream, p->event);

    p->asked_ns = now_ns();
    p->failed = st != STATUS_OK;
    return status_is_fatal(st) ? issue_refused(w, p->event, st, "the context is lost", why) : STATUS_PENDING;
}

/* To a question that was asked since `due_ns`. There is one for all commands: one that is open is waited for. */
static enum status answer_since(struct device_worker *w, uint64_t due_ns, struct problem *why)
{
    struct probe *p = &w->probe;
    enum status   st = p->asked_ns && !p->failed ? w->ops->event_query(w->device, p->event, why) : STATUS_PENDING;
    bool          open = p->asked_ns && !p->failed && st == STATUS_PENDING;

    return p->asked_ns >= due_ns || open || status_is_fatal(st) ? st : ask(w, why);
}

/* Other streams' work may have held it up, and nothing tells whether it did. */
static bool may_have_waited(struct device_worker *w, const struct accepted_command *k)
{
    unsigned busy = 0;

    for (unsigned i = 0; i < w->streams_end; i++)
        busy += w->streams[i].issued > 0;
    return busy > 1 && (k->run || !w->ops->progress);
}

static void add_detail(struct problem *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add_detail(struct problem *why, const char *format, ...)
{
    size_t  used = strlen(why->detail);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why->detail + used, sizeof why->detail - used, format, arguments);
    va_end(arguments);
}

void overdue_describe(struct device_worker *w, const struct accepted_command *k, uint64_t timeout_ms, struct problem *why)
{
    uint32_t asked_for_ms = w->probe.unsure_ms;

    problem_set(why, STATUS_EXECUTION_TIMEOUT,
                k->run ? "the operations exceeded their timeout_ms of %llu ms" : "the kernel exceeded its timeout_ms of %llu ms",
                (unsigned long long)timeout_ms);
    if (may_have_waited(w, k))
        add_detail(why, ", in which work of the session's other streams may have held %s up", k->run ? "them" : "it");
    if (asked_for_ms)
        add_detail(why, ", or faulted: the driver had not told which %u ms after that, and the device did no other work either",
                   asked_for_ms);
}

/* `unsure_ms`: how long the device has not told whether it runs on. */
static enum status timed_out(struct device_worker *w, const struct accepted_command *k, uint64_t timeout_ms, uint32_t unsure_ms,
                             struct problem *why)
{
    w->probe.unsure_ms = unsure_ms;
    overdue_describe(w, k, timeout_ms, why);
    return STATUS_EXECUTION_TIMEOUT;
}

enum status overdue_judge(struct device_worker *w, const struct accepted_command *k, uint64_t timeout_ms, struct problem *why)
{
    uint32_t    late_ms = w->ops->faults_late_ms;
    uint64_t    since = k->started_ns + timeout_ms * NS_PER_MS;
    enum status st = late_ms ? answer_since(w, since, why) : STATUS_OK;

    if (status_is_fatal(st))
        return st;
    if (!st)
        return timed_out(w, k, timeout_ms, 0, why);
    if (w->probe.asked_ns > since) /* else it is open from another command's deadline */
        since = w->probe.asked_ns;
    if (now_ns() - since < late_ms * NS_PER_MS)
        return STATUS_PENDING;
    return timed_out(w, k, timeout_ms, late_ms, why);
}
