"""Diagonals and triangles of matrices, and the places of their elements."""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

from .. import indexing, linalg, shaping
from ..creation import arange, ones, tri, zeros
from ..current import Where
from ..ndarray import ndarray
from ..ufuncs import as_array
from .picking import resized

__all__ = ["diag", "diag_indices", "diag_indices_from", "diagflat", "fill_diagonal", "mask_indices", "tril_indices", "tril_indices_from", "triu_indices",
           "triu_indices_from"]


def diag(v: Any, k: int = 0) -> ndarray:
    """Of a vector, the matrix that has it as its k-th diagonal; of a matrix, a view of that diagonal."""
    array = as_array(v)
    if array.ndim == 2:
        return linalg.diagonal(array, k)
    if array.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    size = array.size + abs(k)
    made = zeros((size, size), array._dtype, session=array._engine.session)
    linalg.diagonal(made, k)[...] = array
    return made


def diagflat(v: Any, k: int = 0) -> ndarray:
    """The matrix that has all elements as its k-th diagonal."""
    return diag(shaping.ravel(as_array(v)), k)


def fill_diagonal(a: ndarray, val: Any, wrap: bool = False) -> None:
    """Sets the elements whose places are the same in all dimensions. `wrap`: of a tall matrix, again below the square ones."""
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a._shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    step = 1
    for at in range(1, a.ndim):
        whole = 1
        for extent in a._shape[a.ndim - at:]:
            whole *= extent
        step += whole
    end = a.size if a.ndim > 2 or wrap else min(a.size, a._shape[1] * a._shape[1])
    count = len(range(0, end, step))
    if count:
        a.flat[0:end:step] = resized(as_array(val, a), count)


def diag_indices(n: int, ndim: int = 2) -> Tuple[ndarray, ...]:
    """The places of the diagonal of an array of `ndim` dimensions of n elements."""
    return _diagonal(n, ndim, None)


def _diagonal(n: int, ndim: int, session: Where) -> Tuple[ndarray, ...]:
    return (arange(n, session=session),) * ndim


def diag_indices_from(arr: ndarray) -> Tuple[ndarray, ...]:
    """diag_indices() for the array's shape."""
    if arr.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(arr._shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    return _diagonal(arr._shape[0], arr.ndim, arr._engine.session)


def tril_indices(n: int, k: int = 0, m: Optional[int] = None) -> Tuple[ndarray, ...]:
    """The places on and below the k-th diagonal of an n x m matrix."""
    return _lower(n, k, m, None)


def _lower(n: int, k: int, m: Optional[int], session: Where) -> Tuple[ndarray, ...]:
    return indexing.nonzero(tri(n, m, k, bool, session=session))


def triu_indices(n: int, k: int = 0, m: Optional[int] = None) -> Tuple[ndarray, ...]:
    """The places on and above the k-th diagonal of an n x m matrix."""
    return _upper(n, k, m, None)


def _upper(n: int, k: int, m: Optional[int], session: Where) -> Tuple[ndarray, ...]:
    return indexing.nonzero(~tri(n, m, k - 1, bool, session=session))


def _matrix(arr: ndarray) -> Tuple[int, int]:
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return arr._shape[0], arr._shape[1]


def tril_indices_from(arr: ndarray, k: int = 0) -> Tuple[ndarray, ...]:
    """tril_indices() for the array's shape."""
    rows, columns = _matrix(arr)
    return _lower(rows, k, columns, arr._engine.session)


def triu_indices_from(arr: ndarray, k: int = 0) -> Tuple[ndarray, ...]:
    """triu_indices() for the array's shape."""
    rows, columns = _matrix(arr)
    return _upper(rows, k, columns, arr._engine.session)


def mask_indices(n: int, mask_func: Callable[..., ndarray], k: Any = 0) -> Tuple[ndarray, ...]:
    """The places that a function such as triu() leaves of an n x n matrix of ones."""
    return indexing.nonzero(mask_func(ones((n, n), int), k) != 0)
