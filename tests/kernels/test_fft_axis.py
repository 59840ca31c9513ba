"""Fourier transforms along an axis and of lengths that take several passes, against NumPy's in float64. Each of log2(n) stages may add a
few rounding errors to the root mean square of a result."""
import pytest

np = pytest.importorskip("numpy")

from arrays import EPSILON, NUMPY  # noqa: E402


def complex_numbers(shape, seed, dtype="f64"):
    rng = np.random.default_rng(seed)
    real, imaginary = (rng.normal(0, 1, shape).astype(NUMPY[dtype]).astype(np.float64) for _ in range(2))
    return real + 1j * imaginary


def transform(kernels, dtype, x, inverse=False):
    outer, n, inner = x.shape
    parts = np.stack([x.real, x.imag], axis=-1).ravel()
    out = kernels.call("fft_axis", dtype, x=parts, out=parts.size, outer=outer, n=n, inner=inner, inverse=inverse)[:parts.size]
    return out[0::2].reshape(x.shape) + 1j * out[1::2].reshape(x.shape)


def check(kernels, dtype, shape):
    x = complex_numbers(shape, sum(shape), dtype)
    for inverse, function in ((False, np.fft.fft), (True, np.fft.ifft)):
        want = function(x, axis=1)
        size = np.sqrt(np.mean(np.abs(want) ** 2))
        bound = 8 * max(1, np.log2(shape[1])) * EPSILON[dtype] * size + 4 * EPSILON[dtype] * np.abs(want)
        assert (np.abs(transform(kernels, dtype, x, inverse) - want) <= bound).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("n", [2 ** i for i in range(12)])
def test_one_pass(kernels, dtype, n):
    check(kernels, dtype, (3, n, 1))
    check(kernels, dtype, (2, n, 5))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("shape", [(3, 4096, 1), (2, 4096, 7), (1, 2 ** 17, 1), (1, 2 ** 19, 1)])
def test_several_passes(kernels, dtype, shape):
    check(kernels, dtype, shape)


def test_two_axes_by_two_launches(kernels):
    x = complex_numbers((64, 32), 9)
    rows = transform(kernels, "f64", x.reshape(64, 32, 1)).reshape(64, 32)
    both = transform(kernels, "f64", rows.reshape(1, 64, 32)).reshape(64, 32)
    np.testing.assert_allclose(both, np.fft.fft2(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [2048, 8192])
def test_one_tone_and_one_impulse(kernels, n):
    t = np.arange(n)
    got = transform(kernels, "f64", np.exp(2j * np.pi * 77 * t / n).reshape(1, -1, 1)).ravel()
    assert abs(got[77] - n) < 1e-8 and np.abs(np.delete(got, 77)).max() < 1e-8
    np.testing.assert_array_equal(transform(kernels, "f32", (t == 0).astype(complex).reshape(1, -1, 1)), np.ones((1, n, 1)))


def test_nothing_and_what_is_not_finite(kernels):
    assert transform(kernels, "f32", np.zeros((0, 8, 1), complex)).size == 0
    x = complex_numbers((3, 256, 1), 1)
    x[1, 9, 0] = np.nan
    got = transform(kernels, "f32", x)
    assert np.isnan(got[1]).all() and np.isfinite(got[[0, 2]]).all()
