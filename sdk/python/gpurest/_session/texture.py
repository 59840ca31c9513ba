"""Textures and surfaces: texels that kernels sample by coordinates, or write."""
from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from .._transport.steps import Steps
from .._values.dtypes import DType, dtype_of
from .._values.hostmem import Shape, byte_view, count_of, dtype_from, shape_from, shape_of
from ..errors import ArgumentError, GpurestError
from . import requests
from .buffer import Buffer, Slot

if TYPE_CHECKING:
    from .session import Session
    from .session_state import SessionState

FORMATS = {"u1": "u8", "i1": "s8", "u2": "u16", "i2": "s16", "u4": "u32", "i4": "s32", "f2": "f16", "f4": "f32"}
AXES = {"1d": 1, "2d": 2, "3d": 3, "1d_layered": 2, "2d_layered": 3, "cube": 3, "cube_layered": 3}
FACES = 6


class Texture(Buffer):
    """Texels that kernels take as a cudaTextureObject_t; `surface` is what they take as a cudaSurfaceObject_t. Its texels are a Buffer's bytes: set(),
    get(), write(), read() and copy_from() are there, in whole texels, in batches too. fill(), share() and view() are not. `spec` is what the service
    says of it. Freed by free(), by leaving a `with` block, or, when nobody refers to it any more, along with a later request."""

    kind = "texture"
    _argument = "tex"

    def __init__(self, session: Session, info: Mapping[str, Any], dtype: DType, shape: Shape, buffer: Optional[Buffer] = None) -> None:
        size, close = int(info["size"]), int(info["size"]) == count_of(shape) * dtype.itemsize  # else bytes lie between its rows
        super().__init__(session, Slot(str(info["texels"])), size, dtype if close else None, shape if close else None, owned=False)
        self.spec: Dict[str, Any] = dict(info)
        self._read = buffer  # stays while the texture reads it
        self._finalizer = weakref.finalize(self, session._textures_left.append, (self._generation, str(info["id"])))
        self._finalizer.atexit = False

    @property
    def surface(self) -> Surface:
        """As an argument for a cudaSurfaceObject_t; of a texture made with surface=True."""
        if not self.spec["surface"]:
            raise ArgumentError("the texture is no surface: make it with surface=True")
        return Surface(self)

    def view(self, dtype: Any) -> Buffer:
        """It has one format: Session.texture() makes it."""
        raise ArgumentError("the texels of a texture have one format; a texture with another one can read the same buffer")

    def _as_argument(self, session: Optional[SessionState]) -> Optional[Dict[str, Any]]:
        return None  # no pointer takes it

    def _freeing(self) -> Steps[None]:
        if not self._freed and not self._gone():
            self._check()
            if self._session._batch_now() is not None:
                raise GpurestError("a batch is being recorded: free the texture before or after it")
            yield requests.delete(requests.texture_path(self._session.id, str(self.spec["id"])))
        self._freed = True
        if self._finalizer is not None:
            self._finalizer.detach()

    def __repr__(self) -> str:
        return f"<Texture {self.spec['id']} {self.spec['dimension']} {self.shape} of {self.spec['format']}{' freed' if self._freed else ''}>"


class Surface:
    """A texture where a kernel takes a surface."""

    _argument = "surf"

    def __init__(self, texture: Texture) -> None:
        self.texture = texture

    def __gpurest_buffer__(self) -> Tuple[Texture, int]:
        return self.texture, 0


class Wanted:
    """What a texture is asked for: the request, the shape of its elements, and what fills it."""

    def __init__(self, spec: Dict[str, Any], shape: Shape, dtype: DType, content: Optional[memoryview], buffer: Optional[Buffer]) -> None:
        self.spec, self.shape, self.dtype, self.content, self.buffer = spec, shape, dtype, content, buffer

    def sampled(self, addressing: Union[str, Sequence[str]], filter: str, read: str, normalized_coordinates: Optional[bool], surface: bool, offset: int,
                pitch: Optional[int]) -> None:
        """How kernels reach it."""
        self.spec.update(addressing=addressing if isinstance(addressing, str) else list(addressing), filter=filter, read=read, surface=surface)
        if normalized_coordinates is not None:
            self.spec["normalized_coordinates"] = normalized_coordinates
        if self.buffer is not None:
            self.spec.update(buffer=self.buffer.id, offset=offset, **({} if pitch is None else {"pitch": pitch}))

    def texture(self, session: Any, info: Mapping[str, Any]) -> Texture:
        """Once it is made."""
        return Texture(session, info, self.dtype, self.shape, self.buffer)


def described(session: SessionState, data: Any, shape: Union[int, Sequence[int], None], dtype: Any, dimension: Optional[str], channels: int,
              buffer: Any) -> Wanted:
    """Checked: its shape, its type, and the request's members that follow from these."""
    session._check()
    if session._batch_now() is not None:
        raise GpurestError("a batch is being recorded: make textures before or after it")
    kind = dtype_of(dtype) if dtype is not None else dtype_from(data) if data is not None else dtype_of("f4")
    whole = shape_of(shape) + ((channels,) if channels > 1 else ()) if shape is not None else shape_from(data) if data is not None else None
    if kind is None or whole is None:
        raise ArgumentError("a texture is made of an array, or of shape= and dtype=")
    code = kind.str.lstrip("<|=")
    if code not in FORMATS:
        raise ArgumentError(f"texels of {kind.name} are not there; the formats are those of NumPy's {', '.join(FORMATS)}")
    if channels > 1 and (not whole or whole[-1] != channels):
        raise ArgumentError(f"an array of {channels} channels has these as its last axis, and this one has the shape {whole}")
    spec = {"format": FORMATS[code], "channels": channels, **_extent(whole[:-1] if channels > 1 else whole, dimension)}
    memory = None if buffer is None else buffer.__gpurest_buffer__()[0]
    if memory is not None:
        memory._check()
    return Wanted(spec, whole, kind, None if data is None else _content(data, whole, kind), memory)


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
