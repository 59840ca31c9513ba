"""Distributions of several numbers at a time."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Callable, Dict, Sequence, Tuple

from ..._values import dtypes
from .. import host, joining, reductions, shaping, ufuncs
from .._engine import shapes
from .._engine.expr import Const
from ..creation import zeros
from ..current import Where
from ..matrices.orthogonal import eigh, svd
from ..matrices.solving import cholesky
from ..ndarray import ndarray
from .bit_generator import BitGenerator
from .parameters import RULES, Parameter, checked, checked_there, engine_for, holds, operands, queue, shape_of

METHODS: Dict[str, Callable[..., Any]] = {"eigh": eigh, "svd": svd, "cholesky": cholesky}
URN_MAX = 10 ** 9


class Several:
    """A Generator's draws of which each is a row."""

    _bits: BitGenerator
    if TYPE_CHECKING:
        standard_normal: Callable[..., ndarray]

    def multivariate_normal(self, mean: Any, cov: Any, size: Any = None, check_valid: str = "warn", tol: float = 1e-8, *, method: str = "svd",
                            session: Where = None) -> ndarray:
        """Rows with the mean `mean`, of length n, and the covariance `cov`, n by n: shape `size` + (n,). `cov` is taken apart by `method`: "svd",
        "eigh" or "cholesky", where it is: on the host by NumPy, or on the device. A matrix that is no covariance, within `tol`, is told as
        `check_valid` says, "warn", "raise" or "ignore"; unless it is ignored, one on the device is looked at, which sends what is queued."""
        if method not in METHODS:
            raise ValueError("method must be one of {'eigh', 'svd', 'cholesky'}")
        if check_valid not in ("warn", "raise", "ignore"):
            raise ValueError("check_valid must equal 'warn', 'raise', or 'ignore'")
        place = engine_for((mean, cov), session).session
        middle, matrix = _doubles(mean, place), _doubles(cov, place)
        if len(middle.shape) != 1:
            raise ValueError("mean must be 1 dimensional")
        if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError("cov must be 2 dimensional and square")
        if middle.shape[0] != matrix.shape[0]:
            raise ValueError("mean and cov must have same length")
        factor, valid = _factor(METHODS[method] if isinstance(matrix, ndarray) else getattr(dtypes.numpy.linalg, method), matrix, method, tol)
        if check_valid != "ignore" and not valid:
            if check_valid == "raise":
                raise ValueError("covariance is not symmetric positive-semidefinite.")
            warnings.warn("covariance is not symmetric positive-semidefinite.", RuntimeWarning, stacklevel=2)
        batch: shapes.Shape = () if size is None else shapes.as_shape(size)
        length = int(middle.shape[0])
        drawn = self.standard_normal((shapes.size_of(batch), length), session=place)
        rows: ndarray = drawn @ host.asarray(factor, session=place).T + host.asarray(middle, session=place)
        return rows.reshape((*batch, length))

    def dirichlet(self, alpha: Any, size: Any = None, *, session: Where = None) -> ndarray:
        """Rows of numbers >= 0 that sum to 1: shape `size` + (n,) for `alpha` of length n, whose elements are >= 0."""
        if not hasattr(alpha, "__len__"):
            raise TypeError(f"object of type {type(alpha).__name__!r} has no len()")
        weights = checked(Parameter("alpha", alpha, "nonnegative"))
        if len(weights.shape) != 1:
            raise ValueError("alpha must be 1 dimensional")
        engine = engine_for((weights,), session)
        shape: shapes.Shape = (() if size is None else shapes.as_shape(size)) + tuple(weights.shape)
        logs = queue(engine, shape, dtypes.float64, "random_log_gamma", (*self._bits.take(shapes.size_of(shape)), *operands(engine, [weights])))
        if not weights.size:
            return logs
        most = reductions.max(logs, axis=-1, keepdims=True)  # the sum of what is too small for a number would be 0
        parts = ufuncs.exp(logs - ufuncs.where(most == -math.inf, 0.0, most))
        total = reductions.sum(parts, axis=-1, keepdims=True)
        return parts / ufuncs.where(total == 0, 1.0, total)

    def multinomial(self, n: Any, pvals: Any, size: Any = None, *, session: Where = None) -> ndarray:
        """How often each of k outcomes comes in `n` trials: shape `size` + (k,), or that of `n` and the rows of `pvals`, which are along its last
        dimension, broadcast together. The last probability of a row is taken for what the others leave of 1."""
        trials = checked(Parameter("n", n, "nonnegative"))
        chances = _row("pvals", pvals)
        batch = shape_of([one for one in (trials, _Shaped(chances.shape[:-1])) if not isinstance(one, float)], size)
        engine = engine_for((trials, chances), session)
        count, rows = operands(engine, [trials, chances])
        if isinstance(pvals, ndarray):
            rows = checked_there(rows, "from_0_to_1")
        first = rows[..., :-1]
        rows = joining.concatenate([first, ufuncs.maximum(1 - reductions.sum(first, axis=-1, keepdims=True), 0.0)], axis=-1)
        if isinstance(count, Const):
            counts = zeros(batch + (1,), "f8", session=engine.session) + float(count.value)
        else:
            counts = shaping.broadcast_to(count.reshape(count._shape + (1,)), batch + (1,))

        def left(total: ndarray, both: ndarray) -> ndarray:
            share = both[..., 0] / ufuncs.where(both.sum(-1) > 0, both.sum(-1), 1.0)
            return self._draws("random_binomial", (total, ufuncs.clip(share, 0.0, 1.0)))
        return self._split(ufuncs.trunc(counts), rows, left)

    def multivariate_hypergeometric(self, colors: Any, nsample: Any, size: Any = None, method: str = "marginals", *, session: Where = None) -> ndarray:
        """How many of each colour are among `nsample` drawn without replacement from `colors` (numbers of each, together fewer than 10**9):
        shape `size` + (k,). `method` changes nothing."""
        if method not in ("count", "marginals"):
            raise ValueError('method must be "count" or "marginals".')
        numbers = colors.tolist() if hasattr(colors, "tolist") else colors
        if not isinstance(numbers, (list, tuple)) or any(not isinstance(one, int) or one < 0 for one in numbers):
            raise ValueError("colors must be a one-dimensional sequence of nonnegative integers not exceeding 9223372036854775807.")
        if sum(numbers) >= URN_MAX:
            raise ValueError(f"sum(colors) must be less than {URN_MAX}")
        drawn = int(nsample)
        if drawn < 0:
            raise ValueError("nsample must be nonnegative.")
        if drawn > sum(numbers):
            raise ValueError("nsample > sum(colors)")
        batch = () if size is None else shapes.as_shape(size)
        engine = engine_for((colors,), session)
        urn = host.asarray(list(numbers), dtype="f8", session=engine.session)
        counts = zeros(batch + (1,), "f8", session=engine.session) + float(drawn)

        def left(total: ndarray, both: ndarray) -> ndarray:
            return self._draws("random_hypergeometric", (both[..., 0], both[..., 1], total))
        return self._split(counts, urn, left)

    def _draws(self, op: str, values: Sequence[ndarray]) -> ndarray:
        shape = shape_of(values)
        return queue(values[0]._engine, shape, dtypes.float64, op, (*self._bits.take(shapes.size_of(shape)), *values))

    def _split(self, counts: ndarray, weights: ndarray, left: Callable[[ndarray, ndarray], ndarray]) -> ndarray:
        """`counts`, of shape batch + (1,), dealt out to the elements of the rows of `weights`: halved again and again, each time by a draw of how
        much the left half gets, `left` of the totals and of the weights of both halves."""
        width = weights._shape[-1]
        levels = max(0, width - 1).bit_length()
        padded = zeros(weights._shape[:-1] + ((1 << levels) - width,), "f8", session=weights._engine.session)
        tree = [joining.concatenate([weights, padded], axis=-1)]
        for _ in range(levels):
            tree.append(_pairs(tree[-1]).sum(-1))
        batch = counts._shape[:-1]
        for level in reversed(tree[:levels]):
            first = left(counts, _pairs(level))
            counts = joining.stack([first, counts - first], axis=-1).reshape(batch + (2 * counts._shape[-1],))
        return counts[..., :width].astype("i8")


