"""Textures as they are asked for: the shape and the type of an array, as the request has them."""
from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Union

from ..errors import ArgumentError
from .dtypes import DType, dtype_of
from .hostmem import Shape, byte_view, count_of, dtype_from, shape_from, shape_of

FORMATS = {"u1": "u8", "i1": "s8", "u2": "u16", "i2": "s16", "u4": "u32", "i4": "s32", "f2": "f16", "f4": "f32"}
AXES = {"1d": 1, "2d": 2, "3d": 3, "1d_layered": 2, "2d_layered": 3, "cube": 3, "cube_layered": 3}
FACES = 6


class Texels:
    """What a texture is asked for: the request, the shape of its elements, and what fills it."""

    def __init__(self, data: Any, shape: Union[int, Sequence[int], None], dtype: Any, dimension: Optional[str], channels: int) -> None:
        kind = dtype_of(dtype) if dtype is not None else dtype_from(data) if data is not None else dtype_of("f4")
        whole = shape_of(shape) + ((channels,) if channels > 1 else ()) if shape is not None else shape_from(data) if data is not None else None
        if kind is None or whole is None:
            raise ArgumentError("a texture is made of an array, or of shape= and dtype=")
        code = kind.str.lstrip("<|=")
        if code not in FORMATS:
            raise ArgumentError(f"texels of {kind.name} are not there; the formats are those of NumPy's {', '.join(FORMATS)}")
        if channels > 1 and (not whole or whole[-1] != channels):
            raise ArgumentError(f"an array of {channels} channels has these as its last axis, and this one has the shape {whole}")
        self.spec: Dict[str, Any] = {"format": FORMATS[code], "channels": channels, **_extent(whole[:-1] if channels > 1 else whole, dimension)}
        self.shape, self.dtype = whole, kind
        self.content = None if data is None else _content(data, whole, kind)

    def sampled(self, addressing: Union[str, Sequence[str]], filter: str, read: str, normalized_coordinates: Optional[bool], surface: bool) -> None:
        """How kernels reach it."""
        self.spec.update(addressing=addressing if isinstance(addressing, str) else list(addressing), filter=filter, read=read, surface=surface)
        if normalized_coordinates is not None:
            self.spec["normalized_coordinates"] = normalized_coordinates

    def over(self, buffer: str, offset: int, pitch: Optional[int]) -> None:
        """It reads that buffer."""
        self.spec.update(buffer=buffer, offset=offset, **({} if pitch is None else {"pitch": pitch}))


def _extent(axes: Shape, dimension: Optional[str]) -> Dict[str, Any]:
    """Of NumPy's axes, the fastest last."""
    dimension = dimension or {1: "1d", 2: "2d", 3: "3d"}.get(len(axes), "")
    if AXES.get(dimension) != len(axes):
        raise ArgumentError(f"{dimension or 'a texture'} does not have the shape {axes}; dimension= is one of {', '.join(AXES)}, whose arrays have "
                            f"{', '.join(map(str, AXES.values()))} axes")
    if dimension.startswith("cube"):
        if axes[0] % FACES or axes[1] != axes[2] or (dimension == "cube" and axes[0] != FACES):
            raise ArgumentError(f"a cube's array has the shape (6, n, n), that of {dimension} has {axes}")
        layers = {"layers": axes[0] // FACES} if dimension == "cube_layered" else {}
        return {"dimension": dimension, "extent": [axes[2]], **layers}
    if dimension.endswith("_layered"):
        return {"dimension": dimension, "extent": list(reversed(axes[1:])), "layers": axes[0]}
    return {"dimension": dimension, "extent": list(reversed(axes))}


def _content(data: Any, whole: Shape, kind: DType) -> memoryview:
    """Bytes of the host that fill it."""
    view = byte_view(data)
    if view.nbytes != count_of(whole) * kind.itemsize:
        raise ArgumentError(f"the array has {view.nbytes} bytes, the texture {count_of(whole) * kind.itemsize}")
    return view
