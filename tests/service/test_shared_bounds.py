"""What callers share: one of them exhausts it, or lets its worker hang, and another is still served. The proof is never the time, but that
the first caller's own requests are still unanswered."""
import base64
import contextlib
import hashlib
import json
import os
import signal
import socket

import pytest

from batch_client import TYPE, frame, with_sizes
from kernels import PTX
from local_client import LocalClient
from test_tenants import as_caller, token_file
from service_under_test import until

MIB = 1 << 20
OCTETS = {"Content-Type": "application/octet-stream"}
HELD_MIB = 512       # of bodies with a digest, over all callers
VERIFIED_MIB = 64    # the longest body that is held back
ANSWERS_MIB = 64     # of stored answers
STORED_ANSWER_MAX = MIB
IN_FLIGHT_MAX = 64
PRINTS = """.version 6.0
.target sm_50
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[1002] = {%s10, 0};
.visible .entry prints()
{
    .reg .b64 %%rd<3>;
    .reg .b32 %%r<2>;
    mov.u64 %%rd1, text;
    cvta.global.u64 %%rd2, %%rd1;
    {
        .param .b64 f;
        .param .b64 a;
        .param .b32 r;
        st.param.b64 [f], %%rd2;
        st.param.b64 [a], 0;
        call.uni (r), vprintf, (f, a);
        ld.param.b32 %%r1, [r];
    }
    ret;
}
""" % ("120, " * 1000)


@pytest.fixture
def two(start, tmp_path):
    """two(*arguments): a service and its callers. It has one event loop, so that any blocking shows."""
    def start_two(*arguments, **options):
        service = start("--tokens", token_file(tmp_path / "tokens.json", alice={}, bob={}), "--threads", "1", "--body-rate", "0", *arguments, **options)
        return service, as_caller(service, "alice"), as_caller(service, "bob")

    return start_two


class Request:
    """A request of which a chosen part is sent, on its own connection; it may never be answered."""

    def __init__(self, service, name, method, path, body=b"", headers=None, announced=None):
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {name}-secret",
                 f"Content-Length: {len(body) if announced is None else announced}"]
        lines += [f"{key}: {value}" for key, value in (headers or {}).items()]
        self.socket = socket.create_connection((service.host, service.port), timeout=60)
        self.socket.sendall("\r\n".join(lines + ["", ""]).encode())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused meanwhile: its answer has arrived
            self.socket.sendall(body)

    def answered(self):
        self.socket.setblocking(False)
        try:
            return self.socket.recv(1, socket.MSG_PEEK)[:1]
        except BlockingIOError:
            return None
        finally:
            self.socket.settimeout(60)

    def status(self):
        return int(self.socket.recv(4096).split()[1])

    def close(self):
        self.socket.close()


@pytest.fixture
def requests():
    """Requests, closed at the end."""
    all_of_them = []
    yield all_of_them
    for request in all_of_them:
        request.close()


def sha_256(body):
    return "sha-256=:" + base64.b64encode(hashlib.sha256(body).digest()).decode() + ":"


def json_request(service, method, path, document):
    return Request(service, "alice", method, path, json.dumps(document).encode(), {"Content-Type": "application/json"})


def with_module(client):
    assert client.put("/v1/sessions/s").status == 201
    assert client.put("/v1/sessions/s/buffers/x", {"size": 4096}).status == 201
    assert client.request("PUT", "/v1/sessions/s/modules/m", PTX.encode(), {"Content-Type": "application/vnd.gpurest.ptx"}).status == 201


def used(client, name):
    return client.get("/v1/limits").json()["limits"][name]["used"]


def in_flight(service):
    """alice's requests in flight, including this question."""
    return used(as_caller(service, "alice"), "requests_in_flight")


def put7(**changes):
    return {"module": "m", "kernel": "put7", "grid": [1], "block": [1], "args": [{"buf": "x"}], **changes}


@contextlib.contextmanager
def hanging(service, client):
    """A session of the caller's with a stopped worker."""
    before = service.children()
    with_module(client)
    (worker,) = service.children() - before
    assert client.post("/v1/sessions/s/launches", put7()).status == 200
    os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)


# ---- another caller's worker ----

