"""Built-in kernels over HTTP: listed, launched by name, in batches and programs; and refusals, which name the parameter."""
import struct

import batch_client

from conftest import floats
from service_under_test import in_threads

AXPY = {"builtin": "axpy", "dtype": "f32", "args": [{"f32": 2}, {"buf": "a"}, {"buf": "b"}, {"u64": 1024}]}


def read(client, path):
    data = client.get(path + "/data").body
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def two_buffers(client, session):
    assert client.put_octets(session + "/buffers/a", floats(range(1024))).status == 201
    assert client.put_octets(session + "/buffers/b", floats([1] * 1024)).status == 201


def test_the_library_is_listed_page_by_page(client):
    names, cursor = [], None
    while True:
        answer = client.get("/v1/kernels?limit=7" + (f"&cursor={cursor}" if cursor else ""))
        assert answer.status == 200
        names += [item["name"] for item in answer.json()["items"]]
        cursor = answer.json()["next_cursor"]
        if cursor is None:
            break
    assert names == [item["name"] for item in client.get("/v1/kernels?limit=1000").json()["items"]]
    assert len(set(names)) == len(names) > 50


def test_one_kernel_says_all_about_itself(client):
    axpy = client.get("/v1/kernels/axpy").json()
    assert [(p["name"], p["access"], p["type"]) for p in axpy["params"]] == [
        ("alpha", "value", "T"), ("x", "read", "T"), ("y", "read_write", "T"), ("n", "value", "u64")]
    assert axpy["family"] == "elementwise" and "f16" in axpy["dtypes"] and "bool" not in axpy["dtypes"]
    assert "__global__" in axpy["source"] and "common.cuh" in axpy["source"] and axpy["notes"].startswith("Elementwise kernels")
    assert client.get("/v1/kernels/nothing").code == "kernel_not_found"


def test_a_launch_by_name_and_dtype(client, session):
    two_buffers(client, session)
    for times in (1, 2):
        answer = client.post(session + "/launches", AXPY).expect(200)
        launch = answer.json()
        assert (launch["module"], launch["builtin"], launch["dtype"], launch["kernel"]) == (None, "axpy", "f32", "axpy")
        assert read(client, session + "/buffers/b") == [1 + 2.0 * i * times for i in range(1024)]
    assert [item["builtin"] for item in client.get(session + "/launches").json()["items"]] == ["axpy", "axpy"]
    assert client.get(session + "/modules").json()["items"] == []
    assert client.get(session).json()["usage"]["modules"] == 0


def test_the_same_id_is_the_same_launch(client, session):
    two_buffers(client, session)
    assert client.post(session + "/launches", {**AXPY, "id": "one"}).status == 200
    assert client.post(session + "/launches", {**AXPY, "id": "one"}).status == 200
    assert read(client, session + "/buffers/b")[1] == 3
    assert client.post(session + "/launches", {**AXPY, "id": "one", "builtin": "add"}).code == "spec_conflict"


def test_a_key_makes_it_happen_once(client, session):
    two_buffers(client, session)
    first = client.post(session + "/launches", AXPY, Idempotency_Key='"once"')
    again = client.post(session + "/launches", AXPY, Idempotency_Key='"once"')
    assert first.status == again.status == 200 and first.json() == again.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert read(client, session + "/buffers/b")[1] == 3


def test_in_the_background(client, session):
    two_buffers(client, session)
    answer = client.post(session + "/launches", AXPY, Prefer="respond-async")
    assert answer.status == 202
    assert client.get(answer.headers["Location"], Prefer="wait=30").json()["state"] == "succeeded"


def refused(client, session, code, pointer, **changes):
    answer = client.post(session + "/launches", {**AXPY, **changes})
    assert answer.code == code, answer
    assert answer.json()["errors"][0]["pointer"] == pointer, answer
    return answer.json()["detail"]


def test_what_is_refused(client, session):
    two_buffers(client, session)
    good = AXPY["args"]
    refused(client, session, "kernel_not_found", "/builtin", builtin="nothing")
    refused(client, session, "invalid_field", "/dtype", dtype="f8")
    refused(client, session, "invalid_field", "/dtype", dtype="bool")
    refused(client, session, "invalid_field", "/grid", grid=[1])
    refused(client, session, "invalid_field", "/block", block=[1])
    refused(client, session, "invalid_field", "/kernel", kernel="axpy")
    refused(client, session, "invalid_field", "/module", module="m")
    assert "takes 4 arguments" in refused(client, session, "argument_mismatch", "/args", args=good[:3])
    assert "alpha" in refused(client, session, "argument_mismatch", "/args/0", args=[{"f64": 2}] + good[1:])
    assert "x of axpy" in refused(client, session, "argument_mismatch", "/args/1", args=[good[0], {"u64": 5}] + good[2:])
    assert "y of axpy" in refused(client, session, "buffer_not_found", "/args/2", args=good[:2] + [{"buf": "none"}, good[3]])
    assert "x of axpy" in refused(client, session, "argument_mismatch", "/args/1", args=good[:3] + [{"u64": 1025}])
    assert "y of axpy" in refused(client, session, "argument_mismatch", "/args/2", args=good[:2] + [{"buf": "b", "offset": 4}, good[3]])
    assert "not a multiple of the element size" in refused(client, session, "argument_mismatch", "/args/1", args=[good[0], {"buf": "a", "offset": 2}] + good[2:])
    refused(client, session, "argument_mismatch", "/args", args=good[:3] + [{"u64": str(2 ** 64 - 1)}])
    answer = client.post(session + "/launches", {"module": "m", "kernel": "k", "grid": [1], "dtype": "f32"})
    assert answer.code == "invalid_field"
    assert read(client, session + "/buffers/b") == [1] * 1024


