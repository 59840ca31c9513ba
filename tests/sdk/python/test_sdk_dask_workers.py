"""gpurest.dask over several services: a Dask worker for each, in a process of its own, all on this machine's `cpu` device."""
import contextlib
import os
import signal
import time

import gpurest
import numpy as np
import pytest
from gpurest import testing

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask.array is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")
import gpurest.dask  # noqa: E402
from gpurest.arrays._engine.unplaced import use_unplaced  # noqa: E402
from distributed.protocol import deserialize, serialize  # noqa: E402

use_unplaced(False)  # while tests of other files run in this process

SETTLE_S = 180
MEMORY = 64 << 20  # of a worker: beyond 60 % of it, chunks go to the disk
A = np.random.default_rng(0).random((600, 200))


def eventually(holds):
    deadline = time.monotonic() + SETTLE_S
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


@pytest.fixture(autouse=True)
def unplaced():
    use_unplaced()
    yield
    use_unplaced(False)


@pytest.fixture(scope="module")
def services():
    if testing.find_executable() is None:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(testing.server("--node", f"n{at}")) for at in range(3)]


@pytest.fixture(scope="module")
def cluster():
    with dask.config.set({"distributed.worker.memory.spill": False, "distributed.worker.memory.pause": False, "distributed.worker.memory.terminate": False,
                          "distributed.comm.timeouts.connect": f"{SETTLE_S}s",
                          "distributed.deploy.lost-worker-timeout": f"{SETTLE_S}s"}):  # else a worker that takes 15 s to begin again never does
        with distributed.LocalCluster(n_workers=3, threads_per_worker=2, memory_limit=MEMORY, dashboard_address=":0") as one:
            yield one


@pytest.fixture
def client(cluster, services):
    """Of the cluster, whose worker i uses the service n<i>; what the test has done to them is undone."""
    with distributed.Client(cluster) as one:
        eventually(lambda: len(one.scheduler_info(n_workers=-1)["workers"]) == 3)
        one.used = gpurest.dask.connect(one, url={at: service.url for at, service in enumerate(services)}, node=lambda worker: f"n{worker.name}")
        gpurest.set_default(gpurest.Client(services[0].url))
        yield one
        gpurest.dask.disconnect(one)
        gpurest.default_client().close()
        gpurest.set_default(None)


def sessions_of(service):
    with gpurest.Client(service.url) as one:
        return [session for session in one.sessions() if "dask-nanny" in session["labels"]]


def sessions_without_nanny(service):
    with gpurest.Client(service.url) as one:
        return [session["id"] for session in one.sessions() if "dask-nanny" not in session["labels"]]


def memory_of(service):
    with gpurest.Client(service.url) as one:
        return sum(one.attach(session["id"]).memory()["allocated_bytes"] for session in sessions_of(service))


def test_each_worker_computes_on_its_own_node(client, services):
    assert sorted(told["node"] for told in client.used.values()) == ["n0", "n1", "n2"]
    assert {told["url"] for told in client.used.values()} == {service.url for service in services}
    before = [gpurest.Client(service.url).attach(sessions_of(service)[0]["id"]).info()["usage"]["launches_finished"] for service in services]
    x = gpurest.dask.from_array(A, chunks=(100, 200))
    product = (x.T @ x).compute()
    assert isinstance(product, gpurest.ndarray)
    np.testing.assert_allclose(product.get(), A.T @ A)
    after = [gpurest.Client(service.url).attach(sessions_of(service)[0]["id"]).info()["usage"]["launches_finished"] for service in services]
    assert all(late > early for early, late in zip(before, after))
    np.testing.assert_allclose(x.std(axis=0).compute().get(), A.std(axis=0))
    np.testing.assert_allclose(x.rechunk((600, 50)).sum(axis=1).compute().get(), A.sum(axis=1))
    np.testing.assert_allclose(da.linalg.svd(x)[1].compute().get(), np.linalg.svd(A, compute_uv=False))
    np.testing.assert_allclose(da.fft.fft(x, axis=1).compute().get(), np.fft.fft(A, axis=1), atol=1e-9)
    assert (da.histogram(x, bins=7, range=(0, 1))[0].compute().get() == np.histogram(A, bins=7, range=(0, 1))[0]).all()
    assert (x[x > .5].compute().get() == A[A > .5]).all()
    moved = x.map_overlap(lambda block: np.roll(block, 1, axis=0), depth=(1, 0), boundary="periodic").to_backend("numpy").compute()
    assert type(moved) is np.ndarray and (moved == np.roll(A, 1, axis=0)).all()


