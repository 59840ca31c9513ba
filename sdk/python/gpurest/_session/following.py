"""The events of a session as they come: for how long, from where on, and what is done when the connection breaks. Without I/O."""
from __future__ import annotations

import time
from typing import TYPE_CHECKING, Iterator, Optional, Sequence

from .._transport.wire import EventParser, Request, ServerEvent
from ..errors import ConnectionError_, GpurestError
from . import requests

if TYPE_CHECKING:
    from .session_state import SessionState

EVENT_STREAM_S = 30


class Following:
    """One call of events()."""

    def __init__(self, session: SessionState, types: Sequence[str], timeout: Optional[float], last_id: Optional[str]) -> None:
        self._session, self._types = session, tuple(types)
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._parser = EventParser(last_id)
        self._retries = self._tries = session.client._transport.retries

    @property
    def over(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def request(self) -> Optional[Request]:
        """For the next stream, which begins where the last one ended; None when the time is over."""
        self._session._check()
        self._parser.restart()
        left = EVENT_STREAM_S if self._deadline is None else int(min(EVENT_STREAM_S, max(0.0, self._deadline - time.monotonic())) + 0.999)
        return requests.events(self._session.id, self._types, left, self._parser.last_id) if left >= 1 else None

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        self._tries = self._retries
        return self._parser.feed(piece)

    def broke(self, error: GpurestError) -> None:
        """Raises it, unless the stream is to be taken up again."""
        if not isinstance(error, ConnectionError_):
            self._session._note(error)
            raise error
        if self._tries == 0:
            raise error
        self._tries -= 1
