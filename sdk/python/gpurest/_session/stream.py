"""Streams."""
from __future__ import annotations

import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Optional

from .batch import Batch
from .event import Event
from .handle import Handle

if TYPE_CHECKING:
    from .session import Session


class Stream(Handle):
    """A queue of the session: what is on it happens in order, what is on different streams may overlap.

    `with stream:` makes it the one that this thread's launches go to, and records a batch that runs on leaving the block, unless one is
    being recorded already."""

    _instead = "make one in each process"

    kind = "stream"

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session)
        self.name = name
        self._entered = threading.local()  # .own: per entry of this thread the batch that it began, or None
        self._finalizer = weakref.finalize(self, session._stream_names.append, name)
        self._finalizer.atexit = False

    def record(self) -> Event:
        """An event behind what is on the stream now. Outside a batch this waits for the stream."""
        self._check()
        batch = self._session._batch_now()
        if batch is not None:
            return batch.record(self)
        self.sync()
        event = Event(None, "now")
        event.at_us = time.perf_counter() * 1e6
        return event

    def wait(self, event: Event) -> None:
        """What comes after this on the stream happens after the event."""
        self._check()
        batch = self._session._batch_now()
        if batch is not None:
            batch.wait(event, self)
        else:
            event.sync()

    def sync(self) -> None:
        """Returns when everything on the stream is done; raises what failed."""
        self._check()
        self._session.sync(self)

    @property
    def is_done(self) -> bool:
        """Every launch on the stream that this session knows has ended."""
        self._check()
        return not any(item["stream"] == self.name and item["state"] in ("queued", "running") for item in self._session.launches())

    def close(self) -> None:
        """Gives the name back for another stream. Idempotent."""
        if not self._freed:
            self._freed = True
            self._finalizer()

    def __enter__(self) -> Stream:
        self._check()
        own = Batch(self._session).__enter__() if self._session._batch_now() is None else None
        self._entered.own = [*getattr(self._entered, "own", []), own]
        self._session._enter_stream(self)
        return self

    def __exit__(self, *error: Any) -> None:
        self._session._leave_stream(self)
        own: Optional[Batch] = self._entered.own.pop()
        if own is not None:
            own.__exit__(*error)

    def __repr__(self) -> str:
        return f"<Stream {self.name}>"
