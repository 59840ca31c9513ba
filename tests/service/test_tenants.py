"""Several callers: their limits, that none learns anything of another, and that everything is given back."""
import hashlib
import http.client
import json
import signal

import pytest

from conftest import VADD
from kernels import BAD_ADDRESS, FAULTS, fill7, launch
from service_under_test import until

ALL = ["read", "write", "compile", "launch", "metrics", "admin"]


def token_file(path, **callers):
    """callers: name -> further members of its entry."""
    rows = [{"name": name, "sha256": hashlib.sha256((name + "-secret").encode()).hexdigest(), "scopes": ALL, **more} for name, more in callers.items()]
    path.write_text(json.dumps({"tokens": rows}))
    path.chmod(0o600)
    return str(path)


def as_caller(service, name):
    return service.client(Authorization=f"Bearer {name}-secret")


# ---- rates ----

def answers(client, count):
    got = [client.get("/version") for _ in range(count)]
    refused = [answer for answer in got if answer.status == 429]
    assert all(answer.code == "rate_limited" and int(answer.headers["Retry-After"]) >= 1 for answer in refused)
    assert all(answer.json()["retryable"] and answer.json()["limit"]["name"] == "requests_per_s" for answer in refused)
    assert {answer.status for answer in got} <= {200, 429}
    return len(got) - len(refused), len(refused)


def test_each_caller_has_a_rate_of_its_own(start, tmp_path):
    tokens = token_file(tmp_path / "tokens.json", slow={"rate": 2}, free={"rate": 0}, usual={})
    service = start("--tokens", tokens, "--rate", "1000000")
    taken, refused = answers(as_caller(service, "slow"), 40)
    assert taken >= 2 and refused >= 1
    assert answers(as_caller(service, "free"), 40) == (40, 0)
    assert answers(as_caller(service, "usual"), 40) == (40, 0)
    assert as_caller(service, "free").get("/v1/limits").json()["limits"]["requests_per_s"] == {"max": None, "used": None}
    assert as_caller(service, "usual").get("/v1/limits").json()["limits"]["requests_per_s"]["max"] == 1000000
    metrics = as_caller(service, "free").get("/metrics").body.decode()
    assert f'gpurest_problems_total{{code="rate_limited"}} {refused}' in metrics


def test_the_rate_is_read_anew_with_the_tokens(start, tmp_path):
    service = start("--tokens", token_file(tmp_path / "tokens.json", alice={"rate": 1}))
    assert answers(as_caller(service, "alice"), 20)[1] > 0
    token_file(tmp_path / "tokens.json", alice={"rate": 0})
    service.process.send_signal(signal.SIGHUP)
    until(lambda: answers(as_caller(service, "alice"), 20) == (20, 0), "the new rate never came")


def test_without_tokens_the_setting_holds_for_all_together(start):
    service = start("--rate", "3")
    assert answers(service.client(), 40)[1] > 0
    assert all(service.client().get("/livez").status == 200 for _ in range(40)), "open pages are not counted"


# ---- wrong tokens ----

def test_guessing_ends_and_disturbs_nobody(start, tmp_path):
    service = start("--tokens", token_file(tmp_path / "tokens.json", alice={}, bob={}), "--token-failures", "4")
    assert as_caller(service, "alice").get("/version").status == 200
    wrong = [as_caller(service, f"wrong{i}").get("/version") for i in range(30)]
    assert [answer.code for answer in wrong[:4]] == ["unauthenticated"] * 4
    assert wrong[-1].code == "rate_limited" and int(wrong[-1].headers["Retry-After"]) >= 1
    stranger = as_caller(service, "bob").get("/version")
    assert stranger.status == 429, "a right token of one who was never here is answered like a wrong one"
    assert {**stranger.json(), "request_id": 0, "retry_after_ms": 0} == {**wrong[-1].json(), "request_id": 0, "retry_after_ms": 0}
    assert as_caller(service, "alice").get("/version").status == 200, "who was here before goes on, over new connections too"
    assert service.client().get("/livez").status == 200


# ---- ids of other callers ----

def same_but_the_request(problem):
    return {name: value for name, value in problem.items() if name not in ("instance", "request_id")}


def requests_about(document, session):
    """Every operation on a session, with the ids of alice's objects."""
    for path, item in document["paths"].items():
        if not path.startswith("/v1/sessions/{"):
            continue
        parts = path.split("/")
        parts[3] = session
        parts = ["x" if part.startswith("{") else part for part in parts]
        for method in item:
            if method in ("get", "post", "put", "patch", "delete"):
                yield method.upper(), "/".join(parts)


