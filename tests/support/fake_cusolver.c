/* libcusolver, and what of cuBLAS is found through it, for machines without one: factorizations by their textbook forms in complex f64, one
 * number after the other. */
#include "device/cuda/vendor/cusolver_abi.h"
#include "support/fake_vendor.h"

#include <complex.h>
#include <math.h>

typedef double complex number;

static struct fake_vendor_function functions[] = {
#define CUSOLVER(member, need, symbol) {#symbol, 0},
#include "device/cuda/vendor/cusolver.def"
#undef CUSOLVER
};

enum {
    FUNCTIONS = sizeof functions / sizeof functions[0],
    OK = 0,
    INVALID_VALUE = 3,
    NOT_SUPPORTED = 9,
    HOST_BYTES = 24,
    SIDE_MAX = 64, /* of the matrices of tests */
    SWEEPS_MAX = 2000,
};

struct cusolver_context {
    cuda_stream stream;
};
struct cublas_context {
    cuda_stream stream;
};
struct cusolver_dn_params {
    int nothing;
};

static long live;

FAKE_EXPORT long fake_cusolver_live(void);
FAKE_EXPORT void fake_cusolver_reset(void);

long fake_cusolver_live(void)
{
    return live;
}

void fake_cusolver_reset(void)
{
    for (int i = 0; i < FUNCTIONS; i++)
        functions[i].calls = 0;
}

static int step(const char *name)
{
    return fake_vendor_step(functions, FUNCTIONS, name);
}

/* ---- numbers of any type ---- */

static size_t bytes_of(unsigned type)
{
    return type == CUSOLVER_TYPE_R_32F ? 4 : type == CUSOLVER_TYPE_C_64F ? 16 : 8;
}

static number get(unsigned type, const void *x, int64_t i)
{
    const float  *f = x;
    const double *d = x;

    if (type == CUSOLVER_TYPE_R_32F)
        return f[i];
    if (type == CUSOLVER_TYPE_R_64F)
        return d[i];
    return type == CUSOLVER_TYPE_C_32F ? CMPLX((double)f[2 * i], (double)f[2 * i + 1]) : CMPLX(d[2 * i], d[2 * i + 1]);
}

static void put(unsigned type, void *x, int64_t i, number value)
{
    float  *f = x;
    double *d = x;

    if (type == CUSOLVER_TYPE_R_32F)
        f[i] = (float)creal(value);
    else if (type == CUSOLVER_TYPE_R_64F)
        d[i] = creal(value);
    else if (type == CUSOLVER_TYPE_C_32F)
        f[2 * i] = (float)creal(value), f[2 * i + 1] = (float)cimag(value);
    else
        d[2 * i] = creal(value), d[2 * i + 1] = cimag(value);
}

/* ---- handles ---- */

static int make(const char *name, void **out, size_t bytes)
{
    int r = step(name);

    if (r)
        return r;
    *out = calloc(1, bytes);
    live++;
    return OK;
}

static int end(const char *name, void *handle)
{
    int r = step(name);

    free(handle);
    live--;
    return r;
}

FAKE_EXPORT int cusolverGetVersion(int *version);
int             cusolverGetVersion(int *version)
{
    *version = 12345;
    return step(__func__);
}

FAKE_EXPORT int cusolverDnCreate(cusolver_handle *handle);
int             cusolverDnCreate(cusolver_handle *handle)
{
    return make(__func__, (void **)handle, sizeof **handle);
}

FAKE_EXPORT int cusolverDnDestroy(cusolver_handle handle);
int             cusolverDnDestroy(cusolver_handle handle)
{
    return end(__func__, handle);
}

FAKE_EXPORT int cusolverDnCreateParams(cusolver_options *options);
int             cusolverDnCreateParams(cusolver_options *options)
{
    return make(__func__, (void **)options, sizeof **options);
}

FAKE_EXPORT int cusolverDnDestroyParams(cusolver_options options);
int             cusolverDnDestroyParams(cusolver_options options)
{
    return end(__func__, options);
}

FAKE_EXPORT int cublasCreate_v2(cublas_handle *handle);
int             cublasCreate_v2(cublas_handle *handle)
{
    return make(__func__, (void **)handle, sizeof **handle);
}

FAKE_EXPORT int cublasDestroy_v2(cublas_handle handle);
int             cublasDestroy_v2(cublas_handle handle)
{
    return end(__func__, handle);
}

FAKE_EXPORT int cusolverDnSetStream(cusolver_handle handle, cuda_stream stream);
int             cusolverDnSetStream(cusolver_handle handle, cuda_stream stream)
{
    handle->stream = stream;
    return step(__func__);
}

FAKE_EXPORT int cublasSetStream_v2(cublas_handle handle, cuda_stream stream);
int             cublasSetStream_v2(cublas_handle handle, cuda_stream stream)
{
    handle->stream = stream;
    return step(__func__);
}

/* ---- what a call is given ---- */

struct work {
    unsigned    type;
    int64_t     m, n, lda;
    void       *a, *values, *u, *v, *device;
    size_t      device_bytes;
    int        *info;
    signed char job_u, job_v;
    unsigned    triangle, side, op, diagonal, op_b;
    int64_t     ldu, ldv, k;
    const void *b, *tau;
    number      alpha, beta;
    cuda_stream stream;
};

