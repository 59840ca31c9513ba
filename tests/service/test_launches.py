"""Launches: results, waiting, polling, cancelling; arguments and configurations that are refused before anything runs."""
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import floats
from kernels import FAULTS, fill7, launch, launch_vadd


def test_vadd(client, vadd):
    done = client.post(vadd + "/launches", launch_vadd())
    info = done.json()
    assert done.status == 200 and info["state"] == "succeeded" and info["gpu_us"] >= 0 and info["stdout"] == ""
    assert info["grid"] == [4, 1, 1] and info["block"] == [256, 1, 1] and info["id"].startswith("l_")
    assert info["created_at"] <= info["started_at"] <= info["finished_at"]
    assert "kernel" in done.headers["Server-Timing"]
    assert client.get(vadd + "/buffers/c/data").body == floats(3 * i for i in range(1024))
    again = client.get(f"{vadd}/launches/{info['id']}")
    assert again.status == 200 and again.json()["state"] == "succeeded"


def test_automatic_block(client, vadd):
    done = client.post(vadd + "/launches", launch_vadd(block=None, grid={"threads": 1024})).json()
    assert done["grid"][0] * done["block"][0] >= 1024
    assert client.get(vadd + "/buffers/c/data").body == floats(3 * i for i in range(1024))


def test_asynchronous(client, vadd):
    sent = client.post(vadd + "/launches", launch_vadd(), Prefer="respond-async")
    assert sent.status == 202 and sent.headers["Preference-Applied"] == "respond-async"
    done = client.get(sent.headers["Location"], Prefer="wait=30")
    assert done.status == 200 and done.json()["state"] == "succeeded"
    assert client.get(sent.headers["Location"], If_None_Match=done.headers["ETag"]).status == 304


def test_wait_is_granted_up_to_a_bound(client, vadd):
    assert client.post(vadd + "/launches", launch_vadd(), Prefer="wait=1000").headers["Preference-Applied"] == "wait=300"


def test_who_wants_little_gets_what_there_is_to_tell(client, vadd):
    little = {"Prefer": "wait=30, return=minimal"}
    for _ in range(2):  # the second is the same launch
        done = client.post(vadd + "/launches", launch_vadd(id="untimed", timing=False), **little)
        assert done.status == 204 and done.body == b"" and "Content-Type" not in done.headers
    assert client.get(vadd + "/buffers/c/data").body == floats(3 * i for i in range(1024))
    assert client.get(vadd + "/launches/untimed", **little).json()["state"] == "succeeded"
    assert client.post(vadd + "/launches", launch_vadd(), **little).json()["gpu_us"] >= 0
    assert client.post(vadd + "/launches", launch_vadd(timing=False), Prefer="return=representation").json()["state"] == "succeeded"
    later = {"Prefer": "respond-async, return=minimal"}
    assert client.post(vadd + "/launches", launch_vadd(timing=False), **later).status == 202
    ended = client.post(vadd + "/launches", launch_vadd(id="untimed", timing=False), **later)
    assert ended.status == 202 and ended.headers["Location"] == vadd + "/launches/untimed" and ended.json()["state"] == "succeeded"
    assert client.post(vadd + "/launches", launch_vadd(id="untimed", timing=False, grid=[3]), **little).code == "spec_conflict"
    source = 'extern "C" __global__ void say() { printf("said\\n"); }'
    assert client.put_cuda(vadd + "/modules/p", source).status == 201
    said = client.post(vadd + "/launches", {"module": "p", "kernel": "say", "grid": [1], "block": [1], "timing": False}, **little)
    assert said.status == 200 and said.json()["stdout"] == "said\n"


def test_own_ids(client, vadd):
    assert client.post(vadd + "/launches", launch_vadd(id="mine")).json()["id"] == "mine"
    assert client.post(vadd + "/launches", launch_vadd(id="mine")).status == 200
    assert client.post(vadd + "/launches", launch_vadd(id="mine", grid=[3])).code == "spec_conflict"
    assert client.post(vadd + "/launches", launch_vadd(id="No")).code == "invalid_field"


def test_list(client, vadd):
    for i in range(3):
        client.post(vadd + "/launches", launch_vadd(id=f"l{i}"))
    listed = client.get(vadd + "/launches").json()
    assert {item["id"] for item in listed["items"]} == {"l0", "l1", "l2"}


