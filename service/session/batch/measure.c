/* What a batch adds to the metrics. Launches that were timed together count each, their time as one. */
#include "base/metrics.h"
#include "session/batch/batch_internal.h"

static void count_launches(const struct batch *b)
{
    unsigned all = b->kinds[BATCH_LAUNCH];

    for (unsigned i = 0; b->timed_count && i < b->spec->ops_count; i++)
        if (b->results[i].timed)
            launch_measure(b->results[i].gpu_us, false);
    assert(b->timed_count <= all);
    counter_add(COUNTER_LAUNCHES_SUCCEEDED, all - b->timed_count);
    use_add_launches(b->session, all);
    for (unsigned i = 0; i < b->groups_count; i++)
        times_add(TIMES_LAUNCH_EXEC_TIME, (uint64_t)(b->groups[i].gpu_us * 1e3));
}

static void count_reads(const struct batch *b)
{
    for (unsigned i = 0; b->kinds[BATCH_READ] && i < b->spec->ops_count; i++)
        if (b->spec->ops[i].kind == BATCH_READ && b->results[i].data)
            use_add_bytes(b->session, false, b->results[i].data_bytes);
}

void batch_measure(const struct batch *b, enum status st)
{
    if (!st) {
        count_launches(b);
        count_reads(b);
    } else if (b->failed && b->spec->ops[b->failed_op].kind == BATCH_LAUNCH) {
        counter_add(COUNTER_LAUNCHES_FAILED, 1);
        use_add_launches(b->session, 1);
    }
}

struct batch_times batch_times_of(const struct batch *b)
{
    struct batch_times t = b->times;

    t.kernel_ms = b->kernel_us / 1e3;
    return t;
}
