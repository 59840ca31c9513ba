"""Devices that come, go and come again while the service runs: SIGHUP counts them again. The driver and its management library are fakes; which
GPUs they show, a file and CUDA_VISIBLE_DEVICES say."""
import os
import pathlib
import signal
import subprocess
import threading
import time

import pytest

from conftest import floats
from fake_gpu import device, driver, events, prepare, run_for_ever, says, script_of, start, tool
from kernels import launch_vadd
from service_under_test import Client, Service, environment, role_of, until

FIRST, SECOND, THIRD = ("GPU-" + start + "f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff" for start in ("f0", "ef", "ee"))
RESULT = floats(3 * i for i in range(1024))
S, T = "/v1/sessions/s", "/v1/sessions/t"


def patient(client):
    client.timeout = 300
    return client


@pytest.fixture
def show(driver):
    """show(text): the GPUs that a process sees which starts the driver from now on, see fake_cuda.h."""
    def write(text):
        file = driver[1] / "libcuda.so.1.devices"
        (driver[1] / "next").write_text(text)
        (driver[1] / "next").rename(file)

    return write


@pytest.fixture
def run(executable, driver, tmp_path):
    services = []

    def run(*more):
        services.append(start(executable, tmp_path, driver[1], *more))
        return services[-1]

    yield run
    for service in services:
        service.stop()


def devices(client):
    return {d["id"]: d for d in client.get("/v1/devices").json()["items"]}


def states(client):
    return {name: d["state"] for name, d in devices(client).items()}


def hang_up(service):
    service.process.send_signal(signal.SIGHUP)


def recount(service, expected):
    """Counts again, until the devices' states are as expected."""
    client = patient(service.client())
    hang_up(service)
    until(lambda: states(client) == expected, lambda: (states(client), service.stderr()[-3000:]))


def works(client, session):
    assert client.post(session + "/launches", launch_vadd()).status == 200
    assert client.get(session + "/buffers/c/data").body == RESULT


def counters(service):
    return {pid for pid in service.processes() if role_of(pid) == b"--role=count"}


def test_a_new_device_gets_sessions(run, show):
    show("1")
    service = run()
    client = patient(service.client())
    kept = prepare(client, S)
    show("2")
    recount(service, {"cuda:0": "healthy", "cuda:1": "healthy"})
    assert [d["uuid"] for d in devices(client).values()] == [FIRST, SECOND]
    assert prepare(client, T) and client.get(T).json()["device"] == "cuda:1", "it is the one with the fewest sessions"
    assert client.get("/readyz").body == b"ok\n"
    works(client, kept)
    assert 'gpurest_device_state{device="cuda:1",state="healthy"} 1' in client.get("/metrics").body.decode()
    assert "device cuda:1 was found: " + SECOND in service.stderr()


def test_a_device_that_is_gone_is_lost_and_the_others_lose_nothing(run, show):
    show("2")
    service = run("--allow-device-settings")
    client = patient(service.client())
    kept, gone = prepare(client, S, device="cuda:0"), prepare(client, T, device="cuda:1")
    running = run_for_ever(client, gone)
    workers = service.children()
    show("1")
    recount(service, {"cuda:0": "healthy", "cuda:1": "lost"})
    until(lambda: client.get(gone).json()["state"] == "faulted", "its session is not told")
    told = client.get(gone).json()
    assert told["fault"]["code"] == "device_lost" and "cuda:1 is lost" in told["fault"]["detail"]
    until(lambda: client.get(running).json()["state"] == "failed", "what ran does not end")  # its worker is to go first
    until(lambda: [e["state"] for e in events(client, gone, "device.health")] == ["lost"], "no event")
    assert client.post(gone + "/launches", launch_vadd()).code == "device_lost"
    assert client.post(gone + "/reset").code == "device_lost"
    refused = client.put("/v1/sessions/new", {"device": "cuda:1"})
    assert refused.status == 503 and refused.code == "device_lost" and refused.json()["retryable"] is False, refused
    assert client.post("/v1/admin/devices/cuda:1/reset", {"kind": "soft"}).code == "device_lost"
    assert client.patch("/v1/admin/devices/cuda:1", {"settings": {"power_limit_w": 300}}).code == "device_lost"
    ready = client.get("/readyz")
    assert (ready.status, ready.body) == (200, b"ok\ndevice cuda:1 is lost\n")
    lost = device(client) and client.get("/v1/devices/cuda:1").json()
    assert lost["uuid"] == SECOND and lost["temperature_c"] is None and lost["unavailable"]["temperature_c"] == "the device is lost"
    assert lost["memory"]["free_bytes"] == 0
    metrics = client.get("/metrics").body.decode()
    assert 'gpurest_device_state{device="cuda:1",state="lost"} 1' in metrics
    assert 'gpurest_worker_restarts_total{reason="device_lost"} 1' in metrics
    assert 'gpurest_device_memory_bytes{device="cuda:0"' in metrics and 'gpurest_device_memory_bytes{device="cuda:1"' not in metrics
    assert client.get("/problems/device_lost").status == 200
    works(client, kept)
    assert client.get(kept).json()["generation"] == 1 and len(workers & service.children()) >= 4, "those of the other device stay"
    assert prepare(client, "/v1/sessions/other") and client.get("/v1/sessions/other").json()["device"] == "cuda:0"


