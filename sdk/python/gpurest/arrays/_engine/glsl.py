"""Generated kernels as compute shaders in GLSL, for vulkan devices.

A kernel's memory are device addresses among its push constants, as pointers are in CUDA C++, so that views may begin anywhere. Numbers of
fewer than 32 bits are computed with in 32, halves as floats; every float is `precise`, so that nothing is fused that NumPy rounds twice."""

from __future__ import annotations

import base64
import hashlib
import struct
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ..._values import dtypes
from ..._values.dtypes import DType
from ...errors import ArgumentError
from . import glsl_operations, shapes
from .elementwise import EXACT_IN_HALF, has_kind
from .expr import ELEMENTWISE, FACTOR, FFT, FOLD, MATMUL, REDUCE, ROWS, SCAN, SORT, UPDATE, Load, Node
from .glsl_prelude import EXTENSIONS, prelude
from .language import BLOCK, Kernel, Language, Parameter

REGISTERS = {"bool": "bool", "int8": "int", "int16": "int", "int32": "int", "int64": "int64_t", "uint8": "uint", "uint16": "uint", "uint32": "uint",
             "uint64": "uint64_t", "float16": "float", "float32": "float", "float64": "double"}
ELEMENTS = {**REGISTERS, "bool": "uint8_t", "int8": "int8_t", "int16": "int16_t", "uint8": "uint8_t", "uint16": "uint16_t", "float16": "uint16_t"}
SIZES = {"uint8_t": 1, "int8_t": 1, "uint16_t": 2, "int16_t": 2, "int": 4, "uint": 4, "float": 4, "int64_t": 8, "uint64_t": 8, "double": 8}
FEATURES = {"float64": "float64", "int16": "storage16", "uint16": "storage16", "float16": "storage16"}  # of a device that has such elements
NEEDED = {"int64": "shaderInt64", "addresses": "bufferDeviceAddress", "storage8": "storageBuffer8BitAccess"}
BUILT_IN = ("float32", "float64", "int32", "uint32", "int64", "uint64")  # elements of the built-in shaders
RESERVED_BYTES = 48  # of push constants: what a kernel gets besides its views and scalars
COUNTED_MAX = 0xFFFFFFFE  # who writes to the same place are numbered in 32 bits
TURNS_MAX = 60000  # of a thread's loops, where a device ends them after 65,535
REDUCED = ("sum", "prod", "mean", "min", "max", "any", "all", "argmin", "argmax")
INSTEAD = "a session on a cuda or cpu device has it: gpurest.connect(device=\"cpu:0\")"
SCAN_ROWS_ALONE = 256  # so many rows are not cut in pieces
SHORT_LOOPS_ELEMENTS_MAX = 1 << 32


