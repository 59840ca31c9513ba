"""The batch frame, `application/vnd.gpurest.batch`: a JSON document and the byte segments that it names, each aligned to 64 bytes."""
from __future__ import annotations

import json
import re
import struct
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ..errors import ProtocolError

BATCH_TYPE = "application/vnd.gpurest.batch"
_MAGIC = b"\x89GPR\r\n\x1a\n"
_HEAD = struct.Struct("<8sHHI")
_ALIGN = 64
_ZEROS = bytes(_ALIGN)
BytesLike = Union[bytes, bytearray, memoryview]
_LONG_NUMBER = re.compile(rb"[0-9]{16}")
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_EXACT_MAX = 1 << 53  # beyond, JSON's numbers lose digits to many readers: the contract wants decimal texts


def _exact(value: Any) -> Any:
    if isinstance(value, int) and abs(value) > _EXACT_MAX:
        return str(int(value))
    if isinstance(value, Mapping):
        return {name: _exact(one) for name, one in value.items()}
    return [_exact(one) for one in value] if isinstance(value, (list, tuple)) else value


def dumps(document: Any) -> bytes:
    """As the service reads it: integers beyond 2^53 are decimal texts."""
    text = _encode(document).encode()
    return _encode(_exact(document)).encode() if _LONG_NUMBER.search(text) else text


class Encoded(NamedTuple):
    """A batch whose operations are text already: one after the other, `count` of them. `keep`: names, in quotes. `timing`: launches are timed.
    `module`: what is compiled for it."""
    ops: Sequence[str]
    count: int
    keep: Sequence[str]
    timeout_ms: int
    timing: bool
    module: Optional[Mapping[str, Any]] = None

    def followed_by(self, ops: Sequence[Mapping[str, Any]]) -> Encoded:
        return self._replace(ops=[*self.ops, *[dumps(op).decode() for op in ops]], count=self.count + len(ops)) if ops else self

    def text(self, segments: Sequence[Mapping[str, Any]]) -> bytes:
        module = f',"module":{dumps(self.module).decode()}' if self.module is not None else ""
        declared = dumps(segments).decode() if segments else "[]"
        timing = "" if self.timing else ',"timing":false'
        return (f'{{"ops":[{",".join(self.ops)}],"keep":[{",".join(self.keep)}],"timeout_ms":{self.timeout_ms}{timing}{module},'
                f'"segments":{declared}}}').encode()


def pack(document: Union[Mapping[str, Any], Encoded], segments: Mapping[str, BytesLike]) -> Tuple[List[BytesLike], int]:
    """The pieces of a frame, in order, and their total of bytes. "segments" of the document is set from the mapping.

    The segments' memory is referred to, not copied."""
    sizes = [{"id": name, "size": len(memoryview(data).cast("B"))} for name, data in segments.items()]
    text = document.text(sizes) if isinstance(document, Encoded) else dumps({**document, "segments": sizes})
    text += b" " * (-(_HEAD.size + len(text)) % _ALIGN)
    pieces: List[BytesLike] = [_HEAD.pack(_MAGIC, 1, 0, len(text)) + text]
    for data in segments.values():
        view = memoryview(data).cast("B")
        pieces.append(view)
        if len(view) % _ALIGN:
            pieces.append(_ZEROS[:-len(view) % _ALIGN])
    return pieces, sum(len(piece) for piece in pieces)


def unpack(body: BytesLike) -> Tuple[Dict[str, Any], Dict[str, memoryview]]:
    """The document and its segments, as views into `body`."""
    document, at = unpack_document(body)
    return document, _segments(document.get("segments", []), memoryview(body), at)


def unpack_document(body: BytesLike) -> Tuple[Dict[str, Any], int]:
    """The document alone, and where the segments begin, which need not be there: the first piece of pack() is enough."""
    view = memoryview(body)
    if len(view) < _HEAD.size:
        raise ProtocolError("the batch's answer is shorter than its head")
    magic, version, flags, length = _HEAD.unpack_from(view)
    if (magic, version, flags) != (_MAGIC, 1, 0) or length > len(view) - _HEAD.size:
        raise ProtocolError("the batch's answer is not a frame of version 1")
    try:
        document = json.loads(str(view[_HEAD.size:_HEAD.size + length], "utf-8"))
    except ValueError as error:
        raise ProtocolError("the batch's answer has no JSON document") from error
    if not isinstance(document, dict):
        raise ProtocolError("the batch's answer has no JSON object")
    return document, _HEAD.size + length


def _segments(declared: Sequence[Mapping[str, Any]], view: memoryview, at: int) -> Dict[str, memoryview]:
    found: Dict[str, memoryview] = {}
    for item in declared:
        size = int(item["size"])
        if size < 0 or at + size > len(view):
            raise ProtocolError("the batch's answer ends within a segment")
        found[str(item["id"])] = view[at:at + size]
        at += size + -size % _ALIGN
    return found


def device_us(answer: Mapping[str, Any]) -> float:
    """Device time of a batch's launches, microseconds: those measured by themselves and, where only groups were, those."""
    single = sum(float(op.get("gpu_us") or 0.0) for op in answer.get("ops", ()))
    return single + sum(float(group.get("gpu_us") or 0.0) for group in answer.get("gpu_groups", ()))
