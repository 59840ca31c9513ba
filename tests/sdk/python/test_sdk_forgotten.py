"""What nobody refers to any more is freed: along with batches of every kind, also when a request was broken off while the service was at it."""
import array
import asyncio
import contextlib
import gc
import socket
import time
from urllib.parse import urlsplit

import pytest

import gpurest
from conftest import settles
from gpurest import errors
from sources import SAXPY

WAIT_S = 60
MB = 1_000_000
LONG_BYTES = 128 << 20  # more than the staging memory of the tests' service and the buffers of a socket hold


@pytest.fixture(params=["fake", "gpurestd"])
def client(request):
    """The same tests run against both, so that the fake behaves as the service."""
    server = request.getfixturevalue("fake" if request.param == "fake" else "service")
    with gpurest.connect(server.url) as one:
        yield one


def floats(*values):
    return array.array("f", values)


def temporary(session):
    made = session.empty(MB, "u1")
    made.fill(1)
    return made.get_async()


@contextlib.contextmanager
def lost_answer(monkeypatch, transport, matches):
    """The first such request is done, and who waits for it is interrupted before the answer is there."""
    do, told = transport.do, []

    def once(call):
        answer = do(call)
        if not told and matches(call.request):
            told.append(call)
            raise KeyboardInterrupt
        return answer

    async def once_async(call):
        answer = await do(call)
        if not told and matches(call.request):
            told.append(call)
            raise asyncio.CancelledError
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(transport, "do", once_async if asyncio.iscoroutinefunction(do) else once)
        yield told
    assert told


def is_background(request):
    return request.headers.get("Prefer") == "respond-async"


def is_fill(request):
    return request.path.endswith("/fill")


