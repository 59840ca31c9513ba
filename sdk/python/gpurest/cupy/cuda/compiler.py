"""cupy.cuda.compiler: its exception. The service compiles."""
from __future__ import annotations

from ...errors import CompileError
from ..missing import MissingError

CompileException = CompileError


def __getattr__(name: str) -> None:
    if name.startswith("__"):
        raise AttributeError(name)
    raise MissingError(f"gpurest.cupy.cuda.compiler has no {name}: the service compiles; cupy.RawModule(code=…).compile() does so now")
