"""Work in the background, of the asyncio client."""
from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, Generator, Mapping, Optional, TypeVar

from .._session import requests
from .._session.background import FINAL, POLL_S, JobTold, WarmTold
from .._session.following import AGAIN_S, Following, LowMemoryTold, log_raised
from .._transport.steps import drive_async
from .._transport.wire import ServerEvent
from ..errors import GpurestError

if TYPE_CHECKING:
    from .client import AsyncClient
    from .session import AsyncSession

T = TypeVar("T")


class AsyncBatchJob(JobTold[T]):
    """See BatchJob. `await job` is `await job.result()`; bound it by asyncio.wait_for(), which ends the waiting and not the batch."""

    def __init__(self, client: AsyncClient, session: Optional[AsyncSession], path: str, info: Mapping[str, Any],
                 finish: Callable[[requests.BatchAnswer], T], fail: Callable[[GpurestError], object], **more: Any) -> None:
        super().__init__(path, info, session, finish, fail, **more)
        self._client = client

    def __await__(self) -> Generator[Any, None, T]:
        return self.result().__await__()

    async def done(self) -> bool:
        """See BatchJob.done()."""
        await self._look(0)
        return self._settled

    async def wait(self) -> AsyncBatchJob[T]:
        """See BatchJob.wait()."""
        while not self._settled:
            await self._look(POLL_S)
        self._outcome.result()
        return self

    async def result(self) -> T:
        """As wait(); returns the batch, or the RunResult."""
        await self.wait()
        return self._outcome.result()

    async def cancel(self, force: bool = False) -> bool:
        """See BatchJob.cancel()."""
        if await self.done():
            return self.state == "cancelled"
        return await drive_async(self._cancelling(force), self._client._transport.do)

    async def _look(self, wait_s: int) -> None:
        """Asks once; settles it if it has ended."""
        if not self._settled:
            await drive_async(self._asking(wait_s), self._client._transport.do)
            if self.state in FINAL:
                await drive_async(self._fetching(), self._client._transport.do)


class AsyncWarmJob(WarmTold):
    """See WarmJob."""

    def __init__(self, client: AsyncClient, info: Mapping[str, Any]) -> None:
        super().__init__(info)
        self._client = client

    async def done(self) -> bool:
        """See WarmJob.done()."""
        if not self._over:
            await drive_async(self._asking(0), self._client._transport.do)
        return self._over

    async def wait(self) -> AsyncWarmJob:
        """See WarmJob.wait(); bound it by asyncio.wait_for(), which ends the waiting alone."""
        while not self._over:
            await drive_async(self._asking(POLL_S), self._client._transport.do)
        self._verdict()
        return self

    async def cancel(self) -> bool:
        """See WarmJob.cancel()."""
        return not await self.done() and await drive_async(self._cancelling(), self._client._transport.do)


class AsyncLowMemoryWatch(LowMemoryTold):
    """Of AsyncSession.on_low_memory(): a task that calls the callback. remove() ends it."""

    def __init__(self, session: AsyncSession, follow: Callable[[Following], AsyncIterator[ServerEvent]],
                 callback: Callable[[Dict[str, Any]], Any]) -> None:
        super().__init__(session, callback)
        self._follow = follow
        self._began = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _begun(self) -> None:
        await self._began.wait()

    def remove(self) -> None:
        """See LowMemoryWatch.remove()."""
        self._removed = True
        self._task.cancel()

    async def _run(self) -> None:
        try:
            while not self._over and await self._followed():
                await asyncio.sleep(AGAIN_S)
        finally:
            self._began.set()

    async def _followed(self) -> bool:
        """See LowMemoryWatch."""
        try:
            async for event in self._follow(self._following(self._began.set)):
                await self._awaited(self._call(event))
        except GpurestError as error:
            self._began.set()
            return not self._ended(error)
        return True

    @staticmethod
    async def _awaited(came: Any) -> None:
        if inspect.isawaitable(came):
            try:
                await came
            except Exception:
                log_raised()
