"""Runs without a session whose clients leave, run in parallel, or follow a failed run: each gets its own result or its own error."""
import json
import os
import pathlib
import signal
import socket
import threading
import time

import pytest

from batch_client import TYPE, frame, send, with_sizes
from kernels import FAULTS
from test_batches import SEGMENTS, SUM, VADD_BATCH
from service_under_test import until

DEADLINE_S = 120
TICKS = os.sysconf("SC_CLK_TCK")
RUNS_AT_ONCE = 4  # RUNS_AT_ONCE_PER_CALLER
SLOW = """
extern "C" __global__ void slow(unsigned *p, unsigned n)
{
    unsigned x = 1;
    for (unsigned i = 0; i < n; i++)
        x = x * 1664525 + 1013904223;
    *p = x | 1;
}
"""


def endless(timeout_ms=300000):
    return {"module": {"source": FAULTS}, "timeout_ms": timeout_ms,
            "ops": [{"op": "alloc", "as": "$x", "size": 4}, {"op": "launch", "kernel": "endless", "grid": [1], "block": [1], "args": [{"buf": "$x"}]}]}


def seconds_used(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(fields[11]) + int(fields[12])) / TICKS


class Computing:
    """The workers that have used the processor since then."""

    def __init__(self, service):
        self.service, self.before = service, {pid: seconds_used(pid) for pid in service.children()}

    def now(self):
        return {pid for pid in self.service.children() if seconds_used(pid) > self.before.get(pid, 0) + 0.5}

    def wait(self, count=1):
        return until(lambda: len(found := self.now()) >= count and found, f"{count} computing workers")


def begin(service, message, path="/v1/run", **headers):
    """Sends a request without waiting for its answer."""
    s = socket.create_connection((service.host, service.port))
    body = json.dumps(message).encode()
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    s.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return s


@pytest.fixture
def own(start):
    service = start("--pool-size", "2")
    assert send(service.client(), "/v1/run", VADD_BATCH, SEGMENTS).segments == {"out": SUM}
    assert send(service.client(), "/v1/run", {**endless(1), "timeout_ms": 1}).status in (504, 422)  # its code is in the cache
    return service


def at_work(pids):
    before = {pid: seconds_used(pid) for pid in pids}
    time.sleep(0.5)
    return [pid for pid in pids if seconds_used(pid) > before[pid] + 0.1]


def all_gone(service, pids):
    """On a GPU, workers that only start also use the processor, and stay."""
    until(lambda: runs(service) == 0, "the places of runs that nobody waits for")
    until(lambda: not at_work(pids & service.children()), "the end of workers that nobody waits for")


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_goes_takes_its_kernel_along(own, how):
    computing = Computing(own)
    run = begin(own, endless())
    busy = computing.wait()
    if how == "reset":
        run.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    run.close()
    assert send(own.client(), "/v1/run", VADD_BATCH, SEGMENTS).segments == {"out": SUM}
    all_gone(own, busy)


def runs(own):
    return own.client().get("/v1/limits").json()["limits"]["runs_at_once"]["used"]


def test_a_run_does_not_wait_for_another(own):
    computing = Computing(own)
    run = begin(own, endless())
    busy = computing.wait()
    assert runs(own) == 1
    for within in (False, True):
        assert send(own.client(), "/v1/run", VADD_BATCH, SEGMENTS, within).segments == {"out": SUM}
    assert busy <= own.children(), "the first one still runs"
    run.close()
    all_gone(own, busy)
    until(lambda: runs(own) == 0, "its place is still counted")


