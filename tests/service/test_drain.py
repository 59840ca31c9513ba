"""SIGTERM, or a request: no new sessions, old ones are served to their end, then exit code 0."""
import signal
from service_under_test import until


def drained(start, timeout):
    service = start("--drain-timeout", str(timeout))
    client = service.client_in("old")
    assert client.put_octets("/v1/sessions/old/buffers/a", b"abc").status == 201
    service.terminate()
    while client.get("/readyz").status == 200:
        pass
    return service, client


def test_existing_sessions_are_served_until_they_end(start):
    service, client = drained(start, 60)
    not_ready = client.get("/readyz")
    assert not_ready.status == 503 and not_ready.code == "draining" and not_ready.headers["Retry-After"]
    assert client.get("/lbz").status == 404 and client.get("/livez").status == 200
    refused = client.put("/v1/sessions/new")
    assert refused.status == 503 and refused.code == "draining"
    fresh = service.client()
    assert fresh.get("/v1/sessions/old/buffers/a/data").body == b"abc", "new connections are still accepted"
    assert fresh.delete("/v1/sessions/old").status == 204
    assert service.wait() == 0


def test_the_time_is_bounded(start):
    service, _ = drained(start, 1)
    assert service.wait() == 0


def test_a_second_signal_ends_it_at_once(start):
    service, _ = drained(start, 3600)
    service.process.send_signal(signal.SIGINT)
    assert service.wait() == 0


def test_draining_by_request_can_be_taken_back(start):
    service = start("--drain-timeout", "0")
    client = service.client_in("old")
    answer = client.post("/v1/admin/drain", {})
    assert answer.status == 200 and answer.json() == {"draining": True, "exit": False, "sessions": 1}
    assert client.get("/readyz").code == "draining" and client.get("/lbz").status == 404
    assert client.put("/v1/sessions/new").code == "draining" and client.post("/v1/sessions").code == "draining"
    assert client.put("/v1/sessions/old").status == 200
    assert client.post("/v1/admin/drain", {"exit": False}).json()["draining"]
    assert client.post("/v1/admin/resume").json() == {"draining": False, "exit": False, "sessions": 1}
    assert client.get("/readyz").status == 200 and client.put("/v1/sessions/new").status == 201
    assert client.post("/v1/admin/resume").status == 200, "what serves may be told to serve"
    assert service.process.poll() is None


def test_draining_by_request_to_the_end(start):
    service = start("--drain-timeout", "3600")
    client = service.client_in("old")
    for _ in range(3):  # further requests send no second signal
        assert client.post("/v1/admin/drain", {"exit": True}).json() == {"draining": True, "exit": True, "sessions": 1}
    refused = client.post("/v1/admin/resume")
    assert refused.status == 503 and refused.code == "draining"
    assert client.post("/v1/admin/drain", {}).json()["exit"] is True
    assert client.get("/v1/sessions/old").status == 200 and service.process.poll() is None
    assert client.delete("/v1/sessions/old").status == 204
    assert service.wait() == 0


def test_resuming_after_a_signal_is_refused(start):
    service, client = drained(start, 60)
    assert client.post("/v1/admin/resume").code == "draining"
    assert client.put("/v1/sessions/new").code == "draining"
    assert client.delete("/v1/sessions/old").status == 204
    assert service.wait() == 0


def test_drain_refuses_what_it_does_not_know(start):
    client = start().client()
    for body, code in (({"exit": "yes"}, "invalid_field"), ({"now": True}, "unknown_field")):
        assert client.post("/v1/admin/drain", body).code == code
    assert client.post("/v1/admin/resume", {"x": 1}).code == "unknown_field"
    assert client.get("/readyz").status == 200


def test_no_worker_outlives_it(start):
    service, client = drained(start, 60)
    workers = service.processes()
    assert workers
    assert client.delete("/v1/sessions/old").status == 204
    assert service.wait() == 0
    until(lambda: not any(running(pid) for pid in workers))


def running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
