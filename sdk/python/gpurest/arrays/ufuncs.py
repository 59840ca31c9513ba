"""Elementwise functions: NumPy's names, broadcasting and types; each call queues one node."""

from __future__ import annotations

import math
import warnings
from functools import lru_cache, partial
from operator import index
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, overload

from .._session.handle import levels_to_caller
from .._values import dtypes
from .._values.dtypes import DType, Scalar
from . import host
from ._engine import shapes
from ._engine.engine import Engine
from ._engine.elementwise import has_kind
from ._engine.expr import ELEMENTWISE, Const, Input, Node, Operation
from .casting import check as check_cast
from .current import current_engine
from .functions import FUNCTIONS, OPERATORS, method
from .ndarray import UNSET, AxisLike, engine_among, ndarray, queued, same_engine
from .operators import is_operand


class Weak(NamedTuple):
    """A Python scalar: it takes the type of the arrays that it meets."""

    value: Scalar


class Types(NamedTuple):
    """How one call computes: the type of each operand, the result's, and whether it compares signed with unsigned 64-bit integers."""

    operands: Tuple[DType, ...]
    result: DType
    mixed: bool = False
    params: Optional[Operation] = None  # of its nodes, where they are kept

    def as_params(self) -> Dict[str, Any]:
        """What nodes know of it."""
        return {"types": self.operands, "operand": self.operands[-1] if self.operands else None, "mixed": self.mixed}


Resolver = Callable[[str, Sequence[Any]], Types]


# ---- operands ----


def operand(value: Any, engine: Any = None) -> Any:
    """An ndarray, a Const of a definite type, or a Weak scalar."""
    if isinstance(value, (ndarray, Const)):
        return value
    if type(value) in (bool, int, float, complex):  # not their subclasses: numpy.float64 is one of float's
        return Weak(value)
    if dtypes.numpy is not None and isinstance(value, dtypes.numpy.generic):
        return Const(value.item(), dtypes.dtype_of(value.dtype))
    return host.asarray(value, session=engine.session if engine is not None else None)


def operands_of(values: Sequence[Any], *beside: Any) -> Tuple[List[Any], Optional[Engine]]:
    """Arrays and scalars, all of one session: that of the arrays among them, else of those `beside` them, such as `out`; and its engine, if there are any."""
    engine = engine_among(values) or engine_among(beside)
    return [operand(value, engine) for value in values], engine


def dtype_in(one: Any) -> DType:
    """The element type of an operand."""
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


def _reject(name: str) -> TypeError:
    return TypeError(f"ufunc '{name}' not supported for the input types, and the inputs could not be safely coerced to any supported types "
                     "according to the casting rule ''safe''")


def arithmetic(name: str, values: Sequence[Any]) -> Types:
    """All operands and the result are of one type; where there is nothing for booleans they count as small integers."""
    kind = common(values)
    if kind.kind == "b" and not has_kind(name, kind):
        if name in ("subtract", "negative", "sign"):
            raise TypeError(f"gpurest {name}: booleans are not numbers; use ^, ~ or logical functions")
        kind = dtypes.int8
    if not has_kind(name, kind) or (name in ("gcd", "lcm", "positive") and common(values).kind == "b"):
        raise _reject(name)
    return Types((kind,) * len(values), kind)


def magnitude(name: str, values: Sequence[Any]) -> Types:
    """Of complex numbers, the type of their parts."""
    kind = common(values)
    return Types((kind,), kind.part)


def floating(name: str, values: Sequence[Any]) -> Types:
    """In the floating type that holds each of the operands."""
    kind = dtypes.float_for(common(values)) if Weak in map(type, values) else dtypes.promote_all(tuple(dtypes.float_for(dtype_in(one)) for one in values))
    if not has_kind(name, kind):
        raise _reject(name)
    return Types((kind,) * len(values), kind)


def division(name: str, values: Sequence[Any]) -> Types:
    """In floating point."""
    kind = common(values)
    kind = kind if kind.kind in "fc" else dtypes.float64
    return Types((kind, kind), kind)


def comparison(name: str, values: Sequence[Any]) -> Types:
    """Of comparisons: the operands meet in a type, the result is bool."""
    kinds = tuple(dtype_in(one) for one in values)
    if {one.name for one in kinds} == {"int64", "uint64"} and not any(isinstance(one, Weak) for one in values):
        return Types(kinds, dtypes.bool_, True)
    kind = common(values)
    return Types((kind, kind), dtypes.bool_)


