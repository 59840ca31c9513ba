"""Background batches: Prefer: respond-async and wait, polling, results, cancelling, and how much is kept for how long."""
import json
import threading
import time

import pytest

from batch_client import TYPE, frame, send, unframe, with_sizes
from kernels import BAD_ADDRESS
from test_batches import SEGMENTS, SUM, VADD_BATCH, error_of, fault, settles
from test_start_and_auth import token_file
from service_under_test import in_threads, until

FORMS = pytest.mark.parametrize("within", [False, True], ids=["framed", "json"])
FINAL = ("succeeded", "failed", "cancelled")


@pytest.fixture(params=["batches", "run"])
def place(request, client, session):
    return session + "/batches" if request.param == "batches" else "/v1/run"


def queue(client, place, message=VADD_BATCH, segments=SEGMENTS, within=False, **headers):
    """The path of an accepted batch."""
    answer = send(client, place, message, segments, within, Prefer="respond-async", **headers)
    assert answer.status == 202, answer
    assert answer.headers["Preference-Applied"] == "respond-async"
    job = answer.json()
    assert job["id"].startswith("x_") and job["state"] in ("queued", "running") + FINAL
    assert answer.headers["Location"] == f"{place}/{job['id']}"
    return answer.headers["Location"]


def ended(client, path):
    """The job at its end, found by long polls."""
    deadline = time.monotonic() + 60
    while True:
        answer = client.get(path, Prefer="wait=20").expect(200)
        if answer.json()["state"] in FINAL:
            return answer.json()
        assert time.monotonic() < deadline, answer



ENDLESS = {**fault("endless", {"buf": "$x"}), "timeout_ms": 60000}


def running(client, place):
    """A running batch with an endless kernel."""
    path = queue(client, place, ENDLESS, {})
    until(lambda: client.get(path).json()["state"] == "running")
    return path


@FORMS
def test_the_result_is_the_synchronous_answer(client, place, within):
    path = queue(client, place, within=within)
    job = ended(client, path)
    assert job["state"] == "succeeded" and job["result"] == path + "/result", job
    assert job["created_at"] <= job["started_at"] <= job["finished_at"] < job["expires_at"] and "problem" not in job
    for _ in range(2):
        answer = client.get(path + "/result")
        assert answer.status == 200 and "Server-Timing" in answer.headers
        if within:
            message = answer.json()
            plain = send(client, place, VADD_BATCH, SEGMENTS, True).message
        else:
            assert answer.headers["Content-Type"] == TYPE
            message, segments = unframe(answer.body)
            assert segments == {"out": SUM}
            plain = send(client, place, VADD_BATCH, SEGMENTS).message
        assert set(message) == set(plain) and message["segments"] == plain["segments"]
        assert [op["index"] for op in message["ops"]] == [op["index"] for op in plain["ops"]]
    head = client.head(path + "/result")
    assert head.status == 200 and head.body == b"" and int(head.headers["Content-Length"]) == len(answer.body)
    assert client.delete(path).status == 204
    for gone in (client.get(path), client.get(path + "/result"), client.delete(path)):
        assert gone.status == 404 and gone.code == "batch_not_found"


@FORMS
def test_wait_answers_in_time_or_later(client, place, within):
    answer = send(client, place, VADD_BATCH, SEGMENTS, within, Prefer="wait=30")
    assert answer.status == 200 and answer.segments == {"out": SUM}, answer
    assert answer.headers["Preference-Applied"] == "wait=30"
    answer = send(client, place, ENDLESS, {}, within, Prefer="wait=1")
    assert answer.status == 202 and answer.headers["Preference-Applied"] == "wait=1", answer
    path = answer.headers["Location"]
    assert client.get(path).json()["state"] == "running"
    assert client.delete(path + "?force=1").status == 202
    assert ended(client, path)["state"] == "cancelled"
    error_of(send(client, place, {**VADD_BATCH, "module": {"source": "nonsense"}}, SEGMENTS, within, Prefer="wait=30"), 422, "compile_failed")


def test_a_failure_is_told_by_the_job_and_by_its_result(client, place):
    path = queue(client, place, {**VADD_BATCH, "module": {"source": "nonsense"}})
    job = ended(client, path)
    assert job["state"] == "failed" and "result" not in job
    assert job["problem"]["code"] == "compile_failed" and job["problem"]["compile"]["diagnostics"]
    problem = error_of(client.get(path + "/result"), 422, "compile_failed")
    assert problem["compile"]["log"] == job["problem"]["compile"]["log"]
    ops = VADD_BATCH["ops"][:4] + [{"op": "read", "from": "$c", "offset": 4000, "size": 97, "segment": "out"}]
    path = queue(client, place, {**VADD_BATCH, "ops": ops})
    assert ended(client, path)["problem"]["op_index"] == 4
    error_of(client.get(path + "/result"), 416, "range_not_satisfiable", index=4)
    path = queue(client, place, fault("illegal", BAD_ADDRESS), {})
    assert ended(client, path)["problem"]["code"] == "kernel_fault"
    error_of(client.get(path + "/result"), 422, "kernel_fault", index=1)
    assert client.delete(path).status == 204