static size_t extent(const struct work *w, int64_t rows, int64_t columns, int64_t step_of)
{
    return columns ? (size_t)((columns - 1) * step_of + rows) * bytes_of(w->type) : 0;
}

/* All of it is memory; what the library works with is nobody else's. */
static bool is_memory(const struct work *w)
{
    const struct fake_hooks *hooks = w->stream->hooks;

    if (!hooks->is_memory((uintptr_t)w->a, extent(w, w->m, w->n, w->lda)) ||
        (w->device_bytes && !hooks->is_memory((uintptr_t)w->device, w->device_bytes)) ||
        (w->info && !hooks->is_memory((uintptr_t)w->info, sizeof *w->info))) {
        hooks->lose(CUDA_RESULT_ERROR_ILLEGAL_ADDRESS);
        return false;
    }
    if (w->device_bytes)
        memset(w->device, 0xbb, w->device_bytes);
    return true;
}

static int submit(fake_work *run, const struct work *w)
{
    return w->stream ? w->stream->hooks->submit(w->stream, run, w, sizeof *w) : INVALID_VALUE;
}

/* Sizes that the library tells; a matrix of so many rows is refused. */
static int tell_sizes(const char *name, unsigned type, int64_t m, int64_t n, size_t *device_bytes, size_t *host_bytes)
{
    int r = step(name);

    if (r)
        return r;
    if (m == FAKE_VENDOR_REFUSED_ROWS)
        return NOT_SUPPORTED;
    if (m < 1 || n < 1)
        return INVALID_VALUE;
    *device_bytes = (size_t)(m + n) * bytes_of(type);
    *host_bytes = HOST_BYTES;
    return OK;
}

/* Honest libraries only trust what is checked here. */
static int check_room(const struct work *w, const void *host, size_t host_bytes)
{
    if (host_bytes != HOST_BYTES || !host || w->device_bytes != (size_t)(w->m + w->n) * bytes_of(w->type) || w->lda < w->m ||
        w->m > SIDE_MAX || w->n > SIDE_MAX || (uintptr_t)w->a % bytes_of(w->type))
        return INVALID_VALUE;
    return OK;
}

#define A(i, j)      get(w->type, w->a, (i) + (j)*w->lda)
#define PUT(i, j, x) put(w->type, w->a, (i) + (j)*w->lda, x)

/* ---- LU, Cholesky's, QR ---- */

static void run_getrf(const void *argument)
{
    const struct work *w = argument;
    int64_t           *pivots = w->values;

    if (!is_memory(w))
        return;
    *w->info = 0;
    for (int64_t k = 0; k < w->n; k++) {
        int64_t best = k;

        for (int64_t i = k + 1; i < w->n; i++)
            if (cabs(A(i, k)) > cabs(A(best, k)))
                best = i;
        pivots[k] = best + 1;
        for (int64_t j = 0; j < w->n && best != k; j++) {
            number kept = A(k, j);
            PUT(k, j, A(best, j));
            PUT(best, j, kept);
        }
        if (A(k, k) == 0) {
            *w->info = *w->info ? *w->info : (int)k + 1;
            continue;
        }
        for (int64_t i = k + 1; i < w->n; i++) {
            PUT(i, k, A(i, k) / A(k, k));
            for (int64_t j = k + 1; j < w->n; j++)
                PUT(i, j, A(i, j) - A(i, k) * A(k, j));
        }
    }
}

/* U' U = a, U in the upper triangle. */
static void run_potrf(const void *argument)
{
    const struct work *w = argument;

    if (!is_memory(w))
        return;
    *w->info = 0;
    for (int64_t k = 0; k < w->n && !*w->info; k++) {
        double square = creal(A(k, k));

        for (int64_t i = 0; i < k; i++)
            square -= creal(A(i, k) * conj(A(i, k)));
        if (!(square > 0)) {
            *w->info = (int)k + 1;
            break;
        }
        PUT(k, k, sqrt(square));
        for (int64_t j = k + 1; j < w->n; j++) {
            number x = A(k, j);

            for (int64_t i = 0; i < k; i++)
                x -= conj(A(i, k)) * A(i, j);
            PUT(k, j, x / A(k, k));
        }
    }
}

static void run_geqrf(const void *argument)
{
    const struct work *w = argument;

    if (!is_memory(w))
        return;
    *w->info = 0;
    for (int64_t k = 0; k < w->n && k < w->m; k++) {
        double squares = 0, norm, beta;
        number alpha = A(k, k), tau;

        for (int64_t i = k + 1; i < w->m; i++)
            squares += creal(A(i, k) * conj(A(i, k)));
        if (squares == 0 && cimag(alpha) == 0) {
            put(w->type, w->values, k, 0);
            continue;
        }
        norm = sqrt(squares + creal(alpha * conj(alpha)));
        beta = creal(alpha) >= 0 ? -norm : norm;
        tau = (beta - alpha) / beta;
        put(w->type, w->values, k, tau);
        for (int64_t i = k + 1; i < w->m; i++)
            PUT(i, k, A(i, k) / (alpha - beta));
        PUT(k, k, beta);
        for (int64_t j = k + 1; j < w->n; j++) {
            number sum = A(k, j);

            for (int64_t i = k + 1; i < w->m; i++)
                sum += conj(A(i, k)) * A(i, j);
            sum *= conj(tau);
            PUT(k, j, A(k, j) - sum);
            for (int64_t i = k + 1; i < w->m; i++)
                PUT(i, j, A(i, j) - A(i, k) * sum);
        }
    }
}

