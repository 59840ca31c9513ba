"""Complex numbers against NumPy: types, values, branch cuts and special values, warnings and refusals; and without NumPy."""
import json
import os
import pathlib
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from .array_calls import COMPLEX, FLOATS, Comparison, run
from .array_values import RELATIVE, same, sample

SDK = pathlib.Path(__file__).resolve().parents[4] / "sdk" / "python"
KINDS = [*COMPLEX, *COMPLEX, "bool", "int8", "int32", "uint16", "int64", "float16", "float32", "float64"]
UNARY = ["positive", "negative", "conjugate", "absolute", "sign", "square", "reciprocal", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos",
         "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "rint", "isnan", "isinf", "isfinite", "logical_not"]
REFUSED_UNARY = ["floor", "ceil", "trunc", "cbrt", "deg2rad", "rad2deg", "fabs", "spacing", "signbit", "invert", "frexp", "modf", "bitwise_count"]
BINARY = ["add", "subtract", "multiply", "divide", "power", "float_power", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "maximum", "minimum",
          "fmax", "fmin", "logical_and", "logical_or", "logical_xor"]
REFUSED_BINARY = ["floor_divide", "remainder", "fmod", "divmod", "arctan2", "hypot", "copysign", "logaddexp", "logaddexp2", "heaviside", "nextafter", "ldexp",
                  "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]
ARITHMETIC = ("add", "subtract", "multiply", "divide")


def at_least_one_complex(d, *shapes, **options):
    """Arrays of which one is complex."""
    first = d.int(0, len(shapes) - 1)
    return [d.array(COMPLEX if at == first else KINDS, shape=shape, **options) for at, shape in enumerate(shapes)]


def unary(d):
    name = d.one(*UNARY)
    exact = name in ("positive", "negative", "conjugate", "absolute", "sign", "rint", "isnan", "isinf", "isfinite", "logical_not", "sqrt", "square")
    a = d.array(COMPLEX, special=exact, low=-5, high=5)
    return (lambda n, x: getattr(n, name)(x)), a


def binary(d):
    name = d.one(*BINARY)
    powers = name in ("power", "float_power")
    shape = d.shape()
    a, b = at_least_one_complex(d, shape, d.one(shape, shape[-1:], ()), special=name not in (*ARITHMETIC, "power", "float_power"), low=-5, high=5)
    if name == "divide":
        b = np.where(b == 0, 1, b).astype(b.dtype)
    if powers:  # 0 to a negative power and real numbers to whole ones are told elsewhere
        a = np.where(a == 0, 1, a).astype(np.promote_types(a.dtype, np.complex64))
    choice, number = d.int(0, 4), d.one(2, True, 1.5, 2j, 1 - 0.5j, np.float32(2), np.complex64(1j), np.complex128(2))
    if choice == 0:
        return (lambda n, x: getattr(n, name)(x, number)), a
    if choice == 1 and not powers:
        return (lambda n, x: getattr(n, name)(number, x)), np.where(b == 0, 1, b).astype(b.dtype)
    if choice == 2 and not powers:
        return (lambda n, x, y: getattr(n, name).outer(x, y)), a, b
    return (lambda n, x, y: getattr(n, name)(x, y)), a, b


def refused(d):
    if d.int(0, 1):
        name = d.one(*REFUSED_UNARY)
        return (lambda n, x: getattr(n, name)(x)), d.array(COMPLEX)
    name, shape = d.one(*REFUSED_BINARY), d.shape()
    a, b = at_least_one_complex(d, shape, shape)
    return (lambda n, x, y: getattr(n, name)(x, y)), a, b


def reduce(d):
    name = d.one("sum", "prod", "min", "max", "mean", "var", "std", "any", "all", "argmax", "argmin", "cumsum", "cumprod", "count_nonzero", "ptp", "nansum", "nanmax",
                 "nanmean", "nanvar")
    a = d.array(COMPLEX, special=name in ("any", "all", "argmax", "argmin", "count_nonzero", "nansum", "sum"), low=-3, high=3, extent=4)
    axis = d.axis(a) if name[:3] in ("arg", "cum") else d.axes(a)
    choice, keep = d.int(0, 5), bool(d.int(0, 1))
    if choice == 0 and name in ("sum", "prod", "mean", "any", "all", "var"):
        return (lambda n, x, m: getattr(n, name)(x, axis=axis, where=m, keepdims=keep)), a, d.mask(a.shape)
    if choice == 1 and name in ("sum", "prod", "min", "max"):
        return (lambda n, x: getattr(n, name)(x, axis=axis, initial=2 - 1j)), a
    if choice == 2 and name in ("sum", "prod", "mean", "cumsum"):
        dtype = d.one("c8", "c16", "f8", "f4")
        return (lambda n, x: getattr(n, name)(x, axis, dtype=dtype)), a
    more = {} if name[:3] == "cum" else {"keepdims": keep}
    return (lambda n, x: getattr(n, name)(x, axis, **more)), a


def methods(d):
    name = d.one("add", "subtract", "multiply", "maximum", "minimum", "divide", "logical_or", "fmax")
    a = d.array(COMPLEX, shape=(4, 3), special=False, low=1, high=4)
    how = d.one("reduce", "accumulate", "at")
    if how != "at":
        axis = d.int(0, 1)
        return (lambda n, x: getattr(getattr(n, name), how)(x, axis)), a
    places = d.rng.integers(-4, 4, 7)
    name = "add" if name == "logical_or" else name

    def changed(n, x, y):
        getattr(n, name).at(x, places, y)
        return x
    return changed, a, d.array([*COMPLEX[:1 + (a.dtype.itemsize == 16)], "float32"], shape=(7, 1), special=False, low=1)


def order(d):
    name = d.one("sort", "argsort", "searchsorted", "unique", "median", "clip", "partition", "sort_complex", "maximum.reduce")
    if name == "searchsorted":
        line, values = np.sort(d.array(COMPLEX, shape=(9,))), d.array(COMPLEX, shape=(5,))
        side = d.one("left", "right")
        return (lambda n, x, y: n.searchsorted(x, y, side)), line, values
    a = d.array(COMPLEX, shape=(d.int(1, 3), d.int(1, 40)), low=-2, high=2, special=name not in ("median", "unique"))
    if name == "argsort":
        return (lambda n, x: n.argsort(x, axis=-1, kind="stable")), a
    if name == "clip":
        return (lambda n, x: n.clip(x, -1, 1 + 1j)), a
    if name == "unique":
        return (lambda n, x: n.unique(x, return_counts=True, return_inverse=True)), a
    if name == "partition":
        return (lambda n, x: n.sort(n.partition(x, 0))), a
    if name == "maximum.reduce":
        return (lambda n, x: n.maximum.reduce(x, 1)), np.nan_to_num(a)
    return (lambda n, x: getattr(n, name)(x)), a


def products(d):
    name = d.one("matmul", "matmul", "dot", "vdot", "inner", "outer", "tensordot", "einsum", "vecdot", "matvec", "vecmat", "trace", "kron", "cross")
    shapes = {"matmul": d.one(((3, 4), (4, 2)), ((2, 3, 4), (4, 5)), ((4,), (4, 2)), ((2, 4), (4,)), ((5, 1, 2, 3), (2, 3, 4)), ((2, 0), (0, 3)), ((1, 2), (2, 0))),
              "dot": ((3, 4), (4,)), "vdot": ((3, 4), (3, 4)), "inner": ((2, 3), (4, 3)), "outer": ((3,), (4,)), "tensordot": ((3, 4, 2), (4, 2, 5)),
              "einsum": ((3, 4), (4, 5)), "vecdot": ((2, 3), (3,)), "matvec": ((2, 3, 4), (4,)), "vecmat": ((3,), (3, 4)), "trace": ((3, 3), (1,)),
              "kron": ((2, 2), (2, 3)), "cross": ((4, 3), (3,))}[name]
    a, b = at_least_one_complex(d, *shapes, special=False)
    if name == "trace":
        return (lambda n, x, y: n.trace(x, 1)), a, b
    if name == "einsum":
        subscripts = d.one("ij,jk->ik", "ij,jk->ki", "ij,jk->j", "ij,jk->")
        return (lambda n, x, y: n.einsum(subscripts, x, y)), a, b
    turned = name == "matmul" and a.ndim == 2 and bool(d.int(0, 1))
    return (lambda n, x, y: getattr(n, name)(x.T.copy().T if turned else x, y)), a, b


def parts(d):
    """Views of parts, indexing and assignment, joining."""
    a = d.array(COMPLEX, shape=(d.int(1, 4), d.int(2, 5)), special=False)
    number, kind = d.int(0, a.shape[0] - 1), d.int(0, 11)
    value = d.one(2, 1.5, 2j, True)
    real = np.asarray(d.rng.integers(-5, 5, a.shape), d.one("i4", "f4", "f8"))

    def written(n, x, y):
        if kind == 0:
            x.real[number] = y[number]
        elif kind == 1:
            x.imag = y
        elif kind == 2:
            x[:, ::2] = value
        elif kind == 3:
            x.imag[...] = x.real + 1
        elif kind == 4:
            x[x.real > 0] = value
        elif kind == 5:
            x[[0, -1]] = y[0] * value
        elif kind == 6:
            x += y
        elif kind == 7:
            x.real *= 2
        elif kind == 8:
            x[number:] = n.conj(x)[number:] * value
        elif kind == 9:
            x.T[1] = 1j
        elif kind == 10:
            return n.concatenate([x, y]), n.stack([x.real, y], 1), n.where(y > 0, x, y), n.where(y > 0, 1j, y)
        else:
            return x.real, x.imag, x[::-1].imag, x.T.real, x.real[:, 1], x[[0, -1], 1], n.real(x), n.imag(x), n.angle(x), n.conj(x).T, x[None].imag[..., 0]
        return x, x.real + x.imag
    return written, a, real


def routines(d):
    name = d.one("angle", "iscomplex", "isreal", "real_if_close", "nan_to_num", "isclose", "array_equal", "round", "diff", "gradient", "convolve", "correlate", "interp",
                 "average", "cov", "corrcoef", "polyval", "poly", "vander", "pad", "roll", "select", "sinc", "trapezoid", "full", "arange", "linspace", "astype", "isin",
                 "cumulative_sum", "ediff1d", "count_nonzero", "nonzero", "tril", "diag", "flip", "repeat", "histogram weights", "copyto", "putmask", "common_type")
    a = d.array(COMPLEX, shape=(6,), special=name in ("nan_to_num", "isclose", "iscomplex", "isreal", "count_nonzero"))
    b = d.array(KINDS, shape=(6,), special=False)
    mask = d.mask((6,))
    number = d.one(1.5, 2, 1 - 2j)
    calls = {
        "angle": lambda n, x, y, m: n.angle(x, deg=True), "iscomplex": lambda n, x, y, m: n.iscomplex(x), "isreal": lambda n, x, y, m: n.isreal(x.real + 0 * x),
        "real_if_close": lambda n, x, y, m: (n.real_if_close(x), n.real_if_close(x.real + 1e-17j)), "nan_to_num": lambda n, x, y, m: n.nan_to_num(x, nan=2.0),
        "isclose": lambda n, x, y, m: n.isclose(x, y, equal_nan=True), "array_equal": lambda n, x, y, m: (n.array_equal(x, x), n.allclose(x, x + 1e-12)),
        "round": lambda n, x, y, m: n.round(x * 1.234, 1), "diff": lambda n, x, y, m: n.diff(x), "gradient": lambda n, x, y, m: n.gradient(x, 2.0),
        "convolve": lambda n, x, y, m: n.convolve(x, y[:3]), "correlate": lambda n, x, y, m: (n.correlate(x, x[:3]), n.correlate(x[:2], x, "full")),
        "interp": lambda n, x, y, m: n.interp(n.linspace(-1, 6, 9), n.arange(6.0), x, right=number), "average": lambda n, x, y, m: n.average(x, weights=n.arange(1.0, 7)),
        "cov": lambda n, x, y, m: n.cov(x, n.conj(x) + 1), "corrcoef": lambda n, x, y, m: n.corrcoef(x * n.arange(6), x + n.arange(6) ** 2 * 1j),
        "polyval": lambda n, x, y, m: n.polyval(x[:3], y), "poly": lambda n, x, y, m: (n.poly(x[:3]), n.poly(n.stack([x[0], n.conj(x[0])]))),
        "vander": lambda n, x, y, m: n.vander(x, 3), "pad": lambda n, x, y, m: n.pad(x, 2, constant_values=number), "roll": lambda n, x, y, m: n.roll(x, 2),
        "select": lambda n, x, y, m: n.select([m, ~m], [x, y], number), "sinc": lambda n, x, y, m: n.sinc(x), "trapezoid": lambda n, x, y, m: n.trapezoid(x),
        "full": lambda n, x, y, m: (n.full((2, 2), number), n.full_like(x, number), n.zeros_like(x), n.ones(2, complex), n.eye(2, dtype="c8"), n.empty_like(x).dtype == x.dtype),
        "arange": lambda n, x, y, m: (n.arange(4, dtype="c8"), n.arange(0, 3, dtype=complex)), "linspace": lambda n, x, y, m: (n.linspace(0, number, 4), n.logspace(0, 1j, 3), n.linspace(x, 2, 3), n.linspace(1, x.real, 3), n.linspace(y, x, 4, axis=1),
                                             n.linspace(np.float32(1), 2, 3), n.logspace(np.float32(0), 1, 3)),
        "astype": lambda n, x, y, m: (x.astype("?"), y.astype("c8"), x.astype("c8"), x.astype("c16")), "isin": lambda n, x, y, m: n.isin(x, x[2:4]),
        "cumulative_sum": lambda n, x, y, m: n.cumulative_sum(x, include_initial=True), "ediff1d": lambda n, x, y, m: n.ediff1d(x, to_end=1j),
        "count_nonzero": lambda n, x, y, m: n.asarray(n.count_nonzero(x)), "nonzero": lambda n, x, y, m: n.nonzero(x), "tril": lambda n, x, y, m: n.tril(n.outer(x, y)),
        "diag": lambda n, x, y, m: n.diag(x, 1), "flip": lambda n, x, y, m: n.flip(x), "repeat": lambda n, x, y, m: n.repeat(x, 2),
        "histogram weights": lambda n, x, y, m: n.histogram(n.arange(6.0), 3, weights=x)[0], "common_type": lambda n, x, y, m: n.zeros(1, n.common_type(x, x.real)),
    }

    def into(n, x, y, m):
        if name == "copyto":
            n.copyto(x, number, where=m)
        else:
            n.putmask(x, m, x[::-1])
        return x
    return calls.get(name, into), a, b, mask


FAMILIES = {"unary": unary, "binary": binary, "refused": refused, "reduce": reduce, "methods": methods, "order": order, "products": products, "parts": parts,
            "routines": routines}
NOISY = {"methods", "routines", "order", "parts"}


@pytest.mark.parametrize("family", FAMILIES)
def test_expressions(g, family):
    run(g, {family: FAMILIES[family]}, 11, examples=int(os.environ.get("GPUREST_TEST_EXAMPLES", 120)), noisy=NOISY)


# ---- values ----


def by_parts(ours, theirs, what, bound):
    """NaN and infinities of each part where NumPy has them, and numbers as near as `bound` to the size of the whole."""
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    size = np.abs(theirs)
    for one, other in ((ours.real, theirs.real), (ours.imag, theirs.imag)):
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other), err_msg=what)
        np.testing.assert_array_equal(np.isinf(one), np.isinf(other), err_msg=what)
        finite = np.isfinite(other)
        np.testing.assert_array_equal(np.sign(one[np.isinf(other)]), np.sign(other[np.isinf(other)]), err_msg=what)
        wide = np.where(np.isfinite(size), size, np.abs(other))
        with np.errstate(all="ignore"):
            far = np.abs(one - other)[finite] > bound * wide[finite] + np.finfo(other.dtype).tiny * 8
        assert not far.any(), f"{what}: {one[finite][far][:3]}, not {other[finite][far][:3]}"


