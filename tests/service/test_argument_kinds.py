"""Numbers of the wrong kind are refused wherever a kernel takes arguments: bits of one type are never read as another."""
import base64
import pathlib
import struct

import pytest

from batch_client import send
from conftest import floats
from service_under_test import Service

SCALE = """
extern "C" __global__ void scale(float a, double d, const float *x, float *y, int n, unsigned short h)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + (float)d + h;
}
struct pair { int i; float f; };
extern "C" __global__ void unpack(pair p, float *y) { y[0] = p.i + p.f; }
"""
X, Y = {"buf": "x"}, {"buf": "y"}
GOOD = [{"f32": 2}, {"f64": 1}, X, Y, {"i32": 8}, {"u16": 3}]
WANT = floats(2 * i + 4 for i in range(8))
# argument, the value sent, and words of the refusal
WRONG = [(0, {"i32": 2}, "f32"), (0, {"u32": 2}, "f32"), (1, {"i64": 1}, "f64"), (1, {"u64": 1}, "f64"), (1, X, "a buffer"),
         (2, {"f64": 0}, "u64"), (4, {"f32": 8}, "u32"), (5, {"f16": 3}, "u16"), (5, {"bf16": 3}, "u16"),
         (0, {"struct": [{"i32": 2}]}, "a struct")]


def changed(index, value):
    return GOOD[:index] + [value] + GOOD[index + 1:]


def launch(args, **more):
    return {"module": "m", "kernel": "scale", "grid": [1], "block": [8], "args": args, **more}


def check(answer, pointer, index, words):
    assert (answer.status, answer.code) == (422, "argument_mismatch"), answer
    error = answer.json()["errors"][0]
    assert (error["pointer"], error["code"]) == (pointer, "type"), answer
    assert f"argument {index} of scale" in error["detail"] and words in error["detail"] and '{"bytes": ...}' in error["detail"], answer


def fill(client, session):
    assert client.put_cuda(session + "/modules/m", SCALE).status == 201
    assert client.put_octets(session + "/buffers/x", floats(range(8))).status == 201
    assert client.put(session + "/buffers/y", {"size": 32}).status == 201


@pytest.fixture
def scale(client, session):
    fill(client, session)
    return session


@pytest.fixture
def fake_cuda(executable, tmp_path):
    """A service whose device reads kernels from cubins, which contain only sizes."""
    library = pathlib.Path(executable).parents[1] / "tests" / "support" / "libcuda.so.1"
    if not library.exists():
        pytest.skip("the fake driver was not built beside GPURESTD")
    service = Service(executable, tmp_path, "--backends", "cuda", "--libcuda", str(library))
    yield service
    service.stop()


@pytest.mark.parametrize("index,value,words", WRONG)
def test_launches(client, scale, index, value, words):
    check(client.post(scale + "/launches", launch(changed(index, value))), f"/args/{index}", index, words)
    assert client.get(scale).json()["state"] == "ready"


def test_the_right_kind_and_raw_bits_go_through(client, scale):
    for index, value in ((0, {"f32": 2}), (0, {"bytes": "AAAAQA=="}), (0, {"struct": [{"f32": 2}]}), (4, {"u32": 8}), (4, {"bytes": "CAAAAA=="}),
                         (5, {"i16": 3}), (5, {"bytes": "AwA="})):
        assert client.post(scale + "/launches", launch(changed(index, value))).status == 200, value
        assert client.get(scale + "/buffers/y/data").body == WANT
    args = [{"struct": [{"i32": 5}, {"f32": 0.5}]}, Y]
    assert client.post(scale + "/launches", launch(args, kernel="unpack")).status == 200
    assert client.get(scale + "/buffers/y/data").body[:4] == floats([5.5])


