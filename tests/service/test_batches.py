"""Batches and /v1/run: upload, launch and download in one request, in both forms."""
import socket
import struct
import threading


import pytest

from batch_client import MAGIC, TYPE, frame, send, with_sizes
from conftest import VADD, floats
from kernels import BAD_ADDRESS, FAULTS
from test_start_and_auth import token_file
from service_under_test import until

A = floats(range(1024))
B = floats(2 * i for i in range(1024))
SUM = floats(3 * i for i in range(1024))
VADD_BATCH = {
    "module": {"source": VADD},
    "ops": [{"op": "alloc", "as": "$a", "segment": "a"}, {"op": "alloc", "as": "$b", "segment": "b"}, {"op": "alloc", "as": "$c", "size": 4096},
            {"op": "launch", "kernel": "vadd", "grid": [4], "block": [256],
             "args": [{"buf": "$a"}, {"buf": "$b"}, {"buf": "$c"}, {"i32": 1024}]},
            {"op": "read", "from": "$c", "segment": "out"}],
    "keep": [], "timeout_ms": 10000}
SEGMENTS = {"a": A, "b": B}
FORMS = pytest.mark.parametrize("within", [False, True], ids=["framed", "json"])


@pytest.fixture(params=["batches", "run"])
def place(request, client, session):
    return session + "/batches" if request.param == "batches" else "/v1/run"


@FORMS
def test_the_example_of_the_contract(client, place, within):
    for _ in range(2):
        answer = send(client, place, VADD_BATCH, SEGMENTS, within)
        assert answer.status == 200, answer
        assert answer.segments == {"out": SUM}
        assert answer.message["status"] == "succeeded"
        assert answer.message["segments"][0]["size"] == 4096
        assert [op["index"] for op in answer.message["ops"]] == [3] and answer.message["ops"][0]["gpu_us"] >= 0
        assert answer.message["kept"] == {} and set(answer.message["timing"]) == {"recv_ms", "compile_ms", "run_ms"}
        assert "Server-Timing" in answer.headers


@FORMS
def test_who_wants_little_gets_what_there_is_to_tell(client, session, within):
    path, little = session + "/batches", {"Prefer": "return=minimal"}
    write = {"op": "write", "to": "x", "segment": "a"}
    assert client.put(session + "/buffers/x", {"size": 4096}).status == 201
    for prefer in ("return=minimal", "return=minimal, wait=30"):
        done = send(client, path, {"ops": [write]}, {"a": A}, within, Prefer=prefer)
        assert done.status == 204 and done.body == b"" and "Content-Type" not in done.headers and "Server-Timing" not in done.headers
    assert client.get(session + "/buffers/x/data").body == A
    assert send(client, path, {"ops": [write]}, {"a": A}, within).message["status"] == "succeeded"
    assert send(client, path, {"ops": [{"op": "read", "from": "x", "segment": "out"}]}, {}, within, **little).segments == {"out": A}
    kept = send(client, path, {"ops": [{"op": "alloc", "as": "$k", "size": 16}], "keep": ["$k"]}, {}, within, **little)
    assert set(kept.message["kept"]) == {"$k"}
    assert send(client, path, {"ops": [{"op": "write", "to": "y", "segment": "a"}]}, {"a": A}, within, **little).code == "buffer_not_found"
    said = {"module": {"source": 'extern "C" __global__ void say() { printf("said\\n"); }'}, "timing": False,
            "ops": [{"op": "launch", "kernel": "say", "grid": [1], "block": [1]}]}
    told = send(client, path, said, {}, within, **little)
    assert told.message["ops"][0]["stdout"] == "said\n" and told.message["module"]
    again = {**said, "module": told.message["module"]}
    assert send(client, path, again, {}, within, **little).message["ops"][0]["stdout"] == "said\n"
    assert client.put_cuda(session + "/modules/v", VADD).status == 201
    silent = {"op": "launch", "kernel": "vadd", "grid": [4], "block": [256], "args": [{"buf": "x"}, {"buf": "x"}, {"buf": "x"}, {"i32": 1024}]}
    assert send(client, path, {"module": "v", "timing": False, "ops": [silent, silent]}, {}, within, **little).status == 204
    timed = send(client, path, {"module": "v", "ops": [silent, silent]}, {}, within, **little).message
    assert timed["ops"] or timed["gpu_groups"]


