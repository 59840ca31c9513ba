"""The transports against scripted servers: cut, slow, wrong and early answers; retries; the pool. Blocking and asyncio."""
import asyncio
import contextlib
import dataclasses
import json
import os
import shutil
import socket
import ssl
import subprocess
import signal
import threading
import time

import pytest

import gpurest
from fake_server import answer_bytes, fake, problem
from gpurest import errors
from gpurest.aio.transport import AsyncTransport
from gpurest._session import requests
from gpurest._session.handle import is_fault
from gpurest._transport.connection import JOIN_BYTES_MAX, SEND_BYTES, Connection
from gpurest._transport.endpoint import Endpoint, Timeout
from gpurest._transport.transport import Transport
from gpurest._transport.wire import Request, parse_head, whole_answer, with_key

QUICK = Timeout(2.0, 2.0)
VERSION = {"server": "gpurestd", "version": "9"}


class Blocking:
    """Both transports behind one interface."""

    def __init__(self, url, retries=0, token=None, timeout=QUICK):
        self.transport = Transport(Endpoint.parse(url), token, timeout, retries, None)

    def send(self, request, into=None):
        return self.transport.send(request, into)

    def close(self):
        self.transport.close()


class Posting(Blocking):
    """By post() what can go that way: requests with a short body, or none."""

    def send(self, request, into=None):
        if into is None and request.body_bytes <= JOIN_BYTES_MAX:
            return self.transport.post(dataclasses.replace(request, pieces=()), b"".join(request.pieces))
        return super().send(request, into)


class Async(Blocking):
    def __init__(self, url, retries=0, token=None, timeout=QUICK):
        self.loop = asyncio.new_event_loop()
        self.transport = AsyncTransport(Endpoint.parse(url), token, timeout, retries, None)

    def send(self, request, into=None):
        return self.loop.run_until_complete(self.transport.send(request, into))

    def close(self):
        self.loop.run_until_complete(self.transport.close())
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()