@pytest.mark.parametrize("kind", COMPLEX)
@pytest.mark.parametrize("name", [name for name in UNARY if name not in ("absolute", "isnan", "isinf", "isfinite", "logical_not", "log1p", "expm1")])
def test_numbers_of_every_size(g, name, kind):
    rng = np.random.default_rng(3)
    reach = 36 if kind == "complex64" else 300
    reach = reach / 2 - 1 if name == "square" else reach  # with squares that overflow NumPy's processor has its own ways
    reach = 1.5 if name in ("exp", "exp2", "sinh", "cosh", "tanh", "sin", "cos", "tan") else reach

    def one_part():
        return rng.choice([-1, 1], 400) * 10.0 ** rng.uniform(-reach, reach, 400)
    a = (one_part() + 1j * one_part()).astype(kind)
    a[:100] = (rng.normal(size=100) + 1j * rng.normal(size=100)).astype(kind)
    with np.errstate(all="ignore"):
        theirs = getattr(np, name)(a)
        exact = getattr(np, name)(a.astype("c16")).astype(kind)
    theirs = exact if kind == "complex64" and name not in ("square", "reciprocal", "sign") else theirs  # NumPy's own floats may be several units off
    by_parts(getattr(g, name)(g.asarray(a)).get(), theirs, name, 3e-7 if kind == "complex64" else 2e-15)


