/* Arrays, textures and surfaces: copies of every direction, what kernels read and write by them, in which order things may end, and what is
 * refused. */
#include "driver.h"
#include "texels.h"

enum { W = 8, H = 4, D = 3, CELLS = W * H * D };

static CUmodule    module;
static CUdeviceptr out;

static CUarray array_3d(size_t width, size_t height, size_t depth, CUarray_format format, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {width, height, depth, format, 1, flags};
    CUarray                 a = NULL;

    OK(cuArray3DCreate_v2(&a, &d));
    return a;
}

static CUDA_RESOURCE_DESC of_array(CUarray a)
{
    return (CUDA_RESOURCE_DESC){.resType = RESOURCE_ARRAY, .res.array = a};
}

static CUtexObject texture(const CUDA_RESOURCE_DESC *r, CUfilter_mode filter, CUaddress_mode address, unsigned flags)
{
    CUDA_TEXTURE_DESC t = {.addressMode = {address, address, address}, .filterMode = filter, .flags = flags};
    CUtexObject       made = 0;

    OK(cuTexObjectCreate(&made, r, &t, NULL));
    CHECK(made != 0);
    return made;
}

static void run(const char *name, uint64_t object, int n, int w, int h, float sx, float sy)
{
    void *args[] = {&object, &out, &w, &h, &sx, &sy};

    OK(cuLaunchKernel(kernel(module, name), 1, 1, 1, (unsigned)n, 1, 1, 0, NULL, args, NULL));
}

/* As a number of texels in a row, scaled. */
static const float *sampled(const char *name, uint64_t object, int n, int w, int h, float sx, float sy)
{
    static float back[CELLS];

    OK(cuMemsetD32_v2(out, 0xffffffff, CELLS));
    run(name, object, n, w, h, sx, sy);
    OK(cuMemcpyDtoH_v2(back, out, sizeof back));
    return back;
}

static float cells[CELLS];

static CUDA_MEMCPY3D volume(size_t width, size_t height, size_t depth)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = MEMORY_HOST,
                           .srcHost = cells,
                           .dstMemoryType = MEMORY_HOST,
                           .WidthInBytes = width * sizeof(float),
                           .Height = height,
                           .Depth = depth};
}

static void lines(void)
{
    CUarray                 a, b;
    CUDA_ARRAY_DESCRIPTOR   d = {W, 0, FORMAT_F32, 1}, got;
    CUDA_ARRAY3D_DESCRIPTOR got3;
    CUDA_RESOURCE_DESC      r, same;
    CUtexObject             t;
    float                   back[W] = {0};
    const float            *seen;

    OK(cuArrayCreate_v2(&a, &d));
    OK(cuArrayCreate_v2(&b, &d));
    CHECK(a != b);
    OK(cuArrayGetDescriptor_v2(&got, a));
    CHECK(got.Width == W && got.Height == 0 && got.Format == FORMAT_F32 && got.NumChannels == 1);
    OK(cuArray3DGetDescriptor_v2(&got3, a));
    CHECK(got3.Width == W && got3.Height == 0 && got3.Depth == 0 && got3.Flags == 0);
    OK(cuMemcpyHtoA_v2(a, 0, cells, sizeof back));
    OK(cuMemcpyAtoH_v2(back, a, 2 * sizeof(float), 4 * sizeof(float)));
    CHECK(memcmp(back, cells + 2, 4 * sizeof(float)) == 0);
    OK(cuMemcpyAtoA_v2(b, 4 * sizeof(float), a, 0, 4 * sizeof(float)));
    OK(cuMemcpyHtoAAsync_v2(b, 0, cells + 20, 4 * sizeof(float), NULL));
    OK(cuMemcpyAtoD_v2(out, b, 0, sizeof back));
    OK(cuMemcpyDtoA_v2(a, 0, out, sizeof back));
    OK(cuMemcpyAtoHAsync_v2(back, a, 0, sizeof back, NULL));
    OK(cuCtxSynchronize());
    CHECK(memcmp(back, cells + 20, 16) == 0 && memcmp(back + 4, cells, 16) == 0);
    r = of_array(a);
    t = texture(&r, FILTER_POINT, ADDRESS_CLAMP, 0);
    seen = sampled("line", t, W, W, 1, 1, 1);
    CHECK(memcmp(seen, back, sizeof back) == 0);
    OK(cuTexObjectGetResourceDesc(&same, t));
    CHECK(same.resType == RESOURCE_ARRAY && same.res.array == a);
    OK(cuTexObjectDestroy(t));
    OK(cuTexObjectDestroy(t)); /* it is gone already */
    OK(cuArrayDestroy(a));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(a));
    OK(cuArrayDestroy(b));
}

