"""SIGUSR2: another executable in the same place. Nobody is refused, nothing is lost, and one that does not start changes nothing."""
import http.client
import os
import pathlib
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest

from kernels import FAULTS, launch
from local_client import LocalClient
from fixtures import NO_LIBRARIES
from service_under_test import Service, children_of, until
from test_service_manager import DEADLINE_S, Manager, client_of, contained  # noqa: F401 (a fixture)
from test_start_and_auth import token_file
from test_tls import pki  # noqa: F401 (a fixture)

CLIENTS = 8


class Upgradable(Service):
    """One whose executable is a copy, which a test may replace."""

    def __init__(self, executable, folder, *arguments, **more):
        self.place = folder / "gpurestd"
        shutil.copy(executable, self.place)
        super().__init__(str(self.place), folder, "--state", str(folder / "state"), "--drain-timeout", "60", *arguments, **more)

    def replace(self, content):
        """As a package manager does: another file under the same name."""
        new = self.place.with_suffix(".new")
        new.write_bytes(content)
        new.chmod(0o755)
        new.replace(self.place)

    def starts(self):
        return (self.folder / "stdout").read_text().count(" serving")

    def signal(self):
        self.process.send_signal(signal.SIGUSR2)

    def eventfds(self):
        """What threads are woken by: as many after an upgrade as before."""
        return sum(os.readlink(one) == "anon_inode:[eventfd]" for one in pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir() if one.is_symlink())

    def upgrade(self):
        until(self.starts)  # its first line may come after the first answer
        before = self.starts()
        self.signal()
        until(lambda: self.starts() > before or self.process.poll() is not None, self.stderr)
        assert self.process.poll() is None, self.stderr()


@pytest.fixture
def upgradable(executable, tmp_path):
    running = []

    def start_one(*arguments, **more):
        folder = tmp_path / f"upgradable{len(running)}"
        folder.mkdir()
        running.append(Upgradable(executable, folder, *arguments, **more))
        return running[-1]

    yield start_one
    for service in running:
        service.stop()


class UnixConnection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.host)


