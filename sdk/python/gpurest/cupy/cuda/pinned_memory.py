"""cupy.cuda's pinned memory. Transfers go through a socket or memory shared with the service, which need no pinned pages: this is ordinary memory."""
from __future__ import annotations

from typing import Any, Callable, Optional

from ..missing import MissingError


class PinnedMemoryPointer(bytearray):
    """Bytes of this process, for numpy.frombuffer()."""

    @property
    def mem(self) -> PinnedMemoryPointer:
        """The memory that it points into."""
        return self

    def size(self) -> int:
        """In bytes."""
        return len(self)


class PinnedMemoryPool:
    """Keeps nothing: Python's allocator does."""

    def __init__(self, allocator: Optional[Callable[[int], Any]] = None) -> None:
        if allocator is not None:
            raise MissingError("memory of the host is Python's to allocate; pass no allocator")

    def malloc(self, size: int) -> PinnedMemoryPointer:
        """So many bytes, all zero."""
        return PinnedMemoryPointer(size)

    def free(self, mem: Any, size: int) -> None:
        """Memory goes when nobody refers to it any more."""

    def free_all_blocks(self) -> None:
        """None is kept."""

    def n_free_blocks(self) -> int:
        """0: none is kept."""
        return 0


_pool = PinnedMemoryPool()


def alloc_pinned_memory(size: int) -> PinnedMemoryPointer:
    """So many bytes, all zero."""
    return _pool.malloc(size)


def set_pinned_memory_allocator(allocator: Optional[Callable[[int], Any]] = None) -> None:
    """None, or a PinnedMemoryPool's malloc, which all do the same; others are refused."""
    if allocator is not None and not isinstance(getattr(allocator, "__self__", None), PinnedMemoryPool):
        raise MissingError("memory of the host is Python's to allocate; a PinnedMemoryPool's malloc and None are taken as allocators")


def default_pool() -> PinnedMemoryPool:
    """The pool that get_default_pinned_memory_pool() gives."""
    return _pool
