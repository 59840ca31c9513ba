"""Window functions, and what they are made of."""

from __future__ import annotations

import math
from typing import Any, Sequence

from .. import host, ufuncs
from ..creation import arange, ones
from ..ndarray import ndarray
from ..ufuncs import as_array

__all__ = ["bartlett", "blackman", "hamming", "hanning", "i0", "kaiser", "sinc"]


def _cosines(M: int, factors: Sequence[float]) -> ndarray:
    """A sum of cosines over M points from -pi to pi."""
    count = int(M)
    if count < 1:
        return host.empty((0,))
    if count == 1:
        return ones(1)
    places = arange(1 - count, count, 2, dtype="f8") * (math.pi / (count - 1))
    made: Any = factors[0]
    for at, factor in enumerate(factors[1:], 1):
        made = ufuncs.cos(places * float(at)) * factor + made
    result: ndarray = made
    return result


def hanning(M: int) -> ndarray:
    """A raised cosine, 0 at both ends."""
    return _cosines(M, (0.5, 0.5))


def hamming(M: int) -> ndarray:
    """A raised cosine, 0.08 at both ends."""
    return _cosines(M, (0.54, 0.46))


def blackman(M: int) -> ndarray:
    """A sum of two cosines, almost 0 at both ends."""
    return _cosines(M, (0.42, 0.5, 0.08))


def bartlett(M: int) -> ndarray:
    """A triangle, 0 at both ends."""
    count = int(M)
    if count < 1:
        return host.empty((0,))
    if count == 1:
        return ones(1)
    places = arange(1 - count, count, 2, dtype="f8")
    return ufuncs.where(places <= 0, places / (count - 1) + 1, 1 - places / (count - 1))


def kaiser(M: int, beta: float) -> ndarray:
    """Bessel functions over a half circle; `beta` is the shape."""
    count = int(M)
    if count < 1:
        return host.empty((0,))
    if count == 1:
        return ones(1)
    alpha = (count - 1) / 2.0
    places = (arange(count, dtype="f8") - alpha) / alpha
    return i0(float(beta) * ufuncs.sqrt(1 - places * places)) / i0(float(beta))


def i0(x: Any) -> ndarray:
    """The modified Bessel function of the first kind, of order 0."""
    array = as_array(x)
    if array._dtype.kind == "c":
        raise TypeError("i0 not supported for complex values")
    return ufuncs.bessel_i0(array if array._dtype.kind == "f" else array.astype("f8"))


def sinc(x: Any) -> ndarray:
    """sin(pi x) / (pi x), 1 at 0."""
    array = as_array(x)
    array = array if array._dtype.kind in "fc" else array.astype("f8")
    angle = math.pi * array
    return ufuncs.where(array == 0, 1.0, ufuncs.sin(angle) / angle)
