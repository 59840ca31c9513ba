"""Views of other shapes."""

from __future__ import annotations

import operator
from typing import Any, Callable, List, Optional, Sequence, Tuple

from .._values.dtypes import DType
from . import host
from ._engine import shapes
from .functions import method
from .ndarray import AxisLike, ndarray
from .ufuncs import as_array, as_arrays


@method
def reshape(a: Any, shape: Any, order: str = "C", *, copy: Optional[bool] = None) -> ndarray:
    """The elements in another shape, one of whose extents may be -1: a view where strides allow, else a copy. `order`: in which they are read
    and laid out, "C", "F", or "A": as they lie in memory. `copy`: always, or (False) never."""
    array = as_array(a)
    spec = tuple(shape) if shapes.is_several(shape) else (shape,)
    target = shapes.reshape_target(array.size, spec)
    if order == "K":
        raise ValueError("order 'K' is not permitted for reshaping")
    if checked_order(order) == "F" or (order == "A" and not array._contiguous and is_fortran(array)):
        return transpose(reshape(transpose(array), tuple(reversed(target)), copy=copy))
    strides = None if copy else shapes.reshape_strides(array._shape, array._strides, target)
    if strides is None:
        if copy is False:
            raise ValueError("Unable to avoid creating a copy while reshaping.")
        array, strides = array.copy(), shapes.contiguous_strides(target)
    return array._view(target, strides, array._offset)


def checked_order(order: Any) -> str:
    """The order of memory, None as "K"; ValueError where it is none."""
    if order not in ("C", "F", "A", "K", None):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return order or "K"


def is_fortran(array: ndarray) -> bool:
    """Whether the elements lie in memory with the first dimension fastest."""
    return shapes.is_contiguous(array._shape[::-1], array._strides[::-1])


@method
def in_order(array: ndarray, order: str) -> ndarray:
    """The array in the memory layout that `order` names: itself where it is so already."""
    kind = checked_order(order)
    if kind == "F":
        return array if is_fortran(array) else transpose(transpose(array).copy())
    return array if kind != "C" or array._contiguous else array.copy()


@method
def ravel(a: Any, order: str = "C") -> ndarray:
    """All elements as one dimension: a view where strides allow. `order`: "C", "F", or "A" and "K": as they lie in memory."""
    array = as_array(a)
    return reshape(array, -1, "A" if checked_order(order) == "K" else order)


@method
def transpose(a: Any, axes: Any = None) -> ndarray:
    """A view with the dimensions in the order of `axes`, or turned around."""
    array = as_array(a)
    order = tuple(reversed(range(array.ndim))) if axes is None else tuple(axes) if shapes.is_several(axes) else (axes,)
    if len(order) != array.ndim:
        raise ValueError("axes don't match array")
    order = tuple(shapes.strict_axis(axis, array.ndim) for axis in order)
    if len(set(order)) != len(order):
        raise ValueError("repeated axis in transpose")
    return array._view(tuple(array._shape[axis] for axis in order), tuple(array._strides[axis] for axis in order), array._offset)


permute_dims = transpose


def matrix_transpose(x: Any) -> ndarray:
    """A view with the last two dimensions exchanged."""
    array = as_array(x)
    if array.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {array.ndim}")
    return swapaxes(array, -1, -2)


@method
def swapaxes(a: Any, axis1: int, axis2: int) -> ndarray:
    """A view with two dimensions exchanged."""
    array = as_array(a)
    order = list(range(array.ndim))
    first, second = shapes.normalize_axis(axis1, array.ndim), shapes.normalize_axis(axis2, array.ndim)
    order[first], order[second] = order[second], order[first]
    return transpose(array, order)


def moveaxis(a: Any, source: AxisLike, destination: AxisLike) -> ndarray:
    """A view with dimensions moved from `source` to `destination`; the others keep their order."""
    array = as_array(a)

    def listed(spec: AxisLike, name: str) -> List[int]:
        axes = [shapes.normalize_axis(axis, array.ndim) for axis in (spec if shapes.is_several(spec) else (spec,))]  # type: ignore[union-attr]
        if len(set(axes)) != len(axes):
            raise ValueError(f"repeated axis in `{name}` argument")
        return axes

    sources, destinations = listed(source, "source"), listed(destination, "destination")
    if len(sources) != len(destinations):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [axis for axis in range(array.ndim) if axis not in sources]
    for to, axis in sorted(zip(destinations, sources)):
        order.insert(to, axis)
    return transpose(array, order)


