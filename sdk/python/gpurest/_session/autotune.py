"""The block size that is fastest for a kernel on a device, found by trying."""
from __future__ import annotations

import statistics
from typing import Any, Sequence, Union

from ..errors import ArgumentError
from .kernel import Kernel
from .rawkernel import RawKernel

BLOCK_SIZES = (32, 64, 128, 256, 512, 1024)


def autotune(kernel: Union[Kernel, RawKernel], args: Sequence[Any], n: int, *, block_sizes: Sequence[int] = BLOCK_SIZES, repeats: int = 5) -> int:
    """The block size with the least median of device time for `n` threads. The kernel really runs, several times per size, so its
    arguments must bear that. Remembered per kernel and device by the client: for_n() uses it from then on."""
    found = kernel.kernel if isinstance(kernel, RawKernel) else kernel
    sizes = [size for size in block_sizes if 1 <= size <= found.max_threads]
    if not sizes or repeats < 1 or n < 1:
        raise ArgumentError(f"autotune() needs a block size of at most {found.max_threads}, repeats and n of at least 1")
    best = min(sizes, key=lambda size: _median_us(found, args, n, size, repeats))
    found.session.client._tuned[found._tuning_key()] = best
    return best


def _median_us(kernel: Kernel, args: Sequence[Any], n: int, size: int, repeats: int) -> float:
    """In one request; the first run warms up and does not count."""
    with kernel.session.batch():
        launches = [kernel(-(-n // size), size, tuple(args)) for _ in range(repeats + 1)]
    return statistics.median(float(one.gpu_us or 0.0) for one in launches[1:])