@pytest.mark.parametrize("kind", COMPLEX)
def test_exp_less_one_of_what_is_not_finite(g, kind):
    """As the array API has it: NumPy's formula gives NaN."""
    a = np.array([np.inf, -np.inf, complex(-np.inf, np.inf), complex(np.inf, np.inf), complex(-np.inf, np.nan), complex(np.inf, np.nan), np.nan, 1000 + 1j], kind)
    right = np.array([np.inf, -1, -1, complex(np.inf, np.nan), -1, complex(np.inf, np.nan), np.nan, complex(np.inf, np.inf)], kind)
    by_parts(g.expm1(g.asarray(a)).get(), right, "expm1", 0)


@pytest.mark.parametrize("kind", COMPLEX)
def test_sides_of_branch_cuts(g, kind):
    line = np.array([-3, -2, -1.5, -1, -0.5, -0.0, 0.0, 0.5, 1, 1.5, 2, 3])
    a = np.concatenate([line + 1j * zero for zero in (0.0,)] + [line * 1j])
    a = np.concatenate([a, np.conj(a), -a]).astype(kind)
    for name in ("log", "sqrt", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "log2", "log10"):
        with np.errstate(all="ignore"):
            ours, theirs = getattr(g, name)(g.asarray(a)).get(), getattr(np, name)(a)
        by_parts(ours, theirs, name, 1e-6 if kind == "complex64" else 4e-15)
        told = np.isfinite(theirs) & (theirs.real != 0) & (theirs.imag != 0)
        np.testing.assert_array_equal(np.signbit(ours.imag)[told], np.signbit(theirs.imag)[told], err_msg=name)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sinh", "cosh", "tanh", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "sign",
                                  "square", "reciprocal", "conjugate", "negative", "absolute"])