class _Shaped:
    """Only a shape."""

    def __init__(self, shape: Tuple[int, ...]) -> None:
        self.shape = shape


def _pairs(rows: ndarray) -> ndarray:
    return rows.reshape(rows._shape[:-1] + (rows._shape[-1] // 2, 2))


def _row(name: str, value: Any) -> Any:
    """Probabilities along the last dimension, of a host array checked."""
    found = value if isinstance(value, ndarray) else checked(Parameter(name, value))
    if isinstance(found, float) or not found.shape or not found.shape[-1]:
        raise ValueError(f"{name} must have at least 1 dimension and the last dimension of {name} must be greater than 0.")
    if isinstance(found, ndarray):
        return found.astype(dtypes.float64, copy=False)
    for rule in RULES["from_0_to_1"]:
        if not holds(rule.holds(found)):
            raise ValueError(rule.text.format(name=name, nan="contains NaNs"))
    if not holds(found[..., :-1].sum(-1) <= 1 + 1e-12):
        raise ValueError(f"sum({name}[:-1]) > 1.0")
    return found


def _doubles(value: Any, session: Any) -> Any:
    """An array of the host where NumPy has those, unless it is on the device."""
    if isinstance(value, ndarray):
        return value.astype(dtypes.float64, copy=False)
    return host.asarray(value, dtype="f8", session=session) if dtypes.numpy is None else dtypes.numpy.asarray(value, dtype="f8")


def _factor(apart: Callable[..., Any], matrix: Any, method: str, tol: float) -> Tuple[Any, Any]:
    """A matrix whose product with its transpose is the covariance; and whether there is one."""
    if method == "svd":
        u, values, v = apart(matrix)
        return u * values ** 0.5, (abs((v.T * values) @ v - matrix) <= tol + tol * abs(matrix)).all()
    if method == "eigh":
        values, u = apart(matrix)
        return u * abs(values) ** 0.5, (values >= -tol).all()
    return apart(matrix), True
