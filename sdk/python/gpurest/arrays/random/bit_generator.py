"""Where random bits come from: a key, and a counter of which every element drawn takes one value."""

from __future__ import annotations

import hashlib
import operator
import secrets
import threading
from typing import Any, Dict, List, Tuple

from ..._values import dtypes
from .._engine import shapes
from .._engine.expr import Const
from ..current import Where, current_engine
from .parameters import queue

MASK = (1 << 64) - 1


def key_of(seed: Any) -> int:
    """64 bits for a seed: a number below 2^64 is its own key; other numbers, sequences of numbers and NumPy's SeedSequence are hashed."""
    if seed is None:
        return secrets.randbits(64)
    if hasattr(seed, "generate_state"):
        return int(seed.generate_state(1, "u8")[0])
    numbers = _numbers(seed)
    if any(number < 0 for number in numbers):
        raise ValueError("expected non-negative integer")
    if not isinstance(seed, (list, tuple)) and len(numbers) == 1 and numbers[0] <= MASK:
        return numbers[0]
    return _hashed(*numbers)


def _numbers(seed: Any) -> List[int]:
    try:
        return [operator.index(seed)]
    except TypeError:
        pass
    try:
        return [operator.index(one) for one in (seed.ravel().tolist() if hasattr(seed, "ravel") else seed)]
    except TypeError:
        raise TypeError(f"SeedSequence expects int or sequence of ints for entropy not {seed}") from None


def _hashed(*numbers: int) -> int:
    return int.from_bytes(hashlib.sha256(",".join(map(str, numbers)).encode()).digest()[:8], "little")


class BitGenerator:
    """The base of generators of random bits. `seed`: None for one that nobody can guess, a number, a sequence of numbers, or a SeedSequence of
    NumPy's. The same seed gives the same numbers on every device. Thread-safe."""

    def __init__(self, seed: Any = None) -> None:
        if type(self) is BitGenerator:
            raise NotImplementedError("BitGenerator is a base class and cannot be instantized")
        self.lock = threading.Lock()
        self._key, self._counter, self._children = key_of(seed), 0, 0
        self._sequence: Any = seed if hasattr(seed, "spawn") and hasattr(seed, "generate_state") else None

    @property
    def seed_seq(self) -> Any:
        """A numpy.random.SeedSequence for what spawns generators by NumPy's: the one that was the seed, else one of the key. Needs NumPy."""
        with self.lock:
            if self._sequence is None:
                self._sequence = dtypes.numpy.random.SeedSequence(self._key)
            return self._sequence

    _seed_seq = seed_seq  # as Dask asks for it

    def reseed(self, seed: Any = None) -> None:
        """Starts anew, as if made with this seed."""
        key = key_of(seed)
        with self.lock:
            self._key, self._counter, self._children, self._sequence = key, 0, 0, None

    def take(self, count: int) -> Tuple[Const, Const]:
        """The key and the first of `count` values of the counter, which nobody else gets."""
        with self.lock:
            start, self._counter = self._counter, (self._counter + count) & MASK
            return Const(self._key, dtypes.uint64), Const(start, dtypes.uint64)

    def take_seed(self) -> int:
        """A number for a generator of the host, for which one value of the counter is used up."""
        key, counter = self.take(1)
        return _hashed(int(key.value), int(counter.value))

    def random_raw(self, size: Any = None, output: bool = True, *, session: Where = None) -> Any:
        """64 random bits in each element of a uint64 array of shape `size`; without `output` they are passed over."""
        shape = () if size is None else shapes.as_shape(size)
        inputs = self.take(shapes.size_of(shape))
        return queue(current_engine(session), shape, dtypes.uint64, "random_bits", inputs) if output else None

    def spawn(self, n_children: int) -> "List[BitGenerator]":
        """Generators whose numbers have nothing to do with this one's, nor with those of other children."""
        if n_children < 0:
            raise ValueError("n_children must not be negative")
        with self.lock:
            first, self._children = self._children, self._children + n_children
            key = self._key
        return [type(self)(_hashed(key, at, 1)) for at in range(first, first + n_children)]

    @property
    def state(self) -> Dict[str, Any]:
        """What decides on all numbers to come; assigning such a dictionary goes back to where it was read."""
        with self.lock:
            return {"bit_generator": type(self).__name__, "state": {"key": self._key, "counter": self._counter, "children": self._children}}

    @state.setter
    def state(self, value: Dict[str, Any]) -> None:
        if not isinstance(value, dict):
            raise TypeError("state must be a dict")
        if value.get("bit_generator") != type(self).__name__:
            raise ValueError(f"state must be for a {type(self).__name__} PRNG")
        with self.lock:
            self._key, self._counter, self._children = (int(value["state"][name]) & MASK for name in ("key", "counter", "children"))
            self._sequence = None

    def __reduce__(self) -> Any:
        return _restored, (type(self), self.state)


def _restored(kind: Any, state: Dict[str, Any]) -> BitGenerator:
    made: BitGenerator = kind(0)
    made.state = state
    return made


class Philox4x3210(BitGenerator):
    """Philox 4x32 with 10 rounds (Salmon et al., 2011): a counter enciphered with a key, 128 bits at a time. The seed is the key."""


__all__ = ["BitGenerator", "Philox4x3210"]

