"""Content-Digest of requests, Content-Digest and Repr-Digest of answers, and the figures of a session's memory."""
import base64
import concurrent.futures
import hashlib
import json
import os

import pytest
from service_under_test import until

MIB = 1024 * 1024
TABLE = []
for value in range(256):
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    TABLE.append(value)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return "crc32c=:" + base64.b64encode((crc ^ 0xFFFFFFFF).to_bytes(4, "big")).decode() + ":"


def sha_256(data):
    return "sha-256=:" + base64.b64encode(hashlib.sha256(data).digest()).decode() + ":"


DIGESTS = [sha_256, crc32c, lambda data: crc32c(data) + ", " + sha_256(data), lambda data: "sha-512=:AAAA:, " + sha_256(data)]
WRONG = "sha-256=:" + base64.b64encode(bytes(32)).decode() + ":"
MALFORMED = ["sha-256", "sha-256=abc", "sha-256=:", "sha-256=:AAAA:", "sha-256=:!:", "SHA-256=:AAAA:", WRONG + ",", "md5=1"]


@pytest.fixture
def digits(client, session):
    assert client.put_octets(session + "/buffers/b", b"0123456789").status == 201
    return session + "/buffers/b/data"


# ---- bodies of requests ----

@pytest.mark.parametrize("digest", DIGESTS)
def test_right_digests_pass(client, session, digest):
    data = os.urandom(2 * MIB if digest is sha_256 else 20001)
    client.put_octets(session + "/buffers/b", data, Content_Digest=digest(data)).expect(201)
    assert client.get(session + "/buffers/b/data").body == data
    data = bytes(reversed(data))
    assert client.put_octets(session + "/buffers/b/data", data, Content_Digest=digest(data)).status == 204
    part = client.put_octets(session + "/buffers/b/data", b"part", Content_Digest=digest(b"part"),
                             Content_Range=f"bytes 100-103/{len(data)}")
    assert part.status == 204
    assert client.get(session + "/buffers/b/data").body == data[:100] + b"part" + data[104:]
    text = json.dumps({"size": 10}).encode()
    assert client.post(session + "/buffers", text, Content_Type="application/json", Content_Digest=digest(text)).status == 201
    assert client.post(session + "/sync", Content_Digest=digest(b"")).status == 200
    assert client.get(session, Content_Digest=digest(b"")).status == 200


def test_a_mismatch_names_both_digests(client, digits):
    answer = client.put_octets(digits, b"abcdefghij", Content_Digest=WRONG)
    assert answer.status == 400 and answer.code == "digest_mismatch"
    detail = answer.json()["detail"]
    assert "expected " + WRONG.removeprefix("sha-256=") in detail and "computed " + sha_256(b"abcdefghij").removeprefix("sha-256=") in detail
    assert "indeterminate" not in detail
    one_of_two = client.put_octets(digits, b"abcdefghij", Content_Digest=sha_256(b"abcdefghij") + ", crc32c=:AAAAAA==:")
    assert one_of_two.code == "digest_mismatch" and "crc32c" in one_of_two.json()["detail"]
    assert client.get(digits).body == b"0123456789"


def test_a_refused_body_changes_nothing(client, session, digits):
    before = client.head(digits).headers["ETag"]
    assert client.put_octets(digits, b"abcdefghij", Content_Digest=WRONG).code == "digest_mismatch"
    assert client.put_octets(session + "/buffers/b", b"abcdefghij", Content_Digest=WRONG).code == "digest_mismatch"
    assert client.put_octets(digits, b"ab", Content_Digest=WRONG, Content_Range="bytes 0-1/10").code == "digest_mismatch"
    assert client.get(digits).body == b"0123456789"
    assert client.head(digits).headers["ETag"] == before
    for answer in (client.post_octets(session + "/buffers", b"x" * 100, Content_Digest=WRONG),
                   client.put_octets(session + "/buffers/new", b"x" * 100, Content_Digest=WRONG),
                   client.put(session + "/buffers/new", {"size": 5}, Content_Digest=WRONG),
                   client.put_cuda(session + "/modules/new", "", Content_Digest=WRONG),
                   client.put(session + "/../nothing/x"[3:], {}, Content_Digest=WRONG)):
        assert answer.status in (400, 404)
    assert [b["id"] for b in client.get(session + "/buffers").json()["items"]] == ["b"]
    assert client.get(session + "/modules").json()["items"] == []
    assert client.get(session).json()["usage"]["memory_bytes"] == 10
    assert client.put_octets(digits, b"abcdefghij", Content_Digest=sha_256(b"abcdefghij")).status == 204
    assert client.head(digits).headers["ETag"] != before


