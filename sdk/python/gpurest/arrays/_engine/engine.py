"""Each session's queue of array work: collects pending nodes, sends them as one request, and settles what came of it."""

from __future__ import annotations

import struct
import threading
import weakref
from typing import TYPE_CHECKING, Any, Deque, Dict, List, Optional, Sequence

from ..._session import requests, transfer
from ..._values.dtypes import DType
from ..._values.scalars import scalar_kind
from ...errors import CudaError, GpurestError, NotFoundError, SessionLostError
from . import shapes
from .assemble import FLAGS, Assembly, Fill, Launch, Slot
from .builtins import Call
from .codegen import OPTIONS, Kernel, module_source
from .config import config
from .expr import BUFFER, ELEMENTWISE, EMPTY, FAILED, HOST, SORT, Load, Node
from .memory import Dead, DeviceMemory, check_bytes, new_dead, take_all

if TYPE_CHECKING:
    from ..._session.session import Session

READ_BYTES_MAX = 32 * 1024 * 1024  # along with a flush; the service's own bound is 64 MiB
READS_MAX = 255  # of one answer; one more tells of errors
SEGMENTS_MAX = 256  # uploads of one request
MODULES_MAX = 512  # kept loaded per session; the service takes 1,024
TIMEOUT_MS_MAX = 3600 * 1000
WEIGHTS = {ELEMENTWISE: 1, HOST: 1, EMPTY: 1, SORT: 32}
WEIGHT_ELSE = 4  # operations that a reduction, a product or an update may need
FLAG_ERRORS = {1: (IndexError, "an index is out of bounds"), 2: (ValueError, "integers to negative integer powers are not allowed")}
_engines_lock = threading.Lock()


def engine_of(session: "Session") -> "Engine":
    found: Optional[Engine] = getattr(session, "_array_engine", None)
    if found is None:
        with _engines_lock:
            found = getattr(session, "_array_engine", None)
            if found is None:
                found = Engine(session)
                setattr(session, "_array_engine", found)
    return found


