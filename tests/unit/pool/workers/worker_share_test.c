/* Descriptors that travel beside calls to real worker processes: there and back, and what a worker may send instead. */
#include "unit/pool/one_worker.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/descriptor.h"

enum { BYTES = 3 * 4096 };

static unsigned open_descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

static int file(unsigned char **mapped)
{
    int fd = memfd_create("x", 0);

    cr_assert_geq(fd, 0);
    cr_assert_eq(ftruncate(fd, BYTES), 0);
    *mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(*mapped, MAP_FAILED);
    return fd;
}

TestSuite(worker_share, .init = one_sharing_worker_start, .fini = one_worker_end);

Test(worker_share, copies_go_between_a_mapped_file_and_the_device)
{
    unsigned char            *at;
    struct msg_host_map       m = {.bytes = BYTES};
    struct msg_host_map_reply got;
    uint64_t                  to;
    int                       fd = file(&at);

    to = m.beside = memory_of(w, BYTES);
    cr_assert_eq(worker_host_map_file(w, &m, fd, &got, deadline(), NULL), STATUS_OK);
    close(fd);
    cr_assert_neq(got.host, 0);
    memset(at, 7, BYTES);
    cr_assert_eq(worker_mem_write(w, &(struct msg_mem_write){.host = got.host, .to = to, .from = {0, BYTES}}, NULL, deadline(), NULL),
                 STATUS_OK);
    memset(at, 0, BYTES);
    cr_assert_eq(worker_mem_read(w, &(struct msg_mem_read){.host = got.host, .from = to, .to = {1, BYTES - 1}}, NULL, deadline(), NULL),
                 STATUS_OK);
    cr_assert_eq(at[0], 0);
    cr_assert_eq(at[1] + at[BYTES - 1], 14);
    cr_assert_eq(worker_mem_read(w, &(struct msg_mem_read){.host = got.host, .from = to, .to = {1, BYTES}}, NULL, deadline(), NULL),
                 STATUS_INVALID_REQUEST);
    cr_assert_eq(worker_mem_read(w, &(struct msg_mem_read){.host = got.host + 1, .from = to, .to = {0, 1}}, NULL, deadline(), NULL),
                 STATUS_INVALID_REQUEST);
    cr_assert_eq(worker_host_unmap(w, &(struct msg_host_unmap){got.host}, NULL, deadline(), NULL), STATUS_OK);
    cr_assert_eq(worker_host_unmap(w, &(struct msg_host_unmap){got.host}, NULL, deadline(), NULL), STATUS_INVALID_REQUEST);
    cr_assert_eq(worker_mem_read(w, &(struct msg_mem_read){.host = got.host, .from = to, .to = {0, 1}}, NULL, deadline(), NULL),
                 STATUS_INVALID_REQUEST);
    munmap(at, BYTES);
}

Test(worker_share, a_mapping_ends_with_its_allocation_and_its_place_is_free_again)
{
    uint32_t                  before = 0;
    unsigned char            *at;
    struct msg_host_map_reply got;
    int                       fd = file(&at);

    for (unsigned i = 0; i < 2 * SHARES_PER_SESSION_MAX; i++) {
        struct msg_host_map m = {.bytes = BYTES, .beside = memory_of(w, 256)};

        cr_assert_eq(worker_host_map_file(w, &m, fd, &got, deadline(), NULL), STATUS_OK);
        cr_assert_neq(got.host, before);
        before = got.host;
        cr_assert_eq(worker_mem_free(w, &(struct msg_mem_free){m.beside}, NULL, deadline(), NULL), STATUS_OK);
        cr_assert_eq(worker_host_unmap(w, &(struct msg_host_unmap){got.host}, NULL, deadline(), NULL), STATUS_INVALID_REQUEST);
    }
    for (unsigned i = 0; i <= SHARES_PER_SESSION_MAX; i++)
        cr_assert_eq(worker_host_map_file(w, &(struct msg_host_map){.bytes = BYTES, .beside = 1}, fd, &got, deadline(), NULL),
                     i < SHARES_PER_SESSION_MAX ? STATUS_OK : STATUS_QUOTA_EXCEEDED);
    close(fd);
    munmap(at, BYTES);
}