def test_all_parameters_as_one_block(client, scale):
    x, y = (int(client.get(f"{scale}/buffers/{name}").json()["address"]) for name in "xy")
    block = struct.pack("<f4xdQQiH", 2, 1, x, y, 8, 3)

    def whole(raw):
        return launch({"bytes": base64.b64encode(raw).decode()})

    for raw in (b"", block[:1], block[:8], block[:-1], block + b"\0", block + bytes(2), block * 2):
        answer = client.post(scale + "/launches", whole(raw)).expect(422, "argument_mismatch")
        assert (answer.json()["errors"][0]["pointer"], answer.json()["errors"][0]["code"]) == ("/args", "size"), answer
        answer = send(client, scale + "/batches", {"ops": [{"op": "sync"}, {"op": "launch", **whole(raw)}]})
        assert answer.expect(422, "argument_mismatch").json()["errors"][0]["pointer"] == "/ops/1/args", answer
    assert client.get(scale + "/buffers/y/data").body == bytes(32), "a refused launch has run"
    for args in ({"bytes": "A"}, {"bytes": 5}, {"bytes": "AAAA", "buf": "x"}, {"i32": 5}, {}):
        assert client.post(scale + "/launches", launch(args)).expect(400, "invalid_field").json()["errors"][0]["pointer"] == "/args"
    assert client.post(scale + "/launches", {"builtin": "axpy", "dtype": "f32", "args": {"bytes": "AAAA"}}).expect(400, "invalid_field")
    assert client.post(scale + "/launches", whole(block) | {"id": "once"}).status == 200
    assert client.get(scale + "/buffers/y/data").body == WANT
    assert client.post(scale + "/launches", whole(block) | {"id": "once"}).status == 200, "the same launch again"
    client.post(scale + "/launches", whole(block[:-1] + b"\1") | {"id": "once"}).expect(409, "spec_conflict")
    ops = {"ops": [{"op": "fill", "to": "y", "pattern": {"u8": 0}}] + 20 * [{"op": "launch", **whole(block)}]}
    assert send(client, scale + "/batches", ops).status == 200
    assert client.get(scale + "/buffers/y/data").body == WANT
    assert client.put(scale + "/programs/p", {"ops": [{"op": "launch", **whole(block)}]}).status == 201
    client.put(scale + "/programs/p", {"ops": [{"op": "launch", **whole(block[:-1] + b"\1")}]}).expect(409, "spec_conflict")
    client.post(scale + "/programs/p/runs", {"args": {"0": {"0": {"f32": 3}}}}).expect(400, "invalid_field")
    assert client.put_octets(scale + "/buffers/y/data", bytes(32)).status == 204
    assert client.post(scale + "/programs/p/runs", {}).status == 200
    assert client.get(scale + "/buffers/y/data").body == WANT


def test_all_of_no_parameters(client, session):
    """Whoever packs a block packs 0 bytes for a kernel without parameters."""
    source = "__device__ int ran; extern \"C\" __global__ void count() { ran += 1; }"
    assert client.put_cuda(session + "/modules/m", source).status == 201
    empty = {"module": "m", "kernel": "count", "grid": [1], "block": [1], "args": {"bytes": ""}}
    client.post(session + "/launches", empty).expect(200)
    assert send(client, session + "/batches", {"ops": [{"op": "launch", **empty}]}).status == 200
    client.put(session + "/programs/p", {"ops": [{"op": "launch", **empty}]}).expect(201)
    client.post(session + "/programs/p/runs", {}).expect(200)
    assert client.get(session + "/modules/m/globals/ran/data").body == struct.pack("<i", 3)
    client.post(session + "/launches", empty | {"args": {"bytes": "AAAA"}}).expect(422, "argument_mismatch")
    client.post(session + "/launches", empty | {"args": [{"bytes": ""}]}).expect(400, "invalid_field")


def batch(args):
    named = [{"buf": "$" + a["buf"]} if "buf" in a else a for a in args]
    return {"module": {"source": SCALE},
            "ops": [{"op": "alloc", "as": "$x", "segment": "x"}, {"op": "alloc", "as": "$y", "size": 32}, {"op": "fill", "to": "$y", "pattern": {"u8": 0}},
                    {"op": "launch", **launch(named, module=None)}, {"op": "read", "from": "$y", "segment": "y"}]}


