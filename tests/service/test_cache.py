"""The cache of compiled code over HTTP: what is in it, removing that, and compiling ahead. A caller sees and removes its own code alone."""
import concurrent.futures
import os
import time

import pytest

from service_under_test import until
from test_compile_turns import BOMB, hold
from test_shared_bounds import used
from test_tenants import ALL, as_caller, token_file

S = "/v1/sessions/s"
WARM = "/v1/cache/warm"
FINAL = ("succeeded", "failed", "cancelled")
NOTHING = {"entries": 0, "bytes": 0, "hits": 0, "misses": 0}
WITHOUT_ADMIN = [scope for scope in ALL if scope != "admin"]


def source(number):
    return f'extern "C" __global__ void put(int *p) {{ *p = {number}; }}'


@pytest.fixture
def cached(start, tmp_path):
    """A service with an empty cache."""
    return start("--cache", str(tmp_path / "cache"))


@pytest.fixture
def two(start, tmp_path):
    """(a service with an empty cache, alice and bob, who may not administer it, and root, who may)."""
    callers = {"alice": {"scopes": WITHOUT_ADMIN}, "bob": {"scopes": WITHOUT_ADMIN}, "root": {}}
    service = start("--tokens", token_file(tmp_path / "tokens.json", **callers), "--cache", str(tmp_path / "cache"))
    return service, *(as_caller(service, name) for name in callers)


def compiled(client, *sources):
    """Whether the code of each was in the cache."""
    assert client.put(S).status == 201
    made = [client.put_cuda(f"{S}/modules/m{i}", text) for i, text in enumerate(sources)]
    assert [answer.status for answer in made] == [201] * len(sources)
    assert client.delete(S).status == 204
    return [answer.json()["cached"] for answer in made]


def cache(client):
    answer = client.get("/v1/cache")
    assert answer.status == 200, answer
    return answer.json()


def begun(client, request):
    answer = client.post(WARM, request)
    assert answer.status == 202, answer
    job = answer.json()
    assert job["id"].startswith("w_") and answer.headers["Location"] == f"{WARM}/{job['id']}"
    return answer.headers["Location"]


def ended(client, path):
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        answer = client.get(path, Prefer="wait=20")
        assert answer.status == 200 and answer.headers["Preference-Applied"] == "wait=20", answer
        if answer.json()["state"] in FINAL:
            return answer.json()
    raise AssertionError(answer)


# ---- what is in it ----

def test_entries_hits_and_misses_are_counted(cached):
    client = cached.client()
    assert cache(client) == {"enabled": True, "shared": False, **NOTHING, "limits": {"entries": 65536, "bytes": 1024 << 20}, "all": NOTHING}
    assert compiled(client, source(1), source(2)) == [False, False]
    assert compiled(client, source(1)) == [True]
    seen = cache(client)
    assert (seen["entries"], seen["hits"], seen["misses"]) == (2, 1, 2) and seen["bytes"] > 1000
    assert seen["all"] == {name: seen[name] for name in NOTHING}


def test_a_caller_learns_nothing_of_anothers_code(two):
    _, alice, bob, root = two
    assert compiled(alice, source(1)) == [False]
    assert "all" not in cache(alice) and "all" not in cache(bob)
    assert cache(alice)["entries"] == 1
    assert {name: cache(bob)[name] for name in NOTHING} == NOTHING
    assert cache(root)["all"]["entries"] == 1 and cache(root)["entries"] == 0
    assert compiled(bob, source(1)) == [False], "the same source"
    assert cache(root)["all"]["entries"] == 2
    job = ended(bob, begun(bob, {"modules": [{"source": source(1)}, {"source": source(2)}]}))
    assert [item["cached"] for item in job["items"]] == [True, False]
    job = ended(alice, begun(alice, {"modules": [{"source": source(2)}]}))
    assert job["items"][0]["cached"] is False, "what bob compiled ahead is his"


