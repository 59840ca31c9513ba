"""What kernels print by printf, on this side's standard output."""
from __future__ import annotations

import os
import sys
from typing import Any, Iterable, Mapping, Optional, TextIO, Union

_to: Union[None, bool, TextIO] = os.environ.get("GPUREST_PRINTF") != "0"


def set_printf(to: Union[None, bool, TextIO]) -> Union[None, bool, TextIO]:
    """Where what kernels print by printf appears when their launch, batch or run has ended: True (so at first, unless GPUREST_PRINTF is 0):
    on sys.stdout, in a notebook under the cell; False or None: nowhere, it is only in the results' `stdout`; else a text file. Of all
    clients of the process. Returns what held before."""
    global _to
    before, _to = _to, to
    return before


def show(told: Mapping[str, Any]) -> None:
    """The service's description of a launch that has ended."""
    text = told.get("stdout")
    if not text or not _to:
        return
    file: Optional[TextIO] = sys.stdout if _to is True else _to
    if file is None:  # a program without standard streams
        return
    file.write(text)
    if told.get("stdout_truncated"):
        file.write("\n[gpurest: the kernel printed more than the service keeps; the rest is lost]\n")


def show_all(ops: Iterable[Mapping[str, Any]]) -> None:
    """Those of a batch, in its order."""
    for told in ops:
        show(told)
