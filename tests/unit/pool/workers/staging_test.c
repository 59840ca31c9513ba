/* Staging memory: runs of slices, exhaustion, waiting. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "pool/workers/worker_internal.h"

enum { SLICES = 8, BLOCK_BYTES = 512 /* of st_blocks */ };

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

static uint64_t bytes_with_pages(const struct worker *w)
{
    struct stat file;

    cr_assert_eq(fstat(w->shm.fd, &file), 0);
    return (uint64_t)file.st_blocks * BLOCK_BYTES;
}

/* Linux before 5.14 cannot make pages in advance; they are made by the write then. */
Test(staging, slices_that_were_never_taken_have_no_pages)
{
    struct worker *w = worker_with_staging();
    const uint64_t before = bytes_with_pages(w);
    struct slice   first, more;

    for (unsigned turn = 0; turn < 2; turn++) {
        cr_assert_eq(staging_take(w, 1, &first, NULL), STATUS_OK);
        cr_assert_eq(staging_take(w, 2 * STAGING_SLICE_BYTES, &more, NULL), STATUS_OK);
        memset(first.data, 1, first.ref.bytes);
        memset(more.data, 1, more.ref.bytes);
        cr_assert_eq(bytes_with_pages(w), before + 3 * STAGING_SLICE_BYTES, "the same slices are taken again");
        staging_give(w, &first);
        staging_give(w, &more);
    }
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
