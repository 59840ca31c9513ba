"""SIGTERM: no new sessions, old ones are served to their end, then exit code 0."""
import signal
import time


def drained(start, timeout):
    service = start("--drain-timeout", str(timeout))
    client = service.client()
    assert client.put("/v1/sessions/old").status == 201
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
    began = time.monotonic()
    assert service.wait() == 0
    assert time.monotonic() - began < 30


def test_a_second_signal_ends_it_at_once(start):
    service, _ = drained(start, 3600)
    service.process.send_signal(signal.SIGINT)
    assert service.wait() == 0


def test_no_worker_outlives_it(start):
    service, client = drained(start, 60)
    workers = service.children()
    assert workers
    assert client.delete("/v1/sessions/old").status == 204
    assert service.wait() == 0
    deadline = time.monotonic() + 10
    while any(running(pid) for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
