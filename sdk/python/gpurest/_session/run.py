"""run(): compile, upload, launch, download and free in one request. Without I/O; both clients use it."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from .._shown.printing import show_all
from .._values.hostmem import byte_view
from .._values.scalars import In, InOut, Out
from .._values.signature import signature
from ..errors import ArgumentError
from . import requests
from .args import Converter, Param, params_declared
from .batch import shown
from .kernel import Dims, dims

Direction = Union[In, Out]


@dataclass(frozen=True)
class Times:
    """Milliseconds on the server: until the request was there, for the compiler, for all operations, and on the device."""
    recv_ms: float
    compile_ms: float
    run_ms: float
    kernel_ms: float


class RunResult:
    """The outputs: by position, by the parameter's name, or as an attribute. `times` says where the time went, `stdout` what kernels printed, and
    `stdout_truncated` whether they printed more than the service keeps."""

    def __init__(self, names: Sequence[str], values: Sequence[Any], times: Times, stdout: str, log: str, stdout_truncated: bool = False) -> None:
        self._values = tuple(values)
        self._names = dict(zip(names, values))
        self.times = times
        self.stdout = stdout
        self.stdout_truncated = stdout_truncated
        self.log = log

    def __getitem__(self, key: Union[int, str]) -> Any:
        return self._values[key] if isinstance(key, int) else self._names[key]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_names"][name]
        except KeyError:
            raise AttributeError(f"no output is named {name!r}; there are {', '.join(self.__dict__['_names']) or 'none'}") from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<RunResult {', '.join(self._names)}>"


class _Place:
    """Stands for a buffer of the request in the conversion of the arguments."""

    def __init__(self, name: str, dtype: Any) -> None:
        self._ref = name
        self.dtype = dtype
        self.session = None

    def _check(self) -> None:
        pass

    def __gpurest_buffer__(self) -> Tuple[Any, int]:
        return self, 0


@dataclass
class Run:
    """A prepared request, and what to do with its answer."""
    document: Dict[str, Any]
    segments: Dict[str, memoryview]
    outputs: List[Tuple[str, str, Union[Out, InOut]]]  # name of the result, segment, where it goes

    def finish(self, answer: requests.BatchAnswer) -> RunResult:
        told, segments = answer
        show_all(told["ops"])
        values = [_delivered(place, segments[segment]) for _, segment, place in self.outputs]
        timing = told.get("timing") or {}
        launch: Mapping[str, Any] = next((op for op in told["ops"] if "gpu_us" in op or "stdout" in op), {})
        times = Times(float(timing.get("recv_ms") or 0), float(timing.get("compile_ms") or 0), float(timing.get("run_ms") or 0),
                      float(launch.get("gpu_us") or 0) / 1000)
        return RunResult([name for name, _, _ in self.outputs], values, times, str(launch.get("stdout") or ""), str(told.get("log") or ""),
                         bool(launch.get("stdout_truncated")))


def _delivered(place: Union[In, Out], data: memoryview) -> Any:
    if place.data is None:
        return shown(data, place.dtype, place.shape)
    byte_view(place.data)[:] = data
    return place.data


def prepare(source: str, kernel: str, args: Sequence[Any], *, n: Optional[int], grid: Optional[Dims], block: Optional[Dims], options: Sequence[str],
            headers: Optional[Mapping[str, str]], shared_bytes: int, timeout_ms: Optional[int]) -> Run:
    """Checks the arguments against the source's own declaration of the kernel, where that can be read."""
    if (n is None) == (grid is None):
        raise ArgumentError("run() takes either n= (a number of threads) or grid= (and block=)")
    declared = signature(source, kernel)
    params = params_declared(declared) if declared is not None else None
    names = ("<" in kernel and [kernel]) or []
    run = Run({"module": requests.module_spec(source, tuple(options), dict(headers or {}), names)}, {}, [])
    ops: List[Dict[str, Any]] = []
    values = [_place(run, ops, i, value, params) for i, value in enumerate(args)]
    launch: Dict[str, Any] = {"op": "launch", "kernel": kernel, "grid": {"threads": int(n)} if n is not None else dims(grid or 1, "grid"),
                              "args": Converter(kernel, params).convert(values, None)}
    if n is not None and block is not None:
        size = dims(block, "block")
        launch["grid"] = [-(-int(n) // size[0])]
    if block is not None:
        launch["block"] = dims(block, "block")
    if shared_bytes:
        launch["shared_bytes"] = shared_bytes
    reads = [{"op": "read", "from": segment.replace("o", "$a"), "segment": segment} for _, segment, _ in run.outputs]
    run.document["ops"] = [*ops, launch, *reads]
    if timeout_ms is not None:
        run.document["timeout_ms"] = timeout_ms
    return run


def _place(run: Run, ops: List[Dict[str, Any]], index: int, value: Any, params: Optional[Sequence[Param]]) -> Any:
    """An argument with a direction becomes a buffer of the request."""
    if not isinstance(value, (In, Out)):
        if hasattr(value, "__gpurest_buffer__"):
            raise ArgumentError(f"argument {index}: run() has no session, so no buffers of one; pass gpurest.In(…), or launch the kernel")
        return value
    name = f"$a{index}"
    if value.uploads:
        run.segments[f"i{index}"] = byte_view(value.data)
        ops.append({"op": "alloc", "as": name, "segment": f"i{index}"})
    else:
        ops.append({"op": "alloc", "as": name, "size": value.size})
    if value.downloads and isinstance(value, (Out, InOut)):
        known = params[index].name if params is not None and index < len(params) else ""
        run.outputs.append((known or f"arg{index}", f"o{index}", value))
    return _Place(name, value.dtype)
