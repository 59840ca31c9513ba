/* From a built-in kernel's arguments to what a library is asked for. */
#include "session/launch/vendor.h"
#include "session/bounds.h"

#include <stdio.h>

#include "base/digests/digest.h"
#include "session/launch/internal.h"

enum {
    ALIGNMENT_BYTES = 256, /* of every buffer's address */
    PLAN_HEX_BYTES = 48,   /* of its digest: enough to tell plans from each other */
};

static enum status unsuited(const struct builtin_call *call, struct problem *why, const char *reason)
{
    return problem_field(why, STATUS_LAUNCH_CONFIG_INVALID, "/engine", "unavailable", "no vendor library supports this %s of %s: %s",
                         call->kernel->name, builtin_dtype_name(call->dtype), reason);
}

/* Of a parameter that every kernel of the family has, or `otherwise`. */
static int index_of(const struct builtin *k, const char *name)
{
    for (unsigned i = 0; i < k->params_count; i++)
        if (strcmp(k->params[i].name, name) == 0)
            return (int)i;
    return -1;
}

static uint64_t value_of(const struct builtin_call *call, const char *name, uint64_t otherwise)
{
    int i = index_of(call->kernel, name);

    return i < 0 ? otherwise : call->values[i];
}

static uint64_t offset_of(const struct builtin_call *call, const char *name)
{
    int i = index_of(call->kernel, name);

    return i < 0 ? 0 : call->args[i].offset;
}

/* The largest power of two that divides the offset into a buffer. */
static uint64_t alignment_of(const struct builtin_call *call, const char *buffer)
{
    uint64_t lowest = offset_of(call, buffer) & -offset_of(call, buffer);

    return lowest && lowest < ALIGNMENT_BYTES ? lowest : ALIGNMENT_BYTES;
}

/* Its numbers are (real, imaginary) pairs. */
static bool is_complex(const struct builtin_call *call)
{
    return strstr(call->kernel->name, "_complex") != NULL;
}

static uint32_t number_of(const struct builtin_call *call)
{
    if (is_complex(call))
        return call->dtype == BUILTIN_DTYPE_f64 ? VENDOR_C128 : VENDOR_C64;
    if (call->dtype == BUILTIN_DTYPE_f16)
        return VENDOR_F16;
    if (call->dtype == BUILTIN_DTYPE_bf16)
        return VENDOR_BF16;
    if (call->dtype == BUILTIN_DTYPE_f64)
        return VENDOR_F64;
    return strstr(call->kernel->name, "tf32") ? VENDOR_TF32 : VENDOR_F32;
}

/* ---- products ---- */

static enum status plan_matmul(const struct builtin_call *call, struct vendor_plan *p, struct problem *why)
{
    uint64_t a, b, out;

    p->workspace_max = VENDOR_WORKSPACE_BYTES_MAX;
    p->m = value_of(call, "m", 0);
    p->n = value_of(call, "n", 0);
    p->k = value_of(call, "k", 0);
    p->batch = value_of(call, "batch", 1);
    if (!p->m || !p->n || !p->k || !p->batch)
        return unsuited(call, why, "the matrices are empty");
    if (__builtin_mul_overflow(p->m, p->k, &a) || __builtin_mul_overflow(p->k, p->n, &b) || __builtin_mul_overflow(p->m, p->n, &out))
        return unsuited(call, why, "the matrices are too large");
    p->a = (struct vendor_matrix){value_of(call, "lda", p->k), value_of(call, "a_batch", a), alignment_of(call, "a")};
    p->b = (struct vendor_matrix){value_of(call, "ldb", p->n), value_of(call, "b_batch", b), alignment_of(call, "b")};
    p->out = (struct vendor_matrix){value_of(call, "ldc", p->n), value_of(call, "out_batch", out), alignment_of(call, "out")};
    if (p->batch == 1)
        p->a.matrix = p->b.matrix = p->out.matrix = 0; /* of no meaning: one plan for all */
    if (p->a.row < p->k || p->b.row < p->n || p->out.row < p->n)
        return unsuited(call, why, "rows overlap");
    return STATUS_OK;
}

/* ---- transforms ---- */

