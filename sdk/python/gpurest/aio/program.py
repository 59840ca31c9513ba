"""Programs of the asyncio client."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union

from .._session import requests
from .._session.program import ProgramBase
from .._session.run import RunResult
from ..errors import ArgumentError, GpurestError, NotFoundError
from .background import AsyncBatchJob
from .buffer import AsyncBuffer

if TYPE_CHECKING:
    from ..aio import AsyncSession


class AsyncProgram(ProgramBase):
    """See Program: `async with session.program() as step:` records what this task asks of the session."""

    @property
    def _async_session(self) -> AsyncSession:
        session: Any = self._session
        found: AsyncSession = session
        return found

    async def __aenter__(self) -> AsyncProgram:
        self._begin()
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        call = self._end(error)
        if call is None:
            return
        try:
            if self._session._has_left():
                await self._async_session.free_unused()
            info = await self._async_session._do(call)
            self._made(info)
        except BaseException as failure:
            self._not_put(failure)
            raise

    def input(self, name: str, data: Any = None, *, shape: Optional[Union[int, Sequence[int]]] = None, dtype: Any = None,
              to: Optional[AsyncBuffer] = None, offset: int = 0) -> AsyncBuffer:
        """See Program.input()."""
        if to is None:
            return AsyncBuffer(self._async_session, self._new_input(name, data, shape, dtype, None, offset))
        self._new_input(name, data, shape, dtype, _inner(to), offset)
        return to

    def output(self, name: str, buffer: AsyncBuffer) -> None:
        """See Program.output()."""
        self._new_output(name, _inner(buffer))

    async def run(self, values: Optional[Mapping[str, Any]] = None, /, *, out: Optional[Mapping[str, Any]] = None,
                  timeout_ms: Optional[int] = None, **named: Any) -> RunResult:
        """See Program.run()."""
        run = self._run_of(values, named, out, timeout_ms)
        try:
            return run.finish(await self._async_session._do(run.call))
        except GpurestError as error:
            raise self._located(error)

    async def run_background(self, values: Optional[Mapping[str, Any]] = None, /, *, out: Optional[Mapping[str, Any]] = None,
                             timeout_ms: Optional[int] = None, **named: Any) -> AsyncBatchJob[RunResult]:
        """See Program.run_background()."""
        run, session = self._run_of(values, named, out, timeout_ms), self._async_session
        try:
            info = await session._do(requests.in_background(run.call))
        except GpurestError as error:
            raise self._located(error)
        return AsyncBatchJob(session.client, session, requests.session_job(session.id, info["id"]), info, run.finish, self._located)

    async def free(self) -> None:
        """See Program.free()."""
        if self._freed:
            return
        if self._ready and not self._gone():
            try:
                await self._async_session._do(requests.program_delete(self._session.id, self.name))
            except NotFoundError:
                pass
        self._after_free()


def _inner(buffer: Any) -> Any:
    if not isinstance(buffer, AsyncBuffer):
        raise ArgumentError(f"a buffer is wanted, got a {type(buffer).__name__}")
    return buffer._inner
