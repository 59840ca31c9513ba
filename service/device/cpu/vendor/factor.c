/* What factorizations need beside their data, and the triangular ones: LU, Cholesky's and substitution. LAPACK stores matrices by columns, so
 * it sees the transpose of a matrix that lies in rows. */
#include "device/cpu/vendor/factor.h"
#include "device/cpu/bounds.h"

enum {
    ROOM_ALIGNMENT = 64,
    SLACK_COLUMNS = 8, /* behind all rooms: kernels of BLAS take several columns at a time, and some read them where there are fewer */
};

static uint64_t room_size(const struct cpu_plan *p, enum cpu_room room)
{
    return (p->room_bytes[room] + ROOM_ALIGNMENT - 1) / ROOM_ALIGNMENT * ROOM_ALIGNMENT;
}

void *factor_room(const struct cpu_plan *p, uint64_t workspace, enum cpu_room room)
{
    for (unsigned before = 0; before < (unsigned)room; before++)
        workspace += room_size(p, before);
    return (void *)(uintptr_t)workspace;
}

bool factor_room_for(struct cpu_plan *p, enum cpu_room room, uint64_t rows, uint64_t columns)
{
    uint64_t elements;

    if (__builtin_mul_overflow(rows, columns, &elements) || elements > CPU_MATRIX_ELEMENTS_MAX)
        return false;
    p->room_bytes[room] = elements * blas_bytes(p->number);
    return true;
}

bool factor_room_of_work(struct cpu_plan *p, const void *asked)
{
    double count = blas_part_bytes(p->number) == sizeof(float) ? (double)*(const float *)asked : *(const double *)asked;

    /* A binary32 that stands for a large count may have been rounded down. */
    count += count / (1 << 20) + 1;
    if (!(count <= INT32_MAX))
        return false;
    p->work_count = (int)count;
    p->room_bytes[ROOM_WORK] = (uint64_t)p->work_count * blas_bytes(p->number);
    return true;
}

static bool make_rooms(struct cpu_plan *p)
{
    switch ((enum vendor_operation)p->ask.operation) {
    case VENDOR_LU:
        p->room_bytes[ROOM_INTEGERS] = p->ask.n * sizeof(int);
        return p->ask.m == p->ask.n && factor_room_for(p, ROOM_MATRIX, p->ask.n, p->ask.n);
    case VENDOR_CHOLESKY:
        return p->ask.m == p->ask.n;
    case VENDOR_TRIANGULAR_SOLVE:
        return p->ask.m == p->ask.n && vendor_fits_int(p->ask.k);
    case VENDOR_QR:
        return factor_qr_rooms(p);
    case VENDOR_QR_Q:
        return vendor_fits_int(p->ask.k) && factor_qr_q_rooms(p);
    case VENDOR_EIGH:
        return p->ask.m == p->ask.n && factor_eigh_rooms(p);
    case VENDOR_EIG:
        return p->ask.m == p->ask.n && factor_eig_rooms(p);
    case VENDOR_SVD:
        return factor_svd_rooms(p);
    case VENDOR_MATMUL:
    case VENDOR_FFT:
    case VENDOR_OPERATIONS:
        break;
    }
    return false;
}

enum status cpu_factor_make(struct cpu_plan *p, struct problem *why)
{
    if (!vendor_fits_int(p->ask.m) || !vendor_fits_int(p->ask.n) || !p->ask.batch || p->ask.m * p->ask.n > CPU_MATRIX_ELEMENTS_MAX ||
        !make_rooms(p))
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "LAPACK does not support matrices of these sizes");
    for (unsigned room = 0; room < CPU_ROOMS; room++)
        p->workspace_bytes += room_size(p, room);
    if (p->workspace_bytes)
        p->workspace_bytes += SLACK_COLUMNS * (p->ask.m > p->ask.n ? p->ask.m : p->ask.n) * blas_bytes(p->number);
    return STATUS_OK;
}

