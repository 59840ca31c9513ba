"""TLS on TCP addresses: certificates, client certificates, bulk bytes, deadlines, and errors of wrong configurations."""
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from conftest import VADD, floats
from fixtures import NO_LIBRARIES
from service_under_test import Service, until

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl, which makes the test's certificates, is not installed")


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    """ca.pem, and server, client (both signed by it) and stranger (self-signed), each as .pem and .key."""
    folder = tmp_path_factory.mktemp("pki")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for name in ("ca", "stranger"):
        openssl("req", "-x509", *new_key, "-days", "2", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    (folder / "for_clients").write_text("extendedKeyUsage=clientAuth\n")
    (folder / "for_servers").write_text("extendedKeyUsage=serverAuth\n")
    for name, extensions in (("server", "names"), ("client", "names"), ("purposeful", "for_clients"), ("misused", "for_servers"), ("withdrawn", "names")):
        openssl("req", *new_key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-out", f"{name}.pem",
                "-extfile", extensions)
    make_lists(folder, openssl)
    return folder


def make_lists(folder, openssl):
    """crl.pem and soon.pem, lists of the authority's revoked certificates; expired.pem; foreign.pem, of another authority."""
    (folder / "index.txt").write_text("")
    (folder / "ca.cnf").write_text("[ca]\ndefault_ca=own\n[own]\ndatabase=index.txt\ndefault_md=sha256\n")

    def list_of(authority, out, *times):
        openssl("ca", "-config", "ca.cnf", "-gencrl", "-cert", f"{authority}.pem", "-keyfile", f"{authority}.key", "-out", out, *times)

    list_of("ca", "empty.pem", "-crldays", "2")
    openssl("ca", "-config", "ca.cnf", "-revoke", "withdrawn.pem", "-cert", "ca.pem", "-keyfile", "ca.key")
    list_of("ca", "crl.pem", "-crldays", "2")
    list_of("ca", "expired.pem", "-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200102000000Z")
    list_of("stranger", "foreign.pem", "-crldays", "2")


@pytest.fixture
def secure(start, pki):
    return start("--tls-cert", str(pki / "server.pem"), "--tls-key", str(pki / "server.key"))


def context(pki, certificate=None):
    made = ssl.create_default_context(cafile=str(pki / "ca.pem"))
    if certificate:
        made.load_cert_chain(str(pki / f"{certificate}.pem"), str(pki / f"{certificate}.key"))
    return made


def connect(service, pki, certificate=None):
    return http.client.HTTPSConnection("127.0.0.1", service.port, context=context(pki, certificate), timeout=30)


def ask(connection, method, path, body=None, headers=None):
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    return response.status, response.read()


def test_the_main_job_on_one_connection(secure, pki):
    c = connect(secure, pki)
    session = "/v1/sessions/tls"
    octets = {"Content-Type": "application/octet-stream"}
    assert ask(c, "PUT", session)[0] == 201
    assert ask(c, "PUT", session + "/modules/m", VADD, {"Content-Type": "text/x-cuda"})[0] == 201
    for name in "abc":
        assert ask(c, "PUT", f"{session}/buffers/{name}", floats(range(1024)), octets)[0] == 201
    launch = b'{"module":"m","kernel":"vadd","grid":[4],"block":[256],"args":[{"buf":"a"},{"buf":"b"},{"buf":"c"},{"i32":1024}]}'
    for _ in range(20):
        assert ask(c, "POST", session + "/launches", launch, {"Content-Type": "application/json"})[0] == 200
    assert ask(c, "GET", session + "/buffers/c/data") == (200, floats(2 * i for i in range(1024)))


def test_long_bodies_go_and_come_whole(secure, pki):
    """Longer than bodies that are offloaded in the clear: over TLS they must not be."""
    data = os.urandom(9 * 1024 * 1024 + 13)
    c = connect(secure, pki)
    assert ask(c, "PUT", "/v1/sessions/big")[0] == 201
    for _ in range(3):
        assert ask(c, "PUT", "/v1/sessions/big/buffers/x", data, {"Content-Type": "application/octet-stream"})[0] in (200, 201)
        status, back = ask(c, "GET", "/v1/sessions/big/buffers/x/data")
        assert status == 200 and back == data


def test_many_clients_at_once(secure, pki):
    wrong = []

    def work(number):
        c = connect(secure, pki)
        for i in range(10):
            data = bytes([number]) * (1000 + 300_000 * (i % 3))
            path = f"/v1/sessions/many/buffers/b{number}-{len(data)}"
            made = ask(c, "PUT", path, data, {"Content-Type": "application/octet-stream"})[0]
            if made not in (200, 201) or ask(c, "GET", path + "/data") != (200, data):
                wrong.append((number, i, made))

    assert ask(connect(secure, pki), "PUT", "/v1/sessions/many")[0] == 201
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_waiting_request_is_woken(secure, pki):
    """Suspended and resumed on a connection whose bytes GnuTLS holds."""
    c = connect(secure, pki)
    session = "/v1/sessions/wait"
    assert ask(c, "PUT", session)[0] == 201
    slow = 'extern "C" __global__ void slow(long n, long *out) { long s = 0; for (long i = 0; i < n; i++) s ^= i * s + 1; *out = s; }'
    assert ask(c, "PUT", session + "/modules/m", slow, {"Content-Type": "text/x-cuda"})[0] == 201
    assert ask(c, "PUT", session + "/buffers/o", b'{"size":8}', {"Content-Type": "application/json"})[0] == 201
    launch = b'{"module":"m","kernel":"slow","grid":[1],"block":[1],"args":[{"i64":2000000},{"buf":"o"}]}'
    for _ in range(5):
        assert ask(c, "POST", session + "/launches", launch, {"Content-Type": "application/json"})[0] == 200


def test_who_speaks_in_the_clear_gets_nothing(secure):
    with socket.create_connection(("127.0.0.1", secure.port), timeout=30) as s:
        s.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            assert not s.recv(65536).startswith(b"HTTP/")
        except ConnectionResetError:
            pass
    assert secure.process.poll() is None


def test_half_a_handshake_holds_nobody_up(secure, pki):
    idle = [socket.create_connection(("127.0.0.1", secure.port)) for _ in range(20)]
    for s in idle[:10]:
        s.sendall(b"\x16\x03\x01")
    assert ask(connect(secure, pki), "GET", "/livez") == (200, b"ok\n")
    for s in idle:
        s.close()


def test_a_body_that_stops_is_cut(secure, pki):
    c = connect(secure, pki)
    assert ask(c, "PUT", "/v1/sessions/stall")[0] == 201
    c.putrequest("PUT", "/v1/sessions/stall/buffers/x")
    c.putheader("Content-Type", "application/octet-stream")
    c.putheader("Content-Length", "1000000")
    c.endheaders()
    c.send(bytes(1000))
    c.sock.shutdown(socket.SHUT_WR)
    until(lambda: ask(connect(secure, pki), "GET", "/v1/sessions/stall/buffers")[1] == b'{"items":[],"next_cursor":null}',
          "the buffer of a lost upload is still there", 60)


def test_a_body_that_stops_is_answered(start, pki):
    service = start("--tls-cert", str(pki / "server.pem"), "--tls-key", str(pki / "server.key"), "--body-stall-s", "1")
    c = connect(service, pki)
    assert ask(c, "PUT", "/v1/sessions/stall")[0] == 201
    for body_bytes in (100, 1000000):
        c = connect(service, pki)
        c.putrequest("PUT", "/v1/sessions/stall/buffers/x")
        c.putheader("Content-Type", "application/octet-stream")
        c.putheader("Content-Length", str(body_bytes))
        c.endheaders(bytes(50))
        answer = c.getresponse()
        assert (answer.status, answer.headers["Connection"], json.loads(answer.read())["code"]) == (408, "close", "request_timeout")
        c.close()


def test_clients_need_a_certificate_when_asked_for(start, pki):
    service = start("--tls-cert", str(pki / "server.pem"), "--tls-key", str(pki / "server.key"), "--tls-client-ca", str(pki / "ca.pem"))
    assert ask(connect(service, pki, "client"), "GET", "/livez") == (200, b"ok\n")
    for certificate in (None, "stranger"):
        try:
            status, body = ask(connect(service, pki, certificate), "GET", "/livez")
            assert status == 401 and b"unauthenticated" in body
        except (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected):
            assert certificate == "stranger"


def of_clients(pki, *more):
    return ("--tls-cert", str(pki / "server.pem"), "--tls-key", str(pki / "server.key"), "--tls-client-ca", str(pki / "ca.pem"), *more)


def test_a_certificate_of_clients_is_for_clients(start, pki):
    service = start(*of_clients(pki))
    for certificate in ("client", "purposeful"):
        assert ask(connect(service, pki, certificate), "GET", "/livez") == (200, b"ok\n")
    status, body = ask(connect(service, pki, "misused"), "GET", "/livez")
    assert status == 401 and b"clientAuth" in body


def test_a_revoked_certificate_is_refused(start, pki):
    service = start(*of_clients(pki, "--tls-client-crl", str(pki / "crl.pem")))
    assert ask(connect(service, pki, "client"), "GET", "/livez") == (200, b"ok\n")
    status, body = ask(connect(service, pki, "withdrawn"), "GET", "/livez")
    assert status == 401 and b"the certificate is revoked" in body
    assert ask(connect(start(*of_clients(pki)), pki, "withdrawn"), "GET", "/livez") == (200, b"ok\n"), "without the list nobody knows"


def start_before(executable, tmp_path, pki, seconds):
    """A service whose list expires after so long; None when it expired before the service had started."""
    times = [time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + at)) for at in (-60, seconds)]
    subprocess.run(["openssl", "ca", "-config", "ca.cnf", "-gencrl", "-cert", "ca.pem", "-keyfile", "ca.key", "-out", "soon.pem",
                    "-crl_lastupdate", times[0], "-crl_nextupdate", times[1]], cwd=pki, check=True, capture_output=True)
    folder = tmp_path / f"after{seconds}"
    folder.mkdir()
    try:
        return Service(executable, folder, *of_clients(pki, "--tls-client-crl", str(pki / "soon.pem")), variables=NO_LIBRARIES)
    except AssertionError as failed:
        assert "has expired" in str(failed)
        return None


