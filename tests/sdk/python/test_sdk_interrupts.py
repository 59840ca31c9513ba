"""Ctrl-C at every stage of a request: what it leaves of arrays, and what comes after it."""
import asyncio
import os
import signal
import threading
import time

import pytest

import gpurest
from fake_server import answer_bytes, fake
from gpurest import errors
from gpurest._transport import connection
from gpurest._transport.connection import Connection
from gpurest._transport.endpoint import Endpoint, Timeout
from gpurest._transport.transport import Transport
from gpurest._transport.wire import Request
from gpurest.aio.transport import AsyncTransport


@pytest.fixture(autouse=True)
def heard():
    """A program in a shell's background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Stop(KeyboardInterrupt):
    """As by Ctrl-C, at a place that the test chooses."""


@pytest.fixture
def interrupt(monkeypatch):
    """interrupt(name, before) has the connection's next call of that name interrupted: before it does anything, or after all that it does."""
    def plan(name, before=True, times=1):
        left, real = [times], getattr(Connection, name)

        def call(self, *arguments):
            if left[0] and before:
                left[0] -= 1
                raise Stop
            came = real(self, *arguments)
            if left[0]:
                left[0] -= 1
                raise Stop
            return came
        monkeypatch.setattr(Connection, name, call)
    return plan


@pytest.fixture
def updated(gpu):
    """An array that was updated ten times, and its session."""
    with gpu.session() as session:
        x = gpurest.arrays.asarray([1.0] * 100, dtype="f8", session=session)
        for _ in range(10):
            x += 1
            assert float(x[0]) > 0
        yield x, session


@pytest.mark.parametrize("name,before,again", [("_put", True, False), ("_put", False, False), ("_put", False, True), ("_get", True, False), ("_get", True, True),
                                               ("_whole_answer", True, True)])
def test_an_update_is_done_once_whenever_somebody_is_interrupted(updated, interrupt, name, before, again):
    """Nothing is sent, all is, or the answer is awaited: whoever asks next has the value. `again`: who does is interrupted, too."""
    x, _ = updated
    x += 1
    interrupt(name, before)
    with pytest.raises(Stop):
        float(x[0])
    if again:
        interrupt("_get")
        with pytest.raises(Stop):
            float(x[0])
    assert float(x[0]) == 12 and float(x.sum()) == 1200
    x += 1
    assert float(x[0]) == 13


def test_when_the_interrupt_took_the_answer_it_says_so(updated, interrupt):
    """The bytes came, and were not kept: nobody knows the values, and nobody waits for them for ever."""
    x, _ = updated
    kept = x.copy()
    assert float(kept[0]) == 11
    x += 1
    interrupt("_get", before=False)
    with pytest.raises(Stop):
        float(x[0])
    with pytest.raises(errors.GpurestError, match="was interrupted"):
        float(x[0])
    assert float(kept[0]) == 11


def test_a_reset_meanwhile_takes_it(updated, interrupt):
    x, session = updated
    x += 1
    interrupt("_get")
    with pytest.raises(Stop):
        float(x[0])
    session.reset()
    with pytest.raises(errors.GpurestError):
        float(x[0])
    assert float(gpurest.arrays.asarray([2.0], session=session)[0]) == 2


def first_and_second(ended):
    """A service that hears when the first request is given up, and needs a moment then."""
    def script(peer):
        while request := peer.request():
            if b"first" in request[2]:
                assert peer.request() is None  # half-closed
                time.sleep(0.05)
                ended.append("first")
                return
            ended.append("second")
            peer.send(answer_bytes(200, {}))
    return script


def test_what_was_interrupted_comes_before_what_is_asked_next():
    ended = []
    with fake(first_and_second(ended)) as server:
        client = Transport(Endpoint.parse(server.url), None, Timeout(60.0, 60.0), 0, None)
        timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            client.send(Request("PUT", "/x", {}, (b"first",)))
        timer.join()
        client.send(Request("PUT", "/x", {}, (b"second",)))
        client.close()
    assert ended == ["first", "second"]


