"""Shareable buffers: clients of the same host map the buffer's own memory. On the cpu device that is a memory file. On cuda the driver
exports it; the fake driver uses a memory file, too, so that a descriptor's path from the worker to a client is tested here."""
import fcntl
import mmap
import os
import pathlib
import shutil
import signal
import threading

import pytest

from conftest import VADD, floats
from fake_gpu import events
from kernels import BAD_ADDRESS, FAULTS, launch, launch_vadd
from local_client import LocalClient
from service_under_test import children_of, in_threads, role_of
from test_local_sharing import (F_GET_SEALS, F_SEAL_ALL, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE, MIB, PAGE, eventually, fallocate,  # noqa: F401
                                make, memory_of, move, shared_descriptors, sharing)
from test_start_and_auth import token_file

UNIT = 2 * MIB  # of the fake driver, as of real ones


class Kind:
    """How a device shares buffers."""

    def __init__(self, name, client, word, unit):
        self.name, self.client, self.word, self.unit = name, client, word, unit

    def taken(self, size):
        return -(-size // self.unit) * self.unit

    def open(self, buffer):
        """The descriptor, which the caller closes, and the answer."""
        answer = self.client.post(buffer + "/share", {"as": self.word}).expect(200)
        return self.client.take(), answer.json()

    def map(self, buffer):
        """The mapping and a view of the buffer's bytes."""
        fd, answer = self.open(buffer)
        try:
            mapped = mmap.mmap(fd, self.taken(answer["size"]))
        finally:
            os.close(fd)
        offset = answer.get("offset", 0)
        return mapped, memoryview(mapped)[offset:offset + answer["size"]]


@pytest.fixture
def fake_driver(executable, tmp_path):
    library = pathlib.Path(executable).parents[1] / "tests" / "support" / "libcuda.so.1"
    if not library.exists():
        pytest.skip("the fake driver is not built")
    (tmp_path / "driver").mkdir()
    return shutil.copy(library, tmp_path / "driver" / "libcuda.so.1")


@pytest.fixture
def memory_files(sharing):  # noqa: F811
    """sharing() on the cpu device, whose shareable buffers are memory files, on whatever device the other tests run; with a session."""
    def begin(*arguments):
        client = sharing("--backends", "cpu", *arguments)
        assert client.put("/v1/sessions/s").status == 201
        return client
    return begin


@pytest.fixture(params=["cpu", "cuda"])
def kind(request, sharing, executable):  # noqa: F811
    if os.environ.get("GPUREST_TEST_BACKENDS", "cpu") != "cpu":
        pytest.skip("these run on the cpu device and the fake driver")
    if request.param == "cpu":
        one = Kind("cpu", sharing(), "memory", PAGE)
    else:
        library = request.getfixturevalue("fake_driver")
        one = Kind("cuda", sharing("--libcuda", library, "--backends", "cuda"), "cuda_fd", UNIT)
    assert one.client.put("/v1/sessions/s").status == 201
    return one


def make_shareable(client, name, size, session="s"):
    path = f"/v1/sessions/{session}/buffers/{name}"
    answer = client.put(path, {"size": size, "shareable": True})
    assert answer.status == 201 and answer.json()["shareable"] is True, answer
    return path


def synchronise(client, buffer):
    """Ensures that everything submitted before is done and visible in the memory."""
    assert client.get(buffer + "/data", Range="bytes=0-0").status == 206


def mappers_of(service):
    """Workers that have shared memory mapped; the file's name is that of the service or of the fake driver."""
    def maps(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/maps").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return ""  # ended meanwhile

    found = [pid for pid in children_of(service.process.pid) if role_of(pid) == b"--role=worker"]
    return [pid for pid in found if any(name in maps(pid) for name in ("gpurest-shared", "fake-share"))]


# ---- use ----

def test_kernels_and_the_client_work_on_the_same_bytes(kind):
    client, path = kind.client, "/v1/sessions/s"
    made = client.put_cuda(path + "/modules/m", VADD)
    if made.status == 503:
        pytest.skip("no NVRTC on this machine")
    assert made.status == 201, made
    views = {name: kind.map(make_shareable(client, name, 4096)) for name in "abc"}
    views["a"][1][:] = floats(range(1024))
    views["b"][1][:] = floats(2 * i for i in range(1024))
    assert client.post(path + "/launches", launch_vadd()).status == 200
    assert bytes(views["c"][1]) == floats(3 * i for i in range(1024))


@pytest.mark.parametrize("size", [1, 100, PAGE, PAGE + 1, 3 * MIB + 7])
def test_uploads_downloads_fills_and_copies_see_it(kind, size):
    client = kind.client
    buffer, other = make_shareable(client, "x", size), make(client, "y", size)
    mapped, view = kind.map(buffer)
    assert bytes(mapped) == bytes(kind.taken(size))  # no earlier contents are visible
    content = os.urandom(size)
    assert client.put_octets(buffer + "/data", content).status in (200, 204)
    assert bytes(view) == content
    view[:] = content[::-1]
    assert client.get(buffer + "/data").body == content[::-1]
    assert client.post(other + "/copy", {"from": "x"}).status == 204
    assert client.get(other + "/data").body == content[::-1]
    assert client.post(buffer + "/fill", {"pattern": {"u8": 7}}).status == 204
    assert bytes(view) == b"\7" * size


def test_what_the_answers_say(kind):
    client = kind.client
    buffer = make_shareable(client, "x", 5000)
    fd, answer = kind.open(buffer)
    size = os.fstat(fd).st_size
    os.close(fd)
    if kind.name == "cpu":
        assert answer == {"buffer": "x", "size": 5000, "created": False, "direct": True, "offset": 2 * PAGE - 5120} and size == 2 * PAGE
    else:
        assert answer == {"buffer": "x", "size": 5000, "allocation_size": UNIT, "granularity": UNIT} and size == UNIT
    info = client.get(buffer).json()
    assert info["size"] == 5000 and info["shareable"] is True
    plain = make(client, "y", 10)
    assert "shareable" not in client.get(plain).json()
    listed = {item["id"]: item.get("shareable", False) for item in client.get("/v1/sessions/s/buffers").json()["items"]}
    assert listed == {"x": True, "y": False}


def test_it_is_the_same_buffer_only_if_it_is_as_shareable(kind):
    client = kind.client
    buffer = make_shareable(client, "x", 4096)
    assert client.put(buffer, {"size": 4096, "shareable": True}).status == 200
    for refused in (client.put(buffer, {"size": 4096}), client.put(buffer, {"size": 4097, "shareable": True}),
                    client.put_octets(buffer, bytes(4096))):
        assert (refused.status, refused.code) == (409, "spec_conflict")
    plain = make(client, "y", 4096)
    refused = client.put(plain, {"size": 4096, "shareable": True})
    assert (refused.status, refused.code) == (409, "spec_conflict") and refused.json()["errors"][0]["pointer"] == "/shareable"


def test_copies_of_it_have_only_to_wait(memory_files):
    """A program need not know whether the memory is the buffer's own."""
    client = memory_files()
    buffer = make_shareable(client, "x", 2 * PAGE)
    with client.share(buffer) as shared:
        shared[:] = b"z" * 2 * PAGE
        before = client.get("/v1/sessions/s/buffers/x/data", Range="bytes=0-0").headers["ETag"]
        assert move(client, buffer, "to_device").headers["ETag"] != before
        assert client.get(buffer + "/data").body == b"z" * 2 * PAGE
        move(client, buffer, "from_device", offset=1, size=7)
        assert shared[:] == b"z" * 2 * PAGE
        for bad in ({"offset": 2 * PAGE + 1}, {"offset": 1, "size": 2 * PAGE}):
            assert client.put(buffer + "/share", {"direction": "to_device", **bad}).code == "range_not_satisfiable"
        client.delete(buffer + "/share").expect(404, "share_not_found")
        assert shared[:] == b"z" * 2 * PAGE


def test_on_a_gpu_memory_of_the_host_can_be_had_as_well(sharing, fake_driver):  # noqa: F811
    client = sharing("--libcuda", fake_driver, "--backends", "cuda")
    assert client.put("/v1/sessions/s").status == 201
    for buffer in (make_shareable(client, "x", 5000), make(client, "y", 5000)):
        with client.share(buffer) as shared:
            shared[:] = os.urandom(5000)
            move(client, buffer, "to_device")
            assert client.get(buffer + "/data").body == shared[:]
            assert client.post(buffer + "/fill", {"pattern": {"u8": 3}}).status == 204
            move(client, buffer, "from_device", offset=10)
            assert shared[10:] == b"\3" * 4990 and shared[:10] != b"\3" * 10
            assert client.delete(buffer + "/share").status == 204
            assert shared[:] == bytes(5000)
    assert memory_of(client) == UNIT + 5000


# ---- refusals ----

def test_refused_where_nothing_is_shared(start, tmp_path):
    start("--listen", f"unix:{tmp_path}/socket")
    client = LocalClient(f"{tmp_path}/socket")
    assert client.put("/v1/sessions/s").status == 201
    for answer in (client.put("/v1/sessions/s/buffers/x", {"size": 10, "shareable": True}),
                   client.post("/v1/sessions/s/buffers", {"size": 10, "shareable": True})):
        assert (answer.status, answer.code) == (403, "feature_disabled")
    assert client.put("/v1/sessions/s/buffers/x", {"size": 10, "shareable": False}).status == 201
    client.post("/v1/sessions/s/buffers/x/share", {"as": "cuda_fd"}).expect(403, "feature_disabled")
    client.close()


def test_not_over_tcp(kind):
    buffer = make_shareable(kind.client, "x", 4096)
    client = kind.client.service.client()
    client.post(buffer + "/share", {"as": kind.word}).expect(403, "feature_disabled")
    client.close()


def test_bad_requests(kind):
    client = kind.client
    shareable, plain = make_shareable(client, "x", 4096), make(client, "y", 4096)
    for body in ({"as": "fd"}, {"as": 1}, {"as": "memory", "path": "/dev/shm/x"}, [], {"as": "m" * 17}):
        answer = client.post(shareable + "/share", body)
        assert answer.status == 400, body
    refused = client.post(plain + "/share", {"as": "cuda_fd"})
    assert (refused.status, refused.code) == (400, "invalid_field") and refused.json()["errors"][0]["pointer"] == "/as"
    if kind.name == "cpu":
        assert client.post(shareable + "/share", {"as": "cuda_fd"}).code == "invalid_field"
    for missing in ("/v1/sessions/s/buffers/none", "/v1/sessions/none/buffers/x"):
        assert client.post(missing + "/share", {"as": "cuda_fd"}).status == 404
    for bad in ({"size": 10, "shareable": 1}, {"size": 0, "shareable": True}):
        assert client.post("/v1/sessions/s/buffers", bad).status == 400, bad
    assert client.post("/v1/sessions/s/buffers", {"size": (1 << 53) - 1, "shareable": True}).status in (403, 503, 507)
    assert not client.connection.sock.taken


def test_another_callers_buffers_do_not_exist(sharing, tmp_path):  # noqa: F811
    tokens = token_file(tmp_path / "tokens.json", ann=["read", "write"], bob=["read", "write"], eve=["read"])
    ann = sharing("--tokens", tokens, Authorization="Bearer ann-secret")
    bob, eve = (LocalClient(ann.path, {"Authorization": f"Bearer {name}-secret"}) for name in ("bob", "eve"))
    assert ann.put("/v1/sessions/s").status == 201
    buffer = make_shareable(ann, "x", PAGE)
    assert (bob.post(buffer + "/share").code, eve.post(buffer + "/share").code) == ("session_not_found", "insufficient_scope")
    assert not bob.connection.sock.taken and not eve.connection.sock.taken
    bob.close()
    eve.close()


# ---- limits and quotas ----

def test_it_is_charged_with_what_it_takes(kind):
    client, taken = kind.client, kind.taken(1)
    assert client.put("/v1/sessions/t", {"memory_limit": 2 * taken}).status == 201
    x = make_shareable(client, "x", 1, "t")
    assert memory_of(client, "t") == taken
    fd, _ = kind.open(x)
    assert memory_of(client, "t") == taken
    os.close(fd)
    make_shareable(client, "y", taken, "t")
    client.put("/v1/sessions/t/buffers/z", {"size": 1, "shareable": True}).expect(403, "quota_exceeded")
    assert client.delete(x).status == 204
    assert memory_of(client, "t") == taken
    make_shareable(client, "z", 1, "t")
    assert client.delete("/v1/sessions/t").status == 204
    assert client.get("/v1/limits").json()["limits"]["caller_memory_bytes"]["used"] == 0


def test_host_memory_has_a_bound_for_all_sessions(memory_files):
    client = memory_files("--local-sharing-mib", "3")
    assert client.put("/v1/sessions/t").status == 201
    make_shareable(client, "x", 2 * MIB)
    refused = client.put("/v1/sessions/t/buffers/y", {"size": 2 * MIB, "shareable": True}).expect(503, "overloaded")
    assert refused.json()["limit"] == {"name": "shared_bytes", "max": 3 * MIB, "used": 2 * MIB, "requested": 2 * MIB}
    assert memory_of(client, "t") == 0
    assert client.delete("/v1/sessions/s").status == 204
    make_shareable(client, "y", 2 * MIB, "t")


def test_as_many_as_a_session_may_have(memory_files):
    client = memory_files()
    most = client.get("/v1/limits").json()["limits"]["shared_buffers_per_session"]["max"]
    buffers = [make_shareable(client, f"x{i}", 1) for i in range(most)]
    client.put("/v1/sessions/s/buffers/more", {"size": 1, "shareable": True}).expect(403, "quota_exceeded")
    assert shared_descriptors(client.service) == 2 * most and memory_of(client) == most * PAGE
    assert client.delete(buffers[0]).status == 204
    make_shareable(client, "more", 1)
    assert client.delete("/v1/sessions/s").status == 204
    assert shared_descriptors(client.service) == 0


def test_a_device_that_has_no_more(sharing, fake_driver):  # noqa: F811
    client = sharing("--libcuda", fake_driver, "--backends", "cuda")
    assert client.put("/v1/sessions/s").status == 201
    first = make_shareable(client, "x", 200 * MIB)
    client.put("/v1/sessions/s/buffers/y", {"size": 100 * MIB, "shareable": True}).expect(507, "device_memory_exhausted")
    low = events(client, "/v1/sessions/s", "memory.low")
    assert [(e["requested_bytes"], e["code"]) for e in low] == [(100 * MIB, "device_memory_exhausted")]
    assert memory_of(client) == 200 * MIB
    assert client.delete(first).status == 204
    make_shareable(client, "y", 100 * MIB)


# ---- ends ----

@pytest.mark.parametrize("how", ["buffer", "reset", "session", "killed"])
def test_an_end_while_it_is_mapped(kind, how):
    """The mapping stays valid; nobody else gets that memory meanwhile."""
    client = kind.client
    buffer = make_shareable(client, "x", 2 * UNIT)
    mapped, view = kind.map(buffer)
    view[:] = b"mine" * (UNIT // 2)
    workers = mappers_of(client.service)
    assert len(workers) == 1
    if how == "buffer":
        assert client.delete(buffer).status == 204
    elif how == "reset":
        assert client.post("/v1/sessions/s/reset").status == 200
    elif how == "session":
        assert client.delete("/v1/sessions/s").status == 204
    else:
        os.kill(workers[0], signal.SIGKILL)
        eventually(lambda: client.get(buffer + "/data").status == 409)
        assert client.post(buffer + "/share").code == "session_faulted"
        assert client.delete("/v1/sessions/s").status == 204
    if kind.name == "cpu":  # the host gets the pages back
        eventually(lambda: bytes(view) == bytes(2 * UNIT))
        eventually(lambda: shared_descriptors(client.service) == 0)
    else:  # the driver keeps the memory as long as the importer has it
        assert bytes(view) == b"mine" * (UNIT // 2)
    assert client.put("/v1/sessions/n").status == 201
    fresh = make_shareable(client, "x", 2 * UNIT, "n")
    view[:] = b"late" * (UNIT // 2)
    assert client.get(fresh + "/data").body == bytes(2 * UNIT)
    view.release()
    mapped.close()


def test_a_fault_ends_it(kind):
    client, path = kind.client, "/v1/sessions/s"
    if kind.name != "cpu":
        pytest.skip("the fake driver has no such kernel")
    assert client.put_cuda(path + "/modules/f", FAULTS).status == 201
    buffer = make_shareable(client, "x", PAGE)
    mapped, view = kind.map(buffer)
    assert client.post(path + "/launches", launch("illegal", BAD_ADDRESS)).status == 422
    for answer in (client.post(buffer + "/share"), client.put(buffer + "/share", {"direction": "to_device"})):
        assert (answer.status, answer.code) == (409, "session_faulted")
    view[:] = b"x" * PAGE
    assert client.post(path + "/reset").status == 200
    assert client.get(buffer).status == 404
    eventually(lambda: bytes(view) == bytes(PAGE))
    view.release()
    mapped.close()


# ---- hostile clients ----

def test_the_size_is_sealed(sharing):  # noqa: F811
    client = sharing()
    assert client.put("/v1/sessions/s").status == 201
    fd, _ = Kind("cpu", client, "memory", PAGE).open(make_shareable(client, "x", 2 * PAGE))
    assert fcntl.fcntl(fd, F_GET_SEALS) & F_SEAL_ALL == F_SEAL_ALL
    for size in (0, PAGE, 3 * PAGE):
        with pytest.raises(PermissionError):
            os.ftruncate(fd, size)
    os.close(fd)


def test_a_kernel_works_on_while_the_client_writes_and_punches(memory_files):
    """It may corrupt its own bytes; nothing else happens."""
    client, path, size = memory_files(), "/v1/sessions/s", 8 * MIB
    assert client.put_cuda(path + "/modules/m", VADD).status == 201
    kind = Kind("cpu", client, "memory", PAGE)
    buffers = {name: make_shareable(client, name, size) for name in "abc"}
    descriptors = [kind.open(buffer)[0] for buffer in buffers.values()]
    stop = threading.Event()

    def disturb():
        at = 0
        while not stop.is_set():
            for fd in descriptors:
                fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at % size, 16 * PAGE)
                os.pwrite(fd, b"y" * PAGE, (at + MIB) % size)
            at += 5 * PAGE

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(10):
            answer = client.post(path + "/launches", launch_vadd(grid=[size // 4 // 256], args=[{"buf": "a"}, {"buf": "b"}, {"buf": "c"},
                                                                                               {"i32": size // 4}]))
            assert answer.status == 200, answer
    finally:
        stop.set()
        thread.join()
    for fd in descriptors:
        os.pwrite(fd, floats([1.5]) * (size // 4), 0)
        os.close(fd)
    assert client.post(path + "/launches", launch_vadd()).status == 200
    assert client.get(buffers["c"] + "/data", Range="bytes=0-4095").body == floats([3.0]) * 1024


def test_beyond_the_end_is_a_fault_as_everywhere(memory_files):
    client, path = memory_files(), "/v1/sessions/s"
    assert client.put_cuda(path + "/modules/f", FAULTS).status == 201
    make_shareable(client, "x", PAGE)
    good = launch("fill7", {"buf": "x"}, {"u32": 1})
    assert client.post(path + "/launches", good).status == 200
    bad = launch("fill7", {"buf": "x"}, {"u32": 1025})
    bad["block"] = [1024]
    assert client.post(path + "/launches", bad).status == 200  # 1024 threads of 4 bytes: all inside
    bad["args"][0] = {"buf": "x", "offset": 4}
    assert client.post(path + "/launches", bad).code == "kernel_fault"


def test_opening_exporting_and_deleting_at_once(kind):
    """In whatever order they come, each is done or refused with a reason, and nothing is left."""
    client, wrong = kind.client, []
    buffer = make_shareable(client, "x", UNIT)

    def work(task):
        one = LocalClient(client.path)
        for _ in range(30):
            if task == "open":
                answer = one.post(buffer + "/share", {"as": kind.word})
                if answer.status == 200:
                    os.close(one.take())
            elif task == "move":
                answer = one.put(buffer + "/share", {"direction": "from_device"})
            else:
                one.delete(buffer)
                answer = one.put(buffer, {"size": UNIT, "shareable": True})
            if answer.status not in (200, 201, 204, 404, 409):
                wrong.append(answer)
        one.close()

    in_threads(work, ("open", "open", "move", "remake"))
    assert not wrong
    assert client.delete("/v1/sessions/s").status == 204
    assert shared_descriptors(client.service) == 0
    assert client.get("/v1/limits").json()["limits"]["caller_memory_bytes"]["used"] == 0
