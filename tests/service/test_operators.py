"""What operators see and do: the sessions of all callers, what each has used, and whose fault a failure is."""
import mmap
import pathlib
import re

import pytest

from conftest import VADD, floats
from kernels import FAULTS, launch
from service_under_test import until
from test_tenants import as_caller, token_file

X = {"buf": "x"}


@pytest.fixture
def service(start, tmp_path):
    return start("--tokens", token_file(tmp_path / "tokens.json", root={}, alice={"scopes": ["read", "write", "compile", "launch"]}, bob={}))


def use_of(client, name):
    return next((one for one in client.get("/v1/admin/sessions").expect(200).json()["callers"] if one["name"] == name), None)


def test_all_sessions_are_listed_with_their_callers(service):
    root, alice, bob = (as_caller(service, name) for name in ("root", "alice", "bob"))
    alice.put("/v1/sessions/same").expect(201)
    bob.put("/v1/sessions/same", {"labels": {"a": "b"}}).expect(201)
    own = bob.get("/v1/sessions/same").json()
    listed = root.get("/v1/admin/sessions").expect(200).json()
    assert sorted((one["caller"], one["id"]) for one in listed["items"]) == [("alice", "same"), ("bob", "same")]
    found = next(one for one in listed["items"] if one["caller"] == "bob")
    assert {**found, "expires_at": 0} == {"caller": "bob", **own, "expires_at": 0}
    assert {one["name"]: one["sessions"] for one in listed["callers"]} == {"alice": 1, "bob": 1}


def test_only_operators_may(service):
    alice = as_caller(service, "alice")
    alice.put("/v1/sessions/mine").expect(201)
    for method, path in (("GET", "/v1/admin/sessions"), ("GET", "/v1/admin/sessions/mine"), ("DELETE", "/v1/admin/sessions/mine")):
        alice.request(method, path).expect(403, "insufficient_scope")
    alice.get("/v1/sessions/mine").expect(200)


def test_an_operator_ends_a_session_and_its_caller_learns_who(service):
    root, alice, bob = (as_caller(service, name) for name in ("root", "alice", "bob"))
    alice.put("/v1/sessions/left").expect(201)
    assert root.get("/v1/admin/sessions/left").expect(200).json()["caller"] == "alice"
    root.delete("/v1/admin/sessions/left").expect(204)
    told = alice.get("/v1/sessions/left").expect(404, "session_not_found").json()
    assert told["ended"]["reason"] == "operator" and "operator" in told["detail"]
    root.delete("/v1/admin/sessions/left").expect(404, "session_not_found")
    root.get("/v1/admin/sessions/never").expect(404, "session_not_found")
    service.logged("root ended session left of alice")
    for one in (alice, bob):
        one.put("/v1/sessions/same").expect(201)
    ambiguous = root.delete("/v1/admin/sessions/same").expect(400, "invalid_field").json()
    assert ambiguous["errors"][0]["pointer"] == "caller" and "2 callers" in ambiguous["detail"]
    root.delete("/v1/admin/sessions/same?caller=bob").expect(204)
    alice.get("/v1/sessions/same").expect(200)
    bob.get("/v1/sessions/same").expect(404)
    root.get("/v1/admin/sessions/same?caller=bob").expect(404, "session_not_found")


def test_an_operator_ends_a_session_at_work(service):
    root, alice = as_caller(service, "root"), as_caller(service, "alice")
    alice.put("/v1/sessions/busy").expect(201)
    alice.put_cuda("/v1/sessions/busy/modules/f", FAULTS).expect(201)
    alice.put("/v1/sessions/busy/buffers/x", {"size": 64}).expect(201)
    begun = alice.post("/v1/sessions/busy/launches", launch("endless", X, timeout_ms=600000), Prefer="respond-async").expect(202)
    until(lambda: alice.get(begun.headers["Location"]).json()["state"] == "running")
    root.delete("/v1/admin/sessions/busy").expect(204)
    alice.get(begun.headers["Location"]).expect(404, "session_not_found")


