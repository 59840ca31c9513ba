"""Progress of long transfers and compilations: a bar on a terminal and in notebooks, tqdm's where it is installed, or a call-back of the user's."""
from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from typing import Any, Callable, Optional, Union

ProgressOption = Union[None, bool, Callable[[int, int, str], None], Any]
QUIET_S = 1.0     # what is shorter shows nothing unless asked
REDRAW_S = 0.1
BAR_COLUMNS = 24


def wanted(option: ProgressOption) -> ProgressOption:
    """GPUREST_PROGRESS=0 or 1 decides where the caller did not."""
    setting = os.environ.get("GPUREST_PROGRESS")
    if option is None and setting in ("0", "1"):
        return setting == "1"
    return option


def in_notebook() -> bool:
    """Standard error is a cell's, which is no terminal but is read by somebody."""
    return type(sys.stderr).__module__.partition(".")[0] == "ipykernel"


def _people_look() -> bool:
    return sys.stderr is not None and (sys.stderr.isatty() or in_notebook())


def _tqdm_bar(total: int, phase: str) -> Any:
    """None: not installed."""
    try:
        auto: Any = importlib.import_module("tqdm.auto")  # optional, and without types
    except ImportError:
        return None
    return auto.tqdm(total=total, desc=phase, unit="B", unit_scale=True, unit_divisor=1024, file=None if in_notebook() else sys.stderr)


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
        self._tqdm: Any = None  # once something is drawn, where it is installed

    def _draws(self) -> bool:
        if self._option is True:
            return True
        return self._option is None and _people_look()

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
        if not self._drawn:
            self._tqdm = _tqdm_bar(self._total, self._phase)
        self._drawn_at, self._drawn = now, True
        if self._tqdm is not None:
            self._tqdm.update(done - self._tqdm.n)
            return
        sys.stderr.write("\r" + line(self._phase, done, self._total, elapsed))
        sys.stderr.flush()

    def close(self) -> None:
        with self._lock:
            if self._bar and (self._drawn or self._option is True):
                self._draw(self._done, True)
                if self._tqdm is not None:
                    self._tqdm.close()
                else:
                    sys.stderr.write("\n")
                self._bar = False


class Waiting:
    """`with Waiting("compile f")` tells, after QUIET_S and then every second, that this process waits, and for how long; only where a bar would
    be shown. Nothing is known of how much is left."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._over = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def __enter__(self) -> "Waiting":
        option = wanted(None)
        if option is True or (option is None and _people_look()):
            self._thread = threading.Thread(target=self._tell, args=(time.monotonic(),), name="gpurest-waiting", daemon=True)
            self._thread.start()
        return self

    def _tell(self, started: float) -> None:
        told = False
        while not self._over.wait(QUIET_S):
            sys.stderr.write(f"\r{self._what}: {time.monotonic() - started:.0f} s")
            sys.stderr.flush()
            told = True
        if told:
            sys.stderr.write(f"\r{self._what}: {time.monotonic() - started:.1f} s\n")

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()


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