def test_special_values(g, name):
    points = [-np.inf, -2.5, -1.0, -0.0, 0.0, 1.0, 2.5, np.inf, np.nan, *([1e300, -1e200] if name.startswith("arc") else [])]
    a = np.array([complex(one, other) for one in points for other in points])
    with np.errstate(all="ignore"):
        ours, theirs = getattr(g, name)(g.asarray(a)).get(), getattr(np, name)(a)
    if theirs.dtype.kind != "c":
        np.testing.assert_array_equal(ours, theirs)
        return
    for z, one, other in zip(a, ours, theirs):
        told = f"{name}({z}) is {one}, not {other}"
        for mine, right in ((one.real, other.real), (one.imag, other.imag)):
            assert np.isnan(mine) == np.isnan(right), told
            if np.isnan(other) and np.isinf(right):  # the standard leaves the sign open
                mine, right = abs(mine), abs(right)
            assert np.isnan(right) or mine == pytest.approx(right, rel=1e-14, abs=1e-15), told


@pytest.mark.parametrize("kind", COMPLEX)
def test_powers(g, kind):
    rng = np.random.default_rng(5)
    a = (rng.normal(size=40) + 1j * rng.normal(size=40)).astype(kind)
    x = g.asarray(a)
    for exponent in (0, 1, 2, 3, -1, -2, 7, -99, 100, 0.5, -0.5, 2.5, 1j, 2 - 1j, 0j):
        with np.errstate(all="ignore"):
            ours, theirs = (x ** exponent).get(), a ** exponent
        np.testing.assert_allclose(ours, theirs, rtol=2e-4 if kind == "complex64" else 1e-12, err_msg=str(exponent))
    zero = g.zeros(2, kind)
    with np.errstate(all="ignore"):
        for exponent in (0, 2, 1.5, -1, 1j, -2.5, 1 + 1j):
            np.testing.assert_array_equal((zero ** exponent).get(), np.zeros(2, kind) ** exponent, err_msg=str(exponent))
    same(2.0 ** x, 2.0 ** a, exact=False, relative=1e-5 if kind == "complex64" else 1e-13)


