"""What NumPy's own functions do when they are given our arrays: numpy.sin(x) and numpy_array + x compute on the device."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

from . import _reduce, _ufuncs

_NAMES = {"true_divide": "divide", "conjugate": "positive", "fabs": "absolute", "radians": "deg2rad", "degrees": "rad2deg",
          "bitwise_not": "invert", "mod": "remainder", "abs": "absolute"}
_REDUCTIONS: Dict[str, Callable[..., Any]] = {"add": _reduce.sum, "multiply": _reduce.prod, "maximum": _reduce.max, "minimum": _reduce.min, "logical_and": _reduce.all,
               "logical_or": _reduce.any}


def array_ufunc(ufunc: Any, method: str, inputs: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """NotImplemented where there is nothing of ours, upon which NumPy raises its TypeError."""
    out = kwargs.pop("out", None)
    if isinstance(out, tuple):
        out = out[0]
    if out is not None and not hasattr(out, "_storage"):
        return NotImplemented
    if method == "reduce" and ufunc.__name__ in _REDUCTIONS:
        return _REDUCTIONS[ufunc.__name__](inputs[0], kwargs.get("axis", 0), out=out, keepdims=kwargs.get("keepdims", False))
    if method != "__call__" or set(kwargs) - {"dtype"}:
        return NotImplemented
    name = ufunc.__name__
    if name == "matmul":
        from . import _linalg

        result = _linalg.matmul(*inputs)
        if out is None:
            return result
        out[...] = result
        return out
    if name == "positive":
        return inputs[0].copy()
    ours = _ufuncs.UFUNCS.get(_NAMES.get(name, name))
    return NotImplemented if ours is None else ours(*inputs, out=out, **kwargs)
