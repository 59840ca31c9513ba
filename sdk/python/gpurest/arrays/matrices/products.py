"""Products of several matrices, and numpy.linalg's forms of functions that NumPy has elsewhere, too."""

from __future__ import annotations

import operator
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .. import creation, linalg, shaping, ufuncs
from ..ndarray import ndarray
from .solving import inv
from .stacks import LinAlgError, check_square


def matrix_power(a: Any, n: Any) -> ndarray:
    """The product of n times the same square matrix; of its inverse where n is below 0."""
    array = ufuncs.as_array(a)
    check_square(array)
    try:
        count = operator.index(n)
    except TypeError:
        raise TypeError("exponent must be an integer") from None
    if count == 0:
        one = creation.eye(array._shape[-1], dtype=array._dtype, session=array._engine.session)
        return shaping.broadcast_to(one, array._shape).copy()
    power = inv(array) if count < 0 else array
    count, result = abs(count), None
    while count:
        if count % 2:
            result = power if result is None else linalg.matmul(result, power)
        count //= 2
        power = linalg.matmul(power, power) if count else power
    assert result is not None
    return result


def _cheapest(sides: Sequence[int]) -> Dict[Tuple[int, int], int]:
    """Behind which matrix of first to last to cut, for each such pair, so that there are the fewest products of numbers. Matrix i is sides[i] x sides[i + 1]."""
    count = len(sides) - 1
    cost = {(at, at): 0 for at in range(count)}
    cut: Dict[Tuple[int, int], int] = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            costs = [cost[first, at] + cost[at + 1, last] + sides[first] * sides[at + 1] * sides[last + 1] for at in range(first, last)]
            cost[first, last] = min(costs)
            cut[first, last] = first + costs.index(min(costs))
    return cut


def _multiplied(arrays: List[ndarray], cut: Dict[Tuple[int, int], int], first: int, last: int) -> ndarray:
    if first == last:
        return arrays[first]
    at = cut[first, last]
    return linalg.matmul(_multiplied(arrays, cut, first, at), _multiplied(arrays, cut, at + 1, last))


def multi_dot(arrays: Sequence[Any], *, out: Optional[ndarray] = None) -> ndarray:
    """The product of two or more matrices, in the order that takes the fewest steps. The first and the last may be vectors."""
    if len(arrays) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(arrays) == 2:
        return linalg.dot(arrays[0], arrays[1], out)
    parts = ufuncs.as_arrays(arrays, out)
    row, column = parts[0].ndim == 1, parts[-1].ndim == 1
    parts[0] = parts[0].reshape(1, parts[0].size) if row else parts[0]
    parts[-1] = parts[-1].reshape(parts[-1].size, 1) if column else parts[-1]
    for one in parts:
        if one.ndim != 2:
            raise LinAlgError(f"{one.ndim}-dimensional array given. Array must be two-dimensional")
    for left, right in zip(parts, parts[1:]):
        if left._shape[1] != right._shape[0]:
            raise ValueError(f"shapes {left._shape} and {right._shape} not aligned: {left._shape[1]} (dim 1) != {right._shape[0]} (dim 0)")
    made = _multiplied(parts, _cheapest([*(one._shape[0] for one in parts), parts[-1]._shape[1]]), 0, len(parts) - 1)
    if row or column:
        made = made.reshape(()) if row and column else made.ravel()
    return ufuncs.into(out, made, name="multi_dot")


def outer(x1: Any, x2: Any, /) -> ndarray:
    """Every element of one vector times every one of the other, as a matrix."""
    first, second = ufuncs.as_arrays((x1, x2))
    if first.ndim != 1 or second.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are x1.ndim={first.ndim} and x2.ndim={second.ndim}.")
    return linalg.outer(first, second)


def diagonal(x: Any, /, *, offset: int = 0) -> ndarray:
    """A view of the diagonals of the matrices in the last two dimensions."""
    return linalg.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> ndarray:
    """The sum of each diagonal of the matrices in the last two dimensions."""
    return linalg.trace(x, offset, -2, -1, dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> ndarray:
    """The sum of products along an axis of two arrays that are broadcast."""
    return linalg.vecdot(x1, x2, axis)


def matmul(x1: Any, x2: Any, /) -> ndarray:
    """The matrix product over the last two dimensions; those before are broadcast."""
    return linalg.matmul(x1, x2)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> ndarray:
    """Sum of products over pairs of dimensions: the last `axes` of x1 with the first of x2, or two lists of dimensions."""
    return linalg.tensordot(x1, x2, axes)
