/* The pool: devices, warm workers, limits, respawn, quarantine and healing, with real processes. */
#include "unit/pool/fixture.h"

#include <signal.h>
#include <unistd.h>

#include "pool/devices/devices.h"

/* Waits for the condition; the time only bounds a failure. */
#define EVENTUALLY(condition)                                                                                                              \
    do {                                                                                                                                   \
        uint64_t until = deadline_after_ms(60000);                                                                                         \
        while (!(condition) && deadline_left_ns(until) > 0)                                                                                \
            usleep(2000);                                                                                                                  \
        cr_assert(condition, "did not come true: " #condition);                                                                            \
    } while (0)

/* Those of most tests. */
static struct pool   *p;
static struct worker *w;
static struct problem why;

static void end(void)
{
    if (p)
        pool_destroy(p);
}

TestSuite(pool, .fini = end);

static struct pool_device device_at(unsigned i)
{
    struct pool_device d;

    cr_assert(pool_device_at(p, i, &d));
    return d;
}

Test(pool, devices_are_found_and_described)
{
    struct pool_device d;

    steer("two");
    p = pool_of_fakes(0, 4);
    cr_assert_eq(pool_device_count(p), 2);
    d = device_at(1);
    cr_assert_str_eq(d.id, "fake:1");
    cr_assert_str_eq(d.backend, "fake");
    cr_assert_str_eq(d.info.name, "Fake");
    cr_assert_eq(d.state, DEVICE_HEALTHY);
    cr_assert_eq(pool_device_find(p, span_of("fake:1")), 1);
    cr_assert_eq(pool_device_find(p, span_of("fake:2")), -1);
    cr_assert_eq(pool_device_find(p, span_of("")), -1);
    cr_assert_eq(pool_device_find(p, span_of("fake")), -1);
    cr_assert_not(pool_device_at(p, 2, &d));
    cr_assert(pool_device_refresh(p, 0, &d));
    cr_assert_eq(d.info.warp_size, 32);
    cr_assert_eq(pool_ready(p, 0, NULL), STATUS_OK);
    cr_assert_eq(pool_ready(p, 60000, NULL), STATUS_OK);
}

Test(pool, a_session_goes_to_the_least_used_device_that_it_may_have)
{
    struct worker *first = NULL, *second = NULL;

    steer("two");
    p = pool_of_fakes(0, 4);
    cr_assert_eq(pool_device_choose(p, span_of("")), 0);
    cr_assert_eq(pool_take(p, 0, &first, NULL), STATUS_OK);
    cr_assert_eq(pool_device_choose(p, span_of("")), 1);
    cr_assert_eq(pool_device_choose(p, span_of("fake")), 1);
    cr_assert_eq(pool_device_choose(p, span_of("fake:0")), 0);
    cr_assert_eq(pool_device_choose(p, span_of("fake:2")), -1);
    cr_assert_eq(pool_device_choose(p, span_of("other")), -1);
    cr_assert_eq(pool_device_missing(p, span_of("other"), &why), STATUS_DEVICE_NOT_FOUND);
    cr_assert_eq(pool_take(p, 1, &second, NULL), STATUS_OK);
    cr_assert_eq(pool_device_choose(p, span_of("fake")), 0);
    cr_assert(pool_device_fits(p, 1, span_of("")) && pool_device_fits(p, 1, span_of("fake")) && pool_device_fits(p, 1, span_of("fake:1")));
    cr_assert_not(pool_device_fits(p, 1, span_of("fake:0")) || pool_device_fits(p, 2, span_of("")));
    pool_give_back(p, first);
    pool_give_back(p, second);
}

Test(pool, no_device_is_told_with_the_reason)
{
    steer("none");
    cr_assert_eq(pool_try(&p, 1, 4, &why), STATUS_DEVICE_NOT_FOUND);
    cr_assert_not_null(strstr(why.detail, "told to have none"), "%s", why.detail);
}

static void nothing(int number)
{
    (void)number;
}

/* Only one at a time: another would end the read that must not be waited in. */
static void *interrupt(void *thread)
{
    usleep(500 * 1000);
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    return NULL;
}

Test(pool, a_signal_does_not_make_a_count_that_hangs_be_waited_for_for_ever, .timeout = 180)
{
    struct pool_config config = {.workers_max = 1, .start_deadline_ms = 2000};
    struct sigaction   action = {.sa_handler = nothing};
    pthread_t          self = pthread_self(), thread;

    steer("hang-count");
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, interrupt, &self);
    cr_assert_eq(fake_pool_create(&p, config, &why), STATUS_DEVICE_NOT_FOUND);
    pthread_join(thread, NULL);
}

