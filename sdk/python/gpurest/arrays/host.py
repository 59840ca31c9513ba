"""Arrays of what is on the host, and memory for new ones."""

from __future__ import annotations

import operator
from typing import Any, List, Optional, Tuple

from .._values import dtypes
from .._values.dtypes import DType
from ..errors import ArgumentError
from ._engine import shapes
from ._engine.config import config
from ._engine.expr import EMPTY, HOST, Node
from ._engine.memory import check_fits
from ._engine.unplaced import is_unplaced, place
from .current import Device, Where, current_engine, placed
from .functions import FUNCTIONS, call, method
from .ndarray import arrays_within, engine_among, hold, ndarray, wrap


def empty(shape: Any, dtype: Any = float, order: str = "C", *, session: Where = None, device: Device = None) -> ndarray:
    """Memory with whatever is in it; `order` "F": with the first dimension fastest."""
    engine, kind, extents = current_engine(placed(session, device)), dtypes.dtype_of(dtype), shapes.as_shape(shape)
    check_fits(engine.session, extents, kind)
    made = wrap(Node(engine, EMPTY, kind, extents[::-1] if order == "F" else extents))
    return made.transpose() if order == "F" else made


@method
def asarray(a: Any, dtype: Any = None, order: Optional[str] = None, *, session: Where = None, device: Device = None, copy: Optional[bool] = None,
            progress: Any = None) -> ndarray:
    """An array of what `a` holds: an array of ours (as it is, or converted), a NumPy array, numbers in nested lists, or anything with the
    buffer protocol. The bytes are taken now and sent with the next request; more than config.inline_bytes_max of them are sent at once,
    with a progress bar where `progress` asks for one.

    `device`: in the default client's session on that device, given by its place in the service's list (1) or its id ("cuda:1"); an array of ours
    that is on another one is copied there, through the host. None: on the device that gpurest.cuda.set_device() chose. `order`: the layout in
    memory; `copy`: always, or (False) never. A list of arrays of ours is stacked."""
    made = _made(a, dtype, placed(session, device), device, progress)
    if copy is False and made is not a:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if copy and made is a:
        made = made.copy()
    return made if order in (None, "K", "A") else call("in_order", made, order)


def _made(a: Any, dtype: Any, where: Where, device: Device, progress: Any) -> ndarray:
    if isinstance(a, (list, tuple)) and arrays_within(a):
        engine = engine_among(a) if where is None else None
        parts = where if engine is None else engine.session
        a = FUNCTIONS["stack"]([_made(one, None, parts, device, progress) if isinstance(one, (list, tuple)) else one for one in a])
    if isinstance(a, ndarray):
        if where is not None and is_unplaced(a._engine):
            place(a._storage, current_engine(where))
        if where is None or a._engine is current_engine(where):
            return a if dtype is None else a.astype(dtype, copy=False)
        if device is None:
            raise ArgumentError(f"the array is in {a.session._place()}, not in {where._place()}: copy it through the host")
        made = from_bytes(a._bytes(progress), a._dtype, a._shape, session=where, progress=progress)
    else:
        data, kind, shape = _host_bytes(a, None if dtype is None else dtypes.dtype_of(dtype))
        made = from_bytes(data, kind, shape, session=where, progress=progress)
    return made if dtype is None else made.astype(dtype, copy=False)


@method
def unpickled(data: Any, dtype: str, shape: Tuple[int, ...]) -> ndarray:
    """What pickle makes of an array: one in the default session of this process."""
    return from_bytes(memoryview(data), dtypes.dtype_of(dtype), shape)


def array(a: Any, dtype: Any = None, copy: Optional[bool] = True, order: str = "K", ndmin: int = 0, *, session: Where = None,
          device: Device = None) -> ndarray:
    """As asarray(); an array of ours is copied, unless `copy` says otherwise. `ndmin`: so many dimensions at least, the new ones in front."""
    made = asarray(a, dtype, order, session=session, device=device, copy=copy if copy is not False or isinstance(a, ndarray) else None)
    ndmin = operator.index(ndmin)
    return made.reshape((1,) * (ndmin - made.ndim) + made._shape) if made.ndim < ndmin else made


def asnumpy(a: Any) -> Any:
    """On the host: x.get() of our arrays; everything else through NumPy."""
    return a.get() if isinstance(a, ndarray) else dtypes.numpy.asarray(a)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0, *, session: Where = None, device: Device = None) -> ndarray:
    """Bytes from `offset` on as a 1-d array of all or `count` elements."""
    data = memoryview(buffer).cast("B")
    kind = dtypes.dtype_of(dtype)
    if not 0 <= offset <= len(data):
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({len(data)})")
    count = operator.index(count)
    if count >= 0 and offset + count * kind.itemsize > len(data):
        raise ValueError("buffer is smaller than requested size")
    data = data[offset:] if count < 0 else data[offset:offset + count * kind.itemsize]
    if len(data) % kind.itemsize:
        raise ValueError("buffer size must be a multiple of element size")
    return from_bytes(data, kind, (len(data) // kind.itemsize,), session=placed(session, device))


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
    if isinstance(a, (list, tuple, bool, int, float, complex)):
        return _from_lists(a, wanted)
    view = memoryview(a)
    if not view.c_contiguous:
        raise ArgumentError("the buffer is not in C order")
    kind = dtypes.dtype_of(view.format.lstrip("@<="))
    return (view.cast("B") if view.nbytes else memoryview(b"")), kind, tuple(view.shape or ())


def _from_lists(a: Any, wanted: Optional[DType]) -> Tuple[memoryview, DType, shapes.Shape]:
    flat: List[Any] = []
    shape = _shape_of(a)
    _flatten(a, shape, flat)
    kind = wanted
    if kind is None:
        kind = dtypes.promote_all(tuple({dtypes.of_scalar(one) for one in flat})) if flat else dtypes.float64
    values = [dtypes.checked(one, kind) for one in flat]
    return memoryview(dtypes.packed(values, kind)), kind, shape


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
        if not isinstance(a, (bool, int, float, complex)):
            raise ValueError("nested lists of numbers must be of one shape")
        out.append(a)
        return
    if not isinstance(a, (list, tuple)) or len(a) != shape[0]:
        raise ValueError("nested lists of numbers must be of one shape")
    for one in a:
        _flatten(one, shape[1:], out)
