"""Parameters as the user writes them: `float32 x`, `T x`, `raw T x`."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Tuple

from ..._values.dtypes import DType, dtype_of
from ..._values.scalars import Scalar
from ...errors import ArgumentError

RESERVED = ("i", "_ind", "_in_ind", "_out_ind")


@dataclass(frozen=True)
class Param:
    """`type`: NumPy's name of a type, or a letter that stands for the arguments' type. `const`: the kernel only reads it."""
    name: str
    type: str
    raw: bool
    const: bool

    @property
    def letter(self) -> bool:
        """Whether its type is a placeholder such as T."""
        return len(self.type) == 1


def parse(text: str, outputs: bool) -> Tuple[Param, ...]:
    """A list of declarations; ArgumentError says which is none."""
    found: List[Param] = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        *marks, type_, name = ["", *part.split()] if len(part.split()) < 2 else part.split()
        if not type_ or not name.isidentifier() or set(marks) - {"raw", "_non_const"}:
            raise ArgumentError(f"{part!r} is no parameter: write 'float32 x', 'T x' or 'raw T x'")
        param = Param(name, type_, "raw" in marks, not outputs and "_non_const" not in marks)
        if not param.letter:
            dtype_of(param.type)
        found.append(param)
    return tuple(found)


def check_names(kernel: str, params: Tuple[Param, ...]) -> None:
    """ArgumentError unless every parameter has a name of its own, and the kernel one that C takes."""
    names = [one.name for one in params]
    if len(set(names)) != len(names) or set(names) & set(RESERVED):
        raise ArgumentError(f"{kernel}: every parameter has a name of its own, and none is {', '.join(RESERVED)}")
    if not kernel.isidentifier():
        raise ArgumentError(f"{kernel!r} is no name of a kernel")


def c_type(dtype: DType) -> str:
    """Of an element in memory, which the user's code computes with."""
    return "__half" if dtype.name == "float16" else dtype.ctype


def is_array(value: Any) -> bool:
    """An array or a buffer."""
    return hasattr(value, "__gpurest_buffer__")


def dtype_in(value: Any) -> DType:
    """The type that an argument has by itself."""
    if is_array(value):
        spec = getattr(value, "dtype_str", None)
        if spec is None:
            raise ArgumentError("a buffer without dtype: use .view(dtype), or make it with dtype=")
        return dtype_of(spec)
    if isinstance(value, Scalar):
        return dtype_of({"bool": "bool", "bf16": "f2"}.get(value.kind) or f"{value.kind[0]}{value.size}")
    if isinstance(value, (bool, int, float, complex)):
        return dtype_of(type(value)) if type(value) in (bool, int, float, complex) else dtype_of(getattr(value, "dtype", float))
    if getattr(value, "shape", None) == () and hasattr(value, "dtype"):
        return dtype_of(value.dtype)
    raise ArgumentError(f"{described(value)} is no argument of a kernel: arrays of the device, buffers and numbers are; gpurest.asarray(x) uploads an array")


def described(value: Any) -> str:
    """What kind of thing a value is, for messages."""
    return f"a {type(value).__module__}.{type(value).__name__}".replace("builtins.", "")
