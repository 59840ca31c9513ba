"""A flush as the text of its request, with holes for what differs from one flush of the same structure to the next, and what its answer means."""

from __future__ import annotations

import re
from json.encoder import encode_basestring_ascii as quoted
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._session import requests
from ..._session.requests import written
from ..._values.scalars import scalar_kind
from ...errors import GpurestError
from .assemble import FLAGS, Assembly, Fill, Launch
from .builtins import Call
from .config import config
from .expr import FAILED, SETTLED, Node
from .language import Kernel
from .memory import SMALL_BYTES, DeviceMemory, Region, check_bytes, region_of
from .prelude_random import FIRST_CODE, RULES
from .structure import Structure, bytes_of, can_recur, mark, settings_of

if TYPE_CHECKING:
    from ..._session.session import Session
    from .engine import Engine

TIMEOUT_MS_MAX = 3600 * 1000
FLAG_ERRORS = {1: (IndexError, "an index is out of bounds"), 2: (ValueError, "integers to negative integer powers are not allowed"),
               **{FIRST_CODE + at: (ValueError, rule.text) for at, rule in enumerate(RULES.values())}}
NOT_STORED = GpurestError("an array that a flush did not store was used again")  # of values that nobody can reach any more
NO_SEGMENTS: Mapping[str, Any] = {}
NO_MEMORIES: Mapping[DeviceMemory, int] = {}
FRAMES_MAX = 4  # of one prepared request
KEPT_MAX = 2  # of a request with its texts: programs that step from one array to another and back have two in turns
HOLE = re.compile(r'(?:,"module":)?"\\u0000([0-9]+)\\u0000"')


class Place(NamedTuple):
    """A piece of memory that the request needs beside what is there. `upload`: number of the node whose bytes it starts with. Without one it may
    be memory that nobody needs any more."""

    name: str
    nbytes: int
    alloc: str
    kept: bool
    upload: Optional[int]


class Result(NamedTuple):
    """Where a wanted node's value is: in memory that was there, or in a place."""

    node: int
    memory: Optional[int]
    place: int


class Flag(NamedTuple):
    """What a launch that can find errors in its data was for."""

    word: int
    node: int
    stored: Tuple[int, ...]


class Frame:
    """A prepared request of which it is known what becomes its places and which modules have its kernels: text, with holes for names of memory, starts and
    scalars."""

    __slots__ = ("operations", "fill", "length", "options", "timeout_ms", "allocs", "large", "_repeated")

    def __init__(self, operations: str, order: Sequence[int], length: int, options: str, timeout_ms: int, allocs: List[Place]) -> None:
        self.operations = operations
        self.fill: Callable[[Sequence[Any]], Tuple[Any, ...]] = _picker(order)
        self.length = length  # of operations
        self.options = options  # the request's members beside its operations
        self.timeout_ms = timeout_ms
        self.allocs = allocs  # its first operations
        self._repeated: List[requests.Repeated] = []  # the one that was filled last is the last
        self.large = [place.nbytes for place in allocs if place.upload is None and place.nbytes > SMALL_BYTES]  # the device may have too few

    def once(self, texts: Sequence[Any], module: Optional[Dict[str, Any]]) -> requests.Encoded:
        """`texts`: what fills the holes, by their numbers."""
        return requests.Encoded(self.operations % self.fill(texts), self.length, self.options, self.timeout_ms, module)

    def again(self, session: "Session", texts: Sequence[Any]) -> requests.Repeated:
        """A request that was there before, with other texts if these are others."""
        for one in self._repeated:
            if one.texts == texts:
                return one
        full = len(self._repeated) == KEPT_MAX
        one = self._repeated.pop(0) if full else requests.Repeated(session.id, self.length, self.options, self.timeout_ms)
        one.fill(self.operations % self.fill(texts), texts)
        self._repeated.append(one)
        return one


