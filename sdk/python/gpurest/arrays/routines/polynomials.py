"""Polynomials by their coefficients, the highest power first."""

from __future__ import annotations

import warnings
from typing import Any, Tuple

from ..._values import dtypes
from .. import joining, reductions, shaping, sorting, ufuncs
from .._engine import shapes
from ..creation import arange, eye, full, zeros
from ..matrices.general import eigvals
from ..matrices.least_squares import lstsq, unit_roundoff
from ..matrices.solving import inv
from ..ndarray import ndarray
from ..ufuncs import as_array, as_arrays
from .calculus import convolve

__all__ = ["poly", "polyadd", "polyfit", "polymul", "polysub", "polyval", "roots", "vander"]


def _real_if_all(values: ndarray, kind: dtypes.DType) -> ndarray:
    """Eigenvalues of a matrix of this type, as NumPy's polynomials have them: real if a real matrix has no others. Sends what is queued."""
    return values.real.copy() if kind.kind != "c" and not bool((values.imag != 0).any()) else values


def poly(seq_of_zeros: Any) -> ndarray:
    """The coefficients of the polynomial with these zeros, real ones if complex zeros come in pairs. These are looked at: this sends what is queued."""
    roots = as_array(seq_of_zeros)
    if roots.ndim == 2 and roots._shape[0] == roots._shape[1]:
        roots = _real_if_all(eigvals(roots), roots._dtype)
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


def roots(p: Any) -> ndarray:
    """The zeros of a polynomial: the eigenvalues of its companion matrix. Which coefficients are 0 is looked at: this sends what is queued."""
    given = shaping.atleast(as_array(p), 1)
    if given.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    used = ufuncs.not_equal(given, 0).tolist()
    if True not in used:
        return zeros(0, session=given.session)
    first, end = used.index(True), len(used) - used[::-1].index(True)
    kept = given[first:end]
    kept = kept if kept._dtype.kind in "fc" else kept.astype("f8")
    size = kept.size - 1
    found = zeros(0, kept._dtype, session=given.session)
    if size:
        matrix = eye(size, k=-1, dtype=kept._dtype, session=given.session)
        matrix[0] = -kept[1:] / kept[0]
        found = _real_if_all(eigvals(matrix), kept._dtype)
    return joining.concatenate([found, zeros(len(used) - end, found._dtype, session=given.session)])


def _longer(array: ndarray, count: int) -> ndarray:
    return array if array.size == count else joining.concatenate([zeros(count - array.size, array._dtype, session=array.session), array])


def _pair(a1: Any, a2: Any) -> Any:
    first, second = (shaping.atleast(one, 1) for one in as_arrays((a1, a2)))
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
    factors, places = as_arrays((p, x))
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
    count = array.size if N is None else shapes.as_index(N)
    kind = dtypes.promote(array._dtype, dtypes.int64)
    powers = arange(count, dtype="i8", session=array.session)
    made = array.astype(kind, copy=False).reshape(-1 if array.size else 0, 1) ** (powers if increasing or not count else powers[::-1])
    return made.astype(kind, copy=False)


def _fit_operands(x: Any, y: Any, deg: int, w: Any) -> Tuple[ndarray, ndarray]:
    """The powers of x and what they are fitted to, each row by its weight."""
    places, heights = (one + 0.0 for one in as_arrays((x, y), w))
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if places.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if not places.size:
        raise TypeError("expected non-empty vector for x")
    if not 1 <= heights.ndim <= 2:
        raise TypeError("expected 1D or 2D array for y")
    if places._shape[0] != heights._shape[0]:
        raise TypeError("expected x and y to have same length")
    powers = vander(places, deg + 1)
    if w is None:
        return powers, heights
    weights = as_array(w, places) + 0.0
    if weights.ndim != 1:
        raise TypeError("expected a 1-d array for weights")
    if weights._shape[0] != heights._shape[0]:
        raise TypeError("expected w and y to have the same length")
    return powers * weights[:, None], heights * (weights[:, None] if heights.ndim == 2 else weights)


def _covariance(powers: ndarray, scale: ndarray, residuals: ndarray, unscaled: bool, ndim: int) -> ndarray:
    rows, order = powers._shape
    base = inv(powers.T @ powers) / (scale[:, None] * scale)
    if unscaled:
        factor: Any = 1
    else:
        if rows <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = residuals / (rows - order)
    made: ndarray = base * factor if ndim == 1 else base[:, :, None] * factor
    return made


def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    """The coefficients of the polynomial of degree `deg` that is nearest to y at x, by weights `w`: by least squares, which sends what is queued. With `full` also what
    lstsq() tells, and the bound of singular values; with `cov` the covariance of the coefficients."""
    deg = int(deg)
    powers, heights = _fit_operands(x, y, deg, w)
    rcond = powers._shape[0] * unit_roundoff(powers._dtype) if rcond is None else rcond
    scale = ufuncs.sqrt(reductions.sum(powers * powers, 0))
    powers = powers / scale
    found, residuals, rank, values = lstsq(powers, heights, rcond)
    found = (found.T / scale).T
    if rank != deg + 1 and not full:
        kind = RuntimeWarning if dtypes.numpy is None else dtypes.numpy.exceptions.RankWarning
        warnings.warn("Polyfit may be poorly conditioned", kind, stacklevel=2)
    if full:
        return found, residuals, rank, values, rcond
    return (found, _covariance(powers, scale, residuals, cov == "unscaled", heights.ndim)) if cov else found
