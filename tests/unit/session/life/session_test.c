/* Sessions: identity, quotas, reset, delete, faults, idle time. */
#include "unit/session/session_fixture.h"

#include <unistd.h>

TestSuite(session, .init = fixture_usual, .fini = fixture_end);

enum { NAP_US = 1000 };

static enum status create(const char *id, uint64_t memory_limit, struct session **out, bool *created)
{
    struct session_spec spec = {.id = span_of(id), .memory_limit = memory_limit};

    return session_create(f.registry, &f.tenant, &spec, out, created, &f.why);
}

Test(session, put_is_idempotent_for_the_same_specification_only)
{
    struct session *again;

    cr_assert_eq(create("s", MEMORY_LIMIT_NONE, &again, &f.created), STATUS_OK);
    cr_assert(!f.created);
    cr_assert_eq(again, f.session);
    session_return(again);
    cr_assert_eq(create("s", 1000, &again, &f.created), STATUS_SPEC_CONFLICT);
    cr_assert_eq(create("Not an id", MEMORY_LIMIT_NONE, &again, &f.created), STATUS_INVALID_FIELD);
    cr_assert_eq(registry_count(f.registry), 1);
}

Test(session, ids_belong_to_their_tenant)
{
    static int      other_owner;
    struct tenant   other = {&other_owner, "other", 4, 1 << 20};
    struct session *s, *mine;

    cr_assert_eq(session_borrow(f.registry, &other, SPAN_LITERAL("s"), &s, &f.why), STATUS_SESSION_NOT_FOUND);
    struct session_spec spec = {.id = SPAN_LITERAL("s"), .memory_limit = MEMORY_LIMIT_NONE};
    cr_assert_eq(session_create(f.registry, &other, &spec, &s, &f.created, &f.why), STATUS_OK);
    cr_assert(f.created);
    cr_assert_neq(s, f.session);
    cr_assert_eq(session_borrow(f.registry, &f.tenant, SPAN_LITERAL("s"), &mine, &f.why), STATUS_OK);
    cr_assert_eq(mine, f.session);
    session_return(mine);
    session_return(s);
}

Test(session, quotas_of_sessions_are_kept_and_return)
{
    struct session *s[4], *more;

    for (int i = 1; i < 4; i++)
        cr_assert_eq(create("", MEMORY_LIMIT_NONE, &s[i], &f.created), STATUS_OK);
    cr_assert_eq(create("", MEMORY_LIMIT_NONE, &more, &f.created), STATUS_QUOTA_EXCEEDED);
    cr_assert_str_eq(f.why.limit_name, "sessions");
    cr_assert_eq(f.why.limit_max, 4);
    cr_assert_eq(session_delete(s[1], &f.why), STATUS_OK);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).own, 3);
    cr_assert_eq(fake_live_workers(), 3);
    cr_assert_eq(create("", MEMORY_LIMIT_NONE, &more, &f.created), STATUS_OK);
    session_return(more);
    for (int i = 1; i < 4; i++)
        session_return(s[i]);
}

Test(session, that_gets_no_worker_leaves_nothing_behind)
{
    struct session *s;

    fake_fail_take(STATUS_NO_WORKER);
    cr_assert_eq(create("t", MEMORY_LIMIT_NONE, &s, &f.created), STATUS_NO_WORKER);
    cr_assert_eq(registry_count(f.registry), 1);
    cr_assert_eq(session_borrow(f.registry, &f.tenant, SPAN_LITERAL("t"), &s, &f.why), STATUS_SESSION_NOT_FOUND);
    fake_fail_take(STATUS_OK);
    cr_assert_eq(create("t", MEMORY_LIMIT_NONE, &s, &f.created), STATUS_OK);
    session_return(s);
}

Test(session, draining_takes_no_new_ones_and_keeps_the_old)
{
    struct session *s;

    registry_drain(f.registry, true);
    cr_assert_eq(create("t", MEMORY_LIMIT_NONE, &s, &f.created), STATUS_DRAINING);
    cr_assert_eq(create("s", MEMORY_LIMIT_NONE, &s, &f.created), STATUS_OK);
    session_return(s);
    make_buffer("a", 16);
}

