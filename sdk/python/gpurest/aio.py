"""The asyncio client: the names of the blocking one; what needs an answer is a coroutine. Each transfer goes over one connection.

Objects belong to one event loop. In an `async with session.batch()` block the coroutines only record, and the block's end sends. When a
task is cancelled in a request, its connection is closed: the service then drops what was queued for it; a kernel that runs goes on."""
from __future__ import annotations

import asyncio
import os
import time
from types import TracebackType
from typing import Any, AsyncIterator, Awaitable, Dict, Generator, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import _ops, _run
from ._async import AsyncTransport
from ._batch import Batch, Future, LaunchResult
from ._buffer import Buffer, Slot
from ._dtypes import dtype_of
from ._endpoint import Endpoint, Timeout, token_of
from ._handle import caller
from ._hostmem import byte_view, count_of, dtype_from, empty, from_sequence, shape_from, shape_of
from ._memory_pool import parse_bytes
from ._module import Dims, Grid, Kernel, Module, located
from ._session_base import BATCH_OPS_MAX
from ._session_state import SessionState
from ._transfer import TAKE_BACK_PAUSE_S, delete_again, refused
from ._wire import Call, EventParser, Request, Response, ServerEvent
from .errors import ArgumentError, BusyError, ClosedError, ConnectionError_, GpurestError, TimeoutError_, from_problem

__all__ = ["AsyncClient", "AsyncSession", "AsyncBuffer", "AsyncModule", "AsyncKernel", "AsyncBatch", "AsyncLaunch"]
T = TypeVar("T")
WAIT_S = 30
EVENT_STREAM_S = 30
MAY_COME_S = 0.5  # shorter than the blocking client's: a cancellation should not take long
_FINISHED = ("succeeded", "failed", "cancelled")


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
            await self.session._send(_ops.data_put(self.session.id, inner.id, offset, view, len(view) == inner.nbytes))

    async def read_into(self, out: Any, offset: int = 0) -> None:
        inner = self._inner
        inner._check()
        view = byte_view(out, "out")
        inner._range(offset, len(view))
        if inner._recording() is not None:
            raise GpurestError("a batch is being recorded: use get_async(), or read after it")
        if len(view):
            await self.session._send(_ops.data_get(self.session.id, inner.id, offset, len(view)), view)

    async def read(self, offset: int = 0, size: Optional[int] = None) -> bytearray:
        out = bytearray(self._inner._range(offset, size))
        await self.read_into(out, offset)
        return out

    async def get(self) -> Any:
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
                await self.session._do(_ops.delete(_ops.buffer_path(self.session.id, inner.id)))
        inner._freed = True
        if inner._finalizer is not None:
            inner._finalizer.detach()

    async def __aenter__(self) -> AsyncBuffer:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.free()


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


class AsyncBatch(Batch):
    """See Batch. It goes as one request, whatever its size: at most 4096 operations and 256 segments each way."""

    _session: AsyncSession

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
        if self.submitted:
            raise ClosedError("the batch was submitted already")
        self.submitted = True
        self._leave()
        group = self._group
        if not group.ops:
            return self
        try:
            answer, segments = await self._session._do(_ops.session_batch(self._session.id, self._document(group), group.segments))
        except GpurestError as error:
            self._failed(group, error)
            raise
        except BaseException as error:
            self._abandon(error)
            raise
        self._succeeded(group, answer, segments)
        return self

    def _flush(self) -> None:
        raise ArgumentError("the batch is too large for one request: submit it and begin another")


