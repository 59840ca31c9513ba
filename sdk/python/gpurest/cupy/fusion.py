"""cupy.fuse."""
from __future__ import annotations

import functools
from typing import Any, Callable, Optional


def fuse(*args: Any, kernel_name: Optional[str] = None) -> Any:
    """`@fuse` or `@fuse()`: the function as it is, since array operations that feed each other become one kernel by themselves. With NumPy's arrays it
    computes on the host."""
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def fused(*operands: Any, **options: Any) -> Any:
            return function(*operands, **options)

        fused.__name__ = kernel_name or function.__name__
        return fused

    if len(args) == 1 and callable(args[0]):
        return decorate(args[0])
    if args:
        raise TypeError("fuse() takes the function, or kernel_name=")
    return decorate
