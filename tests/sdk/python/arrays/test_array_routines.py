"""Routines of each family with random arguments, against NumPy."""
import numpy as np
import pytest
from .array_calls import FLOATS, KINDS, NUMBERS, run
from .array_values import same

WHOLE = ["int8", "int32", "int64", "uint8", "uint16"]


def arrange(d):
    a = d.array(KINDS)
    name = d.one("roll", "rot90", "flip", "tile", "repeat", "append", "delete", "resize", "moveaxis", "rollaxis", "atleast_2d", "atleast_3d")
    if name == "roll":
        shift, axis = d.one(d.int(-7, 7), (d.int(-3, 3), d.int(-3, 3))), d.axis(a)
        axis = (0, -1) if isinstance(shift, tuple) and d.int(0, 1) and a.ndim else axis
        return (lambda n, x: n.roll(x, shift, axis)), a
    if name == "rot90":
        k, axes = d.int(-5, 5), d.one((0, 1), (1, 0), (-1, 0), (0, 0), (0, 5))
        return (lambda n, x: n.rot90(x, k, axes)), a
    if name == "flip":
        axis = d.axes(a)
        return (lambda n, x: n.flip(x, axis)), a
    if name == "tile":
        reps = d.one(d.int(0, 3), d.shape(1, 4, 3))
        return (lambda n, x: n.tile(x, reps)), a
    if name == "repeat":
        axis = d.axis(a)
        repeats = d.int(-1, 3)
        return (lambda n, x: n.repeat(x, repeats, axis)), a
    if name == "append":
        axis, b = d.axis(a), d.array(KINDS, shape=a.shape if d.int(0, 1) else None)
        return (lambda n, x, y: n.append(x, y, axis)), a, b
    if name == "delete":
        axis, obj = d.axis(a), d.one(d.int(-6, 6), slice(d.int(-3, 3), None, d.one(1, 2, -1)))
        return (lambda n, x: n.delete(x, obj, axis)), a
    if name == "resize":
        shape = d.shape(1, 3)
        return (lambda n, x: n.resize(x, shape)), a
    if name == "moveaxis":
        source, to = d.axis(a, none=False), d.axis(a, none=False)
        return (lambda n, x: n.moveaxis(x, source or 0, to or 0)), a
    if name == "rollaxis":
        axis, start = d.axis(a, none=False) or 0, d.int(-4, 4)
        return (lambda n, x: n.rollaxis(x, axis, start)), a
    return (lambda n, x: getattr(n, name)(x)), a


def repeated_by_counts(d):
    a = d.array(shape=(d.int(1, 6), 2))
    counts = d.array(["int64", "uint8", "float64"], shape=(d.one(len(a), len(a) + 1),), low=d.one(0, -1), high=3, special=False)
    return (lambda n, x, c: n.repeat(x, c, 0)), a, counts


def shape_of_files(d):
    a = d.array(KINDS)
    order = d.one("C", "F", "A", "K")
    name = d.one("ravel", "reshape", "copy", "asfortranarray", "ascontiguousarray", "flatten", "astype", "zeros_like", "require")
    size = a.size
    call = {"ravel": lambda n, x: n.ravel(x.T, order), "reshape": lambda n, x: n.reshape(x, (size,), order), "copy": lambda n, x: n.copy(x.T, order),
            "asfortranarray": lambda n, x: n.asfortranarray(x), "ascontiguousarray": lambda n, x: n.ascontiguousarray(x.T),
            "flatten": lambda n, x: x.T.flatten(order), "astype": lambda n, x: x.astype("f4", order=order),
            "zeros_like": lambda n, x: n.zeros_like(x.T, order=order), "require": lambda n, x: n.require(x, "f8", d_requirement)}[name]
    d_requirement = d.one(None, "C", ["F", "W"], ["C", "F"])
    return call, a


