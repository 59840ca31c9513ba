"""Arrays on their way from one Dask worker to another, to the client, or to a disk: their bytes, with what is to be known of them.

Two workers have two sessions, also on one service and one device, and a session's memory goes with it: a name of memory that one worker hands to
the other would not outlive the first. So bytes are what is sent. Threads of one worker share its session, and copy nothing."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from distributed.protocol.serialize import dask_deserialize, dask_serialize

from .._values import dtypes
from ..arrays import shaping
from ..arrays.host import from_bytes
from ..arrays.ndarray import ndarray

listeners: List[Callable[[Optional[BaseException]], None]] = []  # told of each array that was sent, with None, or of what prevented it


def _unstretched(array: ndarray) -> ndarray:
    """The elements that a stretched dimension repeats, once."""
    return array[tuple(slice(0, 1) if extent > 1 and not stride else slice(None) for extent, stride in zip(array._shape, array._strides))]


def serialize(array: ndarray) -> Tuple[Dict[str, Any], List[memoryview]]:
    """The array's bytes: of one that is queued yet, once it is computed. Raises what has become of it."""
    error: Optional[BaseException] = None
    try:
        return _serialized(array)
    except BaseException as one:
        error = one
        raise
    finally:
        for told in tuple(listeners):
            told(error)


def _serialized(array: ndarray) -> Tuple[Dict[str, Any], List[memoryview]]:
    small = _unstretched(array)
    turned = not small._contiguous and shaping.is_fortran(small)
    data = (small.transpose() if turned else small)._bytes()
    header = {"dtype": array._dtype.name, "shape": small._shape, "stretched": array._shape, "order": "F" if turned else "C"}
    return header, [data]


def deserialize(header: Dict[str, Any], frames: List[Any]) -> ndarray:
    """An array in the default session of this process."""
    data, shape, turned = memoryview(frames[0]) if frames else memoryview(b""), tuple(header["shape"]), header["order"] == "F"
    made = from_bytes(data.cast("B") if data.nbytes else memoryview(b""), dtypes.dtype_of(header["dtype"]), shape[::-1] if turned else shape)
    made = made.transpose() if turned else made
    whole = tuple(header["stretched"])
    return made if whole == shape else shaping.broadcast_to(made, whole)


def register() -> None:
    """Tells distributed how our arrays are sent. Idempotent."""
    dask_serialize.register(ndarray, serialize)
    dask_deserialize.register(ndarray, deserialize)
