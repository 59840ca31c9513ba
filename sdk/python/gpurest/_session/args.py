"""Kernel arguments: each Python value is checked against its parameter and written as the contract wants it.

The rule: nothing is reinterpreted silently. A value whose type cannot be right is refused before anything is sent."""
from __future__ import annotations

import base64
import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from .._transport.frame import dumps
from .._values.dtypes import DType, dtype_of
from .._values.hostmem import numpy
from .._values.scalars import SIZES, Placed, Placeholder, Scalar, Struct, is_exact, scalar_kind
from .._values.signature import Declared
from ..errors import ArgumentError
from .handle import apart

if TYPE_CHECKING:
    from .session_state import SessionState

Json = Dict[str, Any]
Fast = Callable[[Any, "Optional[SessionState]"], Optional[str]]  # the argument as text
_CTYPES: Dict[str, str] = {"?": "bool", "b": "i8", "B": "u8", "h": "i16", "H": "u16", "i": "i32", "I": "u32", "l": "i", "L": "u", "q": "i64",
                           "Q": "u64", "f": "f32", "d": "f64", "c": "i8"}
_INTEGERS = ("i", "u")


@dataclass(frozen=True)
class Param:
    """A parameter. `form`: "float", "int", "bool", "pointer", "bytes", "word" (8 bytes: an integer or a pointer), "any" (only the size is
    known). `kind` is the exact scalar type, `pointee` the exact type behind a pointer, where known. `size` None: not known."""
    index: int
    name: str
    size: Optional[int]
    form: str
    kind: Optional[str] = None
    pointee: Optional[str] = None


def params_of(table: Sequence[Mapping[str, Any]], declared: Optional[Sequence[Declared]]) -> Tuple[Param, ...]:
    """From the service's table, with what the source adds where the two agree."""
    if declared is not None and len(declared) != len(table):
        declared = None
    return tuple(_param(i, row, declared[i] if declared is not None else None) for i, row in enumerate(table))


def params_declared(declared: Sequence[Declared]) -> Tuple[Param, ...]:
    """From the source alone."""
    return tuple(_from_source(i, one, None) for i, one in enumerate(declared))


def _param(index: int, row: Mapping[str, Any], declared: Optional[Declared]) -> Param:
    size = int(row["size"])
    if declared is not None:
        known = _from_source(index, declared, size)
        if known.form != "any" and (known.kind is None or SIZES[known.kind] == size) and (known.form != "pointer" or size == 8):
            return known
    name = str(row.get("name") or (declared.name if declared else ""))
    return Param(index, name, size, _form_of(str(row.get("type") or ""), size))


def _from_source(index: int, declared: Declared, size: Optional[int]) -> Param:
    if declared.pointer:
        return Param(index, declared.name, 8, "pointer", None, declared.pointee)
    if declared.kind is None:
        return Param(index, declared.name, size, "any")
    return Param(index, declared.name, SIZES[declared.kind], _form_of_kind(declared.kind), declared.kind)


def _form_of_kind(kind: str) -> str:
    return "bool" if kind == "bool" else "float" if kind[0] in "fb" else "int"


def _form_of(ptx: str, size: int) -> str:
    """From a PTX type. NVRTC declares numbers by their kind, pointers as .u64, structs as arrays of .b8."""
    if not ptx:
        return "any"
    if ptx in ("f32", "f64"):
        return "float"
    if ptx[0] in "us" and SIZES.get("u" + ptx[1:]) == size:
        return "word" if size == 8 else "int" if size > 1 else "any"
    return "bytes" if ptx == "b8" and size > 1 else "any"


# ---- one argument ----

