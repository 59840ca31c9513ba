"""cupy.cuda.nvtx: named ranges of this process's time. NVIDIA's tools do not see them, since the device is another process's; they are logged, with how
long they took, to the logger "gpurest.nvtx" at level DEBUG."""
from __future__ import annotations

import logging
import threading
import time
from typing import Any, List, Tuple

available = True
_log = logging.getLogger("gpurest.nvtx")
_open = threading.local()  # .ranges: those that this thread has pushed


def _ranges() -> List[Tuple[str, float]]:
    if not hasattr(_open, "ranges"):
        _open.ranges = []
    found: List[Tuple[str, float]] = _open.ranges
    return found


def Mark(message: str, id_color: Any = -1) -> None:
    """Logs a moment."""
    _log.debug("%s", message)


def RangePush(message: str, id_color: Any = -1) -> None:
    """Begins a range of this thread."""
    _ranges().append((message, time.perf_counter()))


def RangePop() -> None:
    """Ends the range that was begun last, and logs it."""
    if not _ranges():
        raise RuntimeError("no range is open: RangePush() begins one")
    message, started = _ranges().pop()
    _log.debug("%s: %.3f ms", message, (time.perf_counter() - started) * 1000)


MarkC, RangePushC = Mark, RangePush
