"""Elementwise functions and reductions with all their options, with random arguments, against NumPy."""
import warnings

import numpy as np
import pytest
from .array_calls import KINDS, NUMBERS, run
from .array_values import same

REDUCED = ["add", "multiply", "maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "gcd",
           "lcm", "hypot", "logaddexp", "logaddexp2", "subtract", "divide", "floor_divide", "remainder", "fmod", "power", "arctan2", "copysign", "left_shift",
           "right_shift", "nextafter", "heaviside", "float_power", "less", "equal"]
INTEGRAL = ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "left_shift", "right_shift")
UNARY = ["positive", "conjugate", "fabs", "bitwise_count", "spacing", "modf", "frexp", "sign", "negative", "absolute", "square", "sqrt", "rint", "floor", "ceil",
         "trunc", "isnan", "isfinite", "signbit", "exp2", "cbrt", "invert", "reciprocal", "logical_not", "deg2rad", "arctan"]
BINARY = ["add", "subtract", "multiply", "divide", "gcd", "lcm", "heaviside", "ldexp", "nextafter", "float_power", "divmod", "logaddexp2", "copysign", "hypot", "fmax",
          "fmin", "maximum", "floor_divide", "remainder", "bitwise_or", "left_shift", "less", "logical_xor", "arctan2", "power"]


def values(d, name, **options):
    """Operands for which results differ by rounding only: no integer overflow of powers and products, no shift by negative numbers."""
    kinds = ["bool", "int8", "int32", "int64", "uint8", "uint16"] if name in INTEGRAL else NUMBERS if name == "spacing" else KINDS
    if name in ("power", "float_power", "left_shift", "right_shift", "lcm"):
        options.update(low=0, high=2)
    a = d.array(kinds, special=name not in ("remainder", "fmod", "floor_divide", "divmod", "power", "float_power"), **options)
    return np.where(a == 0, 1, a).astype(a.dtype) if name in ("floor_divide", "remainder", "fmod", "divmod") else a


def unary(d):
    name = d.one(*UNARY)
    a = values(d, name)
    out = d.array(["float64", "int32"], shape=d.one(a.shape, (2, *a.shape), (7,)), special=False)
    mask, choice = d.mask(a.shape), d.int(0, 5)
    if choice == 0 and name not in ("modf", "frexp"):
        return (lambda n, x, o, m: getattr(n, name)(x, out=o, where=m)), a, out, mask
    if choice == 1 and name not in ("modf", "frexp"):
        return (lambda n, x, o: getattr(n, name)(x, o)), a, out
    if choice == 2 and name in ("sqrt", "floor", "square", "negative"):
        dtype, casting = d.one("f4", "f8", "i4"), d.one("same_kind", "safe", "no", "unsafe")
        return (lambda n, x: getattr(n, name)(x, dtype=dtype, casting=casting)), d.array(["float32", "int32", "float64"], special=False, low=0)
    return (lambda n, x: getattr(n, name)(x)), a


def binary(d):
    name = d.one(*BINARY)
    a = values(d, name)
    if name == "ldexp":
        return (lambda n, x, y: n.ldexp(x, y)), d.array(KINDS), d.array(["int32", "int8", "uint16", "int64", "float32"], shape=(1,), special=False)
    b = values(d, name, shape=d.one(a.shape, a.shape, a.shape[-1:], (1,), ()))
    choice = d.int(0, 4)
    if choice == 0 and name != "divmod":
        out = d.array(["float64", "int32", "bool"], shape=a.shape, special=False)
        casting = d.one("same_kind", "unsafe", "safe")
        return (lambda n, x, y, o: getattr(n, name)(x, y, out=o, casting=casting)), np.nan_to_num(a, posinf=1, neginf=1), np.nan_to_num(b, posinf=1, neginf=1), out
    if choice == 1:
        return (lambda n, x, y: getattr(n, name).outer(x, y)), a, b
    if choice == 2:
        number = d.one(1, 2, 1.5)
        return (lambda n, x: getattr(n, name)(x, number)), a
    return (lambda n, x, y: getattr(n, name)(x, y)), a, b


