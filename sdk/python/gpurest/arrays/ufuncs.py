"""Elementwise functions: NumPy's names, broadcasting and types; each call queues one node."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .._values import dtypes
from .._values.dtypes import DType, Scalar
from . import host
from ._engine import shapes
from ._engine.elementwise import has_kind
from ._engine.expr import ELEMENTWISE, Const, Input, Node
from .current import current_engine
from .functions import FUNCTIONS, method
from .ndarray import ndarray, same_engine, wrap


class Weak(NamedTuple):
    """A Python scalar: it takes the type of the arrays that it meets."""

    value: Scalar


class Types(NamedTuple):
    """How one call computes: the type of each operand, the result's, and whether it compares signed with unsigned 64-bit integers."""

    operands: Tuple[DType, ...]
    result: DType
    mixed: bool = False


Resolver = Callable[[str, Sequence[Any]], Types]


# ---- operands ----


def operand(value: Any, engine: Any = None) -> Any:
    """An ndarray, a Const of a definite type, or a Weak scalar."""
    if isinstance(value, (ndarray, Const)):
        return value
    if type(value) in (bool, int, float):  # not their subclasses: numpy.float64 is one of float's
        return Weak(value)
    if dtypes.numpy is not None and isinstance(value, dtypes.numpy.generic):
        return Const(value.item(), dtypes.dtype_of(value.dtype))
    return host.asarray(value, session=engine.session if engine is not None else None)


def operands_of(values: Sequence[Any]) -> List[Any]:
    engine = same_engine(values)
    return [operand(value, engine) for value in values]


def dtype_in(one: Any) -> DType:
    if isinstance(one, ndarray):
        return one._dtype
    return one.dtype if isinstance(one, Const) else dtypes.of_scalar(one.value)


def common(values: Sequence[Any]) -> DType:
    """The type in which operands meet: that of arrays first, which Python scalars then adapt to."""
    strong = tuple(dtype_in(one) for one in values if not isinstance(one, Weak))
    weak = [one.value for one in values if isinstance(one, Weak)]
    if not strong:
        return dtypes.promote_all(tuple(dtypes.of_scalar(value) for value in weak))
    result = dtypes.promote_all(strong)
    for value in weak:
        result = dtypes.weak_with(value, result)
    return result


# ---- types of the result ----


def _reject(name: str, values: Sequence[Any]) -> TypeError:
    return TypeError(f"{name} takes no {' and '.join(dtype_in(one).name for one in values)}")


def arithmetic(name: str, values: Sequence[Any]) -> Types:
    """All operands and the result are of one type; where there is nothing for booleans they count as small integers."""
    kind = common(values)
    if kind.kind == "b" and not has_kind(name, kind):
        if name in ("subtract", "negative", "sign"):
            raise TypeError(f"gpurest {name}: booleans are not numbers; use ^, ~ or logical functions")
        kind = dtypes.int8
    if not has_kind(name, kind):
        raise _reject(name, values)
    return Types((kind,) * len(values), kind)


def floating(name: str, values: Sequence[Any]) -> Types:
    kind = dtypes.float_for(common(values))
    return Types((kind,) * len(values), kind)


def division(name: str, values: Sequence[Any]) -> Types:
    kind = common(values)
    kind = kind if kind.kind == "f" else dtypes.float64
    return Types((kind, kind), kind)


def comparison(name: str, values: Sequence[Any]) -> Types:
    kinds = tuple(dtype_in(one) for one in values)
    if {one.name for one in kinds} == {"int64", "uint64"} and not any(isinstance(one, Weak) for one in values):
        return Types(kinds, dtypes.bool_, True)
    kind = common(values)
    return Types((kind, kind), dtypes.bool_)


def logical(name: str, values: Sequence[Any]) -> Types:
    return Types(tuple(dtype_in(one) for one in values), dtypes.bool_)


def predicate(name: str, values: Sequence[Any]) -> Types:
    kind = dtypes.float_for(common(values)) if name == "signbit" else common(values)
    return Types((kind,), dtypes.bool_)


