"""Polynomials by their coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

from ..._values import dtypes
from .. import joining, shaping, sorting, ufuncs
from ..creation import arange, full, zeros
from ..ndarray import ndarray
from ..ufuncs import as_array
from .calculus import convolve

__all__ = ["poly", "polyadd", "polymul", "polysub", "polyval", "vander"]


def poly(seq_of_zeros: Any) -> ndarray:
    """The coefficients of the polynomial with these zeros, real ones if complex zeros come in pairs. These are looked at: this sends what is queued."""
    roots = as_array(seq_of_zeros)
    if roots.ndim == 2 and roots._shape[0] == roots._shape[1]:
        raise ValueError("poly of a matrix needs its eigenvalues: pass these")
    roots = shaping.atleast(roots, 1)
    if roots.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    roots = roots if roots._dtype.kind in "fc" else roots.astype("f8")
    made = full(1, 1, roots._dtype, session=roots.session)
    for at in range(roots.size):
        made = convolve(made, joining.concatenate([full(1, 1, roots._dtype, session=roots.session), -roots[at:at + 1]]))
    if roots._dtype.kind == "c" and bool(ufuncs.equal(sorting.sort(roots), sorting.sort(ufuncs.conjugate(roots))).all()):
        return made.real.copy()
    return made


def _longer(array: ndarray, count: int) -> ndarray:
    return array if array.size == count else joining.concatenate([zeros(count - array.size, array._dtype, session=array.session), array])


def _pair(a1: Any, a2: Any) -> Any:
    first, second = (shaping.atleast(as_array(one), 1) for one in (a1, a2))
    count = max(first.size, second.size)
    return _longer(first, count), _longer(second, count)


def polyadd(a1: Any, a2: Any) -> ndarray:
    """The sum of two polynomials."""
    first, second = _pair(a1, a2)
    made: ndarray = first + second
    return made


def polysub(a1: Any, a2: Any) -> ndarray:
    """The difference of two polynomials."""
    first, second = _pair(a1, a2)
    made: ndarray = first - second
    return made


def polymul(a1: Any, a2: Any) -> ndarray:
    """The product of two polynomials. Zeros in front of the coefficients stay."""
    return convolve(a1, a2)


def polyval(p: Any, x: Any) -> ndarray:
    """The polynomial's value at each element, by Horner's rule."""
    factors, places = as_array(p), as_array(x)
    if factors.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    made = full(places._shape, 0, places._dtype, session=places.session)
    for at in range(len(factors)):
        made = made * places + factors[at]
    return made


def vander(x: Any, N: Any = None, increasing: bool = False) -> ndarray:
    """The powers of each element as a row, from the highest down, or `increasing`."""
    array = as_array(x)
    if array.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = array.size if N is None else int(N)
    kind = dtypes.promote(array._dtype, dtypes.int64)
    powers = arange(count, dtype="i8", session=array.session)
    made = array.astype(kind, copy=False).reshape(-1 if array.size else 0, 1) ** (powers if increasing or not count else powers[::-1])
    return made.astype(kind, copy=False)