/* Rows with gaps in the host's memory, to the array and on it. */
static void planes(void)
{
    enum { PITCH = W + 3 };
    CUarray            a = array_3d(W, H, 0, FORMAT_F32, 0), b = array_3d(W, H, 0, FORMAT_F32, 0);
    CUDA_RESOURCE_DESC r = of_array(a);
    CUtexObject        near, mean, wrapped;
    float              wide[H * PITCH], back[W * H] = {0};
    const float       *seen;
    CUDA_MEMCPY2D      c = {.srcMemoryType = MEMORY_HOST,
                            .srcHost = wide,
                            .srcPitch = sizeof(float) * PITCH,
                            .dstMemoryType = MEMORY_ARRAY,
                            .dstArray = a,
                            .WidthInBytes = sizeof(float) * W,
                            .Height = H};

    for (int i = 0; i < H * PITCH; i++)
        wide[i] = i % PITCH < W ? cells[i / PITCH * W + i % PITCH] : -1;
    OK(cuMemcpy2D_v2(&c));
    near = texture(&r, FILTER_POINT, ADDRESS_CLAMP, 0);
    mean = texture(&r, FILTER_LINEAR, ADDRESS_CLAMP, 0);
    wrapped = texture(&r, FILTER_POINT, ADDRESS_WRAP, SAMPLING_NORMALIZED);
    CHECK(near != mean && mean != wrapped && near != wrapped);
    seen = sampled("plane", near, W * H, W, H, 1, 1);
    CHECK(memcmp(seen, cells, sizeof back) == 0);
    seen = sampled("plane", near, W * H, W, H, 2, 1); /* outside: the last one */
    CHECK(memcmp(&seen[2], &cells[5], 4) == 0 && memcmp(&seen[W - 1], &cells[W - 1], 4) == 0);
    seen = sampled("plane", mean, 1, W, H, 2, 1); /* between the first two */
    CHECK(seen[0] > cells[0] && seen[0] < cells[1]);
    seen = sampled("plane", wrapped, W * H, W, H, 1.0f / W, 3.0f / H); /* rows 1.5, 4.5 of 4, … */
    CHECK(memcmp(seen, cells + W, W * sizeof(float)) == 0 && memcmp(seen + W, cells, W * sizeof(float)) == 0);
    c.srcMemoryType = MEMORY_ARRAY; /* a part of it, elsewhere in the other */
    c.srcArray = a;
    c.srcXInBytes = 8;
    c.srcY = 1;
    c.dstArray = b;
    c.dstXInBytes = 4;
    c.dstY = 2;
    c.WidthInBytes = 12;
    c.Height = 2;
    OK(cuMemcpy2DAsync_v2(&c, NULL));
    c = (CUDA_MEMCPY2D){.srcMemoryType = MEMORY_ARRAY,
                        .srcArray = b,
                        .dstMemoryType = MEMORY_HOST,
                        .dstHost = back,
                        .dstPitch = sizeof(float) * W,
                        .WidthInBytes = sizeof(float) * W,
                        .Height = H};
    OK(cuMemcpy2D_v2(&c));
    for (int y = 2; y < 4; y++)
        CHECK(memcmp(&back[y * W + 1], &cells[(y - 1) * W + 2], 12) == 0);
    OK(cuTexObjectDestroy(mean));
    OK(cuArrayDestroy(a)); /* the others read it */
    OK(cuTexObjectDestroy(near));
    OK(cuTexObjectDestroy(wrapped));
    OK(cuArrayDestroy(b));
}

