"""Programs: batches that are recorded once, prepared by the service, and run many times with other bytes and other numbers."""
from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NoReturn, Optional, Sequence, Tuple, TypeVar, Union

from .._shown.printing import show_all
from .._transport.frame import device_us
from .._transport.steps import Steps
from .._transport.wire import Call
from .._values.dtypes import DType, dtype_of
from .._values.hostmem import Shape, byte_view, count_of, dtype_from, from_sequence, shape_from, shape_of
from .._values.scalars import Placed, Placeholder
from ..errors import ArgumentError, ClosedError, GpurestError, NotFoundError
from . import requests
from .background import BatchJob
from .batch import SEGMENTS_MAX, Batch, Future, LaunchResult, _abort, _locate, shown
from .buffer import Buffer, Slot
from .handle import Handle
from .run import RunResult, Times
from .transfer import refused

if TYPE_CHECKING:
    from .session import Session
    from .stream import Stream

Job = TypeVar("Job")
RECORDED_OPS_MAX = 4096  # of the contract, for one request


@dataclass
class _Input:
    """A segment that every run brings. `data`: what it brings unless it is given something else."""
    size: int
    data: Optional[memoryview]
    dtype: Optional[DType] = None


@dataclass
class _Output:
    size: int
    dtype: Optional[DType]
    shape: Optional[Shape]


@dataclass
class _Use:
    """A place of a scalar among the arguments of the recorded launches."""
    op: int
    argument: int
    kernel: str
    convert: Callable[[Any], Dict[str, Any]]


class Recording(Batch):
    """The operations of a program, as they are recorded."""

    def __init__(self, session: Session, stream: Optional[Stream], timeout_ms: Optional[int]) -> None:
        super().__init__(session, stream, timeout_ms, RECORDED_OPS_MAX, 1 << 62)
        self.inputs: Dict[str, _Input] = {}
        self.outputs: Dict[str, _Output] = {}
        self.scalars: Dict[str, Placeholder] = {}
        self.uses: Dict[str, List[_Use]] = {}

    def _buffer_name(self) -> str:
        """The same in every recording of the same program, so that putting it twice is putting it once."""
        return f"$b{len(self._group.ops)}"

    def _segment(self, view: memoryview) -> str:
        return self.new_input(f"s-{len(self.inputs)}", _Input(len(view), view))  # no name that input() takes

    def new_input(self, name: str, one: _Input) -> str:
        if len(self.inputs) >= SEGMENTS_MAX:
            raise ArgumentError(f"a program takes at most {SEGMENTS_MAX} segments")
        self.inputs[name] = one
        return name

    def new_output(self, name: str, buffer: Buffer) -> None:
        if len(self.outputs) >= SEGMENTS_MAX:
            raise ArgumentError(f"a program has at most {SEGMENTS_MAX} outputs")
        self._add({"op": "read", "from": buffer._ref, "segment": name})
        self.outputs[name] = _Output(buffer.nbytes, buffer.dtype, buffer._shape)

    def _launch(self, document: Dict[str, Any], kernel: str) -> Future[LaunchResult]:
        if any(isinstance(member, Placed) for argument in document["args"] for member in _members(argument)):
            raise ArgumentError(f"{kernel}: a member of a struct cannot be a scalar of the program")
        index = len(self._group.ops)
        future = super()._launch(document, kernel)
        for at, argument in enumerate(document["args"]):
            if isinstance(argument, Placed):
                self.uses.setdefault(argument.placeholder.name, []).append(_Use(index, at, kernel, argument.convert))
        return future

    def _read(self, ref: str, size: int, dtype: Optional[DType], shape: Optional[Shape]) -> NoReturn:
        raise GpurestError("a program reads at every run: name what is to be read with output()")

    def _bring(self, timeout: Optional[float]) -> NoReturn:
        raise GpurestError("a launch of a program has no result of its own: each run's RunResult tells what was printed, and the times")

    def _flush(self) -> NoReturn:
        raise ArgumentError(f"a program is one request, of at most {RECORDED_OPS_MAX} operations and without barriers")

    def program_document(self) -> Dict[str, Any]:
        document: Dict[str, Any] = {"segments": [{"id": name, "size": one.size} for name, one in self.inputs.items()],
                                    "ops": [op.document for op in self._group.ops]}
        return document if self._timeout_ms is None else {**document, "timeout_ms": self._timeout_ms}

    def replaced(self, name: str, value: Any) -> Dict[str, Dict[str, Any]]:
        """The contract's "args" of a run, for one scalar."""
        args: Dict[str, Dict[str, Any]] = {}
        for use in self.uses.get(name, ()):
            try:
                args.setdefault(str(use.op), {})[str(use.argument)] = use.convert(value)
            except ArgumentError as error:
                raise ArgumentError(f"scalar {name!r}, argument {use.argument} of {use.kernel}: {error.message}") from None
        return args


