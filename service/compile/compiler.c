/* One compilation by NVRTC or hiprtc: creates a program, compiles it, and takes out its log, code and names. */
#include "compile/compiler.h"

#include <stdio.h>
#include <stdlib.h>

#include "compile/hiprtc.h"
#include "compile/nvrtc.h"

/* Diagnostics call the source by this name. It is constant: NVRTC searches quoted includes in the folder of this name. */
static const char PROGRAM_NAME[] = "kernel.cu";
static const char HIP_PROGRAM_NAME[] = "kernel.hip";

/* Below the folder of CUDA headers. */
static const char *const header_folders[] = {"/", "/cccl"};

enum {
    FIXED_OPTIONS_MAX = 3 + COUNT(header_folders),
    COMPILE_ARENA_BYTES = 2 * COMPILE_JOB_BYTES_MAX,
};

static struct nvrtc nvrtc;
static bool         is_hip; /* the table is hiprtc's */
static char         version_text[COMPILE_VERSION_BYTES];
static const char  *include_folder;

/* One compilation under way; everything in it dies with the arena and the program. */
struct unit {
    const struct compile_job *job;
    struct compile_output    *out;
    struct arena              arena;
    nvrtc_program             program;
    const char              **expressions;
    int                       compiled; /* what nvrtcCompileProgram answered */
    bool                      wants_cubin;
    char                      arch[COMPILE_ARCH_BYTES];
};

enum status compiler_load(const char *nvrtc_path, struct problem *why)
{
    enum status st = nvrtc_load(&nvrtc, nvrtc_path, why);

    if (st)
        return st;
    snprintf(version_text, sizeof version_text, "nvrtc %d.%d", nvrtc.major, nvrtc.minor);
    return STATUS_OK;
}

enum status compiler_load_hip(const char *hip_path, struct problem *why)
{
    enum status st = hiprtc_load(&nvrtc, hip_path, why);

    if (st)
        return st;
    is_hip = true;
    snprintf(version_text, sizeof version_text, "hiprtc %d.%d", nvrtc.major, nvrtc.minor);
    return STATUS_OK;
}

const char *compiler_version(void)
{
    return version_text;
}

bool compiler_include_folder(char *out, size_t room)
{
    return nvrtc_include_folder(&nvrtc, out, room);
}

void compiler_use_include(const char *folder)
{
    include_folder = folder;
}

/* Out of memory inside the compiler is a failed compilation: the source caused it, as the process has a limit of its own. */
static enum status status_of(int result)
{
    switch (result) {
    case NVRTC_OK:
        return STATUS_OK;
    case NVRTC_BUILTIN_OPERATION_FAILURE:
        return STATUS_COMPILER_UNAVAILABLE;
    case NVRTC_INTERNAL_ERROR:
        return STATUS_COMPILER_CRASHED;
    default:
        return STATUS_COMPILE_FAILED;
    }
}

static enum status fail_text(struct unit *u, const char *text)
{
    buf_add_text(&u->out->log, text);
    buf_add_text(&u->out->log, "\n");
    return STATUS_COMPILE_FAILED;
}

/* Translates a result. The log names the result when the compiler itself logged nothing. */
static enum status check_nvrtc(struct unit *u, int result)
{
    enum status st = status_of(result);

    if (st && u->out->log.bytes == 0)
        buf_printf(&u->out->log, "%s\n", nvrtc.call.error_text(result));
    return st;
}

/* NULL: it did not fit. */
static const char *c_string(struct unit *u, struct span s)
{
    return arena_copy(&u->arena, s).data;
}

static enum status program_create(struct unit *u)
{
    size_t       n = u->job->headers_count;
    const char **texts = arena_array(&u->arena, n, sizeof *texts);
    const char **names = arena_array(&u->arena, n, sizeof *names);
    const char  *source = c_string(u, u->job->source);

    if (!texts || !names || !source)
        return STATUS_OUT_OF_MEMORY;
    for (size_t i = 0; i < n; i++) {
        texts[i] = c_string(u, u->job->headers[i].text);
        names[i] = c_string(u, u->job->headers[i].name);
        if (!texts[i] || !names[i])
            return STATUS_OUT_OF_MEMORY;
    }
    return check_nvrtc(u, nvrtc.call.program_create(&u->program, source, is_hip ? HIP_PROGRAM_NAME : PROGRAM_NAME, (int)n, texts, names));
}

static enum status add_expressions(struct unit *u)
{
    size_t      n = u->job->name_expressions_count;
    enum status st = STATUS_OK;

    u->expressions = arena_array(&u->arena, n, sizeof *u->expressions);
    if (!u->expressions)
        return STATUS_OUT_OF_MEMORY;
    for (size_t i = 0; !st && i < n; i++) {
        u->expressions[i] = c_string(u, u->job->name_expressions[i]);
        st = u->expressions[i] ? check_nvrtc(u, nvrtc.call.name_add(u->program, u->expressions[i])) : STATUS_OUT_OF_MEMORY;
    }
    return st;
}

/* The newest architecture that the library knows and that is not newer than `wanted`; 0 = none. */
static int newest_known(int wanted)
{
    int  count = 0;
    int  best = 0;
    int *archs;

    if (nvrtc.call.archs_count(&count) != NVRTC_OK || count <= 0)
        return 0;
    archs = calloc((size_t)count, sizeof *archs);
    if (archs && nvrtc.call.archs(archs) == NVRTC_OK)
        for (int i = 0; i < count; i++)
            if (archs[i] <= wanted && archs[i] > best)
                best = archs[i];
    free(archs);
    return best;
}

