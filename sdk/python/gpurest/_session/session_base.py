"""The requests that change a session as a whole; `Session` adds the objects."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Tuple, TypeVar

from .._transport.connection import Progress
from .._transport.frame import BytesLike
from .._transport.transport import Cancel
from .._transport.wire import Call, Request, Response
from ..errors import ClosedError, GpurestError, OutOfMemoryError
from . import requests
from .session_state import SessionState

if TYPE_CHECKING:
    from .client import Client

T = TypeVar("T")
BATCH_OPS_MAX = 4096  # of the contract


class SessionBase(SessionState):
    """Thread-safe."""

    client: Client

    def _do(self, call: Call[T]) -> T:
        self._check()
        try:
            return self.client._transport.do(call)
        except GpurestError as error:
            self._note(error)
            raise

    def _send(self, request: Request, into: Optional[memoryview], progress: Progress, cancel: Cancel) -> Response:
        """A part of a transfer."""
        self._check()
        try:
            return self.client._transport.send(request, into, progress, cancel)
        except GpurestError as error:
            self._note(error)
            raise

    def free_unused(self) -> int:
        """Frees now what finalizers and interrupted uploads have left behind; returns how many buffers of finalizers that were."""
        for name in self._take_doubtful():
            self._delete_quietly(requests.buffer_path(self.id, name))
        for name in self._take_programs():
            self._delete_quietly(requests.program_path(self.id, name))
        names = self._take_garbage(BATCH_OPS_MAX)
        if not names:
            return 0
        try:
            self._do(requests.session_batch(self.id, {"ops": [{"op": "free", "buf": name} for name in names]}, {}))
        except GpurestError:
            self._check()
            for name in names:  # somebody else freed one of them: each for itself
                self._delete_quietly(requests.buffer_path(self.id, name))
        return len(names) + (self.free_unused() if self._garbage else 0)

    def _delete_quietly(self, path: str) -> None:
        try:
            self._do(requests.delete(path))
        except GpurestError:
            pass

    # ---- batches ----

    def _submit_batch(self, document: Mapping[str, Any], segments: Mapping[str, BytesLike]) -> Tuple[Dict[str, Any], Dict[str, memoryview]]:
        """One request: `document` as in the contract ("segments" is set here), and the bytes of its segments by id.

        Returns the answer's document and what the batch read, by segment id, as views into one block of memory. Raises what the
        failure stands for; `error.op_index` and `error.completed_ops` tell how far it came. Buffers left behind by finalizers are freed
        by operations at the end, after those of the document. Thread-safe."""
        ops = list(document.get("ops", ()))
        garbage = self._take_garbage(max(0, BATCH_OPS_MAX - len(ops)))
        frees = [{"op": "free", "buf": name} for name in garbage]
        try:
            return self._do(requests.session_batch(self.id, {**document, "ops": ops + frees}, segments))
        except OutOfMemoryError as error:
            self._put_back(garbage)
            if not garbage or error.completed_ops:
                raise
            self.free_unused()
            return self._do(requests.session_batch(self.id, document, segments))
        except GpurestError as error:
            if error.op_index is None or error.op_index < len(ops):
                self._put_back(garbage)
            raise

    # ---- life ----

    def info(self) -> Dict[str, Any]:
        """The session as the service describes it."""
        return self._do(requests.get(requests.session_path(self.id)))

    def memory(self) -> Dict[str, Any]:
        """allocated_bytes, cached_bytes, reserved_bytes, free_bytes, peak_bytes, limit_bytes, fragmentation."""
        return self._do(requests.get(requests.session_path(self.id) + "/memory"))

    def trim(self) -> Dict[str, Any]:
        """Gives cached device memory back; returns memory()."""
        return self._do(requests.post(requests.session_path(self.id) + "/memory/trim"))

    def reset(self) -> None:
        """A new worker. Every buffer, module, kernel and stream of the session is void from now on, and says so when used."""
        self.client._transport._check()
        if self._closed:
            raise ClosedError(f"session {self.id} is closed")
        info = self.client._transport.do(requests.session_reset(self.id))
        self._renewed(info)

    def close(self) -> None:
        """Ends the session on the server, if this object made it. Idempotent; in a forked child it does nothing."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        if not self._owned or self.client._transport.closed:
            return
        try:
            self.client._transport.do(requests.delete(requests.session_path(self.id)))
        except GpurestError as error:
            if error.code != "session_not_found":
                raise
