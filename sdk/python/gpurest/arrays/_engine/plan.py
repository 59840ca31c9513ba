"""Decides what a flush computes together: pending nodes become groups, groups become an ordered list of steps.

Elementwise nodes of one shape that feed each other form a group, which is one kernel. A group that nothing but reductions (or the
writing of a part of an array) reads is computed inside of those. Epochs keep the order of changes: whoever read an array before a part
of it was written comes before the writing, whoever reads it later behind."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import shapes
from .config import config
from .expr import ELEMENTWISE, EMPTY, HOST, REDUCE, UPDATE, Const, Load, Node

GROUP_NODES_MAX = 256
INLINED_TWICE_MAX = 2  # so many reductions may compute the same expression again instead of storing it


class Step(NamedTuple):
    """One thing to do: `node` is what it is for, `members` the elementwise nodes that are computed on the way."""

    kind: str
    node: Node
    members: Tuple[Node, ...]
    stored: Tuple[Node, ...]  # of the members or the node: those whose values go to memory

    @property
    def loads(self) -> List[Load]:
        """What it reads from memory."""
        inside = set(self.members)
        own = () if self.kind == ELEMENTWISE else self.node.loads
        found = [one for one in own if one.node not in inside]
        return found + [one for node in self.members for one in node.loads if one.node not in inside or not one.identity]


class _Group:
    """Elementwise nodes that become one kernel, with what bounds their number."""

    __slots__ = ("inputs_max", "members", "inputs", "outputs")

    def __init__(self, inputs_max: int) -> None:
        self.inputs_max = inputs_max
        self.members: List[Node] = []
        self.inputs: Set[object] = set()  # views and scalars from outside
        self.outputs = 0  # members that arrays hold

    def fits(self, node: Node) -> bool:
        return (len(self.members) < GROUP_NODES_MAX
                and len(self.inputs) + len(node.inputs) + self.outputs + 1 <= self.inputs_max)

    def fits_with(self, other: "_Group", node: Node) -> bool:
        return (len(self.members) + len(other.members) < GROUP_NODES_MAX
                and len(self.inputs) + len(other.inputs) + len(node.inputs) + self.outputs + other.outputs + 1 <= self.inputs_max)

    def take(self, other: "_Group") -> None:
        self.members += other.members
        self.inputs |= other.inputs
        self.outputs += other.outputs


class Planner:
    """One flush's. It changes no node."""

    def __init__(self, nodes: Sequence[Node], wanted: Set[Node], inputs_max: int) -> None:
        self.inputs_max = inputs_max  # views and scalars that a kernel takes
        self.nodes = nodes  # in the order of their numbers
        self.pending = set(self.nodes)
        self.wanted = wanted
        self.consumers: Dict[Node, List[Tuple[Node, Load]]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for one in node.loads:
                if one.node in self.pending:
                    self.consumers[one.node].append((node, one))
        self.level: Dict[Node, int] = {}
        self.group: Dict[Node, _Group] = {}
        self.inlined: Set[_Group] = set()  # computed inside of their consumers
        self._form_groups()
        self._inline_groups()

    # ---- groups ----

    def _before(self, node: Node, load: Load) -> bool:
        """Whether `load` orders node within its epoch."""
        other = load.node
        return other in self.pending and other.epoch == node.epoch and other.kind not in (HOST, EMPTY)

    def _form_groups(self) -> None:
        for node in self.nodes:
            before = [one for one in node.loads if self._before(node, one)]
            if node.kind != ELEMENTWISE:
                self.level[node] = max((self.level[one.node] + 1 for one in before), default=0)
                continue
            self._place(node, before)

    def _place(self, node: Node, before: List[Load]) -> None:
        level, near = 0, []
        for one in before:
            fusible = config.fusion and one.node.kind == ELEMENTWISE and one.identity and one.shape == node.shape
            level = max(level, self.level[one.node] + (0 if fusible else 1))
            if fusible:
                near.append(one.node)
        groups = list({self.group[other]: None for other in near if self.level[other] == level})
        joined = self._joined(groups, node)
        if joined is None:
            joined, level, groups = _Group(self.inputs_max), level + (1 if groups else 0), []
        self.level[node] = level
        self.group[node] = joined
        joined.members.append(node)
        joined.outputs += node in self.wanted
        for value in node.inputs:
            if isinstance(value, Const):
                joined.inputs.add((value.value, value.dtype.name))
            elif not (value.identity and self.group.get(value.node) is joined):
                joined.inputs.add(value)

    def _joined(self, groups: List[_Group], node: Node) -> Optional[_Group]:
        """The groups as one that has room for the node; None when there is none."""
        if not groups:
            return None
        groups.sort(key=lambda one: -len(one.members))
        whole = groups[0]
        if not whole.fits(node):
            return None
        for other in groups[1:]:
            if not whole.fits_with(other, node):
                return None
            whole.take(other)
            for member in other.members:
                self.group[member] = whole
        return whole

    # ---- groups inside of what follows ----

    def _inline_groups(self) -> None:
        if not config.fusion:
            return
        for group in set(self.group.values()):
            if self._may_inline(group.members):
                self.inlined.add(group)

    def _may_inline(self, members: List[Node]) -> bool:
        inside = set(members)
        outer = [(node, load) for member in members for node, load in self.consumers[member] if node not in inside or not load.identity]
        if not outer or inside & self.wanted:
            return False
        if all(node.kind == REDUCE and "extents" not in node.params and load.identity and node.epoch == load.node.epoch for node, load in outer):
            return len(outer) <= INLINED_TWICE_MAX
        return len(outer) == 1 and self._may_inline_in_update(outer[0][0], outer[0][1], members)

    @staticmethod
    def _may_inline_in_update(update: Node, load: Load, members: List[Node]) -> bool:
        """Each thread of the writing kernel then reads and writes; nobody may read what another one writes."""
        if update.kind != UPDATE or "steps" in update.params or not load.identity or load.node.epoch != update.epoch - 1:
            return False
        target: Load = update.params["target"]
        if load is not update.inputs[1] and load != update.inputs[1] or load.shape != target.shape:
            return False
        reads = [one for member in members for one in member.loads if one.node is target.node]
        return all(one[1:] == target[1:] for one in reads)

    # ---- steps ----

    def stored(self, node: Node) -> bool:
        """Whether an elementwise node's value goes to memory."""
        if node in self.wanted:
            return True
        group = self.group[node]
        if group in self.inlined:
            return False
        return any(self.group.get(consumer) is not group or not load.identity for consumer, load in self.consumers[node])

    def steps(self) -> List[Step]:
        found: List[Tuple[Tuple[int, int, int], Step]] = []
        for group in set(self.group.values()) - self.inlined:
            members = sorted(group.members, key=lambda node: node.number)
            stored = tuple(node for node in members if self.stored(node))
            first = members[0]
            found.append(((first.epoch, self.level[first], first.number), Step(ELEMENTWISE, members[-1], tuple(members), stored)))
        for node in self.nodes:
            if node.kind not in (ELEMENTWISE, HOST, EMPTY):
                found.append(((node.epoch, self.level[node], node.number), Step(node.kind, node, self._inside(node), (node,))))
        found.sort(key=lambda item: item[0])
        return [step for _, step in found if step.stored]

    def _inside(self, node: Node) -> Tuple[Node, ...]:
        """The elementwise nodes that `node` computes on the way: those of the group that it needs, no more."""
        source: Optional[Node] = None
        for one in node.loads:
            if one.node.kind == ELEMENTWISE and one.node in self.pending and self.group[one.node] in self.inlined:
                source = one.node
        if source is None:
            return ()
        group = self.group[source]
        needed: Set[Node] = set()
        waiting = [source]
        while waiting:
            at = waiting.pop()
            if at in needed:
                continue
            needed.add(at)
            waiting += [one.node for one in at.loads if self.group.get(one.node) is group and one.identity]
        return tuple(sorted(needed, key=lambda one: one.number))


def may_overwrite(node: Node, step_at: int, steps: Sequence[Step], wanted: Set[Node]) -> bool:
    """Whether `node` may be stored over the value that it replaces: nobody reads that later, and here only element by element."""
    old = node.reuse
    if old is None or old.memory is None or old in wanted or old.memory.nbytes != max(node.nbytes, 1) or old.memory.is_gone(node.engine.generation):
        return False
    for at, step in enumerate(steps[step_at:], step_at):
        for one in step.loads:
            if one.node.memory is not old.memory:
                continue
            if at > step_at or one.offset or one.scattered or one.dtype.itemsize != node.dtype.itemsize or one.shape != node.shape:
                return False
            if not shapes.is_contiguous(one.shape, one.strides):
                return False
    return True
