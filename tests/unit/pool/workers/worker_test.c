/* Calls to a real worker process: results, order, many threads, staging, output, cancelling. */
#include "unit/pool/one_worker.h"

#include "ipc/kernel_table.h"
#include "ipc/vendor_plan.h"

#include <stdio.h>
#include <stdlib.h>

static void start(void)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
    setenv("CUDA_SECRET", "7", 1);
    one_worker_start();
}

TestSuite(worker, .init = start, .fini = one_worker_end);

struct add_params {
    uint64_t at;
    uint32_t count;
};

static void write_numbers(uint64_t to, const void *data, uint32_t bytes)
{
    struct msg_mem_write m = {.to = to};
    struct slice         s;

    cr_assert_eq(staging_take(w, bytes, &s, NULL), STATUS_OK);
    memcpy(s.data, data, bytes);
    m.from = (struct shm_ref){s.ref.offset, bytes};
    cr_assert_eq(worker_mem_write(w, &m, NULL, deadline(), NULL), STATUS_OK);
    staging_give(w, &s);
}

static void read_numbers(uint64_t from, void *data, uint32_t bytes)
{
    struct msg_mem_read m = {.from = from};
    struct slice        s;

    cr_assert_eq(staging_take(w, bytes, &s, NULL), STATUS_OK);
    m.to = (struct shm_ref){s.ref.offset, bytes};
    cr_assert_eq(worker_mem_read(w, &m, NULL, deadline(), NULL), STATUS_OK);
    memcpy(data, s.data, bytes);
    staging_give(w, &s);
}

Test(worker, writes_launches_and_reads_in_order)
{
    uint32_t                in[3] = {1, 10, 100}, out[3];
    struct add_params       params;
    struct msg_launch       m;
    struct msg_launch_reply r;

    params = (struct add_params){memory_of(w, sizeof in), 3};
    write_numbers(params.at, in, sizeof in);
    m = launch_of(module, KERNEL_ADD_ONE, 0, 1, &params, 12);
    for (unsigned i = 0; i < 5; i++)
        cr_assert_eq(worker_launch(w, &m, &r, deadline(), NULL), STATUS_OK);
    read_numbers(params.at, out, sizeof out);
    cr_assert_eq(out[0], 6);
    cr_assert_eq(out[1], 15);
    cr_assert_eq(out[2], 105);
    cr_assert_eq(worker_mem_copy(w, &(struct msg_mem_copy){0, params.at, params.at + 4, 4}, NULL, deadline(), NULL), STATUS_OK);
    cr_assert_eq(worker_mem_fill(w, &(struct msg_mem_fill){.pattern_bytes = 2, .to = params.at + 8, .pattern = 0xabcd, .count = 2}, NULL,
                                 deadline(), NULL),
                 STATUS_OK);
    read_numbers(params.at, out, sizeof out);
    cr_assert_eq(out[0], 15);
    cr_assert_eq(out[2], 0xabcdabcd);
    cr_assert_eq(worker_mem_free(w, &(struct msg_mem_free){params.at}, NULL, deadline(), NULL), STATUS_OK);
}

static void expect_invalid(enum status st)
{
    cr_assert_eq(st, STATUS_INVALID_REQUEST);
}

