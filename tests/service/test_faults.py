"""Kernels that fault, hang, or lose their worker: the right answer, a session that can be reset, and neighbours that go on computing."""
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import time

import pytest

from conftest import VADD, floats
from kernels import ASSERTS, BAD_ADDRESS, FAULTS, fill7, launch, launch_vadd
from service_under_test import until


@pytest.fixture
def faulty(client, session):
    assert client.put_cuda(session + "/modules/f", FAULTS).status == 201
    assert client.put(session + "/buffers/x", {"size": 4}).status == 201
    return session


SYNC = {"segments": [], "ops": [{"op": "sync"}]}


def check_faulted(client, session, code):
    """The session has faulted, says why, refuses work, and is as new after a reset."""
    info = client.get(session).json()
    assert info["state"] == "faulted" and info["fault"]["code"] == code
    for answer in (client.get(session + "/buffers/x/data"), client.post(session + "/buffers", {"size": 4}),
                   client.post_octets(session + "/buffers", b"abc"), client.post(session + "/launches", fill7())):
        assert answer.status == 409 and answer.code == "session_faulted"
    reset = client.post(session + "/reset")
    assert reset.status == 200 and reset.json()["state"] == "ready" and reset.json()["generation"] == info["generation"] + 1
    assert client.put_cuda(session + "/modules/f", FAULTS).status == 201
    assert client.put(session + "/buffers/x", {"size": 4}).status == 201
    assert client.post(session + "/launches", fill7()).status == 200
    assert client.get(session + "/buffers/x/data").body == b"\7\0\0\0"


def test_illegal_address(client, faulty):
    answer = client.post(faulty + "/launches", launch("illegal", BAD_ADDRESS))
    assert answer.status == 422 and answer.code == "kernel_fault"
    assert answer.json()["cuda"]["name"] in ("CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_LAUNCH_FAILED")
    check_faulted(client, faulty, "kernel_fault")


def test_a_fault_is_told_of_its_launch_alone(client, faulty):
    """Eight clients keep one stream full of launches of a kernel, which on a GPU stand behind each other there; one of these has a bad address."""
    def ask(number):
        mine, answers = type(client)(client.host, client.port, client.headers), []
        for turn in range(60):
            address = BAD_ADDRESS if (number, turn) == (3, 40) else {"buf": "x"}
            answers.append(mine.post(faulty + "/launches", launch("illegal", address, timing=False)))
        return answers

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        answers = [answer for some in threads.map(ask, range(8)) for answer in some]
    refused = [answer.code for answer in answers if answer.status != 200]
    assert refused.count("kernel_fault") == 1 and answers[3 * 60 + 40].code == "kernel_fault"
    assert set(refused) <= {"kernel_fault", "worker_lost", "session_faulted"} and answers[3 * 60 + 39].status == 200
    check_faulted(client, faulty, "kernel_fault")


def test_what_waits_behind_a_fault_is_told_that_it_did_not_run(client, faulty):
    paths = []
    for kernel, argument in (("endless", {"buf": "x"}), ("illegal", {"buf": "x"}), ("illegal", {"buf": "x"})):
        sent = client.post(faulty + "/launches", launch(kernel, argument, timing=False, timeout_ms=300), Prefer="respond-async")
        assert sent.status == 202
        paths.append(sent.headers["Location"])
    ends = [client.get(path, Prefer="wait=60").json() for path in paths]
    assert [end["problem"]["code"] for end in ends] == ["execution_timeout", "worker_lost", "worker_lost"]
    assert "before this launch finished" in ends[1]["problem"]["detail"] and "started_at" in ends[0] and "started_at" not in ends[1]


def test_trap(client, faulty):
    assert client.post(faulty + "/launches", launch("trap")).code == "kernel_fault"
    check_faulted(client, faulty, "kernel_fault")


def test_assert(client, faulty):
    client.put_cuda(faulty + "/modules/a", ASSERTS).expect(201)
    assert client.post(faulty + "/launches", launch("asserts", {"i32": 1}, module="a")).status == 200
    answer = client.post(faulty + "/launches", launch("asserts", {"i32": 2}, module="a"))
    assert answer.code == "kernel_fault" and answer.json()["cuda"]["name"] == "CUDA_ERROR_ASSERT"
    check_faulted(client, faulty, "kernel_fault")


