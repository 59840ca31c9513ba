"""Fourier transforms, as numpy.fft: by the service's built-in kernels, with cuFFT or FFTW where the device's machine has it.

The built-in transforms lengths that are powers of two. Other lengths n are convolutions of such ones, at least 2n - 1 long, with numbers of length 1
that turn faster and faster (Bluestein, "A linear filtering approach to the computation of discrete Fourier transform", 1970)."""

from __future__ import annotations

import math
import warnings
from typing import Any, Callable, List, Optional, Sequence, Tuple

from .._session.handle import levels_to_caller
from .._values import dtypes
from .._values.dtypes import DType
from . import host, joining, shaping, ufuncs
from ._engine import shapes
from ._engine.builtins import Extents
from ._engine.expr import FFT, Const, Node
from .creation import arange, zeros
from .current import Device, Where
from .ndarray import AxisLike, ndarray, wrap
from .ufuncs import as_array

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "rfft",
           "rfft2", "rfftfreq", "rfftn"]

SWAPPED = {"backward": "forward", None: "forward", "ortho": "ortho", "forward": "backward"}
Norm = Optional[str]
Out = Optional[ndarray]


# ---- along one axis ----


def _checked(array: ndarray, n: Optional[int], axis: int, norm: Norm, half: bool = False) -> Tuple[int, int]:
    """The length of the transform, and the axis from the front. `half`: of an array that has one half of the numbers."""
    at = shapes.normalize_axis(axis, array.ndim) if n is None else 0
    length = shapes.as_index(n) if n is not None else (array._shape[at] - 1) * 2 if half else array._shape[at]
    if length < 1:
        raise ValueError(f"Invalid number of FFT data points ({length}) specified.")
    if norm not in SWAPPED:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return length, shapes.normalize_axis(axis, array.ndim)


def _complex_type(array: ndarray) -> DType:
    kind = array._dtype if array._dtype.kind in "fc" else dtypes.float64
    return dtypes.complex_of(kind)


def _fitted(array: ndarray, length: int, axis: int, kind: DType) -> ndarray:
    """Cut off or filled with zeros to `length` along the axis, as another type, in C order."""
    front = (slice(None),) * axis
    have = array._shape[axis]
    if have > length:
        array = array[(*front, slice(length))]
    if have < length:
        wide = zeros(array._shape[:axis] + (length,) + array._shape[axis + 1:], kind, session=array._engine.session)
        wide[(*front, slice(have))] = array
        return wide
    array = array.astype(kind, copy=False)
    return array if array._contiguous else array.copy()


def _transformed(array: ndarray, axis: int, inverse: bool) -> ndarray:
    """Of complex numbers in C order. The inverse is divided by the length."""
    length = array._shape[axis]
    if not array.size:
        return array.copy()
    if length & (length - 1):
        return _by_convolution(array, axis, inverse)
    shape = array._shape
    extents = Extents(shapes.size_of(shape[:axis]), length, shapes.size_of(shape[axis + 1:]))
    engine = array._engine
    with engine.lock:
        return wrap(Node(engine, FFT, array._dtype, shape, "fft", (array._load(),), {"extents": extents, "inverse": inverse}))


def _turns(numerator: ndarray, denominator: int, inverse: bool, kind: DType) -> ndarray:
    """exp(-i pi numerator / denominator); of the inverse, with + in the exponent."""
    part = numerator / (denominator if inverse else -denominator)
    return ufuncs.apply("turn", [part], ufuncs.Types((dtypes.float64,), dtypes.complex128)).astype(kind)


def _by_convolution(array: ndarray, axis: int, inverse: bool) -> ndarray:
    """With k t = (k k + t t - (k - t) (k - t)) / 2 the exponents of a transform are those of a convolution."""
    kind, line = array._dtype, shaping.moveaxis(array, axis, -1)
    length = line._shape[-1]
    wide = 1 << (2 * length - 2).bit_length()
    place = arange(length, dtype="i8", session=array._engine.session)
    squares = place * place % (2 * length)
    turns = _turns(ufuncs.choose(squares > length, squares - 2 * length, squares), length, inverse, kind)
    filter_ = zeros(wide, kind, session=array._engine.session)
    filter_[:length] = ufuncs.conjugate(turns)
    filter_[wide - length + 1:] = ufuncs.conjugate(turns[:0:-1])
    turned = zeros(line._shape[:-1] + (wide,), kind, session=array._engine.session)
    turned[..., :length] = line * turns
    last = line.ndim - 1
    folded = _transformed(_transformed(turned, last, False) * _transformed(filter_, 0, False), last, True)
    made = folded[..., :length] * turns
    made = _scaled(made, 1 / length) if inverse else made
    return shaping.moveaxis(made, -1, axis)


