"""Trusted proxies name their clients: by the PROXY protocol, version 2, in X-Forwarded-For or in Forwarded. Nobody else is believed. A
client's address then counts for the limits by address (wrong tokens, connections) and is in the access log."""
import hashlib
import json
import pathlib
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import time

import pytest

from test_framing import DEADLINE_S, answers_of, certificate  # noqa: F401

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
GET = "GET /version HTTP/1.1\r\nHost: localhost\r\n"
WRONG = "Authorization: Bearer wrong\r\n"
FAILURES = 1  # per minute: the next attempt is heard a minute later, so that a slow machine changes nothing


def proxy_header(client=None, more=b""):
    """Without a client: the header of the proxy's own connection."""
    if client is None:
        return SIGNATURE + b"\x20\0" + struct.pack(">H", len(more)) + more
    six = ":" in client
    family, kind = (socket.AF_INET6, b"\x21") if six else (socket.AF_INET, b"\x11")
    rest = socket.inet_pton(family, client) + socket.inet_pton(family, "::1" if six else "127.0.0.1") + struct.pack(">HH", 4711, 80) + more
    return SIGNATURE + b"\x21" + kind + struct.pack(">H", len(rest)) + rest


@pytest.fixture
def proxied(start, tmp_path):
    """proxied(*arguments) serves with tokens and an access log; proxies on loopback are trusted unless the arguments name others."""
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"tokens": [{"name": "alice", "sha256": hashlib.sha256(b"alice").hexdigest(), "scopes": ["read", "write"]}]}))

    def begin(*arguments):
        trusted = () if "--trusted-proxy" in arguments else ("--trusted-proxy", "127.0.0.0/8")
        return start("--tokens", str(tokens), "--token-failures", str(FAILURES), "--access-log", *trusted, *arguments)

    return begin


def connect(service, begin=b"", from_address="127.0.0.1"):
    s = socket.create_connection((service.host, service.port), timeout=DEADLINE_S, source_address=(from_address, 0))
    s.sendall(begin)
    return s


def ask(s, text):
    """One request on a connection that stays open; its status."""
    s.sendall(text.encode() + b"\r\n")
    got = b""
    while b"\r\n\r\n" not in got:
        piece = s.recv(65536)
        assert piece, got
        got += piece
    head, _, body = got.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += s.recv(65536)
    return int(head.split()[1])


def clients_in_log(service):
    """The logged addresses of all requests, once the service has ended. Sorted, because the order of two connections is open."""
    service.terminate()
    service.wait()
    return sorted(line.partition(" client=")[2].split()[0] for line in service.stderr().splitlines() if "category=access" in line)


def is_locked_out(service, begin, fields):
    """Whether a client with these first bytes and fields is refused whatever its token is."""
    with connect(service, begin) as s:
        return ask(s, GET + fields + WRONG) == 429


def guess(service, begin, fields):
    with connect(service, begin) as s:
        for _ in range(FAILURES):
            assert ask(s, GET + fields + WRONG) == 401
        assert ask(s, GET + fields + WRONG) == 429