@pytest.mark.skipif(os.environ.get("GPUREST_TEST_BACKENDS", "cpu") != "cpu", reason="a GPU tells no access")
def test_a_fault_tells_its_access_alone_and_in_a_batch(client):
    """In a batch of many launches it is that of the failed one; what is no access tells none."""
    base = client.post("/v1/sessions", {}).headers["Location"]
    source = 'extern "C" __global__ void at(unsigned long long p) { *(volatile unsigned long long *)p = 1; }\nextern "C" __global__ void no() { __trap(); }\n'
    client.put_cuda(base + "/modules/f", source).expect(201)
    assert client.put(base + "/buffers/x", {"size": 64}).status == 201
    wild = {"u64": str(2**64 - 8)}
    for failed in (lambda: client.post(base + "/launches", launch("at", wild)),
                   lambda: client.post(base + "/batches", {"ops": [{"op": "launch", **launch("at", {"buf": "x"})}] * 9 + [{"op": "launch", **launch("at", wild)}] * 2})):
        access = failed().expect(422, "kernel_fault").json()["access"]
        assert (access["address"], access["bytes"], access["kind"], access["kernel"]) == (str(2**64 - 8), 8, "write", "at"), access
        client.post(base + "/reset").expect(200)
        client.put_cuda(base + "/modules/f", source).expect(201)
        assert client.put(base + "/buffers/x", {"size": 64}).status == 201
    assert "access" not in client.post(base + "/launches", launch("no")).expect(422, "kernel_fault").json()
    assert client.delete(base).status == 204


ADDRESSES = r"""
extern "C" __device__ int vprintf(const char *, const void *);
typedef unsigned long long u64;
extern "C" __global__ void where(u64 *out) { out[0] = (u64)out; }
extern "C" __global__ void beyond(int *p, u64 by) { *(volatile int *)((char *)p + by) = 1; }
extern "C" __global__ void shared(int i) { extern __shared__ int s[]; volatile int *p = s; p[i] = 1; }
extern "C" __global__ void local(int i, int *out) { volatile int a[16]; for (int k = 0; k < 16; k++) a[k] = k; *out = a[i]; }
extern "C" __global__ void jump(u64 to) { ((void (*)())to)(); }
extern "C" __global__ void release(void *p) { free(p); }
extern "C" __global__ void barrier(u64 at) { asm volatile("{ .reg .b64 s; mbarrier.arrive.b64 s, [%0]; }" :: "l"(at) : "memory"); }
extern "C" __global__ void say(u64 format) { vprintf((const char *)format, 0); }
"""


@pytest.mark.skipif(os.environ.get("GPUREST_TEST_BACKENDS", "cpu") != "cpu", reason="a GPU's addresses are no host's")
@pytest.mark.parametrize("memcheck", [False, True])
@pytest.mark.parametrize("kernel,scalar,shown", [
    ("beyond", {"u64": 1 << 38}, "buffer"), ("beyond", {"u64": 4}, "buffer"), ("beyond", {"u64": 2}, "buffer"), ("shared", {"i32": 1 << 22}, None), ("local", {"i32": 1 << 22}, None),
    ("jump", {"u64": 4096}, 4096), ("release", {"u64": 4096}, 4096), ("barrier", {"u64": 4096}, 4096), ("say", {"u64": 4096}, 4096)])
def test_addresses_in_details_are_the_kernels_own(service, client, kernel, scalar, shown, memcheck):
    """Pointers in kernels reach nothing of the process that runs them: its code, stack and heap."""
    base = client.post("/v1/sessions", {"memcheck": memcheck}).headers["Location"]
    client.put_cuda(base + "/modules/f", ADDRESSES).expect(201)
    assert client.put(base + "/buffers/x", {"size": 8}).status == 201
    assert client.post(base + "/launches", launch("where", {"buf": "x"})).status == 200
    buffer = int.from_bytes(client.get(base + "/buffers/x/data").body, "little")
    takes_buffer = {"beyond": [{"buf": "x"}, scalar], "local": [scalar, {"buf": "x"}]}
    answer = client.post(base + "/launches", launch(kernel, *takes_buffer.get(kernel, [scalar])))
    if answer.status == 200:
        assert kernel == "beyond" and scalar == {"u64": 4}
        return
    assert answer.code == "kernel_fault", answer
    texts = json.dumps([answer.json(), client.get(base).json()])
    addresses = {int(text, 16) for text in re.findall(r'(?<![\w"])0x([0-9a-fA-F]+)', texts)}
    if shown is not None:
        assert addresses == {buffer + scalar["u64"] if shown == "buffer" else shown}, texts
    for address in addresses - {buffer + by for by in (2, 4, 1 << 38)}:
        assert address <= 1 << 30 or address >> 48, hex(address)
    files = [line.split() for pid in service.processes() | {service.process.pid} for line in maps_of(pid)]
    for span in (line[0].split("-") for line in files if len(line) > 5):
        assert not any(int(span[0], 16) <= address < int(span[1], 16) for address in addresses), span
    assert client.delete(base).status == 204


def maps_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []


def test_endless_kernel(client, faulty):
    answer = client.post(faulty + "/launches", launch("endless", {"buf": "x"}, timeout_ms=300))
    assert answer.status == 504 and answer.code == "execution_timeout"
    check_faulted(client, faulty, "execution_timeout")


