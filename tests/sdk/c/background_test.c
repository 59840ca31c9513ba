/* Batches that the service keeps, and runs of programs with their own scalars and in the background. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/fixture.h"

TestSuite(background, .init = world_start, .fini = world_end);
TestSuite(program_scalars, .init = world_start, .fini = world_end);

enum { ENDLESS_MS = 600000 }; /* of a kernel that something else is to end */

static gpurest_status launch(const gpurest_kernel *k, const gpurest_arg *args, size_t n)
{
    return gpurest_launch(w.session, k, GPUREST_1D(1), GPUREST_1D(64), 0, (gpurest_stream){0}, args, n);
}

static gpurest_status add_one(gpurest_buffer b)
{
    gpurest_arg args[] = {GPUREST_BUF(b), GPUREST_U32(64)};

    return launch(w.add_one, args, 2);
}

/* The service keeps results until they are dropped. */
static bool service_keeps(const char *id)
{
    char path[400];

    snprintf(path, sizeof path, "/v1/sessions/%s/batches/%s", gpurest_session_id(w.session), id);
    return gpurest_request(w.client, "GET", path, NULL, NULL) == GPUREST_OK;
}

Test(background, a_batch_brings_its_bytes_results_and_buffers)
{
    gpurest_launch_config config = GPUREST_LAUNCH_CONFIG_INIT;
    gpurest_launch_result result = GPUREST_LAUNCH_RESULT_INIT;
    gpurest_arg           say[] = {GPUREST_I32(3)};
    unsigned char         in[64], out[64] = {0}, later = 0;
    gpurest_buffer        made, outside;
    gpurest_batch        *batch;
    gpurest_op           *op;

    memset(in, 10, sizeof in);
    config.block = GPUREST_1D(1);
    cr_assert_not(bad(gpurest_alloc(w.session, &outside, 64)));
    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_not(bad(gpurest_alloc_from(w.session, &made, in, 64)));
    cr_assert_not(bad(add_one(made)));
    cr_assert_not(bad(gpurest_launch_with(w.session, w.talk, &config, say, 1, &result)));
    cr_assert_not(bad(gpurest_read(w.session, made, 0, out, 64)));
    cr_assert_not(bad(gpurest_free(w.session, outside)));
    memset(in, 0, sizeof in); /* copied when it was queued */
    cr_assert_not(bad(gpurest_batch_submit_background(batch, &op)));
    cr_assert_not(bad(gpurest_op_wait(op, -1)));
    cr_assert_eq(out[0], 11);
    cr_assert_eq(out[63], 11);
    cr_assert_str_eq(result.output, "n is 3\n");
    cr_assert_eq(gpurest_op_result_count(op), 5);
    cr_assert_eq(gpurest_op_result(op, 4), GPUREST_OK);
    gpurest_mem_free(result.output);
    gpurest_op_free(op);
    cr_assert_not(bad(gpurest_read(w.session, made, 0, &later, 1)));
    cr_assert_eq(later, 11);
    cr_assert_eq(gpurest_read(w.session, outside, 0, &later, 1), GPUREST_E_INVAL, "it was freed there");
    cr_assert_not(service_keeps("x_0123456789abcdefghijkl"));
}

Test(background, batches_of_one_session_are_done_in_their_order)
{
    enum { MANY = 12 };
    unsigned char  out[MANY][64] = {{0}};
    gpurest_op    *ops[MANY];
    gpurest_buffer b;
    gpurest_batch *batch;

    cr_assert_not(bad(gpurest_alloc(w.session, &b, 64)));
    cr_assert_not(bad(gpurest_fill(w.session, b, 0, 0, 1, 64, (gpurest_stream){0})));
    for (int i = 0; i < MANY; i++) {
        cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
        cr_assert_not(bad(add_one(b)));
        cr_assert_not(bad(gpurest_read(w.session, b, 0, out[i], 64)));
        cr_assert_not(bad(gpurest_batch_submit_background(batch, &ops[i])));
    }
    for (int i = MANY - 1; i >= 0; i--) {
        cr_assert_not(bad(gpurest_op_wait(ops[i], -1)));
        cr_assert_eq(out[i][5], i + 1);
        gpurest_op_free(ops[i]);
    }
}