@pytest.fixture
def hung(two, requests):
    """A service whose event loop has worked for alice's hanging worker, and bob with a session."""
    service, alice, bob = two("--pool-size", "0", "--no-offload")
    with_module(bob)
    with hanging(service, alice):
        yield service, bob, requests
        assert bob.get("/v1/sessions/s").status == 200
        assert requests and not any(request.answered() for request in requests), "bob was served while alice still waited"


def test_uploads_to_new_buffers_wait_for_their_own_worker_alone(hung):
    service, bob, requests = hung
    requests += [Request(service, "alice", "POST", "/v1/sessions/s/buffers", b"abcd", OCTETS) for _ in range(8)]
    for _ in range(8):
        assert bob.post_octets("/v1/sessions/s/buffers", b"abcd").status == 201
    assert bob.post_octets("/v1/sessions/s/buffers", bytes(3 * MIB), Content_Digest=sha_256(bytes(3 * MIB))).status == 201


def test_long_batches_wait_for_their_own_worker_alone(hung):
    """A batch that is too long to be collected is created, which allocates device memory, while the rest arrives."""
    service, bob, requests = hung
    data = bytes(2 * MIB)
    body = frame(with_sizes({"ops": [{"op": "alloc", "as": "$b", "size": len(data)}, {"op": "write", "to": "$b", "segment": "d"}]}, {"d": data}), [data])
    requests += [Request(service, "alice", "POST", "/v1/sessions/s/batches", body, {"Content-Type": TYPE}) for _ in range(4)]
    for _ in range(4):
        assert bob.post("/v1/sessions/s/batches", body, Content_Type=TYPE).status == 200


def test_a_caller_with_all_its_requests_under_way_holds_up_nobody(hung):
    service, bob, requests = hung
    requests += [json_request(service, "PUT", f"/v1/sessions/s/buffers/n{i}", {"size": 64}) for i in range(IN_FLIGHT_MAX - 4)]
    for i in range(8):
        assert bob.put(f"/v1/sessions/s/buffers/n{i}", {"size": 64}).status == 201


@pytest.mark.parametrize("changes", [{"stream": "new"}, {"block": None, "grid": {"threads": 7}}])
def test_a_launch_that_asks_its_worker_first_does_not_stop_the_event_loop(hung, changes):
    service, bob, requests = hung
    sent = {name: value for name, value in put7(**changes).items() if value is not None}
    requests += [json_request(service, "POST", "/v1/sessions/s/launches", sent) for _ in range(4)]
    for _ in range(4):
        assert bob.post("/v1/sessions/s/launches", sent).status == 200


def test_a_client_that_leaves_its_queued_launch_does_not_stop_the_event_loop(hung):
    service, bob, requests = hung
    requests.append(json_request(service, "PUT", "/v1/sessions/s/buffers/n", {"size": 64}))
    for _ in range(4):
        left = json_request(service, "POST", "/v1/sessions/s/launches", put7())
        until(lambda: in_flight(service) == 3, "the launch was never begun")
        left.close()
        until(lambda: in_flight(service) == 2, "the launch is never left")
    assert bob.post("/v1/sessions/s/launches", put7()).status == 200


def test_workers_that_hang_keep_no_thread_from_others_long_bodies(two, requests):
    """The threads for long bodies are shared; a body that finds none free is served by the loop."""
    service, alice, bob = two("--pool-size", "0", "--io-threads", "1")
    with_module(bob)
    with hanging(service, alice):
        requests += [Request(service, "alice", "POST", "/v1/sessions/s/buffers", bytes(2 * MIB), OCTETS, announced=8 * MIB) for _ in range(4)]
        body = os.urandom(3 * MIB)
        assert bob.put_octets("/v1/sessions/s/buffers/b", body).status == 201
        assert bob.get("/v1/sessions/s/buffers/b/data").body == body
        assert not any(request.answered() for request in requests)


# ---- memory for held bodies ----

