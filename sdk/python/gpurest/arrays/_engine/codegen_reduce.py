"""Kernels of reductions and running sums. A reduction computes the elementwise expression in front of it on the way."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..._values import dtypes
from ..._values.dtypes import DType
from . import shapes
from .codegen import BLOCK, Body, Kernel, Target, Writer, is_wide, load_text, store_text
from .elementwise import cast, emit
from .expr import Load, Node

CHUNK_OF_BLOCK = 4096  # elements that a block of threads adds up, at least
CHUNK_OF_THREAD = 64  # ... a single thread
BLOCKS_WANTED = 2048  # enough for every multiprocessor to have several
SHORT_ROW = 32  # a row of so few elements is a thread's work
MANY_OUTPUTS = 512  # with neighbouring elements in different outputs, a thread per output reads neighbours together
SCAN_CHUNK = 4096

COMBINE: Dict[str, str] = {
    "sum": "{a} + {b}", "mean": "{a} + {b}", "prod": "{a} * {b}", "any": "{a} | {b}", "all": "{a} & {b}",
    "max": "nan_max<{T}>({a}, {b})", "min": "nan_min<{T}>({a}, {b})",
}

# What else can be put together in any order: elementwise operations, with what changes nothing.
NEUTRAL: Dict[str, str] = {"bitwise_and": "({T})~({T})0", "bitwise_or": "0", "bitwise_xor": "0", "logical_xor": "0", "gcd": "0", "lcm": "1", "hypot": "0",
                           "logaddexp": "-__int_as_float(0x7f800000)", "logaddexp2": "-__int_as_float(0x7f800000)"}


def is_arg(op: str) -> bool:
    return op in ("argmax", "argmin")


def _first(op: str, dtype: DType) -> str:
    """What to start from: it changes no result."""
    if op in ("sum", "mean", "any"):
        return "0"
    if op in ("prod", "all"):
        return "1"
    if op in NEUTRAL:
        return "1" if dtype.kind == "b" and op == "bitwise_and" else NEUTRAL[op].format(T=dtype.ctype)
    if dtype.kind == "c":
        part = _first(op, dtype.part)
        return f"{dtype.ctype}({part}, {part})"
    greatest = op in ("max", "argmax", "fmax")
    if dtype.kind == "f" and op in ("fmax", "fmin"):
        return "__int_as_float(0x7fc00000)"
    if dtype.kind == "f":
        return "-__int_as_float(0x7f800000)" if greatest else "__int_as_float(0x7f800000)"
    low, high = dtypes.limits(dtype)
    bound = low if greatest else high
    suffix = "ull" if dtype.kind == "u" else "ll"
    return f"({dtype.ctype})({bound + 1}ll - 1)" if bound < 0 else f"({dtype.ctype}){bound}{suffix}"


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


def _combine(op: str, dtype: DType, a: str, b: str) -> str:
    if op not in COMBINE:
        return f"({emit(op, dtype, dtype, {'a': a, 'b': b, 'c': '', 'i': '', 'flag': ''})})"
    text = COMBINE[op].format(a=a, b=b, T=dtype.ctype)
    if dtype.kind == "i" and op in ("sum", "prod"):
        sign = "+" if op == "sum" else "*"
        return f"({dtype.ctype})((u64_t){a} {sign} (u64_t){b})"
    return text


class _Accumulation:
    """The C of one accumulator: a value, for argmax and argmin with its place."""

    def __init__(self, op: str, dtype: DType) -> None:
        self.op, self.dtype, self.arg = op, dtype, is_arg(op)

    def declare(self) -> List[str]:
        lines = [f"{self.dtype.ctype} acc = {_first(self.op, self.dtype)};"]
        return lines + ["long long place = 0x7fffffffffffffffll;"] if self.arg else lines

    def take(self, value: str, place: str) -> str:
        if not self.arg:
            return f"acc = {_combine(self.op, self.dtype, 'acc', value)};"
        greatest = "true" if self.op == "argmax" else "false"
        return f"if (arg_before<{self.dtype.ctype}>({greatest}, {value}, {place}, acc, place)) {{ acc = {value}; place = {place}; }}"

    def tree(self) -> List[str]:
        """All threads of a block into the first; every thread of the block comes here."""
        share = ["shared_acc[threadIdx.x] = acc;"] + (["shared_place[threadIdx.x] = place;"] if self.arg else [])
        take = self.take("shared_acc[threadIdx.x + step]", "shared_place[threadIdx.x + step]")
        again = " shared_acc[threadIdx.x] = acc;" + (" shared_place[threadIdx.x] = place;" if self.arg else "")
        return share + ["__syncthreads();",
                        f"for (unsigned step = blockDim.x / 2; step; step /= 2) {{ if (threadIdx.x < step) {{ {take}{again} }} __syncthreads(); }}"]

    def shared(self) -> str:
        text = f"    __shared__ {self.dtype.ctype} shared_acc[{BLOCK}];\n"
        return text + (f"    __shared__ long long shared_place[{BLOCK}];\n" if self.arg else "")


class Results(NamedTuple):
    """Where the pieces go: values of element type `dtype`, their places, or both. `divisor`: of the values, before they are stored."""

    value: Optional[Target]
    place: Optional[Target]
    dtype: DType
    divisor: Optional[int] = None


def reduction(op: str, members: Sequence[Node], source: Load, kept: Sequence[int], reduced: Sequence[int], acc: DType, cut: Shape,
              results: Results, places: Optional[Load] = None) -> Kernel:
    """`source` is a member's value or a view; `places`, of the same shape, are the places that earlier pieces found."""
    plain = not any(one.node is source.node for one in map(Node.load, members))
    loads = [one for node in members for one in node.loads if one.node not in set(members) or not one.identity]
    loads = loads + ([source] if plain else []) + ([places] if places else [])
    writer = Writer(is_wide(max(cut.outputs * cut.elements, cut.chunks * cut.chunk), loads))
    body = Body(members, writer)
    leaves = body.collect(([source] if plain else []) + ([places] if places else []))
    full = source.shape
    views = [leaf.strides for leaf in leaves] + ([shapes.contiguous_strides(full)] if body.indexed else [])

    def part(axes: Sequence[int], variable: str) -> Tuple[List[str], List[str]]:
        return writer.offsets(variable, tuple(full[axis] for axis in axes), [tuple(view[axis] for axis in axes) for view in views])

    kept_lines, kept_offsets = part(kept, "o")
    inner_lines, inner_offsets = part(reduced, "r")
    bases = [f"const {writer.offset_type} b{at} = {text};" for at, text in enumerate(kept_offsets)]
    offsets = [f"b{at} + {text}" for at, text in enumerate(inner_offsets)]
    index = f"(u64_t)({offsets[-1]})" if body.indexed else "r"
    accumulation = _Accumulation(op, acc)
    inner = inner_lines + body.write(offsets, index)
    value = cast(body.value(source), source.dtype, acc)
    place = body.value(places) if places else "(long long)r"
    inner.append(accumulation.take(value, place))
    _outputs(writer, accumulation, results)
    for name, number in (("outputs", cut.outputs), ("elements", cut.elements), ("chunk", cut.chunk), ("chunks", cut.chunks)):
        writer.count(name, number)
    text = _by_block if cut.by_block else _by_thread
    return writer.finish(text(writer.index_type, accumulation, kept_lines + bases, inner, _finish_lines(accumulation, results)))


