"""Arrays are tested against NumPy on the `cpu` device of a service; GPURESTD names the executable, GPUREST_TEST_BACKENDS the device
(default "cpu"). GPUREST_TEST_URL is the address of a running service to test instead (GPUREST_TOKEN its token); GPUREST_TEST_EXAMPLES is
the number of examples of each property test."""
import os
import pathlib
import sys
import types

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "sdk" / "python"))

try:
    import numpy  # noqa: F401
except ImportError:  # test_array_without_numpy.py reports it
    collect_ignore_glob = ["test_array_[!w]*.py"]

import gpurest  # noqa: E402
from gpurest import testing  # noqa: E402
from gpurest._transport.heartbeats import clock  # noqa: E402


@pytest.fixture(scope="session")
def array_service():
    url = os.environ.get("GPUREST_TEST_URL")
    if url:
        yield types.SimpleNamespace(url=url)
        return
    if testing.find_executable() is None:
        pytest.skip("GPURESTD does not name a gpurestd to test")
    with testing.server(device=os.environ.get("GPUREST_TEST_BACKENDS", "cpu")) as service:
        yield service


@pytest.fixture(scope="module")
def client(array_service):
    """The default client of a file's tests, so that they can write gpurest.zeros(...)."""
    with gpurest.connect(array_service.url) as one:
        gpurest.set_default(one)
        yield one
        gpurest.set_default(None)


@pytest.fixture
def g(client):
    """The package, with a working session."""
    gpurest.config.fusion, gpurest.config.eager, gpurest.config.builtins = True, False, True
    yield gpurest
    gpurest.config.fusion, gpurest.config.eager, gpurest.config.builtins = True, False, True


@pytest.fixture
def requests(client):
    """Returns a function that returns the number of requests since its last call. Its session is there, and no heartbeat is due: tests that send nothing follow
    each other."""
    client.default_session  # noqa: B018
    for session in client._heartbeats._alive():
        session._beaten_at = clock()
    seen = [client.requests_sent]

    def count():
        before, seen[0] = seen[0], client.requests_sent
        return seen[0] - before

    return count
