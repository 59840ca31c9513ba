"""Sessions that last as long as their process: heartbeats, what is told of one that has ended, and which session is the default one."""
import gc
import os
import pathlib
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import gpurest
from gpurest import errors, profiler, testing
from gpurest._session import requests, session_state
from gpurest._transport import heartbeats
from sources import FAULTS, SAXPY

ROOT = pathlib.Path(__file__).resolve().parents[3]


def until(condition, what):
    deadline = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
    return found


def ids(client):
    return [one["id"] for one in client.sessions()]


def end(session):
    """As another process of the same caller would."""
    session.client.request("DELETE", f"/v1/sessions/{session.id}")


def beating():
    return [one for one in threading.enumerate() if one.name == "gpurest-heartbeats"]


@pytest.fixture
def no_default(monkeypatch):
    """Nothing is chosen, before and after."""
    gpurest.use(None)
    yield monkeypatch
    gpurest.use(None)


# ---- heartbeats ----

def test_the_default_session_asks_for_a_lease_and_the_longest_times(gpu):
    limits, info = gpu.limits(), gpu.default_session.info()
    assert (info["lease_s"], info["idle_timeout_s"], info["max_lifetime_s"]) == (60, limits["idle_timeout_s"]["max"], limits["lifetime_s"]["max"])
    assert requests.SESSION_S_MAX == limits["idle_timeout_s"]["max"]
    with gpu.session() as other:
        assert (other.info()["lease_s"], other.info()["idle_timeout_s"]) == (None, 600)
    with gpu.session(lease_s=70) as other:
        assert other.info()["lease_s"] == 70 and other in gpu._heartbeats._alive()
        assert other.update(lease_s=0)["lease_s"] is None and other not in gpu._heartbeats._alive()
        assert other.update(lease_s=80)["lease_s"] == 80 and other in gpu._heartbeats._alive()


def test_there_is_a_thread_while_there_is_a_lease_and_one_for_all(service):
    before = set(beating())

    def mine():
        return [one for one in beating() if one not in before]

    with gpurest.connect(service.url) as gpu:
        with gpu.session():
            assert not mine()
        with gpu.session(lease_s=60), gpu.session(lease_s=60):
            assert len(mine()) == 1 and mine()[0].daemon
        until(lambda: not mine(), "the thread stays without a session")
        assert gpu.default_session and len(mine()) == 1
    until(lambda: not mine(), "the thread outlives its client")
    forgotten = gpurest.Client(service.url, lease_s=1)
    session = forgotten.default_session
    assert len(mine()) == 1
    del session, forgotten
    until(lambda: gc.collect() >= 0 and not mine(), "the thread holds what nobody refers to")


def test_heartbeats_go_out_while_nothing_else_does():
    with testing.FakeServer() as fake, gpurest.connect(fake.url, lease_s=1) as gpu:
        name = gpu.default_session.id

        def beats():
            return fake.requests.count(("POST", f"/v1/sessions/{name}/heartbeat"))

        until(lambda: beats() >= 3, "no heartbeats")
        assert gpu.default_session.id == name


def test_a_heartbeat_is_due_a_third_of_the_lease_after_the_last_request(gpu, monkeypatch):
    session = gpu.session(lease_s=60)
    asked = session._asked_at
    assert session._beat_at() == asked + 20
    session.sync()
    assert session._asked_at > asked and session._beat_at() == session._asked_at + 20, "a request is as good as a heartbeat"
    for module in (heartbeats, session_state):
        monkeypatch.setattr(module, "clock", lambda: session._asked_at + 19)
    assert gpu._heartbeats._pause() == pytest.approx(1)
    used, sent = session._asked_at, gpu.requests_sent
    session._beat(gpu._transport.do)
    assert gpu.requests_sent == sent + 1 and session._asked_at == used and session._beat_at() == used + 39, "it is no use of the session"


def test_a_heartbeat_that_fails_comes_again_sooner_and_raises_nothing():
    with testing.FakeServer() as fake, gpurest.connect(fake.url, retries=0) as gpu:
        session = gpu.session(lease_s=60)
        session._asked_at = session._beaten_at = heartbeats.clock() - 20
        fake.fail("overloaded", 503, path="/heartbeat", times=2)  # one more if the thread has looked just now
        session._beat(gpu._transport.do)
        assert not session._ended and session._beat_at() - heartbeats.clock() < 15