def memory(client, session):
    return client.get(session).json()["usage"]["memory_bytes"]


def settles(client, session, size):
    """What a batch leaves behind is freed in the background, soon."""
    until(lambda: memory(client, session) == size, lambda: f"{memory(client, session)} bytes stay, {size} should")


@FORMS
def test_every_operation(client, session, within):
    assert client.put_cuda(session + "/modules/f", FAULTS).status == 201
    assert client.put_octets(session + "/buffers/own", b"abcdefgh").status == 201
    message = {
        "module": "f",
        "ops": [{"op": "alloc", "as": "$x", "size": 16}, {"op": "fill", "to": "$x", "pattern": {"u8": 1}},
                {"op": "write", "to": "$x", "offset": 4, "segment": "s"}, {"op": "copy", "from": "own", "to": "$x", "offset": 8, "size": 4},
                {"op": "record", "event": "e", "stream": "one"},
                {"op": "launch", "kernel": "fill7", "grid": [1], "block": [32], "args": [{"buf": "$x", "offset": 12}, {"u32": 1}],
                 "stream": "one"},
                {"op": "record", "event": "g", "stream": "one"}, {"op": "wait", "event": "g"}, {"op": "elapsed", "from": "e", "to": "g"},
                {"op": "launch", "module": "f", "kernel": "hello", "grid": [1], "block": [1], "args": [{"u32": 5}]},
                {"op": "read", "from": "$x", "segment": "all"}, {"op": "read", "from": "own", "offset": 2, "size": 3, "segment": "part"},
                {"op": "free", "buf": "$x"}, {"op": "alloc", "as": "$y", "size": 8}, {"op": "sync"}, {"op": "sync", "stream": "one"},
                {"op": "write", "to": "own", "segment": "late"}]}
    answer = send(client, session + "/batches", message, {"late": b"LATE", "s": b"wxyz"}, within)
    assert answer.status == 200, answer
    assert answer.segments == {"all": b"\1\1\1\1wxyzabcd\7\0\0\0", "part": b"cde"}
    ops = {op["index"]: op for op in answer.message["ops"]}
    assert ops[9]["stdout"] == "hello 5\n" and ops[8]["elapsed_us"] >= 0 and set(ops) == {5, 8, 9}
    assert client.get(session + "/buffers/own/data").body == b"LATEefgh"
    assert memory(client, session) == 8


def test_kept_buffers_stay(client, session):
    message = {"ops": [{"op": "alloc", "as": "$a", "segment": "a"}, {"op": "alloc", "as": "$b", "size": 64}], "keep": ["$a"]}
    answer = send(client, session + "/batches", message, {"a": b"kept bytes"})
    assert answer.status == 200, answer
    assert list(answer.message["kept"]) == ["$a"]
    assert client.get(f"{session}/buffers/{answer.message['kept']['$a']}/data").body == b"kept bytes"
    assert memory(client, session) == 10
    assert len(client.get(session + "/buffers").json()["items"]) == 1


def test_many_launches(client, session):
    assert client.put_cuda(session + "/modules/m", VADD).status == 201
    ops = VADD_BATCH["ops"][:3] + VADD_BATCH["ops"][3:4] * 300 + VADD_BATCH["ops"][4:]
    answer = send(client, session + "/batches", {"module": "m", "ops": ops}, SEGMENTS)
    assert answer.status == 200, answer
    grouped = sum(group["last"] - group["first"] + 1 for group in answer.message["gpu_groups"])
    assert len(answer.message["ops"]) + grouped == 300 and answer.segments["out"] == SUM