def test_long_ones(g):
    """What is cut into pieces, and rows of many."""
    rng = np.random.default_rng(8)
    for kind in COMPLEX:
        a = (rng.normal(size=(3, 70_001)) + 1j * rng.normal(size=(3, 70_001))).astype(kind)
        x = g.asarray(a)
        for name in ("sum", "mean", "var", "max", "min"):
            np.testing.assert_allclose(getattr(x, name)(axis=1).get(), getattr(a, name)(axis=1), rtol=2e-3 if kind == "complex64" else 1e-10, err_msg=name)
        np.testing.assert_array_equal(x.argmax(axis=1).get(), a.argmax(axis=1))
        np.testing.assert_allclose(g.cumsum(x[0]).get(), np.cumsum(a[0]), rtol=2e-2 if kind == "complex64" else 1e-9)
        np.testing.assert_array_equal(g.sort(x[1]).get(), np.sort(a[1]))
        np.testing.assert_allclose((x[:, :3000] @ x[:, :3000].T).get(), a[:, :3000] @ a[:, :3000].T, rtol=2e-3 if kind == "complex64" else 1e-10)


# ---- types ----


def test_names_of_types(g):
    for spec in ("c8", "<c8", "complex64", "F", "csingle", np.complex64, g.complex64):
        assert g.zeros(2, spec).dtype == np.complex64
    for spec in ("c16", "<c16", "complex128", "D", "cdouble", complex, np.complex128, g.complex128):
        assert g.zeros(2, spec).dtype == np.complex128
    x = g.asarray([1, 2j])
    assert x.dtype == np.complex128 and x.itemsize == 16 and x.dtype_str == "<c16" and x.real.dtype == np.float64 and x.tolist() == [1, 2j]
    assert g.finfo("c8").eps == np.finfo("c8").eps and g.finfo(x).dtype == np.float64
    assert set(g.__array_namespace_info__().dtypes(kind="complex floating")) == set(COMPLEX)
    assert g.complex64 != {"complex64": "F"} and g.complex64 == "c8" and g.complex64 != g.complex128
    with pytest.raises(TypeError, match="no element type"):
        g.zeros(2, np.clongdouble if np.dtype(np.clongdouble).itemsize != 16 else "S1")


def test_python_numbers_and_texts(g):
    x = g.asarray(1 + 2j)
    assert complex(x) == 1 + 2j and x.item() == 1 + 2j and bool(x) and bool(g.asarray(0j)) is False and 2j in g.asarray([1, 2j])
    for wrong in (float, int):
        with pytest.raises(TypeError, match=f"{wrong.__name__}\\(\\) argument must be"):
            wrong(x)
    with pytest.raises(TypeError, match="only integer scalar arrays"):
        [1][x]
    for a in (np.array([1 + 2j, -0.5j, np.nan]), np.arange(3000, dtype="c8") * 1j, np.array(1.5 - 2j), np.zeros((2, 0), "c8"), sample("complex64"), np.array([[1e10 + 1j, 1]])):
        assert repr(g.asarray(a)) == repr(a) and str(g.asarray(a)) == str(a)
    assert f"{x:.3f}" == f"{np.array(1 + 2j):.3f}"


