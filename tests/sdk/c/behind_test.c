/* Calls behind a kernel of the real service that takes longer than the idle time-out. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "client/client.h"
#include "support/fixture.h"

TestSuite(behind, .init = world_start, .fini = world_end);

enum { IDLE_MS = 1000, KERNEL_MS_MAX = 600000, UPLOAD_BYTES = 48 * 1024 * 1024 };

static const char    takes_long[] = "extern \"C\" __global__ void take_long(float *a, long long ticks)\n"
                                    "{\n"
                                    "    long long began = clock64();\n"
                                    "    while (clock64() - began < ticks) {}\n"
                                    "    *a += 1;\n"
                                    "}\n";
static const int64_t ticks = 4000000000; /* some seconds */

/* A client of either transport, and what it needs to launch that. */
struct scene {
    gpurest_client       *client;
    gpurest_session      *session;
    gpurest_module       *module;
    const gpurest_kernel *kernel;
    gpurest_buffer        buffer;
    gpurest_op           *op;
};

static void launch_long(struct scene *s, uint64_t bytes)
{
    gpurest_launch_config config = GPUREST_LAUNCH_CONFIG_INIT;
    gpurest_arg           args[2];

    cr_assert_not(bad(gpurest_alloc(s->session, &s->buffer, bytes)));
    args[0] = GPUREST_BUF(s->buffer);
    args[1] = GPUREST_I64(ticks);
    config.block = GPUREST_1D(1);
    config.timeout_ms = KERNEL_MS_MAX;
    cr_assert_not(bad(gpurest_launch_async(s->session, s->kernel, &config, args, 2, NULL, &s->op)));
}

static void open_scene(struct scene *s, int use_libcurl)
{
    s->client = client_of(w.service.url, use_libcurl);
    s->session = session_of(s->client);
    cr_assert_not(bad(gpurest_compile(s->session, &s->module, takes_long, NULL, 0)));
    cr_assert_not(bad(gpurest_kernel_get(s->module, "take_long", &s->kernel)));
    s->client->idle_ms = IDLE_MS; /* what comes before may take its time on a busy machine */
}

static void close_scene(struct scene *s)
{
    cr_assert_not(bad(gpurest_op_wait(s->op, -1)));
    gpurest_op_free(s->op);
    gpurest_module_unload(s->module);
    gpurest_session_close(s->session);
    gpurest_close(s->client);
}

static void read_buffer(struct scene *s)
{
    float value = 0;

    cr_assert_not(bad(gpurest_read(s->session, s->buffer, 0, &value, sizeof value)));
    cr_assert_gt(value, 0);
}

static void write_buffer(struct scene *s)
{
    char *data = calloc(1, UPLOAD_BYTES);

    cr_assert_not(bad(gpurest_write(s->session, s->buffer, 0, data, UPLOAD_BYTES)));
    free(data);
}

static void sync_session(struct scene *s)
{
    cr_assert_not(bad(gpurest_sync(s->session)));
}

static gpurest_batch *batch_of(struct scene *s, float *out)
{
    gpurest_arg    args[] = {GPUREST_BUF(s->buffer), GPUREST_I64(1)};
    gpurest_batch *batch;

    cr_assert_not(bad(gpurest_batch_begin(s->session, &batch)));
    cr_assert_not(bad(gpurest_launch(s->session, s->kernel, GPUREST_1D(1), GPUREST_1D(1), 0, (gpurest_stream){0}, args, 2)));
    cr_assert_not(bad(gpurest_read(s->session, s->buffer, 0, out, sizeof *out)));
    return batch;
}

static void submit_batch(struct scene *s)
{
    float value = 0;

    cr_assert_not(bad(gpurest_batch_submit(batch_of(s, &value), NULL)));
    cr_assert_gt(value, 0);
}

static void run_program(struct scene *s)
{
    float            value = 0;
    gpurest_program *program;

    cr_assert_not(bad(gpurest_batch_prepare(batch_of(s, &value), &program)));
    cr_assert_not(bad(gpurest_program_run(program, NULL, 0, NULL, 0)));
    gpurest_program_destroy(program);
    cr_assert_gt(value, 0);
}

static void free_buffer(struct scene *s)
{
    cr_assert_not(bad(gpurest_free(s->session, s->buffer)));
}

static void waits(void (*act)(struct scene *s), uint64_t bytes)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        struct scene s = {0};

        open_scene(&s, use_libcurl);
        launch_long(&s, bytes);
        act(&s);
        close_scene(&s);
    }
}

Test(behind, a_read)
{
    waits(read_buffer, sizeof(float));
}

Test(behind, a_write)
{
    waits(write_buffer, UPLOAD_BYTES);
}

Test(behind, a_sync)
{
    waits(sync_session, sizeof(float));
}

Test(behind, a_batch)
{
    waits(submit_batch, sizeof(float));
}

Test(behind, a_program)
{
    waits(run_program, sizeof(float));
}

Test(behind, the_end_of_a_buffer)
{
    waits(free_buffer, sizeof(float));
}
