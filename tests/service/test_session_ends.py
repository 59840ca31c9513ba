"""How sessions end by themselves, by idle time, lease or lifetime, and what their owner is told afterwards."""
import time

from kernels import FAULTS, launch
from service_under_test import until
from test_tenants import as_caller, token_file

KEPT = 64  # ENDED_SESSIONS_KEPT_MAX


def ended(client, name):
    """What is told of a session that has ended."""
    answer = client.get(f"/v1/sessions/{name}").expect(404, "session_not_found")
    return answer.json().get("ended")


def await_end(client, name):
    """By the list alone: looking at the session itself would be use."""
    until(lambda: name not in [one["id"] for one in client.get("/v1/sessions").json()["items"]], f"{name} does not end")


def test_a_lease_that_nobody_renews_ends_the_session(client):
    made = client.put("/v1/sessions/leased", {"lease_s": 1}).expect(201).json()
    assert made["lease_s"] == 1 and made["idle_timeout_s"] == 600 and made["expires_at"] > made["created_at"]
    await_end(client, "leased")
    told = ended(client, "leased")
    assert (told["reason"], told["limit_s"]) == ("lease", 1) and told["at"] > made["created_at"]
    detail = client.post("/v1/sessions/leased/heartbeat").expect(404, "session_not_found").json()["detail"]
    assert detail == "the session has ended: no request came for it for 1 s, its lease_s"


def test_heartbeats_keep_a_leased_session(client):
    client.put("/v1/sessions/kept", {"lease_s": 3}).expect(201)
    for _ in range(60):
        assert client.post("/v1/sessions/kept/heartbeat").expect(204).body == b""
        time.sleep(0.1)
    assert client.get("/v1/sessions/kept").status == 200


def test_a_lease_ends_a_session_at_work(client):
    """Its client cannot come for the result any more."""
    client.put("/v1/sessions/busy", {"lease_s": 2}).expect(201)
    client.put_cuda("/v1/sessions/busy/modules/f", FAULTS).expect(201)
    client.put("/v1/sessions/busy/buffers/x", {"size": 64}).expect(201)
    client.post("/v1/sessions/busy/launches", launch("endless", {"buf": "x"}, timeout_ms=600000), Prefer="respond-async").expect(202)
    await_end(client, "busy")
    assert ended(client, "busy")["reason"] == "lease"


def test_a_request_in_progress_holds_the_lease(client):
    client.put("/v1/sessions/waited", {"lease_s": 1}).expect(201)
    client.put_cuda("/v1/sessions/waited/modules/f", FAULTS).expect(201)
    client.put("/v1/sessions/waited/buffers/x", {"size": 64}).expect(201)
    sent = client.post("/v1/sessions/waited/launches", launch("endless", {"buf": "x"}, timeout_ms=4000), Prefer="wait=60")
    assert sent.json()["code"] == "execution_timeout" and "timeout_ms" in sent.json()["detail"]


def test_a_batch_in_the_background_holds_the_lease(client):
    client.put("/v1/sessions/later", {"lease_s": 1}).expect(201)
    client.put_cuda("/v1/sessions/later/modules/f", FAULTS).expect(201)
    client.put("/v1/sessions/later/buffers/x", {"size": 64}).expect(201)
    began = time.monotonic()
    batch = {"ops": [{"op": "launch", **launch("endless", {"buf": "x"})}], "timeout_ms": 4000}
    client.post("/v1/sessions/later/batches", batch, Prefer="respond-async").expect(202)
    await_end(client, "later")
    assert time.monotonic() - began > 4 and ended(client, "later")["reason"] == "lease"


def test_a_heartbeat_is_no_use(client):
    client.put("/v1/sessions/unused", {"lease_s": 60, "idle_timeout_s": 1}).expect(201)
    last = until(lambda: (answer := client.post("/v1/sessions/unused/heartbeat")).status != 204 and answer, "heartbeats keep it")
    assert last.code == "session_not_found"
    assert (ended(client, "unused")["reason"], ended(client, "unused")["limit_s"]) == ("idle", 1)