@pytest.mark.parametrize("method,path,body,media", [
    ("POST", "/v1/sessions", b"{}", "application/json"), ("PUT", "/v1/sessions/digest", b"{}", "application/json"),
    ("PATCH", "{s}", b'{"idle_timeout_s":100}', "application/json"), ("POST", "{s}/reset", b"{}", "application/json"),
    ("POST", "{s}/sync", b"{}", "application/json"), ("POST", "{s}/memory/trim", b"{}", "application/json"),
    ("POST", "{s}/buffers", b'{"size":4}', "application/json"), ("POST", "{s}/buffers", b"abcd", "application/octet-stream"),
    ("PUT", "{s}/buffers/c", b"abcd", "application/octet-stream"), ("PUT", "{s}/buffers/b/data", b"9876543210", "application/octet-stream"),
    ("POST", "{s}/buffers/b/fill", b'{"pattern":{"u8":1}}', "application/json"),
    ("POST", "{s}/buffers/b/copy", b'{"from":"b"}', "application/json"), ("POST", "{s}/modules", b"//", "text/x-cuda"),
    ("PUT", "{s}/modules/m", b"//", "text/x-cuda"), ("POST", "{s}/launches", b"{}", "application/json"),
    ("DELETE", "{s}/buffers/b", None, None), ("GET", "{s}", None, None)])
def test_every_endpoint_checks(client, session, digits, method, path, body, media):
    headers = {"Content-Type": media} if media else {}
    path = path.replace("{s}", session)
    before = client.get(session).json()
    wrong = client.request(method, path, body, {**headers, "Content-Digest": WRONG})
    assert wrong.status == 400 and wrong.code == "digest_mismatch", wrong
    strange = client.request(method, path, body, {**headers, "Content-Digest": "md5=:AAAA:"})
    assert strange.status == 400 and strange.code == "unsupported_digest"
    assert "sha-256" in strange.headers["Want-Content-Digest"] and "crc32c" in strange.headers["Want-Content-Digest"]
    after = client.get(session).json()
    assert after["generation"] == before["generation"] and after["usage"] == before["usage"]


@pytest.mark.parametrize("field", MALFORMED)
def test_malformed_digests(client, digits, field):
    answer = client.put_octets(digits, b"abcdefghij", Content_Digest=field)
    assert answer.status == 400 and answer.code == "invalid_header", field
    assert client.get(digits).body == b"0123456789"


def test_digests_in_two_lines_are_one_list(client, digits, service):
    body = b"abcdefghij"
    lines = f"PUT {digits} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nConnection: close\r\nContent-Digest: {{}}\r\nContent-Digest: {{}}\r\n\r\n"
    good, _ = service.raw(lines.format("md5=:AAAA:", crc32c(body)).encode() + body)
    assert good.startswith(b"HTTP/1.1 204 ")
    bad, _ = service.raw(lines.format(sha_256(body), "crc32c=:AAAAAA==:").encode() + body)
    assert bad.startswith(b"HTTP/1.1 400 ") and b"digest_mismatch" in bad


