"""The asyncio client: the names of the blocking one; what needs an answer is a coroutine. Each transfer goes over one connection.

Objects belong to one event loop. In an `async with session.batch()` block the coroutines only record, and the block's end sends. When a
task is cancelled in a request, its connection is closed: the service then drops what was queued for it; a kernel that runs goes on."""
from __future__ import annotations

from .background import AsyncBatchJob, AsyncWarmJob
from .batch import AsyncBatch
from .buffer import AsyncBuffer
from .client import AsyncClient
from .kernel import AsyncBuiltinKernel, AsyncKernel, AsyncLaunch, AsyncModule
from .pipeline import AsyncFence, AsyncPipeline
from .program import AsyncProgram
from .session import AsyncSession
from .shared import AsyncSharedMemory

__all__ = ["AsyncClient", "AsyncSession", "AsyncBuffer", "AsyncModule", "AsyncKernel", "AsyncBuiltinKernel", "AsyncBatch", "AsyncBatchJob", "AsyncLaunch",
           "AsyncFence", "AsyncPipeline", "AsyncProgram", "AsyncSharedMemory", "AsyncWarmJob"]
