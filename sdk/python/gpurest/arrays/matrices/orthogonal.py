"""Orthogonal factors: QR, eigenvalues of symmetric matrices, singular values."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Tuple

from ..._values import dtypes
from .. import creation, joining, shaping, sorting, ufuncs
from .._engine import shapes
from ..linalg import matmul
from ..ndarray import ndarray
from .stacks import Part, adjoint, arrays_of, check_matrices, check_square, factor, fail_if, flat

MODES = ("reduced", "complete", "r", "raw")
TALL = 2  # so many times as many rows as columns are brought down to a square by QR first
TALL_ROWS_MIN = 64


class QRResult(NamedTuple):
    """Of qr(): the matrices are Q @ R, Q's columns are orthonormal, R is upper triangular."""

    Q: ndarray
    R: ndarray


class EighResult(NamedTuple):
    """Of eigh(): eigenvalues in ascending order, and their eigenvectors as columns."""

    eigenvalues: ndarray
    eigenvectors: ndarray


class SVDResult(NamedTuple):
    """Of svd(): the matrices are U @ diag(S) @ Vh, S in descending order."""

    U: ndarray
    S: ndarray
    Vh: ndarray


def _identity(stack: shapes.Shape, rows: int, columns: int, like: ndarray) -> ndarray:
    return shaping.broadcast_to(creation.eye(rows, columns, dtype=like._dtype, session=like.session), stack + (rows, columns)).copy()


# ---- QR ----


def _reflected(matrix: ndarray) -> List[ndarray]:
    """R with reflectors below, and their factors, of a stack with elements."""
    count = shapes.size_of(matrix._shape[:-2])
    rows, columns = matrix._shape[-2:]
    parts = [Part(matrix._dtype, (count, rows, columns)), Part(matrix._dtype, (count, columns))]
    return factor("qr", [flat(matrix)], parts, rows, columns, count)


def _columns_of_q(reflected: ndarray, tau: ndarray, size: int) -> ndarray:
    count, rows, columns = reflected._shape
    return factor("qr_q", [reflected, tau], [Part(reflected._dtype, (count, rows, size))], rows, columns, size, count)[0]


def _qr(matrix: ndarray, size: int) -> QRResult:
    """With so many columns of Q."""
    stack, (rows, columns) = matrix._shape[:-2], matrix._shape[-2:]
    if not matrix.size:
        return QRResult(_identity(stack, rows, size, matrix), creation.zeros(stack + (size, columns), matrix._dtype, session=matrix.session))
    reflected, tau = _reflected(matrix)
    q = _columns_of_q(reflected, tau, size).reshape(stack + (rows, size))
    return QRResult(q, creation.triu(reflected[:, :size]).reshape(stack + (size, columns)))


def qr(a: Any, mode: str = "reduced") -> Any:
    """Q and R with a = Q R, Q's columns being orthonormal. `mode`: "reduced", with as many of them as a's smaller side has; "complete", with all; "r": R
    alone; "raw": what LAPACK's geqrf leaves, transposed, and the factors of its reflectors."""
    if mode not in MODES:
        raise ValueError(f"Unrecognized mode '{mode}'")
    matrix = arrays_of(a)[0]
    check_matrices(matrix)
    stack, (rows, columns), least = matrix._shape[:-2], matrix._shape[-2:], min(matrix._shape[-2:])
    if mode in ("reduced", "complete"):
        return _qr(matrix, least if mode == "reduced" else rows)
    if not matrix.size:
        empty = creation.zeros(stack + ((least, columns) if mode == "r" else (columns, rows)), matrix._dtype, session=matrix.session)
        return empty if mode == "r" else (empty, creation.zeros(stack + (least,), matrix._dtype, session=matrix.session))
    reflected, tau = _reflected(matrix)
    if mode == "r":
        return creation.triu(reflected[:, :least]).reshape(stack + (least, columns))
    return reflected.reshape(matrix._shape).swapaxes(-1, -2), tau[:, :least].reshape(stack + (least,))


# ---- eigenvalues ----


def _eigen(a: Any, triangle: str, vectors: bool) -> Tuple[ndarray, ndarray]:
    """Eigenvalues, and eigenvectors as columns."""
    triangle = triangle.upper()
    if triangle not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    matrix = arrays_of(a)[0]
    check_square(matrix)
    stack, n, kind = matrix._shape[:-2], matrix._shape[-1], matrix._dtype
    if not matrix.size:
        return creation.zeros(stack + (n,), kind.part, session=matrix.session), creation.zeros(matrix._shape, kind, session=matrix.session)
    source = flat(adjoint(matrix) if triangle == "U" else matrix)
    count = source._shape[0]
    parts = [Part(kind.part, (count, n)), Part(kind, (count, n if vectors else 0, n)), Part(dtypes.int32, (count,))]
    values, found, info = factor("eigh", [source], parts, n, count, int(vectors))
    fail_if(info, "Eigenvalues did not converge")
    return values.reshape(stack + (n,)), found.reshape(matrix._shape).swapaxes(-1, -2) if vectors else found