def test_a_list_that_expires_keeps_clients_out(executable, tmp_path, pki):
    service = next(one for seconds in (5, 20, 80) if (one := start_before(executable, tmp_path, pki, seconds)))
    try:
        deadline = time.monotonic() + 180
        while (answer := ask(connect(service, pki, "client"), "GET", "/livez"))[0] == 200 and time.monotonic() < deadline:
            time.sleep(0.2)
        assert answer[0] == 401 and b"has expired" in answer[1]
    finally:
        service.stop()


@pytest.mark.parametrize("arguments,words", [
    (["--tls-cert", "server.pem"], "a certificate and its key"),
    (["--tls-cert", "server.pem", "--tls-key", "ca.key"], "do not match"),
    (["--tls-cert", "names", "--tls-key", "server.key"], "certificate and key"),
    (["--tls-cert", "nowhere.pem", "--tls-key", "server.key"], "cannot be opened"),
    (["--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-client-ca", "names"], "client authorities"),
    (["--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-client-crl", "crl.pem"], "needs --tls-client-ca"),
    (["--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-client-ca", "ca.pem", "--tls-client-crl", "nowhere.pem"], "nowhere.pem cannot be opened"),
    (["--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-client-ca", "ca.pem", "--tls-client-crl", "names"], "names has no certificate revocation list"),
    (["--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-client-ca", "ca.pem", "--tls-client-crl", "expired.pem"],
     "expired.pem has expired: its next update was due at 2020-01-02T00:00:00Z"),
    (["--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-client-ca", "ca.pem", "--tls-client-crl", "foreign.pem"],
     "foreign.pem is not signed by an authority"),
    (["--tls-cert", ".", "--tls-key", "server.key"], "is not a file or a pipe"),
])
def test_wrong_files_are_told_apart(executable, pki, arguments, words):
    run = subprocess.run([executable, "--listen", "127.0.0.1:0", "--backends", "cpu", "--cache", "none", *arguments], cwd=pki, capture_output=True,
                         text=True, timeout=60)
    assert run.returncode != 0 and words in run.stderr, run.stderr