def join(d):
    shape = d.shape(0, 3, 3)
    axis = d.one(0, 0, -1, 1, 2, None)
    name = d.one("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack")
    parts = [d.array(KINDS, shape=shape if d.int(0, 5) else d.shape(0, 3, 3)) for _ in range(d.int(1, 3))]
    if name in ("concatenate", "stack"):
        dtype = d.one(None, None, "f8", "i4")
        more = {} if dtype is None else {"dtype": dtype, "casting": d.one("same_kind", "unsafe", "safe")}
        return (lambda n, *xs: getattr(n, name)(xs, axis if name == "concatenate" else axis or 0, **more)), *parts
    return (lambda n, *xs: getattr(n, name)(xs)), *parts


def cut(d):
    a = d.array()
    name, sections, axis = d.one("split", "array_split", "hsplit", "vsplit", "dsplit"), d.one(1, 2, 3, [1, 2], [0, 3, 9], 0), d.one(0, -1, 1)
    if name.endswith("split") and name[0] in "hvd":
        return (lambda n, x: getattr(n, name)(x, sections)), a
    return (lambda n, x: getattr(n, name)(x, sections, axis)), a


def pad(d):
    a = d.array(least=1, special=False)
    mode = d.one("constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap", "unknown")
    width = d.one(d.int(0, 4), (d.int(0, 7), d.int(0, 3)), [(d.int(0, 3), d.int(0, 3)) for _ in range(a.ndim)], [[1, 2, 3]])
    more = {}
    if mode == "constant" and d.int(0, 1):
        more["constant_values"] = d.one(3, (1, 2))
    if mode == "linear_ramp":
        more["end_values"] = d.one(0, (1, 3))
    if mode in ("maximum", "mean", "median", "minimum") and d.int(0, 1):
        more["stat_length"] = d.int(1, 3)
    if mode in ("reflect", "symmetric") and a.dtype.kind == "f" and d.int(0, 1):
        more["reflect_type"] = "odd"
    return (lambda n, x: n.pad(x, width, mode, **more)), a


def pick(d):
    a = d.array(KINDS, least=1, empty=False)
    mode, axis = d.one("wrap", "clip"), d.axis(a)
    numbers = d.array(["int64", "int32"], low=-8, high=8)
    name = d.one("take", "take", "take_along_axis", "choose", "select", "unravel", "ravel_multi_index", "indices", "diagonal", "trace", "wrong type")
    if name == "take":
        return (lambda n, x, i: n.take(x, i, axis, mode=mode)), a, numbers
    if name == "take_along_axis":
        at = d.axis(a, none=False, wrong=False) or 0
        places = np.argsort(d.array(shape=a.shape), axis=at, kind="stable")
        return (lambda n, x, i: n.take_along_axis(x, i, at)), a, places
    if name == "choose":
        choices = [d.array(shape=a.shape) for _ in range(3)]
        return (lambda n, i, *xs: n.choose(i, list(xs), mode=mode)), d.array(["int64", "uint8"], shape=a.shape, low=-3, high=5), *choices
    if name == "select":
        masks = [d.mask(a.shape) for _ in range(2)]
        return (lambda n, x, one, two: n.select([one, two], [x, x * 2], 7)), a, *masks
    if name == "unravel":
        shape = d.shape(1, 3, 4, empty=False)
        order = d.one("C", "F")
        i = d.array(["int64"], low=0, high=int(np.prod(shape)) - d.one(1, 1, 1, 0))
        return (lambda n, x: n.unravel_index(x, shape, order)), i
    if name == "ravel_multi_index":
        order, how = d.one("C", "F"), d.one("wrap", "clip", "raise")
        i = d.array(["int64"], shape=(2, 5), low=0 if how == "raise" else -4, high=4)
        return (lambda n, x: n.ravel_multi_index((x[0], x[1]), (5, 4), how, order)), i
    if name == "indices":
        dims, sparse = d.shape(1, 3, 4), bool(d.int(0, 1))
        return (lambda n: n.indices(dims, sparse=sparse))
    if name == "wrong type":
        return (lambda n, x, i: n.take(x, i)), a, np.array([0.5])
    offset = d.int(-3, 3)
    one, other = d.one((0, 1), (1, 0), (-1, 0), (0, 0))
    return (lambda n, x: getattr(n, name)(x, offset, one, other)), a


def one_or_more(case):
    """Cases without arrays give a function alone."""
    def drawn(d):
        made = case(d)
        return made if isinstance(made, tuple) else (made,)
    return drawn


