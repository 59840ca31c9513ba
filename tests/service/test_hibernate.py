"""Sessions whose buffers leave the device: on both kinds of devices, the fake driver standing in for the GPU."""
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import threading

import pytest

from service_under_test import in_threads, until
from test_events import Stream

MIB = 1 << 20
S = "/v1/sessions/s"


@pytest.fixture(params=["cpu", "cuda"])
def service(request, start, executable, tmp_path):
    """service(options...): one on that kind of device."""
    def begin(*options):
        if request.param == "cpu":
            return start("--backends", "cpu", *options)
        library = pathlib.Path(executable).parents[1] / "tests" / "support" / "libcuda.so.1"
        if not library.exists():
            pytest.skip("the fake driver is not built")
        return start("--backends", "cuda", "--libcuda", str(shutil.copy(library, tmp_path / library.name)), "--vendor-libraries", "off", *options)
    return begin


def state(client, session=S):
    return client.get(session).json()["state"]


def fill(client, session=S, size=5 * MIB + 12345):
    data = os.urandom(size)
    assert client.put(session).status == 201
    assert client.put_octets(session + "/buffers/x", data).status == 201
    assert client.put_octets(session + "/buffers/small", b"12345678").status == 201
    return data


def kept(client):
    lines = [line for line in client.get("/metrics").body.decode().splitlines() if line.startswith('gpurest_hibernated_bytes{kind="used"}')]
    return float(lines[0].split()[-1])


def test_followers_are_told(service):
    server = service("--hibernate-mib", "64")
    client = server.client()
    fill(client)
    stream = Stream(server, S, "?types=session.state")
    assert client.post(S + "/hibernate").json()["state"] == "hibernated"
    assert client.post(S + "/wake").json()["state"] == "ready"
    assert [stream.next()[2]["state"] for _ in range(2)] == ["hibernated", "ready"]
    stream.close()


def test_requests_beside_hibernations_wait_and_never_fail(service):
    """A request that has found its session awake keeps it so until it ends; one that comes later waits for the wake."""
    server = service("--hibernate-mib", "64")
    fill(server.client())
    requests = [
        lambda own: own.request("PUT", S + "/buffers/small/data", b"y" * 8, {"Content-Type": "application/octet-stream"}),
        lambda own: own.post(S + "/batches", {"ops": [{"op": "fill", "to": "x", "pattern": {"u8": 3}}]}),
        lambda own: own.get(S + "/memory"),
    ]
    answers = []

    def repeat(ask):
        own = server.client()
        answers.extend(ask(own) for _ in range(60))
        own.close()

    def hibernate(own):
        answer = own.post(S + "/hibernate")
        assert answer.status in (200, 409), answer  # 409: always something was under way
        return answer

    threads = [threading.Thread(target=repeat, args=(ask,)) for ask in requests]
    for thread in threads:
        thread.start()
    own = server.client()
    while any(thread.is_alive() for thread in threads):
        hibernate(own)
    for thread in threads:
        thread.join()
    assert len(answers) == 180 and {answer.status for answer in answers} <= {200, 204}, [answer.body for answer in answers if answer.status > 204]


@pytest.mark.parametrize("place", ["memory", "folder"])
def test_it_hibernates_and_its_next_request_wakes_it(service, tmp_path, place):
    folder = tmp_path / "asleep"
    folder.mkdir()
    client = service("--hibernate-mib", "64", *(["--hibernate-dir", str(folder)] if place == "folder" else [])).client()
    data = fill(client)
    about = client.get(S + "/buffers/x").json()
    etag = client.get(S + "/buffers/x/data").headers["ETag"]
    reserved = client.get(S + "/memory").json()["reserved_bytes"]
    assert client.post(S + "/hibernate").json()["state"] == "hibernated"
    assert client.post(S + "/hibernate").status == 200 and state(client) == "hibernated"
    assert [s["state"] for s in client.get("/v1/sessions").json()["items"]] == ["hibernated"]
    assert kept(client) == len(data) and not list(folder.iterdir())
    answer = client.get(S + "/buffers/x/data")
    assert answer.body == data and "wake;dur=" in answer.headers["Server-Timing"] and answer.headers["ETag"] == etag
    assert state(client) == "ready" and client.get(S + "/buffers/x").json()["address"] == about["address"]
    until(lambda: kept(client) == 0)
    assert client.get(S + "/memory").json()["reserved_bytes"] >= len(data) and reserved >= len(data)
    assert "wake" not in client.get(S + "/buffers/x/data").headers["Server-Timing"]


def test_an_upload_waits_before_its_body(service):
    client = service("--hibernate-mib", "64").client()
    data = fill(client)
    assert client.post(S + "/hibernate").status == 200
    assert client.put_octets(S + "/buffers/x/data", data[::-1]).status == 204
    assert client.get(S + "/buffers/x/data").body == data[::-1]


def test_many_requests_wake_it_once(service):
    one = service("--hibernate-mib", "64")
    client, data, right = one.client(), None, []
    data = fill(client)
    assert client.post(S + "/hibernate").status == 200
    in_threads(lambda _: right.append(one.client().get(S + "/buffers/x/data").body == data), range(8))
    assert right == [True] * 8
    assert 'gpurest_hibernations_total{step="woken"} 1' in client.get("/metrics").body.decode()


