"""The asyncio client: the names of the blocking one; what needs an answer is a coroutine. Each transfer goes over one connection.

Objects belong to one event loop. In an `async with session.batch()` block the coroutines only record, and the block's end sends. When a
task is cancelled in a request, its connection is closed: the service then drops what was queued for it; a kernel that runs goes on."""
from __future__ import annotations

import asyncio
import os
import time
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Dict, Generator, List, Mapping, NoReturn, Optional, Sequence, Tuple, Type, TypeVar, Union

from .._session import requests, run as _run
from .._session.batch import Batch
from .._session.buffer import Buffer, Slot
from .._session.builtin_kernel import BuiltinKernel
from .._session.client import Client
from .._session.handle import caller
from .._session.memory_pool import parse_bytes
from .._session.kernel import Dims
from .._session.module import Module
from .._session.session import Session
from .._session.session_base import BATCH_OPS_MAX
from .._session.session_state import SessionState
from .._session.transfer import TAKE_BACK_PAUSE_S, delete_again, refused
from .._transport.endpoint import Endpoint, Timeout, token_of
from .._transport.wire import Call, EventParser, Request, Response, ServerEvent, any_request
from .._values.dtypes import dtype_of
from .._values.hostmem import byte_view, count_of, dtype_from, from_sequence, shape_from, shape_of
from .._values.scalars import Scalar
from ..arrays import host
from ..arrays.current import flush
from ..arrays.ndarray import fetch, ndarray
from ..errors import ArgumentError, BusyError, ClosedError, ConnectionError_, GpurestError, TimeoutError_
from .background import AsyncBatchJob
from .buffer import AsyncBuffer
from .kernel import AsyncBuiltinKernel, AsyncKernel, AsyncLaunch, AsyncModule
from .program import AsyncProgram
from .shared import AsyncSharedMemory
from .transport import AsyncTransport

__all__ = ["AsyncClient", "AsyncSession", "AsyncBuffer", "AsyncModule", "AsyncKernel", "AsyncBuiltinKernel", "AsyncBatch", "AsyncBatchJob", "AsyncLaunch", "AsyncProgram",
           "AsyncSharedMemory"]
T = TypeVar("T")
EVENT_STREAM_S = 30
MAY_COME_S = 0.5  # shorter than the blocking client's: a cancellation should not take long


class AsyncBatch(Batch):
    """See Batch. It goes as one request, whatever its size: at most 4096 operations and 256 segments each way."""

    _session: AsyncSession
    _awaited: Optional[AsyncBatchJob[Batch]] = None

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
            answer, segments = await self._session._do(requests.session_batch(self._session.id, self._document(group), group.segments))
        except GpurestError as error:
            self._failed(group, error)
            raise
        except BaseException as error:
            self._abandon(error)
            raise
        self._succeeded(group, answer, segments)
        return self

    async def asubmit_background(self) -> AsyncBatchJob[Batch]:
        """See Batch.submit_background(): await the job before the results of the batch are asked for."""
        group = self._take_group()
        try:
            info = await self._session._do(self._background_call(group))
        except BaseException as error:
            self._not_taken(group, error)
            raise
        session = self._session
        self._awaited = AsyncBatchJob(session.client, session, requests.session_job(session.id, info["id"]), info, *self._settlers(group))
        self.submitted = True
        return self._awaited

    def submit_background(self) -> NoReturn:
        raise GpurestError("await asubmit_background(): this would block")

    def _in_background(self) -> bool:
        return self._awaited is not None and not self._awaited._settled

    def _bring(self, timeout: Optional[float]) -> None:
        super()._bring(timeout)
        if self._in_background():
            raise GpurestError("the batch is in the background: await its job first")

    def _flush(self) -> None:
        raise ArgumentError("the batch is too large for one request: submit it and begin another")


