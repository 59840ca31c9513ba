"""Reductions against NumPy in float64. Sums of n numbers may be off by a few roundings of the result plus n roundings of a tiny part of the
sum of magnitudes, which plain summation would exceed by far."""
import pytest

np = pytest.importorskip("numpy")

from arrays import EPSILON, INTEGERS, NUMPY, REALS, decode, encode  # noqa: E402

SIZES = (1, 2, 31, 33, 1000, 4097, 100003)
ALL = ("f16", "bf16", "f32", "f64", *INTEGERS, "bool")
WANT = {"min": np.min, "max": np.max, "argmin": np.argmin, "argmax": np.argmax, "any": np.any, "all": np.all}


def values(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    if dtype in REALS:
        return decode(encode(rng.normal(0.5, 1, shape), dtype), dtype)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    info = np.iinfo(NUMPY[dtype])
    return rng.integers(info.min, info.max, shape, NUMPY[dtype], endpoint=True)


def close(got, want, dtype, magnitude, factor=2):
    np.testing.assert_allclose(got, want, rtol=factor * EPSILON[dtype], atol=magnitude)


def wrapped(x, axis=None):
    return np.sum(x.astype(np.int64 if x.dtype.kind == "i" else np.uint64), axis=axis)


def check_sum(got, x, dtype, axis=None):
    if dtype not in REALS:
        np.testing.assert_array_equal(got, wrapped(x, axis))
        return
    own = EPSILON["f64" if dtype == "f64" else "f32"]
    want = np.sum(x.astype(np.longdouble), axis=axis).astype(np.float64)
    # The carried error of a sum is rounded itself: n times the square of a rounding.
    close(got, want, dtype, 2 * own * own * x.size * np.abs(x).sum() + 1e-12 * own)


@pytest.mark.parametrize("dtype", ALL)
def test_sum_of_all(kernels, dtype):
    for n in SIZES:
        x = values(dtype, n, n)
        check_sum(kernels.call("reduce_sum", dtype, x=x, out=1, n=n)[0], x, dtype)
    assert kernels.call("reduce_sum", dtype, x=values(dtype, 1), out=1, n=0)[0] == 0


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", WANT)
def test_choices_of_all(kernels, name, dtype):
    for n in (1, 33, 5001):
        x = values(dtype, n, n)
        assert kernels.call(f"reduce_{name}", dtype, x=x, out=1, n=n)[0] == WANT[name](x), n
    zeros = np.zeros(1000)
    assert kernels.call(f"reduce_{name}", dtype, x=zeros, out=1, n=1000)[0] == WANT[name](zeros)


def test_nan_comes_first_and_the_first_of_equals_is_taken(kernels):
    for dtype in REALS:
        x = np.zeros(3000)
        x[[100, 2000]] = np.nan
        assert kernels.call("reduce_argmin", dtype, x=x, out=1, n=3000)[0] == 100
        assert kernels.call("reduce_argmax", dtype, x=x, out=1, n=3000)[0] == 100
        assert np.isnan(kernels.call("reduce_min", dtype, x=x, out=1, n=3000)[0])
        assert np.isnan(kernels.call("reduce_max", dtype, x=x, out=1, n=3000)[0])
        assert np.isnan(kernels.call("reduce_sum", dtype, x=x, out=1, n=3000)[0])
    x = np.tile([3, 1, 2, 1, 3], 1001)
    assert kernels.call("reduce_argmin", "i32", x=x, out=1, n=x.size)[0] == 1
    assert kernels.call("reduce_argmax", "i32", x=x, out=1, n=x.size)[0] == 0


def test_infinities(kernels):
    x = np.ones(5000)
    x[77] = np.inf
    assert kernels.call("reduce_sum", "f32", x=x, out=1, n=5000)[0] == np.inf
    assert kernels.call("reduce_mean", "f32", x=x, out=1, n=5000)[0] == np.inf
    x[4000] = -np.inf
    assert np.isnan(kernels.call("reduce_sum", "f32", x=x, out=1, n=5000)[0])


def test_a_sum_that_plain_addition_gets_wrong(kernels):
    x = np.full(60001, 2.0 ** -13, np.float32)
    x[0] = 65536
    assert kernels.call("reduce_sum", "f32", x=x, out=1, n=x.size)[0] == np.float32(x.astype(np.float64).sum())


def test_product(kernels):
    for dtype in ("f32", "f64", "i64", "u8"):
        x = values(dtype, 301, 5) if dtype not in REALS else np.linspace(0.9, 1.1, 301)
        x = decode(encode(x, dtype), dtype) if dtype in REALS else x | 1
        got = kernels.call("reduce_prod", dtype, x=x, out=1, n=301)[0]
        if dtype in REALS:
            close(got, np.prod(x), dtype, 0, 600)
        else:
            with np.errstate(over="ignore"):
                assert got == np.prod(x.astype(np.int64 if dtype[0] == "i" else np.uint64))


@pytest.mark.parametrize("dtype", ALL)
def test_mean_and_variance(kernels, dtype):
    for n in (2, 33, 5001):
        x = values(dtype, n, n)
        if dtype == "u64" or dtype == "i64":
            x = (x % 1000).astype(x.dtype)
        wide = x.astype(np.float64)
        unit = dtype if dtype in REALS else "f64"
        work = EPSILON["f32" if dtype in ("f16", "bf16", "f32") else "f64"]
        close(kernels.call("reduce_mean", dtype, x=x, out=1, n=n)[0], wide.mean(), unit, 4 * work * np.abs(wide).mean(), 4)
        for ddof in (0, 1):
            close(kernels.call("reduce_var", dtype, x=x, out=1, n=n, ddof=ddof)[0], wide.var(ddof=ddof), unit, 64 * work * wide.var(ddof=ddof), 4)


def test_variance_far_from_zero(kernels):
    x = (10000 + np.random.default_rng(0).normal(0, 1, 20001)).astype(np.float32)
    got = kernels.call("reduce_var", "f32", x=x, out=1, n=x.size, ddof=0)[0]
    assert abs(got - x.astype(np.float64).var()) < 1e-3


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 17, 1), (5, 1000, 1), (2, 4100, 1), (1, 9, 5), (4, 33, 70), (2, 1, 100), (7, 3, 1)])
def test_along_an_axis(kernels, shape):
    outer, length, inner = shape
    sizes = {"outer": outer, "length": length, "inner": inner}
    for dtype in ("f32", "bf16", "i16", "u64", "bool"):
        x = values(dtype, shape)
        got = kernels.call("reduce_sum_axis", dtype, x=x, out=outer * inner, **sizes).reshape(outer, inner)
        check_sum(got, x, dtype, axis=1)
        for name, of in WANT.items():
            got = kernels.call(f"reduce_{name}_axis", dtype, x=x, out=outer * inner, **sizes).reshape(outer, inner)
            np.testing.assert_array_equal(got, of(x, axis=1), name)
    x = values("f32", shape)
    got = kernels.call("reduce_var_axis", "f32", x=x, out=outer * inner, ddof=0, **sizes).reshape(outer, inner)
    np.testing.assert_allclose(got, x.var(axis=1), rtol=1e-5, atol=1e-10)
    got = kernels.call("reduce_mean_axis", "f32", x=x, out=outer * inner, **sizes).reshape(outer, inner)
    np.testing.assert_allclose(got, x.mean(axis=1), rtol=1e-6, atol=1e-6)


