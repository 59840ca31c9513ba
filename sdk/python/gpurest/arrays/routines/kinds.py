"""Questions about element types, numbers as text, and options of printing: NumPy's own functions where nothing of an array is computed. They need
NumPy."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict

from ..._session.default import default_client
from ..._values import dtypes
from ..._values.dtypes import DType
from .. import ufuncs
from .._engine.shapes import size_of
from ..functions import FUNCTIONS
from ..ndarray import ndarray

__all__ = ["array2string", "array_repr", "array_str", "astype", "base_repr", "binary_repr", "can_cast", "common_type", "format_float_positional",
           "format_float_scientific", "get_printoptions", "issubdtype", "min_scalar_type", "mintypecode", "printoptions", "promote_types",
           "result_type", "set_printoptions", "show_config", "typename"]


def _told(one: Any) -> Any:
    if isinstance(one, DType):
        return dtypes.public(one)
    return one.dtype if isinstance(one, ndarray) else one


def _numpys(name: str) -> Callable[..., Any]:
    """The function of that name, of which no argument is an array."""
    def function(*args: Any, **options: Any) -> Any:
        if dtypes.numpy is None:
            raise ImportError(f"gpurest.{name} needs NumPy: pip install numpy")
        return getattr(dtypes.numpy, name)(*map(_told, args), **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"numpy.{name}."
    return function


base_repr = _numpys("base_repr")
binary_repr = _numpys("binary_repr")
format_float_positional = _numpys("format_float_positional")
format_float_scientific = _numpys("format_float_scientific")
get_printoptions = _numpys("get_printoptions")
issubdtype = _numpys("issubdtype")
mintypecode = _numpys("mintypecode")
printoptions = _numpys("printoptions")
promote_types = _numpys("promote_types")
set_printoptions = _numpys("set_printoptions")
typename = _numpys("typename")


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether values of a type, or of an array, may become those of another type."""
    return bool(_numpys("can_cast")(from_, to, casting))


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The type of what these arrays, types and numbers give together."""
    return _numpys("result_type")(*arrays_and_dtypes)


def min_scalar_type(a: Any) -> Any:
    """Of an array its type, of a number the smallest one that holds it."""
    return a.dtype if isinstance(a, ndarray) and a.ndim else _numpys("min_scalar_type")(a.item() if isinstance(a, ndarray) else a)


def common_type(*arrays: Any) -> Any:
    """The floating type of these arrays together."""
    kinds = []
    for one in map(ufuncs.as_array, arrays):
        if one._dtype.kind == "b":
            raise TypeError("can't get common type for non-numeric array")
        kinds.append(one._dtype if one._dtype.kind in "fc" else dtypes.float64)
    found: Any = dtypes.public(dtypes.promote_all(tuple(kinds)) if kinds else dtypes.float16)
    return getattr(found, "type", found)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> ndarray:
    """The elements as another type; without `copy` the array itself where it has that already."""
    if not isinstance(x, ndarray):
        raise TypeError(f"Input should be a gpurest array. It is of type {type(x)}.")
    return x.astype(dtype, copy=copy)


def array_repr(arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """repr() of the array, from whose corners a few elements are fetched."""
    return repr(ufuncs.as_array(arr))


def array_str(a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """str() of the array, from whose corners a few elements are fetched."""
    return str(ufuncs.as_array(a))


def array2string(a: Any, **options: Any) -> str:
    """numpy.array2string with its options. An array above NumPy's threshold is fetched by its corners, not as a whole."""
    array = ufuncs.as_array(a)
    settings: Dict[str, Any] = {**get_printoptions(), **{name: value for name, value in options.items() if value is not None}}
    if size_of(array.shape) <= settings["threshold"]:
        return str(_numpys("array2string")(array.get(), **options))
    return str(array)


def show_config() -> None:
    """Prints which service the default client uses, and its devices."""
    client = default_client()
    print(f"gpurest {_namespace().__version__} at {client.url}: service {client.version().get('version', '')}")
    for device in client.devices():
        print(f"{device.get('id', '')}: {device.get('name', '')}")


def _namespace() -> Any:
    return sys.modules["gpurest"]


FUNCTIONS["namespace"] = _namespace
