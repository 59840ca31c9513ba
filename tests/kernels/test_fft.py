"""Fourier transforms against NumPy's in float64: the error, relative to the norm of the result, is a few roundings per step."""
import pytest

np = pytest.importorskip("numpy")

from arrays import EPSILON  # noqa: E402


def transform(kernels, dtype, x, inverse=False):
    pairs = np.stack((x.real, x.imag), -1)
    batch, n = x.shape
    got = kernels.call("fft", dtype, x=pairs, out=2 * batch * n, n=n, batch=batch, inverse=inverse).reshape(batch, n, 2)
    return got[..., 0] + 1j * got[..., 1]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("n,batch", [(1, 3), (2, 1), (4, 5), (8, 1), (16, 9), (64, 2), (128, 3), (1024, 2), (2048, 1), (4096, 2), (8192, 1), (1 << 15, 1)])
def test_transforms(kernels, dtype, n, batch):
    rng = np.random.default_rng(n)
    kind = np.float32 if dtype == "f32" else np.float64
    x = rng.normal(0, 1, (batch, n)).astype(kind) + 1j * rng.normal(0, 1, (batch, n)).astype(kind)
    for inverse, want in ((False, np.fft.fft(x.astype(np.complex128))), (True, np.fft.ifft(x.astype(np.complex128)))):
        got = transform(kernels, dtype, x, inverse)
        assert np.linalg.norm(got - want) <= 2 * EPSILON[dtype] * (2 + np.log2(n)) * np.linalg.norm(want)


def test_there_and_back(kernels):
    x = np.random.default_rng(0).normal(0, 1, (3, 512)) + 0j
    assert np.abs(transform(kernels, "f64", transform(kernels, "f64", x), True) - x).max() < 1e-14


def test_other_lengths_are_refused(kernels):
    answer, _ = kernels.send("fft", "f32", x=np.zeros(24), out=24, n=12, batch=1, inverse=False)
    assert answer.code == "argument_mismatch" and "power of two" in answer.json()["detail"] and "/args/2" in answer.json()["errors"][0]["pointer"]
    assert kernels.send("fft", "f32", x=np.zeros(24), out=24, n=0, batch=1, inverse=False)[0].code == "argument_mismatch"
