"""A GPU whose management library reports heat and errors: new work is refused, running work is finished or ended, and every place reports
it. The driver and the library are fakes, controlled by a file beside them."""
import time

import pytest

from conftest import floats
from fake_gpu import device, driver, events, prepare, run_for_ever, start
from kernels import launch_vadd
from service_under_test import until


@pytest.fixture
def gpu(executable, driver, tmp_path):
    """steer(words), and a service on the fake GPU."""
    steer, libraries = driver
    service = start(executable, tmp_path, libraries)
    yield steer, service
    service.stop()


@pytest.fixture
def at_work(gpu):
    steer, service = gpu
    client = service.client()
    return steer, client, prepare(client, "/v1/sessions/s")


def test_what_the_library_tells_is_told(gpu):
    steer, service = gpu
    client = service.client()
    told = device(client)
    assert (told["state"], told["temperature_c"], told["temperature_max_c"], told["xid"], told["ecc_uncorrected"]) == ("healthy", 41, 90, None, 0)
    assert (told["vendor"], told["kind"], told["unified_memory"]) == ("NVIDIA", "gpu", False)
    assert (told["power_w"], told["power_limit_w"], told["power_limit_min_w"], told["power_limit_max_w"]) == (123, 650, 200, 700)
    assert (told["clock_khz"], told["clock_max_khz"], told["memory_clock_max_khz"]) == (1980000, 1995000, 3301000)
    assert (told["fan_pct"], told["performance_state"], told["memory_utilization_pct"], told["encoder_utilization_pct"]) == (35, 2, 12, 3)
    assert [told["pcie_" + what] for what in ("generation", "generation_max", "width", "width_max")] == [1, 5, 8, 16]
    assert told["decoder_utilization_pct"] is None
    assert told["unavailable"] == {"decoder_utilization_pct": "the driver does not report it for this device"}
    steer("ecc=7")
    until(lambda: device(client)["ecc_uncorrected"] == 7, "ECC errors")
    assert 'gpurest_device_fan_percent{device="cuda:0"} 35' in client.get("/metrics").body.decode()
    assert 'gpurest_device_ecc_uncorrected{device="cuda:0"} 7' in client.get("/metrics").body.decode()
    assert device(client)["state"] == "healthy"


def test_a_library_that_takes_long_to_load_is_waited_for(executable, driver, tmp_path):
    steer, libraries = driver
    steer("nvmlInit_v2:takes=2500")
    service = start(executable, tmp_path, libraries)
    try:
        assert device(service.client())["state"] == "healthy"
        assert "suspect" not in service.stderr()
    finally:
        service.stop()


def test_a_hot_device_finishes_and_takes_nothing_new_until_it_has_cooled_down(at_work):
    steer, client, session = at_work
    steer("temperature=95")
    until(lambda: device(client)["state"] == "hot", "the heat is not noticed")
    refused = client.post(session + "/launches", launch_vadd())
    assert refused.status == 503 and refused.code == "overloaded" and int(refused.headers["Retry-After"]) >= 1
    batch = client.post(session + "/batches", {"ops": [{"op": "fill", "to": "c", "pattern": {"u8": 0}}]})
    assert batch.status == 503 and batch.code == "overloaded", batch
    ready = client.get("/readyz")
    assert ready.status == 503 and "too hot" in ready.json()["detail"]
    assert 'gpurest_device_state{device="cuda:0",state="hot"} 1' in client.get("/metrics").body.decode()
    # Existing data can be fetched.
    assert client.get(session + "/buffers/c/data").body == floats(3 * i for i in range(1024))
    steer("temperature=88")  # below the limit, but not far enough
    time.sleep(3)
    assert device(client)["state"] == "hot"
    steer("temperature=60")
    until(lambda: device(client)["state"] == "healthy", "it stays hot")
    assert client.post(session + "/launches", launch_vadd()).status == 200
    until(lambda: client.get("/readyz").status == 200, "it stays unready")


def test_an_overheated_device_ends_what_runs_and_keeps_what_does_not(at_work):
    steer, client, session = at_work
    data = prepare(client, "/v1/sessions/data")
    running = run_for_ever(client, session)
    steer("temperature=95")  # hot, and at the limit of running work
    until(lambda: device(client)["state"] == "hot", "the heat is not noticed")
    time.sleep(1)
    assert client.get(running).json()["state"] == "running"
    steer("temperature=96")
    until(lambda: client.get(session).json()["state"] == "faulted", "it runs on")
    assert client.get(session).json()["fault"]["code"] == "device_overheated"
    assert client.get(session + "/buffers/c/data").code == "session_faulted"
    assert device(client)["state"] == "overheated"
    ready = client.get("/readyz")
    assert ready.status == 503 and "too hot" in ready.json()["detail"]
    metrics = client.get("/metrics").body.decode()
    assert 'gpurest_device_state{device="cuda:0",state="overheated"} 1' in metrics
    assert 'gpurest_worker_restarts_total{reason="device_overheated"} 1' in metrics
    assert [e["state"] for e in events(client, session, "device.health")] == ["hot", "overheated"]
    assert events(client, session, "session.state")[-1]["code"] == "device_overheated"
    # Who computed nothing has lost nothing, and waits.
    assert client.get(data).json()["state"] == "ready"
    assert client.get(data + "/buffers/c/data").body == floats(3 * i for i in range(1024))
    assert client.post(data + "/launches", launch_vadd()).code == "overloaded"
    steer("temperature=89")  # no longer too hot for work, but for new work
    until(lambda: device(client)["state"] == "hot", "it stays overheated")
    steer("temperature=60")
    until(lambda: device(client)["state"] == "healthy", "it stays hot")
    assert client.post(data + "/launches", launch_vadd()).status == 200
    assert client.post(session + "/reset").status == 200
    assert client.get("/problems/device_overheated").status == 200


