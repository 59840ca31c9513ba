"""Sessions: create, get, change, list, delete; visibility; refusals."""
import pytest


def test_life(client):
    made = client.post("/v1/sessions", {"labels": {"for": "test"}, "idle_timeout_s": 60, "memory_limit": 1 << 20})
    assert made.status == 201
    path, info = made.headers["Location"], made.json()
    assert path == "/v1/sessions/" + info["id"] and info["id"].startswith("s_")
    assert info["state"] == "ready" and info["labels"] == {"for": "test"} and info["memory_limit"] == 1 << 20
    assert info["idle_timeout_s"] == 60 and info["created_at"] < info["expires_at"] and "fault" not in info
    assert set(info["usage"]) == {"device_time_us", "memory_bytes", "buffers", "modules", "launches", "launches_finished"}
    assert client.get(path).json()["id"] == info["id"]
    assert client.head(path).status == 200
    assert client.delete(path).status == 204
    for answer in (client.get(path), client.delete(path), client.post(path + "/reset"), client.get(path + "/buffers")):
        assert answer.status == 404 and answer.code == "session_not_found"


def test_post_without_a_body(client):
    made = client.post("/v1/sessions")
    assert made.status == 201
    assert client.delete(made.headers["Location"]).status == 204


def test_put_is_idempotent(client, session):
    again = client.put(session)
    assert again.status == 200 and "Location" not in again.headers
    assert client.put(session, {"idle_timeout_s": 5}).code == "spec_conflict"


@pytest.mark.parametrize("name", ["UPPER", "-a", "_a", "a.b", "a" * 64])
def test_bad_names(client, name):
    assert client.put("/v1/sessions/" + name).code == "invalid_field"
    assert client.get("/v1/sessions/" + name).code == "session_not_found"


@pytest.mark.parametrize("body,code,pointer", [
    ({"idle_timeout_s": 0}, "invalid_field", "/idle_timeout_s"),
    ({"idle_timeout_s": 31622401}, "invalid_field", "/idle_timeout_s"),
    ({"idle_timeout_s": 1.5}, "invalid_field", "/idle_timeout_s"),
    ({"idle_timeout_s": "x"}, "invalid_field", "/idle_timeout_s"),
    ({"max_lifetime_s": 0}, "invalid_field", "/max_lifetime_s"),
    ({"lease_s": -1}, "invalid_field", "/lease_s"),
    ({"lease_s": 86401}, "invalid_field", "/lease_s"),
    ({"lease_s": "x"}, "invalid_field", "/lease_s"),
    ({"memory_limit": -1}, "invalid_field", "/memory_limit"),
    ({"device": 7}, "invalid_field", "/device"),
    ({"labels": []}, "invalid_field", "/labels"),
    ({"labels": {"a": 1}}, "invalid_field", "/labels/a"),
    ({"labels": {"": "x"}}, "invalid_field", "/labels/"),
    ({"labels": {"a": "x" * 256}}, "invalid_field", "/labels/a"),
    ({"labels": {str(i): "" for i in range(17)}}, "invalid_field", "/labels"),
    ({"surprise": 1}, "unknown_field", "/surprise"),
    ({"Device": "cpu:0"}, "unknown_field", "/Device"),
])
def test_bad_members(client, body, code, pointer):
    answer = client.post("/v1/sessions", body)
    assert answer.status == 400 and answer.code == code
    assert answer.json()["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize("text", [b"{", b"[1,]", b'{"a":1,"a":2}', b'{"labels":{"a":"\\u0000"}}', b'{"idle_timeout_s":01}', b'{"idle_timeout_s":1.}',
                                  b'{"device":"\xff"}', b"nul", b'{"a":' * 40 + b"1" + b"}" * 40, b'{}x', b"\xef\xbb\xbf{}"])
def test_malformed_json(client, text):
    answer = client.post("/v1/sessions", text, Content_Type="application/json")
    assert answer.status == 400 and answer.code == "invalid_json"


def test_a_body_that_is_no_object(client):
    assert client.post("/v1/sessions", b"[]", Content_Type="application/json").code == "invalid_field"


def test_lenient_requests_skip_what_is_unknown(client):
    made = client.post("/v1/sessions", {"surprise": 1}, Prefer="handling=lenient")
    assert made.status == 201
    client.delete(made.headers["Location"])


def test_unknown_device(client):
    assert client.post("/v1/sessions", {"device": "gpu:99"}).code == "device_not_found"


def test_wrong_media_type(client):
    answer = client.post("/v1/sessions", b"a=b", Content_Type="application/x-www-form-urlencoded")
    assert answer.status == 415 and answer.code == "unsupported_media_type"


def test_patch(client, session):
    patched = client.patch(session, {"idle_timeout_s": 77, "labels": {"a": "1"}}).json()
    assert patched["idle_timeout_s"] == 77 and patched["labels"] == {"a": "1"}
    assert client.patch(session, {"labels": {}}).json()["labels"] == {}
    assert client.get(session).json()["idle_timeout_s"] == 77
    assert client.patch(session, {"device": "cpu:0"}).code == "unknown_field"
    assert client.patch(session, {"idle_timeout_s": 0}).code == "invalid_field"


def test_reset_voids_everything(client, vadd):
    before = client.get(vadd).json()
    assert before["usage"]["buffers"] == 3 and before["usage"]["modules"] == 1
    after = client.post(vadd + "/reset")
    assert after.status == 200 and after.json()["generation"] == before["generation"] + 1
    assert after.json()["usage"]["memory_bytes"] == 0
    assert client.get(vadd + "/buffers/a").code == "buffer_not_found"
    assert client.get(vadd + "/modules/m").code == "module_not_found"
    assert client.put(vadd + "/buffers/a", {"size": 8}).status == 201


def test_sync(client, session):
    assert client.post(session + "/sync").json() == {}
    assert client.post(session + "/sync", {"stream": "never-used"}).json() == {}
    assert client.post(session + "/sync", {"stream": 5}).code == "invalid_field"
    assert client.post(session + "/sync", {"streams": "x"}).code == "unknown_field"


def test_list_in_pages(client):
    paths = [f"/v1/sessions/page{i}" for i in range(3)]
    try:
        for path in paths:
            assert client.put(path).status == 201
        seen, cursor = [], ""
        while cursor is not None:
            page = client.get("/v1/sessions?limit=1" + (f"&cursor={cursor}" if cursor else "")).json()
            assert len(page["items"]) <= 1
            seen += [item["id"] for item in page["items"]]
            cursor = page["next_cursor"]
        assert len(seen) == len(set(seen)) and {"page0", "page1", "page2"} <= set(seen)
    finally:
        for path in paths:
            client.delete(path)


def test_quota_of_sessions(start):
    client = start("--pool-size", "0").client()
    for i in range(8):
        assert client.put(f"/v1/sessions/q{i}").status == 201
    refused = client.put("/v1/sessions/q8")
    assert refused.status == 403 and refused.code == "quota_exceeded"
    limit = refused.json()["limit"]
    assert (limit["max"], limit["used"]) == (8, 8)
    assert refused.json()["detail"].startswith("8 of 8 sessions are in use: delete one")
    assert client.delete("/v1/sessions/q3").status == 204
    assert client.put("/v1/sessions/q8").status == 201
