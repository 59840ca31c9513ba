/* The events of a session: what is told, in which order, to whom, what is kept, and what somebody is told who comes too late. */
#include "session/bounds.h"
#include "unit/session/session_fixture.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "session/events/events.h"

enum { READERS = 4, LAUNCHES = 200 };

static struct event_cursor cursor;
static struct event        event;
static struct buf          text;

static void not_needed(struct waker *w)
{
    (void)w;
}

static void start(void)
{
    fixture_start(4);
    make_module("m", "code");
    cursor = (struct event_cursor){.types = ~0u, .waker = {.wake = not_needed}};
    buf_init(&text, EVENT_TEXT_BYTES_MAX);
}

TestSuite(events, .init = start, .fini = fixture_end);

static void end(void)
{
    events_unwatch(f.session, &cursor);
    buf_finish(&text);
    fixture_end();
}

static enum event_next next(void)
{
    buf_clear(&text);
    return events_next(f.session, &cursor, &event, &text);
}

static void expect(enum event_type type)
{
    cr_assert_eq(next(), EVENTS_ONE, "after %u", (unsigned)cursor.last);
    cr_assert_eq(event.type, type, "%u is %d", (unsigned)event.id, (int)event.type);
}

static void run(const char *id, const char *kernel)
{
    struct launch *l = launch_of(id, kernel);

    finish_launch(l);
}

static void note_device(unsigned times)
{
    pthread_mutex_lock(&f.session->lock);
    while (times--)
        events_publish_device(f.session, DEVICE_SUSPECT, RECOVERY_NONE);
    pthread_mutex_unlock(&f.session->lock);
}

Test(events, a_launch_is_told_from_its_queueing_to_its_end)
{
    run("one", "noop");
    expect(EVENT_SESSION_STATE);
    cr_assert_eq(event.id, 1);
    cr_assert_eq(event.state.session, SESSION_READY);
    cr_assert_eq(event.generation, 1);
    expect(EVENT_LAUNCH_QUEUED);
    cr_assert_str_eq(event.launch, "one");
    expect(EVENT_LAUNCH_STARTED);
    expect(EVENT_LAUNCH_FINISHED);
    cr_assert_eq(event.id, 4);
    cr_assert_eq(event.state.launch, WORK_SUCCEEDED);
    cr_assert_eq(event.gpu_us, 2.5);
    cr_assert(event.wall_ns && event.status == STATUS_OK);
    cr_assert_eq(next(), EVENTS_NONE);
    end();
}

Test(events, what_a_kernel_prints_comes_before_its_end)
{
    run("one", "print");
    cursor.types = 1u << EVENT_KERNEL_PRINTF | 1u << EVENT_LAUNCH_FINISHED;
    expect(EVENT_KERNEL_PRINTF);
    cr_assert_eq(text.bytes, 8);
    cr_assert(!event.truncated);
    expect(EVENT_LAUNCH_FINISHED);
    cr_assert_eq(text.bytes, 0);
    end();
}

Test(events, a_fault_and_a_reset_are_states)
{
    run("bad", "fault");
    cursor.types = 1u << EVENT_SESSION_STATE;
    expect(EVENT_SESSION_STATE);
    expect(EVENT_SESSION_STATE);
    cr_assert_eq(event.state.session, SESSION_FAULTED);
    cr_assert_eq(event.status, STATUS_KERNEL_FAULT);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    expect(EVENT_SESSION_STATE);
    cr_assert_eq(event.state.session, SESSION_STARTING);
    cr_assert_eq(event.generation, 2);
    expect(EVENT_SESSION_STATE);
    cr_assert_eq(event.state.session, SESSION_READY);
    cursor.last = 0;
    cursor.types = 1u << EVENT_LAUNCH_FINISHED;
    expect(EVENT_LAUNCH_FINISHED);
    cr_assert_eq(event.state.launch, WORK_FAILED);
    cr_assert_eq(event.status, STATUS_KERNEL_FAULT);
    end();
}

struct follower {
    struct event_cursor cursor;
    atomic_uint         rung;
};

static void ring(struct waker *w)
{
    atomic_fetch_add(&((struct follower *)(void *)((char *)w - offsetof(struct follower, cursor.waker)))->rung, 1);
}

