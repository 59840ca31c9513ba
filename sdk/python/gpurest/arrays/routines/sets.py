"""Arrays as sets: what is in them, each once."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Tuple

from .. import indexing, joining, reductions, shaping, sorting, ufuncs
from .._engine import shapes
from ..creation import arange, full
from ..ndarray import ndarray
from ..ufuncs import as_array, as_arrays
from .searching import lexsort, searchsorted

__all__ = ["intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAllResult(NamedTuple):
    """What unique_all() gives."""

    values: ndarray
    indices: ndarray
    inverse_indices: ndarray
    counts: ndarray


class UniqueCountsResult(NamedTuple):
    """What unique_counts() gives."""

    values: ndarray
    counts: ndarray


class UniqueInverseResult(NamedTuple):
    """What unique_inverse() gives."""

    values: ndarray
    inverse_indices: ndarray


def _begins(ordered: ndarray, equal_nan: bool) -> ndarray:
    """Whether each of the sorted elements, or rows, is another one than the one before."""
    other = ordered[1:] != ordered[:-1]
    if equal_nan and ordered._dtype.kind in "fc":
        other = other & ~(ufuncs.isnan(ordered[1:]) & ufuncs.isnan(ordered[:-1]))
    if ordered.ndim > 1:
        other = reductions.any(other, tuple(range(1, ordered.ndim)))
    return joining.concatenate([full((min(1, ordered._shape[0]),), True, session=ordered._engine.session), other])


class _Groups(NamedTuple):
    """Sorted rows, where they came from, and where each group of equal ones begins."""

    ordered: ndarray
    order: ndarray
    begins: ndarray
    starts: ndarray

    @property
    def values(self) -> ndarray:
        return self.ordered[self.starts]

    @property
    def first(self) -> ndarray:
        return self.order[self.starts]

    @property
    def inverse(self) -> ndarray:
        made = arange(self.order.size, session=self.order._engine.session)
        made[self.order] = reductions.cumsum(self.begins) - 1
        return made

    @property
    def counts(self) -> ndarray:
        ends = joining.concatenate([self.starts[1:], full((min(1, self.starts.size),), self.order.size, "i8", session=self.order._engine.session)])
        return ends - self.starts


def _groups(rows: ndarray, equal_nan: bool) -> _Groups:
    if rows.ndim == 1:
        order = sorting.argsort(rows)
    else:
        flat = rows.reshape(rows._shape[0], -1 if rows.size else 0)
        order = lexsort([flat[:, at] for at in reversed(range(flat._shape[1]))]) if flat._shape[1] else arange(rows._shape[0], session=rows._engine.session)
    ordered = rows[order]
    begins = _begins(ordered, equal_nan)
    return _Groups(ordered, order, begins, indexing.flatnonzero(begins))


def unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Optional[int] = None, *,
           equal_nan: bool = True, sorted: bool = True) -> Any:  # noqa: A002 - NumPy's name
    """The different elements, or slices along `axis`, sorted; and where asked for, the place of the first of each, for each element the number of
    its like, and how many there are. Their number must be known, so this sends what is queued."""
    array = as_array(ar)
    if axis is None:
        rows = shaping.ravel(array)
    else:
        if array.ndim == 0:
            raise shapes.AxisError(f"axis {axis} is out of bounds for array of dimension 0")
        rows = shaping.moveaxis(array, shapes.normalize_axis(axis, array.ndim), 0)
    if not (return_index or return_inverse or return_counts) and rows.ndim == 1:
        ordered = sorting.sort(rows)
        return ordered[_begins(ordered, equal_nan)] if ordered.size else ordered
    groups = _groups(rows, equal_nan)
    values = groups.values if axis is None else shaping.moveaxis(groups.values, 0, axis)
    found: List[ndarray] = [values]
    if return_index:
        found.append(groups.first)
    if return_inverse:
        found.append(groups.inverse.reshape(array._shape) if axis is None else groups.inverse)
    if return_counts:
        found.append(groups.counts)
    return found[0] if len(found) == 1 else tuple(found)


def unique_all(x: Any) -> UniqueAllResult:
    """The different elements, the first places, inverse and counts; NaN is never its own like."""
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Any) -> UniqueCountsResult:
    """The different elements and how many there are of each; NaN is never its own like."""
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any) -> UniqueInverseResult:
    """The different elements and for each element the number of its like; NaN is never its own like."""
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: Any) -> ndarray:
    """The different elements, sorted; NaN is never its own like."""
    made: ndarray = unique(x, equal_nan=False)
    return made


def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None) -> ndarray:
    """Whether each element is one of the others. `assume_unique` and `kind` change nothing."""
    values, others = as_arrays((element, test_elements))
    others = shaping.ravel(others)
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    if not others.size:
        return full(values._shape, bool(invert), session=values._engine.session)
    ordered = sorting.sort(others)
    at = ufuncs.minimum(searchsorted(ordered, values), others.size - 1)
    return ufuncs.not_equal(ordered[at], values) if invert else ufuncs.equal(ordered[at], values)


def union1d(ar1: Any, ar2: Any) -> ndarray:
    """The different elements of both, sorted."""
    made: ndarray = unique(joining.concatenate([ar1, ar2], None))
    return made


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> ndarray:
    """The different elements of the first that the second has not, sorted unless `assume_unique`."""
    ar1, ar2 = as_arrays((ar1, ar2))
    first = shaping.ravel(ar1) if assume_unique else unique(ar1)
    return first[isin(first, ar2, invert=True)] if first.size else first


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> ndarray:
    """The elements that one of both has and the other has not, sorted."""
    parts = [shaping.ravel(one) if assume_unique else unique(one) for one in as_arrays((ar1, ar2))]
    ordered = sorting.sort(joining.concatenate(parts))
    if not ordered.size:
        return ordered
    begins = joining.concatenate([full(1, True, session=ordered._engine.session), ordered[1:] != ordered[:-1], full(1, True, session=ordered._engine.session)])
    return ordered[begins[1:] & begins[:-1]]


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The different elements that both have, sorted, and where asked for the first places in both."""
    ar1, ar2 = as_arrays((ar1, ar2))
    first, places = _with_places(ar1, assume_unique, return_indices)
    second, others = _with_places(ar2, assume_unique, return_indices)
    if not first.size or not second.size:
        made = joining.concatenate([first, second])[:0]
        return (made, *(full(0, 0, "i8", session=made._engine.session) for _ in range(2))) if return_indices else made
    joined = joining.concatenate([first, second])
    order = sorting.argsort(joined)
    ordered = joined[order]
    at = indexing.flatnonzero(ordered[1:] == ordered[:-1])
    if not return_indices:
        return ordered[at]
    return ordered[at], places[order[at]], others[order[at + 1] - first.size]


def _with_places(ar: ndarray, assume_unique: bool, wanted: bool) -> Tuple[ndarray, ndarray]:
    if not assume_unique:
        if wanted:
            values, places = unique(ar, True)
            return values, places
        values = unique(ar)
        return values, values
    flat = shaping.ravel(ar)
    return flat, arange(flat.size, session=flat._engine.session)
