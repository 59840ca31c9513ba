"""Turns groups of nodes into CUDA C++.

A kernel's text depends on the expression, the element types and the class of contiguity; sizes, strides and scalars are arguments. So a
loop over the same expression compiles once. The text's hash is the kernel's name."""

from __future__ import annotations

import base64
import hashlib
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ..._values import dtypes
from ..._values.dtypes import DType
from . import prelude_random, prelude_special, shapes
from .elementwise import OPS, cast, emit
from .expr import Const, Input, Load, Node
from .prelude import PRELUDE
from .prelude_complex import COMPLEX, COMPLEX_ORDER

OPTIONS = ["--fmad=false"]  # a * b + c rounds twice, as it does in NumPy; matrix products ask for fused operations by name
BLOCK = 256
NARROW_MAX = (1 << 31) - 1
UNROLLED = 4  # elements per round of a thread's loop
UNROLLED_NODES_MAX = 16  # longer expressions have enough to do while they wait for memory
BLOCKS_ENOUGH = 4096  # from so many blocks on a thread takes several elements


class Target(NamedTuple):
    """Memory that a kernel is given besides what it loads: `what` is the planner's, bytes from its start."""

    what: Any
    offset: int = 0


Argument = Union[Load, Target, Const, Dict[str, Any]]  # a Const is a node's; what the plan chose is there as the service reads it


class Kernel(NamedTuple):
    name: str
    source: str
    args: List[Argument]


def module_source(kernels: Sequence[Kernel]) -> str:
    own = "\n".join(kernel.source for kernel in kernels)
    more = (COMPLEX + COMPLEX_ORDER if "complex<" in own else "") + (prelude_random.SOURCE if "random_" in own else "")
    more += prelude_special.SOURCE if "special_" in own else ""
    return PRELUDE + more + "\n" + own


def load_text(dtype: DType, pointer: str, offset: str) -> str:
    element = f"{pointer}[{offset}]"
    if dtype.name == "float16":
        return f"half_load({element})"
    return f"({element} != 0)" if dtype.kind == "b" else element


def store_text(dtype: DType, pointer: str, offset: str, value: str) -> str:
    if dtype.name == "float16":
        value = f"half_store({value})"
    elif dtype.kind == "b":
        value = f"(unsigned char)({value})"
    return f"{pointer}[{offset}] = {value};"


class Writer:
    """A kernel in the making: its parameters with their arguments, and the extents and strides that it gets in one structure."""

    def __init__(self, wide: bool) -> None:
        self.wide = wide
        self.parameters: List[str] = []
        self.args: List[Argument] = []
        self.dims: List[int] = []
        self.flagged = False

    @property
    def index_type(self) -> str:
        return "u64_t" if self.wide else "u32_t"

    @property
    def offset_type(self) -> str:
        return "long long" if self.wide else "int"

    def parameter(self, declaration: str, argument: Argument) -> None:
        self.parameters.append(declaration)
        self.args.append(argument)

    def count(self, name: str, value: int) -> None:
        self.parameter(f"{self.index_type} {name}", {"u64" if self.wide else "u32": value})

    def dim(self, value: int) -> str:
        """A number of the structure."""
        self.dims.append(value)
        return f"d.v[{len(self.dims) - 1}]"

    def flag(self) -> str:
        if not self.flagged:
            self.flagged = True
            self.parameter("int *flag", Target("flag"))
        return "flag"

    def offsets(self, variable: str, shape: shapes.Shape, many: Sequence[shapes.Strides]) -> Tuple[List[str], List[str]]:
        """Lines that take the linear index `variable` of `shape` apart, and each view's offset."""
        if not many:
            return [], []
        extents, columns = shapes.collapse(shape, many)
        if len(extents) == 1:
            return [], [self._term(variable, column[0]) for column in columns]
        lines = [f"{self.index_type} {variable}_0 = {variable};"]
        for axis in range(len(extents) - 1, 0, -1):
            extent = f"({self.index_type}){self.dim(extents[axis])}"
            lines.append(f"{self.index_type} {variable}_{axis} = {variable}_0 % {extent}; {variable}_0 /= {extent};")
        texts = []
        for column in columns:
            terms = [self._term(f"{variable}_{axis}", stride) for axis, stride in enumerate(column)]
            texts.append(" + ".join(term for term in terms if term != "0") or "0")
        return lines, texts

    def _term(self, index: str, stride: int) -> str:
        if stride == 0:
            return "0"
        return f"({self.offset_type}){index}" if stride == 1 else f"({self.offset_type}){index} * {self.dim(stride)}"

    def finish(self, body: str) -> Kernel:
        structure = ""
        if self.dims:
            packed = struct.pack(f"<{len(self.dims)}{'q' if self.wide else 'i'}", *self.dims)
            self.parameter("const NAME_dims d", {"bytes": base64.b64encode(packed).decode()})
            structure = f"struct NAME_dims {{ {self.offset_type} v[{len(self.dims)}]; }};\n"
        text = f"{structure}extern \"C\" __global__ void NAME({', '.join(self.parameters)})\n{{\n{body}}}\n"
        name = "k_" + hashlib.sha256(text.encode()).hexdigest()[:20]
        return Kernel(name, text.replace("NAME", name), self.args)


