"""Elements picked, and put, by numbers, masks and choices."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from ..._values import dtypes
from .. import host, indexing, joining, reductions, shaping, ufuncs
from .._engine import shapes
from ..casting import check as check_cast
from ..creation import arange, zeros
from ..functions import FUNCTIONS, method
from ..ndarray import ndarray
from ..ufuncs import as_array, as_arrays

__all__ = ["argwhere", "choose", "compress", "copyto", "extract", "indices", "place", "put", "put_along_axis", "putmask", "ravel_multi_index", "resize",
           "select", "take", "take_along_axis", "unravel_index"]
MODES = ("raise", "wrap", "clip")


def _numbers(spec: Any, extent: int, mode: str, of: ndarray) -> ndarray:
    """Numbers of elements of an array as an array; those of the host are checked at once."""
    if mode not in MODES:
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    numbers = as_array(spec, of)
    if numbers._dtype.kind in "fc" and numbers.size:
        raise TypeError(f"Cannot cast array data from {numbers.dtype!r} to {dtypes.public(dtypes.int64)!r} according to the rule 'safe'")
    numbers = numbers if numbers._dtype.kind in "iu" else numbers.astype("i8")
    if numbers.size and not extent:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    if mode == "wrap":
        return numbers % extent if extent else numbers
    if mode == "clip":
        return ufuncs.clip(numbers, 0, max(extent - 1, 0))
    if not isinstance(spec, ndarray):
        indexing.check_on_host(spec, extent, "iub")
    return numbers


@method
def take(a: Any, indices: Any, axis: Optional[int] = None, out: Optional[ndarray] = None, mode: str = "raise") -> ndarray:
    """Elements, or slices along `axis`, by their numbers. `mode`: what becomes of numbers out of bounds, "raise", "wrap" or "clip"."""
    array = as_array(a, indices, out)
    if axis is None:
        array, axis = shaping.ravel(array), 0
    at = shapes.strict_axis(axis, array.ndim)
    return ufuncs.into(out, array[(slice(None),) * at + (_numbers(indices, array._shape[at], mode, array),)], casting="unsafe", name="take")


def _along(array: ndarray, numbers: Any, axis: Optional[int]) -> Tuple[ndarray, Any]:
    """The array and the key that picks from each of its lines along `axis`."""
    picks = as_array(numbers, array)
    if picks._dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        if picks.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        array, axis = shaping.ravel(array), 0
    at = shapes.normalize_axis(axis, array.ndim)
    if picks.ndim != array.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    key: List[Any] = []
    for other, extent in enumerate(array._shape):
        line = tuple(-1 if other == one else 1 for one in range(array.ndim))
        key.append(picks if other == at else arange(extent, session=array._engine.session).reshape(line))
    return array, tuple(key)


def take_along_axis(arr: Any, indices: Any, axis: Optional[int] = -1) -> ndarray:
    """Of each line along `axis`, the elements that the numbers at the same place name, such as those of argsort()."""
    array, key = _along(as_array(arr, indices), indices, axis)
    return array[key]


def put_along_axis(arr: ndarray, indices: Any, values: Any, axis: Optional[int]) -> None:
    """Writes what take_along_axis() reads."""
    _check_written("put_along_axis", arr)
    array, key = _along(arr, indices, axis)
    array[key] = values
    if axis is None and not arr._contiguous:
        arr[...] = array.reshape(arr._shape)


def compress(condition: Any, a: Any, axis: Optional[int] = None, out: Optional[ndarray] = None) -> ndarray:
    """The slices along `axis` where the 1-d condition holds. Their number must be known, so this sends what is queued."""
    mask, array = as_arrays((condition, a), out)
    if mask.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    extent = array.size if axis is None else array._shape[shapes.strict_axis(axis, array.ndim)]
    if mask.size > extent and bool(reductions.any(mask[extent:])):
        raise IndexError(f"index {mask.size - 1} is out of bounds for axis {axis or 0} with size {extent}")
    return take(array, indexing.flatnonzero(mask[:extent]), axis, out)


FUNCTIONS["compress"] = lambda array, condition, axis=None, out=None: compress(condition, array, axis, out)


def extract(condition: Any, arr: Any) -> ndarray:
    """The elements, in C order, where the condition holds. Their number must be known, so this sends what is queued."""
    array, mask = as_arrays((arr, condition))
    return take(shaping.ravel(array), indexing.flatnonzero(mask))


def argwhere(a: Any) -> ndarray:
    """The places of what is not zero, a row for each. Their number must be known, so this sends what is queued."""
    array = as_array(a)
    if array.ndim == 0:
        return zeros((int(bool(array)), 0), "i8", session=array._engine.session)
    return joining.stack(indexing.nonzero(array), 1)


@method
def choose(a: Any, choices: Any, out: Optional[ndarray] = None, mode: str = "raise") -> ndarray:
    """Of the choices, which are broadcast together with `a`, each element from the one whose number stands in `a`. `mode`: what becomes of other
    numbers, "raise", which sends what is queued to look, "wrap" or "clip"."""
    parts = as_arrays(choices, a, out)
    numbers = as_array(a, *parts)
    if numbers._dtype.kind not in "biu":
        raise TypeError(f"Cannot cast array data from {numbers.dtype!r} to {dtypes.public(dtypes.int64)!r} according to the rule 'safe'")
    if mode not in MODES:
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    if mode == "raise" and numbers.size and bool(reductions.any((numbers < 0) | (numbers >= len(parts)))):
        raise ValueError("invalid entry in choice array")
    numbers = numbers.astype("i8") % len(parts) if mode == "wrap" else ufuncs.clip(numbers, 0, len(parts) - 1)
    kind = dtypes.promote_all(tuple(one._dtype for one in parts))
    wide = shaping.broadcast_arrays(numbers, *parts)
    made = wide[-1].astype(kind)
    for at in range(len(parts) - 1):
        made = ufuncs.where(wide[0] == at, wide[1 + at].astype(kind, copy=False), made)
    return ufuncs.into(out, made, casting="unsafe", name="choose")


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> ndarray:
    """Each element from the choice of the first condition that holds there, else `default`."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not condlist:
        raise ValueError("select with an empty condition list is not possible")
    conditions = as_arrays(condlist, choicelist, default)
    for at, one in enumerate(conditions):
        if one._dtype is not dtypes.bool_:
            raise TypeError(f"invalid entry {at} in condlist: should be boolean ndarray")
    operands, engine = ufuncs.operands_of([*choicelist, default], conditions)
    kind = ufuncs.common(operands)
    *choices, made = (ufuncs.cast_to_array(one, engine).astype(kind, copy=False) for one in operands)
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        made = ufuncs.where(condition, choice, made)
    return made


