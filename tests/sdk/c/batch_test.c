/* Batches at the real service. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/fixture.h"

TestSuite(batch, .init = world_start, .fini = world_end);

static gpurest_status add_one(gpurest_buffer b, unsigned n)
{
    gpurest_arg args[] = {GPUREST_BUF(b), GPUREST_U32(n)};

    return gpurest_launch(w.session, w.add_one, GPUREST_1D(1), GPUREST_1D(64), 0, (gpurest_stream){0}, args, 2);
}

static long buffers_of(gpurest_client *c, const char *session)
{
    char path[300], *text = NULL;
    long count = -1;

    snprintf(path, sizeof path, "/v1/sessions/%s", session);
    cr_assert_not(bad(gpurest_request(c, "GET", path, NULL, &text)));
    const char *at = strstr(text, "\"buffers\":");
    if (at)
        count = strtol(at + 10, NULL, 10);
    gpurest_mem_free(text);
    return count;
}

Test(batch, every_operation_goes_in_one_request_and_buffers_stay)
{
    gpurest_launch_config config = GPUREST_LAUNCH_CONFIG_INIT;
    gpurest_launch_result result = GPUREST_LAUNCH_RESULT_INIT;
    gpurest_arg           say[] = {GPUREST_I32(3)};
    unsigned char         in[64], out[64] = {0}, copied[32] = {0};
    gpurest_buffer        outside, made, filled, gone;
    gpurest_batch        *batch;

    memset(in, 10, sizeof in);
    config.block = GPUREST_1D(1);
    cr_assert_not(bad(gpurest_alloc(w.session, &outside, 64)));
    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_not(bad(gpurest_alloc_from(w.session, &made, in, 64)));
    cr_assert_not(bad(gpurest_alloc(w.session, &filled, 64)));
    cr_assert_not(bad(gpurest_alloc(w.session, &gone, 64)));
    cr_assert_not(bad(gpurest_fill(w.session, filled, 0, 0x0201, 2, 32, (gpurest_stream){0})));
    cr_assert_not(bad(gpurest_copy(w.session, gone, 0, filled, 0, 64, (gpurest_stream){0})));
    cr_assert_not(bad(add_one(gone, 64)));
    cr_assert_not(bad(gpurest_copy(w.session, made, 32, gone, 0, 32, (gpurest_stream){0})));
    cr_assert_not(bad(add_one(made, 64)));
    cr_assert_not(bad(gpurest_write(w.session, outside, 1, in, 3)));
    cr_assert_not(bad(gpurest_launch_with(w.session, w.talk, &config, say, 1, &result)));
    cr_assert_not(bad(gpurest_read(w.session, made, 0, out, 64)));
    cr_assert_not(bad(gpurest_read(w.session, gone, 0, copied, 32)));
    cr_assert_not(bad(gpurest_free(w.session, gone)));
    cr_assert_not(bad(gpurest_sync(w.session)));
    memset(in, 0, sizeof in); /* copied when it was queued */
    cr_assert_eq(gpurest_batch_count(batch), 14);
    cr_assert_eq(buffers_of(w.client, gpurest_session_id(w.session)), 1);
    cr_assert_not(bad(gpurest_batch_submit(batch, NULL)));
    cr_assert_eq(buffers_of(w.client, gpurest_session_id(w.session)), 3);
    cr_assert_str_eq(result.output, "n is 3\n");
    gpurest_mem_free(result.output);
    for (int i = 0; i < 32; i++) {
        cr_assert_eq(out[i], 11);
        cr_assert_eq(out[32 + i], i % 2 ? 4 : 3);
        cr_assert_eq(copied[i], i % 2 ? 3 : 2);
    }
    cr_assert_not(bad(add_one(made, 64)));
    cr_assert_not(bad(gpurest_read(w.session, made, 0, out, 64)));
    cr_assert_eq(out[0], 12);
    cr_assert_not(bad(gpurest_read(w.session, outside, 1, out, 3)));
    cr_assert_eq(out[2], 10);
    cr_assert_eq(gpurest_read(w.session, gone, 0, out, 1), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_free(w.session, made)));
}

