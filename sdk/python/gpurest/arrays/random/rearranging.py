"""Choices and permutations."""

from __future__ import annotations

import operator
import random as host_random
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from ..._values import dtypes
from .. import host, reductions, shaping, sorting, ufuncs
from .._engine import shapes
from ..current import Where
from ..ndarray import fetch, ndarray
from ..routines.picking import take, take_along_axis
from ..routines.searching import searchsorted
from .bit_generator import BitGenerator
from .parameters import engine_for, is_number

FEW_OF_MANY = 50  # below a part of so many of a population, and from POPULATION_MANY on, what is chosen is not sorted out of all of it
POPULATION_MANY = 10_000


def _is_whole(a: Any) -> bool:
    """A number of things, not the things."""
    return isinstance(a, int) or (is_number(a) and not isinstance(a, float) and hasattr(a, "__index__"))


class Rearranging:
    """What a Generator does with the elements of arrays."""

    _bits: BitGenerator
    if TYPE_CHECKING:
        integers: Callable[..., ndarray]
        random: Callable[..., ndarray]
        standard_exponential: Callable[..., ndarray]

    def _order(self, count: int, session: Where) -> ndarray:
        """The numbers below `count` in random order: those of random 64-bit numbers, sorted."""
        return sorting.argsort(self._bits.random_raw(count, session=session))

    # ---- choices ----

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True, *,
               session: Where = None) -> ndarray:
        """Elements of `a` (along `axis`), or numbers below it, in an array of shape `size`; without `size` a single one. With `p` each has a
        probability of its own; what is in `p` is checked, which sends what is queued if it is on the device. Without `replace` none is chosen
        twice; they come in random order, whatever `shuffle` says."""
        count, array = self._population(a, axis, p, session)
        shape = () if size is None else shapes.as_shape(size)
        wanted = shapes.size_of(shape)
        if count <= 0 and wanted:
            raise ValueError("a must be a positive integer unless no samples are taken" if array is None else "a cannot be empty unless no samples are taken")
        if not replace and wanted > count:
            raise ValueError("Cannot take a larger sample than population when replace is False")
        where = engine_for((p if array is None else array,), session).session
        weights = None if p is None else _weights(p, count, 0 if replace else wanted, where)
        places = self._places(count, shape, replace, weights, where)
        return places if array is None else take(array, places, axis)

    @staticmethod
    def _population(a: Any, axis: int, p: Any, session: Where) -> Tuple[int, Optional[ndarray]]:
        if _is_whole(a):
            return operator.index(a), None
        if isinstance(a, float) or getattr(a, "ndim", 1) == 0 or not hasattr(a, "__len__"):
            raise ValueError(f"a must be a sequence or an integer, not {type(a)}")
        array = _array(a, p, session)
        return array._shape[shapes.normalize_axis(axis, array.ndim)], array

    def _places(self, count: int, shape: shapes.Shape, replace: bool, weights: Optional[ndarray], session: Where) -> ndarray:
        wanted = shapes.size_of(shape)
        if not wanted:
            return host.empty(shape, "i8", session=session)
        if replace and weights is None:
            return self.integers(0, count, shape, session=session)
        if replace:
            steps = reductions.cumsum(weights)
            return searchsorted(steps / steps[-1], self.random(shape, session=session), "right")
        if weights is not None:  # the first to come when all come at rates of their weights (Efraimidis and Spirakis, 2006)
            times = self.standard_exponential(count, session=session) / weights
            return sorting.argsort(times)[:wanted].reshape(shape)
        if count >= POPULATION_MANY and wanted < count // FEW_OF_MANY:
            return host.asarray(_few_of_many(self._bits.take_seed(), count, wanted), dtype="i8", session=session).reshape(shape)
        return self._order(count, session)[:wanted].reshape(shape)

    # ---- permutations ----

    def permutation(self, x: Any, axis: int = 0, *, session: Where = None) -> ndarray:
        """The numbers below `x` in random order, or a copy of the array with its parts along `axis` in random order."""
        if _is_whole(x):
            return self._order(max(0, operator.index(x)), session)
        array = _array(x, None, session)
        extent = array._shape[shapes.normalize_axis(axis, array.ndim)]
        return take(array, self._order(extent, array._engine.session), axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Puts the parts along `axis` in random order, in place. Besides arrays of the device it takes NumPy arrays and lists."""
        if isinstance(x, ndarray):
            extent = x._shape[shapes.normalize_axis(axis, x.ndim)]
            x[...] = take(x, self._order(extent, x._engine.session), axis)
            return
        extent = x.shape[axis] if hasattr(x, "shape") else len(x)
        if not hasattr(x, "__setitem__"):
            raise TypeError(f"{type(x).__name__!r} object does not support item assignment")
        order = self._order(extent, None).tolist()
        x[:] = x.take(order, axis) if hasattr(x, "take") else [x[at] for at in order]

    def permuted(self, x: Any, axis: Optional[int] = None, out: Optional[ndarray] = None) -> ndarray:
        """A copy with every line along `axis` in a random order of its own; without `axis` all elements change places. `out` may be `x`."""
        array = _array(x, out, None)
        if array.ndim == 0:
            raise TypeError("len() of unsized object")
        if out is not None and (not isinstance(out, ndarray) or out._shape != array._shape):
            raise ValueError("out must have the same shape as x")
        lines, along = (array.reshape(-1), 0) if axis is None else (array, shapes.normalize_axis(axis, array.ndim))
        order = sorting.argsort(self._bits.random_raw(lines._shape, session=array._engine.session), along)
        made = shaping.reshape(take_along_axis(lines, order, along), array._shape)
        return made if out is None else ufuncs.into(out, made)


def _array(a: Any, beside: Any, session: Where) -> ndarray:
    """One of ours as it is; else made in the session of what is `beside` it, or in the one that is named."""
    return a if isinstance(a, ndarray) else host.asarray(a, session=engine_for((beside,), session).session)


def _weights(p: Any, count: int, nonzero: int, session: Where) -> ndarray:
    """The probabilities as an array; ValueError unless they are some. `nonzero`: so many of them at least."""
    weights = _array(p, None, session).astype(dtypes.float64, copy=False)
    if weights.ndim != 1:
        raise ValueError("p must be 1-dimensional")
    if weights.size != count:
        raise ValueError("a and p must have same size")
    if isinstance(p, ndarray) or dtypes.numpy is None:
        total, least, above = (one.item() if hasattr(one, "item") else one for one in fetch(weights.sum(), weights.min(), (weights > 0).sum()))
    else:
        values = dtypes.numpy.asarray(p, dtype="f8")
        total, least, above = float(values.sum()), float(values.min()), int((values > 0).sum())
    if total != total:
        raise ValueError("Probabilities contain NaN")
    if least < 0:
        raise ValueError("Probabilities are not non-negative")
    if abs(total - 1) > 1.5e-8:
        raise ValueError("Probabilities do not sum to 1. See Notes section of docstring for more information.")
    if above < nonzero:
        raise ValueError("Fewer non-zero entries in p than size")
    return weights


def _few_of_many(seed: int, count: int, wanted: int) -> List[int]:
    """Distinct numbers below `count` in random order (Floyd), made on the host: what is drawn does not take memory for all."""
    draw = host_random.Random(seed)
    found: Dict[int, None] = {}
    for last in range(count - wanted, count):
        at = draw.randrange(last + 1)
        found[last if at in found else at] = None
    chosen = list(found)
    draw.shuffle(chosen)
    return chosen
