"""cupy.cuda.runtime: what there is of CUDA's runtime on the devices of a service."""
from __future__ import annotations

import re
from typing import Any, Dict, Tuple

from ... import cuda
from ..._session.default import default_client
from ...errors import ArgumentError, CudaError
from ..missing import refuse
from . import profiler
from .device import Device
from .names import PROPERTIES

CUDARuntimeError = CudaError
is_hip = False


def getDeviceCount() -> int:
    """Of all backends; 0 while the service cannot be reached."""
    return cuda.device_count()


def getDevice() -> int:
    """The place of the current device in the service's list."""
    return cuda.current_device()


def setDevice(device: int) -> None:
    """Makes it the current one of this thread or task."""
    cuda.set_device(device)


def deviceSynchronize() -> None:
    """Sends what arrays have queued on the current device, and returns when all is done; raises what failed."""
    cuda.synchronize()


def memGetInfo() -> Tuple[int, int]:
    """(free, total) bytes of the current device."""
    return cuda.mem_get_info()


def getDeviceProperties(device: int) -> Dict[str, Any]:
    """By the names of CUDA's struct cudaDeviceProp; those that the service knows nothing of are left out."""
    told = cuda.get_device_properties(device)
    known = told.attributes
    found: Dict[str, Any] = {"name": told.name.encode(), "totalGlobalMem": told.total_memory, "sharedMemPerBlock": told.shared_memory_per_block,
                             "warpSize": told.warp_size, "maxThreadsPerBlock": told.max_threads_per_block, "major": told.major, "minor": told.minor,
                             "multiProcessorCount": told.multi_processor_count, "uuid": told.uuid}
    for name, row in PROPERTIES.items():
        values = [known[one] for one in row.split() if one in known]
        if len(values) == len(row.split()):
            found[name] = tuple(values) if len(values) > 1 else values[0]
    return found


def deviceGetAttribute(attrib: str, device: int) -> int:
    """`attrib`: a cudaDevAttr… of this module, or the name behind that."""
    found = Device(device).attributes
    if attrib not in found:
        raise ArgumentError(f"{attrib!r} is no attribute that device {device} has: pass runtime.cudaDevAttr… or one of {', '.join(sorted(found)[:5])}, …")
    return found[attrib]


def deviceGetPCIBusId(device: int) -> str:
    """Of the device."""
    return Device(device).pci_bus_id


def deviceGetByPCIBusId(pci_bus_id: str) -> int:
    """The place of the device in the service's list."""
    return Device.from_pci_bus_id(pci_bus_id).id


def deviceCanAccessPeer(device: int, peerDevice: int) -> int:
    """0: what is on two devices is in two sessions, each with memory of its own; x.to_device() copies."""
    for one in (device, peerDevice):
        Device(one)  # there must be such
    return 0


def runtimeGetVersion() -> int:
    """Of the service's CUDA compiler, as CUDA writes it: 12080 for 12.8; 0 where there is none."""
    found = re.search(r"(\d+)\.(\d+)", str(default_client().version()["compiler"]))
    return int(found[1]) * 1000 + int(found[2]) * 10 if found else 0


def profilerStart() -> None:
    """Begins to count device times by kernel."""
    profiler.start()


def profilerStop() -> None:
    """Ends it, and prints the times."""
    profiler.stop()


def __getattr__(name: str) -> Any:
    if name.startswith("cudaDevAttr"):
        return name[len("cudaDevAttr"):]
    refuse("cupy.cuda.runtime", name)
