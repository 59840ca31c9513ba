"""A session object whose session was made anew or reset by somebody else: it says so, and does nothing in the new one. Against the service and the fake."""
import array
import threading

import pytest

import gpurest
from gpurest import errors, testing
from gpurest.aio import AsyncClient
from sources import SAXPY


@pytest.fixture(params=["fake", "gpurestd"])
def url(request):
    return request.getfixturevalue("fake").url if request.param == "fake" else request.getfixturevalue("service").url


@pytest.fixture
def two(url):
    """Two people's clients. What they share is gone at the end."""
    with gpurest.connect(url) as one, gpurest.connect(url) as other:
        yield one, other
        for left in list(other.sessions()):
            if left["id"].startswith("replaced"):
                other.request("DELETE", f"/v1/sessions/{left['id']}")


def end(client, name):
    client.request("DELETE", f"/v1/sessions/{name}")


def taken(client, how):
    """The session "replaced" as somebody else has it, who has made it anew or reset it."""
    if how == "replaced":
        end(client, "replaced")
    theirs = client.session("replaced")
    if how == "reset":
        theirs.reset()
    return theirs


def floats(*values):
    return array.array("f", values)


def lost(use, reason):
    with pytest.raises(errors.SessionLostError) as caught:
        use()
    assert caught.value.reason == reason and caught.value.hint, caught.value
    return caught.value


def program_of(session, x):
    """Of the same name in both sessions."""
    with session.program("step") as made:
        x.fill(gpurest.f32(7))
    return made


def uses(session, x, saxpy, program):
    return {"read": x.get, "write": lambda: x.write(floats(9, 9)), "fill": lambda: x.fill(0), "make": lambda: session.buffer(b"abc"),
            "launch": lambda: saxpy(1, 2, (1.0, x, x, 2)), "program": program.run, "list": session.buffers, "info": session.info, "sync": session.sync,
            "update": lambda: session.update(idle_timeout_s=77), "hibernate": session.hibernate, "trim": session.trim}


USES = ["read", "write", "fill", "make", "launch", "program", "list", "info", "sync", "update", "trim"]


@pytest.mark.parametrize("first", USES)
@pytest.mark.parametrize("how", ["replaced", "reset"])
def test_each_use_says_so_and_does_nothing(two, first, how):
    a, b = two
    with a.session("replaced") as mine:
        x = mine.buffer(floats(1, 2))
        saxpy = mine.module(SAXPY)["saxpy"]
        saxpy(1, 2, (1.0, x, x, 2))
        mine_uses = uses(mine, x, saxpy, program_of(mine, x))
        theirs = taken(b, how)
        y = theirs.buffer(floats(5, 6))
        program_of(theirs, y)
        before = b.request("GET", "/v1/sessions/replaced").json()
        told = lost(mine_uses[first], how)
        assert "session replaced on" in told.message and "somebody else" in told.message
        sent = a.requests_sent
        for again in USES:
            lost(mine_uses[again], how)
        x.free()
        assert a.requests_sent == sent, "it is known by now"
        after = b.request("GET", "/v1/sessions/replaced").json()
        for same in ("generation", "created_at", "idle_timeout_s"):
            assert after[same] == before[same]
        assert after["usage"]["buffers"] == before["usage"]["buffers"] and after["usage"]["launches"] == before["usage"]["launches"]
    assert list(y.get()) == [5, 6]
    assert [one["name"] for one in theirs.programs()] == ["step"]


@pytest.mark.parametrize("how", ["replaced", "reset"])
def test_leaving_it_unnoticed_deletes_nothing(two, how):
    a, b = two
    with a.session("replaced") as mine:
        theirs = taken(b, how)
        y = theirs.buffer(floats(5, 6))
    assert mine.closed and list(y.get()) == [5, 6]


def test_reset_joins_the_one_that_is_there(two):
    """Its maker keeps what is in it, and ends it."""
    a, b = two
    for how in ("replaced", "reset"):
        for noticed in (True, False):
            mine = a.session("replaced")
            x = mine.buffer(floats(1, 2))
            if how == "replaced":
                end(b, "replaced")
            theirs = b.session("replaced")
            if how == "reset":
                theirs.reset()
            y = theirs.buffer(floats(5, 6))
            if noticed:
                lost(x.get, how)
            mine.reset()
            told = lost(x.get, how) if how == "replaced" else pytest.raises(errors.SessionLostError, x.get).value
            assert "lost" in told.message or "gone" in told.message
            assert list(mine.buffer(floats(3)).get()) == [3] and list(y.get()) == [5, 6]
            mine.close()
            if how == "replaced":
                assert list(y.get()) == [5, 6]
                theirs.close()
            assert "replaced" not in [one["id"] for one in a.sessions()]


def test_two_share_one_by_name(two):
    """Whoever comes second works beside the first, and hears of a reset once."""
    a, b = two
    mine, theirs = a.session("replaced"), b.session("replaced")
    x, y = mine.buffer(floats(1, 2)), theirs.buffer(floats(5, 6))
    assert list(x.get()) == [1, 2] and list(y.get()) == [5, 6] and {one["id"] for one in mine.buffers()} == {x.id, y.id}
    mine.reset()
    lost(y.get, "reset")
    lost(lambda: theirs.buffer(b"x"), "reset")
    z = mine.buffer(floats(7))
    theirs.reset()
    assert bytes(theirs.buffer(b"x")) == b"x" and list(z.get()) == [7]
    again = b.attach("replaced")
    assert bytes(again.buffer(b"x")) == b"x"
    mine.close()


