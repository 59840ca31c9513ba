"""The events of a session as they come: for how long, from where on, and what is done when the connection breaks. Without I/O."""
from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional, Sequence

from .._transport.wire import EventParser, Request, ServerEvent
from ..errors import ConnectionError_, GpurestError, NotFoundError
from . import requests

if TYPE_CHECKING:
    from .session_state import SessionState

EVENT_STREAM_S = 30
AGAIN_S = 1.0  # before a session is followed again that was lost, or a service that could not be reached
LOW_MEMORY = ("memory.low",)
_log = logging.getLogger("gpurest.session")


class Following:
    """One call of events()."""

    def __init__(self, session: SessionState, types: Sequence[str], timeout: Optional[float], last_id: Optional[str]) -> None:
        self._session, self._types = session, tuple(types)
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._parser = EventParser(last_id)
        self.connected: Callable[[], object] = lambda: None  # called with what comes first on each stream
        self.unwanted: Callable[[], bool] = lambda: False  # asked with each piece, the service's heartbeats among them
        self._retries = self._tries = session.client._transport.retries

    @property
    def over(self) -> bool:
        """Whether the stream has ended for good."""
        return self.unwanted() or self._deadline is not None and time.monotonic() >= self._deadline

    def request(self) -> Optional[Request]:
        """For the next stream, which begins where the last one ended; None when the time is over."""
        self._session._check()
        if self.unwanted():
            return None
        self._parser.restart()
        left = EVENT_STREAM_S if self._deadline is None else int(min(EVENT_STREAM_S, max(0.0, self._deadline - time.monotonic())) + 0.999)
        return requests.events(self._session.id, self._types, left, self._parser.last_id) if left >= 1 else None

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """The events in bytes that have just arrived."""
        self._tries = self._retries
        self.connected()
        return self._parser.feed(piece)

    def broke(self, error: GpurestError) -> None:
        """Raises it, unless the stream is to be taken up again."""
        if not isinstance(error, ConnectionError_):
            self._session._note(error)
            raise error
        if self._tries == 0:
            raise error
        self._tries -= 1


def log_raised() -> None:
    """In the handler of what a callback raised."""
    _log.exception("a callback of on_low_memory() raised")


class LowMemoryTold:
    """A callback of on_low_memory(), without I/O."""

    def __init__(self, session: SessionState, callback: Callable[[Dict[str, Any]], Any]) -> None:
        self._session, self._callback = session, callback
        self._removed = False
        self._last_id: Optional[str] = None

    @property
    def _over(self) -> bool:
        return self._removed or self._session._closed or self._session.client._transport.closed

    def _following(self, connected: Callable[[], object]) -> Following:
        """From where the last one ended."""
        following = Following(self._session, LOW_MEMORY, None, self._last_id)
        following.connected = connected
        following.unwanted = lambda: self._removed
        return following

    def _call(self, event: ServerEvent) -> Any:
        """What the callback returns; None when it raises, which is logged."""
        self._last_id = event.id
        try:
            return self._callback(event.data) if event.type in LOW_MEMORY and not self._over else None
        except Exception:
            log_raised()
            return None

    def _ended(self, error: GpurestError) -> bool:
        """Whether following is over; else it is tried again."""
        if self._over or isinstance(error, NotFoundError):
            return True
        _log.warning("low memory of session %s is not heard of for a moment: %s", self._session.id, error)
        return False


class LowMemoryWatch(LowMemoryTold):
    """Of Session.on_low_memory(): a thread that calls the callback. remove() ends the calls."""

    def __init__(self, session: SessionState, follow: Callable[[Following], Iterator[ServerEvent]], callback: Callable[[Dict[str, Any]], Any]) -> None:
        super().__init__(session, callback)
        self._follow = follow
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpurest-low-memory", daemon=True)
        self._thread.start()
        self._began.wait()

    def remove(self) -> None:
        """The callback is not called any more. Idempotent."""
        self._removed = True

    def _run(self) -> None:
        try:
            while not self._over and self._followed():
                time.sleep(AGAIN_S)
        finally:
            self._began.set()

    def _followed(self) -> bool:
        """Until that breaks; whether it is to be tried again."""
        try:
            for event in self._follow(self._following(self._began.set)):
                self._call(event)
        except GpurestError as error:
            self._began.set()
            return not self._ended(error)
        return True