def batch(n=1000):
    return {"ops": [{"op": "alloc", "as": "$a", "segment": "a"}, {"op": "alloc", "as": "$b", "segment": "b"}, {"op": "alloc", "as": "$s", "size": 4},
                    {"op": "launch", "builtin": "axpy", "dtype": "f32", "args": [{"f32": 2}, {"buf": "$a"}, {"buf": "$b"}, {"u64": n}]},
                    {"op": "launch", "builtin": "reduce_sum", "dtype": "f32", "args": [{"buf": "$b"}, {"buf": "$s"}, {"u64": n}]},
                    {"op": "read", "from": "$s", "segment": "sum"}]}


SEGMENTS = {"a": floats(range(1000)), "b": floats([1] * 1000)}


def test_a_batch_of_two(client, session):
    for path in (session + "/batches", "/v1/run"):
        answer = batch_client.send(client, path, batch(), SEGMENTS)
        assert answer.status == 200, answer
        assert struct.unpack("<f", answer.segments["sum"]) == (1000 + 999000,)
        assert answer.message["timing"]["compile_ms"] > 0, "the making of built-in kernels is counted there"
    nothing = batch_client.send(client, session + "/batches", {"ops": [{"op": "alloc", "as": "$s", "size": 4}]}, {})
    assert nothing.message["timing"]["compile_ms"] == 0


def test_a_batch_names_the_operation_and_the_parameter(client, session):
    answer = batch_client.send(client, session + "/batches", batch(1001), SEGMENTS)
    assert answer.code == "argument_mismatch" and answer.json()["op_index"] == 3
    assert answer.json()["errors"][0]["pointer"] == "/ops/3/args/1"
    message = batch()
    message["ops"][3]["grid"] = [1]
    answer = batch_client.send(client, session + "/batches", message, SEGMENTS)
    assert answer.json()["errors"][0]["pointer"] == "/ops/3/grid"


def test_a_program_of_two(client, session):
    message = {**batch(), "segments": [{"id": name, "size": len(data)} for name, data in SEGMENTS.items()]}
    assert client.put(session + "/programs/p", message).status == 201
    for times in (1, 2):
        answer = batch_client.send(client, session + "/programs/p/runs", {}, {**SEGMENTS, "b": floats([times] * 1000)})
        assert answer.status == 200, answer
        assert struct.unpack("<f", answer.segments["sum"]) == (1000 * times + 999000,)


def test_after_a_reset_they_are_made_anew(client, session):
    two_buffers(client, session)
    assert client.post(session + "/launches", AXPY).status == 200
    assert client.post(session + "/reset", {}).status == 200
    assert client.post(session + "/launches", AXPY).code == "buffer_not_found"
    two_buffers(client, session)
    assert client.post(session + "/launches", AXPY).status == 200
    assert read(client, session + "/buffers/b")[5] == 11


def test_callers_share_the_code(start):
    service = start()
    client = service.client()
    for sid in ("one", "two"):
        assert client.put(f"/v1/sessions/{sid}").status == 201
        two_buffers(client, f"/v1/sessions/{sid}")
        assert client.post(f"/v1/sessions/{sid}/launches", AXPY).status == 200
    metrics = client.get("/metrics").body.decode()
    hits = [line for line in metrics.splitlines() if line.startswith("gpurest_compile_cache_total") and 'result="hit"' in line]
    assert hits and float(hits[0].split()[-1]) == 1, metrics


def test_many_at_once_compile_once_and_all_come_right(service, session):
    import threading
    client = service.client()
    assert client.put_octets(session + "/buffers/a", floats([1.5] * 64)).status == 201
    outcomes = []

    def one(i):
        own = service.client()
        body = {"builtin": "cbrt", "dtype": "f32", "args": [{"buf": "a"}, {"buf": "a"}, {"u64": 0}]}
        outcomes.append(own.post(session + "/launches", body).status)
        own.close()

    in_threads(one, range(12))
    client.close()
    assert outcomes == [200] * 12
