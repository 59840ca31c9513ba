"""The same elements in another arrangement, more of them, or fewer."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from .. import indexing, joining, reductions, shaping
from .._engine import shapes
from ..creation import arange, full
from ..functions import method
from ..ndarray import AxisLike, ndarray
from ..ufuncs import as_array
from .searching import searchsorted

__all__ = ["append", "delete", "fliplr", "flipud", "repeat", "roll", "rot90", "tile", "trim_zeros"]


def _axes_of(axis: Any) -> Tuple[Any, ...]:
    return tuple(axis) if shapes.is_several(axis) else (axis,)


def roll(a: Any, shift: Any, axis: AxisLike = None) -> ndarray:
    """Moved along `axis`, what falls out at the end comes in at the start; axis None: over all elements in C order."""
    array = as_array(a, shift)
    if axis is None:
        total = sum(int(one) for one in shift) if shapes.is_several(shift) else shift
        return roll(shaping.ravel(array), total, 0).reshape(array._shape)
    axes = tuple(shapes.normalize_axis(one, array.ndim) for one in _axes_of(axis))
    steps = tuple(int(one) for one in shift) if shapes.is_several(shift) else (int(shift),)
    if len(steps) != len(axes) and 1 not in (len(steps), len(axes)):
        raise ValueError("shape mismatch: objects cannot be broadcast to a single shape")
    count = max(len(steps), len(axes))
    made = array
    for step, at in zip(steps * (count if len(steps) == 1 else 1), axes * (count if len(axes) == 1 else 1)):
        made = _rolled(made, step, at)
    return made.copy() if made is array else made


def _rolled(array: ndarray, step: int, axis: int) -> ndarray:
    extent = array._shape[axis]
    first = step % extent if extent else 0
    if not first:
        return array
    front = (slice(None),) * axis
    return joining.concatenate([array[(*front, slice(extent - first, None))], array[(*front, slice(0, extent - first))]], axis)


def flipud(m: Any) -> ndarray:
    """A view with the first dimension turned around."""
    array = as_array(m)
    if array.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return shaping.flip(array, 0)


def fliplr(m: Any) -> ndarray:
    """A view with the second dimension turned around."""
    array = as_array(m)
    if array.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return shaping.flip(array, 1)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> ndarray:
    """A view turned `k` times by 90 degrees, from the first of two axes towards the second."""
    array, pair = as_array(m), tuple(axes)
    if len(pair) != 2:
        raise ValueError("len(axes) must be 2.")
    first, second = (shapes.normalize_axis(one, array.ndim) if -array.ndim <= one < array.ndim else _outside(pair, array.ndim) for one in pair)
    if first == second:
        raise ValueError("Axes must be different.")
    turns = k % 4
    if turns in (0, 2):
        return shaping.flip(array, (first, second)) if turns else array.view()
    turned = array.swapaxes(first, second)
    return shaping.flip(turned, first) if turns == 1 else shaping.flip(turned, second)


def _outside(axes: Any, ndim: int) -> int:
    raise ValueError(f"Axes={axes} out of range for array of ndim={ndim}.")


def tile(A: Any, reps: Any) -> ndarray:
    """The whole array again and again, so many times along each dimension."""
    times = tuple(int(one) for one in reps) if shapes.is_several(reps) else (int(reps),)
    array = shaping.atleast(as_array(A, reps), len(times))
    times = (1,) * (array.ndim - len(times)) + times
    if any(one < 0 for one in times):
        raise ValueError("negative dimensions are not allowed")
    pairs: List[int] = []
    wide: List[int] = []
    for count, extent in zip(times, array._shape):
        pairs += [1, extent]
        wide += [count, extent]
    shape = tuple(count * extent for count, extent in zip(times, array._shape))
    return shaping.broadcast_to(array.reshape(tuple(pairs)), tuple(wide)).copy().reshape(shape)


@method
def repeat(a: Any, repeats: Any, axis: Optional[int] = None) -> ndarray:
    """Each element so many times in a row. Of several numbers, one per element, the sum must be known: this sends what is queued."""
    array = as_array(a, repeats)
    if axis is None:
        array, axis = shaping.ravel(array), 0
    at = shapes.strict_axis(axis, array.ndim)
    counts = as_array(repeats, array)
    if counts._dtype.kind not in "biu":
        raise TypeError(f"Cannot cast array data from {counts.dtype!r} to dtype('int64') according to the rule 'safe'")
    if counts.ndim == 0 or counts.size == 1:
        return _repeated(array, int(counts) if isinstance(repeats, ndarray) or counts.ndim else int(repeats), at)
    if counts.ndim > 1:
        raise ValueError("object too deep for desired array")
    if counts.size != array._shape[at]:
        raise ValueError(f"operands could not be broadcast together with shape ({array._shape[at]},) ({counts.size},)")
    ends = reductions.cumsum(counts)
    if bool(reductions.any(counts < 0)):
        raise ValueError("repeats may not contain negative values.")
    total = int(ends[-1]) if counts.size else 0
    numbers = searchsorted(ends, arange(total, session=array._engine.session), "right")
    return array[(slice(None),) * at + (numbers,)]


def _repeated(array: ndarray, count: int, axis: int) -> ndarray:
    if count < 0:
        raise ValueError("repeats may not contain negative values.")
    wide = shaping.expand_dims(array, axis + 1)
    shape = wide._shape[:axis + 1] + (count,) + wide._shape[axis + 2:]
    return shaping.broadcast_to(wide, shape).copy().reshape(array._shape[:axis] + (array._shape[axis] * count,) + array._shape[axis + 1:])


def append(arr: Any, values: Any, axis: Optional[int] = None) -> ndarray:
    """The values behind the array's, along `axis`; axis None: behind all elements in C order."""
    return joining.concatenate([arr, values], axis)