def _scaled(array: ndarray, factor: float) -> ndarray:
    """Both parts times a number. A new array, unless nothing changes and it fills its memory."""
    if factor == 1:
        return array if array._contiguous and array.nbytes == array._storage.node.nbytes else array.copy()
    kind = array._dtype
    number = Const(dtypes.rounded(factor, kind.part), kind.part)
    return ufuncs.apply("scale" if kind.kind == "c" else "multiply", [array, number], ufuncs.Types((kind, kind.part), kind))


def _factor(norm: Norm, length: int, inverse: bool) -> float:
    """What the result is multiplied by; an inverse one is divided by its length already."""
    if norm == "ortho":
        return math.sqrt(length) if inverse else 1 / math.sqrt(length)
    if norm == "forward":
        return length if inverse else 1 / length
    return 1


def _into(out: Out, made: ndarray, name: str) -> ndarray:
    if out is None:
        return made
    if not isinstance(out, ndarray):
        raise TypeError("return arrays must be of ArrayType")
    if out._shape != made._shape:
        raise ValueError("output array has wrong shape.")
    return ufuncs.into(out, made, name=name)


def _of_complex(a: Any, n: Optional[int], axis: int, norm: Norm, out: Out, inverse: bool) -> ndarray:
    array = as_array(a, out)
    length, at = _checked(array, n, axis, norm)
    made = _transformed(_fitted(array, length, at, _complex_type(array)), at, inverse)
    return _into(out, _scaled(made, _factor(norm, length, inverse)), "ifft" if inverse else "fft")


def fft(a: Any, n: Optional[int] = None, axis: int = -1, norm: Norm = None, out: Out = None) -> ndarray:
    """The Fourier transform along an axis, cut off or filled with zeros to `n` elements: complex64 of float32 and float16, else complex128. `norm`:
    which direction is divided, by n "forward" or "backward" (the inverse, and the default), or both by the square root of n: "ortho"."""
    return _of_complex(a, n, axis, norm, out, False)


def ifft(a: Any, n: Optional[int] = None, axis: int = -1, norm: Norm = None, out: Out = None) -> ndarray:
    """The inverse of fft(), with its options."""
    return _of_complex(a, n, axis, norm, out, True)