/* The first n columns of the product of k reflectors. */
static void run_orgqr(const void *argument)
{
    const struct work *w = argument;
    static number      q[SIDE_MAX][SIDE_MAX];

    if (!is_memory(w))
        return;
    *w->info = 0;
    for (int64_t j = 0; j < w->n; j++)
        for (int64_t i = 0; i < w->m; i++)
            q[i][j] = i == j;
    for (int64_t k = w->k; k-- > 0;)
        for (int64_t j = 0; j < w->n; j++) {
            number sum = q[k][j];

            for (int64_t i = k + 1; i < w->m; i++)
                sum += conj(A(i, k)) * q[i][j];
            sum *= get(w->type, w->tau, k);
            q[k][j] -= sum;
            for (int64_t i = k + 1; i < w->m; i++)
                q[i][j] -= A(i, k) * sum;
        }
    for (int64_t j = 0; j < w->n; j++)
        for (int64_t i = 0; i < w->m; i++)
            PUT(i, j, q[i][j]);
}

#define SIZES(name)                                                                                                                         \
    FAKE_EXPORT int name(cusolver_handle handle, cusolver_options options, int64_t m, int64_t n, unsigned type, const void *a,              \
                         int64_t lda, unsigned compute, size_t *device_bytes, size_t *host_bytes);                                          \
    int             name(cusolver_handle handle, cusolver_options options, int64_t m, int64_t n, unsigned type, const void *a, int64_t lda, \
                         unsigned compute, size_t *device_bytes, size_t *host_bytes)                                                        \
    {                                                                                                                                       \
        return handle && options && !a && lda >= m && compute == type ? tell_sizes(__func__, type, m, n, device_bytes, host_bytes)          \
                                                                      : INVALID_VALUE;                                                      \
    }
SIZES(cusolverDnXgetrf_bufferSize)

FAKE_EXPORT cusolver_getrf cusolverDnXgetrf;
int cusolverDnXgetrf(cusolver_handle handle, cusolver_options options, int64_t m, int64_t n, unsigned type, void *a, int64_t lda,
                     int64_t *pivots, unsigned compute, void *device, size_t device_bytes, void *host, size_t host_bytes, int *info)
{
    struct work w = {.type = type,
                     .m = m,
                     .n = n,
                     .lda = lda,
                     .a = a,
                     .values = pivots,
                     .device = device,
                     .device_bytes = device_bytes,
                     .info = info,
                     .stream = handle->stream};
    int         r = step(__func__);

    (void)options;
    if (!r && (m != n || compute != type))
        r = INVALID_VALUE;
    if (!r)
        r = check_room(&w, host, host_bytes);
    return r ? r : submit(run_getrf, &w);
}

FAKE_EXPORT cusolver_potrf_size cusolverDnXpotrf_bufferSize;
int cusolverDnXpotrf_bufferSize(cusolver_handle handle, cusolver_options options, unsigned triangle, int64_t n, unsigned type,
                                const void *a, int64_t lda, unsigned compute, size_t *device_bytes, size_t *host_bytes)
{
    (void)handle, (void)options, (void)a, (void)lda, (void)compute;
    return triangle == CUBLAS_UPPER ? tell_sizes(__func__, type, n, n, device_bytes, host_bytes) : INVALID_VALUE;
}

FAKE_EXPORT cusolver_potrf cusolverDnXpotrf;
int cusolverDnXpotrf(cusolver_handle handle, cusolver_options options, unsigned triangle, int64_t n, unsigned type, void *a, int64_t lda,
                     unsigned compute, void *device, size_t device_bytes, void *host, size_t host_bytes, int *info)
{
    struct work w = {.type = type,
                     .m = n,
                     .n = n,
                     .lda = lda,
                     .a = a,
                     .device = device,
                     .device_bytes = device_bytes,
                     .info = info,
                     .stream = handle->stream};
    int         r = step(__func__);

    (void)options;
    if (!r && (triangle != CUBLAS_UPPER || compute != type))
        r = INVALID_VALUE;
    if (!r)
        r = check_room(&w, host, host_bytes);
    return r ? r : submit(run_potrf, &w);
}

FAKE_EXPORT cusolver_geqrf_size cusolverDnXgeqrf_bufferSize;
int cusolverDnXgeqrf_bufferSize(cusolver_handle handle, cusolver_options options, int64_t m, int64_t n, unsigned type, const void *a,
                                int64_t lda, unsigned tau_type, const void *tau, unsigned compute, size_t *device_bytes, size_t *host_bytes)
{
    (void)handle, (void)options, (void)a, (void)lda, (void)compute, (void)tau;
    return tau_type == type ? tell_sizes(__func__, type, m, n, device_bytes, host_bytes) : INVALID_VALUE;
}

