"""Products of matrices against float64. The tensor core paths run on every device here: their sources are compiled as a module with
TENSOR_CORES defined, since the library itself uses them only where the compute capability allows."""
import pathlib

import pytest

np = pytest.importorskip("numpy")

from arrays import EPSILON, NUMPY, REALS, decode, encode  # noqa: E402

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "kernels"
SHAPES = ((1, 1, 1, 1), (1, 3, 5, 2), (1, 64, 64, 64), (1, 65, 130, 33), (2, 128, 64, 48), (1, 200, 100, 7), (3, 17, 9, 40), (1, 140, 132, 16),
          (1, 8, 4, 3001), (2, 3, 1, 512), (1, 30, 13, 1025), (1, 1, 70, 600), (2, 300, 10, 70), (1, 9, 300, 20))


def values(dtype, shape, seed):
    rng = np.random.default_rng(seed)
    if dtype in REALS:
        return decode(encode(rng.normal(0, 1, shape), dtype), dtype)
    info = np.iinfo(NUMPY[dtype])
    return rng.integers(info.min, info.max, shape, NUMPY[dtype], endpoint=True)


def near(a, b, dtype, work=None):
    """Roundings of the sum, at worst one per product; then that of the result."""
    work = work or EPSILON["f64" if dtype == "f64" else "f32"]
    return 2 * EPSILON[dtype] * np.abs(a @ b) + (a.shape[-1] + 2) * work * (np.abs(a) @ np.abs(b)) + 2.0 ** -25


# Whole and partial tiles, with an even and an odd number of pieces of 64 or 32 along k, of which the last may be partial; and more tiles of
# the largest shape than a GPU has multiprocessors.
PIECES = ((1, 128, 64, 64), (1, 256, 128, 192), (1, 130, 72, 136), (2, 128, 128, 352), (1, 264, 272, 320), (1, 2100, 2056, 40))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("shape", PIECES)
def test_the_last_of_many_pieces(kernels, dtype, shape):
    batch, m, n, k = shape
    a, b = values(dtype, (batch, m, k), 1), values(dtype, (batch, k, n), 2)
    for name, allowed in [("matmul", near(a, b, dtype))] + [("matmul_tf32", 2.0 ** -10 * (np.abs(a) @ np.abs(b)))] * (dtype == "f32"):
        got = kernels.call(name, dtype, a=a, b=b, out=batch * m * n, m=m, n=n, k=k, batch=batch).reshape(batch, m, n)
        assert (np.abs(got - a @ b) <= allowed).all()


