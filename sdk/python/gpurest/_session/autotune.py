"""The configuration that is fastest for a kernel on a device, found by trying."""
from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Hashable, Iterable, List, Mapping, Optional, Sequence, Tuple, Union, overload

from ..errors import ArgumentError, GpurestError
from .kernel import Dims, Grid, Kernel, dims
from .launch import Launch
from .rawkernel import RawKernel
from .stream import Stream

BLOCK_SIZES = (32, 64, 128, 256, 512, 1024)
WARP_THREADS = 32
REPEATS = 5
Constant = Union[bool, int, float, str]


@dataclass(frozen=True)
class Config:
    """One way to launch a kernel: `block` threads (up to three extents), or so many `warps` of 32 threads; `constants` that the source is compiled with
    (-DNAME=value; True is 1, False 0, text goes as it is); `shared_bytes` of dynamic shared memory. Without block and warps the service
    chooses the block. ArgumentError for what is no such thing."""
    block: Optional[Dims] = None
    warps: Optional[int] = None
    constants: Mapping[str, Constant] = field(default_factory=dict)
    shared_bytes: int = 0

    def __post_init__(self) -> None:
        if self.block is not None and self.warps is not None:
            raise ArgumentError("a configuration has a block or a number of warps, not both")
        if self.block is not None:
            dims(self.block, "block")
        if self.warps is not None and (isinstance(self.warps, bool) or not isinstance(self.warps, int) or self.warps < 1):
            raise ArgumentError(f"warps is a number from 1 on, not {self.warps!r}")
        object.__setattr__(self, "constants", dict(self.constants))
        for name, value in self.constants.items():
            if not isinstance(name, str) or not name.isidentifier() or not isinstance(value, (bool, int, float, str)):
                raise ArgumentError(f"a constant has a name and is a number or a text, not {name!r}: {value!r}")

    @property
    def threads(self) -> Optional[int]:
        """Of a block; None where the service chooses."""
        if self.warps is not None:
            return self.warps * WARP_THREADS
        if self.block is None:
            return None
        found = 1
        for extent in dims(self.block, "block"):
            found *= extent
        return found

    @property
    def defines(self) -> Tuple[str, ...]:
        """The constants as options of the compiler."""
        return tuple(f"-D{name}={int(value) if isinstance(value, bool) else value}" for name, value in self.constants.items())

    @property
    def _block(self) -> Optional[Dims]:
        return self.warps * WARP_THREADS if self.warps is not None else self.block


Prune = Callable[[List[Config], Dict[str, Any]], Iterable[Config]]
GridOf = Union[Grid, Callable[[Config], Grid]]


@overload
def autotune(kernel: Union[Kernel, RawKernel], args: Sequence[Any], n: int, *, block_sizes: Sequence[int] = ..., repeats: int = ...) -> int: ...


@overload
def autotune(kernel: RawKernel, *, configs: Sequence[Config], key: Sequence[str] = ..., prune: Optional[Prune] = ..., restore: Sequence[str] = ...,
             repeats: int = ...) -> Tuned: ...


def autotune(kernel: Union[Kernel, RawKernel], args: Optional[Sequence[Any]] = None, n: Optional[int] = None, *, block_sizes: Sequence[int] = BLOCK_SIZES,
             configs: Optional[Sequence[Config]] = None, key: Sequence[str] = (), prune: Optional[Prune] = None, restore: Sequence[str] = (),
             repeats: int = REPEATS) -> Union[int, Tuned]:
    """With `args` and `n`: the block size with the least median of device time for `n` threads. The kernel really runs, several times per size, so its
    arguments must bear that. Remembered per kernel and device by the client: for_n() uses it from then on.

    With `configs`: a Tuned kernel, which tries them when it is first launched on a device, and again for other values of the arguments that `key` names."""
    if configs is not None:
        if args is not None or n is not None or not isinstance(kernel, RawKernel):
            raise ArgumentError("autotune(raw_kernel, configs=…) tunes when the kernel is launched: it takes a RawKernel, and neither args nor n")
        return Tuned(kernel, configs, key, prune, restore, repeats)
    if args is None or n is None or key or prune is not None or restore:
        raise ArgumentError("autotune() takes args and n, or configs= (with key=, prune=, restore=)")
    return _best_size(kernel.kernel if isinstance(kernel, RawKernel) else kernel, args, n, block_sizes, repeats)


