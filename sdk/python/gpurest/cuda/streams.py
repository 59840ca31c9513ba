"""Streams, events and fences by the names of torch.cuda and CuPy."""
from __future__ import annotations

import time
from typing import Any, Dict, Optional

from .._session import requests
from .._session.background import BatchJob
from .._session.default import enter_device, leave_device
from .._session.event import Event as Moment
from .._session.session import Session
from .._session.session_state import SessionState
from .._session.stream import Stream as SessionStream
from ..arrays import current
from ..errors import GpurestError
from .devices import DeviceLike, session_on


class Stream(SessionStream):
    """A stream of the default client's session on `device`; None: on the current one.

    What is on it happens in order, what is on different streams may overlap. `with stream:` makes it the one that this thread's launches go to, and
    its device the current one, as torch does; they go as one request when the block ends. Arrays have a stream of their own. A session has 64
    streams at a time; close(), or nobody referring to it, gives one back. `priority` is accepted and means nothing here."""

    def __init__(self, device: DeviceLike = None, priority: int = 0) -> None:
        session = session_on(device)
        session._check()
        super().__init__(session, session._take_stream_name())

    def __enter__(self) -> Stream:
        super().__enter__()
        enter_device(self.session.device)
        return self

    def __exit__(self, *error: Any) -> None:
        leave_device()
        super().__exit__(*error)

    def synchronize(self) -> None:
        """Returns when everything on the stream is done; raises what failed."""
        self.sync()

    def query(self) -> bool:
        """Whether every launch on the stream has ended. Batches in the background are not looked at: a Fence is."""
        return self.is_done

    @property
    def done(self) -> bool:
        """CuPy's name for query()."""
        return self.is_done

    def record_event(self, event: Optional[Event] = None) -> Event:
        """Records `event`, or a new one, behind what is on the stream now."""
        found = Event() if event is None else event
        found.record(self)
        return found

    def wait_event(self, event: Event) -> None:
        """What comes after this on the stream happens after the event."""
        event.wait(self)

    def wait_stream(self, stream: SessionStream) -> None:
        """What comes after this on the stream happens after what is on the other one now."""
        made = Event()
        made.record(stream)
        made.wait(self)


class Fence:
    """Done when everything is done that was sent before to the session (on `stream`, if one is given): launches that were not waited for, and batches
    in the background, which the service does one after the other. What arrays have queued is sent first.

    Nothing waits for it by itself, neither on this side nor on the device. Thread-safe. `device`: of the default client; None: the current one."""

    def __init__(self, stream: Optional[SessionStream] = None, device: DeviceLike = None) -> None:
        session = session_on(device) if stream is None else stream.session
        if session._batch_now() is not None:
            raise GpurestError("a batch is being recorded: its submit_background() gives a job that says when it is done")
        current.current_engine(session).flush()  # and frees nothing: that would wait for what runs
        self._job = _sent(session, stream)

    def done(self) -> bool:
        """Asks the service, unless it is known. True also when something failed: result() raises it."""
        return self._job.done()

    def wait(self, timeout: Optional[float] = None) -> Fence:
        """Returns when it is done; raises what failed, TimeoutError_ (phase "kernel") after `timeout` seconds."""
        self._job.wait(timeout)
        return self

    def result(self, timeout: Optional[float] = None) -> None:
        """As wait(); there is no value."""
        self._job.result(timeout)

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """What wait() would raise; None when everything has succeeded."""
        return self._job.exception(timeout)

    def __repr__(self) -> str:
        return f"<Fence {self._job.state}>"


class _FenceJob(BatchJob[None]):
    """A batch in the background that waits for all that was before it. The service forgets old results; of a fence that is no loss."""

    def _take_unknown(self, error: GpurestError) -> None:
        session = self._session
        if error.code == "batch_not_found" and session is not None and _is_as_before(session, self._generation):
            self._info["state"] = "succeeded"  # it ends before it is forgotten, and a failure would have ended the session
            self._take_answer(({}, {}))
            return
        super()._take_unknown(error)


def _is_as_before(session: SessionState, generation: int) -> bool:
    told = session._for_threads().info()
    return bool(session._generations_before + told["generation"] == generation and told["state"] == "ready")


def _sent(session: Session, stream: Optional[SessionStream]) -> BatchJob[None]:
    op: Dict[str, Any] = {"op": "sync"}
    if stream is not None:
        op["stream"] = session._stream_name(stream)
    info = session._do(requests.in_background(requests.session_batch(session.id, {"ops": [op]}, {})))
    return _FenceJob(session.client, session, requests.session_job(session.id, info["id"]), info, lambda _: None, lambda _: None)


class Event:
    """A moment of a stream: after what was on it when record() was called.

    In a batch (`with session.batch()`, `with stream:`) it is the device's own moment. Outside, with `enable_timing`, record() waits for the stream
    and takes this process's clock; without it record() returns at once, and the event is a Fence. An event that was never recorded has happened,
    as with CUDA. `blocking` and `interprocess` are accepted and mean nothing here."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._timing = enable_timing
        self._moment: Optional[Moment] = None
        self._fence: Optional[Fence] = None

    def record(self, stream: Optional[SessionStream] = None) -> None:
        """Behind what is on the stream now; None: on all streams of the default client's session on the current device, or, in a batch of it, at
        this place of it. Recorded again, it is the later moment."""
        session = session_on(None) if stream is None else stream.session
        self._moment = self._fence = None
        if session._batch_now() is not None:
            self._moment = session.event() if stream is None else stream.record()
        elif self._timing:
            self._moment = _now(session, stream)
        else:
            self._fence = Fence(stream) if stream is not None else Fence()

    def query(self) -> bool:
        """Whether it has happened."""
        if self._fence is not None:
            return self._fence.done()
        return self._moment is None or self._moment.is_done

    @property
    def done(self) -> bool:
        """CuPy's name for query()."""
        return self.query()

    def synchronize(self) -> None:
        """Returns when it has happened; raises what failed. In a batch that has not been submitted it cannot happen: GpurestError."""
        if self._fence is not None:
            self._fence.wait()
        elif self._moment is not None:
            self._moment.sync()

    def wait(self, stream: Optional[SessionStream] = None) -> None:
        """What comes after this on the stream (None: in the session) happens after the event. Within one batch the device sees to it; else this
        waits until the event has happened."""
        session = session_on(None) if stream is None else stream.session
        batch = session._batch_now()
        if batch is not None and self._moment is not None:
            batch.wait(self._moment, stream)
        else:
            self.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to the other. Both of one batch: by the device's clock. Both recorded outside batches: by this process's
        clock, with the requests between them. Needs enable_timing of both, as torch does."""
        for one in (self, end_event):
            if not one._timing:
                raise GpurestError("elapsed_time() is for events made with enable_timing=True")
            if one._moment is None:
                raise GpurestError("elapsed_time() is for events that have been recorded")
        assert self._moment is not None and end_event._moment is not None
        return end_event._moment - self._moment


def _now(session: Session, stream: Optional[SessionStream]) -> Moment:
    current.current_engine(session).flush()
    session.sync(stream)
    made = Moment(None, "now")
    made.at_us = time.perf_counter() * 1e6
    return made


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """CuPy's name for start_event.elapsed_time(end_event): milliseconds."""
    return start_event.elapsed_time(end_event)