@pytest.mark.parametrize("within", [False, True], ids=["framed", "json"])
@pytest.mark.parametrize("run", [False, True], ids=["batches", "run"])
def test_batches_and_runs(client, session, within, run):
    path = "/v1/run" if run else session + "/batches"
    segments = {"x": floats(range(8))}
    assert send(client, path, batch(GOOD), segments, within).segments == {"y": WANT}
    for index, value, words in WRONG:
        check(send(client, path, batch(changed(index, value)), segments, within), f"/ops/3/args/{index}", index, words)


def test_in_the_background(client, session):
    path = session + "/batches"
    sent = send(client, path, batch(changed(0, {"i32": 2})), {"x": floats(range(8))}, Prefer="respond-async")
    assert sent.status == 202
    location = sent.headers["Location"]
    assert client.get(location, Prefer="wait=60").json()["state"] == "failed"
    check(client.get(location + "/result"), "/ops/3/args/0", 0, "f32")


def test_programs_and_the_scalars_of_their_runs(client, scale):
    def program(args):
        return {"ops": [{"op": "launch", **launch(args)}]}

    for index, value, words in WRONG:
        check(client.put(scale + "/programs/p", program(changed(index, value))), f"/ops/0/args/{index}", index, words)
    assert client.put(scale + "/programs/p", program(GOOD)).status == 201
    runs = scale + "/programs/p/runs"
    for index, value in ((0, {"i32": 2}), (1, {"u64": 1}), (4, {"f32": 8}), (5, {"f16": 3})):
        answer = client.post(runs, {"args": {"0": {str(index): value}}}).expect(422, "argument_mismatch")
        assert answer.json()["errors"][0]["pointer"] == f"/args/0/{index}"
    assert client.post(runs, {"args": {"0": {"0": {"f32": 3}, "4": {"u32": 8}}}}).status == 200
    assert client.get(scale + "/buffers/y/data").body == floats(3 * i + 4 for i in range(8))


def test_built_in_kernels(client, scale):
    def axpy(alpha, n):
        return {"builtin": "axpy", "dtype": "f32", "args": [alpha, X, Y, n]}

    for request, pointer in ((axpy({"i32": 2}, {"u64": 8}), "/args/0"), (axpy({"u32": 2}, {"u64": 8}), "/args/0"),
                             (axpy({"f32": 2}, {"f64": 8}), "/args/3"), (axpy({"bytes": "AAA="}, {"u64": 8}), "/args/0")):
        answer = client.post(scale + "/launches", request).expect(422, "argument_mismatch")
        assert answer.json()["errors"][0]["pointer"] == pointer, answer
    for request in (axpy({"f32": 2}, {"i64": 8}), axpy({"bytes": "AAAAQA=="}, {"bytes": "CAAAAAAAAAA="})):
        assert client.put_octets(scale + "/buffers/y/data", floats([1] * 8)).status == 204
        assert client.post(scale + "/launches", request, Prefer="wait=60").status == 200
        assert client.get(scale + "/buffers/y/data").body == floats(2 * i + 1 for i in range(8))


def test_on_cuda_where_the_types_come_from_the_ptx(fake_cuda):
    client, session = fake_cuda.client(), "/v1/sessions/s"
    assert client.put(session).status == 201
    fill(client, session)
    kernels = {k["name"]: k for k in client.get(session + "/modules/m").json()["kernels"]}
    assert [p["type"] for p in kernels["scale"]["params"]] == ["f32", "f64", "u64", "u64", "u32", "u16"]
    for index, value, words in WRONG:
        check(client.post(session + "/launches", launch(changed(index, value))), f"/args/{index}", index, words)
    assert client.get(session).json()["state"] == "ready"
    ptx = client.get(session + "/modules/m/code?format=ptx").body
    assert client.put(session + "/modules/p", ptx, Content_Type="application/vnd.gpurest.ptx").status == 201
    check(client.post(session + "/launches", launch(changed(0, {"i32": 2}), module="p")), "/args/0", 0, "f32")
    client.close()