def test_a_lease_can_be_changed_and_taken_back(client, session):
    assert client.get(session).json()["lease_s"] is None
    assert client.patch(session, {"lease_s": 50}).json()["lease_s"] == 50
    assert client.patch(session, {"labels": {}}).json()["lease_s"] == 50
    assert client.patch(session, {"lease_s": 0}).json()["lease_s"] is None
    assert client.patch(session, {"lease_s": 86401}).code == "invalid_field"
    assert client.put(session, {"lease_s": 50}).code == "spec_conflict"
    client.post(session + "/heartbeat").expect(204)
    client.post(session + "/heartbeat", {"x": 1}).expect(400, "unknown_field")


def test_the_operator_lowers_idle_time_and_lifetime(start):
    client = start("--idle-timeout-max-s", "7", "--lifetime-max-s", "70").client()
    made = client.put("/v1/sessions/s", {"idle_timeout_s": 31622400, "max_lifetime_s": 31622400}).expect(201).json()
    assert (made["idle_timeout_s"], made["max_lifetime_s"]) == (7, 70)
    client.put("/v1/sessions/s", {"idle_timeout_s": 31622400, "max_lifetime_s": 31622400}).expect(200)
    assert client.patch("/v1/sessions/s", {"idle_timeout_s": 900}).json()["idle_timeout_s"] == 7
    assert client.patch("/v1/sessions/s", {"idle_timeout_s": 6}).json()["idle_timeout_s"] == 6
    limits = client.get("/v1/limits").json()["limits"]
    assert (limits["idle_timeout_max_s"]["max"], limits["lifetime_max_s"]["max"]) == (7, 70)
    assert client.post("/v1/sessions").expect(201).json()["idle_timeout_s"] == 7


def test_each_way_to_end_has_its_name(client):
    client.put("/v1/sessions/old", {"max_lifetime_s": 1}).expect(201)
    client.put("/v1/sessions/gone").expect(201)
    client.delete("/v1/sessions/gone").expect(204)
    assert ended(client, "gone") | {"at": ""} == {"reason": "deleted", "at": "", "limit_s": None}
    await_end(client, "old")
    assert (ended(client, "old")["reason"], ended(client, "old")["limit_s"]) == ("lifetime", 1)
    assert ended(client, "nobody") is None
    for method, path in (("DELETE", "gone"), ("POST", "gone/reset"), ("GET", "gone/buffers"), ("POST", "gone/heartbeat")):
        assert client.request(method, "/v1/sessions/" + path).expect(404, "session_not_found").json()["ended"]["reason"] == "deleted"


def test_how_a_session_ended_is_told_to_its_owner_alone_and_only_of_the_last_ones(start, tmp_path):
    service = start("--tokens", token_file(tmp_path / "tokens.json", alice={}, bob={}), "--pool-size", "2")
    alice, bob = as_caller(service, "alice"), as_caller(service, "bob")
    bob.put("/v1/sessions/bobs").expect(201)
    bob.delete("/v1/sessions/bobs").expect(204)
    for number in range(KEPT + 1):
        alice.put(f"/v1/sessions/a{number}").expect(201)
        alice.delete(f"/v1/sessions/a{number}").expect(204)
    assert ended(alice, "a0") is None and ended(alice, "a1")["reason"] == "deleted" == ended(alice, f"a{KEPT}")["reason"]
    assert ended(bob, "bobs")["reason"] == "deleted", "another caller's do not push them out"
    unknown = {key: value for key, value in bob.get("/v1/sessions/never").json().items() if key not in ("instance", "request_id")}
    for client, name in ((bob, "a5"), (alice, "bobs")):
        told = {key: value for key, value in client.get(f"/v1/sessions/{name}").json().items() if key not in ("instance", "request_id")}
        assert told == unknown


def test_a_restarted_service_has_another_name_and_knows_nothing(start):
    first = start()
    client = first.client()
    name = client.get("/version").json()["instance"]
    assert client.put("/v1/sessions/s").expect(201).json()["instance"] == name == client.get("/version").json()["instance"]
    client.delete("/v1/sessions/s").expect(204)
    second = start().client()
    assert second.get("/version").json()["instance"] != name
    assert ended(second, "s") is None


