"""Launches that were made before: what is kept of the first does not hide what is different in the next."""
import concurrent.futures
import pickle

import pytest

import gpurest
from gpurest import errors
from sources import FAULTS, SAXPY

np = pytest.importorskip("numpy", reason="NumPy is not installed")


@pytest.fixture
def saxpy(session):
    return session.module(SAXPY)["saxpy"]


def of(session, *values, dtype="f4"):
    return session.buffer(np.array(values, dtype))


def test_extents_that_equal_others_are_no_integers(session, saxpy):
    x = of(session, 1, 2)
    for _ in range(2):
        assert saxpy((1,), (2,), (1.0, x, x, 2)).info["grid"] == [1, 1, 1]
        for grid, block in (((1.0,), (2,)), ((True,), (2,)), ((1,), (2.0,)), (([1],), (2,)), ((0,), (2,)), ((1,), (1 << 32,)), ((), (2,)), ((1,) * 4, (2,))):
            with pytest.raises(errors.ArgumentError):
                saxpy(grid, block, (1.0, x, x, 2))
    assert list(x.get()) == [4, 8]
    saxpy((np.int64(1),), (np.array(2),), (1.0, x, x, 2))
    saxpy((1, 1), (2, 1, 1), (1.0, x, x, 2), shared_bytes=64)
    assert list(x.get()) == [16, 32]


def test_many_configurations_of_one_kernel(session, saxpy):
    x = of(session, 1, 2)
    for grid in range(1, 100):
        assert saxpy((grid,), (1,), (0.0, x, x, 1)).info["grid"] == [grid, 1, 1]
    grid, block = (np.array(3),), (1,)
    for extent in (3, 3, 5):
        grid[0][...] = extent  # the same tuple all the time
        assert saxpy(grid, block, (0.0, x, x, 1)).info["grid"] == [extent, 1, 1]
    for shared, asked in ((0, [0, 1]), (64, [64, 2]), (64, [64, 2]), (0, [0, 1])):
        kernel = saxpy[(7,), block] if not shared else saxpy[(7,), (2,), shared]
        told = kernel(0.0, x, x, 1).info
        assert [told["shared_bytes"], told["block"][0]] == asked
    with pytest.raises(errors.ArgumentError, match="kernel.grid, block"):
        saxpy[7]
    assert list(x.get()) == [1, 2]


def test_buffers_are_looked_at_each_time(gpu, session, saxpy):
    x, y, whole, freed = of(session, 1, 2), of(session, 10, 20), of(session, 1, 2, dtype="i4"), of(session, 5, 6)
    with gpu.session() as other:
        theirs = of(other, 1, 2)
        for _ in range(2):
            saxpy((1,), (2,), (1.0, x, y, 2))
            saxpy((1,), (2,), (1.0, freed, y, 2))
            for wrong, says in ((whole, "int32"), (theirs, "belongs to"), (1, "a pointer is wanted")):
                with pytest.raises(errors.ArgumentError, match=says):
                    saxpy((1,), (2,), (1.0, wrong, y, 2))
    assert list(y.get()) == [22, 36]
    saxpy((1,), (2,), (1.0, x.view("u1").view("f4"), y, 2))
    freed.free()
    with pytest.raises(errors.ClosedError):
        saxpy((1,), (2,), (1.0, freed, y, 2))
    with session.batch():
        saxpy((1,), (2,), (1.0, x, y, 2))
    assert list(y.get()) == [24, 40]


def test_arrays_are_computed_and_may_begin_elsewhere(session, saxpy):
    y = gpurest.asarray(np.zeros(3, "f4"), session=session)
    for start in (0, 1, 2):
        x = gpurest.arange(5, dtype="f4", session=session) * 2  # is still to be computed
        saxpy((1,), (3,), (1.0, x[start:], y, 3))
    assert y.tolist() == [6, 12, 18]
    with pytest.raises(errors.StridesError):
        saxpy((1,), (3,), (1.0, x[::2], y, 3))
    with pytest.raises(errors.ArgumentError, match="float64"):
        saxpy((1,), (3,), (1.0, y.astype("f8"), y, 3))


