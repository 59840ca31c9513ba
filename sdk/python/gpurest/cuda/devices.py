"""Devices of the default client's service: which there are, which one is current, and what they are like."""
from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Dict, Mapping, Optional, Tuple, Type, Union

from .._session.client import Client
from .._session.default import choose_device, chosen_device, default_client, enter_device, leave_device
from .._session.session import Session
from .._shown import html
from ..arrays import current
from ..errors import ConnectionError_, GpurestError, TimeoutError_

DeviceLike = Union[None, int, str, "Device"]


@dataclass(frozen=True)
class DeviceProperties:
    """A device as the service describes it, by torch.cuda's names. Sizes are in bytes. `id` is the service's name for it, `backend` "cuda" or
    "cpu", `attributes` what the driver reports."""
    name: str
    id: str
    backend: str
    uuid: str
    state: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_block: int
    max_threads_per_multi_processor: Optional[int]
    shared_memory_per_block: int
    L2_cache_size: int
    attributes: Mapping[str, int] = field(repr=False)


def device_id(device: DeviceLike) -> Optional[str]:
    """The service's id of a device; of the current one where None is given, None without a choice."""
    client = default_client()
    if device is None:
        return chosen_device(client)
    return device._chosen if isinstance(device, Device) else client._device_id(device)


def session_on(device: DeviceLike) -> Session:
    """The default client's session on the device, made at the first use."""
    return default_client()._session_on(device_id(device))


def session_there(device: DeviceLike) -> Optional[Session]:
    """The same if it has been made."""
    return default_client()._session_there(device_id(device))


def is_available() -> bool:
    """The service answers and has a device, a GPU or a processor, that takes work. Makes no session; False while the service cannot be reached
    or is not ready. AuthError without the right token."""
    client = default_client()
    try:
        return client.is_ready() and any(one["state"] == "healthy" for one in client.devices())
    except (ConnectionError_, TimeoutError_):
        return False


def device_count() -> int:
    """How many devices the service has, of all backends; device 0 is the first one that it lists. 0 while it cannot be reached."""
    try:
        return len(default_client().devices())
    except (ConnectionError_, TimeoutError_):
        return 0


def current_device() -> int:
    """The place of the current device in the service's list: the chosen one, else that of the default session, which is made if need be."""
    client = default_client()
    id = chosen_device(client) or client.default_session.device
    return _place_of(client, id)


def _place_of(client: Client, id: str) -> int:
    client._device_id(id)  # has the list there
    return client._known_devices.index(id)


def set_device(device: DeviceLike) -> None:
    """From now on this thread, or asyncio task, computes on this device: by its place in the list, its id ("cuda:1", "cpu:0") or a backend's name.

    It holds for what uses the default client: its default session, arrays, kernels without a session of their own, and sessions that it
    makes. What exists stays where it is. Other threads begin without a choice, as they do with CUDA; None takes the choice back. Within
    `with device(…)` it holds to the end of the block. ArgumentError, which names all devices, if there is none such."""
    choose_device(None if device is None else device_id(device))


class Device:
    """`with gpurest.cuda.device(1):` makes it the current device of this thread or task within the block; `device` and `Device` are one class,
    by torch's and by CuPy's name. None is the device that is current when the object is made, whichever that will be.

    May be entered again, also within itself and by several threads."""

    def __init__(self, device: DeviceLike = None) -> None:
        self._chosen = device_id(device)

    @property
    def name(self) -> str:
        """The service's id of it: "cuda:1"."""
        return self._chosen or default_client().default_session.device

    @property
    def id(self) -> int:
        """Its place in the service's list."""
        return _place_of(default_client(), self.name)

    def use(self) -> None:
        """Makes it the current one, as set_device() does."""
        choose_device(self._chosen)

    def synchronize(self) -> None:
        """See gpurest.cuda.synchronize()."""
        synchronize(self)

    @property
    def compute_capability(self) -> str:
        """As CuPy writes it: "90"."""
        major, minor = get_device_capability(self)
        return f"{major}{minor}"

    @property
    def attributes(self) -> Dict[str, int]:
        """What the driver reports, by the service's names."""
        return dict(get_device_properties(self).attributes)

    @property
    def mem_info(self) -> Tuple[int, int]:
        """(free, total) bytes of the device."""
        return mem_get_info(self)

    def __enter__(self) -> Device:
        enter_device(self._chosen)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        leave_device()

    def _repr_html_(self) -> Optional[str]:
        """In notebooks: the device as the service describes it. None, so that repr() is shown, while it cannot be asked."""
        try:
            return html.table("gpurest device", html.DEVICE_HEAD, [html.device_row(default_client().device(self.name))])
        except GpurestError:
            return None

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return self.name == (other.name if isinstance(other, Device) else other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<Device {self._chosen or 'of the default session'}>"


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """What the service says of the device; None: of the current one. One request."""
    told = _described(device)
    major, _, minor = str(told["compute_capability"]).partition(".")
    attributes: Dict[str, int] = dict(told["attributes"])
    return DeviceProperties(name=told["name"], id=told["id"], backend=told["backend"], uuid=told["uuid"], state=told["state"], major=int(major),
                            minor=int(minor or 0), total_memory=int(told["memory"]["total_bytes"]), multi_processor_count=told["multiprocessors"],
                            warp_size=told["warp_size"], max_threads_per_block=told["max_threads_per_block"],
                            max_threads_per_multi_processor=attributes.get("max_threads_per_multiprocessor"),
                            shared_memory_per_block=told["max_shared_bytes_per_block"], L2_cache_size=told["l2_cache_bytes"], attributes=attributes)


def _described(device: DeviceLike) -> Dict[str, Any]:
    client = default_client()
    return client.device(device_id(device) or client.default_session.device)


def get_device_name(device: DeviceLike = None) -> str:
    """The model: "NVIDIA H200"."""
    return str(_described(device)["name"])


def get_device_capability(device: DeviceLike = None) -> Tuple[int, int]:
    """(major, minor) of the compute capability."""
    found = get_device_properties(device)
    return found.major, found.minor


def mem_get_info(device: DeviceLike = None) -> Tuple[int, int]:
    """(free, total) bytes of the device, whoever has the rest, as the service last heard."""
    memory = _described(device)["memory"]
    return int(memory["free_bytes"]), int(memory["total_bytes"])


def synchronize(device: DeviceLike = None) -> None:
    """Sends what arrays have queued in the default client's session on the device, and returns when all work of that session is done; raises what
    failed. Nothing is to be done where there is no session yet."""
    session = session_there(device)
    if session is not None:
        current.synchronize(session)