def test_an_axis_without_elements(kernels):
    assert (kernels.call("reduce_sum_axis", "f32", x=[1.0], out=4, outer=2, length=0, inner=2) == 0).all()
    answer, _ = kernels.send("reduce_min_axis", "f32", x=[1.0], out=4, outer=2, length=0, inner=2)
    assert answer.code == "argument_mismatch" and "length" in answer.json()["detail"]


def test_two_streams_do_not_meet(kernels):
    """Both use the module's memory for partial results; each stream has its own."""
    import batch_client
    x = np.ones(50000, np.float32)
    ops = [{"op": "alloc", "as": "$x", "segment": "x"}]
    for i in range(16):
        ops.append({"op": "alloc", "as": f"$o{i}", "size": 4})
    ops.append({"op": "record", "event": "ready"})
    for i in range(16):
        ops += [{"op": "wait", "event": "ready", "stream": f"s{i % 2}"}] if i < 2 else []
        ops.append({"op": "launch", "builtin": "reduce_sum", "dtype": "f32", "stream": f"s{i % 2}",
                    "args": [{"buf": "$x"}, {"buf": f"$o{i}"}, {"u64": 50000 - i}]})
    ops.append({"op": "sync"})
    ops += [{"op": "read", "from": f"$o{i}", "segment": f"o{i}"} for i in range(16)]
    answer = batch_client.send(kernels.client, f"{kernels.session}/batches", {"ops": ops}, {"x": x.tobytes()})
    assert answer.status == 200, answer
    assert [np.frombuffer(answer.segments[f"o{i}"], np.float32)[0] for i in range(16)] == [50000 - i for i in range(16)]
