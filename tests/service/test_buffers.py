"""Buffers and their bytes: whole and in ranges, preconditions, fill and copy, and every refusal of REST contract §3."""
import base64
import concurrent.futures
import os
import socket
import struct

import pytest

from conftest import VADD
from kernels import launch_vadd
from service_under_test import until

SIZE = 3 * 1024 * 1024 + 17


@pytest.fixture
def ten(client, session):
    """A buffer that holds the digits 0 to 9."""
    assert client.put_octets(session + "/buffers/ten", b"0123456789").status == 201
    return session + "/buffers/ten"


def test_create_by_size(client, session):
    made = client.post(session + "/buffers", {"size": 100})
    info = made.json()
    assert made.status == 201 and info["size"] == 100 and info["id"].startswith("b_") and info["created_at"]
    assert made.headers["Location"] == f"{session}/buffers/{info['id']}"
    assert client.get(made.headers["Location"]).json() == info
    assert client.delete(made.headers["Location"]).status == 204
    for answer in (client.get(made.headers["Location"]), client.delete(made.headers["Location"]), client.get(made.headers["Location"] + "/data")):
        assert answer.status == 404 and answer.code == "buffer_not_found"


def test_kernels_find_a_buffer_at_its_address(client, session):
    """In a struct that is passed as bytes, and offset by arithmetic: as programs do that hold pointers."""
    source = """struct view { const float *from; float *to; };
    extern "C" __global__ void twice(struct view v) { v.to[threadIdx.x] = 2 * v.from[threadIdx.x]; }"""
    values = struct.pack("<4f", 1, 2, 3, 4)
    x = client.put_octets(session + "/buffers/x", values).json()
    y = client.put(session + "/buffers/y", {"size": 32}).json()
    assert client.get(session + "/buffers/x").json()["address"] == x["address"] != y["address"] and x["address"] % 256 == 0
    module = client.put(session + "/modules/view", {"source": source}).json()["id"]
    view = base64.b64encode(struct.pack("<QQ", x["address"], y["address"] + 16)).decode()
    done = client.post(session + "/launches", {"module": module, "kernel": "twice", "grid": [1], "block": [4], "args": [{"bytes": view}]})
    assert done.status == 200, done.body
    assert struct.unpack("<4f", client.get(session + "/buffers/y/data").body[16:]) == (2, 4, 6, 8)


def test_create_from_octets(client, session):
    data = os.urandom(SIZE)
    made = client.post_octets(session + "/buffers", data)
    assert made.status == 201 and made.json()["size"] == SIZE and made.headers["ETag"]
    read = client.get(made.headers["Location"] + "/data")
    assert read.status == 200 and read.body == data
    assert read.headers["Content-Type"] == "application/octet-stream" and read.headers["Accept-Ranges"] == "bytes"


def test_put_is_idempotent_by_size(client, session):
    path = session + "/buffers/p"
    assert client.put(path, {"size": 4}).status == 201
    assert client.put(path, {"size": 4}).status == 200
    assert client.put(path, {"size": 5}).code == "spec_conflict"
    assert client.put_octets(path, b"abcd").status == 200
    assert client.get(path + "/data").body == b"abcd"
    assert client.put_octets(path, b"abcde").code == "spec_conflict"


@pytest.mark.parametrize("body,code", [({}, "invalid_field"), ({"size": 0}, "invalid_field"), ({"size": -1}, "invalid_field"),
                                       ({"size": 1.5}, "invalid_field"), ({"size": True}, "invalid_field"), ({"size": 4, "x": 1}, "unknown_field"),
                                       ({"size": "18446744073709551616"}, "invalid_field")])
def test_bad_sizes(client, session, body, code):
    assert client.post(session + "/buffers", body).code == code


def test_sizes_no_device_has(client, session):
    answer = client.post(session + "/buffers", {"size": 1 << 50})
    assert answer.status in (403, 507) and answer.code in ("quota_exceeded", "device_memory_exhausted")
    assert answer.json()["limit"]["requested"] == 1 << 50
    assert client.post(session + "/buffers", {"size": 8}).status == 201, "the session goes on"


