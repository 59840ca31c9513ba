"""At a deadline: whether the kernel still runs, or has faulted and the driver has not told yet. On the fake driver, which may tell late."""
import pytest

from fake_gpu import driver, prepare, start  # noqa: F401
from kernels import FAULTS, launch

S = "/v1/sessions/deadlines"
LATE = 'extern "C" __global__ void late_trap(unsigned ms) {}'
UNKNOWN = "or faulted"


@pytest.fixture
def client(executable, driver, tmp_path):  # noqa: F811
    service = start(executable, tmp_path, driver[1])
    try:
        one = service.client()
        prepare(one, S)
        assert one.put_cuda(S + "/modules/f", FAULTS).status == 201 and one.put_cuda(S + "/modules/late", LATE).status == 201
        yield one
    finally:
        service.stop()


def late_trap(ms, **changes):
    return launch("late_trap", {"u32": ms}, module="late", **{"timeout_ms": 100, **changes})


@pytest.mark.parametrize("timing", [True, False])
def test_a_fault_that_is_told_after_the_deadline_is_a_fault(client, timing):
    problem = client.post(S + "/launches", late_trap(400, timing=timing))
    assert (problem.status, problem.code) == (422, "kernel_fault") and problem.json()["cuda"]["result"] == 719, problem
    assert client.get(S).json()["fault"]["code"] == "kernel_fault"
    assert client.post(S + "/reset").status == 200


def test_so_it_is_in_a_batch_and_a_program(client):
    op = {"op": "launch", **late_trap(400)}
    del op["timeout_ms"]
    problem = client.post(S + "/batches", {"ops": [op], "timeout_ms": 200})
    assert (problem.status, problem.code) == (422, "kernel_fault"), problem
    assert client.post(S + "/reset").status == 200 and client.put_cuda(S + "/modules/late", LATE).status == 201
    client.put(S + "/programs/p", {"ops": [op, op], "timeout_ms": 200}).expect(201)
    problem = client.post(S + "/programs/p/runs", {})
    assert (problem.status, problem.code) == (422, "kernel_fault"), problem


def test_a_kernel_that_runs_on_is_known_to_run(client):
    problem = client.post(S + "/launches", launch("endless", {"buf": "c"}, timeout_ms=100))
    assert (problem.status, problem.code) == (504, "execution_timeout") and UNKNOWN not in problem.json()["detail"], problem


def test_what_cannot_be_known_is_said_so(client):
    problem = client.post(S + "/launches", late_trap(600000))
    assert (problem.status, problem.code) == (504, "execution_timeout") and UNKNOWN in problem.json()["detail"], problem
    assert "100 ms" in problem.json()["detail"]
    assert client.post(S + "/reset").status == 200
