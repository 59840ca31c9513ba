"""CuPy's ElementwiseKernel and ReductionKernel: the loop is written here, the user writes what is inside."""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from .._session.buffer import Buffer
from .._session.default import default_session
from .._values.dtypes import DType, dtype_of, packed
from .._values.hostmem import count_of
from .._values.scalars import Scalar, scalar_kind
from ..errors import ArgumentError
from ._engine.prelude_complex import COMPLEX
from .host import empty

if TYPE_CHECKING:
    from .._session.session import Session

BLOCK = 256
GRID_MAX = 4096
PARTIALS_MAX = BLOCK  # blocks of a reduction's first pass: one value per thread of the second
_PARAM = re.compile(r"(raw\s+)?(\w+)\s+([A-Za-z_]\w*)")
_HALF = "#include <cuda_fp16.h>\n"


@dataclass(frozen=True)
class _Spec:
    """One parameter as the user wrote it. `letter`: the type is a placeholder such as T."""
    name: str
    type: str
    raw: bool

    @property
    def letter(self) -> bool:
        return len(self.type) == 1 and self.type.isupper()


def _specs(text: str) -> Tuple[_Spec, ...]:
    found: List[_Spec] = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        match = _PARAM.fullmatch(part)
        if not match:
            raise ArgumentError(f"{part!r} is no parameter: write 'float32 x', 'T x' or 'raw T x'")
        spec = _Spec(match.group(3), match.group(2), bool(match.group(1)))
        if not spec.letter:
            dtype_of(spec.type)
        found.append(spec)
    return tuple(found)


def _c_type(dtype: DType) -> str:
    return "__half" if dtype.name == "float16" else dtype.ctype


def _is_array(value: Any) -> bool:
    return hasattr(value, "__gpurest_buffer__")


def _dtype_of_arg(value: Any) -> DType:
    if _is_array(value):
        spec = getattr(value, "dtype_str", None)
        if spec is None:
            raise ArgumentError("a buffer without dtype: use .view(dtype), or make it with dtype=")
        return dtype_of(spec)
    if isinstance(value, Scalar):
        return dtype_of({"bool": "bool", "bf16": "f2"}.get(value.kind) or f"{value.kind[0]}{value.size}")
    return dtype_of(type(value)) if isinstance(value, (bool, int, float, complex)) else dtype_of(getattr(value, "dtype", None))


class _Bound:
    """The arguments of one call: their types, and how many elements there are."""

    def __init__(self, name: str, specs: Sequence[_Spec], values: Sequence[Any], size: Optional[int]) -> None:
        self.name = name
        self.types: Dict[str, DType] = {}
        self._collect(specs, values, arrays=True)
        self._collect(specs, values, arrays=False)
        self.size, self.shape, self.like = self._extent(specs, values, size)

    def _collect(self, specs: Sequence[_Spec], values: Sequence[Any], arrays: bool) -> None:
        """Arrays decide what a placeholder stands for; numbers only where no array does."""
        for spec, value in zip(specs, values):
            if not spec.letter or _is_array(value) != arrays:
                continue
            dtype = _dtype_of_arg(value)
            if arrays and self.types.setdefault(spec.type, dtype) is not dtype:
                raise ArgumentError(f"{self.name}: {spec.name} is {dtype.name}, but {spec.type} is {self.types[spec.type].name} already")
            self.types.setdefault(spec.type, dtype)

    def _extent(self, specs: Sequence[_Spec], values: Sequence[Any], size: Optional[int]) -> Tuple[int, Tuple[int, ...], Any]:
        first: Any = None
        for spec, value in zip(specs, values):
            if spec.raw or not _is_array(value):
                continue
            if first is not None and tuple(value.shape) != tuple(first.shape):
                raise ArgumentError(f"{self.name}: {spec.name} has shape {tuple(value.shape)}, another argument {tuple(first.shape)}; "
                                    "broadcast arrays before the call")
            first = value if first is None else first
        if first is not None:
            return count_of(tuple(first.shape)), tuple(first.shape), first
        if size is None:
            raise ArgumentError(f"{self.name}: no array says how many elements there are; pass size=")
        return size, (size,), next((value for value in values if _is_array(value)), None)

    def type_of(self, spec: _Spec) -> DType:
        if not spec.letter:
            return dtype_of(spec.type)
        found = self.types.get(spec.type)
        if found is None:
            raise ArgumentError(f"{self.name}: nothing tells what {spec.type} is")
        return found

    def new(self, dtype: DType, shape: Tuple[int, ...]) -> Any:
        """An output of the kind that the inputs are: arrays for arrays, buffers for buffers."""
        if self.like is None or isinstance(self.like, Buffer):
            return self.session().empty(shape or (1,), dtype)
        return empty(shape, dtype.name, session=self.session())

    def session(self) -> Session:
        if self.like is None:
            return default_session()
        found: Session = self.like.__gpurest_buffer__()[0].session
        return found


