"""A flush as the text of its request, with holes for what differs from one flush of the same structure to the next, and what its answer means."""

from __future__ import annotations

import re
from operator import itemgetter
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from ..._session.requests import written
from ..._values.scalars import scalar_kind
from .assemble import FLAGS, Assembly, Fill, Launch
from .builtins import Call
from .language import Kernel
from .memory import Dead
from .structure import Structure, bytes_of, mark

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


class Prepared:
    """Knows nodes by their numbers in a structure, so that it holds none. Changes nothing once it is made."""

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
        text = written(self._operations(structure, assembly))[1:-1]
        order = [int(number) for number in HOLE.findall(text)]
        self._text = HOLE.sub("%s", text.replace("%", "%%"))
        self._fill = _picker(order)
        self.repeatable = set(range(len(structure.memories), self._first_place)) <= set(order)  # each scalar and each start has its hole
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

    def bind(self, dead: Iterable[Dead], generation: int) -> Tuple[List[Optional[Dead]], List[Dead]]:
        """Which memory that nobody needs any more becomes which place, and what of it is left. Memory of other generations is gone."""
        by_size: Dict[int, List[Dead]] = {}
        for one in dead:
            if one.generation == generation:
                by_size.setdefault(one.nbytes, []).append(one)
        bound: List[Optional[Dead]] = []
        for place in self.places:
            waiting = by_size.get(place.nbytes) if place.upload is None else None
            bound.append(waiting.pop() if waiting else None)
        return bound, [one for left in by_size.values() for one in left]

    def operations(self, texts: List[str], names: Sequence[str], modules: Sequence[str]) -> str:
        """Without those that make places. `texts`: of the structure; `names`: of the places, in quotes; `modules`: of the kernels, as members."""
        return self._text % self._fill((*texts, *names, *modules))


def _picker(order: Sequence[int]) -> Callable[[Sequence[str]], Tuple[str, ...]]:
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
