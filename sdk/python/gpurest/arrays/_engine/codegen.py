"""Turns groups of nodes into kernels, in the words of a device's language.

A kernel's text depends on the expression, the element types and the class of contiguity; sizes, strides and scalars are arguments. So a
loop over the same expression compiles once. The text's hash is the kernel's name."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..._values import dtypes
from ..._values.dtypes import DType
from . import shapes
from .elementwise import OPS
from .expr import Const, Input, Load, Node
from .language import BLOCK, Argument, Kernel, Language, Parameter, Target

NARROW_MAX = (1 << 31) - 1
UNROLLED = 4  # elements per round of a thread's loop
UNROLLED_NODES_MAX = 16  # longer expressions have enough to do while they wait for memory
BLOCKS_ENOUGH = 4096  # from so many blocks on a thread takes several elements


class Writer:
    """A kernel in the making: its parameters with their arguments, and the extents and strides that it gets in one structure."""

    def __init__(self, language: Language, wide: bool) -> None:
        self.language = language
        self.wide = wide
        self.parameters: List[Parameter] = []
        self.dims: List[int] = []
        self.flagged = False
        self.index_type = "u64_t" if wide else "u32_t"
        self.offset_type = language.long if wide else "int"

    def pointer(self, name: str, dtype: DType, argument: Argument, only_read: bool = False, apart: bool = False) -> None:
        """Memory with elements of a type. `apart`: nothing is written where it is read."""
        self.parameters.append(Parameter(self.language.storage(dtype), name, dtype, argument, True, only_read, apart))

    def scalar(self, name: str, dtype: DType, argument: Argument, value: Optional[int] = None) -> None:
        """`value`: the plan's, a whole number."""
        self.parameters.append(Parameter(self.language.type_of(self.language.register(dtype)), name, dtype, argument, value=value))

    def count(self, name: str, value: int) -> None:
        self.parameters.append(Parameter(self.index_type, name, dtypes.uint64 if self.wide else dtypes.uint32, {"u64" if self.wide else "u32": value},
                                         value=value))

    def dim(self, value: int) -> str:
        """A number of the structure."""
        self.dims.append(value)
        return self.language.dim(len(self.dims) - 1)

    def flag(self) -> str:
        if not self.flagged:
            self.flagged = True
            self.pointer("flag", dtypes.int32, Target("flag"))
        return "flag"

    def load(self, dtype: DType, pointer: str, offset: str) -> str:
        return self.language.load(dtype, pointer, offset, self.wide)

    def store(self, dtype: DType, pointer: str, offset: str, value: str) -> str:
        return self.language.store(dtype, pointer, offset, value, self.wide)

    def each(self, variable: str, bound: str) -> str:
        """The head of a loop in which the threads of all blocks take one number each, as long as there are any."""
        index, to = self.index_type, self.language.to
        return (f"for ({index} {variable} = blockIdx.x * {to(index, 'blockDim.x')} + threadIdx.x; {variable} < {bound}; "
                f"{variable} += {to(index, 'gridDim.x')} * blockDim.x) {{")

    def offsets(self, variable: str, shape: shapes.Shape, many: Sequence[shapes.Strides]) -> Tuple[List[str], List[str]]:
        """Lines that take the linear index `variable` of `shape` apart, and each view's offset."""
        if not many:
            return [], []
        extents, columns = shapes.collapse(shape, many)
        if len(extents) == 1:
            return [], [self._term(variable, column[0]) for column in columns]
        lines = [f"{self.index_type} {variable}_0 = {variable};"]
        for axis in range(len(extents) - 1, 0, -1):
            extent = self.language.to(self.index_type, self.dim(extents[axis]))
            lines.append(f"{self.index_type} {variable}_{axis} = {variable}_0; {variable}_0 /= {extent}; {variable}_{axis} -= {variable}_0 * {extent};")
        texts = []
        for column in columns:
            terms = [self._term(f"{variable}_{axis}", stride) for axis, stride in enumerate(column)]
            texts.append(" + ".join(term for term in terms if term != "0") or "0")
        return lines, texts

    def _term(self, index: str, stride: int) -> str:
        if stride == 0:
            return "0"
        place = self.language.to(self.offset_type, index)
        return place if stride == 1 else f"{place} * {self.dim(stride)}"

    def finish(self, body: str, shared: str = "", block: int = BLOCK) -> Kernel:
        return self.language.kernel(self.parameters, self.dims, self.wide, shared, body, block)


# What reads its first input at places that it works out itself.
PICKING = ("gather", "search")


