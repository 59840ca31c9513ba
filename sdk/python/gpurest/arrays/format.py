"""Printing. With NumPy its text, digit for digit, by its own functions and options: of a large array only the corners that it shows are fetched.
Without NumPy, and for arrays of very many dimensions, a few elements from the corners, never more than 1 KB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional

from .._values.dtypes import numpy
from ..errors import GpurestError
from . import indexing
from .functions import method

if TYPE_CHECKING:
    from .ndarray import ndarray

FETCH_BYTES_MAX = 1024
CORNERS_MAX = 1 << 16  # elements that are fetched for NumPy's text; its own bound is that of the options
LINE = 100
_IMPLIED = ("float64", "int64", "bool", "complex128")  # element types that the numbers themselves tell
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
    if isinstance(value, complex):
        imaginary = _word(value.imag)
        return f"{_word(value.real)}{'' if imaginary[0] in '+-' else '+'}{imaginary}j"
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


# ---- by NumPy ----

def _stand_in(array: "ndarray", edge: int) -> Any:
    """A NumPy array that has the same text when NumPy leaves out its middle: the corners, with one element between them in each dimension that
    is cut, which NumPy does not look at."""
    numbers = [list(range(extent)) if extent <= 2 * edge else [*range(edge), edge, *range(extent - edge, extent)] for extent in array._shape]
    return array[indexing.ix_(*numbers)].get()


def _numpys_text(array: "ndarray", as_repr: bool) -> Optional[str]:
    """None: NumPy is not there, or would show too much."""
    if numpy is None:
        return None
    options = numpy.get_printoptions()
    edge = int(options["edgeitems"])
    corners = 1
    for extent in array._shape:
        corners *= min(extent, 2 * edge + 1)
    if array.size <= min(options["threshold"], CORNERS_MAX):
        return str((repr if as_repr else str)(array.get()))
    if corners > CORNERS_MAX:
        return None
    shown = _stand_in(array, edge)
    with numpy.printoptions(threshold=0):
        if not as_repr:
            return str(numpy.array2string(shown))
        body = numpy.array2string(shown, separator=", ", prefix="array(", suffix=")")
        extras = [f"shape={array._shape}"] if "shape=" in repr(numpy.zeros(2 * edge + 1, numpy.bool_)) else []
    if array._dtype.name not in _IMPLIED:
        extras.append(f"dtype={array._dtype.name}")
    return _with_extras(f"array({body}", ", ".join(extras), int(options["linewidth"]))


def _with_extras(text: str, extras: str, width: int) -> str:
    """As NumPy does: in a line of their own where the last one has no room."""
    if not extras:
        return text + ")"
    last = len(text) + 1 - (text.rfind("\n") + 1)
    apart = "\n" + " " * len("array(") if last + len(extras) + 2 > width else " "
    return f"{text},{apart}{extras})"


@method
def formatted(array: "ndarray", spec: str) -> str:
    """As NumPy: of one number without dimensions by the number's own rules, else only without a specification."""
    if array._shape:
        if spec:
            raise TypeError("unsupported format string passed to gpurest.ndarray.__format__: it is for one number, so format x.get()'s elements")
        return str(array)
    return format(array.get()[()] if numpy is not None else array.item(), spec)


@method
def text_of(array: "ndarray", as_repr: bool) -> str:
    """repr() tells of a failed array instead of failing, too."""
    try:
        text = _numpys_text(array, as_repr)
        if text is not None:
            return text
        if not array.size:
            return f"array([], shape={array._shape}, dtype={array._dtype.name})" if as_repr else "[]"
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
    told = array._dtype.name in _IMPLIED and edge == 0
    return f"array({body}{'' if told else f', dtype={array._dtype.name}'}{'' if edge == 0 else f', shape={array._shape}'})"
