/* The compile worker's life: load NVRTC, lock down, maybe warm up, read one job, compile, answer, end. */
#include "worker/compile/compile_worker.h"

#include <errno.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files/descriptor.h"
#include "base/log/crash.h"
#include "base/log/log.h"
#include "compile/assembler.h"
#include "compile/compiler.h"
#include "compile/identity.h"
#include "compile/shader.h"
#include "worker/compile/compile_jail.h"

enum {
    JOB_ARENA_BYTES = 1024 * 1024,
    READ_PIECE_BYTES = 64 * 1024,
    VERSION_TEXT_BYTES = COMPILE_VERSION_BYTES + COMPILE_IDENTITY_BYTES + PROBLEM_DETAIL_BYTES,
};

struct arguments {
    const char *nvrtc_path;   /* NULL: the usual places */
    const char *include_path; /* NULL: what belongs to the library */
    bool        assemble;     /* the job is PTX: NVRTC is not needed, nvJitLink is */
    bool        shader;       /* the job is GLSL or SPIR-V: shaderc is needed alone */
    const char *hip;          /* the job is HIP C++: hiprtc is needed alone, from this library or, "", the usual places. NULL: it is not */
    bool        no_sandbox;   /* goes on where this machine offers none */
    const char *warm_arch;    /* NULL: the job is there, or as good as there. "": an unknown one */
    bool        version;      /* only tell the compiler's version, and report what the lock-down lacks */
};

static const char *value_of(const char *argument, const char *name)
{
    size_t n = strlen(name);

    return strncmp(argument, name, n) == 0 ? argument + n : NULL;
}

static struct arguments parse(int argc, char **argv)
{
    struct arguments a = {0};

    for (int i = 1; i < argc; i++) {
        const char *nvrtc = value_of(argv[i], "--nvrtc=");
        const char *include = value_of(argv[i], "--include=");
        const char *warm = value_of(argv[i], "--warm=");
        a.nvrtc_path = nvrtc && nvrtc[0] ? nvrtc : a.nvrtc_path;
        a.include_path = include && include[0] ? include : a.include_path;
        a.warm_arch = warm ? warm : a.warm_arch;
        a.hip = value_of(argv[i], "--hip=") ? value_of(argv[i], "--hip=") : a.hip;
        a.assemble |= strcmp(argv[i], "--assemble") == 0;
        a.shader |= strcmp(argv[i], "--shader") == 0;
        a.no_sandbox |= strcmp(argv[i], "--allow-no-sandbox") == 0;
        a.version |= strcmp(argv[i], "--version") == 0;
    }
    return a;
}

