"""cupy.cuda.Device: one of the service's devices."""
from __future__ import annotations

from typing import Any, Dict

from ...cuda import Device as _Device
from ...cuda import current_device, device_count
from ...errors import NotFoundError
from ..missing import hint_of, refuse
from . import names


class Device(_Device):
    """`with Device(1):` makes it the current one of this thread or task, `.use()` does so for good. By its place in the service's list, its id
    ("cuda:1"), or none: the current one."""

    @property
    def attributes(self) -> Dict[str, int]:
        """What the driver reports, by CUDA's names as CuPy has them: "MaxThreadsPerBlock"."""
        return {names.cuda_name(name): value for name, value in super().attributes.items()}

    @property
    def pci_bus_id(self) -> str:
        """"0000:17:00.0"; of the `cpu` device all zeros."""
        found = super().attributes
        return "{:04x}:{:02x}:{:02x}.0".format(*(found.get(name, 0) for name in ("pci_domain_id", "pci_bus_id", "pci_device_id")))

    @classmethod
    def from_pci_bus_id(cls, pci_bus_id: str) -> Device:
        """The device at that place of the bus."""
        found = [one for one in map(cls, range(device_count())) if one.pci_bus_id == pci_bus_id.lower()]
        if not found:
            raise NotFoundError(f"no device is at {pci_bus_id!r} of the bus")
        return found[0]

    def __getattr__(self, name: str) -> Any:
        if hint_of("Device", name):
            refuse("Device", name)
        raise AttributeError(f"'Device' object has no attribute {name!r}")


def get_device_id() -> int:
    """The place of the current device in the service's list."""
    return current_device()


def get_compute_capability() -> str:
    """Of the current device: "90"."""
    return Device().compute_capability