def test_an_array_that_kernels_know_is_up_to_date_whatever_is_done_between(gpu):
    with gpu.session() as session, gpu.session() as other:
        kernel = gpurest.RawKernel(SAXPY, "saxpy", session=session)
        x, y = gpurest.asarray(np.ones(4, "f4"), session=session), gpurest.asarray(np.zeros(4, "f4"), session=session)
        kernel((1,), (4,), (1.0, x, y, 4))
        kernel((1,), (4,), (1.0, x, y, 4))
        x += 1
        kernel((1,), (4,), (1.0, x, y, 4))  # the change is still to be computed
        x[...] = 5
        kernel((1,), (2,), (1.0, x[2:], y, 2))
        assert y.tolist() == [9, 9, 4, 4]
        elsewhere = gpurest.asarray(np.ones(4, "f4"), session=other)
        elsewhere.buffer  # noqa: B018 - kernels know it
        for wrong in (elsewhere, x.view("i4")):
            with pytest.raises(errors.ArgumentError):
                kernel((1,), (4,), (1.0, wrong, y, 4))
        with pytest.raises(errors.StridesError):
            kernel((1,), (2,), (1.0, x[::2], y, 2))
        assert len(x.tolist()) == 4
        session.reset()
        with pytest.raises(errors.SessionLostError):
            kernel((1,), (4,), (1.0, x, gpurest.zeros(4, "f4", session=session), 4))


def test_numbers_are_written_as_they_are(session):
    kernel = session.module('extern "C" __global__ void f(long long a, double b, float c, unsigned long long d, double* out)'
                            ' { out[0] = (double)(a % 1000); out[1] = b; out[2] = c; out[3] = (double)(d % 1000); }')["f"]
    out = session.empty(4, "f8")
    for a, b, c, d in ((1, 2.5, 0.5, 7), ((1 << 53) + 1, float("inf"), -0.0, (1 << 64) - 1), (-(1 << 63) + 5, float("nan"), 1e30, (1 << 63) + 9),
                       (5, 1e-310, float("-inf"), 0)):
        kernel((1,), (1,), (a, b, c, d, out))
        want = [float(np.fmod(a, 1000)) if abs(a) < 1 << 53 else float(int(abs(a) % 1000) * (1 if a > 0 else -1)), b, float(np.float32(c)), float(d % 1000)]
        np.testing.assert_array_equal(out.get(), want)


def test_an_answer_is_read_when_somebody_asks(session, saxpy):
    x = of(session, 1, 2)
    launch = saxpy((1,), (2,), (1.0, x, x, 2))
    assert launch.done() and launch.state == "succeeded" and launch.wait() is launch and launch.exception() is None
    assert launch.id == launch.info["id"] and launch.gpu_us > 0 and launch.stdout == "" and launch.info["kernel"] == "saxpy"
    assert launch.info["block"] == [2, 1, 1] and repr(launch) == "<Launch saxpy succeeded>"
    later = saxpy((1,), (2,), (1.0, x, x, 2), wait=False)
    assert later.wait(60).info["state"] == "succeeded" and later.id != launch.id
    assert list(x.get()) == [4, 8]


def test_a_running_launch_is_cancelled_with_its_session(gpu):
    with gpu.session() as session:
        endless, x = session.module(FAULTS)["endless"], session.buffer(b"\0" * 4)
        first, behind = (endless((1,), (1,), (x,), wait=False, timeout_ms=600_000) for _ in range(2))
        while first.state != "running":  # a queued one is cancelled by itself
            assert not first.done()
        with pytest.raises(errors.ConflictError) as running:
            first.cancel()
        assert running.value.code == "launch_running" and first.state == "running"
        first.cancel(force=True)
        assert first.done() and first.state == "cancelled" and session.generation == 2
        with pytest.raises(errors.GpurestError, match="the launch of endless was cancelled, and its session was reset") as caught:
            first.wait()
        assert caught.value.code == "cancelled" and str(first.exception()) == str(caught.value)
        for lost, what in ((behind.wait, "launch of endless"), (behind.done, "launch of endless"), (x.get, "buffer")):
            with pytest.raises(errors.SessionLostError, match=f"this {what} is gone: the session was reset since it was made") as found:
                lost()
            assert found.value.reason == "reset"
        assert list(of(session, 3, 4).get()) == [3, 4]
        session.reset()
        with pytest.raises(errors.GpurestError, match="was cancelled"):
            first.wait()


def test_what_waits_while_its_session_is_reset_is_told(gpu):
    with gpu.session() as session:
        endless, x = session.module(FAULTS)["endless"], session.buffer(b"\0" * 4)
        launches = [endless((1,), (1,), (x,), wait=False, timeout_ms=600_000) for _ in range(2)]
        with concurrent.futures.ThreadPoolExecutor() as threads:
            waiting = [threads.submit(launch.exception) for launch in launches]
            while launches[0].state != "running":
                launches[0].done()
            launches[0].cancel(force=True)
            for one in waiting:
                error = one.result()
                assert getattr(error, "code", "") == "cancelled" or getattr(error, "reason", "") == "reset", repr(error)


