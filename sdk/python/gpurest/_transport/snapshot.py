"""Snapshots of sessions as files: where the bytes of one go, and where they come from."""
from __future__ import annotations

import contextlib
import os
from typing import IO, Any, List, Optional, Union

from ..errors import ArgumentError
from .frame import BytesLike
from .snapshot_base import FileName, digests_of, mapped, refuse_same, whole


class Target:
    """Takes the pieces of a snapshot. A file of that name is replaced only by a whole one. `base`: the older file that has what is left out; `have`: its
    digests."""

    def __init__(self, file: Union[FileName, IO[bytes]], base: Optional[FileName] = None) -> None:
        self._name: Optional[str] = None
        self._base = base
        self.have: List[str] = []
        if base is not None:
            refuse_same(file, base)
            self.have = digests_of(base)
        if isinstance(file, (str, os.PathLike)):
            self._name = os.fspath(file)
            self._file: IO[bytes] = open(self._part, "wb", opener=_private)
        else:
            self._file = file

    @property
    def _part(self) -> str:
        return f"{self._name}.part"

    def write(self, piece: bytes) -> None:
        at = memoryview(piece)
        while at:
            at = at[self._file.write(at):]

    def __enter__(self) -> Target:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._name is None:
            return
        try:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())
            self._file.close()
            if kind is None and self._base is not None:
                whole(self._part, self._base, read=False)  # which has all that is missing, else the old file stays
            if kind is None:
                os.replace(self._part, self._name)
        finally:
            with contextlib.suppress(OSError):
                self._file.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._part)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def pieces_of(file: Union[FileName, IO[bytes]], base: Optional[FileName] = None) -> List[BytesLike]:
    """The bytes of a snapshot: mapped where they are in a file of the system, else read. With `base` those that it leaves out are taken from there."""
    if isinstance(file, (str, os.PathLike)):
        return [mapped(file)] if base is None else whole(file, base)
    if base is not None:
        raise ArgumentError("with base the snapshot is named as a file: an open one is not searched")
    return [file.read()]
