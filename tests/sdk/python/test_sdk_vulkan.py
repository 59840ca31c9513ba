"""Shaders by the SDK on a vulkan device, in GLSL and as SPIR-V, beside NumPy."""
import importlib.util
import pathlib
import shutil
import subprocess

import pytest

np = pytest.importorskip("numpy")
gpurest = pytest.importorskip("gpurest")
import gpurest.errors  # noqa: E402
from gpurest import aio, testing  # noqa: E402

VADD = """#version 450
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint TIMES = 1;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Push { uint n; };
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < n)
        c[i] = a[i] + TIMES * b[i];
}
"""
MATMUL = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Push { uint n; };
shared float left[8][8], right[8][8];
void main()
{
    uint row = gl_GlobalInvocationID.y, column = gl_GlobalInvocationID.x, x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;
    float sum = 0;
    for (uint k = 0; k < n; k += 8) {
        left[y][x] = a[row * n + k + x];
        right[y][x] = b[(k + y) * n + column];
        barrier();
        for (uint i = 0; i < 8; i++)
            sum += left[y][i] * right[i][x];
        barrier();
    }
    c[row * n + column] = sum;
}
"""
REDUCE = """#version 450
layout(local_size_x_id = 0) in;
layout(binding = 0) readonly buffer From { uint from[]; };
layout(binding = 1) buffer To { uint to[]; };
layout(push_constant) uniform Push { uint n; };
shared uint part[gl_WorkGroupSize.x];
void main()
{
    uint t = gl_LocalInvocationID.x, sum = 0;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += gl_WorkGroupSize.x * gl_NumWorkGroups.x)
        sum += from[i];
    part[t] = sum;
    barrier();
    for (uint step = gl_WorkGroupSize.x / 2; step > 0; step /= 2) {
        if (t < step)
            part[t] += part[t + step];
        barrier();
    }
    if (t == 0)
        atomicAdd(to[0], part[0]);
}
"""


@pytest.fixture(scope="module")
def vulkan():
    if testing.find_executable() is None:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    try:
        with testing.server(device="vulkan") as one:
            yield one
    except gpurest.errors.GpurestError as why:
        if "no backend has a device" in str(why):
            pytest.skip("no Vulkan device is here")
        raise


@pytest.fixture
def gpu(vulkan):
    with gpurest.Client(vulkan.url) as client, client.session() as session:
        yield session


def test_vadd(gpu):
    a, b = np.random.default_rng(1).random((2, 100_000), dtype=np.float32)
    c = gpu.empty(a.size)
    pipeline = gpu.create_pipeline(gpu.glsl(VADD))
    fence = pipeline.dispatch(groups=((a.size + 63) // 64,), buffers=(gpu.buffer(a), gpu.buffer(b), c), push=(np.uint32(a.size),))
    assert fence.wait().done() and fence.launch.state == "succeeded"
    assert np.array_equal(np.frombuffer(bytes(c.read()), dtype=np.float32), a + b)


def test_matmul(gpu):
    n = 128
    a, b = np.random.default_rng(2).random((2, n, n), dtype=np.float32)
    c = gpu.empty(a.size)
    gpu.create_pipeline(gpu.glsl(MATMUL)).dispatch((n // 8, n // 8), (gpu.buffer(a), gpu.buffer(b), c), (np.uint32(n),)).wait()
    assert np.allclose(np.frombuffer(bytes(c.read()), dtype=np.float32).reshape(n, n), a @ b, rtol=1e-5)


@pytest.mark.parametrize("spirv", [False, True])
def test_demos_give_what_numpy_gives(gpu, spirv):
    spec = importlib.util.spec_from_file_location("vulkan_gpu", pathlib.Path(__file__).parents[2] / "bench" / "vulkan_gpu.py")
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    rng = np.random.default_rng(4)
    operands = [*rng.random((2, 1 << 18), dtype=np.float32), *rng.random((2, 128, 128), dtype=np.float32)]
    assert all(cell.wall > 0 for cell in bench.demos(bench.Vulkan(gpu, spirv), operands, 1).values())


@pytest.mark.parametrize("block", [32, 64, 256])
def test_reduce(gpu, block):
    numbers = np.random.default_rng(3).integers(0, 1000, 200_000, dtype=np.uint32)
    total = gpu.buffer(np.zeros(4, np.uint32))
    pipeline = gpu.create_pipeline(gpu.glsl(REDUCE))
    pipeline.dispatch(16, (gpu.buffer(numbers), total), (np.uint32(numbers.size),), block=block).wait()
    assert np.frombuffer(bytes(total.read()), dtype=np.uint32)[0] == numbers.sum()


def test_spirv_from_a_file_with_a_constant(gpu, tmp_path):
    compiler = shutil.which("glslangValidator")
    if not compiler:
        pytest.skip("glslangValidator is not installed")
    (tmp_path / "vadd.comp").write_text(VADD)
    subprocess.run([compiler, "--quiet", "--target-env", "vulkan1.2", "-V", str(tmp_path / "vadd.comp"), "-o", str(tmp_path / "vadd.spv")], check=True)
    a, b = np.arange(200, dtype=np.float32).reshape(2, 100)
    c = gpu.empty(a.size)
    module = gpu.load_spirv(tmp_path / "vadd.spv")
    for pipeline, times in ((gpu.create_pipeline(module, "main"), 1), (gpu.create_pipeline(module, "main", specialization={0: 5}), 5)):
        pipeline.dispatch((2,), (gpu.buffer(a), gpu.buffer(b), c), (np.uint32(100),)).wait()
        assert np.array_equal(np.frombuffer(bytes(c.read()), dtype=np.float32), a + times * b)
    assert gpu.load_spirv((tmp_path / "vadd.spv").read_bytes()) is module


async def test_an_asyncio_client_dispatches(vulkan, gpu):
    a, b = np.arange(200, dtype=np.float32).reshape(2, 100)
    code = gpu.glsl(VADD).code("spirv")
    async with aio.AsyncClient(vulkan.url) as client, client.session() as session:
        c = await session.empty(a.size)
        spirv = await session.load_spirv(code)
        for module, options, times in ((await session.glsl(VADD, specialization={0: 2}), {}, 2), (spirv, {}, 1), (spirv, {"specialization": {0: 5}}, 5)):
            pipeline = await session.create_pipeline(module, **options)
            fence = await pipeline.dispatch((2,), (await session.buffer(a), await session.buffer(b), c), (np.uint32(100),))
            assert (await fence.wait()).launch.state == "succeeded"
            assert np.array_equal(np.frombuffer(bytes(await c.read()), dtype=np.float32), a + times * b)
        with pytest.raises(gpurest.errors.CompileError, match="line 12"):
            await session.glsl(VADD.replace("c[i] =", "d[i] ="))
        with pytest.raises(gpurest.errors.ArgumentError, match="glsl"):
            await session.create_pipeline(await session.glsl(VADD), specialization={0: 5})


def test_macros_and_errors(gpu):
    assert gpu.glsl(VADD.replace("TIMES", "MANY").replace("MANY = 1", "MANY = START"), defines={"START": 3}).kernels == ("main",)
    with pytest.raises(gpurest.errors.CompileError, match="line 12"):
        gpu.glsl(VADD.replace("c[i] =", "d[i] ="))