def chunked(data, pieces=7):
    step = max(1, len(data) // pieces)
    return iter([data[i:i + step] for i in range(0, len(data), step)])


def test_chunked_bodies(client, session):
    size = 3 * MIB + 5
    data = os.urandom(size)
    path = session + "/buffers/b/data"
    client.put(session + "/buffers/b", {"size": size})
    before = client.get(path).body
    headers = {"Content-Type": "application/octet-stream", "Content-Range": f"bytes 0-{size - 1}/{size}"}

    def put(body, digest):
        return client.request("PUT", path, chunked(body), {**headers, "Content-Digest": digest}, encode_chunked=True)

    assert put(data, WRONG).code == "digest_mismatch"
    assert client.get(path).body == before
    assert put(data + b"x", sha_256(data + b"x")).code == "length_mismatch"
    assert put(data[:-1], sha_256(data[:-1])).code == "length_mismatch"
    assert put(data, sha_256(data)).status == 204
    assert client.get(path).body == data


def test_a_body_too_long_to_hold_says_what_became_of_it(client, session):
    size = 64 * MIB + 1
    data = bytes(size)
    assert client.put(session + "/buffers/b", {"size": size}).status == 201
    answer = client.put_octets(session + "/buffers/b/data", data, Content_Digest=WRONG)
    assert answer.code == "digest_mismatch" and "indeterminate" in answer.json()["detail"]
    assert client.post_octets(session + "/buffers", data, Content_Digest=WRONG).code == "digest_mismatch"
    until(lambda: len(client.get(session + "/buffers").json()["items"]) == 1, seconds=30)  # what was to be made is not there
    assert client.put_octets(session + "/buffers/b/data", data, Content_Digest=sha_256(data)).status == 204


def test_the_largest_body_that_is_held(client, session):
    data = os.urandom(MIB) * 64
    assert client.put(session + "/buffers/b", {"size": len(data)}).status == 201
    assert client.post(session + "/buffers/b/fill", {"pattern": {"u8": 7}}).status == 204
    answer = client.put_octets(session + "/buffers/b/data", data, Content_Digest=WRONG)
    assert answer.code == "digest_mismatch" and "indeterminate" not in answer.json()["detail"]
    assert client.get(session + "/buffers/b/data", Range="bytes=0-99").body == b"\7" * 100
    assert client.put_octets(session + "/buffers/b/data", data, Content_Digest=sha_256(data)).status == 204
    whole = client.get(session + "/buffers/b/data", Want_Content_Digest="sha-256=1")
    assert whole.body == data and whole.headers["Content-Digest"] == sha_256(data)


def test_many_checked_uploads_at_once(service, session):
    def one(i):
        client, data = service.client(), os.urandom(MIB + i)
        path = f"{session}/buffers/p{i}"
        results = [client.put_octets(path, data, Content_Digest=digest).status for digest in (WRONG, sha_256(data))]
        same = client.get(path + "/data", Want_Content_Digest="sha-256=10")
        client.close()
        return results == [400, 201] and same.body == data and same.headers["Content-Digest"] == sha_256(data)

    with concurrent.futures.ThreadPoolExecutor(8) as executor:
        assert all(executor.map(one, range(24)))


def test_a_client_that_leaves_in_a_checked_upload(client, service, session):
    client.put(session + "/buffers/b", {"size": 5 * MIB})
    for _ in range(5):
        head = (f"PUT {session}/buffers/b/data HTTP/1.1\r\nHost: localhost\r\nContent-Length: {5 * MIB}\r\n"
                f"Content-Digest: {WRONG}\r\n\r\n").encode()
        service.raw(head + bytes(MIB), timeout=0.1)
    assert client.put_octets(session + "/buffers/b/data", bytes(5 * MIB), Content_Digest=sha_256(bytes(5 * MIB))).status == 204


# ---- contents ----

@pytest.mark.parametrize("want,digest", [("sha-256=1", sha_256), ("crc32c=1", crc32c), ("sha-256=3, crc32c=7", crc32c),
                                         ("crc32c=5, sha-256=5", sha_256), ("sha-512=10, crc32c=1", crc32c)])
def test_wanted_digests_of_contents(client, digits, want, digest):
    tag = client.get(digits).headers["ETag"]
    whole = client.get(digits, Want_Content_Digest=want)
    assert whole.status == 200 and whole.body == b"0123456789" and whole.headers["Content-Digest"] == digest(whole.body)
    assert whole.headers["ETag"] == tag and whole.headers["Content-Type"] == "application/octet-stream"
    assert "Repr-Digest" not in whole.headers
    part = client.get(digits, Want_Content_Digest=want, Want_Repr_Digest=want, Range="bytes=2-4")
    assert part.status == 206 and part.body == b"234" and part.headers["Content-Range"] == "bytes 2-4/10"
    assert part.headers["Content-Digest"] == digest(b"234") and part.headers["Repr-Digest"] == digest(b"0123456789")
    head = client.head(digits, Want_Content_Digest=want, Want_Repr_Digest=want)
    assert head.status == 200 and head.headers["Content-Length"] == "10" and head.headers["ETag"] == tag
    assert head.headers["Repr-Digest"] == digest(b"0123456789") and "Content-Digest" not in head.headers


def test_a_digest_follows_the_contents(client, session, digits):
    first = client.head(digits, Want_Repr_Digest="sha-256=1")
    client.post(session + "/buffers/b/fill", {"pattern": {"u8": 65}})
    second = client.head(digits, Want_Repr_Digest="sha-256=1")
    assert first.headers["Repr-Digest"] == sha_256(b"0123456789") and second.headers["Repr-Digest"] == sha_256(b"A" * 10)
    assert first.headers["ETag"] != second.headers["ETag"]
    unchanged = client.get(digits, Want_Content_Digest="sha-256=1", If_None_Match=second.headers["ETag"])
    assert unchanged.status == 304 and unchanged.body == b""
    assert client.get(digits, Want_Content_Digest="sha-256=1", If_Match=first.headers["ETag"]).status == 412


@pytest.mark.parametrize("want", ["sha-512=10", "sha-256=0", "sha-256=0, md5=1"])
def test_digests_that_nobody_has(client, digits, want):
    answer = client.get(digits, Want_Content_Digest=want, Want_Repr_Digest=want)
    assert answer.status == 200 and "Content-Digest" not in answer.headers and "Repr-Digest" not in answer.headers


@pytest.mark.parametrize("header", ["Want_Content_Digest", "Want_Repr_Digest"])
@pytest.mark.parametrize("want", ["sha-256", "sha-256=11", "sha-256=-1", "sha-256=:AAAA:", "sha-256=1,", "=1"])
def test_malformed_wishes(client, digits, header, want):
    answer = client.get(digits, **{header: want})
    assert answer.status == 400 and answer.code == "invalid_header"


def test_digests_of_long_contents(client, session):
    size = 64 * MIB + 1
    data = b"\5" * size
    client.put(session + "/buffers/b", {"size": size})
    client.post(session + "/buffers/b/fill", {"pattern": {"u8": 5}})
    path = session + "/buffers/b/data"
    whole = client.get(path, Want_Content_Digest="sha-256=1", Want_Repr_Digest="sha-256=1")
    assert whole.body == data and "Content-Digest" not in whole.headers, "too long to be hashed before it is sent"
    assert whole.headers["Repr-Digest"] == sha_256(data)
    most = client.get(path, Want_Content_Digest="sha-256=1", Range=f"bytes=1-{size - 1}")
    assert most.status == 206 and most.headers["Content-Digest"] == sha_256(data[1:]) and most.body == data[1:]


# ---- memory ----

MEMBERS = {"allocated_bytes", "cached_bytes", "reserved_bytes", "free_bytes", "peak_bytes", "limit_bytes", "fragmentation", "fragmentation_reason"}


def memory(client, session):
    answer = client.get(session + "/memory").expect(200)
    numbers = answer.json()
    assert set(numbers) == MEMBERS
    assert numbers["cached_bytes"] == numbers["reserved_bytes"] - numbers["allocated_bytes"] >= 0
    assert 0 <= numbers["fragmentation"] <= 1 and numbers["peak_bytes"] >= numbers["allocated_bytes"]
    return numbers


def test_memory_counts_buffers(client, session):
    before = memory(client, session)
    assert before["limit_bytes"] is None and before["free_bytes"] > 0
    client.put(session + "/buffers/a", {"size": 1000})
    client.put(session + "/buffers/b", {"size": 80 * MIB})
    full = memory(client, session)
    assert full["allocated_bytes"] == before["allocated_bytes"] + 1000 + 80 * MIB
    assert full["reserved_bytes"] >= full["allocated_bytes"]
    client.delete(session + "/buffers/b")
    trimmed = client.post(session + "/memory/trim")
    assert trimmed.status == 200 and set(trimmed.json()) == MEMBERS
    after = trimmed.json()
    assert after["allocated_bytes"] == before["allocated_bytes"] + 1000 and after["peak_bytes"] == full["peak_bytes"]
    assert after["reserved_bytes"] <= full["reserved_bytes"] - 32 * MIB  # a driver gives memory back in pieces of up to 32 MiB
    assert client.post(session + "/memory/trim", {}).status == 200
    assert client.post(session + "/memory/trim", {"x": 1}).code == "unknown_field"
    assert client.get(session + "/memory?x=1").code == "unknown_field"
    assert client.get(session + "/memory/trim").status == 405


def test_memory_of_a_session_with_a_limit(client):
    assert client.put("/v1/sessions/limited", {"memory_limit": 12345}).status == 201
    assert memory(client, "/v1/sessions/limited")["limit_bytes"] == 12345
    assert client.delete("/v1/sessions/limited").status == 204
    for answer in (client.get("/v1/sessions/limited/memory"), client.post("/v1/sessions/limited/memory/trim")):
        assert answer.status == 404 and answer.code == "session_not_found"


def test_exhausted_memory_says_how_much_there_is(client, session):
    numbers = memory(client, session)
    asked = 1 << 50
    answer = client.post(session + "/buffers", {"size": asked})
    assert answer.status == 507 and answer.code == "device_memory_exhausted"
    limit, detail = answer.json()["limit"], answer.json()["detail"]
    assert limit["name"] == "device_memory_bytes" and limit["requested"] == asked and limit["max"] >= numbers["free_bytes"]
    assert limit["used"] <= limit["max"] and f"{limit['max'] - limit['used']} of {limit['max']} bytes on the device" in detail
    assert "the largest free block has" in detail and str(asked) in detail
    assert memory(client, session)["allocated_bytes"] == numbers["allocated_bytes"]


def test_octets_larger_than_the_device(service, session):
    head = f"POST {session}/buffers HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: {1 << 50}\r\n\r\n"
    answer, closed = service.raw(head.encode())
    problem = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert closed and problem["code"] == "device_memory_exhausted" and problem["limit"]["requested"] == 1 << 50
    assert "free" in problem["detail"] and "largest free block" in problem["detail"]
