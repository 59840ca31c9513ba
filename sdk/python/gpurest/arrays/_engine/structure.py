"""What makes one flush the same as another: its structure is a key, and what may differ beside it fills the holes of a prepared request.

The key has everything that planning and code generation look at: operations, types, shapes, strides, epochs, which nodes are wanted, which
memory is the same. It has not which memory that is, nor the scalars, nor (in MOVABLE kinds) how far behind its start a view begins; of those
it has only which are equal, since equal ones become one argument of a kernel."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ..._values import dtypes
from ..._values.dtypes import DType
from . import shapes
from .config import config
from .expr import ELEMENTWISE, EMPTY, HOST, REDUCE, UPDATE, Const, Load, Node, Operation, Shared
from .memory import DeviceMemory

MOVABLE = frozenset({ELEMENTWISE, EMPTY, HOST, REDUCE, UPDATE})  # their kernels get a view's start as a pointer, and nothing else of it
EXACT_MAX = 1 << 53  # JSON numbers beyond are decimal texts


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
