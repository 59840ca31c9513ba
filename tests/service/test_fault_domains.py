"""Fault domains where no server is needed: on the cpu device their sessions fall together all the same."""
import threading

import pytest

from conftest import VADD, floats
from kernels import FAULTS, launch, launch_vadd
from service_under_test import Client, until
from test_tenants import as_caller, token_file

TRAIN = {"fault_domain": "train"}


def prepare(client, session, **spec):
    client.put(session, spec or None).expect(201)
    fill(client, session)
    return session


def fill(client, session):
    assert client.put_cuda(session + "/modules/f", FAULTS).status == 201
    assert client.put_cuda(session + "/modules/m", VADD).status == 201
    for name, step in (("a", 1), ("b", 2), ("c", 0)):
        assert client.put_octets(f"{session}/buffers/{name}", floats(step * i for i in range(1024))).status == 201


def computes(client, session):
    assert client.post(session + "/launches", launch_vadd()).status == 200
    return client.get(session + "/buffers/c/data").body == floats(3 * i for i in range(1024))


def fault_in(client, session):
    client.post(session + "/launches", launch("illegal", {"u64": 64})).expect(422, "kernel_fault")


def told(client, session):
    answer = client.get(session).json()
    return answer["state"], answer.get("fault", {}).get("code")


def fell(client, session):
    until(lambda: told(client, session)[0] == "faulted", "it does not hear of it")
    return client.get(session).json()["fault"]


def run_for_ever(client, session):
    sent = client.post(session + "/launches", launch("endless", {"buf": "c"}, timeout_ms=600000), Prefer="respond-async").expect(202)
    path = sent.headers["Location"]
    until(lambda: client.get(path).json()["state"] == "running", "it does not begin")
    return path


def test_a_fault_of_one_takes_the_others_along_and_each_goes_on_after_its_own_reset(client):
    a, b, alone = (prepare(client, f"/v1/sessions/{name}", **spec) for name, spec in (("a", TRAIN), ("b", TRAIN), ("alone", {})))
    assert client.get(a).json()["fault_domain"] == {"name": "train", "shared_server": False, "sessions": 2}
    assert client.get(alone).json()["fault_domain"] is None
    path = run_for_ever(client, b)
    fault_in(client, a)
    fault = fell(client, b)
    assert fault["code"] == "fault_domain_lost" and fault["status"] == 503 and not fault["retryable"]
    assert "session 'a' of the fault domain 'train' failed (kernel_fault: illegal global address" in fault["detail"], fault
    assert told(client, a) == ("faulted", "kernel_fault")
    ended = until(lambda: client.get(path).json()["state"] == "failed" and client.get(path).json(), "its launch goes on")
    assert ended["problem"]["code"] == "fault_domain_lost"
    assert "session 'a'" in client.post(b + "/launches", launch_vadd()).expect(409, "session_faulted").json()["detail"]
    assert computes(client, alone)
    client.post(b + "/reset").expect(200)
    assert told(client, b) == ("ready", None) and told(client, a)[0] == "faulted"
    fill(client, b)
    assert computes(client, b)
    client.post(a + "/reset").expect(200)
    assert told(client, b) == ("ready", None), "a reset of one that has faulted is no fault"
    fault_in_again = client.put_cuda(b + "/modules/f", FAULTS)
    assert fault_in_again.status in (200, 201)
    fault_in(client, b)
    assert "session 'b'" in fell(client, a)["detail"]


def test_the_last_of_a_fall_is_told_once(client):
    """A session that had faulted before keeps its own fault."""
    a, b, c = (prepare(client, f"/v1/sessions/{name}", **TRAIN) for name in "abc")
    fault_in(client, a)
    fell(client, b), fell(client, c)
    client.post(b + "/reset").expect(200)
    client.post(c + "/reset").expect(200)
    fill(client, b)
    fault_in(client, b)
    assert "session 'b'" in fell(client, c)["detail"]
    assert told(client, a) == ("faulted", "kernel_fault")


def test_each_kind_of_loss_counts_and_an_idle_end_does_not(client):
    a, b = (prepare(client, f"/v1/sessions/{name}", **TRAIN) for name in "ab")
    client.put("/v1/sessions/c", {**TRAIN, "idle_timeout_s": 1}).expect(201)
    until(lambda: len(client.get("/v1/sessions").json()["items"]) == 2, "it is not idle")
    until(lambda: client.get(a).json()["fault_domain"]["sessions"] == 2, "it still counts")
    assert told(client, b) == ("ready", None)
    client.post(a + "/launches", launch("endless", {"buf": "c"}, timeout_ms=100)).expect(504, "execution_timeout")
    assert "execution_timeout" in fell(client, b)["detail"]
    for session in (a, b):
        client.post(session + "/reset").expect(200)
    fill(client, a)
    run_for_ever(client, a)
    client.delete(a).expect(204)
    assert "the session was deleted while its kernels ran" in fell(client, b)["detail"]
    client.post(b + "/reset").expect(200)
    fill(client, b)
    assert computes(client, b) and client.get(b).json()["fault_domain"]["sessions"] == 1


