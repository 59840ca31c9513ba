"""Abused batches: truncated at every byte, contradictory, mutated, random against a model, and with clients that stop midway. After each
the session's memory is the same as before."""
import concurrent.futures
import json
import os
import random
import re
import socket
import time

import pytest

from batch_client import TYPE, frame, send, with_data, with_sizes
from batch_model import KERNELS, Model, random_batch
from conftest import VADD
from test_batches import SEGMENTS, SUM, VADD_BATCH, error_of, settles

MIB = 1 << 20
RANDOM_BATCHES = int(os.environ.get("GPUREST_TEST_BATCHES", "1000"))
MUTATIONS = int(os.environ.get("GPUREST_TEST_MUTATIONS", "400"))
SEED = int(os.environ.get("GPUREST_TEST_SEED", "20261122"))

TINY = {"module": "m", "ops": [{"op": "alloc", "as": "$a", "segment": "a"}, {"op": "write", "to": "own", "segment": "b"},
                               {"op": "read", "from": "$a", "segment": "out"}], "keep": []}
TINY_SEGMENTS = {"a": b"abc", "b": bytes(range(70))}


def figures(client, session):
    memory = client.get(session + "/memory").json()
    return {"usage": client.get(session).json()["usage"]["memory_bytes"], "allocated": memory["allocated_bytes"],
            "buffers": len(client.get(session + "/buffers").json()["items"])}


@pytest.fixture
def steady(client, session):
    """The session with module m and a buffer "own"; checks at the end that its memory is unchanged."""
    assert client.put_cuda(session + "/modules/m", VADD).status == 201
    assert client.put(session + "/buffers/own", {"size": 128}).status == 201
    assert send(client, session + "/batches", TINY, TINY_SEGMENTS).status == 200
    settles(client, session, 128)
    before = figures(client, session)
    yield session
    settles(client, session, 128)
    assert figures(client, session) == before


def request_of(session, body_bytes):
    return (f"POST {session}/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: {TYPE}\r\n"
            f"Content-Length: {body_bytes}\r\nConnection: close\r\n\r\n").encode()


def cut(service, session, data, announced):
    """The answer, or b"" for none, when the client sends `data` and no more."""
    with socket.create_connection((service.host, service.port), timeout=30) as s:
        s.sendall(request_of(session, announced) + data)
        if len(data) < announced:
            s.shutdown(socket.SHUT_WR)
        got = b""
        try:
            while piece := s.recv(65536):
                got += piece
        except ConnectionResetError:
            pass
        return got


def test_cut_short_at_every_byte(service, client, steady):
    whole = frame(with_sizes(TINY, TINY_SEGMENTS), TINY_SEGMENTS.values())
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        for at, got in enumerate(threads.map(lambda at: cut(service, steady, whole[:at], len(whole)), range(len(whole)))):
            assert not got or got.startswith(b"HTTP/1.1 4"), (at, got)
        for at, got in enumerate(threads.map(lambda at: cut(service, steady, whole[:at], at), range(len(whole)))):
            assert got.startswith(b"HTTP/1.1 400") and re.search(rb'"code":"(framing|length)_mismatch"', got), (at, got)
    assert client.post(steady + "/batches", whole, Content_Type=TYPE).status == 200


def test_json_cut_short_at_every_byte(client, steady):
    whole = json.dumps(with_data(TINY, TINY_SEGMENTS)).encode()
    for at in range(1, len(whole)):
        answer = client.post(steady + "/batches", whole[:at], Content_Type="application/json")
        assert answer.status == 400 and answer.code == "invalid_json", (at, answer)
    assert client.post(steady + "/batches", whole, Content_Type="application/json").status == 200


def test_a_streamed_one_cut_short(service, client, steady):
    segments = {"a": bytes(MIB + 7), "b": bytes(70), "c": bytes(2 * MIB)}
    message = {"ops": [{"op": "alloc", "as": "$a", "segment": "a"}, {"op": "write", "to": "own", "segment": "b"},
                       {"op": "alloc", "as": "$c", "segment": "c"}]}
    whole = frame(with_sizes(message, segments), segments.values())
    json_end = 16 + int.from_bytes(whole[12:16], "little")
    edges = [0, 1, 15, 16, 17, json_end - 1, json_end, json_end + 1, json_end + MIB + 7, json_end + MIB + 63, json_end + MIB + 64,
             json_end + MIB + 64 + 70, json_end + MIB + 64 + 128, len(whole) - 1]
    for at in edges + random.Random(SEED).sample(range(len(whole)), 20):
        got = cut(service, steady, whole[:at], len(whole))
        assert not got or got.startswith(b"HTTP/1.1 4"), (at, got)
    dirty = bytearray(whole)
    dirty[json_end + MIB + 64 + 70] = 1
    problem = error_of(client.post(steady + "/batches", bytes(dirty), Content_Type=TYPE), 400, "framing_mismatch")
    assert "indeterminate" in problem["detail"]
    assert client.post(steady + "/batches", whole, Content_Type=TYPE).status == 200