@pytest.mark.parametrize("dtype", [*REALS, "i8", "u16", "i32", "i64", "u64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_products(kernels, dtype, shape):
    batch, m, n, k = shape
    a, b = values(dtype, (batch, m, k), 1), values(dtype, (batch, k, n), 2)
    got = kernels.call("matmul", dtype, a=a, b=b, out=batch * m * n, m=m, n=n, k=k, batch=batch).reshape(batch, m, n)
    if dtype in REALS:
        assert (np.abs(got - a @ b) <= near(a, b, dtype)).all()
    else:
        np.testing.assert_array_equal(got, a @ b)


def test_nothing_to_sum_and_nothing_to_do(kernels):
    assert (kernels.call("matmul", "f32", a=[1.0], b=[1.0], out=6, m=2, n=3, k=0, batch=1) == 0).all()
    assert kernels.send("matmul", "f32", a=[1.0], b=np.ones(9), out=1, m=0, n=3, k=3, batch=1)[0].status == 200
    assert kernels.send("matmul", "f32", a=np.ones(9), b=np.ones(9), out=9, m=3, n=3, k=3, batch=0)[0].status == 200


def test_large_tiles(kernels):
    """A grid of few blocks uses tiles of 128 x 128."""
    a, b = values("f32", (300, 40), 1), values("f32", (40, 270), 2)
    got = kernels.call("matmul", "f32", a=a, b=b, out=300 * 270, m=300, n=270, k=40, batch=1).reshape(300, 270)
    assert (np.abs(got - a @ b) <= near(a, b, "f32")).all()


def test_what_is_not_finite_stays(kernels):
    a, b = np.ones((4, 4)), np.ones((4, 4))
    a[1, 2], b[0, 3] = np.inf, np.nan
    got = kernels.call("matmul", "f32", a=a, b=b, out=16, m=4, n=4, k=4, batch=1).reshape(4, 4)
    np.testing.assert_array_equal(got, a @ b)


def test_rounded_operands(kernels):
    a, b = values("f32", (70, 50), 1), values("f32", (50, 90), 2)
    got = kernels.call("matmul_tf32", "f32", a=a, b=b, out=6300, m=70, n=90, k=50, batch=1).reshape(70, 90)
    assert (np.abs(got - a @ b) <= 2.0 ** -10 * (np.abs(a) @ np.abs(b))).all()


@pytest.fixture(scope="module")
def forced(kernels):
    """call(function, dtype, blocks, a, b): a kernel of matmul.cu as graphics processors have it, with tensor cores."""
    client, session = kernels.client, kernels.session
    made = {}

    def call(function, dtype, blocks, a, b):
        if function not in made:
            answer = client.post(f"{session}/modules", {"source": (SOURCES / "matmul.cu").read_text(), "options": ["--std=c++17", "-DTENSOR_CORES"],
                                                        "headers": {"common.cuh": (SOURCES / "common.cuh").read_text()}, "name_expressions": [function]})
            assert answer.status in (200, 201), answer
            made[function] = answer.json()["id"]
        (batch, m, k), n = a.shape, b.shape[2]
        for name, data in (("ta", encode(a, dtype).tobytes()), ("tb", encode(b, dtype).tobytes()),
                           ("tc", b"\xAA" * (batch * m * n * NUMPY[dtype](0).itemsize))):
            assert client.put_octets(f"{session}/buffers/{name}", data).status == 201
        args = [{"buf": "ta"}, {"buf": "tb"}, {"buf": "tc"}, *({"u64": v} for v in (m, n, k, batch))]
        client.post(f"{session}/launches", {"module": made[function], "kernel": function, "grid": [blocks], "block": [256], "args": args}).expect(200)
        data = client.get(f"{session}/buffers/tc/data").body
        for name in ("ta", "tb", "tc"):
            assert client.delete(f"{session}/buffers/{name}").status == 204
        return decode(np.frombuffer(data, NUMPY[dtype]), dtype).reshape(batch, m, n)

    return call


@pytest.mark.parametrize("function,dtype", [("matmul<f32>", "f32"), ("matmul<f64>", "f64")])
@pytest.mark.parametrize("blocks", [1, 64])
def test_tiles_of_graphics_processors(forced, function, dtype, blocks):
    """The library on the cpu device has others. One block uses tiles of 128 x 128 of f32, many blocks tiles of 64 x 64; long sums tiles of 8 x 4."""
    for batch, m, n, k in ((1, 1, 1, 1), (2, 130, 70, 40), (1, 300, 200, 33), (1, 8, 4, 3001), (2, 3, 5, 600)):
        a, b = values(dtype, (batch, m, k), 1), values(dtype, (batch, k, n), 2)
        assert (np.abs(forced(function, dtype, blocks, a, b) - a @ b) <= near(a, b, dtype)).all(), (batch, m, n, k)


@pytest.mark.parametrize("blocks", [1, 64])
@pytest.mark.parametrize("function,dtype", [("matmul<f16>", "f16"), ("matmul<bf16>", "bf16"), ("matmul_tf32<f32>", "f32")])
def test_tensor_cores(forced, function, dtype, blocks):
    """One block uses tiles of 256 x 128, many blocks tiles of 128 x 64."""
    for batch, m, n, k in ((1, 16, 8, 16), (1, 256, 128, 64), (1, 300, 200, 104), (2, 130, 72, 40), (1, 70, 33, 19), (1, 1, 1, 1), (1, 5, 6, 200)):
        a, b = values(dtype, (batch, m, k), 1), values(dtype, (batch, k, n), 2)
        got = forced(function, dtype, blocks, a, b)
        want = a @ b
        allowed = 2.0 ** -10 * (np.abs(a) @ np.abs(b)) if dtype == "f32" else near(a, b, dtype)
        assert (np.abs(got - want) <= allowed).all(), (batch, m, n, k, np.abs(got - want).max())