Test(events, a_waiting_follower_is_woken_and_an_unregistered_one_is_not)
{
    struct follower one = {.cursor = {.types = ~0u, .waker = {.wake = ring}}}, two = one;

    one.cursor.last = two.cursor.last = events_newest(f.session);
    cr_assert_eq(events_next(f.session, &one.cursor, &event, &text), EVENTS_NONE);
    cr_assert_eq(events_next(f.session, &two.cursor, &event, &text), EVENTS_NONE);
    events_unwatch(f.session, &two.cursor);
    note_device(2);
    cr_assert_eq(atomic_load(&one.rung), 1, "once per registration");
    cr_assert_eq(atomic_load(&two.rung), 0);
    cr_assert_eq(events_next(f.session, &one.cursor, &event, &text), EVENTS_ONE);
    cr_assert_eq(event.state.device, DEVICE_SUSPECT);
    cr_assert_eq(events_next(f.session, &one.cursor, &event, &text), EVENTS_ONE);
    cr_assert_eq(events_next(f.session, &one.cursor, &event, &text), EVENTS_NONE);
    events_unwatch(f.session, &one.cursor);
    end();
}

Test(events, the_ring_keeps_the_last_ones_and_a_gap_is_told_once)
{
    note_device(EVENTS_KEPT_MAX - 1);
    expect(EVENT_SESSION_STATE); /* just not pushed out */
    cursor.last = 0;
    note_device(1);
    cr_assert_eq(next(), EVENTS_GAP);
    cr_assert_eq(cursor.last, 1);
    for (unsigned i = 0; i < EVENTS_KEPT_MAX; i++) {
        expect(EVENT_DEVICE_HEALTH);
        cr_assert_eq(event.id, i + 2);
    }
    cr_assert_eq(next(), EVENTS_NONE);
    cursor.last = 1u << 20; /* of another life of a session of this name */
    cr_assert_eq(next(), EVENTS_GAP);
    cr_assert_eq(next(), EVENTS_NONE);
    end();
}

Test(events, text_is_bounded_and_the_oldest_make_room)
{
    struct worker_session *c;
    struct launch          l = {.state = WORK_SUCCEEDED, .entry = {"big"}, .output_bytes = 2 * EVENT_TEXT_BYTES_MAX};
    unsigned               fit = EVENT_TEXTS_BYTES_MAX / EVENT_TEXT_BYTES_MAX;

    l.output = calloc(1, l.output_bytes);
    cr_assert_eq(worker_session_enter(f.session, &c, &f.why), STATUS_OK);
    l.worker_session = c;
    pthread_mutex_lock(&f.session->lock);
    for (unsigned i = 0; i <= fit; i++)
        launch_publish(&l, EVENT_KERNEL_PRINTF);
    cr_assert_eq(f.session->events.text_bytes, EVENT_TEXTS_BYTES_MAX);
    pthread_mutex_unlock(&f.session->lock);
    worker_session_leave(c);
    cr_assert_eq(next(), EVENTS_GAP);
    for (unsigned i = 0; i < fit; i++) {
        expect(EVENT_KERNEL_PRINTF);
        cr_assert_eq(text.bytes, EVENT_TEXT_BYTES_MAX);
        cr_assert(event.truncated);
    }
    free(l.output);
    end();
}

Test(events, a_sick_device_is_told_once_and_so_is_its_recovery)
{
    cursor.types = 1u << EVENT_DEVICE_HEALTH;
    fake_device_state(DEVICE_QUARANTINED);
    janitor_sweep(f.registry, now_ns());
    fake_device_state(DEVICE_HEALTHY);
    janitor_sweep(f.registry, now_ns());
    janitor_sweep(f.registry, now_ns());
    expect(EVENT_DEVICE_HEALTH);
    cr_assert_eq(event.state.device, DEVICE_QUARANTINED);
    expect(EVENT_DEVICE_HEALTH);
    cr_assert_eq(event.state.device, DEVICE_HEALTHY);
    cr_assert_eq(next(), EVENTS_NONE);
    end();
}

