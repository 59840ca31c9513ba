"""Functions over the rows of an array."""

from __future__ import annotations

from typing import Any

from .._values import dtypes
from . import reductions, ufuncs
from ._engine import shapes
from ._engine.config import config
from ._engine.expr import ROWS, Node
from .ndarray import ndarray, wrap


def _over_rows(op: str, array: ndarray) -> ndarray:
    """By the built-in, along the last axis."""
    engine = array._engine
    with engine.lock:
        source = array if array._contiguous and engine.language.takes(array._load()) else array.copy()
        return wrap(Node(engine, ROWS, source._dtype, source._shape, op, (source._load(),)))


def _floating(x: Any) -> ndarray:
    array = ufuncs.cast_to_array(ufuncs.operand(x))
    return array if array._dtype.kind in "fc" else array.astype(dtypes.float64)


def _fits(array: ndarray, axis: int) -> bool:
    return config.builtins and array._engine.language.has_rows(array._dtype) and axis == array.ndim - 1 and array.size > 0


def _below_greatest(array: ndarray, axis: int) -> ndarray:
    """How far each element is below the greatest of its row; of halves as floats."""
    wide = array.astype(dtypes.float32) if array._dtype.name == "float16" else array
    return wide - reductions.max(wide, axis, keepdims=True)


def softmax(x: Any, axis: int = -1) -> ndarray:
    """exp(x) over the sum of it along an axis. Integers and booleans count as float64."""
    array = _floating(x)
    at = shapes.normalize_axis(axis, array.ndim)
    if _fits(array, at):
        return _over_rows("softmax", array)
    e = ufuncs.exp(_below_greatest(array, at))
    return (e / reductions.sum(e, at, keepdims=True)).astype(array._dtype, copy=False)


def log_softmax(x: Any, axis: int = -1) -> ndarray:
    """The logarithm of softmax(x, axis), without its underflow."""
    array = _floating(x)
    at = shapes.normalize_axis(axis, array.ndim)
    if _fits(array, at):
        return _over_rows("log_softmax", array)
    below = _below_greatest(array, at)
    return (below - ufuncs.log(reductions.sum(ufuncs.exp(below), at, keepdims=True))).astype(array._dtype, copy=False)
