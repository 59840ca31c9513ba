"""Batches: operations that queue on this side and go to the service in one request."""
from __future__ import annotations

import concurrent.futures
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, List, Mapping, Optional, Sequence, Tuple, TypeVar

from .._shown.printing import show_all
from .._transport.steps import Steps
from .._values.dtypes import DType
from .._values.hostmem import Shape, numpy, typed_view
from ..errors import AbortedError, ArgumentError, ClosedError, CudaError, GpurestError
from . import requests
from .background import BatchJob, JobTold
from .event import Event
from .handle import Unpicklable, calling_line, named

if TYPE_CHECKING:
    from .buffer import Slot
    from .session_state import SessionState
    from .stream import Stream

T = TypeVar("T")
Job = TypeVar("Job", bound=JobTold[Any])
OPS_MAX = 256
PAYLOAD_BYTES_MAX = 32 << 20
ANSWER_BYTES_MAX = 64 << 20  # the service's bound on what one batch reads
SEGMENTS_MAX = 256
Document = Dict[str, Any]


class Future(Generic[T], Unpicklable):
    """A result that comes later. Thread-safe."""

    _instead = "pickle its result()"

    def __init__(self, owner: Optional[Batch] = None) -> None:
        self._inner: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._owner = owner

    @classmethod
    def _around(cls, inner: concurrent.futures.Future[T]) -> Future[T]:
        made: Future[T] = cls()
        made._inner = inner
        return made

    def result(self, timeout: Optional[float] = None) -> T:
        """Waits for it. Raises what went wrong; concurrent.futures.TimeoutError after `timeout` seconds."""
        self._expect(timeout)
        return self._inner.result(0 if self._followed else timeout)

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """The failure, or None where there is none, as result(): once the batch has ended, for which it waits at most `timeout` seconds."""
        self._expect(timeout)
        return self._inner.exception(0 if self._followed else timeout)

    def done(self) -> bool:
        """Of a batch in the background: asks the service, unless it is known."""
        if not self._inner.done() and self._owner is not None and self._owner._job is not None:
            self._owner._job._settled_within(0)
        return self._inner.done()

    @property
    def _followed(self) -> bool:
        """Of a batch in the background, whose end this side has to ask for; nobody else brings the result."""
        return self._owner is not None and self._owner._job is not None

    def _expect(self, timeout: Optional[float]) -> None:
        if not self._inner.done() and self._owner is not None:
            self._owner._bring(timeout)


class LaunchResult:
    """Of a kernel in a batch: device time in microseconds (None where it was not measured), what the kernel printed, and whether that is not all of it."""

    def __init__(self, gpu_us: Optional[float], stdout: str, stdout_truncated: bool = False) -> None:
        self.gpu_us = gpu_us
        self.stdout = stdout
        self.stdout_truncated = stdout_truncated

    def __repr__(self) -> str:
        return f"LaunchResult(gpu_us={self.gpu_us}, stdout={self.stdout!r})"


class _Op:
    """One operation, with where it was queued and who waits for its result."""

    __slots__ = ("document", "queued_at", "kernel", "future", "settle")

    def __init__(self, document: Document, kernel: Optional[str] = None, future: Optional[Future[Any]] = None,
                 settle: Optional[Callable[[Mapping[str, Any], Mapping[str, memoryview]], Any]] = None) -> None:
        self.document = document
        self.queued_at = calling_line()
        self.kernel = kernel
        self.future = future
        self.settle = settle


class _Group:
    """The operations of one request."""

    def __init__(self) -> None:
        self.ops: List[_Op] = []
        self.segments: Dict[str, memoryview] = {}
        self.slots: List[Slot] = []
        self.events: List[Event] = []
        self.payload = 0
        self.reads = 0
        self.read_bytes = 0
        self.generation = 0  # of the session when it was sent
        self.holds: Dict[int, Any] = {}  # the session's buffers that it names, which are not to be forgotten before it is done


