"""Framing on raw sockets, in the clear and over TLS: what RFC 9112 forbids is refused and ends the connection, however it is split, and
nothing after it is ever answered."""
import json
import re
import shutil
import socket
import ssl
import subprocess

import pytest

DEADLINE_S = 60
HOST = b"Host: localhost\r\n"
SMUGGLED = b"GET /version HTTP/1.1\r\n" + HOST + b"\r\n"
GOOD = b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n"
LAST = b"GET /livez HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
GET = b"GET /livez HTTP/1.1\r\n" + HOST
POST = b"POST /v1/sessions HTTP/1.1\r\n" + HOST
JSON = b"Content-Type: application/json\r\n"
CHUNKED = POST + JSON + b"Transfer-Encoding: chunked\r\n\r\n"


class Speaker:
    """Opens connections of one kind."""

    def __init__(self, service, context=None):
        self.service, self.context = service, context

    def connect(self):
        s = socket.create_connection((self.service.host, self.service.port), timeout=DEADLINE_S)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.context.wrap_socket(s, server_hostname="localhost") if self.context else s

    def send(self, *pieces):
        """All bytes of the answers, until the server ends the connection, which it must."""
        with self.connect() as s:
            try:
                for piece in pieces:
                    s.sendall(piece)
            except OSError:
                pass  # it has ended meanwhile; its answer can be read
            return receive_all(s)


def receive_all(s):
    got = b""
    try:
        while piece := s.recv(65536):
            got += piece
    except (ConnectionResetError, ssl.SSLError):
        pass
    return got


def answers_of(got):
    """[(status, code)]; each answer of the service must be complete, and a problem has a code."""
    found = []
    while got:
        head, _, rest = got.partition(b"\r\n\r\n")
        status = int(re.fullmatch(rb"HTTP/1\.1 (\d{3}) .*", head.split(b"\r\n")[0]).group(1))
        length = int(re.search(rb"\r\nContent-Length: (\d+)", head).group(1))
        body, got = rest[:length], rest[length:]
        assert len(body) == length, "cut short"
        if status >= 400:
            assert b"application/problem+json" in head and b"X-Request-Id: " in head
            assert b"Connection: close" in head, "a refused framing ends the connection"
            assert json.loads(body)["status"] == status and json.loads(body)["detail"]
        found.append((status, json.loads(body)["code"] if status >= 400 else None))
    return found


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("openssl, which makes the test's certificate, is not installed")
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-keyout",
                    "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost"], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def secure(executable, certificate, tmp_path_factory):
    from fixtures import NO_LIBRARIES
    from service_under_test import Service
    one = Service(executable, tmp_path_factory.mktemp("secure"), "--tls-cert", str(certificate / "cert.pem"), "--tls-key",
                  str(certificate / "key.pem"), variables=NO_LIBRARIES)
    yield one
    one.stop()


