"""What takes longer than the idle time-out: a client waits on for a service that answers others, and for no other one."""
import asyncio
import signal
import threading
import time

import pytest

import gpurest
from fake_server import answer_bytes, fake
from gpurest import errors
from gpurest._transport.endpoint import Timeout
from gpurest._transport.wire import Request
from test_sdk_transport import Async, Blocking, Posting

IDLE_S, TAKES_S = 0.3, 1.0
SYNC = "/v1/sessions/s-1/sync"
SPIN = """extern "C" __global__ void spin(float *a, long long ticks)
{
    long long began = clock64();
    while (clock64() - began < ticks) {}
    *a = 1;
}
"""
SECONDS_4 = 4_000_000_000  # on a GPU some 2 s


@pytest.fixture(params=[Blocking, Posting, Async])
def transport_to(request):
    opened = []

    def open_one(server):
        opened.append(request.param(server.url, timeout=Timeout(60.0, IDLE_S)))
        return opened[-1]
    yield open_one
    for one in opened:
        one.close()


def pausing(where, asked, lives=True):
    """A service that takes its time for a POST: before it takes the body, before the answer, or within it. What else it is asked it notes."""
    def script(peer):
        if where == "body" and not peer.sock.recv(4, 2).startswith(b"GET"):  # looks, without taking it
            time.sleep(TAKES_S)
        while request := peer.request():
            if request[0].startswith("GET"):
                asked.append(request[0].split()[1])
                if not lives:
                    return
                peer.answer(404)
                continue
            answer = answer_bytes(200, b"x" * 100)
            if where == "answer":
                time.sleep(TAKES_S)
            if where == "rest":
                peer.send(answer[:-50])
                time.sleep(TAKES_S)
                answer = answer[-50:]
            peer.send(answer)
    return script


@pytest.mark.parametrize("where", ["answer", "rest", "body"])
def test_a_wait_goes_on_while_the_service_answers(transport_to, where):
    asked = []
    with fake(pausing(where, asked)) as server:
        body = (bytes(64 << 20),) if where == "body" else (b"{}",)
        assert transport_to(server).send(Request("POST", SYNC, {}, body)).body == b"x" * 100
    assert len(asked) >= 2 and set(asked) == {"/v1/sessions/s-1"}  # the same node


@pytest.mark.parametrize("where", ["answer", "rest"])
def test_it_ends_when_the_service_answers_nobody(transport_to, where):
    asked = []
    with fake(pausing(where, asked, lives=False)) as server:
        with pytest.raises(errors.TimeoutError_) as caught:
            transport_to(server).send(Request("POST", "/v1/elsewhere", {}, (b"{}",)))
    assert caught.value.phase == "idle" and asked == ["/livez"]


def test_a_client_that_leaves_waits_for_nothing():
    asked = []
    with fake(pausing("answer", asked)) as server:
        one = Blocking(server.url)
        one.transport.hurry(IDLE_S)
        with pytest.raises(errors.TimeoutError_):
            one.send(Request("POST", SYNC, {}, (b"{}",)))
        one.close()
    assert not asked


CALLS = {"read": lambda session, buffer, _: buffer.read(), "sync": lambda session, *_: session.sync(),
         "write": lambda session, buffer, _: buffer.write(bytes(buffer.nbytes)), "program": lambda *at: at[2].run()}


@pytest.mark.parametrize("what", [*CALLS, "batch"])
def test_behind_a_kernel_that_takes_longer(service, what):
    with gpurest.connect(service.url, timeout=Timeout(60.0, 1.0)) as gpu, gpu.session(timeout_ms=1000) as session:
        spin = session.compile(SPIN)["spin"]
        buffer = session.buffer(bytes(48 << 20 if what == "write" else 64))
        with session.program() as program:
            spin[1, 1](buffer, 1)
        spin[1, 1](buffer, SECONDS_4, timeout_ms=600000, wait=False)
        if what == "batch":
            with session.batch():
                spin[1, 1](buffer, 1)
        else:
            CALLS[what](session, buffer, program)
        assert session.info()["state"] == "ready"


async def test_so_do_tasks(service):
    async with gpurest.AsyncClient(service.url, timeout=Timeout(60.0, 1.0)) as gpu, await gpu.session(timeout_ms=1000) as session:
        spin = (await session.compile(SPIN))["spin"]
        buffer = await session.buffer(bytes(64))
        await spin[1, 1](buffer, SECONDS_4, timeout_ms=600000, wait=False)
        assert len(await buffer.read()) == 64


async def test_a_task_that_waits_on_can_be_cancelled(service):
    async with gpurest.AsyncClient(service.url, timeout=Timeout(60.0, 0.2)) as gpu, await gpu.session() as session:
        spin = (await session.compile(SPIN))["spin"]
        buffer = await session.buffer(bytes(64))
        await spin[1, 1](buffer, SECONDS_4, timeout_ms=600000, wait=False)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(buffer.read(), 1.0)
        assert len(await buffer.read()) == 64


def test_one_who_waits_on_can_be_interrupted(service):
    """As by Ctrl-C, which a program in a shell's background ignores: the wait is left, and the session goes on."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with gpurest.connect(service.url, timeout=Timeout(60.0, 0.2)) as gpu, gpu.session() as session:
        spin, buffer = session.compile(SPIN)["spin"], session.buffer(bytes(64))
        spin[1, 1](buffer, SECONDS_4, timeout_ms=600000, wait=False)
        timer = threading.Timer(1.0, lambda: __import__("_thread").interrupt_main())
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            buffer.read()
        timer.join()
        assert len(buffer.read()) == 64
    signal.signal(signal.SIGINT, before)
