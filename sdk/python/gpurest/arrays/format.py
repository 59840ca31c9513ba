"""Printing: a few elements from the corners, never more than 1 KB of an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List

from ..errors import GpurestError
from . import indexing
from .functions import method

if TYPE_CHECKING:
    from .ndarray import ndarray

FETCH_BYTES_MAX = 1024
LINE = 100
EDGES = (3, 2, 1)  # so many elements from either end of each dimension, as far as they fit


def _edge(array: "ndarray") -> int:
    """0: all of it."""
    if array.nbytes <= FETCH_BYTES_MAX and array.size <= 128:
        return 0
    for edge in EDGES:
        elements = 1
        for extent in array._shape:
            elements *= min(extent, 2 * edge)
        if elements * array._dtype.itemsize <= FETCH_BYTES_MAX:
            return edge
    return -1


def _corners(array: "ndarray", edge: int) -> Any:
    """Nested lists of the elements near the ends of each dimension."""
    numbers = [list(range(extent)) if extent <= 2 * edge else [*range(edge), *range(extent - edge, extent)] for extent in array._shape]
    return array[indexing.ix_(*numbers)].tolist()


def _word(value: Any) -> str:
    if isinstance(value, float):
        text = f"{value:.8g}"
        return text if any(c in text for c in ".einf") else text + "."
    return str(value)


def _lines(values: Any, shape: Any, edge: int, indent: int) -> str:
    if not shape:
        return _word(values)
    parts: List[str] = [_lines(one, shape[1:], edge, indent + 1) for one in values]
    if edge and shape[0] > 2 * edge:
        parts.insert(edge, "...")
    joint = ", " if len(shape) == 1 else ",\n" + "\n" * (len(shape) - 2) + " " * (indent + 1)
    text = "[" + joint.join(parts) + "]"
    return text if len(shape) > 1 or len(text) + indent <= LINE else _wrapped(parts, indent)


def _wrapped(parts: List[str], indent: int) -> str:
    lines, line = [], ""
    for at, part in enumerate(parts):
        piece = part + (", " if at + 1 < len(parts) else "")
        if line and indent + len(line) + len(piece) > LINE:
            lines.append(line.rstrip())
            line = ""
        line += piece
    return "[" + ("\n" + " " * (indent + 1)).join([*lines, line]) + "]"


@method
def text_of(array: "ndarray", as_repr: bool) -> str:
    """repr() tells of a failed array instead of failing, too."""
    if not array.size:
        return f"array([], shape={array._shape}, dtype={array._dtype.name})" if as_repr else "[]"
    try:
        edge = _edge(array)
        if edge < 0:
            body = "..."
        else:
            body = _lines(_corners(array, edge) if edge else array.tolist(), array._shape, edge, 6 if as_repr else 0)
    except (GpurestError, IndexError, ValueError) as error:
        if not as_repr:
            raise
        return f"<gpurest.ndarray of shape {array._shape}, {array._dtype.name}: {error}>"
    if not as_repr:
        return body
    told = array._dtype.name in ("float64", "int64", "bool") and edge == 0
    return f"array({body}{'' if told else f', dtype={array._dtype.name}'}{'' if edge == 0 else f', shape={array._shape}'})"