FAKE_EXPORT cusolver_geqrf cusolverDnXgeqrf;
int cusolverDnXgeqrf(cusolver_handle handle, cusolver_options options, int64_t m, int64_t n, unsigned type, void *a, int64_t lda,
                     unsigned tau_type, void *tau, unsigned compute, void *device, size_t device_bytes, void *host, size_t host_bytes,
                     int *info)
{
    struct work w = {.type = type,
                     .m = m,
                     .n = n,
                     .lda = lda,
                     .a = a,
                     .values = tau,
                     .device = device,
                     .device_bytes = device_bytes,
                     .info = info,
                     .stream = handle->stream};
    int         r = step(__func__);

    (void)options;
    if (!r && (tau_type != type || compute != type))
        r = INVALID_VALUE;
    if (!r)
        r = check_room(&w, host, host_bytes);
    return r ? r : submit(run_geqrf, &w);
}

#define ORGQR(letter, which, of_type)                                                                                                      \
    FAKE_EXPORT cusolver_orgqr_size cusolverDn##letter##which##_bufferSize;                                                                \
    int cusolverDn##letter##which##_bufferSize(cusolver_handle handle, int m, int n, int k, const void *a, int lda, const void *tau,       \
                                               int *count)                                                                                 \
    {                                                                                                                                      \
        int r = step(__func__);                                                                                                            \
        (void)handle, (void)a, (void)tau, (void)lda;                                                                                       \
        if (!r && (k > n || n > m))                                                                                                        \
            r = INVALID_VALUE;                                                                                                             \
        *count = m + n;                                                                                                                    \
        return r ? r : m == FAKE_VENDOR_REFUSED_ROWS ? NOT_SUPPORTED : OK;                                                                 \
    }                                                                                                                                      \
    FAKE_EXPORT cusolver_orgqr cusolverDn##letter##which;                                                                                  \
    int cusolverDn##letter##which(cusolver_handle handle, int m, int n, int k, void *a, int lda, const void *tau, void *device, int count, \
                                  int *info)                                                                                               \
    {                                                                                                                                      \
        struct work w = {.type = of_type,                                                                                                  \
                         .m = m,                                                                                                           \
                         .n = n,                                                                                                           \
                         .k = k,                                                                                                           \
                         .lda = lda,                                                                                                       \
                         .a = a,                                                                                                           \
                         .tau = tau,                                                                                                       \
                         .device = device,                                                                                                 \
                         .device_bytes = (size_t)count * bytes_of(of_type),                                                                \
                         .info = info,                                                                                                     \
                         .stream = handle->stream};                                                                                        \
        int         r = step(__func__);                                                                                                    \
        if (!r && (count != m + n || m > SIDE_MAX))                                                                                        \
            r = INVALID_VALUE;                                                                                                             \
        return r ? r : submit(run_orgqr, &w);                                                                                              \
    }
ORGQR(S, orgqr, CUSOLVER_TYPE_R_32F)
ORGQR(D, orgqr, CUSOLVER_TYPE_R_64F)
ORGQR(C, ungqr, CUSOLVER_TYPE_C_32F)
ORGQR(Z, ungqr, CUSOLVER_TYPE_C_64F)

/* ---- spectra ---- */

/* Turns columns p and q of x so that those of y, which are turned too, are orthogonal: Jacobi's method from one side. True: they were. */
static bool turn(number (*x)[SIDE_MAX], number (*y)[SIDE_MAX], int64_t rows, int64_t y_rows, int64_t p, int64_t q)
{
    double a = 0, b = 0, size, zeta, t, c;
    number product = 0, phase;

    for (int64_t i = 0; i < rows; i++) {
        a += creal(x[p][i] * conj(x[p][i]));
        b += creal(x[q][i] * conj(x[q][i]));
        product += conj(x[p][i]) * x[q][i];
    }
    size = cabs(product);
    if (size <= 1e-15 * sqrt(a * b) || size == 0)
        return true;
    phase = product / size;
    zeta = (b - a) / (2 * size);
    t = (zeta >= 0 ? 1 : -1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
    c = 1 / sqrt(1 + t * t);
    for (int side = 0; side < 2; side++) {
        number(*z)[SIDE_MAX] = side ? y : x;

        for (int64_t i = 0; i < (side ? y_rows : rows); i++) {
            number from_p = z[p][i], from_q = z[q][i] * conj(phase);
            z[p][i] = c * from_p - c * t * from_q;
            z[q][i] = c * t * from_p + c * from_q;
        }
    }
    return false;
}

/* x = u s v': columns of u s in x, of v in y, in descending order of s. */
static void decompose(number (*x)[SIDE_MAX], number (*y)[SIDE_MAX], double *s, int64_t m, int64_t n)
{
    bool done = false;

    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
            y[j][i] = i == j;
    for (int sweeps = 0; sweeps < SWEEPS_MAX && !done; sweeps++) {
        done = true;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++)
                done = turn(x, y, m, n, p, q) && done;
    }
    for (int64_t j = 0; j < n; j++) {
        s[j] = 0;
        for (int64_t i = 0; i < m; i++)
            s[j] += creal(x[j][i] * conj(x[j][i]));
        s[j] = sqrt(s[j]);
    }
    for (int64_t j = 0; j < n; j++)
        for (int64_t k = j + 1; k < n; k++)
            if (s[k] > s[j]) {
                double kept = s[j];
                s[j] = s[k], s[k] = kept;
                for (int64_t i = 0; i < SIDE_MAX; i++) {
                    number one = x[j][i], other = y[j][i];
                    x[j][i] = x[k][i], x[k][i] = one;
                    y[j][i] = y[k][i], y[k][i] = other;
                }
            }
}

