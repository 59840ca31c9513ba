"""Reductions along axes, and running ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Dict, NamedTuple, Optional, Tuple

from .._values import dtypes
from .._values.dtypes import DType
from . import host, ufuncs
from ._engine import shapes
from ._engine.builtins import reducible
from ._engine.expr import REDUCE, SCAN, Const, Node, Operation
from .casting import check as check_cast
from .functions import method
from .ndarray import UNSET, AxisLike, ndarray, queued, wrap
from .ufuncs import as_array

NAN = float("nan")


def into(out: Any, result: ndarray, name: str, casting: str = "same_kind") -> ndarray:
    """`result`, or `out` with it: of the same shape, and of a type that it may become."""
    if out is None:
        return result
    target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if isinstance(target, ndarray) and target._shape != result._shape:
        raise ValueError(f"output parameter for reduction operation {name} has shape {target._shape}, the result {result._shape}")
    return ufuncs.into(target, result, True, casting, name)


def reduced(op: str, array: ndarray, axis: AxisLike, result: DType, keepdims: bool = False, params: Optional[Dict[str, Any]] = None,
            inside: int = 4) -> ndarray:
    """Queues the reduction `op` of the array. `inside`: see Node."""
    left = _left(op, result.name, array._shape, None if axis is None else shapes.strict_axes(axis, len(array._shape)))
    engine = array._storage.node.engine
    with engine.lock:
        value = queued(Node(engine, REDUCE, result, left.shape, op, (array._load(),), {**left.params, **params} if params else left.params, inside))
    return value.reshape(tuple([1 if at in left.params["reduced"] else extent for at, extent in enumerate(array._shape)])) if keepdims else value


class _Left(NamedTuple):
    """By a reduction along certain axes: the shape, and what its nodes know."""

    shape: shapes.Shape
    params: Operation


@lru_cache(maxsize=shapes.KNOWN_MAX)
def _left(op: str, result: str, shape: shapes.Shape, axes: Optional[Tuple[int, ...]]) -> _Left:
    if axes is None:
        axes = tuple(range(len(shape)))
    kept = tuple([at for at in range(len(shape)) if at not in axes])
    return _Left(tuple([shape[at] for at in kept]), Operation({"kept": kept, "reduced": axes}))


def masked(array: ndarray, where: Any, neutral: Any) -> ndarray:
    """The array with `neutral` where the mask `where` does not hold."""
    if where is True:
        return array
    mask = mask_for(array, where)
    return ufuncs.choose(mask, array, Const(dtypes.checked(neutral, array._dtype), array._dtype))


def mask_for(array: ndarray, where: Any) -> ndarray:
    """`where` as an array for a reduction of another."""
    mask = host.asarray(where, session=array._engine.session)
    if mask._dtype is not dtypes.bool_:
        raise TypeError(f"Cannot cast array data from {mask.dtype!r} to {dtypes.public(dtypes.bool_)!r} according to the rule 'safe'")
    if not shapes.can_broadcast(mask._shape, array._shape):
        raise ValueError(f"operands could not be broadcast together with shapes {array._shape} {mask._shape}")
    return mask


def sum_type(array: ndarray, dtype: Any) -> DType:
    """The type in which a sum of this one is computed, by NumPy's rule."""
    if dtype is not None:
        return dtypes.dtype_of(dtype)
    kind = array._dtype
    return kind if kind.kind in "fc" else dtypes.uint64 if kind.kind == "u" else dtypes.int64


def _summed(op: str, array: ndarray, axis: AxisLike, dtype: Any, out: Optional[ndarray], keepdims: bool, initial: Any, where: Any) -> ndarray:
    result = sum_type(array, dtype)
    if where is not True:
        array = masked(array, where, 0 if op == "sum" else 1)
    if result.kind == "b":
        made = reduced("any" if op == "sum" else "all", array, axis, result, keepdims)
    else:
        array = _narrowed(array, result)
        made = reduced(op, array, axis, result, keepdims)
    if initial is not UNSET and initial is not None:
        made = (ufuncs.add if op == "sum" else ufuncs.multiply)(made, Const(dtypes.checked(scalar(initial), result), result))
    return into(out, made, "add" if op == "sum" else "multiply")


