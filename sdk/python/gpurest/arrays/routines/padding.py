"""More elements around an array."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from .. import host, joining, reductions, ufuncs
from .._engine import shapes
from ..creation import arange, linspace
from ..ndarray import ndarray
from ..ufuncs import as_array
from .statistics import median

__all__ = ["pad"]

Pair = Tuple[Any, Any]
OPTIONS: Dict[str, Tuple[str, ...]] = {
    "constant": ("constant_values",), "edge": (), "empty": (), "linear_ramp": ("end_values",), "maximum": ("stat_length",), "mean": ("stat_length",),
    "median": ("stat_length",), "minimum": ("stat_length",), "reflect": ("reflect_type",), "symmetric": ("reflect_type",), "wrap": ()}


def _pairs(spec: Any, ndim: int, what: str) -> List[Pair]:
    """One number, one for each dimension in a row of one, one pair, or a pair for each dimension."""
    if isinstance(spec, dict):
        found: List[Pair] = [(0, 0)] * ndim
        for axis, one in spec.items():
            before, behind = one if shapes.is_several(one) else (one, one)
            found[axis] = (before, behind)
        return found
    listed = spec.tolist() if hasattr(spec, "tolist") else spec
    if not shapes.is_several(listed):
        return [(listed, listed)] * ndim
    rows = list(listed)
    if rows and not any(shapes.is_several(one) for one in rows):
        if len(rows) == 1:
            return [(rows[0], rows[0])] * ndim
        if len(rows) == 2:
            return [(rows[0], rows[1])] * ndim
    elif rows and all(shapes.is_several(one) for one in rows):
        pairs = [tuple(one) for one in rows]
        if all(len(one) == 1 for one in pairs) and len(pairs) in (1, ndim):
            return [(one[0], one[0]) for one in pairs] * (ndim if len(pairs) == 1 else 1)
        if all(len(one) == 2 for one in pairs) and len(pairs) in (1, ndim):
            return [(one[0], one[1]) for one in pairs] * (ndim if len(pairs) == 1 else 1)
    raise ValueError(f"operands could not be broadcast together with remapped shapes [original->remapped]: {what} and requested shape ({ndim},2)")


def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> ndarray:
    """With so many elements more in front of and behind each dimension, made by `mode`: "constant" (`constant_values`), "edge", "empty",
    "linear_ramp" (`end_values`), "maximum", "mean", "median" or "minimum" (`stat_length`), "reflect", "symmetric" (`reflect_type`) or "wrap". Unlike
    in NumPy it is no function."""
    source = as_array(array, *kwargs.values())
    widths = _pairs(pad_width, source.ndim, "pad_width")
    if any(isinstance(one, bool) or not hasattr(one, "__index__") for pair in widths for one in pair):
        raise TypeError("`pad_width` must be of integral type.")
    if any(one < 0 for pair in widths for one in pair):
        raise ValueError("index can't contain negative values")
    if mode not in OPTIONS:
        raise ValueError(f"mode '{mode}' is not supported")
    wrong = set(kwargs) - set(OPTIONS[mode])
    if wrong:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {wrong}")
    if mode in ("constant", "empty"):
        return _framed(source, widths, _pairs(kwargs.get("constant_values", 0), source.ndim, "constant_values"))
    made = source
    for axis, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        if not source._shape[axis]:
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
        made = _padded(made, axis, int(before), int(after), mode, kwargs)
    return made.copy() if made is source else made


def _framed(array: ndarray, widths: List[Pair], values: List[Pair]) -> ndarray:
    shape = tuple(extent + int(before) + int(after) for extent, (before, after) in zip(array._shape, widths))
    made = host.empty(shape, array._dtype, session=array._engine.session)
    made[(*(slice(int(before), int(before) + extent) for extent, (before, _) in zip(array._shape, widths)), ...)] = array
    for axis, ((before, after), (first, last)) in enumerate(zip(widths, values)):
        front = (slice(None),) * axis
        if before:
            made[(*front, slice(0, int(before)))] = first
        if after:
            made[(*front, slice(shape[axis] - int(after), None))] = last
    return made


def _padded(array: ndarray, axis: int, before: int, after: int, mode: str, options: Dict[str, Any]) -> ndarray:
    extent, front = array._shape[axis], (slice(None),) * axis
    if mode in ("edge", "wrap", "reflect", "symmetric"):
        if mode in ("reflect", "symmetric") and options.get("reflect_type", "even") == "odd":
            return _odd(array, axis, before, after, mode)
        return array[(*front, _sources(array, extent, before, after, mode))]
    if mode == "linear_ramp":
        ends = _pairs(options.get("end_values", 0), array.ndim, "end_values")[axis]
        first, last = (_ramp(array[(*front, place)], axis, count, end) for place, count, end in
                       ((slice(0, 1), before, ends[0]), (slice(extent - 1, None), after, ends[1])))
        return joining.concatenate([first, array, last[(*front, slice(None, None, -1))]], axis)
    lengths = _pairs(options.get("stat_length"), array.ndim, "stat_length")[axis]
    parts = [_statistic(array, axis, mode, length, at_end, count) for length, at_end, count in ((lengths[0], False, before), (lengths[1], True, after))]
    return joining.concatenate([parts[0], array, parts[1]], axis)


def _sources(array: ndarray, extent: int, before: int, after: int, mode: str) -> ndarray:
    """Which element each one of the result is taken from."""
    number = arange(-before, extent + after, session=array._engine.session)
    if mode == "edge" or (mode == "reflect" and extent == 1):
        return ufuncs.clip(number, 0, extent - 1)
    if mode == "wrap":
        return number % extent
    period = 2 * extent if mode == "symmetric" else 2 * extent - 2
    place = number % period
    return ufuncs.minimum(place, (period - 1 if mode == "symmetric" else period) - place)


def _odd(array: ndarray, axis: int, before: int, after: int, mode: str) -> ndarray:
    """Mirrored at the edges' values, a piece of the array's own length at a time."""
    front = (slice(None),) * axis
    skip = 1 if mode == "reflect" else 0
    if array._shape[axis] == 1 and skip:
        return array[(*front, ufuncs.clip(arange(-before, 1 + after, session=array._engine.session), 0, 0))]
    while before or after:
        extent = array._shape[axis]
        first, last = min(before, extent - skip), min(after, extent - skip)
        low = 2 * array[(*front, slice(0, 1))] - array[(*front, slice(skip, first + skip))][(*front, slice(None, None, -1))]
        high = 2 * array[(*front, slice(extent - 1, None))] - array[(*front, slice(extent - last - skip, extent - skip))][(*front, slice(None, None, -1))]
        array = joining.concatenate([low, array, high], axis)
        before, after = before - first, after - last
    return array


def _ramp(edge: ndarray, axis: int, count: int, end: Any) -> ndarray:
    """From `end` towards the edge, which is left out."""
    line = edge.reshape(edge._shape[:axis] + edge._shape[axis + 1:])
    made: ndarray = linspace(as_array(end, line).astype("f8"), line.astype("f8"), count, endpoint=False, axis=axis)
    return (ufuncs.floor(made) if edge._dtype.kind in "iu" else made).astype(edge._dtype)


def _statistic(array: ndarray, axis: int, mode: str, length: Any, at_end: bool, count: int) -> ndarray:
    extent = array._shape[axis]
    used = extent if length is None else min(int(length), extent)
    if used <= 0:
        raise ValueError("stat_length of 0 yields no value for padding")
    part = array[(slice(None),) * axis + ((slice(extent - used, None) if at_end else slice(0, used)),)]
    statistics: Dict[str, Callable[..., ndarray]] = {"maximum": reductions.max, "minimum": reductions.min, "mean": reductions.mean, "median": median}
    value = statistics[mode](part, axis, keepdims=True)
    if array._dtype.kind in "iu" and mode in ("mean", "median"):
        value = ufuncs.rint(value)
    shape = array._shape[:axis] + (count,) + array._shape[axis + 1:]
    made = host.empty(shape, array._dtype, session=array._engine.session)
    made[...] = value
    return made
