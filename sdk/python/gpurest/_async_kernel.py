"""Modules, kernels and launches of the asyncio client."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Awaitable, Dict, Mapping, Optional, Sequence, Tuple

from . import _ops
from ._batch import Future, LaunchResult
from ._handle import caller
from ._module import Dims, Grid, Kernel, Module, located
from .errors import ArgumentError, GpurestError, from_problem

if TYPE_CHECKING:
    from .aio import AsyncSession

WAIT_S = 30
_FINISHED = ("succeeded", "failed", "cancelled")


class AsyncLaunch:
    """See Launch."""

    def __init__(self, session: AsyncSession, info: Mapping[str, Any], kernel: str, queued_at: str) -> None:
        self._session, self.info, self._kernel, self._queued_at = session, dict(info), kernel, queued_at

    @property
    def id(self) -> str:
        return str(self.info["id"])

    @property
    def state(self) -> str:
        return str(self.info["state"])

    @property
    def gpu_us(self) -> Optional[float]:
        return self.info.get("gpu_us")

    @property
    def stdout(self) -> str:
        return str(self.info.get("stdout") or "")

    async def wait(self) -> AsyncLaunch:
        """Returns when it has succeeded; raises what failed. Bound it by asyncio.wait_for()."""
        while self.state not in _FINISHED:
            self.info = await self._session._do(_ops.launch_get(self._session.id, self.id, WAIT_S))
        if self.state == "succeeded":
            return self
        error = from_problem(self.info.get("problem") or {"status": 0, "detail": f"the launch of {self._kernel} was {self.state}"})
        self._session._note(error)
        raise located(error, self._kernel, self._queued_at, self.stdout)

    async def cancel(self, force: bool = False) -> None:
        info = await self._session._do(_ops.launch_cancel(self._session.id, self.id, force))
        self.info.update(info)


class AsyncQueuedLaunch(AsyncLaunch):
    """A launch in a batch: known when the batch has run."""

    def __init__(self, session: AsyncSession, kernel: str, future: Future[LaunchResult]) -> None:
        super().__init__(session, {}, kernel, "")
        self._future = future

    @property
    def state(self) -> str:
        if not self._future.done():
            return "queued"
        return "failed" if self._future.exception() is not None else "succeeded"

    @property
    def gpu_us(self) -> Optional[float]:
        return self._future.result().gpu_us if self.state == "succeeded" else None

    @property
    def stdout(self) -> str:
        return self._future.result().stdout if self.state == "succeeded" else ""

    async def wait(self) -> AsyncLaunch:
        self._future.result(0)
        return self

    async def cancel(self, force: bool = False) -> None:
        raise GpurestError("a launch in a batch is not cancelled by itself")


class AsyncKernel:
    """See Kernel. `await kernel(grid, block, args)`, `await kernel[grid, block](…)`, `await kernel.for_n(n)(…)`."""

    def __init__(self, session: AsyncSession, inner: Kernel) -> None:
        self.session = session
        self._inner = inner
        self.name = inner.name

    async def __call__(self, grid: Grid, block: Optional[Dims], args: Sequence[Any] = (), *, shared_bytes: int = 0, timeout_ms: Optional[int] = None,
                       wait: bool = True, casting: str = "no") -> AsyncLaunch:
        session, inner = self.session, self._inner
        inner.module._check()
        document = inner._document(grid, block, args, shared_bytes, casting == "same_kind")
        batch = session._batch_now()
        if batch is not None:
            return AsyncQueuedLaunch(session, self.name, batch._launch(document, self.name))
        if timeout_ms is not None:
            document["timeout_ms"] = timeout_ms
        queued_at = caller()
        try:
            info = await session._do(_ops.launch(session.id, document, None if wait else 0))
        except GpurestError as error:
            raise located(error, self.name, queued_at)
        launch = AsyncLaunch(session, info, self.name, queued_at)
        return await launch.wait() if wait else launch

    def __getitem__(self, config: Any) -> _AsyncConfigured:
        if not isinstance(config, tuple) or len(config) not in (2, 3):
            raise ArgumentError("kernel[grid, block] or kernel[grid, block, shared_bytes]")
        return _AsyncConfigured(self, config[0], config[1], int(config[2]) if len(config) > 2 else 0)

    def for_n(self, n: int) -> _AsyncConfigured:
        return _AsyncConfigured(self, {"threads": n}, None, 0)


class _AsyncConfigured:
    def __init__(self, kernel: AsyncKernel, grid: Grid, block: Optional[Dims], shared_bytes: int) -> None:
        self._kernel, self._grid, self._block, self._shared_bytes = kernel, grid, block, shared_bytes

    def __call__(self, *args: Any, **more: Any) -> Awaitable[AsyncLaunch]:
        return self._kernel(self._grid, self._block, args, shared_bytes=self._shared_bytes, **more)


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
            await self.session._do(_ops.delete(_ops.module_path(self.session.id, self.id)))
            self._inner._freed = True
