"""How generated kernels are written for a device: what CUDA C++ and GLSL have different words for. Here in CUDA C++; glsl.py has the other one.

Words that both have are written once, in the code generators: GLSL gets `threadIdx`, `u32_t` and their like as macros."""

from __future__ import annotations

import base64
import hashlib
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Union

from ..._values import dtypes
from ..._values.dtypes import DType
from . import elementwise, prelude_random, prelude_special
from .expr import Const, Load, Node
from .prelude import PRELUDE
from .prelude_complex import COMPLEX, COMPLEX_ORDER

BLOCK = 256


class Target(NamedTuple):
    """Memory that a kernel is given besides what it loads: `what` is the planner's, bytes from its start."""

    what: Any
    offset: int = 0


Argument = Union[Load, Target, Const, Dict[str, Any]]  # a Const is a node's; what the plan chose is there as the service reads it


class Kernel(NamedTuple):
    name: str
    source: str
    args: List[Argument]


class Parameter(NamedTuple):
    """`memory`: a pointer to elements of `dtype`. `value`: of a scalar that the plan chose, which may be written into the text instead."""

    kind: str
    name: str
    dtype: Optional[DType]
    argument: Argument
    memory: bool = False
    only_read: bool = False
    apart: bool = False
    value: Optional[int] = None


COMBINE: Dict[str, str] = {
    "sum": "{a} + {b}", "mean": "{a} + {b}", "prod": "{a} * {b}", "any": "{a} | {b}", "all": "{a} & {b}",
    "max": "nan_max<{T}>({a}, {b})", "min": "nan_min<{T}>({a}, {b})",
}

# What else can be put together in any order: elementwise operations, with what changes nothing.
NEUTRAL: Dict[str, str] = {"bitwise_and": "({T})~({T})0", "bitwise_or": "0", "bitwise_xor": "0", "logical_xor": "0", "gcd": "0", "lcm": "1", "hypot": "0",
                           "logaddexp": "-__int_as_float(0x7f800000)", "logaddexp2": "-__int_as_float(0x7f800000)"}


