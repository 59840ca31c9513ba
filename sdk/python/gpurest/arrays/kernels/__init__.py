"""CuPy's ElementwiseKernel and ReductionKernel: the loop is written here, the user writes what is inside."""
from __future__ import annotations

from .elementwise import ElementwiseKernel
from .reduction import ReductionKernel

__all__ = ["ElementwiseKernel", "ReductionKernel"]