def test_domains_of_two_callers_are_two(start, tmp_path):
    service = start("--tokens", token_file(tmp_path / "tokens.json", alice={}, bob={}))
    alice, bob = as_caller(service, "alice"), as_caller(service, "bob")
    for one in (alice, bob):
        prepare(one, "/v1/sessions/a", **TRAIN)
        prepare(one, "/v1/sessions/b", **TRAIN)
    assert alice.get("/v1/sessions/a").json()["fault_domain"]["sessions"] == 2
    for _ in range(3):
        fault_in(alice, "/v1/sessions/a")
        fell(alice, "/v1/sessions/b")
        assert all(computes(bob, f"/v1/sessions/{name}") for name in "ab")
        for name in "ab":
            alice.post(f"/v1/sessions/{name}/reset").expect(200)
        fill(alice, "/v1/sessions/a")
    assert bob.get("/v1/limits").json()["limits"]["fault_domains"] == {"max": 16, "used": 1}
    assert bob.get("/v1/limits").json()["limits"]["faults"]["used"] == 0


def test_a_fault_counts_once_in_the_callers_budget(start):
    service = start("--crash-budget", "2", "--crash-window-s", "3600")
    client = service.client()
    sessions = [prepare(client, f"/v1/sessions/s{i}", **TRAIN) for i in range(4)]
    fault_in(client, sessions[0])
    for session in sessions:
        fell(client, session)
    assert client.get("/v1/limits").json()["limits"]["faults"]["used"] == 1
    for session in sessions:
        client.post(session + "/reset").expect(200)


def test_members_and_names_that_are_wrong_change_nothing(client, session):
    for spec, code, pointer in (({"fault_domain": ""}, "invalid_field", "/fault_domain"), ({"fault_domain": "Train"}, "invalid_field", "/fault_domain"),
                                ({"fault_domain": "-a"}, "invalid_field", "/fault_domain"), ({"fault_domain": "a/b"}, "invalid_field", "/fault_domain"),
                                ({"fault_domain": "x" * 64}, "invalid_field", "/fault_domain"), ({"fault_domain": 7}, "invalid_field", "/fault_domain"),
                                ({"fault_domain": "a b"}, "invalid_field", "/fault_domain"), ({"fault_domain": {"name": "a"}}, "invalid_field", "/fault_domain"),
                                ({"fault_domain": "a", "fault_domain_required": 1}, "invalid_field", "/fault_domain_required"),
                                ({"fault_domain_required": False}, "invalid_field", "/fault_domain_required"),
                                ({"fault_domain_name": "a"}, "unknown_field", "/fault_domain_name")):
        for answer in (client.post("/v1/sessions", spec), client.put("/v1/sessions/new", spec)):
            assert answer.code == code, (spec, answer)
            assert any(field["pointer"] == pointer for field in answer.json()["errors"]), (spec, answer)
    assert client.patch(session, TRAIN).code == "unknown_field"
    assert client.put(session, TRAIN).expect(409, "spec_conflict")
    assert client.get("/v1/sessions/new").status == 404
    made = client.post("/v1/sessions", {"fault_domain": None, "fault_domain_required": None})
    assert made.status == 201 and made.json()["fault_domain"] is None, "null is absent"
    longest = client.post("/v1/sessions", {"fault_domain": "x" * 63}).expect(201)
    assert longest.json()["fault_domain"]["name"] == "x" * 63
    assert client.get("/v1/limits").json()["limits"]["fault_domains"]["used"] == 1
    assert client.get("/v1/limits").json()["limits"]["fault_domain_sessions"]["max"] == 40


def test_the_same_request_finds_the_session_and_another_one_is_refused(client):
    client.put("/v1/sessions/a", TRAIN).expect(201)
    client.put("/v1/sessions/a", TRAIN).expect(200)
    client.put("/v1/sessions/a", {"fault_domain": "other"}).expect(409, "spec_conflict")
    client.put("/v1/sessions/a").expect(409, "spec_conflict")
    assert client.get("/v1/sessions/a").json()["fault_domain"] == {"name": "train", "shared_server": False, "sessions": 1}


def test_a_domain_is_on_one_device(executable, driver_pair):
    service = driver_pair
    client = service.client()
    client.put("/v1/sessions/a", {**TRAIN, "device": "cuda:1", "fault_domain_required": False}).expect(201)
    refused = client.put("/v1/sessions/b", {**TRAIN, "device": "cuda:0", "fault_domain_required": False}).expect(409, "spec_conflict")
    assert "on another device" in refused.json()["detail"]
    for wish in ({}, {"device": "cuda"}, {"device": "cuda:1"}):
        made = client.post("/v1/sessions", {**TRAIN, "fault_domain_required": False, **wish}).expect(201)
        assert made.json()["device"] == "cuda:1", "it goes where its domain is"
    client.put("/v1/sessions/c", {"fault_domain": "other", "device": "cuda:0", "fault_domain_required": False}).expect(201)


