/* Orthogonal factors, eigenvalues and singular values by LAPACK. It stores matrices by columns, so it sees the transpose of a matrix that
 * lies in rows. */
#include "device/cpu/vendor/factor.h"

enum { ANSWER_BYTES = 16, INTEGERS_PER_VALUE = 8 /* of gesdd */ };

static const int ask_count = -1; /* instead of a count: LAPACK says what it needs, and does nothing else */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- QR ---- */

bool factor_qr_rooms(struct cpu_plan *p)
{
    const int         m = (int)p->ask.m, n = (int)p->ask.n;
    _Alignas(16) char asked[ANSWER_BYTES] = {0}, ignored[ANSWER_BYTES] = {0};
    int               info = 0;

    factor_blas(p)->geqrf(&m, &n, ignored, &m, ignored, asked, &ask_count, &info);
    return !info && factor_room_for(p, ROOM_MATRIX, p->ask.m, p->ask.n) && factor_room_of_work(p, asked);
}

void cpu_qr_run(const struct cpu_plan *p, const struct vendor_qr_params *at, uint64_t index)
{
    const uint64_t rows = p->ask.m, columns = p->ask.n, each = blas_bytes(p->number), all = least(rows, columns);
    const int      m = (int)rows, n = (int)columns;
    void          *matrix = factor_room(p, at->workspace, ROOM_MATRIX);
    char          *tau = factor_at(p, at->tau, index, columns);
    int            info = 0;

    numbers_transpose(matrix, rows, factor_at(p, at->x, index, rows * columns), columns, rows, columns, each);
    factor_blas(p)->geqrf(&m, &n, matrix, &m, tau, factor_room(p, at->workspace, ROOM_WORK), &p->work_count, &info);
    numbers_transpose(factor_at(p, at->out, index, rows * columns), columns, matrix, rows, columns, rows, each);
    memset(tau + all * each, 0, (columns - all) * each);
}

/* Columns that there are, and reflectors that have to do with them. */
static void count_columns(const struct cpu_plan *p, int *columns, int *reflectors)
{
    *columns = (int)least(p->ask.k, p->ask.m);
    *reflectors = (int)least((uint64_t)*columns, p->ask.n);
}

bool factor_qr_q_rooms(struct cpu_plan *p)
{
    const int         m = (int)p->ask.m;
    _Alignas(16) char asked[ANSWER_BYTES] = {0}, ignored[ANSWER_BYTES] = {0};
    int               columns, reflectors, info = 0;

    count_columns(p, &columns, &reflectors);
    factor_blas(p)->orgqr(&m, &columns, &reflectors, ignored, &m, ignored, asked, &ask_count, &info);
    return !info && factor_room_for(p, ROOM_MATRIX, p->ask.m, (uint64_t)columns) && factor_room_of_work(p, asked);
}

void cpu_qr_q_run(const struct cpu_plan *p, const struct vendor_qr_q_params *at, uint64_t index)
{
    const uint64_t rows = p->ask.m, size = p->ask.k, each = blas_bytes(p->number);
    const int      m = (int)rows;
    void          *matrix = factor_room(p, at->workspace, ROOM_MATRIX), *out = factor_at(p, at->out, index, rows * size);
    int            columns, reflectors, info = 0;

    count_columns(p, &columns, &reflectors);
    numbers_transpose(matrix, rows, factor_at(p, at->x, index, rows * p->ask.n), p->ask.n, rows, (uint64_t)reflectors, each);
    factor_blas(p)->orgqr(&m, &columns, &reflectors, matrix, &m, factor_at(p, at->tau, index, p->ask.n),
                          factor_room(p, at->workspace, ROOM_WORK), &p->work_count, &info);
    if ((uint64_t)columns < size)
        memset(out, 0, rows * size * each);
    numbers_transpose(out, size, matrix, rows, (uint64_t)columns, rows, each);
}

/* ---- eigenvalues ---- */

static void call_eigh(const struct cpu_plan *p, const char *job, void *matrix, void *values, void *work, int work_count, void *reals,
                      int reals_count, int *integers, int integers_count, int *info)
{
    const int n = (int)p->ask.n;

    if (blas_is_complex(p->number))
        factor_blas(p)->heevd(job, "U", &n, matrix, &n, values, work, &work_count, reals, &reals_count, integers, &integers_count, info, 1,
                              1);
    else
        factor_blas(p)->syevd(job, "U", &n, matrix, &n, values, work, &work_count, integers, &integers_count, info, 1, 1);
}

