"""Scans against NumPy: integers and choices exactly, sums of reals within a few roundings of the running sum of magnitudes."""
import pytest

np = pytest.importorskip("numpy")

from arrays import EPSILON, NUMPY, REALS, decode, encode  # noqa: E402

SIZES = (0, 1, 5, 128, 4096, 4097, 20011, 70001)


def values(dtype, n, seed=0):
    rng = np.random.default_rng(seed)
    if dtype in REALS:
        return decode(encode(rng.normal(0.1, 1, n), dtype), dtype)
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool)
    info = np.iinfo(NUMPY[dtype])
    return rng.integers(info.min, info.max, n, NUMPY[dtype], endpoint=True)


def accumulated(x):
    return x.astype({"i": np.int64, "u": np.uint64, "b": np.uint64}[x.dtype.kind])


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i8", "i32", "i64", "u16", "u64", "bool"])
def test_sums(kernels, dtype, n):
    x = values(dtype, n, n)
    for exclusive in (False, True):
        got = kernels.call("scan_sum", dtype, x=x, out=n, n=n, exclusive=exclusive)[:n]
        wide = x if dtype in REALS else accumulated(x)
        want = np.cumsum(wide)
        if exclusive:
            want = np.concatenate((np.zeros(1, want.dtype), want))[:n]
        if dtype not in REALS:
            np.testing.assert_array_equal(got, want)
            continue
        work = EPSILON["f64" if dtype == "f64" else "f32"]
        near = 2 * EPSILON[dtype] * np.abs(want) + 32 * work * np.cumsum(np.abs(wide)) + 2.0 ** -25
        assert (np.abs(got - want) <= near).all()


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i8", "u8", "i16", "i32", "u64"])
def test_running_choices(kernels, dtype):
    for n in (1, 1000, 20011):
        x = np.sort(values(dtype, n, n))[::-1] + values(dtype, n, 1) / 4 if dtype in REALS else values(dtype, n, n)
        x = decode(encode(x, dtype), dtype) if dtype in REALS else x
        for name, of in (("min", np.minimum), ("max", np.maximum)):
            np.testing.assert_array_equal(kernels.call(f"scan_{name}", dtype, x=x, out=n, n=n, exclusive=False), of.accumulate(x))
            got = kernels.call(f"scan_{name}", dtype, x=x, out=n, n=n, exclusive=True)
            np.testing.assert_array_equal(got[1:], of.accumulate(x)[:-1])
            edge = {"min": np.inf, "max": -np.inf}[name] if dtype in REALS else getattr(np.iinfo(NUMPY[dtype]), {"min": "max", "max": "min"}[name])
            assert got[0] == edge


def test_products_and_what_is_not_finite(kernels):
    x = np.linspace(0.99, 1.01, 5000)
    np.testing.assert_allclose(kernels.call("scan_prod", "f64", x=x, out=5000, n=5000, exclusive=False), np.cumprod(x), rtol=1e-12)
    x = values("i32", 6000) | 1
    np.testing.assert_array_equal(kernels.call("scan_prod", "i32", x=x, out=6000, n=6000, exclusive=False), np.cumprod(x.astype(np.int64)))
    x = np.ones(9000)
    x[5000] = np.nan
    for name in ("sum", "min", "max"):
        got = kernels.call(f"scan_{name}", "f32", x=x, out=9000, n=9000, exclusive=False)
        assert np.isfinite(got[:5000]).all() and np.isnan(got[5000:]).all(), name


def test_alone_over_http(kernels):
    """A launch outside batches allocates and frees its own scratch memory."""
    client, session = kernels.client, kernels.session
    x = np.arange(30000, dtype=np.int64)
    assert client.put_octets(f"{session}/buffers/x", x.tobytes()).status == 201
    before = client.get(session).json()["usage"]["memory_bytes"]
    for _ in range(3):
        answer = client.post(f"{session}/launches", {"builtin": "scan_sum", "dtype": "i64",
                                                     "args": [{"buf": "x"}, {"buf": "x"}, {"u64": x.size}, {"bool": False}]})
        assert answer.status == 200, answer
        x = np.cumsum(x)
    assert (np.frombuffer(client.get(f"{session}/buffers/x/data").body, np.int64) == x).all()
    assert client.post(f"{session}/sync", {}).status == 200
    for _ in range(100):
        if client.get(session).json()["usage"]["memory_bytes"] == before:
            break
    assert client.get(session).json()["usage"]["memory_bytes"] == before
    assert client.delete(f"{session}/buffers/x").status == 204