static bool read_all(struct buf *into)
{
    for (;;) {
        char   *at = buf_reserve(into, READ_PIECE_BYTES);
        ssize_t n = at ? read(COMPILE_JOB_FD, at, READ_PIECE_BYTES) : -1;
        if (at && n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        if (n == 0)
            return true;
        buf_grew(into, (size_t)n);
    }
}

static int answer(const struct compile_output *out)
{
    struct buf bytes;
    bool       sent;

    buf_init(&bytes, COMPILE_OUTPUT_BYTES_MAX);
    sent = compile_output_encode(out, &bytes) == STATUS_OK && descriptor_write(COMPILE_OUTPUT_FD, buf_span(&bytes));
    buf_finish(&bytes);
    return sent ? 0 : 1;
}

/* An answer without code; the text becomes the log. */
static int answer_failure(enum status st, const char *text)
{
    struct compile_output out;
    int                   rc;

    compile_output_init(&out);
    out.status = st;
    buf_add_text(&out.log, text);
    rc = answer(&out);
    compile_output_finish(&out);
    return rc;
}

/* By enum compile_tool. */
static const struct tool {
    const char *doing;
    enum status (*run)(const struct compile_job *job, struct compile_output *out);
    bool scratch; /* it cannot do without temporary files */
} tools[] = {
    [COMPILE_CUDA] = {"compiling CUDA C++", compiler_run},
    [COMPILE_PTX] = {"assembling PTX", assembler_run},
    [COMPILE_GLSL] = {"compiling GLSL", shader_run},
    [COMPILE_SPIRV] = {"validating SPIR-V", shader_run},
    [COMPILE_HIP] = {"compiling HIP C++", compiler_run, .scratch = true},
};

/* The process has loaded what such jobs need, and nothing else. */
static int compile_job(enum compile_tool tool)
{
    struct compile_output out;
    struct compile_job    job;
    struct arena          arena;
    struct buf            bytes;
    int                   rc;

    compile_output_init(&out);
    arena_init(&arena, JOB_ARENA_BYTES);
    buf_init(&bytes, COMPILE_JOB_BYTES_MAX + READ_PIECE_BYTES);
    if (!read_all(&bytes) || compile_job_decode(buf_span(&bytes), &arena, &job) || tools[job.tool].run != tools[tool].run)
        rc = answer_failure(STATUS_INTERNAL, "The job could not be read");
    else {
        crash_doing(tools[job.tool].doing, NULL);
        tools[job.tool].run(&job, &out);
        crash_doing(NULL, NULL);
        rc = answer(&out);
    }
    buf_finish(&bytes);
    arena_finish(&arena);
    compile_output_finish(&out);
    return rc;
}

/* No file of the machine is needed for it. */
static int work_without_files(const struct arguments *a, enum compile_tool tool, enum status st, struct problem *why)
{
    if (!st)
        st = compile_jail_enter(&(struct compile_jail){.optional = a->no_sandbox, .scratch = tools[tool].scratch}, why);
    return st ? answer_failure(st, why->detail) : compile_job(tool);
}

static int assemble(const struct arguments *a)
{
    struct problem why = {0};

    return work_without_files(a, COMPILE_PTX, assembler_load(a->nvrtc_path, &why), &why);
}

static int shade(const struct arguments *a)
{
    struct problem why = {0};

    return work_without_files(a, COMPILE_GLSL, shader_load(&why), &why);
}

static int compile_hip(const struct arguments *a)
{
    struct problem why = {0};

    return work_without_files(a, COMPILE_HIP, compiler_load_hip(a->hip[0] ? a->hip : NULL, &why), &why);
}

/* ---- getting ready ---- */

/* Common parts of kernels. What the compiler makes of them nobody sees. */
static const char WARMING_SOURCE[] =
    "template <class T> __device__ T sum(T x) { for (int d = 16; d; d /= 2) x += __shfl_down_sync(~0u, x, d); return x; }\n"
    "extern \"C\" __global__ void warm(float *p, const int *q, int n)\n"
    "{\n"
    "    __shared__ float s[32];\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    s[threadIdx.x % 32] = i < n ? expf(p[i]) * q[i] : 0;\n"
    "    __syncthreads();\n"
    "    atomicAdd(p, sum(s[threadIdx.x % 32]));\n"
    "}\n";

/* The library's first compilation takes several times as long as its second one. */
static void warm_up(const char *arch)
{
    struct compile_job    job = {.source = SPAN_LITERAL(WARMING_SOURCE), .arch = arch[0] ? span_of(arch) : SPAN_LITERAL("compute_75")};
    struct compile_output out;

    compile_output_init(&out);
    crash_doing("warming up the compiler", NULL);
    compiler_run(&job, &out);
    crash_doing("waiting for a job", NULL);
    compile_output_finish(&out);
}

/* Three lines: version, identity, and why nothing makes code of PTX here, or nothing. What makes it belongs to the compiler. */
static void write_version(const struct arguments *a, const char *include, char out[VERSION_TEXT_BYTES])
{
    struct problem missing = {0};
    char           identity[SHA256_HEX_BYTES];

    assembler_load(a->nvrtc_path, &missing);
    identity_make(include, identity);
    snprintf(out, VERSION_TEXT_BYTES, "%s\n%s\n%s", compiler_version(), identity, missing.detail);
}

/* The version travels as the log of an output without code. */
static int work(const struct arguments *a)
{
    struct problem why = {0};
    char           found[PATH_MAX];
    const char    *include = a->include_path;
    enum status    st = compiler_load(a->nvrtc_path, &why);
    bool           warm = a->warm_arch && !descriptor_readable(COMPILE_JOB_FD);
    char           version[VERSION_TEXT_BYTES] = "";

    if (!st && !include && compiler_include_folder(found, sizeof found))
        include = found;
    if (!st && a->version)
        write_version(a, include, version);
    if (!st)
        st = compile_jail_enter(&(struct compile_jail){.include_folder = include, .report = a->version, .optional = a->no_sandbox}, &why);
    if (st)
        return answer_failure(st, why.detail);
    if (include)
        compiler_use_include("/");
    if (warm)
        warm_up(a->warm_arch);
    return a->version ? answer_failure(STATUS_OK, version) : compile_job(COMPILE_CUDA);
}

/* Without exit handlers: there is nothing of ours to clean up, and those of the library are not wanted in the jail. */
int compile_worker_main(int argc, char **argv)
{
    struct arguments a = parse(argc, argv);

    log_init("compile-worker", LOG_LEVEL_INFO);
    /* The library takes settings from the environment, none of which is the operator's to make; the driver's cache would be shared. */
    clearenv();
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    _exit(a.assemble ? assemble(&a) : a.shader ? shade(&a) : a.hip ? compile_hip(&a) : work(&a));
}
