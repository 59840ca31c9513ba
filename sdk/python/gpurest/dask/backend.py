"""What Dask's arrays do with chunks that are ours."""
from __future__ import annotations

from typing import Any

import dask.array as da
import dask.config
from dask.array.backends import ArrayBackendEntrypoint, array_creation_dispatch
from dask.array.chunk_types import register_chunk_type
from dask.array.dispatch import (concatenate_lookup, einsum_lookup, empty_lookup, nannumel_lookup, numel_lookup, percentile_lookup, take_lookup,
                                 tensordot_lookup, to_numpy_dispatch)
from dask.array.percentile import _percentile
from dask.sizeof import sizeof
from dask.utils import Dispatch

from .. import arrays
from ..arrays._engine.unplaced import use_unplaced
from ..arrays.ndarray import ndarray
from ..arrays.random.bit_generator import Philox4x3210
from ..arrays.random.legacy import RandomState
from ..arrays.routines.picking import take

NAME = "gpurest"
to_gpurest_dispatch = Dispatch("to_gpurest_dispatch")


def bytes_of(array: ndarray) -> int:
    """What the array takes: elements that a stretched dimension repeats count once."""
    count = 1
    for extent, stride in zip(array._shape, array._strides):
        count *= extent if stride or not extent else 1
    return count * array.itemsize


def _count(array: ndarray, axis: Any = None, keepdims: bool = False, dtype: Any = float, **_: Any) -> Any:
    """How many elements a reduction takes together, as an array of its result's shape."""
    gone = range(array.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    summed = {at % array.ndim for at in gone}
    count = 1
    for at in summed:
        count *= array.shape[at]
    shape = tuple(1 if at in summed else extent for at, extent in enumerate(array.shape) if keepdims or at not in summed)
    return arrays.full_like(array, count, dtype, shape=shape)


def _count_not_nan(array: ndarray, **options: Any) -> Any:
    return arrays.sum(~arrays.isnan(array), **options)


def register() -> None:
    """Tells Dask of our arrays. Idempotent; importing gpurest.dask does it."""
    concatenate_lookup.register(ndarray, arrays.concatenate)
    take_lookup.register(ndarray, take)
    tensordot_lookup.register(ndarray, arrays.tensordot)
    einsum_lookup.register(ndarray, arrays.einsum)
    empty_lookup.register(ndarray, arrays.empty)
    percentile_lookup.register(ndarray, _percentile)
    numel_lookup.register(ndarray, _count)
    nannumel_lookup.register(ndarray, _count_not_nan)
    register_chunk_type(ndarray)
    sizeof.register(ndarray, bytes_of)
    to_numpy_dispatch.register(ndarray, lambda array, **_: array.get())
    to_gpurest_dispatch.register(object, lambda data, **_: arrays.asarray(data))
    use_unplaced()
    array_creation_dispatch.register_backend(NAME, GpurestBackendEntrypoint())


def _like_ours(name: str, *args: Any, meta: Any = None, **options: Any) -> Any:
    """Dask's own function, with chunks of ours."""
    options["like" if name == "arange" else "meta"] = arrays.empty(()) if meta is None else meta
    with dask.config.set({"array.backend": "numpy"}):
        return getattr(da, name)(*args, **options)


class GpurestBackendEntrypoint(ArrayBackendEntrypoint):  # type: ignore[misc]
    """`dask.config.set({"array.backend": "gpurest"})`, and `x.to_backend("gpurest")`."""

    @classmethod
    def to_backend_dispatch(cls) -> Any:
        return to_gpurest_dispatch

    @staticmethod
    def to_backend(data: Any, **_: Any) -> Any:
        return data if isinstance(data._meta, ndarray) else _ours(data)

    @property
    def RandomState(self) -> Any:
        return RandomState

    @property
    def default_bit_generator(self) -> Any:
        return Philox4x3210

    @staticmethod
    def ones(*args: Any, **options: Any) -> Any:
        return _like_ours("ones", *args, **options)

    @staticmethod
    def zeros(*args: Any, **options: Any) -> Any:
        return _like_ours("zeros", *args, **options)

    @staticmethod
    def empty(*args: Any, **options: Any) -> Any:
        return _like_ours("empty", *args, **options)

    @staticmethod
    def full(*args: Any, **options: Any) -> Any:
        return _like_ours("full", *args, **options)

    @staticmethod
    def arange(*args: Any, **options: Any) -> Any:
        return _like_ours("arange", *args, **options)


def _ours(array: Any) -> Any:
    return array.map_blocks(arrays.asarray, dtype=array.dtype, meta=arrays.empty((0,) * array.ndim, array.dtype))


def from_array(x: Any, chunks: Any = "auto", **options: Any) -> Any:
    """As dask.array.from_array() of anything that has a shape, a dtype and slices (NumPy, HDF5, Zarr): each worker brings its chunks to its
    device. An array of gpurest's is brought to the host first, from where its chunks go to the workers."""
    return _ours(da.from_array(x.get() if isinstance(x, ndarray) else x, chunks=chunks, **options))
