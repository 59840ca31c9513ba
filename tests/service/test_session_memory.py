"""Bounds of a session's memory: a part of the device's, what its worker keeps of freed memory, and how much of the free memory is one block. The
bound of what is kept is on the fake driver, which keeps what it is told to; with GPUREST_TEST_BACKENDS=cuda on the machine's own GPU."""
import json
import os
import pathlib
import shutil

import pytest

from test_events import Stream

S = "/v1/sessions/s"
MIB = 1 << 20
REAL = "cuda" in os.environ.get("GPUREST_TEST_BACKENDS", "cpu")
UNIT = 32 * MIB if REAL else 4096  # that the driver's pool takes and gives; else what the worker's own small allocation is rounded by


@pytest.fixture
def cuda(start, executable, tmp_path):
    """A client of a service with the fake driver, or with the machine's own."""
    if REAL:
        return start("--backends", "cuda").client()
    library = pathlib.Path(executable).parents[1] / "tests" / "support" / "libcuda.so.1"
    if not library.exists():
        pytest.skip("the fake driver is not built")
    return start("--backends", "cuda", "--libcuda", str(shutil.copy(library, tmp_path / library.name))).client()


def total_of(client, path):
    device = client.get(path).json()["device"]
    return client.get("/v1/devices/" + device).json()["memory"]["total_bytes"]


def memory(client, path=S):
    answer = client.get(path + "/memory")
    assert answer.status == 200, answer
    return answer.json()


# ---- a part of the device's memory ----

@pytest.mark.parametrize("asked,fraction", [(0.5, 0.5), ("80%", 0.8), (1, 1), ("12.5%", 0.125), ("100%", 1), (1e-15, 1e-15)])
def test_a_part_of_the_devices_memory(client, session, asked, fraction):
    path = session + "-part"
    made = client.put(path, {"memory_fraction": asked})
    assert made.status == 201, made
    wanted = max(1, int(fraction * total_of(client, path)))
    assert made.json()["memory_fraction"] == fraction and abs(made.json()["memory_limit"] - wanted) <= 1
    assert memory(client, path)["limit_bytes"] == made.json()["memory_limit"]
    assert client.put(path, {"memory_fraction": asked}).status == 200, "the same members"
    assert client.put(path, {"memory_limit": made.json()["memory_limit"]}).code == "spec_conflict"
    refused = client.put(path + "/buffers/x", {"size": made.json()["memory_limit"] + 1})
    assert refused.status == 403 and refused.json()["limit"]["name"] == "session_memory_bytes"
    assert client.delete(path).status == 204


@pytest.mark.parametrize("body,pointer", [
    *(({"memory_fraction": bad}, "/memory_fraction") for bad in (0, -0.5, 1.01, 80, "80", "0%", "101%", "%", "1e1%", "0x1%", "-5%", "nan%", "5%%", "5 %", True, [])),
    ({"memory_fraction": 0.5, "memory_limit": 1000}, "/memory_fraction"),
    ({"memory_fraction": "9" * 31 + "%"}, "/memory_fraction"),
    ({"memory_fraction": "9" * 64 + "%"}, "/memory_fraction"),
    ({"pool_bytes_max": -1}, "/pool_bytes_max"),
    ({"pool_bytes_max": "18446744073709551615"}, "/pool_bytes_max"),
    ({"pool_bytes_max": 1.5}, "/pool_bytes_max"),
])
def test_wrong_bounds(client, session, body, pointer):
    for refused in (client.put(session + "-new", body), client.patch(session, body)):
        assert refused.status == 400 and refused.code == "invalid_field", refused
        assert refused.json()["errors"][0]["pointer"] == pointer
    assert client.get(session + "-new").code == "session_not_found", "nothing is left"
    assert client.get(session).json()["memory_limit"] is None


def test_bounds_are_changed_while_it_runs(client, session):
    assert client.put(session + "/buffers/x", {"size": 8 * MIB}).status == 201
    changed = client.patch(session, {"memory_limit": 10 * MIB})
    assert changed.status == 200 and (changed.json()["memory_limit"], changed.json()["memory_fraction"]) == (10 * MIB, None)
    assert client.put(session + "/buffers/y", {"size": 4 * MIB}).code == "quota_exceeded"
    assert client.patch(session, {"memory_limit": MIB}).status == 200
    assert client.get(session + "/buffers/x").status == 200, "what exceeds the bound stays"
    assert client.put(session + "/buffers/y", {"size": 1}).code == "quota_exceeded"
    changed = client.patch(session, {"memory_fraction": "50%", "pool_bytes_max": str(2**53 + 2), "labels": {"a": "b"}})
    assert changed.status == 200, changed
    assert changed.json()["memory_fraction"] == 0.5 and changed.json()["pool_bytes_max"] is None, "beyond 2^53 it is no bound that a number can say"
    assert client.put(session + "/buffers/y", {"size": 4 * MIB}).status == 201
    assert client.patch(session, {"pool_bytes_max": 0}).json()["pool_bytes_max"] == 0


# ---- what is kept ----

def freed(client, path=S, count=4, size=40 * MIB):
    """cached_bytes behind some buffers that have come and gone."""
    for i in range(count):
        assert client.put(f"{path}/buffers/b{i}", {"size": size}).status == 201
    for i in range(count):
        assert client.delete(f"{path}/buffers/b{i}").status == 204
    return memory(client, path)["cached_bytes"]


