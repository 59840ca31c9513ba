"""Memory that a session frees is free on the device again. A driver whose system call is refused keeps the memory silently, so the worker
checks, and this test checks the list of system calls. On the fake driver; with GPUREST_TEST_BACKENDS=cuda on the machine's own GPU."""
import os
import pathlib
import shutil

import pytest

from service_under_test import until

MIB = 1 << 20
S = "/v1/sessions/s"
KEPT = "the driver lacks a system call"
REAL = "cuda" in os.environ.get("GPUREST_TEST_BACKENDS", "cpu")


@pytest.fixture
def fake(start, executable, tmp_path):
    """fake(keeps): a client of a service with the fake driver, which keeps freed memory if told so, and the service."""
    library = pathlib.Path(executable).parents[1] / "tests" / "support" / "libcuda.so.1"
    if not library.exists():
        pytest.skip("the fake driver is not built")

    def begin(keeps):
        mine = shutil.copy(library, tmp_path / library.name)
        if keeps:
            mine.with_name(mine.name + ".keeps").write_text("1")
        service = start("--backends", "cuda", "--libcuda", str(mine))
        return service.client(), service

    return begin


def memory(client):
    return client.get(S + "/memory").json()


def free_on(client, device):
    return client.get("/v1/devices/" + device).json()["memory"]["free_bytes"]


def take_and_give(client, count, size):
    """(free before, free while allocated, free after) in the session's own view."""
    before = memory(client)["free_bytes"]
    for i in range(count):
        assert client.put(f"{S}/buffers/b{i}", {"size": size}).status == 201
    taken = memory(client)["free_bytes"]
    for i in range(count):
        assert client.delete(f"{S}/buffers/b{i}").status == 204
    assert client.post(S + "/memory/trim").status == 200
    return before, taken, memory(client)["free_bytes"]


def test_what_is_trimmed_is_free_again(fake):
    client, service = fake(False)
    assert client.put(S).status == 201
    before, taken, after = take_and_give(client, 4, 40 * MIB)
    assert before - taken >= 160 * MIB and after == before
    assert KEPT not in service.stderr()


def test_a_driver_that_keeps_it_is_told_of(fake):
    client, service = fake(True)
    assert client.put(S).status == 201
    before, taken, after = take_and_give(client, 4, 40 * MIB)
    assert after == taken < before
    assert "the memory pool gave up 160 MiB, and 0 MiB more are free" in service.logged(KEPT)


@pytest.mark.skipif(not REAL, reason="no GPU under test (GPUREST_TEST_BACKENDS=cuda)")
def test_on_a_gpu_the_device_has_it_again(start):
    """Others may use the GPU meanwhile: waits until most of the memory is free."""
    service = start()
    client = service.client()
    made = client.put(S)
    assert made.status == 201
    device, before = made.json()["device"], memory(client)["free_bytes"]
    size = before // 8
    _, taken, _ = take_and_give(client, 4, size)
    until(lambda: free_on(client, device) >= taken + 3 * size, lambda: (before, taken, memory(client), free_on(client, device)), 60)
    assert KEPT not in service.stderr()
