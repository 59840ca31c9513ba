"""The bounds of random integers."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._values import dtypes
from ..._values.dtypes import DType
from .. import host
from .._engine.expr import Const
from ..current import Where
from ..ndarray import ndarray
from .bit_generator import MASK
from .parameters import checked_there, engine_for, holds, is_number


class Bounds(NamedTuple):
    """`low` and how many numbers there are from there on, 0 for 2^64, each a Const or an array of 64 bits; and the type of the result."""

    low: Any
    span: Any
    dtype: DType


def bounds(low: Any, high: Any, kind: DType, endpoint: bool, session: Where, name: str = "integers") -> Bounds:
    """Checked where they are on the host, with NumPy's texts; else by a kernel, when the result is used."""
    if kind.kind not in "iub":
        raise TypeError(f"Unsupported dtype {dtypes.public(kind)!r} for {name}")
    single = high is None
    low, high = (0, low) if single else (low, high)
    if is_number(low) and is_number(high):
        return _numbers(int(low), int(high), kind, endpoint, single)
    if isinstance(low, ndarray) or isinstance(high, ndarray) or dtypes.numpy is None:
        return _there(low, high, kind, endpoint, session)
    return _arrays(dtypes.numpy.asarray(low), dtypes.numpy.asarray(high), kind, endpoint)


def _refuse_order(endpoint: bool, single: bool) -> ValueError:
    if single:
        return ValueError("high < 0" if endpoint else "high <= 0")
    return ValueError("low > high" if endpoint else "low >= high")


def _numbers(low: int, high: int, kind: DType, endpoint: bool, single: bool) -> Bounds:
    last = high - (not endpoint)
    if not dtypes.fits(low, kind):
        raise ValueError(f"low is out of bounds for {kind.name}")
    if last > dtypes.limits(kind)[1]:
        raise ValueError(f"high is out of bounds for {kind.name}")
    if low > last:
        raise _refuse_order(endpoint, single)
    wide = dtypes.int64 if kind.kind == "i" else dtypes.uint64
    return Bounds(Const(low, wide), Const((last - low + 1) & MASK, dtypes.uint64), kind)


def _arrays(low: Any, high: Any, kind: DType, endpoint: bool) -> Bounds:
    least, most = dtypes.limits(kind)
    for one in (low, high):
        if one.dtype.kind not in "iubfO":
            raise TypeError(f"bounds are integers, not {one.dtype}")
    low, high = (one.astype("i8") if one.dtype.kind == "f" else one for one in (low, high))
    if not holds(low >= least):
        raise ValueError(f"low is out of bounds for {kind.name}")
    if not holds(high <= most + (not endpoint)):
        raise ValueError(f"high is out of bounds for {kind.name}")
    if not holds(low <= high if endpoint else low < high):
        raise _refuse_order(endpoint, False)
    wide = "i8" if kind.kind == "i" else "u8"
    unsigned = [one.astype(wide, copy=False).view("u8") if one.dtype.kind != "O" else (one & MASK).astype("u8") for one in (low, high)]
    span = unsigned[1] - unsigned[0] + dtypes.numpy.uint64(1 if endpoint else 0)
    return Bounds(unsigned[0].view(wide), span, kind)


def _there(low: Any, high: Any, kind: DType, endpoint: bool, session: Where) -> Bounds:
    engine = engine_for((low, high), session)
    wide = dtypes.int64 if kind.kind == "i" else dtypes.uint64
    least, most = dtypes.limits(kind)
    first, last = (host.asarray(one, session=engine.session).astype(wide) for one in (low, high))
    if not endpoint:
        last = last - 1
    if kind.itemsize < 8:
        first, last = checked_there(first, "at_least", least), checked_there(last, "at_most", most)
    last = checked_there(last, "at_least", first)
    return Bounds(first, last.astype(dtypes.uint64) - first.astype(dtypes.uint64) + 1, kind)
