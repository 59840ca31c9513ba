"""The client, the device and the session that functions use which were given none: GPUREST_URL's client, one session per process and device."""
from __future__ import annotations

import atexit
import contextvars
import os
import threading
import weakref
from typing import TYPE_CHECKING, Callable, Optional, Tuple

from ..errors import GpurestError

if TYPE_CHECKING:
    from .client import Client
    from .session import Session

_lock = threading.Lock()
_client: Optional[Client] = None
_chosen = False  # by the program, not by being needed
_make: Optional[Callable[..., Client]] = None
_waiting: Optional[Callable[["Session"], None]] = None
_pid = os.getpid()
# What this thread or task has chosen, innermost last: the id of a device of the default client, None for whichever its sessions get. A tuple, so
# that tasks that inherit it do not see each other's changes.
_devices: contextvars.ContextVar[Tuple[Optional[str], ...]] = contextvars.ContextVar("gpurest_devices", default=(None,))


def made_by(make: Callable[..., Client]) -> None:
    """Says how a client is made: kernels ask for the default session, and clients make kernels, so that this module imports neither."""
    global _make
    _make = make


def default_client() -> Client:
    """The first that connect() made, else one made here, from the environment; in a forked child, another one to the same service."""
    global _client, _chosen, _pid
    with _lock:
        assert _make is not None, "the client's module is imported by the package"
        if _client is None or _client.closed:
            _client, _chosen, _pid = _make(), False, os.getpid()
        elif _pid != os.getpid():
            _client, _pid = _make(**_client._made_with), os.getpid()
        return _client


def offer_default(client: Client) -> None:
    """Takes this one unless another one was chosen before, or has made sessions already because it was needed."""
    global _client, _chosen, _pid
    with _lock:
        taken = _client is not None and not _client.closed and _pid == os.getpid() and (_chosen or _client._open_sessions())
        if not taken:
            _client, _chosen, _pid = client, True, os.getpid()


def chosen_device(client: Client) -> Optional[str]:
    """The id of the device that this thread or task has chosen; None without a choice, and for clients that are not the default one."""
    return _devices.get()[-1] if client is _client else None


def choose_device(id: Optional[str]) -> None:
    """Until the block that enter_device() began ends."""
    _devices.set((*_devices.get()[:-1], id))


def enter_device(id: Optional[str]) -> None:
    """Begins a block with a choice of its own."""
    _devices.set((*_devices.get(), id))


def leave_device() -> None:
    """Ends it: the choice of before holds again."""
    chosen = _devices.get()
    _devices.set(chosen[:-1] if len(chosen) > 1 else (None,))


def default_session() -> Session:
    """That client's session on the chosen device. After a fault it stays lost until reset(): what was on the device is gone, and that should be noticed.
    One that has ended is followed by another one."""
    return default_client().default_session


def may_wait_for_session() -> bool:
    """Whether what needs no session yet may be made without the default one: there is none, and no device was chosen. Without a request."""
    if _devices.get()[-1] is not None:
        return False
    with _lock:
        client = _client if _client is not None and not _client.closed and _pid == os.getpid() else None
    return client is None or not client._has_session_on(None)


def waited_session() -> Session:
    """The default session of those that have chosen no device."""
    return default_client()._session_on(None)


def wait_for_session(call: Callable[[Session], None]) -> None:
    """Has `call` called with each waited_session() that is made."""
    global _waiting
    _waiting = call


def session_made(client: Client, session: Session) -> None:
    """Called by clients with each session that is made for those that have chosen no device."""
    if client is _client and _waiting is not None:
        _waiting(session)


def set_default(client: Optional[Client]) -> None:
    """Makes functions without a client use this one; None: the environment's again. The caller still closes it."""
    global _client, _chosen, _pid
    with _lock:
        _client, _chosen, _pid = client, client is not None, os.getpid()


_unclosed: weakref.WeakSet[Client] = weakref.WeakSet()
EXIT_S = 1.0


def close_at_exit(client: Client) -> None:
    """Clients that are still there when the interpreter ends are closed: else their sessions would count until their idle limit."""
    _unclosed.add(client)


def _at_exit() -> None:
    """Within a bounded time, and silently: the service would notice by itself, later."""
    for client in list(_unclosed):
        try:
            client._transport.hurry(EXIT_S)
            client.close()
        except GpurestError:
            pass


atexit.register(_at_exit)
