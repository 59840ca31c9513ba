"""Arrangements of host arrays that kernels read well. They need NumPy, and copy."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Tuple

from ..errors import ArgumentError
from .hostmem import numpy

if TYPE_CHECKING:
    import numpy.typing


def _array(data: Any, what: str) -> numpy.typing.NDArray[Any]:
    if numpy is None:
        raise ArgumentError(f"{what}() needs NumPy")
    return numpy.asarray(data)


def align(data: Any, multiple_bytes: int = 256) -> numpy.typing.NDArray[Any]:
    """A copy whose rows (the last axis) are padded with zeros so that each begins at a multiple of `multiple_bytes`: the pitch that
    cudaMallocPitch would choose. The row's length in elements is the result's shape[-1]."""
    array = _array(data, "align")
    if array.ndim < 1 or multiple_bytes < 1 or multiple_bytes % array.itemsize:
        raise ArgumentError(f"align() takes an array and a multiple of its {array.itemsize} bytes per element")
    step = multiple_bytes // array.itemsize
    padded = -(-array.shape[-1] // step) * step
    out = numpy.zeros(array.shape[:-1] + (padded,), array.dtype)
    out[..., :array.shape[-1]] = array
    return out


def to_tiles(data: Any, shape: Tuple[int, int]) -> numpy.typing.NDArray[Any]:
    """A matrix cut into tiles of `shape`, each contiguous: the result's shape is (tile rows, tile columns, rows, columns). What the last
    tiles lack is zero."""
    array = _array(data, "to_tiles")
    if array.ndim != 2 or len(shape) != 2 or min(shape) < 1:
        raise ArgumentError("to_tiles() takes a matrix and a shape of two positive extents")
    rows, columns = -(-array.shape[0] // shape[0]), -(-array.shape[1] // shape[1])
    padded = numpy.zeros((rows * shape[0], columns * shape[1]), array.dtype)
    padded[:array.shape[0], :array.shape[1]] = array
    return numpy.ascontiguousarray(padded.reshape(rows, shape[0], columns, shape[1]).swapaxes(1, 2))


def coalesce(records: Any) -> Dict[str, numpy.typing.NDArray[Any]]:
    """An array of structs as a struct of arrays: one contiguous array per field, so that neighbouring threads read neighbouring bytes."""
    array = _array(records, "coalesce")
    if array.dtype.names is None:
        raise ArgumentError("coalesce() takes a structured array, such as numpy.zeros(n, [('x', 'f4'), ('y', 'f4')])")
    return {name: numpy.ascontiguousarray(array[name]) for name in array.dtype.names}
