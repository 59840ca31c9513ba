"""Random numbers against a Philox in Python: bits and uniform numbers exactly, normal ones within a few roundings of their computation."""
import pytest

np = pytest.importorskip("numpy")
stats = pytest.importorskip("scipy.stats")

from arrays import EPSILON, INTEGERS, NUMPY, REALS, decode, encode  # noqa: E402

MASK = 0xFFFFFFFF


def philox(seed, counter):
    k0, k1 = seed & MASK, seed >> 32
    c = [counter & MASK, counter >> 32, 0, 0]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & MASK, (p0 >> 32) ^ c[3] ^ k1, p0 & MASK]
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c


def test_the_model_is_philox():
    """Known answers of the authors' library, Random123."""
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def words(seed, offset, n):
    return np.array([philox(seed, i // 4)[i % 4] for i in range(offset, offset + n)], np.uint64)


@pytest.mark.parametrize("n,offset", [(0, 0), (1, 0), (7, 0), (1001, 4), (1000, 3), (5, 2 ** 40 + 1)])
def test_bits(kernels, n, offset):
    seed = 0x123456789ABCDEF
    np.testing.assert_array_equal(kernels.call("random_bits", "u32", out=n, n=n, seed=seed, offset=offset)[:n], words(seed, offset, n))


def wide_words(seed, offset, n):
    w = words(seed, 2 * offset, 2 * n)
    return w[::2] << np.uint64(32) | w[1::2]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("n,offset", [(0, 0), (1, 3), (1001, 5)])
def test_bits_of_every_width(kernels, dtype, n, offset):
    width = NUMPY[dtype](0).itemsize
    out = kernels.call("random_bits", dtype, out=n + 2, n=n, seed=99, offset=offset)
    want = (wide_words if width == 8 else words)(99, offset, n)
    np.testing.assert_array_equal(out[:n], want.astype(f"u{width}").view(NUMPY[dtype]))
    assert (out[n:].view(np.uint8) == 0xAA).all()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_a_range(kernels, dtype):
    low, high = (-7, 12) if dtype[0] == "i" else (5, 24)
    got = kernels.call("random_integers", dtype, out=9500, n=9500, seed=11, offset=1, low=low, high=high)
    np.testing.assert_array_equal(got, np.array([low + (int(w) * (high - low) >> 64) for w in wide_words(11, 1, 9500)], NUMPY[dtype]))
    assert stats.chisquare(np.bincount(got.astype(int) - low, minlength=high - low)).pvalue > 1e-4


def test_integers_of_the_widest_and_the_narrowest_range(kernels):
    info = np.iinfo(np.int64)
    got = kernels.call("random_integers", "i64", out=1000, n=1000, seed=1, offset=0, low=info.min, high=info.max)
    assert got.min() < info.min // 2 and got.max() > info.max // 2
    for high in (200, 201):
        assert (kernels.call("random_integers", "u8", out=100, n=100, seed=1, offset=0, low=200, high=high) == 200).all()


@pytest.mark.parametrize("dtype", REALS)
def test_uniform(kernels, dtype):
    for offset in (0, 1):
        got = kernels.call("random_uniform", dtype, out=801, n=801, seed=42, offset=offset)
        if dtype == "f64":
            w = words(42, 2 * offset, 1602)
            want = ((w[::2] << np.uint64(32) | w[1::2]) >> np.uint64(11)) * 2.0 ** -53
        else:
            bits = {"f16": 11, "bf16": 8, "f32": 24}[dtype]
            want = (words(42, offset, 801) >> np.uint64(32 - bits)) * 2.0 ** -bits
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", REALS)
def test_normal(kernels, dtype):
    got = kernels.call("random_normal", dtype, out=800, n=800, seed=7, offset=0)
    if dtype == "f64":
        w = words(7, 0, 1600)
        u = ((w[::2] << np.uint64(32) | w[1::2]) >> np.uint64(11)) * 2.0 ** -53
    else:
        u = (words(7, 0, 800) >> np.uint64(8)) * 2.0 ** -24
    radius, angle = np.sqrt(-2 * np.log(1 - u[::2])), 2 * np.pi * u[1::2]
    want = np.stack((radius * np.cos(angle), radius * np.sin(angle)), 1).ravel()
    work = EPSILON["f64" if dtype == "f64" else "f32"]
    np.testing.assert_allclose(got, decode(encode(want, dtype), dtype) if dtype == "f64" else want, rtol=2 * EPSILON[dtype], atol=16 * work)


def test_moments(kernels):
    x = kernels.call("random_normal", "f32", out=200000, n=200000, seed=1, offset=0)
    assert abs(x.mean()) < 0.01 and abs(x.var() - 1) < 0.02 and abs((x ** 4).mean() - 3) < 0.15
    x = kernels.call("random_uniform", "f32", out=200000, n=200000, seed=1, offset=0)
    assert 0 <= x.min() and x.max() < 1 and abs(x.mean() - 0.5) < 0.005
