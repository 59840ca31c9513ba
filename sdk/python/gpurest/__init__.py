"""gpurest: GPU buffers, kernels and launches over plain HTTP.

`connect()` gives a `Client`; its short forms (`gpu.buffer`, `gpu.dispatch`) use its default session. The functions of this module use that of the
default client: the first that connect() made, else the one that GPUREST_URL and GPUREST_TOKEN describe; `use()` chooses another. Exceptions are in
`gpurest.errors`."""
from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from . import arrays, cuda, errors, linalg
from ._session.autotune import Config, Tuned, autotune
from ._session.background import BatchJob, WarmJob
from ._session.batch import Batch, Future, LaunchResult
from ._session.buffer import Buffer
from ._session.builtin_kernel import BuiltinKernel
from ._session.client import Client, connect, use
from ._session.default import default_client, default_session, set_default
from ._session.event import Event
from ._session.kernel import Kernel
from ._session.launch import Launch
from ._session.module import Module
from ._session.program import Program
from ._session.rawkernel import RawKernel, RawModule
from ._session.run import RunResult, Times
from ._session.session import Session
from ._session.shared import SharedAllocation, SharedMemory
from ._session.stream import Stream
from ._session.texture import Texture
from ._shown.printing import set_printf
from ._transport.endpoint import Timeout
from ._transport.wire import ServerEvent
from ._values.layout import align, coalesce, to_tiles
from ._values.scalars import In, InOut, Out, Scalar, Struct, b8, bf16, f16, f32, f64, i16, i32, i64, i8, u16, u32, u64, u8
from .arrays import *  # noqa: F403 - its __all__ is the list
from .arrays import random
from .arrays import routines as _routines
from .arrays.kernels import ElementwiseKernel, ReductionKernel
from .arrays.routines import *  # noqa: F403

if TYPE_CHECKING:
    from . import aio as aio
    from . import core as core
    from . import profiler as profiler
    from .aio import AsyncClient as AsyncClient

_LATER = ("aio", "core", "dask", "profiler")  # loaded by those who use them

__version__ = "1.0.0"
logging.getLogger("gpurest").addHandler(logging.NullHandler())  # programs that ask for no log get none, on standard error either

__all__ = ["AsyncClient", "Batch", "BatchJob", "Buffer", "BuiltinKernel", "Client", "Config", "ElementwiseKernel", "Event", "Future", "In", "InOut", "Kernel", "Launch",
           "LaunchResult", "Module", "Out", "Program", "RawKernel", "RawModule", "ReductionKernel", "RunResult", "Scalar", "ServerEvent", "Session",
           "SharedAllocation", "SharedMemory", "Stream", "Struct", "Texture", "Timeout", "Times", "Tuned", "WarmJob", "align", "autotune", "b8", "bf16", "blocks", "coalesce", "connect", "cuda", "default_client",
           "default_session",
           "errors", "f16", "f32", "f64", "i16", "i32", "i64", "i8", "linalg", "random", "run", "set_default", "set_printf", "to_tiles", "u16", "u32", "u64", "u8", "use"]

__all__ += arrays.__all__
__all__ += _routines.__all__


def run(source: str, kernel: str, args: Any = (), **more: Any) -> RunResult:
    """Client.run() of the default client."""
    return default_client().run(source, kernel, args, **more)


def blocks(n: int, threads: int) -> int:
    """How many blocks of so many threads cover `n` elements."""
    return -(-n // threads)


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext gpurest`: gives IPython and Jupyter `%gpurest` and `%%cuda`, and short tracebacks of this package's exceptions."""
    from .notebook import load
    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Called by `%unload_ext gpurest`."""
    from .notebook import unload
    unload(shell)


def __getattr__(name: str) -> Any:
    if name == "AsyncClient":  # asyncio is loaded by those who use it
        from .aio import AsyncClient
        return AsyncClient
    if name in _LATER:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'gpurest' has no attribute {name!r}")