class Body:
    """The expressions of the nodes that a kernel computes, and the views it loads from."""

    def __init__(self, members: Sequence[Node], writer: Writer, apart: bool = False) -> None:
        self.apart = apart  # nothing is written where it loads from
        self.members = sorted(members, key=lambda node: node.number)
        self.names = {node: f"v{at}" for at, node in enumerate(self.members)}
        self.writer = writer
        self.language = writer.language
        self.leaves: Dict[Load, int] = {}
        self.consts: Dict[Tuple[str, str, str], str] = {}
        self.lines: List[str] = []
        self.indexed = any(OPS[node.op].indexed for node in self.members if node.op not in PICKING)

    def collect(self, extra: Sequence[Load] = ()) -> List[Load]:
        """The views that come from memory, each once."""
        for load in extra:
            self._leaf(load)
        for node in self.members:
            for one in node.inputs:
                if isinstance(one, Load) and not self._inside(one):
                    self._leaf(one)
        return list(self.leaves)

    def _inside(self, load: Load) -> bool:
        return load.node in self.names and load.identity

    def _leaf(self, load: Load) -> None:
        if load not in self.leaves:
            at = self.leaves[load] = len(self.leaves)
            self.writer.pointer(f"p{at}", load.dtype, load, True, self.apart)

    def value(self, one: Input) -> str:
        if isinstance(one, Const):
            return self._declared(one, ("given", repr(one.value), one.dtype.name), one, None)
        return self.names[one.node] if self._inside(one) else f"x{self.leaves[one]}"

    def const(self, value: int) -> str:
        """A number of the plan's. A node's own scalars may be others in the next flush, and are never taken for one of these."""
        one = Const(value, dtypes.int64)
        return self._declared(one, ("planned", repr(value), "int64"), dtypes.argument(value, dtypes.int64), value)

    def _declared(self, one: Const, key: Tuple[str, str, str], argument: Argument, value: Optional[int]) -> str:
        if key not in self.consts:
            self.consts[key] = f"c{len(self.consts)}"
            self.writer.scalar(self.consts[key], one.dtype, argument, value)
        return self.language.given(one.dtype, self.consts[key])

    def _fixed(self, dtype: DType) -> str:
        return self.language.local(self.language.type_of(dtype))

    def write(self, offsets: Sequence[str], index: str) -> List[str]:
        """All values, given each leaf's offset."""
        bases = {one for node in self.members if node.op in PICKING for one in node.inputs[:1]}
        used = {one for node in self.members for one in (node.inputs[1:] if node.op in PICKING else node.inputs)}
        for load, at in self.leaves.items():
            self.lines.append(f"{self.language.local(self.writer.offset_type)} o{at} = {offsets[at]};")
            if load not in bases or load in used:
                self.lines.append(f"{self._fixed(load.dtype)} x{at} = {self.writer.load(load.dtype, f'p{at}', f'o{at}')};")
        for node in self.members:
            if node.op == "gather":
                self._gather(node)
            elif node.op == "search":
                self._search(node)
            else:
                self._plain(node, index)
        return self.lines

    def _plain(self, node: Node, index: str) -> None:
        types: Tuple[DType, ...] = node.params["types"]
        values = {"i": index, "flag": ""}
        if self.language.reports(node.op, node.params.get("operand")):
            values["flag"] = self.writer.flag()
        for letter, one, wanted in zip("abcde", node.inputs, types):
            values[letter] = self.language.cast(self.value(one), one.dtype, wanted)
        text = self.language.emit(node.op, node.params.get("operand"), node.dtype, values, bool(node.params.get("mixed")))
        self.lines.append(f"{self._fixed(node.dtype)} {self.names[node]} = {text};")

    def _gather(self, node: Node) -> None:
        """An element picked by numbers: node.inputs are the base view and one number per indexed dimension."""
        base, name = node.inputs[0], self.names[node]
        assert isinstance(base, Load)
        at, long = self.leaves[base], self.language.long
        self.lines.append(f"{long} g{name} = {self.language.to(long, f'o{at}')};")
        for one, (extent, stride) in zip(node.inputs[1:], node.params["steps"]):
            self.lines.append(f"g{name} += {self.picked(one, extent)} * {self.const(stride)};")
        self.lines.append(f"{self._fixed(node.dtype)} {name} = {self.language.load(base.dtype, f'p{at}', f'g{name}')};")

    def picked(self, one: Input, extent: int) -> str:
        """A number from the end or the start as a place; one out of bounds is reported and becomes 0."""
        number = self.language.cast(self.value(one), one.dtype, dtypes.int64)
        return f"index_checked({number}, {self.const(extent)}, {self.writer.flag()})"

    def _search(self, node: Node) -> None:
        """By halves, the place of a value in a sorted line: node.inputs are the line's view and the value, both of one type. NaN is last."""
        (base, one), name = node.inputs, self.names[node]
        assert isinstance(base, Load)
        at, value, long, to = self.leaves[base], self.value(one), self.language.long, self.language.to
        extent, stride = (self.const(node.params[what]) for what in ("extent", "stride"))
        line = self.language.load(base.dtype, f"p{at}", f"{to(long, f'o{at}')} + y{name} * {stride}")
        sorts_before = self.language.generic("sorts_before", base.dtype)
        before = f"!{sorts_before}({value}, z{name})" if node.params["right"] else f"{sorts_before}(z{name}, {value})"
        self.lines += [f"{long} g{name} = 0;", f"for ({long} h{name} = {extent}; g{name} < h{name};) {{",
                       f"    {self.language.local(long)} y{name} = g{name} + (h{name} - g{name}) / 2;", f"    {self._fixed(base.dtype)} z{name} = {line};",
                       f"    if ({before}) g{name} = y{name} + 1; else h{name} = y{name};", "}", f"{self.language.local(long)} {name} = g{name};"]


