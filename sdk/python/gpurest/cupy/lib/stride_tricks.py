"""cupy.lib.stride_tricks: views with strides of one's own."""
from __future__ import annotations

from typing import Any, Optional, Sequence

from ...arrays._engine import shapes
from ...arrays.ndarray import ndarray

__all__ = ["as_strided", "sliding_window_view"]


def as_strided(x: ndarray, shape: Optional[Sequence[int]] = None, strides: Optional[Sequence[int]] = None) -> ndarray:
    """A view from the array's first element on, with this shape and these strides, in bytes. ValueError where it would leave the array's memory."""
    extents = x.shape if shape is None else shapes.as_shape(shape)
    steps = x.strides if strides is None else tuple(int(one) for one in strides)
    if len(extents) != len(steps):
        raise ValueError(f"shape has {len(extents)} dimensions, strides {len(steps)}")
    if any(step % x.itemsize for step in steps):
        raise ValueError(f"strides are multiples of {x.itemsize} bytes, the size of an element, not {steps}")
    elements = tuple(step // x.itemsize for step in steps)
    low, high = shapes.span_of(extents, elements)
    count = x._storage.node.nbytes // x.itemsize
    if shapes.size_of(extents) and not 0 <= x._offset + low <= x._offset + high < count:
        raise ValueError(f"a view of shape {extents} with strides {steps} reaches beyond the {count} elements in the array's memory")
    return x._view(extents, elements, x._offset)


def sliding_window_view(x: ndarray, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False) -> ndarray:
    """A view with every window of the array: the windows' dimensions stand behind those of their places."""
    window = shapes.as_shape(window_shape)
    axes = tuple(range(x.ndim)) if axis is None else tuple(shapes.normalize_axis(one, x.ndim) for one in (axis if hasattr(axis, "__iter__") else (axis,)))
    if len(window) != len(axes):
        raise ValueError(f"window_shape has {len(window)} extents for {len(axes)} axes")
    extents = list(x.shape)
    for at, width in zip(axes, window):
        extents[at] -= width - 1
        if extents[at] < 1 or width < 1:
            raise ValueError("window shape cannot be larger than input array shape, and has no extent below 1")
    return as_strided(x, (*extents, *window), (*x.strides, *(x.strides[at] for at in axes)))