def test_dasks_own_random_numbers_with_threads_of_one_session(client):
    with dask.config.set({"array.backend": "gpurest"}):
        x = da.random.default_rng(1).random((1000, 1000), chunks=125).persist()
    assert float(x.mean().compute()) == pytest.approx(float(x.map_blocks(gpurest.asnumpy, dtype=float, meta=np.empty((0, 0))).mean().compute()))
    assert (x + x.T - x.T - x).sum().compute().item() == pytest.approx(0, abs=1e-9)


def test_who_only_plans_needs_no_service(client, monkeypatch):
    """The client, and here the scheduler: types, shapes and results pass through them."""
    monkeypatch.setenv("GPUREST_URL", "http://127.0.0.1:9")
    gpurest.default_client().close()
    gpurest.set_default(None)
    x = gpurest.dask.from_array(A, chunks=(100, 200))
    assert isinstance((x.T @ x)._meta, gpurest.ndarray)
    np.testing.assert_allclose((x.T @ x).compute().get(), A.T @ A)
    np.testing.assert_allclose(da.linalg.svd(x)[1].compute().get(), np.linalg.svd(A, compute_uv=False))
    with dask.config.set({"array.backend": "gpurest"}):
        made = da.ones((50, 40), chunks=20) * da.arange(40, chunks=20) + da.random.random((50, 40), chunks=20)
    assert 39000 < made.sum().compute().get() < 41000
    assert gpurest._session.default.may_wait_for_session()
    with pytest.raises(gpurest.errors.ConnectionError_):
        (x.sum().compute() + 1).get()


def test_an_array_is_sent_with_its_type_shape_and_order(gpu):
    whole = gpurest.asarray(A)
    for one in (whole, whole.T, whole[::3, 5:9], whole[0, 0], whole[:0], gpurest.broadcast_to(whole[0], (50, 200)), whole.astype("f2"), whole > .5, whole * 1j):
        header, frames = serialize(one)
        assert header["serializer"] == "dask"
        back = deserialize(header, frames)
        assert back.dtype == one.dtype and back.shape == one.shape and (back.get() == one.get()).all()
        assert back.flags.f_contiguous == one.flags.f_contiguous or not one.size
    _, frames = serialize(gpurest.broadcast_to(whole[0], (50, 200)))
    assert sum(memoryview(frame).nbytes for frame in frames) == 200 * 8


def test_chunks_go_to_the_disk_and_leave_the_device(client, services):
    """Four times what Dask lets a worker hold."""
    with dask.config.set({"array.backend": "gpurest"}):
        x = da.random.default_rng(2).random((6 * 4096, 3072), chunks=(512, 3072)).persist()
    distributed.wait(x)
    spilled = client.run(lambda dask_worker: sum(dask_worker.data.spilled_total))
    assert sum(spilled.values()) > x.nbytes / 2
    eventually(lambda: max(memory_of(service) for service in services) <= MEMORY)
    assert float(x.mean().compute()) == pytest.approx(.5, abs=1e-3)
    del x
    eventually(lambda: max(memory_of(service) for service in services) <= 4 << 20)  # code and what kernels need


def test_what_a_killed_worker_had_is_computed_again(client, services):
    x = gpurest.dask.from_array(A, chunks=(50, 200)).persist()
    distributed.wait(x)
    killed = client.run(os.getpid)
    session = sessions_of(services[1])[0]["id"]
    address = next(where for where, told in client.used.items() if told["node"] == "n1")
    os.kill(killed[address], signal.SIGKILL)
    np.testing.assert_allclose(x.sum(axis=0).compute().get(), A.sum(axis=0))
    eventually(lambda: [one["id"] for one in sessions_of(services[1])] not in ([], [session]))
    assert len(sessions_of(services[1])) == 1  # the one of the process that was killed is not left to its lease


def test_a_lost_session_fails_by_its_name_and_retries_have_another(client, services):
    x = gpurest.dask.from_array(A, chunks=(50, 200)).persist()
    distributed.wait(x)
    lost = [sessions_of(service)[0]["id"] for service in services]
    with gpurest.Client(services[2].url) as other:
        other._transport.do(gpurest._session.requests.delete(f"/v1/sessions/{lost[2]}"))
    with pytest.raises(gpurest.errors.SessionLostError, match=lost[2]):
        (x + 1).sum(axis=0).compute()
    np.testing.assert_allclose((x + 2).sum(axis=0).compute(retries=5).get(), (A + 2).sum(axis=0))
    eventually(lambda: [one["id"] for one in sessions_of(services[2])] not in ([], [lost[2]]))
    assert [sessions_of(service)[0]["id"] for service in services[:2]] == lost[:2]


def test_a_task_fails_where_its_operations_do(client):
    """Not where somebody uses what it should have made."""
    x = gpurest.dask.from_array(A, chunks=(100, 200))
    with pytest.raises(IndexError, match="out of bounds"):
        x.map_blocks(lambda block: block[gpurest.asarray([500])], dtype=float).persist().sum().compute()
    with pytest.raises(np.linalg.LinAlgError):
        x.map_blocks(lambda block: np.linalg.cholesky(block[:100, :100] - 1), dtype=float).compute()
    np.testing.assert_allclose(x.sum().compute().get(), A.sum())


