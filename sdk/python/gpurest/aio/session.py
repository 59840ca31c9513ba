"""Sessions of the asyncio client."""
from __future__ import annotations

import asyncio
import os
import pathlib
from typing import IO, TYPE_CHECKING, Any, AsyncIterator, Awaitable, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar, Union, cast

from .._session import requests
from .._session.buffer import Slot, Texture, texture_memory
from .._session.builtin_kernel import BuiltinKernel
from .._session.following import Following
from .._session.handle import calling_line
from .._session.module import Module
from .._session.session import Session
from .._session.session_state import BATCH_OPS_MAX, SessionState, Wanted
from .._session.transfer import refused, taking_back
from .._transport import moves, snapshot
from .._transport.heartbeats import clock
from .._transport.snapshot_base import FileName
from .._transport.steps import Steps, drive_async
from .._transport.wire import Call, Request, Response, ServerEvent, of_generation
from .._values.scalars import Scalar
from .._values.texels import Texels
from ..arrays import host
from ..arrays.current import flush
from ..arrays.ndarray import fetch, ndarray
from ..errors import ArgumentError, GpurestError
from .batch import AsyncBatch
from .background import AsyncLowMemoryWatch
from .buffer import AsyncBuffer, AsyncTexture
from .kernel import AsyncBuiltinKernel, AsyncModule
from .pipeline import AsyncPipeline
from .program import AsyncProgram

if TYPE_CHECKING:
    from .client import AsyncClient

T = TypeVar("T")
MAY_COME_S = 0.5  # shorter than the blocking client's: a cancellation should not take long


