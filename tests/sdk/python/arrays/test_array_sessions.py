"""Operands of the host beside an array come into the array's session, in every function of the package: the default session is forbidden here."""
import gpurest
import numpy as np
import pytest

from . import test_array_fft, test_array_linalg, test_array_routines, test_array_ufuncs
from .array_calls import EXAMPLES, FETCHED, REFUSALS, Comparison, Draw, numbers_of
from .test_array_breadth import members, of_linalg, shared_functions, there, ufuncs

X = np.array([[4.0, 1, 2], [1, 5, 3], [2, 3, 6]])
Y = np.array([[1.0, 2, 3], [2, 2, 1], [3, 1, 1]])
V, W, SORTED = np.array([1.0, 3, 2]), np.array([2.0, 0.5, 1]), np.array([1.0, 2, 3])
N, PLACES = np.array([[3, 1, 2], [1, 2, 1], [5, 2, 3]]), np.array([2, 0, 1])
MASK, WIDE = np.array([True, False, True]), np.array([[True, False, True], [False, True, True], [True, True, False]])
BYTES = np.array([[1, 2, 3], [200, 7, 0]], "u1")

# Function -> calls of several operands, each of which is the array once. Other functions are called with X alone, ufuncs as UFUNC says.
SEVERAL = {
    "allclose": [(lambda n, x, y: n.allclose(x, y), X, Y), (lambda n, x, t: n.allclose(x, 4.0, t, t), X, V)],
    "append": [(lambda n, x, y: n.append(x, y), X, V), (lambda n, x, y: n.append(x, y, 0), X, Y)],
    "apply_along_axis": [(lambda n, x: n.apply_along_axis(lambda line: [1, 2], 0, x), X)],
    "array_equal": [(lambda n, x, y: n.array_equal(x, y), X, Y)], "array_equiv": [(lambda n, x, y: n.array_equiv(x, y), X, Y)],
    "asarray": [(lambda n, x: n.asarray([[x[0, 0], 2], [3, 4]]), X)],
    "average": [(lambda n, x, w: n.average(x, 0, w, True), X, W), (lambda n, x: n.average(x, returned=True), X)],
    "bincount": [(lambda n, x, w: n.bincount(x, w), PLACES, W)],
    "broadcast_arrays": [(lambda n, x, y: n.broadcast_arrays(x, y), X, V)],
    "choose": [(lambda n, i, x, y: n.choose(i, [x, y, 4]), np.array([0, 1, 2]), V, W)],
    "clip": [(lambda n, x, low, high: n.clip(x, low, high), X, V, V + 2), (lambda n, x, low: n.clip(x, low, 3), X, V)],
    "column_stack": [(lambda n, x, y: n.column_stack([x, y]), V, W)],
    "compress": [(lambda n, c, x: n.compress(c, x, 0), MASK, X)],
    "concat": [(lambda n, x, y: n.concat([x, y]), X, Y)],
    "concatenate": [(lambda n, x, y: n.concatenate([x, y]), X, Y), (lambda n, x, y: n.concatenate([[x, V.tolist()], y]), V, X)],
    "convolve": [(lambda n, x, y: n.convolve(x, y), V, W)], "correlate": [(lambda n, x, y: n.correlate(x, y, "full"), V, W)],
    "corrcoef": [(lambda n, x, y: n.corrcoef(x, y), X, Y)],
    "cov": [(lambda n, x, y: n.cov(x, y), X, Y), (lambda n, x, f, a: n.cov(x, fweights=f, aweights=a), X, PLACES + 1, W)],
    "cross": [(lambda n, x, y: n.cross(x, y), X, V), (lambda n, x, y: n.cross(x, y), X, Y)],
    "delete": [(lambda n, x, i: n.delete(x, i, 0), X, np.array([0, 2])), (lambda n, x, i: n.delete(x, i, 0), X, MASK)],
    "diff": [(lambda n, x, p, a: n.diff(x, prepend=p, append=a), V, W, W), (lambda n, x: n.diff(x, prepend=1), V)],
    "digitize": [(lambda n, x, b: n.digitize(x, b), X, SORTED)],
    "dot": [(lambda n, x, y: n.dot(x, y), X, V), (lambda n, x: n.dot(x, 2), X)],
    "dstack": [(lambda n, x, y: n.dstack([x, y]), X, Y)],
    "ediff1d": [(lambda n, x, e, b: n.ediff1d(x, e, b), X, V, W), (lambda n, x: n.ediff1d(x, 3, [1, 2]), X)],
    "einsum": [(lambda n, x, y: n.einsum("ij,j->i", x, y), X, V)],
    "extract": [(lambda n, c, x: n.extract(c, x), WIDE, X)],
    "full_like": [(lambda n, x, y: n.full_like(x, y), X, V)],
    "gradient": [(lambda n, x, p: n.gradient(x, p, axis=0), X, SORTED ** 2), (lambda n, x, p: n.gradient(x, p, p), X, SORTED ** 2)],
    "histogram": [(lambda n, x, b, w: n.histogram(x, b, weights=w), X, SORTED, Y), (lambda n, x: n.histogram(x, [1, 2, 5], density=True), X)],
    "histogram2d": [(lambda n, x, y, w: n.histogram2d(x, y, [2, 3], weights=w), V, W, W), (lambda n, x, y, b: n.histogram2d(x, y, [b, b]), V, W, SORTED)],
    "histogramdd": [(lambda n, x, y, w: n.histogramdd((x, y), [2, 3], weights=w), V, W, W), (lambda n, x, b, c: n.histogramdd(x, [b, c, 3]), X, SORTED, SORTED)],
    "hstack": [(lambda n, x, y: n.hstack([x, y]), X, Y)],
    "inner": [(lambda n, x, y: n.inner(x, y), X, V)],
    "interp": [(lambda n, x, xp, fp: n.interp(x, xp, fp, -1, 7), X, SORTED, W), (lambda n, x, xp, fp: n.interp(x, xp, fp, period=2.5), X, V, W),
               (lambda n, x, xp, fp: n.interp(x, xp, fp), X, SORTED, W + 1j)],
    "intersect1d": [(lambda n, x, y: n.intersect1d(x, y, return_indices=True), X, V), (lambda n, x, y: n.intersect1d(x, y, True), V, SORTED)],
    "isclose": [(lambda n, x, y: n.isclose(x, y), X, Y), (lambda n, x: n.isclose(x, 4.0), X), (lambda n, x: n.isclose(4, x), X),
                (lambda n, x, r, a: n.isclose(x, 3.0, r, a), X, V, W), (lambda n, r, a: n.isclose(3, 3.0, r, a, equal_nan=True), V, W)],
    "isin": [(lambda n, x, y: n.isin(x, y), X, V), (lambda n, x: n.isin(x, []), X)],
    "kron": [(lambda n, x, y: n.kron(x, y), X, V)],
    "lexsort": [(lambda n, x, y: n.lexsort([x, y]), V, W)],
    "linspace": [(lambda n, x, y: n.linspace(x, y, 4), V, W), (lambda n, x: n.linspace(x, 9, 3, retstep=True), V)],
    "logspace": [(lambda n, x, y: n.logspace(x, y, 4), V, W), (lambda n, x, b: n.logspace(0, x, 4, base=b), V, W)],
    "meshgrid": [(lambda n, x, y: n.meshgrid(x, y), V, W)],
    "outer": [(lambda n, x, y: n.outer(x, y), V, W)],
    "pad": [(lambda n, x, v: n.pad(x, 2, constant_values=v), X, V[:2]), (lambda n, x: n.pad(x, 2, "linear_ramp", end_values=3), X), (lambda n, x: n.pad(x, 2, "mean"), X)],
    "percentile": [(lambda n, x, q: n.percentile(x, q, axis=0), X, V)], "quantile": [(lambda n, x, q: n.quantile(x, q), X, V / 4)],
    "piecewise": [(lambda n, x, c: n.piecewise(x, [c], [lambda y: y * 2, 7]), X, WIDE)],
    "poly": [(lambda n, x: n.poly(x), V)],
    "polyadd": [(lambda n, x, y: n.polyadd(x, y), V, W[:2])], "polysub": [(lambda n, x, y: n.polysub(x, y), V[:2], W)],
    "polyfit": [(lambda n, x, y, w: n.polyfit(x, y, 1, w=w), V, W, W)],
    "polymul": [(lambda n, x, y: n.polymul(x, y), V, W)], "polyval": [(lambda n, x, y: n.polyval(x, y), V, X)],
    "ravel_multi_index": [(lambda n, x, y: n.ravel_multi_index((x, y), (4, 5)), PLACES, PLACES + 1)],
    "repeat": [(lambda n, x, r: n.repeat(x, r, 0), X, PLACES)],
    "roots": [(lambda n, x: n.roots(x), V)],
    "row_stack": [(lambda n, x, y: n.vstack([x, y]), X, V)],
    "searchsorted": [(lambda n, x, v, s: n.searchsorted(x, v, sorter=s), V, X, np.argsort(V))],
    "select": [(lambda n, c, x, y: n.select([c, x > 2], [x, y], 5), WIDE, X, Y), (lambda n, c, x, y: n.select([c], [x], y), WIDE, X, Y)],
    "setdiff1d": [(lambda n, x, y: n.setdiff1d(x, y), X, V)], "setxor1d": [(lambda n, x, y: n.setxor1d(x, y), X, V), (lambda n, x, y: n.setxor1d(x, y, True), SORTED, V)],
    "stack": [(lambda n, x, y: n.stack([x, y], 1), X, Y)],
    "take": [(lambda n, x, i: n.take(x, i, 0), X, PLACES), (lambda n, x, i: n.take(x, i, mode="wrap"), X, PLACES), (lambda n, x: n.take(x, 1), X)],
    "take_along_axis": [(lambda n, x, i: n.take_along_axis(x, i, 0), X, np.argsort(X, 0))],
    "tensordot": [(lambda n, x, y: n.tensordot(x, y, 1), X, Y)],
    "trapezoid": [(lambda n, y, x: n.trapezoid(y, x), X, SORTED)],
    "union1d": [(lambda n, x, y: n.union1d(x, y), X, V)],
    "vander": [(lambda n, x: n.vander(x, 3), V)],
    "var": [(lambda n, x, m: n.var(x, 0, mean=m), X, X.mean(0, keepdims=True)), (lambda n, x: n.var(x), X)],
    "std": [(lambda n, x, m: n.std(x, 0, mean=m), X, X.mean(0, keepdims=True)), (lambda n, x: n.std(x), X)],
    "vdot": [(lambda n, x, y: n.vdot(x, y), X, Y)], "vstack": [(lambda n, x, y: n.vstack([x, y]), X, V)],
    "where": [(lambda n, c, x, y: n.where(c, x, y), WIDE, X, V), (lambda n, c: n.where(c, 1, 2.5), WIDE), (lambda n, x: n.where(x), X), (lambda n, x: n.where(True, x, 2), X)],
    "atleast_1d": [(lambda n, x, y: n.atleast_1d(x, y), X, V)], "atleast_2d": [(lambda n, x, y: n.atleast_2d(x, y), X, V)],
    "atleast_3d": [(lambda n, x, y: n.atleast_3d(x, y), X, V)],
    "unravel_index": [(lambda n, i: n.unravel_index(i, (3, 4)), PLACES)], "packbits": [(lambda n, x: n.packbits(x, 1), BYTES)], "unpackbits": [(lambda n, x: n.unpackbits(x, 1, 12), BYTES)],
    "diag_indices_from": [(lambda n, x: n.diag_indices_from(n.asarray(x)), X)], "tril_indices_from": [(lambda n, x: n.tril_indices_from(n.asarray(x)), X)],
    "triu_indices_from": [(lambda n, x: n.triu_indices_from(n.asarray(x)), X)],
    "apply_over_axes": [(lambda n, x: n.apply_over_axes(n.sum, x, [0]), X)],
    "argpartition": [(lambda n, x: n.sort(n.argpartition(x, 1), -1), X)], "partition": [(lambda n, x: n.sort(n.partition(x, 1)), X)],
    "array_split": [(lambda n, x, i: n.array_split(x, i), X, np.array([1, 2]))], "split": [(lambda n, x, i: n.split(x, i), X, np.array([1, 2]))],
    "hsplit": [(lambda n, x, i: n.hsplit(x, i), X, np.array([1, 2]))], "vsplit": [(lambda n, x, i: n.vsplit(x, i), X, np.array([1, 2]))],
    "dsplit": [(lambda n, x, i: n.dsplit(x, i), X[None], np.array([1, 2]))],
    "astype": [(lambda n, x: n.astype(n.asarray(x), "f4"), X)], "broadcast_to": [(lambda n, x: n.broadcast_to(x, (2, 3)), V)], "expand_dims": [(lambda n, x: n.expand_dims(x, 1), X)],
    "isdtype": [(lambda n, x: n.isdtype(n.asarray(x).dtype, "integral"), X)], "moveaxis": [(lambda n, x: n.moveaxis(x, 0, 1), X)], "permute_dims": [(lambda n, x: n.permute_dims(x, (1, 0)), X)],
    "reshape": [(lambda n, x: n.reshape(x, (9,)), X)], "resize": [(lambda n, x: n.resize(x, (4, 4)), X)], "roll": [(lambda n, x, s: n.roll(x, s, (0, 1)), X, np.array([1, 2]))],
    "rollaxis": [(lambda n, x: n.rollaxis(x, 1), X)], "require": [(lambda n, x: n.require(x, "f4", "F"), X)], "swapaxes": [(lambda n, x: n.swapaxes(x, 0, 1), X)],
    "squeeze": [(lambda n, x: n.squeeze(x, 0), X[:1])], "tile": [(lambda n, x, r: n.tile(x, r), X, np.array([2, 1]))], "can_cast": [(lambda n, x: n.can_cast(x.dtype, "f4"), X)],
    "result_type": [(lambda n, x: n.result_type(n.asarray(x), 2), X)], "common_type": [(lambda n, x: n.common_type(n.asarray(x)), X)], "trim_zeros": [(lambda n, x: n.trim_zeros(x), np.array([0, 1.0, 0]))],
    "matrix_transpose": [(lambda n, x: n.matrix_transpose(x), X)], "cumulative_sum": [(lambda n, x: n.cumulative_sum(x, axis=0, include_initial=True), X)],
    "cumulative_prod": [(lambda n, x: n.cumulative_prod(x, axis=0, include_initial=True), X)],
    "may_share_memory": [(lambda n, x, y: n.may_share_memory(x, y), X, Y)], "shares_memory": [(lambda n, x, y: n.shares_memory(x, y), X, Y)],
}
# The array is written to; it is what the call gives.
WRITTEN = {
    "copyto": [(lambda n, x, y, m: n.copyto(x, y, where=m), X, V, WIDE), (lambda n, x: n.copyto(x, 3), X), (lambda n, x, y: n.copyto(x, y), X, np.float32(2))],
    "fill_diagonal": [(lambda n, x, v: n.fill_diagonal(x, v), X, V), (lambda n, x: n.fill_diagonal(x, 7), X)],
    "place": [(lambda n, x, m, v: n.place(x, m, v), X, WIDE, V)], "putmask": [(lambda n, x, m, v: n.putmask(x, m, v), X, WIDE, V)],
    "put": [(lambda n, x, i, v: n.put(x, i, v), X, PLACES, V), (lambda n, x: n.put(x, 1, 2), X), (lambda n, x: n.put(x, [1, 2], 9, "wrap"), X)],
    "put_along_axis": [(lambda n, x, i, v: n.put_along_axis(x, i, v, 1), X, N[:, :1] % 3, Y[:, :1])],
}
# What takes no arrays, or gives nothing that depends on a session.
NOT_OF_ARRAYS = set("""arange array2string array_repr array_str bartlett base_repr binary_repr blackman broadcast_shapes diag_indices empty eye format_float_positional
format_float_scientific from_dlpack frombuffer fromfile fromfunction fromiter fromstring full genfromtxt get_printoptions hamming hanning identity indices isscalar issubdtype ix_
kaiser load loadtxt mask_indices mintypecode ones printoptions promote_types save savetxt savez savez_compressed set_printoptions show_config tri tril_indices triu_indices typename
zeros i0 iterable empty_like bitwise_count""".split())
ALONE = {"i0": V, "angle": X, "nan_to_num": X, "histogram": X}
UFUNC = {**{name: (N, N[0]) for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "gcd", "lcm", "invert", "bitwise_not", "bitwise_invert",
                                        "bitwise_left_shift", "bitwise_right_shift", "bitwise_count")},
         **{name: (X / 8, Y / 8) for name in ("arccos", "acos", "arcsin", "asin", "arctanh", "atanh")}, "ldexp": (X, N[0])}
