"""What the package offers for arrays: `from gpurest import …` gives these names."""

from __future__ import annotations

from .._values.dtypes import bool_, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64, uint8
from . import format, linalg, numpy_calls, random  # noqa: F401 - what prints arrays, and what NumPy calls, are methods
from ._engine.config import config
from .creation import arange, empty_like, eye, full, full_like, identity, linspace, meshgrid, ones, ones_like, tril, triu, zeros, zeros_like
from .current import flush, synchronize
from .einsum import einsum
from .host import array, asarray, asnumpy, empty, frombuffer
from .indexing import flatnonzero, ix_, nonzero, take
from .linalg import diagonal, dot, inner, matmul, outer, tensordot, trace, vdot
from .ndarray import fetch, ndarray
from .reductions import all, any, argmax, argmin, count_nonzero, cumprod, cumsum, max, mean, min, prod, std, sum, var
from .rows import log_softmax, softmax
from .shaping import (broadcast_to, concatenate, expand_dims, flip, hstack, moveaxis, ravel, repeat, reshape, split, squeeze, stack, swapaxes,
                      transpose, vstack)
from .sorting import argsort, sort
from .ufuncs import (abs, absolute, add, allclose, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, array_equal, bitwise_and, bitwise_or,
                     bitwise_xor, cbrt, ceil, clip, copysign, cos, cosh, deg2rad, divide, e, equal, exp, exp2, expm1, floor, floor_divide, fmax, fmin,
                     fmod, greater, greater_equal, hypot, inf, invert, isclose, isfinite, isinf, isnan, left_shift, less, less_equal, log, log10,
                     log1p, log2, logaddexp, logical_and, logical_not, logical_or, logical_xor, maximum, minimum, mod, multiply, nan, nan_to_num,
                     negative, newaxis, not_equal, pi, power, rad2deg, reciprocal, remainder, right_shift, rint, round, sign, signbit, sin, sinh,
                     sqrt, square, subtract, tan, tanh, true_divide, trunc, where)  # noqa: A004

concat = concatenate

__all__ = ["abs", "absolute", "add", "all", "allclose", "any", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
           "argmax", "argmin", "argsort", "array", "array_equal", "asarray", "asnumpy", "bitwise_and", "bitwise_or", "bitwise_xor", "bool_", "broadcast_to",
           "cbrt", "ceil", "clip", "concat", "concatenate", "config", "copysign", "cos", "cosh", "count_nonzero", "cumprod", "cumsum", "deg2rad",
           "diagonal", "divide", "dot", "e", "einsum", "empty", "empty_like", "equal", "exp", "exp2", "expand_dims", "expm1", "eye", "fetch", "flatnonzero", "flip",
           "float16", "float32", "float64", "floor", "floor_divide", "flush", "fmax", "fmin", "fmod", "frombuffer", "full", "full_like", "greater",
           "greater_equal", "hstack", "hypot", "identity", "inf", "inner", "int16", "int32", "int64", "int8", "invert", "isclose", "isfinite",
           "isinf", "isnan", "ix_", "left_shift", "less", "less_equal", "linalg", "linspace", "log", "log10", "log1p", "log2", "logaddexp",
           "log_softmax", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "max", "maximum", "mean", "meshgrid", "min", "minimum", "mod",
           "moveaxis", "multiply", "nan", "nan_to_num", "ndarray", "negative", "newaxis", "nonzero", "not_equal", "ones", "ones_like", "outer",
           "pi", "power", "prod", "rad2deg", "random", "ravel", "reciprocal", "remainder", "repeat", "reshape", "right_shift", "rint", "round",
           "sign", "signbit", "sin", "sinh", "softmax", "sort", "split", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "synchronize",
           "take", "tan", "tanh", "tensordot", "trace", "transpose", "tril", "triu", "true_divide", "trunc", "uint16", "uint32", "uint64", "uint8",
           "var", "vdot", "vstack", "where", "zeros", "zeros_like"]