def logical(name: str, values: Sequence[Any]) -> Types:
    """Of logical functions: operands of any types, the result is bool."""
    return Types(tuple(dtype_in(one) for one in values), dtypes.bool_)


def double(name: str, values: Sequence[Any]) -> Types:
    """In float64, or complex128, whatever the operands are."""
    kind = dtypes.complex128 if common(values).kind == "c" else dtypes.float64
    return Types((kind,) * len(values), kind)


def scaling(name: str, values: Sequence[Any]) -> Types:
    """A float and a whole number."""
    first, second = dtype_in(values[0]), dtype_in(values[1])
    if first.kind == "c" or second.kind in "fc" or second is dtypes.uint64:
        raise _reject(name)
    kind = dtypes.float_for(first)
    return Types((kind, dtypes.int64), kind)


def counting(name: str, values: Sequence[Any]) -> Types:
    """Of the bits of whole numbers."""
    return Types(arithmetic(name, values).operands, dtypes.uint8)


def exponent(name: str, values: Sequence[Any]) -> Types:
    """Of frexp(): a float's exponent is int32."""
    return Types(floating(name, values).operands, dtypes.int32)


def predicate(name: str, values: Sequence[Any]) -> Types:
    """Of questions about single elements."""
    kind = dtypes.float_for(common(values)) if name == "signbit" else common(values)
    if not has_kind(name, kind):
        raise _reject(name)
    return Types((kind,), dtypes.bool_)


def whole(name: str, values: Sequence[Any]) -> Types:
    """In the operand's own type."""
    kind = common(values)
    if kind.kind == "c":
        raise _reject(name)
    return Types((kind,), kind)


def choice(name: str, values: Sequence[Any]) -> Types:
    """Of where(): a mask, and two operands that meet in a type."""
    kind = common(values[1:])
    return Types((dtypes.bool_, kind, kind), kind)


def _kind_of(one: Any) -> Any:
    """What a resolver looks at: the name of an element type, or the Python type of a scalar that takes the others'."""
    return type(one.value) if isinstance(one, Weak) else dtype_in(one).name


@lru_cache(maxsize=4096)
def _types(name: str, resolver: Resolver, kinds: Tuple[Any, ...]) -> Types:
    found = resolver(name, [Weak(kind()) if isinstance(kind, type) else Const(0, dtypes.dtype_of(kind)) for kind in kinds])
    return found._replace(params=Operation(found.as_params()))


# ---- calls ----

def _as_input(one: Any, wanted: DType, shape: shapes.Shape, strict: bool) -> Input:
    if isinstance(one, ndarray):
        return one._load().broadcast(shape)
    return one if isinstance(one, Const) else _const(one.value, wanted, strict)


def _const(value: Scalar, wanted: DType, strict: bool = True) -> Const:
    """A Python scalar among operands."""
    is_checked = wanted.kind in "fc" or wanted.kind in "iu" and not isinstance(value, bool) and strict
    return Const(dtypes.checked(value, wanted) if is_checked else value, wanted)


def apply(name: str, values: Sequence[Any], types: Types, shape: Optional[shapes.Shape] = None, strict: bool = True, engine: Optional[Engine] = None) -> ndarray:
    """Queues one elementwise node over prepared operands; where all are scalars, in `engine` or that of the default session."""
    engine = same_engine(values) or engine or current_engine()
    if shape is None:
        shape = shapes.broadcast_shapes(*[one._shape for one in values if isinstance(one, ndarray)])
    with engine.lock:
        inputs = tuple([_as_input(one, wanted, shape, strict) for one, wanted in zip(values, types.operands)])
        return queued(Node(engine, ELEMENTWISE, types.result, shape, name, inputs, types.params or types.as_params(), 4))


def warn_if_discarding(source: DType, target: DType) -> None:
    """NumPy's warning of complex numbers that become real ones, at the line of the program."""
    if source.kind == "c" and target.kind not in "bc":
        warnings.warn(dtypes.DISCARDS, dtypes.ComplexWarning, stacklevel=levels_to_caller())


@method
def cast_to(array: ndarray, dtype: DType) -> ndarray:
    """The elements as another type."""
    warn_if_discarding(array._dtype, dtype)
    return apply("identity", [array], Types((dtype,), dtype))


