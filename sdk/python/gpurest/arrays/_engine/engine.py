"""Each session's queue of array work: collects pending nodes, sends them as one request, and settles what came of it."""

from __future__ import annotations

import threading
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Deque, Dict, List, NoReturn, Optional, Sequence
from weakref import ref

from ..._session import requests, transfer
from ..._session.handle import gone
from ..._values.dtypes import DType, unpacked
from ...errors import ArgumentError, ConnectionError_, CudaError, GpurestError, NotFoundError, ProtocolError
from . import shapes
from .assemble import Assembly
from .config import config
from .expr import BUFFER, ELEMENTWISE, EMPTY, HOST, SETTLED, SORT, Load, Node
from .glsl import Glsl
from .language import CUDA, Language
from .memory import DeviceMemory, Region, new_dead, region_of, take_all
from .prepared import NO_MEMORIES, Flush, Plans, Prepared
from .structure import Recent, Structure, bytes_of

if TYPE_CHECKING:
    from ..._session.session import Session

READ_BYTES_MAX = 32 * 1024 * 1024  # along with a flush; the service's own bound is 64 MiB
READS_MAX = 255  # of one answer; one more tells of errors
SEGMENTS_MAX = 256  # uploads of one request
PLANNED_NODES_MAX = 4096  # of all prepared requests of a session
MODULES_MAX = 512  # kept loaded per session; the service takes 1,024
WEIGHTS = {ELEMENTWISE: 1, HOST: 1, EMPTY: 1, SORT: 32}
WEIGHT_ELSE = 4  # operations that a reduction, a product or an update may need
NUMBER = attrgetter("number")
INTERRUPTED = "the request that was to compute this array was interrupted"
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
        self.pending: List["ref[Node]"] = []
        self.dead: Deque[Region] = new_dead()
        self.modules: Dict[str, str] = {}  # kernel name -> module id, the least recently used first
        self.loads = 0  # changes whenever `modules` does
        self.operations: Dict[str, str] = {}  # kernel name -> what it does, for people; as long as it is loaded
        self.generation = session.generation
        self.epoch = 0
        self.queued = 0  # weight of what was added since it was last counted
        self.inline_bytes = 0
        self.sending = False  # a flush is on its way; what a refusal of memory calls, or a finalizer, may begin another one meanwhile
        self.unfinished: Optional[Flush] = None  # is on its way, or was when somebody was interrupted
        self.plans = Plans(PLANNED_NODES_MAX)
        self.recent = Recent(self)

    # ---- the queue ----

    def add(self, node: Node, update: bool = False) -> Node:
        """Queues a node. An update stands between what was queued before and what comes after."""
        with self.lock:
            self.epoch += update
            self.queue(node)
            self.epoch += update
        return node

    def queue(self, node: Node) -> bool:
        """Queues a node that is no update. With the lock held. What the device does not compute is refused. False: relieve() has nothing to do."""
        if self.language.refuses:
            self.language.check(node)
        kind = node.kind
        node.epoch = self.epoch
        self.pending.append(ref(node))
        self.queued = queued = self.queued + WEIGHTS.get(kind, WEIGHT_ELSE)
        if kind == HOST:
            self.inline_bytes += node.nbytes
            return True
        return queued >= config.queue_max or queued >= SEGMENTS_MAX or config.eager

    def relieve(self, node: Node) -> None:
        """Flushes when the queue is full, or at once in eager mode, which raises what becomes of the node. It is the newest one, and has its holder."""
        queued, eager = self.queued, config.eager
        if not eager and queued < config.queue_max and queued < SEGMENTS_MAX and self.inline_bytes <= config.inline_bytes_max:
            return
        if not eager and self.inline_bytes <= config.inline_bytes_max:
            with self.lock:
                self.queued = sum(WEIGHTS.get(one.kind, WEIGHT_ELSE) for one in self._live())
            if self.queued < min(config.queue_max, SEGMENTS_MAX):
                return
        self.flush()
        if eager:
            self.check(node)

    def _live(self) -> List[Node]:
        """The nodes that somebody still needs, in the order of their numbers. The others are forgotten."""
        found = [node for reference in self.pending.copy() if (node := reference()) is not None and node.kind not in SETTLED]
        if len(found) != len(self.pending):
            self.pending = [ref(node) for node in found]
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
            if len(loads) == 1:
                load = loads[0]
                if 0 < shapes.size_of(load.shape) * load.dtype.itemsize <= READ_BYTES_MAX:
                    got = self._send(loads)
                    self.check(load.node)
                    return got
            sizes = [bytes_of(load) for load in loads]
            count = len(sizes) if sum(sizes) <= READ_BYTES_MAX and len(sizes) <= READS_MAX else self._along(sizes)
            got = self._send(loads if count == len(sizes) and 0 not in sizes else [load for load, nbytes in zip(loads[:count], sizes) if nbytes])
            for load in loads:
                self.check(load.node)
            if len(got) == len(loads):
                return got
            memories = [load.node.memory for load in loads]
        first = iter(got)
        return [memoryview(b"") if not nbytes else next(first) if at < count else self._fetch_large(load, memory, nbytes, progress)
                for at, (load, memory, nbytes) in enumerate(zip(loads, memories, sizes))]

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
        if node.memory is not None and node.memory.region.generation != self.session.generation:
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
        node.settle(DeviceMemory(region_of(name, data.nbytes, generation), self.dead))
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
            self.loads += 1
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

    def _finish(self, flush: Flush) -> None:
        """Settles what was on its way when somebody was interrupted; it may take a while still. What became of it is told by the arrays."""
        later = flush.unanswered
        try:
            self.sending = True
            if self.generation != self.session.generation:
                raise gone("array", self.session)
            if later is None:
                raise GpurestError(INTERRUPTED)
            response = later.response()
            if response is None:  # it was not even sent
                self.dead.extend([one for one in flush.bound if one is not None])
            else:
                flush.answered = True
                flush.settle(*requests.later_batch_answer(response))
            self.unfinished = None
        except Exception as error:
            if later is not None:
                later.close()
                if not flush.answered and self.generation == self.session.generation:
                    self._let_go([one for one in flush.bound if one is not None])
            cause = GpurestError(INTERRUPTED) if isinstance(error, (ConnectionError_, ProtocolError)) else error  # the interrupt took a part of it
            with suppress(type(cause)):
                self._failed(flush.nodes, flush, cause)
        finally:
            self.sending = False
            if self.unfinished is not flush:
                flush.nodes, flush.memories = (), NO_MEMORIES

    def _send(self, reads: Sequence[Load]) -> List[memoryview]:
        if self.unfinished is not None and not self.sending:
            self._finish(self.unfinished)
        if self.generation != self.session.generation:
            self._renew()
        if len(self.modules) > MODULES_MAX:
            self._unload_some()
        nodes: Sequence[Node] = self._live()
        within, dead = self.sending, take_all(self.dead) if self.dead else []
        try:
            flush = None if within else self.recent.again(nodes, reads, dead)
            structure = self._structure(nodes, reads) if flush is None else None
        except BaseException:  # what is read is lost, or an interrupt
            self.dead.extend(dead)
            raise
        if structure is not None:
            nodes = structure.nodes
        self.queued = self.inline_bytes = 0
        if not nodes and not reads:
            self._let_go(dead)
            return []
        sent, self.sending = False, True
        try:
            if structure is not None:
                flush = Flush(self, structure, self.plans.get(structure.key) or self._prepared(structure), dead, within)
            assert flush is not None
            flush.unanswered, flush.answered = None, False
            if not within:
                self.unfinished = flush
            unused, flush.unused = flush.unused, []
            if unused:
                self._let_go(unused)
            sent = True
            if flush.document.length:
                answer, got = self.session._submit_batch(flush.document, flush.segments)
            else:  # only memory is wanted, and what nobody needs any more serves
                answer, got = {}, {}
            flush.answered = True
            flush.settle(answer, got)
            if not within:
                self.unfinished = None
        except BaseException as error:
            if within:
                requests.forget_interrupt(error)  # of this one, which the outer one must not take for its own
            elif not isinstance(error, Exception) and self._comes_later(flush, dead, sent, error):
                raise
            if flush is None:
                self._let_go(dead)
            elif not flush.answered:  # else arrays may have the memory already
                self._let_go([one for one in flush.bound if one is not None])
            self._failed(nodes, flush, error)
        finally:
            self.sending = within
            if flush is not None and self.unfinished is not flush:  # it may be kept
                flush.nodes, flush.memories = (), NO_MEMORIES
        if len(nodes) == len(self.pending):  # nobody has queued more meanwhile
            self.pending.clear()
        else:
            self._live()
        return [got["r0"]] if len(reads) == 1 else [got[f"r{at}"] for at in range(len(reads))]

    def _comes_later(self, flush: Optional[Flush], dead: Sequence[Region], sent: bool, error: BaseException) -> bool:
        """After an interrupt: whether nothing was sent, so that it is as if nobody had asked; or the answer is still to come."""
        if not sent or hasattr(error, "unsent"):
            self.dead.extend(dead if flush is None else [one for one in (*flush.bound, *flush.unused) if one is not None])
            self.unfinished = None
            return True
        assert flush is not None
        flush.unanswered = error.__dict__.pop("unanswered", None)
        return flush.unanswered is not None

    def _structure(self, nodes: Sequence[Node], reads: Sequence[Load]) -> Structure:
        """Of a flush, without nodes that need something lost."""
        structure = Structure(nodes, reads)
        if structure.lost:
            structure = Structure(self._usable(nodes), reads)
            for one in reads:
                self.check(one.node)
        return structure

    def _prepared(self, structure: Structure) -> Prepared:
        """Planned and written once for flushes of one structure."""
        found = Prepared(structure, Assembly(structure, self.language))
        self.plans.put(structure.key, found)
        return found

    def _unload_some(self) -> None:
        """Makes room for further kernels: those that were not used for longest go. What is needed again is compiled again."""
        while len(self.modules) > MODULES_MAX and len(set(self.modules.values())) > MODULES_MAX:
            self._unload(next(iter(self.modules.values())))

    def _unload(self, unwanted: str) -> None:
        self.modules = {kernel: module for kernel, module in self.modules.items() if module != unwanted}
        self.loads += 1
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

    def _let_go(self, dead: Sequence[Region]) -> None:
        for one in dead:
            self.session._discard(one.id, one.generation)

    def _failed(self, nodes: Sequence[Node], flush: Optional[Flush], error: BaseException) -> NoReturn:
        """All of these that was to be computed is lost, for one reason; what comes from the host is still there, and queued. Done again, updates would count
        twice."""
        nodes = [node for node in nodes if node.kind not in SETTLED]
        left = [node for node in nodes if node.kind in (HOST, EMPTY)]
        self.queued, self.inline_bytes = len(left), sum([node.nbytes for node in left if node.kind == HOST])
        cause = error
        if isinstance(error, GpurestError):
            where = flush.where(error.op_index) if flush is not None else ""
            if where and isinstance(error, CudaError):
                error.queued_at = error.queued_at or where
            elif where:
                error.message += f", queued at {where}"
        elif not isinstance(error, Exception):
            cause = GpurestError(INTERRUPTED)
        for node in nodes:
            if node.kind not in (HOST, EMPTY):
                node.fail(cause)
        if self.unfinished is flush:
            self.unfinished = None
        raise error


def unpack(load: Load, data: memoryview) -> Any:
    """Nested lists of Python scalars; a scalar when there are no dimensions."""
    flat: List[Any] = unpacked(data, shapes.size_of(load.shape), load.dtype)
    if not load.shape:
        return flat[0]
    for extent in reversed(load.shape[1:]):
        flat = [flat[at:at + extent] for at in range(0, len(flat), extent)] if extent else [[] for _ in range(shapes.size_of(load.shape[:-1]))]
    return flat
