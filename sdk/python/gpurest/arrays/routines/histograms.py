"""Counting of elements by their values."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence, Tuple

from ..._values import dtypes
from ..._values.dtypes import DType
from .. import indexing, joining, reductions, shaping, ufuncs
from .._engine import shapes
from ..creation import linspace, zeros
from ..ndarray import ndarray
from ..reductions import scalar
from ..ufuncs import as_array, as_arrays
from .searching import searchsorted

__all__ = ["bincount", "histogram", "histogram2d", "histogramdd"]


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> ndarray:
    """How many elements there are of each number from 0 on, as int64, or the sums of their weights, as float64. The greatest must be known, so this
    sends what is queued; floats are added in any order."""
    array = as_array(x, weights)
    if array.ndim != 1:
        raise ValueError("object of too small depth for desired array" if array.ndim == 0 else "object too deep for desired array")
    if array._dtype.kind in "fc" and array.size or array._dtype is dtypes.uint64:
        raise TypeError(f"Cannot cast array data from {array.dtype!r} to {dtypes.public(dtypes.int64)!r} according to the rule 'safe'")
    minlength = shapes.as_index(minlength)
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    shares = None if weights is None else as_array(weights, array).astype("f8", copy=False)
    if shares is not None and shares._shape != array._shape:
        raise ValueError("The weights and list don't have the same length.")
    if not array.size:
        return zeros(minlength, "i8" if shares is None else "f8", session=array._engine.session)
    numbers = array.astype("i8", copy=False)
    least, greatest = (int(one) for one in (reductions.min(numbers), reductions.max(numbers)))
    if least < 0:
        raise ValueError("'list' argument must have no negative elements")
    return _counted(numbers, max(greatest + 1, minlength), shares)


def _counted(numbers: ndarray, bins: int, weights: Optional[ndarray]) -> ndarray:
    made = zeros(bins, "i8" if weights is None else "f8", session=numbers._engine.session)
    indexing.join(made, numbers, 1 if weights is None else weights, "add")
    return made


def _edges(array: ndarray, bins: Any, limits: Any, kind: DType) -> ndarray:
    """The bounds of the bins, which must be known where they follow from the elements: this then sends what is queued."""
    if isinstance(bins, str):
        raise TypeError("bins is a number or the bounds: no method of choosing it by a name")
    if not shapes.is_several(bins):
        if not hasattr(bins, "__index__"):
            raise TypeError("`bins` must be an integer, a string, or an array")
        if int(bins) < 1:
            raise ValueError("`bins` must be positive, when an integer")
        first, last = _range(array, limits)
        made: ndarray = linspace(first, last, int(bins) + 1, dtype=kind, session=array._engine.session)
        return made
    edges = as_array(bins, array)
    if edges.ndim != 1:
        raise ValueError("`bins` must be 1d, when an array")
    if edges.size > 1 and bool(reductions.any(edges[:-1] > edges[1:])):
        raise ValueError("`bins` must increase monotonically, when an array")
    return edges


def _range(array: ndarray, limits: Any) -> Tuple[float, float]:
    if limits is not None:
        first, last = (float(scalar(one)) for one in limits)
        if first > last:
            raise ValueError("max must be larger than min in range parameter.")
        told = "supplied"
    elif not array.size:
        first, last, told = 0.0, 1.0, "autodetected"
    else:
        first, last, told = float(reductions.min(array)), float(reductions.max(array)), "autodetected"
    if not (math.isfinite(first) and math.isfinite(last)):
        raise ValueError(f"{told} range of [{first}, {last}] is not finite")
    return (first - 0.5, last + 0.5) if first == last else (first, last)


def _bins_of(values: ndarray, edges: ndarray) -> ndarray:
    """The number of each element's bin; -1 for those outside. The last bin contains its upper bound."""
    at = searchsorted(edges, values, "right") - 1
    at = ufuncs.where(values == edges[-1], edges.size - 2, at)
    return ufuncs.where((at >= 0) & (at < edges.size - 1) & (values <= edges[-1]), at, -1)


