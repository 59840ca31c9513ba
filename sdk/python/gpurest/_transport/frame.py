"""The batch frame, `application/vnd.gpurest.batch`: a JSON document and the byte segments that it names, each aligned to 64 bytes."""
from __future__ import annotations

import json
import re
import struct
from typing import Any, Dict, List, Mapping, Tuple, Union

from ..errors import ProtocolError

BATCH_TYPE = "application/vnd.gpurest.batch"
_MAGIC = b"\x89GPR\r\n\x1a\n"
_START = _MAGIC + struct.pack("<HH", 1, 0)  # version, and no flags
_HEAD = struct.Struct(f"<{len(_START)}sI")  # with the document's length
_HEAD_BYTES = _HEAD.size
_ALIGN = 64
_ZEROS = bytes(_ALIGN)
_TIMES = b',"timing":{'
_KNOWN_BYTES_MAX = 4096  # of documents that are kept
BytesLike = Union[bytes, bytearray, memoryview]
_LONG_NUMBER = re.compile(rb"[0-9]{16}")
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_decode = json.JSONDecoder().raw_decode
EXACT_MAX = 1 << 53  # beyond, JSON's numbers lose digits to many readers: the contract wants decimal texts


def _exact(value: Any) -> Any:
    if isinstance(value, int) and abs(value) > EXACT_MAX:
        return str(int(value))
    if isinstance(value, Mapping):
        return {name: _exact(one) for name, one in value.items()}
    return [_exact(one) for one in value] if isinstance(value, (list, tuple)) else value


def dumps(document: Any) -> bytes:
    """As the service reads it: integers beyond 2^53 are decimal texts."""
    text = _encode(document).encode()
    return _encode(_exact(document)).encode() if _LONG_NUMBER.search(text) else text


def pack(document: Mapping[str, Any], segments: Mapping[str, BytesLike]) -> List[BytesLike]:
    """The pieces of a frame, in order. "segments" of the document is set from the mapping.

    The segments' memory is referred to, not copied."""
    return pack_text(dumps({**document, "segments": declared(segments)}), segments)


def declared(segments: Mapping[str, BytesLike]) -> List[Dict[str, Any]]:
    """As the document has them."""
    return [{"id": name, "size": memoryview(data).nbytes} for name, data in segments.items()]


def pack_text(text: bytes, segments: Mapping[str, BytesLike]) -> List[BytesLike]:
    """As pack(), of a document that is text already and declares these segments."""
    pieces: List[BytesLike] = [framed(text)]
    for data in segments.values():
        view = memoryview(data).cast("B")
        pieces.append(view)
        if len(view) % _ALIGN:
            pieces.append(_ZEROS[:-len(view) % _ALIGN])
    return pieces


def framed(text: bytes) -> bytes:
    """The first piece of a frame, which is all of one without segments."""
    text += b" " * (-(_HEAD_BYTES + len(text)) % _ALIGN)
    return _HEAD.pack(_START, len(text)) + text


def unpack(body: BytesLike) -> Tuple[Dict[str, Any], Dict[str, memoryview]]:
    """The document and its segments, as views into `body`."""
    document, at = unpack_document(body)
    return document, _segments(document, body, at)


class Untimed:
    """Reads the answers to a request that is sent again and again, as unpack() does their bodies, but for the documents' times. Those that differ in these
    alone are read once, so nobody may change a document."""

    def __init__(self) -> None:
        self._start = b"\0"  # of answers like the last one, up to the times; no frame begins so
        self._rest = b""  # of their documents, behind the times
        self._places: List[Tuple[str, int, int]] = []  # of their segments: id, first and last
        self._bytes = self._end = 0
        self._document: Dict[str, Any] = {}

    def read(self, response: Any) -> Tuple[Dict[str, Any], Dict[str, memoryview]]:
        body = response.body
        if response.status == 204:  # nothing was read, kept, printed or timed
            return {}, {}
        if type(body) is not bytes or not body.startswith(self._start) or len(body) < self._bytes:
            return self._anew(body)
        at = len(self._start)
        after = body.find(b"}", at) + 1
        if body.find(b"{", at, after) >= 0 or body[after:self._end].rstrip() != self._rest:
            return self._anew(body)
        view, found = memoryview(body), {}
        for name, first, last in self._places:
            found[name] = view[first:last]
        return self._document, found

    def _anew(self, body: BytesLike) -> Tuple[Dict[str, Any], Dict[str, memoryview]]:
        document, end = unpack_document(body)
        segments = _segments(document, body, end)
        document.pop("timing", None)
        if type(body) is bytes and end <= _KNOWN_BYTES_MAX and (at := body.find(_TIMES, _HEAD_BYTES, end)) >= 0:  # in no text: its quotes have a backslash
            self._start = body[:at + len(_TIMES)]
            self._rest = body[body.find(b"}", at) + 1:end].rstrip()
            self._places, self._bytes, self._end, self._document = _places(document, end), len(body), end, document
        return document, segments


def _places(document: Mapping[str, Any], at: int) -> List[Tuple[str, int, int]]:
    """Of the segments that the document declares, which begin there: id, first and last."""
    found: List[Tuple[str, int, int]] = []
    for item in document.get("segments") or ():
        size = int(item["size"])
        if size < 0:
            raise ProtocolError("the batch's answer has a segment of less than nothing")
        found.append((str(item["id"]), at, at + size))
        at += size + -size % _ALIGN
    return found


def _segments(document: Mapping[str, Any], body: BytesLike, at: int) -> Dict[str, memoryview]:
    view, found = memoryview(body), {}
    for name, first, last in _places(document, at):
        if last > len(view):
            raise ProtocolError("the batch's answer ends within a segment")
        found[name] = view[first:last]
    return found


def unpack_document(body: BytesLike) -> Tuple[Dict[str, Any], int]:
    """The document alone, and where the segments begin, which need not be there: the first piece of pack() is enough."""
    end = _document_end(body)
    return _document(bytes(body[_HEAD_BYTES:end]).strip()), end


def _document_end(body: BytesLike) -> int:
    if len(body) < _HEAD_BYTES:
        raise ProtocolError("the batch's answer is shorter than its head")
    start, length = _HEAD.unpack_from(body)
    end: int = _HEAD_BYTES + length
    if start != _START or end > len(body):
        raise ProtocolError("the batch's answer is not a frame of version 1")
    return end


def _document(encoded: bytes) -> Dict[str, Any]:
    try:
        text = encoded.decode()
        document, read = _decode(text)
    except ValueError as error:
        raise ProtocolError("the batch's answer has no JSON document") from error
    if not isinstance(document, dict) or read != len(text):
        raise ProtocolError("the batch's answer has no JSON object")
    return document


def device_us(answer: Mapping[str, Any]) -> float:
    """Device time of a batch's launches, microseconds: those measured by themselves and, where only groups were, those."""
    single = sum(float(op.get("gpu_us") or 0.0) for op in answer.get("ops", ()))
    return single + sum(float(group.get("gpu_us") or 0.0) for group in answer.get("gpu_groups", ()))
