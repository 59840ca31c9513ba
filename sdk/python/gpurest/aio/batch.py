"""Batches of the asyncio client."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Optional

from .._session.batch import Batch
from ..errors import ArgumentError, ClosedError, GpurestError
from .background import AsyncBatchJob

if TYPE_CHECKING:
    from .session import AsyncSession


class AsyncBatch(Batch):
    """See Batch. It goes as one request, whatever its size: at most 4096 operations and 256 segments each way."""

    _session: AsyncSession
    _awaited: Optional[AsyncBatchJob[Batch]] = None

    async def __aenter__(self) -> AsyncBatch:
        self.__enter__()
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._leave()
        if self.submitted:
            return
        if kind is None:
            await self.asubmit()
        else:
            self._abandon(error)

    async def asubmit(self) -> AsyncBatch:
        """Sends what was recorded and waits for its end, as leaving the block does."""
        if self.submitted:
            raise ClosedError("the batch was submitted already")
        self.submitted = True
        self._leave()
        group = self._group
        if not group.ops:
            return self
        try:
            answer, segments = await self._session._drive(self._session._sending(self._document(group), group.segments))
        except GpurestError as error:
            self._failed(group, error)
            raise
        except BaseException as error:
            self._abandon(error)
            raise
        self._succeeded(group, answer, segments)
        return self

    async def asubmit_background(self) -> AsyncBatchJob[Batch]:
        """See Batch.submit_background(): await the job before the results of the batch are asked for."""
        job: AsyncBatchJob[Batch] = await self._session._drive(self._sending_background(AsyncBatchJob))
        self._awaited = job
        return job

    def submit_background(self) -> NoReturn:
        raise GpurestError("await asubmit_background(): this would block")

    def _in_background(self) -> bool:
        return self._awaited is not None and not self._awaited._settled

    def _bring(self, timeout: Optional[float]) -> None:
        super()._bring(timeout)
        if self._in_background():
            raise GpurestError("the batch is in the background: await its job first")

    def _flush(self) -> None:
        raise ArgumentError("the batch is too large for one request: submit it and begin another")