class AsyncSession(SessionState):
    """See Session. Arrays are made by `await session.asarray(…)`, or by any creating function with session=session; `await x.aget()`,
    `await session.fetch(x, …)` and `await session.flush()` compute in a thread, which goes on when the waiting task is cancelled. What
    else asks for an array's value (x.get(), float(x), printing it) holds the event loop up meanwhile."""

    client: AsyncClient
    _twin_session: Optional[Session] = None

    def _for_threads(self) -> Session:
        """The same session of the service, for threads."""
        self._check()
        twin = self._twin_session
        if twin is None:
            twin = self._twin_session = Session(self.client._twin(), {"id": self.id, "device": self.device, "generation": self.generation}, False)
        return twin

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(None, work)

    # ---- arrays ----

    async def asarray(self, a: Any, dtype: Any = None, *, progress: Any = None) -> ndarray:
        """See gpurest.asarray(). What is short is queued without waiting for anything."""
        twin, where = self._for_threads(), caller()
        made = await self._in_thread(lambda: host.asarray(a, dtype, session=twin, progress=progress))
        node = made._storage.node
        if node.where.startswith("thread"):
            node.where = where
        return made

    async def fetch(self, *arrays: ndarray) -> List[Any]:
        """See gpurest.fetch()."""
        return await self._in_thread(lambda: fetch(*arrays))

    async def flush(self) -> None:
        """See gpurest.flush()."""
        await self._in_thread(lambda: flush(self))

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
            await self._delete_quietly(requests.buffer_path(self.id, name))
        for name in self._take_programs():
            await self._delete_quietly(requests.program_path(self.id, name))
        names = self._take_garbage(BATCH_OPS_MAX)
        if not names:
            return 0
        try:
            await self._do(requests.session_batch(self.id, {"ops": [{"op": "free", "buf": name} for name in names]}, {}))
        except GpurestError:
            self._check()
            for name in names:  # somebody else freed one of them: each for itself
                await self._delete_quietly(requests.buffer_path(self.id, name))
        return len(names)

    async def _delete_quietly(self, path: str) -> None:
        try:
            await self._do(requests.delete(path))
        except GpurestError:
            pass

    async def _create_filled(self, name: str, view: memoryview) -> None:
        """If the answer is not waited for, no buffer is left: a body that was complete may become one a moment later."""
        try:
            await self._send(requests.buffer_create_filled(self.id, name, view))
        except BaseException as error:
            if not refused(error):
                await self._take_back(name)
            raise

    async def _take_back(self, name: str) -> None:
        started = time.monotonic()
        while True:
            try:
                await self._do(requests.delete(requests.buffer_path(self.id, name)))
                return
            except GpurestError as error:
                elapsed = time.monotonic() - started
                if not delete_again(error, elapsed, elapsed < MAY_COME_S):
                    self._doubtful.append((self.generation, name))
                    return
            await asyncio.sleep(TAKE_BACK_PAUSE_S)

    async def buffer(self, data: Any = None, *, size: Optional[int] = None, dtype: Any = None, shareable: bool = False) -> AsyncBuffer:
        """See Session.buffer()."""
        self._check()
        kind = None if dtype is None else dtype_of(dtype)
        if (data is None) == (size is None) or isinstance(data, int):
            raise ArgumentError("buffer() takes either data or size=")
        if isinstance(data, (list, tuple)):
            if kind is None:
                raise ArgumentError("numbers in a list have no size of their own: pass dtype=")
            data = from_sequence(data, kind)
        if shareable and (data is not None or self._batch_now() is not None):
            raise ArgumentError("a shareable buffer is made by size=, and not in a batch")
        view = None if data is None else byte_view(data)
        return await self._new(len(view) if view is not None else int(size or 0), kind or (dtype_from(data) if data is not None else None),
                               shape_from(data) if dtype is None else None, view, shareable)

    async def zeros(self, shape: Union[int, Sequence[int]], dtype: Any = "f4") -> AsyncBuffer:
        """See Session.zeros()."""
        made = await self.empty(shape, dtype)
        await made.fill(Scalar("u8", 0))
        return made

    async def empty(self, shape: Union[int, Sequence[int]], dtype: Any = "f4") -> AsyncBuffer:
        sizes, kind = shape_of(shape), dtype_of(dtype)
        return await self._new(count_of(sizes) * kind.itemsize, kind, sizes, None)

    async def _new(self, size: int, dtype: Any, shape: Any, view: Optional[memoryview], shareable: bool = False) -> AsyncBuffer:
        if size < 1:
            raise ArgumentError("a buffer has at least 1 byte")
        owner: Any = self
        batch = self._batch_now()
        if batch is not None:
            slot = Slot(None, batch._buffer_name())
            batch._alloc(slot, size, view)
            return AsyncBuffer(self, Buffer(owner, slot, size, dtype, shape, batch))
        name = self._new_name("b")
        if self._has_left():
            await self.free_unused()
        if view is None:
            await self._do(requests.buffer_create(self.id, name, size, shareable))
        else:
            await self._create_filled(name, view)
        return AsyncBuffer(self, Buffer(owner, Slot(name), size, dtype, shape))

    async def module(self, source: str, options: Sequence[str] = (), *, headers: Optional[Mapping[str, str]] = None,
                     name_expressions: Sequence[str] = ()) -> AsyncModule:
        spec = requests.module_spec(source, tuple(options), dict(headers or {}), tuple(name_expressions))
        owner: Any = self
        info = await self._do(requests.module_create(self.id, spec))
        return AsyncModule(self, Module(owner, info, source, info["id"]))

    compile = module

    async def load(self, image: Any) -> AsyncModule:
        """See Session.load()."""
        self._check()
        view = memoryview(image.encode()) if isinstance(image, str) else byte_view(image, "image")
        owner: Any = self
        info = await self._do(requests.module_load(self.id, view, requests.image_type(view)))
        return AsyncModule(self, Module(owner, info, None, info["id"]))

    async def builtin(self, name: str, dtype: Any) -> AsyncBuiltinKernel:
        """See Session.builtin(): `kernel = await session.builtin("reduce_sum", "f4")`."""
        self._check()
        owner: Any = self
        return AsyncBuiltinKernel(self, BuiltinKernel(owner, await self.client._kernel_info(name), dtype))

    def batch(self, *, timeout_ms: Optional[int] = None) -> AsyncBatch:
        self._check()
        return AsyncBatch(self, None, timeout_ms, BATCH_OPS_MAX, 1 << 62)

    def program(self, name: Optional[str] = None, *, timeout_ms: Optional[int] = None) -> AsyncProgram:
        """See Session.program(): `async with session.program() as step:` records."""
        self._check()
        owner: Any = self
        return AsyncProgram(owner, name, None, timeout_ms)

    async def sync(self) -> None:
        await self._do(requests.session_sync(self.id, None))

    wait = sync
    fence = sync

    async def info(self) -> Dict[str, Any]:
        return await self._do(requests.get(requests.session_path(self.id)))

    async def memory(self) -> Dict[str, Any]:
        return await self._do(requests.get(requests.session_path(self.id) + "/memory"))

    async def trim(self) -> Dict[str, Any]:
        return await self._do(requests.post(requests.session_path(self.id) + "/memory/trim"))

    async def launches(self) -> List[Dict[str, Any]]:
        return await self._list("/launches")

    async def buffers(self) -> List[Dict[str, Any]]:
        return await self._list("/buffers")

    async def modules(self) -> List[Dict[str, Any]]:
        return await self._list("/modules")

    async def programs(self) -> List[Dict[str, Any]]:
        """See Session.programs()."""
        return await self._list("/programs")

    async def _list(self, what: str) -> List[Dict[str, Any]]:
        self._check()
        return [one async for one in self.client._all(requests.session_path(self.id) + what)]

    async def reset(self) -> None:
        info = await self.client._transport.do(requests.session_reset(self.id))
        self._take_renewed(info)

    def _take_renewed(self, info: Mapping[str, Any]) -> None:
        self._renewed(info)
        if self._twin_session is not None:
            self._twin_session._renewed(info)

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
                async for piece in transport.stream(requests.events(self.id, tuple(types), left, parser.last_id)):
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
        if self._twin_session is not None:
            self._twin_session.close()
        if self._owned and not self.client._transport.closed:
            try:
                await self.client._transport.do(requests.delete(requests.session_path(self.id)))
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
        info, created = await self._client._transport.do(requests.session_open(self._name, self._spec))
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
                 device: Optional[str] = None, ca_file: Optional[str] = None, idempotency_keys: bool = False) -> None:
        self._transport = AsyncTransport(Endpoint.parse(url), token_of(token), Timeout.of(timeout), retries, ca_file, idempotency_keys)
        self._device = device
        self._sessions: List[AsyncSession] = []
        self._twin_client: Optional[Client] = None
        self._options: Dict[str, Any] = {"token": token, "timeout": timeout, "retries": retries, "device": device, "ca_file": ca_file, "idempotency_keys": idempotency_keys}
        self._tuned: Dict[Tuple[str, str, str], int] = {}
        self._kernels: Dict[str, Dict[str, Any]] = {}

    def _twin(self) -> Client:
        """For threads: with its own connections, to the same service."""
        if self._twin_client is None:
            self._twin_client = Client(self.url, **self._options)
        return self._twin_client

    @property
    def url(self) -> str:
        return self._transport.endpoint.url

    @property
    def closed(self) -> bool:
        return self._transport.closed

    @property
    def requests_sent(self) -> int:
        return self._transport.requests_sent + (self._twin_client.requests_sent if self._twin_client is not None else 0)

    def session(self, name: Optional[str] = None, *, device: Optional[str] = None, memory_limit: Union[int, str, None] = None,
                idle_timeout_s: Optional[int] = None, max_lifetime_s: Optional[int] = None, labels: Optional[Mapping[str, str]] = None,
                memcheck: bool = False) -> _Opening:
        """See Client.session(). `await` it, or enter it by `async with`."""
        spec: Dict[str, Any] = {"device": device or self._device, "memory_limit": parse_bytes(memory_limit), "idle_timeout_s": idle_timeout_s,
                                "max_lifetime_s": max_lifetime_s, "labels": dict(labels) if labels else None, "memcheck": memcheck or None}
        return _Opening(self, name, {key: value for key, value in spec.items() if value is not None})

    async def attach(self, id: str) -> AsyncSession:
        """See Client.attach()."""
        info = await self._transport.do(requests.get(requests.session_path(id)))
        return AsyncSession(self, info, False)

    async def run(self, source: str, kernel: str, args: Sequence[Any] = (), *, n: Optional[int] = None, grid: Optional[Dims] = None,
                  block: Optional[Dims] = None, options: Sequence[str] = (), headers: Optional[Mapping[str, str]] = None, shared_bytes: int = 0,
                  timeout_ms: Optional[int] = None) -> _run.RunResult:
        """See Client.run()."""
        run = _run.prepare(source, kernel, args, n=n, grid=grid, block=block, options=options, headers=headers, shared_bytes=shared_bytes,
                           timeout_ms=timeout_ms)
        return run.finish(await self._transport.do(requests.batch("/v1/run", run.document, run.segments)))

    async def run_background(self, source: str, kernel: str, args: Sequence[Any] = (), *, n: Optional[int] = None, grid: Optional[Dims] = None,
                             block: Optional[Dims] = None, options: Sequence[str] = (), headers: Optional[Mapping[str, str]] = None,
                             shared_bytes: int = 0, timeout_ms: Optional[int] = None) -> AsyncBatchJob[_run.RunResult]:
        """See Client.run_background()."""
        run = _run.prepare(source, kernel, args, n=n, grid=grid, block=block, options=options, headers=headers, shared_bytes=shared_bytes,
                           timeout_ms=timeout_ms)
        info = await self._transport.do(requests.in_background(requests.batch("/v1/run", run.document, run.segments)))
        return AsyncBatchJob(self, None, requests.run_job(info["id"]), info, run.finish, lambda _: None, source=source, options=options)

    async def devices(self) -> List[Dict[str, Any]]:
        items: List[Dict[str, Any]] = (await self._transport.do(requests.get("/v1/devices")))["items"]
        return items

    async def device(self, id: str) -> Dict[str, Any]:
        return await self._transport.do(requests.get(f"/v1/devices/{requests.enc(id)}"))

    async def sessions(self) -> AsyncIterator[Dict[str, Any]]:
        """See Client.sessions(): `async for one in gpu.sessions()`."""
        async for one in self._all("/v1/sessions"):
            yield one

    async def kernels(self) -> AsyncIterator[Dict[str, Any]]:
        """See Client.kernels()."""
        async for one in self._all("/v1/kernels"):
            yield one

    async def _kernel_info(self, name: str) -> Dict[str, Any]:
        """As the service has it; the same as long as it runs."""
        found = self._kernels.get(name)
        if found is None:
            found = self._kernels[name] = await self._transport.do(requests.get(f"/v1/kernels/{requests.enc(name)}"))
        return found

    async def _all(self, path: str) -> AsyncIterator[Dict[str, Any]]:
        cursor: Optional[str] = None
        while True:
            page = await self._transport.do(requests.page(path, cursor))
            for one in page["items"]:
                yield one
            cursor = page.get("next_cursor")
            if not cursor:
                return

    async def request(self, method: str, path: str, document: Any = None, *, headers: Optional[Mapping[str, str]] = None,
                      idempotency_key: Optional[str] = None) -> Response:
        """See Client.request()."""
        return await self._transport.send(any_request(method, path, document, headers, idempotency_key))

    async def limits(self) -> Dict[str, Any]:
        found: Dict[str, Any] = (await self._transport.do(requests.get("/v1/limits")))["limits"]
        return found

    async def version(self) -> Dict[str, Any]:
        return await self._transport.do(requests.get("/version"))

    async def is_live(self) -> bool:
        return await self._healthy("/livez")

    async def is_ready(self) -> bool:
        return await self._healthy("/readyz")

    async def _healthy(self, path: str) -> bool:
        try:
            await self._transport.send(Request("GET", path))
            return True
        except (ConnectionError_, TimeoutError_, BusyError):
            return False

    async def close(self) -> None:
        if self._transport.closed:
            return
        for session in self._sessions:
            await session.close()
        if self._twin_client is not None:
            self._twin_client.close()
        await self._transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()