LINALG = {
    "solve": [(lambda n, x, y: n.linalg.solve(x, y), X, V)], "lstsq": [(lambda n, x, y: n.linalg.lstsq(x, y), X, V)], "tensorsolve": [(lambda n, x, y: n.linalg.tensorsolve(x, y), X, V)],
    "multi_dot": [(lambda n, x, y, z: n.linalg.multi_dot([x, y, z]), X, Y, V)], "matrix_power": [(lambda n, x: n.linalg.matrix_power(x, 0), X), (lambda n, x: n.linalg.matrix_power(x, -1), X)],
    "cross": [(lambda n, x, y: n.linalg.cross(x, y), X, Y)], "outer": [(lambda n, x, y: n.linalg.outer(x, y), V, W)], "matmul": [(lambda n, x, y: n.linalg.matmul(x, y), X, Y)],
    "tensordot": [(lambda n, x, y: n.linalg.tensordot(x, y, axes=1), X, Y)], "vecdot": [(lambda n, x, y: n.linalg.vecdot(x, y), X, V)],
    "tensorinv": [(lambda n, x: n.linalg.tensorinv(x, 1), X)], "pinv": [(lambda n, x, r: n.linalg.pinv(x, r), np.stack([X, Y]), np.array([1e-9, 1e-8]))],
    "matrix_rank": [(lambda n, x, r: n.linalg.matrix_rank(x, r), np.stack([X, Y]), np.array([1e-9, 1e-8]))],
    "eig": [(lambda n, x: n.linalg.eigvals(x).real.sum(), X)], "eigh": [(lambda n, x: n.linalg.eigh(x)[0], X)], "svd": [(lambda n, x: n.linalg.svd(x)[1], X)],
    "qr": [(lambda n, x: abs(n.linalg.qr(x)[1]), X)], "eigvals": [(lambda n, x: n.sort(n.linalg.eigvals(x).real), X)],
    "cond": [(lambda n, x: n.linalg.cond(x, 1), X)], "norm": [(lambda n, x: n.linalg.norm(x, 2), X)],
}
# What a call is written into, or chooses by, is the array; nothing else is.
OTHERS = {
    "out of a ufunc": (lambda n, o, x, y: n.add(x, y, out=o), Y, X, V), "out of numbers": (lambda n, o: n.add(1, 2, out=o), Y), "out of modf": (lambda n, o, x: n.modf(x, out=(o, None)), Y, X),
    "where of a ufunc": (lambda n, m, x, y: n.multiply(x, y, where=m, out=None) * m, WIDE, X, V), "divmod": (lambda n, x: n.divmod(7.5, x), X),
    "a number of NumPy": (lambda n, x: n.divmod(np.float32(7.5), x), X), "comparison beyond": (lambda n, x: n.less(x, 1 << 70), N),
    "where of sum": (lambda n, m, x: n.sum(x, where=m), WIDE, X), "out of sum": (lambda n, o, x: n.sum(x, 0, out=o), V, X), "out of prod": (lambda n, o, x: n.prod(x, 0, out=o), V, X),
    "out of max": (lambda n, o, x: n.max(x, 0, out=o), V, X), "where of max": (lambda n, m, x: n.max(x, 0, initial=0, where=m), WIDE, X),
    "where of mean": (lambda n, m, x: n.mean(x, 0, where=m), WIDE, X), "out of mean": (lambda n, o, x: n.mean(x, 0, out=o), V, X),
    "where of var": (lambda n, m, x: n.var(x, 0, where=m), WIDE, X), "out of std": (lambda n, o, x: n.std(x, 0, out=o), V, X), "where of any": (lambda n, m, x: n.any(x, where=m), WIDE, X),
    "out of all": (lambda n, o, x: n.all(x, 0, out=o), MASK, X), "out of argmax": (lambda n, o, x: n.argmax(x, 0, out=o), PLACES, X), "out of cumsum": (lambda n, o, x: n.cumsum(x, 0, out=o), Y, X),
    "out of ptp": (lambda n, o, x: n.ptp(x, 0, out=o), V, X), "out of median": (lambda n, o, x: n.median(x, 0, out=o), V, X), "out of percentile": (lambda n, o, x: n.percentile(x, 30, 0, out=o), V, X),
    "out of quantile": (lambda n, o, x: n.quantile(x, 0.3, 0, out=o), V, X), "out of concatenate": (lambda n, o, x, y: n.concatenate([x, y], out=o), np.zeros((6, 3)), X, Y),
    "out of stack": (lambda n, o, x, y: n.stack([x, y], out=o), np.zeros((2, 3, 3)), X, Y), "out of take": (lambda n, o, x, i: n.take(x, i, 0, out=o), Y, X, PLACES),
    "out of compress": (lambda n, o, c, x: n.compress(c, x, 0, out=o), Y[:2], MASK, X), "out of choose": (lambda n, o, i, x: n.choose(i, [x, x], out=o), V, PLACES % 2, W),
    "out of clip": (lambda n, o, x: n.clip(x, 1, 3, out=o), Y, X), "out of round": (lambda n, o, x: n.round(x, out=o), Y, X), "out of matmul": (lambda n, o, x, y: n.matmul(x, y, out=o), Y, X, Y),
    "matmul in a type": (lambda n, x, y: n.matmul(x, y, dtype="f4"), X, Y), "out of dot": (lambda n, o, x, y: n.dot(x, y, out=o), np.zeros((3, 3)), X, Y),
    "out of outer": (lambda n, o, x, y: n.outer(x, y, out=o), Y, V, W), "out of trace": (lambda n, o, x: n.trace(x, out=o), np.array(1.0), X),
    "out of einsum": (lambda n, o, x, y: n.einsum("ij,j->i", x, y, out=o), V, X, V), "out of multi_dot": (lambda n, o, x, y: n.linalg.multi_dot([x, y, x], out=o), np.zeros((3, 3)), X, Y),
    "out of nansum": (lambda n, o, x: n.nansum(x, 0, out=o), V, X), "where of nansum": (lambda n, m, x: n.nansum(x, 0, where=m), WIDE, X), "out of nanmax": (lambda n, o, x: n.nanmax(x, 0, out=o), V, X),
    "where of nanmean": (lambda n, m, x: n.nanmean(x, 0, where=m), WIDE, X), "out of nanmean": (lambda n, o, x: n.nanmean(x, 0, out=o), V, X), "out of nanstd": (lambda n, o, x: n.nanstd(x, 0, out=o), V, X),
    "where of nanvar": (lambda n, m, x: n.nanvar(x, 0, where=m), WIDE, X), "out of nanmedian": (lambda n, o, x: n.nanmedian(x, 0, out=o), V, X), "out of nanargmin": (lambda n, o, x: n.nanargmin(x, 0, out=o), PLACES, X),
    "out of nancumsum": (lambda n, o, x: n.nancumsum(x, 0, out=o), Y, X), "out of fix": (lambda n, o, x: n.fix(x, out=o), Y, X), "out of isposinf": (lambda n, o, x: n.isposinf(x, out=o), WIDE, X),
    "out of cumulative_sum": (lambda n, o, x: n.cumulative_sum(x, axis=0, out=o), Y, X), "reduce": (lambda n, m, x: n.maximum.reduce(x, initial=0, where=m), WIDE, X),
    "out of reduce": (lambda n, o, x: n.subtract.reduce(x, out=o), V, X), "initial of reduce": (lambda n, x: n.logaddexp.reduce(x, initial=2), X), "out of accumulate": (lambda n, o, x: n.maximum.accumulate(x, out=o), Y, X),
    "outer": (lambda n, x, y: n.add.outer(x, y), X, V), "outer turned": (lambda n, x, y: n.subtract.outer(y, x), X, V), "vecdot": (lambda n, x, y: n.vecdot(x, y), X, V),
    "key": (lambda n, x: x[[2, 0]], X), "keys": (lambda n, x: x[[2, 0], np.array([1, 1])], X), "mask": (lambda n, x: x[WIDE], X),
    "mask of one dimension": (lambda n, x: x[[True, False, True]], X), "bare mask": (lambda n, x: x[True], X), "flat": (lambda n, x: x.flat[[1, 2]], X),
    "reflected operator": (lambda n, x: 2 - x, X), "operator with NumPy": (lambda n, x: V - x, X), "product with NumPy": (lambda n, x: V @ x, X),
    "operator with a number of NumPy": (lambda n, x: np.float32(2) - x, X), "contains": (lambda n, x: 5 in x, X),
}
CHANGES = {
    "item": (lambda x: x.__setitem__((0, [1, 2]), [7, 8]), X), "mask": (lambda x: x.__setitem__(WIDE, 3), X), "mask and values": (lambda x: x.__setitem__(WIDE, np.arange(6.0)), X),
    "row": (lambda x: x.__setitem__(1, V), X), "flat": (lambda x: x.flat.__setitem__([1, 2], [5, 6]), X), "all of flat": (lambda x: setattr(x, "flat", [1, 2]), X), "real": (lambda x: setattr(x, "real", V), X + 1j),
    "fill": (lambda x: x.fill(np.float32(3)), X), "+=": (lambda x: x.__iadd__(V.tolist() if not isinstance(x, np.ndarray) else V), X), "@=": (lambda x: x.__imatmul__(Y), X), "**=": (lambda x: x.__ipow__(V), X),
    "at": (lambda x: (np if isinstance(x, np.ndarray) else gpurest).add.at(x, [0, 0, 2], V), X), "at in rounds": (lambda x: (np if isinstance(x, np.ndarray) else gpurest).divide.at(x, [0, 0, 2], [2.0]), X),
    "at of subtract": (lambda x: (np if isinstance(x, np.ndarray) else gpurest).subtract.at(x, (np.array([0, 1]), [1, 1]), 3), X), "put": (lambda x: x.put([0, 1], [8, 9]), X), "sort": (lambda x: x.sort(0), X),
    "partition": (lambda x: x.sort() or x.partition(1), X), "resize": (lambda x: x.resize((2, 2)) if not isinstance(x, np.ndarray) else x.resize((2, 2), refcheck=False), X),
}
METHODS = {
    "choose": (lambda x: x.choose([V, W, 4.0]), np.array([0, 1, 2])), "clip": (lambda x: x.clip(V, [5, 5, 5]), X), "compress": (lambda x: x.compress([True, False, True], 0), X), "dot": (lambda x: x.dot(V), X),
    "repeat": (lambda x: x.repeat([1, 0, 2], 0), X), "searchsorted": (lambda x: x.searchsorted([0.5, 2.5]), SORTED), "take": (lambda x: x.take([0, 2]), X), "sum": (lambda x: x.sum(where=WIDE), X),
    "mean": (lambda x: x.mean(where=WIDE), X), "max": (lambda x: x.max(initial=2, where=WIDE), X), "all": (lambda x: x.all(where=WIDE), X), "item": (lambda x: x.item(2), X), "nonzero": (lambda x: x.nonzero(), X),
    "byteswap": (lambda x: x.byteswap(), N), "trace": (lambda x: x.trace(), X), "imag": (lambda x: x.imag, X), "argpartition": (lambda x: x.argpartition(1).sum(), X),
}
RANDOM = {
    "choice": [(lambda r, a: r.choice(a, 4), V), (lambda r, p: r.choice(3, 4, p=p), V / 6), (lambda r, a, p: r.choice(a, 2, False, p), V, V / 6)], "permutation": [(lambda r, x: r.permutation(x), X)],
    "permuted": [(lambda r, x: r.permuted(x, 0), X), (lambda r, o: r.permuted(X, 0, out=o), Y)], "shuffle": [(lambda r, x: r.shuffle(x), X)],
    "integers": [(lambda r, low, high: r.integers(low, high), PLACES, PLACES + 5), (lambda r, high: r.integers(high), PLACES + 5)], "random": [(lambda r, o: r.random(out=o), X)],
    "standard_normal": [(lambda r, o: r.standard_normal(out=o), X)], "standard_gamma": [(lambda r, s: r.standard_gamma(s), V), (lambda r, o: r.standard_gamma(V, out=o), W)],
    "standard_exponential": [(lambda r, o: r.standard_exponential(out=o), X)],
    "triangular": [(lambda r, a, b, c: r.triangular(a, b, c), V, V + 1, V + 2)], "hypergeometric": [(lambda r, a, b, c: r.hypergeometric(a, b, c), PLACES + 5, PLACES + 4, PLACES + 1)],
    "multinomial": [(lambda r, c, p: r.multinomial(c, p), PLACES + 3, V / 6), (lambda r, p: r.multinomial(5, p), V / 6)], "multivariate_normal": [(lambda r, m, c: r.multivariate_normal(m, c), V, X)],
    "multivariate_hypergeometric": [(lambda r, c: r.multivariate_hypergeometric(c, 4), PLACES + 3)], "dirichlet": [(lambda r, a: r.dirichlet(a), V)],
    **{name: [(lambda r, a, b, name=name: getattr(r, name)(a, b), V, W)] for name in ("beta", "f", "gamma", "gumbel", "laplace", "logistic", "lognormal", "noncentral_chisquare", "normal", "vonmises", "wald")},
    "uniform": [(lambda r, a, b: r.uniform(a, b), V, V + 1)], "binomial": [(lambda r, n, p: r.binomial(n, p), PLACES, V / 6)], "negative_binomial": [(lambda r, n, p: r.negative_binomial(n, p), PLACES + 1, V / 6)],
    "noncentral_f": [(lambda r, a, b, c: r.noncentral_f(a, b, c), V, W, V)], "zipf": [(lambda r, a: r.zipf(a), V + 1)], "logseries": [(lambda r, p: r.logseries(p), V / 6)], "geometric": [(lambda r, p: r.geometric(p), V / 6)],
    **{name: [(lambda r, a, name=name: getattr(r, name)(a), V)] for name in ("chisquare", "exponential", "pareto", "poisson", "power", "rayleigh", "standard_t", "weibull")},
}
RANDOM_ALONE = {"bit_generator", "bytes", "spawn", "standard_cauchy"}


