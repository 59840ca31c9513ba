"""cupy.cuda.Stream and Event. A session's work happens in the order in which it is asked for, whichever stream is current, and kernels are waited for."""
from __future__ import annotations

import contextvars
import itertools
from typing import Any, Callable, ClassVar, Optional, Tuple

from ..._session.launch import FINISHED
from ...arrays import flush
from ...cuda import Device
from ...cuda import Event as _Event
from ...cuda import synchronize as _synchronize
from ...cuda.devices import session_there
from ..missing import hint_of, refuse

_numbers = itertools.count(3)  # 0 to 2 are CUDA's own


class Event(_Event):
    """A moment: after all that was asked for before record(). Measures time unless told not to, by this process's clock, so that requests count."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        super().__init__(enable_timing=not disable_timing)
        self.ptr = next(_numbers)

    def record(self, stream: Any = None) -> None:
        """Behind what was asked for on the device of the stream; None: of the current one."""
        with (get_current_stream() if stream is None else stream)._place:
            super().record()


class Stream:
    """Order is kept without streams here; this one can be current, waited for, and recorded on. `null`: the default one. `priority` and the kinds of
    streams mean nothing. gpurest.cuda.Stream is for kernels that overlap."""

    null: ClassVar[Stream]
    ptds: ClassVar[Stream]

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: Optional[int] = None) -> None:
        self.ptr = 0 if null else 2 if ptds else next(_numbers)  # tells streams apart; no address
        self.is_non_blocking = non_blocking
        self.priority = 0 if priority is None else priority
        self._device = None if null or ptds else Device()

    @classmethod
    def from_external(cls, obj: Any) -> Stream:
        """Refused: streams are the service's."""
        refuse("Stream", "from_external")

    @property
    def _place(self) -> Device:
        return self._device or Device()

    @property
    def device_id(self) -> int:
        """The place of its device in the service's list."""
        return self._place.id

    def use(self) -> Stream:
        """Makes it the current one of this thread or task."""
        _current.set((*_current.get()[:-1], self))
        return self

    def __enter__(self) -> Stream:
        _current.set((*_current.get(), self))
        return self

    def __exit__(self, *_: Any) -> None:
        entered = _current.get()
        _current.set(entered[:-1] if len(entered) > 1 else (Stream.null,))

    def synchronize(self) -> None:
        """Sends what arrays have queued on its device, and returns when all is done; raises what failed."""
        _synchronize(self._place)

    @property
    def done(self) -> bool:
        """Whether no kernel runs on its device, or waits there. What arrays have queued is computed first."""
        session = session_there(self._place)
        if session is None:
            return True
        flush(session)
        return not any(one["state"] not in FINISHED for one in session.launches())

    def record(self, event: Optional[Event] = None) -> Event:
        """Records `event`, or a new one."""
        found = Event() if event is None else event
        found.record(self)
        return found

    def wait_event(self, event: Event) -> None:
        """What comes after this happens after the event."""
        event.synchronize()

    def add_callback(self, callback: Callable[[Stream, int, Any], object], arg: Any) -> None:
        """Waits for what was asked for before, then calls callback(stream, 0, arg)."""
        self.synchronize()
        callback(self, 0, arg)

    def launch_host_func(self, callback: Callable[[Any], object], arg: Any) -> None:
        """Waits for what was asked for before, then calls callback(arg)."""
        self.synchronize()
        callback(arg)

    def is_capturing(self) -> bool:
        """Nothing can be captured: gpurest.Session.program() prepares work instead."""
        return False

    def __getattr__(self, name: str) -> Any:
        if hint_of("Stream", name):
            refuse("Stream", name)
        raise AttributeError(f"'Stream' object has no attribute {name!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return hash(self.ptr)

    def __repr__(self) -> str:
        return f"<Stream {self.ptr} (device {-1 if self._device is None else self._device.name})>"


Stream.null, Stream.ptds = Stream(null=True), Stream(ptds=True)
_current: contextvars.ContextVar[Tuple[Stream, ...]] = contextvars.ContextVar("gpurest_cupy_streams", default=(Stream.null,))


def get_current_stream(device_id: int = -1) -> Stream:
    """The one that use() or a `with` block has made current for this thread or task, else the default one."""
    return _current.get()[-1]


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds between two recorded events."""
    return start_event.elapsed_time(end_event)
