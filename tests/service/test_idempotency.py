"""Idempotency-Key: a repeated POST is answered, but not run again."""
import hashlib
import http.client
import itertools
import json
import socket
import threading
import time

import pytest

from kernels import FAULTS
from service_under_test import until

numbers = itertools.count()


@pytest.fixture
def key():
    return f"key-{next(numbers)}"


def endless(client, session):
    assert client.put_cuda(session + "/modules/e", FAULTS).status == 201
    assert client.put(session + "/buffers/p", {"size": 4}).status == 201


def idempotent(client, path, body, key, **headers):
    return client.post(path, body, Idempotency_Key=key, **headers)


def test_a_repeated_create_makes_one(client, session, key):
    first = idempotent(client, session + "/buffers", {"size": 64}, key)
    again = idempotent(client, session + "/buffers", {"size": 64}, f'"{key}"')
    assert first.status == again.status == 201
    assert again.body == first.body and again.headers["Location"] == first.headers["Location"]
    assert again.headers["Idempotency-Replayed"] == "true" and first.headers["Idempotency-Replayed"] is None
    assert again.headers["X-Request-Id"] != first.headers["X-Request-Id"]
    assert len(client.get(session + "/buffers").json()["items"]) == 1


def test_another_payload_path_or_key_is_another_matter(client, session, key):
    first = idempotent(client, session + "/buffers", {"size": 64}, key)
    assert first.status == 201
    assert idempotent(client, session + "/buffers", {"size": 32}, key).code == "idempotency_key_reused"
    assert idempotent(client, session + "/buffers", {"size": 128}, key).status == 422, "another length"
    assert idempotent(client, session + "/buffers", {"size": 64}, key + "x").status == 201
    assert client.post(session + "/buffers", {"size": 64}).status == 201
    octets = client.post(session + "/buffers", b'{"size": 64}', Content_Type="application/octet-stream", Idempotency_Key=key)
    assert octets.code == "idempotency_key_reused", "the media type is part of the payload"
    path = f"{session}/buffers/{first.json()['id']}/fill"
    assert idempotent(client, path, {"pattern": {"u8": 1}}, key).status == 204, "the key's scope is its path"
    again = idempotent(client, path, {"pattern": {"u8": 1}}, key)
    assert again.status == 204 and again.headers["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize("bad", ["", "a b", "k" * 129, '"unclosed quote"x" y', "caf\u00e9"])
def test_a_malformed_key_is_refused(client, session, bad):
    answer = client.request("POST", session + "/buffers", {"size": 64}, {"Idempotency-Key": bad.encode("latin-1")})
    assert answer.code == "invalid_header"
    assert client.get(session + "/buffers").json()["items"] == []


def test_only_posts_have_keys(client, session, key):
    assert client.put(session + "/buffers/a", {"size": 64}, Idempotency_Key=key).status == 201
    assert client.put(session + "/buffers/b", {"size": 64}, Idempotency_Key="not a key").status == 201


def test_streamed_bodies_are_hashed_as_they_pass(client, session, key):
    body = bytes(range(256)) * 8192
    first = client.post_octets(session + "/buffers", body, Idempotency_Key=key)
    again = client.post_octets(session + "/buffers", body, Idempotency_Key=key)
    assert first.status == again.status == 201 and again.body == first.body
    assert hashlib.sha256(client.get(f"{session}/buffers/{first.json()['id']}/data").body).digest() == hashlib.sha256(body).digest()
    other = bytearray(body)
    other[-1] ^= 1
    assert client.post_octets(session + "/buffers", bytes(other), Idempotency_Key=key).code == "idempotency_key_reused"
    assert len(client.get(session + "/buffers").json()["items"]) == 1


def test_a_chunked_body_is_the_same_payload(client, session, key):
    body = b"x" * 70000
    first = client.post_octets(session + "/buffers", body, Idempotency_Key=key)
    assert first.status == 201
    headers = {"Content-Type": "application/octet-stream", "Idempotency-Key": key, "Transfer-Encoding": "chunked"}
    again = client.request("POST", session + "/buffers", iter([body[:5], body[5:]]), headers, encode_chunked=True)
    assert again.status == 201 and again.body == first.body
    again = client.request("POST", session + "/buffers", iter([body, b"more"]), headers, encode_chunked=True)
    assert again.code == "idempotency_key_reused"


def test_a_digest_is_checked_on_a_repetition_too(client, session, key):
    body = b"z" * 100
    assert client.post_octets(session + "/buffers", body, Idempotency_Key=key).status == 201
    wrong = client.post_octets(session + "/buffers", body, Idempotency_Key=key, Content_Digest="crc32c=:AAAAAA==:")
    assert wrong.code == "digest_mismatch"
    assert client.post_octets(session + "/buffers", body, Idempotency_Key=key).headers["Idempotency-Replayed"] == "true"


def test_a_launch_runs_once(client, vadd, key):
    launch = {"module": "m", "kernel": "vadd", "grid": [4], "block": [256], "args": [{"buf": "a"}, {"buf": "b"}, {"buf": "c"}, {"i32": 1024}]}
    answers = [idempotent(client, vadd + "/launches", launch, key) for _ in range(5)]
    assert {a.status for a in answers} == {200} and len({a.json()["id"] for a in answers}) == 1
    assert client.get(vadd).json()["usage"]["launches"] == 1


def test_failures_of_the_request_itself_are_replayed(client, vadd, key):
    wrong = {"module": "m", "kernel": "vadd", "grid": [4], "block": [256], "args": []}
    first = idempotent(client, vadd + "/launches", wrong, key)
    again = idempotent(client, vadd + "/launches", wrong, key)
    assert first.status == again.status == 422 and again.headers["Idempotency-Replayed"] == "true"
    assert again.json()["code"] == "argument_mismatch"


def test_what_was_refused_before_it_was_looked_at_leaves_no_key(client, session, key):
    assert client.post(session + "/buffers", b"x", Content_Type="text/plain", Idempotency_Key=key).status == 415
    assert client.post(session + "/buffers", b"{}" * (1 << 20), Content_Type="application/json", Idempotency_Key=key).status == 413
    assert idempotent(client, session + "/buffers", {"size": 64}, key).status == 201


def test_while_it_runs_the_key_is_refused_from_the_header(service, client, session, key):
    endless(client, session)
    launch = {"module": "e", "kernel": "endless", "grid": [1], "block": [1], "args": [{"buf": "p"}], "timeout_ms": 600_000}
    body = json.dumps(launch).encode()
    results = []
    thread = threading.Thread(target=lambda: results.append(idempotent(service.client(), session + "/launches", launch, key)))
    thread.start()
    until(lambda: client.get(session).json()["usage"]["launches"])
    with socket.create_connection((service.host, service.port), timeout=20) as s:
        # The answer comes although no byte of the body is sent.
        s.sendall((f"POST {session}/launches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: {key}\r\n"
                   f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n").encode())
        response = http.client.HTTPResponse(s)
        response.begin()
        assert response.status == 409 and json.loads(response.read())["code"] == "idempotency_in_progress"
    assert client.post(session + "/reset").status == 200
    thread.join()
    assert results[0].code in ("cancelled", "worker_lost") and results[0].headers["Idempotency-Replayed"] is None
    again = idempotent(client, session + "/launches", launch, key)
    assert again.body == results[0].body and again.headers["Idempotency-Replayed"] == "true"


def test_who_lost_the_line_gets_the_answer_when_he_asks_again(service, client, session, key):
    endless(client, session)
    launch = {"module": "e", "kernel": "endless", "grid": [1], "block": [1], "args": [{"buf": "p"}], "timeout_ms": 1500}
    body = json.dumps(launch).encode()
    with socket.create_connection((service.host, service.port), timeout=20) as s:
        s.sendall((f"POST {session}/launches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: {key}\r\n"
                   f"Content-Length: {len(body)}\r\n\r\n").encode() + body)
        until(lambda: client.get(session).json()["usage"]["launches"], seconds=60)
    codes, deadline = [], time.monotonic() + 60
    while (answer := idempotent(client, session + "/launches", launch, key)).status == 409:
        codes.append(answer.code)
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert set(codes) <= {"idempotency_in_progress"}
    assert answer.status == 504 and answer.headers["Idempotency-Replayed"] == "true"


def test_a_body_that_breaks_off_frees_the_key(service, client, session, key):
    deadline = time.monotonic() + 20
    with socket.create_connection((service.host, service.port), timeout=20) as s:
        s.sendall((f"POST {session}/buffers HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nIdempotency-Key: {key}\r\n"
                   "Content-Length: 100\r\nExpect: 100-continue\r\n\r\n").encode())
        assert b"100 Continue" in s.recv(4096), "it has the key now"
        assert idempotent(client, session + "/buffers", {"size": 64}, key).code == "idempotency_in_progress"
    while (answer := idempotent(client, session + "/buffers", {"size": 64}, key)).status == 409:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert answer.status == 201 and answer.headers["Idempotency-Replayed"] is None


def test_callers_do_not_share_keys(start, tmp_path, key):
    rows = [{"name": name, "sha256": hashlib.sha256(name.encode() * 8).hexdigest(), "scopes": ["read", "write"]} for name in ("ann", "bob")]
    (tmp_path / "tokens.json").write_text(json.dumps({"tokens": rows}))
    (tmp_path / "tokens.json").chmod(0o600)
    service = start("--tokens", str(tmp_path / "tokens.json"))
    one, two = (service.client(Authorization=f"Bearer {name * 8}") for name in ("ann", "bob"))
    first, second = idempotent(one, "/v1/sessions", {}, key), idempotent(two, "/v1/sessions", {}, key)
    assert first.status == second.status == 201, (first, second)
    assert first.json()["id"] != second.json()["id"] and second.headers["Idempotency-Replayed"] is None
    assert one.get("/v1/limits").json()["limits"]["idempotency_keys"] == {"max": 10000, "used": 1}
    one.close(), two.close()
