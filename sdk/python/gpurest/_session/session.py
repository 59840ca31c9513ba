"""Sessions: a worker process on the server, with buffers, modules and streams of its own."""
from __future__ import annotations

import hashlib
import json
import os
import pathlib
import time
from itertools import count
from typing import IO, TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from .._shown import html
from .._transport import moves, snapshot
from .._transport.progress import ProgressOption, Waiting
from .._transport.snapshot_base import FileName
from .._transport.wire import ServerEvent
from .._values.dtypes import dtype_of
from .._values.hostmem import Shape
from .._values.texels import Texels
from ..errors import ArgumentError, GpurestError
from . import requests, transfer
from .batch import OPS_MAX, PAYLOAD_BYTES_MAX, Batch
from .buffer import Buffer, Slot, Texture, texture_memory
from .builtin_kernel import BuiltinKernel
from .event import Event
from .following import Following, LowMemoryWatch
from .module import Module
from .pipeline import Pipeline
from .program import Program
from .rawkernel import RawKernel, RawModule
from .session_base import MemoryPool, SessionBase, pages
from .session_state import Wanted
from .stream import Stream

if TYPE_CHECKING:
    from .client import Client

STREAMS_MAX = 64


class Session(SessionBase):
    """One worker on the server: one context, one fault domain. Use it as a context manager, or close() it.

    Thread-safe; what a thread records into a batch, and the stream that it has entered, are its own. A fault of a kernel ends the worker:
    from then on every use of the session raises SessionLostError with the fault as its cause, until reset(). So does every use of one that the
    service has ended, with the reason. `timeout_ms`: how long a kernel may run for which nothing else is given; None: the service's 60 s."""

    def __init__(self, client: Client, info: Mapping[str, Any], owned: bool, timeout_ms: Optional[int] = None) -> None:
        super().__init__(client, info, owned, timeout_ms)
        self._stream_numbers = count(1)
        self._modules: Dict[str, Module] = {}
        self.memory_pool = MemoryPool(self)

    def _for_threads(self) -> Session:
        """The session whose methods block; AsyncSession has another one."""
        return self

    # ---- buffers ----

    def buffer(self, data: Any = None, *, size: Optional[int] = None, dtype: Any = None, progress: ProgressOption = None,
               shareable: bool = False) -> Buffer:
        """A buffer with a copy of `data` (anything with the buffer protocol; numbers in a list need `dtype`), or of `size` bytes, whose
        contents are then not defined. `shareable`, with `size`: its own memory can be mapped by processes of the same host (share(),
        share_cuda()); it is all zeros, and counts with what it takes, in whole pages or units of the driver."""
        return self._made(self._wanted(data, size, dtype, shareable), progress)

    def empty(self, shape: Union[int, Sequence[int]], dtype: Any = "f4") -> Buffer:
        """A buffer of so many elements, whose contents are not defined."""
        return self._made(self._wanted_elements(shape, dtype), None)

    def zeros(self, shape: Union[int, Sequence[int]], dtype: Any = "f4") -> Buffer:
        """A buffer of so many elements, all bytes zero."""
        made = self.empty(shape, dtype)
        made.view("u1").fill(0)
        return made

    def texture(self, data: Any = None, *, shape: Union[int, Sequence[int], None] = None, dtype: Any = None, dimension: Optional[str] = None,
                channels: int = 1, addressing: Union[str, Sequence[str]] = "clamp", filter: str = "point", read: str = "element",
                normalized_coordinates: Optional[bool] = None, surface: bool = False, buffer: Optional[Buffer] = None, offset: int = 0,
                pitch: Optional[int] = None) -> Texture:
        """A texture with a copy of `data`, an array whose fastest axis is x: (height, width) is 2d. `dimension`: 1d, 2d, 3d (by default, after the
        number of axes), 1d_layered, 2d_layered (the layers are the first axis), cube (6, n, n), cube_layered (6 * cubes, n, n). With `channels` 2
        or 4 these are the last axis. Without data, `shape` (without the channels) and `dtype` say what it is; its texels are not defined then.

        Coordinates outside: `addressing` clamp, border (0), and with `normalized_coordinates` (0 to 1 instead of texels) wrap and mirror, for all axes
        or for each, x first. `filter`: point or linear. `read`: "normalized_float" has kernels read integers of 8 and 16 bits as floats,
        "srgb" those of u8 converted from sRGB to linear light, but for the last of two or four channels.
        `surface`: kernels may write it, as `.surface`. `buffer`: it reads that buffer's memory from byte `offset` on, with rows every `pitch`
        bytes, and has none of its own."""
        wanted = Texels(data, shape, dtype, dimension, channels)
        wanted.sampled(addressing, filter, read, normalized_coordinates, surface)
        memory = texture_memory(self, wanted, buffer, offset, pitch)
        name = self._new_name("t")
        self._relieve()
        with self._making(self._textures_left, name):
            made = Texture(self, self._allocating(lambda: self._do(requests.texture_create(self.id, name, wanted.spec))), wanted, memory)
        if wanted.content is not None:
            made.write(wanted.content)
        return made

    def textures(self) -> List[Dict[str, Any]]:
        """The textures that the service has: `id`, their shape, and how they are sampled."""
        return self._list("/textures")

    def _made(self, wanted: Wanted, progress: ProgressOption) -> Buffer:
        queued = self._queued_buffer(wanted)
        if queued is not None:
            return queued
        name = self._new_name("b")
        self._relieve()
        if wanted.view is None:
            with self._making(self._doubtful, name):
                self._allocating(lambda: self._do(requests.buffer_create(self.id, name, wanted.size, wanted.shareable)))
        else:
            transfer.create_filled(self, name, wanted.view, progress)
        return self._buffer_of(wanted, Slot(name))

    def _relieve(self) -> None:
        """Memory that nobody refers to any more goes before new memory is asked for."""
        if self._has_left():
            self.free_unused()

    def _own_buffer(self, id: str, nbytes: int, dtype: Any = None, shape: Optional[Shape] = None) -> Buffer:
        """A Buffer for memory that the session has already, as kept by a batch; from now on the object owns it."""
        return Buffer(self, Slot(id), nbytes, None if dtype is None else dtype_of(dtype), shape)

    # ---- modules ----

    def module(self, source: str, options: Sequence[str] = (), *, headers: Optional[Mapping[str, str]] = None,
               name_expressions: Sequence[str] = ()) -> Module:
        """Compiles CUDA C++. Equal input gives the same Module again, without a request. CompileError shows the line."""
        self._check()
        spec = requests.module_spec(source, tuple(options), dict(headers or {}), tuple(name_expressions))
        identity = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()
        known = self._known(identity)
        if known is None:
            with Waiting("gpurest: compiling"):
                info = self._do(requests.module_create(self.id, spec))
            known = self._remember(Module(self, info, source, identity))
        return known

    compile = module

    def load(self, image: Any) -> Module:
        """Loads compiled code: PTX text, or an image where the service takes such."""
        view = self._image(image)
        identity = hashlib.sha256(view).hexdigest()
        known = self._known(identity)
        if known is None:
            info = self._do(requests.module_load(self.id, view, requests.image_type(view)))
            known = self._remember(Module(self, info, None, identity))
        return known

    def glsl(self, source: str, *, defines: Optional[Mapping[str, Any]] = None, specialization: Optional[Mapping[int, Any]] = None,
             headers: Optional[Mapping[str, str]] = None) -> Module:
        """Compiles a compute shader on a vulkan device; its kernel is "main". `defines`: macros; `specialization`: constants by constant_id."""
        return self._shader(requests.shader_spec("glsl", source, requests.shader_options(defines or {}, specialization or {}), headers or {}))

    def load_spirv(self, image: Any, *, specialization: Optional[Mapping[int, Any]] = None) -> Module:
        """Loads SPIR-V on a vulkan device: its bytes, or the path of a file."""
        data = pathlib.Path(image).read_bytes() if isinstance(image, (str, os.PathLike)) else bytes(self._image(image))
        made = self._shader(requests.spirv_spec(data, specialization or {}))
        made._spirv = data
        return made

    def _shader(self, spec: requests.Document) -> Module:
        self._check()
        identity = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()
        known = self._known(identity)
        if known is None:
            info = self._do(requests.module_create(self.id, spec))
            known = self._remember(Module(self, info, None, identity))
        return known

    def create_pipeline(self, module: Module, entry: str = "main", *, specialization: Optional[Mapping[int, Any]] = None) -> Pipeline:
        """A kernel of a shader with its specialization constants set, to dispatch() in Vulkan's words."""
        if specialization:
            if module._spirv is None:
                raise ArgumentError("a module of load_spirv() can be specialized here; glsl() takes specialization= itself")
            module = self.load_spirv(module._spirv, specialization=specialization)
        return Pipeline(module.kernel(entry))

    def _known(self, identity: str) -> Optional[Module]:
        known = self._modules.get(identity)
        return known if known is not None and known._generation == self.generation and not known.freed else None

    def _remember(self, module: Module) -> Module:
        self._modules[module.identity] = module
        return module

    def _forget_module(self, module: Module) -> None:
        if self._modules.get(module.identity) is module:
            del self._modules[module.identity]

    def builtin(self, name: str, dtype: Any) -> BuiltinKernel:
        """One of the service's built-in kernels for elements of `dtype` ("bf16", too); Client.kernels() lists them. Nothing is compiled here."""
        self._check()
        return BuiltinKernel(self, self.client._kernel_info(name), dtype)

    def RawKernel(self, code: str, name: str, options: Sequence[str] = (), **more: Any) -> RawKernel:
        """A kernel from source; compiled at the first launch."""
        return RawKernel(code, name, options, session=self, **more)

    def RawModule(self, *, code: str, options: Sequence[str] = (), **more: Any) -> RawModule:
        """A module from source; compiled when it is first needed."""
        return RawModule(code=code, options=options, session=self, **more)

    # ---- order ----

    def batch(self, *, stream: Optional[Stream] = None, timeout_ms: Optional[int] = None, ops_max: int = OPS_MAX,
              payload_max: int = PAYLOAD_BYTES_MAX) -> Batch:
        """What this thread asks for within the `with` block goes to the service in one request when the block ends."""
        self._check()
        return Batch(self, stream, timeout_ms, ops_max, payload_max)

    def program(self, name: Optional[str] = None, *, stream: Optional[Stream] = None, timeout_ms: Optional[int] = None) -> Program:
        """A batch that is recorded once, in a `with` block, and run many times; see Program. With a `name` ("a" to "z", digits, "_", "-") it stays until free()
        or the session's end; without one it goes when nobody refers to it any more. `timeout_ms`: of a run, unless that says otherwise."""
        self._check()
        return Program(self, name, stream, timeout_ms)

    def stream(self) -> Stream:
        """A new stream; the service has room for 64 at a time, and names are used again."""
        self._check()
        return Stream(self, self._take_stream_name())

    def _take_stream_name(self) -> str:
        try:
            return self._stream_names.pop()
        except IndexError:
            number = next(self._stream_numbers)
            if number > STREAMS_MAX:
                raise GpurestError(f"a session has at most {STREAMS_MAX} streams: close() those that are not needed") from None
            return f"st-{number}"

    def event(self) -> Event:
        """An event recorded now: in a batch at this place of it, else after everything that is under way."""
        batch = self._batch_now()
        if batch is not None:
            return batch.record()
        self.sync()
        event = Event(None, "now")
        event.at_us = time.perf_counter() * 1e6
        return event

    def sync(self, stream: Optional[Stream] = None) -> None:
        """Returns when everything (on the stream) is done; raises what failed. In a batch: what follows comes after it."""
        batch = self._batch_now()
        if batch is not None:
            batch.sync(stream)
        else:
            self._do(requests.session_sync(self.id, stream.name if stream is not None else None, self.timeout_ms))

    wait = sync
    fence = sync

    def save(self, file: Union[FileName, IO[bytes]], *, wait_s: Optional[int] = None, base: Optional[FileName] = None) -> None:
        """Writes a snapshot of the session to a file, or to an open one: buffers, modules as source, their variables, programs, labels and limits.
        Client.load() makes a session from it. It is of one moment: the service waits up to `wait_s` seconds (30) for work under way, else raises
        BusyError; until all is read, other changes of the session raise BusyError. A file of that name is replaced only by a whole one. Whoever can
        read the file can read the session's memory. `base`: an older file of save(), which is kept: bytes that it has (its 100 largest parts) are neither
        sent nor written again, and Client.load() needs both files."""
        self._check()
        with snapshot.Target(file, base) as target:
            for piece in self._stream(requests.session_save(self.id, wait_s, target.have)):
                target.write(piece)

    def move(self, to: str, *, hold_s: Optional[int] = None, wait_s: Optional[int] = None) -> None:
        """Moves the session to the node at that URL, with all that a snapshot has; the bytes pass through this process. Objects of the session stay
        valid, and other clients' requests follow. Its requests wait meanwhile; work under way is waited for up to `wait_s` seconds (30). Whatever
        fails, one of both nodes has the session; without an end within `hold_s` seconds (120) of the last byte it goes on where it is. The node must let
        sessions go there (--move-to)."""
        self._asking(lambda: self.client._transport.move(self.id, to, moves.moving(self.id, self._stamp, to, hold_s, wait_s)))

    # ---- looking ----

    def _list(self, what: str) -> List[Dict[str, Any]]:
        return list(pages(self._do, requests.session_path(self.id) + what))

    def launches(self) -> List[Dict[str, Any]]:
        """The launches that the service remembers."""
        return self._list("/launches")

    def buffers(self) -> List[Dict[str, Any]]:
        """The buffers that the service has: `id`, `size` in bytes, `created_at`; those of programs are not among them."""
        return self._list("/buffers")

    def modules(self) -> List[Dict[str, Any]]:
        """The modules in it, as the service describes them."""
        return self._list("/modules")

    def programs(self) -> List[Dict[str, Any]]:
        """The programs that the service has, whoever made them: `name`, `launches`, `memory_bytes` of their buffers, `runs` begun, and more."""
        return self._list("/programs")

    def events(self, types: Sequence[str] = (), *, timeout: Optional[float] = None, last_id: Optional[str] = None) -> Iterator[ServerEvent]:
        """What happens in the session, as it happens: session.state, launch.queued, launch.started, launch.finished, kernel.printf,
        device.health, faults.budget, memory.low, resync (some events were missed). What is about a launch has its id as data["launch"], or, within a
        batch and told at its end, data["batch"] and data["op"]. Ends after `timeout` seconds, None: never; a broken connection is taken up again
        where it ended."""
        yield from self._follow(Following(self, types, timeout, last_id))

    def _follow(self, following: Following) -> Iterator[ServerEvent]:
        while (request := following.request()) is not None:
            try:
                for piece in self._stream(request):
                    yield from following.feed(piece)
                    if following.over:
                        return
            except GpurestError as error:
                following.broke(error)

    def on_low_memory(self, callback: Callable[[Dict[str, Any]], Any]) -> LowMemoryWatch:
        """Calls `callback` with the data of each memory.low event from now on: `used_bytes` in buffers, `limit_bytes` (None: no limit), and, when memory
        was refused, `requested_bytes` and `code`; without these, little is left below the limit. On a thread of its own, which follows the
        session's events and ends with the session; what the callback raises is logged ("gpurest.session"). remove() of what this returns ends it."""
        self._check()
        return LowMemoryWatch(self, self._follow, callback)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _repr_html_(self) -> Optional[str]:
        """In notebooks: the session as the service describes it. None, so that repr() is shown, while it cannot be asked."""
        try:
            return html.table(f"gpurest session {self.id}", (), html.session_rows(self.info()))
        except GpurestError:
            return None

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"ended: {self._lost.reason}" if self._lost and self._ended else "lost" if self._lost else f"on {self.device}"
        return f"<Session {self.id} {state}>"