Test(worker, bad_references_are_refused_and_harm_nothing)
{
    struct problem    why = {0};
    struct msg_launch m;

    m = launch_of(module, KERNEL_ENDLESS, 0, 1, NULL, 0);
    expect_invalid(worker_mem_write(w, &(struct msg_mem_write){.to = 1, .from = {staging_bytes(w), 1}}, NULL, deadline(), &why));
    cr_assert_neq(why.detail[0], 0);
    expect_invalid(worker_mem_read(w, &(struct msg_mem_read){.from = 1, .to = {1, UINT64_MAX}}, NULL, deadline(), NULL));
    expect_invalid(worker_mem_read(w, &(struct msg_mem_read){.stream = 7, .to = {0, 1}}, NULL, deadline(), NULL));
    expect_invalid(worker_mem_fill(w, &(struct msg_mem_fill){.pattern_bytes = 3}, NULL, deadline(), NULL));
    expect_invalid(worker_mem_fill(w, &(struct msg_mem_fill){.pattern_bytes = 8, .to = 4}, NULL, deadline(), NULL));
    expect_invalid(worker_mem_alloc(w, &(struct msg_mem_alloc){0}, NULL, deadline(), NULL));
    expect_invalid(worker_module_unload(w, &(struct msg_module_unload){module + 1}, NULL, deadline(), NULL));
    expect_invalid(worker_stream_destroy(w, &(struct msg_stream_destroy){0}, NULL, deadline(), NULL));
    expect_invalid(worker_device_info(w, &(struct msg_device_info){{0, 8}}, NULL, deadline(), NULL));
    expect_invalid(worker_take_output(w, &(struct msg_take_output){99, {0, 8}}, NULL, deadline(), NULL));
    m.kernel = 1000;
    expect_invalid(worker_launch(w, &m, NULL, deadline(), NULL));
    m.kernel = KERNEL_ADD_ONE; /* needs 12 bytes of parameters */
    expect_invalid(worker_launch(w, &m, NULL, deadline(), NULL));
    m.params_bytes = UINT32_MAX;
    expect_invalid(worker_launch(w, &m, NULL, deadline(), NULL));
    cr_assert_eq(worker_module_unload(w, &(struct msg_module_unload){module}, NULL, deadline(), NULL), STATUS_OK);
    m = launch_of(module, KERNEL_PRINT, 0, 1, &(uint32_t){1}, 4);
    expect_invalid(worker_launch(w, &m, NULL, deadline(), NULL));
    cr_assert_eq(worker_canary(w, &(struct msg_canary){0}, NULL, deadline(), NULL), STATUS_OK);
}

