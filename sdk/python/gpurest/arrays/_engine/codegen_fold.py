"""Kernels of operations that go along an axis from the first element to the last, since their order matters: a thread for each row."""

from __future__ import annotations

from . import shapes
from .codegen import Body, Writer
from .expr import Load
from .language import Kernel, Language, Target


def fold(language: Language, op: str, source: Load, axis: int, target: Target, running: bool) -> Kernel:
    """((x0 op x1) op x2) … along `axis`; `running`: with every value on the way, else the last one. The result has the source's type."""
    kind, shape = source.dtype, source.shape
    kept = tuple(at for at in range(len(shape)) if at != axis)
    outputs = shapes.contiguous_strides(shape if running else tuple(shape[at] for at in kept))
    writer = Writer(language, True)
    Body((), writer).collect([source])
    views = [tuple(source.strides[at] for at in kept), tuple(outputs[at] for at in kept) if running else outputs]
    lines, (read, written) = writer.offsets("o", tuple(shape[at] for at in kept), views)
    step = writer.dim(source.strides[axis])
    wide = writer.dim(outputs[axis]) if running else "0"
    writer.pointer("q", kind, target)
    writer.count("rows", shapes.size_of(shape) // shape[axis])
    writer.count("elements", shape[axis])
    flag = writer.flag() if language.reports(op, kind) else ""
    joined = language.emit(op, kind, kind, {"a": "sum", "b": "x", "c": "", "i": "", "flag": flag})
    long, turn, type_of = language.long, language.to(language.long, "r"), language.type_of(kind)
    store = writer.store(kind, "q", f"written + {turn} * {wide}", "sum")
    text = "".join(f"        {line}\n" for line in lines)
    return writer.finish(f"""    {writer.each("o", "rows")}
{text}        {language.local(long)} read = {read}, written = {written};
        {language.variable(type_of)} sum = {writer.load(kind, "p0", "read")};
        for (u64_t r = 0; r < elements; r++) {{
            if (r > 0) {{
                {language.local(type_of)} x = {writer.load(kind, "p0", f"read + {turn} * {step}")};
                sum = {joined};
            }}
            {store if running else f"if (r + 1 == elements) {store}"}
        }}
    }}
""")
