"""Several arrays as one, and one as several."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from .._values import dtypes
from . import host, ufuncs
from ._engine import shapes
from .casting import check as check_cast
from .functions import method
from .ndarray import ndarray
from .shaping import atleast, atleast_3d, expand_dims, moveaxis, ravel, reshape, transpose


def _parts(arrays: Any, *beside: Any) -> List[ndarray]:
    if not hasattr(arrays, "__iter__") and not hasattr(arrays, "__getitem__"):
        raise TypeError("The first input argument needs to be a sequence")
    return ufuncs.as_arrays(arrays, *beside)


def concatenate(arrays: Sequence[Any], axis: Optional[int] = 0, out: Optional[ndarray] = None, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    """One array of several that agree in all dimensions but one; axis None: of their elements in C order."""
    parts = _parts(arrays, out)
    if not parts:
        raise ValueError("need at least one array to concatenate")
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    if axis is None:
        parts, axis = [ravel(part) for part in parts], 0
    at = _checked(parts, axis)
    kind = dtypes.dtype_of(dtype) if dtype is not None else dtypes.promote_all(tuple(part._dtype for part in parts))
    for part in parts:
        check_cast(part._dtype, kind if out is None else out._dtype, casting)
    shape = parts[0]._shape[:at] + (sum(part._shape[at] for part in parts),) + parts[0]._shape[at + 1:]
    if out is None:
        out = host.empty(shape, kind, session=parts[0]._engine.session)
    elif out._shape != shape:
        raise ValueError("Output array is the wrong shape")
    first = 0
    for part in parts:
        out[(slice(None),) * at + (slice(first, first + part._shape[at]),)] = part
        first += part._shape[at]
    return out


def _checked(parts: Sequence[ndarray], axis: int) -> int:
    """The dimension along which they are put together."""
    ndim = parts[0].ndim
    if ndim == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    at = shapes.strict_axis(axis, ndim)
    for number, part in enumerate(parts):
        if part.ndim != ndim:
            raise ValueError("all the input arrays must have same number of dimensions, but the array at index 0 has "
                             f"{ndim} dimension(s) and the array at index {number} has {part.ndim} dimension(s)")
        for other in range(ndim):
            if other != at and part._shape[other] != parts[0]._shape[other]:
                raise ValueError("all the input array dimensions except for the concatenation axis must match exactly, but along dimension "
                                 f"{other}, the array at index 0 has size {parts[0]._shape[other]} and the array at index {number} has size "
                                 f"{part._shape[other]}")
    return at


@method
def stack(arrays: Sequence[Any], axis: int = 0, out: Optional[ndarray] = None, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    """One more dimension, along which the arrays, all of one shape, lie side by side."""
    parts = _parts(arrays, out)
    if not parts:
        raise ValueError("need at least one array to stack")
    if any(part._shape != parts[0]._shape for part in parts):
        raise ValueError("all input arrays must have the same shape")
    at = shapes.normalize_axis(axis, parts[0].ndim + 1)
    return concatenate([expand_dims(part, at) for part in parts], at, out, dtype=dtype, casting=casting)


def vstack(tup: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    """Along the first dimension; one-dimensional arrays are rows."""
    return concatenate([atleast(part, 2) for part in _parts(tup)], 0, dtype=dtype, casting=casting)


row_stack = vstack


def hstack(tup: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    """Along the second dimension, of one-dimensional arrays along the first."""
    parts = [atleast(part, 1) for part in _parts(tup)]
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def dstack(tup: Sequence[Any]) -> ndarray:
    """Along the third dimension."""
    return concatenate([atleast_3d(part) for part in _parts(tup)], 2)


def column_stack(tup: Sequence[Any]) -> ndarray:
    """Along the second dimension; one-dimensional arrays are columns."""
    return concatenate([part if part.ndim > 1 else transpose(reshape(part, (1, part.size))) for part in _parts(tup)], 1)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> List[ndarray]:
    """Views: so many, the first ones longer by one element where it does not come out even, or cut in front of the given places."""
    array = ufuncs.as_array(ary, indices_or_sections)
    at = shapes.normalize_axis(axis, array.ndim)
    extent = array._shape[at]
    if shapes.is_several(indices_or_sections):
        cuts = [0, *(int(one) for one in indices_or_sections), extent]
    else:
        count = int(indices_or_sections)
        if count <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, longer = divmod(extent, count)
        cuts = [number * each + min(number, longer) for number in range(count + 1)]
    return [array[(slice(None),) * at + (slice(first, last),)] for first, last in zip(cuts, cuts[1:])]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> List[ndarray]:
    """Views: so many equal ones, or cut in front of the given places."""
    array = ufuncs.as_array(ary, indices_or_sections)
    at = shapes.normalize_axis(axis, array.ndim)
    if not shapes.is_several(indices_or_sections) and array._shape[at] % int(indices_or_sections):
        raise ValueError("array split does not result in an equal division")
    return array_split(array, indices_or_sections, at)


def unstack(x: Any, /, *, axis: int = 0) -> Tuple[ndarray, ...]:
    """A view for each place along `axis`, without that dimension: stack() undone."""
    array = ufuncs.as_array(x)
    if not array.ndim:
        raise ValueError("Input array must be at least 1-d.")
    front = moveaxis(array, shapes.normalize_axis(axis, array.ndim), 0)
    return tuple(front[at] for at in range(front._shape[0]))


def vsplit(ary: Any, indices_or_sections: Any) -> List[ndarray]:
    """split() along the first of at least two dimensions."""
    return _split_of(ary, indices_or_sections, 2, "vsplit", 0)


def hsplit(ary: Any, indices_or_sections: Any) -> List[ndarray]:
    """split() along the second dimension, of one-dimensional arrays along the first."""
    return _split_of(ary, indices_or_sections, 1, "hsplit", 1)


def dsplit(ary: Any, indices_or_sections: Any) -> List[ndarray]:
    """split() along the third of at least three dimensions."""
    return _split_of(ary, indices_or_sections, 3, "dsplit", 2)


def _split_of(ary: Any, sections: Any, ndim: int, name: str, axis: int) -> List[ndarray]:
    array = ufuncs.as_array(ary, sections)
    if array.ndim < ndim:
        raise ValueError(f"{name} only works on arrays of {ndim} or more dimensions")
    return split(array, sections, min(axis, array.ndim - 1))