Test(worker, refusals_of_the_device_come_back_in_words_and_the_worker_lives_on)
{
    struct problem    why = {0};
    struct msg_launch m;
    struct slice      s;

    m = launch_of(module, KERNEL_REFUSE, 0, 1, NULL, 0);
    cr_assert_eq(worker_launch(w, &m, NULL, deadline(), &why), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_str_eq(why.detail, "the fake refuses");
    cr_assert_eq(worker_mem_alloc(w, &(struct msg_mem_alloc){1ull << 40}, NULL, deadline(), &why), STATUS_DEVICE_MEMORY_EXHAUSTED);
    cr_assert_eq(why.limit_max, 1 << 30);
    cr_assert_eq(why.limit_requested, 1ull << 40);
    cr_assert_eq(staging_take(w, 4, &s, NULL), STATUS_OK);
    memcpy(s.data, "junk", 4);
    cr_assert_eq(worker_module_load(w, &(struct msg_module_load){.piece = {s.ref.offset, 4}, .table_to = s.ref}, NULL, deadline(), &why),
                 STATUS_MODULE_INVALID);
    cr_assert_str_eq(why.detail, "line 1: junk");
    staging_give(w, &s);
    cr_assert_eq(worker_canary(w, &(struct msg_canary){0}, NULL, deadline(), NULL), STATUS_OK);
}

Test(worker, images_come_in_pieces_and_the_table_comes_back)
{
    struct msg_module_load_reply r;
    struct kernel_table          t;
    struct slice                 s;
    struct msg_module_load       m = {.more = 1};

    cr_assert_eq(staging_take(w, 1, &s, NULL), STATUS_OK);
    memcpy(s.data, "image in two pieces", 19);
    m.piece = (struct shm_ref){s.ref.offset, 10};
    m.table_to = s.ref;
    cr_assert_eq(worker_module_load(w, &m, &r, deadline(), NULL), STATUS_OK);
    m = (struct msg_module_load){.piece = {s.ref.offset + 10, 9}, .offset = 11, .table_to = s.ref};
    cr_assert_eq(worker_module_load(w, &m, &r, deadline(), NULL), STATUS_INVALID_REQUEST);
    m = (struct msg_module_load){.piece = {s.ref.offset, 10}, .more = 1, .table_to = s.ref};
    cr_assert_eq(worker_module_load(w, &m, &r, deadline(), NULL), STATUS_OK);
    m = (struct msg_module_load){.piece = {s.ref.offset + 10, 9}, .offset = 10, .table_to = s.ref};
    cr_assert_eq(worker_module_load(w, &m, &r, deadline(), NULL), STATUS_OK);
    cr_assert_neq(r.module, module);
    cr_assert_eq(kernel_table_decode((struct span){(char *)s.data, r.table_bytes}, &t), STATUS_OK);
    cr_assert_eq(kernel_table_find(&t, span_of("slow")), KERNEL_SLOW);
    kernel_table_finish(&t);
    m.table_to.bytes = 8; /* too small for the table */
    m.offset = 0;
    cr_assert_eq(worker_module_load(w, &m, &r, deadline(), NULL), STATUS_MODULE_INVALID);
}

Test(worker, plans_are_for_devices_with_libraries_and_have_their_length)
{
    struct slice           s;
    struct vendor_plan     plan = {.operation = VENDOR_MATMUL, .batch = 1, .m = 1, .n = 1, .k = 1};
    struct msg_module_load m = {.plan = 1};

    cr_assert_eq(staging_take(w, sizeof plan, &s, NULL), STATUS_OK);
    memcpy(s.data, &plan, sizeof plan);
    m.table_to = s.ref;
    m.piece = (struct shm_ref){s.ref.offset, sizeof plan};
    cr_assert_eq(worker_module_load(w, &m, NULL, deadline(), NULL), STATUS_NOT_IMPLEMENTED);
    m.piece.bytes--;
    cr_assert_eq(worker_module_load(w, &m, NULL, deadline(), NULL), STATUS_INVALID_REQUEST);
    staging_give(w, &s);
    cr_assert_eq(worker_canary(w, &(struct msg_canary){0}, NULL, deadline(), NULL), STATUS_OK);
}

Test(worker, output_is_kept_until_taken_and_descriptors_do_not_leak)
{
    uint32_t                     n = 7;
    struct msg_launch            m;
    struct msg_launch_reply      r;
    struct msg_take_output_reply taken;
    struct slice                 s;
    unsigned                     queues = 0;

    m = launch_of(module, KERNEL_PRINT, 0, 501, &n, 4);
    cr_assert_eq(worker_launch(w, &m, &r, deadline(), NULL), STATUS_OK);
    cr_assert_eq(r.output_bytes, 10);
    cr_assert_eq(staging_take(w, 1, &s, NULL), STATUS_OK);
    cr_assert_eq(worker_take_output(w, &(struct msg_take_output){501, s.ref}, &taken, deadline(), NULL), STATUS_OK);
    cr_assert_eq(taken.bytes, 10);
    cr_assert_arr_eq(s.data, "printed 7\n", 10);
    cr_assert_eq(worker_take_output(w, &(struct msg_take_output){501, s.ref}, &taken, deadline(), NULL), STATUS_INVALID_REQUEST);
    m = launch_of(module, KERNEL_DESCRIPTORS, 0, 502, NULL, 0);
    cr_assert_eq(worker_launch(w, &m, &r, deadline(), NULL), STATUS_OK);
    cr_assert_eq(worker_take_output(w, &(struct msg_take_output){502, s.ref}, &taken, deadline(), NULL), STATUS_OK);
    s.data[taken.bytes] = 0;
    for (char *word = (char *)s.data; *word; word += strcspn(word, " ") + 1) {
        unsigned fd = 0;

        if (sscanf(word, "%u", &fd) == 1)
            cr_assert_leq(fd, 4, "descriptor %u is open in the worker", fd);
        else
            cr_assert(strncmp(word, "LD_LIBRARY_PATH=", 16) == 0 || (strncmp(word, "CUDA_", 5) == 0 && strncmp(word, "CUDA_SECRET", 11)),
                      "%s is in the worker's environment", word);
        queues += strncmp(word, "CUDA_DEVICE_MAX_CONNECTIONS=4", 29) == 0;
    }
    cr_assert_eq(queues, 1);
    staging_give(w, &s);
}

static void count_event(struct call *c, enum call_event event)
{
    ((unsigned *)c->context)[event]++;
}

Test(worker, queued_launches_can_be_cancelled_and_the_running_one_cannot)
{
    uint32_t                       ms = 300;
    unsigned                       events[2][2] = {{0}};
    struct call                    running, queued;
    struct msg_launch              m;
    struct msg_launch_cancel_reply r;

    running = (struct call){.on_event = count_event, .context = events[0], .deadline_ns = DEADLINE_NEVER};
    queued = (struct call){.on_event = count_event, .context = events[1], .deadline_ns = DEADLINE_NEVER};
    m = launch_of(module, KERNEL_SLOW, 0, 1, &ms, 4);
    cr_assert_eq(worker_submit_launch(w, &m, &running), STATUS_OK);
    m.tag = 2;
    cr_assert_eq(worker_submit_launch(w, &m, &queued), STATUS_OK);
    cr_assert_eq(worker_launch_cancel(w, &(struct msg_launch_cancel){2}, &r, deadline(), NULL), STATUS_OK);
    cr_assert_eq(r.cancelled, 1);
    cr_assert_eq(call_wait(w, &queued), STATUS_CANCELLED);
    cr_assert_eq(worker_launch_cancel(w, &(struct msg_launch_cancel){1}, &r, deadline(), NULL), STATUS_OK);
    cr_assert_eq(r.cancelled, 0);
    cr_assert_eq(call_wait(w, &running), STATUS_OK);
    cr_assert_gt(running.reply.launch.gpu_us, 299000);
    cr_assert_gt(running.started_wall_ns, 0);
    cr_assert_eq(events[0][CALL_STARTED], 1);
    cr_assert_eq(events[0][CALL_DONE], 1);
    cr_assert_eq(events[1][CALL_STARTED], 0);
    cr_assert_eq(events[1][CALL_DONE], 1);
}

/* Events that the only worker of a session has recorded. */
static unsigned events_recorded(void)
{
    for (unsigned i = 0; i < FAKE_WORKERS_MAX; i++)
        if (fake_script()->workers[i].pid == (int)w->process.pid)
            return fake_script()->workers[i].events;
    cr_assert(false, "the worker is not seen");
    return 0;
}

Test(worker, a_launch_that_is_not_timed_has_no_events_and_its_time_is_the_workers)
{
    uint32_t                ms = 30;
    struct msg_launch       m = launch_of(module, KERNEL_SLOW, 0, 1, &ms, 4);
    struct msg_launch_reply r;
    unsigned                before = events_recorded();

    cr_assert_eq(worker_launch(w, &m, &r, deadline(), NULL), STATUS_OK);
    cr_assert_eq(events_recorded(), before + 2);
    cr_assert_geq(r.gpu_us, 29000);
    m.untimed = 1;
    cr_assert_eq(worker_launch(w, &m, &r, deadline(), NULL), STATUS_OK);
    cr_assert_eq(events_recorded(), before + 2);
    cr_assert_geq(r.gpu_us, 29000);
}

Test(worker, a_launch_that_is_not_timed_prints_and_waits_for_copies_before_it)
{
    uint32_t                ms = 30;
    struct call             slow = {.deadline_ns = DEADLINE_NEVER};
    struct msg_launch       m = launch_of(module, KERNEL_SLOW, 0, 1, &ms, 4);
    struct msg_launch_reply r;
    uint64_t                at = memory_of(w, 4);

    m.untimed = 1;
    cr_assert_eq(worker_submit_launch(w, &m, &slow), STATUS_OK);
    cr_assert_eq(worker_mem_fill(w, &(struct msg_mem_fill){.pattern_bytes = 4, .to = at, .count = 1}, NULL, deadline(), NULL), STATUS_OK);
    cr_assert_eq(call_wait(w, &slow), STATUS_OK);
    m = launch_of(module, KERNEL_PRINT, 0, 2, &(uint32_t){7}, 4);
    m.untimed = 1;
    cr_assert_eq(worker_launch(w, &m, &r, deadline(), NULL), STATUS_OK);
    cr_assert_eq(r.output_bytes, strlen("printed 7\n"));
}

Test(worker, a_launch_that_is_not_timed_faults_as_any_other)
{
    struct problem    why = {0};
    struct msg_launch m = launch_of(module, KERNEL_FAULT, 0, 1, NULL, 0);

    m.untimed = 1;
    cr_assert_eq(worker_launch(w, &m, NULL, deadline(), &why), STATUS_KERNEL_FAULT);
    cr_assert_eq(why.cuda_result, 700);
}

Test(worker, streams_go_side_by_side_and_sync_waits_for_what_came_before)
{
    uint32_t                       ms = 300;
    struct msg_stream_create_reply other;
    struct call                    slow = {.deadline_ns = DEADLINE_NEVER};
    struct msg_launch              m;

    cr_assert_eq(worker_stream_create(w, &(struct msg_stream_create){0}, &other, deadline(), NULL), STATUS_OK);
    m = launch_of(module, KERNEL_SLOW, other.stream, 1, &ms, 4);
    cr_assert_eq(worker_submit_launch(w, &m, &slow), STATUS_OK);
    m = launch_of(module, KERNEL_SLOW, 0, 2, &(uint32_t){0}, 4);
    cr_assert_eq(worker_launch(w, &m, NULL, deadline(), NULL), STATUS_OK);
    cr_assert_eq(worker_stream_sync(w, &(struct msg_stream_sync){0, 0}, NULL, deadline(), NULL), STATUS_OK);
    cr_assert_not(call_spin(w, &slow, 0));
    cr_assert_eq(worker_stream_sync(w, &(struct msg_stream_sync){0, 1}, NULL, deadline(), NULL), STATUS_OK);
    cr_assert(call_spin(w, &slow, 0));
    cr_assert_eq(worker_stream_destroy(w, &(struct msg_stream_destroy){other.stream}, NULL, deadline(), NULL), STATUS_OK);
    m.stream = other.stream;
    cr_assert_eq(worker_launch(w, &m, NULL, deadline(), NULL), STATUS_INVALID_REQUEST);
}

Test(worker, launches_leave_room_for_a_cancel)
{
    static struct call             calls[RING_SLOTS];
    struct msg_launch              m;
    struct msg_launch_cancel_reply r;
    unsigned                       n = 0;

    m = launch_of(module, KERNEL_ENDLESS, 0, 0, NULL, 0);
    for (; n < RING_SLOTS; n++, m.tag++) {
        calls[n] = (struct call){.deadline_ns = DEADLINE_NEVER};
        if (worker_submit_launch(w, &m, &calls[n]) != STATUS_OK)
            break;
    }
    cr_assert_eq(n, RING_SLOTS - CALLS_RESERVED);
    cr_assert_eq(worker_launch_cancel(w, &(struct msg_launch_cancel){n - 1}, &r, deadline(), NULL), STATUS_OK);
    cr_assert_eq(r.cancelled, 1);
    worker_kill(w, STATUS_EXECUTION_TIMEOUT, NULL);
    for (unsigned i = 0; i < n - 1; i++)
        cr_assert_eq(call_wait(w, &calls[i]), STATUS_EXECUTION_TIMEOUT);
    cr_assert_eq(call_wait(w, &calls[n - 1]), STATUS_CANCELLED);
}

struct caller {
    struct worker *worker;
    unsigned       bad;
};

static void *call_often(void *context)
{
    struct caller *c = context;

    for (unsigned i = 0; i < 2500; i++) {
        struct msg_memory_info_reply r = {0};

        if (worker_memory_info(c->worker, &(struct msg_memory_info){0}, &r, deadline(), NULL) || r.memory.total_bytes != 1 << 30)
            c->bad++;
    }
    return NULL;
}

Test(worker, ten_thousand_calls_from_four_threads)
{
    struct caller c[4];
    pthread_t     threads[4];

    for (unsigned i = 0; i < 4; i++) {
        c[i] = (struct caller){w, 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, call_often, &c[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(c[i].bad, 0);
    }
}
