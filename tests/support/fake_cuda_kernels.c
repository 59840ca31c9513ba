/* The kernels that the fake driver can run, by name. Faulty ones lose the context as a device would. */
#include "support/fake_cuda.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static char times[4096];

__attribute__((constructor)) static void read_times(void)
{
    fake_read_beside(".times", times, sizeof times);
}

static uint64_t argument(const struct CUfunc_st *f, const struct fake_launch *l, int i)
{
    uint64_t value = 0;

    if (i < f->params_count && f->params[i].bytes <= sizeof value && f->params[i].offset + f->params[i].bytes <= l->params_bytes)
        memcpy(&value, l->params + f->params[i].offset, f->params[i].bytes);
    return value;
}

static uint64_t threads(const struct fake_launch *l)
{
    uint64_t n = 1;

    for (int i = 0; i < 3; i++)
        n *= (uint64_t)l->grid[i] * l->block[i];
    return n;
}

/* The array that argument i points to, if `bytes` of it are there; else the context is lost. */
static void *array(const struct CUfunc_st *f, const struct fake_launch *l, int i, uint64_t bytes)
{
    uint64_t address = argument(f, l, i);

    if (bytes && fake_is_memory(address, bytes))
        return (void *)(uintptr_t)address;
    fake_lose(CUDA_RESULT_ERROR_ILLEGAL_ADDRESS);
    return NULL;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* vadd(const float *a, const float *b, float *c, u32 n) */
static void run_vadd(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint64_t n = least(argument(f, l, 3), threads(l));
    float   *a = array(f, l, 0, 4 * n);
    float   *b = array(f, l, 1, 4 * n);
    float   *c = array(f, l, 2, 4 * n);

    for (uint64_t i = 0; a && b && c && i < n; i++)
        c[i] = a[i] + b[i];
}

/* look(texture of f32, f32 *out): the texels, in their order */
static void run_look_texels(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint64_t n = threads(l);
    void    *texels = fake_texels(argument(f, l, 0), 4 * n), *out = array(f, l, 1, 4 * n);

    if (!texels)
        fake_lose(CUDA_RESULT_ERROR_ILLEGAL_ADDRESS);
    else if (out)
        memcpy(out, texels, 4 * n);
}

/* number(surface of f32): texel i becomes i */
static void run_number(const struct CUfunc_st *f, const struct fake_launch *l)
{
    float *texels = fake_texels(argument(f, l, 0), 4 * threads(l));

    if (!texels)
        fake_lose(CUDA_RESULT_ERROR_ILLEGAL_ADDRESS);
    for (uint64_t i = 0; texels && i < threads(l); i++)
        texels[i] = (float)i;
}

/* fill7(u32 *p, u32 n) */
static void run_fill7(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint64_t  n = least(argument(f, l, 1), threads(l));
    uint32_t *p = array(f, l, 0, 4 * n);

    for (uint64_t i = 0; p && i < n; i++)
        p[i] = 7;
}

/* add(u32 *p, u32 n, u32 k): p[i] = p[i] * 2 + k, so that the order of launches shows */
static void run_add(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint64_t  n = least(argument(f, l, 1), threads(l));
    uint32_t *p = array(f, l, 0, 4 * n);

    for (uint64_t i = 0; p && i < n; i++)
        p[i] = p[i] * 2 + (uint32_t)argument(f, l, 2);
}

/* gpurest_canary(const u32 *in, u32 *out, u32 n): the worker's own trial */
static void run_canary(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint64_t  n = least(argument(f, l, 2), threads(l));
    uint32_t *in = array(f, l, 0, 4 * n);
    uint32_t *out = array(f, l, 1, 4 * n);

    for (uint64_t i = 0; in && out && i < n; i++)
        out[i] = in[i] * 3 + 7;
}

static void run_nothing(const struct CUfunc_st *f, const struct fake_launch *l)
{
    (void)f;
    (void)l;
}

/* layout(u8 a, u64 b, u64 s[3], u16 c, f64 d, u64 *out) writes every parameter behind the other, widened to 8 bytes. */
static void run_layout(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint64_t *out = array(f, l, 5, 56);

    if (!out || f->params[2].offset + 24 > l->params_bytes)
        return;
    out[0] = argument(f, l, 0);
    out[1] = argument(f, l, 1);
    memcpy(out + 2, l->params + f->params[2].offset, 24);
    out[5] = argument(f, l, 3);
    out[6] = argument(f, l, 4);
}

/* reverse(u32 *out, u32 n) through n words of dynamic shared memory */
static void run_reverse(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint64_t  n = least(argument(f, l, 1), l->shared_bytes / 4);
    uint32_t *out = array(f, l, 0, 4 * n);

    for (uint64_t i = 0; out && i < n; i++)
        out[i] = (uint32_t)(n - 1 - i);
}

/* corners(u32 *out): out[0] counts the threads of the last layer of the last block, out[1] all of them */
static void run_corners(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint32_t *out = array(f, l, 0, 8);

    if (!out)
        return;
    out[0] += l->block[0] * l->block[1];
    out[1] += (uint32_t)threads(l);
}

/* count(u32 *out) counts in a variable of the module and stores the old count. */
static void run_count(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint32_t *out = array(f, l, 0, 4);

    if (out)
        *out = fake_count(f);
}

/* tick(u32 *p) adds 1 to it once. */
static void run_tick(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint32_t *p = array(f, l, 0, 4);

    if (p)
        *p += 1;
}

/* illegal(p) stores a word at p, fault() at none. */
static void run_fault(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint64_t  p = argument(f, l, 0);
    uint32_t *word;

    if (p % 4 != 0) {
        fake_lose(CUDA_RESULT_ERROR_MISALIGNED_ADDRESS);
        return;
    }
    word = array(f, l, 0, 4);
    if (word)
        *word = 1;
}

static void run_trap(const struct CUfunc_st *f, const struct fake_launch *l)
{
    (void)f;
    (void)l;
    fake_lose(CUDA_RESULT_ERROR_LAUNCH_FAILED);
}

/* late_trap(u32 ms): the driver tells of it so much later */
static void run_late_trap(const struct CUfunc_st *f, const struct fake_launch *l)
{
    fake_lose_later(CUDA_RESULT_ERROR_LAUNCH_FAILED, argument(f, l, 0));
}

static void run_misaligned(const struct CUfunc_st *f, const struct fake_launch *l)
{
    (void)f;
    (void)l;
    fake_lose(CUDA_RESULT_ERROR_MISALIGNED_ADDRESS);
}

static void run_endless(const struct CUfunc_st *f, const struct fake_launch *l)
{
    (void)f;
    fake_mps_busy();
    l->stream->stuck = fake_round();
}

/* hello(u32 n) prints "hello n" once. */
static void run_hello(const struct CUfunc_st *f, const struct fake_launch *l)
{
    char text[64];

    snprintf(text, sizeof text, "hello %u\n", (unsigned)argument(f, l, 0));
    fake_print(text);
}

/* gpurest_scale_f32(float *p, u64 count, float factor), and for f64 */
static void run_scale_f32(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint64_t n = argument(f, l, 1), bits = argument(f, l, 2);
    float   *p = array(f, l, 0, 4 * n), factor;

    memcpy(&factor, &bits, sizeof factor);
    for (uint64_t i = 0; p && i < n; i++)
        p[i] *= factor;
}

static void run_scale_f64(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint64_t n = argument(f, l, 1), bits = argument(f, l, 2);
    double  *p = array(f, l, 0, 8 * n), factor;

    memcpy(&factor, &bits, sizeof factor);
    for (uint64_t i = 0; p && i < n; i++)
        p[i] *= factor;
}

/* gpurest_order(i64 *pivots, i32 *order, i32 *exchanges, u64 count) */
static void run_order(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint64_t n = argument(f, l, 3);
    int64_t *pivots = array(f, l, 0, 8 * n);
    int32_t *order = array(f, l, 1, 4 * n), *exchanges = array(f, l, 2, 4);

    if (!pivots || !order || !exchanges)
        return;
    *exchanges = 0;
    for (uint64_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    for (uint64_t i = 0; i < n; i++) {
        int32_t kept = order[i];

        order[i] = order[pivots[i] - 1];
        order[pivots[i] - 1] = kept;
        *exchanges += pivots[i] - 1 != (int64_t)i;
    }
}

/* gpurest_clear_upper(u32 *matrix, u64 n, u64 words) */
static void run_clear_upper(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint64_t  n = argument(f, l, 1), words = argument(f, l, 2);
    uint32_t *matrix = array(f, l, 0, 4 * n * n * words);

    for (uint64_t i = 0; matrix && i < n; i++)
        memset(matrix + (i * n + i + 1) * words, 0, (n - i - 1) * words * 4);
}

/* gpurest_greatest_f32(float *x, u64 count, u64 *word), and for f64 */
static void run_greatest(const struct CUfunc_st *f, const struct fake_launch *l, bool wide)
{
    uint64_t  n = argument(f, l, 1);
    void     *x = array(f, l, 0, (wide ? 8 : 4) * n);
    uint64_t *word = array(f, l, 2, 8);

    for (uint64_t i = 0; x && word && i < n; i++) {
        uint64_t bits = wide ? ((uint64_t *)x)[i] & INT64_MAX : ((uint32_t *)x)[i] & INT32_MAX;

        *word = bits > *word ? bits : *word;
    }
}

static void run_greatest_f32(const struct CUfunc_st *f, const struct fake_launch *l)
{
    run_greatest(f, l, false);
}

static void run_greatest_f64(const struct CUfunc_st *f, const struct fake_launch *l)
{
    run_greatest(f, l, true);
}

/* gpurest_spoil(u32 *x, u64 count, u64 *found, u64 limit) */
static void run_spoil(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint64_t  n = argument(f, l, 1), *found = array(f, l, 2, 8);
    uint32_t *x = array(f, l, 0, 4 * n);

    if (x && found && *found > argument(f, l, 3))
        memset(x, 0xff, 4 * n);
}

static double real_at(const void *x, uint64_t i, bool wide)
{
    return wide ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* gpurest_unpack_f32(float *packed, float *values, float *vectors, u64 n), and for f64 */
static void run_unpack(const struct CUfunc_st *f, const struct fake_launch *l, bool wide)
{
    uint64_t n = argument(f, l, 3), each = wide ? 8 : 4;
    void    *packed = array(f, l, 0, each * n * n), *values = array(f, l, 1, 2 * each * n), *vectors = array(f, l, 2, 2 * each * n * n);

    for (uint64_t at = 0; packed && values && vectors && at < n * n; at++) {
        double   part = real_at(values, 2 * (at / n) + 1, wide);
        uint64_t first = part < 0 ? at - n : at;
        double   re = real_at(packed, first, wide), im = part == 0 ? 0 : real_at(packed, first + n, wide) * (part < 0 ? -1 : 1);

        if (wide)
            ((double *)vectors)[2 * at] = re, ((double *)vectors)[2 * at + 1] = im;
        else
            ((float *)vectors)[2 * at] = (float)re, ((float *)vectors)[2 * at + 1] = (float)im;
    }
}

static void run_unpack_f32(const struct CUfunc_st *f, const struct fake_launch *l)
{
    run_unpack(f, l, false);
}

static void run_unpack_f64(const struct CUfunc_st *f, const struct fake_launch *l)
{
    run_unpack(f, l, true);
}

/* pick(u32 *out, struct of words): out[i] = words[7 * i] */
static void run_pick(const struct CUfunc_st *f, const struct fake_launch *l)
{
    uint32_t *out = array(f, l, 0, 4 * threads(l));

    for (uint64_t i = 0; out && i < threads(l) && f->params[1].offset + 28 * i + 4 <= l->params_bytes; i++)
        memcpy(&out[i], l->params + f->params[1].offset + 28 * i, 4);
}

static const struct {
    const char *name;
    void (*run)(const struct CUfunc_st *f, const struct fake_launch *l);
} kernels[] = {
    {"vadd", run_vadd},
    {"vadd_again", run_vadd},
    {"vadd_in_clusters", run_vadd},
    {"vadd_in_any_clusters", run_vadd},
    {"look", run_look_texels},
    {"number", run_number},
    {"fill7", run_fill7},
    {"add", run_add},
    {"fault", run_fault},
    {"illegal", run_fault},
    {"trap", run_trap},
    {"late_trap", run_late_trap},
    {"hello", run_hello},
    {"endless", run_endless},
    {"misaligned", run_misaligned},
    {"gpurest_canary", run_canary},
    {"nothing", run_nothing},
    {"layout", run_layout},
    {"reverse", run_reverse},
    {"corners", run_corners},
    {"count", run_count},
    {"pick", run_pick},
    {"tick", run_tick},
    {"gpurest_scale_f32", run_scale_f32},
    {"gpurest_scale_f64", run_scale_f64},
    {"gpurest_order", run_order},
    {"gpurest_clear_upper", run_clear_upper},
    {"gpurest_greatest_f32", run_greatest_f32},
    {"gpurest_greatest_f64", run_greatest_f64},
    {"gpurest_spoil", run_spoil},
    {"gpurest_unpack_f32", run_unpack_f32},
    {"gpurest_unpack_f64", run_unpack_f64},
};

/* What ".times" says of it; false: nothing. It is read before the process may open no file any more. */
static bool pass_for_run(const struct CUfunc_st *f, const struct fake_launch *l)
{
    char               part[64];
    unsigned           wanted;
    unsigned long long us;
    int                length;

    for (const char *at = times; sscanf(at, " %63s %u %llu%n", part, &wanted, &us, &length) == 3; at += length + (at[length] == '!'))
        if (strstr(f->name, part) && (!wanted || wanted == l->block[0])) {
            unsigned char *out = at[length] == '!' ? array(f, l, 2, 1) : NULL;

            fake_pass(us * 1000);
            if (out)
                *out ^= 1;
            return true;
        }
    return false;
}

cuda_result fake_run(const struct CUfunc_st *f, const struct fake_launch *l)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (strcmp(kernels[i].name, f->name) == 0) {
            kernels[i].run(f, l);
            return CUDA_RESULT_SUCCESS;
        }
    return pass_for_run(f, l) ? CUDA_RESULT_SUCCESS : CUDA_RESULT_ERROR_NOT_SUPPORTED;
}