def whole(name: str, values: Sequence[Any]) -> Types:
    kind = common(values)
    return Types((kind,), kind)


def choice(name: str, values: Sequence[Any]) -> Types:
    kind = common(values[1:])
    return Types((dtypes.bool_, kind, kind), kind)


def _kind_of(one: Any) -> Any:
    """What a resolver looks at: the name of an element type, or the Python type of a scalar that takes the others'."""
    return type(one.value) if isinstance(one, Weak) else dtype_in(one).name


@lru_cache(maxsize=4096)
def _types(name: str, resolver: Resolver, kinds: Tuple[Any, ...]) -> Types:
    return resolver(name, [Weak(kind()) if isinstance(kind, type) else Const(0, dtypes.dtype_of(kind)) for kind in kinds])


# ---- calls ----


def _as_input(one: Any, wanted: DType, shape: shapes.Shape, strict: bool) -> Input:
    if isinstance(one, ndarray):
        return one._load().broadcast(shape)
    if isinstance(one, Const):
        return one
    value = one.value
    if wanted.kind in "iu" and not isinstance(value, bool) and strict:
        return Const(dtypes.checked(value, wanted), wanted)
    return Const(dtypes.rounded(float(value), wanted) if wanted.kind == "f" else value, wanted)


def apply(name: str, values: Sequence[Any], types: Types, shape: Optional[shapes.Shape] = None, strict: bool = True) -> ndarray:
    """Queues one elementwise node over prepared operands."""
    engine = same_engine(values)
    if engine is None:
        engine = current_engine()
    if shape is None:
        shape = shapes.broadcast_shapes(*[one._shape for one in values if isinstance(one, ndarray)])
    with engine.lock:
        inputs = tuple([_as_input(one, wanted, shape, strict) for one, wanted in zip(values, types.operands)])
        params: Dict[str, Any] = {"types": types.operands, "operand": types.operands[-1] if types.operands else None, "mixed": types.mixed}
        return wrap(Node(engine, ELEMENTWISE, types.result, shape, name, inputs, params))


@method
def cast_to(array: ndarray, dtype: DType) -> ndarray:
    return apply("identity", [array], Types((dtype,), dtype))


def call(name: str, resolver: Resolver, values: Sequence[Any], out: Optional[ndarray] = None, dtype: Any = None) -> ndarray:
    prepared = operands_of(values)
    types = _types(name, resolver, tuple([_kind_of(one) for one in prepared]))
    if dtype is not None:
        wanted = dtypes.dtype_of(dtype)
        if types.result is not dtypes.bool_:
            types = Types(tuple(wanted for _ in types.operands), wanted)
    if resolver is comparison:
        result = _compare(name, prepared, types)
    else:
        result = apply(name, prepared, types)
    if out is None:
        return result
    out[...] = result
    return out


_BEYOND = {"equal": (False, False), "not_equal": (True, True), "less": (True, False), "less_equal": (True, False), "greater": (False, True),
           "greater_equal": (False, True)}  # the answer of array <op> scalar for a scalar above and below all values
_TURNED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def _compare(name: str, values: Sequence[Any], types: Types) -> ndarray:
    """A Python integer beyond the array's type compares as the number that it is."""
    kind = types.operands[0]
    for at, one in enumerate(values):
        other = values[1 - at]
        if isinstance(one, Weak) and isinstance(one.value, int) and kind.kind in "iu" and not isinstance(other, Weak) and not dtypes.fits(one.value, kind):
            turned = name if at == 1 else _TURNED.get(name, name)
            above, below = _BEYOND[turned]
            answer = above if one.value > 0 else below
            shape = other._shape if isinstance(other, ndarray) else ()
            return apply("identity", [Const(answer, dtypes.bool_)], Types((dtypes.bool_,), dtypes.bool_), shape)
    return apply(name, values, types)


