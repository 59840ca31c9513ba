"""ReductionKernel: what the user writes for every element is joined, over all of them or along axes."""
from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from ..._session.stream import Stream
from ..._values.dtypes import DType, dtype_of
from ..._values.scalars import Scalar
from ...errors import ArgumentError
from .._engine import shapes
from . import source
from .binding import Bound
from .params import Param, c_type, is_array
from .user_kernel import UserKernel

BLOCK = 256
GRID_MAX = 1 << 20
SPLITS_MAX = BLOCK  # parts of one output's elements: one per thread of the second pass
BLOCKS_ENOUGH = 512  # outputs are not split where there are so many blocks anyway
View = Tuple[Param, DType, shapes.Strides]


class ReductionKernel(UserKernel):
    """`ReductionKernel("T x, T y", "T out", "x * y", "a + b", "out = a", "0", "dot")`; then `dot(x, y)`: over all elements.

    `map_expr` is computed per element, `reduce_expr` joins two such values `a` and `b`, `post_map_expr` makes the outputs from `a`.
    `identity` is the value that changes nothing when joined. `reduce_type`: what values are joined as, a type of NumPy's or one of the preamble's; else
    the first output's. The order of joining depends on the shapes only.

    Parameters are as those of ElementwiseKernel, with `_in_ind.size()` and `_out_ind.size()`, the numbers of elements and of outputs, and `i` and
    `_j`, the number of the element, counted with the axes that stay in front. `reduce_dims` is accepted and means nothing here. Thread-safe."""

    def __init__(self, in_params: str, out_params: str, map_expr: str, reduce_expr: str, post_map_expr: str, identity: Any,
                 name: str = "reduce_kernel", reduce_type: Optional[str] = None, reduce_dims: bool = True, preamble: str = "",
                 options: Sequence[str] = ()) -> None:
        super().__init__(in_params, out_params, name, preamble, options, reduce_dims)
        if not self.in_params or not self.out_params:
            raise ArgumentError(f"{name}: at least one input and one output parameter")
        self.map_expr, self.reduce_expr, self.post_map_expr = map_expr, reduce_expr, post_map_expr
        self.identity, self.reduce_type = "" if identity is None else str(identity), reduce_type

    def __call__(self, *args: Any, out: Any = None, axis: Any = None, keepdims: bool = False, size: Optional[int] = None, stream: Any = None) -> Any:
        """Runs it, and waits for its end. The outputs: `out`, the arguments behind the inputs, or new ones. `axis`: one or several, None: all. `size`: the
        number of elements, where all arrays are raw."""
        if len(args) not in (self.nin, self.nargs):
            raise ArgumentError(f"{self.name} takes {self.nin} inputs and, if wanted, {self.nout} outputs; got {len(args)} arguments")
        given = list(args[self.nin:])
        if out is not None:
            if given:
                raise ArgumentError(f"{self.name}: the output is given twice, as an argument and as out=")
            given = list(out) if isinstance(out, (tuple, list)) else [out]
        if given and len(given) != self.nout:
            raise ArgumentError(f"{self.name} has {self.nout} outputs, {len(given)} are given")
        bound = Bound(self.name, self.params, [*args[:self.nin], *(given or [None] * self.nout)])
        work = _Work(bound, self.nin, size, axis, keepdims)
        self._run(bound, work, stream if isinstance(stream, Stream) else None)
        outputs = bound.values[self.nin:]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _run(self, bound: Bound, work: _Work, stream: Optional[Stream]) -> None:
        if not work.outputs:
            return
        session, numbers = bound.session(), source.Numbers()
        inner, item = self._inner(bound)
        work.split(splittable=item is not None)
        text = self._source(bound, work, numbers, inner)
        self.cached_codes[bound.kinds] = text
        module = session.module(text, self.options)
        arguments = [*bound.passed(stream is None), *numbers.arguments, Scalar("i64", work.outputs), Scalar("i64", work.reduced), Scalar("i32", work.splits),
                     Scalar("i32", work.width)]
        if work.splits == 1:
            module.kernel(self.symbol)(work.blocks, BLOCK, [None, *arguments], stream=stream, timing=False)
            return
        with session.buffer(size=work.outputs * work.splits * (item or 1)) as partials:
            module.kernel(self.symbol)(work.blocks, BLOCK, [partials, *arguments], stream=stream, timing=False)
            module.kernel(self.symbol + "_join")(min(work.outputs, GRID_MAX), BLOCK, [partials, *arguments], stream=stream, timing=False)

    def _inner(self, bound: Bound) -> Tuple[str, Optional[int]]:
        """The type that values are joined as, in C, and its size; None: only the compiler knows it."""
        if self.reduce_type is None:
            dtype = bound.type_of(self.out_params[0])
        elif self.reduce_type in bound.types:
            dtype = bound.types[self.reduce_type]
        else:
            try:
                dtype = dtype_of(self.reduce_type)
            except TypeError:
                return self.reduce_type, None
        return c_type(dtype), dtype.itemsize

    def _source(self, bound: Bound, work: _Work, numbers: source.Numbers, inner: str) -> str:
        rows = [(param, bound.type_of(param), value) for param, value in zip(bound.params, bound.values)]
        prepared = source.raw_arrays(bound, numbers)
        for name, count in (("_in_ind", "_outputs * _reduced"), ("_out_ind", "_outputs")):
            if source.uses(self.map_expr + self.post_map_expr, name):
                prepared += f"    const struct {{ long long _size; __device__ long long size() const {{ return _size; }} }} {name} = {{{count}}};\n"
        reads, elements = self._elements(work.inputs, numbers, "i", work.loop)
        writes, results = self._elements(work.results, numbers, "_o", work.out_shape)
        parameters = ", ".join(["_type* _partials", *(source.parameter(*row) for row in rows), *numbers.parameters, "long long _outputs", "long long _reduced",
                                "int _splits", "int _width"])
        lines = {"parameters": parameters, "prepared": prepared, "map": self.map_expr, "identity": self.identity, "reads": f"{reads} {elements}",
                 "post": f"{writes} {results} _type a = _all[threadIdx.x]; {self.post_map_expr};", "symbol": self.symbol}
        text = source.head(bound, self.preamble, numbers, prepared) + _COMMON.format(inner=inner, block=BLOCK, reduce=self.reduce_expr) + _FIRST.format(**lines)
        return text + (_SECOND.format(**lines) if work.splits > 1 else "")

    @staticmethod
    def _elements(views: Sequence[View], numbers: source.Numbers, index: str,
                  shape: shapes.Shape) -> Tuple[str, str]:
        lines, offsets = numbers.offsets(index, shape, [strides for _, _, strides in views])
        return lines, " ".join(source.element(param, dtype, offset) for (param, dtype, _), offset in zip(views, offsets))