def _narrowed(array: ndarray, result: DType) -> ndarray:
    """Elements that become whole numbers, or lose their imaginary parts, do so before they are joined."""
    kind = array._dtype.kind
    return array.astype(result) if (result.kind in "iu" and kind == "f") or (result.kind != "c" and kind == "c") else array


def scalar(value: Any) -> Any:
    """A number of the host, also from an array of one element."""
    return value.item() if hasattr(value, "item") else value


@method
def sum(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, keepdims: bool = False, initial: Any = UNSET,
        where: Any = True) -> ndarray:
    """Integers and booleans are added up as 64-bit integers, halves as floats. `where`: a mask of what counts; `initial`: added. Floats are added in
    another order than NumPy's: the last digits may differ."""
    if type(a) is ndarray and dtype is None and out is None and initial is UNSET and where is True:  # nearly always
        kind = a._dtype
        return reduced("sum", a, axis, kind if kind.kind in "fc" else sum_type(a, None), keepdims)
    return _summed("sum", as_array(a, out, where), axis, dtype, out, keepdims, initial, where)


@method
def prod(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, keepdims: bool = False, initial: Any = UNSET,
         where: Any = True) -> ndarray:
    """The product; types and options as in sum()."""
    return _summed("prod", as_array(a, out, where), axis, dtype, out, keepdims, initial, where)


def extreme(op: str, a: Any, axis: AxisLike, out: Optional[ndarray], keepdims: bool, initial: Any, where: Any) -> ndarray:
    """The reduction of a function that gives one of its operands and has no identity: the maximum, the least and their like."""
    array, name = as_array(a, out, where), {"min": "minimum", "max": "maximum"}.get(op, op)
    axes = shapes.strict_axes(axis, array.ndim)
    given = initial is not UNSET and initial is not None
    if where is not True and not given:
        raise ValueError(f"reduction operation '{name}' does not have an identity, so to use a where mask one has to specify 'initial'")
    if not given:
        if is_nothing(array, axes):
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        return into(out, reduced(op, array, axes, array._dtype, keepdims), name)
    first = Const(dtypes.checked(scalar(initial), array._dtype), array._dtype)
    made = reduced(op, masked(array, where, first.value), axes, array._dtype, keepdims)
    if is_nothing(array, axes):
        made = ufuncs.apply("identity", [first], ufuncs.Types((first.dtype,), first.dtype), made._shape)
    return into(out, ufuncs.UFUNCS[name](made, first), name)


@method
def min(a: Any, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False, initial: Any = UNSET, where: Any = True) -> ndarray:  # noqa: A001
    """The least; NaN if there is one. `where`, a mask of what counts, needs an `initial` value."""
    return extreme("min", a, axis, out, keepdims, initial, where)


@method
def max(a: Any, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False, initial: Any = UNSET, where: Any = True) -> ndarray:  # noqa: A001
    """The greatest; NaN if there is one. `where`, a mask of what counts, needs an `initial` value."""
    return extreme("max", a, axis, out, keepdims, initial, where)


amin = min
amax = max


@method
def any(a: Any, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False, where: Any = True) -> ndarray:  # noqa: A001
    """Whether any element is not zero."""
    return into(out, reduced("any", masked(as_array(a, out, where), where, 0), axis, dtypes.bool_, keepdims), "logical_or", "unsafe")


@method
def all(a: Any, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False, where: Any = True) -> ndarray:  # noqa: A001
    """Whether no element is zero."""
    return into(out, reduced("all", masked(as_array(a, out, where), where, 1), axis, dtypes.bool_, keepdims), "logical_and", "unsafe")


def count_nonzero(a: Any, axis: AxisLike = None, keepdims: bool = False) -> ndarray:
    """How many elements are not zero, as int64."""
    return sum(as_array(a) != 0, axis, keepdims=keepdims)


def ptp(a: Any, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False) -> ndarray:
    """The greatest less the least."""
    array = as_array(a, out)
    return into(out, ufuncs.subtract(max(array, axis, keepdims=keepdims), min(array, axis, keepdims=keepdims)), "subtract")


