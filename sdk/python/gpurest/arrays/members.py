"""The methods of arrays that are functions of the package with the array in front, and what an array says of its memory."""

from __future__ import annotations

import pickle
from types import DynamicClassAttribute, FunctionType
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union, cast

from . import functions
from ._engine import shapes

if TYPE_CHECKING:
    from .ndarray import ndarray


AxisLike = Union[None, int, Sequence[int]]
UNSET: Any = type("Unset", (), {"__repr__": lambda self: "<not given>", "__slots__": ()})()  # of options whose None means something


class Flags(NamedTuple):
    """How an array lies in memory."""

    c_contiguous: bool
    f_contiguous: bool
    owndata: bool
    writeable: bool

    def __getitem__(self, key: Any) -> bool:  # type: ignore[override]
        short = {"C": "c_contiguous", "F": "f_contiguous", "O": "owndata", "W": "writeable"}
        name = short.get(str(key), str(key).lower())
        if name not in self._fields:
            raise KeyError("Unknown flag")
        return bool(getattr(self, name))


class FlatIterator:
    """An array's elements in C order as one dimension, for keys."""

    def __init__(self, array: "ndarray") -> None:
        self.base = array

    def __len__(self) -> int:
        return self.base.size

    def __getitem__(self, key: Any) -> "ndarray":
        return self.base.ravel()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        flat = self.base.ravel()
        flat[key] = value
        if not self.base._contiguous:
            self.base[...] = flat.reshape(self.base._shape)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.base.ravel())

    def copy(self) -> "ndarray":
        """The elements as an array of one dimension."""
        return self.base.flatten()


class ArrayType(type):
    """The class of arrays lists what its arrays have."""

    def __dir__(cls) -> List[str]:
        return [name for name in super().__dir__() if name not in ELSEWHERE]


class _Missing(DynamicClassAttribute):
    """In the place of a member that arrays do not have: says what there is instead. No __getattr__ does, since with one Python looks up every member of an
    array in the long way."""

    def __init__(self, name: str, instead: str) -> None:
        super().__init__(self.__get__)  # help() shows attributes of this kind also where dir() does not list them
        self._name, self._instead = name, instead
        self.__doc__ = f"Arrays do not have it: {instead}."  # what help() shows

    def __get__(self, array: Any, owner: Any = None) -> Any:
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}: {self._instead}")


def _method(name: str) -> Callable[..., Any]:
    def method(self: "ndarray", *args: Any, **options: Any) -> Any:
        return functions.FUNCTIONS[name](self, *args, **options)

    method.__name__ = name
    method.__doc__ = f"gpurest.{name} of the array."
    return method


