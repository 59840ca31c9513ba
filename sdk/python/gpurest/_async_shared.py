"""Shared memory for the asyncio client."""
from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from . import _ops
from ._shared import Mapping

if TYPE_CHECKING:
    from ._async_buffer import AsyncBuffer


class AsyncSharedMemory(Mapping):
    """See SharedMemory; made by `await buffer.share()`, and usable as `async with await buffer.share() as shared`."""

    def __init__(self, buffer: AsyncBuffer, descriptors: list[int]) -> None:
        super().__init__(buffer._inner, descriptors)
        self._outer = buffer

    @classmethod
    async def _of(cls, buffer: AsyncBuffer) -> AsyncSharedMemory:
        """The descriptor comes by recvmsg() on a connection of a thread: the event loop's streams take none."""
        session = buffer.session
        twin = session._for_threads()
        return cls(buffer, await session._in_thread(lambda: cls._opened(twin, buffer.id)))

    async def to_device(self, offset: int = 0, size: Optional[int] = None) -> None:
        await self._move("to_device", offset, size)

    async def from_device(self, offset: int = 0, size: Optional[int] = None) -> None:
        await self._move("from_device", offset, size)

    async def _move(self, direction: str, offset: int, size: Optional[int]) -> None:
        count = self._count(offset, size)
        session = self._outer.session
        await session._do(_ops.share_move(session.id, self.buffer.id, direction, offset, count))

    async def close(self) -> None:
        if self._let_go():
            session = self._outer.session
            await session._do(_ops.share_close(session.id, self.buffer.id))

    async def __aenter__(self) -> AsyncSharedMemory:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
