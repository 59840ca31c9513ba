/* What happens to calls when a worker faults, dies, hangs or overruns its time: each ends exactly once, with the reason. */
#include "unit/pool/one_worker.h"

#include <signal.h>
#include <stdlib.h>

TestSuite(worker_faults, .init = one_worker_start, .fini = one_worker_end);

static _Atomic unsigned starts;

static void count_done(struct call *c, enum call_event event)
{
    starts += event == CALL_STARTED;
    *(unsigned *)c->context += event == CALL_DONE;
}

/* One launch of the kernel and two that wait behind it: the worker is stopped until all three are in its ring. */
struct trio {
    struct call calls[3];
    unsigned    done[3];
};

static void trio_submit(uint32_t kernel, uint64_t timeout_ms, struct trio *t)
{
    *t = (struct trio){0};
    cr_assert_eq(kill(w->process.pid, SIGSTOP), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct msg_launch m = launch_of(module, i == 0 ? kernel : KERNEL_PRINT, 0, i, &(uint32_t){i}, i == 0 ? 0 : 4);

        m.timeout_ms = timeout_ms;
        t->calls[i] = (struct call){.on_event = count_done, .context = &t->done[i], .deadline_ns = DEADLINE_NEVER};
        cr_assert_eq(worker_submit_launch(w, &m, &t->calls[i]), STATUS_OK);
    }
    cr_assert_eq(kill(w->process.pid, SIGCONT), 0);
}

static void trio_expect(struct trio *t, enum status st, enum status behind)
{
    for (unsigned i = 0; i < 3; i++) {
        cr_assert_eq(call_wait(w, &t->calls[i]), i == 0 ? st : behind, "call %u ended as %s: %s", i, status_code(t->calls[i].status),
                     t->calls[i].problem.detail);
        cr_assert_eq(t->done[i], 1);
        cr_assert(t->calls[i].worker_session_lost);
        cr_assert_neq(t->calls[i].problem.detail[0], 0);
    }
}

/* `behind`: how those end that wait. */
static void run_trio(uint32_t kernel, uint64_t timeout_ms, enum status st, enum status behind, struct trio *t)
{
    trio_submit(kernel, timeout_ms, t);
    trio_expect(t, st, behind);
    pool_give_back(p, w);
    w = worker_of(p, &module); /* a new worker works again */
    cr_assert_eq(worker_canary(w, &(struct msg_canary){0}, NULL, deadline(), NULL), STATUS_OK);
}

