"""Bulk bytes over one connection, or over several at once where one cannot carry them all."""
from __future__ import annotations

import threading
from typing import Callable, List, Optional, Tuple

from .connection import Progress
from .progress import Meter, ProgressOption
from .transport import Cancel
from .wire import Request, Response

PARALLEL_BYTES_MIN = 64 << 20  # below, one connection is enough
PART_ALIGN_BYTES = 1 << 20
Piece = Callable[[int, memoryview], Request]
Send = Callable[[Request, Optional[memoryview], Progress, Cancel], Response]


def parts_of(size: int, connections: int) -> List[Tuple[int, int]]:
    """(offset, bytes) of what each connection takes."""
    if size < PARALLEL_BYTES_MIN or connections < 2:
        return [(0, size)]
    part = -(-size // connections)
    part += -part % PART_ALIGN_BYTES
    return [(at, min(part, size - at)) for at in range(0, size, part)]


class Transfer:
    """One user call: all its parts, one progress bar, one cancellation. `send` does a part's request; `place` says in messages where the
    bytes are."""

    def __init__(self, send: Send, connections: int, phase: str, size: int, place: str, progress: ProgressOption) -> None:
        self._send, self._connections = send, connections
        self._phase, self._place = phase, place
        self._meter = Meter(progress, size, phase)
        self._cancel = Cancel()
        self._failure: Optional[BaseException] = None
        self.size = size
        self.moved = 0  # bytes, of a transfer over one connection

    def upload(self, data: memoryview, make: Piece) -> None:
        """`make(offset, part)` is the request for a part."""
        self._run([(make(at, data[at:at + size]), None) for at, size in parts_of(len(data), self._connections)])

    def download_whole(self, into: memoryview, request: Request) -> None:
        """On one connection, whatever the size."""
        self._run([(request, into)])

    def download(self, into: memoryview, make: Piece) -> None:
        self._run([(make(at, into[at:at + size]), into[at:at + size]) for at, size in parts_of(len(into), self._connections)])

    def _run(self, parts: List[Tuple[Request, Optional[memoryview]]]) -> None:
        try:
            if len(parts) == 1:
                self._one(*parts[0])
            else:
                self._several(parts)
        except KeyboardInterrupt as interrupt:
            interrupt.args = (f"the {self._phase} of {self.size} bytes in {self._place} was interrupted",)
            raise
        finally:
            self._meter.close()

    def _one(self, request: Request, into: Optional[memoryview]) -> None:
        self._send(request, into, self._count, self._cancel)

    def _count(self, count: int) -> None:
        self.moved += count
        if self._meter.active:
            self._meter.add(count)

    def _several(self, parts: List[Tuple[Request, Optional[memoryview]]]) -> None:
        threads = [threading.Thread(target=self._thread, args=part, daemon=True, name="gpurest-transfer") for part in parts]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:  # Ctrl-C reaches the waiting thread: the others are to stop, too
            self._cancel.stop()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            raise
        if self._failure is not None:
            raise self._failure

    def _thread(self, request: Request, into: Optional[memoryview]) -> None:
        try:
            self._one(request, into)
        except BaseException as error:
            if self._failure is None and not self._cancel.set:
                self._failure = error
            self._cancel.stop()
