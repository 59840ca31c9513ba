"""Work of several requests, described once for both clients: a generator that yields what is to be done next, and is sent what came of it or
thrown what failed."""
from __future__ import annotations

from typing import Any, Awaitable, Callable, Generator, TypeVar

T = TypeVar("T")
Steps = Generator[Any, Any, T]


def drive(steps: Steps[T], do: Callable[[Any], Any]) -> T:
    """Does all of it, and returns what the generator does."""
    try:
        step = next(steps)
        while True:
            try:
                came = do(step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(came)
    except StopIteration as end:
        result: T = end.value
        return result


async def drive_async(steps: Steps[T], do: Callable[[Any], Awaitable[Any]]) -> T:
    """As drive(), for coroutines."""
    try:
        step = next(steps)
        while True:
            try:
                came = await do(step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(came)
    except StopIteration as end:
        result: T = end.value
        return result