class AsyncSession(SessionState):
    """See Session. Arrays are made by `await session.asarray(…)`, or by any creating function with session=session; `await x.aget()`,
    `await session.fetch(x, …)` and `await session.flush()` compute in a thread, which goes on when the waiting task is cancelled. What
    else asks for an array's value (x.get(), float(x), printing it) holds the event loop up meanwhile."""

    client: AsyncClient
    _twin_session: Optional[Session] = None

    def __init__(self, *info: Any) -> None:
        super().__init__(*info)
        self._watches: List[AsyncLowMemoryWatch] = []

    def _for_threads(self) -> Session:
        """The same session of the service, for threads."""
        self._check()
        twin = self._twin_session
        if twin is None:
            twin = Session(self.client._twin(), self._info, False, self.timeout_ms)
            twin._generations_before = self._generations_before
            twin._is_now(self._stands_for)
            self._twin_session = twin
        return twin

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(None, work)

    # ---- arrays ----

    async def asarray(self, a: Any, dtype: Any = None, *, progress: Any = None) -> ndarray:
        """See gpurest.asarray(). What is short is queued without waiting for anything."""
        twin, where = self._for_threads(), calling_line()
        made = await self._in_thread(lambda: host.asarray(a, dtype, session=twin, progress=progress))
        node = made._storage.node
        if node.where.startswith("thread"):
            node.line = where
        return made

    async def fetch(self, *arrays: ndarray) -> List[Any]:
        """See gpurest.fetch()."""
        return await self._in_thread(lambda: fetch(*arrays))

    async def flush(self) -> None:
        """See gpurest.flush()."""
        await self._in_thread(lambda: flush(self))

    async def _do(self, call: Call[T]) -> T:
        try:
            return await self._asking(lambda: self.client._transport.do(self._stamped(call)))
        except BaseException as error:
            self._note_unanswered(call.request, error)
            raise

    async def _send(self, request: Request, into: Optional[memoryview] = None) -> Response:
        try:
            return await self._asking(lambda: self.client._detours.send(self._info, of_generation(request, self._stamp), into))
        except BaseException as error:
            self._note_unanswered(request, error)
            raise

    async def _asking(self, ask: Callable[[], Awaitable[T]]) -> T:
        """See SessionBase._asking()."""
        self._check()
        self._asked_at, generation, stamp = clock(), self.generation, self._stamp
        try:
            return await ask()
        except GpurestError as error:
            if not await self._hear(error, generation, stamp):
                raise
        return await self._asking(ask)

    async def _stream(self, request: Request) -> AsyncIterator[bytes]:
        """See SessionBase._stream()."""
        generation, stamp = self.generation, self._stamp
        try:
            async for piece in self.client._transport.stream(of_generation(request, stamp)):
                yield piece
            return
        except GpurestError as error:
            if not await self._hear(error, generation, stamp):
                raise
        async for piece in self._stream(request):
            yield piece

    async def _hear(self, error: GpurestError, generation: int, stamp: str) -> bool:
        """See SessionBase._hear()."""
        if await drive_async(self._explaining(error), self.client._transport.do) and generation == self.generation:
            return stamp != self._stamp
        self._note(error, generation)
        return False

    async def _step(self, step: Any) -> Any:
        return await (asyncio.sleep(step) if isinstance(step, float) else self._do(step))

    async def _drive(self, steps: Steps[T]) -> T:
        return await drive_async(steps, self._step)

    async def free_unused(self) -> int:
        """See Session.free_unused()."""
        return await self._drive(self._freeing())

    async def _create_filled(self, name: str, view: memoryview) -> None:
        """If the answer is not waited for, no buffer is left: a body that was complete may become one a moment later."""
        try:
            await self._send(requests.buffer_create_filled(self.id, name, view))
        except BaseException as error:
            if not refused(error):
                await self._drive(taking_back(self, name, MAY_COME_S))
            raise

    async def buffer(self, data: Any = None, *, size: Optional[int] = None, dtype: Any = None, shareable: bool = False) -> AsyncBuffer:
        """See Session.buffer()."""
        return await self._made(self._wanted(data, size, dtype, shareable))

    async def zeros(self, shape: Union[int, Sequence[int]], dtype: Any = "f4") -> AsyncBuffer:
        """See Session.zeros()."""
        made = await self.empty(shape, dtype)
        await made.fill(Scalar("u8", 0))
        return made

    async def empty(self, shape: Union[int, Sequence[int]], dtype: Any = "f4") -> AsyncBuffer:
        """A buffer with whatever is in its memory: Session.empty()."""
        return await self._made(self._wanted_elements(shape, dtype))

    async def _made(self, wanted: Wanted) -> AsyncBuffer:
        queued = self._queued_buffer(wanted)
        if queued is not None:
            return AsyncBuffer(self, queued)
        name = self._new_name("b")
        if self._has_left():
            await self.free_unused()
        if wanted.view is None:
            with self._making(self._doubtful, name):
                await self._do(requests.buffer_create(self.id, name, wanted.size, wanted.shareable))
        else:
            await self._create_filled(name, wanted.view)
        return AsyncBuffer(self, self._buffer_of(wanted, Slot(name)))

    async def texture(self, data: Any = None, *, shape: Union[int, Sequence[int], None] = None, dtype: Any = None, dimension: Optional[str] = None,
                      channels: int = 1, addressing: Union[str, Sequence[str]] = "clamp", filter: str = "point", read: str = "element",
                      normalized_coordinates: Optional[bool] = None, surface: bool = False, buffer: Any = None, offset: int = 0,
                      pitch: Optional[int] = None) -> AsyncTexture:
        """See Session.texture()."""
        wanted = Texels(data, shape, dtype, dimension, channels)
        wanted.sampled(addressing, filter, read, normalized_coordinates, surface)
        memory, owner = texture_memory(self, wanted, buffer, offset, pitch), cast(Any, self)
        if self._has_left():
            await self.free_unused()
        name = self._new_name("t")
        with self._making(self._textures_left, name):
            info = await self._do(requests.texture_create(self.id, name, wanted.spec))
        made = AsyncTexture(self, Texture(owner, info, wanted, memory))
        if wanted.content is not None:
            await made.write(wanted.content)
        return made

    async def textures(self) -> List[Dict[str, Any]]:
        """See Session.textures()."""
        return await self._list("/textures")

    async def module(self, source: str, options: Sequence[str] = (), *, headers: Optional[Mapping[str, str]] = None,
                     name_expressions: Sequence[str] = ()) -> AsyncModule:
        """Loads code as a module: Session.module()."""
        spec = requests.module_spec(source, tuple(options), dict(headers or {}), tuple(name_expressions))
        owner: Any = self
        info = await self._do(requests.module_create(self.id, spec))
        return AsyncModule(self, Module(owner, info, source, info["id"]))

    compile = module

    async def load(self, image: Any) -> AsyncModule:
        """See Session.load()."""
        view = self._image(image)
        owner: Any = self
        info = await self._do(requests.module_load(self.id, view, requests.image_type(view)))
        return AsyncModule(self, Module(owner, info, None, info["id"]))

    async def glsl(self, source: str, *, defines: Optional[Mapping[str, Any]] = None, specialization: Optional[Mapping[int, Any]] = None,
                   headers: Optional[Mapping[str, str]] = None) -> AsyncModule:
        """See Session.glsl()."""
        return await self._shader(requests.shader_spec("glsl", source, requests.shader_options(defines or {}, specialization or {}), headers or {}))

    async def load_spirv(self, image: Any, *, specialization: Optional[Mapping[int, Any]] = None) -> AsyncModule:
        """See Session.load_spirv()."""
        data = pathlib.Path(image).read_bytes() if isinstance(image, (str, os.PathLike)) else bytes(self._image(image))
        made = await self._shader(requests.spirv_spec(data, specialization or {}))
        made._inner._spirv = data
        return made

    async def _shader(self, spec: requests.Document) -> AsyncModule:
        owner: Any = self
        info = await self._do(requests.module_create(self.id, spec))
        return AsyncModule(self, Module(owner, info, None, info["id"]))

    async def create_pipeline(self, module: AsyncModule, entry: str = "main", *, specialization: Optional[Mapping[int, Any]] = None) -> AsyncPipeline:
        """See Session.create_pipeline(): it loads the module once more where `specialization` says so."""
        if specialization:
            if module._inner._spirv is None:
                raise ArgumentError("a module of load_spirv() can be specialized here; glsl() takes specialization= itself")
            module = await self.load_spirv(module._inner._spirv, specialization=specialization)
        return AsyncPipeline(module.kernel(entry))

    async def builtin(self, name: str, dtype: Any) -> AsyncBuiltinKernel:
        """See Session.builtin(): `kernel = await session.builtin("reduce_sum", "f4")`."""
        self._check()
        owner: Any = self
        return AsyncBuiltinKernel(self, BuiltinKernel(owner, await self.client._kernel_info(name), dtype))

    def batch(self, *, timeout_ms: Optional[int] = None) -> AsyncBatch:
        """Records what is done in the block and sends it as one request at its end: Session.batch()."""
        self._check()
        return AsyncBatch(self, None, timeout_ms, BATCH_OPS_MAX, 1 << 62)

    def program(self, name: Optional[str] = None, *, timeout_ms: Optional[int] = None) -> AsyncProgram:
        """See Session.program(): `async with session.program() as step:` records."""
        self._check()
        owner: Any = self
        return AsyncProgram(owner, name, None, timeout_ms)

    async def sync(self) -> None:
        """Waits until all its work has ended."""
        await self._do(requests.session_sync(self.id, None, self.timeout_ms))

    wait = sync
    fence = sync

    async def save(self, file: Union[FileName, IO[bytes]], *, wait_s: Optional[int] = None, base: Optional[FileName] = None) -> None:
        """See Session.save(). Writing to the file holds the event loop up as long as the disk does."""
        self._check()
        with snapshot.Target(file, base) as target:
            async for piece in self._stream(requests.session_save(self.id, wait_s, target.have)):
                target.write(piece)

    async def move(self, to: str, *, hold_s: Optional[int] = None, wait_s: Optional[int] = None) -> None:
        """See Session.move()."""
        await self._asking(lambda: self.client._transport.move(self.id, to, moves.moving(self.id, self._stamp, to, hold_s, wait_s)))

    async def hibernate(self) -> Dict[str, Any]:
        """See Session.hibernate()."""
        return await self._do(requests.post(requests.session_path(self.id) + "/hibernate"))

    async def wake(self) -> Dict[str, Any]:
        """See Session.wake()."""
        return await self._do(requests.post(requests.session_path(self.id) + "/wake"))

    async def info(self) -> Dict[str, Any]:
        """What the service says of the session now."""
        return await self._do(requests.get(requests.session_path(self.id)))

    async def memory(self) -> Dict[str, Any]:
        """Device memory of the session, in bytes."""
        return await self._do(requests.get(requests.session_path(self.id) + "/memory"))

    async def trim(self) -> Dict[str, Any]:
        """Gives memory that the session keeps for later allocations back to the device."""
        return await self._do(requests.post(requests.session_path(self.id) + "/memory/trim"))

    async def reset_peak(self) -> Dict[str, Any]:
        """See Session.reset_peak()."""
        return await self._do(requests.post(requests.session_path(self.id) + "/memory/peak/reset"))

    async def update(self, *, memory_limit: Union[int, str, None] = None, memory_fraction: Union[float, str, None] = None,
                     pool_bytes_max: Union[int, str, None] = None, idle_timeout_s: Optional[int] = None,
                     labels: Optional[Mapping[str, str]] = None, lease_s: Optional[int] = None) -> Dict[str, Any]:
        """See Session.update()."""
        spec = requests.session_spec(None, memory_limit, idle_timeout_s, None, labels, False, memory_fraction, pool_bytes_max, lease_s=lease_s)
        info = await self._do(requests.session_update(self.id, spec))
        self._described(info)
        return info

    async def launches(self) -> List[Dict[str, Any]]:
        """The launches that the service remembers."""
        return await self._list("/launches")

    async def buffers(self) -> List[Dict[str, Any]]:
        """The buffers in it, as the service describes them."""
        return await self._list("/buffers")

    async def modules(self) -> List[Dict[str, Any]]:
        """The modules in it, as the service describes them."""
        return await self._list("/modules")

    async def programs(self) -> List[Dict[str, Any]]:
        """See Session.programs()."""
        return await self._list("/programs")

    async def _list(self, what: str) -> List[Dict[str, Any]]:
        return [one async for one in self.client._all(requests.session_path(self.id) + what, self._do)]

    async def reset(self) -> None:
        """See Session.reset()."""
        await drive_async(self._resetting(), self.client._transport.do)

    def _renewed(self, info: Mapping[str, Any]) -> None:
        super()._renewed(info)
        twin = self._twin_session
        if twin is not None:
            twin.id, twin._generations_before = self.id, self._generations_before
            twin._lost = twin._lost or self._reset_cause
            twin._renewed(info)

    async def events(self, types: Sequence[str] = (), *, timeout: Optional[float] = None,
                     last_id: Optional[str] = None) -> AsyncIterator[ServerEvent]:
        """See Session.events()."""
        async for event in self._follow(Following(self, types, timeout, last_id)):
            yield event

    async def _follow(self, following: Following) -> AsyncIterator[ServerEvent]:
        while (request := following.request()) is not None:
            try:
                async for piece in self._stream(request):
                    for event in following.feed(piece):
                        yield event
            except GpurestError as error:
                following.broke(error)

    async def on_low_memory(self, callback: Callable[[Dict[str, Any]], Any]) -> AsyncLowMemoryWatch:
        """See Session.on_low_memory(). A task of the event loop; a callback that is a coroutine function is awaited."""
        self._check()
        watch = AsyncLowMemoryWatch(self, self._follow, callback)
        self._watches.append(watch)
        await watch._begun()
        return watch

    async def close(self) -> None:
        """Ends it on the server, with all that is in it; a second time nothing happens."""
        for watch in self._watches:
            watch.remove()
        if self._twin_session is not None:
            self._twin_session.close()
        await drive_async(self._closing(), self.client._transport.do)

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()
