"""Memory of the host that this process and the service share for a buffer: bytes move without a socket."""
from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

from .._transport.connection import close_all
from .._values.hostmem import numpy, typed_view
from ..errors import ClosedError, GpurestError, ProtocolError
from . import requests
from .handle import Unpicklable

if TYPE_CHECKING:
    from .buffer import Buffer
    from .session_base import SessionBase


Opened = Tuple[Dict[str, Any], int]


def opened(session: SessionBase, bid: str, kind: Optional[str] = None) -> Opened:
    """The service's answer, and its descriptor, which is the caller's."""
    if session.client._transport.endpoint.scheme != "unix":
        raise GpurestError("memory is shared over a Unix socket only", hint="connect(\"unix:///…\")")
    told, descriptors = session._do(requests.share_open(session.id, bid, kind))
    if len(descriptors) != 1:
        close_all(descriptors)
        raise ProtocolError(f"the service sent {len(descriptors)} descriptors")
    return told, descriptors[0]


class SharedAllocation:
    """As made by Buffer.share_cuda(): memory of a GPU for this process's own CUDA context. `fd` is what cuMemImportFromShareableHandle() takes
    (type POSIX file descriptor); `allocation_size` bytes are to be mapped, a multiple of `granularity`, of which the buffer is the first
    `nbytes`. The descriptor is closed by close(), or at the end of a with; what was imported by then stays.

    Nothing orders the two sides but the program: synchronise the own stream before launches that read what it wrote; what a launch wrote is
    there once its answer has come."""

    def __init__(self, buffer: Buffer, answer: Opened) -> None:
        told, self.fd = answer
        self.buffer = buffer
        self.nbytes = buffer.nbytes
        self.allocation_size = int(told["allocation_size"])
        self.granularity = int(told["granularity"])

    def close(self) -> None:
        """Idempotent."""
        held, self.fd = self.fd, -1
        if held >= 0:
            close_all([held])

    def __enter__(self) -> SharedAllocation:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Mapping(Unpicklable):
    """What both clients share: the memory, while it is mapped."""

    _instead = "pickle a copy of its bytes"

    def __init__(self, buffer: Buffer, answer: Opened) -> None:
        told, descriptor = answer
        self.buffer = buffer
        self.nbytes = buffer.nbytes
        self.direct = bool(told.get("direct", False))
        self._offset = int(told.get("offset", 0))
        try:
            self._map: Optional[mmap.mmap] = mmap.mmap(descriptor, self._offset + self.nbytes)
        finally:
            close_all([descriptor])

    @property
    def data(self) -> memoryview:
        """The bytes. A view that is kept keeps the mapping."""
        if self._map is None:
            raise ClosedError("this shared memory was closed")
        return memoryview(self._map)[self._offset:]

    def array(self) -> Any:
        """The memory as a NumPy array of the buffer's dtype and shape; without NumPy as a memoryview with that type."""
        if self.buffer.dtype is None:
            return self.data
        if numpy is None:
            return typed_view(self.data, self.buffer.dtype)
        return numpy.frombuffer(self.data, self.buffer.dtype.name).reshape(self.buffer.shape)

    def _count(self, offset: int, size: Optional[int]) -> int:
        """Bytes that may be copied now."""
        if self._map is None:
            raise ClosedError("this shared memory was closed")
        self.buffer._check()
        if self.buffer._recording() is not None:
            raise GpurestError("a batch is being recorded: shared memory is copied before or after it")
        return self.buffer._range(offset, size)

    def _let_go(self) -> bool:
        """Unmaps it. True: the service is to take it back."""
        if self._map is None:
            return False
        held, self._map = self._map, None
        try:
            held.close()
        except BufferError:
            pass  # somebody keeps a view: the mapping ends with that
        return not (self.direct or self.buffer.freed or self.buffer._gone())


class SharedMemory(Mapping):
    """As made by Buffer.share(). `data` is the memory, as writable bytes; it holds what the program puts there. to_device() copies it into
    the buffer, from_device() the buffer into it: nothing is copied by itself. All objects of one buffer share one memory.

    It ends with close(), with its buffer, and with a reset of the session: the service takes the pages back then, and what is read
    afterwards is zeros. Several threads may copy ranges apart from each other at once.

    `direct` is True where the memory is the buffer's own (a shareable buffer on the cpu device): then to_device() and from_device() copy
    nothing and wait for what was submitted before, and close() ends this mapping alone."""

    def __init__(self, buffer: Buffer) -> None:
        super().__init__(buffer, opened(buffer.session, buffer.id))

    def to_device(self, offset: int = 0, size: Optional[int] = None) -> None:
        """Copies bytes of the memory into the buffer; done when it returns. `size` None: to the end."""
        self._move("to_device", offset, size)

    def from_device(self, offset: int = 0, size: Optional[int] = None) -> None:
        """Copies bytes of the buffer into the memory, after everything submitted before."""
        self._move("from_device", offset, size)

    def _move(self, direction: str, offset: int, size: Optional[int]) -> None:
        count = self._count(offset, size)
        session = self.buffer.session
        session._do(requests.share_move(session.id, self.buffer.id, direction, offset, count))

    def close(self) -> None:
        """The service takes the memory back, from all who share it. Views of it read zeros then. Idempotent."""
        if self._let_go():
            session = self.buffer.session
            session._do(requests.share_close(session.id, self.buffer.id))

    def __enter__(self) -> SharedMemory:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
