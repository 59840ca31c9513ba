/* Publishes a batch's launches as events of its session: at its end, each launch that finished, in the order of operations. Of many launches
 * the last event stands for all that are left; their text, if they printed, is in the batch's answer alone. Of launches that were not timed and printed
 * nothing, one event says all there is to tell: a run of a hundred took 96 95 90 87 us with 32 of them, and takes 90 86 94 85 (one H200, in turns,
 * 2026-11-29). */
#include "session/batch/batch_internal.h"

#include "base/threads/held.h"

static bool is_launch(const struct batch *b, unsigned op)
{
    return b->spec->ops[op].kind == BATCH_LAUNCH;
}

static unsigned launches_from(const struct batch *b, unsigned first, unsigned end)
{
    unsigned count = 0;

    for (unsigned i = first; i < end; i++)
        count += is_launch(b, i);
    return count;
}

/* With session.lock held. Text that a later fault took along with the worker is published as truncated, and empty. */
static void publish_text(const struct batch *b, unsigned op)
{
    const struct batch_result *r = &b->results[op];
    struct event e = {.type = EVENT_KERNEL_PRINTF, .batch = {b->session->batches_published, op, op, 1}, .truncated = r->output_truncated};

    if (r->output_bytes || r->output_truncated)
        events_publish(b->session, &e, (struct span){r->output, r->output_bytes});
}

static void publish_one(const struct batch *b, unsigned op)
{
    const struct batch_result *r = &b->results[op];
    struct event               e = {.type = EVENT_LAUNCH_FINISHED,
                                    .batch = {b->session->batches_published, op, op, 1},
                                    .state.launch = WORK_SUCCEEDED,
                                    .timed = r->timed,
                                    .gpu_us = r->gpu_us};

    assert(held(&b->session->lock));
    assert(op < b->spec->ops_count);
    if (b->holds_text)
        publish_text(b, op);
    events_publish(b->session, &e, (struct span){NULL, 0});
}

/* The launches from that operation on, as one. With session.lock held. */
static void publish_rest(const struct batch *b, unsigned first)
{
    struct event e = {.type = EVENT_LAUNCH_FINISHED,
                      .batch = {b->session->batches_published, first, first, 0},
                      .state.launch = WORK_SUCCEEDED,
                      .timed = true};

    assert(held(&b->session->lock));
    for (unsigned i = first; i < b->done; i++) {
        if (!is_launch(b, i))
            continue;
        e.batch.op_last = i;
        e.batch.launches++;
        e.timed = e.timed && b->results[i].timed;
        e.gpu_us += b->results[i].gpu_us;
    }
    events_publish(b->session, &e, (struct span){NULL, 0});
}

static void publish_failure(const struct batch *b)
{
    unsigned     last = b->failed_last > b->failed_op ? b->failed_last : b->failed_op;
    struct event e = {.type = EVENT_LAUNCH_FINISHED,
                      .batch = {b->session->batches_published, b->failed_op, last, launches_from(b, b->failed_op, last + 1)},
                      .state.launch = WORK_FAILED,
                      .status = b->failed};

    if (e.batch.launches)
        events_publish(b->session, &e, (struct span){NULL, 0});
}

static unsigned events_max(const struct batch *b)
{
    return b->timed_count || b->groups_count || b->holds_text ? BATCH_EVENTS_MAX : 1;
}

void batch_publish(const struct batch *b)
{
    struct session *s = b->session;
    unsigned        most = events_max(b);
    unsigned        left = b->done == b->spec->ops_count ? b->kinds[BATCH_LAUNCH] : launches_from(b, 0, b->done), published = 0;

    if (left == 0 && !b->failed)
        return;
    pthread_mutex_lock(&s->lock);
    s->batches_published++;
    for (unsigned i = 0; i < b->done && left; i++) {
        if (!is_launch(b, i))
            continue;
        if (++published == most && left > 1) {
            publish_rest(b, i);
            break;
        }
        publish_one(b, i);
        left--;
    }
    if (b->failed)
        publish_failure(b);
    pthread_mutex_unlock(&s->lock);
}