def test_a_faulted_one_is_reset_once(two):
    """The second to come finds it reset, with what the first has made since."""
    a, b = two
    mine, theirs = a.session("replaced"), b.session("replaced")
    mine.client.request("POST", "/v1/sessions/replaced/reset")
    theirs.reset()
    y = theirs.buffer(floats(5, 6))
    mine.reset()
    assert list(y.get()) == [5, 6] and list(mine.buffer(floats(1)).get()) == [1]


@pytest.mark.parametrize("url", ["gpurestd"], indirect=True)
def test_arrays_say_so(two):
    a, b = two
    mine = a.session("replaced")
    x = gpurest.arange(4, dtype="f4", session=mine)
    for _ in range(3):
        x = x + 1
        gpurest.flush(mine)
    end(b, "replaced")
    theirs = b.session("replaced")
    y = gpurest.arange(4, dtype="f4", session=theirs)
    gpurest.flush(theirs)
    used = b.request("GET", "/v1/sessions/replaced").json()["usage"]["buffers"]
    lost(lambda: (x + 1).get(), "replaced")
    lost(x.get, "replaced")
    assert b.request("GET", "/v1/sessions/replaced").json()["usage"]["buffers"] == used
    mine.reset()
    assert list(gpurest.ones(2, "f4", session=mine).get()) == [1, 1] and list(y.get()) == [0, 1, 2, 3]


def test_heartbeats_do_not_keep_the_new_one(two):
    a, b = two
    mine = a.session("replaced", lease_s=60)
    end(b, "replaced")
    b.session("replaced", lease_s=60)
    mine._beat(a._transport.do)
    assert mine._lost is not None and mine._lost.reason == "replaced" and mine._unleased


@pytest.mark.parametrize("url", ["gpurestd"], indirect=True)
async def test_asyncio_says_so_too(two):
    a, b = two
    async with AsyncClient(a.url) as client:
        async with client.session("replaced") as mine:
            x = await mine.buffer(floats(1, 2))
            kept = await mine.asarray(floats(1, 2))
            await mine.flush()
            end(b, "replaced")
            theirs = b.session("replaced")
            y = theirs.buffer(floats(5, 6))
            for use in (lambda: mine.fetch(kept + 1), lambda: x.read(), lambda: mine.buffer(b"abc"), mine.buffers, mine.info):
                with pytest.raises(errors.SessionLostError) as caught:
                    await use()
                assert caught.value.reason == "replaced"
        assert list(y.get()) == [5, 6]
        async with client.session("replaced") as mine:
            theirs.reset()
            with pytest.raises(errors.SessionLostError) as caught:
                await mine.buffers()
            assert caught.value.reason == "reset"
            await mine.reset()
            assert bytes(await (await mine.buffer(b"abc")).read()) == b"abc"
        assert "replaced" in [one["id"] for one in b.sessions()], "it was joined"


def test_events_and_snapshots_are_of_the_old_one(service, tmp_path):
    with gpurest.connect(service.url) as a, gpurest.connect(service.url) as b:
        mine = a.session("replaced-here")
        end(b, "replaced-here")
        with b.session("replaced-here") as theirs:
            y = theirs.buffer(b"abcd")
            lost(lambda: next(mine.events(timeout=60)), "replaced")
            other = a.attach("replaced-here")
            theirs.reset()
            lost(lambda: other.save(tmp_path / "s.tar"), "reset")
            assert not (tmp_path / "s.tar").exists()
            with pytest.raises(errors.SessionLostError):
                y.read()


def test_another_process_of_the_service_has_other_sessions():
    """It knows of no earlier one and counts from 1 again."""
    if testing.find_executable() is None:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    with testing.server() as one:
        address = one.url.rpartition("/")[2]
        with gpurest.connect(one.url) as gpu:
            mine = gpu.session("replaced")
            x = mine.buffer(b"abcd")
            one.process.terminate()
            one.process.wait()
            with testing.server("--listen", address) as two, gpurest.connect(f"http://{address}") as b:
                assert two.process.poll() is None
                theirs = b.session("replaced")
                assert theirs.info()["generation"] == 1 == mine._stands_for["generation"]
                lost(x.read, "replaced")
                mine.close()
                assert bytes(theirs.buffer(b"efgh")) == b"efgh"


def test_one_that_the_service_has_kept_goes_on(tmp_path):
    """Its number is another one, and all that was in it is there."""
    if testing.find_executable() is None:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    state = ("--state", str(tmp_path / "state"))
    with testing.server(*state) as one:
        address = one.url.rpartition("/")[2]
        with gpurest.connect(one.url) as gpu:
            mine = gpu.session("replaced")
            x, y = mine.buffer(floats(1, 2)), mine.buffer(floats(5, 6))
            saxpy = mine.module(SAXPY)["saxpy"]
            saxpy(1, 2, (1.0, x, y, 2))
            one.process.terminate()
            one.process.wait()
            with testing.server("--listen", address, *state), gpurest.connect(f"http://{address}") as b:
                def work():
                    saxpy(1, 2, (1.0, x, y, 2))

                threads = [threading.Thread(target=work) for _ in range(4)]
                for each in threads:
                    each.start()
                for each in threads:
                    each.join()
                assert list(y.get()) == [5 + 5 * 1, 6 + 5 * 2]
                theirs = b.attach("replaced")
                theirs.reset()
                lost(y.get, "reset")
                assert mine.generation == 1
                mine.close()
                assert bytes(theirs.buffer(b"efgh")) == b"efgh"
