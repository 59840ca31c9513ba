/* Device memory that comes back late, or lies in another session's cache: an allocation waits for it, and only for it. */
#include <pthread.h>

#include "unit/session/session_fixture.h"

static enum status make(struct session *s, const char *id)
{
    struct buffer_info info;
    struct problem     why;
    bool               created;

    return buffer_create(s, span_of(id), 1000, false, &info, &created, &why);
}

static void start(void)
{
    fixture_start(4);
    fake_script()->allocations_max = 1;
}

TestSuite(pending_free, .init = start, .fini = fixture_end);

/* Makes a buffer and deletes it, in a device that keeps the memory for its session. */
static void make_and_delete(struct session *s)
{
    fake_script()->caches = true;
    cr_assert_eq(make(s, "a"), STATUS_OK);
    cr_assert_eq(buffer_delete(s, SPAN_LITERAL("a"), NULL, &f.why), STATUS_OK);
}

static struct session *with_a_cache(void)
{
    struct session *other = fixture_session("other", MEMORY_LIMIT_NONE);

    make_and_delete(other);
    return other;
}

Test(pending_free, what_nobody_gave_back_is_refused_at_once)
{
    cr_assert_eq(make(f.session, "a"), STATUS_OK);
    cr_assert_eq(make(f.session, "b"), STATUS_DEVICE_MEMORY_EXHAUSTED);
    cr_assert_eq(fake_script()->refused, 1);
}

Test(pending_free, a_buffer_of_its_own_that_comes_back_late_is_waited_for)
{
    fake_script()->late = 3;
    make_and_delete(f.session);
    cr_assert_eq(make(f.session, "b"), STATUS_OK);
    cr_assert_eq(fake_script()->refused, 3);
}

Test(pending_free, a_deleted_session_whose_memory_comes_back_late_is_waited_for)
{
    struct session *other;

    other = fixture_session("other", MEMORY_LIMIT_NONE);
    cr_assert_eq(make(other, "a"), STATUS_OK);
    fake_script()->late = 3;
    cr_assert_eq(session_delete(other, &f.why), STATUS_OK);
    session_return(other);
    cr_assert_eq(make(f.session, "b"), STATUS_OK);
    cr_assert_eq(fake_script()->refused, 3);
}

Test(pending_free, what_a_trim_gave_back_is_waited_for)
{
    struct session_memory unused;

    fake_script()->late = 2;
    make_and_delete(f.session);
    cr_assert_eq(session_memory_of(f.session, MEMORY_TRIM, &unused, &f.why), STATUS_OK);
    cr_assert_eq(make(f.session, "b"), STATUS_OK);
    cr_assert_eq(fake_script()->refused, 2);
}

Test(pending_free, the_cache_of_an_idle_session_is_given_back_first)
{
    struct session *other = with_a_cache();

    cr_assert_eq(make(f.session, "b"), STATUS_OK);
    cr_assert_eq(fake_script()->refused, 1);
    session_return(other);
}

Test(pending_free, a_session_at_work_keeps_its_cache)
{
    struct session        *other = with_a_cache();
    struct worker_session *c;

    cr_assert_eq(worker_session_enter(other, &c, &f.why), STATUS_OK);
    cr_assert_eq(make(f.session, "b"), STATUS_DEVICE_MEMORY_EXHAUSTED);
    cr_assert_eq(fake_script()->refused, 1);
    worker_session_leave(c);
    cr_assert_eq(make(f.session, "b"), STATUS_OK);
    session_return(other);
}

/* It may be busy for long, or hang. */
Test(pending_free, an_idle_session_whose_worker_does_not_answer_is_not_waited_for, .timeout = 180)
{
    struct session *other = with_a_cache();

    fake_script()->held = true;
    cr_assert_eq(make(f.session, "b"), STATUS_DEVICE_MEMORY_EXHAUSTED);
    fake_script()->held = false;
    cr_assert_eq(make(f.session, "b"), STATUS_OK);
    session_return(other);
}

Test(pending_free, what_never_comes_is_waited_for_so_long)
{
    fake_script()->late = UINT32_MAX;
    make_and_delete(f.session);
    cr_assert_eq(make(f.session, "b"), STATUS_DEVICE_MEMORY_EXHAUSTED);
    cr_assert_gt(fake_script()->refused, 1);
}

static void *make_here(void *session)
{
    return (void *)(intptr_t)make(session, "b");
}

static void *delete_it(void *session)
{
    struct problem why;

    return (void *)(intptr_t)session_delete(session, &why);
}

/* Else its own end would be waited for, which waits for it. */
Test(pending_free, who_waits_for_memory_lets_go_when_its_own_session_ends)
{
    struct session *other;
    pthread_t       waits, deletes;
    void           *st;

    cr_assert_eq(make(f.session, "a"), STATUS_OK);
    other = fixture_session("other", MEMORY_LIMIT_NONE);
    fake_linger(true);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    pthread_create(&waits, NULL, make_here, other);
    fake_await_refusal();
    fake_linger(false); /* its own worker ends at once */
    pthread_create(&deletes, NULL, delete_it, other);
    pthread_join(waits, &st);
    cr_assert_neq((enum status)(intptr_t)st, STATUS_OK);
    fake_end_lingering();
    pthread_join(deletes, &st);
    cr_assert_eq((enum status)(intptr_t)st, STATUS_OK);
    session_return(other);
}

Test(pending_free, a_reset_takes_a_new_worker_beside_the_end_of_the_old_one)
{
    fixture_start(4);
    fake_spare(0, 2);
    fake_linger(true);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    cr_assert_eq(fake_live_workers(), 2);
    fake_end_lingering();
}

static void *let_go(void *unused)
{
    fake_await_take();
    fake_fail_take(STATUS_OK);
    fake_end_lingering();
    return unused;
}

Test(pending_free, a_place_that_somebody_else_took_is_waited_for)
{
    pthread_t thread;

    fixture_start(4);
    fake_spare(0, 2);
    fake_linger(true);
    fake_fail_take(STATUS_NO_WORKER);
    pthread_create(&thread, NULL, let_go, NULL);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK, "%s", f.why.detail);
    pthread_join(thread, NULL);
    settle();
    cr_assert_eq(fake_live_workers(), 1);
}

Test(pending_free, nobody_waits_behind_another_worker_that_does_not_end)
{
    struct session *other;

    fixture_start(4);
    other = fixture_session("other", MEMORY_LIMIT_NONE);
    fake_linger(true);
    cr_assert_eq(session_reset(other, &f.why), STATUS_OK);
    fake_linger(false);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    settle(); /* while the first one still ends */
    cr_assert_eq(fake_live_workers(), 3);
    fake_end_lingering();
    session_return(other);
}
