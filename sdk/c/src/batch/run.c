/* gpurest_run: source to results in one request. */
#include <gpurest/builtin.h>
#include <stdio.h>
#include <stdlib.h>

#include "batch/frame.h"
#include "code/args.h"

/* A kernel of a source or a built-in one. */
struct code {
    const char           *source, *kernel;          /* of a source */
    const char           *builtin, *dtype, *engine; /* if source is NULL */
    gpurest_launch_config config;
};

static bool is_host(const gpurest_arg *a)
{
    return a->kind == GPUREST_ARG_IN || a->kind == GPUREST_ARG_OUT || a->kind == GPUREST_ARG_INOUT;
}

static bool is_input(const gpurest_arg *a)
{
    return a->kind == GPUREST_ARG_IN || a->kind == GPUREST_ARG_INOUT;
}

static bool is_output(const gpurest_arg *a)
{
    return a->kind == GPUREST_ARG_OUT || a->kind == GPUREST_ARG_INOUT;
}

/* Parameters by value. */
static gpurest_status check_bytes(const gpurest_arg *a, size_t i)
{
    if (!a->in || a->bytes == 0)
        return fail_invalid("argument %zu is NULL or has 0 bytes", i);
    if (a->bytes > PARAM_BYTES_MAX)
        return fail(GPUREST_E_INVAL, "GPUREST_IN passes memory of any length",
                    "argument %zu has %zu bytes, a kernel's parameters at most %d", i, a->bytes, PARAM_BYTES_MAX);
    return GPUREST_OK;
}

static gpurest_status check_args(const gpurest_arg *args, size_t count)
{
    gpurest_status st = GPUREST_OK;

    if (count && !args)
        return fail_invalid("the arguments are NULL");
    if (count > PARAMS_MAX)
        return fail_invalid("a kernel has at most %d parameters", PARAMS_MAX);
    for (size_t i = 0; i < count && !st; i++) {
        const gpurest_arg *a = &args[i];
        if (a->kind == GPUREST_ARG_BUFFER || a->kind == GPUREST_ARG_TEXTURE || a->kind == GPUREST_ARG_SURFACE)
            return fail(GPUREST_E_INVAL, "GPUREST_IN, _OUT and _INOUT pass memory",
                        "argument %zu is a handle of a session, but gpurest_run has none", i);
        if (is_host(a) && (a->bytes == 0 || (is_input(a) && !a->in) || (is_output(a) && !a->out)))
            return fail_invalid("argument %zu is NULL or has 0 bytes", i);
        if (a->kind == GPUREST_ARG_BYTES)
            st = check_bytes(a, i);
    }
    return st;
}

/* ---- the message ---- */

static void write_segments(struct buf *b, const gpurest_arg *args, size_t count)
{
    char id[24];

    json_open(b, "segments", '[');
    for (size_t i = 0; i < count; i++) {
        if (!is_input(&args[i]))
            continue;
        snprintf(id, sizeof id, "a%zu", i);
        json_open(b, NULL, '{');
        json_string(b, "id", id);
        json_u64(b, "size", args[i].bytes);
        json_close(b, '}');
    }
    json_close(b, ']');
}

static void write_alloc(struct buf *b, const gpurest_arg *a, const char *name)
{
    json_open(b, NULL, '{');
    json_string(b, "op", "alloc");
    json_string(b, "as", name);
    if (is_input(a))
        json_string(b, "segment", name + 1);
    else
        json_u64(b, "size", a->bytes);
    json_close(b, '}');
}

static void write_read(struct buf *b, const char *name)
{
    json_open(b, NULL, '{');
    json_string(b, "op", "read");
    json_string(b, "from", name);
    json_string(b, "segment", name + 1);
    json_close(b, '}');
}

static gpurest_status write_launch(struct buf *b, const struct code *c, const gpurest_arg *args, size_t count)
{
    gpurest_status st = GPUREST_OK;
    char           name[24];

    json_open(b, NULL, '{');
    json_string(b, "op", "launch");
    if (c->source) {
        json_string(b, "kernel", c->kernel);
        shape_write(b, &c->config);
    } else {
        builtin_write(b, c->builtin, c->dtype, c->engine);
    }
    json_open(b, "args", '[');
    for (size_t i = 0; i < count && !st; i++) {
        snprintf(name, sizeof name, "$a%zu", i);
        json_open(b, NULL, '{');
        if (is_host(&args[i]))
            json_string(b, "buf", name);
        else if (!arg_write_value(b, &args[i]))
            st = fail_invalid("argument %zu has an unknown kind", i);
        json_close(b, '}');
    }
    json_close(b, ']');
    json_close(b, '}');
    return st;
}

static gpurest_status write_ops(struct buf *b, const struct code *c, const gpurest_arg *args, size_t count)
{
    gpurest_status st;
    char           name[24];

    json_open(b, "ops", '[');
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "$a%zu", i);
        if (is_host(&args[i]))
            write_alloc(b, &args[i], name);
    }
    st = write_launch(b, c, args, count);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "$a%zu", i);
        if (is_output(&args[i]))
            write_read(b, name);
    }
    json_close(b, ']');
    return st;
}

