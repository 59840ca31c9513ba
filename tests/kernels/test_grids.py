"""Histogram, stencil and convolution against NumPy and SciPy in float64."""
import pytest

np = pytest.importorskip("numpy")
scipy_signal = pytest.importorskip("scipy.signal")

from arrays import EPSILON, REALS, decode, encode  # noqa: E402


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "u8", "i64"])
def test_histogram(kernels, dtype):
    rng = np.random.default_rng(0)
    for n, bins in ((0, 3), (1, 1), (30001, 100), (5000, 5000)):
        x = rng.normal(50, 20, n) if dtype in REALS else rng.integers(0, 100, n)
        x = decode(encode(x, dtype), dtype)
        if dtype in REALS and n > 10:
            x[:6] = [np.nan, np.inf, -np.inf, 0, 100, 50]
        x = x.astype(np.float64) if dtype in REALS else x
        counts = kernels.call("histogram", dtype, x=x, counts=np.ones(bins), n=n, bins=bins, low=0, high=100)
        np.testing.assert_array_equal(counts, 1 + np.histogram(x[np.isfinite(x)].astype(np.float64), bins, (0, 100))[0])


@pytest.mark.parametrize("dtype", REALS)
def test_stencil(kernels, dtype):
    weights = {"centre": 0.5, "north": 0.25, "south": -0.125, "west": 1, "east": 2}
    for shape in ((1, 1), (2, 3), (33, 70), (100, 31)):
        x = decode(encode(np.random.default_rng(0).normal(0, 1, shape), dtype), dtype)
        want = x.copy()
        want[1:-1, 1:-1] = (0.5 * x + 0.25 * np.roll(x, 1, 0) - 0.125 * np.roll(x, -1, 0) + np.roll(x, 1, 1) + 2 * np.roll(x, -1, 1))[1:-1, 1:-1]
        got = kernels.call("stencil2d", dtype, x=x, out=x.size, rows=shape[0], columns=shape[1], **weights).reshape(shape)
        np.testing.assert_allclose(got, want, rtol=4 * EPSILON[dtype], atol=16 * EPSILON["f64" if dtype == "f64" else "f32"])


def reference(x, w, stride, padding, out_shape):
    batch, channels, height, width = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding + 50), (padding, padding + 50)))
    out = np.zeros((batch, w.shape[0], *out_shape))
    for b in range(batch):
        for f in range(w.shape[0]):
            full = sum(scipy_signal.correlate2d(padded[b, c], w[f, c], "valid") for c in range(channels))
            out[b, f] = full[::stride, ::stride][:out_shape[0], :out_shape[1]]
    return out


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("shape,filters,stride,padding", [((1, 1, 5, 5), (1, 3, 3), 1, 0), ((2, 3, 17, 20), (9, 3, 3), 1, 1),
                                                          ((1, 2, 30, 21), (4, 5, 2), 3, 2), ((3, 4, 8, 8), (8, 1, 1), 1, 0)])
def test_convolution(kernels, dtype, shape, filters, stride, padding):
    rng = np.random.default_rng(0)
    x = decode(encode(rng.normal(0, 1, shape), dtype), dtype)
    w = decode(encode(rng.normal(0, 1, (filters[0], shape[1], *filters[1:])), dtype), dtype)
    out_shape = tuple((shape[i + 2] + 2 * padding - filters[i + 1]) // stride + 1 for i in (0, 1))
    want = reference(x, w, stride, padding, out_shape)
    got = kernels.call("conv2d", dtype, x=x, filter=w, out=want.size, batch=shape[0], channels=shape[1], height=shape[2], width=shape[3],
                       filters=filters[0], filter_height=filters[1], filter_width=filters[2], out_height=out_shape[0], out_width=out_shape[1],
                       stride=stride, padding=padding)
    np.testing.assert_allclose(got.reshape(want.shape), want, rtol=2 * EPSILON[dtype], atol=200 * EPSILON["f64" if dtype == "f64" else "f32"])