def test_without_a_cache(start):
    client = start("--cache", "none").client()
    assert cache(client) == {"enabled": False, "shared": False, **NOTHING, "limits": {"entries": 0, "bytes": 0}, "all": NOTHING}
    assert client.delete("/v1/cache").json() == {"removed_entries": 0, "removed_bytes": 0}
    refused = client.post(WARM, {"kernels": ["axpy"]})
    assert refused.status == 403 and refused.code == "feature_disabled" and "--cache none" in refused.json()["detail"]


# ---- removing ----

def test_a_caller_removes_its_own(two):
    _, alice, bob, root = two
    for client in (alice, bob):
        assert compiled(client, source(1)) == [False]
    size = cache(alice)["bytes"]
    assert alice.delete("/v1/cache?older_than_s=86400").json() == {"removed_entries": 0, "removed_bytes": 0}
    assert alice.delete("/v1/cache").json() == {"removed_entries": 1, "removed_bytes": size}
    assert (cache(alice)["entries"], cache(bob)["entries"]) == (0, 1)
    assert compiled(alice, source(1)) == [False] and compiled(bob, source(1)) == [True]
    refused = alice.delete("/v1/cache?all=1")
    assert refused.status == 403 and refused.code == "insufficient_scope"
    assert (cache(alice)["entries"], cache(bob)["entries"]) == (1, 1)
    assert root.delete("/v1/cache").json()["removed_entries"] == 0, "an administrator's own, too, unless told otherwise"
    assert root.delete("/v1/cache?all=1").json()["removed_entries"] == 2
    assert compiled(alice, source(1)) == [False]


def test_code_that_was_not_used_for_long(cached, tmp_path):
    client = cached.client()
    assert compiled(client, source(1), source(2)) == [False, False]
    oldest = next(path for path in (tmp_path / "cache").rglob("*") if path.is_file())
    os.utime(oldest, (1, 1))
    assert client.delete("/v1/cache?older_than_s=3600").json()["removed_entries"] == 1
    assert not oldest.exists() and cache(client)["entries"] == 1


def test_a_cache_that_callers_share_is_emptied_by_an_administrator(start, tmp_path):
    tokens = token_file(tmp_path / "tokens.json", alice={"scopes": WITHOUT_ADMIN}, root={})
    service = start("--tokens", tokens, "--cache", str(tmp_path / "cache"), "--cache-shared")
    alice, root = as_caller(service, "alice"), as_caller(service, "root")
    assert compiled(alice, source(1)) == [False] and compiled(root, source(1)) == [True]
    assert cache(alice)["shared"] is True and cache(alice)["entries"] == 1
    assert alice.delete("/v1/cache").code == "insufficient_scope"
    assert root.delete("/v1/cache").json()["removed_entries"] == 1


@pytest.mark.parametrize("query", ["older_than_s=-1", "older_than_s=x", "older_than_s=18446744073709551616", "all=2", "all=", "more=1"])
def test_wrong_queries(cached, query):
    client = cached.client()
    assert compiled(client, source(1)) == [False]
    refused = client.delete("/v1/cache?" + query)
    assert refused.status == 400 and refused.code in ("invalid_field", "unknown_field"), refused
    assert cache(client)["entries"] == 1, "nothing is lost"


def test_the_longest_age_removes_nothing(cached):
    client = cached.client()
    assert compiled(client, source(1)) == [False]
    assert client.delete(f"/v1/cache?older_than_s={2**64 - 1}").json()["removed_entries"] == 0


# ---- ahead ----