class Prepared:
    """Knows nodes by their numbers in a structure, so that it holds none. Changes nothing but its frames once it is made."""

    def __init__(self, structure: Structure, assembly: Assembly) -> None:
        self.nodes = len(structure.nodes)
        self._language = assembly.language
        self.kernels: Dict[str, Tuple[Kernel, str]] = {}  # by name, with what each does for people
        self.origins: List[Optional[int]] = []  # of each operation behind those that make places: the node that it is for
        self._first_place = structure.holes
        self._first_module = self._first_place + len(assembly.made)
        self._names = {memory.id: mark(number) for number, memory in enumerate(structure.memories)}
        self._names.update({slot.name: mark(self._first_place + number) for number, slot in enumerate(assembly.made)})
        self.flags = [Flag(one.flag, structure.number(one.step.node), tuple([structure.number(node) for node in one.step.stored]))
                      for one in assembly.actions if isinstance(one, Launch) and one.flag >= 0]
        self.results = self._results(structure, assembly)
        self.places = self._places(structure, assembly)
        self.uploads = [place.upload for place in self.places if place.upload is not None]  # numbers of nodes, in the order of their segments
        self._by_size: Dict[int, List[int]] = {}  # places that memory may become which nobody needs any more
        for number, place in enumerate(self.places):
            if place.upload is None:
                self._by_size.setdefault(place.nbytes, []).append(number)
        self._parts = HOLE.split(written(self._operations(structure, assembly))[1:-1])  # texts, and between them numbers of holes
        holes = set(map(int, self._parts[1::2]))
        self.repeatable = holes >= set(range(len(structure.memories), self._first_place))  # each scalar and each start has its hole
        self._frames: Dict[Any, Frame] = {}
        self._loads = 0  # of the engine, to which the frames belong
        at = [one.place for one in self.results]
        self.plain = not self.flags and sorted(at) == list(range(len(self.places)))  # each place is the memory of one value, and nothing is to be looked at
        self.unstored = sorted(set(range(self.nodes)) - {one.node for one in self.results})
        del self._names

    # ---- making ----

    @staticmethod
    def _results(structure: Structure, assembly: Assembly) -> List[Result]:
        numbers = {id(slot): number for number, slot in enumerate(assembly.made)}
        found = []
        for number, node in enumerate(structure.nodes):
            slot = assembly.slots.get(node)
            if slot is None or node not in structure.wanted:
                continue
            slot.kept = True
            if slot.memory is not None:
                found.append(Result(number, structure.memory_number(slot.memory), -1))
            else:
                found.append(Result(number, None, numbers[id(slot)]))
        return found

    @staticmethod
    def _places(structure: Structure, assembly: Assembly) -> List[Place]:
        found, uploads = [], 0
        for slot in assembly.made:
            node = assembly.uploads.get(slot.name)
            if node is None:
                alloc: Dict[str, Any] = {"op": "alloc", "as": slot.name, "size": slot.nbytes}
            else:
                alloc = {"op": "alloc", "as": slot.name, "segment": f"s{uploads}"}
                uploads += 1
            found.append(Place(written(slot.name), slot.nbytes, written(alloc), slot.kept,
                               None if node is None else structure.number(node)))
        return found

    def _operations(self, structure: Structure, assembly: Assembly) -> List[Dict[str, Any]]:
        ops: List[Dict[str, Any]] = []

        def add(op: Dict[str, Any], node: Optional[int]) -> None:
            ops.append(op)
            self.origins.append(node)

        if assembly.flags:
            add({"op": "alloc", "as": FLAGS, "size": 4 * assembly.flags}, None)
            add({"op": "fill", "to": FLAGS, "pattern": {"u32": 0}}, None)
        for one in assembly.actions:
            add(self._fill_op(one) if isinstance(one, Fill) else self._launch(one), structure.number(one.step.node))
        if assembly.flags:
            add({"op": "read", "from": FLAGS, "segment": "flags"}, None)
        for at, load in enumerate(structure.reads):
            add({"op": "read", "from": self._names[assembly.name_of(load.node)], "offset": structure.offset(load.offset * load.dtype.itemsize),
                 "size": bytes_of(load), "segment": f"r{at}"}, None)
        return ops

    def _fill_op(self, one: Fill) -> Dict[str, Any]:
        return {"op": "fill", "to": self._names[one.slot.name], "pattern": {"u64": 0}}

    def _launch(self, one: Launch) -> Dict[str, Any]:
        args = [self._named(arg) for arg in one.args]
        if isinstance(one.kernel, Call):
            return {"op": "launch", "builtin": one.kernel.builtin, "dtype": scalar_kind(one.kernel.dtype), "args": args}
        name = one.kernel.name
        self.kernels.setdefault(name, (one.kernel._replace(args=[]), one.operations))
        module = mark(self._first_module + list(self.kernels).index(name))
        block = {"block": [one.block]} if self._language.block_is_given else {}
        return {"op": "launch", "kernel": self._language.entry(name), "module": module, "grid": one.grid, **block, "args": args}

    def _named(self, arg: Any) -> Any:
        """An argument with its memory's hole in place of its name."""
        if isinstance(arg, dict) and "buf" in arg:
            return {**arg, "buf": self._names.get(arg["buf"], arg["buf"])}
        return arg

    # ---- using ----

    def bind(self, dead: Iterable[Region], generation: int) -> Tuple[List[Optional[Region]], List[Optional[str]], List[Region]]:
        """Which memory that nobody needs any more becomes which place, its names, and what of it is left. Memory of other generations is gone."""
        bound: List[Optional[Region]] = [None] * len(self.places)
        names: List[Optional[str]] = bound.copy()  # type: ignore[assignment]
        unused: List[Region] = []
        taken: Dict[int, int] = {}
        for one in dead:
            _, nbytes, made_in, name = one
            if made_in != generation:
                continue
            places, count = self._by_size.get(nbytes, ()), taken.get(nbytes, 0)
            if count < len(places):
                bound[places[count]], names[places[count]] = one, name
                taken[nbytes] = count + 1
            else:
                unused.append(one)
        return bound, names, unused

    def frame(self, key: Any, loads: int) -> Optional[Frame]:
        """The one for that key (see new_frame()), if the engine's modules are what they were then."""
        if self._loads != loads:
            self._frames.clear()
            self._loads = loads
        return self._frames.get(key)

    def new_frame(self, key: Any, bound: Sequence[Optional[Region]], modules: Sequence[str], timeout_ms: int, timing: bool, keep: bool) -> Frame:
        """`modules`: of each kernel, as a member of its operations. `timing`: launches are timed. `keep`: for later requests with this key, which is to tell
        apart all else that is given here: of what is bound, whether it is."""
        made = [place for place, region in zip(self.places, bound) if region is None]
        known = {self._first_place + number: self.places[number].name for number, region in enumerate(bound) if region is None}
        known.update({self._first_module + number: text for number, text in enumerate(modules)})
        order: List[int] = []
        texts = [_unformatted(self._parts[0])]
        for hole, text in zip(map(int, self._parts[1::2]), self._parts[2::2]):
            if hole not in known:
                order.append(hole)
            texts += [_unformatted(known[hole]) if hole in known else "%s", _unformatted(text)]
        operations = ",".join([one for one in (*[_unformatted(place.alloc) for place in made], "".join(texts)) if one])
        kept = ",".join([place.name for place in made if place.kept])
        options = f'"keep":[{kept}],"timeout_ms":{timeout_ms}' + ("" if timing else ',"timing":false')
        frame = Frame(operations, order, len(made) + len(self.origins), options, timeout_ms, made)
        if keep:
            if len(self._frames) >= FRAMES_MAX:
                self._frames.clear()
            self._frames[key] = frame
        return frame


