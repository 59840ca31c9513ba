"""Arrays from files, text and functions, and into files. What is read or written passes through NumPy on the host, which these need."""

from __future__ import annotations

from typing import Any, Callable

from ..._values import dtypes
from .. import host, reductions, ufuncs
from .._engine import shapes
from ..ndarray import ndarray
from ..ufuncs import as_array
from .picking import indices

__all__ = ["asanyarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "copy", "from_dlpack", "fromfile", "fromfunction", "fromiter", "fromstring",
           "genfromtxt", "load", "loadtxt", "require", "save", "savetxt", "savez", "savez_compressed"]


def _numpy() -> Any:
    if dtypes.numpy is None:
        raise ImportError("reading and writing files of arrays needs NumPy: pip install numpy")
    return dtypes.numpy


def _of_host(one: Any) -> Any:
    return one.get() if isinstance(one, ndarray) else one


def _reader(name: str, told: str) -> Callable[..., ndarray]:
    def function(*args: Any, **options: Any) -> ndarray:
        return host.asarray(getattr(_numpy(), name)(*args, **options))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{told}: numpy.{name}, with its arguments, as an array on the device."
    return function


fromfile = _reader("fromfile", "The elements of a binary or text file")
fromiter = _reader("fromiter", "The elements that an iterator gives")
fromstring = _reader("fromstring", "The numbers of a text")
loadtxt = _reader("loadtxt", "The numbers of a text file")
genfromtxt = _reader("genfromtxt", "The numbers of a text file with gaps")


class NpzFile:
    """The arrays of a .npz file by their names. Each is read and uploaded when it is asked for; close it, or use it in a with statement."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.files = file.files

    def __getitem__(self, name: str) -> ndarray:
        return host.asarray(self._file[name])

    def __contains__(self, name: object) -> bool:
        return name in self.files

    def __len__(self) -> int:
        return len(self.files)

    def __enter__(self) -> "NpzFile":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def load(file: Any, mmap_mode: Any = None, allow_pickle: bool = False) -> Any:
    """The array of a .npy file, or an NpzFile of those of a .npz file."""
    found = _numpy().load(file, mmap_mode=mmap_mode, allow_pickle=allow_pickle)
    return NpzFile(found) if hasattr(found, "files") else host.asarray(found)


def save(file: Any, arr: Any, allow_pickle: bool = False) -> None:
    """Writes a .npy file."""
    _numpy().save(file, _of_host(arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, **kwds: Any) -> None:
    """Writes several arrays into a .npz file."""
    _numpy().savez(file, *map(_of_host, args), **{name: _of_host(one) for name, one in kwds.items()})


def savez_compressed(file: Any, *args: Any, **kwds: Any) -> None:
    """Writes several arrays into a compressed .npz file."""
    _numpy().savez_compressed(file, *map(_of_host, args), **{name: _of_host(one) for name, one in kwds.items()})


def savetxt(fname: Any, X: Any, *args: Any, **options: Any) -> None:
    """Writes the elements as text: numpy.savetxt, with its arguments."""
    _numpy().savetxt(fname, _of_host(X), *args, **options)


def asanyarray(a: Any, dtype: Any = None, order: Any = None) -> ndarray:
    """asarray(): there are no subclasses."""
    return host.asarray(a, dtype, order)


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """The array in C order, with one dimension at least."""
    made = host.asarray(a, dtype, "C")
    return made if made.ndim else made.reshape(1)


def asfortranarray(a: Any, dtype: Any = None) -> ndarray:
    """The array with the first dimension fastest in memory, and one dimension at least."""
    made = host.asarray(a, dtype, "F")
    return made if made.ndim else made.reshape(1)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> ndarray:
    """asarray(), or ValueError where an element is NaN or infinite. The elements are looked at: this sends what is queued."""
    made = host.asarray(a, dtype, order)
    if made._dtype.kind in "fc" and not bool(reductions.all(ufuncs.isfinite(made))):
        raise ValueError("array must not contain infs or NaNs")
    return made


def require(a: Any, dtype: Any = None, requirements: Any = None) -> ndarray:
    """An array with the type and the flags that are required: "C", "F", "A", "W", "O" or their long names."""
    names = {"C": "C", "C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "F": "F", "F_CONTIGUOUS": "F", "FORTRAN": "F", "A": "A", "ALIGNED": "A", "W": "W",
             "WRITEABLE": "W", "O": "O", "OWNDATA": "O", "E": "E", "ENSUREARRAY": "E"}
    wanted = {names[str(one).upper()] for one in ([requirements] if isinstance(requirements, str) else requirements or ())}
    if {"C", "F"} <= wanted:
        raise ValueError('Cannot specify both "C" and "F" order')
    made = host.asarray(a, dtype, "C" if "C" in wanted else "F" if "F" in wanted else None)
    ready = (made.flags.owndata or "O" not in wanted) and (made.flags.writeable or "W" not in wanted)
    return made if ready else made.copy("F" if "F" in wanted else "C")


def copy(a: Any, order: str = "K", subok: bool = False) -> ndarray:
    """A copy of the array."""
    array = as_array(a)
    return array.copy("F" if order == "F" or (order in ("K", "A") and array.flags.f_contiguous and not array.flags.c_contiguous) else "C")


def from_dlpack(x: Any, *, device: Any = None, copy: Any = None) -> ndarray:
    """An array of ours as it is; else a copy of what an object on the host offers by the DLPack protocol."""
    return x if isinstance(x, ndarray) else host.asarray(_numpy().from_dlpack(x))


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """What the function makes of the places of all elements, an array for each dimension."""
    extents = tuple(shape) if shapes.is_several(shape) else (shape,)
    places = indices(extents, dtype=dtype)
    return function(*(places[at] for at in range(len(extents))), **kwargs)
