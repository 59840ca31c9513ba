/* A kernel with as many parameter bytes as CUDA allows, most of them one struct, by every way to launch. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "support/fixture.h"

enum { STRUCT_WORDS = (PARAM_BYTES_MAX - 12) / 4, STRUCT_BYTES = 4 * STRUCT_WORDS }; /* beside a pointer and a count */

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

/* The struct is one byte longer than its parameter. */
struct world {
    struct service        service;
    gpurest_client       *client;
    gpurest_session      *session;
    gpurest_module       *module;
    const gpurest_kernel *kernel;
    gpurest_buffer        out;
    unsigned              words[STRUCT_WORDS + 1], got[STRUCT_WORDS];
    gpurest_arg           args[3];
};

static void start(struct world *w)
{
    size_t offset, bytes;

    service_start(&w->service, NULL, NULL);
    w->client = client_of(w->service.url, 0);
    w->session = session_of(w->client);
    cr_assert_not(bad(gpurest_compile(w->session, &w->module, source(STRUCT_WORDS), NULL, 0)));
    cr_assert_not(bad(gpurest_kernel_get(w->module, "take", &w->kernel)));
    cr_assert_not(bad(gpurest_kernel_param(w->kernel, 2, &offset, &bytes)));
    cr_assert_eq(offset + bytes, PARAM_BYTES_MAX);
    for (unsigned i = 0; i < STRUCT_WORDS; i++)
        w->words[i] = 40503 * i + 1;
    cr_assert_not(bad(gpurest_alloc(w->session, &w->out, STRUCT_BYTES)));
    w->args[0] = GPUREST_BUF(w->out);
    w->args[1] = GPUREST_U32(STRUCT_WORDS);
    w->args[2] = GPUREST_BYTES(w->words, STRUCT_BYTES);
}

static void end(struct world *w)
{
    gpurest_module_unload(w->module);
    gpurest_session_close(w->session);
    gpurest_close(w->client);
    service_stop(&w->service);
}

static gpurest_status launch(struct world *w)
{
    return gpurest_launch(w->session, w->kernel, GPUREST_1D(1), GPUREST_1D(256), 0, (gpurest_stream){0}, w->args, 3);
}

static void expect(struct world *w)
{
    cr_assert_eq(memcmp(w->got, w->words, STRUCT_BYTES), 0);
    memset(w->got, 0, STRUCT_BYTES);
}

Test(parameters, as_many_bytes_of_parameters_as_there_can_be)
{
    static struct world   w;
    gpurest_launch_config c = GPUREST_LAUNCH_CONFIG_INIT;
    static unsigned char  block[PARAM_BYTES_MAX];

    start(&w);
    cr_assert_not(bad(launch(&w)));
    cr_assert_not(bad(gpurest_read(w.session, w.out, 0, w.got, STRUCT_BYTES)));
    expect(&w);
    memcpy(block + 12, w.words, STRUCT_BYTES); /* no words to copy, so the null pointer is not used */
    c.block = GPUREST_1D(256);
    cr_assert_not(bad(gpurest_launch_raw(w.session, w.kernel, &c, block, sizeof block)));
    cr_assert_eq(gpurest_launch_raw(w.session, w.kernel, &c, block, sizeof block - 1), GPUREST_E_INVAL);
    w.args[2] = GPUREST_BYTES(w.words, STRUCT_BYTES + 1);
    cr_assert_eq(launch(&w), GPUREST_E_INVAL);
    cr_assert_not_null(strstr(gpurest_last_error()->message, "32753 bytes, the parameter 32752"), "%s", gpurest_last_error()->message);
    cr_assert_eq(gpurest_last_error()->http_status, 0);
    end(&w);
}

Test(parameters, as_many_bytes_of_parameters_in_batches_and_programs)
{
    static struct world w;
    gpurest_batch      *batch;
    gpurest_program    *p;

    start(&w);
    for (int prepared = 0; prepared <= 1; prepared++) {
        cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
        for (int i = 0; i < 2; i++)
            cr_assert_not(bad(launch(&w)));
        cr_assert_not(bad(gpurest_read(w.session, w.out, 0, w.got, STRUCT_BYTES)));
        cr_assert_not(bad(prepared ? gpurest_batch_prepare(batch, &p) : gpurest_batch_submit(batch, NULL)));
        if (prepared)
            cr_assert_not(bad(gpurest_program_run(p, NULL, 0, NULL, 0)));
        expect(&w);
        cr_assert_not(bad(gpurest_fill(w.session, w.out, 0, 0, 4, STRUCT_WORDS, (gpurest_stream){0})));
    }
    gpurest_program_destroy(p);
    end(&w);
}

Test(parameters, a_module_with_more_is_refused_by_the_bound)
{
    struct world w;

    service_start(&w.service, NULL, NULL);
    w.client = client_of(w.service.url, 0);
    w.session = session_of(w.client);
    w.module = NULL;
    cr_assert_eq(gpurest_compile(w.session, &w.module, source(STRUCT_WORDS + 1), NULL, 0), GPUREST_E_COMPILE);
    cr_assert_not_null(strstr(gpurest_last_error()->log, "max 32764 bytes"), "%s", gpurest_last_error()->log);
    end(&w);
}

static void run_refuses_bytes(gpurest_client *c, const gpurest_arg args[3], const char *words)
{
    cr_assert_eq(gpurest_run(c, source(STRUCT_WORDS), "take", GPUREST_1D(1), GPUREST_1D(256), args, 3, NULL), GPUREST_E_INVAL);
    cr_assert_not_null(strstr(gpurest_last_error()->message, words), "%s", gpurest_last_error()->message);
}

Test(parameters, run_takes_as_many_bytes_of_parameters)
{
    struct service  v;
    static unsigned words[PARAM_BYTES_MAX / 4 + 1] = {1, 2, 3}, got[STRUCT_WORDS];
    gpurest_client *c;
    gpurest_arg     args[] = {GPUREST_OUT(got, STRUCT_BYTES), GPUREST_U32(STRUCT_WORDS), GPUREST_BYTES(words, STRUCT_BYTES)};

    words[STRUCT_WORDS - 1] = 4;
    service_start(&v, NULL, NULL);
    c = client_of(v.url, 0);
    cr_assert_not(bad(gpurest_run(c, source(STRUCT_WORDS), "take", GPUREST_1D(1), GPUREST_1D(256), args, 3, NULL)));
    cr_assert_eq(memcmp(got, words, STRUCT_BYTES), 0);
    args[2] = GPUREST_BYTES(words, STRUCT_BYTES + 1);
    run_refuses_bytes(c, args, "takes 32752 bytes, got 32753");
    args[2] = GPUREST_BYTES(words, PARAM_BYTES_MAX + 1);
    run_refuses_bytes(c, args, "argument 2 has 32765 bytes, a kernel's parameters at most 32764");
    cr_assert_eq(gpurest_last_error()->http_status, 0);
    args[2] = GPUREST_BYTES(NULL, STRUCT_BYTES);
    run_refuses_bytes(c, args, "argument 2 is NULL or has 0 bytes");
    gpurest_close(c);
    service_stop(&v);
}
