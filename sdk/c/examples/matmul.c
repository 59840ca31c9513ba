/* A session whose buffers stay on the device between two launches: C = A B, then D = C B, checked on the host.
 * Usage: matmul [N]; GPUREST_URL names the service. */
#include <gpurest/gpurest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TILE = 16, N_MAX = 1024 };

static const char source[] = "#define TILE 16\n"
                             "extern \"C\" __global__ void matmul(const float *a, const float *b, float *c, int n)\n"
                             "{\n"
                             "    __shared__ float s[TILE][TILE], t[TILE][TILE];\n"
                             "    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;\n"
                             "    float sum = 0;\n"
                             "    for (int k = 0; k < n; k += TILE) {\n"
                             "        int i = k + threadIdx.x, j = k + threadIdx.y;\n"
                             "        s[threadIdx.y][threadIdx.x] = row < n && i < n ? a[row * n + i] : 0;\n"
                             "        t[threadIdx.y][threadIdx.x] = j < n && column < n ? b[j * n + column] : 0;\n"
                             "        __syncthreads();\n"
                             "        for (int m = 0; m < TILE; m++) sum += s[threadIdx.y][m] * t[m][threadIdx.x];\n"
                             "        __syncthreads();\n"
                             "    }\n"
                             "    if (row < n && column < n) c[row * n + column] = sum;\n"
                             "}\n";

struct job {
    gpurest_session      *session;
    gpurest_module       *module;
    const gpurest_kernel *kernel;
    gpurest_buffer        a, b, c, d;
    int                   n;
};

static gpurest_status multiply(const struct job *j, gpurest_buffer left, gpurest_buffer right, gpurest_buffer out)
{
    uint32_t    tiles = ((uint32_t)j->n + TILE - 1) / TILE;
    gpurest_arg args[] = {GPUREST_BUF(left), GPUREST_BUF(right), GPUREST_BUF(out), GPUREST_I32(j->n)};

    return gpurest_launch(j->session, j->kernel, GPUREST_2D(tiles, tiles), GPUREST_2D(TILE, TILE), 0, (gpurest_stream){0}, args, 4);
}

/* Closing the session frees the buffers, also on failure. */
static gpurest_status run(struct job *j, const float *a, const float *b, float *out)
{
    size_t         bytes = (size_t)j->n * (size_t)j->n * sizeof *a;
    gpurest_status st;

    if ((st = gpurest_compile(j->session, &j->module, source, NULL, 0)) || (st = gpurest_kernel_get(j->module, "matmul", &j->kernel)))
        return st;
    if ((st = gpurest_alloc_from(j->session, &j->a, a, bytes)) || (st = gpurest_alloc_from(j->session, &j->b, b, bytes)) ||
        (st = gpurest_alloc(j->session, &j->c, bytes)) || (st = gpurest_alloc(j->session, &j->d, bytes)))
        return st;
    if ((st = multiply(j, j->a, j->b, j->c)) || (st = multiply(j, j->c, j->b, j->d)))
        return st;
    return gpurest_read(j->session, j->d, 0, out, bytes);
}

static void multiply_here(const float *a, const float *b, double *c, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            c[i * n + j] = 0;
            for (int k = 0; k < n; k++)
                c[i * n + j] += (double)a[i * n + k] * (double)b[k * n + j];
        }
}

/* The largest difference from the host's result in double precision. */
static double difference(const float *a, const float *b, const float *d, int n)
{
    double *c = calloc((size_t)n * (size_t)n, sizeof *c), *e = calloc((size_t)n * (size_t)n, sizeof *e), worst = 0;
    float  *rounded = calloc((size_t)n * (size_t)n, sizeof *rounded);

    if (!c || !e || !rounded)
        worst = INFINITY;
    else {
        multiply_here(a, b, c, n);
        for (int i = 0; i < n * n; i++)
            rounded[i] = (float)c[i];
        multiply_here(rounded, b, e, n);
        for (int i = 0; i < n * n; i++)
            worst = fmax(worst, fabs(e[i] - (double)d[i]));
    }
    free(c);
    free(e);
    free(rounded);
    return worst;
}

static gpurest_status with_session(struct job *j, const float *a, const float *b, float *d)
{
    gpurest_client *client;
    gpurest_status  st = gpurest_open(&client, NULL);

    if (st)
        return st;
    st = gpurest_session_open(&j->session, client, NULL);
    if (!st) {
        st = run(j, a, b, d);
        gpurest_module_unload(j->module);
        gpurest_session_close(j->session);
    }
    gpurest_close(client);
    return st;
}

int main(int argc, char **argv)
{
    struct job j = {.n = argc > 1 ? atoi(argv[1]) : 96};
    size_t     count = (size_t)(j.n > 0 ? j.n : 0) * (size_t)(j.n > 0 ? j.n : 0);
    float     *a = malloc(count * sizeof *a + 1), *b = malloc(count * sizeof *b + 1), *d = malloc(count * sizeof *d + 1);
    int        code = EXIT_FAILURE;

    if (j.n < 1 || j.n > N_MAX || !a || !b || !d) {
        fprintf(stderr, "usage: matmul [N], from 1 to %d\n", N_MAX);
    } else {
        for (size_t i = 0; i < count; i++) {
            a[i] = (float)(i % 7) / 7 - 0.4f;
            b[i] = (float)(i % 5) / 5 - 0.3f;
        }
        if (with_session(&j, a, b, d)) {
            fprintf(stderr, "%s\n%s\n", gpurest_last_error()->message, gpurest_last_error()->hint);
        } else {
            double worst = difference(a, b, d, j.n);
            code = worst <= 1e-3 ? EXIT_SUCCESS : EXIT_FAILURE;
            printf("%d x %d, twice: %s (greatest difference %.1e)\n", j.n, j.n, code == EXIT_SUCCESS ? "right" : "WRONG", worst);
        }
    }
    free(a);
    free(b);
    free(d);
    return code;
}
