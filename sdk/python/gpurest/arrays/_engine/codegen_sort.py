"""Kernels that sort: short runs by single threads, then runs merged pairwise until one is left. Equal elements keep their order."""

from __future__ import annotations

from typing import List

from ..._values import dtypes
from .codegen import Writer
from .expr import Load
from .language import Kernel, Language, Target

RUN = 16  # elements that a thread sorts by insertion
PLACE = dtypes.int64


def passes(elements: int) -> List[int]:
    """The lengths of the runs that each merging pass joins two of."""
    lengths = []
    length = RUN
    while length < elements:
        lengths.append(length)
        length *= 2
    return lengths


def _writer(language: Language, wide: bool, keys: Load, rows: int, elements: int) -> Writer:
    writer = Writer(language, wide)
    writer.pointer("keys", keys.dtype, keys, True)
    writer.count("rows", rows)
    writer.count("elements", elements)
    return writer


def runs(language: Language, keys: Load, rows: int, elements: int, target: Target, places: bool, wide: bool) -> Kernel:
    """Sorts every RUN neighbours of each row. `keys`: contiguous. `places`: the elements' places within their row are sorted by the keys
    and stored, as 64-bit integers, else the keys."""
    writer = _writer(language, wide, keys, rows, elements)
    kind, index, place = language.type_of(keys.dtype), writer.index_type, language.type_of(PLACE)
    writer.pointer("q", PLACE if places else keys.dtype, target)
    move, take, store = "", "", writer.store(keys.dtype, "q", "start + k", "key[k]")
    if places:
        move, take = " place[j] = place[j - 1];", f" place[j] = {language.to(place, '(first + k)')};"
        store = writer.store(PLACE, "q", "start + k", "place[k]")
    return writer.finish(f"""    const {index} pieces = (elements + {RUN - 1}) / {RUN};
    {writer.each("t", "rows * pieces")}
        const {index} row = t / pieces, first = (t - row * pieces) * {RUN}, start = row * elements + first;
        const {index} count = elements - first < {RUN} ? elements - first : {RUN};
        {language.variable(kind)} key[{RUN}];{f" {place} place[{RUN}];" if places else ""}
        for (u32_t k = 0; k < count; k++) {{
            {language.local(kind)} x = {writer.load(keys.dtype, "keys", "start + k")};
            u32_t j = k;
            for (; j > 0 && {language.generic("sorts_before", keys.dtype)}(x, key[j - 1]); j--) {{ key[j] = key[j - 1];{move} }}
            key[j] = x;{take}
        }}
        for (u32_t k = 0; k < count; k++)
            {store}
    }}
""")


def merge(language: Language, keys: Load, rows: int, elements: int, source: Load, target: Target, length: int, places: bool, wide: bool) -> Kernel:
    """Joins runs of `length` two by two: each element finds its place by counting, in the other run, what comes before it."""
    writer = _writer(language, wide, keys, rows, elements)
    kind, index, item = language.type_of(keys.dtype), writer.index_type, PLACE if places else keys.dtype
    writer.pointer("items", item, source, True)
    writer.pointer("q", item, target)
    writer.count("length", length)

    def key(at: str) -> str:
        """That of the item there."""
        return writer.load(keys.dtype, "keys", f"row + {language.to(index, writer.load(item, 'items', at))}") if places else writer.load(item, "items", at)

    store = writer.store(item, "q", "row + to", writer.load(item, "items", "i") if places else "x")
    before = language.generic("sorts_before", keys.dtype)
    return writer.finish(f"""    {writer.each("i", "rows * elements")}
        const {index} row = i / elements * elements, at = i - row, first = at / length / 2 * 2 * length;
        const {index} middle = elements - first < length ? elements : first + length;
        const {index} last = elements - middle < length ? elements : middle + length;
        const bool left = at < middle;
        {language.local(kind)} x = {key("i")};
        {index} low = left ? middle : first, high = left ? last : middle;
        while (low < high) {{
            const {index} j = low + (high - low) / 2;
            {language.local(kind)} y = {key("row + j")};
            if (left ? {before}(y, x) : !{before}(x, y))
                low = j + 1;
            else
                high = j;
        }}
        const {index} to = left ? at + (low - middle) : at - (middle - low);
        {store}
    }}
""")
