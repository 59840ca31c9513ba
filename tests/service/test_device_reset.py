"""Resets of devices on request, and what the service does about devices with errors by itself. The driver, the management library and the
vendor's tool are fakes."""
import pathlib
import threading

import pytest

from conftest import floats
from fake_gpu import device, driver, events, prepare, run_for_ever, says, script_of, start, tool
from kernels import launch_vadd
from service_under_test import Client, until

RESET = "/v1/admin/devices/cuda:0/reset"
BROKEN = "cuInit:0:999"
UUID = "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff"


def patient(client):
    client.timeout = 300
    return client


@pytest.fixture
def running(executable, driver, tmp_path):
    """run(more arguments) starts a service; its client. All end with the test."""
    services = []

    def run(*more):
        services.append(start(executable, tmp_path, driver[1], *more))
        return patient(services[-1].client())

    yield run
    for service in services:
        service.stop()


def ready(client):
    return until(lambda: device(client)["state"] == "healthy", "it does not come back")


def steps(client, session):
    return [e["step"] for e in events(client, session, "device.health") if "step" in e]


def counted(client, step):
    return f'gpurest_device_recoveries_total{{step="{step}"}} 1\n' in client.get("/metrics").body.decode()


def test_a_soft_reset_replaces_all_processes_and_a_session_goes_on_after_its_own_reset(running):
    client = running()
    session = prepare(client, "/v1/sessions/s")
    before = client.get("/readyz?verbose=1").json()["devices"][0]
    answer = client.post(RESET, {"kind": "soft"})
    assert answer.status == 200 and answer.json()["id"] == "cuda:0" and answer.json()["state"] == "healthy", answer
    told = client.get(session).json()
    assert (told["state"], told["fault"]["code"]) == ("faulted", "device_reset")
    assert client.post(session + "/launches", launch_vadd()).code == "session_faulted"
    assert steps(client, session) == ["soft_reset"] and counted(client, "soft_reset")
    assert events(client, session, "session.state")[-1]["code"] == "device_reset"
    assert before["workers_used"] == 1
    assert client.post(session + "/reset").status == 200
    assert prepare(client, "/v1/sessions/other")
    assert client.get("/readyz").status == 200
    assert client.get("/problems/device_reset").status == 200


def test_requests_that_are_wrong_change_nothing(running):
    client = running()
    session = prepare(client, "/v1/sessions/s")
    for body, code in (({}, "invalid_field"), ({"kind": "warm"}, "invalid_field"), ({"kind": "soft", "timeout_s": 3601}, "invalid_field"),
                       ({"kind": "soft", "timeout_s": -1}, "invalid_field"), ({"kind": "soft", "timeout_s": "18446744073709551616"}, "invalid_field"),
                       ({"kind": "soft", "when": 1}, "unknown_field"), ({"kind": "hard"}, "feature_disabled")):
        assert client.post(RESET, body).code == code, body
    assert client.post("/v1/admin/devices/cuda:7/reset", {"kind": "soft"}).code == "device_not_found"
    assert client.post(session + "/launches", launch_vadd()).status == 200
    assert client.get(session + "/buffers/c/data").body == floats(3 * i for i in range(1024))


def test_running_work_may_finish_and_new_work_is_refused_meanwhile(running):
    client = running()
    session, other = prepare(client, "/v1/sessions/s"), prepare(client, "/v1/sessions/other")
    launch = run_for_ever(client, session)
    answers = []
    other_client = patient(Client(client.host, client.port))
    thread = threading.Thread(target=lambda: answers.append(other_client.post(RESET, {"kind": "soft", "timeout_s": 600})))
    thread.start()
    until(lambda: device(client)["state"] == "resetting", "it does not begin")
    assert client.post(other + "/launches", launch_vadd()).code == "overloaded"
    assert client.put("/v1/sessions/new", {"device": "cuda:0"}).code == "overloaded"
    again = client.post(RESET, {"kind": "soft"})
    assert again.status == 409 and again.code == "device_busy"
    unready = client.get("/readyz")
    assert unready.status == 503 and "being reset" in unready.json()["detail"]
    assert client.get(launch).json()["state"] == "running"
    assert client.get(other + "/buffers/c/data").body == floats(3 * i for i in range(1024))
    assert client.delete(session).status == 204  # that ends the work
    thread.join()
    assert answers[0].status == 200, answers
    assert client.get(other).json()["fault"]["code"] == "device_reset"