def plain(name: str, resolver: Resolver, *values: Any) -> ndarray:
    """As call() without any option. Of arrays and Python's own numbers in the shortest way: programs are made of these."""
    engine: Optional[Engine] = None
    shape: shapes.Shape = ()
    kinds: List[Any] = []
    for value in values:
        kind: Any = type(value)
        if kind is ndarray:
            kind = value._dtype.name
            if engine is None:
                engine, shape = value._storage.node.engine, value._shape
            elif value._storage.node.engine is not engine or value._shape != shape:
                return call(name, resolver, values)
        elif kind is not float and kind is not int:
            return call(name, resolver, values)
        kinds.append(kind)
    if engine is None or resolver is comparison:
        return call(name, resolver, values)
    types = _types(name, resolver, tuple(kinds))
    with engine.lock:
        inputs = tuple([value._load() if type(value) is ndarray else _const(value, wanted) for value, wanted in zip(values, types.operands)])
        return queued(Node(engine, ELEMENTWISE, types.result, shape, name, inputs, types.params, 4))


def operate(name: str, resolver: Resolver, first: Any, second: Any) -> ndarray:
    """As plain() of two operands, written out; NotImplemented where one of them is none, and has its own say of what it does with an array."""
    kind: Any = type(first)
    other: Any = type(second)
    left, right = kind is ndarray, other is ndarray
    if left:
        kind = first._dtype.name
    if right:
        other = second._dtype.name
    known = left and (right or other is float or other is int) or right and (kind is float or kind is int)
    if not known or resolver is comparison:
        return call(name, resolver, (first, second)) if is_operand(first) and is_operand(second) else NotImplemented
    array = first if left else second
    shape, engine = array._shape, array._storage.node.engine
    if left and right and (second._shape != shape or second._storage.node.engine is not engine):
        return call(name, resolver, (first, second))
    types = _types(name, resolver, (kind, other))
    with engine.lock:
        load = first._load() if left else _const(first, types.operands[0])
        inputs = (load, load if second is first else second._load() if right else _const(second, types.operands[1]))
        return queued(Node(engine, ELEMENTWISE, types.result, shape, name, inputs, types.params, 4))


def call(name: str, resolver: Resolver, values: Sequence[Any], out: Optional[ndarray] = None, dtype: Any = None, where: Any = True,
         casting: str = "same_kind") -> ndarray:
    """One elementwise function of operands as users give them, by NumPy's rules of types and of casting."""
    prepared, engine = operands_of(values, out, where)
    types = _types(name, resolver, tuple([_kind_of(one) for one in prepared]))
    if dtype is not None:
        types = _computed_in(name, types, dtypes.dtype_of(dtype))
    if casting != "same_kind" or dtype is not None:
        for one, wanted in zip(prepared, types.operands):
            if isinstance(one, ndarray):
                check_cast(one._dtype, wanted, casting, f"ufunc {name!r} input")
    result = _compare(name, prepared, types, engine) if resolver is comparison else apply(name, prepared, types, engine=engine)
    return into(out, result, where, casting, name)


def _computed_in(name: str, types: Types, wanted: DType) -> Types:
    if types.result is dtypes.bool_:
        return types
    if not has_kind(name, wanted) or (wanted.kind == "c" and types.result is not types.operands[-1]):
        raise TypeError(f"No loop matching the specified signature and casting was found for ufunc {name}")
    return Types(tuple(wanted for _ in types.operands), wanted)


def into(out: Any, result: ndarray, where: Any = True, casting: str = "same_kind", name: str = "") -> ndarray:
    """`result`, or `out` with it where `where` holds. Without `out` the other elements are 0: NumPy leaves them undefined."""
    if isinstance(out, tuple):
        if len(out) != 1:
            raise ValueError("The 'out' tuple must have exactly one entry per ufunc output")
        out = out[0]
    mask = None if where is True else host.asarray(where, session=result._engine.session)
    if mask is not None and mask._dtype is not dtypes.bool_:
        raise TypeError(f"Cannot cast array data from {mask.dtype!r} to {dtypes.public(dtypes.bool_)!r} according to the rule 'safe'")
    if out is None:
        return result if mask is None else choose(mask, result, dtypes.checked(0, result._dtype))
    if not isinstance(out, ndarray):
        raise TypeError("return arrays must be of ArrayType")
    check_cast(result._dtype, out._dtype, casting, f"ufunc {name!r} output")
    wide = result._shape if mask is None else shapes.broadcast_shapes(result._shape, mask._shape)
    if not shapes.can_broadcast(wide, out._shape):
        raise ValueError(f"non-broadcastable output operand with shape {out._shape} doesn't match the broadcast shape {wide}")
    out[...] = result if mask is None else choose(mask, result.astype(out._dtype, copy=False), out)
    return out


