"""Batches in the background against a real service: followed, fetched, cancelled, lost; blocking and with asyncio.

Jobs that must stay queued are behind an endless kernel, so that nothing here depends on durations. While that kernel runs no buffer of
its session is filled or read: that would wait for it."""
import array
import asyncio
import concurrent.futures
import gc
import json
import threading
import time

import pytest

import gpurest
from conftest import memory_bytes
from fake_server import fake
from gpurest import errors, testing
from sources import FAULTS, MANY, SAXPY

DEADLINE_MS = 600_000  # deadline of endless kernels: longer than any test
WAIT_S = 60


def floats(*values):
    return array.array("f", values)


@pytest.fixture
def saxpy(session):
    return session.module(SAXPY)["saxpy"]


def queued(session, record, **more):
    with session.batch(**more) as batch:
        found = record()
        job = batch.submit_background()
    return job, found


def endless(session):
    """A job with a running kernel that only ends when stopped."""
    x = session.buffer(b"\0" * 4)
    job, _ = queued(session, lambda: session.module(FAULTS)["endless"](1, 1, (x,)), timeout_ms=DEADLINE_MS)
    deadline = time.monotonic() + WAIT_S
    while not job.done() and job.state != "running":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert job.state == "running"
    return job


# ---- results ----


def test_a_batch_in_the_background(session, saxpy):
    data = floats(*range(8))
    with session.batch() as batch:
        x = session.buffer(data)
        y = session.zeros(8, "f4")
        begun = batch.record()
        launched = saxpy(1, 32, (2.0, x, y, 8))
        ended = batch.record()
        got = y.get_async()
        session.buffer(size=100).fill(1)  # dropped at once
        job = batch.submit_background()
        data[0] = 99  # sent already
    assert batch.submitted and batch.requests == 1 and job.id.startswith("x_")
    assert list(got.result(WAIT_S)) == [2 * i for i in range(8)] and got.done()  # waits for the job
    assert job.done() and job.state == "succeeded" and job.wait() is job and job.result() is batch and job.exception() is None
    assert launched.result().gpu_us >= 0 and launched.state == "succeeded" and ended - begun >= 0
    assert list(y.get()) == [2 * i for i in range(8)] and batch.times["run_ms"] > 0
    assert job.info["started_at"] <= job.info["finished_at"] and job.cancel() is False and "succeeded" in repr(job)
    with pytest.raises(errors.NotFoundError):  # fetched, so dropped
        session.client.request("GET", f"/v1/sessions/{session.id}/batches/{job.id}")
    for again in (batch.submit, batch.submit_background):
        with pytest.raises(errors.ClosedError):
            again()


def test_they_are_done_in_order_and_fetched_in_any(session, saxpy):
    x, y = session.buffer(floats(1)), session.buffer(floats(0))
    jobs = [queued(session, lambda i=i: (saxpy(1, 1, (float(i), x, y, 1)), y.get_async())[1]) for i in range(10)]
    for i, (job, got) in reversed(list(enumerate(jobs))):
        assert job.wait(WAIT_S).state == "succeeded" and list(got.result()) == [sum(range(i + 1))]


