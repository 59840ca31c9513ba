/* libcublasLt for machines without one: products by three loops, in columns as the real one. */
#include "device/cuda/vendor/cublaslt_abi.h"
#include "support/fake_vendor.h"

#define CUBLASLT(name, result, parameters) FAKE_EXPORT result name parameters;
#include "device/cuda/vendor/cublaslt.def"
#undef CUBLASLT

FAKE_EXPORT long fake_cublaslt_live(void);
FAKE_EXPORT void fake_cublaslt_reset(void);

static struct fake_vendor_function functions[] = {
#define CUBLASLT(name, result, parameters) {#name, 0},
#include "device/cuda/vendor/cublaslt.def"
#undef CUBLASLT
};

enum {
    FUNCTIONS = sizeof functions / sizeof functions[0],
    OK = 0,
    INVALID_VALUE = 7,
    NOT_SUPPORTED = 15,
    WORKSPACE_BYTES = 4096,
    DEEP = 64
};

static long live;

struct cublaslt_context {
    int unused;
};

struct cublaslt_matmul_desc {
    unsigned compute, scale;
};

struct cublaslt_matrix_layout {
    unsigned type;
    uint64_t rows, columns;
    int64_t  stride, apart;
    int32_t  batch;
};

struct cublaslt_matmul_preference {
    uint64_t workspace_max;
    uint32_t reductions;   /* enum cublaslt_reduction */
    uint32_t alignment[9]; /* by attribute */
};

/* What the opaque words of an algorithm are here. */
enum { WORD_MAGIC, WORD_WORKSPACE, WORD_A, WORD_B, WORD_D, MAGIC = 0x6c74 };

long fake_cublaslt_live(void)
{
    return live;
}

void fake_cublaslt_reset(void)
{
    for (int i = 0; i < FUNCTIONS; i++)
        functions[i].calls = 0;
}

static int step(const char *name)
{
    return fake_vendor_step(functions, FUNCTIONS, name);
}

static int make(const char *name, void **out, size_t bytes)
{
    int r = step(name);

    if (r)
        return r;
    *out = calloc(1, bytes);
    live++;
    return OK;
}

static int end(const char *name, void *object)
{
    int r = step(name);

    free(object);
    live--;
    return r;
}

size_t cublasLtGetVersion(void)
{
    return 130299;
}

cublas_status cublasLtCreate(cublaslt_handle *handle)
{
    return make(__func__, (void **)handle, sizeof **handle);
}

cublas_status cublasLtDestroy(cublaslt_handle handle)
{
    return end(__func__, handle);
}

cublas_status cublasLtMatmulDescCreate(cublaslt_matmul *matmul, unsigned compute, unsigned scale)
{
    int r = make(__func__, (void **)matmul, sizeof **matmul);

    if (!r)
        **matmul = (struct cublaslt_matmul_desc){compute, scale};
    return r;
}

cublas_status cublasLtMatmulDescDestroy(cublaslt_matmul matmul)
{
    return end(__func__, matmul);
}

cublas_status cublasLtMatrixLayoutCreate(cublaslt_layout *layout, unsigned type, uint64_t rows, uint64_t columns, int64_t stride)
{
    int r = make(__func__, (void **)layout, sizeof **layout);

    if (!r)
        **layout = (struct cublaslt_matrix_layout){type, rows, columns, stride, 0, 1};
    return r;
}

cublas_status cublasLtMatrixLayoutDestroy(cublaslt_layout layout)
{
    return end(__func__, layout);
}

cublas_status cublasLtMatrixLayoutSetAttribute(cublaslt_layout layout, unsigned attribute, const void *value, size_t bytes)
{
    int r = step(__func__);

    if (r)
        return r;
    if (attribute == CUBLASLT_LAYOUT_BATCH_COUNT && bytes == sizeof layout->batch)
        memcpy(&layout->batch, value, bytes);
    else if (attribute == CUBLASLT_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof layout->apart)
        memcpy(&layout->apart, value, bytes);
    else
        return INVALID_VALUE;
    return OK;
}

cublas_status cublasLtMatmulPreferenceCreate(cublaslt_preference *preference)
{
    int r = make(__func__, (void **)preference, sizeof **preference);

    for (int i = 0; i < 9 && !r; i++)
        (*preference)->alignment[i] = 256;
    if (!r)
        (*preference)->reductions = CUBLASLT_REDUCTION_IN_PLACE | CUBLASLT_REDUCTION_COMPUTE_TYPE | CUBLASLT_REDUCTION_OUTPUT_TYPE;
    return r;
}