def test_streams(client, vadd):
    assert client.post(vadd + "/launches", launch_vadd(stream="s1")).json()["stream"] == "s1"
    assert client.post(vadd + "/sync", {"stream": "s1"}).status == 200
    assert client.post(vadd + "/launches", launch_vadd(stream="x" * 64)).code == "invalid_field"


SPIN = """extern "C" __global__ void spin(long long ticks)
{
    long long began = clock64();
    while (clock64() - began < ticks) {}
}
"""
SECONDS_6 = 6_000_000_000  # on a GPU some 3 s


def test_what_waits_for_other_work_is_not_overdue(service, client, session):
    """A deadline counts from the start: behind a launch of the same stream, and of another one where a device runs one kernel at a time."""
    brief = launch("spin", {"i64": 1}, module="m")
    client.put_cuda(session + "/modules/m", SPIN)
    client.put(session + "/programs/p", {"ops": [{"op": "launch", **brief}]}).expect(201)
    long = client.post(session + "/launches", launch("spin", {"i64": SECONDS_6}, module="m"), Prefer="respond-async").headers["Location"]
    waiting = [("/launches", {**brief, "stream": "b", "timeout_ms": 2000}), ("/launches", {**brief, "timeout_ms": 2000}),
               ("/batches", {"ops": [{"op": "launch", **brief}], "timeout_ms": 2000}), ("/programs/p/runs", {"timeout_ms": 2000})]
    with ThreadPoolExecutor(len(waiting)) as pool:  # each has a connection of its own
        answers = list(pool.map(lambda sent: service.client().post(session + sent[0], sent[1]), waiting))
    assert [answer.status for answer in answers] == [200] * len(waiting), answers
    assert client.get(long, Prefer="wait=60").json()["state"] == "succeeded"