@pytest.fixture
def second(g, client, monkeypatch):
    """A session beside the default one, which must not be asked for."""
    def refuse(*_):
        raise AssertionError("something was made in the default session")
    with client.session() as session:
        monkeypatch.setattr(type(client), "default_session", property(refuse))
        monkeypatch.setattr(type(client), "_session_on", refuse)
        yield session


def taken(call, operands, at, session, listed):
    """The call with one operand as an array of the session, the others as NumPy's arrays or as lists."""
    return call(gpurest, *(gpurest.asarray(one, session=session) if place == at else one.tolist() if listed and one.dtype.kind != "u" else one.copy()
                           for place, one in enumerate(operands)))


def compare(ours, theirs, session, what):
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), what
        for one, other in zip(ours, theirs):
            compare(one, other, session, what)
    elif isinstance(ours, gpurest.ndarray):
        assert ours.session is session, what
        np.testing.assert_allclose(ours.get(), theirs, rtol=1e-5, atol=1e-9, err_msg=str(what))
    else:
        np.testing.assert_allclose(ours, theirs, err_msg=str(what)) if not isinstance(theirs, (type, np.dtype)) else None


def in_each_place(what, call, operands, session, places=None):
    with np.errstate(all="ignore"):
        theirs = call(np, *(one.copy() for one in operands))
    for at in range(len(operands)) if places is None else places:
        for listed in (False, True) if len(operands) > 1 else (False,):
            try:
                ours = taken(call, operands, at, session, listed and "select" not in what)
            except AttributeError as error:
                assert listed and "'list' object" in str(error), (what, at, error)  # the call itself uses a member of NumPy's array
                continue
            compare(ours, theirs, session, (what, at, listed))