cublas_status cublasLtMatmulPreferenceDestroy(cublaslt_preference preference)
{
    return end(__func__, preference);
}

cublas_status cublasLtMatmulPreferenceSetAttribute(cublaslt_preference preference, unsigned attribute, const void *value, size_t bytes)
{
    int r = step(__func__);

    if (r)
        return r;
    if (attribute == CUBLASLT_PREFERENCE_MAX_WORKSPACE_BYTES && bytes == sizeof preference->workspace_max)
        memcpy(&preference->workspace_max, value, bytes);
    else if (attribute == CUBLASLT_PREFERENCE_REDUCTION_SCHEMES && bytes == sizeof preference->reductions)
        memcpy(&preference->reductions, value, bytes);
    else if (attribute >= CUBLASLT_PREFERENCE_ALIGNMENT_A && attribute <= CUBLASLT_PREFERENCE_ALIGNMENT_D && bytes == sizeof(uint32_t))
        memcpy(&preference->alignment[attribute], value, bytes);
    else
        return INVALID_VALUE;
    return OK;
}

static int fits(const struct cublaslt_matrix_layout *a, const struct cublaslt_matrix_layout *b, const struct cublaslt_matrix_layout *d)
{
    return a->rows == d->rows && b->columns == d->columns && a->columns == b->rows && a->batch == d->batch && b->batch == d->batch &&
           a->stride >= (int64_t)a->rows && b->stride >= (int64_t)b->rows && d->stride >= (int64_t)d->rows;
}

/* Deep products take workspace, if they may have some. Whoever lets parts be rounded to the output's type gets no method at all: nobody is to
 * ask for that. */
cublas_status cublasLtMatmulAlgoGetHeuristic(cublaslt_handle handle, cublaslt_matmul matmul, cublaslt_layout a, cublaslt_layout b,
                                             cublaslt_layout c, cublaslt_layout d, cublaslt_preference preference, int room,
                                             struct cublaslt_choice *choices, int *found)
{
    int    r = step(__func__);
    size_t workspace = a->columns >= DEEP && preference->workspace_max >= WORKSPACE_BYTES ? WORKSPACE_BYTES : 0;

    *found = 0;
    if (r || !handle || !matmul || c != d || room < 1 || !fits(a, b, d))
        return r ? r : INVALID_VALUE;
    if (d->columns == FAKE_VENDOR_REFUSED_ROWS || preference->reductions != CUBLASLT_REDUCTION_COMPUTE_TYPE)
        return NOT_SUPPORTED;
    choices[0] = (struct cublaslt_choice){.workspace_bytes = workspace, .waves = 1};
    choices[0].algorithm.data[WORD_MAGIC] = MAGIC;
    choices[0].algorithm.data[WORD_WORKSPACE] = workspace;
    choices[0].algorithm.data[WORD_A] = preference->alignment[CUBLASLT_PREFERENCE_ALIGNMENT_A];
    choices[0].algorithm.data[WORD_B] = preference->alignment[CUBLASLT_PREFERENCE_ALIGNMENT_B];
    choices[0].algorithm.data[WORD_D] = preference->alignment[CUBLASLT_PREFERENCE_ALIGNMENT_D];
    *found = 1;
    return OK;
}

/* ---- arithmetic ---- */

static double half_value(uint16_t h)
{
    int    exponent = h >> 10 & 31;
    double fraction = h & 1023, value;

    value = exponent ? (1 + fraction / 1024) * (exponent > 15 ? (double)(1u << (exponent - 15)) : 1.0 / (1u << (15 - exponent)))
                     : fraction / (1 << 24);
    return h >> 15 ? -value : value;
}

/* Of numbers that halves hold exactly. */
static uint16_t half_of(double value)
{
    uint16_t best = 0;

    for (uint32_t h = 0; h < 0x7c00; h++)
        if (half_value((uint16_t)h) == (value < 0 ? -value : value))
            best = (uint16_t)h;
    return value < 0 ? best | 0x8000 : best;
}