def _argument(spec: _Spec, dtype: DType, value: Any) -> Any:
    """Arrays as they are, of the right type; numbers converted to the parameter's type, as CuPy does."""
    if _is_array(value):
        if _dtype_of_arg(value) is not dtype:
            raise ArgumentError(f"{spec.name} is {_dtype_of_arg(value).name}, {dtype.name} is declared")
        return value
    if isinstance(value, Scalar):
        return value if value.kind == scalar_kind(dtype) else Scalar(scalar_kind(dtype), value.value)
    item = value.item() if hasattr(value, "item") else value
    if isinstance(item, float) and dtype.kind not in "fc" or isinstance(item, complex) and dtype.kind != "c":
        raise ArgumentError(f"{spec.name}: {item!r} for a parameter of {dtype.name}")
    if dtype.kind == "c":
        return packed([item], dtype)
    return Scalar(scalar_kind(dtype), item)


class _Generated:
    """What both kinds have in common: parameters, and kernels made per combination of types."""

    def __init__(self, in_params: str, out_params: str, name: str, preamble: str, options: Sequence[str]) -> None:
        self.in_params, self.out_params = _specs(in_params), _specs(out_params)
        if not self.out_params:
            raise ArgumentError(f"{name}: at least one output parameter")
        names = [spec.name for spec in (*self.in_params, *self.out_params)]
        if len(set(names)) != len(names) or {"i", "n"} & set(names):
            raise ArgumentError(f"{name}: every parameter has a name of its own, and none is i or n")
        if not name.isidentifier():
            raise ArgumentError(f"{name!r} is no name of a kernel")
        self.name, self.preamble, self.options = name, preamble, tuple(options)
        self.symbol = f"gpurest_{name}"  # CUDA has functions of its own, such as norm and max

    def _bind(self, args: Sequence[Any], size: Optional[int], outputs_count: bool) -> Tuple[_Bound, List[Any], List[Any]]:
        count_in, count_out = len(self.in_params), len(self.out_params)
        if len(args) not in (count_in, count_in + count_out):
            raise ArgumentError(f"{self.name} takes {count_in} inputs and, if wanted, {count_out} outputs; got {len(args)} arguments")
        for value in args:
            if hasattr(value, "_flush"):
                value._flush()
        inputs, outputs = list(args[:count_in]), list(args[count_in:])
        specs = (*self.in_params, *(self.out_params if outputs_count else ()))
        bound = _Bound(self.name, specs, [*inputs, *(outputs if outputs_count else [])], size)
        return bound, inputs, outputs

    def _head(self, bound: _Bound, specs: Sequence[_Spec]) -> str:
        typedefs = "".join(f"typedef {_c_type(dtype)} {letter};\n" for letter, dtype in sorted(bound.types.items()))
        kinds = [bound.type_of(spec) for spec in specs]
        half, complex_ = any(kind.name == "float16" for kind in kinds), any(kind.kind == "c" for kind in kinds)
        return (_HALF if half else "") + (COMPLEX if complex_ else "") + typedefs + self.preamble + "\n"


def _declaration(spec: _Spec, dtype: DType, value: Any, const: bool) -> str:
    if not _is_array(value):
        return f"const {_c_type(dtype)} {spec.name}"
    name = spec.name if spec.raw else f"_p_{spec.name}"
    return f"{'const ' if const else ''}{_c_type(dtype)}* {name}"


def _element(spec: _Spec, dtype: DType, value: Any, const: bool) -> str:
    if spec.raw or not _is_array(value):
        return ""
    return f"{'const ' if const else ''}{_c_type(dtype)}& {spec.name} = _p_{spec.name}[i];"