def test_the_limit_of_running_work_is_a_setting(executable, driver, tmp_path):
    steer, libraries = driver
    service = start(executable, tmp_path, libraries, "--temperature-max-c", "60", "--temperature-stop-c", "70")
    try:
        client = service.client()
        session = prepare(client, "/v1/sessions/s")
        running = run_for_ever(client, session)
        steer("temperature=70")
        until(lambda: device(client)["state"] == "hot", "the heat is not noticed")
        assert client.get(running).json()["state"] == "running"
        steer("temperature=71")
        until(lambda: client.get(session).json()["state"] == "faulted", "it runs on")
        assert "running work ends" in service.stderr()
    finally:
        service.stop()


@pytest.mark.parametrize("words,state", [("gpu1.temperature=96", "overheated"), ("gpu1.xid=79", "quarantined"), ("gpu1.lost=1", "quarantined")])
def test_of_two_devices_one_that_is_out_is_out_alone(executable, driver, tmp_path, words, state):
    steer, libraries = driver
    (libraries / "libcuda.so.1.devices").write_text("2")
    service = start(executable, tmp_path, libraries)
    try:
        client = service.client()
        good = prepare(client, "/v1/sessions/good", device="cuda:0")
        bad = prepare(client, "/v1/sessions/bad", device="cuda:1")
        running, ending = run_for_ever(client, good), run_for_ever(client, bad)
        steer(words)
        until(lambda: client.get(bad).json()["state"] == "faulted", "it runs on")
        states = {d["id"]: d["state"] for d in client.get("/v1/devices").json()["items"]}
        assert states == {"cuda:0": "healthy", "cuda:1": state}
        assert client.get("/readyz").status == 200
        until(lambda: client.get(ending).json()["state"] == "failed", "its launch has no end")
        assert client.get(running).json()["state"] == "running"
        assert client.put("/v1/sessions/new").json()["device"] == "cuda:0"
    finally:
        service.stop()


def test_an_error_that_asks_for_a_reset_lets_sessions_finish_and_none_begin(at_work):
    steer, client, session = at_work
    steer("xid=119")
    until(lambda: device(client)["state"] == "quarantined", "the error is not noticed")
    assert device(client)["xid"] == 119
    assert client.post(session + "/launches", launch_vadd()).status == 200
    other = client.put("/v1/sessions/other", {"device": "cuda:0"})
    assert other.status == 500 and other.code == "device_error" and "119" in other.json()["detail"]
    assert client.get("/readyz").status == 503
    steer("")
    time.sleep(3)
    assert device(client)["state"] == "quarantined"  # the service cannot know that it was reset
    assert client.post(session + "/launches", launch_vadd()).status == 200


@pytest.mark.parametrize("words", ["xid=79", "xid=48", "lost=1"])
def test_a_device_whose_results_are_in_doubt_ends_its_sessions(at_work, words):
    steer, client, session = at_work
    steer(words)
    until(lambda: client.get(session).json()["state"] == "faulted", "the session goes on")
    assert client.get(session).json()["fault"]["code"] == "device_error"
    assert device(client)["state"] == "quarantined"
    reset = client.post(session + "/reset")
    assert reset.status == 500 and reset.code == "device_error", reset


def test_a_library_that_is_slow_or_fails_once_is_asked_again(at_work):
    """Faults only slow the watch down: a caller cannot stop the watch over the hardware."""
    steer, client, session = at_work
    until(lambda: device(client)["temperature_c"] == 41, "the library is not asked")
    for trouble in ("nvmlDeviceGetTemperature:takes=400", "nvmlDeviceGetHandleByUUID:fails=999"):
        steer(trouble)
        assert device(client)["state"] == "healthy"
        assert client.post(session + "/launches", launch_vadd()).status == 200
        steer("temperature=95")
        until(lambda: device(client)["state"] == "hot", "it is not asked any more")
        steer("temperature=60")
        until(lambda: device(client)["state"] == "healthy", "it stays hot")
    steer("xid=119")
    until(lambda: client.get("/readyz").status == 503, "errors are not listened to any more")


def test_errors_of_kernels_are_no_errors_of_the_device(at_work):
    steer, client, session = at_work
    steer("xid=31 ecc=1")
    until(lambda: device(client)["ecc_uncorrected"] == 1, "the library is not asked")
    steer("xid=94 ecc=2")
    until(lambda: device(client)["ecc_uncorrected"] == 2, "the library is not asked")
    assert device(client)["state"] == "healthy" and device(client)["xid"] is None
    assert client.post(session + "/launches", launch_vadd()).status == 200
