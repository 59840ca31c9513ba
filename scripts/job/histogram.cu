// How often each byte value occurs. Each block counts in shared memory, then adds its counts to the result.
extern "C" __global__ void histogram(const unsigned char *in, unsigned *counts, unsigned long long n)
{
    __shared__ unsigned block_counts[256];
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
        block_counts[i] = 0;
    __syncthreads();
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < n; i += (unsigned long long)gridDim.x * blockDim.x)
        atomicAdd(&block_counts[in[i]], 1u);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
        atomicAdd(&counts[i], block_counts[i]);
}
