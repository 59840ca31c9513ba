"""Device memory of the default client's session on a device, by the names of torch.cuda and CuPy.

A function with `device` None is about the current one. Before it counts, what arrays have queued is sent, and what nobody refers to any more is
freed, which waits for kernels that run: so the figures are those of what the program holds. Where no session has been made yet there is nothing, and
none is made."""
from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional

from .._session.client import Client
from .._session.default import default_client
from .._session.following import LowMemoryWatch
from .._session.session import Session
from .._session.session_base import SessionBase
from ..arrays import current
from ..errors import ArgumentError, ResourceExhausted
from .devices import DeviceLike, device_id, session_there

_NOTHING: Dict[str, Any] = {"allocated_bytes": 0, "cached_bytes": 0, "reserved_bytes": 0, "free_bytes": 0, "peak_bytes": 0, "limit_bytes": None,
                            "fragmentation": 0.0}
UNBOUNDED = (1 << 53) - 1  # bytes: the largest number that the contract's JSON has, and more than any device


def memory_stats(device: DeviceLike = None) -> Dict[str, Any]:
    """The service's figures (`allocated_bytes`, `cached_bytes`, `reserved_bytes`, `free_bytes` of the device, `peak_bytes`, `limit_bytes`,
    `fragmentation`), and those that torch has under its names (`allocated_bytes.all.current`, `allocated_bytes.all.peak`,
    `reserved_bytes.all.current`). Bytes."""
    told = _told(session_there(device))
    return {**told, "allocated_bytes.all.current": told["allocated_bytes"], "allocated_bytes.all.peak": told["peak_bytes"],
            "reserved_bytes.all.current": told["reserved_bytes"]}


