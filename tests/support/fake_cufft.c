/* libcufft for machines without one: transforms by their definition, in f64. */
#include "device/cuda/vendor/cufft_abi.h"
#include "support/fake_vendor.h"

#include <math.h>

#define CUFFT(name, parameters) FAKE_EXPORT cufft_result name parameters;
#include "device/cuda/vendor/cufft.def"
#undef CUFFT

FAKE_EXPORT long fake_cufft_live(void);
FAKE_EXPORT void fake_cufft_reset(void);

static struct fake_vendor_function functions[] = {
#define CUFFT(name, parameters) {#name, 0},
#include "device/cuda/vendor/cufft.def"
#undef CUFFT
};

enum {
    FUNCTIONS = sizeof functions / sizeof functions[0],
    PLANS = 256,
    OK = 0,
    INVALID_PLAN = 1,
    INVALID_VALUE = 4,
    INTERNAL_ERROR = 5,
    NOT_SUPPORTED = 16,
    LONG = 32
};

static struct plan {
    int         used, automatic, made;
    long long   n, stride, distance, batch;
    unsigned    kind;
    size_t      workspace_bytes;
    void       *workspace;
    cuda_stream stream;
} plans[PLANS];

static long live;

long fake_cufft_live(void)
{
    return live;
}

void fake_cufft_reset(void)
{
    for (int i = 0; i < FUNCTIONS; i++)
        functions[i].calls = 0;
}

static int step(const char *name)
{
    return fake_vendor_step(functions, FUNCTIONS, name);
}

static struct plan *find(cufft_plan plan)
{
    return plan >= 0 && plan < PLANS && plans[plan].used ? &plans[plan] : NULL;
}

cufft_result cufftGetVersion(int *version)
{
    *version = 12345;
    return step(__func__);
}

cufft_result cufftCreate(cufft_plan *plan)
{
    int r = step(__func__);

    for (int i = 0; i < PLANS && !r; i++)
        if (!plans[i].used) {
            plans[i] = (struct plan){.used = 1, .automatic = 1};
            *plan = i;
            live++;
            return OK;
        }
    return r ? r : INTERNAL_ERROR;
}

cufft_result cufftDestroy(cufft_plan plan)
{
    int          r = step(__func__);
    struct plan *p = find(plan);

    if (!p)
        return INVALID_PLAN;
    p->used = 0;
    live--;
    return r;
}

cufft_result cufftSetAutoAllocation(cufft_plan plan, int automatic)
{
    int          r = step(__func__);
    struct plan *p = find(plan);

    if (r || !p)
        return r ? r : INVALID_PLAN;
    p->automatic = automatic;
    return OK;
}

/* Long transforms take as much workspace as they have data; nobody here allocates it for them. */
cufft_result cufftMakePlanMany64(cufft_plan plan, int rank, long long *n, long long *in_extent, long long in_stride, long long in_distance,
                                 long long *out_extent, long long out_stride, long long out_distance, unsigned kind, long long batch,
                                 size_t *workspace_bytes)
{
    int          r = step(__func__);
    struct plan *p = find(plan);
    size_t       each = kind == CUFFT_KIND_Z2Z ? 16 : 8;

    if (r || !p)
        return r ? r : INVALID_PLAN;
    if (rank != 1 || p->automatic || in_stride != out_stride || in_distance != out_distance || *in_extent != *n || *out_extent != *n ||
        batch < 1)
        return INVALID_VALUE;
    if (*n == FAKE_VENDOR_REFUSED_LENGTH)
        return NOT_SUPPORTED;
    p->n = *n;
    p->stride = in_stride;
    p->distance = in_distance;
    p->batch = batch;
    p->kind = kind;
    p->workspace_bytes = *n >= LONG ? (size_t)(*n * batch) * each : 0;
    p->made = 1;
    *workspace_bytes = p->workspace_bytes;
    return OK;
}

cufft_result cufftSetWorkArea(cufft_plan plan, void *workspace)
{
    int          r = step(__func__);
    struct plan *p = find(plan);

    if (r || !p)
        return r ? r : INVALID_PLAN;
    p->workspace = workspace;
    return OK;
}

cufft_result cufftSetStream(cufft_plan plan, cuda_stream stream)
{
    int          r = step(__func__);
    struct plan *p = find(plan);

    if (r || !p)
        return r ? r : INVALID_PLAN;
    p->stream = stream;
    return OK;
}

/* ---- arithmetic ---- */

struct transform {
    struct plan plan;
    void       *in, *out;
    int         direction;
};

static double get(const struct plan *p, const void *at, long long i)
{
    return p->kind == CUFFT_KIND_Z2Z ? ((const double *)at)[i] : (double)((const float *)at)[i];
}

static void put(const struct plan *p, void *at, long long i, double value)
{
    if (p->kind == CUFFT_KIND_Z2Z)
        ((double *)at)[i] = value;
    else
        ((float *)at)[i] = (float)value;
}

static void one(const struct transform *t, long long first, long long f)
{
    const struct plan *p = &t->plan;
    double             re = 0, im = 0;

    for (long long k = 0; k < p->n; k++) {
        double angle = t->direction * 2 * 3.14159265358979323846 * (double)(k * f % p->n) / (double)p->n;
        double x = get(p, t->in, 2 * (first + k * p->stride)), y = get(p, t->in, 2 * (first + k * p->stride) + 1);
        re += x * cos(angle) - y * sin(angle);
        im += x * sin(angle) + y * cos(angle);
    }
    put(p, t->out, 2 * (first + f * p->stride), re);
    put(p, t->out, 2 * (first + f * p->stride) + 1, im);
}

static void run(const void *argument)
{
    const struct transform  *t = argument;
    const struct plan       *p = &t->plan;
    const struct fake_hooks *hooks = p->stream->hooks;
    size_t bytes = (size_t)((p->n - 1) * p->stride + (p->batch - 1) * p->distance + 1) * (p->kind == CUFFT_KIND_Z2Z ? 16 : 8);

    if (!hooks->is_memory((uintptr_t)t->in, bytes) || !hooks->is_memory((uintptr_t)t->out, bytes) ||
        (p->workspace_bytes && !hooks->is_memory((uintptr_t)p->workspace, p->workspace_bytes))) {
        hooks->lose(CUDA_RESULT_ERROR_ILLEGAL_ADDRESS);
        return;
    }
    if (p->workspace_bytes)
        memset(p->workspace, 0xbb, p->workspace_bytes); /* it is nobody else's */
    for (long long n = 0; n < p->batch; n++)
        for (long long f = 0; f < p->n; f++)
            one(t, n * p->distance, f);
}

static cufft_result execute(const char *name, unsigned kind, cufft_plan plan, void *in, void *out, int direction)
{
    int              r = step(name);
    struct plan     *p = find(plan);
    struct transform t = {.in = in, .out = out, .direction = direction};

    if (r || !p)
        return r ? r : INVALID_PLAN;
    if (!p->made || p->kind != kind || !p->stream || (direction != 1 && direction != -1) || in == out)
        return INVALID_VALUE;
    t.plan = *p;
    return p->stream->hooks->submit(p->stream, run, &t, sizeof t);
}

cufft_result cufftExecC2C(cufft_plan plan, void *in, void *out, int direction)
{
    return execute(__func__, CUFFT_KIND_C2C, plan, in, out, direction);
}

cufft_result cufftExecZ2Z(cufft_plan plan, void *in, void *out, int direction)
{
    return execute(__func__, CUFFT_KIND_Z2Z, plan, in, out, direction);
}
