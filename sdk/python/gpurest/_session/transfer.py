"""The bytes of buffers: what is sent and fetched, and what is left when that is broken off."""
from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .._transport.progress import ProgressOption
from .._transport.steps import Steps
from .._transport.transfer import Transfer, parts_of
from ..errors import BusyError, ConflictError, GpurestError, NotFoundError
from . import requests

if TYPE_CHECKING:
    from .session_base import SessionBase
    from .session_state import SessionState

DOWNLOAD_TRIES = 3
TAKE_BACK_S = 10.0
MAY_COME_S = 2.0
TAKE_BACK_PAUSE_S = 0.02


def _transfer(session: SessionBase, phase: str, size: int, progress: ProgressOption) -> Transfer:
    return Transfer(session._send, session.client.connections, phase, size, f"session {session.id}", progress)


def create_filled(session: SessionBase, bid: str, data: memoryview, progress: ProgressOption) -> None:
    """A new buffer with these bytes. If that fails, or is interrupted, no buffer is left."""
    session._allocating(lambda: _create_filled(session, bid, data, progress))


def _create_filled(session: SessionBase, bid: str, data: memoryview, progress: ProgressOption) -> None:
    transfer = _transfer(session, "upload", len(data), progress)
    several = len(parts_of(len(data), session.client.connections)) > 1
    try:
        if several:
            session._do(requests.buffer_create(session.id, bid, len(data)))
            transfer.upload(data, lambda at, part: requests.data_put(session.id, bid, at, part, False))
        else:
            transfer.upload(data, lambda at, part: requests.buffer_create_filled(session.id, bid, part))
    except BaseException as error:
        if several or not refused(error):
            session._drive(taking_back(session, bid, MAY_COME_S if not several and transfer.moved == len(data) else 0.0))
        raise


def refused(error: BaseException) -> bool:
    """The service has answered: it made nothing."""
    return isinstance(error, GpurestError) and error.status is not None


def taking_back(session: SessionState, bid: str, may_come_s: float) -> Steps[None]:
    """Deletes a buffer whose upload was given up.

    It is busy until the service has noticed. One that is not there may still come, for so long, where its bytes had all been sent; otherwise
    it went along with its upload."""
    started = time.monotonic()
    while True:
        try:
            yield requests.delete(requests.buffer_path(session.id, bid))
            return
        except GpurestError as error:
            wait_s = may_come_s if isinstance(error, NotFoundError) else TAKE_BACK_S if isinstance(error, (BusyError, ConflictError)) else 0.0
            if time.monotonic() - started >= wait_s:
                session._doubtful.append((session.generation, bid))
                return
        yield TAKE_BACK_PAUSE_S


def write(session: SessionBase, bid: str, offset: int, data: memoryview, whole: bool, progress: ProgressOption) -> None:
    transfer = _transfer(session, "upload", len(data), progress)
    one = len(parts_of(len(data), session.client.connections)) == 1
    transfer.upload(data, lambda at, part: requests.data_put(session.id, bid, offset + at, part, whole and one))


def read(session: SessionBase, bid: str, offset: int, into: memoryview, progress: ProgressOption) -> None:
    """All bytes are of one moment: several connections agree on the buffer's entity tag. When it changes all the time, one connection
    reads the bytes, in the order of the session's stream."""
    if len(parts_of(len(into), session.client.connections)) > 1:
        for _ in range(DOWNLOAD_TRIES):
            etag = session._do(requests.data_head(session.id, bid))
            try:
                _transfer(session, "download", len(into), progress).download(
                    into, lambda at, part: requests.data_get(session.id, bid, offset + at, len(part), etag))
                return
            except ConflictError as error:
                if error.status != 412:
                    raise
    whole = _transfer(session, "download", len(into), progress)
    whole.download_whole(into, requests.data_get(session.id, bid, offset, len(into)))