static void volumes(void)
{
    CUarray            a = array_3d(W, H, D, FORMAT_F32, 0), l = array_3d(W, H, D, FORMAT_F32, ARRAY_LAYERED);
    CUDA_RESOURCE_DESC r = of_array(a), layered = of_array(l);
    CUDA_MEMCPY3D      c = volume(W, H, D);
    CUtexObject        t = texture(&r, FILTER_POINT, ADDRESS_BORDER, 0), s = texture(&layered, FILTER_POINT, ADDRESS_CLAMP, 0);
    float              back[W * H] = {0};

    c.dstMemoryType = MEMORY_ARRAY;
    c.dstArray = a;
    OK(cuMemcpy3D_v2(&c));
    CHECK(memcmp(sampled("volume", t, CELLS, W, H, 1, 1), cells, sizeof cells) == 0);
    CHECK(sampled("volume", t, CELLS, W, H, 2, 1)[W - 1] == 0); /* the border */
    c.srcMemoryType = MEMORY_ARRAY;
    c.srcArray = a;
    c.dstArray = l;
    OK(cuMemcpy3DAsync_v2(&c, NULL));
    CHECK(memcmp(sampled("layers", s, CELLS, W, H, 1, 1), cells, sizeof cells) == 0);
    c = volume(W, H, 1); /* the middle layer */
    c.srcMemoryType = MEMORY_ARRAY;
    c.srcArray = l;
    c.srcZ = 1;
    c.dstHost = back;
    OK(cuMemcpy3D_v2(&c));
    CHECK(memcmp(back, cells + W * H, sizeof back) == 0);
    c.srcZ = D;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&c));
    c.srcZ = 0;
    c.srcXInBytes = 2; /* half a texel */
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&c));
    c.srcXInBytes = 4; /* one too many */
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&c));
    c.srcXInBytes = SIZE_MAX - 3;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&c));
    OK(cuTexObjectDestroy(t));
    OK(cuTexObjectDestroy(s));
    OK(cuArrayDestroy(a));
    OK(cuArrayDestroy(l));
    a = array_3d(W, W, 6, FORMAT_F32, ARRAY_CUBE);
    r = of_array(a);
    OK(cuTexObjectDestroy(texture(&r, FILTER_LINEAR, ADDRESS_CLAMP, 0)));
    OK(cuArrayDestroy(a));
    OK(cuArrayDestroy(array_3d(W, W, 12, FORMAT_U8, ARRAY_CUBE | ARRAY_LAYERED)));
    OK(cuArrayDestroy(array_3d(W, 0, 5, FORMAT_F16, ARRAY_LAYERED)));
}

/* What a kernel writes by a surface, another reads by a texture. */
static void surfaces(void)
{
    CUarray            a = array_3d(W, H, 0, FORMAT_F32, ARRAY_SURFACE), plain = array_3d(W, H, 0, FORMAT_F32, 0);
    CUDA_RESOURCE_DESC r = of_array(a), same;
    CUsurfObject       s = 0, other = 0;
    CUtexObject        t = texture(&r, FILTER_POINT, ADDRESS_CLAMP, 0);
    const float       *seen;

    OK(cuSurfObjectCreate(&s, &r));
    OK(cuSurfObjectCreate(&other, &r));
    CHECK(s && other && s != other);
    OK(cuSurfObjectDestroy(other));
    run("put", s, W * H, W, H, 1, 1);
    seen = sampled("plane", t, W * H, W, H, 1, 1);
    for (int i = 0; i < W * H; i++)
        CHECK(seen[i] >= (float)i && seen[i] <= (float)i);
    OK(cuSurfObjectGetResourceDesc(&same, s));
    CHECK(same.res.array == a);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuSurfObjectGetResourceDesc(&same, other));
    OK(cuTexObjectDestroy(s)); /* it is a surface's, which stays */
    r = of_array(plain);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&other, &r));
    r = (CUDA_RESOURCE_DESC){.resType = RESOURCE_LINEAR, .res.linear = {out, FORMAT_F32, 1, 64}};
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&other, &r));
    OK(cuArrayDestroy(a));
    OK(cuSurfObjectDestroy(s));
    OK(cuTexObjectDestroy(t));
    OK(cuArrayDestroy(plain));
}