def _told(session: Optional[Session]) -> Dict[str, Any]:
    if session is None:
        return dict(_NOTHING)
    current.flush(session)
    return session.memory()


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes in buffers, arrays, modules and the like."""
    return int(_told(session_there(device))["allocated_bytes"])


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes taken from the device: allocated, and kept for later allocations."""
    return int(_told(session_there(device))["reserved_bytes"])


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes that were allocated at a time since the session began or was reset, or since reset_peak_memory_stats(). The device's worker
    counts them, so no allocation is too short to be seen."""
    return int(_told(session_there(device))["peak_bytes"])


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """max_memory_allocated() counts from now on."""
    session = session_there(device)
    if session is not None:
        current.flush(session)
        session.reset_peak()


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """A table of memory_stats() for people; `abbreviated` leaves out what is about the device as a whole."""
    told = memory_stats(device)
    rows = [("allocated", told["allocated_bytes"]), ("most allocated", told["peak_bytes"]), ("kept for later", told["cached_bytes"]),
            ("reserved", told["reserved_bytes"]), ("limit", told["limit_bytes"])]
    if not abbreviated:
        rows.append(("free on the device", told["free_bytes"]))
    session = session_there(device)
    head = f"memory of {session._place()}" if session is not None else f"no session on {device_id(device) or 'any device'} yet"
    lines = [f"  {name:<20}{'none' if value is None else _sized(int(value)):>14}" for name, value in rows]
    part = told["fragmentation"]
    return "\n".join([head, *lines, f"  {'fragmentation':<20}{'unknown' if part is None else f'{part:.1%}':>14}"])


def _sized(value: int) -> str:
    size = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{value} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def empty_cache() -> None:
    """Gives the memory that the current session keeps for later allocations back to the device, after freeing what nobody refers to."""
    session = session_there(None)
    if session is not None:
        current.flush(session)
        session.trim()


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """The session that the default client has or makes on the device may have this share of its memory, above 0 to 1; an allocation beyond it is refused
    with ResourceExhausted. What exceeds it already stays. None: the current device, without a choice all devices that have no share of their own."""
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 < fraction <= 1:
        raise ArgumentError(f"a fraction of the device's memory is above 0 and at most 1, not {fraction!r}")
    _bound(device, "memory_fraction", float(fraction))


def set_memory_limit(size: Optional[int], device: DeviceLike = None) -> None:
    """The same in bytes; None: as many as the device has. The later one of both holds."""
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise ArgumentError(f"a limit is a number of bytes, 1 or more, or None, not {size!r}")
    _bound(device, "memory_limit", UNBOUNDED if size is None else min(size, UNBOUNDED))


def set_cache_size(size: Optional[int], device: DeviceLike = None) -> None:
    """The session that the default client has or makes on the device keeps at most `size` bytes of freed memory for later allocations; 0: none; None: as
    many as it likes. What is more goes back to the device, also now. None: of the current device, without a choice of all devices that have no size
    of their own."""
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
        raise ArgumentError(f"a size is a number of bytes, 0 or more, or None, not {size!r}")
    _bound(device, "pool_bytes_max", UNBOUNDED if size is None else min(size, UNBOUNDED))


def _bound(device: DeviceLike, name: str, value: Any) -> None:
    """Of sessions that the default client will place on the device, and of those that are there. None: of any device without a value of its own."""
    id, client = device_id(device), default_client()
    client._bound_memory(id, name, value)
    for session in client._open_sessions():
        bounds = client._bounds_on(session.device)
        if id in (None, session.device) and name in bounds:
            session.update(**{name: bounds[name]})


@dataclass(frozen=True)
class LowMemory:
    """What a callback of on_low_memory() is told. Bytes. `left`: what the session can still have; `requested`: what was refused, None where nothing
    was (or the service did not say); `error`: that refusal."""
    session: SessionBase
    device: str
    left: int
    allocated: int
    limit: Optional[int]
    requested: Optional[int]
    error: Optional[ResourceExhausted]


class LowMemoryHandle:
    """remove() ends the calls."""

    def __init__(self, client: Client, callback: Callable[[LowMemory], Optional[bool]]) -> None:
        self._client, self._callback = client, callback
        self._lock = threading.Lock()
        self._watches: Dict[Session, LowMemoryWatch] = {}
        client._placing.append(self._watch)
        for session in client._open_sessions():
            self._watch(session)

    def _watch(self, session: Session) -> None:
        with self._lock:
            if session in self._watches:  # it was placed just now
                return
            session._reliefs.append(self._refused)
            self._watches[session] = session.on_low_memory(lambda told: self._low(session, told))

    def _low(self, session: Session, told: Mapping[str, Any]) -> None:
        if "code" in told:
            return  # a refusal, of which _refused() hears from the request itself
        limit, used = int(told["limit_bytes"]), int(told["used_bytes"])
        self._callback(LowMemory(session, session.device, max(0, limit - used), used, limit, None, None))

    def _refused(self, session: SessionBase, error: ResourceExhausted) -> bool:
        told = session.memory()
        allocated, limit = int(told["allocated_bytes"]), told["limit_bytes"]
        left = int(told["free_bytes"]) + int(told["cached_bytes"])
        if limit is not None:
            left = max(0, min(left, int(limit) - allocated))
        return self._callback(LowMemory(session, session.device, left, allocated, limit, error.limit.get("requested"), error)) is True

    def remove(self) -> None:
        """The callback is not called any more. Idempotent."""
        with self._lock:
            watches, self._watches = self._watches, {}
            if self._watch in self._client._placing:
                self._client._placing.remove(self._watch)
        for session, watch in watches.items():
            session._reliefs.remove(self._refused)
            watch.remove()


def on_low_memory(callback: Callable[[LowMemory], Optional[bool]]) -> LowMemoryHandle:
    """Calls `callback` when device memory runs low in the sessions that the default client has or makes on devices; remove() of what this returns ends that.

    When more than 90 % of a session's limit come into use the service says so: then it is called on a thread of its own, once until less is in use. And
    when an allocation is refused it is called on the thread whose request it was: if it then returns True, the request is made once more, if
    nothing of it had been done. It may free, empty_cache(), and allocate, without being called for that. What it raises is logged
    ("gpurest.session")."""
    return LowMemoryHandle(default_client(), callback)