STEP = """
extern "C" __global__ void step(unsigned *p, unsigned k) { if (threadIdx.x == 0) *p = *p * 3 + k; }
extern "C" __global__ void far(unsigned *p, unsigned k) { p[k * 1000000000ull] = 1; }
extern "C" __global__ void slow(unsigned *p, unsigned k) { for (unsigned i = 0; i < k * 250; i++) atomicAdd(p, 0); *p = *p * 3 + k; }
"""


def step(k, **more):
    return {"op": "launch", "kernel": "step", "grid": [1], "block": [32], "args": [{"buf": "n"}, {"u32": k}], **more}


def stepped(value, ks):
    for k in ks:
        value = (value * 3 + k) % 2**32
    return value


@pytest.fixture
def counter(client, session):
    """A session with module s and a buffer n that holds the number 1."""
    assert client.put_cuda(session + "/modules/s", STEP).status == 201
    assert client.put_octets(session + "/buffers/n", struct.pack("<I", 1)).status == 201
    return session


def test_the_order_holds_over_many_messages(client, counter):
    ops = []
    for k in range(900):
        ops.append(step(k))
        if k % 100 == 50:
            ops.append({"op": "read", "from": "n", "segment": f"r{k}"})
    answer = send(client, counter + "/batches", {"module": "s", "ops": ops})
    assert answer.status == 200, answer
    for k in range(50, 900, 100):
        assert answer.segments[f"r{k}"] == struct.pack("<I", stepped(1, range(k + 1)))
    launches = [op for op in answer.message["ops"] if "gpu_us" in op]
    grouped = sum(group["last"] - group["first"] + 1 for group in answer.message["gpu_groups"])
    assert len(launches) + grouped >= 900 - 9 and all(op["gpu_us"] >= 0 for op in launches)


def test_streams_wait_on_the_device(client, counter):
    ops = []
    for k in range(60):
        here, there = f"s{k % 3}", f"s{(k + 1) % 3}"
        ops += [step(k, kernel="slow", block=[1], stream=here), {"op": "record", "event": "e", "stream": here}, {"op": "wait", "event": "e", "stream": there}]
    ops += [{"op": "record", "event": "end", "stream": "s0"}, {"op": "wait", "event": "end"}, {"op": "read", "from": "n", "segment": "out"}]
    answer = send(client, counter + "/batches", {"module": "s", "ops": ops})
    assert answer.status == 200, answer
    assert answer.segments["out"] == struct.pack("<I", stepped(1, range(60)))


def test_time_between_events_is_the_devices(client, counter):
    ops = [{"op": "record", "event": "a"}, step(40, kernel="slow", block=[1]), step(1), {"op": "record", "event": "b"}, {"op": "record", "event": "b"},
           {"op": "elapsed", "from": "a", "to": "b"}, {"op": "elapsed", "from": "b", "to": "a"}, {"op": "elapsed", "from": "a", "to": "a"}]
    answer = send(client, counter + "/batches", {"module": "s", "ops": ops})
    assert answer.status == 200, answer
    told = {op["index"]: op for op in answer.message["ops"]}
    assert told[5]["elapsed_us"] >= told[1]["gpu_us"] > 0
    assert told[7]["elapsed_us"] == 0


@pytest.mark.parametrize("bad", [0, 23, 39])
def test_a_fault_in_the_middle_of_many_is_named(client, counter, bad):
    ops = [step(k) for k in range(40)]
    ops[bad] = step(4000000000, kernel="far", block=[1])
    problem = error_of(send(client, counter + "/batches", {"module": "s", "ops": ops}), 422, "kernel_fault")
    assert problem["op_index"] <= bad <= problem.get("op_index_last", problem["op_index"])
    assert problem["completed_ops"] <= bad
    if client.get(counter).json()["device"].startswith("cpu"):
        assert problem["op_index"] == problem["completed_ops"] == bad and "op_index_last" not in problem


