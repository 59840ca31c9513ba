"""Kernels of operations that go along an axis from the first element to the last, since their order matters: a thread for each row."""

from __future__ import annotations

from . import shapes
from .codegen import Body, Kernel, Target, Writer, load_text, store_text
from .elementwise import OPS, emit
from .expr import Load


def fold(op: str, source: Load, axis: int, target: Target, running: bool) -> Kernel:
    """((x0 op x1) op x2) … along `axis`; `running`: with every value on the way, else the last one. The result has the source's type."""
    kind, shape = source.dtype, source.shape
    kept = tuple(at for at in range(len(shape)) if at != axis)
    outputs = shapes.contiguous_strides(shape if running else tuple(shape[at] for at in kept))
    writer = Writer(True)
    Body((), writer).collect([source])
    views = [tuple(source.strides[at] for at in kept), tuple(outputs[at] for at in kept) if running else outputs]
    lines, (read, written) = writer.offsets("o", tuple(shape[at] for at in kept), views)
    step = writer.dim(source.strides[axis])
    wide = writer.dim(outputs[axis]) if running else "0"
    writer.parameter(f"{kind.storage} *q", target)
    writer.count("rows", shapes.size_of(shape) // shape[axis])
    writer.count("elements", shape[axis])
    flag = writer.flag() if OPS[op].reports(kind) else ""
    joined = emit(op, kind, kind, {"a": "sum", "b": "x", "c": "", "i": "", "flag": flag})
    store = store_text(kind, "q", f"written + (long long)r * {wide}", "sum")
    text = "".join(f"        {line}\n" for line in lines)
    return writer.finish(f"""    for (u64_t o = blockIdx.x * (u64_t)blockDim.x + threadIdx.x; o < rows; o += (u64_t)gridDim.x * blockDim.x) {{
{text}        const long long read = {read}, written = {written};
        {kind.ctype} sum = {load_text(kind, "p0", "read")};
        for (u64_t r = 0; r < elements; r++) {{
            if (r) {{
                const {kind.ctype} x = {load_text(kind, "p0", f"read + (long long)r * {step}")};
                sum = {joined};
            }}
            {store if running else f"if (r + 1 == elements) {store}"}
        }}
    }}
""")
