"""Programs: prepared batches, created once and run many times with other bytes and scalars."""
import base64
import socket
import struct

import pytest

from batch_client import MAGIC, TYPE, frame, send, unframe
from conftest import VADD, floats
from kernels import BAD_ADDRESS, FAULTS, launch
from test_batch_async import ended
from test_batches import A, B, SEGMENTS, SUM, VADD_BATCH, error_of, memory, settles
from test_run_clients import begin
from test_start_and_auth import token_file
from service_under_test import in_threads, until

FORMS = pytest.mark.parametrize("within", [False, True], ids=["framed", "json"])
SIZES = [{"id": "a", "size": 4096}, {"id": "b", "size": 4096}]
VADD_PROGRAM = {**{k: v for k, v in VADD_BATCH.items() if k != "keep"}, "segments": SIZES}

STEP = """
extern "C" __global__ void step(unsigned *p, unsigned k) { if (threadIdx.x == 0) *p = *p * 3 + k; }
extern "C" __global__ void both(unsigned *p, unsigned a, unsigned b) { if (threadIdx.x == 0) *p = *p * 5 + 7 * a + b; }
"""


def step(k, buffer="n", **more):
    return {"op": "launch", "kernel": "step", "grid": [1], "block": [32], "args": [{"buf": buffer}, {"u32": k}], **more}


def steps_program(count, **more):
    return {"module": "s", "ops": [step(k) for k in range(count)], **more}


@pytest.fixture
def counter(client, session):
    """A session with module s and a buffer n that holds the number 1."""
    assert client.put_cuda(session + "/modules/s", STEP).status == 201
    assert client.put_octets(session + "/buffers/n", struct.pack("<I", 1)).status == 201
    return session


def number(client, session, buffer="n"):
    return struct.unpack("<I", client.get(f"{session}/buffers/{buffer}/data").body)[0]


def after(value, ks):
    for k in ks:
        value = (value * 3 + k) % 2**32
    return value


@FORMS
def test_put_and_run(client, session, within):
    path = session + "/programs/v"
    answer = client.put(path, VADD_PROGRAM)
    assert answer.status == 201 and answer.headers["Location"] == path, answer
    told = answer.json()
    assert (told["name"], told["ops"], told["segments"], told["launches"], told["runs"], told["memory_bytes"]) == ("v", 5, 2, 1, 0, 3 * 4096)
    for round in range(3):
        a = floats(i + round for i in range(1024))
        answer = send(client, path + "/runs", {}, {"a": a, "b": B}, within)
        assert answer.status == 200, answer
        assert answer.segments == {"out": floats(3 * i + round for i in range(1024))}
        assert answer.message["status"] == "succeeded" and answer.message["kept"] == {}
    assert client.get(path).json()["runs"] == 3
    assert [item["name"] for item in client.get(session + "/programs").json()["items"]] == ["v"]
    assert memory(client, session) == 3 * 4096
    assert client.delete(path).status == 204
    settles(client, session, 0)
    assert client.get(path).code == "program_not_found" and client.delete(path).code == "program_not_found"
    error_of(send(client, path + "/runs", {}, SEGMENTS, within), 404, "program_not_found")


def test_the_same_again_and_another(client, counter):
    path = counter + "/programs/p"
    assert client.put(path, steps_program(4)).status == 201
    assert client.put(path, steps_program(4)).status == 200
    spaced = b'{ "ops" : [' + b",".join(b'{"kernel":"step","op":"launch","block":[32],"grid":[1],"args":[{"buf":"n"},{"u32":%d}]}' % k
                                       for k in range(4)) + b'], "module":"s" }'
    assert client.put(path, spaced, Content_Type="application/json").status == 200
    for other in (steps_program(5), {**steps_program(4), "timeout_ms": 5}, {"module": "s", "ops": [step(k + 1) for k in range(4)]}):
        assert client.put(path, other).code == "spec_conflict"
    assert client.post(path + "/runs", {}).status == 200
    assert number(client, counter) == after(1, range(4))