/* Memory of the program as a texture, which may be freed first. */
static void linear(void)
{
    CUdeviceptr        p;
    size_t             pitch = 0;
    int                numbers[W];
    CUDA_RESOURCE_DESC r = {.resType = RESOURCE_LINEAR}, same;
    CUDA_TEXTURE_DESC  how;
    CUtexObject        t, rows;
    const float       *seen;
    CUDA_MEMCPY2D      c = {.srcMemoryType = MEMORY_HOST,
                            .srcHost = cells,
                            .srcPitch = W * sizeof(float),
                            .dstMemoryType = MEMORY_DEVICE,
                            .WidthInBytes = W * sizeof(float),
                            .Height = H};

    for (int i = 0; i < W; i++)
        numbers[i] = 1000 - i;
    OK(cuMemAllocPitch_v2(&p, &pitch, W * sizeof(float), H, 4));
    OK(cuMemcpyHtoD_v2(p + pitch, numbers, sizeof numbers));
    r.res.linear = (struct linear_resource){p + pitch, FORMAT_S32, 1, sizeof numbers};
    t = texture(&r, FILTER_LINEAR, ADDRESS_WRAP, SAMPLING_NORMALIZED); /* by index: all that has no meaning */
    CHECK(memcmp(sampled("fetch", t, W, W, 1, 1, 1), numbers, sizeof numbers) == 0);
    OK(cuTexObjectGetResourceDesc(&same, t));
    CHECK(same.res.linear.devPtr == p + pitch && same.res.linear.sizeInBytes == sizeof numbers);
    OK(cuTexObjectGetTextureDesc(&how, t));
    CHECK(how.filterMode == FILTER_LINEAR && how.flags == SAMPLING_NORMALIZED && how.addressMode[0] == ADDRESS_WRAP);
    c.dstDevice = p;
    c.dstPitch = pitch;
    OK(cuMemcpy2D_v2(&c));
    r = (CUDA_RESOURCE_DESC){.resType = RESOURCE_PITCH2D, .res.pitch2D = {p, FORMAT_F32, 1, W, H, pitch}};
    rows = texture(&r, FILTER_POINT, ADDRESS_CLAMP, 0);
    seen = sampled("plane", rows, W * H, W, H, 1, 1);
    CHECK(memcmp(seen, cells, W * H * sizeof(float)) == 0);
    r.res.pitch2D.pitchInBytes = W * sizeof(float) - 4;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&t, &r, &how, NULL));
    r.res.pitch2D.pitchInBytes = pitch * 8; /* past the end */
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&t, &r, &how, NULL));
    r = (CUDA_RESOURCE_DESC){.resType = RESOURCE_LINEAR, .res.linear = {p + 4, FORMAT_S32, 1, 16}};
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&t, &r, &how, NULL)); /* not aligned */
    OK(cuMemFree_v2(p));                                                     /* what reads it ends, and no frame fails */
    OK(cuCtxSynchronize());
    OK(cuTexObjectDestroy(rows));
    OK(cuTexObjectDestroy(t));
    OK(cuTexObjectDestroy(t));
}

static void bytes_as_floats(void)
{
    unsigned char      bytes[W];
    CUarray            a = array_3d(W, 0, 0, FORMAT_U8, 0);
    CUDA_RESOURCE_DESC r = of_array(a);
    CUtexObject        t = texture(&r, FILTER_LINEAR, ADDRESS_CLAMP, 0);
    const float       *seen;
    CUDA_TEXTURE_DESC  how = {.filterMode = FILTER_LINEAR, .flags = SAMPLING_INTEGERS};

    for (int i = 0; i < W; i++)
        bytes[i] = (unsigned char)(i * 255 / (W - 1));
    OK(cuMemcpyHtoA_v2(a, 0, bytes, sizeof bytes));
    seen = sampled("line", t, W, W, 1, 1, 1);
    CHECK(seen[0] <= 0 && seen[W - 1] >= 1 && seen[3] > 0.42f && seen[3] < 0.43f);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&t, &r, &how, NULL)); /* no mean of integers */
    OK(cuTexObjectDestroy(t));
    t = texture(&r, FILTER_LINEAR, ADDRESS_CLAMP, SAMPLING_SRGB);
    seen = sampled("line", t, W, W, 1, 1, 1);
    CHECK(seen[0] <= 0 && seen[W - 1] >= 1 && seen[3] > 0.152f && seen[3] < 0.154f); /* linear light */
    OK(cuTexObjectGetTextureDesc(&how, t));
    CHECK(how.flags == SAMPLING_SRGB);
    how = (CUDA_TEXTURE_DESC){.flags = SAMPLING_SRGB | SAMPLING_INTEGERS};
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuTexObjectCreate(&t, &r, &how, NULL));
    OK(cuArrayDestroy(a));
}

