"""What makes one flush the same as another: its structure is a key, and what may differ beside it fills the holes of a prepared request.

The key has everything that planning and code generation look at: operations, types, shapes, strides, epochs, which nodes are wanted, which
memory is the same. It has not which memory that is, nor the scalars, nor (in MOVABLE kinds) how far behind its start a view begins; of those
it has only which are equal, since equal ones become one argument of a kernel.

Flushes that come again as they were, with the same scalars on the same memory, are not even taken apart for their key: they are compared with what they may be. Programs that
loop are made of these."""

from __future__ import annotations

import json
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ..._session.requests import Repeated
from ..._values import dtypes
from ..._values.dtypes import DType
from . import shapes
from .config import config
from .expr import ELEMENTWISE, EMPTY, HOST, REDUCE, UPDATE, Const, Input, Load, Node, Operation, Shared
from .memory import DeviceMemory, Region

if TYPE_CHECKING:
    from .engine import Engine
    from .prepared import Flush

MOVABLE = frozenset({ELEMENTWISE, EMPTY, HOST, REDUCE, UPDATE})  # their kernels get a view's start as a pointer, and nothing else of it
EXACT_MAX = 1 << 53  # JSON numbers beyond are decimal texts
ALIKE_MAX = 4  # flushes that are kept of those that have as many nodes, as many reads, and the same operation at the end
NODES_MAX = 4096  # of all that are kept
INPUTS = attrgetter("inputs")
SOURCE, VIEW = itemgetter(0), itemgetter(slice(1, None))  # of a load: the node, and how it is read; of a scalar: its value and type
Settings = Tuple[bool, Optional[int], float, bool, bool]
Operated = Tuple[Dict[str, Any], Tuple[str, str, DType, int], shapes.Shape, int, bool]  # parameters, what else it does, shape, epochs behind the first node, wanted


def mark(number: int) -> str:
    """Stands in an operation where a text of each request's own goes."""
    return f"\0{number}\0"


