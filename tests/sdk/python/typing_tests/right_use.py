"""Code of users, with the types that checkers must find. Checked, never run."""
import array
from typing import Any, Dict, List, Optional, Tuple

import gpurest
from typing_extensions import assert_type


def buffers(gpu: gpurest.Client) -> None:
    with gpu.session(memory_limit="1GiB") as session:
        assert_type(session, gpurest.Session)
        with session.buffer(array.array("f", [1.0])) as x:
            assert_type(x, gpurest.Buffer)
            assert_type(x.shape, Tuple[int, ...])
            out = bytearray(4)
            assert_type(x.get(out), bytearray)
            assert_type(x.get(), Any)
            assert_type(x.read(0, 4), bytearray)
            x.write(b"abcd", offset=0)


def kernels(session: gpurest.Session, source: str) -> None:
    kernel = session.RawKernel(source, "saxpy")
    x = session.empty(1000, "f4")
    assert_type(kernel((4,), (256,), (2.0, x, x, 1000)), gpurest.Launch)
    assert_type(kernel[gpurest.blocks(1000, 256), 256](2.0, x, x, 1000), gpurest.Launch)
    assert_type(kernel.for_n(1000)(2.0, x, x, 1000), gpurest.Launch)
    assert_type(kernel.kernel, gpurest.Kernel)
    assert_type(session.module(source)["saxpy"].registers, int)
    assert_type(kernel((4,), None, ()).gpu_us, Optional[float])


def batches(session: gpurest.Session) -> None:
    with session.batch(timeout_ms=100) as batch:
        assert_type(batch, gpurest.Batch)
        later = session.empty(8, "f4").get_async()
        first, second = batch.record(), batch.record()
    assert_type(later.result(1.0), Any)
    assert_type(second - first, float)
    assert_type(batch.times, Dict[str, float])


def run(gpu: gpurest.Client, source: str) -> None:
    found = gpu.run(source, "f", [gpurest.In(b"1234"), gpurest.i32(1)], n=4)
    assert_type(found, gpurest.RunResult)
    assert_type(found.times, gpurest.Times)
    assert_type(found.log, str)
    assert_type(gpu.devices(), List[Dict[str, Any]])


def arrays() -> None:
    x = gpurest.asarray([1.0, 2.0], dtype="f4")
    assert_type(x, gpurest.ndarray)
    assert_type(x * 2 + x, gpurest.ndarray)
    assert_type(2 - x, gpurest.ndarray)
    assert_type(x @ x, gpurest.ndarray)
    assert_type(x[1:], gpurest.ndarray)
    assert_type(x.sum(axis=0, keepdims=True), gpurest.ndarray)
    assert_type(gpurest.sqrt(x), gpurest.ndarray)
    assert_type(gpurest.where(x > 0, x, 0.0), gpurest.ndarray)
    assert_type(gpurest.sort(x), gpurest.ndarray)
    assert_type(gpurest.einsum("i,i->", x, x), gpurest.ndarray)
    assert_type(x.get(out=bytearray(8)), bytearray)
    assert_type(x.item(), Any)
    assert_type(gpurest.allclose(x, x), bool)
    assert_type(x.shape, Tuple[int, ...])
    x += 1
    x[0] = 3


def failures(session: gpurest.Session) -> None:
    try:
        session.module("?")
    except gpurest.errors.CompileError as error:
        assert_type(error.log, str)
        assert_type(error.line, Optional[int])
    except gpurest.errors.GpurestError as error:
        assert_type(error.retryable, bool)


def programs(session: gpurest.Session, gpu: gpurest.Client, kernel: gpurest.Kernel) -> None:
    with session.program("name", timeout_ms=100) as program:
        x = program.input("x", shape=(2, 3), dtype="f4")
        kernel(1, 1, (x, program.scalar("a", 1.0)))
        program.output("x", x)
    assert_type(x, gpurest.Buffer)
    assert_type(program.run({"x": b"1234"}, a=2, out={"x": bytearray(24)}), gpurest.RunResult)
    assert_type(program.run_background(a=2), "gpurest.BatchJob[gpurest.RunResult]")
    assert_type(gpu.run_background("", "f").result(1.0), gpurest.RunResult)
    with session.batch() as batch:
        assert_type(batch.submit_background().result(), gpurest.Batch)


def devices(kernel: gpurest.RawKernel, low: gpurest.cuda.LowMemory) -> None:
    with gpurest.cuda.device(1) as chosen:
        assert_type(chosen.id, int)
    gpurest.cuda.set_device("cuda:1")
    assert_type(gpurest.cuda.get_device_properties().total_memory, int)
    assert_type(gpurest.cuda.memory_stats(0), Dict[str, Any])
    assert_type(gpurest.cuda.on_low_memory(lambda told: told.left > 0), gpurest.cuda.LowMemoryHandle)
    assert_type(gpurest.cuda.Fence(gpurest.cuda.Stream()).wait(1.0), gpurest.cuda.Fence)
    assert_type(gpurest.cuda.Event(enable_timing=True).elapsed_time(gpurest.cuda.Event()), float)
    assert_type(gpurest.cuda.profiler.stop()[0].calls, int)
    assert_type(low.requested, Optional[int])
    assert_type(gpurest.asarray([1.0], device="cuda:1").to_device(0), gpurest.ndarray)
    assert_type(gpurest.autotune(kernel, (), 1000), int)
    tuned = gpurest.autotune(kernel, key=["n"], configs=[gpurest.Config(warps=4, constants={"TILE": 2})], prune=lambda configs, args: configs[:1])
    assert_type(tuned, gpurest.Tuned)
    assert_type(tuned[lambda config: (4, 4)](1.0), gpurest.Launch)


async def coroutines(source: str) -> None:
    async with gpurest.AsyncClient("http://127.0.0.1:8080") as gpu:
        async with gpu.session() as session:
            x = await session.buffer(b"1234")
            assert_type(await x.read(), bytearray)
            async with session.program() as program:
                program.output("x", program.input("x", b"1234"))
            assert_type(await program.run(), gpurest.RunResult)
            assert_type(await (await program.run_background()), gpurest.RunResult)
        assert_type(await gpu.run(source, "f"), gpurest.RunResult)
