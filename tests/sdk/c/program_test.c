/* Programs at the real service. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "support/fixture.h"

TestSuite(program, .init = world_start, .fini = world_end);

/* x -> x + 1 and x + 2, of 64 bytes. */
static gpurest_batch *twice(const unsigned char in[64], unsigned char out[128])
{
    gpurest_batch *batch;
    gpurest_buffer b;
    gpurest_arg    args[2];

    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_not(bad(gpurest_alloc_from(w.session, &b, in, 64)));
    args[0] = GPUREST_BUF(b);
    args[1] = GPUREST_U32(64);
    for (int i = 0; i < 2; i++) {
        cr_assert_not(bad(gpurest_launch(w.session, w.add_one, GPUREST_1D(1), GPUREST_1D(64), 0, (gpurest_stream){0}, args, 2)));
        cr_assert_not(bad(gpurest_read(w.session, b, 0, out + 64 * i, 64)));
    }
    return batch;
}

Test(program, runs_again_and_again_with_other_bytes)
{
    unsigned char    in[64] = {10}, other[64] = {20}, out[128] = {0}, elsewhere[64] = {0};
    const void      *inputs[] = {other};
    void            *outputs[] = {NULL, elsewhere};
    gpurest_program *p;

    cr_assert_not(bad(gpurest_batch_prepare(twice(in, out), &p)));
    cr_assert_eq(out[0], 0);
    for (int i = 0; i < 3; i++) {
        memset(out, 0, sizeof out);
        cr_assert_not(bad(gpurest_program_run(p, NULL, 0, NULL, 0)));
        cr_assert_eq(out[0], 11);
        cr_assert_eq(out[64], 12);
        cr_assert_eq(out[127], 2);
        cr_assert_not(bad(gpurest_program_run(p, inputs, 1, outputs, 2)));
        cr_assert_eq(out[0], 21);
        cr_assert_eq(elsewhere[0], 22);
        cr_assert_eq(out[64], 12);
    }
    cr_assert_eq(gpurest_program_run(p, inputs, 2, NULL, 0), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_program_run(p, NULL, 1, NULL, 0), GPUREST_E_INVAL);
    gpurest_program_destroy(p);
}

Test(program, what_can_be_done_once_only_is_refused)
{
    unsigned char         in[64] = {0}, out[128];
    gpurest_launch_result result = GPUREST_LAUNCH_RESULT_INIT;
    gpurest_program      *p = NULL;
    gpurest_batch        *batch;
    gpurest_buffer        b;
    gpurest_arg           args[2];

    cr_assert_not(bad(gpurest_alloc(w.session, &b, 8)));
    args[0] = GPUREST_BUF(b);
    args[1] = GPUREST_U32(8);
    batch = twice(in, out);
    cr_assert_not(bad(gpurest_free(w.session, b)));
    cr_assert_eq(gpurest_batch_prepare(batch, &p), GPUREST_E_UNSUPPORTED);
    cr_assert_eq(gpurest_buffer_bytes(w.session, b), 8);
    batch = twice(in, out);
    cr_assert_not(bad(gpurest_launch_with(w.session, w.add_one, NULL, args, 2, &result)));
    cr_assert_eq(gpurest_batch_prepare(batch, &p), GPUREST_E_UNSUPPORTED);
    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_eq(gpurest_batch_prepare(batch, &p), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_batch_prepare(NULL, &p), GPUREST_E_INVAL);
    cr_assert_null(p);
}
