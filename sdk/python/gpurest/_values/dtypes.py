"""Element types of arrays: names, sizes, C spellings, and NumPy 2's promotion rules, without needing NumPy."""

from __future__ import annotations

import base64
import struct
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple, Type, Union

try:
    import numpy as _numpy
except ImportError:  # every array feature but the hand-over to NumPy works without it
    numpy: Any = None
else:
    numpy = _numpy

Scalar = Union[bool, int, float, complex]
Name = str  # within the class below `str` is a property


class DType:
    """One element type. There is a single instance per type: compare with `is` inside this package.

    Compares equal to whatever names the same type: "float32", "f4", numpy.float32, numpy.dtype("f4")."""

    __slots__ = ("name", "kind", "itemsize", "char", "ctype", "storage", "arg", "bits", "part", "number")

    def __init__(self, name: Name, kind: Name, itemsize: int, char: Name, ctype: Name, storage: Name, arg: Name, part: Optional["DType"] = None) -> None:
        self.name = name
        self.kind = kind  # "b" bool, "i" signed, "u" unsigned, "f" floating, "c" complex
        self.itemsize = itemsize
        self.char = char  # of the struct module, which has no complex ones: there, of NumPy
        self.ctype = ctype  # of a value in a kernel's registers
        self.storage = storage  # of an element in device memory
        self.arg = arg  # the service's name of a scalar argument of `ctype`
        self.bits = 8 * itemsize
        self.part = self if part is None else part  # of a complex number's real and imaginary parts; else the type itself
        self.number = struct.Struct(f"<{2 * self.part.char if kind == 'c' else char}")  # of one, or of its parts: read in 0.29 us instead of 0.41

    @property
    def str(self) -> Name:
        """As in NumPy's array interface, such as "<f4"."""
        order = "|" if self.itemsize == 1 else "<"
        return f"{order}{self.kind}{self.itemsize}"

    def __repr__(self) -> Name:
        return f"dtype('{self.name}')"

    def __str__(self) -> Name:
        return self.name

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        try:
            return dtype_of(other) is self
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> Tuple[Any, Tuple[Name]]:
        return dtype_of, (self.name,)


bool_ = DType("bool", "b", 1, "?", "bool", "unsigned char", "bool")
int8 = DType("int8", "i", 1, "b", "signed char", "signed char", "i8")
int16 = DType("int16", "i", 2, "h", "short", "short", "i16")
int32 = DType("int32", "i", 4, "i", "int", "int", "i32")
int64 = DType("int64", "i", 8, "q", "long long", "long long", "i64")
uint8 = DType("uint8", "u", 1, "B", "unsigned char", "unsigned char", "u8")
uint16 = DType("uint16", "u", 2, "H", "unsigned short", "unsigned short", "u16")
uint32 = DType("uint32", "u", 4, "I", "unsigned int", "unsigned int", "u32")
uint64 = DType("uint64", "u", 8, "Q", "unsigned long long", "unsigned long long", "u64")
# Halves are kept as halves and computed as float, rounded after each operation, which is what NumPy does.
float16 = DType("float16", "f", 2, "e", "float", "unsigned short", "f32")
float32 = DType("float32", "f", 4, "f", "float", "float", "f32")
float64 = DType("float64", "f", 8, "d", "double", "double", "f64")
# Pairs of real and imaginary part; as arguments of kernels they are structs.
complex64 = DType("complex64", "c", 8, "F", "complex<float>", "complex<float>", "bytes", float32)
complex128 = DType("complex128", "c", 16, "D", "complex<double>", "complex<double>", "bytes", float64)

ALL = (bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, complex64, complex128)
_SIGNED = {1: int8, 2: int16, 4: int32, 8: int64}

_BY_NAME: Dict[str, DType] = {}
for _t in ALL:
    _BY_NAME[_t.name] = _t
    _BY_NAME[f"{_t.kind}{_t.itemsize}"] = _t
    _BY_NAME[_t.str] = _t
    _BY_NAME[_t.char] = _t
_BY_NAME.update({"bool_": bool_, "?": bool_, "int": int64, "float": float64, "half": float16, "single": float32, "double": float64,
                 "l": int64, "L": uint64, "=i4": int32, "=f4": float32, "=f8": float64, "=i8": int64, "complex": complex128, "csingle": complex64,
                 "cdouble": complex128, "Zf": complex64, "Zd": complex128, "=c8": complex64, "=c16": complex128})


class _ComplexWarning(RuntimeWarning):
    """As numpy.exceptions.ComplexWarning, where there is no NumPy."""


ComplexWarning: Type[RuntimeWarning] = getattr(getattr(numpy, "exceptions", numpy), "ComplexWarning", _ComplexWarning)
DISCARDS = "Casting complex values to real discards the imaginary part"


def dtype_of(spec: Any) -> DType:
    """The element type that `spec` names; TypeError when there is none of ours."""
    if isinstance(spec, DType):
        return spec
    if spec is bool:
        return bool_
    if spec is int:
        return int64
    if spec is float or spec is None:
        return float64
    if spec is complex:
        return complex128
    name = spec if isinstance(spec, str) else _foreign_name(spec)
    found = _BY_NAME.get(name) if name else None
    if found is None:
        refuse(spec)
    return found


def refuse(spec: Any) -> NoReturn:
    """TypeError: `spec` names no element type."""
    raise TypeError(f"gpurest has no element type {spec!r}; there are {', '.join(t.name for t in ALL)}")


