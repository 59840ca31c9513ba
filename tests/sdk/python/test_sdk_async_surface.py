"""Both clients have the same names; exceptions are listed here with their reasons. Also arrays and shared memory of the asyncio client."""
import asyncio
import gc
import inspect
import os

import pytest

import gpurest
from gpurest import aio, errors, testing
from gpurest._session import kernel, launch, module, pipeline, shared

NO_DEFAULT = "an asyncio client has no default session: making it would be a request of its own"
NO_STREAMS = "streams order what threads submit; tasks await what they need, and batches order the rest"
# class -> (the blocking one, its additional names, the asyncio one's additional names)
PAIRS = {
    aio.AsyncClient: (gpurest.Client, {name: NO_DEFAULT for name in ("batch", "buffer", "default_session", "dispatch", "empty", "kernel", "module", "fence", "wait", "glsl",
                                                                             "load_spirv", "create_pipeline")}
                      | {"stream": NO_STREAMS, "event": NO_STREAMS}, {}),
    aio.AsyncSession: (gpurest.Session, {"stream": NO_STREAMS, "event": NO_STREAMS, "RawKernel": "compiles at the first launch, which a call cannot await twice",
                                         "RawModule": "the same",
                                         "memory_pool": "CuPy's verbs, which block; memory() and trim() are there"},
                       {"asarray": "gpurest.asarray(session=…) would block on long uploads", "fetch": "gpurest.fetch()", "flush": "gpurest.flush()"}),
    aio.AsyncBuffer: (gpurest.Buffer, {"set": "CuPy's name for write()", "view": "shares the finalizer's state with blocking objects", "kind": "of messages"},
                      {"aget": "the name that arrays have"}),
    aio.AsyncModule: (module.Module, {"code": "not asked for yet", "freed": "the same", "kind": "of messages"}, {}),
    aio.AsyncKernel: (kernel.Kernel, {"max_threads": "figures of the blocking object", "registers": "the same"}, {}),
    aio.AsyncPipeline: (pipeline.Pipeline, {}, {}),
    aio.AsyncFence: (pipeline.Fence, {"done": "wait() and launch.state"}, {}),
    aio.AsyncBuiltinKernel: (gpurest.BuiltinKernel, {}, {}),
    aio.AsyncLaunch: (launch.Launch, {"done": "wait() and state", "exception": "the same", "result": "the same"}, {}),
    aio.AsyncBatch: (gpurest.Batch, {}, {"asubmit": "submit() would block", "asubmit_background": "the same"}),
    aio.AsyncBatchJob: (gpurest.BatchJob, {"exception": "awaiting raises it"}, {}),
    aio.AsyncWarmJob: (gpurest.WarmJob, {}, {}),
    aio.AsyncProgram: (gpurest.Program, {}, {}),
    aio.AsyncSharedMemory: (shared.SharedMemory, {}, {}),
}


