"""gpurest.cuda against a real service on the cpu device: devices, compiled kernels, times. test_sdk_cuda_memory.py and test_sdk_cuda_order.py have the
rest of its names; test_sdk_cuda_devices.py has a service with several devices."""
import array
import asyncio
import io
import subprocess
import sys
import threading

import pytest

import gpurest
from conftest import ROOT
from gpurest import cuda, errors
from gpurest._session.default import chosen_device
from gpurest.cuda import profiler
from sources import FAULTS, SAXPY

WAIT_S = 60
DEADLINE_MS = 600_000  # of endless kernels: longer than any test


def floats(*values):
    return array.array("f", values)


def saxpy():
    return gpurest.RawKernel(SAXPY, "saxpy")


# ---- devices ----

def test_devices_and_their_properties(gpu):
    assert cuda.is_available() and cuda.device_count() == len(gpu.devices()) == 1
    found, told = cuda.get_device_properties(0), gpu.device("cpu:0")
    assert (found.name, found.id, found.backend, found.uuid) == (told["name"], "cpu:0", "cpu", told["uuid"])
    assert found.total_memory == told["memory"]["total_bytes"] > 0 and found.multi_processor_count == told["multiprocessors"]
    assert found.warp_size == 32 and found.max_threads_per_block == 1024 and found.shared_memory_per_block == told["max_shared_bytes_per_block"]
    assert found.max_threads_per_multi_processor == told["attributes"]["max_threads_per_multiprocessor"] and found.L2_cache_size == told["l2_cache_bytes"]
    assert f"{found.major}.{found.minor}" == told["compute_capability"] and cuda.get_device_capability("cpu:0") == (found.major, found.minor)
    assert cuda.get_device_name(cuda.Device(0)) == found.name and found.attributes == told["attributes"] and found.state == "healthy"
    free, total = cuda.mem_get_info(0)
    assert 0 < free <= total == found.total_memory
    assert list(gpu.sessions()) == []  # all of that needs none


def test_without_a_service_there_is_no_device():
    with gpurest.connect("http://127.0.0.1:9", retries=0) as nobody:
        gpurest.set_default(nobody)
        try:
            assert not cuda.is_available() and cuda.device_count() == 0
            with pytest.raises(errors.ConnectionError_):
                cuda.get_device_name(0)
        finally:
            gpurest.set_default(None)


def test_the_current_device(gpu):
    assert cuda.current_device() == 0  # that of the default session, which is made for it
    first = gpu.default_session
    for same in (0, "cpu:0", "cpu", cuda.Device(0), None):
        cuda.set_device(same)
        assert cuda.current_device() == 0 and gpu.default_session is first is gpurest.default_session()
    for wrong in (1, -1, "cuda:0", "gpu"):
        with pytest.raises(errors.ArgumentError, match="the service has 0: cpu:0"):
            cuda.set_device(wrong)
    for wrong in (1.0, True, b"cpu:0"):
        with pytest.raises(errors.ArgumentError, match="a device is"):
            cuda.set_device(wrong)


def test_a_device_as_an_object(gpu):
    one = cuda.Device(0)
    assert one.id == int(one) == 0 and one.name == "cpu:0" and one == cuda.device("cpu:0") and hash(one) == hash(cuda.Device("cpu")) and "cpu:0" in repr(one)
    assert one != 0 and one.compute_capability == "75" and one.attributes["warp_size"] == 32 and one.mem_info[1] > 0
    assert cuda.Device().name == gpu.default_session.device
    one.use()
    one.synchronize()
    with one, one, cuda.device(None):
        assert cuda.current_device() == 0