class Converter:
    """Converts the arguments of one kernel for one session. `reference` gives a buffer's name in the request that is made."""

    def __init__(self, kernel: str, params: Optional[Sequence[Param]]) -> None:
        self.kernel = kernel
        self.params = params
        self._plans: Dict[Tuple[type, ...], List[Fast]] = {}

    def convert(self, args: Sequence[Any], session: Optional[SessionState], same_kind: bool = False) -> List[Json]:
        """The contract's "args". ArgumentError says which argument does not fit, and what would."""
        if self.params is not None and len(args) != len(self.params):
            names = ", ".join(p.name or f"#{p.index}" for p in self.params)
            raise ArgumentError(f"{self.kernel} takes {len(self.params)} arguments ({names}), got {len(args)}")
        if self.params is None:
            return [self._one(Param(i, "", None, "any"), value, session, same_kind) for i, value in enumerate(args)]
        return [self._one(param, value, session, same_kind) for param, value in zip(self.params, args)]

    def written(self, args: Sequence[Any], session: Optional[SessionState], same_kind: bool) -> str:
        """What convert() makes of them, as text, for a launch of its own."""
        kinds, params = tuple(map(type, args)), self.params
        if params is None or len(args) != len(params):
            return ",".join(map(written_argument, self.convert(args, session, same_kind)))
        texts = [step(value, session) for step, value in zip(self._plans.get(kinds) or self._plan(kinds), args)]
        if None in texts:
            texts = [text or written_argument(self._one(param, value, session, same_kind)) for text, param, value in zip(texts, params, args)]
        return ",".join(texts)  # type: ignore[arg-type]

    def _plan(self, kinds: Tuple[type, ...]) -> List[Fast]:
        """How to convert arguments of these types: found once, then looked up."""
        assert self.params is not None
        plan = self._plans[kinds] = [_fast(param, kind) for param, kind in zip(self.params, kinds)]
        return plan

    def _where(self, param: Param) -> str:
        name = f" ({param.name!r})" if param.name else ""
        return f"argument {param.index}{name} of {self.kernel}"

    def _one(self, param: Param, value: Any, session: Optional[SessionState], same_kind: bool) -> Json:
        try:
            return _convert(param, value, session, same_kind)
        except ArgumentError as error:
            raise type(error)(f"{self._where(param)}: {error.message}") from None


def written_argument(value: Json) -> str:
    """As text."""
    return dumps(value).decode()


def _fast(param: Param, kind: type) -> Fast:
    """The common pairs, which need a look at the value alone; None from it: the long way, which says what is wrong."""
    if kind is int and param.kind == "i32":
        return lambda value, _: f'{{"i32":{value}}}' if -0x80000000 <= value <= 0x7fffffff else None
    if kind is float and param.kind in ("f32", "f64"):
        start, most = f'{{"{param.kind}":', 3.4e38 if param.kind == "f32" else 1.7e308
        return lambda value, _: f"{start}{value!r}}}" if -most <= value <= most else None
    if param.form == "pointer" and hasattr(kind, "_as_argument"):
        return _fast_buffer(param)
    return lambda value, _: None


def _fast_buffer(param: Param) -> Fast:
    """Of memory that is there, whose elements are known to fit."""
    fitting: List[str] = []

    def step(value: Any, session: Optional[SessionState]) -> Optional[str]:
        found: Optional[str] = value._as_argument(session)
        dtype = value._dtype
        if found is None or dtype is None or dtype.name in fitting:
            return found
        try:
            _check_pointee(param, dtype)
        except ArgumentError:
            return None
        fitting.append(dtype.name)
        return found

    return step


def _convert(param: Param, value: Any, session: Optional[SessionState], same_kind: bool) -> Json:
    if type(value) is int and param.kind == "i32" and -0x80000000 <= value <= 0x7fffffff:  # nearly always, where it is no buffer
        return {"i32": value}
    if value is None:
        return _null(param)
    if isinstance(value, bool):
        return _number(param, value)
    if isinstance(value, (int, float)) and type(value) in (int, float):
        return _number(param, value)
    if isinstance(value, Scalar):
        return _typed(param, value, same_kind)
    if hasattr(value, "__gpurest_buffer__"):
        return _buffer(param, value, session)
    if isinstance(value, Placeholder):
        return _placed(param, value, session, same_kind)
    if isinstance(value, Struct):
        return {"struct": [_convert(Param(i, "", None, "any"), member, session, same_kind) for i, member in enumerate(value.members)]}
    return _foreign(param, value, same_kind)


