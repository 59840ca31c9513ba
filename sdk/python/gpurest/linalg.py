"""Linear algebra with numpy.linalg's names: matrices are the last two dimensions of an array, all others a stack of them.

Computed on the device by the service's built-in factorizations, in float32 if all arrays are, else in float64. What can fail (solve, inv, cholesky, eigh, svd and
what is made of them) sends what is queued at once, so that LinAlgError is raised where the function is called; det, slogdet, qr and norms of
vectors only queue work."""

from __future__ import annotations

from typing import Any

from .arrays.matrices.general import EigResult, eig, eigvals
from .arrays.matrices.least_squares import cond, lstsq, matrix_rank, pinv
from .arrays.matrices.norms import matrix_norm, norm, vector_norm
from .arrays.matrices.orthogonal import EighResult, QRResult, SVDResult, eigh, eigvalsh, qr, svd, svdvals
from .arrays.matrices.products import diagonal, matmul, matrix_power, multi_dot, outer, tensordot, trace, vecdot
from .arrays.matrices.solving import SlogdetResult, cholesky, det, inv, slogdet, solve, tensorinv, tensorsolve
from .arrays.matrices.stacks import LinAlgError
from .arrays.ndarray import ndarray
from .arrays.routines.calculus import cross as _cross
from .arrays.shaping import matrix_transpose
from .arrays.ufuncs import as_arrays as _as_arrays

__all__ = ["EigResult", "EighResult", "LinAlgError", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
           "inv", "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet",
           "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm"]


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> ndarray:
    """The vector perpendicular to two vectors of three components, for each pair along an axis."""
    first, second = _as_arrays((x1, x2))
    if first._shape[axis] != 3 or second._shape[axis] != 3:
        raise ValueError(f"Both input arrays must be (arrays of) 3-dimensional vectors, but they are {first._shape[axis]} and {second._shape[axis]} dimensional instead.")
    return _cross(first, second, axis=axis)