Test(session, reset_voids_objects_returns_memory_and_counts_the_generation)
{
    struct session_info info;
    struct buffer_info  b;

    make_buffer("a", 1000);
    make_module("m", "code");
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 1000);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    session_info_of(f.session, &info);
    cr_assert_eq(info.generation, 2);
    cr_assert_eq(info.state, SESSION_READY);
    cr_assert_eq(info.buffers + info.modules + info.launches, 0);
    cr_assert_eq(info.memory_bytes, 0);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 0);
    cr_assert_eq(buffer_info_of(f.session, SPAN_LITERAL("a"), &b, &f.why), STATUS_BUFFER_NOT_FOUND);
    make_buffer("a", 2000);
}

Test(session, reset_goes_on_with_a_ready_worker_while_the_old_one_ends)
{
    make_buffer("a", 1000);
    fake_spare(1, 0);
    fake_linger(true);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    cr_assert_eq(session_now().state, SESSION_READY);
    cr_assert_eq(session_now().memory_bytes, 0);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 0);
    cr_assert_eq(fake_live_workers(), 2);
    make_buffer("a", 1000);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 1000);
    fake_end_lingering();
}

static void *reset_it(void *argument)
{
    struct problem why;

    (void)argument;
    return (void *)(intptr_t)session_reset(f.session, &why);
}

static void await_generation(uint64_t generation)
{
    while (session_now().generation < generation)
        usleep(NAP_US);
}

/* A driver may take longer for an end than the next fault does. Beyond the bound a reset waits, and others' resets do not. */
Test(session, resets_in_a_row_do_not_wait_for_the_ends_of_the_old_workers)
{
    struct session *other;
    pthread_t       thread;
    void           *st;

    fixture_start(2);
    other = fixture_session("other", MEMORY_LIMIT_NONE);
    fake_spare(0, 14); /* of 16 */
    fake_linger(true);
    for (unsigned i = 1; i <= RESET_BESIDE_MAX; i++) {
        make_buffer("a", 1000);
        cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK, "%s", f.why.detail);
        cr_assert_eq(session_now().state, SESSION_READY);
        cr_assert_eq(fake_live_workers(), 2 + i);
    }
    pthread_create(&thread, NULL, reset_it, NULL);
    await_generation(2 + RESET_BESIDE_MAX);
    cr_assert_eq(session_reset(other, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert_eq(session_now().state, SESSION_STARTING);
    fake_end_lingering();
    pthread_join(thread, &st);
    cr_assert_eq((enum status)(intptr_t)st, STATUS_OK);
    session_return(other);
}

/* What only serves speed takes the last quarter of nobody. */
Test(session, resets_in_a_row_wait_for_the_ends_of_the_old_workers_while_others_may_lack_one)
{
    pthread_t thread;
    void     *st;

    fake_spare(0, 2); /* of 3 */
    fake_linger(true);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    pthread_create(&thread, NULL, reset_it, NULL);
    await_generation(3);
    usleep(10 * NAP_US); /* for the worker that it must not take */
    cr_assert_eq(session_now().state, SESSION_STARTING);
    cr_assert_eq(fake_live_workers(), 2);
    fake_end_lingering();
    pthread_join(thread, &st);
    cr_assert_eq((enum status)(intptr_t)st, STATUS_OK);
}

Test(session, reset_without_a_ready_worker_ends_the_old_one_first)
{
    make_buffer("a", 1000);
    fake_spare(0, 0);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    cr_assert_eq(fake_live_workers(), 1);
    cr_assert_eq(fake_live_allocations(), 0);
}

static void *make_one_buffer(void *argument)
{
    struct buffer_info info;
    bool               created;
    struct problem     why;

    (void)argument;
    return (void *)(intptr_t)buffer_create(f.session, SPAN_LITERAL("b"), 1000, false, &info, &created, &why);
}

Test(session, memory_that_a_reset_has_not_yet_got_back_is_waited_for)
{
    pthread_t thread;
    void     *st;

    make_buffer("a", 1000);
    fake_script()->allocations_max = 1;
    fake_linger(true);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    pthread_create(&thread, NULL, make_one_buffer, NULL);
    fake_await_refusal();
    fake_end_lingering();
    pthread_join(thread, &st);
    cr_assert_eq((enum status)(intptr_t)st, STATUS_OK);
    cr_assert_eq((enum status)(intptr_t)make_one_buffer(NULL), STATUS_OK, "it exists");
    cr_assert_eq(fake_live_allocations(), 1);
}

Test(session, delete_after_a_reset_waits_for_both_workers)
{
    make_buffer("a", 1000);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    make_buffer("a", 1000);
    cr_assert_eq(session_delete(f.session, &f.why), STATUS_OK);
    cr_assert_eq(fake_live_workers(), 0);
    cr_assert_eq(fake_live_allocations(), 0);
}

Test(session, reset_without_a_worker_is_a_fault_that_another_reset_ends)
{
    fake_spare(0, 0);
    fake_fail_take(STATUS_NO_WORKER);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_NO_WORKER);
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_SESSION_FAULTED);
    fake_fail_take(STATUS_OK);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_OK);
}

