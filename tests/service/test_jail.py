"""The workers' jail: seen from outside, in use, and on a machine that does not support it."""
import os
import pathlib
import platform
import re
import subprocess
import sys

import pytest

from conftest import VADD, floats
from kernels import launch_vadd
from service_under_test import Service, is_sanitized

ROOT = pathlib.Path(__file__).resolve().parents[2]
ON_CPU = os.environ.get("GPUREST_TEST_BACKENDS", "cpu") == "cpu"


@pytest.fixture(scope="session")
def sanitized(executable):
    return is_sanitized(executable)


def workers_of(service):
    """Process ids of the device workers that may serve callers."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            line = (folder / "cmdline").read_bytes().split(b"\0")
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            continue
        if parent == service.process.pid and b"--role=worker" in line and b"--device-monitor" not in line:
            found.append(int(folder.name))
    return found


def status_of(pid):
    return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


def test_devices_tell_what_their_workers_are_held_to(client, sanitized):
    for device in client.get("/v1/devices").json()["items"]:
        told = device["worker_sandbox"]
        if device["backend"] == "cpu":
            assert told == ("deny-list" if sanitized else "allow-list")
        else:
            assert told in ("deny-list", "allow-list")


def test_a_sessions_worker_is_locked_as_seen_from_outside(start, sanitized):
    service = start("--pool-size", "0", libraries=True)
    client = service.client_in("s")
    (pid,) = workers_of(service)
    status = status_of(pid)
    assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1"
    if ON_CPU and os.geteuid() == 0:
        own = str(0x70000000 + pid)  # the number that a user namespace would have; else nobody
        assert set(status["Uid"].split()) == set(status["Gid"].split()) and set(status["Uid"].split()) in ({own}, {"65534"})
        assert set(status["CapEff"]) == set(status["CapPrm"]) == {"0"}
    if ON_CPU and not sanitized and os.geteuid() == 0:
        assert sorted(map(int, os.listdir(f"/proc/{pid}/fd"))) == [0, 1, 2, 4]


@pytest.mark.skipif(not ON_CPU, reason="a driver keeps its limits")
def test_a_sessions_worker_has_limits_of_memory_and_threads(start, sanitized):
    service = start("--pool-size", "0", libraries=True)
    client = service.client_in("s")
    (pid,) = workers_of(service)
    if sanitized:
        pytest.skip("a sanitizer's shadow is memory by the terabyte: no limit holds there")
    limits = {line[:26].strip(): line[26:].split() for line in pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines()}
    total = client.get("/v1/devices/cpu:0").json()["memory"]["total_bytes"] if ON_CPU else 0
    assert 0 < int(limits["Max data size"][0]) <= total * 2 + (5 << 30) + (os.cpu_count() << 30)
    assert limits["Max data size"][0] == limits["Max data size"][1]
    assert int(limits["Max address space"][1]) < 4 << 40
    if os.geteuid() == 0 and status_of(pid)["Uid"].split()[0] != "65534":
        assert int(limits["Max processes"][1]) <= 2048


def test_a_thousand_launches_under_the_lock(client, vadd):
    """Repeated memory, code and launches stay within the list of system calls."""
    for round_ in range(10):
        for _ in range(100):
            assert client.post(vadd + "/launches", launch_vadd()).status == 200
        assert client.put(f"{vadd}/buffers/more", {"size": 1 << (12 + round_)}).status == 201
        assert client.put_cuda(f"{vadd}/modules/m{round_}", VADD.replace("vadd", f"vadd{round_}")).status == 201
        assert client.delete(f"{vadd}/buffers/more").status == 204
        assert client.delete(f"{vadd}/modules/m{round_}").status == 204
    assert client.get(vadd + "/buffers/c/data").body == floats(3 * i for i in range(1024))


# A filter before the service's own, as a container may have: it makes seccomp unavailable.
WITHOUT_SECCOMP = """#!{python}
import ctypes, os, struct, sys
SYS_PRCTL, SYS_SECCOMP, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 157, 317, 22, 38
LOAD, EQUAL, RETURN, ALLOW, ERRNO = 0x20, 0x15, 0x06, 0x7fff0000, 0x00050000
rows = [(LOAD, 0, 0, 0),
        (EQUAL, 0, 1, SYS_SECCOMP), (RETURN, 0, 0, ERRNO | 38),
        (EQUAL, 0, 3, SYS_PRCTL), (LOAD, 0, 0, 16),
        (EQUAL, 0, 1, PR_SET_SECCOMP), (RETURN, 0, 0, ERRNO | 22),
        (RETURN, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
assert libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0) == 0
os.execv({executable!r}, [{executable!r}, *sys.argv[1:]])
"""


@pytest.fixture
def executable_without_seccomp(executable, tmp_path):
    if platform.machine() != "x86_64":
        pytest.skip("the numbers of system calls are those of x86_64")
    wrapper = tmp_path / "gpurestd"
    wrapper.write_text(WITHOUT_SECCOMP.format(python=sys.executable, executable=executable))
    wrapper.chmod(0o755)
    return str(wrapper)


def test_without_seccomp_it_does_not_start(executable_without_seccomp, tmp_path):
    done = subprocess.run([executable_without_seccomp, "--listen", "127.0.0.1:0", "--backends", "cpu", "--cache", "none"], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 1
    assert "not started" in done.stderr and "--allow-no-sandbox" in done.stderr
    assert "serving" not in done.stdout


def test_without_seccomp_it_serves_when_told_to_and_says_so(executable_without_seccomp, tmp_path):
    folder = tmp_path / "service"
    folder.mkdir()
    service = Service(executable_without_seccomp, folder, "--allow-no-sandbox")
    try:
        client = service.client_in("s")
        assert {device["worker_sandbox"] for device in client.get("/v1/devices").json()["items"]} == {"none"}
        assert client.put_cuda("/v1/sessions/s/modules/m", VADD).status in (201, 503)  # 503: no NVRTC here
        service.logged("without a sandbox")
    finally:
        service.stop()


def rows_of(path, kind):
    return set(re.findall(rf"^{kind}\((\w+)\)", pathlib.Path(path).read_text(), re.M))


@pytest.mark.skipif(not ON_CPU, reason="asks for the list of workers without a driver")
def test_a_worker_at_work_makes_listed_system_calls_only(executable, sanitized, tmp_path):
    learn = pathlib.Path(executable).parents[1] / "tests" / "fault" / "learn_syscalls"
    if not learn.exists() or sanitized:
        pytest.skip("needs learn_syscalls, and a build without sanitizers")
    wrapper, learnt, folder = tmp_path / "gpurestd", tmp_path / "learnt", tmp_path / "service"
    wrapper.write_text(f'#!/bin/sh\nexec {learn} -o {learnt} -- {executable} "$@"\n')
    wrapper.chmod(0o755)
    folder.mkdir()
    service = Service(str(wrapper), folder)
    try:
        client = service.client()
        session = "/v1/sessions/s"
        assert client.put(session).status == 201
        for name in "abc":
            assert client.put(f"{session}/buffers/{name}", {"size": 4096}).status == 201
        if client.put_cuda(session + "/modules/m", VADD).status == 201:
            for _ in range(20):
                assert client.post(session + "/launches", launch_vadd()).status == 200
        assert client.delete(session).status == 204
    finally:
        service.stop()
    calls = rows_of(learnt, "CALL")
    checked = {"read", "write", "mmap", "mprotect", "clone", "clone3", "tgkill", "openat", "mbind"}  # device_filter.c checks their arguments, or refuses
    assert "futex" in calls
    assert calls <= rows_of(ROOT / "service" / "worker" / "jail" / "device_calls_plain.def", "CALL") | checked
