"""Shapes and strides: pure arithmetic on tuples. Strides count elements, not bytes, throughout the package's inside."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any, Callable, List, Sequence, Tuple, Type, Union

from ..._values import dtypes


class _AxisError(ValueError, IndexError):
    """As numpy.exceptions.AxisError, where there is no NumPy."""


AxisError: Type[ValueError] = getattr(getattr(dtypes.numpy, "exceptions", None), "AxisError", _AxisError)

Shape = Tuple[int, ...]
Strides = Tuple[int, ...]

DIMENSIONS_MAX = 32
KNOWN_MAX = 4096  # results that each function keeps: every operation asks for the same few


@lru_cache(maxsize=KNOWN_MAX)
def size_of(shape: Shape) -> int:
    """Number of elements."""
    total = 1
    for extent in shape:
        total *= extent
    return total


def as_index(value: Any) -> int:
    """A whole number, where NumPy takes no bool for one."""
    if isinstance(value, bool):
        raise TypeError("an integer is required, not a bool")
    return operator.index(value)


def is_several(spec: Any) -> bool:
    """Whether it is a sequence of numbers; an array without dimensions is a single one."""
    return hasattr(spec, "__iter__") and getattr(spec, "ndim", 1) != 0


def as_shape(spec: Any) -> Shape:
    """A shape as users write it: one number or a sequence of numbers."""
    extents = tuple(as_index(extent) for extent in spec) if is_several(spec) else (as_index(spec),)
    if any(extent < 0 for extent in extents):
        raise ValueError("negative dimensions are not allowed")
    if len(extents) > DIMENSIONS_MAX:
        raise ValueError(f"at most {DIMENSIONS_MAX} dimensions")
    return extents


@lru_cache(maxsize=KNOWN_MAX)
def contiguous_strides(shape: Shape) -> Strides:
    strides: List[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


@lru_cache(maxsize=KNOWN_MAX)
def is_contiguous(shape: Shape, strides: Strides) -> bool:
    """In C order; dimensions of extent 1 may have any stride."""
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent == 0:
            return True
        if extent != 1:
            if stride != step:
                return False
            step *= extent
    return True


@lru_cache(maxsize=KNOWN_MAX)
def broadcast_shapes(*shapes: Shape) -> Shape:
    ndim = max((len(shape) for shape in shapes), default=0)
    result = []
    for axis in range(-ndim, 0):
        extents = {shape[axis] for shape in shapes if len(shape) >= -axis}
        wide = extents - {1}
        if len(wide) > 1:
            raise ValueError("operands could not be broadcast together with shapes " + " ".join(map(str, shapes)))
        result.append(wide.pop() if wide else 1)
    return tuple(result)


@lru_cache(maxsize=KNOWN_MAX)
def broadcast_strides(shape: Shape, strides: Strides, to: Shape) -> Strides:
    """Strides that present `shape` as `to`; the caller knows that it can be broadcast."""
    extra = len(to) - len(shape)
    own = tuple(0 if extent == 1 and wanted != 1 else stride for extent, stride, wanted in zip(shape, strides, to[extra:]))
    return (0,) * extra + own


def can_broadcast(shape: Shape, to: Shape) -> bool:
    extra = len(to) - len(shape)
    return extra >= 0 and all(extent in (1, wanted) for extent, wanted in zip(shape, to[extra:]))


def normalize_axis(axis: Any, ndim: int) -> int:
    """Counted from the front. A bool counts as 0 or 1, as in those functions of NumPy that are written in Python; see strict_axis()."""
    index = operator.index(axis)
    if not -ndim <= index < ndim:
        raise AxisError(f"axis {index} is out of bounds for array of dimension {ndim}")
    return index + ndim if index < 0 else index


def strict_axis(axis: Any, ndim: int) -> int:
    """normalize_axis() where NumPy takes no bool."""
    return normalize_axis(as_index(axis), ndim)


def strict_axes(axis: Any, ndim: int) -> Tuple[int, ...]:
    """normalize_axes() where NumPy takes no bool: of reductions and their like."""
    return normalize_axes(axis, ndim, strict_axis)


def normalize_axes(axis: Any, ndim: int, each: Callable[[Any, int], int] = normalize_axis) -> Tuple[int, ...]:
    """None for all, one, or several; sorted, each once."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(each(one, ndim) for one in axis) if is_several(axis) else (each(axis, ndim),)
    if len(set(axes)) != len(axes):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(axes))


def reshape_target(size: int, spec: Sequence[Any]) -> Shape:
    """The wanted shape, its one -1 worked out."""
    extents = [as_index(extent) for extent in spec]
    unknown = [at for at, extent in enumerate(extents) if extent == -1]
    if len(unknown) > 1 or any(extent < -1 for extent in extents):
        raise ValueError("can only specify one unknown dimension")
    if unknown:
        known = size_of(tuple(extent for extent in extents if extent != -1))
        if known == 0 or size % known:
            raise ValueError(f"cannot reshape array of size {size} into shape {tuple(extents)}")
        extents[unknown[0]] = size // known
    if size_of(tuple(extents)) != size:
        raise ValueError(f"cannot reshape array of size {size} into shape {tuple(extents)}")
    return tuple(extents)


def reshape_strides(shape: Shape, strides: Strides, to: Shape) -> Union[Strides, None]:
    """Strides that present a view of `shape` as `to` without a copy; None when a copy is needed."""
    if is_contiguous(shape, strides):
        return contiguous_strides(to)
    old = [(extent, stride) for extent, stride in zip(shape, strides) if extent != 1]
    result: List[int] = []
    at = 0
    target = [extent for extent in to]
    done = 0
    while done < len(target):
        if target[done] == 1:
            result.append(0)
            done += 1
            continue
        if at >= len(old):
            return None
        first, wanted, last = done, target[done], at
        held = old[at][0]
        while held != wanted:
            if held < wanted:
                last += 1
                if last >= len(old) or old[last - 1][1] != old[last][1] * old[last][0]:
                    return None
                held *= old[last][0]
            else:
                done += 1
                if done >= len(target):
                    return None
                wanted *= target[done]
        step = old[last][1]
        run: List[int] = []
        for extent in reversed(target[first:done + 1]):
            run.append(step)
            step *= extent
        result.extend(reversed(run))
        at, done = last + 1, done + 1
    return tuple(result)


def collapse(shape: Shape, many: Sequence[Strides]) -> Tuple[Shape, List[Strides]]:
    """The same iteration space with as few dimensions as these views of it allow."""
    axes = [axis for axis, extent in enumerate(shape) if extent != 1]
    if not axes:
        return (1,), [(0,) for _ in many]
    extents = [shape[axes[0]]]
    columns = [[strides[axes[0]]] for strides in many]
    for axis in axes[1:]:
        if all(column[-1] == strides[axis] * shape[axis] for column, strides in zip(columns, many)):
            extents[-1] *= shape[axis]
            for column, strides in zip(columns, many):
                column[-1] = strides[axis]
        else:
            extents.append(shape[axis])
            for column, strides in zip(columns, many):
                column.append(strides[axis])
    return tuple(extents), [tuple(column) for column in columns]


def span_of(shape: Shape, strides: Strides) -> Tuple[int, int]:
    """Least and greatest element offset that a non-empty view reaches, counted from its first element."""
    low = sum(stride * (extent - 1) for extent, stride in zip(shape, strides) if stride < 0)
    high = sum(stride * (extent - 1) for extent, stride in zip(shape, strides) if stride > 0)
    return low, high