def histogram(a: Any, bins: Any = 10, range: Any = None, density: Optional[bool] = None, weights: Any = None) -> Tuple[ndarray, ndarray]:  # noqa: A002
    """How many elements lie in each bin, or the sums of their weights, and the bins' bounds. `bins`: their number, of equal width within `range` or
    from the least to the greatest element, or their bounds, but unlike in NumPy no name of a rule. `density`: so that the integral is 1."""
    array = as_array(a, weights, bins)
    given = None if weights is None else as_array(weights, array)
    if given is not None and given._shape != array._shape:
        raise ValueError("weights should have the same shape as a.")
    flat, shares = shaping.ravel(array), None if given is None else shaping.ravel(given)
    if flat._dtype.kind == "c":
        raise TypeError("histogram() of complex numbers has no bins: take the real parts, the imaginary ones or the sizes")
    edges = _edges(flat, bins, range, flat._dtype if flat._dtype.kind == "f" else dtypes.float64)
    flat = flat.astype("u1") if flat._dtype.kind == "b" else flat
    counts = _counted_in(_bins_of(flat, edges), edges.size - 1, shares)
    if density:
        return counts / (edges[1:] - edges[:-1]).astype("f8", copy=False) / reductions.sum(counts), edges
    return counts, edges


def _counted_in(numbers: ndarray, bins: int, weights: Optional[ndarray]) -> ndarray:
    """Of -1, which counts nowhere, the last of one bin more is used."""
    kind = dtypes.int64 if weights is None else weights._dtype if weights._dtype.kind in "fc" else sum_of(weights)
    made = zeros(bins + 1, kind if kind.itemsize >= 4 else dtypes.float32, session=numbers._engine.session)
    indexing.join(made, ufuncs.where(numbers < 0, bins, numbers), 1 if weights is None else weights.astype(made._dtype, copy=False), "add")
    return made[:bins].astype(kind)


def sum_of(weights: ndarray) -> Any:
    """The type in which weights are summed."""
    return reductions.sum_type(weights, None) if weights._dtype.kind == "b" else weights._dtype


def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Optional[bool] = None, weights: Any = None) -> Tuple[ndarray, List[ndarray]]:  # noqa: A002
    """How many points lie in each cell of a grid, as float64, and the bounds along each dimension. `sample`: a row for each point, or a sequence of
    arrays of coordinates. `bins`, `range`: of all dimensions, or of each."""
    points = as_array(sample, bins, weights) if isinstance(sample, ndarray) or getattr(sample, "ndim", 0) == 2 else _columns(sample, bins, weights)
    points = points if points.ndim == 2 else shaping.atleast(points, 2).T
    count = points._shape[1]
    several = list(bins) if hasattr(bins, "__len__") else [bins] * count
    if len(several) != count:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    limits = [None] * count if range is None else list(range)
    if len(limits) != count:
        raise ValueError("range argument must have one entry per dimension")
    columns = [points[:, at] for at in _upto(count)]
    edges = [_edges(column, one, limit, dtypes.float64) for column, one, limit in zip(columns, several, limits)]
    shape = tuple(one.size - 1 for one in edges)
    total: Any = 0
    inside: Any = True
    for column, bounds, extent in zip(columns, edges, shape):
        at = _bins_of(column, bounds)
        inside = (at >= 0) & inside
        total = total * extent + at
    cells = 1
    for extent in shape:
        cells *= extent
    shares = None if weights is None else as_array(weights, points).astype("f8", copy=False)
    counts = _counted_in(ufuncs.where(inside, total, -1), cells, shares).astype("f8", copy=False).reshape(shape)
    if density:
        whole = reductions.sum(counts)
        for axis, bounds in enumerate(edges):
            counts = counts / (bounds[1:] - bounds[:-1]).reshape(tuple(-1 if axis == one else 1 for one in _upto(count)))
        counts = counts / whole
    return counts, edges


_upto = range


def _columns(sample: Sequence[Any], *beside: Any) -> ndarray:
    parts = as_arrays(sample, *beside)
    if not parts or parts[0].ndim == 0:
        return as_array(sample, *beside)
    if all(isinstance(one, (list, tuple)) for one in sample):  # rows of points, as NumPy reads nested lists
        return as_array(sample, *beside).T if dtypes.numpy is None else as_array(dtypes.numpy.atleast_2d(sample).T, *beside)
    return joining.stack(parts).T


def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Optional[bool] = None, weights: Any = None) -> Tuple[ndarray, ndarray, ndarray]:  # noqa: A002
    """histogramdd() of points (x, y): counts, and the bounds along both dimensions."""
    first, second = as_arrays((x, y), bins, weights)
    if len(first) != len(second):
        raise ValueError("x and y must have the same length.")
    several = bins if hasattr(bins, "__len__") and len(bins) in (1, 2) else [bins, bins] if hasattr(bins, "__len__") else bins
    counts, edges = histogramdd(joining.stack([first, second]).T, several, range, density, weights)
    return counts, edges[0], edges[1]
