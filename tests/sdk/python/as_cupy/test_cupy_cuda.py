"""cupy.cuda's names: devices, streams, events, the runtime, memory pools, pinned memory, ranges and times by kernel."""
import logging
import re
import threading

import pytest

np = pytest.importorskip("numpy")

import gpurest  # noqa: E402
import gpurest.cupy as cp  # noqa: E402
from gpurest import errors  # noqa: E402
from gpurest.cupy.cuda.names import cuda_name  # noqa: E402

TWICE = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'


@pytest.fixture(autouse=True)
def client(gpu):
    return gpu


# ---- devices ----

def test_a_device(client):
    device = cp.cuda.Device(0)
    assert cp.cuda.is_available() and device.id == int(device) == 0 and device == cp.cuda.Device() and hash(device) == hash(cp.cuda.Device(0))
    assert re.fullmatch(r"\d\d+", device.compute_capability) and re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.0", device.pci_bus_id)
    assert cp.cuda.Device.from_pci_bus_id(device.pci_bus_id).pci_bus_id == device.pci_bus_id
    free, total = device.mem_info
    assert 0 < free <= total
    device.use()
    with cp.cuda.Device(0) as entered:
        x = cp.arange(3)
    entered.synchronize()
    assert x.device == "cpu:0" and cp.cuda.get_device_id() == cp.cuda.device.get_device_id() == 0
    with pytest.raises(errors.ArgumentError, match="cpu:0"):
        cp.cuda.Device(7)
    with pytest.raises(errors.NotFoundError):
        cp.cuda.Device.from_pci_bus_id("ffff:ff:ff.0")


def test_attributes_have_cudas_names():
    found = cp.cuda.Device(0).attributes
    for name in ("MaxThreadsPerBlock", "WarpSize", "MultiProcessorCount", "MaxSharedMemoryPerBlock", "ComputeCapabilityMajor", "MaxBlockDimX",
                 "L2CacheSize", "MaxThreadsPerMultiProcessor", "ClockRate"):
        assert isinstance(found[name], int), name
    for ours, cudas in {"pci_bus_id": "PciBusId", "maximum_texture2d_width": "MaxTexture2DWidth", "multi_gpu_board": "IsMultiGpuBoard"}.items():
        assert cuda_name(ours) == cudas
    assert found["WarpSize"] == 32 and not [name for name in found if "_" in name]


def test_the_runtime():
    runtime = cp.cuda.runtime
    assert runtime.getDeviceCount() == gpurest.cuda.device_count() and runtime.getDevice() == 0 and not runtime.is_hip
    runtime.setDevice(0)
    runtime.deviceSynchronize()
    told = runtime.getDeviceProperties(0)
    assert isinstance(told["name"], bytes) and told["warpSize"] == 32 and len(told["maxThreadsDim"]) == len(told["maxGridSize"]) == 3
    assert told["totalGlobalMem"] == runtime.memGetInfo()[1] and told["major"] >= 5 and told["maxThreadsPerBlock"] == 1024
    assert runtime.deviceGetAttribute(runtime.cudaDevAttrWarpSize, 0) == runtime.deviceGetAttribute("WarpSize", 0) == 32
    assert runtime.deviceCanAccessPeer(0, 0) == 0 and runtime.runtimeGetVersion() >= 12000
    assert runtime.runtimeGetVersion() == cp.cuda.get_local_runtime_version()
    assert runtime.deviceGetByPCIBusId(runtime.deviceGetPCIBusId(0)) == 0
    with pytest.raises(TypeError, match="WarpSize|cudaDevAttr"):
        runtime.deviceGetAttribute(10, 0)
    with pytest.raises(TypeError):
        runtime.deviceCanAccessPeer(0, 9)


def test_a_fault_is_cudas_error():
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError):
        cp.RawKernel('extern "C" __global__ void k() { *(int *)8 = 1; }', "k")((1,), (1,), ())


# ---- streams and events ----

def test_streams_are_current_by_block_and_by_use():
    null, one, two = cp.cuda.Stream.null, cp.cuda.Stream(), cp.cuda.stream.Stream(non_blocking=True)
    assert cp.cuda.get_current_stream() == null and null.ptr == 0 and one != two and two.is_non_blocking and one.device_id == 0
    with one:
        assert cp.cuda.get_current_stream() == one
        with two:
            assert cp.cuda.get_current_stream() == two
        assert cp.cuda.get_current_stream() == one
    assert cp.cuda.get_current_stream() == null
    assert one.use() is one and cp.cuda.get_current_stream() == one
    seen = []
    other = threading.Thread(target=lambda: seen.append(cp.cuda.get_current_stream()))
    other.start()
    other.join()
    assert seen == [null]
    null.use()
    assert cp.cuda.get_current_stream() == null and not one.is_capturing()


def test_work_on_streams_is_in_order():
    kernel = cp.RawKernel(TWICE, "twice")
    first, second = cp.cuda.Stream(), cp.cuda.Stream()
    x = cp.arange(32, dtype="f4")
    with first:
        x += 1
        kernel((1,), (32,), (x,))
        done = first.record()
    second.wait_event(done)
    with second:
        y = x + 0.5
        kernel((1,), (32,), (y,), stream=second)
    second.synchronize()
    assert second.done and first.done and done.done
    np.testing.assert_array_equal(y.get(), ((np.arange(32, dtype="f4") + 1) * 2 + np.float32(0.5)) * 2)
    assert cp.ElementwiseKernel("T x", "T y", "y = x", "same")(x, stream=first).tolist() == x.tolist()