/* Along the last axis the transforms lie behind each other, along the first side by side; along a middle one they are repeated. */
static enum status plan_fft(const struct builtin_call *call, struct vendor_plan *p, struct problem *why)
{
    uint64_t             outer = value_of(call, "outer", value_of(call, "batch", 1)), inner = value_of(call, "inner", 1);
    struct builtin_param T = {.type = BUILTIN_TYPE_T};
    uint64_t             each = 2 * (uint64_t)builtin_type_bytes(&T, call->dtype);

    p->length = value_of(call, "n", 0);
    p->inverse = value_of(call, "inverse", 0) != 0;
    p->batch = inner == 1 ? outer : inner;
    p->stride = inner;
    p->distance = inner == 1 ? p->length : 1;
    p->repeats = inner == 1 ? 1 : outer;
    if (p->length < 2 || !p->batch || !p->repeats)
        return unsuited(call, why, "the data is empty");
    if (offset_of(call, "x") % each || offset_of(call, "out") % each)
        return unsuited(call, why, "an offset is not a multiple of the size of a complex number");
    return STATUS_OK;
}

/* ---- factorizations ---- */

static bool pairs_are_aligned(const struct builtin_call *call)
{
    for (unsigned i = 0; i < call->kernel->params_count; i++) {
        const struct builtin_param *p = &call->kernel->params[i];

        if (p->access != BUILTIN_VALUE && p->type == BUILTIN_TYPE_T && call->args[i].offset % (2 * builtin_type_bytes(p, call->dtype)))
            return false;
    }
    return true;
}

static enum status plan_factor(const struct builtin_call *call, struct vendor_plan *p, struct problem *why)
{
    p->m = value_of(call, "rows", value_of(call, "n", 0));
    p->n = value_of(call, "columns", p->m);
    p->batch = value_of(call, "batch", 0);
    if (p->operation == VENDOR_TRIANGULAR_SOLVE) {
        p->k = p->n;
        p->n = p->m;
    } else if (p->operation == VENDOR_QR_Q) {
        p->k = value_of(call, "size", 0);
    }
    p->lefts = value_of(call, "lefts", value_of(call, "wanted", 0));
    p->rights = value_of(call, "rights", 0);
    p->triangle = (value_of(call, "lower", 0) ? VENDOR_LOWER : 0) | (value_of(call, "transposed", 0) ? VENDOR_TRANSPOSED : 0) |
                  (value_of(call, "unit", 0) ? VENDOR_UNIT : 0);
    if (is_complex(call) && !pairs_are_aligned(call))
        return unsuited(call, why, "an offset is not a multiple of the size of a complex number");
    if (!p->m || !p->n || !p->batch || (!p->k && (p->operation == VENDOR_TRIANGULAR_SOLVE || p->operation == VENDOR_QR_Q)))
        return unsuited(call, why, "the matrices are empty");
    return STATUS_OK;
}

/* ---- all of them ---- */

/* cuSOLVER does one matrix after the other, our kernels one on each multiprocessor. `rows_each`: a batch of more matrices than each has rows
 * / rows_each is faster by ours, as measured on an H100 (tests/bench/results/2026-11-25-factorizations-h100.txt). */
static const struct {
    const char           *kernel;
    enum vendor_operation operation;
    unsigned              rows_each; /* 0: no factorization */
} operations[] = {
    {"matmul", VENDOR_MATMUL, 0},
    {"matmul_tf32", VENDOR_MATMUL, 0},
    {"matmul_strided", VENDOR_MATMUL, 0},
    {"matmul_tf32_strided", VENDOR_MATMUL, 0},
    {"fft", VENDOR_FFT, 0},
    {"fft_axis", VENDOR_FFT, 0},
    {"lu", VENDOR_LU, 96},
    {"lu_complex", VENDOR_LU, 96},
    {"cholesky", VENDOR_CHOLESKY, 40},
    {"cholesky_complex", VENDOR_CHOLESKY, 40},
    {"triangular_solve", VENDOR_TRIANGULAR_SOLVE, 16},
    {"triangular_solve_complex", VENDOR_TRIANGULAR_SOLVE, 16},
    {"qr", VENDOR_QR, 140},
    {"qr_complex", VENDOR_QR, 140},
    {"qr_q", VENDOR_QR_Q, 140},
    {"qr_q_complex", VENDOR_QR_Q, 140},
    {"eigh", VENDOR_EIGH, 24},
    {"eigh_complex", VENDOR_EIGH, 24},
    {"eig", VENDOR_EIG, 64},
    {"eig_complex", VENDOR_EIG, 64},
    {"svd", VENDOR_SVD, 64},
    {"svd_complex", VENDOR_SVD, 64},
};

