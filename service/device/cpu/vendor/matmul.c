/* Products of matrices by OpenBLAS. It stores matrices by columns, we by rows: our m x n matrix is its n x m matrix, without moving a byte.
 * Transposed, out = a b has its factors in reverse order, so b is its left operand and a its right one. */
#include "device/cpu/bounds.h"
#include "device/cpu/vendor/vendor.h"

enum { PIECE_ROWS_MIN = 256 }; /* of a product in pieces: with fewer its threads have too little to share */

static bool matrix_fits(const struct vendor_matrix *x, uint64_t columns)
{
    return vendor_fits_int(x->row) && x->row >= columns && x->matrix <= INT64_MAX / 16;
}

enum status cpu_matmul_make(struct cpu_plan *p, struct problem *why)
{
    const struct vendor_plan *ask = &p->ask;
    uint64_t                  last;

    if (!vendor_fits_int(ask->m) || !vendor_fits_int(ask->n) || !vendor_fits_int(ask->k) || !ask->batch || !matrix_fits(&ask->a, ask->k) ||
        !matrix_fits(&ask->b, ask->n) || !matrix_fits(&ask->out, ask->n) || __builtin_mul_overflow(ask->batch, ask->a.matrix, &last) ||
        __builtin_mul_overflow(ask->batch, ask->b.matrix, &last) || __builtin_mul_overflow(ask->batch, ask->out.matrix, &last))
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "OpenBLAS does not support matrices of these sizes");
    return STATUS_OK;
}

/* So many rows at a time that a cancelled product ends soon. */
static uint64_t piece_rows(const struct vendor_plan *ask)
{
    uint64_t of_row = ask->n * ask->k, rows = CPU_PRODUCT_PIECE_MAX / of_row;

    return rows < PIECE_ROWS_MIN ? PIECE_ROWS_MIN : rows;
}

static enum status multiply(const struct cpu_plan *p, uint64_t a, uint64_t b, uint64_t out, const struct cpu_plan_watch *watch,
                            struct problem *why)
{
    const struct vendor_plan *ask = &p->ask;
    const int                 n = (int)ask->n, k = (int)ask->k, lda = (int)ask->a.row, ldb = (int)ask->b.row, ldc = (int)ask->out.row;
    const uint64_t            each = blas_bytes(p->number), step = piece_rows(ask);
    enum status               st = STATUS_OK;

    for (uint64_t row = 0; row < ask->m && !st; row += step) {
        const int rows = (int)(ask->m - row < step ? ask->m - row : step);

        if (row)
            st = cpu_plan_watched(watch, why);
        if (!st)
            openblas_functions()->of[p->number].gemm("N", "N", &n, &rows, &k, blas_one(p->number), (const void *)(uintptr_t)b, &ldb,
                                                     (const void *)(uintptr_t)(a + row * ask->a.row * each), &lda, blas_zero(),
                                                     (void *)(uintptr_t)(out + row * ask->out.row * each), &ldc, 1, 1);
    }
    return st;
}

enum status cpu_matmul_run(const struct cpu_plan *p, const struct vendor_matmul_params *at, const struct cpu_plan_watch *watch,
                           struct problem *why)
{
    const struct vendor_plan *ask = &p->ask;
    const uint64_t            each = blas_bytes(p->number);
    enum status               st = STATUS_OK;

    openblas_use_threads(ask->m * ask->n > UINT64_MAX / ask->k ? UINT64_MAX : ask->m * ask->n * ask->k);
    for (uint64_t i = 0; i < ask->batch && !st; i++) {
        st = i ? cpu_plan_watched(watch, why) : STATUS_OK;
        if (!st)
            st = multiply(p, at->a + i * ask->a.matrix * each, at->b + i * ask->b.matrix * each, at->out + i * ask->out.matrix * each,
                          watch, why);
    }
    return st;
}