class Batch(Unpicklable):
    """Records what the session's objects are asked to do on this thread, and sends it as one request.

    Results come in order. The first operation that fails aborts those after it, up to the end or to the next barrier(): their futures
    raise AbortedError with that failure as the cause, and submit() raises the failure itself. A batch of more than `ops_max` operations
    or `payload_max` bytes goes in several requests, one after the other; submit() still reports them as one.
    Not thread-safe: one thread fills it."""

    _instead = "pickle the results of its futures"

    def __init__(self, session: SessionState, stream: Optional[Stream] = None, timeout_ms: Optional[int] = None, ops_max: int = OPS_MAX,
                 payload_max: int = PAYLOAD_BYTES_MAX) -> None:
        if not 1 <= ops_max <= 4096:
            raise ArgumentError("ops_max is from 1 to 4096")
        self._session = session
        self._stream = stream
        self._timeout_ms = session.timeout_ms if timeout_ms is None else timeout_ms
        self._ops_max, self._payload_max = ops_max, payload_max
        self._group = _Group()
        self._kept: Dict[str, str] = {}
        self._failure: Optional[GpurestError] = None
        self._reported: Optional[GpurestError] = None
        self._entered = False
        self.submitted = False
        self._job: Optional[BatchJob[Any]] = None
        self.times: Dict[str, float] = {}
        self.requests = 0

    # ---- recording ----

    def __enter__(self) -> Batch:
        if self.submitted or self._entered:
            raise ClosedError("a batch is filled once")
        self._session._check()
        self._session._enter_batch(self)
        self._entered = True
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._leave()
        if self.submitted:
            return
        if kind is None:
            self.submit()
        else:
            self._abandon(error)

    def _leave(self) -> None:
        self._session._leave_batch(self)

    def __len__(self) -> int:
        return len(self._group.ops)

    def _stream_of(self, stream: Optional[Stream]) -> Optional[str]:
        chosen = stream or self._session._stream_now() or self._stream
        return chosen.name if chosen is not None else None

    def _add(self, document: Document, **more: Any) -> _Op:
        if self.submitted:
            raise ClosedError("the batch was submitted")
        if len(self._group.ops) >= self._ops_max:
            self._flush()
        op = _Op(document, **more)
        self._group.ops.append(op)
        return op

    def _hold(self, buffer: Any) -> None:
        """A buffer of the session, or an array: it lives until the request is done."""
        self._group.holds[id(buffer)] = buffer

    def _buffer_name(self) -> str:
        """For a buffer that the batch makes."""
        return "$" + self._session._new_name("b")

    def _segment(self, view: memoryview) -> str:
        group = self._group
        if group.segments and (group.payload + len(view) > self._payload_max or len(group.segments) >= SEGMENTS_MAX):
            self._flush()
        name = f"s{len(self._group.segments)}"
        self._group.segments[name] = view
        self._group.payload += len(view)
        return name

    def _alloc(self, slot: Slot, size: int, view: Optional[memoryview]) -> None:
        if len(self._group.ops) >= self._ops_max:
            self._flush()
        how: Document = {"size": size} if view is None else {"segment": self._segment(view)}
        self._add({"op": "alloc", "as": slot.name, **how})
        self._group.slots.append(slot)

    def _write(self, ref: str, offset: int, view: memoryview) -> None:
        if len(self._group.ops) >= self._ops_max:
            self._flush()
        self._add({"op": "write", "to": ref, "offset": offset, "segment": self._segment(view)})

    def _free(self, slot: Slot) -> None:
        self._add({"op": "free", "buf": slot.id or slot.name})
        if slot in self._group.slots:
            self._group.slots.remove(slot)

    def _read(self, ref: str, size: int, dtype: Optional[DType], shape: Optional[Shape]) -> Future[Any]:
        group = self._group
        if group.reads and (group.read_bytes + size > ANSWER_BYTES_MAX or group.reads >= SEGMENTS_MAX) or len(group.ops) >= self._ops_max:
            self._flush()
        self._group.reads += 1
        self._group.read_bytes += size
        segment = f"r{self._group.reads}"
        future: Future[Any] = Future(self)
        self._add({"op": "read", "from": ref, "segment": segment}, future=future,
                  settle=lambda _, segments: shown(segments[segment], dtype, shape))
        return future

    def _launch(self, document: Document, kernel: str) -> Future[LaunchResult]:
        future: Future[LaunchResult] = Future(self)
        self._add({"op": "launch", **document}, kernel=kernel, future=future,
                  settle=lambda told, _: LaunchResult(told.get("gpu_us"), str(told.get("stdout", "")), bool(told.get("stdout_truncated"))))
        return future

    def record(self, stream: Optional[Stream] = None) -> Event:
        """An event at this place of the stream. The difference of two events of one request is the time between them."""
        if len(self._group.ops) + len(self._group.events) >= self._ops_max:
            self._flush()
        event = Event(self, f"e{len(self._group.events)}")
        document: Document = {"op": "record", "event": event.name}
        name = self._stream_of(stream)
        self._add({**document, "stream": name} if name else document)
        event.group = self._group
        self._group.events.append(event)
        return event

    def wait(self, event: Event, stream: Optional[Stream] = None) -> None:
        """What follows on `stream` comes after the event. An event of an earlier request has happened already."""
        if event.batch is not None and event.batch is not self and not event.batch.submitted:
            raise GpurestError("the event belongs to a batch that has not been submitted")
        if event.batch is not None and event.batch._in_background():
            raise GpurestError("the event's batch is in the background: wait for its job, or await it, first")
        if event.group is not self._group:
            return
        name = self._stream_of(stream)
        self._add({"op": "wait", "event": event.name, **({"stream": name} if name else {})})

    def sync(self, stream: Optional[Stream] = None) -> None:
        """What follows comes after everything on `stream`, None: on all streams."""
        self._add({"op": "sync", **({"stream": stream.name} if stream is not None else {})})

    def barrier(self) -> None:
        """What follows is done even if something before it fails: it goes as a request of its own."""
        self._flush()
        self._failure = None

    # ---- sending ----

    def submit(self, *, on_error: str = "raise") -> Batch:
        """Sends what is queued and waits for its end; returns the batch. Raises the first failure; with on_error="continue" only the futures
        do, each its own (barrier() keeps what follows from being aborted)."""
        if on_error not in ("raise", "continue"):
            raise ArgumentError(f"on_error is 'raise' or 'continue', not {on_error!r}")
        if self.submitted:
            raise ClosedError("the batch was submitted already")
        self._flush()
        self.submitted = True
        self._leave()
        if self._reported is not None and on_error == "raise":
            raise self._reported
        return self

    def submit_async(self) -> Future[Batch]:
        """As submit(), on a thread of the client. Memory that was given to write() must stay as it is until the future is done."""
        self._leave()
        self.submitted = True
        found: Future[Batch] = self._session.client._in_background(self._finish)
        return found

    def submit_background(self) -> BatchJob[Batch]:
        """Sends what is queued and returns at once with a BatchJob: the service does it when those before it in the background are done, even
        if this connection, or this process, ends meanwhile. Memory that was given to write() is free again on return. Results are there by the job's
        result(), and futures of the batch, which wait for it. Buffers that it names must not be freed before it is done; those that it makes are
        usable when its result is here, and freed when nobody refers to the batch any more. At most 64 MiB are read back. The whole of it is one request; what
        went beyond `ops_max` or `payload_max` while it was filled was done then."""
        job: BatchJob[Batch] = self._session._drive(self._sending_background(BatchJob))  # type: ignore[attr-defined]
        self._job = job
        return job

    def _sending_background(self, make: Callable[..., Job]) -> Steps[Job]:
        """`make` is the client's class of jobs."""
        group, session = self._take_group(), self._session
        document = self._document(group)
        length = requests.length_of(document)
        try:
            info, freed = yield from session._sending_background(document, group.segments)
        except BaseException as error:
            self._not_taken(group, error)
            raise
        self.submitted = True
        finish, fail = self._settlers(group)

        def failed(error: GpurestError) -> None:
            session._not_freed(freed, group.generation, error, length)
            fail(error)

        job = make(session.client, session, requests.session_job(session.id, info["id"]), info, finish, failed)
        if document["keep"]:
            job._left_to(session)
        return job

    def _take_group(self) -> _Group:
        """What is queued, for the background."""
        if self.submitted:
            raise ClosedError("the batch was submitted already")
        if not self._group.ops:
            raise ArgumentError("the batch is empty")
        self._leave()
        group, self._group = self._group, _Group()
        if self._failure is not None:
            self._not_taken(group, self._failure)
            raise self._failure
        return group

    def _not_taken(self, group: _Group, error: BaseException) -> None:
        if isinstance(error, GpurestError) and error is not self._failure:
            self._failed(group, error)
        else:
            _abort(group, error)
        self.submitted = True

    def _settlers(self, group: _Group) -> Tuple[Callable[[requests.BatchAnswer], Batch], Callable[[GpurestError], None]]:
        """What is to be done when the group has ended in the background."""
        group.segments = {}  # sent

        def finish(answer: requests.BatchAnswer) -> Batch:
            self._succeeded(group, *answer)
            if self._reported is not None:  # of a part that was sent before a barrier
                raise self._reported
            return self

        return finish, lambda error: self._failed(group, error)

    def _in_background(self) -> bool:
        """It was sent there, and how it ended is not known yet."""
        return self._job is not None and not self._job._settled

    def _bring(self, timeout: Optional[float]) -> None:
        """Waits for a batch in the background; the others bring their results by themselves."""
        if not self.submitted:
            raise GpurestError("the batch has not been submitted: leave its with block, or call submit()")
        if self._job is not None:
            self._job._settled_within(timeout)

    def _finish(self) -> Batch:
        self._flush()
        if self._reported is not None:
            raise self._reported
        return self

    def _flush(self) -> None:
        group, self._group = self._group, _Group()
        if not group.ops:
            return
        if self._failure is not None:
            _abort(group, self._failure)
            return
        try:
            answer, segments = self._session._submit_batch(self._document(group), group.segments)  # type: ignore[attr-defined]
        except GpurestError as error:
            self._failed(group, error)
        except BaseException as error:
            _abort(group, error)
            raise
        else:
            self._succeeded(group, answer, segments)

    def _document(self, group: _Group) -> Document:
        elapsed = [{"op": "elapsed", "from": group.events[0].name, "to": event.name} for event in group.events[1:]]
        document: Document = {"ops": [_resolved(op.document, self._kept) for op in group.ops] + elapsed,
                              "keep": [slot.name for slot in group.slots if not slot.dropped]}
        if self._timeout_ms is not None:
            document["timeout_ms"] = self._timeout_ms
        group.generation = self._session.generation
        self.requests += 1
        return document

    def _succeeded(self, group: _Group, answer: Mapping[str, Any], segments: Mapping[str, memoryview]) -> None:
        for slot in group.slots:
            slot.fate.id = answer["kept"].get(slot.name)
            if slot.id is not None:
                self._kept[str(slot.name)] = slot.id
            if slot.dropped and slot.id is not None:
                self._session._discard(slot.id, group.generation)
        told = {item["index"]: item for item in answer["ops"]}
        for name, value in (answer.get("timing") or {}).items():
            self.times[name] = self.times.get(name, 0.0) + value
        _settle_events(group, told)
        show_all(answer["ops"])
        for index, op in enumerate(group.ops):
            if op.future is not None and op.settle is not None:
                op.future._inner.set_result(op.settle(told.get(index, {}), segments))

    def _failed(self, group: _Group, error: GpurestError) -> None:
        """The failing operation's future gets the failure itself, all others learn that they were aborted."""
        at = _locate(group, error)
        if at is not None and at.future is not None and not at.future._inner.done():
            at.future._inner.set_exception(error)
        _abort(group, error)
        self._failure = error
        self._reported = self._reported or error

    def _abandon(self, error: Optional[BaseException]) -> None:
        """The with block ended by an exception: nothing more is sent."""
        self.submitted = True
        group, self._group = self._group, _Group()
        _abort(group, error or GpurestError("the batch was given up"))


