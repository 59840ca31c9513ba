"""Fault domains on a GPU: their sessions share an MPS server. The driver, the GPU and MPS are fakes; tests/bench/fault_domains.py has real ones."""
import fcntl
import os
import pathlib
import signal
import subprocess
import tempfile

import pytest

from conftest import VADD, floats
from fake_gpu import device, driver, events, prepare, run_for_ever, start  # noqa: F401
from fake_mps import FakeMps
from kernels import FAULTS, launch, launch_vadd
from service_under_test import children_of, in_threads, role_of, until

TRAIN = {"fault_domain": "train"}


@pytest.fixture
def mps(tmp_path):
    return FakeMps(tmp_path / "mps")


@pytest.fixture
def run(executable, driver, tmp_path):  # noqa: F811
    """run(more arguments) starts a service on the fake GPU. All end with the test."""
    services = []

    def run(*more):
        folder = tmp_path / f"n{len(services)}"
        folder.mkdir()
        services.append(start(executable, folder, driver[1], *more))
        return services[-1]

    yield run
    for service in services:
        service.stop()


def client_of(service):
    client = service.client()
    client.timeout = 300
    return client


def state_of(client, session):
    told = client.get(session).json()
    return told["state"], told.get("fault", {}).get("code")


def fault_in(client, session):
    assert client.put_cuda(session + "/modules/f", FAULTS).status in (200, 201)
    return client.post(session + "/launches", launch("illegal", {"u64": 64}))


def computes(client, session):
    assert client.post(session + "/launches", launch_vadd()).status == 200
    assert client.get(session + "/buffers/c/data").body == floats(3 * i for i in range(1024))


def supervisors(service):
    return {pid for pid in service.processes() if role_of(pid) == b"--role=mps"}


def below(pid):
    """All processes below one."""
    found = children_of(pid)
    return found.union(*(below(child) for child in found))


def alive(pids):
    return {pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()}


def metric(client, name):
    return [float(line.rsplit(" ", 1)[1]) for line in client.get("/metrics").body.decode().splitlines() if line.startswith(name)][0]


def test_sessions_of_a_domain_share_one_server_and_others_do_not(run, mps):
    service = run("--mps", str(mps.folder))
    client = client_of(service)
    for name in ("a", "b"):
        prepare(client, f"/v1/sessions/{name}", **TRAIN)
    prepare(client, "/v1/sessions/alone")
    assert client.get("/v1/sessions/a").json()["fault_domain"] == {"name": "train", "shared_server": True, "sessions": 2}
    assert client.get("/v1/sessions/alone").json()["fault_domain"] is None
    [daemon] = mps.starts()
    assert daemon["arguments"] == ["-f"] and daemon["mode"] == "0o700"
    assert daemon["environment"]["CUDA_MPS_PIPE_DIRECTORY"].endswith("/pipe")
    assert daemon["environment"]["PATH"].startswith(str(mps.folder) + ":")
    assert len(supervisors(service)) == 1 and metric(client, "gpurest_mps_servers") == 1 and metric(client, "gpurest_fault_domains") == 1
    folder = pathlib.Path(daemon["environment"]["CUDA_MPS_PIPE_DIRECTORY"]).parent
    processes = below(*supervisors(service))
    assert folder.is_dir() and len(processes) == 2
    for name in ("a", "b"):
        assert client.delete(f"/v1/sessions/{name}").status == 204
    until(lambda: not alive(processes) and not folder.exists() and not supervisors(service), "the server stays")
    computes(client, "/v1/sessions/alone")
    until(lambda: metric(client, "gpurest_mps_servers") == 0, "it still counts")


def test_a_fault_takes_the_others_along_and_nobody_else(run, mps):
    service = run("--mps", str(mps.folder))
    client = client_of(service)
    for name, spec in (("a", TRAIN), ("b", TRAIN), ("c", {"fault_domain": "other"}), ("alone", {})):
        prepare(client, f"/v1/sessions/{name}", **spec)
    answer = fault_in(client, "/v1/sessions/a")
    assert answer.code == "kernel_fault", answer
    assert state_of(client, "/v1/sessions/a") == ("faulted", "kernel_fault")
    until(lambda: state_of(client, "/v1/sessions/b") == ("faulted", "fault_domain_lost"), "it does not hear of it")
    detail = client.get("/v1/sessions/b").json()["fault"]["detail"]
    assert "session 'a'" in detail and "'train'" in detail and "kernel_fault" in detail, detail
    assert client.post("/v1/sessions/b/launches", launch_vadd()).code == "session_faulted"
    for name in ("c", "alone"):
        assert state_of(client, f"/v1/sessions/{name}") == ("ready", None)
        computes(client, f"/v1/sessions/{name}")
    for name in ("b", "a"):
        assert client.post(f"/v1/sessions/{name}/reset").status == 200
        prepare_again(client, f"/v1/sessions/{name}")
    assert len(mps.starts()) == 3 and metric(client, 'gpurest_fault_domain_falls_total{cause="session"}') == 1