def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """The eigenvalues of symmetric or Hermitian matrices in ascending order, and eigenvectors as columns, of length 1. Only the lower triangle is read, or with `UPLO` "U"
    the upper one. LinAlgError where an element is not finite."""
    return EighResult(*_eigen(a, UPLO, True))


def eigvalsh(a: Any, UPLO: str = "L") -> ndarray:
    """The eigenvalues of eigh()."""
    return _eigen(a, UPLO, False)[0]


# ---- singular values ----


def _singular(matrix: ndarray, lefts: int, rights: int) -> Tuple[ndarray, ndarray, ndarray]:
    """So many left singular vectors as columns, the values, and so many right ones as rows, of a stack with elements."""
    stack, (rows, columns), kind = matrix._shape[:-2], matrix._shape[-2:], matrix._dtype
    source = flat(matrix)
    count = source._shape[0]
    parts = [Part(kind, (count, lefts, rows)), Part(kind.part, (count, columns)), Part(kind, (count, rights, columns)), Part(dtypes.int32, (count,))]
    left, values, right, info = factor("svd", [source], parts, rows, columns, lefts, rights, count)
    fail_if(info, "SVD did not converge")
    least = min(rows, columns)
    return (left.reshape(stack + (lefts, rows)).swapaxes(-1, -2), values[:, :least].reshape(stack + (least,)), right.reshape(stack + (rights, columns)))


def _tall(matrix: ndarray, lefts: int, rights: int) -> Tuple[ndarray, ndarray, ndarray]:
    """By way of R, which is square."""
    columns = matrix._shape[-1]
    if not lefts:
        return _singular(qr(matrix, "r"), 0, rights)
    q, r = _qr(matrix, lefts)
    left, values, right = _singular(r[..., :columns, :], columns, rights)
    turned = matmul(q[..., :columns], left)
    return (joining.concatenate([turned, q[..., columns:]], -1) if lefts > columns else turned), values, right


def singular(matrix: ndarray, lefts: int, rights: int) -> Tuple[ndarray, ndarray, ndarray]:
    """As many singular vectors of either side as wanted, all of a side's or the first min(rows, columns), or none."""
    stack, (rows, columns) = matrix._shape[:-2], matrix._shape[-2:]
    if not matrix.size:
        values = creation.zeros(stack + (min(rows, columns),), matrix._dtype.part, session=matrix.session)
        return _identity(stack, rows, lefts, matrix), values, _identity(stack, rights, columns, matrix)
    if rows >= TALL * columns and rows >= TALL_ROWS_MIN:
        return _tall(matrix, lefts, rights)
    if columns >= TALL * rows and columns >= TALL_ROWS_MIN:
        right, values, left = _tall(matrix.swapaxes(-1, -2), rights, lefts)
        return left.swapaxes(-1, -2), values, right.swapaxes(-1, -2)
    return _singular(matrix, lefts, rights)


def _symmetric_svd(a: Any, vectors: bool) -> Any:
    """By eigenvalues, whose sizes are the singular values."""
    values, found = _eigen(a, "L", vectors)
    if not vectors:
        return sorting.sort(ufuncs.absolute(values))[..., ::-1]
    n = values._shape[-1]
    order = sorting.argsort(ufuncs.absolute(values))[..., ::-1]
    rows = found.swapaxes(-1, -2).reshape(values.size, n) if values.size else found
    first = creation.arange(0, values.size, n, dtype=dtypes.int64, session=values.session).reshape(values._shape[:-1] + (1,)) if values.size else 0
    picked = (order + first).ravel()
    signed = values.ravel()[picked].reshape(values._shape)
    u = (rows[picked].reshape(found._shape) if values.size else found).swapaxes(-1, -2)
    vh = adjoint(u * ufuncs.copysign(1, signed)[..., None, :])
    return SVDResult(u, ufuncs.absolute(signed), vh)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """U, S and Vh with a = U S Vh: singular values in descending order, and singular vectors, all of them or with `full_matrices` off as many as values; without
    `compute_uv` the values alone. `hermitian`: a is symmetric or Hermitian, only its lower triangle is read. LinAlgError where an element is not finite."""
    if hermitian:
        return _symmetric_svd(a, compute_uv)
    matrix = arrays_of(a)[0]
    check_matrices(matrix)
    rows, columns = matrix._shape[-2:]
    least = min(rows, columns)
    if not compute_uv:
        return singular(matrix, 0, 0)[1]
    return SVDResult(*singular(matrix, rows if full_matrices else least, columns if full_matrices else least))


def svdvals(x: Any, /) -> ndarray:
    """The singular values, in descending order."""
    made: ndarray = svd(x, compute_uv=False)
    return made
