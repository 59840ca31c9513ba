"""cupy.cuda's memory pool: what the session on the current device has of its memory."""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Optional

from ... import cuda
from ...cuda.devices import session_on
from ...cuda.memory import UNBOUNDED
from ...errors import OutOfMemoryError
from ..missing import MissingError, refusing

__all__ = ["MemoryPool", "OutOfMemoryError", "get_allocator", "set_allocator", "using_allocator"]

Allocator = Optional[Callable[[int], Any]]
_ALLOCATES = "memory is the service's to allocate, for arrays and gpurest.Session.buffer(); a MemoryPool's malloc and None are taken as allocators"


class MemoryPool:
    """Every pool stands for the same memory: that of the default client's session on the current device. What arrays have queued is computed, and what
    nobody refers to is freed, before figures are taken. Bytes."""

    def __init__(self, allocator: Allocator = None) -> None:
        if allocator is not None:
            raise MissingError(_ALLOCATES)

    def malloc(self, size: int) -> Any:
        """For set_allocator(); memory by itself is not given."""
        raise MissingError(_ALLOCATES)

    def used_bytes(self) -> int:
        """In arrays, buffers, modules and the like."""
        return cuda.memory_allocated()

    def total_bytes(self) -> int:
        """Taken from the device: used, and kept for later."""
        return cuda.memory_reserved()

    def free_bytes(self) -> int:
        """Kept for later."""
        return int(cuda.memory_stats()["cached_bytes"])

    def free_all_blocks(self, stream: Any = None) -> None:
        """Gives what is kept for later back to the device, whatever stream it was used on."""
        cuda.empty_cache()

    def free_all_free(self) -> None:
        """The older name of free_all_blocks()."""
        self.free_all_blocks()

    def n_free_blocks(self) -> int:
        """Not told: the service counts bytes."""
        raise MissingError("the service does not count blocks: free_bytes() says how much is kept for later")

    def set_limit(self, size: Optional[int] = None, fraction: Optional[float] = None) -> None:
        """The session may have so many bytes, 0: as many as the device has, or such a part of the device's memory. The service sees to it."""
        if (size is None) == (fraction is None):
            raise ValueError("set_limit() takes either size= or fraction=")
        if fraction is not None:
            cuda.set_per_process_memory_fraction(fraction or 1.0)
        else:
            cuda.set_memory_limit(size or None)

    def get_limit(self) -> int:
        """Bytes; 0: the device is the limit."""
        limit = session_on(None).memory()["limit_bytes"]
        return 0 if limit is None or limit >= UNBOUNDED else int(limit)


_pool = MemoryPool()
_allocator: Allocator = _pool.malloc


def set_allocator(allocator: Allocator = None) -> None:
    """None: freed memory goes back to the device at once. A MemoryPool's malloc: it is kept for later, as it is from the start. Others are refused."""
    global _allocator
    if allocator is not None and not isinstance(getattr(allocator, "__self__", None), MemoryPool):
        raise MissingError(_ALLOCATES)
    cuda.set_cache_size(0 if allocator is None else None)
    _allocator = allocator


def get_allocator() -> Allocator:
    """What set_allocator() was given."""
    return _allocator


@contextlib.contextmanager
def using_allocator(allocator: Allocator = None) -> Iterator[None]:
    """set_allocator() within the block, for all threads."""
    before = get_allocator()
    set_allocator(allocator)
    try:
        yield
    finally:
        set_allocator(before)


def default_pool() -> MemoryPool:
    """The pool that get_default_memory_pool() gives."""
    return _pool


__getattr__ = refusing("cupy.cuda")
