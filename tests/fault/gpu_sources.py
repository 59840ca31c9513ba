"""Kernels that fault, never end, or search for others' data; for any device."""

# name -> (block, possible codes of the answer, whether the session is lost)
FAULTS = {
    "illegal_address": (1, {"kernel_fault"}, True),
    "misaligned": (1, {"kernel_fault"}, True),
    "trap": (1, {"kernel_fault"}, True),
    "asserts": (1, {"kernel_fault"}, True),
    "stack_overflow": (1, {"kernel_fault"}, True),
    "illegal_instruction": (1, {"kernel_fault"}, True),
    "too_many_resources": (1024, {"launch_config_invalid"}, False),
}

# name -> (grid, block, whether the device stops it by itself)
ENDLESS = {
    "endless": ([1], [32]),
    "endless_printf": ([1], [32]),
    "barrier_deadlock": ([1], [64]),
    "grid_spin": ([64], [32]),
}

# Declares what assert() needs, so that no header is needed. Inline assembly forces the registers of too_many_resources.
SOURCE = r"""
extern "C" __device__ void __assertfail(const char *text, const char *file, unsigned line, const char *function, size_t size);

extern "C" __global__ void vadd(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

extern "C" __global__ void illegal_address(char *p) { *(volatile int *)(size_t)64 = 7; }
extern "C" __global__ void misaligned(char *p) { *(volatile int *)(p + 1) = 7; }
extern "C" __global__ void trap(char *p) { asm volatile("trap;"); }
extern "C" __global__ void asserts(char *p) { if (p) __assertfail("!p", "k.cu", 1, "asserts", 1); }

__device__ __noinline__ int deeper(volatile int *p, int depth)
{
    volatile int frame[256];
    frame[depth & 255] = depth;
    return *p == depth ? frame[3] : deeper(p, depth + 1) + frame[depth & 255];
}
extern "C" __global__ void stack_overflow(char *p) { *(volatile int *)(p + 4) = deeper((volatile int *)p, 1 << 30); }

extern "C" __global__ void illegal_instruction(char *p) { ((void (*)(char *))p)(p); }

extern "C" __global__ void __launch_bounds__(128) too_many_resources(char *p)
{
    float v[160];
    for (int i = 0; i < 160; i++)
        v[i] = ((volatile float *)p)[i & 7];
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 160; i++)
            v[i] = v[i] * v[(i * 7 + k) % 160] + 1.0f;
    for (int i = 0; i < 160; i++)
        ((volatile float *)p)[i & 7] = v[i];
}

extern "C" __global__ void endless(char *p) { for (;;) *(volatile int *)p = *(volatile int *)p + 1; }
extern "C" __global__ void endless_printf(char *p) { for (int i = 0;; i++) printf("line %d of a flood that does not end\n", i + *(volatile int *)p); }
extern "C" __global__ void barrier_deadlock(char *p)
{
    if (threadIdx.x == 0)
        while (*(volatile int *)p != 1234567)
            ;
    __syncthreads();
    *(volatile int *)p = 1234567;
}
extern "C" __global__ void grid_spin(char *p)
{
    atomicAdd((unsigned *)p, 1u);
    while (*(volatile unsigned *)p <= gridDim.x * blockDim.x)
        ;
}
"""

# The pattern that is left and searched. Searching kernels get its product with an odd number, so that none has the pattern itself in a
# register, which could be spilled to the memory that it searches.
PATTERN = 0xA5C35A3CF00DCAFE
FACTOR = 0x9E3779B97F4A7C15
KEY = PATTERN * FACTOR % (1 << 64)

LEAKS = r"""
typedef unsigned long long word;

static __device__ word is(word v, word key) { return v * 0x%xull == key; }

/* Shared and local memory as the launch found them. */
extern "C" __global__ void look_in_block(word *found, word key, int words)
{
    extern __shared__ word shared[];
    word local[64], hits = 0;
    for (int i = threadIdx.x; i < words; i += blockDim.x)
        hits += is(((volatile word *)shared)[i], key);
    for (int i = 0; i < 64; i++)
        hits += is(((volatile word *)local)[i], key);
    if (hits)
        atomicAdd(found, hits);
}

extern "C" __global__ void leave_in_block(word mark, int words)
{
    extern __shared__ word shared[];
    word local[64];
    for (int i = threadIdx.x; i < words; i += blockDim.x)
        ((volatile word *)shared)[i] = mark;
    for (int i = 0; i < 64; i++)
        ((volatile word *)local)[i] = mark;
}

__device__ word variable[4096];
__constant__ word constant[4096];

extern "C" __global__ void look_in_module(word *found, word key)
{
    word hits = 0;
    for (int i = threadIdx.x; i < 4096; i += blockDim.x)
        hits += is(((volatile word *)variable)[i], key) + is(((volatile word *)constant)[i], key);
    if (hits)
        atomicAdd(found, hits);
}

extern "C" __global__ void leave_in_module(word mark)
{
    for (int i = threadIdx.x; i < 4096; i += blockDim.x)
        ((volatile word *)variable)[i] = mark;
    if (threadIdx.x == 0)
        printf("secret %%llx\n", mark);
}

extern "C" __global__ void look_in_memory(const word *p, word words, word *found, word key)
{
    word hits = 0;
    for (word i = blockIdx.x * (word)blockDim.x + threadIdx.x; i < words; i += (word)gridDim.x * blockDim.x)
        hits += is(p[i], key);
    if (hits)
        atomicAdd(found, hits);
}
""" % FACTOR
