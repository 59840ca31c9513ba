"""CUDA C compiled for newer GPUs than the cpu device reports: what NVRTC makes of cuda::barrier, asynchronous copies, clusters and 8-bit
floats must give the same results as the same source compiled for compute_75, where all of it is plain code."""
import base64
import ctypes
import os
import pathlib
import struct
import time

import pytest

THREADS = 256

FP8 = r"""
#include <cuda_fp8.h>
extern "C" __global__ void k(const float *in, unsigned *out)
{
    int i = threadIdx.x;
    __nv_fp8_e4m3 a(in[i]); __nv_fp8_e5m2 b(in[i]);
    __nv_fp8x4_e4m3 four(make_float4(in[i], in[(i + 1) % blockDim.x], -in[i], 3.0f));
    __half2 pair = __halves2half2(__half(a), __half(b));
    __nv_fp8x2_e5m2 two(pair);
    out[4 * i] = a.__x | b.__x << 8;
    out[4 * i + 1] = __float_as_uint(float(a)) ^ __float_as_uint(float(b)) >> 3;
    out[4 * i + 2] = four.__x;
    out[4 * i + 3] = two.__x;
}
"""
BARRIER = r"""
#include <cuda/barrier>
extern "C" __global__ void k(const float *in, unsigned *out)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> all, half;
    __shared__ unsigned s[256];
    unsigned i = threadIdx.x;
    if (i == 0) { init(&all, blockDim.x); init(&half, blockDim.x / 2); }
    __syncthreads();
    for (unsigned round = 0; round < 5; round++) {
        s[i] = i * 3 + round;
        all.arrive_and_wait();
        unsigned v = s[(i + 17 * round + 1) % blockDim.x];
        auto token = all.arrive();
        out[4 * i] += v;
        all.wait(std::move(token));
        if (i < blockDim.x / 2) {           /* consumers wait for producers of the other half */
            half.wait_parity(round & 1);
            out[4 * i + 1] += s[blockDim.x / 2 + i];
        } else {
            s[i] = 1000 * round + i;
            half.arrive();
        }
        all.arrive_and_wait();
    }
    if (i >= 200)
        all.arrive_and_drop();
    else
        all.arrive_and_wait();
    out[4 * i + 2] = i;
}
"""
COPIES = r"""
#include <cuda/barrier>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(const float *in, unsigned *out)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> arrived;
    __shared__ float s[256];
    auto block = cg::this_thread_block();
    unsigned i = threadIdx.x;
    if (i == 0) init(&arrived, blockDim.x);
    block.sync();
    cuda::memcpy_async(block, s, in, sizeof s, arrived);
    arrived.arrive_and_wait();
    out[4 * i] = __float_as_uint(s[255 - i]);
    block.sync();
    cg::memcpy_async(block, s, in + 0, sizeof s);
    cg::wait(block);
    out[4 * i + 1] = __float_as_uint(s[i ^ 5]);
}
"""
# compute_75 has no clusters: there the block is its own cluster.
CLUSTER = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#if __CUDA_ARCH__ >= 900
#define ATTRIBUTE __cluster_dims__(1, 1, 1)
#else
#define ATTRIBUTE
#endif
extern "C" __global__ void ATTRIBUTE k(const float *in, unsigned *out)
{
    __shared__ unsigned s[256];
    unsigned i = threadIdx.x;
    s[i] = i * i;
#if __CUDA_ARCH__ >= 900
    cg::cluster_group all = cg::this_cluster();
    all.sync();
    unsigned *theirs = all.map_shared_rank(s, 0);
    out[4 * i] = theirs[(i + 1) % 256] + all.num_threads();
    out[4 * i + 1] = all.block_rank() + 2 * all.num_blocks() + 4 * all.thread_rank() + 4096 * cg::cluster_group::query_shared_rank(s);
    auto token = all.barrier_arrive();
    out[4 * i + 2] = all.block_index().x + all.dim_blocks().x;
    all.barrier_wait(std::move(token));
#else
    __syncthreads();
    out[4 * i] = s[(i + 1) % 256] + blockDim.x;
    out[4 * i + 1] = 2 + 4 * i;
    out[4 * i + 2] = 1;
#endif
}
"""


def nvrtc():
    """NVRTC opens its builtins by name only: outside a toolkit the loader finds them only if they are loaded already."""
    library = pathlib.Path(os.environ["GPUREST_NVRTC"])
    for builtins in sorted(library.resolve().parent.glob("libnvrtc-builtins.so.*")):
        ctypes.CDLL(str(builtins))
    return ctypes.CDLL(str(library))


def nvrtc_ptx(source, architecture):
    if not os.environ.get("GPUREST_NVRTC") or not os.environ.get("GPUREST_CUDA_INCLUDE"):
        pytest.skip("GPUREST_NVRTC and GPUREST_CUDA_INCLUDE do not say where NVRTC and its headers are")
    library, include = nvrtc(), os.environ["GPUREST_CUDA_INCLUDE"]
    options = [f"--gpu-architecture={architecture}", f"-I{include}", f"-I{include}/cccl", "--std=c++17"]
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"k.cu", 0, None, None) == 0
    try:
        failed = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*(o.encode() for o in options)))
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        assert failed == 0, log.value.decode()[:2000]
        library.nvrtcGetPTXSize(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        library.nvrtcGetPTX(program, text)
        return text.value
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def floats():
    special = [0.0, -0.0, 448.0, 464.0, 465.0, -480.0, 57344.0, 61440.0, 61441.0, 1e30, float("inf"), float("-inf"), 2.0 ** -9, 2.0 ** -10,
               3 * 2.0 ** -11, 2.0 ** -16, 2.0 ** -17, 3 * 2.0 ** -18, 1.0625, 1.1875, -1.125, 1.25, 1.375]
    return special + [(-1.37) ** (k % 60) * 0.01 * k for k in range(THREADS - len(special))]


def run(client, session, ptx, compiles_s=0):
    made = client.put(session + "/modules/m", ptx, Content_Type="application/vnd.gpurest.ptx")
    assert made.status in (200, 201), made
    assert client.put_octets(session + "/buffers/in", struct.pack(f"{THREADS}f", *floats())).status in (200, 201)
    assert client.put_octets(session + "/buffers/out", bytes(16 * THREADS)).status in (200, 201)
    client.post(session + "/launches", {"module": "m", "kernel": "k", "grid": [1], "block": [THREADS], "args": [{"buf": "in"}, {"buf": "out"}]}).expect(200)
    result = client.get(session + "/buffers/out/data").body
    time.sleep(compiles_s)
    for name in ("/modules/m", "/buffers/in", "/buffers/out"):
        assert client.delete(session + name).status == 204
    return result


@pytest.mark.parametrize("source, needs, architectures", [
    (FP8, b"e4m3x2", ["compute_90"]),
    (BARRIER, b"mbarrier.", ["compute_80", "compute_90"]),
    (COPIES, b"cp.async.mbarrier.arrive", ["compute_80", "compute_90"]),
    (CLUSTER, b"barrier.cluster.wait", ["compute_90"]),
], ids=["fp8", "barrier", "copies", "cluster"])
def test_newer_architectures_give_the_same(client, session, source, needs, architectures):
    if client.get("/v1/devices").json()["items"][0]["backend"] != "cpu":
        pytest.skip("a GPU takes what it is")
    expected = run(client, session, nvrtc_ptx(source, "compute_75"))
    assert len(set(struct.unpack(f"{4 * THREADS}I", expected))) > 32
    for architecture in architectures:
        ptx = nvrtc_ptx(source, architecture)
        assert needs in ptx
        assert run(client, session, ptx) == expected, architecture


def test_who_deletes_a_module_does_not_wait_for_its_compiler(start):
    """LLVM is at this kernel for a minute, longer than a worker may let a call wait."""
    client = start("--cpu-jit", "eager").client()
    client.put("/v1/sessions/long").expect(201)
    for _ in range(2):  # the second one is deleted while the first one is being compiled
        run(client, "/v1/sessions/long", nvrtc_ptx(BARRIER, "compute_75"), compiles_s=1)
    assert client.get("/v1/sessions/long").json()["state"] == "ready"
    client.delete("/v1/sessions/long").expect(204)


# Each block counts the bins that are its own, in its shared memory, for all blocks of its cluster; and shows its neighbour's flags.
BLOCKS, BINS = 16, 1024
HISTOGRAM = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(4, 1, 1) k(const unsigned *in, unsigned *out, int n)
{
    __shared__ unsigned bins[256], flags[4];
    cg::cluster_group all = cg::this_cluster();
    unsigned rank = all.block_rank(), each = 1024 / all.num_blocks();
    for (unsigned i = threadIdx.x; i < each; i += blockDim.x) bins[i] = 0;
    if (threadIdx.x < all.num_blocks()) all.map_shared_rank(flags, threadIdx.x)[rank] = 100 + 10 * rank + threadIdx.x;
    all.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned bin = in[i] % 1024;
        atomicAdd(all.map_shared_rank(bins, bin / each) + bin % each, 1u);
    }
    auto token = all.barrier_arrive();
    all.barrier_wait(std::move(token));
    if (threadIdx.x < 4) out[1024 + 4 * blockIdx.x + threadIdx.x] = flags[threadIdx.x];
    for (unsigned i = threadIdx.x; i < each; i += blockDim.x) atomicAdd(out + rank * each + i, bins[i]);
}
"""