def reduce(d):
    name = d.one(*REDUCED)
    a = values(d, name, extent=4)
    if name in ("multiply", "power", "float_power", "lcm") and a.dtype.kind != "b":
        a = np.clip(a, 0, 2)
    axis, keep = d.axes(a), bool(d.int(0, 1))
    if d.int(0, 5) == 0 and name in ("add", "multiply", "maximum", "fmin", "logical_or", "bitwise_or", "gcd", "hypot", "subtract"):
        return (lambda n, x: getattr(n, name).reduce(x, axis, initial=3, keepdims=keep)), a
    if d.int(0, 5) == 0 and name in ("add", "maximum", "logical_and", "bitwise_and", "logical_xor", "multiply"):
        initial = {} if d.int(0, 1) and name != "maximum" else {"initial": 1}
        return (lambda n, x, m: getattr(n, name).reduce(x, axis, where=m, **initial)), a, d.mask(a.shape)
    return (lambda n, x: getattr(n, name).reduce(x, axis, keepdims=keep)), a


def accumulate(d):
    name = d.one(*REDUCED)
    a = values(d, name, extent=4)
    if name in ("multiply", "power", "float_power", "lcm") and a.dtype.kind != "b":
        a = np.clip(a, 0, 2)
    axis = d.axis(a, none=False)
    return (lambda n, x: getattr(n, name).accumulate(x, axis or 0)), a


def at(d):
    name = d.one("add", "add", "subtract", "multiply", "maximum", "minimum", "fmax", "bitwise_or", "bitwise_xor", "divide", "remainder", "power", "negative", "invert",
                 "arctan2", "logical_xor")
    a = values(d, name, shape=(5, 3), high=2) if name not in ("add", "maximum") else d.array(KINDS, shape=(5, 3), special=False)
    a = np.nan_to_num(a, posinf=1, neginf=1)
    numbers = d.rng.integers(-5, 5, 6) if d.int(0, 9) else np.array([9])
    key = d.one((numbers,), (numbers, numbers % 3), (slice(1, None),), (d.mask((5,)),))

    def changed(n, x, *more):
        getattr(n, name).at(x, key if len(key) > 1 else key[0], *more)
        return x
    if name in ("negative", "invert"):
        return changed, a
    b = np.nan_to_num(values(d, name, shape=d.one((), (1,)), high=2), posinf=1, neginf=1)
    b = np.asarray(b, a.dtype) if a.dtype.kind == "u" else b  # negative floats as unsigned integers are the device's
    return changed, a, b


def reductions(d):
    a = d.array(KINDS, special=d.int(0, 2) == 0)
    name = d.one("sum", "prod", "min", "max", "mean", "var", "std", "any", "all", "argmax", "argmin", "cumsum", "cumprod", "count_nonzero", "ptp")
    if name in ("prod", "cumprod") and a.dtype.kind != "b":
        a = np.clip(a, 0, 2)
    axis = d.axis(a) if name[:3] in ("arg", "cum") else d.axes(a)
    mask, keep, choice = d.mask(d.one(a.shape, a.shape[-1:], (3, 1))), bool(d.int(0, 1)), d.int(0, 5)
    if choice == 0 and name in ("sum", "prod", "mean", "var", "std", "any", "all"):
        more = {"ddof": 1} if name in ("var", "std") else {}
        return (lambda n, x, m: getattr(n, name)(x, axis=axis, where=m, keepdims=keep, **more)), a, mask
    if choice == 1 and name in ("sum", "prod", "min", "max"):
        return (lambda n, x, m: getattr(n, name)(x, axis=axis, initial=2, where=m)), a, mask
    if choice == 2 and name != "count_nonzero":
        out = d.array(["float64", "int64", "float32"], shape=d.one((), a.shape[1:]), special=False)
        a = np.nan_to_num(a, posinf=1, neginf=1)
        return (lambda n, x, o: getattr(x, name)(axis=0, out=o)) if name != "ptp" else (lambda n, x, o: n.ptp(x, axis=0, out=o)), a, out
    if choice == 3 and name in ("sum", "prod", "mean", "cumsum", "cumprod"):
        dtype = d.one("f8", "f4", "i8", "u1", "?")
        return (lambda n, x: getattr(n, name)(x, axis, dtype=dtype)), np.nan_to_num(a, posinf=1, neginf=1) if a.dtype.kind == "f" and dtype[0] != "f" else a
    more = {} if name[:3] == "cum" else {"keepdims": keep}
    return (lambda n, x: getattr(n, name)(x, axis, **more)), a