static unsigned real_type(unsigned type)
{
    return type == CUSOLVER_TYPE_R_32F || type == CUSOLVER_TYPE_C_32F ? CUSOLVER_TYPE_R_32F : CUSOLVER_TYPE_R_64F;
}

static unsigned complex_type(unsigned type)
{
    return type == CUSOLVER_TYPE_R_32F || type == CUSOLVER_TYPE_C_32F ? CUSOLVER_TYPE_C_32F : CUSOLVER_TYPE_C_64F;
}

/* Only the upper triangle is read. A shift makes all eigenvalues positive: then they are singular values. */
static void run_syevd(const void *argument)
{
    const struct work *w = argument;
    static number      x[SIDE_MAX][SIDE_MAX], y[SIDE_MAX][SIDE_MAX];
    double             s[SIDE_MAX], shift = 1;

    if (!is_memory(w))
        return;
    *w->info = 0;
    for (int64_t i = 0; i < w->n; i++)
        for (int64_t j = i; j < w->n; j++) {
            x[j][i] = i == j ? creal(A(i, i)) : A(i, j);
            x[i][j] = conj(x[j][i]);
            shift += 2 * cabs(A(i, j));
        }
    for (int64_t i = 0; i < w->n; i++)
        x[i][i] += shift;
    decompose(x, y, s, w->n, w->n);
    for (int64_t j = 0; j < w->n; j++) {
        int64_t from = w->n - 1 - j;

        put(real_type(w->type), w->values, j, s[from] - shift);
        for (int64_t i = 0; i < w->n && w->job_u; i++)
            PUT(i, j, y[from][i]);
    }
}

/* Columns of u that belong to a value of 0, or to none, are made from the others and what is orthogonal to them. */
static void complete(number (*u)[SIDE_MAX], int64_t m, int64_t from, int64_t count)
{
    for (int64_t j = from; j < count; j++)
        for (int64_t axis = 0; axis < m; axis++) {
            double squares = 0;

            for (int64_t i = 0; i < m; i++)
                u[j][i] = i == axis;
            for (int again = 0; again < 2; again++)
                for (int64_t k = 0; k < j; k++) {
                    number product = 0;

                    for (int64_t i = 0; i < m; i++)
                        product += conj(u[k][i]) * u[j][i];
                    for (int64_t i = 0; i < m; i++)
                        u[j][i] -= product * u[k][i];
                }
            for (int64_t i = 0; i < m; i++)
                squares += creal(u[j][i] * conj(u[j][i]));
            if (squares < 1e-3)
                continue;
            for (int64_t i = 0; i < m; i++)
                u[j][i] /= sqrt(squares);
            break;
        }
}

static void run_gesvd(const void *argument)
{
    const struct work *w = argument;
    static number      x[SIDE_MAX][SIDE_MAX], y[SIDE_MAX][SIDE_MAX];
    double             s[SIDE_MAX];
    int64_t            rank = 0;

    if (!is_memory(w))
        return;
    *w->info = 0;
    for (int64_t j = 0; j < w->n; j++)
        for (int64_t i = 0; i < w->m; i++)
            x[j][i] = A(i, j);
    decompose(x, y, s, w->m, w->n);
    for (int64_t j = 0; j < w->n; j++) {
        put(real_type(w->type), w->values, j, s[j]);
        for (int64_t i = 0; i < w->m && s[j] > 1e-13 * s[0]; i++)
            x[j][i] /= s[j];
        rank += s[j] > 1e-13 * s[0];
    }
    complete(x, w->m, rank, w->m);
    for (int64_t j = 0; w->job_u != 'N' && j < (w->job_u == 'A' ? w->m : w->n); j++)
        for (int64_t i = 0; i < w->m; i++)
            put(w->type, w->u, i + j * w->ldu, x[j][i]);
    for (int64_t j = 0; w->job_v != 'N' && j < w->n; j++)
        for (int64_t i = 0; i < w->n; i++)
            put(w->type, w->v, i + j * w->ldv, conj(y[i][j]));
}

/* The eigenvector of a for a value nearby, by inverse iteration. */
static void vector_of(number (*a)[SIDE_MAX], int64_t n, number value, number *out)
{
    static number lu[SIDE_MAX][SIDE_MAX + 1];

    for (int64_t i = 0; i < n; i++)
        out[i] = 1 + 0.1 * (double)i;
    for (int again = 0; again < 3; again++) {
        double squares = 0;

        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < n; j++)
                lu[i][j] = a[i][j] - (i == j ? value * (1 + 1e-10) + 1e-12 : 0);
            lu[i][n] = out[i];
        }
        for (int64_t k = 0; k < n; k++) {
            int64_t best = k;

            for (int64_t i = k + 1; i < n; i++)
                best = cabs(lu[i][k]) > cabs(lu[best][k]) ? i : best;
            for (int64_t j = k; j <= n; j++) {
                number kept = lu[k][j];
                lu[k][j] = lu[best][j], lu[best][j] = kept;
            }
            for (int64_t i = 0; i < n; i++) {
                number by = lu[i][k] / lu[k][k];

                for (int64_t j = k; j <= n && i != k; j++)
                    lu[i][j] -= by * lu[k][j];
            }
        }
        for (int64_t i = 0; i < n; i++) {
            out[i] = lu[i][n] / lu[i][i];
            squares += creal(out[i] * conj(out[i]));
        }
        for (int64_t i = 0; i < n; i++)
            out[i] /= sqrt(squares);
    }
}