Test(session, delete_is_at_once_for_everyone_and_survives_its_borrowers)
{
    struct session    *s;
    struct buffer_info b;

    make_buffer("a", 1000);
    cr_assert_eq(session_borrow(f.registry, &f.tenant, SPAN_LITERAL("s"), &s, &f.why), STATUS_OK);
    cr_assert_eq(session_delete(s, &f.why), STATUS_OK);
    cr_assert_eq(registry_count(f.registry), 0);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 0);
    cr_assert_eq(fake_live_workers(), 0);
    cr_assert_eq(session_delete(s, &f.why), STATUS_SESSION_NOT_FOUND);
    cr_assert_eq(buffer_create(s, SPAN_LITERAL("b"), 1, false, &b, &f.created, &f.why), STATUS_SESSION_NOT_FOUND);
    cr_assert_eq(session_reset(s, &f.why), STATUS_SESSION_NOT_FOUND);
    session_return(s);
}

static void *sync_until_ended(void *result)
{
    struct problem why;

    *(enum status *)result = session_sync(f.session, (struct span){0}, &why);
    return NULL;
}

Test(session, delete_ends_a_call_that_waits_for_an_endless_kernel)
{
    pthread_t      thread;
    enum status    synced = STATUS_OK;
    struct launch *l;

    make_module("m", "code");
    l = launch_of("", "wait");
    fake_await_running();
    pthread_create(&thread, NULL, sync_until_ended, &synced);
    fake_await_queued(1);
    cr_assert_eq(session_delete(f.session, &f.why), STATUS_OK);
    pthread_join(thread, NULL);
    cr_assert_neq(synced, STATUS_OK);
    cr_assert_eq(info_of(l).state, WORK_CANCELLED);
    cr_assert_eq(fake_live_workers(), 0);
    launch_return(l);
}

Test(session, a_dead_worker_faults_the_session_until_reset)
{
    struct session_info info;
    struct buffer_info  b;

    fake_script()->die_at = 0;
    cr_assert_eq(buffer_create(f.session, SPAN_LITERAL("a"), 10, false, &b, &f.created, &f.why), STATUS_WORKER_LOST);
    cr_assert_eq(buffer_create(f.session, SPAN_LITERAL("a"), 10, false, &b, &f.created, &f.why), STATUS_SESSION_FAULTED);
    cr_assert_not_null(strstr(f.why.detail, "worker_lost"));
    session_info_of(f.session, &info);
    cr_assert_eq(info.state, SESSION_FAULTED);
    cr_assert_eq(info.fault.status, STATUS_WORKER_LOST);
    cr_assert_eq(info.memory_bytes, 0);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    make_buffer("a", 10);
}

Test(session, ends_when_it_was_idle_too_long_and_not_while_it_is_used)
{
    uint64_t later = now_ns() + (IDLE_TIMEOUT_S_DEFAULT + 5) * NS_PER_S;

    janitor_sweep(f.registry, later);
    cr_assert_eq(registry_count(f.registry), 1, "it is borrowed");
    session_return(f.session);
    f.session = NULL;
    janitor_sweep(f.registry, now_ns());
    cr_assert_eq(registry_count(f.registry), 1, "the idle time began at the return");
    while (registry_count(f.registry)) /* the janitor's own round may be looking at it right now */
        janitor_sweep(f.registry, later + NS_PER_S);
}

