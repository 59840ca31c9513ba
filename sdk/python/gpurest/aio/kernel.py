"""Modules, kernels and launches of the asyncio client."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Awaitable, Dict, Optional, Sequence, Tuple

from .._session.builtin_kernel import BuiltinKernel
from .._session.handle import Unpicklable
from .._session.kernel import Dims, Grid, Kernel
from .._session.launch import LaunchTold, QueuedTold, launching
from .._session.module import Module
from ..errors import ArgumentError
from .buffer import AsyncBuffer

if TYPE_CHECKING:
    from .session import AsyncSession


class AsyncLaunch(LaunchTold):
    """See Launch."""

    async def wait(self) -> AsyncLaunch:
        """Returns when it has succeeded; raises what failed. Bound it by asyncio.wait_for()."""
        await self._session._drive(self._waiting(None))
        return self

    async def cancel(self, force: bool = False) -> None:
        """See Launch.cancel()."""
        await self._session._drive(self._cancelling(force))


class AsyncQueuedLaunch(QueuedTold, AsyncLaunch):
    """A launch in a batch: known when the batch has run."""

    async def wait(self) -> AsyncLaunch:
        self._future.result(0)
        return self


async def _send_launch(session: AsyncSession, kernel: str, document: Dict[str, Any], timeout_ms: Optional[int], wait: bool,
                       timing: bool = True) -> AsyncLaunch:
    return await session._drive(launching((AsyncLaunch, AsyncQueuedLaunch), session, kernel, document, None, timeout_ms, wait, timing))


class AsyncKernel(Unpicklable):
    """See Kernel. `await kernel(grid, block, args)`, `await kernel[grid, block](…)`, `await kernel.for_n(n)(…)`."""

    _instead = "pickle its source"

    def __init__(self, session: AsyncSession, inner: Kernel) -> None:
        self.session = session
        self._inner = inner
        self.name = inner.name

    async def __call__(self, grid: Grid, block: Optional[Dims], args: Sequence[Any] = (), *, shared_bytes: int = 0, shared_mem: int = 0,
                       timeout_ms: Optional[int] = None, wait: bool = True, casting: str = "no", cooperative: bool = False,
                       timing: bool = True) -> AsyncLaunch:
        document = self._inner._document(grid, block, args, shared_bytes or shared_mem, casting, cooperative)
        return await _send_launch(self.session, self.name, document, timeout_ms, wait, timing)

    def __getitem__(self, config: Any) -> _AsyncConfigured:
        if not isinstance(config, tuple) or len(config) not in (2, 3):
            raise ArgumentError("kernel[grid, block] or kernel[grid, block, shared_bytes]")
        return _AsyncConfigured(self, config[0], config[1], int(config[2]) if len(config) > 2 else 0)

    def for_n(self, n: int, *, shared_bytes: int = 0) -> _AsyncConfigured:
        """See Kernel.for_n()."""
        chosen = self._inner.for_n(n, shared_bytes=shared_bytes)
        return _AsyncConfigured(self, chosen.grid, chosen.block, shared_bytes)


class _AsyncConfigured:
    def __init__(self, kernel: AsyncKernel, grid: Grid, block: Optional[Dims], shared_bytes: int) -> None:
        self._kernel, self._grid, self._block, self._shared_bytes = kernel, grid, block, shared_bytes

    def __call__(self, *args: Any, **more: Any) -> Awaitable[AsyncLaunch]:
        return self._kernel(self._grid, self._block, args, shared_bytes=self._shared_bytes, **more)


class AsyncBuiltinKernel:
    """See BuiltinKernel: `await kernel(x, out, 1000)`."""

    def __init__(self, session: AsyncSession, inner: BuiltinKernel) -> None:
        self.session = session
        self._inner = inner
        self.name, self.dtype, self.info, self.params = inner.name, inner.dtype, inner.info, inner.params

    async def __call__(self, *args: Any, timeout_ms: Optional[int] = None, wait: bool = True, casting: str = "no") -> AsyncLaunch:
        return await _send_launch(self.session, self.name, self._inner._document(args, casting), timeout_ms, wait)

    def __repr__(self) -> str:
        return repr(self._inner).replace(type(self._inner).__name__, type(self).__name__, 1)


class AsyncModule:
    """See Module."""

    def __init__(self, session: AsyncSession, inner: Module) -> None:
        self.session = session
        self._inner = inner
        self.id, self.log = inner.id, inner.log

    @property
    def kernels(self) -> Tuple[str, ...]:
        """The names of its kernels."""
        return self._inner.kernels

    def kernel(self, name: str) -> AsyncKernel:
        """A kernel of the module by its name. NotFoundError where there is none."""
        return AsyncKernel(self.session, self._inner.kernel(name))

    get_function = kernel
    __getitem__ = kernel

    def get_global(self, name: str, dtype: Any = None) -> AsyncBuffer:
        """See Module.get_global()."""
        return AsyncBuffer(self.session, self._inner.get_global(name, dtype))

    async def free(self) -> None:
        """Unloads it on the server; a second time nothing happens."""
        await self.session._drive(self._inner._freeing())
