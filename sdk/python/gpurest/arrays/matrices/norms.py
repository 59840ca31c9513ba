"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple

from .. import reductions, shaping, ufuncs
from .._engine import shapes
from ..ndarray import AxisLike, ndarray
from .orthogonal import svd


def squares(array: ndarray) -> ndarray:
    """Of the sizes of elements."""
    made: ndarray = array.real * array.real + array.imag * array.imag if array._dtype.kind == "c" else array * array
    return made


def _of_all(array: ndarray, keepdims: bool) -> ndarray:
    flat = array.ravel()
    made: ndarray = ufuncs.sqrt(reductions.sum(squares(flat)))
    return made.reshape((1,) * array.ndim) if keepdims else made


def _of_vectors(array: ndarray, order: Any, axis: int, keepdims: bool) -> ndarray:
    size = ufuncs.absolute(array)
    if order == math.inf:
        return reductions.max(size, axis, keepdims=keepdims, initial=0)
    if order == -math.inf:
        return reductions.min(size, axis, keepdims=keepdims)
    if order == 0:
        return reductions.sum((array != 0).astype(array._dtype.part), axis, keepdims=keepdims)
    if order == 1:
        return reductions.sum(size, axis, keepdims=keepdims)
    if order is None or order == 2:
        made: ndarray = ufuncs.sqrt(reductions.sum(squares(array), axis, keepdims=keepdims))
        return made
    if isinstance(order, str):
        raise ValueError(f"Invalid norm order '{order}' for vectors")
    powers = reductions.sum(size ** float(order), axis, keepdims=keepdims)
    made = powers ** (1 / float(order))
    return made


def _of_singular_values(array: ndarray, order: Any) -> ndarray:
    values = svd(array, compute_uv=False)
    if order == 2:
        return reductions.max(values, -1, initial=0)
    return reductions.min(values, -1) if order == -2 else reductions.sum(values, -1)


def _of_matrices(array: ndarray, order: Any) -> ndarray:
    """Of the last two dimensions."""
    if order is None or order in ("fro", "f"):
        made: ndarray = ufuncs.sqrt(reductions.sum(squares(array), (-2, -1)))
        return made
    if order in (2, -2, "nuc"):
        return _of_singular_values(array, order)
    if order in (1, -1, math.inf, -math.inf):
        sums = reductions.sum(ufuncs.absolute(array), -2 if abs(order) == 1 else -1)
        return reductions.max(sums, -1, initial=0) if order > 0 else reductions.min(sums, -1)
    raise ValueError("Invalid norm order for matrices.")


def _axes(axis: AxisLike, ndim: int) -> Tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, tuple):
        return axis
    try:
        return (int(axis),)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError("'axis' must be None, an integer or a tuple of integers") from None


def norm(x: Any, ord: Any = None, axis: AxisLike = None, keepdims: bool = False) -> ndarray:  # noqa: A002 - NumPy's name
    """The norm of all elements, of vectors along an axis, or of matrices in two axes. `ord` of vectors: any number, 0 for how many are not 0, infinity, -infinity; of
    matrices: "fro", "nuc", 1, -1, 2, -2, infinity, -infinity. None: the square root of the sum of squares."""
    array = ufuncs.as_array(x)
    array = array if array._dtype.kind not in "biu" else array.astype("f8")
    if axis is None and (ord is None or (ord in ("f", "fro") and array.ndim == 2) or (ord == 2 and array.ndim == 1)):
        return _of_all(array, keepdims)
    axes = _axes(axis, array.ndim)
    if len(axes) == 1:
        return _of_vectors(array, ord, shapes.normalize_axis(axes[0], array.ndim), keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    rows, columns = (shapes.strict_axis(one, array.ndim) for one in axes)
    if rows == columns:
        raise ValueError("Duplicate axes given.")
    made = _of_matrices(shaping.moveaxis(array, (rows, columns), (-2, -1)), ord)
    return made.reshape(tuple(1 if at in (rows, columns) else extent for at, extent in enumerate(array._shape))) if keepdims else made


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> ndarray:  # noqa: A002
    """norm() of the matrices in the last two dimensions."""
    return norm(x, ord, (-2, -1), keepdims)


def vector_norm(x: Any, /, *, axis: AxisLike = None, keepdims: bool = False, ord: Any = 2) -> ndarray:  # noqa: A002
    """The norm of what is along an axis, or along several as if they were one, or of all elements."""
    array = ufuncs.as_array(x)
    axes: Optional[Tuple[int, ...]] = None if axis is None else shapes.normalize_axes(axis, array.ndim)
    if axes is None:
        made = norm(array.ravel(), ord, 0)
    elif len(axes) == 1:
        made = norm(array, ord, axes[0])
    else:
        rest = tuple(at for at in range(array.ndim) if at not in axes)
        kept = tuple(array._shape[at] for at in rest)
        together = shapes.size_of(tuple(array._shape[at] for at in axes))
        made = norm(array.transpose(axes + rest).reshape((together,) + kept), ord, 0)
    if not keepdims:
        return made
    return made.reshape(tuple(1 if axes is None or at in axes else extent for at, extent in enumerate(array._shape)))