bool factor_eigh_rooms(struct cpu_plan *p)
{
    _Alignas(16) char asked[ANSWER_BYTES] = {0}, reals[ANSWER_BYTES] = {0}, ignored[ANSWER_BYTES] = {0};
    struct cpu_plan   counted = *p; /* of real numbers */
    int               info = 0;

    call_eigh(p, p->ask.lefts ? "V" : "N", ignored, ignored, asked, ask_count, reals, ask_count, &p->integers_count, ask_count, &info);
    if (info || !factor_room_of_work(p, asked) || p->integers_count < 0)
        return false;
    p->room_bytes[ROOM_INTEGERS] = (uint64_t)p->integers_count * sizeof(int);
    if (blas_is_complex(p->number)) {
        counted.number = p->number == BLAS_C64 ? BLAS_F32 : BLAS_F64;
        if (!factor_room_of_work(&counted, reals))
            return false;
        p->reals_count = counted.work_count;
        p->room_bytes[ROOM_REALS] = counted.room_bytes[ROOM_WORK];
    }
    return factor_room_for(p, ROOM_MATRIX, p->ask.n, p->ask.n);
}

/* The lower triangle of x in rows is the upper one of its conjugate in columns; the vectors come as columns there, which are our rows. In the
 * workspace: OpenBLAS 0.3.21 reads some columns beyond a complex matrix (zhemv), and behind a buffer there may be no memory. */
void cpu_eigh_run(const struct cpu_plan *p, const struct vendor_eigh_params *at, uint64_t index)
{
    const uint64_t n = p->ask.n, part = blas_part_bytes(p->number), parts = blas_bytes(p->number) / part;
    char          *values = (char *)(uintptr_t)at->values + index * n * part;
    void          *matrix = factor_room(p, at->workspace, ROOM_MATRIX);
    int            info = 0;

    factor_copy_lower(p, matrix, factor_at(p, at->x, index, n * n));
    if (numbers_are_finite(matrix, n * n * parts, part))
        call_eigh(p, p->ask.lefts ? "V" : "N", matrix, values, factor_room(p, at->workspace, ROOM_WORK), p->work_count,
                  factor_room(p, at->workspace, ROOM_REALS), p->reals_count, factor_room(p, at->workspace, ROOM_INTEGERS),
                  p->integers_count, &info);
    else
        info = 1;
    if (info) {
        numbers_fill_nan(values, n, part);
        numbers_fill_nan(matrix, n * n * parts, part);
    } else if (p->ask.lefts && parts == 2) {
        numbers_conjugate(matrix, n * n, part);
    }
    if (p->ask.lefts)
        memcpy(factor_at(p, at->vectors, index, n * n), matrix, n * n * parts * part);
    ((int32_t *)(uintptr_t)at->info)[index] = info != 0;
}

/* ---- singular values ---- */

/* What LAPACK makes: no vectors, those of all singular values, or whole bases. */
static char svd_job(const struct vendor_plan *ask)
{
    uint64_t values = least(ask->m, ask->n);

    return !ask->lefts && !ask->rights ? 'N' : ask->lefts <= values && ask->rights <= values ? 'S' : 'A';
}

/* Our right vectors are the left ones of the transpose that LAPACK sees, and our left ones its right ones. */
static uint64_t rights_made(const struct vendor_plan *ask, char job)
{
    return job == 'N' ? 0 : job == 'S' ? least(ask->m, ask->n) : ask->n;
}

static uint64_t lefts_made(const struct vendor_plan *ask, char job)
{
    return job == 'N' ? 0 : job == 'S' ? least(ask->m, ask->n) : ask->m;
}

static void call_svd(const struct cpu_plan *p, void *matrix, void *values, void *rights, void *lefts, void *work, int work_count,
                     void *reals, int *integers, int *info)
{
    const int  m = (int)p->ask.n, n = (int)p->ask.m;
    const char job = svd_job(&p->ask);
    const int  lefts_step = job == 'N' ? 1 : (int)lefts_made(&p->ask, job);

    if (blas_is_complex(p->number))
        factor_blas(p)->complex_gesdd(&job, &m, &n, matrix, &m, values, rights, &m, lefts, &lefts_step, work, &work_count, reals, integers,
                                      info, 1);
    else
        factor_blas(p)->gesdd(&job, &m, &n, matrix, &m, values, rights, &m, lefts, &lefts_step, work, &work_count, integers, info, 1);
}