def run(code, url, **more):
    """A process with `gpurest` and `url`, which prints one line when it is ready."""
    process = subprocess.Popen([sys.executable, "-c", "import os, sys, time, gpurest\nurl = sys.argv[1]\n" + textwrap.dedent(code), url],
                               stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "sdk" / "python")}, **more)
    return process, process.stdout.readline().split()


def test_a_killed_process_gives_its_places_back(service):
    process, names = run("""
        gpu = gpurest.connect(url, lease_s=10)
        x = gpurest.arange(10)
        float(x.sum())
        other = gpu.session(lease_s=10)
        print(gpu.default_session.id, other.id, flush=True)
        time.sleep(600)
    """, service.url)
    with gpurest.connect(service.url) as gpu:
        assert len(names) == 2 and set(names) <= set(ids(gpu))
        process.kill()
        process.wait()
        until(lambda: not set(names) & set(ids(gpu)), "the sessions of the killed process stay")
        with pytest.raises(errors.SessionLostError) as caught:
            gpu.attach(names[0])
        assert (caught.value.reason, caught.value.ended["limit_s"]) == ("lease", 10)
    process.stdout.close()


def test_a_forked_child_has_a_default_session_of_its_own_at_the_same_service(service):
    process, said = run("""
        gpu = gpurest.connect(url)
        parents = gpu.default_session.id
        child = os.fork()
        if not child:
            try:
                gpu.devices()
            except gpurest.errors.ForkError:
                own = gpurest.default_session()
                good = own.id != parents and own.client.url == gpu.url and own.client._heartbeats.running
                good = good and float(gpurest.arange(4).sum()) == 6
                own.client.close()
                os._exit(0 if good else 1)
            os._exit(2)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, float(gpurest.arange(5).sum()), gpu.default_session.id == parents, flush=True)
    """, service.url)
    process.wait(timeout=120)
    assert said == ["0", "10.0", "True"]
    process.stdout.close()


# ---- a session that has ended ----

@pytest.fixture
def lunch(gpu):
    """lunch(session): it has ended by its idle limit of 1 s while nobody looked."""
    def have(session):
        session.update(idle_timeout_s=1)
        with gpurest.connect(gpu.url) as other:
            until(lambda: session.id not in ids(other), "the session does not end")
    return have


def test_after_lunch_new_arrays_get_a_new_session_and_old_ones_say_why_they_are_lost(gpu, lunch):
    x = gpurest.arange(4) + 1
    gpurest.flush()
    before = x.session
    lunch(before)
    y = gpurest.arange(5)
    assert float(y.sum()) == 10 and y.session.id != before.id and gpu.default_session is y.session
    for use in (lambda: x.get(), lambda: float((x + y).sum()), lambda: before.buffer(size=4), lambda: before.sync()):
        with pytest.raises(errors.SessionLostError) as caught:
            use()
        assert caught.value.reason == "idle" and caught.value.ended["limit_s"] == 1
        assert f"session {before.id} on cpu:0 has ended: nobody used it for 1 s, its idle_timeout_s" in str(caught.value)
        assert "session.reset() makes a new one" in str(caught.value) and "new arrays get a new one by themselves" in str(caught.value)
    assert repr(before) == f"<Session {before.id} ended: idle>"


def test_what_a_kernel_is_given_after_lunch_says_so_too(gpu, lunch):
    x = gpu.buffer(bytes(16))
    lunch(x.session)
    kernel = gpu.kernel(SAXPY, "saxpy")
    with pytest.raises(errors.SessionLostError, match="has ended: nobody used it for 1 s"):
        kernel(1, 1, (1.0, x, x, 4))
    y = gpu.empty(4)
    kernel(1, 4, (1.0, y, y, 4))


def test_the_thread_notices_and_is_silent(gpu, lunch):
    session = gpu.default_session
    lunch(session)
    session._beat(gpu._transport.do)
    assert session._ended and session._lost.reason == "idle"
    sent = gpu.requests_sent
    with pytest.raises(errors.SessionLostError):
        session.sync()
    assert gpu.requests_sent == sent, "it is known"
    assert gpu.default_session.id != session.id


def test_after_a_sleep_longer_than_the_lease_the_default_session_is_looked_at(gpu, monkeypatch):
    session, now = gpu.default_session, heartbeats.clock()
    sent = gpu.requests_sent
    assert gpu.default_session is session and gpu.requests_sent == sent
    monkeypatch.setattr(session_state, "clock", lambda: now + 61)
    assert gpu.default_session is session and gpu.requests_sent == sent + 1, "it is still there"
    end(session)
    session._asked_at = session._beaten_at = now
    assert gpu.default_session is not session and session._lost.reason == "deleted"