/* ---- public functions ---- */

static void take_times(const struct json *answer, gpurest_times *out)
{
    const struct json *t = json_member(answer, "timing");

    out->compile_ms = json_number_or(json_member(t, "compile_ms"), 0);
    out->upload_ms = json_number_or(json_member(t, "recv_ms"), 0);
    out->run_ms = json_number_or(json_member(t, "run_ms"), 0);
    out->gpu_us = json_number_or(json_member(json_item(json_member(answer, "ops"), 0), "gpu_us"), 0);
}

/* Of the launch, which is the only operation with a result. */
static void take_output(gpurest_client *client, const struct json *launch)
{
    client_output(client, json_text_or(json_member(launch, "stdout"), ""), json_true(json_member(launch, "stdout_truncated")));
}

static gpurest_status perform_run_request(gpurest_client *client, const char *json, const gpurest_arg *args, size_t count,
                                          gpurest_times *times)
{
    struct piece       segments[PARAMS_MAX];
    struct frame_place places[PARAMS_MAX];
    struct frame_call  f = {
         .path = "/v1/run", .json = json, .segments = segments, .places = places, .idle_ms = EXECUTION_TIMEOUT_MS_DEFAULT + SLACK_MS};
    gpurest_status st;

    for (size_t i = 0; i < count; i++) {
        struct frame_place *p = &places[f.places_count];
        if (is_input(&args[i]))
            segments[f.segments_count++] = (struct piece){args[i].in, args[i].bytes};
        if (!is_output(&args[i]))
            continue;
        snprintf(p->id, sizeof p->id, "a%zu", i);
        p->data = args[i].out;
        p->bytes = args[i].bytes;
        f.places_count++;
    }
    st = frame_perform(client, &f);
    if (!st && times)
        take_times(f.answer, times);
    if (!st)
        take_output(client, json_item(json_member(f.answer, "ops"), 0));
    json_destroy(f.answer);
    return st;
}

static gpurest_status write_message(struct buf *b, const struct code *c, const gpurest_arg *args, size_t count, bool timed)
{
    gpurest_status st;

    json_open(b, NULL, '{');
    write_segments(b, args, count);
    if (c->source) {
        json_open(b, "module", '{');
        json_string(b, "source", c->source);
        json_close(b, '}');
    }
    if (!timed)
        json_bool(b, "timing", false);
    if (c->config.timeout_ms)
        json_u64(b, "timeout_ms", c->config.timeout_ms);
    st = write_ops(b, c, args, count);
    json_close(b, '}');
    if (!st && b->failed)
        st = fail(GPUREST_E_LIMIT, "compile it in a session", "the source is too long for gpurest_run");
    return st;
}

static gpurest_status run_code(gpurest_client *client, const struct code *c, const gpurest_arg *args, size_t count, gpurest_times *times)
{
    struct buf     b;
    gpurest_status st = check_args(args, count);

    if (st)
        return st;
    buf_init(&b, 2 * (size_t)BATCH_JSON_BYTES_MAX);
    st = write_message(&b, c, args, count, times != NULL);
    if (!st)
        st = perform_run_request(client, buf_text(&b), args, count, times);
    buf_finish(&b);
    return st;
}

gpurest_status gpurest_run_with(gpurest_client *client, const char *source, const char *kernel, const gpurest_launch_config *config,
                                const gpurest_arg *args, size_t args_count, gpurest_times *times_or_null)
{
    struct code    c = {.source = source, .kernel = kernel, .config = GPUREST_LAUNCH_CONFIG_INIT};
    gpurest_status st = client_check(client);

    if (!st && (!source || !kernel))
        st = fail_invalid("the source or the kernel's name is NULL");
    if (!st && config && !struct_copy_in(&c.config, sizeof c.config, config))
        st = fail_invalid("config.struct_size is not set: start from the _INIT macro");
    if (!st && c.config.stream.id)
        st = fail_invalid("a run has no streams");
    return st ? st : run_code(client, &c, args, args_count, times_or_null);
}

gpurest_status gpurest_run(gpurest_client *client, const char *source, const char *kernel, gpurest_dim3 grid, gpurest_dim3 block,
                           const gpurest_arg *args, size_t args_count, gpurest_times *times_or_null)
{
    gpurest_launch_config config = GPUREST_LAUNCH_CONFIG_INIT;

    config.grid = grid;
    config.block = block;
    return gpurest_run_with(client, source, kernel, &config, args, args_count, times_or_null);
}

gpurest_status gpurest_run_builtin(gpurest_client *client, const char *name, const char *dtype, const char *engine_or_null,
                                   const gpurest_arg *args, size_t args_count, gpurest_times *times_or_null)
{
    struct code    c = {.builtin = name, .dtype = dtype, .engine = engine_or_null};
    gpurest_status st = client_check(client);

    if (!st)
        st = builtin_check(name, dtype, engine_or_null);
    return st ? st : run_code(client, &c, args, args_count, times_or_null);
}
