/* The executor alone, at its bounds and callers' portions of them, with a loop that only collects what is posted. */
#include <criterion/criterion.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/deadline.h"
#include "base/threads/spin.h"
#include "http/bounds.h"
#include "http/engine/internal.h"

enum { THREADS = EXECUTOR_THREADS_MAX - EXECUTOR_THREADS_RESERVED, FITTING = THREADS + EXECUTOR_QUEUE_MAX };

static struct loop      loop;
static struct executor *executor;
static struct exchange *all;
static atomic_uint      running;
static atomic_bool      may_end;
static struct caller    callers[2], crowd[FITTING + 1];

static enum status block(struct request *r)
{
    (void)r;
    atomic_fetch_add(&running, 1);
    while (!atomic_load(&may_end))
        poll(NULL, 0, 1);
    return STATUS_OK;
}

static enum status pass(struct request *r)
{
    (void)r;
    return STATUS_OK;
}

static const struct endpoint endpoint = {.handle = block}, probe = {.handle = pass, .probe = true};

static unsigned posted(void)
{
    unsigned count = 0;

    pthread_mutex_lock(&loop.post_lock);
    for (struct exchange *x = loop.posted; x; x = x->posted_next)
        count++;
    pthread_mutex_unlock(&loop.post_lock);
    return count;
}

static void *stop(void *unused)
{
    executor_stop(executor);
    return unused;
}

static enum status submit_as(struct caller *caller, unsigned i)
{
    all[i].r.caller = caller;
    all[i].loop = &loop;
    all[i].r.endpoint = &endpoint;
    return executor_submit(executor, &all[i]);
}

/* Each submission has its own caller. */
static enum status submit(unsigned i)
{
    return submit_as(&crowd[i], i);
}

static void await_running(unsigned count)
{
    for (int i = 0; i < 60000 && atomic_load(&running) < count; i++)
        poll(NULL, 0, 1);
    cr_assert_eq(atomic_load(&running), count);
}

static void open_up(void)
{
    pthread_mutex_init(&loop.post_lock, NULL);
    loop.event_fd = eventfd(0, EFD_NONBLOCK);
    all = calloc(FITTING + 1, sizeof *all);
    cr_assert_eq(executor_create(&executor, NULL), STATUS_OK);
}

static void close_down(void)
{
    executor_destroy(executor);
    close(loop.event_fd);
    free(all);
}

static void fill(void)
{
    for (unsigned i = 0; i < THREADS; i++)
        cr_assert_eq(submit(i), STATUS_OK);
    await_running(THREADS);
    for (unsigned i = THREADS; i < FITTING; i++)
        cr_assert_eq(submit(i), STATUS_OK);
}

Test(executor, refuses_beyond_its_queue_and_gives_back_what_is_queued_when_it_stops)
{
    pthread_t stopper;
    unsigned  drained = 0, done = 0;

    open_up();
    fill();
    cr_assert_eq(submit(FITTING), STATUS_OVERLOADED);
    cr_assert_eq(all[FITTING].r.problem.status, STATUS_OVERLOADED);
    pthread_create(&stopper, NULL, stop, NULL);
    for (int i = 0; i < 20000 && posted() < EXECUTOR_QUEUE_MAX; i++)
        poll(NULL, 0, 1);
    cr_assert_eq(posted(), EXECUTOR_QUEUE_MAX);
    atomic_store(&may_end, true);
    pthread_join(stopper, NULL);
    for (unsigned i = 0; i < FITTING; i++) {
        drained += all[i].executor_result == STATUS_DRAINING && !all[i].handler_ran;
        done += all[i].executor_result == STATUS_OK && all[i].handler_ran;
    }
    cr_assert_eq(drained, EXECUTOR_QUEUE_MAX);
    cr_assert_eq(done, THREADS);
    cr_assert_eq(atomic_load(&running), THREADS);
    cr_assert_eq(submit(FITTING), STATUS_OVERLOADED);
    close_down();
}

Test(executor, a_caller_has_its_portion_of_the_threads_and_others_do_not_wait_for_it)
{
    const unsigned portion = THREADS - THREADS / PORTION_DIVISOR, more = 20;

    open_up();
    for (unsigned i = 0; i < portion + more; i++)
        cr_assert_eq(submit_as(&callers[0], i), STATUS_OK);
    await_running(portion);
    cr_assert_eq(submit_as(&callers[1], portion + more), STATUS_OK);
    await_running(portion + 1);
    poll(NULL, 0, 50);
    cr_assert_eq(atomic_load(&running), portion + 1, "the first caller's others still wait");
    atomic_store(&may_end, true);
    await_running(portion + 1 + more);
    executor_stop(executor);
    cr_assert_eq(callers[0].executor_threads, 0);
    cr_assert_eq(callers[1].executor_threads, 0);
    close_down();
}

Test(executor, does_probes_while_all_others_wait)
{
    enum { PROBES = 3 * EXECUTOR_THREADS_RESERVED };
    static struct exchange asked[PROBES];

    open_up();
    fill();
    cr_assert_eq(submit(FITTING), STATUS_OVERLOADED);
    for (unsigned i = 0; i < PROBES; i++) {
        asked[i].loop = &loop;
        asked[i].r.endpoint = &probe;
        cr_assert_eq(executor_submit(executor, &asked[i]), STATUS_OK);
    }
    for (int i = 0; i < 60000 && posted() < PROBES; i++)
        poll(NULL, 0, 1);
    cr_assert_eq(posted(), PROBES);
    for (unsigned i = 0; i < PROBES; i++)
        cr_assert(asked[i].handler_ran);
    atomic_store(&may_end, true);
    for (int i = 0; i < 60000 && posted() < PROBES + FITTING; i++)
        poll(NULL, 0, 1);
    cr_assert_eq(posted(), PROBES + FITTING, "what waited is done in its turn");
    executor_stop(executor);
    close_down();
}

/* Whoever is about to sleep takes what is submitted meanwhile; a second one at the same moment wakes another thread. */
Test(executor, nothing_waits_for_a_thread_that_looks_for_work)
{
    enum { PAIRS = 60, SLEEPS = 4 };
    const uint64_t until = deadline_after_ms(60000);

    spin_cpus_set(SPIN_CPUS_MANY);
    open_up();
    for (unsigned i = 0; i < 2 * PAIRS; i += 2) {
        atomic_store(&may_end, false);
        cr_assert_eq(submit(i), STATUS_OK);
        cr_assert_eq(submit(i + 1), STATUS_OK);
        while (atomic_load(&running) < i + 2 && deadline_left_ns(until)) /* both at once */
            sched_yield();
        cr_assert_eq(atomic_load(&running), i + 2);
        atomic_store(&may_end, true);
        while (posted() < i + 2 && deadline_left_ns(until))
            sched_yield();
        if (i / 2 % SLEEPS == 0)
            poll(NULL, 0, 2); /* now they sleep */
    }
    executor_stop(executor);
    cr_assert_eq(posted(), 2 * PAIRS);
    close_down();
}
