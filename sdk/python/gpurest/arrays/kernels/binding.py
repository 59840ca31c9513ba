"""The arguments of one call: their types, the shape of the loop, and how each array is read within it."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from ..._session.buffer import Buffer
from ..._session.default import default_session
from ..._values.dtypes import DType, dtype_of, packed
from ..._values.scalars import Scalar, scalar_kind
from ...errors import ArgumentError
from .._engine import shapes
from ..host import empty
from ..ndarray import ndarray
from .params import Param, dtype_in, is_array

if TYPE_CHECKING:
    from ..._session.session import Session


class Start:
    """An array as a kernel's argument, whatever its strides: the address of its first element. `waited`: for a launch on the default stream that is waited
    for, by which the array's memory does not become known to others. Else the buffer is the array's from then on."""

    def __init__(self, array: ndarray, waited: bool) -> None:
        self._array, self._waited = array, waited
        self.dtype_str = array.dtype_str

    def __gpurest_buffer__(self) -> Tuple[Buffer, int]:
        memory = self._array._storage.node.memory
        if not self._waited or memory is None or self._array.session._batch_now() is not None:
            return self._array.buffer, self._array.offset_bytes
        return memory.lend(self._array.session), self._array.offset_bytes


def layout(value: Any) -> Tuple[shapes.Shape, shapes.Strides]:
    """Shape and strides, in elements."""
    if isinstance(value, ndarray):
        return value._shape, value._strides
    shape = tuple(value.shape)
    return shape, shapes.contiguous_strides(shape)


class Bound:
    """`params` and `values` are of one length; an output that is still to be made is None."""

    def __init__(self, name: str, params: Sequence[Param], values: Sequence[Any]) -> None:
        self.name, self.params, self.values = name, params, list(values)
        self.types: Dict[str, DType] = {}
        self._collect(arrays=True)
        self._collect(arrays=False)
        self.like = next((value for value in self.values if is_array(value)), None)

    def _collect(self, arrays: bool) -> None:
        """Arrays decide what a letter stands for; numbers only where no array does."""
        for param, value in zip(self.params, self.values):
            if not param.letter or value is None or is_array(value) != arrays:
                continue
            dtype = dtype_in(value)
            if arrays and self.types.setdefault(param.type, dtype) is not dtype:
                raise ArgumentError(f"{self.name}: {param.name} is {dtype.name}, but {param.type} is {self.types[param.type].name} already")
            self.types.setdefault(param.type, dtype)

    @property
    def kinds(self) -> Tuple[str, ...]:
        """The types of the arrays."""
        return tuple(dtype_in(value).name for value in self.values if is_array(value))

    def loop_shape(self, size: Optional[int]) -> shapes.Shape:
        """What the arrays that are not raw broadcast to; `size` elements where there are none."""
        many = [layout(value)[0] for param, value in zip(self.params, self.values) if not param.raw and is_array(value)]
        if many and size is not None:
            raise ValueError(f"{self.name}: size= is for calls whose arrays are all raw; here the arrays say how many elements there are")
        if many:
            return shapes.broadcast_shapes(*many)
        if size is None:
            raise ArgumentError(f"{self.name}: no array says how many elements there are; pass size=")
        return shapes.as_shape(size)

    def strides_in(self, value: Any, shape: shapes.Shape) -> shapes.Strides:
        """Of an array that is not raw, in the loop."""
        return shapes.broadcast_strides(*layout(value), shape)

    def type_of(self, param: Param) -> DType:
        """What a parameter's declared type stands for in this call."""
        if not param.letter:
            return dtype_of(param.type)
        found = self.types.get(param.type)
        if found is None:
            raise ArgumentError(f"{self.name}: nothing tells what {param.type} is")
        return found

    def check_output(self, param: Param, value: Any, shape: shapes.Shape) -> None:
        """Of an output that the caller gives."""
        if not is_array(value):
            raise ArgumentError(f"{self.name}: the output {param.name} is an array or a buffer")
        extents, strides = layout(value)
        if not param.raw and extents != shape:
            raise ValueError(f"{self.name}: the output {param.name} has shape {extents}, {shape} is wanted")
        if any(stride == 0 and extent > 1 for extent, stride in zip(extents, strides)):
            raise ValueError(f"{self.name}: elements of the output {param.name} share memory; pass an array of its own")

    def new(self, param: Param, shape: shapes.Shape) -> Any:
        """An output of the kind that the inputs are: arrays for arrays, buffers for buffers."""
        dtype = self.type_of(param)
        if self.like is None or isinstance(self.like, Buffer):
            return self.session().empty(shape or (1,), dtype)
        return empty(shape, dtype.name, session=self.session())

    def session(self) -> Session:
        """The session in which the call runs."""
        if self.like is None:
            return default_session()
        found: Session = self.like.session
        return found

    def passed(self, waited: bool) -> List[Any]:
        """The arguments as kernels take them: arrays by their first element, numbers converted to the parameter's type, as CuPy does. `waited`: see
        Start."""
        for value in self.values:
            if hasattr(value, "_flush"):
                value._flush()
        return [self._argument(param, self.type_of(param), value, waited) for param, value in zip(self.params, self.values)]

    def _argument(self, param: Param, dtype: DType, value: Any, waited: bool) -> Any:
        if is_array(value):
            if dtype_in(value) is not dtype:
                raise ArgumentError(f"{self.name}: {param.name} is {dtype_in(value).name}, {dtype.name} is declared")
            if not isinstance(value, ndarray):
                return value
            return Start(value, waited) if value.size else None
        if isinstance(value, Scalar):
            return value if value.kind == scalar_kind(dtype) else Scalar(scalar_kind(dtype), value.value)
        dtype_in(value)  # refuses what is no number
        item = value.item() if hasattr(value, "item") else value
        if isinstance(item, float) and dtype.kind not in "fc" or isinstance(item, complex) and dtype.kind != "c":
            raise ArgumentError(f"{self.name}: {param.name} is {dtype.name}, {item!r} is none")
        if dtype.kind == "c":
            return packed([item], dtype)
        return Scalar(scalar_kind(dtype), item)
