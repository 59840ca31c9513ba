// Textures and surfaces as programs of CUDA C++ use them, with NVIDIA's own headers: their descriptions have the form that the library expects.
#include <cstdio>
#include <cstring>

__global__ void sample(cudaTextureObject_t plane, cudaTextureObject_t line, cudaTextureObject_t rows, float *out)
{
    int i = threadIdx.x;

    out[i] = tex2D<float4>(plane, i % 8 + 0.5f, i / 8 + 0.5f).y + float(tex1Dfetch<int>(line, i)) + tex2D<float>(rows, i % 8 + 0.5f, i / 8 + 0.5f);
}

__global__ void turn(cudaSurfaceObject_t surface, cudaTextureObject_t texture)
{
    int x = threadIdx.x % 8, y = threadIdx.x / 8;
    float4 texel = tex2D<float4>(texture, 7 - x + 0.5f, 3 - y + 0.5f);

    surf2Dwrite(texel, surface, x * int(sizeof texel), y);
}

__global__ void levels(cudaTextureObject_t layered, cudaTextureObject_t volume, float *out)
{
    int i = threadIdx.x;

    out[i] = tex2DLayered<unsigned char>(layered, i % 4 + 0.5f, i / 4 % 4 + 0.5f, i / 16) + 1000 * tex3D<float>(volume, i % 4 + 0.5f, i / 4 % 4 + 0.5f, i / 16 + 0.5f);
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

enum { W = 8, H = 4, CELLS = W * H };

static cudaTextureObject_t texture(const cudaResourceDesc &resource, cudaTextureReadMode read = cudaReadModeElementType)
{
    cudaTextureDesc how = {};
    cudaTextureObject_t made = 0;

    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    how.readMode = read;
    return cudaCreateTextureObject(&made, &resource, &how, nullptr) == cudaSuccess ? made : 0;
}

static int planes()
{
    float4 texels[CELLS], turned[CELLS];
    int numbers[CELLS], *memory;
    float rows[CELLS], back[CELLS], *pitched, *out;
    size_t pitch;
    cudaArray_t from, to;
    cudaChannelFormatDesc four = cudaCreateChannelDesc<float4>();
    cudaResourceDesc plane = {}, target = {}, line = {}, by_rows = {};

    for (int i = 0; i < CELLS; i++) {
        texels[i] = make_float4(float(i), float(10 * i), float(-i), 1);
        numbers[i] = 1000 * i;
        rows[i] = 0.5f * float(i);
    }
    OK(cudaMallocArray(&from, &four, W, H));
    OK(cudaMallocArray(&to, &four, W, H, cudaArraySurfaceLoadStore));
    OK(cudaMemcpy2DToArray(from, 0, 0, texels, W * sizeof *texels, W * sizeof *texels, H, cudaMemcpyHostToDevice));
    OK(cudaMalloc(&memory, sizeof numbers));
    OK(cudaMalloc(&out, sizeof back));
    OK(cudaMallocPitch(&pitched, &pitch, W * sizeof *rows, H));
    OK(cudaMemcpy(memory, numbers, sizeof numbers, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(pitched, pitch, rows, W * sizeof *rows, W * sizeof *rows, H, cudaMemcpyHostToDevice));
    plane.resType = target.resType = cudaResourceTypeArray;
    plane.res.array.array = from;
    target.res.array.array = to;
    line.resType = cudaResourceTypeLinear;
    line.res.linear.devPtr = memory;
    line.res.linear.desc = cudaCreateChannelDesc<int>();
    line.res.linear.sizeInBytes = sizeof numbers;
    by_rows.resType = cudaResourceTypePitch2D;
    by_rows.res.pitch2D.devPtr = pitched;
    by_rows.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    by_rows.res.pitch2D.width = W;
    by_rows.res.pitch2D.height = H;
    by_rows.res.pitch2D.pitchInBytes = pitch;
    cudaTextureObject_t p = texture(plane), l = texture(line), r = texture(by_rows);
    cudaSurfaceObject_t s;
    CHECK(p && l && r);
    OK(cudaCreateSurfaceObject(&s, &target));
    sample<<<1, CELLS>>>(p, l, r, out);
    turn<<<1, CELLS>>>(s, p);
    OK(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
    OK(cudaMemcpy2DFromArray(turned, W * sizeof *turned, to, 0, 0, W * sizeof *turned, H, cudaMemcpyDeviceToHost));
    for (int i = 0; i < CELLS; i++)
        CHECK(back[i] == 10 * i + 1000 * i + 0.5f * float(i) && memcmp(&turned[i], &texels[CELLS - 1 - i], sizeof *turned) == 0);
    cudaResourceDesc same;
    OK(cudaGetTextureObjectResourceDesc(&same, r));
    CHECK(same.res.pitch2D.pitchInBytes == pitch && same.res.pitch2D.devPtr == pitched && same.res.pitch2D.desc.x == 32);
    OK(cudaDestroySurfaceObject(s));
    OK(cudaDestroyTextureObject(p));
    OK(cudaDestroyTextureObject(l));
    OK(cudaDestroyTextureObject(r));
    OK(cudaFreeArray(from));
    OK(cudaFreeArray(to));
    return 0;
}

static int volumes()
{
    enum { EDGE = 4, BYTES = EDGE * EDGE * EDGE };
    unsigned char bytes[BYTES];
    float numbers[BYTES], back[BYTES], *out;
    cudaArray_t layered, volume;
    cudaChannelFormatDesc byte = cudaCreateChannelDesc<unsigned char>(), number = cudaCreateChannelDesc<float>(), got;
    cudaResourceDesc of_layers = {}, of_volume = {};
    cudaMemcpy3DParms up = {};
    cudaExtent extent = make_cudaExtent(EDGE, EDGE, EDGE), shape;
    unsigned flags;

    for (int i = 0; i < BYTES; i++) {
        bytes[i] = (unsigned char)(i);
        numbers[i] = float(2 * i);
    }
    OK(cudaMalloc3DArray(&layered, &byte, extent, cudaArrayLayered));
    OK(cudaMalloc3DArray(&volume, &number, extent));
    OK(cudaArrayGetInfo(&got, &shape, &flags, layered));
    CHECK(got.x == 8 && got.f == cudaChannelFormatKindUnsigned && shape.depth == EDGE && flags == cudaArrayLayered);
    up.srcPtr = make_cudaPitchedPtr(bytes, EDGE, EDGE, EDGE);
    up.dstArray = layered;
    up.extent = extent;
    up.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&up));
    up.srcPtr = make_cudaPitchedPtr(numbers, EDGE * sizeof *numbers, EDGE, EDGE);
    up.dstArray = volume;
    OK(cudaMemcpy3D(&up));
    of_layers.resType = of_volume.resType = cudaResourceTypeArray;
    of_layers.res.array.array = layered;
    of_volume.res.array.array = volume;
    cudaTextureObject_t l = texture(of_layers), v = texture(of_volume);
    CHECK(l && v);
    OK(cudaMalloc(&out, sizeof back));
    levels<<<1, BYTES>>>(l, v, out);
    OK(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
    for (int i = 0; i < BYTES; i++)
        CHECK(back[i] == float(i) + 1000 * float(2 * i));
    return 0; // the end of the process frees the rest
}

int main()
{
    if (planes() || volumes())
        return 1;
    puts("PASS");
    return 0;
}
