"""Elementwise kernels against NumPy in float64. Tolerances are in units of the dtype's rounding error: f32 functions as CUDA documents them
(at most 4 ulp), half precision with one rounding on top of f32."""
import pathlib

import pytest

np = pytest.importorskip("numpy")
scipy_special = pytest.importorskip("scipy.special")

from arrays import EPSILON, INTEGERS, NUMBERS, NUMPY, REALS, decode, encode  # noqa: E402

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "kernels"
SIZES = (0, 1, 7, 1000, 4099)
UNARY = {"neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square, "reciprocal": np.reciprocal, "sqrt": np.sqrt,
         "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
         "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
         "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
         "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc, "erf": scipy_special.erf,
         "relu": lambda x: np.where(x < 0, 0, x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "silu": lambda x: x / (1 + np.exp(-x)),
         "gelu": lambda x: x / 2 * scipy_special.erfc(-x / np.sqrt(2))}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "floor_div": np.floor_divide, "mod": np.mod, "pow": np.power,
          "min": np.minimum, "max": np.maximum, "hypot": np.hypot, "atan2": np.arctan2, "copysign": np.copysign}
COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
           "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
BITS = {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.5, -3.5]


def values(dtype, n, seed=0):
    rng = np.random.default_rng(seed)
    if dtype in REALS:
        x = rng.normal(0, 2, n)
        x[:len(SPECIAL)] = SPECIAL[:n]
        return decode(encode(x, dtype), dtype)
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool)
    info = np.iinfo(NUMPY[dtype])
    x = rng.integers(info.min, info.max, n, NUMPY[dtype], endpoint=True)
    x[:5] = np.array([0, 1, info.max, info.min, 3], NUMPY[dtype])[:n]
    return x


def check(got, want, dtype, ulps=6):
    want = np.asarray(want)
    if dtype not in REALS:
        np.testing.assert_array_equal(got, want)
        return
    limit = {"f16": 65504.0, "bf16": 3.3895313892515355e38}.get(dtype)
    with np.errstate(over="ignore"):
        want = want.astype(np.float32).astype(np.float64) if dtype == "f32" else want
    if limit:
        want = np.where(np.abs(want) > limit * (1 + EPSILON[dtype]), np.copysign(np.inf, want), want)
    least = {"f16": 2.0 ** -24, "bf16": 1e-38, "f32": 1.5e-45, "f64": 5e-324}[dtype]
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    np.testing.assert_allclose(got[finite], want[finite], rtol=2 * ulps * EPSILON[dtype], atol=ulps * least)


@pytest.mark.parametrize("name", UNARY)
def test_unary(kernels, name):
    dtypes = NUMBERS if name in ("neg", "abs", "sign", "square", "relu") else REALS
    for dtype in dtypes if name in ("neg", "sqrt", "square") else (dtypes[0], "f32", dtypes[-1], "f64", "i32" if "i32" in dtypes else "f32"):
        x = values(dtype, 1000)
        with np.errstate(all="ignore"):
            want = UNARY[name](x)
        # In the tail of gelu the rounding of x / sqrt(2) counts x * x times.
        check(kernels.call(name, dtype, x=x, out=x.size, n=x.size), want, dtype, 64 if name == "gelu" else 8)


@pytest.mark.parametrize("name", BINARY)
def test_binary(kernels, name):
    dtypes = ("f32", "f64", "f16") if name in ("div", "pow", "hypot", "atan2", "copysign") else ("f32", "bf16", "f64", "i8", "i64", "u16", "u64")
    for dtype in dtypes:
        a, b = values(dtype, 1003), values(dtype, 1003, 1)
        if dtype in REALS:
            b[:100] = np.resize(SPECIAL, 100)
            a[:100] = np.repeat(SPECIAL, 10)
        with np.errstate(all="ignore"):
            want = BINARY[name](a, b)
            if dtype in REALS and name in ("floor_div", "mod"):
                narrow = {"f32": np.float32}.get(dtype, np.float32 if dtype == "bf16" else np.float64)
                want = BINARY[name](a.astype(narrow), b.astype(narrow)).astype(np.float64)
        check(kernels.call(name, dtype, a=a, b=b, out=a.size, n=a.size), want, dtype, 16)


@pytest.mark.parametrize("name", COMPARE)
def test_comparison_and_logic(kernels, name):
    for dtype in ("f16", "f32", "i64", "u8", "bool"):
        a, b = values(dtype, 777), values(dtype, 777, 1)
        b[:300] = a[:300]
        np.testing.assert_array_equal(kernels.call(name, dtype, a=a, b=b, out=a.size, n=a.size), COMPARE[name](a, b))


def test_bits(kernels):
    for dtype in INTEGERS:
        a, b = values(dtype, 500), values(dtype, 500, 1)
        for name, by in BITS.items():
            check(kernels.call(name, dtype, a=a, b=b, out=500, n=500), by(a, b), dtype)
        check(kernels.call("bit_not", dtype, x=a, out=500, n=500), ~a, dtype)
        width = NUMPY[dtype](0).itemsize * 8
        by = (np.arange(500) % (width + 2)).astype(NUMPY[dtype])
        wide = [int(v) for v in a]
        left = np.array([(v << int(s)) & (2 ** width - 1) for v, s in zip(wide, by)], np.uint64).astype(f"u{width // 8}").view(NUMPY[dtype])
        check(kernels.call("shl", dtype, a=a, b=by, out=500, n=500), left, dtype)
        check(kernels.call("shr", dtype, a=a, b=by, out=500, n=500), np.array([v >> int(s) for v, s in zip(wide, by)], NUMPY[dtype]), dtype)


