"""Buffers: device memory with a name."""
from __future__ import annotations

import weakref
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Tuple, TypeVar, Union, overload

from .._transport.progress import ProgressOption
from .._transport.steps import Steps
from .._values.dtypes import DType, dtype_of, packed
from .._values.hostmem import Shape, byte_view, count_of, empty
from .._values.scalars import Scalar, scalar_kind
from .._values.texels import Texels
from ..errors import AbortedError, ArgumentError, ClosedError, GpurestError
from . import requests, transfer
from .batch import Future
from .handle import Handle
from .shared import SharedAllocation, SharedMemory, opened

if TYPE_CHECKING:
    from .batch import Batch
    from .session import Session
    from .session_state import SessionState

Out = TypeVar("Out")


class Fate:
    """What the finalizer keeps: the memory's name, None while there is none, and whether anybody still wants it. It refers to nothing
    else: what finalizers keep lives as long as the process."""

    __slots__ = ("id", "dropped")

    def __init__(self, id: Optional[str]) -> None:
        self.id = id
        self.dropped = False


class Slot:
    """What a Buffer and the batch that makes it share."""

    def __init__(self, id: Optional[str], name: Optional[str] = None) -> None:
        self.fate = Fate(id)
        self.name = name  # "$name" in the batch that makes it
        self.failure: Optional[BaseException] = None
        self.program: Optional[str] = None  # the one whose own it is

    @property
    def id(self) -> Optional[str]:
        """The buffer's id on the server; None until there is one."""
        return self.fate.id

    @property
    def dropped(self) -> bool:
        """Nobody refers to the buffer any more."""
        return self.fate.dropped


def _finalize(fate: Fate, discard: Callable[[Tuple[int, str]], None], generation: int) -> None:
    """Without I/O, locks, exceptions."""
    fate.dropped = True
    if fate.id is not None:
        discard((generation, fate.id))