# What reads its first input at places that it works out itself.
PICKING = ("gather", "search")


class Body:
    """The expressions of the nodes that a kernel computes, and the views it loads from."""

    def __init__(self, members: Sequence[Node], writer: Writer, apart: bool = False) -> None:
        self.pointer = "__restrict__ " if apart else ""  # nothing is written where it loads from
        self.members = sorted(members, key=lambda node: node.number)
        self.names = {node: f"v{at}" for at, node in enumerate(self.members)}
        self.writer = writer
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
            self.writer.parameter(f"const {load.dtype.storage} *{self.pointer}p{at}", load)

    def value(self, one: Input) -> str:
        if isinstance(one, Const):
            return self._declared(one, ("given", repr(one.value), one.dtype.name), one)
        return self.names[one.node] if self._inside(one) else f"x{self.leaves[one]}"

    def const(self, one: Const) -> str:
        """A number of the plan's. A node's own scalars may be others in the next flush, and are never taken for one of these."""
        return self._declared(one, ("planned", repr(one.value), one.dtype.name), dtypes.argument(one.value, one.dtype))

    def _declared(self, one: Const, key: Tuple[str, str, str], argument: Argument) -> str:
        if key not in self.consts:
            self.consts[key] = f"c{len(self.consts)}"
            self.writer.parameter(f"{one.dtype.ctype} {self.consts[key]}", argument)
        return self.consts[key]

    def write(self, offsets: Sequence[str], index: str) -> List[str]:
        """All values, given each leaf's offset."""
        bases = {one for node in self.members if node.op in PICKING for one in node.inputs[:1]}
        used = {one for node in self.members for one in (node.inputs[1:] if node.op in PICKING else node.inputs)}
        for load, at in self.leaves.items():
            self.lines.append(f"const {self.writer.offset_type} o{at} = {offsets[at]};")
            if load not in bases or load in used:
                self.lines.append(f"const {load.dtype.ctype} x{at} = {load_text(load.dtype, f'p{at}', f'o{at}')};")
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
        if OPS[node.op].reports(node.params.get("operand")):
            values["flag"] = self.writer.flag()
        for letter, one, wanted in zip("abcde", node.inputs, types):
            values[letter] = cast(self.value(one), one.dtype, wanted)
        text = emit(node.op, node.params.get("operand"), node.dtype, values, bool(node.params.get("mixed")))
        self.lines.append(f"const {node.dtype.ctype} {self.names[node]} = {text};")

    def _gather(self, node: Node) -> None:
        """An element picked by numbers: node.inputs are the base view and one number per indexed dimension."""
        base, name = node.inputs[0], self.names[node]
        assert isinstance(base, Load)
        at = self.leaves[base]
        self.lines.append(f"long long g{name} = o{at};")
        for one, (extent, stride) in zip(node.inputs[1:], node.params["steps"]):
            place = picked(self.value(one), self.const(Const(extent, dtypes.int64)), self.writer.flag())
            self.lines.append(f"g{name} += {place} * {self.const(Const(stride, dtypes.int64))};")
        self.lines.append(f"const {node.dtype.ctype} {name} = {load_text(base.dtype, f'p{at}', f'g{name}')};")

    def _search(self, node: Node) -> None:
        """By halves, the place of a value in a sorted line: node.inputs are the line's view and the value, both of one type. NaN is last."""
        (base, one), name = node.inputs, self.names[node]
        assert isinstance(base, Load)
        at, value = self.leaves[base], self.value(one)
        extent, stride = (self.const(Const(node.params[what], dtypes.int64)) for what in ("extent", "stride"))
        line = load_text(base.dtype, f"p{at}", f"o{at} + y{name} * {stride}")
        before = f"!sorts_before<{base.dtype.ctype}>({value}, z{name})" if node.params["right"] else f"sorts_before<{base.dtype.ctype}>(z{name}, {value})"
        self.lines += [f"long long g{name} = 0;", f"for (long long h{name} = {extent}; g{name} < h{name};) {{",
                       f"    const long long y{name} = g{name} + (h{name} - g{name}) / 2;", f"    const {base.dtype.ctype} z{name} = {line};",
                       f"    if ({before}) g{name} = y{name} + 1; else h{name} = y{name};", "}", f"const long long {name} = g{name};"]


def picked(value: str, extent: str, flag: str) -> str:
    """A number from the end or the start as a place; one out of bounds is reported and becomes 0."""
    return f"index_checked((long long){value}, {extent}, {flag})"


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


