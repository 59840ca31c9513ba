"""The requests that change a session as a whole; `Session` adds the objects."""
from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from .._transport.connection import Progress
from .._transport.frame import BytesLike
from .._transport.heartbeats import clock
from .._transport.steps import Steps, drive
from .._transport.transport import Cancel
from .._transport.wire import Call, Request, Response, of_generation, with_body
from ..errors import GpurestError, ResourceExhausted
from . import requests
from .session_state import SessionState, is_memory_refused, log

if TYPE_CHECKING:
    from .client import Client

T = TypeVar("T")
_asking = threading.local()  # .now: this thread is within a callback of a refusal, which is not called for its own requests
Relief = Callable[["SessionBase", ResourceExhausted], bool]  # no device memory for a request; True: some was let go


def pages(do: Callable[[Call[Dict[str, Any]]], Dict[str, Any]], path: str) -> Iterator[Dict[str, Any]]:
    """The items of a list of the service, page by page."""
    cursor: Optional[str] = None
    while True:
        page = do(requests.page(path, cursor))
        yield from page["items"]
        cursor = page.get("next_cursor")
        if not cursor:
            return


class SessionBase(SessionState):
    """Thread-safe."""

    client: Client

    def __init__(self, client: Client, info: Mapping[str, Any], owned: bool, timeout_ms: Optional[int] = None) -> None:
        super().__init__(client, info, owned, timeout_ms)
        self._reliefs: List[Relief] = []

    def _do(self, call: Call[T]) -> T:
        if self._closed or self._lost is not None:
            self._check()  # says so; the rest of it the transport looks at
        self._asked_at, generation, stamp = clock(), self.generation, self._stamp
        try:
            return self.client._transport.do(self._stamped(call))
        except BaseException as error:
            self._note_unanswered(call.request, error)
            if not isinstance(error, GpurestError) or not self._hear(error, generation, stamp):
                raise
        return self._do(call)

    def _post(self, like: Request, body: bytes) -> Response:
        """The answer to the request that begins as `like` and has this body: as _do() in fewer steps."""
        if self._closed or self._lost is not None:
            self._check()
        self._asked_at, generation, stamp = clock(), self.generation, self._stamp
        try:
            return self.client._transport.post(like, body)
        except GpurestError as error:
            if not self._hear(error, generation, stamp):
                raise
        return self._do(Call(with_body(like, body), lambda answer: answer))

    def _send(self, request: Request, into: Optional[memoryview], progress: Progress, cancel: Cancel) -> Response:
        """A part of a transfer."""
        try:
            return self._asking(lambda: self.client._detours.send(self._info, of_generation(request, self._stamp), into, progress, cancel))
        except BaseException as error:
            self._note_unanswered(request, error)
            raise

    def _asking(self, ask: Callable[[], T]) -> T:
        """What `ask` returns, which makes requests with the stamp of now."""
        self._check()
        self._asked_at, generation, stamp = clock(), self.generation, self._stamp
        try:
            return ask()
        except GpurestError as error:
            if not self._hear(error, generation, stamp):
                raise
        return self._asking(ask)

    def _stream(self, request: Request) -> Iterator[bytes]:
        """The answer in pieces."""
        generation, stamp = self.generation, self._stamp
        try:
            yield from self.client._transport.stream(of_generation(request, stamp))
            return
        except GpurestError as error:
            if not self._hear(error, generation, stamp):
                raise
        yield from self._stream(request)

    def _hear(self, error: GpurestError, generation: int, stamp: str) -> bool:
        """Notes what ends the session, which was of this generation and had this stamp. True: it has another one by now, and all that was in it: what was
        refused is to be asked again."""
        if drive(self._explaining(error), self.client._transport.do) and generation == self.generation:
            return stamp != self._stamp
        self._note(error, generation)
        return False

    def _drive(self, steps: Steps[T]) -> T:
        return drive(steps, lambda step: time.sleep(step) if isinstance(step, float) else self._do(step))

    def _allocating(self, request: Callable[[], T]) -> T:
        """What `request` returns, which may allocate device memory. It is made once more when there was none, nothing of it was done, and somebody
        has let some go."""
        try:
            return request()
        except ResourceExhausted as error:
            self._relieve_of(error)
        return request()

    def _relieve_of(self, error: ResourceExhausted) -> None:
        """Raises the refusal unless the request is to be made once more."""
        if not is_memory_refused(error) or not self._relieved_of(error) or error.completed_ops:
            raise error

    def _relieved_of(self, error: ResourceExhausted) -> bool:
        """Whether one of the session's reliefs says so; all are asked. On the thread whose request it was."""
        if not self._reliefs or getattr(_asking, "now", False):
            return False
        _asking.now = True
        try:
            return any([self._answer(one, error) for one in tuple(self._reliefs)])
        finally:
            _asking.now = False

    def _answer(self, relief: Relief, error: ResourceExhausted) -> bool:
        """What goes wrong in it is logged: the refusal is what the caller is to see."""
        try:
            return bool(relief(self, error))
        except Exception:
            log.exception("what was to be told of device memory has failed")
            return False

    def free_unused(self) -> int:
        """Frees now what finalizers and interrupted requests have left behind; returns how many buffers of finalizers that were."""
        return self._drive(self._freeing())

    # ---- batches ----

    def _submit_batch(self, document: Union[Mapping[str, Any], requests.Encoded],
                      segments: Mapping[str, BytesLike]) -> Tuple[Dict[str, Any], Dict[str, memoryview]]:
        """One request: `document` as in the contract ("segments" is set here), and the bytes of its segments by id.

        Returns the answer's document and what the batch read, by segment id, as views into one block of memory. Raises what the
        failure stands for; `error.op_index` and `error.completed_ops` tell how far it came. Buffers left behind by finalizers are freed
        by operations at the end, after those of the document, unless they may be busy. Thread-safe."""
        try:
            if type(document) is requests.Repeated and not (self._garbage or self._doubtful):
                try:
                    return document.read(self._post(document.like(self._stamp), document.body))
                except ResourceExhausted as error:
                    if not self._would_help(error):
                        raise
            return self._send_batch(document, segments)
        except ResourceExhausted as error:
            self._relieve_of(error)
        return self._send_batch(document, segments)

    def _send_batch(self, document: Union[Mapping[str, Any], requests.Encoded],
                    segments: Mapping[str, BytesLike]) -> Tuple[Dict[str, Any], Dict[str, memoryview]]:
        return self._drive(self._sending(document, segments))

    # ---- life ----

    def info(self) -> Dict[str, Any]:
        """The session as the service describes it."""
        return self._do(requests.get(requests.session_path(self.id)))

    def memory(self) -> Dict[str, Any]:
        """allocated_bytes, cached_bytes, reserved_bytes, free_bytes, peak_bytes, limit_bytes, fragmentation (None: fragmentation_reason says why)."""
        return self._do(requests.get(requests.session_path(self.id) + "/memory"))

    def trim(self) -> Dict[str, Any]:
        """Gives cached device memory back; returns memory()."""
        return self._do(requests.post(requests.session_path(self.id) + "/memory/trim"))

    def reset_peak(self) -> Dict[str, Any]:
        """Counts `peak_bytes` from what is allocated now; returns memory()."""
        return self._do(requests.post(requests.session_path(self.id) + "/memory/peak/reset"))

    def update(self, *, memory_limit: Union[int, str, None] = None, memory_fraction: Union[float, str, None] = None,
               pool_bytes_max: Union[int, str, None] = None, idle_timeout_s: Optional[int] = None,
               labels: Optional[Mapping[str, str]] = None, lease_s: Optional[int] = None) -> Dict[str, Any]:
        """Changes what Client.session() said; what is None stays. `lease_s` 0: no lease. Buffers stay, even if they exceed a lower limit. Returns
        info()."""
        spec = requests.session_spec(None, memory_limit, idle_timeout_s, None, labels, False, memory_fraction, pool_bytes_max, lease_s=lease_s)
        info = self._do(requests.session_update(self.id, spec))
        self._described(info)
        return info

    def hibernate(self) -> Dict[str, Any]:
        """Takes the session's large buffers off the device, until it is used again, which wakes it. Addresses and modules stay. Returns info()."""
        return self._do(requests.post(requests.session_path(self.id) + "/hibernate"))

    def wake(self) -> Dict[str, Any]:
        """Has a hibernated session's buffers on the device again, as the next use would. Returns info()."""
        return self._do(requests.post(requests.session_path(self.id) + "/wake"))

    def reset(self) -> None:
        """A new worker; or, if the session has ended, a new session like it in its place, of which `id` is another one unless it was chosen here. What somebody
        else has reset or made anew meanwhile is joined as it is. Every buffer, module, kernel and stream of the session is void from now on, and says so when used."""
        drive(self._resetting(), self.client._transport.do)

    def close(self) -> None:
        """Ends the session on the server, if this object made it. Idempotent; in a forked child it does nothing."""
        drive(self._closing(), self.client._transport.do)


class MemoryPool:
    """What the session has of the device's memory, by CuPy's verbs. Every method is one request."""

    def __init__(self, session: SessionBase) -> None:
        self._session = session

    def used_bytes(self) -> int:
        """Taken by buffers, modules and the like."""
        return int(self._session.memory()["allocated_bytes"])

    def total_bytes(self) -> int:
        """Reserved from the device: used, and kept for later."""
        return int(self._session.memory()["reserved_bytes"])

    def free_bytes(self) -> int:
        """Kept for later: reserved and not used."""
        return int(self._session.memory()["cached_bytes"])

    def free_all_blocks(self) -> None:
        """Frees what finalizers have left behind, and gives memory that is kept for later back to the device."""
        self._session.free_unused()
        self._session.trim()

    def get_limit(self) -> Optional[int]:
        """None: the device is the limit. session(memory_limit="8GiB") and Session.update() set it."""
        limit = self._session.memory()["limit_bytes"]
        return None if limit is None else int(limit)