_BEYOND = {"equal": (False, False), "not_equal": (True, True), "less": (True, False), "less_equal": (True, False), "greater": (False, True),
           "greater_equal": (False, True)}  # the answer of array <op> scalar for a scalar above and below all values
_TURNED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def _compare(name: str, values: Sequence[Any], types: Types, engine: Optional[Engine]) -> ndarray:
    """A Python integer beyond the array's type compares as the number that it is."""
    kind = types.operands[0]
    for at, one in enumerate(values):
        other = values[1 - at]
        if isinstance(one, Weak) and isinstance(one.value, int) and kind.kind in "iu" and not isinstance(other, Weak) and not dtypes.fits(one.value, kind):
            turned = name if at == 1 else _TURNED.get(name, name)
            above, below = _BEYOND[turned]
            answer = above if one.value > 0 else below
            shape = other._shape if isinstance(other, ndarray) else ()
            return apply("identity", [Const(answer, dtypes.bool_)], Types((dtypes.bool_,), dtypes.bool_), shape, engine=engine)
    return apply(name, values, types, engine=engine)


IDENTITIES: Dict[str, Scalar] = {"add": 0, "multiply": 1, "logical_and": True, "logical_or": False, "logical_xor": False, "bitwise_and": -1, "bitwise_or": 0,
                                 "bitwise_xor": 0, "gcd": 0, "hypot": 0, "logaddexp": -math.inf, "logaddexp2": -math.inf}


class ufunc:
    """One elementwise function. `out` takes the result, converted to its type as `casting` allows; `dtype` is the type to compute in; where the
    mask `where` does not hold `out` stays as it is. Functions of two operands have reduce, accumulate, outer and at, as in NumPy."""

    nout = 1

    def __init__(self, name: str, count: int, resolver: Resolver) -> None:
        self.__name__ = name
        self.nin = count
        self._resolver = resolver
        self.__doc__ = f"numpy.{name} of {count} operand{'s' if count > 1 else ''}, elementwise."

    @property
    def nargs(self) -> int:
        """How many operands and results there are."""
        return self.nin + self.nout

    @property
    def identity(self) -> Any:
        """What a reduction of nothing gives; None: there is none."""
        return IDENTITIES.get(self.__name__)

    def _split(self, operands: Sequence[Any], out: Any) -> Tuple[Sequence[Any], Any]:
        """Operands and results, which may stand behind them."""
        if not self.nin <= len(operands) <= self.nargs:
            raise TypeError(f"{self.__name__}() takes from {self.nin} to {self.nargs} positional arguments but {len(operands)} were given")
        more = tuple(operands[self.nin:])
        if more and out is not None:
            raise TypeError("cannot specify 'out' as both a positional and keyword argument")
        return operands[:self.nin], (more if more else out)

    def __call__(self, *operands: Any, out: Any = None, where: Any = True, casting: str = "same_kind", order: str = "K", dtype: Any = None) -> ndarray:
        if out is None and where is True and dtype is None and len(operands) == self.nin and casting == "same_kind" and order == "K":
            return plain(self.__name__, self._resolver, *operands)  # the commonest way to be called
        inputs, target = self._split(operands, out)
        made = call(self.__name__, self._resolver, inputs, target, dtype, where, casting)
        return made if order in ("K", "C", "A") else FUNCTIONS["in_order"](made, order)

    def reduce(self, array: Any, axis: AxisLike = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = UNSET,
               where: Any = True) -> ndarray:
        """The elements along an axis joined to one. Several axes only where the order does not matter."""
        return FUNCTIONS["ufunc_reduce"](self, array, axis, dtype, out, keepdims, initial, where)  # type: ignore[no-any-return]

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> ndarray:
        """What reduce() gives of all elements up to each."""
        return FUNCTIONS["ufunc_accumulate"](self, array, axis, dtype, out)  # type: ignore[no-any-return]

    def outer(self, a: Any, b: Any, **options: Any) -> ndarray:
        """Every element of a with every one of b: the result has the dimensions of both."""
        return FUNCTIONS["ufunc_outer"](self, a, b, options)  # type: ignore[no-any-return]

    def at(self, a: ndarray, indices: Any, b: Any = UNSET) -> None:
        """a[indices] = f(a[indices], b), again for each time that a place is named. Floats are added in any order."""
        FUNCTIONS["ufunc_at"](self, a, indices, b)

    def __repr__(self) -> str:
        return f"<gpurest ufunc {self.__name__!r}>"


