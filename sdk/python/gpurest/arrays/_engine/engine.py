"""Each session's queue of array work: collects pending nodes, sends them as one request, and settles what came of it."""

from __future__ import annotations

import threading
import weakref
from json.encoder import encode_basestring_ascii as quoted
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Deque, Dict, List, NoReturn, Optional, Sequence, Tuple

from ..._session import requests, transfer
from ..._session.handle import gone
from ..._values.dtypes import DType, unpacked
from ...errors import ArgumentError, CudaError, GpurestError, NotFoundError
from . import shapes
from .assemble import Assembly
from .config import config
from .expr import BUFFER, ELEMENTWISE, EMPTY, FAILED, HOST, SETTLED, SORT, Load, Node
from .glsl import Glsl
from .language import CUDA, Kernel, Language
from .memory import Dead, DeviceMemory, check_bytes, new_dead, take_all
from .prelude_random import FIRST_CODE, RULES
from .prepared import Plans, Prepared
from .structure import Structure, bytes_of

if TYPE_CHECKING:
    from ..._session.session import Session

READ_BYTES_MAX = 32 * 1024 * 1024  # along with a flush; the service's own bound is 64 MiB
READS_MAX = 255  # of one answer; one more tells of errors
SEGMENTS_MAX = 256  # uploads of one request
PLANNED_NODES_MAX = 4096  # of all prepared requests of a session
MODULES_MAX = 512  # kept loaded per session; the service takes 1,024
TIMEOUT_MS_MAX = 3600 * 1000
WEIGHTS = {ELEMENTWISE: 1, HOST: 1, EMPTY: 1, SORT: 32}
WEIGHT_ELSE = 4  # operations that a reduction, a product or an update may need
FLAG_ERRORS = {1: (IndexError, "an index is out of bounds"), 2: (ValueError, "integers to negative integer powers are not allowed"),
               **{FIRST_CODE + at: (ValueError, rule.text) for at, rule in enumerate(RULES.values())}}
NUMBER = attrgetter("number")
NOT_STORED = GpurestError("an array that a flush did not store was used again")  # of values that nobody can reach any more
_engines_lock = threading.Lock()


def engine_of(session: "Session") -> "Engine":
    """The session's engine, which its first array makes."""
    found: Optional[Engine] = getattr(session, "_array_engine", None)
    if found is None:
        with _engines_lock:
            found = getattr(session, "_array_engine", None)
            if found is None:
                found = Engine(session)
                setattr(session, "_array_engine", found)
    return found


def _language_of(session: "Session") -> Language:
    """That of the device's kernels."""
    if session.device.startswith("vulkan"):
        return Glsl(session.device, session.client.device(session.device))
    if session.device.startswith("hip"):
        raise ArgumentError(f"arrays need a cuda, vulkan or cpu device, and this session is on {session.device}: their kernels are written for "
                            "those; open a session on another device, or use modules with buffers")
    return CUDA


