"""Launches: what is known of one, the same for both clients, and how those that wait ask for it."""
from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, Type, TypeVar, Union

from .._shown.printing import show
from .._transport.steps import Steps
from ..errors import ArgumentError, CudaError, GpurestError, NotFoundError, TimeoutError_, from_problem
from . import requests
from .batch import Future, LaunchResult
from .handle import Line, Unpicklable, calling_line, gone, named
from .session_state import entered_streams

if TYPE_CHECKING:
    from .session import Session
    from .session_state import SessionState
    from .stream import Stream

FINISHED = ("succeeded", "failed", "cancelled")
POLL_S = 30


def located(error: GpurestError, kernel: str, queued_at: Optional[Line], stdout: str = "") -> GpurestError:
    """Says which kernel it was, and which line asked for it."""
    if isinstance(error, CudaError):
        error.kernel, error.queued_at = error.kernel or kernel, error.queued_at or (named(queued_at) if queued_at is not None else None)
        error.stdout = error.stdout or stdout
    return error


class LaunchTold(Unpicklable):
    """A launch as the service told of it last."""

    _instead = "pickle its results"

    def __init__(self, session: SessionState, info: Union[Dict[str, Any], bytes], kernel: str, queued_at: Optional[Line]) -> None:
        """`info`: as the service told, or the text of it: see requests.launch()."""
        self._session: Any = session  # of the same client
        self._generation = session.generation
        self._told = info
        self._kernel = kernel
        self._queued_at = queued_at
        if not isinstance(info, bytes) and info.get("state") in FINISHED:
            show(info)

    @property
    def _info(self) -> Dict[str, Any]:
        if isinstance(self._told, bytes):
            self._told = json.loads(self._told)
        found: Dict[str, Any] = self._told  # type: ignore[assignment]
        return found

    def _hear(self, info: Union[Dict[str, Any], bytes]) -> None:
        """What the service tells of it now; what the kernel printed appears when its end is first heard of."""
        known, self._told = self.state in FINISHED, info
        if not known and self.state in FINISHED:
            show(self._info)

    @property
    def id(self) -> str:
        """The launch's number on the server. Of one without timing that has succeeded it is not told: GpurestError."""
        if "id" not in self._info:
            raise GpurestError(f"the launch of {self._kernel} was made with timing=False: when it has ended, nothing is told of it")
        return str(self._info["id"])

    @property
    def state(self) -> str:
        """As last heard, without asking: queued, running, succeeded, failed, cancelled. done() asks."""
        if isinstance(self._told, bytes) and requests.SUCCEEDED in self._told:
            return "succeeded"
        return str(self._info["state"])

    @property
    def gpu_us(self) -> Optional[float]:
        """Device time in microseconds, once it has succeeded."""
        return self._info.get("gpu_us")

    @property
    def stdout(self) -> str:
        """What the kernel printed."""
        return str(self._info.get("stdout") or "")

    @property
    def stdout_truncated(self) -> bool:
        """Whether the kernel printed more than the service keeps: `stdout` is the beginning of it."""
        return bool(self._info.get("stdout_truncated"))

    @property
    def info(self) -> Dict[str, Any]:
        """What the service last said of the launch."""
        return dict(self._info)

    def _waiting(self, timeout: Optional[float]) -> Steps[None]:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.state not in FINISHED:
            left = POLL_S if deadline is None else int(min(POLL_S, max(0.0, deadline - time.monotonic())) + 0.999)
            yield from self._asking(left)
            if deadline is not None and self.state not in FINISHED and time.monotonic() >= deadline:
                raise TimeoutError_(f"{self._kernel} has not ended within {timeout} s; it goes on", phase="kernel")
        self._raise_unless_succeeded()

    def _asking(self, wait_s: int) -> Steps[None]:
        """Hears of it once more. A session that is reset forgets its launches."""
        try:
            self._hear((yield requests.launch_get(self._session.id, self.id, wait_s)))
        except NotFoundError as error:
            if error.code != "launch_not_found":
                raise
            yield from self._session._hearing_of_resets()
            if self._is_void:
                raise gone(f"launch of {self._kernel}", self._session) from error
            raise

    @property
    def _is_void(self) -> bool:
        """Its session was reset since."""
        return bool(self._generation != self._session.generation)

    def _cancelling(self, force: bool) -> Steps[None]:
        if "id" not in self._info:
            return  # it has ended, as id says: nothing is there to cancel, as of one with times that has ended
        status, info = yield requests.launch_cancel(self._session.id, self.id, force)
        self._info.update({name: value for name, value in info.items() if name in ("state", "problem")})
        if status == 202:
            self._info["state"] = "cancelled"
            yield from self._session._hearing_of_resets()

    def _raise_unless_succeeded(self) -> None:
        """Once it has finished. The session hears of failures, which may have ended it."""
        if self.state == "succeeded":
            return
        if self.state == "cancelled":
            more = ", and its session was reset: everything in it is gone" if self._is_void else ""
            raise GpurestError(f"the launch of {self._kernel} was cancelled{more}", code="cancelled")
        error = from_problem(self._info.get("problem") or {"status": 0, "detail": "the launch failed"})
        self._session._note(error, self._generation)
        raise located(error, self._kernel, self._queued_at, self.stdout)