def test_what_each_caller_has_used(service):
    root, alice, bob = (as_caller(service, name) for name in ("root", "alice", "bob"))
    path = "/v1/sessions/work"
    alice.put(path).expect(201)
    alice.put_octets(path + "/buffers/x", floats(range(256))).expect(201)
    alice.put_cuda(path + "/modules/m", VADD).expect(201)
    for _ in range(3):
        alice.post(path + "/launches", launch("vadd", X, X, X, {"i32": 256}, module="m", block=[256])).expect(200)
    alice.get(path + "/buffers/x/data").expect(200)
    before = use_of(root, "alice")
    assert (before["launches"], before["to_device_bytes"], before["from_device_bytes"], before["memory_bytes"]) == (3, 1024, 1024, 1024)
    assert before["device_time_us"] >= 0 and use_of(root, "bob") is None
    run = {"module": {"source": VADD}, "ops": [{"op": "alloc", "as": "$x", "size": 1024}, {
        "op": "launch", "kernel": "vadd", "grid": [1], "block": [256], "args": [{"buf": "$x"}, {"buf": "$x"}, {"buf": "$x"}, {"i32": 256}]}], "keep": []}
    bob.post("/v1/run", run).expect(200)
    assert use_of(root, "bob")["launches"] == 1
    alice.delete(path).expect(204)
    after = use_of(root, "alice")
    assert {**before, "memory_bytes": 0, "sessions": 0, "device_time_us": 0} == {**after, "device_time_us": 0} and after["device_time_us"] >= before["device_time_us"]
    text = root.get("/metrics").body.decode()
    assert 'gpurest_caller_launches_total{caller="alice"} 3\n' in text and 'gpurest_caller_launches_total{caller="bob"} 1\n' in text
    assert 'gpurest_caller_transfer_bytes_total{caller="alice",direction="to_device"} 1024\n' in text
    assert re.search(r'^gpurest_caller_device_seconds_total\{caller="alice"\} ', text, re.M)


def test_the_process_is_measured(service):
    text = as_caller(service, "root").get("/metrics").body.decode()
    figures = {name: float(value) for name, value in re.findall(r"^(process_\w+) (\S+)$", text, re.M)}
    assert set(figures) == {"process_resident_memory_bytes", "process_open_fds", "process_max_fds", "process_start_time_seconds", "process_cpu_seconds_total"}
    assert figures["process_resident_memory_bytes"] > 1 << 20 and 3 < figures["process_open_fds"] < figures["process_max_fds"]
    assert abs(figures["process_start_time_seconds"] - service.port_file.stat().st_mtime) < 120


def failures(client):
    return int(re.search(r"^gpurest_failures_total (\d+)$", client.get("/metrics").body.decode(), re.M)[1])


def test_faults_of_callers_are_no_failures_of_the_service(service):
    root, alice = as_caller(service, "root"), as_caller(service, "alice")
    path = "/v1/sessions/faulty"
    alice.put(path).expect(201)
    alice.put_cuda(path + "/modules/f", FAULTS).expect(201)
    alice.put(path + "/buffers/x", {"size": 64}).expect(201)
    alice.post(path + "/launches", launch("endless", X, timeout_ms=100)).expect(504, "execution_timeout")
    alice.post("/v1/sessions/faulty/reset").expect(200)
    assert alice.put(path + "/buffers/huge", {"size": 1 << 45}).status in (403, 507)
    assert failures(root) == 0 and root.get("/readyz?verbose=1").json()["failures_last_minute"] == 0


def test_free_memory_of_the_cpu_device_is_the_hosts(service):
    """It moves with what any process takes."""
    def host_free():
        return int(re.search(r"MemAvailable:\s+(\d+) kB", pathlib.Path("/proc/meminfo").read_text())[1]) << 10

    client = as_caller(service, "root")
    told = client.get("/v1/devices/cpu:0").json()["memory"]
    assert 0 < told["free_bytes"] <= told["total_bytes"]
    assert abs(told["free_bytes"] - min(host_free(), told["total_bytes"])) < told["total_bytes"] / 4
    if host_free() > told["total_bytes"] + (1 << 30):  # so much that what is taken here does not show
        assert told["total_bytes"] - told["free_bytes"] < 1 << 20
        return
    with mmap.mmap(-1, 64 << 20) as taken:
        seen = set()
        for page in range(0, 64 << 20, 4096):
            taken[page] = 1
        until(lambda: seen.add(client.get("/v1/devices/cpu:0").json()["memory"]["free_bytes"]) or len(seen) > 1, "it does not move")