def count_along(array: ndarray, axis: AxisLike) -> int:
    """How many elements each result is of."""
    total = 1
    for at in shapes.strict_axes(axis, array.ndim):
        total *= array._shape[at]
    return total


def _mean_types(array: ndarray, dtype: Any) -> DType:
    if dtype is not None:
        return dtypes.dtype_of(dtype)
    return array._dtype if array._dtype.kind in "fc" else dtypes.float64


@method
def mean(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, keepdims: bool = False, *, where: Any = True) -> ndarray:
    """NaN, and unlike in NumPy no warning, where there is nothing to take the mean of. Halves are added up as floats. `where`: a mask of what counts."""
    array = as_array(a, out, where)
    kind = _mean_types(array, dtype)
    if where is not True:
        work = dtypes.float32 if kind.name == "float16" else kind
        made = ufuncs.divide(sum(array, axis, work, None, keepdims, where=where), _counted(array, axis, keepdims, where)).astype(kind, copy=False)
    elif kind.kind in "fc":
        made = reduced("mean", _narrowed(array, kind), axis, kind, keepdims)
    else:
        made = (sum(array, axis, kind, None, keepdims) / (float(count_along(array, axis)) or NAN)).astype(kind, copy=False)
    return into(out, made, "mean", "unsafe")


def _counted(array: ndarray, axis: AxisLike, keepdims: bool, where: Any) -> ndarray:
    """How many elements the mask lets count for each result, as float64."""
    mask = mask_for(array, where)
    return sum(mask._view(array._shape, shapes.broadcast_strides(mask._shape, mask._strides, array._shape), mask._offset), axis, None, None, keepdims).astype(dtypes.float64)


@method
def var(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, ddof: float = 0, keepdims: bool = False, *, where: Any = True,
        mean: Any = UNSET, correction: Any = UNSET) -> ndarray:
    """Mean of the squared distances from the mean, the count lessened by `ddof` (or `correction`). `mean`: if it is known already, with the
    reduced dimensions kept. `where`: a mask of what counts."""
    array = as_array(a, out, where, mean)
    kind = _mean_types(array, dtype)
    if correction is not UNSET:
        if ddof:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    return into(out, _variance(array, axis, kind, ddof, keepdims, where, mean), "var", "unsafe")


def _variance(array: ndarray, axis: AxisLike, kind: DType, ddof: float, keepdims: bool, where: Any, known: Any) -> ndarray:
    left = count_along(array, axis) - ddof
    plain = where is True and known is UNSET
    if plain and left > 0 and array._engine.language.builtins:
        extents = reducible("var", array._load(), shapes.strict_axes(axis, array.ndim), kind)
        if not isinstance(extents, str):
            return reduced("var", array, axis, kind, keepdims, {"extents": extents, "ddof": float(ddof)})
    work = dtypes.float32 if kind.name == "float16" else kind
    middle = mean(array, axis, work, None, True, where=where) if known is UNSET else known
    distance = array.astype(work, copy=False) - middle
    far = ufuncs.of_complex("square_of_size", distance, distance._dtype.part) if distance._dtype.kind == "c" else distance * distance
    squares, kind = sum(far, axis, None, None, keepdims, where=where), kind.part
    if where is True:
        return (squares / float(left if left > 0 else 0)).astype(kind, copy=False)
    return ufuncs.divide(squares, ufuncs.maximum(_counted(array, axis, keepdims, where) - ddof, 0.0)).astype(kind, copy=False)


@method
def std(a: Any, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, ddof: float = 0, keepdims: bool = False, *, where: Any = True,
        mean: Any = UNSET, correction: Any = UNSET) -> ndarray:
    """The square root of var(), with its options."""
    return into(out, ufuncs.sqrt(var(as_array(a, out, where, mean), axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)), "std", "unsafe")


