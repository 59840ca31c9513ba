"""cupy.RawKernel and RawModule."""
from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence

import numpy

from .. import RawKernel as _RawKernel
from .. import RawModule as _RawModule
from ..arrays.kernels.binding import Start
from ..arrays.kernels.source import COMPLEX
from ..arrays.ndarray import ndarray
from ..errors import ArgumentError
from .missing import MissingError, hint_of, refuse

_ATTRIBUTES = {"max_threads_per_block": "max_threads", "shared_size_bytes": "shared_bytes", "const_size_bytes": "const_bytes",
               "local_size_bytes": "local_bytes", "num_regs": "registers"}
# What CuPy has for kernels to include, as far as it is there.
HEADERS = {"cupy/complex.cuh": f"#pragma once\n{COMPLEX}namespace thrust {{ using ::complex; }}\n"}


def _with_ours(code: Optional[str], headers: Optional[Mapping[str, str]]) -> Dict[str, str]:
    """The headers that the source names, and those of the caller."""
    return {**{name: text for name, text in HEADERS.items() if name in (code or "")}, **(headers or {})}


def _check(backend: str, translate_cucomplex: bool, jitify: Any) -> None:
    if backend != "nvrtc":
        raise MissingError(f"the service compiles with NVRTC; there is no backend {backend!r}")
    if translate_cucomplex or jitify:
        raise MissingError("source is compiled as it is: translate_cucomplex and jitify are not there; headers= gives it files to include")


class RawKernel(_RawKernel):
    """`RawKernel(code, name)(grid, block, args, shared_mem=0)`: compiled when it is first needed, once per session. Returns when the kernel has ended.

    As in CuPy, an array is passed as the address of its first element: the kernel knows nothing of its strides. gpurest.RawKernel refuses what is not in C
    order. Numbers become the parameter's type where they are of its kind; NumPy's arrays of one element, of any dtype, are passed by value."""

    def __init__(self, code: str, name: str, options: Sequence[str] = (), backend: str = "nvrtc", translate_cucomplex: bool = False, *,
                 enable_cooperative_groups: bool = False, jitify: Any = None, headers: Any = None) -> None:
        _check(backend, translate_cucomplex, jitify)
        super().__init__(code, name, options, headers=_with_ours(code, headers))
        self.options, self.backend, self.enable_cooperative_groups = tuple(options), backend, enable_cooperative_groups
        self.__name__ = name

    def __call__(self, grid: Any, block: Any, args: Sequence[Any] = (), *, shared_mem: int = 0, stream: Any = None, **more: Any) -> Any:
        """Launches, and waits for the end. `stream` is not looked at. `timing`: what is returned has `gpu_us`."""
        more.setdefault("casting", "same_kind")
        more.setdefault("timing", False)  # CuPy's programs ask events for times
        more.setdefault("cooperative", self.enable_cooperative_groups)
        waited = bool(more.get("wait", True))
        return self.kernel(tuple(grid), tuple(block), [_argument(one, waited) for one in args], shared_mem=shared_mem, **more)

    def compile(self, log_stream: Any = None) -> Any:
        """Compiles now; what the compiler says is written to `log_stream`."""
        made = self.kernel
        if log_stream is not None:
            log_stream.write(made.module.log)
        return made

    @property
    def attributes(self) -> Dict[str, Any]:
        """By CuPy's names; those that the service tells."""
        info = self.kernel.info
        return {name: info[ours] for name, ours in _ATTRIBUTES.items() if ours in info}

    def __getattr__(self, name: str) -> Any:
        if name in _ATTRIBUTES:
            return self.attributes[name]
        if hint_of("RawKernel", name):
            refuse("RawKernel", name)
        raise AttributeError(f"'RawKernel' object has no attribute {name!r}")


class RawModule:
    """`RawModule(code=…)` or `RawModule(path=…)`, of PTX or a cubin; `get_function(name)` gives kernels. `name_expressions` instantiate templates."""

    def __init__(self, *, code: Optional[str] = None, path: Optional[str] = None, options: Sequence[str] = (), backend: str = "nvrtc",
                 translate_cucomplex: bool = False, enable_cooperative_groups: bool = False, name_expressions: Optional[Sequence[str]] = None,
                 jitify: Any = None, headers: Any = None) -> None:
        _check(backend, translate_cucomplex, jitify)
        self._module = _RawModule(code=code, path=path, options=options, name_expressions=name_expressions or (),
                                  headers=_with_ours(code, headers))
        self.code, self.file_path, self.options, self.backend = code, path, tuple(options), backend
        self.name_expressions = tuple(name_expressions or ())
        self._cooperative = enable_cooperative_groups

    def compile(self, log_stream: Any = None) -> None:
        """Compiles or loads it now; what the compiler says is written to `log_stream`."""
        log = self._module.log
        if log_stream is not None:
            log_stream.write(log)

    @property
    def module(self) -> Any:
        """The gpurest.Module in the current session."""
        return self._module.compile()

    def get_function(self, name: str) -> RawKernel:
        """By the name in the source, or a name expression."""
        found = RawKernel(str(self.code), name, self.options, enable_cooperative_groups=self._cooperative)
        found._module = self._module
        found.compile()  # so that a wrong name is told here
        return found

    def __getattr__(self, name: str) -> Any:
        if hint_of("RawModule", name):
            refuse("RawModule", name)
        raise AttributeError(f"'RawModule' object has no attribute {name!r}")


def _argument(value: Any, waited: bool) -> Any:
    if isinstance(value, ndarray):
        value._flush()
        return Start(value, waited) if value.size else None
    if isinstance(value, numpy.ndarray):
        if value.size != 1:
            raise ArgumentError(f"an array of the host, of shape {value.shape}: cupy.asarray(x) uploads it; one element is passed by value")
        return value.reshape(())[()]
    return value
