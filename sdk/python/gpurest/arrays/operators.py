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

    def _binary(self, name: str, other: Any, turned: bool = False) -> "ndarray":
        if not _is_operand(other):
            return NotImplemented  # type: ignore[no-any-return]
        function = OPERATORS[name]
        return function(other, self) if turned else function(self, other)  # type: ignore[no-any-return]

    def _in_place(self, name: str, other: Any) -> "ndarray":
        if not _is_operand(other):
            return NotImplemented  # type: ignore[no-any-return]
        array, result = cast("ndarray", self), call(name, self, other)
        check_cast(result._dtype, array._dtype, "same_kind", f"ufunc {name!r} output")
        array[...] = result
        return array

    def __matmul__(self, other: Any) -> "ndarray":
        return call("matmul", self, other) if _is_operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> "ndarray":
        return call("matmul", other, self) if _is_operand(other) else NotImplemented

    def __imatmul__(self, other: Any) -> "ndarray":
        array = cast("ndarray", self)
        array[...] = call("matmul", self, other)
        return array

    def __divmod__(self, other: Any) -> Tuple["ndarray", "ndarray"]:
        return FUNCTIONS["divmod"](self, other) if _is_operand(other) else NotImplemented

    def __neg__(self) -> "ndarray":
        return call("negative", self)

    def __pos__(self) -> "ndarray":
        return cast("ndarray", self).copy()

    def __abs__(self) -> "ndarray":
        return call("absolute", self)

    def __invert__(self) -> "ndarray":
        return call("invert", self)

    def __eq__(self, other: object) -> Any:
        return self._binary("equal", other)

    def __ne__(self, other: object) -> Any:
        return self._binary("not_equal", other)

    def __lt__(self, other: Any) -> "ndarray":
        return self._binary("less", other)

    def __le__(self, other: Any) -> "ndarray":
        return self._binary("less_equal", other)

    def __gt__(self, other: Any) -> "ndarray":
        return self._binary("greater", other)

    def __ge__(self, other: Any) -> "ndarray":
        return self._binary("greater_equal", other)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> "ndarray":
        return self._binary("add", other)

    def __radd__(self, other: Any) -> "ndarray":
        return self._binary("add", other, True)

    def __iadd__(self, other: Any) -> "ndarray":
        return self._in_place("add", other)

    def __sub__(self, other: Any) -> "ndarray":
        return self._binary("subtract", other)

    def __rsub__(self, other: Any) -> "ndarray":
        return self._binary("subtract", other, True)

    def __isub__(self, other: Any) -> "ndarray":
        return self._in_place("subtract", other)

    def __mul__(self, other: Any) -> "ndarray":
        return self._binary("multiply", other)

    def __rmul__(self, other: Any) -> "ndarray":
        return self._binary("multiply", other, True)

    def __imul__(self, other: Any) -> "ndarray":
        return self._in_place("multiply", other)

    def __truediv__(self, other: Any) -> "ndarray":
        return self._binary("divide", other)

    def __rtruediv__(self, other: Any) -> "ndarray":
        return self._binary("divide", other, True)

    def __itruediv__(self, other: Any) -> "ndarray":
        return self._in_place("divide", other)

    def __floordiv__(self, other: Any) -> "ndarray":
        return self._binary("floor_divide", other)

    def __rfloordiv__(self, other: Any) -> "ndarray":
        return self._binary("floor_divide", other, True)

    def __ifloordiv__(self, other: Any) -> "ndarray":
        return self._in_place("floor_divide", other)

    def __mod__(self, other: Any) -> "ndarray":
        return self._binary("remainder", other)

    def __rmod__(self, other: Any) -> "ndarray":
        return self._binary("remainder", other, True)

    def __imod__(self, other: Any) -> "ndarray":
        return self._in_place("remainder", other)

    def __pow__(self, other: Any) -> "ndarray":
        return self._binary("power", other)

    def __rpow__(self, other: Any) -> "ndarray":
        return self._binary("power", other, True)

    def __ipow__(self, other: Any) -> "ndarray":
        return self._in_place("power", other)

    def __and__(self, other: Any) -> "ndarray":
        return self._binary("bitwise_and", other)

    def __rand__(self, other: Any) -> "ndarray":
        return self._binary("bitwise_and", other, True)

    def __iand__(self, other: Any) -> "ndarray":
        return self._in_place("bitwise_and", other)

    def __or__(self, other: Any) -> "ndarray":
        return self._binary("bitwise_or", other)

    def __ror__(self, other: Any) -> "ndarray":
        return self._binary("bitwise_or", other, True)

    def __ior__(self, other: Any) -> "ndarray":
        return self._in_place("bitwise_or", other)

    def __xor__(self, other: Any) -> "ndarray":
        return self._binary("bitwise_xor", other)

    def __rxor__(self, other: Any) -> "ndarray":
        return self._binary("bitwise_xor", other, True)

    def __ixor__(self, other: Any) -> "ndarray":
        return self._in_place("bitwise_xor", other)

    def __lshift__(self, other: Any) -> "ndarray":
        return self._binary("left_shift", other)

    def __rlshift__(self, other: Any) -> "ndarray":
        return self._binary("left_shift", other, True)

    def __ilshift__(self, other: Any) -> "ndarray":
        return self._in_place("left_shift", other)

    def __rshift__(self, other: Any) -> "ndarray":
        return self._binary("right_shift", other)

    def __rrshift__(self, other: Any) -> "ndarray":
        return self._binary("right_shift", other, True)

    def __irshift__(self, other: Any) -> "ndarray":
        return self._in_place("right_shift", other)


_OPERANDS = (Operators, bool, int, float, complex, list, tuple)


def _is_operand(value: Any) -> bool:
    """What can stand beside an array: numbers, arrays, and what has elements. Strings and other objects have their own say."""
    return isinstance(value, _OPERANDS) or hasattr(value, "dtype") or hasattr(value, "__array_interface__")