class Structure:
    """Of the nodes of a flush, in the order of their numbers, and of what is read along with it. What others may change meanwhile, such as
    whether a node is wanted, is asked once, here."""

    __slots__ = ("nodes", "reads", "wanted", "memories", "key", "lost", "consts", "offsets", "_numbers", "_outside", "_may_move")

    def __init__(self, nodes: Sequence[Node], reads: Sequence[Load]) -> None:
        self.nodes = nodes
        self.reads = reads
        self.wanted: Set[Node] = set()  # of the nodes, and of those whose place they take
        self.memories: Dict[DeviceMemory, int] = {}  # that is there already -> number
        self.lost = False  # something that is used has failed, or was on the device before the session was reset
        self.consts: Dict[Tuple[str, str], Tuple[int, Const]] = {}
        self.offsets: Dict[int, int] = {}  # bytes -> number
        self._numbers: Dict[Node, int] = {}
        self._outside: List[Any] = []
        self._may_move: Optional[bool] = None
        parts: List[Any] = [config.fusion, config.builtins]  # each node is followed by its inputs; by their types one knows where which begins
        numbers, first_epoch = self._numbers, nodes[0].epoch if nodes else 0
        for at, node in enumerate(nodes):
            holder, params, reuse = node.holder, node.params, node.reuse
            storage = None if holder is None else holder()
            wanted = storage is not None and storage.node is node
            if wanted:
                self.wanted.add(node)
            if type(params) is Operation:
                parts += params, node.shape, node.epoch - first_epoch, wanted, None if reuse is None else self._reuse(reuse)
            else:
                parts += (node.kind, node.op, node.dtype.name, node.shape, node.epoch - first_epoch, wanted, None if reuse is None else self._reuse(reuse),
                          params if type(params) is Shared else self._params(node))
            for one in node.inputs:
                if type(one) is Load:
                    source, dtype, shape, strides, offset, scattered = one
                    number = numbers.get(source)
                    if number is None:
                        number = self._outer(source)
                    parts += number, dtype.name, shape, strides, self._moved(offset, dtype) if offset else 0, scattered
                else:
                    parts += self._const(one)  # type: ignore[arg-type]
            numbers[node] = at
        parts.append(None)
        for one in reads:
            parts += self._load(one)
        parts += self._outside
        self.key = tuple(parts)

    def number(self, node: Node) -> int:
        """Of a node of the flush."""
        return self._numbers[node]

    # ---- the key ----

    def _params(self, node: Node) -> Tuple[Any, ...]:
        return () if node.kind == HOST else tuple([self._param(*item) for item in node.params.items()])

    def _param(self, name: str, value: Any) -> Tuple[str, Any]:
        if type(value) is Load:
            return name, self._load(value)
        if type(value) is DType:
            return name, value.name
        if name == "types":
            return name, tuple([one.name for one in value])
        return name, tuple(value) if type(value) is list else value

    def _reuse(self, old: Node) -> Optional[Tuple[int, bool]]:
        if old.memory is None or old.memory.is_gone(old.engine.generation):
            return None
        wanted = old.wanted
        if wanted:
            self.wanted.add(old)
        number = self._numbers.get(old)
        return self._outer(old) if number is None else number, wanted

    def _const(self, one: Const) -> Tuple[int, str]:
        name = one.dtype.name
        found = self.consts.get((text := repr(one.value), name))
        if found is None:
            found = self.consts[text, name] = (len(self.consts), one)
        return found[0], name

    def _load(self, load: Load) -> Tuple[Any, ...]:
        node, dtype, shape, strides, offset, scattered = load
        number = self._numbers.get(node)
        if number is None:
            number = self._outer(node)
        return number, dtype.name, shape, strides, self._moved(offset, dtype) if offset else 0, scattered

    def _moved(self, offset: int, dtype: DType) -> int:
        """Of a view's start: that it is one of those that may be elsewhere next time, below 0; or where it is."""
        return -1 - self.offsets.setdefault(offset * dtype.itemsize, len(self.offsets)) if self._movable else offset

    def _outer(self, node: Node) -> int:
        """The number, below 0, of what was computed before."""
        memory, outside = node.memory, self._outside
        number = self._numbers[node] = -1 - len(outside) // 4
        if memory is None:  # of a value without elements, or of one that failed
            self.lost = self.lost or node.error is not None
            outside += None, None, node.dtype.name, node.shape
            return number
        region, place = memory.region, self.memories.setdefault(memory, len(self.memories))
        if region.generation != node.engine.generation:
            self.lost = True
        outside += place, region.nbytes, node.dtype.name, node.shape
        return number

    @property
    def _movable(self) -> bool:
        """Whether views may begin elsewhere."""
        if self._may_move is None:
            self._may_move = all([node.kind in MOVABLE and "steps" not in node.params for node in self.nodes])
        return self._may_move

    # ---- the holes ----

    def texts(self, register: Callable[[DType], DType]) -> List[str]:
        """What fills the holes, by their numbers: names of memory, offsets, scalars. Those of a prepared request itself come behind. `register`: the
        type as which a scalar is passed to a kernel."""
        names = [memory.region.name for memory in self.memories]
        if not self.consts and not self.offsets:
            return names
        return [*names, *map(str, self.offsets), *[_argument(one.value, register(one.dtype)) for _, one in self.consts.values()]]

    @property
    def holes(self) -> int:
        return len(self.memories) + len(self.offsets) + len(self.consts)

    def memory_number(self, memory: DeviceMemory) -> int:
        return self.memories[memory]

    def offset(self, nbytes: int) -> Any:
        """Of a view's start, as an operation has it."""
        number = self.offsets.get(nbytes)
        return nbytes if number is None else mark(len(self.memories) + number)

    def const(self, one: Const) -> str:
        """Of a node's scalar, as an operation has it."""
        return mark(len(self.memories) + len(self.offsets) + self.consts[repr(one.value), one.dtype.name][0])


def _argument(value: Any, dtype: DType) -> str:
    if dtype.kind == "f" and type(value) is float and value - value == 0.0:
        return f'{{"{dtype.arg}":{value!r}}}'
    return json.dumps(dtypes.argument(value, dtype), separators=(",", ":"))


def bytes_of(load: Load) -> int:
    return shapes.size_of(load.shape) * load.dtype.itemsize


# ---- what comes again ----

def settings_of(engine: "Engine") -> Settings:
    """What a flush depends on beside nodes and memory: whether times are wanted, which those see alone who watch; how long it may run; how it is planned."""
    session = engine.session
    return bool(session.client._transport.observers), session.timeout_ms, config.timeout_s, config.fusion, config.builtins


