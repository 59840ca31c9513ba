"""A driver that answers any call with any error, or never: the answer reports it, neighbours and the front-end go on, and everything works
again afterwards."""
import http.client
import pathlib
import re
import threading

import pytest

import workload
from campaign import FULL, Campaign, until
from driver import Driver

DEFINITIONS = (pathlib.Path(__file__).resolve().parents[2] / "service/device/cuda/driver.def").read_text()
FUNCTIONS = re.findall(r"^DRIVER\((\w+),", DEFINITIONS, re.M)
RESULTS = (pathlib.Path(__file__).resolve().parents[2] / "service/device/cuda/results.def").read_text()
OUR_FAULTS = {int(number) for number in re.findall(r"^RESULT\(\w+,\s*(\d+), INTERNAL\)", RESULTS, re.M)}  # codes by which the driver reports invalid calls
ERRORS = (1, 2, 3, 4, 46, 100, 201, 214, 304, 400, 700, 702, 719, 802, 999)
HANGING = ("cuLaunchKernel", "cuEventQuery", "cuMemcpyHtoDAsync_v2", "cuModuleLoadDataEx", "cuMemAllocFromPoolAsync", "cuStreamSynchronize")


@pytest.fixture
def driven(executable, start, tmp_path):
    driver = Driver(executable, tmp_path)
    service = start("--backends", "cuda", "--libcuda", str(driver.path), "--pool-size", "1", "--vendor-libraries", "off")
    return service, driver


def work(client):
    """Uses every function of the driver a little."""
    launch = {"module": "f", "kernel": "fill7", "grid": [1], "block": [1], "args": [{"buf": "x"}, {"u32": 1}], "timeout_ms": 500}
    yield client.put(workload.S + "/buffers/n", {"size": 1000})
    yield client.post(workload.S + "/launches", launch)
    yield client.put_octets(workload.S + "/buffers/x/data", b"z" * 4096)
    yield client.get(workload.S + "/buffers/x/data")
    yield client.post(workload.S + "/buffers/x/fill", {"pattern": {"u32": 5}})
    yield client.post(workload.S + "/buffers/y/copy", {"from": "x"})
    yield client.put_cuda(workload.S + "/modules/n", workload.FAULTS + "\n")
    yield client.post(workload.S + "/batches", {"ops": workload.OPS})
    yield client.post(workload.S + "/programs/p/runs", {})
    yield client.post(workload.S + "/sync", {})
    yield client.get(workload.S + "/memory")
    yield client.delete(workload.S + "/buffers/n")
    yield client.delete(workload.S + "/modules/n")
    yield client.post(workload.S + "/reset")


def right_again(client):
    try:
        if client.get(workload.S).json().get("state") != "ready" and client.post(workload.S + "/reset").status != 200:
            client.delete(workload.S)
        workload.prepare(client)
        if client.post(workload.S + "/launches", workload.fill7()).status != 200:
            client.post(workload.S + "/reset")
            return False
        return client.get(workload.S + "/buffers/x/data", Range="bytes=0-3").body == b"\7\0\0\0" and client.get("/readyz").status == 200
    except (AssertionError, http.client.HTTPException, ConnectionError):
        client.close()
        return False


def suffer(c, service, client, driver, function, answer):
    """Answers while the driver misbehaves, then waits until everything works."""
    c.note = f"the last: {function} {answer}"
    driver.says(f"{function}:0:{answer}")
    c.fault()
    bad = 0
    for got in work(client):
        if got.status >= 400:
            bad += 1
            assert got.status != 500 or got.code in ("device_error", "internal" if answer in OUR_FAULTS else "device_error"), (function, answer, got)
            assert got.code
    driver.says("")
    until(lambda: right_again(client), lambda: f"{function} {answer}: not right again: {client.get('/readyz?verbose=1').body}", 90)
    assert service.process.poll() is None, service.stderr()[-4000:]
    c.recovered()
    return bad


def test_every_error_at_every_call(driven):
    service, driver = driven
    client = service.client()
    workload.prepare(client)
    with Campaign("errors of the driver", 6, 0.15) as c:
        cases = [(function, error) for function in FUNCTIONS for error in ERRORS]
        c.random.shuffle(cases)
        told = 0
        for function, error in cases:
            told += suffer(c, service, client, driver, function, error)
            if not c.due():
                break
        c.note = f"{told} requests failed"


def test_the_service_ends_although_a_worker_hangs(driven):
    service, driver = driven
    client = service.client()
    workload.prepare(client)
    driver.says("cuMemcpyHtoDAsync_v2:0:hang")
    with Campaign("the end of a service whose driver hangs", 0, 0) as c:
        waiting = threading.Thread(target=no_answer, args=(service,), daemon=True)
        waiting.start()
        until(lambda: client.get("/v1/limits").json()["limits"]["requests_in_flight"]["used"] == 2, "the upload does not begin")
        c.fault()
        service.terminate()
        assert service.wait() == 0
        c.recovered()
        waiting.join(60)


def no_answer(service):
    try:
        service.client().put_octets(workload.S + "/buffers/x/data", b"z" * 4096)
    except (http.client.HTTPException, OSError):
        pass


@pytest.mark.skipif(not FULL, reason="each takes a call's whole deadline, 30 s")
def test_calls_that_never_return(driven):
    service, driver = driven
    client = service.client()
    client.timeout = 120
    workload.prepare(client)
    with Campaign("calls of the driver that hang", 0, 0.15) as c:
        for function in HANGING:
            suffer(c, service, client, driver, function, "hang")
            if not c.due():
                break


def test_memory_that_the_driver_has_not_back_yet_is_waited_for(driven):
    """As after freeing a whole device: the driver refuses for a moment, although nothing is allocated."""
    service, driver = driven
    client, other = service.client(), service.client()
    workload.prepare(client)
    for give_up in (lambda: client.delete(workload.S + "/buffers/x"), lambda: client.post(workload.S + "/reset"), lambda: client.delete(workload.S)):
        # A worker that was started while the driver refused has failed, and the next start is put off for a moment: 503, to be tried again.
        until(lambda: other.put("/v1/sessions/other").status in (200, 201), "there is no session")
        assert give_up().status in (200, 204)
        driver.says("cuMemAllocFromPoolAsync:0:2")
        back = threading.Timer(0.3, driver.says, ("",))
        back.start()
        made = other.put("/v1/sessions/other/buffers/b", {"size": 4096})
        back.join()
        assert made.status == 201, (made, service.stderr()[-2000:])
        assert other.delete("/v1/sessions/other").status == 204


def test_memory_that_nobody_gave_back_is_refused(driven):
    service, driver = driven
    client = service.client_in("first")
    driver.says("cuMemAllocFromPoolAsync:0:2")
    assert client.put("/v1/sessions/first/buffers/b", {"size": 4096}).code == "device_memory_exhausted"
    driver.says("")
    assert client.put("/v1/sessions/first/buffers/b", {"size": 4096}).status == 201
