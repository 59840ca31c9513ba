"""Modules, kernels and launches of the asyncio client."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Awaitable, Dict, Mapping, Optional, Sequence, Tuple

from .._session import requests
from .._session.batch import Future, LaunchResult
from .._session.builtin_kernel import BuiltinKernel
from .._session.handle import caller
from .._session.launch import FINISHED, LaunchTold, QueuedTold, located
from .._session.kernel import Dims, Grid, Kernel
from .._session.module import Module
from ..errors import ArgumentError, GpurestError

if TYPE_CHECKING:
    from ..aio import AsyncSession

WAIT_S = 30


class AsyncLaunch(LaunchTold):
    """See Launch."""

    def __init__(self, session: AsyncSession, info: Mapping[str, Any], kernel: str, queued_at: str) -> None:
        super().__init__(info, kernel, queued_at)
        self._session = session

    async def wait(self) -> AsyncLaunch:
        """Returns when it has succeeded; raises what failed. Bound it by asyncio.wait_for()."""
        while self.state not in FINISHED:
            self._info = await self._session._do(requests.launch_get(self._session.id, self.id, WAIT_S))
        self._raise_unless_succeeded(self._session._note)
        return self

    async def cancel(self, force: bool = False) -> None:
        """See Launch.cancel()."""
        info = await self._session._do(requests.launch_cancel(self._session.id, self.id, force))
        self._take_cancelled(info)


class AsyncQueuedLaunch(QueuedTold, AsyncLaunch):
    """A launch in a batch: known when the batch has run."""

    def __init__(self, session: AsyncSession, kernel: str, future: Future[LaunchResult]) -> None:
        QueuedTold.__init__(self, kernel, future)
        self._session = session

    async def wait(self) -> AsyncLaunch:
        self._future.result(0)
        return self

    async def cancel(self, force: bool = False) -> None:
        raise GpurestError("a launch in a batch is not cancelled by itself")


async def _send_launch(session: AsyncSession, kernel: str, document: Dict[str, Any], timeout_ms: Optional[int], wait: bool) -> AsyncLaunch:
    """By a request of its own, or into the batch that is being recorded."""
    batch = session._batch_now()
    if batch is not None:
        if timeout_ms is not None:
            raise ArgumentError("in a batch the deadline is the batch's: session.batch(timeout_ms=…)")
        return AsyncQueuedLaunch(session, kernel, batch._launch(document, kernel))
    if timeout_ms is not None:
        document["timeout_ms"] = timeout_ms
    queued_at = caller()
    try:
        info = await session._do(requests.launch(session.id, document, None if wait else 0))
    except GpurestError as error:
        raise located(error, kernel, queued_at)
    launch = AsyncLaunch(session, info, kernel, queued_at)
    return await launch.wait() if wait else launch


class AsyncKernel:
    """See Kernel. `await kernel(grid, block, args)`, `await kernel[grid, block](…)`, `await kernel.for_n(n)(…)`."""

    def __init__(self, session: AsyncSession, inner: Kernel) -> None:
        self.session = session
        self._inner = inner
        self.name = inner.name

    async def __call__(self, grid: Grid, block: Optional[Dims], args: Sequence[Any] = (), *, shared_bytes: int = 0, shared_mem: int = 0,
                       timeout_ms: Optional[int] = None, wait: bool = True, casting: str = "no") -> AsyncLaunch:
        document = self._inner._document(grid, block, args, shared_bytes or shared_mem, casting)
        return await _send_launch(self.session, self.name, document, timeout_ms, wait)

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
        return self._inner.kernels

    def kernel(self, name: str) -> AsyncKernel:
        return AsyncKernel(self.session, self._inner.kernel(name))

    get_function = kernel
    __getitem__ = kernel

    async def free(self) -> None:
        if not self._inner._freed:
            await self.session._do(requests.delete(requests.module_path(self.session.id, self.id)))
            self._inner._freed = True
