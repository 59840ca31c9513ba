"""What an array's methods and operators do, by name. The functions need the class and the class needs the functions: they stand here, and
neither side imports the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, TypeVar

if TYPE_CHECKING:
    from .ndarray import ndarray

Function = TypeVar("Function", bound=Callable[..., Any])

FUNCTIONS: Dict[str, Callable[..., Any]] = {}
OPERATORS: Dict[str, Callable[[Any, Any], ndarray]] = {}  # those of two operands as operators need them: NotImplemented for what is no operand


def method(function: Function) -> Function:
    """Marks a function that a method of arrays calls by its name."""
    FUNCTIONS[function.__name__] = function
    return function


def call(name: str, *operands: Any) -> ndarray:
    """A function of FUNCTIONS that gives an array."""
    made: ndarray = FUNCTIONS[name](*operands)
    return made
