"""What a session is without I/O: its state, names, what this thread or task records, and what finalizers leave behind."""
from __future__ import annotations

import contextvars
import logging
import os
import secrets
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, Deque, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .._transport.steps import Steps
from .._transport.wire import Call
from .._values.dtypes import DType, dtype_of
from .._values.hostmem import Shape, byte_view, count_of, dtype_from, from_sequence, shape_from, shape_of
from ..errors import ArgumentError, ClosedError, GpurestError, SessionLostError
from . import requests
from .batch import Batch
from .buffer import Buffer, Slot
from .handle import Unpicklable, is_fault, lost
from .stream import Stream

if TYPE_CHECKING:
    from .session import Session

BATCH_OPS_MAX = 4096  # of the contract
log = logging.getLogger("gpurest.session")

# Of this thread or task, innermost last. Tuples, so that tasks that inherit them do not see each other's changes.
_batches: contextvars.ContextVar[Tuple[Batch, ...]] = contextvars.ContextVar("gpurest_batches", default=())
_streams: contextvars.ContextVar[Tuple[Stream, ...]] = contextvars.ContextVar("gpurest_streams", default=())


class Wanted(NamedTuple):
    """A buffer to be made, with the bytes of `view` or with nothing in it."""
    size: int
    dtype: Optional[DType]
    shape: Optional[Shape]
    view: Optional[memoryview]
    shareable: bool = False


def _checked(wanted: Wanted) -> Wanted:
    if wanted.size < 1:
        raise ArgumentError("a buffer has at least 1 byte")
    if wanted.dtype is not None and wanted.size % wanted.dtype.itemsize:
        raise ArgumentError(f"{wanted.size} bytes are no whole number of {wanted.dtype.name}")
    return wanted


def _quietly(call: Call[None]) -> Steps[None]:
    try:
        yield call
    except GpurestError:
        pass


