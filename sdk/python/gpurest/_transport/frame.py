"""The batch frame, `application/vnd.gpurest.batch`: a JSON document and the byte segments that it names, each aligned to 64 bytes."""
from __future__ import annotations

import json
import re
import struct
from functools import lru_cache
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
_KNOWN_BYTES_MAX = 4096  # of answers that are kept
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
    text += b" " * (-(_HEAD_BYTES + len(text)) % _ALIGN)
    pieces: List[BytesLike] = [_HEAD.pack(_START, len(text)) + text]
    for data in segments.values():
        view = memoryview(data).cast("B")
        pieces.append(view)
        if len(view) % _ALIGN:
            pieces.append(_ZEROS[:-len(view) % _ALIGN])
    return pieces


def unpack(body: BytesLike) -> Tuple[Dict[str, Any], Dict[str, memoryview]]:
    """The document and its segments, as views into `body`."""
    document, at = unpack_document(body)
    return document, _segments(document, body, at)


def unpack_untimed(body: BytesLike) -> Tuple[Dict[str, Any], Dict[str, memoryview]]:
    """As unpack(), without the document's times. Nobody may change the document: those that differ in their times alone are read once."""
    if type(body) is not bytes or len(body) > _KNOWN_BYTES_MAX:
        return unpack(body)
    end = _document_end(body)
    text = body[_HEAD_BYTES:end].rstrip()
    at = text.find(_TIMES)  # which no string holds: there, a quote has a backslash before it
    if at >= 0:
        after = text.find(b"}", at) + 1
        if text.count(b"{", at, after) == 1:
            text = text[:at] + text[after:]
    document = _known(text)
    return document, _segments(document, body, end)


def _segments(document: Mapping[str, Any], body: BytesLike, at: int) -> Dict[str, memoryview]:
    found: Dict[str, memoryview] = {}
    declared = document.get("segments")
    if declared:
        view = memoryview(body)
        for item in declared:
            size = int(item["size"])
            if size < 0 or at + size > len(view):
                raise ProtocolError("the batch's answer ends within a segment")
            found[str(item["id"])] = view[at:at + size]
            at += size + -size % _ALIGN
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


_known = lru_cache(maxsize=256)(_document)


def device_us(answer: Mapping[str, Any]) -> float:
    """Device time of a batch's launches, microseconds: those measured by themselves and, where only groups were, those."""
    single = sum(float(op.get("gpu_us") or 0.0) for op in answer.get("ops", ()))
    return single + sum(float(group.get("gpu_us") or 0.0) for group in answer.get("gpu_groups", ()))
