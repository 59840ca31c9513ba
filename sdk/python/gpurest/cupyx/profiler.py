"""cupyx.profiler."""
from __future__ import annotations

import contextlib
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy

from ..cuda import current_device, synchronize
from ..cupy.cuda import nvtx
from ..cupy.cuda import profile as profile
from ..cupy.missing import refusing
from ..profiler import benchmark as _benchmark

__all__ = ["benchmark", "profile", "time_range"]
__getattr__ = refusing("cupyx.profiler")


class _Result:
    """Seconds: `cpu_times` by the clock of this process, `gpu_times` in kernels, a row for the one device."""

    def __init__(self, name: str, cpu: Sequence[float], gpu: Sequence[float], devices: Sequence[int]) -> None:
        self.name, self.cpu_times, self.gpu_times = name, numpy.asarray(cpu), numpy.asarray([gpu])
        self._devices = tuple(devices)

    def to_str(self, show_gpu: bool = False) -> str:
        """A line: the mean, and the least and most where there are several."""
        parts = [("CPU", self.cpu_times)] + [(f"GPU-{at}", row) for at, row in zip(self._devices, self.gpu_times) if show_gpu]
        return f"{self.name:<20s}:" + "   ".join(f"{what}: {1e6 * row.mean():9.3f} us   +/- {1e6 * row.std():7.3f} (min: {1e6 * row.min():9.3f} / "
                                                  f"max: {1e6 * row.max():9.3f}) us" for what, row in parts)

    def __str__(self) -> str:
        return self.to_str(show_gpu=True)

    def __repr__(self) -> str:
        return str(self)


def benchmark(func: Callable[..., Any], args: Sequence[Any] = (), kwargs: Optional[Dict[str, Any]] = None, n_repeat: int = 10000, *,
              name: Optional[str] = None, n_warmup: int = 10, max_duration: float = float("inf"), devices: Optional[Sequence[int]] = None) -> _Result:
    """Calls `func` so often, for `max_duration` seconds at most, each time until its arrays are there. The times are those that gpurest.profiler splits
    further. `devices` is the current one."""
    def whole(*operands: Any, **options: Any) -> None:
        func(*operands, **options)
        synchronize()

    for _ in range(n_warmup):
        whole(*args, **(kwargs or {}))
    cpu: List[float] = []
    gpu: List[float] = []
    started = time.perf_counter()
    while len(cpu) < n_repeat and (not cpu or time.perf_counter() - started < max_duration):
        before = time.perf_counter()
        one = _benchmark(whole, args, kwargs, n_repeat=1, n_warmup=0)
        cpu.append(time.perf_counter() - before)
        gpu += one.gpu_times
    return _Result(name or str(getattr(func, "__name__", "call")), cpu, gpu, [current_device()])


class time_range(contextlib.ContextDecorator):
    """`with time_range("name"):` or `@time_range()`: a range of cupy.cuda.nvtx. `sync`: it ends when the device is done."""

    def __init__(self, message: Optional[str] = None, color_id: Any = None, argb_color: Any = None, sync: bool = False) -> None:
        self._message, self._sync = message, sync

    def __call__(self, function: Any) -> Any:
        self._message = self._message or str(function.__name__)
        return super().__call__(function)

    def __enter__(self) -> time_range:
        nvtx.RangePush(self._message or "time_range")
        return self

    def __exit__(self, *_: Any) -> None:
        if self._sync:
            synchronize()
        nvtx.RangePop()
