"""What the package offers for arrays: `from gpurest import …` gives these names."""

from __future__ import annotations

from . import _linalg as linalg
from . import _random as random
from ._array import fetch, ndarray
from ._config import config
from ._creation import (arange, array, asarray, asnumpy, empty, empty_like, eye, frombuffer, full, full_like, identity, linspace, meshgrid, ones,
                        ones_like, tril, triu, zeros, zeros_like)
from ._current import flush, synchronize
from ._dtypes import bool_, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64
from ._einsum import einsum
from ._indexing import flatnonzero, ix_, nonzero, take
from ._linalg import diagonal, dot, inner, matmul, outer, tensordot, trace, vdot
from ._reduce import all, any, argmax, argmin, count_nonzero, cumprod, cumsum, max, mean, min, prod, std, sum, var  # noqa: A004
from ._rows import log_softmax, softmax
from ._shaping import (broadcast_to, concatenate, expand_dims, flip, hstack, moveaxis, ravel, repeat, reshape, split, squeeze, stack, swapaxes,
                       transpose, vstack)
from ._sorting import argsort, sort
from ._ufuncs import (abs, absolute, add, allclose, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, array_equal,  # noqa: A004
                      bitwise_and, bitwise_or, bitwise_xor, cbrt, ceil, clip, copysign, cos, cosh, deg2rad, divide, e, equal, exp, exp2, expm1,
                      floor, floor_divide, fmax, fmin, fmod, greater, greater_equal, hypot, inf, invert, isclose, isfinite, isinf, isnan,
                      left_shift, less, less_equal, log, log1p, log2, log10, logaddexp, logical_and, logical_not, logical_or, logical_xor,
                      maximum, minimum, mod, multiply, nan, nan_to_num, negative, newaxis, not_equal, pi, power, rad2deg, reciprocal, remainder,
                      right_shift, rint, round, sign, signbit, sin, sinh, sqrt, square, subtract, tan, tanh, true_divide, trunc, where)

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
