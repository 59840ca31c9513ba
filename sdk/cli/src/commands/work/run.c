/* run. */
#include <errno.h>
#include <gpurest/builtin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands/work/code.h"

/* One argument of the kernel, in the line's order. */
struct argument {
    struct array array;
    const char  *text;
    char         path[PATH_BYTES]; /* of the output file; "" = none */
    bool         raw;
};

struct job {
    struct argument arguments[ARGUMENTS_MAX];
    gpurest_arg     values[ARGUMENTS_MAX];
    size_t          count;
    gpurest_dim3    grid, block;              /* block.x 0: chosen by the service */
    const char     *builtin, *dtype, *engine; /* builtin NULL: a kernel of a file */
    const char     *device;                   /* NULL: chosen by the service */
    char          **options;                  /* of the compiler */
    int             options_count;
    char           *source; /* the file's content */
    size_t          source_bytes;
    bool            shader;
    bool            mute; /* what the kernel prints is dropped */
    bool            cooperative;
};

static const struct {
    const char      *name;
    gpurest_arg_kind kind;
} types[] = {{"i8", GPUREST_ARG_I8},   {"i16", GPUREST_ARG_I16}, {"i32", GPUREST_ARG_I32}, {"i64", GPUREST_ARG_I64},
             {"u8", GPUREST_ARG_U8},   {"u16", GPUREST_ARG_U16}, {"u32", GPUREST_ARG_U32}, {"u64", GPUREST_ARG_U64},
             {"f32", GPUREST_ARG_F32}, {"f64", GPUREST_ARG_F64}};

static bool integer_fits(gpurest_arg_kind kind, long long i)
{
    unsigned bits = kind <= GPUREST_ARG_I64 ? 8u << (kind - GPUREST_ARG_I8) : 8u << (kind - GPUREST_ARG_U8);

    if (bits == 64)
        return true;
    if (kind <= GPUREST_ARG_I64)
        return i >= -(1ll << (bits - 1)) && i < 1ll << (bits - 1);
    return i >= 0 && i < 1ll << bits;
}

static bool parse_integer(gpurest_arg_kind kind, const char *text, gpurest_arg *out)
{
    char *end;

    if (kind == GPUREST_ARG_U64)
        return parse_number(text, &out->value.u);
    errno = 0;
    out->value.i = strtoll(text, &end, 0);
    return errno == 0 && end != text && *end == '\0' && integer_fits(kind, out->value.i);
}

static bool parse_float(gpurest_arg_kind kind, const char *text, gpurest_arg *out)
{
    char  *end;
    double d = strtod(text, &end);
    bool   beyond = isinf(kind == GPUREST_ARG_F32 ? (double)(float)d : d) && !strpbrk(text, "iI"); /* accepts "inf", rejects 1e400 */

    if (kind == GPUREST_ARG_F32)
        out->value.f32 = (float)d;
    else
        out->value.f64 = d;
    return end != text && *end == '\0' && !beyond;
}

/* "f32:2.0" */
static bool parse_scalar(const char *text, gpurest_arg *out)
{
    size_t n = strcspn(text, ":");

    for (size_t i = 0; text[n] && i < COUNT(types); i++) {
        if (strlen(types[i].name) != n || strncmp(types[i].name, text, n) != 0)
            continue;
        *out = gpurest_arg_make(types[i].kind);
        return types[i].kind >= GPUREST_ARG_F32 ? parse_float(types[i].kind, text + n + 1, out)
                                                : parse_integer(types[i].kind, text + n + 1, out);
    }
    return false;
}

/* ---- run ---- */

static bool add_scalar(struct cli *c, struct job *job, const char *text)
{
    if (parse_scalar(text, &job->values[job->count]))
        return true;
    cli_usage(c, "\"%s\" is not TYPE:VALUE, such as f32:2.0 or i32:7, with a value that fits the type", text);
    return false;
}

/* The service has no buffers of no bytes, and a kernel could not tell one from a null pointer. What is refused is freed: it is not counted. */
static bool has_bytes(struct cli *c, const char *text, struct array *a)
{
    if (a->bytes)
        return true;
    cli_usage(c, "\"%s\" has no elements: a kernel's argument has at least one byte; leave the launch out, or give it one element", text);
    array_free(a);
    return false;
}