def test_choices_are_those_of_a_thread_or_task(gpu):
    """With one device the choice itself is looked at."""
    seen = []
    with cuda.device(0):
        assert chosen_device(gpu) == "cpu:0"
        thread = threading.Thread(target=lambda: seen.append(chosen_device(gpu)))
        thread.start()
        thread.join(WAIT_S)
        cuda.set_device(None)
        assert chosen_device(gpu) is None
        cuda.set_device(0)
    assert seen == [None] and chosen_device(gpu) is None

    async def task(device, there, both):
        with cuda.device(device):
            there.set()
            await both.wait()
            return chosen_device(gpu)

    async def main():
        left, right, both = asyncio.Event(), asyncio.Event(), asyncio.Event()
        tasks = [asyncio.ensure_future(task(0, left, both)), asyncio.ensure_future(task(None, right, both))]
        await left.wait()
        await right.wait()
        both.set()
        return await asyncio.gather(*tasks)
    assert asyncio.run(asyncio.wait_for(main(), WAIT_S)) == ["cpu:0", None]


def test_only_the_default_client_follows_the_choice(gpu, service):
    cuda.set_device(0)
    with gpurest.connect(service.url) as other:
        assert chosen_device(other) is None and other.default_session is not gpu.default_session


def test_sessions_are_found_again(gpu):
    chosen = cuda.Device(0)
    with chosen:
        placed = gpurest.default_session()
        assert gpu.session().device == "cpu:0"
    assert gpurest.default_session() is placed is gpu.default_session  # the service's choice is the same device
    placed.close()
    with chosen:
        again = gpurest.default_session()
        assert again is not placed and not again.closed
    from gpurest import core
    assert core.Device(0).session is again


def test_asarray_on_a_device(gpu):
    x = gpurest.asarray([1.0, 2.0], dtype="f4", device=0)
    assert x.device == "cpu:0" and x.session is gpu.default_session and gpurest.asarray(x, device="cpu:0") is x is x.to_device("cpu")
    made = [gpurest.zeros(2, device="cpu:0"), gpurest.ones(2, "f4", device=0), gpurest.full(2, 7, device=0), gpurest.full(2, x, device=0), gpurest.arange(2, device=0),
            gpurest.linspace(0, 1, 2, device=0), gpurest.eye(2, device=0)[0], gpurest.identity(2, device=0)[0], gpurest.empty(2, device=0),
            gpurest.array([3, 4], device=0), gpurest.frombuffer(b"\1\2", "u1", device=0)]
    assert [one.tolist() for one in made[:8]] == [[0, 0], [1, 1], [7, 7], [1, 2], [0, 1], [0, 1], [1, 0], [1, 0]]
    assert made[9].tolist() == [3, 4] and made[10].tolist() == [1, 2] and all(one.session is x.session for one in made)
    with gpu.session() as other:
        copied = gpurest.asarray(gpurest.asarray([5.0], session=other), device=0)
        assert copied.session is x.session and copied.tolist() == [5]
        with pytest.raises(errors.ArgumentError, match="session= or device="):
            gpurest.asarray([1.0], session=other, device=0)
        with pytest.raises(errors.ArgumentError, match=f"float32 of shape \\(2,\\) is in session {x.session.id} on cpu:0 \\(the default one\\), float64 of shape \\(1,\\) is in session {other.id} on cpu:0"):
            x + gpurest.asarray([1.0], session=other)
    for wrong in (1, "cuda:0"):
        with pytest.raises(errors.ArgumentError, match="there is no device"):
            gpurest.asarray([1.0], device=wrong)


def test_synchronize(gpu):
    cuda.synchronize()
    assert list(gpu.sessions()) == []  # nothing to wait for, nothing made
    x, y = gpurest.ones(1000, "f4"), gpurest.zeros(1000, "f4")
    launch = saxpy()((4,), (256,), (2.0, x, y, 1000), wait=False)
    z = gpurest.asarray([1.0]) + 1
    before = gpu.requests_sent
    cuda.synchronize(0)
    assert launch.done() and launch.state == "succeeded" and z.explain() and gpu.requests_sent > before
    gpurest.default_session().module(FAULTS)["trap"](1, 1, (), wait=False)
    with pytest.raises(errors.CudaError):
        cuda.synchronize()


# ---- compiled kernels ----