def write(d):
    a = d.array(NUMBERS, least=1, empty=False)
    name = d.one("put", "putmask", "place", "copyto", "fill_diagonal", "put_along_axis", "flat")
    v = d.array(["int8", "uint8"], least=1, most=1, extent=4, empty=False)
    mask = d.mask(a.shape)

    def changed(change):
        def made(n, x, *more):
            change(n, x, *more)
            return x
        return made
    if name == "put":
        mode = d.one("wrap", "clip")
        return changed(lambda n, x, i, w: n.put(x, i, w, mode)), a, np.unique(d.array(["int64"], low=0, high=9)), v
    if name == "putmask":
        return changed(lambda n, x, m, w: n.putmask(x, m, w)), a, mask, v
    if name == "place":
        return changed(lambda n, x, m, w: n.place(x, m, w)), a, mask, v
    if name == "copyto":
        b, casting = d.array(KINDS, shape=d.one(a.shape, a.shape, (2,), ())), d.one("same_kind", "safe", "unsafe")
        b = np.nan_to_num(b, posinf=1, neginf=1)
        b = np.abs(b) if a.dtype.kind == "u" else b
        return changed(lambda n, x, y, m: n.copyto(x, y, casting, where=m)), a, b, mask
    if name == "fill_diagonal":
        wrap = bool(d.int(0, 1))
        return changed(lambda n, x: n.fill_diagonal(x, 7, wrap)), a
    if name == "flat":
        return changed(lambda n, x: x.T.flat.__setitem__(slice(1, None, 2), 5)), a
    at = d.axis(a, none=False, wrong=False) or 0
    places = np.argmax(np.nan_to_num(a), axis=at, keepdims=True)
    return changed(lambda n, x, i: n.put_along_axis(x, i, 4, at)), a, places


def masked(d):
    a = d.array(KINDS, least=1)
    name = d.one("argwhere", "extract", "compress", "where", "nonzero", "flatnonzero", "trim_zeros", "delete", "piecewise", "count")
    mask = d.mask(a.shape)
    if name == "compress":
        axis = d.axis(a)
        return (lambda n, x, m: n.compress(m, x, axis)), a, d.mask((d.int(0, 5),))
    if name == "extract":
        return (lambda n, x, m: n.extract(m, x)), a, mask
    if name == "where":
        return (lambda n, x: n.where(x)), a
    if name == "delete":
        b = d.array(least=1, most=1, empty=False)
        return (lambda n, x, i: n.delete(x, i)), b, d.one(d.mask(b.shape), np.unique(d.rng.integers(-len(b), len(b), 3)))
    if name == "piecewise":
        a = d.array(FLOATS, least=1)
        return (lambda n, x: n.piecewise(x, [x < 0, x > 2], [-1, lambda y: y * 2, 5])), a
    if name == "count":
        axis, keep = d.axes(a), bool(d.int(0, 1))
        return (lambda n, x: n.count_nonzero(x, axis, keepdims=keep)), a
    return (lambda n, x: getattr(n, name)(x)), a


def sets(d):
    a, b = d.array(KINDS, low=-4, high=4), d.array(KINDS, low=-4, high=4, least=1)
    name = d.one("unique", "unique", "unique axis", "isin", "union1d", "setdiff1d", "setxor1d", "intersect1d", "intersect1d places", "unique_counts")
    options = {one: bool(d.int(0, 1)) for one in ("return_index", "return_inverse", "return_counts", "equal_nan")}
    if name == "unique":
        return (lambda n, x: n.unique(x, **options)), a
    if name == "unique axis":
        a = d.array(["int32", "bool", "uint8"], low=0, high=1, least=1)
        axis = d.axis(a, none=False)
        options["return_inverse"] = False
        return (lambda n, x: n.unique(x, axis=axis, **options)), a
    if name == "isin":
        invert = bool(d.int(0, 1))
        return (lambda n, x, y: n.isin(x, y, invert=invert)), a, b
    if name == "unique_counts":
        return (lambda n, x: n.unique_counts(x)), a
    if name == "intersect1d places":
        return (lambda n, x, y: n.intersect1d(x, y, return_indices=True)), *(np.nan_to_num(one) for one in (a, b))
    a, b = (np.nan_to_num(one) for one in (a, b))
    return (lambda n, x, y: getattr(n, name)(x, y)), a, b


