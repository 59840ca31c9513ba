"""Device memory in gpurest.cuda against a real service on the cpu device: figures, limits, what is done when there is little left."""
import gc
import logging
import time

import pytest

import gpurest
from gpurest import cuda, errors

MIB = 1 << 20
WAIT_S = 60


def test_memory_figures(gpu):
    assert cuda.memory_allocated() == cuda.memory_reserved() == cuda.max_memory_allocated() == 0 and cuda.memory_stats()["limit_bytes"] is None
    assert "no session" in cuda.memory_summary()
    cuda.reset_peak_memory_stats()
    cuda.empty_cache()
    assert list(gpu.sessions()) == []
    x = gpu.buffer(size=4 * MIB)
    base = cuda.memory_allocated()
    assert base >= 4 * MIB and cuda.memory_reserved("cpu:0") >= base
    y = gpurest.zeros(MIB, "f4")  # queued: the figures are of what the program holds all the same
    assert base + 4 * MIB <= cuda.memory_allocated(0) < base + 5 * MIB
    del y
    gc.collect()
    assert base <= cuda.memory_allocated() < base + MIB  # what nobody refers to is freed first
    told = cuda.memory_stats()
    assert told["allocated_bytes.all.current"] == told["allocated_bytes"] and told["reserved_bytes.all.current"] == told["reserved_bytes"]
    assert told["allocated_bytes.all.peak"] == cuda.max_memory_allocated() >= base + 4 * MIB and set(gpu.default_session.memory()) <= set(told)
    text = cuda.memory_summary()
    assert f"session {gpu.default_session.id} on cpu:0" in text and "most allocated" in text and "MiB" in text and "free on the device" in text
    assert "free on the device" not in cuda.memory_summary(abbreviated=True)
    x.free()
    cuda.empty_cache()
    assert cuda.memory_allocated() < MIB


def test_the_peak_is_counted_anew(gpu):
    gpu.buffer(size=8 * MIB).free()
    assert cuda.max_memory_allocated() >= 8 * MIB
    cuda.reset_peak_memory_stats()
    held = cuda.memory_allocated()
    assert cuda.max_memory_allocated() == held < MIB
    with gpu.buffer(size=2 * MIB):
        pass  # nobody looked, and it is less than the peak of before
    assert cuda.max_memory_allocated() == cuda.memory_stats()["allocated_bytes.all.peak"] == held + 2 * MIB
    with gpu.buffer(size=16 * MIB):
        pass
    assert cuda.max_memory_allocated(0) == held + 16 * MIB
    gpu.default_session.reset()
    assert cuda.max_memory_allocated() < MIB


def test_a_share_of_the_devices_memory(gpu):
    total = cuda.get_device_properties(0).total_memory
    for wrong in (0, -0.5, 1.5, True, "half", float("nan")):
        with pytest.raises(errors.ArgumentError, match="fraction"):
            cuda.set_per_process_memory_fraction(wrong)
    share = (8 * MIB + 0.5) / total
    cuda.set_per_process_memory_fraction(share)
    assert gpu.default_session.info()["memory_limit"] == 8 * MIB and cuda.memory_stats()["limit_bytes"] == 8 * MIB
    with pytest.raises(errors.ResourceExhausted):
        gpu.buffer(size=9 * MIB)
    assert len(list(gpu.sessions())) == 1
    cuda.set_per_process_memory_fraction(2 * share, "cpu:0")  # of this device, before what holds for any; the session that is there has it, too
    assert gpu.default_session.info()["memory_limit"] in (16 * MIB, 16 * MIB + 1) and len(list(gpu.sessions())) == 1
    held = gpu.buffer(size=9 * MIB)
    cuda.set_per_process_memory_fraction(share)
    assert gpu.default_session.info()["memory_fraction"] == 2 * share
    cuda.set_per_process_memory_fraction(share, 0)
    assert gpu.default_session.info()["memory_limit"] == 8 * MIB and held.nbytes == 9 * MIB
    gpu.default_session.close()
    with cuda.device(0):
        assert gpurest.default_session().info()["memory_fraction"] == share
    with gpu.session() as own:
        assert own.info()["memory_limit"] is None  # one that the program makes says so itself