static void expect_illegal_address(const struct call *c)
{
    cr_assert_eq(c->problem.cuda_result, 700);
    cr_assert_str_eq(c->problem.cuda_name, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

Test(worker_faults, a_kernel_fault_is_told_with_its_cuda_result)
{
    struct trio t;

    run_trio(KERNEL_FAULT, 1000, STATUS_KERNEL_FAULT, STATUS_WORKER_LOST, &t);
    expect_illegal_address(&t.calls[0]);
    for (unsigned i = 1; i < 3; i++)
        cr_assert(t.calls[i].problem.of_other_work);
}

/* Of a device that refuses the next one for it: that may be the one that faulted. */
Test(worker_faults, a_fault_that_shows_when_the_event_is_recorded_is_told_with_its_cuda_result)
{
    struct trio t;

    trio_submit(KERNEL_NOTED, 1000, &t);
    for (unsigned i = 0; i < 3; i++)
        if (call_wait(w, &t.calls[i]) == STATUS_KERNEL_FAULT)
            expect_illegal_address(&t.calls[i]);
        else
            cr_assert(t.calls[i].problem.of_other_work);
    cr_assert_eq(t.calls[0].status, STATUS_KERNEL_FAULT);
    pool_give_back(p, w);
    w = NULL;
}

Test(worker_faults, a_launch_that_fails_alone_does_not_hold_up_those_behind_it)
{
    struct trio t;

    trio_submit(KERNEL_STUMBLE, 1000, &t);
    cr_assert_eq(call_wait(w, &t.calls[0]), STATUS_OUT_OF_MEMORY);
    cr_assert_not(t.calls[0].worker_session_lost);
    for (unsigned i = 1; i < 3; i++)
        cr_assert(call_wait_until(w, &t.calls[i], deadline()), "launch %u was never given to the device", i);
    cr_assert_eq(t.calls[1].status, STATUS_OK);
    cr_assert_eq(t.calls[2].status, STATUS_OK);
}

Test(worker_faults, an_endless_kernel_ends_at_its_timeout)
{
    struct trio t;

    run_trio(KERNEL_ENDLESS, 50, STATUS_EXECUTION_TIMEOUT, STATUS_WORKER_LOST, &t);
}

/* The worker ends before it has taken all that waits in its ring. */
Test(worker_faults, what_the_worker_never_took_is_not_told_of_a_fault_of_its_own)
{
    enum { CALLS = 200 };
    static struct call calls[CALLS];
    unsigned           innocent = 0;

    cr_assert_eq(kill(w->process.pid, SIGSTOP), 0);
    for (unsigned i = 0; i < CALLS; i++) {
        struct msg_launch m = launch_of(module, i == 0 ? KERNEL_FAULT : KERNEL_PRINT, 0, i, &(uint32_t){i}, i == 0 ? 0 : 4);

        calls[i] = (struct call){.deadline_ns = DEADLINE_NEVER};
        cr_assert_eq(worker_submit_launch(w, &m, &calls[i]), STATUS_OK);
    }
    cr_assert_eq(kill(w->process.pid, SIGCONT), 0);
    cr_assert_eq(call_wait(w, &calls[0]), STATUS_KERNEL_FAULT);
    for (unsigned i = 1; i < CALLS; i++) {
        cr_assert_eq(call_wait(w, &calls[i]), STATUS_WORKER_LOST, "call %u ended as %s", i, status_code(calls[i].status));
        innocent += calls[i].problem.of_other_work;
    }
    cr_assert_eq(innocent, CALLS - 1);
}

Test(worker_faults, a_crash_ends_everything_as_worker_lost)
{
    struct trio t;

    run_trio(KERNEL_CRASH, 1000, STATUS_WORKER_LOST, STATUS_WORKER_LOST, &t);
}

Test(worker_faults, kill_9_in_the_middle_is_noticed_at_once)
{
    struct trio t;

    trio_submit(KERNEL_ENDLESS, 30000, &t);
    cr_assert_eq(kill(w->process.pid, SIGKILL), 0);
    trio_expect(&t, STATUS_WORKER_LOST, STATUS_WORKER_LOST);
    cr_assert_eq(worker_memory_info(w, &(struct msg_memory_info){0}, NULL, deadline(), NULL), STATUS_WORKER_LOST);
}

Test(worker_faults, worker_kill_ends_calls_with_the_given_problem)
{
    struct trio    t;
    struct problem why;

    trio_submit(KERNEL_ENDLESS, 30000, &t);
    problem_set(&why, STATUS_EXECUTION_TIMEOUT, "seen from outside");
    worker_kill(w, STATUS_EXECUTION_TIMEOUT, &why);
    trio_expect(&t, STATUS_EXECUTION_TIMEOUT, STATUS_EXECUTION_TIMEOUT);
    cr_assert_str_eq(t.calls[2].problem.detail, "seen from outside");
}

static void free_slowly(struct call *c, enum call_event event)
{
    if (event != CALL_DONE)
        return;
    free(c);
    sleep_ns(500 * NS_PER_MS); /* the drainer looks at the deadlines meanwhile */
}

static void *wake_worker(void *unused)
{
    sleep_ns(50 * NS_PER_MS);
    kill(w->process.pid, SIGCONT);
    return unused;
}

/* Another thread than the drainer tells it. */
Test(worker_faults, a_call_may_be_freed_as_soon_as_its_end_is_told)
{
    static struct call endless = {.deadline_ns = DEADLINE_NEVER};
    struct msg_launch  m = launch_of(module, KERNEL_ENDLESS, 0, 1, NULL, 0);
    struct call       *c = malloc(sizeof *c);
    pthread_t          waker;

    cr_assert_eq(worker_submit_launch(w, &m, &endless), STATUS_OK);
    while (call_spin(w, &endless, NS_PER_MS) || !endless.started_wall_ns)
        continue;
    cr_assert_eq(kill(w->process.pid, SIGSTOP), 0);
    *c = (struct call){.on_event = free_slowly, .deadline_ns = deadline()};
    cr_assert_eq(worker_submit_memory_info(w, &(struct msg_memory_info){0}, c), STATUS_OK);
    cr_assert_eq(pthread_create(&waker, NULL, wake_worker, NULL), 0);
    cr_assert_not(call_spin(w, &endless, NS_PER_S));
    pthread_join(waker, NULL);
}

Test(worker_faults, a_calls_own_deadline_kills_the_worker)
{
    struct problem     why = {0};
    static struct call endless = {.deadline_ns = DEADLINE_NEVER};
    struct msg_launch  m;

    m = launch_of(module, KERNEL_ENDLESS, 0, 1, NULL, 0);
    cr_assert_eq(worker_launch(w, &m, NULL, deadline_after_ms(50), &why), STATUS_EXECUTION_TIMEOUT);
    cr_assert_neq(why.detail[0], 0);
    pool_give_back(p, w);
    w = worker_of(p, &module);
    m = launch_of(module, KERNEL_ENDLESS, 0, 1, NULL, 0);
    cr_assert_eq(worker_submit_launch(w, &m, &endless), STATUS_OK);
    cr_assert_eq(worker_stream_sync(w, &(struct msg_stream_sync){0, 1}, NULL, deadline_after_ms(50), &why), STATUS_WORKER_LOST);
}

Test(worker_faults, giving_back_ends_what_is_unfinished)
{
    struct trio t;

    trio_submit(KERNEL_ENDLESS, 30000, &t);
    pool_give_back(p, w);
    w = NULL;
    for (unsigned i = 0; i < 3; i++) {
        cr_assert_eq(t.done[i], 1);
        cr_assert_eq(t.calls[i].status, STATUS_WORKER_LOST);
    }
}

/* A worker that writes nonsense into its completion ring is ended; nobody waits for ever. */
Test(worker_faults, a_hostile_completion_ring_ends_the_worker)
{
    struct trio t;

    trio_submit(KERNEL_ENDLESS, 30000, &t);
    while (!starts)
        sleep_ns(NS_PER_MS);
    /* After this answer the worker has nothing more to say, and does not put its head right again. */
    cr_assert_eq(worker_memory_info(w, &(struct msg_memory_info){0}, NULL, deadline(), NULL), STATUS_OK);
    atomic_fetch_add(&w->completions.shared->head, 100000);
    ring_poke(&w->completions);
    trio_expect(&t, STATUS_WORKER_LOST, STATUS_WORKER_LOST);
}