static bool add_in(struct cli *c, struct job *job, const char *path)
{
    struct array *a = &job->arguments[job->count].array;

    if (!array_read(path, a) || !has_bytes(c, path, a))
        return false;
    job->values[job->count] = GPUREST_IN(a->data, a->bytes);
    return true;
}

/* A parameter by value, such as a struct, from the bytes of a file. */
static bool add_struct(struct cli *c, struct job *job, const char *path)
{
    struct array *a = &job->arguments[job->count].array;

    (void)c;
    if (!array_read(path, a))
        return false;
    job->values[job->count] = GPUREST_BYTES(a->data, a->bytes);
    return true;
}

static bool add_out(struct cli *c, struct job *job, const char *text)
{
    struct argument *a = &job->arguments[job->count];

    if (!array_describe(text, a->path, &a->array, &a->raw)) {
        cli_usage(c, "\"%s\" is not FILE:DTYPE[SHAPE], such as y.npy:f32[1024], or FILE:BYTES; DTYPE is " ARRAY_TYPES, text);
        return false;
    }
    if (!has_bytes(c, text, &a->array))
        return false;
    job->values[job->count] = GPUREST_OUT(a->array.data, a->array.bytes);
    return true;
}

/* "FILE" is overwritten; "FILE:TO" writes to TO. */
static bool add_inout(struct cli *c, struct job *job, const char *text)
{
    struct argument *a = &job->arguments[job->count];
    const char      *colon = strchr(text, ':');
    char             from[PATH_BYTES];

    snprintf(from, sizeof from, "%.*s", colon ? (int)(colon - text) : (int)strlen(text), text);
    snprintf(a->path, sizeof a->path, "%s", colon ? colon + 1 : text);
    if (!array_read(from, &a->array) || !has_bytes(c, from, &a->array))
        return false;
    a->raw = a->array.raw;
    job->values[job->count] = GPUREST_INOUT(a->array.data, a->array.bytes);
    return true;
}

/* "--in", or "--in=…" */
static bool is_option(const char *text, const char *name)
{
    size_t n = strlen(name);

    return strncmp(text, name, n) == 0 && (text[n] == '\0' || text[n] == '=');
}

static const struct {
    const char *name;
    bool (*add)(struct cli *c, struct job *job, const char *value);
} argument_options[] = {{"--in", add_in}, {"--out", add_out}, {"--inout", add_inout}, {"--arg", add_scalar}, {"--struct", add_struct}};

/* Takes the kernel's arguments in order. */
static bool take_arguments(struct cli *c, struct job *job)
{
    for (int i = 0; i < c->argc;) {
        const char *value;
        bool        ok = true;
        size_t      which = 0;

        while (which < COUNT(argument_options) && !is_option(c->argv[i], argument_options[which].name))
            which++;
        if (which == COUNT(argument_options)) {
            i++;
            continue;
        }
        if (job->count == ARGUMENTS_MAX || !take_value(c, argument_options[which].name, &value, &ok))
            return ok ? cli_usage(c, "at most %d kernel arguments are supported", ARGUMENTS_MAX) == CODE_OK : false;
        if (!argument_options[which].add(c, job, value))
            return false;
        job->count++;
    }
    return true;
}

/* "4", "4,2" or "4,2,1" */
static bool parse_dim3(const char *text, gpurest_dim3 *out)
{
    char     copy[64], *rest = copy;
    uint64_t n[3] = {1, 1, 1};

    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return false;
    for (unsigned i = 0; rest; i++) {
        const char *one = next_part(&rest, ',');

        if (i == COUNT(n) || !parse_number(one, &n[i]) || n[i] < 1 || n[i] > UINT32_MAX)
            return false;
    }
    *out = gpurest_dim3_make((unsigned)n[0], (unsigned)n[1], (unsigned)n[2]);
    return true;
}

/* Left as it is when absent. */
static bool take_dim3(struct cli *c, const char *name, gpurest_dim3 *out)
{
    const char *text;
    bool        ok = true;

    if (!take_value(c, name, &text, &ok))
        return ok;
    if (parse_dim3(text, out))
        return true;
    cli_usage(c, "%s expects X, X,Y or X,Y,Z, each from 1 to %u, not \"%s\"", name, (unsigned)UINT32_MAX, text);
    return false;
}

