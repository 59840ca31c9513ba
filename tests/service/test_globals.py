"""Variables of modules: read, written and copied as buffers are, in every way that takes a buffer."""
import base64
import struct
import threading

import pytest

from fake_gpu import driver, start  # noqa: F401

SOURCE = r"""
__device__ int counter = 5;
__constant__ float table[4] = {1, 2, 3, 4};
namespace ns { __device__ unsigned long long big[4096]; }
extern "C" __global__ void step(int by) { atomicAdd(&counter, by); }
extern "C" __global__ void look(float *out) { out[threadIdx.x] = table[threadIdx.x] + (float)ns::big[threadIdx.x]; }
extern "C" __global__ void add(int *p, int by) { *p += by; }
"""


def ints(*values):
    return struct.pack(f"<{len(values)}i", *values)


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def words(*values):
    return struct.pack(f"<{len(values)}Q", *values)


@pytest.fixture
def module(client, session):
    made = client.put_cuda(session + "/modules/m", SOURCE)
    assert made.status == 201, made
    return session + "/modules/m"


def rows(client, module):
    return {row["name"]: row for row in client.get(module).json()["globals"]}


def data(client, module, name):
    return client.get(f"{module}/globals/{name}/data").expect(200).body


def step(client, session, by):
    client.post(session + "/launches", {"module": "m", "kernel": "step", "grid": [1], "block": [1], "args": [{"i32": by}]}).expect(200)


def test_the_module_lists_its_variables(client, module):
    found = rows(client, module)
    assert {"counter", "table", "ns::big"} <= set(found)
    assert found["counter"]["bytes"] == 4 and found["table"]["constant"] and not found["counter"]["constant"]
    assert found["ns::big"]["bytes"] == 32768 and found["ns::big"]["mangled"].startswith("_ZN")
    assert all(int(row["address"]) > 0 for row in found.values())
    assert len({row["buffer"] for row in found.values()}) == len(found)


def test_reading_and_writing(client, session, module):
    assert data(client, module, "counter") == ints(5) and data(client, module, "table") == floats(1, 2, 3, 4)
    step(client, session, 10)
    assert data(client, module, "counter") == ints(15)
    client.put_octets(module + "/globals/counter/data", ints(-7)).expect(204)
    step(client, session, 1)
    assert data(client, module, "counter") == ints(-6)
    client.put_octets(module + "/globals/table/data", floats(10, 20, 30, 40)).expect(204)
    client.put_octets(module + "/globals/ns::big/data", words(*range(4096))).expect(204)
    client.put(session + "/buffers/out", {"size": 16}).expect(201)
    client.post(session + "/launches", {"module": "m", "kernel": "look", "grid": [1], "block": [4], "args": [{"buf": "out"}]}).expect(200)
    assert client.get(session + "/buffers/out/data").body == floats(10, 21, 32, 43)


@pytest.mark.parametrize("name", ["ns::big", "ns%3A%3Abig", "mangled", "place"])
def test_names(client, module, name):
    row = rows(client, module)["ns::big"]
    name = {"mangled": row["mangled"], "place": row["buffer"].partition(":")[2]}.get(name, name)
    client.put_octets(f"{module}/globals/{name}/data", bytes(range(256)) * 128).expect(204)
    assert data(client, module, "ns::big")[:256] == bytes(range(256))


def test_ranges_conditions_and_digests(client, module):
    path = module + "/globals/ns::big/data"
    client.put_octets(path, words(*range(100, 4196))).expect(204)
    part = client.get(path, Range="bytes=8-23")
    assert part.status == 206 and part.body == words(101, 102) and part.headers["Content-Range"] == "bytes 8-23/32768"
    tag = part.headers["ETag"]
    assert client.get(path, If_None_Match=tag).status == 304
    client.put_octets(path, words(7), Content_Range="bytes 16-23/32768", If_Match=tag).expect(204)
    assert client.get(path, Range="bytes=0-31").body == words(100, 101, 7, 103)
    assert client.put_octets(path, words(8), Content_Range="bytes 16-23/32768", If_Match=tag).code == "precondition_failed"
    assert client.put_octets(path, words(8)).code == "length_mismatch"
    assert client.get(path, Range="bytes=32768-").code == "range_not_satisfiable"
    assert client.put_octets(path, words(8), Content_Range="bytes 32768-32775/32776").status in (400, 416)
    told = client.get(path, Want_Content_Digest="sha-256=1")
    assert told.headers["Content-Digest"].startswith("sha-256=:")
    head = client.request("HEAD", path)
    assert head.status == 200 and head.headers["Content-Length"] == "32768"