def test_there_and_back(g):
    for kind in COMPLEX:
        a = sample(kind).reshape(4, 6)
        x = g.asarray(a)
        same(x, a)
        same(x.T, a.T)
        assert x.tobytes() == a.tobytes() and x[1:, ::2].tolist()[0][1] == a[1, 2]
        out = np.empty_like(a)
        assert x.get(out=out) is out
        same(pickle.loads(pickle.dumps(x)), a)
        same(x.byteswap(), a.byteswap())
        same(x.view(a.real.dtype), a.view(a.real.dtype))
        same(x.view("f4").view(kind), a)
        x.set(np.conj(a))
        same(x, np.conj(a))
        np.testing.assert_array_equal(np.from_dlpack(x, device="cpu", copy=True), np.conj(a))
        same(g.frombuffer(a.tobytes(), kind), a.ravel())
    same(g.asarray(memoryview(np.array([1j, 2]))), np.array([1j, 2]))
    same(g.asarray([[1.0, 2j], [True, 3]], dtype="c8"), np.array([[1.0, 2j], [True, 3]], "c8"))


def test_files(g, tmp_path):
    a = sample("complex128")
    g.save(tmp_path / "a.npy", g.asarray(a))
    same(g.load(tmp_path / "a.npy"), a)
    g.savetxt(tmp_path / "a.txt", g.asarray(a[12:]))
    same(g.loadtxt(tmp_path / "a.txt", dtype=complex), a[12:])


# ---- what warns and what is refused ----


def warned(function):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [(one.category, str(one.message)) for one in found], [one.filename for one in found]


def test_discarded_parts_are_warned_of(g):
    a = np.array([1 + 2j, 3 - 1j])

    def assigned(n, x, key, value):
        x[key] = value

    for case in (lambda n, z: z.astype("f8"), lambda n, z: z.astype("i4"), lambda n, z: z.astype("f2"), lambda n, z: z.astype("?"), lambda n, z: z.astype("c8"),
                 lambda n, z: assigned(n, n.zeros(2), slice(None), z), lambda n, z: assigned(n, n.zeros(2, "?"), slice(None), z), lambda n, z: n.full(2, 1j, float),
                 lambda n, z: assigned(n, n.zeros(2), 0, np.complex128(1j)), lambda n, z: assigned(n, n.zeros(2), n.asarray([True, False]), np.complex64(1j)),
                 lambda n, z: n.sum(z, dtype="f8"), lambda n, z: n.add(z, z, out=n.zeros(2), casting="unsafe"), lambda n, z: n.asarray(z, "f4"), lambda n, z: z + 1.0,
                 lambda n, z: z.real.astype("i4"), lambda n, z: assigned(n, z, slice(None), 1.0)):
        told, files = warned(lambda: case(g, g.asarray(a)))
        assert told == warned(lambda: case(np, a.copy()))[0] and set(files) <= {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        with pytest.raises(np.exceptions.ComplexWarning):
            g.asarray(a).astype(float)


def refusals(d_name):
    z, x = np.array([1 + 2j, 3 - 1j]), np.ones(2)

    def assigned(x, key, value):
        x[key] = value
    return {
        "number": lambda n, z, x: assigned(x, 0, 1j), "numbers": lambda n, z, x: assigned(x, slice(None), 1j), "array": lambda n, z, x: n.asarray([1j], dtype="f8"),
        "whole": lambda n, z, x: n.asarray([1j], dtype="i4"), "in place": lambda n, z, x: x.__iadd__(z), "out": lambda n, z, x: n.add(z, z, out=x),
        "dtype": lambda n, z, x: n.absolute(z, dtype="c16"), "casting": lambda n, z, x: z.astype("f8", casting="same_kind"), "imag": lambda n, z, x: setattr(x, "imag", 3),
        "key": lambda n, z, x: x[1j], "keys": lambda n, z, x: x[z], "percentile": lambda n, z, x: n.percentile(z, 50), "quantile": lambda n, z, x: n.quantile(z, 0.5),
        "isposinf": lambda n, z, x: n.isposinf(z), "digitize": lambda n, z, x: n.digitize(z, x), "i0": lambda n, z, x: n.i0(z), "bincount": lambda n, z, x: n.bincount(z),
        "fix": lambda n, z, x: n.fix(z), "floor": lambda n, z, x: n.floor(z), "mod": lambda n, z, x: z % 2, "floor divide": lambda n, z, x: z // 2,
        "divmod": lambda n, z, x: divmod(z, 2), "and": lambda n, z, x: z & 1, "invert": lambda n, z, x: ~z, "shift": lambda n, z, x: z << 1,
        "unwrap": lambda n, z, x: n.unwrap(z), "interp": lambda n, z, x: n.interp(z, x, x), "packbits": lambda n, z, x: n.packbits(z),
    }[d_name], z, x


@pytest.mark.parametrize("name", ["number", "numbers", "array", "whole", "in place", "out", "dtype", "casting", "imag", "key", "keys", "percentile", "quantile", "isposinf",
                                  "digitize", "i0", "bincount", "fix", "floor", "mod", "floor divide", "divmod", "and", "invert", "shift", "unwrap", "packbits", "interp"])
def test_what_numpy_refuses_is_refused_with_its_text(g, requests, name):
    case, z, x = refusals(name)
    ours = g.asarray(z), g.asarray(x)
    with pytest.raises((TypeError, IndexError)) as theirs:
        case(np, z, x)
    requests()
    with pytest.raises((TypeError, IndexError)) as mine:
        case(g, *ours)
    assert requests() == 0 and isinstance(theirs.value, type(mine.value))
    if name == "imag" and str(theirs.value) == "array does not have imaginary part to set":  # NumPy before 2.4
        return
    if name != "key":  # which names what is there besides
        assert str(mine.value) == str(theirs.value)


# ---- the engine ----


def test_scalars_are_replaced(g, client):
    """Requests of one structure are planned once; complex scalars are among what differs."""
    with client.session() as session:
        a = np.arange(6) * (1 - 2j)
        x = g.asarray(a, session=session)
        same(x, a)
        for one, other in ((1j, 2), (2j, 2), (complex(0.0, -0.0), 1j), (complex(-0.0, 0.0), 1j), (1j, 1j), (2, 2j), (np.complex64(3j), 0.5)):
            same((x + one) * other, (a + one) * other, what=f"{one} {other}")
        same((x + 1j) * 3.5, (a + 1j) * 3.5)
        known = len(session._array_engine.plans)
        for one in (2j, 3 - 1j, -1j, complex(1e300, -1e-300)):
            same((x + one) * 2.5, (a + one) * 2.5)
        for first in (1, 2, 3):
            same(x[first:first + 2].imag * 2, a[first:first + 2].imag * 2)
        assert len(session._array_engine.plans) <= known + 1


def test_fused_kernels_and_generated_ones(g):
    a = sample("complex64", 50)[12:]
    for fusion in (True, False):
        for builtins in (True, False):
            g.config.fusion, g.config.builtins = fusion, builtins
            x = g.asarray(a)
            y = g.exp(1j * x.real) * g.conj(x) + 2
            same(y, np.exp(1j * a.real) * np.conj(a) + 2, exact=False, relative=1e-5)
            same(abs(x).sum(), np.asarray(abs(a).sum()), exact=False, relative=1e-5)
            same(g.sort(x), np.sort(a))
            same(x.reshape(2, 19).T.copy(), a.reshape(2, 19).T)


def test_kernels_of_users(g):
    x = g.asarray(np.array([1 + 2j, -3j, 2], "c8"))
    same(g.ElementwiseKernel("T x, T y", "T z", "z = x * conj(x) + y", "complex_one")(x, 1j), np.array([5 + 1j, 9 + 1j, 4 + 1j], "c8"))
    same(g.ElementwiseKernel("complex64 x", "float32 y", "y = abs(x)", "sizes")(x), np.abs(np.array([1 + 2j, -3j, 2], "c8")), exact=False)
    assert complex(g.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "complex_total")(x)) == 3 - 1j
    twice = g.RawKernel('extern "C" __global__ void twice(float *p) { p[threadIdx.x] *= 2; }', "twice")
    twice((1,), (6,), (x,))
    same(x, np.array([2 + 4j, -6j, 4], "c8"))
    with pytest.raises(g.errors.ArgumentError, match="complex64"):
        g.RawKernel('extern "C" __global__ void wrong(double *p) { p[0] = 0; }', "wrong")((1,), (1,), (x,))
    added = g.RawKernel('extern "C" __global__ void added(float2 *p, float2 by) { p[threadIdx.x].x += by.x; p[threadIdx.x].y += by.y; }', "added")
    added((1,), (3,), (x, np.complex64(1 - 1j)))
    same(x, np.array([3 + 3j, 1 - 7j, 5 - 1j], "c8"))


