"""Shared memory for the asyncio client."""
from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from .._session import requests
from .._session.shared import Mapping, Opened, SharedAllocation, opened

if TYPE_CHECKING:
    from .buffer import AsyncBuffer


async def _opened(buffer: AsyncBuffer, kind: Optional[str]) -> Opened:
    """The descriptor comes by recvmsg() on a connection of a thread: the event loop's streams take none."""
    session = buffer.session
    twin = session._for_threads()
    return await session._in_thread(lambda: opened(twin, buffer.id, kind))


async def share_cuda(buffer: AsyncBuffer) -> SharedAllocation:
    """See Buffer.share_cuda()."""
    return SharedAllocation(buffer._inner, await _opened(buffer, "cuda_fd"))


class AsyncSharedMemory(Mapping):
    """See SharedMemory; made by `await buffer.share()`, and usable as `async with await buffer.share() as shared`."""

    def __init__(self, buffer: AsyncBuffer, answer: Opened) -> None:
        super().__init__(buffer._inner, answer)
        self._outer = buffer

    @classmethod
    async def _of(cls, buffer: AsyncBuffer) -> AsyncSharedMemory:
        return cls(buffer, await _opened(buffer, None))

    async def to_device(self, offset: int = 0, size: Optional[int] = None) -> None:
        """Copies the shared memory into a buffer: SharedMemory.to_device()."""
        await self._move("to_device", offset, size)

    async def from_device(self, offset: int = 0, size: Optional[int] = None) -> None:
        """Copies a buffer into the shared memory: SharedMemory.from_device()."""
        await self._move("from_device", offset, size)

    async def _move(self, direction: str, offset: int, size: Optional[int]) -> None:
        count = self._count(offset, size)
        session = self._outer.session
        await session._do(requests.share_move(session.id, self.buffer.id, direction, offset, count))

    async def close(self) -> None:
        """Ends the sharing; a second time nothing happens."""
        if self._let_go():
            session = self._outer.session
            await session._do(requests.share_close(session.id, self.buffer.id))

    async def __aenter__(self) -> AsyncSharedMemory:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
