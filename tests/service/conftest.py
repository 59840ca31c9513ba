"""GPURESTD names the executable under test; GPUREST_TEST_BACKENDS its devices (default "cpu")."""
import itertools
import struct

import pytest

from fixtures import executable, first, service, start  # noqa: F401

names = itertools.count()

pytest_collection_modifyitems = first(
    "test_openapi", "test_health", "test_architectures", "test_batch_async", "test_batch_fuzz", "test_batch_large", "test_body_thresholds", "test_bulk",
    "test_corpus", "test_crash_budget", "test_engines", "test_moves", "test_run_clients", "test_scaleout", "test_shareable", "test_slurm", "test_state",
    "test_upgrade", "test_web")


@pytest.fixture
def client(service):  # noqa: F811
    """A client of the shared service. Deletes the sessions that a test leaves, because the next test may need as many as a caller may have."""
    one = service.client()
    yield one
    one.close()
    assert service.process.poll() is None, service.stderr()[-4000:]
    after = service.client()  # a new one, because a test may do anything with its own
    for left in after.get("/v1/sessions").json()["items"]:
        assert after.delete("/v1/sessions/" + left["id"]).status in (204, 404)
    after.close()


@pytest.fixture
def session(client):
    """The path of a new session."""
    path = f"/v1/sessions/t{next(names)}"
    client.put(path).expect(201)
    yield path
    assert client.delete(path).status in (204, 404)


@pytest.fixture
def vadd(client, session):
    """A session with module m and buffers a, b (floats 0…1023 and twice that) and c."""
    assert client.put_cuda(session + "/modules/m", VADD).status == 201
    assert client.put_octets(session + "/buffers/a", floats(range(1024))).status == 201
    assert client.put_octets(session + "/buffers/b", floats(2 * i for i in range(1024))).status == 201
    assert client.put(session + "/buffers/c", {"size": 4096}).status == 201
    return session


def floats(values):
    values = list(values)
    return struct.pack(f"<{len(values)}f", *values)


VADD = """
extern "C" __global__ void vadd(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
"""
