"""Modules, kernels, launches."""
from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .._values.signature import signature
from ..errors import ArgumentError, GpurestError, NotFoundError, TimeoutError_
from . import requests
from .args import Converter, Param, params_of
from .batch import Future, LaunchResult
from .handle import Handle, caller
from .launch import FINISHED, LaunchTold, QueuedTold, located

if TYPE_CHECKING:
    from .session import Session
    from .stream import Stream

Dims = Union[int, Sequence[int]]
Grid = Union[int, Sequence[int], Mapping[str, int]]
POLL_S = 30


def dims(value: Any, what: str) -> List[int]:
    """1 to 3 positive extents."""
    given = list(value) if isinstance(value, (tuple, list)) else [value]
    if not 1 <= len(given) <= 3:
        raise ArgumentError(f"{what} has 1 to 3 extents, not {len(given)}")
    found: List[int] = []
    for n in given:
        if isinstance(n, (bool, float)) or not hasattr(n, "__index__"):
            raise ArgumentError(f"{what}: {n!r} is no integer")
        found.append(int(n.__index__()))
        if not 1 <= found[-1] < 1 << 32:
            raise ArgumentError(f"{what}: {n} is not from 1 to 2^32-1")
    return found


class Launch(LaunchTold):
    """One launch. After a synchronous one everything is known; after `wait=False` call wait()."""

    def __init__(self, session: Session, info: Mapping[str, Any], kernel: str, queued_at: str) -> None:
        super().__init__(info, kernel, queued_at)
        self._session = session

    def done(self) -> bool:
        """Asks the service, unless it is known."""
        if self.state not in FINISHED:
            self._info = self._session._do(requests.launch_get(self._session.id, self.id, 0))
        return self.state in FINISHED

    def wait(self, timeout: Optional[float] = None) -> Launch:
        """Returns when it has succeeded; raises what failed, TimeoutError_ (phase "kernel") after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.state not in FINISHED:
            left = POLL_S if deadline is None else int(min(POLL_S, max(0.0, deadline - time.monotonic())) + 0.999)
            self._info = self._session._do(requests.launch_get(self._session.id, self.id, left))
            if deadline is not None and self.state not in FINISHED and time.monotonic() >= deadline:
                raise TimeoutError_(f"{self._kernel} has not ended within {timeout} s; it goes on", phase="kernel")
        self._raise_unless_succeeded(self._session._note)
        return self

    def result(self, timeout: Optional[float] = None) -> Launch:
        """As wait(), by the name that a batch's launches share with futures."""
        return self.wait(timeout)

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """What wait() would raise; None when it has succeeded."""
        try:
            self.wait(timeout)
        except GpurestError as error:
            return error
        return None

    def cancel(self, force: bool = False) -> None:
        """Cancels a queued launch. A running one ends only with `force`, which resets the session: everything in it is gone."""
        info = self._session._do(requests.launch_cancel(self._session.id, self.id, force))
        self._take_cancelled(info)

    def __repr__(self) -> str:
        return f"<Launch {self._kernel} {self.state}>"


class QueuedLaunch(QueuedTold, Launch):
    """A launch in a batch: known when the batch has run."""

    def __init__(self, session: Session, kernel: str, future: Future[LaunchResult]) -> None:
        QueuedTold.__init__(self, kernel, future)
        self._session = session

    def done(self) -> bool:
        return self._future.done()

    def wait(self, timeout: Optional[float] = None) -> Launch:
        self._future.result(timeout)
        return self

    def cancel(self, force: bool = False) -> None:
        raise GpurestError("a launch in a batch is not cancelled by itself")


def send_launch(session: Session, kernel: str, document: Dict[str, Any], stream: Optional[Stream], timeout_ms: Optional[int], wait: bool) -> Launch:
    """By a request of its own, or into the batch that is being recorded."""
    batch = session._batch_now()
    name = batch._stream_of(stream) if batch is not None else session._stream_name(stream)
    if name:
        document["stream"] = name
    if batch is not None:
        if timeout_ms is not None:
            raise ArgumentError("in a batch the deadline is the batch's: session.batch(timeout_ms=…)")
        return QueuedLaunch(session, kernel, batch._launch(document, kernel))
    if timeout_ms is not None:
        document["timeout_ms"] = timeout_ms
    queued_at = caller()
    try:
        info = session._do(requests.launch(session.id, document, None if wait else 0))
    except GpurestError as error:
        raise located(error, kernel, queued_at)
    launch = Launch(session, info, kernel, queued_at)
    return launch.wait() if wait else launch


