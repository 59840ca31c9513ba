"""Batches in both forms. Frames are built and parsed here, independently of the service."""
import base64
import json
import struct

MAGIC = b"\x89GPR\r\n\x1a\n"
TYPE = "application/vnd.gpurest.batch"


def padded(data, zero=b"\0"):
    return data + zero * (-len(data) % 64)


def frame(message, segments=()):
    text = json.dumps(message).encode()
    text += b" " * (-(16 + len(text)) % 64)
    return MAGIC + struct.pack("<HHI", 1, 0, len(text)) + text + b"".join(padded(segment) for segment in segments)


def unframe(data):
    """Returns (message, {id: bytes}) and checks every byte of the framing."""
    assert data[:8] == MAGIC
    version, flags, length = struct.unpack("<HHI", data[8:16])
    assert (version, flags, (16 + length) % 64) == (1, 0, 0)
    message = json.loads(data[16:16 + length])
    at, segments = 16 + length, {}
    for segment in message["segments"]:
        size = segment["size"]
        segments[segment["id"]] = data[at:at + size]
        at += size
        assert data[at:at + -size % 64] == b"\0" * (-size % 64)
        at += -size % 64
    assert at == len(data)
    return message, segments


def with_sizes(message, segments):
    return {**message, "segments": [{"id": name, "size": len(data)} for name, data in segments.items()]}


def with_data(message, segments):
    return {**message, "segments": [{"id": name, "data_b64": base64.b64encode(data).decode()} for name, data in segments.items()]}


def send(client, path, message, segments=None, within=False, **headers):
    """Sends the batch; the answer has .message and .segments when it is a success."""
    segments = segments or {}
    if within:
        answer = client.post(path, with_data(message, segments), **headers)
    else:
        answer = client.post(path, frame(with_sizes(message, segments), segments.values()), Content_Type=TYPE, **headers)
    if answer.status == 200 and within:
        assert answer.headers["Content-Type"] == "application/json"
        answer.message = answer.json()
        answer.segments = {item["id"]: base64.b64decode(item["data_b64"]) for item in answer.message["segments"]}
    elif answer.status == 200:
        assert answer.headers["Content-Type"] == TYPE
        answer.message, answer.segments = unframe(answer.body)
    return answer
