"""einsum: sums of products by subscripts, done by matrix products, reductions and views."""

from __future__ import annotations

import string
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from .._values import dtypes
from . import linalg, shaping, ufuncs
from ._engine import shapes
from .casting import check as check_cast
from .ndarray import ndarray


class _Term(NamedTuple):
    """An operand, a label for each of its dimensions; no label twice."""

    array: ndarray
    labels: str


def _parse(subscripts: str, ndims: Sequence[int]) -> Tuple[List[str], str]:
    """The labels of each operand and of the result, an ellipsis replaced by labels that nobody used."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise ValueError(f"einsum: {len(terms)} subscripts for {len(ndims)} operands")
    _check_letters(terms + [right], subscripts)
    free = [letter for letter in string.ascii_letters if letter not in text]
    hidden = [ndim - len(term.replace("...", "")) if "..." in term else 0 for term, ndim in zip(terms, ndims)]
    widest = max([*hidden, 0])
    if min([*hidden, 0]) < 0 or widest > len(free):
        raise ValueError(f"einsum: {subscripts!r} has more subscripts than an operand has dimensions")
    dots = "".join(free[:widest])
    labels = [term.replace("...", dots[widest - count:]) for term, count in zip(terms, hidden)]
    for term, ndim in zip(labels, ndims):
        if len(term) != ndim:
            raise ValueError(f"einsum: {len(term)} subscripts for an operand of {ndim} dimensions")
    return labels, _result_labels(terms, labels, right, dots, bool(arrow))


def _check_letters(terms: Sequence[str], subscripts: str) -> None:
    for term in terms:
        rest = term.replace("...", "", 1)
        if not all(letter in string.ascii_letters for letter in rest):
            raise ValueError(f"einsum: {subscripts!r}: subscripts are letters, one '...' per operand, ',' and '->'")


def _result_labels(terms: Sequence[str], labels: Sequence[str], right: str, dots: str, explicit: bool) -> str:
    everything = "".join(labels)
    if not explicit:
        written = "".join(terms).replace("...", "")
        return dots + "".join(sorted(label for label in set(written) if written.count(label) == 1))
    result = right.replace("...", dots)
    if len(set(result)) != len(result) or set(result) - set(everything):
        raise ValueError("einsum: each subscript of the result is one of an operand's, and appears once")
    if dots and "..." not in right:
        raise ValueError("einsum: an ellipsis in an operand needs one in the result")
    return result


def _diagonals(array: ndarray, labels: str) -> _Term:
    """A view in which every label is one dimension: a repeated one steps along the diagonal."""
    strides: Dict[str, int] = {}
    extents: Dict[str, int] = {}
    for label, extent, stride in zip(labels, array._shape, array._strides):
        if extents.setdefault(label, extent) != extent:
            raise ValueError(f"einsum: the dimensions of {label!r} in one operand have {extents[label]} and {extent} elements")
        strides[label] = strides.get(label, 0) + stride
    found = "".join(extents)
    return _Term(array._view(tuple(extents[label] for label in found), tuple(strides[label] for label in found), array._offset), found)


def _stretched(terms: Sequence[_Term]) -> List[_Term]:
    """Every label of one extent; a dimension of 1 stretches, as in broadcasting."""
    extents: Dict[str, int] = {}
    for term in terms:
        for label, extent in zip(term.labels, term.array._shape):
            known = extents.setdefault(label, extent)
            if known == 1:
                extents[label] = extent
            elif extent not in (1, known):
                raise ValueError(f"einsum: {label!r} has {known} elements in one operand and {extent} in another")
    return [_Term(_broadcast(term.array, tuple(extents[label] for label in term.labels)), term.labels) for term in terms]


def _broadcast(array: ndarray, shape: shapes.Shape) -> ndarray:
    return array if shape == array._shape else array._view(shape, shapes.broadcast_strides(array._shape, array._strides, shape), array._offset)


def _summed(term: _Term, needed: Set[str]) -> _Term:
    """Without the dimensions that nobody else needs."""
    gone = tuple(at for at, label in enumerate(term.labels) if label not in needed)
    if not gone:
        return term
    kind = term.array._dtype
    total = term.array.any(axis=gone) if kind.kind == "b" else term.array.sum(axis=gone, dtype=kind)
    return _Term(total, "".join(label for label in term.labels if label in needed))


def _arranged(term: _Term, order: Sequence[str]) -> ndarray:
    """As matrices: the labels of each of `order` become one dimension."""
    array = term.array.transpose([term.labels.index(label) for label in "".join(order)])
    extents = dict(zip(term.labels, term.array._shape))
    return array.reshape(tuple(shapes.size_of(tuple(extents[label] for label in group)) for group in order))


def _pair(first: _Term, second: _Term, needed: Set[str]) -> _Term:
    """The product of two operands, summed over what both have and nobody needs."""
    first = _summed(first, needed | set(second.labels))
    second = _summed(second, needed | set(first.labels))
    both = [label for label in first.labels if label in second.labels]
    batch = "".join(label for label in both if label in needed)
    inner = "".join(label for label in both if label not in needed)
    rows = "".join(label for label in first.labels if label not in both)
    columns = "".join(label for label in second.labels if label not in both)
    extents = {**dict(zip(first.labels, first.array._shape)), **dict(zip(second.labels, second.array._shape))}
    labels = batch + rows + columns
    shape = tuple(extents[label] for label in labels)
    if not inner:  # nothing to sum: an elementwise product
        left, right = _arranged(first, [batch, rows, ""]), _arranged(second, [batch, "", columns])
        return _Term((left * right).reshape(shape), labels)
    left, right = _arranged(first, [batch, rows, inner]), _arranged(second, [batch, inner, columns])
    if not batch:
        left, right = left.reshape(left._shape[1:]), right.reshape(right._shape[1:])
    return _Term(linalg.matmul(left, right).reshape(shape), labels)


def einsum(subscripts: str, *operands: Any, out: Optional[ndarray] = None, dtype: Any = None, order: str = "K", casting: str = "safe",
           optimize: Any = False) -> ndarray:
    """numpy.einsum with subscripts as text, such as "ij,jk->ik" or "...i,...i->...". Operands are multiplied from left to right, whatever
    `optimize` says. `dtype`: in which it is computed, as `casting` allows for the operands."""
    if not isinstance(subscripts, str):
        raise TypeError("einsum takes its subscripts as text, such as 'ij,jk->ik'")
    if not operands:
        raise ValueError("einsum: no operands")
    arrays = ufuncs.as_arrays(operands, out)
    labels, result = _parse(subscripts, [array.ndim for array in arrays])
    kind = dtypes.promote_all(tuple(array._dtype for array in arrays)) if dtype is None else dtypes.dtype_of(dtype)
    for array in arrays:
        check_cast(array._dtype, kind, casting, "einsum operand")
    terms = _stretched([_diagonals(array.astype(kind, copy=False), text) for array, text in zip(arrays, labels)])
    whole = terms[0]
    for at, term in enumerate(terms[1:], 2):
        whole = _pair(whole, term, set(result).union(*(later.labels for later in terms[at:])))
    whole = _summed(whole, set(result))
    final = whole.array.transpose([whole.labels.index(label) for label in result])
    final = final.copy() if final._storage in [array._storage for array in arrays] else final
    return ufuncs.into(out, shaping.in_order(final, order), name="einsum")
