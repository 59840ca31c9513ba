/* Shares: all or nothing, counted twice over, copied in ranges, gone with whatever they belong to. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/memory/share.h"
#include "unit/session/session_fixture.h"

static void start_usual(void)
{
    fixture_start(8);
}

TestSuite(share, .init = start_usual, .fini = fixture_end);

enum { MIB = 1 << 20 };

static int open_share(const char *id, bool expect_created)
{
    struct share_view v = {.fd = -1, .created = !expect_created};

    cr_assert_eq(share_open(f.session, span_of(id), &v, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert_eq(v.created, expect_created);
    cr_assert_geq(v.fd, 0);
    return v.fd;
}

static enum status try_open(struct session *s, const char *id)
{
    struct share_view v = {.fd = -1};
    enum status       st = share_open(s, span_of(id), &v, &f.why);

    if (!st)
        close(v.fd);
    else
        cr_assert_eq(v.fd, -1);
    return st;
}

static enum status move(const char *id, enum share_direction direction, uint64_t offset, uint64_t bytes)
{
    return share_move(f.session, span_of(id), direction, offset, bytes, &f.why);
}

static uint64_t blocks_of(int fd)
{
    struct stat st;

    cr_assert_eq(fstat(fd, &st), 0);
    return (uint64_t)st.st_blocks;
}

/* At the latest when the old worker has ended. */
static void await_taken_back(int fd)
{
    uint64_t deadline = deadline_after_ms(60000);

    while (blocks_of(fd)) {
        cr_assert(deadline_left_ns(deadline));
        usleep(1000);
    }
}

static unsigned char *map(int fd, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    cr_assert_neq(at, MAP_FAILED);
    return at;
}

Test(share, bytes_go_there_and_back_and_need_no_staging)
{
    const size_t   bytes = 6 * MIB + 77;
    unsigned char *at;
    int            fd;

    fixture_start(2);
    make_buffer("a", bytes);
    fd = open_share("a", true);
    at = map(fd, bytes);
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(i * 7 + i / MIB);
    cr_assert_eq(move("a", SHARE_TO_DEVICE, 0, bytes), STATUS_OK, "%s", f.why.detail);
    memset(at, 0, bytes);
    cr_assert_eq(move("a", SHARE_FROM_DEVICE, 0, bytes), STATUS_OK, "%s", f.why.detail);
    for (size_t i = 0; i < bytes; i++)
        cr_assert_eq(at[i], (unsigned char)(i * 7 + i / MIB));
    cr_assert_eq(move("a", SHARE_FROM_DEVICE, bytes, 1), STATUS_RANGE_NOT_SATISFIABLE);
    cr_assert_eq(move("a", SHARE_TO_DEVICE, 1, UINT64_MAX), STATUS_RANGE_NOT_SATISFIABLE);
    cr_assert_eq(move("a", SHARE_TO_DEVICE, bytes, 0), STATUS_OK);
    munmap(at, bytes);
    close(fd);
    cr_assert_eq(fake_slices_used(), 0);
}

Test(share, both_quotas_refuse_and_everything_comes_back)
{
    struct session *small;
    unsigned        before;
    int             fd;

    small = fixture_session("small", 3 * MIB);
    fake_spare(0, 0); /* no worker starts or ends meanwhile, which has descriptors, too */
    before = open_descriptors();
    make_buffer("a", 74 * MIB);
    make_buffer("b", 7 * MIB);
    fd = open_share("a", true);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 155 * MIB);
    cr_assert_eq(try_open(f.session, "b"), STATUS_OVERLOADED);
    cr_assert_str_eq(f.why.limit_name, "shared_bytes");
    cr_assert_eq(f.why.limit_used, 74 * MIB);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 155 * MIB);
    {
        struct buffer_info info;
        cr_assert_eq(buffer_create(small, SPAN_LITERAL("c"), 2 * MIB, false, &info, &f.created, &f.why), STATUS_OK);
    }
    cr_assert_eq(try_open(small, "c"), STATUS_QUOTA_EXCEEDED);
    cr_assert_str_eq(f.why.limit_name, "session_memory_bytes");
    cr_assert_eq(share_close(f.session, SPAN_LITERAL("a"), &f.why), STATUS_OK);
    cr_assert_eq(blocks_of(fd), 0);
    cr_assert_eq(share_close(f.session, SPAN_LITERAL("a"), &f.why), STATUS_SHARE_NOT_FOUND);
    cr_assert_eq(move("a", SHARE_TO_DEVICE, 0, 1), STATUS_SHARE_NOT_FOUND);
    cr_assert_eq(try_open(f.session, "nobody"), STATUS_BUFFER_NOT_FOUND);
    cr_assert_eq(try_open(f.session, "b"), STATUS_OK);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("b"), NULL, &f.why), STATUS_OK);
    close(fd);
    cr_assert_eq(open_descriptors(), before);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 76 * MIB);
    session_return(small);
}

