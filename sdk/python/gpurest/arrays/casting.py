"""Which element type may become which other one, by NumPy's rules of casting."""

from __future__ import annotations

from .._values import dtypes
from .._values.dtypes import DType

CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
KINDS = "buifc"  # same_kind goes from left to right


def can_cast(source: DType, target: DType, casting: str = "safe") -> bool:
    """Whether `casting` lets values of `source` become `target`."""
    if casting not in CASTINGS:
        raise ValueError(f"casting must be one of 'no', 'equiv', 'safe', 'same_kind', 'unsafe' (got {casting!r})")
    if source is target or casting == "unsafe":
        return True
    if casting in ("no", "equiv"):
        return False
    safe = dtypes.promote(source, target) is target
    return safe or (casting == "same_kind" and KINDS.index(source.kind) <= KINDS.index(target.kind))


def check(source: DType, target: DType, casting: str, what: str = "array data") -> None:
    """TypeError unless can_cast()."""
    if not can_cast(source, target, casting):
        rule = "with casting rule" if what.startswith("ufunc") else "according to the rule"
        raise TypeError(f"Cannot cast {what} from {dtypes.public(source)!r} to {dtypes.public(target)!r} {rule} {casting!r}")
