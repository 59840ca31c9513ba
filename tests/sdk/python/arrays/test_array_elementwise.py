"""Every elementwise function over every type, and every pair of types, gives NumPy's values, types and shapes."""
import numpy as np
import pytest
from .array_values import DTYPES, FLOATS, INTEGERS, sample, same

BINARY_EXACT = ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "maximum", "minimum", "fmax", "fmin", "equal",
                "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "bitwise_and",
                "bitwise_or", "bitwise_xor"]
FOR_ALL_PAIRS = ["multiply", "divide", "less", "remainder", "logical_xor"]  # one for each rule that finds the types; every function is tested with every type
UNARY_EXACT = ["negative", "absolute", "sign", "square", "reciprocal", "invert", "floor", "ceil", "trunc", "rint", "logical_not", "isnan",
               "isinf", "isfinite", "signbit", "sqrt"]
UNARY_NEAR = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "cbrt", "arcsin",
              "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "deg2rad", "rad2deg"]


def expected(name, *operands):
    """NumPy's result, or the exception that it raises. Before 2.1 NumPy returned floats for floor() of integers."""
    if name in ("floor", "ceil", "trunc") and operands[0].dtype.kind != "f":
        return operands[0]
    with np.errstate(all="ignore"):
        try:
            return getattr(np, name)(*operands)
        except TypeError as error:
            return error


def check(g, name, *operands, exact=True):
    """Queues our operation and returns what to compare later, so that a whole test is one request and one compilation."""
    theirs = expected(name, *operands)
    what = f"{name}({', '.join(str(one.dtype) for one in operands)})"
    if isinstance(theirs, TypeError):
        with pytest.raises(TypeError):
            getattr(g, name)(*[g.asarray(one) for one in operands])
        return None
    return getattr(g, name)(*[g.asarray(one) for one in operands]), theirs, exact, what


def compare(results):
    for found in results:
        if found is not None:
            ours, theirs, exact, what = found
            same(ours, theirs, exact, what=what)


