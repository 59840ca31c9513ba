"""CUDA sources that several tests use."""

SAXPY = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""
MANY = r"""
struct Pair { int a; double b; };
struct Holder { float* p; int n; };
extern "C" __global__ void pair(Pair p, double* out) { *out = p.a + p.b; }
extern "C" __global__ void holder(Holder h) { for (int i = 0; i < h.n; i++) h.p[i] = i; }
extern "C" __global__ void hello(int n) { printf("hello %d\n", n); }
extern "C" __global__ void types(signed char a, unsigned char b, short c, unsigned short d, int e, unsigned f, long long g,
                                 unsigned long long h, float i, double j, bool k, double* out) {
    double all[] = {(double)a, (double)b, (double)c, (double)d, (double)e, (double)f, (double)g, (double)h, (double)i, j, (double)k};
    for (int n = 0; n < 11; n++) out[n] = all[n];
}
template <typename T> __global__ void scale(T a, T* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}
extern "C" __global__ void isnull(const int* p, int* out) { *out = p == nullptr; }
"""
FAULTS = r"""
extern "C" __global__ void illegal(int* p) { p[1ll << 40] = 1; }
extern "C" __global__ void trap() { asm volatile("trap;"); }
extern "C" __global__ void endless(volatile int* p) { for (;;) *p = *p + 1; }
"""
