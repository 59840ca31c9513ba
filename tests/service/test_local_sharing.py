"""Buffer memory that clients of the same host map: over the Unix socket only, counted, and no client can harm the service with it."""
import ctypes
import fcntl
import mmap
import os
import socket
import threading

import pytest

from conftest import VADD, floats
from kernels import BAD_ADDRESS, FAULTS, launch, launch_vadd
from local_client import LocalClient
from test_start_and_auth import token_file
from service_under_test import in_threads, until

MIB = 1 << 20
PAGE = mmap.PAGESIZE
F_ADD_SEALS, F_GET_SEALS, F_SEAL_ALL = 1033, 1034, 0x0007
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2


@pytest.fixture
def sharing(start, tmp_path):
    """sharing(*arguments): a client on the Unix socket of a service that shares memory."""
    clients = []

    def begin(*arguments, **headers):
        path = f"{tmp_path}/socket"
        service = start("--listen", f"unix:{path}", "--local-sharing", *arguments)
        clients.append(LocalClient(path, {name.replace("_", "-"): value for name, value in headers.items()}))
        clients[-1].service = service
        return clients[-1]

    yield begin
    for client in clients:
        for session in client.get("/v1/sessions").json()["items"]:
            client.delete("/v1/sessions/" + session["id"])
        client.close()


@pytest.fixture
def local(sharing):
    client = sharing()
    assert client.put("/v1/sessions/s").status == 201
    return client


def make(client, name, size, session="s"):
    path = f"/v1/sessions/{session}/buffers/{name}"
    assert client.put(path, {"size": size}).status == 201
    return path


@pytest.fixture
def buffer(local):
    return make(local, "x", PAGE)


def refused(client, buffer, status, code, direction="to_device"):
    """Whatever is done with the share."""
    client.post(buffer + "/share").expect(status, code)
    client.put(buffer + "/share", {"direction": direction}).expect(status, code)
    client.delete(buffer + "/share").expect(status, code)


def move(client, buffer, direction, **more):
    answer = client.put(buffer + "/share", {"direction": direction, **more}).expect(204)
    return answer


def descriptor_of(client, buffer):
    client.post(buffer + "/share").expect(200)
    return client.take()


def memory_of(client, session="s"):
    return client.get(f"/v1/sessions/{session}").json()["usage"]["memory_bytes"]


def shared_descriptors(service):
    folder = f"/proc/{service.process.pid}/fd"
    count = 0
    for fd in os.listdir(folder):
        try:
            count += "gpurest-shared" in os.readlink(f"{folder}/{fd}")
        except FileNotFoundError:
            pass  # closed meanwhile
    return count


def eventually(holds, at_once=False):
    """At the latest when the old worker has ended."""
    until(holds, seconds=0 if at_once else 20)


def fallocate(fd, mode, offset, size):
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(size))


# ---- use ----

def test_a_computation_through_mapped_memory(local):
    path = "/v1/sessions/s"
    assert local.put_cuda(path + "/modules/m", VADD).status == 201
    a, b, c = (make(local, name, 4096) for name in "abc")
    maps = {name: local.share(buffer) for name, buffer in zip("abc", (a, b, c))}
    maps["a"][:] = floats(range(1024))
    maps["b"][:] = floats(2 * i for i in range(1024))
    move(local, a, "to_device")
    move(local, b, "to_device")
    assert local.post(path + "/launches", launch_vadd()).status == 200
    move(local, c, "from_device")
    assert maps["c"][:] == floats(3 * i for i in range(1024))
    for one in maps.values():
        one.close()


def test_the_bytes_are_those_of_the_buffer(local):
    size = 9 * MIB + 12345
    buffer = make(local, "x", size)
    with local.share(buffer) as shared:
        assert len(shared) == size and shared[:] == bytes(size)
        content = os.urandom(size)
        shared[:] = content
        before = local.head(buffer + "/data").headers["ETag"]
        answer = move(local, buffer, "to_device")
        assert answer.headers["ETag"] != before
        assert local.get(buffer + "/data").body == content
        assert local.post(buffer + "/fill", {"pattern": {"u8": 7}}).status == 204
        assert shared[:] == content  # nothing changes by itself
        move(local, buffer, "from_device")
        assert shared[:] == b"\7" * size