Test(batch, a_failing_operation_is_named_and_nothing_of_the_batch_stays)
{
    gpurest_launch_config config = GPUREST_LAUNCH_CONFIG_INIT;
    gpurest_buffer        made, outside;
    gpurest_batch        *batch;
    gpurest_op           *op;
    gpurest_arg           args[2];

    cr_assert_not(bad(gpurest_alloc(w.session, &outside, 64)));
    for (int asynchronous = 0; asynchronous <= 1; asynchronous++) {
        cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
        cr_assert_not(bad(gpurest_alloc(w.session, &made, 64)));
        cr_assert_not(bad(gpurest_fill(w.session, made, 0, 1, 1, 64, (gpurest_stream){0})));
        args[0] = GPUREST_BUF(made);
        args[1] = GPUREST_U32(1);
        config.block = GPUREST_1D(1 << 20);
        cr_assert_not(bad(gpurest_launch_with(w.session, w.add_one, &config, args, 2, NULL)));
        cr_assert_not(bad(gpurest_free(w.session, outside)));
        if (asynchronous) {
            cr_assert_not(bad(gpurest_batch_submit(batch, &op)));
            cr_assert_eq(gpurest_op_wait(op, -1), GPUREST_E_INVAL);
            cr_assert_eq(gpurest_op_result_count(op), 4);
            cr_assert_eq(gpurest_op_result(op, 0), GPUREST_OK);
            cr_assert_eq(gpurest_op_result(op, 2), GPUREST_E_INVAL);
            cr_assert_eq(gpurest_op_result(op, 3), GPUREST_E_ABORTED);
            gpurest_op_free(op);
        } else {
            cr_assert_eq(gpurest_batch_submit(batch, NULL), GPUREST_E_INVAL);
        }
        cr_assert_str_eq(gpurest_last_error()->code, "launch_config_invalid");
        cr_assert_not_null(strstr(gpurest_last_error()->message, "operation 2"));
        cr_assert_eq(gpurest_buffer_bytes(w.session, made), 0);
        cr_assert_eq(gpurest_buffer_bytes(w.session, outside), 64);
    }
    cr_assert_not(bad(gpurest_free(w.session, outside)));
}

Test(batch, what_is_wrong_is_found_when_it_is_queued)
{
    gpurest_buffer  made, later, none = {0};
    gpurest_batch  *batch, *second;
    gpurest_module *m;
    gpurest_stream  stream;
    gpurest_arg     args[2];
    char            data[8] = "";

    cr_assert_not(bad(gpurest_stream_create(w.session, &stream)));
    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_eq(gpurest_batch_begin(w.session, &second), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_alloc(w.session, &made, 8)));
    cr_assert_eq(gpurest_write(w.session, made, 1, data, 8), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_write(w.session, none, 0, data, 8), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_fill(w.session, made, 0, 0, 1, 8, stream), GPUREST_E_UNSUPPORTED);
    cr_assert_eq(gpurest_compile(w.session, &m, kernels_source, NULL, 0), GPUREST_E_UNSUPPORTED);
    args[0] = GPUREST_BUF(none);
    args[1] = GPUREST_U32(1);
    cr_assert_eq(gpurest_launch(w.session, w.add_one, GPUREST_1D(1), GPUREST_1D(1), 0, (gpurest_stream){0}, args, 2), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_batch_count(batch), 1); /* a refused operation leaves nothing behind */
    cr_assert_not(bad(gpurest_free(w.session, made)));
    cr_assert_eq(gpurest_free(w.session, made), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_batch_submit(batch, NULL)));
    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_not(bad(gpurest_alloc(w.session, &later, 8)));
    gpurest_batch_discard(batch);
    cr_assert_eq(gpurest_buffer_bytes(w.session, later), 0);
    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_not(bad(gpurest_batch_submit(batch, NULL))); /* an empty one */
    cr_assert_eq(gpurest_batch_submit(NULL, NULL), GPUREST_E_INVAL);
}