def rollaxis(a: Any, axis: int, start: int = 0) -> ndarray:
    """A view with dimension `axis` moved in front of dimension `start`."""
    array = as_array(a)
    at = shapes.normalize_axis(axis, array.ndim)
    start = operator.index(start)
    to = start + array.ndim if start < 0 else start
    if not 0 <= to <= array.ndim:
        raise shapes.AxisError(f"'start' arg requires {-array.ndim} <= start < {array.ndim + 1}, but {start} was passed in")
    return moveaxis(array, at, to - 1 if at < to else to)


@method
def squeeze(a: Any, axis: AxisLike = None) -> ndarray:
    """A view without dimensions of one element: all, or those of `axis`."""
    array = as_array(a)
    if axis is None:
        gone = {at for at, extent in enumerate(array._shape) if extent == 1}
    else:
        gone = set(shapes.strict_axes(axis, array.ndim))
        if any(array._shape[at] != 1 for at in gone):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    left = [at for at in range(array.ndim) if at not in gone]
    return array._view(tuple(array._shape[at] for at in left), tuple(array._strides[at] for at in left), array._offset)


def expand_dims(a: Any, axis: AxisLike) -> ndarray:
    """A view with dimensions of one element more, at the places `axis` of the result."""
    array = as_array(a)
    axes = tuple(axis) if shapes.is_several(axis) else (axis,)  # type: ignore[arg-type]
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
        raise ValueError(f"operands could not be broadcast together with remapped shapes [original->remapped]: {source._shape} and requested shape {target}")
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


def flip(m: Any, axis: AxisLike = None) -> ndarray:
    """A view with the elements in the other direction along `axis`, or along every dimension."""
    array = as_array(m)
    axes = shapes.normalize_axes(axis, array.ndim)
    return array[(*(slice(None, None, -1) if at in axes else slice(None) for at in range(array.ndim)), ...)]


def broadcast_shapes(*args: Any) -> shapes.Shape:
    """The shape that arrays of these shapes have together."""
    given = [shapes.as_shape(one) for one in args]
    try:
        return shapes.broadcast_shapes(*given)
    except ValueError:
        raise ValueError("shape mismatch: objects cannot be broadcast to a single shape.  Mismatch is between "
                         + " and ".join(f"arg {at} with shape {one}" for at, one in enumerate(given)) + ".") from None


def broadcast_arrays(*args: Any) -> Tuple[ndarray, ...]:
    """Views of all of them in the shape that they have together."""
    arrays = as_arrays(args)
    shape = broadcast_shapes(*(one._shape for one in arrays))
    return tuple(broadcast_to(one, shape) for one in arrays)


def atleast(array: ndarray, ndim: int) -> ndarray:
    """With dimensions of one element in front, so that it has `ndim`."""
    return reshape(array, (1,) * (ndim - array.ndim) + array._shape) if array.ndim < ndim else array


def _each(arrays: Sequence[Any], change: Callable[[ndarray], ndarray]) -> Any:
    made = tuple(change(one) for one in as_arrays(arrays))
    return made[0] if len(made) == 1 else made


def atleast_1d(*arys: Any) -> Any:
    """Numbers as arrays of one element; several arrays give a tuple."""
    return _each(arys, lambda one: atleast(one, 1))


def atleast_2d(*arys: Any) -> Any:
    """With dimensions in front until there are two; several arrays give a tuple."""
    return _each(arys, lambda one: atleast(one, 2))


def atleast_3d(*arys: Any) -> Any:
    """With dimensions around until there are three: (n,) gives (1, n, 1), (m, n) gives (m, n, 1). Several arrays give a tuple."""
    def change(one: ndarray) -> ndarray:
        return one if one.ndim > 2 else reshape(atleast(one, 2), atleast(one, 2)._shape + (1,))

    return _each(arys, change)
