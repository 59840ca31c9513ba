"""The session's device memory, by CuPy's verbs."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Optional, Union

from ..errors import ArgumentError

if TYPE_CHECKING:
    from .session_base import SessionBase

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_bytes(size: Union[int, str, None]) -> Optional[int]:
    """A number of bytes, also written "8GiB", "512 MiB", "4G"; None stays None."""
    if size is None or isinstance(size, int):
        return size
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", size, re.I)
    if not match:
        raise ArgumentError(f"{size!r} is no size: write 8GiB, 512MiB or a number of bytes")
    return int(float(match.group(1)) * _UNITS[match.group(2).upper()])


class MemoryPool:
    """What the session has of the device's memory. Every method is one request."""

    def __init__(self, session: SessionBase) -> None:
        self._session = session

    def used_bytes(self) -> int:
        """Taken by buffers, modules and the like."""
        return int(self._session.memory()["allocated_bytes"])

    def total_bytes(self) -> int:
        """Reserved from the device: used, and kept for later."""
        return int(self._session.memory()["reserved_bytes"])

    def free_bytes(self) -> int:
        """Kept for later: reserved and not used."""
        return int(self._session.memory()["cached_bytes"])

    def free_all_blocks(self) -> None:
        """Frees what finalizers have left behind, and gives memory that is kept for later back to the device."""
        self._session.free_unused()
        self._session.trim()

    def get_limit(self) -> Optional[int]:
        """None: the device is the limit. It is set when the session is made: session(memory_limit="8GiB")."""
        limit = self._session.memory()["limit_bytes"]
        return None if limit is None else int(limit)
