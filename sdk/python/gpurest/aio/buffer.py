"""Buffers of the asyncio client."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, Union

from .._session import requests
from .._session.batch import Future
from .._session.buffer import Buffer
from .._session.handle import Unpicklable
from .._session.shared import SharedAllocation
from .._session.texture import Surface, Texture
from .._values.dtypes import DType
from .._values.hostmem import byte_view, empty
from .._values.scalars import Scalar
from ..errors import GpurestError
from .shared import AsyncSharedMemory, share_cuda

if TYPE_CHECKING:
    from .session import AsyncSession


class AsyncBuffer(Unpicklable):
    """See Buffer. Freed by `await free()`, by leaving an `async with` block, or along with a later batch of the session."""

    _instead = "pickle its contents, await buffer.get()"

    def __init__(self, session: AsyncSession, inner: Buffer) -> None:
        self.session = session
        self._inner = inner

    @property
    def id(self) -> str:
        """The buffer's id on the server."""
        return self._inner.id

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return self._inner.nbytes

    @property
    def dtype_str(self) -> Optional[str]:
        """The element type as in NumPy's array interface; None for bytes."""
        return self._inner.dtype_str

    @property
    def shape(self) -> Tuple[int, ...]:
        """The extents in elements; without an element type, the number of bytes."""
        return self._inner.shape

    @property
    def dtype(self) -> Optional[DType]:
        """The element type; None for bytes."""
        return self._inner.dtype

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self._inner.size

    @property
    def freed(self) -> bool:
        """Whether free() was called."""
        return self._inner.freed

    def __gpurest_buffer__(self) -> Tuple[Buffer, int]:
        return self._inner, 0

    async def write(self, data: Any, offset: int = 0) -> None:
        """Writes bytes of the host to an offset in bytes: Buffer.write()."""
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
        """Fills writable memory of the host from an offset in bytes on: Buffer.read_into()."""
        inner = self._inner
        inner._check()
        view = byte_view(out, "out")
        inner._range(offset, len(view))
        if inner._recording() is not None:
            raise GpurestError("a batch is being recorded: use get_async(), or read after it")
        if len(view):
            await self.session._send(requests.data_get(self.session.id, inner.id, offset, len(view)), view)

    async def read(self, offset: int = 0, size: Optional[int] = None) -> bytearray:
        """Bytes of it, from an offset in bytes on: Buffer.read()."""
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
        self._inner._check_share("share()")
        return await AsyncSharedMemory._of(self)

    async def share_cuda(self) -> SharedAllocation:
        """See Buffer.share_cuda()."""
        self._inner._check_share("share_cuda()")
        return await share_cuda(self)

    async def fill(self, value: Union[int, float, Scalar], offset: int = 0, size: Optional[int] = None) -> None:
        """See Buffer.fill()."""
        await self.session._drive(self._inner._filling(value, offset, size))

    async def copy_from(self, source: AsyncBuffer, *, offset: int = 0, from_offset: int = 0, size: Optional[int] = None) -> None:
        """See Buffer.copy_from()."""
        await self.session._drive(self._inner._copying(source._inner, offset, from_offset, size))

    async def compare(self, other: AsyncBuffer, *, offset: int = 0, with_offset: int = 0, size: Optional[int] = None) -> Dict[str, Any]:
        """See Buffer.compare()."""
        return await self.session._drive(self._inner._comparing(other._inner, offset, with_offset, size))

    async def free(self) -> None:
        """Frees it on the server; a second time nothing happens."""
        await self.session._drive(self._inner._freeing())

    async def __aenter__(self) -> AsyncBuffer:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.free()


class AsyncTexture(AsyncBuffer):
    """See Texture."""

    _argument = "tex"

    def __init__(self, session: AsyncSession, inner: Texture) -> None:
        super().__init__(session, inner)
        self._texture = inner
        self.spec = inner.spec

    @property
    def surface(self) -> Surface:
        """As an argument for a cudaSurfaceObject_t: Texture.surface."""
        return self._texture.surface