Test(session, with_an_unfinished_launch_is_not_idle)
{
    struct launch *l;

    make_module("m", "code");
    l = launch_of("l", "wait");
    fake_await_running();
    launch_return(l);
    session_patch(f.session, &(struct session_patch){.has_idle_timeout = true, .idle_timeout_s = 1}, &f.why);
    session_return(f.session);
    f.session = NULL;
    janitor_sweep(f.registry, now_ns() + 5 * NS_PER_S);
    cr_assert_eq(registry_count(f.registry), 1);
}

Test(session, with_a_lease_ends_when_nobody_renewed_it_even_at_work)
{
    struct launch *l;
    uint64_t       later;

    make_module("m", "code");
    l = launch_of("l", "wait");
    fake_await_running();
    launch_return(l);
    cr_assert_eq(session_patch(f.session, &(struct session_patch){.has_lease = true, .lease_s = 60}, &f.why), STATUS_OK);
    cr_assert_eq(session_now().lease_s, 60);
    janitor_sweep(f.registry, now_ns() + 3600 * NS_PER_S);
    cr_assert_eq(registry_count(f.registry), 1, "a request is in it");
    session_return(f.session);
    f.session = NULL;
    later = now_ns() + 61 * NS_PER_S;
    while (registry_count(f.registry))
        janitor_sweep(f.registry, later);
    cr_assert_eq(session_borrow(f.registry, &f.tenant, SPAN_LITERAL("s"), &f.session, &f.why), STATUS_SESSION_NOT_FOUND);
    cr_assert_str_eq(f.why.ended_reason, "lease");
}

Test(session, a_renewed_lease_does_not_restart_the_idle_time)
{
    uint64_t renewed;

    cr_assert_eq(session_patch(f.session, &(struct session_patch){.has_lease = true, .lease_s = 60}, &f.why), STATUS_OK);
    session_return(f.session);
    renewed = f.session->used_ns + 30 * NS_PER_S;
    cr_assert_eq(session_borrow(f.registry, &f.tenant, SPAN_LITERAL("s"), &f.session, &f.why), STATUS_OK);
    session_renew(f.session);
    session_return_unnoticed(f.session);
    cr_assert_geq(f.session->renewed_ns, f.session->used_ns);
    f.session->renewed_ns = renewed;
    janitor_sweep(f.registry, renewed + 59 * NS_PER_S);
    cr_assert_eq(registry_count(f.registry), 1);
    f.session->renewed_ns = f.session->used_ns + IDLE_TIMEOUT_S_DEFAULT * NS_PER_S;
    renewed = f.session->renewed_ns;
    f.session = NULL;
    while (registry_count(f.registry))
        janitor_sweep(f.registry, renewed + NS_PER_S);
    cr_assert_eq(session_borrow(f.registry, &f.tenant, SPAN_LITERAL("s"), &f.session, &f.why), STATUS_SESSION_NOT_FOUND);
    cr_assert_str_eq(f.why.ended_reason, "idle");
    cr_assert_eq(f.why.ended_limit_s, IDLE_TIMEOUT_S_DEFAULT);
}

Test(session, gets_no_longer_times_than_the_service_gives)
{
    struct session_spec  spec = {.id = SPAN_LITERAL("t"), .memory_limit = MEMORY_LIMIT_NONE, .idle_timeout_s = 500, .max_lifetime_s = 500};
    struct session_patch p = {.has_idle_timeout = true, .idle_timeout_s = IDLE_TIMEOUT_S_MAX};
    struct session_info  info;
    struct session      *s;

    f.registry->config.idle_timeout_s_max = 100;
    f.registry->config.lifetime_s_max = 200;
    cr_assert_eq(session_create(f.registry, &f.tenant, &spec, &s, &f.created, &f.why), STATUS_OK);
    session_info_of(s, &info);
    cr_assert_eq(info.idle_timeout_s, 100);
    cr_assert_eq(info.max_lifetime_s, 200);
    session_return(s);
    cr_assert_eq(session_patch(f.session, &p, &f.why), STATUS_OK);
    cr_assert_eq(session_now().idle_timeout_s, 100);
    p.idle_timeout_s = 99;
    cr_assert_eq(session_patch(f.session, &p, &f.why), STATUS_OK);
    cr_assert_eq(session_now().idle_timeout_s, 99);
}