def _null(param: Param) -> Json:
    if param.form not in ("pointer", "word", "any") or param.size not in (8, None):
        raise ArgumentError("None stands for a null pointer, and this is no pointer")
    return {"u64": 0}


def _number(param: Param, value: Any) -> Json:
    """A Python number, which has no size of its own."""
    kind = param.kind or _kind_by_size(param, value)
    if param.form == "pointer":
        raise ArgumentError(f"a pointer is wanted, got the number {value!r}; pass a buffer, or gpurest.u64(address)")
    if isinstance(value, float) and param.form in ("int", "bool", "word"):
        raise ArgumentError(f"Python float {value!r} for an integer parameter; pass int(…)")
    if isinstance(value, bool) and param.form == "float":
        raise ArgumentError(f"{value!r} for a floating-point parameter; pass float(…)")
    if kind == "bool" and not isinstance(value, bool) and value not in (0, 1):
        raise ArgumentError(f"{value!r} for a bool parameter")
    if isinstance(value, int) and not is_exact(kind, value):
        raise ArgumentError(f"Python int {value!r} has no equal in {kind}; pass float(…), which rounds")
    return Scalar(kind, value).json()


def _kind_by_size(param: Param, value: Any) -> str:
    """For parameters of which the source tells nothing."""
    if param.form == "bytes":
        raise ArgumentError(f"a struct of {param.size} bytes is wanted, got {value!r}")
    if isinstance(value, float) or param.form == "float":
        return _float_by_size(param, value)
    if isinstance(value, bool) and param.size in (1, None):
        return "bool"
    size = 4 if param.size is None else param.size
    if size not in (1, 2, 4, 8):
        raise ArgumentError(f"the parameter has {size} bytes, which no integer has; pass a ctypes.Structure or bytes")
    signed, unsigned = f"i{8 * size}", f"u{8 * size}"
    return unsigned if value > (1 << (8 * size - 1)) - 1 and param.size is not None else signed


def _float_by_size(param: Param, value: Any) -> str:
    if param.size is None:
        raise ArgumentError(f"the type of this parameter is not known: pass gpurest.f32({value!r}) or gpurest.f64({value!r})")
    if param.size not in (4, 8):
        raise ArgumentError(f"Python float is 8 bytes, the parameter has {param.size}; pass a typed scalar")
    return "f32" if param.size == 4 else "f64"


def _typed(param: Param, value: Scalar, same_kind: bool) -> Json:
    """A number with a type of its own: it must be the parameter's, or of the same kind where the caller allows that."""
    is_float = value.is_float
    if param.form == "bytes" or param.form == "pointer" and value.kind != "u64":
        raise ArgumentError(f"{'a pointer' if param.form == 'pointer' else 'a struct'} is wanted, got {value!r}")
    if is_float and param.form in ("int", "bool", "word") or not is_float and param.form == "float":
        raise ArgumentError(f"{value!r} for {'an integer' if is_float else 'a floating-point'} parameter; convert it first")
    if param.size is not None and value.size != param.size or param.kind in ("f16", "bf16") and value.kind != param.kind:
        if same_kind and param.kind:
            return Scalar(param.kind, value.value).json()
        wanted = param.kind or f"{param.size} bytes"
        raise ArgumentError(f"{value!r} has {value.size} bytes, {wanted} is wanted; convert it, or launch with casting=\"same_kind\"")
    if param.kind in SIZES and not is_float and param.kind != "bool":
        return Scalar(param.kind, value.value).json()  # the same size with the other sign: only values that both have
    return value.json()


