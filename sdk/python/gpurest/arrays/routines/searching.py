"""Places in sorted arrays, and what is made by sorting."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from ..._values import dtypes
from .. import joining, shaping, sorting, ufuncs
from .._engine import shapes
from .._engine.expr import ELEMENTWISE, Load, Node
from ..casting import check as check_cast
from ..creation import full
from ..functions import method
from ..ndarray import ndarray, wrap
from ..ufuncs import as_array, as_arrays
from .picking import take_along_axis

__all__ = ["argpartition", "digitize", "interp", "lexsort", "partition", "searchsorted", "sort_complex"]


@method
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> ndarray:
    """Where, as int64, each element of `v` belongs in the sorted 1-d array `a`: in front of its equals, or with `side` "right" behind them. NaN
    is greater than all numbers. `sorter`: places that put `a` in order."""
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    line, values = as_arrays((a, v), sorter)
    if line.ndim != 1:
        raise ValueError("object of too small depth for desired array" if line.ndim == 0 else "object too deep for desired array")
    if sorter is not None:
        order = as_array(sorter, line)
        if order._shape != line._shape:
            raise ValueError("sorter.size must equal the size of a" if order.ndim == 1 else "object too deep for desired array")
        line = line[order]
    kind = dtypes.promote(line._dtype, values._dtype)
    line, values = line.astype(kind, copy=False), values.astype(kind, copy=False)
    if not line.size:
        return full(values._shape, 0, "i8", session=values._engine.session)
    engine = line._engine
    with engine.lock:
        base = Load(line._storage.node, kind, values._shape, (0,) * values.ndim, line._offset, True)
        params = {"types": (), "extent": line.size, "stride": line._strides[0], "right": side == "right"}
        return wrap(Node(engine, ELEMENTWISE, dtypes.int64, values._shape, "search", (base, values._load()), params))


def digitize(x: Any, bins: Any, right: bool = False) -> ndarray:
    """The number of the bin that each element lies in. Bins go up or down; `right`: they contain their upper bound instead of the lower one. Their
    order must be known, so this sends what is queued."""
    edges, values = as_arrays((bins, x))
    if values._dtype.kind == "c":
        raise TypeError("x may not be complex")
    if edges.ndim != 1:
        raise ValueError("object of too small depth for desired array" if edges.ndim == 0 else "object too deep for desired array")
    side = "left" if right else "right"
    if edges.size < 2 or not bool((edges[1:] < edges[:-1]).any()):
        return searchsorted(edges, values, side)
    if bool((edges[1:] > edges[:-1]).any()):
        raise ValueError("bins must be monotonically increasing or decreasing")
    return edges.size - searchsorted(edges[::-1], values, side)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Optional[float] = None) -> ndarray:
    """Values between the points (xp, fp), whose xp increase, on straight lines, as float64, or complex128 for complex fp. Outside: fp's ends, or
    `left` and `right`; with `period` there is no outside."""
    x, xp, fp = as_arrays((x, xp, fp), left, right)
    for one in (x, xp):
        check_cast(one._dtype, dtypes.float64, "safe")
    if fp._dtype.kind == "c":
        return ufuncs.from_parts(*(interp(x, xp, part(fp), part(left, fp), part(right, fp), period) for part in (_real, _imag)))
    values, places, heights = (one.astype("f8", copy=False) for one in (x, xp, fp))
    if places.ndim != 1 or heights.ndim != 1:
        raise ValueError("Data points must be 1-D sequences" if period is not None else
                         "object of too small depth for desired array" if min(places.ndim, heights.ndim) == 0 else "object too deep for desired array")
    if not places.size:
        raise ValueError("array of sample points is empty")
    if places.size != heights.size:
        raise ValueError("fp and xp are not of the same length.")
    if period is not None:
        if period == 0:
            raise ValueError("period must be a non-zero value")
        period, left, right = abs(period), None, None
        values, places = values % period, places % period
        order = sorting.argsort(places)
        places, heights = places[order], heights[order]
        places = joining.concatenate([places[-1:] - period, places, places[:1] + period])
        heights = joining.concatenate([heights[-1:], heights, heights[:1]])
    return _between(values, places, heights, left, right)


def _real(one: Any, *beside: Any) -> Any:
    return one if one is None else as_array(one, *beside).real.astype("f8", copy=False)


def _imag(one: Any, *beside: Any) -> Any:
    return one if one is None else as_array(one, *beside).imag.astype("f8", copy=False)


def _between(x: ndarray, xp: ndarray, fp: ndarray, left: Any, right: Any) -> ndarray:
    last = xp.size - 1
    at = ufuncs.clip(searchsorted(xp, x, "right") - 1, 0, max(last - 1, 0))
    behind = ufuncs.minimum(at + 1, last)
    x0, x1, y0, y1 = xp[at], xp[behind], fp[at], fp[behind]
    slope = (y1 - y0) / (x1 - x0)
    inside = slope * (x - x0) + y0
    inside = ufuncs.where(ufuncs.isnan(inside), slope * (x - x1) + y1, inside)
    inside = ufuncs.where(ufuncs.isnan(inside) & (y0 == y1), y0, inside)
    inside = ufuncs.where(x == x0, y0, ufuncs.where(x == x1, y1, inside))
    inside = ufuncs.where(x < xp[0], fp[0] if left is None else left, inside)
    inside = ufuncs.where(x > xp[-1], fp[-1] if right is None else right, inside)
    return ufuncs.where(ufuncs.isnan(x), x, inside)


def sort_complex(a: Any) -> ndarray:
    """The elements sorted along the last dimension, as complex numbers."""
    made = sorting.sort(a)
    if made._dtype.kind == "c":
        return made
    return made.astype(dtypes.complex64 if made._dtype.kind in "iu" and made._dtype.itemsize <= 2 else dtypes.complex128)


def lexsort(keys: Any, axis: int = -1) -> ndarray:
    """The places that sort by several keys: by the last one, equals by the one before, and so on."""
    rows = as_arrays(keys)
    if not rows:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if any(one._shape != rows[0]._shape for one in rows):
        raise ValueError("all keys need to be the same shape")
    if rows[0].ndim == 0:
        return full((), 0, "i8", session=rows[0]._engine.session)
    at = shapes.normalize_axis(axis, rows[0].ndim)
    order = sorting.argsort(rows[0], at)
    for one in rows[1:]:
        order = take_along_axis(order, sorting.argsort(take_along_axis(one, order, at), at), at)
    return order


def _checked_kth(array: ndarray, kth: Any, axis: int) -> None:
    extent = array._shape[shapes.normalize_axis(axis, array.ndim)]
    for one in kth if isinstance(kth, Sequence) else (kth,):
        if isinstance(one, bool) or getattr(getattr(one, "dtype", None), "kind", "") == "b":
            raise ValueError("Booleans unacceptable as partition index")
        if not hasattr(one, "__index__"):
            raise TypeError("Partition index must be integer")
        if not isinstance(one, ndarray) and not -extent <= int(one) < extent:
            raise ValueError(f"kth(={one}) out of bounds ({extent})")


@method
def partition(a: Any, kth: Any, axis: Optional[int] = -1, kind: Any = None, order: Any = None) -> ndarray:
    """A copy in which what is at `kth` is where sorting would put it, less before it and more behind. It is sorted altogether."""
    array = as_array(a)
    array, axis = (shaping.ravel(array), -1) if axis is None else (array, axis)
    _checked_kth(array, kth, axis)
    return sorting.sort(array, axis)


@method
def argpartition(a: Any, kth: Any, axis: Optional[int] = -1, kind: Any = None, order: Any = None) -> ndarray:
    """The places that partition() takes its elements from."""
    array = as_array(a)
    array, axis = (shaping.ravel(array), -1) if axis is None else (array, shapes.strict_axis(axis, array.ndim))
    _checked_kth(array, kth, axis)
    return sorting.argsort(array, axis)
