"""What follows from singular values: least squares, pseudo-inverses, ranks, condition numbers."""

from __future__ import annotations

from typing import Any, Optional, Tuple, Union

from ..._values import dtypes
from ..._values.dtypes import DType
from .. import creation, reductions, shaping, ufuncs
from .._engine import shapes
from ..linalg import matmul
from ..ndarray import UNSET, ndarray
from .norms import norm, squares
from .orthogonal import singular, svd
from .solving import inverse_and_info
from .stacks import LinAlgError, adjoint, arrays_of, check_matrices, check_square


def unit_roundoff(kind: DType) -> float:
    """The distance from 1 to the next number, as numpy.finfo has it."""
    return 2.0 ** -23 if kind.part is dtypes.float32 else 2.0 ** -52


def _no_elements(array: ndarray) -> bool:
    return array.ndim >= 2 and not shapes.size_of(array._shape[-2:])


def _inverted(values: ndarray, cutoff: Any) -> ndarray:
    """1 / value, but 0 where it is not above the bound."""
    large = values > cutoff
    return ufuncs.where(large, 1 / ufuncs.where(large, values, 1), 0).astype(values._dtype, copy=False)


def _as_bound(given: Any, like: ndarray) -> Any:
    """A number, or one for each matrix of a stack."""
    return float(given) if isinstance(given, (int, float)) else ufuncs.as_array(given, like).astype(like._dtype, copy=False)[..., None]


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = UNSET) -> ndarray:
    """The pseudo-inverse of each matrix. Singular values that are not above `rcond` times the greatest count as 0: 1e-15, or with `rtol` None what a's type and
    size suggest. `hermitian`: a is symmetric."""
    matrix = arrays_of(ufuncs.as_array(a, rcond, rtol))[0]
    if rcond is not None and rtol is not UNSET:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = 1e-15 if rtol is UNSET else rtol
    check_matrices(matrix)
    rows, columns = matrix._shape[-2:]
    if rcond is None:
        rcond = max(rows, columns) * unit_roundoff(matrix._dtype)
    if not matrix.size:
        return creation.zeros(matrix._shape[:-2] + (columns, rows), matrix._dtype, session=matrix._engine.session)
    u, values, vh = svd(matrix, full_matrices=False, hermitian=hermitian)
    inverted = _inverted(values, _as_bound(rcond, values) * reductions.max(values, -1, keepdims=True))
    return matmul(adjoint(vh), inverted[..., None] * adjoint(u))


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Union[int, ndarray]:
    """How many singular values are above `tol`, or above `rtol` times the greatest, which is a's longer side times its type's roundoff if not given."""
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    array = ufuncs.as_array(A, tol, rtol)
    if array.ndim < 2:
        return int(not bool((array == 0).all()))
    values = svd(array, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        bound = _as_bound(tol, values)
    else:
        factor = max(array._shape[-2:]) * unit_roundoff(values._dtype) if rtol is None else _as_bound(rtol, values)
        bound = reductions.max(values, -1, keepdims=True, initial=0) * factor
    return reductions.count_nonzero(values > bound, -1)


def _condition(matrix: ndarray, p: Any) -> ndarray:
    if p is None or p in (2, -2):
        values = svd(matrix, compute_uv=False)
        made: ndarray = values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
        return made
    check_square(matrix)
    inverse, info = inverse_and_info(matrix)
    singular_ones = (info != 0).reshape(matrix._shape[:-2] + (1, 1))
    inverse = ufuncs.where(singular_ones, float("nan"), inverse).astype(matrix._dtype, copy=False)
    made = norm(matrix, p, (-2, -1)) * norm(inverse, p, (-2, -1))
    return made


def cond(x: Any, p: Any = None) -> ndarray:
    """The condition number of each matrix: its norm times its inverse's, of the order `p` as norm() has them. Infinity where it is singular."""
    given = ufuncs.as_array(x)
    if _no_elements(given):
        raise LinAlgError("cond is not defined on empty arrays")
    matrix = arrays_of(given)[0]
    check_matrices(matrix)
    if not matrix.size:
        return creation.zeros(matrix._shape[:-2], matrix._dtype.part, session=matrix._engine.session)
    found = _condition(matrix, p)
    lost = ufuncs.isnan(found) & ~reductions.any(ufuncs.isnan(matrix), (-2, -1))
    return ufuncs.where(lost, float("inf"), found).astype(matrix._dtype.part, copy=False)


def _residuals(matrix: ndarray, right: ndarray, found: ndarray) -> ndarray:
    rest = right - matmul(matrix, found)
    return reductions.sum(squares(rest), 0)


def lstsq(a: Any, b: Any, rcond: Optional[float] = None) -> Tuple[ndarray, ndarray, int, ndarray]:
    """(x, residuals, rank, singular values of a): the x for which a x is nearest to b, and of these the shortest. Singular values not above `rcond` times the
    greatest count as 0: a's longer side times its type's roundoff if not given, the roundoff alone if below 0. Residuals are there where a has full rank and more
    rows than columns. By singular values."""
    matrix, given = arrays_of(a, b)
    right = given.reshape(given.size, 1) if given.ndim == 1 else given
    for one in (matrix, right):
        if one.ndim != 2:
            raise LinAlgError(f"{one.ndim}-dimensional array given. Array must be two-dimensional")
    (rows, columns), sides, kind = matrix._shape, right._shape[1], matrix._dtype
    if rows != right._shape[0]:
        raise LinAlgError("Incompatible dimensions")
    least = min(rows, columns)
    bound = unit_roundoff(kind) * max(rows, columns) if rcond is None else float(rcond)
    u, values, vh = singular(matrix, least, least)
    cutoff = (bound if bound >= 0 else unit_roundoff(kind)) * values[:1] if least else 0
    rank = int(reductions.count_nonzero(values > cutoff))
    if least:
        found = matmul(adjoint(vh), _inverted(values, cutoff)[:, None] * matmul(adjoint(u), right))
    else:
        found = creation.zeros((columns, sides), kind, session=matrix._engine.session)
    rest = _residuals(matrix, right, found) if rank == columns and rows > columns else creation.zeros(0, kind.part, session=matrix._engine.session)
    return (shaping.squeeze(found, 1) if given.ndim == 1 else found), rest, rank, values
