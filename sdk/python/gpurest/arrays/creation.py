"""Arrays from nothing and from the host."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Tuple

from .._values import dtypes
from .._values.dtypes import DType
from ..errors import ArgumentError
from ._engine import shapes
from ._engine.config import config
from ._engine.engine import Engine
from ._engine.expr import ELEMENTWISE, EMPTY, HOST, Const, Input, Node
from .current import Where, current_engine
from .ndarray import hold, ndarray, wrap


def _filled(engine: Engine, shape: shapes.Shape, dtype: DType, op: str, inputs: Tuple[Input, ...]) -> ndarray:
    types = tuple(one.dtype for one in inputs)
    return wrap(Node(engine, ELEMENTWISE, dtype, shape, op, inputs, {"types": types, "operand": dtype}))


def empty(shape: Any, dtype: Any = float, *, session: Where = None) -> ndarray:
    """Memory with whatever is in it."""
    return wrap(Node(current_engine(session), EMPTY, dtypes.dtype_of(dtype), shapes.as_shape(shape)))


def full(shape: Any, fill_value: Any, dtype: Any = None, *, session: Where = None) -> ndarray:
    if isinstance(fill_value, ndarray):
        from . import shaping

        kind = fill_value._dtype if dtype is None else dtypes.dtype_of(dtype)
        return shaping.broadcast_to(fill_value, shape).astype(kind)
    value = fill_value.item() if hasattr(fill_value, "item") else fill_value
    if dtype is None:
        dtype = fill_value.dtype if hasattr(fill_value, "dtype") else dtypes.of_scalar(value)
    kind = dtypes.dtype_of(dtype)
    return _filled(current_engine(session), shapes.as_shape(shape), kind, "identity", (Const(dtypes.checked(value, kind), kind),))


def zeros(shape: Any, dtype: Any = float, *, session: Where = None) -> ndarray:
    return full(shape, 0, dtype, session=session)


def ones(shape: Any, dtype: Any = float, *, session: Where = None) -> ndarray:
    return full(shape, 1, dtype, session=session)


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


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, session: Where = None) -> ndarray:
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
    made = _filled(current_engine(session), (count,), work, "arange", inputs)
    return made.astype(kind, copy=False)


def linspace(start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = None, *, session: Where = None) -> ndarray:
    """`num` numbers at equal distances from start to stop; without `endpoint` stop itself is left out."""
    if num < 0:
        raise ValueError(f"number of samples, {num}, must be non-negative")
    parts = num - 1 if endpoint else num
    place = arange(num, dtype="f8", session=session)
    step = (stop - start) / parts if parts > 0 else 0.0
    values = place * float(step) + float(start)
    if endpoint and num > 1:
        from . import ufuncs

        values = ufuncs.where(place == float(num - 1), float(stop), values)
    if dtype is None:
        return values
    kind = dtypes.dtype_of(dtype)
    if kind.kind in "iu":
        from . import ufuncs

        values = ufuncs.floor(values)
    return values.astype(kind)


def eye(N: int, M: Optional[int] = None, k: int = 0, dtype: Any = float, *, session: Where = None) -> ndarray:
    """Ones on the k-th diagonal, zeros elsewhere."""
    rows, columns = int(N), int(N if M is None else M)
    inputs = (Const(max(columns, 1), dtypes.uint64), Const(int(k), dtypes.int64))
    made = _filled(current_engine(session), (rows, columns), dtypes.bool_, "eye", inputs)
    return made.astype(dtype)


def identity(n: int, dtype: Any = float, *, session: Where = None) -> ndarray:
    return eye(n, dtype=dtype, session=session)


def meshgrid(*axes: Any, indexing: str = "xy") -> List[ndarray]:
    """Each axis stretched over the grid of all; views with stride 0."""
    from . import shaping

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
    from . import ufuncs

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


# ---- from the host ----


def asarray(a: Any, dtype: Any = None, *, session: Where = None, progress: Any = None) -> ndarray:
    """An array of what `a` holds: an array of ours (as it is, or converted), a NumPy array, numbers in nested lists, or anything with the
    buffer protocol. The bytes are taken now and sent with the next request; more than config.inline_bytes_max of them are sent at once,
    with a progress bar where `progress` asks for one."""
    if isinstance(a, ndarray):
        if session is not None and a._engine is not current_engine(session):
            raise ArgumentError(f"the array belongs to session {a.session.id}, not to {session.id}: copy it through the host")
        return a if dtype is None else a.astype(dtype, copy=False)
    data, kind, shape = _host_bytes(a, None if dtype is None else dtypes.dtype_of(dtype))
    made = from_bytes(data, kind, shape, session=session, progress=progress)
    return made if dtype is None else made.astype(dtype, copy=False)


def array(a: Any, dtype: Any = None, copy: bool = True, *, session: Where = None) -> ndarray:
    if isinstance(a, ndarray) and copy:
        return a.astype(a._dtype if dtype is None else dtype)
    return asarray(a, dtype, session=session)


def asnumpy(a: Any) -> Any:
    """On the host: x.get() of our arrays; everything else through NumPy."""
    return a.get() if isinstance(a, ndarray) else dtypes.numpy.asarray(a)


def frombuffer(buffer: Any, dtype: Any = float, *, session: Where = None) -> ndarray:
    """Bytes as a 1-d array."""
    data = memoryview(buffer).cast("B")
    kind = dtypes.dtype_of(dtype)
    if len(data) % kind.itemsize:
        raise ValueError("buffer size must be a multiple of element size")
    return from_bytes(data, kind, (len(data) // kind.itemsize,), session=session)


def from_bytes(data: memoryview, dtype: DType, shape: shapes.Shape, *, session: Where = None, progress: Any = None) -> ndarray:
    """Queues an upload, or sends one that is too long for that right away."""
    engine = current_engine(session)
    if data.nbytes > config.inline_bytes_max:
        return hold(engine.upload(data, dtype, shape, progress))
    return wrap(Node(engine, HOST, dtype, shape, params={"data": bytes(data)}))


def _host_bytes(a: Any, wanted: Optional[DType]) -> Tuple[memoryview, DType, shapes.Shape]:
    numpy = dtypes.numpy
    if numpy is not None and not isinstance(a, (bytes, bytearray, memoryview)):
        if wanted is None or hasattr(a, "dtype"):
            found = numpy.asarray(a)
        else:
            found = numpy.asarray(a, dtype=wanted.name)
        if not found.dtype.isnative:
            found = found.astype(found.dtype.newbyteorder("="))
        kind = dtypes.dtype_of(found.dtype)
        return memoryview(numpy.ascontiguousarray(found)).cast("B") if found.size else memoryview(b""), kind, tuple(found.shape)
    if isinstance(a, complex):
        dtypes.refuse(complex)
    if isinstance(a, (list, tuple, bool, int, float)):
        return _from_lists(a, wanted)
    view = memoryview(a)
    if not view.c_contiguous:
        raise ArgumentError("the buffer is not in C order")
    kind = dtypes.dtype_of(view.format.lstrip("@<="))
    return (view.cast("B") if view.nbytes else memoryview(b"")), kind, tuple(view.shape or ())


def _from_lists(a: Any, wanted: Optional[DType]) -> Tuple[memoryview, DType, shapes.Shape]:
    import struct

    flat: List[Any] = []
    shape = _shape_of(a)
    _flatten(a, shape, flat)
    kind = wanted
    if kind is None:
        kind = dtypes.promote_all(tuple({dtypes.of_scalar(one) for one in flat})) if flat else dtypes.float64
    values = [dtypes.checked(one, kind) for one in flat]
    return memoryview(struct.pack(f"<{len(values)}{kind.char}", *values)), kind, shape


def _shape_of(a: Any) -> shapes.Shape:
    shape = []
    while isinstance(a, (list, tuple)):
        shape.append(len(a))
        if not a:
            break
        a = a[0]
    return tuple(shape)


def _flatten(a: Any, shape: shapes.Shape, out: List[Any]) -> None:
    if not shape:
        if isinstance(a, complex):
            dtypes.refuse(complex)
        if not isinstance(a, (bool, int, float)):
            raise ValueError("nested lists of numbers must be of one shape")
        out.append(a)
        return
    if not isinstance(a, (list, tuple)) or len(a) != shape[0]:
        raise ValueError("nested lists of numbers must be of one shape")
    for one in a:
        _flatten(one, shape[1:], out)
