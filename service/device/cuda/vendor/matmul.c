/* Products of matrices by cuBLASLt. The library stores matrices by columns, we by rows: our m x n matrix is its n x m matrix, without
 * moving a byte. Transposed, out = a b has its factors in reverse order, so b is the library's left operand and a its right one. */
#include "device/cuda/vendor/vendor.h"

enum { PREFERENCES = 6 };

struct number {
    enum cublaslt_type    type, scale;
    enum cublaslt_compute compute;
};

/* f16 and bf16 are summed in f32; f32 is f32 throughout unless TF32 was requested by name. */
static const struct number numbers[] = {
    [VENDOR_F16] = {CUBLASLT_R_16F, CUBLASLT_R_32F, CUBLASLT_COMPUTE_32F},
    [VENDOR_BF16] = {CUBLASLT_R_16BF, CUBLASLT_R_32F, CUBLASLT_COMPUTE_32F},
    [VENDOR_F32] = {CUBLASLT_R_32F, CUBLASLT_R_32F, CUBLASLT_COMPUTE_32F},
    [VENDOR_TF32] = {CUBLASLT_R_32F, CUBLASLT_R_32F, CUBLASLT_COMPUTE_32F_FAST_TF32},
    [VENDOR_F64] = {CUBLASLT_R_64F, CUBLASLT_R_64F, CUBLASLT_COMPUTE_64F},
};

static enum status meaning_of_cublaslt(cublas_status r)
{
    switch (r) {
    case CUBLASLT_OK:
        return STATUS_OK;
    case CUBLASLT_ALLOC_FAILED:
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    case CUBLASLT_INVALID_VALUE:
    case CUBLASLT_ARCH_MISMATCH:
    case CUBLASLT_NOT_SUPPORTED:
        return STATUS_NOT_IMPLEMENTED;
    default:
        return STATUS_INTERNAL;
    }
}

static enum status check_cublaslt(struct device *d, cublas_status r, struct problem *why, const char *what)
{
    return r == CUBLASLT_OK ? STATUS_OK : cuda_vendor_failed(d, meaning_of_cublaslt(r), r, what, why);
}

/* ---- making ---- */

static bool strides_fit(const struct vendor_matrix *x, uint64_t columns)
{
    return x->row >= columns && x->row <= INT64_MAX && x->matrix <= INT64_MAX && x->alignment_bytes >= 1 &&
           (x->alignment_bytes & (x->alignment_bytes - 1)) == 0;
}

static bool product_fits(const struct vendor_plan *ask)
{
    return ask->number < COUNT(numbers) && vendor_fits_int(ask->m) && vendor_fits_int(ask->n) && vendor_fits_int(ask->k) &&
           vendor_fits_int(ask->batch) && strides_fit(&ask->a, ask->k) && strides_fit(&ask->b, ask->n) && strides_fit(&ask->out, ask->n);
}

/* `rows` of `columns` elements each; for the library, that many columns. */
static enum status make_layout(struct device *d, const struct vendor_plan *ask, const struct vendor_matrix *x, uint64_t rows,
                               uint64_t columns, cublaslt_layout *out, struct problem *why)
{
    const struct cublaslt_functions *lt = cublaslt_functions();
    int32_t                          batch = (int32_t)ask->batch;
    int64_t                          apart = (int64_t)x->matrix;
    enum status st = check_cublaslt(d, lt->cublasLtMatrixLayoutCreate(out, numbers[ask->number].type, columns, rows, (int64_t)x->row), why,
                                    "describing a matrix");

    if (st || batch == 1)
        return st;
    st = check_cublaslt(d, lt->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_LAYOUT_BATCH_COUNT, &batch, sizeof batch), why,
                        "describing a batch");
    return st ? st
              : check_cublaslt(d, lt->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_LAYOUT_STRIDED_BATCH_OFFSET, &apart, sizeof apart),
                               why, "describing a batch");
}

static uint32_t alignment_of(const struct vendor_matrix *x)
{
    return x->alignment_bytes > 256 ? 256 : (uint32_t)x->alignment_bytes;
}

static enum status set_preference(struct device *d, const struct vendor_plan *ask, cublaslt_preference p, struct problem *why)
{
    uint32_t a = alignment_of(&ask->a), b = alignment_of(&ask->b), out = alignment_of(&ask->out);
    uint32_t reductions = CUBLASLT_REDUCTION_COMPUTE_TYPE; /* parts rounded to 16 bits would miss the promised accuracy */
    const struct {
        unsigned    which;
        const void *value;
        size_t      bytes;
    } rows[PREFERENCES] = {
        {CUBLASLT_PREFERENCE_REDUCTION_SCHEMES, &reductions, sizeof reductions},
        {CUBLASLT_PREFERENCE_MAX_WORKSPACE_BYTES, &ask->workspace_max, sizeof ask->workspace_max},
        {CUBLASLT_PREFERENCE_ALIGNMENT_A, &b, sizeof b}, /* the library's left operand is b */
        {CUBLASLT_PREFERENCE_ALIGNMENT_B, &a, sizeof a},
        {CUBLASLT_PREFERENCE_ALIGNMENT_C, &out, sizeof out},
        {CUBLASLT_PREFERENCE_ALIGNMENT_D, &out, sizeof out},
    };
    enum status st = STATUS_OK;