def search(d):
    line = np.sort(d.array(NUMBERS, least=1, most=1, extent=8))
    name = d.one("searchsorted", "searchsorted", "sorter", "digitize", "interp", "interp period", "lexsort", "partition")
    values = d.array(NUMBERS)
    side = d.one("left", "right")
    if name == "searchsorted":
        return (lambda n, x, v: n.searchsorted(x, v, side)), line, values
    if name == "sorter":
        mixed = d.array(["float64", "int32"], least=1, most=1, extent=8)
        return (lambda n, x, v, s: x.searchsorted(v, side, s)), mixed, values, np.argsort(mixed, kind="stable")
    if name == "digitize":
        bins = d.one(line, line[::-1], d.array(NUMBERS, least=1, most=1, special=False))
        right = bool(d.int(0, 1))
        return (lambda n, x, b: n.digitize(x, b, right)), values, np.nan_to_num(bins)
    if name == "lexsort":
        keys = d.array(KINDS, shape=(3, 6), low=0, high=2)
        return (lambda n, k: n.lexsort(k)), keys
    if name == "partition":
        axis = d.axis(values)
        kth = d.int(-3, 3)
        return (lambda n, x: n.sort(n.partition(x, kth, axis), axis)), values
    xp, fp = np.unique(np.nan_to_num(line.astype("f8"), posinf=20, neginf=-20)), None
    fp = d.array(FLOATS, shape=(len(xp) + (d.int(0, 9) == 0),), special=False)
    if name == "interp":
        left, right = d.one((None, None), (-1.0, 9.0))
        return (lambda n, x, p, f: n.interp(x, p, f, left, right)), values, xp, fp
    return (lambda n, x, p, f: n.interp(x, p, f, period=7.5)), values, xp, fp


def count(d):
    name = d.one("bincount", "bincount weights", "histogram", "histogram", "histogram range", "histogram2d", "histogramdd", "histogram bins")
    a = d.array(NUMBERS, special=False, most=2)
    density = bool(d.int(0, 1))
    if name.startswith("bincount"):
        x = d.array([*WHOLE, "float64"], least=1, most=d.one(1, 1, 2), low=d.one(0, 0, 0, -1), extent=20)
        least = d.int(-1, 12)
        if name == "bincount":
            return (lambda n, y: n.bincount(y, minlength=least)), x
        return (lambda n, y, w: n.bincount(y, w, least)), x, d.array(FLOATS, shape=x.shape if d.int(0, 5) else (3,), special=False)
    if name == "histogram":
        bins = d.one(3, 10, 0, 7)
        return (lambda n, x: n.histogram(x, bins, density=density)), a
    if name == "histogram range":
        limits, bins = d.one((-2, 3), (0, 0), (3, 1), (0.5, float("nan"))), d.int(1, 5)
        return (lambda n, x, w: n.histogram(x, bins, limits, density, w)), a, d.array(["float64", "int32"], shape=a.shape, low=1, special=False)
    if name == "histogram bins":
        return (lambda n, x: n.histogram(x, [-3, 0, d_end, 5])), a
    x, y = (d.array(["float64"], shape=(15,), special=False) for _ in range(2))
    if name == "histogram2d":
        return (lambda n, *p: n.histogram2d(*p, bins=[3, 4], density=density)), x, y
    return (lambda n, p: n.histogramdd(p, (2, 3), [(-2, 2), (-1, 4)])), np.stack([x, y], 1)


d_end = 2


