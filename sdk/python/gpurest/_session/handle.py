"""What every object of a session has in common: it belongs to one session and one generation of it, and says so when that is over."""
from __future__ import annotations

import sys
from dis import findlinestarts
from types import CodeType
from typing import TYPE_CHECKING, NoReturn, Optional, Tuple

from ..errors import ClosedError, GpurestError, SessionLostError

if TYPE_CHECKING:
    from .session import Session
    from .session_state import SessionState


class Unpicklable:
    """What belongs to this process's connection to a service: pickling it says what to do instead."""

    _instead = "pickle what it holds"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} objects cannot be pickled, because they belong to this process's connection: {self._instead}")


class Handle(Unpicklable):
    """A server object. `id` is its name on the server."""

    kind = "object"

    def __init__(self, session: Session) -> None:
        self._session = session
        self._generation = session.generation
        self._freed = False

    @property
    def session(self) -> Session:
        """The session that it belongs to."""
        return self._session

    @property
    def freed(self) -> bool:
        """Whether free() was called. What went with its session says so when it is used."""
        return self._freed

    def _gone(self) -> bool:
        """The server has freed it already, with the session or its generation."""
        return self._session._closed or self._session._lost is not None or self._generation != self._session.generation

    def _check(self) -> None:
        """Raises unless the object can be used now."""
        if self._freed:
            raise ClosedError(f"this {self.kind} was freed")
        self._session._check()
        if self._generation != self._session.generation:
            raise gone(self.kind, self._session)


Line = Tuple[CodeType, int]  # of a program: its code, and the instruction there


def calling_line(inside: int = 1) -> Line:
    """Where the nearest frame outside the package stands. What is asked for with every operation; named() makes it readable, and finds the line's number,
    for which all lines of a function before it are read. `inside`: so many calls are known to be of the package."""
    try:
        frame = sys._getframe(inside)
    except ValueError:  # a thread that begins within the package
        frame = sys._getframe(1)
    while (code := frame.f_code).co_filename.startswith(_FOLDER) and frame.f_back is not None:
        frame = frame.f_back
    return code, frame.f_lasti


def levels_to_caller() -> int:
    """For warnings.warn() where this is called: the stacklevel of calling_line()."""
    frame, levels = sys._getframe(1), 1
    while frame.f_code.co_filename.startswith(_FOLDER) and frame.f_back is not None:
        frame, levels = frame.f_back, levels + 1
    return levels


_FOLDER = calling_line.__code__.co_filename.rpartition("_session")[0]  # of the package


def named(line: Line) -> str:
    """"file.py:41"."""
    code, at = line
    number = max([one for one in findlinestarts(code) if one[0] <= at and one[1]], default=(0, code.co_firstlineno))[1]
    return f"{code.co_filename.rpartition('/')[2]}:{number}"


def is_fault(error: GpurestError) -> bool:
    """After it the session's worker is gone, or the session itself."""
    return error.code in ("kernel_fault", "execution_timeout", "session_faulted", "worker_lost", "fault_domain_lost", "device_overheated",
                          "device_reset", "device_lost", "session_not_found", "generation_changed")


def is_ended(error: Optional[GpurestError]) -> bool:
    """The session is not there any more, not even faulted."""
    return isinstance(error, SessionLostError) and error.reason not in ("fault", "reset")


def gone(kind: str, session: SessionState) -> SessionLostError:
    """What was in the session before it was reset."""
    cause = session._reset_cause
    if cause is None or not is_ended(cause):
        return SessionLostError(f"this {kind} is gone: the session was reset since it was made", reason="reset", cause=cause)
    return SessionLostError(f"this {kind} is lost: {cause.message}", reason=cause.reason, cause=cause, problem=cause.problem,
                            hint="the session was reset since: make it again")


def apart(one: SessionState, other: SessionState) -> Tuple[str, str]:
    """For messages: two sessions, with what tells them from each other."""
    return _told(one, other), _told(other, one)


def _told(session: SessionState, other: SessionState) -> str:
    service = f" of {session.client.url}" if session.client.url != other.client.url else ""
    return session._place() + service + (" (the default one)" if session._is_default and not other._is_default else "")


def lost(error: Optional[GpurestError]) -> SessionLostError:
    """What later uses of the session get; the first failure stays visible as the cause."""
    if isinstance(error, SessionLostError) and (is_ended(error) or error.code == "generation_changed"):
        return SessionLostError(error.message, reason=error.reason, cause=error, hint=error.hint, problem=error.problem)
    reason = error.reason if isinstance(error, SessionLostError) else "fault"
    return SessionLostError(f"the session ended: {error.message if error else 'fault'}", reason=reason, cause=error,
                            hint="session.reset() gives it a new worker")
