"""Work in the background, of the asyncio client."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Generator, Mapping, Optional, TypeVar

from .._session import requests
from .._session.background import FINAL, POLL_S, JobTold, WarmTold
from .._transport.steps import drive_async
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
