"""Which nodes the service's built-in kernels compute, and with which arguments.

A built-in takes operands that lie in memory, most of them without gaps. A node that it cannot take, or that a generated kernel computes with
less traffic, gets a sentence instead that says why: `explain()` shows it."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from ..._values import dtypes
from ..._values.dtypes import DType
from . import shapes
from .codegen_sort import RUN
from .config import config
from .expr import Const, Load, Node
from .language import Argument, Target

SHORT_AXIS = 32  # so few elements are one thread's work; the built-in takes a warp or more for each result
# As measured on an H200 beside generated kernels, which cut long sums into pieces; then a second kernel put these together, where now the last block does.
ROWS_BUSY = 64  # so many rows, a block of the built-in each, are faster there however long they are
ALONE_MAX = 1 << 16  # and rows of so few elements, however few rows there are
STRIPS_BUSY = 256  # blocks, of STRIP columns side by side each, when the dimension is not the last one
STRIP = 32
SORTED_ALONE = RUN  # elements that one thread of a generated kernel sorts
SORTED_MAX = 0xFFFFFFFF
TILE_SIDE_MIN = 16  # of a matrix to be transposed; a narrower one leaves most of a tile empty

OFF = "config.builtins is off"
FUSED = "computes the expression before it on the way"
NOT_DENSE = "its operand has gaps or another order in memory"
SLOWER = "the device's built-in takes one block, a generated kernel many"
NO_BUILTIN = "there is no built-in for it"
REDUCTIONS = ("sum", "prod", "min", "max", "argmin", "argmax", "any", "all", "mean", "var")
ROWS = "built-ins do one row, these are several"


class Call(NamedTuple):
    """A launch of a built-in kernel; grid and block are the service's choice."""

    builtin: str
    dtype: DType
    args: List[Argument]


class Extents(NamedTuple):
    """A dense operand, reduced along the middle dimension."""

    outer: int
    length: int
    inner: int


def count(value: int) -> Dict[str, Any]:
    return dtypes.argument(value, dtypes.uint64)


def flag(value: bool) -> Dict[str, Any]:
    return {"bool": value}


def sum_type(dtype: DType) -> DType:
    """Of the built-in sums, products and running sums; those of booleans are unsigned, and the same bits as signed ones."""
    if dtype.kind == "f":
        return dtype
    return dtypes.uint64 if dtype.kind == "u" else dtypes.int64


def _mean_type(dtype: DType) -> DType:
    return dtype if dtype.kind == "f" else dtypes.float64


def _reduced_type(op: str, source: DType) -> DType:
    if op in ("any", "all"):
        return dtypes.bool_
    if op in ("argmin", "argmax"):
        return dtypes.int64
    if op in ("mean", "var"):
        return _mean_type(source)
    return sum_type(source) if op in ("sum", "prod") else source


# ---- reductions ----


def dense_extents(source: Load, reduced: Sequence[int], places: bool) -> Optional[Extents]:
    """None unless the view fills a piece of memory, its reduced dimensions side by side there, and the others (with `places`, which number the
    elements, these too) in their order."""
    axes = [axis for axis, extent in enumerate(source.shape) if extent != 1]
    axes.sort(key=lambda axis: -source.strides[axis])
    step = 1
    for axis in reversed(axes):
        if source.strides[axis] != step:
            return None
        step *= source.shape[axis]
    along = [at for at, axis in enumerate(axes) if axis in reduced]
    first, last = (along[0], along[-1] + 1) if along else (len(axes), len(axes))
    kept = axes[:first] + axes[last:]
    if len(along) != last - first or kept != sorted(kept) or (places and axes[first:last] != sorted(axes[first:last])):
        return None
    outer, length, inner = (shapes.size_of(tuple(source.shape[axis] for axis in part)) for part in (axes[:first], axes[first:last], axes[last:]))
    return Extents(outer, length, inner)


