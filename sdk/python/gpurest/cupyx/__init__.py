"""cupyx's names: `import gpurest.cupyx as cupyx` instead of `import cupyx`. What is not here can be imported, and says at its use what there is instead."""
from __future__ import annotations

from ..cupy.missing import missing_module, refusing
from ..cupy.older import runtime_info as get_runtime_info
from . import profiler, scipy
from .functions import (empty_like_pinned, empty_pinned, errstate, geterr, rsqrt, scatter_add, scatter_max, scatter_min, seterr, zeros_like_pinned,
                        zeros_pinned)

jit = missing_module("cupyx.jit")
MISSING_MODULES = ("cublas", "cusolver", "cusparse", "cusparselt", "cutensor", "distributed", "lapack", "linalg", "optimizing", "signal", "time", "tools")
globals().update({name: missing_module(f"cupyx.{name}") for name in MISSING_MODULES})

__all__ = ["empty_like_pinned", "empty_pinned", "errstate", "get_runtime_info", "geterr", "jit", "profiler", "rsqrt", "scatter_add", "scatter_max",
           "scatter_min", "scipy", "seterr", "zeros_like_pinned", "zeros_pinned"]

__getattr__ = refusing("cupyx")