def test_buffers(g, client):
    a = np.array([1 + 2j, 3 - 1j], "c8")
    with client.default_session.buffer(a) as buffer:
        np.testing.assert_array_equal(buffer.get(), a)
        buffer.fill(2 - 1j)
        np.testing.assert_array_equal(buffer.get(), np.full(2, 2 - 1j, "c8"))
    with client.default_session.buffer(a.astype("c16")) as buffer:
        buffer.fill(0)
        np.testing.assert_array_equal(buffer.get(), np.zeros(2, "c16"))
        with pytest.raises(g.errors.ArgumentError, match="gpurest.full"):
            buffer.fill(1j)


def test_numpys_functions_compute_on_the_device(g):
    a = sample("complex128", 12)
    a[np.isnan(a) | np.isinf(a)] = 1
    x = g.asarray(a)
    same(np.sqrt(x), np.sqrt(a), exact=False)
    same(np.add(x, 1j), a + 1j)
    same(np.real(x), a.real)
    same(np.angle(x), np.angle(a), exact=False)
    same(np.float32(2) * x, np.float32(2) * a)
    same(np.complex64(2j) * x, np.complex64(2j) * a)
    same(a + x, a + a)


PROGRAM = """
import json, sys, warnings
sys.modules["numpy"] = None  # what follows finds none
import gpurest as g

x = g.asarray([[1 + 2j, 2], [3j, -4.5]])
single = g.asarray([1, 2j], dtype="c8")
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    real = single.astype("f4").tolist()
told = lambda values: [[one.real, one.imag] for one in values]
x.real[0] = 5
try:
    g.asarray([1j], dtype="f4")
except TypeError as error:
    refused = str(error)
print(json.dumps({
    "values": told(x[0].tolist() + x[1].get()), "product": told((x @ x)[0].tolist()), "kinds": [str(x.dtype), str(single.dtype), str((single + 1j).dtype)],
    "sum": told([complex(x.sum())]), "size": single.imag.tolist(), "text": repr(single), "real": real, "warned": [str(one.message) for one in found],
    "bytes": single.tobytes().hex(), "refused": refused, "fft": told(g.fft.fft(g.asarray([1.0, 0, 0, 0])).tolist())}))
"""


