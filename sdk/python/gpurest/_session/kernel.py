"""Kernels of a module, and how they are launched."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ..errors import ArgumentError
from .args import Converter, Param
from .handle import Unpicklable
from .launch import Launch, send_launch, send_written
from .requests import written
from .session_state import entered_batches

if TYPE_CHECKING:
    from .module import Module
    from .session import Session
    from .stream import Stream

Dims = Union[int, Sequence[int]]
Grid = Union[int, Sequence[int], Mapping[str, int]]


STARTS_MAX = 64  # of launches of one kernel, kept


class _Start(NamedTuple):
    """The members of a launch before its arguments, which nobody changes, and the same as text up to the first argument."""
    members: Dict[str, Any]
    text: str


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


class Kernel(Unpicklable):
    """A kernel of a module.

    Called as CuPy does, `kernel((grid,), (block,), (args…))`; as Numba does, `kernel[grid, block](args…)`; or for a number of threads,
    `kernel.for_n(n)(args…)`, with the block that the service's occupancy calculator chooses. Thread-safe."""

    _instead = "pickle its source; a RawKernel without a session= can be pickled"

    def __init__(self, module: Module, info: Mapping[str, Any], params: Tuple[Param, ...]) -> None:
        self.module = module
        self.info: Dict[str, Any] = dict(info)
        self.name: str = info["name"]
        self.params = params
        self._converter = Converter(self.name, params)
        self._starts: Dict[Tuple[Any, ...], _Start] = {}
        self._last: Optional[Tuple[Any, Any, int, bool, _Start]] = None  # what the last launch was asked for with, and how it began

    @property
    def session(self) -> Session:
        """The session of its module."""
        return self.module.session

    @property
    def max_threads(self) -> int:
        """The most threads that a block of it may have on this device."""
        return int(self.info["max_threads"])

    @property
    def registers(self) -> int:
        """Registers that a thread of it takes."""
        return int(self.info["registers"])

    def __call__(self, grid: Grid, block: Optional[Dims], args: Sequence[Any] = (), *, shared_bytes: int = 0, shared_mem: int = 0,
                 stream: Optional[Stream] = None, timeout_ms: Optional[int] = None, wait: bool = True,
                 casting: str = "no", cooperative: bool = False, timing: bool = True) -> Launch:
        """Launches. `block` None: chosen by the service. Waits for the end unless `wait=False`; in a batch it is queued. Without `timing` there is no
        `gpu_us`, and a launch that has ended has no `id`, which is some microseconds quicker.

        `timeout_ms` is the execution deadline; when it passes, the session's worker is stopped. `cooperative`: all blocks run at once and may
        wait for each other, as grid.sync() does; refused where the device has no room for all of them."""
        return self._launch(grid, block, args, shared_bytes or shared_mem, stream, timeout_ms, wait, casting, cooperative, timing)

    def _launch(self, grid: Grid, block: Optional[Dims], args: Sequence[Any], shared_bytes: int = 0, stream: Optional[Stream] = None,
                timeout_ms: Optional[int] = None, wait: bool = True, casting: str = "no", cooperative: bool = False, timing: bool = True) -> Launch:
        session = self.module._session
        if entered_batches() and session._batch_now() is not None:
            document = self._document(grid, block, args, shared_bytes, casting, cooperative)
            return send_launch(session, self.name, document, stream, timeout_ms, wait, timing)
        start = self._starting(grid, block, shared_bytes, cooperative)
        if casting != "no" or type(args) is not tuple:
            self._check(args, casting)
        written = self._converter.written(args, session, casting == "same_kind")
        return send_written(session, self.name, start.text + written, stream, timeout_ms, wait, timing)

    def _document(self, grid: Grid, block: Optional[Dims], args: Sequence[Any], shared_bytes: int, casting: str,
                  cooperative: bool = False) -> Dict[str, Any]:
        self.module._check()
        start = self._starting(grid, block, shared_bytes, cooperative)
        self._check(args, casting)
        return {**start.members, "args": self._converter.convert(args, self.module._session, casting == "same_kind")}

    def _check(self, args: Sequence[Any], casting: str) -> None:
        if casting not in ("no", "same_kind"):
            raise ArgumentError('casting is "no" or "same_kind"')
        if not isinstance(args, (tuple, list)):
            raise ArgumentError(f"the arguments of {self.name} are a tuple: kernel(grid, block, (a, b))")

    def _starting(self, grid: Grid, block: Optional[Dims], shared_bytes: int, cooperative: bool) -> _Start:
        """What the service is told before the arguments; the same is often asked for again."""
        module, session = self.module, self.module._session
        if module._freed or module._generation != session.generation or session._closed or session._lost is not None:
            module._check()  # says so; what else that looks at, who sends a request does
        last = self._last
        if last is not None and grid is last[0] and block is last[1] and shared_bytes == last[2] and cooperative is last[3]:
            return last[4]  # nearly always: a program's constants are the same objects each time
        return self._known_start(grid, block, shared_bytes, cooperative)

    def _known_start(self, grid: Grid, block: Optional[Dims], shared_bytes: int, cooperative: bool) -> _Start:
        asked = grid, block
        if type(grid) is int:
            grid = (grid,)
        if type(block) is int:
            block = (block,)
        if type(grid) is not tuple or type(block) is not tuple:
            return self._start(grid, block, shared_bytes, cooperative)
        key = (grid, block, shared_bytes, bool(cooperative), *map(type, grid), *map(type, block))  # (1.0,) equals (1,) and is refused
        try:
            found = self._starts.get(key)
        except TypeError:  # of arrays of NumPy without dimensions
            return self._start(grid, block, shared_bytes, cooperative)
        if found is None:
            found = self._start(grid, block, shared_bytes, cooperative)
            if len(self._starts) >= STARTS_MAX:
                self._starts.clear()
            self._starts[key] = found
        self._last = (*asked, shared_bytes, cooperative, found)
        return found

    def _start(self, grid: Grid, block: Optional[Dims], shared_bytes: int, cooperative: bool) -> _Start:
        members: Dict[str, Any] = {"module": self.module.id, "kernel": self.name}
        if type(grid) is not tuple and isinstance(grid, Mapping):
            members["grid"] = {"threads": int(grid["threads"])}
        else:
            members["grid"] = dims(grid, "grid")
        if block is not None:
            members["block"] = dims(block, "block")
        if shared_bytes:
            members["shared_bytes"] = int(shared_bytes)
        if cooperative:
            members["cooperative"] = True
        return _Start(members, written(members)[:-1] + ',"args":[')

    def __getitem__(self, config: Any) -> Configured:
        """kernel[grid, block] or kernel[grid, block, shared_bytes] or kernel[grid, block, shared_bytes, stream]."""
        if type(config) is tuple and len(config) == 2:
            return Configured(self, config[0], config[1], 0, None)
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

    def __call__(self, *args: Any, timeout_ms: Optional[int] = None, wait: bool = True, casting: str = "no", cooperative: bool = False,
                 timing: bool = True) -> Launch:
        return self.kernel._launch(self.grid, self.block, args, self._shared_bytes, self._stream, timeout_ms, wait, casting, cooperative, timing)
