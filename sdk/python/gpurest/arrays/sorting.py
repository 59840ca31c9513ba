"""Sorting along an axis."""

from __future__ import annotations

from typing import Any, Optional

from .._values import dtypes
from . import ufuncs
from ._engine import shapes
from ._engine.builtins import sortable
from ._engine.expr import SORT, Node
from .functions import method
from .ndarray import ndarray, wrap
from .shaping import flip

KINDS = (None, "quicksort", "heapsort", "mergesort", "stable")


def _sorted(a: Any, axis: Optional[int], places: bool, kind: Any, order: Any) -> ndarray:
    if kind not in KINDS:
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    array = ufuncs.cast_to_array(ufuncs.operand(a))
    if axis is None:
        array, axis = array.reshape(-1), -1
    elif array.ndim == 0 and places:
        array = array.reshape(1)
    at = (shapes.strict_axis if places else shapes.normalize_axis)(axis, array.ndim)
    rows = array.swapaxes(at, -1)
    engine = array._engine
    with engine.lock:
        if places and array._dtype.kind == "f" and engine.language.builtins and not sortable(array._dtype, rows._shape):
            rows = rows + 0  # the built-in sorts by bits: -0.0 would come before 0.0, which is its equal
        source = rows if rows._contiguous else rows.copy()
        result = dtypes.int64 if places else array._dtype
        node = Node(engine, SORT, result, rows._shape, "argsort" if places else "sort", (source._load(),), {"places": places})
        return wrap(node).swapaxes(at, -1)


@method
def sort(a: Any, axis: Optional[int] = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False) -> ndarray:
    """A sorted copy, NaN last, with `descending` first; axis None: of all elements. 0.0 and -0.0 are equal: either may come first. `kind` and
    `stable` change nothing: every sort is stable."""
    made = _sorted(a, axis, False, kind, order)
    return flip(made, -1 if axis is None else axis) if descending else made


@method
def argsort(a: Any, axis: Optional[int] = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False) -> ndarray:
    """The places, as int64, of sorted elements in `a`. Stable: equal elements, and 0.0 and -0.0 are, keep their order, with `descending`, too."""
    if not descending:
        return _sorted(a, axis, True, kind, order)
    array = ufuncs.as_array(a)
    array, along = (array.reshape(-1), -1) if axis is None or not array.ndim else (array, axis)
    places = flip(_sorted(flip(array, along), along, True, kind, order), along)
    return array._shape[along] - 1 - places
