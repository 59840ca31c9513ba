"""Launches that nobody asks the time of: "timing": false, alone and in batches and programs, on the cpu device and on the fake driver."""
import base64
import struct

import pytest

from conftest import floats
from fake_gpu import driver, events, prepare, start  # noqa: F401
from kernels import FAULTS, launch, launch_vadd
from test_batches import error_of

S = "/v1/sessions/timing"


def untimed(**changes):
    return launch_vadd(timing=False, **changes)


@pytest.fixture(params=["cpu", "cuda"])
def own(request):
    """A client and its session with vadd's buffers: on the cpu device, and on a GPU that the fake driver plays."""
    if request.param == "cpu":
        yield request.getfixturevalue("client"), request.getfixturevalue("vadd")
        return
    _, libraries = request.getfixturevalue("driver")
    service = start(request.getfixturevalue("executable"), request.getfixturevalue("tmp_path"), libraries)
    try:
        client = service.client()
        yield client, prepare(client, S)
    finally:
        service.stop()


def device_time(client, session):
    return client.get(session).json()["usage"]["device_time_us"]


def test_a_launch_has_no_time_and_does_its_work(own):
    client, session = own
    done = client.post(session + "/launches", untimed(id="one"))
    assert done.status == 200 and done.json()["state"] == "succeeded" and done.json()["gpu_us"] is None and done.json()["stdout"] == ""
    assert client.get(session + "/buffers/c/data").body == floats(3 * i for i in range(1024))
    assert client.get(session + "/launches/one").json()["gpu_us"] is None
    assert client.post(session + "/launches", launch_vadd(id="two", timing=True)).json()["gpu_us"] >= 0
    told = {one["launch"]: one for one in events(client, session, "launch.finished") if one.get("launch") in ("one", "two")}
    assert told["one"]["state"] == "succeeded" and "gpu_us" not in told["one"] and "gpu_us" in told["two"]


def test_it_is_a_property_of_the_launch(own):
    client, session = own
    assert client.post(session + "/launches", untimed(id="mine")).status == 200
    assert client.post(session + "/launches", untimed(id="mine")).status == 200
    assert client.post(session + "/launches", launch_vadd(id="mine")).code == "spec_conflict"
    error_of(client.post(session + "/launches", launch_vadd(timing=0)), 400, "invalid_field", "/timing")
    error_of(client.post(session + "/batches", {"ops": [], "timing": "no"}), 400, "invalid_field", "/timing")
    error_of(client.post(session + "/batches", {"ops": [{"op": "launch", **launch_vadd(timing=1)}]}), 400, "invalid_field", "/ops/0/timing")


def test_its_worker_s_time_counts_as_use(own):
    client, session = own
    before = device_time(client, session)
    for _ in range(20):
        assert client.post(session + "/launches", untimed()).status == 200
    between = device_time(client, session)
    ops = [{"op": "launch", **untimed()} for _ in range(40)]
    assert client.post(session + "/batches", {"ops": ops}).status == 200
    assert before < between < device_time(client, session)


# What a launch needs of the device differs from that of the one before: shared memory, stack, parameters, text.
KINDS = r"""
struct many { unsigned w[1500]; };
extern "C" __global__ void shares(unsigned *p, unsigned n) {
    extern __shared__ unsigned s[];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) p[blockIdx.x] = n + s[blockDim.x - 1];
}
extern "C" __global__ void stacks(unsigned *p, unsigned n) {
    unsigned a[1000], sum = 0;
    for (unsigned i = 0; i < 1000; i++) a[i] = i * n;
    for (unsigned i = 0; i < n; i++) sum += a[(i * 7919) % 1000];
    p[blockIdx.x] = sum;
}
extern "C" __global__ void takes(unsigned *p, unsigned n, many b) { p[blockIdx.x] = b.w[n + threadIdx.x]; }
"""
PRINTS = r"""
extern "C" __global__ void prints(unsigned *p, unsigned n) { printf("%u\n", n); p[blockIdx.x] = n; }
"""