def alone(name, owner):
    return [(lambda n, x: getattr(owner(n), name)(x), ALONE.get(name, X))]


FUNCTIONS = sorted(set(there(shared_functions(), gpurest)) - set(ufuncs()) - NOT_OF_ARRAYS - set(WRITTEN))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(second, name):
    for call, *operands in SEVERAL.get(name, alone(name, lambda n: n)):
        in_each_place(name, call, operands, second)


@pytest.mark.parametrize("name", WRITTEN)
def test_functions_that_write(second, name):
    for call, *operands in WRITTEN[name]:
        def changed(n, x, *more, call=call):
            call(n, x, *more)
            return x
        in_each_place(name, changed, [np.asarray(one) for one in operands], second, [0])


@pytest.mark.parametrize("name", there(ufuncs(), gpurest))
def test_ufuncs(second, name):
    if getattr(np, name).signature is not None:
        calls = [(lambda n, x, y: getattr(n, name)(x, y), *{"matvec": (X, V), "vecmat": (V, X)}.get(name, (X, Y)))]
    else:
        nin = getattr(np, name).nin
        calls = [(lambda n, *given: getattr(n, name)(*given), *UFUNC.get(name, (X, V))[:nin])]
        if nin == 2:
            calls += [(lambda n, x, y: getattr(n, name)(x, y[0]), *UFUNC.get(name, (X, V))), (lambda n, x, y: getattr(n, name).outer(x, y), *UFUNC.get(name, (X, V)))]
    for call, *operands in calls:
        in_each_place(name, call, operands, second)