def test_callbacks_come_after_what_was_asked_for():
    stream, heard = cp.cuda.Stream(), []
    x = cp.zeros(4, "f4")
    with stream:
        x += 1
        stream.add_callback(lambda *told: heard.append(told), "argument")
        stream.launch_host_func(heard.append, 5)
    assert heard == [(stream, 0, "argument"), 5]


def test_events_measure_time():
    start, end = cp.cuda.Event(), cp.cuda.stream.Event(block=True)
    start.record()
    cp.ones(100_000).sum()
    end.record(cp.cuda.Stream.null)
    end.synchronize()
    assert start.done and end.done and cp.cuda.get_elapsed_time(start, end) > 0
    untimed = cp.cuda.Event(disable_timing=True)
    untimed.record()
    untimed.synchronize()
    with pytest.raises(errors.GpurestError, match="enable_timing"):
        cp.cuda.get_elapsed_time(untimed, end)


# ---- memory ----

def test_the_pool_counts_what_arrays_have():
    pool = cp.get_default_memory_pool()
    x = cp.zeros(1 << 18, "f4")
    used = pool.used_bytes()
    assert used >= 1 << 20 and pool.total_bytes() >= used
    del x
    assert pool.used_bytes() <= used - (1 << 20)
    pool.free_all_blocks(stream=cp.cuda.Stream.null)
    pool.free_all_free()
    assert pool.free_bytes() >= 0 and cp.cuda.MemoryPool().used_bytes() == pool.used_bytes()
    with pytest.raises(NotImplementedError, match="free_bytes"):
        pool.n_free_blocks()


def test_limits_of_the_pool_hold_and_go():
    pool = cp.get_default_memory_pool()
    total = cp.cuda.Device().mem_info[1]
    assert pool.get_limit() == 0
    pool.set_limit(size=1 << 20)
    assert pool.get_limit() == 1 << 20
    with pytest.raises(errors.ResourceExhausted):
        cp.zeros(1 << 20, "f4").get()
    pool.set_limit(fraction=0.5)
    assert pool.get_limit() == pytest.approx(total / 2, rel=0.1)
    pool.set_limit(0)
    assert pool.get_limit() == 0 and float(cp.zeros(1 << 20, "f4").sum()) == 0
    for wrong in ({}, {"size": 1, "fraction": 0.5}):
        with pytest.raises(ValueError):
            pool.set_limit(**wrong)
    with pytest.raises(TypeError):
        pool.set_limit(size=-1)


def test_limits_in_bytes_and_as_a_part_take_each_others_place(client):
    gpurest.cuda.set_per_process_memory_fraction(0.5)
    gpurest.cuda.set_memory_limit(1 << 30, "cpu")
    assert gpurest.cuda.memory_stats("cpu")["limit_bytes"] in (None, 1 << 30)  # there is no session on it yet
    with cp.cuda.Device("cpu"):
        cp.zeros(3).get()
        assert cp.get_default_memory_pool().get_limit() == 1 << 30
        gpurest.cuda.set_memory_limit(None, "cpu")
        assert cp.get_default_memory_pool().get_limit() == 0


def test_allocators_say_whether_memory_is_kept():
    pool = cp.cuda.MemoryPool()
    cp.cuda.set_allocator(pool.malloc)
    assert cp.cuda.get_allocator() == pool.malloc
    with cp.cuda.using_allocator(None):
        x = cp.zeros(1 << 20, "f4")
        x.get()
        del x
        assert cp.get_default_memory_pool().used_bytes() < 1 << 20 and cp.get_default_memory_pool().free_bytes() < 1 << 20
    assert cp.cuda.get_allocator() == pool.malloc
    for wrong in (lambda: cp.cuda.set_allocator(print), lambda: pool.malloc(5), lambda: cp.cuda.MemoryPool(print)):
        with pytest.raises(NotImplementedError):
            wrong()


def test_pinned_memory_is_memory():
    pool = cp.cuda.PinnedMemoryPool()
    cp.cuda.set_pinned_memory_allocator(pool.malloc)
    a = np.arange(5, dtype="f4")
    held = np.frombuffer(cp.cuda.alloc_pinned_memory(a.nbytes), a.dtype, a.size)
    held[...] = a
    np.testing.assert_array_equal(cp.asarray(held).get(), a)
    assert pool.n_free_blocks() == 0 and cp.get_default_pinned_memory_pool().malloc(8).size() == 8
    pool.free_all_blocks()
    with pytest.raises(NotImplementedError):
        cp.cuda.set_pinned_memory_allocator(print)


# ---- ranges and times ----

def test_ranges_are_logged(caplog):
    with caplog.at_level(logging.DEBUG, "gpurest.nvtx"):
        cp.cuda.nvtx.RangePush("outer")
        cp.cuda.nvtx.Mark("here")
        cp.cuda.nvtx.RangePop()
    assert [one.message.partition(":")[0] for one in caplog.records] == ["here", "outer"] and caplog.records[1].message.endswith(" ms")
    with pytest.raises(RuntimeError):
        cp.cuda.nvtx.RangePop()


def test_times_by_kernel_are_printed(capsys):
    with cp.cuda.profile():
        cp.RawKernel(TWICE, "twice")((1,), (32,), (cp.zeros(32, "f4"),))
    assert re.search(r"^twice +1 ", capsys.readouterr().out, re.M)
    cp.cuda.profiler.start()
    cp.cuda.profiler.stop()