def test_how_much_is_kept_for_later(gpu):
    """That the worker keeps to it is shown where a device keeps memory: test_sdk_cuda_devices.py."""
    for wrong in (-1, 1.5, True, "1"):
        with pytest.raises(errors.ArgumentError, match="bytes"):
            cuda.set_cache_size(wrong)

    def bound():
        return gpu.default_session.info()["pool_bytes_max"]

    cuda.set_cache_size(8 * MIB)
    assert bound() == 8 * MIB
    cuda.set_cache_size(0)
    assert bound() == 0  # the session that is there has it
    cuda.set_cache_size(16 * MIB, 0)
    cuda.set_cache_size(1 * MIB)
    assert bound() == 16 * MIB  # that of the device goes before
    before = gpu.requests_sent
    gpu.buffer(size=4)
    assert gpu.requests_sent - before == 1  # it costs nothing
    for most in (None, 1 << 62):
        cuda.set_cache_size(most, "cpu:0")
        assert bound() == cuda.memory.UNBOUNDED
    gpu.default_session.reset()
    cuda.set_per_process_memory_fraction(0.5)
    assert bound() == cuda.memory.UNBOUNDED and gpu.default_session.info()["memory_fraction"] == 0.5  # one does not undo the other


@pytest.fixture
def small(gpu):
    """The default session may have 8 MiB."""
    total = cuda.get_device_properties(0).total_memory
    cuda.set_per_process_memory_fraction((8 * MIB + 0.5) / total)
    gpu.default_session.info()
    return gpu


def until(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_low_memory_is_told_once(small):
    told = []
    handle = cuda.on_low_memory(told.append)
    first, second = small.buffer(size=5 * MIB), small.buffer(size=2 * MIB)
    third = small.buffer(size=MIB // 2)
    until(lambda: told)
    fourth = small.buffer(size=MIB // 4)  # and not again while it stays low
    found = told[0]
    assert found.session is small.default_session and found.device == "cpu:0" and found.limit == 8 * MIB and found.requested is None and found.error is None
    assert found.allocated == 7 * MIB + MIB // 2 and found.left == MIB // 2
    for held in (second, third, fourth):
        held.free()
    x = gpurest.zeros(5 * MIB // 8, "f4")
    cuda.synchronize()  # arrays count, too
    until(lambda: len(told) == 2)
    assert told[1].allocated >= 7 * MIB + MIB // 2
    handle.remove()
    handle.remove()
    del x
    cuda.empty_cache()
    small.buffer(size=5 * MIB // 2)
    first.free()
    assert len(told) == 2


def test_a_session_that_comes_later_is_looked_after(small):
    told, threads = [], []
    handle = cuda.on_low_memory(told.append)
    small.default_session.close()
    with cuda.device(0):
        again = gpurest.default_session()
        held = again.buffer(size=8 * MIB - MIB // 4)
    until(lambda: told)
    assert told[0].session is again and again.info()["memory_limit"] == 8 * MIB
    threads = [watch._thread for watch in handle._watches.values()]
    handle.remove()
    with pytest.raises(errors.ResourceExhausted):
        again.buffer(size=MIB)  # an event, of which nobody is told
    until(lambda: not any(thread.is_alive() for thread in threads))  # it does not wait for the session's end
    held.free()
    assert len(told) == 1


@pytest.mark.parametrize("allocate", [lambda gpu, size: gpu.buffer(size=size), lambda gpu, size: gpu.buffer(bytes(size)),
                                      lambda gpu, size: gpurest.asarray(bytes(size)).buffer, lambda gpu, size: gpurest.zeros(size, "u1").buffer])
def test_a_refused_allocation_is_made_again(small, allocate):
    held, told = [small.buffer(size=5 * MIB)], []

    def let_go(low):
        told.append(low)
        if low.error is not None and held:
            held.pop().free()
            return True
        return None

    handle = cuda.on_low_memory(let_go)
    made = allocate(small, 6 * MIB)
    assert made.nbytes == 6 * MIB and len(told) == 1 and told[0].requested == 6 * MIB
    assert isinstance(told[0].error, errors.ResourceExhausted)
    with pytest.raises(errors.ResourceExhausted):
        allocate(small, 6 * MIB)  # nothing left to let go
    assert len(told) == 2
    handle.remove()
    with pytest.raises(errors.ResourceExhausted):
        allocate(small, 6 * MIB)
    assert len(told) == 2


def test_what_a_callback_raises_is_logged(small, caplog):
    def wrong(low):
        raise RuntimeError("of the callback")

    handle = cuda.on_low_memory(wrong)
    with caplog.at_level(logging.ERROR, "gpurest.session"):
        with pytest.raises(errors.ResourceExhausted):
            small.buffer(size=9 * MIB)
        assert caplog.text.count("RuntimeError: of the callback") == 1
        held = small.buffer(size=8 * MIB - 4)
        until(lambda: caplog.text.count("RuntimeError: of the callback") == 2)
    handle.remove()
    held.free()


def test_a_callback_may_allocate(small):
    made = []

    def allocates(low):
        made.append(small.buffer(size=16))
        with pytest.raises(errors.ResourceExhausted):
            small.buffer(size=9 * MIB)  # it is not called for its own

    handle = cuda.on_low_memory(allocates)
    with pytest.raises(errors.ResourceExhausted):
        small.buffer(size=9 * MIB)
    assert len(made) == 1
    handle.remove()
