"""Differences, integrals, products of vectors, and convolutions."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence, Tuple

from ..._values import dtypes
from .. import host, joining, reductions, shaping, ufuncs
from .._engine import shapes
from ..casting import can_cast
from ..creation import zeros
from ..ndarray import UNSET, AxisLike, ndarray
from ..ufuncs import as_array, as_arrays

__all__ = ["convolve", "correlate", "cross", "diff", "ediff1d", "gradient", "kron", "trapezoid", "unwrap"]
MODES = ("valid", "same", "full")


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = UNSET, append: Any = UNSET) -> ndarray:
    """Each element less the one before it, `n` times over; of booleans, whether both differ."""
    if n == 0:
        return as_array(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    array = as_array(a, prepend, append)
    if array.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    at = shapes.normalize_axis(axis, array.ndim)
    parts = [array]
    for value, place in ((prepend, 0), (append, 2)):
        if value is not UNSET:
            more = as_array(value, array)
            more = shaping.broadcast_to(more, array._shape[:at] + (1,) + array._shape[at + 1:]) if more.ndim == 0 else more
            parts = [more, *parts] if place == 0 else [*parts, more]
    array = joining.concatenate(parts, at) if len(parts) > 1 else array
    front, subtract = (slice(None),) * at, ufuncs.not_equal if array._dtype.kind == "b" else ufuncs.subtract
    for _ in range(n):
        array = subtract(array[(*front, slice(1, None))], array[(*front, slice(None, -1))])
    return array


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> ndarray:
    """diff() of all elements in C order, with `to_begin` in front and `to_end` behind."""
    flat = shaping.ravel(as_array(ary, to_begin, to_end))
    parts = [flat[1:] - flat[:-1]]
    for value, name in ((to_begin, "to_begin"), (to_end, "to_end")):
        if value is None:
            continue
        more = shaping.ravel(as_array(value, flat))
        if not can_cast(more._dtype, flat._dtype, "same_kind"):
            raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
        more = more.astype(flat._dtype)
        parts = [more, *parts] if name == "to_begin" else [*parts, more]
    return joining.concatenate(parts) if len(parts) > 1 else parts[0]


def _spacings(array: ndarray, varargs: Sequence[Any], axes: Sequence[int]) -> List[Any]:
    """For each axis a distance, or the distances between its elements."""
    if not varargs:
        return [1.0] * len(axes)
    given = list(varargs) * (len(axes) if len(varargs) == 1 and as_array(varargs[0], array).ndim == 0 else 1)
    if len(given) != len(axes):
        raise TypeError("invalid number of arguments")
    found: List[Any] = []
    for one, axis in zip(given, axes):
        places = as_array(one, array)
        if places.ndim == 0:
            found.append(reductions.scalar(one))
            continue
        if places.ndim != 1:
            raise ValueError("distances must be either scalars or 1d")
        if places.size != array._shape[axis]:
            raise ValueError("when 1d, distances must match the length of the corresponding dimension")
        found.append(diff(places.astype("f8") if places._dtype.kind not in "fc" else places))
    return found


def gradient(f: Any, *varargs: Any, axis: AxisLike = None, edge_order: int = 1) -> Any:
    """The slopes along every dimension, or those of `axis`, by the elements on both sides; a tuple of arrays for several. `varargs`: the distance
    between elements, one for each axis, or the elements' places."""
    array = as_array(f, varargs)
    listed: Any = range(array.ndim) if axis is None else axis if shapes.is_several(axis) else (axis,)
    axes = tuple(shapes.normalize_axis(one, array.ndim) for one in listed)
    if len(set(axes)) != len(axes):
        raise ValueError("repeated axis")
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    steps = _spacings(array, varargs, axes)
    values = array if array._dtype.kind in "fc" else array.astype("f8")
    for at in axes:
        if array._shape[at] < edge_order + 1:
            raise ValueError("Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required.")
    made = tuple(_slopes(values, at, step, edge_order) for at, step in zip(axes, steps))
    return made[0] if len(axes) == 1 else made


