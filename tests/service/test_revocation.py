"""Requests that wait or follow end when their token is revoked or expires; others, and running work, go on."""
import hashlib
import http.client
import json
import signal
import time

import pytest

from kernels import FAULTS, launch
from service_under_test import until

DEADLINE_S = 90
SCOPES = ["read", "write", "compile", "launch", "metrics", "admin"]
S = "/v1/sessions/s"
WAITS_S = 300  # longer than any test waits
ENDLESS = launch("endless", {"buf": "x"}, timeout_ms=600000)
BATCH = {"ops": [{"op": "launch", **launch("endless", {"buf": "x"})}], "timeout_ms": 600000}


def entry(token, name, scopes=tuple(SCOPES), expires=None):
    row = {"name": name, "sha256": hashlib.sha256(token.encode()).hexdigest(), "scopes": list(scopes)}
    return {**row, "expires": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires))} if expires else row


class Guarded:
    def __init__(self, start, path, *rows):
        self.path, self.waiting = path, []
        self.write(rows)
        self.service = start("--tokens", str(path), "--event-heartbeat-s", "300")

    def write(self, rows):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"tokens": rows}))
        new.chmod(0o600)
        new.rename(self.path)

    def reload(self, *rows):
        self.write(rows)
        self.service.process.send_signal(signal.SIGHUP)

    def client(self, token):
        return self.service.client(Authorization="Bearer " + token)

    def send(self, token, method, path, body=None, **headers):
        """Sends a request without waiting for its answer."""
        line = http.client.HTTPConnection(self.service.host, self.service.port, timeout=DEADLINE_S)
        sent = {"Authorization": "Bearer " + token, **{name.replace("_", "-"): value for name, value in headers.items()}}
        line.request(method, path, json.dumps(body) if body else None, {**sent, **({"Content-Type": "application/json"} if body else {})})
        self.waiting.append(line)
        return line

    def used(self, token, limit):
        return self.client(token).get("/v1/limits").json()["limits"][limit]["used"]

    def in_flight(self, token):
        return self.used(token, "requests_in_flight") - 1

    def until_waiting(self, token, count):
        until(lambda: self.in_flight(token) >= count, seconds=DEADLINE_S)


@pytest.fixture
def guarded(start, tmp_path):
    made = []

    def one(*rows):
        made.append(Guarded(start, tmp_path / "tokens.json", *rows))
        return made[-1]

    yield one
    for g in made:
        for line in g.waiting:
            line.close()


def with_an_endless_kernel(g, token):
    """The paths of a launch and of a batch that do not end."""
    client = g.client(token)
    for session in ("s", "t"):
        path = f"/v1/sessions/{session}"
        assert client.put(path).status == 201
        made = client.put_cuda(path + "/modules/f", FAULTS)
        if made.status == 503:
            pytest.skip("no NVRTC on this machine")
        assert made.status == 201, made
        assert client.put(path + "/buffers/x", {"size": 4096}).status == 201
    run = client.post(S + "/launches", ENDLESS, Prefer="respond-async").expect(202)
    batch = client.post("/v1/sessions/t/batches", BATCH, Prefer="respond-async").expect(202)
    client.close()
    return run.headers["Location"], batch.headers["Location"]


STREAMS = ("/v1/changes", S + "/events", "/v1/admin/logs?follow=1&lines=0")


def whole(line):
    """The rest of an answer that ends in order."""
    return line.getresponse().read()


def test_streams_and_long_polls_end_with_their_token(guarded):
    g = guarded(entry("old", "ada"), entry("other", "ada"), entry("bobs", "bob"))
    run, batch = with_an_endless_kernel(g, "old")
    streams = [g.send("old", "GET", path) for path in STREAMS]
    polls = [g.send("old", "GET", path, Prefer=f"wait={WAITS_S}") for path in (run, batch)]
    kept = [g.send("other", "GET", path) for path in STREAMS[:2]] + [g.send("other", "GET", run, Prefer=f"wait={WAITS_S}")]
    bobs = g.send("bobs", "GET", "/v1/changes")
    g.until_waiting("other", len(streams) + len(polls) + len(kept))
    g.until_waiting("bobs", 1)
    g.reload(entry("other", "ada"), entry("bobs", "bob"))
    for line in streams:
        whole(line)
    for line in polls:
        response = line.getresponse()
        problem = json.loads(response.read())
        assert response.status == 401 and problem["code"] == "unauthenticated", problem
    assert g.client("old").get("/v1/limits").status == 401
    time.sleep(1)  # enough for several checks of every token
    assert g.in_flight("other") == len(kept), "another token of the same caller holds"
    assert g.in_flight("bobs") == 1
    assert bobs.getresponse().readline() == b"retry: 1000\n"


def test_they_end_when_the_token_expires(guarded):
    g = guarded(entry("long", "ada"), entry("bobs", "bob"))
    run, _ = with_an_endless_kernel(g, "long")
    g.reload(entry("short", "ada", expires=time.time() + 10), entry("long", "ada"), entry("bobs", "bob", ["read"]))
    # Bob's token shows that the file was read: a token that is asked too early counts as guessed, and guesses are limited.
    until(lambda: g.client("bobs").get("/v1/admin/logging").status == 403)
    streams = [g.send("short", "GET", path) for path in STREAMS]
    poll = g.send("short", "GET", run, Prefer=f"wait={WAITS_S}")
    started = [line.getresponse() for line in streams]
    if any(response.status == 401 for response in started):
        pytest.skip("the machine is too slow for a token of 10 s")
    for response in started:
        response.read()
    assert poll.getresponse().status == 401


def test_they_end_when_their_scope_is_taken_away(guarded):
    g = guarded(entry("one", "ada"), entry("bobs", "bob"))
    logs, changes = g.send("one", "GET", STREAMS[2]), g.send("one", "GET", STREAMS[0])
    g.until_waiting("one", 2)
    g.reload(entry("one", "ada", ["read", "write"]), entry("bobs", "bob"))
    whole(logs)
    time.sleep(1)
    assert g.in_flight("one") == 1, "what needs no more than it still has goes on"
    assert changes.getresponse().status == 200


def test_who_waits_for_what_it_has_just_begun_is_told_what_became_of_it(guarded):
    g = guarded(entry("old", "ada"), entry("new", "ada"))
    with_an_endless_kernel(g, "old")
    batches = g.used("new", "batch_jobs_bytes")
    begun = g.send("old", "POST", S + "/launches", ENDLESS, Prefer=f"wait={WAITS_S}")
    idempotent = g.send("old", "POST", S + "/launches", ENDLESS, Prefer=f"wait={WAITS_S}", Idempotency_Key="k")
    batch = g.send("old", "POST", "/v1/sessions/t/batches", BATCH, Prefer=f"wait={WAITS_S}")
    # A request that has not begun anything yet is answered 401.
    until(lambda: len(g.client("new").get(S + "/launches").json()["items"]) == 3 and g.used("new", "batch_jobs_bytes") > batches)
    g.reload(entry("new", "ada"))
    ids = []
    for line in (begun, idempotent, batch):
        response = line.getresponse()
        answer = json.loads(response.read())
        assert response.status == 202 and answer["state"] == "queued", answer
        ids.append(answer["id"])
    client = g.client("new")
    again = client.post(S + "/launches", ENDLESS, Prefer=f"wait={WAITS_S}", Idempotency_Key="k")
    assert again.status == 202 and again.json()["id"] == ids[1] and again.headers["Idempotency-Replayed"] == "true"
    assert client.get(f"{S}/launches/{ids[0]}").json()["state"] == "queued"