@contextlib.contextmanager
def slow_reader(service, session, name):
    """A client that asks for a long buffer and takes none of it: the buffer is busy meanwhile."""
    place = urlsplit(service.url)
    with socket.create_connection((place.hostname, place.port)) as sock:
        sock.sendall(f"GET /v1/sessions/{session.id}/buffers/{name}/data HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
        assert sock.recv(1)
        yield


def until_gone(session, name, work):
    deadline = time.monotonic() + WAIT_S
    while name in [one["id"] for one in session.buffers()]:
        assert time.monotonic() < deadline
        work()
        time.sleep(0.02)


# ---- along with batches ----


@pytest.mark.parametrize("background", [False, True])
def test_a_loop_of_batches_frees_its_temporaries(client, background):
    with client.session(memory_limit=8 * MB) as session:
        for _ in range(30):
            with session.batch() as batch:
                got = temporary(session)
                if background:
                    job = batch.submit_background()
            if background:
                job.result(WAIT_S)
            assert bytes(got.result()) == b"\1" * MB


@pytest.mark.parametrize("background", [False, True])
async def test_a_loop_of_batches_frees_its_temporaries_with_asyncio(agpu, background):
    async with agpu.session(memory_limit=8 * MB) as session:
        for _ in range(30):
            async with session.batch() as batch:
                made = await session.empty(MB, "u1")
                got = made.get_async()
                if background:
                    job = await batch.asubmit_background()
            if background:
                await job
            assert len(got.result()) == MB


@pytest.mark.parametrize("background", [False, True])
def test_memory_that_is_short_is_taken_from_what_is_forgotten(client, background):
    with client.session(memory_limit=8 * MB) as session:
        forgotten = [session.empty(MB, "u1") for _ in range(8)]
        del forgotten
        gc.collect()
        with session.batch() as batch:
            kept = session.empty(2 * MB, "u1")
            kept.fill(2)
            if background:
                job = batch.submit_background()
        if background:
            job.result(WAIT_S)
        assert bytes(kept) == b"\2" * (2 * MB) and [one["id"] for one in session.buffers()] == [kept.id]


def test_memory_that_is_short_all_the_same(client):
    with client.session(memory_limit=8 * MB) as session:
        kept = session.empty(7 * MB, "u1")
        session.empty(MB, "u1")
        for submit in ("submit", "submit_background"):
            with pytest.raises(errors.ResourceExhausted):
                with session.batch() as batch:
                    session.empty(2 * MB, "u1")
                    getattr(batch, submit)()
        assert [one["id"] for one in session.buffers()] == [kept.id]


def test_a_job_that_fails_leaves_what_it_was_to_free(client):
    with client.session() as session:
        saxpy = session.module(SAXPY)["saxpy"]
        x = session.buffer(floats(1, 2))
        session.buffer(b"forgotten")
        gc.collect()
        with session.batch() as batch:
            saxpy(1, 1, (1.0, x, x, 2))
            batch._add({"op": "copy", "from": x.id, "to": x.id, "from_offset": 4096, "offset": 0, "size": 4})
            job = batch.submit_background()
        assert not session._has_left() and job.exception(WAIT_S).op_index == 1
        assert session.free_unused() == 1 and [one["id"] for one in session.buffers()] == [x.id]


# ---- after interrupts ----


def test_a_busy_buffer_that_is_forgotten_disturbs_no_batch(service, session, monkeypatch):
    saxpy, x, y = session.module(SAXPY)["saxpy"], session.buffer(floats(1, 2)), session.buffer(floats(0, 0))

    def batch():
        with session.batch():
            saxpy(1, 32, (1.0, x, y, 2))
            got = y.get_async()
        return list(got.result())

    busy = session.buffer(size=LONG_BYTES)
    name = busy.id
    with lost_answer(monkeypatch, session.client._transport, is_fill):
        with pytest.raises(KeyboardInterrupt):
            busy.fill(1)
    with slow_reader(service, session, name):
        del busy
        gc.collect()
        assert [batch() for _ in range(3)] == [[1, 2], [2, 4], [3, 6]]
        with session.batch() as background:
            x.fill(0)
            job = background.submit_background()
        assert job.exception(WAIT_S) is None
        session.free_unused()
        assert name in [one["id"] for one in session.buffers()]
    until_gone(session, name, batch)


async def test_a_busy_buffer_that_is_forgotten_disturbs_no_batch_with_asyncio(service, agpu, monkeypatch):
    async with agpu.session() as session:
        x, busy = await session.buffer(b"abcd"), await session.buffer(size=LONG_BYTES)
        name = busy.id

        async def batch():
            async with session.batch():
                got = x.get_async()
            assert bytes(got.result()) == b"abcd"

        with lost_answer(monkeypatch, agpu._transport, is_fill):
            with pytest.raises(asyncio.CancelledError):
                await busy.fill(1)
        with slow_reader(service, session, name):
            del busy
            gc.collect()
            for _ in range(3):
                await batch()
        deadline = time.monotonic() + WAIT_S
        while name in [one["id"] for one in await session.buffers()]:
            assert time.monotonic() < deadline
            await batch()
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("work", [lambda x, y: x.copy_from(y), lambda x, y: y.copy_from(x), lambda x, y: x.compare(y), lambda x, y: x.fill(1)])
def test_all_buffers_of_a_broken_request_go_alone(session, monkeypatch, work):
    x, y = session.buffer(b"abcd"), session.buffer(b"efgh")
    with lost_answer(monkeypatch, session.client._transport, lambda request: "/buffers/" in request.path):
        with pytest.raises(KeyboardInterrupt):
            work(x, y)
    del x
    gc.collect()
    assert session._take_garbage(10) == [] and session._has_left_apart()
    settled = y.id
    assert session.free_unused() == 0 and [one["id"] for one in session.buffers()] == [settled]


@pytest.mark.parametrize("make", [lambda s: s.empty(10), lambda s: s.texture(shape=(4, 4), dtype="f4")])
def test_what_was_being_made_is_freed(session, monkeypatch, make):
    with lost_answer(monkeypatch, session.client._transport, lambda request: request.method == "PUT"):
        with pytest.raises(KeyboardInterrupt):
            make(session)
    assert session.buffers() or session.textures()
    session.free_unused()
    assert not session.buffers() and not session.textures()


def test_an_interrupted_submission_leaves_nothing(client, monkeypatch):
    with client.session() as session:
        saxpy, x, y = session.module(SAXPY)["saxpy"], session.buffer(floats(1, 2)), session.buffer(floats(0, 0))
        forgotten = session.buffer(b"forgotten")
        with lost_answer(monkeypatch, client._transport, is_background):
            with pytest.raises(KeyboardInterrupt):
                with session.batch() as batch:
                    del forgotten
                    made = session.empty(MB, "u1")
                    saxpy(1, 32, (1.0, x, y, 2))
                    batch.submit_background()
        with pytest.raises(errors.AbortedError):
            made.read()
        deadline = time.monotonic() + WAIT_S
        while len(session.buffers()) > 2 or session._has_left():
            assert time.monotonic() < deadline
            session.free_unused()
            time.sleep(0.02)
        assert list(y.get()) == [1, 2]  # once, though it was asked for twice


async def test_an_interrupted_submission_leaves_nothing_with_asyncio(asession, monkeypatch):
    with lost_answer(monkeypatch, asession.client._transport, is_background):
        with pytest.raises(asyncio.CancelledError):
            async with asession.batch() as batch:
                await asession.empty(MB, "u1")
                await batch.asubmit_background()
    deadline = time.monotonic() + WAIT_S
    while asession._has_left():
        assert time.monotonic() < deadline
        await asession.free_unused()
        await asyncio.sleep(0.02)
    assert await asession.buffers() == []


def test_a_job_that_nobody_asks_for_its_result(client):
    with client.session() as session:
        with session.batch() as batch:
            made = session.empty(MB, "u1")
            job = batch.submit_background()
        path = f"/v1/sessions/{session.id}/batches/{job.id}"
        job = batch = made = None
        gc.collect()
        deadline = time.monotonic() + WAIT_S
        while session._has_left():
            assert time.monotonic() < deadline
            session.free_unused()
            time.sleep(0.02)
        assert session.buffers() == []
        with pytest.raises(errors.NotFoundError):
            client.request("GET", path)


def test_frees_that_are_interrupted_are_done_later(session, monkeypatch):
    forgotten = [session.buffer(b"abcd") for _ in range(3)]
    with lost_answer(monkeypatch, session.client._transport, lambda request: request.path.endswith("/batches")):
        del forgotten
        gc.collect()
        with pytest.raises(KeyboardInterrupt):
            session.free_unused()
    with session.batch():
        session.buffer(b"efgh")
    settles(session)