/* A captured copy, and a node of one, to an array. */
static void graphs(void)
{
    CUarray       a = array_3d(W, 0, 0, FORMAT_F32, 0);
    CUstream      stream;
    CUgraph       graph;
    CUgraphNode   node;
    CUgraphExec   exec;
    CUDA_MEMCPY3D c = volume(W, 1, 1);
    float         back[W] = {0};

    OK(cuStreamCreate(&stream, 1));
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(cuMemcpyHtoAAsync_v2(a, 0, cells + 3, sizeof back, stream));
    OK(cuStreamEndCapture(stream, &graph));
    c.dstMemoryType = MEMORY_ARRAY;
    c.dstArray = a;
    OK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &c, NULL));
    OK(cuGraphDestroyNode(node));
    c.dstArray = NULL;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemcpyNode(&node, graph, NULL, 0, &c, NULL));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuMemcpyAtoH_v2(back, a, 0, sizeof back));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyAtoH_v2(back, a, 0, sizeof back));
    CHECK(memcmp(back, cells + 3, sizeof back) == 0);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuStreamDestroy_v2(stream));
    OK(cuArrayDestroy(a));
}

/* By a changed copy of what is right. */
#define WRONG(wanted, change)                                                                                                              \
    do {                                                                                                                                   \
        CUDA_ARRAY3D_DESCRIPTOR d = {W, H, D, FORMAT_F32, 1, 0};                                                                           \
                                                                                                                                           \
        change;                                                                                                                            \
        EXPECT(wanted, cuArray3DCreate_v2(&a, &d));                                                                                        \
    } while (0)

static void wrong_arrays(void)
{
    CUarray                 a = NULL;
    CUDA_ARRAY_DESCRIPTOR   plain = {0, H, FORMAT_F32, 1};
    CUDA_ARRAY3D_DESCRIPTOR got;

    WRONG(CUDA_ERROR_INVALID_VALUE, d.Width = 0);
    WRONG(CUDA_ERROR_INVALID_VALUE, d.Height = 0);
    WRONG(CUDA_ERROR_INVALID_VALUE, d.Width = (size_t)1 << 40);
    WRONG(CUDA_ERROR_INVALID_VALUE, d.Width = 1 << 20);
    WRONG(CUDA_ERROR_INVALID_VALUE, d.NumChannels = 3);
    WRONG(CUDA_ERROR_INVALID_VALUE, d.NumChannels = 0);
    WRONG(CUDA_ERROR_INVALID_VALUE, d.Format = 0);
    WRONG(CUDA_ERROR_NOT_SUPPORTED, d.Format = 0xb0);
    WRONG(CUDA_ERROR_INVALID_VALUE, d.Flags = 0x8000);
    WRONG(CUDA_ERROR_NOT_SUPPORTED, d.Flags = 0x40);
    WRONG(CUDA_ERROR_INVALID_VALUE, d.Flags = ARRAY_CUBE);
    WRONG(CUDA_ERROR_INVALID_VALUE, (d.Flags = ARRAY_LAYERED, d.Depth = 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayCreate_v2(&a, &plain));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayCreate_v2(NULL, &plain));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayCreate_v2(&a, NULL));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(NULL));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor_v2(&got, NULL));
    CHECK(a == NULL);
}

