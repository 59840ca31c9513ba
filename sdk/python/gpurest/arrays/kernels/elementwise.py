"""ElementwiseKernel: what the user writes is done for every element."""
from __future__ import annotations

from typing import Any, Optional, Sequence

from ..._session.stream import Stream
from ..._values.scalars import Scalar
from ...errors import ArgumentError
from .._engine import shapes
from . import source
from .binding import Bound
from .params import is_array
from .user_kernel import UserKernel

BLOCK = 256
GRID_MAX = 4096


class ElementwiseKernel(UserKernel):
    """`ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")`; then `add(x, y)` or `add(x, y, z)`.

    Parameters are declared as in CuPy: a type of NumPy's, or a letter that stands for the arguments' type; `raw` ones are indexed by the operation
    itself, by a number in C order or by one for each dimension, and have size(), shape() and strides() (in bytes). `i` is the number of the element,
    `n` how many there are (unless a parameter has that name), `_ind` has both: size() and get(), the element's place in each dimension.

    Complex numbers are `complex<float>` and `complex<double>`, with operators, real(), imag() and the functions that real numbers have.

    Arguments are arrays, with any strides, buffers and numbers. What is not raw is broadcast, outputs that are given are not. `preamble` stands
    before the kernel, `loop_prep` and `after_loop` before and behind the loop. `no_return`, `return_tuple`: what a call gives. `reduce_dims` and `doc`
    are accepted and mean nothing here. Thread-safe."""

    def __init__(self, in_params: str, out_params: str, operation: str, name: str = "kernel", reduce_dims: bool = True, preamble: str = "",
                 no_return: bool = False, return_tuple: bool = False, *, options: Sequence[str] = (), loop_prep: str = "", after_loop: str = "",
                 doc: str = "") -> None:
        super().__init__(in_params, out_params, name, preamble, options, reduce_dims)
        if all(one.const for one in self.params):
            raise ArgumentError(f"{name}: at least one output parameter")
        self.operation, self.loop_prep, self.after_loop = operation, loop_prep, after_loop
        self.no_return, self.return_tuple = no_return, return_tuple

    def __call__(self, *args: Any, size: Optional[int] = None, block_size: int = BLOCK, stream: Any = None) -> Any:
        """Runs it, and waits for its end. The outputs, new ones where none are given. `size`: the number of elements, where all arrays are raw. `stream`: one
        of the session's."""
        if len(args) not in (self.nin, self.nargs):
            raise ArgumentError(f"{self.name} takes {self.nin} inputs and, if wanted, {self.nout} outputs; got {len(args)} arguments")
        if block_size < 1:
            raise ArgumentError(f"{self.name}: block_size is at least 1")
        bound = Bound(self.name, self.params, [*args, *[None] * (self.nargs - len(args))])
        shape = bound.loop_shape(size)
        self._fill_outputs(bound, shape, len(args) == self.nin, size is not None)
        if shapes.size_of(shape):
            self._launch(bound, shape, block_size, stream if isinstance(stream, Stream) else None)
        outputs = bound.values[self.nin:]
        if self.no_return:
            return None
        return outputs[0] if len(outputs) == 1 and not self.return_tuple else tuple(outputs)

    def _fill_outputs(self, bound: Bound, shape: shapes.Shape, made: bool, sized: bool) -> None:
        for at, param in enumerate(self.out_params, self.nin):
            if not made:
                bound.check_output(param, bound.values[at], shape)
            elif param.raw and not sized:
                raise ArgumentError(f"{self.name}: nothing says how large the raw output {param.name} is; pass size=, or the output")
            else:
                bound.values[at] = bound.new(param, shape)

    def _launch(self, bound: Bound, shape: shapes.Shape, block: int, stream: Optional[Stream]) -> None:
        size = shapes.size_of(shape)
        numbers = source.Numbers()
        text = self._source(bound, shape, numbers)
        self.cached_codes[bound.kinds] = text
        arguments = [*bound.passed(stream is None), *numbers.arguments, Scalar("i64", size)]
        kernel = bound.session().module(text, self.options).kernel(self.symbol)
        kernel(min(-(-size // block), GRID_MAX), block, arguments, stream=stream, timing=False)

    def _source(self, bound: Bound, shape: shapes.Shape, numbers: source.Numbers) -> str:
        rows = [(param, bound.type_of(param), value) for param, value in zip(bound.params, bound.values)]
        each = [(param, dtype, bound.strides_in(value, shape)) for param, dtype, value in rows if not param.raw and is_array(value)]
        prepared = source.raw_arrays(bound, numbers) + source.indexer("_ind", self.operation + self.loop_prep + self.after_loop, shape, numbers)
        lines, offsets = numbers.offsets("i", shape, [strides for _, _, strides in each])
        elements = " ".join(source.element(param, dtype, offset) for (param, dtype, _), offset in zip(each, offsets))
        parameters = ", ".join([*(source.parameter(*row) for row in rows), *numbers.parameters, "long long _n"])
        count = "" if any(param.name == "n" for param in bound.params) else "    const long long n = _n;\n    (void)n;\n"
        place = "_ind.set(i);" if "_ind(" in prepared else ""
        return f"""{source.head(bound, self.preamble, numbers, prepared)}extern "C" __global__ void {self.symbol}({parameters})
{{
{count}{prepared}    {self.loop_prep};
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < _n; i += (long long)gridDim.x * blockDim.x) {{
        {lines} {place}
        {elements}
        {self.operation};
    }}
    {self.after_loop};
}}
"""
