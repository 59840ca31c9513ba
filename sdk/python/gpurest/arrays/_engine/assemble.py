"""Turns the steps of a plan into the document of one batch: memory for each value, kernels with their arguments, reads.

Memory is named: "$…" lives in the batch, an id is a buffer of the session. What a step no longer needs, a later one gets again."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Union

from ..._values import dtypes
from ..._values.dtypes import DType
from . import builtins, codegen_fold, codegen_sort, shapes
from .builtins import Call
from .codegen import Store, elementwise, is_wide, launch_blocks, scatter
from .codegen_reduce import SCAN_CHUNK, Results, Shape, accumulator, is_arg, plan_shape, reduction, scan
from .expr import ELEMENTWISE, EMPTY, FACTOR, FFT, FOLD, HOST, MATMUL, REDUCE, ROWS, SCAN, SORT, UPDATE, Const, Load, Node
from .language import BLOCK, Argument, Kernel, Language, Target
from .memory import DeviceMemory
from .plan import Planner, Step, may_overwrite
from .structure import Structure


FLAGS = "$flags"  # a word per kernel that can report an error


class Slot:
    """A piece of memory during one flush. `memory`: it belongs to a value already."""

    __slots__ = ("name", "nbytes", "kept", "memory")

    def __init__(self, name: str, nbytes: int, memory: Optional[DeviceMemory] = None) -> None:
        self.name = name
        self.nbytes = nbytes
        self.kept = False
        self.memory = memory


class Launch(NamedTuple):
    kernel: Union[Kernel, Call]
    args: List[Any]
    grid: List[int]  # of a built-in, nothing: the service knows
    block: int
    step: Step
    flag: int  # number of the word in which it reports errors; -1 = none
    note: str = ""  # why a kernel was generated where there is a built-in

    @property
    def operations(self) -> str:
        """What it does, for people: the fused operations in their order."""
        names = [node.op for node in self.step.members]
        if self.step.node not in self.step.members:
            names.append(self.step.node.op)
        return " -> ".join(names)


class Fill(NamedTuple):
    slot: Slot
    step: Step


class Assembly:
    """Everything of flushes of one structure that the service is told."""

    def __init__(self, structure: Structure, language: Language) -> None:
        self.structure = structure
        self.language = language
        self.nodes = structure.nodes
        self.planner = Planner(self.nodes, structure.wanted, language.inputs_max)
        self.steps = self.planner.steps()
        self.slots: Dict[Node, Slot] = {}
        self.made: List[Slot] = []
        self.spare: Dict[int, List[Slot]] = {}
        self.actions: List[Any] = []  # Launch and Fill, in order
        self.flags = 0
        self.uploads: Dict[str, Node] = {}  # name of the memory -> what it starts with
        self.last_use = self._last_uses()
        for node in self.nodes:
            if node.kind in (HOST, EMPTY):
                self.slots[node] = slot = self._take(node.nbytes, fresh=node.kind == HOST)
                if node.kind == HOST and node.nbytes:
                    self.uploads[slot.name] = node
        for at, step in enumerate(self.steps):
            self._do(at, step)
            self._release(at, step)

    # ---- memory ----

    def _last_uses(self) -> Dict[Node, int]:
        last: Dict[Node, int] = {}
        for at, step in enumerate(self.steps):
            for one in step.loads:
                last[one.node] = at
        return last

    def _take(self, nbytes: int, fresh: bool = False) -> Slot:
        nbytes = max(nbytes, 1)
        waiting = self.spare.get(nbytes)
        if waiting and not fresh:
            return waiting.pop()
        slot = Slot(f"$t{len(self.made)}", nbytes)
        self.made.append(slot)
        return slot

    def _give(self, slot: Slot) -> None:
        self.spare.setdefault(slot.nbytes, []).append(slot)

    def _release(self, at: int, step: Step) -> None:
        """What only this batch knew, and nobody reads behind this step."""
        for node in {one.node for one in step.loads} | set(step.stored):
            if node in self.slots and node not in self.planner.wanted and self.last_use.get(node, at) <= at and not self._passed_on(node):
                self._give(self.slots.pop(node))

    def _passed_on(self, node: Node) -> bool:
        """Its memory is an update's now."""
        slot = self.slots[node]
        return slot.memory is not None or any(slot is other for key, other in self.slots.items() if key is not node)

    def _slot_for(self, node: Node, at: int) -> Slot:
        if node in self.planner.wanted and node.reuse is not None and may_overwrite(node, at, self.steps, self.planner.wanted):
            memory = node.reuse.memory
            assert memory is not None
            slot = Slot(memory.id, memory.nbytes, memory=memory)
        else:
            slot = self._take(node.nbytes)
        self.slots[node] = slot
        return slot

    # ---- steps ----

    def _do(self, at: int, step: Step) -> None:
        if step.kind == UPDATE:
            self._update(step)
        elif all(node.size == 0 for node in step.stored):
            for node in step.stored:
                self._slot_for(node, at)
        elif step.kind == ELEMENTWISE:
            self._compute(at, step)
        elif step.kind == REDUCE:
            self._reduce(at, step)
        elif step.kind == SCAN:
            self._scan(at, step)
        elif step.kind == FOLD:
            self._fold(at, step)
        elif step.kind == SORT:
            self._sort(at, step)
        elif step.kind == MATMUL:
            left, right = step.node.loads
            self._call(builtins.matmul(left, right, Target(self._slot_for(step.node, at))), step)
        elif step.kind == FACTOR:
            slot = self._slot_for(step.node, at)
            self._call(builtins.factor(step.node, [Target(slot, place) for place in step.node.params["places"]]), step)
        elif step.kind == FFT:
            self._call(builtins.fft(step.node, Target(self._slot_for(step.node, at))), step)
        elif step.kind == ROWS:
            self._call(builtins.of_rows(step.node, Target(self._slot_for(step.node, at))), step)
        else:
            raise AssertionError(step.kind)

    def _launch(self, kernel: Kernel, grid: List[int], block: int, step: Step, note: str = "") -> None:
        flagged = any(isinstance(one, Target) and one.what == "flag" for one in kernel.args)
        args = [self._argument(one) for one in kernel.args]
        grid = [min(extent, self.language.grid_max) for extent in grid]
        self.actions.append(Launch(kernel, args, grid, block, step, self.flags if flagged else -1, note))
        self.flags += flagged

    def _call(self, call: Call, step: Step) -> None:
        self.actions.append(Launch(call, [self._argument(one) for one in call.args], [], 0, step, -1))

    def _compute(self, at: int, step: Step) -> None:
        matrices = builtins.transposition(step.node) if len(step.members) == 1 and self.language.builtins else None
        targets = [Target(self._slot_for(node, at)) for node in step.stored]
        if matrices is not None:
            self._call(builtins.transpose(step.node.loads[0], targets[0], matrices), step)
            return
        stores = [Store(node, target, node.dtype, shapes.contiguous_strides(node.shape)) for node, target in zip(step.stored, targets)]
        self._elementwise(step, step.members, stores, step.node.shape)

    def _elementwise(self, step: Step, members: Sequence[Node], stores: Sequence[Store], shape: shapes.Shape) -> None:
        inside = set(members)
        read = {self.name_of(one.node) for node in members for one in node.loads if one.node not in inside or not one.identity}
        apart = not any(store.target.what.name in read for store in stores)
        self._launch(elementwise(self.language, members, stores, shape, apart), [launch_blocks(shapes.size_of(shape))], BLOCK, step)

    def _update(self, step: Step) -> None:
        node = step.node
        target: Load = node.params["target"]
        value = node.loads[1]
        old = node.loads[0].node
        self.slots[node] = slot = self.slots[old] if old in self.slots else self._existing(old)
        if "steps" in node.params:
            self._scatter(step, slot)
        elif shapes.size_of(target.shape):
            where = Target(slot, target.offset * target.dtype.itemsize)
            members = step.members or (_copied(value),)
            source = value.node if step.members else members[0]
            self._elementwise(step, members, [Store(source, where, target.dtype, target.strides)], target.shape)

    def _scatter(self, step: Step, slot: Slot) -> None:
        node = step.node
        target: Load = node.params["target"]
        value, numbers = node.inputs[1], node.inputs[2:]
        assert isinstance(value, Load)
        if not shapes.size_of(value.shape):
            return
        if "joined" in node.params:
            kernel = scatter(self.language, value, numbers, node.params["steps"], target, Target(slot), None, False, node.params["joined"])
            self._launch(kernel, [launch_blocks(shapes.size_of(value.shape))], BLOCK, step)
            return
        winners = self._take(8 * max(1, slot.nbytes // target.dtype.itemsize))
        self.actions.append(Fill(winners, step))
        for claim in (True, False):
            kernel = scatter(self.language, value, numbers, node.params["steps"], target, Target(slot), Target(winners), claim)
            self._launch(kernel, [launch_blocks(shapes.size_of(value.shape))], BLOCK, step)
        self._give(winners)

    @staticmethod
    def _existing(node: Node) -> Slot:
        memory = node.memory
        assert memory is not None
        return Slot(memory.id, memory.nbytes, memory=memory)

    # ---- reductions ----

    def _reduce(self, at: int, step: Step) -> None:
        node, source = step.node, step.node.loads[0]
        found = node.params.get("extents") or (builtins.FUSED if step.members else builtins.SLOWER if not self.language.builtins else
                                               builtins.reducible(node.op, source, node.params["reduced"], node.dtype))
        slot = self._slot_for(node, at)
        if isinstance(found, builtins.Extents):
            self._call(builtins.reduce(node, found, Target(slot)), step)
        else:
            self._reduce_generated(step, source, slot, found)

    def _reduce_generated(self, step: Step, source: Load, slot: Slot, note: str) -> None:
        node = step.node
        kept, reduced = node.params["kept"], node.params["reduced"]
        outputs = shapes.size_of(tuple(source.shape[axis] for axis in kept))
        elements = shapes.size_of(tuple(source.shape[axis] for axis in reduced))
        acc = accumulator(node.op, source.dtype, node.dtype)
        cut = plan_shape(outputs, elements, _apart(source, kept, reduced))
        results = _last_results(node, slot, elements)
        joined = cut.by_block and self.language.has_own
        if cut.chunks == 1 or joined:
            kernel = reduction(self.language, node.op, step.members, source, kept, reduced, acc, cut, results, joined=joined and cut.chunks > 1)
            self._launch(kernel, [cut.grid], cut.block, step, note)
        else:
            self._reduce_twice(step, source, acc, cut, results, note)

    def _reduce_twice(self, step: Step, source: Load, acc: DType, cut: Shape, results: Results, note: str) -> None:
        node, pieces = step.node, cut.outputs * cut.chunks
        kept, reduced = node.params["kept"], node.params["reduced"]
        values = self._take(pieces * acc.itemsize)
        places = self._take(pieces * 8) if is_arg(node.op) else None
        part = Results(Target(values), Target(places) if places else None, acc)
        self._launch(reduction(self.language, node.op, step.members, source, kept, reduced, acc, cut, part), [cut.grid], cut.block, step, note)
        shape = (cut.outputs, cut.chunks)
        pieces_of = _SlotNode(acc, shape, values).load()
        places_of = _SlotNode(dtypes.int64, shape, places).load() if places else None
        again = plan_shape(cut.outputs, cut.chunks, False)
        again = again._replace(chunk=cut.chunks, chunks=1)
        last = reduction(self.language, node.op, (), pieces_of, (0,), (1,), acc, again, results, places_of)
        self._launch(last, [again.grid], again.block, step)
        for one in (values, places):
            if one is not None:
                self._give(one)

    def _scan(self, at: int, step: Step) -> None:
        node, source = step.node, step.node.loads[0]
        note = builtins.SLOWER if not self.language.builtins else builtins.scannable(node.op, source, node.params["axis"], node.dtype)
        slot = self._slot_for(node, at)
        if note:
            self._scan_generated(step, source, slot, note)
        else:
            self._call(builtins.scan(node, Target(slot)), step)

    def _scan_generated(self, step: Step, source: Load, slot: Slot, note: str) -> None:
        node = step.node
        axis, acc = node.params["axis"], accumulator(node.op, source.dtype, node.dtype)
        elements = source.shape[axis]
        rows = shapes.size_of(source.shape) // elements
        chunks = -(-elements // SCAN_CHUNK)
        if chunks == 1 or rows >= 256:
            kernel = scan(self.language, node.op, source, axis, acc, Target(slot), node.dtype, None, elements)
            self._launch(kernel, [launch_blocks(rows, 1)], BLOCK, step, note)
            return
        kept = tuple(one for one in range(len(source.shape)) if one != axis)
        cut = Shape(rows, elements, SCAN_CHUNK, chunks, True)
        totals, before = self._take(rows * chunks * acc.itemsize), self._take(rows * chunks * acc.itemsize)
        part = Results(Target(totals), None, acc)
        self._launch(reduction(self.language, node.op, (), source, kept, (axis,), acc, cut, part), [cut.grid], cut.block, step, note)
        line = _SlotNode(acc, (rows, chunks), totals).load()
        self._launch(scan(self.language, node.op, line, 1, acc, Target(before), acc, None, chunks), [launch_blocks(rows, 1)], BLOCK, step)
        kernel = scan(self.language, node.op, source, axis, acc, Target(slot), node.dtype, Target(before), SCAN_CHUNK)
        self._launch(kernel, [launch_blocks(rows * chunks, 1)], BLOCK, step)
        self._give(totals)
        self._give(before)

    def _fold(self, at: int, step: Step) -> None:
        node, source = step.node, step.node.loads[0]
        axis = node.params["axis"]
        kernel = codegen_fold.fold(self.language, node.op, source, axis, Target(self._slot_for(node, at)), node.params["running"])
        self._launch(kernel, [launch_blocks(shapes.size_of(source.shape) // source.shape[axis])], BLOCK, step)

    def _sort(self, at: int, step: Step) -> None:
        node, keys = step.node, step.node.loads[0]
        note = builtins.SLOWER if not self.language.builtins else builtins.sortable(keys.dtype, node.shape)
        slot = self._slot_for(node, at)
        if note:
            self._sort_generated(step, keys, slot, note)
        elif node.params["places"]:
            self._sort_places(step, keys, slot)
        else:
            self._call(builtins.sort(keys, Target(slot)), step)

    def _sort_places(self, step: Step, keys: Load, slot: Slot) -> None:
        before, after, beside = self._take(step.node.size * 4), self._take(step.node.size * 4), self._take(step.node.size * keys.dtype.itemsize)
        for call in builtins.places(keys, Target(before), Target(beside), Target(after), Target(slot)):
            self._call(call, step)
        for spare in (before, after, beside):
            self._give(spare)

    def _sort_generated(self, step: Step, keys: Load, slot: Slot, note: str) -> None:
        """Back and forth between the result's memory and a piece beside it, so that the last pass writes the result."""
        node, places = step.node, bool(step.node.params["places"])
        elements = node.shape[-1]
        rows, wide = node.size // elements, is_wide(node.size, ())
        lengths = codegen_sort.passes(elements)
        ends = [slot] + ([self._take(node.nbytes)] if lengths else [])
        to = len(lengths) % 2
        pieces = rows * -(-elements // codegen_sort.RUN)
        self._launch(codegen_sort.runs(self.language, keys, rows, elements, Target(ends[to]), places, wide), [launch_blocks(pieces)], BLOCK, step, note)
        for length in lengths:
            source, to = _SlotNode(node.dtype, node.shape, ends[to]).load(), 1 - to
            kernel = codegen_sort.merge(self.language, keys, rows, elements, source, Target(ends[to]), length, places, wide)
            self._launch(kernel, [launch_blocks(node.size)], BLOCK, step)
        for spare in ends[1:]:
            self._give(spare)

    # ---- arguments ----

    def _argument(self, one: Argument) -> Any:
        """As the contract has it, with holes for offsets and scalars that are not the structure's."""
        if isinstance(one, Load):
            return self._pointer(self.name_of(one.node), one.offset * one.dtype.itemsize)
        if isinstance(one, Target):
            return _pointer(FLAGS, 4 * self.flags) if one.what == "flag" else self._pointer(one.what.name, one.offset)
        return self.structure.const(one) if isinstance(one, Const) else one

    def _pointer(self, name: str, offset: int) -> Dict[str, Any]:
        return _pointer(name, self.structure.offset(offset) if offset else 0)

    def name_of(self, node: Node) -> str:
        if isinstance(node, _SlotNode):
            return node.slot.name
        return self.slots[node].name if node in self.slots else self._existing(node).name


def _pointer(name: str, offset: Any) -> Dict[str, Any]:
    return {"buf": name, "offset": offset} if offset else {"buf": name}


class _SlotNode(Node):
    """Stands for memory that holds partial results."""

    __slots__ = ("slot",)

    def __init__(self, dtype: DType, shape: shapes.Shape, slot: Slot) -> None:
        self.slot = slot
        self.dtype = dtype
        self.shape = shape
        self.memory = None


def _copied(value: Load) -> Node:
    """An expression that is nothing but a view."""
    return Node(value.node.engine, ELEMENTWISE, value.dtype, value.shape, "identity", (value,), {"types": (value.dtype,)})


def _last_results(node: Node, slot: Slot, elements: int) -> Results:
    """`elements`: of each result."""
    if is_arg(node.op):
        return Results(None, Target(slot), node.dtype)
    return Results(Target(slot), None, node.dtype, elements if node.op == "mean" else None)


def _apart(source: Load, kept: Sequence[int], reduced: Sequence[int]) -> bool:
    """Whether elements side by side in memory belong to different outputs."""
    def nearest(axes: Sequence[int]) -> int:
        return min((abs(source.strides[axis]) for axis in axes if source.shape[axis] > 1 and source.strides[axis]), default=1 << 62)

    return nearest(kept) < nearest(reduced)
