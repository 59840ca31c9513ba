"""If-Match and If-None-Match of writes: a condition holds when the write begins, or no byte is written; endpoints where it is meaningless
refuse it."""
import base64
import hashlib
import socket

import pytest

MIB = 1 << 20
OTHER = '"other"'
CONDITIONAL = {"buffers_put", "data_put", "globals_put", "texels_put", "buffers_delete"}
WRITES = ("put", "post", "patch", "delete")
TEN, LETTERS = b"0123456789", b"abcdefghij"


@pytest.fixture
def ten(client, session):
    assert client.put_octets(session + "/buffers/ten", TEN).status == 201
    return session + "/buffers/ten"


def tag_of(client, buffer):
    return client.head(buffer + "/data").headers["ETag"]


def contents(client, buffer):
    return client.get(buffer + "/data").body


def failed(answer):
    return (answer.status, answer.code) == (412, "precondition_failed")


def sha_256(body):
    return "sha-256=:" + base64.b64encode(hashlib.sha256(body).digest()).decode() + ":"


class Slow:
    """A PUT of octets of which only the header is sent; the service has checked the header when it asks for the body."""

    def __init__(self, service, path, size, **headers):
        lines = [f"PUT {path} HTTP/1.1", "Host: localhost", "Content-Type: application/octet-stream", f"Content-Length: {size}", "Expect: 100-continue"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.socket = socket.create_connection((service.host, service.port), timeout=60)
        self.socket.sendall("\r\n".join(lines + ["", ""]).encode())
        assert b" 100 " in self.socket.recv(4096)

    def send(self, body):
        self.socket.sendall(body)
        answer = self.socket.recv(65536)
        self.socket.close()
        return int(answer.split()[1])


# ---- a buffer, made of octets or of a size ----

@pytest.mark.parametrize("size", [10, 3 * MIB], ids=["short", "long"])
def test_octets_replace_what_was_seen_and_nothing_else(client, session, size):
    buffer, first, second = session + "/buffers/x", bytes(size), b"x" * size
    made = client.put_octets(buffer, first)
    tag = made.headers["ETag"]
    assert tag == tag_of(client, buffer)
    for headers in ({"If_Match": OTHER}, {"If_None_Match": tag}, {"If_None_Match": "*"}, {"If_Match": tag, "If_None_Match": tag}, {"If_Match": "W/" + tag}):
        assert failed(client.put_octets(buffer, second, **headers)), headers
    assert contents(client, buffer) == first and tag_of(client, buffer) == tag
    written = client.put_octets(buffer, second, If_Match=f"{OTHER}, {tag}")
    assert written.status == 200 and written.headers["ETag"] == tag_of(client, buffer) != tag
    assert written.json() == client.get(buffer).json()
    assert contents(client, buffer) == second
    assert failed(client.put_octets(buffer, first, If_Match=tag))
    assert client.put_octets(buffer, first, If_Match="*").status == 200
    assert client.put_octets(buffer, second, If_None_Match=tag).status == 200
    assert contents(client, buffer) == second


def test_a_buffer_that_is_not_there(client, session):
    buffer = session + "/buffers/x"
    for tag in ("*", '"1.1.1"'):
        assert failed(client.put_octets(buffer, TEN, If_Match=tag))
        assert failed(client.put(buffer, {"size": 10}, If_Match=tag))
        assert failed(client.delete(buffer, If_Match=tag))
    assert client.delete(buffer, If_None_Match="*").code == "buffer_not_found"
    assert client.get(buffer).status == 404, "nothing was made"


@pytest.mark.parametrize("put", [lambda client, *arguments, **more: client.put_octets(*arguments, **more),
                                 lambda client, path, body, **more: client.put(path, {"size": len(body)}, **more)], ids=["octets", "json"])
def test_only_new_ones(client, session, put):
    buffer = session + "/buffers/x"
    assert put(client, buffer, TEN, If_None_Match="*").status == 201
    assert client.put_octets(buffer + "/data", LETTERS).status == 204
    assert failed(put(client, buffer, TEN, If_None_Match="*"))
    assert failed(put(client, buffer, TEN + TEN, If_None_Match="*"))
    assert contents(client, buffer) == LETTERS


def test_a_size_that_has_to_be_there(client, ten):
    tag = tag_of(client, ten)
    assert failed(client.put(ten, {"size": 10}, If_Match=OTHER))
    assert client.put(ten, {"size": 10}, If_Match=tag).status == 200
    assert client.put(ten, {"size": 11}, If_Match=tag).code == "spec_conflict"
    assert client.put(ten, {"size": 10, "shareable": True}, If_Match="*").code == "spec_conflict"
    assert contents(client, ten) == TEN and tag_of(client, ten) == tag


@pytest.mark.parametrize("value", ["", "1.5", '"a', '*, "a"'])
@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
def test_garbled_conditions(client, ten, header, value):
    octets = {"Content-Type": "application/octet-stream", header: value}
    for answer in (client.request("PUT", ten, LETTERS, octets), client.request("PUT", ten, b'{"size":10}', {"Content-Type": "application/json", header: value}),
                   client.request("DELETE", ten, headers={header: value})):
        assert (answer.status, answer.code) == (400, "invalid_header"), answer
    assert contents(client, ten) == TEN


def test_deletion(client, ten):
    tag = tag_of(client, ten)
    assert failed(client.delete(ten, If_Match=OTHER)) and failed(client.delete(ten, If_None_Match="*")) and failed(client.delete(ten, If_None_Match=tag))
    assert client.put_octets(ten + "/data", LETTERS).status == 204
    assert failed(client.delete(ten, If_Match=tag))
    assert contents(client, ten) == LETTERS
    assert client.delete(ten, If_Match=tag_of(client, ten)).status == 204
    assert client.get(ten).status == 404


def test_a_buffer_that_has_the_id_later_is_another_one(client, ten):
    """Although nothing was written meanwhile."""
    tag = tag_of(client, ten)
    assert client.delete(ten).status == 204
    assert client.put(ten, {"size": 10}).status == 201
    assert tag_of(client, ten) != tag
    assert client.get(ten + "/data", If_None_Match=tag).status == 200
    for path in (ten, ten + "/data"):
        assert failed(client.put_octets(path, LETTERS, If_Match=tag))
    assert failed(client.delete(ten, If_Match=tag))


# ---- what happens between the header and the first byte ----

def test_a_write_between_header_and_body(service, client, ten):
    late = Slow(service, ten, 10, If_Match=tag_of(client, ten))
    assert client.put_octets(ten + "/data", LETTERS).status == 204
    assert late.send(b"XXXXXXXXXX") == 412
    assert contents(client, ten) == LETTERS


@pytest.mark.parametrize("tag", ["*", None])
def test_a_deletion_between_header_and_body(service, client, ten, tag):
    late = Slow(service, ten, 10, If_Match=tag or tag_of(client, ten))
    assert client.delete(ten).status == 204
    assert late.send(LETTERS) == 412
    assert client.get(ten).status == 404


def test_another_one_is_faster_to_make_it(service, client, session):
    buffer = session + "/buffers/x"
    late = Slow(service, buffer, 10, If_None_Match="*")
    assert client.put_octets(buffer, TEN, If_None_Match="*").status == 201
    assert late.send(LETTERS) == 412
    assert contents(client, buffer) == TEN


@pytest.mark.parametrize("headers", [{}, {"Content_Digest": sha_256(LETTERS)}], ids=["plain", "held"])
@pytest.mark.parametrize("where", ["", "/data"])
def test_of_several_who_saw_the_same_one_writes(service, client, ten, where, headers):
    """Also when all headers are checked before the first body arrives."""
    tag = tag_of(client, ten)
    several = []
    for _ in range(4):
        try:
            several.append(Slow(service, ten + where, 10, If_Match=tag, **headers))
        except AssertionError:  # refused at its header
            assert where and not headers and several
    assert sorted(one.send(LETTERS) for one in several) == sorted([200 if not where else 204] + [412] * (len(several) - 1))
    assert contents(client, ten) == LETTERS


# ---- the other requests that write ----

def operations(document):
    for path, item in document["paths"].items():
        for method in WRITES:
            if method in item:
                yield method, path, item[method]


def names_of(document, operation):
    found = [document["components"]["parameters"][p["$ref"].rsplit("/", 1)[1]] if "$ref" in p else p for p in operation.get("parameters", [])]
    return {parameter["name"] for parameter in found}


def test_where_a_condition_has_nothing_to_hold_for_it_is_refused(client, session):
    document = client.get("/openapi.json").json()
    seen = set()
    for method, path, operation in operations(document):
        names = names_of(document, operation)
        if {"If-Match", "If-None-Match"} <= names:
            assert "412" in operation["responses"]
            seen.add(operation["operationId"])
            continue
        assert not {"If-Match", "If-None-Match"} & names
        target = path.replace("{sid}", session.rsplit("/", 1)[1])
        while "{" in target:
            target = target[:target.index("{")] + "x" + target[target.index("}") + 1:]
        for header in ("If-Match", "If-None-Match"):
            answer = client.request(method.upper(), target, headers={header: "*"})
            assert (answer.status, answer.code) == (400, "invalid_header"), (method, target, answer)
            assert header in answer.json()["detail"]
    assert seen == CONDITIONAL
    assert client.get(session).json()["state"] == "ready"


def test_fill_and_copy_with_a_condition_do_nothing(client, session, ten):
    tag = tag_of(client, ten)
    assert client.put_octets(session + "/buffers/from", LETTERS).status == 201
    for answer in (client.post(ten + "/fill", {"pattern": {"u8": 65}}, If_Match=tag), client.post(ten + "/copy", {"from": "from"}, If_Match=OTHER)):
        assert answer.code == "invalid_header"
    assert contents(client, ten) == TEN