/* Eigenvalues by QR steps on a copy, one after the other: its last row at a time is brought to 0. */
static void values_of(number (*a)[SIDE_MAX], int64_t n, number *values)
{
    static number r[SIDE_MAX][SIDE_MAX], q[SIDE_MAX][SIDE_MAX], next[SIDE_MAX][SIDE_MAX];

    for (int64_t size = n; size > 0;) {
        double beside = 0;
        number shift = a[size - 1][size - 1];

        for (int64_t j = 0; j + 1 < size; j++)
            beside += cabs(a[size - 1][j]);
        if (beside < 1e-14 * (1 + cabs(shift))) {
            values[--size] = shift;
            continue;
        }
        shift += beside * CMPLX(0.1, 0.2) * (beside > 1e-3);
        for (int64_t j = 0; j < size; j++) { /* columns, made orthogonal twice */
            for (int64_t i = 0; i < size; i++)
                q[j][i] = a[i][j] - (i == j ? shift : 0), r[i][j] = 0;
            for (int again = 0; again < 2; again++)
                for (int64_t k = 0; k < j; k++) {
                    number product = 0;

                    for (int64_t i = 0; i < size; i++)
                        product += conj(q[k][i]) * q[j][i];
                    r[k][j] += product;
                    for (int64_t i = 0; i < size; i++)
                        q[j][i] -= product * q[k][i];
                }
            for (int64_t i = 0; i < size; i++)
                r[j][j] += creal(q[j][i] * conj(q[j][i]));
            r[j][j] = csqrt(r[j][j]);
            for (int64_t i = 0; i < size && cabs(r[j][j]) > 0; i++)
                q[j][i] /= r[j][j];
        }
        for (int64_t i = 0; i < size; i++)
            for (int64_t j = 0; j < size; j++) {
                next[i][j] = i == j ? shift : 0;
                for (int64_t k = i; k < size; k++)
                    next[i][j] += r[i][k] * q[j][k];
            }
        memcpy(a, next, sizeof next);
    }
}

/* Real ones first, then the pairs, of which one is kept. */
static int64_t in_pairs(number *values, int64_t n)
{
    int64_t reals = 0, count;
    number  kept[SIDE_MAX];

    for (int64_t i = 0; i < n; i++)
        if (fabs(cimag(values[i])) < 1e-7 * (1e-3 + cabs(values[i])))
            kept[reals++] = creal(values[i]);
    count = reals;
    for (int64_t i = 0; i < n; i++)
        if (cimag(values[i]) >= 1e-7 * (1e-3 + cabs(values[i])) && count + 1 < n) {
            kept[count++] = values[i];
            kept[count++] = conj(values[i]);
        }
    memcpy(values, kept, (size_t)n * sizeof *values);
    return reals;
}

static void run_geev(const void *argument)
{
    const struct work *w = argument;
    static number      x[SIDE_MAX][SIDE_MAX], y[SIDE_MAX][SIDE_MAX];
    number             values[SIDE_MAX], vector[SIDE_MAX];
    const bool         real = w->type == real_type(w->type);
    int64_t            reals;

    if (!is_memory(w))
        return;
    *w->info = 0;
    for (int64_t j = 0; j < w->n; j++)
        for (int64_t i = 0; i < w->n; i++)
            x[i][j] = y[i][j] = A(i, j);
    values_of(y, w->n, values);
    reals = real ? in_pairs(values, w->n) : w->n;
    for (int64_t j = 0; j < w->n; j++) {
        put(complex_type(w->type), w->values, j, values[j]);
        if (!w->v)
            continue;
        vector_of(x, w->n, values[j], vector);
        for (int64_t i = 0; i < w->n; i++)
            put(w->type, w->v, i + j * w->ldv, vector[i]);
        if (j < reals)
            continue;
        for (int64_t i = 0; i < w->n; i++)
            put(w->type, w->v, i + (j + 1) * w->ldv, cimag(vector[i]));
        j++;
        put(complex_type(w->type), w->values, j, values[j]);
    }
}

FAKE_EXPORT cusolver_syevd_size cusolverDnXsyevd_bufferSize;
int cusolverDnXsyevd_bufferSize(cusolver_handle handle, cusolver_options options, unsigned job, unsigned triangle, int64_t n, unsigned type,
                                const void *a, int64_t lda, unsigned values_type, const void *values, unsigned compute,
                                size_t *device_bytes, size_t *host_bytes)
{
    (void)handle, (void)options, (void)job, (void)triangle, (void)a, (void)lda, (void)values, (void)compute;
    return values_type == real_type(type) ? tell_sizes(__func__, type, n, n, device_bytes, host_bytes) : INVALID_VALUE;
}

