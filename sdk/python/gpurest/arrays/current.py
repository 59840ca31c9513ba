"""The session in which arrays are made when none is named."""

from __future__ import annotations

from typing import Optional, Union

from .._session.default import default_client, default_session
from .._session.session_state import SessionState
from ..errors import ArgumentError
from ._engine.engine import Engine, engine_of
from ._engine.unplaced import unplaced_engine

Where = Optional[SessionState]  # a session of either client; None: the default one


Device = Union[None, int, str]  # its place in the service's list, or its id; None: the chosen one


def placed(session: Where, device: Device) -> Where:
    """Where an array is made that was asked for on a device: in the default client's session there."""
    if device is None:
        return session
    if session is not None:
        raise ArgumentError("pass session= or device=, not both: a session is on one device")
    client = default_client()
    return client._session_on(client._device_id(device))


def current_engine(session: Where = None) -> Engine:
    """Of a session; None: of the default one, or of arrays that are in no session yet."""
    if session is None:
        engine = unplaced_engine()
        if engine is not None:
            return engine
        session = default_session()
    return engine_of(session._for_threads())


def flush(session: Where = None) -> None:
    """Sends everything that is queued, and frees what nobody refers to any more."""
    engine = current_engine(session)
    engine.flush()
    engine.session.free_unused()


def synchronize(session: Where = None) -> None:
    """flush(), and waits for all other work of the session."""
    flush(session)
    current_engine(session).session.sync()