def test_one_that_is_found_again_goes_on(run, show, driver):
    noted = driver[1] / "fake-nvml-set"
    show("2")
    service = run("--allow-device-settings")
    client = patient(service.client())
    session = prepare(client, T, device="cuda:1")
    assert client.patch("/v1/admin/devices/cuda:1", {"settings": {"power_limit_w": 300}}).status == 200
    for times in (2, 3):
        show("1")
        recount(service, {"cuda:0": "healthy", "cuda:1": "lost"})
        until(lambda: client.get(session).json()["state"] == "faulted", "its session is not told")
        show("2")
        recount(service, {"cuda:0": "healthy", "cuda:1": "healthy"})
        assert client.post(session + "/reset").status == 200
        assert prepare(client, f"/v1/sessions/again{times}", device="cuda:1")
        until(lambda: noted.read_text().count("nvmlDeviceSetPowerManagementLimit 300000 0") == times, noted.read_text)
    assert client.get("/v1/devices/cuda:1").json()["settings"]["power_limit_w"] == 300


def test_a_device_keeps_its_id_when_its_index_changes(run, show):
    show("2")
    service = run()
    client = patient(service.client())
    session = prepare(client, S, device="cuda:0")
    show("1,0,2")
    recount(service, {"cuda:0": "healthy", "cuda:1": "healthy", "cuda:2": "healthy"})
    works(client, session)
    assert client.get(session).json()["generation"] == 1
    for pid in service.children():
        os.kill(pid, signal.SIGKILL)
    until(lambda: client.get("/readyz").body == b"ok\n" and states(client)["cuda:0"] == "healthy", "they are not replaced")
    assert {name: d["uuid"] for name, d in devices(client).items()} == {"cuda:0": FIRST, "cuda:1": SECOND, "cuda:2": THIRD}
    show("0,1,2")  # and nobody counts: a new process finds its device by its UUID
    for pid in service.children():
        os.kill(pid, signal.SIGKILL)
    until(lambda: client.get("/readyz").body == b"ok\n", "they are not replaced")
    assert {name: d["uuid"] for name, d in devices(client).items()} == {"cuda:0": FIRST, "cuda:1": SECOND, "cuda:2": THIRD}


def test_a_number_is_not_given_twice(run, show):
    show("1")
    service = run()
    client = patient(service.client())
    show("1,")
    recount(service, {"cuda:0": "lost", "cuda:1": "healthy"})
    assert devices(client)["cuda:1"]["uuid"] == SECOND
    assert prepare(client, S) and client.get(S).json()["device"] == "cuda:1"
    show("2,0")
    recount(service, {"cuda:0": "healthy", "cuda:1": "lost", "cuda:2": "healthy"})
    assert devices(client)["cuda:2"]["uuid"] == THIRD