def _best_size(kernel: Kernel, args: Sequence[Any], n: int, block_sizes: Sequence[int], repeats: int) -> int:
    _check_not_recording(kernel)
    sizes = [size for size in block_sizes if 1 <= size <= kernel.max_threads]
    if not sizes or repeats < 1 or n < 1:
        raise ArgumentError(f"autotune() needs a block size of at most {kernel.max_threads}, repeats and n of at least 1")
    best = min(sizes, key=lambda size: _median_us(kernel, args, -(-n // size), size, 0, repeats))
    kernel.session.client._tuned[kernel._tuning_key()] = best
    return best


def _check_not_recording(kernel: Kernel) -> None:
    if kernel.session._batch_now() is not None:
        raise GpurestError(f"a batch is being recorded, and {kernel.name} is not tuned yet for these arguments: launch it once before")


def _median_us(kernel: Kernel, args: Sequence[Any], grid: Grid, block: Optional[Dims], shared_bytes: int, repeats: int) -> float:
    """Each launch is a request of its own, because launches of one batch may be timed only together. The first one warms up and does not count."""
    launches = [kernel(grid, block, tuple(args), shared_bytes=shared_bytes) for _ in range(repeats + 1)]
    return statistics.median(float(one.gpu_us or 0.0) for one in launches[1:])


class Tuned:
    """A kernel that finds its fastest configuration by trying, when it is launched: `tuned.for_n(n)(*args)`, or `tuned[grid](*args)`, where `grid` may be a
    function that makes it of the Config. The choice is kept per device, and per value of the arguments that `key` names: numbers by
    value, arrays and buffers by element type and shape.

    `prune(configs, args)` gets all configurations and the arguments by name, and returns those to be tried. Trying really runs the kernel, several
    times with each; the buffers and arrays that `restore` names get back what was in them before the launch itself. Configurations with
    more threads than the kernel can have are left out. Thread-safe; two threads may try the same at once."""

    def __init__(self, kernel: RawKernel, configs: Sequence[Config], key: Sequence[str] = (), prune: Optional[Prune] = None, restore: Sequence[str] = (),
                 repeats: int = REPEATS) -> None:
        self.configs = list(configs)
        if not self.configs or repeats < 1 or not all(isinstance(one, Config) for one in self.configs):
            raise ArgumentError("a kernel is tuned among at least one gpurest.Config, with at least 1 repeat")
        if isinstance(key, str) or isinstance(restore, str):
            raise ArgumentError("key and restore are lists of names of the kernel's parameters")
        self.kernel = kernel
        self.key, self.restore = tuple(key), tuple(restore)
        self._prune, self._repeats = prune, repeats
        self._chosen: Dict[Hashable, Config] = {}

    @property
    def chosen(self) -> Dict[Hashable, Config]:
        """What was found so far, by the service's URL, the device, and the key's values."""
        return dict(self._chosen)

    def __getitem__(self, grid: GridOf) -> TunedLaunch:
        return TunedLaunch(self, lambda config: grid(config) if callable(grid) else grid)

    def for_n(self, n: int) -> TunedLaunch:
        """At least `n` threads, in one dimension."""
        if n < 1:
            raise ArgumentError("for_n: at least 1 thread")

        def grid(config: Config) -> Grid:
            if config.threads is None:
                return {"threads": n}
            if config.block is not None and dims(config.block, "block")[0] != config.threads:
                raise ArgumentError(f"for_n() is for blocks of one dimension, and a configuration has {config.block!r}: launch by tuned[grid]")
            return -(-n // config.threads)

        return TunedLaunch(self, grid)

    def best(self, grid: Callable[[Config], Grid], args: Sequence[Any]) -> Config:
        """The choice for these arguments on the device that is current; found now if need be."""
        first = self._variant(self.configs[0])
        named = self._named(first, args)
        place: Hashable = (first.session.client.url, first.session.device, *(_identity(named[name]) for name in self.key))
        found = self._chosen.get(place)
        if found is None:
            _check_not_recording(first)
            found = self._chosen[place] = self._tried(grid, args, named)
        return found

    def _variant(self, config: Config) -> Kernel:
        return self.kernel._with(config.defines).kernel

    def _named(self, kernel: Kernel, args: Sequence[Any]) -> Dict[str, Any]:
        names = [param.name or f"arg{at}" for at, param in enumerate(kernel.params)]
        unknown = [name for name in (*self.key, *self.restore) if name not in names]
        if unknown:
            raise ArgumentError(f"{kernel.name} has no parameter {', '.join(unknown)}; it has {', '.join(names) or 'none'}")
        if len(names) != len(args):
            raise ArgumentError(f"{kernel.name} takes {len(names)} arguments ({', '.join(names)}), not {len(args)}")
        return dict(zip(names, args))

    def _tried(self, grid: Callable[[Config], Grid], args: Sequence[Any], named: Dict[str, Any]) -> Config:
        wanted = self.configs if self._prune is None else list(self._prune(list(self.configs), dict(named)))
        strange = [one for one in wanted if one not in self.configs]
        if not wanted or strange:
            raise ArgumentError(f"prune() returns at least one of the configurations it was given, not {strange or wanted!r}")
        if len(wanted) == 1:
            return wanted[0]
        kept = [_Kept(named[name]) for name in self.restore]
        try:
            times = [self._time(config, grid, args, kept) for config in wanted]
        finally:
            for one in kept:
                one.free()
        best = min(range(len(times)), key=lambda at: times[at])
        if times[best] == math.inf:
            raise ArgumentError(f"none of the configurations of {self.kernel.name} can be launched: too many threads, or too much shared memory")
        return wanted[best]

    def _time(self, config: Config, grid: Callable[[Config], Grid], args: Sequence[Any], kept: Sequence[_Kept]) -> float:
        """In microseconds; infinite if the kernel cannot be launched so."""
        kernel = self._variant(config)
        if (config.threads or 1) > kernel.max_threads:
            return math.inf
        try:
            return _median_us(kernel, args, grid(config), config._block, config.shared_bytes, self._repeats)
        except GpurestError as error:
            if error.code != "launch_config_invalid":
                raise
            return math.inf
        finally:
            for one in kept:
                one.put_back()

    def __repr__(self) -> str:
        return f"<Tuned {self.kernel.name} among {len(self.configs)}>"


class TunedLaunch:
    """A tuned kernel with its grid."""

    def __init__(self, tuned: Tuned, grid: Callable[[Config], Grid]) -> None:
        self._tuned, self._grid = tuned, grid

    def __call__(self, *args: Any, stream: Optional[Stream] = None, timeout_ms: Optional[int] = None, wait: bool = True) -> Launch:
        """Launches as a Kernel does, after trying the configurations if no choice is known. Not recorded by a batch before the choice is known."""
        config = self._tuned.best(self._grid, args)
        kernel = self._tuned._variant(config)
        return kernel(self._grid(config), config._block, args, shared_bytes=config.shared_bytes, stream=stream, timeout_ms=timeout_ms, wait=wait)


class _Kept:
    """A copy of what a buffer or array holds, on the device."""

    def __init__(self, value: Any) -> None:
        if hasattr(value, "_flush"):
            value._flush()
        if not hasattr(value, "__gpurest_buffer__"):
            raise ArgumentError(f"restore is for buffers and arrays, not for {value!r}")
        self._buffer, self._offset = value.__gpurest_buffer__()
        self._size = value.nbytes
        self._copy = self._buffer.session.buffer(size=self._size)
        self._copy.copy_from(self._buffer, from_offset=self._offset, size=self._size)

    def put_back(self) -> None:
        """Not after a fault, which has taken both."""
        if not self._copy._gone():
            self._buffer.copy_from(self._copy, offset=self._offset, size=self._size)

    def free(self) -> None:
        if not self._copy._gone():
            self._copy.free()


def _identity(value: Any) -> Hashable:
    """Of an argument, as part of a key."""
    if hasattr(value, "__gpurest_buffer__"):
        return getattr(value, "dtype_str", None), tuple(value.shape)
    item = value.item() if hasattr(value, "item") else getattr(value, "value", value)
    return item if isinstance(item, Hashable) else repr(item)
