"""The built-in kernels of a service. GPURESTD names the executable, GPUREST_TEST_BACKENDS its devices (default "cpu")."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "service"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from fixtures import executable, vulkan  # noqa: E402, F401
from service_under_test import Service  # noqa: E402


@pytest.fixture(scope="session")
def service(executable, tmp_path_factory):  # noqa: F811
    shared = {name: os.environ[name] for name in ("GPUREST_CACHE",) if name in os.environ}  # the Python SDK's tests need many of these kernels, too
    one = Service(executable, tmp_path_factory.mktemp("service"), variables=shared)
    yield one
    one.stop()


@pytest.fixture(scope="session")
def client(service):
    one = service.client()
    one.timeout = 600
    yield one
    one.close()


@pytest.fixture(scope="session")
def ours(client):
    """One session for all tests: each kernel sees what earlier ones left, and there are more kernels than stay loaded."""
    from arrays import Kernels
    assert client.put("/v1/sessions/kernels").status == 201
    return Kernels(client, "/v1/sessions/kernels")


@pytest.fixture(scope="session")
def kernels(ours):
    return ours


@pytest.fixture(scope="session")
def libraries(client, ours):
    """The same, run by the device's libraries, which must be there."""
    from arrays import Kernels, has_library
    if not (has_library(client, "matmul") and has_library(client, "fft")):
        pytest.skip("the device has no libraries")
    return Kernels(client, ours.session, "vendor")


@pytest.fixture(scope="session")
def on_gpu():
    return "cuda" in os.environ.get("GPUREST_TEST_BACKENDS", "cpu")
