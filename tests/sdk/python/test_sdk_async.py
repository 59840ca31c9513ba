"""The asyncio client against a real service."""
import array
import asyncio

import pytest

import gpurest
from gpurest import errors
from sources import FAULTS, SAXPY


def floats(*values):
    return array.array("f", values)


async def test_looking_and_running(any_agpu):
    y = floats(*[1] * 8)
    out, devices, version, ready = await asyncio.gather(
        any_agpu.run(SAXPY, "saxpy", [2.0, gpurest.In(floats(*range(8))), gpurest.InOut(y), 8], n=8), any_agpu.devices(), any_agpu.version(), any_agpu.is_ready())
    assert list(out.y) == [2.0 * i + 1 for i in range(8)] and devices[0]["id"] == "cpu:0" and version["server"] == "gpurestd" and ready
    assert (await any_agpu.limits())["batch_ops"]["max"] == 4096


async def test_buffers_and_kernels(any_agpu):
    async with any_agpu.session(memory_limit="1GiB") as session:
        x, y = await session.buffer(floats(*range(100))), await session.empty(100, "f4")
        await y.write(floats(*[1] * 100))
        kernel = (await session.module(SAXPY))["saxpy"]
        launch = await kernel(1, 128, (2.0, x, y, 100))
        assert launch.state == "succeeded" and launch.gpu_us > 0
        untimed = await kernel[1, 128](2.0, x, y, 100, timing=False)
        assert untimed.state == "succeeded" and untimed.gpu_us is None
        await kernel.for_n(100)(2.0, x, y, 100)
        later = await kernel(1, 128, (2.0, x, y, 100), wait=False)
        await later.wait()
        assert list(await y.get()) == [8.0 * i + 1 for i in range(100)] and bytes(await x.read(4, 4)) == floats(1).tobytes()
        await asyncio.gather(*(y.write(floats(i), 4 * i) for i in range(100)))
        assert list(await y.get()) == list(range(100))
        await x.free()
        await y.free()
        with pytest.raises(errors.ClosedError):
            await x.read()
        assert (await session.info())["usage"]["memory_bytes"] == 0


async def test_a_batch_is_one_request(agpu, asession):
    kernel = (await asession.module(SAXPY))["saxpy"]
    before = agpu.requests_sent
    async with asession.batch() as batch:
        x = await asession.buffer(floats(1, 2, 3))
        launched = await kernel(1, 32, (2.0, x, x, 3))
        got = x.get_async()
    assert agpu.requests_sent == before + 1 and batch.submitted
    assert list(got.result()) == [3, 6, 9] and launched.gpu_us >= 0 and (await launched.wait()).state == "succeeded" and list(await x.get()) == [3, 6, 9]
    with pytest.raises(errors.ValidationError):
        async with asession.batch():
            await kernel(1, 100000, (2.0, x, x, 3))
            failed = x.get_async()
    assert isinstance(failed.exception(), errors.AbortedError)


async def test_tasks_do_not_record_into_each_others_batches(asession):
    kernel = (await asession.module(SAXPY))["saxpy"]

    async def one(number):
        async with asession.batch() as batch:
            x = await asession.buffer(floats(number, number))
            await asyncio.sleep(0)
            await kernel(1, 32, (1.0, x, x, 2))
            await asyncio.sleep(0)
            got = x.get_async()
        assert len(batch) == 3
        return list(got.result())

    assert await asyncio.gather(*(one(i) for i in range(10))) == [[2.0 * i] * 2 for i in range(10)]


async def test_faults_and_reset(asession):
    x = await asession.empty(1, "i4")
    kernel = (await asession.module(FAULTS))["illegal"]
    with pytest.raises(errors.IllegalAddressError) as caught:
        await kernel(1, 1, (x,))
    assert caught.value.kernel == "illegal"
    with pytest.raises(errors.SessionLostError):
        await x.read()
    await asession.reset()
    with pytest.raises(errors.SessionLostError, match="reset"):
        await x.read()
    assert bytes(await (await asession.buffer(b"new")).read()) == b"new"


async def test_a_cancelled_launch_says_so(asession):
    kernel = (await asession.module(FAULTS))["endless"]
    x = await asession.buffer(b"\0" * 4)
    first = await kernel(1, 1, (x,), timeout_ms=600_000, wait=False)
    behind = await kernel(1, 1, (x,), timeout_ms=600_000, wait=False)
    await behind.cancel()
    with pytest.raises(errors.GpurestError, match="was cancelled") as caught:
        await behind.wait()
    assert (caught.value.code, behind.state, behind.info["id"]) == ("cancelled", "cancelled", behind.id)
    await asession.reset()
    with pytest.raises(errors.GpurestError):
        await first.wait()


async def test_a_running_launch_is_cancelled_with_its_session(asession):
    kernel = (await asession.module(FAULTS))["endless"]
    x = await asession.buffer(b"\0" * 4)
    first = await kernel(1, 1, (x,), timeout_ms=600_000, wait=False)
    behind = await kernel(1, 1, (x,), timeout_ms=600_000, wait=False)
    while first.state != "running":  # a queued one is cancelled by itself
        await asession._drive(first._asking(1))
    await first.cancel(force=True)
    with pytest.raises(errors.GpurestError, match="cancelled, and its session was reset") as caught:
        await first.wait()
    assert (caught.value.code, first.state, asession.generation) == ("cancelled", "cancelled", 2)
    for lost in (behind.wait, x.read):
        with pytest.raises(errors.SessionLostError, match="the session was reset since it was made"):
            await lost()


async def test_a_cancelled_task_leaves_the_client_usable(agpu, asession):
    kernel = (await asession.module(FAULTS))["endless"]
    x = await asession.buffer(b"\0" * 4)
    task = asyncio.ensure_future(kernel(1, 1, (x,), timeout_ms=600_000))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await agpu.devices())[0]["id"] == "cpu:0"


@pytest.mark.parametrize("pause", [0, 0.002, 0.02])
async def test_a_cancelled_upload_leaves_nothing(asession, pause):
    for size in (1000, 8 << 20):
        task = asyncio.ensure_future(asession.buffer(bytes(size)))
        await asyncio.sleep(pause)
        task.cancel()
        try:
            await (await task).free()  # it was faster
        except asyncio.CancelledError:
            pass
    deadline = asyncio.get_running_loop().time() + 60
    while (await asession.info())["usage"]["memory_bytes"]:
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.05)
        await asession.free_unused()


async def test_what_nobody_refers_to_goes_with_a_later_request(asession):
    for _ in range(3):
        await asession.buffer(b"x" * 100)
    await asession.buffer(b"y")
    await asession.free_unused()
    assert (await asession.info())["usage"]["memory_bytes"] == 0


@pytest.mark.parametrize("wrong", [lambda s: s.buffer(), lambda s: s.buffer(5), lambda s: s.buffer([1]), lambda s: s.empty(0)])
async def test_wrong_use(asession, wrong):
    with pytest.raises(errors.ArgumentError):
        await wrong(asession)
