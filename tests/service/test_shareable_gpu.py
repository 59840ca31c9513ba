"""Shareable buffers of a real GPU, used by another process through the driver: this one. Skipped without a GPU, or if the service under
test does not use it (GPUREST_TEST_BACKENDS=cuda)."""
import contextlib
import ctypes
import os
import signal

import pytest

from conftest import VADD, floats
from kernels import launch_vadd
from test_local_sharing import MIB, eventually, make, memory_of, move, sharing  # noqa: F401
from test_shareable import make_shareable, mappers_of  # noqa: F401

POSIX_DESCRIPTOR, ON_DEVICE, READ_WRITE = 1, 1, 3


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint), ("id", ctypes.c_int)]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_uint)]


class Cuda:
    """The part of the driver that an importer needs."""

    def __init__(self):
        self.driver = ctypes.CDLL(os.environ.get("GPUREST_LIBCUDA") or "libcuda.so.1")
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        result = getattr(self.driver, name)(*arguments)
        assert result == 0, (name, result)

    @contextlib.contextmanager
    def imported(self, fd, size):
        """The device address of the descriptor's memory; closes the descriptor."""
        handle, address = ctypes.c_ulonglong(), ctypes.c_ulonglong()
        bytes_, zero = ctypes.c_size_t(size), ctypes.c_ulonglong(0)
        access = Access(Location(ON_DEVICE, 0), READ_WRITE)
        try:
            self.call("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(fd), POSIX_DESCRIPTOR)
        finally:
            os.close(fd)
        self.call("cuMemAddressReserve", ctypes.byref(address), bytes_, ctypes.c_size_t(0), zero, zero)
        self.call("cuMemMap", address, bytes_, ctypes.c_size_t(0), handle, zero)
        self.call("cuMemSetAccess", address, bytes_, ctypes.byref(access), ctypes.c_size_t(1))
        try:
            yield address.value
        finally:
            self.call("cuMemUnmap", address, bytes_)
            self.call("cuMemRelease", handle)
            self.call("cuMemAddressFree", address, bytes_)

    def write(self, address, content):
        """Waits for the copy: from pageable memory it may return when the bytes are only staged, and the service's kernels do not wait for
        this process."""
        self.call("cuMemcpyHtoD_v2", ctypes.c_ulonglong(address), content, ctypes.c_size_t(len(content)))
        self.call("cuCtxSynchronize")

    def read(self, address, size):
        out = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", out, ctypes.c_ulonglong(address), ctypes.c_size_t(size))
        return out.raw


@pytest.fixture(scope="module")
def cuda():
    if os.environ.get("GPUREST_TEST_BACKENDS") != "cuda":
        pytest.skip("the service under test uses no GPU")
    try:
        return Cuda()
    except (OSError, AssertionError) as absent:
        pytest.skip(f"no GPU for this process: {absent}")


@pytest.fixture
def gpu(cuda, sharing):  # noqa: F811
    client = sharing()
    assert client.put("/v1/sessions/s").status == 201
    return client


def handle_of(client, buffer):
    answer = client.post(buffer + "/share", {"as": "cuda_fd"}).expect(200)
    return client.take(), answer.json()


def imported(cuda, client, buffer):
    fd, told = handle_of(client, buffer)
    return cuda.imported(fd, told["allocation_size"])


def test_a_kernel_computes_on_what_another_process_wrote(cuda, gpu):
    path = "/v1/sessions/s"
    assert gpu.put_cuda(path + "/modules/m", VADD).status == 201
    buffers = [make_shareable(gpu, name, 4096) for name in "abc"]
    with contextlib.ExitStack() as stack:
        a, b, c = (stack.enter_context(imported(cuda, gpu, buffer)) for buffer in buffers)
        assert cuda.read(a, 2 * MIB) == bytes(2 * MIB)
        cuda.write(a, floats(range(1024)))
        cuda.write(b, floats(2 * i for i in range(1024)))
        assert gpu.post(path + "/launches", launch_vadd()).status == 200
        assert cuda.read(c, 4096) == floats(3 * i for i in range(1024))
        assert gpu.get(buffers[0] + "/data").body == floats(range(1024))
        assert gpu.post(buffers[2] + "/fill", {"pattern": {"f32": 0.5}}).status == 204
        assert cuda.read(c, 4096) == floats([0.5] * 1024)


def test_it_is_charged_in_units_of_the_driver(cuda, gpu):
    buffer = make_shareable(gpu, "x", 1)
    fd, told = handle_of(gpu, buffer)
    os.close(fd)
    assert told["size"] == 1 and told["allocation_size"] == told["granularity"] == memory_of(gpu)


@pytest.mark.parametrize("how", ["buffer", "reset", "session", "killed"])
def test_the_importer_keeps_its_memory_and_nobody_else_gets_it(cuda, gpu, how):
    buffer = make_shareable(gpu, "x", 8 * MIB)
    with imported(cuda, gpu, buffer) as mine:
        cuda.write(mine, b"mine" * (2 * MIB))
        if how == "buffer":
            assert gpu.delete(buffer).status == 204
        elif how == "reset":
            assert gpu.post("/v1/sessions/s/reset").status == 200
        elif how == "session":
            assert gpu.delete("/v1/sessions/s").status == 204
        else:
            with gpu.share(buffer):  # it identifies the worker
                worker, = mappers_of(gpu.service)
                os.kill(worker, signal.SIGKILL)
                eventually(lambda: gpu.get(buffer + "/data").status == 409)
            assert gpu.delete("/v1/sessions/s").status == 204
        assert gpu.put("/v1/sessions/n").status == 201
        fresh = make_shareable(gpu, "x", 8 * MIB, "n")
        cuda.write(mine, b"late" * (2 * MIB))
        assert gpu.get(fresh + "/data").body == bytes(8 * MIB)
        assert cuda.read(mine, 8 * MIB) == b"late" * (2 * MIB)


def test_memory_of_the_host_is_copied_by_the_device(cuda, gpu):
    """The other kind of share, of both kinds of buffers."""
    for buffer in (make_shareable(gpu, "x", 33 * MIB + 1), make(gpu, "y", 33 * MIB + 1)):
        with gpu.share(buffer) as shared:
            content = (os.urandom(MIB) * 34)[:33 * MIB + 1]
            shared[:] = content
            move(gpu, buffer, "to_device")
            assert gpu.get(buffer + "/data").body == shared[:]
            assert gpu.post(buffer + "/fill", {"pattern": {"u8": 3}}).status == 204
            move(gpu, buffer, "from_device", offset=10)
            assert shared[10:] == b"\3" * (33 * MIB - 9) and shared[:10] == content[:10]


def test_cupy_takes_it_without_a_copy(cuda, gpu):
    cupy = pytest.importorskip("cupy")
    buffer = make_shareable(gpu, "x", 4096)
    with imported(cuda, gpu, buffer) as mine:
        memory = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(mine, 4096, buffer), 0)
        array = cupy.ndarray((1024,), cupy.float32, memptr=memory)
        array[:] = cupy.arange(1024, dtype=cupy.float32) * 2
        cupy.cuda.Device().synchronize()
        assert gpu.get(buffer + "/data").body == floats(2 * i for i in range(1024))
        assert gpu.post(buffer + "/fill", {"pattern": {"f32": 1.0}}).status == 204
        assert float(array.sum()) == 1024.0
