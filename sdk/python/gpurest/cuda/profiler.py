"""Times by kernel: `gpurest.cuda.profiler.start()` and `stop()`, by the names that torch.cuda and CuPy have, or `with profile():`.

The service measures every launch; here its answers to one client are read and added up. So what is asked for while profiling is counted, by whichever
thread: launches, batches, programs, arrays, run(). Of what is done in the background the answer must have been fetched."""
from __future__ import annotations

import json
import re
import sys
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Dict, List, Mapping, Optional, TextIO, Type

from .._session import requests
from .._session.client import Client
from .._session.default import default_client
from .._session.launch import FINISHED
from .._transport.frame import BATCH_TYPE, unpack_document
from .._transport.wire import Request, Response
from ..arrays import current
from ..errors import GpurestError, NotFoundError, ProtocolError

__all__ = ["KernelTime", "profile", "start", "stop"]
_LAUNCHES = re.compile(r"/v1/sessions/[^/?]+/launches")
_PROGRAM = re.compile(r"/v1/sessions/[^/?]+/programs/[^/?]+")
_NAME_CHARS_MAX = 48  # of a line that is printed
Names = Mapping[int, str]  # of the kernels that a batch launches, by the index of the operation


@dataclass
class KernelTime:
    """One kernel: its launches, and their device time in microseconds. `least_us` and `most_us` are of launches that were measured by themselves, None
    without such. Kernels whose launches the device measured only together, as those of a CUDA graph, are one entry, with all their names. `operations`
    is what a kernel of arrays does, whose name is generated."""
    name: str
    calls: int = 0
    total_us: float = 0.0
    least_us: Optional[float] = None
    most_us: Optional[float] = None
    operations: str = ""

    @property
    def mean_us(self) -> float:
        """Of all calls; 0 without any."""
        return self.total_us / self.calls if self.calls else 0.0