def _slopes(values: ndarray, axis: int, step: Any, edge_order: int) -> ndarray:
    line = shaping.moveaxis(values, axis, -1)
    made = host.empty(line._shape, values._dtype, session=values._engine.session)
    if isinstance(step, ndarray):
        before, behind = step[:-1], step[1:]
        made[..., 1:-1] = (line[..., :-2] * (-behind / (before * (before + behind))) + line[..., 1:-1] * ((behind - before) / (before * behind))
                           + line[..., 2:] * (before / (behind * (before + behind))))
    else:
        made[..., 1:-1] = (line[..., 2:] - line[..., :-2]) / (2.0 * step)
    for place, inward in ((0, 1), (-1, -1)):
        made[..., place] = _edge_slope(line, step, place, inward, edge_order)
    return shaping.moveaxis(made, -1, axis)


def _edge_slope(line: ndarray, step: Any, place: int, inward: int, edge_order: int) -> ndarray:
    first = step[place] if isinstance(step, ndarray) else step
    zero, one = line[..., place], line[..., place + inward]
    if edge_order == 1:
        return (one - zero) / first * inward
    second = step[place + inward] if isinstance(step, ndarray) else step
    factors = (-(2.0 * first + second) / (first * (first + second)), (first + second) / (first * second), -first / (second * (first + second)))
    made: ndarray = zero * factors[0] + one * factors[1] + line[..., place + 2 * inward] * factors[2]
    return made * inward


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> ndarray:
    """The area below straight lines between the elements, `dx` apart or at the places `x`."""
    heights = as_array(y, x, dx)
    at = shapes.strict_axis(axis, heights.ndim)
    if x is None:
        step: Any = dx
    else:
        places = as_array(x, heights)
        step = diff(places, axis=0 if places.ndim == 1 else at)
        if places.ndim == 1:
            step = step.reshape((-1 if step.size else 0,) + (1,) * (heights.ndim - at - 1))
    front = (slice(None),) * at
    return reductions.sum(step * (heights[(*front, slice(1, None))] + heights[(*front, slice(None, -1))]) / 2.0, at)


def _cross_parts(a: ndarray, b: ndarray) -> Tuple[Any, ...]:
    """The components of the product; of two vectors in a plane the one across it."""
    first, second = ([one[..., at] if at < one._shape[-1] else 0 for at in range(3)] for one in (a, b))
    if a._shape[-1] == b._shape[-1] == 2:
        return (first[0] * second[1] - first[1] * second[0],)
    return (first[1] * second[2] - first[2] * second[1], first[2] * second[0] - first[0] * second[2], first[0] * second[1] - first[1] * second[0])


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Optional[int] = None) -> ndarray:
    """The vector perpendicular to two vectors of three components, or two, for each pair along the last dimension, or those named."""
    if axis is not None:
        axisa = axisb = axisc = axis
    first, second = as_arrays((a, b))
    if first.ndim < 1 or second.ndim < 1:
        raise ValueError("At least one array has zero dimension")
    first = shaping.moveaxis(first, shapes.normalize_axis(axisa, first.ndim), -1)
    second = shaping.moveaxis(second, shapes.normalize_axis(axisb, second.ndim), -1)
    if not {first._shape[-1], second._shape[-1]} <= {2, 3}:
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    parts = _cross_parts(first, second)
    if len(parts) == 1:
        return as_array(parts[0], first)
    kind = dtypes.promote(first._dtype, second._dtype)
    made = joining.stack([shaping.broadcast_to(as_array(one, first), shapes.broadcast_shapes(first._shape[:-1], second._shape[:-1])) for one in parts], -1)
    made = made.astype(kind, copy=False)
    return shaping.moveaxis(made, -1, shapes.normalize_axis(axisc, made.ndim))


