"""What a FakeServer computes: buffers' bytes, batches, and kernels by the functions that stand for them."""
from __future__ import annotations

import base64
import struct
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..._transport.frame import BytesLike
from ..._values.dtypes import dtype_of
from ..._values.hostmem import numpy, typed_view
from ..._values.scalars import SIZES
from ..._values.signature import Declared
from .state import BLOCK, FakeModule, FakeProgram, FakeSession, Refused, new_id

Model = Callable[..., Any]
_PACKED = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f16": "e", "f32": "f", "f64": "d", "bool": "?"}
_DTYPES = {"bool": "bool", "bf16": "u2"}


class FakeLaunch(NamedTuple):
    """What a function that stands for a kernel is told first."""
    grid: Tuple[int, ...]
    block: Tuple[int, ...]
    shared_bytes: int


def piece(data: bytearray, offset: int, size: Optional[int]) -> memoryview:
    """A part of a buffer; Refused where it goes beyond."""
    size = len(data) - offset if size is None else size
    if offset < 0 or size < 0 or offset + size > len(data):
        raise Refused(400, "invalid_field", f"{size} bytes at {offset} of a buffer of {len(data)}")
    return memoryview(data)[offset:offset + size]


def scalar_bytes(argument: Mapping[str, Any]) -> bytes:
    """Of one of the contract's scalars."""
    (kind, value), = argument.items()
    if kind == "bytes":
        return base64.b64decode(value)
    if kind == "bf16":
        return struct.pack("<f", float(value))[2:]
    return struct.pack("<" + _PACKED[kind], float(value) if kind[0] == "f" else bool(value) if kind == "bool" else int(value))