Test(background, a_failure_names_its_operation_and_takes_nothing_along)
{
    gpurest_launch_config config = GPUREST_LAUNCH_CONFIG_INIT;
    gpurest_buffer        made, outside;
    gpurest_batch        *batch;
    gpurest_op           *op = NULL;

    cr_assert_not(bad(gpurest_alloc(w.session, &outside, 64)));
    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_not(bad(gpurest_alloc(w.session, &made, 64)));
    gpurest_arg args[] = {GPUREST_BUF(made), GPUREST_U32(1)};
    config.block = GPUREST_1D(1 << 20);
    cr_assert_not(bad(gpurest_launch_with(w.session, w.add_one, &config, args, 2, NULL)));
    cr_assert_not(bad(gpurest_free(w.session, outside)));
    cr_assert_not(bad(gpurest_batch_submit_background(batch, &op)));
    cr_assert_eq(gpurest_op_wait(op, -1), GPUREST_E_INVAL);
    cr_assert_str_eq(gpurest_last_error()->code, "launch_config_invalid");
    cr_assert_eq(gpurest_op_result(op, 1), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_op_result(op, 2), GPUREST_E_ABORTED);
    gpurest_op_free(op);
    cr_assert_eq(gpurest_buffer_bytes(w.session, made), 0);
    cr_assert_not(bad(gpurest_free(w.session, outside)));
}

/* A batch in the background whose kernel does not end by itself. */
static gpurest_op *spin_for(gpurest_buffer *b, uint64_t timeout_ms)
{
    gpurest_batch *batch;
    gpurest_op    *running;

    cr_assert_not(bad(gpurest_alloc(w.session, b, 64)));
    cr_assert_not(bad(gpurest_fill(w.session, *b, 0, 0, 1, 64, (gpurest_stream){0})));
    gpurest_arg args[] = {GPUREST_BUF(*b)};
    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_not(bad(gpurest_batch_timeout_ms(batch, timeout_ms)));
    cr_assert_not(bad(launch(w.spin, args, 1)));
    cr_assert_not(bad(gpurest_batch_submit_background(batch, &running)));
    return running;
}

Test(background, what_waits_is_cancelled)
{
    gpurest_buffer b;
    gpurest_batch *batch;
    gpurest_op    *running, *waiting;
    unsigned char  out[64];

    running = spin_for(&b, ENDLESS_MS);
    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_not(bad(gpurest_read(w.session, b, 0, out, 64)));
    cr_assert_not(bad(gpurest_batch_submit_background(batch, &waiting)));
    gpurest_op_cancel(waiting);
    cr_assert_eq(gpurest_op_wait(waiting, -1), GPUREST_E_CANCELLED);
    cr_assert_not(bad(gpurest_session_reset(w.session)));
    cr_assert_neq(gpurest_op_wait(running, -1), GPUREST_OK);
    gpurest_op_free(waiting);
    gpurest_op_free(running);
}

Test(background, a_deadline_ends_what_runs)
{
    gpurest_buffer b;
    gpurest_op    *running;
    unsigned char  out[1];

    running = spin_for(&b, 300);
    cr_assert_eq(gpurest_op_wait(running, -1), GPUREST_E_TIMEOUT);
    cr_assert(gpurest_last_error()->fatal_for_session);
    gpurest_op_free(running);
    cr_assert_eq(gpurest_read(w.session, b, 0, out, 1), GPUREST_E_SESSION_LOST);
}