class AsyncSession(SessionState):
    """See Session."""

    client: AsyncClient

    async def _do(self, call: Call[T]) -> T:
        self._check()
        try:
            return await self.client._transport.do(call)
        except GpurestError as error:
            self._note(error)
            raise

    async def _send(self, request: Request, into: Optional[memoryview] = None) -> Response:
        self._check()
        try:
            return await self.client._transport.send(request, into)
        except GpurestError as error:
            self._note(error)
            raise

    async def free_unused(self) -> int:
        """Frees now what finalizers and cancelled uploads have left behind."""
        for name in self._take_doubtful():
            await self._delete_quietly(name)
        names = self._take_garbage(BATCH_OPS_MAX)
        if not names:
            return 0
        try:
            await self._do(_ops.session_batch(self.id, {"ops": [{"op": "free", "buf": name} for name in names]}, {}))
        except GpurestError:
            self._check()
            for name in names:  # somebody else freed one of them: each for itself
                await self._delete_quietly(name)
        return len(names)

    async def _delete_quietly(self, name: str) -> None:
        try:
            await self._do(_ops.delete(_ops.buffer_path(self.id, name)))
        except GpurestError:
            pass

    async def _create_filled(self, name: str, view: memoryview) -> None:
        """If the answer is not waited for, no buffer is left: a body that was complete may become one a moment later."""
        try:
            await self._send(_ops.buffer_create_filled(self.id, name, view))
        except BaseException as error:
            if not refused(error):
                await self._take_back(name)
            raise

    async def _take_back(self, name: str) -> None:
        started = time.monotonic()
        while True:
            try:
                await self._do(_ops.delete(_ops.buffer_path(self.id, name)))
                return
            except GpurestError as error:
                elapsed = time.monotonic() - started
                if not delete_again(error, elapsed, elapsed < MAY_COME_S):
                    self._doubtful.append((self.generation, name))
                    return
            await asyncio.sleep(TAKE_BACK_PAUSE_S)

    async def buffer(self, data: Any = None, *, size: Optional[int] = None, dtype: Any = None) -> AsyncBuffer:
        self._check()
        kind = None if dtype is None else dtype_of(dtype)
        if (data is None) == (size is None) or isinstance(data, int):
            raise ArgumentError("buffer() takes either data or size=")
        if isinstance(data, (list, tuple)):
            if kind is None:
                raise ArgumentError("numbers in a list have no size of their own: pass dtype=")
            data = from_sequence(data, kind)
        view = None if data is None else byte_view(data)
        return await self._new(len(view) if view is not None else int(size or 0), kind or (dtype_from(data) if data is not None else None),
                               shape_from(data) if dtype is None else None, view)

    async def empty(self, shape: Union[int, Sequence[int]], dtype: Any = "f4") -> AsyncBuffer:
        sizes, kind = shape_of(shape), dtype_of(dtype)
        return await self._new(count_of(sizes) * kind.itemsize, kind, sizes, None)

    async def _new(self, size: int, dtype: Any, shape: Any, view: Optional[memoryview]) -> AsyncBuffer:
        if size < 1:
            raise ArgumentError("a buffer has at least 1 byte")
        owner: Any = self
        batch = self._batch_now()
        if batch is not None:
            slot = Slot(None, "$" + self._new_name("b"))
            batch._alloc(slot, size, view)
            return AsyncBuffer(self, Buffer(owner, slot, size, dtype, shape, batch))
        name = self._new_name("b")
        if self._garbage or self._doubtful:
            await self.free_unused()
        if view is None:
            await self._do(_ops.buffer_create(self.id, name, size))
        else:
            await self._create_filled(name, view)
        return AsyncBuffer(self, Buffer(owner, Slot(name), size, dtype, shape))

    async def module(self, source: str, options: Sequence[str] = (), *, headers: Optional[Mapping[str, str]] = None,
                     name_expressions: Sequence[str] = ()) -> AsyncModule:
        spec = _ops.module_spec(source, tuple(options), dict(headers or {}), tuple(name_expressions))
        owner: Any = self
        info = await self._do(_ops.module_create(self.id, spec))
        return AsyncModule(self, Module(owner, info, source, info["id"]))

    compile = module

    def batch(self, *, timeout_ms: Optional[int] = None) -> AsyncBatch:
        self._check()
        return AsyncBatch(self, None, timeout_ms, BATCH_OPS_MAX, 1 << 62)

    async def sync(self) -> None:
        await self._do(_ops.session_sync(self.id, None))

    wait = sync
    fence = sync

    async def info(self) -> Dict[str, Any]:
        return await self._do(_ops.get(_ops.session_path(self.id)))

    async def memory(self) -> Dict[str, Any]:
        return await self._do(_ops.get(_ops.session_path(self.id) + "/memory"))

    async def reset(self) -> None:
        info = await self.client._transport.do(_ops.session_reset(self.id))
        self._renewed(info)

    async def events(self, types: Sequence[str] = (), *, timeout: Optional[float] = None,
                     last_id: Optional[str] = None) -> AsyncIterator[ServerEvent]:
        """See Session.events()."""
        deadline = None if timeout is None else time.monotonic() + timeout
        parser = EventParser(last_id)
        transport = self.client._transport
        tries = transport.retries
        while True:
            self._check()
            left = EVENT_STREAM_S if deadline is None else int(min(EVENT_STREAM_S, max(0.0, deadline - time.monotonic())) + 0.999)
            if left < 1:
                return
            try:
                async for piece in transport.stream(_ops.events(self.id, tuple(types), left, parser.last_id)):
                    tries = transport.retries
                    for event in parser.feed(piece):
                        yield event
            except ConnectionError_:
                if tries == 0:
                    raise
                tries -= 1
            parser.restart()

    async def close(self) -> None:
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        if self._owned and not self.client._transport.closed:
            try:
                await self.client._transport.do(_ops.delete(_ops.session_path(self.id)))
            except GpurestError as error:
                if error.code != "session_not_found":
                    raise

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()