static enum exit_code write_results(struct job *job)
{
    enum exit_code code = CODE_OK;

    for (size_t i = 0; i < job->count; i++)
        if (job->arguments[i].path[0] && !array_write(job->arguments[i].path, &job->arguments[i].array, job->arguments[i].raw))
            code = CODE_FAILED;
    return code;
}

/* `arg`: where to. */
static void print_output(void *arg, const char *text, int truncated)
{
    fputs(text, arg);
    if (truncated)
        fputs("gpurest: the kernel printed more than the service keeps; the rest is lost\n", stderr);
}

/* Standard output, unless an array goes there. */
static FILE *place_of_output(const struct job *job)
{
    for (size_t i = 0; i < job->count; i++)
        if (strcmp(job->arguments[i].path, "-") == 0)
            return stderr;
    return stdout;
}

/* ---- in one request ---- */

static gpurest_launch_config config_of(const struct job *job)
{
    gpurest_launch_config config = GPUREST_LAUNCH_CONFIG_INIT;

    config.grid = job->grid;
    config.block = job->block;
    config.cooperative = job->cooperative;
    return config;
}

static gpurest_status run_at_once(struct cli *c, const struct job *job, gpurest_times *times)
{
    gpurest_launch_config config = config_of(job);

    if (!job->mute)
        gpurest_client_set_output(c->client, print_output, place_of_output(job));
    if (job->builtin)
        return gpurest_run_builtin(c->client, job->builtin, job->dtype, job->engine, job->values, job->count, times);
    return gpurest_run_with(c->client, job->source, c->argv[1], &config, job->values, job->count, times);
}

/* ---- in a session of its own, which has a device or options of the compiler ---- */

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static gpurest_status load_kernel(struct cli *c, struct job *job, gpurest_session *s, gpurest_module **m, const gpurest_kernel **k,
                                  gpurest_times *times)
{
    gpurest_status st;

    if (job->builtin)
        st = gpurest_module_builtin(s, m, job->builtin, job->dtype, job->engine);
    else
        st = code_load(s, c->argv[0], job->source, job->source_bytes, job->options, job->options_count, m);
    if (!st)
        times->compile_ms = gpurest_module_compile_ms(*m, NULL);
    if (!st)
        st = job->builtin ? gpurest_kernel_at(*m, 0, k) : gpurest_kernel_get(*m, c->argv[1], k);
    return st;
}

/* Each array becomes a buffer; `to` has the arguments with these. */
static gpurest_status make_buffers(const struct job *job, gpurest_session *s, gpurest_arg *to)
{
    gpurest_status st = GPUREST_OK;

    for (size_t i = 0; i < job->count && !st; i++) {
        const gpurest_arg *a = &job->values[i];
        gpurest_buffer     b;

        to[i] = *a;
        if (a->kind != GPUREST_ARG_IN && a->kind != GPUREST_ARG_OUT && a->kind != GPUREST_ARG_INOUT)
            continue;
        st = a->in ? gpurest_alloc_from(s, &b, a->in, a->bytes) : gpurest_alloc(s, &b, a->bytes);
        if (!st)
            to[i] = GPUREST_BUF(b);
    }
    return st;
}

static gpurest_status read_buffers(const struct job *job, gpurest_session *s, const gpurest_arg *from)
{
    gpurest_status st = GPUREST_OK;

    for (size_t i = 0; i < job->count && !st; i++)
        if (job->values[i].out)
            st = gpurest_read(s, from[i].value.buffer, 0, job->values[i].out, job->values[i].bytes);
    return st;
}

static gpurest_status run_launch(const struct job *job, gpurest_session *s, const gpurest_kernel *k, gpurest_times *times)
{
    gpurest_launch_result result = GPUREST_LAUNCH_RESULT_INIT;
    gpurest_launch_config config = config_of(job);
    gpurest_arg           args[ARGUMENTS_MAX];
    double                began = now_ms();
    gpurest_status        st = make_buffers(job, s, args);

    times->upload_ms = now_ms() - began;
    began = now_ms();
    if (!st)
        st = gpurest_launch_with(s, k, &config, args, job->count, &result);
    if (!st && !job->mute && result.output && result.output[0])
        print_output(place_of_output(job), result.output, result.output_truncated);
    if (!st)
        st = read_buffers(job, s, args);
    times->run_ms = now_ms() - began;
    times->gpu_us = result.gpu_us;
    gpurest_mem_free(result.output);
    return st;
}

