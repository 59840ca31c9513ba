/* The work of the measured kernels as plain loops on one thread: what a C programmer would write, left to the compiler. */
#pragma once

enum { MILLION = 1 << 20, MATRIX = 512, IMAGE = 1024, ESCAPE_ROUNDS = 256 };

/* x, y, z: MILLION floats each, not overlapping; the result goes to z. */
void plain_vadd(const float *x, const float *y, float *z);
void plain_saxpy(const float *x, const float *y, float *z);
void plain_matmul(const float *x, const float *y, float *z);
void plain_sum(const float *x, const float *y, float *z);
void plain_histogram(const float *x, const float *y, float *z);  /* of x's bytes; z: 256 counts */
void plain_softmax(const float *x, const float *y, float *z);    /* of IMAGE rows */
void plain_mandelbrot(const float *x, const float *y, float *z); /* z: IMAGE x IMAGE ints */
void plain_heat(const float *x, const float *y, float *z);       /* one step over IMAGE x IMAGE */