def test_built_in_kernels_and_sources_are_compiled_ahead(cached):
    client = cached.client()
    device = client.get("/v1/devices").json()["items"][0]["id"]
    path = begun(client, {"kernels": ["axpy", "cbrt"], "dtypes": ["f32", "f64"], "modules": [{"source": source(5)}], "devices": [device]})
    job = ended(client, path)
    assert job["state"] == "succeeded" and (job["total"], job["succeeded"], job["failed"]) == (5, 5, 0), job
    assert [(item.get("kernel"), item.get("dtype"), item.get("module")) for item in job["items"]] == [
        ("axpy", "f32", None), ("axpy", "f64", None), ("cbrt", "f32", None), ("cbrt", "f64", None), (None, None, 0)]
    assert {item["device"] for item in job["items"]} == {device} and {item["state"] for item in job["items"]} == {"succeeded"}
    assert ["cached" in item for item in job["items"]] == [False] * 4 + [True], "who compiled built-in kernels is nobody's business"
    assert job["created_at"] <= job["finished_at"] < job["expires_at"]
    before = cache(client)["all"]
    assert before["entries"] == 5
    assert compiled(client, source(5)) == [True]
    assert client.put(S).status == 201 and client.put(S + "/buffers/x", {"size": 64}).status == 201
    for dtype in ("f32", "f64"):
        args = [{"buf": "x"}, {"buf": "x"}, {"u64": 8}]
        assert client.post(S + "/launches", {"builtin": "cbrt", "dtype": dtype, "args": args}).status == 200
    after = cache(client)["all"]
    assert after["misses"] == before["misses"] and after["hits"] == before["hits"] + 3, "a launch finds what was compiled ahead"
    assert client.delete(path).status == 204
    assert client.get(path).code == "not_found" and client.delete(path).code == "not_found"


def test_without_dtypes_all_of_a_kernel(cached):
    client = cached.client()
    kernel = client.get("/v1/kernels/cbrt").json()
    path = begun(client, {"kernels": ["cbrt"]})
    assert [item["dtype"] for item in client.get(path).json()["items"]] == kernel["dtypes"]
    assert client.delete(path).status in (200, 204)


def test_a_source_that_does_not_compile_fails_alone(cached):
    client = cached.client()
    job = ended(client, begun(client, {"modules": [{"source": "this is no C"}, {"source": source(1)}]}))
    assert job["state"] == "failed" and (job["succeeded"], job["failed"]) == (1, 1)
    bad, good = job["items"]
    assert bad["state"] == "failed" and bad["problem"]["code"] == "compile_failed" and bad["problem"]["detail"]
    assert good["state"] == "succeeded" and compiled(client, source(1)) == [True]


def test_options_and_headers_count(cached):
    client = cached.client()
    module = {"source": '#include "n.h"\nextern "C" __global__ void put(int *p) { *p = N + M; }', "headers": {"n.h": "#define N 1\n"},
              "options": ["-DM=2"], "name_expressions": ["put"]}
    assert ended(client, begun(client, {"modules": [module]}))["state"] == "succeeded"
    assert client.put(S).status == 201
    assert client.put(S + "/modules/m", module).json()["cached"] is True
    assert client.put(S + "/modules/o", {**module, "options": ["-DM=3"]}).json()["cached"] is False


@pytest.mark.parametrize("body,code,pointer", [
    ({}, "invalid_field", ""),
    ({"kernels": []}, "invalid_field", ""),
    ({"kernels": "axpy"}, "invalid_field", "/kernels"),
    ({"kernels": ["axpy", "nonesuch"]}, "kernel_not_found", "/kernels/1"),
    ({"kernels": [7]}, "kernel_not_found", "/kernels/0"),
    ({"kernels": ["axpy"], "dtypes": ["f32", "f7"]}, "invalid_field", "/dtypes/1"),
    ({"modules": [{"source": "int x;"}], "dtypes": ["f32"]}, "invalid_field", "/dtypes"),
    ({"kernels": ["axpy"], "devices": ["nowhere:7"]}, "device_not_found", "/devices/0"),
    ({"kernels": ["axpy"], "devices": [1]}, "invalid_field", "/devices/0"),
    ({"modules": [{"source": "int x;"}, {"source": ""}]}, "invalid_field", "/modules/1/source"),
    ({"modules": [{"source": "int x;", "options": ["--time=x"]}]}, "option_not_allowed", "/modules/0/options/0"),
    ({"modules": ["int x;"]}, "invalid_field", "/modules/0"),
    ({"kernels": ["axpy"], "more": 1}, "unknown_field", "/more"),
])
def test_wrong_requests(client, body, code, pointer):
    refused = client.post(WARM, body)
    assert refused.status >= 400 and refused.code == code, refused
    assert refused.json()["errors"][0]["pointer"] == pointer, refused


