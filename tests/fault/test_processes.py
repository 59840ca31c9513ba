"""Every kind of process is killed or stopped at any moment, under load: right answers from all others, no orphan left."""
import http.client
import os
import pathlib
import resource
import signal
import threading
import time

import pytest

import workload
from campaign import FULL, Campaign, until
from kernels import fill7, launch, launch_vadd
from service_under_test import children_of
from workload import VADD, floats


def role_of(pid):
    """"worker" (warm, used, or a device's monitor), "compile-worker" or the like; "" when it is gone, or not yet more than a copy of the front-end."""
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")[1:2]
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return words[0].removeprefix("--role=") if words and words[0].startswith(("--role=", "compile-worker")) else ""


def descendants(pid):
    found = set()
    for child in children_of(pid):
        found |= {child} | descendants(child)
    return found


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class Neighbour(threading.Thread):
    """Computes in its own session as long as it lives. Records wrong numbers; a lost worker is not its fault."""

    def __init__(self, service, number):
        super().__init__(daemon=True)
        self.client, self.path, self.stop = service.client(), f"/v1/sessions/neighbour{number}", threading.Event()
        self.rounds, self.wrong, self.lost = 0, [], 0

    def set_up(self):
        if self.client.put(self.path).status not in (200, 201):
            return False
        made = [self.client.put_cuda(self.path + "/modules/m", VADD)]
        made += [self.client.put_octets(f"{self.path}/buffers/{name}", floats(range(1024))) for name in ("a", "b")]
        made.append(self.client.put(self.path + "/buffers/c", {"size": 4096}))
        return all(answer.status in (200, 201) for answer in made)

    def compute(self):
        answer = self.client.post(self.path + "/launches", launch_vadd())
        if answer.status == 200:
            got = self.client.get(self.path + "/buffers/c/data")
            if got.status == 200 and got.body != floats(2 * i for i in range(1024)):
                self.wrong.append(got.body[:64])
            self.rounds += 1
        else:
            self.lost += 1
            self.client.post(self.path + "/reset")
            self.set_up()

    def run(self):
        ready = False
        while not self.stop.is_set():
            try:
                if ready:
                    self.compute()
                else:
                    ready = self.set_up()
            except (http.client.HTTPException, OSError):
                self.client.close()
                ready = False


def compiles(service, stop):
    client, number = service.client(), 0
    while not stop.is_set():
        number += 1
        try:
            client.put_cuda(f"{workload.S}/modules/c{number % 8}", f"extern \"C\" __global__ void c{number}(int *p) {{ *p = {number}; }}")
            client.delete(f"{workload.S}/modules/c{number % 8}")
        except (http.client.HTTPException, OSError):
            client.close()


@pytest.fixture
def busy(start):
    """A service with two computing neighbours, one that compiles, and a session to be disturbed."""
    service = start("--pool-size", "2", "--cache", "none")
    workload.prepare(service.client())
    stop = threading.Event()
    threads = [Neighbour(service, i) for i in range(2)] + [threading.Thread(target=compiles, args=(service, stop), daemon=True)]
    for thread in threads:
        thread.start()
    yield service, threads[:2]
    stop.set()
    for neighbour in threads[:2]:
        neighbour.stop.set()
    for thread in threads:
        thread.join(60)
    assert not any(neighbour.wrong for neighbour in threads[:2]), [neighbour.wrong for neighbour in threads[:2]]


def computes(client):
    """On the disturbed session, which is reset if needed."""
    try:
        if client.get(workload.S).json()["state"] != "ready":
            if client.post(workload.S + "/reset").status != 200:
                return False
            workload.prepare(client)
        return client.post(workload.S + "/launches", fill7()).status == 200
    except (AssertionError, http.client.HTTPException, OSError):
        client.close()
        return False


def any_process(c, service, kinds):
    """Chooses a kind first, so that short-lived processes are hit as well."""
    by_role = {}
    for pid in descendants(service.process.pid):
        by_role.setdefault(role_of(pid), []).append(pid)
    by_role.pop("", None)
    kinds |= set(by_role)
    return c.random.choice(by_role[c.random.choice(sorted(by_role))]) if by_role else None