class Engine:
    """Thread-safe: one flush at a time. Holds pending nodes weakly: what nobody needs any more is not computed."""

    def __init__(self, session: "Session") -> None:
        self.language = _language_of(session)
        self.session = session  # which holds the engine, too: arrays keep their session
        self.lock = threading.RLock()
        self.pending: Dict[int, "weakref.ref[Node]"] = {}
        self.dead: Deque[Dead] = new_dead()
        self.modules: Dict[str, str] = {}  # kernel name -> module id, the least recently used first
        self.operations: Dict[str, str] = {}  # kernel name -> what it does, for people; as long as it is loaded
        self.generation = session.generation
        self.epoch = 0
        self.queued = 0  # weight of what was added since it was last counted
        self.inline_bytes = 0
        self.plans = Plans(PLANNED_NODES_MAX)

    # ---- the queue ----

    def add(self, node: Node, update: bool = False) -> Node:
        """Queues a node. An update stands between what was queued before and what comes after."""
        with self.lock:
            self.epoch += update
            self.queue(node)
            self.epoch += update
        return node

    def queue(self, node: Node) -> None:
        """Queues a node that is no update. With the lock held. What the device does not compute is refused."""
        self.language.check(node)
        node.epoch = self.epoch
        self.pending[node.number] = weakref.ref(node)
        self.queued += WEIGHTS.get(node.kind, WEIGHT_ELSE)
        if node.kind == HOST:
            self.inline_bytes += node.nbytes

    def relieve(self) -> None:
        """Flushes when the queue is full, or at once in eager mode. To be called when the newest node has its holder."""
        if config.eager:
            self.flush()
            return
        most = config.queue_max if config.queue_max < SEGMENTS_MAX else SEGMENTS_MAX
        if self.queued < most and self.inline_bytes <= config.inline_bytes_max:
            return
        if self.queued >= most:
            with self.lock:
                nodes = self._live()
                self.queued = sum(WEIGHTS.get(node.kind, WEIGHT_ELSE) for node in nodes)
        if self.queued >= most or self.inline_bytes > config.inline_bytes_max:
            self.flush()

    def _live(self) -> List[Node]:
        """The nodes that somebody still needs, in the order of their numbers. The others are forgotten."""
        found = [node for reference in list(self.pending.values()) if (node := reference()) is not None and node.kind not in SETTLED]
        if len(found) != len(self.pending):
            self.pending = {node.number: weakref.ref(node) for node in found}
        found.sort(key=NUMBER)
        return found

    # ---- flush ----

    def flush(self) -> None:
        """Computes everything that is pending, in one request if there is anything. Failures stay with the arrays that they concern."""
        with self.lock:
            if self.pending or self.dead:
                self._send([])

    def fetch(self, loads: Sequence[Load], progress: Any = None) -> List[memoryview]:
        """The bytes of contiguous views, read along with a flush as far as one answer holds them. Raises what became of the arrays."""
        with self.lock:
            sizes = [bytes_of(load) for load in loads]
            count = len(sizes) if all(sizes) and sum(sizes) <= READ_BYTES_MAX and len(sizes) <= READS_MAX else self._along(sizes)
            got = iter(self._send([load for load, nbytes in zip(loads[:count], sizes) if nbytes]))
            for load in loads:
                self.check(load.node)
            first = [next(got) if nbytes else memoryview(b"") for nbytes in sizes[:count]]
            rest = [(load, load.node.memory, nbytes) for load, nbytes in zip(loads[count:], sizes[count:])]
        return first + [self._fetch_large(load, memory, nbytes, progress) for load, memory, nbytes in rest]

    @staticmethod
    def _along(sizes: Sequence[int]) -> int:
        """How many pieces of so many bytes an answer of a batch holds."""
        room = READ_BYTES_MAX
        for count, nbytes in enumerate(sizes):
            room -= nbytes
            if room < 0 or count == READS_MAX:
                return count
        return len(sizes)

    def check(self, node: Node) -> None:
        """Raises the one cause when the array is lost."""
        if node.error is not None:
            raise node.error
        if node.memory is not None and node.memory.generation != self.session.generation:
            raise gone("array", self.session)

    def _fetch_large(self, load: Load, memory: Optional[DeviceMemory], nbytes: int, progress: Any) -> memoryview:
        """More than an answer of a batch holds: a transfer of its own behind the flush, over several connections where that helps. Without the lock, so
        that other threads compute meanwhile; who holds the memory keeps it from being used again."""
        assert memory is not None
        out = memoryview(bytearray(nbytes))
        transfer.read(self.session, memory.id, load.offset * load.dtype.itemsize, out, progress)
        return out

    def upload(self, data: memoryview, dtype: DType, shape: shapes.Shape, progress: Any) -> Node:
        """What is too long to be queued: sent now. Without the lock, as nobody knows the memory yet."""
        session = self.session
        self.language.check_type(dtype)
        with self.lock:
            self._renew()
            self._let_go(take_all(self.dead))
            generation = self.generation
        session._relieve()
        name = session._new_name("array")
        transfer.create_filled(session, name, data, progress)
        node = Node(self, BUFFER, dtype, shape)
        node.settle(DeviceMemory(name, data.nbytes, generation, self.dead))
        return node

    def assembly(self) -> Assembly:
        """What a flush would do now."""
        with self.lock:
            return Assembly(Structure(self._usable(self._live()), ()), self.language)

    def _renew(self) -> None:
        """After a reset nothing of what was on the device is there."""
        if self.generation != self.session.generation:
            self.generation = self.session.generation
            self.modules.clear()
            self.operations.clear()
            take_all(self.dead)

    def _usable(self, nodes: Sequence[Node]) -> List[Node]:
        """Without those that need something lost; these fail with the same cause. In the order of their numbers."""
        good = []
        for node in nodes:
            try:
                for one in node.loads:
                    self.check(one.node)
            except (GpurestError, IndexError, ValueError) as error:
                node.fail(error)
            else:
                good.append(node)
        return good

    def _send(self, reads: Sequence[Load]) -> List[memoryview]:
        self._renew()
        structure = Structure(self._live(), reads)
        if structure.lost:
            structure = Structure(self._usable(structure.nodes), reads)
            for one in reads:
                self.check(one.node)
        nodes = structure.nodes
        self.queued = self.inline_bytes = 0
        if not nodes and not reads:
            self._let_go(take_all(self.dead))
            return []
        dead = take_all(self.dead)
        if len(self.modules) > MODULES_MAX:
            self._unload_some()
        request: Optional[_Request] = None
        try:
            request = _Request(self, structure, self._prepared(structure), dead)
            if request.unused:
                self._let_go(request.unused)
            if request.document.length or reads:
                answer, got = self.session._submit_batch(request.document, request.segments)
            else:  # only memory is wanted, and what nobody needs any more serves
                answer, got = {}, {}
        except BaseException as error:
            self._let_go(dead if request is None else [one for one in request.bound if one is not None])
            self._failed(nodes, request, error)
        request.settle(answer, got)
        for node in nodes:
            self.pending.pop(node.number, None)
        return [got[f"r{at}"] for at in range(len(reads))]

    def _prepared(self, structure: Structure) -> Prepared:
        """Planned and written once for flushes of one structure."""
        found = self.plans.get(structure.key)
        if found is None:
            found = Prepared(structure, Assembly(structure, self.language))
            self.plans.put(structure.key, found)
        return found

    def _unload_some(self) -> None:
        """Makes room for further kernels: those that were not used for longest go. What is needed again is compiled again."""
        while len(self.modules) > MODULES_MAX and len(set(self.modules.values())) > MODULES_MAX:
            self._unload(next(iter(self.modules.values())))

    def _unload(self, unwanted: str) -> None:
        self.modules = {kernel: module for kernel, module in self.modules.items() if module != unwanted}
        self.operations = {kernel: what for kernel, what in self.operations.items() if kernel in self.modules}
        try:
            self.session._do(requests.delete(requests.module_path(self.session.id, unwanted)))
        except NotFoundError:
            pass  # somebody else was faster

    def unload(self) -> None:
        """Forgets all kernels; what is needed again is compiled again."""
        with self.lock:
            self._renew()
            for module in set(self.modules.values()):
                self._unload(module)

    def release(self) -> None:
        """Frees now what nobody refers to any more; computes nothing."""
        with self.lock:
            self._renew()
            self._let_go(take_all(self.dead))
        self.session.free_unused()

    def _let_go(self, dead: Sequence[Dead]) -> None:
        for one in dead:
            self.session._discard(one.id, one.generation)

    def _failed(self, nodes: Sequence[Node], request: Optional["_Request"], error: BaseException) -> NoReturn:
        """All that was to be computed is lost, for one reason; what comes from the host is still there."""
        cause = error
        if isinstance(error, GpurestError):
            where = request.where(error.op_index) if request is not None else ""
            if where and isinstance(error, CudaError):
                error.queued_at = error.queued_at or where
            elif where:
                error.message += f", queued at {where}"
        elif not isinstance(error, Exception):
            cause = GpurestError("the request that was to compute this array was interrupted")
        for node in nodes:
            if node.kind not in (HOST, EMPTY):
                node.fail(cause)
        raise error


