/* A worker process seen from its shared memory: its first report, hostile commands, and its end with the parent. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>

#include "base/deadline.h"
#include "ipc/shm.h"
#include "ipc/worker_fds.h"
#include "pool/workers/spawn.h"

struct process {
    struct spawned spawned;
    struct shm     shm;
    struct ring    commands, completions;
    int            control_fd;
};

static void process_start(struct process *p, const char *backend)
{
    char  argument[64];
    char *argv[] = {(char *)(uintptr_t)FAKE_WORKER, (char *)(uintptr_t) "--role=worker", argument, (char *)(uintptr_t) "--index=0", NULL};
    struct spawn_fd fds[2];
    int             child_end = -1;

    snprintf(argument, sizeof argument, "--backend=%s", backend);
    cr_assert_eq(shm_create(&p->shm, STAGING_SLICE_BYTES), STATUS_OK);
    ring_init(&p->commands, p->shm.commands, sizeof(struct command));
    ring_init(&p->completions, p->shm.completions, sizeof(struct completion));
    cr_assert_eq(spawn_pipe(&child_end, &p->control_fd), STATUS_OK);
    fds[0] = (struct spawn_fd){p->shm.fd, WORKER_SHM_FD};
    fds[1] = (struct spawn_fd){child_end, WORKER_CONTROL_FD};
    cr_assert_eq(spawn_start(FAKE_WORKER, argv, fds, 2, &p->spawned), STATUS_OK);
    descriptor_close(&child_end);
}

static struct completion next(struct process *p)
{
    struct completion c = {.kind = UINT32_MAX};
    size_t            bytes;
    uint64_t          until = deadline_after_ms(60000);

    while (ring_pop(&p->completions, &c, &bytes) == STATUS_PENDING && deadline_left_ns(until) > 0)
        ring_wait(&p->completions, 100 * NS_PER_MS);
    return c;
}

static int process_end(struct process *p)
{
    int wait_status;

    spawn_reap(&p->spawned, &wait_status);
    descriptor_close(&p->spawned.pid_fd);
    descriptor_close(&p->control_fd);
    shm_finish(&p->shm);
    return wait_status;
}

static void expect_ready(struct process *p)
{
    struct completion c = next(p);

    cr_assert_eq(c.call, 0);
    cr_assert_eq(c.kind, COMPLETION_DONE);
    cr_assert_eq(c.status, STATUS_OK);
}

static void push(struct process *p, uint64_t call, uint32_t message, uint32_t bytes, size_t really)
{
    static struct command c;

    c = (struct command){.call = call, .message = message, .bytes = bytes};
    cr_assert_eq(ring_push(&p->commands, &c, really), STATUS_OK);
}

Test(worker_process, an_unknown_backend_is_reported_and_the_process_ends)
{
    struct process    p;
    struct completion c;
    int               wait_status;

    process_start(&p, "nonsense");
    c = next(&p);
    cr_assert_eq(c.call, 0);
    cr_assert_eq(c.status, STATUS_DEVICE_NOT_FOUND);
    cr_assert_eq(c.worker_session_lost, 1);
    wait_status = process_end(&p);
    cr_assert(WIFEXITED(wait_status));
    cr_assert_neq(WEXITSTATUS(wait_status), 0);
}

Test(worker_process, commands_of_a_wrong_length_or_kind_are_refused)
{
    const size_t   fixed = offsetof(struct command, body);
    struct process p;

    process_start(&p, "fake");
    expect_ready(&p);
    push(&p, 1, MESSAGE_COUNT, 0, fixed);
    push(&p, 2, UINT32_MAX, 8, fixed + 8);
    push(&p, 3, MESSAGE_MEM_ALLOC, sizeof(struct msg_mem_alloc) - 1, fixed + sizeof(struct msg_mem_alloc) - 1);
    push(&p, 4, MESSAGE_MEM_ALLOC, sizeof(struct msg_mem_alloc), fixed + sizeof(struct msg_mem_alloc) - 1);
    push(&p, 5, MESSAGE_LAUNCH, 8, fixed + 8);
    push(&p, 6, MESSAGE_MEM_ALLOC, 0, 3);
    for (uint64_t call = 1; call <= 5; call++) {
        struct completion c = next(&p);

        cr_assert_eq(c.call, call);
        cr_assert_eq(c.status, STATUS_INVALID_REQUEST);
        cr_assert_eq(c.worker_session_lost, 0);
    }
    cr_assert_eq(next(&p).status, STATUS_INVALID_REQUEST);
    push(&p, 7, MESSAGE_MEMORY_INFO, sizeof(struct msg_memory_info), fixed + sizeof(struct msg_memory_info));
    cr_assert_eq(next(&p).status, STATUS_OK);
    spawn_kill(&p.spawned);
    process_end(&p);
}

Test(worker_process, impossible_indices_end_it)
{
    struct process p;

    process_start(&p, "fake");
    expect_ready(&p);
    atomic_store(&p.commands.shared->head, 1000000);
    ring_poke(&p.commands);
    cr_assert(WIFEXITED(process_end(&p)));
}

Test(worker_process, it_ends_when_its_parent_is_gone_and_ignores_polite_signals)
{
    struct process p;

    process_start(&p, "fake");
    expect_ready(&p);
    cr_assert_eq(kill(p.spawned.pid, SIGTERM), 0);
    cr_assert_eq(kill(p.spawned.pid, SIGINT), 0);
    push(&p, 1, MESSAGE_MEMORY_INFO, sizeof(struct msg_memory_info), offsetof(struct command, body) + sizeof(struct msg_memory_info));
    cr_assert_eq(next(&p).status, STATUS_OK);
    descriptor_close(&p.control_fd);
    cr_assert(WIFEXITED(process_end(&p)));
}
