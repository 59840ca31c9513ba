"""What the device's libraries do as built-in kernels, by the measures that ours are held to: OpenBLAS and FFTW on the cpu device, cuBLASLt and cuFFT on
a GPU. Only where a device has them; that sizes, strides and batches come to NVIDIA's as they were meant is tested everywhere, on fakes
(tests/unit/device/cuda/vendor/vendor_test.c, tests/service/test_engines.py). Factorizations are in test_matrices.py, by both engines."""
import pytest

np = pytest.importorskip("numpy")

import test_fft  # noqa: E402
import test_matmul  # noqa: E402
from arrays import EPSILON, REALS, decode, encode, has_library  # noqa: E402



@pytest.fixture
def supports(client):
    """Skips the test where the device's library does not take the dtype."""
    def check(kernel, dtype):
        if not has_library(client, kernel, dtype):
            pytest.skip(f"the device's library has no {kernel} of {dtype}")
    return check


SHAPES = [*test_matmul.SHAPES, (1, 1, 1000, 1000), (1, 1000, 1, 1000), (1, 8, 4, 50000), (5, 127, 255, 63), (1, 513, 511, 1025)]
LENGTHS = [(2, 1), (4, 5), (8, 1), (16, 9), (64, 2), (1024, 100), (8192, 1), (1 << 15, 3), (1 << 20, 1)]


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("shape", SHAPES)
def test_products(libraries, supports, dtype, shape):
    supports("matmul", dtype)
    test_matmul.test_products(libraries, dtype, shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_tf32_products(libraries, shape):
    batch, m, n, k = shape
    a, b = test_matmul.values("f32", (batch, m, k), 1), test_matmul.values("f32", (batch, k, n), 2)
    got = libraries.call("matmul_tf32", "f32", a=a, b=b, out=batch * m * n, m=m, n=n, k=k, batch=batch).reshape(batch, m, n)
    assert (np.abs(got - a @ b) <= 2.0 ** -10 * (np.abs(a) @ np.abs(b)) + test_matmul.near(a, b, "f32")).all()


@pytest.mark.parametrize("dtype", REALS)
def test_rows_with_gaps_and_an_operand_for_all(libraries, supports, dtype):
    supports("matmul_strided", dtype)
    batch, m, n, k, lda, ldb, ldc = 3, 30, 50, 40, 64, 52, 57
    a, b = test_matmul.values(dtype, (batch, m, lda), 1), test_matmul.values(dtype, (k, ldb), 2)
    got = libraries.call("matmul_strided", dtype, a=a, b=b, out=batch * m * ldc, m=m, n=n, k=k, batch=batch, lda=lda, ldb=ldb, ldc=ldc, a_batch=m * lda,
                         b_batch=0, out_batch=m * ldc).reshape(batch, m, ldc)
    assert (np.abs(got[:, :, :n] - a[:, :, :k] @ b[:, :n]) <= test_matmul.near(a[:, :, :k], b[:, :n], dtype)).all()


@pytest.mark.parametrize("dtype", REALS)
def test_what_is_no_number_stays_none(libraries, supports, dtype):
    supports("matmul", dtype)
    a, b = np.ones((4, 8)), np.ones((8, 4))
    a[1, 2], a[2, 3] = np.nan, np.inf
    got = libraries.call("matmul", dtype, a=a, b=b, out=16, m=4, n=4, k=8, batch=1).reshape(4, 4)
    assert np.isnan(got[1]).all() and np.isposinf(got[2]).all() and (got[[0, 3]] == 8).all()


def test_sums_of_half_precision_are_kept_in_f32(libraries, supports):
    supports("matmul", "f16")
    k = 4096
    a, b = np.ones((1, k)), np.full((k, 1), 2.0 ** -11)
    a[0, 0], b[0, 0] = 1, 1
    got = libraries.call("matmul", "f16", a=a, b=b, out=1, m=1, n=1, k=k, batch=1)
    assert abs(got[0] - decode(encode([1 + (k - 1) * 2.0 ** -11], "f16"), "f16")[0]) <= 2 * EPSILON["f16"] * 4


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("n,batch", LENGTHS)
def test_transforms(libraries, dtype, n, batch):
    test_fft.test_transforms(libraries, dtype, n, batch)


@pytest.mark.parametrize("n,inner", [(2, 3), (64, 5), (1024, 300)])
def test_transforms_along_the_first_axis(libraries, n, inner):
    rng = np.random.default_rng(n)
    x = rng.normal(0, 1, (n, inner)) + 1j * rng.normal(0, 1, (n, inner))
    got = libraries.call("fft_axis", "f64", x=np.stack((x.real, x.imag), -1), out=2 * n * inner, outer=1, n=n, inner=inner, inverse=False)
    got = got.reshape(n, inner, 2)
    want = np.fft.fft(x, axis=0)
    assert np.linalg.norm(got[..., 0] + 1j * got[..., 1] - want) <= 2 * EPSILON["f64"] * (2 + np.log2(n)) * np.linalg.norm(want)


def test_the_same_numbers_every_time(libraries):
    a, b = test_matmul.values("f32", (300, 700), 1), test_matmul.values("f32", (700, 200), 2)
    first, second = (libraries.call("matmul", "f32", a=a, b=b, out=60000, m=300, n=200, k=700, batch=1) for _ in range(2))
    np.testing.assert_array_equal(first, second)