def test_reset_makes_a_new_session_in_place_of_one_that_has_ended(gpu):
    with gpu.session("sdk-lasting", labels={"a": "b"}, memory_limit="1GiB", idle_timeout_s=100) as named, gpu.session(memory_fraction=0.5) as other:
        for session in (named, other):
            buffer, module, before, was = session.buffer(b"abcd"), session.module(SAXPY), session.generation, session.info()
            end(session)
            session.reset()
            now = session.info()
            assert session.generation > before and session.device == "cpu:0" and bytes(session.buffer(b"new")) == b"new"
            for key in ("labels", "memory_limit", "memory_fraction", "idle_timeout_s", "max_lifetime_s", "lease_s"):
                assert now[key] == was[key], key
            for use in (buffer.read, lambda: module["saxpy"](1, 1, (1.0, None, None, 0))):
                with pytest.raises(errors.SessionLostError, match="is lost: session .* has ended: it was deleted") as caught:
                    use()
                assert caught.value.reason == "deleted"
            assert session.module(SAXPY) is not module
            session.reset()
            assert session.generation == before + 2
        assert named.id == "sdk-lasting" and other.id in ids(gpu)
        left = [named.id, other.id]
    assert not set(left) & set(ids(gpu))


def test_reset_after_the_loss_was_seen(gpu):
    session = gpu.session(lease_s=60)
    x = gpurest.arange(4, session=session)
    gpurest.flush(session)
    end(session)
    with pytest.raises(errors.SessionLostError):
        session.sync()
    session.reset()
    assert float(gpurest.arange(4, session=session).sum()) == 6
    with pytest.raises(errors.SessionLostError, match="this array is lost: session .* has ended: it was deleted"):
        x.get()
    assert [one() for one in gpu._heartbeats._leased].count(session) == 1
    session.close()


def test_one_that_the_service_does_not_know_is_told_as_such(gpu):
    session = gpu.session()
    known, session.id = session.id, "s_never"
    with pytest.raises(errors.SessionLostError, match="session s_never on cpu:0 is unknown to the service") as caught:
        session.sync()
    assert caught.value.reason == "not_found" and caught.value.ended == {}
    gpu.request("DELETE", f"/v1/sessions/{known}")


def test_a_fault_is_no_end(gpu):
    """What was on the device is gone, and that should be noticed."""
    session = gpu.default_session
    with pytest.raises(errors.CudaError):
        session.module(FAULTS)["trap"](1, 1, ())
    assert gpu.default_session is session
    with pytest.raises(errors.SessionLostError, match="new worker") as caught:
        session.sync()
    assert caught.value.reason == "fault"
    session.reset()
    assert gpu.default_session is session


async def test_an_asyncio_session_has_a_lease_and_is_made_anew(agpu):
    async with agpu as gpu:
        session = await gpu.session(lease_s=60)
        x = await session.asarray([1.0, 2.0])
        await session.flush()
        assert (await session.info())["lease_s"] == 60 and gpu._twin()._heartbeats.running
        await gpu.request("DELETE", f"/v1/sessions/{session.id}")
        with pytest.raises(errors.SessionLostError, match="it was deleted") as caught:
            await session.sync()
        assert caught.value.reason == "deleted" and "reset()" in str(caught.value)
        before = session.id
        await session.reset()
        assert session.id != before
        with pytest.raises(errors.SessionLostError, match="this array is lost"):
            await x.aget()
        assert list(await (await session.asarray([1.0, 2.0])).aget()) == [1, 2]
        await session.close()


# ---- which is the default one ----

def test_the_first_connect_is_the_default_client(service, no_default):
    no_default.setenv("GPUREST_URL", "http://127.0.0.1:9")
    with gpurest.connect(service.url) as first, gpurest.connect(service.url) as second:
        assert gpurest.default_client() is first and gpurest.default_session() is first.default_session
        gpurest.use(second)
        assert gpurest.default_session() is second.default_session
        gpurest.use(None)
        assert gpurest.default_client().url == "http://127.0.0.1:9"
        with gpurest.connect(service.url) as third:
            assert gpurest.default_client() is third, "the one from the environment has made nothing yet"
    assert gpurest.default_client().url == "http://127.0.0.1:9"