Test(session, ends_at_its_lifetime_even_when_it_is_used)
{
    janitor_sweep(f.registry, now_ns() + (LIFETIME_S_MAX + 5ull) * NS_PER_S);
    await_closed(f.session);
    cr_assert_eq(registry_count(f.registry), 0);
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_SESSION_NOT_FOUND);
}

/* Others' deadlines are kept in the same thread. */
Test(session, its_end_by_the_janitor_waits_for_no_worker)
{
    fake_linger(true);
    janitor_sweep(f.registry, now_ns() + (LIFETIME_S_MAX + 5ull) * NS_PER_S);
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_SESSION_NOT_FOUND);
    cr_assert_eq(fake_live_workers(), 1);
    cr_assert_eq(registry_count(f.registry), 1, "it counts until its worker is back");
    fake_end_lingering();
    await_closed(f.session);
    cr_assert_eq(fake_live_workers(), 0);
    cr_assert_eq(registry_count(f.registry), 0);
}

Test(session, its_end_by_the_janitor_waits_for_a_worker_from_before_a_reset, .timeout = 180)
{
    fake_linger(true);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    janitor_sweep(f.registry, now_ns() + (LIFETIME_S_MAX + 5ull) * NS_PER_S);
    cr_assert_eq(fake_live_workers(), 2);
    fake_end_lingering();
    await_closed(f.session);
    cr_assert_eq(fake_live_workers(), 0);
}

/* Its worker has ended, but a request is in it, maybe for a compilation. */
Test(session, one_that_is_in_use_does_not_hold_up_the_ends_of_others, .timeout = 180)
{
    struct session        *other;
    struct worker_session *c;

    fixture_start(2);
    other = fixture_session("other", MEMORY_LIMIT_NONE);
    cr_assert_eq(worker_session_enter(other, &c, &f.why), STATUS_OK);
    cr_assert_eq(session_reset(other, &f.why), STATUS_OK);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    settle();
    worker_session_leave(c);
    session_return(other);
}

Test(session, patch_changes_labels_and_idle_time)
{
    struct label         label = {"team", "blue"};
    struct session_patch p = {.has_labels = true, .labels = &label, .labels_count = 1, .has_idle_timeout = true, .idle_timeout_s = 5};
    struct session_info  info;

    cr_assert_eq(session_patch(f.session, &p, &f.why), STATUS_OK);
    session_info_of(f.session, &info);
    cr_assert_eq(info.idle_timeout_s, 5);
    cr_assert_eq(info.labels_count, 1);
    cr_assert_str_eq(info.labels[0].value, "blue");
    p.idle_timeout_s = IDLE_TIMEOUT_S_MAX + 1;
    cr_assert_eq(session_patch(f.session, &p, &f.why), STATUS_INVALID_FIELD);
}

Test(session, lists_the_tenants_own_in_pages)
{
    struct session_info items[2];
    struct page         page = {.limit = 2};
    struct session     *s;

    s = fixture_session("a", MEMORY_LIMIT_NONE);
    session_return(s);
    s = fixture_session("z", MEMORY_LIMIT_NONE);
    session_return(s);
    cr_assert_eq(session_list(f.registry, &f.tenant, &page, items), 2);
    cr_assert_str_eq(items[0].id, "a");
    cr_assert_str_eq(items[1].id, "s");
    cr_assert_str_eq(page.next, "s");
    char cursor[ID_BYTES];
    memcpy(cursor, page.next, sizeof cursor);
    page.cursor = span_of(cursor);
    cr_assert_eq(session_list(f.registry, &f.tenant, &page, items), 1);
    cr_assert_str_eq(items[0].id, "z");
    cr_assert_str_eq(page.next, "");
}

