"""Linear equations, inverses and determinants, by triangular factors."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Tuple

from ..._values import dtypes
from .. import creation, reductions, shaping, ufuncs
from .._engine import shapes
from ..linalg import diagonal
from ..ndarray import ndarray
from .stacks import LinAlgError, Part, adjoint, arrays_of, check_square, factor, fail_if, flat

SINGULAR = "Singular matrix"


class SlogdetResult(NamedTuple):
    """Of slogdet(): the determinant is sign * exp(logabsdet)."""

    sign: ndarray
    logabsdet: ndarray


def _lu(a: ndarray) -> List[ndarray]:
    """L and U, the order of rows, the number of exchanges, and whether each is singular, of a flat stack with elements."""
    count, n = a._shape[:2]
    parts = [Part(a._dtype, (count, n, n)), Part(dtypes.int32, (count, n)), Part(dtypes.int32, (count,)), Part(dtypes.int32, (count,))]
    return factor("lu", [a], parts, n, count)


def _substitute(lu: ndarray, right: ndarray) -> ndarray:
    """Of flat stacks, the rows of the right sides being in the order of L's."""
    count, n, columns = right._shape
    parts = [Part(right._dtype, right._shape)]
    below = factor("triangular_solve", [lu, right], parts, n, columns, count, True, False, True)[0]
    return factor("triangular_solve", [lu, below], parts, n, columns, count, False, False, False)[0]


def _ordered(right: ndarray, order: ndarray) -> ndarray:
    """The rows of a flat stack, each matrix's in its order."""
    count, n, columns = right._shape
    first = creation.arange(0, count * n, n, dtype=dtypes.int64, session=right._engine.session).reshape(count, 1)
    return right.reshape(count * n, columns)[(order + first).reshape(count * n)].reshape(count, n, columns)


def _right_sides(a: ndarray, b: ndarray) -> Tuple[ndarray, shapes.Shape]:
    """As matrices, and the shape of the stack of results."""
    right = b.reshape(b.size, 1) if b.ndim == 1 else b
    if right.ndim < 2:
        raise ValueError("solve: the right side must have at least one dimension")
    if right._shape[-2] != a._shape[-1]:
        raise ValueError(f"solve: {a._shape[-1]} equations have {right._shape[-2]} right sides")
    try:
        return right, shapes.broadcast_shapes(a._shape[:-2], right._shape[:-2])
    except ValueError:
        raise ValueError(f"solve: stacks of shapes {a._shape[:-2]} and {right._shape[:-2]} cannot be broadcast together") from None


def solve(a: Any, b: Any) -> ndarray:
    """The x with a x = b. A b of one dimension is one right side; else its last two dimensions are a matrix of them, a column each, and stacks are
    broadcast. LinAlgError where a is singular."""
    matrix, given = arrays_of(a, b)
    check_square(matrix)
    right, stack = _right_sides(matrix, given)
    n, columns = right._shape[-2:]
    shape = stack + ((n,) if given.ndim == 1 else (n, columns))
    if not shapes.size_of(shape):
        return creation.zeros(shape, matrix._dtype, session=matrix._engine.session)
    lu, order, _, info = _lu(flat(matrix))
    lu = flat(shaping.broadcast_to(lu.reshape(matrix._shape), stack + (n, n)))
    order = shaping.broadcast_to(order.reshape(matrix._shape[:-1]), stack + (n,)).reshape(-1, n)
    found = _substitute(lu, _ordered(flat(shaping.broadcast_to(right, stack + (n, columns))), order)).reshape(shape)
    fail_if(info, SINGULAR)
    return found


def inverse_and_info(matrix: ndarray) -> Tuple[ndarray, ndarray]:
    """Of a stack with elements, and where it is not 0 the matrix is singular."""
    n = matrix._shape[-1]
    lu, order, _, info = _lu(flat(matrix))
    right = creation.eye(n, dtype=matrix._dtype, session=matrix._engine.session)[order]
    return _substitute(lu, right).reshape(matrix._shape), info


def inv(a: Any) -> ndarray:
    """The inverse of each matrix. LinAlgError where one is singular."""
    matrix = arrays_of(a)[0]
    check_square(matrix)
    if not matrix.size:
        return creation.zeros(matrix._shape, matrix._dtype, session=matrix._engine.session)
    found, info = inverse_and_info(matrix)
    fail_if(info, SINGULAR)
    return found


def tensorinv(a: Any, ind: int = 2) -> ndarray:
    """The inverse of a as a map from its dimensions from `ind` on to those before."""
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    array = arrays_of(a)[0]
    rows = shapes.size_of(array._shape[ind:])
    return inv(array.reshape(rows, -1)).reshape(array._shape[ind:] + array._shape[:ind])


def tensorsolve(a: Any, b: Any, axes: Any = None) -> ndarray:
    """The x whose sum of products with the last dimensions of a is b; `axes` of a are moved to the end before."""
    array, right = arrays_of(a, b)
    if axes is not None:
        order = list(range(array.ndim))
        for axis in axes:
            order.remove(axis)
            order.append(axis)
        array = array.transpose(order)
    shape = array._shape[-(array.ndim - right.ndim):]
    side = shapes.size_of(shape)
    if array.size != side ** 2:
        raise LinAlgError("Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])")
    return solve(array.reshape(side, side), right.ravel()).reshape(shape)


def _diagonal_and_sign(a: Any) -> Tuple[ndarray, ndarray]:
    """The diagonal of U, and 1 or -1 for an even or odd number of exchanges."""
    matrix = arrays_of(a)[0]
    check_square(matrix)
    stack, n = matrix._shape[:-2], matrix._shape[-1]
    if not matrix.size:
        return creation.ones(stack + (n,), matrix._dtype, session=matrix._engine.session), creation.ones(stack, matrix._dtype, session=matrix._engine.session)
    lu, _, exchanges, _ = _lu(flat(matrix))
    sign = (1 - 2 * (exchanges % 2)).astype(matrix._dtype)
    return diagonal(lu, axis1=-2, axis2=-1).reshape(stack + (n,)), sign.reshape(stack)


def det(a: Any) -> ndarray:
    """The determinant of each matrix."""
    pivots, sign = _diagonal_and_sign(a)
    made: ndarray = sign * reductions.prod(pivots, -1)
    return made


def slogdet(a: Any) -> SlogdetResult:
    """The sign of each determinant, 0 where it is 0, and the logarithm of its size."""
    pivots, sign = _diagonal_and_sign(a)
    return SlogdetResult(sign * reductions.prod(ufuncs.sign(pivots), -1), reductions.sum(ufuncs.log(ufuncs.absolute(pivots)), -1))


def cholesky(a: Any, /, *, upper: bool = False) -> ndarray:
    """The lower triangular L with a = L L', or with `upper` the U = L' with a = U' U; only that triangle of a is read. LinAlgError where a is not
    positive definite."""
    matrix = arrays_of(a)[0]
    check_square(matrix)
    if not matrix.size:
        return creation.zeros(matrix._shape, matrix._dtype, session=matrix._engine.session)
    source = flat(adjoint(matrix) if upper else matrix)
    count, n = source._shape[:2]
    lower, info = factor("cholesky", [source], [Part(source._dtype, source._shape), Part(dtypes.int32, (count,))], n, count)
    fail_if(info, "Matrix is not positive definite")
    lower = lower.reshape(matrix._shape)
    return adjoint(lower) if upper else lower
