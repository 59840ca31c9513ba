"""Raw sockets: foreign hosts and origins, bodies refused before they are read."""
import socket

import pytest


def status_of(answer):
    assert answer.startswith(b"HTTP/1.1 "), answer[:200]
    return int(answer.split()[1])


def asked(service, target, host=b"localhost", method=b"GET"):
    """The answer to one request, after which the connection ends."""
    answer, _ = service.raw(method + b" " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
    return answer


NO_HOSTS = [b"127.0.0.1:8080.evil.com", b"localhost:80@evil.com", b"localhost:", b"localhost:0", b"localhost:65536", b"localhost:080808", b"localhost:+80",
            b"localhost:8 0", b"[::1]:x", b"[::1]evil.com", b"[::1].evil.com", b"[::1", b"[localhost]", b"[127.0.0.1]", b"user@localhost", b"localhost/x",
            b"localhost,evil.com:80:80", b"::1", b"localhost\"", b"http://localhost"]
OTHER_HOSTS = [b"evil.example", b"localhost.evil.example", b"127.0.0.1.evil.example:80", b"localhost.", b"127.0.0.1.", b"127.1", b"2130706433", b"0",
               b"localhost,evil.com", b"%6cocalhost", b"[::]", b""]
OWN_HOSTS = [b"localhost", b"LocalHost:1", b"127.0.0.1:65535", b"[::1]", b"[::1]:8080"]


@pytest.mark.parametrize("host,status,code", [(host, 400, b"invalid_header") for host in NO_HOSTS] + [(host, 200, b"") for host in OWN_HOSTS]
                         + [(host, 421, b"misdirected_request") for host in OTHER_HOSTS])
def test_hosts(service, host, status, code):
    answer = asked(service, b"/version", host)
    assert status_of(answer) == status and code in answer


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
    assert status_of(asked(service, target, host)) == status


def test_the_origin_is_compared_with_the_host_that_wins(service):
    request = b"GET http://localhost:7/version HTTP/1.1\r\nHost: evil.com\r\nOrigin: http://%s\r\nConnection: close\r\n\r\n"
    assert status_of(service.raw(request % b"localhost:7")[0]) == 200
    assert status_of(service.raw(request % b"evil.com")[0]) == 403


def test_further_hosts_are_a_setting(start):
    assert status_of(asked(start("--host", "gpu.example"), b"/version", b"gpu.example")) == 200


def test_origins(service, client, start):
    assert client.get("/version", Origin="https://evil.example").code == "origin_not_allowed"
    allowed = start("--origin", "https://good.example").client()
    assert allowed.get("/version", Origin="https://good.example").status == 200
    assert allowed.get("/version", Origin="https://evil.example").status == 403


@pytest.mark.parametrize("target", [b"/v1/sessions/%2e%2e", b"/v1/sessions/a%2fb", b"/v1/sessions/a%00b", b"/v1/sessions/a b", b"/v1/sessions/..\\x"])
def test_targets_with_tricks(service, target):
    answer = asked(service, target)
    assert answer == b"" or status_of(answer) in (400, 404), "closed, or refused"


@pytest.mark.parametrize("method", [b"TRACE", b"CONNECT", b"PROPFIND"])
def test_foreign_methods(service, method):
    assert status_of(asked(service, b"/livez", method=method)) in (400, 405, 501)


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