def names(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize("kind", PAIRS, ids=lambda kind: kind.__name__)
def test_both_clients_have_the_same_names(kind):
    blocking, only_blocking, only_async = PAIRS[kind]
    instance = {"session", "memory_pool", "device", "generation", "id", "client", "nbytes", "info", "name", "log", "module", "kernels", "buffer"}  # attributes of instances
    assert names(blocking) - names(kind) - instance == set(only_blocking) - instance
    assert names(kind) - names(blocking) - instance == set(only_async) - instance


# Parameters that only the blocking client has.
NO_PARAMETER = {"stream": NO_STREAMS, "timeout": "asyncio.wait_for() bounds what is awaited", "progress": "bars are drawn by who blocks a terminal",
                "connections": "long transfers go over one connection each; gather() several", "ops_max": "a batch is one request: a second one would block",
                "payload_max": "the same", "lease_s": NO_DEFAULT}


@pytest.mark.parametrize("kind", PAIRS, ids=lambda kind: kind.__name__)
def test_both_clients_names_take_the_same(kind):
    blocking = PAIRS[kind][0]
    for name in (names(kind) & names(blocking)) | {"__call__"} | ({"__init__"} if kind is aio.AsyncClient else set()):
        both = [getattr(one, name, None) for one in (blocking, kind)]
        if all(inspect.isfunction(one) for one in both):
            theirs, ours = (set(inspect.signature(one).parameters) for one in both)
            assert theirs - ours <= set(NO_PARAMETER) and not ours - theirs, name


@pytest.fixture(scope="module")
def sharing():
    if testing.find_executable() is None:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    with testing.server("--local-sharing", "--local-sharing-mib", "64") as one:
        yield one


async def test_arrays_of_an_asyncio_session(sharing):
    numpy = pytest.importorskip("numpy")
    async with aio.AsyncClient(sharing.url) as gpu, gpu.session() as session:
        before = gpu.requests_sent
        x = await session.asarray(numpy.arange(1000.0))
        y = gpurest.ones(1000, session=session)
        assert gpu.requests_sent == before  # queued
        total, again = await asyncio.gather((x * 2 + y).sum().aget(), session.fetch(x[:3], y.sum()))
        assert float(total) == 1_000_000 and again[0].tolist() == [0, 1, 2] and float(again[1]) == 1000
        assert gpu.requests_sent - before <= 3
        assert "test_sdk_async_surface.py" in (await session.asarray([1.0]) + 1).explain()
        long = await session.asarray(numpy.zeros(5 << 20))  # a separate transfer
        assert float(await (long + 1).sum().aget()) == 5 << 20
        await session.flush()
        await session.reset()
        with pytest.raises(errors.SessionLostError):
            await x.aget()
        assert (await (await session.asarray([1, 2], "i4") * 2).aget()).tolist() == [2, 4]
    with pytest.raises(errors.ClosedError):
        await session.asarray([1.0])


async def test_an_asyncio_session_looks_and_fills_as_the_blocking_one(sharing):
    async with aio.AsyncClient(sharing.url) as gpu, gpu.session() as session:
        assert gpu.url == sharing.url and not gpu.closed and await gpu.is_live()
        assert (await gpu.device("cpu:0"))["id"] == "cpu:0"
        assert session.id in [one["id"] async for one in gpu.sessions()]
        assert (await gpu.request("GET", "/v1/limits")).status == 200
        x, y = await session.zeros(4, "i4"), await session.empty(4, "i4")
        await y.fill(7)
        await x.copy_from(y, offset=4, size=8)
        assert list(memoryview(await x.read()).cast("i")) == [0, 7, 7, 0]
        assert (await x.compare(y, offset=4, size=8))["equal"] and (await x.compare(y))["first_difference"] == 0
        assert x.size == 4 and x.dtype_str == "<i4" and not x.freed
        module = await session.module('extern "C" __global__ void k() {}')
        await module.kernel("k")(1, 1)
        assert [one["id"] for one in await session.modules()] == [module.id]
        await module.kernel("k").for_n(5, shared_bytes=64)()
        assert len(await session.buffers()) == 2 and len(await session.launches()) == 2
        assert (await session.trim())["allocated_bytes"] >= 32
        assert (await session.update(memory_limit=1 << 20))["memory_limit"] == 1 << 20
        told = await session.reset_peak()
        assert told["peak_bytes"] == told["allocated_bytes"] and told["limit_bytes"] == 1 << 20
        assert (await x.get(out := bytearray(16))) is out and list(memoryview(out).cast("i")) == [0, 7, 7, 0]
        total = await session.builtin("reduce_sum", "i4")
        assert (await total(x, await session.empty(1, "i8"), 4)).state == "succeeded"
        with pytest.raises(errors.ArgumentError):
            await total(x, 4)
        with pytest.raises(errors.ArgumentError):
            await session.builtin("exp", "i4")
        with pytest.raises(errors.ArgumentError):
            module.kernel("k").for_n(0)
        with pytest.raises(errors.ArgumentError):
            await module.kernel("k")(1, 1, (), casting="any")
        async with session.batch():
            await y.fill(1)
            await x.copy_from(y)
        assert list(memoryview(await x.read()).cast("i")) == [1, 1, 1, 1]
        with pytest.raises(errors.ArgumentError, match="no whole number of float32"):
            await session.buffer(size=5, dtype="f4")
        with pytest.raises(errors.GpurestError):
            await y.share()  # over TCP


def test_shared_memory_of_an_asyncio_session(sharing):
    before = len(os.listdir("/proc/self/fd"))

    async def main():
        content = os.urandom(1_000_003)
        async with aio.AsyncClient(sharing.unix_url) as gpu, gpu.session() as session:
            buffer = await session.buffer(size=len(content))
            async with await buffer.share() as shared:
                shared.data[:] = content
                await shared.to_device()
                assert await buffer.read() == content
                await buffer.fill(5)
                await shared.from_device(offset=10, size=20)
                assert bytes(shared.data) == content[:10] + b"\5" * 20 + content[30:]
                with pytest.raises(errors.ArgumentError):
                    await shared.to_device(offset=len(content), size=1)
            with pytest.raises(errors.ClosedError):
                await shared.to_device()
            await shared.close()
            await buffer.free()
            with pytest.raises(errors.ClosedError):
                await buffer.share()
            own = await session.buffer(size=4096, shareable=True)
            async with await own.share() as shared:
                shared.data[:4] = b"both"
                assert (await own.read())[:4] == b"both"  # it is the buffer itself: nothing was copied
            with pytest.raises(errors.ArgumentError):
                await session.buffer(b"data", shareable=True)
    asyncio.run(asyncio.wait_for(main(), 120))  # descriptors are closed with its loop
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
