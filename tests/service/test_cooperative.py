"""Cooperative launches: kernels that synchronize their whole grid, on every device."""
import struct
import subprocess

import pytest

from batch_client import send

SOURCE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// Each block adds up what all blocks wrote before the barrier, and writes over it behind the second one.
extern "C" __global__ void total(unsigned *values, unsigned *sums, unsigned rounds)
{
    cg::grid_group grid = cg::this_grid();
    for (unsigned k = 0; k < rounds; k++) {
        if (threadIdx.x == 0)
            values[blockIdx.x] = blockIdx.x + k;
        grid.sync();
        unsigned sum = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            sum += values[i];
        grid.sync();
        if (threadIdx.x == 0)
            sums[k * gridDim.x + blockIdx.x] = sum;
    }
}
"""

BLOCKS, ROUNDS = 6, 5


@pytest.fixture
def module(client, session):
    client.put(session + "/modules/m", {"source": SOURCE}).expect(201)
    assert client.put(session + "/buffers/values", {"size": 1 << 20}).status == 201
    assert client.put(session + "/buffers/sums", {"size": 4 * BLOCKS * ROUNDS}).status == 201
    return session


def launch(client, path, **changes):
    request = {"module": "m", "kernel": "total", "grid": [BLOCKS], "block": [64], "cooperative": True,
               "args": [{"buf": "values"}, {"buf": "sums"}, {"u32": ROUNDS}]}
    request.update(changes)
    return client.post(path + "/launches", request)


def test_blocks_wait_for_each_other(client, module):
    for _ in range(3):
        done = launch(client, module)
        assert done.status == 200, done
        sums = struct.unpack(f"<{BLOCKS * ROUNDS}I", client.get(module + "/buffers/sums/data").body)
        assert list(sums) == [sum(i + k for i in range(BLOCKS)) for k in range(ROUNDS) for _ in range(BLOCKS)]


def test_more_blocks_than_fit_are_refused_and_nothing_is_lost(client, module):
    attributes = client.get("/v1/devices").json()["items"][0]["attributes"]
    assert attributes["cooperative_launch"] == 1
    resident = attributes["multiprocessor_count"] * attributes["max_blocks_per_multiprocessor"]
    refused = launch(client, module, grid=[resident + 1], args=[{"buf": "values"}, {"buf": "sums"}, {"u32": 0}])
    assert refused.status == 422 and refused.code == "launch_config_invalid"
    assert launch(client, module).status == 200


def test_the_member_is_a_boolean(client, module):
    assert launch(client, module, cooperative=1).code == "invalid_field"


def test_the_same_id_with_and_without_is_another_launch(client, module):
    assert launch(client, module, id="one").status == 200
    assert launch(client, module, id="one", cooperative=False).code == "spec_conflict"


def test_without_it_the_cpu_device_refuses_such_a_kernel(client, module):
    if client.get("/v1/devices").json()["items"][0]["backend"] != "cpu":
        pytest.skip("a GPU lets the kernel fault")
    refused = launch(client, module, cooperative=False)
    assert refused.code == "launch_config_invalid" and "cooperative" in refused.json()["detail"]


def in_batch(**changes):
    operation = {"op": "launch", "kernel": "total", "grid": [BLOCKS], "block": [64], "cooperative": True,
                 "args": [{"buf": "$values"}, {"buf": "$sums"}, {"u32": ROUNDS}]}
    operation.update(changes)
    return {"module": {"source": SOURCE}, "ops": [
        {"op": "alloc", "as": "$values", "size": 1 << 16}, {"op": "alloc", "as": "$sums", "size": 4 * BLOCKS * ROUNDS}, operation, operation,
        {"op": "read", "from": "$sums", "segment": "sums"}]}


def check_segment(answer):
    assert answer.status == 200, answer
    sums = struct.unpack(f"<{BLOCKS * ROUNDS}I", answer.segments["sums"])
    assert list(sums) == [sum(i + k for i in range(BLOCKS)) for k in range(ROUNDS) for _ in range(BLOCKS)]


@pytest.mark.parametrize("within", [False, True], ids=["framed", "json"])
@pytest.mark.parametrize("place", ["batches", "run"])
def test_in_batches(client, session, place, within):
    path = session + "/batches" if place == "batches" else "/v1/run"
    check_segment(send(client, path, in_batch(), within=within))
    assert send(client, path, in_batch(cooperative="yes"), within=within).code == "invalid_field"


def test_batches_without_it_are_refused_by_the_cpu_device(client, session):
    if client.get("/v1/devices").json()["items"][0]["backend"] != "cpu":
        pytest.skip("a GPU lets the kernel fault")
    refused = send(client, session + "/batches", in_batch(cooperative=False))
    assert refused.code == "launch_config_invalid" and "cooperative" in refused.json()["detail"]


def test_in_programs_among_other_launches(client, module):
    launches = [{"op": "launch", "kernel": "total", "grid": [BLOCKS], "block": [64], "cooperative": together,
                 "args": [{"buf": "values"}, {"buf": "sums"}, {"u32": rounds}]} for together, rounds in ((True, ROUNDS), (True, 1), (True, ROUNDS))]
    assert client.put(module + "/programs/p", {"module": "m", "ops": launches}).status == 201
    for _ in range(3):
        assert client.post(module + "/programs/p/runs", {}).status == 200
    sums = struct.unpack(f"<{BLOCKS * ROUNDS}I", client.get(module + "/buffers/sums/data").body)
    assert list(sums) == [sum(i + k for i in range(BLOCKS)) for k in range(ROUNDS) for _ in range(BLOCKS)]


# Every block waits until `company` blocks have started, so it needs as many host threads.
MEETS = r"""
extern "C" __global__ void meet(unsigned *here, unsigned company)
{
    atomicAdd(here, 1);
    while (atomicAdd(here, 0) < company) {}
}
"""


def test_blocks_are_dealt_among_as_many_host_threads_as_asked_for(start):
    service = start("--backends", "cpu", "--cpu-threads", "3")
    client = service.client()
    device = client.get("/v1/devices/cpu:0").json()
    assert device["multiprocessors"] == device["attributes"]["multiprocessor_count"] == 3
    assert client.put("/v1/sessions/s").status == 201
    assert client.put_cuda("/v1/sessions/s/modules/m", MEETS).status == 201

    def meet(company, timeout_ms):
        assert client.put(f"/v1/sessions/s/buffers/here{company}", {"size": 4}).status == 201
        assert client.post(f"/v1/sessions/s/buffers/here{company}/fill", {"pattern": {"u32": 0}}).status == 204
        return client.post("/v1/sessions/s/launches", {"module": "m", "kernel": "meet", "grid": [company], "block": [1], "timeout_ms": timeout_ms,
                                                       "args": [{"buf": f"here{company}"}, {"u32": company}]}, Prefer="wait=300")

    assert meet(3, 200_000).status == 200
    assert meet(4, 500).code == "execution_timeout"


def test_a_number_of_host_threads_out_of_range_is_refused(executable):
    done = subprocess.run([executable, "--cpu-threads", "65"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and "cpu-threads" in done.stderr and "64" in done.stderr