# ---- new files while the service runs ----

def shown(service, pki):
    """The certificate that a new connection is shown."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as plain, context(pki).wrap_socket(plain, server_hostname="localhost") as tls:
        return tls.getpeercert()["serialNumber"]


def place(pki, folder, name):
    for end in (".pem", ".key"):
        shutil.copy(pki / (name + end), folder / ("now" + end))


def hang_up(service, text, times):
    service.process.send_signal(signal.SIGHUP)
    until(lambda: service.stderr().count(text) >= times, f"{text!r} is not logged")


def test_new_certificates_hold_from_the_next_connection_on(start, pki, tmp_path):
    place(pki, tmp_path, "server")
    service = start("--tls-cert", str(tmp_path / "now.pem"), "--tls-key", str(tmp_path / "now.key"))
    first = shown(service, pki)
    open_before = connect(service, pki)
    open_before.request("GET", "/version")
    assert open_before.getresponse().read()
    for turn, name in enumerate(("client", "server", "client"), 1):
        place(pki, tmp_path, name)
        hang_up(service, "reloaded the files of TLS", turn)
        assert (shown(service, pki) == first) == (name == "server")
    open_before.request("GET", "/version")
    assert open_before.getresponse().status == 200
    open_before.close()
    second = shown(service, pki)
    for text in ("", "nonsense", (pki / "server.key").read_text()):  # the last one is no key of this certificate
        (tmp_path / "now.key").write_text(text)
        hang_up(service, "cannot reload the files of TLS; the old ones stay in use", 1)
        assert shown(service, pki) == second


def test_a_new_list_of_revoked_certificates_holds_for_the_next_request(start, pki, tmp_path):
    lists = tmp_path / "now.crl"
    shutil.copy(pki / "empty.pem", lists)
    service = start("--tls-cert", str(pki / "server.pem"), "--tls-key", str(pki / "server.key"), "--tls-client-ca", str(pki / "ca.pem"),
                    "--tls-client-crl", str(lists))

    def status():
        client = connect(service, pki, "withdrawn")
        client.request("GET", "/version")
        answer = client.getresponse()
        answer.read()
        client.close()
        return answer.status

    assert status() == 200
    shutil.copy(pki / "crl.pem", lists)
    hang_up(service, "reloaded the files of TLS", 1)
    assert status() == 401
    shutil.copy(pki / "expired.pem", lists)
    hang_up(service, "cannot reload the files of TLS", 1)
    assert status() == 401


def test_other_authorities_need_a_restart(start, pki, tmp_path):
    shutil.copy(pki / "ca.pem", tmp_path / "ca.pem")
    service = start("--tls-cert", str(pki / "server.pem"), "--tls-key", str(pki / "server.key"), "--tls-client-ca", str(tmp_path / "ca.pem"))
    shutil.copy(pki / "stranger.pem", tmp_path / "ca.pem")
    hang_up(service, "which needs a restart", 1)
    assert connect(service, pki, "client").request("GET", "/version") is None
