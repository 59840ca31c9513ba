// The measured kernels once more, for OpenCL on the same processor. Same shapes as in cpu_kernels.c; sizes there.
#define MATRIX 512
#define IMAGE 1024
#define TILE 16

__kernel void vadd(__global const float *x, __global const float *y, __global float *z, int n)
{
    int i = get_global_id(0);
    if (i < n)
        z[i] = x[i] + y[i];
}

__kernel void saxpy(__global const float *x, __global const float *y, __global float *z, int n)
{
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        z[i] = 2.5f * x[i] + z[i];
}

__kernel void matmul(__global const float *x, __global const float *y, __global float *z, int n)
{
    __local float a[TILE][TILE], b[TILE][TILE];
    int   tx = get_local_id(0), ty = get_local_id(1), row = get_global_id(1), col = get_global_id(0);
    float sum = 0;

    for (int m = 0; m < MATRIX / TILE; m++) {
        a[ty][tx] = x[row * MATRIX + m * TILE + tx];
        b[ty][tx] = y[(m * TILE + ty) * MATRIX + col];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; k++)
            sum += a[ty][k] * b[k][tx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    z[row * MATRIX + col] = sum;
}

__kernel void matmul_naive(__global const float *x, __global const float *y, __global float *z, int n)
{
    int   row = get_global_id(1), col = get_global_id(0);
    float sum = 0;

    for (int k = 0; k < MATRIX; k++)
        sum += x[row * MATRIX + k] * y[k * MATRIX + col];
    z[row * MATRIX + col] = sum;
}

__kernel void reduce_seq(__global const float *x, __global const float *y, __global float *z, int n)
{
    __local float s[256];
    int t = get_local_id(0), i = get_group_id(0) * 512 + t;

    s[t] = x[i] + x[i + 256];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 128; k > 0; k >>= 1) {
        if (t < k)
            s[t] += s[t + k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0)
        z[get_group_id(0)] = s[0];
}

__kernel void softmax(__global const float *x, __global const float *y, __global float *z, int n)
{
    __local float s[256];
    __global const float *in = x + get_group_id(0) * IMAGE;
    __global float *out = z + get_group_id(0) * IMAGE;
    int   t = get_local_id(0);
    float most = -1e30f, sum = 0;

    for (int i = t; i < IMAGE; i += 256)
        most = fmax(most, in[i]);
    s[t] = most;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 128; k > 0; k >>= 1) {
        if (t < k)
            s[t] = fmax(s[t], s[t + k]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    most = s[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = t; i < IMAGE; i += 256) {
        out[i] = exp(in[i] - most);
        sum += out[i];
    }
    s[t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 128; k > 0; k >>= 1) {
        if (t < k)
            s[t] += s[t + k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = t; i < IMAGE; i += 256)
        out[i] /= s[0];
}

__kernel void hist_shared(__global const uchar *x, __global const float *y, __global uint *z, int n)
{
    __local uint s[256];
    int t = get_local_id(0);

    s[t] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(&s[x[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&z[t], s[t]);
}

__kernel void hist_global(__global const uchar *x, __global const float *y, __global uint *z, int n)
{
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(&z[x[i]]);
}

__kernel void mandel(__global const float *a, __global const float *b, __global int *z, int n)
{
    int   px = get_global_id(0), py = get_global_id(1), count = 0;
    float cx = -2.0f + px * (3.0f / IMAGE), cy = -1.5f + py * (3.0f / IMAGE), x = 0, y = 0;

    while (x * x + y * y < 4.0f && count < 256) {
        float t = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = t;
        count++;
    }
    z[py * IMAGE + px] = count;
}

__kernel void heat2d(__global const float *x, __global const float *y, __global float *z, int n)
{
    int i = get_global_id(0), j = get_global_id(1);

    if (i > 0 && j > 0 && i < IMAGE - 1 && j < IMAGE - 1) {
        int k = j * IMAGE + i;
        z[k] = x[k] + 0.2f * (x[k - 1] + x[k + 1] + x[k - IMAGE] + x[k + IMAGE] - 4.0f * x[k]);
    }
}
