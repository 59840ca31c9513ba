"""Kernels that sort: short runs by single threads, then runs merged pairwise until one is left. Equal elements keep their order."""

from __future__ import annotations

from typing import List

from .codegen import Kernel, Target, Writer, load_text, store_text
from .expr import Load

RUN = 16  # elements that a thread sorts by insertion
PLACE = "long long"


def passes(elements: int) -> List[int]:
    """The lengths of the runs that each merging pass joins two of."""
    lengths = []
    length = RUN
    while length < elements:
        lengths.append(length)
        length *= 2
    return lengths


def _writer(wide: bool, keys: Load, rows: int, elements: int) -> Writer:
    writer = Writer(wide)
    writer.parameter(f"const {keys.dtype.storage} *keys", keys)
    writer.count("rows", rows)
    writer.count("elements", elements)
    return writer


def runs(keys: Load, rows: int, elements: int, target: Target, places: bool, wide: bool) -> Kernel:
    """Sorts every RUN neighbours of each row. `keys`: contiguous. `places`: the elements' places within their row are sorted by the keys
    and stored, as 64-bit integers, else the keys."""
    writer = _writer(wide, keys, rows, elements)
    kind, index = keys.dtype, writer.index_type
    writer.parameter(f"{PLACE if places else kind.storage} *q", target)
    move, take, store = "", "", store_text(kind, "q", "start + k", "key[k]")
    if places:
        move, take, store = " place[j] = place[j - 1];", f" place[j] = ({PLACE})(first + k);", "q[start + k] = place[k];"
    return writer.finish(f"""    const {index} pieces = (elements + {RUN - 1}) / {RUN};
    for ({index} t = blockIdx.x * ({index})blockDim.x + threadIdx.x; t < rows * pieces; t += ({index})gridDim.x * blockDim.x) {{
        const {index} first = t % pieces * {RUN}, start = t / pieces * elements + first;
        const int count = elements - first < {RUN} ? (int)(elements - first) : {RUN};
        {kind.ctype} key[{RUN}];{f" {PLACE} place[{RUN}];" if places else ""}
        for (int k = 0; k < count; k++) {{
            const {kind.ctype} x = {load_text(kind, "keys", "start + k")};
            int j = k;
            for (; j > 0 && sorts_before<{kind.ctype}>(x, key[j - 1]); j--) {{ key[j] = key[j - 1];{move} }}
            key[j] = x;{take}
        }}
        for (int k = 0; k < count; k++)
            {store}
    }}
""")


def merge(keys: Load, rows: int, elements: int, source: Load, target: Target, length: int, places: bool, wide: bool) -> Kernel:
    """Joins runs of `length` two by two: each element finds its place by counting, in the other run, what comes before it."""
    writer = _writer(wide, keys, rows, elements)
    kind, index = keys.dtype, writer.index_type
    writer.parameter(f"const {PLACE if places else kind.storage} *items", source)
    writer.parameter(f"{PLACE if places else kind.storage} *q", target)
    writer.count("length", length)
    other = load_text(kind, "keys", "row + items[row + j]") if places else load_text(kind, "items", "row + j")
    mine = load_text(kind, "keys", "row + items[i]") if places else load_text(kind, "items", "i")
    store = "q[row + to] = items[i];" if places else store_text(kind, "q", "row + to", "x")
    return writer.finish(f"""    for ({index} i = blockIdx.x * ({index})blockDim.x + threadIdx.x; i < rows * elements; i += ({index})gridDim.x * blockDim.x) {{
        const {index} at = i % elements, row = i - at, first = at - at % length - (at / length % 2 ? length : 0);
        const {index} middle = elements - first < length ? elements : first + length;
        const {index} last = elements - middle < length ? elements : middle + length;
        const bool left = at < middle;
        const {kind.ctype} x = {mine};
        {index} low = left ? middle : first, high = left ? last : middle;
        while (low < high) {{
            const {index} j = low + (high - low) / 2;
            const {kind.ctype} y = {other};
            if (left ? sorts_before<{kind.ctype}>(y, x) : !sorts_before<{kind.ctype}>(x, y))
                low = j + 1;
            else
                high = j;
        }}
        const {index} to = left ? at + (low - middle) : at - (middle - low);
        {store}
    }}
""")

