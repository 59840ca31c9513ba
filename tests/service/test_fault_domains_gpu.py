"""Fault domains on a GPU: their sessions share an MPS server. The driver, the GPU and MPS are fakes; tests/bench/fault_domains.py has real ones."""
import os
import pathlib
import signal

import pytest

from conftest import floats
from fake_gpu import driver, events, prepare, run_for_ever, start  # noqa: F401
from fake_mps import FakeMps
from kernels import FAULTS, launch, launch_vadd
from service_under_test import Client, children_of, role_of, until

TRAIN = {"fault_domain": "train"}


@pytest.fixture
def mps(tmp_path):
    return FakeMps(tmp_path / "mps")


@pytest.fixture
def run(executable, driver, tmp_path):  # noqa: F811
    """run(more arguments) starts a service on the fake GPU. All end with the test."""
    services = []

    def run(*more):
        (tmp_path / "service").mkdir(exist_ok=True)
        services.append(start(executable, tmp_path / f"n{len(services)}", driver[1], *more))
        return services[-1]

    def start_in(*more):
        folder = tmp_path / f"n{len(services)}"
        folder.mkdir()
        services.append(start(executable, folder, driver[1], *more))
        return services[-1]

    yield start_in
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
    assert metric(client, "gpurest_mps_servers") == 0


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
    from conftest import VADD
    assert client.put_cuda(session + "/modules/m", VADD).status == 201
    for name, step in (("a", 1), ("b", 2), ("c", 0)):
        assert client.put_octets(f"{session}/buffers/{name}", floats(step * i for i in range(1024))).status == 201
    computes(client, session)
