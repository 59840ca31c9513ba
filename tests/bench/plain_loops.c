/* See plain_loops.h. Compiled with -O3 -march=native -ffast-math. */
#include "bench/plain_loops.h"

#include <math.h>
#include <stdint.h>

void plain_vadd(const float *restrict x, const float *restrict y, float *restrict z)
{
    for (int i = 0; i < MILLION; i++)
        z[i] = x[i] + y[i];
}

void plain_saxpy(const float *restrict x, const float *restrict y, float *restrict z)
{
    (void)y;
    for (int i = 0; i < MILLION; i++)
        z[i] = 2.5f * x[i] + z[i];
}

void plain_matmul(const float *restrict x, const float *restrict y, float *restrict z)
{
    for (int i = 0; i < MATRIX; i++)
        for (int j = 0; j < MATRIX; j++) {
            float sum = 0;
            for (int k = 0; k < MATRIX; k++)
                sum += x[i * MATRIX + k] * y[k * MATRIX + j];
            z[i * MATRIX + j] = sum;
        }
}

void plain_sum(const float *restrict x, const float *restrict y, float *restrict z)
{
    float sum = 0;

    (void)y;
    for (int i = 0; i < MILLION; i++)
        sum += x[i];
    z[0] = sum;
}

void plain_histogram(const float *restrict x, const float *restrict y, float *restrict z)
{
    const unsigned char *in = (const unsigned char *)x;
    uint32_t            *counts = (uint32_t *)(void *)z;

    (void)y;
    for (int i = 0; i < MILLION; i++)
        counts[in[i]]++;
}

void plain_softmax(const float *restrict x, const float *restrict y, float *restrict z)
{
    (void)y;
    for (int r = 0; r < IMAGE; r++) {
        const float *in = x + r * IMAGE;
        float       *out = z + r * IMAGE, most = in[0], sum = 0;
        for (int i = 1; i < IMAGE; i++)
            most = in[i] > most ? in[i] : most;
        for (int i = 0; i < IMAGE; i++)
            sum += out[i] = expf(in[i] - most);
        for (int i = 0; i < IMAGE; i++)
            out[i] /= sum;
    }
}

static int escape(float cx, float cy)
{
    float x = 0, y = 0;
    int   n = 0;

    while (x * x + y * y < 4.0f && n < ESCAPE_ROUNDS) {
        float t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
        n++;
    }
    return n;
}

void plain_mandelbrot(const float *restrict a, const float *restrict b, float *restrict z)
{
    (void)a, (void)b;
    for (int y = 0; y < IMAGE; y++)
        for (int x = 0; x < IMAGE; x++)
            ((int *)(void *)z)[y * IMAGE + x] = escape(-2.0f + (float)x * 3.0f / IMAGE, -1.5f + (float)y * 3.0f / IMAGE);
}

void plain_heat(const float *restrict x, const float *restrict y, float *restrict z)
{
    (void)y;
    for (int j = 1; j < IMAGE - 1; j++)
        for (int k = j * IMAGE + 1; k < j * IMAGE + IMAGE - 1; k++)
            z[k] = x[k] + 0.2f * (x[k - 1] + x[k + 1] + x[k - IMAGE] + x[k + IMAGE] - 4.0f * x[k]);
}