/* A device newer than the library gets PTX of the newest architecture that the library knows; the device's driver translates it. */
static bool choose_arch(struct unit *u)
{
    uint64_t wanted;
    int      known;

    if (!span_copy(u->job->arch, u->arch, sizeof u->arch))
        return false;
    if (is_hip)
        return span_starts(u->job->arch, "gfx");
    u->wants_cubin = strncmp(u->arch, "sm_", 3) == 0;
    if (!u->wants_cubin && strncmp(u->arch, "compute_", 8) != 0)
        return false;
    if (!u->wants_cubin || !span_u64(span_from(u->job->arch, 3), &wanted) || wanted > 9999)
        return true;
    known = newest_known((int)wanted);
    if (known == 0 || known == (int)wanted)
        return true;
    u->wants_cubin = false;
    snprintf(u->arch, sizeof u->arch, "compute_%d", known);
    return true;
}

static const char **fixed_options(struct unit *u, const char **at)
{
    if (is_hip) {
        *at++ = arena_printf(&u->arena, "--offload-arch=%s", u->arch);
        *at++ = "-O3";
        return at;
    }
    *at++ = arena_printf(&u->arena, "--gpu-architecture=%s", u->arch);
    *at++ = "--no-cache"; /* also keeps the CUDA driver out of this process */
    if (!include_folder)
        *at++ = "--no-source-include"; /* without it CUDA's headers do not find each other; the jail contains nothing else */
    for (size_t i = 0; include_folder && i < COUNT(header_folders); i++)
        *at++ = arena_printf(&u->arena, "-I%s%s", strcmp(include_folder, "/") == 0 ? "" : include_folder, header_folders[i]);
    return at;
}

static enum status program_compile(struct unit *u)
{
    size_t       n = u->job->options_count;
    const char **options = arena_array(&u->arena, n + FIXED_OPTIONS_MAX, sizeof *options);
    const char **end;

    if (!options)
        return STATUS_OUT_OF_MEMORY;
    for (size_t i = 0; i < n; i++)
        options[i] = is_hip ? hiprtc_option(&u->arena, u->job->options[i]) : c_string(u, u->job->options[i]);
    end = fixed_options(u, options + n);
    for (const char **o = options; o < end; o++)
        if (!*o)
            return STATUS_OUT_OF_MEMORY;
    u->compiled = nvrtc.call.program_compile(u->program, (int)(end - options), options);
    return STATUS_OK;
}

static void take_log(struct unit *u)
{
    size_t bytes = 0;
    char  *text;

    if (nvrtc.call.log_bytes(u->program, &bytes) != NVRTC_OK || bytes <= 1)
        return;
    text = calloc(1, bytes + 1);
    if (text && nvrtc.call.log(u->program, text) == NVRTC_OK) {
        if (is_hip)
            hiprtc_name_sources(text, HIP_PROGRAM_NAME);
        compile_output_log(u->out, text, bytes);
    }
    free(text);
}

static enum status take_code(struct unit *u, int (*size)(nvrtc_program, size_t *), int (*get)(nvrtc_program, char *), struct buf *into)
{
    size_t bytes = 0;
    char  *at;

    if (size(u->program, &bytes) != NVRTC_OK || bytes <= 1)
        return fail_text(u, "The compiler made no code");
    if (bytes > COMPILE_IMAGE_BYTES_MAX)
        return fail_text(u, "The code is larger than its limit");
    at = buf_reserve(into, bytes);
    if (!at)
        return STATUS_OUT_OF_MEMORY;
    if (get(u->program, at) != NVRTC_OK)
        return STATUS_INTERNAL;
    buf_grew(into, bytes);
    return STATUS_OK;
}

static enum status take_ptx(struct unit *u)
{
    struct buf *ptx = &u->out->ptx;
    enum status st = take_code(u, nvrtc.call.ptx_bytes, nvrtc.call.ptx, ptx);

    if (!st && ptx->data[ptx->bytes - 1] == '\0') /* NVRTC's size includes the closing NUL */
        ptx->bytes--;
    return st;
}

static enum status take_lowered(struct unit *u)
{
    size_t                 n = u->job->name_expressions_count;
    struct compile_output *o = u->out;
    enum status            st = STATUS_OK;

    if (!compile_output_lowered(o, n))
        return STATUS_OUT_OF_MEMORY;
    for (size_t i = 0; !st && i < n; i++) {
        const char *name = NULL;
        st = check_nvrtc(u, nvrtc.call.name_lowered(u->program, u->expressions[i], &name));
        if (!st && !buf_add_text(&o->lowered[i], name))
            st = fail_text(u, "A kernel's name is longer than its limit");
    }
    return st;
}

static enum status take_all(struct unit *u)
{
    enum status st = is_hip ? STATUS_OK : take_ptx(u);

    if (!st && (is_hip || u->wants_cubin))
        st = take_code(u, nvrtc.call.cubin_bytes, nvrtc.call.cubin, &u->out->cubin);
    return st ? st : take_lowered(u);
}

static enum status run_unit(struct unit *u)
{
    enum status st;

    if (!choose_arch(u))
        return fail_text(u, "The architecture is unknown");
    st = program_create(u);
    if (!st)
        st = add_expressions(u);
    if (!st)
        st = program_compile(u);
    if (st)
        return st;
    take_log(u);
    st = check_nvrtc(u, u->compiled);
    return st ? st : take_all(u);
}

enum status compiler_run(const struct compile_job *job, struct compile_output *out)
{
    struct unit u = {.job = job, .out = out};

    arena_init(&u.arena, COMPILE_ARENA_BYTES);
    out->status = run_unit(&u);
    if (out->status) {
        buf_clear(&out->ptx);
        buf_clear(&out->cubin);
    }
    if (u.program)
        nvrtc.call.program_destroy(&u.program);
    arena_finish(&u.arena);
    return out->status;
}