def chosen(d):
    a = d.array(NUMBERS)
    name = d.one("clip", "clip max", "round", "nan_to_num", "where", "isclose", "array_equal", "logical out", "matvec", "vecdot", "vecmat", "matmul out", "dot out")
    low, high = d.one(-2, None, 1), d.one(3, None, 2)
    if name == "clip":
        low = None if a.dtype.kind == "u" else low
        return (lambda n, x: n.clip(x, low, high)), a
    if name == "clip max":
        return (lambda n, x: x.clip(max=3)), a
    if name == "round":
        decimals = d.int(-1, 1)
        return (lambda n, x: n.round(x, decimals)), a
    if name == "nan_to_num":
        return (lambda n, x: n.nan_to_num(x, nan=1.0, posinf=7.0)), a
    if name == "where":
        return (lambda n, m, x: n.where(m, x, 2)), d.mask(a.shape), a
    if name in ("isclose", "array_equal"):
        equal = bool(d.int(0, 1))
        return (lambda n, x, y: getattr(n, name)(x, y, equal_nan=equal)), a, a.copy()
    if name in ("matvec", "vecdot", "vecmat"):
        shapes = {"matvec": ((2, 3, 4), (4,)), "vecdot": ((3, 4), (4,)), "vecmat": ((2, 3), (3, 4))}[name]
        return (lambda n, x, y: getattr(n, name)(x, y)), *(d.array(KINDS, shape=one, special=False) for one in shapes)
    shape = d.one((2, 2), (2, 3))
    if name == "logical out":
        return (lambda n, x, o: n.logical_not(x, out=o)), d.array(KINDS, shape=shape), d.array(["bool", "int8"], shape=shape)
    x, y = (d.array(["float64", "int32"], shape=one, special=False) for one in ((2, 4), (4, 3)))
    if name == "matmul out":
        return (lambda n, a, b, o: n.matmul(a, b, out=o)), x, y, d.array(["float64", "int32"], shape=shape, special=False)
    return (lambda n, a, b, o: n.dot(a, b, out=o)), x.astype("f8"), y.astype("f8"), d.array(["float64", "float32"], shape=(2, 3), special=False)


FAMILIES = {"unary": unary, "binary": binary, "reduce": reduce, "accumulate": accumulate, "at": at, "reductions": reductions, "chosen": chosen}


@pytest.mark.parametrize("family", FAMILIES)
def test_functions(g, family):
    run(g, {family: FAMILIES[family]}, 2, relative=2e-3, noisy={"at"})


RARE = {
    "accumulated from below 0": lambda n: [getattr(n, name).accumulate(n.asarray([-8, 2, -3])) for name in ("gcd", "lcm", "hypot", "fmod")],
    "floats for each operand": lambda n: [n.arctan2(n.asarray([1, 2], dtype="i1"), n.asarray([3, 4], dtype="u1")), n.hypot(n.asarray([1, 2], dtype="i2"), n.asarray([3, 4], dtype="u2")),
                                          n.copysign(n.asarray([True, False]), n.asarray([3, 4], dtype="u2")), n.hypot(n.asarray([1, 2], dtype="i1"), 1.5)],
    "more taken from the count than there is": lambda n: [n.var(n.asarray([1.0, 2]), ddof=2), n.var(n.asarray([2.0, 2]), ddof=3), n.std(n.asarray([[1, 2], [3, 5]]), 0, ddof=2),
                                                         n.nanvar(n.asarray([1, 2]), ddof=2), n.nanvar(n.asarray([1.0, 2]), ddof=2)],
    "the closest observation": lambda n: [n.quantile(n.asarray([0, 7, 2, 1, 8], dtype="u1"), q, method="closest_observation") for q in (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)],
}