def _unformatted(text: str) -> str:
    """As a part of what the operator % fills."""
    return text.replace("%", "%%")


def _picker(order: Sequence[int]) -> Callable[[Sequence[Any]], Tuple[Any, ...]]:
    """Of what fills the holes, by their numbers: what those holes in their order need."""
    if len(order) > 1:
        return itemgetter(*order)
    return lambda texts: tuple([texts[at] for at in order])


class Plans:
    """Prepared requests by structure. `nodes_max` bounds the nodes of all of them together, and with them the memory: when those used lately have
    half of it, they are the ones of before, and what was not used since the last time goes. So a look-up of what is used hashes its key once."""

    def __init__(self, nodes_max: int) -> None:
        self._nodes_max = nodes_max // 2
        self._nodes = 0  # of those used lately
        self._lately: Dict[Any, Prepared] = {}
        self._before: Dict[Any, Prepared] = {}

    def __len__(self) -> int:
        return len(self._lately) + len(self._before)

    def get(self, key: Any) -> Optional[Prepared]:
        found = self._lately.get(key)
        if found is None and (found := self._before.pop(key, None)) is not None:
            self.put(key, found)
        return found

    def put(self, key: Any, prepared: Prepared) -> None:
        nodes = prepared.nodes + 1
        if not prepared.repeatable or nodes > self._nodes_max:
            return
        if self._nodes + nodes > self._nodes_max:
            self._before, self._lately, self._nodes = self._lately, {}, 0
        self._lately[key] = prepared
        self._nodes += nodes