static enum vendor_operation operation_of(const struct builtin *k)
{
    for (size_t i = 0; i < COUNT(operations); i++)
        if (strcmp(operations[i].kernel, k->name) == 0)
            return operations[i].operation;
    return VENDOR_OPERATIONS;
}

enum status vendor_plan_of(const struct worker_session *c, const struct builtin_call *call, struct vendor_plan *out, struct problem *why)
{
    bool                 takes;
    enum builtin_library library = builtin_library_among(call->kernel, call->dtype, c->facts.libraries, &takes);

    *out = (struct vendor_plan){.operation = operation_of(call->kernel), .number = number_of(call)};
    if (!takes || out->operation == VENDOR_OPERATIONS)
        return unsuited(call, why, "none supports it");
    if (library == BUILTIN_LIBRARY_NONE)
        return unsuited(call, why, "this device has none");
    if (out->operation == VENDOR_MATMUL)
        return plan_matmul(call, out, why);
    return out->operation == VENDOR_FFT ? plan_fft(call, out, why) : plan_factor(call, out, why);
}

bool vendor_is_slower(const struct worker_session *c, const struct builtin_call *call, const struct vendor_plan *plan)
{
    bool     takes;
    uint64_t rows = plan->m < plan->n ? plan->m : plan->n;

    if (builtin_library_among(call->kernel, call->dtype, c->facts.libraries, &takes) != BUILTIN_LIBRARY_CUSOLVER)
        return false;
    for (size_t i = 0; i < COUNT(operations); i++)
        if (operations[i].operation == plan->operation)
            return plan->batch > rows / operations[i].rows_each;
    return false;
}

/* Under which its module stands among the built-in ones: '/' stands in no id of a client's, and no built-in kernel is called so. */
static void vendor_plan_id(const struct vendor_plan *plan, char out[ID_BYTES])
{
    unsigned char digest[SHA256_BYTES];
    char          hex[SHA256_HEX_BYTES];

    digest_span((struct span){(const char *)plan, sizeof *plan}, digest);
    digest_hex(digest, hex);
    snprintf(out, ID_BYTES, "library/%.*s", PLAN_HEX_BYTES, hex);
}

enum status vendor_open(struct worker_session *c, struct builtin_call *call, const struct vendor_plan *plan, bool at_once,
                        struct problem *why)
{
    struct module_spec spec = {.kind = IMAGE_PLAN, .source = {(const char *)plan, sizeof *plan}};
    char               id[ID_BYTES];
    enum status        st;

    vendor_plan_id(plan, id);
    st = module_builtin(c, span_of(id), &spec, at_once, &call->module, why);
    if (!st && call->module->refused)
        return unsuited(call, why, "the library does not support these sizes");
    if (st)
        return st;
    call->vendor = true;
    call->plan = (struct builtin_plan){.grid = {1, 1, 1},
                                       .block = {1, 1, 1},
                                       .takes_scratch = call->module->workspace_bytes > 0,
                                       .scratch_bytes = call->module->workspace_bytes};
    return STATUS_OK;
}

unsigned vendor_args(const struct builtin_call *call, uint64_t workspace, struct launch_arg out[BUILTIN_ARGS_MAX])
{
    unsigned n = 0;

    for (unsigned i = 0; i < call->kernel->params_count; i++)
        if (call->kernel->params[i].access != BUILTIN_VALUE)
            out[n++] = call->args[i];
    assert(n + 1 == vendor_params_count(operation_of(call->kernel)));
    out[n++] = (struct launch_arg){.kind = ARG_SCALAR, .scalar_bytes = sizeof workspace, .value = workspace};
    return n;
}

bool vendor_may_be_missed(enum status st)
{
    return st == STATUS_LAUNCH_CONFIG_INVALID || st == STATUS_QUOTA_EXCEEDED || st == STATUS_DEVICE_MEMORY_EXHAUSTED ||
           st == STATUS_OUT_OF_MEMORY || st == STATUS_INTERNAL;
}