def _arg(op: str, a: Any, axis: Optional[int], out: Optional[ndarray], keepdims: bool) -> ndarray:
    array = as_array(a, out)
    whole = array._shape
    if array.ndim == 0:
        array = array.reshape(1)
    axes = shapes.strict_axes(axis, array.ndim)
    if is_nothing(array, axes):
        raise ValueError(f"attempt to get {op} of an empty sequence")
    if isinstance(out, ndarray):
        check_cast(out._dtype, dtypes.int64, "safe")  # of the given one, as in NumPy
    made = reduced(op, array, axes, dtypes.int64, keepdims)
    return into(out, made.reshape(()) if not whole else made, op, "unsafe")


def is_nothing(array: ndarray, axes: Any) -> bool:
    """Whether the axes have no elements."""
    return 0 in [array._shape[at] for at in axes]


@method
def argmin(a: Any, axis: Optional[int] = None, out: Optional[ndarray] = None, *, keepdims: bool = False) -> ndarray:
    """The place of the first NaN, else of the first of the least."""
    return _arg("argmin", a, axis, out, keepdims)


@method
def argmax(a: Any, axis: Optional[int] = None, out: Optional[ndarray] = None, *, keepdims: bool = False) -> ndarray:
    """The place of the first NaN, else of the first of the greatest."""
    return _arg("argmax", a, axis, out, keepdims)


def running(op: str, array: ndarray, axis: int, result: DType) -> ndarray:
    """Queues the running reduction `op` along an axis."""
    at = shapes.strict_axis(axis, array.ndim)
    array = _narrowed(array, result)
    engine = array._engine
    with engine.lock:
        return wrap(Node(engine, SCAN, result, array._shape, op, (array._load(),), {"axis": at}))


def _running_sum(op: str, a: Any, axis: Optional[int], dtype: Any, out: Optional[ndarray]) -> ndarray:
    array = as_array(a, out)
    if axis is None or array.ndim == 0:
        shapes.strict_axis(0 if axis is None else axis, array.ndim or 1)
        array, axis = array.reshape(-1), 0
    result = sum_type(array, dtype)
    if result.kind == "b":
        op, array = ("any" if op == "sum" else "all"), array.astype(result, copy=False)
    return into(out, running(op, array, axis, result), "add" if op == "sum" else "multiply")


@method
def cumsum(a: Any, axis: Optional[int] = None, dtype: Any = None, out: Optional[ndarray] = None) -> ndarray:
    """Running sums along an axis, or over all elements in C order. The last digits of floats may differ from NumPy's, and from run to run."""
    return _running_sum("sum", a, axis, dtype, out)


@method
def cumprod(a: Any, axis: Optional[int] = None, dtype: Any = None, out: Optional[ndarray] = None) -> ndarray:
    """Running products along an axis, or over all elements in C order."""
    return _running_sum("prod", a, axis, dtype, out)


def _cumulative(op: str, x: Any, axis: Optional[int], dtype: Any, out: Optional[ndarray], include_initial: bool) -> ndarray:
    array = as_array(x, out)
    if axis is None:
        if array.ndim > 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        axis = 0
    if array.ndim == 0:
        raise ValueError("The argument x must be at least one-dimensional")
    made = _running_sum(op, array, axis, dtype, None)
    if include_initial:
        at = shapes.strict_axis(axis, array.ndim)
        longer = host.empty(made._shape[:at] + (made._shape[at] + 1,) + made._shape[at + 1:], made._dtype, session=made._engine.session)
        longer[(slice(None),) * at + (slice(0, 1),)] = 0 if op == "sum" else 1
        longer[(slice(None),) * at + (slice(1, None),)] = made
        made = longer
    return into(out, made, op)


def cumulative_sum(x: Any, axis: Optional[int] = None, dtype: Any = None, out: Optional[ndarray] = None, include_initial: bool = False) -> ndarray:
    """cumsum() of the array API: an axis is needed with several dimensions; `include_initial` puts a 0 in front."""
    return _cumulative("sum", x, axis, dtype, out, include_initial)


def cumulative_prod(x: Any, axis: Optional[int] = None, dtype: Any = None, out: Optional[ndarray] = None, include_initial: bool = False) -> ndarray:
    """cumprod() of the array API: an axis is needed with several dimensions; `include_initial` puts a 1 in front."""
    return _cumulative("prod", x, axis, dtype, out, include_initial)