def test_ranges(local):
    size = 3 * MIB
    buffer = make(local, "x", size)
    with local.share(buffer) as shared:
        shared[:] = b"a" * size
        move(local, buffer, "to_device", offset=MIB - 3, size=5)
        move(local, buffer, "to_device", offset=size - 2)
        move(local, buffer, "to_device", offset=size)
        move(local, buffer, "to_device", offset=7, size=0)
        want = bytes(MIB - 3) + b"a" * 5 + bytes(size - MIB - 4) + b"aa"
        assert local.get(buffer + "/data").body == want
        move(local, buffer, "from_device", offset=1, size=MIB)
        assert shared[:] == b"a" + want[1:MIB + 1] + b"a" * (2 * MIB - 1)
        for bad in ({"offset": size + 1}, {"offset": 1, "size": size}, {"size": str(1 << 63)}, {"offset": str(1 << 63), "size": str(1 << 63)}):
            answer = local.put(buffer + "/share", {"direction": "to_device", **bad})
            assert (answer.status, answer.code) == (416, "range_not_satisfiable"), bad


def test_parallel_ranges(local):
    size, parts = 16 * MIB, 4
    buffer = make(local, "x", size)
    failed = []

    def work(part):
        client = LocalClient(local.path)
        try:
            for direction in ("to_device", "from_device", "to_device"):
                move(client, buffer, direction, offset=part * size // parts, size=size // parts)
        except AssertionError as error:
            failed.append(error)
        finally:
            client.close()

    with local.share(buffer) as shared:
        content = os.urandom(size)
        shared[:] = content
        in_threads(work, range(parts))
        assert not failed
        assert shared[:] == content and local.get(buffer + "/data").body == content


def test_long_copies_by_several_threads(sharing):
    """As with many processors."""
    client = sharing("--spin-cpus", "8")
    assert client.put("/v1/sessions/s").status == 201
    size = 65 * MIB + 1
    buffer = make(client, "x", size)
    with client.share(buffer) as shared:
        content = os.urandom(MIB + 1) * 64
        shared[:len(content)] = content
        move(client, buffer, "to_device")
        assert client.get(buffer + "/data").body == content + bytes(size - len(content))
        shared[:] = bytes(size)
        move(client, buffer, "from_device")
        assert shared[:len(content)] == content


def test_asked_again_it_is_the_same_memory(local, buffer):
    answer = local.post(buffer + "/share")
    assert answer.json() == {"buffer": "x", "size": PAGE, "created": True}
    first = local.take()
    answer = local.post(buffer + "/share")
    assert answer.json()["created"] is False
    second = local.take()
    with mmap.mmap(first, PAGE) as one, mmap.mmap(second, PAGE) as other:
        one[5:9] = b"here"
        assert other[5:9] == b"here"
    assert memory_of(local) == 2 * PAGE
    os.close(first)
    os.close(second)


def test_the_connection_goes_on(local, buffer):
    connection = local.connection
    for _ in range(20):
        os.close(descriptor_of(local, buffer))
        assert local.connection is connection


def test_clients_that_want_no_descriptor_get_an_ordinary_answer(local, buffer):
    """The interim answer is skipped; the kernel drops the descriptor."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.connect(local.path)
        s.sendall(f"POST {buffer}/share HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        got = b"".join(iter(lambda: s.recv(65536), b""))
    assert got.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n") and b'"size":4096' in got


# ---- refusals ----

def test_off_unless_switched_on(start, tmp_path):
    service = start("--listen", f"unix:{tmp_path}/socket")
    client = LocalClient(f"{tmp_path}/socket")
    assert client.put("/v1/sessions/s").status == 201
    buffer = make(client, "x", PAGE)
    refused(client, buffer, 403, "feature_disabled")
    assert client.get("/v1/limits").json()["limits"]["shared_bytes"] == {"max": 0, "used": 0}
    assert not client.connection.sock.taken and shared_descriptors(service) == 0


def test_not_over_tcp(local, buffer):
    os.close(descriptor_of(local, buffer))
    client = local.service.client()
    refused(client, buffer, 403, "feature_disabled")
    client.close()


def test_not_by_http_1_0(local, buffer):
    """An old client must not get an interim answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.connect(local.path)
        s.sendall(f"POST {buffer}/share HTTP/1.0\r\nContent-Length: 0\r\n\r\n".encode())
        got = b"".join(iter(lambda: s.recv(65536), b""))
    assert b" 403 " in got.split(b"\r\n")[0] and b"feature_disabled" in got and b"100 Continue" not in got


def test_bad_requests(local, buffer):
    for body in ({}, {"direction": "sideways"}, {"direction": 1}, {"direction": "to_device", "offset": -1}, {"direction": "to_device", "size": 1.5},
                 {"direction": "to_device", "path": "/dev/shm/x"}):
        answer = local.put(buffer + "/share", body)
        assert answer.status == 400, body
    assert local.post(buffer + "/share", {"fd": 3}).status == 400
    for answer in (local.put(buffer + "/share", {"direction": "to_device"}), local.delete(buffer + "/share")):
        assert (answer.status, answer.code) == (404, "share_not_found")
    for missing, code in (("/v1/sessions/s/buffers/nobody", "buffer_not_found"), ("/v1/sessions/none/buffers/x", "session_not_found")):
        refused(local, missing, 404, code)
    assert not local.connection.sock.taken


def test_another_callers_buffers_do_not_exist(sharing, tmp_path):
    tokens = token_file(tmp_path / "tokens.json", ann=["read", "write"], bob=["read", "write"], eve=["read"])
    ann = sharing("--tokens", tokens, Authorization="Bearer ann-secret")
    bob, eve = (LocalClient(ann.path, {"Authorization": f"Bearer {name}-secret"}) for name in ("bob", "eve"))
    assert ann.put("/v1/sessions/s").status == 201
    buffer = make(ann, "x", PAGE)
    os.close(descriptor_of(ann, buffer))
    refused(bob, buffer, 404, "session_not_found", "from_device")
    refused(eve, buffer, 403, "insufficient_scope", "from_device")
    assert not bob.connection.sock.taken and not eve.connection.sock.taken
    move(ann, buffer, "to_device")
    bob.close()
    eve.close()


def test_a_stored_answer_is_not_given_without_its_descriptor(local, buffer):
    answer = local.post(buffer + "/share", Idempotency_Key='"k"')
    assert answer.status == 200
    os.close(local.take())
    local.post(buffer + "/share", Idempotency_Key='"k"').expect(409, "replay_unavailable")
    assert not local.connection.sock.taken


# ---- limits and quotas ----

def test_it_counts_as_memory_of_the_session(sharing):
    client = sharing()
    assert client.put("/v1/sessions/s", {"memory_limit": 3 * MIB}).status == 201
    x, y = make(client, "x", MIB), make(client, "y", MIB)
    os.close(descriptor_of(client, x))
    assert memory_of(client) == 3 * MIB
    answer = client.post(y + "/share").expect(403, "quota_exceeded")
    assert answer.json()["limit"]["name"] == "session_memory_bytes"
    assert client.delete(x + "/share").status == 204
    assert memory_of(client) == 2 * MIB
    os.close(descriptor_of(client, y))
    assert client.delete(y).status == 204
    assert memory_of(client) == MIB


def test_the_process_has_a_bound_of_its_own(sharing):
    client = sharing("--local-sharing-mib", "3")
    for session in "st":
        assert client.put("/v1/sessions/" + session).status == 201
    x, y = make(client, "x", 2 * MIB), make(client, "y", 2 * MIB, "t")
    os.close(descriptor_of(client, x))
    answer = client.post(y + "/share").expect(503, "overloaded")
    assert answer.json()["limit"] == {"name": "shared_bytes", "max": 3 * MIB, "used": 2 * MIB, "requested": 2 * MIB}
    assert memory_of(client, "t") == 2 * MIB
    assert client.delete("/v1/sessions/s").status == 204
    os.close(descriptor_of(client, y))


def test_many_shares(local):
    """Exactly as many as a session may have, and none is left over."""
    most = local.get("/v1/limits").json()["limits"]["shared_buffers_per_session"]["max"]
    buffers = [make(local, f"x{i}", PAGE) for i in range(most + 1)]
    for buffer in buffers[:most]:
        os.close(descriptor_of(local, buffer))
    for _ in range(3):
        local.post(buffers[most] + "/share").expect(403, "quota_exceeded")
    assert shared_descriptors(local.service) == 2 * most
    assert memory_of(local) == (2 * most + 1) * PAGE
    assert local.delete(buffers[0] + "/share").status == 204
    os.close(descriptor_of(local, buffers[most]))
    assert local.delete("/v1/sessions/s").status == 204
    assert shared_descriptors(local.service) == 0


LONG = """
extern "C" __global__ void later(unsigned *x, unsigned n)
{
    unsigned v = *x;
    for (unsigned i = 0; i < n; i++) v = v * 1664525 + 1013904223;
    *x = v;
}
"""


def test_what_is_taken_back_behind_a_kernel_makes_room(local):
    """The worker unmaps after everything in progress; the next share waits for that and is not refused."""
    most = local.get("/v1/limits").json()["limits"]["shared_buffers_per_session"]["max"]
    buffers = [make(local, f"x{i}", PAGE) for i in range(most + 1)]
    for buffer in buffers[:most]:
        os.close(descriptor_of(local, buffer))
    assert local.put_cuda("/v1/sessions/s/modules/m", LONG).status == 201
    sent = local.post("/v1/sessions/s/launches", {"module": "m", "kernel": "later", "grid": [1], "block": [1],
                                                  "args": [{"buf": "x0"}, {"u32": 100_000_000}]}, Prefer="respond-async")
    assert sent.status == 202, sent
    assert local.delete(buffers[1] + "/share").status == 204
    os.close(descriptor_of(local, buffers[most]))
    assert local.get(sent.headers["Location"], Prefer="wait=60").json()["state"] == "succeeded"


@pytest.mark.parametrize("how", ["share", "buffer", "reset", "session"])
def test_the_memory_is_taken_back(local, how):
    """A client that keeps its mapping does not keep the memory."""
    buffer = make(local, "x", 4 * MIB)
    fd = descriptor_of(local, buffer)
    with mmap.mmap(fd, 4 * MIB) as shared:
        shared[:] = b"x" * 4 * MIB
        assert os.fstat(fd).st_blocks * 512 == 4 * MIB
        answer = {"share": lambda: local.delete(buffer + "/share"), "buffer": lambda: local.delete(buffer),
                  "reset": lambda: local.post("/v1/sessions/s/reset"), "session": lambda: local.delete("/v1/sessions/s")}[how]()
        assert answer.status in (200, 204)
        eventually(lambda: os.fstat(fd).st_blocks == 0, at_once=how != "reset")
        assert shared[:] == bytes(4 * MIB)
    os.close(fd)
    eventually(lambda: shared_descriptors(local.service) == 0)
    if how != "session":
        assert memory_of(local) == (4 * MIB if how == "share" else 0)


def test_a_fault_and_a_reset_end_it(local):
    path = "/v1/sessions/s"
    assert local.put_cuda(path + "/modules/f", FAULTS).status == 201
    buffer = make(local, "x", PAGE)
    with local.share(buffer):
        assert local.post(path + "/launches", launch("illegal", BAD_ADDRESS)).status == 422
        for answer in (local.post(buffer + "/share"), local.put(buffer + "/share", {"direction": "to_device"})):
            assert (answer.status, answer.code) == (409, "session_faulted")
        assert local.post(path + "/reset").status == 200
        local.put(buffer + "/share", {"direction": "to_device"}).expect(404, "buffer_not_found")
    eventually(lambda: shared_descriptors(local.service) == 0)


# ---- hostile clients ----

def test_the_size_is_sealed(local):
    buffer = make(local, "x", 2 * PAGE)
    fd = descriptor_of(local, buffer)
    assert fcntl.fcntl(fd, F_GET_SEALS) & F_SEAL_ALL == F_SEAL_ALL
    for size in (0, PAGE, 3 * PAGE):
        with pytest.raises(PermissionError):
            os.ftruncate(fd, size)
    with pytest.raises(PermissionError):
        os.pwrite(fd, b"x", 2 * PAGE)
    with pytest.raises(PermissionError):
        fcntl.fcntl(fd, F_ADD_SEALS, 0x0008)  # against writes
    move(local, buffer, "to_device")
    os.close(fd)


def test_flags_of_the_client_do_not_reach_the_service(local):
    """With O_APPEND the service's writes would go to the end."""
    buffer = make(local, "x", 2 * PAGE)
    assert local.post(buffer + "/fill", {"pattern": {"u8": 9}}).status == 204
    fd = descriptor_of(local, buffer)
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_APPEND | os.O_NONBLOCK)
    move(local, buffer, "from_device")
    assert os.pread(fd, 2 * PAGE, 0) == b"\x09" * 2 * PAGE
    os.close(fd)


