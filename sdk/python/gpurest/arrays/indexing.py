"""Reading and writing parts of arrays: slices are views, arrays of numbers and masks pick copies."""

from __future__ import annotations

import operator
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .._values import dtypes
from .._values.dtypes import DType
from ..errors import ArgumentError
from . import host, ufuncs
from ._engine import shapes
from ._engine.engine import Engine
from ._engine.expr import ELEMENTWISE, UPDATE, Const, Input, Load, Node
from .creation import arange
from .functions import method
from .ndarray import ndarray, same_engine, wrap


class _Axis(NamedTuple):
    """One item of a key: a kept dimension (`extent`, `stride`), or one that `numbers` pick from."""

    extent: int
    stride: int
    numbers: Any = None
    picks: bool = False


class _Bare(NamedTuple):
    """A mask without dimensions: a new dimension, of extent 1 if it holds, else 0."""

    holds: bool


class Selection(NamedTuple):
    """A key worked out: a view, and what picks from it. `shape` is the result's."""

    shape: shapes.Shape
    strides: shapes.Strides
    offset: int
    numbers: Tuple[ndarray, ...] = ()
    steps: Tuple[Tuple[int, int], ...] = ()  # extent and stride of each dimension that is picked from
    place: int = 0  # of the numbers' dimensions within the result's
    picked: int = 0  # how many dimensions the numbers have


def _is_mask(item: Any) -> bool:
    if isinstance(item, ndarray):
        return item._dtype is dtypes.bool_
    dtype = getattr(item, "dtype", None)
    if dtype is not None:
        return bool(getattr(dtype, "kind", "") == "b") and getattr(item, "shape", ()) != ()
    return isinstance(item, list) and bool(item) and isinstance(_first(item), bool)


def _first(item: Any) -> Any:
    while isinstance(item, (list, tuple)) and item:
        item = item[0]
    return item


def _is_bare(item: Any) -> bool:
    """A mask without dimensions."""
    return isinstance(item, bool) or (getattr(item, "shape", None) == () and getattr(getattr(item, "dtype", None), "kind", "") == "b")


def _is_number(item: Any) -> bool:
    """A plain number; a bool is a mask."""
    if isinstance(item, (bool, ndarray, list, tuple, float, complex)) or getattr(item, "shape", ()) != ():
        return False
    return hasattr(item, "__index__")


