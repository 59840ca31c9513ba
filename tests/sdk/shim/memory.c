/* Memory: copies of every direction, rows, fills, pointers, what is refused, and that bytes are taken when a copy is called. */
#include "driver.h"

enum { N = 1000, ROWS = 5, WIDTH = 12 };

static void copy_and_fill(void)
{
    CUdeviceptr   a, b;
    unsigned char host[N], back[N];

    OK(cuMemAlloc_v2(&a, N));
    OK(cuMemAlloc_v2(&b, N));
    CHECK(a != b && a % 256 == 0);
    for (int i = 0; i < N; i++)
        host[i] = (unsigned char)(7 * i);
    OK(cuMemcpyHtoDAsync_v2(a, host, N, NULL));
    memset(host, 1, sizeof host); /* the copy has its bytes */
    OK(cuMemcpyDtoD_v2(b + 10, a, N - 10));
    OK(cuMemcpyDtoH_v2(back, b, N));
    for (int i = 10; i < N; i++)
        CHECK(back[i] == (unsigned char)(7 * (i - 10)));
    OK(cuMemsetD8_v2(a, 0xab, N));
    OK(cuMemsetD16_v2(a + 100, 0x1234, 3));
    OK(cuMemsetD32_v2(a + 200, 0x12345678, 2));
    OK(cuMemsetD32Async(a + 208, 0, 1, NULL));
    OK(cuMemcpyDtoHAsync_v2(back, a, N, NULL));
    OK(cuStreamSynchronize(NULL));
    CHECK(back[0] == 0xab && back[100] == 0x34 && back[101] == 0x12 && back[105] == 0x12 && back[106] == 0xab && back[200] == 0x78);
    CHECK(back[207] == 0x12 && back[208] == 0 && back[212] == 0xab);
    OK(cuMemcpy((CUdeviceptr)(uintptr_t)host, a + 100, 2)); /* the addresses tell the direction */
    OK(cuMemcpy(b, (CUdeviceptr)(uintptr_t)host, 2));
    OK(cuMemcpyAsync(b + 2, b, 2, NULL));
    OK(cuMemcpy((CUdeviceptr)(uintptr_t)back, b, 4));
    CHECK(memcmp(back, "\x34\x12\x34\x12", 4) == 0);
    OK(cuMemFree_v2(a));
    OK(cuMemFree_v2(b));
}

/* Longer than what is queued, and than what one frame brings back. */
static void large(void)
{
    size_t      bytes = (size_t)5 << 20;
    char       *host = malloc(bytes), *back = malloc(bytes);
    CUdeviceptr a;

    CHECK(host && back);
    for (size_t i = 0; i < bytes; i++)
        host[i] = (char)(i * 31 >> 3);
    OK(cuMemAlloc_v2(&a, bytes));
    OK(cuMemsetD8_v2(a, 1, bytes));
    OK(cuMemcpyHtoD_v2(a, host, bytes));
    OK(cuMemcpyDtoH_v2(back, a, bytes));
    CHECK(memcmp(host, back, bytes) == 0);
    OK(cuMemFree_v2(a));
    free(host);
    free(back);
}

