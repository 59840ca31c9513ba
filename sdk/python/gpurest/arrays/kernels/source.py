"""What the text of both kinds of kernels has in common. Sizes, shapes and strides are arguments, so that one text serves arrays of all sizes."""
from __future__ import annotations

import re
import struct
from typing import Any, Iterable, List, Sequence, Tuple

from ..._values.dtypes import DType
from .._engine import shapes
from .._engine.prelude_complex import COMPLEX as COMPLEX
from .binding import Bound, layout
from .params import Param, c_type, is_array

NARROW_MAX = (1 << 31) - 1  # up to so many elements places are taken apart with 32-bit divisions
HALF = "#include <cuda_fp16.h>\ntypedef __half float16;\n"

# A raw parameter: its elements by their number in C order, or by one number for each dimension. Strides are in bytes, as CuPy's.
RAW = """template <typename T, int N, bool DENSE> struct _Raw {
    T* _data; long long _size; const long long *_shape, *_strides;
    __device__ long long size() const { return _size; }
    __device__ const long long* shape() const { return _shape; }
    __device__ const long long* strides() const { return _strides; }
    __device__ T& _at(long long place) const
    {
        if (DENSE)
            return _data[place];
        char* found = (char*)_data;
        for (int axis = N - 1; axis >= 0; --axis) {
            found += place % _shape[axis] * _strides[axis];
            place /= _shape[axis];
        }
        return *(T*)found;
    }
    template <typename I> __device__ T& operator[](I place) const { return _at((long long)place); }
    template <typename I> __device__ T& operator[](I* places) const
    {
        char* found = (char*)_data;
        for (int axis = 0; axis < N; ++axis)
            found += (long long)places[axis] * _strides[axis];
        return *(T*)found;
    }
    __device__ operator T*() const
    {
        static_assert(DENSE, "a raw parameter that is not in C order has no plain pointer: index it, or pass x.copy()");
        return _data;
    }
};
"""
INDEXER = """template <int N> struct _Indexer {
    long long _size; const long long* _shape; long long _places[N ? N : 1];
    __device__ _Indexer(long long size, const long long* shape) : _size(size), _shape(shape) {}
    __device__ void set(long long place)
    {
        for (int axis = N - 1; axis >= 0; --axis) {
            _places[axis] = place % _shape[axis];
            place /= _shape[axis];
        }
    }
    __device__ long long size() const { return _size; }
    __device__ const long long* shape() const { return _shape; }
    __device__ const long long* get() const { return _places; }
};
"""


class Numbers:
    """Shapes and strides of one call, which the kernel gets as one struct."""

    def __init__(self) -> None:
        self._values: List[int] = []

    def put(self, value: int) -> str:
        """One more number; how the source names it."""
        self._values.append(value)
        return f"_d.v[{len(self._values) - 1}]"

    def put_all(self, values: Iterable[int]) -> str:
        """Where they begin."""
        at = len(self._values)
        self._values += values
        return f"_d.v + {at}"

    def offsets(self, index: str, shape: shapes.Shape, many: Sequence[shapes.Strides]) -> Tuple[str, List[str]]:
        """Text that takes `index`, an element's number in C order of `shape`, apart, and each view's offset there."""
        spread = [strides for strides in many if not shapes.is_contiguous(shape, strides)]
        if not spread:
            return "", [index] * len(many)
        extents, columns = shapes.collapse(shape, spread)
        places = [f"_{index}{axis}" for axis in range(len(extents))]
        kind = "unsigned int" if shapes.size_of(shape) <= NARROW_MAX else "unsigned long long"
        lines = f"{kind} {places[0]} = ({kind}){index};"
        for axis in range(len(extents) - 1, 0, -1):
            extent = f"({kind}){self.put(extents[axis])}"
            lines += f" {kind} {places[axis]} = {places[0]} % {extent}; {places[0]} /= {extent};"
        texts = iter([" + ".join(self._term(place, stride) for place, stride in zip(places, column) if stride) or "0" for column in columns])
        return lines, [index if shapes.is_contiguous(shape, strides) else next(texts) for strides in many]

    def _term(self, place: str, stride: int) -> str:
        return f"(long long){place}" if stride == 1 else f"(long long){place} * {self.put(stride)}"

    @property
    def declaration(self) -> str:
        """The structure that they are passed in."""
        return f"struct _dims {{ long long v[{len(self._values)}]; }};\n" if self._values else ""

    @property
    def parameters(self) -> List[str]:
        """The kernel's parameter for them."""
        return ["const _dims _d"] if self._values else []

    @property
    def arguments(self) -> List[Any]:
        """What is passed for them."""
        return [struct.pack(f"<{len(self._values)}q", *self._values)] if self._values else []


def parameter(param: Param, dtype: DType, value: Any) -> str:
    """Of the kernel: a pointer for an array, a number by value."""
    kind = c_type(dtype)
    return f"{'const ' if param.const else ''}{kind}* _p_{param.name}" if is_array(value) else f"const {kind} {param.name}"


def element(param: Param, dtype: DType, offset: str) -> str:
    """The name that the user's code has for an element."""
    return f"{'const ' if param.const else ''}{c_type(dtype)}& {param.name} = _p_{param.name}[{offset}];"


def raw_arrays(bound: Bound, numbers: Numbers) -> str:
    """The names that the user's code has for arrays that it indexes itself."""
    lines = ""
    for param, value in zip(bound.params, bound.values):
        if param.raw and is_array(value):
            dtype, (shape, strides) = bound.type_of(param), layout(value)
            kind = f"_Raw<{'const ' if param.const else ''}{c_type(dtype)}, {len(shape)}, {str(shapes.is_contiguous(shape, strides)).lower()}>"
            places = numbers.put_all([*shape, *(stride * dtype.itemsize for stride in strides)]) if shape else "(const long long*)0"
            lines += f"    const {kind} {param.name} = {{_p_{param.name}, {numbers.put(shapes.size_of(shape))}, {places}, {places} + {len(shape)}}};\n"
    return lines


def indexer(name: str, text: str, shape: shapes.Shape, numbers: Numbers) -> str:
    """`name`, for code that uses it: the loop's size, shape and place."""
    if not uses(text, name):
        return ""
    places = numbers.put_all(shape) if shape else "(const long long*)0"
    return f"    _Indexer<{len(shape)}> {name}({numbers.put(shapes.size_of(shape))}, {places});\n"


def uses(text: str, name: str) -> bool:
    """Whether C text names something."""
    return re.search(rf"\b{name}\b", text) is not None


def head(bound: Bound, preamble: str, numbers: Numbers, body: str) -> str:
    """What stands before the kernels: types for the letters, and the user's preamble. `body`: what uses it."""
    typedefs = "".join(f"typedef {c_type(dtype)} {letter};\n" for letter, dtype in sorted(bound.types.items()))
    kinds = {bound.type_of(param).name for param in bound.params}
    needed = ((HALF, "float16" in kinds), (COMPLEX, bool(kinds & {"complex64", "complex128"})), (RAW, "_Raw<" in body), (INDEXER, "_Indexer<" in body))
    return "".join(text for text, used in needed if used) + numbers.declaration + typedefs + preamble + "\n"