class Members:
    """What an ndarray inherits besides its operators."""

    __slots__ = ()

    if TYPE_CHECKING:  # of the methods that stand in METHODS
        def all(self, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False, where: Any = True) -> ndarray: ...
        def any(self, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False, where: Any = True) -> ndarray: ...
        def argmax(self, axis: Optional[int] = None, out: Optional[ndarray] = None, *, keepdims: bool = False) -> ndarray: ...
        def argmin(self, axis: Optional[int] = None, out: Optional[ndarray] = None, *, keepdims: bool = False) -> ndarray: ...
        def argpartition(self, kth: Any, axis: Optional[int] = -1, kind: Any = None, order: Any = None) -> ndarray: ...
        def argsort(self, axis: Optional[int] = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> ndarray: ...
        def choose(self, choices: Any, out: Optional[ndarray] = None, mode: str = "raise") -> ndarray: ...
        def clip(self, min: Any = None, max: Any = None, out: Optional[ndarray] = None) -> ndarray: ...
        def compress(self, condition: Any, axis: Optional[int] = None, out: Optional[ndarray] = None) -> ndarray: ...
        def conj(self) -> ndarray: ...
        def conjugate(self) -> ndarray: ...
        def cumprod(self, axis: Optional[int] = None, dtype: Any = None, out: Optional[ndarray] = None) -> ndarray: ...
        def cumsum(self, axis: Optional[int] = None, dtype: Any = None, out: Optional[ndarray] = None) -> ndarray: ...
        def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray: ...
        def dot(self, b: Any, out: Optional[ndarray] = None) -> ndarray: ...
        def max(self, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False, initial: Any = UNSET, where: Any = True) -> ndarray: ...
        def mean(self, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, keepdims: bool = False, *, where: Any = True) -> ndarray: ...
        def min(self, axis: AxisLike = None, out: Optional[ndarray] = None, keepdims: bool = False, initial: Any = UNSET, where: Any = True) -> ndarray: ...
        def prod(self, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, keepdims: bool = False, initial: Any = UNSET, where: Any = True) -> ndarray: ...
        def repeat(self, repeats: Any, axis: Optional[int] = None) -> ndarray: ...
        def round(self, decimals: int = 0, out: Optional[ndarray] = None) -> ndarray: ...
        def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> ndarray: ...
        def std(self, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, ddof: float = 0, keepdims: bool = False, *, where: Any = True, mean: Any = UNSET) -> ndarray: ...
        def sum(self, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, keepdims: bool = False, initial: Any = UNSET, where: Any = True) -> ndarray: ...
        def take(self, indices: Any, axis: Optional[int] = None, out: Optional[ndarray] = None, mode: str = "raise") -> ndarray: ...
        def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Optional[ndarray] = None) -> ndarray: ...
        def var(self, axis: AxisLike = None, dtype: Any = None, out: Optional[ndarray] = None, ddof: float = 0, keepdims: bool = False, *, where: Any = True, mean: Any = UNSET) -> ndarray: ...
        def put(self, ind: Any, v: Any, mode: str = "raise") -> None: ...

    @property
    def _self(self) -> "ndarray":
        return cast("ndarray", self)

    @property
    def flags(self) -> Flags:
        """c_contiguous, f_contiguous, owndata and writeable, as attributes or keys."""
        array = self._self
        fortran = shapes.is_contiguous(array._shape[::-1], array._strides[::-1])
        stretched = [extent for extent, stride in zip(array._shape, array._strides) if stride == 0 and extent > 1]
        return Flags(array._contiguous, fortran, array.base is None, not stretched)

    @property
    def base(self) -> Any:
        """For a view, the array of all the memory that it is a view of; None for an array with memory of its own."""
        array, node = self._self, self._self._storage.node
        own = array._shape == node.shape and array._dtype is node.dtype and array._offset == 0 and array._contiguous
        return None if own else type(array)(array._storage, node.dtype, node.shape, shapes.contiguous_strides(node.shape))

    @property
    def flat(self) -> FlatIterator:
        """The elements as one dimension, for reading and writing by keys."""
        return FlatIterator(self._self)

    @flat.setter
    def flat(self, value: Any) -> None:
        array = self._self
        values = functions.FUNCTIONS["resized"](functions.FUNCTIONS["as_array"](value, array), array.size)
        array[...] = values.reshape(array._shape)

    @property
    def mT(self) -> "ndarray":
        """A view with the last two dimensions exchanged."""
        if self._self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return self._self.swapaxes(-1, -2)

    @property
    def real(self) -> "ndarray":
        """The real parts, a view of the array."""
        return _part_of(self._self, 0)

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> "ndarray":
        """The imaginary parts, a view of the array; of real numbers, zeros."""
        return _part_of(self._self, 1) if self._self._dtype.kind == "c" else cast("ndarray", functions.FUNCTIONS["zeros_like"](self))

    @imag.setter
    def imag(self, value: Any) -> None:
        if self._self._dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self.imag[...] = value

    def partition(self, kth: Any, axis: int = -1, kind: Any = None) -> None:
        """In place, so that what is at `kth` is where sorting would put it. It sorts everything."""
        self._self[...] = functions.call("partition", self, kth, axis)

    def byteswap(self, inplace: bool = False) -> "ndarray":
        """The elements with their bytes in the other order, of complex numbers those of each part; `inplace`: of the array itself."""
        array = self._self
        size = array._dtype.part.itemsize
        dense = array if array._contiguous and array._shape else array.copy().reshape(-1)
        swapped = dense.view("u1").reshape(-1, size)[:, ::-1].copy().reshape(-1).view(array._dtype).reshape(array._shape) if array.size else array.copy()
        if inplace:
            array[...] = swapped
        return array if inplace else swapped

    def resize(self, *new_shape: Any, refcheck: bool = True) -> None:
        """In place: cut off, or filled with zeros. Memory is new: views of the array keep the old one, so `refcheck` has nothing to check."""
        array = self._self
        shape = shapes.as_shape(new_shape[0] if len(new_shape) == 1 else new_shape)
        made = functions.FUNCTIONS["zeros_like"](array, shape=shape)
        count = min(made.size, array.size)
        made.reshape(-1)[:count] = array.ravel()[:count]
        array._storage, array._shape, array._strides, array._offset = made._storage, made._shape, made._strides, 0

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:  # noqa: A002 - NumPy's name
        """The elements in C order, written as bytes to a file or its path, or as text with `sep` between them."""
        data = self._self.tobytes() if sep == "" else sep.join(format % one for one in _flat_list(self._self.tolist())).encode()
        if hasattr(fid, "write"):
            fid.write(data)
        else:
            with open(fid, "wb") as file:
                file.write(data)

    def dumps(self) -> bytes:
        """The elements as a pickled array of the host."""
        return pickle.dumps(self._self.get())

    def dump(self, file: Any) -> None:
        """dumps() into a file or its path."""
        if hasattr(file, "write"):
            file.write(self.dumps())
        else:
            with open(file, "wb") as opened:
                opened.write(self.dumps())

    def __dir__(self) -> List[str]:
        return [name for name in super().__dir__() if name not in ELSEWHERE]

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        """The package, whose functions are those of the array API."""
        return functions.FUNCTIONS["namespace"]()


