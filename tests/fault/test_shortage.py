"""Missing descriptors and processes: what needs them is refused, /readyz says why, no device is blamed, and everything recovers."""
import os
import pathlib
import resource
import signal
import time

import pytest

import workload
from campaign import Campaign, until
from driver import Driver
from kernels import fill7

NO_FILES = 8           # all descriptors below are in use as long as the service runs
FILES_OF_DRIVER = 300  # more than any limit that is set here


def limit_files(service, soft, hard=None):
    resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (soft, hard or resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)[1]))


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def no_worker_left(service):
    """Kills those that live. One that was being started a moment ago may come up after the first look."""
    left = service.children()
    kill_all(left)
    return not left


def refusal_of_a_session(service, client):
    """None when there was one: a worker whose descriptors were open before there were none has come up, and is gone now."""
    answer = client.put("/v1/sessions/more")
    if answer.status != 201:
        return answer
    client.delete("/v1/sessions/more")
    no_worker_left(service)
    return None


def device(client):
    return client.get("/v1/devices").json()["items"][0]


def not_ready(client):
    """The reason, or None when ready."""
    answer = client.get("/readyz")
    return answer.json()["detail"] if answer.status == 503 else None


@pytest.fixture
def driven(executable, start, tmp_path):
    driver = Driver(executable, tmp_path)
    service = start("--backends", "cuda", "--libcuda", str(driver.path), "--pool-size", "1")
    client = service.client()
    until(lambda: client.get("/readyz").status == 200, "never ready")
    return service, driver, client


def test_no_descriptors_left(start):
    """What needs one is refused while there are none, and works again once there are."""
    service = start("--pool-size", "0")
    client = service.client()
    workload.prepare(client)
    pid = service.process.pid
    usual = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    with Campaign("descriptors used up", 2, 0.02) as c:
        while c.due():
            spare = c.random.randrange(4)
            highest = max(int(fd) for fd in os.listdir(f"/proc/{pid}/fd"))
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (highest + 1 + spare, usual[1]))
            c.fault()
            refused = client.put("/v1/sessions/more")
            assert refused.status == 201 or refused.code in ("out_of_memory", "no_worker", "overloaded"), refused
            assert client.post(workload.S + "/launches", fill7()).status == 200, "what needs none goes on"
            compiled = client.put_cuda(workload.S + "/modules/n", f"extern \"C\" __global__ void n{c.injected}() {{}}")
            assert compiled.status == 201 or compiled.status in (422, 503) and compiled.code, compiled
            resource.prlimit(pid, resource.RLIMIT_NOFILE, usual)
            client.delete("/v1/sessions/more"), client.delete(workload.S + "/modules/n")
            until(lambda: client.put("/v1/sessions/more").status == 201, "does not recover")
            assert client.delete("/v1/sessions/more").status == 204
            assert service.client().get("/livez").status == 200
            c.recovered()


def test_workers_that_cannot_be_started_make_no_device_sick(start):
    """The front-end has no descriptor left to start one with."""
    service = start("--pool-size", "1")
    client = service.client()
    until(lambda: client.get("/readyz").status == 200, "never ready")
    usual = resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)
    with Campaign("no descriptor to start a worker with", 2, 0.01) as c:
        while c.due():
            limit_files(service, NO_FILES)
            c.fault()
            until(lambda: no_worker_left(service) and "no worker can be started" in (not_ready(client) or ""), lambda: f"not said: {not_ready(client)}")
            refused = until(lambda: refusal_of_a_session(service, client), "sessions are made on and on")
            assert refused.status == 503 and refused.code in ("no_worker", "out_of_memory"), refused
            assert int(refused.headers["Retry-After"]) >= 1
            assert device(client)["state"] == "healthy"
            resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, usual)
            until(lambda: client.get("/readyz").status == 200, lambda: f"stays unready: {not_ready(client)}", 60)
            assert client.put("/v1/sessions/more").status == 201 and client.delete("/v1/sessions/more").status == 204
            c.recovered()
    assert "quarantined" not in service.stderr() and "suspect" not in service.stderr()


def test_without_a_device_monitor_the_shortage_is_said(start):
    """A warm worker is left, so sessions can be created; but nobody watches the device."""
    service = start("--pool-size", "1")
    client = service.client()
    until(lambda: client.get("/readyz").status == 200 and client.get("/readyz?verbose=1").json()["devices"][0]["workers_warm"] == 1, "never ready")
    usual = resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)
    limit_files(service, NO_FILES)
    kill_all(pid for pid in service.children() if b"--device-monitor" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())
    until(lambda: "no worker can be started" in (not_ready(client) or ""), lambda: f"not said: {not_ready(client)}")
    assert len(service.children()) == 1
    resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, usual)
    until(lambda: client.get("/readyz").status == 200, lambda: f"stays unready: {not_ready(client)}")


def test_a_worker_raises_the_limit_that_it_inherits(driven):
    service, driver, client = driven
    limit_files(service, 200)
    driver.says(f"cuInit:0:files{FILES_OF_DRIVER}")
    old = service.children()
    kill_all(old)
    until(lambda: len(service.children() - old) == 2 and client.get("/readyz").status == 200, lambda: f"not ready: {not_ready(client)}")
    workload.prepare(client)
    assert client.post(workload.S + "/launches", fill7()).status == 200
    assert device(client)["state"] == "healthy"
    assert "quarantined" not in service.stderr() and "suspect" not in service.stderr()


def test_a_driver_that_cannot_open_its_files_is_not_blamed(driven):
    service, driver, client = driven
    limit_files(service, 200, 200)
    driver.says(f"cuInit:0:files{FILES_OF_DRIVER}")
    kill_all(service.children())
    until(lambda: "not enough to open its device" in (not_ready(client) or ""), lambda: f"not said: {not_ready(client)}")
    assert device(client)["state"] == "healthy"
    refused = client.put("/v1/sessions/more")
    assert refused.status == 503 and refused.code == "no_worker" and "files" in refused.json()["detail"], refused
    driver.says("")
    until(lambda: client.get("/readyz").status == 200, lambda: f"stays unready: {not_ready(client)}", 60)
    assert client.put("/v1/sessions/more").status == 201
    assert "quarantined" not in service.stderr() and "suspect" not in service.stderr()


def test_workers_killed_before_they_are_ready_make_no_device_sick(start):
    service = start("--pool-size", "2")
    client = service.client()
    workload.prepare(client)
    with Campaign("workers killed while they start", 3, 0.01) as c:
        known, seen, began = service.children(), set(), time.monotonic()
        while c.due():
            fresh = service.children() - known
            if fresh:
                kill_all(fresh)
                c.fault(len(fresh - seen))
                seen |= fresh
            else:
                kill_all(list(known)[:1])
                known &= service.children()
            time.sleep(0.002)
        assert len(seen) <= 10 * (time.monotonic() - began) + 10, "workers are started without a pause in between"
        until(lambda: client.get("/readyz").status == 200, lambda: f"stays unready: {not_ready(client)}", 60)
        c.recovered(c.injected)
    assert "quarantined" not in service.stderr()
    assert device(client)["state"] == "healthy"
