"""reduce, accumulate, outer and at of elementwise functions."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from ..._values import dtypes
from ..._values.dtypes import DType
from .. import indexing, joining, reductions, shaping, sorting, ufuncs
from .._engine import shapes
from .._engine.expr import FOLD, Node
from ..creation import arange, full
from ..functions import method
from ..ndarray import UNSET, AxisLike, ndarray, wrap
from ..ufuncs import ufunc

__all__: List[str] = []  # what is here are methods of functions

# Functions that join elements in any order -> the engine's name of the reduction.
REORDERABLE: Dict[str, str] = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
                               **{name: name for name in ("logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "fmax", "fmin", "gcd", "lcm", "hypot",
                                                          "logaddexp", "logaddexp2")}}
SELECTING = ("max", "min", "fmax", "fmin", "lcm")  # reductions without an identity
# What at() joins by atomic operations, in any order.
JOINED = ("add", "subtract", "multiply", "maximum", "minimum", "fmax", "fmin", "bitwise_and", "bitwise_or", "bitwise_xor")


def _binary(function: ufunc, what: str) -> None:
    if function.nin != 2:
        raise ValueError(f"{what} only supported for binary functions")
    if function.nout != 1:
        raise ValueError(f"{what} only supported for functions returning a single value")


def _type_of(function: ufunc, array: ndarray, dtype: Any) -> DType:
    """In which operands and the result are."""
    name = function.__name__
    if name in ("add", "multiply"):
        return reductions.sum_type(array, dtype)
    types = function._resolver(name, [array, array])
    kinds = {*types.operands, types.result}
    if name.startswith("logical_"):
        return dtypes.bool_
    if dtype is not None:
        return dtypes.dtype_of(dtype)
    if len(kinds) > 1:
        raise TypeError(f"The resolved dtypes are not compatible with {name}.reduce. Resolved {types.operands[0]}, {types.operands[-1]}, {types.result}")
    return types.result


@method
def ufunc_reduce(function: ufunc, a: Any, axis: AxisLike, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any) -> ndarray:
    """ufunc.reduce()."""
    _binary(function, "reduce")
    array, name = ufuncs.as_array(a, out, where), function.__name__
    axes = shapes.strict_axes(None if array.ndim == 0 and axis in (0, -1) and not isinstance(axis, bool) else axis, array.ndim)
    kind = _type_of(function, array, dtype)
    op = REORDERABLE.get(name)
    if op in ("sum", "prod"):
        return (reductions.sum if op == "sum" else reductions.prod)(array, axes, dtype, out, keepdims, initial, where)
    array = array.astype(kind, copy=False)
    if op in SELECTING:
        return reductions.extreme(op, array, axes, out, keepdims, initial, where)
    if op is None:
        made = _folded(function, array, axes, keepdims, initial, where)
    else:
        neutral = function.identity
        made = reductions.reduced(op, reductions.masked(array, where, _fitting(neutral, kind)), axes, kind, keepdims)
        made = made if initial is UNSET or initial is None else function(made, full((), reductions.scalar(initial), kind, session=array._engine.session))
    return reductions.into(out, made, name)


def _fitting(value: Any, kind: DType) -> Any:
    """-1 stands for all bits."""
    return dtypes.limits(kind)[1] if value == -1 and kind.kind in "ub" else value


def _folded(function: ufunc, array: ndarray, axes: Tuple[int, ...], keepdims: bool, initial: Any, where: Any) -> ndarray:
    name = function.__name__
    if len(axes) > 1:
        raise ValueError(f"reduction operation '{name}' is not reorderable, so at most one axis may be specified")
    if where is not True:
        raise ValueError(f"reduction operation '{name}' takes no where mask: select the elements first")
    if not axes:
        return array.copy()
    at = axes[0]
    if initial is not UNSET and initial is not None:
        first = full(array._shape[:at] + (1,) + array._shape[at + 1:], reductions.scalar(initial), array._dtype, session=array._engine.session)
        array = joining.concatenate([first, array], at)
    if reductions.is_nothing(array, axes):
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    made = _fold(name, array, at, False)
    return shaping.expand_dims(made, at) if keepdims else made


def _fold(op: str, array: ndarray, axis: int, running: bool) -> ndarray:
    """By one thread for each row, from the first element to the last."""
    engine, shape = array._engine, array._shape
    with engine.lock:
        left = shape if running else shape[:axis] + shape[axis + 1:]
        return wrap(Node(engine, FOLD, array._dtype, left, op, (array._load(),), {"axis": axis, "running": running}))


@method
def ufunc_accumulate(function: ufunc, a: Any, axis: int, dtype: Any, out: Any) -> ndarray:
    """ufunc.accumulate()."""
    _binary(function, "accumulate")
    array, name = ufuncs.as_array(a, out), function.__name__
    if array.ndim == 0:
        raise TypeError("cannot accumulate on a scalar")
    at = shapes.strict_axis(axis, array.ndim)
    kind = _type_of(function, array, dtype)
    op = REORDERABLE.get(name) if name not in ("gcd", "hypot", "lcm") else None  # the first element stays as it is, also below 0
    if op in ("sum", "prod"):
        return (reductions.cumsum if op == "sum" else reductions.cumprod)(array, at, dtype, out)
    array = array.astype(kind, copy=False)
    made = _fold(name, array, at, True) if op is None else reductions.running(op, array, at, kind)
    return reductions.into(out, made, name)


@method
def ufunc_outer(function: ufunc, a: Any, b: Any, options: Dict[str, Any]) -> Any:
    """ufunc.outer()."""
    if function.nin != 2:
        raise ValueError("outer product only supported for binary functions")
    left, right = ufuncs.as_arrays((a, b), options.get("out"), options.get("where"))
    return function(left.reshape(left._shape + (1,) * right.ndim), right, **options)


@method
def ufunc_at(function: ufunc, a: ndarray, indices: Any, b: Any) -> None:
    """ufunc.at()."""
    if not isinstance(a, ndarray):
        raise TypeError("first operand must be array")
    if function.nout != 1:
        raise ValueError("Only single output ufuncs supported at this time")
    if (b is UNSET) != (function.nin == 1):
        raise ValueError("second operand needed for ufunc" if b is UNSET else "second operand provided when ufunc is unary")
    name, values = function.__name__, [a] if b is UNSET else ufuncs.operands_of([a, b])[0]
    types = function._resolver(name, values)
    if name in JOINED and types.result.kind == a._dtype.kind and (a._dtype.kind != "c" or name in ("add", "subtract")):
        _join(name, a, indices, b)
    else:
        _in_rounds(function, a, indices, b)


def _join(name: str, a: ndarray, indices: Any, b: Any) -> None:
    """With atomic operations, which there are for elements of 4 and 8 bytes: shorter ones are widened meanwhile."""
    if name == "subtract":
        name, b = "add", ufuncs.negative(ufuncs.as_array(b, a).astype(a._dtype, copy=False))
    if a._dtype.itemsize >= 4:
        indexing.join(a, indices, b, name)
        return
    kind = dtypes.float32 if a._dtype.kind == "f" else dtypes.uint32 if a._dtype.kind == "u" else dtypes.int32
    wide = a.astype(kind)
    indexing.join(wide, indices, b, name)
    a[...] = wide


def _in_rounds(function: ufunc, a: ndarray, indices: Any, b: Any) -> None:
    """First the first of each place's values, then the second ones, and so on: in NumPy's order. The number of rounds must be known."""
    places = arange(a.size, session=a._engine.session).reshape(a._shape)[indices]
    shape, places = places._shape, places.reshape(-1)
    if not places.size:
        return
    flat = a.copy().reshape(-1)
    values: List[ndarray] = [] if b is UNSET else [shaping.broadcast_to(ufuncs.as_array(b, a), shape).reshape(-1)]
    order = sorting.argsort(places)
    places = places[order]
    number = arange(places.size, session=a._engine.session)
    starts = joining.concatenate([full(1, True, session=a._engine.session), places[1:] != places[:-1]])
    round_of = number - ufuncs.maximum.accumulate(ufuncs.choose(starts, number, 0))
    for at in range(int(round_of.max()) + 1):
        chosen = indexing.flatnonzero(round_of == at)
        where = places[chosen]
        flat[where] = function(flat[where], *(one[order[chosen]] for one in values))
    a[...] = flat.reshape(a._shape)