static void allow_faults(uint32_t budget, uint64_t window_s)
{
    pthread_mutex_lock(&f.registry->lock);
    f.registry->config.crash_budget = budget;
    f.registry->config.crash_window_s = window_s;
    pthread_mutex_unlock(&f.registry->lock);
}

Test(events, a_spent_budget_of_faults_is_told_once_and_so_is_its_end)
{
    allow_faults(1, 3600);
    cursor.types = 1u << EVENT_FAULTS_BUDGET;
    janitor_sweep(f.registry, now_ns());
    cr_assert_eq(next(), EVENTS_NONE);
    run("l", "fault");
    janitor_sweep(f.registry, now_ns());
    janitor_sweep(f.registry, now_ns());
    expect(EVENT_FAULTS_BUDGET);
    cr_assert(event.state.spent);
    cr_assert_eq(next(), EVENTS_NONE);
    cr_assert_eq(registry_budgets_spent(f.registry, 0), 1);
    cr_assert_eq(registry_budgets_spent(f.registry, 1), 0);
    allow_faults(2, 2 * 3600); /* as if it had been one of two */
    janitor_sweep(f.registry, now_ns());
    janitor_sweep(f.registry, now_ns());
    expect(EVENT_FAULTS_BUDGET);
    cr_assert_not(event.state.spent);
    cr_assert_eq(next(), EVENTS_NONE);
    cr_assert_eq(registry_budgets_spent(f.registry, 0), 0);
    end();
}

static struct session *borrow(const char *id)
{
    struct session *s = NULL;

    cr_assert_eq(session_borrow(f.registry, &f.tenant, span_of(id), &s, &f.why), STATUS_OK, "%s", f.why.detail);
    return s;
}

Test(events, followers_are_bounded_and_do_not_keep_a_session_from_being_idle)
{
    uint64_t        later = now_ns() + 2 * IDLE_TIMEOUT_S_DEFAULT * NS_PER_S;
    struct session *s, *last;

    session_return(fixture_session("idle", MEMORY_LIMIT_NONE));
    s = last = borrow("idle");
    for (int i = 0; i < EVENT_STREAMS_PER_SESSION_MAX; i++) {
        cr_assert_eq(session_observe(last, &f.why), STATUS_OK);
        last = borrow("idle");
    }
    cr_assert_eq(session_observe(last, &f.why), STATUS_TOO_MANY_IN_FLIGHT);
    cursor.last = events_newest(s);
    janitor_sweep(f.registry, later);
    cr_assert_eq(session_usable(s, NULL), STATUS_OK, "somebody uses it");
    session_unpin(last, false);
    janitor_sweep(f.registry, later);
    await_closed(s);
    cr_assert_eq(events_next(s, &cursor, &event, &text), EVENTS_ONE);
    cr_assert_eq(event.state.session, SESSION_CLOSING);
    cr_assert_eq(events_next(s, &cursor, &event, &text), EVENTS_OVER);
    for (int i = 0; i < EVENT_STREAMS_PER_SESSION_MAX; i++)
        session_unobserve(s);
    end();
}

static atomic_bool all_launched;

static void *follow(void *unused)
{
    struct event_cursor c = {.types = ~0u, .waker = {.wake = not_needed}};
    struct event        e;
    struct buf          t;
    uint64_t            last = 0;
    bool                over = false;

    buf_init(&t, EVENT_TEXT_BYTES_MAX);
    while (!over) {
        bool            done = atomic_load(&all_launched);
        enum event_next got = events_next(f.session, &c, &e, &t);
        if (got == EVENTS_ONE) {
            cr_assert_eq(e.id, last + 1);
            last = e.id;
        }
        over = got == EVENTS_NONE && done;
        buf_clear(&t);
    }
    events_unwatch(f.session, &c);
    buf_finish(&t);
    cr_assert_eq(last, 1 + 3 * LAUNCHES);
    return unused;
}

Test(events, many_follow_while_launches_run)
{
    pthread_t readers[READERS];

    atomic_store(&all_launched, false);
    for (int i = 0; i < READERS; i++)
        cr_assert_eq(pthread_create(&readers[i], NULL, follow, NULL), 0);
    for (int i = 0; i < LAUNCHES; i++)
        run(NULL, "noop");
    atomic_store(&all_launched, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    end();
}
