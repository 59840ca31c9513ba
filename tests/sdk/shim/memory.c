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
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&down)); /* which has no array */
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

/* A box of WIDTH by ROWS by SLICES bytes within larger ones, to the device, on it, and back. */
static void volumes(void)
{
    enum { PITCH = 20, HEIGHT = 7, SLICES = 3, BYTES = PITCH * HEIGHT * SLICES };
    CUdeviceptr   a, b;
    unsigned char host[BYTES], back[BYTES] = {0};
    CUDA_MEMCPY3D c = {.srcMemoryType = MEMORY_HOST,
                       .srcHost = host,
                       .srcPitch = PITCH,
                       .srcHeight = HEIGHT,
                       .dstMemoryType = MEMORY_DEVICE,
                       .dstPitch = PITCH,
                       .dstHeight = HEIGHT,
                       .WidthInBytes = WIDTH,
                       .Height = ROWS,
                       .Depth = SLICES - 1};

    for (int i = 0; i < BYTES; i++)
        host[i] = (unsigned char)i;
    OK(cuMemAlloc_v2(&a, BYTES));
    OK(cuMemAlloc_v2(&b, BYTES));
    OK(cuMemsetD8_v2(a, 0xee, BYTES));
    OK(cuMemsetD8_v2(b, 0xee, BYTES));
    c.dstDevice = a;
    c.srcXInBytes = c.dstXInBytes = 2;
    c.srcY = c.dstY = c.srcZ = c.dstZ = 1;
    OK(cuMemcpy3DAsync_v2(&c, NULL));
    c.srcMemoryType = MEMORY_DEVICE;
    c.srcDevice = a;
    c.dstDevice = b;
    OK(cuMemcpy3D_v2(&c));
    c.srcMemoryType = c.dstMemoryType = MEMORY_UNIFIED;
    c.srcDevice = b;
    c.dstDevice = (CUdeviceptr)(uintptr_t)back;
    c.srcXInBytes = c.dstXInBytes = 0;
    c.srcY = c.dstY = c.srcZ = c.dstZ = 0;
    c.WidthInBytes = PITCH;
    c.Height = HEIGHT;
    c.Depth = SLICES;
    OK(cuMemcpy3D_v2(&c));
    for (int z = 0; z < SLICES; z++)
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < PITCH; x++) {
                int  i = (z * HEIGHT + y) * PITCH + x;
                bool inside = x >= 2 && x < 2 + WIDTH && y >= 1 && y < 1 + ROWS && z >= 1;

                CHECK(back[i] == (inside ? host[i] : 0xee));
            }
    c.srcZ = 1; /* one slice too many */
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&c));
    c.srcZ = SIZE_MAX;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&c));
    c.srcZ = 0;
    c.srcHeight = HEIGHT - 1;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&c));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(NULL));
    c.Depth = 0;
    OK(cuMemcpy3D_v2(&c));
    c.Depth = 1;
    c.srcMemoryType = MEMORY_ARRAY;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&c)); /* which has no array */
    OK(cuMemFree_v2(a));
    OK(cuMemFree_v2(b));
}

static cuuint64_t attribute_of(CUmemoryPool pool, int attribute)
{
    cuuint64_t value = 77;

    OK(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

enum { POOL_REUSE = 1, POOL_THRESHOLD = 4, POOL_RESERVED = 5, POOL_USED = 7, POOL_USED_HIGH = 8 };

/* Memory comes again in the order of the calls, and goes back when the program waits. */
static void pools(void)
{
    CUmemoryPool    pool, own, current;
    CUmemPoolProps  props = {.allocType = 1, .location = {1, 0}};
    CUmemLocation   here = {1, 0};
    CUmemAccessDesc access = {{1, 0}, 3};
    CUdeviceptr     a, b, again;
    cuuint64_t      threshold = 1 << 20;
    unsigned char   back[4] = {0};
    int             value = 0;

    OK(cuDeviceGetAttribute(&value, 115, 0));
    CHECK(value == 1);
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuDeviceGetMemPool(&current, 0));
    CHECK(pool == current);
    OK(cuMemGetMemPool(&current, &here, 1));
    CHECK(pool == current);
    OK(cuMemAllocAsync(&a, N, NULL));
    CHECK(attribute_of(pool, POOL_USED) >= N && attribute_of(pool, POOL_RESERVED) >= N);
    OK(cuMemsetD8Async(a, 5, N, NULL));
    OK(cuMemFreeAsync(a, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(a, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(a, 1, 1));
    CHECK(attribute_of(pool, POOL_USED) == 0 && attribute_of(pool, POOL_USED_HIGH) >= N);
    OK(cuMemAllocAsync(&again, N - 1, NULL));
    CHECK(again == a);
    OK(cuMemcpyDtoH_v2(back, again, sizeof back));
    CHECK(back[0] == 5);
    OK(cuMemFreeAsync(again, NULL));
    CHECK(attribute_of(pool, POOL_RESERVED) >= N);
    OK(cuCtxSynchronize());
    CHECK(attribute_of(pool, POOL_RESERVED) == 0);

    OK(cuMemPoolCreate(&own, &props));
    OK(cuMemPoolSetAttribute(own, POOL_THRESHOLD, &threshold));
    OK(cuMemPoolGetAttribute(own, POOL_REUSE, &value));
    CHECK(value == 1 && attribute_of(own, POOL_THRESHOLD) == threshold);
    OK(cuMemAllocFromPoolAsync(&a, N, own, NULL));
    OK(cuMemAllocFromPoolAsync(&b, N, own, NULL));
    CHECK(a != b);
    OK(cuMemFreeAsync(a, NULL));
    OK(cuCtxSynchronize());
    CHECK(attribute_of(own, POOL_RESERVED) >= 2 * N);
    OK(cuMemPoolTrimTo(own, 0));
    CHECK(attribute_of(own, POOL_RESERVED) >= N && attribute_of(own, POOL_RESERVED) < 2 * N);
    OK(cuMemFree_v2(b));
    CHECK(attribute_of(own, POOL_RESERVED) == 0);
    OK(cuMemPoolSetAccess(own, &access, 1));
    OK(cuMemPoolGetAccess(&value, own, &here));
    CHECK(value == 3);
    OK(cuDeviceSetMemPool(0, own));
    OK(cuMemAllocAsync(&a, 1, NULL));
    CHECK(attribute_of(own, POOL_USED) > 0);
    OK(cuMemPoolDestroy(own));
    OK(cuDeviceGetMemPool(&current, 0));
    CHECK(current == pool);
    OK(cuMemFreeAsync(a, NULL)); /* of no pool any more */
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(own));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
    OK(cuMemAllocAsync(&a, 0, NULL));
    OK(cuMemFreeAsync(a, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&a, N, own, NULL));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&a, SIZE_MAX / 2, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAttribute(pool, 99, &value));
    props.handleTypes = 1;
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolCreate(&own, &props));
    OK(cuMemAlloc_v2(&a, N));
    OK(cuMemFreeAsync(a, NULL));
}

int main(void)
{
    CUcontext c = context_of_first_device();

    copy_and_fill();
    large();
    rows();
    volumes();
    pools();
    pointers(c);
    host_memory();
    apart();
    OK(cuCtxDestroy_v2(c));
    puts("PASS");
    return 0;
}