static void rows(void)
{
    unsigned char host[ROWS][WIDTH], back[ROWS][2 * WIDTH] = {{0}};
    CUdeviceptr   a;
    size_t        pitch;
    CUDA_MEMCPY2D up = {.srcMemoryType = MEMORY_HOST,
                        .srcHost = host,
                        .srcPitch = WIDTH,
                        .dstMemoryType = MEMORY_DEVICE,
                        .WidthInBytes = WIDTH,
                        .Height = ROWS};
    CUDA_MEMCPY2D down = {.srcMemoryType = MEMORY_DEVICE,
                          .dstMemoryType = MEMORY_HOST,
                          .dstHost = back,
                          .dstPitch = sizeof back[0],
                          .dstXInBytes = 3,
                          .WidthInBytes = 4,
                          .Height = 2};

    memset(host, 0, sizeof host);
    for (int i = 0; i < ROWS * WIDTH; i++)
        host[i / WIDTH][i % WIDTH] = (unsigned char)i;
    OK(cuMemAllocPitch_v2(&a, &pitch, WIDTH, ROWS, 4));
    CHECK(pitch >= WIDTH && pitch % 512 == 0);
    up.dstDevice = down.srcDevice = a;
    up.dstPitch = down.srcPitch = pitch;
    OK(cuMemsetD2D8_v2(a, pitch, 9, WIDTH, ROWS));
    OK(cuMemcpy2D_v2(&up));
    down.srcXInBytes = 2;
    down.srcY = 1;
    OK(cuMemcpy2DAsync_v2(&down, NULL));
    OK(cuCtxSynchronize());
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 4; x++)
            CHECK(back[y][3 + x] == host[1 + y][2 + x]);
    CHECK(back[0][2] == 0 && back[0][7] == 0 && back[2][3] == 0);
    down.srcMemoryType = MEMORY_ARRAY;
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuMemcpy2D_v2(&down));
    OK(cuMemFree_v2(a));
}

static void pointers(CUcontext context)
{
    CUdeviceptr a, base;
    CUcontext   of = NULL;
    size_t      bytes;
    int         type = 0, managed = 7, wanted[] = {2, 9, 8}, host = 0;
    void       *to[] = {&type, &host, &managed};

    OK(cuMemAlloc_v2(&a, N));
    OK(cuMemGetAddressRange_v2(&base, &bytes, a + 5));
    CHECK(base == a && bytes == N);
    OK(cuPointerGetAttribute(&type, 2, a + N - 1));
    CHECK(type == MEMORY_DEVICE);
    OK(cuPointerGetAttribute(&of, 1, a));
    CHECK(of == context);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, 2, (CUdeviceptr)(uintptr_t)&type));
    OK(cuPointerGetAttributes(3, wanted, to, (CUdeviceptr)(uintptr_t)&type)); /* of the host: all 0, and no error */
    CHECK(type == 0 && managed == 0);
    OK(cuPointerGetAttributes(3, wanted, to, a));
    CHECK(type == MEMORY_DEVICE && managed == 0 && host == 0);
    OK(cuMemFree_v2(a));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&base, &bytes, a));
}

static void host_memory(void)
{
    void    *p, *own = malloc(100);
    unsigned flags = 9;

    OK(cuMemHostAlloc(&p, 1 << 20, 1));
    memset(p, 1, 1 << 20);
    OK(cuMemHostGetFlags(&flags, p));
    CHECK(flags == 1);
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuMemHostAlloc(&p, 100, 2)); /* no device here maps it */
    OK(cuMemFreeHost(p));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(p));
    OK(cuMemHostRegister_v2(own, 100, 0));
    EXPECT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(own, 100, 0));
    OK(cuMemHostUnregister(own));
    EXPECT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own));
    free(own);
}

/* A pointer is of the device or of the host: this process gets no memory where the device has some. */
static void apart(void)
{
    CUdeviceptr a[200];
    size_t      free_bytes = 0, total = 0;

    for (int i = 0; i < 200; i++) {
        void *host = malloc(100000 + (size_t)i);

        OK(cuMemAlloc_v2(&a[i], 4096));
        CHECK(host && ((uint64_t)(uintptr_t)host + 100000 <= a[i] || (uint64_t)(uintptr_t)host >= a[i] + 4096));
        free(host);
    }
    for (int i = 0; i < 200; i++)
        OK(cuMemFree_v2(a[i]));
    OK(cuMemGetInfo_v2(&free_bytes, &total));
    CHECK(total > 0 && free_bytes <= total); /* nothing may be free on a loaded machine */
}

int main(void)
{
    CUcontext c = context_of_first_device();

    copy_and_fill();
    large();
    rows();
    pointers(c);
    host_memory();
    apart();
    OK(cuCtxDestroy_v2(c));
    puts("PASS");
    return 0;
}
