/* Who waits: registered once, woken once, and not after unwatch. */
#include <criterion/criterion.h>

#include "base/threads/waitlist.h"

struct counted {
    struct waker waker; /* first */
    unsigned     woken;
};

static void count_wake(struct waker *w)
{
    ((struct counted *)w)->woken++;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

Test(waitlist, wakes_each_once_and_forgets_them)
{
    struct waitlist l = {.lock = &lock};
    struct counted  a = {.waker.wake = count_wake}, b = a;

    cr_assert(waitlist_watch(&l, &a.waker));
    cr_assert(waitlist_watch(&l, &b.waker));
    cr_assert(waitlist_watch(&l, &a.waker), "registered already: stays once");
    waitlist_wake(&l);
    waitlist_wake(&l);
    cr_assert(a.woken == 1 && b.woken == 1);
    cr_assert(!l.first && !a.waker.next && !b.waker.next);
}

Test(waitlist, wakes_nobody_who_has_left)
{
    struct waitlist l = {.lock = &lock};
    struct counted  all[3] = {{.waker.wake = count_wake}, {.waker.wake = count_wake}, {.waker.wake = count_wake}};

    for (unsigned i = 0; i < 3; i++)
        cr_assert(waitlist_watch(&l, &all[i].waker));
    waitlist_unwatch(&l, &all[1].waker);
    waitlist_unwatch(&l, &all[1].waker); /* not registered: nothing */
    waitlist_wake(&l);
    cr_assert(all[0].woken == 1 && all[1].woken == 0 && all[2].woken == 1);
}

Test(waitlist, is_over_once_and_takes_nobody_then)
{
    struct waitlist l = {.lock = &lock};
    struct counted  a = {.waker.wake = count_wake};

    cr_assert(waitlist_watch(&l, &a.waker));
    cr_assert_not(waitlist_over(&l));
    waitlist_end(&l);
    cr_assert(waitlist_over(&l));
    cr_assert_eq(a.woken, 1);
    cr_assert_not(waitlist_watch(&l, &a.waker));
    cr_assert_null(l.first);
    waitlist_unwatch(&l, &a.waker);
}