def test_what_a_kernel_prints_is_no_end_of_it(session, capsys):
    """Text of the kernel that looks like a part of the answer."""
    kernel = session.module(r'''extern "C" __global__ void f() { printf("\"state\":\"succeeded\",\"stdout\":\"\"{"); }''')["f"]
    launch = kernel((1,), (1,), ())
    assert launch.stdout == '"state":"succeeded","stdout":""{' and capsys.readouterr().out == launch.stdout


def test_a_launch_without_times_tells_what_else_there_is(session, saxpy, capsys, monkeypatch):
    transport, x = session.client._transport, of(session, 1, 2)
    post, statuses = transport.post, []
    monkeypatch.setattr(transport, "post", lambda like, body: statuses.append((answer := post(like, body)).status) or answer)
    for launch in (saxpy((1,), (2,), (1.0, x, x, 2), timing=False), saxpy[1, 2](1.0, x, x, 2, timing=False, timeout_ms=9000)):
        assert launch.done() and launch.state == "succeeded" and launch.gpu_us is None and launch.stdout == "" and launch.wait() is launch
        assert launch.info["state"] == "succeeded" and repr(launch) == "<Launch saxpy succeeded>"
        with pytest.raises(errors.GpurestError, match="timing=False"):
            launch.id  # noqa: B018
        launch.cancel()  # as of one with times: what has ended stays as it is
        assert launch.state == "succeeded"
    later = saxpy((1,), (2,), (1.0, x, x, 2), timing=False, wait=False)
    assert later.wait(60).gpu_us is None and later.id and statuses == [204, 204, 202]
    with session.batch():
        queued = saxpy((1,), (2,), (1.0, x, x, 2), timing=False)
    assert queued.state == "succeeded" and list(x.get()) == [16, 32]
    source = r'''extern "C" __global__ void f(int* x) { printf("%d", 5); if (x) *x = 1; }'''
    printing = session.module(source)["f"]
    assert printing((1,), (1,), (None,), timing=False).stdout == "5" and capsys.readouterr().out == "5"
    seen = []
    transport.observers.append(lambda request, response, seconds: seen.append(response.json()["gpu_us"]))
    assert saxpy((1,), (2,), (1.0, x, x, 2), timing=False).gpu_us == seen[0] > 0
    transport.observers.pop()
    with pytest.raises(errors.CudaError) as told:
        printing((1,), (1,), (gpurest.u64(8),), timing=False)
    assert told.value.kernel == "f" and "test_sdk_launches.py:" in told.value.queued_at


def test_failures_name_the_line(session):
    kernel = session.module('extern "C" __global__ void f(int* x) { *x = 1; }')["f"]
    with pytest.raises(errors.CudaError) as told:
        kernel((1,), (1,), (gpurest.u64(8),))
    assert told.value.kernel == "f" and "test_sdk_launches.py:" in told.value.queued_at
    with pytest.raises(errors.SessionLostError):
        kernel((1,), (1,), (gpurest.u64(8),))


def test_kernels_from_source_follow_the_session(gpu):
    kernel = gpurest.RawKernel(SAXPY, "saxpy", client=gpu)

    def doubled():
        x = gpu.buffer(np.array([1, 2], "f4"))
        kernel((1,), (2,), (1.0, x, x, 2))
        return list(x.get())

    first = gpu.default_session
    assert doubled() == doubled() == [2, 4]
    kept = kernel.kernel
    assert kernel.kernel is kept
    kept.module.free()
    assert doubled() == [2, 4] and kernel.kernel is not kept
    first.reset()
    assert doubled() == [2, 4]
    first.close()
    assert doubled() == [2, 4] and kernel.kernel.session is gpu.default_session is not first


def test_kernels_from_source_are_pickled_after_use(gpu):
    kernel = gpurest.RawKernel(SAXPY, "saxpy")
    x = gpu.buffer(np.array([1, 2], "f4"))
    kernel((1,), (2,), (1.0, x, x, 2))
    pickle.loads(pickle.dumps(kernel))((1,), (2,), (1.0, x, x, 2))
    assert list(x.get()) == [4, 8]
