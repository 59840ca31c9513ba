"""CuPy's names: `import gpurest.cupy as cupy` instead of `import cupy`, and gpurest.cupyx instead of cupyx. Needs NumPy, as CuPy does.

Arrays are gpurest's, on the default client's service (GPUREST_URL); docs/arrays.md tells of them. Here are CuPy's spellings: types that can be called,
cuda, kernels by CuPy's rules, testing. What CuPy has and this module has not raises MissingError, an AttributeError and NotImplementedError that says
what there is instead."""
from __future__ import annotations

from importlib import import_module

try:
    import numpy as _numpy  # noqa: F401
except ImportError as error:
    raise ImportError("gpurest.cupy needs NumPy, as CuPy does: pip install numpy; gpurest's own arrays do without") from error

from .. import __version__ as __version__
from .. import arrays as _arrays
from ..arrays import *  # noqa: F403 - its __all__ is the list
from ..arrays import routines as _routines
from ..arrays.kernels import ElementwiseKernel, ReductionKernel
from ..arrays.members import FlatIterator as flatiter
from ..arrays.routines import *  # noqa: F403
from ..arrays.ufuncs import ufunc
from ..cuda import is_available
from . import cuda, lib, testing, types
from .arrays import array, asarray, asnumpy, get_array_module, ndarray  # type: ignore[assignment]
from .cuda.memory import default_pool as get_default_memory_pool
from .cuda.pinned_memory import default_pool as get_default_pinned_memory_pool
from .fusion import fuse
from .grids import broadcast, c_, ix_, mgrid, ogrid, r_
from .missing import MissingError, refusing
from .older import alltrue, asfarray, clear_memo, cumproduct, in1d, msort, product, round_, show_config, sometrue, trapz
from .raw import RawKernel, RawModule
from .types import *  # type: ignore[assignment]  # noqa: F403

# Not gpurest's own, which the names above stand for: these say what there is instead of what is missing.
fft, linalg, random = (import_module(f".{name}", __name__) for name in ("fft", "linalg", "random"))

__all__ = ["ElementwiseKernel", "MissingError", "RawKernel", "RawModule", "ReductionKernel", "alltrue", "array", "asarray", "asfarray", "asnumpy",
           "broadcast", "c_", "clear_memo", "cuda", "cumproduct", "fft", "flatiter", "fuse", "get_array_module", "get_default_memory_pool",
           "get_default_pinned_memory_pool", "in1d", "is_available", "ix_", "lib", "linalg", "mgrid", "msort", "ndarray", "ogrid", "product", "r_",
           "random", "round_", "show_config", "sometrue", "testing", "trapz", "ufunc"]
__all__ += _arrays.__all__
__all__ += _routines.__all__
__all__ += types.__all__

__getattr__ = refusing("cupy")
