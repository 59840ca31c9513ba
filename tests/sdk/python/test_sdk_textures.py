"""Textures and surfaces: made of arrays, sampled and written by kernels."""
import asyncio

import pytest

import gpurest
from gpurest import errors

numpy = pytest.importorskip("numpy")

SOURCE = r"""
extern "C" __global__ void look(cudaTextureObject_t t, float *out, int width)
{
    int x = threadIdx.x % width, y = threadIdx.x / width;
    out[threadIdx.x] = tex2D<float>(t, x + 0.5f, y + 0.5f);
}
extern "C" __global__ void mean(cudaTextureObject_t t, float x, float y, float *out) { *out = tex2D<float>(t, x, y); }
extern "C" __global__ void box(cudaTextureObject_t t, int4 *out)
{
    int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
    uchar4 c = tex3D<uchar4>(t, x + 0.5f, y + 0.5f, z + 0.5f);
    out[(z * blockDim.y + y) * blockDim.x + x] = make_int4(c.x, c.y, c.z, c.w);
}
extern "C" __global__ void layers(cudaTextureObject_t t, float *out) { out[threadIdx.x] = tex1DLayered<float>(t, threadIdx.x % 4 + 0.5f, threadIdx.x / 4); }
extern "C" __global__ void side(cudaTextureObject_t t, float x, float y, float z, float *out) { *out = texCubemap<float>(t, x, y, z); }
extern "C" __global__ void fetch(cudaTextureObject_t t, float *out) { out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); }
extern "C" __global__ void twice(cudaSurfaceObject_t s)
{
    surf2Dwrite(2 * surf2Dread<float>(s, 4 * threadIdx.x, threadIdx.y), s, 4 * threadIdx.x, threadIdx.y);
}
extern "C" __global__ void pointer(float *p) { *p = 1; }
"""


@pytest.fixture
def module(session):
    return session.module(SOURCE)


def test_an_array_is_sampled(session, module):
    data = numpy.arange(12, dtype="f4").reshape(3, 4)
    texture = session.texture(data, filter="linear")
    assert (texture.shape, texture.nbytes, texture.spec["extent"]) == ((3, 4), 48, [4, 3])
    out = session.empty((12,))
    module["look"](1, 12, (texture, out, 4))
    assert numpy.array_equal(out.get(), data.ravel())
    module["mean"](1, 1, (texture, 1.0, 1.0, out))
    assert out.get()[0] == data[:2, :2].mean()
    texture.set(2 * data)
    assert numpy.array_equal(texture.get(), 2 * data)
    assert [row["id"] for row in session.textures()] == [texture.spec["id"]]
    texture.free()
    assert texture.freed and session.textures() == []
    with pytest.raises(errors.ClosedError):
        module["look"](1, 12, (texture, out, 4))


def test_dimensions(session, module):
    box = numpy.random.default_rng(1).integers(0, 256, (2, 3, 5, 4), dtype="u1")
    out = session.empty((2, 3, 5, 4), "i4")
    with session.texture(box, channels=4) as texture:
        assert texture.spec["dimension"] == "3d" and texture.spec["extent"] == [5, 3, 2]
        module["box"](1, (5, 3, 2), (texture, out))
    assert numpy.array_equal(out.get(), box)
    lines = numpy.arange(12, dtype="f2").reshape(3, 4)
    out = session.empty((12,))
    module["layers"](1, 12, (session.texture(lines, dimension="1d_layered"), out))
    assert numpy.array_equal(out.get(), lines.ravel())
    cube = session.texture(numpy.arange(6, dtype="f4").reshape(6, 1, 1), dimension="cube")
    for face, where in enumerate(((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))):
        module["side"](1, 1, (cube, *map(float, where), out))
        assert out.get()[0] == face
    assert session.texture(shape=(12, 4, 4), dtype="f4", dimension="cube_layered").spec["layers"] == 2


def test_a_surface_is_written(session, module):
    texture = session.texture(shape=(3, 4), surface=True)
    texture.set(numpy.arange(12, dtype="f4"))
    module["twice"](1, (4, 3), (texture.surface,))
    assert numpy.array_equal(texture.get().ravel(), 2 * numpy.arange(12))
    with pytest.raises(errors.ArgumentError, match="surface=True"):
        session.texture(shape=(3, 4)).surface


