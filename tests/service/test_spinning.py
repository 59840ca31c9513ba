"""Threads that spin before they sleep, as on a machine with many processors, and threads that never do: neither may lose a wake-up."""
import threading

import pytest

from conftest import VADD, floats
from kernels import launch_vadd


def prepare(client, path):
    assert client.put(path).status == 201
    assert client.put_cuda(path + "/modules/m", VADD).status == 201
    for name in "ab":
        assert client.put_octets(f"{path}/buffers/{name}", floats(range(1024))).status == 201
    assert client.put(path + "/buffers/c", {"size": 4096}).status == 201


def work(service, path, failures):
    """Answers from the loop itself, from the executor, after a suspension, and on a new connection."""
    try:
        client = service.client()
        prepare(client, path)
        for _ in range(20):
            assert client.post(path + "/launches", launch_vadd()).status == 200
            assert client.post(path + "/sync", {}).status == 200
            sent = client.post(path + "/launches", launch_vadd(), Prefer="respond-async")
            assert client.get(sent.headers["Location"], Prefer="wait=30").json()["state"] == "succeeded"
            other = service.client()
            assert other.get(path + "/buffers/c/data").body == floats(2 * i for i in range(1024))
            other.close()
        assert client.delete(path).status == 204
        client.close()
    except BaseException as e:
        failures.append(e)
        raise


@pytest.mark.parametrize("cpus", ["1", "16"])
def test_no_wake_up_is_lost(start, cpus):
    service = start("--spin-cpus", cpus)
    failures = []
    threads = [threading.Thread(target=work, args=(service, f"/v1/sessions/spin{i}", failures)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    client = service.client()
    assert client.get("/livez").status == 200
