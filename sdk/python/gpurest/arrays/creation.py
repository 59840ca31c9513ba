"""Arrays of numbers that the device makes. `device`: as in asarray()."""

from __future__ import annotations

import math
import operator
from typing import Any, Optional, Tuple

from .._values import dtypes
from .._values.dtypes import DType
from . import shaping, ufuncs
from ._engine import shapes
from ._engine.engine import Engine
from ._engine.expr import ELEMENTWISE, Const, Input, Node
from ._engine.memory import check_fits
from .current import Device, Where, current_engine, placed
from .functions import method
from .host import asarray, empty
from .ndarray import engine_among, ndarray, wrap


def _filled(engine: Engine, shape: shapes.Shape, dtype: DType, op: str, inputs: Tuple[Input, ...]) -> ndarray:
    types = tuple(one.dtype for one in inputs)
    check_fits(engine.session, shape, dtype)
    return wrap(Node(engine, ELEMENTWISE, dtype, shape, op, inputs, {"types": types, "operand": dtype}))


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, session: Where = None, device: Device = None) -> ndarray:
    """Every element `fill_value`: a number, or an array that is broadcast."""
    if order == "F":
        return shaping.in_order(full(shape, fill_value, dtype, session=session, device=device), "F")
    if isinstance(fill_value, (ndarray, list, tuple)) or getattr(fill_value, "shape", ()) != ():
        source = asarray(fill_value, session=session, device=device)
        kind = source._dtype if dtype is None else dtypes.dtype_of(dtype)
        return shaping.broadcast_to(source, shape).astype(kind)
    value = fill_value.item() if hasattr(fill_value, "item") else fill_value
    if dtype is None:
        dtype = fill_value.dtype if hasattr(fill_value, "dtype") else dtypes.of_scalar(value)
    kind = dtypes.dtype_of(dtype)
    if isinstance(value, complex) and kind.kind not in "bc":
        ufuncs.warn_if_discarding(dtypes.complex128, kind)
        value = value.real
    return _filled(current_engine(placed(session, device)), shapes.as_shape(shape), kind, "identity", (Const(dtypes.checked(value, kind), kind),))


def zeros(shape: Any, dtype: Any = float, order: str = "C", *, session: Where = None, device: Device = None) -> ndarray:
    """Every element 0."""
    return full(shape, 0, float if dtype is None else dtype, order, session=session, device=device)


def ones(shape: Any, dtype: Any = float, order: str = "C", *, session: Where = None, device: Device = None) -> ndarray:
    """Every element 1."""
    return full(shape, 1, float if dtype is None else dtype, order, session=session, device=device)


def _like(a: Any, dtype: Any, order: str, shape: Any, device: Device, *beside: Any) -> Tuple[Any, DType, str, Where]:
    """`order` "K" and "A": that of the array, as far as it is C or F."""
    array = ufuncs.as_array(a, *beside)
    fortran = shaping.checked_order(order) == "F" or (order in ("K", "A") and not array._contiguous and shaping.is_fortran(array))
    return ((array._shape if shape is None else shape), (array._dtype if dtype is None else dtypes.dtype_of(dtype)), "F" if fortran else "C",
            array._engine.session if device is None or device == array.device else placed(None, device))


def empty_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Device = None) -> ndarray:
    """Memory with whatever is in it, of the shape and type of `a` where none is given, and on its device."""
    extents, kind, layout, session = _like(a, dtype, order, shape, device)
    return empty(extents, kind, layout, session=session)


@method
def zeros_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Device = None) -> ndarray:
    """Every element 0, of the shape and type of `a` where none is given, and on its device."""
    extents, kind, layout, session = _like(a, dtype, order, shape, device)
    return full(extents, 0, kind, layout, session=session)


def ones_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Device = None) -> ndarray:
    """Every element 1, of the shape and type of `a` where none is given, and on its device."""
    extents, kind, layout, session = _like(a, dtype, order, shape, device)
    return full(extents, 1, kind, layout, session=session)