class Engine:
    """Thread-safe: one flush at a time. Holds pending nodes weakly: what nobody needs any more is not computed."""

    def __init__(self, session: "Session") -> None:
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

    # ---- the queue ----

    def add(self, node: Node, update: bool = False) -> Node:
        """Queues a node. An update stands between what was queued before and what comes after."""
        with self.lock:
            self.epoch += update
            node.epoch = self.epoch
            self.epoch += update
            self.pending[node.number] = weakref.ref(node)
            self.queued += WEIGHTS.get(node.kind, WEIGHT_ELSE)
            if node.kind == HOST:
                self.inline_bytes += node.nbytes
        return node

    def relieve(self) -> None:
        """Flushes when the queue is full, or at once in eager mode. To be called when the newest node has its holder."""
        if config.eager:
            self.flush()
            return
        most = min(config.queue_max, SEGMENTS_MAX)
        if self.queued >= most:
            with self.lock:
                nodes = self._live()
                self.queued = sum(WEIGHTS.get(node.kind, WEIGHT_ELSE) for node in nodes)
        if self.queued >= most or self.inline_bytes > config.inline_bytes_max:
            self.flush()

    def _live(self) -> List[Node]:
        found = [(number, reference()) for number, reference in list(self.pending.items())]
        self.pending = {number: weakref.ref(node) for number, node in found if node is not None and node.pending}
        return [node for _, node in found if node is not None and node.pending]

    # ---- flush ----

    def flush(self) -> None:
        """Computes everything that is pending, in one request if there is anything. Failures stay with the arrays that they concern."""
        with self.lock:
            self._send([])

    def fetch(self, loads: Sequence[Load], progress: Any = None) -> List[memoryview]:
        """The bytes of contiguous views, read along with a flush as far as one answer holds them. Raises what became of the arrays."""
        with self.lock:
            sizes = [shapes.size_of(load.shape) * load.dtype.itemsize for load in loads]
            room = READ_BYTES_MAX
            along: List[Optional[Load]] = []
            for load, nbytes in zip(loads, sizes):
                if nbytes <= room and len(along) < READS_MAX:
                    along.append(load if nbytes else None)
                    room -= nbytes
                else:
                    break
            got = iter(self._send([load for load in along if load is not None]))
            for load in loads:
                self.check(load.node)
            first = [memoryview(b"") if load is None else next(got) for load in along]
            return first + [self._fetch_large(load, nbytes, progress) for load, nbytes in zip(loads[len(along):], sizes[len(along):])]

    def check(self, node: Node) -> None:
        """Raises the one cause when the array is lost."""
        if node.error is not None:
            raise node.error
        if node.memory is not None and node.memory.generation != self.session.generation:
            raise SessionLostError("this array is gone: the session was reset since it was made", reason="reset")

    def _fetch_large(self, load: Load, nbytes: int, progress: Any) -> memoryview:
        """More than an answer of a batch holds: a transfer of its own behind the flush, over several connections where that helps."""
        memory = load.node.memory
        assert memory is not None
        out = memoryview(bytearray(nbytes))
        transfer.read(self.session, memory.id, load.offset * load.dtype.itemsize, out, progress)
        return out

    def upload(self, data: memoryview, dtype: DType, shape: shapes.Shape, progress: Any) -> Node:
        """What is too long to be queued: sent now, behind everything that is queued."""
        with self.lock:
            session = self.session
            self._renew()
            self._let_go(take_all(self.dead))
            session._relieve()
            name = session._new_name("array")
            transfer.create_filled(session, name, data, progress)
            node = Node(self, BUFFER, dtype, shape)
            node.settle(DeviceMemory(name, data.nbytes, self.generation, self.dead))
            return node

    def assembly(self) -> Assembly:
        """What a flush would do now."""
        with self.lock:
            return Assembly(self._usable(self._live()), ())

    def _renew(self) -> None:
        """After a reset nothing of what was on the device is there."""
        if self.generation != self.session.generation:
            self.generation = self.session.generation
            self.modules.clear()
            self.operations.clear()
            take_all(self.dead)

    def _usable(self, nodes: Sequence[Node]) -> List[Node]:
        """Without those that need something lost; these fail with the same cause."""
        good = []
        for node in sorted(nodes, key=lambda one: one.number):
            try:
                for one in node.loads:
                    self.check(one.node)
            except GpurestError as error:
                node.fail(error)
            except (IndexError, ValueError) as error:
                node.fail(error)
            else:
                good.append(node)
        return good

    def _send(self, reads: Sequence[Load]) -> List[memoryview]:
        session = self.session
        self._renew()
        nodes = self._usable(self._live())
        for one in reads:
            self.check(one.node)
        self.queued = self.inline_bytes = 0
        if not nodes and not reads:
            self._let_go(take_all(self.dead))
            return []
        dead = [one for one in take_all(self.dead) if one.generation == self.generation]
        self._unload_some()
        try:
            request = _Request(self, Assembly(nodes, dead), reads)
            self._let_go(request.unused)
            answer, got = session._submit_batch(request.document, request.segments)
        except BaseException as error:
            self._failed(nodes, locals().get("request"), error)
            raise AssertionError("unreachable")
        request.settle(answer, got)
        self.pending = {number: reference for number, reference in self.pending.items() if (node := reference()) is not None and node.pending}
        return [got[f"r{at}"] for at in range(len(reads))]

    def _unload_some(self) -> None:
        """Makes room for further kernels: those that were not used for longest go. What is needed again is compiled again."""
        while len(set(self.modules.values())) > MODULES_MAX:
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

    def _let_go(self, dead: Sequence[Dead]) -> None:
        for one in dead:
            self.session._discard(one.id, one.generation)

    def _failed(self, nodes: Sequence[Node], request: Optional["_Request"], error: BaseException) -> None:
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
    """One flush as the document of a batch."""

    def __init__(self, engine: Engine, assembly: Assembly, reads: Sequence[Load]) -> None:
        self.engine = engine
        self.assembly = assembly
        self.segments: Dict[str, Any] = {}
        self.ops: List[Dict[str, Any]] = []
        self.places: List[str] = []  # where each operation was queued
        self.launches: List[Launch] = [one for one in assembly.actions if isinstance(one, Launch)]
        self.new: List[Kernel] = []
        self._allocate()
        self._act()
        kept = self._keep()
        for at, load in enumerate(reads):
            size = shapes.size_of(load.shape) * load.dtype.itemsize
            self._op({"op": "read", "from": assembly._name_of(load.node), "offset": load.offset * load.dtype.itemsize, "size": size,
                      "segment": f"r{at}"}, load.node.where)
        self.document: Dict[str, Any] = {"ops": self.ops, "keep": kept, "timeout_ms": min(max(1, int(config.timeout_s * 1000)), TIMEOUT_MS_MAX)}
        if not engine.session.client._transport.observers:  # profilers, the only ones who would see the times
            self.document["timing"] = False
        if self.new:
            self.document["module"] = {"source": module_source(self.new), "options": OPTIONS}
        used = {slot.name for slot in assembly.slots.values()}
        self.unused = [slot.dead for slot in assembly.recycled if slot.dead is not None and slot.name not in used]

    def _op(self, op: Dict[str, Any], where: str) -> None:
        self.ops.append(op)
        self.places.append(where)

    def _allocate(self) -> None:
        for slot in self.assembly.made:
            node = self.assembly.uploads.get(slot.name)
            if node is not None:
                name = f"s{len(self.segments)}"
                self.segments[name] = node.params["data"]
                self._op({"op": "alloc", "as": slot.name, "segment": name}, node.where)
            else:
                check_bytes(self.engine.session, slot.nbytes, "a result")
                self._op({"op": "alloc", "as": slot.name, "size": slot.nbytes}, "")
        if self.assembly.flags:
            self._op({"op": "alloc", "as": FLAGS, "size": 4 * self.assembly.flags}, "")
            self._op({"op": "fill", "to": FLAGS, "pattern": {"u32": 0}}, "")

    def _act(self) -> None:
        seen = set()
        for one in self.assembly.actions:
            if isinstance(one, Fill):
                self._op({"op": "fill", "to": one.slot.name, "pattern": {"u64": 0}}, one.step.node.where)
                continue
            if isinstance(one.kernel, Call):
                self._op({"op": "launch", "builtin": one.kernel.builtin, "dtype": scalar_kind(one.kernel.dtype), "args": one.args},
                         one.step.node.where)
                continue
            op: Dict[str, Any] = {"op": "launch", "kernel": one.kernel.name, "grid": one.grid, "block": [one.block], "args": one.args}
            module = self.engine.modules.pop(one.kernel.name, None)
            if module is not None:
                self.engine.modules[one.kernel.name] = op["module"] = module  # the last one used is the last one
            elif one.kernel.name not in seen:
                seen.add(one.kernel.name)
                self.new.append(one.kernel)
                self.engine.operations[one.kernel.name] = one.operations
            self._op(op, one.step.node.where)
        if self.assembly.flags:
            self._op({"op": "read", "from": FLAGS, "segment": "flags"}, "")

    def _keep(self) -> List[str]:
        for node in self.assembly.nodes:
            if node in self.assembly.planner.wanted and node in self.assembly.slots:
                self.assembly.slots[node].kept = True
        return [slot.name for slot in self.assembly.made if slot.kept]

    def where(self, op_index: Optional[int]) -> str:
        return self.places[op_index] if op_index is not None and op_index < len(self.places) else ""

    # ---- the answer ----

    def settle(self, answer: Dict[str, Any], got: Dict[str, memoryview]) -> None:
        engine, assembly = self.engine, self.assembly
        for kernel in self.new:
            engine.modules[kernel.name] = answer["module"]
        memories: Dict[int, DeviceMemory] = {}
        self._fail_flagged(got)
        for node in assembly.nodes:
            slot = assembly.slots.get(node)
            if slot is None or node not in assembly.planner.wanted or node.kind == FAILED:
                continue
            node.settle(self._memory(slot, answer, memories))
        for slot in assembly.made:
            if slot.kept and id(slot) not in memories:  # of a value that failed by a flag
                engine.dead.append(Dead(answer["kept"][slot.name], slot.nbytes, engine.generation))
        for node in assembly.nodes:
            if node.pending:
                node.fail(GpurestError("an array that a flush did not store was used again"))

    def _memory(self, slot: Slot, answer: Dict[str, Any], memories: Dict[int, DeviceMemory]) -> DeviceMemory:
        if slot.memory is not None:
            return slot.memory
        if id(slot) not in memories:
            name = slot.dead.id if slot.dead is not None else answer["kept"][slot.name]
            memories[id(slot)] = DeviceMemory(name, slot.nbytes, self.engine.generation, self.engine.dead)
        return memories[id(slot)]

    def _fail_flagged(self, got: Dict[str, memoryview]) -> None:
        """What a kernel found wrong with its data, and everything computed from it."""
        if not self.assembly.flags:
            return
        words = got["flags"].cast("B").tobytes()
        bad: Dict[Node, BaseException] = {}
        for launch in self.launches:
            code = int.from_bytes(words[4 * launch.flag:4 * launch.flag + 4], "little") if launch.flag >= 0 else 0
            if code:
                kind, text = FLAG_ERRORS[code]
                error = kind(f"{text}, queued at {launch.step.node.where}")
                bad.update({node: error for node in launch.step.stored})
        for node in self.assembly.nodes if bad else ():
            causes: List[BaseException] = [bad[one.node] for one in node.loads if one.node in bad]
            if causes and node not in bad:
                bad[node] = causes[0]
        for node, cause in bad.items():
            node.fail(cause)


def unpack(load: Load, data: memoryview) -> Any:
    """Nested lists of Python scalars; a scalar when there are no dimensions."""
    flat: List[Any] = list(struct.unpack(f"<{shapes.size_of(load.shape)}{load.dtype.char}", data))
    if not load.shape:
        return flat[0]
    for extent in reversed(load.shape[1:]):
        flat = [flat[at:at + extent] for at in range(0, len(flat), extent)] if extent else [[] for _ in range(shapes.size_of(load.shape[:-1]))]
    return flat