@pytest.fixture
def driver_pair(executable, tmp_path):
    """A service with two GPUs that do not exist, without MPS."""
    import pathlib
    import shutil

    import fake_gpu
    library = pathlib.Path(executable).parents[1] / "tests" / "support" / "libcuda.so.1"
    if not library.exists():
        pytest.skip("the fake driver is not built")
    shutil.copy(library, tmp_path / "libcuda.so.1")
    (tmp_path / "libcuda.so.1.devices").write_text("2")
    service = fake_gpu.start(executable, tmp_path, tmp_path, "--mps", "off")
    yield service
    service.stop()


def test_domains_and_their_sessions_are_bounded_with_a_share_for_each_caller(start, tmp_path):
    tokens = token_file(tmp_path / "tokens.json", alice={"sessions_max": 60}, bob={"sessions_max": 60})
    service = start("--tokens", tokens, "--cpu-threads", "1", "--pool-size", "0")
    alice, bob = as_caller(service, "alice"), as_caller(service, "bob")
    for i in range(12):
        alice.put(f"/v1/sessions/d{i}", {"fault_domain": f"d{i}"}).expect(201)
    refused = alice.put("/v1/sessions/d12", {"fault_domain": "d12"}).expect(503, "overloaded").json()
    assert refused["limit"]["name"] == "fault_domains" and refused["limit"]["max"] == 12
    alice.put("/v1/sessions/d13", {"fault_domain": "d11"}).expect(201)
    bob.put("/v1/sessions/d0", {"fault_domain": "d0"}).expect(201)
    alice.delete("/v1/sessions/d0").expect(204)
    until(lambda: alice.put("/v1/sessions/d12", {"fault_domain": "d12"}).status == 201, "a domain that has ended counts no more")


def test_a_domain_has_a_greatest_number_of_sessions(start, tmp_path):
    tokens = token_file(tmp_path / "tokens.json", alice={"sessions_max": 60})
    alice = as_caller(start("--tokens", tokens, "--cpu-threads", "1", "--pool-size", "0"), "alice")
    for i in range(40):
        alice.put(f"/v1/sessions/s{i}", TRAIN).expect(201)
    refused = alice.put("/v1/sessions/more", TRAIN).expect(403, "quota_exceeded").json()
    assert refused["limit"] == {"name": "fault_domain_sessions", "max": 40, "used": 40, "requested": 1}
    alice.put("/v1/sessions/more", {"fault_domain": "other"}).expect(201)
    alice.delete("/v1/sessions/s7").expect(204)
    alice.put("/v1/sessions/again", TRAIN).expect(201)


def test_resets_deletes_and_faults_at_once_leave_every_session_usable(start):
    """States crossed with arrival: whatever they meet, each request is answered, and nothing hangs."""
    service = start("--crash-budget", "0", "--cpu-threads", "1")
    client = service.client()
    names = [f"s{i}" for i in range(5)]
    for name in names:
        prepare(client, f"/v1/sessions/{name}", **TRAIN)
    wrong = []

    def storm(number):
        own = service.client()
        own.timeout = 300
        for i in range(12):
            session = f"/v1/sessions/{names[(number + i) % len(names)]}"
            answers = [own.put_cuda(session + "/modules/f", FAULTS), own.post(session + "/launches", launch("illegal", {"u64": 64}))]
            answers.append(own.post(session + "/reset"))
            if i % 4 == number:
                answers += [own.delete(session), own.put(session, TRAIN)]
            wrong.extend(answer for answer in answers if answer.status >= 500 and answer.code not in ("fault_domain_lost", "worker_lost"))

    threads = [threading.Thread(target=storm, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong, wrong
    for name in names:
        session = f"/v1/sessions/{name}"
        if client.get(session).status == 404:
            client.put(session, TRAIN).expect(201)
    for name in names:
        until(lambda: client.post(f"/v1/sessions/{name}/reset").status == 200, "it cannot be reset")
    for name in names:
        fill(client, f"/v1/sessions/{name}")
        assert computes(client, f"/v1/sessions/{name}")
    assert client.get("/v1/sessions/s0").json()["fault_domain"]["sessions"] == 5


def test_a_batch_and_a_transfer_of_a_member_end_with_the_fall(client):
    a, b = (prepare(client, f"/v1/sessions/{name}", **TRAIN) for name in "ab")
    ops = [{"op": "launch", **launch("endless", {"buf": "c"})}]
    sent = client.post(b + "/batches", {"ops": ops, "timeout_ms": 600000}, Prefer="respond-async").expect(202)
    path = sent.headers["Location"]
    until(lambda: client.get(path).json()["state"] == "running", "it does not begin")
    fault_in(client, a)
    fell(client, b)
    ended = until(lambda: client.get(path).json()["state"] == "failed" and client.get(path).json(), "its batch goes on")
    assert ended["problem"]["code"] == "fault_domain_lost", ended


def test_a_service_that_drains_waits_for_sessions_of_domains_too(start):
    service = start("--drain-timeout", "60")
    client = service.client()
    for name in "ab":
        client.put(f"/v1/sessions/{name}", TRAIN).expect(201)
    service.terminate()
    service.logged("draining: 2 sessions")
    for name in "ab":
        client.delete(f"/v1/sessions/{name}").expect(204)
    assert service.wait() == 0
