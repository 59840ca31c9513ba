/* Arrays, textures and surfaces by the runtime's interface. */
#include "runtime_api.h"
#include "texels.h"

enum { W = 8, H = 4, D = 3, CELLS = W * H * D, PITCH = W + 3, ROW_BYTES = W * (int)sizeof(float) };

static cudaLibrary_t library;
static float        *out, cells[CELLS];

static const float *run(const char *name, uint64_t object, int n, int w, int h)
{
    static float back[CELLS];
    float        scale = 1;
    void        *args[] = {&object, &out, &w, &h, &scale, &scale};
    cudaKernel_t kernel;

    OK(cudaLibraryGetKernel(&kernel, library, name));
    OK(cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){(unsigned)n, 1, 1}, args, 0, NULL));
    OK(cudaMemcpy(back, out, sizeof back, COPY_TO_HOST));
    return back;
}

static cudaArray_t array(size_t width, size_t height, unsigned flags)
{
    cudaChannelFormatDesc d = {32, 0, 0, 0, KIND_FLOAT};
    cudaArray_t           a = NULL;

    OK(cudaMallocArray(&a, &d, width, height, flags));
    return a;
}

static cudaTextureObject_t texture(cudaArray_t a)
{
    cudaResourceDesc    r = {.resType = RESOURCE_ARRAY, .res.array = a};
    cudaTextureDesc     t = {.addressMode = {1, 1, 1}};
    cudaTextureObject_t made = 0;

    OK(cudaCreateTextureObject(&made, &r, &t, NULL));
    return made;
}

static void rows(void)
{
    cudaArray_t           a = array(W, H, 0), b = array(W, H, 0);
    cudaTextureObject_t   t = texture(a), of_b = texture(b);
    cudaChannelFormatDesc d;
    cudaExtent            e;
    unsigned              flags = 9;
    float                 wide[H * PITCH], back[CELLS];

    OK(cudaArrayGetInfo(&d, &e, &flags, a));
    CHECK(d.x == 32 && d.y == 0 && d.f == KIND_FLOAT && e.width == W && e.height == H && e.depth == 0 && flags == 0);
    OK(cudaGetChannelDesc(&d, a));
    CHECK(d.x == 32 && d.f == KIND_FLOAT);
    for (int i = 0; i < H * PITCH; i++)
        wide[i] = i % PITCH < W ? cells[i / PITCH * W + i % PITCH] : -1;
    OK(cudaMemcpy2DToArray(a, 0, 0, wide, sizeof(float) * PITCH, ROW_BYTES, H, COPY_TO_DEVICE));
    CHECK(memcmp(run("plane", t, W * H, W, H), cells, sizeof(float) * W * H) == 0);
    OK(cudaMemcpy2DFromArray(back, ROW_BYTES, a, 8, 1, 12, 2, COPY_TO_HOST));
    CHECK(memcmp(back, cells + W + 2, 12) == 0 && memcmp(back + W, cells + 2 * W + 2, 12) == 0);
    OK(cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, ROW_BYTES, H, COPY_ON_DEVICE));
    CHECK(memcmp(run("plane", of_b, W * H, W, H), cells, sizeof(float) * W * H) == 0);
    OK(cudaMemcpyToArray(b, 12, 1, cells + 40, 18 * sizeof(float), COPY_TO_DEVICE)); /* ends two rows further */
    OK(cudaMemcpyFromArray(back, b, 8, 1, 20 * sizeof(float), COPY_TO_HOST));
    CHECK(memcmp(back + 1, cells + 40, 18 * sizeof(float)) == 0);
    CHECK(memcmp(back, cells + W + 2, 4) == 0 && memcmp(back + 19, cells + W + 21, 4) == 0);
    OK(cudaMemcpyArrayToArray(a, 4, 0, b, 0, 1, 10 * sizeof(float), COPY_ON_DEVICE));
    OK(cudaMemcpyFromArray(out, a, 0, 0, sizeof(float) * W * H, COPY_ON_DEVICE));
    OK(cudaMemcpy(back, out, sizeof(float) * W * H, COPY_TO_HOST));
    CHECK(memcmp(back, cells, 4) == 0 && memcmp(back + 1, cells + W, 12) == 0 && memcmp(back + 4, cells + 40, 28) == 0);
    EXPECT(cudaErrorInvalidMemcpyDirection, cudaMemcpy2DToArray(a, 0, 0, wide, 64, 8, 1, COPY_TO_HOST));
    EXPECT(cudaErrorInvalidMemcpyDirection, cudaMemcpy2DFromArray(wide, 64, a, 0, 0, 8, 1, 9));
    EXPECT(cudaErrorInvalidValue, cudaMemcpy2DToArray(a, 0, 0, wide, 4, 8, 1, COPY_TO_DEVICE));
    EXPECT(cudaErrorInvalidValue, cudaMemcpy2DToArray(a, 0, 1, wide, ROW_BYTES, ROW_BYTES, H, COPY_TO_DEVICE));
    EXPECT(cudaErrorInvalidValue, cudaMemcpyToArray(a, 4, 0, cells, sizeof(float) * W * H, COPY_TO_DEVICE));
    EXPECT(cudaErrorInvalidValue, cudaMemcpyToArray(a, ROW_BYTES, 0, cells, 4, COPY_TO_DEVICE));
    OK(cudaDestroyTextureObject(t));
    OK(cudaDestroyTextureObject(of_b));
    OK(cudaFreeArray(a));
    OK(cudaFreeArray(b));
    OK(cudaFreeArray(NULL));
    EXPECT(cudaErrorInvalidValue, cudaFreeArray(a));
    EXPECT(cudaErrorInvalidResourceHandle, cudaArrayGetInfo(&d, &e, &flags, a));
}

