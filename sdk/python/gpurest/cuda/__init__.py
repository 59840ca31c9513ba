"""Devices, device memory, streams and events by the names that people know from torch.cuda and CuPy.

Everything is about the default client (gpurest.set_default(), GPUREST_URL) and the session that it has on a device: where arrays are, and what kernels
without a session of their own use. "A device" is one of the service's, a GPU or the `cpu` device, by its place in the service's list (1), its id
("cuda:1"), a backend's name ("cpu"), or a Device; None is the current one. Thread-safe."""
from __future__ import annotations

from . import profiler
from .devices import (Device, DeviceProperties, current_device, device_count, get_device_capability, get_device_name, get_device_properties, is_available,
                      mem_get_info, set_device, synchronize)
from .kernels import clear_kernel_cache, warm_up_kernels
from .memory import (LowMemory, LowMemoryHandle, empty_cache, max_memory_allocated, memory_allocated, memory_reserved, memory_stats, memory_summary,
                     on_low_memory, reset_peak_memory_stats, set_cache_size, set_memory_limit, set_per_process_memory_fraction)
from .streams import Event, Fence, Stream, get_elapsed_time

device = Device

__all__ = ["Device", "DeviceProperties", "Event", "Fence", "LowMemory", "LowMemoryHandle", "Stream", "clear_kernel_cache", "current_device", "device",
           "device_count", "empty_cache", "get_device_capability", "get_device_name", "get_device_properties", "get_elapsed_time", "is_available",
           "max_memory_allocated", "mem_get_info", "memory_allocated", "memory_reserved", "memory_stats", "memory_summary", "on_low_memory", "profiler",
           "reset_peak_memory_stats", "set_cache_size", "set_device", "set_memory_limit", "set_per_process_memory_fraction", "synchronize", "warm_up_kernels"]
