"""Turns to compile: a caller's endless sources delay nobody else. The proof is never the time, but that the caller's own requests still
wait when the other caller has been served."""
import concurrent.futures
import os
import signal

import pytest

from kernels import launch
from service_under_test import Client, role_of
from test_crash_budget import faults_of
from test_shared_bounds import Request, until, used
from test_tenants import as_caller, token_file

S = "/v1/sessions/s"
TURNS = 4                # default of --compile-jobs
TURNS_OF_ONE = TURNS - 1  # if there are several callers
WAITING_MAX = 32         # sources of one caller
DEADLINE_S = 30          # of a compilation; a request waits twice as long for a turn
CUDA = {"Content-Type": "text/x-cuda"}
# Each macro is the previous one twice; the last is an empty text 2^39 times, and so takes no memory.
BOMB = "#define M0\n" + "".join(f"#define M{i} M{i - 1} M{i - 1}\n" for i in range(1, 40)) + "__device__ int x = 1 M39;\n"
SOURCE = 'extern "C" __global__ void put9(int *p) { *p = 9; }'
BUILTIN = {"builtin": "cbrt", "dtype": "f32", "args": [{"buf": "x"}, {"buf": "x"}, {"u64": 16}]}


def compilers(service):
    return [pid for pid in service.processes() if role_of(pid) == b"compile-worker"]


def hold(service, count):
    """Stops so many that compile, as SIGSTOP does: their deadlines come all the same, and they take nobody's processor until then."""
    until(lambda: len(compilers(service)) == count, "they do not compile")
    for pid in compilers(service):
        os.kill(pid, signal.SIGSTOP)


@pytest.fixture
def serve(start, tmp_path):
    """serve(*arguments): a service, and its two callers with a session each."""

    def serve_two(*arguments):
        service = start("--tokens", token_file(tmp_path / "tokens.json", alice={}, bob={}), *arguments)
        callers = as_caller(service, "alice"), as_caller(service, "bob")
        for client in callers:
            assert client.put(S).status == 201
            assert client.put(S + "/buffers/x", {"size": 4096}).status == 201
        return service, *callers

    return serve_two


@pytest.fixture
def bombs():
    """Compile requests, closed at the end."""
    all_of_them = []
    yield all_of_them
    for request in all_of_them:
        request.close()


def bomb(service, i):
    assert len(BOMB) < 1000
    return Request(service, "alice", "PUT", f"{S}/modules/bomb{i}", BOMB.encode(), CUDA)


def unanswered(bombs):
    return sum(not request.answered() for request in bombs)


def is_served(client):
    """Needs code that was never compiled before."""
    assert client.post(S + "/launches", BUILTIN).status == 200
    made = client.put_cuda(S + "/modules/own", SOURCE)
    assert made.status == 201 and made.json()["cached"] is False
    assert client.post(S + "/launches", launch("put9", {"buf": "x"}, module="own")).status == 200


@pytest.mark.parametrize("count", [TURNS, 4 * TURNS])
def test_bombs_of_one_hold_up_nobody_else(serve, bombs, count):
    service, alice, bob = serve()
    bombs += [bomb(service, i) for i in range(count)]
    wait = count - TURNS_OF_ONE
    until(lambda: used(alice, "compilations_waiting") == wait, "a caller has other than all turns but one")
    assert used(bob, "compilations_waiting") == 0, "of the caller alone"
    is_served(bob)
    assert unanswered(bombs) >= wait


def test_a_lone_caller_has_all_turns(start, bombs):
    service = start()
    client = service.client()
    assert client.put(S).status == 201
    bombs += [bomb(service, i) for i in range(TURNS + 1)]
    until(lambda: len(compilers(service)) == TURNS, "a lone caller has other than all turns")
    until(lambda: used(client, "compilations_waiting") == 1, "the last one does not wait")


def test_built_in_kernels_wait_for_no_source(start, bombs):
    """If cached code needed turns, each would wait until one of the sources is stopped."""
    service = start("--compile-jobs", "1")
    client = service.client()
    assert client.put(S).status == 201 and client.put(S + "/buffers/x", {"size": 4096}).status == 201
    bombs += [bomb(service, i) for i in range(3)]
    until(lambda: used(client, "compilations_waiting") == 2, "they do not wait")
    for dtype in ("f32", "f64"):
        assert client.post(S + "/launches", {**BUILTIN, "dtype": dtype}).status == 200
    assert unanswered(bombs) >= 2


def test_only_so_many_of_a_caller_wait(serve, bombs):
    service, alice, bob = serve("--compile-jobs", "2")
    bombs += [bomb(service, i) for i in range(1 + WAITING_MAX)]
    until(lambda: used(alice, "compilations_waiting") == WAITING_MAX, "they do not wait")
    refused = alice.put_cuda(S + "/modules/more", SOURCE)
    assert refused.status == 429 and refused.code == "too_many_in_flight" and refused.json()["retryable"]
    assert refused.json()["limit"] == {"name": "compilations_waiting", "max": WAITING_MAX, "used": WAITING_MAX, "requested": 1}
    assert int(refused.headers["Retry-After"]) >= 1
    assert alice.get(S + "/modules/more").code == "module_not_found", "nothing is left of it"
    assert faults_of(alice)["used"] == 0, "to be refused is no fault"
    is_served(bob)
    assert alice.post(S + "/launches", BUILTIN).status == 200, "built-in kernels do not wait behind sources, and their code is there"
    assert unanswered(bombs) >= WAITING_MAX


def test_compilations_that_are_stopped_count_as_faults(serve):
    budget = 2
    service, alice, bob = serve("--crash-budget", str(budget), "--crash-window-s", "3600")

    def compiled(i):
        client = Client(service.host, service.port, alice.headers, timeout=60 + 2 * DEADLINE_S)
        return client.put_cuda(f"{S}/modules/bomb{i}", BOMB)

    with concurrent.futures.ThreadPoolExecutor(budget) as pool:
        answers = pool.map(compiled, range(budget))
        hold(service, budget)
        stopped = list(answers)
    assert [(answer.status, answer.code) for answer in stopped] == [(422, "compile_timeout")] * budget
    assert "counts toward the caller" in stopped[0].json()["detail"]
    assert faults_of(alice) == {"max": budget, "used": budget} and faults_of(bob)["used"] == 0
    for refused in (alice.put_cuda(S + "/modules/more", SOURCE), alice.put("/v1/sessions/more"), alice.post(S + "/launches", BUILTIN)):
        assert refused.status == 429 and refused.code == "rate_limited", refused
        assert refused.json()["limit"] == {"name": "faults", "max": budget, "used": budget, "requested": 1}
        assert int(refused.headers["Retry-After"]) >= 1
    service.logged("caller alice has used up its crash budget")
    is_served(bob)


def test_a_stop_ends_what_compiles(start, bombs):
    service = start("--drain-timeout", "0", "--compile-jobs", "2")
    client = service.client()
    assert client.put(S).status == 201
    bombs += [bomb(service, i) for i in range(3)]
    until(lambda: used(client, "compilations_waiting") == 1, "the last one does not wait")
    service.terminate()
    assert service.wait() == 0
    answers = [request.socket.recv(65536) for request in bombs]
    assert all(b" 503 " in answer and b'"draining"' in answer for answer in answers), answers
