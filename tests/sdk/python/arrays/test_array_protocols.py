"""Getting values out, printing, DLPack, pickling, buffers and kernels."""
import asyncio
import copy

import numpy as np
import pytest
from .array_values import DTYPES, sample, same


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_come_back_in_every_form(g, dtype):
    a = np.nan_to_num(sample(dtype)[:12]).reshape(3, 4)
    x = g.asarray(a)
    assert x.tolist() == a.tolist() and x.T.tolist() == a.T.tolist()
    assert x.tobytes() == a.tobytes() and x[1, 2].item() == a[1, 2].item() and x.item(1, 2) == x.item(6) == a.item(6)
    assert (x.shape, x.ndim, x.size, x.nbytes, x.itemsize, x.strides, len(x)) == (a.shape, 2, 12, a.nbytes, a.itemsize, a.strides, 3)
    assert x.dtype == a.dtype and x.dtype_str == a.dtype.str
    out = np.empty((3, 4), dtype)
    assert x.get(out=out) is out
    np.testing.assert_array_equal(out, a)


def test_scalars(g):
    assert float(g.asarray(2.5)) == 2.5 and int(g.asarray([3])) == 3 and bool(g.asarray([[True]])) and list(range(5))[g.asarray(2)] == 2
    for wrong in (lambda: bool(g.ones(2)), lambda: float(g.ones(2)), lambda: g.ones(3).item()):
        with pytest.raises(ValueError):
            wrong()
    for wrong in (lambda: len(g.asarray(1)), lambda: iter(g.ones(1000)), lambda: iter(g.ones(())), lambda: hash(g.ones(3))):
        with pytest.raises(TypeError):
            wrong()
    assert 3 in g.arange(5) and 7 not in g.arange(5)


def test_get_refuses_wrong_targets(g):
    x = g.ones((2, 3))
    for out in (np.empty(5), np.empty((3, 2)).T, b"0" * 48):
        with pytest.raises(g.errors.ArgumentError):
            x.get(out=out)


async def test_coroutines_get_values(g):
    first, second = await asyncio.gather((g.arange(3) + 1).aget(), (g.arange(3) * 2).sum().aget())
    assert first.tolist() == [1, 2, 3] and second == 6


def test_set_and_fill(g):
    x = g.zeros((2, 3), "i4")
    x.set(np.arange(6).reshape(2, 3))
    same(x, np.arange(6, dtype="i4").reshape(2, 3))
    x.fill(4)
    x[0].fill(9)
    same(x, np.array([[9] * 3, [4] * 3], "i4"))
    with pytest.raises(ValueError):
        x.set(np.zeros(3))


def test_printing_fetches_little(g, client):
    large = g.arange(10_000_000, dtype="f4").reshape(100, 100, 1000)
    g.flush()
    sizes = []
    client._transport.observers.append(lambda request, response, seconds: sizes.append(len(response.body)))
    text = repr(large) + str(large)
    client._transport.observers.pop()
    assert sizes and max(sizes) < 4096  # the corners that are shown, and the answer's own text
    assert "..." in text and "shape=(100, 100, 1000)" in text and "9999999" in text.replace(".", "").replace("1e+07", "9999999")
    assert repr(g.arange(3)) == "array([0, 1, 2])"
    assert len(str(g.arange(120)).splitlines()) > 1


def test_dlpack_gives_copies_on_the_host_and_nothing_else(g):
    x = g.arange(4, dtype="f4")
    assert x.__dlpack_device__() == (12, 0)
    with pytest.raises(BufferError):
        x.__dlpack__()
    if tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1):  # the first version that can request a copy
        np.testing.assert_array_equal(np.from_dlpack(x, device="cpu", copy=True), np.arange(4, dtype="f4"))


def test_copies(g):
    x = g.arange(3)
    one, other = copy.copy(x), copy.deepcopy(x)
    x += 1
    assert one.tolist() == other.tolist() == [0, 1, 2] and x.tolist() == [1, 2, 3]


def test_kernels_take_arrays_and_their_changes_are_seen(g):
    kernel = g.RawKernel('extern "C" __global__ void twice(float *p, int n) { int i = threadIdx.x; if (i < n) p[i] *= 2; }', "twice")
    x = g.arange(6, dtype="f4") + 1
    kernel((1,), (32,), (x, 6))
    y = x + 0.5
    x += 1
    kernel((1,), (32,), (x[2:], 4))
    same(y, np.arange(1, 7, dtype="f4") * 2 + np.float32(0.5))
    same(x, np.array([3, 5, 14, 18, 22, 26], "f4"))
    with pytest.raises(g.errors.StridesError):
        kernel((1,), (32,), (x[::2], 3))


def test_elementwise_and_reduction_kernels_take_and_give_arrays(g):
    squared = g.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared")
    x = g.arange(6, dtype="f4") * 2
    z = squared(x, g.ones(6, "f4"))
    assert isinstance(z, g.ndarray)
    same(z + 1, (np.arange(6, dtype="f4") * 2 - 1) ** 2 + 1)
    norm = g.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    assert float(norm(x).get()) == pytest.approx(np.linalg.norm(np.arange(6) * 2))


def test_the_buffer_stays_the_same_and_outlives_the_array(g):
    x = g.arange(8, dtype="i4")
    buffer = x.buffer
    x *= 2
    x[:] = x + 1
    g.flush()
    assert x.buffer is buffer and x.id == buffer.id and x[3:].offset_bytes == 12
    np.testing.assert_array_equal(np.frombuffer(bytes(buffer.read()), "i4"), np.arange(8) * 2 + 1)
    del x
    g.flush()
    np.testing.assert_array_equal(np.frombuffer(bytes(buffer.read()), "i4"), np.arange(8) * 2 + 1)


def test_explain_tells_kernels_lines_and_uploads(g):
    x = g.asarray(np.arange(10.0))
    y = g.where(x > 3, g.sin(x), 0).sum()
    text = y.explain()
    assert "greater -> sin -> where -> sum" in text and "test_array_protocols.py:" in text and "1 upload of 80 bytes" in text
    assert repr(text) == str(text)
    y.get()
    assert "nothing is queued" in y.explain()