class _Opening:
    """session(): can be awaited, or entered by `async with`."""

    def __init__(self, client: AsyncClient, name: Optional[str], spec: Dict[str, Any]) -> None:
        self._client, self._name, self._spec = client, name, spec
        self._session: Optional[AsyncSession] = None

    async def _open(self) -> AsyncSession:
        info, created = await self._client._transport.do(_ops.session_open(self._name, self._spec))
        session = AsyncSession(self._client, info, created)
        self._client._sessions.append(session)
        return session

    def __await__(self) -> Generator[Any, None, AsyncSession]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncSession:
        self._session = await self._open()
        return self._session

    async def __aexit__(self, *_: Any) -> None:
        if self._session is not None:
            await self._session.close()


class AsyncClient:
    """See Client; for one event loop."""

    def __init__(self, url: Optional[str] = None, *, token: Optional[str] = None, timeout: Union[Timeout, float, None] = None, retries: int = 2,
                 ca_file: Optional[str] = None, idempotency_keys: bool = False) -> None:
        self._transport = AsyncTransport(Endpoint.parse(url), token_of(token), Timeout.of(timeout), retries, ca_file, idempotency_keys)
        self._sessions: List[AsyncSession] = []
        self._tuned: Dict[Tuple[str, str, str], int] = {}

    @property
    def requests_sent(self) -> int:
        return self._transport.requests_sent

    def session(self, name: Optional[str] = None, *, device: Optional[str] = None, memory_limit: Union[int, str, None] = None,
                idle_timeout_s: Optional[int] = None, labels: Optional[Mapping[str, str]] = None) -> _Opening:
        """`await` it, or enter it by `async with`."""
        spec: Dict[str, Any] = {"device": device, "memory_limit": parse_bytes(memory_limit), "idle_timeout_s": idle_timeout_s,
                                "labels": dict(labels) if labels else None}
        return _Opening(self, name, {key: value for key, value in spec.items() if value is not None})

    async def attach(self, id: str) -> AsyncSession:
        """See Client.attach()."""
        info = await self._transport.do(_ops.get(_ops.session_path(id)))
        return AsyncSession(self, info, False)

    async def run(self, source: str, kernel: str, args: Sequence[Any] = (), *, n: Optional[int] = None, grid: Optional[Dims] = None,
                  block: Optional[Dims] = None, options: Sequence[str] = (), headers: Optional[Mapping[str, str]] = None, shared_bytes: int = 0,
                  timeout_ms: Optional[int] = None) -> _run.RunResult:
        """See Client.run()."""
        run = _run.prepare(source, kernel, args, n=n, grid=grid, block=block, options=options, headers=headers, shared_bytes=shared_bytes,
                           timeout_ms=timeout_ms)
        return run.finish(await self._transport.do(_ops.batch("/v1/run", run.document, run.segments)))

    async def devices(self) -> List[Dict[str, Any]]:
        items: List[Dict[str, Any]] = (await self._transport.do(_ops.get("/v1/devices")))["items"]
        return items

    async def limits(self) -> Dict[str, Any]:
        found: Dict[str, Any] = (await self._transport.do(_ops.get("/v1/limits")))["limits"]
        return found

    async def version(self) -> Dict[str, Any]:
        return await self._transport.do(_ops.get("/version"))

    async def is_ready(self) -> bool:
        try:
            await self._transport.send(Request("GET", "/readyz"))
            return True
        except (ConnectionError_, TimeoutError_, BusyError):
            return False

    async def close(self) -> None:
        if self._transport.closed:
            return
        for session in self._sessions:
            await session.close()
        await self._transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()
