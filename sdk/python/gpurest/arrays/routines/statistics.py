"""Means, medians, quantiles and covariances."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ..._values import dtypes
from ..._values.dtypes import DType
from .. import joining, linalg, reductions, shaping, sorting, ufuncs
from .._engine import shapes
from ..ndarray import AxisLike, ndarray
from ..ufuncs import as_array

__all__ = ["average", "corrcoef", "cov", "median", "percentile", "quantile"]


class Pick(NamedTuple):
    """Where a quantile lies among sorted elements: between two places, `share` of the way from the lower one."""

    low: int
    high: int
    share: float


def _between(index: float, count: int, share: Optional[Callable[[float, float], float]] = None) -> Pick:
    low = math.floor(index)
    part = index - low
    first, second = (min(max(one, 0), count - 1) for one in (low, low + 1))
    part = 0.0 if index < 0 else part if index < count - 1 else 0.0
    return Pick(first, second, part if share is None else share(part, low))


def _step(index: float, count: int, stays: Callable[[float, int], bool]) -> Pick:
    """One of both neighbours."""
    low = math.floor(index)
    return _only(min(max(low if stays(index - low, low) else low + 1, 0), count - 1))


def _only(at: int) -> Pick:
    return Pick(at, at, 0.0)


def _spread(alpha: float, beta: float) -> Callable[[int, float], Pick]:
    return lambda n, q: _between(n * q + (alpha + q * (1 - alpha - beta)) - 1, n)


# Hyndman and Fan's, and NumPy's older ones: (elements, quantile) -> where it lies.
METHODS: Dict[str, Callable[[int, float], Pick]] = {
    "inverted_cdf": lambda n, q: _step(n * q - 1, n, lambda part, low: part == 0),
    "averaged_inverted_cdf": lambda n, q: _between(n * q - 1, n, lambda part, low: 0.5 if part == 0 else 1.0),
    "closest_observation": lambda n, q: _step(n * q - 1 - 0.5, n, lambda part, low: part == 0 and low % 2 == 1),
    "interpolated_inverted_cdf": _spread(0, 1), "hazen": _spread(0.5, 0.5), "weibull": _spread(0, 0),
    "linear": lambda n, q: _between((n - 1) * q, n), "median_unbiased": _spread(1 / 3, 1 / 3), "normal_unbiased": _spread(3 / 8, 3 / 8),
    "lower": lambda n, q: _only(math.floor((n - 1) * q)),
    "higher": lambda n, q: _only(math.ceil((n - 1) * q)),
    "midpoint": lambda n, q: Pick(math.floor((n - 1) * q), math.ceil((n - 1) * q), 0.5),
    "nearest": lambda n, q: _only(round((n - 1) * q)),
}


def lines(array: ndarray, axis: AxisLike) -> Tuple[ndarray, shapes.Shape]:
    """With the dimensions that are reduced as the last one, and the result's shape with these kept."""
    axes = shapes.normalize_axes(axis, array.ndim)
    kept = [at for at in range(array.ndim) if at not in axes]
    length = shapes.size_of(tuple(array._shape[at] for at in axes))
    moved = array.transpose(kept + list(axes)).reshape(tuple(array._shape[at] for at in kept) + (length,))
    return moved, tuple(1 if at in axes else extent for at, extent in enumerate(array._shape))