def test_more_items_than_one_may_have(client):
    refused = client.post(WARM, {"modules": [{"source": "int x;"}] * 1025})
    assert refused.status == 403 and refused.json()["limit"] == {"name": "cache_warm_items", "max": 1024, "used": 1024, "requested": 1}


def test_it_is_cancelled(two):
    """The bomb compiles until its deadline; what waits behind it is not begun."""
    _, alice, bob, _ = two
    path = begun(alice, {"modules": [{"source": BOMB}, {"source": source(1)}]})
    until(lambda: alice.get(path).json()["items"][0]["state"] == "running", "it does not begin")
    assert alice.get(path).json()["items"][1]["state"] == "queued" and used(alice, "cache_warms") == 1
    for stranger in (bob.get(path), bob.delete(path)):
        assert stranger.status == 404 and stranger.code == "not_found"
    cancelled = alice.delete(path)
    assert cancelled.status == 200 and cancelled.json()["state"] == "cancelled"
    assert [item["state"] for item in cancelled.json()["items"]] == ["cancelled"] * 2
    assert alice.get(path).json()["state"] == "cancelled"
    assert alice.delete(path).status == 204 and alice.get(path).status == 404
    assert cache(alice)["entries"] == 0


def test_a_long_poll_ends_with_a_cancel(cached):
    client, other = cached.client(), cached.client()
    path = begun(client, {"modules": [{"source": BOMB}]})
    until(lambda: client.get(path).json()["items"][0]["state"] == "running", "it does not begin")
    tag = client.get(path).headers["ETag"]
    assert client.get(path, **{"If-None-Match": tag}).status == 304
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        poll = pool.submit(other.get, path, Prefer="wait=25")
        assert client.delete(path).json()["state"] == "cancelled"
        assert poll.result().json()["state"] == "cancelled"
    assert client.get(path, **{"If-None-Match": tag}).status == 200


def test_one_caller_has_so_many(two):
    _, alice, bob, _ = two
    paths = [begun(alice, {"modules": [{"source": BOMB}]}) for _ in range(4)]
    refused = alice.post(WARM, {"kernels": ["axpy"]})
    assert refused.status == 429 and refused.json()["limit"] == {"name": "cache_warms", "max": 4, "used": 4, "requested": 1}
    assert used(bob, "cache_warms") == 0
    assert ended(bob, begun(bob, {"modules": [{"source": source(1)}]}))["state"] == "succeeded", "another caller is not held up"
    assert compiled(bob, source(2)) == [False]
    assert [alice.delete(path).status for path in paths] == [200] * 4


def test_a_source_that_is_stopped_counts_as_a_fault(start, tmp_path):
    service = start("--tokens", token_file(tmp_path / "tokens.json", alice={}), "--cache", str(tmp_path / "cache"), "--crash-budget", "1",
                    "--crash-window-s", "3600")
    alice = as_caller(service, "alice")
    path = begun(alice, {"modules": [{"source": BOMB}, {"source": source(1)}]})
    hold(service, 1)
    job = ended(alice, path)
    assert [item["problem"]["code"] for item in job["items"]] == ["compile_timeout", "rate_limited"]
    assert used(alice, "faults") == 1


def test_a_stop_of_the_service_ends_it(cached):
    client = cached.client()
    path = begun(client, {"modules": [{"source": BOMB}] * 3})
    until(lambda: client.get(path).json()["items"][0]["state"] == "running", "it does not begin")
    cached.terminate()
    assert cached.wait() == 0


def test_scopes(start, tmp_path):
    service = start("--tokens", token_file(tmp_path / "tokens.json", reader={"scopes": ["read"]}))
    reader = as_caller(service, "reader")
    assert reader.get("/v1/cache").status == 200
    for refused in (reader.delete("/v1/cache"), reader.post(WARM, {"kernels": ["axpy"]})):
        assert refused.status == 403 and refused.code == "insufficient_scope"