Test(batch, has_its_bounds)
{
    gpurest_buffer b;
    gpurest_batch *batch;
    unsigned char  x[300] = {0};
    int            reads = 0, ops;

    cr_assert_not(bad(gpurest_alloc(w.session, &b, 300)));
    cr_assert_not(bad(gpurest_fill(w.session, b, 0, 9, 1, 300, (gpurest_stream){0})));
    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    while (gpurest_read(w.session, b, (size_t)reads, &x[reads], 1) == GPUREST_OK)
        reads++;
    cr_assert_eq(reads, 256);
    cr_assert_eq(gpurest_last_error()->status, GPUREST_E_LIMIT);
    for (ops = reads; gpurest_fill(w.session, b, 0, 1, 1, 1, (gpurest_stream){0}) == GPUREST_OK; ops++)
        continue;
    cr_assert_eq(ops, 4096);
    cr_assert_eq(gpurest_last_error()->status, GPUREST_E_LIMIT);
    cr_assert_not(bad(gpurest_batch_submit(batch, NULL)));
    for (int i = 0; i < reads; i++)
        cr_assert_eq(x[i], 9);
}

Test(batch, events_order_streams_and_measure_time)
{
    gpurest_batch *batch;
    gpurest_stream stream;
    gpurest_event  first, second, stale;
    gpurest_buffer b;
    gpurest_arg    args[2];
    unsigned char  x[64];
    float          ms = -1;

    cr_assert_eq(gpurest_event_record(w.session, &first, (gpurest_stream){0}), GPUREST_E_UNSUPPORTED);
    cr_assert_not(bad(gpurest_stream_create(w.session, &stream)));
    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_not(bad(gpurest_alloc(w.session, &b, 64)));
    cr_assert_not(bad(gpurest_fill(w.session, b, 0, 1, 1, 64, (gpurest_stream){0})));
    args[0] = GPUREST_BUF(b);
    args[1] = GPUREST_U32(64);
    cr_assert_not(bad(gpurest_event_record(w.session, &first, (gpurest_stream){0})));
    cr_assert_not(bad(gpurest_stream_wait(w.session, stream, first)));
    cr_assert_not(bad(gpurest_launch(w.session, w.add_one, GPUREST_1D(1), GPUREST_1D(64), 0, stream, args, 2)));
    cr_assert_not(bad(gpurest_event_record(w.session, &second, stream)));
    cr_assert_not(bad(gpurest_stream_wait(w.session, (gpurest_stream){0}, second)));
    cr_assert_not(bad(gpurest_stream_sync(w.session, stream)));
    cr_assert_not(bad(gpurest_read(w.session, b, 0, x, 64)));
    cr_assert_not(bad(gpurest_event_elapsed_ms(w.session, first, second, &ms)));
    stale.id = second.id + 1;
    cr_assert_eq(gpurest_stream_wait(w.session, stream, stale), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_batch_submit(batch, NULL)));
    cr_assert_geq(ms, 0);
    cr_assert_eq(x[63], 2);
}

/* ---- two threads, two batches on one session ---- */

static void *other_thread(void *unused)
{
    gpurest_buffer b;
    unsigned char  x = 0;

    (void)unused;
    if (bad(gpurest_alloc(w.session, &b, 1)) || bad(gpurest_fill(w.session, b, 0, 77, 1, 1, (gpurest_stream){0})) ||
        bad(gpurest_read(w.session, b, 0, &x, 1)))
        return NULL;
    return (void *)(uintptr_t)x;
}

Test(batch, another_threads_calls_are_not_part_of_it)
{
    gpurest_batch *batch;
    gpurest_buffer b;
    pthread_t      thread;
    void          *x = NULL;

    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_not(bad(gpurest_alloc(w.session, &b, 1)));
    cr_assert_eq(pthread_create(&thread, NULL, other_thread, NULL), 0);
    pthread_join(thread, &x);
    cr_assert_eq((uintptr_t)x, 77);
    cr_assert_eq(gpurest_batch_count(batch), 1);
    cr_assert_not(bad(gpurest_batch_submit(batch, NULL)));
}
