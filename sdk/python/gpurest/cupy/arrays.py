"""cupy.ndarray, and how arrays are made of what is on the host and brought back there."""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Optional

import numpy

from .. import arrays
from .._session.default import chosen_device, default_client
from ..arrays.members import ArrayType
from ..arrays.ndarray import ndarray as _ndarray
from .missing import MissingError


class _Made(ArrayType):
    """cupy.ndarray is a class that makes arrays of a shape. Those that there are, whoever made them, are its instances."""

    def __call__(cls, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C") -> Any:
        if memptr is not None or strides is not None:
            raise MissingError("arrays are not made from an address or with strides of one's own: slices, transpose() and broadcast_to() make views")
        return arrays.empty(shape, dtype, order)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _ndarray)

    def __eq__(cls, other: object) -> bool:
        """`type(x) == cupy.ndarray` holds, whose type is gpurest.ndarray."""
        return other is cls or other is _ndarray

    def __hash__(cls) -> int:
        return hash(_ndarray)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _ndarray)


class ndarray(_ndarray, metaclass=_Made):
    """`ndarray(shape, dtype=float, order="C")`: an array with whatever is in its memory."""

    __slots__ = ()


def get_array_module(*args: Any) -> ModuleType:
    """This module if any argument is an array of the device, else NumPy."""
    return sys.modules[__package__ or ""] if any(isinstance(one, _ndarray) for one in args) else numpy


def array(obj: Any, dtype: Any = None, copy: Optional[bool] = True, order: str = "K", subok: bool = False, ndmin: int = 0, *, blocking: bool = False) -> Any:
    """gpurest.array(), on the current device. The elements are taken at once, whether `blocking` or not."""
    return arrays.array(_here(obj), dtype, copy, order, ndmin)


def asarray(a: Any, dtype: Any = None, order: Optional[str] = None, *, blocking: bool = False) -> Any:
    """gpurest.asarray(), on the current device: an array of another one is copied, through the host. The elements are taken at once, whether `blocking` or
    not."""
    return arrays.asarray(_here(a), dtype, order)


def _here(a: Any) -> Any:
    """An array on the device that this thread or task has chosen, if it has; anything else as it is."""
    chosen = chosen_device(default_client()) if isinstance(a, _ndarray) else None
    return a if chosen is None or a.session.device == chosen else a.to_device(chosen)


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> Any:
    """On the host, as an array of NumPy's. `stream` and `blocking` mean nothing: the elements are there when it returns."""
    if isinstance(a, _ndarray):
        return a.get(out=out, order=order)
    found = numpy.asarray(a, order=order)  # type: ignore[call-overload]
    if out is None:
        return found
    out[...] = found
    return out