static void *create_same(void *out)
{
    struct session_spec spec = {.id = SPAN_LITERAL("same"), .memory_limit = MEMORY_LIMIT_NONE};
    struct session     *s;
    struct problem      why;
    bool                created = false;

    if (!session_create(f.registry, &f.tenant, &spec, &s, &created, &why)) {
        *(int *)out = created ? 1 : 2;
        session_return(s);
    }
    return NULL;
}

Test(session, is_made_once_however_many_ask)
{
    pthread_t threads[4];
    int       outcome[4] = {0};
    int       made = 0;

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, create_same, &outcome[i]);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_neq(outcome[i], 0);
        made += outcome[i] == 1;
    }
    cr_assert_eq(made, 1);
    cr_assert_eq(fake_live_workers(), 2);
}

enum { BUSY_THREADS = 3, BUSY_ROUNDS = 40 };

static void *keep_busy(void *unused)
{
    (void)unused;
    for (int i = 0; i < BUSY_ROUNDS; i++) {
        struct session    *s;
        struct buffer_info b;
        struct problem     why;
        bool               created;
        if (session_borrow(f.registry, &f.tenant, SPAN_LITERAL("s"), &s, &why))
            continue;
        if (!buffer_create(s, (struct span){0}, 64, false, &b, &created, &why)) {
            buffer_fill(s, span_of(b.id), 0, 64, 7, 4, SPAN_LITERAL("named"), &why);
            buffer_delete(s, span_of(b.id), NULL, &why);
        }
        session_return(s);
    }
    return NULL;
}

Test(session, resets_while_others_are_at_work_lose_nothing)
{
    pthread_t threads[BUSY_THREADS];

    for (int i = 0; i < BUSY_THREADS; i++)
        pthread_create(&threads[i], NULL, keep_busy, NULL);
    for (int i = 0; i < 10; i++)
        cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK, "%s", f.why.detail);
    for (int i = 0; i < BUSY_THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    cr_assert_eq(session_now().memory_bytes, 0);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 0);
}

Test(session, a_hot_device_takes_no_new_launch_and_a_cool_one_does)
{
    struct launch_spec spec = {.module = SPAN_LITERAL("m"), .kernel = SPAN_LITERAL("noop"), .grid = {1, 1, 1}, .block = {1, 1, 1}};
    struct launch     *l = NULL;

    make_module("m", "code");
    fake_device_state(DEVICE_HOT);
    cr_assert_eq(launch_submit(f.session, &spec, &l, &f.created, &f.why), STATUS_OVERLOADED);
    cr_assert_null(l);
    make_buffer("b", 16); /* what is no work is served */
    fake_device_state(DEVICE_HEALTHY);
    cr_assert_eq(launch_submit(f.session, &spec, &l, &f.created, &f.why), STATUS_OK, "%s", f.why.detail);
    launch_return(l);
}

Test(session, a_failed_device_ends_its_sessions_with_its_own_reason)
{
    janitor_sweep(f.registry, now_ns());
    cr_assert_eq(session_now().state, SESSION_READY);
    fake_device_fail();
    janitor_sweep(f.registry, now_ns());
    cr_assert_eq(session_now().state, SESSION_FAULTED);
    cr_assert_eq(session_now().fault.status, STATUS_DEVICE_ERROR);
    cr_assert(strcmp(session_now().fault.detail, "fake: the device failed") == 0);
    janitor_sweep(f.registry, now_ns()); /* once is enough */
}

Test(session, a_launch_gets_no_more_time_by_what_its_worker_reports_of_others)
{
    struct launch *l;

    make_module("m", "code");
    l = launch_of("l", "wait");
    fake_await_running();
    pthread_mutex_lock(&f.session->lock);
    f.session->worker_session->last_event_ns = now_ns() + 60 * NS_PER_S;
    pthread_mutex_unlock(&f.session->lock);
    janitor_sweep(f.registry, now_ns() + 61 * NS_PER_S + LAUNCH_GRACE_MS * NS_PER_MS);
    await_end(l);
    cr_assert_eq(info_of(l).problem->status, STATUS_EXECUTION_TIMEOUT);
    launch_return(l);
}