Test(pool, a_device_that_never_opens_fails_the_start)
{
    steer("fail-open");
    cr_assert_eq(pool_try(&p, 2, 4, &why), STATUS_DEVICE_ERROR);
    cr_assert_str_eq(why.detail, "the fake was told not to open");
}

Test(pool, one_bad_device_leaves_the_others)
{
    steer("two fail-second");
    p = pool_of_fakes(1, 4);
    cr_assert_eq(device_at(0).state, DEVICE_HEALTHY);
    cr_assert_eq(device_at(1).state, DEVICE_QUARANTINED);
    cr_assert_eq(pool_take(p, 1, &w, &why), STATUS_DEVICE_ERROR);
    cr_assert_eq(pool_take(p, 0, &w, &why), STATUS_OK);
    cr_assert_eq(pool_take(p, 7, &w, &why), STATUS_DEVICE_NOT_FOUND);
    cr_assert_eq(pool_ready(p, 60000, &why), STATUS_OK, "%s", why.detail);
    cr_assert_str_eq(why.detail, "device fake:1 is not healthy");
}

Test(pool, a_wrong_canary_lets_no_worker_in)
{
    steer("wrong-canary");
    cr_assert_eq(pool_try(&p, 1, 4, &why), STATUS_DEVICE_ERROR);
    cr_assert_str_eq(why.detail, "the device computed a wrong result");
}