async def test_so_does_what_was_cancelled():
    ended = []
    with fake(first_and_second(ended)) as server:
        client = AsyncTransport(Endpoint.parse(server.url), None, Timeout(60.0, 60.0), 0, None)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.send(Request("PUT", "/x", {}, (b"first",))), 0.5)
        await client.send(Request("PUT", "/x", {}, (b"second",)))
        await client.close()
    assert ended == ["first", "second"]


def test_a_service_that_does_not_close_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("gpurest._transport.transport.LEFT_S", 0.05)
    ended = threading.Event()

    def script(peer):
        while request := peer.request():
            if b"first" in request[2]:
                ended.wait(60)
                return
            peer.send(answer_bytes(200, {}))

    with fake(script) as server:
        client = Transport(Endpoint.parse(server.url), None, Timeout(60.0, 60.0), 0, None)
        real, stopped = Connection._whole_answer, []

        def stop_once(self, *arguments):
            if not stopped:
                stopped.append(True)
                raise Stop
            return real(self, *arguments)
        monkeypatch.setattr(Connection, "_whole_answer", stop_once)
        with pytest.raises(Stop):
            client.send(Request("PUT", "/x", {}, (b"first",)))
        assert client.send(Request("PUT", "/x", {}, (b"second",))).status == 200
        ended.set()
        client.close()


def test_an_update_that_may_have_been_sent_is_lost_rather_than_done_twice(updated, interrupt):
    """Interrupted again before it is known whether it was."""
    x, _ = updated
    x += 1
    interrupt("_put")
    with pytest.raises(Stop):
        float(x[0])
    interrupt("_get")
    with pytest.raises(Stop):
        float(x[0])
    with pytest.raises(errors.GpurestError, match="was interrupted"):
        float(x[0])


def test_what_is_sent_in_one_call_is_short():
    """A connection that is idle takes so much at once on every system."""
    assert connection.AT_ONCE_BYTES <= 8192


def test_who_tries_again_does_not_take_an_attempt_for_none(monkeypatch):
    """With keys a broken request is sent again. Interrupted then, nobody knows whether the first attempt was done."""
    sent = []

    def script(peer):
        sent.append(peer.request())  # takes it, and breaks

    with fake(script) as server:
        client = Transport(Endpoint.parse(server.url), None, Timeout(60.0, 60.0), 3, None, idempotency_keys=True)
        real, opened = Transport._open, []

        def open_once(self):
            if opened:
                raise Stop
            opened.append(True)
            return real(self)
        monkeypatch.setattr(Transport, "_open", open_once)
        with pytest.raises(Stop) as caught:
            client.send(Request("POST", "/x", {}, (b"{}",), resumable=True))
        client.close()
    assert len(sent) == 1 and not hasattr(caught.value, "unsent") and not hasattr(caught.value, "unanswered")


def test_an_interrupt_within_a_relief_is_not_the_refused_request_s(updated, interrupt):
    """The relief of a refused flush computes something of its own, and is interrupted: nothing of the one is taken for the other's."""
    x, session = updated
    y = gpurest.arrays.asarray([5.0] * 10, session=session)
    assert float(y[0]) == 5
    refused = []

    def relief(*_):
        refused.append(True)
        interrupt("_get")
        return float((y * 2)[0]) > 0

    real = type(session)._send_batch

    def full_once(self, *arguments):
        if not refused:
            raise errors.ResourceExhausted("no memory", code="quota_exceeded", status=403)
        return real(self, *arguments)

    x += 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(session), "_relieve_of", lambda self, error: relief())
        patch.setattr(type(session), "_post", lambda self, *arguments: full_once(self, *arguments))
        patch.setattr(type(session), "_send_batch", full_once)
        with pytest.raises(Stop):
            float(x[0])
    assert refused and float(y[0]) == 5
    with pytest.raises(errors.GpurestError, match="was interrupted"):
        float(x[0])