Test(background, wrong_calls_and_an_empty_batch)
{
    gpurest_batch *batch;
    gpurest_op    *op = NULL;

    cr_assert_eq(gpurest_batch_submit_background(NULL, &op), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_eq(gpurest_batch_submit_background(batch, NULL), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_not(bad(gpurest_batch_submit_background(batch, &op)));
    cr_assert_not(bad(gpurest_op_wait(op, -1)));
    gpurest_op_free(op);
}

/* ---- programs ---- */

/* y = 2 x + y, then y = 10 x + y, with a read behind each. */
static gpurest_program *prepare(const float x[4], const float y[4], float out[8])
{
    gpurest_program *p = NULL;
    gpurest_batch   *batch;
    gpurest_buffer   a, b;

    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_not(bad(gpurest_alloc_from(w.session, &a, x, 16)));
    cr_assert_not(bad(gpurest_alloc_from(w.session, &b, y, 16)));
    for (int i = 0; i < 2; i++) {
        gpurest_arg args[] = {GPUREST_F32(i ? 10 : 2), GPUREST_BUF(a), GPUREST_BUF(b), GPUREST_I32(4)};
        cr_assert_not(bad(launch(w.axpy, args, 4)));
        cr_assert_not(bad(gpurest_read(w.session, b, 0, out + 4 * i, 16)));
    }
    cr_assert_not(bad(gpurest_batch_prepare(batch, &p)));
    return p;
}

Test(program_scalars, replace_those_of_one_run_alone)
{
    const float                 x[4] = {1, 2, 3, 4}, y[4] = {0};
    float                       out[8];
    gpurest_program_run_options o = GPUREST_PROGRAM_RUN_OPTIONS_INIT;
    gpurest_program_scalar      scalars[3] = {{.launch = 1, .argument = 0}, {.launch = 0, .argument = 0}, {.launch = 1, .argument = 3}};
    gpurest_program            *p;

    p = prepare(x, y, out);
    scalars[0].value = GPUREST_F32(100);
    scalars[1].value = GPUREST_F32(3);
    scalars[2].value = GPUREST_I32(2);
    o.scalars = scalars;
    o.scalars_count = 3;
    cr_assert_not(bad(gpurest_program_run_with(p, &o, NULL)));
    cr_assert_eq(out[3], 12);  /* 3 x */
    cr_assert_eq(out[5], 206); /* 3 x + 100 x, of the first two elements */
    cr_assert_eq(out[7], 12);
    cr_assert_not(bad(gpurest_program_run_with(p, NULL, NULL)));
    cr_assert_eq(out[3], 8);
    cr_assert_eq(out[7], 48);
    o.scalars_count = 1;
    scalars[0].value = GPUREST_F32(NAN);
    cr_assert_not(bad(gpurest_program_run_with(p, &o, NULL)));
    cr_assert(isnan(out[7]) && out[3] == 8);
    scalars[0].value = GPUREST_F32(-INFINITY);
    cr_assert_not(bad(gpurest_program_run_with(p, &o, NULL)));
    cr_assert(isinf(out[7]) && out[7] < 0);
    gpurest_program_destroy(p);
}

Test(program_scalars, runs_without_waiting)
{
    const float                 x[4] = {1, 2, 3, 4}, y[4] = {0};
    float                       out[8], second[4], third[4];
    void                       *outputs[2][2] = {{NULL, second}, {NULL, third}};
    gpurest_program_run_options o = GPUREST_PROGRAM_RUN_OPTIONS_INIT;
    gpurest_program_scalar      scalar = {.launch = 1, .argument = 0};
    gpurest_program            *p;
    gpurest_op                 *ops[2];

    p = prepare(x, y, out);
    o.scalars = &scalar;
    o.scalars_count = 1;
    o.outputs_count = 2;
    for (int i = 0; i < 2; i++) {
        scalar.value = GPUREST_F32(i ? 7 : 5); /* copied */
        o.outputs = outputs[i];
        cr_assert_not(bad(gpurest_program_run_with(p, &o, &ops[i])));
    }
    for (int i = 0; i < 2; i++) {
        cr_assert_not(bad(gpurest_op_wait(ops[i], -1)));
        gpurest_op_free(ops[i]);
    }
    cr_assert_eq(second[3], 28);
    cr_assert_eq(third[3], 36);
    gpurest_program_destroy(p);
}

Test(program_scalars, wrong_ones_are_refused)
{
    const float                 x[4] = {1, 2, 3, 4}, y[4] = {0};
    float                       out[8];
    gpurest_program_run_options o = GPUREST_PROGRAM_RUN_OPTIONS_INIT;
    gpurest_program_scalar      scalars[2] = {{.launch = 0, .argument = 0}, {.launch = 0, .argument = 0}};
    gpurest_program            *p;
    gpurest_buffer              b;

    p = prepare(x, y, out);
    cr_assert_not(bad(gpurest_alloc(w.session, &b, 16)));
    scalars[0].value = scalars[1].value = GPUREST_F32(1);
    o.scalars = scalars;
    o.scalars_count = 2;
    cr_assert_eq(gpurest_program_run_with(p, &o, NULL), GPUREST_E_INVAL, "one argument twice");
    o.scalars_count = 1;
    scalars[0].launch = 2;
    cr_assert_eq(gpurest_program_run_with(p, &o, NULL), GPUREST_E_INVAL, "there are two launches");
    scalars[0].launch = 0;
    scalars[0].argument = 9;
    cr_assert_neq(gpurest_program_run_with(p, &o, NULL), GPUREST_OK, "there are four arguments");
    scalars[0].argument = 0;
    scalars[0].value = GPUREST_F64(1);
    cr_assert_neq(gpurest_program_run_with(p, &o, NULL), GPUREST_OK, "the parameter has four bytes");
    scalars[0].value = GPUREST_BUF(b);
    cr_assert_eq(gpurest_program_run_with(p, &o, NULL), GPUREST_E_INVAL, "buffers stay");
    scalars[0].value = GPUREST_BYTES(x, 4);
    cr_assert_eq(gpurest_program_run_with(p, &o, NULL), GPUREST_E_INVAL, "bytes are no scalar");
    o.scalars = NULL;
    cr_assert_eq(gpurest_program_run_with(p, &o, NULL), GPUREST_E_INVAL);
    o = (gpurest_program_run_options){0};
    cr_assert_eq(gpurest_program_run_with(p, &o, NULL), GPUREST_E_INVAL, "its size is missing");
    cr_assert_eq(gpurest_program_run_with(NULL, NULL, NULL), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_program_run(p, NULL, 0, NULL, 0)));
    gpurest_program_destroy(p);
}