def statistics(d):
    a = d.array(KINDS, special=d.int(0, 2) == 0)
    name = d.one("median", "percentile", "quantile", "average", "cov", "corrcoef", "ptp", "quantile list")
    axis, keep = d.axes(a), bool(d.int(0, 1))
    if name in ("median", "ptp"):
        return (lambda n, x: getattr(n, name)(x, axis=axis, keepdims=keep)), a
    if name in ("percentile", "quantile"):
        a = d.array(["int32", "uint8", "float64", "float32"], special=d.int(0, 2) == 0)
        axis, q = d.axes(a), d.one(0, 1, 0.5, 0.3, 0.25, 0.75, 2.5)
        q = q * 100 if name == "percentile" else q
        method = d.one("linear", "lower", "higher", "midpoint", "nearest", "hazen", "weibull", "median_unbiased", "inverted_cdf", "closest_observation",
                       "averaged_inverted_cdf", "interpolated_inverted_cdf", "normal_unbiased", "none such")
        return (lambda n, x: getattr(n, name)(x, q, axis=axis, method=method, keepdims=keep)), a
    if name == "quantile list":
        a = d.array(["int32", "float64"])
        axis = d.axes(a)
        return (lambda n, x: n.quantile(x, [0.1, 0.5, 0.9], axis=axis, keepdims=keep)), a
    if name == "average":
        weights = d.array(["float64", "int32", "float32"], shape=a.shape if d.int(0, 4) else (3,), low=1, special=False)
        returned = bool(d.int(0, 1))
        return (lambda n, x, w: n.average(x, axis, w, returned, keepdims=keep)), a, weights
    a = d.array(["float64", "int32", "float32"], shape=(d.int(1, 3), d.int(2, 6)), special=False)
    rowvar = bool(d.int(0, 1))
    if name == "corrcoef":
        return (lambda n, x: n.corrcoef(x, rowvar=rowvar)), a + d.rng.normal(size=a.shape)
    weights = d.array(["int64"], shape=(a.shape[1],), low=1)
    if d.int(0, 1):
        return (lambda n, x: n.cov(x, x * 2, rowvar, bool(d_end))), a
    return (lambda n, x, w: n.cov(x, fweights=w, aweights=w * 0.5)), a, weights


def nans(d):
    a = d.array(KINDS)
    if a.dtype.kind == "f" and a.size:
        a.reshape(-1)[d.rng.integers(a.size, size=3)] = np.nan
    name = d.one("nansum", "nanprod", "nanmin", "nanmax", "nanmean", "nanvar", "nanstd", "nanargmin", "nanargmax", "nanmedian", "nancumsum", "nancumprod")
    axis = d.axis(a) if "arg" in name or "cum" in name else d.axes(a)
    if "cum" in name:
        return (lambda n, x: getattr(n, name)(x, axis)), a
    keep = bool(d.int(0, 1))
    more = {"ddof": d.int(0, 2)} if name in ("nanvar", "nanstd") else {}
    if name in ("nanmin", "nanmax"):
        a = d.array(FLOATS + WHOLE)
        axis = d.axes(a)
    if name == "nanprod":
        a = np.clip(a, -2, 2) if a.dtype.kind != "b" else a
    return (lambda n, x: getattr(n, name)(x, axis=axis, keepdims=keep, **more)), a


