/* Helper threads: every job runs once, also those still queued at the end. */
#include <criterion/criterion.h>
#include <stdatomic.h>

#include "api/deferred.h"
#include "base/span.h"

struct counted {
    struct deferred_job job;
    atomic_uint        *sum;
};

static void add(struct deferred_job *job)
{
    atomic_fetch_add(((struct counted *)job)->sum, 1);
}

Test(deferred, every_job_runs_once)
{
    static struct counted jobs[1000];
    atomic_uint           sum = 0;
    struct deferred      *d;

    cr_assert_eq(deferred_create(&d), STATUS_OK);
    for (size_t i = 0; i < COUNT(jobs); i++) {
        jobs[i] = (struct counted){{.run = add}, &sum};
        deferred_push(d, &jobs[i].job);
    }
    deferred_destroy(d);
    cr_assert_eq(atomic_load(&sum), COUNT(jobs));
    deferred_destroy(NULL);
}
