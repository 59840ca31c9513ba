"""Device memory in gpurest.cuda against a real service on the cpu device: figures, limits, what is done when there is little left."""
import gc
import logging

import pytest

import gpurest
from gpurest import cuda, errors

MIB = 1 << 20


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
    assert cuda.max_memory_allocated() < MIB
    with gpu.buffer(size=2 * MIB):
        assert 2 * MIB <= cuda.max_memory_allocated() < 3 * MIB
    assert 2 * MIB <= cuda.max_memory_allocated() < 3 * MIB
    with gpu.buffer(size=4 * MIB):
        pass  # nobody looked
    with gpu.buffer(size=16 * MIB):
        pass
    assert 16 * MIB <= cuda.max_memory_allocated() < 17 * MIB
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
    with pytest.raises(errors.ConflictError, match="is there already"):
        cuda.set_per_process_memory_fraction(0.5, 0)
    gpu.default_session.close()
    cuda.set_per_process_memory_fraction(2 * share, "cpu:0")  # of this device, before what holds for any
    with cuda.device(0):
        assert gpurest.default_session().info()["memory_limit"] in (16 * MIB, 16 * MIB + 1)
    with gpu.session() as own:
        assert own.info()["memory_limit"] is None  # one that the program makes says so itself


def test_how_much_is_kept_for_later(gpu, monkeypatch):
    """The cpu device keeps next to nothing: the service's figures are replaced, the requests are looked at."""
    session = gpu.default_session
    trims, cached = [], [5 * MIB]
    monkeypatch.setattr(session, "memory", lambda: {**dict.fromkeys(("allocated_bytes", "free_bytes"), 0), "limit_bytes": None, "cached_bytes": cached[0]})
    monkeypatch.setattr(session, "trim", lambda: trims.append(cached[0]))
    for wrong in (-1, 1.5, True, "1"):
        with pytest.raises(errors.ArgumentError, match="bytes"):
            cuda.set_cache_size(wrong)
    cuda.set_cache_size(8 * MIB)
    assert trims == []
    cuda.set_cache_size(4 * MIB)
    assert trims == [5 * MIB]
    cached[0] = 4 * MIB
    gpu.buffer(b"kept")
    assert len(trims) == 1
    cached[0] += 1
    for allocate in (lambda: gpu.buffer(size=4), lambda: gpu.buffer(b"more"), lambda: gpurest.asarray([1.0]).buffer):
        allocate()
    assert len(trims) == 4
    cuda.set_cache_size(16 * MIB, 0)  # that of the device goes before
    gpu.buffer(size=4)
    assert len(trims) == 4
    cuda.set_cache_size(None, "cpu:0")
    cuda.set_cache_size(None)
    cached[0] = 64 * MIB
    before = gpu.requests_sent
    gpu.buffer(size=4)
    assert len(trims) == 4 and gpu.requests_sent - before <= 2


@pytest.fixture
def small(gpu):
    """The default session may have 8 MiB."""
    total = cuda.get_device_properties(0).total_memory
    cuda.set_per_process_memory_fraction((8 * MIB + 0.5) / total)
    gpu.default_session.info()
    return gpu


def test_low_memory_is_told_once(small):
    told = []
    handle = cuda.on_low_memory(told.append, below=0.5)
    first = small.buffer(size=2 * MIB)
    assert told == []
    second = small.buffer(size=3 * MIB)
    third = small.buffer(size=MIB)
    assert len(told) == 1  # and not again while it stays low
    found = told[0]
    assert found.session is small.default_session and found.device == "cpu:0" and found.limit == 8 * MIB and found.requested is None and found.error is None
    assert found.allocated >= 5 * MIB and found.left <= 3 * MIB
    second.free()
    third.free()
    x = gpurest.zeros(MIB // 4, "f4")
    cuda.synchronize()
    assert len(told) == 1
    y = gpurest.zeros(MIB // 2, "f4")
    cuda.synchronize()  # arrays count, too
    assert len(told) == 2
    handle.remove()
    handle.remove()
    del x, y
    first.free()
    cuda.empty_cache()
    small.buffer(size=6 * MIB)
    assert len(told) == 2


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

    handle = cuda.on_low_memory(let_go, below=0)
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

    handle = cuda.on_low_memory(wrong, below=1.0)
    with caplog.at_level(logging.ERROR, "gpurest.session"):
        assert bytes(small.buffer(b"abcd")) == b"abcd"
    assert "of the callback" in caplog.text
    handle.remove()
    for below in (-1, 1.5, True, "much"):
        with pytest.raises(errors.ArgumentError, match="below"):
            cuda.on_low_memory(wrong, below=below)


def test_a_callback_may_allocate(small):
    made = []
    handle = cuda.on_low_memory(lambda low: made.append(small.buffer(size=16)), below=1.0)
    small.buffer(size=16)
    assert len(made) == 1  # it is not called for its own
    handle.remove()
