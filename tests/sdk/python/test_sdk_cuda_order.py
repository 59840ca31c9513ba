"""Streams, events and fences of gpurest.cuda against a real service on the cpu device."""
import array
import time

import pytest

import gpurest
from gpurest import cuda, errors
from sources import FAULTS, SAXPY

WAIT_S = 60
DEADLINE_MS = 600_000  # of endless kernels: longer than any test


def floats(*values):
    return array.array("f", values)


def saxpy():
    return gpurest.RawKernel(SAXPY, "saxpy")


def test_a_stream(gpu):
    stream = cuda.Stream()
    assert isinstance(stream, gpurest.Stream) and stream.session is gpu.default_session
    x, y = gpu.buffer(floats(1, 2)), gpu.buffer(floats(0, 0))
    kernel = saxpy()
    with stream:
        kernel(1, 32, (2.0, x, y, 2))
    kernel(1, 32, (1.0, x, y, 2), stream=stream, wait=False)
    stream.synchronize()
    assert stream.query() and stream.done and list(y.get()) == [3, 6]
    other = cuda.Stream(0)
    assert other.name != stream.name
    with stream:
        kernel(1, 32, (1.0, x, y, 2))
        event = stream.record_event()
        other.wait_event(event)
        with other:
            kernel(1, 32, (1.0, x, y, 2))
        other.wait_stream(stream)
    assert event.query() and list(y.get()) == [5, 10]
    other.wait_stream(stream)  # outside a batch it waits
    given = cuda.Event()
    assert stream.record_event(given) is given
    other.wait_event(given)
    assert given.done
    name = stream.name
    stream.close()
    assert cuda.Stream().name == name
    with pytest.raises(errors.ClosedError):
        stream.synchronize()


def test_events_measure(gpu):
    x = gpu.buffer(floats(*range(1000)))
    kernel = saxpy()
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    assert start.query()  # nothing was recorded, as with CUDA
    start.synchronize()
    with pytest.raises(errors.GpurestError, match="have been recorded"):
        start.elapsed_time(end)
    start.record()
    launch = kernel(4, 256, (1.0, x, x, 1000), wait=False)
    end.record()  # waits
    assert end.query() and launch.done()
    assert start.elapsed_time(end) == cuda.get_elapsed_time(start, end) >= launch.gpu_us / 1000
    with gpu.batch():
        start.record()
        launch = kernel(4, 256, (1.0, x, x, 1000))
        end.record()
        assert not end.query()
        with pytest.raises(errors.GpurestError):
            end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    end.record()
    with pytest.raises(errors.GpurestError, match="different requests"):
        start.elapsed_time(end)
    with pytest.raises(errors.GpurestError, match="enable_timing"):
        cuda.Event().elapsed_time(end)
    with pytest.raises(errors.GpurestError, match="enable_timing"):
        end.elapsed_time(cuda.Event())


def endless_launch(session):
    """It has begun, and ends only when the session is reset."""
    x = session.buffer(b"\0" * 4)
    launch = session.module(FAULTS)["endless"](1, 1, (x,), wait=False, timeout_ms=DEADLINE_MS)
    deadline = time.monotonic() + WAIT_S
    while not launch.done() and launch.state != "running":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return launch


def test_a_fence_is_done_when_the_work_before_it_is(gpu):
    session = gpu.default_session
    x, y = session.buffer(floats(1)), session.buffer(floats(0))
    launches = [saxpy()(1, 1, (1.0, x, y, 1), wait=False) for _ in range(200)]  # more than the worker's ring holds
    z = gpurest.asarray([1.0]) + 1
    fence = cuda.Fence()
    assert fence.wait(WAIT_S) is fence and fence.result() is None and fence.done() and fence.exception() is None and "succeeded" in repr(fence)
    before = gpu.requests_sent
    fence.wait()
    assert gpu.requests_sent == before and all(one.done() and one.state == "succeeded" for one in launches) and z.tolist() == [2]
    stream = cuda.Stream()
    saxpy()(1, 1, (1.0, x, y, 1), stream=stream, wait=False)
    cuda.Fence(stream).wait(WAIT_S)
    assert list(y.get()) == [201] and not session.info()["state"] == "faulted"
    with gpu.batch(), pytest.raises(errors.GpurestError, match="submit_background"):
        cuda.Fence()


def test_a_fence_waits_and_hears_of_what_failed(gpu):
    session = gpu.default_session
    launch = endless_launch(session)
    fence, event = cuda.Fence(device=0), cuda.Event()
    event.record()
    assert not fence.done() and not event.query()
    with pytest.raises(errors.TimeoutError_) as caught:
        fence.wait(0.2)
    assert caught.value.phase == "kernel"
    with pytest.raises(errors.TimeoutError_):
        fence.result(0.1)
    launch.cancel(force=True)
    assert isinstance(fence.exception(WAIT_S), errors.GpurestError) and fence.done()
    with pytest.raises(errors.GpurestError):
        event.synchronize()


def test_a_fence_is_done_also_when_the_service_has_forgotten_it(gpu):
    session = gpu.default_session
    fence = cuda.Fence()
    cuda.Fence().wait(WAIT_S)  # so the first one is, too
    session.client.request("DELETE", f"/v1/sessions/{session.id}/batches/{fence._job.id}")
    assert fence.done() and fence.wait(WAIT_S) is fence
    endless_launch(session)
    lost = cuda.Fence()
    session.reset()
    with pytest.raises(errors.GpurestError):
        lost.wait(WAIT_S)
