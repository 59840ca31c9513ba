"""A look-alike of cuda.core, for programs written against it: the same names and the same order of parameters, on the default client.

What differs: `Device.set_current()` does nothing, since there is no current context here; `ProgramOptions.arch` is the service's to choose;
binary images are not compiled for other devices; there is no interprocess memory and no graph."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from ._session.buffer import Buffer
from ._session.default import default_client
from ._session.event import Event
from ._session.kernel import Dims, Kernel
from ._session.module import Module
from ._session.session import Session
from ._session.stream import Stream
from ._shown import html
from .errors import ArgumentError

__all__ = ["Device", "LaunchConfig", "Program", "ProgramOptions", "ObjectCode", "Kernel", "Stream", "Event", "Buffer", "launch"]


class Device:
    """A device of the service, by its place in the list; None: the one that a new session gets."""

    def __init__(self, device_id: Optional[int] = None) -> None:
        devices = default_client().devices()
        if device_id is None:
            name = default_client().default_session.device
            device_id = next(i for i, one in enumerate(devices) if one["id"] == name)
        if not 0 <= device_id < len(devices):
            raise ArgumentError(f"the service has {len(devices)} devices, there is no device {device_id}")
        self.device_id = device_id
        self.properties: Dict[str, Any] = devices[device_id]

    @property
    def name(self) -> str:
        """The device's name."""
        return str(self.properties["name"])

    def _repr_html_(self) -> str:
        return html.table("gpurest device", html.DEVICE_HEAD, [html.device_row(self.properties)])

    @property
    def uuid(self) -> str:
        """The device's UUID."""
        return str(self.properties["uuid"])

    @property
    def compute_capability(self) -> Tuple[int, int]:
        """The device's compute capability, (major, minor)."""
        major, _, minor = str(self.properties["compute_capability"]).partition(".")
        return int(major), int(minor)

    @property
    def arch(self) -> str:
        """As in sm_{arch}."""
        return str(self.properties["compute_capability"]).replace(".", "")

    @property
    def session(self) -> Session:
        """Where this device's streams, buffers and modules live."""
        return default_client()._session_on(str(self.properties["id"]))

    def set_current(self) -> None:
        """Nothing: every object knows its session."""

    def create_stream(self, options: Any = None) -> Stream:
        """A new stream."""
        return self.session.stream()

    def create_event(self, options: Any = None) -> Event:
        """An event, which is recorded on a stream."""
        return self.session.event()

    def allocate(self, size: int, stream: Optional[Stream] = None) -> Buffer:
        """`size` bytes."""
        return self.session.buffer(size=size)

    def sync(self) -> None:
        """Waits until all work of the session has ended."""
        self.session.sync()

    def __int__(self) -> int:
        return self.device_id

    def __repr__(self) -> str:
        return f"<Device {self.device_id} ({self.name})>"


@dataclass
class LaunchConfig:
    """grid and block as integers or up to three extents; shared memory in bytes."""
    grid: Dims
    block: Dims
    shmem_size: int = 0


@dataclass
class ProgramOptions:
    """Compiler options by cuda.core's names. `arch` is accepted and not sent: code is compiled for the service's device."""
    std: Optional[str] = None
    arch: Optional[str] = None
    debug: bool = False
    lineinfo: bool = False
    max_register_count: Optional[int] = None
    ftz: Optional[bool] = None
    prec_sqrt: Optional[bool] = None
    prec_div: Optional[bool] = None
    fma: Optional[bool] = None
    use_fast_math: bool = False
    extra_device_vectorization: bool = False
    define_macro: Union[None, str, Tuple[str, str], Sequence[Union[str, Tuple[str, str]]]] = None
    undefine_macro: Union[None, str, Sequence[str]] = None
    include_headers: Dict[str, str] = field(default_factory=dict)

    def as_list(self) -> List[str]:
        """The options as the compiler takes them."""
        found: List[str] = []
        if self.std:
            found.append(f"--std={self.std}")
        for name, on in (("--device-debug", self.debug), ("--generate-line-info", self.lineinfo), ("--use_fast_math", self.use_fast_math),
                         ("--extra-device-vectorization", self.extra_device_vectorization)):
            found += [name] if on else []
        for name, value in (("ftz", self.ftz), ("prec-sqrt", self.prec_sqrt), ("prec-div", self.prec_div), ("fmad", self.fma)):
            found += [] if value is None else [f"--{name}={'true' if value else 'false'}"]
        if self.max_register_count is not None:
            found.append(f"--maxrregcount={self.max_register_count}")
        return found + self._macros()

    def _macros(self) -> List[str]:
        given: Any = self.define_macro
        defined = [given] if isinstance(given, (str, tuple)) else list(given or ())
        undefined = [self.undefine_macro] if isinstance(self.undefine_macro, str) else list(self.undefine_macro or ())
        return [f"-D{one}" if isinstance(one, str) else f"-D{one[0]}={one[1]}" for one in defined] + [f"-U{one}" for one in undefined]


class ObjectCode:
    """Compiled code, loaded in the session of a device."""

    def __init__(self, module: Module, code_type: str) -> None:
        self.module = module
        self.code_type = code_type

    def get_kernel(self, name: str) -> Kernel:
        """A kernel of it by its name."""
        return self.module.kernel(name)

    @property
    def code(self) -> bytes:
        """The code, as PTX or a cubin."""
        return self.module.code("cubin" if self.code_type == "cubin" else "ptx")

    @staticmethod
    def from_ptx(code: Union[str, bytes]) -> ObjectCode:
        """PTX, loaded on the current device."""
        return ObjectCode(Device().session.load(code), "ptx")

    @staticmethod
    def from_cubin(code: bytes) -> ObjectCode:
        """A cubin, loaded on the current device."""
        return ObjectCode(Device().session.load(code), "cubin")


class Program:
    """Source code: "c++" or "ptx"."""

    def __init__(self, code: str, code_type: str, options: Optional[ProgramOptions] = None) -> None:
        if code_type not in ("c++", "ptx"):
            raise ArgumentError('code_type is "c++" or "ptx"')
        self.code, self.code_type, self.options = code, code_type, options or ProgramOptions()

    def compile(self, target_type: str = "cubin", name_expressions: Sequence[str] = (), logs: Any = None) -> ObjectCode:
        """Compiles and loads, for the default device. `logs` gets the compiler's words by write(). CompileError shows the line."""
        if target_type not in ("ptx", "cubin"):
            raise ArgumentError('target_type is "ptx" or "cubin"')
        session = Device().session
        if self.code_type == "ptx":
            return ObjectCode(session.load(self.code), "ptx")
        module = session.module(self.code, self.options.as_list(), headers=self.options.include_headers, name_expressions=tuple(name_expressions))
        if logs is not None and module.log:
            logs.write(module.log)
        return ObjectCode(module, target_type)

    def close(self) -> None:
        """Nothing is held."""


def launch(stream: Stream, config: LaunchConfig, kernel: Kernel, *kernel_args: Any) -> None:
    """Launches on the stream. In a batch it is queued; else the end is not waited for: stream.sync() does that."""
    kernel(config.grid, config.block, kernel_args, shared_bytes=config.shmem_size, stream=stream, wait=False)