def test_launches_are_prepared(client, counter):
    answer = client.put(counter + "/programs/p", steps_program(600)).expect(201)
    assert answer.json()["prepared_launches"] == 600 and answer.json()["graphs"] == 3
    value = 1
    for _ in range(3):
        answer = client.post(counter + "/programs/p/runs", {}).expect(200)
        value = after(value, range(600))
        assert number(client, counter) == value
    groups = answer.json()["gpu_groups"]
    assert [(g["first"], g["last"]) for g in groups] == [(0, 255), (256, 511), (512, 599)] and all(g["gpu_us"] >= 0 for g in groups)
    assert answer.json()["ops"] == []


@pytest.mark.parametrize("spaces", [0, 65536 - 12, 65536 - 11, 65536 - 10, 3 << 20])
def test_runs_of_every_length(client, counter, spaces):
    """A loop reads the JSON of short runs itself."""
    client.put(counter + "/programs/p", steps_program(20)).expect(201)
    path, body = counter + "/programs/p/runs", b'{"args":' + b" " * spaces + b"{}}"
    client.post(path, body, Content_Type="application/json").expect(200)
    assert number(client, counter) == after(1, range(20))
    error_of(client.post(path, body[:-1], Content_Type="application/json"), 400, "invalid_json")
    client.post(path, body, Content_Type="application/json").expect(200)
    assert number(client, counter) == after(after(1, range(20)), range(20))


