"""Callbacks of low memory: called on events of the service, ended with the session, and what they raise is logged; blocking and with asyncio."""
import asyncio
import logging
import threading
import time

import pytest

from gpurest import aio, errors

WAIT_S = 60
LIMIT = 1_000_000


def refuse(session):
    with pytest.raises(errors.ResourceExhausted):
        session.buffer(size=2 * LIMIT)


def until(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_callback_hears_of_low_memory(gpu):
    heard = []
    with gpu.session(memory_limit=LIMIT) as session:
        watch = session.on_low_memory(heard.append)
        refuse(session)
        until(lambda: len(heard) == 1)
        assert (heard[0]["requested_bytes"], heard[0]["limit_bytes"], heard[0]["code"]) == (2 * LIMIT, LIMIT, "quota_exceeded")
        buffer = session.buffer(size=950_000)
        until(lambda: len(heard) == 2)
        assert heard[1]["used_bytes"] == 950_000 and "code" not in heard[1]
        watch.remove()
        watch.remove()
        refuse(session)
        buffer.free()
        until(lambda: not watch._thread.is_alive())  # it does not wait for the session's end
    assert len(heard) == 2


def test_what_a_callback_raises_is_logged_and_it_is_called_again(gpu, caplog):
    heard = []

    def callback(told):
        heard.append(told)
        raise ValueError("of the callback")

    with caplog.at_level(logging.ERROR, "gpurest.session"), gpu.session(memory_limit=LIMIT) as session:
        session.on_low_memory(callback)
        refuse(session)
        refuse(session)
        until(lambda: caplog.text.count("ValueError: of the callback") == 2)
    assert len(heard) == 2


def test_a_reset_does_not_end_it(gpu):
    heard = []
    with gpu.session(memory_limit=LIMIT) as session:
        session.on_low_memory(heard.append)
        session.reset()
        refuse(session)
        until(lambda: len(heard) == 1)


def test_its_thread_ends_with_the_session(gpu):
    session = gpu.session(memory_limit=LIMIT)
    watch = session.on_low_memory(print)
    session.close()
    until(lambda: not watch._thread.is_alive())
    with pytest.raises(errors.ClosedError):
        session.on_low_memory(print)
    assert not [one for one in threading.enumerate() if one is watch._thread]


def test_with_asyncio(service, caplog):
    async def main():
        heard, late = asyncio.Queue(), asyncio.Queue()

        async def callback(told):
            await late.put(told)
            raise ValueError("of the coroutine")

        async with aio.AsyncClient(service.url) as gpu, gpu.session(memory_limit=LIMIT) as session:
            await session.on_low_memory(heard.put_nowait)
            watch = await session.on_low_memory(callback)
            with pytest.raises(errors.ResourceExhausted):
                await session.buffer(size=2 * LIMIT)
            assert (await heard.get())["requested_bytes"] == (await late.get())["requested_bytes"] == 2 * LIMIT
            watch.remove()
            with pytest.raises(errors.ResourceExhausted):
                await session.buffer(size=3 * LIMIT)
            assert (await heard.get())["requested_bytes"] == 3 * LIMIT
            assert late.empty()

    with caplog.at_level(logging.ERROR, "gpurest.session"):
        asyncio.run(asyncio.wait_for(main(), WAIT_S))
    assert "ValueError: of the coroutine" in caplog.text