def test_many_threads_wait_for_one(session, saxpy):
    x = session.buffer(floats(1, 2))
    blocker, seen = endless(session), []
    job, _ = queued(session, x.get_async)
    threads = [threading.Thread(target=lambda: seen.append(type(job.exception()))) for _ in range(4)]
    threads += [threading.Thread(target=lambda: seen.append(type(blocker.exception()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert job.cancel() is True and blocker.cancel(force=True) is True
    for thread in threads:
        thread.join(WAIT_S)
    assert seen == [errors.GpurestError] * 8
    x = session.buffer(floats(1, 2))
    job, got = queued(session, x.get_async)
    values = []
    threads = [threading.Thread(target=lambda: values.append(list(job.wait() and got.result()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert values == [[1, 2]] * 8


def test_a_buffer_that_is_named_lives_until_the_end(session, saxpy):
    before = memory_bytes(session)
    x = session.buffer(floats(3))
    view = session.buffer(floats(1, 2, 3)).view("i4")
    names = {x.id, view.id}
    blocker = endless(session)
    job, found = queued(session, lambda: (saxpy(1, 1, (1.0, x, x, 1)), x.get_async(), view.get_async()))
    del x, view
    gc.collect()
    session.free_unused()
    assert names <= {one["id"] for one in session.buffers()} and not session._has_left()
    assert job.cancel() is True
    del job, found
    gc.collect()
    assert session._has_left()
    blocker.cancel(force=True)
    assert memory_bytes(session) == before
    x = session.buffer(floats(3))
    job, got = queued(session, x.get_async)
    del x
    gc.collect()
    session.free_unused()
    assert list(got.result(WAIT_S)) == [3]
    del job, got
    gc.collect()
    session.free_unused()
    assert memory_bytes(session) == before


def test_buffers_that_are_made_are_usable_when_the_result_is_here(session):
    before = memory_bytes(session)
    with session.batch() as batch:
        kept, dropped = session.buffer(b"kept"), session.buffer(b"dropped")
        job = batch.submit_background()
    with pytest.raises(errors.GpurestError, match="has not run"):
        kept.read()
    del dropped
    gc.collect()
    job.result(WAIT_S)
    assert bytes(kept) == b"kept"
    session.free_unused()
    assert [one["id"] for one in session.buffers()] == [kept.id]
    kept.free()
    assert memory_bytes(session) == before


def test_run_in_the_background(gpu):
    x, y = floats(*range(8)), floats(*[1] * 8)
    job = gpu.run_background(SAXPY, "saxpy", [2.0, gpurest.In(x), gpurest.InOut(y), 8], n=8)
    x[0] = 5
    out = job.result(WAIT_S)
    assert out.y is y and list(y) == [2 * i + 1 for i in range(8)] and out.times.run_ms > 0
    assert gpu.run_background(MANY, "hello", [5], grid=1, block=1).result(WAIT_S).stdout == "hello 5\n"
    broken = gpu.run_background('extern "C" __global__ void f() { oops; }', "f", [], n=1)
    with pytest.raises(errors.CompileError) as caught:
        broken.result(WAIT_S)
    assert caught.value.line == 1 and "oops; }\n" in str(caught.value) and broken.state == "failed"  # with its line
    with pytest.raises(errors.CudaError):
        gpu.run_background(FAULTS, "trap", n=1).result(WAIT_S)
    with pytest.raises(errors.ArgumentError):
        gpu.run_background(SAXPY, "saxpy", [1], n=1)


def test_runs_of_a_program_in_the_background(session, saxpy):
    with session.program() as program:
        y = program.input("y", floats(1, 1))
        saxpy(1, 32, (program.scalar("a", 1.0), session.buffer(floats(1, 2)), y, 2))
        program.output("y", y)
    place = floats(0, 0)
    jobs = [program.run_background(a=float(i), y=[i, i]) for i in range(5)] + [program.run_background(out={"y": place})]
    program_name, program = program.name, None
    gc.collect()
    session.free_unused()  # the jobs hold it
    assert [list(job.result(WAIT_S).y) for job in jobs] == [[2 * i, 3 * i] for i in range(5)] + [[2, 3]] and list(place) == [2, 3]
    del jobs
    gc.collect()
    session.free_unused()
    assert session.programs() == [] and program_name


# ---- errors ----


def test_what_is_refused_at_once(session):
    with session.batch() as batch:
        with pytest.raises(errors.ArgumentError, match="empty"):
            batch.submit_background()
    with pytest.raises(errors.ValidationError):  # the service checks the form first
        with session.batch() as batch:
            made, got = session.empty(4), session.empty(4).get_async()
            batch._add({"op": "jump"})
            batch.submit_background()
    assert batch.submitted and isinstance(got.exception(), errors.AbortedError)
    with pytest.raises(errors.AbortedError):
        made.read()


def test_a_failure_is_located_and_aborts_the_rest(session, saxpy):
    x = session.buffer(floats(1, 1))
    with session.batch() as batch:
        first = x.get_async()
        second = saxpy(1, 100_000, (1.0, x, x, 2))
        made = session.empty(2)
        job = batch.submit_background()
    assert isinstance(first.exception(WAIT_S), errors.AbortedError)
    assert job.exception() is second.exception() and job.exception().op_index == 1 and "test_sdk_background.py" in str(job.exception())
    assert job.state == "failed" and job.info["problem"]["status"] == 422
    with pytest.raises(errors.ValidationError):
        job.result()
    with pytest.raises(errors.AbortedError):
        made.read()


def test_what_was_sent_before_a_barrier_failed(session, saxpy):
    x = session.buffer(floats(1, 1))
    with session.batch() as batch:
        saxpy(1, 100_000, (1.0, x, x, 2))
        batch.barrier()
        got = x.get_async()
        job = batch.submit_background()
    with pytest.raises(errors.ValidationError):
        job.result(WAIT_S)
    assert list(got.result()) == [1, 1]
    with session.batch(ops_max=1) as batch:
        saxpy(1, 100_000, (1.0, x, x, 2))
        x.fill(0)
        with pytest.raises(errors.ValidationError):
            batch.submit_background()
    assert list(x.get()) == [1, 1]


def test_results_outlive_a_fault_and_a_reset(gpu):
    with gpu.session() as session:
        module, x = session.module(FAULTS), session.buffer(b"1234")
        good, got = queued(session, x.get_async)
        made, kept = queued(session, lambda: session.buffer(b"5678"))
        bad, _ = queued(session, lambda: module["illegal"](1, 1, (x,)))
        with pytest.raises(errors.IllegalAddressError) as caught:
            bad.result(WAIT_S)
        assert caught.value.kernel == "illegal" and caught.value.queued_at.startswith("test_sdk_background.py:")
        with pytest.raises(errors.SessionLostError) as lost:
            x.read()
        assert lost.value.__cause__ is caught.value
        assert bytes(got.result(WAIT_S)) == b"1234" and good.state == "succeeded"
        with pytest.raises(errors.SessionLostError):
            session.batch().__enter__()
        session.reset()
        assert bytes(session.buffer(b"new")) == b"new"
        made.result(WAIT_S)
        with pytest.raises(errors.SessionLostError, match="reset"):
            kept.read()
        assert session._lost is None


def test_a_failure_of_a_former_generation_is_none_of_the_present_one(gpu):
    with gpu.session() as session:
        x = session.buffer(b"1234")
        bad, _ = queued(session, lambda: session.module(FAULTS)["illegal"](1, 1, (x,)))
        deadline = time.monotonic() + WAIT_S
        while session.info()["state"] != "faulted":  # it stays faulted
            assert time.monotonic() < deadline
            time.sleep(0.01)
        session.reset()
        with pytest.raises(errors.IllegalAddressError):
            bad.result(WAIT_S)
        assert bytes(session.buffer(b"new")) == b"new"


def test_cancelling(session):
    x = session.buffer(b"1234")
    blocker = endless(session)
    waiting, got = queued(session, x.get_async)
    behind, _ = queued(session, x.get_async)
    assert not waiting.done() and waiting.state == "queued" and not got.done()
    for wait, kind in ((waiting.wait, errors.TimeoutError_), (waiting.result, errors.TimeoutError_), (got.result, concurrent.futures.TimeoutError)):
        with pytest.raises(kind):
            wait(0.01)
    assert isinstance(waiting.exception(0.01), errors.TimeoutError_) and isinstance(waiting.exception(0.01), TimeoutError)
    assert waiting.cancel() is True and waiting.state == "cancelled" and waiting.cancel() is True
    with pytest.raises(errors.GpurestError, match="was cancelled") as caught:
        waiting.result()
    assert caught.value.code == "cancelled" and got.done() and got.exception().cause is caught.value
    with pytest.raises(errors.ConflictError) as caught:
        blocker.cancel()
    assert caught.value.code == "launch_running" and not blocker.done()
    assert blocker.cancel(force=True) is True
    assert blocker.exception(WAIT_S).code == "cancelled" and isinstance(behind.exception(WAIT_S), errors.GpurestError)
    assert session.generation == 2
    with pytest.raises(errors.SessionLostError, match="reset"):
        x.read()
    assert bytes(session.buffer(b"new")) == b"new"


def test_an_event_of_the_background_is_not_waited_for_unseen(session):
    x = session.buffer(b"1234")
    blocker = endless(session)
    with session.batch() as batch:
        x.fill(1)
        event = batch.record()
        job = batch.submit_background()
    with session.batch() as other:
        with pytest.raises(errors.GpurestError, match="in the background"):
            other.wait(event)
    assert not event.is_done and job.cancel()
    with pytest.raises(errors.AbortedError):
        event.sync()
    blocker.cancel(force=True)


def test_results_that_nobody_fetched_in_time():
    if testing.find_executable() is None:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    with testing.server("--result-ttl-s", "1") as service, gpurest.connect(service.url) as gpu:
        session = gpu.session()
        x = session.buffer(b"1234")
        late, got = queued(session, x.get_async)
        run = gpu.run_background(MANY, "hello", [5], n=1)
        deadline = time.monotonic() + WAIT_S
        for path in (f"/v1/sessions/{session.id}/batches/{late.id}", f"/v1/run/{run.id}"):
            with pytest.raises(errors.NotFoundError):
                while time.monotonic() < deadline:
                    gpu.request("GET", path)
        for job in (late, run):
            with pytest.raises(errors.NotFoundError, match="kept") as caught:
                job.result()
            assert caught.value.code == "batch_not_found" and job.state == "gone" and job.done() and job.cancel() is False
        assert isinstance(got.exception(), errors.AbortedError) and bytes(x) == b"1234"
        job, got = queued(session, x.get_async)
        gpu.request("DELETE", f"/v1/sessions/{session.id}")
        with pytest.raises(errors.SessionLostError) as caught:
            job.result()
        assert caught.value.reason == "deleted"
        with pytest.raises(errors.SessionLostError):
            x.read()


# ---- lost connections ----

JOB = {"id": "x_1", "state": "queued", "created_at": "2026-01-01T00:00:00Z"}


def test_a_broken_connection_sends_it_once_more_under_one_key():
    seen = []

    def script(peer):
        while (request := peer.request()) is not None:
            line, headers, _ = request
            seen.append((line.split()[0], headers.get("prefer"), headers.get("idempotency-key")))
            if len(seen) == 1:
                return  # the answer is lost
            if line.startswith("POST"):
                peer.answer(202, JOB)
            elif line.startswith("DELETE"):
                peer.answer(204)
            else:
                peer.answer(200, {**JOB, "state": "running"})

    with fake(script) as server, gpurest.connect(server.url) as gpu:
        job = gpu.run_background(SAXPY, "saxpy", [2.0, gpurest.In(b"1234"), gpurest.InOut(bytearray(4)), 1], n=1)
        assert [one[:2] for one in seen] == [("POST", "respond-async")] * 2 and seen[0][2] == seen[1][2] and seen[0][2].startswith('"')
        with pytest.raises(errors.TimeoutError_):
            job.wait(0)
        assert seen[2] == ("GET", None, None)
        with pytest.raises(errors.TimeoutError_):
            job.wait(0.5)
        assert {one[1] for one in seen if one[0] == "GET"} <= {None, "wait=1"}
        assert job.cancel() is False and job.state == "gone"  # it ended at the same moment
        with pytest.raises(errors.GpurestError, match="its result was dropped"):
            job.result()


def test_while_the_service_cannot_be_reached_nothing_is_decided():
    answers = []

    def script(peer):
        while (request := peer.request()) is not None:
            if request[0].startswith("POST"):
                peer.answer(202, JOB)
            elif answers:
                peer.answer(200, json.dumps(answers.pop()).encode())
            else:
                return

    with fake(script) as server, gpurest.connect(server.url, retries=0) as gpu:
        job = gpu.run_background(SAXPY, "saxpy", [2.0, gpurest.In(b"1234"), gpurest.InOut(bytearray(4)), 1], n=1)
        for _ in range(2):
            with pytest.raises(errors.ConnectionError_):
                job.result()
            assert job.state == "queued"
        answers.append({**JOB, "state": "cancelled"})
        assert job.exception().code == "cancelled"


# ---- asyncio ----


async def aqueued(session, record, **more):
    async with session.batch(**more) as batch:
        found = await record()
        job = await batch.asubmit_background()
    return job, found


async def aendless(session):
    kernel, x = (await session.module(FAULTS))["endless"], await session.buffer(b"\0" * 4)
    job, _ = await aqueued(session, lambda: kernel(1, 1, (x,)), timeout_ms=DEADLINE_MS)
    while not await job.done() and job.state != "running":
        await asyncio.sleep(0.01)
    return job


async def test_background_with_asyncio(any_agpu, any_asession):
    kernel = (await any_asession.module(SAXPY))["saxpy"]
    async with any_asession.batch() as batch:
        x = await any_asession.buffer(floats(1, 2))
        launched = await kernel(1, 32, (1.0, x, x, 2))
        got = x.get_async()
        with pytest.raises(errors.GpurestError, match="await asubmit_background"):
            batch.submit_background()
        job = await batch.asubmit_background()
    assert not got.done()
    with pytest.raises(errors.GpurestError, match="await its job"):
        got.result()
    assert await job is batch and await job.done() and (await job.wait()).state == "succeeded" and await job.cancel() is False
    assert list(got.result()) == [2, 4] and launched.state == "succeeded" and list(await x.get()) == [2, 4]
    with pytest.raises(errors.ClosedError):
        await batch.asubmit_background()
    y = floats(1, 1)
    runs = [await any_agpu.run_background(SAXPY, "saxpy", [float(i), gpurest.In(floats(1, 2)), gpurest.InOut(y), 2], n=2) for i in range(3)]
    for i, result in enumerate(await asyncio.gather(*runs)):
        assert result.y is y
    bad, _ = await aqueued(any_asession, lambda: kernel(1, 100_000, (1.0, x, x, 2)))
    with pytest.raises(errors.ValidationError) as caught:
        await bad
    assert caught.value.op_index == 0 and bad.state == "failed"
    with pytest.raises(errors.ValidationError):
        async with any_asession.batch() as refused:
            refused._add({"op": "jump"})
            await refused.asubmit_background()
    await x.free()
    await any_asession.free_unused()
    assert (await any_asession.info())["usage"]["memory_bytes"] == 0


async def test_cancelling_with_asyncio(asession):
    x = await asession.buffer(b"1234")
    blocker = await aendless(asession)

    async def reading():
        return x.get_async()
    waiting, got = await aqueued(asession, reading)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(waiting.wait(), 0.05)
    assert not await waiting.done() and waiting.state == "queued"
    assert await waiting.cancel() is True and await waiting.cancel() is True
    with pytest.raises(errors.GpurestError, match="was cancelled"):
        await waiting
    assert isinstance(got.exception(), errors.AbortedError)
    with pytest.raises(errors.ConflictError):
        await blocker.cancel()
    assert await blocker.cancel(force=True) is True and asession.generation == 2
    with pytest.raises(errors.GpurestError, match="was cancelled"):
        await blocker.wait()
    with pytest.raises(errors.SessionLostError, match="reset"):
        await x.read()
    assert bytes(await (await asession.buffer(b"new")).read()) == b"new"


async def test_what_the_service_knows_no_more_with_asyncio(agpu, asession):
    x = await asession.buffer(b"1234")

    async def reading():
        return x.get_async()
    job, got = await aqueued(asession, reading)
    await agpu.request("DELETE", f"/v1/sessions/{asession.id}")
    with pytest.raises(errors.SessionLostError):
        await job
    assert job.state == "gone" and await job.cancel() is False
    with pytest.raises(errors.SessionLostError):
        await x.read()