def _foreign(param: Param, value: Any, same_kind: bool) -> Json:
    """Values of ctypes and NumPy, and bytes."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _bytes(param, bytes(value))
    if isinstance(value, (ctypes.Structure, ctypes.Union, ctypes.Array)):
        return _bytes(param, bytes(value))
    code = getattr(type(value), "_type_", None)
    if isinstance(code, str) and code in _CTYPES and hasattr(value, "value"):
        kind = _CTYPES[code] + (str(8 * ctypes.sizeof(value)) if _CTYPES[code] in _INTEGERS else "")
        return _typed(param, Scalar(kind, value.value), same_kind)
    if numpy is not None and isinstance(value, (numpy.generic, numpy.ndarray)):
        return _numpy(param, value, same_kind)
    if hasattr(value, "__index__") or hasattr(value, "__float__"):
        return _number(param, int(value.__index__()) if hasattr(value, "__index__") else float(value))
    raise ArgumentError(f"a {type(value).__name__} is no kernel argument")


def _numpy(param: Param, value: Any, same_kind: bool) -> Json:
    if value.shape != ():
        raise ArgumentError("an array of the host; upload it with session.buffer(…) or gpurest.asarray(…), or use run() with gpurest.In(…)")
    if value.dtype.kind in "biuf" and value.dtype.itemsize <= 8:
        return _typed(param, Scalar(scalar_kind(dtype_of(value.dtype)), value.item()), same_kind)
    if value.dtype.kind in "VcS":
        return _bytes(param, value.tobytes())
    raise ArgumentError(f"NumPy's {value.dtype} has no counterpart on the device")


def _bytes(param: Param, value: bytes) -> Json:
    if param.form == "pointer":
        raise ArgumentError("bytes of the host for a pointer; upload them with session.buffer(…)")
    if param.size is not None and len(value) != param.size:
        raise ArgumentError(f"{len(value)} bytes, the parameter has {param.size}")
    return {"bytes": base64.b64encode(value).decode()}


def _buffer(param: Param, value: Any, session: Optional[SessionState]) -> Json:
    texture: Optional[str] = getattr(value, "_argument", None)
    if texture is not None and param.form == "pointer":
        raise ArgumentError("a pointer is wanted, got a texture, which has no address")
    if param.form not in ("pointer", "word", "any") or param.size not in (8, None):
        raise ArgumentError(f"a buffer, where {param.kind or f'{param.size} bytes'} is wanted")
    buffer, offset = value.__gpurest_buffer__()
    buffer._check()
    if session is not None and buffer.session is not session:
        theirs, ours = apart(buffer.session, session)
        raise ArgumentError(f"a buffer of {theirs}; this kernel belongs to {ours}: make both in one "
                            "(gpurest.use(session) or use(client) says where what names none is made)")
    if texture is None:
        _check_pointee(param, _element_type(value))
    batch = buffer._recording() if session is not None else None
    if batch is not None and buffer._slot.id is not None:
        batch._hold(value)
    if texture is not None:
        return {texture: buffer.spec["id"]}
    return {"buf": buffer._ref, "offset": int(offset)} if offset else {"buf": buffer._ref}


def _placed(param: Param, value: Placeholder, session: Optional[SessionState], same_kind: bool) -> Json:
    """Its number now, and how to put others in its place."""
    if session is None or session._batch_now() is not value.recording:
        raise ArgumentError(f"{value.name!r} is a scalar of a program: kernels take it while that is recorded")

    def converted(number: Any) -> Json:
        found = None if number is None else _convert(param, number, None, same_kind)
        if found is None or set(found) - set(SIZES):
            raise ArgumentError(f"a number is wanted, got {number!r}")
        return found

    return Placed(converted(value.value), value, converted)


def _element_type(value: Any) -> Optional[DType]:
    spec = getattr(value, "dtype_str", None) or getattr(value, "dtype", None)
    return None if spec is None else dtype_of(spec)


def _check_pointee(param: Param, dtype: Optional[DType]) -> None:
    """Same size and same class of numbers; the sign of integers is the kernel's business, bytes may be anything's."""
    if dtype is None or param.pointee is None:
        return
    have, want = scalar_kind(dtype.part), param.pointee  # complex numbers are pairs of what their parts are
    as_integer = {"bool": "u8"}
    have, want = as_integer.get(have, have), as_integer.get(want, want)
    same_class = have == want or (have[0] in "iu" and want[0] in "iu")
    if SIZES[have] != SIZES[want] or not same_class:
        raise ArgumentError(f"a buffer of {dtype.name}, where the kernel has a pointer to {param.pointee}; "
                            "use .view(dtype) if the bytes are meant to be read so")