def test_a_kernels_fault_is_the_tasks_and_its_worker_begins_again(client, services):
    x = gpurest.dask.from_array(A, chunks=(100, 200)).persist()
    distributed.wait(x)

    def faulty(block):
        gpurest.RawKernel('extern "C" __global__ void wild(double* x) { x[1LL << 40] = 1; }', "wild")((1,), (1,), (block,))
        return block
    with pytest.raises(gpurest.errors.CudaError, match="wild"):
        x[:100].map_blocks(faulty, dtype=float, meta=x._meta).compute()
    np.testing.assert_allclose(x.sum(axis=0).compute(retries=5).get(), A.sum(axis=0))
    eventually(lambda: [len(sessions_of(service)) for service in services] == [1, 1, 1])


def test_the_service_of_another_node_is_refused(client, services):
    with pytest.raises(gpurest.errors.ArgumentError, match="is to use the service of node 'elsewhere', but .* is that of node 'n0'"):
        gpurest.dask.connect(client, url=services[0].url, node="elsewhere")
    with pytest.raises(gpurest.errors.ArgumentError, match="url says nothing of worker"):
        gpurest.dask.connect(client, url={"one": services[0].url})
    eventually(lambda: not any(sessions_of(service) for service in services))
    gpurest.dask.connect(client, url={at: service.url for at, service in enumerate(services)})


def test_disconnecting_ends_the_sessions(client, services):
    assert [len(sessions_of(service)) for service in services] == [1, 1, 1]
    gpurest.dask.disconnect(client)
    eventually(lambda: not any(sessions_of(service) for service in services))
    gpurest.dask.connect(client, url=services[0].url)
    assert len(sessions_of(services[0])) == 3


def test_a_worker_that_is_starting_is_disconnected_when_it_has_started(client, services):
    """Until it has set up what the scheduler told it, it knows nothing of the plugin."""
    def be_starting(dask_worker):
        plugin, dask_worker._status = dask_worker.plugins.pop("gpurest"), distributed.core.Status.init

        def go_on():
            dask_worker.plugins["gpurest"], dask_worker._status = plugin, distributed.core.Status.running
        dask_worker.loop.call_later(1, go_on)
    one = next(iter(client.scheduler_info(n_workers=-1)["workers"]))
    client.run(be_starting, workers=[one])
    gpurest.dask.disconnect(client)
    assert not any(client.run(lambda dask_worker: "gpurest" in dask_worker.plugins).values())
    eventually(lambda: not any(sessions_of(service) for service in services))
    gpurest.dask.connect(client, url=services[0].url)


def test_workers_that_are_threads_share_one_service(services):
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster, distributed.Client(cluster) as client:
        with pytest.raises(gpurest.errors.ArgumentError, match="are processes of their own"):
            gpurest.dask.connect(client, url={at: services[at].url for at in range(2)})
        used = gpurest.dask.connect(client, url=services[0].url)
        assert len({told["session"] for told in used.values()}) == 1
        x = gpurest.dask.from_array(A, chunks=(50, 200))
        held = x.persist()
        np.testing.assert_allclose((held.T @ held).compute().get(), A.T @ A)
        lost = gpurest.default_session().id
        gpurest.default_client()._transport.do(gpurest._session.requests.delete(f"/v1/sessions/{lost}"))
        with pytest.raises(gpurest.errors.SessionLostError, match=lost):
            held.sum().compute()
        np.testing.assert_allclose((x + 1).sum(axis=0).compute().get(), (A + 1).sum(axis=0))
        with pytest.raises(ZeroDivisionError):
            x.map_blocks(lambda block: block * (1 // 0), dtype=float, meta=x._meta).compute()
        assert len(sessions_without_nanny(services[0])) == 1 and sessions_without_nanny(services[0]) != [lost]
        gpurest.dask.disconnect(client)


def test_a_service_that_is_gone_takes_its_worker_with_it(services, tmp_path):
    """The others compute what it had."""
    with testing.server() as leaving, distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, distributed.Client(cluster) as client:
        gpurest.dask.connect(client, url={0: services[0].url, 1: leaving.url}, retries=0)
        gpurest.set_default(gpurest.Client(services[0].url))
        x = gpurest.dask.from_array(A, chunks=(50, 200)).persist()
        distributed.wait(x)
        leaving.process.kill()
        np.testing.assert_allclose((x * 2).sum(axis=0).compute(retries=10).get(), A.sum(axis=0) * 2)
        gpurest.default_client().close()
        gpurest.set_default(None)