@pytest.fixture(params=[Blocking, Posting, Async], ids=["blocking", "posting", "asyncio"])
def open_transport(request):
    made = []

    def make(*args, **more):
        made.append(request.param(*args, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


def serve_once(data):
    def script(peer):
        if peer.request():
            peer.send(data)
    return script


def keep_serving(answer):
    def script(peer):
        while peer.request():
            peer.send(answer)
    return script


def test_an_answer_cut_at_every_byte_is_an_error_that_says_so(open_transport):
    whole = answer_bytes(200, VERSION)
    for cut in range(len(whole)):
        with fake(serve_once(whole[:cut])) as server:
            with pytest.raises(errors.ConnectionError_):
                open_transport(server.url).send(Request("GET", "/version"))
    with fake(serve_once(whole)) as server:
        assert open_transport(server.url).send(Request("GET", "/version")).json() == VERSION


def test_an_answer_that_comes_byte_by_byte(open_transport):
    def script(peer):
        peer.request()
        peer.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"HTTP/1.1 100 Continue\r\n\r\n" + answer_bytes(200, VERSION):
            peer.send(bytes([byte]))
    with fake(script) as server:
        assert open_transport(server.url).send(Request("GET", "/version")).json() == VERSION


@pytest.mark.parametrize("text", [b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
                                  b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", b"x" * (1 << 21) + b"\r\n\r\n"])
def test_what_is_not_http_is_a_protocol_error(open_transport, text):
    with fake(serve_once(text)) as server:
        with pytest.raises(errors.ProtocolError):
            open_transport(server.url).send(Request("GET", "/"))


def test_a_success_that_is_not_json(open_transport):
    with fake(keep_serving(answer_bytes(200, b"<html>"))) as server:
        with pytest.raises(errors.ProtocolError):
            open_transport(server.url).send(Request("GET", "/version")).json()


def test_an_error_that_is_not_a_problem_document(open_transport):
    with fake(keep_serving(answer_bytes(502, b"<html>bad gateway", "text/html"))) as server:
        with pytest.raises(errors.ServerError, match="502.*bad gateway") as caught:
            open_transport(server.url).send(Request("GET", "/version"))
        assert caught.value.status == 502


def test_chunked_answers_and_answers_until_the_end(open_transport):
    body = json.dumps(VERSION).encode()
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(b"%x;x=1\r\n%c\r\n" % (1, c) for c in body) + b"0\r\nX: y\r\n\r\n"
    for data in (chunked, b"HTTP/1.1 200 OK\r\n\r\n" + body, b"HTTP/1.0 200 OK\r\n\r\n" + body):
        with fake(serve_once(data)) as server:
            assert open_transport(server.url).send(Request("GET", "/version")).json() == VERSION
    with fake(serve_once(chunked[:-12])) as server:
        with pytest.raises(errors.ConnectionError_):
            open_transport(server.url).send(Request("GET", "/version"))


def test_a_stalled_server_is_a_timeout_with_its_phase(open_transport):
    def silent(peer):
        peer.request()
        peer.request()
    with fake(silent) as server:
        with pytest.raises(errors.TimeoutError_) as caught:
            open_transport(server.url, timeout=Timeout(1.0, 0.2)).send(Request("GET", "/version"))
        assert caught.value.phase == "idle" and isinstance(caught.value, TimeoutError)
    with fake(serve_once(answer_bytes(200, b"x" * 100)[:-50])) as server:
        with pytest.raises((errors.TimeoutError_, errors.ConnectionError_)):
            open_transport(server.url, timeout=Timeout(1.0, 0.2)).send(Request("GET", "/version"))


def test_a_server_that_takes_nothing_is_a_timeout_with_its_phase(open_transport):
    ended = threading.Event()
    with fake(lambda peer: ended.wait(60)) as server:
        with pytest.raises(errors.TimeoutError_) as caught:
            open_transport(server.url, timeout=Timeout(1.0, 0.2)).send(Request("POST", "/x", {}, (bytes(64 << 20),)))
        ended.set()
    assert caught.value.phase == "idle"


def hangs_after_one(ended):
    """A service that answers one POST, and then nobody."""
    def script(peer):
        if (request := peer.request()) and request[0].startswith("POST"):
            peer.send(answer_bytes(200, VERSION))
        ended.wait(60)
    return script


def test_a_long_request_on_a_used_connection_waits_for_its_answer_and_not_to_be_taken():
    ended = threading.Event()
    with fake(hangs_after_one(ended)) as server:
        client, like = Transport(Endpoint.parse(server.url), None, Timeout(1.0, 0.2), 0, None), Request("POST", "/x", answer_s=50.0)
        client.post(like, b"1")
        with pytest.raises(errors.TimeoutError_, match="took no bytes for 0.2 s"):
            client.post(like, bytes(64 << 20))
        ended.set()
        client.close()


def second_answers(*answers):
    """The first request on each connection is answered as it should be, those after it with these in turn: bytes, and whether the connection ends then."""
    seen, left = [], list(answers)

    def script(peer):
        first = True
        while request := peer.request():
            seen.append(request[2])
            answer, ends = (answer_bytes(200, VERSION), False) if first or not left else left.pop(0)
            first = False
            peer.send(answer)
            if ends:
                return
    return script, seen


def test_what_is_posted_on_a_used_connection_may_be_cut_anywhere():
    whole = answer_bytes(200, VERSION)
    for cut in range(0, len(whole), 3):
        script, seen = second_answers((whole[:cut], True))
        with fake(script) as server:
            client = Transport(Endpoint.parse(server.url), None, QUICK, 2, None)
            like = Request("POST", "/x")
            assert client.post(like, b"1").json() == VERSION
            with pytest.raises(errors.ConnectionError_):
                client.post(like, b"2")
            assert client.post(like, b"3").json() == VERSION
            assert seen == [b"1", b"2", b"3"] and server.connections == 2 and client.requests_sent == 3
            client.close()


@pytest.mark.parametrize("answer,status,connections", [
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200, 1),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + answer_bytes(200, {}), 200, 1), (b"HTTP/1.1 204 No Content\r\nDate: now\r\n\r\n", 204, 1),
    (b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", 204, 2), (answer_bytes(201, {}), 201, 1),
    (answer_bytes(200, {}, Connection="close"), 200, 2), (b"HTTP/1.0 200 OK\r\n\r\n{}", 200, 2), (answer_bytes(200, {}) + b"x}", 200, 2)])
def test_what_is_posted_on_a_used_connection_may_be_answered_in_any_way(answer, status, connections):
    script, seen = second_answers((answer, answer.startswith(b"HTTP/1.0")))
    with fake(script) as server:
        client = Transport(Endpoint.parse(server.url), None, QUICK, 0, None)
        like = Request("POST", "/x")
        client.post(like, b"1")
        got = client.post(like, b"2")
        assert got.status == status and (status == 204 or got.json() == {}) and (status != 204 or not got.body)
        assert client.post(like, b"3").json() == VERSION
        assert seen == [b"1", b"2", b"3"] and server.connections == connections and client.requests_sent == 3
        client.close()


def test_what_is_posted_is_asked_again_with_its_body_and_counts_each_time():
    busy = answer_bytes(503, problem(503, "overloaded", retryable=True), Retry_After=0)
    script, seen = second_answers((busy, False), (busy, False))
    with fake(script) as server:
        client = Transport(Endpoint.parse(server.url), None, QUICK, 2, None)
        told = []
        for body in (b"1", b"2"):
            assert client.post(Request("POST", "/x"), body).json() == VERSION
        client.observers.append(lambda request, response, seconds: told.append((b"".join(request.pieces), response.status)))
        client.post(Request("POST", "/x"), b"3")
        assert seen == [b"1", b"2", b"2", b"2", b"3"] and client.requests_sent == 5 and told == [(b"3", 200)] and server.connections == 1
        client.close()
    with pytest.raises(errors.ClosedError):
        client.post(Request("POST", "/x"), b"4")


def test_what_is_posted_while_nobody_listens_for_a_moment_is_sent_later(monkeypatch):
    with fake(keep_serving(answer_bytes(200, VERSION))) as server:
        client = Transport(Endpoint.parse(server.url), None, QUICK, 2, None)
        client.post(Request("POST", "/x"), b"1")
        client._free[-1].used_at -= 3600  # for so long that it is not used again
        opened, refusals = client._open, [errors.ConnectionError_("refused", retryable=True)] * 2
        monkeypatch.setattr(client, "_open", lambda: opened() if not refusals else (_ for _ in ()).throw(refusals.pop()))
        assert client.post(Request("POST", "/x"), b"2").json() == VERSION and not refusals and server.connections == 2
        client.close()


@contextlib.contextmanager
def alarms(handler):
    """Timers that end what waits, by that handler."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("every_s", [0.05, 0.02])
def test_a_time_out_comes_while_signals_do(every_s):
    """A program with a timer: each signal ends a call of the system, which is made again."""
    ended = threading.Event()
    with alarms(lambda *_: None), fake(hangs_after_one(ended)) as server:
        signal.setitimer(signal.ITIMER_REAL, every_s, every_s)
        client, like = Transport(Endpoint.parse(server.url), None, Timeout(60.0, 0.5), 0, None), Request("POST", "/x")
        client.post(like, b"1")
        with pytest.raises(errors.TimeoutError_):
            client.post(like, b"2")
        ended.set()
        client.close()


@pytest.mark.parametrize("name", [None, "socket"])
@pytest.mark.parametrize("timeout", [Timeout(60.0, 60.0), Timeout(60.0, None), Timeout(None, 60.0), Timeout(None, None)])
def test_what_is_posted_may_be_answered_at_once_or_later(tmp_path, name, timeout):
    """Among requests of other kinds, for which the connection waits for another time."""
    def script(peer):
        while request := peer.request():
            time.sleep(0.05 if request[2].endswith(b"2") else 0)
            peer.send(answer_bytes(200, {"got": len(request[2])}))

    with fake(script, name and tmp_path / name) as server:
        client, like = Transport(Endpoint.parse(server.url), None, timeout, 0, None), Request("POST", "/x", answer_s=9.0)
        for body in (b"1", b"2", b"1", bytes(JOIN_BYTES_MAX - 1) + b"1", b"12", b"1"):
            assert client.post(like, body).json() == {"got": len(body)}
            assert client.send(Request("PUT", "/y", {}, (bytes(3 << 20),))).json() == {"got": 3 << 20}
            assert client.send(Request("GET", "/z")).json() == {"got": 0}
        assert server.connections == 1
        client.close()


def test_sockets_that_are_not_python_s_own_wait_as_they_do():
    """Such as gevent's: what waits in a call of the system stops all of its threads."""
    class Green:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

    with fake(lambda peer: peer.request() and peer.send(answer_bytes(200, VERSION))) as server:
        endpoint = Endpoint.parse(server.url)
        with endpoint.open(60.0, None) as sock:
            assert Connection(Green(sock), endpoint, None, 60.0).post(Request("POST", "/x"), b"1").json() == VERSION
            assert not os.get_blocking(sock.fileno())


def test_an_interrupt_ends_the_wait_for_an_answer():
    def interrupt(*_):
        raise KeyboardInterrupt

    ended = threading.Event()
    with alarms(interrupt), fake(hangs_after_one(ended)) as server:
        client, like = Transport(Endpoint.parse(server.url), None, Timeout(60.0, 600.0), 2, None), Request("POST", "/x")
        client.post(like, b"1")
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            client.post(like, b"2")
        ended.set()
        client.close()


HEADS = [b"HTTP/1.1 200 OK\r\nDate: Sun\r\nX-Request-Id: a\r\nContent-Length: 2\r\n\r\n", b"HTTP/1.1 200 OK\r\nDate: Monday\r\nX-Request-Id: b\r\nContent-Length: 10\r\n\r\n",
         b"HTTP/1.1 200 OK\r\nDate: Sun\r\nX-Request-Id: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\n",
         b"HTTP/1.1 200 OK\r\nDate: Sun\r\nConnection: close\r\nX-Request-Id: a\r\nContent-Length: 2\r\n\r\n",
         b"HTTP/1.1 200 OK\r\nDate: Sun\r\nX-Request-Id: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n",
         b"HTTP/1.1 200 OK\r\nDate: Sun\r\nX-Request-Id: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n",
         b"HTTP/1.1 200 OK\r\nDate: Sun\r\nX-Request-Id: a\r\ncontent-length: 2\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nDate: Sun\r\n\r\n",
         b"HTTP/1.1 200 OK\r\nDate: Sun\r\nX-Request-Id: a\r\nContent-Length: 02\r\n\r\n", b"HTTP/1.1 200 OK\r\nDate: Sun\r\nX-Request-Id: a\r\nContent-Length: 3\r\n\r\n",
         b"HTTP/1.1 200 OK\r\nDate: Sun\r\nX-Request-Id: a\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", b"HTTP/1.1 202 Accepted\r\nDate: Sun\r\nX-Request-Id: a\r\nContent-Length: 2\r\n\r\n",
         b"HTTP/1.1 204 No Content\r\nDate: Sun\r\nX-Request-Id: a\r\n\r\n", b"HTTP/1.1 503 Busy\r\nDate: Sun\r\nX-Request-Id: a\r\nContent-Length: 2\r\n\r\n",
         b"HTTP/1.1 200 OK\r\nDate: Sun\r\n folded: Content-Length: 2\r\nX-Request-Id: a\r\nContent-Length: 2\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"]


@pytest.mark.parametrize("first", range(len(HEADS)))
def test_an_answer_is_read_the_same_whatever_was_answered_before(first):
    """Also when it comes cut anywhere, or with more behind it."""
    like = Request("POST", "/x")
    like.start = (None, None, b"")  # something was posted
    for head in [HEADS[first], HEADS[first], *HEADS, HEADS[first], *reversed(HEADS)]:
        for body in (b"", b"12", b"1234567890", b"\r\n\r\nContent-Length: 9\r\n\r\n"):
            raw = head + body
            for piece in (raw, raw[:-1], raw[:len(head) // 2]):
                alone, told = whole_answer(piece), whole_answer(piece, like)
                assert (alone is None) == (told is None), piece
                if told is not None:
                    assert (told.status, told.body, dict(told.headers)) == (alone.status, alone.body, dict(alone.headers))


def test_an_interrupt_ends_the_connection_whose_answer_was_not_read(monkeypatch):
    with fake(keep_serving(answer_bytes(200, VERSION))) as server:
        client = Transport(Endpoint.parse(server.url), None, QUICK, 2, None)
        client.post(Request("POST", "/x"), b"1")
        with monkeypatch.context() as patched:
            patched.setattr("gpurest._transport.connection.whole_answer", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
            with pytest.raises(KeyboardInterrupt):
                client.post(Request("POST", "/x"), b"2")
        assert client.post(Request("POST", "/x"), b"3").json() == VERSION and server.connections == 2
        client.close()


def test_nobody_listens(open_transport):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(errors.ConnectionError_, match="cannot connect") as caught:
        open_transport(url).send(Request("GET", "/version"))
    assert caught.value.retryable and isinstance(caught.value, ConnectionError)


def test_connections_are_used_again(open_transport):
    with fake(keep_serving(answer_bytes(200, VERSION))) as server:
        transport = open_transport(server.url)
        for _ in range(5):
            transport.send(Request("GET", "/version"))
        assert server.connections == 1


def test_a_connection_that_the_server_closed_meanwhile_is_not_used(open_transport):
    with fake(serve_once(answer_bytes(200, VERSION))) as server:
        transport = open_transport(server.url)
        for _ in range(3):
            transport.send(Request("POST", "/v1/sessions"))
            for thread in server.threads:
                thread.join(60)
        assert server.connections == 3


def test_connection_close_is_obeyed(open_transport):
    with fake(keep_serving(answer_bytes(200, VERSION, Connection="close"))) as server:
        transport = open_transport(server.url)
        transport.send(Request("GET", "/version"))
        transport.send(Request("GET", "/version"))
        assert server.connections == 2


def failing_first(first, then):
    seen = []

    def script(peer):
        while True:
            request = peer.request()
            if request is None:
                return
            seen.append(request[0])
            peer.send(first if len(seen) == 1 else then)
            if not first and len(seen) == 1:
                return
    return script, seen


@pytest.mark.parametrize("status,code", [(503, "overloaded"), (421, "wrong_node")])
def test_a_busy_service_is_asked_again(open_transport, status, code):
    busy = answer_bytes(status, problem(status, code, retryable=True), Retry_After=0)
    script, seen = failing_first(busy, answer_bytes(200, VERSION))
    with fake(script) as server:
        assert open_transport(server.url, retries=1).send(Request("POST", "/v1/sessions")).json() == VERSION
        assert len(seen) == 2
    script, seen = failing_first(busy, busy)
    with fake(script) as server:
        with pytest.raises(errors.BusyError) as caught:
            open_transport(server.url, retries=1).send(Request("POST", "/v1/sessions"))
        assert len(seen) == 2 and caught.value.code == code


@pytest.mark.parametrize("status,code", [(422, "kernel_fault"), (503, "worker_lost"), (404, "not_found"), (409, "session_faulted")])
def test_what_cannot_succeed_is_not_tried_again(open_transport, status, code):
    script, seen = failing_first(answer_bytes(status, problem(status, code)), answer_bytes(200, VERSION))
    with fake(script) as server:
        with pytest.raises(errors.GpurestError):
            open_transport(server.url, retries=2).send(Request("POST", "/v1/sessions"))
        assert len(seen) == 1


@pytest.mark.parametrize("code", ["device_lost", "device_reset", "device_overheated"])
def test_a_session_is_lost_with_its_device(code):
    error = errors.from_problem({"status": 503, "code": code, "detail": "device cuda:1 is gone"})
    assert isinstance(error, errors.SessionLostError) and error.code == code and not error.retryable and is_fault(error)


@pytest.mark.parametrize("method,headers,repeated", [("GET", {}, True), ("PUT", {}, True), ("DELETE", {}, True), ("POST", {}, False),
                                                     ("POST", {"Idempotency-Key": '"k"'}, True)])
def test_only_what_may_be_sent_twice_is(open_transport, method, headers, repeated):
    script, seen = failing_first(b"", answer_bytes(200, VERSION))
    with fake(script) as server:
        transport = open_transport(server.url, retries=1)
        if repeated:
            assert transport.send(Request(method, "/x", headers)).json() == VERSION
        else:
            with pytest.raises(errors.ConnectionError_):
                transport.send(Request(method, "/x", headers))
        assert len(seen) == (2 if repeated else 1)


@pytest.mark.parametrize("kind", [Transport, AsyncTransport])
def test_keys_make_posts_repeatable(kind):
    seen = []

    def script(peer):
        while request := peer.request():
            seen.append(request[1].get("idempotency-key"))
            if len(seen) == 1:
                return
            if len(seen) == 2:
                peer.answer(409, problem(409, "idempotency_in_progress", retry_after_ms=1))
            else:
                peer.answer(200, VERSION)

    with fake(script) as server:
        transport = kind(Endpoint.parse(server.url), None, QUICK, 2, None, True)

        def send(method):
            answer = transport.send(Request(method, "/x"))
            return asyncio.run(_and_close(transport, answer)) if kind is AsyncTransport else answer

        assert send("POST").json() == VERSION
        assert len(seen) == 3 and len(set(seen)) == 1 and seen[0].startswith('"')
        if kind is Transport:
            send("POST")
            send("GET")
            transport.close()
            assert seen[3] not in (None, seen[0]) and seen[4] is None


def test_launches_of_a_session_begin_alike_unless_one_has_a_key(open_transport):
    seen = []

    def script(peer):
        while request := peer.request():
            seen.append(request)
            peer.answer(200, {"id": "l_1", "state": "succeeded", "stdout": ""})

    with fake(script) as server:
        transport = open_transport(server.url)
        calls = [requests.launch("s_1", '{"n":1}', None), requests.launch("s_1", '{"n":22}', None), requests.launch("s_1", "{}", 0), requests.launch("s_2", "{}", None)]
        for call in calls:
            transport.send(call.request)
        transport.send(with_key(calls[0].request, True))
        for token in ("one", "other"):
            open_transport(server.url, token=token).send(calls[0].request)
    assert [headers.get("authorization") for _, headers, *_ in seen[-3:]] == [None, "Bearer one", "Bearer other"]
    heads = [(line, headers.get("prefer"), int(headers["content-length"]), "idempotency-key" in headers) for line, headers, *_ in seen[:5]]
    first, second = (f"POST /v1/sessions/{name}/launches HTTP/1.1" for name in ("s_1", "s_2"))
    assert heads == [(first, None, 7, False), (first, None, 8, False), (first, "respond-async", 2, False), (second, None, 2, False), (first, None, 7, True)]


async def _and_close(transport, answer):
    try:
        return await answer
    finally:
        await transport.close()


def test_an_answer_before_the_whole_body_was_taken(open_transport):
    """The service refuses after the headers and closes: the caller sees the refusal."""
    def script(peer):
        while b"\r\n\r\n" not in peer.rest:
            peer.rest += peer.sock.recv(1000)
        peer.answer(413, problem(413, "body_too_large", limit={"name": "buffer_bytes", "max": 5}), Connection="close")
        while peer.sock.recv(1 << 20):
            pass
    with fake(script) as server:
        with pytest.raises(errors.ResourceExhausted) as caught:
            open_transport(server.url).send(Request("PUT", "/x", {}, (bytes(40 * SEND_BYTES),)))
        assert caught.value.limit["max"] == 5


def test_bulk_bytes_go_straight_into_the_callers_memory(open_transport):
    data = bytes(range(256)) * 5000
    with fake(keep_serving(answer_bytes(200, data, "application/octet-stream"))) as server:
        transport = open_transport(server.url)
        into = bytearray(len(data))
        transport.send(Request("GET", "/x"), memoryview(into))
        assert into == data
        with pytest.raises(errors.ProtocolError, match="were asked for"):
            transport.send(Request("GET", "/x"), memoryview(bytearray(len(data) - 1)))


def test_the_request_as_it_goes_out(open_transport):
    seen = []

    def script(peer):
        seen.append(peer.request())
        peer.answer(200, VERSION)
    with fake(script) as server:
        transport = open_transport(server.url + "/base/", token="secret")
        transport.send(Request("POST", "/v1/x", {"X-A": "b"}, (b"abc", memoryview(b"def"))))
    line, headers, body = seen[0]
    assert line == "POST /base/v1/x HTTP/1.1" and body == b"abcdef"
    assert headers["authorization"] == "Bearer secret" and headers["content-length"] == "6" and headers["x-a"] == "b"
    assert headers["host"].startswith("127.0.0.1:")


@pytest.mark.parametrize("request_", [Request("GET", "/a b"), Request("GET", "/x\r\nX: y"), Request("GET", "/x", {"X": "a\r\nY: b"})])
def test_nothing_slips_into_the_head(open_transport, request_):
    with fake(keep_serving(answer_bytes(200, VERSION))) as server:
        with pytest.raises(ValueError):
            open_transport(server.url).send(request_)


def test_use_after_close(open_transport):
    with fake(keep_serving(answer_bytes(200, VERSION))) as server:
        transport = open_transport(server.url)
        transport.send(Request("GET", "/version"))
        inner = transport.transport
        if isinstance(inner, Transport):
            inner.close()
        else:
            transport.loop.run_until_complete(inner.close())
        with pytest.raises(errors.ClosedError):
            transport.send(Request("GET", "/version"))


@pytest.mark.parametrize("url", ["ftp://x", "http://", "unix://relative", "http://user:pw@h", "http://h:99999999", "http://h:x"])
def test_addresses_that_are_none(url):
    with pytest.raises(errors.ArgumentError):
        Endpoint.parse(url)


def test_addresses(monkeypatch):
    monkeypatch.delenv("GPUREST_URL", raising=False)
    assert Endpoint.parse(None).port == 8080
    assert Endpoint.parse("unix:///a/b").path == "/a/b"
    assert Endpoint.parse("localhost:9").host_header == "localhost:9"
    assert Endpoint.parse("http://[::1]:9/p/").host_header == "[::1]:9" and Endpoint.parse("https://h").host_header == "h"
    monkeypatch.setenv("GPUREST_URL", "http://elsewhere:1")
    assert gpurest.connect().url == "http://elsewhere:1"


def test_tokens(monkeypatch, tmp_path):
    from gpurest._transport.endpoint import token_of
    for name in ("GPUREST_TOKEN", "GPUREST_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert token_of(None) is None and token_of("t") == "t"
    (tmp_path / "token").write_text("from-file\n")
    monkeypatch.setenv("GPUREST_TOKEN_FILE", str(tmp_path / "token"))
    assert token_of(None) == "from-file"
    monkeypatch.setenv("GPUREST_TOKEN", "from-env")
    assert token_of(None) == "from-env"
    with pytest.raises(errors.ArgumentError):
        token_of("two words")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "cert", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], cwd=folder, check=True, capture_output=True)
    return folder


def test_https(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert", certificate / "key")
    data = bytes(range(256)) * 20_000

    def script(peer):
        peer.sock = context.wrap_socket(peer.sock, server_side=True)
        while request := peer.request():
            peer.answer(200, request[2] or data, "application/octet-stream")

    with fake(script) as server:
        url = server.url.replace("http", "https")
        known = Transport(Endpoint.parse(url), None, Timeout(60, 60), 0, str(certificate / "cert"))  # megabytes, encrypted twice on one machine
        into = bytearray(len(data))
        assert bytes(known.send(Request("PUT", "/x", {}, (data,))).body) == data
        known.send(Request("GET", "/x"), memoryview(into))
        assert into == data
        known.close()
        unknown = Transport(Endpoint.parse(url), None, QUICK, 0, None)
        with pytest.raises(errors.ConnectionError_, match="certificate"):
            unknown.send(Request("GET", "/x"))


def test_a_refusal_by_https_before_the_whole_body_was_taken(certificate):
    """It is here already when the client stops sending, and nothing comes after it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert", certificate / "key")

    def script(peer):
        peer.sock = context.wrap_socket(peer.sock, server_side=True)
        while b"\r\n\r\n" not in peer.rest:
            peer.rest += peer.sock.recv(1000)
        peer.answer(413, problem(413, "body_too_large"))
        while peer.sock.recv(1 << 20):
            pass

    with fake(script) as server:
        client = Transport(Endpoint.parse(server.url.replace("http", "https")), None, Timeout(60, 60), 0, str(certificate / "cert"))
        with pytest.raises(errors.ResourceExhausted):
            client.send(Request("PUT", "/x", {}, (bytes(40 * SEND_BYTES),)))
        client.close()


def test_events_go_on_after_a_broken_connection():
    """Against a scripted server: the last id is sent, incomplete events are dropped, comments are heartbeats."""
    seen = []

    def script(peer):
        while True:
            request = peer.request()
            if request is None:
                return
            line, headers, _ = request
            if line.startswith("PUT"):
                peer.answer(201, {"id": "s", "device": "cpu:0", "generation": 1})
                continue
            if line.startswith("DELETE"):
                peer.send(b"HTTP/1.1 204 X\r\n\r\n")
                continue
            seen.append((line, headers.get("last-event-id"), headers["accept"]))
            stream = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\n"
            if len(seen) == 1:
                peer.send(stream + b'id: 1\nevent: launch.finished\ndata: {"a":\ndata: 1}\n\nid: 2\nevent: cut\ndata: 5')
            else:
                peer.send(stream + "id: 2\r\nevent: kernel.printf\r\ndata: ü\r\n\r\n".encode())
            return
    with fake(script) as server, gpurest.connect(server.url) as gpu, gpu.session("s") as session:
        events = session.events(["launch.finished", "kernel.printf"], timeout=60)
        one, two = next(events), next(events)
        events.close()
    assert (one.id, one.type, one.data) == ("1", "launch.finished", {"a": 1})
    assert (two.id, two.type, two.data) == ("2", "kernel.printf", "ü")
    assert [last for _, last, _ in seen] == [None, "1"] and seen[0][2] == "text/event-stream"
    assert "timeout_seconds=" in seen[0][0] and "types=launch.finished,kernel.printf" in seen[0][0]


def test_headers_are_there_when_asked_for_whoever_wrote_them():
    plain = parse_head(b"HTTP/1.1 200 OK\r\nDate: today\r\ncontent-LENGTH: 12\r\nETag:  \"a:b\" ", "GET")
    assert (plain.status, plain.length, plain.chunked, plain.keep_alive) == (200, 12, False, True)
    assert dict(plain.headers) == {"date": "today", "content-length": "12", "etag": '"a:b"'} and len(plain.headers) == 3 and plain.headers.get("x") is None
    for more, length, chunked, keep in ((b"Content-Length:5", 5, False, True), (b"Content-Length: 5\r\nConnection: close", 5, False, False),
                                        (b"Content-Length: 5\r\nTransfer-Encoding: chunked", None, True, True), (b"X: y", None, False, False)):
        head = parse_head(b"HTTP/1.1 200 OK\r\n" + more, "GET")
        assert (head.length, head.chunked, head.keep_alive) == (length, chunked, keep), more
    assert parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: 5", "HEAD").length == 0
    with pytest.raises(errors.ProtocolError):
        parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: five", "GET")
    broken = parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nno colon", "GET")
    with pytest.raises(errors.ProtocolError):
        broken.headers["date"]
