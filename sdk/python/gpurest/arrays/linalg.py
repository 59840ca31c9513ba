"""Products of matrices and vectors."""

from __future__ import annotations

import operator
from typing import Any, List, Optional

from .._values import dtypes
from . import host, reductions, shaping, ufuncs
from ._engine import shapes
from ._engine.builtins import rows_side_by_side
from ._engine.expr import MATMUL, Node
from .functions import method
from .ndarray import ndarray, wrap

SMALL_RESULT = 256 * 256  # elements
PIECE_MIN = 1024  # products that a piece of a sum has at least
PIECES_MAX = 128


def _cast_both(a: ndarray, b: ndarray) -> List[ndarray]:
    kind = dtypes.promote(a._dtype, b._dtype)
    return [a.astype(kind, copy=False), b.astype(kind, copy=False)]


def _mismatch(a: ndarray, b: ndarray) -> ValueError:
    return ValueError(f"matmul: shapes {a._shape} and {b._shape} do not match")


@method
def matmul(a: Any, b: Any, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    """The matrix product over the last two dimensions; those before are broadcast. A 1-d operand is a row on the left, a column on the
    right, and its dimension is gone from the result. `out` takes the result; `dtype` is the type to compute in."""
    if dtype is None and out is None:
        return _matmul(a, b)
    if dtype is not None:
        a, b = (one.astype(dtype, casting=casting, copy=False) for one in ufuncs.as_arrays((a, b), out))
    return ufuncs.into(out, _matmul(a, b, out), True, casting, "matmul")


def _matmul(a: Any, b: Any, out: Any = None) -> ndarray:
    left, right = ufuncs.as_arrays((a, b), out)
    if left.ndim == 0 or right.ndim == 0:
        raise ValueError("matmul: operands have at least one dimension")
    if left._shape[-1] != right._shape[-2 if right.ndim > 1 else 0]:
        raise _mismatch(left, right)
    left, right = _cast_both(left, right)
    if left.ndim == 1 or right.ndim == 1:
        return _with_vector(left, right)
    if left._dtype.kind == "c":
        return _complex_product(left, right)
    if left._dtype.kind == "b":  # whether any product is 1: a sum that no rounding makes 0
        return matmul(left.astype(dtypes.float32), right.astype(dtypes.float32)).astype(dtypes.bool_)
    work = left._engine.language.product_type(left._dtype)
    if work is not left._dtype:
        return matmul(left.astype(work), right.astype(work)).astype(left._dtype)
    try:
        batch = shapes.broadcast_shapes(left._shape[:-2], right._shape[:-2])
    except ValueError:
        raise _mismatch(left, right) from None
    if not batch and _few_tiles(left, right):
        return _cut(left, right)
    shape = batch + (left._shape[-2], right._shape[-1])
    return _product(_batched(left, batch), _batched(right, batch)).reshape(shape)


def _complex_product(left: ndarray, right: ndarray) -> ndarray:
    """As one product of real matrices: the left one is read as rows of pairs (a, b), and each number c + id of the right one becomes the square
    (c, d), (-d, c), whose rows they meet."""
    part, kind = left._dtype.part, left._dtype
    rows = (left if left._contiguous else left.copy()).view(part)
    inner, columns = right._shape[-2:]
    wide = host.empty(right._shape[:-2] + (inner, 2, columns), kind, session=right._engine.session)
    wide[..., 0, :] = right
    wide[..., 1, :] = ufuncs.of_complex("times_i", right, kind)
    squares = wide.view(part).reshape(right._shape[:-2] + (2 * inner, 2 * columns))
    return matmul(rows, squares).view(kind)


def _product(left: ndarray, right: ndarray) -> ndarray:
    """Of matrices, or of two equally long rows of them. The built-in product takes rows without gaps: others are copied."""
    engine = left._engine
    with engine.lock:
        left, right = (one if rows_side_by_side(one._shape, one._strides) and engine.language.takes(one._load()) else one.copy() for one in (left, right))
        shape = left._shape[:-1] + right._shape[-1:]
        return wrap(Node(engine, MATMUL, left._dtype, shape, "matmul", (left._load(), right._load())))


def _few_tiles(left: ndarray, right: ndarray) -> bool:
    """A small result of long sums would keep a few multiprocessors of a GPU busy, and leave the others idle. Halves are not cut: the pieces of their
    sums would be rounded to halves. On a cpu device the library, or our kernel, deals such sums out itself."""
    if left._engine.session.device.startswith("cpu"):
        return False
    return left._shape[0] * right._shape[1] <= SMALL_RESULT and left._shape[1] >= 2 * PIECE_MIN and left._dtype.name != "float16"


def _cut(left: ndarray, right: ndarray) -> ndarray:
    """The sums in pieces, side by side, then added up."""
    rows, inner = left._shape
    columns, kind = right._shape[1], left._dtype
    pieces = min(PIECES_MAX, inner // PIECE_MIN)
    each = inner // pieces
    many = left[:, :pieces * each].reshape(rows, pieces, each).transpose(1, 0, 2)
    total = _product(many, right[:pieces * each].reshape(pieces, each, columns)).sum(axis=0, dtype=kind)
    return total + _product(left[:, pieces * each:], right[pieces * each:]) if pieces * each < inner else total


def _batched(array: ndarray, batch: shapes.Shape) -> ndarray:
    """With one dimension of batches in front of the two of the matrix, or none."""
    if not batch:
        return array
    wide = shaping.broadcast_to(array, batch + array._shape[-2:])
    return wide.reshape((shapes.size_of(batch),) + array._shape[-2:])


def _with_vector(left: ndarray, right: ndarray) -> ndarray:
    """Each element of the result is the sum of one row's products: a reduction, which reads the matrix once."""
    if left.ndim == 1 and right.ndim > 1:
        right = right.swapaxes(-1, -2)
        left, right = right, left
    kind = left._dtype
    if kind.kind == "b":
        return (left & right).any(axis=-1)
    work = dtypes.float32 if kind.name == "float16" else kind
    return (left.astype(work, copy=False) * right.astype(work, copy=False)).sum(axis=-1, dtype=kind)


@method
def dot(a: Any, b: Any, out: Optional[ndarray] = None) -> ndarray:
    """Of 1-d and 2-d arrays what matmul() gives; scalars multiply."""
    made = _dot(*ufuncs.as_arrays((a, b), out))
    if out is None:
        return made
    if not isinstance(out, ndarray) or out._dtype is not made._dtype or out._shape != made._shape or not out._contiguous:
        raise ValueError("output array is not acceptable (must have the right datatype, number of dimensions, and be a C-Array)")
    out[...] = made
    return out


def _dot(left: ndarray, right: ndarray) -> ndarray:
    if left.ndim == 0 or right.ndim == 0:
        return left * right
    if right.ndim > 2 and left.ndim > 0:
        return tensordot(left, right, ([left.ndim - 1], [right.ndim - 2]))
    if left.ndim > 2 and right.ndim == 2:
        return matmul(left.reshape(-1, left._shape[-1]), right).reshape(left._shape[:-1] + right._shape[-1:])
    return matmul(left, right)


def vdot(a: Any, b: Any) -> ndarray:
    """The sum of products of all elements, complex ones of `a` conjugated."""
    left, right = ufuncs.as_arrays((a, b))
    return matmul(_conjugated(left).ravel(), right.ravel())


def _conjugated(array: ndarray) -> ndarray:
    return ufuncs.conjugate(array) if array._dtype.kind == "c" else array


def inner(a: Any, b: Any) -> ndarray:
    """Sum of products over both last dimensions."""
    left, right = ufuncs.as_arrays((a, b))
    if left.ndim == 0 or right.ndim == 0:
        return left * right
    return tensordot(left, right, ([left.ndim - 1], [right.ndim - 1]))


def outer(a: Any, b: Any, out: Optional[ndarray] = None) -> ndarray:
    """Every element of a times every one of b, as a matrix."""
    left, right = ufuncs.as_arrays((a, b), out)
    made = left.reshape(left.size, 1) * right.reshape(1, right.size)
    return ufuncs.into(out, made, name="outer")


def tensordot(a: Any, b: Any, axes: Any = 2) -> ndarray:
    """Sum of products over pairs of dimensions: the last `axes` of a with the first of b, or two lists of dimensions."""
    left, right = ufuncs.as_arrays((a, b))
    if shapes.is_several(axes):
        first, second = ([one] if not shapes.is_several(one) else list(one) for one in axes)
    else:
        first, second = list(range(left.ndim - axes, left.ndim)), list(range(axes))
    first = [shapes.strict_axis(axis, left.ndim) for axis in first]
    second = [shapes.strict_axis(axis, right.ndim) for axis in second]
    if [left._shape[axis] for axis in first] != [right._shape[axis] for axis in second]:
        raise ValueError("shape-mismatch for sum")
    free_left = [axis for axis in range(left.ndim) if axis not in first]
    free_right = [axis for axis in range(right.ndim) if axis not in second]
    shape = tuple(left._shape[axis] for axis in free_left) + tuple(right._shape[axis] for axis in free_right)
    rows = left.transpose(free_left + first).reshape(shapes.size_of(tuple(left._shape[axis] for axis in free_left)), -1 if left.size else 0)
    inner_size = shapes.size_of(tuple(left._shape[axis] for axis in first))
    rows = rows.reshape(-1 if rows.size else rows._shape[0], inner_size) if rows.size else rows.reshape(rows._shape[0], inner_size)
    columns = right.transpose(second + free_right).reshape(inner_size, shapes.size_of(tuple(right._shape[axis] for axis in free_right)))
    return matmul(rows, columns).reshape(shape)


@method
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Optional[ndarray] = None) -> ndarray:
    """The sum of each diagonal of two dimensions."""
    return reductions.sum(diagonal(ufuncs.as_array(a, out), offset, axis1, axis2), -1, dtype, out)


@method
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    """A view of the diagonals of two dimensions, as the last dimension. It may be written to, unlike NumPy's."""
    array = ufuncs.as_array(a)
    if array.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    offset = operator.index(offset)
    first, second = shapes.normalize_axis(axis1, array.ndim), shapes.normalize_axis(axis2, array.ndim)
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    (rows, columns), (down, across) = ((one[first], one[second]) for one in (array._shape, array._strides))
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    start = array._offset + ((offset * across if offset >= 0 else -offset * down) if count else 0)
    kept = [at for at in range(array.ndim) if at not in (first, second)]
    return array._view(tuple(array._shape[at] for at in kept) + (count,), tuple(array._strides[at] for at in kept) + (down + across,), start)


def vecdot(x1: Any, x2: Any, axis: int = -1) -> ndarray:
    """The sum of products along an axis, by default the last, of two arrays that are broadcast; complex numbers of the first are conjugated."""
    left, right = ufuncs.as_arrays((x1, x2))
    if left.ndim == 0 or right.ndim == 0:
        raise ValueError("vecdot: Input operand does not have enough dimensions")
    axis = shapes.as_index(axis)
    left, right = shaping.moveaxis(left, axis, -1), shaping.moveaxis(right, axis, -1)
    if left._shape[-1] != right._shape[-1]:
        raise ValueError(f"vecdot: shapes {left._shape} and {right._shape} do not match in the dimension that is summed")
    left, right = _cast_both(left, right)
    if left._dtype.kind == "b":
        return (left & right).any(axis=-1)
    work = dtypes.float32 if left._dtype.name == "float16" else left._dtype
    return (_conjugated(left.astype(work, copy=False)) * right.astype(work, copy=False)).sum(axis=-1, dtype=left._dtype)


def matvec(x1: Any, x2: Any) -> ndarray:
    """The product of matrices, in the last two dimensions, with vectors, in the last one."""
    left, right = ufuncs.as_arrays((x1, x2))
    if left.ndim < 2 or right.ndim < 1:
        raise ValueError("matvec: Input operand does not have enough dimensions")
    return matmul(left, shaping.expand_dims(right, -1)).squeeze(-1)


def vecmat(x1: Any, x2: Any) -> ndarray:
    """The product of vectors, in the last dimension, complex ones conjugated, with matrices, in the last two."""
    left, right = ufuncs.as_arrays((x1, x2))
    if left.ndim < 1 or right.ndim < 2:
        raise ValueError("vecmat: Input operand does not have enough dimensions")
    return matmul(shaping.expand_dims(_conjugated(left), -2), right).squeeze(-2)