def test_quota_of_the_session(client):
    assert client.put("/v1/sessions/small", {"memory_limit": 1000}).status == 201
    try:
        assert client.put("/v1/sessions/small/buffers/a", {"size": 600}).status == 201
        refused = client.put("/v1/sessions/small/buffers/b", {"size": 600})
        assert refused.status == 403 and refused.code == "quota_exceeded"
        assert client.put_octets("/v1/sessions/small/buffers/b", b"x" * 600).code == "quota_exceeded"
        assert client.delete("/v1/sessions/small/buffers/a").status == 204
        assert client.put_octets("/v1/sessions/small/buffers/b", b"x" * 600).status == 201
    finally:
        client.delete("/v1/sessions/small")


def test_media_types(client, session):
    assert client.post(session + "/buffers", b"x", Content_Type="text/plain").code == "unsupported_media_type"
    client.put(session + "/buffers/a", {"size": 1})
    answer = client.put(session + "/buffers/a/data", b"x", Content_Type="text/plain")
    assert answer.code == "unsupported_media_type" and answer.headers["Accept"] == "application/octet-stream"
    assert client.put_octets(session + "/buffers/a/data", b"x", Content_Encoding="gzip").status == 415


@pytest.mark.parametrize("header,status,body,content_range", [
    (None, 200, b"0123456789", None), ("bytes=2-4", 206, b"234", "bytes 2-4/10"), ("bytes=5-", 206, b"56789", "bytes 5-9/10"),
    ("bytes=-3", 206, b"789", "bytes 7-9/10"), ("bytes=-50", 206, b"0123456789", "bytes 0-9/10"), ("bytes=8-100", 206, b"89", "bytes 8-9/10"),
    ("bytes=0-0", 206, b"0", "bytes 0-0/10"), ("bytes=0-1,3-4", 200, b"0123456789", None), ("bytes=4-2", 200, b"0123456789", None),
    ("lines=1-2", 200, b"0123456789", None), ("bytes=x", 200, b"0123456789", None),
    ("bytes=8-99999999999999999999", 206, b"89", "bytes 8-9/10"), ("bytes=-99999999999999999999", 206, b"0123456789", "bytes 0-9/10"),
])
def test_ranges(client, ten, header, status, body, content_range):
    headers = {"Range": header} if header else {}
    answer = client.get(ten + "/data", **headers)
    assert (answer.status, answer.body, answer.headers["Content-Range"]) == (status, body, content_range)
    head = client.head(ten + "/data", **headers)
    assert (head.status, head.body, int(head.headers["Content-Length"])) == (200, b"", 10), "Range is for GET alone"
    assert head.headers["Content-Range"] is None and head.headers["ETag"] == answer.headers["ETag"]


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=99-100", "bytes=-0", "bytes=99999999999999999999-", "bytes=18446744073709551616-18446744073709551617"])
def test_unsatisfiable_ranges(client, ten, header):
    assert client.head(ten + "/data", Range=header).status == 200
    answer = client.get(ten + "/data", Range=header)
    assert answer.status == 416 and answer.code == "range_not_satisfiable" and answer.headers["Content-Range"] == "bytes */10"


def test_entity_tags(client, ten):
    tag = client.get(ten + "/data").headers["ETag"]
    assert client.get(ten + "/data").headers["ETag"] == tag, "reading changes nothing"
    unchanged = client.get(ten + "/data", If_None_Match=tag)
    assert unchanged.status == 304 and unchanged.body == b"" and unchanged.headers["ETag"] == tag
    assert client.get(ten + "/data", If_Match='"other"').code == "precondition_failed"
    assert client.get(ten + "/data", Range="bytes=0-1", If_Range=tag).status == 206
    assert client.get(ten + "/data", Range="bytes=0-1", If_Range='"other"').status == 200
    written = client.put_octets(ten + "/data", b"abcdefghij", If_Match=tag)
    assert written.status == 204 and written.headers["ETag"] != tag
    assert client.put_octets(ten + "/data", b"ABCDEFGHIJ", If_Match=tag).code == "precondition_failed"
    assert client.get(ten + "/data", If_None_Match=tag).body == b"abcdefghij"
    assert client.post(ten + "/fill", {"pattern": {"u8": 65}}).status == 204
    assert client.get(ten + "/data").headers["ETag"] != written.headers["ETag"]


