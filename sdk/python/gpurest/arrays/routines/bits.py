"""Bits in bytes."""

from __future__ import annotations

from typing import Any, Optional

from .. import joining, reductions, shaping
from .._engine import shapes
from ..creation import arange, zeros
from ..ndarray import ndarray
from ..ufuncs import as_array

__all__ = ["packbits", "unpackbits"]


def _checked_order(bitorder: str) -> None:
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")


def _shifts(like: ndarray, bitorder: str) -> ndarray:
    places = arange(8, dtype="u1", session=like._engine.session)
    return places if bitorder == "little" else places[::-1]


def packbits(a: Any, axis: Optional[int] = None, bitorder: str = "big") -> ndarray:
    """Each eight elements along `axis` as the bits of a byte, 1 for what is not zero; the last byte is filled with 0."""
    _checked_order(bitorder)
    array = as_array(a)
    if array._dtype.kind not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    if axis is None:
        array, axis = shaping.ravel(array), 0
    at = shapes.strict_axis(axis, array.ndim)
    shifts, line = _shifts(array, bitorder), shaping.moveaxis(array, at, -1) != 0
    more = -line._shape[-1] % 8
    if more:
        line = joining.concatenate([line, zeros(line._shape[:-1] + (more,), bool, session=line._engine.session)], -1)
    groups = line.reshape(line._shape[:-1] + (line._shape[-1] // 8, 8)).astype("u1")
    return shaping.moveaxis(reductions.sum(groups << shifts, -1, "u1"), -1, at)


def unpackbits(a: Any, axis: Optional[int] = None, count: Optional[int] = None, bitorder: str = "big") -> ndarray:
    """The bits of bytes as elements 0 and 1 along `axis`, the first `count` of them, or without the last -`count`."""
    _checked_order(bitorder)
    array = as_array(a)
    if array._dtype.name != "uint8":
        raise TypeError("Expected an input array of unsigned byte data type")
    if axis is None:
        array, axis = shaping.ravel(array), 0
    at = shapes.strict_axis(axis, array.ndim)
    line = shaping.moveaxis(array, at, -1)
    bits = ((line.reshape(line._shape + (1,)) >> _shifts(array, bitorder)) & 1).reshape(line._shape[:-1] + (line._shape[-1] * 8,))
    total = bits._shape[-1]
    if count is not None:
        count = shapes.as_index(count)
        if count < -total:
            raise ValueError(f"-ve count out of range: {count}")
        if count > total:
            bits = joining.concatenate([bits, zeros(bits._shape[:-1] + (count - total,), "u1", session=bits._engine.session)], -1)
        bits = bits[..., :count]
    return shaping.moveaxis(bits, -1, at)
