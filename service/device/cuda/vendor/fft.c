/* Fourier transforms by cuFFT. It does not divide the inverse by its length: a small kernel after it does. */
#include "device/cuda/vendor/vendor.h"

enum { SCALE_BLOCK = 256, SCALE_BLOCKS_MAX = 8192 };

/* p[i] *= factor, for count reals. Drivers that cannot read PTX 6.4 are older than any of these libraries. */
#define SCALE(name, real, bytes)                                                                                                           \
    ".visible .entry " name "(.param .u64 p, .param .u64 count, .param ." real " factor)\n"                                                \
    "{\n"                                                                                                                                  \
    "  .reg .pred %p<2>;\n"                                                                                                                \
    "  .reg .b32 %r<5>;\n"                                                                                                                 \
    "  .reg .b64 %rd<9>;\n"                                                                                                                \
    "  .reg ." real " %x<4>;\n"                                                                                                            \
    "  ld.param.u64 %rd1, [p];\n"                                                                                                          \
    "  ld.param.u64 %rd2, [count];\n"                                                                                                      \
    "  ld.param." real " %x1, [factor];\n"                                                                                                 \
    "  cvta.to.global.u64 %rd1, %rd1;\n"                                                                                                   \
    "  mov.u32 %r1, %ctaid.x;\n"                                                                                                           \
    "  mov.u32 %r2, %ntid.x;\n"                                                                                                            \
    "  mov.u32 %r3, %tid.x;\n"                                                                                                             \
    "  mov.u32 %r4, %nctaid.x;\n"                                                                                                          \
    "  mul.wide.u32 %rd3, %r1, %r2;\n"                                                                                                     \
    "  cvt.u64.u32 %rd4, %r3;\n"                                                                                                           \
    "  add.s64 %rd3, %rd3, %rd4;\n"                                                                                                        \
    "  mul.wide.u32 %rd5, %r4, %r2;\n"                                                                                                     \
    "AGAIN:\n"                                                                                                                             \
    "  setp.ge.u64 %p1, %rd3, %rd2;\n"                                                                                                     \
    "  @%p1 bra DONE;\n"                                                                                                                   \
    "  mad.lo.s64 %rd6, %rd3, " bytes ", %rd1;\n"                                                                                          \
    "  ld.global." real " %x2, [%rd6];\n"                                                                                                  \
    "  mul.rn." real " %x3, %x2, %x1;\n"                                                                                                   \
    "  st.global." real " [%rd6], %x3;\n"                                                                                                  \
    "  add.s64 %rd3, %rd3, %rd5;\n"                                                                                                        \
    "  bra AGAIN;\n"                                                                                                                       \
    "DONE:\n"                                                                                                                              \
    "  ret;\n"                                                                                                                             \
    "}\n"

static const char scaler_ptx[] = ".version 6.4\n"
                                 ".target sm_75\n"
                                 ".address_size 64\n" SCALE("gpurest_scale_f32", "f32", "4") SCALE("gpurest_scale_f64", "f64", "8");

/* The kernel's parameter block; with an f32 factor it ends earlier. */
struct scale_params {
    uint64_t at, count;
    union {
        float  single;
        double wide;
    } factor;
};

static enum status meaning_of_cufft(cufft_result r)
{
    switch (r) {
    case CUFFT_OK:
        return STATUS_OK;
    case CUFFT_OUT_OF_MEMORY:
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    case CUFFT_VALUE_INVALID:
    case CUFFT_SIZE_INVALID:
    case CUFFT_NOT_DONE:
    case CUFFT_NOT_OFFERED:
        return STATUS_NOT_IMPLEMENTED;
    default:
        return STATUS_INTERNAL;
    }
}

static enum status check_cufft(struct device *d, cufft_result r, struct problem *why, const char *what)
{
    return r == CUFFT_OK ? STATUS_OK : cuda_vendor_failed(d, meaning_of_cufft(r), r, what, why);
}

/* ---- making ---- */

static bool transform_fits(const struct vendor_plan *ask)
{
    uint64_t all, last;

    return (ask->number == VENDOR_F32 || ask->number == VENDOR_F64) && ask->inverse <= 1 && ask->length >= 1 && ask->batch >= 1 &&
           ask->stride >= 1 && ask->distance >= 1 && ask->repeats == 1 && !__builtin_mul_overflow(ask->length, ask->batch, &all) &&
           all <= INT64_MAX / 16 && !__builtin_mul_overflow(ask->length, ask->stride, &last) && last <= INT64_MAX / 16 &&
           !__builtin_mul_overflow(ask->batch, ask->distance, &last) && last <= INT64_MAX / 16;
}

