"""Duties of gpurestd to its operators: the health check, the first process of a container, and a service manager's notifications."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from service_under_test import Client, children_of, environment, is_sanitized, role_of, until
from test_start_and_auth import token_file
from test_tls import pki  # noqa: F401 (a fixture)

DEADLINE_S = 60


def check(executable, tmp_path, *arguments, **variables):
    return subprocess.run([executable, "healthcheck", *arguments], env={**environment(tmp_path), **variables}, capture_output=True, text=True,
                          timeout=DEADLINE_S)


# ---- the health check ----

def test_ready_by_every_form_of_address(start, executable, tmp_path):
    path = tmp_path / "s"
    service = start("--listen", f"unix:{path}")
    for address in (f"127.0.0.1:{service.port}", f":{service.port}", f"localhost:{service.port}", f"http://127.0.0.1:{service.port}", f"unix:{path}"):
        got = check(executable, tmp_path, address)
        assert (got.returncode, got.stdout, got.stderr) == (0, "ready\n", ""), address


def test_the_address_comes_from_the_settings(start, executable, tmp_path):
    service = start()
    assert check(executable, tmp_path, GPUREST_LISTEN=f"127.0.0.1:{service.port}").returncode == 0
    file = tmp_path / "gpurestd.conf"
    file.write_text(f"listen = 127.0.0.1:{service.port}\n")
    assert check(executable, tmp_path, GPUREST_CONFIG=str(file)).returncode == 0


def test_a_draining_service_is_not_ready(start, executable, tmp_path):
    service = start("--drain-timeout", "60")
    client = service.client_in("old")
    service.terminate()
    while client.get("/readyz").status == 200:
        pass
    got = check(executable, tmp_path, f"127.0.0.1:{service.port}")
    assert got.returncode == 1 and "not ready, status 503" in got.stderr and "draining" in got.stderr
    assert client.delete("/v1/sessions/old").status == 204
    assert service.wait() == 0


def test_nobody_there(executable, tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        got = check(executable, tmp_path, f"127.0.0.1:{s.getsockname()[1]}")
    assert got.returncode == 1 and "cannot connect" in got.stderr
    got = check(executable, tmp_path, f"unix:{tmp_path}/none")
    assert got.returncode == 1 and "cannot connect" in got.stderr


def test_somebody_else_there(executable, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as s:
        asking = subprocess.Popen([executable, "healthcheck", f"127.0.0.1:{s.getsockname()[1]}"], env=environment(tmp_path), stderr=subprocess.PIPE, text=True)
        peer, _ = s.accept()
        peer.sendall(b"220 mail.example.org ESMTP\r\n")
        peer.close()
        _, text = asking.communicate(timeout=DEADLINE_S)
    assert asking.returncode == 1 and ("is not HTTP" in text or "cannot receive" in text)


def test_one_who_never_answers_is_not_waited_for(executable, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as s:
        got = check(executable, tmp_path, f"127.0.0.1:{s.getsockname()[1]}")
    assert got.returncode == 1 and "no answer in time" in got.stderr


def test_one_who_speaks_no_tls_is_not_waited_for(executable, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as s:
        got = check(executable, tmp_path, f"https://127.0.0.1:{s.getsockname()[1]}")
    assert got.returncode == 1 and "no answer in time" in got.stderr


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_being_stopped_and_continued_is_no_failure(executable, tmp_path):
    """As when a container is paused, which interrupts some calls."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        asking = subprocess.Popen([executable, "healthcheck", f"127.0.0.1:{s.getsockname()[1]}"], env=environment(tmp_path), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        peer, _ = s.accept()
        assert peer.recv(4096).startswith(b"GET /readyz ")
        for wanted, sent in (("S", signal.SIGSTOP), ("T", signal.SIGCONT)):
            while (state := state_of(asking.pid)) != wanted:
                assert state != "Z", asking.communicate()
            asking.send_signal(sent)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        peer.close()
        out, text = asking.communicate(timeout=DEADLINE_S)
    assert (asking.returncode, out) == (0, "ready\n") or "no answer in time" in text, text