def test_without_numpy(array_service):
    environment = {**os.environ, "GPUREST_URL": array_service.url, "PYTHONPATH": str(SDK)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    a = np.array([[5 + 2j, 5], [3j, -4.5]])
    told = [[one.real, one.imag] for one in a.ravel()]
    assert json.loads(done.stdout) == {
        "values": told, "product": [[one.real, one.imag] for one in (a @ a)[0]], "kinds": ["complex128", "complex64", "complex64"],
        "sum": [[a.sum().real, a.sum().imag]], "size": [0, 2], "text": "array([1.+0.j, 0.+2.j], dtype=complex64)", "real": [1, 0],
        "warned": ["Casting complex values to real discards the imaginary part"], "bytes": np.array([1, 2j], "c8").tobytes().hex(),
        "refused": "float() argument must be a string or a real number, not 'complex'" if sys.version_info >= (3, 10) else "can't convert complex to float",
        "fft": [[1, 0]] * 4}


# ---- programs ----


class Program:
    """The same random steps on arrays of ours and of NumPy's, with what warns."""

    def __init__(self, g, seed):
        self.g, self.rng = g, np.random.default_rng(seed)
        kinds = ["complex64", "complex128", "float32", "float64", "int32", "complex64"]
        self.theirs = [self.start(kind) for kind in kinds]
        self.ours = [g.asarray(one) for one in self.theirs]

    def start(self, kind):
        values = self.rng.integers(-4, 5, (4, 6)) / (1 if kind == "int32" else 2)
        return (values + 1j * self.rng.integers(-4, 5, (4, 6)) / 2 if kind.startswith("complex") else values).astype(kind)

    def step(self):
        i, j, row = (int(self.rng.integers(len(self.theirs))) for _ in range(3))
        number, kind = [2, 0.5, 1j, 1 - 0.5j, np.complex64(2j), np.float32(1.5), True][self.rng.integers(7)], int(self.rng.integers(15))
        to = ["f4", "f8", "c8", "c16", "i4", "?"][self.rng.integers(6)]
        row %= 4

        def run(n, many):
            x, y = many[i], many[j]
            if kind == 0:
                return x + y * number
            if kind == 1:
                return n.conj(x) - y[::-1]
            if kind == 2:
                return n.abs(x) + x.imag
            if kind == 3:
                return n.where(x.real > 0, x, y)
            if kind == 4:
                return x.astype(to)
            if kind == 5:
                x[row] = y[3 - row]
            elif kind == 6:
                x.real[:, ::2] = y.imag[:, ::2]
            elif kind == 7:
                x[x.real == 1] = number
            elif kind == 8:
                return x - x.mean(0, keepdims=True)
            elif kind == 9:
                return x.sum(1, keepdims=True) * 0.125 + y
            elif kind == 10:
                return (x[:, :4] @ y)[:, ::-1] * 0.125
            elif kind == 11:
                return n.exp(x * 0.25j)
            elif kind == 12:
                return n.maximum(x, number) + (x == y)
            elif kind == 13:
                x[...] = y
            else:
                return n.sqrt(x) / 2
            return None
        told = []
        for n, many in ((np, self.theirs), (self.g, self.ours)):
            refusal = []
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                try:
                    made = run(n, many)
                except (TypeError, ValueError, OverflowError) as error:
                    made, refusal = None, [next(kind for kind in (TypeError, ValueError, OverflowError) if isinstance(error, kind)).__name__]
            if made is not None:
                many[i] = made
            told.append(refusal + [str(one.message) for one in found if one.category is np.exceptions.ComplexWarning])
        assert told[0] == told[1], (kind, told)

    def compare(self, what):
        for ours, theirs in zip(self.g.fetch(*self.ours), self.theirs):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), what
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * max(1, np.abs(theirs.astype("c16")).max()), err_msg=what)  # of what was float


@pytest.mark.parametrize("seed", range(int(os.environ.get("GPUREST_TEST_EXAMPLES", 8))))
def test_programs_of_random_steps(g, seed):
    with np.errstate(all="ignore"):
        program = Program(g, seed)
        for at in range(14):
            program.step()
            if at % 5 == 4:
                program.compare(f"seed {seed}, step {at}")
        program.compare(f"seed {seed}")