def test_a_batch_that_waits_for_another_of_its_streams_is_not_overdue(client, session):
    """What that stream does before is other work. Two launches: the second one is not yet given to the device when the batch comes."""
    brief = {"op": "launch", **launch("spin", {"i64": 1}, module="m")}
    client.put_cuda(session + "/modules/m", SPIN)
    for ticks in (SECONDS_6 // 8, SECONDS_6):
        client.post(session + "/launches", launch("spin", {"i64": ticks}, module="m", stream="a"), Prefer="respond-async").expect(202)
    ops = [{**brief, "stream": "a"}, {"op": "record", "event": "e", "stream": "a"},
           {**brief, "stream": "b"}, {"op": "wait", "event": "e", "stream": "b"}, {**brief, "stream": "b"}, {**brief, "stream": "b"}]
    client.post(session + "/batches", {"ops": ops, "timeout_ms": 2000}).expect(200)


def test_a_batch_that_runs_on_after_it_waited_is_overdue(client, session):
    client.put_cuda(session + "/modules/m", SPIN)
    client.post(session + "/launches", launch("spin", {"i64": SECONDS_6 // 4}, module="m"), Prefer="respond-async")
    endless = {"ops": [{"op": "launch", **launch("spin", {"i64": 2**50}, module="m")}], "timeout_ms": 500}
    assert client.post(session + "/batches", endless).code == "execution_timeout"


def test_what_had_not_started_when_another_stream_faulted_says_so(client, session):
    client.put_cuda(session + "/modules/m", SPIN)
    first = client.post(session + "/launches", launch("spin", {"i64": 2**50}, module="m", stream="a", timeout_ms=2000), Prefer="respond-async")
    second = client.post(session + "/launches", launch("spin", {"i64": 1}, module="m", stream="b"), Prefer="respond-async")
    one, other = (client.get(sent.headers["Location"], Prefer="wait=60").json() for sent in (first, second))
    assert one["problem"]["code"] == "execution_timeout"
    assert other["state"] == "succeeded" or (other["problem"]["code"] == "worker_lost" and not other.get("started_at"))


def test_what_has_time_left_when_another_stream_is_overdue_is_told_so(service, client, session):
    """It runs beside that one, or has not started, where a device runs one kernel at a time. Copies are told of the kernel, as in CUDA."""
    client.put_cuda(session + "/modules/m", SPIN)
    client.put(session + "/buffers/b", {"size": 64}).expect(201)
    spin = [launch("spin", {"i64": 2**50}, module="m", **own) for own in ({"stream": "a", "timeout_ms": 2000}, {"stream": "b"})]
    paths = [client.post(session + "/launches", one, Prefer="respond-async").headers["Location"] for one in spin]
    more = [("POST", "/batches", {"ops": [{"op": "launch", **spin[1], "stream": name} for name in ("c", "d")], "timeout_ms": 600000}),
            ("GET", "/buffers/b/data", None)]
    with ThreadPoolExecutor(len(more)) as pool:
        batch, copy = pool.map(lambda sent: service.client().request(sent[0], session + sent[1], sent[2]), more)
    assert batch.code in ("worker_lost", "session_faulted") and "op_index_last" not in batch.json(), batch
    assert copy.status == 200 or copy.code in ("execution_timeout", "session_faulted"), copy
    problems = [client.get(path, Prefer="wait=60").json()["problem"] for path in paths]
    assert [problem["code"] for problem in problems] == ["execution_timeout", "worker_lost"], problems
    assert "before this launch finished (execution_timeout" in problems[1]["detail"]


CLOCKS = """extern "C" __global__ void clocks(unsigned long long *out)
{
    unsigned long long began, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
    long long ticks = clock64();
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - began < 500000000);
    out[0] = clock64() - ticks;
    out[1] = now - began;
}
"""


def test_ticks_are_those_of_the_clock_rate(client, session):
    """Programs turn ticks into time by it. A GPU may run slower than its highest rate."""
    client.put_cuda(session + "/modules/m", CLOCKS)
    client.put(session + "/buffers/out", {"size": 16}).expect(201)
    client.post(session + "/launches", launch("clocks", {"buf": "out"}, module="m")).expect(200)
    ticks, ns = struct.unpack("<2Q", client.get(session + "/buffers/out/data").body)
    device = client.get("/v1/devices/" + client.get(session).json()["device"]).json()
    assert 0.25 < ticks / ns * 1e6 / device["attributes"]["clock_rate"] < 1.25, (ticks, ns)


def test_offsets(client, vadd):
    args = [{"buf": "a", "offset": 4}, {"buf": "b", "offset": "8"}, {"buf": "c"}, {"i32": 1}]
    assert client.post(vadd + "/launches", launch_vadd(args=args)).status == 200
    assert client.get(vadd + "/buffers/c/data", Range="bytes=0-3").body == floats([1 + 4])
    bad = [{"buf": "a", "offset": 4097}, {"buf": "b"}, {"buf": "c"}, {"i32": 1}]
    refused = client.post(vadd + "/launches", launch_vadd(args=bad))
    assert refused.code == "argument_mismatch" and refused.json()["errors"][0]["pointer"] == "/args/0"


A, B, C, N = {"buf": "a"}, {"buf": "b"}, {"buf": "c"}, {"i32": 1024}


@pytest.mark.parametrize("args,status,code,pointer", [
    ([A, B, C], 422, "argument_mismatch", "/args"),
    ([A, B, C, N, N], 422, "argument_mismatch", "/args"),
    ([A, B, C, {"i64": 1}], 422, "argument_mismatch", "/args/3"),
    ([A, B, C, {"f16": 1}], 422, "argument_mismatch", "/args/3"),
    ([A, {"i32": 1}, C, N], 422, "argument_mismatch", "/args/1"),
    ([A, B, {"bytes": "AAAA"}, N], 422, "argument_mismatch", "/args/2"),
    ([A, B, C, {"i32": 1 << 31}], 400, "invalid_field", "/args/3"),
    ([A, B, C, {"i32": "x"}], 400, "invalid_field", "/args/3"),
    ([A, B, C, {"i128": 1}], 400, "unknown_field", "/args/3"),
    ([A, B, C, 5], 400, "invalid_field", "/args/3"),
    ({}, 400, "invalid_field", "/args"),
])
def test_bad_arguments(client, vadd, args, status, code, pointer):
    answer = client.post(vadd + "/launches", launch_vadd(args=args))
    assert (answer.status, answer.code) == (status, code)
    assert answer.json()["errors"][0]["pointer"].startswith(pointer)
    assert client.get(vadd).json()["state"] == "ready"


def test_unknown_things(client, vadd):
    assert client.post(vadd + "/launches", launch_vadd(module="none")).code == "module_not_found"
    missing = client.post(vadd + "/launches", launch_vadd(kernel="none"))
    assert missing.code == "kernel_not_found" and missing.json()["detail"].endswith("; it has vadd")
    assert client.post(vadd + "/launches", launch_vadd(args=[{"buf": "none"}, B, C, N])).code == "buffer_not_found"
    assert client.post(vadd + "/launches", launch_vadd(extra=1)).code == "unknown_field"
    assert client.post(vadd + "/launches", {}).code == "invalid_field"
    assert client.get(vadd + "/launches/none").code == "launch_not_found"
    assert client.delete(vadd + "/launches/none").code == "launch_not_found"


@pytest.mark.parametrize("change,pointer", [
    ({"grid": [0]}, "/grid"), ({"block": [0]}, "/block"), ({"block": [1025]}, "/block"), ({"block": [64, 64]}, "/block"),
    ({"block": [1, 1, 65]}, "/block"), ({"grid": [1, 65536]}, "/grid"), ({"grid": [1 << 31]}, "/grid"), ({"grid": [1 << 40]}, "/grid"),
    ({"shared_bytes": 1 << 30}, "/shared_bytes"), ({"grid": {"threads": 0}, "block": None}, "/grid"),
])
def test_impossible_configurations(client, vadd, change, pointer):
    answer = client.post(vadd + "/launches", launch_vadd(**change))
    assert answer.status == 422 and answer.code == "launch_config_invalid"
    assert answer.json()["errors"][0]["pointer"].startswith(pointer)


@pytest.mark.parametrize("change", [{"grid": []}, {"grid": [1, 1, 1, 1]}, {"grid": 4}, {"grid": [1.5]}, {"grid": ["x"]}, {"block": {}},
                                    {"grid": {"threads": 5}}, {"timeout_ms": 0}, {"timeout_ms": 3600001}, {"shared_bytes": -1}])
def test_malformed_configurations(client, vadd, change):
    assert client.post(vadd + "/launches", launch_vadd(**change)).code == "invalid_field"


def test_printf(client, session):
    assert client.put_cuda(session + "/modules/f", FAULTS).status == 201
    assert client.post(session + "/launches", launch("hello", {"u32": 42})).json()["stdout"] == "hello 42\n"


@pytest.fixture
def endless(client, session):
    """A session with a running endless kernel, and the kernel's path."""
    assert client.put_cuda(session + "/modules/f", FAULTS).status == 201
    assert client.put(session + "/buffers/x", {"size": 4}).status == 201
    sent = client.post(session + "/launches", launch("endless", {"buf": "x"}, timeout_ms=30000), Prefer="respond-async")
    assert sent.status == 202
    running = client.get(sent.headers["Location"])
    while running.json()["state"] == "queued":
        running = client.get(sent.headers["Location"])
    assert running.json()["state"] == "running"
    return session, sent.headers["Location"]


def test_waiting_in_vain(client, endless):
    session, path = endless
    seen = client.get(path)
    assert client.get(path, Prefer="wait=1", If_None_Match=seen.headers["ETag"]).status == 304
    assert client.get(path, Prefer="wait=0").json()["state"] == "running"
    queued = client.post(session + "/launches", fill7(), Prefer="wait=1")
    assert queued.status == 202 and queued.headers["Location"].startswith(session + "/launches/l_")


def test_cancelling(client, endless):
    session, path = endless
    queued = client.post(session + "/launches", fill7(), Prefer="respond-async")
    if client.get(queued.headers["Location"]).json()["state"] == "queued":
        assert client.delete(queued.headers["Location"]).json()["state"] == "cancelled"
    assert client.delete(path).code == "launch_running"
    assert client.delete(path + "?force=2").code == "invalid_field"
    generation = client.get(session).json()["generation"]
    assert client.delete(path + "?force=1").status == 202
    after = client.get(session).json()
    assert after["state"] == "ready" and after["generation"] == generation + 1


def test_a_long_poll_ends_when_the_session_does(service, client, endless):
    session, path = endless
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(service.client().get(path, Prefer="wait=60")))
    waiting.start()
    assert client.delete(session).status == 204
    waiting.join(60)
    assert not waiting.is_alive() and answers[0].status in (200, 404)


def test_deleting_what_has_finished(client, vadd):
    done = client.post(vadd + "/launches", launch_vadd()).json()
    answer = client.delete(f"{vadd}/launches/{done['id']}")
    assert answer.status == 200 and answer.json()["state"] == "succeeded"
