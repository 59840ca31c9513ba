"""What the array API standard lets a program ask: limits of element types, and what this package and its devices offer."""

from __future__ import annotations

import math
from typing import Any, Dict, NamedTuple, Tuple, Union

from ..._session.default import default_client
from ..._values import dtypes
from ..._values.dtypes import DType
from .._engine import shapes
from ..current import current_engine
from ..ndarray import ndarray

__all__ = ["__array_api_version__", "__array_namespace_info__", "finfo", "iinfo", "isdtype"]

__array_api_version__ = "2025.12"
_MANTISSA = {2: 10, 4: 23, 8: 52}  # bits, by bytes of a float
_EXPONENT = {2: 5, 4: 8, 8: 11}


class finfo:  # noqa: N801 - NumPy's name
    """The limits of a floating element type, given by itself or by an array of it; of a complex one those of its parts. The attributes that are
    values are Python's floats.

    `bits`; `eps`, from 1 to the next number; `epsneg`, from 1 to the one before; `max` and `min`; `smallest_normal` (`tiny`) and
    `smallest_subnormal`, above 0; `precision` and `resolution`, in decimal digits; `dtype`."""

    def __init__(self, type: Any) -> None:  # noqa: A002 - the standard's name
        kind = _kind_of(type)
        size = kind.itemsize // 2 if kind.kind == "c" else kind.itemsize
        if kind.kind not in "fc":
            raise ValueError(f"data type {kind.name!r} not inexact")
        mantissa, exponent = _MANTISSA[size], _EXPONENT[size]
        highest = (1 << (exponent - 1)) - 1
        self.dtype = dtypes.public(dtypes.dtype_of(f"f{size}"))
        self.bits = 8 * size
        self.eps = 2.0 ** -mantissa
        self.epsneg = self.eps / 2
        self.max = (2 - self.eps) * 2.0 ** highest
        self.min = -self.max
        self.smallest_normal = self.tiny = 2.0 ** (1 - highest)
        self.smallest_subnormal = math.ldexp(1.0, 1 - highest - mantissa)
        self.precision = int(mantissa * math.log10(2))
        self.resolution = float(f"1e-{self.precision}")

    def __repr__(self) -> str:
        return f"finfo(resolution={self.resolution!r}, min={self.min!r}, max={self.max!r}, dtype={self.dtype})"


class iinfo:  # noqa: N801 - NumPy's name
    """The limits of an integer element type, given by itself or by an array of it: `bits`, `min`, `max`, `dtype`."""

    def __init__(self, type: Any) -> None:  # noqa: A002 - the standard's name
        kind = _kind_of(type)
        if kind.kind not in "iu":
            raise ValueError(f"Invalid integer data type {kind.kind!r}.")
        self.dtype = dtypes.public(kind)
        self.bits = kind.bits
        self.min, self.max = dtypes.limits(kind)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def _kind_of(type: Any) -> DType:  # noqa: A002
    if isinstance(type, ndarray):
        return type._dtype
    return dtypes.dtype_of(getattr(type, "dtype", type) if isinstance(getattr(type, "shape", None), tuple) else type)


Kinds = Union[None, str, Tuple[Any, ...]]
_KINDS: Dict[str, str] = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f", "complex floating": "c",
                          "numeric": "iufc"}


class _Info(NamedTuple):
    """What __array_namespace_info__() gives."""

    def capabilities(self) -> Dict[str, Any]:
        """Masks as keys, and functions whose result's shape depends on the data, are there."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": shapes.DIMENSIONS_MAX}

    def default_device(self) -> str:
        """Where arrays are made now when no device is named."""
        return current_engine().session.device

    def devices(self) -> Tuple[str, ...]:
        """The ids of the devices of the default client's service."""
        return tuple(str(one["id"]) for one in default_client().devices())

    def default_dtypes(self, *, device: Any = None) -> Dict[str, Any]:
        """The types of what is made of Python's numbers without a type being named: the same on every device."""
        names = {"real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "int64"}
        return {name: dtypes.public(found) for name, spec in names.items() if (found := _BY_NAME.get(spec)) is not None}

    def dtypes(self, *, device: Any = None, kind: Kinds = None) -> Dict[str, Any]:
        """The element types by their names; of a `kind`, as "integral", or of several in a tuple. The same on every device."""
        wanted = "biufc" if kind is None else "".join(_letters(one) for one in (kind if isinstance(kind, tuple) else (kind,)))
        return {one.name: dtypes.public(one) for one in dtypes.ALL if one.kind in wanted and one.name != "float16"}


_BY_NAME = {one.name: one for one in dtypes.ALL}


def _letters(kind: Any) -> str:
    if kind not in _KINDS:
        raise ValueError(f"unsupported kind: {kind!r}")
    return _KINDS[kind]


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether an element type is of a kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
    "numeric", another element type that it is then compared with, or a tuple of these."""
    found = dtypes.dtype_of(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(found, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"kind argument is a string, but {kind!r} is not a known kind name.")
        return found.kind in _KINDS[kind]
    return found is dtypes.dtype_of(kind)


def __array_namespace_info__() -> Any:
    """What the package offers: an object with capabilities(), default_device(), default_dtypes(), devices() and dtypes()."""
    return _Info()