def prepare_again(client, session):
    assert client.get(session).json()["state"] == "ready"
    assert client.put_cuda(session + "/modules/m", VADD).status == 201
    for name, step in (("a", 1), ("b", 2), ("c", 0)):
        assert client.put_octets(f"{session}/buffers/{name}", floats(step * i for i in range(1024))).status == 201
    computes(client, session)


def pair(client):
    """Two sessions of a domain, which have computed, and one beside it."""
    for name, spec in (("a", TRAIN), ("b", TRAIN), ("alone", {})):
        prepare(client, f"/v1/sessions/{name}", **spec)


def both_fell(client, code, *words):
    for name in ("a", "b"):
        until(lambda: state_of(client, f"/v1/sessions/{name}")[0] == "faulted", f"{name} does not hear of it")
    assert state_of(client, "/v1/sessions/b")[1] == code
    detail = client.get("/v1/sessions/b").json()["fault"]["detail"]
    assert all(word in detail for word in words), detail


def both_heal(client):
    for name in ("a", "b"):
        assert client.post(f"/v1/sessions/{name}/reset").status == 200
        prepare_again(client, f"/v1/sessions/{name}")
    computes(client, "/v1/sessions/alone")


def test_followers_of_events_hear_of_the_fall(run, mps):
    client = client_of(run("--mps", str(mps.folder)))
    pair(client)
    fault_in(client, "/v1/sessions/a")
    both_fell(client, "fault_domain_lost")
    assert [e.get("code") for e in events(client, "/v1/sessions/b", "session.state")][-1] == "fault_domain_lost"
    assert client.get("/problems/fault_domain_lost").status == 200
    assert 'gpurest_worker_restarts_total{reason="fault_domain_lost"} 1' in client.get("/metrics").body.decode()


def test_the_death_of_a_worker_in_a_kernel_is_a_fault_of_the_domain(run, mps):
    service = run("--mps", str(mps.folder), "--pool-size", "0")
    client = client_of(service)
    before = service.children()
    assert client.put("/v1/sessions/a", TRAIN).status == 201
    [worker] = service.children() - before
    assert client.delete("/v1/sessions/a").status == 204
    before = service.children()
    prepare(client, "/v1/sessions/a", **TRAIN)
    [worker] = service.children() - before
    for name, spec in (("b", TRAIN), ("alone", {})):
        prepare(client, f"/v1/sessions/{name}", **spec)
    run_for_ever(client, "/v1/sessions/a")
    os.kill(worker, signal.SIGKILL)
    both_fell(client, "fault_domain_lost", "session 'a'")
    both_heal(client)


def test_a_deadline_is_a_fault_of_the_domain(run, mps):
    client = client_of(run("--mps", str(mps.folder)))
    pair(client)
    assert client.put_cuda("/v1/sessions/a/modules/f", FAULTS).status == 201
    assert client.post("/v1/sessions/a/launches", launch("endless", {"buf": "c"}, timeout_ms=200)).code == "execution_timeout"
    both_fell(client, "fault_domain_lost", "session 'a'", "execution_timeout")
    both_heal(client)


@pytest.mark.parametrize("how", ["reset", "delete"])
def test_the_end_of_a_session_whose_kernels_run_is_one_too_but_not_of_an_idle_one(run, mps, how):
    client = client_of(run("--mps", str(mps.folder)))
    pair(client)

    def end(session):
        answer = client.post(session + "/reset") if how == "reset" else client.delete(session)
        assert answer.status in (200, 204), answer

    prepare(client, "/v1/sessions/c", **TRAIN)
    end("/v1/sessions/c")
    for name in ("a", "b"):
        computes(client, f"/v1/sessions/{name}")
    run_for_ever(client, "/v1/sessions/a")
    end("/v1/sessions/a")
    until(lambda: state_of(client, "/v1/sessions/b") == ("faulted", "fault_domain_lost"), "it does not hear of it")
    assert "kernels ran" in client.get("/v1/sessions/b").json()["fault"]["detail"]
    if how == "reset":
        prepare_again(client, "/v1/sessions/a")
    computes(client, "/v1/sessions/alone")