def _outputs(writer: Writer, accumulation: _Accumulation, results: Results) -> None:
    if results.value is not None:
        writer.parameter(f"{results.dtype.storage} *q", results.value)
    if results.place is not None:
        writer.parameter("long long *places", results.place)
    if results.divisor is not None:
        writer.parameter(f"{accumulation.dtype.ctype} divisor", dtypes.argument(results.divisor, accumulation.dtype))


def _finish_lines(accumulation: _Accumulation, results: Results) -> List[str]:
    lines = []
    if results.value is not None:
        value = "acc" if results.divisor is None else "(acc / divisor)"
        lines.append(store_text(results.dtype, "q", "piece", cast(value, accumulation.dtype, results.dtype)))
    if results.place is not None:
        lines.append("places[piece] = place;")
    return lines


def _piece_lines(index: str) -> List[str]:
    return [f"const {index} o = piece / chunks, first = piece % chunks * chunk;",
            f"const {index} last = elements - first < chunk ? elements : first + chunk;"]


def _text(lines: Sequence[str], depth: int) -> str:
    return "".join("    " * depth + line + "\n" for line in lines)


def _by_block(index: str, acc: _Accumulation, outer: List[str], inner: List[str], finish: List[str]) -> str:
    return (acc.shared() + f"    for ({index} piece = blockIdx.x; piece < outputs * chunks; piece += gridDim.x) {{\n"
            + _text(_piece_lines(index) + outer + acc.declare(), 2)
            + f"        _Pragma(\"unroll 4\") for ({index} r = first + threadIdx.x; r < last; r += blockDim.x) {{\n"
            + _text(inner, 3) + "        }\n" + _text(acc.tree(), 2)
            + "        if (threadIdx.x == 0) {\n" + _text(finish, 3) + "        }\n        __syncthreads();\n    }\n")


