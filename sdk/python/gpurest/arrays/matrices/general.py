"""Eigenvalues and eigenvectors of general matrices."""

from __future__ import annotations

from typing import Any, NamedTuple, Tuple

from ..._values import dtypes
from .. import creation, reductions, ufuncs
from ..ndarray import ndarray
from .stacks import LinAlgError, Part, arrays_of, check_square, factor, flat


class EigResult(NamedTuple):
    """Of eig(): eigenvalues in no order, and their eigenvectors as columns."""

    eigenvalues: ndarray
    eigenvectors: ndarray


def _check(matrix: ndarray, info: ndarray) -> None:
    """Sends what is queued. LinAlgError where there are no eigenvalues."""
    if bool(reductions.any(info)):
        finite = bool(reductions.all(ufuncs.isfinite(matrix)))
        raise LinAlgError("Eigenvalues did not converge" if finite else "Array must not contain infs or NaNs")


def _eigen(a: Any, vectors: bool) -> Tuple[ndarray, ndarray]:
    """Eigenvalues, and eigenvectors as columns."""
    matrix = arrays_of(a)[0]
    check_square(matrix)
    stack, n = matrix._shape[:-2], matrix._shape[-1]
    wide = dtypes.complex_of(matrix._dtype.part)
    if not matrix.size:
        return creation.zeros(stack + (n,), wide, session=matrix.session), creation.zeros(matrix._shape, wide, session=matrix.session)
    source = flat(matrix)
    count = source._shape[0]
    parts = [Part(wide, (count, n)), Part(wide, (count, n if vectors else 0, n)), Part(dtypes.int32, (count,))]
    values, rows, info = factor("eig", [source], parts, n, count, int(vectors))
    _check(matrix, info)
    values = values.reshape(stack + (n,))
    return values, rows.reshape(matrix._shape).swapaxes(-1, -2) if vectors else rows


def eig(a: Any) -> EigResult:
    """The eigenvalues of square matrices, in no order, and eigenvectors as columns, of length 1. Both are complex whatever the values are, as from NumPy 2.5 on.
    LinAlgError where an element is not finite."""
    return EigResult(*_eigen(a, True))


def eigvals(a: Any) -> ndarray:
    """The eigenvalues of eig(), complex."""
    return _eigen(a, False)[0]
