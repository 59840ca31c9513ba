"""A session's event stream from a real service, also with the asyncio client. test_sdk_transport.py tests how broken streams continue."""

import pytest

import gpurest
from gpurest import errors
from sources import MANY

TYPES = ("launch.queued", "launch.started", "kernel.printf", "launch.finished")


@pytest.fixture
def told(session):
    """A session in which one kernel has run; skipped if the service has no events."""
    try:
        next(session.events(timeout=1, last_id="0"), None)
    except errors.NotFoundError:
        pytest.skip("this gpurestd has no event streams")
    session.module(MANY, name_expressions=["scale<int>"])["hello"](1, 1, (5,))
    return session


def check(events):
    assert [one.type for one in events] == list(TYPES)
    assert events[2].data["text"] == "hello 5\n" and events[3].data["state"] == "succeeded"
    assert [int(one.id) for one in events] == sorted(int(one.id) for one in events)


def test_what_has_happened_is_told_again(told):
    stream = told.events(TYPES, timeout=60, last_id="0")
    check([next(stream) for _ in TYPES])
    stream.close()


def test_what_happens_while_one_listens(told):
    stream = told.events(["launch.finished"], timeout=60, last_id="0")
    first = next(stream)
    told.module(MANY, name_expressions=["scale<int>"])["hello"](1, 1, (6,))
    second = next(stream)
    stream.close()
    assert int(second.id) > int(first.id) and second.data["launch"] != first.data["launch"]


def test_the_end_of_the_time(told):
    assert [one.type for one in told.events(["kernel.printf"], timeout=4, last_id="0")] == ["kernel.printf"]


def test_a_type_that_there_is_not(told):
    with pytest.raises(errors.ValidationError):
        next(told.events(["no.such"], timeout=5))


async def test_with_asyncio(told, agpu):
    session = await agpu.attach(told.id)
    found = []
    async for event in session.events(TYPES, timeout=60, last_id="0"):
        found.append(event)
        if len(found) == len(TYPES):
            break
    check(found)
