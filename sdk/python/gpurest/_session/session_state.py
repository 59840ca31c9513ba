"""What a session is without I/O: its state, names, what this thread or task records, and what finalizers leave behind."""
from __future__ import annotations

import contextlib
import contextvars
import logging
import os
import secrets
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, Callable, Deque, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar, Union

from .._transport.frame import BytesLike
from .._transport.heartbeats import Do, clock
from .._transport.steps import Steps, drive
from .._transport.wire import Call, Request, generation_of, of_generation
from .._values.dtypes import DType, dtype_of
from .._values.hostmem import Shape, byte_view, count_of, dtype_from, from_sequence, shape_from, shape_of
from ..errors import ArgumentError, BusyError, ClosedError, GpurestError, OutOfMemoryError, ResourceExhausted, SessionLostError
from . import requests
from .background import FINAL
from .batch import Batch
from .buffer import Buffer, Slot
from .handle import Unpicklable, is_ended, is_fault, lost
from .stream import Stream
from .transfer import refused

if TYPE_CHECKING:
    from .session import Session

BATCH_OPS_MAX = 4096  # of the contract
LEASE_S = 60  # of the sessions that a client makes by itself
MEMORY_LIMITS = ("session_memory_bytes", "caller_memory_bytes")  # of ResourceExhausted.limit
ASKED_AGAIN_BYTES_MAX = 4 << 20  # of a submission that was interrupted: a longer one was hardly complete, and its bytes would all be sent again
BEATS = 3  # heartbeats within a lease: two may get lost
log = logging.getLogger("gpurest.session")
T = TypeVar("T")
_CHANGED = ("session_not_found", "generation_changed")  # codes: it has ended, or is not the one that it was
_KEPT = ("move", "shutdown")  # what a session was made from that has all of before; what came after a periodic snapshot is lost

# Of this thread or task, innermost last. Tuples, so that tasks that inherit them do not see each other's changes.
_batches: contextvars.ContextVar[Tuple[Batch, ...]] = contextvars.ContextVar("gpurest_batches", default=())
_streams: contextvars.ContextVar[Tuple[Stream, ...]] = contextvars.ContextVar("gpurest_streams", default=())
entered_batches, entered_streams = _batches.get, _streams.get  # of all sessions: a launch asks first whether there are any


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


def is_memory_refused(error: BaseException) -> bool:
    """There was not enough device memory, or the session or the caller may not have more."""
    return isinstance(error, OutOfMemoryError) or isinstance(error, ResourceExhausted) and error.limit.get("name") in MEMORY_LIMITS


def _is_for_later(error: BaseException) -> bool:
    """The request may do at another time what it did not do now."""
    return isinstance(error, BusyError) or not refused(error)