def test_what_is_malformed_is_refused_at_once(client, place):
    answer = send(client, place, {"ops": [{"op": "jump"}]}, Prefer="respond-async")
    error_of(answer, 400, "invalid_field", "/ops/0")
    good = frame(with_sizes(VADD_BATCH, SEGMENTS), SEGMENTS.values())
    answer = client.post(place, good[:-64], Content_Type=TYPE, Prefer="respond-async")
    assert answer.status == 400 and answer.code == "framing_mismatch"


def test_long_poll(client, place):
    path = running(client, place)
    first = client.get(path)
    begun = time.monotonic()
    answer = client.get(path, Prefer="wait=1", If_None_Match=first.headers["ETag"])
    assert answer.status == 304 and answer.headers["ETag"] == first.headers["ETag"] and time.monotonic() - begun >= 0.9
    ender = threading.Timer(0.3, lambda: client_of(client).delete(path + "?force=1"))
    ender.start()
    answer = client.get(path, Prefer="wait=30", If_None_Match=first.headers["ETag"])
    ender.join()
    assert answer.status == 200 and answer.json()["state"] == "cancelled" and answer.headers["ETag"] != first.headers["ETag"]


def client_of(client):
    return type(client)(client.host, client.port, client.headers)


def test_queued_ones_wait_and_can_be_cancelled(client, session):
    place = session + "/batches"
    blocker = running(client, place)
    waiting = [queue(client, place) for _ in range(3)]
    for path in waiting:
        assert client.get(path).json()["state"] == "queued"
        answer = client.get(path + "/result")
        assert answer.status == 409 and answer.code == "launch_running"
    assert client.get(blocker + "/result").code == "launch_running"
    answer = client.delete(waiting[1])
    assert answer.status == 200 and answer.json()["state"] == "cancelled"
    assert client.get(waiting[1] + "/result").code == "cancelled"
    answer = client.delete(blocker)
    assert answer.status == 409 and answer.code == "launch_running"
    assert client.get(blocker).json()["state"] == "running"
    answer = client.delete(blocker + "?force=1")
    assert answer.status == 202 and answer.headers["Location"] == blocker
    assert ended(client, blocker)["state"] == "cancelled"
    assert ended(client, waiting[0])["problem"]["code"] == "session_busy"
    assert client.get(session).json()["generation"] == 2
    assert client.delete(blocker + "?force=2").code == "invalid_field"
    settles(client, session, 0)
    assert ended(client, queue(client, place))["state"] == "succeeded"


def test_they_are_done_in_order(client, session):
    assert client.put(session + "/buffers/own", {"size": 4}).status == 201
    paths = [queue(client, session + "/batches",
                   {"ops": [{"op": "read", "from": "own", "segment": "before"}, {"op": "write", "to": "own", "segment": "new"}]},
                   {"new": i.to_bytes(4, "little")}, within=True) for i in range(1, 21)]
    assert client.post(session + "/sync").status == 200
    for i, path in enumerate(paths):
        assert ended(client, path)["state"] == "succeeded"
        answer = client.get(path + "/result").json()
        assert i == 0 or answer["segments"][0]["size"] == 4
    assert client.get(session + "/buffers/own/data").body == (20).to_bytes(4, "little")


def test_limits_are_named(client, session):
    place = session + "/batches"
    limits = client.get("/v1/limits").json()["limits"]
    most = limits["batches_queued"]["max"]
    blocker = running(client, place)
    tiny = {"ops": [{"op": "alloc", "as": "$a", "size": 1}]}
    paths = [queue(client, place, tiny, {}) for _ in range(most)]
    answer = send(client, place, tiny, {}, Prefer="respond-async")
    assert answer.status == 403 and answer.code == "quota_exceeded", answer
    assert answer.json()["limit"]["name"] == "batches_queued"
    assert client.delete(paths.pop()).status == 200
    paths.append(queue(client, place, tiny, {}))
    assert client.delete(blocker + "?force=1").status == 202
    for path in paths[-2:]:
        assert ended(client, path)["state"] == "failed"


def test_the_oldest_results_make_room(client, session):
    place = session + "/batches"
    kept = client.get("/v1/limits").json()["limits"]["batches_kept"]["max"]
    paths = []
    for _ in range(kept + 3):
        paths.append(queue(client, place))
        ended(client, paths[-1])
    assert [client.get(path).status for path in paths[:3]] == [404] * 3
    assert unframe(client.get(paths[3] + "/result").body)[1] == {"out": SUM}
    # By bytes: each of these takes 60 MiB of the 256.
    big = {"ops": [{"op": "alloc", "as": "$a", "size": 60 << 20}, {"op": "fill", "to": "$a", "pattern": {"u8": 7}},
                   {"op": "read", "from": "$a", "segment": "all"}]}
    paths = []
    for _ in range(5):
        paths.append(queue(client, place, big, {}))
        assert ended(client, paths[-1])["state"] == "succeeded"
    assert client.get(paths[0]).status == 404 and client.get(paths[1]).status == 200
    answer = client.get(paths[4] + "/result")
    assert unframe(answer.body)[1] == {"all": b"\7" * (60 << 20)}


