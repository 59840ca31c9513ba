"""Arrays of numbers that the device makes. `device`: as in asarray()."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Tuple

from .._values import dtypes
from .._values.dtypes import DType
from . import shaping, ufuncs
from ._engine import shapes
from ._engine.engine import Engine
from ._engine.expr import ELEMENTWISE, Const, Input, Node
from ._engine.memory import check_fits
from .current import Device, Where, current_engine, placed
from .host import asarray, empty
from .ndarray import ndarray, wrap


def _filled(engine: Engine, shape: shapes.Shape, dtype: DType, op: str, inputs: Tuple[Input, ...]) -> ndarray:
    types = tuple(one.dtype for one in inputs)
    check_fits(engine.session, shape, dtype)
    return wrap(Node(engine, ELEMENTWISE, dtype, shape, op, inputs, {"types": types, "operand": dtype}))


def full(shape: Any, fill_value: Any, dtype: Any = None, *, session: Where = None, device: Device = None) -> ndarray:
    if isinstance(fill_value, ndarray):
        kind = fill_value._dtype if dtype is None else dtypes.dtype_of(dtype)
        return shaping.broadcast_to(asarray(fill_value, session=session, device=device), shape).astype(kind)
    value = fill_value.item() if hasattr(fill_value, "item") else fill_value
    if dtype is None:
        dtype = fill_value.dtype if hasattr(fill_value, "dtype") else dtypes.of_scalar(value)
    kind = dtypes.dtype_of(dtype)
    return _filled(current_engine(placed(session, device)), shapes.as_shape(shape), kind, "identity", (Const(dtypes.checked(value, kind), kind),))


def zeros(shape: Any, dtype: Any = float, *, session: Where = None, device: Device = None) -> ndarray:
    return full(shape, 0, dtype, session=session, device=device)


def ones(shape: Any, dtype: Any = float, *, session: Where = None, device: Device = None) -> ndarray:
    return full(shape, 1, dtype, session=session, device=device)


def _like(a: Any, dtype: Any, shape: Any) -> Tuple[Any, DType, Where]:
    array = asarray(a)
    return (array._shape if shape is None else shape), (array._dtype if dtype is None else dtypes.dtype_of(dtype)), array.session


def empty_like(a: Any, dtype: Any = None, shape: Any = None) -> ndarray:
    extents, kind, session = _like(a, dtype, shape)
    return empty(extents, kind, session=session)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None) -> ndarray:
    extents, kind, session = _like(a, dtype, shape)
    return full(extents, 0, kind, session=session)


def ones_like(a: Any, dtype: Any = None, shape: Any = None) -> ndarray:
    extents, kind, session = _like(a, dtype, shape)
    return full(extents, 1, kind, session=session)


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> ndarray:
    extents, kind, session = _like(a, dtype, shape)
    return full(extents, fill_value, kind, session=session)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, session: Where = None, device: Device = None) -> ndarray:
    """start, start + step, … below stop; with one argument from 0 up to it."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange: step is 0")
    count = max(0, math.ceil((stop - start) / step))
    whole = all(isinstance(one, int) for one in (start, stop, step))
    if dtype is None:
        kind = dtypes.int64 if whole else dtypes.float64
    else:
        kind = dtypes.dtype_of(dtype)
    if kind.kind == "b":
        raise TypeError("arange has no booleans")
    if whole:
        count = max(0, -((start - stop) // step))
    work = dtypes.float32 if kind.name == "float16" else kind
    first, second = dtypes.checked(start, work), start + step
    delta = second - start if kind.kind == "f" else int(second) - int(start)
    if kind.kind == "u":
        delta %= 1 << kind.bits
    inputs = (Const(first, work), Const(dtypes.checked(delta, work), work))
    made = _filled(current_engine(placed(session, device)), (count,), work, "arange", inputs)
    return made.astype(kind, copy=False)


def linspace(start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = None, *, session: Where = None, device: Device = None) -> ndarray:
    """`num` numbers at equal distances from start to stop; without `endpoint` stop itself is left out."""
    if num < 0:
        raise ValueError(f"number of samples, {num}, must be non-negative")
    parts = num - 1 if endpoint else num
    place = arange(num, dtype="f8", session=session, device=device)
    step = (stop - start) / parts if parts > 0 else 0.0
    values = place * float(step) + float(start)
    if endpoint and num > 1:
        values = ufuncs.where(place == float(num - 1), float(stop), values)
    if dtype is None:
        return values
    kind = dtypes.dtype_of(dtype)
    if kind.kind in "iu":
        values = ufuncs.floor(values)
    return values.astype(kind)


def eye(N: int, M: Optional[int] = None, k: int = 0, dtype: Any = float, *, session: Where = None, device: Device = None) -> ndarray:
    """Ones on the k-th diagonal, zeros elsewhere."""
    rows, columns = int(N), int(N if M is None else M)
    inputs = (Const(max(columns, 1), dtypes.uint64), Const(int(k), dtypes.int64))
    made = _filled(current_engine(placed(session, device)), (rows, columns), dtypes.bool_, "eye", inputs)
    return made.astype(dtype)


def identity(n: int, dtype: Any = float, *, session: Where = None, device: Device = None) -> ndarray:
    return eye(n, dtype=dtype, session=session, device=device)


def meshgrid(*axes: Any, indexing: str = "xy") -> List[ndarray]:
    """Each axis stretched over the grid of all; views with stride 0."""
    if indexing not in ("xy", "ij"):
        raise ValueError("indexing is 'xy' or 'ij'")
    arrays = [asarray(axis).reshape(-1) for axis in axes]
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[0], order[1] = 1, 0
    shape = [0] * len(arrays)
    for at, array in enumerate(arrays):
        shape[order[at]] = array.size
    grids = []
    for at, array in enumerate(arrays):
        own = [1] * len(arrays)
        own[order[at]] = array.size
        grids.append(shaping.broadcast_to(array.reshape(own), shape))
    return grids


def _tri(a: Any, k: int, upper: bool) -> ndarray:
    array = asarray(a)
    rows, columns = array._shape[-2:]
    row = arange(rows, session=array.session).reshape(rows, 1)
    column = arange(columns, session=array.session)
    return ufuncs.where(column - row >= k if upper else column - row <= k, array, dtypes.checked(0, array._dtype))


def tril(a: Any, k: int = 0) -> ndarray:
    """Zeros above the k-th diagonal."""
    return _tri(a, k, False)


def triu(a: Any, k: int = 0) -> ndarray:
    """Zeros below the k-th diagonal."""
    return _tri(a, k, True)