def test_holes_are_zeros(local):
    """A GPU's driver keeps the pages that it has registered, so after a hole the client may see other pages than the device. All are the
    client's own: a read of either gives the client's data or zeros."""
    size, on_gpu = 8 * MIB, "cuda" in os.environ.get("GPUREST_TEST_BACKENDS", "cpu")
    buffer = make(local, "x", size)
    fd = descriptor_of(local, buffer)
    with mmap.mmap(fd, size) as shared:
        shared[:] = b"x" * size
        assert fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MIB, 6 * MIB) == 0
        move(local, buffer, "to_device")
        body = local.get(buffer + "/data").body
        assert body[:MIB] == body[-MIB:] == b"x" * MIB
        assert set(body[MIB:-MIB]) <= (set(b"x\0") if on_gpu else {0})
        assert fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size) == 0
        move(local, buffer, "from_device")
        assert set(shared[:]) <= set(b"x\0") if on_gpu else shared[MIB - 2:MIB + 2] == b"xx\0\0"
    os.close(fd)


def test_writing_and_punching_while_the_service_copies(local):
    size = 32 * MIB
    buffer = make(local, "x", size)
    fd = descriptor_of(local, buffer)
    stop = threading.Event()

    def disturb():
        at = 0
        while not stop.is_set():
            fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at % size, 4 * PAGE)
            os.pwrite(fd, b"y" * PAGE, (at + MIB) % size)
            at += 5 * PAGE

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(5):
            move(local, buffer, "to_device")
            move(local, buffer, "from_device")
    finally:
        stop.set()
        thread.join()
    os.pwrite(fd, b"z" * PAGE, 0)
    move(local, buffer, "to_device", size=PAGE)
    assert local.get(buffer + "/data", Range=f"bytes=0-{PAGE - 1}").body == b"z" * PAGE
    os.close(fd)