class ufunc:
    """One elementwise function. `out` takes the result, converted to its type; `dtype` is the type to compute in."""

    def __init__(self, name: str, count: int, resolver: Resolver) -> None:
        self.__name__ = name
        self.nin = count
        self._resolver = resolver
        self.__doc__ = f"numpy.{name} of {count} operand{'s' if count > 1 else ''}, elementwise."

    def __call__(self, *operands: Any, out: Optional[ndarray] = None, dtype: Any = None) -> ndarray:
        if len(operands) != self.nin:
            raise TypeError(f"{self.__name__}() takes {self.nin} operands, got {len(operands)}")
        return call(self.__name__, self._resolver, operands, out, dtype)

    def __repr__(self) -> str:
        return f"<gpurest ufunc {self.__name__!r}>"


UFUNCS: Dict[str, ufunc] = {}
for _resolver, _count, _names in (
        (arithmetic, 2, "add subtract multiply floor_divide remainder fmod power maximum minimum fmax fmin bitwise_and bitwise_or "
                        "bitwise_xor left_shift right_shift"),
        (division, 2, "divide"),
        (floating, 2, "arctan2 hypot copysign logaddexp"),
        (comparison, 2, "equal not_equal less less_equal greater greater_equal"),
        (logical, 2, "logical_and logical_or logical_xor"),
        (logical, 1, "logical_not"),
        (arithmetic, 1, "negative absolute sign square reciprocal invert"),
        (whole, 1, "floor ceil trunc"),
        (predicate, 1, "isnan isinf isfinite signbit"),
        (floating, 1, "sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh cbrt rint arcsin arccos arctan arcsinh arccosh "
                      "arctanh deg2rad rad2deg")):
    for _name in _names.split():
        UFUNCS[_name] = ufunc(_name, _count, _resolver)

add, subtract, multiply, divide = UFUNCS["add"], UFUNCS["subtract"], UFUNCS["multiply"], UFUNCS["divide"]
floor_divide, remainder, fmod = UFUNCS["floor_divide"], UFUNCS["remainder"], UFUNCS["fmod"]
maximum, minimum, fmax, fmin = UFUNCS["maximum"], UFUNCS["minimum"], UFUNCS["fmax"], UFUNCS["fmin"]
bitwise_and, bitwise_or, bitwise_xor, invert = UFUNCS["bitwise_and"], UFUNCS["bitwise_or"], UFUNCS["bitwise_xor"], UFUNCS["invert"]
left_shift, right_shift = UFUNCS["left_shift"], UFUNCS["right_shift"]
equal, not_equal, less, less_equal = UFUNCS["equal"], UFUNCS["not_equal"], UFUNCS["less"], UFUNCS["less_equal"]
greater, greater_equal = UFUNCS["greater"], UFUNCS["greater_equal"]
logical_and, logical_or, logical_xor, logical_not = (UFUNCS["logical_" + _name] for _name in ("and", "or", "xor", "not"))
negative, absolute, sign, square, reciprocal = (UFUNCS[_name] for _name in ("negative", "absolute", "sign", "square", "reciprocal"))
floor, ceil, trunc, rint = UFUNCS["floor"], UFUNCS["ceil"], UFUNCS["trunc"], UFUNCS["rint"]
isnan, isinf, isfinite, signbit = UFUNCS["isnan"], UFUNCS["isinf"], UFUNCS["isfinite"], UFUNCS["signbit"]
sqrt, exp, exp2, expm1, cbrt = (UFUNCS[_name] for _name in ("sqrt", "exp", "exp2", "expm1", "cbrt"))
log, log2, log10, log1p = (UFUNCS[_name] for _name in ("log", "log2", "log10", "log1p"))
sin, cos, tan, sinh, cosh, tanh = (UFUNCS[_name] for _name in ("sin", "cos", "tan", "sinh", "cosh", "tanh"))
arcsin, arccos, arctan, arctan2 = (UFUNCS[_name] for _name in ("arcsin", "arccos", "arctan", "arctan2"))
arcsinh, arccosh, arctanh = (UFUNCS[_name] for _name in ("arcsinh", "arccosh", "arctanh"))
hypot, copysign, logaddexp, deg2rad, rad2deg = (UFUNCS[_name] for _name in ("hypot", "copysign", "logaddexp", "deg2rad", "rad2deg"))
abs = absolute  # noqa: A001 - NumPy's name
true_divide = divide
mod = remainder


