"""Batches, streams, events, run() against a real service; every batch is one request."""
import array
import contextlib
import contextvars

import pytest

import gpurest
from gpurest import errors
from sources import FAULTS, MANY, SAXPY


@pytest.fixture
def saxpy(session):
    return session.module(SAXPY)["saxpy"]


def requests_of(session, work):
    before = session.client.requests_sent
    result = work()
    return session.client.requests_sent - before, result


def test_a_batch_is_one_request(session, saxpy):
    def work():
        with session.batch() as batch:
            x = session.buffer(array.array("f", range(256)))
            y = session.empty(256, "f4")
            y.fill(1.0)
            before = y.get_async()
            launched = saxpy(1, 256, (2.0, x, y, 256))
            after = y.get_async()
            z = session.empty(256, "f4")
            z.copy_from(y, size=16)
            x.write(b"\0" * 4, 4)
            x.free()
            with pytest.raises(errors.GpurestError, match="has not been submitted"):
                after.result()
        return batch, x, y, z, before, launched, after
    count, (batch, x, y, z, before, launched, after) = requests_of(session, work)
    assert count == 1 and batch.requests == 1 and batch.submitted
    assert list(before.result()) == [1.0] * 256 and list(after.result()) == [2.0 * i + 1 for i in range(256)]
    assert launched.result().gpu_us >= 0 and batch.times["run_ms"] > 0
    assert list(z.get())[:4] == [1.0, 3.0, 5.0, 7.0] and y.id.startswith("b_")
    with pytest.raises(errors.ClosedError):
        x.read()


def launched_in(context, kernel, args):
    with context():
        kernel(1, 4, args)


def test_buffers_of_a_batch_belong_to_it_until_it_has_run(session, saxpy):
    batch = session.batch()
    with batch:
        x = session.empty(4, "f4")
        with pytest.raises(errors.GpurestError, match="no id yet"):
            x.id
        for other in (contextlib.nullcontext, session.batch):  # as another thread sees it
            with pytest.raises(errors.GpurestError, match="has not run yet"):
                contextvars.Context().run(launched_in, other, saxpy, (1.0, x, x, 4))
    x.fill(2.0)
    assert list(x.get()) == [2.0] * 4
    with pytest.raises(errors.ClosedError):
        batch.submit()
    with pytest.raises(errors.ClosedError):
        batch.__enter__()


def test_a_buffer_dropped_within_its_batch_does_not_stay(session):
    with session.batch():
        for _ in range(5):
            session.buffer(size=100).fill(1)
    assert session.buffers() == []


def test_the_first_failure_aborts_what_follows(session, saxpy):
    x = session.buffer(array.array("f", [1] * 8))
    with pytest.raises(errors.ValidationError) as caught:
        with session.batch():
            first = saxpy(1, 8, (1.0, x, x, 8))
            second = saxpy(1, 100000, (1.0, x, x, 8))
            made = session.empty(4, "f4")
            third = x.get_async()
    assert "test_sdk_batches.py" in str(caught.value) and caught.value.op_index == 1
    assert second.exception() is caught.value
    for future in (first, third):
        assert isinstance(future.exception(), errors.AbortedError) and future.exception().cause is caught.value
    with pytest.raises(errors.AbortedError):
        made.read()
    assert x.nbytes == 32 and len(x.read()) == 32


def test_a_barrier_lets_the_rest_go_on(session, saxpy):
    x = session.buffer(array.array("f", [1] * 8))
    with pytest.raises(errors.ValidationError):
        with session.batch() as batch:
            kept = session.empty(8, "f4")
            kept.fill(3.0)
            batch.barrier()
            saxpy(1, 100000, (1.0, x, x, 8))
            batch.barrier()
            saxpy(1, 8, (1.0, kept, kept, 8))
            after = kept.get_async()
    assert batch.requests == 3 and list(after.result()) == [6.0] * 8


def test_an_exception_in_the_block_sends_nothing(session):
    def work():
        with pytest.raises(KeyError):
            with session.batch():
                buffer = session.buffer(size=10)
                future = buffer.get_async()
                raise KeyError("stop")
        return future
    count, future = requests_of(session, work)
    assert count == 0 and isinstance(future.exception(), errors.AbortedError) and session._batch_now() is None


def test_a_fault_in_a_batch_names_the_line_that_queued_it(gpu):
    with gpu.session() as session:
        module = session.module(FAULTS)
        x = session.zeros(4, "i4")
        with pytest.raises(errors.IllegalAddressError) as caught:
            with session.batch():
                x.fill(1)
                module["illegal"](1, 1, (x,))
                x.fill(2)
        assert caught.value.kernel == "illegal" and caught.value.queued_at.startswith("test_sdk_batches.py:")
        with pytest.raises(errors.SessionLostError):
            x.read()


def test_a_long_batch_goes_in_several_requests(session, saxpy):
    x = session.buffer(array.array("f", [1] * 4))
    with session.batch(ops_max=10) as batch:
        y = session.empty(4, "f4")
        y.fill(0.0)
        results = [saxpy(1, 4, (1.0, x, y, 4)) for _ in range(35)]
        end = y.get_async()
    assert batch.requests == 4 and list(end.result()) == [35.0] * 4 and all(one.result().gpu_us >= 0 for one in results)
    with session.batch(payload_max=1000) as batch:
        buffers = [session.buffer(bytes([i]) * 400) for i in range(6)]
    assert batch.requests == 3 and [bytes(one)[0] for one in buffers] == list(range(6))


