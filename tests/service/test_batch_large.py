"""Answers of batches that are too large to be held in memory: streamed from the device, with the bytes as they were when the READ ran."""
import hashlib
import http.client
import json
import pathlib
import socket

import pytest

from batch_client import MAGIC, TYPE, frame, send
from kernels import FAULTS
from service_under_test import STAGING_MIB, until
from test_batches import error_of, settles

MIB = 1 << 20
HELD = 64 * MIB


@pytest.fixture(params=["batches", "run"])
def place(request, client, session):
    return session + "/batches" if request.param == "batches" else "/v1/run"


def filled(name, size, byte):
    return [{"op": "alloc", "as": name, "size": size}, {"op": "fill", "to": name, "pattern": {"u8": byte}}]


def read(name, segment, **more):
    return {"op": "read", "from": name, "segment": segment, **more}


def digest(data):
    return hashlib.sha256(data).hexdigest()


def test_streamed_and_held_parts_in_order(client, place):
    big, odd = HELD + 5, HELD // 2 + 77
    ops = (filled("$a", big, 1) + filled("$b", odd, 2) +
           [{"op": "fill", "to": "$a", "offset": big - 3, "pattern": {"u8": 9}}, read("$b", "held"), read("$a", "streamed"),
            read("$b", "streamed_too"), read("$b", "small", size=3), read("$a", "end", offset=big - 4), read("$a", "none", size=0)])
    answer = send(client, place, {"ops": ops})
    assert answer.status == 200, answer
    sizes = {item["id"]: item["size"] for item in answer.message["segments"]}
    assert sizes == {"held": odd, "streamed": big, "streamed_too": odd, "small": 3, "end": 4, "none": 0}
    json_bytes = int.from_bytes(answer.body[12:16], "little")
    assert int(answer.headers["Content-Length"]) == len(answer.body) == 16 + json_bytes + sum((size + 63) // 64 * 64 for size in sizes.values())
    parts = answer.segments
    assert digest(parts["streamed"]) == digest(b"\1" * (big - 3) + b"\x09" * 3)
    assert digest(parts["held"]) == digest(parts["streamed_too"]) == digest(b"\2" * odd)
    assert (parts["small"], parts["end"], parts["none"]) == (b"\2\2\2", b"\1\x09\x09\x09", b"")


@pytest.mark.parametrize("change", [
    {"op": "fill", "to": "$a", "pattern": {"u8": 8}},
    {"op": "copy", "from": "$z", "to": "$a"},
    {"op": "free", "buf": "$a"},
    {"op": "launch", "module": "f", "kernel": "fill7", "grid": [1], "block": [32], "args": [{"buf": "$a"}, {"u32": 32}]},
], ids=lambda op: op["op"])
def test_what_comes_later_changes_nothing(client, session, change):
    assert client.put_cuda(session + "/modules/f", FAULTS).status == 201
    ops = filled("$a", HELD + 64, 5) + filled("$z", 4096, 6) + [read("$a", "all"), change]
    answer = send(client, session + "/batches", {"ops": ops})
    assert answer.status == 200, answer
    assert digest(answer.segments["all"]) == digest(b"\5" * (HELD + 64))
    settles(client, session, 0)


def test_buffers_of_the_session_and_kept_ones(client, session):
    assert client.put(session + "/buffers/own", {"size": HELD + 1}).status == 201
    ops = ([{"op": "fill", "to": "own", "pattern": {"u8": 3}}, read("own", "own"), {"op": "fill", "to": "own", "pattern": {"u8": 4}}] +
           filled("$k", HELD + 1, 5) + [read("$k", "kept")])
    answer = send(client, session + "/batches", {"ops": ops, "keep": ["$k"]})
    assert answer.status == 200, answer
    assert digest(answer.segments["own"]) == digest(b"\3" * (HELD + 1)) and digest(answer.segments["kept"]) == digest(b"\5" * (HELD + 1))
    assert client.get(session + "/buffers/own/data", Range="bytes=0-1").body == b"\4\4"
    settles(client, session, 2 * (HELD + 1))


def test_a_copy_that_does_not_fit_is_refused(client):
    path = "/v1/sessions/small-memory"
    assert client.put(path, {"memory_limit": 2 * HELD}).status == 201
    ops = filled("$a", HELD + 64, 5) + [read("$a", "all"), {"op": "fill", "to": "$a", "pattern": {"u8": 8}}]
    problem = error_of(send(client, path + "/batches", {"ops": ops}), 403, "quota_exceeded", index=2)
    assert problem["limit"]["name"] == "session_memory_bytes"
    settles(client, path, 0)
    assert digest(send(client, path + "/batches", {"ops": ops[:3]}).segments["all"]) == digest(b"\5" * (HELD + 64))
    settles(client, path, 0)
    assert client.delete(path).status == 204


def test_within_json_and_in_the_background_it_stays_refused(client, session):
    ops = filled("$a", HELD + 64, 5) + [read("$a", "all")]
    problem = error_of(send(client, session + "/batches", {"ops": ops}, within=True), 413, "body_too_large", index=2, completed=0)
    assert problem["limit"]["name"] == "batch_inline_bytes"
    problem = error_of(send(client, session + "/batches", {"ops": ops}, Prefer="wait=60"), 413, "body_too_large", index=2, completed=0)
    assert problem["limit"]["name"] == "batch_answer_bytes"
    settles(client, session, 0)


def resident_bytes(service):
    status = pathlib.Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def begin_answer(service, path, message):
    """A socket with an answer in progress, of which the header and the frame's JSON have been read, and the rest of its length."""
    data = frame({**message, "segments": []})
    s = socket.create_connection((service.host, service.port), timeout=60)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    s.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {TYPE}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    response = http.client.HTTPResponse(s)
    response.begin()
    assert response.status == 200, response.read()
    assert response.read(8) == MAGIC
    head = response.read(8)
    json_bytes = int.from_bytes(head[4:], "little")
    assert json.loads(response.read(json_bytes))["status"] == "succeeded"
    return s, response


@pytest.mark.parametrize("handoff", [True, False], ids=["handed-off", "on-the-loop"])
def test_memory_is_bounded_and_slow_readers_are_cut(start, handoff):
    service = start("--body-stall-s", "2", *([] if handoff else ["--no-offload"]))
    client = service.client()
    session = "/v1/sessions/one"
    assert client.put(session).status == 201
    small = {"ops": filled("$a", 1000, 1) + [read("$a", "x")]}
    assert send(client, session + "/batches", small).status == 200
    before = resident_bytes(service)
    size, count = 96 * MIB, 2
    ops = [op for i in range(count) for op in filled(f"$b{i}", size, i + 1)] + [read(f"$b{i}", f"s{i}") for i in range(count)]
    s, response = begin_answer(service, session + "/batches", {"ops": ops})
    for i in range(count):
        for _ in range(size // MIB):
            assert response.read(MIB) == bytes([i + 1]) * MIB
        grown = resident_bytes(service) - before
        # No answer is held; only the staging memory is shared with the worker.
        assert grown < STAGING_MIB * MIB + 48 * MIB, grown
    assert response.read() == b""
    s.close()
    settles(client, session, 0)
    # A client that stops reading is cut off, and what it held is freed.
    s, response = begin_answer(service, session + "/batches", {"ops": ops})
    assert response.read(MIB) == b"\1" * MIB
    settles(client, session, 0)
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        while response.read(MIB):
            pass
        raise http.client.IncompleteRead(b"")
    s.close()
    # The same holds for a client that goes away.
    s, response = begin_answer(service, session + "/batches", {"ops": ops})
    s.close()
    settles(client, session, 0)
    assert send(client, session + "/batches", small).status == 200


def test_a_session_that_ends_meanwhile_ends_the_answer(start):
    service = start()
    client = service.client()
    for end in (lambda path: client.post(path + "/reset"), client.delete):
        path = "/v1/sessions/one"
        assert client.put(path).status == 201
        s, response = begin_answer(service, path + "/batches", {"ops": filled("$a", 96 * MIB, 1) + [read("$a", "x")]})
        assert end(path).status in (200, 204)
        got = 0
        try:
            while piece := response.read(MIB):
                got += len(piece)
        except (http.client.IncompleteRead, ConnectionResetError):
            pass
        assert got < 256 * MIB
        s.close()
        until(lambda: client.delete(path).status in (204, 404))
