/* A kernel with as many parameter bytes as CUDA allows, most of them one struct, by every way to launch. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "support/fixture.h"

TestSuite(parameters, .init = world_start_bare, .fini = world_end);

enum { STRUCT_WORDS = (PARAM_BYTES_MAX - 12) / 4, STRUCT_BYTES = 4 * STRUCT_WORDS }; /* in a struct, beside a pointer and a count */

static const char format[] = "struct big { unsigned w[%d]; };\n"
                             "extern \"C\" __global__ void take(unsigned *out, unsigned n, big b)\n"
                             "{\n"
                             "    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) out[i] = b.w[i];\n"
                             "}\n";

static const char *source(int words)
{
    static char text[512];

    snprintf(text, sizeof text, format, words);
    return text;
}

/* The struct has a byte more than its parameter behind it. */
static struct {
    const gpurest_kernel *kernel;
    gpurest_buffer        out;
    unsigned              words[STRUCT_WORDS + 1], got[STRUCT_WORDS];
    gpurest_arg           args[3];
} t;

static void start(void)
{
    size_t offset, bytes;

    cr_assert_not(bad(gpurest_compile(w.session, &w.module, source(STRUCT_WORDS), NULL, 0)));
    cr_assert_not(bad(gpurest_kernel_get(w.module, "take", &t.kernel)));
    cr_assert_not(bad(gpurest_kernel_param(t.kernel, 2, &offset, &bytes)));
    cr_assert_eq(offset + bytes, PARAM_BYTES_MAX);
    for (unsigned i = 0; i < STRUCT_WORDS; i++)
        t.words[i] = 40503 * i + 1;
    cr_assert_not(bad(gpurest_alloc(w.session, &t.out, STRUCT_BYTES)));
    t.args[0] = GPUREST_BUF(t.out);
    t.args[1] = GPUREST_U32(STRUCT_WORDS);
    t.args[2] = GPUREST_BYTES(t.words, STRUCT_BYTES);
}

static gpurest_status launch(void)
{
    return gpurest_launch(w.session, t.kernel, GPUREST_1D(1), GPUREST_1D(256), 0, (gpurest_stream){0}, t.args, 3);
}

static void expect(void)
{
    cr_assert_eq(memcmp(t.got, t.words, STRUCT_BYTES), 0);
    memset(t.got, 0, STRUCT_BYTES);
}

Test(parameters, as_many_bytes_of_parameters_as_there_can_be)
{
    gpurest_launch_config c = GPUREST_LAUNCH_CONFIG_INIT;
    static unsigned char  block[PARAM_BYTES_MAX];

    start();
    cr_assert_not(bad(launch()));
    cr_assert_not(bad(gpurest_read(w.session, t.out, 0, t.got, STRUCT_BYTES)));
    expect();
    memcpy(block + 12, t.words, STRUCT_BYTES); /* no words to copy, so the null pointer is not used */
    c.block = GPUREST_1D(256);
    cr_assert_not(bad(gpurest_launch_raw(w.session, t.kernel, &c, block, sizeof block)));
    cr_assert_eq(gpurest_launch_raw(w.session, t.kernel, &c, block, sizeof block - 1), GPUREST_E_INVAL);
    t.args[2] = GPUREST_BYTES(t.words, STRUCT_BYTES + 1);
    cr_assert_eq(launch(), GPUREST_E_INVAL);
    cr_assert_not_null(strstr(gpurest_last_error()->message, "32753 bytes, the parameter 32752"), "%s", gpurest_last_error()->message);
    cr_assert_eq(gpurest_last_error()->http_status, 0);
}

Test(parameters, as_many_bytes_of_parameters_in_batches_and_programs)
{
    gpurest_batch   *batch;
    gpurest_program *p;

    start();
    for (int prepared = 0; prepared <= 1; prepared++) {
        cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
        for (int i = 0; i < 2; i++)
            cr_assert_not(bad(launch()));
        cr_assert_not(bad(gpurest_read(w.session, t.out, 0, t.got, STRUCT_BYTES)));
        cr_assert_not(bad(prepared ? gpurest_batch_prepare(batch, &p) : gpurest_batch_submit(batch, NULL)));
        if (prepared)
            cr_assert_not(bad(gpurest_program_run(p, NULL, 0, NULL, 0)));
        expect();
        cr_assert_not(bad(gpurest_fill(w.session, t.out, 0, 0, 4, STRUCT_WORDS, (gpurest_stream){0})));
    }
    gpurest_program_destroy(p);
}

Test(parameters, a_module_with_more_is_refused_by_the_bound)
{
    cr_assert_eq(gpurest_compile(w.session, &w.module, source(STRUCT_WORDS + 1), NULL, 0), GPUREST_E_COMPILE);
    cr_assert_not_null(strstr(gpurest_last_error()->log, "max 32764 bytes"), "%s", gpurest_last_error()->log);
}

static void run_refuses_bytes(gpurest_client *c, const gpurest_arg args[3], const char *words)
{
    cr_assert_eq(gpurest_run(c, source(STRUCT_WORDS), "take", GPUREST_1D(1), GPUREST_1D(256), args, 3, NULL), GPUREST_E_INVAL);
    cr_assert_not_null(strstr(gpurest_last_error()->message, words), "%s", gpurest_last_error()->message);
}

Test(parameters, run_takes_as_many_bytes_of_parameters)
{
    static unsigned words[PARAM_BYTES_MAX / 4 + 1] = {1, 2, 3}, got[STRUCT_WORDS];
    gpurest_arg     args[] = {GPUREST_OUT(got, STRUCT_BYTES), GPUREST_U32(STRUCT_WORDS), GPUREST_BYTES(words, STRUCT_BYTES)};

    words[STRUCT_WORDS - 1] = 4;
    cr_assert_not(bad(gpurest_run(w.client, source(STRUCT_WORDS), "take", GPUREST_1D(1), GPUREST_1D(256), args, 3, NULL)));
    cr_assert_eq(memcmp(got, words, STRUCT_BYTES), 0);
    args[2] = GPUREST_BYTES(words, STRUCT_BYTES + 1);
    run_refuses_bytes(w.client, args, "takes 32752 bytes, got 32753");
    args[2] = GPUREST_BYTES(words, PARAM_BYTES_MAX + 1);
    run_refuses_bytes(w.client, args, "argument 2 has 32765 bytes, a kernel's parameters at most 32764");
    cr_assert_eq(gpurest_last_error()->http_status, 0);
    args[2] = GPUREST_BYTES(NULL, STRUCT_BYTES);
    run_refuses_bytes(w.client, args, "argument 2 is NULL or has 0 bytes");
}
