"""Random numbers, made on the device by a counter-based generator: element i of a call has the key and counter of its own, so the numbers
depend on the seed and the order of the calls, not on the device or how work was divided."""

from __future__ import annotations

import secrets
import threading
from typing import Any, Optional

from .._values import dtypes
from .._values.dtypes import DType
from ._engine import shapes
from ._engine.expr import Const
from .creation import _filled
from .current import Where, current_engine
from .ndarray import ndarray

_MASK = (1 << 64) - 1


class Generator:
    """A stream of numbers: Philox 4x32-10 with `seed` as its key. Thread-safe; one call's numbers follow the other's."""

    def __init__(self, seed: Optional[int] = None) -> None:
        self._lock = threading.Lock()
        self.seed(seed)

    def seed(self, seed: Optional[int] = None) -> None:
        """Starts anew; without a seed from one that nobody can guess."""
        with self._lock:
            self._key = secrets.randbits(64) if seed is None else int(seed) & _MASK
            self._counter = 0

    def _take(self, count: int) -> Any:
        with self._lock:
            start, self._counter = self._counter, (self._counter + count) & _MASK
            return Const(self._key, dtypes.uint64), Const(start, dtypes.uint64)

    def _made(self, op: str, size: Any, dtype: DType, session: Where, *more: Const) -> ndarray:
        shape = () if size is None else shapes.as_shape(size)
        key, counter = self._take(shapes.size_of(shape))
        return _filled(current_engine(session), shape, dtype, op, (key, counter, *more))

    @staticmethod
    def _float(dtype: Any) -> DType:
        kind = dtypes.dtype_of(dtype)
        if kind not in (dtypes.float32, dtypes.float64):
            raise TypeError("random numbers are float32 or float64")
        return kind

    def random(self, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Uniform in [0, 1)."""
        return self._made("random_uniform", size, self._float(dtype), session)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None, *, session: Where = None) -> ndarray:
        """Uniform in [low, high)."""
        return self.random(size, session=session) * float(high - low) + float(low)

    def standard_normal(self, size: Any = None, dtype: Any = float, *, session: Where = None) -> ndarray:
        """Normal with mean 0 and variance 1."""
        return self._made("random_normal", size, self._float(dtype), session)

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Any = None, *, session: Where = None) -> ndarray:
        if scale < 0:
            raise ValueError("scale < 0")
        return self.standard_normal(size, session=session) * float(scale) + float(loc)

    def integers(self, low: int, high: Optional[int] = None, size: Any = None, dtype: Any = "i8", endpoint: bool = False, *,
                 session: Where = None) -> ndarray:
        """Every integer of [low, high) alike, or of [0, low) with one bound; `endpoint` takes the upper bound in."""
        low, high = (0, low) if high is None else (low, high)
        kind, last = dtypes.dtype_of(dtype), int(high) - (not endpoint)
        if last < low:
            raise ValueError("low >= high")
        if kind.kind not in "iu" or not dtypes.fits(int(low), kind) or not dtypes.fits(last, kind):
            raise ValueError(f"the bounds do not fit {kind.name}")
        range_ = Const((last - int(low) + 1) & _MASK, dtypes.uint64)
        drawn = self._made("random_below", size, dtypes.uint64, session, range_)
        wide = dtypes.int64 if kind.kind == "i" else dtypes.uint64
        return (drawn.astype(wide) + int(low)).astype(kind, copy=False)

    def rand(self, *shape: int) -> ndarray:
        return self.random(shape)

    def randn(self, *shape: int) -> ndarray:
        return self.standard_normal(shape)

    def randint(self, low: int, high: Optional[int] = None, size: Any = None, dtype: Any = "i8") -> ndarray:
        return self.integers(low, high, size, dtype)


def default_rng(seed: Optional[int] = None) -> Generator:
    return Generator(seed)


_generator = Generator()
seed = _generator.seed
random = _generator.random
uniform = _generator.uniform
standard_normal = _generator.standard_normal
normal = _generator.normal
integers = _generator.integers
rand = _generator.rand
randn = _generator.randn
randint = _generator.randint