def test_what_another_has_is_as_what_nobody_has(start, tmp_path):
    service = start("--tokens", token_file(tmp_path / "tokens.json", alice={}, bob={}))
    alice, bob = as_caller(service, "alice"), as_caller(service, "bob")
    made = alice.post("/v1/sessions").json()["id"]
    missing = made[:-1] + ("0" if made[-1] != "0" else "1")  # it begins with what all ids of this process begin with
    assert alice.put(f"/v1/sessions/{made}/buffers/x", {"size": 64}).status == 201
    assert alice.put_cuda(f"/v1/sessions/{made}/modules/x", VADD).status == 201
    document = alice.get("/openapi.json").json()
    operations = list(requests_about(document, made))
    assert len(operations) > 30
    for method, path in operations:
        if (method, path) == ("PUT", f"/v1/sessions/{made}"):
            continue  # creates bob's own session of that name
        for headers, body in (({}, None), ({"Content-Type": "application/json"}, b"{}"), ({"Content-Type": "application/octet-stream"}, b"abcd")):
            foreign = bob.request(method, path, body, dict(headers))
            nothing = bob.request(method, path.replace(made, missing), body, dict(headers))
            assert (foreign.status, foreign.code) == (nothing.status, nothing.code), (method, path, foreign, nothing)
            assert same_but_the_request(foreign.json()) == same_but_the_request(nothing.json()), (method, path)
            fixed = {name for name in foreign.headers if name not in ("X-Request-Id", "Date", "Server-Timing")}
            assert {name: foreign.headers[name] for name in fixed} == {name: nothing.headers[name] for name in fixed}, (method, path)
    assert alice.get(f"/v1/sessions/{made}/buffers/x").status == 200


def test_compiled_code_is_each_callers_own(start, tmp_path):
    tokens = token_file(tmp_path / "tokens.json", alice={}, bob={})

    def cached(service, name):
        client = as_caller(service, name)
        assert client.put("/v1/sessions/s").status in (200, 201)
        answer = client.put_cuda(f"/v1/sessions/s/modules/{name}", VADD)
        client.delete("/v1/sessions/s")
        return answer.json()["cached"]

    service = start("--tokens", tokens)
    assert [cached(service, name) for name in ("alice", "bob", "alice", "bob")] == [False, False, True, True]
    shared = start("--tokens", tokens, "--cache-shared")
    assert [cached(shared, name) for name in ("alice", "bob")] == [False, True]


# ---- everything is given back ----

def used(client):
    limits = client.get("/v1/limits").json()["limits"]
    counted = {name: limit["used"] for name, limit in limits.items() if limit["used"] is not None}
    assert counted.pop("requests_in_flight") == 1  # this request
    assert counted.pop("idempotency_keys_total") == counted["idempotency_keys"]
    counted.pop("idempotency_keys"), counted.pop("faults")  # they only expire
    return counted


def fill_session(client, path):
    """Creates some of everything that a session can hold."""
    assert client.put(path).status == 201
    assert client.put_cuda(path + "/modules/f", FAULTS).status == 201
    for i in range(10):
        assert client.put(f"{path}/buffers/b{i}", {"size": 100_000}).status == 201
    assert client.put(path + "/buffers/x", {"size": 4096}).status == 201
    assert client.post(path + "/launches", fill7(stream="s")).status == 200
    ops = [{"op": "launch", **fill7()}, {"op": "alloc", "as": "$t", "size": 5000}, {"op": "copy", "from": "x", "to": "$t", "size": 4}]
    assert client.post(path + "/batches", {"ops": ops, "keep": ["$t"]}).status == 200
    assert client.post(path + "/batches", {"ops": ops}, Prefer="respond-async").status == 202
    assert client.put(path + "/programs/p", {"ops": [{"op": "launch", **fill7()}]}).status == 201


def by_deletion(client, path):
    assert client.delete(path).status == 204


def by_fault(client, path):
    assert client.post(path + "/launches", launch("illegal", BAD_ADDRESS)).code == "kernel_fault"
    assert client.delete(path).status == 204


def by_timeout(client, path):
    assert client.post(path + "/launches", launch("endless", {"buf": "x"}, timeout_ms=100)).code == "execution_timeout"
    assert client.post(path + "/reset").status == 200
    assert client.delete(path).status == 204


