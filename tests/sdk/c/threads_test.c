/* Many threads on one client and one session: right results, no losses, no races. */
#include <criterion/criterion.h>
#include <gpurest/gpurest.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/mock.h"

enum { THREADS = 32, ROUNDS = 12, BYTES = 3000 };

struct world {
    struct tiny          *tiny;
    struct mock          *mock;
    gpurest_client       *client;
    gpurest_session      *session;
    gpurest_module       *module;
    const gpurest_kernel *kernel;
};

static struct world w;

static void start(void)
{
    gpurest_options o = GPUREST_OPTIONS_INIT;

    w.tiny = tiny_create();
    w.mock = mock_start(tiny_handle, w.tiny);
    o.url = mock_url(w.mock);
    cr_assert_eq(gpurest_open_with(&w.client, &o), GPUREST_OK);
    cr_assert_eq(gpurest_session_open(&w.session, w.client, NULL), GPUREST_OK);
    cr_assert_eq(gpurest_compile(w.session, &w.module, "source", NULL, 0), GPUREST_OK);
    cr_assert_eq(gpurest_kernel_get(w.module, "k", &w.kernel), GPUREST_OK);
}

static void end(void)
{
    gpurest_module_unload(w.module);
    gpurest_session_close(w.session);
    gpurest_close(w.client);
    mock_stop(w.mock);
    tiny_destroy(w.tiny);
}

TestSuite(threads, .init = start, .fini = end);

struct worker {
    struct world *world;
    pthread_t     thread;
    int           number, rounds_done;
};

/* false: a wrong result, or a failure. */
static bool round_of(struct worker *k, int round)
{
    gpurest_session *s = k->world->session;
    unsigned char    in[BYTES], out[BYTES];
    gpurest_buffer   b;
    gpurest_arg      args[2];
    bool             good;

    for (int i = 0; i < BYTES; i++)
        in[i] = (unsigned char)(k->number * 7 + round * 3 + i);
    if (gpurest_alloc(s, &b, BYTES))
        return false;
    args[0] = GPUREST_BUF(b);
    args[1] = GPUREST_U32(BYTES);
    good = !gpurest_write(s, b, 0, in, BYTES) &&
           !gpurest_launch(s, k->world->kernel, GPUREST_1D(1), GPUREST_1D(1), 0, (gpurest_stream){0}, args, 2) &&
           !gpurest_read(s, b, 0, out, BYTES);
    for (int i = 0; i < BYTES && good; i++)
        good = out[i] == (unsigned char)(in[i] + 1);
    return !gpurest_free(s, b) && good;
}

static void *work(void *arg)
{
    struct worker *k = arg;

    for (int i = 0; i < ROUNDS; i++)
        k->rounds_done += round_of(k, i);
    return NULL;
}

Test(threads, thirty_two_of_them_on_one_session)
{
    struct worker workers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.world = &w, .number = i};
        cr_assert_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        cr_assert_eq(workers[i].rounds_done, ROUNDS);
    }
    cr_assert_leq(mock_connections(w.mock), 8);
}

/* ---- asynchronous operations ---- */

struct counted {
    atomic_int calls;
};

static void count_call(void *arg, gpurest_op *op)
{
    struct counted *c = arg;

    (void)op;
    atomic_fetch_add(&c->calls, 1);
}

struct async_worker {
    struct world   *world;
    struct counted *counted;
    pthread_t       thread;
    bool            good;
};

/* Upload, four launches, download: in order without waiting in between. */
static bool async_round(struct async_worker *k)
{
    gpurest_session      *s = k->world->session;
    gpurest_launch_config config = GPUREST_LAUNCH_CONFIG_INIT;
    gpurest_launch_result result[4];
    unsigned char         in[100], out[100];
    gpurest_op           *ops[6];
    gpurest_buffer        b;
    gpurest_arg           args[2];
    bool                  good = true;

    memset(in, 5, sizeof in);
    if (gpurest_alloc(s, &b, sizeof in))
        return false;
    args[0] = GPUREST_BUF(b);
    args[1] = GPUREST_U32(1);
    if (gpurest_write_async(s, b, 0, in, sizeof in, &ops[0]))
        return false;
    for (int i = 0; i < 4; i++) {
        result[i] = (gpurest_launch_result)GPUREST_LAUNCH_RESULT_INIT;
        if (gpurest_launch_async(s, k->world->kernel, &config, args, 2, &result[i], &ops[1 + i]))
            return false;
    }
    if (gpurest_read_async(s, b, 0, out, sizeof out, &ops[5]))
        return false;
    for (int i = 0; i < 6; i++)
        good = !gpurest_op_on_done(ops[i], count_call, k->counted) && good;
    for (int i = 5; i >= 0; i--)
        good = !gpurest_op_wait(ops[i], -1) && good;
    for (size_t i = 0; i < sizeof out && good; i++)
        good = out[i] == 9;
    for (int i = 0; i < 6; i++)
        gpurest_op_free(ops[i]);
    for (int i = 0; i < 4; i++) {
        good = good && result[i].gpu_us == 1.5;
        gpurest_mem_free(result[i].output);
    }
    return good;
}

