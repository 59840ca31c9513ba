"""Whether arrays are equal, or near to it."""

from __future__ import annotations

from typing import Any

from .._values import dtypes
from .ndarray import ndarray
from .ufuncs import (Weak, absolute, add, cast_to, cast_to_array, choose, equal, isfinite, isnan, less_equal, logical_and, logical_or, multiply, operand,
                     operands_of, subtract)


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> ndarray:
    """abs(a - b) <= atol + rtol * abs(b), and what is not finite only where it is equal."""
    a, b = operands_of([a, b])
    a, b = (cast_to(one, dtypes.float64) if isinstance(one, ndarray) and one._dtype.kind not in "fc" else one for one in (a, b))
    a, b = (one.value if isinstance(one, Weak) else one for one in (a, b))
    near = less_equal(absolute(subtract(a, b)), add(multiply(absolute(b), rtol), atol))
    close = choose(logical_and(isfinite(a), isfinite(b)), near, equal(a, b))
    return logical_or(close, logical_and(isnan(a), isnan(b))) if equal_nan else close


def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether isclose() holds for every element."""
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether both are of one shape and equal in every element; `equal_nan`: NaN equals NaN."""
    first, second = (cast_to_array(operand(one)) for one in (a1, a2))
    if first._shape != second._shape:
        return False
    same = equal(first, second)
    if equal_nan and {"f", "c"} & {first._dtype.kind, second._dtype.kind}:
        same = logical_or(same, logical_and(isnan(first), isnan(second)))
    return bool(same.all())


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether both are equal in every element after broadcasting."""
    first, second = (cast_to_array(operand(one)) for one in (a1, a2))
    try:
        return bool(equal(first, second).all())
    except ValueError:
        return False
