"""Functions of users applied to parts of arrays."""

from __future__ import annotations

import itertools
from typing import Any, Callable, List, Sequence

from .. import host, indexing, joining, reductions, shaping
from .._engine import shapes
from ..creation import zeros
from ..ndarray import ndarray
from ..ufuncs import as_array

__all__ = ["apply_along_axis", "apply_over_axes", "piecewise"]


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> ndarray:
    """What the function makes of every line along `axis`, called for each: their work is queued, and sent together as far as the function asks for no
    values."""
    array = as_array(arr)
    at = shapes.normalize_axis(axis, array.ndim)
    line = shaping.moveaxis(array, at, -1)
    outer = line._shape[:-1]
    if 0 in outer:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    found = [as_array(func1d(line[place], *args, **kwargs), line) for place in itertools.product(*map(range, outer))]
    made = joining.stack(found).reshape(outer + found[0]._shape)
    for one in range(found[0].ndim):  # the result's dimensions take the axis's place
        made = shaping.moveaxis(made, len(outer) + one, at + one)
    return made


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> ndarray:
    """The function called with the array and each axis in turn; a dimension that it reduces is kept with one element."""
    made = as_array(a)
    for axis in axes if shapes.is_several(axes) else (axes,):
        at = shapes.strict_axis(axis, made.ndim)
        result = as_array(func(made, at), made)
        if result.ndim != made.ndim:
            result = shaping.expand_dims(result, at)
            if result.ndim != made.ndim:
                raise ValueError("function is not returning an array of the correct shape")
        made = result
    return made


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> ndarray:
    """Each element from the function, or the number, of the last condition that holds there; one function more is for where none does. Functions get
    the elements where their condition holds, whose number must be known: this sends what is queued."""
    array = as_array(x, condlist)
    first: Any = condlist if isinstance(condlist, bool) or getattr(condlist, "shape", None) == () else condlist[0]
    if first is condlist or (array.ndim and not isinstance(first, list) and not getattr(first, "ndim", 0)):
        condlist = [condlist]
    conditions: Any = condlist
    masks: List[ndarray] = [shaping.broadcast_to(as_array(one, array).astype("?", copy=False), array._shape) for one in conditions]
    count = len(masks)
    if len(funclist) == count + 1:
        none = host.empty(array._shape, bool, session=array._engine.session)
        none[...] = True
        for mask in masks:
            none = none & ~mask
        masks.append(none)
    elif len(funclist) != count:
        raise ValueError(f"with {count} condition(s), either {count} or {count + 1} functions are expected")
    made = zeros(array._shape, array._dtype, session=array._engine.session)
    for mask, function in zip(masks, funclist):
        if not callable(function):
            made[mask] = reductions.scalar(function)
            continue
        places = indexing.flatnonzero(mask)
        if places.size:
            made.flat[places] = function(shaping.ravel(array)[places], *args, **kw)
    return made
