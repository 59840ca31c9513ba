"""Sessions with memcheck: errors that an ordinary run misses end the launch and are located."""
import itertools

import pytest

SOURCE = r"""
extern "C" __global__ void shift(float *to, const float *from, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = from[i + 1];
}
__device__ int table[4];
extern "C" __global__ void lookup(int *out, int i) { out[0] = table[i]; }
"""

numbers = itertools.count()


@pytest.fixture
def checked(client):
    if client.get("/v1/devices").json()["items"][0]["backend"] != "cpu":
        pytest.skip("memcheck is the cpu device's")
    path = f"/v1/sessions/memcheck{next(numbers)}"
    made = client.put(path, {"memcheck": True})
    assert made.status == 201 and made.json()["memcheck"] is True
    client.put(path + "/modules/m", {"source": SOURCE, "options": ["-lineinfo"]}).expect(201)
    yield path
    client.delete(path)


def shift(client, path, n, **changes):
    request = {"module": "m", "kernel": "shift", "grid": [1], "block": [64], "args": [{"buf": "to"}, {"buf": "from"}, {"i32": n}]}
    request.update(changes)
    return client.post(path + "/launches", request)


def buffers(client, path, data):
    assert client.put(path + "/buffers/to", {"size": 256}).status == 201
    assert client.put_octets(path + "/buffers/from", data).status == 201


def test_what_is_right_passes(client, checked):
    buffers(client, checked, bytes(range(256)))
    assert shift(client, checked, 63).status == 200
    assert client.get(checked + "/buffers/to/data").body[:252] == bytes(range(4, 256))


def test_one_element_too_far(client, checked):
    buffers(client, checked, bytes(64 * 4))
    failed = shift(client, checked, 64)
    assert failed.status == 422 and failed.code == "kernel_fault"
    problem = failed.json()
    assert problem["cuda"]["result"] == 700 and problem["cuda"]["name"] == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert "illegal read" in problem["detail"] and "after the end of an allocation of 256" in problem["detail"]
    assert "block (0,0,0) thread (63,0,0)" in problem["detail"] and ":6)" in problem["detail"], "the source line is named"
    session = client.get(checked).json()
    assert session["state"] == "faulted" and session["fault"]["access"] == problem["access"], session
    access = problem["access"]
    assert access["allocation"]["bytes"] == 256 and access["address"] == access["allocation"]["address"] + 256 and access["allocation"]["freed"] is False
    assert {name: access[name] for name in ("error", "kind", "space", "bytes", "kernel", "block", "thread")} == {
        "error": "out_of_bounds", "kind": "read", "space": "global", "bytes": 4, "kernel": "shift", "block": [0, 0, 0], "thread": [63, 0, 0]}, access
    assert access["line"] > 0 and access["source"]["line"] == 6, access
    assert client.post(checked + "/reset").status == 200
    again = client.get(checked).json()
    assert again["state"] == "ready" and again["memcheck"] is True
    client.put(checked + "/modules/m", {"source": SOURCE}).expect(201)
    buffers(client, checked, bytes(64 * 4))
    assert shift(client, checked, 64).code == "kernel_fault", "a reset keeps memcheck on"


def test_a_read_of_what_nobody_wrote(client, checked):
    assert client.put(checked + "/buffers/to", {"size": 256}).status == 201
    assert client.put(checked + "/buffers/from", {"size": 256}).status == 201
    assert client.post(checked + "/buffers/from/fill", {"pattern": {"f32": 1}, "size": 128}).status == 204
    assert shift(client, checked, 31).status == 200
    failed = shift(client, checked, 32)
    assert failed.code == "kernel_fault" and failed.json()["cuda"]["result"] == 719
    assert "read of uninitialised memory" in failed.json()["detail"] and "thread (31,0,0)" in failed.json()["detail"]


def test_an_index_beyond_a_variable(client, checked):
    assert client.put(checked + "/buffers/to", {"size": 4}).status == 201
    request = {"module": "m", "kernel": "lookup", "grid": [1], "block": [1], "args": [{"buf": "to"}, {"i32": 3}]}
    assert client.post(checked + "/launches", request).status == 200
    request["args"][1] = {"i32": 4}
    failed = client.post(checked + "/launches", request)
    assert failed.code == "kernel_fault" and "illegal read" in failed.json()["detail"]


def test_without_it_nothing_is_reported(client, session):
    if client.get("/v1/devices").json()["items"][0]["backend"] != "cpu":
        pytest.skip("a GPU reports what it likes")
    assert client.put(session + "/modules/m", {"source": SOURCE}).status == 201
    buffers(client, session, bytes(60 * 4))
    assert shift(client, session, 60).status == 200


def test_other_devices_refuse_it(client):
    if client.get("/v1/devices").json()["items"][0]["backend"] == "cpu":
        pytest.skip("the cpu device has it")
    refused = client.put("/v1/sessions/nomemcheck", {"memcheck": True})
    assert refused.status == 400 and refused.json()["errors"][0]["pointer"] == "/memcheck"