class QueuedTold(LaunchTold):
    """A launch in a batch: known when the batch has run."""

    def __init__(self, session: SessionState, kernel: str, future: Future[LaunchResult]) -> None:
        super().__init__(session, {}, kernel, None)
        self._future = future

    def _waiting(self, timeout: Optional[float]) -> Steps[None]:
        self._future.result(timeout)
        yield from ()

    def _cancelling(self, force: bool) -> Steps[None]:
        raise GpurestError("a launch in a batch is not cancelled by itself")

    @property
    def id(self) -> str:
        """Raises GpurestError: a launch in a batch has no id."""
        raise GpurestError("a launch in a batch has no id of its own")

    @property
    def state(self) -> str:
        if not self._future.done():
            return "queued"
        return "failed" if self._future.exception() is not None else "succeeded"

    @property
    def gpu_us(self) -> Optional[float]:
        return self._future.result().gpu_us if self.state == "succeeded" else None

    @property
    def stdout(self) -> str:
        return self._future.result().stdout if self.state == "succeeded" else ""

    @property
    def stdout_truncated(self) -> bool:
        return self.state == "succeeded" and self._future.result().stdout_truncated


Told = TypeVar("Told", bound=LaunchTold)
Queued = TypeVar("Queued", bound=QueuedTold)
Kinds = Tuple[Type[Told], Type[Queued]]


def launching(kinds: Kinds[Told, Queued], session: SessionState, kernel: str, document: Dict[str, Any], stream: Optional[Stream],
              timeout_ms: Optional[int], wait: bool, timing: bool = True) -> Steps[Union[Told, Queued]]:
    """By a request of its own, or into the batch that is being recorded, which times its launches itself. `kinds`: what becomes of the one and of the other."""
    batch = session._batch_now()
    if batch is not None:
        if timeout_ms is not None:
            raise ArgumentError("in a batch the deadline is the batch's: session.batch(timeout_ms=…)")
        name = batch._stream_of(stream)
        if name:
            document["stream"] = name
        return kinds[1](session, kernel, batch._launch(document, kernel))
    document.update(_how(session, stream, timeout_ms))
    if not (timing or session.client._transport.watched):  # by profilers, who look at times
        document["timing"] = False
    queued_at = calling_line()
    try:
        info = yield requests.launch(session.id, document, None if wait else 0, "timing" in document)
    except GpurestError as error:
        raise located(error, kernel, queued_at)
    launch = kinds[0](session, info, kernel, queued_at)
    if wait:
        yield from launch._waiting(None)
    return launch


def _how(session: SessionState, stream: Optional[Stream], timeout_ms: Optional[int]) -> Dict[str, Any]:
    """The members of a launch that say where it goes and how long it may run."""
    found: Dict[str, Any] = {}
    name = session._stream_name(stream)
    if name:
        found["stream"] = name
    if timeout_ms is None:
        timeout_ms = session.timeout_ms
    if timeout_ms is not None:
        found["timeout_ms"] = timeout_ms
    return found


class Launch(LaunchTold):
    """One launch. After a synchronous one everything is known; after `wait=False` call wait()."""

    def done(self) -> bool:
        """Asks the service, unless it is known."""
        if self.state not in FINISHED:
            self._session._drive(self._asking(0))
        return self.state in FINISHED

    def wait(self, timeout: Optional[float] = None) -> Launch:
        """Returns when it has succeeded; raises what failed, TimeoutError_ (phase "kernel") after `timeout` seconds."""
        self._session._drive(self._waiting(timeout))
        return self

    def result(self, timeout: Optional[float] = None) -> Launch:
        """As wait(), by the name that a batch's launches share with futures."""
        return self.wait(timeout)

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """What wait() would raise; None when it has succeeded."""
        try:
            self.wait(timeout)
        except GpurestError as error:
            return error
        return None

    def cancel(self, force: bool = False) -> None:
        """Cancels a queued launch. A running one ends only with `force`, which resets the session: everything in it is gone."""
        self._session._drive(self._cancelling(force))

    def __repr__(self) -> str:
        return f"<Launch {self._kernel} {self.state}>"


class QueuedLaunch(QueuedTold, Launch):
    """A launch in a batch: known when the batch has run."""

    def done(self) -> bool:
        return self._future.done()


def send_launch(session: Session, *what: Any) -> Launch:
    """See launching(), for programs that wait."""
    return session._drive(launching((Launch, QueuedLaunch), session, *what))


def send_written(session: Session, kernel: str, written: str, stream: Optional[Stream], timeout_ms: Optional[int], wait: bool, timing: bool) -> Launch:
    """As send_launch(), by a request of its own, of which the text up to the last argument is written already."""
    more = "]}"
    if stream is not None or timeout_ms is not None or session.timeout_ms is not None or entered_streams():
        how = _how(session, stream, timeout_ms)
        more = "]" + "".join([f',"{name}":{requests.written(value)}' for name, value in how.items()]) + "}"
    brief = not (timing or session.client._transport.watched)
    if brief:
        more = '],"timing":false' + more[1:]
    queued_at = calling_line(4)
    try:
        answer = session._post(requests.launching(session.id, None if wait else 0, brief, session._stamp), (written + more).encode())
    except GpurestError as error:
        raise located(error, kernel, queued_at)
    info = requests.launch_told(answer)
    launch = Launch(session, info, kernel, queued_at)
    return launch if not wait or type(info) is bytes and answer.status != 202 else launch.wait()
