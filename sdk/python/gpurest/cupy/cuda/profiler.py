"""cupy.cuda.profiler: device times by kernel, which stop() prints. gpurest.cuda.profiler has more."""
from __future__ import annotations

from ...cuda import profiler as _profiler


def start() -> None:
    """Begins to count."""
    _profiler.start()


def stop() -> None:
    """Ends it, and prints the times."""
    _profiler.stop()
