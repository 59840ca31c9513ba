/* Eigenvalues of general matrices by LAPACK. It stores matrices by columns, so they are transposed first. */
#include "device/cpu/vendor/factor.h"

enum { ANSWER_BYTES = 16 };

static const int ask_count = -1; /* instead of a count: LAPACK says what it needs, and does nothing else */

/* `values`: of real matrices their real parts and behind them their imaginary ones, else as they are wanted. */
static void call_eig(const struct cpu_plan *p, void *matrix, void *values, void *vectors, void *work, int work_count, void *reals,
                     int *info)
{
    const int   n = (int)p->ask.n;
    const char *job = p->ask.lefts ? "V" : "N";

    if (blas_is_complex(p->number))
        factor_blas(p)->complex_geev("N", job, &n, matrix, &n, values, NULL, &n, vectors, &n, work, &work_count, reals, info, 1, 1);
    else
        factor_blas(p)->geev("N", job, &n, matrix, &n, values, (char *)values + p->ask.n * blas_bytes(p->number), NULL, &n, vectors, &n,
                             work, &work_count, info, 1, 1);
}

bool factor_eig_rooms(struct cpu_plan *p)
{
    _Alignas(16) char asked[ANSWER_BYTES] = {0}, ignored[ANSWER_BYTES] = {0};
    const bool        is_complex = blas_is_complex(p->number);
    int               info = 0;

    call_eig(p, ignored, ignored, ignored, asked, ask_count, ignored, &info);
    if (info || !factor_room_of_work(p, asked) || !factor_room_for(p, ROOM_MATRIX, p->ask.n, p->ask.n))
        return false;
    p->room_bytes[ROOM_REALS] = 2 * p->ask.n * blas_part_bytes(p->number); /* complex: LAPACK's own; real: the values' parts */
    return is_complex || !p->ask.lefts || factor_room_for(p, ROOM_RIGHT, p->ask.n, p->ask.n);
}

/* Number `i` of an array of reals, or of complex ones' parts, to number `j` of another. */
static void move_part(const struct cpu_plan *p, void *to, uint64_t i, const void *from, uint64_t j)
{
    const uint64_t part = blas_part_bytes(p->number);

    memcpy((char *)to + i * part, (const char *)from + j * part, part);
}

static double part_of(const struct cpu_plan *p, const void *from, uint64_t i)
{
    return blas_part_bytes(p->number) == sizeof(float) ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

static void negate_part(const struct cpu_plan *p, void *at, uint64_t i)
{
    if (blas_part_bytes(p->number) == sizeof(float))
        ((float *)at)[i] = -((float *)at)[i];
    else
        ((double *)at)[i] = -((double *)at)[i];
}

/* One real vector. */
static void unpack_single(const struct cpu_plan *p, void *vector, const void *column)
{
    const uint64_t n = p->ask.n;

    memset(vector, 0, n * 2 * blas_part_bytes(p->number));
    for (uint64_t i = 0; i < n; i++)
        move_part(p, vector, 2 * i, column, i);
}

/* Two columns are the parts of two vectors, the second being the first one's conjugate. */
static void unpack_pair(const struct cpu_plan *p, void *vectors, const void *columns)
{
    const uint64_t n = p->ask.n;

    for (uint64_t i = 0; i < 2 * n; i++) {
        move_part(p, vectors, 2 * i, columns, i % n);
        move_part(p, vectors, 2 * i + 1, columns, n + i % n);
        if (i >= n)
            negate_part(p, vectors, 2 * i + 1);
    }
}

static void unpack(const struct cpu_plan *p, const void *parts, const void *columns, void *values, void *vectors)
{
    const uint64_t n = p->ask.n, part = blas_part_bytes(p->number);

    for (uint64_t i = 0; i < n; i++) {
        move_part(p, values, 2 * i, parts, i);
        move_part(p, values, 2 * i + 1, parts, n + i);
    }
    for (uint64_t i = 0; i < n && p->ask.lefts; i++) {
        char *vector = (char *)vectors + i * n * 2 * part;

        if (part_of(p, parts, n + i) != 0 && i + 1 < n)
            unpack_pair(p, vector, (const char *)columns + i++ * n * part);
        else
            unpack_single(p, vector, (const char *)columns + i * n * part);
    }
}

void cpu_eig_run(const struct cpu_plan *p, const struct vendor_eig_params *at, uint64_t index)
{
    const uint64_t n = p->ask.n, part = blas_part_bytes(p->number), parts = blas_bytes(p->number) / part;
    char          *values = (char *)(uintptr_t)at->values + index * n * 2 * part;
    char          *vectors = (char *)(uintptr_t)at->vectors + index * n * n * 2 * part;
    void          *matrix = factor_room(p, at->workspace, ROOM_MATRIX), *reals = factor_room(p, at->workspace, ROOM_REALS);
    void          *right = factor_room(p, at->workspace, ROOM_RIGHT), *work = factor_room(p, at->workspace, ROOM_WORK);
    int            info = 1;

    numbers_transpose(matrix, n, factor_at(p, at->x, index, n * n), n, n, n, parts * part);
    if (numbers_are_finite(matrix, n * n * parts, part)) {
        if (parts == 2)
            call_eig(p, matrix, values, vectors, work, p->work_count, reals, &info);
        else
            call_eig(p, matrix, reals, right, work, p->work_count, NULL, &info);
    }
    if (info) {
        numbers_fill_nan(values, n * 2, part);
        numbers_fill_nan(vectors, p->ask.lefts ? n * n * 2 : 0, part);
    } else if (parts == 1) {
        unpack(p, reals, right, values, vectors);
    }
    ((int32_t *)(uintptr_t)at->info)[index] = info != 0;
}
