"""Histogram and stencil against NumPy in float64."""
import pytest

np = pytest.importorskip("numpy")

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