def _why_slower(extents: Extents) -> str:
    """"" where the built-in is at least as fast as a generated kernel."""
    outer, length, inner = extents
    if outer * inner == 1:
        return ""
    if length <= SHORT_AXIS:
        return f"only {length} elements for each result"
    busy = outer >= ROWS_BUSY or length <= ALONE_MAX if inner == 1 else outer * -(-inner // STRIP) >= STRIPS_BUSY
    return "" if busy else f"{outer * inner} results of {length} elements each, too few to keep a device busy with a block for each"


def reducible(op: str, source: Load, reduced: Sequence[int], result: DType) -> Union[Extents, str]:
    """How a built-in reduces the view, or why it does not."""
    if not config.builtins:
        return OFF
    if op not in REDUCTIONS or source.dtype.kind == "c":
        return NO_BUILTIN
    if shapes.size_of(source.shape) == 0:
        return "there are no elements"
    if result is not _reduced_type(op, source.dtype):
        return f"built-ins give {_reduced_type(op, source.dtype).name} for {source.dtype.name}"
    if op == "mean" and source.dtype.kind in "iu" and source.dtype.itemsize == 8:
        return "the built-in's sum of 64-bit integers could overflow"
    extents = dense_extents(source, reduced, op in ("argmin", "argmax"))
    if extents is None:
        return NOT_DENSE
    return _why_slower(extents) or extents


def reduce(node: Node, extents: Extents, target: Target) -> Call:
    """The call for a node that is reducible()."""
    source, (outer, length, inner) = node.loads[0], extents
    whole = outer * inner == 1
    sizes = [count(length)] if whole else [count(outer), count(length), count(inner)]
    more = [{"f64": node.params["ddof"]}] if node.op == "var" else []
    return Call(f"reduce_{node.op}" + ("" if whole else "_axis"), source.dtype, [source, target, *sizes, *more])


# ---- rows ----


def scannable(op: str, source: Load, axis: int, result: DType) -> str:
    """"" if a built-in has such running sums, else why not."""
    if not config.builtins:
        return OFF
    if source.dtype.kind == "c" or op not in ("sum", "prod") and not (op in ("min", "max") and source.dtype.kind != "b"):
        return NO_BUILTIN
    if source.shape[axis] != shapes.size_of(source.shape):
        return ROWS
    if not shapes.is_contiguous(source.shape, source.strides):
        return NOT_DENSE
    given = source.dtype if op in ("min", "max") else sum_type(source.dtype)
    return "" if result is given else f"built-ins give {given.name} for {source.dtype.name}"


def scan(node: Node, target: Target) -> Call:
    source = node.loads[0]
    return Call(f"scan_{node.op}", source.dtype, [source, target, count(shapes.size_of(source.shape)), flag(False)])


def sortable(dtype: DType, shape: shapes.Shape) -> str:
    """"" if built-ins sort such an array along its last dimension, else why not."""
    if not config.builtins:
        return OFF
    if dtype.kind == "c":
        return NO_BUILTIN
    if shapes.size_of(shape) != shape[-1]:
        return ROWS
    return "" if SORTED_ALONE < shape[-1] <= SORTED_MAX else f"{shape[-1]} elements"


def sort(keys: Load, target: Target) -> Call:
    return Call("sort", keys.dtype, [keys, target, count(keys.shape[-1]), flag(False)])


def places(keys: Load, before: Target, sorted_keys: Target, after: Target, target: Target) -> List[Call]:
    """The places of sorted keys: numbered, sorted along, and widened. `before` and `after` have 32 bits for each."""
    elements, narrow = count(keys.shape[-1]), dtypes.uint32
    return [Call("iota", narrow, [before, elements, {"u32": 0}, {"u32": 1}]),
            Call("sort_pairs", keys.dtype, [keys, before, sorted_keys, after, elements, flag(False)]),
            Call("cast_i64", narrow, [after, target, elements])]


def of_rows(node: Node, target: Target) -> Call:
    """A built-in over the rows of a dense operand."""
    source = node.loads[0]
    columns = source.shape[-1]
    return Call(node.op, source.dtype, [source, target, count(shapes.size_of(source.shape[:-1])), count(columns)])


def fft(node: Node, target: Target) -> Call:
    """Transforms along the middle of the node's extents, the axis a power of two long. The inverse ones are divided by that."""
    source, (outer, length, inner) = node.loads[0], node.params["extents"]
    direction = flag(node.params["inverse"])
    if inner == 1:
        return Call("fft", source.dtype.part, [source, target, count(length), count(outer), direction])
    return Call("fft_axis", source.dtype.part, [source, target, count(outer), count(length), count(inner), direction])


# ---- matrices ----


def rows_side_by_side(shape: shapes.Shape, strides: shapes.Strides) -> bool:
    """Whether the matrices in the last two dimensions, of at most one more, have rows without gaps, one behind the other."""
    rows, columns = shape[-2:]
    return ((columns <= 1 or strides[-1] == 1) and (rows <= 1 or strides[-2] >= columns)
            and (len(shape) == 2 or shape[0] <= 1 or strides[0] >= 0))


def _steps(one: Load) -> Tuple[int, int]:
    """Elements from row to row and from matrix to matrix. A single row has its own length, as built-ins ask for."""
    rows, columns = one.shape[-2:]
    return (one.strides[-2] if rows > 1 else columns), (one.strides[0] if len(one.shape) == 3 and one.shape[0] > 1 else 0)


def matmul(a: Load, b: Load, target: Target) -> Call:
    """Of operands of one type with rows_side_by_side(), into C order."""
    rows, inner = a.shape[-2:]
    columns = b.shape[-1]
    batch = a.shape[0] if len(a.shape) == 3 else 1
    sizes = [count(one) for one in (rows, columns, inner, batch)]
    if all(shapes.is_contiguous(one.shape, one.strides) for one in (a, b)):
        return Call("matmul", a.dtype, [a, b, target, *sizes])
    (lda, a_batch), (ldb, b_batch) = _steps(a), _steps(b)
    steps = [count(one) for one in (lda, ldb, columns, a_batch, b_batch, rows * columns)]
    return Call("matmul_strided", a.dtype, [a, b, target, *sizes, *steps])


def factor(node: Node, results: List[Target]) -> Call:
    """Of dense matrices: operands, results, sizes and flags, in the order of the built-in's parameters. Those of complex numbers take pairs."""
    values = [flag(one) if isinstance(one, bool) else count(one) for one in node.params["values"]]
    name = f"{node.op}_complex" if node.dtype.kind == "c" else node.op
    return Call(name, node.dtype.part, [*node.loads, *results, *values])


def transposition(node: Node) -> Optional[Tuple[int, int, int]]:
    """(rows, columns, batch) of the matrices in memory, where copying the node's one view transposes them."""
    one = node.inputs[0] if node.op == "identity" else None
    if not config.builtins or one is None or isinstance(one, Const) or one.dtype is not node.dtype or one.dtype.kind == "c":
        return None
    extents, (strides,) = shapes.collapse(node.shape, [one.strides])
    if len(extents) == 2:
        extents, strides = (1, *extents), (extents[0] * extents[1], *strides)
    if len(extents) != 3:
        return None
    batch, columns, rows = extents
    if strides != (rows * columns, 1, columns) or min(rows, columns) < TILE_SIDE_MIN:
        return None
    return rows, columns, batch


def transpose(one: Load, target: Target, matrices: Tuple[int, int, int]) -> Call:
    return Call("transpose", one.dtype, [one, target, *map(count, matrices)])