def by_reset(client, path):
    """A reset empties the session: only the session itself counts."""
    assert client.post(path + "/reset").status == 200
    assert client.get(path).json()["usage"]["memory_bytes"] == 0 and client.get(path + "/buffers").json()["items"] == []
    assert client.delete(path).status == 204


def with_work_queued(client, path):
    sent = [client.post(path + "/launches", launch("endless", {"buf": "x"}, timeout_ms=60000), Prefer="respond-async") for _ in range(5)]
    assert {answer.status for answer in sent} == {202}
    assert client.delete(path).status == 204


@pytest.mark.parametrize("end", [by_deletion, by_fault, by_timeout, by_reset, with_work_queued])
def test_quotas_return_to_zero(start, tmp_path, end):
    service = start("--tokens", token_file(tmp_path / "tokens.json", alice={}))
    client = as_caller(service, "alice")
    assert set(used(client).values()) == {0}
    for i in range(3):
        fill_session(client, f"/v1/sessions/q{i}")
    assert used(client)["sessions"] == used(client)["sessions_total"] == 3 and used(client)["caller_memory_bytes"] >= 3_000_000
    assert used(client)["batch_jobs_bytes"] > 0, "of the batches in the background"
    for i in range(3):
        end(client, f"/v1/sessions/q{i}")
    until(lambda: set(used(client).values()) == {0}, used(client))


def test_each_quota_is_met_and_given_back(start, tmp_path):
    service = start("--tokens", token_file(tmp_path / "tokens.json", alice={"sessions_max": 2, "memory_max_bytes": 1000}))
    client = as_caller(service, "alice")
    for _ in range(3):
        assert client.put("/v1/sessions/a").status == 201 and client.put("/v1/sessions/b").status == 201
        refused = client.put("/v1/sessions/c")
        assert refused.code == "quota_exceeded" and refused.json()["limit"]["max"] == 2
        assert client.put("/v1/sessions/a/buffers/x", {"size": 600}).status == 201
        refused = client.put("/v1/sessions/b/buffers/x", {"size": 600})
        assert refused.code == "quota_exceeded" and refused.json()["limit"]["name"] == "caller_memory_bytes"
        assert client.delete("/v1/sessions/a/buffers/x").status == 204
        assert client.put("/v1/sessions/b/buffers/x", {"size": 1000}).status == 201
        assert client.delete("/v1/sessions/a").status == 204 and client.delete("/v1/sessions/b").status == 204
        assert set(used(client).values()) == {0}


def queue_launches(client, path, most):
    """Fills the queue behind an endless batch; the refusal."""
    for i in range(most + 2):
        sent = client.post(path + "/launches", launch("endless", {"buf": "x"}, timeout_ms=60000), Prefer="respond-async")
        if sent.status != 202:
            return i, sent
    raise AssertionError("never refused")


def test_queued_launches_are_bounded_and_given_back(start, tmp_path):
    service = start("--tokens", token_file(tmp_path / "tokens.json", alice={}, bob={}))
    client, other = as_caller(service, "alice"), as_caller(service, "bob")
    most = client.get("/v1/limits").json()["limits"]["launches_queued"]["max"]
    for caller in (client, other):
        assert caller.put("/v1/sessions/s").status == 201
        assert caller.put_cuda("/v1/sessions/s/modules/f", FAULTS).status == 201
        assert caller.put("/v1/sessions/s/buffers/x", {"size": 4096}).status == 201
    taken, refused = queue_launches(client, "/v1/sessions/s", most)
    assert taken == most and refused.status == 403 and refused.code == "quota_exceeded", (taken, refused)
    assert refused.json()["limit"] == {"name": "launches_queued", "max": most, "used": most, "requested": 1}
    assert other.post("/v1/sessions/s/launches", fill7()).status == 200, "another caller is not held up"
    assert client.post("/v1/sessions/s/reset").status == 200
    assert client.put_cuda("/v1/sessions/s/modules/f", FAULTS).status == 201
    assert client.put("/v1/sessions/s/buffers/x", {"size": 4096}).status == 201
    assert client.post("/v1/sessions/s/launches", fill7()).status == 200
    for caller in (client, other):
        assert caller.delete("/v1/sessions/s").status == 204
    until(lambda: set(used(client).values()) == {0}, used(client))


