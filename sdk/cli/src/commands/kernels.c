/* run, compile, kernels. */
#include <errno.h>
#include <gpurest/builtin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"

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
    gpurest_dim3    grid, block;
    const char     *builtin, *dtype, *engine; /* builtin NULL: a kernel of a file */
    bool            mute;                     /* what the kernel prints is dropped */
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

static bool add_in(struct cli *c, struct job *job, const char *path)
{
    struct array *a = &job->arguments[job->count].array;

    (void)c;
    if (!array_read(path, a))
        return false;
    job->values[job->count] = GPUREST_IN(a->data, a->bytes);
    return true;
}

/* A parameter by value, such as a struct, from the bytes of a file. */
static bool add_struct(struct cli *c, struct job *job, const char *path)
{
    const struct array *a = &job->arguments[job->count].array;

    if (!add_in(c, job, path))
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
    job->values[job->count] = GPUREST_OUT(a->array.data, a->array.bytes);
    return true;
}

/* "FILE" is overwritten; "FILE:TO" writes to TO. */
static bool add_inout(struct cli *c, struct job *job, const char *text)
{
    struct argument *a = &job->arguments[job->count];
    const char      *colon = strchr(text, ':');
    char             from[PATH_BYTES];

    (void)c;
    snprintf(from, sizeof from, "%.*s", colon ? (int)(colon - text) : (int)strlen(text), text);
    snprintf(a->path, sizeof a->path, "%s", colon ? colon + 1 : text);
    if (!array_read(from, &a->array))
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

static bool take_dim3(struct cli *c, const char *name, gpurest_dim3 *out)
{
    const char *text;
    bool        ok = true;

    if (!take_value(c, name, &text, &ok))
        return ok && cli_usage(c, "%s is required", name) == CODE_OK;
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

static gpurest_status start_job(struct cli *c, const struct job *job, const char *source, gpurest_times *times)
{
    gpurest_launch_config config = GPUREST_LAUNCH_CONFIG_INIT;

    cli_show_progress(c);
    if (!job->mute)
        gpurest_client_set_output(c->client, print_output, place_of_output(job));
    if (job->builtin)
        return gpurest_run_builtin(c->client, job->builtin, job->dtype, job->engine, job->values, job->count, times);
    config.grid = job->grid;
    config.block = job->block;
    config.cooperative = job->cooperative;
    return gpurest_run_with(c->client, source, c->argv[1], &config, job->values, job->count, times);
}

static enum exit_code run_job(struct cli *c, struct job *job)
{
    gpurest_times  times = {0};
    size_t         bytes;
    char          *source = job->builtin ? NULL : file_read(c->argv[0], &bytes);
    enum exit_code code = source || job->builtin ? cli_open(c) : CODE_FAILED;

    if (!code) {
        gpurest_status st;

        c->source = job->builtin ? NULL : c->argv[0];
        st = start_job(c, job, source, &times);
        code = st ? cli_failed(c, st) : write_results(job);
    }
    free(source);
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
    if (ok && !job->builtin)
        return take_dim3(c, "--grid", &job->grid) && take_dim3(c, "--block", &job->block) && take_rest(c, 2, 2);
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
    if (take_arguments(c, job) && take_kernel(c, job))
        code = run_job(c, job);
    for (size_t i = 0; i < job->count; i++)
        array_free(&job->arguments[i].array);
    free(job);
    return code;
}

/* ---- compile and kernels ---- */

/* Compiler options follow "--". */
static int take_options(struct cli *c, char ***options)
{
    for (int i = 0; i < c->argc; i++)
        if (strcmp(c->argv[i], "--") == 0) {
            int count = c->argc - i - 1;
            *options = &c->argv[i + 1];
            c->argc = i;
            return count;
        }
    return 0;
}

static bool is_ptx(const char *text)
{
    const char *version = strstr(text, ".version"), *target = strstr(text, ".target");

    return version && target && version < target && !strstr(text, "__global__");
}

static enum exit_code load_module(struct cli *c, gpurest_session *session, const char *path, char **options, int count,
                                  gpurest_module **out)
{
    size_t         bytes;
    char          *text = file_read(path, &bytes);
    gpurest_status st;

    if (!text)
        return CODE_FAILED;
    c->source = path;
    if (is_ptx(text))
        st = gpurest_module_load(session, out, text, bytes);
    else
        st = gpurest_compile(session, out, text, (const char *const *)options, (size_t)count);
    free(text);
    return st ? cli_failed(c, st) : CODE_OK;
}

static enum exit_code write_code(struct cli *c, gpurest_module *module, const char *to)
{
    void          *code = NULL;
    size_t         bytes;
    gpurest_status st = gpurest_module_code(module, strstr(to, ".cubin") ? "cubin" : "ptx", &code, &bytes);
    bool           ok;

    if (st)
        return cli_failed(c, st);
    if (gpurest_module_log(module)[0])
        cli_print_log(c, gpurest_module_log(module));
    ok = file_write(to, code, bytes, "", 0);
    gpurest_mem_free(code);
    return ok ? CODE_OK : CODE_FAILED;
}

enum exit_code run_compile(struct cli *c)
{
    const char      *to = "-";
    char           **options = NULL;
    bool             ok = true;
    int              count = take_options(c, &options);
    gpurest_session *session;
    gpurest_module  *module = NULL;
    enum exit_code   code;

    take_value(c, "-o", &to, &ok);
    if (!ok || !take_rest(c, 1, 1))
        return CODE_USAGE;
    code = cli_session(c, &session);
    if (code)
        return code;
    code = load_module(c, session, c->argv[0], options, count, &module);
    if (!code)
        code = write_code(c, module, to);
    gpurest_module_unload(module);
    gpurest_session_close(session);
    return code;
}

static const struct column kernel_columns[] = {
    {"KERNEL", "name", FORMAT_TEXT, false},           {"PARAMETERS", "parameters", FORMAT_TEXT, false},
    {"REGISTERS", "registers", FORMAT_NUMBER, false}, {"SHARED", "shared_bytes", FORMAT_BYTES, false},
    {"LOCAL", "local_bytes", FORMAT_BYTES, false},    {"MAX THREADS", "max_threads", FORMAT_NUMBER, false},
};
const struct listing kernels_listing = {"gpurest.kernels/1", kernel_columns, COUNT(kernel_columns)};

/* "u64@0 u64@8 f32@16", with sizes where types are unknown. */
static void parameters_text(const gpurest_kernel *k, char *out, size_t room)
{
    size_t at = 0;

    out[0] = '\0';
    for (size_t i = 0; i < gpurest_kernel_param_count(k) && at < room; i++) {
        const char *type = gpurest_kernel_param_type(k, i);
        size_t      offset = 0, bytes = 0;

        gpurest_kernel_param(k, i, &offset, &bytes);
        if (type[0])
            at += (size_t)snprintf(out + at, room - at, "%s%s@%zu", i ? " " : "", type, offset);
        else
            at += (size_t)snprintf(out + at, room - at, "%s%zuB@%zu", i ? " " : "", bytes, offset);
    }
}

static cJSON *kernel_item(const gpurest_kernel *k)
{
    gpurest_kernel_info_t info = GPUREST_KERNEL_INFO_INIT;
    cJSON                *item = cJSON_CreateObject();
    char                  text[1024];

    gpurest_kernel_info(k, &info);
    parameters_text(k, text, sizeof text);
    cJSON_AddStringToObject(item, "name", gpurest_kernel_name(k));
    cJSON_AddStringToObject(item, "parameters", text);
    cJSON_AddNumberToObject(item, "registers", info.registers);
    cJSON_AddNumberToObject(item, "shared_bytes", (double)info.shared_bytes);
    cJSON_AddNumberToObject(item, "local_bytes", (double)info.local_bytes);
    cJSON_AddNumberToObject(item, "max_threads", info.max_threads);
    return item;
}

enum exit_code run_kernels(struct cli *c)
{
    char           **options = NULL;
    int              count = take_options(c, &options);
    gpurest_session *session;
    gpurest_module  *module = NULL;
    cJSON           *items;
    enum exit_code   code;

    if (!take_rest(c, 1, 1))
        return CODE_USAGE;
    code = cli_session(c, &session);
    if (code)
        return code;
    code = load_module(c, session, c->argv[0], options, count, &module);
    items = cJSON_CreateArray();
    for (size_t i = 0; !code && i < gpurest_module_kernel_count(module); i++) {
        const gpurest_kernel *k;
        if (gpurest_kernel_at(module, i, &k) == GPUREST_OK)
            cJSON_AddItemToArray(items, kernel_item(k));
    }
    if (!code)
        code = output_items(c, &kernels_listing, items);
    cJSON_Delete(items);
    gpurest_module_unload(module);
    gpurest_session_close(session);
    return code;
}