def test_an_answer_that_would_not_be_held_is_refused(client, session):
    message = {"ops": [{"op": "alloc", "as": "$a", "size": (64 << 20) + 1}, {"op": "read", "from": "$a", "segment": "all"}]}
    refused = send(client, session + "/batches", message, {}, Prefer="respond-async").expect(413, "body_too_large")
    assert refused.json()["limit"]["name"] == "batch_answer_bytes"


def test_results_end_with_their_time_and_their_session(start):
    service = start("--result-ttl-s", "2")
    client = service.client()
    assert client.get("/v1/limits").json()["limits"]["result_ttl_s"]["max"] == 2
    assert client.put("/v1/sessions/one").status == 201
    paths = [queue(client, place) for place in ("/v1/sessions/one/batches", "/v1/run")]
    for path in paths:
        assert ended(client, path)["state"] == "succeeded"
    deadline = time.monotonic() + 60
    for path in paths:
        while client.get(path).status == 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert client.get(path + "/result").code == "batch_not_found"
    path = queue(client, "/v1/sessions/one/batches")
    assert client.delete("/v1/sessions/one").status == 204
    assert client.get(path).code == "session_not_found"


def test_a_reset_leaves_results(client, session):
    path = queue(client, session + "/batches")
    ended(client, path)
    assert client.post(session + "/reset").status == 200
    assert unframe(client.get(path + "/result").body)[1] == {"out": SUM}


def test_kept_buffers_stay(client, session):
    path = queue(client, session + "/batches", {**VADD_BATCH, "keep": ["$c"]})
    assert ended(client, path)["state"] == "succeeded"
    message, _ = unframe(client.get(path + "/result").body)
    assert client.get(f"{session}/buffers/{message['kept']['$c']}/data").body == SUM


def test_nobody_elses(start, tmp_path):
    scopes = ["read", "write", "compile", "launch"]
    service = start("--tokens", token_file(tmp_path / "tokens.json", ann=scopes, bob=scopes))
    ann, bob = (service.client(Authorization=f"Bearer {name}-secret") for name in ("ann", "bob"))
    path = queue(ann, "/v1/run")
    assert ended(ann, path)["state"] == "succeeded"
    first = bob.get(path)
    assert send(bob, "/v1/run", VADD_BATCH, SEGMENTS).segments == {"out": SUM}
    for answer in (first, bob.get(path), bob.get(path + "/result"), bob.delete(path)):
        assert answer.status == 404 and answer.code == "batch_not_found"
    assert ann.get(path + "/result").status == 200


def test_a_client_that_leaves_before_its_turn_is_not_served(client, session):
    place = session + "/batches"
    most = client.get("/v1/limits").json()["limits"]["batches_queued"]["max"]
    blocker = running(client, place)
    other = client_of(client)
    other.timeout = 0.5
    with pytest.raises(TimeoutError):
        send(other, place, VADD_BATCH, SEGMENTS, Prefer="wait=60")
    other.close()
    deadline = time.monotonic() + 60
    tiny = {"ops": [{"op": "alloc", "as": "$a", "size": 1}]}
    queued = 0
    while queued < most:  # all places become free once the server has noticed
        answer = send(client, place, tiny, {}, Prefer="respond-async")
        assert answer.status == 202 or (answer.code == "quota_exceeded" and time.monotonic() < deadline), answer
        queued += answer.status == 202
    assert client.delete(blocker + "?force=1").status == 202


def test_the_service_ends_while_they_are_at_work(start):
    service = start("--drain-timeout", "2")
    client = service.client_in("one")
    running(client, "/v1/sessions/one/batches")
    for _ in range(5):
        queue(client, "/v1/sessions/one/batches")
        queue(client, "/v1/run")
    running(client, "/v1/run")
    service.stop()


def test_many_at_once(client, place):
    lock, failures = threading.Lock(), []

    def work(number):
        mine = client_of(client)
        for _ in range(5):
            size = 64 * (number + 1)
            message = {"ops": [{"op": "alloc", "as": "$a", "size": size}, {"op": "fill", "to": "$a", "pattern": {"u8": number}},
                               {"op": "read", "from": "$a", "segment": "s"}]}
            path = queue(mine, place, message, {})
            job = ended(mine, path)
            got = unframe(mine.get(path + "/result").body)[1] if job["state"] == "succeeded" else json.dumps(job)
            if got != {"s": bytes([number]) * size}:
                with lock:
                    failures.append(got)
            assert mine.delete(path).status == 204
        mine.close()

    in_threads(work, range(8))
    assert not failures, failures
