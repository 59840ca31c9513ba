"""Kernels of reductions and running sums. A reduction computes the elementwise expression in front of it on the way."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence, Tuple

from ..._values import dtypes
from ..._values.dtypes import DType
from . import shapes
from .codegen import Body, Writer, is_wide
from .expr import Load, Node
from .language import BLOCK, Kernel, Language, Target

CHUNK_OF_BLOCK = 4096  # elements that a block of threads adds up, at least
CHUNK_OF_THREAD = 64  # ... a single thread
BLOCKS_WANTED = 2048  # enough for every multiprocessor to have several
PIECES_MAX = 2 * BLOCKS_WANTED  # of blocks: of fewer outputs than BLOCKS_WANTED, each with less than a piece more than its share of those
SHORT_ROW = 32  # a row of so few elements is a thread's work
MANY_OUTPUTS = 512  # with neighbouring elements in different outputs, a thread per output reads neighbours together
SCAN_CHUNK = 4096


def is_arg(op: str) -> bool:
    return op in ("argmax", "argmin")


def accumulator(op: str, source: DType, result: DType) -> DType:
    """The type in which partial results are kept. Halves are added up as floats."""
    if op in ("any", "all"):
        return dtypes.bool_
    if op in ("sum", "prod", "mean"):
        return dtypes.float32 if result.name == "float16" else result
    return source


class Shape(NamedTuple):
    """How a reduction is cut up: `outputs` rows of `elements`, each in `chunks` pieces, a piece per block or per thread."""

    outputs: int
    elements: int
    chunk: int
    chunks: int
    by_block: bool

    @property
    def grid(self) -> int:
        pieces = self.outputs * self.chunks
        return max(1, min(pieces if self.by_block else -(-pieces // BLOCK), 65536 * 16))

    @property
    def block(self) -> int:
        block = 32
        while block < BLOCK and block < self.chunk:
            block *= 2
        return block if self.by_block else BLOCK


def plan_shape(outputs: int, elements: int, neighbours_apart: bool) -> Shape:
    """`neighbours_apart`: elements side by side in memory go to different outputs."""
    by_block = not (elements <= SHORT_ROW or (neighbours_apart and outputs >= MANY_OUTPUTS))
    workers = BLOCKS_WANTED if by_block else BLOCKS_WANTED * BLOCK
    least = CHUNK_OF_BLOCK if by_block else CHUNK_OF_THREAD
    chunk = max(least, -(-elements * outputs // workers))
    chunks = max(1, -(-elements // chunk))
    return Shape(outputs, elements, chunk if chunks > 1 else max(elements, 1), chunks, by_block)


class _Accumulation:
    """The text of one accumulator: a value, for argmax and argmin with its place."""

    def __init__(self, language: Language, op: str, dtype: DType) -> None:
        self.language, self.op, self.dtype, self.arg = language, op, dtype, is_arg(op)

    def declare(self) -> List[str]:
        language = self.language
        lines = [f"{language.variable(language.type_of(self.dtype))} acc = {language.first(self.op, self.dtype)};"]
        return lines + [f"{language.long} place = {language.far};"] if self.arg else lines

    def take(self, value: str, place: str) -> str:
        if not self.arg:
            return f"acc = {self.language.combine(self.op, self.dtype, 'acc', value)};"
        greatest, before = "true" if self.op == "argmax" else "false", self.language.generic("arg_before", self.dtype)
        return f"if ({before}({greatest}, {value}, {place}, acc, place)) {{ acc = {value}; place = {place}; }}"

    def tree(self) -> List[str]:
        """All threads of a block into the first; every thread of the block comes here."""
        share = ["shared_acc[threadIdx.x] = acc;"] + (["shared_place[threadIdx.x] = place;"] if self.arg else [])
        take = self.take("shared_acc[threadIdx.x + step]", "shared_place[threadIdx.x + step]")
        again = " shared_acc[threadIdx.x] = acc;" + (" shared_place[threadIdx.x] = place;" if self.arg else "")
        return share + ["__syncthreads();",
                        f"for (u32_t step = blockDim.x / 2; step > 0; step /= 2) {{ if (threadIdx.x < step) {{ {take}{again} }} __syncthreads(); }}"]

    def shared(self) -> str:
        text = self.language.shared(self.language.type_of(self.dtype), "shared_acc")
        return text + (self.language.shared(self.language.long, "shared_place") if self.arg else "")

    def own(self) -> str:
        """What the blocks of a launch leave for the last one of each output, and how many have come. The count is 0 again behind a launch that ends; one that does not end takes
        its worker with it, and this memory."""
        language = self.language
        text = language.own(language.type_of(self.dtype), "piece_acc", PIECES_MAX) + (language.own(language.long, "piece_place", PIECES_MAX) if self.arg else "")
        return text + language.own("u32_t", "arrived", BLOCKS_WANTED) + "    __shared__ bool is_last;\n"

    def join(self, finish: Sequence[str]) -> List[str]:
        """All pieces of an output into the first thread of the block that came last, in their order, whichever block that is."""
        leave = ["piece_acc[piece] = acc;"] + (["piece_place[piece] = place;"] if self.arg else [])
        take = self.take("piece_acc[o * chunks + at]", "piece_place[o * chunks + at]")
        return ["if (threadIdx.x == 0) {", *_deeper([*leave, "__threadfence();", "is_last = atomicInc(&arrived[o], (u32_t)chunks - 1) == (u32_t)chunks - 1;"]),
                "}", "__syncthreads();", "if (is_last) {",
                *_deeper(["__threadfence();", *self.declare(), f"for (u32_t at = threadIdx.x; at < chunks; at += blockDim.x) {{ {take} }}", *self.tree(),
                          "if (threadIdx.x == 0) {", *_deeper(finish), "}"]), "}"]


class Results(NamedTuple):
    """Where the pieces go: values of element type `dtype`, their places, or both. `divisor`: of the values, before they are stored."""

    value: Optional[Target]
    place: Optional[Target]
    dtype: DType
    divisor: Optional[int] = None


def reduction(language: Language, op: str, members: Sequence[Node], source: Load, kept: Sequence[int], reduced: Sequence[int], acc: DType, cut: Shape,
              results: Results, places: Optional[Load] = None, joined: bool = False) -> Kernel:
    """`source` is a member's value or a view; `places`, of the same shape, are the places that earlier pieces found. `joined`: of pieces of blocks, those of an output become one
    result."""
    plain = not any(one.node is source.node for one in map(Node.load, members))
    loads = [one for node in members for one in node.loads if one.node not in set(members) or not one.identity]
    loads = loads + ([source] if plain else []) + ([places] if places else [])
    writer = Writer(language, is_wide(max(cut.outputs * cut.elements, cut.chunks * cut.chunk), loads))
    body = Body(members, writer)
    leaves = body.collect(([source] if plain else []) + ([places] if places else []))
    full = source.shape
    views = [leaf.strides for leaf in leaves] + ([shapes.contiguous_strides(full)] if body.indexed else [])

    def part(axes: Sequence[int], variable: str) -> Tuple[List[str], List[str]]:
        return writer.offsets(variable, tuple(full[axis] for axis in axes), [tuple(view[axis] for axis in axes) for view in views])

    kept_lines, kept_offsets = part(kept, "o")
    inner_lines, inner_offsets = part(reduced, "r")
    bases = [f"{language.local(writer.offset_type)} b{at} = {text};" for at, text in enumerate(kept_offsets)]
    offsets = [f"b{at} + {text}" for at, text in enumerate(inner_offsets)]
    index = language.to("u64_t", f"({offsets[-1]})") if body.indexed else "r"
    accumulation = _Accumulation(language, op, acc)
    inner = inner_lines + body.write(offsets, index)
    value = language.cast(body.value(source), source.dtype, acc)
    place = body.value(places) if places else language.to(language.long, "r")
    inner.append(accumulation.take(value, place))
    _outputs(writer, accumulation, results)
    for name, number in (("outputs", cut.outputs), ("elements", cut.elements), ("chunk", cut.chunk), ("chunks", cut.chunks)):
        writer.count(name, number)
    outer, finish = kept_lines + bases, _finish_lines(writer, accumulation, results, "o" if joined else "piece")
    if not cut.by_block:
        return writer.finish(_by_thread(writer, accumulation, outer, inner, finish), "", cut.block)
    last = accumulation.join(finish) if joined else ["if (threadIdx.x == 0) {", *_deeper(finish), "}"]
    return writer.finish(_by_block(writer, accumulation, outer, inner, last), accumulation.shared() + (accumulation.own() if joined else ""), cut.block)


def _outputs(writer: Writer, accumulation: _Accumulation, results: Results) -> None:
    if results.value is not None:
        writer.pointer("q", results.dtype, results.value)
    if results.place is not None:
        writer.pointer("places", dtypes.int64, results.place)
    if results.divisor is not None:
        writer.scalar("divisor", accumulation.dtype, dtypes.argument(results.divisor, accumulation.dtype))


def _finish_lines(writer: Writer, accumulation: _Accumulation, results: Results, at: str) -> List[str]:
    lines = []
    if results.value is not None:
        value = "acc" if results.divisor is None else "(acc / divisor)"
        lines.append(writer.store(results.dtype, "q", at, writer.language.cast(value, accumulation.dtype, results.dtype)))
    if results.place is not None:
        lines.append(writer.store(dtypes.int64, "places", at, "place"))
    return lines


def _piece_lines(index: str) -> List[str]:
    return [f"const {index} o = piece / chunks, first = (piece - o * chunks) * chunk;",
            f"const {index} last = elements - first < chunk ? elements : first + chunk;"]


def _text(lines: Sequence[str], depth: int) -> str:
    return "".join("    " * depth + line + "\n" for line in lines)


def _deeper(lines: Sequence[str]) -> List[str]:
    return ["    " + line for line in lines]


def _by_block(writer: Writer, acc: _Accumulation, outer: List[str], inner: List[str], last: List[str]) -> str:
    """`last`: what a block does with its piece."""
    index = writer.index_type
    return (f"    for ({index} piece = blockIdx.x; piece < outputs * chunks; piece += gridDim.x) {{\n"
            + _text(_piece_lines(index) + outer + acc.declare(), 2)
            + f"        {writer.language.unrolled(4)}for ({index} r = first + threadIdx.x; r < last; r += blockDim.x) {{\n"
            + _text(inner, 3) + "        }\n" + _text([*acc.tree(), *last, "__syncthreads();"], 2) + "    }\n")


def _by_thread(writer: Writer, acc: _Accumulation, outer: List[str], inner: List[str], finish: List[str]) -> str:
    """Outputs vary fastest among threads, so that neighbours read neighbours."""
    index = writer.index_type
    head = (f"    {writer.each('t', 'outputs * chunks')}\n"
            f"        const {index} part = t / outputs, o = t - part * outputs, piece = o * chunks + part, first = part * chunk;\n"
            f"        const {index} last = elements - first < chunk ? elements : first + chunk;\n")
    return (head + _text(outer + acc.declare(), 2) + f"        for ({index} r = first; r < last; r++) {{\n" + _text(inner, 3)
            + "        }\n" + _text(finish, 2) + "    }\n")


def scan(language: Language, op: str, source: Load, axis: int, acc: DType, target: Target, result: DType, init: Optional[Target], chunk: int) -> Kernel:
    """Running sums or products along one axis, in C order of `source`'s shape. A block takes a piece of a row and starts from what `init`
    (inclusive results of the pieces before) says."""
    shape = source.shape
    rest = tuple(at for at in range(len(shape)) if at != axis)
    writer = Writer(language, True)
    body = Body((), writer)
    body.collect([source])
    views = [source.strides, shapes.contiguous_strides(shape)]
    lines, bases = writer.offsets("o", tuple(shape[at] for at in rest), [tuple(view[at] for at in rest) for view in views])
    steps = [writer.dim(view[axis]) for view in views]
    writer.pointer("q", result, target)
    if init is not None:
        writer.pointer("init", acc, init, True)
    elements = shape[axis]
    for name, number in (("rows", shapes.size_of(shape) // max(elements, 1)), ("elements", elements), ("chunk", chunk),
                         ("chunks", max(1, -(-elements // chunk)))):
        writer.count(name, number)
    kind, long = language.type_of(acc), language.long
    first, turn = language.to(kind, language.first(op, acc)), language.to(long, "r")
    carry = f"part > 0 ? {writer.load(acc, 'init', 'piece - 1')} : {first}" if init is not None else first
    element = language.cast(writer.load(source.dtype, "p0", f"source + {turn} * {steps[0]}"), source.dtype, acc)
    stored = writer.store(result, "q", f"place + {turn} * {steps[1]}", language.cast(language.combine(op, acc, "carry", "value"), acc, result))
    text = f"""    for (u64_t piece = blockIdx.x; piece < rows * chunks; piece += gridDim.x) {{
        const u64_t o = piece / chunks, part = piece - o * chunks, first = part * chunk;
        const u64_t last = elements - first < chunk ? elements : first + chunk;
{_text(lines, 2)}        {language.local(long)} source = {bases[0]}, place = {bases[1]};
        {language.variable(kind)} carry = {carry};
        for (u64_t at = first; at < last; at += {BLOCK}) {{
            const u64_t r = at + threadIdx.x;
            {language.variable(kind)} value = {first};
            if (r < last)
                value = {element};
            line[threadIdx.x] = value;
            __syncthreads();
            for (u32_t step = 1; step < {BLOCK}; step *= 2) {{
                {language.variable(kind)} before = {first};
                if (threadIdx.x >= step)
                    before = line[threadIdx.x - step];
                __syncthreads();
                value = {language.combine(op, acc, "before", "value")};
                line[threadIdx.x] = value;
                __syncthreads();
            }}
            if (r < last)
                {stored}
            carry = {language.combine(op, acc, "carry", f"line[{BLOCK - 1}]")};
            __syncthreads();
        }}
    }}
"""
    return writer.finish(text, language.shared(kind, "line"))