def test_launches_of_every_kind_follow_each_other(client, session):
    client.put_cuda(session + "/modules/kinds", KINDS).expect(201)
    client.put_cuda(session + "/modules/prints", PRINTS).expect(201)
    client.put(session + "/buffers/p", {"size": 4}).expect(201)
    words = base64.b64encode(struct.pack("<1500I", *(7 * i for i in range(1500)))).decode()

    def run(module, kernel, n, block, *args, **more):
        spec = {"module": module, "kernel": kernel, "grid": [1], "block": [block], "args": [{"buf": "p"}, {"u32": n}, *args], "timing": False, **more}
        done = client.post(session + "/launches", spec).expect(200).json()
        return struct.unpack("<I", client.get(session + "/buffers/p/data").body)[0], done["stdout"]

    for n in range(1, 13):
        assert run("kinds", "shares", n, 64, shared_bytes=4 * (64 + n)) == (n + 63, "")
        assert run("kinds", "stacks", n, 1) == (sum((i * 7919) % 1000 * n for i in range(n)), "")
        assert run("kinds", "takes", n, 1, {"bytes": words}) == (7 * n, "")
        assert run("prints", "prints", n, 1) == (n, f"{n}\n")
        refused = client.post(session + "/launches", {"module": "kinds", "kernel": "shares", "grid": [1], "block": [1 << 20], "args": [{"buf": "p"}, {"u32": n}],
                                                      "timing": False})
        assert refused.status == 422, refused
        assert run("kinds", "shares", n, 32, shared_bytes=40000) == (n + 31, "")


def test_text_and_a_fault_are_told_as_ever(own):
    client, session = own
    assert client.put_cuda(session + "/modules/f", FAULTS).status == 201
    for number in range(3):
        assert client.post(session + "/launches", untimed()).status == 200
        done = client.post(session + "/launches", launch("hello", {"u32": number}, timing=False), Prefer="return=minimal")
        assert done.json()["stdout"] == f"hello {number}\n" and done.json()["gpu_us"] is None
    problem = client.post(session + "/launches", launch("trap", timing=False))
    assert problem.status == 422 and problem.code == "kernel_fault", problem
    assert client.post(session + "/reset").status == 200


def test_a_deadline_is_kept(own):
    client, session = own
    assert client.put_cuda(session + "/modules/f", FAULTS).status == 201
    problem = client.post(session + "/launches", launch("endless", {"buf": "c"}, timing=False, timeout_ms=100))
    assert problem.status == 504 and problem.code == "execution_timeout", problem


@pytest.mark.parametrize("launches", [3, 100])
def test_batches(own, launches):
    client, session = own
    ops = [{"op": "launch", **launch_vadd()} for _ in range(launches)]
    answer = client.post(session + "/batches", {"ops": ops, "timing": False}).expect(200).json()
    assert answer["ops"] == [] and answer["gpu_groups"] == []
    ops[1]["timing"] = True
    answer = client.post(session + "/batches", {"ops": ops, "timing": False}).expect(200).json()
    told = [(op["index"], op["index"]) for op in answer["ops"]] + [(group["first"], group["last"]) for group in answer["gpu_groups"]]
    assert len(told) == 1 and told[0][0] <= 1 <= told[0][1]
    assert client.get(session + "/buffers/c/data").body == floats(3 * i for i in range(1024))


@pytest.mark.parametrize("timed", [False, True])
def test_programs(own, timed):
    client, session = own
    ops = [{"op": "launch", **launch_vadd()} for _ in range(50)]
    client.put(session + "/programs/p", {"ops": ops, "timing": timed}).expect(201)
    assert client.put(session + "/programs/p", {"ops": ops, "timing": not timed}).code == "spec_conflict"
    for _ in range(2):
        answer = client.post(session + "/programs/p/runs", {}).expect(200).json()
        assert answer["ops"] == [] and [(group["first"], group["last"]) for group in answer["gpu_groups"]] == ([(0, 49)] if timed else [])
    assert client.get(session + "/buffers/c/data").body == floats(3 * i for i in range(1024))