class _Request:
    """One flush as a prepared request, with what fills its holes."""

    def __init__(self, engine: Engine, structure: Structure, prepared: Prepared, dead: Sequence[Dead]) -> None:
        self.engine = engine
        self.nodes = structure.nodes
        self.memories = structure.memories
        self.prepared = prepared
        self.bound, self.unused = prepared.bind(dead, engine.generation)
        self.new: List[Kernel] = []
        modules = [self._module(name) for name in prepared.kernels]
        names, allocs, kept, self.segments = self._places() if None in self.bound else ([quoted(one.id) for one in self.bound if one], [], [], {})
        operations = prepared.operations(structure.texts(engine.language.register), names, modules)
        self.allocs = len(allocs)
        timeout_ms = engine.session.timeout_ms or min(max(1, int(config.timeout_s * 1000)), TIMEOUT_MS_MAX)
        module = engine.language.modules(self.new) if self.new else None
        self.document = requests.Encoded([*allocs, operations] if operations else allocs, len(allocs) + len(prepared.origins), kept, timeout_ms,
                                bool(engine.session.client._transport.observers), module)  # profilers, the only ones who would see the times

    def _module(self, name: str) -> str:
        """Of a kernel that is loaded, as a member of its operations; it becomes the one used last."""
        modules = self.engine.modules
        loaded = modules.pop(name, None)
        if loaded is not None:
            modules[name] = loaded
            return f',"module":{quoted(loaded)}'
        kernel, self.engine.operations[name] = self.prepared.kernels[name]
        alone = self.engine.language.module_of(kernel)
        if alone is None:
            self.new.append(kernel)
            return ""
        session = self.engine.session
        modules[name] = loaded = str(session._do(requests.module_create(session.id, alone))["id"])
        return f',"module":{quoted(loaded)}'

    def _places(self) -> Tuple[List[str], List[str], List[str], Dict[str, Any]]:
        """Names of places, what makes those that are new, which of these stay, and the bytes that they start with."""
        names, allocs, kept = [], [], []
        segments: Dict[str, Any] = {}
        for place, dead in zip(self.prepared.places, self.bound):
            names.append(place.name if dead is None else quoted(dead.id))
            if dead is not None:
                continue
            if place.upload is None:
                check_bytes(self.engine.session, place.nbytes, "a result")
            allocs.append(place.alloc)
            if place.kept:
                kept.append(place.name)
            if place.upload is not None:
                segments[f"s{len(segments)}"] = self.nodes[place.upload].params["data"]
        return names, allocs, kept, segments

    def where(self, op_index: Optional[int]) -> str:
        """The line that queued an operation."""
        if op_index is None:
            return ""
        if op_index < self.allocs:
            made = [place.upload for place, dead in zip(self.prepared.places, self.bound) if dead is None]
            origin = made[op_index]
        else:
            origins = self.prepared.origins
            origin = origins[op_index - self.allocs] if op_index - self.allocs < len(origins) else None
        return "" if origin is None else self.nodes[origin].where

    # ---- the answer ----

    def settle(self, answer: Dict[str, Any], got: Dict[str, memoryview]) -> None:
        engine, prepared = self.engine, self.prepared
        for kernel in self.new:
            engine.modules[kernel.name] = answer["module"]
        if prepared.flags:
            self._fail_flagged(got)
        owned: List[Optional[DeviceMemory]] = [None] * len(prepared.places)
        for number, memory, place in prepared.results:
            node = self.nodes[number]
            if node.kind == FAILED:
                continue
            if memory is not None:
                node.settle(self.memories[memory])
                continue
            if owned[place] is None:
                owned[place] = DeviceMemory(self._id(place, answer), prepared.places[place].nbytes, engine.generation, engine.dead)
            node.settle(owned[place])
        if None in owned:
            self._keep_rest(owned, answer)
        for node in self.nodes:
            if node.kind not in SETTLED:
                node.fail(NOT_STORED)

    def _id(self, place: int, answer: Dict[str, Any]) -> str:
        dead = self.bound[place]
        return dead.id if dead is not None else str(answer["kept"][f"$t{place}"])

    def _keep_rest(self, owned: Sequence[Optional[DeviceMemory]], answer: Dict[str, Any]) -> None:
        """What was used on the way, and what belongs to values that failed by a flag, is there for the next flush."""
        for at, place in enumerate(self.prepared.places):
            if owned[at] is None and (self.bound[at] is not None or place.kept):
                self.engine.dead.append(Dead(self._id(at, answer), place.nbytes, self.engine.generation))

    def _fail_flagged(self, got: Dict[str, memoryview]) -> None:
        """What a kernel found wrong with its data, and everything computed from it."""
        words = got["flags"].cast("B").tobytes()
        bad: Dict[Node, BaseException] = {}
        for flag in self.prepared.flags:
            code = int.from_bytes(words[4 * flag.word:4 * flag.word + 4], "little")
            if code:
                kind, text = FLAG_ERRORS[code]
                error = kind(f"{text}, queued at {self.nodes[flag.node].where}")
                bad.update({self.nodes[number]: error for number in flag.stored})
        for node in self.nodes if bad else ():
            causes: List[BaseException] = [bad[one.node] for one in node.loads if one.node in bad]
            if causes and node not in bad:
                bad[node] = causes[0]
        for node, cause in bad.items():
            node.fail(cause)


def unpack(load: Load, data: memoryview) -> Any:
    """Nested lists of Python scalars; a scalar when there are no dimensions."""
    flat: List[Any] = unpacked(data, shapes.size_of(load.shape), load.dtype)
    if not load.shape:
        return flat[0]
    for extent in reversed(load.shape[1:]):
        flat = [flat[at:at + extent] for at in range(0, len(flat), extent)] if extent else [[] for _ in range(shapes.size_of(load.shape[:-1]))]
    return flat