class _Several(ufunc):
    """With several results, each an elementwise operation of its own."""

    def __init__(self, name: str, count: int, parts: Sequence[Tuple[str, Resolver]]) -> None:
        super().__init__(name, count, parts[0][1])
        self.nout = len(parts)
        self._parts = parts

    def __call__(self, *operands: Any, out: Any = None, where: Any = True, casting: str = "same_kind", order: str = "K", dtype: Any = None) -> Any:
        inputs, target = self._split(operands, out)
        targets = (None,) * self.nout if target is None else tuple(target) + (None,) * (self.nout - len(target))
        prepared, engine = operands_of(inputs, targets, where)
        if common(prepared).kind == "c":
            raise _reject(self.__name__)
        alone = not any(isinstance(one, ndarray) for one in prepared)
        prepared = [one.value if isinstance(one, Weak) and not alone else cast_to_array(one, engine) for one in prepared]
        made = [call(name, resolver, prepared, None, dtype, where, casting) for name, resolver in self._parts]
        return tuple(into(to, one, where, casting, self.__name__) for to, one in zip(targets, made))


UFUNCS: Dict[str, ufunc] = {}
for _resolver, _count, _names in (
        (arithmetic, 2, "add subtract multiply floor_divide remainder fmod power maximum minimum fmax fmin bitwise_and bitwise_or "
                        "bitwise_xor left_shift right_shift gcd lcm"),
        (division, 2, "divide"),
        (floating, 2, "arctan2 hypot copysign logaddexp logaddexp2 heaviside nextafter"),
        (double, 2, "float_power"),
        (scaling, 2, "ldexp"),
        (comparison, 2, "equal not_equal less less_equal greater greater_equal"),
        (logical, 2, "logical_and logical_or logical_xor"),
        (logical, 1, "logical_not"),
        (magnitude, 1, "absolute"),
        (arithmetic, 1, "negative sign square reciprocal invert positive conjugate"),
        (counting, 1, "bitwise_count"),
        (whole, 1, "floor ceil trunc"),
        (predicate, 1, "isnan isinf isfinite signbit"),
        (floating, 1, "sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh cbrt rint arcsin arccos arctan arcsinh arccosh "
                      "arctanh deg2rad rad2deg fabs spacing bessel_i0")):
    for _name in _names.split():
        UFUNCS[_name] = ufunc(_name, _count, _resolver)
bessel_i0 = UFUNCS.pop("bessel_i0")
for _name, _count, _parts in (("divmod", 2, (("floor_divide", arithmetic), ("remainder", arithmetic))),
                              ("modf", 1, (("modf_fraction", floating), ("trunc", floating))),
                              ("frexp", 1, (("frexp_mantissa", floating), ("frexp_exponent", exponent)))):
    UFUNCS[_name] = _Several(_name, _count, _parts)

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
logaddexp2, heaviside, nextafter, float_power, ldexp = (UFUNCS[_name] for _name in ("logaddexp2", "heaviside", "nextafter", "float_power", "ldexp"))
gcd, lcm, positive, conjugate, bitwise_count = (UFUNCS[_name] for _name in ("gcd", "lcm", "positive", "conjugate", "bitwise_count"))
fabs, spacing, divmod, modf, frexp = (UFUNCS[_name] for _name in ("fabs", "spacing", "divmod", "modf", "frexp"))  # noqa: A001


class _Power(ufunc):
    """Squares and square roots, the commonest powers, have instructions of their own."""

    def __call__(self, *operands: Any, out: Any = None, where: Any = True, casting: str = "same_kind", order: str = "K", dtype: Any = None) -> ndarray:
        if len(operands) == 2 and out is None and dtype is None and where is True and isinstance(operands[0], ndarray) and type(operands[1]) in (int, float):
            base, exponent = operands
            if exponent == 2 and (type(exponent) is int or base._dtype.kind in "fc"):
                return square(base)
            if exponent == 0.5 and base._dtype.kind in "fc":
                return sqrt(base)
            if type(exponent) is int and exponent < 0 and base._dtype.kind in "biu":
                raise ValueError("Integers to negative integer powers are not allowed.")
        return super().__call__(*operands, out=out, where=where, casting=casting, order=order, dtype=dtype)


power = UFUNCS["power"] = _Power("power", 2, arithmetic)
FUNCTIONS.update(UFUNCS)
OPERATORS.update({_name: partial(operate, _name, _one._resolver) for _name, _one in UFUNCS.items() if _one.nin == 2 and _one is not power})
OPERATORS["power"] = lambda first, second: power(first, second) if is_operand(first) and is_operand(second) else NotImplemented