Test(share, a_reset_and_a_deletion_end_it)
{
    int fd, again;

    make_buffer("a", MIB);
    fd = open_share("a", true);
    again = open_share("a", false);
    cr_assert_eq(blocks_of(fd), MIB / 512);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    await_taken_back(fd);
    cr_assert_eq(blocks_of(again), 0);
    close(fd);
    close(again);
    make_buffer("a", MIB);
    fd = open_share("a", true);
    cr_assert_eq(session_delete(f.session, &f.why), STATUS_OK);
    cr_assert_eq(blocks_of(fd), 0);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 0);
    close(fd);
}

/* What was shared does not count any more. */
Test(share, after_a_reset_there_is_room_again_at_once)
{
    int fd;

    for (int i = 0; i < 5; i++) {
        make_buffer("a", 50 * MIB);
        fd = open_share("a", true);
        cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
        close(fd);
    }
}

Test(share, without_the_setting_there_is_none)
{
    struct registry_config config = {.node = "", .sessions_max = 8};

    session_return(f.session);
    registry_destroy(f.registry);
    config.pool = fake_pool();
    config.cache = f.cache;
    cr_assert_eq(registry_create(&f.registry, &config), STATUS_OK);
    f.session = fixture_session("s", MEMORY_LIMIT_NONE);
    make_buffer("a", MIB);
    cr_assert_eq(try_open(f.session, "a"), STATUS_FEATURE_DISABLED);
}

/* A share needs three descriptors, and none is left at the first, second, third. */
Test(share, no_descriptor_left_changes_nothing)
{
    struct rlimit usual, tight;
    unsigned      before;

    make_buffer("a", MIB);
    fake_spare(0, 0);
    before = open_descriptors();
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
    for (unsigned room = 0; room < 3; room++) {
        int fd = dup(0); /* the lowest that is free: all below are taken */
        close(fd);
        tight = (struct rlimit){(rlim_t)fd + room, usual.rlim_max};
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
        cr_assert(status_retryable(try_open(f.session, "a")));
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
        share_close(f.session, SPAN_LITERAL("a"), &f.why); /* at the third it is there */
        cr_assert_eq(open_descriptors(), before);
        cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, MIB);
    }
    cr_assert_eq(try_open(f.session, "a"), STATUS_OK);
}

Test(share, a_worker_that_fails_while_bytes_move_leaves_nothing)
{
    int fd;

    fixture_start(4);
    make_buffer("a", 5 * MIB);
    fd = open_share("a", true);
    fake_script()->die_at = 0;
    cr_assert_neq(move("a", SHARE_TO_DEVICE, 0, 5 * MIB), STATUS_OK);
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_SESSION_FAULTED);
    cr_assert_eq(move("a", SHARE_FROM_DEVICE, 0, MIB), STATUS_SESSION_FAULTED);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    await_taken_back(fd);
    make_buffer("a", 5 * MIB);
    close(fd);
    fd = open_share("a", true);
    fake_script()->die_at = 0;
    cr_assert_neq(move("a", SHARE_FROM_DEVICE, 0, 5 * MIB), STATUS_OK);
    cr_assert_eq(session_delete(f.session, &f.why), STATUS_OK);
    cr_assert_eq(fake_slices_used(), 0);
    cr_assert_eq(blocks_of(fd), 0);
    close(fd);
}

struct mover {
    pthread_t   thread;
    enum status st;
};

static void *move_slowly(void *argument)
{
    struct mover  *m = argument;
    struct problem why;

    m->st = share_move(f.session, SPAN_LITERAL("a"), SHARE_TO_DEVICE, 0, 8 * MIB, &why);
    return NULL;
}