def calculus(d):
    a = d.array(NUMBERS, least=1, special=False)
    axis = d.axis(a, none=False)
    name = d.one("diff", "diff ends", "ediff1d", "gradient", "gradient places", "trapezoid", "cross", "kron", "convolve", "correlate", "unwrap", "cumulative")
    if name == "diff":
        a = d.array(KINDS, special=False)
        axis, order = d.axis(a, none=False), d.int(-1, 3)
        return (lambda n, x: n.diff(x, order, -1 if axis is None else axis)), a
    if name == "diff ends":
        return (lambda n, x: n.diff(x, axis=axis, prepend=1, append=2)), a
    if name == "ediff1d":
        ends = d.one((None, None), (3, [1, 2]), (None, 2.5))
        return (lambda n, x: n.ediff1d(x, *ends)), a
    if name == "gradient":
        a = d.array(["int32", "float64", "float32"], least=1, special=False)
        step, order, axes = d.one((), (0.5,), (2,)), d.int(1, 2), d.axes(a)
        return (lambda n, x: n.gradient(x, *step, axis=axes, edge_order=order)), a
    if name == "gradient places":
        a, order = d.array(["float64"], shape=(6,), special=False), d.int(1, 2)
        return (lambda n, x, p: n.gradient(x, p, edge_order=order)), a, np.cumsum(d.array(["float64"], shape=(d.one(6, 6, 6, 5),), low=1, special=False))
    if name == "trapezoid":
        x = np.arange(a.shape[axis]) ** 2.0 if axis is not None and -a.ndim <= axis < a.ndim and d.int(0, 1) else None
        if x is None:
            return (lambda n, y: n.trapezoid(y, dx=0.5, axis=axis)), a
        return (lambda n, y, p: n.trapezoid(y, p, axis=axis)), a, x
    if name == "cross":
        shapes = d.one(((3,), (4, 3)), ((2, 3), (2, 3)), ((2,), (2,)), ((3,), (3,)))
        return (lambda n, x, y: n.cross(x, y)), *(d.array(NUMBERS, shape=one, special=False) for one in shapes)
    if name == "kron":
        return (lambda n, x, y: n.kron(x, y)), d.array(most=2, special=False), d.array(most=2, special=False)
    if name in ("convolve", "correlate"):
        mode = d.one("full", "same", "valid", "none such")
        kinds = d.one(KINDS, FLOATS)
        return (lambda n, x, y: getattr(n, name)(x, y, mode)), *(d.array(kinds, shape=(d.int(0, 9) and d.int(1, 9),), special=False, low=-3, high=3)
                                                               for _ in range(2))
    if name == "unwrap":
        a = d.array(["float64", "float32"], least=1, special=False)
        axis, period = d.axis(a, none=False), d.one(6.283185307179586, 4.0)
        return (lambda n, x: n.unwrap(x * 1.3, axis=axis, period=period)), a
    first = bool(d.int(0, 1))
    return (lambda n, x: n.cumulative_sum(x, axis=axis, include_initial=first)), a


def matrices(d):
    name = d.one("diag", "diag", "diagflat", "tri", "tril", "triu", "tril_indices", "triu_indices", "vander", "mask_indices", "diag_indices", "eye", "trace")
    k, rows, columns = d.int(-3, 3), d.int(1, 4), d.int(1, 4)
    if name in ("diag", "diagflat", "tril", "triu"):
        return (lambda n, x: getattr(n, name)(x, k)), d.array(KINDS, least=1, most=3 if name != "diag" else 2)
    if name == "tri":
        return lambda n: n.tri(rows, columns, k, d_type)
    if name in ("tril_indices", "triu_indices"):
        return lambda n: getattr(n, name)(rows, k, columns)
    if name == "vander":
        increasing, count = bool(d.int(0, 1)), d.one(None, 3, 0)
        return (lambda n, x: n.vander(x, count, increasing)), d.array(["int32", "float64", "uint8"], least=1, most=1, special=False)
    if name == "mask_indices":
        return lambda n: n.mask_indices(rows, n.triu, k)
    if name == "diag_indices":
        return lambda n: n.diag_indices(rows, columns)
    if name == "eye":
        return lambda n: n.eye(rows, columns, k, order="F")
    return (lambda n, x: n.trace(x, k)), d.array(KINDS, least=2)


d_type = "i4"


def polynomials(d):
    p, q, x = (d.array(["int32", "float64"], least=1, most=1, special=False, empty=False, low=1, high=4) for _ in range(3))
    name = d.one("polyadd", "polysub", "polymul", "polyval", "poly")
    if name == "poly":
        return (lambda n, r: n.poly(r)), p
    return (lambda n, *args: getattr(n, name)(*args)), p, (x if name == "polyval" else q)


def signals(d):
    size = d.int(0, 12)
    name = d.one("bartlett", "blackman", "hamming", "hanning", "kaiser", "i0", "sinc", "linspace", "logspace", "angle")
    if name in ("i0", "sinc", "angle"):
        return (lambda n, x: getattr(n, name)(x)), d.array(["float64", "int32"], special=False)
    if name == "kaiser":
        return lambda n: n.kaiser(size, 5.0)
    if name == "linspace":
        end, dtype, axis = bool(d.int(0, 1)), d.one(None, "i4", "f4"), d.one(0, -1)
        ends = d.one((2, 9), (5.5, -1.0), (3, 3))
        if d.int(0, 1):
            return (lambda n, x: n.linspace(x, 3, size, end, dtype=dtype, axis=axis)), d.array(["float64"], special=False)
        return lambda n: n.linspace(*ends, size, end, dtype=dtype)
    if name == "logspace":
        return lambda n: n.logspace(0, 3, size, base=2.0)
    return lambda n: getattr(n, name)(size)