def alloc(name, size=8):
    return {"op": "alloc", "as": name, "size": size}


def test_sums_that_overflow(client, steady):
    def post(segments, ops):
        return client.post(steady + "/batches", frame({"segments": segments, "ops": ops}), Content_Type=TYPE)

    most = str(1 << 62)
    for sizes in ([most] * 4, [most] * 5, [most] * 256, [str((1 << 62) - 1)] * 4, [most, most, most, str((1 << 62) - 1024)]):
        names = [f"s{i}" for i in range(len(sizes))]
        answer = post([{"id": name, "size": size} for name, size in zip(names, sizes)],
                      [{"op": "alloc", "as": "$" + name, "segment": name} for name in names])
        assert answer.status == 400 and answer.code == "framing_mismatch", (sizes[:5], answer)
    for size in (str((1 << 62) + 1), str((1 << 64) - 1), str(1 << 64), "-1", -1, 1.5, 1e300):
        answer = post([{"id": "s", "size": size}], [{"op": "alloc", "as": "$s", "segment": "s"}])
        assert answer.status == 400 and answer.json()["errors"][0]["pointer"] == "/segments/0/size", (size, answer)
    for extent in ({"offset": str((1 << 64) - 1)}, {"offset": str((1 << 64) - 1), "size": 2}, {"offset": 1, "size": str((1 << 64) - 1)},
                   {"offset": str(1 << 63), "size": str(1 << 63)}, {"size": 9}):
        for op in ({"op": "read", "from": "$a", "segment": "x"}, {"op": "fill", "to": "$a", "pattern": {"u8": 1}},
                   {"op": "copy", "from": "own", "to": "$a"}):
            answer = send(client, steady + "/batches", {"ops": [alloc("$a"), {**op, **extent}]})
            problem = answer.json()
            pointer = problem["errors"][0]["pointer"] if answer.status == 400 else "/ops/1"
            assert answer.status in (400, 416) and problem.get("op_index", 1) == 1 and pointer.startswith("/ops/1"), (op, extent, answer)


def test_contradictions(client, steady):
    def refused(status, code, pointer, ops, segments=None, **more):
        for within in (False, True):
            answer = send(client, steady + "/batches", {"ops": ops, **more}, segments or {}, within)
            error_of(answer, status, code, pointer)
        settles(client, steady, 128)

    a, read = alloc("$a"), {"op": "read", "from": "$a", "segment": "x"}
    free = {"op": "free", "buf": "$a"}
    one = {"s": b"12345678"}
    refused(400, "invalid_field", "/segments/0", [a], one)
    refused(400, "invalid_field", "/ops/1/segment", [{"op": "alloc", "as": "$a", "segment": "s"}, {"op": "write", "to": "$a", "segment": "s"}], one)
    refused(400, "invalid_field", "/ops/1/segment", [a, {"op": "write", "to": "$a", "segment": "t"}])
    refused(400, "invalid_field", "/ops/2/segment", [a, read, read])
    refused(400, "invalid_field", "/ops/2/from", [a, free, read])
    refused(400, "invalid_field", "/ops/2/buf", [a, free, free])
    refused(400, "invalid_field", "/ops/2/to", [a, free, {"op": "fill", "to": "$a", "pattern": {"u8": 1}}])
    refused(400, "invalid_field", "/ops/2/to", [a, free, {"op": "copy", "from": "own", "to": "$a"}])
    refused(400, "invalid_field", "/ops/2/to", [a, free, {"op": "write", "to": "$a", "segment": "s"}], one)
    refused(400, "invalid_field", "/ops/2/as", [a, free, a])
    refused(404, "buffer_not_found", "/ops/2/args/0",
            [a, free, {"op": "launch", "module": "m", "kernel": "vadd", "grid": [1], "block": [1], "args": [{"buf": "$a"}] * 3 + [{"i32": 0}]}])
    refused(400, "invalid_field", "/keep", [a], keep=["$b"])
    refused(400, "invalid_field", "/keep", [a, free], keep=["$a"])
    refused(400, "invalid_field", "/keep", [a], keep=["own"])
    refused(400, "invalid_field", "/keep", [a], keep=[None])
    wait, record = {"op": "wait", "event": "e"}, {"op": "record", "event": "e"}
    refused(400, "invalid_field", "/ops/1/event", [a, wait, record])
    refused(400, "invalid_field", "/ops/2/event", [a, {**record, "stream": "one"}, {**wait, "event": "f"}, {**record, "event": "f"}])
    refused(400, "invalid_field", "/ops/0/event", [{**wait, "stream": "one"}, {**wait, "stream": "two", "event": "f"}, {**record, "stream": "two"},
                                                   {**record, "event": "f", "stream": "one"}])