FAKE_EXPORT cusolver_syevd cusolverDnXsyevd;
int cusolverDnXsyevd(cusolver_handle handle, cusolver_options options, unsigned job, unsigned triangle, int64_t n, unsigned type, void *a,
                     int64_t lda, unsigned values_type, void *values, unsigned compute, void *device, size_t device_bytes, void *host,
                     size_t host_bytes, int *info)
{
    struct work w = {.type = type,
                     .m = n,
                     .n = n,
                     .lda = lda,
                     .a = a,
                     .values = values,
                     .device = device,
                     .device_bytes = device_bytes,
                     .info = info,
                     .job_u = (signed char)job,
                     .stream = handle->stream};
    int         r = step(__func__);

    (void)options;
    if (!r && (triangle != CUBLAS_UPPER || values_type != real_type(type) || compute != type || job > CUSOLVER_VECTORS))
        r = INVALID_VALUE;
    if (!r)
        r = check_room(&w, host, host_bytes);
    return r ? r : submit(run_syevd, &w);
}

FAKE_EXPORT cusolver_gesvd_size cusolverDnXgesvd_bufferSize;
int cusolverDnXgesvd_bufferSize(cusolver_handle handle, cusolver_options options, signed char job_u, signed char job_vt, int64_t m,
                                int64_t n, unsigned type, const void *a, int64_t lda, unsigned values_type, const void *values,
                                unsigned u_type, const void *u, int64_t ldu, unsigned vt_type, const void *vt, int64_t ldvt,
                                unsigned compute, size_t *device_bytes, size_t *host_bytes)
{
    (void)handle, (void)options, (void)job_u, (void)job_vt, (void)a, (void)lda, (void)values, (void)u, (void)ldu, (void)vt, (void)ldvt;
    return m >= n && values_type == real_type(type) && u_type == type && vt_type == type && compute == type
               ? tell_sizes(__func__, type, m, n, device_bytes, host_bytes)
               : INVALID_VALUE;
}

FAKE_EXPORT cusolver_gesvd cusolverDnXgesvd;
int cusolverDnXgesvd(cusolver_handle handle, cusolver_options options, signed char job_u, signed char job_vt, int64_t m, int64_t n,
                     unsigned type, void *a, int64_t lda, unsigned values_type, void *values, unsigned u_type, void *u, int64_t ldu,
                     unsigned vt_type, void *vt, int64_t ldvt, unsigned compute, void *device, size_t device_bytes, void *host,
                     size_t host_bytes, int *info)
{
    struct work w = {.type = type,
                     .m = m,
                     .n = n,
                     .lda = lda,
                     .a = a,
                     .values = values,
                     .u = u,
                     .ldu = ldu,
                     .v = vt,
                     .ldv = ldvt,
                     .job_u = job_u,
                     .job_v = job_vt,
                     .device = device,
                     .device_bytes = device_bytes,
                     .info = info,
                     .stream = handle->stream};
    int         r = step(__func__);

    (void)options;
    if (!r && (m < n || values_type != real_type(type) || u_type != type || vt_type != type || compute != type || ldu < m || ldvt < n ||
               (job_u != 'N' && !u) || (job_vt != 'N' && !vt)))
        r = INVALID_VALUE;
    if (!r)
        r = check_room(&w, host, host_bytes);
    return r ? r : submit(run_gesvd, &w);
}

FAKE_EXPORT cusolver_geev_size cusolverDnXgeev_bufferSize;
int cusolverDnXgeev_bufferSize(cusolver_handle handle, cusolver_options options, unsigned job_left, unsigned job_right, int64_t n,
                               unsigned type, const void *a, int64_t lda, unsigned values_type, const void *values, unsigned left_type,
                               const void *left, int64_t ld_left, unsigned right_type, const void *right, int64_t ld_right,
                               unsigned compute, size_t *device_bytes, size_t *host_bytes)
{
    (void)handle, (void)options, (void)job_right, (void)a, (void)lda, (void)values, (void)left, (void)ld_left, (void)right, (void)ld_right;
    return job_left == CUSOLVER_NO_VECTORS && values_type == complex_type(type) && left_type == type && right_type == type &&
                   compute == type
               ? tell_sizes(__func__, type, n, n, device_bytes, host_bytes)
               : INVALID_VALUE;
}

FAKE_EXPORT cusolver_geev cusolverDnXgeev;
int cusolverDnXgeev(cusolver_handle handle, cusolver_options options, unsigned job_left, unsigned job_right, int64_t n, unsigned type,
                    void *a, int64_t lda, unsigned values_type, void *values, unsigned left_type, void *left, int64_t ld_left,
                    unsigned right_type, void *right, int64_t ld_right, unsigned compute, void *device, size_t device_bytes, void *host,
                    size_t host_bytes, int *info)
{
    struct work w = {.type = type,
                     .m = n,
                     .n = n,
                     .lda = lda,
                     .a = a,
                     .values = values,
                     .v = job_right ? right : NULL,
                     .ldv = ld_right,
                     .device = device,
                     .device_bytes = device_bytes,
                     .info = info,
                     .stream = handle->stream};
    int         r = step(__func__);

    (void)options, (void)left, (void)ld_left;
    if (!r && (job_left || values_type != complex_type(type) || left_type != type || right_type != type || compute != type ||
               (job_right && !right)))
        r = INVALID_VALUE;
    if (!r)
        r = check_room(&w, host, host_bytes);
    return r ? r : submit(run_geev, &w);
}

/* ---- cuBLAS ---- */

