"""What NumPy's own functions do when they are given our arrays: numpy.sin(x) and numpy_array + x compute on the device."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

from . import linalg, reductions, ufuncs
from .functions import method

_NAMES = {"true_divide": "divide", "conjugate": "positive", "fabs": "absolute", "radians": "deg2rad", "degrees": "rad2deg",
          "bitwise_not": "invert", "mod": "remainder", "abs": "absolute"}
_REDUCTIONS: Dict[str, Callable[..., Any]] = {"add": reductions.sum, "multiply": reductions.prod, "maximum": reductions.max, "minimum": reductions.min,
                                              "logical_and": reductions.all, "logical_or": reductions.any}
_DEFAULTS = {"dtype": None, "initial": None, "where": True}  # what NumPy's reductions may name without changing anything


@method
def array_ufunc(ufunc: Any, method: str, inputs: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """NotImplemented where there is nothing of ours, upon which NumPy raises its TypeError."""
    out = kwargs.pop("out", None)
    if isinstance(out, tuple):
        out = out[0]
    if out is not None and not hasattr(out, "_storage"):
        return NotImplemented
    name = _NAMES.get(str(ufunc.__name__), str(ufunc.__name__))
    if method == "reduce" and name in _REDUCTIONS:
        return _reduction(name, inputs[0], out, kwargs)
    if method != "__call__" or set(kwargs) - {"dtype"}:
        return NotImplemented
    if name == "matmul":
        result = linalg.matmul(*inputs)
        if out is None:
            return result
        out[...] = result
        return out
    if name == "positive":
        return inputs[0].copy()
    ours = ufuncs.UFUNCS.get(name)
    return NotImplemented if ours is None else ours(*inputs, out=out, **kwargs)


def _reduction(name: str, array: Any, out: Any, kwargs: Dict[str, Any]) -> Any:
    """numpy.add.reduce(x) and its like; NotImplemented for options that would change the result and that we do not have."""
    axis, keepdims = kwargs.pop("axis", 0), kwargs.pop("keepdims", False)
    dtype = kwargs.pop("dtype", None) if name in ("add", "multiply") else None
    if any(option not in _DEFAULTS or value is not _DEFAULTS[option] for option, value in kwargs.items()):
        return NotImplemented
    more = {} if dtype is None else {"dtype": dtype}
    return _REDUCTIONS[name](array, axis, out=out, keepdims=keepdims, **more)