def test_large_segments_stream(client, session):
    a, b = bytes(range(256)) * (20 << 12), b"\5" * (3 << 20)
    message = {"ops": [{"op": "alloc", "as": "$a", "segment": "a"}, {"op": "alloc", "as": "$b", "size": len(b) + 1},
                       {"op": "write", "to": "$b", "offset": 1, "segment": "b"}, {"op": "fill", "to": "$b", "size": 1, "pattern": {"u8": 9}},
                       {"op": "read", "from": "$a", "segment": "a"}, {"op": "read", "from": "$b", "segment": "b"}]}
    for place in (session + "/batches", "/v1/run"):
        answer = send(client, place, message, {"b": b, "a": a})
        assert answer.status == 200, answer
        assert answer.segments == {"a": a, "b": b"\x09" + b}


def error_of(answer, status, code, pointer=None, index=None, completed=None):
    assert answer.status == status and answer.code == code, answer
    problem = answer.json()
    if pointer is not None:
        assert problem["errors"][0]["pointer"] == pointer, answer
    if index is not None:
        assert (problem["op_index"], problem["completed_ops"]) == (index, index if completed is None else completed), answer
    return problem


@FORMS
def test_the_failing_operation_is_named(client, session, within):
    launch = VADD_BATCH["ops"][3]
    for bad, status, code, pointer in (
            ({**launch, "kernel": "none"}, 404, "kernel_not_found", "/ops/3/kernel"),
            ({**launch, "args": launch["args"][:3]}, 422, "argument_mismatch", "/ops/3/args"),
            ({**launch, "args": [{"buf": "$z"}] + launch["args"][1:]}, 404, "buffer_not_found", "/ops/3/args/0"),
            ({**launch, "block": [2048]}, 422, "launch_config_invalid", "/ops/3/block"),
            ({**launch, "module": "other"}, 404, "module_not_found", None),
            ({"op": "copy", "from": "nowhere", "to": "$a"}, 404, "buffer_not_found", "/ops/3/from"),
            ({"op": "read", "from": "$a", "offset": 4090, "size": 7, "segment": "x"}, 416, "range_not_satisfiable", None),
            ({"op": "fill", "to": "$a", "offset": 1, "pattern": {"u32": 0}}, 400, "invalid_field", "/ops/3/offset"),
            ({"op": "wait", "event": "never"}, 400, "invalid_field", "/ops/3/event")):
        ops = VADD_BATCH["ops"][:3] + [bad] + VADD_BATCH["ops"][4:]
        error_of(send(client, session + "/batches", {**VADD_BATCH, "ops": ops}, SEGMENTS, within), status, code, pointer, 3)
        settles(client, session, 0)
    ops = [{"op": "alloc", "as": "$a", "size": 1 << 50}]
    answer = send(client, session + "/batches", {"ops": VADD_BATCH["ops"][:3] + [{**ops[0], "as": "$d"}]}, SEGMENTS, within)
    assert answer.status in (403, 507) and answer.json()["op_index"] == 3 and answer.json()["completed_ops"] == 0
    settles(client, session, 0)
    assert send(client, session + "/batches", VADD_BATCH, SEGMENTS, within).segments == {"out": SUM}


