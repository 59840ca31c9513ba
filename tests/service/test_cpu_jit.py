"""Kernels of the cpu device that are compiled while the service runs: what a module says of them, that launches change over to compiled code
and give the same, and that faults and deadlines hold in it. Without libLLVM or AVX2 only the reasons are tested."""
import struct

import pytest

from conftest import VADD, floats
from kernels import launch_vadd

SOURCE = VADD + r"""
extern "C" __global__ void count(unsigned *bins, const unsigned *from) { atomicAdd(bins + from[threadIdx.x] % 8, 1); }
extern "C" __global__ void wild(float *c, long long at) { if (threadIdx.x == 5) c[at] = 1; }
__device__ __noinline__ void meet(void) { __syncthreads(); }
extern "C" __global__ void meeting(unsigned *c) { c[threadIdx.x] = 1; meet(); c[threadIdx.x + 1] = 2; }
extern "C" __global__ void warps(unsigned *c)
{
    unsigned x = __shfl_xor_sync(~0u, threadIdx.x, 5) + __ballot_sync(~0u, threadIdx.x & 1);
    c[threadIdx.x] = x + __popc(__activemask());
}
"""


@pytest.fixture
def compiling(start):
    return start("--cpu-jit", "eager")


def kernels(client, path):
    client.put(path).expect(201)
    client.put(path + "/modules/m", {"source": SOURCE}).expect(201)
    told = client.get(path + "/modules/m").json()["kernels"]
    return {k["name"]: (k["engine"], k["engine_reason"]) for k in told}


def usable(engines):
    if engines["vadd"][0] != "llvm":
        assert "libLLVM" in engines["vadd"][1] or "AVX2" in engines["vadd"][1]
        pytest.skip(engines["vadd"][1])


def fill(client, path):
    client.put_octets(path + "/buffers/a", floats(range(1024))).expect(201)
    client.put_octets(path + "/buffers/b", floats(2 * i for i in range(1024))).expect(201)
    client.put(path + "/buffers/c", {"size": 4096}).expect(201)


def test_it_can_be_off(start):
    client = start("--cpu-jit", "off").client()
    client.put("/v1/sessions/off").expect(201)
    client.put("/v1/sessions/off/modules/m", {"source": VADD}).expect(201)
    kernel, = client.get("/v1/sessions/off/modules/m").json()["kernels"]
    assert kernel["engine"] == "interpreter" and "cpu_jit" in kernel["engine_reason"]


def test_a_module_says_what_is_compiled_and_why_not(compiling):
    engines = kernels(compiling.client(), "/v1/sessions/told")
    usable(engines)
    assert engines["count"][0] == engines["warps"][0] == "llvm", engines
    assert engines["meeting"][0] == "interpreter" and "call" in engines["meeting"][1] and "PTX line" in engines["meeting"][1]


def test_launches_change_over_and_give_the_same(compiling):
    client, path = compiling.client(), "/v1/sessions/change"
    usable(kernels(client, path))
    fill(client, path)
    for more in range(2):
        assert client.post(path + "/launches", launch_vadd()).status == 200
        assert client.get(path + "/buffers/c/data").body == floats(3 * i for i in range(1024))
        client.put_octets(path + "/buffers/c/data", bytes(4096)).expect(204)
        compiling.logged("compiled kernel vadd")
    assert client.post(path + "/launches", launch_vadd()).status == 200
    assert client.get(path + "/buffers/c/data").body == floats(3 * i for i in range(1024))


def test_what_runs_for_long_is_compiled_by_default(start):
    service = start(libraries=True)
    client, path = service.client(), "/v1/sessions/long"
    usable(kernels(client, path))
    fill(client, path)
    around = """extern "C" __global__ void around(float *c, int n)
    { float x = 0; for (int i = 0; i < n; i++) x = x * 0.5f + 1; atomicAdd(c, x); }"""
    client.put(path + "/modules/around", {"source": around}).expect(201)
    assert client.post(path + "/launches", launch_vadd()).status == 200
    told = {"module": "around", "kernel": "around", "grid": [4096], "block": [64], "args": [{"buf": "c"}, {"i32": 2000}]}
    assert client.post(path + "/launches", {**told, "timeout_ms": 600_000}).status == 200
    service.logged("compiled kernel around")
    assert client.post(path + "/launches", {**told, "timeout_ms": 600_000}).status == 200
    assert "compiled kernel vadd" not in service.stderr()


def test_a_fault_in_compiled_code_names_its_thread_and_line(compiling):
    client, path = compiling.client(), "/v1/sessions/fault"
    usable(kernels(client, path))
    fill(client, path)
    wild = {"module": "m", "kernel": "wild", "grid": [1], "block": [64], "args": [{"buf": "c"}, {"i64": 0}]}
    assert client.post(path + "/launches", wild).status == 200
    compiling.logged("compiled kernel wild")
    wild["args"][1] = {"i64": 1 << 40}
    told = client.post(path + "/launches", wild)
    assert told.status == 422 and told.code == "kernel_fault", told.body
    assert "thread (5,0,0)" in told.json()["detail"] and "PTX line" in told.json()["detail"]
    assert client.post(path + "/reset").status == 200


def test_a_deadline_ends_a_compiled_loop(compiling):
    client, path = compiling.client(), "/v1/sessions/late"
    source = """
extern "C" __global__ void around(unsigned *c, unsigned n, unsigned step)
{
    unsigned x = threadIdx.x;
    while (x != n)
        x = x * 5 + step;
    *c = x;
}
"""
    client.put(path).expect(201)
    client.put(path + "/modules/m", {"source": source}).expect(201)
    kernel, = client.get(path + "/modules/m").json()["kernels"]
    usable({"vadd": (kernel["engine"], kernel["engine_reason"])})
    client.put(path + "/buffers/c", {"size": 4}).expect(201)
    launch = {"module": "m", "kernel": "around", "grid": [1], "block": [1], "args": [{"buf": "c"}, {"u32": 0}, {"u32": 0}]}
    assert client.post(path + "/launches", launch).status == 200
    compiling.logged("compiled kernel around")
    launch["args"] = [{"buf": "c"}, {"u32": 7}, {"u32": 0}]
    told = client.post(path + "/launches", {**launch, "timeout_ms": 300})
    assert told.code == "execution_timeout", told.body
    assert client.get(path).json()["state"] == "faulted"


def test_warps_and_sums_of_compiled_kernels(compiling):
    client, path = compiling.client(), "/v1/sessions/sums"
    usable(kernels(client, path))
    client.put_octets(path + "/buffers/from", struct.pack("<32I", *range(32))).expect(201)
    client.put(path + "/buffers/bins", {"size": 32}).expect(201)
    client.put(path + "/buffers/c", {"size": 4 * 64}).expect(201)
    count = {"module": "m", "kernel": "count", "grid": [1], "block": [32], "args": [{"buf": "bins"}, {"buf": "from"}]}
    warps = {"module": "m", "kernel": "warps", "grid": [1], "block": [64], "args": [{"buf": "c"}]}
    for more in range(1, 3):
        for launch in (count, warps):
            assert client.post(path + "/launches", launch).status == 200
            compiling.logged("compiled kernel " + launch["kernel"])
        assert struct.unpack("<8I", client.get(path + "/buffers/bins/data").body) == (4 * more,) * 8
        told = struct.unpack("<64I", client.get(path + "/buffers/c/data").body)
        assert told == tuple((i ^ 5) + 0xaaaaaaaa + 32 for i in range(64))
