"""Reductions along axes, and running sums."""

from __future__ import annotations

from typing import Any, Dict, Optional

from .._values import dtypes
from .._values.dtypes import DType
from . import ufuncs
from ._engine import shapes
from ._engine.builtins import reducible
from ._engine.expr import REDUCE, SCAN, Node
from .functions import method
from .ndarray import AxisLike, ndarray, wrap

NAN = float("nan")


def _array(a: Any) -> ndarray:
    return a if isinstance(a, ndarray) else ufuncs.cast_to_array(ufuncs.operand(a))


def _reduced(op: str, array: ndarray, axis: AxisLike, result: DType, keepdims: bool, out: Optional[ndarray] = None,
             params: Optional[Dict[str, Any]] = None) -> ndarray:
    axes = shapes.normalize_axes(axis, array.ndim)
    kept = tuple(at for at in range(array.ndim) if at not in axes)
    shape = tuple(array._shape[at] for at in kept)
    engine = array._engine
    with engine.lock:
        node = Node(engine, REDUCE, result, shape, op, (array._load(),), {"kept": kept, "reduced": axes, **(params or {})})
        value = wrap(node)
    if keepdims:
        value = value.reshape(tuple(1 if at in axes else extent for at, extent in enumerate(array._shape)))
    return _into(out, value)


def _sum_type(array: ndarray, dtype: Any) -> DType:
    if dtype is not None:
        return dtypes.dtype_of(dtype)
    kind = array._dtype
    if kind.kind in "bi":
        return dtypes.int64
    return dtypes.uint64 if kind.kind == "u" else kind


def _summed(op: str, array: ndarray, axis: AxisLike, dtype: Any, out: Optional[ndarray], keepdims: bool) -> ndarray:
    result = _sum_type(array, dtype)
    if result.kind == "b":
        return _reduced("any" if op == "sum" else "all", array, axis, result, keepdims, out)
    if result.kind in "iu" and array._dtype.kind == "f":
        array = array.astype(result)
    return _reduced(op, array, axis, result, keepdims, out)


@method
def sum(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, keepdims: bool = False) -> ndarray:
    """Integers and booleans are added up as 64-bit integers, halves as floats."""
    return _summed("sum", _array(a), axis, dtype, out, keepdims)


@method
def prod(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, keepdims: bool = False) -> ndarray:
    return _summed("prod", _array(a), axis, dtype, out, keepdims)


def _extreme(op: str, a: Any, axis: AxisLike, out: Optional[ndarray], keepdims: bool) -> ndarray:
    array = _array(a)
    axes = shapes.normalize_axes(axis, array.ndim)
    if _is_nothing(array, axes):
        raise ValueError(f"zero-size array to reduction operation {op} which has no identity")
    return _reduced(op, array, axes, array._dtype, keepdims, out)


@method
def min(a: Any, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False) -> ndarray:  # noqa: A001
    """NaN if there is one."""
    return _extreme("min", a, axis, out, keepdims)


@method
def max(a: Any, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False) -> ndarray:  # noqa: A001
    """NaN if there is one."""
    return _extreme("max", a, axis, out, keepdims)


@method
def any(a: Any, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False) -> ndarray:  # noqa: A001
    return _reduced("any", _array(a), axis, dtypes.bool_, keepdims, out)


@method
def all(a: Any, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False) -> ndarray:  # noqa: A001
    return _reduced("all", _array(a), axis, dtypes.bool_, keepdims, out)


def count_nonzero(a: Any, axis: AxisLike = None, keepdims: bool = False) -> ndarray:
    return sum(_array(a) != 0, axis, keepdims=keepdims)


def _count(array: ndarray, axis: AxisLike) -> int:
    total = 1
    for at in shapes.normalize_axes(axis, array.ndim):
        total *= array._shape[at]
    return total


def _mean_types(array: ndarray, dtype: Any) -> DType:
    if dtype is not None:
        return dtypes.dtype_of(dtype)
    return array._dtype if array._dtype.kind == "f" else dtypes.float64


@method
def mean(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, keepdims: bool = False) -> ndarray:
    """NaN where there is nothing to take the mean of. Halves are added up as floats."""
    array = _array(a)
    kind = _mean_types(array, dtype)
    if kind.kind == "f":
        return _reduced("mean", array, axis, kind, keepdims, out)
    result = (sum(array, axis, kind, None, keepdims) / (float(_count(array, axis)) or NAN)).astype(kind, copy=False)
    return _into(out, result)


def _into(out: Optional[ndarray], result: ndarray) -> ndarray:
    if out is None:
        return result
    out[...] = result
    return out


@method
def var(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, ddof: float = 0, keepdims: bool = False) -> ndarray:
    """Mean of the squared distances from the mean, the count lessened by `ddof`."""
    array = _array(a)
    kind = _mean_types(array, dtype)
    left = _count(array, axis) - ddof
    if left > 0:
        extents = reducible("var", array._load(), shapes.normalize_axes(axis, array.ndim), kind)
        if not isinstance(extents, str):
            return _reduced("var", array, axis, kind, keepdims, out, {"extents": extents, "ddof": float(ddof)})
    work = dtypes.float32 if kind.name == "float16" else kind
    distance = array.astype(work, copy=False) - mean(array, axis, work, None, True)
    return _into(out, (sum(distance * distance, axis, None, None, keepdims) / (float(left) if left > 0 else NAN)).astype(kind, copy=False))


@method
def std(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, ddof: float = 0, keepdims: bool = False) -> ndarray:
    return _into(out, ufuncs.sqrt(var(a, axis, dtype, None, ddof, keepdims)))


def _arg(op: str, a: Any, axis: Optional[int], keepdims: bool) -> ndarray:
    array = _array(a)
    if array.ndim == 0:
        array = array.reshape(1)
    axes = shapes.normalize_axes(axis, array.ndim)
    if _is_nothing(array, axes):
        raise ValueError(f"attempt to get {op} of an empty sequence")
    return _reduced(op, array, axes, dtypes.int64, keepdims)


def _is_nothing(array: ndarray, axes: Any) -> bool:
    return 0 in [array._shape[at] for at in axes]


@method
def argmin(a: Any, axis: Optional[int] = None, keepdims: bool = False) -> ndarray:
    """The place of the first NaN, else of the first of the least."""
    return _arg("argmin", a, axis, keepdims)


@method
def argmax(a: Any, axis: Optional[int] = None, keepdims: bool = False) -> ndarray:
    """The place of the first NaN, else of the first of the greatest."""
    return _arg("argmax", a, axis, keepdims)


def _running(op: str, a: Any, axis: Optional[int], dtype: Any) -> ndarray:
    array = _array(a)
    if axis is None:
        array, axis = array.reshape(-1), 0
    at = shapes.normalize_axis(axis, array.ndim)
    result = _sum_type(array, dtype)
    if result.kind == "b":
        raise TypeError("running sums of booleans as booleans are not there: leave dtype out")
    if result.kind in "iu" and array._dtype.kind == "f":
        array = array.astype(result)
    engine = array._engine
    with engine.lock:
        return wrap(Node(engine, SCAN, result, array._shape, op, (array._load(),), {"axis": at}))


@method
def cumsum(a: Any, axis: Optional[int] = None, dtype: Any = None) -> ndarray:
    """Running sums along an axis, or over all elements in C order."""
    return _running("sum", a, axis, dtype)


@method
def cumprod(a: Any, axis: Optional[int] = None, dtype: Any = None) -> ndarray:
    return _running("prod", a, axis, dtype)