def test_sharing_copying_and_deleting_at_once(local):
    """In whatever order they come, each is done or refused with a reason, and nothing is left."""
    size, wrong = 2 * MIB, []
    buffer = make(local, "x", size)

    def work(kind):
        client = LocalClient(local.path)
        for _ in range(40):
            if kind == "open":
                answer = client.post(buffer + "/share")
                if answer.status == 200:
                    os.close(client.take())
            elif kind == "close":
                answer = client.delete(buffer + "/share")
            elif kind == "move":
                answer = client.put(buffer + "/share", {"direction": "to_device"})
            else:
                client.delete(buffer)
                answer = client.put(buffer, {"size": size})
            if answer.status not in (200, 201, 204, 404, 409):
                wrong.append(answer)
        client.close()

    in_threads(work, ("open", "open", "close", "move", "move", "remake"))
    assert not wrong
    assert local.delete("/v1/sessions/s").status == 204
    assert shared_descriptors(local.service) == 0
    assert local.get("/v1/limits").json()["limits"]["caller_memory_bytes"]["used"] == 0


def test_descriptors_are_not_leaked_to_clients_that_go_away(local, buffer):
    for _ in range(50):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.connect(local.path)
            s.sendall(f"POST {buffer}/share HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    os.close(descriptor_of(local, buffer))
    for _ in range(400):
        if shared_descriptors(local.service) == 2:
            break
        threading.Event().wait(0.05)
    assert shared_descriptors(local.service) == 2
    assert local.get("/livez").status == 200