def test_connect_takes_nothing_from_arrays_that_are_there(service, no_default):
    no_default.setenv("GPUREST_URL", service.url)
    x = gpurest.arange(4)
    with gpurest.connect(service.url):
        assert float((x + gpurest.arange(4)).sum()) == 12
    gpurest.default_client().close()


def test_kernels_and_traces_of_the_client_see_the_arrays_of_the_package(service, no_default):
    with gpurest.connect(service.url) as gpu:
        x, y = gpurest.asarray([1.0, 2.0], dtype="f4"), gpurest.asarray([3.0, 4.0], dtype="f4")
        with profiler.trace(gpu) as seen:
            gpu.kernel(SAXPY, "saxpy")(1, 2, (2.0, x, y, 2))
            assert list(y.get()) == [5, 8]
        assert any("/batches" in one.path for one in seen) and any("/launches" in one.path for one in seen)


def test_a_session_can_be_the_default_one(gpu):
    with gpu.session() as mine:
        gpurest.use(mine)
        x = gpurest.arange(3)
        assert x.session is mine and gpu.default_session is mine and gpu.buffer(b"a").session is mine
        usual = gpu.session()
        y = gpurest.arange(3, session=usual)
        with pytest.raises(errors.ArgumentError) as caught:
            x + y
        assert f"in session {mine.id} on cpu:0 (the default one)" in str(caught.value) and f"in session {usual.id} on cpu:0;" in str(caught.value)
        assert "gpurest.use(session)" in str(caught.value)
        with pytest.raises(errors.ArgumentError) as caught:
            usual.RawKernel(SAXPY, "saxpy")(1, 1, (1.0, mine.empty(4), usual.empty(4), 4))
        assert f"a buffer of session {mine.id} on cpu:0 (the default one); this kernel belongs to session {usual.id}" in str(caught.value)
        usual.close()
    assert gpurest.arange(3).session is not mine, "after its end there is another one"
    for wrong in (mine, 5, gpurest.AsyncClient(gpu.url)):
        with pytest.raises((errors.ArgumentError, errors.ClosedError)):
            gpurest.use(wrong)


def test_two_services_are_told_apart(gpu):
    with testing.FakeServer() as fake, gpurest.connect(fake.url) as other:
        with pytest.raises(errors.ArgumentError) as caught:
            gpu.kernel(SAXPY, "saxpy")(1, 1, (1.0, other.empty(4), gpu.empty(4), 4))
        assert fake.url in str(caught.value) and gpu.url in str(caught.value)


# ---- how long kernels may run, how many sessions there may be ----

def test_the_deadline_of_kernels_is_set_anywhere(service):
    def ended_by(kernel, session, **more):
        with pytest.raises(errors.KernelTimeoutError) as caught:
            kernel(1, 1, (session.buffer(size=64),), **more)
        assert "timeout_ms" in str(caught.value) and "60 s unless" in str(caught.value)
        session.reset()

    with gpurest.connect(service.url, timeout_ms=300) as gpu:
        assert gpu.session().timeout_ms == 300 and gpu.default_session.timeout_ms == 300
        ended_by(gpu.default_session.module(FAULTS)["endless"], gpu.default_session)
    with gpurest.connect(service.url) as gpu, gpu.session(timeout_ms=300) as session, gpu.session() as other:
        assert (session.timeout_ms, other.timeout_ms) == (300, None)
        ended_by(session.module(FAULTS)["endless"], session)
        ended_by(other.module(FAULTS)["endless"], other, timeout_ms=300)
        kernel, x = session.module(FAULTS)["endless"], session.buffer(size=64)
        with pytest.raises(errors.KernelTimeoutError), session.batch():
            kernel(1, 1, (x,))
        with pytest.raises(errors.KernelTimeoutError):
            gpu.dispatch(gpu.kernel(FAULTS, "endless"), gpu.buffer(size=64), groups=1, group_size=1, timeout_ms=300)
    for wrong in (0, -1, 3600001, 1.5, True, "60"):
        with pytest.raises(errors.ArgumentError, match="timeout_ms"):
            gpurest.connect(service.url, timeout_ms=wrong)


def test_too_many_sessions_say_what_to_do():
    with testing.server() as service, gpurest.connect(service.url) as gpu:
        made = [gpu.session() for _ in range(gpu.limits()["sessions"]["max"])]
        with pytest.raises(errors.ResourceExhausted) as caught:
            gpu.session()
        assert f"{len(made)} of {len(made)} sessions are in use: delete one" in str(caught.value) and "client.sessions() lists" in str(caught.value)