class Language:
    """CUDA C++. Knows no device."""

    name = "CUDA C++"
    long = "long long"
    inputs_max = 56  # views and scalars of a kernel, which has two parameters for each at most
    grid_max = 65536 * 16
    builtins = True  # whether reductions, scans, sorts and transpositions have built-in kernels that are as good as generated ones
    has_own = True  # whether kernels have memory of their own, in which a launch leaves something for its last block: own()
    block_is_given = True  # by a launch; else by the text
    refuses = False  # some of what there is: check() and check_type()

    # ---- what the device can do ----

    def check(self, node: Node) -> None:
        """Refuses what the device does not compute, before it is queued."""

    def check_type(self, dtype: DType) -> None:
        """Refuses elements that the device does not have."""

    def takes(self, load: Load) -> bool:
        """Whether a built-in kernel takes an operand that begins there."""
        return True

    def has_rows(self, dtype: DType) -> bool:
        """Whether there are built-in kernels over rows of such elements."""
        return dtype.kind == "f"

    def product_type(self, dtype: DType) -> DType:
        """Of the elements that products of matrices of such elements are computed with."""
        return dtype

    # ---- words ----

    def type_of(self, dtype: DType) -> str:
        """Of a value in a kernel's registers."""
        return dtype.ctype

    def local(self, kind: str) -> str:
        """The declaration of what does not change."""
        return f"const {kind}"

    def variable(self, kind: str) -> str:
        """The declaration of what changes."""
        return kind

    def to(self, kind: str, value: str) -> str:
        """`value` as another type."""
        return f"({kind}){value}"

    def generic(self, function: str, dtype: DType) -> str:
        """The name of a function that there is for each type."""
        return f"{function}<{dtype.ctype}>"

    def dim(self, at: int) -> str:
        """A number of the structure."""
        return f"d.v[{at}]"

    def given(self, dtype: DType, name: str) -> str:
        """A scalar parameter's value."""
        return name

    def register(self, dtype: DType) -> DType:
        """The type as which a scalar of `dtype` is passed to a kernel."""
        return dtype

    def unrolled(self, times: int) -> str:
        """Asks the compiler to do so many rounds of the loop behind it at once."""
        return f"_Pragma(\"unroll {times}\") "

    # ---- memory ----

    def load(self, dtype: DType, pointer: str, offset: str, wide: bool = True) -> str:
        element = f"{pointer}[{offset}]"
        if dtype.name == "float16":
            return f"half_load({element})"
        return f"({element} != 0)" if dtype.kind == "b" else element

    def store(self, dtype: DType, pointer: str, offset: str, value: str, wide: bool = True) -> str:
        if dtype.name == "float16":
            value = f"half_store({value})"
        elif dtype.kind == "b":
            value = f"(unsigned char)({value})"
        return f"{pointer}[{offset}] = {value};"

    winners = dtypes.uint64  # numbers of those who write to the same place

    def claim(self, pointer: str, offset: str, number: str) -> str:
        """pointer[offset] becomes `number` if that is greater, whatever other threads do there meanwhile."""
        return f"atomicMax(&{pointer}[{offset}], {number});"

    def join(self, op: str, dtype: DType, value: str) -> List[str]:
        """q[g] = op(q[g], value), whatever other threads do there meanwhile. `dtype` has 4 or 8 bytes."""
        word = "u64_t" if dtype.itemsize == 8 else "u32_t"
        if op == "add" and dtype.kind == "c":
            return [f"const {dtype.ctype} by = {value}; atomicAdd(&q[g].re, by.re); atomicAdd(&q[g].im, by.im);"]
        if op == "add":
            return [f"atomicAdd(&q[g], {value});" if dtype.kind == "f" else f"atomicAdd(({word} *)&q[g], ({word}){value});"]
        joined = self.emit(op, dtype, dtype, {"a": "was", "b": "by", "c": "", "i": "", "flag": ""})
        return [f"{word} *place = ({word} *)&q[g], seen = *place, old; const {dtype.ctype} by = {value};",
                f"do {{ old = seen; const {dtype.ctype} was = *({dtype.ctype} *)&old, now = {joined}; seen = atomicCAS(place, old, *({word} *)&now); }}",
                "while (seen != old);"]

    # ---- operations ----

    def cast(self, value: str, source: DType, target: DType) -> str:
        return elementwise.cast(value, source, target)

    def emit(self, op: str, operand: Optional[DType], result: DType, values: Dict[str, str], mixed: bool = False) -> str:
        return elementwise.emit(op, operand, result, values, mixed)

    def reports(self, op: str, operand: Optional[DType]) -> bool:
        """Whether the operation may find something wrong with its operands."""
        return elementwise.OPS[op].reports(operand)

    def combine(self, op: str, dtype: DType, a: str, b: str) -> str:
        """Two partial results of a reduction."""
        if op not in COMBINE:
            return f"({self.emit(op, dtype, dtype, {'a': a, 'b': b, 'c': '', 'i': '', 'flag': ''})})"
        text = COMBINE[op].format(a=a, b=b, T=dtype.ctype)
        if dtype.kind == "i" and op in ("sum", "prod"):
            sign = "+" if op == "sum" else "*"
            return f"({dtype.ctype})((u64_t){a} {sign} (u64_t){b})"
        return text

    def first(self, op: str, dtype: DType) -> str:
        """What a reduction starts from: it changes no result."""
        if op in ("sum", "mean", "any"):
            return "0"
        if op in ("prod", "all"):
            return "1"
        if op in NEUTRAL:
            return "1" if dtype.kind == "b" and op == "bitwise_and" else NEUTRAL[op].format(T=dtype.ctype)
        if dtype.kind == "c":
            part = self.first(op, dtype.part)
            return f"{dtype.ctype}({part}, {part})"
        greatest = op in ("max", "argmax", "fmax")
        if dtype.kind == "f" and op in ("fmax", "fmin"):
            return "__int_as_float(0x7fc00000)"
        if dtype.kind == "f":
            return "-__int_as_float(0x7f800000)" if greatest else "__int_as_float(0x7f800000)"
        low, high = dtypes.limits(dtype)
        bound = low if greatest else high
        suffix = "ull" if dtype.kind == "u" else "ll"
        return f"({dtype.ctype})({bound + 1}ll - 1)" if bound < 0 else f"({dtype.ctype}){bound}{suffix}"

    far = "0x7fffffffffffffffll"  # a place behind all others

    # ---- whole kernels ----

    def shared(self, kind: str, name: str) -> str:
        """What a block's threads have together, BLOCK of them."""
        return f"    __shared__ {kind} {name}[{BLOCK}];\n"

    def own(self, kind: str, name: str, elements: int) -> str:
        """What all blocks of a kernel have together, as long as it is loaded: 0 at first. Arrays are computed on one stream, so that launches do not meet there."""
        return f"    static {kind} {name}[{elements}];\n"

    def kernel(self, parameters: Sequence[Parameter], dims: Sequence[int], wide: bool, shared: str, body: str, block: int) -> Kernel:
        """Named after its text."""
        declared, args, structure = [self._declared(one) for one in parameters], [one.argument for one in parameters], ""
        if dims:
            packed = struct.pack(f"<{len(dims)}{'q' if wide else 'i'}", *dims)
            declared.append("const NAME_dims d")
            args.append({"bytes": base64.b64encode(packed).decode()})
            structure = f"struct NAME_dims {{ {self.long if wide else 'int'} v[{len(dims)}]; }};\n"
        text = f"{structure}extern \"C\" __global__ void NAME({', '.join(declared)})\n{{\n{shared}{body}}}\n"
        name = "k_" + hashlib.sha256(text.encode()).hexdigest()[:20]
        return Kernel(name, text.replace("NAME", name), args)

    @staticmethod
    def _declared(one: Parameter) -> str:
        if not one.memory:
            return f"{one.kind} {one.name}"
        return f"{'const ' if one.only_read else ''}{one.kind} *{'__restrict__ ' if one.apart else ''}{one.name}"

    def storage(self, dtype: DType) -> str:
        """Of an element in memory."""
        return dtype.storage

    def module_of(self, kernel: Kernel) -> Optional[Dict[str, Any]]:
        """What is loaded before a batch; None: it is compiled along with it."""
        return None

    def modules(self, kernels: Sequence[Kernel]) -> Dict[str, Any]:
        """What is compiled along with a batch: all kernels in one module."""
        own = "\n".join(kernel.source for kernel in kernels)
        more = (COMPLEX + COMPLEX_ORDER if "complex<" in own else "") + (prelude_random.SOURCE if "random_" in own else "")
        more += prelude_special.SOURCE if "special_" in own else ""
        return {"source": PRELUDE + more + "\n" + own, "options": OPTIONS}

    def entry(self, kernel: str) -> str:
        """A kernel's name within its module."""
        return kernel


OPTIONS = ["--fmad=false"]  # a * b + c rounds twice, as it does in NumPy; matrix products ask for fused operations by name
CUDA = Language()