def delete(arr: Any, obj: Any, axis: Optional[int] = None) -> ndarray:
    """Without the elements, or slices along `axis`, that a number, several numbers, a slice or a mask names. Numbers on the device are looked at:
    this sends what is queued."""
    array = as_array(arr, obj)
    if axis is None:
        array, axis = shaping.ravel(array), 0
    at = shapes.normalize_axis(axis, array.ndim)
    extent, front = array._shape[at], (slice(None),) * at
    if hasattr(obj, "__index__") and not isinstance(obj, (bool, ndarray)) and getattr(obj, "shape", ()) == ():
        number = int(obj)
        if not -extent <= number < extent:
            raise IndexError(f"index {number} is out of bounds for axis {at} with size {extent}")
        number %= extent
        return joining.concatenate([array[(*front, slice(0, number))], array[(*front, slice(number + 1, None))]], at)
    kept = full((extent,), True, session=array._engine.session)
    chosen = obj if isinstance(obj, slice) else as_array(obj, array)
    if isinstance(chosen, ndarray) and chosen._dtype.kind == "b" and chosen._shape != (extent,):
        raise ValueError("boolean array argument `obj` to delete must be one-dimensional and match the axis length of "
                         f"{extent}; received shape {chosen._shape}")
    if isinstance(chosen, ndarray) and not chosen.size:
        return array.copy()
    if isinstance(chosen, ndarray) and chosen._dtype.kind == "f":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    kept[obj if isinstance(obj, (slice, list)) else chosen] = False
    return array[(*front, indexing.flatnonzero(kept))]


def trim_zeros(filt: Any, trim: str = "fb", axis: AxisLike = None) -> ndarray:
    """A view without the zeros at the front ("f") and the back ("b") of every dimension, or of those of `axis`. Where they end must be known:
    this sends what is queued."""
    array, ends = as_array(filt), trim.lower()
    if ends not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    key: List[Any] = [slice(None)] * array.ndim
    for at in shapes.normalize_axes(axis, array.ndim):
        line = reductions.any(array != 0, tuple(other for other in range(array.ndim) if other != at))
        places = indexing.flatnonzero(line) if line.size else line.astype("i8")
        first, last = (int(places[0]), int(places[-1]) + 1) if places.size else (0, 0)
        key[at] = slice(first if "f" in ends else 0, last if "b" in ends else line.size) if places.size else slice(0, 0)
    return array[(*key, ...)]