def fill(target: memoryview, pattern: Mapping[str, Any]) -> None:
    one = scalar_bytes(pattern)
    if len(target) % len(one):
        raise Refused(400, "invalid_field", f"{len(target)} bytes are no multiple of the pattern's {len(one)}")
    target[:] = one * (len(target) // len(one))


def _elements(data: memoryview, declared: Optional[Declared]) -> Any:
    """A pointer's target: typed as declared where that is known, a NumPy array where there is NumPy; writable."""
    kind = declared.pointee if declared is not None else None
    if kind is None:
        return data if numpy is None else numpy.frombuffer(data, "u1")
    dtype = dtype_of(_DTYPES.get(kind) or f"{kind[0]}{SIZES[kind]}")
    whole = data[:len(data) - len(data) % dtype.itemsize]
    return typed_view(whole, dtype) if numpy is None else numpy.frombuffer(whole, dtype.name)


def _extents(value: Any) -> Tuple[int, ...]:
    given = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    return (*map(int, given), 1, 1)[:3]


def _shape_of(spec: Mapping[str, Any]) -> FakeLaunch:
    """Of a built-in, whose shape is the service's choice, one block."""
    block, grid = _extents(spec.get("block") or BLOCK), spec.get("grid", 1)
    blocks = _extents(-(-int(grid["threads"]) // block[0]) if isinstance(grid, dict) else grid)
    return FakeLaunch(blocks, block, int(spec.get("shared_bytes") or 0))


class Computer:
    """One request's view of a session: `models` by kernel name, `names` of buffers that live in a batch."""

    def __init__(self, session: FakeSession, models: Mapping[str, Model]) -> None:
        self.session = session
        self.models = models
        self.names: Dict[str, bytearray] = {}
        self._timing = True  # of launches of a batch that do not say

    def find(self, name: Any) -> bytearray:
        if isinstance(name, str) and name.startswith("$"):
            if name not in self.names:
                raise Refused(400, "invalid_field", "the batch has no buffer of this name here")
            return self.names[name]
        return self.session.buffer(name)

    # ---- kernels ----

    def launch(self, spec: Mapping[str, Any], module: Optional[FakeModule]) -> None:
        """Runs the kernel's model. What it raises is a fault of the kernel, which ends the session's context."""
        if "builtin" in spec:
            self._run(str(spec["builtin"]), "built-in ", spec, None)
            return
        if module is None:
            raise Refused(400, "invalid_field", "a launch names its module, or the batch has one")
        kernel = str(spec.get("kernel"))
        if kernel not in module.kernels:
            raise Refused(404, "kernel_not_found", f"the module has no kernel {kernel!r}")
        self._run(kernel, "", spec, module.kernels[kernel])

    def _run(self, kernel: str, kind: str, spec: Mapping[str, Any], declared: Optional[Sequence[Declared]]) -> None:
        model = self.models.get(kernel)
        if model is None:
            raise Refused(501, "feature_disabled", f"FakeServer has no model of the {kind}kernel {kernel!r}: decorate one with @fake.kernel({kernel!r})")
        given: Any = spec.get("args") or ()
        if isinstance(given, Mapping):
            raise Refused(501, "feature_disabled", "FakeServer takes the arguments of a launch one by one, as a list")
        if declared is not None and len(declared) != len(given):
            raise Refused(422, "argument_mismatch", f"{kernel} takes {len(declared)} arguments, got {len(given)}")
        values = [self._value(one, declared[at] if declared is not None else None) for at, one in enumerate(given)]
        self.session.epoch += 1
        self.session.launched += 1
        try:
            model(_shape_of(spec), *values)
        except Exception as error:
            refused = Refused(422, "kernel_fault", f"the model of {kernel} raised {type(error).__name__}: {error}",
                              cuda={"result": 700, "name": "CUDA_ERROR_ILLEGAL_ADDRESS"})
            self.session.lose(refused)
            raise refused from error

    def _value(self, argument: Mapping[str, Any], declared: Optional[Declared]) -> Any:
        if "buf" in argument:
            return _elements(piece(self.find(argument["buf"]), int(argument.get("offset") or 0), None), declared)
        if "struct" in argument:
            return [self._value(one, None) for one in argument["struct"]]
        (kind, value), = argument.items()
        if kind in ("bytes", "bf16"):
            return scalar_bytes(argument)
        return float(value) if kind[0] == "f" else bool(value) if kind == "bool" else int(value)

    # ---- batches ----

    def batch(self, document: Mapping[str, Any], segments: Mapping[str, BytesLike]) -> Tuple[Dict[str, Any], Dict[str, BytesLike]]:
        """(the answer's document, its segments). After a failure what was kept by then is gone, as the service has it."""
        self.session.check()
        source = document.get("module")
        made = self.session.compile(source)[0] if source and not isinstance(source, str) else None
        module = self.session.module(source) if isinstance(source, str) else made
        out: Dict[str, BytesLike] = {}
        told: List[Dict[str, Any]] = []
        self._timing = bool(document.get("timing", True))
        self._check_room(document.get("ops") or (), segments)
        for index, op in enumerate(document.get("ops") or ()):
            try:
                found = self._op(op, module, segments, out)
            except Refused as refused:
                refused.more.update(op_index=index, completed_ops=index)
                raise
            if found is not None:
                told.append({"index": index, **found})
        kept: Dict[str, str] = {}
        for name in document.get("keep") or ():
            if name in self.names:
                kept[name] = self._keep(self.names[name])
        answer: Dict[str, Any] = {"status": "succeeded", "ops": told, "gpu_groups": [], "timing": {"recv_ms": 0.0, "compile_ms": 0.0, "run_ms": 0.0},
                                  "kept": kept}
        return ({**answer, "module": made.id} if made is not None else answer), out

    def _check_room(self, ops: Sequence[Mapping[str, Any]], segments: Mapping[str, BytesLike]) -> None:
        """For what the batch allocates before it frees anything; else nothing of it is done."""
        size = 0
        for index, op in enumerate(ops):
            if op.get("op") == "free":
                return
            if op.get("op") == "alloc":
                size += memoryview(segments[op["segment"]]).nbytes if "segment" in op else int(op["size"])
                try:
                    self.session.claim(size)
                except Refused as refused:
                    refused.more.update(op_index=index, completed_ops=0)
                    raise

    def _keep(self, data: bytearray) -> str:
        name = new_id("b")
        self.session.new_buffer(name, len(data))
        self.session.buffers[name] = data
        return name

    def _op(self, op: Mapping[str, Any], module: Optional[FakeModule], segments: Mapping[str, BytesLike], out: Dict[str, BytesLike]) -> Any:
        action = getattr(self, f"_op_{op.get('op')}", None)
        if action is None:
            raise Refused(400, "invalid_field", f"FakeServer has no operation {op.get('op')!r}")
        return action(op, module, segments, out)

    def _op_alloc(self, op: Mapping[str, Any], _: Any, segments: Mapping[str, BytesLike], __: Any) -> None:
        self.names[op["as"]] = bytearray(segments[op["segment"]]) if "segment" in op else bytearray(int(op["size"]))

    def _op_write(self, op: Mapping[str, Any], _: Any, segments: Mapping[str, BytesLike], __: Any) -> None:
        data = segments[op["segment"]]
        piece(self.find(op["to"]), int(op.get("offset") or 0), memoryview(data).nbytes)[:] = data

    def _op_copy(self, op: Mapping[str, Any], *_: Any) -> None:
        copy(self.find(op["from"]), self.find(op["to"]), op)

    def _op_fill(self, op: Mapping[str, Any], *_: Any) -> None:
        fill(piece(self.find(op["to"]), int(op.get("offset") or 0), op.get("size")), op["pattern"])

    def _op_read(self, op: Mapping[str, Any], _: Any, __: Any, out: Dict[str, BytesLike]) -> None:
        out[op["segment"]] = bytes(piece(self.find(op["from"]), int(op.get("offset") or 0), op.get("size")))

    def _op_free(self, op: Mapping[str, Any], *_: Any) -> None:
        self.find(op["buf"])
        (self.names if str(op["buf"]).startswith("$") else self.session.buffers).pop(op["buf"])

    def _op_launch(self, op: Mapping[str, Any], module: Optional[FakeModule], *_: Any) -> Optional[Dict[str, Any]]:
        self.launch(op, self.session.module(op["module"]) if "module" in op else module)
        return {"gpu_us": 0.0} if op.get("timing", self._timing) else None

    def _op_elapsed(self, *_: Any) -> Dict[str, Any]:
        return {"elapsed_us": 0.0}

    def _op_record(self, *_: Any) -> None:
        """Nothing waits here: every operation is over when the next one begins."""

    _op_wait = _op_sync = _op_record


class ProgramComputer(Computer):
    """One run of a program: its buffers are there already, and keep what the run before has left."""

    def __init__(self, session: FakeSession, models: Mapping[str, Model], program: FakeProgram) -> None:
        super().__init__(session, models)
        self._program = program

    def _check_room(self, ops: Sequence[Mapping[str, Any]], segments: Mapping[str, BytesLike]) -> None:
        """It was found when the program was prepared."""

    def _op_alloc(self, op: Mapping[str, Any], _: Any, segments: Mapping[str, BytesLike], __: Any) -> None:
        self.names[op["as"]] = self._program.buffers[op["as"]]
        if "segment" in op:
            self.names[op["as"]][:] = segments[op["segment"]]

    def run(self, document: Mapping[str, Any], segments: Mapping[str, BytesLike]) -> Tuple[Dict[str, Any], Dict[str, BytesLike]]:
        wanted = self._program.spec.get("segments") or []
        if [{"id": name, "size": memoryview(data).nbytes} for name, data in segments.items()] != wanted:
            raise Refused(400, "invalid_field", "the segments are not those of the program")
        ops = _replaced(self._program.spec["ops"], document.get("args") or {})
        self._program.runs += 1
        return self.batch({**self._program.spec, "ops": ops}, segments)


def _replaced(ops: Sequence[Mapping[str, Any]], args: Mapping[str, Mapping[str, Any]]) -> List[Mapping[str, Any]]:
    """With other scalars in some launches."""
    changed = [dict(op) for op in ops]
    for index, given in args.items():
        op = changed[int(index)]
        op["args"] = list(op["args"])
        for at, value in given.items():
            if len(scalar_bytes(value)) != len(scalar_bytes(op["args"][int(at)])):
                raise Refused(422, "argument_mismatch", "the scalar that is replaced has another size")
            op["args"][int(at)] = value
    return list(changed)


def copy(source: bytearray, target: bytearray, spec: Mapping[str, Any]) -> None:
    """Of the contract's members; without a size as far as the shorter one goes."""
    start, at = int(spec.get("from_offset") or 0), int(spec.get("offset") or 0)
    size = spec.get("size")
    size = min(len(source) - start, len(target) - at) if size is None else size
    piece(target, at, size)[:] = bytes(piece(source, start, size))


def compare(one: bytearray, other: bytearray, spec: Mapping[str, Any]) -> Dict[str, Any]:
    """As the contract's answer; without a size to both ends, and then of the same length or not equal."""
    start, at, size = int(spec.get("offset") or 0), int(spec.get("with_offset") or 0), spec.get("size")
    lengths = (len(one) - start, len(other) - at) if size is None else (size, size)
    a, b = bytes(piece(one, start, min(lengths))), bytes(piece(other, at, min(lengths)))
    places = [i for i in range(len(a)) if a[i] != b[i]]
    first = places[0] if places else None if lengths[0] == lengths[1] else len(a)
    return {"equal": first is None, "size": len(a), "different_bytes": len(places), "first_difference": first}
