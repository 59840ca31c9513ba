"""Buffers of the asyncio client."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Tuple, Union

from .._session import requests
from .._session.batch import Future
from .._session.buffer import Buffer
from .._session.shared import SharedAllocation
from .._values.dtypes import DType
from .._values.hostmem import byte_view, empty
from .._values.scalars import Scalar
from ..errors import GpurestError
from .shared import AsyncSharedMemory, share_cuda

if TYPE_CHECKING:
    from ..aio import AsyncSession


class AsyncBuffer:
    """See Buffer. Freed by `await free()`, by leaving an `async with` block, or along with a later batch of the session."""

    def __init__(self, session: AsyncSession, inner: Buffer) -> None:
        self.session = session
        self._inner = inner

    @property
    def id(self) -> str:
        return self._inner.id

    @property
    def nbytes(self) -> int:
        return self._inner.nbytes

    @property
    def dtype_str(self) -> Optional[str]:
        return self._inner.dtype_str

    @property
    def shape(self) -> Tuple[int, ...]:
        return self._inner.shape

    @property
    def dtype(self) -> Optional[DType]:
        return self._inner.dtype

    @property
    def size(self) -> int:
        return self._inner.size

    @property
    def freed(self) -> bool:
        return self._inner.freed

    def __gpurest_buffer__(self) -> Tuple[Buffer, int]:
        return self._inner, 0

    async def write(self, data: Any, offset: int = 0) -> None:
        inner = self._inner
        inner._check()
        if inner._recording() is not None:
            inner.write(data, offset)
            return
        view = byte_view(data)
        inner._range(offset, len(view))
        if len(view):
            await self.session._send(requests.data_put(self.session.id, inner.id, offset, view, len(view) == inner.nbytes))

    async def read_into(self, out: Any, offset: int = 0) -> None:
        inner = self._inner
        inner._check()
        view = byte_view(out, "out")
        inner._range(offset, len(view))
        if inner._recording() is not None:
            raise GpurestError("a batch is being recorded: use get_async(), or read after it")
        if len(view):
            await self.session._send(requests.data_get(self.session.id, inner.id, offset, len(view)), view)

    async def read(self, offset: int = 0, size: Optional[int] = None) -> bytearray:
        out = bytearray(self._inner._range(offset, size))
        await self.read_into(out, offset)
        return out

    async def get(self, out: Any = None) -> Any:
        """See Buffer.get()."""
        if out is not None:
            await self.read_into(self._inner._whole(out))
            return out
        made, view = empty(self.nbytes, self._inner.dtype, self._inner._shape)
        await self.read_into(view)
        return made

    aget = get

    def get_async(self) -> Future[Any]:
        """In a batch: the contents at this place of it."""
        batch = self._inner._recording()
        if batch is None:
            raise GpurestError("get_async() belongs into a batch; outside, await get()")
        return batch._read(self._inner._ref, self.nbytes, self._inner.dtype, self._inner._shape)

    async def share(self) -> AsyncSharedMemory:
        """See Buffer.share()."""
        self._inner._check()
        if self._inner._recording() is not None:
            raise GpurestError("a batch is being recorded: share() comes before or after it")
        return await AsyncSharedMemory._of(self)

    async def share_cuda(self) -> SharedAllocation:
        """See Buffer.share_cuda()."""
        self._inner._check()
        if self._inner._recording() is not None:
            raise GpurestError("a batch is being recorded: share_cuda() comes before or after it")
        return await share_cuda(self)

    async def fill(self, value: Union[int, float, Scalar], offset: int = 0, size: Optional[int] = None) -> None:
        """See Buffer.fill()."""
        inner = self._inner
        pattern = inner._pattern(value, offset, size)
        if inner._recording() is not None:
            inner.fill(value, offset, size)
        else:
            await self.session._do(requests.buffer_fill(self.session.id, inner.id, pattern, offset, size, None))

    async def copy_from(self, source: AsyncBuffer, *, offset: int = 0, from_offset: int = 0, size: Optional[int] = None) -> None:
        """See Buffer.copy_from()."""
        inner, other = self._inner, source._inner
        inner._check_copy(other, offset, from_offset, size)
        if inner._recording() is not None:
            inner.copy_from(other, offset=offset, from_offset=from_offset, size=size)
        else:
            await self.session._do(requests.buffer_copy(self.session.id, inner.id, offset, other.id, from_offset, size, None))

    async def free(self) -> None:
        inner = self._inner
        if inner._freed:
            return
        if not inner._gone():
            inner._check()
            batch = inner._recording()
            if batch is not None:
                batch._free(inner._slot)
            else:
                await self.session._do(requests.delete(requests.buffer_path(self.session.id, inner.id)))
        inner._freed = True
        if inner._finalizer is not None:
            inner._finalizer.detach()

    async def __aenter__(self) -> AsyncBuffer:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.free()
