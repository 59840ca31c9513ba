// What nvcc makes of <<<>>>, templates, variables of every kind, shared memory and printf. test_nvcc.py compiles it in several ways.
#include <cstdio>
#include <cuda_runtime.h>

__constant__ int factors[4];
__device__ float visible = 2;
static __device__ int of_this_file = 5;

__global__ void scale(const float *from, float *to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        to[i] = from[i] * factors[1] + visible + of_this_file;
}

template <typename T> __global__ void sum(const T *from, T *to)
{
    extern __shared__ __align__(16) unsigned char memory[];
    T *shared = reinterpret_cast<T *>(memory);

    shared[threadIdx.x] = from[threadIdx.x];
    __syncthreads();
    for (unsigned step = blockDim.x / 2; step; step /= 2) {
        if (threadIdx.x < step)
            shared[threadIdx.x] += shared[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        *to = shared[0];
        printf("sum %g\n", double(shared[0]));
    }
}

#define CHECK(condition)                                                                   \
    do                                                                                     \
        if (!(condition)) {                                                                \
            fprintf(stderr, "line %d: not so: %s (%s)\n", __LINE__, #condition,            \
                    cudaGetErrorString(cudaPeekAtLastError()));                            \
            return 1;                                                                      \
        }                                                                                  \
    while (0)
#define OK(call) CHECK((call) == cudaSuccess)

int main()
{
    enum { N = 256 };
    float host[N], back[N], *from, *to, two = 3;
    int values[4] = {0, 10, 0, 0}, own = 7, block, grid;
    double *numbers, total;
    cudaStream_t stream;

    for (int i = 0; i < N; i++)
        host[i] = float(i);
    OK(cudaStreamCreate(&stream));
    OK(cudaMalloc(&from, sizeof host));
    OK(cudaMalloc(&to, sizeof host));
    OK(cudaMemcpyAsync(from, host, sizeof host, cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpyToSymbol(factors, values, sizeof values));
    OK(cudaMemcpyToSymbol(visible, &two, sizeof two));
    OK(cudaMemcpyToSymbol(of_this_file, &own, sizeof own));
    OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, scale));
    CHECK(block > 0 && grid > 0);
    scale<<<2, N / 2, 0, stream>>>(from, to, N);
    OK(cudaGetLastError());
    OK(cudaMemcpyAsync(back, to, sizeof back, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < N; i++)
        CHECK(back[i] == host[i] * 10 + 3 + 7);
    sum<float><<<1, N, sizeof host>>>(from, to);
    OK(cudaMemcpy(back, to, sizeof *back, cudaMemcpyDeviceToHost));
    CHECK(back[0] == N * (N - 1) / 2);
    OK(cudaMalloc(&numbers, N * sizeof *numbers));
    OK(cudaMemset(numbers, 0, N * sizeof *numbers));
    sum<<<1, N, N * sizeof *numbers>>>(numbers, numbers);
    OK(cudaMemcpy(&total, numbers, sizeof total, cudaMemcpyDefault));
    CHECK(total == 0);
    sum<<<1, 4096>>>(numbers, numbers);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    OK(cudaDeviceReset());
    puts("PASS");
    return 0;
}