class _Work:
    """What is joined to what: the loop has the axes that stay in front, and each output the elements of the axes behind them."""

    def __init__(self, bound: Bound, nin: int, size: Optional[int], axis: Any, keepdims: bool) -> None:
        ins = Bound(bound.name, bound.params[:nin], bound.values[:nin])
        shape = ins.loop_shape(size)
        axes = shapes.normalize_axes(axis, len(shape))
        kept = tuple(at for at in range(len(shape)) if at not in axes)
        order = (*kept, *axes)
        self.loop = tuple(shape[at] for at in order)
        self.out_shape = tuple(1 if at in axes else extent for at, extent in enumerate(shape)) if keepdims else tuple(shape[at] for at in kept)
        self.outputs = shapes.size_of(tuple(shape[at] for at in kept))
        self.reduced = shapes.size_of(tuple(shape[at] for at in axes))
        self._make_outputs(bound, nin)
        self.inputs: List[View] = []
        self.results: List[View] = []
        for at, (param, value) in enumerate(zip(bound.params, bound.values)):
            if param.raw or not is_array(value):
                continue
            if at < nin:
                strides = ins.strides_in(value, shape)
                self.inputs.append((param, bound.type_of(param), tuple(strides[one] for one in order)))
            else:
                strides = () if _is_one(value, self.out_shape) else bound.strides_in(value, self.out_shape)
                self.results.append((param, bound.type_of(param), strides))

    def _make_outputs(self, bound: Bound, nin: int) -> None:
        for at in range(nin, len(bound.params)):
            param, value = bound.params[at], bound.values[at]
            if value is None:
                bound.values[at] = bound.new(param, self.out_shape)
            elif not _is_one(value, self.out_shape):
                bound.check_output(param, value, self.out_shape)

    def split(self, splittable: bool) -> None:
        """How many threads join the elements of one output, and in how many parts."""
        self.width = 1
        while self.width < BLOCK and self.width * 4 <= self.reduced:
            self.width *= 2
        per = BLOCK // self.width
        enough = splittable and self.width == BLOCK and self.outputs < BLOCKS_ENOUGH
        self.splits = max(1, min(-(-self.reduced // (4 * BLOCK)), SPLITS_MAX, BLOCKS_ENOUGH // self.outputs)) if enough else 1
        self.blocks = min(-(-self.outputs * self.splits // per), GRID_MAX)


def _is_one(value: Any, shape: shapes.Shape) -> bool:
    """A buffer of one element holds the output without dimensions, too."""
    return shape == () and is_array(value) and tuple(value.shape) == (1,)


_COMMON = """typedef {inner} _type;
__device__ static _type _join(_type a, _type b) {{ return {reduce}; }}
constexpr int _BLOCK = {block};
__device__ static void _join_lanes(_type* all, int width)
{{
    for (int half = width / 2; half > 0; half >>= 1) {{
        __syncthreads();
        if ((int)threadIdx.x % width < half)
            all[threadIdx.x] = _join(all[threadIdx.x], all[threadIdx.x + half]);
    }}
    __syncthreads();
}}
"""
_FIRST = """extern "C" __global__ void {symbol}({parameters})
{{
    __shared__ __align__(16) char _bytes[_BLOCK * sizeof(_type)];
    _type* const _all = (_type*)_bytes;
{prepared}    const int _lane = threadIdx.x % _width, _per = _BLOCK / _width;
    const long long _jobs = _outputs * _splits;
    for (long long _base = blockIdx.x * (long long)_per; _base < _jobs; _base += gridDim.x * (long long)_per) {{
        const long long _job = _base + threadIdx.x / _width, _o = _job / _splits;
        _type _sum = _type({identity});
        for (long long _r = _job < _jobs ? _job % _splits * _width + _lane : _reduced; _r < _reduced; _r += (long long)_splits * _width) {{
            const long long i = _o * _reduced + _r, _j = i;
            (void)_j;
            {reads}
            _sum = _join(_sum, _type({map}));
        }}
        _all[threadIdx.x] = _sum;
        _join_lanes(_all, _width);
        if (_lane == 0 && _job < _jobs) {{
            if (_splits > 1) {{
                _partials[_job] = _all[threadIdx.x];
            }} else {{
                {post}
            }}
        }}
        __syncthreads();
    }}
}}
"""
_SECOND = """extern "C" __global__ void {symbol}_join({parameters})
{{
    __shared__ __align__(16) char _bytes[_BLOCK * sizeof(_type)];
    _type* const _all = (_type*)_bytes;
{prepared}    for (long long _o = blockIdx.x; _o < _outputs; _o += gridDim.x) {{
        _all[threadIdx.x] = (int)threadIdx.x < _splits ? _partials[_o * _splits + threadIdx.x] : _type({identity});
        _join_lanes(_all, _BLOCK);
        if (threadIdx.x == 0) {{
            {post}
        }}
        __syncthreads();
    }}
}}
"""
