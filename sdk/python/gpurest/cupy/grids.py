"""cupy.r_, c_, mgrid and ogrid, and what broadcasting makes of arrays."""
from __future__ import annotations

from typing import Any, List, Tuple

import numpy

from .. import arrays
from ..arrays.ndarray import ndarray
from ..arrays.ufuncs import as_arrays
from .missing import MissingError


class _Joined:
    """`r_[1:4, x, 0]`: ranges, arrays and numbers behind each other; c_ side by side, as columns."""

    def __init__(self, columns: bool) -> None:
        self._columns = columns

    def __getitem__(self, key: Any) -> ndarray:
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(one, str) for one in parts):
            raise MissingError("r_ and c_ take no text: concatenate(), stack() and column_stack() join along other axes")
        made = [arrays.atleast_1d(one) for one in as_arrays([numpy.r_[one] if isinstance(one, slice) else one for one in parts])]
        return arrays.column_stack(made) if self._columns else arrays.concatenate(made)

    def __len__(self) -> int:
        return 0


class _Grid:
    """`mgrid[0:3, 0:1:5j]`: the coordinates of a grid; ogrid those along each axis."""

    def __init__(self, made: Any) -> None:
        self._made = made

    def __getitem__(self, key: Any) -> Any:
        found = self._made[key]
        return tuple(map(arrays.asarray, found)) if isinstance(found, (tuple, list)) else arrays.asarray(found)


r_, c_ = _Joined(False), _Joined(True)
mgrid, ogrid = _Grid(numpy.mgrid), _Grid(numpy.ogrid)


def ix_(*args: Any) -> Tuple[ndarray, ...]:
    """Numbers, or masks, for each dimension that together pick every combination."""
    made = []
    for at, line in enumerate(as_arrays(args)):
        if line.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        line = line.nonzero()[0] if line.dtype.kind == "b" else line
        made.append(line.reshape((1,) * at + (-1,) + (1,) * (len(args) - at - 1)))
    return tuple(made)


class broadcast:
    """The arrays as they are when stretched to one shape: `values`, and its `shape`, `nd` and `size`."""

    def __init__(self, *operands: Any) -> None:
        self.values: Tuple[Any, ...] = tuple(arrays.broadcast_arrays(*operands))
        self.shape: Tuple[int, ...] = arrays.broadcast_shapes(*[one.shape for one in self.values])

    @property
    def nd(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        found: List[int] = [1, *self.shape]
        return int(numpy.prod(found))