def test_mutated_ones_never_break_anything(client, steady):
    rng = random.Random(SEED)
    whole = frame(with_sizes(VADD_BATCH, SEGMENTS), [SEGMENTS["a"][:0] + SEGMENTS["a"], SEGMENTS["b"]])
    json_end = 16 + int.from_bytes(whole[12:16], "little")
    for round_number in range(MUTATIONS):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(json_end if rng.random() < 0.9 else len(data))
            kind = rng.randrange(4)
            if kind == 0:
                data[at] = rng.randrange(256)
            elif kind == 1:
                data[at] ^= 1 << rng.randrange(8)
            elif kind == 2:
                data[at:at + rng.randint(1, 8)] = b""
            else:
                data[at:at] = bytes(rng.choice(b'{}[],:"$0129ea\\ ') for _ in range(rng.randint(1, 8)))
        answer = client.post(steady + "/batches", bytes(data), Content_Type=TYPE)
        assert answer.status == 200 or 400 <= answer.status < 500, (SEED, round_number, answer)
        if answer.status != 200:
            assert answer.code
        if client.get(steady).json()["state"] != "ready":
            pytest.fail(f"round {round_number} of seed {SEED} faulted the session: {answer}")


def test_random_batches_against_a_model(client, session):
    rng = random.Random(SEED)
    assert client.put_cuda(session + "/modules/m", KERNELS).status == 201
    model = Model()
    for name, data in model.own.items():
        assert client.put_octets(f"{session}/buffers/{name}", bytes(data)).status == 201
    size = client.get(session).json()["usage"]["memory_bytes"]
    for number in range(RANDOM_BATCHES):
        batch = random_batch(rng, model)
        answer = send(client, session + "/batches", batch.message, batch.segments, within=rng.random() < 0.3)
        assert answer.status == 200, (SEED, number, answer, batch.message)
        assert answer.segments == batch.expected, (SEED, number, batch.message)
        for name, contents in batch.kept.items():
            path = f"{session}/buffers/{answer.message['kept'][name]}"
            assert client.get(path + "/data").body == contents, (SEED, number)
            assert client.delete(path).status == 204
    for name, data in model.own.items():
        assert client.get(f"{session}/buffers/{name}/data").body == bytes(data), name
    settles(client, session, size)


def test_one_that_stops_sending_is_cut(start):
    service = start("--body-stall-s", "1")
    client = service.client()
    session = "/v1/sessions/one"
    assert client.put(session).status == 201
    assert client.put(session + "/buffers/own", {"size": 8 * MIB}).status == 201
    message = {"ops": [{"op": "write", "to": "own", "segment": "w"}, {"op": "alloc", "as": "$a", "segment": "a"}]}
    segments = {"w": b"\1" * (8 * MIB), "a": bytes(MIB)}
    whole = frame(with_sizes(message, segments), segments.values())
    for at in (10, 3000, 3 * MIB, 8 * MIB + 4096):
        etag = client.head(session + "/buffers/own/data").headers["ETag"]
        begun = time.monotonic()
        with socket.create_connection((service.host, service.port), timeout=30) as s:
            s.sendall(request_of(session, len(whole)) + whole[:at])
            got = s.recv(65536)
        assert got.startswith(b"HTTP/1.1 408") or not got, got
        assert time.monotonic() - begun >= 0.9
        settles(client, session, 8 * MIB)
        # The tag tells whether anything was overwritten, not what.
        assert (client.head(session + "/buffers/own/data").headers["ETag"] != etag) == (at > 1000)
    assert client.post(session + "/batches", whole, Content_Type=TYPE).status == 200
    assert client.get(session + "/buffers/own/data", Range="bytes=0-9").body == b"\1" * 10
    settles(client, session, 8 * MIB)


def test_the_good_ones_go_on_beside_bad_ones(service, client, steady):
    whole = frame(with_sizes(TINY, TINY_SEGMENTS), TINY_SEGMENTS.values())
    held = [socket.create_connection((service.host, service.port), timeout=30) for _ in range(20)]
    for i, s in enumerate(held):
        s.sendall(request_of(steady, len(whole)) + whole[:i * 7])
    for _ in range(20):
        assert send(client, steady + "/batches", VADD_BATCH, SEGMENTS).segments == {"out": SUM}
    for s in held:
        s.close()
