"""Views of other shapes, and joining of arrays."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from .._values import dtypes
from .._values.dtypes import DType
from . import host, ufuncs
from ._engine import shapes
from .functions import method
from .ndarray import AxisLike, ndarray


@method
def reshape(array: ndarray, shape: Any) -> ndarray:
    spec = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    target = shapes.reshape_target(array.size, spec)
    strides = shapes.reshape_strides(array._shape, array._strides, target)
    if strides is None:
        array, strides = array.copy(), shapes.contiguous_strides(target)
    return array._view(target, strides, array._offset)


def ravel(array: ndarray) -> ndarray:
    return reshape(array, -1)


@method
def transpose(array: ndarray, axes: Any = None) -> ndarray:
    order = tuple(reversed(range(array.ndim))) if axes is None else tuple(shapes.normalize_axis(axis, array.ndim) for axis in axes)
    if sorted(order) != list(range(array.ndim)):
        raise ValueError("axes don't match array")
    return array._view(tuple(array._shape[axis] for axis in order), tuple(array._strides[axis] for axis in order), array._offset)


@method
def swapaxes(array: ndarray, first: int, second: int) -> ndarray:
    order = list(range(array.ndim))
    a, b = shapes.normalize_axis(first, array.ndim), shapes.normalize_axis(second, array.ndim)
    order[a], order[b] = order[b], order[a]
    return transpose(array, order)


def moveaxis(array: ndarray, source: AxisLike, destination: AxisLike) -> ndarray:
    def listed(spec: AxisLike) -> List[int]:
        return [shapes.normalize_axis(axis, array.ndim) for axis in (spec if hasattr(spec, "__iter__") else (spec,))]  # type: ignore[union-attr]

    sources, destinations = listed(source), listed(destination)
    if len(sources) != len(destinations):
        raise ValueError("source and destination must have the same number of elements")
    order = [axis for axis in range(array.ndim) if axis not in sources]
    for to, axis in sorted(zip(destinations, sources)):
        order.insert(to, axis)
    return transpose(array, order)


@method
def squeeze(array: ndarray, axis: AxisLike = None) -> ndarray:
    if axis is None:
        gone = {at for at, extent in enumerate(array._shape) if extent == 1}
    else:
        gone = set(shapes.normalize_axes(axis, array.ndim))
        if any(array._shape[at] != 1 for at in gone):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    left = [at for at in range(array.ndim) if at not in gone]
    return array._view(tuple(array._shape[at] for at in left), tuple(array._strides[at] for at in left), array._offset)


def expand_dims(array: ndarray, axis: AxisLike) -> ndarray:
    axes = tuple(axis) if hasattr(axis, "__iter__") else (axis,)  # type: ignore[arg-type]
    gained = shapes.normalize_axes(axes, array.ndim + len(axes))
    shape, strides = list(array._shape), list(array._strides)
    for at in gained:
        shape.insert(at, 1)
        strides.insert(at, 0)
    return array._view(tuple(shape), tuple(strides), array._offset)


def broadcast_to(array: Any, shape: Any) -> ndarray:
    """A view whose stretched dimensions have stride 0. Writing to it is refused."""
    source = host.asarray(array)
    target = shapes.as_shape(shape)
    if not shapes.can_broadcast(source._shape, target):
        raise ValueError(f"cannot broadcast an array of shape {source._shape} to {target}")
    return source._view(target, shapes.broadcast_strides(source._shape, source._strides, target), source._offset)


@method
def reinterpret(array: ndarray, dtype: DType) -> ndarray:
    """The same bytes as elements of another type."""
    old, new = array._dtype.itemsize, dtype.itemsize
    shape, strides, offset = array._shape, array._strides, array._offset
    if old != new:
        if not shape or not array._contiguous or shape[-1] * old % new or offset * old % new:
            raise ValueError(f"cannot view {array._dtype.name} of shape {shape} as {dtype.name}: the last dimension must be C-ordered and fit")
        shape = shape[:-1] + (shape[-1] * old // new,)
        strides, offset = shapes.contiguous_strides(shape), offset * old // new
    return ndarray(array._storage, dtype, shape, strides, offset)


def flip(array: ndarray, axis: AxisLike = None) -> ndarray:
    axes = shapes.normalize_axes(axis, array.ndim)
    return array[tuple(slice(None, None, -1) if at in axes else slice(None) for at in range(array.ndim))]


def concatenate(arrays: Sequence[Any], axis: Optional[int] = 0, dtype: Any = None) -> ndarray:
    """One array of several that agree in all dimensions but one; axis None: of their elements in C order."""
    parts = [ufuncs.cast_to_array(one) for one in ufuncs.operands_of(arrays)]
    if not parts:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        parts, axis = [ravel(part) for part in parts], 0
    ndim = parts[0].ndim
    if ndim == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    axis = shapes.normalize_axis(axis, ndim)
    if any(part._shape[:axis] + part._shape[axis + 1:] != parts[0]._shape[:axis] + parts[0]._shape[axis + 1:] or part.ndim != ndim for part in parts):
        raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")
    kind = dtypes.dtype_of(dtype) if dtype is not None else dtypes.promote_all(tuple(part._dtype for part in parts))
    total = sum(part._shape[axis] for part in parts)
    out = host.empty(parts[0]._shape[:axis] + (total,) + parts[0]._shape[axis + 1:], kind, session=parts[0].session)
    at = 0
    for part in parts:
        out[(slice(None),) * axis + (slice(at, at + part._shape[axis]),)] = part
        at += part._shape[axis]
    return out


def stack(arrays: Sequence[Any], axis: int = 0) -> ndarray:
    """One more dimension, along which the arrays, all of one shape, lie side by side."""
    parts = [ufuncs.cast_to_array(one) for one in ufuncs.operands_of(arrays)]
    if not parts:
        raise ValueError("need at least one array to stack")
    if any(part._shape != parts[0]._shape for part in parts):
        raise ValueError("all input arrays must have the same shape")
    return concatenate([expand_dims(part, axis) for part in parts], axis=axis)


def _at_least(arrays: Sequence[Any], ndim: int) -> List[ndarray]:
    parts = [ufuncs.cast_to_array(one) for one in ufuncs.operands_of(arrays)]
    return [reshape(part, (1,) * (ndim - part.ndim) + part._shape) if part.ndim < ndim else part for part in parts]


def vstack(arrays: Sequence[Any]) -> ndarray:
    return concatenate(_at_least(arrays, 2), 0)


def hstack(arrays: Sequence[Any]) -> ndarray:
    parts = _at_least(arrays, 1)
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1)


def split(array: ndarray, sections: Any, axis: int = 0) -> List[ndarray]:
    """Views: so many equal ones, or cut in front of the given places."""
    axis = shapes.normalize_axis(axis, array.ndim)
    extent = array._shape[axis]
    if hasattr(sections, "__iter__"):
        cuts = [0, *(int(one) for one in sections), extent]
    else:
        if extent % int(sections):
            raise ValueError("array split does not result in an equal division")
        cuts = list(range(0, extent + 1, extent // int(sections))) if extent else [0] * (int(sections) + 1)
    return [array[(slice(None),) * axis + (slice(first, last),)] for first, last in zip(cuts, cuts[1:])]


def repeat(array: Any, repeats: int, axis: Optional[int] = None) -> ndarray:
    """Each element so many times in a row."""
    array = host.asarray(array)
    if axis is None:
        array, axis = ravel(array), 0
    axis = shapes.normalize_axis(axis, array.ndim)
    wide = expand_dims(array, axis + 1)
    shape = wide._shape[:axis + 1] + (int(repeats),) + wide._shape[axis + 2:]
    return reshape(broadcast_to(wide, shape), array._shape[:axis] + (-1 if array.size and repeats else 0,) + array._shape[axis + 1:])