class _Power(ufunc):
    """Squares and square roots, the commonest powers, have instructions of their own."""

    def __call__(self, *operands: Any, out: Optional[ndarray] = None, dtype: Any = None) -> ndarray:
        if len(operands) == 2 and out is None and dtype is None and isinstance(operands[0], ndarray) and type(operands[1]) in (int, float):
            base, exponent = operands
            if exponent == 2 and (type(exponent) is int or base._dtype.kind == "f"):
                return square(base)
            if exponent == 0.5 and base._dtype.kind == "f":
                return sqrt(base)
            if type(exponent) is int and exponent < 0 and base._dtype.kind in "biu":
                raise ValueError("Integers to negative integer powers are not allowed.")
        return super().__call__(*operands, out=out, dtype=dtype)


power = UFUNCS["power"] = _Power("power", 2, arithmetic)
FUNCTIONS.update(UFUNCS)


# ---- functions made of these ----


def where(condition: Any, x: Any, y: Any) -> ndarray:
    """x where the condition holds, else y."""
    prepared = operands_of([condition, x, y])
    if isinstance(prepared[0], Weak):
        prepared[0] = Const(bool(prepared[0].value), dtypes.bool_)
    return apply("where", prepared, choice("where", prepared))


@method
def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Optional[ndarray] = None) -> ndarray:
    """min(max(a, a_min), a_max); a bound that is None is none."""
    result = cast_to_array(operand(a))
    if a_min is not None:
        result = maximum(result, a_min)
    if a_max is not None:
        result = minimum(result, a_max)
    if out is None:
        return result if result is not a else cast_to(result, result._dtype)
    out[...] = result
    return out


@method
def round(a: Any, decimals: int = 0) -> ndarray:  # noqa: A001 - NumPy's name
    """To so many decimals; halves go to the even neighbour."""
    array = cast_to_array(operand(a))
    tens: int = 10 ** (decimals if decimals > 0 else -decimals)
    if array._dtype.kind != "f":
        if decimals >= 0:
            return cast_to(array, dtypes.float16 if array._dtype.kind == "b" else array._dtype)
        return cast_to(rint(divide(array, tens)), array._dtype) * tens
    if decimals == 0:
        return rint(array)
    scaled = rint(array * tens if decimals > 0 else array / tens)
    return scaled / tens if decimals > 0 else scaled * tens


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> ndarray:
    """abs(a - b) <= atol + rtol * abs(b), and what is not finite only where it is equal."""
    a, b = operands_of([a, b])
    a, b = (cast_to(one, dtypes.float64) if isinstance(one, ndarray) and one._dtype.kind != "f" else one for one in (a, b))
    a, b = (one.value if isinstance(one, Weak) else one for one in (a, b))
    near = less_equal(absolute(subtract(a, b)), add(multiply(absolute(b), rtol), atol))
    close = where(logical_and(isfinite(a), isfinite(b)), near, equal(a, b))
    return logical_or(close, logical_and(isnan(a), isnan(b))) if equal_nan else close


def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


def array_equal(a: Any, b: Any) -> bool:
    first, second = (cast_to_array(operand(one)) for one in (a, b))
    return first._shape == second._shape and bool(equal(first, second).all())


def cast_to_array(one: Any) -> ndarray:
    """Scalars as arrays without dimensions."""
    if isinstance(one, ndarray):
        return one
    kind = dtype_in(one)
    return apply("identity", [Const(one.value, kind)], Types((kind,), kind), ())


def nan_to_num(x: Any, nan: float = 0.0) -> ndarray:
    """NaN becomes `nan`, infinities the greatest and least finite numbers."""
    array = cast_to_array(operand(x))
    if array._dtype.kind != "f":
        return cast_to(array, array._dtype)
    greatest = {2: 65504.0, 4: 3.4028234663852886e38, 8: 1.7976931348623157e308}[array._dtype.itemsize]
    bounds = [Const(one, array._dtype) for one in (-greatest, greatest)]
    finite = where(isinf(array), where(signbit(array), *bounds), array)
    return where(isnan(array), nan, finite)


pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None