class SessionState(Unpicklable):
    """The part of a session that both clients share."""

    _instead = "pickle session.id, and use client.attach(id) where that is unpickled"

    def __init__(self, client: Any, info: Mapping[str, Any], owned: bool, timeout_ms: Optional[int] = None) -> None:
        self.client = client
        self.timeout_ms = timeout_ms  # of kernels for which none is given; None: the service's 60 s
        self._is_default = False  # the client made it by itself, and makes another one when it has ended
        self.id: str = info["id"]
        self.device: str = info["device"]
        self._device_bytes: Optional[int] = None  # of its memory, once somebody has asked
        self._generations_before = 0  # of sessions in whose place it is; what it takes to count on where the service's number has changed
        self._is_now(info)
        self._describe(info)
        self._owned = owned
        self._closed = False
        self._lost: Optional[SessionLostError] = None
        self._reset_cause: Optional[SessionLostError] = None
        self._salt = secrets.token_hex(4)
        self._numbers = count(1)
        self._garbage: Deque[Tuple[int, str]] = deque()
        self._doubtful: Deque[Tuple[int, str]] = deque()  # buffers that go by requests of their own: they may be busy, or not there
        self._unanswered: Set[str] = set()  # buffers of requests that were broken off, which the service may be at still
        self._jobs_left: Deque[Tuple[int, str]] = deque()  # batches in the background of which nobody fetches the result
        self._programs_left: Deque[Tuple[int, str]] = deque()  # programs without a name of the user's that nobody refers to any more
        self._textures_left: Deque[Tuple[int, str]] = deque()  # that nobody refers to any more; they go before the buffers that they read
        self._pid = os.getpid()
        self._stream_names: List[str] = []
        log.info("%s is open on %s", self.id, self.device)

    def _is_now(self, info: Mapping[str, Any]) -> None:
        """What this object stands for from now on: one generation of one session."""
        self.generation: int = self._generations_before + int(info["generation"])  # counts the workers that it had
        self._stamp = generation_of(info)  # of its requests: what is another session by now, or was reset, refuses them
        self._stands_for = info

    def _made_with(self, info: Mapping[str, Any]) -> bool:
        """It is the session that this object stands for, perhaps reset since."""
        return bool(info.get("created_at") == self._stands_for.get("created_at"))

    @property
    def _named(self) -> bool:
        """By a client, so that others may use the name for another session. The service's own ids have capitals."""
        return self.id == self.id.lower()

    def _described(self, info: Mapping[str, Any]) -> None:
        """By what is in force now."""
        self._describe(info)
        if self._lease_s is not None:
            self.client._heartbeats_of_all().keep(self)

    def _describe(self, info: Mapping[str, Any]) -> None:
        """As the service told when it made or changed the session, or made a new one in its place."""
        self._info = dict(info)
        self._idle_timeout_s: Optional[float] = info.get("idle_timeout_s")
        self._lease_s: Optional[float] = info.get("lease_s")
        self._asked_at = self._beaten_at = clock()  # last request and last heartbeat

    def _for_threads(self) -> Session:
        """The session whose methods block: this one, or its twin."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._closed

    @property
    def _ended(self) -> bool:
        """As far as is known: the service has no such session any more."""
        return self._lost is not None and is_ended(self._lost)

    @property
    def _left_behind(self) -> bool:
        """As far as is known: somebody else has reset it."""
        return self._lost is not None and self._lost.reason == "reset"

    @property
    def _over(self) -> bool:
        return self._closed or self._ended

    @property
    def _unleased(self) -> bool:
        """It needs no heartbeats."""
        return self._over or self._lease_s is None

    @property
    def _in_doubt(self) -> bool:
        """It was left alone for so long that it may have ended."""
        now = clock()
        return (self._idle_timeout_s is not None and now - self._asked_at >= self._idle_timeout_s
                or self._lease_s is not None and now - max(self._asked_at, self._beaten_at) >= self._lease_s)

    def _beat_at(self) -> float:
        return max(self._asked_at, self._beaten_at) + (self._lease_s or 0) / BEATS

    def _beat(self, do: Do) -> None:
        """Renews the lease. A session that is gone says so at its next use; after another failure the next heartbeat comes sooner."""
        asked, generation = clock(), self.generation
        try:
            do(self._stamped(requests.session_heartbeat(self.id)))
            self._beaten_at = asked
        except GpurestError as error:
            log.debug("no heartbeat of %s: %s", self.id, error)
            self._beaten_at = max(self._beaten_at, asked - (self._lease_s or 0) / BEATS / 2)
            if error.code in _CHANGED and generation == self.generation and not drive(self._explaining(error), do):
                self._note(error, generation)  # else another one has taken its place meanwhile

    def _place(self) -> str:
        """For messages: which session, and on which device."""
        return f"session {self.id} on {self.device}"

    # ---- state ----

    def _stamped(self, call: Call[T]) -> Call[T]:
        """The same, for the generation of the session that this object stands for."""
        if not call.any_generation:
            of_generation(call.request, self._stamp)
        return call

    def _check(self) -> None:
        self.client._transport._check()
        if self._closed:
            raise ClosedError(f"session {self.id} is closed")
        if self._lost is not None:
            raise lost(self._lost.__cause__ if isinstance(self._lost.__cause__, GpurestError) else self._lost)

    def _note(self, error: GpurestError, generation: Optional[int] = None) -> None:
        """A fault ends everything that the session had; the first one is remembered. `generation`: of the session when it was asked for what failed;
        after a reset by another thread that is over."""
        if is_fault(error) and self._lost is None and (generation is None or generation == self.generation):
            self._lost = lost(error)
            log.warning("%s is lost: %s", self.id, error)

    def _explaining(self, error: GpurestError) -> Steps[bool]:
        """Completes what is told of a session that the service does not have, or not as it was: what became of it, and what to do. True: it has all that it
        had, and what was refused can be asked again."""
        if not isinstance(error, SessionLostError) or error.code not in _CHANGED:
            return False
        if error.code == "generation_changed":
            return (yield from self._explaining_change(error))
        if error.reason == "not_found" and (yield from self._restarted()):
            error.reason, error.message = "restarted", "the session is gone: the service was restarted since it was made, or another instance of it answers"
        elif error.reason == "not_found":
            error.message = "the session is unknown to the service: it has ended"
        error.message = error.message.replace("the session", self._place(), 1)
        error.hint = "what it held is lost; session.reset() makes a new one in its place" + (
            ", and new arrays get a new one by themselves" if self._is_default else "")
        return False

    def _explaining_change(self, error: SessionLostError) -> Steps[bool]:
        try:
            info = yield requests.get(requests.session_path(self.id))
        except GpurestError:
            return False  # what was told before remains
        if self._goes_on(info):
            return True
        if (info.get("restored") or {}).get("from") == "periodic":
            error.message = f"{self._place()} was restored as of {info['restored']['taken_at']}: what came later is lost"
            error.hint = "session.reset() goes on with it as it is now"
        elif self._made_with(info):
            error.message = f"{self._place()} was reset by somebody else: what was in it is lost"
            error.hint = "session.reset() goes on with it as it is now"
        else:
            error.reason = "replaced"
            error.message = f"{self._place()} has ended, and somebody else has made a new session of its name: what was in the old one is lost"
            error.hint = "session.reset() or client.attach() joins the new one"
        return False

    def _goes_on(self, info: Mapping[str, Any]) -> bool:
        """Whether it is the session that this object stands for, with all that was in it, though its number is another one: the service has moved or restored
        it, and nobody has reset it since."""
        if generation_of(info) == self._stamp:
            return True
        restored = info.get("restored") or {}
        if restored.get("from") not in _KEPT or self._made_with(info) or restored.get("generation") != info["generation"]:
            return False
        self._generations_before = self.generation - int(info["generation"])
        self._is_now(info)
        return True

    def _restarted(self) -> Steps[bool]:
        before = self._info.get("instance")
        if before is None:
            return False
        try:
            told = yield requests.get("/version")
        except GpurestError:
            return False
        return bool(told.get("node") == self._info.get("node") and told.get("instance", before) != before)

    def _resetting(self) -> Steps[None]:
        self.client._transport._check()
        if self._closed:
            raise ClosedError(f"session {self.id} is closed")
        if (yield from self._reset_there()):
            return
        info, made = yield requests.session_open(*requests.session_again(self._info))
        self._owned = self._owned and made  # else somebody else's, which this object joins
        self._replaced(info)
        self._described(info)

    def _reset_there(self) -> Steps[bool]:
        """False: the session has ended. One that somebody else has reset is not reset once more, but taken as it is: there may be something in it."""
        path = requests.session_path(self.id)
        while not self._ended:
            try:
                info = yield requests.get(path) if self._left_behind else self._stamped(requests.session_reset(self.id))
            except GpurestError as error:
                if error.code not in _CHANGED:
                    raise
                if not (yield from self._explaining(error)):
                    self._lost = None  # whatever it was: now it is this
                    self._note(error)
                continue
            self._owned = self._owned and self._made_with(info)
            self._renewed(info)
            if info.get("state") != "faulted":
                return True
        return False

    def _replaced(self, info: Mapping[str, Any]) -> None:
        """By a new session, which is now the one that this object stands for."""
        self._generations_before = self.generation + 1 - int(info["generation"])  # that may be above an earlier one's of its name
        self.id, self.device, self._device_bytes = info["id"], info["device"], None
        self._describe(info)
        self._renewed(info)

    def _hearing_of_resets(self) -> Steps[None]:
        """Asks whether it was reset otherwise than by reset()."""
        call = requests.get(requests.session_path(self.id))
        call.any_generation = True
        info = yield call
        if not self._goes_on(info) and self.generation != self._generations_before + int(info["generation"]):
            self._renewed(info)

    def _renewed(self, info: Mapping[str, Any]) -> None:
        """After a reset: objects of before are void."""
        self._reset_cause, self._lost = self._lost, None
        self._is_now(info)
        log.info("%s has a new worker", self.id)

    def _new_name(self, prefix: str) -> str:
        """A client-chosen id that nobody else chooses. Thread-safe; `prefix` is of a-z, 0-9, "_" and "-", at most 32 characters."""
        return f"{prefix}-{self._salt}-{next(self._numbers)}"

    # ---- what is to be freed ----

    def _discard(self, buffer_id: str, generation: int) -> None:
        """For finalizers: notes that a buffer can go along with a later request. No I/O, no lock, no exception."""
        self._garbage.append((generation, buffer_id))

    def _note_unanswered(self, request: Request, error: BaseException) -> None:
        """After a request that came to no answer the service may still be at the buffers, and free none of them: a batch that was to do so would fail."""
        if not refused(error):
            self._unanswered.update(requests.buffers_of(request))

    @contextlib.contextmanager
    def _making(self, left: Deque[Tuple[int, str]], name: str) -> Iterator[None]:
        """What is asked for under a name may be there although no answer came: it is to be freed, too."""
        generation = self.generation
        try:
            yield
        except BaseException as error:
            if not refused(error):
                left.append((generation, name))
            raise

    def _take_garbage(self, most: int) -> List[str]:
        """Buffers to be freed within a batch."""
        found: List[str] = []
        while self._garbage and len(found) < most:
            try:
                generation, name = self._garbage.popleft()
            except IndexError:
                break
            if generation != self.generation:
                continue
            if name in self._unanswered:
                self._unanswered.discard(name)
                self._doubtful.append((generation, name))
            else:
                found.append(name)
        return found

    def _has_left(self) -> bool:
        return bool(self._garbage or self._has_left_apart())

    def _has_left_apart(self) -> bool:
        """There is what goes by requests of its own."""
        return bool(self._doubtful or self._programs_left or self._textures_left or self._jobs_left)

    def _not_freed(self, names: Sequence[str], generation: int, error: BaseException, length: int) -> None:
        """After a batch of `length` operations, and behind them those that were to free the buffers."""
        untried = refused(error) and isinstance(error, GpurestError) and (error.op_index is None or error.op_index < length)
        (self._garbage if untried else self._doubtful).extend((generation, name) for name in names)

    def _deleting(self, left: Deque[Tuple[int, str]], path: Callable[[str, str], str]) -> Steps[None]:
        """Each by a request of its own. What is busy, or was not answered, stays for later."""
        for _ in range(len(left)):
            try:
                generation, name = left.popleft()
            except IndexError:
                return
            if generation != self.generation:
                continue
            try:
                yield requests.delete(path(self.id, name))
            except BaseException as error:
                if _is_for_later(error):
                    left.append((generation, name))
                if not isinstance(error, GpurestError):
                    raise

    def _freeing(self) -> Steps[int]:
        """Frees what finalizers and interrupted requests have left behind; how many buffers of finalizers that were."""
        yield from self._ending_jobs()
        yield from self._deleting(self._programs_left, requests.program_path)
        yield from self._deleting(self._textures_left, requests.texture_path)
        freed = 0
        while names := self._take_garbage(BATCH_OPS_MAX):
            generation = self.generation
            try:
                yield requests.session_batch(self.id, {"ops": requests.freeing(names)}, {})
            except BaseException as error:  # somebody else freed one of them, maybe: each for itself
                self._doubtful.extend((generation, name) for name in names)
                if not isinstance(error, GpurestError):
                    raise
                self._check()
            freed += len(names)
        yield from self._deleting(self._doubtful, requests.buffer_path)
        return freed

    # ---- batches, with which it goes ----

    def _sending(self, document: Union[Mapping[str, Any], requests.Encoded], segments: Mapping[str, BytesLike]) -> Steps[requests.BatchAnswer]:
        """A batch, at whose end goes what finalizers have left behind; before it, where the memory is needed for it, or it goes by requests of its own."""
        if self._has_left_apart():
            yield from self._freeing()
        length, generation = requests.length_of(document), self.generation
        garbage = self._take_garbage(max(0, BATCH_OPS_MAX - length)) if self._garbage else []
        try:
            return (yield requests.session_batch(self.id, requests.with_frees(document, garbage), segments))  # type: ignore[no-any-return]
        except BaseException as error:
            self._not_freed(garbage, generation, error, length)
            if not self._would_help(error):
                raise
        yield from self._freeing()
        return (yield requests.session_batch(self.id, document, segments))  # type: ignore[no-any-return]

    def _would_help(self, error: BaseException) -> bool:
        """To free what is left, and to send the batch again, of which nothing was done."""
        return isinstance(error, GpurestError) and is_memory_refused(error) and not error.completed_ops and self._has_left()

    def _sending_background(self, document: Mapping[str, Any], segments: Mapping[str, BytesLike]) -> Steps[Tuple[requests.Document, List[str]]]:
        """What is told of the job, and the buffers that it frees at its end. Nothing is freed before it, which would wait for the kernels that run,
        unless its memory is needed."""
        length, generation = requests.length_of(document), self.generation
        garbage = self._take_garbage(max(0, BATCH_OPS_MAX - length)) if self._garbage and not self._textures_left else []
        try:
            return (yield from self._handing_over(requests.with_frees(document, garbage), segments)), garbage
        except BaseException as error:
            self._not_freed(garbage, generation, error, length)
            if not self._would_help(error):
                raise
        yield from self._freeing()
        return (yield from self._handing_over(document, segments)), []

    def _handing_over(self, document: Union[Mapping[str, Any], requests.Encoded], segments: Mapping[str, BytesLike]) -> Steps[requests.Document]:
        """Of an interrupted submission, the service says which job it is when it is asked again: what that makes is to be freed."""
        call = requests.in_background(requests.session_batch(self.id, document, segments))
        generation = self.generation
        try:
            return (yield call)  # type: ignore[no-any-return]
        except GpurestError:
            raise
        except GeneratorExit:
            raise
        except BaseException as error:
            if call.request.body_bytes <= ASKED_AGAIN_BYTES_MAX and not hasattr(error, "unsent"):
                try:
                    self._jobs_left.append((generation, (yield call)["id"]))
                except GpurestError:
                    pass
            raise

    def _ending_jobs(self) -> Steps[None]:
        """Nobody knows the buffers that they have made. They end one after the other: behind the first that has not, none has."""
        ended = True
        while ended and self._jobs_left:
            try:
                generation, job = one = self._jobs_left.popleft()
            except IndexError:
                return
            try:
                ended = generation != self.generation or (yield from self._ending_job(requests.session_job(self.id, job)))
            except BaseException as error:
                ended = not _is_for_later(error)
                if not isinstance(error, GpurestError):
                    raise
            finally:
                if not ended:
                    self._jobs_left.appendleft(one)

    def _ending_job(self, path: str) -> Steps[bool]:
        """False: it has not ended."""
        generation, told = self.generation, (yield requests.job_get(path, 0))
        if told["state"] not in FINAL:
            return False
        if told["state"] == "succeeded":
            answer, _ = yield requests.job_result(path)
            self._doubtful.extend((generation, name) for name in answer["kept"].values())
            yield requests.job_end(path, False)
        return True

    def _closing(self) -> Steps[None]:
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        if self._lease_s is not None:
            self.client._heartbeats_of_all().look()
        if not self._owned or self._ended or self._left_behind or self.client._transport.closed:
            return
        log.info("%s is deleted", self.id)
        again = True
        while again:
            try:
                yield self._stamped(requests.delete(requests.session_path(self.id)))
                return
            except GpurestError as error:
                if error.code not in _CHANGED:
                    raise
                again = (yield from self._explaining(error)) and not self._named  # what was restored under a name may be somebody else's

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
        batches = _batches.get()
        return next((one for one in reversed(batches) if one._session is self), None) if batches else None

    def _enter_stream(self, stream: Stream) -> None:
        _streams.set((*_streams.get(), stream))

    def _leave_stream(self, stream: Stream) -> None:
        stack = list(_streams.get())
        if stream in stack:
            del stack[len(stack) - 1 - stack[::-1].index(stream)]
        _streams.set(tuple(stack))

    def _stream_now(self) -> Optional[Stream]:
        streams = _streams.get()
        return next((one for one in reversed(streams) if one.session is self), None) if streams else None
