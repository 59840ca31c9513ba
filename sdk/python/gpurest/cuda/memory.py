"""Device memory of the default client's session on a device, by the names of torch.cuda and CuPy.

A function with `device` None is about the current one. Before it counts, what arrays have queued is sent, and what nobody refers to any more is
freed, which waits for kernels that run: so the figures are those of what the program holds. Where no session has been made yet there is nothing, and
none is made."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Union

from .._session.default import default_client
from .._session.session import Session
from .._session.session_base import MemoryWatcher, SessionBase
from ..arrays import current
from ..errors import ArgumentError, ConflictError, ResourceExhausted
from .devices import DeviceLike, device_id, session_there

_NOTHING: Dict[str, Any] = {"allocated_bytes": 0, "cached_bytes": 0, "reserved_bytes": 0, "free_bytes": 0, "peak_bytes": 0, "limit_bytes": None,
                            "fragmentation": 0.0}
BELOW = 0.1  # of what a session may have: less is low


def memory_stats(device: DeviceLike = None) -> Dict[str, Any]:
    """The service's figures (`allocated_bytes`, `cached_bytes`, `reserved_bytes`, `free_bytes` of the device, `peak_bytes`, `limit_bytes`,
    `fragmentation`), and those that torch has under its names (`allocated_bytes.all.current`, `allocated_bytes.all.peak`,
    `reserved_bytes.all.current`). Bytes; `peak_bytes` is the service's, since the session began or was reset; the other peak is
    max_memory_allocated()."""
    session = session_there(device)
    told = _told(session)
    return {**told, "allocated_bytes.all.current": told["allocated_bytes"], "allocated_bytes.all.peak": _peak(session, told),
            "reserved_bytes.all.current": told["reserved_bytes"]}


def _told(session: Optional[Session]) -> Dict[str, Any]:
    if session is None:
        return dict(_NOTHING)
    current.flush(session)
    told = session.memory()
    _Peak.of(session).see(told)
    return told


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes in buffers, arrays, modules and the like."""
    return int(_told(session_there(device))["allocated_bytes"])


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes taken from the device: allocated, and kept for later allocations."""
    return int(_told(session_there(device))["reserved_bytes"])


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes that were allocated at a time since the session began or was reset, or since reset_peak_memory_stats()."""
    session = session_there(device)
    return _peak(session, _told(session))


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """max_memory_allocated() counts from now on.

    The service itself counts from the session's beginning. So a later peak above that one is exact; of a lower one it is the most that functions of
    this module have seen since, which is less than the truth if memory was allocated and freed between two calls."""
    session = session_there(device)
    if session is not None:
        _Peak.of(session).begin(session.generation, _told(session))


class _Peak:
    """What is known of one session's peak since reset_peak_memory_stats()."""

    def __init__(self) -> None:
        self.generation = 0
        self.before = 0  # the service's peak when counting began
        self.seen = 0

    @staticmethod
    def of(session: Session) -> _Peak:
        found: Optional[_Peak] = getattr(session, "_memory_peak", None)
        if found is None:
            found = _Peak()
            setattr(session, "_memory_peak", found)
        return found

    def begin(self, generation: int, told: Dict[str, Any]) -> None:
        self.generation, self.before, self.seen = generation, int(told["peak_bytes"]), int(told["allocated_bytes"])

    def see(self, told: Dict[str, Any]) -> None:
        self.seen = max(self.seen, int(told["allocated_bytes"]))

    def value(self, generation: int, told: Dict[str, Any]) -> int:
        peak = int(told["peak_bytes"])
        return self.seen if self.generation == generation and peak <= self.before else peak


def _peak(session: Optional[Session], told: Dict[str, Any]) -> int:
    return 0 if session is None else _Peak.of(session).value(session.generation, told)


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """A table of memory_stats() for people; `abbreviated` leaves out what is about the device as a whole."""
    told = memory_stats(device)
    rows = [("allocated", told["allocated_bytes"]), ("most allocated", told["allocated_bytes.all.peak"]), ("kept for later", told["cached_bytes"]),
            ("reserved", told["reserved_bytes"]), ("limit", told["limit_bytes"])]
    if not abbreviated:
        rows.append(("free on the device", told["free_bytes"]))
    session = session_there(device)
    head = f"memory of {session._place()}" if session is not None else f"no session on {device_id(device) or 'any device'} yet"
    lines = [f"  {name:<20}{'none' if value is None else _sized(int(value)):>14}" for name, value in rows]
    return "\n".join([head, *lines, f"  {'fragmentation':<20}{told['fragmentation']:>14.1%}"])


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
    """The session that the default client makes on the device may have this share of its memory, above 0 to 1; an allocation beyond it is refused with
    ResourceExhausted. None: the current device, without a choice whichever the session gets.

    A session's limit is set when it is made: ConflictError when there is one on the device. Call it first, or close that one."""
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 < fraction <= 1:
        raise ArgumentError(f"a fraction of the device's memory is above 0 and at most 1, not {fraction!r}")
    session = session_there(device)
    if session is not None:
        raise ConflictError(f"{session._place()} is there already, with the limit that it was made with",
                            hint="call set_per_process_memory_fraction() before the device is first used, or close that session")
    default_client()._memory_fractions[device_id(device)] = float(fraction)


