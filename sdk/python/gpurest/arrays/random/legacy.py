"""numpy.random.RandomState, and the functions of numpy.random and cupy.random that use one for the whole process."""

from __future__ import annotations

from typing import Any

from ..._values import dtypes
from ..current import Where
from ..ndarray import ndarray
from .generator import Generator
from .integers import bounds


class RandomState(Generator):
    """A Generator with the older names besides: `RandomState(seed)`. The same methods draw the same numbers."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(seed)

    def seed(self, seed: Any = None) -> None:
        """Starts anew; without a seed from one that nobody can guess."""
        self._bits.reseed(seed)

    def rand(self, *shape: int, dtype: Any = float) -> ndarray:
        """Uniform in [0, 1), of a shape given as separate numbers."""
        return self.random(shape, dtype)

    def randn(self, *shape: int, dtype: Any = float) -> ndarray:
        """Normal with mean 0 and variance 1, of a shape given as separate numbers."""
        return self.standard_normal(shape, dtype)

    def random_sample(self, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Uniform in [0, 1)."""
        return self.random(size, dtype, session=session)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = "i8", *, session: Where = None) -> ndarray:
        """Every integer of [low, high) alike, or of [0, low) with one bound."""
        bounds(low, high, dtypes.dtype_of(dtype), False, session, "randint")
        return self.integers(low, high, size, dtype, session=session)

    def random_integers(self, low: Any, high: Any = None, size: Any = None, *, session: Where = None) -> ndarray:
        """Every integer of [low, high] alike, or of [1, low] with one bound."""
        low, high = (1, low) if high is None else (low, high)
        return self.randint(low, high + 1, size, session=session)

    def tomaxint(self, size: Any = None, *, session: Where = None) -> ndarray:
        """Every integer from 0 to the greatest int64 alike."""
        return self.integers(0, (1 << 63) - 1, size, endpoint=True, session=session)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Uniform between low and high, whichever is the greater."""
        return self._between(low, high, size, dtype, session, False)


def default_rng(seed: Any = None) -> Generator:
    """A Generator with this seed, or with this BitGenerator; a Generator is returned as it is."""
    return seed if isinstance(seed, Generator) else Generator(seed)