class Buffer(Handle):
    """Device memory of `nbytes` bytes; `dtype` and `shape` say how get() shows them, and are checked against kernels' pointers.

    Thread-safe as far as the bytes are: two writers of one range race as they would on the device. Freed by free(), by leaving a `with`
    block, or, when nobody refers to it any more, along with a later request."""

    _instead = "pickle its contents, buffer.get()"

    kind = "buffer"

    def __init__(self, session: Session, slot: Slot, nbytes: int, dtype: Optional[DType], shape: Optional[Shape],
                 batch: Optional[Batch] = None, owned: bool = True) -> None:
        """`owned`: the memory goes with the object; else it is another's, who keeps it meanwhile."""
        super().__init__(session)
        self.nbytes = nbytes
        self._dtype = dtype
        self._shape = shape
        self._slot = slot
        self._batch = batch
        self._base: Optional[Buffer] = None
        self._finalizer: Optional[weakref.finalize[Any, Any]] = None
        if owned:
            self._finalizer = weakref.finalize(self, _finalize, slot.fate, session._garbage.append, self._generation)
            self._finalizer.atexit = False

    # ---- what it is ----

    @property
    def id(self) -> str:
        """The name on the server. A batch's buffer has one once the batch has run."""
        if self._slot.id is None:
            self._check()
            raise GpurestError("the buffer has no id yet: its batch has not run")
        return self._slot.id

    @property
    def _ref(self) -> str:
        """The name to be used in the request that is being made."""
        return self._slot.id if self._slot.id is not None else str(self._slot.name)

    @property
    def dtype(self) -> Optional[DType]:
        """The element type; None for bytes."""
        return self._dtype

    @property
    def dtype_str(self) -> Optional[str]:
        """The element type as in NumPy's array interface, such as "<f4"; None for bytes."""
        return self._dtype.str if self._dtype else None

    @property
    def shape(self) -> Shape:
        """The extents in elements; without an element type, the number of bytes."""
        if self._shape is not None:
            return self._shape
        return (self.nbytes // (self._dtype.itemsize if self._dtype else 1),)

    @property
    def size(self) -> int:
        """Elements; bytes where there is no dtype."""
        return count_of(self.shape)

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    def __repr__(self) -> str:
        state = " freed" if self._freed else ""
        return f"<Buffer {self._ref} {self.nbytes} bytes{f' of {self._dtype.name}' if self._dtype else ''}{state}>"

    def __gpurest_buffer__(self) -> Tuple[Buffer, int]:
        return self, 0

    def view(self, dtype: Any) -> Buffer:
        """The same memory, seen as elements of another type. It keeps the buffer alive."""
        kind = dtype_of(dtype)
        if self.nbytes % kind.itemsize:
            raise ArgumentError(f"{self.nbytes} bytes are no whole number of {kind.name}")
        other = Buffer.__new__(Buffer)
        other.__dict__.update(self.__dict__)
        other._dtype, other._shape, other._base, other._finalizer = kind, None, self._base or self, None
        return other

    def _check(self) -> None:
        if self._base is not None and self._base._freed:
            raise ClosedError("this buffer was freed")
        super()._check()
        if self._slot.program is not None:
            raise ClosedError(f"this buffer is the program {self._slot.program}'s own: an output of the program reads it")
        if self._slot.failure is not None:
            raise AbortedError("this buffer was never made: its batch failed", cause=self._slot.failure)

    def _as_argument(self, session: Optional[SessionState], offset: int = 0) -> Optional[str]:
        """Its text in a launch of its own in this session; None: it is not simply there, and somebody is to look closer. `offset`: bytes from its start."""
        slot, mine = self._slot, self._session
        name = slot.fate.id
        if name is None or slot.program is not None or self._freed or self._base is not None or mine is not session or self._generation != mine.generation:
            return None
        return f'{{"buf":{quoted(name)},"offset":{offset}}}' if offset else f'{{"buf":{quoted(name)}}}'

    def _recording(self) -> Optional[Batch]:
        """The batch that this thread is filling, if any. A buffer of a batch that has not run can be used in that batch only."""
        batch = self._session._batch_now()
        if self._slot.id is None and self._batch is not None and batch is not self._batch:
            raise GpurestError("the buffer's batch has not run yet: submit it first")
        if batch is not None and self._slot.id is not None:
            batch._hold(self)
        return batch

    def _range(self, offset: int, size: Optional[int]) -> int:
        """Checked; the bytes from `offset` on, or the size asked for."""
        if not 0 <= offset <= self.nbytes:
            raise ArgumentError(f"offset {offset} lies outside the buffer's {self.nbytes} bytes")
        count = self.nbytes - offset if size is None else size
        if count < 0 or count > self.nbytes - offset:
            raise ArgumentError(f"{count} bytes at offset {offset} reach beyond the buffer's {self.nbytes} bytes")
        return count

    # ---- bytes ----

    def write(self, data: Any, offset: int = 0, *, progress: ProgressOption = None) -> None:
        """Copies bytes of the host into the buffer, from byte `offset` on. `data` is reusable on return, unless a batch records: then it
        must stay as it is until the batch is submitted."""
        self._check()
        view = byte_view(data)
        self._range(offset, len(view))
        batch = self._recording()
        if not len(view):
            return
        if batch is not None:
            batch._write(self._ref, offset, view)
            return
        whole = offset == 0 and len(view) == self.nbytes
        transfer.write(self._session, self.id, offset, view, whole, progress)

    set = write

    def read_into(self, out: Any, offset: int = 0, *, progress: ProgressOption = None) -> None:
        """Fills `out`, writable memory of the host, with the bytes from `offset` on."""
        self._check()
        view = byte_view(out, "out")
        if view.readonly and len(view):
            raise ArgumentError("out cannot be written to")
        self._range(offset, len(view))
        if self._recording() is not None:
            raise GpurestError("a batch is being recorded: use get_async(), or read after it")
        if len(view):
            transfer.read(self._session, self.id, offset, view, progress)

    def read(self, offset: int = 0, size: Optional[int] = None, *, progress: ProgressOption = None) -> bytearray:
        """A copy of the bytes."""
        out = bytearray(self._range(offset, size))
        self.read_into(out, offset, progress=progress)
        return out

    @overload
    def get(self, out: None = None, *, progress: ProgressOption = None) -> Any: ...

    @overload
    def get(self, out: Out, *, progress: ProgressOption = None) -> Out: ...

    def get(self, out: Any = None, *, progress: ProgressOption = None) -> Any:
        """The contents: as a NumPy array of the buffer's dtype and shape; without NumPy as a memoryview, without a dtype as a bytearray.
        With `out`, that is filled and returned."""
        if out is not None:
            self.read_into(self._whole(out), progress=progress)
            return out
        made, view = empty(self.nbytes, self._dtype, self._shape)
        self.read_into(view, progress=progress)
        return made

    def _whole(self, out: Any) -> memoryview:
        view = byte_view(out, "out")
        if view.nbytes != self.nbytes:
            raise ArgumentError(f"out has {view.nbytes} bytes, the buffer {self.nbytes}")
        return view

    def get_async(self) -> Future[Any]:
        """In a batch: the contents as they are at this place of it; see Batch. Outside: on a thread of the client."""
        self._check()
        batch = self._recording()
        if batch is None:
            return self._session.client._in_background(self.get)
        return batch._read(self._ref, self.nbytes, self._dtype, self._shape)

    def share(self) -> SharedMemory:
        """Memory of the host that this process maps, of the buffer's size: over a Unix socket, from a service with --local-sharing."""
        self._check_share("share()")
        return SharedMemory(self)

    def share_cuda(self) -> SharedAllocation:
        """The buffer's memory itself, for a CUDA context of this process: of a buffer made with shareable=True, on a GPU of this host; over a
        Unix socket, from a service with --local-sharing."""
        self._check_share("share_cuda()")
        return SharedAllocation(self, opened(self._session, self.id, "cuda_fd"))

    def _check_share(self, what: str) -> None:
        self._check()
        if self._recording() is not None:
            raise GpurestError(f"a batch is being recorded: {what} comes before or after it")

    def __bytes__(self) -> bytes:
        return bytes(self.read())

    # ---- on the device ----

    def fill(self, value: Union[int, float, Scalar], offset: int = 0, size: Optional[int] = None, *, stream: Any = None) -> None:
        """Fills `size` bytes from `offset` on with a pattern: a Scalar of 1, 2, 4 or 8 bytes, or a number of the buffer's dtype (of bytes
        where it has none)."""
        self._session._drive(self._filling(value, offset, size, stream))

    def _filling(self, value: Union[int, float, Scalar], offset: int, size: Optional[int], stream: Any = None) -> Steps[None]:
        pattern = self._pattern(value, offset, size)
        batch = self._recording()
        if batch is not None:
            batch._add(_without_none({"op": "fill", "to": self._ref, "offset": offset, "size": size, "pattern": pattern}))
        else:
            yield requests.buffer_fill(self._session.id, self.id, pattern, offset, size, self._session._stream_name(stream))

    def _pattern(self, value: Union[int, float, Scalar], offset: int, size: Optional[int]) -> Dict[str, Any]:
        self._check()
        self._range(offset, size)
        if self._dtype is not None and self._dtype.kind == "c" and not isinstance(value, Scalar):
            return _complex_pattern(value, self._dtype)
        if not isinstance(value, Scalar):
            value = Scalar(scalar_kind(self._dtype) if self._dtype else "u8", value)
        return value.json()

    def copy_from(self, source: Buffer, *, offset: int = 0, from_offset: int = 0, size: Optional[int] = None, stream: Any = None) -> None:
        """Copies bytes of another buffer of the session, on the device. `size` None: to the end of the shorter."""
        self._session._drive(self._copying(source, offset, from_offset, size, stream))

    def _copying(self, source: Buffer, offset: int, from_offset: int, size: Optional[int], stream: Any = None) -> Steps[None]:
        self._check_copy(source, offset, from_offset, size)
        batch = self._recording()
        if batch is None:
            yield requests.buffer_copy(self._session.id, self.id, offset, source.id, from_offset, size, self._session._stream_name(stream))
            return
        source._recording()
        batch._add(_without_none({"op": "copy", "from": source._ref, "from_offset": from_offset, "to": self._ref, "offset": offset, "size": size}))

    def compare(self, other: Buffer, *, offset: int = 0, with_offset: int = 0, size: Optional[int] = None) -> Dict[str, Any]:
        """Compares bytes with those of another buffer of the session, without downloading them: `equal`, `size` (bytes compared),
        `different_bytes` and `first_difference` (counted from the offsets; None if equal). `size` None: to both ends; then buffers of
        different length are not equal."""
        return self._session._drive(self._comparing(other, offset, with_offset, size))

    def _comparing(self, other: Buffer, offset: int, with_offset: int, size: Optional[int]) -> Steps[Dict[str, Any]]:
        self._check_copy(other, offset, with_offset, size)
        if self._recording() is not None:
            raise GpurestError("a batch is being recorded: compare() comes before or after it")
        told: Dict[str, Any] = yield requests.buffer_compare(self._session.id, self.id, offset, other.id, with_offset, size)
        return told

    def _check_copy(self, source: Buffer, offset: int, from_offset: int, size: Optional[int]) -> None:
        self._check()
        source._check()
        if source._session is not self._session:
            raise ArgumentError(f"the buffer is in {source._session._place()}, this one in {self._session._place()}")
        self._range(offset, size)
        source._range(from_offset, size)

    # ---- life ----

    def free(self) -> None:
        """Gives the memory back. Idempotent. In a batch: at this place of it."""
        if self._base is not None:
            raise ArgumentError("a view does not own the memory: free the buffer that it was made from")
        self._session._drive(self._freeing())

    def _freeing(self) -> Steps[None]:
        if self._freed:
            return
        if self._slot.failure is None and not self._gone():
            self._check()
            batch = self._recording()
            if batch is not None:
                batch._free(self._slot)
            else:
                yield requests.delete(requests.buffer_path(self._session.id, self.id))
        self._freed = True
        if self._finalizer is not None:
            self._finalizer.detach()

    def _gone(self) -> bool:
        """The server has freed it already, with the session or its generation; or it goes with its program."""
        return self._slot.program is not None or super()._gone()

    def __enter__(self) -> Buffer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.free()


class Texture(Buffer):
    """Texels that kernels take as a cudaTextureObject_t; `surface` is what they take as a cudaSurfaceObject_t. Its texels are a Buffer's bytes: set(),
    get(), write(), read() and copy_from() are there, in whole texels, in batches too. fill(), share() and view() are not. `spec` is what the service
    says of it. Freed by free(), by leaving a `with` block, or, when nobody refers to it any more, along with a later request."""

    kind = "texture"
    _argument = "tex"

    def __init__(self, session: Session, info: Mapping[str, Any], texels: Texels, buffer: Optional[Buffer] = None) -> None:
        size, dtype, shape = int(info["size"]), texels.dtype, texels.shape
        close = size == count_of(shape) * dtype.itemsize  # else bytes lie between its rows
        super().__init__(session, Slot(str(info["texels"])), size, dtype if close else None, shape if close else None, owned=False)
        self.spec: Dict[str, Any] = dict(info)
        self._read = buffer  # stays while the texture reads it
        self._finalizer = weakref.finalize(self, session._textures_left.append, (self._generation, str(info["id"])))
        self._finalizer.atexit = False

    @property
    def surface(self) -> Surface:
        """As an argument for a cudaSurfaceObject_t; of a texture made with surface=True."""
        if not self.spec["surface"]:
            raise ArgumentError("the texture is no surface: make it with surface=True")
        return Surface(self)

    def view(self, dtype: Any) -> Buffer:
        """It has one format: Session.texture() makes it."""
        raise ArgumentError("the texels of a texture have one format; a texture with another one can read the same buffer")

    def _as_argument(self, session: Optional[SessionState], offset: int = 0) -> Optional[str]:
        return None  # no pointer takes it

    def _freeing(self) -> Steps[None]:
        if not self._freed and not self._gone():
            self._check()
            if self._session._batch_now() is not None:
                raise GpurestError("a batch is being recorded: free the texture before or after it")
            yield requests.delete(requests.texture_path(self._session.id, str(self.spec["id"])))
        self._freed = True
        if self._finalizer is not None:
            self._finalizer.detach()

    def __repr__(self) -> str:
        return f"<Texture {self.spec['id']} {self.spec['dimension']} {self.shape} of {self.spec['format']}{' freed' if self._freed else ''}>"


class Surface:
    """A texture where a kernel takes a surface."""

    _argument = "surf"

    def __init__(self, texture: Texture) -> None:
        self.texture = texture

    def __gpurest_buffer__(self) -> Tuple[Texture, int]:
        return self.texture, 0


def texture_memory(session: SessionState, texels: Texels, buffer: Any, offset: int, pitch: Optional[int]) -> Optional[Buffer]:
    """Checks that a texture can be made now; the buffer that it is to read, if any, is in the request then."""
    session._check()
    if session._batch_now() is not None:
        raise GpurestError("a batch is being recorded: make textures before or after it")
    if buffer is None:
        return None
    memory: Buffer = buffer.__gpurest_buffer__()[0]
    memory._check()
    texels.over(memory.id, offset, pitch)
    return memory


def _without_none(op: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in op.items() if value is not None}


def _complex_pattern(value: Any, dtype: DType) -> Dict[str, Any]:
    """A pattern has 8 bytes at most: one number of complex64, or one part of complex128 if both are alike."""
    data = packed([complex(value)], dtype)
    if data[:8] != data[-8:]:
        raise ArgumentError(f"fill() writes patterns of 8 bytes, and {value!r} as {dtype.name} has 16 different ones; gpurest.full() makes arrays of it")
    return {"u64": str(int.from_bytes(data[:8], "little"))}