# What other packages' arrays have, and what there is here instead.
ELSEWHERE = {"data": "memory is the service's: x.buffer is the Buffer that holds the array, and kernels take x itself",
             "ctypes": "memory is the service's: x.get() brings the elements to the host", "cstruct": "kernels take x itself",
             "toDlpack": "numpy.from_dlpack(x, device='cpu', copy=True) gives a copy on the host", "reduced_view": "kernels reduce dimensions by themselves",
             "scatter_add": "gpurest.add.at(x, places, values)", "scatter_max": "gpurest.maximum.at(x, places, values)",
             "scatter_min": "gpurest.minimum.at(x, places, values)", "setflags": "arrays are writable, unless elements share memory",
             "getfield": "elements have no fields", "setfield": "elements have no fields", "cpu": "x.get()", "cuda": "x.to_device(…)", "numpy": "x.get()",
             "to": "x.to_device(…) or x.astype(…)", "mdspan": "kernels take x itself, or raw parameters of an ElementwiseKernel",
             "ptp": "gpurest.ptp(x)"}


def _part_of(array: "ndarray", at: int) -> "ndarray":
    """A view of one part of each number."""
    part = array._dtype.part
    if part is array._dtype:
        return array.view()
    return type(array)(array._storage, part, array._shape, tuple(2 * stride for stride in array._strides), 2 * array._offset + at)


def _flat_list(values: Any) -> List[Any]:
    return [values] if not isinstance(values, list) else [one for part in values for one in _flat_list(part)]


METHODS: Tuple[str, ...] = ("all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "compress", "conj", "conjugate", "cumprod",
                            "cumsum", "diagonal", "dot", "max", "mean", "min", "prod", "put", "repeat", "round", "searchsorted", "std", "sum", "take",
                            "trace", "var")
for _name in METHODS:
    setattr(Members, _name, _method(_name))


def take_functions() -> None:
    """The functions that are there by now are the methods themselves, and no call stands between."""
    for name in METHODS:
        function = functions.FUNCTIONS.get(name)
        if isinstance(function, FunctionType) and function.__name__ == name:  # others, such as ufuncs, are no methods of what they are attributes of
            setattr(Members, name, function)


for _name, _instead in ELSEWHERE.items():
    setattr(Members, _name, _Missing(_name, _instead))