static float tf32_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits &= 0xffffe000; /* 10 bits of fraction are left */
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double get(const void *at, unsigned type, int64_t i, unsigned compute)
{
    float    single;
    uint32_t bits;

    if (type == CUBLASLT_R_64F)
        return ((const double *)at)[i];
    if (type == CUBLASLT_R_16F)
        return half_value(((const uint16_t *)at)[i]);
    if (type == CUBLASLT_R_16BF) {
        bits = (uint32_t)((const uint16_t *)at)[i] << 16;
        memcpy(&single, &bits, sizeof single);
        return single;
    }
    single = ((const float *)at)[i];
    return compute == CUBLASLT_COMPUTE_32F_FAST_TF32 ? tf32_of(single) : single;
}

static void put(void *at, unsigned type, int64_t i, double value)
{
    float    single = (float)value;
    uint32_t bits;

    memcpy(&bits, &single, sizeof bits);
    if (type == CUBLASLT_R_64F)
        ((double *)at)[i] = value;
    else if (type == CUBLASLT_R_16F)
        ((uint16_t *)at)[i] = half_of(value);
    else if (type == CUBLASLT_R_16BF)
        ((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
    else
        ((float *)at)[i] = single;
}

static unsigned bytes_of(unsigned type)
{
    return type == CUBLASLT_R_64F ? 8 : type == CUBLASLT_R_32F ? 4 : 2;
}

static size_t extent(const struct cublaslt_matrix_layout *x)
{
    return (size_t)((int64_t)x->rows + x->stride * ((int64_t)x->columns - 1) + x->apart * (x->batch - 1)) * bytes_of(x->type);
}

struct product {
    struct cublaslt_matrix_layout a, b, d;
    unsigned                      compute;
    const void                   *at_a, *at_b;
    void                         *at_d, *workspace;
    size_t                        workspace_bytes;
    const struct fake_hooks      *hooks;
};

static void run(const void *argument)
{
    const struct product *p = argument;

    if (!p->hooks->is_memory((uintptr_t)p->at_a, extent(&p->a)) || !p->hooks->is_memory((uintptr_t)p->at_b, extent(&p->b)) ||
        !p->hooks->is_memory((uintptr_t)p->at_d, extent(&p->d)) ||
        (p->workspace_bytes && !p->hooks->is_memory((uintptr_t)p->workspace, p->workspace_bytes))) {
        p->hooks->lose(CUDA_RESULT_ERROR_ILLEGAL_ADDRESS);
        return;
    }
    if (p->workspace_bytes)
        memset(p->workspace, 0xaa, p->workspace_bytes); /* it is nobody else's */
    for (int64_t n = 0; n < p->d.batch; n++)
        for (int64_t j = 0; j < (int64_t)p->d.columns; j++)
            for (int64_t i = 0; i < (int64_t)p->d.rows; i++) {
                double sum = 0;
                for (int64_t k = 0; k < (int64_t)p->a.columns; k++)
                    sum += get(p->at_a, p->a.type, n * p->a.apart + i + k * p->a.stride, p->compute) *
                           get(p->at_b, p->b.type, n * p->b.apart + k + j * p->b.stride, p->compute);
                put(p->at_d, p->d.type, n * p->d.apart + i + j * p->d.stride, sum);
            }
}

static int factors_are(unsigned scale, const void *alpha, const void *beta)
{
    return scale == CUBLASLT_R_64F ? *(const double *)alpha == 1 && *(const double *)beta == 0
                                   : *(const float *)alpha == 1 && *(const float *)beta == 0;
}

cublas_status cublasLtMatmul(cublaslt_handle handle, cublaslt_matmul matmul, const void *alpha, const void *a, cublaslt_layout a_layout,
                             const void *b, cublaslt_layout b_layout, const void *beta, const void *c, cublaslt_layout c_layout, void *d,
                             cublaslt_layout d_layout, const struct cublaslt_algorithm *algorithm, void *workspace, size_t workspace_bytes,
                             cuda_stream stream)
{
    int             r = step(__func__);
    const uint64_t *w = algorithm->data;
    struct product  p = {*a_layout, *b_layout, *d_layout, matmul->compute, a, b, d, workspace, (size_t)w[WORD_WORKSPACE], stream->hooks};

    if (r || !handle || c != d || c_layout != d_layout || w[WORD_MAGIC] != MAGIC || !factors_are(matmul->scale, alpha, beta))
        return r ? r : INVALID_VALUE;
    if ((uintptr_t)a % w[WORD_A] || (uintptr_t)b % w[WORD_B] || (uintptr_t)d % w[WORD_D] || workspace_bytes < w[WORD_WORKSPACE])
        return INVALID_VALUE;
    return stream->hooks->submit(stream, run, &p, sizeof p);
}
