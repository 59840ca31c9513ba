"""Stacks of matrices as the built-in factorizations take them, and the refusal of what these cannot do."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Sequence

from ..._values import dtypes
from ..._values.dtypes import DType
from .. import reductions, ufuncs
from .._engine import shapes
from .._engine.expr import FACTOR, Node
from ..ndarray import ndarray, wrap

INFOS_READ = 1024  # so many are read as they are, more are summed up on the device


class LinAlgError(ValueError):
    """A matrix has not the shape that is needed, or none of the results that were asked for."""


if dtypes.numpy is not None:
    LinAlgError = dtypes.numpy.linalg.LinAlgError  # type: ignore[misc]


class Part(NamedTuple):
    """One of several results."""

    dtype: DType
    shape: shapes.Shape


# ---- operands ----


def _computed_in(array: ndarray) -> DType:
    if array._dtype.name == "float16":
        raise TypeError("array type float16 is unsupported in linalg")
    return array._dtype if array._dtype.kind in "fc" else dtypes.float64


def arrays_of(*values: Any) -> List[ndarray]:
    """As arrays of one session, of single precision if all are, else of double; complex if one is."""
    arrays = ufuncs.as_arrays(values)
    kinds = [_computed_in(one) for one in arrays]
    part = dtypes.float64 if dtypes.float64 in [one.part for one in kinds] else dtypes.float32
    kind = dtypes.complex_of(part) if "c" in [one.kind for one in kinds] else part
    return [one.astype(kind, copy=False) for one in arrays]


def check_matrices(*arrays: ndarray) -> None:
    """LinAlgError for an array of fewer than two dimensions."""
    for one in arrays:
        if one.ndim < 2:
            raise LinAlgError(f"{one.ndim}-dimensional array given. Array must be at least two-dimensional")


def check_square(*arrays: ndarray) -> None:
    """LinAlgError for matrices with other numbers of rows than of columns."""
    check_matrices(*arrays)
    for one in arrays:
        if one._shape[-1] != one._shape[-2]:
            raise LinAlgError("Last 2 dimensions of the array must be square")


def flat(array: ndarray) -> ndarray:
    """With one dimension in front of the last two."""
    return array.reshape((shapes.size_of(array._shape[:-2]),) + array._shape[-2:])


def adjoint(array: ndarray) -> ndarray:
    """The transposed matrices, of complex numbers conjugated."""
    turned = array.swapaxes(-1, -2)
    return ufuncs.conjugate(turned) if array._dtype.kind == "c" else turned


# ---- factorizations ----


def factor(builtin: str, operands: Sequence[ndarray], parts: Sequence[Part], *values: int) -> List[ndarray]:
    """Queues a built-in that makes several arrays, which share memory; `values` are its sizes and flags. The operands have elements."""
    engine, kind = operands[0]._engine, operands[0]._dtype
    places, end = [], 0
    for part in parts:
        places.append(end * kind.itemsize)
        end += -(-shapes.size_of(part.shape) * part.dtype.itemsize // kind.itemsize)
    with engine.lock:
        loads = tuple([(one if one._contiguous else one.copy())._load() for one in operands])
        whole = wrap(Node(engine, FACTOR, kind, (end,), builtin, loads, {"places": tuple(places), "values": values}))
    return [ndarray(whole._storage, part.dtype, part.shape, shapes.contiguous_strides(part.shape), place // part.dtype.itemsize)
            for part, place in zip(parts, places)]


def fail_if(info: ndarray, text: str) -> None:
    """Sends what is queued; LinAlgError with this text when a number is not 0, as NumPy raises where the function is called."""
    found = info if info.size <= INFOS_READ else reductions.any(info)
    if any(found._bytes()):
        raise LinAlgError(text)
