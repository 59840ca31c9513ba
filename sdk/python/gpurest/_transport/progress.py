"""Progress of long transfers: a bar on a terminal, or a call-back of the user's."""
from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any, Callable, Union

ProgressOption = Union[None, bool, Callable[[int, int, str], None], Any]
QUIET_S = 2.0     # shorter transfers show nothing unless asked
REDRAW_S = 0.1
BAR_COLUMNS = 24


def wanted(option: ProgressOption) -> ProgressOption:
    """GPUREST_PROGRESS=0 or 1 decides where the caller did not."""
    setting = os.environ.get("GPUREST_PROGRESS")
    if option is None and setting in ("0", "1"):
        return setting == "1"
    return option


class Meter:
    """Counts the bytes of one user call, from any thread, and shows them. A context manager; closing ends the bar's line."""

    def __init__(self, option: ProgressOption, total: int, phase: str) -> None:
        self._option = wanted(option)
        self._total, self._phase = total, phase
        self._done = 0
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._drawn_at = 0.0
        self._drawn = False
        self._bar = self._draws()

    def _draws(self) -> bool:
        if self._option is True:
            return True
        return self._option is None and sys.stderr is not None and sys.stderr.isatty()

    @property
    def active(self) -> bool:
        return self._bar or callable(self._option) or hasattr(self._option, "update")

    def add(self, count: int) -> None:
        with self._lock:
            self._done += count
            done = self._done
            if self._bar:
                self._draw(done, False)
            else:
                self._tell(done, count)

    def _tell(self, done: int, count: int) -> None:
        option: Any = self._option
        if hasattr(option, "update"):
            option.update(count)
        elif callable(option):
            option(done, self._total, self._phase)

    def _draw(self, done: int, last: bool) -> None:
        now = time.monotonic()
        elapsed = now - self._started
        if not last and (now - self._drawn_at < REDRAW_S or (self._option is None and elapsed < QUIET_S)):
            return
        self._drawn_at, self._drawn = now, True
        sys.stderr.write("\r" + line(self._phase, done, self._total, elapsed))
        sys.stderr.flush()

    def close(self) -> None:
        with self._lock:
            if self._bar and (self._drawn or self._option is True):
                self._draw(self._done, True)
                sys.stderr.write("\n")
                self._bar = False


def line(phase: str, done: int, total: int, elapsed_s: float) -> str:
    """One bar: share, bytes, rate and the time left."""
    share = done / total if total else 1.0
    rate = done / elapsed_s if elapsed_s > 0 else 0.0
    left = f"{(total - done) / rate:4.0f} s left" if rate > 0 and done < total else f"{elapsed_s:4.1f} s"
    full = int(share * BAR_COLUMNS)
    return f"{phase:8s} {100 * share:3.0f} % [{'#' * full}{'.' * (BAR_COLUMNS - full)}] {bytes_text(done)} of {bytes_text(total)}, " \
           f"{bytes_text(rate)}/s, {left}"


def bytes_text(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""