static enum status get_scaler(struct device *d, struct problem *why)
{
    return d->scaler ? STATUS_OK : cuda_module_load(d, scaler_ptx, sizeof scaler_ptx - 1, &d->scaler, why);
}

static enum status make_plan(struct device *d, const struct vendor_plan *ask, struct cuda_plan *p, struct problem *why)
{
    const struct cufft_functions *fft = cufft_functions();
    struct cuda_fft              *x = &p->fft;
    long long                     n = (long long)ask->length, stride = (long long)ask->stride, distance = (long long)ask->distance;
    size_t                        workspace = 0;
    enum status                   st = check_cufft(d, fft->cufftCreate(&x->plan), why, "starting cuFFT");

    if (st)
        return st;
    x->made = true;
    /* The launch has a work area of its own: counted as the session's memory, and not shared between streams. */
    st = check_cufft(d, fft->cufftSetAutoAllocation(x->plan, 0), why, "preparing the transform");
    if (!st)
        st = check_cufft(d,
                         fft->cufftMakePlanMany64(x->plan, 1, &n, &n, stride, distance, &n, stride, distance,
                                                  x->wide ? CUFFT_KIND_Z2Z : CUFFT_KIND_C2C, (long long)ask->batch, &workspace),
                         why, "preparing the transform");
    p->workspace_bytes = workspace;
    return st;
}

enum status cuda_fft_make(struct device *d, const struct vendor_plan *ask, struct cuda_plan *p, struct problem *why)
{
    struct cuda_fft *x = &p->fft;
    enum status      st = STATUS_OK;

    if (!cufft_functions())
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "this device has no cuFFT");
    if (!transform_fits(ask))
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "cuFFT does not support transforms of this shape");
    x->wide = ask->number == VENDOR_F64;
    x->inverse = ask->inverse;
    x->length = ask->length;
    x->count = ask->length * ask->batch;
    if (x->inverse)
        st = get_scaler(d, why);
    return st ? st : make_plan(d, ask, p, why);
}

void cuda_fft_free(struct cuda_plan *p)
{
    if (p->fft.made)
        cufft_functions()->cufftDestroy(p->fft.plan);
}

/* ---- running ---- */

static enum status scale_inverse(struct device *d, struct device_stream *s, const struct cuda_fft *x, uint64_t at, struct problem *why)
{
    struct scale_params  params = {.at = at, .count = 2 * x->count};
    const char          *name = x->wide ? "gpurest_scale_f64" : "gpurest_scale_f32";
    struct device_launch l = {.module = d->scaler, .block = {SCALE_BLOCK, 1, 1}, .grid = {1, 1, 1}, .params = &params};
    uint64_t             blocks = params.count / SCALE_BLOCK + 1;
    int                  kernel = kernel_table_find(&d->scaler->table, span_of(name));

    if (kernel < 0)
        return problem_set(why, STATUS_INTERNAL, "the kernel that scales transforms is missing");
    if (x->wide)
        params.factor.wide = 1 / (double)x->length;
    else
        params.factor.single = 1 / (float)x->length;
    l.kernel = (unsigned)kernel;
    l.grid[0] = blocks < SCALE_BLOCKS_MAX ? (uint32_t)blocks : SCALE_BLOCKS_MAX;
    l.params_bytes = d->scaler->table.kernels[l.kernel].params_bytes;
    return cuda_launch(d, s, &l, why);
}

enum status cuda_fft_launch(struct device *d, struct device_stream *s, const struct cuda_plan *p, const struct vendor_fft_params *at,
                            struct problem *why)
{
    const struct cufft_functions *fft = cufft_functions();
    const struct cuda_fft        *x = &p->fft;
    void                         *in = (void *)(uintptr_t)at->x, *out = (void *)(uintptr_t)at->out;
    int                           direction = x->inverse ? CUFFT_DIRECTION_INVERSE : CUFFT_DIRECTION_FORWARD;
    uint64_t                      each = x->wide ? 2 * sizeof(double) : 2 * sizeof(float);
    enum status                   st;

    if (at->x % each || at->out % each)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "the buffer offset is not aligned for complex numbers");
    st = check_cufft(d, fft->cufftSetStream(x->plan, s->handle), why, "the transform");
    if (!st && p->workspace_bytes)
        st = check_cufft(d, fft->cufftSetWorkArea(x->plan, (void *)(uintptr_t)at->workspace), why, "the transform");
    if (!st)
        st = check_cufft(d, x->wide ? fft->cufftExecZ2Z(x->plan, in, out, direction) : fft->cufftExecC2C(x->plan, in, out, direction), why,
                         "the transform");
    return st || !x->inverse || x->length == 1 ? st : scale_inverse(d, s, x, at->out, why);
}