class SessionState(Unpicklable):
    """The part of a session that both clients share."""

    _instead = "pickle session.id, and use client.attach(id) where that is unpickled"

    def __init__(self, client: Any, info: Mapping[str, Any], owned: bool) -> None:
        self.client = client
        self.id: str = info["id"]
        self.device: str = info["device"]
        self.generation: int = info["generation"]
        self._owned = owned
        self._closed = False
        self._lost: Optional[SessionLostError] = None
        self._reset_cause: Optional[SessionLostError] = None
        self._salt = secrets.token_hex(4)
        self._numbers = count(1)
        self._garbage: Deque[Tuple[int, str]] = deque()
        self._doubtful: Deque[Tuple[int, str]] = deque()  # given-up uploads that may have become buffers after all
        self._programs_left: Deque[Tuple[int, str]] = deque()  # programs without a name of the user's that nobody refers to any more
        self._pid = os.getpid()
        self._stream_names: List[str] = []
        log.info("%s is open on %s", self.id, self.device)

    def _for_threads(self) -> Session:
        """The session whose methods block: this one, or its twin."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        return self._closed

    def _place(self) -> str:
        """For messages: which session, and on which device."""
        return f"session {self.id} on {self.device}"

    # ---- state ----

    def _check(self) -> None:
        self.client._transport._check()
        if self._closed:
            raise ClosedError(f"session {self.id} is closed")
        if self._lost is not None:
            raise lost(self._lost.__cause__ if isinstance(self._lost.__cause__, GpurestError) else self._lost)

    def _note(self, error: GpurestError) -> None:
        """A fault ends everything that the session had; the first one is remembered."""
        if is_fault(error) and self._lost is None:
            self._lost = lost(error)
            log.warning("%s is lost: %s", self.id, error)

    def _renewed(self, info: Mapping[str, Any]) -> None:
        """After a reset: objects of before are void."""
        self._reset_cause, self._lost = self._lost, None
        self.generation = info["generation"]
        log.info("%s has a new worker", self.id)

    def _new_name(self, prefix: str) -> str:
        """A client-chosen id that nobody else chooses. Thread-safe; `prefix` is of a-z, 0-9, "_" and "-", at most 32 characters."""
        return f"{prefix}-{self._salt}-{next(self._numbers)}"

    # ---- what is to be freed ----

    def _discard(self, buffer_id: str, generation: int) -> None:
        """For finalizers: notes that a buffer can go along with a later request. No I/O, no lock, no exception."""
        self._garbage.append((generation, buffer_id))

    def _take_garbage(self, most: int) -> List[str]:
        found: List[str] = []
        while len(found) < most:
            try:
                generation, name = self._garbage.popleft()
            except IndexError:
                break
            if generation == self.generation:
                found.append(name)
        return found

    def _has_left(self) -> bool:
        return bool(self._garbage or self._doubtful or self._programs_left)

    def _take_doubtful(self) -> List[str]:
        return self._taken(self._doubtful)

    def _take_programs(self) -> List[str]:
        return self._taken(self._programs_left)

    def _taken(self, left: Deque[Tuple[int, str]]) -> List[str]:
        found: List[str] = []
        while True:
            try:
                generation, name = left.popleft()
            except IndexError:
                return found
            if generation == self.generation:
                found.append(name)

    def _put_back(self, names: List[str]) -> None:
        self._garbage.extend((self.generation, name) for name in names)

    def _freeing(self) -> Steps[int]:
        """Frees what finalizers and given-up uploads have left behind; how many buffers of finalizers that were."""
        for path in [requests.buffer_path(self.id, name) for name in self._take_doubtful()]:
            yield from _quietly(requests.delete(path))
        for path in [requests.program_path(self.id, name) for name in self._take_programs()]:
            yield from _quietly(requests.delete(path))
        freed = 0
        while names := self._take_garbage(BATCH_OPS_MAX):
            try:
                yield requests.session_batch(self.id, {"ops": [{"op": "free", "buf": name} for name in names]}, {})
            except GpurestError:
                self._check()
                for name in names:  # somebody else freed one of them: each for itself
                    yield from _quietly(requests.delete(requests.buffer_path(self.id, name)))
            freed += len(names)
        return freed

    def _closing(self) -> Steps[None]:
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        if not self._owned or self.client._transport.closed:
            return
        log.info("%s is deleted", self.id)
        try:
            yield requests.delete(requests.session_path(self.id))
        except GpurestError as error:
            if error.code != "session_not_found":
                raise

    # ---- what is made ----

    def _wanted(self, data: Any, size: Optional[int], dtype: Any, shareable: bool) -> Wanted:
        """What buffer() is asked for, checked."""
        self._check()
        kind = None if dtype is None else dtype_of(dtype)
        if (data is None) == (size is None):
            raise ArgumentError("buffer() takes either data or size=")
        if shareable and (data is not None or self._batch_now() is not None):
            raise ArgumentError("a shareable buffer is made by size=, and not in a batch")
        if data is None:
            return _checked(Wanted(int(size or 0), kind, None, None, shareable))
        if isinstance(data, int):
            raise ArgumentError("buffer(data) takes bytes or an array; for empty memory write buffer(size=…)")
        if isinstance(data, (list, tuple)):
            if kind is None:
                raise ArgumentError("numbers in a list have no size of their own: pass dtype=")
            data = from_sequence(data, kind)
        view = byte_view(data)
        return _checked(Wanted(len(view), kind or dtype_from(data), shape_from(data) if dtype is None else None, view))

    def _wanted_elements(self, shape: Union[int, Sequence[int]], dtype: Any) -> Wanted:
        self._check()
        sizes, kind = shape_of(shape), dtype_of(dtype)
        return _checked(Wanted(count_of(sizes) * kind.itemsize, kind, sizes, None))

    def _buffer_of(self, wanted: Wanted, slot: Slot, batch: Optional[Batch] = None) -> Buffer:
        owner: Any = self
        return Buffer(owner, slot, wanted.size, wanted.dtype, wanted.shape, batch)

    def _queued_buffer(self, wanted: Wanted) -> Optional[Buffer]:
        """The buffer, if a batch that is being recorded makes it."""
        batch = self._batch_now()
        if batch is None:
            return None
        slot = Slot(None, batch._buffer_name())
        batch._alloc(slot, wanted.size, wanted.view)
        return self._buffer_of(wanted, slot, batch)

    def _image(self, image: Any) -> memoryview:
        """Compiled code, as bytes."""
        self._check()
        return memoryview(image.encode()) if isinstance(image, str) else byte_view(image, "image")

    # ---- what this thread or task is recording ----

    def _stream_name(self, stream: Any) -> Optional[str]:
        chosen = stream if stream is not None else self._stream_now()
        if chosen is None:
            return None
        if not isinstance(chosen, Stream) or chosen.session is not self:
            raise ArgumentError(f"not a stream of {self._place()}: {chosen!r}")
        chosen._check()
        return chosen.name

    def _enter_batch(self, batch: Batch) -> None:
        _batches.set((*_batches.get(), batch))

    def _leave_batch(self, batch: Batch) -> None:
        _batches.set(tuple(one for one in _batches.get() if one is not batch))

    def _batch_now(self) -> Optional[Batch]:
        return next((one for one in reversed(_batches.get()) if one._session is self), None)

    def _enter_stream(self, stream: Stream) -> None:
        _streams.set((*_streams.get(), stream))

    def _leave_stream(self, stream: Stream) -> None:
        stack = list(_streams.get())
        if stream in stack:
            del stack[len(stack) - 1 - stack[::-1].index(stream)]
        _streams.set(tuple(stack))

    def _stream_now(self) -> Optional[Stream]:
        return next((one for one in reversed(_streams.get()) if one.session is self), None)
