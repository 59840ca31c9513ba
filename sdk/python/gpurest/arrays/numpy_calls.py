"""What NumPy's own functions do when they are given our arrays: numpy.sin(x), numpy.median(x) and numpy_array + x compute on the device."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

from . import linalg, ufuncs
from .functions import FUNCTIONS, method

_NAMES = {"radians": "deg2rad", "degrees": "rad2deg"}  # functions of their own in NumPy
_PRODUCTS: Dict[str, Callable[..., Any]] = {"matmul": linalg.matmul, "vecdot": linalg.vecdot, "matvec": linalg.matvec, "vecmat": linalg.vecmat}
_OPTIONS = {"axis", "casting", "dtype", "initial", "keepdims", "order", "where"}


@method
def array_ufunc(ufunc: Any, method: str, inputs: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """NotImplemented where there is nothing of ours, upon which NumPy raises its TypeError."""
    out = kwargs.pop("out", None)
    targets = () if out is None else out if isinstance(out, tuple) else (out,)
    if any(one is not None and not hasattr(one, "_storage") for one in targets) or set(kwargs) - _OPTIONS:
        return NotImplemented
    name = _NAMES.get(str(ufunc.__name__), str(ufunc.__name__))
    more = kwargs if out is None else {**kwargs, "out": targets[0] if len(targets) == 1 else targets}
    if name in _PRODUCTS:
        return _PRODUCTS[name](*inputs, **more) if method == "__call__" else NotImplemented
    ours = ufuncs.UFUNCS.get(name)
    if ours is None or method not in ("__call__", "reduce", "accumulate", "outer", "at"):
        return NotImplemented
    return ours(*inputs, **more) if method == "__call__" else getattr(ours, method)(*inputs, **more)


@method
def array_function(function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """The package's function of the same place and name; NotImplemented where there is none."""
    owner: Any = FUNCTIONS["namespace"]()
    for part in str(function.__module__).split(".")[1:]:
        owner = getattr(owner, part, None)
    ours = getattr(owner, function.__name__, None)
    return NotImplemented if ours is None else ours(*args, **kwargs)