WAYS = {
    "PROXY, IPv4": lambda n: (proxy_header(f"192.0.2.{n}"), "", f"192.0.2.{n}"),
    "PROXY, IPv6": lambda n: (proxy_header(f"2001:db8:0:{n}::5"), "", f"2001:db8:0:{n}::5"),
    "PROXY with further fields": lambda n: (proxy_header(f"192.0.2.{n}", b"\x04\0\x04moin" * 20), "", f"192.0.2.{n}"),
    "X-Forwarded-For": lambda n: (b"", f"X-Forwarded-For: 203.0.113.1, 192.0.2.{n}\r\n", f"192.0.2.{n}"),
    "X-Forwarded-For twice": lambda n: (b"", f"X-Forwarded-For: 203.0.113.1\r\nx-forwarded-for: 192.0.2.{n}, 127.0.0.9\r\n", f"192.0.2.{n}"),
    "Forwarded": lambda n: (b"", f'Forwarded: for=203.0.113.1, for="[2001:db8:0:{n}::5]:99";proto=http\r\n', f"2001:db8:0:{n}::5"),
    "PROXY of a proxy": lambda n: (proxy_header("127.0.0.7"), f"X-Forwarded-For: 192.0.2.{n}\r\n", f"192.0.2.{n}"),
    "LOCAL, then a field": lambda n: (proxy_header(), f"X-Forwarded-For: 192.0.2.{n}\r\n", f"192.0.2.{n}"),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_each_client_is_one_of_its_own(proxied, way):
    service = proxied()
    begin, fields, client = way(1)
    other_begin, other_fields, other = way(2)
    guess(service, begin, fields)
    assert is_locked_out(service, begin, fields), "on another connection, too"
    assert not is_locked_out(service, other_begin, other_fields)
    assert not is_locked_out(service, b"", ""), "the proxy itself"
    assert clients_in_log(service) == sorted([client] * (FAILURES + 2) + [other, "127.0.0.1"])


def test_clients_of_one_connection_are_told_apart(proxied):
    service = proxied()
    with connect(service) as s:
        for _ in range(FAILURES + 1):
            last = ask(s, GET + "X-Forwarded-For: 192.0.2.1\r\n" + WRONG)
        assert last == 429
        assert ask(s, GET + "X-Forwarded-For: 192.0.2.2\r\nAuthorization: Bearer alice\r\n") == 200
        assert ask(s, GET + "X-Forwarded-For: 192.0.2.2\r\n" + WRONG) == 401
        assert ask(s, GET + "X-Forwarded-For: 192.0.2.1\r\nAuthorization: Bearer alice\r\n") == 429, "let in from elsewhere is not let in from here"


@pytest.mark.parametrize("fields", ["X-Forwarded-For: 192.0.2.{}\r\n", "Forwarded: for=192.0.2.{}\r\n"])
def test_strangers_are_not_believed(proxied, fields):
    service = proxied("--trusted-proxy", "10.0.0.0/8", "--trusted-proxy", "2001:db8::/32")
    with connect(service) as s:
        statuses = [ask(s, GET + fields.format(n) + WRONG) for n in range(FAILURES + 1)]
    assert statuses == [401] * FAILURES + [429]
    assert set(clients_in_log(service)) == {"127.0.0.1"}


def test_without_the_setting_nobody_is_believed(start):
    service = start("--access-log")
    with connect(service) as s:
        assert ask(s, GET + "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n") == 200
    with connect(service, proxy_header("192.0.2.1")) as s:
        assert s.recv(65536).startswith(b"HTTP/1.1 400 ")
    assert clients_in_log(service) == ["127.0.0.1"] * 2


def test_a_stranger_that_speaks_the_proxy_protocol_is_refused(proxied):
    service = proxied("--trusted-proxy", "127.0.0.9/32")
    with connect(service, proxy_header("192.0.2.1") + GET.encode() + b"\r\n") as s:
        got = b"".join(iter(lambda: s.recv(65536), b""))
    assert answers_of(got) == [(400, "invalid_request")]
    with connect(service, proxy_header("192.0.2.1"), from_address="127.0.0.9") as s:
        assert ask(s, GET + "Authorization: Bearer alice\r\n") == 200


@pytest.mark.parametrize("fields,client", [
    ("X-Forwarded-For: garbage\r\n", "127.0.0.1"),
    ("X-Forwarded-For: \r\n", "127.0.0.1"),
    ("Forwarded: for=unknown\r\n", "127.0.0.1"),
    ("X-Forwarded-For: 192.0.2.9, garbage, 127.0.0.8\r\n", "127.0.0.8"),
    ("X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.2\r\n", "127.0.0.1"),
    ("X-Forwarded-For: 127.0.0.2, 127.0.0.3\r\n", "127.0.0.2"),
])
def test_who_is_named_by_nobody_is_the_proxy(proxied, fields, client):
    service = proxied()
    with connect(service) as s:
        assert ask(s, GET + fields + "Authorization: Bearer alice\r\n") == 200
    assert clients_in_log(service) == [client]


def test_the_header_may_come_in_pieces(proxied):
    service = proxied()
    whole = proxy_header("192.0.2.1", b"\x04\0\x04moin") + GET.encode() + b"Authorization: Bearer alice\r\nConnection: close\r\n\r\n"
    with connect(service) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(whole)):
            s.sendall(whole[i:i + 1])
        got = b"".join(iter(lambda: s.recv(65536), b""))
    assert answers_of(got) == [(200, None)]
    assert clients_in_log(service) == ["192.0.2.1"]


