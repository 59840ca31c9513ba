/* Fourier transforms by FFTW. It does not divide the inverse by its length. */
#include "device/cpu/bounds.h"
#include "device/cpu/vendor/vendor.h"

enum { THREADED_ELEMENTS_MIN = 1 << 16 }; /* of a plan: less is done before a second thread is awake */

static uint64_t planned_bytes; /* what all plans of the process are counted with */

static bool transform_fits(const struct vendor_plan *ask)
{
    uint64_t all;

    return (ask->number == VENDOR_F32 || ask->number == VENDOR_F64) && ask->inverse <= 1 && ask->length >= 1 && ask->batch >= 1 &&
           ask->stride >= 1 && ask->distance >= 1 && ask->repeats >= 1 && !__builtin_mul_overflow(ask->length, ask->batch, &all) &&
           all <= INT64_MAX / 16 && !__builtin_mul_overflow(all, ask->repeats, &all) && all <= INT64_MAX / 16 &&
           ((ask->stride == 1 && ask->distance == ask->length) || (ask->stride == ask->batch && ask->distance == 1));
}

/* Its tables have about as many complex numbers as a transform, and as many are on the way. */
static bool count_memory(struct cpu_plan *p)
{
    uint64_t bytes;

    if (__builtin_mul_overflow(p->ask.length, 4 * blas_part_bytes(p->number), &bytes) || bytes > CPU_TRANSFORM_BYTES_MAX - planned_bytes)
        return false;
    planned_bytes += bytes;
    p->fft_bytes = bytes;
    return true;
}

enum status cpu_fft_make(struct cpu_plan *p, struct problem *why)
{
    const struct vendor_plan    *ask = &p->ask;
    const struct fftw_functions *fft = fftw_functions(ask->number == VENDOR_F64);
    static double                in[2], out[2]; /* only looked at: plans are run elsewhere, but not in place either */

    if (!fft)
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "this device has no FFTW");
    if (!transform_fits(ask) || !count_memory(p))
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "FFTW does not support transforms of this shape");
    fft->plan_with_nthreads(ask->length * ask->batch < THREADED_ELEMENTS_MIN ? 1 : (int)fftw_threads());
    p->fft = fft->plan_guru64_dft(1, &(struct fftw_extent){(ptrdiff_t)ask->length, (ptrdiff_t)ask->stride, (ptrdiff_t)ask->stride}, 1,
                                  &(struct fftw_extent){(ptrdiff_t)ask->batch, (ptrdiff_t)ask->distance, (ptrdiff_t)ask->distance}, in, out,
                                  ask->inverse ? FFTW_DIRECTION_INVERSE : FFTW_DIRECTION_FORWARD,
                                  FFTW_ANY_ALIGNMENT | FFTW_KEEP_INPUT | FFTW_ESTIMATED);
    return p->fft ? STATUS_OK : problem_set(why, STATUS_NOT_IMPLEMENTED, "FFTW has no method for this transform");
}

void cpu_fft_free(struct cpu_plan *p)
{
    planned_bytes -= p->fft_bytes;
    p->fft_bytes = 0;
    if (p->fft)
        fftw_functions(p->ask.number == VENDOR_F64)->destroy_plan(p->fft);
}

static void scale(bool wide, void *numbers, uint64_t count, uint64_t length)
{
    double *w = numbers;
    float  *s = numbers;

    for (uint64_t i = 0; wide && i < count; i++)
        w[i] *= 1 / (double)length;
    for (uint64_t i = 0; !wide && i < count; i++)
        s[i] *= 1 / (float)length;
}

enum status cpu_fft_run(const struct cpu_plan *p, const struct vendor_fft_params *at, const struct cpu_plan_watch *watch,
                        struct problem *why)
{
    const struct vendor_plan *ask = &p->ask;
    const bool                wide = ask->number == VENDOR_F64;
    const uint64_t            count = ask->length * ask->batch, bytes = count * 2 * blas_part_bytes(p->number);
    enum status               st = STATUS_OK;

    for (uint64_t i = 0; i < ask->repeats && !st; i++) {
        void *out = (void *)(uintptr_t)(at->out + i * bytes);

        st = i ? cpu_plan_watched(watch, why) : STATUS_OK;
        if (st)
            break;
        fftw_functions(wide)->execute_dft(p->fft, (void *)(uintptr_t)(at->x + i * bytes), out);
        if (ask->inverse)
            scale(wide, out, 2 * count, ask->length);
    }
    return st;
}