def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Device = None) -> ndarray:
    """Every element `fill_value`, of the shape and type of `a` where none is given, and on its device."""
    extents, kind, layout, session = _like(a, dtype, order, shape, device, fill_value)
    return full(extents, fill_value, kind, layout, session=session)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, session: Where = None, device: Device = None) -> ndarray:
    """start, start + step, … below stop; with one argument from 0 up to it."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange: step is 0")
    length = (stop - start) / step
    imaginary = isinstance(length, complex)
    count = max(0, math.ceil(min(length.real, length.imag) if imaginary else length))
    whole = all(isinstance(one, int) for one in (start, stop, step))
    if dtype is None:
        kind = dtypes.int64 if whole else dtypes.complex128 if imaginary else dtypes.float64
    else:
        kind = dtypes.dtype_of(dtype)
    if kind.kind == "b":
        raise TypeError("arange has no booleans")
    if whole:
        count = max(0, -((start - stop) // step))
    work = dtypes.float32 if kind.name == "float16" else kind
    first, second = dtypes.checked(start, work), start + step
    delta = second - start if kind.kind in "fc" else int(second) - int(start)
    if kind.kind == "u":
        delta %= 1 << kind.bits
    inputs = (Const(first, work), Const(dtypes.checked(delta, work), work))
    made = _filled(current_engine(placed(session, device)), (count,), work, "arange", inputs)
    return made.astype(kind, copy=False)


def _wide(array: ndarray) -> ndarray:
    return array.astype("c16" if array._dtype.kind == "c" else "f8")


def _number(value: Any) -> Any:
    """As a Python number with decimals."""
    return complex(value) if isinstance(value, complex) or getattr(getattr(value, "dtype", None), "kind", "") == "c" else float(value)


def _of_ends(session: Where, device: Device, *ends: Any) -> Where:
    """Where none is named, the session of the arrays among the ends."""
    engine = engine_among(ends) if session is None and device is None else None
    return session if engine is None else engine.session


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0, *,
             session: Where = None, device: Device = None) -> Any:
    """`num` numbers at equal distances from start to stop; without `endpoint` stop itself is left out. Of arrays, along the new dimension `axis`.
    `retstep`: the distance, too."""
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    parts = num - 1 if endpoint else num
    session = _of_ends(session, device, start, stop)
    ends = [asarray(one, session=session, device=device) if isinstance(one, (ndarray, list, tuple)) or getattr(one, "shape", ()) != () else one
            for one in (start, stop)]
    kind, whole = ufuncs.common([ufuncs.operand(one) for one in ends]), any(isinstance(one, ndarray) for one in ends)
    first: Any
    last: Any
    first, last = [_wide(asarray(one, session=session, device=device)) for one in ends] if whole else [_number(one) for one in ends]
    place = arange(num, dtype="f8", session=session, device=device)
    step = (last - first) / parts if parts > 0 else (math.nan if not endpoint or num == 1 else last - first)
    if whole:
        place = place.reshape((num,) + (1,) * len(shapes.broadcast_shapes(first._shape, last._shape)))
    values = place * (step if parts > 0 else last - first) + first
    if endpoint and num > 1:
        values = ufuncs.where(place == float(num - 1), last, values)
    if whole:
        values = shaping.moveaxis(values, 0, axis)
    if dtype is not None:
        kind = dtypes.dtype_of(dtype)
        values = (ufuncs.floor(values) if kind.kind in "iu" else values).astype(kind)
    elif kind.kind in "fc":
        values = values.astype(kind, copy=False)
    return (values, step) if retstep else values


def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0) -> ndarray:
    """`base` to the powers that linspace() gives."""
    made = ufuncs.power(base, linspace(start, stop, num, endpoint, axis=axis, session=_of_ends(None, None, start, stop, base)))
    return made if dtype is None else made.astype(dtype)


def eye(N: int, M: Optional[int] = None, k: int = 0, dtype: Any = float, order: str = "C", *, session: Where = None, device: Device = None) -> ndarray:
    """Ones on the k-th diagonal, zeros elsewhere."""
    rows, columns = shapes.as_index(N), shapes.as_index(N if M is None else M)
    inputs = (Const(max(columns, 1), dtypes.uint64), Const(operator.index(k), dtypes.int64))
    made = _filled(current_engine(placed(session, device)), (rows, columns), dtypes.bool_, "eye", inputs)
    return made.astype(dtype, order="K" if order == "C" else order)


def identity(n: int, dtype: Any = float, *, session: Where = None, device: Device = None) -> ndarray:
    """A square matrix with ones on its diagonal."""
    return eye(n, dtype=dtype, session=session, device=device)


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Tuple[ndarray, ...]:
    """Each axis stretched over the grid of all; without `copy` views with stride 0, with `sparse` not stretched at all."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    arrays = [axis.reshape(-1) for axis in ufuncs.as_arrays(xi)]
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
        line = array.reshape(own)
        grid = line if sparse else shaping.broadcast_to(line, shape)
        grids.append(grid.copy() if copy else grid)
    return tuple(grids)


def tri(N: int, M: Optional[int] = None, k: int = 0, dtype: Any = float, *, session: Where = None, device: Device = None) -> ndarray:
    """Ones on and below the k-th diagonal, zeros above."""
    rows, columns = (arange(int(extent), session=session, device=device) for extent in (N, N if M is None else M))
    return (columns <= rows.reshape(-1, 1) + int(k)).astype(dtype)


def _tri(a: Any, k: int, upper: bool) -> ndarray:
    array = asarray(a)
    array = shaping.broadcast_to(array, array._shape * 2) if array.ndim == 1 else array
    if array.ndim < 2:
        raise ValueError("a triangle of an array without dimensions is not there")
    rows, columns = array._shape[-2:]
    row = arange(rows, session=array._engine.session).reshape(rows, 1)
    column = arange(columns, session=array._engine.session)
    return ufuncs.where(column - row >= k if upper else column - row <= k, array, dtypes.checked(0, array._dtype))


def tril(a: Any, k: int = 0) -> ndarray:
    """Zeros above the k-th diagonal."""
    return _tri(a, k, False)


def triu(a: Any, k: int = 0) -> ndarray:
    """Zeros below the k-th diagonal."""
    return _tri(a, k, True)