@pytest.mark.parametrize("name", of_linalg())
def test_linalg(second, name):
    for call, *operands in LINALG.get(name, alone(name, lambda n: n.linalg)):
        in_each_place(name, call, operands, second)


@pytest.mark.parametrize("name", gpurest.fft.__all__)
def test_fft(second, name):
    if name in ("fftfreq", "rfftfreq"):
        return
    in_each_place(name, lambda n, x: getattr(n.fft, name)(x), [X], second)
    if not name.endswith("shift"):
        in_each_place(name, lambda n, o, x: getattr(n.fft, name)(x, out=o), [getattr(np.fft, name)(X), X], second, [0])


@pytest.mark.parametrize("what", OTHERS)
def test_results_masks_keys_and_operators(second, what):
    call, *operands = OTHERS[what]
    in_each_place(what, call, [np.asarray(one) for one in operands], second, [0])


@pytest.mark.parametrize("what", CHANGES)
def test_changes_in_place(second, what):
    change, host = CHANGES[what]
    ours, theirs = gpurest.asarray(host, session=second), host.copy()
    change(ours)
    change(theirs)
    compare(ours, theirs, second, what)


@pytest.mark.parametrize("what", METHODS)
def test_methods(second, what):
    call, host = METHODS[what]
    compare(call(gpurest.asarray(host, session=second)), call(host.copy()), second, what)