@pytest.fixture
def clusters(client):
    device = client.get("/v1/devices").json()["items"][0]
    if device["backend"] != "cpu" and float(device["compute_capability"]) < 9:
        pytest.skip("a GPU without clusters")
    return nvrtc_ptx(HISTOGRAM, "compute_90")


def launch_histogram(client, session, blocks, timing):
    """Behind a kernel without clusters on the same stream."""
    client.put_cuda(session + "/modules/other", 'extern "C" __global__ void other() {}')
    client.post(session + "/launches", {"module": "other", "kernel": "other", "grid": [1], "block": [1], "args": [], "timing": timing}).expect(200)
    numbers = [(i * i + 7 * i) % 65521 for i in range(30000)]
    assert client.put_octets(session + "/buffers/in", struct.pack(f"{len(numbers)}I", *numbers)).status in (200, 201)
    assert client.put_octets(session + "/buffers/out", bytes(4 * (BINS + 4 * BLOCKS))).status in (200, 201)
    launched = client.post(session + "/launches", {"module": "m", "kernel": "k", "grid": [blocks], "block": [128],
                                                   "args": [{"buf": "in"}, {"buf": "out"}, {"i32": len(numbers)}], "timing": timing})
    return numbers, launched


@pytest.mark.parametrize("timing", [True, False])
def test_blocks_of_a_cluster_share_their_memory(client, session, clusters, timing):
    assert b".reqnctapercluster" in clusters and b"mapa" in clusters
    client.put(session + "/modules/m", clusters, Content_Type="application/vnd.gpurest.ptx").expect(201)
    numbers, launched = launch_histogram(client, session, BLOCKS, timing)
    launched.expect(200)
    found = struct.unpack(f"{BINS + 4 * BLOCKS}I", client.get(session + "/buffers/out/data").body)
    expected = [0] * BINS
    for number in numbers:
        expected[number % BINS] += 1
    assert list(found[:BINS]) == expected
    assert list(found[BINS:]) == [100 + 10 * rank + block % 4 for block in range(BLOCKS) for rank in range(4)]