@pytest.mark.parametrize("begin", [
    SIGNATURE + b"\x31\x11\0\x0c" + bytes(12), SIGNATURE + b"\x2f\x11\0\x0c" + bytes(12), SIGNATURE + b"\x21\x51\0\x0c" + bytes(12),
    SIGNATURE + b"\x21\x11\0\x04" + bytes(4), SIGNATURE + b"\x21\x21\0\x0c" + bytes(12), SIGNATURE + b"\x21\x11\xff\xff" + bytes(65535),
    proxy_header("192.0.2.1") + proxy_header("192.0.2.2"),
])
def test_a_header_that_is_wrong_ends_the_connection(proxied, begin):
    service = proxied()
    got = b""
    with connect(service) as s:
        try:
            s.sendall(begin + GET.encode() + b"Authorization: Bearer alice\r\n\r\n")
        except OSError:
            pass  # it has ended meanwhile
        try:
            while piece := s.recv(65536):
                got += piece
        except ConnectionResetError:
            pass
    assert got.count(b"HTTP/1.1 ") <= 1 and (not got or got.startswith(b"HTTP/1.1 400 "))
    with connect(service, proxy_header("192.0.2.1")) as s:
        assert ask(s, GET + "Authorization: Bearer alice\r\n") == 200, "others are served"


def test_connections_are_counted_by_whom_the_header_names(proxied):
    """At its limit an address closes its own connection that has been silent longest; other addresses lose nothing."""
    service = proxied("--connections-per-address", "2", "--threads", "1")  # one loop notes the ends of requests in their order
    token = "Authorization: Bearer alice\r\n"
    held = []
    try:
        for client in ("192.0.2.2", "192.0.2.2", "192.0.2.1", "192.0.2.1", None, None, None):
            held.append(connect(service, proxy_header(client)))
            assert ask(held[-1], GET + token) == 200, client
        held.append(connect(service))
        assert ask(held[-1], GET + token) == 200, "the proxy's own are not bounded by address"
        held.append(connect(service, proxy_header("192.0.2.1")))
        assert ask(held[-1], GET + token) == 200
        assert held.pop(2).recv(65536) == b"", "the older one of 192.0.2.1 is ended"
        for s in held:
            assert ask(s, GET + token) == 200, "no other is"
    finally:
        for s in held:
            s.close()


def test_an_upload_that_is_handed_off_keeps_its_client(proxied):
    """Its connection continues as a new one, whose first bytes are no PROXY header."""
    service = proxied()
    token = "Host: localhost\r\nAuthorization: Bearer alice\r\n"
    size = 2 << 20
    with connect(service, proxy_header("192.0.2.1")) as s:
        assert ask(s, f"PUT /v1/sessions/s HTTP/1.1\r\n{token}") == 201
        s.sendall(f"PUT /v1/sessions/s/buffers/a HTTP/1.1\r\n{token}Content-Type: application/octet-stream\r\nContent-Length: {size}\r\n\r\n".encode())
        s.sendall(bytes(size - 1))
        assert ask_body(s, b"\0") == 201
        assert ask(s, GET + "Authorization: Bearer alice\r\n") == 200
        s.sendall(proxy_header("192.0.2.2"))
        assert s.recv(65536).startswith(b"HTTP/1.1 400 ")
    assert set(clients_in_log(service)) == {"192.0.2.1"}