def test_an_asynchronous_fault_is_kept_with_its_launch(client, faulty):
    sent = client.post(faulty + "/launches", launch("illegal", BAD_ADDRESS), Prefer="respond-async")
    done = client.get(sent.headers["Location"], Prefer="wait=30").json()
    assert done["state"] == "failed" and done["problem"]["code"] == "kernel_fault"


def test_what_was_queued_behind_a_fault_fails(client, faulty):
    first = client.post(faulty + "/launches", launch("endless", {"buf": "x"}, timeout_ms=300), Prefer="respond-async")
    second = client.post(faulty + "/launches", fill7(), Prefer="respond-async")
    assert first.status == second.status == 202
    done = client.get(second.headers["Location"], Prefer="wait=30").json()
    assert done["state"] == "failed" and done["problem"]["code"] in ("execution_timeout", "worker_lost", "session_faulted")


def test_a_neighbour_computes_on(client, faulty):
    other = "/v1/sessions/neighbour"
    assert client.put(other).status == 201
    try:
        client.put_cuda(other + "/modules/m", VADD)
        for name in ("a", "b"):
            client.put_octets(f"{other}/buffers/{name}", floats(range(1024)))
        client.put(other + "/buffers/c", {"size": 4096})
        for kernel, args in (("illegal", [BAD_ADDRESS]), ("trap", []), ("endless", [{"buf": "x"}])):
            assert client.post(faulty + "/launches", launch(kernel, *args, timeout_ms=300)).status in (422, 504)
            assert client.post(other + "/launches", launch_vadd()).status == 200
            assert client.get(other + "/buffers/c/data").body == floats(2 * i for i in range(1024))
            assert client.get("/readyz").status == 200, "a caller's fault never turns it red"
            client.post(faulty + "/reset")
            client.put_cuda(faulty + "/modules/f", FAULTS)
            client.put(faulty + "/buffers/x", {"size": 4})
    finally:
        client.delete(other)


def test_worker_killed_in_the_middle(start):
    service = start("--pool-size", "0")
    client = service.client()
    before = service.children()
    assert client.put("/v1/sessions/k").status == 201
    workers = service.children() - before
    assert len(workers) == 1
    assert client.put_cuda("/v1/sessions/k/modules/f", FAULTS).status == 201
    assert client.put("/v1/sessions/k/buffers/x", {"size": 4}).status == 201
    sent = client.post("/v1/sessions/k/launches", launch("endless", {"buf": "x"}, timeout_ms=60000), Prefer="respond-async")
    assert sent.status == 202
    os.kill(workers.pop(), signal.SIGKILL)
    done = client.get(sent.headers["Location"], Prefer="wait=30").json()
    assert done["state"] == "failed" and done["problem"]["code"] == "worker_lost"
    check_faulted(client, "/v1/sessions/k", "worker_lost")


def test_worker_killed_while_idle(start):
    service = start("--pool-size", "0")
    client = service.client()
    before = service.children()
    assert client.put("/v1/sessions/k").status == 201
    os.kill((service.children() - before).pop(), signal.SIGKILL)
    answer = until(lambda: (made := client.post("/v1/sessions/k/buffers", {"size": 4})).status != 201 and made, seconds=60)
    assert answer.code in ("worker_lost", "session_faulted")
    assert client.post("/v1/sessions/k/reset").status == 200
    assert client.post("/v1/sessions/k/buffers", {"size": 4}).status == 201


@pytest.mark.parametrize("first", ["batch", "upload"])
def test_whoever_comes_first_finds_a_worker_that_was_killed_while_idle(start, first):
    """The session reports it from then on; an implicit session is recreated."""
    service = start("--pool-size", "0")
    client = service.client()
    before = service.children()
    assert client.put("/v1/sessions/k").status == 201
    assert client.put("/v1/sessions/k/buffers/x", {"size": 4}).status == 201
    assert client.post("/v1/run", SYNC).status == 200
    for pid in service.children() - before:
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while client.get("/v1/sessions/k").json()["state"] != "faulted":
        answer = client.post("/v1/sessions/k/batches", SYNC) if first == "batch" else client.put_octets("/v1/sessions/k/buffers/x/data", b"abcd")
        assert answer.status in (200, 204, 409, 503), answer
        assert time.monotonic() < deadline
    assert client.get("/v1/sessions/k").json()["fault"]["code"] == "worker_lost"
    while client.post("/v1/run", SYNC).status != 200:
        assert time.monotonic() < deadline
    assert client.post("/v1/sessions/k/reset").status == 200
    assert client.post("/v1/sessions/k/batches", SYNC).status == 200


def test_the_pool_is_refilled_after_faults(client, faulty):
    for _ in range(5):
        assert client.post(faulty + "/launches", launch("trap")).code == "kernel_fault"
        assert client.post(faulty + "/reset").status == 200
        assert client.put_cuda(faulty + "/modules/f", FAULTS).status == 201
