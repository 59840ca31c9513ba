"""Reductions that leave NaN out, and numbers in their place."""

from __future__ import annotations

import math
from typing import Any, Optional

from ..._values import dtypes
from .. import reductions, sorting, ufuncs
from .._engine.expr import Const
from ..ndarray import UNSET, AxisLike, ndarray
from ..ufuncs import as_array
from .picking import take_along_axis
from .statistics import lines

__all__ = ["nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanprod", "nanstd", "nansum", "nanvar",
           "nan_to_num"]


def _replaced(a: Any, value: float, *beside: Any) -> ndarray:
    array = as_array(a, *beside)
    return ufuncs.where(ufuncs.isnan(array), value, array) if array._dtype.kind in "fc" else array


def _numbers(array: ndarray, where: Any) -> Any:
    """A mask of what counts."""
    if array._dtype.kind not in "fc":
        return where
    numbers = ~ufuncs.isnan(array)
    return numbers if where is True else numbers & as_array(where, array)


def nansum(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, keepdims: bool = False, initial: Any = UNSET,
           where: Any = True) -> ndarray:
    """The sum of what is not NaN."""
    return reductions.sum(_replaced(a, 0, out, where), axis, dtype, out, keepdims, initial, where)


def nanprod(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, keepdims: bool = False, initial: Any = UNSET,
            where: Any = True) -> ndarray:
    """The product of what is not NaN."""
    return reductions.prod(_replaced(a, 1, out, where), axis, dtype, out, keepdims, initial, where)


def nancumsum(a: Any, axis: Optional[int] = None, dtype: Any = None, out: Optional[ndarray] = None) -> ndarray:
    """Running sums in which NaN counts as 0."""
    return reductions.cumsum(_replaced(a, 0, out), axis, dtype, out)


def nancumprod(a: Any, axis: Optional[int] = None, dtype: Any = None, out: Optional[ndarray] = None) -> ndarray:
    """Running products in which NaN counts as 1."""
    return reductions.cumprod(_replaced(a, 1, out), axis, dtype, out)


def nanmin(a: Any, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False, initial: Any = UNSET, where: Any = True) -> ndarray:
    """The least of what is not NaN; NaN where there is nothing else, of which nothing warns."""
    return reductions.extreme("fmin", a, axis, out, keepdims, initial, where)


def nanmax(a: Any, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False, initial: Any = UNSET, where: Any = True) -> ndarray:
    """The greatest of what is not NaN; NaN where there is nothing else, of which nothing warns."""
    return reductions.extreme("fmax", a, axis, out, keepdims, initial, where)


def nanmean(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, keepdims: bool = False, *, where: Any = True) -> ndarray:
    """The mean of what is not NaN; NaN where there is nothing else, of which nothing warns."""
    array = as_array(a, out, where)
    return reductions.mean(array, axis, dtype, out, keepdims, where=_numbers(array, where))


def _spread(a: Any, axis: AxisLike, dtype: Any, out: Optional[ndarray], ddof: float, keepdims: bool, where: Any, mean: Any, correction: Any) -> ndarray:
    array = as_array(a, out, where, mean)
    if array._dtype.kind not in "fc":
        return reductions.var(array, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    numbers = _numbers(array, where)
    spare = ddof if correction is UNSET else correction
    made = reductions.var(array, axis, dtype, None, spare, keepdims, where=numbers, mean=mean)
    left = reductions.sum(numbers, axis, keepdims=keepdims) - spare
    return ufuncs.where(left > 0, made, math.nan)


def nanvar(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, ddof: float = 0, keepdims: bool = False, *,
           where: Any = True, mean: Any = UNSET, correction: Any = UNSET) -> ndarray:
    """The variance of what is not NaN."""
    return reductions.into(out, _spread(a, axis, dtype, out, ddof, keepdims, where, mean, correction), "nanvar", "unsafe")


def nanstd(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, ddof: float = 0, keepdims: bool = False, *,
           where: Any = True, mean: Any = UNSET, correction: Any = UNSET) -> ndarray:
    """The square root of nanvar()."""
    return reductions.into(out, ufuncs.sqrt(_spread(a, axis, dtype, out, ddof, keepdims, where, mean, correction)), "nanstd", "unsafe")


def _place(op: str, a: Any, axis: Optional[int], out: Optional[ndarray], keepdims: bool) -> ndarray:
    array = as_array(a, out)
    if array._dtype.kind in "fc":
        if array.size and bool(reductions.any(reductions.all(ufuncs.isnan(array), axis))):
            raise ValueError("All-NaN slice encountered")
        array = _replaced(array, math.inf if op == "argmin" else -math.inf)
    return (reductions.argmin if op == "argmin" else reductions.argmax)(array, axis, out, keepdims=keepdims)


def nanargmin(a: Any, axis: Optional[int] = None, out: Optional[ndarray] = None, *, keepdims: bool = False) -> ndarray:
    """The place of the least of what is not NaN. That there is something must be known: this sends what is queued."""
    return _place("argmin", a, axis, out, keepdims)


def nanargmax(a: Any, axis: Optional[int] = None, out: Optional[ndarray] = None, *, keepdims: bool = False) -> ndarray:
    """The place of the greatest of what is not NaN. That there is something must be known: this sends what is queued."""
    return _place("argmax", a, axis, out, keepdims)


def nanmedian(a: Any, axis: AxisLike = None, out: Optional[ndarray] = None, overwrite_input: bool = False, keepdims: bool = False) -> ndarray:
    """The median of what is not NaN; NaN where there is nothing else, of which nothing warns."""
    array = as_array(a, out)
    line, kept = lines(array, axis)
    if not line._shape[-1]:
        made = reductions.mean(line, -1)
    else:
        ordered = sorting.sort(line)
        count = reductions.sum(~ufuncs.isnan(line), -1, keepdims=True)
        middle = [take_along_axis(ordered, ufuncs.maximum(place, 0), -1) for place in ((count - 1) // 2, count // 2)]
        kind = array._dtype if array._dtype.kind in "fc" else dtypes.float64
        low, high = (one.astype(kind, copy=False) for one in middle)
        mean = ufuncs.where(ufuncs.equal(low, high), low, (low + high) / 2)
        made = ufuncs.where(count == 0, math.nan, mean).reshape(line._shape[:-1])
    return reductions.into(out, made.reshape(kept) if keepdims else made, "nanmedian", "unsafe")


def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Optional[float] = None, neginf: Optional[float] = None) -> ndarray:
    """NaN becomes `nan`; infinities become `posinf` and `neginf`, or the greatest and least finite numbers. Without `copy`, in place."""
    array = as_array(x)
    if array._dtype.kind == "c":
        made = ufuncs.from_parts(*(nan_to_num(part, True, nan, posinf, neginf) for part in (array.real, array.imag)))
        return made if copy or not isinstance(x, ndarray) else ufuncs.into(x, made)
    if array._dtype.kind != "f":
        return ufuncs.cast_to(array, array._dtype) if copy else array
    greatest = {2: 65504.0, 4: 3.4028234663852886e38, 8: 1.7976931348623157e308}[array._dtype.itemsize]
    bounds = [Const(dtypes.rounded(float(given), array._dtype) if given is not None else extreme, array._dtype)
              for given, extreme in ((neginf, -greatest), (posinf, greatest))]
    finite = ufuncs.choose(ufuncs.isinf(array), ufuncs.choose(ufuncs.signbit(array), *bounds), array)
    made = ufuncs.choose(ufuncs.isnan(array), nan, finite)
    if not copy and isinstance(x, ndarray):
        x[...] = made
        return x
    return made