def test_a_buffer_is_read(session, module):
    buffer, out = session.buffer(numpy.arange(256, dtype="f4")), session.empty((4,))
    texture = session.texture(shape=(100,), dtype="f4", buffer=buffer, offset=512)
    module["fetch"](1, 4, (texture, out))
    assert out.get().tolist() == [128, 129, 130, 131]
    with pytest.raises(errors.GpurestError, match="textures read this buffer"):
        buffer.free()
    rows = session.texture(shape=(4, 5), dtype="f4", buffer=buffer, pitch=64)
    assert (rows.nbytes, rows.dtype) == (3 * 64 + 20, None)
    module["look"](1, 4, (rows, out, 2))
    assert out.get().tolist() == [0, 1, 16, 17]


def test_in_batches_and_programs(session, module):
    texture, out = session.texture(numpy.zeros((3, 4), "f4"), surface=True), session.empty((12,))
    with session.batch():
        texture.set(numpy.arange(12, dtype="f4"))
        module["twice"](1, (4, 3), (texture.surface,))
        module["look"](1, 12, (texture, out, 4))
        read, texels = out.get_async(), texture.get_async()
        with pytest.raises(errors.GpurestError, match="batch"):
            texture.free()
        with pytest.raises(errors.GpurestError, match="batch"):
            session.texture(shape=(2, 2))
    assert numpy.array_equal(read.result(), 2 * numpy.arange(12)) and numpy.array_equal(texels.result().ravel(), read.result())
    with session.program() as program:
        module["twice"](1, (4, 3), (texture.surface,))
        module["look"](1, 12, (texture, out, 4))
        program.output("out", out)
    assert numpy.array_equal(program.run()["out"], 4 * numpy.arange(12))


@pytest.mark.parametrize("make, text", [
    (dict(shape=(2, 2), dtype="f8"), "float64"), (dict(data=numpy.zeros((2, 3), "f4"), channels=4), "last axis"),
    (dict(shape=(2, 2, 2, 2)), "does not have the shape"), (dict(shape=(5, 2, 2), dimension="cube"), "(6, n, n)"),
    (dict(), "made of an array"), (dict(shape=(2, 2), data=numpy.zeros(3, "f4")), "12 bytes"), (dict(shape=(2, 2), filter="cubic"), "point, linear")])
def test_what_cannot_be_is_refused(session, make, text):
    with pytest.raises(gpurest.errors.GpurestError, match=text.replace("(", r"\(").replace(")", r"\)")):
        session.texture(**make)


def test_where_it_cannot_stand(session, module):
    texture = session.texture(shape=(2, 2))
    with pytest.raises(errors.ArgumentError, match="has no address"):
        module["pointer"](1, 1, (texture,))
    with pytest.raises(errors.GpurestError):
        texture.fill(1)
    with pytest.raises(errors.ArgumentError, match="one format"):
        texture.view("u1")
    module["pointer"](1, 1, (session.empty((1,)),))


def test_what_nobody_refers_to_is_freed(session, module):
    texture = session.texture(shape=(64,), dtype="f4", buffer=session.buffer(numpy.zeros(64, "f4")))
    assert len(session.textures()) == len(session.buffers()) == 1
    del texture
    with session.batch():
        session.empty((4,))
    session.free_unused()
    assert session.textures() == session.buffers() == []


def test_of_the_asyncio_client(agpu):
    async def use():
        async with agpu, agpu.session() as session:
            module = await session.module(SOURCE)
            texture, out = await session.texture(numpy.arange(12, dtype="f4").reshape(3, 4), surface=True), await session.empty((12,))
            await module["twice"](1, (4, 3), (texture.surface,))
            await module["look"](1, 12, (texture, out, 4))
            assert (await out.get()).tolist() == [2.0 * i for i in range(12)]
            assert (await texture.get()).shape == (3, 4) and len(await session.textures()) == 1
            await texture.free()
            assert await session.textures() == []

    asyncio.run(use())