# Other names of the same functions.
abs, true_divide, mod, pow = absolute, divide, remainder, power  # noqa: A001
acos, acosh, asin, asinh, atan, atanh, atan2 = arccos, arccosh, arcsin, arcsinh, arctan, arctanh, arctan2
bitwise_not, bitwise_invert, bitwise_left_shift, bitwise_right_shift = invert, invert, left_shift, right_shift
conj, radians, degrees = conjugate, deg2rad, rad2deg
FUNCTIONS["conj"] = conjugate


# ---- functions made of these ----


def choose(condition: Any, x: Any, y: Any) -> ndarray:
    """where() with all its operands."""
    prepared, engine = operands_of((condition, x, y))
    if isinstance(prepared[0], Weak):
        prepared[0] = Const(bool(prepared[0].value), dtypes.bool_)
    return apply("where", prepared, choice("where", prepared), engine=engine)


@overload
def where(condition: Any) -> Tuple[ndarray, ...]: ...


@overload
def where(condition: Any, x: Any, y: Any) -> ndarray: ...


def where(condition: Any, x: Any = UNSET, y: Any = UNSET) -> Any:
    """x where the condition holds, else y. Of a condition alone, the places where it holds: nonzero()."""
    if x is UNSET and y is UNSET:
        return FUNCTIONS["nonzero"](cast_to_array(operand(condition)))
    if x is UNSET or y is UNSET:
        raise ValueError("either both or neither of x and y should be given")
    return choose(condition, x, y)


@method
def clip(a: Any, min: Any = None, max: Any = None, out: Optional[ndarray] = None, *, a_min: Any = None, a_max: Any = None) -> ndarray:  # noqa: A002
    """Elements below `min` become that, those above `max` that; a bound that is None is none. `a_min`, `a_max`: their older names."""
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    array = as_array(a, low, high, out)
    result = array if low is None else maximum(array, low)
    result = result if high is None else minimum(result, high)
    if out is None:
        return result if result is not a else cast_to(result, result._dtype)
    return into(out, result, name="clip")


@method
def round(a: Any, decimals: int = 0, out: Optional[ndarray] = None) -> ndarray:  # noqa: A001 - NumPy's name
    """To so many decimals; halves go to the even neighbour."""
    return into(out, _rounded(as_array(a, out), index(decimals)), casting="unsafe", name="round")


def _rounded(array: ndarray, decimals: int) -> ndarray:
    tens: int = 10 ** (decimals if decimals > 0 else -decimals)
    if array._dtype.kind == "c" and decimals:
        return from_parts(_rounded(array.real, decimals), _rounded(array.imag, decimals))
    if array._dtype.kind not in "fc":
        if decimals >= 0:
            return cast_to(array, dtypes.float16 if array._dtype.kind == "b" else array._dtype)
        return cast_to(rint(divide(array, tens)), array._dtype) * tens
    if decimals == 0:
        return rint(array)
    scaled = rint(array * tens if decimals > 0 else array / tens)
    return scaled / tens if decimals > 0 else scaled * tens


around = round


def from_parts(real: ndarray, imag: ndarray) -> ndarray:
    """Complex numbers of two arrays of one floating type."""
    return apply("complex", [real, imag], Types((real._dtype, real._dtype), dtypes.complex_of(real._dtype)))


def of_complex(name: str, array: ndarray, result: DType) -> ndarray:
    """One of the engine's functions of complex numbers that are no ufuncs."""
    return apply(name, [array], Types((array._dtype,), result))


def cast_to_array(one: Any, engine: Optional[Engine] = None) -> ndarray:
    """Scalars as arrays without dimensions, of `engine` or the default session."""
    if isinstance(one, ndarray):
        return one
    kind = dtype_in(one)
    return apply("identity", [Const(one.value, kind)], Types((kind,), kind), (), engine=engine)


@method
def as_array(a: Any, *beside: Any) -> ndarray:
    """`a` as an array; numbers as one without dimensions. What is on the host comes into the session of the arrays `beside` it."""
    return a if isinstance(a, ndarray) else as_arrays((a,), *beside)[0]


def as_arrays(values: Sequence[Any], *beside: Any) -> List[ndarray]:
    """Each as an array, of an array its parts; in the session that operands_of() chooses."""
    listed = [values[at] for at in range(len(values))] if isinstance(values, ndarray) else list(values)
    prepared, engine = operands_of(listed, *beside)
    return [cast_to_array(one, engine) for one in prepared]


pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None