def test_requests_in_flight_are_bounded_and_given_back(start, tmp_path):
    service = start("--tokens", token_file(tmp_path / "tokens.json", alice={}, bob={}))
    client = as_caller(service, "alice")
    most = client.get("/v1/limits").json()["limits"]["requests_in_flight"]["max"]
    assert client.put("/v1/sessions/s").status == 201
    assert client.put_cuda("/v1/sessions/s/modules/f", FAULTS).status == 201
    assert client.put("/v1/sessions/s/buffers/x", {"size": 4096}).status == 201
    sent = client.post("/v1/sessions/s/launches", launch("endless", {"buf": "x"}, timeout_ms=60000), Prefer="respond-async")
    waiting = [waits_for(service, sent.headers["Location"]) for _ in range(most)]
    asked = []

    def full():
        asked.append(as_caller(service, "alice").get("/v1/limits"))
        if asked[-1].status == 200:  # the question itself took a place, maybe the one meant for a waiting request
            waiting.append(waits_for(service, sent.headers["Location"]))
        return asked[-1].status == 429

    until(full, "it is never full")
    refused = asked[-1]
    assert refused.code == "too_many_in_flight" and refused.json()["limit"] == {"name": "requests_in_flight", "max": most, "used": most, "requested": 1}
    assert int(refused.headers["Retry-After"]) >= 1
    assert as_caller(service, "bob").get("/v1/limits").status == 200, "another caller is not held up"
    for connection in waiting:
        connection.close()
    until(lambda: as_caller(service, "alice").get("/v1/limits").status == 200, "what was left is still counted")
    assert client.delete("/v1/sessions/s").status == 204
    until(lambda: client.get("/v1/limits").json()["limits"]["requests_in_flight"]["used"] == 1, "what was left is still counted")


def waits_for(service, path):
    """A request that is answered when a launch has ended, or the wait is over."""
    connection = http.client.HTTPConnection(service.host, service.port, timeout=60)
    connection.request("GET", path, headers={"Authorization": "Bearer alice-secret", "Prefer": "wait=50"})
    return connection


# ---- other callers' memory ----

LEAK = r"""
__device__ unsigned kept[4096];
extern "C" __global__ void mark(unsigned *all, unsigned n)
{
    __shared__ unsigned here[4096];
    for (unsigned i = threadIdx.x; i < 4096; i += blockDim.x)
        here[i] = kept[i] = 0xa5a5a5a5u;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        all[i] = here[i % 4096];
}
extern "C" __global__ void look(unsigned *found, const unsigned *all, unsigned n)
{
    __shared__ unsigned here[4096];
    unsigned local[64], count = 0;
    for (unsigned i = threadIdx.x; i < 4096; i += blockDim.x)
        count += (here[i] == 0xa5a5a5a5u) + (kept[i] == 0xa5a5a5a5u);
    for (unsigned i = 0; i < 64; i++)
        count += ((volatile unsigned *)local)[i] == 0xa5a5a5a5u;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        count += all[i] == 0xa5a5a5a5u;
    atomicAdd(found, count);
}
"""
LEAK_WORDS = 2 << 20


def test_memory_of_one_caller_never_reaches_another(start, tmp_path):
    service = start("--tokens", token_file(tmp_path / "tokens.json", alice={}, bob={}), "--pool-size", "1")
    alice, bob = as_caller(service, "alice"), as_caller(service, "bob")
    for _ in range(10):
        for client, kernel, args in ((alice, "mark", []), (bob, "look", [{"buf": "found"}])):
            assert client.put("/v1/sessions/s").status == 201
            assert client.put_cuda("/v1/sessions/s/modules/m", LEAK).status in (200, 201)
            assert client.put("/v1/sessions/s/buffers/all", {"size": 4 * LEAK_WORDS}).status == 201
            assert client.put_octets("/v1/sessions/s/buffers/found", bytes(4)).status == 201
            sent = {"module": "m", "kernel": kernel, "grid": [8], "block": [64], "args": [*args, {"buf": "all"}, {"u32": LEAK_WORDS}]}
            assert client.post("/v1/sessions/s/launches", sent).status == 200
            if kernel == "mark":
                assert client.get("/v1/sessions/s/buffers/all/data", Range="bytes=0-3").body == b"\xa5" * 4
            else:
                assert client.get("/v1/sessions/s/buffers/found/data").body == bytes(4), "words of the other caller"
                assert b"\xa5\xa5\xa5\xa5" not in client.get("/v1/sessions/s/buffers/all/data").body
            assert client.delete("/v1/sessions/s").status == 204