class profile:
    """`with gpurest.cuda.profiler.profile() as seen:` counts what `client` (None: the default one) is asked for within the block, and prints
    the table when it ends, to `out` (None: standard output) unless `quiet`. What arrays have queued is sent before and at the end.

    Then `seen.kernels` has the times, the longest total first, `seen.seconds` how long the block took, and `seen.unfinished` how many launches had
    not ended, or were in the background and not fetched: they are not counted."""

    def __init__(self, client: Optional[Client] = None, out: Optional[TextIO] = None, quiet: bool = False) -> None:
        self._client = client
        self._out, self._quiet = out, quiet
        self._lock = threading.Lock()
        self._times: Dict[str, KernelTime] = {}
        self._launches: Dict[str, str] = {}  # kernels' names, by the path of a launch that has not ended
        self._jobs: Dict[str, Names] = {}  # by the path of a batch in the background
        self._programs: Dict[str, Names] = {}  # by path
        self._started = 0.0
        self.seconds = 0.0

    @property
    def kernels(self) -> List[KernelTime]:
        """The times so far, the longest total first."""
        with self._lock:
            return sorted(self._times.values(), key=lambda one: -one.total_us)

    @property
    def unfinished(self) -> int:
        """Launches that have not ended, as far as is known, or whose results nobody has fetched."""
        with self._lock:
            return len(self._launches) + sum(len(names) for names in self._jobs.values())

    def __enter__(self) -> profile:
        self._client = self._client or default_client()
        _flush(self._client)
        self._client._transport.observers.append(self._observe)
        self._started = time.perf_counter()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        client = self._client
        assert client is not None
        try:
            if error is None:
                _flush(client)
                self._ask(client)
                self._describe(client)
        finally:
            self.seconds = time.perf_counter() - self._started
            client._transport.observers.remove(self._observe)
        if not self._quiet:
            print(self, file=self._out or sys.stdout)

    def _ask(self, client: Client) -> None:
        """Once for each launch whose end nobody has heard of; _observe() hears the answers."""
        with self._lock:
            paths = list(self._launches)
        for path in paths:
            try:
                client._transport.do(requests.get(path))
            except NotFoundError:
                pass  # its session is gone

    def _describe(self, client: Client) -> None:
        known: Dict[str, str] = {}
        for session in client._open_sessions():
            known.update(current.current_engine(session).operations)
        with self._lock:
            for one in self._times.values():
                one.operations = ", ".join(known[name] for name in one.name.split(" + ") if name in known)

    # ---- what is heard ----

    def _observe(self, request: Request, response: Response, seconds: float) -> None:
        """An answer that cannot be read is somebody else's to report."""
        if response.status >= 300 or request.method == "DELETE":
            return
        path = request.path.partition("?")[0]
        try:
            if BATCH_TYPE in response.headers.get("content-type", ""):
                self._batch(self._names_of(request, path), unpack_document(response.body)[0])
            elif request.headers.get("Content-Type") == BATCH_TYPE:
                self._job(request, path, response)
            elif _LAUNCHES.match(path):
                self._launch(path, request, response)
            elif request.method == "PUT" and _PROGRAM.fullmatch(path):
                with self._lock:
                    self._programs[path] = _launched(json.loads(bytes(request.pieces[0])))
        except (ProtocolError, GpurestError, KeyError, ValueError):
            pass

    def _names_of(self, request: Request, path: str) -> Names:
        if path.endswith("/result"):
            with self._lock:
                return self._jobs.pop(path[:-len("/result")], {})
        program = _PROGRAM.match(path)
        if program is None:
            return _launched(unpack_document(request.pieces[0])[0])
        with self._lock:
            return self._programs.get(program.group(0), {})

    def _job(self, request: Request, path: str, response: Response) -> None:
        """A batch, or a run of a program, that goes to the background."""
        program = _PROGRAM.match(path)
        names = self._names_of(request, path)
        jobs = path if program is None else path.partition("/programs/")[0] + "/batches"
        with self._lock:
            self._jobs[f"{jobs}/{requests.enc(str(response.json()['id']))}"] = names

    def _launch(self, path: str, request: Request, response: Response) -> None:
        told = response.json()
        posted = request.method == "POST"
        if posted:
            path += "/" + requests.enc(str(told["id"]))
        with self._lock:
            if not posted and path not in self._launches:
                return  # a list, or a launch from before
            self._launches[path] = _kernel_of(told)
            if told["state"] in FINISHED:
                name = self._launches.pop(path)
                if told.get("gpu_us") is not None:
                    self._add(name, float(told["gpu_us"]), 1)

    def _batch(self, names: Names, answer: Mapping[str, Any]) -> None:
        """Launches of a program that was made before have no names here, only places: any operation of its groups may be one."""
        with self._lock:
            for op in answer.get("ops", ()):
                if op.get("gpu_us") is not None:
                    self._add(names.get(op["index"], f"operation {op['index']}"), float(op["gpu_us"]), 1)
            for group in answer.get("gpu_groups", ()):
                found = [names.get(index, f"operation {index}") for index in range(group["first"], group["last"] + 1) if index in names or not names]
                if found:
                    self._add(" + ".join(dict.fromkeys(found)), float(group["gpu_us"]), len(found))

    def _add(self, name: str, us: float, calls: int) -> None:
        """With the lock held."""
        one = self._times.setdefault(name, KernelTime(name))
        one.calls += calls
        one.total_us += us
        if calls == 1:
            one.least_us = us if one.least_us is None else min(us, one.least_us)
            one.most_us = us if one.most_us is None else max(us, one.most_us)

    def __str__(self) -> str:
        kernels = self.kernels
        total = sum(one.total_us for one in kernels)
        lines = [f"{'kernel':<{_NAME_CHARS_MAX}}  {'calls':>7}  {'total us':>12}  {'mean us':>10}  {'least us':>10}  {'most us':>10}  {'share':>6}"]
        lines += [f"{_shortened(one.operations or one.name):<{_NAME_CHARS_MAX}}  {one.calls:>7}  {one.total_us:>12.1f}  {one.mean_us:>10.1f}  {_us(one.least_us):>10}  "
                  f"{_us(one.most_us):>10}  {one.total_us / total if total else 0:>6.1%}" for one in kernels]
        lines.append(f"{sum(one.calls for one in kernels)} launches, {total / 1000:.3f} ms on the device, {self.seconds * 1000:.3f} ms in all")
        if self.unfinished:
            lines.append(f"{self.unfinished} launches had not ended, or nobody had fetched their results: not counted")
        return "\n".join(lines)


def _launched(document: Mapping[str, Any]) -> Dict[int, str]:
    return {index: _kernel_of(op) for index, op in enumerate(document.get("ops", ())) if op.get("op") == "launch"}


def _kernel_of(launch: Mapping[str, Any]) -> str:
    """The name of a launch's kernel, as it is asked for or as it is told of."""
    return f"{launch['builtin']} {launch['dtype']}" if launch.get("builtin") else str(launch["kernel"])


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_CHARS_MAX else name[:_NAME_CHARS_MAX - 1] + "…"


def _us(value: Optional[float]) -> str:
    return "-" if value is None else f"{value:.1f}"


def _flush(client: Client) -> None:
    for session in client._open_sessions():
        current.flush(session)


_running: List[profile] = []


def start(client: Optional[Client] = None) -> None:
    """Begins to count what `client` (None: the default one) is asked for, until stop(). GpurestError when that was begun already."""
    if _running:
        raise GpurestError("profiling is on already: stop() ends it")
    _running.append(profile(client, quiet=True).__enter__())


def stop(out: Optional[TextIO] = None, quiet: bool = False) -> List[KernelTime]:
    """Ends it, prints the times by kernel to `out` (None: standard output) unless `quiet`, and returns them, the longest total first. GpurestError when
    it was not begun."""
    if not _running:
        raise GpurestError("profiling is not on: start() begins it")
    seen = _running.pop()
    seen.__exit__(None, None, None)
    if not quiet:
        print(seen, file=out or sys.stdout)
    return seen.kernels