class Flush:
    """With the engine's lock held from the first to the last."""

    unanswered: Any = None  # a transport.Unanswered: its answer comes later
    answered = False
    _stored: Optional[Sequence[Tuple[int, Region]]] = None  # of one that can be done again: which node's value is in which memory

    def __init__(self, engine: "Engine", structure: Structure, prepared: Prepared, dead: Sequence[Region], within: bool) -> None:
        """`within`: another one of the engine is on its way, whose request stays as it is."""
        self.engine = engine
        self.nodes: Sequence[Node] = structure.nodes
        self.memories: Mapping[DeviceMemory, int] = structure.memories
        self.prepared = prepared
        self.new: List[Kernel] = []
        self.bound, names, self.unused = prepared.bind(dead, engine.generation)
        session = engine.session
        timing, *times = settings = settings_of(engine)
        key = (timing, *times[:2], *map(bool, names))
        known = prepared.frame(key, engine.loads)
        self.frame = frame = known or self._new_frame(key, timing)
        for nbytes in frame.large:
            check_bytes(session, nbytes, "a result")
        own = structure.texts(engine.language.register)
        texts = own + names
        self.segments = {f"s{at}": self.nodes[number].params["data"] for at, number in enumerate(prepared.uploads)} if prepared.uploads else NO_SEGMENTS
        if known is None or self.segments or timing or within:
            self.document: requests.Encoded = frame.once(texts, engine.language.modules(self.new) if self.new else None)
        else:
            self.document = repeated = frame.again(session, texts)
            if repeated.texts is not texts and prepared.plain and dead == self.bound and not frame.large and can_recur(structure):  # it has come again
                self._stored = [(number, dead[place]) for number, _, place in prepared.results]
                engine.recent.keep(self, settings, repeated, structure)

    def _new_frame(self, key: Any, timing: bool) -> Frame:
        modules = [self._module(name) for name in self.prepared.kernels]
        timeout_ms = self.engine.session.timeout_ms or min(max(1, int(config.timeout_s * 1000)), TIMEOUT_MS_MAX)
        return self.prepared.new_frame(key, self.bound, modules, timeout_ms, timing, not self.new)

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
        self.engine.loads += 1
        return f',"module":{quoted(loaded)}'

    def where(self, op_index: Optional[int]) -> str:
        """The line that queued an operation."""
        if op_index is None:
            return ""
        allocs, origins = self.frame.allocs, self.prepared.origins
        at = op_index - len(allocs)
        origin = allocs[op_index].upload if at < 0 else origins[at] if at < len(origins) else None
        return "" if origin is None else self.nodes[origin].where

    # ---- the answer ----

    def settle(self, answer: Dict[str, Any], got: Dict[str, memoryview]) -> None:
        """Every node has its value, or will never have one."""
        engine, prepared, nodes = self.engine, self.prepared, self.nodes
        if self._stored is not None:
            for number, region in self._stored:
                nodes[number].settle(DeviceMemory(region, engine.dead))
            for number in prepared.unstored:
                nodes[number].fail(NOT_STORED)
            return
        if self.new:
            engine.modules.update({kernel.name: answer["module"] for kernel in self.new})
            engine.loads += 1
        if prepared.flags:
            self._fail_flagged(got)
        owned: Dict[int, DeviceMemory] = {}
        memories: List[DeviceMemory] = []
        for number, memory, place in prepared.results:
            node = nodes[number]
            if node.kind == FAILED:
                continue
            if memory is not None:
                memories = memories or list(self.memories)
                node.settle(memories[memory])
                continue
            if place not in owned:
                owned[place] = DeviceMemory(self._region(place, answer), engine.dead)
            node.settle(owned[place])
        if len(owned) < len(prepared.places):
            self._keep_rest(owned, answer)
        for node in nodes:
            if node.kind not in SETTLED:
                node.fail(NOT_STORED)

    def _region(self, place: int, answer: Dict[str, Any]) -> Region:
        return self.bound[place] or region_of(str(answer["kept"][f"$t{place}"]), self.prepared.places[place].nbytes, self.engine.generation)

    def _keep_rest(self, owned: Mapping[int, DeviceMemory], answer: Dict[str, Any]) -> None:
        """What was used on the way, and what belongs to values that failed by a flag, is there for the next flush."""
        for at, place in enumerate(self.prepared.places):
            if at not in owned and (place.kept or self.bound[at] is not None):
                self.engine.dead.append(self._region(at, answer))

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