@pytest.mark.parametrize("arguments", [["--listen=:1"], ["127.0.0.1:1", "127.0.0.1:2"]])
def test_wrong_arguments(executable, tmp_path, arguments):
    got = check(executable, tmp_path, *arguments)
    assert got.returncode == 2 and got.stderr.startswith("usage: gpurestd healthcheck")


def test_an_address_that_is_none(executable, tmp_path):
    got = check(executable, tmp_path, "nonsense")
    assert got.returncode == 1 and "must be HOST:PORT" in got.stderr


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl, which makes the test's certificates, is not installed")
def test_over_tls(start, executable, tmp_path, pki):  # noqa: F811
    service = start("--tls-cert", str(pki / "server.pem"), "--tls-key", str(pki / "server.key"))
    address = f"127.0.0.1:{service.port}"
    assert check(executable, tmp_path, f"https://{address}").returncode == 0
    by_settings = check(executable, tmp_path, GPUREST_LISTEN=address, GPUREST_TLS_CERT=str(pki / "server.pem"), GPUREST_TLS_KEY=str(pki / "server.key"))
    assert by_settings.returncode == 0, by_settings.stderr
    assert check(executable, tmp_path, address).returncode == 1, "in the clear there is nothing to be had"
    plain = start()
    got = check(executable, tmp_path, f"https://127.0.0.1:{plain.port}")
    assert got.returncode == 1 and "no TLS" in got.stderr


# ---- as the first process of a container ----

class Contained:
    """gpurestd as process 1 of a new PID namespace."""

    def __init__(self, executable, folder, *arguments):
        self.ports = folder / "ports"
        command = ["unshare", "--pid", "--fork", "--mount-proc", executable, "--port-file", str(self.ports), "--backends=cpu", "--drain-timeout=20",
                   "--listen=127.0.0.1:0", *arguments]
        self.process = subprocess.Popen(command, env=environment(folder), cwd=folder, stdin=subprocess.DEVNULL, stderr=(folder / "stderr").open("w"))
        give_up = time.monotonic() + DEADLINE_S
        while not self.ports.exists():
            assert self.process.poll() is None and time.monotonic() < give_up, (folder / "stderr").read_text()
            time.sleep(0.02)
        (self.first,) = children_of(self.process.pid)
        self.port = int(self.ports.read_text().split()[0].rsplit(":", 1)[1])

    def kill(self):
        for pid in children_of(self.process.pid):
            os.kill(pid, signal.SIGKILL)
        self.process.wait(DEADLINE_S)


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.fixture
def contained(executable, tmp_path):
    if subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let process name spaces be made")
    running = []

    def start_one(*arguments):
        running.append(Contained(executable, tmp_path, *arguments))
        return running[-1]

    yield start_one
    for one in running:
        if one.process.poll() is None:
            one.kill()


def client_of(contained):
    return Client("127.0.0.1", contained.port)


def test_the_first_process_says_that_it_crashed_and_the_service_goes_on(executable, contained, tmp_path):
    """What is sent to it does not end it, as the kernel has it for first processes."""
    if is_sanitized(executable):
        pytest.skip("sanitizers report crashes themselves")
    one = contained()
    os.kill(one.first, signal.SIGSEGV)
    log = tmp_path / "stderr"
    until(lambda: len(re.findall(r"role=init .*frame \d+: ", log.read_text())) >= 2, log.read_text, DEADLINE_S)
    assert "init crashed: SIGSEGV" in log.read_text()
    assert client_of(one).get("/livez").status == 200


def test_it_passes_the_signal_on_and_ends_as_the_service_ends(contained):
    one = contained()
    client = client_of(one)
    assert client.put("/v1/sessions/old").status == 201
    os.kill(one.first, signal.SIGTERM)
    while client.get("/readyz").status == 200:
        pass
    assert client.delete("/v1/sessions/old").status == 204
    assert one.process.wait(DEADLINE_S) == 0


def test_it_ends_with_the_services_exit_code(contained):
    one = contained()
    (service,) = children_of(one.first)
    os.kill(service, signal.SIGKILL)
    assert one.process.wait(DEADLINE_S) == 128 + signal.SIGKILL


