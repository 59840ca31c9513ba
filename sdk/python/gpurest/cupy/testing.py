"""cupy.testing's assert functions: numpy.testing's on what is brought to the host, and arrays for tests."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy

from .arrays import asnumpy
from .missing import refusing

__all__ = ["assert_allclose", "assert_array_almost_equal", "assert_array_almost_equal_nulp", "assert_array_equal", "assert_array_less",
           "assert_array_list_equal", "assert_array_max_ulp", "shaped_arange", "shaped_random", "shaped_reverse_arange"]

__getattr__ = refusing("cupy.testing")


def _on_host(function: Callable[..., Any]) -> Callable[..., Any]:
    def check(x: Any, y: Any, *more: Any, **options: Any) -> Any:
        options.pop("strides_check", None)  # strides are views' own here
        return function(asnumpy(x), asnumpy(y), *more, **options)

    check.__name__, check.__doc__ = function.__name__, f"numpy.testing.{function.__name__} of arrays on the device or the host."
    return check


assert_allclose = _on_host(numpy.testing.assert_allclose)
assert_array_almost_equal = _on_host(numpy.testing.assert_array_almost_equal)
assert_array_almost_equal_nulp = _on_host(numpy.testing.assert_array_almost_equal_nulp)
assert_array_equal = _on_host(numpy.testing.assert_array_equal)
assert_array_less = _on_host(numpy.testing.assert_array_less)
assert_array_max_ulp = _on_host(numpy.testing.assert_array_max_ulp)


def assert_array_list_equal(xlist: Sequence[Any], ylist: Sequence[Any], err_msg: str = "", verbose: bool = True) -> None:
    """Both have as many arrays, and each pair is equal."""
    if len(xlist) != len(ylist):
        raise AssertionError(f"{err_msg}\n{len(xlist)} arrays, and {len(ylist)}")
    for x, y in zip(xlist, ylist):
        assert_array_equal(x, y, err_msg=err_msg, verbose=verbose)


def shaped_arange(shape: Any, xp: Any = numpy, dtype: Any = numpy.float32, order: str = "C") -> Any:
    """1, 2, 3, … of the shape; of booleans every second one."""
    count = int(numpy.prod(shape))
    values = numpy.arange(1, count + 1)
    return xp.array((values % 2 == 0 if numpy.dtype(dtype).kind == "b" else values).astype(dtype).reshape(shape), order=order)


def shaped_reverse_arange(shape: Any, xp: Any = numpy, dtype: Any = numpy.float32) -> Any:
    """…, 3, 2, 1 of the shape."""
    return xp.array(numpy.arange(int(numpy.prod(shape)), 0, -1).astype(dtype).reshape(shape))


def shaped_random(shape: Any, xp: Any = numpy, dtype: Any = numpy.float32, scale: float = 10, seed: int = 0, order: str = "C") -> Any:
    """Numbers from 0 to `scale`, always the same for a seed; of booleans, about half."""
    made = numpy.random.RandomState(seed).rand(*numpy.atleast_1d(shape)) * scale
    return xp.array(made < scale / 2 if numpy.dtype(dtype).kind == "b" else made.astype(dtype), order=order)