def test_what_does_not_wake_it(service):
    client = service("--hibernate-mib", "64").client()
    fill(client)
    assert client.post(S + "/hibernate").status == 200
    assert client.get(S + "/buffers").status == 200 and client.post(S + "/heartbeat").status == 204
    assert client.request("PATCH", S, {"labels": {"a": "b"}}).status == 200 and state(client) == "hibernated"
    assert client.post(S + "/reset").json()["state"] == "ready"
    assert client.get(S + "/buffers/x").code == "buffer_not_found"
    until(lambda: kept(client) == 0)


def test_the_end_of_a_hibernated_session(service):
    client = service("--hibernate-mib", "64").client()
    fill(client)
    assert client.post(S + "/hibernate").status == 200
    assert client.delete(S).status == 204 and client.get(S).code == "session_not_found"
    until(lambda: kept(client) == 0)


def test_a_snapshot_of_a_hibernated_session(service):
    client = service("--hibernate-mib", "64").client()
    data = fill(client)
    assert client.post(S + "/hibernate").status == 200
    saved = client.get(S + "/snapshot")
    assert saved.status == 200 and data in saved.body


def test_it_is_off_unless_there_is_room(service):
    client = service().client()
    fill(client)
    assert client.post(S + "/hibernate").expect(403, "feature_disabled") and client.post(S + "/wake").status == 200
    assert client.get(S + "/buffers/small/data").body == b"12345678"


def test_the_bound_is_kept_and_nothing_is_lost(service):
    client = service("--hibernate-mib", "8").client()
    data = fill(client, size=9 * MIB)
    assert client.post(S + "/hibernate").expect(503, "overloaded")
    assert state(client) == "ready" and client.get(S + "/buffers/x/data").body == data and kept(client) == 0


@pytest.fixture
def small_gpu(start, executable, tmp_path):
    """small_gpu(mib, options...): a service on a fake GPU of which all sessions together have so much memory for large buffers."""
    library = pathlib.Path(executable).parents[1] / "tests" / "support" / "libcuda.so.1"
    if not library.exists():
        pytest.skip("the fake driver is not built")
    shutil.copy(library, tmp_path / library.name)

    def begin(mib, *options):
        (tmp_path / (library.name + ".room")).write_bytes(struct.pack("<QQ", mib * MIB, 0).ljust(4096, b"\0"))
        return start("--backends", "cuda", "--libcuda", str(tmp_path / library.name), "--vendor-libraries", "off", "--hibernate-mib", "64", *options)

    return begin


def test_idle_sessions_give_way_to_others_the_oldest_first(small_gpu, tmp_path):
    """And so at the start: more sessions than the device holds are there again."""
    options = (13, "--hibernate-after", "1", "--state", str(tmp_path / "state"))
    service = small_gpu(*options)
    client = service.client()
    data = {name: fill(client, f"/v1/sessions/{name}", 6 * MIB) for name in "ab"}
    assert state(client, "/v1/sessions/a") == state(client, "/v1/sessions/b") == "ready"
    data["c"] = fill(client, "/v1/sessions/c", 6 * MIB)
    assert [state(client, f"/v1/sessions/{name}") for name in "abc"] == ["hibernated", "ready", "ready"]
    assert client.get("/v1/sessions/a/buffers/x/data").expect(200).body == data["a"]
    client.close()
    service.stop()
    client = small_gpu(*options).client()
    for name in "abc":
        assert client.get(f"/v1/sessions/{name}/buffers/x/data").expect(200).body == data[name]
    for name in "abc":
        client.delete(f"/v1/sessions/{name}").expect(204)


def worker_of(one):
    children = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(one.process.pid)], capture_output=True, text=True).stdout.splitlines()
    return [int(line.split()[0]) for line in children if "--device-monitor" not in line and "worker" in line]


def test_a_worker_that_died_asleep(service):
    one = service("--hibernate-mib", "64", "--pool-size", "0")
    client = one.client()
    fill(client)
    assert client.post(S + "/hibernate").status == 200
    for pid in worker_of(one):
        os.kill(pid, signal.SIGKILL)
    assert client.get(S + "/buffers/x/data").status in (409, 503)
    assert state(client) == "faulted" and client.post(S + "/reset").json()["state"] == "ready"
    until(lambda: kept(client) == 0)


def test_another_waker_does_not_wait_for_a_stopped_worker(service):
    one = service("--hibernate-mib", "64", "--pool-size", "0")
    client = one.client()
    fill(client, "/v1/sessions/b")
    stopped = worker_of(one)
    data = fill(client, "/v1/sessions/a")
    for name in "ab":
        assert client.post(f"/v1/sessions/{name}/hibernate").status == 200
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        waiting = one.client()
        assert client.get("/v1/sessions/a/buffers/x/data").body == data
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert waiting.get("/v1/sessions/b/buffers/x/data").status == 200
