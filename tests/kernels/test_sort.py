"""Sorting against NumPy's stable sort: exact."""
import pytest

np = pytest.importorskip("numpy")

from arrays import NUMPY, REALS, decode, encode  # noqa: E402

SIZES = (0, 1, 2, 255, 4096, 4097, 30011)


def values(dtype, n, seed=0):
    rng = np.random.default_rng(seed)
    if dtype in REALS:
        x = rng.normal(0, 100, n)
        x[:4] = [np.inf, -np.inf, 3, 3][:n]
        return decode(encode(x, dtype), dtype)
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool)
    info = np.iinfo(NUMPY[dtype])
    return rng.integers(info.min, info.max, n, NUMPY[dtype], endpoint=True)


@pytest.mark.parametrize("dtype", [*NUMPY])
def test_keys(kernels, dtype):
    for n in SIZES:
        x = values(dtype, n, n)
        for descending in (False, True):
            got = kernels.call("sort", dtype, x=x, out=n, n=n, descending=descending)[:n]
            np.testing.assert_array_equal(got, np.sort(x)[::-1] if descending else np.sort(x))


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i8", "u16", "i32", "u64", "bool"])
def test_pairs_keep_the_order_of_equals(kernels, dtype):
    for n in (1, 2049, 20011):
        x = values(dtype, n, n)
        if dtype not in ("bool", "i8"):
            x = (x // 2 ** 10 % 50 if x.dtype.kind != "f" else np.rint(x / 20)).astype(x.dtype) + 0
        order = np.arange(n, dtype=np.uint32)
        keys, values_out = kernels.call("sort_pairs", dtype, x=x, values=order, out=n, values_out=n, n=n, descending=False)
        want = np.argsort(x, kind="stable")
        np.testing.assert_array_equal(keys, x[want])
        np.testing.assert_array_equal(values_out, want)
        keys, values_out = kernels.call("sort_pairs", dtype, x=x, values=order, out=n, values_out=n, n=n, descending=True)
        want = np.argsort(-x.astype(np.float64), kind="stable") if dtype in REALS else np.argsort((~x.astype(np.uint64) if dtype == "u64" else -x.astype(np.int64)), kind="stable")
        np.testing.assert_array_equal(values_out, want)


def test_nan_and_the_two_zeros(kernels):
    x = np.array([1, np.nan, 0.0, -0.0, -np.nan, -np.inf, np.inf, -1])
    for dtype in REALS:
        got = kernels.call("sort", dtype, x=x, out=8, n=8, descending=False)
        np.testing.assert_array_equal(got, [-np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan, np.nan])
        assert list(np.signbit(got[2:4])) == [True, False]
        assert np.isnan(kernels.call("sort", dtype, x=x, out=8, n=8, descending=True)[:2]).all()


def test_keys_that_are_all_the_same_or_in_order_already(kernels):
    for x in (np.full(9000, 7), np.arange(9000), np.arange(9000)[::-1]):
        np.testing.assert_array_equal(kernels.call("sort", "i32", x=x, out=9000, n=9000, descending=False), np.sort(x))


def test_counting_up(kernels):
    np.testing.assert_array_equal(kernels.call("iota", "u32", out=1000, n=1000, start=5, step=3), 5 + 3 * np.arange(1000))
    np.testing.assert_array_equal(kernels.call("iota", "f32", out=1000, n=1000, start=1, step=-0.5), 1 - 0.5 * np.arange(1000))
