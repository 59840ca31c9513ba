/* The first minute: two arrays, one kernel, one request. Usage: vector_add [COUNT]; GPUREST_URL names the service. */
#include <gpurest/gpurest.h>
#include <stdio.h>
#include <stdlib.h>

static const char source[] = "extern \"C\" __global__ void vadd(const float *a, const float *b, float *c, int n)\n"
                             "{\n"
                             "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "    if (i < n) c[i] = a[i] + b[i];\n"
                             "}\n";

static int fail_with(const char *what)
{
    const gpurest_error *e = gpurest_last_error();

    fprintf(stderr, "%s: %s\n%s\n%s", what, e->message, e->hint, e->log);
    return EXIT_FAILURE;
}

static int add(gpurest_client *client, const float *a, const float *b, float *c, int n)
{
    size_t        bytes = (size_t)n * sizeof *a;
    gpurest_arg   args[] = {GPUREST_IN(a, bytes), GPUREST_IN(b, bytes), GPUREST_OUT(c, bytes), GPUREST_I32(n)};
    gpurest_times times;
    int           wrong = 0;

    if (gpurest_run(client, source, "vadd", GPUREST_1D(((uint32_t)n + 255) / 256), GPUREST_1D(256), args, 4, &times))
        return fail_with("the run failed");
    for (int i = 0; i < n; i++)
        wrong += c[i] != a[i] + b[i];
    printf("%d sums, %d wrong; the kernel took %.1f us\n", n, wrong, times.gpu_us);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    int             n = argc > 1 ? atoi(argv[1]) : 100000, code = EXIT_FAILURE;
    float          *a, *b, *c;
    gpurest_client *client;

    if (n < 1 || n > 1000000) {
        fprintf(stderr, "usage: vector_add [COUNT], from 1 to 1000000\n");
        return EXIT_FAILURE;
    }
    a = malloc((size_t)n * sizeof *a);
    b = malloc((size_t)n * sizeof *b);
    c = malloc((size_t)n * sizeof *c);
    if (a && b && c && gpurest_open(&client, NULL) == GPUREST_OK) {
        for (int i = 0; i < n; i++) {
            a[i] = (float)i;
            b[i] = 0.5f * (float)i;
        }
        code = add(client, a, b, c, n);
        gpurest_close(client);
    } else {
        fail_with("no service");
    }
    free(a);
    free(b);
    free(c);
    return code;
}
