"""Ctrl-C and other ends of the tool while it waits: nothing of it goes on at the service, and the next command finds nothing left."""
import contextlib
import os
import signal
import socket
import subprocess
import threading
import time

import pytest
from service_under_test import until

DEADLINE_S = 120
ENDLESS = 'extern "C" __global__ void endless(volatile int *p) { for (;;) *p = *p + 1; }'
FILL = 'extern "C" __global__ void fill(float *p, float value, int n) { if (threadIdx.x < n) p[threadIdx.x] = value; }'
SHAPE = ("--grid", "1", "--block", "8")


def seconds_used(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def endless(tool, service, tmp_path):
    """An endless run of the tool, and its worker."""
    (tmp_path / "endless.cu").write_text(ENDLESS)
    before = {pid: seconds_used(pid) for pid in service.children()}
    process = subprocess.Popen([tool, "run", "endless.cu", "endless", *SHAPE, "--out", "x:4"], cwd=tmp_path, stderr=subprocess.PIPE,
                               env={**os.environ, "HOME": str(tmp_path), "GPUREST_URL": f"http://127.0.0.1:{service.port}"})
    worker = until(lambda: next((pid for pid in service.children() if seconds_used(pid) > before.get(pid, 0) + 0.5), None), "a computing worker")
    yield process, worker
    process.kill()
    process.wait()
    process.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_next_run_knows_nothing_of_it(endless, gpurest, service, tmp_path, number):
    process, worker = endless
    process.send_signal(number)
    assert process.wait(DEADLINE_S) == (-9 if number == signal.SIGKILL else 128 + number)
    (tmp_path / "fill.cu").write_text(FILL)
    done = gpurest("run", "fill.cu", "fill", *SHAPE, "--out", "y.npy:f4[8]", "--arg", "f32:2.5", "--arg", "i32:8")
    assert done.returncode == 0, done.stderr
    until(lambda: worker not in service.children(), "the end of the worker")


def test_a_session_of_its_own_ends_with_it(tool, service, tmp_path):
    client = service.client()

    def sessions():
        return {item["id"] for item in client.get("/v1/sessions").json()["items"]}

    before = sessions()
    process = subprocess.Popen([tool, "latency", "-c", "100000"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env={**os.environ, "HOME": str(tmp_path), "GPUREST_URL": f"http://127.0.0.1:{service.port}"})
    until(lambda: sessions() - before or process.poll() is not None, "the tool's session")
    process.send_signal(signal.SIGINT)
    assert process.wait(DEADLINE_S) == 130, process.stderr.read()
    process.stderr.close()
    until(lambda: not sessions() - before, "the end of the tool's session")
    client.close()


class Forwarder:
    """Forwards connections to the service; calls `meet` once, before it forwards the answer that creates a session."""

    def __init__(self, service, meet):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address, self.port, self.meet = (service.host, service.port), self.listener.getsockname()[1], meet
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            here, _ = self.listener.accept()
            there = socket.create_connection(self.address)
            threading.Thread(target=self.carry, args=(here, there), daemon=True).start()
            threading.Thread(target=self.carry, args=(there, here, b" 201 "), daemon=True).start()

    def carry(self, source, target, word=None):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if word and word in data and self.meet:
                    meet, self.meet = self.meet, None
                    meet()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


def test_a_session_that_is_being_made_ends_with_it(tool, service, tmp_path):
    """The signal comes when the service has created it but the tool does not know yet."""
    client = service.client()
    before = {item["id"] for item in client.get("/v1/sessions").json()["items"]}

    def interrupt():
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)

    forwarder = Forwarder(service, interrupt)
    process = subprocess.Popen([tool, "latency", "-c", "100000"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, "HOME": str(tmp_path), "GPUREST_URL": f"http://127.0.0.1:{forwarder.port}"})
    assert process.wait(DEADLINE_S) == 130
    until(lambda: not {item["id"] for item in client.get("/v1/sessions").json()["items"]} - before, "the end of the tool's session")
    client.close()


def test_an_argument_of_the_other_kind_is_named(gpurest, tmp_path):
    (tmp_path / "fill.cu").write_text(FILL)
    for value, index in (("i32:2", 1), ("f32:8", 2)):
        args = ["f32:2.5", "i32:8"]
        args[index - 1] = value
        done = gpurest("run", "fill.cu", "fill", *SHAPE, "--out", "y.npy:f4[8]", "--arg", args[0], "--arg", args[1])
        assert done.returncode == 1 and f"argument {index} of fill is {value[:3]}".encode() in done.stderr, done.stderr
        assert not (tmp_path / "y.npy").exists()