def _members(argument: Any) -> List[Any]:
    """Of a struct, nested ones included."""
    if not isinstance(argument, dict) or "struct" not in argument:
        return []
    return [deep for member in argument["struct"] for deep in (member, *_members(member))]


@dataclass
class ProgramRun:
    """A run's request, and what to make of its answer."""
    call: Call[requests.BatchAnswer]
    outputs: Dict[str, _Output]
    out: Dict[str, Any]

    def finish(self, answer: requests.BatchAnswer) -> RunResult:
        told, segments = answer
        show_all(told["ops"])
        values = [self._delivered(name, one, segments[name]) for name, one in self.outputs.items()]
        timing = told.get("timing") or {}
        times = Times(float(timing.get("recv_ms") or 0), float(timing.get("compile_ms") or 0), float(timing.get("run_ms") or 0), device_us(told) / 1000)
        return RunResult(list(self.outputs), values, times, "".join(str(op.get("stdout") or "") for op in told["ops"]), "",
                         any(op.get("stdout_truncated") for op in told["ops"]))

    def _delivered(self, name: str, one: _Output, data: memoryview) -> Any:
        if name not in self.out:
            return shown(data, one.dtype, one.shape)
        byte_view(self.out[name])[:] = data
        return self.out[name]


class ProgramBase(Handle):
    """What both clients' programs have in common: the recording, and the runs' requests and answers."""

    _instead = "record it in each process"

    kind = "program"

    def __init__(self, session: Session, name: Optional[str], stream: Optional[Stream], timeout_ms: Optional[int]) -> None:
        super().__init__(session)
        self.name = session._new_name("p") if name is None else name
        self._named = name is not None
        self._recording = Recording(session, stream, timeout_ms)
        self._group = self._recording._group
        self._ready = False
        self._failure: Optional[BaseException] = None
        self._info: Dict[str, Any] = {}
        self._finalizer: Optional[weakref.finalize[Any, Any]] = None

    @property
    def info(self) -> Dict[str, Any]:
        """What the service told when it was prepared: `ops`, `launches`, `prepared_launches` (in graphs), `graphs`, `memory_bytes` of its buffers."""
        return dict(self._info)

    @property
    def inputs(self) -> Tuple[str, ...]:
        """The names that run() takes: inputs, then scalars."""
        return (*(name for name in self._recording.inputs if name.isidentifier()), *self._recording.scalars)

    @property
    def outputs(self) -> Tuple[str, ...]:
        """The names of what a run gives, in the order of their recording."""
        return tuple(self._recording.outputs)

    def __repr__(self) -> str:
        state = "freed" if self._freed else "ready" if self._ready else "not prepared"
        return f"<{type(self).__name__} {self.name}({', '.join(self.inputs)}) -> ({', '.join(self.outputs)}) {state}>"

    # ---- recording ----

    def scalar(self, name: str, value: Union[bool, int, float, Any]) -> Any:
        """A number that run() may replace by its name: pass it to kernels in the place of the number. `value` is what it is else; it, and
        what replaces it, are checked against the parameters that it stands for. Not within structs, and for launches only."""
        self._new_name(name)
        made = Placeholder(name, value, self._recording)
        self._recording.scalars[name] = made
        return made

    def _new_input(self, name: str, data: Any, shape: Any, dtype: Any, to: Optional[Buffer], offset: int) -> Buffer:
        self._new_name(name)
        one, extents = _input_of(data, shape, dtype)
        if one.size < 1:
            raise ArgumentError(f"input {name!r} has no bytes")
        recording = self._recording
        if to is not None:
            self._own(to)
            to._range(offset, one.size)
            recording._add({"op": "write", "to": to._ref, "offset": offset, "segment": recording.new_input(name, one)})
            return to
        slot = Slot(None, recording._buffer_name())
        recording._add({"op": "alloc", "as": slot.name, "segment": recording.new_input(name, one)})
        recording._group.slots.append(slot)
        return Buffer(self._session, slot, one.size, one.dtype, extents, recording)

    def _new_output(self, name: str, buffer: Buffer) -> None:
        self._check_recording()
        _check_name(name)
        if name in self._recording.outputs:
            raise ArgumentError(f"the program has an output {name!r} already")
        self._own(buffer)
        self._recording.new_output(name, buffer)

    def _new_name(self, name: str) -> None:
        self._check_recording()
        _check_name(name)
        if name in self.inputs:
            raise ArgumentError(f"the program has an input or a scalar {name!r} already")

    def _own(self, buffer: Any) -> None:
        if not isinstance(buffer, Buffer):
            raise ArgumentError(f"a buffer is wanted, got a {type(buffer).__name__}")
        if buffer._session is not self._session:
            raise ArgumentError(f"a buffer of {buffer._session._place()}; this program belongs to {self._session._place()}")
        buffer._check()
        buffer._recording()

    def _check_recording(self) -> None:
        self._check()
        if self._session._batch_now() is not self._recording:
            raise GpurestError("a program is recorded within its with block")

    def _begin(self) -> None:
        self._check()
        self._recording.__enter__()

    def _preparing(self, error: Optional[BaseException]) -> Steps[None]:
        """At the end of the block, which `error` has ended if it is one."""
        self._recording._leave()
        if error is not None:
            self._not_made(error)
            return
        self._recording.submitted = True
        if not self._group.ops:
            self._not_made(ArgumentError("the program is empty"))
            raise ArgumentError("the program is empty")
        try:
            if self._session._has_left():
                yield from self._session._freeing()
            self._made((yield requests.program_put(self._session.id, self.name, self._recording.program_document())))
        except BaseException as failure:
            self._not_put(failure)
            raise

    def _made(self, info: Mapping[str, Any]) -> None:
        self._info, self._ready = dict(info), True
        for slot in self._group.slots:
            slot.program = self.name
        if not self._named:
            self._finalizer = weakref.finalize(self, self._session._programs_left.append, (self._generation, self.name))
            self._finalizer.atexit = False

    def _not_made(self, error: BaseException) -> None:
        self._recording.submitted = True
        self._failure = error
        if isinstance(error, GpurestError):
            _locate(self._group, error)
        _abort(self._group, error)

    def _not_put(self, error: BaseException) -> None:
        """If the answer did not come, the service may have it all the same."""
        if not self._named and not refused(error):
            self._session._programs_left.append((self._generation, self.name))
        self._not_made(error)

    # ---- running ----

    def _check_ready(self) -> None:
        if self._failure is not None:
            raise ClosedError(f"the program was never prepared: {self._failure}") from self._failure
        self._check()
        if not self._ready:
            raise GpurestError("the program is not prepared before its with block has ended")

    def _run_of(self, values: Optional[Mapping[str, Any]], named: Mapping[str, Any], out: Optional[Mapping[str, Any]],
                timeout_ms: Optional[int]) -> ProgramRun:
        self._check_ready()
        given = {**(values or {}), **named}
        unknown = sorted(map(str, set(given) - set(self.inputs)))
        if unknown:
            raise ArgumentError(f"the program has no input {', '.join(unknown)}; it has {', '.join(self.inputs) or 'none'}")
        segments = {name: _bytes_of(name, one, given.get(name)) for name, one in self._recording.inputs.items()}
        args: Dict[str, Dict[str, Any]] = {}
        for name in self._recording.scalars:
            if name in given:
                for op, more in self._recording.replaced(name, given[name]).items():
                    args.setdefault(op, {}).update(more)
        document: Dict[str, Any] = {"args": args} if args else {}
        if timeout_ms is not None:
            document["timeout_ms"] = timeout_ms
        answer_s = float(timeout_ms or self._recording._timeout_ms or requests.EXECUTION_TIMEOUT_MS) / 1000
        call = requests.program_run(self._session.id, self.name, document, segments, answer_s)
        return ProgramRun(call, self._recording.outputs, self._checked_out(out))

    def _checked_out(self, out: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
        for name, memory in (out or {}).items():
            one = self._recording.outputs.get(name)
            if one is None:
                raise ArgumentError(f"the program has no output {name!r}; it has {', '.join(self.outputs) or 'none'}")
            view = byte_view(memory, f"out[{name!r}]")
            if view.readonly or len(view) != one.size:
                raise ArgumentError(f"out[{name!r}] must be {one.size} bytes that can be written to")
        return dict(out or {})

    def _located(self, error: GpurestError) -> GpurestError:
        _locate(self._group, error)
        if error.code == "program_not_found" and error.hint is None:
            error.hint = "it was deleted by somebody else"
        return error

    def _running(self, run: ProgramRun) -> Steps[RunResult]:
        try:
            return run.finish((yield run.call))
        except GpurestError as error:
            raise self._located(error)

    def _running_background(self, make: Callable[..., Job], run: ProgramRun) -> Steps[Job]:
        """`make` is the client's class of jobs."""
        try:
            info = yield requests.in_background(run.call)
        except GpurestError as error:
            raise self._located(error)
        session = self._session
        return make(session.client, session, requests.session_job(session.id, info["id"]), info, run.finish, self._located)

    def _freeing(self) -> Steps[None]:
        if self._freed:
            return
        if self._ready and not self._gone():
            try:
                yield requests.program_delete(self._session.id, self.name)
            except NotFoundError:
                pass
        self._freed = True
        if self._finalizer is not None:
            self._finalizer.detach()


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.isidentifier() or len(name.encode()) > 63:
        raise ArgumentError(f"{name!r} is no name: letters, digits and _, at most 63 bytes")


def _input_of(data: Any, shape: Optional[Union[int, Sequence[int]]], dtype: Any) -> Tuple[_Input, Optional[Shape]]:
    kind = None if dtype is None else dtype_of(dtype)
    if (data is None) == (shape is None):
        raise ArgumentError("input() takes either data or shape=")
    if shape is not None:
        sizes, kind = shape_of(shape), kind or dtype_of("f4")
        return _Input(count_of(sizes) * kind.itemsize, None, kind), sizes
    view, extents = _converted(data, kind)
    return _Input(len(view), view, kind or dtype_from(data)), extents if dtype is None else None


def _converted(data: Any, kind: Optional[DType]) -> Tuple[memoryview, Optional[Shape]]:
    if isinstance(data, (list, tuple)):
        if kind is None:
            raise ArgumentError("numbers in a list have no size of their own: pass dtype=")
        data = from_sequence(data, kind)
    return byte_view(data), shape_from(data)


def _bytes_of(name: str, one: _Input, data: Any) -> memoryview:
    """What a run brings for an input."""
    if data is None:
        if one.data is None:
            raise ArgumentError(f"input {name!r} was recorded without data: every run brings its own")
        return one.data
    view, _ = _converted(data, one.dtype)
    kind = dtype_from(data) if not isinstance(data, (list, tuple)) else None
    if kind is not None and one.dtype is not None and kind != one.dtype:
        raise ArgumentError(f"input {name!r} takes {one.dtype.name}, got {kind.name}")
    if len(view) != one.size:
        raise ArgumentError(f"input {name!r} takes {one.size} bytes, got {len(view)}")
    return view


class Program(ProgramBase):
    """A batch that is recorded once and run many times: `with session.program() as step:` records what this thread asks of the session, as a
    batch does, and prepares it at the block's end; nothing of it runs. Then `step.run(…)` is one request, as often as wanted.

    input() names bytes that each run may bring, scalar() a number that it may replace, output() what it reads back. Buffers made in the block are the
    program's: they live with it, keep what the run before has left, and are reached by its outputs alone. The session's buffers that it names are
    used where they are, and kept alive; arrays that it names are computed when they are recorded. On a GPU launches that follow each other
    on one stream are a CUDA graph. 16 programs in a session.

    Recorded by one thread; run by any, and the service does one run of it after the other. After a fault or reset() of the session it
    is lost, and says so."""

    def __enter__(self) -> Program:
        self._begin()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._session._drive(self._preparing(error))

    def input(self, name: str, data: Any = None, *, shape: Optional[Union[int, Sequence[int]]] = None, dtype: Any = None, to: Optional[Buffer] = None,
              offset: int = 0) -> Buffer:
        """Bytes that a run brings by this name: in a new buffer of the program, or with `to` from byte `offset` of that buffer on.

        With `data` (as of Session.buffer()) a run need not give any: it sends what `data` holds then, which is referred to, not copied. Else
        `shape` and `dtype` ("f4") tell how much there will be. Returns the buffer."""
        return self._new_input(name, data, shape, dtype, to, offset)

    def output(self, name: str, buffer: Buffer) -> None:
        """What `buffer` holds at this place is read back by every run, by this name."""
        self._new_output(name, buffer)

    def run(self, values: Optional[Mapping[str, Any]] = None, /, *, out: Optional[Mapping[str, Any]] = None, timeout_ms: Optional[int] = None,
            **named: Any) -> RunResult:
        """Does it all, in one request, and waits for the end. Inputs (anything with the buffer protocol, of the recorded size; lists of numbers) and
        scalars by name, in a mapping or as keywords; what is left out is as recorded. `out`: writable memory for outputs, by name.

        The result has the outputs by name, by position and as attributes, `times` in milliseconds and `stdout`. ArgumentError before anything
        is sent for what does not fit; CudaError names the kernel and the line that recorded it; NotFoundError when the program was deleted elsewhere."""
        return self._session._drive(self._running(self._run_of(values, named, out, timeout_ms)))

    def run_background(self, values: Optional[Mapping[str, Any]] = None, /, *, out: Optional[Mapping[str, Any]] = None,
                       timeout_ms: Optional[int] = None, **named: Any) -> BatchJob[RunResult]:
        """As run(), without waiting: see Batch.submit_background(). What `values` and `named` refer to is sent on return; `out` is filled when the result is
        fetched."""
        job: BatchJob[RunResult] = self._session._drive(self._running_background(BatchJob, self._run_of(values, named, out, timeout_ms)))
        return job

    def free(self) -> None:
        """Deletes it at the service, whoever has put it there under its name, behind a run that is under way. Idempotent."""
        self._session._drive(self._freeing())
