"""Clients that are slow, greedy or gone, beside a well-behaved one."""
import hashlib
import http.client
import json
import select
import socket
import time

import workload
from batch_client import frame, with_sizes
from campaign import FULL, Campaign, until
from kernels import fill7
from shim import open_sockets, sanitizer_of


def connect(service):
    s = socket.create_connection((service.host, service.port), timeout=60)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def head(method, path, length, more=""):
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{more}\r\n".encode()


def two_callers(start, tmp_path, *arguments):
    """(service, the good caller's client, the bad caller's Authorization line); each has a session of the workload."""
    rows = [{"name": name, "sha256": hashlib.sha256(name.encode()).hexdigest(), "scopes": ["read", "write", "compile", "launch"]} for name in ("good", "bad")]
    (tmp_path / "tokens").write_text(json.dumps({"tokens": rows}))
    service = start("--tokens", str(tmp_path / "tokens"), *arguments)
    for name in ("bad", "good"):
        client = service.client(Authorization="Bearer " + name)
        workload.prepare(client)
    return service, client, "Authorization: Bearer bad\r\n"


def memory_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))


class Good:
    """Measures the durations of its requests meanwhile."""

    def __init__(self, client):
        self.client, self.times = client, []

    def ask(self):
        began = time.monotonic()
        assert self.client.post(workload.S + "/launches", fill7()).status == 200
        self.times.append(time.monotonic() - began)

    def worst(self):
        return f"{len(self.times)} good requests, the worst {max(self.times) * 1e3:.1f} ms"


def drip(c, client, sockets, seconds):
    """Sends a byte on each from time to time; returns how many the service has ended when the time is over."""
    good, ended, alive, until_s = Good(client), 0, list(sockets), time.monotonic() + seconds
    while alive and time.monotonic() < until_s:
        readable, _, _ = select.select(alive, [], [], 0)
        for s in readable:
            ended += 1
            alive.remove(s)
        for s in alive:
            try:
                s.send(b"a")
            except OSError:
                pass  # the next read sees the end
        good.ask()
        time.sleep(0.1)
    c.note = good.worst()
    return ended


def slow_ones(service, count, beginning):
    sockets = [connect(service) for _ in range(count)]
    for s in sockets:
        s.sendall(beginning)
    return sockets


