"""What kind of numbers an array has, and parts of numbers."""

from __future__ import annotations

import math
from typing import Any

from .. import ufuncs
from .._engine import shapes
from ..creation import full
from ..ndarray import ndarray
from ..ufuncs import as_array

__all__ = ["angle", "fix", "imag", "iscomplex", "iscomplexobj", "isfortran", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "iterable",
           "may_share_memory", "ndim", "real", "real_if_close", "shape", "shares_memory", "size"]


def fix(x: Any, out: Any = None) -> ndarray:
    """Whole numbers towards 0."""
    return ufuncs.trunc(x, out=out)


def _ordered(x: Any, out: Any) -> ndarray:
    array = as_array(x, out)
    if array._dtype.kind == "c":
        raise TypeError(f"This operation is not supported for {array.dtype} values because it would be ambiguous.")
    return array


def isposinf(x: Any, out: Any = None) -> ndarray:
    """Whether each element is infinite and above 0."""
    array = _ordered(x, out)
    return ufuncs.into(out, ufuncs.isinf(array) & ~ufuncs.signbit(array), casting="unsafe", name="isposinf")


def isneginf(x: Any, out: Any = None) -> ndarray:
    """Whether each element is infinite and below 0."""
    array = _ordered(x, out)
    return ufuncs.into(out, ufuncs.isinf(array) & ufuncs.signbit(array), casting="unsafe", name="isneginf")


def iscomplex(x: Any) -> ndarray:
    """Whether each element has an imaginary part: none of real numbers has."""
    array = as_array(x)
    if array._dtype.kind == "c":
        return ufuncs.not_equal(array.imag, 0)
    return full(array._shape, False, session=array._engine.session)


def isreal(x: Any) -> ndarray:
    """Whether each element has no imaginary part."""
    array = as_array(x)
    if array._dtype.kind == "c":
        return ufuncs.equal(array.imag, 0)
    return full(array._shape, True, session=array._engine.session)


def iscomplexobj(x: Any) -> bool:
    """Whether the element type is complex."""
    return getattr(getattr(x, "dtype", None), "kind", "c" if isinstance(x, complex) else "") == "c"


def isrealobj(x: Any) -> bool:
    """Whether the element type is not complex."""
    return not iscomplexobj(x)


def real(val: Any) -> ndarray:
    """The real parts, a view of the array."""
    return as_array(val).real


def imag(val: Any) -> ndarray:
    """The imaginary parts, a view of the array; of real numbers, zeros."""
    return as_array(val).imag


def angle(z: Any, deg: bool = False) -> ndarray:
    """The angle of each number with the positive axis; of real numbers 0, or half a turn for those below 0."""
    array = as_array(z)
    if array._dtype.kind == "c":
        turned = ufuncs.of_complex("angle", array, array._dtype.part)
        return turned * (180 / math.pi) if deg else turned
    array = array if array._dtype.kind == "f" else array.astype("f8")
    return ufuncs.arctan2(0.0 * ufuncs.isnan(array), array) * (180 / math.pi if deg else 1.0)


def real_if_close(a: Any, tol: float = 100) -> ndarray:
    """The real parts, if no imaginary part is so many times the type's precision, or with `tol` of 1 or less, as much as that; else the array.
    Complex numbers are looked at: this sends what is queued."""
    array = as_array(a)
    if array._dtype.kind != "c":
        return array
    bound = tol * {4: 2.0 ** -23, 8: 2.0 ** -52}[array._dtype.part.itemsize] if tol > 1 else tol
    return array.real if bool((ufuncs.absolute(array.imag) < bound).all()) else array


def isscalar(element: Any) -> bool:
    """Whether it is a number and no array."""
    return isinstance(element, (bool, int, float, complex, str, bytes)) or (not isinstance(element, ndarray) and hasattr(element, "dtype")
                                                                            and getattr(element, "shape", None) == () and not hasattr(element, "fill_value")
                                                                            and type(element).__name__ != "ndarray")


def iterable(y: Any) -> bool:
    """Whether iter() takes it, or it is an array with dimensions."""
    if isinstance(y, ndarray):
        return y.ndim > 0
    try:
        iter(y)
    except TypeError:
        return False
    return True


def isfortran(a: ndarray) -> bool:
    """Whether the elements lie in memory with the first dimension fastest, and not in C order."""
    return a.flags.f_contiguous and not a.flags.c_contiguous


def _bounds(array: ndarray) -> Any:
    first = last = array._offset * array._dtype.itemsize
    for extent, stride in zip(array._shape, array.strides):
        first, last = first + min(0, (extent - 1) * stride), last + max(0, (extent - 1) * stride)
    return first, last + array._dtype.itemsize


def may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether both are views of one memory and their bounds overlap."""
    if not isinstance(a, ndarray) or not isinstance(b, ndarray) or a._storage is not b._storage or not a.size or not b.size:
        return False
    (first, end), (other, other_end) = _bounds(a), _bounds(b)
    return bool(first < other_end and other < end)


def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether an element of one is an element of the other: exact where both have the same strides, else as may_share_memory()."""
    if not may_share_memory(a, b):
        return False
    steps = [abs(stride) for array in (a, b) for extent, stride in zip(array._shape, array.strides) if extent > 1 and stride]
    common = math.gcd(*steps) if steps else 1
    apart = (a._offset * a._dtype.itemsize - b._offset * b._dtype.itemsize) % common
    return not (apart >= b._dtype.itemsize and common - apart >= a._dtype.itemsize) if common > 1 else True


def ndim(a: Any) -> int:
    """Number of dimensions."""
    return as_array(a).ndim


def shape(a: Any) -> Any:
    """The extents of all dimensions."""
    return as_array(a).shape


def size(a: Any, axis: Any = None) -> int:
    """Number of elements, or the extent of `axis`."""
    array = as_array(a)
    if axis is None:
        return array.size
    total = 1
    for one in axis if shapes.is_several(axis) else (axis,):
        total *= array._shape[one]
    return total