def _locate(group: _Group, error: GpurestError) -> Optional[_Op]:
    """Says in the error which lines queued the operations of which one failed; returns that one, where it is known which it was."""
    first = error.op_index
    last = error.problem.get("op_index_last", first)
    if first is None or not isinstance(last, int) or not 0 <= first <= last or first >= len(group.ops):
        return None
    ops = group.ops[first:last + 1]
    lines = list(dict.fromkeys(map(named, (ops[0].queued_at, ops[-1].queued_at))))
    kernels = {op.kernel for op in ops}
    if isinstance(error, CudaError):
        error.queued_at, error.kernel = " to ".join(lines), kernels.pop() if len(kernels) == 1 else None
    elif error.hint is None:
        error.hint = f"operation {first if first == last else f'{first} to {last}'}, queued at {' to '.join(lines)}"
    return ops[0] if first == last else None


def _abort(group: _Group, error: BaseException) -> None:
    for slot in group.slots:
        slot.failure = error
    for op in group.ops:
        if op.future is not None and not op.future._inner.done():
            op.future._inner.set_exception(AbortedError(f"not done, since an earlier operation failed: {error}", cause=error))
    for event in group.events:
        event.failure = error


def _settle_events(group: _Group, told: Mapping[int, Mapping[str, Any]]) -> None:
    for number, event in enumerate(group.events):
        event.at_us = 0.0 if number == 0 else float(told[len(group.ops) + number - 1]["elapsed_us"])


def _resolved(value: Any, kept: Mapping[str, str]) -> Any:
    """Names of buffers that an earlier request of the batch has made become their ids."""
    if not kept:
        return value
    if isinstance(value, dict):
        return {key: kept.get(item, item) if key in ("buf", "to", "from") and isinstance(item, str) else _resolved(item, kept)
                for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, kept) for item in value]
    return value


def shown(data: memoryview, dtype: Optional[DType], shape: Optional[Sequence[int]]) -> Any:
    """What a download looks like to the caller; the memory is the answer's, and writable."""
    if dtype is None:
        return data
    if numpy is not None:
        made = numpy.frombuffer(data, dtype.name)
        return made if shape is None else made.reshape(shape)
    return typed_view(data, dtype)