def test_orphans_are_reaped_there(contained):
    one = contained()
    # The shell's child becomes an orphan in the namespace, and then a child of process 1.
    subprocess.run(["nsenter", "--target", str(one.first), "--pid", "sh", "-c", "sleep 0.3 >/dev/null 2>&1 &"], check=True, timeout=DEADLINE_S)
    until(lambda: not any(name_of(pid) == "sleep" for pid in children_of(one.first)), "a zombie is left", DEADLINE_S)
    assert client_of(one).get("/readyz").status == 200


def test_the_health_check_finds_the_settings_of_process_one(contained, executable, tmp_path):
    one = contained(f"--listen=unix:{tmp_path}/s")
    got = subprocess.run(["nsenter", "--target", str(one.first), "--pid", "--mount", "--root", executable, "healthcheck"], env=environment(tmp_path),
                         capture_output=True, text=True, timeout=DEADLINE_S)
    assert (got.returncode, got.stdout) == (0, "ready\n"), got.stderr


# ---- a service manager's notifications ----

class Manager:
    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(name)
        self.socket.settimeout(DEADLINE_S)

    def next(self):
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())


@pytest.fixture(params=["a file", "an abstract name"])
def manager(request, tmp_path, monkeypatch):
    name = str(tmp_path / "notify") if request.param == "a file" else f"@gpurest-test-{os.getpid()}"
    made = Manager(name.replace("@", "\0"))
    yield made, name
    made.socket.close()


def started(executable, folder, name, *arguments):
    folder.mkdir()
    command = [executable, "--port-file", str(folder / "ports"), "--backends=cpu", "--drain-timeout=1", "--listen=127.0.0.1:0", *arguments]
    return subprocess.Popen(command, env={**environment(folder), "NOTIFY_SOCKET": name}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=(folder / "stderr").open("w"))


def test_the_manager_is_told_of_start_reload_and_stop(executable, tmp_path, manager):
    told, name = manager
    process = started(executable, tmp_path / "service", name, "--tokens", str(token_file(tmp_path / "tokens.json", ada=["read"])))
    try:
        assert told.next() == {"READY": "1", "STATUS": "serving"}
        assert (tmp_path / "service/ports").exists(), "READY before it serves"
        before = time.monotonic_ns() // 1000
        process.send_signal(signal.SIGHUP)
        reloading = told.next()
        assert reloading["RELOADING"] == "1" and int(reloading["MONOTONIC_USEC"]) >= before
        assert told.next() == {"READY": "1"}
        process.send_signal(signal.SIGTERM)
        assert told.next() == {"STOPPING": "1", "STATUS": "draining"}
        assert process.wait(DEADLINE_S) == 0
    finally:
        process.kill()
        process.wait()


def programs_of(parent):
    """The children that have executed their own program: between fork and exec a child shows its parent's arguments and environment."""
    return [pid for pid in children_of(parent) if role_of(pid).startswith(b"--role=")]


def test_workers_do_not_know_the_manager(executable, tmp_path, manager):
    told, name = manager
    process = started(executable, tmp_path / "service", name)
    try:
        assert told.next()["READY"] == "1"
        for pid in until(lambda: programs_of(process.pid), seconds=DEADLINE_S):
            assert b"NOTIFY_SOCKET" not in pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    finally:
        process.terminate()
        assert process.wait(DEADLINE_S) == 0


@pytest.mark.parametrize("name", ["/nonexistent/socket", "relative", "@" + "x" * 200])
def test_a_manager_that_is_not_there_is_no_reason_to_stop(executable, tmp_path, name):
    process = started(executable, tmp_path / "service", name)
    give_up = time.monotonic() + DEADLINE_S
    while not (tmp_path / "service/ports").exists():
        assert process.poll() is None and time.monotonic() < give_up
        time.sleep(0.02)
    process.terminate()
    assert process.wait(DEADLINE_S) == 0
    assert "service manager" in (tmp_path / "service/stderr").read_text()


def test_an_open_service_says_so_in_its_log(start):
    service = start("--insecure-no-auth", "--allow-plaintext", "--listen=0.0.0.0:0")
    assert "no tokens are configured: everyone who reaches 0.0.0.0:0 can use this service" in service.logged("no tokens are configured")
    assert "no tokens" not in start().stderr()