def test_no_device_at_all_is_no_end(run, show):
    show("1")
    service = run()
    client = patient(service.client())
    session = prepare(client, S)
    show("0")
    recount(service, {"cuda:0": "lost"})
    ready = client.get("/readyz")
    assert ready.status == 503 and ready.json()["detail"] == "device cuda:0 is lost"
    refused = client.put(T).expect(503, "not_ready")  # it was there, and may be again: another node, or another time
    assert refused.json()["retryable"] and "cuda:0 is lost" in refused.json()["detail"] and refused.headers["Retry-After"]
    client.put(T, {"device": "cuda"}).expect(503, "not_ready")
    client.put(T, {"device": "cuda:0"}).expect(503)
    client.put(T, {"device": "cuda:7"}).expect(404, "device_not_found")
    client.put(T, {"device": "cpu"}).expect(404, "device_not_found")
    client.post("/v1/cache/warm", {"kernels": ["axpy"], "devices": ["cuda"]}).expect(503, "not_ready")
    show("1")
    recount(service, {"cuda:0": "healthy"})
    assert client.get("/readyz").status == 200 and client.post(session + "/reset").status == 200


def test_the_choice_of_devices_is_read_again(run, show, tmp_path):
    settings = tmp_path / "settings"
    settings.write_text("visible_devices = 0\n")
    show("3")
    service = run("--config", str(settings))
    client = patient(service.client())
    assert states(client) == {"cuda:0": "healthy"} and devices(client)["cuda:0"]["uuid"] == FIRST
    session = prepare(client, S)
    settings.write_text("visible_devices = 2,0\n")
    recount(service, {"cuda:0": "healthy", "cuda:1": "healthy"})
    assert [d["uuid"] for d in devices(client).values()] == [FIRST, THIRD]
    works(client, session)
    settings.write_text("visible_devices = " + THIRD[:10] + "\n")
    recount(service, {"cuda:0": "lost", "cuda:1": "healthy"})
    settings.write_text("visible_devices = 0\nno such line\n")
    hang_up(service)
    service.logged("devices are not counted again")
    assert states(client) == {"cuda:0": "lost", "cuda:1": "healthy"} and "settings:2:" in service.stderr()
    settings.write_text("")
    recount(service, {"cuda:0": "healthy", "cuda:1": "healthy", "cuda:2": "healthy"})


def test_a_choice_overrides_the_environment_and_a_flag_overrides_the_file(executable, driver, show, tmp_path):
    settings = tmp_path / "settings"
    settings.write_text("visible_devices = 0\n")
    show("3")
    service = Service(executable, tmp_path, "--libcuda", str(driver[1] / "libcuda.so.1"), "--backends", "cuda", "--vendor-libraries", "off",
                      "--config", str(settings), "--visible-devices", "1,2", variables={"CUDA_VISIBLE_DEVICES": "0"})
    try:
        client = patient(service.client())
        assert [d["uuid"] for d in devices(client).values()] == [SECOND, THIRD]
        settings.write_text("visible_devices = -1\n")
        hang_up(service)
        until(lambda: service.stderr().count("backend cuda: 2 devices") == 2, "it is not counted again")
        assert set(states(client).values()) == {"healthy"}
    finally:
        service.stop()


def test_a_pipe_of_settings_is_read_once(run, show, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("visible_devices = 1\n"))
    writer.start()
    show("2")
    service = run("--config", str(pipe))
    writer.join()
    client = patient(service.client())
    assert devices(client)["cuda:0"]["uuid"] == SECOND
    show("3")
    hang_up(service)
    until(lambda: service.stderr().count("backend cuda: 1 device") == 2, "it is not counted again")
    assert states(client) == {"cuda:0": "healthy"}


def test_a_driver_that_cannot_count_loses_nothing(run, show, driver):
    script = script_of(driver[1])
    show("2")
    service = run()
    client = patient(service.client())
    session = prepare(client, S)
    says(script, "cuDeviceGetCount:0:999")
    hang_up(service)
    service.logged("its devices could not be counted, and stay as they were")
    works(client, session)
    assert states(client) == {"cuda:0": "healthy", "cuda:1": "healthy"}
    says(script, "")
    show("1")
    recount(service, {"cuda:0": "healthy", "cuda:1": "lost"})


