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


NO_RESULT, NOT_REAL = 2, 1


def _outcome(matrix: ndarray, values: ndarray, info: ndarray) -> bool:
    """Sends what is queued; whether all values are real, as those of a real matrix may be. LinAlgError where there are none."""
    word = reductions.any(info).astype(dtypes.int32) * NO_RESULT
    if matrix._dtype.kind != "c":
        word = word + reductions.any(values.imag != 0).astype(dtypes.int32) * NOT_REAL
    told = int(word)
    if told >= NO_RESULT:
        finite = bool(reductions.all(ufuncs.isfinite(matrix)))
        raise LinAlgError("Eigenvalues did not converge" if finite else "Array must not contain infs or NaNs")
    return matrix._dtype.kind != "c" and not told


def _eigen(a: Any, vectors: bool) -> Tuple[ndarray, ndarray]:
    """Eigenvalues, and eigenvectors as columns; real if all are."""
    matrix = arrays_of(a)[0]
    check_square(matrix)
    stack, n, kind = matrix._shape[:-2], matrix._shape[-1], matrix._dtype
    if not matrix.size:
        return creation.zeros(stack + (n,), kind, session=matrix.session), creation.zeros(matrix._shape, kind, session=matrix.session)
    source, wide = flat(matrix), dtypes.complex_of(kind.part)
    count = source._shape[0]
    parts = [Part(wide, (count, n)), Part(wide, (count, n if vectors else 0, n)), Part(dtypes.int32, (count,))]
    values, rows, info = factor("eig", [source], parts, n, count, int(vectors))
    real = _outcome(matrix, values, info)
    values = (values.real if real else values).reshape(stack + (n,))
    if not vectors:
        return values, rows
    return values, (rows.real if real else rows).reshape(matrix._shape).swapaxes(-1, -2)


def eig(a: Any) -> EigResult:
    """The eigenvalues of square matrices, in no order, and eigenvectors as columns, of length 1. Of real matrices both are real if all eigenvalues are. LinAlgError
    where an element is not finite."""
    return EigResult(*_eigen(a, True))


def eigvals(a: Any) -> ndarray:
    """The eigenvalues of eig()."""
    return _eigen(a, False)[0]
