"""gpurest.cuda with several devices: two GPUs and the cpu device. The GPUs are those of the tests' driver library, which has memory and runs no kernels;
with GPUREST_TEST_BACKENDS=cuda the machine's, if it has two."""
import array
import threading

import pytest

import gpurest
from gpurest import cuda, errors, testing
from sources import SAXPY

WAIT_S = 60


@pytest.fixture
def gpu(node_client):
    return node_client


def test_without_a_service_a_fake_one_has_a_device():
    with testing.FakeServer() as fake, gpurest.connect(fake.url) as client:
        gpurest.set_default(client)
        try:
            assert cuda.is_available() and cuda.get_device_properties(0).backend == "fake" and cuda.memory_allocated() == 0
            gpurest.default_session().buffer(size=1000)
            assert cuda.Fence().wait(WAIT_S).done()
        finally:
            gpurest.set_default(None)


def test_all_devices_are_there(gpu):
    assert cuda.device_count() == 3 and [cuda.get_device_properties(at).id for at in range(3)] == ["cuda:0", "cuda:1", "cpu:0"]
    assert [cuda.Device(name).id for name in ("cuda", "cuda:1", "cpu")] == [0, 1, 2] and cuda.Device(1) != cuda.Device(0)
    with pytest.raises(errors.ArgumentError, match="there is no device 3; the service has 0: cuda:0, 1: cuda:1, 2: cpu:0"):
        cuda.set_device(3)


def test_the_choice_is_where_sessions_are_made(gpu):
    cuda.set_device(1)
    assert cuda.current_device() == 1 and gpu.default_session.device == "cuda:1" and gpu.session().device == "cuda:1"
    first = gpurest.default_session()
    with cuda.device("cpu:0") as chosen:
        assert chosen.id == cuda.current_device() == 2 and gpurest.default_session().device == "cpu:0"
        with cuda.device(0):
            assert gpurest.zeros(1).device == "cuda:0"
            cuda.set_device(1)
            assert gpurest.default_session() is first
        assert cuda.current_device() == 2  # set_device() held to the end of its block
        with cuda.Device(None):
            assert cuda.current_device() == 2
    assert gpurest.default_session() is first and gpu.session(device="cpu").device == "cpu:0"
    seen = []
    threads = [threading.Thread(target=lambda at=at: (cuda.set_device(at), seen.append(gpurest.zeros(1).device))) for at in (0, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert sorted(seen) == ["cpu:0", "cuda:0", "cuda:1"]


def test_arrays_live_on_their_devices_and_go_from_one_to_the_other(gpu):
    x, y = gpurest.asarray([1.0, 2.0], dtype="f4", device="cpu:0"), gpurest.asarray([3.0, 4.0], device=1)
    assert (x.device, y.device) == ("cpu:0", "cuda:1") and gpurest.zeros_like(x).device == "cpu:0" and y.tolist() == [3, 4]
    with pytest.raises(errors.ArgumentError) as caught:
        x + y
    text = str(caught.value)
    assert f"float32 of shape (2,) is in session {x.session.id} on cpu:0, float64 of shape (2,) is in session {y.session.id} on cuda:1" in text
    assert "gpurest.asarray(x, device=" in text
    for mixed in (lambda: gpurest.fetch(x, y), lambda: gpurest.concatenate([x, y]), lambda: gpurest.where(x > 0, y, x)):
        with pytest.raises(errors.ArgumentError, match="on cpu:0.* on cuda:1|on cuda:1.* on cpu:0"):
            mixed()
    there = y.to_device("cpu:0")
    assert there.session is x.session and (x + there).tolist() == [4, 6] and y.device == "cuda:1"
    back = gpurest.asarray(x + there, device=1)
    assert back.session is y.session and back.tolist() == [4, 6]
    large = gpurest.asarray(array.array("d", range(5 << 20)), device=0)  # a transfer of its own, both ways
    assert large.to_device("cpu").sum().item() == sum(range(5 << 20))


def test_kernels_say_whose_the_buffers_are(gpu):
    x = gpurest.ones(4, "f4", device="cpu")
    there = gpurest.asarray([0.0] * 4, dtype="f4", device=0)
    kernel = gpurest.RawKernel(SAXPY, "saxpy")
    with cuda.device("cpu"):
        kernel(1, 4, (1.0, x, x, 4))
        with pytest.raises(errors.ArgumentError, match=f"a buffer of session {there.session.id} on cuda:0; this kernel belongs to session {x.session.id} on cpu:0"):
            kernel(1, 4, (1.0, x, there, 4))
    with pytest.raises(errors.ArgumentError, match="on cuda:0, this one in session .* on cpu:0"):
        x.buffer.copy_from(there.buffer)
    assert x.tolist() == [2, 2, 2, 2]


def test_figures_and_limits_are_those_of_a_device(gpu):
    half = cuda.get_device_properties(1).total_memory // 2
    cuda.set_per_process_memory_fraction(0.5, 1)
    cuda.set_per_process_memory_fraction(0.25)  # of any other
    x = gpurest.asarray(bytes(1 << 20), device=1)
    assert x.session.info()["memory_limit"] == half and gpurest.zeros(1, device=2).session.info()["memory_limit"] == cuda.mem_get_info(2)[1] // 4
    assert cuda.memory_allocated(1) >= 1 << 20 and cuda.memory_allocated(0) == 0 and "cuda:1" in cuda.memory_summary(1) and "cuda:0 yet" in cuda.memory_summary(0)
    assert len(list(gpu.sessions())) == 2  # looking has made none
    default = gpurest.default_session()  # a device of the service's choice, with the limit that is for it
    assert default.info()["memory_limit"] == (half if default.device == "cuda:1" else cuda.get_device_properties(default.device).total_memory // 4)
    cuda.synchronize(0)
    cuda.synchronize(1)


def test_streams_events_and_fences_of_a_device(gpu):
    stream = cuda.Stream(1)
    assert stream.session.device == "cuda:1"
    with stream:
        assert gpurest.default_session() is stream.session  # as torch has it
    cuda.Fence(stream).wait(WAIT_S)
    cuda.Fence(device=0).wait(WAIT_S)
    with cuda.device("cpu"):
        event = cuda.Event()
        event.record()
        event.wait()
        event.wait(stream)
        assert event.query()


def test_what_a_device_keeps_for_later_goes_back(gpu):
    """A GPU keeps freed memory; the cpu device does not."""
    size, rest, unit = 128 << 20, 64 << 20, 32 << 20  # a driver takes and gives back tens of MiB at a time
    cuda.set_device(1)
    gpu.buffer(size=size).free()
    assert cuda.memory_reserved() - cuda.memory_allocated() >= size and cuda.memory_stats()["cached_bytes"] >= size
    cuda.empty_cache()
    assert cuda.memory_reserved() - cuda.memory_allocated() < rest
    gpu.buffer(size=size).free()
    cuda.set_cache_size(rest)  # at once
    assert cuda.memory_stats()["cached_bytes"] < rest + unit
    gpu.buffer(size=size).free()
    assert cuda.memory_stats()["cached_bytes"] < rest + unit
    cuda.set_cache_size(None)
    gpu.buffer(size=size).free()
    gpu.buffer(size=4).free()
    assert cuda.memory_stats()["cached_bytes"] >= size