MALFORMED = ["", " ", "1.5", '"a', '"a"x', '"a" "b"', '*, "a"', "W/", "a, b", '"a b"', ","]


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
@pytest.mark.parametrize("value", MALFORMED)
def test_malformed_conditions_are_no_absent_ones(client, ten, header, value):
    for answer in (client.request("PUT", ten + "/data", b"XXXXXXXXXX", {"Content-Type": "application/octet-stream", header: value}),
                   client.request("GET", ten + "/data", headers={header: value}), client.request("GET", ten + "/data", headers={header: "*", header.lower(): value})):
        assert (answer.status, answer.code) == (400, "invalid_header") and answer.json()["detail"].startswith(f"{header} must be")
    assert client.get(ten + "/data").body == b"0123456789", "nothing was written"


@pytest.mark.parametrize("value", ["", "*", "1.5", '"a"x', '"a", "b"', "yesterday"])
def test_malformed_if_range(client, ten, value):
    answer = client.get(ten + "/data", Range="bytes=0-1", If_Range=value)
    assert (answer.status, answer.code) == (400, "invalid_header") and answer.json()["detail"].startswith("If-Range must be")
    assert client.get(ten + "/data", If_Range=value).status == 200, "without Range it is nothing"
    assert client.head(ten + "/data", Range="bytes=0-1", If_Range=value).status == 200


def test_if_range_with_a_time(client, ten):
    """Buffers have no modification times, so no date matches: the whole is answered."""
    assert client.get(ten + "/data", Range="bytes=0-1", If_Range="Sun, 06 Nov 1994 08:49:37 GMT").status == 200


def test_malformed_conditions_elsewhere(client, vadd):
    done = client.post(vadd + "/launches", launch_vadd(id="one"))
    assert done.status == 200
    for path in ("/launches/one", "/modules/m/code"):
        assert client.get(vadd + path, If_None_Match='"a" junk').code == "invalid_header"
        assert client.get(vadd + path, If_None_Match="*").status == 304


@pytest.mark.parametrize("name", ["a@b", "a:b", "a;b", "a,b", "a+b", "a=b", "a!b", "A", "a.b", "~a", "a%20b", "a%61%40", "-a", "x" * 64])
def test_one_rule_for_names(client, session, name):
    """All kinds of names in paths: a name that nothing can have is not found; an invalid new name is 400."""
    empty = {"ops": []}
    for path, body in ((f"/v1/sessions/{name}", {}), (f"{session}/buffers/{name}", {"size": 4}), (f"{session}/modules/{name}", {"source": VADD}),
                       (f"{session}/programs/{name}", empty)):
        answer = client.put(path, body)
        assert (answer.status, answer.code) == (400, "invalid_field"), (path, answer)
        assert "an id must have 1 to 63 characters of a-z, 0-9, '_' and '-'" in answer.json()["detail"]
        assert client.get(path).status == 404
    client.put_octets(f"{session}/buffers/{name}", b"1234").expect(400, "invalid_field")
    for path in ("/v1/kernels/", "/v1/devices/", "/problems/", session + "/launches/", session + "/batches/", "/v1/run/"):
        assert client.get(path + name).status == 404, path


def test_encoded_names_are_the_names(client, session):
    assert client.put(session + "/buffers/a%62", {"size": 4}).json()["id"] == "ab"
    assert client.get(session + "/buffers/%61b").status == 200
    for bad in ("a%", "a%4", "a%zz", "a%0a"):
        assert client.put(session + "/buffers/" + bad, {"size": 4}).status == 400