def stamped(generation, instance=None):
    return {"Gpurest_Generation": f"{generation}" if instance is None else f'{generation}; instance="{instance}"'}


def test_one_that_is_made_anew_has_a_generation_of_its_own(client):
    """What is meant for the earlier one is not done in it: neither a change nor its end."""
    path = "/v1/sessions/anew"
    first = client.put(path).expect(201).json()["generation"]
    assert client.post(path + "/reset", **stamped(first)).expect(200).json()["generation"] == first + 1
    client.post(path + "/reset", **stamped(first)).expect(409, "generation_changed")
    client.delete(path, **stamped(first)).expect(409, "generation_changed")
    client.delete(path, **stamped(first + 1)).expect(204)
    now = client.put(path).expect(201).json()["generation"]
    assert now == first + 2
    client.put(path + "/buffers/x", {"size": 8}, **stamped(now)).expect(201)
    before = client.get(path, **stamped(now)).expect(200).json()
    for generation in (0, first, first + 1, now + 1, 2**53, 2**64 - 1):
        refused = [client.delete(path, **stamped(generation)), client.patch(path, {"idle_timeout_s": 5}, **stamped(generation)),
                   client.get(path, **stamped(generation)), client.post(path + "/heartbeat", **stamped(generation)),
                   client.post(path + "/reset", **stamped(generation)), client.delete(path + "/buffers/x", **stamped(generation)),
                   client.put_octets(path + "/buffers/x/data", b"12345678", **stamped(generation)),
                   client.put_octets(path + "/buffers/y", b"12345678", **stamped(generation)),
                   client.post(path + "/hibernate", **stamped(generation)), client.get(path + "/events", **stamped(generation)),
                   client.get(path + "/snapshot", **stamped(generation)), client.put(path + "/modules/m", {"source": "x"}, **stamped(generation)),
                   client.post(path + "/batches", {"ops": [{"op": "sync"}]}, **stamped(generation)),
                   client.put(path + "/programs/p", {"ops": [{"op": "sync"}]}, **stamped(generation)),
                   client.post(path + "/sync", **stamped(generation)), client.get(path + "/launches", **stamped(generation))]
        for answer in refused:
            answer.expect(409, "generation_changed")
    after = client.get(path).json()
    assert [after[same] for same in ("generation", "idle_timeout_s", "usage")] == [before[same] for same in ("generation", "idle_timeout_s", "usage")]
    client.post(path + "/heartbeat", **stamped(now)).expect(204)
    client.delete(path).expect(204)


def test_a_refusal_for_another_generation_is_not_kept_under_a_key(client, session):
    key = {"Idempotency_Key": '"looked-meanwhile"'}
    now = client.get(session).json()["generation"]
    client.post(session + "/batches", {"ops": [{"op": "sync"}]}, **stamped(now + 1), **key).expect(409, "generation_changed")
    client.post(session + "/batches", {"ops": [{"op": "sync"}]}, **stamped(now), **key).expect(200)


def test_a_session_of_another_process_is_another_one(start):
    first = start().client()
    before = first.put("/v1/sessions/s").expect(201).json()
    second = start().client()
    now = second.put("/v1/sessions/s").expect(201).json()
    assert now["generation"] == before["generation"] == 1
    second.get("/v1/sessions/s", **stamped(1, before["instance"])).expect(409, "generation_changed")
    second.delete("/v1/sessions/s", **stamped(1, before["instance"])).expect(409, "generation_changed")
    for fine in ("1;", "1 ; instance = \"" + now["instance"] + "\" "):
        second.get("/v1/sessions/s", Gpurest_Generation=fine).expect(200)
    for wrong in ("1;instance", "1;instance=", "1;instance=\"", "1;instance=" + now["instance"], "1;other=\"x\"", "1;=\"x\"", ";instance=\"x\"", ""):
        second.get("/v1/sessions/s", Gpurest_Generation=wrong).expect(400, "invalid_header")
    second.delete("/v1/sessions/s", **stamped(1, now["instance"])).expect(204)