def is_wide(size: int, loads: Sequence[Load]) -> bool:
    if size > NARROW_MAX:
        return True
    for load in loads:
        if size and max(map(abs, shapes.span_of(load.shape, load.strides))) > NARROW_MAX:
            return True
    return False


class Store(NamedTuple):
    """Where a kernel puts a node's value: a view over `target`."""

    node: Node
    target: Target
    dtype: DType
    strides: shapes.Strides


def outer_loads(members: Sequence[Node]) -> List[Load]:
    inside: Set[Node] = set(members)
    return [one for node in members for one in node.loads if one.node not in inside or not one.identity]


def elementwise(language: Language, members: Sequence[Node], stores: Sequence[Store], shape: shapes.Shape, apart: bool) -> Kernel:
    """One kernel for a group of elementwise nodes of one shape. `apart`: no store goes to memory that is loaded from; the compiler may then
    load for several elements before it stores the first one."""
    size = shapes.size_of(shape)
    loads = outer_loads(members)
    spans = [Load(store.node, store.dtype, shape, store.strides, 0) for store in stores]
    writer = Writer(language, is_wide(size, loads + spans))
    body = Body(members, writer, apart)
    leaves = body.collect()
    contiguous = shapes.contiguous_strides(shape)

    def is_linear(strides: shapes.Strides) -> bool:
        return strides == contiguous or shapes.is_contiguous(shape, strides)

    general = [strides for strides in [leaf.strides for leaf in leaves] + [store.strides for store in stores] if not is_linear(strides)]
    lines, texts = writer.offsets("i", shape, general)
    named = iter(texts)
    offsets = [language.to(writer.offset_type, "i") if is_linear(strides) else next(named)
               for strides in [leaf.strides for leaf in leaves] + [store.strides for store in stores]]
    for at, store in enumerate(stores):
        writer.pointer(f"q{at}", store.dtype, store.target, False, apart)
    lines = lines + body.write(offsets, "i")
    for at, store in enumerate(stores):
        value = language.cast(body.names[store.node], store.node.dtype, store.dtype)
        lines.append(writer.store(store.dtype, f"q{at}", offsets[len(leaves) + at], value))
    writer.count("n", size)
    unroll = language.unrolled(UNROLLED) if apart and len(members) <= UNROLLED_NODES_MAX else ""
    return writer.finish(f"    {unroll}{writer.each('i', 'n')}\n" + "".join(f"        {line}\n" for line in lines) + "    }\n")


def scatter(language: Language, value: Load, numbers: Sequence[Input], steps: Sequence[Tuple[int, int]], base: Load, target: Target,
            winners: Optional[Target], claim: bool, joined: str = "") -> Kernel:
    """Writes value[i] to the place of `target` that the numbers pick. Of several for one place the last one wins, as in NumPy: in a
    first pass (`claim`) each claims its place with its position, in a second the winners are written. With `joined`, an operation, each is
    joined with what is there, in any order; there are no winners then."""
    shape, size = value.shape, shapes.size_of(value.shape)
    writer = Writer(language, True)
    picks = [one for one in numbers if isinstance(one, Load)]
    body = Body((), writer)
    leaves = body.collect(picks if claim else [value, *picks])
    lines, texts = writer.offsets("i", shape, [leaf.strides for leaf in leaves] + [base.strides])
    lines = lines + body.write(texts, "i")
    lines.append(f"{language.long} g = {base.offset and writer.dim(base.offset)} + {texts[-1]};")
    for one, (extent, stride) in zip(numbers, steps):
        lines.append(f"g += {body.picked(one, extent)} * {body.const(stride)};")
    number = language.to(language.type_of(language.winners), "(i + 1)")
    if winners is not None:
        writer.pointer("winners", language.winners, winners)
    if not claim:
        writer.pointer("q", base.dtype, target)
    if claim:
        lines.append(language.claim("winners", "g", number))
    elif joined:
        lines += language.join(joined, base.dtype, language.cast(body.value(value), value.dtype, base.dtype))
    else:
        lines.append(f"if ({language.load(language.winners, 'winners', 'g')} == {number})")
        lines.append("    " + language.store(base.dtype, "q", "g", language.cast(body.value(value), value.dtype, base.dtype)))
    writer.count("n", size)
    return writer.finish(f"    {writer.each('i', 'n')}\n" + "".join(f"        {line}\n" for line in lines) + "    }\n")


def launch_blocks(size: int, per_block: int = BLOCK) -> int:
    """One element per thread, up to UNROLLED where there are many."""
    blocks = max(1, -(-size // per_block))
    return blocks if blocks <= BLOCKS_ENOUGH else max(BLOCKS_ENOUGH, -(-blocks // UNROLLED))