def _foreign_name(spec: Any) -> Optional[str]:
    if numpy is None:
        return None
    try:
        made = numpy.dtype(spec)
    except (TypeError, ValueError):  # of a list that describes no fields
        return None
    if not made.isnative:
        raise TypeError(f"arrays on the device are little-endian; convert {made!r} with astype() first")
    return str(made.name)


def public(dtype: DType) -> Any:
    """What users see as an array's dtype: numpy.dtype where NumPy is there."""
    return dtype if numpy is None else numpy.dtype(dtype.name)



def _promote_integers(a: DType, b: DType) -> DType:
    if a.kind == b.kind:
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    return _SIGNED.get(2 * unsigned.itemsize, float64)


def _float_holding(dtype: DType) -> DType:
    """The smallest float that takes every value of a narrow integer; 4 and 8 bytes take a double."""
    return {1: float16, 2: float32}.get(dtype.itemsize, float64)


def complex_of(dtype: DType) -> DType:
    """The complex type whose parts hold the values of a float, or of complex numbers."""
    return complex128 if dtype.part is float64 else complex64


def promote(a: DType, b: DType) -> DType:
    """The type in which values of both meet."""
    if a is b:
        return a
    if a.kind == "b" or b.kind == "b":
        return b if a.kind == "b" else a
    if a.kind == "c" or b.kind == "c":
        return complex_of(promote(a.part, b.part))
    if a.kind != "f" and b.kind != "f":
        return _promote_integers(a, b)
    first = a if a.kind == "f" else _float_holding(a)
    second = b if b.kind == "f" else _float_holding(b)
    return first if first.itemsize >= second.itemsize else second


def promote_all(types: Tuple[DType, ...]) -> DType:
    result, *others = sorted(types, key=lambda one: one.kind not in "fc")  # floats first: each integer then meets a float, as in NumPy
    for other in others:
        result = promote(result, other)
    return result


def weak_with(value: Scalar, strong: DType) -> DType:
    """The type of a Python scalar that meets an array of `strong`: the array's own, unless the scalar is of a higher kind."""
    if isinstance(value, bool):
        return strong
    if isinstance(value, int):
        return int64 if strong.kind == "b" else strong
    if isinstance(value, complex):
        return strong if strong.kind == "c" else complex_of(strong) if strong.kind == "f" else complex128
    return strong if strong.kind in "fc" else float64


def of_scalar(value: Scalar) -> DType:
    if isinstance(value, bool):
        return bool_
    if isinstance(value, complex):
        return complex128
    return int64 if isinstance(value, int) else float64


def limits(dtype: DType) -> Tuple[int, int]:
    """Least and greatest value of an integer type."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind == "u":
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


def fits(value: int, dtype: DType) -> bool:
    low, high = limits(dtype)
    return low <= value <= high


def checked(value: Scalar, dtype: DType) -> Scalar:
    """The Python scalar as a value of `dtype`; OverflowError when an integer does not fit, TypeError of complex numbers that are to be real."""
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind == "c":
        whole = complex(value)
        return complex(rounded(whole.real, dtype.part), rounded(whole.imag, dtype.part))
    if dtype.kind == "f":
        return rounded(float(value), dtype)  # type: ignore[arg-type]
    if not isinstance(value, int):
        value = int(value)  # type: ignore[arg-type]
    if not fits(value, dtype):
        raise OverflowError(f"Python integer {value} out of bounds for {dtype.name}")
    return int(value)


def rounded(value: float, dtype: DType) -> float:
    """`value` as the nearest one of the type; beyond its range that is infinity."""
    if dtype is float64:
        return value
    try:
        return float(struct.unpack("<" + dtype.char, struct.pack("<" + dtype.char, value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def argument(value: Scalar, dtype: DType) -> Dict[str, Any]:
    """A scalar kernel argument of the service's JSON."""
    if dtype.kind == "b":
        return {"bool": bool(value)}
    if dtype.kind == "c":
        return {dtype.arg: base64.b64encode(packed([value], dtype)).decode()}
    if dtype.kind != "f":
        whole = int(value)  # type: ignore[arg-type]
        return {dtype.arg: whole if abs(whole) <= 1 << 53 else str(whole)}
    number = float(value)  # type: ignore[arg-type]
    if number != number:
        return {dtype.arg: "nan"}
    if number in (float("inf"), float("-inf")):
        return {dtype.arg: "inf" if number > 0 else "-inf"}
    return {dtype.arg: number}



def packed(values: Sequence[Scalar], dtype: DType) -> bytes:
    """Numbers of the type as they are in memory."""
    if dtype.kind == "c":
        return struct.pack(f"<{2 * len(values)}{dtype.part.char}", *[part for one in values for part in (one.real, one.imag)])
    return struct.pack(f"<{len(values)}{dtype.char}", *values)


def unpacked(data: Any, count: int, dtype: DType) -> List[Scalar]:
    """What packed() makes bytes of."""
    if count == 1:
        number = dtype.number.unpack(data)
        return [number[0] if len(number) == 1 else complex(*number)]
    if dtype.kind == "c":
        parts = struct.unpack(f"<{2 * count}{dtype.part.char}", data)
        return list(map(complex, parts[::2], parts[1::2]))
    return list(struct.unpack(f"<{count}{dtype.char}", data))


def float_for(dtype: DType) -> DType:
    """The type in which sin(), sqrt() and their like compute for an operand of `dtype`."""
    if dtype.kind in "fc":
        return dtype
    return float16 if dtype.kind == "b" else _float_holding(dtype)
