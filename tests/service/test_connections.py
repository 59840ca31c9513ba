"""Limits of connections: silent clients keep nobody out, working clients are not disturbed, and probes are always answered."""
import contextlib
import http.client
import os
import resource
import socket
import ssl
import time

import pytest

from test_start_and_auth import token_file
from test_tls import pki  # noqa: F401 a fixture

PROBES = ("/livez", "/readyz", "/lbz", "/metrics")
LIMIT = 8
RESERVED = 64  # CONNECTIONS_RESERVED
DEADLINE_S = 60

REFUSED = b"GET /v1/devices HTTP/1.1\r\nHost: localhost\r\n\r\n"  # such a connection may be idle for a minute; one without any request, for 10 s

HALF_REQUESTS = {
    "nothing": b"",
    "half a request line": b"GET /v1/dev",
    "half a header": b"GET /v1/devices HTTP/1.1\r\nHost: localhost\r\nX-A",
    "a refused request whose body does not come": b"PUT /v1/sessions/s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
    "a refused request, and then nothing": REFUSED,
    "an open page that is not read": b"GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50,
}


@pytest.fixture
def guarded(start, tmp_path):
    """start(*arguments) with a token for ada."""
    tokens = token_file(tmp_path / "tokens.json", ada=["read", "write", "launch", "metrics"])
    return lambda *arguments, **options: start("--tokens", str(tokens), *arguments, **options)


@pytest.fixture
def sockets():
    with contextlib.ExitStack() as stack:
        def connect(service, data=b""):
            s = stack.enter_context(socket.create_connection((service.host, service.port), timeout=DEADLINE_S))
            if data:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                s.sendall(data)
            return s
        yield connect


def ada(service):
    return service.client(Authorization="Bearer ada-secret")


def assert_probes_answer(service):
    for path in PROBES:
        client = ada(service)
        assert client.get(path).status == 200, path
        client.close()


def is_closed(s):
    """Whether the server has closed it, maybe after an answer."""
    s.setblocking(False)
    try:
        while s.recv(65536):
            pass
        return True
    except ConnectionResetError:
        return True
    except BlockingIOError:
        return False


def count_closed(sockets_, least):
    deadline = time.monotonic() + DEADLINE_S
    while (closed := sum(is_closed(s) for s in sockets_)) < least and time.monotonic() < deadline:
        time.sleep(0.02)
    return closed


@pytest.mark.parametrize("data", HALF_REQUESTS.values(), ids=HALF_REQUESTS.keys())
@pytest.mark.parametrize("setting", ["--connections-per-address", "--connections"])
def test_who_is_silent_makes_room(guarded, sockets, setting, data):
    service = guarded(setting, str(LIMIT))
    silent = [sockets(service, data) for _ in range(3 * LIMIT)]
    assert count_closed(silent, 2 * LIMIT) >= 2 * LIMIT  # so all have been accepted
    for _ in range(2 * LIMIT):
        client = ada(service)
        assert client.get("/v1/devices").status == 200
        client.close()
    assert_probes_answer(service)


def test_as_many_silent_ones_as_one_address_may_have(guarded, sockets):
    service = guarded("--connections-per-address", str(4 * LIMIT))  # few: a loaded machine that takes 10 s to answer them closes them for that
    limits = ada(service).get("/v1/limits").json()["limits"]
    silent = [sockets(service, REFUSED) for _ in range(limits["connections_per_address"]["max"])]
    assert_probes_answer(service)
    assert count_closed(silent, 1) < len(PROBES) + 2


def test_the_longest_silent_goes_first(guarded, sockets):
    service = guarded("--connections-per-address", str(LIMIT), "--threads", "1")  # one thread accepts in the order of arrival
    silent = [sockets(service, REFUSED) for _ in range(LIMIT)]
    for i in range(LIMIT):
        more = sockets(service, REFUSED)
        assert count_closed(silent[:i + 1], i + 1) == i + 1
        assert not any(is_closed(s) for s in [*silent[i + 1:], more])