def median(a: Any, axis: AxisLike = None, out: Optional[ndarray] = None, overwrite_input: bool = False, keepdims: bool = False) -> ndarray:
    """The middle of the sorted elements, of an even number the mean of both; NaN if there is one."""
    array = as_array(a, out)
    line, kept = lines(array, axis)
    count = line._shape[-1]
    if not count:
        made = reductions.mean(line, -1)
    else:
        ordered = sorting.sort(line)
        made = reductions.mean(ordered[..., (count - 1) // 2:count // 2 + 1], -1)
        if array._dtype.kind in "fc":
            made = ufuncs.where(ufuncs.isnan(ordered[..., -1]), ordered[..., -1], made)
    return reductions.into(out, made.reshape(kept) if keepdims else made, "median", "unsafe")


def percentile(a: Any, q: Any, axis: AxisLike = None, out: Optional[ndarray] = None, overwrite_input: bool = False, method: str = "linear",
               keepdims: bool = False) -> ndarray:
    """quantile() of q / 100."""
    return _quantiles(as_array(a, q, out), q, 100.0, axis, out, method, keepdims)


def quantile(a: Any, q: Any, axis: AxisLike = None, out: Optional[ndarray] = None, overwrite_input: bool = False, method: str = "linear",
             keepdims: bool = False) -> ndarray:
    """What is greater than the share `q` of the elements; NaN if there is one among them. Several shares give a new first dimension. `method`: one of
    NumPy's, by what is taken between two elements. Unlike NumPy's it takes no `weights`."""
    return _quantiles(as_array(a, q, out), q, 1.0, axis, out, method, keepdims)


def _quantiles(array: ndarray, q: Any, whole: float, axis: AxisLike, out: Optional[ndarray], method: str, keepdims: bool) -> ndarray:
    if array._dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    if method not in METHODS:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {', '.join(METHODS)}")
    wanted, shape, exact = _shares(q, array)
    if not all(0 <= one <= whole for one in wanted):
        raise ValueError("Percentiles must be in the range [0, 100]" if whole > 1 else "Quantiles must be in the range [0, 1]")
    line, kept = lines(array, axis)
    count = line._shape[-1]
    if not count:
        raise IndexError(f"index -1 is out of bounds for axis {max(array.ndim - 1, 0)} with size 0")
    narrow = array._dtype if exact and array._dtype.kind == "f" else dtypes.float64
    picks = [METHODS[method](count, dtypes.rounded(one / whole, narrow)) for one in wanted]
    ordered = sorting.sort(line)
    found = [_interpolated(ordered, pick, narrow, method) for pick in picks]
    if array._dtype.kind == "f":
        last = ordered[..., -1]
        found = [ufuncs.where(ufuncs.isnan(last), last, one) for one in found]
    final = kept if keepdims else line._shape[:-1]
    made = joining.stack(found).reshape(shape + final) if found else array[:0].reshape(-1)[:0].reshape(shape + (0,) * 0)
    return reductions.into(out, made, "quantile", "unsafe")


def _shares(q: Any, array: ndarray) -> Tuple[List[float], shapes.Shape, bool]:
    """The shares as numbers of the host, their shape, and whether they take the array's type."""
    if isinstance(q, (int, float)) and not hasattr(q, "dtype"):
        return [float(q)], (), True
    listed = as_array(q, array)
    values = listed.tolist()
    flat = [values] if listed.ndim == 0 else shaping.ravel(listed).tolist()
    return [float(one) for one in flat], listed._shape, listed._dtype is array._dtype


def _interpolated(ordered: ndarray, pick: Pick, kind: DType, method: str) -> ndarray:
    low = ordered[..., pick.low]
    if method in ("lower", "higher", "nearest", "inverted_cdf", "closest_observation"):
        return low.copy()
    high = ordered[..., pick.high]
    low, high = (one.astype(dtypes.float64) if one._dtype.kind != "f" else one for one in (low, high))
    result = dtypes.promote(low._dtype, kind)
    low, step = low.astype(result, copy=False), (high - low).astype(result, copy=False)
    return low + step * pick.share if pick.share < 0.5 else high.astype(result, copy=False) - step * (1 - pick.share)


def average(a: Any, axis: AxisLike = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """The mean, each element counted as often as its weight says. `returned`: the sum of the weights, too. That this is not zero must be known: with
    weights this sends what is queued."""
    array = as_array(a, weights)
    listed: Any = axis if shapes.is_several(axis) else (axis,)
    axes = None if axis is None else tuple(shapes.normalize_axis(one, array.ndim) for one in listed)
    if weights is None:
        made = reductions.mean(array, axes, keepdims=keepdims)
        count = as_array(float(reductions.count_along(array, axes)), array).astype(made._dtype)
        return (made, shaping.broadcast_to(count, made._shape).copy()) if returned else made
    shares = _weights_for(array, as_array(weights, array), axes)
    kind = dtypes.promote(array._dtype, shares._dtype)
    kind = kind if array._dtype.kind in "fc" else dtypes.promote(kind, dtypes.float64)
    total = reductions.sum(shares, axes, kind, keepdims=keepdims)
    if bool(reductions.any(total == 0)):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    made = reductions.sum(array.astype(kind, copy=False) * shares.astype(kind, copy=False), axes, keepdims=keepdims) / total
    return (made, shaping.broadcast_to(total, made._shape).copy()) if returned else made


def _weights_for(array: ndarray, weights: ndarray, axes: Optional[Tuple[int, ...]]) -> ndarray:
    """`axes` are counted from the front."""
    if weights._shape == array._shape:
        return weights
    if axes is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    if weights._shape != tuple(array._shape[at] for at in axes):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    ordered = weights.transpose([axes.index(at) for at in sorted(axes)])
    wide = ordered.reshape(tuple(extent if at in axes else 1 for at, extent in enumerate(array._shape)))
    return shaping.broadcast_to(wide, array._shape)


def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Optional[int] = None, fweights: Any = None, aweights: Any = None, *,
        dtype: Any = None) -> ndarray:
    """The covariances of variables, a row of observations each, or with `rowvar` False a column. `fweights`: how often each observation counts,
    `aweights`: how much."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    first = as_array(m, y, fweights, aweights)
    rows = shaping.atleast(first, 2)
    rows = rows.T if not rowvar and first.ndim != 1 else rows
    if first.ndim > 2 or (y is not None and as_array(y, first).ndim > 2):
        raise ValueError(f"{'m' if first.ndim > 2 else 'y'} has more than 2 dimensions")
    if y is not None:
        more = shaping.atleast(as_array(y, first), 2)
        rows = joining.concatenate([rows, more.T if not rowvar and more._shape[0] != 1 else more], 0)
    kind = dtypes.dtype_of(dtype) if dtype is not None else dtypes.promote(rows._dtype, dtypes.float64)
    rows = rows.astype(kind, copy=False)
    spare = (0 if bias else 1) if ddof is None else int(ddof)
    weights = _observation_weights(rows, fweights, aweights)
    if weights is None:
        factor: Any = float(rows._shape[1] - spare)
        middle, right = reductions.mean(rows, 1, keepdims=True), None
        factor = max(factor, 0.0) or math.nan
    else:
        total = reductions.sum(weights)
        middle, right = reductions.sum(rows * weights, 1, keepdims=True) / total, weights
        factor = total if not spare else total - spare if aweights is None else total - spare * reductions.sum(weights * as_array(aweights, first)) / total
    distance = rows - middle
    other = distance if right is None else distance * right
    made: ndarray = linalg.matmul(distance, ufuncs.conjugate(other).T) / factor
    return made.squeeze()


def _observation_weights(rows: ndarray, fweights: Any, aweights: Any) -> Optional[ndarray]:
    found: Optional[ndarray] = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        one = as_array(given, rows)
        if name == "fweights" and one._dtype.kind == "f":
            raise TypeError("fweights must be integer")
        if one.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if one._shape[0] != rows._shape[1]:
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        if bool(reductions.any(one < 0)):
            raise ValueError(f"{name} cannot be negative")
        one = one.astype(rows._dtype, copy=False)
        found = one if found is None else found * one
    return found


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> ndarray:
    """The covariances over the standard deviations of both variables, within -1 and 1."""
    matrix = cov(x, y, rowvar, dtype=dtype)
    if matrix.ndim == 0:
        return matrix / matrix
    deviation = ufuncs.sqrt(linalg.diagonal(matrix).real)
    shares = matrix / deviation.reshape(-1, 1) / deviation
    if shares._dtype.kind == "c":
        return ufuncs.from_parts(ufuncs.clip(shares.real, -1, 1), ufuncs.clip(shares.imag, -1, 1))
    return ufuncs.clip(shares, -1, 1)