# Around what is held, and around what is collected before it is looked at.
@pytest.mark.parametrize("bytes_of_json", [48, *(end - 16 + more for end in (1 << 16, 1 << 20) for more in (-64, 0, 64)), 3 << 20])
def test_framed_runs_of_every_length(client, counter, bytes_of_json):
    client.put(counter + "/programs/p", steps_program(20)).expect(201)
    path, ks = counter + "/programs/p/runs", range(20)

    def post(text, head=MAGIC, behind=b""):
        text = text.ljust(bytes_of_json // 64 * 64 + 48)
        return client.post(path, head + struct.pack("<HHI", 1, 0, len(text)) + text + behind, Content_Type=TYPE)

    answer = post(b"{}").expect(200)
    assert unframe(answer.body)[0]["gpu_groups"][0]["last"] == 19 and number(client, counter) == after(1, ks)
    error_of(post(b'{"segments":[{"id":"x","size":1}]}', behind=b"\1".ljust(64, b"\0")), 400, "invalid_field")
    error_of(post(b"{}", behind=bytes(64)), 400, "framing_mismatch")
    error_of(post(b"{}", head=MAGIC[::-1]), 400, "framing_mismatch")
    error_of(post(b'{"args":{'), 400, "invalid_json")
    assert number(client, counter) == after(1, ks)
    post(b'{"args":{"0":{"1":{"u32":5}}}}').expect(200)
    assert number(client, counter) == after(after(1, ks), [5, *ks[1:]])


def test_a_framed_run_whose_client_goes_away_in_its_body(client, service, counter):
    client.put(counter + "/programs/p", steps_program(20)).expect(201)
    body = frame({"args": {}})
    for sent in (0, 15, 16, 40, len(body) - 1):
        with socket.create_connection((service.host, service.port)) as connection:
            connection.sendall(f"POST {counter}/programs/p/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: {TYPE}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
            connection.sendall(body[:sent])
    client.post(counter + "/programs/p/runs", body, Content_Type=TYPE).expect(200)
    assert number(client, counter) == after(1, range(20)) and client.get(counter + "/programs/p").json()["runs"] == 1


def test_only_what_has_something_to_tell_is_listed(client, counter):
    """Prepared launches are timed together: of them only the engine of a built-in kernel is told one by one. What prints goes alone."""
    assert client.put_cuda(counter + "/modules/f", FAULTS).status == 201
    ops = [*map(step, range(4)), {"op": "launch", "builtin": "fill", "dtype": "u32", "args": [{"buf": "n"}, {"u64": 1}, {"u32": 3}]}, step(5),
           {"op": "launch", "module": "f", "kernel": "hello", "grid": [1], "block": [1], "args": [{"u32": 7}]}, step(6), {"op": "sync"}]
    client.put(counter + "/programs/p", {"module": "s", "ops": ops}).expect(201)
    answer = client.post(counter + "/programs/p/runs", {}).expect(200).json()
    assert [(group["first"], group["last"]) for group in answer["gpu_groups"]] == [(0, 5)]
    builtin, printed, alone = answer["ops"]
    assert builtin == {"index": 4, "engine": "builtin"}
    assert (printed["index"], printed["stdout"]) == (6, "hello 7\n") and printed["gpu_us"] >= 0
    assert set(alone) == {"index", "gpu_us"} and alone["index"] == 7
    assert number(client, counter) == after(3, [5, 6])


def test_replaced_scalars(client, counter):
    path = counter + "/programs/p"
    ops = [step(0), step(1), {"op": "launch", "kernel": "both", "grid": [1], "block": [32], "args": [{"buf": "n"}, {"u32": 2}, {"u32": 3}]}, step(4)]
    assert client.put(path, {"module": "s", "ops": ops}).status == 201
    value = 1

    def expect(ks, a, b, last):
        nonlocal value
        value = (after(value, ks) * 5 + 7 * a + b) % 2**32
        value = after(value, [last])
        assert number(client, counter) == value

    for args, expected in (
            (None, ([0, 1], 2, 3, 4)), ({"0": {"1": {"u32": 9}}}, ([9, 1], 2, 3, 4)),
            ({"2": {"1": {"i32": 5}, "2": {"u32": 0}}, "3": {"1": {"u32": 6}}}, ([0, 1], 5, 0, 6)),
            (None, ([0, 1], 2, 3, 4))):
        assert client.post(path + "/runs", {"args": args} if args else {}).status == 200
        expect(*expected)
    for args, status, code, pointer in (
            ([], 400, "invalid_field", "/args"), ({"4": {}}, 400, "invalid_field", "/args/4"), ({"x": {}}, 400, "invalid_field", "/args/x"),
            ({"0": {}, "00": {}}, 400, "invalid_field", "/args/00"), ({"0": {"1": {"u32": 1}, "01": {"u32": 2}}}, 400, "invalid_field", "/args/0/01"),
            ({"0": 3}, 400, "invalid_field", "/args/0"), ({"0": {"2": {"u32": 1}}}, 400, "invalid_field", "/args/0/2"),
            ({"0": {"0": {"u64": 1}}}, 400, "invalid_field", "/args/0/0"), ({"0": {"1": {"u64": 1}}}, 422, "argument_mismatch", "/args/0/1"),
            ({"2": {"2": {"f32": 0}}}, 422, "argument_mismatch", "/args/2/2"), ({"0": {"1": {"u32": -1}}}, 400, "invalid_field", "/args/0/1"), ({"0": {"1": {"buf": "n"}}}, 400, "invalid_field", "/args/0/1")):
        error_of(client.post(path + "/runs", {"args": args}), status, code, pointer)
    error_of(client.post(path + "/runs", {"more": 1}), 400, "unknown_field", "/more")
    error_of(client.post(path + "/runs", {"timeout_ms": 0}), 400, "invalid_field", "/timeout_ms")
    assert number(client, counter) == value


def test_what_cannot_be_a_program(client, counter):
    def refused(status, code, pointer, **changes):
        answer = client.put(counter + "/programs/p", {"module": "s", "ops": [step(0), step(1)], **changes})
        error_of(answer, status, code, pointer)

    refused(400, "invalid_field", "/keep", ops=[{"op": "alloc", "as": "$x", "size": 4}], keep=["$x"])
    refused(400, "invalid_field", "/ops/1/buf", ops=[step(0), {"op": "free", "buf": "n"}])
    refused(400, "invalid_field", "/segments/0", segments=[{"id": "a", "size": 4}])
    refused(400, "unknown_field", "/more", more=1)
    refused(404, "kernel_not_found", "/ops/1/kernel", ops=[step(0), step(1, kernel="none")])
    refused(404, "module_not_found", None, module="other")
    refused(404, "buffer_not_found", "/ops/1/args/0", ops=[step(0), step(1, "other")])
    refused(422, "argument_mismatch", "/ops/0/args", ops=[step(0, args=[{"buf": "n"}]), step(1)])
    refused(422, "launch_config_invalid", "/ops/0/block", ops=[step(0, block=[4096]), step(1)])
    refused(416, "range_not_satisfiable", None, ops=[{"op": "read", "from": "n", "offset": 2, "size": 4, "segment": "x"}])
    refused(400, "invalid_field", "/ops/0/event", ops=[{"op": "wait", "event": "e"}])
    refused(422, "compile_failed", None, module={"source": "nonsense"})
    assert client.put(counter + "/programs/P", steps_program(2)).code == "invalid_field"
    answer = client.put(counter + "/programs/p", frame(steps_program(2)), Content_Type=TYPE)
    assert answer.status == 415
    assert client.get(counter + "/programs").json()["items"] == [] and number(client, counter) == 1
    settles(client, counter, 4)


@FORMS
def test_wrong_segments(client, session, within):
    path = session + "/programs/v"
    assert client.put(path, VADD_PROGRAM).status == 201
    for segments, pointer in (({}, "/segments"), ({"a": A}, "/segments"), ({"b": B, "a": A}, "/segments/0"), ({"a": A, "b": B[:-1]}, "/segments/1"),
                              ({"a": A, "b": B, "c": b"x"}, "/segments")):
        error_of(send(client, path + "/runs", {}, segments, within), 400, "invalid_field", pointer)
    assert send(client, path + "/runs", {}, SEGMENTS, within).segments == {"out": SUM}


def test_every_operation_runs_again(client, session):
    assert client.put_cuda(session + "/modules/f", FAULTS).status == 201
    assert client.put_octets(session + "/buffers/own", b"abcdefgh").status == 201
    message = {
        "module": "f", "segments": [{"id": "late", "size": 4}, {"id": "s", "size": 4}],
        "ops": [{"op": "alloc", "as": "$x", "size": 16}, {"op": "fill", "to": "$x", "pattern": {"u8": 1}},
                {"op": "write", "to": "$x", "offset": 4, "segment": "s"}, {"op": "copy", "from": "own", "to": "$x", "offset": 8, "size": 4},
                {"op": "record", "event": "d"}, {"op": "wait", "event": "d", "stream": "one"}, {"op": "record", "event": "e", "stream": "one"},
                {"op": "launch", "kernel": "fill7", "grid": [1], "block": [32], "args": [{"buf": "$x", "offset": 12}, {"u32": 1}],
                 "stream": "one"},
                {"op": "record", "event": "g", "stream": "one"}, {"op": "wait", "event": "g"}, {"op": "elapsed", "from": "e", "to": "g"},
                {"op": "launch", "module": "f", "kernel": "hello", "grid": [1], "block": [1], "args": [{"u32": 5}]},
                {"op": "read", "from": "$x", "segment": "all"}, {"op": "read", "from": "own", "offset": 2, "size": 3, "segment": "part"},
                {"op": "free", "buf": "$x"}, {"op": "alloc", "as": "$y", "size": 8}, {"op": "sync"}, {"op": "sync", "stream": "one"},
                {"op": "write", "to": "own", "segment": "late"}]}
    client.put(session + "/programs/all", message).expect(201)
    assert client.get(session + "/buffers/own/data").body == b"abcdefgh"
    for own, late in ((b"abcd", b"LATE"), (b"LATE", b"more")):
        answer = send(client, session + "/programs/all/runs", {}, {"late": late, "s": b"wxyz"})
        assert answer.status == 200, answer
        assert answer.segments == {"all": b"\1\1\1\1wxyz" + own + b"\7\0\0\0", "part": own[2:] + b"e"}
        ops = {op["index"]: op for op in answer.message["ops"]}
        assert ops[11]["stdout"] == "hello 5\n" and ops[10]["elapsed_us"] >= 0
        assert client.get(session + "/buffers/own/data").body == late + b"efgh"


def test_a_buffer_that_moves_or_goes(client, counter):
    path = counter + "/programs/p"
    assert client.put(path, steps_program(3)).status == 201
    assert client.post(path + "/runs", {}).status == 200
    assert client.delete(counter + "/buffers/n").status == 204
    error_of(client.post(path + "/runs", {}), 404, "buffer_not_found", "/ops/0/args/0", 0)
    assert client.put(counter + "/buffers/other", {"size": 4}).status == 201
    assert client.put_octets(counter + "/buffers/n", struct.pack("<I", 5)).status == 201
    assert client.post(path + "/runs", {}).status == 200
    assert number(client, counter) == after(5, range(3))


def test_the_module_stays_with_the_program(client, counter):
    path = counter + "/programs/p"
    assert client.put(path, steps_program(3)).status == 201
    assert client.delete(counter + "/modules/s").status == 204
    assert client.post(path + "/runs", {}).status == 200
    assert number(client, counter) == after(1, range(3))


def test_a_reset_voids_programs(client, counter):
    path = counter + "/programs/p"
    assert client.put(path, steps_program(3)).status == 201
    assert client.post(counter + "/reset").status == 200
    assert client.get(path).code == "program_not_found" and client.get(counter + "/programs").json()["items"] == []
    assert client.post(path + "/runs", {}).code == "program_not_found"


def test_a_fault_in_a_prepared_launch(client, session):
    assert client.put_cuda(session + "/modules/f", """
extern "C" __global__ void good(unsigned *p) { *p += 1; }
extern "C" __global__ void bad(unsigned *p, unsigned far) { p[far * 1000000000ull] = 1; }""").status == 201
    assert client.put_octets(session + "/buffers/n", bytes(4)).status == 201
    good = {"op": "launch", "kernel": "good", "grid": [1], "block": [1], "args": [{"buf": "n"}]}
    bad = {"op": "launch", "kernel": "bad", "grid": [1], "block": [1], "args": [{"buf": "n"}, {"u32": 0}]}
    assert client.put(session + "/programs/p", {"module": "f", "ops": [good, good, bad, good]}).status == 201
    assert client.post(session + "/programs/p/runs", {}).status == 200
    answer = client.post(session + "/programs/p/runs", {"args": {"2": {"1": {"u32": 4000000000}}}})
    problem = error_of(answer, 422, "kernel_fault")
    assert problem["op_index"] <= 2 <= problem.get("op_index_last", problem["op_index"]) and problem["completed_ops"] <= 2
    assert client.get(session).json()["state"] == "faulted"
    error_of(client.post(session + "/programs/p/runs", {}), 409, "session_faulted")


STAY = """
extern "C" __global__ void stay(volatile unsigned *p) { while (*p) *p = *p | 1; }
extern "C" __global__ void count(unsigned *p) { p[1] += 1; }
"""


def stays(client, session):
    """A program whose third run and those behind it last until their deadline."""
    assert client.put_cuda(session + "/modules/m", STAY).status == 201
    assert client.put_octets(session + "/buffers/n", bytes(8)).status == 201
    ops = [launch(kernel, {"buf": "n"}, module="m", op="launch") for kernel in ("count", "stay", "count")]
    assert client.put(session + "/programs/p", {"ops": ops}).status == 201
    for _ in range(2):
        assert client.post(session + "/programs/p/runs", {}).status == 200
    assert client.get(session + "/buffers/n/data").body == struct.pack("<2I", 0, 4)
    assert client.put_octets(session + "/buffers/n/data", struct.pack("<2I", 1, 4)).status == 204
    return session + "/programs/p"


def test_a_run_that_lasts(client, service, session):
    path = stays(client, session)
    problem = error_of(client.post(path + "/runs", {"timeout_ms": 300}), 504, "execution_timeout")
    assert problem["op_index"] <= 1 <= problem.get("op_index_last", problem["op_index"]) and problem["completed_ops"] <= 1
    assert client.post(session + "/reset").status == 200
    path = stays(client, session)
    begin(service, {"timeout_ms": 1000}, path + "/runs").close()  # and its client goes
    until(lambda: client.get(path).json()["runs"] == 3)
    answer = client.post(path + "/runs", {})  # behind it; its turn may come before the session has heard of its worker's end
    assert (answer.status, answer.code) in ((409, "session_faulted"), (503, "worker_lost")), answer
    assert client.post(session + "/reset").status == 200
    path = stays(client, session)
    waits = begin(service, {}, path + "/runs")
    until(lambda: client.get(path).json()["runs"] == 3)
    assert client.delete(session).status == 204
    assert b"409" in waits.recv(100).split(b"\r\n")[0]
    waits.close()


def test_runs_follow_each_other(client, service, counter):
    path = counter + "/programs/p"
    message = {"module": "s", "segments": [{"id": "in", "size": 4}],
               "ops": [{"op": "alloc", "as": "$x", "segment": "in"}] + [step(k, "$x") for k in range(20)] + [{"op": "read", "from": "$x", "segment": "out"}]}
    assert client.put(path, message).status == 201
    wrong = []

    def run_many(first):
        one = service.client()
        for i in range(20):
            value = first * 1000 + i
            answer = send(one, path + "/runs", {}, {"in": struct.pack("<I", value)}, i % 2 == 0)
            if answer.status != 200 or answer.segments != {"out": struct.pack("<I", after(value, range(20)))}:
                wrong.append((value, answer))
        one.close()

    in_threads(run_many, range(4))
    assert not wrong
    assert client.get(path).json()["runs"] == 80


@FORMS
def test_runs_in_the_background(client, counter, within):
    """Results are as those of batches: by Location, in order, each with its own run's data."""
    assert client.put(counter + "/programs/v", VADD_PROGRAM).status == 201
    paths = []
    for round in range(3):
        a = floats(i + round for i in range(1024))
        answer = send(client, counter + "/programs/v/runs", {}, {"a": a, "b": B}, within, Prefer="respond-async")
        assert (answer.status, answer.headers["Preference-Applied"]) == (202, "respond-async"), answer
        paths.append(answer.headers["Location"])
    assert len(set(paths)) == 3
    for round, path in enumerate(paths):
        job = ended(client, path)
        assert job["state"] == "succeeded", job
        result = client.get(path + "/result")
        wanted = floats(3 * i + round for i in range(1024))
        if within:
            assert base64.b64decode(result.json()["segments"][0]["data_b64"]) == wanted
        else:
            assert unframe(result.body)[1] == {"out": wanted}
    assert client.get(counter + "/programs/v").json()["runs"] == 3


def test_scalars_of_runs_in_the_background(client, counter):
    assert client.put(counter + "/programs/p", steps_program(2)).status == 201
    answer = send(client, counter + "/programs/p/runs", {"args": {"1": {"1": {"u32": 9}}}}, {}, True, Prefer="respond-async")
    assert answer.status == 202, answer
    assert ended(client, answer.headers["Location"])["state"] == "succeeded"
    assert number(client, counter) == after(1, [0, 9])
    assert client.delete(counter + "/programs/p").status == 204
    error_of(send(client, counter + "/programs/p/runs", {}, {}, True, Prefer="respond-async"), 404, "program_not_found")


def test_a_program_that_is_deleted_under_a_queued_run(client, counter):
    """The run is done completely, or not at all with a reason."""
    outcomes = set()
    for _ in range(10):
        before = number(client, counter)
        assert client.put(counter + "/programs/p", steps_program(2)).status == 201
        answer = send(client, counter + "/programs/p/runs", {}, {}, True, Prefer="respond-async")
        assert answer.status == 202, answer
        assert client.delete(counter + "/programs/p").status == 204
        job = ended(client, answer.headers["Location"])
        outcomes.add(job["state"])
        if job["state"] == "succeeded":
            assert number(client, counter) == after(before, [0, 1])
        else:
            assert (job["state"], job["problem"]["code"]) == ("failed", "program_not_found"), job
            assert number(client, counter) == before
    assert outcomes <= {"succeeded", "failed"}


def test_a_fault_of_a_run_in_the_background_is_in_its_result(client, session):
    assert client.put_cuda(session + "/modules/f", FAULTS).status == 201
    program = {"module": "f", "ops": [{"op": "launch", "kernel": "illegal", "grid": [1], "block": [1], "args": [BAD_ADDRESS]}]}
    assert client.put(session + "/programs/p", program).status == 201
    answer = send(client, session + "/programs/p/runs", {}, {}, True, Prefer="respond-async")
    assert answer.status == 202, answer
    job = ended(client, answer.headers["Location"])
    assert (job["state"], job["problem"]["code"]) == ("failed", "kernel_fault"), job
    assert client.get(session).json()["state"] == "faulted"


def test_the_number_of_programs_is_bounded(client, counter):
    limit = client.get("/v1/limits").json()["limits"]["programs_per_session"]["max"]
    for i in range(limit):
        assert client.put(f"{counter}/programs/p{i}", steps_program(2)).status == 201
    answer = client.put(counter + "/programs/more", steps_program(2))
    assert answer.code == "quota_exceeded" and answer.json()["limit"]["name"] == "programs"
    assert client.delete(counter + "/programs/p0").status == 204
    assert client.put(counter + "/programs/more", steps_program(2)).status == 201
    names, cursor = [], ""
    while cursor is not None:
        page = client.get(f"{counter}/programs?limit=5" + (f"&cursor={cursor}" if cursor else "")).json()
        names += [item["name"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert names == sorted([f"p{i}" for i in range(1, limit)] + ["more"])


def test_scopes(start, tmp_path):
    service = start("--tokens", token_file(tmp_path / "tokens.json", ann=["read", "write", "launch"], bob=["read"]))
    ann, bob = (service.client(Authorization=f"Bearer {name}-secret") for name in ("ann", "bob"))
    assert ann.put("/v1/sessions/x").status == 201
    assert ann.put("/v1/sessions/x/programs/p", {"module": {"source": VADD}, "ops": []}).code == "insufficient_scope"
    assert ann.put("/v1/sessions/x/programs/p", {"ops": []}).status == 201
    assert bob.put("/v1/sessions/x/programs/p", {"ops": []}).code == "insufficient_scope"
    assert bob.get("/v1/sessions/x/programs/p").code == "session_not_found"


def test_scratch_memory_stays_with_the_program_and_grows_with_its_runs(client, session):
    """Of a built-in kernel: sorting more numbers needs more."""
    def usage():
        return client.get(session).json()["usage"]["memory_bytes"]

    count = 100000
    values = [(i * 7919) % 100003 for i in range(count)]
    assert client.put_octets(session + "/buffers/x", struct.pack(f"<{count}I", *values)).status == 201
    assert client.put(session + "/buffers/y", {"size": 4 * count}).status == 201
    before = usage()
    ops = [{"op": "launch", "builtin": "sort", "dtype": "u32", "args": [{"buf": "x"}, {"buf": "y"}, {"u64": 10}, {"bool": False}]}]
    assert client.put(session + "/programs/p", {"ops": ops}).status == 201
    little = usage()
    assert little > before
    for n, expected in ((10, little), (count, None), (10, None)):
        run = send(client, session + "/programs/p/runs", {"args": {"0": {"2": {"u64": n}}}}, {})
        assert run.status == 200, run
        assert list(struct.unpack(f"<{n}I", client.get(session + "/buffers/y/data", Range=f"bytes=0-{4 * n - 1}").body)) == sorted(values[:n])
        assert usage() == expected or expected is None and usage() >= before + 4 * count
    assert client.delete(session + "/programs/p").status == 204
    until(lambda: usage() == before)  # given back in the background