def _check_written(name: str, array: Any) -> None:
    if not isinstance(array, ndarray):
        raise TypeError(f"{name}() argument 1 must be gpurest.ndarray, not {type(array).__name__}")


def copyto(dst: ndarray, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """dst[...] = src where the mask `where` holds, as `casting` allows."""
    _check_written("copyto", dst)
    value = ufuncs.operand(src, dst._engine)
    if isinstance(value, ufuncs.Weak):
        value = ufuncs.as_array(dtypes.checked(value.value, dst._dtype) if dtypes.weak_with(value.value, dst._dtype) is dst._dtype else value.value, dst)
        value = value.astype(dst._dtype) if dtypes.weak_with(src, dst._dtype) is dst._dtype else value
    value = ufuncs.cast_to_array(value, dst._engine)
    check_cast(value._dtype, dst._dtype, casting)
    if not shapes.can_broadcast(value._shape, dst._shape):
        raise ValueError(f"could not broadcast input array from shape {value._shape} into shape {dst._shape}")
    ufuncs.into(dst, value, where, "unsafe", "copyto")


def _repeated(values: Any, count: int, into: ndarray) -> ndarray:
    """The values again and again, so many, as elements of `into`."""
    return resized(as_array(values, into), count).astype(into._dtype, copy=False)


def _safely(values: Any, into: ndarray) -> ndarray:
    """The values as an array; those that have a type must fit that of `into`."""
    given = as_array(values, into)
    if hasattr(values, "dtype"):
        check_cast(given._dtype, into._dtype, "safe")
    return given


def putmask(a: ndarray, mask: Any, values: Any) -> None:
    """a[mask] = values, each from its own place in the values, which begin again at their end."""
    _check_written("putmask", a)
    chosen = as_array(mask, a)
    if chosen.size != a.size:
        raise ValueError("putmask: mask and data must be the same size")
    given = _safely(values, a)
    if given.size:
        wide = _repeated(given, a.size, a).reshape(a._shape)
        a[...] = ufuncs.where(chosen.reshape(a._shape), wide, a)


def place(arr: ndarray, mask: Any, vals: Any) -> None:
    """arr[mask] = vals, one behind the other; they begin again at their end."""
    _check_written("place", arr)
    chosen, given = as_array(mask, arr), shaping.ravel(_safely(vals, arr))
    if chosen.size != arr.size:
        raise ValueError("place: mask and data must be the same size")
    if not given.size:
        if bool(reductions.any(chosen)):
            raise ValueError("Cannot insert from an empty array!")
        return
    flat = shaping.ravel(chosen).astype("?", copy=False)
    wide = given.astype(arr._dtype, copy=False)[(reductions.cumsum(flat) - 1) % given.size]
    arr[...] = ufuncs.where(chosen.reshape(arr._shape), wide.reshape(arr._shape), arr)


@method
def put(a: ndarray, ind: Any, v: Any, mode: str = "raise") -> None:
    """a.flat[ind] = v, whose elements begin again at their end. `mode` as in take()."""
    _check_written("put", a)
    if not a.size and as_array(ind, a).size:
        raise IndexError("cannot replace elements of an empty array")
    numbers = shaping.ravel(_numbers(ind, a.size, mode, a))
    values = as_array(v, a)
    if numbers.size and values.size:
        a.flat[numbers] = _repeated(values, numbers.size, a)


def resize(a: Any, new_shape: Any) -> ndarray:
    """The elements in another shape, from the first one again where there are too few."""
    return resized(as_array(a), new_shape)


@method
def resized(array: ndarray, new_shape: Any) -> ndarray:
    """resize() of an array."""
    flat, shape = shaping.ravel(array), shapes.as_shape(new_shape)
    count = shapes.size_of(shape)
    if not flat.size or not count:
        return zeros(shape, flat._dtype, session=flat._engine.session)
    if count <= flat.size:
        return flat[:count].copy().reshape(shape)
    if flat.size == 1:
        return shaping.broadcast_to(flat, (count,)).copy().reshape(shape)
    return flat[arange(count, session=flat._engine.session) % flat.size].reshape(shape)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> Tuple[ndarray, ...]:
    """The place in an array of `shape` of each element's number in C order, or that of `order`, an array per dimension. Numbers are looked at, so
    this sends what is queued."""
    extents, numbers = shapes.as_shape(shape), as_array(indices)
    if numbers._dtype.kind not in "iu":
        raise TypeError("only int indices permitted")
    size = shapes.size_of(extents)
    if numbers.size and bool(reductions.any((numbers < 0) | (numbers >= size))):
        raise ValueError(f"an index is out of bounds for array with size {size}")
    rest, found = numbers.astype("i8", copy=False), []
    for extent in extents if order == "F" else reversed(extents):
        found.append(rest % extent)
        rest = rest // extent
    return tuple(found if order == "F" else reversed(found))


def ravel_multi_index(multi_index: Sequence[Any], dims: Any, mode: Any = "raise", order: str = "C") -> ndarray:
    """The number in C order, or that of `order`, of the element at each place. `mode`, also one per dimension, as in take(); "raise" sends what is
    queued to look."""
    extents = shapes.as_shape(dims)
    parts = as_arrays(multi_index)
    if len(parts) != len(extents):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(extents)}")
    modes = mode if isinstance(mode, (list, tuple)) else (mode,) * len(parts)
    total: Any = 0
    steps = shapes.contiguous_strides(extents) if order == "C" else shapes.contiguous_strides(extents[::-1])[::-1]
    for part, extent, step, how in zip(parts, extents, steps, modes):
        if part._dtype.kind not in "iu":
            raise TypeError("only int indices permitted")
        if how == "raise" and part.size and bool(reductions.any((part < 0) | (part >= extent))):
            raise ValueError("invalid entry in coordinates array")
        place = _numbers(part.astype("i8", copy=False), extent, how, part)
        total = place * step + total
    return as_array(total)


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """The place of each element of an array of these dimensions: one array per dimension, along a new first one, or `sparse`: a tuple of arrays
    that are broadcast together."""
    extents = shapes.as_shape(dimensions)
    lines = [arange(extent, dtype=dtype).reshape(tuple(-1 if at == one else 1 for one in range(len(extents)))) if extent else
             host.empty(tuple(0 if at == one else 1 for one in range(len(extents))), dtype) for at, extent in enumerate(extents)]
    if sparse:
        return tuple(lines)
    if not lines:
        return zeros((0,), dtype)
    return joining.stack([shaping.broadcast_to(line, extents) for line in lines])
