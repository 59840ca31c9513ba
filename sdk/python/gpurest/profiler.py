"""Where the time of a call goes: this process, the network, the service's queue, the device."""
from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, TextIO

from ._session.client import Client
from ._session.default import default_client
from ._transport.frame import device_us, unpack
from ._transport.transport import server_timing
from ._transport.wire import Request, Response
from .errors import ArgumentError, GpurestError, ProtocolError

__all__ = ["Result", "Traced", "benchmark", "trace"]
_UNITS = 1e6  # printed in microseconds


@dataclass
class Result:
    """Seconds, one entry per repetition. `cpu`: the client's, processor time of the calling thread; `network`: on the wire, the time by the clock
    that requests took of which neither the thread nor the service reports; `queue`: waiting for the device; `gpu`: in kernels; `server`: all that the
    service reports; `requests`: their number. What `f` waits for without a request is in none of them."""
    name: str
    cpu: List[float]
    network: List[float]
    queue: List[float]
    gpu: List[float]
    server: List[float]
    requests: List[int]

    @property
    def cpu_times(self) -> List[float]:
        """CuPy's name."""
        return self.cpu

    @property
    def gpu_times(self) -> List[float]:
        """CuPy's name."""
        return self.gpu

    def __str__(self) -> str:
        columns = ", ".join(f"{label}: {_spread(values)}" for label, values in
                            (("CPU", self.cpu), ("wire", self.network), ("queue", self.queue), ("GPU", self.gpu)))
        return f"{self.name:20s} {columns}, {sum(self.requests) / max(1, len(self.requests)):.1f} requests"


def _spread(values: Sequence[float]) -> str:
    mean = sum(values) / len(values)
    return f"{mean * _UNITS:.3f} us (min {min(values) * _UNITS:.3f} / max {max(values) * _UNITS:.3f})"


class _Watch:
    """Sums up one repetition's requests."""

    def __init__(self) -> None:
        self.requests = 0
        self.waited = self.server = self.queue = self.gpu = 0.0

    def __call__(self, request: Request, response: Response, seconds: float) -> None:
        parts = server_timing(response.headers)
        self.requests += 1
        self.waited += seconds
        self.server += (sum(parts.values()) - (parts.get("kernel", 0.0) if "run" in parts else 0.0)) / 1000  # kernels are a part of a batch's run
        self.queue += parts.get("queue", 0.0) / 1000
        self.gpu += _gpu_seconds(response, parts)


def _gpu_seconds(response: Response, parts: Dict[str, float]) -> float:
    if "kernel" in parts:
        return parts["kernel"] / 1000
    if "vnd.gpurest.batch" not in response.headers.get("content-type", ""):
        return 0.0
    try:
        return device_us(unpack(response.body)[0]) / 1e6
    except (ProtocolError, GpurestError, KeyError):
        return 0.0


def benchmark(f: Callable[..., Any], args: Sequence[Any] = (), kwargs: Optional[Dict[str, Any]] = None, *, n_repeat: int = 100, n_warmup: int = 5,
              name: Optional[str] = None, client: Optional[Client] = None) -> Result:
    """Calls `f` so often and splits each call's time. `client` is the one that `f` uses; None: the default one. Requests of other threads
    on that client would be counted, too."""
    if n_repeat < 1 or n_warmup < 0:
        raise ArgumentError("benchmark() repeats at least once")
    more, transport = kwargs or {}, (client or default_client())._transport
    for _ in range(n_warmup):
        f(*args, **more)
    result = Result(name or str(getattr(f, "__name__", "call")), [], [], [], [], [], [])
    for _ in range(n_repeat):
        watch = _Watch()
        transport.observers.append(watch)
        started, used = time.perf_counter(), time.thread_time()
        try:
            f(*args, **more)
        finally:
            used, elapsed = time.thread_time() - used, time.perf_counter() - started
            transport.observers.remove(watch)
        _add(result, watch, elapsed, used)
    return result


def _add(result: Result, watch: _Watch, elapsed: float, used: float) -> None:
    result.cpu.append(used)
    result.network.append(max(0.0, min(elapsed - used, watch.waited) - watch.server))
    result.queue.append(watch.queue)
    result.gpu.append(watch.gpu)
    result.server.append(watch.server)
    result.requests.append(watch.requests)


@dataclass(frozen=True)
class Traced:
    """One request. `seconds` as seen from here; `server_ms` what the service says it spent, by name (recv, queue, h2d, kernel, d2h)."""
    method: str
    path: str
    status: int
    sent_bytes: int
    received_bytes: int
    seconds: float
    server_ms: Dict[str, float]

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {ms:.3f}" for name, ms in self.server_ms.items() if ms)
        return (f"{self.seconds * 1000:9.3f} ms  {self.status}  {self.method} {self.path}  {self.sent_bytes} bytes up, {self.received_bytes} down"
                + (f"; ms there: {parts}" if parts else ""))


@contextlib.contextmanager
def trace(client: Optional[Client] = None, out: Optional[TextIO] = None) -> Iterator[List[Traced]]:
    """Lists the requests that `client` (None: the default one) makes within the block, of all threads, in the order of their answers;
    with `out` each is also printed there."""
    transport = (client or default_client())._transport
    found: List[Traced] = []

    def observe(request: Request, response: Response, seconds: float) -> None:
        one = Traced(request.method, request.path, response.status, request.body_bytes, memoryview(response.body).nbytes, seconds,
                     server_timing(response.headers))
        found.append(one)
        if out is not None:
            print(one, file=out)

    transport.observers.append(observe)
    try:
        yield found
    finally:
        transport.observers.remove(observe)