def rfft(a: Any, n: Optional[int] = None, axis: int = -1, norm: Norm = None, out: Out = None) -> ndarray:
    """The first n // 2 + 1 numbers of fft() of real numbers: the others are their conjugates."""
    array = as_array(a, out)
    length, at = _checked(array, n, axis, norm)
    if array._dtype.kind == "c":
        raise TypeError(f"ufunc 'rfft_n_{'odd' if length % 2 else 'even'}' not supported for the input types, and the inputs could not be safely coerced "
                        "to any supported types according to the casting rule ''safe''")
    if length % 2:
        half = _transformed(_fitted(array, length, at, _complex_type(array)), at, False)[(slice(None),) * at + (slice(length // 2 + 1),)]
    else:
        half = _of_pairs(array, length, at)
    return _into(out, _scaled(half, _factor(norm, length, False)), "rfft")


def _of_pairs(array: ndarray, length: int, axis: int) -> ndarray:
    """rfft() of an even number: neighbours are parts of complex numbers, whose transform is half as long. It
    takes 0.68 to 0.84 of the time of a whole one (2**18, 64 of 4,096, 1,000 of 64, f4, cpu device, 13 turns, 2026-11-25)."""
    kind, half = _complex_type(array), length // 2
    line = shaping.moveaxis(array, axis, -1)
    line = _fitted(line, length, line.ndim - 1, kind.part)
    pairs = _transformed((line if line._offset % 2 == 0 else line.copy()).view(kind), line.ndim - 1, False)
    made = host.empty(pairs._shape[:-1] + (half + 1,), kind, session=pairs._engine.session)
    turns = _turns(arange(1, half, dtype="i8", session=pairs._engine.session), half, False, kind)
    made[..., 1:half] = ufuncs.apply("join_halves", [pairs[..., 1:], pairs[..., :0:-1], turns], ufuncs.Types((kind,) * 3, kind))
    first = pairs[..., 0]
    made[..., 0], made[..., half] = first.real + first.imag, first.real - first.imag
    return shaping.moveaxis(made, -1, axis)


def _to_pairs(array: ndarray, length: int, axis: int) -> ndarray:
    """irfft() to an even number: what _of_pairs() does, turned back."""
    kind, half = _complex_type(array), length // 2
    line = shaping.moveaxis(array, axis, -1)
    line = _fitted(line, half + 1, line.ndim - 1, kind)
    turns = _turns(arange(half, dtype="i8", session=line._engine.session), half, True, kind)
    pairs = ufuncs.apply("split_halves", [line[..., :half], line[..., :0:-1], turns], ufuncs.Types((kind,) * 3, kind))
    return shaping.moveaxis(_transformed(pairs, line.ndim - 1, True).view(kind.part), -1, axis)


def irfft(a: Any, n: Optional[int] = None, axis: int = -1, norm: Norm = None, out: Out = None) -> ndarray:
    """The inverse of rfft(): `n` real numbers, by default 2 (m - 1) of m."""
    array = as_array(a, out)
    length, at = _checked(array, n, axis, norm, True)
    if length % 2:
        made = _transformed(_with_conjugates(_fitted(array, length // 2 + 1, at, _complex_type(array)), length, at), at, True).real
    else:
        made = _to_pairs(array, length, at)
    made = _scaled(made, _factor(norm, length, True))
    return _into(out, made.astype(array._dtype) if array._dtype is dtypes.float16 else made, "irfft")


def _with_conjugates(half: ndarray, length: int, axis: int) -> ndarray:
    """All numbers of the transform of an odd number of real ones. The first one is real."""
    front, middle = (slice(None),) * axis, half._shape[axis]
    whole = host.empty(half._shape[:axis] + (length,) + half._shape[axis + 1:], half._dtype, session=half._engine.session)
    whole[(*front, slice(middle))] = half
    whole[(*front, slice(middle, None))] = ufuncs.conjugate(half[(*front, slice(length - middle, 0, -1))])
    whole.imag[(*front, 0)] = 0
    return whole


def hfft(a: Any, n: Optional[int] = None, axis: int = -1, norm: Norm = None, out: Out = None) -> ndarray:
    """The transform, of real numbers, of what equals its own conjugate turned around, given by its first half."""
    array = as_array(a, out)
    length, at = _checked(array, n, axis, norm, True)
    return irfft(ufuncs.conjugate(array), length, at, SWAPPED[norm], out)


def ihfft(a: Any, n: Optional[int] = None, axis: int = -1, norm: Norm = None, out: Out = None) -> ndarray:
    """The inverse of hfft(): the first n // 2 + 1 numbers."""
    array = as_array(a, out)
    length, at = _checked(array, n, axis, norm)
    return _into(out, ufuncs.conjugate(rfft(array, length, at, SWAPPED[norm])), "ihfft")


# ---- along several ----


def _listed(array: ndarray, s: Any, axes: Any, half: bool = False) -> Tuple[List[int], List[int]]:
    """The lengths and the axes of a transform along several."""
    if axes is None:
        if s is not None:
            warnings.warn("`axes` should not be `None` if `s` is not `None` (Deprecated in NumPy 2.0). In a future version of NumPy, this will raise an error "
                          "and `s[i]` will correspond to the size along the transformed axis specified by `axes[i]`. To retain current behaviour, pass a "
                          "sequence [0, ..., k-1] to `axes` for an array of dimension k.", DeprecationWarning, stacklevel=levels_to_caller())
        axes = range(-(array.ndim if s is None else len(s)), 0)
    places = [shapes.normalize_axis(axis, array.ndim) for axis in axes]
    lengths = [array._shape[at] for at in places] if s is None else list(s)
    if len(lengths) != len(places):
        raise ValueError("Shape and axes have different lengths.")
    if s is None and half and places:
        lengths[-1] = (array._shape[places[-1]] - 1) * 2
    if None in lengths:
        warnings.warn("Passing an array containing `None` values to `s` is deprecated in NumPy 2.0 and will raise an error in a future version of NumPy. To use "
                      "the default behaviour of the corresponding 1-D transform, pass the value matching the default for its `n` parameter. To use the "
                      "default behaviour for every axis, the `s` argument can be omitted.", DeprecationWarning, stacklevel=levels_to_caller())
    return [array._shape[at] if length == -1 else length for length, at in zip(lengths, places)], places


def _along(function: Callable[..., ndarray], array: ndarray, lengths: Sequence[Any], axes: Sequence[int], norm: Norm) -> ndarray:
    """From the last of the axes to the first."""
    for length, axis in reversed(list(zip(lengths, axes))):
        array = function(array, length, axis, norm)
    return array


def fftn(a: Any, s: Any = None, axes: Any = None, norm: Norm = None, out: Out = None) -> ndarray:
    """fft() along several axes, by default all, cut off or filled with zeros to `s` elements along each; -1: as many as there are."""
    array = as_array(a, out)
    return _into(out, _along(fft, array, *_listed(array, s, axes), norm), "fft")


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Norm = None, out: Out = None) -> ndarray:
    """The inverse of fftn(), with its options."""
    array = as_array(a, out)
    return _into(out, _along(ifft, array, *_listed(array, s, axes), norm), "ifft")


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Norm = None, out: Out = None) -> ndarray:
    """rfft() along the last of several axes, then fft() along the others."""
    array = as_array(a, out)
    lengths, places = _listed(array, s, axes)
    made = rfft(array, lengths[-1], places[-1], norm)
    return _into(out, _along(fft, made, lengths[:-1], places[:-1], norm), "fft")


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Norm = None, out: Out = None) -> ndarray:
    """The inverse of rfftn(), with its options."""
    array = as_array(a, out)
    lengths, places = _listed(array, s, axes, True)
    for length, axis in list(zip(lengths, places))[:-1]:
        array = ifft(array, length, axis, norm)
    return irfft(array, lengths[-1], places[-1], norm, out)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Norm = None, out: Out = None) -> ndarray:
    """fftn() along two axes, by default the last ones."""
    return fftn(a, s, axes, norm, out)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Norm = None, out: Out = None) -> ndarray:
    """The inverse of fft2(), with its options."""
    return ifftn(a, s, axes, norm, out)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Norm = None, out: Out = None) -> ndarray:
    """rfftn() along two axes, by default the last ones."""
    return rfftn(a, s, axes, norm, out)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Norm = None, out: Out = None) -> ndarray:
    """The inverse of rfft2(), with its options."""
    return irfftn(a, s, axes, norm, out)


