"""The array: a view of a value that is on the device, or will be there when somebody asks for it."""

from __future__ import annotations

from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union, cast, overload

from .._session.default import waited_session
from .._session.handle import apart
from .._session.stream import Stream
from .._values import dtypes
from .._values.dtypes import DType
from ..errors import ArgumentError, StridesError
from ._engine import shapes
from ._engine.engine import Engine, engine_of, unpack
from ._engine.explain import explain
from ._engine.expr import Load, Node, Storage
from ._engine.unplaced import is_unplaced, place
from .casting import check as check_cast
from .functions import FUNCTIONS, call
from .members import UNSET as UNSET, ArrayType, AxisLike as AxisLike, Members
from .operators import Operators
from .place import DeviceName

if TYPE_CHECKING:
    from .._session.buffer import Buffer
    from .._session.session import Session
    from .._session.session_state import SessionState

Out = TypeVar("Out")
ITERATED_MAX = 64  # numbers that a loop may go over


class Explanation(str):
    """Text that an interactive session shows as it is."""

    def __repr__(self) -> str:
        return str(self)


class ndarray(Operators, Members, metaclass=ArrayType):
    """An array on the device with NumPy's semantics. Operations only queue work; what asks for values (get, item, float, printing, bool)
    sends everything queued in the session as one request.

    Views share memory with their array, as in NumPy. Thread-safe for reading; who writes elements while others use them orders that.
    When a queued operation fails, every later use of the arrays that it should have made raises that one failure."""

    __slots__ = ("_storage", "_shape", "_strides", "_offset", "_dtype", "__weakref__")
    __array_priority__ = 200

    def __init__(self, storage: Storage, dtype: DType, shape: shapes.Shape, strides: shapes.Strides, offset: int = 0) -> None:
        self._storage = storage
        self._dtype = dtype
        self._shape = shape
        self._strides = strides  # in elements
        self._offset = offset  # in elements

    # ---- what it is ----

    @property
    def shape(self) -> shapes.Shape:
        """The extents of its dimensions, in elements."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """numpy.dtype where NumPy is installed, else an object with the same name, kind and itemsize."""
        return dtypes.public(self._dtype)

    @property
    def dtype_str(self) -> str:
        """As in NumPy's array interface: "<f4"."""
        return self._dtype.str

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return shapes.size_of(self._shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self._dtype.itemsize

    @property
    def strides(self) -> Tuple[int, ...]:
        """Bytes from one element to the next, per dimension."""
        return tuple(stride * self._dtype.itemsize for stride in self._strides)

    @property
    def session(self) -> "Session":
        """The session whose device memory it is in."""
        return self._placed().session

    def _placed(self) -> Engine:
        """The engine of its session; one that is in none yet comes into the default session."""
        if is_unplaced(self._engine):
            place(self._storage, engine_of(waited_session()))
        return self._engine

    @property
    def device(self) -> Any:
        """The device as the service names it, such as "cuda:0"; what is text there has the members of gpurest.cuda.Device, too."""
        return DeviceName(self.session)

    @property
    def _engine(self) -> Engine:
        return self._storage.node.engine

    @property
    def _contiguous(self) -> bool:
        return shapes.is_contiguous(self._shape, self._strides)

    def _load(self) -> Load:
        return tuple.__new__(Load, (self._storage.node, self._dtype, self._shape, self._strides, self._offset, False))  # as Load(…), in half the time

    def _view(self, shape: shapes.Shape, strides: shapes.Strides, offset: int) -> "ndarray":
        return ndarray(self._storage, self._dtype, shape, strides, 0 if 0 in shape else offset)  # nothing may lie behind the buffer's end

    # ---- the device's memory ----

    def _flush(self) -> None:
        """Has the array's value in device memory; raises what became of it."""
        self._placed().flush()
        self._engine.check(self._storage.node)

    @property
    def buffer(self) -> "Buffer":
        """The buffer that holds the array, and whatever shares its memory, after a flush. From then on changes of the array happen in it."""
        engine = self._placed()
        with engine.lock:
            self._flush()
            memory = self._storage.node.memory
            assert memory is not None
            self._storage.exported = True
            return memory.export(engine.session)

    @property
    def id(self) -> str:
        """The buffer's id on the server."""
        return self.buffer.id

    @property
    def offset_bytes(self) -> int:
        """Of the first element in `buffer`."""
        return self._offset * self._dtype.itemsize

    def __gpurest_buffer__(self) -> Tuple["Buffer", int]:
        """For kernels' arguments: they see C order or nothing."""
        if not self._contiguous:
            raise StridesError(f"an array of shape {self._shape} with strides {self.strides} is not in C order: pass x.copy()")
        return self.buffer, self.offset_bytes

    def _as_argument(self, session: Optional["SessionState"]) -> Optional[str]:
        """See Buffer._as_argument()."""
        node = self._storage.node
        engine, memory = node.engine, node.memory
        if memory is not None and memory._buffer is not None and self._storage.exported and not (engine.pending or engine.dead) and self._contiguous:
            return memory._buffer._as_argument(session, self._offset * self._dtype.itemsize)  # nearly always: nothing is to be flushed before
        if self._placed().session is not session or not self._contiguous:
            return None
        return self.buffer._as_argument(session, self._offset * self._dtype.itemsize)

    # ---- to the host ----

    @overload
    def get(self, out: None = None, stream: Any = None, progress: Any = None, *, order: str = "C", blocking: bool = True) -> Any: ...

    @overload
    def get(self, out: Out, stream: Any = None, progress: Any = None, *, order: str = "C", blocking: bool = True) -> Out: ...

    def get(self, out: Any = None, stream: Any = None, progress: Any = None, *, order: str = "C", blocking: bool = True) -> Any:
        """The elements on the host: a NumPy array, or without NumPy nested lists. `out`: a writable C-ordered buffer of as many bytes,
        which is filled and returned. `stream`: work on it has ended before the elements are read. `progress`: as in Buffer.get(). `order`: that of the
        NumPy array. `blocking` means nothing: the elements are there when it returns."""
        if stream is not None:
            self.session.sync(stream if isinstance(stream, Stream) else None)
        data = self._bytes(progress)
        if out is not None:
            return _filled(self, out, data)
        made = _on_host(self, data)
        return made if order != "F" and (order != "A" or not self.flags.f_contiguous) or dtypes.numpy is None else dtypes.numpy.asfortranarray(made)

    async def aget(self, out: Any = None) -> Any:
        """get() for coroutines: the request is made by a thread of the event loop's executor."""
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(None, self.get, out)

    def _bytes(self, progress: Any = None) -> memoryview:
        """All elements in C order."""
        source = self if not self._shape or self._contiguous else self.copy()
        return source._storage.node.engine.fetch([source._load()], progress)[0]

    def tobytes(self, order: str = "C") -> bytes:
        """The elements' bytes on the host, in C order or with `order` "F" in that."""
        return bytes((self.transpose() if order == "F" else self)._bytes())

    def tolist(self) -> Any:
        """Nested lists of Python numbers, or one number."""
        return unpack(self._load(), self._bytes())

    def item(self, *index: int) -> Any:
        """One element as a Python number: bool, int, float or complex, by the element type."""
        if index:
            key = shapes.as_index(index[0]) if len(index) == 1 and not isinstance(index[0], tuple) else index[0] if len(index) == 1 else index
            source = self.ravel() if len(index) == 1 and self.ndim != 1 else self
            return source[key].item()
        return self._number()

    def _number(self) -> Any:
        """The one element that it has."""
        if self._shape and self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        load = self._load()  # of one element, so it is in order
        number = self._dtype.number.unpack(load.node.engine.fetch((load,))[0])  # the node's: the array may have come into a session since
        return number[0] if len(number) == 1 else complex(*number)

    def set(self, data: Any, stream: Any = None) -> None:
        """Fills the array with elements of the host of the same shape. They are taken at once; `stream` means nothing."""
        source = FUNCTIONS["asarray"](data, session=self.session)
        if source._shape != self._shape:
            raise ValueError(f"data of shape {source._shape} for an array of shape {self._shape}")
        self[...] = source

    def explain(self) -> Explanation:
        """What a flush would do now: kernels with the lines of the program that they come from, uploads, memory."""

        return Explanation(explain(self._placed(), self._storage))

    # ---- protocols ----

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed: it would move the data off the device; use x.get()")

    def __dlpack_device__(self) -> Tuple[int, int]:
        return 12, 0  # kDLExtDev: no pointer of this process

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Optional[bool] = None) -> Any:
        """A copy on the host, if that is what is asked for: numpy.from_dlpack(x, device="cpu", copy=True)."""
        if not copy or dl_device is None or tuple(dl_device) != (1, 0):
            raise BufferError("the array is on another machine's device: only a copy to the CPU can be exported "
                              '(device="cpu", copy=True), or use x.get()')
        if dtypes.numpy is None:
            raise BufferError("exporting a copy needs NumPy")
        return self.get().__dlpack__(max_version=max_version)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return FUNCTIONS["array_ufunc"](ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return FUNCTIONS["array_function"](function, args, kwargs)

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of unsized object")
        return self._shape[0]

    def __iter__(self) -> Iterator[Any]:
        """Over the first dimension: a view of each part, which sends nothing. More than a few numbers are refused, since each would be a request."""
        if not self._shape:
            raise TypeError("iteration over a 0-d array")
        if len(self._shape) == 1 and self._shape[0] > ITERATED_MAX:
            raise TypeError(f"iterating over {self._shape[0]} numbers on the device would send a request for each: use x.get() or x.tolist() first")
        return (self[at] for at in range(self._shape[0]))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("The truth value of an array with other than one element is ambiguous. Use a.any() or a.all()")
        return bool(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        if self._dtype.kind not in "iu" or self._shape:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self)

    def __repr__(self) -> str:
        return str(FUNCTIONS["text_of"](self, True))

    def __str__(self) -> str:
        return str(FUNCTIONS["text_of"](self, False))

    def __copy__(self) -> "ndarray":
        return self.copy()

    def __deepcopy__(self, memo: Any) -> "ndarray":
        return self.copy()

    def __format__(self, spec: str) -> str:
        return str(FUNCTIONS["formatted"](self, spec))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """The elements go along; unpickling makes an array in the default session there. With protocol 5 without a copy, if asked to."""
        data = self._bytes()
        return FUNCTIONS["unpickled"], (PickleBuffer(data) if protocol >= 5 else bytes(data), self._dtype.name, self._shape)

    def to_device(self, device: Union[int, str], /, *, stream: Any = None) -> "ndarray":
        """The array if it is on this device (by its place in the service's list, or its id), else a copy there, through the host. `stream`: work on
        it has ended before the elements are read."""
        if stream is not None:
            self.session.sync(stream)
        made: ndarray = FUNCTIONS["asarray"](self, device=device)
        return made

    # ---- views and copies ----

    def copy(self, order: str = "C") -> "ndarray":
        """A copy; `order`: "C", or "F" for the first dimension fastest."""
        return call("cast_to", self, self._dtype) if order != "F" else call("cast_to", self.transpose(), self._dtype).transpose()

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True) -> "ndarray":
        """The elements as another type, as `casting` allows; out-of-range floats become what the device's conversion gives. Without `copy`, the
        array itself where nothing is to be changed."""
        wanted = dtypes.dtype_of(dtype)
        check_cast(self._dtype, wanted, casting)
        if wanted is self._dtype and not copy:
            return call("in_order", self, order)
        return call("in_order", call("cast_to", self, wanted), order)

    def view(self, dtype: Any = None) -> "ndarray":
        """The same memory, seen as another type where `dtype` is given: of the same size, or C-ordered with a last dimension that fits."""
        return self._view(self._shape, self._strides, self._offset) if dtype is None else call("reinterpret", self, dtypes.dtype_of(dtype))

    def reshape(self, *shape: Any, order: str = "C", copy: Optional[bool] = None) -> "ndarray":
        """A view where strides allow, else a copy; `order`: in which the elements are read and laid out, "C", "F" or "A"."""
        return cast("ndarray", FUNCTIONS["reshape"](self, shape[0] if len(shape) == 1 else shape, order, copy=copy))

    def ravel(self, order: str = "C") -> "ndarray":
        """All elements as one dimension: a view where strides allow."""
        return call("ravel", self, order)

    def flatten(self, order: str = "C") -> "ndarray":
        """A copy with one dimension."""
        return call("ravel", self, order).copy()

    def transpose(self, *axes: Any) -> "ndarray":
        """A view with the dimensions in another order, or turned around."""
        return call("transpose", self, axes[0] if len(axes) == 1 and (axes[0] is None or shapes.is_several(axes[0])) else axes or None)

    @property
    def T(self) -> "ndarray":
        """A view with the dimensions turned around."""
        return self.transpose()

    def swapaxes(self, axis1: int, axis2: int) -> "ndarray":
        """A view with two dimensions exchanged."""
        return call("swapaxes", self, axis1, axis2)

    def squeeze(self, axis: AxisLike = None) -> "ndarray":
        """A view without dimensions of one element."""
        return call("squeeze", self, axis)

    def fill(self, value: Any) -> None:
        """Sets every element."""
        self[...] = value

    def __getitem__(self, key: Any) -> "ndarray":
        return call("read_part", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        call("write_part", self, key, value)

    def nonzero(self) -> Tuple["ndarray", ...]:
        """The places of what is not zero, a 1-d array per dimension."""
        found: Tuple[ndarray, ...] = FUNCTIONS["nonzero"](self)
        return found

    def sort(self, axis: int = -1, kind: Any = None) -> None:
        """In place. `kind` is not looked at: every sort is stable."""
        self[...] = call("sort", self, axis)


def fetch(*arrays: ndarray) -> List[Any]:
    """What get() gives for each of several arrays of one session, in one request."""
    engine = same_engine(arrays)
    if engine is None:
        return []
    sources = [one if one._contiguous else one.copy() for one in arrays]
    return [_on_host(one, data) for one, data in zip(sources, engine.fetch([one._load() for one in sources]))]


def _on_host(array: ndarray, data: memoryview) -> Any:
    if dtypes.numpy is None:
        return unpack(array._load(), data)
    owned = bytearray(data) if data.readonly else data
    return dtypes.numpy.frombuffer(owned, dtype=array._dtype.str).reshape(array._shape)


def _filled(array: ndarray, out: Any, data: memoryview) -> Any:
    found = getattr(out, "dtype", None)
    if found is not None and (found != array.dtype or tuple(out.shape) != array._shape):
        raise ArgumentError(f"out is {found}{list(out.shape)}, the array {array._dtype.name}{list(array._shape)}")
    target = memoryview(out)
    if target.readonly or not target.c_contiguous or target.nbytes != data.nbytes:
        raise ArgumentError(f"out must be writable, in C order and of {data.nbytes} bytes")
    if data.nbytes:
        target.cast("B")[:] = data.cast("B")
    return out


def wrap(node: Node) -> ndarray:
    """Queues a new node and returns the array that holds it."""
    with node.engine.lock:
        return queued(node)


def queued(node: Node) -> ndarray:
    """As wrap(), with the engine's lock held."""
    engine, shape = node.engine, node.shape
    full = engine.queue(node)
    array = ndarray(Storage(node), node.dtype, shape, shapes.contiguous_strides(shape))
    if full:
        engine.relieve(node)
    return array


def hold(node: Node) -> ndarray:
    """The array of a node's own shape."""
    return ndarray(Storage(node), node.dtype, node.shape, shapes.contiguous_strides(node.shape))


def same_engine(values: Sequence[Any]) -> Optional[Engine]:
    """The engine of the arrays among `values`; an error when they are of several sessions. Those that are in no session yet come into that of the others."""
    first: Optional[ndarray] = None
    engine: Optional[Engine] = None
    unplaced: List[ndarray] = []
    for one in values:
        if not isinstance(one, ndarray):
            continue
        found = one._storage.node.engine
        if is_unplaced(found):
            unplaced.append(one)
        elif first is None:
            first, engine = one, found
        elif found is not engine:
            hint = ("gpurest.asarray(x, device=…) copies an array to another device" if one.device != first.device
                    else "make both in one session (gpurest.use(session) says where what names none is made), or copy one through the host")
            for each in (first, one):
                each.session._check()  # one that has ended says so
            places = apart(first.session, one.session)
            raise ArgumentError(f"arrays of different sessions cannot meet in one operation: {_told(first)} {places[0]}, {_told(one)} {places[1]}; {hint}")
    if engine is None:
        return unplaced[0]._engine if unplaced else None
    for one in unplaced:
        place(one._storage, engine)
    return engine


def engine_among(values: Sequence[Any]) -> Optional[Engine]:
    """As same_engine(), also of the arrays in lists: what is on the host comes into the session of the arrays beside it."""
    engine = same_engine(values)
    return same_engine(arrays_within(values)) if engine is None else engine


def arrays_within(values: Sequence[Any]) -> List[ndarray]:
    """Those on any level of nested lists."""
    found: List[ndarray] = []
    for one in values:
        if isinstance(one, ndarray):
            found.append(one)
        elif isinstance(one, (list, tuple)):
            found += arrays_within(one)
    return found


def _told(array: ndarray) -> str:
    return f"{array._dtype.name} of shape {array._shape} is in"
