/* Sessions on real worker processes with the pool's misbehaving device: what only a process can do to a session. */
#include <sched.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "pool/pool.h"
#include "session/session.h"

enum { BYTES = 9 * STAGING_SLICE_BYTES + 4321 };

static struct pool     *pool;
static struct registry *registry;
static struct session  *session;
static struct arena     arena;
static struct problem   why;
static int              owner;

static void load_module(void)
{
    struct module_spec spec = {.id = SPAN_LITERAL("m"), .kind = IMAGE_PTX, .source = SPAN_LITERAL("fake image")};
    struct module     *m;
    bool               created;

    cr_assert_eq(module_spec_check(&spec, &arena, &why), STATUS_OK);
    cr_assert_eq(module_create(session, &spec, &arena, &m, &created, &why), STATUS_OK, "%s", why.detail);
    module_return(session, m);
}

static void start(void)
{
    struct pool_config  config = {.executable = FAKE_WORKER,
                                  .backends = SPAN_LITERAL("auto"),
                                  .warm_per_device = 1,
                                  .workers_max = 4,
                                  .staging_bytes = 4 * STAGING_SLICE_BYTES,
                                  .start_deadline_ms = 60000};
    struct tenant       tenant = {&owner, "tests", 4, 1 << 30};
    struct session_spec spec = {.id = SPAN_LITERAL("s"), .memory_limit = MEMORY_LIMIT_NONE};
    bool                created;

    arena_init(&arena, 1 << 20);
    cr_assert_eq(pool_create(&pool, &config, &why), STATUS_OK, "%s", why.detail);
    struct registry_config sessions = {.pool = pool, .node = "", .sessions_max = 4};
    cr_assert_eq(registry_create(&registry, &sessions), STATUS_OK);
    cr_assert_eq(session_create(registry, &tenant, &spec, &session, &created, &why), STATUS_OK, "%s", why.detail);
    load_module();
}

static void stop(void)
{
    session_return(session);
    registry_destroy(registry);
    pool_destroy(pool);
    arena_finish(&arena);
}

static struct launch *launch(const char *kernel, uint64_t timeout_ms)
{
    struct launch_spec spec = {.module = SPAN_LITERAL("m"),
                               .kernel = span_of(kernel),
                               .grid = {1, 1, 1},
                               .block = {1, 1, 1},
                               .timeout_ms = timeout_ms,
                               .spin_ns = 1000000};
    struct launch     *l = NULL;
    bool               created;

    cr_assert_eq(launch_submit(session, &spec, &l, &created, &why), STATUS_OK, "%s", why.detail);
    return l;
}

static struct launch_info end_of(struct launch *l)
{
    struct launch_info info;

    while (!waitlist_over(launch_end(l)))
        sched_yield();
    launch_info_of(l, &info);
    return info;
}

static void recover(void)
{
    cr_assert_eq(session_usable(session, &why), STATUS_SESSION_FAULTED);
    cr_assert_eq(session_reset(session, &why), STATUS_OK, "%s", why.detail);
    load_module();
    struct launch *l = launch("descriptors", 0);
    cr_assert_eq(end_of(l).state, LAUNCH_SUCCEEDED);
    launch_return(l);
}

static void write_all(const char *data)
{
    struct transfer *t;
    size_t           n;

    cr_assert_eq(transfer_write_begin(session, SPAN_LITERAL("a"), 0, BYTES, &t, &why), STATUS_OK);
    for (struct span left = {data, BYTES}; left.bytes; left = span_from(left, n)) {
        enum status st = transfer_write(t, left, &n, NULL, &why);
        cr_assert(st == STATUS_OK || st == STATUS_PENDING, "%s", why.detail);
    }
    cr_assert_eq(transfer_write_finish(t, &why), STATUS_OK, "%s", why.detail);
    transfer_destroy(t);
}

static void read_all(char *data)
{
    struct transfer *t;
    size_t           n;

    cr_assert_eq(transfer_read_begin(session, SPAN_LITERAL("a"), 0, BYTES, &t, &why), STATUS_OK);
    cr_assert_eq(transfer_read_wait(t, &why), STATUS_OK, "%s", why.detail);
    for (size_t at = 0; at < BYTES; at += n) {
        enum status st = transfer_read(t, data + at, BYTES - at, &n, NULL);
        cr_assert(st == STATUS_OK || st == STATUS_PENDING, "%s", status_code(st));
    }
    transfer_destroy(t);
}

Test(real_worker, bytes_go_there_and_back_through_few_slices)
{
    char              *sent = malloc(BYTES), *got = calloc(1, BYTES);
    struct buffer_info info;
    bool               created;

    start();
    for (size_t i = 0; i < BYTES; i++)
        sent[i] = (char)(i * 31 + i / 4096);
    cr_assert_eq(buffer_create(session, SPAN_LITERAL("a"), BYTES, &info, &created, &why), STATUS_OK, "%s", why.detail);
    write_all(sent);
    read_all(got);
    cr_assert_eq(memcmp(sent, got, BYTES), 0);
    cr_assert_eq(buffer_delete(session, SPAN_LITERAL("a"), &why), STATUS_OK);
    stop();
    free(sent);
    free(got);
}

Test(real_worker, output_comes_with_the_end)
{
    struct launch *l;

    start();
    l = launch("descriptors", 0);
    cr_assert_eq(end_of(l).state, LAUNCH_SUCCEEDED);
    cr_assert_gt(end_of(l).output.bytes, 0);
    launch_return(l);
    stop();
}

Test(real_worker, a_kernel_past_its_deadline_ends_and_a_reset_heals)
{
    struct launch     *l;
    struct launch_info info;

    start();
    l = launch("endless", 50);
    info = end_of(l);
    cr_assert_eq(info.state, LAUNCH_FAILED);
    cr_assert_eq(info.problem.status, STATUS_EXECUTION_TIMEOUT, "%s", info.problem.detail);
    launch_return(l);
    recover();
    stop();
}

Test(real_worker, a_fault_is_reported_as_such_and_a_reset_heals)
{
    struct launch     *l;
    struct launch_info info;

    start();
    l = launch("fault", 0);
    info = end_of(l);
    cr_assert_eq(info.state, LAUNCH_FAILED);
    cr_assert_eq(info.problem.status, STATUS_KERNEL_FAULT, "%s", info.problem.detail);
    cr_assert_eq(info.problem.cuda_result, 700);
    launch_return(l);
    recover();
    stop();
}

Test(real_worker, a_crash_is_a_lost_worker_and_a_reset_heals)
{
    struct launch     *l;
    struct launch_info info;

    start();
    l = launch("crash", 0);
    info = end_of(l);
    cr_assert_eq(info.state, LAUNCH_FAILED);
    cr_assert_eq(info.problem.status, STATUS_WORKER_LOST, "%s", info.problem.detail);
    launch_return(l);
    recover();
    stop();
}

Test(real_worker, a_refusal_of_the_device_is_the_launchs_alone)
{
    struct launch *l;

    start();
    l = launch("refuse", 0);
    cr_assert_eq(end_of(l).problem.status, STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(session_usable(session, &why), STATUS_OK);
    launch_return(l);
    stop();
}

Test(real_worker, deleting_the_session_ends_an_endless_kernel)
{
    struct launch *l;

    start();
    l = launch("endless", 0);
    cr_assert_eq(session_delete(session, &why), STATUS_OK);
    cr_assert_eq(end_of(l).state, LAUNCH_CANCELLED);
    cr_assert_eq(registry_count(registry), 0);
    launch_return(l);
    stop();
}
