"""A machine with several GPUs: every one is listed, sessions are spread over them, and a fault on one leaves the others alone. Two GPUs of
the fake driver; with GPUREST_TEST_BACKENDS=cuda the machine's, if it has two."""
import os
import pathlib
import shutil
import signal
import struct
import threading

import pytest

from conftest import VADD, floats
from kernels import launch_vadd
from service_under_test import Service, until

FAULT = """
extern "C" __global__ void trap(int *p)
{
    __trap();
}
"""


@pytest.fixture(scope="module")
def node(executable, tmp_path_factory):
    """A service with at least two GPUs."""
    folder = tmp_path_factory.mktemp("service")
    real = "cuda" in os.environ.get("GPUREST_TEST_BACKENDS", "cpu")
    arguments = [] if real else ["--backends", "cuda", "--libcuda", fake_driver(executable, tmp_path_factory.mktemp("driver"))]
    service = Service(executable, folder, *arguments)
    if len(devices(service.client())) < 2:
        service.stop()
        pytest.skip("one GPU alone on this machine")
    yield service
    service.stop()


def fake_driver(executable, folder, *more):
    for name in ("libcuda.so.1", *more):
        library = pathlib.Path(executable).parents[1] / "tests" / "support" / name
        if not library.exists():
            pytest.skip("the fake driver is not built")
        shutil.copy(library, folder)
    (folder / "libcuda.so.1.devices").write_text("2")
    return str(folder / "libcuda.so.1")


@pytest.fixture
def client(node):
    one = node.client()
    yield one
    for session in one.get("/v1/sessions").json()["items"]:
        one.delete(f"/v1/sessions/{session['id']}")
    one.close()


def devices(client):
    return client.get("/v1/devices").json()["items"]


def session_on(client, name, device=None):
    made = client.put(f"/v1/sessions/{name}", {"device": device} if device else None).expect(201)
    return made.json()["device"]


def load(client, name, source, module="m"):
    made = client.put_cuda(f"/v1/sessions/{name}/modules/{module}", source)
    if made.status == 503:
        pytest.skip("no NVRTC on this machine")
    assert made.status == 201, made


def add(client, name, first):
    """A sum on the session's own device, checked."""
    path = f"/v1/sessions/{name}"
    for buffer, values in (("a", range(first, first + 1024)), ("b", range(1024)), ("c", [0] * 1024)):
        assert client.put_octets(f"{path}/buffers/{buffer}", floats(values)).status in (200, 201, 204)
    assert client.post(f"{path}/launches", launch_vadd()).status == 200
    told = struct.unpack("<1024f", client.get(f"{path}/buffers/c/data").body)
    assert told == tuple(float(first + 2 * i) for i in range(1024))


def test_every_device_is_listed_with_an_identity_of_its_own(client):
    listed = devices(client)
    assert [d["id"] for d in listed] == [f"cuda:{i}" for i in range(len(listed))]
    assert len({d["uuid"] for d in listed}) == len(listed)
    assert all(d["state"] == "healthy" and client.get(f"/v1/devices/{d['id']}").json()["uuid"] == d["uuid"] for d in listed)
    assert client.get("/v1/devices/cuda").code == "device_not_found"


def test_sessions_that_name_none_are_spread(client):
    count = len(devices(client))
    placed = [session_on(client, f"n{i}") for i in range(2 * count)]
    assert sorted(placed) == sorted(2 * [f"cuda:{i}" for i in range(count)])
    assert placed[0] == "cuda:0"


def test_a_backend_may_be_named(client):
    assert {session_on(client, "x", "cuda"), session_on(client, "y", "cuda")} == {"cuda:0", "cuda:1"}
    assert client.put("/v1/sessions/z", {"device": "cuda:77"}).code == "device_not_found"
    assert client.put("/v1/sessions/z", {"device": "cpu"}).code == "device_not_found"


def test_a_put_again_finds_the_session_wherever_it_is(client):
    assert session_on(client, "fill") == "cuda:0"
    assert session_on(client, "s") == "cuda:1"
    for wish in (None, {"device": "cuda"}, {"device": "cuda:1"}):
        again = client.put("/v1/sessions/s", wish)
        assert again.status == 200 and again.json()["device"] == "cuda:1", again
    assert client.put("/v1/sessions/s", {"device": "cuda:0"}).code == "spec_conflict"