@pytest.mark.parametrize("first", DTYPES)
def test_binary_functions_of_all_pairs_of_types(g, first):
    results = []
    for second in DTYPES:
        a, b = sample(first, seed=1), sample(second, seed=2)[::-1].copy()
        near = (DTYPES.index(second) - DTYPES.index(first)) % len(DTYPES) in (0, 5)
        results += [check(g, name, a, b) for name in (BINARY_EXACT if near else FOR_ALL_PAIRS)]
    compare(results)


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_one_operand(g, dtype):
    a = sample(dtype)
    compare([check(g, name, a) for name in UNARY_EXACT if not (name == "reciprocal" and dtype in INTEGERS)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_transcendental_functions(g, dtype):
    a = np.clip(np.abs(sample(dtype)), 0, 1) if dtype in FLOATS else sample(dtype) % 2
    compare([check(g, name, a.astype(dtype), exact=False) for name in UNARY_NEAR])


@pytest.mark.parametrize("dtype", DTYPES)
def test_floating_functions_of_two_operands(g, dtype):
    a, b = sample(dtype, seed=5), sample(dtype, seed=6)
    if dtype in FLOATS:
        a, b = np.nan_to_num(a, posinf=2, neginf=-2), np.nan_to_num(b, posinf=2, neginf=-2)
    compare([check(g, name, a, b, exact=False) for name in ("arctan2", "hypot", "copysign", "logaddexp")])


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_shifts_also_beyond_the_width(g, dtype):
    a, b = sample(dtype, seed=3), (np.arange(24) * 3 % 70).astype(dtype)
    if dtype.startswith("int"):
        b = np.abs(b)
    compare([check(g, name, a, b) for name in ("left_shift", "right_shift")])


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers(g, dtype):
    base, exponent = sample(dtype, seed=4), (np.arange(24) % 5).astype(dtype)
    with np.errstate(all="ignore"):
        pairs = [(g.power(g.asarray(base), g.asarray(exponent)), np.power(base, exponent), dtype not in FLOATS, dtype)]
        for scalar in (0, 1, 2, 3, 0.5, 1.5, *([2.0] if dtype != "bool" else [])):
            pairs.append((g.asarray(base) ** scalar, base ** scalar, False, f"{dtype} ** {scalar}"))
    compare(pairs)


def test_negative_powers_of_integers_are_an_error_of_that_array_only(g):
    base, bad = g.asarray(np.array([2, 3])), g.asarray(np.array([1, -1]))
    fine, wrong = base * 2, base ** bad
    with pytest.raises(ValueError, match="negative integer powers.*test_array_elementwise"):
        wrong.get()
    with pytest.raises(ValueError, match="negative integer powers"):
        (wrong + 1).get()
    assert fine.tolist() == [4, 6]
    with pytest.raises(ValueError):
        base ** -1


@pytest.mark.parametrize("source", DTYPES)
def test_conversions_between_all_types(g, source):
    a, pairs = sample(source), []
    with np.errstate(all="ignore"):
        for target in DTYPES:
            here = a
            if source in FLOATS and target not in FLOATS and target != "bool":  # elsewhere C does not define the result
                here = np.abs(np.nan_to_num(a, posinf=9, neginf=-9)).astype(source)
            pairs.append((g.asarray(here).astype(target), here.astype(target), True, f"{source} to {target}"))
    compare(pairs)


def test_halves_are_rounded_once_from_doubles(g):
    near = np.array([1 + 2.0 ** -11 + 2.0 ** -40, 1 + 2.0 ** -11, 1 + 3 * 2.0 ** -11 - 2.0 ** -45, 65519.99999, 65520.0, 1e-8, -1e-8, 6e-8])
    with np.errstate(all="ignore"):
        same(g.asarray(near).astype("f2"), near.astype("f2"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_scalars_are_weak(g, dtype):
    a, pairs = sample(dtype), []
    for scalar in (True, 1, -1, 3, 0.5, 300):
        for name in ("add", "multiply", "maximum", "less", "divide", "equal"):
            for turned in (False, True):
                theirs, ours = ((scalar, x) if turned else (x, scalar) for x in (a, g.asarray(a)))
                try:
                    with np.errstate(all="ignore"):
                        expect = getattr(np, name)(*theirs)
                except OverflowError:
                    with pytest.raises(OverflowError):
                        getattr(g, name)(*ours)
                    continue
                pairs.append((getattr(g, name)(*ours), expect, True, f"{name} {dtype} {scalar} {turned}"))
    compare(pairs)


def test_scalars_beyond_a_float_type_are_infinite(g):
    pairs = []
    for dtype in FLOATS:
        a = np.array([1, -2, 0], dtype)
        with np.errstate(all="ignore"):
            for scalar in (1e300, -1e39, 7e4, 1e-320, float("inf"), float("nan"), -0.0, 0.1, 3.4028235677973366e38):
                pairs.append((g.asarray(a) * scalar, a * scalar, True, f"{dtype} {scalar}"))
                pairs.append((g.full(2, scalar, dtype), np.full(2, scalar, dtype), True, f"full {dtype} {scalar}"))
    compare(pairs)


def test_numpy_scalars_have_their_own_type(g):
    a = np.arange(3, dtype="f4")
    same(g.asarray(a) + np.float64(1), a + np.float64(1))
    same(np.float64(1) + g.asarray(a), np.float64(1) + a)
    same(g.asarray(a) * np.int8(2), a * np.int8(2))


def test_signed_and_unsigned_64_bit_integers_compare_exactly(g):
    a, b = np.array([-1, 2 ** 62, 2 ** 63 - 1]), np.array([2 ** 64 - 1, 2 ** 62 + 1, 2 ** 63 - 1], dtype="u8")
    for name in ("less", "less_equal", "equal", "greater"):
        same(getattr(g, name)(g.asarray(a), g.asarray(b)), getattr(np, name)(a, b), what=name)
        same(getattr(g, name)(g.asarray(b), g.asarray(a)), getattr(np, name)(b, a), what=name)


def test_where_clip_round_isclose(g):
    for dtype in ("int16", "float16", "float32", "float64"):
        a, b = sample(dtype, seed=7), sample(dtype, seed=8)
        with np.errstate(all="ignore"):
            same(g.where(g.asarray(a) > g.asarray(b), g.asarray(a), 1), np.where(a > b, a, np.asarray(1, dtype)), what=dtype)
            same(g.asarray(a).clip(-2, 2), a.clip(-2, 2), what=dtype)
            same(g.asarray(a).round(1), a.round(1), exact=False, what=dtype)
            same(g.isclose(g.asarray(a), g.asarray(a + b * 0), equal_nan=True), np.isclose(a, a + b * 0, equal_nan=True), what=dtype)
    assert g.allclose(g.asarray([1.0, 2.0]), g.asarray([1.0, 2.0 + 1e-9])) and not g.allclose(g.asarray([1.0]), g.asarray([1.1]))
    assert g.array_equal(g.arange(3), [0, 1, 2]) and not g.array_equal(g.arange(3), g.arange(4))
    same(g.nan_to_num(g.asarray(sample("float32"))), np.nan_to_num(sample("float32")))
    same(g.round(g.asarray(np.array([15, 25, -35])), -1), np.round(np.array([15, 25, -35]), -1))


def test_operators(g):
    a, b = np.arange(1, 7), np.array([3, 1, 4, 1, 5, 9])
    x, y = g.asarray(a), g.asarray(b)
    pairs = [(x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (x // y, a // b), (x % y, a % b), (x ** y, a ** b), (x & y, a & b),
             (x | y, a | b), (x ^ y, a ^ b), (x << 2, a << 2), (x >> 1, a >> 1), (~x, ~a), (-x, -a), (+x, +a), (abs(-x), abs(-a)),
             (2 - x, 2 - a), (2 / x, 2 / a), (2 // x, 2 // a), (2 ** x, 2 ** a), (7 % x, 7 % a), (1 << x, 1 << a), (3 & x, 3 & a),
             (x == y, a == b), (x != y, a != b), (x < y, a < b), (x >= 3, a >= 3), (divmod(x, y)[0], divmod(a, b)[0])]
    for at, (ours, theirs) in enumerate(pairs):
        same(ours, theirs, what=str(at))


def test_operators_in_place(g):
    a = np.arange(12.0).reshape(3, 4)
    x = g.asarray(a)
    other = x
    for name in ("__iadd__", "__imul__", "__isub__", "__itruediv__"):
        getattr(x, name)(3)
        getattr(a, name)(3)
    x[1:, ::2] += 10
    a[1:, ::2] += 10
    same(x, a)
    assert other is x
    whole = g.arange(4)
    with pytest.raises(TypeError, match="Cannot cast ufunc 'divide' output"):
        whole /= 2
    with pytest.raises(TypeError):
        whole + "text"


def test_out_takes_the_result_converted(g):
    out = g.zeros(3, "f4")
    assert g.add(g.arange(3), 0.5, out=out) is out
    same(out, np.array([0.5, 1.5, 2.5], "f4"))


def test_numpy_functions_and_arrays_meet_ours(g):
    a = np.arange(4.0)
    x = g.asarray(a)
    for ours, theirs in ((np.sin(x), np.sin(a)), (a + x, a + a), (np.add(a, x), a + a), (np.add.reduce(x), np.add.reduce(a)),
                         (np.maximum(x, 2), np.maximum(a, 2)), (a @ x, a @ a)):
        assert isinstance(ours, g.ndarray)
        same(ours, np.asarray(theirs), exact=False)
    with pytest.raises(TypeError, match=r"x\.get\(\)"):
        np.asarray(x)
    with pytest.raises(TypeError):
        np.isnat(x)


def test_other_sessions_arrays_are_refused(g, client):
    with client.session() as other:
        with pytest.raises(g.errors.ArgumentError, match="different sessions"):
            g.ones(3) + g.ones(3, session=other)