# ---- beside transforms ----


def _count(n: Any) -> int:
    if not hasattr(n, "__index__"):
        raise ValueError("n should be an integer")
    return shapes.as_index(n)


def fftfreq(n: int, d: float = 1.0, device: Device = None, *, dtype: Any = float, session: Where = None) -> ndarray:
    """The frequencies of fft()'s numbers, for samples `d` apart: from 0 up, then those below 0."""
    count = _count(n)
    place = arange(count, dtype="i8", session=session, device=device)
    made = ufuncs.choose(place < (count + 1) // 2, place, place - count) * (1.0 / (count * d))
    return made.astype(dtype, copy=False)


def rfftfreq(n: int, d: float = 1.0, device: Device = None, *, dtype: Any = float, session: Where = None) -> ndarray:
    """The frequencies of rfft()'s numbers, for samples `d` apart."""
    count = _count(n)
    made = arange(count // 2 + 1, dtype="i8", session=session, device=device) * (1.0 / (count * d))
    return made.astype(dtype, copy=False)


def _shifted(x: Any, axes: AxisLike, ahead: bool) -> ndarray:
    array = as_array(x)
    listed: Any = range(array.ndim) if axes is None else axes if shapes.is_several(axes) else (axes,)
    for axis in listed:
        at = shapes.normalize_axis(axis, array.ndim)
        front, extent = (slice(None),) * at, array._shape[at]
        cut = extent - extent // 2 if ahead else extent // 2
        array = joining.concatenate([array[(*front, slice(cut, None))], array[(*front, slice(cut))]], at)
    return array if array is not x else array.copy()


def fftshift(x: Any, axes: AxisLike = None) -> ndarray:
    """The frequency 0 in the middle, along every axis or those of `axes`."""
    return _shifted(x, axes, True)


def ifftshift(x: Any, axes: AxisLike = None) -> ndarray:
    """The inverse of fftshift()."""
    return _shifted(x, axes, False)