/* The worker had no free descriptor when it arrived. */
Test(worker_share, a_message_that_lost_its_descriptor_harms_its_own_call_alone)
{
    unsigned char            *at;
    struct msg_host_map_reply got;
    const uint64_t            stale = 0;
    int                       fd = file(&at);

    cr_assert_eq(send(w->share_fd, &stale, sizeof stale, 0), (ssize_t)sizeof stale);
    cr_assert_eq(worker_host_map_file(w, &(struct msg_host_map){.bytes = BYTES}, fd, &got, deadline(), NULL), STATUS_OK);
    close(fd);
    munmap(at, BYTES);
}

/* Released mappings stay as long as earlier work may use them. */
Test(worker_share, there_is_room_for_as_many_again_while_a_kernel_runs)
{
    unsigned char            *at;
    struct msg_launch         endless;
    struct msg_host_map_reply got;
    static struct call        launch = {.deadline_ns = DEADLINE_NEVER}, ends[SHARES_PER_SESSION_MAX]; /* the worker's end ends them */
    int                       fd = file(&at);

    endless = launch_of(module, KERNEL_ENDLESS, 0, 1, NULL, 0);
    cr_assert_eq(worker_submit_launch(w, &endless, &launch), STATUS_OK);
    for (unsigned i = 0; i < 2 * SHARES_PER_SESSION_MAX; i++) {
        cr_assert_eq(worker_host_map_file(w, &(struct msg_host_map){.bytes = BYTES}, fd, &got, deadline(), NULL), STATUS_OK);
        if (i >= SHARES_PER_SESSION_MAX)
            continue;
        ends[i] = (struct call){.deadline_ns = DEADLINE_NEVER};
        cr_assert_eq(worker_submit_host_unmap(w, &(struct msg_host_unmap){got.host}, &ends[i]), STATUS_OK);
    }
    cr_assert_eq(worker_host_map_file(w, &(struct msg_host_map){.bytes = BYTES}, fd, &got, deadline(), NULL), STATUS_QUOTA_EXCEEDED);
    close(fd);
    munmap(at, BYTES);
}

Test(worker_share, a_file_becomes_an_allocation)
{
    unsigned char                    *at;
    struct msg_mem_alloc_shared       m = {.bytes = BYTES - 1, .file_bytes = BYTES};
    struct msg_mem_alloc_shared_reply got;
    int                               fd = file(&at);

    cr_assert_eq(worker_mem_alloc_file(w, &m, fd, &got, deadline(), NULL), STATUS_OK);
    close(fd);
    cr_assert_eq(got.taken, BYTES);
    cr_assert_eq(
        worker_mem_fill(w, &(struct msg_mem_fill){.pattern_bytes = 1, .to = got.address, .pattern = 9, .count = 3}, NULL, deadline(), NULL),
        STATUS_OK);
    cr_assert_eq(at[2] * 256 + at[3], 9 * 256);
    cr_assert_eq(
        worker_mem_alloc_shared(w, &(struct msg_mem_alloc_shared){.bytes = 1, .file = 99, .file_bytes = 4096}, NULL, deadline(), NULL),
        STATUS_INVALID_REQUEST, "no such descriptor was sent");
    cr_assert_eq(worker_mem_alloc_shared(w, &(struct msg_mem_alloc_shared){0}, NULL, deadline(), NULL), STATUS_INVALID_REQUEST);
    munmap(at, BYTES);
}