@pytest.mark.parametrize("timing", [True, False])
def test_a_grid_that_is_no_multiple_of_its_clusters_is_refused(client, session, clusters, timing):
    client.put(session + "/modules/m", clusters, Content_Type="application/vnd.gpurest.ptx").expect(201)
    for _ in range(2):
        launch_histogram(client, session, BLOCKS, timing)[1].expect(200)
    _, launched = launch_histogram(client, session, 6, timing)
    assert launched.status == 422 and launched.code == "launch_config_invalid", launched


def test_kernels_with_clusters_stay_with_the_interpreter_and_say_why(start, clusters):
    client = start(libraries=True).client_in("s")
    if client.get("/v1/devices").json()["items"][0]["backend"] != "cpu":
        pytest.skip("a GPU has no engines")
    client.put("/v1/sessions/s/modules/m", clusters, Content_Type="application/vnd.gpurest.ptx").expect(201)
    kernel, = client.get("/v1/sessions/s/modules/m").json()["kernels"]
    assert kernel["engine"] == "interpreter", kernel
    if "libLLVM" not in kernel["engine_reason"]:
        assert kernel["engine_reason"] == "blocks of a cluster access each other's shared memory"


# ---- from source ----

WMMA = r"""
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void bf16(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
    wmma::fill_fragment(z, 0.0f);
    wmma::load_matrix_sync(x, a, 16);
    wmma::load_matrix_sync(y, b, 16);
    wmma::mma_sync(z, x, y, z);
    wmma::store_matrix_sync(c, z, 16, wmma::mem_row_major);
}
extern "C" __global__ void tf32(const float *a, const float *b, float *c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> z;
    wmma::fill_fragment(z, 0.0f);
    wmma::load_matrix_sync(x, a, 8);
    wmma::load_matrix_sync(y, b, 8);
    wmma::mma_sync(z, x, y, z);
    wmma::store_matrix_sync(c, z, 16, wmma::mem_row_major);
}
"""
PARTS = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
extern "C" __global__ void sums(const int *in, int *out) {
    out[threadIdx.x] = __reduce_add_sync(0xffffffff, in[threadIdx.x]) + __reduce_max_sync(0xffffffff, in[threadIdx.x]);
}
extern "C" __global__ void copied(const int *in, int *out) {
    __shared__ int s[256];
    cg::thread_block all = cg::this_thread_block();
    cg::memcpy_async(all, s, in, sizeof s);
    cg::wait(all);
    out[threadIdx.x] = s[255 - threadIdx.x];
}
extern "C" __global__ void which(int *out) { *out = __CUDA_ARCH__; }
"""


@pytest.fixture
def cpu(client):
    if client.get("/v1/devices").json()["items"][0]["backend"] != "cpu":
        pytest.skip("a GPU takes what it is")


def compiled(client, session, source, arch, **more):
    client.put(session + "/modules/m", {"source": source, "arch": arch, **more}).expect(201)
    assert client.get(session + "/modules/m").json()["arch"] == arch.replace("sm_", "compute_")


def launched(client, session, kernel, block, *buffers):
    client.post(session + "/launches", {"module": "m", "kernel": kernel, "grid": [1], "block": [block], "args": [{"buf": b} for b in buffers]}).expect(200)


@pytest.mark.parametrize("arch", ["compute_80", "compute_90"])
def test_matrices_of_bf16_and_tf32(client, session, cpu, arch):
    compiled(client, session, WMMA, arch)
    values = [((7 * i) % 13 - 6) / 4 for i in range(256)]
    client.put_octets(session + "/buffers/bf16", b"".join(struct.pack("<f", v)[2:] for v in values)).expect(201)
    client.put_octets(session + "/buffers/tf32", struct.pack("<128f", *values[:128])).expect(201)
    client.put(session + "/buffers/c", {"size": 1024}).expect(201)
    for kernel, k in (("bf16", 16), ("tf32", 8)):
        launched(client, session, kernel, 32, kernel, kernel, "c")
        got = struct.unpack("<256f", client.get(session + "/buffers/c/data").body)
        assert list(got) == [sum(values[k * i + l] * values[k * j + l] for l in range(k)) for i in range(16) for j in range(16)]


@pytest.mark.parametrize("arch", ["sm_80", "compute_90"])
def test_reductions_and_copies_of_newer_gpus(client, session, cpu, arch):
    compiled(client, session, PARTS, arch)
    code = client.get(session + "/modules/m/code").body
    assert b"redux.sync" in code and b"cp.async" in code
    client.put_octets(session + "/buffers/in", struct.pack("<256i", *range(256))).expect(201)
    client.put(session + "/buffers/out", {"size": 1024}).expect(201)
    launched(client, session, "sums", 32, "in", "out")
    assert struct.unpack("<32i", client.get(session + "/buffers/out/data").body[:128]) == (496 + 31,) * 32
    launched(client, session, "copied", 256, "in", "out")
    assert struct.unpack("<256i", client.get(session + "/buffers/out/data").body) == tuple(range(255, -1, -1))
    launched(client, session, "which", 1, "out")
    assert struct.unpack("<i", client.get(session + "/buffers/out/data").body[:4]) == (10 * int(arch.split("_")[1]),)


@pytest.mark.parametrize("options, arch", [(["--gpu-architecture=compute_89"], 89), (["-arch", "sm_86"], 86), ([], 75)])
def test_the_architecture_as_an_option(client, session, cpu, options, arch):
    client.put(session + "/modules/m", {"source": 'extern "C" __global__ void which(int *out) { *out = __CUDA_ARCH__; }', "options": options}).expect(201)
    client.put(session + "/buffers/out", {"size": 4}).expect(201)
    launched(client, session, "which", 1, "out")
    assert struct.unpack("<i", client.get(session + "/buffers/out/data").body) == (10 * arch,)
    assert client.get(session + "/modules/m").json()["arch"] == f"compute_{arch}"


def test_architectures_that_are_refused(client, session, cpu):
    def refused(**more):
        answer = client.put(session + "/modules/m", {"source": 'extern "C" __global__ void k() {}', **more})
        assert answer.status == 400, answer
        return answer.code, answer.json()["errors"][0]["pointer"]

    assert refused(arch="compute_99") == ("invalid_field", "/arch")
    assert refused(arch="75") == ("invalid_field", "/arch")
    assert refused(options=["-arch=native"]) == ("option_not_allowed", "/options/0")
    assert refused(arch="compute_80", options=["-arch=compute_90"]) == ("invalid_field", "/arch")
    client.put(session + "/modules/m", {"source": 'extern "C" __global__ void k() {}', "arch": "compute_80"}).expect(201)
    assert client.put(session + "/modules/m", {"source": 'extern "C" __global__ void k() {}'}).code == "spec_conflict"


def test_a_batch_and_a_run_say_it_too(client, session, cpu):
    source = {"source": 'extern "C" __global__ void which(int *out) { *out = __CUDA_ARCH__; }', "arch": "compute_90"}
    ops = [{"op": "alloc", "as": "$o", "size": 4}, {"op": "launch", "kernel": "which", "grid": [1], "block": [1], "args": [{"buf": "$o"}]},
           {"op": "read", "from": "$o", "segment": "o"}]
    for path in (session + "/batches", "/v1/run"):
        answer = client.post(path, {"module": source, "ops": ops}).expect(200)
        assert answer.json()["segments"][0]["data_b64"] == base64.b64encode(struct.pack("<i", 900)).decode()


# ---- what headers use of shared memory ----

TILES = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void tiles(const int *in, int *out) {
    __shared__ cg::block_tile_memory<256> scratch;
    auto block = cg::this_thread_block(scratch);
    auto tile = cg::tiled_partition<64>(block);
    int sum = cg::reduce(tile, in[threadIdx.x], cg::plus<int>());
    tile.sync();
    out[threadIdx.x] = sum + tile.shfl(in[threadIdx.x], 3);
}
extern "C" __global__ void large(int *out, int words) {
    extern __shared__ int s[];
    for (int i = threadIdx.x; i < words; i += blockDim.x) s[i] = i * 3;
    __syncthreads();
    for (int i = threadIdx.x; i < words; i += blockDim.x) out[i] = s[words - 1 - i];
}
"""


