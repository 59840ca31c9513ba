"""Batches in the background, of the asyncio client."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Generator, Mapping, Optional, TypeVar

from .._session import requests
from .._session.background import FINAL, POLL_S, JobTold
from ..errors import GpurestError

if TYPE_CHECKING:
    from ..aio import AsyncClient, AsyncSession

T = TypeVar("T")


class AsyncBatchJob(JobTold[T]):
    """See BatchJob. `await job` is `await job.result()`; bound it by asyncio.wait_for(), which ends the waiting and not the batch."""

    def __init__(self, client: AsyncClient, session: Optional[AsyncSession], path: str, info: Mapping[str, Any],
                 finish: Callable[[requests.BatchAnswer], T], fail: Callable[[GpurestError], object], **more: Any) -> None:
        super().__init__(path, info, session, finish, fail, **more)
        self._client = client
        self._owner = session

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
        try:
            status, info = await self._client._transport.do(requests.job_end(self._path, force))
        except GpurestError as error:
            self._take_unknown(error)
            return False
        cancelled = self._take_end(status, info)
        if status == 202 and self._owner is not None:
            renewed = await self._client._transport.do(requests.get(requests.session_path(self._owner.id)))
            self._owner._take_renewed(renewed)
        return cancelled

    async def _look(self, wait_s: int) -> None:
        """Asks once; settles it if it has ended."""
        if self._settled:
            return
        try:
            self._take_info(await self._client._transport.do(requests.job_get(self._path, wait_s)))
            if self.state == "succeeded":
                self._take_answer(await self._client._transport.do(requests.job_result(self._path)))
                await self._forget()
            elif self.state in FINAL:
                self._take_failure(self._problem())
        except GpurestError as error:
            self._take_unknown(error)

    async def _forget(self) -> None:
        """The result is at the service no longer than it must be."""
        try:
            await self._client._transport.do(requests.job_end(self._path, False))
        except GpurestError:
            pass  # it goes by itself