@pytest.mark.parametrize("name", sorted(name for name in dir(gpurest.random.Generator) if not name.startswith("_") and name not in RANDOM_ALONE))
def test_random_numbers(second, name):
    for call, *operands in RANDOM[name]:
        for at in range(len(operands)):
            made = call(gpurest.random.default_rng(3), *(gpurest.asarray(one, session=second) if place == at else one.copy() for place, one in enumerate(operands)))
            if made is not None:
                assert made.session is second, (name, at)
                made.get()


def test_the_tables_name_only_what_there_is():
    assert not (set(SEVERAL) | set(WRITTEN) | NOT_OF_ARRAYS) - set(shared_functions()) - set(ufuncs())
    assert set(LINALG) <= set(of_linalg()) and set(METHODS) - set(members()) <= {"item"} and set(RANDOM) <= set(dir(gpurest.random.Generator))


class InSession(Comparison):
    """Of each call's arrays one is the session's, in turns, the others NumPy's; all are where a call needs that, because it writes or uses members of ours."""

    def __init__(self, g, session, relative):
        super().__init__(g, relative)
        self.session, self.turn = session, 0

    def call(self, what, function, *hosts, quiet=True, refusals=REFUSALS):
        self.turn += 1
        hosts = [np.asarray(one) if isinstance(one, np.generic) else one for one in hosts]
        arrays = [at for at, one in enumerate(hosts) if isinstance(one, np.ndarray)]
        try:
            with np.errstate(all="ignore"):
                theirs = function(np, *(one.copy() if isinstance(one, np.ndarray) else one for one in hosts))
        except refusals:
            with pytest.raises(REFUSALS):
                self._fetched(function(self.g, *self._placed(hosts, None)))
            return
        for places in (arrays[self.turn % len(arrays)], None):
            try:
                ours = function(self.g, *self._placed(hosts, places))
                break
            except (*REFUSALS, AttributeError):
                if places is None:
                    raise
        pairs = zip(numbers_of(ours), numbers_of(theirs))
        self.pairs += [(what, one, other) for one, other in pairs if isinstance(one, self.g.ndarray)]
        assert all(one.session is self.session for _, one, _ in self.pairs), what
        if len(self.pairs) >= FETCHED:
            self.finish()

    def _placed(self, hosts, chosen):
        return [self.g.asarray(one, session=self.session) if isinstance(one, np.ndarray) and chosen in (None, at) else one.copy() if isinstance(one, np.ndarray) else one
                for at, one in enumerate(hosts)]

    def _fetched(self, result):
        for one in numbers_of(result):
            if isinstance(one, self.g.ndarray):
                one.get()


FAMILIES = {**test_array_routines.FAMILIES, **test_array_ufuncs.FAMILIES, "transforms": test_array_fft.transforms, **{f"linalg {name}": case for name, case in test_array_linalg.CASES.items()}}
ALONE_IN_NUMPY = {"matrices", "signals"}  # most of these calls have no arrays


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", sorted(set(FAMILIES) - ALONE_IN_NUMPY))
def test_random_calls(g, second, family):
    together, drawn = InSession(g, second, 1e-3 if family.startswith("linalg") else 2e-3), test_array_routines.one_or_more(FAMILIES[family])
    for example in range(max(1, EXAMPLES // 6)):
        function, *hosts = drawn(Draw([7, example, *map(ord, family)]))
        if any(isinstance(one, (np.ndarray, np.generic)) for one in hosts):
            together.call(f"{family} #{example} of {hosts!r}"[:400], function, *hosts)
    together.finish()