@pytest.mark.parametrize("what", RARE)
def test_what_random_calls_seldom_meet(g, what):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = RARE[what](np)
    for ours, other in zip(RARE[what](g), theirs):
        same(ours, np.asarray(other), exact=False)


def test_where_places_of_extremes_go(g):
    x = g.asarray([[1, 5], [3, 2]])
    for dtype in ("f8", "u8"):
        with pytest.raises(TypeError, match="Cannot cast"):
            g.argmax(x, 0, out=g.zeros(2, dtype))
    same(g.argmin(x, 0, out=g.zeros(2, "i4")), np.array([0, 1], "i4"))
    for wrong in (lambda: g.positive(x > 1), lambda: +(x > 1)):
        with pytest.raises(TypeError, match="positive"):
            wrong()
    same(+x, x.get())


def test_booleans_have_no_divisors(g):
    x = g.asarray([True, False])
    for function in (g.gcd, g.lcm):
        for wrong in (lambda: function(x, x), lambda: function(x, True), lambda: function.reduce(x), lambda: function.accumulate(x), lambda: function.outer(x, x)):
            with pytest.raises(TypeError, match="not supported for the input types"):
                wrong()
        same(function(x, x.astype("i1")), np.array([1, 0], "i1"))


def test_floats_are_added_to_places_that_many_name(g):
    rng = np.random.default_rng(4)
    places, weights = rng.integers(0, 7, 5000), rng.normal(size=5000)
    for kind in ("f4", "f8", "f2", "i8", "i4", "u1"):
        ours, theirs = g.zeros(7, kind), np.zeros(7, kind)
        more = weights.astype(kind) if kind[0] == "f" else (weights * 10).astype("i1").astype(kind)
        g.add.at(ours, places, more)
        np.add.at(theirs, places, more)
        np.testing.assert_allclose(ours.get(), theirs, rtol=1e-3 if kind != "f2" else 0.2, atol=1e-3 if kind != "f2" else 1)


@pytest.mark.parametrize("length", [1, 4097, 70_001])
def test_long_rows(g, length):
    """What is cut into pieces for several blocks."""
    rng = np.random.default_rng(6)
    a = rng.integers(1, 100, (2, length)).astype("i4")
    x = g.asarray(a)
    for name in ("maximum", "minimum", "bitwise_xor", "gcd", "logical_xor"):
        ours, theirs = getattr(g, name), getattr(np, name)
        np.testing.assert_array_equal(ours.reduce(x, axis=1).get(), theirs.reduce(a, axis=1))
        np.testing.assert_array_equal(ours.accumulate(x, axis=1).get(), theirs.accumulate(a, axis=1))
        np.testing.assert_array_equal(ours.accumulate(x[0]).get(), theirs.accumulate(a[0]))
    np.testing.assert_array_equal(g.subtract.reduce(x, axis=1).get(), np.subtract.reduce(a, axis=1))
    np.testing.assert_array_equal(g.median(x, axis=1).get(), np.median(a, axis=1))
    np.testing.assert_array_equal(g.bincount(x[1]).get(), np.bincount(a[1]))
    np.testing.assert_array_equal(g.searchsorted(g.sort(x[0]), x[1]).get(), np.searchsorted(np.sort(a[0]), a[1]))


def test_halves_next_to_each_other(g):
    every = np.arange(0, 1 << 16, 7, dtype="u2").view("f2")
    x = g.asarray(every)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(g.spacing(x).get(), np.spacing(every))
        for to in (-1.0, 0.0, 70000.0):
            np.testing.assert_array_equal(g.nextafter(x, np.float16(to)).get(), np.nextafter(every, np.float16(to)))
