"""POST …/buffers/{b}/compare: two buffers held against each other, byte by byte."""
import os

import pytest

SIZE = 5 * 1024 * 1024 + 3


def put(client, session, name, data):
    assert client.put_octets(f"{session}/buffers/{name}", data).status in (200, 201)


def compare(client, session, body, name="a"):
    return client.post(f"{session}/buffers/{name}/compare", body)


@pytest.fixture
def digits(client, session):
    put(client, session, "a", b"0123456789")
    put(client, session, "b", b"012x45678y")
    return session


@pytest.mark.parametrize("body,answer", [
    ({"with": "a"}, (True, 10, 0, None)),
    ({"with": "b"}, (False, 10, 2, 3)),
    ({"with": "b", "size": 3}, (True, 3, 0, None)),
    ({"with": "b", "size": 0}, (True, 0, 0, None)),
    ({"with": "b", "offset": 4, "with_offset": 4, "size": 5}, (True, 5, 0, None)),
    ({"with": "b", "offset": 4, "with_offset": 4}, (False, 6, 1, 5)),
    ({"with": "a", "offset": 0, "with_offset": 1, "size": 2}, (False, 2, 2, 0)),
    ({"with": "a", "offset": 10}, (False, 0, 0, 0)),
    ({"with": "a", "offset": 10, "with_offset": 10}, (True, 0, 0, None)),
])
def test_ranges(client, digits, body, answer):
    told = compare(client, digits, body)
    assert told.status == 200
    assert told.json() == dict(zip(("equal", "size", "different_bytes", "first_difference"), answer))


@pytest.mark.parametrize("body,code", [
    ({}, "invalid_field"), ({"with": "none"}, "buffer_not_found"), ({"with": "b", "size": 11}, "range_not_satisfiable"),
    ({"with": "b", "offset": 11}, "range_not_satisfiable"), ({"with": "b", "with_offset": str(2**63 + 1)}, "range_not_satisfiable"),
    ({"with": "b", "offset": 9, "size": str(2**64 - 1)}, "range_not_satisfiable"), ({"with": "b", "size": -1}, "invalid_field"),
    ({"with": "b", "size": 1.5}, "invalid_field"), ({"with": "b", "x": 1}, "unknown_field")])
def test_refusals(client, digits, body, code):
    assert compare(client, digits, body).code == code


def test_many_pieces(client, session):
    data = os.urandom(SIZE)
    put(client, session, "a", data)
    put(client, session, "b", data)
    assert compare(client, session, {"with": "b"}).json() == {"equal": True, "size": SIZE, "different_bytes": 0, "first_difference": None}
    for at in (SIZE - 1, 3 * 1024 * 1024, 256 * 1024, 256 * 1024 - 1):
        client.post(f"{session}/buffers/b/copy", {"from": "a"})
        client.post(f"{session}/buffers/b/fill", {"pattern": {"u8": data[at] ^ 255}, "offset": at, "size": 1})
        assert compare(client, session, {"with": "b"}).json() == {"equal": False, "size": SIZE, "different_bytes": 1, "first_difference": at}


def test_it_follows_the_work_before_it(client, digits):
    client.post(f"{digits}/buffers/b/copy", {"from": "a"})
    assert compare(client, digits, {"with": "b"}).json()["equal"]


def test_a_length_alone_is_a_difference(client, digits):
    put(client, digits, "c", b"01234")
    assert compare(client, digits, {"with": "c"}).json() == {"equal": False, "size": 5, "different_bytes": 0, "first_difference": 5}