def test_the_fault_of_one_is_not_told_to_those_beside_it(own):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(send(own.client(), "/v1/run", endless(2000)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert send(own.client(), "/v1/run", VADD_BATCH, SEGMENTS).segments == {"out": SUM}
    for thread in threads:
        thread.join()
    assert [answer.code for answer in answers] == ["execution_timeout"] * 2


def test_those_beyond_the_bound_wait_for_a_place(own):
    computing = Computing(own)
    runs = [begin(own, endless()) for _ in range(RUNS_AT_ONCE)]
    busy = computing.wait(RUNS_AT_ONCE)
    small, answers = (SEGMENTS, VADD_BATCH), []
    large = ({"a": bytes(2 << 20)}, {"ops": [{"op": "alloc", "as": "$a", "segment": "a"}, {"op": "read", "from": "$a", "segment": "out"}]})
    threads = [threading.Thread(target=lambda s=segments, m=message: answers.append(send(own.client(), "/v1/run", m, s).segments["out"]))
               for segments, message in (small, large)]
    for thread in threads:
        thread.start()
    threads[0].join(1)
    assert all(thread.is_alive() for thread in threads) and not answers
    runs.pop().close()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert sorted(answers, key=len) == [SUM, bytes(2 << 20)]
    for run in runs:
        run.close()
    all_gone(own, busy)


def test_a_client_that_goes_while_it_waits_for_a_place(own):
    computing = Computing(own)
    runs = [begin(own, endless()) for _ in range(RUNS_AT_ONCE)]
    busy = computing.wait(RUNS_AT_ONCE)
    for _ in range(3):
        begin(own, endless()).close()
    for run in runs:
        run.close()
    for _ in range(3):
        assert send(own.client(), "/v1/run", VADD_BATCH, SEGMENTS).segments == {"out": SUM}
    all_gone(own, busy)


def test_callers_have_places_of_their_own(start, tmp_path):
    from test_start_and_auth import token_file
    scopes = ["read", "write", "compile", "launch"]
    service = start("--tokens", token_file(tmp_path / "tokens.json", ann=scopes, bob=scopes))
    ann, bob = ({"Authorization": f"Bearer {name}-secret"} for name in ("ann", "bob"))
    computing = Computing(service)
    runs = [begin(service, endless(), **ann) for _ in range(RUNS_AT_ONCE + 1)]
    computing.wait(RUNS_AT_ONCE)
    assert send(service.client(**bob), "/v1/run", VADD_BATCH, SEGMENTS).segments == {"out": SUM}
    for run in runs:
        run.close()
    assert send(service.client(**ann), "/v1/run", VADD_BATCH, SEGMENTS).segments == {"out": SUM}


def test_a_key_lets_the_run_go_on_without_its_client(own):
    message = {"module": {"source": SLOW},
               "ops": [{"op": "alloc", "as": "$x", "size": 4}, {"op": "launch", "kernel": "slow", "grid": [1], "block": [1], "args": [{"buf": "$x"}, {"u32": 150000000}]},
                       {"op": "read", "from": "$x", "segment": "out"}], "segments": []}
    computing = Computing(own)
    run = begin(own, message, Idempotency_Key="once")
    computing.wait()
    run.close()
    client = own.client()

    def replayed():
        answer = client.request("POST", "/v1/run", json.dumps(message).encode(), {"Content-Type": "application/json", "Idempotency-Key": "once"})
        assert answer.status == 200 or answer.code == "idempotency_in_progress", answer
        return answer.status == 200 and answer

    answer = until(replayed, "the answer of the run that went on")
    assert answer.headers["Idempotency-Replayed"] == "true" and answer.json()["segments"][0]["size"] == 4


def run_once_a_worker_is_there(client):
    """A pool whose workers are killed at their start pauses, and reports it."""
    deadline = time.monotonic() + DEADLINE_S
    while (answer := send(client, "/v1/run", VADD_BATCH, SEGMENTS)).status == 503 and answer.json()["type"] == "/problems/no_worker":
        assert time.monotonic() < deadline, answer.body
        time.sleep(answer.json()["retry_after_ms"] / 1000)
    return answer


def test_a_worker_that_died_between_runs_is_nobodys_fault(own):
    for _ in range(3):
        for pid in own.children():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        answer = run_once_a_worker_is_there(own.client())
        assert answer.status == 200 and answer.segments == {"out": SUM}, answer.body


# ---- in the background, one after the other ----

def queued(own, first_timeout_ms, within):
    client = own.client()
    first = send(client, "/v1/run", endless(first_timeout_ms), Prefer="respond-async")
    assert first.status == 202
    second = send(client, "/v1/run", VADD_BATCH, SEGMENTS, within, Prefer="respond-async")
    assert second.status == 202
    return client, first.headers["Location"], second.headers["Location"]


def finished(client, location):
    return until(lambda: (state := client.get(location, Prefer="wait=30").json())["state"] not in ("queued", "running") and state, location)


@pytest.mark.parametrize("within", [False, True], ids=["framed", "json"])
def test_who_waits_behind_a_fault_runs_all_the_same(own, within):
    client, first, second = queued(own, 1500, within)
    assert finished(client, second)["state"] == "succeeded"
    assert client.get(second + "/result").status == 200
    assert finished(client, first)["problem"]["code"] == "execution_timeout"


def test_who_waits_behind_one_that_is_ended_runs_all_the_same(own):
    client, first, second = queued(own, 300000, False)
    until(lambda: client.get(first).json()["state"] == "running", "the first")
    assert client.delete(first + "?force=1").status == 202
    assert finished(client, second)["state"] == "succeeded"
    assert finished(client, first)["state"] == "cancelled"


def test_one_that_is_ended_before_it_begins_is_not_done_once_more(own):
    """Still compiling: none of the batch has begun, as with batches that lose their session through others' faults."""
    more = "".join(f'extern "C" __global__ void more{i}(float *p) {{ p[{i}] = sinf(p[{i}]) + cosf(p[{i}] * {i}.5f); }}\n' for i in range(400))
    message = endless()
    message["module"]["source"] += more
    client = own.client()
    first = send(client, "/v1/run", message, Prefer="respond-async").headers["Location"]
    second = send(client, "/v1/run", VADD_BATCH, SEGMENTS, Prefer="respond-async").headers["Location"]
    until(lambda: client.get(first).json()["state"] == "running", "the first")
    assert client.delete(first + "?force=1").status == 202
    assert client.delete(first).status == 409, "it is on its way out"
    assert finished(client, second)["state"] == "succeeded"
    assert finished(client, first)["state"] == "cancelled"


def test_a_long_one_that_cannot_be_run_again_is_told_so(own):
    client = own.client()
    first = send(client, "/v1/run", endless(4000), Prefer="respond-async")
    message = {"ops": [{"op": "alloc", "as": "$a", "segment": "a"}, {"op": "read", "from": "$a", "segment": "out"}]}
    segments = {"a": bytes(2 << 20)}
    second = client.post("/v1/run", frame(with_sizes(message, segments), segments.values()), Content_Type=TYPE, Prefer="respond-async")
    assert (first.status, second.status) == (202, 202)
    state = finished(client, second.headers["Location"])
    assert (state["state"], state["problem"]["code"], state["problem"]["retryable"]) == ("failed", "session_busy", True)
    assert "lost before the run started" in state["problem"]["detail"]
    assert send(client, "/v1/run", message, segments).segments == {"out": bytes(2 << 20)}


# ---- machines that vanish ----

def test_connections_are_asked_whether_their_other_end_still_exists(service):
    """Accepted sockets have the keepalive timer, "02:" in the kernel's table; without keepalive an idle connection has no timer."""
    with socket.create_connection((service.host, service.port)) as s:
        ends = f"{service.port:04X}", f"{s.getsockname()[1]:04X}"

        def timer():
            rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
            return next((row[5] for row in rows if row[3] == "01" and (row[1][-4:], row[2][-4:]) == ends), None)

        assert until(timer, "the service's end of the connection").startswith("02:")