def test_without_a_bound_freed_memory_is_kept(cuda):
    assert cuda.put(S).status == 201
    assert freed(cuda) >= 160 * MIB


@pytest.mark.parametrize("most", [0, 50 * MIB, 1000 * MIB])
def test_freed_memory_is_kept_up_to_the_bound(cuda, most):
    made = cuda.put(S, {"pool_bytes_max": most})
    assert made.status == 201 and made.json()["pool_bytes_max"] == most
    assert freed(cuda) <= most + UNIT
    assert freed(cuda) >= min(most, 160 * MIB) - UNIT
    assert cuda.post(S + "/reset").status == 200 and cuda.get(S).json()["pool_bytes_max"] == most
    assert freed(cuda) <= most + UNIT, "the next worker has it, too"


def test_a_lower_bound_gives_back_at_once(cuda):
    assert cuda.put(S).status == 201
    assert freed(cuda) >= 160 * MIB
    assert cuda.patch(S, {"pool_bytes_max": 10 * MIB}).status == 200
    assert memory(cuda)["cached_bytes"] <= 10 * MIB + UNIT


def test_the_cpu_device_keeps_nothing(client, session):
    if REAL:
        pytest.skip("there is a GPU in its place")
    assert client.patch(session, {"pool_bytes_max": 0}).status == 200
    assert freed(client, session) < UNIT


# ---- how much is one block ----

def test_free_memory_is_measured(client, session):
    before = memory(client, session)
    assert 0 <= before["fragmentation"] < 0.01 and before["fragmentation_reason"] is None
    assert client.put(session + "/buffers/x", {"size": MIB}).status == 201
    assert 0 <= memory(client, session)["fragmentation"] < 0.01


def test_of_a_gpu_it_is_measured_too(cuda):
    assert cuda.put(S).status == 201
    assert freed(cuda) >= 160 * MIB
    found = memory(cuda)
    assert 0 <= found["fragmentation"] <= 2 * MIB / found["free_bytes"], "all but a part of a page"
    assert found["fragmentation_reason"] is None


# ---- the peak ----

@pytest.mark.parametrize("device", ["the shared service's", "fake"])
def test_the_peak_is_counted_anew(request, device):
    client, path = (request.getfixturevalue("cuda"), S) if device == "fake" else (request.getfixturevalue("client"), request.getfixturevalue("session"))
    if device == "fake":
        assert client.put(path).status == 201
    freed(client, path, count=1, size=8 * MIB)
    before = memory(client, path)
    assert before["peak_bytes"] >= before["allocated_bytes"] + 8 * MIB
    answer = client.post(path + "/memory/peak/reset")
    assert answer.status == 200 and answer.json()["peak_bytes"] == answer.json()["allocated_bytes"] == before["allocated_bytes"], answer
    freed(client, path, count=1, size=MIB)
    assert memory(client, path)["peak_bytes"] == before["allocated_bytes"] + MIB, "nobody looked while it was there"
    assert client.post(path + "/memory/peak/reset", {"now": True}).code == "unknown_field"
    assert client.post(path + "-not/memory/peak/reset").code == "session_not_found"


# ---- events ----

def test_low_memory_is_an_event(service, client, session):
    stream = Stream(service, session, "?types=memory.low")
    assert client.patch(session, {"memory_limit": 1000000}).status == 200
    assert client.put(session + "/buffers/a", {"size": 800000}).status == 201
    assert client.put(session + "/buffers/b", {"size": 150000}).status == 201
    assert client.put(session + "/buffers/c", {"size": 1000}).status == 201
    name = session.rsplit("/", 1)[1]
    _, event, data = stream.next()
    assert event == "memory.low"
    assert {**data, "at": 0} == {"at": 0, "session": name, "used_bytes": 950000, "limit_bytes": 1000000}
    assert client.put(session + "/buffers/d", {"size": 100000}).code == "quota_exceeded"
    _, _, data = stream.next()
    assert {**data, "at": 0} == {"at": 0, "session": name, "used_bytes": 951000, "limit_bytes": 1000000, "requested_bytes": 100000, "code": "quota_exceeded"}
    assert client.delete(session + "/buffers/b").status == 204
    assert client.put(session + "/buffers/b", {"size": 150000}).status == 201
    assert stream.next()[2]["used_bytes"] == 951000, "once more, after there was more"
    assert client.delete(session + "/buffers/b").status == 204
    assert client.patch(session, {"memory_limit": 850000}).status == 200
    assert stream.next()[2] | {"at": 0} == {"at": 0, "session": name, "used_bytes": 801000, "limit_bytes": 850000}, "a lower limit has the same end"
    stream.close()


def test_memory_that_the_device_has_not_is_an_event(cuda):
    assert cuda.put(S).status == 201
    size = memory(cuda)["free_bytes"] * 2
    assert cuda.put(S + "/buffers/x", {"size": size}).code == "device_memory_exhausted"
    told = cuda.get(S + "/events?types=memory.low&timeout_seconds=1", **{"Last-Event-ID": "0"}).body.decode()
    data = json.loads(next(line for line in told.splitlines() if line.startswith("data: "))[6:])
    assert (data["requested_bytes"], data["code"], data["limit_bytes"]) == (size, "device_memory_exhausted", None)