class Kernel:
    """A kernel of a module.

    Called as CuPy does, `kernel((grid,), (block,), (args…))`; as Numba does, `kernel[grid, block](args…)`; or for a number of threads,
    `kernel.for_n(n)(args…)`, with the block that the service's occupancy calculator chooses. Thread-safe."""

    def __init__(self, module: Module, info: Mapping[str, Any], params: Tuple[Param, ...]) -> None:
        self.module = module
        self.info: Dict[str, Any] = dict(info)
        self.name: str = info["name"]
        self.params = params
        self._converter = Converter(self.name, params)

    @property
    def session(self) -> Session:
        return self.module.session

    @property
    def max_threads(self) -> int:
        return int(self.info["max_threads"])

    @property
    def registers(self) -> int:
        return int(self.info["registers"])

    def __call__(self, grid: Grid, block: Optional[Dims], args: Sequence[Any] = (), *, shared_bytes: int = 0, shared_mem: int = 0,
                 stream: Optional[Stream] = None, timeout_ms: Optional[int] = None, wait: bool = True,
                 casting: str = "no") -> Launch:
        """Launches. `block` None: chosen by the service. Waits for the end unless `wait=False`; in a batch it is queued.

        `timeout_ms` is the execution deadline; when it passes, the session's worker is stopped."""
        document = self._document(grid, block, args, shared_bytes or shared_mem, casting)
        return send_launch(self.session, self.name, document, stream, timeout_ms, wait)

    def _document(self, grid: Grid, block: Optional[Dims], args: Sequence[Any], shared_bytes: int, casting: str) -> Dict[str, Any]:
        self.module._check()
        if casting not in ("no", "same_kind"):
            raise ArgumentError('casting is "no" or "same_kind"')
        if not isinstance(args, (tuple, list)):
            raise ArgumentError(f"the arguments of {self.name} are a tuple: kernel(grid, block, (a, b))")
        for value in args:
            if hasattr(value, "_flush"):  # arrays: what they stand for must have been computed
                value._flush()
        document: Dict[str, Any] = {"module": self.module.id, "kernel": self.name}
        if isinstance(grid, Mapping):
            document["grid"] = {"threads": int(grid["threads"])}
        else:
            document["grid"] = dims(grid, "grid")
        if block is not None:
            document["block"] = dims(block, "block")
        if shared_bytes:
            document["shared_bytes"] = int(shared_bytes)
        document["args"] = self._converter.convert(args, self.session, casting == "same_kind")
        return document

    def __getitem__(self, config: Any) -> Configured:
        """kernel[grid, block] or kernel[grid, block, shared_bytes] or kernel[grid, block, shared_bytes, stream]."""
        if not isinstance(config, tuple) or not 2 <= len(config) <= 4:
            raise ArgumentError("kernel[grid, block], kernel[grid, block, shared_bytes] or kernel[grid, block, shared_bytes, stream]")
        grid, block, *more = config
        return Configured(self, grid, block, int(more[0]) if more else 0, more[1] if len(more) > 1 else None)

    def for_n(self, n: int, *, shared_bytes: int = 0, stream: Optional[Stream] = None) -> Configured:
        """At least `n` threads, in one dimension. A block size that autotune() found for this kernel is used."""
        if n < 1:
            raise ArgumentError("for_n: at least 1 thread")
        block = self.module.session.client._tuned.get(self._tuning_key())
        if block is not None:
            return Configured(self, -(-n // block), block, shared_bytes, stream)
        return Configured(self, {"threads": int(n)}, None, shared_bytes, stream)

    def _tuning_key(self) -> Tuple[str, str, str]:
        return self.module.session.device, self.module.identity, self.name

    def __repr__(self) -> str:
        return f"<Kernel {self.name}({', '.join(p.name or p.form for p in self.params)})>"


class Configured:
    """A kernel with its launch configuration."""

    def __init__(self, kernel: Kernel, grid: Grid, block: Optional[Dims], shared_bytes: int, stream: Optional[Stream]) -> None:
        self.kernel, self.grid, self.block = kernel, grid, block
        self._shared_bytes, self._stream = shared_bytes, stream

    def __call__(self, *args: Any, timeout_ms: Optional[int] = None, wait: bool = True, casting: str = "no") -> Launch:
        return self.kernel(self.grid, self.block, args, shared_bytes=self._shared_bytes, stream=self._stream, timeout_ms=timeout_ms, wait=wait,
                           casting=casting)


class Module(Handle):
    """Compiled or loaded code. Thread-safe. `log` is what the compiler wrote; `identity` is equal for equal code."""

    kind = "module"

    def __init__(self, session: Session, info: Mapping[str, Any], source: Optional[str], identity: str) -> None:
        super().__init__(session)
        self.id: str = info["id"]
        self.log: str = str(info.get("log") or "")
        self.arch: str = str(info.get("arch") or "")
        self.cached = bool(info.get("cached"))
        self.compile_ms = float(info.get("compile_ms") or 0.0)
        self.globals: List[Dict[str, Any]] = list(info.get("globals") or ())
        self.identity = identity
        self._rows: Dict[str, Mapping[str, Any]] = {row["name"]: row for row in info["kernels"]}
        self._mangled: Dict[str, str] = {row["mangled"]: row["name"] for row in info["kernels"]}
        self._source = source
        self._kernels: Dict[str, Kernel] = {}

    @property
    def kernels(self) -> Tuple[str, ...]:
        """The names, as kernel() takes them."""
        return tuple(self._rows)

    def kernel(self, name: str) -> Kernel:
        """By the name in the source, the name expression, or the mangled name."""
        self._check()
        name = self._mangled.get(name, name)
        row = self._rows.get(name)
        if row is None:
            raise NotFoundError(f"the module has no kernel {name!r}; it has {', '.join(self._rows) or 'none'}", code="kernel_not_found",
                                hint="templates are instantiated by name_expressions=")
        made = self._kernels.get(name)
        if made is None:
            declared = signature(self._source, name) if self._source else None
            made = self._kernels[name] = Kernel(self, row, params_of(row["params"], declared))
        return made

    get_function = kernel

    def __getitem__(self, name: str) -> Kernel:
        return self.kernel(name)

    def code(self, form: str = "ptx") -> bytes:
        """The compiled code: "ptx" or "cubin"."""
        self._check()
        return self._session._do(requests.module_code(self._session.id, self.id, form))

    def free(self) -> None:
        """Unloads it. Idempotent. Modules that are not freed go with the session: equal code is one module, whoever compiled it."""
        if self._freed:
            return
        self._check()
        self._session._do(requests.delete(requests.module_path(self._session.id, self.id)))
        self._freed = True
        self._session._forget_module(self)

    def __repr__(self) -> str:
        return f"<Module {self.id} {', '.join(self._rows)}>"