class Glsl(Language):
    """GLSL for one vulkan device; `info` is the service's description of it."""

    name = "GLSL"
    long = "int64_t"
    builtins = False
    has_own = False
    block_is_given = False
    refuses = True
    winners = dtypes.uint32
    far = "0x7fffffffffffffffL"

    def __init__(self, device: str, info: Mapping[str, Any]) -> None:
        attributes = info.get("attributes", {})
        self.device = device
        self.features = {name[len("feature_"):] for name, value in attributes.items() if name.startswith("feature_") and value}
        self.push_bytes_max = int(attributes["max_push_constants_bytes"])
        self.alignment = int(attributes["storage_buffer_alignment_bytes"])
        self.inputs_max = (self.push_bytes_max - RESERVED_BYTES) // 8
        self.grid_max = 65535
        self.short_loops = "long_loops" in info.get("unsupported", ())
        missing = [said for name, said in NEEDED.items() if name not in self.features]
        if missing:
            raise ArgumentError(f"arrays need {', '.join(missing)}, which {device} does not have; open a session on another device")

    # ---- what the device can do ----

    def check_type(self, dtype: DType) -> None:
        if dtype.kind == "c":
            raise ArgumentError(f"complex numbers ({dtype.name}) are not computed on {self.device}; {INSTEAD}")
        needed = FEATURES.get(dtype.name)
        if needed is not None and needed not in self.features:
            raise ArgumentError(f"{dtype.name} needs the feature {needed}, which {self.device} does not have; use another dtype, such as float32 or int32")

    def check(self, node: Node) -> None:
        self.check_type(node.dtype)
        for one in node.inputs:
            self.check_type(one.dtype)
        if len(node.inputs) > self.inputs_max:
            raise ArgumentError(f"{node.op} of {len(node.inputs)} operands: a kernel on {self.device} takes {self.inputs_max}; {INSTEAD}")
        if node.kind in (ELEMENTWISE, FOLD):
            self._check_operation(node)
        elif node.kind in (REDUCE, SCAN):
            self._check_reduction(node)
        elif node.kind in (MATMUL, ROWS):
            self._check_built_in(node)
        elif node.kind in (FFT, FACTOR):
            raise ArgumentError(f"{node.op} is not computed on {self.device}; {INSTEAD}")
        elif node.kind == UPDATE:
            self._check_update(node)
        self._check_turns(node)

    def _check_operation(self, node: Node) -> None:
        if node.op in ("gather", "search"):
            return
        operand = node.dtype if node.kind == FOLD else node.params.get("operand")
        if node.op not in glsl_operations.OPERATIONS:
            raise ArgumentError(f"{node.op.replace('random_', 'random.')} is not computed on {self.device}; {INSTEAD}")
        if node.op in glsl_operations.OF_DOUBLES and "float64" not in self.features:
            raise ArgumentError(f"{node.op.replace('random_', 'random.')} is computed with 64-bit floats, which {self.device} does not have; {INSTEAD}")
        if glsl_operations.template(node.op, operand, bool(node.params.get("mixed"))) is None:
            self._refuse_type(node.op, operand)

    def _refuse_type(self, op: str, dtype: Optional[DType]) -> None:
        other = "" if dtype is None or dtype.name != "float64" or not has_kind(op, dtypes.float32) else "use astype(\"float32\"), or "
        raise ArgumentError(f"{op} of {dtype} is not computed on {self.device}; {other}{INSTEAD}")

    def _check_reduction(self, node: Node) -> None:
        source = node.loads[0]
        if node.op in REDUCED or node.op in JOINED and glsl_operations.template(node.op, source.dtype) is not None:
            return
        self._refuse_type(node.op, source.dtype)

    def _check_built_in(self, node: Node) -> None:
        if node.dtype.name not in BUILT_IN:
            wider = "float32" if node.dtype.kind == "f" else "int32"
            raise ArgumentError(f"{node.op} of {node.dtype.name} is not computed on {self.device}; use astype(\"{wider}\"), or {INSTEAD}")

    def _check_update(self, node: Node) -> None:
        if "steps" not in node.params:
            return
        target, joined = node.params["target"], node.params.get("joined")
        if joined and target.dtype.itemsize == 8 and "int64_atomics" not in self.features:
            raise ArgumentError(f"{joined}.at of {target.dtype.name} needs 64-bit atomics, which {self.device} does not have; {INSTEAD}")
        if joined and glsl_operations.template(joined, target.dtype) is None:
            self._refuse_type(joined, target.dtype)
        if shapes.size_of(node.loads[1].shape) > COUNTED_MAX:
            raise ArgumentError(f"writing to more than {COUNTED_MAX} picked places at once is not possible on {self.device}; write in parts")

    def _check_turns(self, node: Node) -> None:
        """A thread's loops that turn too often are ended by some devices, without a word."""
        if not self.short_loops or node.kind not in (ELEMENTWISE, REDUCE, SCAN, FOLD, SORT):
            return
        source = node if node.kind == ELEMENTWISE else node.loads[0]
        size, turns = shapes.size_of(source.shape), 0
        if node.kind in (SCAN, FOLD) and size:
            elements = source.shape[node.params["axis"]]
            rows = size // elements
            alone = node.kind == FOLD or rows >= SCAN_ROWS_ALONE
            turns = elements * -(-rows // (self.grid_max * BLOCK)) if node.kind == FOLD else elements // BLOCK * 9 * 4 if alone else 0
        if turns > TURNS_MAX or size > SHORT_LOOPS_ELEMENTS_MAX:
            raise ArgumentError(f"{node.op} of an array of shape {source.shape}: {self.device} ends a thread's loops after 65,535 turns, which are too few; "
                                f"{INSTEAD}")

    def takes(self, load: Load) -> bool:
        return not load.offset * load.dtype.itemsize % self.alignment

    def has_rows(self, dtype: DType) -> bool:
        return dtype.name in ("float32", "float64")

    def product_type(self, dtype: DType) -> DType:
        return self.register(dtype)

    # ---- words ----

    def type_of(self, dtype: DType) -> str:
        return REGISTERS[dtype.name]

    def storage(self, dtype: DType) -> str:
        return ELEMENTS[dtype.name]

    def local(self, kind: str) -> str:
        return self.variable(kind)

    def variable(self, kind: str) -> str:
        return f"precise {kind}" if kind in ("float", "double") else kind

    def to(self, kind: str, value: str) -> str:
        return f"{kind}({value})"

    def generic(self, function: str, dtype: DType) -> str:
        return function

    def dim(self, at: int) -> str:
        return f"d[{at}]"

    def given(self, dtype: DType, name: str) -> str:
        return f"({name} != 0u)" if dtype.kind == "b" else name

    def register(self, dtype: DType) -> DType:
        if dtype.itemsize >= 4:
            return dtype
        return {"b": dtypes.uint32, "u": dtypes.uint32, "i": dtypes.int32, "f": dtypes.float32}[dtype.kind]

    def unrolled(self, times: int) -> str:
        return ""

    # ---- memory ----

    @staticmethod
    def _element(kind: str, pointer: str, offset: str) -> str:
        return f"P_{kind}({pointer} + uint64_t(int64_t({offset}) * {SIZES[kind]}L)).v"

    def load(self, dtype: DType, pointer: str, offset: str, wide: bool = True) -> str:
        element = self._element(self.storage(dtype), pointer, offset)
        if dtype.name == "float16":
            return f"half_load(uint({element}))"
        if dtype.kind == "b":
            return f"(uint({element}) != 0u)"
        return element if self.storage(dtype) == self.type_of(dtype) else f"{self.type_of(dtype)}({element})"

    def store(self, dtype: DType, pointer: str, offset: str, value: str, wide: bool = True) -> str:
        kind = self.storage(dtype)
        if dtype.name == "float16":
            value = f"half_store({value})"
        elif dtype.kind == "b":
            value = f"{value} ? 1u : 0u"
        return f"{self._element(kind, pointer, offset)} = {value if kind == self.type_of(dtype) else f'{kind}({value})'};"

    def claim(self, pointer: str, offset: str, number: str) -> str:
        return f"atomicMax({self._element('uint', pointer, offset)}, {number});"

    def join(self, op: str, dtype: DType, value: str) -> List[str]:
        word, kind = ("uint64_t" if dtype.itemsize == 8 else "uint"), self.type_of(dtype)
        place = self._element(word, "q", "g")

        def as_value(bits: str) -> str:
            return {"float": f"uintBitsToFloat({bits})", "double": f"packDouble2x32(uvec2(uint({bits}), uint({bits} >> 32)))"}.get(kind, f"{kind}({bits})")

        def as_bits(one: str) -> str:
            pair = f"unpackDouble2x32({one})"
            return {"float": f"floatBitsToUint({one})", "double": f"uint64_t({pair}.x) | uint64_t({pair}.y) << 32"}.get(kind, f"{word}({one})")

        if op == "add" and dtype.kind in "iu":
            return [f"atomicAdd({place}, {word}({value}));"]
        joined = self.emit(op, dtype, dtype, {"a": "was", "b": "by", "c": "", "i": "", "flag": ""})
        return [f"{word} seen = {place}, old; {self.variable(kind)} by = {value};",
                f"do {{ old = seen; {self.variable(kind)} was = {as_value('old')}, now = {joined}; seen = atomicCompSwap({place}, old, {as_bits('now')}); }}",
                "while (seen != old);"]

    # ---- operations ----

    def cast(self, value: str, source: DType, target: DType) -> str:
        if source is target:
            return value
        kind = self.type_of(target)
        if target.kind == "b":
            return f"is_true({value})"
        if target.name == "float16":
            return f"half_rounded_once({value})" if source.name == "float64" else f"half_rounded({kind}({value}))"
        if source.kind == "f" and target.kind in "iu":
            wide = dtypes.int32 if target.itemsize < 4 else target
            return self._narrowed(target, f"{kind}(whole_{self.type_of(wide)}({value}))")
        if self.type_of(source) == "int" and target.itemsize == 8 and target.kind in "iu":
            return f"{kind}(widened({value}))"
        return self._narrowed(target, f"{kind}({value})") if kind != self.type_of(source) or target.itemsize < min(source.itemsize, 4) or \
            source.kind != target.kind else value

    @staticmethod
    def _narrowed(dtype: DType, value: str) -> str:
        """As a number of that many bits."""
        return f"bitfieldExtract({value}, 0, {dtype.bits})" if dtype.kind in "iu" and dtype.itemsize < 4 else value

    def emit(self, op: str, operand: Optional[DType], result: DType, values: Dict[str, str], mixed: bool = False) -> str:
        text = glsl_operations.template(op, operand, mixed)
        if text is None:
            raise TypeError(f"gpurest has no {op} for {operand} on {self.device}")
        written = text.format(T=self.type_of(result), bits=operand.bits if operand is not None else 0, **values)
        if result.name == "float16":
            return written if op in EXACT_IN_HALF else f"half_rounded({written})"
        return self._narrowed(result, f"({written})") if result.kind in "iu" else f"({written})"

    def reports(self, op: str, operand: Optional[DType]) -> bool:
        return "{flag}" in (glsl_operations.template(op, operand) or "")

    def combine(self, op: str, dtype: DType, a: str, b: str) -> str:
        named = {"sum": "add", "mean": "add", "prod": "multiply", "any": "logical_or", "all": "logical_and", "max": "maximum", "min": "minimum"}.get(op, op)
        return self.emit(named, dtype, dtype, {"a": a, "b": b, "c": "", "i": "", "flag": ""})

    def first(self, op: str, dtype: DType) -> str:
        kind = self.type_of(dtype)
        if op in FIRST:
            value = FIRST[op]
            return f"{kind}({value})" if value != "all" else "true" if kind == "bool" else self._narrowed(dtype, f"~{kind}(0)")
        greatest = op in ("max", "argmax", "fmax")
        if kind == "bool":
            return "false" if greatest else "true"
        if dtype.kind == "f":
            if op in ("fmax", "fmin"):
                return self._special(kind, "nan")
            return f"-{self._special(kind, 'inf')}" if greatest else self._special(kind, "inf")
        bound = dtypes.limits(dtype)[0 if greatest else 1]
        return f"{kind}({bound + 1}L - 1L)" if bound < 0 else f"{kind}({bound}{'UL' if dtype.kind == 'u' else 'L'})"

    @staticmethod
    def _special(kind: str, value: str) -> str:
        """Infinity or NaN."""
        if kind == "double":
            return f"packDouble2x32(uvec2(0u, {'0x7ff00000u' if value == 'inf' else '0x7ff80000u'}))"
        return "INFINITE" if value == "inf" else "NOT_A_NUMBER"

    # ---- whole kernels ----

    def shared(self, kind: str, name: str) -> str:
        return f"shared {kind} {name}[{BLOCK}];\n"

    def kernel(self, parameters: Sequence[Parameter], dims: Sequence[int], wide: bool, shared: str, body: str, block: int) -> Kernel:
        """What does not fit among the push constants stands in the text: numbers of the structure first, then those that the plan chose."""
        members, args, constants = self._members(parameters, dims, wide)
        memory = sorted({one.kind for one in parameters if one.memory} | {"int", "uint"} | ({"uint64_t"} if "P_uint64_t(" in body else set()))
        references = "".join(f"layout(buffer_reference, std430, buffer_reference_align = {SIZES[kind]}) buffer P_{kind} {{ {kind} v; }};\n" for kind in memory)
        atomics = "#extension GL_EXT_shader_atomic_int64 : require\n" if "atomic" in body and "uint64_t seen" in body or "atomicAdd(P_uint64_t" in body else ""
        own = f"{constants}{members}{shared}void main()\n{{\n{body}}}\n"
        layout = f"layout(local_size_x = {block}) in;\n"
        text = EXTENSIONS.replace("#define threadIdx", atomics + "#define threadIdx") + layout + references + prelude(own) + own
        return Kernel("k_" + hashlib.sha256(text.encode()).hexdigest()[:20], text, args)

    def _members(self, parameters: Sequence[Parameter], dims: Sequence[int], wide: bool) -> Any:
        """Declarations of push constants, their arguments, and declarations of constants."""
        place, kind = (8, "int64_t") if wide else (4, "int")
        items = [(self._bytes(one), f"{'uint64_t' if one.memory else one.kind} {one.name};", one.argument, one) for one in parameters]
        packed = base64.b64encode(struct.pack(f"<{len(dims)}{'q' if wide else 'i'}", *dims)).decode()
        room = self.push_bytes_max - sum(bytes_ for bytes_, *_ in items)
        constants = ""
        fixed: List[Parameter] = []
        if dims and room < place * len(dims):
            suffix = "L" if wide else ""
            constants = f"const {kind} d[{len(dims)}] = {kind}[]({', '.join(f'{value}{suffix}' for value in dims)});\n"
            dims = ()
        for bytes_, _, _, one in items:
            if room < place * len(dims) and one.value is not None:
                room += bytes_
                fixed.append(one)
                constants += f"const {one.kind} {one.name} = {one.kind}({one.value}{'UL' if one.kind in ('u64_t', 'u32_t') else 'L'});\n"
        items = [item for item in items if item[3] not in fixed]
        if room < place * len(dims):
            raise ArgumentError(f"an expression takes {self.push_bytes_max - room} bytes of parameters, a kernel on {self.device} {self.push_bytes_max}; "
                                "flush() between its parts")
        lines = [(bytes_, line, arg) for bytes_, line, arg, _ in items]
        if dims:
            lines.append((place, f"{kind} d[{len(dims)}];", {"bytes": packed}))
        lines.sort(key=lambda one: -one[0])
        text = "layout(push_constant) uniform Push {\n" + "".join(f"    {line}\n" for _, line, _ in lines) + "};\n" if lines else ""
        return text, [arg for _, _, arg in lines], constants

    @staticmethod
    def _bytes(one: Parameter) -> int:
        return 8 if one.memory or one.kind in ("u64_t", "int64_t", "uint64_t", "double") else 4

    def module_of(self, kernel: Kernel) -> Optional[Dict[str, Any]]:
        return {"source": kernel.source, "language": "glsl"}

    def entry(self, kernel: str) -> str:
        return "main"


# What changes nothing in a reduction by these; "all": every bit.
FIRST = {"sum": "0", "mean": "0", "any": "0", "prod": "1", "all": "1", "bitwise_and": "all", "bitwise_or": "0", "bitwise_xor": "0", "logical_xor": "0",
         "gcd": "0", "lcm": "1", "hypot": "0"}
JOINED = frozenset({*FIRST, "fmax", "fmin"})