def test_several_that_ran_kernels_are_named_for_mps_does_not_tell_whose_it_was(run, mps):
    client = client_of(run("--mps", str(mps.folder)))
    for name in ("a", "b", "c"):
        prepare(client, f"/v1/sessions/{name}", **TRAIN)
    run_for_ever(client, "/v1/sessions/b")
    fault_in(client, "/v1/sessions/a")
    until(lambda: state_of(client, "/v1/sessions/c")[0] == "faulted", "c does not hear of it")
    # whichever of the two the device told first
    until(lambda: "MPS does not tell whose kernel it was" in client.get("/v1/sessions/c").json()["fault"]["detail"], "the other is not named")
    detail = client.get("/v1/sessions/c").json()["fault"]["detail"]
    assert "'a'" in detail and "'b'" in detail, detail


@pytest.mark.parametrize("which", ["server", "daemon", "supervisor"])
def test_the_death_of_a_server_is_told_and_another_one_comes(run, mps, which):
    service = run("--mps", str(mps.folder))
    client = client_of(service)
    pair(client)
    [supervisor] = supervisors(service)
    [daemon] = children_of(supervisor)
    [server] = children_of(daemon)
    os.kill({"server": server, "daemon": daemon, "supervisor": supervisor}[which], signal.SIGKILL)
    both_fell(client, "fault_domain_lost", "the MPS server of the fault domain 'train' ended")
    until(lambda: not alive({supervisor, daemon, server}), "processes stay")
    computes(client, "/v1/sessions/alone")
    both_heal(client)
    assert metric(client, "gpurest_mps_server_losses_total") == 1 and metric(client, 'gpurest_fault_domain_falls_total{cause="server"}') == 1
    assert device(client)["state"] == "healthy"


def test_without_programs_a_domain_is_refused_or_takes_turns(run):
    client = client_of(run("--mps", "off"))
    refused = client.put("/v1/sessions/a", TRAIN)
    assert (refused.status, refused.code) == (503, "fault_domain_unavailable")
    assert "--mps off" in refused.json()["detail"]
    assert client.get("/v1/sessions/a").status == 404 and metric(client, "gpurest_fault_domains") == 0
    for name in ("a", "b"):
        prepare(client, f"/v1/sessions/{name}", **TRAIN, fault_domain_required=False)
    assert client.get("/v1/sessions/a").json()["fault_domain"] == {"name": "train", "shared_server": False, "sessions": 2}
    assert client.put("/v1/sessions/c", TRAIN).code == "fault_domain_unavailable"
    fault_in(client, "/v1/sessions/a")
    until(lambda: state_of(client, "/v1/sessions/b") == ("faulted", "fault_domain_lost"), "it does not hear of it")
    assert client.post("/v1/sessions/b/reset").status == 200


def test_programs_are_looked_for_in_path(run):
    refused = client_of(run()).put("/v1/sessions/a", TRAIN)
    assert refused.code == "fault_domain_unavailable" and "PATH" in refused.json()["detail"], refused


def test_a_folder_without_the_programs_is_refused_at_the_start(executable, tmp_path, mps):
    (mps.folder / "nvidia-cuda-mps-server").unlink()
    for folder, words in ((mps.folder, "nvidia-cuda-mps-server"), (tmp_path / "nowhere", "no such folder")):
        done = subprocess.run([executable, "--listen", "127.0.0.1:0", "--backends", "cpu", "--mps", str(folder)], capture_output=True, text=True, timeout=180)
        assert done.returncode == 1 and f"--mps: {words}" in done.stderr.replace("the folder has no program ", ""), done.stderr
        checked = subprocess.run([executable, "--check-config", "--mps", str(folder)], capture_output=True, text=True, timeout=180)
        assert checked.returncode == 2 and "--mps" in checked.stderr, checked.stderr


