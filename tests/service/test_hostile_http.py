"""Raw sockets: framing tricks, foreign hosts and origins, bodies refused before they are read."""
import socket

import pytest

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"


def status_of(answer):
    assert answer.startswith(b"HTTP/1.1 "), answer[:200]
    return int(answer.split()[1])


@pytest.mark.parametrize("head,status", [
    (b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400),
    (b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n", 400),
    (b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0, 44\r\n\r\n", 400),
    (b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: +0\r\n\r\n", 400),
    (b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0x0\r\n\r\n", 400),
    (b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
    (b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    (b"POST /v1/sessions HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"GET /livez HTTP/1.1\r\n\r\n", 400),
    (b"GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n", 400),
    (b"GET /livez HTTP/1.1\r\nHost : localhost\r\n\r\n", 400),
])
def test_framing_tricks_are_refused_and_the_connection_ends(service, head, status):
    answer, closed = service.raw(head + SMUGGLED)
    assert status_of(answer) == status and closed
    assert b"smuggled" not in answer and b"not_found" not in answer, "the second request must not be answered"


def test_unknown_hosts(service):
    for host in (b"evil.example", b"localhost.evil.example", b"127.0.0.1.evil.example:80"):
        answer, _ = service.raw(b"GET /version HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
        assert status_of(answer) == 421 and b"misdirected_request" in answer


@pytest.mark.parametrize("host", [b"127.0.0.1:8080.evil.com", b"localhost:80@evil.com", b"localhost:", b"localhost:0", b"localhost:65536", b"localhost:080808",
                                  b"localhost:+80", b"localhost:8 0", b"[::1]:x", b"[::1]evil.com", b"[::1].evil.com", b"[::1", b"[localhost]", b"[127.0.0.1]", b"user@localhost",
                                  b"localhost/x", b"localhost,evil.com:80:80", b"::1", b"localhost\"", b"http://localhost"])
def test_hosts_that_are_none(service, host):
    answer, _ = service.raw(b"GET /version HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
    assert status_of(answer) == 400 and b"invalid_header" in answer


@pytest.mark.parametrize("host", [b"localhost.", b"127.0.0.1.", b"127.1", b"2130706433", b"0", b"localhost,evil.com", b"%6cocalhost", b"[::]", b""])
def test_hosts_that_look_like_ours(service, host):
    answer, _ = service.raw(b"GET /version HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
    assert status_of(answer) == 421 and b"misdirected_request" in answer


@pytest.mark.parametrize("host", [b"localhost", b"LocalHost:1", b"127.0.0.1:65535", b"[::1]", b"[::1]:8080"])
def test_hosts_that_are_ours(service, host):
    answer, _ = service.raw(b"GET /version HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
    assert status_of(answer) == 200


@pytest.mark.parametrize("target,host,status", [
    (b"http://localhost/livez", b"localhost", 200), (b"HTTP://127.0.0.1:80/livez", b"localhost", 200), (b"http://localhost/livez?", b"localhost", 200),
    (b"http://localhost", b"localhost", 200), (b"http://localhost/nowhere", b"localhost", 404),
    (b"http://localhost/livez", b"evil.com", 200), (b"http://evil.com/livez", b"localhost", 421), (b"http://evil.com:80/livez", b"evil.com", 421),
    (b"http://127.0.0.1:8080.evil.com/livez", b"localhost", 400), (b"http://user@localhost/livez", b"localhost", 400), (b"http:///livez", b"localhost", 400),
    (b"http://localhost:x/livez", b"localhost", 400), (b"https://localhost/livez", b"localhost", 400), (b"ftp://localhost/livez", b"localhost", 400),
    (b"//localhost/livez", b"localhost", 404), (b"localhost:80", b"localhost", 400), (b"*", b"localhost", 400),
])
def test_targets_in_absolute_form(service, target, host, status):
    """RFC 9112, section 3.2.2: their host overrides Host."""
    answer, _ = service.raw(b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
    assert status_of(answer) == status


def test_the_origin_is_compared_with_the_host_that_wins(service):
    request = b"GET http://localhost:7/version HTTP/1.1\r\nHost: evil.com\r\nOrigin: http://%s\r\nConnection: close\r\n\r\n"
    assert status_of(service.raw(request % b"localhost:7")[0]) == 200
    assert status_of(service.raw(request % b"evil.com")[0]) == 403


def test_further_hosts_are_a_setting(start):
    service = start("--host", "gpu.example")
    good, _ = service.raw(b"GET /version HTTP/1.1\r\nHost: gpu.example\r\nConnection: close\r\n\r\n")
    assert status_of(good) == 200


def test_origins(service, client, start):
    assert client.get("/version", Origin="https://evil.example").code == "origin_not_allowed"
    allowed = start("--origin", "https://good.example").client()
    assert allowed.get("/version", Origin="https://good.example").status == 200
    assert allowed.get("/version", Origin="https://evil.example").status == 403


@pytest.mark.parametrize("target", [b"/v1/sessions/%2e%2e", b"/v1/sessions/a%2fb", b"/v1/sessions/a%00b", b"/v1/sessions/a b", b"/v1/sessions/..\\x"])
def test_targets_with_tricks(service, target):
    answer, _ = service.raw(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert answer == b"" or status_of(answer) in (400, 404), "closed, or refused"


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PROPFIND"])
def test_foreign_methods(service, method):
    answer, _ = service.raw(f"{method} /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert status_of(answer) in (400, 405, 501)


def test_long_targets_and_headers(client):
    assert client.get("/v1/sessions/" + "a" * 10000).status in (404, 414)
    assert client.get("/livez", X_Long="a" * 100000).status == 431


def refused_before_the_body(service, head):
    """The final answer to a head with Expect: 100-continue; no 100 may come first."""
    with socket.create_connection((service.host, service.port), timeout=20) as s:
        s.sendall(head + b"Expect: 100-continue\r\n\r\n")
        return s.recv(65536)


@pytest.mark.parametrize("path,media_type,length,status", [
    ("/v1/sessions", "application/json", 10 << 20, 413), ("/v1/sessions", "text/plain", 10, 415), ("/nowhere", "application/json", 10, 404),
])
def test_refused_from_the_head(service, path, media_type, length, status):
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n".encode()
    assert status_of(refused_before_the_body(service, head)) == status


def test_uploads_refused_from_the_head(service, client, session):
    client.put(session + "/buffers/a", {"size": 10})
    head = "PUT {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n{}"
    for path, length, more, status in ((session + "/buffers/a/data", 11, "", 413), (session + "/buffers/a/data", 9, "", 400),
                                       (session + "/buffers/none/data", 10, "", 404), (session + "/buffers/a/data", 10, 'If-Match: "x"\r\n', 412),
                                       (session + "/buffers/a/data", 3, "Content-Range: bytes 9-11/10\r\n", 416),
                                       (session + "/buffers/new", 1 << 50, "", 507), ("/v1/sessions/none/buffers/a", 5, "", 404)):
        got = status_of(refused_before_the_body(service, head.format(path, length, more).encode()))
        assert got == status or (status == 507 and got == 403), (path, length, more)


def test_an_accepted_upload_gets_its_100(service, client, session):
    client.put(session + "/buffers/a", {"size": 4})
    with socket.create_connection((service.host, service.port), timeout=20) as s:
        s.sendall(f"PUT {session}/buffers/a/data HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: 4\r\n"
                  f"Expect: 100-continue\r\n\r\n".encode())
        assert s.recv(65536).startswith(b"HTTP/1.1 100 ")
        s.sendall(b"abcd")
        assert status_of(s.recv(65536)) == 204


def test_too_large_without_asking(client, session):
    answer = client.post("/v1/sessions", b" " * (1024 * 1024 + 1), Content_Type="application/json")
    assert answer.status == 413 and answer.code == "body_too_large"
    assert answer.json()["limit"]["max"] == 1024 * 1024
    assert client.get(session).status == 200


def test_keep_alive_survives_refusals(client):
    client.get("/livez")
    first = client.connection
    assert client.get("/nowhere").status == 404
    assert client.get("/livez").status == 200
    assert client.connection is not None and first is not None


def test_pipelined_requests_are_answered_in_order(service):
    answer, _ = service.raw(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"
                            b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert [int(part.split()[0]) for part in answer.split(b"HTTP/1.1 ")[1:]][0] == 200
    assert b"404" in answer
