"""At a deadline: whether the kernel still runs, or has faulted and the driver has not told yet. On the fake driver, which may tell late."""
from concurrent.futures import ThreadPoolExecutor

import pytest

from fake_gpu import driver, prepare, start  # noqa: F401
from kernels import FAULTS, launch
from service_under_test import until

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


def endless(**changes):
    return launch("endless", {"buf": "c"}, **changes)


def failures_of(client):
    return next(line for line in client.get("/metrics").body.decode().splitlines() if line.startswith("gpurest_failures_total "))


def run_for_long(client):
    path = client.post(S + "/launches", endless(timeout_ms=600000), Prefer="respond-async").expect(202).headers["Location"]
    until(lambda: client.get(path).json()["state"] == "running", "it does not begin")
    return path


def test_what_ran_beside_it_is_told_that_other_work_ended_it(client):
    """It is known which one passed its deadline: what has time left has done nothing wrong, and neither has the service."""
    beside, failures = run_for_long(client), failures_of(client)
    mine = type(client)(client.host, client.port, client.headers)
    with ThreadPoolExecutor(1) as thread:
        batch = thread.submit(mine.post, S + "/batches", {"ops": [{"op": "launch", **endless(stream=name)} for name in ("x", "y")], "timeout_ms": 600000})
        problem = client.post(S + "/launches", endless(stream="own", timeout_ms=3000))
        batch = batch.result()
    assert (problem.status, problem.code) == (504, "execution_timeout") and "timeout_ms of 3000 ms" in problem.json()["detail"], problem
    other = client.get(beside, Prefer="wait=60").json()
    assert other["problem"]["code"] == "worker_lost" and "started_at" in other, other
    assert "faulted before this launch finished (execution_timeout: the kernel exceeded its timeout_ms of 3000 ms" in other["problem"]["detail"]
    assert (batch.status, batch.code) == (503, "worker_lost") and "for other work of the session" in batch.json()["detail"], batch
    assert "op_index_last" not in batch.json() and failures_of(client) == failures, batch
    fault = client.get(S).json()["fault"]
    assert fault["code"] == "execution_timeout" and "timeout_ms of 3000 ms" in fault["detail"], fault


def test_a_batch_that_is_overdue_on_one_of_its_streams_is_overdue(client):
    """Streams of a batch begin at different times: one may have time left when another one has not."""
    run_for_long(client)  # the batch's first operation stands behind it
    ops = [{"op": "launch", **endless()}, {"op": "launch", **endless(stream="a")}]
    problem = client.post(S + "/batches", {"ops": ops, "timeout_ms": 300})
    assert (problem.status, problem.code) == (504, "execution_timeout") and problem.json()["op_index"] == 1, problem
    assert client.post(S + "/reset").status == 200
