"""Typed scalars, structs, and the directions of run()'s arguments."""
from __future__ import annotations

import math
import struct
from typing import Any, Callable, Dict, Optional, Sequence, Tuple, Union

from ..errors import ArgumentError
from .dtypes import DType, dtype_of
from .hostmem import Shape, byte_view, count_of, dtype_from, shape_from, shape_of

__all__ = ["Scalar", "Struct", "In", "Out", "InOut", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64", "b8"]

SIZES: Dict[str, int] = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8,
                         "bool": 1}
_FLOAT_MAX: Dict[str, float] = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38, "f64": math.inf}
_EXACT_MAX = 1 << 53  # JSON numbers beyond lose digits


def int_range(kind: str) -> Tuple[int, int]:
    bits = 8 * SIZES[kind]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "i" else (0, (1 << bits) - 1)


_DIGITS: Dict[str, int] = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}  # of the significand, in bits


def is_exact(kind: str, value: int) -> bool:
    """Whether the integer is one of the type's numbers, as far as digits go."""
    magnitude = abs(value)
    significant = magnitude // (magnitude & -magnitude) if magnitude else 0
    return kind not in _DIGITS or significant.bit_length() <= _DIGITS[kind]


class Scalar:
    """A number with the type that it has on the device."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: str, value: Any) -> None:
        self.kind = kind
        self.value: Union[bool, int, float] = _checked(kind, value)

    @property
    def size(self) -> int:
        """Bytes of the value."""
        return SIZES[self.kind]

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point number."""
        return self.kind in _FLOAT_MAX

    def json(self) -> Dict[str, Any]:
        """As the contract writes it."""
        value = self.value
        if isinstance(value, float) and not math.isfinite(value):
            return {self.kind: "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT_MAX:
            return {self.kind: str(value)}
        return {self.kind: value}

    def __repr__(self) -> str:
        return f"gpurest.{'b8' if self.kind == 'bool' else self.kind}({self.value!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scalar) and (self.kind, self.value) == (other.kind, other.value)

    def __hash__(self) -> int:
        return hash((self.kind, self.value))


def _checked(kind: str, value: Any) -> Union[bool, int, float]:
    if kind == "bool":
        return bool(value)
    if kind in _FLOAT_MAX:
        number = float(value)
        # What rounds to the greatest finite value is fine; the service rounds to nearest even.
        if math.isfinite(number) and abs(number) > _FLOAT_MAX[kind] * (1 + 2.0 ** -24):
            raise ArgumentError(f"{value!r} is beyond the range of {kind}")
        return number
    if isinstance(value, float) or not hasattr(value, "__index__"):
        raise ArgumentError(f"{value!r} is no integer, {kind} is asked for")
    integer = int(value.__index__())
    low, high = int_range(kind)
    if not low <= integer <= high:
        raise ArgumentError(f"{integer} does not fit {kind} ({low} to {high})")
    return integer


def i8(value: int) -> Scalar:
    """A signed char."""
    return Scalar("i8", value)


def i16(value: int) -> Scalar:
    """A short."""
    return Scalar("i16", value)


def i32(value: int) -> Scalar:
    """An int."""
    return Scalar("i32", value)


def i64(value: int) -> Scalar:
    """A long long."""
    return Scalar("i64", value)


def u8(value: int) -> Scalar:
    """An unsigned char."""
    return Scalar("u8", value)


def u16(value: int) -> Scalar:
    """An unsigned short."""
    return Scalar("u16", value)


def u32(value: int) -> Scalar:
    """An unsigned int."""
    return Scalar("u32", value)


def u64(value: int) -> Scalar:
    """An unsigned long long, a size_t, or an address."""
    return Scalar("u64", value)


def f16(value: float) -> Scalar:
    """A __half."""
    return Scalar("f16", value)


def bf16(value: float) -> Scalar:
    """A __nv_bfloat16."""
    return Scalar("bf16", value)


def f32(value: float) -> Scalar:
    """A float."""
    return Scalar("f32", value)


def f64(value: float) -> Scalar:
    """A double."""
    return Scalar("f64", value)


def b8(value: bool) -> Scalar:
    """A bool."""
    return Scalar("bool", value)


def scalar_kind(dtype: DType) -> str:
    """The service's name of scalar arguments of an element type."""
    return "bool" if dtype.kind == "b" else f"{dtype.kind}{dtype.bits}"


class Struct:
    """A struct passed by value whose members may be buffers: laid out by the service as C would. Nested structs are allowed.

    `gpurest.Struct(buffer, 4, gpurest.f32(0.5))`: a Python int is an int; a Python float needs its type."""

    def __init__(self, *members: Any) -> None:
        if not members:
            raise ArgumentError("a struct has at least one member")
        self.members = members


def pack_struct(fmt: str, *values: Any) -> bytes:
    """`struct.pack` with C's native alignment, for structs of numbers."""
    return struct.pack("@" + fmt, *values)


class Placeholder:
    """A number that each run of a program may replace; Program.scalar() makes it, and kernels take it while the program is recorded."""

    def __init__(self, name: str, value: Any, recording: Any) -> None:
        self.name = name
        self.value = value
        self.recording = recording

    def __repr__(self) -> str:
        return f"<Placeholder {self.name}={self.value!r}>"


class Placed(Dict[str, Any]):
    """A placeholder's number as an argument of a launch; `convert` makes another number fit the same parameter."""

    def __init__(self, argument: Dict[str, Any], placeholder: Placeholder, convert: Callable[[Any], Dict[str, Any]]) -> None:
        super().__init__(argument)
        self.placeholder = placeholder
        self.convert = convert


class In:
    """run(): data that is uploaded before the kernel."""

    uploads, downloads = True, False

    def __init__(self, data: Any) -> None:
        self.data = data
        self.view = byte_view(data, type(self).__name__)
        self.dtype: Optional[DType] = dtype_from(data)
        self.shape: Optional[Shape] = shape_from(data)
        if not len(self.view):
            raise ArgumentError(f"{type(self).__name__}: the data is empty")

    @property
    def size(self) -> int:
        """Bytes of the data."""
        return len(self.view)


class InOut(In):
    """run(): data that is uploaded before the kernel and, changed, put back where it was after it."""

    downloads = True

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        if self.view.readonly:
            raise ArgumentError("InOut: the data cannot be written to")


class Out:
    """run(): memory that the kernel fills.

    `Out(array)` is filled in place; `Out(shape, dtype)` and `Out(bytes_count)` make new memory. It is not cleared before the kernel."""

    uploads, downloads = False, True

    def __init__(self, data: Any, dtype: Any = None) -> None:
        self.data: Any = None
        self.view: Optional[memoryview] = None
        self.dtype: Optional[DType] = None if dtype is None else dtype_of(dtype)
        self.shape: Optional[Shape] = None
        if isinstance(data, (int, tuple, list)):
            self._new(data)
        else:
            self.data, self.view = data, byte_view(data, "Out")
            self.dtype, self.shape = dtype_from(data), shape_from(data)
            if self.view.readonly:
                raise ArgumentError("Out: the data cannot be written to")
            self.size = len(self.view)
        if self.size < 1:
            raise ArgumentError("Out: at least 1 byte")

    def _new(self, shape: Union[int, Sequence[int]]) -> None:
        self.shape = shape_of(shape)
        self.size = count_of(shape_of(shape)) * (self.dtype.itemsize if self.dtype else 1)
