"""Shared memory of buffers, against a service that shares it."""
import gc
import os
import pathlib
import threading

import pytest

import gpurest
from gpurest import errors, testing


@pytest.fixture(scope="module")
def sharing():
    if testing.find_executable() is None:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    with testing.server("--local-sharing", "--local-sharing-mib", "64") as one:
        yield one


@pytest.fixture
def local(sharing):
    """A session over the Unix socket."""
    with gpurest.connect(sharing.unix_url) as client, client.session() as session:
        yield session


def open_descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_there_and_back(local):
    content = os.urandom(3_000_001)
    buffer = local.buffer(size=len(content))
    with buffer.share() as shared:
        assert shared.nbytes == len(content) and bytes(shared.data) == bytes(len(content))
        shared.data[:] = content
        shared.to_device()
        assert buffer.read() == content
        buffer.fill(5)
        assert bytes(shared.data) == content
        shared.from_device(offset=10, size=20)
        assert bytes(shared.data) == content[:10] + b"\5" * 20 + content[30:]


def test_as_an_array(local):
    numpy = pytest.importorskip("numpy")
    buffer = local.empty((4, 8), "f4")
    with buffer.share() as shared:
        view = shared.array()
        assert view.shape == (4, 8) and view.dtype == numpy.float32
        view[:] = numpy.arange(32).reshape(4, 8)
        shared.to_device()
        assert (buffer.get() == view).all()
        del view


def test_one_memory_for_all_who_share(local):
    buffer = local.buffer(size=4096)
    one, other = buffer.share(), buffer.share()
    one.data[0:3] = b"abc"
    assert bytes(other.data[0:3]) == b"abc"
    one.close()
    assert bytes(other.data[0:3]) == bytes(3)  # taken back
    with pytest.raises(errors.NotFoundError) as failed:
        other.to_device()
    assert failed.value.code == "share_not_found"
    with pytest.raises(errors.NotFoundError):
        other.close()
    with pytest.raises(errors.ClosedError):
        one.to_device()
    with pytest.raises(errors.ClosedError):
        one.data
    one.close()


def test_nothing_is_left(local):
    buffer = local.buffer(size=4096)
    buffer.share().close()
    before = open_descriptors()
    for _ in range(5):
        shared = buffer.share()
        kept = shared.data
        shared.close()
        del kept, shared
    gc.collect()
    assert open_descriptors() == before
    assert local.info()["usage"]["memory_bytes"] == 4096


def test_after_the_buffer_and_after_a_reset(local):
    buffer = local.buffer(size=4096)
    shared = buffer.share()
    buffer.free()
    with pytest.raises(errors.ClosedError):
        shared.to_device()
    shared.close()
    buffer = local.buffer(size=4096)
    shared = buffer.share()
    local.reset()
    with pytest.raises(errors.SessionLostError):
        shared.from_device()
    shared.close()


def test_ranges_are_checked_here(local):
    shared = local.buffer(size=100).share()
    for bad in ((-1, None), (101, None), (1, 100), (0, -1)):
        with pytest.raises(errors.ArgumentError):
            shared.to_device(*bad)
    shared.close()


def test_refusals(sharing, local):
    before = open_descriptors()
    with gpurest.connect(sharing.url) as client, client.session() as session:
        with pytest.raises(errors.GpurestError, match="Unix socket"):
            session.buffer(size=10).share()
    big = local.buffer(size=65 << 20)
    with pytest.raises(errors.ResourceExhausted) as failed:
        big.share()
    assert failed.value.code == "overloaded"
    gc.collect()
    assert open_descriptors() <= before


def test_off_by_default(service):
    with gpurest.connect(service.unix_url) as client, client.session() as session:
        with pytest.raises(errors.ValidationError) as failed:
            session.buffer(size=10).share()
        assert failed.value.code == "feature_disabled"


def test_not_within_a_batch(local):
    buffer = local.buffer(size=16)
    shared = buffer.share()
    with local.batch():
        with pytest.raises(errors.GpurestError, match="batch"):
            buffer.share()
        with pytest.raises(errors.GpurestError, match="batch"):
            shared.to_device()
    shared.close()


def test_threads(local):
    size, parts = 8 << 20, 4
    buffer = local.buffer(size=size)
    with buffer.share() as shared:
        content = os.urandom(size)
        shared.data[:] = content
        threads = [threading.Thread(target=shared.to_device, args=(i * size // parts, size // parts)) for i in range(parts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert buffer.read() == content


# ---- shareable buffers ----

def test_a_shareable_buffers_memory_is_the_buffer(local):
    buffer = local.buffer(size=10_000, shareable=True)
    before = open_descriptors()
    with buffer.share() as shared:
        assert shared.direct and shared.nbytes == len(shared.data) == 10_000
        assert bytes(shared.data) == bytes(10_000)
        content = os.urandom(10_000)
        shared.data[:] = content
        assert buffer.read() == content
        buffer.fill(5, offset=10, size=20)
        assert bytes(shared.data) == content[:10] + b"\5" * 20 + content[30:]
        shared.to_device()
        shared.from_device(1, 2)
    assert open_descriptors() == before
    with buffer.share() as again:
        assert bytes(again.data[:10]) == content[:10]
    assert local.info()["usage"]["memory_bytes"] == 3 * 4096


def test_a_shareable_buffer_as_an_array(local):
    numpy = pytest.importorskip("numpy")
    buffer = local.buffer(size=4096, dtype="f4", shareable=True)
    with buffer.share() as shared:
        view = shared.array()
        view[:] = numpy.arange(1024)
        assert (buffer.get() == numpy.arange(1024, dtype="f4")).all()
        buffer.fill(2.5)
        assert (view == 2.5).all()
        del view


def test_shareable_refusals(local, service):
    with pytest.raises(errors.ArgumentError):
        local.buffer(b"data", shareable=True)
    with local.batch():
        with pytest.raises(errors.ArgumentError):
            local.buffer(size=10, shareable=True)
    with pytest.raises(errors.ValidationError) as failed:  # the cpu device has no such descriptor
        local.buffer(size=10, shareable=True).share_cuda()
    assert failed.value.code == "invalid_field"
    with gpurest.connect(service.unix_url) as client, client.session() as session:
        with pytest.raises(errors.ValidationError) as failed:
            session.buffer(size=10, shareable=True)
        assert failed.value.code == "feature_disabled"


def test_a_descriptor_for_cuda(executable_with_fake_driver):
    """The fake driver's descriptors are of memory files."""
    import mmap
    with testing.server("--local-sharing", "--backends", "cuda", "--libcuda", executable_with_fake_driver) as one:
        with gpurest.connect(one.unix_url) as client, client.session() as session:
            buffer = session.buffer(size=100, shareable=True)
            before = open_descriptors()
            with buffer.share_cuda() as handle:
                assert (handle.nbytes, handle.allocation_size, handle.granularity) == (100, 2 << 20, 2 << 20)
                with mmap.mmap(handle.fd, handle.allocation_size) as mapped:
                    mapped[:100] = b"x" * 100
                    assert buffer.read() == b"x" * 100
            assert handle.fd == -1 and open_descriptors() == before
            handle.close()
            with pytest.raises(errors.ValidationError):
                session.buffer(size=10).share_cuda()


@pytest.fixture
def executable_with_fake_driver():
    found = testing.find_executable()
    if found is None:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    library = pathlib.Path(found).resolve().parents[1] / "tests" / "support" / "libcuda.so.1"
    if not library.exists():
        pytest.skip("the fake driver is not built")
    return str(library)
