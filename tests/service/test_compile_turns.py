"""Turns to compile are dealt by caller: sources that never end keep nobody else from compiling. What shows that nobody waited for them is that
they are still unanswered."""
import contextlib
import os
import signal

import pytest

from conftest import VADD
from service_under_test import role_of
from test_crash_budget import BUDGET, WINDOW_S
from test_shared_bounds import Request, requests, two, until, used  # noqa: F401

JOBS_MAX = 4                   # COMPILE_JOBS_MAX; one caller's sources have one less
WAITING_PER_CALLER_MAX = 32    # COMPILE_WAITING_PER_CALLER_MAX
CUDA = {"Content-Type": "text/x-cuda"}
# M39 is 2^40 additions: the preprocessor ends at its deadline of 30 s.
BOMB = "\n".join(["#define M0 1+1"] + [f"#define M{i} M{i - 1}+M{i - 1}" for i in range(1, 40)] + ["__device__ int x = M39;"]).encode()


def kill_compilers(service):
    """True once the service has ended: it waits for what compiles."""
    for pid in service.processes():
        if role_of(pid) == b"compile-worker":
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return service.process.poll() is not None


@pytest.fixture
def bombs(requests):  # noqa: F811
    """bombs(service, count): so many of alice's in one session; the list grows."""
    services = []

    def send(service, count):
        services.append(service)
        for _ in range(count):
            requests.append(Request(service, "alice", "POST", "/v1/sessions/s/modules", BOMB, CUDA))
        return requests

    assert len(BOMB) < 1024
    yield send
    for service in services:
        service.terminate()
        until(lambda: kill_compilers(service), "it does not end")


def check_served(bob):
    assert bob.put("/v1/sessions/s").status in (200, 201)
    built_in = bob.post("/v1/run", {"ops": [{"op": "alloc", "as": "$a", "size": 64}, {"op": "alloc", "as": "$s", "size": 4},
                                            {"op": "launch", "builtin": "reduce_sum", "dtype": "f32",
                                             "args": [{"buf": "$a"}, {"buf": "$s"}, {"u64": 16}]}]})
    assert built_in.status == 200, built_in
    source = bob.put_cuda("/v1/sessions/s/modules/m", VADD)
    assert source.status == 201 and source.json()["cached"] is False, source


def send_and_await(service, alice, bombs, count):
    assert alice.put("/v1/sessions/s").status == 201
    sent = bombs(service, count)
    until(lambda: used(alice, "compilations_waiting") == count - (JOBS_MAX - 1), "not all of them have come")
    return sent


def test_others_compile_beside_sources_that_never_end(two, bombs):  # noqa: F811
    service, alice, bob = two()
    sent = send_and_await(service, alice, bombs, JOBS_MAX)
    check_served(bob)
    assert [bomb.answered() for bomb in sent] == [None] * len(sent)
    assert used(bob, "compilations_waiting") == 0


def test_who_has_too_many_waiting_is_refused_alone(two, bombs):  # noqa: F811
    service, alice, bob = two()
    sent = send_and_await(service, alice, bombs, JOBS_MAX - 1 + WAITING_PER_CALLER_MAX)
    refused = alice.put_cuda("/v1/sessions/s/modules/one-more", VADD)
    assert refused.status == 429 and refused.code == "too_many_in_flight", refused
    problem = refused.json()
    assert problem["limit"]["name"] == "compilations_waiting" and problem["limit"]["max"] == WAITING_PER_CALLER_MAX and problem["retryable"]
    assert int(refused.headers["Retry-After"]) >= 1
    check_served(bob)
    assert [bomb.answered() for bomb in sent] == [None] * len(sent)


def test_a_compilation_that_ends_at_its_deadline_is_its_callers_fault(two, bombs):  # noqa: F811
    service, alice, bob = two("--crash-budget", str(BUDGET), "--crash-window-s", str(10 * WINDOW_S))
    assert alice.put("/v1/sessions/s").status == 201
    assert BUDGET <= JOBS_MAX - 1, "all of them compile at once"
    for bomb in bombs(service, BUDGET):
        assert bomb.status() == 422
    until(lambda: used(alice, "faults") == BUDGET, "they are not counted")
    refused = alice.put_cuda("/v1/sessions/s/modules/m", VADD)
    assert refused.status == 429 and refused.json()["limit"]["name"] == "faults", refused
    assert alice.put("/v1/sessions/more").status == 429
    assert used(bob, "faults") == 0
    check_served(bob)