@pytest.mark.parametrize("how,seconds,share", [("killed", 6, 0.18), ("stopped", 4, 0.1)])
def test_processes_under_load(busy, how, seconds, share):
    service, neighbours = busy
    client, kinds = service.client(), set()
    until(lambda: all(neighbour.rounds for neighbour in neighbours), "the neighbours do not compute", 60)
    with Campaign(f"processes {how}", seconds, share) as c:
        while c.due():
            pid = any_process(c, service, kinds)
            if pid is None:
                continue
            try:
                os.kill(pid, signal.SIGKILL if how == "killed" else signal.SIGSTOP)
            except ProcessLookupError:
                continue
            c.fault()
            if how == "stopped":
                time.sleep(c.random.choice([0.01, 0.1, 1.0 if FULL else 0.3]))
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass
            until(lambda: computes(client), "the session does not come back", 60)
            assert service.process.poll() is None, service.stderr()[-4000:]
            c.recovered()
        c.note = f"{', '.join(sorted(kinds))}; neighbours: {sum(n.rounds for n in neighbours)} rounds, 0 wrong"
        assert not any(neighbour.wrong for neighbour in neighbours)
    until(lambda: client.get("/readyz").status == 200, "not ready again", 60)


@pytest.mark.skipif(not FULL, reason="takes a call's whole deadline, 30 s")
def test_a_worker_that_stays_stopped_is_replaced(start):
    service = start("--pool-size", "0")
    client = service.client()
    with Campaign("workers stopped for good", 3, 0.03) as c:
        while c.due():
            before = service.children()
            assert client.put("/v1/sessions/k").status == 201
            pid = (service.children() - before).pop()
            workload_ready = client.put_cuda("/v1/sessions/k/modules/f", workload.FAULTS)
            assert workload_ready.status == 201 and client.put("/v1/sessions/k/buffers/x", {"size": 64}).status == 201
            os.kill(pid, signal.SIGSTOP)
            c.fault()
            sent = client.post("/v1/sessions/k/launches", fill7(timeout_ms=200), Prefer="respond-async")
            done = client.get(sent.headers["Location"], Prefer="wait=50").json()
            assert done["state"] == "failed" and done["problem"]["code"] in ("execution_timeout", "worker_lost"), done
            assert client.post("/v1/sessions/k/reset").status == 200 and is_gone(pid)
            c.recovered()
            assert client.delete("/v1/sessions/k").status == 204


@pytest.mark.skipif(not FULL, reason="takes a canary's whole deadline, 10 s")
def test_a_device_monitor_that_stays_stopped_is_replaced(start):
    service = start("--pool-size", "0")
    client = service.client()
    with Campaign("monitors stopped for good", 3, 0.02) as c:
        while c.due():
            until(lambda: len(service.children()) == 1 and client.get("/readyz").status == 200, "no monitor", 60)
            monitor = next(iter(service.children()))
            os.kill(monitor, signal.SIGSTOP)
            c.fault()
            until(lambda: client.get("/readyz").status == 503, "nobody notices", 30)
            until(lambda: is_gone(monitor) and client.get("/readyz").status == 200, "it is not replaced", 60)
            assert client.get("/v1/devices/cpu:0").json()["state"] == "healthy"
            c.recovered()


def test_the_front_end_dies_and_leaves_no_orphan(executable, tmp_path):
    from service_under_test import Service
    with Campaign("the front-end killed", 3, 0.06) as c:
        while c.due():
            folder = tmp_path / f"s{c.injected}"
            folder.mkdir()
            service = Service(executable, folder, "--pool-size", "2", "--cache", "none", warm_compiler=True)
            client = service.client()
            workload.prepare(client)
            client.post(workload.S + "/launches", launch("endless", {"buf": "x"}, timeout_ms=60000), Prefer="respond-async")
            busy = threading.Thread(target=compile_and_lose, args=(service,), daemon=True)
            busy.start()
            time.sleep(c.random.random() * 0.1)
            children = descendants(service.process.pid)
            assert children
            service.process.send_signal(c.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV]))
            c.fault()
            service.process.wait(60)
            until(lambda: all(is_gone(pid) for pid in children), lambda: [(pid, role_of(pid)) for pid in children if not is_gone(pid)])
            c.recovered()
            busy.join(60)


def compile_and_lose(service):
    client = service.client()
    try:
        for i in range(100):
            client.put_cuda(f"{workload.S}/modules/m{i}", f"extern \"C\" __global__ void m{i}() {{}}")
    except (http.client.HTTPException, OSError):
        client.close()