def test_a_service_that_leaves_gives_up_a_reset_that_waits(executable, driver, tmp_path):
    service = start(executable, tmp_path, driver[1], "--drain-timeout", "0")
    client = patient(service.client())
    run_for_ever(client, prepare(client, "/v1/sessions/s"))
    answers = []
    other_client = patient(service.client())
    thread = threading.Thread(target=lambda: answers.append(other_client.post(RESET, {"kind": "soft", "timeout_s": 600})))
    thread.start()
    until(lambda: device(client)["state"] == "resetting", "it does not begin")
    service.stop()
    thread.join()
    assert answers[0].status == 503 and answers[0].code == "draining", answers


def test_a_service_that_leaves_does_not_leave_the_tool_behind(executable, driver, tmp_path):
    service = start(executable, tmp_path, driver[1], "--drain-timeout", "0", "--allow-device-settings", "--nvidia-smi", str(tool(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 1000")))
    client = patient(service.client())
    thread = threading.Thread(target=lambda: client.post(RESET, {"kind": "hard"}))
    thread.start()
    pid = until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), "the tool does not run")
    service.stop()
    thread.join()
    assert not pathlib.Path(f"/proc/{pid}").exists()


def test_work_that_does_not_finish_in_time_ends(running):
    client = running()
    session = prepare(client, "/v1/sessions/s")
    launch = run_for_ever(client, session)
    assert client.post(RESET, {"kind": "soft", "timeout_s": 1}).status == 200
    told = client.get(session).json()
    assert (told["state"], told["fault"]["code"]) == ("faulted", "device_reset")
    assert client.get(launch).json()["state"] == "failed"


def test_a_reset_clears_errors_that_the_device_no_longer_reports(running, driver):
    steer, _ = driver
    client = running()
    steer("xid=119")
    until(lambda: device(client)["state"] == "quarantined", "the error is not noticed")
    lasting = client.post(RESET, {"kind": "soft"})
    assert lasting.status == 500 and lasting.code == "device_error" and "119" in lasting.json()["detail"]
    assert (device(client)["state"], device(client)["xid"]) == ("quarantined", 119)
    steer("")
    assert client.post(RESET, {"kind": "soft"}).status == 200
    assert (device(client)["state"], device(client)["xid"]) == ("healthy", None)
    assert prepare(client, "/v1/sessions/s", device="cuda:0")


def test_a_hard_reset_runs_the_tool_when_nothing_of_ours_is_left_on_the_device(running, driver, tmp_path):
    client = running("--allow-device-settings", "--nvidia-smi", str(tool(tmp_path, "echo well done")))
    session = prepare(client, "/v1/sessions/s")
    assert client.post(RESET, {"kind": "hard", "timeout_s": 0}).status == 200
    assert (tmp_path / "calls").read_text() == f"--gpu-reset -i {UUID}\n"
    assert "--role=worker" not in (tmp_path / "beside").read_text() and "nvidia-smi" in (tmp_path / "beside").read_text()
    assert client.get(session).json()["fault"]["code"] == "device_reset"
    assert client.post(session + "/reset").status == 200 and counted(client, "hard_reset")


@pytest.mark.parametrize("does,tells", [("echo GPU is in use by another client; exit 3", "exit code 3): GPU is in use by another client"),
                                        ("head -c 200000 /dev/zero | tr '\\0' x; kill -9 $$", "signal 9): xxx")])
def test_a_tool_that_fails_is_quoted_and_the_device_serves_on(running, driver, tmp_path, does, tells):
    client = running("--allow-device-settings", "--nvidia-smi", str(tool(tmp_path, does)))
    answer = client.post(RESET, {"kind": "hard"})
    assert answer.status == 500 and answer.code == "device_error" and tells in answer.json()["detail"], answer
    ready(client)
    assert prepare(client, "/v1/sessions/s")


def test_a_tool_that_is_not_there_is_told(running, tmp_path):
    client = running("--allow-device-settings", "--nvidia-smi", str(tmp_path / "none"))
    answer = client.post(RESET, {"kind": "hard"})
    assert answer.status == 500 and "--nvidia-smi" in answer.json()["detail"], answer
    ready(client)


def test_a_device_with_errors_is_tried_again_then_reset_then_quarantined_until_it_computes(running, driver):
    script = script_of(driver[1])
    client = running()
    session = prepare(client, "/v1/sessions/s")
    says(script, BROKEN)
    assert client.put("/v1/sessions/next").status == 201  # on a waiting worker, which is replaced
    until(lambda: device(client)["state"] == "quarantined", "it goes on")
    assert steps(client, session) == ["worker", "soft_reset"]
    assert client.get(session).json()["fault"]["code"] == "device_reset"
    assert counted(client, "worker") and counted(client, "soft_reset")
    assert client.put("/v1/sessions/new", {"device": "cuda:0"}).code == "device_error"
    says(script, "")
    ready(client)
    assert client.post(session + "/reset").status == 200


def test_a_management_library_that_hangs_ends_no_session(running, driver):
    steer, _ = driver
    client = running()
    session = prepare(client, "/v1/sessions/s")
    steer("nvmlDeviceGetTemperature:hangs=1")
    # Each monitor that hangs is given up at its deadlines: 10 s for a question, 30 s for a start, and the pauses between.
    until(lambda: device(client)["state"] == "quarantined", "it is not noticed", seconds=600)
    assert steps(client, session) == ["worker"]
    assert client.post(session + "/launches", launch_vadd()).status == 200
    steer("")
    ready(client)


def test_the_last_step_is_a_hard_reset_where_that_is_allowed(running, driver, tmp_path):
    script = script_of(driver[1])
    client = running("--allow-device-settings", "--nvidia-smi", str(tool(tmp_path, f"head -c 4096 /dev/zero > {tmp_path}/zero; dd if={tmp_path}/zero of={script} conv=notrunc")))
    session = prepare(client, "/v1/sessions/s")
    says(script, BROKEN)
    assert client.put("/v1/sessions/next").status == 201
    until(lambda: (tmp_path / "calls").exists(), "the tool does not run")
    ready(client)
    assert steps(client, session) == ["worker", "soft_reset", "hard_reset"]
    assert "quarantined" not in [e["state"] for e in events(client, session, "device.health")]
    assert (tmp_path / "calls").read_text() == f"--gpu-reset -i {UUID}\n"


def test_an_error_that_asks_for_a_reset_gets_it_where_that_is_allowed_once_its_sessions_are_gone(running, driver, tmp_path):
    steer, libraries = driver
    client = running("--allow-device-settings", "--nvidia-smi", str(tool(tmp_path, f": > {libraries}/fake-nvml")))
    session = prepare(client, "/v1/sessions/s")
    steer("xid=119")
    until(lambda: device(client)["state"] == "quarantined", "the error is not noticed")
    assert client.post(session + "/launches", launch_vadd()).status == 200
    assert not (tmp_path / "calls").exists()
    assert client.delete(session).status == 204
    ready(client)
    assert device(client)["xid"] is None and counted(client, "hard_reset")


def test_a_hard_reset_that_does_not_help_is_tried_three_times(running, driver, tmp_path):
    steer, _ = driver
    client = running("--allow-device-settings", "--nvidia-smi", str(tool(tmp_path, "exit 0")))
    steer("xid=79")
    until(lambda: (tmp_path / "calls").exists() and (tmp_path / "calls").read_text().count("\n") == 3, "it gives up too early")
    until(lambda: device(client)["state"] == "quarantined", "it goes on")
    assert (tmp_path / "calls").read_text().count("\n") == 3
