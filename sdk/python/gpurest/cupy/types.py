"""cupy's types and constants: NumPy's own, so that `cupy.float32(3)` is a number and cupy.float32 a dtype."""
from __future__ import annotations

from typing import Any

import numpy
from numpy import (bool_, byte, cdouble, complex64, complex128, complexfloating, csingle, double, dtype, euler_gamma, finfo, float16,
                   float32, float64, floating, generic, half, iinfo, index_exp, inexact, int8, int16, int32, int64, int_, intc, integer, intp,
                   longlong, ndindex, number, s_, short, signedinteger, single, ubyte, uint, uint8, uint16, uint32, uint64, uintc, uintp, ulonglong,
                   unsignedinteger, ushort)

# Names of NumPy before 2.0 that CuPy keeps, and those that only NumPy from 2.0 on has.
bool = bool_  # noqa: A001 - NumPy's name
float_, complex_, cfloat, singlecomplex = float64, complex128, complex128, complex64
long, ulong = getattr(numpy, "long", int_), getattr(numpy, "ulong", uint)
Inf = Infinity = PINF = infty = numpy.inf
NaN = NAN = numpy.nan
NINF, PZERO, NZERO = -numpy.inf, 0.0, -0.0
exceptions: Any = getattr(numpy, "exceptions", numpy)  # a module of its own from NumPy 1.25 on
AxisError, ComplexWarning = exceptions.AxisError, exceptions.ComplexWarning
RankWarning = getattr(exceptions, "RankWarning", UserWarning)
VisibleDeprecationWarning = exceptions.VisibleDeprecationWarning

__all__ = ["AxisError", "ComplexWarning", "Inf", "Infinity", "NAN", "NINF", "NZERO", "NaN", "PINF", "PZERO", "RankWarning", "VisibleDeprecationWarning",
           "bool", "bool_", "byte", "cdouble", "cfloat", "complex128", "complex64", "complex_", "complexfloating", "csingle", "double", "dtype",
           "euler_gamma", "exceptions", "finfo", "float16", "float32", "float64", "float_", "floating", "generic", "half", "iinfo", "index_exp",
           "inexact", "infty", "int16", "int32", "int64", "int8", "int_", "intc", "integer", "intp", "long", "longlong", "ndindex", "number", "s_",
           "short", "signedinteger", "single", "singlecomplex", "ubyte", "uint", "uint16", "uint32", "uint64", "uint8", "uintc", "uintp", "ulong",
           "ulonglong", "unsignedinteger", "ushort"]