def test_a_batch_on_a_thread_of_the_client(session, saxpy):
    x = session.buffer(array.array("f", [1] * 8))
    batch = session.batch()
    batch.__enter__()
    saxpy(1, 8, (1.0, x, x, 8))
    future = x.get_async()
    done = batch.submit_async()
    assert done.result(60) is batch and list(future.result(60)) == [2.0] * 8
    assert list(x.get_async().result(60)) == [2.0] * 8


def test_streams_and_events(session, saxpy):
    x = session.buffer(array.array("f", [1] * 8))
    stream, other = session.stream(), session.stream()
    def work():
        with stream:
            first = stream.record()
            saxpy(1, 8, (1.0, x, x, 8))
            second = stream.record()
            other.wait(second)
            with other:
                saxpy(1, 8, (1.0, x, x, 8))
            third = other.record()
        return first, second, third
    count, (first, second, third) = requests_of(session, work)
    assert count == 1 and second - first > 0 and third - second >= 0 and abs((third - first) - (third - second) - (second - first)) < 1e-9
    assert list(x.get()) == [4.0] * 8
    other.wait(third)
    with pytest.raises(errors.GpurestError, match="different requests"):
        stream.record() - first
    saxpy(1, 8, (1.0, x, x, 8), stream=stream)
    stream.sync()
    assert stream.is_done and list(x.get()) == [8.0] * 8
    name = stream.name
    stream.close()
    with pytest.raises(errors.ClosedError):
        stream.record()
    assert session.stream().name == name


def test_a_stream_entered_twice_sends_once(session, saxpy):
    x = session.buffer(array.array("f", [1] * 8))
    stream = session.stream()

    def work():
        with stream:
            with stream:
                saxpy(1, 8, (1.0, x, x, 8))
            later = saxpy(1, 8, (1.0, x, x, 8))
            assert later.state == "queued"
        return later
    count, later = requests_of(session, work)
    assert count == 1 and later.state == "succeeded" and later.gpu_us >= 0 and list(x.get()) == [4.0] * 8


def test_names_of_streams_are_used_again(session):
    for _ in range(200):
        session.stream()
    kept = [session.stream() for _ in range(64)]
    with pytest.raises(errors.GpurestError, match="at most 64"):
        session.stream()
    assert len({one.name for one in kept}) == 64


def test_run_is_one_request(gpu):
    x, y = array.array("f", range(8)), array.array("f", [1] * 8)
    before = gpu.requests_sent
    out = gpu.run(SAXPY, "saxpy", [2.0, gpurest.In(x), gpurest.InOut(y), 8], n=8)
    assert gpu.requests_sent == before + 1
    assert list(y) == [2.0 * i + 1 for i in range(8)] and out.y is y and out[0] is y and out["y"] is y and len(out) == 1 and list(out) == [y]
    assert out.times.kernel_ms >= 0 and out.times.run_ms > 0 and isinstance(out.log, str)
    made = gpu.run(SAXPY, "saxpy", [2.0, gpurest.In(x), gpurest.Out(8, "f4"), 0], grid=1, block=8)
    assert len(made.y) == 8
    assert gpu.run(MANY, "hello", [5], grid=1, block=1).stdout == "hello 5\n"
    assert gpurest.run('template<class T> __global__ void f(T* o) { *o = sizeof(T); }', "f<double>", [gpurest.Out(1, "f8")], n=1)[0][0] == 8.0
    with pytest.raises(AttributeError, match="there are y"):
        out.z


@pytest.mark.parametrize("args,more,words", [
    ([2.0, gpurest.In(b"1234"), gpurest.In(b"1234")], {"n": 1}, "takes 4 arguments"), ([2, 3, 4, 5], {"n": 1}, "a pointer is wanted"),
    ([2.0, b"1234", gpurest.In(b"1234"), 1], {"n": 1}, "upload"), ([2.0, gpurest.In(b"1234"), gpurest.In(b"1234"), 1.0], {"n": 1}, "integer"),
    ([2.0, gpurest.In(array.array("i", [1])), gpurest.In(b"1234"), 1], {"n": 1}, "pointer to f32"), ([], {}, "either n="), ([], {"n": 1, "grid": 1}, "either n=")])
def test_wrong_arguments_of_run(gpu, args, more, words):
    with pytest.raises(errors.ArgumentError, match=words):
        gpu.run(SAXPY, "saxpy", args, **more)


def test_wrong_directions():
    for make in (lambda: gpurest.InOut(b"1"), lambda: gpurest.Out(0), lambda: gpurest.In(b""), lambda: gpurest.In("text"), lambda: gpurest.Out(b"1")):
        with pytest.raises(errors.ArgumentError):
            make()


def test_run_of_a_source_that_does_not_compile_or_faults(gpu):
    with pytest.raises(errors.CompileError) as caught:
        gpu.run("extern \"C\" __global__ void f() { oops; }", "f", [], n=1)
    assert "oops" in str(caught.value) and caught.value.line == 1
    with pytest.raises(errors.CudaError):
        gpu.run(FAULTS, "trap", [], n=1)
    assert gpu.run(MANY, "hello", [5], n=1).stdout


def test_a_batch_that_goes_on_after_failures_tells_them_by_its_futures(session):
    batch = session.batch()
    with pytest.raises(errors.ArgumentError):
        batch.submit(on_error="ignore")
    with batch:
        first = session.empty(4, "u1")
        good = first.get_async()
        batch.barrier()
        huge = session.empty(1 << 50, "u1")
        bad = huge.get_async()
        batch.barrier()
        later = session.zeros(4, "u1").get_async()
        assert batch.submit(on_error="continue") is batch
    assert len(good.result()) == 4 and bytes(later.result()) == bytes(4)
    assert isinstance(bad.exception(), errors.AbortedError) and isinstance(bad.exception().__cause__, errors.GpurestError)