def kron(a: Any, b: Any) -> ndarray:
    """Every element of a times the whole of b, put together."""
    first, second = as_arrays((a, b))
    ndim = max(first.ndim, second.ndim)
    first, second = shaping.atleast(first, ndim), shaping.atleast(second, ndim)
    left = first.reshape(tuple(extent for one in first._shape for extent in (one, 1)))
    right = second.reshape(tuple(extent for one in second._shape for extent in (1, one)))
    return (left * right).reshape(tuple(one * other for one, other in zip(first._shape, second._shape)))


def _mode(mode: Any) -> str:
    name = MODES[mode] if isinstance(mode, int) and 0 <= mode < 3 else mode
    if name not in MODES:
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    return str(name)


def convolve(a: Any, v: Any, mode: str = "full") -> ndarray:
    """Sums of products of a with v, turned around and moved along: "full" wherever both meet, "same" as many as the longer one has, "valid" where the
    shorter one lies within."""
    first, second = (shaping.atleast(one, 1) for one in as_arrays((a, v)))
    if first.ndim > 1 or second.ndim > 1:
        raise ValueError("object too deep for desired array")
    if second.size > first.size:
        first, second = second, first
    if not first.size or not second.size:
        raise ValueError("a cannot be empty" if not first.size else "v cannot be empty")
    return _slid(first, second[::-1], _mode(mode))


def correlate(a: Any, v: Any, mode: str = "valid") -> ndarray:
    """Sums of products of a with v, complex numbers of v conjugated, moved along; `mode` as in convolve()."""
    first, second = (shaping.atleast(one, 1) for one in as_arrays((a, v)))
    if first.ndim > 1 or second.ndim > 1:
        raise ValueError("object too deep for desired array")
    if not first.size or not second.size:
        raise ValueError("first array argument cannot be empty" if not first.size else "second array argument cannot be empty")
    second = ufuncs.conjugate(second) if second._dtype.kind == "c" else second
    if second.size > first.size:
        return _slid(second, first, _mode(mode))[::-1]
    return _slid(first, second, _mode(mode))


def _slid(line: ndarray, weights: ndarray, mode: str) -> ndarray:
    """Each result is a reduction over a window of the line, which is a view; nothing but the line with its zeros is made."""
    kind, count = dtypes.promote(line._dtype, weights._dtype), weights.size
    around = {"full": (count - 1, count - 1), "same": (count - 1 - (count - 1) // 2, (count - 1) // 2), "valid": (0, 0)}[mode]
    if mode == "same":
        around = (count // 2, count - 1 - count // 2)
    wide = zeros(line.size + sum(around), kind, session=line._engine.session)
    wide[around[0]:around[0] + line.size] = line
    windows = wide._view((wide.size - count + 1, count), (1, 1), wide._offset)
    if kind.kind == "b":
        return reductions.any(windows & weights, 1)
    return reductions.sum(windows * weights.astype(kind, copy=False), 1, kind)


def unwrap(p: Any, discont: Optional[float] = None, axis: int = -1, *, period: float = 2 * math.pi) -> ndarray:
    """With multiples of `period` added so that neighbours along `axis` are less than `discont`, or half a period, apart."""
    array = as_array(p)
    at = shapes.strict_axis(axis, array.ndim)
    step = diff(array, axis=at)
    whole = array._dtype.kind in "iu" and isinstance(period, int)
    kind = dtypes.promote(array._dtype, dtypes.int64 if whole else dtypes.float64) if array._dtype.kind != "f" else array._dtype
    high: Any = period // 2 if whole else period / 2
    low = -(period - high) if whole and period % 2 else -high
    if whole and period % 2 == 0:
        low = -high
    moved = ufuncs.remainder(step - low, period) + low
    if not whole or period % 2 == 0:
        moved = ufuncs.where((moved == low) & (step > 0), high, moved)
    change = ufuncs.where(ufuncs.absolute(step) < (period / 2 if discont is None else discont), 0, moved - step)
    made = array.astype(kind)
    back = (slice(None),) * at + (slice(1, None),)
    made[back] = array[back] + reductions.cumsum(change, at)
    return made
