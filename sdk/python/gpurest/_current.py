"""The session in which arrays are made when none is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from ._engine import Engine, engine_of

if TYPE_CHECKING:
    from ._session import Session


def current_engine(session: Optional["Session"] = None) -> Engine:
    if session is None:
        from ._default import default_session

        session = default_session()
    return engine_of(session)


def flush(session: Optional["Session"] = None) -> None:
    """Sends everything that is queued, and frees what nobody refers to any more."""
    engine = current_engine(session)
    engine.flush()
    engine.session.free_unused()


def synchronize(session: Optional["Session"] = None) -> None:
    """flush(), and waits for all other work of the session."""
    flush(session)
    current_engine(session).session.sync()