def test_what_is_not_there(client, session, module):
    assert client.get(module + "/globals/nothing/data").code == "global_not_found"
    assert client.get(module + "/globals/99/data").code == "global_not_found"
    assert client.put_octets(module + "/globals/nothing/data", b"1").code == "global_not_found"
    assert client.get(session + "/modules/none/globals/counter/data").code == "module_not_found"
    assert client.get(session + "/buffers/m:nothing/data").code == "buffer_not_found"
    assert client.get(session + "/buffers/none:0/data").code == "buffer_not_found"
    assert client.get(session + "/buffers/:counter/data").code == "buffer_not_found"
    assert client.put(session + "/buffers/m:5", {"size": 4}).status == 400


def test_a_variable_is_a_buffer(client, session, module):
    """Fills, copies, comparisons, arguments of kernels of any module; but it is neither freed nor shared."""
    client.post(session + "/buffers/m:table/fill", {"pattern": {"f32": 2.5}}).expect(204)
    assert data(client, module, "table") == floats(*[2.5] * 4)
    client.put_octets(session + "/buffers/b", floats(1, 2, 3, 4)).expect(201)
    client.post(session + "/buffers/m:table/copy", {"from": "b", "from_offset": 4, "offset": 8, "size": 8}).expect(204)
    assert data(client, module, "table") == floats(2.5, 2.5, 2, 3)
    client.post(session + "/buffers/b/copy", {"from": "m:table"}).expect(204)
    assert client.post(session + "/buffers/b/compare", {"with": "m:table"}).json()["equal"] is True
    where = rows(client, module)["counter"]["buffer"]
    client.post(session + "/launches", {"module": "m", "kernel": "add", "grid": [1], "block": [1], "args": [{"buf": where}, {"i32": 3}]}).expect(200)
    assert data(client, module, "counter") == ints(8)
    assert client.get(f"{session}/buffers/{where}").json()["size"] == 4
    assert client.delete(f"{session}/buffers/{where}").code == "invalid_request"
    assert [b["id"] for b in client.get(session + "/buffers").json()["items"]] == ["b"]
    assert data(client, module, "counter") == ints(8)


def batch(ops, segments=(), module=None, keep=()):
    body = {"ops": ops, "segments": [{"id": name, "data_b64": base64.b64encode(value).decode()} for name, value in segments]}
    if module is not None:
        body["module"] = module
    return body


def outputs(answer):
    return {s["id"]: base64.b64decode(s["data_b64"]) for s in answer.expect(200).json()["segments"]}


OPS = [{"op": "write", "to": ":counter", "segment": "c"},
       {"op": "launch", "kernel": "step", "grid": [2], "block": [4], "args": [{"i32": 100}]},
       {"op": "copy", "from": ":counter", "to": ":table", "offset": 4},
       {"op": "fill", "to": ":table", "size": 4, "pattern": {"u32": 9}},
       {"op": "launch", "kernel": "add", "grid": [1], "block": [1], "args": [{"buf": ":counter"}, {"i32": 1}]},
       {"op": "read", "from": ":counter", "segment": "counter"},
       {"op": "read", "from": ":table", "offset": 0, "size": 8, "segment": "table"}]


@pytest.mark.parametrize("place", ["source", "id", "other"])
def test_batches(client, session, module, place):
    """Of the batch's own module, which may still have to be compiled, and of one that is named."""
    ops = OPS
    spec = {"source": {"source": SOURCE + "// another"}, "id": "m", "other": None}[place]
    if place == "other":
        ops = [{k: "m" + v if isinstance(v, str) and v.startswith(":") else v for k, v in op.items()} for op in OPS]
        ops = [{**op, "module": "m"} if op["op"] == "launch" else op for op in ops]
        ops[4] = {**ops[4], "args": [{"buf": "m:counter"}, {"i32": 1}]}
    got = outputs(client.post(session + "/batches", batch(ops, [("c", ints(1))], spec)))
    assert got["counter"] == ints(802) and got["table"] == ints(9, 801)


def test_a_run_without_a_session(client):
    got = outputs(client.post("/v1/run", batch(OPS, [("c", ints(-1))], {"source": SOURCE})))
    assert got["counter"] == ints(800)


def test_programs(client, session, module):
    text = batch(OPS, (), {"source": SOURCE})
    text["segments"] = [{"id": "c", "size": 4}]
    client.put(session + "/programs/p", text).expect(201)
    for start in (1, 50):
        run = {"segments": [{"id": "c", "data_b64": base64.b64encode(ints(start)).decode()}]}
        assert outputs(client.post(session + "/programs/p/runs", run))["counter"] == ints(start + 801)


