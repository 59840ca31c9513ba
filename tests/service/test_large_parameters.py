"""Kernels with as many parameter bytes as CUDA allows, 32,764, by every way to launch."""
import base64
import struct

import pytest

PARAMETER_BYTES_MAX = 32764
WORDS = (PARAMETER_BYTES_MAX - 12) // 4  # in the struct, beside a pointer and a count
KERNEL = r"""
struct big { unsigned w[%d]; };
extern "C" __global__ void take(unsigned *out, unsigned n, big b) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = b.w[i];
}"""


@pytest.fixture
def module(client, session):
    made = client.put(session + "/modules/m", (KERNEL % WORDS).encode(), Content_Type="text/x-cuda")
    assert made.status in (200, 201), made
    (kernel,) = made.json()["kernels"]
    assert [p["size"] for p in kernel["params"]] == [8, 4, 4 * WORDS]
    assert kernel["params"][-1]["offset"] + kernel["params"][-1]["size"] == PARAMETER_BYTES_MAX
    assert client.put_octets(session + "/buffers/out", bytes(4 * WORDS)).status == 201
    return session


def values(seed, count=WORDS):
    return [(seed * 2654435761 + i * 40503) % 2**32 for i in range(count)]


def launch(argument):
    return {"module": "m", "kernel": "take", "grid": [8], "block": [256], "args": [{"buf": "out"}, {"u32": WORDS}, argument]}


def as_bytes(words):
    return launch({"bytes": base64.b64encode(struct.pack(f"<{len(words)}I", *words)).decode()})


def as_struct(words):
    """Structs of 64-bit numbers: a request may have some thousand values, a struct 128 members."""
    members = [{"u64": str(low | high << 32)} for low, high in zip(words[::2], words[1::2])]
    return launch({"struct": [{"struct": members[i:i + 64]} for i in range(0, len(members), 64)]})


def result(client, session):
    return list(struct.unpack(f"<{WORDS}I", client.get(session + "/buffers/out/data").body))


@pytest.mark.parametrize("form", [as_struct, as_bytes], ids=["struct", "bytes"])
def test_a_launch(client, module, form):
    words = values(1)
    client.post(module + "/launches", form(words)).expect(200)
    assert result(client, module) == words


def test_many_launches_that_wait(client, module):
    """More at a time than a worker accepts: long commands beside short ones, in the ring and in the backlog."""
    ids = []
    for i in range(40):
        words = values(i) if i % 2 else values(i)[:1] * WORDS
        queued = client.post(module + "/launches", as_bytes(words), Prefer="respond-async").expect(202)
        ids.append(queued.json()["id"])
    for name in ids:
        while (told := client.get(f"{module}/launches/{name}", Prefer="wait=30")).json()["state"] in ("queued", "running"):
            pass
        assert told.json()["state"] == "succeeded", told
    assert result(client, module) == values(39)


def test_a_batch(client, module):
    words = values(3)
    done = client.post(module + "/batches", {"segments": [], "ops": [
        {"op": "launch", **as_bytes(values(2))}, {"op": "launch", **as_bytes(words)}]})
    assert done.status == 200, done
    assert result(client, module) == words


def test_a_batch_with_more_of_them_than_a_list_holds(client, module):
    ops = [{"op": "launch", **as_bytes(values(i))} for i in range(20)]
    client.post(module + "/batches", {"segments": [], "ops": ops}).expect(200)
    assert result(client, module) == values(19)


def test_a_program(client, module):
    ops = [{"op": "launch", **as_bytes(values(i))} for i in (5, 6)]
    made = client.put(module + "/programs/p", {"segments": [], "ops": ops})
    assert made.status in (200, 201), made
    for _ in range(2):
        client.put_octets(module + "/buffers/out", bytes(4 * WORDS))
        assert client.post(module + "/programs/p/runs", {"segments": []}).status == 200
        assert result(client, module) == values(6)


def test_one_byte_more_is_refused_by_name(client, module):
    if client.get("/v1/devices").json()["items"][0]["backend"] == "cpu":
        ptx = b".version 8.1\n.target sm_75\n.address_size 64\n.visible .entry much(.param .align 4 .b8 b[%d]) { ret; }\n"
        fits = client.put(module + "/modules/fits", ptx % PARAMETER_BYTES_MAX, Content_Type="application/vnd.gpurest.ptx")
        assert fits.status in (200, 201), fits
        refused = client.put(module + "/modules/not", ptx % (PARAMETER_BYTES_MAX + 1), Content_Type="application/vnd.gpurest.ptx").expect(422, "module_invalid")
        assert b"the parameters of much exceed 32764 bytes" in refused.body
    else:
        client.put(module + "/modules/not", (KERNEL % (WORDS + 1)).encode(), Content_Type="text/x-cuda").expect(422)


def test_a_longer_argument_is_refused(client, module):
    client.post(module + "/launches", as_bytes(values(1, WORDS + 1))).expect(422, "argument_mismatch")


def test_an_argument_longer_than_any_kernel_takes_is_refused_by_the_bound(client, module):
    refused = client.post(module + "/launches", launch({"bytes": base64.b64encode(bytes(PARAMETER_BYTES_MAX + 1)).decode()})).expect(400, "invalid_field")
    assert refused.json()["detail"] == f"the argument has {PARAMETER_BYTES_MAX + 1} bytes; the parameters of a kernel have at most {PARAMETER_BYTES_MAX} bytes"


def test_many_parameters(client, session):
    """As a kernel of Numba's has with 26 arrays of three dimensions: eleven for each, and more than a hundred."""
    count = 286
    source = 'extern "C" __global__ void sum(unsigned *out, %s) { *out = %s; }' % (
        ", ".join(f"unsigned p{i}" for i in range(count)), " + ".join(f"{i + 1} * p{i}" for i in range(count)))
    made = client.put(session + "/modules/m", source.encode(), Content_Type="text/x-cuda")
    assert made.status in (200, 201), made
    assert len(made.json()["kernels"][0]["params"]) == count + 1
    assert client.put_octets(session + "/buffers/out", bytes(4)).status == 201
    words = values(3, count)
    client.post(session + "/launches", {"module": "m", "kernel": "sum", "grid": [1], "block": [1], "args": [{"buf": "out"}, *({"u32": w} for w in words)]}).expect(200)
    assert struct.unpack("<I", client.get(session + "/buffers/out/data").body)[0] == sum((i + 1) * w for i, w in enumerate(words)) % 2**32
