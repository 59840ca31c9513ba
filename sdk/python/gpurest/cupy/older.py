"""Names that CuPy keeps of older NumPys, and what it says of itself."""
from __future__ import annotations

from typing import Any

import numpy

from .. import arrays
from .. import __version__
from .._session.default import default_client
from ..arrays import routines
from ..arrays.ndarray import ndarray
from ..cuda import clear_kernel_cache

alltrue, sometrue, product, cumproduct, round_, trapz = arrays.all, arrays.any, arrays.prod, arrays.cumprod, arrays.round, routines.trapezoid


def asfarray(a: Any, dtype: Any = float) -> ndarray:
    """As floats: `dtype`, or float64 where that is no float."""
    return arrays.asarray(a, dtype if numpy.issubdtype(dtype, numpy.inexact) else float)


def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> ndarray:
    """isin() of all elements in one dimension."""
    return routines.isin(arrays.ravel(ar1), ar2, assume_unique, invert)


def msort(a: Any) -> ndarray:
    """Sorted along the first axis."""
    return arrays.sort(a, axis=0)


def clear_memo() -> None:
    """Forgets compiled kernels: gpurest.cuda.clear_kernel_cache()."""
    clear_kernel_cache()


def runtime_info() -> str:
    """The package, the service and its devices, a line each."""
    client = default_client()
    told = client.version()
    rows = [("gpurest", __version__), ("service", f"{told['server']} {told['version']} at {client.url}"), ("compiler", told["compiler"])]
    rows += [(f"device {at}", f"{one['id']}: {one['name']}, compute capability {one['compute_capability']}") for at, one in enumerate(client.devices())]
    return "\n".join(f"{name:<30}: {value}" for name, value in rows) + "\n"


def show_config(*, _full: bool = False) -> None:
    """Prints the package, the service and its devices."""
    print(runtime_info(), end="")
