"""Snapshots of sessions as files: where the bytes of one go, and where they come from."""
from __future__ import annotations

import contextlib
import mmap
import os
from typing import IO, Any, Iterator, Optional, Union

from ..errors import ProtocolError
from .frame import BytesLike

FileName = Union[str, "os.PathLike[str]"]


class Target:
    """Takes the pieces of a snapshot. A file of that name is replaced only by a whole one."""

    def __init__(self, file: Union[FileName, IO[bytes]]) -> None:
        self._name: Optional[str] = None
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
            if kind is None:
                os.replace(self._part, self._name)
        finally:
            with contextlib.suppress(OSError):
                self._file.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._part)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextlib.contextmanager
def source(file: Union[FileName, IO[bytes]]) -> Iterator[BytesLike]:
    """The bytes of a snapshot: mapped where they are in a file of the system, else read."""
    if not isinstance(file, (str, os.PathLike)):
        yield file.read()
        return
    with open(file, "rb") as f:
        if os.fstat(f.fileno()).st_size == 0:
            raise ProtocolError(f"{os.fspath(file)!r} is empty: no snapshot")
        with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
            yield view
