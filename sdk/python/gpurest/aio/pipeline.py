"""Pipelines and fences of the asyncio client."""
from __future__ import annotations

from typing import Any, Optional, Sequence

from .._session.handle import Unpicklable
from .._session.kernel import Dims
from .kernel import AsyncKernel, AsyncLaunch


class AsyncFence(Unpicklable):
    """See Fence."""

    _instead = "pickle its results"

    def __init__(self, launch: AsyncLaunch) -> None:
        self.launch = launch

    async def wait(self) -> AsyncFence:
        """Returns when it has been reached; raises what failed. Bound it by asyncio.wait_for()."""
        await self.launch.wait()
        return self


class AsyncPipeline(Unpicklable):
    """See Pipeline: `fence = await pipeline.dispatch(groups, buffers, push)`."""

    _instead = "pickle its source"

    def __init__(self, kernel: AsyncKernel) -> None:
        self.kernel = kernel

    async def dispatch(self, groups: Dims, buffers: Sequence[Any] = (), push: Sequence[Any] = (), *, block: Optional[Dims] = None,
                       timeout_ms: Optional[int] = None) -> AsyncFence:
        """See Pipeline.dispatch(): it returns when the service has the launch, not when that has ended."""
        return AsyncFence(await self.kernel(groups, block, (*buffers, *push), timeout_ms=timeout_ms, wait=False))