def test_what_is_malformed_is_refused_before_anything_is_done(client, session):
    def refused(code, pointer, status=400, **changes):
        message = with_sizes({**VADD_BATCH, **changes}, SEGMENTS)
        message.update({name: value for name, value in changes.items() if name == "segments"})
        answer = client.post(session + "/batches", frame(message, SEGMENTS.values()), Content_Type=TYPE)
        error_of(answer, status, code, pointer)

    ops = VADD_BATCH["ops"]
    refused("unknown_field", "/more", more=1)
    refused("invalid_field", "/ops", ops=7)
    refused("invalid_field", "/ops/0", ops=[{"op": "jump"}])
    refused("invalid_field", "/ops/0", ops=[3])
    refused("unknown_field", "/ops/5/x", ops=ops + [{"op": "sync", "x": 1}])
    refused("invalid_field", "/ops/0/as", ops=[{"op": "alloc", "as": "a", "size": 1}])
    refused("invalid_field", "/ops/0/size", ops=[{"op": "alloc", "as": "$a"}])
    refused("invalid_field", "/ops/1/as", ops=[ops[0], {"op": "alloc", "as": "$a", "size": 1}])
    refused("invalid_field", "/ops/1/segment", ops=[ops[0], {"op": "alloc", "as": "$b", "segment": "a"}])
    refused("invalid_field", "/ops/0/segment", ops=[{"op": "alloc", "as": "$b", "segment": "none"}])
    refused("invalid_field", "/segments/1", ops=ops[:1])
    refused("invalid_field", "/ops/0/from", ops=[{"op": "read", "from": "$c", "segment": "x"}])
    refused("invalid_field", "/ops/5/segment", ops=ops + [ops[4]])
    refused("invalid_field", "/ops/6/from", ops=ops + [{"op": "free", "buf": "$c"}, {"op": "read", "from": "$c", "segment": "y"}])
    refused("invalid_field", "/keep", keep=["$z"])
    refused("invalid_field", "/keep", keep=["$a", "$a"])
    refused("invalid_field", "/timeout_ms", timeout_ms=0)
    refused("invalid_field", "/module/source", module={})
    refused("invalid_field", "/segments/1", segments=[{"id": "a", "size": 1}] * 2)
    refused("invalid_field", "/ops", ops=[{"op": "sync"}] * 4097)
    settles(client, session, 0)


def test_the_framing_is_exact(client, session):
    good = frame(with_sizes(VADD_BATCH, SEGMENTS), SEGMENTS.values())

    def post(data):
        return client.post(session + "/batches", data, Content_Type=TYPE)

    assert post(good).status == 200
    for bad in (good[:-1], good[:-64], good + b"\0", good + b"\0" * 64, b"\x88" + good[1:], good.replace(b"\r\n", b"\n", 1), good[:8] + b"\2" + good[9:],
                good[:10] + b"\1" + good[11:], good[:12] + b"\x31" + good[13:], good[:63], b"", MAGIC):
        answer = post(bad)
        assert answer.status == 400 and answer.code == "framing_mismatch", (len(bad), answer)
    odd = frame(with_sizes({"ops": [{"op": "alloc", "as": "$a", "segment": "a"}]}, {"a": b"x"}), [b"x"])
    assert post(odd).status == 200
    assert post(odd[:-1] + b"\1").code == "framing_mismatch"
    huge = {"segments": [{"id": "a", "size": 1 << 53}, {"id": "b", "size": str(1 << 62)}],
            "ops": [{"op": "alloc", "as": "$" + name, "segment": name} for name in "ab"]}
    assert post(frame(huge)).code == "framing_mismatch"
    chunked = client.request("POST", session + "/batches", iter([good]), {"Content-Type": TYPE}, encode_chunked=True)
    assert chunked.status == 411 and chunked.code == "length_required"
    assert client.post(session + "/batches", b"x", Content_Type="text/plain").status == 415
    assert client.post(session + "/batches", good, Content_Type=TYPE, Accept="application/json").status == 406
    settles(client, session, 0)


def test_segments_within_json_are_small(client, session):
    message = {"ops": [{"op": "alloc", "as": "$a", "segment": "a"}]}
    assert send(client, session + "/batches", message, {"a": bytes(65536)}, True).status == 200
    error_of(send(client, session + "/batches", message, {"a": bytes(65537)}, True), 413, "body_too_large")
    message = {"ops": [{"op": "alloc", "as": "$a", "size": 65537}, {"op": "fill", "to": "$a", "pattern": {"u8": 0}},
                       {"op": "read", "from": "$a", "segment": "x"}]}
    error_of(send(client, session + "/batches", message, {}, True), 413, "body_too_large", index=2, completed=0)


