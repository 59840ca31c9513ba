"""The package is tested from the source tree, against a real gpurestd on the `cpu` device (GPURESTD names it) or against scripted servers."""
import asyncio
import contextlib
import gc
import inspect
import os
import pathlib
import shutil
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "sdk" / "python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

# NumPy's library makes its threads when it is loaded. While they wait for work they take the processors from the services, which keep their own.
if "OPENBLAS_NUM_THREADS" not in os.environ:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with contextlib.suppress(ImportError):
        import numpy  # noqa: F401
    del os.environ["OPENBLAS_NUM_THREADS"]
# What each start of a compile worker or device worker would do again, for nothing that these tests look at: tests/service and tests/kernels do.
os.environ.update(GPUREST_NO_WARM_COMPILER="1", GPUREST_CPU_JIT="off")

import gpurest  # noqa: E402
from gpurest import testing  # noqa: E402
from gpurest._session.default import choose_device  # noqa: E402

SETTLE_S = 60
# These start first: one process runs a whole file, and a long file that starts late delays the end.
LONG_FILES = ("test_array_vulkan", "test_sdk_process", "test_sdk_typing", "test_sdk_dask_workers")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in LONG_FILES)


def pytest_collection_finish():
    """What is there now stays until the end, so no gc.collect() of a test need look at it: 200,000 objects, each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def service():
    if testing.find_executable() is None:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    with testing.server("--staging-mib", "16") as one:
        yield one
        assert one.process.poll() is None, one.log()[-4000:]


@pytest.fixture
def fake():
    """A FakeServer that knows SAXPY of sources.py."""
    with testing.FakeServer() as server:
        @server.kernel("saxpy")
        def saxpy(launch, a, x, y, n):
            for at in range(n):
                y[at] = a * x[at] + y[at]

        yield server


@pytest.fixture
def cached(tmp_path):
    """A service whose cache of compiled code is its own, for tests that look at it or empty it: that of the others may be one for all of them."""
    if testing.find_executable() is None:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    with testing.server("--cache", str(tmp_path / "cache")) as one:
        yield one


@contextlib.contextmanager
def default_client_of(service):
    with gpurest.connect(service.url) as client:
        gpurest.set_default(client)
        yield client
        gpurest.set_default(None)


@pytest.fixture
def cached_gpu(cached):
    with default_client_of(cached) as client:
        yield client


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """A service with two GPUs and the cpu device; see test_sdk_cuda_devices.py."""
    executable = testing.find_executable()
    if executable is None:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    if "cuda" in os.environ.get("GPUREST_TEST_BACKENDS", "cpu"):
        with testing.server(device="cuda,cpu") as one:
            with gpurest.connect(one.url) as client:
                if len(client.devices()) != 3:
                    pytest.skip("this machine has not two GPUs")
            yield one
        return
    library = pathlib.Path(executable).resolve().parents[1] / "tests" / "support" / "libcuda.so.1"
    if not library.exists():
        pytest.skip("the driver library of the tests is not built beside GPURESTD")
    folder = tmp_path_factory.mktemp("driver")
    shutil.copy(library, folder)
    (folder / "libcuda.so.1.devices").write_text("2")
    with testing.server("--libcuda", str(folder / "libcuda.so.1"), "--vendor-libraries", "off", "--pool-size", "0", device="cuda,cpu") as one:
        yield one


@pytest.fixture(autouse=True)
def no_chosen_device():
    """A device that a test chose is not the next one's."""
    yield
    choose_device(None)


@pytest.fixture
def node_client(node):
    """The default client of the node with several devices."""
    with default_client_of(node) as client:
        yield client


@pytest.fixture(params=["http", "unix"])
def any_url(request, service):
    return service.url if request.param == "http" else service.unix_url


@pytest.fixture
def gpu(service):
    with gpurest.connect(service.url) as client:
        gpurest.set_default(client)
        yield client
        gpurest.set_default(None)


@pytest.fixture
def session(gpu):
    """A session; checks at the end that all its buffers are gone."""
    with gpu.session() as one:
        yield one
        if not one.closed and one._lost is None:
            gc.collect()
            settles(one)


# A test that takes a session gets its client closed, too.
ASYNCHRONOUS = ("agpu", "any_agpu", "asession", "any_asession")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Runs a coroutine; those of its fixtures that are asynchronous context managers are entered in its loop."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None

    async def entered():
        arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        async with contextlib.AsyncExitStack() as stack:
            for name in ASYNCHRONOUS:
                if name in pyfuncitem.funcargs:
                    arguments[name] = await stack.enter_async_context(pyfuncitem.funcargs[name])
            await pyfuncitem.obj(**{name: arguments[name] for name in pyfuncitem._fixtureinfo.argnames})
    asyncio.run(asyncio.wait_for(entered(), 120))
    return True


@pytest.fixture
def agpu(service):
    return gpurest.AsyncClient(service.url)


@pytest.fixture
def any_agpu(any_url):
    return gpurest.AsyncClient(any_url)


@pytest.fixture
def asession(agpu):
    return agpu.session()


@pytest.fixture
def any_asession(any_agpu):
    return any_agpu.session()


def settles(session):
    """Checks that unreferenced objects are gone from the server."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        session.free_unused()
        left = session.buffers()
        if not left:
            return
        assert time.monotonic() < deadline, f"{left} stay"
        time.sleep(0.02)


def memory_bytes(session):
    return session.info()["usage"]["memory_bytes"]