def test_writing_parts(client, ten):
    assert client.put_octets(ten + "/data", b"abc", Content_Range="bytes 2-4/10").status == 204
    assert client.put_octets(ten + "/data", b"Z", Content_Range="bytes 9-9/*").status == 204
    assert client.get(ten + "/data").body == b"01abc5678Z"


@pytest.mark.parametrize("body,content_range,status,code", [
    (b"abc", None, 400, "length_mismatch"), (b"x" * 11, None, 413, "body_too_large"), (b"abc", "bytes 0-3/10", 400, "length_mismatch"),
    (b"abcd", "bytes 0-2/10", 400, "length_mismatch"), (b"abc", "bytes 8-10/10", 416, "range_not_satisfiable"),
    (b"abc", "bytes 8-10/*", 416, "range_not_satisfiable"), (b"abc", "bytes 0-2/11", 400, "invalid_content_range"),
    (b"abc", "bytes 2-0/10", 400, "invalid_content_range"), (b"abc", "bytes */10", 400, "invalid_content_range"),
    (b"abc", "nonsense", 400, "invalid_content_range"), (b"abc", "bytes=0-2/10", 400, "invalid_content_range"), (b"", None, 400, "length_mismatch"),
])
def test_refused_writes_change_nothing(client, ten, body, content_range, status, code):
    headers = {"Content_Range": content_range} if content_range else {}
    answer = client.put_octets(ten + "/data", body, **headers)
    assert (answer.status, answer.code) == (status, code)
    if status == 416:
        assert answer.headers["Content-Range"] == "bytes */10"
    assert client.get(ten + "/data").body == b"0123456789"


def chunked(client, path, pieces, **headers):
    sent = {"Content-Type": "application/octet-stream", "Transfer-Encoding": "chunked"}
    sent.update({name.replace("_", "-"): value for name, value in headers.items()})
    return client.request("PUT", path, iter(pieces), sent, encode_chunked=True)


def test_chunked_writes_need_a_range(client, ten):
    assert chunked(client, ten + "/data", [b"01234", b"56789"]).code == "length_required"
    assert chunked(client, ten + "/data", [b"ab", b"c"], Content_Range="bytes 0-2/10").status == 204
    assert client.get(ten + "/data").body == b"abc3456789"
    assert chunked(client, ten + "/data", [b"x"], Content_Range="bytes 0-2/10").code == "length_mismatch"
    assert chunked(client, ten + "/data", [b"xx", b"xxxx"], Content_Range="bytes 0-2/10").code == "length_mismatch"


def test_chunked_creates_need_a_length(client, session):
    assert chunked(client, session + "/buffers/n", [b"abc"]).code == "length_required"
    assert client.get(session + "/buffers/n").code == "buffer_not_found"


def test_parallel_writes_and_reads_of_disjoint_ranges(service, client, session):
    data, part = os.urandom(8 * 1024 * 1024), 1024 * 1024
    assert client.put(session + "/buffers/big", {"size": len(data)}).status == 201
    path = session + "/buffers/big/data"

    def write(at):
        one = service.client()
        sent = one.put_octets(path, data[at:at + part], Content_Range=f"bytes {at}-{at + part - 1}/{len(data)}")
        read = one.get(path, Range=f"bytes={at}-{at + part - 1}")
        one.close()
        return sent.status, read.status, read.body == data[at:at + part]

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert set(threads.map(write, range(0, len(data), part))) == {(204, 206, True)}
    assert client.get(path).body == data


@pytest.mark.parametrize("pattern,expected", [({"u8": 0x41}, b"A" * 16), ({"u16": 0x4241}, b"AB" * 8), ({"u32": 0x44434241}, b"ABCD" * 4),
                                              ({"f32": 1.0}, b"\0\0\x80?" * 4), ({"u64": "5208208757389214273"}, b"ABCDEFGH" * 2)])
def test_fill(client, session, pattern, expected):
    client.put(session + "/buffers/f", {"size": 16})
    assert client.post(session + "/buffers/f/fill", {"pattern": pattern}).status == 204
    assert client.get(session + "/buffers/f/data").body == expected