def test_reads_that_do_not_fit_into_json_are_refused_before_anything_is_done(client, session):
    assert client.put_octets(session + "/buffers/x", bytes(40000)).status == 201
    ops = [{"op": "fill", "to": "x", "pattern": {"u8": 1}}, {"op": "read", "from": "x", "segment": "one"}, {"op": "alloc", "as": "$a", "size": 25537},
           {"op": "fill", "to": "$a", "pattern": {"u8": 2}}, {"op": "read", "from": "$a", "segment": "two"}]
    problem = error_of(send(client, session + "/batches", {"ops": ops}, {}, True), 413, "body_too_large", index=4, completed=0)
    assert problem["limit"] == {"name": "batch_inline_bytes", "max": 65536, "used": 40000, "requested": 25537}
    assert client.get(session + "/buffers/x/data").body == bytes(40000)
    ops[-1]["size"] = 25536
    answer = send(client, session + "/batches", {"ops": ops}, {}, True)
    assert answer.segments == {"one": b"\1" * 40000, "two": b"\2" * 25536}


def test_compile_errors(client, place):
    problem = error_of(send(client, place, {**VADD_BATCH, "module": {"source": "nonsense"}}, SEGMENTS), 422, "compile_failed")
    assert problem["compile"]["diagnostics"]
    error_of(send(client, place, {**VADD_BATCH, "module": {"source": VADD, "options": ["--time=x"]}}, SEGMENTS), 400, "option_not_allowed")


@pytest.mark.parametrize("wrong, pointer", [
    ({"source": ""}, "/source"), ({"source": VADD, "headers": {"./a.h": ""}}, "/headers"), ({"source": VADD, "headers": {"a//b.h": ""}}, "/headers"),
    ({"source": VADD, "options": ["-DA"] * 129}, "/options"), ({"source": VADD, "options": ["--std=c++17", "-I/etc"]}, "/options/1"),
    ({"source": VADD, "name_expressions": ["f", "a\nb"]}, "/name_expressions/1")])
def test_a_module_is_checked_by_the_same_rules_whichever_way_it_comes(client, session, wrong, pointer):
    """Before anything is allocated, compiled or queued for it."""
    code = "option_not_allowed" if pointer == "/options/1" else "invalid_field"
    details = {error_of(answer, 400, code, inside + pointer)["detail"] for answer, inside in [
        (client.post(session + "/modules", wrong), ""), (client.put(session + "/modules/m", wrong), ""),
        (send(client, session + "/batches", {**VADD_BATCH, "module": wrong}, SEGMENTS), "/module"),
        (send(client, session + "/batches", {**VADD_BATCH, "module": wrong}, SEGMENTS, Prefer="respond-async"), "/module"),
        (client.put(session + "/programs/p", {**with_sizes(VADD_BATCH, SEGMENTS), "module": wrong}), "/module"),
        (send(client, "/v1/run", {**VADD_BATCH, "module": wrong}, SEGMENTS), "/module")]}
    assert len(details) == 1 and memory(client, session) == 0


def fault(kernel, *args):
    return {"module": {"source": FAULTS}, "timeout_ms": 300,
            "ops": [{"op": "alloc", "as": "$x", "size": 4}, {"op": "launch", "kernel": kernel, "grid": [1], "block": [1], "args": list(args)}]}


def test_a_fault_ends_the_session(client, session):
    error_of(send(client, session + "/batches", fault("illegal", BAD_ADDRESS)), 422, "kernel_fault", index=1)
    assert client.get(session).json()["state"] == "faulted" and memory(client, session) == 0
    error_of(send(client, session + "/batches", VADD_BATCH, SEGMENTS), 409, "session_faulted")
    assert client.post(session + "/reset").status == 200
    assert send(client, session + "/batches", VADD_BATCH, SEGMENTS).segments == {"out": SUM}