/* Extents and positions count texels of arrays, and bytes of memory. */
static void volumes(void)
{
    cudaChannelFormatDesc d = {32, 0, 0, 0, KIND_FLOAT};
    cudaArray_t           a = NULL;
    cudaMemcpy3DParms     p = {.srcPtr = {cells, ROW_BYTES, W, H}, .extent = {W, H, D}, .kind = COPY_TO_DEVICE};
    cudaTextureObject_t   t;
    float                 back[CELLS] = {0};

    OK(cudaMalloc3DArray(&a, &d, (cudaExtent){W, H, D}, 0));
    p.dstArray = a;
    OK(cudaMemcpy3D(&p));
    t = texture(a);
    CHECK(memcmp(run("volume", t, CELLS, W, H), cells, sizeof cells) == 0);
    p = (cudaMemcpy3DParms){.srcArray = a,
                            .srcPos = {2, 1, 1},
                            .dstPtr = {back, ROW_BYTES, W, H},
                            .dstPos = {4, 0, 0}, /* bytes */
                            .extent = {3, 2, 2},
                            .kind = COPY_TO_HOST};
    OK(cudaMemcpy3DAsync(&p, NULL));
    OK(cudaDeviceSynchronize());
    CHECK(memcmp(back + 1, cells + (H + 1) * W + 2, 12) == 0 && memcmp(back + H * W + W + 1, cells + (2 * H + 2) * W + 2, 12) == 0);
    p.srcPtr.ptr = cells;
    EXPECT(cudaErrorInvalidValue, cudaMemcpy3D(&p)); /* two sources */
    p.srcPtr.ptr = NULL;
    p.kind = COPY_TO_DEVICE;
    EXPECT(cudaErrorInvalidMemcpyDirection, cudaMemcpy3D(&p));
    p.kind = COPY_TO_HOST;
    p.extent.width = SIZE_MAX / 2;
    EXPECT(cudaErrorInvalidValue, cudaMemcpy3D(&p));
    OK(cudaDestroyTextureObject(t));
    OK(cudaFreeArray(a));
}

static void surfaces(void)
{
    cudaArray_t         a = array(W, H, ARRAY_SURFACE);
    cudaResourceDesc    r = {.resType = RESOURCE_ARRAY, .res.array = a}, same;
    cudaSurfaceObject_t s = 0;
    cudaTextureObject_t t = texture(a);
    const float        *seen;

    OK(cudaCreateSurfaceObject(&s, &r));
    run("put", s, W * H, W, H);
    seen = run("plane", t, W * H, W, H);
    for (int i = 0; i < W * H; i++)
        CHECK(seen[i] >= (float)i && seen[i] <= (float)i);
    OK(cudaGetSurfaceObjectResourceDesc(&same, s));
    CHECK(same.resType == RESOURCE_ARRAY && same.res.array == a);
    OK(cudaDestroySurfaceObject(s));
    OK(cudaDestroySurfaceObject(s));
    OK(cudaDestroyTextureObject(t));
    OK(cudaFreeArray(a));
}