def test_devices_compute_side_by_side(node, client):
    failures = []

    def work(name, device, first):
        own = node.client()
        try:
            session_on(own, name, device)
            load(own, name, VADD)
            for i in range(10):
                add(own, name, first + i)
        except BaseException as problem:  # pytest.skip too: raised again on the test's own thread
            failures.append(problem)
        finally:
            own.close()

    threads = [threading.Thread(target=work, args=(f"w{i}", d["id"], 1000 * i)) for i, d in enumerate(devices(client))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_a_fault_on_one_is_none_of_the_other(client):
    for device in ("cuda:0", "cuda:1"):
        session_on(client, device[-1], device)
        load(client, device[-1], VADD)
        add(client, device[-1], 5)
    load(client, "0", FAULT, "bad")
    client.post("/v1/sessions/0/launches", {"module": "bad", "kernel": "trap", "grid": [1], "block": [1], "args": [{"buf": "a"}]}).expect(422)
    assert client.get("/v1/sessions/0").json()["state"] == "faulted"
    add(client, "1", 9)
    assert client.post("/v1/sessions/0/reset").status == 200
    assert client.get("/v1/sessions/0").json()["device"] == "cuda:0"
    load(client, "0", VADD)
    add(client, "0", 7)
    assert {d["id"]: d["state"] for d in client.get("/readyz?verbose=1").json()["devices"]}["cuda:0"] == "healthy"


def test_metrics_tell_them_apart(client):
    session_on(client, "s", "cuda:1")
    text = client.get("/metrics").body.decode()
    assert 'gpurest_workers{device="cuda:1",state="used"} 1' in text
    assert 'gpurest_workers{device="cuda:0",state="used"} 0' in text


@pytest.fixture
def steered(executable, tmp_path, start):
    """steer(words), and a service with two fake GPUs, of which the management library knows only the first."""
    library = fake_driver(executable, tmp_path, "libnvidia-ml.so.1")

    def steer(words):
        (tmp_path / "new").write_text(words)
        (tmp_path / "new").rename(tmp_path / "fake-nvml")

    steer("")
    return steer, start("--backends", "cuda", "--libcuda", library, "--vendor-libraries", "off", "--pool-size", "0")


@pytest.mark.parametrize("words,reason,state", [("temperature=95", b"device cuda:0 is too hot", "hot"),
                                                ("xid=119", b"device cuda:0 is not healthy", "quarantined")])
def test_one_device_that_is_out_leaves_the_service_ready(steered, words, reason, state):
    steer, service = steered
    client = service.client()
    until(lambda: client.get("/readyz").body == b"ok\n", "never ready")
    steer(words)
    until(lambda: devices(client)[0]["state"] == state, "it is not noticed")
    for path in ("/readyz", "/lbz"):
        ready = client.get(path)
        assert ready.status == 200 and ready.body == b"ok\n" + reason + b"\n", ready
    verbose = client.get("/readyz?verbose=1")
    assert verbose.status == 200
    assert verbose.json()["ready"] is True and verbose.json()["reason"] == reason.decode()
    assert [d["state"] for d in verbose.json()["devices"]] == [state, "healthy"]
    assert "gpurest_ready 1" in client.get("/metrics").body.decode()
    assert session_on(client, "s") == "cuda:1"
    if state == "hot":
        steer("temperature=60")
        until(lambda: client.get("/readyz").body == b"ok\n", "it stays out")


def test_no_device_that_serves_makes_the_service_unready(steered):
    _, service = steered
    client = service.client()
    until(lambda: client.get("/readyz").body == b"ok\n" and len(service.children()) == 2, "no two keepers")
    keepers = service.children()
    for pid in keepers:
        os.kill(pid, signal.SIGSTOP)
    answers = []
    until(lambda: answers.append(client.get("/readyz")) or answers[-1].status == 503, "nobody notices")
    detail = answers[-1].json()["detail"]
    assert "cuda:0" in detail and "cuda:1" in detail
    until(lambda: not keepers & service.children() and client.get("/readyz").body == b"ok\n", "they are not replaced")
