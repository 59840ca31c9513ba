"""What each role says when it crashes, and that the service goes on where it was not the service itself."""
import os
import pathlib
import re
import signal
import time

import pytest

from conftest import VADD
from service_under_test import Service, is_sanitized, until

HEAD = re.compile(r"^time=\S+Z level=critical role=(\S+) pid=(\d+) category=(\S+) message=\"(\S+) crashed: (SIG\w+) (.*)\"$", re.M)
FRAME = re.compile(r"^time=\S+Z level=critical role=\S+ pid=(\d+) category=\S+ message=\"frame (\d+): (\S+\+0x[0-9a-f]+|0x[0-9a-f]+)\"$", re.M)


@pytest.fixture(autouse=True)
def unsanitized(executable):
    if is_sanitized(executable):
        pytest.skip("sanitizers report crashes themselves")


def crash(service, pid, number=signal.SIGSEGV):
    os.kill(pid, number)
    return told(service, pid)


def told(service, pid, frames_min=3):
    """(role of the line, category, role as it says itself, signal, the rest) of that process's crash."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        text = service.stderr()
        heads = [found for found in HEAD.findall(text) if found[1] == str(pid)]
        frames = [found for found in FRAME.findall(text) if found[0] == str(pid)]
        if heads and len(frames) >= frames_min:
            assert len(heads) == 1 and [int(number) for _, number, _ in frames] == list(range(len(frames)))
            assert any(where.startswith("gpurestd+") for _, _, where in frames), frames
            role, _, category, own, signal_name, rest = heads[0]
            return role, category, own, signal_name, rest
        time.sleep(0.02)
    raise AssertionError(service.stderr()[-6000:])


def by_argument(service, argument):
    """Process ids of its children that have it, once there are some."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        found = set()
        for pid in service.processes():
            try:
                if argument in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    found.add(pid)
            except (FileNotFoundError, ProcessLookupError):
                pass
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(argument)


def has_ended(pid):
    """Whether or not its parent has seen it."""
    try:
        return not pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_front_end(executable, tmp_path, form):
    service = Service(executable, tmp_path, "--log-format", form)
    service.process.send_signal(signal.SIGSEGV)
    assert service.process.wait(60) == -signal.SIGSEGV, "it ends as it would have without a word"
    if form == "text":
        assert told(service, service.process.pid)[:4] == ("frontend", "frontend", "frontend", "SIGSEGV")
    else:
        assert re.search(r'"level":"critical","role":"frontend","pid":%d,"category":"frontend","message":"frontend crashed: SIGSEGV' % service.process.pid,
                         service.stderr())


def test_the_front_end_into_its_file(executable, tmp_path):
    path = tmp_path / "log"
    service = Service(executable, tmp_path, "--log-file", str(path))
    service.process.send_signal(signal.SIGABRT)
    assert service.process.wait(60) == -signal.SIGABRT
    text = path.read_text()
    assert HEAD.search(text)[5] == "SIGABRT" and len(FRAME.findall(text)) >= 3 and "crashed" not in service.stderr()


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT])
def test_a_device_worker(start, number):
    """SIGSEGV and SIGBUS are there the cpu device's, who looks whether a kernel caused them; its lock allows all that is needed."""
    service = start("--pool-size", "0")
    client = service.client()
    monitors = by_argument(service, b"--device-monitor")
    assert client.put("/v1/sessions/s").status == 201
    (pid,) = service.children() - monitors
    assert crash(service, pid, number)[:4] == ("worker", "worker", "worker", number.name)
    assert client.post("/v1/sessions/s/buffers", {"size": 4}).code in ("worker_lost", "session_faulted")
    assert client.delete("/v1/sessions/s").status == 204
    assert client.put("/v1/sessions/t").status == 201 and client.post("/v1/sessions/t/buffers", {"size": 4}).status == 201
    client.close()


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_a_device_monitor(start, executable, backend):
    library = pathlib.Path(executable).parents[1] / "tests" / "support" / "libcuda.so.1"
    if backend == "cuda" and not library.is_file():
        pytest.skip("the fake driver is not built")
    service = start("--backends", backend, *(["--libcuda", str(library)] if backend == "cuda" else []))
    (pid,) = by_argument(service, b"--device-monitor")
    assert crash(service, pid)[:4] == ("worker", "worker", "device-monitor", "SIGSEGV")
    assert by_argument(service, b"--device-monitor") != {pid}
    client = service.client_in("s")
    client.close()


def test_a_compiler_that_waits(start):
    """It may write nowhere but to the log, and that only itself: what its library writes is lost."""
    service = start(warm_compiler=True)
    (pid,) = by_argument(service, b"compile-worker")
    role, category, own, name, rest = crash(service, pid)
    assert (role, category, own, name) == ("compile-worker", "compile", "compile-worker", "SIGSEGV") and "doing: " in rest
    until(lambda: has_ended(pid), "the compiler does not end")  # it tells of that before
    client = service.client_in("s")
    assert client.put_cuda("/v1/sessions/s/modules/m", VADD).status == 201
    client.close()


def test_a_compiler_that_its_source_crashes(start):
    service = start()
    client = service.client_in("s")
    for _ in range(10):
        crashed = client.put_cuda("/v1/sessions/s/modules/m", "__device__ char x[1 << 30] = {1};\n")
        if crashed.code != "compile_timeout":  # under load it may not come to its crash in time
            break
    assert crashed.code == "compiler_crashed"
    heads = HEAD.findall(service.logged("compile-worker crashed"))
    assert len(heads) == 1 and told(service, heads[0][1])[4].endswith("doing: compiling CUDA C++")
    assert client.put_cuda("/v1/sessions/s/modules/m", VADD).status == 201
    client.close()