def ask_body(s, rest):
    s.sendall(rest)
    return int(s.recv(65536).split()[1])


def test_below_tls(proxied, certificate):  # noqa: F811
    service = proxied("--tls-cert", str(certificate / "cert.pem"), "--tls-key", str(certificate / "key.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for begin in (proxy_header("192.0.2.1"), b""):
        with context.wrap_socket(connect(service, begin), server_hostname="localhost") as s:
            assert ask(s, GET + "Authorization: Bearer alice\r\n") == 200
    with connect(service, SIGNATURE + b"\x31\x11\0\0") as s:
        with pytest.raises(OSError):
            context.wrap_socket(s, server_hostname="localhost", do_handshake_on_connect=False).do_handshake()
    assert clients_in_log(service) == ["127.0.0.1", "192.0.2.1"]


@pytest.mark.parametrize("value,word", [("10.0.0.0/33", "slash"), ("10.0.0.1/8", "bits"), ("proxy.example", "address"), ("::/0,x", "address")])
def test_settings_that_are_wrong(executable, value, word):
    for more in ([], ["--check-config"]):
        ended = subprocess.run([executable, "--listen", "127.0.0.1:0", *[part for item in value.split(",") for part in ("--trusted-proxy", item)], *more],
                               capture_output=True, text=True, timeout=DEADLINE_S)
        assert ended.returncode != 0 and word in ended.stderr, ended.stderr


# ---- real proxies ----

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_proxy(command, port):
    """The process, once it listens."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return process
        except OSError:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.02)


def end(process):
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=DEADLINE_S)


def through(port, from_address, fields=""):
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S, source_address=(from_address, 0)) as s:
        return ask(s, GET + "Authorization: Bearer alice\r\n" + fields)


@pytest.mark.skipif(not shutil.which("haproxy"), reason="haproxy is not installed")
@pytest.mark.parametrize("how", ["send-proxy-v2", "option forwardfor"])
def test_behind_haproxy(proxied, tmp_path, how):
    service, port = proxied("--trusted-proxy", "127.0.0.1"), free_port()
    send, option = (how, "") if how == "send-proxy-v2" else ("", how)
    (tmp_path / "haproxy.cfg").write_text(f"""
defaults
  mode http
  timeout connect 60s
  timeout client 60s
  timeout server 60s
  {option}
listen gpurest
  bind 127.0.0.1:{port}
  server one 127.0.0.1:{service.port} {send}
""")
    process = run_proxy(["haproxy", "-db", "-f", str(tmp_path / "haproxy.cfg")], port)
    try:
        for client in ("127.0.0.5", "127.0.0.6"):
            assert through(port, client) == 200
            assert through(port, client, "X-Forwarded-For: 192.0.2.9\r\n") == 200
    finally:
        end(process)
    assert clients_in_log(service) == ["127.0.0.5", "127.0.0.5", "127.0.0.6", "127.0.0.6"]


@pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed")
def test_behind_nginx(proxied, tmp_path):
    service, port = proxied("--trusted-proxy", "127.0.0.1"), free_port()
    folder = pathlib.Path(tmp_path)
    (folder / "nginx.conf").write_text(f"""
daemon off; pid {folder}/pid; error_log stderr;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;
  scgi_temp_path {folder}/s;
  upstream one {{ server 127.0.0.1:{service.port}; keepalive 1; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://one; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host localhost;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header Forwarded "";
    }}
  }}
}}
""")
    process = run_proxy(["nginx", "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")], port)
    try:
        for client in ("127.0.0.5", "127.0.0.6"):
            assert through(port, client) == 200
            assert through(port, client, "X-Forwarded-For: 192.0.2.9\r\nForwarded: for=192.0.2.8\r\n") == 200
    finally:
        end(process)
    assert clients_in_log(service) == ["127.0.0.5", "127.0.0.5", "127.0.0.6", "127.0.0.6"]