def test_batches_name_what_is_missing(client, session, module):
    for name in (":nothing", "m:nothing", "none:counter"):
        answer = client.post(session + "/batches", batch([{"op": "fill", "to": name, "pattern": {"u8": 1}}], module="m"))
        assert answer.code == "buffer_not_found" and answer.json()["errors"][0]["pointer"] == "/ops/0/to", answer
    assert client.post(session + "/batches", batch([{"op": "free", "buf": "m:counter"}])).code == "invalid_request"
    answer = client.post(session + "/batches", batch([{"op": "read", "from": ":counter", "segment": "x"}]))
    assert answer.code == "buffer_not_found"
    answer = client.post(session + "/batches", batch([{"op": "read", "from": "m:counter", "size": 5, "segment": "x"}]))
    assert answer.code == "range_not_satisfiable"


def test_writes_of_one_batch_keep_their_order(client, session, module):
    """Of writes to one place the last one counts, whichever segment came first."""
    client.put(session + "/buffers/b", {"size": 4}).expect(201)
    ops = [{"op": "write", "to": "b", "segment": "two"}, {"op": "write", "to": "b", "segment": "one"}, {"op": "write", "to": "b", "segment": "three"}]
    client.post(session + "/batches", batch(ops, [("one", ints(1)), ("two", ints(2)), ("three", ints(3))])).expect(200)
    assert client.get(session + "/buffers/b/data").body == ints(3)
    ops = [{"op": "write", "to": ":counter", "segment": "one"}, {"op": "write", "to": "m:counter", "segment": "two"}]
    client.post(session + "/batches", batch(ops, [("one", ints(1)), ("two", ints(2))], "m")).expect(200)
    assert data(client, module, "counter") == ints(2)


def test_they_go_with_their_module(client, session, module):
    client.delete(module).expect(204)
    assert client.get(session + "/buffers/m:counter").code == "buffer_not_found"
    client.put_cuda(module, SOURCE).expect(201)
    assert data(client, module, "counter") == ints(5)
    client.post(session + "/reset", {}).expect(200)
    assert client.get(module + "/globals/counter/data").code == "module_not_found"


def test_deleting_a_module_while_its_variables_move(service, client, session):
    """A transfer that has begun ends as it would have; what comes later is told that there is no such module."""
    path, wrong, stop = session + "/modules/m/globals/ns::big/data", [], threading.Event()

    def use(seed):
        mine = service.client()
        while not stop.is_set():
            answer = mine.put_octets(path, words(*[seed] * 4096)) if seed % 2 else mine.get(path)
            if answer.status not in (200, 204) and answer.code not in ("module_not_found", "global_not_found", "session_busy", "buffer_not_found"):
                wrong.append(answer)

    users = [threading.Thread(target=use, args=(n,)) for n in range(4)]
    for thread in users:
        thread.start()
    for _ in range(12):
        client.put_cuda(session + "/modules/m", SOURCE).expect(201)
        client.post(session + "/launches?wait=0", {"module": "m", "kernel": "step", "grid": [1], "block": [1], "args": [{"i32": 1}]})
        client.delete(session + "/modules/m").expect(204)
    stop.set()
    for thread in users:
        thread.join()
    assert not wrong, wrong[:3]
    assert client.get(session).json()["state"] == "ready"


def test_other_tenants_modules_are_not_there(client, session, module):
    other = client.post("/v1/sessions", {}).expect(201).headers["Location"]
    assert client.get(other + "/modules/m/globals/counter/data").code == "module_not_found"
    assert client.get(other + "/buffers/m:counter/data").code == "buffer_not_found"


def test_on_cuda(executable, tmp_path, driver):  # noqa: F811
    """The fake driver, which keeps all variables of a module in one place."""
    service = start(executable, tmp_path, driver[1])
    try:
        client = service.client()
        session = client.post("/v1/sessions", {}).expect(201).headers["Location"]
        made = client.put_cuda(session + "/modules/m", SOURCE)
        if made.status == 503:
            pytest.skip("no NVRTC on this machine")
        found = {row["name"]: row for row in made.expect(201).json()["globals"]}
        assert found["counter"]["bytes"] == 4 and found["table"]["constant"] and found["table"]["bytes"] == 16
        path = session + "/modules/m/globals/table/data"
        client.put_octets(path, floats(5, 6, 7, 8)).expect(204)
        assert client.get(path, Range="bytes=4-11").expect(206).body == floats(6, 7)
        client.post(session + "/buffers/m:table/fill", {"pattern": {"f32": 2.5}, "offset": 4, "size": 4}).expect(204)
        assert client.get(path).body == floats(5, 2.5, 7, 8)
        got = outputs(client.post(session + "/batches", batch([{"op": "read", "from": ":table", "size": 4, "segment": "x"}], module="m")))
        assert got["x"] == floats(5)
        client.delete(session + "/modules/m").expect(204)
        assert client.get(path).code == "module_not_found"
    finally:
        service.stop()