Test(pool, warm_workers_are_refilled_and_the_limit_holds)
{
    struct worker *taken[4] = {0};

    p = pool_of_fakes(2, 3);
    EVENTUALLY(device_at(0).workers_warm == 2);
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(pool_take(p, 0, &taken[i], &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(device_at(0).workers_used, 3);
    cr_assert_eq(pool_take(p, 0, &taken[3], &why), STATUS_NO_WORKER);
    cr_assert_eq(why.limit_max, 3);
    pool_give_back(p, taken[1]);
    cr_assert_eq(pool_take(p, 0, &taken[1], &why), STATUS_OK);
    for (unsigned i = 0; i < 3; i++)
        pool_give_back(p, taken[i]);
    EVENTUALLY(device_at(0).workers_warm == 2);
    cr_assert_eq(device_at(0).workers_used, 0);
    pool_give_back(p, NULL);
}

Test(pool, without_a_warm_set_workers_are_made_on_demand)
{
    struct worker *a = NULL, *b = NULL;

    steer("two");
    p = pool_of_fakes(0, 2);
    cr_assert_eq(pool_take(p, 0, &a, NULL), STATUS_OK);
    cr_assert_eq(pool_take(p, 1, &b, NULL), STATUS_OK);
    cr_assert_eq(worker_device(a), 0);
    cr_assert_eq(worker_device(b), 1);
}

Test(pool, warm_workers_of_one_device_make_room_for_another)
{
    struct worker *taken[2] = {0};

    steer("two");
    p = pool_of_fakes(1, 2);
    EVENTUALLY(device_at(0).workers_warm + device_at(1).workers_warm == 2);
    cr_assert_eq(pool_take(p, 1, &taken[0], NULL), STATUS_OK);
    cr_assert_eq(pool_take(p, 1, &taken[1], NULL), STATUS_OK);
    cr_assert_eq(device_at(1).workers_used, 2);
}

/* 0 while there is none. */
static pid_t device_monitor_pid(void)
{
    pid_t pid;

    pthread_mutex_lock(&p->lock);
    pid = p->devices[0].device_monitor ? p->devices[0].device_monitor->process.pid : 0;
    pthread_mutex_unlock(&p->lock);
    return pid;
}

/* It exists and has not reported yet. */
static bool device_monitor_asked(void)
{
    bool asked;

    pthread_mutex_lock(&p->lock);
    asked = p->devices[0].device_monitor && !p->devices[0].device_monitor_known &&
            worker_state_of(p->devices[0].device_monitor) == WORKER_READY;
    pthread_mutex_unlock(&p->lock);
    return asked;
}

Test(pool, a_dead_device_monitor_is_replaced)
{
    pid_t was;

    p = pool_of_fakes(1, 4);
    was = device_monitor_pid();
    cr_assert_eq(kill(was, SIGKILL), 0);
    EVENTUALLY(device_at(0).restarts >= 1 && device_monitor_pid() != 0 && device_monitor_pid() != was);
    EVENTUALLY(pool_ready(p, 0, NULL) == STATUS_OK);
}

/* A management library may take seconds, and callers wait for workers. */
Test(pool, workers_start_while_a_new_device_monitor_does_not_tell_about_its_device, .timeout = 180)
{
    pid_t was;

    p = pool_of_fakes(0, 4);
    was = device_monitor_pid();
    steer("hang-info");
    cr_assert_eq(kill(was, SIGKILL), 0);
    EVENTUALLY(device_monitor_asked() && device_monitor_pid() != was);
    cr_assert_eq(pool_take(p, 0, &w, &why), STATUS_OK, "%s", why.detail);
    cr_assert(device_monitor_asked(), "it is still being asked");
    steer("");
    pool_give_back(p, w);
}

Test(pool, a_device_that_stops_working_is_quarantined_and_heals, .timeout = 180)
{
    p = pool_of_fakes(1, 4);
    EVENTUALLY(device_at(0).workers_warm == 1);
    steer("wrong-canary");
    cr_assert_eq(kill(device_monitor_pid(), SIGKILL), 0);
    EVENTUALLY(device_at(0).state == DEVICE_QUARANTINED);
    cr_assert_eq(device_at(0).workers_warm, 0);
    cr_assert_eq(pool_take(p, 0, &w, &why), STATUS_DEVICE_ERROR);
    cr_assert_eq(pool_ready(p, 60000, &why), STATUS_DEVICE_ERROR);
    cr_assert_eq(pool_device_choose(p, span_of("")), -1);
    cr_assert_eq(pool_device_choose(p, span_of("fake:0")), 0);
    steer("");
    EVENTUALLY(device_at(0).state == DEVICE_HEALTHY);
    cr_assert_eq(pool_take(p, 0, &w, &why), STATUS_OK);
    pool_give_back(p, w);
}

Test(pool, a_device_that_stops_working_goes_through_every_step_that_is_allowed, .timeout = 180)
{
    enum recovery_step last;

    p = pool_of_fakes(0, 4);
    cr_assert_eq(pool_take(p, 0, &w, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(pool_device_recovery(p, 0, &last), 0);
    cr_assert_eq(last, RECOVERY_NONE);
    steer("wrong-canary");
    cr_assert_eq(kill(device_monitor_pid(), SIGKILL), 0);
    EVENTUALLY(pool_device_verdict(p, 0, &why) == STATUS_DEVICE_RESET);
    cr_assert_eq(pool_device_recovery(p, 0, &last), 2);
    cr_assert_eq(last, RECOVERY_SOFT_RESET);
    cr_assert_eq(device_at(0).state, DEVICE_RESETTING);
    worker_kill(w, STATUS_DEVICE_RESET, &why); /* as the session's janitor does */
    EVENTUALLY(device_at(0).state == DEVICE_QUARANTINED);
    cr_assert_eq(pool_device_recovery(p, 0, &last), 2, "no vendor's tool is allowed");
    pool_give_back(p, w);
    steer("");
    EVENTUALLY(device_at(0).state == DEVICE_HEALTHY);
}

Test(pool, a_reset_is_over_when_the_last_process_was_replaced, .timeout = 180)
{
    struct worker *other = NULL;
    uint64_t       ticket;
    pid_t          was;

    p = pool_of_fakes(1, 4);
    was = device_monitor_pid();
    cr_assert_eq(pool_take(p, 0, &w, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(pool_reset_begin(p, 0, true, &why), STATUS_FEATURE_DISABLED);
    cr_assert_eq(pool_reset_begin(p, 0, false, &why), STATUS_OK);
    cr_assert_eq(pool_reset_begin(p, 0, false, &why), STATUS_DEVICE_BUSY);
    cr_assert_eq(pool_take(p, 0, &other, &why), STATUS_OVERLOADED);
    cr_assert_not(pool_take_ready(p, 0, &other));
    cr_assert_eq(pool_device_accepts(p, 0, &why), STATUS_OVERLOADED);
    cr_assert_eq(pool_device_verdict(p, 0, &why), STATUS_OK, "running work may finish");
    cr_assert_eq(pool_ready(p, 60000, &why), STATUS_DEVICE_ERROR);
    pool_reset_cancel(p, 0);
    cr_assert_eq(pool_device_accepts(p, 0, &why), STATUS_OK);
    cr_assert_eq(device_monitor_pid(), was, "nothing has happened");

    cr_assert_eq(pool_reset_begin(p, 0, false, &why), STATUS_OK);
    ticket = pool_reset_go_on(p, 0);
    usleep(300 * 1000);
    cr_assert_eq(pool_reset_outcome(p, 0, ticket, &why), STATUS_PENDING);
    cr_assert_eq(pool_device_verdict(p, 0, &why), STATUS_DEVICE_RESET);
    worker_kill(w, STATUS_DEVICE_RESET, &why);
    EVENTUALLY(pool_reset_outcome(p, 0, ticket, &why) != STATUS_PENDING);
    cr_assert_eq(pool_reset_outcome(p, 0, ticket, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(pool_device_verdict(p, 0, &why), STATUS_OK);
    cr_assert_neq(device_monitor_pid(), was);
    pool_give_back(p, w);
    cr_assert_eq(pool_take(p, 0, &other, &why), STATUS_OK, "%s", why.detail);
    pool_give_back(p, other);
}

Test(pool, a_reset_of_a_device_that_does_not_come_up_says_why, .timeout = 180)
{
    uint64_t ticket;

    p = pool_of_fakes(0, 4);
    steer("wrong-canary");
    cr_assert_eq(pool_reset_begin(p, 0, false, &why), STATUS_OK);
    ticket = pool_reset_go_on(p, 0);
    EVENTUALLY(pool_reset_outcome(p, 0, ticket, &why) == STATUS_DEVICE_ERROR);
    cr_assert_str_eq(why.detail, "the device computed a wrong result");
    steer("");
    EVENTUALLY(device_at(0).state == DEVICE_HEALTHY);
}

Test(pool, a_full_device_is_no_sick_device)
{
    p = pool_of_fakes(0, 4);
    steer("short-open");
    cr_assert_eq(pool_take(p, 0, &w, &why), STATUS_NO_WORKER);
    cr_assert_not_null(strstr(why.detail, "told to be full"), "%s", why.detail);
    cr_assert_eq(device_at(0).state, DEVICE_HEALTHY);
    steer("");
    EVENTUALLY(pool_take(p, 0, &w, &why) == STATUS_OK);
    pool_give_back(p, w);
}

static uint64_t next_try(void)
{
    uint64_t ns;

    pthread_mutex_lock(&p->lock);
    ns = p->devices[0].next_try_ns;
    pthread_mutex_unlock(&p->lock);
    return ns;
}

Test(pool, the_end_of_a_worker_ends_the_pause_of_a_shortage)
{
    struct worker *a = NULL, *b = NULL;

    p = pool_of_fakes(0, 4);
    cr_assert_eq(pool_take(p, 0, &a, &why), STATUS_OK);
    steer("short-open");
    cr_assert_eq(pool_take(p, 0, &b, &why), STATUS_NO_WORKER);
    cr_assert_neq(next_try(), 0);
    steer("");
    pool_give_back(p, a);
    cr_assert_eq(next_try(), 0, "what was missing may be back with it");
    cr_assert_eq(pool_take(p, 0, &b, &why), STATUS_OK, "%s", why.detail);
    pool_give_back(p, b);
}

/* ---- counting again ---- */

static bool state_is(unsigned i, enum device_state state)
{
    return i < pool_device_count(p) && device_at(i).state == state;
}

static void recount(const char *words)
{
    steer(words);
    cr_assert_eq(pool_count_again(p, NULL), STATUS_OK);
}

/* Devices are counted now; or, if `wanted`, also when a count is still to begin. */
static bool counts(bool wanted)
{
    bool runs;

    pthread_mutex_lock(&p->lock);
    runs = counter_runs(&p->counter) || (wanted && p->count_wanted);
    pthread_mutex_unlock(&p->lock);
    return runs;
}

static unsigned index_of(unsigned i)
{
    unsigned index;

    pthread_mutex_lock(&p->lock);
    index = p->devices[i].index;
    pthread_mutex_unlock(&p->lock);
    return index;
}

Test(pool, a_device_that_is_counted_later_is_added, .timeout = 180)
{
    p = pool_of_fakes(1, 4);
    recount("two");
    EVENTUALLY(state_is(1, DEVICE_HEALTHY));
    cr_assert_str_eq(device_at(1).id, "fake:1");
    cr_assert_str_eq(device_at(1).info.uuid, "FAKE-b");
    cr_assert_eq(pool_take(p, 1, &w, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(worker_device(w), 1);
    pool_give_back(p, w);
    EVENTUALLY(device_at(1).workers_warm == 1);
}

Test(pool, a_device_that_is_not_counted_is_lost_until_it_is, .timeout = 180)
{
    struct worker *kept = NULL, *none = NULL;
    uint64_t       ticket;

    steer("two");
    p = pool_of_fakes(1, 6);
    cr_assert_eq(pool_take(p, 0, &kept, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(pool_take(p, 1, &w, &why), STATUS_OK, "%s", why.detail);
    recount("");
    EVENTUALLY(state_is(1, DEVICE_LOST));
    cr_assert_eq(pool_device_verdict(p, 1, &why), STATUS_DEVICE_LOST);
    cr_assert_eq(pool_device_verdict(p, 0, &why), STATUS_OK);
    cr_assert_eq(pool_device_accepts(p, 1, &why), STATUS_DEVICE_LOST);
    cr_assert_eq(pool_take(p, 1, &none, &why), STATUS_DEVICE_LOST);
    cr_assert_not(pool_take_ready(p, 1, &none));
    cr_assert_eq(pool_reset_begin(p, 1, false, &why), STATUS_DEVICE_LOST);
    cr_assert_eq(pool_device_choose(p, span_of("")), 0);
    cr_assert_eq(pool_ready(p, 60000, &why), STATUS_OK);
    cr_assert_str_eq(why.detail, "device fake:1 is lost");
    cr_assert_eq(device_at(1).workers_warm, 0);
    cr_assert_eq(device_at(1).info.free_bytes, 0);
    cr_assert_eq(device_at(1).info.sensors[0].state, SENSOR_DEVICE_LOST);
    cr_assert_eq(worker_state_of(kept), WORKER_READY);
    worker_kill(w, STATUS_DEVICE_LOST, &why); /* as the session's janitor does */
    pool_give_back(p, w);
    recount("two");
    EVENTUALLY(state_is(1, DEVICE_HEALTHY));
    cr_assert_eq(pool_take(p, 1, &w, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(pool_device_verdict(p, 1, &why), STATUS_OK);
    cr_assert_eq(pool_device_count(p), 2);

    cr_assert_eq(pool_reset_begin(p, 1, false, &why), STATUS_OK); /* and lost while running work may finish */
    recount("");
    EVENTUALLY(state_is(1, DEVICE_LOST));
    ticket = pool_reset_go_on(p, 1);
    cr_assert_eq(pool_reset_outcome(p, 1, ticket, &why), STATUS_DEVICE_LOST);
    pool_give_back(p, w);
    recount("two");
    EVENTUALLY(state_is(1, DEVICE_HEALTHY));
    pool_give_back(p, kept);
}

Test(pool, a_device_that_is_lost_during_its_reset_ends_it, .timeout = 180)
{
    uint64_t ticket;

    steer("two");
    p = pool_of_fakes(0, 4);
    cr_assert_eq(pool_take(p, 1, &w, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(pool_reset_begin(p, 1, false, &why), STATUS_OK);
    ticket = pool_reset_go_on(p, 1); /* it waits for the worker's end */
    recount("");
    EVENTUALLY(pool_reset_outcome(p, 1, ticket, &why) == STATUS_DEVICE_LOST);
    cr_assert(state_is(1, DEVICE_LOST));
    pool_give_back(p, w);
}

static const char *uuid_of(unsigned i)
{
    static char        uuid[DEVICE_UUID_BYTES];
    struct pool_device d;

    cr_assert(pool_device_refresh(p, i, &d));
    memcpy(uuid, d.info.uuid, sizeof uuid);
    return uuid;
}

Test(pool, a_device_is_known_by_its_uuid_whatever_its_index, .timeout = 180)
{
    pid_t was;

    steer("two");
    p = pool_of_fakes(0, 4);
    recount("swapped");
    EVENTUALLY(!counts(true) && index_of(0) == 1);
    was = device_monitor_pid();
    cr_assert_eq(kill(was, SIGKILL), 0);
    EVENTUALLY(device_monitor_pid() != was && state_is(0, DEVICE_HEALTHY) && pool_ready(p, 0, &why) == STATUS_OK && !why.detail[0]);
    cr_assert_str_eq(uuid_of(0), "FAKE-a");
    steer("two"); /* nobody has counted */
    was = device_monitor_pid();
    cr_assert_eq(kill(was, SIGKILL), 0);
    EVENTUALLY(device_monitor_pid() != was && pool_ready(p, 0, &why) == STATUS_OK && !why.detail[0]);
    cr_assert_str_eq(uuid_of(0), "FAKE-a");
    cr_assert_eq(index_of(0), 1);
}

Test(pool, another_device_under_an_old_index_is_another_one, .timeout = 180)
{
    p = pool_of_fakes(0, 4);
    recount("second");
    EVENTUALLY(state_is(0, DEVICE_LOST) && state_is(1, DEVICE_HEALTHY));
    cr_assert_str_eq(device_at(1).id, "fake:1");
    cr_assert_str_eq(uuid_of(1), "FAKE-b");
    recount("");
    EVENTUALLY(state_is(0, DEVICE_HEALTHY) && state_is(1, DEVICE_LOST));
    cr_assert_eq(pool_device_count(p), 2);
}

Test(pool, devices_without_a_uuid_are_known_by_their_index, .timeout = 180)
{
    steer("two nameless");
    p = pool_of_fakes(0, 4);
    recount("nameless");
    EVENTUALLY(state_is(1, DEVICE_LOST));
    recount("two"); /* the driver tells more than it did */
    EVENTUALLY(state_is(1, DEVICE_HEALTHY));
    cr_assert_eq(pool_device_count(p), 2);
    recount("two nameless"); /* and less */
    EVENTUALLY(!counts(true));
    cr_assert_eq(pool_device_count(p), 2);
    cr_assert(state_is(0, DEVICE_HEALTHY) && state_is(1, DEVICE_HEALTHY));
}

Test(pool, a_count_that_fails_changes_nothing, .timeout = 180)
{
    static const char *const words[] = {"hang-count", "crash-count", "unknown"};
    struct pool_config       config = {.workers_max = 4, .start_deadline_ms = 3000};

    steer("two");
    cr_assert_eq(fake_pool_create(&p, config, &why), STATUS_OK, "%s", why.detail);
    for (unsigned i = 0; i < COUNT(words); i++) {
        recount(words[i]);
        EVENTUALLY(!counts(true));
        cr_assert(state_is(0, DEVICE_HEALTHY) && state_is(1, DEVICE_HEALTHY), "%s", words[i]);
    }
    recount("none");
    EVENTUALLY(state_is(0, DEVICE_LOST) && state_is(1, DEVICE_LOST));
    cr_assert_eq(pool_ready(p, 60000, &why), STATUS_DEVICE_ERROR);
    cr_assert_eq(pool_device_choose(p, span_of("")), -1);
}

Test(pool, requests_that_come_during_a_count_make_one_more, .timeout = 180)
{
    p = pool_of_fakes(0, 4);
    recount("hang-count");
    EVENTUALLY(counts(false));
    usleep(300 * 1000); /* it has read its words */
    for (unsigned i = 0; i < 1000; i++)
        recount("two");
    pthread_mutex_lock(&p->lock);
    spawn_kill(&p->counter.process);
    pthread_mutex_unlock(&p->lock);
    EVENTUALLY(state_is(1, DEVICE_HEALTHY));
    EVENTUALLY(!counts(true));
}

Test(pool, a_pool_ends_during_a_count)
{
    p = pool_of_fakes(1, 4);
    recount("hang-count");
    EVENTUALLY(counts(false));
}
