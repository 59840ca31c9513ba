"""Snapshots saved beside an older one: bytes that it has are not sent again, and a whole file is made of both. docs/reference/snapshot.md has the format."""
from __future__ import annotations

import hashlib
import mmap
import os
import tarfile
from typing import Dict, List, NamedTuple, Union

from ..errors import ArgumentError, ProtocolError
from .frame import BytesLike

FileName = Union[str, "os.PathLike[str]"]
HAVE_MAX = 100  # digests that the service takes
_BLOCK = tarfile.BLOCKSIZE
_ABSENT = "absent/"
_SUMS = "SHA256SUMS"
_ON_DEVICE = ("buffers/", "texels/", "variables/")


def mapped(file: FileName) -> memoryview:
    """The file's bytes, until nobody has the view or a part of it any more."""
    with open(file, "rb") as f:
        if os.fstat(f.fileno()).st_size == 0:
            raise ProtocolError(f"{os.fspath(file)!r} is empty: no snapshot")
        return memoryview(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ))


class _Part(NamedTuple):
    name: str
    start: int  # of its header
    data: memoryview
    digest: str  # that SHA256SUMS says; "": none

    @property
    def end(self) -> int:
        """Where the next part begins."""
        return self.start + _BLOCK + -(-len(self.data) // _BLOCK) * _BLOCK

    def check(self, file: str) -> None:
        """The bytes are those that were saved."""
        if hashlib.sha256(self.data).hexdigest() != self.digest:
            raise ProtocolError(f"{file!r}: {self.name} is damaged: its bytes have not the SHA-256 that {_SUMS} says")


class _Archive:
    """The parts of a snapshot's file."""

    def __init__(self, file: FileName) -> None:
        self.file = os.fspath(file)
        self.view = mapped(file)
        try:
            with tarfile.open(self.file, "r:") as tar:
                found = [(one.name, one.offset, one.offset_data, one.size) for one in tar]
        except (tarfile.TarError, ValueError) as error:
            raise ProtocolError(f"{self.file!r} is no snapshot: {error}") from error
        if not found or found[-1][0] != _SUMS or sum(found[-1][2:]) > len(self.view):
            raise ProtocolError(f"{self.file!r} is cut short, or no snapshot: it does not end with {_SUMS}")
        sums = str(self.view[found[-1][2]:sum(found[-1][2:])], "utf-8", "replace")
        digests: Dict[str, str] = {name: digest for digest, _, name in (line.partition("  ") for line in sums.splitlines())}
        self.parts = [_Part(name, start, self.view[at:at + size], digests.get(name[len(_ABSENT):] if name.startswith(_ABSENT) else name, ""))
                      for name, start, at, size in found]

    def on_device(self) -> Dict[str, _Part]:
        """By their digests: parts whose bytes are here, and need not be sent again. The largest come first."""
        parts = [part for part in self.parts if part.digest and part.data and part.name.startswith(_ON_DEVICE)]
        return {part.digest: part for part in sorted(parts, key=lambda part: len(part.data), reverse=True)}


def digests_of(base: FileName) -> List[str]:
    """What can be left out of a snapshot that is saved beside this one. The bytes are read: a damaged file is no help later, and says so now."""
    old = _Archive(base)
    parts = list(old.on_device().values())[:HAVE_MAX]
    for part in parts:
        part.check(old.file)
    return [part.digest for part in parts]


def refuse_same(file: object, base: FileName) -> None:
    """The older file is needed as long as the new one is."""
    if isinstance(file, (str, os.PathLike)) and os.path.exists(file) and os.path.samefile(file, base):
        raise ArgumentError(f"base is {os.fspath(base)!r} itself, whose bytes the new file needs: save to another file")


def whole(file: FileName, base: FileName, *, read: bool = True) -> List[BytesLike]:
    """The pieces of the whole snapshot, in order; neither file is held in memory. With `read` what comes from the older one is checked before."""
    new, old = _Archive(file), _Archive(base)
    has = old.on_device()
    pieces: List[BytesLike] = []
    sent = 0
    for part in new.parts:
        if not part.name.startswith(_ABSENT):
            continue
        name = part.name[len(_ABSENT):]
        if part.digest not in has:
            raise ProtocolError(f"{old.file!r} has not the bytes of {name} that {new.file!r} leaves out: it is not the file that this was saved beside")
        found = has[part.digest]
        if read:
            found.check(old.file)
        header = tarfile.TarInfo(name)
        header.size = len(found.data)
        pieces += [new.view[sent:part.start], header.tobuf(tarfile.GNU_FORMAT), found.data, bytes(-len(found.data) % _BLOCK)]
        sent = part.end
    return [piece for piece in (*pieces, new.view[sent:]) if len(piece)]