/* As after a call that was refused between the two. */
Test(worker_share, a_descriptor_that_nobody_took_is_not_mistaken_for_another)
{
    unsigned char            *at;
    struct msg_host_map       m = {.bytes = BYTES};
    struct msg_host_map_reply got;
    char                      byte = 0;
    int                       fd = file(&at);

    m.beside = memory_of(w, BYTES);
    for (int i = 0; i < 5; i++) {
        uint64_t stale = ++w->share_number;
        cr_assert_eq(descriptor_send(w->share_fd, &stale, sizeof stale, STDIN_FILENO), (ssize_t)sizeof stale);
    }
    at[0] = 5;
    cr_assert_eq(worker_host_map_file(w, &m, fd, &got, deadline(), NULL), STATUS_OK);
    cr_assert_eq(worker_mem_write(w, &(struct msg_mem_write){.host = got.host, .to = m.beside, .from = {0, 1}}, NULL, deadline(), NULL),
                 STATUS_OK);
    memcpy(&byte, at, 1);
    cr_assert_eq(byte, 5);
    close(fd);
    munmap(at, BYTES);
}

static void expect_export(const char *words, enum status first)
{
    struct msg_mem_export m = {0};
    struct stat           st;
    struct problem        why = {0};
    unsigned              before;

    steer(words);
    p = pool_of_sharing_fakes(0, 2); /* no worker comes or goes meanwhile */
    w = worker_of(p, &module);
    before = open_descriptors();
    for (int i = 0; i < 10; i++) {
        int         fd = -1;
        enum status got = worker_mem_export_file(w, &m, &fd, deadline(), &why);

        cr_assert(got == STATUS_OK || got == first || got == STATUS_OUT_OF_MEMORY, "%s: %s", words, why.detail);
        cr_assert_eq(got == STATUS_OK, fd >= 0);
        if (fd < 0)
            continue;
        if (first == STATUS_OK) {
            cr_assert_eq(fstat(fd, &st), 0);
            cr_assert_eq(st.st_size, 4096);
        }
        cr_assert_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
        close(fd);
    }
    cr_assert_eq(open_descriptors(), before, "%s", words);
    pool_give_back(p, w);
    pool_destroy(p);
}

Test(worker_exchange, a_worker_hands_out_descriptors)
{
    expect_export("", STATUS_OK);
}

/* It may harm its own session, by handing out what is its own; nobody hangs and nothing is left. */
Test(worker_exchange, a_worker_that_sends_something_else_harms_itself_alone)
{
    expect_export("short", STATUS_OK);
    expect_export("guesses", STATUS_OVERLOADED);
    expect_export("floods", STATUS_OVERLOADED);
}

Test(worker_exchange, without_the_setting_nothing_is_exchanged)
{
    struct msg_host_map       m = {.bytes = BYTES};
    struct msg_host_map_reply got;
    int                       fd = STDIN_FILENO, out = -1;

    p = pool_of_fakes(1, 2);
    w = worker_of(p, &module);
    cr_assert_eq(worker_host_map_file(w, &m, fd, &got, deadline(), NULL), STATUS_INVALID_FIELD);
    cr_assert_eq(worker_mem_alloc_file(w, &(struct msg_mem_alloc_shared){.bytes = 1}, fd, NULL, deadline(), NULL), STATUS_INVALID_FIELD);
    cr_assert_eq(worker_mem_export_file(w, &(struct msg_mem_export){0}, &out, deadline(), NULL), STATUS_INVALID_FIELD);
    cr_assert_eq(worker_mem_export(w, &(struct msg_mem_export){0}, NULL, deadline(), NULL), STATUS_INVALID_FIELD);
    cr_assert_eq(worker_host_map(w, &(struct msg_host_map){.file = 1, .bytes = 1}, NULL, deadline(), NULL), STATUS_INVALID_REQUEST);
    cr_assert_eq(out, -1);
    pool_give_back(p, w);
    pool_destroy(p);
}

Test(worker_share, an_ended_worker_takes_and_gives_none)
{
    struct msg_host_map       m = {.bytes = BYTES};
    struct msg_host_map_reply got;
    int                       out = -1;

    worker_kill(w, STATUS_WORKER_LOST, NULL);
    cr_assert_neq(worker_mem_export_file(w, &(struct msg_mem_export){0}, &out, deadline(), NULL), STATUS_OK);
    for (int i = 0; i < 3; i++)
        cr_assert_neq(worker_host_map_file(w, &m, STDIN_FILENO, &got, deadline(), NULL), STATUS_OK);
    cr_assert_eq(out, -1);
}
