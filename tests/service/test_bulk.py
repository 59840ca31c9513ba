"""Long bodies, which bypass the event loop: bit-exact, in parallel, beside small requests, and with a worker that dies midway."""
import concurrent.futures
import hashlib
import os
import random
import signal
import socket
import struct
import threading
import time

import pytest

MIB = 1 << 20
LONG = 64 * MIB


@pytest.fixture(scope="module")
def octets():
    return random.Random(7).randbytes(LONG)


def make(client, session, name, size):
    assert client.put(f"{session}/buffers/{name}", {"size": size}).status == 201
    return f"{session}/buffers/{name}/data"


def header(method, path, length=None):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if length is not None:
        lines += ["Content-Type: application/octet-stream", f"Content-Length: {length}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.fixture(params=[(), ("--no-offload",), ("--io-threads", "1")], ids=["offload", "inline", "one-thread"])
def own(request, start):
    """A client of its own service, and a session there."""
    service = start(*request.param)
    client = service.client_in("s")
    yield service, client, "/v1/sessions/s"


def test_both_ways_bit_for_bit(own, octets):
    _, client, session = own
    data = make(client, session, "a", LONG)
    for _ in range(2):
        assert client.put_octets(data, octets).status == 204
        connection = client.connection
        assert client.put_octets(data, octets).status == 204
        assert client.connection is connection  # kept alive after a long upload
        answer = client.get(data)
        assert len(answer.headers.get_all("Content-Length")) == 1
        assert answer.status == 200 and hashlib.sha256(answer.body).digest() == hashlib.sha256(octets).digest()
    made = client.put_octets(session + "/buffers/b", octets[:5 * MIB + 3])
    assert made.status == 201 and made.json()["size"] == 5 * MIB + 3
    assert client.get(session + "/buffers/b/data").body == octets[:5 * MIB + 3]


def test_conditions_ranges_and_heads_are_as_for_short_bodies(client, session, octets):
    data = make(client, session, "a", 4 * MIB)
    tag = client.put_octets(data, octets[:4 * MIB]).headers["ETag"]
    assert client.get(data, If_None_Match=tag).status == 304
    head = client.head(data)
    assert head.status == 200 and head.headers["Content-Length"] == str(4 * MIB) and head.body == b""
    part = client.get(data, Range=f"bytes={MIB}-{3 * MIB - 1}")
    assert part.status == 206 and part.body == octets[MIB:3 * MIB]
    assert part.headers["Content-Range"] == f"bytes {MIB}-{3 * MIB - 1}/{4 * MIB}"
    assert part.headers["Content-Length"] == str(2 * MIB)
    assert client.put_octets(data, octets[:4 * MIB], If_Match='"1.1"').code == "precondition_failed"
    assert client.put_octets(data, octets[:3 * MIB]).code == "length_mismatch"


def test_parallel_ranges_make_one_buffer(service, client, session, octets):
    data = make(client, session, "a", LONG)
    part = LONG // 8

    def write(i):
        own = service.client()
        answer = own.put_octets(data, octets[i * part:(i + 1) * part], Content_Range=f"bytes {i * part}-{(i + 1) * part - 1}/{LONG}")
        own.close()
        return answer.status

    def read(i):
        own = service.client()
        body = own.get(data, Range=f"bytes={i * part}-{(i + 1) * part - 1}").body
        own.close()
        return body

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(write, range(8))) == [204] * 8
        assert b"".join(pool.map(read, range(8))) == octets