class Load(threading.Thread):
    """Changes its session and looks at it, again and again. It repeats nothing: each request must be answered, on a connection that is kept or new."""

    def __init__(self, service, number, path):
        super().__init__()
        self.session = f"/v1/sessions/load{number}"
        self.keeps = number % 2 == 0
        self.make = (lambda: UnixConnection(path, timeout=120)) if number % 4 > 1 else \
            (lambda: http.client.HTTPConnection("127.0.0.1", service.port, timeout=120))
        self.connection = None
        self.ends = False
        self.value, self.longest, self.error = 0, 0.0, None

    def ask(self, method, path, body=None, **headers):
        began = time.monotonic()
        connection = self.connection or self.make()
        connection.request(method, self.session + path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        got = response.status, response.read()
        self.connection = connection if self.keeps and not response.will_close else None
        if not self.connection:
            connection.close()
        self.longest = max(self.longest, time.monotonic() - began)
        return got

    def step(self):
        data = struct.pack("<I", self.value + 1) * 1024
        assert self.ask("PUT", "/buffers/b/data", data, Content_Type="application/octet-stream") == (204, b"")
        self.value += 1
        assert self.ask("GET", "/buffers/b/data") == (200, data)

    def run(self):
        try:
            assert self.ask("PUT", "", b"{}", Content_Type="application/json")[0] == 201
            assert self.ask("PUT", "/buffers/b", bytes(4096), Content_Type="application/octet-stream")[0] == 201
            while not self.ends:
                self.step()
        except BaseException as why:  # noqa: BLE001 the test tells what it was
            self.error = f"{self.session} ({'kept' if self.keeps else 'new'} connections): {type(why).__name__}: {why}"

    def stop(self):
        self.ends = True
        self.join()


def test_nothing_fails_while_it_is_upgraded(upgradable, executable, tmp_path):
    path = str(tmp_path / "s")
    settings = tmp_path / "gpurestd.conf"
    settings.write_text("threads = 2\n")
    service = upgradable("--listen", "127.0.0.1:0", "--listen", f"unix:{path}", "--config", str(settings), listen=None)
    client = service.client()
    loads = [Load(service, number, path) for number in range(CLIENTS)]
    for load in loads:
        load.start()
    until(lambda: all(load.error or load.value for load in loads))
    made = client.post("/v1/sessions/load0/buffers", {"size": 64}, Idempotency_Key="k").expect(201)
    ports = service.port_file.read_bytes()
    for threads in (5, 1):  # more loops than there are sockets, and fewer
        settings.write_text(f"threads = {threads}\n")
        values = [load.value for load in loads]
        until(lambda: all(load.error or load.value > before + 3 for load, before in zip(loads, values)))
        service.replace(pathlib.Path(executable).read_bytes())
        service.upgrade()
        assert os.path.samefile(f"/proc/{service.process.pid}/exe", service.place), "the file that is there now"
    values = [load.value for load in loads]
    until(lambda: all(load.error or load.value > before + 3 for load, before in zip(loads, values)), service.stderr)
    for load in loads:
        load.stop()
    print(f"longest wait {max(load.longest for load in loads):.2f} s")
    assert not [load.error for load in loads if load.error]
    for load in loads:
        got = client.get(load.session + "/buffers/b/data").expect(200)
        assert got.body == struct.pack("<I", load.value) * 1024
        assert client.get(load.session).json()["restored"]["from"] == "shutdown"
    again = client.post("/v1/sessions/load0/buffers", {"size": 64}, Idempotency_Key="k")
    assert again.body == made.body and again.headers["Idempotency-Replayed"] == "true"
    assert service.port_file.read_bytes() == ports and len(children_of(service.process.pid)) > 0
    assert service.stderr().count("upgrading") == 2
    service.stop()
    assert not os.path.exists(path)


class Slow:
    """An upload whose second half comes when a test wants it."""

    def __init__(self, service, path):
        self.socket = socket.create_connection((service.host, service.port), timeout=DEADLINE_S)
        self.socket.sendall(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: 8\r\n\r\nhalf".encode())

    def finish(self):
        self.socket.sendall(b"full")
        with self.socket, self.socket.makefile("rb") as answer:
            return answer.readline()


def test_requests_under_way_end_first_and_others_wait(upgradable):
    service = upgradable()
    client = service.client_in("s")
    client.put("/v1/sessions/s/buffers/b", {"size": 8}).expect(201)
    idle = socket.create_connection((service.host, service.port), timeout=DEADLINE_S)
    slow = Slow(service, "/v1/sessions/s/buffers/b/data")
    follower = socket.create_connection((service.host, service.port), timeout=DEADLINE_S)
    follower.sendall(b"GET /v1/sessions/s/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert follower.recv(1000).startswith(b"HTTP/1.1 200")
    service.signal()
    told = b""
    while not told.endswith(b"0\r\n\r\n"):  # what has no end ends in order
        told += follower.recv(1000)
    waiting = socket.create_connection((service.host, service.port), timeout=DEADLINE_S)
    connections = (waiting, idle, follower)  # the first one is not accepted yet
    for one in connections:
        one.sendall(b"GET /v1/sessions/s/buffers/b/data HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert slow.finish().startswith(b"HTTP/1.1 204")
    for one in connections:
        with one.makefile("rb") as answer:
            told = answer.read()
            assert told.startswith(b"HTTP/1.1 200") and (one != waiting or told.endswith(b"\r\n\r\nhalffull"))
    until(lambda: service.starts() == 2)


def test_what_does_not_end_in_time_ends_the_upgrade(upgradable):
    service = upgradable("--drain-timeout", "1")
    client = service.client_in("s")
    client.put("/v1/sessions/s/buffers/b", {"size": 8}).expect(201)
    slow = Slow(service, "/v1/sessions/s/buffers/b/data")
    service.signal()
    service.logged("not upgraded, this process goes on: 1 requests")
    assert slow.finish().startswith(b"HTTP/1.1 204")
    assert client.get("/v1/sessions/s/buffers/b/data").body == b"halffull"
    client.put_cuda("/v1/sessions/s/modules/f", FAULTS).expect(201)
    path = client.post("/v1/sessions/s/launches", launch("endless", {"buf": "b"}, timeout_ms=600000), Prefer="wait=0").expect(202).headers["Location"]
    service.signal()
    service.logged("0 requests and work in 1 sessions")
    assert client.get(path).json()["state"] == "running"
    client.delete("/v1/sessions/s").expect(204)
    service.upgrade()


def test_a_stop_meanwhile_is_a_stop(upgradable):
    service = upgradable()
    client = service.client_in("s")
    client.put("/v1/sessions/s/buffers/b", {"size": 8}).expect(201)
    slow = Slow(service, "/v1/sessions/s/buffers/b/data")
    service.signal()
    service.logged("upgrading")
    service.terminate()
    service.logged("draining")
    assert slow.finish().startswith(b"HTTP/1.1 204")
    assert service.wait() == 0 and service.starts() == 1


def test_a_session_that_cannot_be_saved_ends_the_upgrade(upgradable):
    service = upgradable()
    client = service.client_in("bad")
    client.put_octets("/v1/sessions/bad/buffers/b", b"before").expect(201)
    client.put("/v1/sessions/good", {}).expect(201)
    client.put_octets("/v1/sessions/good/buffers/b", b"before").expect(201)
    (caller,) = (service.folder / "state").glob("[!.]*")
    (caller / "bad.part").mkdir()  # in the way of the file
    service.signal()
    service.logged("not every session could be saved")
    client.put_octets("/v1/sessions/good/buffers/b/data", b"after.").expect(204)
    assert (caller / "good.past.tar").exists() and not (caller / "good.tar").exists(), "what is saved is not what it will be at the end"
    (caller / "bad.part").rmdir()
    service.upgrade()
    assert client.get("/v1/sessions/good/buffers/b/data").body == b"after."
    assert client.get("/v1/sessions/bad/buffers/b/data").body == b"before"


def test_memory_that_a_client_maps_ends_the_upgrade(upgradable, tmp_path):
    path = str(tmp_path / "s")
    service = upgradable("--local-sharing", "--listen", f"unix:{path}")
    client = LocalClient(path)
    client.put("/v1/sessions/s", {}).expect(201)
    client.put("/v1/sessions/s/buffers/b", {"size": 4096}).expect(201)
    with client.share("/v1/sessions/s/buffers/b"):
        service.signal()
        service.logged("not upgraded, this process goes on: clients of this host map memory of 1 sessions")
        client.get("/v1/sessions/s").expect(200)
    client.delete("/v1/sessions/s/buffers/b").expect(204)
    service.upgrade()
    client.get("/v1/sessions/s").expect(200)


def test_an_executable_that_does_not_start_changes_nothing(upgradable, executable, tmp_path):
    tokens = pathlib.Path(token_file(tmp_path / "tokens.json", ada=["read", "write"]))
    service = upgradable("--tokens", str(tokens))
    client = service.client(Authorization="Bearer ada-secret")
    client.put("/v1/sessions/s", {}).expect(201)
    good, eventfds = pathlib.Path(executable).read_bytes(), service.eventfds()
    service.replace(b"\x7fELF is not enough")
    service.signal()
    service.logged("gpurestd cannot be executed, and this process goes on: Exec format error")
    service.replace(good)
    kept = tokens.read_text()
    tokens.write_text("[")
    service.signal()
    service.logged("gpurestd refuses to start, and this process goes on: gpurestd: --tokens " + str(tokens))
    tokens.write_text(kept)
    service.place.unlink()
    service.signal()
    service.logged("gpurestd cannot be executed, and this process goes on: No such file or directory")
    assert service.starts() == 1
    # One that passes all of that and finds out late that it cannot start a worker: the one before comes back.
    service.replace(good.replace(b"/proc/self/exe\0", b"/proc/self/bad\0"))
    service.upgrade()
    service.logged("this executable cannot serve, and the one before goes on")
    assert client.get("/v1/sessions/s").expect(200).json()["restored"]["from"] == "shutdown"
    assert service.eventfds() == eventfds
    service.replace(good)
    service.upgrade()
    assert service.eventfds() == eventfds
    client.get("/v1/sessions/s").expect(200)


def test_settings_with_which_nothing_can_serve_change_nothing(upgradable, tmp_path):
    """--check-config finds nothing, and the one before comes back with what it ran with."""
    settings = tmp_path / "gpurestd.conf"
    good = "backends = cpu\nlisten = 127.0.0.1:0\n"
    settings.write_text(good)
    service = upgradable("--config", str(settings), listen=None)
    client = service.client()
    client.put("/v1/sessions/s", {}).expect(201)
    client.put_octets("/v1/sessions/s/buffers/b", b"kept").expect(201)
    settings.write_text(good + "log_file = /nonexistent/log\n")
    service.upgrade()
    service.logged("cannot open --log-file")
    assert client.get("/v1/sessions/s/buffers/b/data").expect(200).body == b"kept"
    settings.write_text(good + f"listen = unix:{tmp_path}/nowhere/s\n")
    service.upgrade()
    assert client.get("/v1/sessions/s/buffers/b/data").expect(200).body == b"kept"
    assert service.stderr().count("this executable cannot serve, and the one before goes on") == 2
    settings.write_text(good + "log_level = warn\n")  # the file is read again on SIGHUP as before
    service.process.send_signal(signal.SIGHUP)
    until(lambda: client.get("/v1/admin/logging").expect(200).json()["levels"]["session"] == "warn")
    settings.write_text(good + "threads = 3\n")
    service.upgrade()
    assert client.get("/v1/sessions/s/buffers/b/data").expect(200).body == b"kept"
    assert service.stderr().count("this executable cannot serve") == 2


def test_the_folder_of_the_sessions_stays(executable, tmp_path):
    settings = tmp_path / "gpurestd.conf"
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    settings.write_text(f"state = {tmp_path}/first\n")
    service = Service(executable, tmp_path, "--config", str(settings), variables=NO_LIBRARIES)
    try:
        client = service.client_in("s")
        for wrong in (f"state = {tmp_path}/second\n", ""):
            settings.write_text(wrong)
            before = service.stderr().count("not upgraded: the sessions are in --state")
            service.process.send_signal(signal.SIGUSR2)
            until(lambda: service.stderr().count("not upgraded: the sessions are in --state") > before)  # noqa: B023
        client.get("/v1/sessions/s").expect(200)
        assert "restored" not in service.stderr()
    finally:
        service.stop()


def test_a_drained_service_stays_drained(upgradable):
    service = upgradable()
    client = service.client_in("s")
    client.post("/v1/admin/drain", {"exit": False}).expect(200)
    service.upgrade()
    assert client.get("/readyz").status == 503 and client.put("/v1/sessions/new", {}).code == "draining"
    client.get("/v1/sessions/s").expect(200)
    client.post("/v1/admin/resume", {}).expect(200)
    client.put("/v1/sessions/new", {}).expect(201)


def test_what_is_no_gpurestd(upgradable):
    service = upgradable()
    client = service.client_in("s")
    service.replace(b"#!/bin/sh\nexit 0\n")
    service.signal()
    service.logged("does not answer --check-config as gpurestd does, and this process goes on")
    service.replace(b"#!/bin/sh\nexit 3\n")
    service.signal()
    service.logged("refuses to start, and this process goes on: it does not say why")
    client.get("/v1/sessions/s").expect(200)
    service.replace(b"#!/bin/sh\nexec sleep 100000\n")
    service.signal()
    until(lambda: any(pathlib.Path(f"/proc/{child}/comm").read_text() == "sleep\n" for child in children_of(service.process.pid)))
    service.terminate()
    assert service.wait() == 0 and "has not ended" not in service.stderr(), "a stop waits for no check"


@pytest.mark.parametrize("text", ["1:2:0:0", "2:-:0:0,1,2", "-:-:0:9999999999,", "rubbish"])
def test_a_variable_of_somebody_else(upgradable, text):
    service = upgradable(variables={"GPUREST_UPGRADE": text})
    service.upgrade()
    assert " serving" in (service.folder / "stdout").read_text() and "upgrading" in service.stderr()


def test_settings_of_somebody_else(executable):
    done = subprocess.run([executable], env={"GPUREST_FORMER_SETTINGS": "2"}, capture_output=True, timeout=120, check=False)
    assert done.returncode == 2 and b"GPUREST_FORMER_SETTINGS is for the service alone" in done.stderr


def test_without_a_folder_there_is_no_upgrade(start):
    service = start()
    client = service.client_in("s")
    service.process.send_signal(signal.SIGUSR2)
    service.logged("not upgraded: without --state the sessions would be lost")
    client.get("/v1/sessions/s").expect(200)


def test_the_service_manager_sees_a_reload_of_the_same_process(upgradable, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    with manager.socket:
        service = upgradable(variables={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        assert manager.next()["READY"] == "1"
        service.signal()
        assert manager.next()["RELOADING"] == "1" and manager.next() == {"STATUS": "upgrading"}
        assert manager.next() == {"READY": "1", "STATUS": "serving"}
        service.stop()
        assert manager.next()["STOPPING"] == "1"


def test_addresses_come_and_go_with_the_settings(upgradable, tmp_path):
    paths = [str(tmp_path / name) for name in ("kept", "old", "new")]
    settings = tmp_path / "gpurestd.conf"
    settings.write_text(f"listen = unix:{paths[0]}\nlisten = unix:{paths[1]}\nlisten = 127.0.0.1:0\n")
    service = upgradable("--config", str(settings), listen=None)
    settings.write_text(f"listen = 127.0.0.1:{service.port}\nlisten = unix:{paths[2]}\nlisten = unix:{paths[0]}\n")
    service.upgrade()
    assert service.client().get("/readyz").status == 200
    for path in (paths[0], paths[2]):
        connection = UnixConnection(path)
        connection.request("GET", "/readyz")
        assert connection.getresponse().status == 200
        connection.close()
    with pytest.raises(ConnectionRefusedError):
        UnixConnection(paths[1]).request("GET", "/readyz")


def test_over_tls(upgradable, pki):  # noqa: F811
    service = upgradable("--tls-cert", str(pki / "server.pem"), "--tls-key", str(pki / "server.key"))
    trusted = ssl.create_default_context(cafile=pki / "ca.pem")
    loads = [Load(service, 2 * number + 1, None) for number in range(3)]  # new connections: those that are kept cannot be handed on
    for load in loads:
        load.make = lambda: http.client.HTTPSConnection("127.0.0.1", service.port, timeout=120, context=trusted)
        load.start()
    until(lambda: all(load.error or load.value > 3 for load in loads))
    service.upgrade()
    values = [load.value for load in loads]
    until(lambda: all(load.error or load.value > before + 3 for load, before in zip(loads, values)), service.stderr)
    for load in loads:
        load.stop()
    assert not [load.error for load in loads if load.error]


def test_in_a_container(contained, tmp_path):  # noqa: F811
    """Process 1 stays what it was, and passes the signal on."""
    one = contained("--state", str(tmp_path / "state"))
    client = client_of(one)
    client.put("/v1/sessions/s", {}).expect(201)
    os.kill(one.first, signal.SIGUSR2)
    until(lambda: "session s is restored" in (tmp_path / "stderr").read_text())
    client.get("/v1/sessions/s").expect(200)