def _by_thread(index: str, acc: _Accumulation, outer: List[str], inner: List[str], finish: List[str]) -> str:
    """Outputs vary fastest among threads, so that neighbours read neighbours."""
    head = (f"    for ({index} t = blockIdx.x * ({index})blockDim.x + threadIdx.x; t < outputs * chunks; t += ({index})gridDim.x * blockDim.x) {{\n"
            f"        const {index} o = t % outputs, piece = o * chunks + t / outputs, first = t / outputs * chunk;\n"
            f"        const {index} last = elements - first < chunk ? elements : first + chunk;\n")
    return (head + _text(outer + acc.declare(), 2) + f"        for ({index} r = first; r < last; r++) {{\n" + _text(inner, 3)
            + "        }\n" + _text(finish, 2) + "    }\n")


def scan(op: str, source: Load, axis: int, acc: DType, target: Target, result: DType, init: Optional[Target], chunk: int) -> Kernel:
    """Running sums or products along one axis, in C order of `source`'s shape. A block takes a piece of a row and starts from what `init`
    (inclusive results of the pieces before) says."""
    shape = source.shape
    rest = tuple(at for at in range(len(shape)) if at != axis)
    writer = Writer(True)
    body = Body((), writer)
    body.collect([source])
    views = [source.strides, shapes.contiguous_strides(shape)]
    lines, bases = writer.offsets("o", tuple(shape[at] for at in rest), [tuple(view[at] for at in rest) for view in views])
    steps = [writer.dim(view[axis]) for view in views]
    writer.parameter(f"{result.storage} *q", target)
    if init is not None:
        writer.parameter(f"const {acc.ctype} *init", init)
    elements = shape[axis]
    for name, number in (("rows", shapes.size_of(shape) // max(elements, 1)), ("elements", elements), ("chunk", chunk),
                         ("chunks", max(1, -(-elements // chunk)))):
        writer.count(name, number)
    carry = f"part ? init[piece - 1] : ({acc.ctype}){_first(op, acc)}" if init is not None else f"({acc.ctype}){_first(op, acc)}"
    element = cast(load_text(source.dtype, "p0", f"source + (long long)r * {steps[0]}"), source.dtype, acc)
    stored = store_text(result, "q", f"place + (long long)r * {steps[1]}", cast(_combine(op, acc, "carry", "value"), acc, result))
    text = f"""    __shared__ {acc.ctype} line[{BLOCK}];
    for (u64_t piece = blockIdx.x; piece < rows * chunks; piece += gridDim.x) {{
        const u64_t o = piece / chunks, part = piece % chunks, first = part * chunk;
        const u64_t last = elements - first < chunk ? elements : first + chunk;
{_text(lines, 2)}        const long long source = {bases[0]}, place = {bases[1]};
        {acc.ctype} carry = {carry};
        for (u64_t at = first; at < last; at += {BLOCK}) {{
            const u64_t r = at + threadIdx.x;
            {acc.ctype} value = ({acc.ctype}){_first(op, acc)};
            if (r < last)
                value = {element};
            line[threadIdx.x] = value;
            __syncthreads();
            for (unsigned step = 1; step < {BLOCK}; step *= 2) {{
                const {acc.ctype} before = threadIdx.x >= step ? line[threadIdx.x - step] : ({acc.ctype}){_first(op, acc)};
                __syncthreads();
                value = {_combine(op, acc, "before", "value")};
                line[threadIdx.x] = value;
                __syncthreads();
            }}
            if (r < last)
                {stored}
            carry = {_combine(op, acc, "carry", f"line[{BLOCK - 1}]")};
            __syncthreads();
        }}
    }}
"""
    return writer.finish(text)
