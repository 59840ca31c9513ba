"""gpurest: GPU buffers, kernels and launches over plain HTTP.

`connect()` gives a `Client`; its short forms (`gpu.buffer`, `gpu.dispatch`) and the functions of this module use one session of the
default client, which GPUREST_URL and GPUREST_TOKEN describe. Exceptions are in `gpurest.errors`."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _arrays_api, errors
from ._arrays_api import *  # noqa: F403 - its __all__ is the list
from ._autotune import autotune
from ._background import BatchJob
from ._batch import Batch, Future, LaunchResult
from ._buffer import Buffer
from ._builtin_kernel import BuiltinKernel
from ._client import Client, connect
from ._cupy_kernels import ElementwiseKernel, ReductionKernel
from ._default import default_client, default_session, set_default
from ._endpoint import Timeout
from ._layout import align, coalesce, tile
from ._module import Kernel, Launch, Module
from ._program import Program
from ._rawkernel import RawKernel, RawModule
from ._run import RunResult, Times
from ._scalars import In, InOut, Out, Scalar, Struct, b8, bf16, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from ._session import Session
from ._shared import SharedAllocation, SharedMemory
from ._stream import Event, Stream
from ._wire import ServerEvent

if TYPE_CHECKING:
    from .aio import AsyncClient as AsyncClient

__version__ = "0.1.0"

__all__ = ["AsyncClient", "Batch", "BatchJob", "Buffer", "BuiltinKernel", "Client", "ElementwiseKernel", "Event", "Future", "In", "InOut", "Kernel", "Launch",
           "LaunchResult", "Module", "Out", "Program", "RawKernel", "RawModule", "ReductionKernel", "RunResult", "Scalar", "ServerEvent", "Session",
           "SharedAllocation", "SharedMemory", "Stream", "Struct", "Timeout", "Times", "align", "autotune", "b8", "bf16", "blocks", "coalesce", "connect", "default_client",
           "default_session",
           "errors", "f16", "f32", "f64", "i16", "i32", "i64", "i8", "run", "set_default", "tile", "u16", "u32", "u64", "u8"]

__all__ += _arrays_api.__all__


def run(source: str, kernel: str, args: Any = (), **more: Any) -> RunResult:
    """Client.run() of the default client."""
    return default_client().run(source, kernel, args, **more)


def blocks(n: int, threads: int) -> int:
    """How many blocks of so many threads cover `n` elements."""
    return -(-n // threads)


def __getattr__(name: str) -> Any:
    if name == "AsyncClient":  # asyncio is loaded by those who use it
        from .aio import AsyncClient
        return AsyncClient
    raise AttributeError(f"module 'gpurest' has no attribute {name!r}")
