"""Whether arrays are equal, or near to it."""

from __future__ import annotations

import cmath
from typing import Any, Optional

from .._values import dtypes
from ._engine.engine import Engine
from .ndarray import engine_among, ndarray
from .ufuncs import Weak, as_arrays, cast_to, cast_to_array, choose, equal, isfinite, isnan, logical_and, logical_or, operand


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> ndarray:
    """abs(a - b) <= atol + rtol * abs(b), and what is not finite only where it is equal."""
    engine = engine_among((a, b, rtol, atol))
    a, b, rtol, atol = (_array_or_number(one, engine) for one in (a, b, rtol, atol))
    a, b = (cast_to(one, dtypes.float64) if isinstance(one, ndarray) and one._dtype.kind not in "fc" else one for one in (a, b))
    close = choose(_finite(a) & _finite(b), abs(a - b) <= abs(b) * rtol + atol, a == b)
    return close | (a != a) & (b != b) if equal_nan else close


def _array_or_number(one: Any, engine: Optional[Engine]) -> Any:
    """Python's own numbers as they are: they compute on the host, and meet arrays in their types."""
    found = operand(one, engine)
    return found.value if isinstance(found, Weak) else cast_to_array(found, engine)


def _finite(one: Any) -> Any:
    return isfinite(one) if isinstance(one, ndarray) else cmath.isfinite(one)


def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether isclose() holds for every element."""
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether both are of one shape and equal in every element; `equal_nan`: NaN equals NaN."""
    first, second = as_arrays((a1, a2))
    if first._shape != second._shape:
        return False
    same = equal(first, second)
    if equal_nan and {"f", "c"} & {first._dtype.kind, second._dtype.kind}:
        same = logical_or(same, logical_and(isnan(first), isnan(second)))
    return bool(same.all())


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether both are equal in every element after broadcasting."""
    first, second = as_arrays((a1, a2))
    try:
        return bool(equal(first, second).all())
    except ValueError:
        return False
