"""The matrix product's kernel: tiles in shared memory, a small square of results in each thread's registers."""

from __future__ import annotations

from typing import List, NamedTuple, Tuple

from ._codegen import Kernel, Target, Writer, load_text, store_text
from ._dtypes import DType
from ._elementwise import cast
from ._expr import Load

GRID_Z_MAX = 65535


class Tile(NamedTuple):
    """Of the result, `rows` x `columns` per block and `each` x `each` per thread, going through K by `depth`."""

    rows: int
    columns: int
    depth: int
    each: int

    @property
    def threads(self) -> int:
        return (self.rows // self.each) * (self.columns // self.each)


LARGE, MIDDLE, SMALL = Tile(128, 128, 16, 8), Tile(64, 64, 16, 4), Tile(16, 16, 16, 1)
LARGE_FROM = 1024  # rows and columns: then there are enough large tiles to fill a device
MIDDLE_FROM = 64


def choose_tile(rows: int, columns: int, dtype: DType) -> Tile:
    least = min(rows, columns)
    if least >= LARGE_FROM and dtype.itemsize <= 4:
        return LARGE
    return MIDDLE if least >= MIDDLE_FROM else SMALL


def _multiply_add(acc: str, a: str, b: str, dtype: DType) -> str:
    if dtype.kind == "f":
        return f"{acc} = {'fma' if dtype.itemsize == 8 else 'fmaf'}({a}, {b}, {acc});"
    return f"{acc} |= {a} & {b};" if dtype.kind == "b" else f"{acc} += {a} * {b};"


def _register_type(dtype: DType) -> str:
    """Integers wrap around as unsigned ones."""
    if dtype.kind in "iu":
        return "u64_t" if dtype.itemsize == 8 else "u32_t"
    return dtype.ctype


def matmul(a: Load, b: Load, target: Target, result: DType) -> Tuple[Kernel, List[int], int]:
    """(kernel, grid, threads) for batches of a (.., M, K) times b (.., K, N), both of one type and with at most one dimension of batches, into
    C order. Halves are added up as floats, `result` may keep them so."""
    dtype = a.dtype
    rows, inner = a.shape[-2:]
    columns = b.shape[-1]
    batches = a.shape[0] if len(a.shape) == 3 else 1
    tile = choose_tile(rows, columns, dtype)
    writer = Writer(True)
    writer.parameter(f"const {dtype.storage} *a", a)
    writer.parameter(f"const {dtype.storage} *b", b)
    writer.parameter(f"{result.storage} *c", target)
    strides = [writer.dim(stride) for stride in (a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1],
                                                  a.strides[0] if batches > 1 else 0, b.strides[0] if batches > 1 else 0)]
    across = -(-columns // tile.columns)
    for name, number in (("rows", rows), ("columns", columns), ("inner", inner), ("batches", batches), ("across", across)):
        writer.count(name, number)
    kernel = writer.finish(_text(tile, dtype, result, strides, a.strides[-1] == 1, b.strides[-1] == 1))
    return kernel, [across * -(-rows // tile.rows), 1, min(batches, GRID_Z_MAX)], tile.threads


def _fill(name: str, along: str, extent: int, tile: Tile, inner_first: bool, element: str) -> str:
    """Threads side by side read what is side by side in memory."""
    if inner_first:
        split = f"const unsigned k = e % {tile.depth}, x = e / {tile.depth};"
    else:
        split = f"const unsigned k = e / {extent}, x = e % {extent};"
    return (f"            for (unsigned e = threadIdx.x; e < {extent * tile.depth}; e += {tile.threads}) {{\n"
            f"                {split}\n"
            f"                {name}[k][x] = {along} + x < {'rows' if name == 'as' else 'columns'} && at + k < inner ? {element} : 0;\n"
            "            }\n")


def _text(tile: Tile, dtype: DType, result: DType, strides: List[str], a_inner_first: bool, b_columns_first: bool) -> str:
    register, each = _register_type(dtype), tile.each
    wide, high = tile.columns // each, tile.rows // each
    a_element = load_text(dtype, "a", f"pa + (long long)(row + x) * {strides[0]} + (long long)(at + k) * {strides[1]}")
    b_element = load_text(dtype, "b", f"pb + (long long)(at + k) * {strides[2]} + (long long)(column + x) * {strides[3]}")
    multiply = _multiply_add("acc[i][j]", "left[i]", "right[j]", dtype)
    store = store_text(result, "c", "(z * rows + y) * columns + x", cast(f"({dtype.ctype})acc[i][j]", dtype, result))
    return f"""    __shared__ {register} as[{tile.depth}][{tile.rows + 1}], bs[{tile.depth}][{tile.columns + 1}];
    const unsigned tx = threadIdx.x % {wide}, ty = threadIdx.x / {wide};
    const u64_t column = blockIdx.x % across * {tile.columns}, row = blockIdx.x / across * {tile.rows};
    for (u64_t z = blockIdx.z; z < batches; z += gridDim.z) {{
        const long long pa = (long long)z * {strides[4]}, pb = (long long)z * {strides[5]};
        {register} acc[{each}][{each}] = {{}};
        for (u64_t at = 0; at < inner; at += {tile.depth}) {{
{_fill("as", "row", tile.rows, tile, a_inner_first, a_element)}{_fill("bs", "column", tile.columns, tile, not b_columns_first, b_element)}            __syncthreads();
            _Pragma("unroll")
            for (unsigned k = 0; k < {tile.depth}; k++) {{
                {register} left[{each}], right[{each}];
                _Pragma("unroll") for (unsigned i = 0; i < {each}; i++) {{ left[i] = as[k][ty + i * {high}]; right[i] = bs[k][tx + i * {wide}]; }}
                _Pragma("unroll") for (unsigned i = 0; i < {each}; i++)
                    _Pragma("unroll") for (unsigned j = 0; j < {each}; j++)
                        {multiply}
            }}
            __syncthreads();
        }}
        _Pragma("unroll") for (unsigned i = 0; i < {each}; i++)
            _Pragma("unroll") for (unsigned j = 0; j < {each}; j++) {{
                const u64_t y = row + ty + i * {high}, x = column + tx + j * {wide};
                if (y < rows && x < columns)
                    {store}
            }}
    }}
"""