def test_a_daemon_that_does_not_start_is_no_matter_to_others(run, mps):
    mps.behave("exits")
    service = run("--mps", str(mps.folder))
    client = client_of(service)
    prepare(client, "/v1/sessions/alone")
    refused = client.put("/v1/sessions/a", TRAIN)
    assert (refused.status, refused.code) == (503, "fault_domain_unavailable"), refused
    assert device(client)["state"] == "healthy" and client.get("/readyz").status == 200
    computes(client, "/v1/sessions/alone")
    assert client.get("/v1/sessions/a").status == 404
    mps.behave("")
    until(lambda: client.put("/v1/sessions/a", TRAIN).status == 201, "it does not recover")
    service.logged("the MPS control daemon ended (exit code 7)")


def test_a_full_server_refuses_one_more_and_serves_the_others(run, mps):
    mps.behave("full=2")
    client = client_of(run("--mps", str(mps.folder), "--pool-size", "0"))
    for name in ("a", "b"):
        prepare(client, f"/v1/sessions/{name}", **TRAIN)
    refused = client.put("/v1/sessions/c", TRAIN)
    assert (refused.status, refused.code) == (503, "overloaded") and "MPS_MAX_CLIENTS" in refused.json()["detail"], refused
    for name in ("a", "b"):
        computes(client, f"/v1/sessions/{name}")
    assert client.delete("/v1/sessions/b").status == 204
    until(lambda: client.put("/v1/sessions/c", TRAIN).status == 201, "there is room again")
    assert device(client)["state"] == "healthy"


def test_a_caller_that_makes_and_ends_domains_costs_bounded_servers(run, mps):
    service = run("--mps", str(mps.folder))
    client = client_of(service)
    prepare(client, "/v1/sessions/alone")
    most = 0
    for i in range(40):
        assert client.put("/v1/sessions/s", {"fault_domain": f"d{i}"}).status == 201
        most = max(most, len(supervisors(service)))
        assert client.delete("/v1/sessions/s").status == 204
    assert most <= 32
    until(lambda: not supervisors(service), "servers stay")
    until(lambda: metric(client, "gpurest_fault_domains") == metric(client, "gpurest_mps_servers") == 0, "they still count")
    computes(client, "/v1/sessions/alone")


def test_nothing_is_left_of_a_service_that_was_killed(executable, driver, tmp_path, mps):  # noqa: F811
    service = start(executable, tmp_path, driver[1], "--mps", str(mps.folder))
    client_of(service).put("/v1/sessions/a", TRAIN).expect(201)
    folder = pathlib.Path(mps.starts()[0]["environment"]["CUDA_MPS_PIPE_DIRECTORY"]).parent
    processes = set().union(*(below(pid) | {pid} for pid in supervisors(service)))
    assert len(processes) == 3
    service.process.kill()
    service.process.wait()
    until(lambda: not alive(processes) and not folder.exists(), "something is left")
    left = pathlib.Path(tempfile.mkdtemp(prefix="gpurest-mps-", dir="/tmp"))
    (left / "0" / "pipe").mkdir(parents=True)
    used = os.open(tempfile.mkdtemp(prefix="gpurest-mps-", dir="/tmp"), os.O_RDONLY)
    fcntl.flock(used, fcntl.LOCK_EX)
    in_use = pathlib.Path(os.readlink(f"/proc/self/fd/{used}"))
    (tmp_path / "second").mkdir()
    service = start(executable, tmp_path / "second", driver[1], "--mps", str(mps.folder))
    try:
        assert not folder.parent.exists() and not left.exists() and in_use.exists()
    finally:
        os.close(used)
        in_use.rmdir()
        service.stop()


def test_many_reset_at_once_and_all_compute_again(run, mps):
    client = client_of(run("--mps", str(mps.folder)))
    names = [f"s{i}" for i in range(6)]
    for name in names:
        prepare(client, f"/v1/sessions/{name}", **TRAIN)
    for _ in range(3):
        fault_in(client, "/v1/sessions/s0")
        until(lambda: all(state_of(client, f"/v1/sessions/{name}")[0] == "faulted" for name in names), "not all fell")

        def heal(name):
            own = client_of_copy(client)
            assert own.post(f"/v1/sessions/{name}/reset").status == 200
            prepare_again(own, f"/v1/sessions/{name}")

        in_threads(heal, names)
        assert all(state_of(client, f"/v1/sessions/{name}") == ("ready", None) for name in names)


def client_of_copy(client):
    return type(client)(client.host, client.port, client.headers, 300)