class Pattern:
    """What tells a flush from all others of its engine. Holds no node and no memory, which are free to go."""

    __slots__ = ("_nodes", "_views", "_same", "_outside", "_scalars")

    def __init__(self, structure: Structure) -> None:
        nodes = structure.nodes
        first = nodes[0].epoch if nodes else 0
        self._nodes: List[Operated] = [(node.params, _what(node), node.shape, node.epoch - first, node in structure.wanted) for node in nodes]
        loads = _loads_of(structure)
        self._views = [one[1:] for one in loads]
        self._same: List[Tuple[int, int]] = []  # places of what is one and the same, among the sources of all loads and behind them the nodes
        self._outside: List[Tuple[int, Region, DType, shapes.Shape]] = []  # of what was there before, at its first place
        self._scalars = [(at, one.value) for at, one in enumerate(loads) if type(one) is Const]
        places = {id(node): len(loads) + at for at, node in enumerate(nodes)}
        for at, one in enumerate(loads):
            if type(one) is not Load:
                continue
            node = one.node
            if (place := places.setdefault(id(node), at)) != at:
                self._same.append((at, place))
            elif node.memory is not None:
                self._outside.append((at, node.memory.region, node.dtype, node.shape))

    def fits(self, nodes: Sequence[Node], reads: Sequence[Load]) -> bool:
        """Whether so many nodes and reads are the same."""
        first, at = nodes[0].epoch if nodes else 0, 0
        loads: List[Input] = []
        for node in nodes:
            params, what, shape, epoch, wanted = self._nodes[at]
            at += 1
            holder = node.holder
            storage = None if holder is None else holder()
            if (node.shape != shape or node.epoch - first != epoch or node.reuse is not None or (storage is not None and storage.node is node) is not wanted
                    or node.params is not params and (type(params) is Operation or node.params != params)
                    or type(params) is not Operation and what != _what(node)):  # which an Operation stands for
                return False
            loads += node.inputs
        loads += reads
        return [*map(VIEW, loads)] == self._views and self._sources_same([*map(SOURCE, loads), *nodes])

    def _sources_same(self, sources: Sequence[Any]) -> bool:
        for at, place in self._same:
            if sources[at] is not sources[place]:
                return False
        for at, region, dtype, shape in self._outside:
            source = sources[at]
            if (memory := source.memory) is None or memory.region is not region or source.dtype is not dtype or source.shape != shape:
                return False
        for at, value in self._scalars:
            if sources[at] is not value and repr(sources[at]) != repr(value):
                return False
        return True


def _what(node: Node) -> Tuple[str, str, DType, int]:
    return node.kind, node.op, node.dtype, len(node.inputs)


def _loads_of(structure: Structure) -> List[Input]:
    """What its nodes read, and what is read of it."""
    return [*chain(*map(INPUTS, structure.nodes), structure.reads)]


def can_recur(structure: Structure) -> bool:
    """Whether its pattern tells all of it. Not what takes the place of another value, what has views among its parameters, or what reads nothing that is somewhere."""
    return (all([node.reuse is None and not any([type(one) is Load for one in node.params.values()]) for node in structure.nodes])
            and all([structure.number(one.node) >= 0 or one.node.memory is not None for one in _loads_of(structure) if type(one) is Load]))


class Recent:
    """Those of an engine that were done last, as far as they can be done again. With the engine's lock held."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._alike: Dict[Tuple[int, int, str], List[Tuple[Any, ...]]] = {}
        self._nodes = 0  # of those that were kept since it was empty

    def again(self, nodes: Sequence[Node], reads: Sequence[Load], dead: Sequence[Region]) -> Optional["Flush"]:
        """The one that these are, which takes the nodes, if all else is as it was, too: what memory becomes of `dead`, kernels, settings. Its request is there then."""
        engine = self._engine
        for flush, bound, loads, settings, repeated, texts, pattern in self._alike.get((len(nodes), len(reads), nodes[-1].op if nodes else ""), ()):
            if dead == bound and loads == engine.loads and repeated.texts is texts and pattern.fits(nodes, reads) and settings == settings_of(engine):
                flush.nodes = nodes
                return flush  # type: ignore[no-any-return]
        return None

    def keep(self, flush: "Flush", settings: Settings, repeated: Repeated, structure: Structure) -> None:
        """`settings`: with which its request was made, `repeated`."""
        nodes, engine = structure.nodes, self._engine
        self._nodes += len(nodes) + 1
        if self._nodes > NODES_MAX:
            self._alike.clear()
            self._nodes = len(nodes) + 1
        key = len(nodes), len(structure.reads), nodes[-1].op if nodes else ""
        entry = flush, flush.bound, engine.loads, settings, repeated, repeated.texts, Pattern(structure)
        self._alike[key] = [entry, *self._alike.get(key, ())][:ALIKE_MAX]