class ElementwiseKernel(_Generated):
    """`ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")`; then `add(x, y)` or `add(x, y, z)`. Complex numbers are `complex<float>` and
    `complex<double>`, with operators, real(), imag() and the functions that real numbers have.

    Parameters are declared as in CuPy: a type of NumPy's, or a capital letter that stands for the arguments' type; `raw` ones are indexed by
    the operation itself. `i` is the index of the element, `n` their number. Arguments are arrays or buffers of one shape, and numbers."""

    def __init__(self, in_params: str, out_params: str, operation: str, name: str = "kernel", *, preamble: str = "",
                 options: Sequence[str] = ()) -> None:
        super().__init__(in_params, out_params, name, preamble, options)
        self.operation = operation

    def __call__(self, *args: Any, size: Optional[int] = None) -> Any:
        bound, inputs, outputs = self._bind(args, size, True)
        outputs = outputs or [bound.new(bound.type_of(spec), bound.shape) for spec in self.out_params]
        specs, values = (*self.in_params, *self.out_params), [*inputs, *outputs]
        for spec, value in zip(self.out_params, outputs):
            if not _is_array(value):
                raise ArgumentError(f"{self.name}: the output {spec.name} is an array or a buffer")
        passed = [_argument(spec, bound.type_of(spec), value) for spec, value in zip(specs, values)]
        if bound.size:
            session: Session = outputs[0].__gpurest_buffer__()[0].session
            kernel = session.module(self._source(bound, values), self.options).kernel(self.symbol)
            kernel(min(-(-bound.size // BLOCK), GRID_MAX), BLOCK, (*passed, Scalar("i64", bound.size)))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _source(self, bound: _Bound, values: Sequence[Any]) -> str:
        specs = (*self.in_params, *self.out_params)
        rows = [(spec, bound.type_of(spec), value, at < len(self.in_params)) for at, (spec, value) in enumerate(zip(specs, values))]
        parameters = ", ".join(_declaration(*row) for row in rows)
        elements = " ".join(filter(None, (_element(*row) for row in rows)))
        return f"""{self._head(bound, specs)}extern "C" __global__ void {self.symbol}({parameters}, long long n)
{{
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) {{
        {elements}
        {self.operation};
    }}
}}
"""


class ReductionKernel(_Generated):
    """`ReductionKernel("T x, T y", "T out", "x * y", "a + b", "out = a", "0", "dot")`; then `dot(x, y)`: over all elements.

    `map_expr` is computed per element, `reduce_expr` joins two such values `a` and `b`, `post_map_expr` makes the output from `a`.
    `identity` is the value that changes nothing when joined. The order of joining depends on the number of elements only."""

    def __init__(self, in_params: str, out_params: str, map_expr: str, reduce_expr: str, post_map_expr: str, identity: str,
                 name: str = "reduce", *, reduce_type: Optional[str] = None, preamble: str = "", options: Sequence[str] = ()) -> None:
        super().__init__(in_params, out_params, name, preamble, options)
        if len(self.out_params) != 1:
            raise ArgumentError(f"{name}: a reduction has one output")
        self.map_expr, self.reduce_expr, self.post_map_expr = map_expr, reduce_expr, post_map_expr
        self.identity, self.reduce_type = str(identity), reduce_type

    def __call__(self, *args: Any, size: Optional[int] = None) -> Any:
        bound, inputs, outputs = self._bind(args, size, False)
        out_spec = self.out_params[0]
        out_type = bound.type_of(out_spec) if not outputs else _dtype_of_arg(outputs[0])
        if out_spec.letter:
            bound.types.setdefault(out_spec.type, out_type)
        out = outputs[0] if outputs else bound.new(out_type, ())
        self._run(bound, inputs, out, out_type)
        return out

    def _run(self, bound: _Bound, inputs: Sequence[Any], out: Any, out_type: DType) -> None:
        if hasattr(out, "_flush"):
            out._flush()
        session: Session = out.__gpurest_buffer__()[0].session
        inner = dtype_of(self.reduce_type).itemsize if self.reduce_type else out_type.itemsize
        passed = [_argument(spec, bound.type_of(spec), value) for spec, value in zip(self.in_params, inputs)]
        module = session.module(self._source(bound, inputs, out_type), self.options)
        blocks = max(1, min(-(-bound.size // BLOCK), PARTIALS_MAX))
        with session.buffer(size=blocks * inner) as partials:
            first = module.kernel(self.symbol + "_map")
            first(blocks, BLOCK, (*passed, partials, Scalar("i64", bound.size)))
            module.kernel(self.symbol)(1, BLOCK, (partials, out, Scalar("i32", blocks)))

    def _source(self, bound: _Bound, inputs: Sequence[Any], out_type: DType) -> str:
        rows = [(spec, bound.type_of(spec), value, True) for spec, value in zip(self.in_params, inputs)]
        parameters = "".join(_declaration(*row) + ", " for row in rows)
        elements = " ".join(filter(None, (_element(*row) for row in rows)))
        inner = _c_type(dtype_of(self.reduce_type)) if self.reduce_type else _c_type(out_type)
        out = self.out_params[0].name
        return f"""{self._head(bound, (*self.in_params, *self.out_params))}typedef {inner} _type;
__device__ static _type _join(_type a, _type b) {{ return {self.reduce_expr}; }}
__device__ static _type _join_block(_type a)
{{
    __shared__ _type all[{BLOCK}];
    all[threadIdx.x] = a;
    __syncthreads();
    for (int half = {BLOCK // 2}; half > 0; half >>= 1) {{
        if ((int)threadIdx.x < half)
            all[threadIdx.x] = _join(all[threadIdx.x], all[threadIdx.x + half]);
        __syncthreads();
    }}
    return all[0];
}}
extern "C" __global__ void {self.symbol}_map({parameters}_type* _partials, long long n)
{{
    _type _sum = {self.identity};
    for (long long i = blockIdx.x * (long long){BLOCK} + threadIdx.x; i < n; i += (long long)gridDim.x * {BLOCK}) {{
        {elements}
        _sum = _join(_sum, ({self.map_expr}));
    }}
    _sum = _join_block(_sum);
    if (threadIdx.x == 0)
        _partials[blockIdx.x] = _sum;
}}
extern "C" __global__ void {self.symbol}(const _type* _partials, {_c_type(out_type)}* _out, int _count)
{{
    _type a = _join_block((int)threadIdx.x < _count ? _partials[threadIdx.x] : (_type)({self.identity}));
    if (threadIdx.x == 0) {{
        {_c_type(out_type)}& {out} = *_out;
        {self.post_map_expr};
    }}
}}
"""