def test_slow_headers_and_bodies(start, tmp_path):
    service, client, bad = two_callers(start, tmp_path, "--connections", "2000", "--connections-per-address", "2000", "--body-stall-s", "20")
    count, pid = 800 if FULL else 150, service.process.pid
    before, kib = open_sockets(pid), memory_kib(pid)
    with Campaign("slow headers", 12, 0.02) as c:
        sockets = slow_ones(service, count, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ")
        c.fault(count)
        c.recovered(drip(c, client, sockets, 15))
        assert c.survived == count
        for s in sockets:
            s.close()
    with Campaign("slow bodies", 12, 0.02) as c:
        sockets = slow_ones(service, count // 2, head("PUT", workload.S + "/buffers/x/data", 4096, bad))
        sockets += slow_ones(service, count // 2, head("PUT", workload.S + "/buffers/big/data", 2 << 20, bad) + b"a" * 100)
        c.fault(len(sockets))
        c.recovered(drip(c, client, sockets, 20))
        assert c.survived == len(sockets)
        for s in sockets:
            s.close()
    until(lambda: open_sockets(pid) <= before + 1, lambda: (before, open_sockets(pid)))
    # A sanitizer keeps freed memory.
    assert sanitizer_of(service.process.args[0]) or memory_kib(pid) < kib + 64 * 1024, "memory of those who were slow was not given back"


# An answer sent in pieces, one passed to libmicrohttpd whole, and one that fills a socket only in large numbers.
ANSWERS = [workload.S + "/buffers/big/data", "/openapi.json", "/v1/limits"]


def ask_without_end(s, request):
    """Sends until the service reads no more; it stops when it cannot send."""
    s.setblocking(False)
    rest = request
    for _ in range(100_000):
        try:
            rest = rest[s.send(rest):] or request  # it may send a part: the remainder must follow, or the service refuses the mixture
        except (BlockingIOError, ConnectionError):  # the connection ends after a long answer
            return


def test_readers_that_do_not_read(start, tmp_path):
    service, client, bad = two_callers(start, tmp_path, "--body-stall-s", "2")
    count, pid = 60, service.process.pid
    with Campaign("clients that do not read", 8, 0.01) as c:
        before = open_sockets(pid)
        sockets = []
        for i in range(count):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect((service.host, service.port))
            ask_without_end(s, head("GET", ANSWERS[i % len(ANSWERS)], 0, bad))
            sockets.append(s)
        c.fault(count)
        good = Good(client)
        for _ in range(20):
            good.ask()
            time.sleep(0.05)
        # One whose answers all fitted its buffers, because the service was slow to read, is idle: 60 s.
        until(lambda: open_sockets(pid) <= before + 1, lambda: f"{open_sockets(pid) - before} connections still there", seconds=180)
        c.recovered(count)
        c.note = good.worst()
        for s in sockets:
            s.close()


def batch_body():
    message = {"ops": [{"op": "alloc", "as": "$a", "segment": "in"}, {"op": "copy", "from": "$a", "to": "x", "size": 16},
                       {"op": "read", "from": "$a", "segment": "out"}]}
    return frame(with_sizes(message, {"in": b"e" * 64}), [b"e" * 64])


def whole_requests():
    launch = b'{"module":"f","kernel":"fill7","grid":[1],"block":[1],"args":[{"buf":"x"},{"u32":1}]}'
    json_type = "Content-Type: application/json\r\n"
    yield head("PUT", workload.S + "/buffers/x/data", 64) + b"d" * 64
    yield head("POST", workload.S + "/launches", len(launch), json_type) + launch
    yield head("POST", workload.S + "/batches", len(batch_body()), "Content-Type: application/vnd.gpurest.batch\r\n") + batch_body()


def leave(s, abruptly):
    if abruptly:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    s.close()


def test_a_refusal_is_told_though_idle_connections_are_looked_at_before(shimmed):
    """After good requests the service itself ends the stream in order to reach the refused one; this is not taken for the client's end."""
    service, shim = shimmed("--threads", "1")
    good = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    shim.slow_shutdown(0.15)  # longer than between two checks
    for _ in range(10):
        with connect(service) as s:
            s.sendall(good + good + b"GET /livez HTTP/1.1\nHost: localhost\r\n\r\n")
            got = b""
            while piece := s.recv(65536):
                got += piece
        assert got.count(b"HTTP/1.1 200 ") == 2 and got.count(b"HTTP/1.1 400 ") == 1, got
    shim.slow_shutdown(0)


def test_clients_that_leave_at_every_byte(start):
    service = start()
    client = service.client()
    workload.prepare(client)
    client.get("/livez")
    pid = service.process.pid
    before = open_sockets(pid)
    with Campaign("clients that leave at every byte", 4, 0.02) as c:
        for request in whole_requests():
            for length in range(0, len(request) + 1, 1 if FULL else 3):
                s = connect(service)
                s.sendall(request[:length])
                c.fault()
                leave(s, abruptly=c.injected % 2)
                if length % 16 == 0:  # a half-closed connection counts against its caller until the check
                    until(lambda: client.post(workload.S + "/launches", fill7()).status == 200, "the same caller is not served again")
                c.recovered()
            if not FULL and not c.due():
                break
        until(lambda: open_sockets(pid) <= before + 1, lambda: (before, open_sockets(pid)))
        until(lambda: client.get("/v1/limits").json()["limits"]["requests_in_flight"]["used"] == 1, "requests are still counted")
        limits = client.get("/v1/limits").json()["limits"]
        assert limits["sessions"]["used"] == 1
        assert limits["caller_memory_bytes"]["used"] == 4096 * 2 + (2 << 20)
        until(lambda: client.post(workload.S + "/sync", {}).status == 200, "the session does not answer")


def test_a_flood_of_connections(start):
    service = start("--connections", "300", "--connections-per-address", "200")
    client = service.client()
    workload.prepare(client)
    with Campaign("a flood of connections", 2, 0.01) as c:
        while c.due():
            sockets = []
            for _ in range(400):
                s = socket.socket()
                s.setblocking(False)
                s.connect_ex((service.host, service.port))
                sockets.append(s)
            c.fault(len(sockets))
            assert client.post(workload.S + "/launches", fill7()).status == 200, "who is connected is served"
            for s in sockets:
                leave(s, abruptly=c.random.random() < 0.5)
            until(lambda: reachable(service), "no new connection is served")
            c.recovered(len(sockets))


def reachable(service):
    try:
        return service.client().get("/livez").status == 200
    except (http.client.HTTPException, OSError):
        return False