@pytest.fixture(params=["plain", "tls"])
def speaker(request):
    if request.param == "plain":
        return Speaker(request.getfixturevalue("service"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return Speaker(request.getfixturevalue("secure"), context)


FORBIDDEN = {
    "a line without a name": (GET + b": 1\r\n\r\n", 400, "invalid_header"),
    "a line without a colon": (GET + b"X\r\n\r\n", 400, "invalid_header"),
    "a line of NUL": (GET + b"\0\r\n\r\n", 400, "invalid_header"),
    "a blank before the colon": (GET + b"X : 1\r\n\r\n", 400, "invalid_header"),
    "a name that is no token": (GET + b"X@Y: 1\r\n\r\n", 400, "invalid_header"),
    "a folded line": (GET + b"X: 1\r\n 2\r\n\r\n", 400, "framing_mismatch"),
    "a folded length": (POST + b"Content: 5\r\n -Length\r\n\r\n", 400, "framing_mismatch"),
    "a first line that is folded": (b"GET /livez HTTP/1.1\r\n " + HOST + b"\r\n", 400, "framing_mismatch"),
    "a NUL in a value": (GET + b"X: a\0b\r\n\r\n", 400, "invalid_header"),
    "a control byte in a value": (GET + b"X: a\x01\r\n\r\n", 400, "invalid_header"),
    "DEL in a value": (GET + b"X: a\x7f\r\n\r\n", 400, "invalid_header"),
    "CR in a value": (GET + b"X: a\rb\r\n\r\n", 400, "framing_mismatch"),
    "LF behind a header line": (GET + b"X: a\nY: b\r\n\r\n", 400, "framing_mismatch"),
    "LF behind the block": (GET + b"\n", 400, "invalid_header"),
    "LF behind the request line": (b"GET /livez HTTP/1.1\n" + HOST + b"\r\n", 400, "invalid_request"),
    "a NUL in the target": (b"GET /livez\0/x HTTP/1.1\r\n" + HOST + b"\r\n", 400, "invalid_request"),
    "a byte of eight bits in the target": (b"GET /livez\xe4 HTTP/1.1\r\n" + HOST + b"\r\n", 400, "invalid_request"),
    "a blank in the target": (b"GET /livez x HTTP/1.1\r\n" + HOST + b"\r\n", 400, "invalid_request"),
    "two blanks before the target": (b"GET  /livez HTTP/1.1\r\n" + HOST + b"\r\n", 400, "invalid_request"),
    "two blanks before the version": (b"GET /livez  HTTP/1.1\r\n" + HOST + b"\r\n", 400, "invalid_request"),
    "a blank behind the version": (b"GET /livez HTTP/1.1 \r\n" + HOST + b"\r\n", 400, "invalid_request"),
    "a tab between them": (b"GET\t/livez\tHTTP/1.1\r\n" + HOST + b"\r\n", 400, "invalid_request"),
    "no version": (b"GET /livez\r\n" + HOST + b"\r\n", 400, "invalid_request"),
    "a method that is no token": (b"G\x01T /livez HTTP/1.1\r\n" + HOST + b"\r\n", 400, "invalid_request"),
    "two empty lines before it": (b"\r\n\r\n" + GET + b"\r\n", 400, "invalid_request"),
    "LF before it": (b"\n" + GET + b"\r\n", 400, "invalid_request"),
    "PROXY bytes of a stranger": (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01\0\x50\0\x50", 400, "invalid_request"),
    "HTTP/1.2": (b"GET /livez HTTP/1.2\r\n" + HOST + b"\r\n", 505, "http_version_not_supported"),
    "HTTP/0.9": (b"GET /livez HTTP/0.9\r\n" + HOST + b"\r\n", 505, "http_version_not_supported"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "http_version_not_supported"),
    "no Host": (b"GET /livez HTTP/1.1\r\n\r\n", 400, "invalid_header"),
    "two Hosts": (GET + b"Host: evil\r\n\r\n", 400, "invalid_header"),
    "a blank behind Host": (b"GET /livez HTTP/1.1\r\nHost : localhost\r\n\r\n", 400, "invalid_header"),
    "length and coding": (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "framing_mismatch"),
    "coding and length": (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400, "framing_mismatch"),
    "two lengths": (POST + b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n", 400, "framing_mismatch"),
    "the same length twice": (POST + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n", 400, "framing_mismatch"),
    "a list of different lengths": (POST + b"Content-Length: 0, 44\r\n\r\n", 400, "framing_mismatch"),
    "a list of lengths": (POST + b"Content-Length: 0, 0\r\n\r\n", 400, "framing_mismatch"),
    "a length with a sign": (POST + b"Content-Length: +0\r\n\r\n", 400, "framing_mismatch"),
    "a length with 0x": (POST + b"Content-Length: 0x0\r\n\r\n", 400, "framing_mismatch"),
    "a length beyond 64 bits": (POST + b"Content-Length: 18446744073709551616\r\n\r\n", 400, "framing_mismatch"),
    "a length beyond use": (POST + b"Content-Length: 18446744073709551615\r\n\r\n", 400, "framing_mismatch"),
    "an empty length": (POST + b"Content-Length:\r\n\r\n", 400, "framing_mismatch"),
    "another coding": (POST + b"Transfer-Encoding: gzip\r\n\r\n", 501, "not_implemented"),
    "another coding before chunked": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, "not_implemented"),
    "chunked not last": (POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 501, "not_implemented"),
    "chunked and a blank": (POST + b"Transfer-Encoding: chunked \r\n\r\n0\r\n\r\n", 501, "not_implemented"),
    "two codings": (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "framing_mismatch"),
    "a coding in HTTP/1.0": (b"POST /v1/sessions HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "framing_mismatch"),
    "a chunk without a size": (CHUNKED + b"\r\n0\r\n\r\n", 400, "framing_mismatch"),
    "a chunk's size and a blank": (CHUNKED + b"2 \r\n{}\r\n0\r\n\r\n", 400, "framing_mismatch"),
    "a chunk's size with 0x": (CHUNKED + b"0x2\r\n{}\r\n0\r\n\r\n", 400, "framing_mismatch"),
    "a chunk's size beyond use": (CHUNKED + b"ffffffffffffffff\r\n{}\r\n0\r\n\r\n", 400, "framing_mismatch"),
    "LF behind a chunk's size": (CHUNKED + b"2\n{}\r\n0\r\n\r\n", 400, "framing_mismatch"),
    "LF behind an extension": (CHUNKED + b"2;a\n{}\r\n0\r\n\r\n", 400, "framing_mismatch"),
    "LF behind a chunk": (CHUNKED + b"2\r\n{}\n0\r\n\r\n", 400, "framing_mismatch"),
    "a chunk longer than its size": (CHUNKED + b"1\r\n{}\r\n0\r\n\r\n", 400, "framing_mismatch"),
    "a long extension": (CHUNKED + b"2;" + b"a" * 300 + b"\r\n{}\r\n0\r\n\r\n", 400, "framing_mismatch"),
    "a trailer without a name": (CHUNKED + b"2\r\n{}\r\n0\r\n: 1\r\n\r\n", 400, "invalid_header"),
    "a length in the trailer": (CHUNKED + b"2\r\n{}\r\n0\r\nContent-Length: 9\r\n\r\n", 400, "framing_mismatch"),
    "a long header": (GET + b"X: " + b"a" * 25000 + b"\r\n\r\n", 431, "headers_too_large"),
    "a long request line": (b"GET /" + b"a" * 25000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414, "uri_too_long"),
}
forbidden = pytest.mark.parametrize("text,status,code", FORBIDDEN.values(), ids=FORBIDDEN.keys())


@forbidden
def test_in_one_piece(speaker, text, status, code):
    assert answers_of(speaker.send(text + SMUGGLED)) == [(status, code)]


@forbidden
def test_behind_good_requests(speaker, text, status, code):
    """The earlier requests are answered, whatever follows them."""
    assert answers_of(speaker.send(GOOD + GOOD + text + SMUGGLED)) == [(200, None), (200, None), (status, code)]


@forbidden
def test_byte_by_byte(speaker, text, status, code):
    if len(text) > 1000:
        pieces = [text[i:i + 1000] for i in range(0, len(text), 1000)] + [SMUGGLED]
    else:
        pieces = [bytes([byte]) for byte in text] + [SMUGGLED]
    assert answers_of(speaker.send(GOOD, *pieces)) == [(200, None), (status, code)]


@forbidden
def test_behind_the_last_request(speaker, text, status, code):
    """No answer to the rest: the connection ends after the last answer."""
    assert answers_of(speaker.send(LAST + text + SMUGGLED)) == [(200, None)]


ALLOWED = {
    "one empty line before it": (b"\r\n" + LAST, 1),
    "tabs and bytes of eight bits in a value": (GET + b"X:\ta\tb \xe4\r\n\r\n" + LAST, 2),
    "an empty value": (GET + b"X:\r\n\r\n" + LAST, 2),
    "HTTP/1.0 without Host": (b"GET /livez HTTP/1.0\r\n\r\n", 1),
    "chunks, extensions and a trailer": (CHUNKED + b"1;a=b\r\n{\r\n001\r\n}\r\n0;c\r\nX: y\r\n\r\n" + LAST, 2),
    "a body that looks like requests": (POST + JSON + b"Content-Length: %d\r\n\r\n%s" % (len(b" \n\r\n\r\n {}"), b" \n\r\n\r\n {}") + LAST, 2),
    "a long header": (GET + b"X: " + b"a" * 23000 + b"\r\n\r\n" + LAST, 2),
    "ninety lines": (GET + b"".join(b"X-%d: %s\r\n" % (i, b"a" * 240) for i in range(90)) + b"\r\n" + LAST, 2),
}


@pytest.mark.parametrize("in_pieces", [False, True], ids=["in one piece", "byte by byte"])
@pytest.mark.parametrize("text,count", ALLOWED.values(), ids=ALLOWED.keys())
def test_what_is_allowed_is_answered(speaker, text, count, in_pieces):
    pieces = [text[i:i + (1 if len(text) < 1000 else 997)] for i in range(0, len(text), 1 if len(text) < 1000 else 997)] if in_pieces else [text]
    answers = answers_of(speaker.send(*pieces))
    assert len(answers) == count and all(status in (200, 201) for status, _ in answers), answers


def test_an_upload_that_is_handed_off_is_followed_by_others(service, client, session):
    """Its body bypasses the scanner, and so what the scanner knows of the connection."""
    size = 2 << 20
    client.put(session + "/buffers/a", {"size": size})
    head = f"PUT {session}/buffers/a/data HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: {size}\r\n\r\n".encode()
    body = (b"\n: \0\r" * size)[:size]
    bad = GET + b": 1\r\n\r\n"
    got = Speaker(service).send(head + body + head + body + GOOD + bad + SMUGGLED)
    assert [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3})", got)] == [204, 204, 200, 400]
    assert client.get(session + "/buffers/a/data").body == body


def test_refusals_are_counted_and_logged(start):
    service = start("--access-log", "--log-level", "debug")
    client = service.client()
    count = re.compile(r'^gpurest_problems_total\{code="framing_mismatch"\} (\d+)', re.M)
    before = int((count.search(client.get("/metrics").body.decode()) or ["", "0"])[1])
    Speaker(service).send(GET + b"X: 1\r\n 2\r\n\r\n")
    Speaker(service).send(GOOD + POST + b"Content-Length: x\r\n\r\n")
    assert int(count.search(client.get("/metrics").body.decode())[1]) == before + 2
    service.terminate()
    service.wait()
    lines = service.stderr().splitlines()
    refused = [line for line in lines if "framing_mismatch: " in line]
    assert len(refused) == 2 and "folded" in refused[0] and "Content-Length" in refused[1]
    assert len([line for line in lines if "category=access" in line and "status=400" in line and "client=127.0.0.1" in line]) == 2