static void linear(void)
{
    int                 numbers[W], *memory;
    cudaResourceDesc    r = {.resType = RESOURCE_LINEAR}, same;
    cudaTextureDesc     t = {.readMode = 1, .normalizedCoords = 1, .disableTrilinearOptimization = 1}, how;
    cudaTextureObject_t o;

    for (int i = 0; i < W; i++)
        numbers[i] = 77 + i;
    OK(cudaMalloc((void **)(void *)&memory, sizeof numbers));
    OK(cudaMemcpy(memory, numbers, sizeof numbers, COPY_TO_DEVICE));
    r.res.linear = (struct linear_texels){memory, {32, 0, 0, 0, KIND_SIGNED}, sizeof numbers};
    OK(cudaCreateTextureObject(&o, &r, &t, NULL));
    CHECK(memcmp(run("fetch", o, W, W, 1), numbers, sizeof numbers) == 0);
    OK(cudaGetTextureObjectResourceDesc(&same, o));
    CHECK(same.resType == RESOURCE_LINEAR && same.res.linear.devPtr == memory && same.res.linear.sizeInBytes == sizeof numbers);
    CHECK(same.res.linear.desc.x == 32 && same.res.linear.desc.f == KIND_SIGNED);
    OK(cudaGetTextureObjectTextureDesc(&how, o));
    CHECK(how.readMode == 1 && how.normalizedCoords == 1 && how.disableTrilinearOptimization == 1 && how.sRGB == 0);
    OK(cudaDestroyTextureObject(o));
    t.sRGB = 1;
    EXPECT(cudaErrorNotSupported, cudaCreateTextureObject(&o, &r, &t, NULL)); /* only of bytes */
    r.res.linear.desc = (cudaChannelFormatDesc){8, 8, 8, 8, KIND_UNSIGNED};
    OK(cudaCreateTextureObject(&o, &r, &t, NULL));
    OK(cudaGetTextureObjectTextureDesc(&how, o));
    CHECK(how.readMode == 1 && how.sRGB == 1);
    OK(cudaDestroyTextureObject(o));
    OK(cudaFree(memory));
    EXPECT(cudaErrorInvalidValue, cudaCreateTextureObject(&o, &r, &t, NULL)); /* it was freed */
}

static void wrong(void)
{
    cudaChannelFormatDesc three = {8, 8, 8, 0, KIND_UNSIGNED}, mixed = {8, 16, 0, 0, KIND_UNSIGNED}, none = {8, 0, 0, 0, KIND_FLOAT + 1};
    cudaChannelFormatDesc gap = {8, 0, 8, 0, KIND_UNSIGNED}, packed = {8, 8, 8, 8, 17}, right = {8, 8, 8, 8, KIND_UNSIGNED};
    cudaArray_t           a = NULL;
    cudaResourceDesc      r = {.resType = RESOURCE_ARRAY}, mipmapped = {.resType = RESOURCE_MIPMAPPED_ARRAY}, odd = {.resType = 9};
    cudaTextureDesc       t = {.readMode = 0};
    cudaTextureObject_t   o = 0;

    EXPECT(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&a, &three, W, H, 0));
    EXPECT(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&a, &mixed, W, H, 0));
    EXPECT(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&a, &none, W, H, 0));
    EXPECT(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&a, &gap, W, H, 0));
    EXPECT(cudaErrorNotSupported, cudaMallocArray(&a, &packed, W, H, 0));
    EXPECT(cudaErrorInvalidValue, cudaMallocArray(&a, &right, 0, H, 0));
    EXPECT(cudaErrorInvalidValue, cudaMallocArray(NULL, &right, W, H, 0));
    EXPECT(cudaErrorInvalidValue, cudaMallocArray(&a, NULL, W, H, 0));
    EXPECT(cudaErrorInvalidValue, cudaCreateTextureObject(&o, &r, &t, NULL));
    EXPECT(cudaErrorNotSupported, cudaCreateTextureObject(&o, &mipmapped, &t, NULL));
    EXPECT(cudaErrorInvalidValue, cudaCreateTextureObject(&o, &odd, &t, NULL));
    EXPECT(cudaErrorInvalidValue, cudaCreateTextureObject(NULL, &r, &t, NULL));
    OK(cudaDestroyTextureObject(12345)); /* as NVIDIA's library, for one that is gone */
    EXPECT(cudaErrorInvalidValue, cudaGetTextureObjectTextureDesc(&t, 12345));
    CHECK(cudaGetLastError() == cudaErrorInvalidValue && a == NULL && o == 0);
}

int main(void)
{
    OK(cudaLibraryLoadData(&library, texels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cudaMalloc((void **)(void *)&out, sizeof cells));
    for (int i = 0; i < CELLS; i++)
        cells[i] = 0.25f * (float)(i + 1);
    rows();
    volumes();
    surfaces();
    linear();
    wrong();
    puts("PASS");
    return 0;
}
