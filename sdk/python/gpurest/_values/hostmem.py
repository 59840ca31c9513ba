"""Memory of the host: what a caller hands over as bytes, and what a download is put into."""
from __future__ import annotations

import array
import re
from typing import Any, Optional, Sequence, Tuple, Union

from ..errors import ArgumentError, StridesError
from .dtypes import DType, dtype_of

try:
    import numpy as numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

Shape = Tuple[int, ...]
_ARRAY_CODES = "bBhHiIlLqQfd"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def byte_view(data: Any, what: str = "data") -> memoryview:
    """The bytes of anything with the buffer protocol, without a copy. Refuses what is not contiguous, or holds Python objects."""
    try:
        view = memoryview(data)
    except (TypeError, ValueError, BufferError) as error:
        hint = ": call .get() first" if hasattr(data, "get") and hasattr(data, "dtype") else ""
        raise ArgumentError(f"{what}: {type(data).__name__} has no bytes to read{hint}") from error
    if "O" in view.format:
        raise ArgumentError(f"{what}: an array of Python objects has no bytes; convert it with astype()")
    if not view.c_contiguous:
        raise StridesError(f"{what} is not contiguous in C order (shape {view.shape}, strides {view.strides}); "
                           "pass numpy.ascontiguousarray(…)")
    if view.nbytes == 0:
        return memoryview(b"")
    return view.cast("B")


def dtype_from(data: Any) -> Optional[DType]:
    """The element type that an array-like says it has; None for plain bytes, and for types that the device does not have."""
    spec = getattr(data, "dtype", None)
    try:
        if spec is not None:
            return dtype_of(spec)
        if isinstance(data, (bytes, bytearray)):
            return None
        code = memoryview(data).format.lstrip("@=<")
        return dtype_of({"l": "i8", "L": "u8"}.get(code, code)) if code and code != "B" else None
    except TypeError:
        return None


def shape_from(data: Any) -> Optional[Shape]:
    shape = getattr(data, "shape", None)
    return tuple(int(n) for n in shape) if isinstance(shape, tuple) else None


def from_sequence(values: Sequence[Any], dtype: DType) -> Any:
    """Numbers as an array of `dtype`."""
    if numpy is not None:
        return numpy.asarray(values, dtype=dtype.name)
    if dtype.char not in _ARRAY_CODES:
        raise ArgumentError(f"a sequence of {dtype.name} needs NumPy")
    try:
        return array.array(dtype.char, values)
    except (TypeError, OverflowError) as error:
        raise ArgumentError(f"the values do not fit {dtype.name}: {error}") from error


def shape_of(shape: Union[int, Sequence[int]]) -> Shape:
    sizes = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    if any(n < 0 for n in sizes):
        raise ArgumentError(f"a shape has no negative extents: {sizes}")
    return sizes


def count_of(shape: Shape) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def empty(size: int, dtype: Optional[DType], shape: Optional[Shape]) -> Tuple[Any, memoryview]:
    """Host memory of `size` bytes: what the caller gets, and the same as writable bytes.

    A NumPy array where there are NumPy and an element type, else a bytearray or a view with that type."""
    if numpy is not None and dtype is not None:
        made = numpy.empty(size // dtype.itemsize if shape is None else shape, dtype.name)
        return made, byte_view(made)
    block = bytearray(size)
    if dtype is None:
        return block, memoryview(block)
    return typed_view(memoryview(block), dtype), memoryview(block)


def typed_view(data: memoryview, dtype: DType) -> memoryview:
    """The bytes as elements of `dtype`, without NumPy; halves and complex numbers stay bytes."""
    code: Any = dtype.char
    return data if dtype.char == "e" or dtype.kind == "c" else data.cast(code)


def parse_bytes(size: Union[int, str, None]) -> Optional[int]:
    """A number of bytes, also written "8GiB", "512 MiB", "4G"; None stays None."""
    if size is None or isinstance(size, int):
        return size
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", size, re.I)
    if not match:
        raise ArgumentError(f"{size!r} is no size: write 8GiB, 512MiB or a number of bytes")
    return int(float(match.group(1)) * _UNITS[match.group(2).upper()])
