"""Kernels that move elements: exact."""
import pytest

np = pytest.importorskip("numpy")

from arrays import NUMPY, decode, encode  # noqa: E402


def values(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in ("f16", "bf16", "f32", "f64"):
        return decode(encode(rng.normal(0, 5, shape), dtype), dtype)
    return rng.integers(0, 100, shape).astype(NUMPY[dtype])


@pytest.mark.parametrize("dtype", [*NUMPY])
def test_transpose(kernels, dtype):
    for batch, rows, columns in ((1, 1, 1), (1, 33, 65), (3, 100, 7), (2, 32, 64), (0, 4, 4), (1, 0, 5)):
        x = values(dtype, (batch, rows, columns))
        got = kernels.call("transpose", dtype, x=x, out=x.size, rows=rows, columns=columns, batch=batch)
        np.testing.assert_array_equal(got[:x.size].reshape(batch, columns, rows), x.transpose(0, 2, 1))


@pytest.mark.parametrize("dtype", ["u8", "f16", "f32", "f64"])
def test_strided_copy(kernels, dtype):
    x = values(dtype, (5, 6, 7, 8))
    sizes = {"n0": 3, "n1": 7, "n2": 2, "n3": 4, "x0": 336, "x1": 8, "x2": 56 * 3, "x3": 2, "out0": 56, "out1": 8, "out2": 4, "out3": 1}
    got = kernels.call("copy_strided", dtype, x=x, out=3 * 56, **sizes).reshape(3, 7, 2, 4)
    np.testing.assert_array_equal(got, x[:3].transpose(0, 2, 1, 3)[:, :, ::3, ::2])
    spread = {"n0": 1, "n1": 1, "n2": 1, "n3": 9, "x0": 0, "x1": 0, "x2": 0, "x3": 0, "out0": 0, "out1": 0, "out2": 0, "out3": 1}
    np.testing.assert_array_equal(kernels.call("copy_strided", dtype, x=x, out=9, **spread), np.repeat(x.flat[0], 9))


def test_a_stride_that_leaves_the_buffer(kernels):
    sizes = {"n0": 1, "n1": 1, "n2": 2, "n3": 4, "x0": 0, "x1": 0, "x2": 5, "x3": 1, "out0": 0, "out1": 0, "out2": 4, "out3": 1}
    assert kernels.send("copy_strided", "f32", x=np.zeros(9), out=8, **sizes)[0].status == 200
    answer, _ = kernels.send("copy_strided", "f32", x=np.zeros(8), out=8, **sizes)
    assert answer.code == "argument_mismatch" and "x of copy_strided" in answer.json()["detail"]


@pytest.mark.parametrize("dtype", ["bool", "bf16", "f32", "i64"])
def test_gather_and_scatter(kernels, dtype):
    rng = np.random.default_rng(3)
    for rows, width, n in ((1, 1, 1), (50, 3, 77), (9, 100, 0)):
        x = values(dtype, (rows, width))
        index = rng.integers(-rows, rows, n)
        got = kernels.call("gather", dtype, x=x, index=index, out=n * width, n=n, rows=rows, width=width)
        np.testing.assert_array_equal(got[:n * width].reshape(n, width), x[index])
    places = rng.permutation(60)[:40]
    x, out = values(dtype, (40, 3)), values(dtype, (60, 3), 1)
    got = kernels.call("scatter", dtype, x=x, index=places, out=out, n=40, rows=60, width=3).reshape(60, 3)
    out[places] = x
    np.testing.assert_array_equal(got, out)


@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "u32", "i64", "u64"])
def test_scatter_that_adds(kernels, dtype):
    index = np.random.default_rng(4).integers(-7, 7, 500)
    x, out = values("u8", (500, 2)).astype(NUMPY[dtype]), values("u8", (7, 2), 1).astype(NUMPY[dtype])
    got = kernels.call("scatter_add", dtype, x=x, index=index, out=out, n=500, rows=7, width=2).reshape(7, 2)
    np.add.at(out, index, x)
    np.testing.assert_array_equal(got, out)


def test_an_index_out_of_range_is_a_fault(kernels, client):
    from arrays import Kernels
    assert client.put("/v1/sessions/faulty").status == 201
    answer, _ = Kernels(client, "/v1/sessions/faulty").send("gather", "f32", x=np.zeros(4), index=[4], out=1, n=1, rows=4, width=1)
    assert answer.code == "kernel_fault"
    assert client.delete("/v1/sessions/faulty").status == 204
