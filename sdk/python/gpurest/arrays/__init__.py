"""What the package offers for arrays: `from gpurest import …` gives these names."""

from __future__ import annotations

from .._values.dtypes import bool_, complex64, complex128, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64, uint8
from . import fft, format, linalg, members, numpy_calls  # noqa: F401 - what prints arrays, and what NumPy calls, are methods
from ._engine.config import config
from .comparisons import allclose, array_equal, array_equiv, isclose
from .creation import (arange, empty_like, eye, full, full_like, identity, linspace, logspace, meshgrid, ones, ones_like, tri, tril, triu, zeros,
                       zeros_like)
from .current import flush, synchronize
from .einsum import einsum
from .host import array, asarray, asnumpy, empty, frombuffer
from .indexing import flatnonzero, ix_, nonzero
from .linalg import diagonal, dot, inner, matmul, matvec, outer, tensordot, trace, vdot, vecdot, vecmat
from .ndarray import fetch, ndarray
from .reductions import (all, amax, amin, any, argmax, argmin, count_nonzero, cumprod, cumsum, cumulative_prod, cumulative_sum, max, mean, min, prod, ptp,
                         std, sum, var)
from .rows import log_softmax, softmax
from .joining import (array_split, column_stack, concatenate, dsplit, dstack, hsplit, hstack, row_stack, split, stack, unstack, vsplit, vstack)
from .shaping import (atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_shapes, broadcast_to, expand_dims, flip, matrix_transpose, moveaxis,
                      permute_dims, ravel, reshape, rollaxis, squeeze, swapaxes, transpose)
from .sorting import argsort, sort
from .ufuncs import (abs, absolute, acos, acosh, add, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, around, asin, asinh, atan, atan2,
                     atanh, bitwise_and, bitwise_count, bitwise_invert, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor,
                     cbrt, ceil, clip, conj, conjugate, copysign, cos, cosh, deg2rad, degrees, divide, divmod, e, equal, exp, exp2, expm1, fabs,
                     float_power, floor, floor_divide, fmax, fmin, fmod, frexp, gcd, greater, greater_equal, heaviside, hypot, inf, invert, isfinite,
                     isinf, isnan, lcm, ldexp, left_shift, less, less_equal, log, log10, log1p, log2, logaddexp, logaddexp2, logical_and, logical_not,
                     logical_or, logical_xor, maximum, minimum, mod, modf, multiply, nan, negative, newaxis, nextafter, not_equal, pi, positive, pow,
                     power, rad2deg, radians, reciprocal, remainder, right_shift, rint, round, sign, signbit, sin, sinh, spacing, sqrt, square,
                     subtract, tan, tanh, true_divide, trunc, ufunc, where)  # noqa: A004

members.take_functions()
bool = bool_  # noqa: A001 - the array API's name
concat = concatenate

__all__ = ["abs", "absolute", "acos", "acosh", "add", "all", "allclose", "amax", "amin", "any", "arange", "arccos", "arccosh", "arcsin", "arcsinh",
           "arctan", "arctan2", "arctanh", "argmax", "argmin", "argsort", "around", "array", "array_equal", "array_equiv", "array_split",
           "asarray", "asin", "asinh", "asnumpy", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "bitwise_and",
           "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bool",
           "bool_", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "cbrt", "ceil", "clip", "column_stack", "complex128", "complex64", "concat", "concatenate",
           "config", "conj", "conjugate", "copysign", "cos", "cosh", "count_nonzero", "cumprod", "cumsum", "cumulative_prod",
           "cumulative_sum", "deg2rad", "degrees", "diagonal", "divide", "divmod", "dot", "dsplit", "dstack", "e", "einsum", "empty",
           "empty_like", "equal", "exp", "exp2", "expand_dims", "expm1", "eye", "fabs", "fetch", "fft", "flatnonzero", "flip", "float16",
           "float32", "float64", "float_power", "floor", "floor_divide", "flush", "fmax", "fmin", "fmod", "frexp", "frombuffer", "full",
           "full_like", "gcd", "greater", "greater_equal", "heaviside", "hsplit", "hstack", "hypot", "identity", "inf", "inner", "int16",
           "int32", "int64", "int8", "invert", "isclose", "isfinite", "isinf", "isnan", "ix_", "lcm", "ldexp", "left_shift", "less",
           "less_equal", "linspace", "log", "log10", "log1p", "log2", "log_softmax", "logaddexp", "logaddexp2", "logical_and",
           "logical_not", "logical_or", "logical_xor", "logspace", "matmul", "matrix_transpose", "max", "matvec", "maximum", "mean", "meshgrid",
           "min", "minimum", "mod", "modf", "moveaxis", "multiply", "nan", "ndarray", "negative", "newaxis", "nextafter",
           "nonzero", "not_equal", "ones", "ones_like", "outer", "permute_dims", "pi", "positive", "pow", "power", "prod", "ptp", "rad2deg",
           "radians", "ravel", "reciprocal", "remainder", "reshape", "right_shift", "rint", "rollaxis", "round", "row_stack",
           "sign", "signbit", "sin", "sinh", "softmax", "sort", "spacing", "split", "sqrt", "square", "squeeze", "stack", "std", "subtract",
           "sum", "swapaxes", "synchronize", "tan", "tanh", "tensordot", "trace", "transpose", "tri", "tril", "triu", "true_divide",
           "trunc", "ufunc", "uint16", "uint32", "uint64", "uint8", "unstack", "var", "vdot", "vecdot", "vecmat", "vsplit", "vstack", "where", "zeros", "zeros_like"]
