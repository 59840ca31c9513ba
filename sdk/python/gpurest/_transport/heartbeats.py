"""Keeps what has a lease alive as long as this process: a request now and then, where no other was made."""
from __future__ import annotations

import threading
import time
import weakref
from functools import partial
from typing import Any, Callable, List, Optional, Protocol

from .transport import Transport
from .wire import Call

Do = Callable[[Call[Any]], Any]
_CLOCK = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


# Seconds, which pass while the machine sleeps, too: the service's clock goes on then.
clock: Callable[[], float] = time.monotonic if _CLOCK is None else partial(time.clock_gettime, _CLOCK)


class Leased(Protocol):
    """A session of either client."""

    @property
    def _unleased(self) -> bool:
        """It needs no more heartbeats."""
        ...

    def _beat_at(self) -> float:
        """When the next heartbeat is due, by clock()."""
        ...

    def _beat(self, do: Do) -> None:
        """Makes the request; raises nothing that it may meet."""
        ...


class Heartbeats:
    """Of one client: one daemon thread, which is there while it has something to keep, and knows that weakly. A forked child has no such thread."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._changed = threading.Condition()
        self._leased: List[weakref.ref[Leased]] = []
        self._thread: Optional[threading.Thread] = None

    @property
    def running(self) -> bool:
        """The thread is there."""
        return self._thread is not None

    def keep(self, one: Leased) -> None:
        """Until it is over, or nobody refers to it any more."""
        with self._changed:
            if one not in self._alive():
                self._leased.append(weakref.ref(one))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="gpurest-heartbeats", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter is ending
                    self._thread = None
            self._changed.notify()

    def look(self) -> None:
        """One of them is over: without any, the thread ends."""
        with self._changed:
            self._changed.notify()

    # ---- the thread ----

    def _run(self) -> None:
        while True:
            with self._changed:
                pause = self._pause()
                if pause is None:
                    self._thread = None
                    return
                if pause > 0:
                    self._changed.wait(pause)
                    continue
            self._beat_due()

    def _alive(self) -> List[Leased]:
        """With the lock held. Forgets the others."""
        alive = [] if self._transport.closed else [one for one in (reference() for reference in self._leased) if one is not None and not one._unleased]
        self._leased = [weakref.ref(one) for one in alive]
        return alive

    def _pause(self) -> Optional[float]:
        """Until the next heartbeat; None: there is nothing to keep. With the lock held. A function of its own: who waits must hold nothing alive."""
        due = [one._beat_at() for one in self._alive()]
        return min(due) - clock() if due else None

    def _beat_due(self) -> None:
        with self._changed:
            due = [one for one in self._alive() if one._beat_at() <= clock()]
        for one in due:
            one._beat(self._transport.do)