def test_questions(kernels):
    x = values("f32", 100)
    for name, of in {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "not": np.logical_not}.items():
        np.testing.assert_array_equal(kernels.call(name, "f32", x=x, out=100, n=100), of(x))


@pytest.mark.parametrize("dtype", [*NUMPY])
@pytest.mark.parametrize("n", SIZES)
def test_fill_and_copy_of_every_type_and_odd_sizes(kernels, dtype, n):
    x = values(dtype, max(n, 1))
    out = kernels.call("copy", dtype, x=x, out=n + 3, n=n)
    np.testing.assert_array_equal(encode(out[:n], dtype), encode(x[:n], dtype))
    untouched = np.frombuffer(b"\xAA" * 8 * 3, NUMPY[dtype])[:3]
    if dtype != "bool":
        np.testing.assert_array_equal(encode(out[n:], dtype), encode(decode(untouched, dtype), dtype))
    value = 1 if dtype == "bool" else 3
    assert (kernels.call("fill", dtype, out=n + 1, n=n, value=value)[:n] == value).all()


def cast_to(x, to):
    if to == "bool" or to in REALS:
        return x != 0 if to == "bool" else decode(encode(x, to), to)
    info = np.iinfo(NUMPY[to])
    if x.dtype.kind != "f":
        return x.astype(NUMPY[to])
    return np.array([0 if np.isnan(v) else info.max if v >= info.max else info.min if v <= info.min else int(v) for v in x], NUMPY[to])


@pytest.mark.parametrize("source", [*NUMPY])
def test_casts(kernels, source):
    x = values(source, 401)
    for to in NUMPY:
        if (source, to) == ("f64", "f16"):
            continue
        with np.errstate(all="ignore"):
            want = cast_to(x, to)
        got = kernels.call(f"cast_{to}", source, x=x, out=401, n=401)
        if to in REALS:
            check(got, want, to, 1)
        else:
            np.testing.assert_array_equal(got, want)


def test_scaled_sums(kernels):
    for dtype in ("f16", "bf16", "f32", "f64", "i32", "u8"):
        x, y = values(dtype, 1001, 3), values(dtype, 1001, 4)
        if dtype in REALS:
            x, y = np.nan_to_num(x, posinf=1, neginf=-1), np.nan_to_num(y, posinf=1, neginf=-1)
        alpha, beta = (2.5, -1.25) if dtype in REALS else (3, 5)
        kind = x.dtype.type
        with np.errstate(over="ignore"):
            sums = kernels.call("axpy", dtype, alpha=alpha, x=x, y=y, n=1001), kernels.call("scale", dtype, x=x, alpha=alpha, beta=beta, out=1001, n=1001)
            for got, summand in zip(sums, (y, kind(beta))):
                want = kind(alpha) * x + summand
                if dtype in REALS: # a cancelled sum keeps the error of its parts
                    near = EPSILON[dtype] * (2 * np.abs(want) + np.abs(alpha * x)) + 2.0 ** -24
                    assert (np.abs(got - want) <= near).all()
                else:
                    np.testing.assert_array_equal(got, want)


def test_clip_and_where(kernels):
    x = values("f32", 300)
    check(kernels.call("clip", "f32", x=x, low=-1, high=0.5, out=300, n=300), np.clip(x, -1, 0.5), "f32")
    for dtype in ("f32", "bool", "u16"):
        a, b = values(dtype, 300), values(dtype, 300, 1)
        c = values("bool", 300)
        np.testing.assert_array_equal(kernels.call("where", dtype, condition=c, a=a, b=b, out=300, n=300), np.where(c, a, b))


@pytest.mark.parametrize("block", [1, 64, 256])
def test_the_source_is_right_in_blocks_of_any_width(kernels, block):
    """Users copy this shape; the service itself launches blocks of FLAT_THREADS."""
    client, session, name = kernels.client, kernels.session, "binary<f32, op_add>"
    source = {"source": (SOURCES / "elementwise.cu").read_text(), "headers": {"common.cuh": (SOURCES / "common.cuh").read_text()},
              "options": ["--std=c++17"], "name_expressions": [name]}
    assert client.put(f"{session}/modules/own", source).status in (200, 201)
    n = 70001
    a, b = np.arange(n, dtype=np.float32), np.full(n, 0.5, np.float32)
    for buffer, data in (("oa", a), ("ob", b), ("oc", np.zeros(n, np.float32))):
        assert client.put_octets(f"{session}/buffers/{buffer}", data.tobytes()).status == 201
    args = [{"buf": "oa"}, {"buf": "ob"}, {"buf": "oc"}, {"u64": n}]
    client.post(f"{session}/launches", {"module": "own", "kernel": name, "grid": [3], "block": [block], "args": args}).expect(200)
    got = np.frombuffer(client.get(f"{session}/buffers/oc/data").body, np.float32)
    for path in ("modules/own", "buffers/oa", "buffers/ob", "buffers/oc"):
        assert client.delete(f"{session}/{path}").status == 204
    np.testing.assert_array_equal(got, a + b)