def test_fill_of_a_part_and_refusals(client, ten):
    assert client.post(ten + "/fill", {"pattern": {"u8": 0x2e}, "offset": 2, "size": 3}).status == 204
    assert client.get(ten + "/data").body == b"01...56789"
    assert client.post(ten + "/fill", {"pattern": {"u32": 1}, "offset": 2, "size": 4}).code == "invalid_field"
    assert client.post(ten + "/fill", {"pattern": {"u8": 1}, "offset": 8, "size": 4}).code == "range_not_satisfiable"
    assert client.post(ten + "/fill", {"pattern": {"u8": 1}, "size": "18446744073709551615"}).code == "range_not_satisfiable"
    for pattern in (5, {"buf": "ten"}, {"u8": 256}, {}):
        assert client.post(ten + "/fill", {"pattern": pattern}).code == "invalid_field", pattern
    assert client.post(ten + "/fill", {}).code == "invalid_field"
    assert client.get(ten + "/data").body == b"01...56789"


def test_copy(client, session, ten):
    assert client.put_octets(session + "/buffers/to", b"abcdefghijkl").status == 201
    to = session + "/buffers/to"
    assert client.post(to + "/copy", {"from": "ten"}).status == 204
    assert client.get(to + "/data").body == b"0123456789kl"
    assert client.post(to + "/copy", {"from": "ten", "from_offset": 8, "offset": 1}).status == 204
    assert client.get(to + "/data").body == b"0893456789kl"
    assert client.post(to + "/copy", {"from": "ten", "size": 2, "offset": 10}).status == 204
    assert client.get(to + "/data").body == b"089345678901"
    assert client.post(to + "/copy", {"from": "ten", "size": 11}).code == "range_not_satisfiable"
    assert client.post(to + "/copy", {"from": "nobody"}).code == "buffer_not_found"
    assert client.post(to + "/copy", {}).code == "invalid_field"


def test_list_in_pages(client, session):
    for i in range(5):
        client.put(f"{session}/buffers/n{i}", {"size": i + 1})
    first = client.get(session + "/buffers?limit=3").json()
    rest = client.get(f"{session}/buffers?limit=3&cursor={first['next_cursor']}").json()
    assert sorted(item["id"] for item in first["items"] + rest["items"]) == [f"n{i}" for i in range(5)]
    assert rest["next_cursor"] is None


def test_another_sessions_buffer_is_not_there(client, ten):
    assert client.put("/v1/sessions/other").status == 201
    try:
        assert client.get("/v1/sessions/other/buffers/ten").code == "buffer_not_found"
        assert client.put_octets("/v1/sessions/other/buffers/ten/data", b"x").code == "buffer_not_found"
    finally:
        client.delete("/v1/sessions/other")


def test_a_client_that_leaves_in_the_middle_leaves_no_buffer(service, client, session):
    with socket.create_connection((service.host, service.port)) as s:
        s.sendall((f"PUT {session}/buffers/half HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
                   f"Content-Length: 1000000\r\n\r\n").encode() + b"x" * 500000)
    until(lambda: not client.get(session).json()["usage"]["memory_bytes"] and client.get(session + "/buffers/half").status != 200,
          "the half-filled buffer stays", 60)


@pytest.mark.parametrize("size", [16, 300 * 1024, 3 * 1024 * 1024])
def test_who_has_the_last_byte_may_delete(client, session, size):
    """An answered upload or download no longer uses the buffer."""
    data = os.urandom(size)
    for _ in range(30):
        assert client.put_octets(session + "/buffers/b", data).status == 201
        assert client.get(session + "/buffers/b/data").body == data
        assert client.delete(session + "/buffers/b").status == 204
        assert client.put(session + "/buffers/b", {"size": size}).status == 201
        assert client.put_octets(session + "/buffers/b/data", data).status == 204
        assert client.delete(session + "/buffers/b").status == 204