static void wrong_copies(void)
{
    CUarray a = array_3d(W, 0, 0, FORMAT_F32, 0), rows = array_3d(W, H, 0, FORMAT_F32, 0);
    float   back[W];

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(a, 4, cells, sizeof back));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(a, 0, NULL, sizeof back));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(a, 0, cells, 3));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(NULL, 0, cells, 4));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(rows, 0, cells, 4)); /* of one row alone */
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH_v2(NULL, a, 0, 4));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH_v2(back, a, SIZE_MAX - 3, 8));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoA_v2(a, 4, a, 0, 8)); /* they overlap */
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoA_v2(a, 0, 16, 4));
    OK(cuMemcpyHtoA_v2(a, 0, cells, 0));
    OK(cuCtxSynchronize());
    OK(cuArrayDestroy(a));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH_v2(back, a, 0, 4));
    OK(cuArrayDestroy(rows));
}

static void wrong_textures(void)
{
    CUarray                 a = array_3d(W, H, 0, FORMAT_F32, 0);
    CUDA_RESOURCE_DESC      r = of_array(a), of_none = of_array(NULL), mipmapped = {.resType = RESOURCE_MIPMAPPED_ARRAY};
    CUDA_TEXTURE_DESC       t = {.addressMode = {1, 1, 1}}, how;
    CUDA_RESOURCE_VIEW_DESC same = {.format = 0x16, .width = W, .height = H}, other = {.format = 0x0d, .width = W, .height = H}, got;
    CUtexObject             o = 77;

    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(NULL, &r, &t, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&o, NULL, &t, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&o, &r, NULL, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&o, &of_none, &t, NULL));
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuTexObjectCreate(&o, &mipmapped, &t, NULL));
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuTexObjectCreate(&o, &r, &t, &other)); /* the bits of floats as integers */
    other.width = W + 1;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&o, &r, &t, &other));
    t.flags = SAMPLING_SRGB;
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuTexObjectCreate(&o, &r, &t, NULL));
    t.flags = 0x8000;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&o, &r, &t, NULL));
    t.flags = 0;
    t.filterMode = 5;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&o, &r, &t, NULL));
    t.filterMode = 0;
    t.addressMode[1] = 4;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&o, &r, &t, NULL));
    t.addressMode[1] = ADDRESS_BORDER;
    t.borderColor[0] = 1;
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuTexObjectCreate(&o, &r, &t, NULL));
    t.addressMode[1] = ADDRESS_CLAMP; /* the color has no meaning */
    CHECK(o == 77);
    OK(cuTexObjectCreate(&o, &r, &t, &same));
    OK(cuTexObjectGetResourceViewDesc(&got, o));
    CHECK(got.width == W && got.format == 0x16);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetTextureDesc(NULL, o));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetTextureDesc(&how, 5));
    OK(cuTexObjectDestroy(o));
    OK(cuTexObjectCreate(&o, &r, &t, NULL));
    OK(cuTexObjectGetResourceViewDesc(&got, o));
    CHECK(got.width == 0 && got.format == 0); /* there is none */
    OK(cuArrayDestroy(a));                    /* and the texture is left to the context's end */
}

/* One more than a session of the service has: an error, and nothing is lost. */
static void too_many(void)
{
    enum { MANY = 1100 };
    static CUarray        a[MANY];
    CUDA_ARRAY_DESCRIPTOR d = {1, 0, FORMAT_U8, 1};
    int                   made = 0;
    CUresult              r = CUDA_SUCCESS;

    while (made < MANY && (r = cuArrayCreate_v2(&a[made], &d)) == CUDA_SUCCESS)
        made++;
    CHECK(made > 500 && made < MANY && r == CUDA_ERROR_OUT_OF_MEMORY);
    while (made)
        OK(cuArrayDestroy(a[--made]));
    OK(cuArrayCreate_v2(&a[0], &d));
    OK(cuArrayDestroy(a[0]));
}

int main(void)
{
    CUcontext c = context_of_first_device();

    OK(cuModuleLoadData(&module, texels_ptx));
    OK(cuMemAlloc_v2(&out, sizeof cells));
    for (int i = 0; i < CELLS; i++)
        cells[i] = 0.25f * (float)(i + 1);
    lines();
    planes();
    volumes();
    surfaces();
    linear();
    bytes_as_floats();
    graphs();
    wrong_arrays();
    wrong_copies();
    wrong_textures();
    too_many();
    OK(cuCtxDestroy_v2(c));
    puts("PASS");
    return 0;
}