static void *async_work(void *arg)
{
    struct async_worker *k = arg;

    k->good = true;
    for (int i = 0; i < 4 && k->good; i++)
        k->good = async_round(k);
    return NULL;
}

Test(threads, asynchronous_operations_keep_their_order_and_call_back_once)
{
    struct counted      counted = {0};
    struct async_worker workers[8];

    for (int i = 0; i < 8; i++) {
        workers[i] = (struct async_worker){.world = &w, .counted = &counted};
        cr_assert_eq(pthread_create(&workers[i].thread, NULL, async_work, &workers[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(workers[i].thread, NULL);
        cr_assert(workers[i].good);
    }
    cr_assert_eq(atomic_load(&counted.calls), 8 * 4 * 6);
}

Test(threads, a_callback_set_late_is_called_too)
{
    struct counted counted = {0};
    gpurest_buffer b;
    gpurest_op    *op;
    char           data[4] = "abc";

    cr_assert_eq(gpurest_alloc(w.session, &b, sizeof data), GPUREST_OK);
    cr_assert_eq(gpurest_write_async(w.session, b, 0, data, sizeof data, &op), GPUREST_OK);
    cr_assert_eq(gpurest_op_wait(op, -1), GPUREST_OK);
    cr_assert_eq(gpurest_op_on_done(op, count_call, &counted), GPUREST_OK);
    cr_assert_eq(gpurest_op_on_done(op, count_call, &counted), GPUREST_E_INVAL);
    gpurest_op_free(op);
    cr_assert_eq(atomic_load(&counted.calls), 1);
}

/* A synchronous call sees what was begun before it. */
Test(threads, calls_of_one_thread_take_effect_in_order)
{
    gpurest_buffer b;
    gpurest_op    *ops[16];
    unsigned char  in[16][64], out[64];

    cr_assert_eq(gpurest_alloc(w.session, &b, 64), GPUREST_OK);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 16; i++) {
            memset(in[i], 16 * round + i, 64);
            cr_assert_eq(gpurest_write_async(w.session, b, 0, in[i], 64, &ops[i]), GPUREST_OK);
        }
        cr_assert_eq(gpurest_read(w.session, b, 0, out, 64), GPUREST_OK);
        cr_assert_arr_eq(out, in[15], 64);
        for (int i = 0; i < 16; i++)
            gpurest_op_free(ops[i]);
    }
}

/* Cancelled at any moment, an operation is either done or cancelled. */
Test(threads, cancellation_races_with_the_end)
{
    gpurest_buffer b;
    gpurest_op    *op;
    char           data[1000] = "";
    int            cancelled = 0, done = 0;

    cr_assert_eq(gpurest_alloc(w.session, &b, sizeof data), GPUREST_OK);
    for (int i = 0; i < 200; i++) {
        cr_assert_eq(gpurest_write_async(w.session, b, 0, data, sizeof data, &op), GPUREST_OK);
        usleep((unsigned)(i % 20) * 20);
        gpurest_op_cancel(op);
        gpurest_status st = gpurest_op_wait(op, -1);
        cancelled += st == GPUREST_E_CANCELLED;
        done += st == GPUREST_OK;
        gpurest_op_free(op);
    }
    cr_assert_eq(cancelled + done, 200);
    cr_assert_eq(gpurest_write(w.session, b, 0, data, sizeof data), GPUREST_OK);
}

/* ---- bulk over several connections ---- */

Test(threads, a_long_transfer_is_shared_by_several_connections)
{
    enum { LONG = 64 * 1024 * 1024 + 12345 };
    gpurest_buffer b;
    unsigned char *in = malloc(LONG), *out = calloc(1, LONG);

    for (size_t i = 0; i < LONG; i++)
        in[i] = (unsigned char)(i * 2654435761u >> 24);
    cr_assert_eq(gpurest_alloc_from(w.session, &b, in, LONG), GPUREST_OK, "%s", gpurest_last_error()->message);
    cr_assert_eq(gpurest_read(w.session, b, 0, out, LONG), GPUREST_OK, "%s", gpurest_last_error()->message);
    cr_assert_eq(memcmp(in, out, LONG), 0);
    cr_assert_eq(mock_connections(w.mock), 4);
    free(in);
    free(out);
}