def test_a_counter_that_hangs_or_dies_loses_nothing(run, show, driver):
    script = script_of(driver[1])
    show("2")
    service = run()
    client = patient(service.client())
    session = prepare(client, S)
    says(script, "cuDeviceGetCount:0:hang")
    show("1")
    hang_up(service)
    hanging = until(lambda: counters(service), "nobody counts")
    works(client, session)
    assert client.get("/readyz").status == 200
    hang_up(service)  # one more count comes behind it
    for pid in hanging:
        os.kill(pid, signal.SIGKILL)
    service.logged("devices were not counted again, and stay as they were: the process that counts devices failed (signal 9)")
    again = until(lambda: counters(service) - hanging, "the second request is forgotten")
    service.logged("the process that counts devices did not end in time", 120)
    assert states(client) == {"cuda:0": "healthy", "cuda:1": "healthy"} and not again & counters(service)
    works(client, session)
    says(script, "")
    recount(service, {"cuda:0": "healthy", "cuda:1": "lost"})


def test_a_service_that_leaves_takes_its_counter_along(executable, driver, show, tmp_path):
    script = script_of(driver[1])
    service = start(executable, tmp_path, driver[1])
    says(script, "cuDeviceGetCount:0:hang")
    hang_up(service)
    pid, = until(lambda: counters(service), "nobody counts")
    service.stop()
    assert not pathlib.Path(f"/proc/{pid}").exists()


def test_many_signals_make_few_counts_and_harm_nobody(run, show):
    show("2")
    service = run()
    client = patient(service.client())
    sessions = [prepare(client, S, device="cuda:0"), prepare(client, T, device="cuda:1")]
    over, most = threading.Event(), []

    def storm():
        while not over.is_set():
            hang_up(service)
            time.sleep(0.001)

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        for _ in range(30):
            for session in sessions:
                works(client, session)
            most.append(len(counters(service)))
    finally:
        over.set()
        thread.join()
    assert max(most) <= 1
    until(lambda: not counters(service), "it counts for ever")
    assert states(client) == {"cuda:0": "healthy", "cuda:1": "healthy"}
    assert [client.get(session).json()["generation"] for session in sessions] == [1, 1]
    show("1")
    recount(service, {"cuda:0": "healthy", "cuda:1": "lost"})


def test_a_count_waits_for_the_tool_that_resets_a_device(run, show, tmp_path):
    show("2")
    service = run("--allow-device-settings", "--nvidia-smi", str(tool(tmp_path, f"while [ ! -e {tmp_path}/go-on ]; do sleep 0.1; done")))
    client = patient(service.client())
    kept = prepare(client, S, device="cuda:0")
    answers = []
    other = patient(Client(client.host, client.port))
    thread = threading.Thread(target=lambda: answers.append(other.post("/v1/admin/devices/cuda:1/reset", {"kind": "hard"})))
    thread.start()
    until((tmp_path / "calls").exists, "the tool does not run")
    show("1")  # under the tool it is not visible
    counted = service.stderr().count("backend cuda: ")
    for _ in range(3):
        hang_up(service)
    for _ in range(20):
        assert not counters(service)
        works(client, kept)
    show("2")
    (tmp_path / "go-on").touch()
    thread.join()
    assert answers[0].status == 200, answers
    until(lambda: service.stderr().count("backend cuda: ") > counted, "the request is forgotten")
    assert states(client) == {"cuda:0": "healthy", "cuda:1": "healthy"}


def test_a_device_that_is_lost_while_it_waits_for_its_reset(run, show):
    show("2")
    service = run()
    client = patient(service.client())
    kept, session = prepare(client, S, device="cuda:0"), prepare(client, T, device="cuda:1")
    run_for_ever(client, session)
    answers = []
    other = patient(Client(client.host, client.port))
    thread = threading.Thread(target=lambda: answers.append(other.post("/v1/admin/devices/cuda:1/reset", {"kind": "soft", "timeout_s": 600})))
    thread.start()
    until(lambda: states(client)["cuda:1"] == "resetting", "it does not begin")
    show("1")
    recount(service, {"cuda:0": "healthy", "cuda:1": "lost"})
    thread.join()
    assert answers[0].status == 503 and answers[0].code == "device_lost", answers
    works(client, kept)
    show("2")
    recount(service, {"cuda:0": "healthy", "cuda:1": "healthy"})
    assert client.post(session + "/reset").status == 200