    for (unsigned i = 0; i < COUNT(rows) && !st; i++)
        st = check_cublaslt(d, cublaslt_functions()->cublasLtMatmulPreferenceSetAttribute(p, rows[i].which, rows[i].value, rows[i].bytes),
                            why, "choosing an algorithm");
    return st;
}

/* The library's own estimate of its fastest kernel. */
static enum status choose_algorithm(struct device *d, const struct vendor_plan *ask, struct cuda_plan *p, struct problem *why)
{
    const struct cublaslt_functions *lt = cublaslt_functions();
    struct cuda_matmul              *x = &p->matmul;
    struct cublaslt_choice           choice = {.state = CUBLASLT_NOT_SUPPORTED};
    cublaslt_preference              preference = NULL;
    int                              found = 0;
    enum status                      st = check_cublaslt(d, lt->cublasLtMatmulPreferenceCreate(&preference), why, "choosing an algorithm");

    if (st)
        return st;
    st = set_preference(d, ask, preference, why);
    if (!st)
        st = check_cublaslt(
            d, lt->cublasLtMatmulAlgoGetHeuristic(d->blas, x->matmul, x->b, x->a, x->out, x->out, preference, 1, &choice, &found), why,
            "choosing an algorithm");
    if (!st && (found < 1 || choice.state != CUBLASLT_OK || choice.workspace_bytes > ask->workspace_max))
        st = problem_set(why, STATUS_NOT_IMPLEMENTED, "cuBLASLt has no algorithm for this product");
    lt->cublasLtMatmulPreferenceDestroy(preference);
    x->algorithm = choice.algorithm;
    p->workspace_bytes = choice.workspace_bytes;
    return st;
}

static enum status open_library(struct device *d, struct problem *why)
{
    const struct cublaslt_functions *lt = cublaslt_functions();

    if (!lt)
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "this device has no cuBLASLt");
    return d->blas ? STATUS_OK : check_cublaslt(d, lt->cublasLtCreate(&d->blas), why, "starting cuBLASLt");
}

enum status cuda_matmul_make(struct device *d, const struct vendor_plan *ask, struct cuda_plan *p, struct problem *why)
{
    struct cuda_matmul *x = &p->matmul;
    enum status         st = open_library(d, why);

    if (!st && !product_fits(ask))
        st = problem_set(why, STATUS_NOT_IMPLEMENTED, "cuBLASLt does not support matrices of these sizes");
    if (st)
        return st;
    x->wide = ask->number == VENDOR_F64;
    x->alignment_a = alignment_of(&ask->a);
    x->alignment_b = alignment_of(&ask->b);
    x->alignment_out = alignment_of(&ask->out);
    st = check_cublaslt(
        d, cublaslt_functions()->cublasLtMatmulDescCreate(&x->matmul, numbers[ask->number].compute, numbers[ask->number].scale), why,
        "describing a product");
    if (!st)
        st = make_layout(d, ask, &ask->a, ask->m, ask->k, &x->a, why);
    if (!st)
        st = make_layout(d, ask, &ask->b, ask->k, ask->n, &x->b, why);
    if (!st)
        st = make_layout(d, ask, &ask->out, ask->m, ask->n, &x->out, why);
    return st ? st : choose_algorithm(d, ask, p, why);
}

void cuda_matmul_free(struct cuda_plan *p)
{
    const struct cublaslt_functions *lt = cublaslt_functions();
    cublaslt_layout                  layouts[] = {p->matmul.a, p->matmul.b, p->matmul.out};

    for (unsigned i = 0; i < COUNT(layouts); i++)
        if (layouts[i])
            lt->cublasLtMatrixLayoutDestroy(layouts[i]);
    if (p->matmul.matmul)
        lt->cublasLtMatmulDescDestroy(p->matmul.matmul);
}

/* ---- running ---- */

static void *pointer_to(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

enum status cuda_matmul_launch(struct device *d, struct device_stream *s, const struct cuda_plan *p, const struct vendor_matmul_params *at,
                               struct problem *why)
{
    static const float        one = 1, zero = 0;
    static const double       wide_one = 1, wide_zero = 0;
    const struct cuda_matmul *x = &p->matmul;
    const void               *alpha = x->wide ? (const void *)&wide_one : &one, *beta = x->wide ? (const void *)&wide_zero : &zero;
    cublas_status             r;

    if (at->a % x->alignment_a || at->b % x->alignment_b || at->out % x->alignment_out)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "a matrix has another alignment than the product was prepared for");
    r = cublaslt_functions()->cublasLtMatmul(d->blas, x->matmul, alpha, pointer_to(at->b), x->b, pointer_to(at->a), x->a, beta,
                                             pointer_to(at->out), x->out, pointer_to(at->out), x->out, &x->algorithm,
                                             pointer_to(at->workspace), p->workspace_bytes, s->handle);
    return r == CUBLASLT_OK ? STATUS_OK : cuda_vendor_failed(d, meaning_of_cublaslt(r), r, "the product", why);
}