def _items(array: ndarray, key: Any) -> List[Any]:
    """The key as one item per dimension and new dimension, masks taken apart, the ellipsis written out."""
    given = list(key) if isinstance(key, tuple) else [key]
    items: List[Any] = []
    for item in given:
        if _is_bare(item):
            items.append(_Bare(bool(item)))
        elif _is_mask(item):
            items.extend(nonzero(_as_array(array, item), of=array._shape[_used(items):]))
        else:
            items.append(item)
    dots = [at for at, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = _used(items)
    if used > array.ndim:
        raise IndexError(f"too many indices for array: array is {array.ndim}-dimensional, but {used} were indexed")
    fill = [slice(None)] * (array.ndim - used)
    at = dots[0] if dots else len(items)
    return items[:at] + fill + items[at + 1:]


def _used(items: Sequence[Any]) -> int:
    return sum(1 for item in items if item is not None and item is not Ellipsis and not isinstance(item, _Bare))


def _as_array(array: ndarray, item: Any) -> ndarray:
    return host.asarray(item, session=array._engine.session)


def _numbers(array: ndarray, item: Any, extent: int) -> ndarray:
    """An array of numbers; those of the host are checked here, those of the device by the kernel."""
    if isinstance(item, ndarray):
        numbers = item
    else:
        check_on_host(item, extent)
        numbers = _as_array(array, item)
        numbers = numbers if numbers.size else numbers.astype("i8")
    if numbers._dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    if extent == 0 and numbers.size:
        raise IndexError("index is out of bounds for axis with size 0")
    same_engine([array, numbers])
    return numbers


def check_on_host(item: Any, extent: int, kinds: str = "iu") -> None:
    """Raises IndexError for numbers of the host that are no places below `extent`, or of other kinds."""
    flat: List[Any] = []
    waiting = [item]
    if dtypes.numpy is not None:
        found = dtypes.numpy.asarray(item)
        if found.dtype.kind not in kinds and found.size:
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        flat, waiting = ([found.min().item(), found.max().item()] if found.size else []), []
    while waiting:
        one = waiting.pop()
        if isinstance(one, (list, tuple)):
            waiting.extend(one)
        else:
            flat.append(one)
    for one in flat:
        if not -extent <= operator.index(one) < extent:
            raise IndexError(f"index {int(one)} is out of bounds for axis with size {extent}")


def _slice(item: slice, extent: int, stride: int) -> Tuple[int, _Axis]:
    start, stop, step = item.indices(extent)
    count = len(range(start, stop, step))
    return (start * stride if count else 0), _Axis(count, stride * step)


def _number(item: Any, extent: int, axis: int) -> int:
    at = operator.index(item)
    if not -extent <= at < extent:
        raise IndexError(f"index {at} is out of bounds for axis {axis} with size {extent}")
    return at + extent if at < 0 else at


def select(array: ndarray, key: Any) -> Selection:
    """The key worked out for an array."""
    items = _items(array, key)
    picks = any(not isinstance(item, slice) and item is not None and not _is_number(item) for item in items)
    axes: List[_Axis] = []
    offset, at = array._offset, 0
    for item in items:
        if item is None:
            axes.append(_Axis(1, 0))
            continue
        if isinstance(item, _Bare):
            axes.append(_Axis(1, 0, _as_array(array, [0] if item.holds else []).astype("i8"), True))
            continue
        extent, stride = array._shape[at], array._strides[at]
        if isinstance(item, slice):
            shift, axis = _slice(item, extent, stride)
            offset += shift
            axes.append(axis)
        elif _is_number(item):
            offset += _number(item, extent, at) * stride
            if picks:
                axes.append(_Axis(extent, stride, None, True))
        elif isinstance(item, (str, float, complex)) or isinstance(_first(item), (float, complex)):
            raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and integer or boolean arrays are valid indices")
        else:
            axes.append(_Axis(extent, stride, _numbers(array, item, extent), True))
        at += 1
    if not picks:
        return Selection(tuple(axis.extent for axis in axes), tuple(axis.stride for axis in axes), offset)
    return _pick(axes, offset)


def _pick(axes: List[_Axis], offset: int) -> Selection:
    """The numbers' dimensions stand where the first of them stood if they stood side by side, else in front."""
    places = [at for at, axis in enumerate(axes) if axis.picks]
    together = places == list(range(places[0], places[-1] + 1))
    plain = [axis for axis in axes if not axis.picks]
    place = places[0] if together else 0
    real = [axis for axis in axes if axis.numbers is not None]
    wide = shapes.broadcast_shapes(*(axis.numbers._shape for axis in real))
    shape = tuple(axis.extent for axis in plain[:place]) + wide + tuple(axis.extent for axis in plain[place:])
    strides = tuple(axis.stride for axis in plain[:place]) + (0,) * len(wide) + tuple(axis.stride for axis in plain[place:])
    return Selection(shape, strides, offset, tuple(axis.numbers for axis in real), tuple((axis.extent, axis.stride) for axis in real), place, len(wide))


def _number_loads(chosen: Selection) -> Tuple[Load, ...]:
    """The numbers, stretched over the result."""
    wide = chosen.shape[chosen.place:chosen.place + chosen.picked]
    after = len(chosen.shape) - chosen.place - chosen.picked
    found = []
    for numbers in chosen.numbers:
        load = numbers._load().broadcast(wide)
        found.append(load._replace(shape=chosen.shape, strides=(0,) * chosen.place + load.strides + (0,) * after))
    return tuple(found)


@method
def read_part(array: ndarray, key: Any) -> ndarray:
    """array[key]."""
    chosen = select(array, key)
    if not chosen.numbers:
        return array._view(chosen.shape, chosen.strides, chosen.offset)
    engine = array._engine
    with engine.lock:
        base = Load(array._storage.node, array._dtype, chosen.shape, chosen.strides, chosen.offset, True)
        inputs: Tuple[Input, ...] = (base, *_number_loads(chosen))
        return wrap(Node(engine, ELEMENTWISE, array._dtype, chosen.shape, "gather", inputs, {"types": (), "steps": chosen.steps}))


@method
def write_part(array: ndarray, key: Any, value: Any) -> None:
    """array[key] = value."""
    if isinstance(key, (ndarray, list)) or hasattr(key, "dtype"):
        if _is_mask(key) and _put_by_mask(array, key, value):
            return
    chosen = select(array, key)
    _store(ndarray(array._storage, array._dtype, chosen.shape, chosen.strides, chosen.offset), value, chosen)


def join(array: ndarray, key: Any, value: Any, op: str) -> None:
    """array[key] = op(array[key], value), once for each time that an element is named; of elements of 4 or 8 bytes, in any order."""
    chosen = select(array, key)
    if not chosen.numbers:
        array[key] = ufuncs.UFUNCS[op](array[key], value).astype(array._dtype, copy=False)
        return
    _store(ndarray(array._storage, array._dtype, chosen.shape, chosen.strides, chosen.offset), value, chosen, op)


def _put_by_mask(array: ndarray, key: Any, value: Any) -> bool:
    """One value for all chosen elements needs no counting of them."""
    mask = _as_array(array, key)
    prepared = ufuncs.operand(value, array._engine)
    if isinstance(prepared, ndarray) and prepared.size != 1:
        return False
    if mask._shape != array._shape[:mask.ndim] or (isinstance(prepared, ndarray) and prepared.ndim > 1):
        return False
    if isinstance(prepared, ndarray):
        value = prepared.reshape(()).astype(array._dtype)
    else:
        value = _scalar_for(array._dtype, prepared)
    wide = mask.reshape(mask._shape + (1,) * (array.ndim - mask.ndim))
    operands = [wide, value, array]
    array[...] = ufuncs.apply("where", operands, ufuncs.choice("where", operands))
    return True


def _scalar_for(dtype: DType, prepared: Any) -> Const:
    """A number as one of the type. Python's complex numbers are refused where they would lose their imaginary part, NumPy's lose it with a warning."""
    value = prepared.value
    if isinstance(value, complex) and not isinstance(prepared, ufuncs.Weak) and dtype.kind not in "bc":
        ufuncs.warn_if_discarding(prepared.dtype, dtype)
        value = value.real
    return Const(dtypes.checked(value, dtype), dtype)


def _fitting(target: ndarray, value: Any) -> Any:
    """An array in the target's session that can be stretched to its shape, or a number of its type. Dimensions of extent 1 in front of the value are
    dropped, as in NumPy."""
    dtype, shape = target._dtype, target._shape
    prepared = ufuncs.operand(value, target._engine)
    if isinstance(prepared, ndarray):
        same_engine([target, prepared])
        extra = prepared.ndim - len(shape)
        if extra > 0 and all(extent == 1 for extent in prepared._shape[:extra]):
            prepared = prepared.reshape(prepared._shape[extra:])
        if not shapes.can_broadcast(prepared._shape, shape):
            raise ValueError(f"could not broadcast input array from shape {prepared._shape} into shape {shape}")
        ufuncs.warn_if_discarding(prepared._dtype, dtype)
        return prepared
    return _scalar_for(dtype, prepared) if isinstance(prepared, ufuncs.Weak) or prepared.dtype.kind == "c" else prepared


def _value_node(target: ndarray, value: Any) -> Node:
    """An expression of the target's shape and type."""
    dtype, shape = target._dtype, target._shape
    source: Input = value._load().broadcast(shape) if isinstance(value, ndarray) else value
    return Node(target._engine, ELEMENTWISE, dtype, shape, "identity", (source,), {"types": (dtype,), "operand": dtype})


def _covers(target: ndarray, chosen: Selection) -> bool:
    """The whole of the memory in its order, known to nobody outside: writing it is making a new value."""
    storage, node = target._storage, target._storage.node
    return (not chosen.numbers and not storage.exported and target._dtype is node.dtype and target._shape == node.shape
            and target._offset == 0 and target._contiguous)


def _store(target: ndarray, value: Any, chosen: Selection, joined: str = "") -> None:
    if any(stride == 0 and extent > 1 for extent, stride in zip(chosen.shape, chosen.strides)) and not chosen.numbers:
        raise ValueError("the destination has elements that share memory (a broadcast view): copy it first")
    fitting = _fitting(target, value)
    while True:  # until the lock is there, another thread may place an array that was in no session
        engine = target._engine
        with engine.lock:
            if target._engine is engine:
                _queue_change(engine, target, _value_node(target, fitting), chosen, joined)
                return


def _queue_change(engine: Engine, target: ndarray, source: Node, chosen: Selection, joined: str) -> None:
    """With the lock held until an array has the new value: what no array has, a flush does not store."""
    storage = target._storage
    engine.add(source)
    old = storage.node
    if _covers(target, chosen):
        storage.assign(source)
    elif source.size:
        inputs: List[Input] = [old.load(), source.load()]
        params: Dict[str, Any] = {"target": target._load()}
        if chosen.numbers:
            inputs += [_apart(load, old) for load in _number_loads(chosen)]
            params["steps"] = chosen.steps
        if joined:
            params["joined"] = joined
        node = Node(engine, UPDATE, old.dtype, old.shape, "update", tuple(inputs), params)
        engine.add(node, update=True)
        storage.assign(node)
    engine.relieve(storage.node)


def _apart(numbers: Load, old: Node) -> Load:
    """Numbers that lie in the memory that they write to are copied first."""
    if numbers.node is not old:
        return numbers
    node = Node(old.engine, ELEMENTWISE, numbers.dtype, numbers.shape, "identity", (numbers,), {"types": (numbers.dtype,), "operand": numbers.dtype})
    old.engine.add(node)
    return node.load()


@method
def nonzero(a: Any, of: Optional[shapes.Shape] = None) -> Tuple[ndarray, ...]:
    """The places of what is not zero, a 1-d array per dimension. Their number must be known, so this sends what is queued. `of`: the shape
    that a mask is meant for."""
    array = ufuncs.as_array(a)
    if of is not None and array._shape != of[:array.ndim]:
        raise IndexError(f"boolean index did not match indexed array: the mask's shape is {array._shape}, the array's {of}")
    if array.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    flat = (array != 0).reshape(-1)
    if not flat.size:
        return tuple(host.empty((0,), "i8", session=array._engine.session) for _ in array._shape)
    position = flat.cumsum()
    count = int(position[-1])
    places = host.empty((count + 1,), "i8", session=array._engine.session)
    places[ufuncs.where(flat, position - 1, count)] = arange(flat.size, session=array._engine.session)
    rest = places[:count]
    found: List[ndarray] = []
    for extent in reversed(array._shape):
        found.append(rest % extent if len(found) + 1 < array.ndim else rest)
        rest = rest // extent
    return tuple(reversed(found))


def flatnonzero(a: Any) -> ndarray:
    """The places, in C order, of what is not zero."""
    return nonzero(ufuncs.as_array(a).reshape(-1))[0]


def ix_(*sequences: Any) -> Tuple[Any, ...]:
    """Numbers per dimension that together pick every combination; NumPy arrays, or nested lists without NumPy."""
    if any(isinstance(one, ndarray) for one in sequences):
        raise ArgumentError("ix_ takes numbers of the host")
    return tuple(_nested(list(one), len(sequences) - at - 1) for at, one in enumerate(sequences))


def _nested(numbers: List[Any], depth: int) -> List[Any]:
    for _ in range(depth):
        numbers = [[one] for one in numbers]
    return numbers