static void run_geam(const void *argument)
{
    const struct work *w = argument;
    static number      x[SIDE_MAX][SIDE_MAX];

    if (!w->stream->hooks->is_memory((uintptr_t)w->b, extent(w, w->n, w->m, w->ldu)) || !is_memory(w)) {
        w->stream->hooks->lose(CUDA_RESULT_ERROR_ILLEGAL_ADDRESS);
        return;
    }
    for (int64_t j = 0; j < w->n; j++)
        for (int64_t i = 0; i < w->m; i++)
            x[i][j] = get(w->type, w->b, j + i * w->ldu);
    for (int64_t j = 0; j < w->n; j++)
        for (int64_t i = 0; i < w->m; i++)
            PUT(i, j, x[i][j]);
}

static number triangle_at(const struct work *w, int64_t i, int64_t j)
{
    const bool upper = w->triangle == CUBLAS_UPPER, turned = w->op == CUBLAS_TRANSPOSED;
    int64_t    row = turned ? j : i, column = turned ? i : j;

    if (row == column && w->diagonal == CUBLAS_DIAGONAL_ONES)
        return 1;
    return row == column || (row < column) == upper ? get(w->type, w->b, row + column * w->ldu) : 0;
}

/* x op(b) = a, row by row. */
static void run_trsm(const void *argument)
{
    const struct work *w = argument;
    const bool         upper = (w->triangle == CUBLAS_UPPER) != (w->op == CUBLAS_TRANSPOSED);

    if (!is_memory(w))
        return;
    for (int64_t row = 0; row < w->m; row++)
        for (int64_t turn_of = 0; turn_of < w->n; turn_of++) {
            int64_t j = upper ? turn_of : w->n - 1 - turn_of;
            number  x = A(row, j);

            for (int64_t k = 0; k < w->n; k++)
                if (upper ? k < j : k > j)
                    x -= A(row, k) * triangle_at(w, k, j);
            PUT(row, j, x / triangle_at(w, j, j));
        }
}

static void run_scal(const void *argument)
{
    const struct work *w = argument;

    for (int64_t i = 0; i < w->n; i++)
        put(w->type, w->a, i * w->lda, w->alpha * get(w->type, w->a, i * w->lda));
}

#define BLAS(letter, of_type)                                                                                                              \
    FAKE_EXPORT cublas_geam cublas##letter##geam;                                                                                          \
    int cublas##letter##geam(cublas_handle handle, unsigned op_a, unsigned op_b, int m, int n, const void *alpha, const void *a, int lda,  \
                             const void *beta, const void *b, int ldb, void *c, int ldc)                                                   \
    {                                                                                                                                      \
        struct work w = {.type = of_type, .m = m, .n = n, .lda = ldc, .a = c, .b = a, .ldu = lda, .stream = handle->stream};               \
        int         r = step(__func__);                                                                                                    \
        if (!r && (op_a != CUBLAS_TRANSPOSED || op_b != CUBLAS_PLAIN || get(of_type, alpha, 0) != 1 || get(of_type, beta, 0) != 0 ||       \
                   b != c || ldb != ldc || lda < n || ldc < m || m > SIDE_MAX || n > SIDE_MAX))                                            \
            r = 7;                                                                                                                         \
        return r ? r : submit(run_geam, &w);                                                                                               \
    }                                                                                                                                      \
    FAKE_EXPORT cublas_trsm cublas##letter##trsm_v2;                                                                                       \
    int cublas##letter##trsm_v2(cublas_handle handle, unsigned side, unsigned triangle, unsigned op, unsigned diagonal, int m, int n,      \
                                const void *alpha, const void *a, int lda, void *b, int ldb)                                               \
    {                                                                                                                                      \
        struct work w = {.type = of_type,                                                                                                  \
                         .m = m,                                                                                                           \
                         .n = n,                                                                                                           \
                         .lda = ldb,                                                                                                       \
                         .a = b,                                                                                                           \
                         .b = a,                                                                                                           \
                         .ldu = lda,                                                                                                       \
                         .triangle = triangle,                                                                                             \
                         .op = op,                                                                                                         \
                         .diagonal = diagonal,                                                                                             \
                         .stream = handle->stream};                                                                                        \
        int         r = step(__func__);                                                                                                    \
        if (!r && (side != CUBLAS_ON_RIGHT || get(of_type, alpha, 0) != 1 || lda < n || ldb < m))                                          \
            r = 7;                                                                                                                         \
        return r ? r : submit(run_trsm, &w);                                                                                               \
    }
BLAS(S, CUSOLVER_TYPE_R_32F)
BLAS(D, CUSOLVER_TYPE_R_64F)
BLAS(C, CUSOLVER_TYPE_C_32F)
BLAS(Z, CUSOLVER_TYPE_C_64F)

#define SCAL(letter, of_type)                                                                                                              \
    FAKE_EXPORT cublas_scal cublas##letter##scal_v2;                                                                                       \
    int                     cublas##letter##scal_v2(cublas_handle handle, int n, const void *alpha, void *x, int by)                       \
    {                                                                                                                                      \
        struct work w = {.type = of_type, .n = n, .lda = by, .a = x, .alpha = get(of_type, alpha, 0), .stream = handle->stream};           \
        int         r = step(__func__);                                                                                                    \
        return r ? r : submit(run_scal, &w);                                                                                               \
    }
SCAL(S, CUSOLVER_TYPE_R_32F)
SCAL(D, CUSOLVER_TYPE_R_64F)