def test_the_time_of_a_batch_is_bounded(client, session):
    error_of(send(client, session + "/batches", fault("endless", {"buf": "$x"})), 504, "execution_timeout", index=1)
    assert client.get(session).json()["state"] == "faulted"


def test_run_needs_no_session_and_replaces_its_own(client):
    before = client.get("/v1/sessions").json()["items"]
    assert send(client, "/v1/run", VADD_BATCH, SEGMENTS).segments == {"out": SUM}
    assert client.get("/v1/sessions").json()["items"] == before
    for request in (fault("illegal", BAD_ADDRESS), fault("endless", {"buf": "$x"})):
        assert send(client, "/v1/run", request).status in (422, 504)
        assert send(client, "/v1/run", VADD_BATCH, SEGMENTS).segments == {"out": SUM}
    error_of(send(client, "/v1/run", {**VADD_BATCH, "keep": ["$c"]}, SEGMENTS), 400, "invalid_field", "/keep")
    assert client.get("/readyz").status == 200


def test_two_callers_runs_are_apart(start, tmp_path):
    scopes = ["read", "write", "compile", "launch"]
    service = start("--tokens", token_file(tmp_path / "tokens.json", ann=scopes, bob=scopes))
    ann, bob = (service.client(Authorization=f"Bearer {name}-secret") for name in ("ann", "bob"))
    assert send(bob, "/v1/run", VADD_BATCH, SEGMENTS).segments == {"out": SUM}
    answers = []
    thread = threading.Thread(target=lambda: answers.append(send(ann, "/v1/run", fault("endless", {"buf": "$x"}))))
    thread.start()
    while thread.is_alive():
        assert send(bob, "/v1/run", VADD_BATCH, SEGMENTS).segments == {"out": SUM}
    thread.join()
    assert answers[0].code == "execution_timeout"
    assert send(bob, "/v1/run", VADD_BATCH, SEGMENTS).segments == {"out": SUM}
    assert send(ann, "/v1/run", VADD_BATCH, SEGMENTS).segments == {"out": SUM}


def test_clients_that_leave(service, client, session):
    data = frame(with_sizes({"ops": [{"op": "alloc", "as": "$a", "segment": "a"}]}, {"a": bytes(4 << 20)}), [bytes(4 << 20)])
    head = f"POST {session}/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: {TYPE}\r\nContent-Length: {len(data)}\r\n\r\n".encode()
    for cut in (0, 10, 16, 200, 1 << 20, 3 << 20):
        with socket.create_connection((service.host, service.port)) as s:
            s.sendall(head + data[:cut])
    assert client.post(session + "/batches", data, Content_Type=TYPE).status == 200


AT_ONCE = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry at_once()
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    mov.u64 %rd1, 16;
    mov.u32 %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}
"""


@pytest.mark.parametrize("behind", ["launches", "fills"])
def test_a_fault_while_its_list_is_still_given_to_the_device_is_told_as_itself(client, session, behind):
    """The device is lost while the worker issues what stands behind: the refusal of that is not the reason."""
    for _ in range(4):
        assert client.put(session + "/modules/f", AT_ONCE, Content_Type="application/vnd.gpurest.ptx").status == 201
        assert client.put(session + "/buffers/x", {"size": 4096}).status == 201
        bad = {"op": "launch", "module": "f", "kernel": "at_once", "grid": [1], "block": [1], "args": []}
        more = bad if behind == "launches" else {"op": "fill", "to": "x", "pattern": {"u8": 1}}
        problem = error_of(send(client, session + "/batches", {"ops": [bad] + [more] * 250}), 422, "kernel_fault")
        assert "illegal" in problem["detail"].lower(), problem  # NVIDIA's driver has a name for it, the cpu device a sentence
        assert client.post(session + "/reset", {}).status == 200