void *factor_at(const struct cpu_plan *p, uint64_t base, uint64_t index, uint64_t elements)
{
    return (void *)(uintptr_t)(base + index * elements * blas_bytes(p->number));
}

const struct blas_functions *factor_blas(const struct cpu_plan *p)
{
    return &openblas_functions()->of[p->number];
}

/* ---- LU ---- */

/* LAPACK says which row each one was exchanged with, in turn; we where each row came from. */
static int follow_pivots(const int *pivots, int n, int32_t *order)
{
    int exchanges = 0;

    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = 0; i < n; i++) {
        int32_t kept = order[i], with = pivots[i] - 1;

        order[i] = order[with];
        order[with] = kept;
        exchanges += with != i;
    }
    return exchanges;
}

void cpu_lu_run(const struct cpu_plan *p, const struct vendor_lu_params *at, uint64_t index)
{
    const uint64_t rows = p->ask.n, each = blas_bytes(p->number);
    const int      n = (int)rows;
    void          *matrix = factor_room(p, at->workspace, ROOM_MATRIX);
    int           *pivots = factor_room(p, at->workspace, ROOM_INTEGERS), info = 0;
    int32_t       *order = (int32_t *)(uintptr_t)at->order + index * rows;

    numbers_transpose(matrix, rows, factor_at(p, at->x, index, rows * rows), rows, rows, rows, each);
    factor_blas(p)->getrf(&n, &n, matrix, &n, pivots, &info);
    numbers_transpose(factor_at(p, at->out, index, rows * rows), rows, matrix, rows, rows, rows, each);
    ((int32_t *)(uintptr_t)at->exchanges)[index] = follow_pivots(pivots, n, order);
    ((int32_t *)(uintptr_t)at->info)[index] = info;
}

/* ---- Cholesky ---- */

/* The lower triangle of x in rows is the upper one of its conjugate in columns: U' U = conj(x), and U in columns is L in rows. */
void cpu_cholesky_run(const struct cpu_plan *p, const struct vendor_cholesky_params *at, uint64_t index)
{
    const uint64_t rows = p->ask.n;
    const int      n = (int)rows;
    char          *out = factor_at(p, at->out, index, rows * rows);
    int            info = 0;

    factor_copy_lower(p, out, factor_at(p, at->x, index, rows * rows));
    factor_blas(p)->potrf("U", &n, out, &n, &info, 1);
    ((int32_t *)(uintptr_t)at->info)[index] = info;
}

void factor_copy_lower(const struct cpu_plan *p, void *out, const void *x)
{
    const uint64_t rows = p->ask.n, each = blas_bytes(p->number);

    for (uint64_t i = 0; i < rows; i++) {
        char *row = (char *)out + i * rows * each;

        memmove(row, (const char *)x + i * rows * each, (i + 1) * each);
        memset(row + (i + 1) * each, 0, (rows - i - 1) * each);
    }
}

/* ---- substitution ---- */

/* In columns: out' = b' (a')^-1, a' being upper triangular where a is lower. */
void cpu_triangular_solve_run(const struct cpu_plan *p, const struct vendor_triangular_solve_params *at, uint64_t index)
{
    const uint64_t rows = p->ask.n, columns = p->ask.k, triangle = p->ask.triangle;
    const int      n = (int)rows, m = (int)columns;
    void          *out = factor_at(p, at->out, index, rows * columns);

    memmove(out, factor_at(p, at->b, index, rows * columns), rows * columns * blas_bytes(p->number));
    factor_blas(p)->trsm("R", triangle & VENDOR_LOWER ? "U" : "L", triangle & VENDOR_TRANSPOSED ? "T" : "N",
                         triangle & VENDOR_UNIT ? "U" : "N", &m, &n, blas_one(p->number), factor_at(p, at->a, index, rows * rows), &n, out,
                         &m, 1, 1, 1, 1);
}