/* As LAPACK's manual says; a query does not tell. */
static bool room_of_reals(struct cpu_plan *p, char job)
{
    uint64_t lesser = least(p->ask.m, p->ask.n), greater = p->ask.m + p->ask.n - lesser;
    uint64_t count = job == 'N' ? 7 * lesser : 5 * lesser * lesser + 5 * lesser + 2 * greater * lesser + lesser;

    p->room_bytes[ROOM_REALS] = count * blas_part_bytes(p->number);
    return true;
}

bool factor_svd_rooms(struct cpu_plan *p)
{
    const char        job = svd_job(&p->ask);
    _Alignas(16) char asked[ANSWER_BYTES] = {0}, ignored[ANSWER_BYTES] = {0};
    int               integers[INTEGERS_PER_VALUE], info = 0;

    call_svd(p, ignored, ignored, ignored, ignored, asked, ask_count, ignored, integers, &info);
    p->room_bytes[ROOM_INTEGERS] = INTEGERS_PER_VALUE * least(p->ask.m, p->ask.n) * sizeof(int);
    return !info && factor_room_of_work(p, asked) && factor_room_for(p, ROOM_MATRIX, p->ask.m, p->ask.n) &&
           factor_room_for(p, ROOM_RIGHT, p->ask.n, rights_made(&p->ask, job)) &&
           factor_room_for(p, ROOM_LEFT, p->ask.m, lefts_made(&p->ask, job)) && (!blas_is_complex(p->number) || room_of_reals(p, job));
}

static void take_lefts(const struct cpu_plan *p, const void *lefts, void *out)
{
    const uint64_t rows = p->ask.m, each = blas_bytes(p->number), made = lefts_made(&p->ask, svd_job(&p->ask));
    const uint64_t taken = least(p->ask.lefts, made);

    numbers_transpose(out, rows, lefts, made, rows, taken, each);
    memset((char *)out + taken * rows * each, 0, (p->ask.lefts - taken) * rows * each);
}

static void take_rights(const struct cpu_plan *p, const void *rights, void *out)
{
    const uint64_t columns = p->ask.n, each = blas_bytes(p->number), taken = least(p->ask.rights, rights_made(&p->ask, svd_job(&p->ask)));

    memcpy(out, rights, taken * columns * each);
    memset((char *)out + taken * columns * each, 0, (p->ask.rights - taken) * columns * each);
}

void cpu_svd_run(const struct cpu_plan *p, const struct vendor_svd_params *at, uint64_t index)
{
    const uint64_t rows = p->ask.m, columns = p->ask.n, part = blas_part_bytes(p->number), parts = blas_bytes(p->number) / part;
    void          *matrix = factor_room(p, at->workspace, ROOM_MATRIX), *lefts = factor_room(p, at->workspace, ROOM_LEFT);
    void          *rights = factor_room(p, at->workspace, ROOM_RIGHT), *left = factor_at(p, at->left, index, p->ask.lefts * rows);
    void          *right = factor_at(p, at->right, index, p->ask.rights * columns);
    char          *values = (char *)(uintptr_t)at->values + index * columns * part;
    int            info = 1;

    memcpy(matrix, factor_at(p, at->x, index, rows * columns), rows * columns * blas_bytes(p->number));
    if (numbers_are_finite(matrix, rows * columns * parts, part))
        call_svd(p, matrix, values, rights, lefts, factor_room(p, at->workspace, ROOM_WORK), p->work_count,
                 factor_room(p, at->workspace, ROOM_REALS), factor_room(p, at->workspace, ROOM_INTEGERS), &info);
    if (info) {
        numbers_fill_nan(values, columns, part);
        numbers_fill_nan(left, p->ask.lefts * rows * parts, part);
        numbers_fill_nan(right, p->ask.rights * columns * parts, part);
    } else {
        memset(values + least(rows, columns) * part, 0, (columns - least(rows, columns)) * part);
        take_lefts(p, lefts, left);
        take_rights(p, rights, right);
    }
    ((int32_t *)(uintptr_t)at->info)[index] = info != 0;
}
