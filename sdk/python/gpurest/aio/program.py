"""Programs of the asyncio client."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union

from .._session.program import ProgramBase
from .._session.run import RunResult
from ..errors import ArgumentError
from .background import AsyncBatchJob
from .buffer import AsyncBuffer

if TYPE_CHECKING:
    from .session import AsyncSession


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
        await self._async_session._drive(self._preparing(error))

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
        return await self._async_session._drive(self._running(self._run_of(values, named, out, timeout_ms)))

    async def run_background(self, values: Optional[Mapping[str, Any]] = None, /, *, out: Optional[Mapping[str, Any]] = None,
                             timeout_ms: Optional[int] = None, **named: Any) -> AsyncBatchJob[RunResult]:
        """See Program.run_background()."""
        steps = self._running_background(AsyncBatchJob, self._run_of(values, named, out, timeout_ms))
        job: AsyncBatchJob[RunResult] = await self._async_session._drive(steps)
        return job

    async def free(self) -> None:
        """See Program.free()."""
        await self._async_session._drive(self._freeing())


def _inner(buffer: Any) -> Any:
    if not isinstance(buffer, AsyncBuffer):
        raise ArgumentError(f"a buffer is wanted, got a {type(buffer).__name__}")
    return buffer._inner