def set_cache_size(size: Optional[int], device: DeviceLike = None) -> None:
    """The session on the device keeps at most `size` bytes for later allocations; 0: none; None: as many as it likes.

    It is this side that sees to it, now and after each of its requests that allocate, at the price of one request more for each of these. What is
    kept beyond `size` goes back to the device all at once, and with it the rest of what is kept. None: of the current device, without a choice of
    whichever the session gets."""
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
        raise ArgumentError(f"a size is a number of bytes, 0 or more, or None, not {size!r}")
    id, watchers = device_id(device), default_client()._memory_watchers
    watchers[:] = [one for one in watchers if not isinstance(one, _CacheSize) or one.device != id]
    if size is None:
        return
    made = _CacheSize(id, size)
    watchers.append(made)
    session = session_there(device)
    if session is not None:
        made.allocated(session)


class _CacheSize:
    """Of sessions on one device; None: on those that have no other."""

    def __init__(self, device: Optional[str], size: int) -> None:
        self.device, self.size = device, size

    def allocated(self, session: SessionBase) -> None:
        if self._is_for(session) and int(session.memory()["cached_bytes"]) > self.size:
            session.trim()

    def refused(self, session: SessionBase, error: ResourceExhausted) -> bool:
        return False

    def _is_for(self, session: SessionBase) -> bool:
        if self.device is not None:
            return self.device == session.device
        return not any(isinstance(one, _CacheSize) and one.device == session.device for one in session.client._memory_watchers)


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
    """remove() ends the calls. Idempotent."""

    def __init__(self, watcher: _LowMemory, watchers: List[MemoryWatcher]) -> None:
        self._watcher, self._watchers = watcher, watchers

    def remove(self) -> None:
        """The callback is not called any more."""
        if self._watcher in self._watchers:
            self._watchers.remove(self._watcher)


def on_low_memory(callback: Callable[[LowMemory], Optional[bool]], below: Union[int, float] = BELOW) -> LowMemoryHandle:
    """Calls `callback` when device memory runs low in a session of the default client; remove() of what this returns ends that.

    It is called, on the thread whose request it was, when after an allocation less than `below` is left (bytes, or a share of what the session may
    have), once until more is left again; and when an allocation is refused: if it then returns True, the request is made once more, if nothing
    of it had been done. It may free, empty_cache(), and allocate, without being called for that. What it raises is logged ("gpurest.session"). While
    a callback is there every request that allocates costs one more."""
    if isinstance(below, bool) or not isinstance(below, (int, float)) or below < 0 or isinstance(below, float) and below > 1:
        raise ArgumentError(f"below is a number of bytes, or a share from 0.0 to 1.0, not {below!r}")
    watchers = default_client()._memory_watchers
    made = _LowMemory(callback, below)
    watchers.append(made)
    return LowMemoryHandle(made, watchers)


class _LowMemory:
    """One callback. Sessions in which memory is low are remembered, until it no longer is."""

    def __init__(self, callback: Callable[[LowMemory], Optional[bool]], below: Union[int, float]) -> None:
        self._callback, self._below = callback, below
        self._low: Dict[str, bool] = {}

    def allocated(self, session: SessionBase) -> None:
        found = _low_memory_of(session, None)
        least = self._below * (found.left + found.allocated) if isinstance(self._below, float) else self._below
        was, self._low[session.id] = self._low.get(session.id, False), found.left < least
        if self._low[session.id] and not was:
            self._callback(found)

    def refused(self, session: SessionBase, error: ResourceExhausted) -> bool:
        return self._callback(_low_memory_of(session, error)) is True


def _low_memory_of(session: SessionBase, error: Optional[ResourceExhausted]) -> LowMemory:
    told = session.memory()
    allocated, limit = int(told["allocated_bytes"]), told["limit_bytes"]
    left = int(told["free_bytes"]) + int(told["cached_bytes"])
    if limit is not None:
        left = max(0, min(left, int(limit) - allocated))
    requested = error.limit.get("requested") if error is not None else None
    return LowMemory(session, session.device, left, allocated, limit, requested, error)