def bits(d):
    if d.int(0, 1):
        a = d.array(["bool", "uint8", "int32", "float32"])
        axis, order = d.axis(a), d.one("big", "little")
        return (lambda n, x: n.packbits(x, axis, order)), a
    a = d.array(["uint8", "uint8", "int8"], empty=False)
    axis, size, order = d.axis(a), d.one(None, 5, -2, 11), d.one("big", "little", "none")
    return (lambda n, x: n.unpackbits(x, axis, size, order)), a


def functions(d):
    a = d.array(["int32", "float64"], least=1, special=False)
    name = d.one("apply_along_axis", "apply_over_axes", "fromfunction", "broadcast_arrays", "array_equiv", "fix", "isposinf", "isneginf", "meshgrid")
    if name == "apply_along_axis":
        axis, make = d.axis(a, none=False), d.one(lambda x: x.sum(), lambda x: x[::-1] * 2)
        return (lambda n, x: n.apply_along_axis(make, axis, x)), a
    if name == "apply_over_axes":
        return (lambda n, x: n.apply_over_axes(n.sum, x, [0])), a
    if name == "fromfunction":
        return lambda n: n.fromfunction(lambda i, j: i * 2 + j, (3, 4), dtype=int)
    if name in ("broadcast_arrays", "array_equiv"):
        return (lambda n, x, y: getattr(n, name)(x, y)), a, d.array(["int32"], shape=d.one(a.shape, (1,), (7,)), special=False)
    if name == "meshgrid":
        options = {"indexing": d.one("xy", "ij", "ab"), "sparse": bool(d.int(0, 1)), "copy": bool(d.int(0, 1))}
        return (lambda n, x: n.meshgrid(x, x[:1], **options)), a.ravel()
    return (lambda n, x: getattr(n, name)(x)), d.array(FLOATS)


# Family -> (cases, what is looked at on the device before it is refused)
FAMILIES = {"arrange": arrange, "repeated": repeated_by_counts, "layouts": shape_of_files, "join": join, "cut": cut, "pad": pad, "pick": pick, "write": write, "masked": masked,
            "sets": sets, "search": search, "count": count, "statistics": statistics, "nans": nans, "calculus": calculus, "matrices": matrices,
            "polynomials": polynomials, "signals": signals, "bits": bits, "functions": functions}
LOOKED_AT = {"repeated", "pick", "masked", "search", "count", "nans", "statistics"}


@pytest.mark.parametrize("family", FAMILIES)
def test_routines(g, family):
    run(g, {family: one_or_more(FAMILIES[family])}, 1, noisy=LOOKED_AT)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_limits_of_floats(g, dtype):
    ours, theirs = g.finfo(dtype), np.finfo(dtype)
    for name in ("bits", "eps", "epsneg", "max", "min", "smallest_normal", "tiny", "smallest_subnormal", "precision", "resolution"):
        assert float(getattr(ours, name)) == pytest.approx(float(getattr(theirs, name)), rel=1e-3 if name == "resolution" else 0), name
        assert type(getattr(ours, name)) in (int, float)
    assert ours.dtype == theirs.dtype and g.finfo(g.zeros(2, dtype)).max == ours.max and "finfo(" in repr(ours)
    with pytest.raises(ValueError, match="not inexact"):
        g.finfo("i4")


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8"])
def test_limits_of_integers(g, dtype):
    ours, theirs = g.iinfo(dtype), np.iinfo(dtype)
    assert (ours.bits, ours.min, ours.max, ours.dtype) == (theirs.bits, theirs.min, theirs.max, theirs.dtype) and "iinfo(" in repr(ours)
    with pytest.raises(ValueError, match="Invalid integer data type"):
        g.iinfo("f4")


