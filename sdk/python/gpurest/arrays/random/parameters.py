"""The parameters of distributions: numbers and host arrays are checked here, with NumPy's exceptions and texts, before anything is sent; what
is on the device is checked there, and fails the arrays drawn with it."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..._values import dtypes
from .. import host
from .._engine import shapes
from .._engine.engine import Engine
from .._engine.expr import ELEMENTWISE, Const, Node
from .._engine.memory import check_fits
from ..current import Where, current_engine
from ..ndarray import ndarray, same_engine, wrap

DOUBLE = dtypes.float64


class Parameter(NamedTuple):
    """`rule`: the row of RULES that it has to fulfil; "": any number will do."""

    name: str
    value: Any
    rule: str = ""


class Rule(NamedTuple):
    """What a parameter on the host has to fulfil, and what is said of one that does not."""

    holds: Callable[[Any], Any]  # of a float, or of a NumPy array element by element
    text: str  # {nan}: "is NaN" of a number, "contains NaNs" of an array


POISSON_MAX = 9.223372006484771e18  # NumPy's: ten standard deviations below the greatest int64
RULES: Dict[str, Tuple[Rule, ...]] = {
    "": (),
    "nonnegative": (Rule(lambda x: (x >= 0) | (x != x), "{name} < 0"),),
    "positive": (Rule(lambda x: (x > 0) | (x != x), "{name} <= 0"),),
    "from_0_to_1": (Rule(lambda x: (x >= 0) & (x <= 1), "{name} < 0, {name} > 1 or {name} {nan}"),),
    "above_0_to_1": (Rule(lambda x: (x > 0) & (x <= 1), "{name} <= 0, {name} > 1 or {name} contains NaNs"),),
    "from_0_below_1": (Rule(lambda x: (x >= 0) & (x < 1), "{name} < 0, {name} >= 1 or {name} {nan}"),),
    "above_1": (Rule(lambda x: x > 1, "{name} <= 1 or {name} {nan}"),),
    "countable": (Rule(lambda x: (x <= POISSON_MAX) | (x != x), "{name} value too large"), Rule(lambda x: x >= 0, "{name} < 0 or {name} {nan}")),
}


def is_number(value: Any) -> bool:
    """Whether it is one number of the host."""
    return isinstance(value, (bool, int, float)) or (dtypes.numpy is not None and isinstance(value, dtypes.numpy.generic))


def holds(checked: Any) -> bool:
    """Of all elements."""
    return bool(checked if isinstance(checked, bool) else checked.all())


def host_value(value: Any) -> Any:
    """A float, a NumPy array of doubles, or an array on the device: one of ours, and without NumPy whatever lists hold."""
    if isinstance(value, ndarray):
        return value
    if is_number(value) or value is None or isinstance(value, (complex, str)):
        number: Any = value  # what is no number gets Python's own error
        return float(number)
    if dtypes.numpy is None:
        return host.asarray(value, dtype=DOUBLE)
    made = dtypes.numpy.asarray(value, dtype="f8")
    return float(made) if made.ndim == 0 else made


def checked(parameter: Parameter) -> Any:
    """The parameter as host_value() gives it; one on the device is checked when it is used."""
    name, rule = parameter.name, parameter.rule
    value = host_value(parameter.value)
    if isinstance(value, ndarray):
        double = value.astype(DOUBLE, copy=False)
        return checked_there(double, rule) if rule else double
    nan = "is NaN" if isinstance(value, float) else "contains NaNs"
    for one in RULES[rule]:
        if not holds(one.holds(value)):
            raise ValueError(one.text.format(name=name, nan=nan))
    return value


def checked_there(value: ndarray, rule: str, bound: Any = None) -> ndarray:
    """The array again, by a kernel that finds out whether it breaks a rule of the device, perhaps with another array or a number as bound."""
    kind = value._dtype
    other = Const(0 if bound is None else bound, kind) if not isinstance(bound, ndarray) else bound.astype(kind, copy=False)
    return queue(value._engine, shape_of([value, other]), kind, "random_" + rule, (value, other))


def all_on_host(values: Sequence[Any]) -> bool:
    """Whether none of the parameters is on a device."""
    return not any(isinstance(one, ndarray) for one in values)


def engine_for(values: Sequence[Any], session: Where) -> Engine:
    """That of the parameters on a device, else that of a session."""
    found = same_engine(values)
    return current_engine(session) if found is None else found


def operands(engine: Engine, values: Sequence[Any]) -> List[Any]:
    """Numbers and arrays of the device, from what checked() gave."""
    return [Const(one, DOUBLE) if isinstance(one, float) else one if isinstance(one, ndarray) else host.asarray(one, session=engine.session)
            for one in values]


def shape_of(values: Sequence[Any], size: Any = None) -> shapes.Shape:
    """Of what is drawn with these parameters; `size` may be larger than they are, but not smaller."""
    wanted: Optional[shapes.Shape] = None if size is None else shapes.as_shape(size)
    given = [tuple(one.shape) for one in values if hasattr(one, "shape")]
    found: shapes.Shape = ()
    for shape in ([] if wanted is None else [wanted]) + given:
        try:
            found = shapes.broadcast_shapes(found, shape)
        except ValueError:
            raise ValueError("shape mismatch: objects cannot be broadcast to a single shape.  Mismatch is between "
                             f"shape {found} and a parameter of shape {shape}.") from None
    if wanted is not None and found != wanted:
        raise ValueError(f"Output size {wanted} is not compatible with broadcast dimensions of inputs {found}.")
    return found


def queue(engine: Engine, shape: shapes.Shape, dtype: dtypes.DType, op: str, inputs: Sequence[Any]) -> ndarray:
    """One elementwise node over arrays and scalars, each computed with in its own type."""
    check_fits(engine.session, shape, dtype)
    with engine.lock:
        loads = tuple([one._load().broadcast(shape) if isinstance(one, ndarray) else one for one in inputs])
        types = tuple([one._dtype if isinstance(one, ndarray) else one.dtype for one in inputs])
        return wrap(Node(engine, ELEMENTWISE, dtype, shape, op, loads, {"types": types, "operand": dtype}))
