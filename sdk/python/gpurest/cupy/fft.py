"""cupy.fft: gpurest.fft, and what is said of names that are missing there."""
from __future__ import annotations

from typing import Any, List

from .. import fft as _own
from .missing import refuse


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not hasattr(_own, name):
        refuse("cupy.fft", name)
    return getattr(_own, name)


def __dir__() -> List[str]:
    return dir(_own)