static enum exit_code run_in_session(struct cli *c, struct job *job, gpurest_times *times)
{
    gpurest_session_options options = GPUREST_SESSION_OPTIONS_INIT;
    const gpurest_kernel   *k;
    gpurest_session        *s = NULL;
    gpurest_module         *m = NULL;
    enum exit_code          code = CODE_OK;
    gpurest_status          st;

    options.device = job->device;
    st = cli_open_noted(c, &s, &options);
    if (!st)
        st = load_kernel(c, job, s, &m, &k, times);
    if (!st)
        st = run_launch(job, s, k, times);
    if (st)
        code = cli_failed(c, st);
    gpurest_module_unload(m);
    gpurest_session_close(s);
    return code;
}

/* ---- either ---- */

/* A shader says itself how large its workgroups are, unless it leaves that open. */
static enum exit_code read_source(struct cli *c, struct job *job)
{
    job->source = file_read(c->argv[0], &job->source_bytes);
    if (!job->source)
        return CODE_FAILED;
    job->shader = code_is_shader(c->argv[0], job->source, job->source_bytes);
    if (!job->block.x && !job->shader)
        return cli_usage(c, "--block is required");
    c->source = c->argv[0];
    return CODE_OK;
}

static enum exit_code run_job(struct cli *c, struct job *job)
{
    gpurest_times  times = {0};
    enum exit_code code = job->builtin ? CODE_OK : read_source(c, job);

    if (!code)
        code = cli_open(c);
    if (code)
        return code;
    cli_show_progress(c);
    if (job->device || job->options_count || job->shader) {
        code = run_in_session(c, job, &times);
    } else {
        gpurest_status st = run_at_once(c, job, &times);
        code = st ? cli_failed(c, st) : CODE_OK;
    }
    if (!code)
        code = write_results(job);
    if (!code)
        cli_say(c, "compile %.1f ms%s, upload %.1f ms, run %.2f ms (kernel %.1f us)", times.compile_ms,
                job->builtin ? " (built-in kernels are compiled at their first use, then cached)" : "", times.upload_ms, times.run_ms,
                times.gpu_us);
    return code;
}

/* A built-in kernel has its own grid and block. */
static bool take_kernel(struct cli *c, struct job *job)
{
    bool ok = true;

    job->mute = take_flag(c, "--no-printf");
    take_value(c, "--builtin", &job->builtin, &ok);
    job->cooperative = !job->builtin && take_flag(c, "--cooperative");
    if (ok)
        take_value(c, "--device", &job->device, &ok);
    if (ok && !job->builtin)
        return take_dim3(c, "--grid", &job->grid) && (job->grid.x || cli_usage(c, "--grid is required") == CODE_OK) &&
               take_dim3(c, "--block", &job->block) && take_rest(c, 2, 2);
    if (ok && job->options_count)
        return cli_usage(c, "a built-in kernel takes no options of a compiler") == CODE_OK;
    if (ok)
        take_value(c, "--engine", &job->engine, &ok);
    if (ok && !take_value(c, "--dtype", &job->dtype, &ok) && ok)
        return cli_usage(c, "--dtype is required: the element type, such as f32") == CODE_OK;
    return ok && take_rest(c, 0, 0);
}

enum exit_code run_run(struct cli *c)
{
    struct job    *job = calloc(1, sizeof *job);
    enum exit_code code = CODE_USAGE;

    if (!job)
        return cli_error(CODE_FAILED, "not enough memory");
    job->options_count = code_options_take(c, &job->options);
    if (take_arguments(c, job) && take_kernel(c, job))
        code = run_job(c, job);
    for (size_t i = 0; i < job->count; i++)
        array_free(&job->arguments[i].array);
    free(job->source);
    free(job);
    return code;
}