def test_kernels_are_forgotten_and_come_again(cached_gpu):
    cuda.clear_kernel_cache()
    assert list(cached_gpu.sessions()) == []
    session = cached_gpu.default_session
    x, y = gpurest.ones(4, "f4"), gpurest.zeros(4, "f4")
    kernel, held = saxpy(), session.module('extern "C" __global__ void held(int *x) { *x = 1; }')["held"]
    kernel(1, 4, (2.0, x, y, 4))
    assert (x + y).tolist() == [3, 3, 3, 3] and len(session.modules()) >= 3
    cuda.clear_kernel_cache()
    assert [one["id"] for one in session.modules()] == [held.module.id]  # the program still has it
    held(1, 1, (session.empty(1, "i4"),))
    kernel(1, 4, (2.0, x, y, 4))
    assert (x + y).tolist() == [5, 5, 5, 5]


def test_the_services_cache_is_emptied_too(cached_gpu):
    source = 'extern "C" __global__ void once(int *x) { *x = 7; }'
    assert cuda.warm_up_kernels([gpurest.RawKernel(source, "once")]) == 1
    with cached_gpu.session() as session:
        assert session.module(source).cached
    cached_gpu.default_session.close()
    assert cached_gpu.cache()["entries"] >= 1
    cuda.clear_kernel_cache()
    with cached_gpu.session() as session:
        assert not session.module(source).cached


def test_kernels_are_compiled_ahead(gpu, tmp_path):
    source = 'extern "C" __global__ void ahead(int *x) { *x = 5; }'
    kernel = gpurest.RawKernel(source, "ahead")
    assert cuda.warm_up_kernels(["reduce_sum", "axpy", kernel, gpurest.RawModule(code=source + "\n")], dtypes=("f4", "i4")) == 6
    session = gpu.default_session
    assert session.launches() == session.programs() == session.buffers() == session.modules() == []  # nothing ran, nothing is left
    kernel(1, 1, (x := session.empty(1, "i4"),))
    assert list(x.get()) == [5] and kernel.kernel.module.cached
    ptx = tmp_path / "ahead.ptx"
    ptx.write_bytes(kernel.kernel.module.code("ptx"))
    assert cuda.warm_up_kernels([gpurest.RawModule(path=str(ptx))]) == 0  # nothing is to be compiled
    with pytest.raises(errors.NotFoundError):
        cuda.warm_up_kernels(["no_such_kernel"])
    with pytest.raises(errors.ValidationError, match="does not support"):
        cuda.warm_up_kernels(["exp"], dtypes=("i4",))
    with pytest.raises(errors.ArgumentError, match="a RawKernel"):
        cuda.warm_up_kernels([5])
    with pytest.raises(errors.CompileError):
        cuda.warm_up_kernels([gpurest.RawKernel("?", "f")])


def test_every_built_in_kernel_can_be_compiled_ahead(gpu):
    assert cuda.warm_up_kernels(dtypes=("f4",), device=0) == sum("f32" in one["dtypes"] for one in gpu.kernels())
    others = [one["name"] for one in gpu.kernels() if "f32" not in one["dtypes"]]
    assert all(cuda.warm_up_kernels([name], dtypes=(next(iter(gpu._kernel_info(name)["dtypes"])),)) == 1 for name in others)


# ---- profiling ----