def test_small_requests_are_answered_during_long_ones(service, client, session, octets):
    """Both long bodies stop in the middle, on purpose, until the small requests are answered."""
    data = make(client, session, "a", LONG)
    assert client.put_octets(data, octets).status == 204
    make(client, session, "b", LONG)
    with socket.create_connection((service.host, service.port), timeout=60) as up, \
            socket.create_connection((service.host, service.port), timeout=60) as down:
        up.sendall(header("PUT", session + "/buffers/b/data", LONG) + octets[:LONG // 2])
        down.sendall(header("GET", data))
        begun = down.recv(65536)
        assert begun.startswith(b"HTTP/1.1 200 ")
        for _ in range(50):
            assert client.get(session + "/buffers/a").status == 200
        up.sendall(octets[LONG // 2:])
        assert up.recv(65536).startswith(b"HTTP/1.1 204 ")
    assert client.get(session + "/buffers/b/data").body == octets


def test_pipelined_behind_long_uploads(service, client, session, octets):
    """A long download announces that it ends its connection; earlier answers come in order."""
    data = make(client, session, "a", 2 * MIB)
    put, small = header("PUT", data, 2 * MIB) + octets[:2 * MIB], header("GET", session + "/buffers/a")
    got, closed = service.raw(put + small + put + header("GET", data))
    assert closed and got.startswith(b"HTTP/1.1 204 ")
    assert got.count(b"HTTP/1.1 204 ") == 2 and got.count(b"HTTP/1.1 200 ") == 2
    assert got.endswith(octets[:2 * MIB]) and got.count(b"Connection: close") == 1


def read_late(s):
    time.sleep(0.5)  # the whole answer is in the sockets, and the service has closed its own
    got = bytearray()
    while piece := s.recv(MIB):
        got += piece
    return got


@pytest.mark.parametrize("behind", [1, 300])
def test_what_is_sent_behind_a_long_download_does_not_destroy_it(service, client, session, octets, behind):
    """The last answer of its connection; some of the requests after it have been read, and some are still in the socket."""
    size = 2 * MIB
    data = make(client, session, "a", size)
    assert client.put_octets(data, octets[:size]).status == 204
    for _ in range(4):
        with socket.create_connection((service.host, service.port)) as s:
            s.sendall(header("GET", data) + header("GET", session + "/buffers/a") * behind)
            head, _, body = bytes(read_late(s)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ") and b"Connection: close" in head
        assert body == octets[:size]


PIECE = 512 * 1024


def drip(s, body, pieces):
    """Sends the last parts of `body` in these sizes, with pauses longer than the server waits for many bytes."""
    at = len(body) - sum(pieces)
    s.sendall(body[:at])
    for size in pieces:
        time.sleep(0.01)
        s.sendall(body[at:at + size])
        at += size


@pytest.mark.parametrize("pieces", [[1] * 50, [1], [PIECE - 1], [PIECE], [PIECE, PIECE - 1], [2 * PIECE, 1, PIECE - 2, 1], [30011] * 40], ids=str)
def test_a_fast_client_that_turns_slow_loses_nothing(service, client, session, octets, pieces):
    """... and the next small request is answered on the same connection."""
    size = 8 * MIB + 17
    data = make(client, session, "a", size)
    with socket.create_connection((service.host, service.port), timeout=60) as s:
        s.sendall(header("PUT", data, size))
        drip(s, octets[:size], pieces)
        assert s.recv(65536).startswith(b"HTTP/1.1 204 ")
        s.sendall(header("GET", session + "/buffers/a"))
        assert s.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert client.get(data).body == octets[:size]


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_a_fast_client_that_leaves_below_what_is_waited_for(start, octets, reset):
    service = start("--io-threads", "1")
    client = service.client_in("s")
    data = make(client, "/v1/sessions/s", "a", LONG)
    for _ in range(3):
        with socket.create_connection((service.host, service.port), timeout=60) as s:
            s.sendall(header("PUT", data, LONG) + octets[:LONG // 2 + 1000])
            if reset:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                s.shutdown(socket.SHUT_WR)
                assert s.recv(65536) == b""
    assert client.put_octets(data, octets).status == 204
    assert client.get(data).body == octets


@pytest.fixture
def mortal(start):
    """A service without warm workers: a worker that appears with a session belongs to it."""
    service = start("--pool-size", "0")
    client = service.client()
    before = service.children()
    assert client.put("/v1/sessions/s").status == 201
    workers = service.children() - before
    assert workers
    yield service, client, "/v1/sessions/s", workers


def kill(workers):
    for pid in workers:
        os.kill(pid, signal.SIGKILL)


def check_lives_on(client, session):
    assert client.get("/livez").status == 200
    assert client.get(session).json()["state"] == "faulted"
    assert client.post(session + "/reset").status == 200
    assert client.put_octets(session + "/buffers/n", b"x" * (2 * MIB)).status == 201
    assert client.get(session + "/buffers/n/data").body == b"x" * (2 * MIB)


def test_worker_killed_in_an_upload(mortal, octets):
    service, client, session, workers = mortal
    data = make(client, session, "a", LONG)
    with socket.create_connection((service.host, service.port), timeout=60) as s:
        s.sendall(header("PUT", data, LONG) + octets[:LONG // 2])
        kill(workers)
        s.sendall(octets[LONG // 2:])
        answer = s.recv(65536)
    assert answer.startswith((b"HTTP/1.1 503 ", b"HTTP/1.1 409 ")), answer[:200]
    check_lives_on(client, session)


def test_worker_killed_in_a_download(mortal, octets):
    service, client, session, workers = mortal
    data = make(client, session, "a", LONG)
    assert client.put_octets(data, octets).status == 204
    with socket.create_connection((service.host, service.port), timeout=60) as s:
        s.sendall(header("GET", data))
        got = len(s.recv(65536))
        kill(workers)
        try:
            while piece := s.recv(1 << 20):
                got += len(piece)
        except ConnectionResetError:
            pass
    assert got < LONG
    check_lives_on(client, session)


def test_session_deleted_in_an_upload_that_stalls(service, client, session, octets):
    """The upload's thread holds staging memory, and must release it before the session can end."""
    data = make(client, session, "a", LONG)
    with socket.create_connection((service.host, service.port), timeout=60) as s:
        s.sendall(header("PUT", data, LONG) + octets[:LONG // 2])
        answers = []
        deleting = threading.Thread(target=lambda: answers.append(client.delete(session).status))
        deleting.start()
        deleting.join(20)
        assert answers == [204]


def test_drain_with_long_bodies_under_way(start, octets):
    service = start("--drain-timeout", "2")
    client = service.client_in("s")
    data = make(client, "/v1/sessions/s", "a", LONG)
    with socket.create_connection((service.host, service.port), timeout=60) as s:
        s.sendall(header("PUT", data, LONG) + octets[:LONG // 2])
        service.terminate()
        assert service.wait() == 0