@pytest.mark.parametrize("arch", ["compute_75", "compute_80", "compute_90"])
def test_tiles_of_several_warps(client, session, cpu, arch):
    compiled(client, session, TILES, arch)
    client.put_octets(session + "/buffers/in", struct.pack("<256i", *range(256))).expect(201)
    client.put(session + "/buffers/out", {"size": 1024}).expect(201)
    launched(client, session, "tiles", 256, "in", "out")
    got = struct.unpack("<256i", client.get(session + "/buffers/out/data").body)
    assert got == tuple(sum(range(i // 64 * 64, i // 64 * 64 + 64)) + i // 64 * 64 + 3 for i in range(256))


def test_dynamic_shared_memory_to_227_kib(client, session, cpu):
    compiled(client, session, TILES, "compute_75")
    device = client.get("/v1/devices/cpu:0").json()
    most = device["max_shared_bytes_per_block"]
    assert most == device["attributes"]["max_shared_memory_per_block_optin"] == 227 * 1024
    words = most // 4 - 4096  # beside what the module's other kernel has
    client.put(session + "/buffers/out", {"size": 4 * words}).expect(201)

    def launch(size, words):
        return client.post(session + "/launches", {"module": "m", "kernel": "large", "grid": [2], "block": [128], "shared_bytes": size,
                                                   "args": [{"buf": "out"}, {"i32": words}]})

    for count in (words, 100, words):
        launch(4 * count, count).expect(200)
        got = struct.unpack(f"<{count}i", client.get(session + "/buffers/out/data").body[:4 * count])
        assert got == tuple(3 * (count - 1 - i) for i in range(count))
    assert launch(most + 1, 4).code == "launch_config_invalid"
    client.put(session + "/buffers/out2", {"size": 16}).expect(201)
    assert launch(4096, 8192).code == "kernel_fault"  # beyond what was asked for