def test_times_by_kernel(gpu):
    session, kernel = gpu.default_session, saxpy()
    x, y = session.buffer(floats(*range(100))), session.zeros(100, "f4")
    run = 'extern "C" __global__ void once(float *x) { *x = 1; }'
    kernel(1, 128, (1.0, x, y, 100))
    out = io.StringIO()
    with profiler.profile(out=out) as seen:
        kernel(1, 128, (1.0, x, y, 100))
        later = kernel(1, 128, (1.0, x, y, 100), wait=False)
        with session.batch():
            kernel(1, 128, (1.0, x, y, 100))
            session.builtin("axpy", "f4")(2.0, x, y, 100)
        with session.program() as step:
            kernel(1, 128, (1.0, x, y, 100))
        step.run()
        step.run_background().result(WAIT_S)
        with session.batch() as batch:
            kernel(1, 128, (1.0, x, y, 100))
            job = batch.submit_background()
        job.wait(WAIT_S)
        gpu.run(run, "once", [gpurest.Out(1, "f4")], n=1)
        gpu.run_background(run, "once", [gpurest.Out(1, "f4")], n=1).result(WAIT_S)
        later.wait(WAIT_S)
        total = gpurest.asarray([1.0, 2.0]) * 3  # queued: sent at the block's end
    by_name = {one.name: one for one in seen.kernels}
    assert by_name["saxpy"].calls == 6 and by_name["axpy f32"].calls == 1 and by_name["once"].calls == 2 and seen.unfinished == 0
    arrays = next(one for name, one in by_name.items() if name not in ("saxpy", "axpy f32", "once"))
    assert len(by_name) == 4 and arrays.operations == "multiply" and total.tolist() == [3, 6] and by_name["saxpy"].operations == ""
    one = by_name["saxpy"]
    assert 0 < one.least_us <= one.mean_us <= one.most_us <= one.total_us and seen.seconds > 0
    lines = out.getvalue().splitlines()
    assert lines[0].split()[:2] == ["kernel", "calls"] and lines[-1].startswith("10 launches") and all(any(line.startswith(name) for line in lines) for name in ("saxpy ", "multiply "))
    kernel(1, 128, (1.0, x, y, 100))
    assert by_name["saxpy"].calls == 6 and gpu._transport.observers == []


def test_profiling_on_and_off(gpu, capsys):
    session, kernel = gpu.default_session, saxpy()
    x = session.zeros(8, "f4")
    with session.program("before") as step:
        kernel(1, 8, (1.0, x, x, 8))
    with pytest.raises(errors.GpurestError, match="not on"):
        profiler.stop()
    profiler.start()
    with pytest.raises(errors.GpurestError, match="already"):
        profiler.start()
    kernel(1, 8, (1.0, x, x, 8))
    step.run()  # made before: nobody knows its kernels' names
    found = profiler.stop()
    assert {one.name: one.calls for one in found} == {"saxpy": 1, "operation 0": 1}
    assert "saxpy" in capsys.readouterr().out
    profiler.start(gpu)
    assert profiler.stop(quiet=True) == [] and capsys.readouterr().out == ""
    assert profiler.KernelTime("none").mean_us == 0


def test_what_has_not_ended_is_told(gpu):
    session = gpu.default_session
    endless = session.module(FAULTS)["endless"]
    x = session.buffer(b"\0" * 4)
    with profiler.profile(quiet=True) as seen:
        launch = endless(1, 1, (x,), wait=False, timeout_ms=DEADLINE_MS)
        with session.batch() as batch:
            endless(1, 1, (x,))
            batch.submit_background()
    assert seen.unfinished == 2 and seen.kernels == [] and "2 launches had not ended" in str(seen)
    launch.cancel(force=True)


# ---- the module ----

def test_it_is_there_with_the_package_and_needs_no_numpy():
    code = ("import sys; sys.modules['numpy'] = None; import gpurest; assert gpurest.cuda.Event and 'asyncio' not in sys.modules; "
            "assert all(hasattr(gpurest.cuda, name) for name in gpurest.cuda.__all__)")
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT / "sdk" / "python"), "PATH": ""}, check=True, timeout=WAIT_S)


def test_every_name_says_what_it_does():
    named = [getattr(cuda, name) for name in cuda.__all__] + [getattr(profiler, name) for name in profiler.__all__]
    members = [member for one in named if isinstance(one, type) for name, member in vars(one).items() if not name.startswith("_") and
               (callable(member) or isinstance(member, property))]
    assert [one for one in named + members if not (getattr(one, "__doc__", None) or "").strip()] == []
