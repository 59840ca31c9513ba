"""The operators of arrays, by which Python's expressions become the functions of ufuncs and linalg."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Tuple, cast

from .casting import check as check_cast
from .functions import FUNCTIONS, OPERATORS, call

if TYPE_CHECKING:
    from .ndarray import ndarray



class Operators:
    """What an ndarray inherits. Operands that are no arrays or numbers are left to say themselves what they do with an array."""

    __slots__ = ()

    def _in_place(self, name: str, other: Any) -> "ndarray":
        if not is_operand(other):
            return NotImplemented  # type: ignore[no-any-return]
        array, result = cast("ndarray", self), call(name, self, other)
        check_cast(result._dtype, array._dtype, "same_kind", f"ufunc {name!r} output")
        array[...] = result
        return array

    def __matmul__(self, other: Any) -> "ndarray":
        return call("matmul", self, other) if is_operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> "ndarray":
        return call("matmul", other, self) if is_operand(other) else NotImplemented

    def __imatmul__(self, other: Any) -> "ndarray":
        array = cast("ndarray", self)
        array[...] = call("matmul", self, other)
        return array

    def __divmod__(self, other: Any) -> Tuple["ndarray", "ndarray"]:
        return FUNCTIONS["divmod"](self, other) if is_operand(other) else NotImplemented

    def __neg__(self) -> "ndarray":
        return call("negative", self)

    def __pos__(self) -> "ndarray":
        return call("positive", self)

    def __abs__(self) -> "ndarray":
        return call("absolute", self)

    def __invert__(self) -> "ndarray":
        return call("invert", self)

    def __eq__(self, other: object) -> Any:
        return OPERATORS["equal"](self, other)

    def __ne__(self, other: object) -> Any:
        return OPERATORS["not_equal"](self, other)

    def __lt__(self, other: Any) -> "ndarray":
        return OPERATORS["less"](self, other)

    def __le__(self, other: Any) -> "ndarray":
        return OPERATORS["less_equal"](self, other)

    def __gt__(self, other: Any) -> "ndarray":
        return OPERATORS["greater"](self, other)

    def __ge__(self, other: Any) -> "ndarray":
        return OPERATORS["greater_equal"](self, other)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> "ndarray":
        return OPERATORS["add"](self, other)

    def __radd__(self, other: Any) -> "ndarray":
        return OPERATORS["add"](other, self)

    def __iadd__(self, other: Any) -> "ndarray":
        return self._in_place("add", other)

    def __sub__(self, other: Any) -> "ndarray":
        return OPERATORS["subtract"](self, other)

    def __rsub__(self, other: Any) -> "ndarray":
        return OPERATORS["subtract"](other, self)

    def __isub__(self, other: Any) -> "ndarray":
        return self._in_place("subtract", other)

    def __mul__(self, other: Any) -> "ndarray":
        return OPERATORS["multiply"](self, other)

    def __rmul__(self, other: Any) -> "ndarray":
        return OPERATORS["multiply"](other, self)

    def __imul__(self, other: Any) -> "ndarray":
        return self._in_place("multiply", other)

    def __truediv__(self, other: Any) -> "ndarray":
        return OPERATORS["divide"](self, other)

    def __rtruediv__(self, other: Any) -> "ndarray":
        return OPERATORS["divide"](other, self)

    def __itruediv__(self, other: Any) -> "ndarray":
        return self._in_place("divide", other)

    def __floordiv__(self, other: Any) -> "ndarray":
        return OPERATORS["floor_divide"](self, other)

    def __rfloordiv__(self, other: Any) -> "ndarray":
        return OPERATORS["floor_divide"](other, self)

    def __ifloordiv__(self, other: Any) -> "ndarray":
        return self._in_place("floor_divide", other)

    def __mod__(self, other: Any) -> "ndarray":
        return OPERATORS["remainder"](self, other)

    def __rmod__(self, other: Any) -> "ndarray":
        return OPERATORS["remainder"](other, self)

    def __imod__(self, other: Any) -> "ndarray":
        return self._in_place("remainder", other)

    def __pow__(self, other: Any) -> "ndarray":
        return OPERATORS["power"](self, other)

    def __rpow__(self, other: Any) -> "ndarray":
        return OPERATORS["power"](other, self)

    def __ipow__(self, other: Any) -> "ndarray":
        return self._in_place("power", other)

    def __and__(self, other: Any) -> "ndarray":
        return OPERATORS["bitwise_and"](self, other)

    def __rand__(self, other: Any) -> "ndarray":
        return OPERATORS["bitwise_and"](other, self)

    def __iand__(self, other: Any) -> "ndarray":
        return self._in_place("bitwise_and", other)

    def __or__(self, other: Any) -> "ndarray":
        return OPERATORS["bitwise_or"](self, other)

    def __ror__(self, other: Any) -> "ndarray":
        return OPERATORS["bitwise_or"](other, self)

    def __ior__(self, other: Any) -> "ndarray":
        return self._in_place("bitwise_or", other)

    def __xor__(self, other: Any) -> "ndarray":
        return OPERATORS["bitwise_xor"](self, other)

    def __rxor__(self, other: Any) -> "ndarray":
        return OPERATORS["bitwise_xor"](other, self)

    def __ixor__(self, other: Any) -> "ndarray":
        return self._in_place("bitwise_xor", other)

    def __lshift__(self, other: Any) -> "ndarray":
        return OPERATORS["left_shift"](self, other)

    def __rlshift__(self, other: Any) -> "ndarray":
        return OPERATORS["left_shift"](other, self)

    def __ilshift__(self, other: Any) -> "ndarray":
        return self._in_place("left_shift", other)

    def __rshift__(self, other: Any) -> "ndarray":
        return OPERATORS["right_shift"](self, other)

    def __rrshift__(self, other: Any) -> "ndarray":
        return OPERATORS["right_shift"](other, self)

    def __irshift__(self, other: Any) -> "ndarray":
        return self._in_place("right_shift", other)


_OPERANDS = (Operators, bool, int, float, complex, list, tuple)


def is_operand(value: Any) -> bool:
    """What can stand beside an array: numbers, arrays, and what has elements. Strings and other objects have their own say."""
    return isinstance(value, _OPERANDS) or hasattr(value, "dtype") or hasattr(value, "__array_interface__")
