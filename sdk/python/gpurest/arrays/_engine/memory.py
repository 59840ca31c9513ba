"""Device memory of arrays, and what becomes of it when nobody needs it any more."""

from __future__ import annotations

from collections import deque
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Deque, List, NamedTuple, Optional

from ..._session.buffer import Buffer, Slot
from ..._values.dtypes import DType
from ...errors import OutOfMemoryError
from . import shapes

if TYPE_CHECKING:
    from ..._session.session import Session

SMALL_BYTES = 1 << 30  # arrays up to this size are left to the service, which refuses what it has no memory for
ARRAY_BYTES_MAX = (1 << 63) - 1  # NumPy's bound


def check_fits(session: "Session", shape: shapes.Shape, dtype: DType) -> None:
    """Refuses an array that the device cannot hold when it is made, as NumPy and CuPy do, not when its operations run."""
    nbytes = shapes.size_of(shape) * dtype.itemsize
    if nbytes > SMALL_BYTES:
        check_bytes(session, nbytes, f"an array of shape {shape} and data type {dtype.name}")


def check_bytes(session: "Session", nbytes: int, what: str) -> None:
    if nbytes <= SMALL_BYTES:
        return
    if nbytes > ARRAY_BYTES_MAX:
        raise ValueError("array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size.")
    if session._device_bytes is None:
        session._device_bytes = int(session.client.device(session.device)["memory"]["total_bytes"])
    total = session._device_bytes
    if nbytes > total:
        raise OutOfMemoryError(f"{what} takes {nbytes} bytes; {session.device} has {total}",
                               code="device_memory_exhausted",
                               problem={"limit": {"name": "device_memory_bytes", "max": total, "used": None, "requested": nbytes}})


class Region(NamedTuple):
    """A buffer of a session. One that lost its last user can be used again: only batches of arrays ever knew it, and these run one behind the other."""

    id: str
    nbytes: int
    generation: int  # of the session, when it was made
    name: str  # the id in quotes, as requests have it


def region_of(id: str, nbytes: int, generation: int) -> Region:
    return Region(id, nbytes, generation, quoted(id))


class DeviceMemory:
    """Who uses a buffer of the session. It is freed along with a later batch, or used again, after the last reference to this object is gone."""

    __slots__ = ("region", "_dead", "_buffer")

    def __init__(self, region: Region, dead: "Deque[Region]") -> None:
        self.region = region
        self._dead = dead
        self._buffer: Optional[Buffer] = None

    def __del__(self) -> None:
        """Appends and nothing else, as it may run at any moment in any thread."""
        if self._buffer is None:
            self._dead.append(self.region)

    @property
    def id(self) -> str:
        return self.region.id

    @property
    def nbytes(self) -> int:
        return self.region.nbytes

    def is_gone(self, generation: int) -> bool:
        """It was there before the session was reset to this generation."""
        return self.region.generation != generation

    def export(self, session: "Session") -> Buffer:
        """The buffer as an object of its own. From now on that one frees it, and it may be known to other streams: nobody uses the memory
        again for something else."""
        if self._buffer is None:
            self._buffer = session._own_buffer(self.id, self.nbytes)
        return self._buffer

    def lend(self, session: "Session") -> Buffer:
        """The buffer as an argument of a kernel that is waited for, on the default stream: it stays this object's, which somebody holds until then."""
        return self._buffer or Buffer(session, Slot(self.id), self.nbytes, None, None, owned=False)


def take_all(dead: "Deque[Region]") -> List[Region]:
    """For one taker at a time; others may append meanwhile."""
    found = []
    while dead:
        found.append(dead.popleft())
    return found


def new_dead() -> "Deque[Region]":
    return deque()
