/* Staging memory: runs of slices, exhaustion, waiting. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "pool/workers/worker_internal.h"

enum { SLICES = 8 };

static struct worker *worker_with_staging(void)
{
    struct worker *w = calloc(1, sizeof *w);

    cr_assert_not_null(w);
    cr_assert_eq(shm_create(&w->shm, (uint64_t)SLICES * STAGING_SLICE_BYTES), STATUS_OK);
    staging_init(w);
    return w;
}

static void worker_drop(struct worker *w)
{
    staging_finish(w);
    shm_finish(&w->shm);
    free(w);
}

struct counter {
    struct waker waker;
    unsigned     woken;
};

static void count_wake(struct waker *w)
{
    ((struct counter *)w)->woken++;
}

Test(staging, slices_do_not_overlap_and_come_back)
{
    struct worker *w = worker_with_staging();
    struct slice   s[SLICES], more;

    for (unsigned i = 0; i < SLICES; i++) {
        cr_assert_eq(staging_take(w, 1, &s[i], NULL), STATUS_OK);
        cr_assert_eq(s[i].ref.offset, i * STAGING_SLICE_BYTES);
        memset(s[i].data, (int)i, s[i].ref.bytes);
    }
    cr_assert_eq(staging_take(w, 1, &more, NULL), STATUS_PENDING);
    for (unsigned i = 0; i < SLICES; i++)
        cr_assert_eq(s[i].data[STAGING_SLICE_BYTES - 1], i);
    staging_give(w, &s[3]);
    cr_assert_eq(staging_take(w, 2 * STAGING_SLICE_BYTES, &more, NULL), STATUS_PENDING);
    staging_give(w, &s[4]);
    cr_assert_eq(staging_take(w, STAGING_SLICE_BYTES + 1, &more, NULL), STATUS_OK);
    cr_assert_eq(more.ref.offset, 3 * STAGING_SLICE_BYTES);
    cr_assert_eq(more.ref.bytes, 2 * STAGING_SLICE_BYTES);
    worker_drop(w);
}

Test(staging, all_of_it_can_be_taken_and_no_more)
{
    struct worker *w = worker_with_staging();
    struct slice   s;

    cr_assert_eq(staging_bytes(w), (uint64_t)SLICES * STAGING_SLICE_BYTES);
    cr_assert_eq(staging_take(w, staging_bytes(w) + 1, &s, NULL), STATUS_INTERNAL);
    cr_assert_eq(staging_take(w, UINT64_MAX, &s, NULL), STATUS_INTERNAL);
    cr_assert_eq(staging_take(w, staging_bytes(w), &s, NULL), STATUS_OK);
    staging_give(w, &s);
    cr_assert_null(s.data);
    cr_assert_eq(staging_take(w, staging_bytes(w), &s, NULL), STATUS_OK);
    worker_drop(w);
}

Test(staging, waiters_are_woken_once_and_not_after_unwatch)
{
    struct worker *w = worker_with_staging();
    struct counter a = {.waker.wake = count_wake}, b = {.waker.wake = count_wake};
    struct slice   all, s;

    cr_assert_eq(staging_take(w, staging_bytes(w), &all, NULL), STATUS_OK);
    cr_assert_eq(staging_take(w, 1, &s, &a.waker), STATUS_PENDING);
    cr_assert_eq(staging_take(w, 1, &s, &a.waker), STATUS_PENDING);
    cr_assert_eq(staging_take(w, 1, &s, &b.waker), STATUS_PENDING);
    staging_unwatch(w, &b.waker);
    staging_give(w, &all);
    cr_assert_eq(a.woken, 1);
    cr_assert_eq(b.woken, 0);
    cr_assert_eq(staging_take(w, 1, &s, NULL), STATUS_OK);
    staging_give(w, &s);
    cr_assert_eq(a.woken, 1);
    staging_unwatch(w, &a.waker);
    worker_drop(w);
}

Test(staging, a_dead_worker_wakes_everybody_and_gives_nothing)
{
    struct worker *w = worker_with_staging();
    struct counter a = {.waker.wake = count_wake};
    struct slice   all, s;

    cr_assert_eq(staging_take(w, staging_bytes(w), &all, NULL), STATUS_OK);
    cr_assert_eq(staging_take(w, 1, &s, &a.waker), STATUS_PENDING);
    staging_fail(w);
    cr_assert_eq(a.woken, 1);
    cr_assert_eq(staging_take(w, 1, &s, &a.waker), STATUS_WORKER_LOST);
    staging_give(w, &all);
    cr_assert_eq(a.woken, 1);
    worker_drop(w);
}