def elementwise(members: Sequence[Node], stores: Sequence[Store], shape: shapes.Shape, apart: bool) -> Kernel:
    """One kernel for a group of elementwise nodes of one shape. `apart`: no store goes to memory that is loaded from; the compiler may then
    load for several elements before it stores the first one."""
    size = shapes.size_of(shape)
    loads = outer_loads(members)
    spans = [Load(store.node, store.dtype, shape, store.strides, 0) for store in stores]
    writer = Writer(is_wide(size, loads + spans))
    body = Body(members, writer, apart)
    leaves = body.collect()
    contiguous = shapes.contiguous_strides(shape)

    def is_linear(strides: shapes.Strides) -> bool:
        return strides == contiguous or shapes.is_contiguous(shape, strides)

    general = [strides for strides in [leaf.strides for leaf in leaves] + [store.strides for store in stores] if not is_linear(strides)]
    lines, texts = writer.offsets("i", shape, general)
    named = iter(texts)
    offsets = [f"({writer.offset_type})i" if is_linear(strides) else next(named)
               for strides in [leaf.strides for leaf in leaves] + [store.strides for store in stores]]
    for at, store in enumerate(stores):
        writer.parameter(f"{store.dtype.storage} *{body.pointer}q{at}", store.target)
    lines = lines + body.write(offsets, "i")
    for at, store in enumerate(stores):
        value = cast(body.names[store.node], store.node.dtype, store.dtype)
        lines.append(store_text(store.dtype, f"q{at}", offsets[len(leaves) + at], value))
    writer.count("n", size)
    index = writer.index_type
    unroll = f"    _Pragma(\"unroll {UNROLLED}\")\n" if apart and len(members) <= UNROLLED_NODES_MAX else ""
    head = unroll + f"    for ({index} i = blockIdx.x * ({index})blockDim.x + threadIdx.x; i < n; i += ({index})gridDim.x * blockDim.x) {{\n"
    return writer.finish(head + "".join(f"        {line}\n" for line in lines) + "    }\n")


def scatter(value: Load, numbers: Sequence[Input], steps: Sequence[Tuple[int, int]], base: Load, target: Target, winners: Optional[Target],
            claim: bool, joined: str = "") -> Kernel:
    """Writes value[i] to the place of `target` that the numbers pick. Of several for one place the last one wins, as in NumPy: in a
    first pass (`claim`) each claims its place with its position, in a second the winners are written. With `joined`, an operation, each is
    joined with what is there, in any order; there are no winners then."""
    shape, size = value.shape, shapes.size_of(value.shape)
    writer = Writer(True)
    picks = [one for one in numbers if isinstance(one, Load)]
    body = Body((), writer)
    leaves = body.collect(picks if claim else [value, *picks])
    lines, texts = writer.offsets("i", shape, [leaf.strides for leaf in leaves] + [base.strides])
    lines = lines + body.write(texts, "i")
    lines.append(f"long long g = {base.offset and writer.dim(base.offset)} + {texts[-1]};")
    for one, (extent, stride) in zip(numbers, steps):
        place = picked(body.value(one), body.const(Const(extent, dtypes.int64)), writer.flag())
        lines.append(f"g += {place} * {body.const(Const(stride, dtypes.int64))};")
    if winners is not None:
        writer.parameter("u64_t *winners", winners)
    if not claim:
        writer.parameter(f"{base.dtype.storage} *q", target)
    if claim:
        lines.append("atomicMax(&winners[g], i + 1);")
    elif joined:
        lines += join_lines(joined, base.dtype, cast(body.value(value), value.dtype, base.dtype))
    else:
        lines.append("if (winners[g] == i + 1)")
        lines.append("    " + store_text(base.dtype, "q", "g", cast(body.value(value), value.dtype, base.dtype)))
    writer.count("n", size)
    head = "    for (u64_t i = blockIdx.x * (u64_t)blockDim.x + threadIdx.x; i < n; i += (u64_t)gridDim.x * blockDim.x) {\n"
    return writer.finish(head + "".join(f"        {line}\n" for line in lines) + "    }\n")


def join_lines(op: str, dtype: DType, value: str) -> List[str]:
    """q[g] = op(q[g], value), whatever other threads do there meanwhile. `dtype` has 4 or 8 bytes."""
    word = "u64_t" if dtype.itemsize == 8 else "u32_t"
    if op == "add" and dtype.kind == "c":
        return [f"const {dtype.ctype} by = {value}; atomicAdd(&q[g].re, by.re); atomicAdd(&q[g].im, by.im);"]
    if op == "add":
        return [f"atomicAdd(&q[g], {value});" if dtype.kind == "f" else f"atomicAdd(({word} *)&q[g], ({word}){value});"]
    joined = emit(op, dtype, dtype, {"a": "was", "b": "by", "c": "", "i": "", "flag": ""})
    return [f"{word} *place = ({word} *)&q[g], seen = *place, old; const {dtype.ctype} by = {value};",
            f"do {{ old = seen; const {dtype.ctype} was = *({dtype.ctype} *)&old, now = {joined}; seen = atomicCAS(place, old, *({word} *)&now); }}",
            "while (seen != old);"]


def launch_blocks(size: int, per_block: int = BLOCK) -> int:
    """One element per thread, up to UNROLLED where there are many."""
    blocks = max(1, -(-size // per_block))
    return blocks if blocks <= BLOCKS_ENOUGH else max(BLOCKS_ENOUGH, -(-blocks // UNROLLED))