def test_held_bodies_are_charged_by_what_came(two, requests):
    service, alice, bob = two()
    for client in (alice, bob):
        assert client.put("/v1/sessions/s").status == 201
    slow = {**OCTETS, "Content-Digest": sha_256(b"")}
    announced = VERIFIED_MIB * MIB
    requests += [Request(service, "alice", "POST", "/v1/sessions/s/buffers", b"drip", slow, announced) for _ in range(2 * HELD_MIB // VERIFIED_MIB)]
    body = bytes(announced)
    digest = sha_256(body)
    for client in (bob, alice):
        assert client.post_octets("/v1/sessions/s/buffers", body, Content_Digest=digest).status == 201
    assert not any(request.answered() for request in requests)


def test_held_bodies_of_one_leave_room_for_others(two, requests):
    service, alice, bob = two()
    for client in (alice, bob):
        assert client.put("/v1/sessions/s").status == 201
    body = bytes(VERIFIED_MIB * MIB - 1)
    headers = {**OCTETS, "Content-Digest": "crc32c=:AAAAAA==:"}
    portion = HELD_MIB * 3 // 4
    requests += [Request(service, "alice", "POST", "/v1/sessions/s/buffers", body, headers, len(body) + 1) for _ in range(portion // VERIFIED_MIB)]

    def upload(client, data):
        return client.post_octets("/v1/sessions/s/buffers", data, Content_Digest=sha_256(data))

    # Not earlier: it would take the place of bytes that are still on their way.
    until(lambda: used(alice, "held_body_bytes") == len(requests) * len(body), "what has come is not counted")
    assert used(bob, "held_body_bytes") == 0, "of the caller alone"
    refused = upload(alice, bytes(MIB))
    assert refused.code == "overloaded" and refused.json()["limit"]["name"] == "held_body_bytes"
    assert refused.json()["limit"]["max"] == portion * MIB, "of what others leave, three quarters"
    assert upload(bob, body).status == 201
    assert not any(request.answered() for request in requests)
    while requests:
        requests.pop().close()
    until(lambda: used(alice, "held_body_bytes") == 0, "what was held is never given back")
    assert upload(alice, body).status == 201


# ---- stored answers ----

def test_another_callers_long_answers_do_not_push_out_stored_ones(two):
    _, alice, bob = two()
    made = bob.post("/v1/sessions", {}, Idempotency_Key="bobs")
    assert made.status == 201
    assert alice.put("/v1/sessions/s").status == 201
    assert alice.request("PUT", "/v1/sessions/s/modules/m", PRINTS.encode(), {"Content-Type": "application/vnd.gpurest.ptx"}).status == 201
    prints = {"module": "m", "kernel": "prints", "grid": [1000], "block": [1]}
    first = alice.post("/v1/sessions/s/launches", prints, Idempotency_Key="a0")
    assert first.status == 200 and STORED_ANSWER_MAX / 2 < len(first.body) < STORED_ANSWER_MAX
    for i in range(1, ANSWERS_MIB * MIB // len(first.body) + 10):  # the device decides how much text a launch may print
        assert alice.post("/v1/sessions/s/launches", prints, Idempotency_Key=f"a{i}").status == 200
    assert alice.post("/v1/sessions/s/launches", prints, Idempotency_Key="a0").code == "replay_unavailable", "the oldest of who has most makes room"
    replayed = bob.post("/v1/sessions", {}, Idempotency_Key="bobs")
    assert replayed.status == 201 and replayed.json()["id"] == made.json()["id"]


# ---- memory that clients map ----

def test_shared_memory_of_one_leaves_room_for_others(two, tmp_path):
    path = str(tmp_path / "socket")
    service, _, _ = two("--listen", "unix:" + path, "--local-sharing", "--local-sharing-mib", "8")
    alice, bob = (LocalClient(path, {"Authorization": f"Bearer {name}-secret"}) for name in ("alice", "bob"))
    for client in (alice, bob):
        assert client.put("/v1/sessions/s").status == 201
        for i in range(8):
            assert client.put(f"/v1/sessions/s/buffers/b{i}", {"size": MIB}).status == 201
    for i in range(6):
        alice.share(f"/v1/sessions/s/buffers/b{i}").close()
    assert [(used(client, "shared_bytes"), used(client, "shared_buffers")) for client in (alice, bob)] == [(6 * MIB, 6), (0, 0)]
    refused = alice.post("/v1/sessions/s/buffers/b6/share")
    assert refused.code == "overloaded"
    assert refused.json()["limit"] == {"name": "shared_bytes", "max": 6 * MIB, "used": 6 * MIB, "requested": MIB}
    bob.share("/v1/sessions/s/buffers/b0").close()
    assert bob.post("/v1/sessions/s/buffers/b1/share").status == 503, "of the two MiB that alice leaves it may have one and a half"
    for client in (alice, bob):
        client.close()