Test(share, memory_that_is_being_copied_from_lives_until_the_copy_ends)
{
    struct mover m;
    int          fd;

    make_buffer("a", 8 * MIB);
    fd = open_share("a", true);
    fake_script()->held = true;
    cr_assert_eq(pthread_create(&m.thread, NULL, move_slowly, &m), 0);
    fake_await_queued(1);
    cr_assert_eq(share_close(f.session, SPAN_LITERAL("a"), &f.why), STATUS_OK);
    cr_assert_eq(blocks_of(fd), 8 * MIB / 512);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 8 * MIB);
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), NULL, &f.why), STATUS_BUFFER_BUSY);
    fake_script()->held = false;
    pthread_join(m.thread, NULL);
    cr_assert_eq(m.st, STATUS_OK);
    cr_assert_eq(blocks_of(fd), 0);
    close(fd);
}

/* Behind more launches than the ring holds a copy waits with nothing at the worker yet: that may not let go before the copy has come. */
Test(share, a_copy_that_is_still_to_be_submitted_finds_the_memory_there)
{
    enum { N = 2 * RING_SLOTS };
    static struct launch *l[N];
    struct mover          m;
    uint64_t              epoch;
    int                   fd;

    make_module("m", "any");
    make_buffer("a", 8 * MIB);
    fd = open_share("a", true);
    for (int i = 0; i < N; i++)
        l[i] = launch_of(NULL, i ? "noop" : "wait");
    epoch = session_epoch(f.session);
    cr_assert_eq(pthread_create(&m.thread, NULL, move_slowly, &m), 0);
    while (session_epoch(f.session) == epoch)
        usleep(1000);
    cr_assert_eq(share_close(f.session, SPAN_LITERAL("a"), &f.why), STATUS_OK);
    cr_assert_eq(share_close(f.session, SPAN_LITERAL("a"), &f.why), STATUS_SHARE_NOT_FOUND);
    fake_script()->released = true;
    pthread_join(m.thread, NULL);
    cr_assert_eq(m.st, STATUS_OK);
    cr_assert_eq(session_sync(f.session, (struct span){0}, &f.why), STATUS_OK);
    cr_assert_eq(fake_hosts_mapped(), 0);
    cr_assert_eq(blocks_of(fd), 0);
    for (int i = 0; i < N; i++)
        launch_return(l[i]);
    close(fd);
}

Test(share, a_copy_under_way_ends_with_the_session)
{
    struct mover m;
    int          fd;

    fixture_start(2);
    make_buffer("a", 8 * MIB);
    fd = open_share("a", true);
    fake_script()->held = true;
    cr_assert_eq(pthread_create(&m.thread, NULL, move_slowly, &m), 0);
    fake_await_queued(1);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    pthread_join(m.thread, NULL);
    cr_assert_neq(m.st, STATUS_OK);
    await_taken_back(fd);
    close(fd);
    fake_script()->held = false;
}

/* Every call that makes one fails once, then the worker dies at it. */
Test(share, a_worker_that_does_not_map_it_leaves_nothing)
{
    fixture_start(2);
    make_buffer("a", MIB);
    for (enum status st = STATUS_OUT_OF_MEMORY; st; st = st == STATUS_OUT_OF_MEMORY ? STATUS_QUOTA_EXCEEDED : STATUS_OK) {
        fake_fail_at(0, st);
        cr_assert_eq(try_open(f.session, "a"), st);
        cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, MIB);
        cr_assert_eq(fake_hosts_mapped(), 0);
        cr_assert_eq(move("a", SHARE_TO_DEVICE, 0, 1), STATUS_SHARE_NOT_FOUND);
    }
    fake_script()->die_at = 0;
    cr_assert_neq(try_open(f.session, "a"), STATUS_OK);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    cr_assert_eq(registry_use_of(f.registry, &f.tenant).memory_bytes, 0);
}

Test(share, the_worker_lets_go_with_the_share_and_with_the_buffer)
{
    fixture_start(2);
    make_buffer("a", MIB);
    make_buffer("b", MIB);
    for (int i = 0; i < 3; i++) {
        close(open_share("a", true));
        close(open_share("b", i == 0));
        cr_assert_eq(fake_hosts_mapped(), 2);
        cr_assert_eq(share_close(f.session, SPAN_LITERAL("a"), &f.why), STATUS_OK);
        cr_assert_eq(session_sync(f.session, (struct span){0}, &f.why), STATUS_OK); /* behind it */
        cr_assert_eq(fake_hosts_mapped(), 1);
    }
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("b"), NULL, &f.why), STATUS_OK);
    cr_assert_eq(fake_hosts_mapped(), 0);
}