def test_an_error_that_asks_for_a_reset_outlives_the_loss(run, show, driver, tmp_path):
    steer, libraries = driver
    show("2")
    service = run("--allow-device-settings", "--nvidia-smi", str(tool(tmp_path, f": > {libraries}/fake-nvml")))
    client = patient(service.client())
    session = prepare(client, S, device="cuda:0")
    steer("xid=119")
    until(lambda: states(client)["cuda:0"] == "quarantined", "the error is not noticed")
    show("1,")
    recount(service, {"cuda:0": "lost", "cuda:1": "healthy"})
    assert client.delete(session).status == 204
    counted = service.stderr().count("backend cuda: ")
    hang_up(service)
    until(lambda: service.stderr().count("backend cuda: ") > counted, "it does not count")
    assert not (tmp_path / "calls").exists(), "a lost device was reset"
    show("2")
    recount(service, {"cuda:0": "healthy", "cuda:1": "healthy"})
    assert (tmp_path / "calls").read_text() == f"--gpu-reset -i {FIRST}\n"
    assert devices(client)["cuda:0"]["xid"] is None


def test_a_signal_during_the_start_is_obeyed_after_it(executable, driver, show, tmp_path):
    steer, libraries = driver
    steer("nvmlInit_v2:takes=3000")
    show("1")
    ports, log = tmp_path / "ports", tmp_path / "log"
    with open(log, "wb") as stderr:
        process = subprocess.Popen([executable, "--port-file", str(ports), "--listen", "127.0.0.1:0", "--backends", "cuda", "--libcuda",
                                    str(libraries / "libcuda.so.1"), "--vendor-libraries", "off", "--drain-timeout", "0", "--no-warm-compiler"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, env=environment(tmp_path), cwd=tmp_path)
    try:
        until(lambda: "backend cuda: 1 device" in log.read_text(), "it does not count")
        assert not ports.exists(), "it has started already"
        show("2")
        for _ in range(5):
            process.send_signal(signal.SIGHUP)
        until(ports.exists, "it does not serve")
        client = patient(Client("127.0.0.1", int(ports.read_text().split()[0].rsplit(":", 1)[1])))
        until(lambda: states(client) == {"cuda:0": "healthy", "cuda:1": "healthy"}, log.read_text)
    finally:
        process.terminate()
        assert process.wait(120) == 0


def test_a_service_on_the_cpu_device_counts_too(executable, tmp_path):
    service = Service(executable, tmp_path, "--backends", "cpu")
    try:
        client = service.client_in("s")
        assert client.put_octets(S + "/buffers/x", b"1234").status == 201
        for times in (2, 3):
            hang_up(service)
            until(lambda: service.stderr().count("backend cpu: 1 device") == times, "it does not count")
        assert client.get(S + "/buffers/x/data").body == b"1234" and states(client) == {"cpu:0": "healthy"}
    finally:
        service.stop()


def test_a_gpu_that_comes_later_is_preferred_to_the_cpu_device(executable, driver, show, tmp_path):
    show("0")
    service = Service(executable, tmp_path, "--libcuda", str(driver[1] / "libcuda.so.1"), "--backends", "cuda,cpu", "--vendor-libraries", "off")
    try:
        client = patient(service.client_in("early"))
        assert client.get("/v1/sessions/early").json()["device"] == "cpu:0"
        show("2")
        recount(service, {"cpu:0": "healthy", "cuda:0": "healthy", "cuda:1": "healthy"})
        assert client.put("/v1/sessions/late").json()["device"] == "cuda:0"
        assert [b["name"] for b in client.get("/version").json()["backends"]] == ["cpu", "cuda"]
        pages = []
        path = "/v1/devices?limit=1"
        while path:
            page = client.get(path).json()
            pages += [d["id"] for d in page["items"]]
            path = page["next_cursor"] and "/v1/devices?limit=1&cursor=" + page["next_cursor"]
        assert pages == ["cpu:0", "cuda:0", "cuda:1"]
    finally:
        service.stop()