def test_unfinished_handshakes_make_room(guarded, sockets, pki):  # noqa: F811
    service = guarded("--connections-per-address", str(LIMIT), "--tls-cert", str(pki / "server.pem"), "--tls-key", str(pki / "server.key"))
    trusted = ssl.create_default_context(cafile=str(pki / "ca.pem"))
    half = [sockets(service, data) for _ in range(LIMIT) for data in (b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")]
    assert count_closed(half, LIMIT) >= LIMIT
    for path in PROBES:
        one = http.client.HTTPSConnection("localhost", service.port, context=trusted, timeout=DEADLINE_S)
        one.request("GET", path, headers={"Authorization": "Bearer ada-secret"})
        assert one.getresponse().status == 200, path
        one.close()


def test_silent_ones_do_not_displace_who_works(guarded, sockets):
    service = guarded("--connections-per-address", str(LIMIT))
    workers = [ada(service) for _ in range(LIMIT - 1)]
    for client in workers:
        assert client.get("/v1/limits").status == 200
    kept = [client.connection.sock for client in workers]
    for data in HALF_REQUESTS.values():
        silent = [sockets(service, data) for _ in range(3 * LIMIT)]
        assert count_closed(silent, 3 * LIMIT - 1) >= 3 * LIMIT - 1
    assert_probes_answer(service)
    for client, s in zip(workers, kept):
        assert client.get("/v1/limits").status == 200
        assert client.connection.sock is s, "its connection was closed for one that sends nothing"


def test_idle_ones_that_worked_make_room_when_there_are_no_others(guarded):
    service = guarded("--connections-per-address", str(LIMIT), "--threads", "1")
    idle = [ada(service) for _ in range(LIMIT)]
    for client in idle:
        assert client.get("/v1/limits").status == 200
    idle[0].get("/v1/limits")  # now the second has been silent longest
    more = ada(service)
    assert more.get("/v1/limits").status == 200
    assert count_closed([idle[1].connection.sock], 1) == 1
    assert not any(is_closed(c.connection.sock) for c in [idle[0], *idle[2:]])


@pytest.fixture
def full(guarded):
    """A service with a request in progress on each of its connections, and these requests."""
    service = guarded("--connections-per-address", str(LIMIT))
    streams = []
    for _ in range(LIMIT):
        stream = http.client.HTTPConnection(service.host, service.port, timeout=DEADLINE_S)
        stream.request("GET", "/v1/changes", headers={"Authorization": "Bearer ada-secret"})
        streams.append((stream, stream.getresponse()))
        assert streams[-1][1].status == 200
    yield service, streams
    for stream, _ in streams:
        stream.close()


def test_a_service_at_work_answers_probes_and_nothing_else(full):
    service, streams = full
    for _ in range(3):
        assert_probes_answer(service)
        refused = ada(service).get("/v1/limits")
        assert refused.status == 503 and refused.code == "overloaded" and int(refused.headers["Retry-After"]) >= 1
        assert refused.headers["Connection"] == "close"
        assert service.client().get("/").status == 503, "nor an open page"
    for _, response in streams:
        assert response.readline() == b"retry: 1000\n"


@pytest.mark.parametrize("data", HALF_REQUESTS.values(), ids=HALF_REQUESTS.keys())
def test_silent_ones_do_not_fill_the_reserve(full, sockets, data):
    service, streams = full
    silent = [sockets(service, data) for _ in range(RESERVED + LIMIT)]
    assert count_closed(silent, LIMIT) >= LIMIT
    assert_probes_answer(service)
    assert not any(is_closed(stream.sock) for stream, _ in streams if stream.sock)


def test_a_reserved_connection_is_an_ordinary_one_when_there_is_room(full):
    service, streams = full
    clients = [ada(service) for _ in range(RESERVED - LIMIT)]
    for client in clients:
        assert client.get("/livez").status == 200
    sockets_ = [client.connection.sock for client in clients]
    streams[0][1].close()
    streams[0][0].close()
    for i, client in enumerate(clients):  # until the service has seen the end of the stream; refused clients are closed
        if client.get("/v1/limits").status == 200:
            assert client.connection.sock is sockets_[i]
            return
        time.sleep(i / 25)
    pytest.fail("no reserved connection became an ordinary one")


def test_silent_ones_that_take_all_descriptors_make_room(guarded, sockets):
    service = guarded()
    pid = service.process.pid
    used = len(open_descriptors(pid))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 20, resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]))
    silent = [sockets(service, REFUSED) for _ in range(60)]
    client = ada(service)
    client.timeout = 45  # they would be closed as idle after 60 s
    assert client.get("/v1/limits").status == 200
    assert client.get("/livez").status == 200
    assert count_closed(silent, 1) >= 1


def open_descriptors(pid):
    return os.listdir(f"/proc/{pid}/fd")
