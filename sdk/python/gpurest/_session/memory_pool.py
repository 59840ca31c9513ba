"""The session's device memory, by CuPy's verbs."""
from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .session_base import SessionBase


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
        """None: the device is the limit. session(memory_limit="8GiB") and Session.update() set it."""
        limit = self._session.memory()["limit_bytes"]
        return None if limit is None else int(limit)
