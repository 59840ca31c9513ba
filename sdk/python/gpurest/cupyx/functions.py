"""cupyx's own functions."""
from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator

import numpy

from .. import arrays
from ..arrays.ndarray import ndarray
from ..cupy.missing import MissingError


def scatter_add(a: ndarray, slices: Any, value: Any) -> None:
    """a[slices] += value, again for each time that a place is named."""
    arrays.add.at(a, slices, value)


def scatter_max(a: ndarray, slices: Any, value: Any) -> None:
    """a[slices] becomes the greater one of itself and value."""
    arrays.maximum.at(a, slices, value)


def scatter_min(a: ndarray, slices: Any, value: Any) -> None:
    """a[slices] becomes the smaller one of itself and value."""
    arrays.minimum.at(a, slices, value)


def rsqrt(x: Any) -> ndarray:
    """1 / sqrt(x)."""
    return 1 / arrays.sqrt(x)


def empty_pinned(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    """numpy.empty(): transfers need no pinned memory here."""
    return numpy.empty(shape, dtype, order)  # type: ignore[call-overload]


def zeros_pinned(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    """numpy.zeros(): transfers need no pinned memory here."""
    return numpy.zeros(shape, dtype, order)  # type: ignore[call-overload]


def empty_like_pinned(a: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> Any:
    """empty_pinned() of the array's shape and type."""
    return empty_pinned(a.shape if shape is None else shape, a.dtype if dtype is None else dtype, "F" if order == "F" else "C")


def zeros_like_pinned(a: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> Any:
    """zeros_pinned() of the array's shape and type."""
    return zeros_pinned(a.shape if shape is None else shape, a.dtype if dtype is None else dtype, "F" if order == "F" else "C")


def geterr() -> Dict[str, Any]:
    """What happens with results that are not finite: nothing, as in CuPy's default."""
    return {"divide": None, "over": None, "under": None, "invalid": None, "linalg": "raise", "fallback_mode": None}


def seterr(*, divide: Any = None, over: Any = None, under: Any = None, invalid: Any = None, linalg: Any = None, fallback_mode: Any = None) -> Dict[str, Any]:
    """Takes what geterr() says; anything else is refused. Returns geterr()."""
    if any(one is not None for one in (divide, over, under, invalid, fallback_mode)) or linalg not in (None, "raise"):
        raise MissingError('elementwise functions give NaN and infinity without a warning, and linalg raises: only None, and linalg="raise", are there')
    return geterr()


@contextlib.contextmanager
def errstate(**options: Any) -> Iterator[None]:
    """seterr() within a block."""
    seterr(**options)
    yield
