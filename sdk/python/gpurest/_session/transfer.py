"""Bulk bytes between the host and a buffer: on one connection, or on several at once where one cannot carry them all."""
from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Callable, List, Optional, Tuple

from .._transport.progress import Meter, ProgressOption
from .._transport.transport import Cancel
from .._transport.wire import Request, Response
from ..errors import BusyError, ConflictError, GpurestError, NotFoundError
from . import requests

if TYPE_CHECKING:
    from .session_base import SessionBase

PARALLEL_BYTES_MIN = 64 << 20  # below, one connection is enough
PART_ALIGN_BYTES = 1 << 20
DOWNLOAD_TRIES = 3
TAKE_BACK_S = 10.0
MAY_COME_S = 2.0
TAKE_BACK_PAUSE_S = 0.02
Piece = Callable[[int, memoryview], Request]


def parts_of(size: int, connections: int) -> List[Tuple[int, int]]:
    """(offset, bytes) of what each connection takes."""
    if size < PARALLEL_BYTES_MIN or connections < 2:
        return [(0, size)]
    part = -(-size // connections)
    part += -part % PART_ALIGN_BYTES
    return [(at, min(part, size - at)) for at in range(0, size, part)]


class Transfer:
    """One user call: all its parts, one progress bar, one cancellation."""

    def __init__(self, session: SessionBase, phase: str, size: int, progress: ProgressOption) -> None:
        self._session = session
        self._phase = phase
        self._meter = Meter(progress, size, phase)
        self._cancel = Cancel()
        self._failure: Optional[BaseException] = None
        self.size = size
        self.moved = 0  # bytes, of a transfer over one connection

    def upload(self, data: memoryview, make: Piece) -> None:
        """`make(offset, part)` is the request for a part."""
        self._run([(make(at, data[at:at + size]), None) for at, size in parts_of(len(data), self._session.client.connections)])

    def download(self, into: memoryview, make: Piece) -> None:
        self._run([(make(at, into[at:at + size]), into[at:at + size]) for at, size in parts_of(len(into), self._session.client.connections)])

    def _run(self, parts: List[Tuple[Request, Optional[memoryview]]]) -> None:
        try:
            if len(parts) == 1:
                self._one(*parts[0])
            else:
                self._several(parts)
        except KeyboardInterrupt as interrupt:
            interrupt.args = (f"the {self._phase} of {self.size} bytes in session {self._session.id} was interrupted",)
            raise
        finally:
            self._meter.close()

    def _one(self, request: Request, into: Optional[memoryview]) -> Response:
        session = self._session
        session._check()
        try:
            return session.client._transport.send(request, into, self._count, self._cancel)
        except GpurestError as error:
            session._note(error)
            raise

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


def create_filled(session: SessionBase, bid: str, data: memoryview, progress: ProgressOption) -> None:
    """A new buffer with these bytes. If that fails, or is interrupted, no buffer is left."""
    transfer = Transfer(session, "upload", len(data), progress)
    several = len(parts_of(len(data), session.client.connections)) > 1
    try:
        if several:
            session._do(requests.buffer_create(session.id, bid, len(data)))
            transfer.upload(data, lambda at, part: requests.data_put(session.id, bid, at, part, False))
        else:
            transfer.upload(data, lambda at, part: requests.buffer_create_filled(session.id, bid, part))
    except BaseException as error:
        if several or not refused(error):
            _take_back(session, bid, not several and transfer.moved == len(data))
        raise


def refused(error: BaseException) -> bool:
    """The service has answered: it made nothing."""
    return isinstance(error, GpurestError) and error.status is not None


def _take_back(session: SessionBase, bid: str, may_come: bool) -> None:
    started = time.monotonic()
    while True:
        try:
            session._do(requests.delete(requests.buffer_path(session.id, bid)))
            return
        except GpurestError as error:
            if not delete_again(error, time.monotonic() - started, may_come):
                session._doubtful.append((session.generation, bid))
                return
        time.sleep(TAKE_BACK_PAUSE_S)


def delete_again(error: GpurestError, elapsed_s: float, may_come: bool) -> bool:
    """Deleting a buffer whose upload was given up has failed: whether to try again.

    It is busy until the service has noticed. One that is not there may still come where its bytes had all been sent (`may_come`); otherwise
    it went along with its upload."""
    if isinstance(error, NotFoundError):
        return may_come and elapsed_s < MAY_COME_S
    return isinstance(error, (BusyError, ConflictError)) and elapsed_s < TAKE_BACK_S


def write(session: SessionBase, bid: str, offset: int, data: memoryview, whole: bool, progress: ProgressOption) -> None:
    transfer = Transfer(session, "upload", len(data), progress)
    one = len(parts_of(len(data), session.client.connections)) == 1
    transfer.upload(data, lambda at, part: requests.data_put(session.id, bid, offset + at, part, whole and one))


def read(session: SessionBase, bid: str, offset: int, into: memoryview, progress: ProgressOption) -> None:
    """All bytes are of one moment: several connections agree on the buffer's entity tag. When it changes all the time, one connection
    reads the bytes, in the order of the session's stream."""
    if len(parts_of(len(into), session.client.connections)) > 1:
        for _ in range(DOWNLOAD_TRIES):
            etag = session._do(requests.data_head(session.id, bid))
            try:
                Transfer(session, "download", len(into), progress).download(
                    into, lambda at, part: requests.data_get(session.id, bid, offset + at, len(part), etag))
                return
            except ConflictError as error:
                if error.status != 412:
                    raise
    whole = Transfer(session, "download", len(into), progress)
    whole._run([(requests.data_get(session.id, bid, offset, len(into)), into)])
