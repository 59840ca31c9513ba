"""cupy.cuda's names on the devices of the default client's service; see gpurest.cuda, which has more.

Work of a session happens in the order in which it is asked for, and kernels are waited for: so streams are correct by themselves, and overlap nothing.
gpurest.cuda.Stream is for work that overlaps."""
from __future__ import annotations

import contextlib
from typing import Any, Iterator

from ...cuda import is_available
from ..missing import refusing
from . import compiler, device, memory, nvtx, pinned_memory, profiler, runtime, stream
from .device import Device, get_device_id
from .memory import MemoryPool, OutOfMemoryError, get_allocator, set_allocator, using_allocator
from .pinned_memory import PinnedMemoryPointer, PinnedMemoryPool, alloc_pinned_memory, set_pinned_memory_allocator
from .stream import Event, Stream, get_current_stream, get_elapsed_time

PinnedMemory = PinnedMemoryPointer
nvtx_enabled = True

__all__ = ["Device", "Event", "MemoryPool", "OutOfMemoryError", "PinnedMemory", "PinnedMemoryPointer", "PinnedMemoryPool", "Stream", "alloc_pinned_memory",
           "compiler", "device", "get_allocator", "get_current_stream", "get_device_id", "get_elapsed_time", "get_local_runtime_version", "is_available",
           "memory", "nvtx", "nvtx_enabled", "pinned_memory", "profile", "profiler", "runtime", "set_allocator", "set_pinned_memory_allocator", "stream",
           "using_allocator"]

__getattr__ = refusing("cupy.cuda")


@contextlib.contextmanager
def profile() -> Iterator[Any]:
    """Measures the block's kernels and prints their times: gpurest.cuda.profiler."""
    profiler.start()
    try:
        yield
    finally:
        profiler.stop()


def get_local_runtime_version() -> int:
    """That of the service's compiler; see runtime.runtimeGetVersion()."""
    return runtime.runtimeGetVersion()
