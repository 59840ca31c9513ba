"""What a session is without I/O: its state, names, what this thread or task records, and what finalizers leave behind."""
from __future__ import annotations

import contextvars
import os
import secrets
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, Deque, List, Mapping, Optional, Tuple

from ..errors import ClosedError, GpurestError, SessionLostError
from .handle import is_fault, lost

if TYPE_CHECKING:
    from .batch import Batch
    from .session import Session
    from .stream import Stream

# Of this thread or task, innermost last. Tuples, so that tasks that inherit them do not see each other's changes.
_batches: contextvars.ContextVar[Tuple[Batch, ...]] = contextvars.ContextVar("gpurest_batches", default=())
_streams: contextvars.ContextVar[Tuple[Stream, ...]] = contextvars.ContextVar("gpurest_streams", default=())


class SessionState:
    """The part of a session that both clients share."""

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

    def _for_threads(self) -> Session:
        """The session whose methods block: this one, or its twin."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        return self._closed

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

    def _renewed(self, info: Mapping[str, Any]) -> None:
        """After a reset: objects of before are void."""
        self._reset_cause, self._lost = self._lost, None
        self.generation = info["generation"]

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

    # ---- what this thread or task is recording ----

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