def test_what_the_namespace_says_of_itself(g):
    assert g.asarray([1]).__array_namespace__() is g and g.__array_api_version__ >= "2023.12"
    info = g.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] and info.capabilities()["data-dependent shapes"]
    assert info.default_device() in info.devices() and info.default_dtypes()["integral"] == np.int64
    assert set(info.dtypes(kind="unsigned integer")) == {"uint8", "uint16", "uint32", "uint64"} and set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}
    assert set(info.dtypes(kind="integral")) | {"bool", "float32", "float64"} <= set(info.dtypes())
    with pytest.raises(ValueError, match="unsupported kind"):
        info.dtypes(kind="odd")


@pytest.mark.parametrize("dtype", KINDS)
def test_ends_of_differences_are_of_the_same_kind(g, dtype):
    a = np.array([1, 3, 2]).astype(dtype)
    for ends in ((3, [1, 2]), (None, 2.5), (np.float32(2), None), ([1, 2], np.array([1], "u1"))):
        try:
            theirs = np.ediff1d(a, *ends)
        except TypeError:
            with pytest.raises(TypeError, match="boolean|same_kind"):
                g.ediff1d(g.asarray(a), *ends)
        else:
            same(g.ediff1d(g.asarray(a), *ends), theirs)


def test_unstacking(g):
    a = np.arange(24).reshape(2, 3, 4)
    for axis in (0, 1, -1):
        ours, theirs = g.unstack(g.asarray(a), axis=axis), np.unstack(a, axis=axis)
        assert type(ours) is tuple and len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            same(one, other)
    for wrong in (lambda xp: xp.unstack(xp.asarray(3)), lambda xp: xp.unstack(xp.zeros((2, 3)), axis=2)):
        for xp in (g, np):
            with pytest.raises(ValueError):
                wrong(xp)


def test_types_of_ours_are_taken_where_numpy_takes_its_own(g):
    assert g.can_cast(g.int8, g.int16) and not g.can_cast(g.int16, g.int8) and g.result_type(g.int8, g.zeros(2, "f4"), 3.0) == np.float32
    assert g.promote_types(g.int8, g.uint8) == np.int16 and g.issubdtype(g.int8, np.integer)
    for kind in ("bool", "integral", "real floating", "numeric", g.float32, ("bool", g.float32), np.dtype("f4")):
        for dtype in ("bool", "i2", "u8", "f4", "f8"):
            theirs = tuple(np.dtype(str(one)) if isinstance(one, type(g.float32)) else one for one in (kind if isinstance(kind, tuple) else (kind,)))
            assert g.isdtype(g.zeros(1, dtype).dtype, kind) == np.isdtype(np.dtype(dtype), theirs), (kind, dtype)
    with pytest.raises(ValueError, match="not a known kind name"):
        g.isdtype(g.int8, "odd")
    assert g.int8 != [("a", "b", "c", "d")] and g.zeros(2, None).dtype == g.ones(2, dtype=None).dtype == np.float64


@pytest.mark.parametrize("dtype", ["bool", "i4", "u1", "f4"])
def test_descending_order_is_stable(g, dtype):
    a = np.random.default_rng(3).integers(0, 4, (5, 40)).astype(dtype)
    for axis in (0, 1, None):
        ours = g.argsort(g.asarray(a), axis=axis, descending=True)
        theirs = np.argsort(-a.astype("f8"), axis=axis, kind="stable")
        same(ours, theirs)
        same(g.sort(g.asarray(a), axis=axis, descending=True), np.take_along_axis(a.ravel() if axis is None else a, theirs, 0 if axis is None else axis))


def test_new_arrays_like_others_on_a_device(g):
    x = g.zeros((2, 3), "f4")
    for make in (g.empty_like, g.zeros_like, g.ones_like, lambda a, **how: g.full_like(a, 7, **how)):
        assert make(x, device=x.device).shape == (2, 3) and make(x, device=0).dtype == np.float32
    same(x.to_device(x.device, stream=None), x.get())
    same(g.asarray([[x[0, 0], 2], [x[0, 1], x[1, 1]]]), np.array([[0, 2], [0, 0]], "f8"))
    same(g.clip(g.arange(5), 1, a_max=3), np.clip(np.arange(5), 1, 3))
