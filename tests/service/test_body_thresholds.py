"""Every endpoint that takes a body, at sizes around every threshold at which bodies take another path, cut at random: whole, beside workers
that hang or die, refused before the last byte, and abandoned by their clients. The front-end survives, every request is answered or its
connection closed, and a neighbour's bytes stay right."""
import base64
import contextlib
import hashlib
import http.client
import itertools
import json
import os
import random
import select
import signal
import socket
import struct
import time

import pytest

import batch_client
from conftest import VADD, floats
from kernels import PTX, launch_vadd
from fixtures import NO_LIBRARIES
from service_under_test import Service, until

SEED = int(os.environ.get("GPUREST_TEST_SEED", "20261123"))
KIB, MIB = 1 << 10, 1 << 20
THRESHOLDS = (64 * KIB, 256 * KIB, MIB, 4 * MIB)
SIZES = (0, 1, 2, *(t + d for t in THRESHOLDS for d in (-1, 0, 1)))
FRAMED = tuple(t + d for t in (128, *THRESHOLDS) for d in (-64, 0, 64)) + (1100032,)  # those that a frame can have
BESIDE = tuple(t + d for t in THRESHOLDS for d in (-64, 64))  # on both sides of each threshold
DEADLINE_S = 90
STALL_S = 0.02  # A server that reads nothing for this long waits for something. The value only affects where in the body the event happens.
JSON, OCTETS, CUDA, PTX_TYPE, BATCH = ("application/json", "application/octet-stream", "text/x-cuda", "application/vnd.gpurest.ptx", batch_client.TYPE)
SNAPSHOT = "application/vnd.gpurest.snapshot"
JSON_MAX, SOURCE_MAX, BATCH_JSON_MAX = MIB, 4 * MIB, 4 * MIB  # test_the_limits_are_those_of_the_service
CUT_SHORT = "4xx"  # a body that ends before its announced length
ANYTHING = "any"   # any answer, or an end of the connection
VICTIM, RESET, NEIGHBOUR = "/v1/sessions/victim", "/v1/sessions/reset", "/v1/sessions/neighbour"
numbers = itertools.count()


# ---- bodies ----

class Body:
    """`outcome`: the expected status, CUT_SHORT or ANYTHING; `holds`: the bytes that must be read back."""

    def __init__(self, data, outcome, holds=None):
        self.data, self.outcome, self.holds = data, outcome, holds


def padded_text(text, most, outcome):
    """A function that makes such a body of any size, padded with blanks; sizes that are too small truncate it."""
    def make(size, rng):
        data = text[:size] + b" " * (size - len(text))
        return Body(data, 413 if size > most else outcome if size >= len(text) else ANYTHING if size == 0 else CUT_SHORT)
    return make


def json_text(value, outcome, most=JSON_MAX):
    return padded_text(json.dumps(value).encode(), most, outcome)


def images(size, rng):
    """One image of PTX, padded with blanks; what is too small is cut off."""
    text = PTX.encode()
    data = bytes.fromhex("89474c4b0d0a1a0a") + struct.pack("<IIIIQ", 1, 0, 1, 0, max(size - 32, len(text))) + text.ljust(size - 32)
    return Body(data[:size], 413 if size > SOURCE_MAX else 201 if size >= 32 + len(text) else ANYTHING if size == 0 else CUT_SHORT)


def octets(outcome):
    def make(size, rng):
        data = rng.randbytes(size)
        return Body(data, outcome if size else ANYTHING, data if size else None)
    return make


def head(json_bytes):
    return batch_client.MAGIC + (1).to_bytes(2, "little") + bytes(2) + json_bytes.to_bytes(4, "little")


def json_alone(message, outcome=200):
    """A frame of JSON alone, without a segment to wait for."""
    def make(size, rng):
        text = json.dumps(message).encode()
        data = (head(max(size - 16, 0)) + text + b" " * (size - 16 - len(text)))[:size]
        whole = size % 64 == 0 and size >= 16 + len(text)
        return Body(data, CUT_SHORT if not whole else 413 if size - 16 > BATCH_JSON_MAX else outcome)
    return make


def with_segment(message_of):
    """A frame with one segment that fills the size."""
    def make(size, rng):
        whole = size % 64 == 0 and size >= 1024
        length = size - 1024 + 64 - rng.randrange(64) if whole else 100
        text = json.dumps(message_of(length)).encode()
        assert len(text) <= 1024 - 64 - 16
        segment = rng.randbytes(length)
        data = head(1024 - 64 - 16) + text.ljust(1024 - 64 - 16) + batch_client.padded(segment)
        return Body(data[:size], 200, segment) if whole else Body(data[:size].ljust(size, b"x"), CUT_SHORT)
    return make


def inline_segment(message_of):
    """A JSON batch whose segment fills the size: at most 64 KiB of bytes."""
    def make(size, rng):
        room = max(size - len(json.dumps(message_of(0, ""))), 0) // 4 * 3
        segment = rng.randbytes(min(room, 64 * KIB + 1))
        text = json.dumps(message_of(len(segment), base64.b64encode(segment).decode())).encode()
        outcome = 413 if size > BATCH_JSON_MAX or len(segment) > 64 * KIB else 200 if size >= len(text) else CUT_SHORT if size else ANYTHING
        return Body(text[:size].ljust(size), outcome, segment if outcome == 200 else None)
    return make


def echo(length, data_b64=None):
    segment = {"id": "in", "size": length} if data_b64 is None else {"id": "in", "data_b64": data_b64}
    return {"segments": [segment], "ops": [{"op": "alloc", "as": "$a", "segment": "in"}, {"op": "read", "from": "$a", "segment": "out"}]}


def echo_run(length):
    return {"segments": [{"id": "in", "size": length}]}


SYNC = {"segments": [], "ops": [{"op": "sync"}]}
BROKEN = {"segments": [], "ops": [{"op": "sinc"}]}


# ---- the endpoints ----

class Case:
    """One form of one endpoint's body. `before` and `after` create and remove what a request needs or leaves; they get the client, the
    place and the body. {n} in the path is a new number each time. `sizes`: the interesting ones."""

    def __init__(self, name, method, path, kind, make, sizes=SIZES, before=None, after=None, local=True, empty=True):
        self.name, self.method, self.path, self.kind, self.make = name, method, path, kind, make
        self.sizes = tuple(size for size in sizes if size or empty)
        self.before, self.after, self.local = before, after, local

    def __repr__(self):
        return self.name


def remove(client, path, body, answer):
    if answer is not None and answer.status in (200, 201):
        assert client.delete(path).status in (204, 404, 409)


def remove_located(client, path, body, answer):
    if answer is not None and answer.status == 201:
        assert client.delete(answer.headers["Location"]).status in (204, 404, 409)


def found_again(path_of):
    def check(client, path, body, answer):
        if answer is None or answer.status not in (201, 204):
            return
        at = path_of(path, answer)
        if body.holds is not None and body.outcome == answer.status:
            assert client.get(at + "/data").body == body.holds
        assert client.delete(at.partition("/globals/")[0]).status in (204, 404, 409)
    return check


def make_buffer(client, path, body):
    assert client.put(path.removesuffix("/data"), {"size": max(len(body.data), 1)}).status == 201


def make_global(client, path, body):
    text = f".version 6.0\n.target sm_50\n.address_size 64\n.visible .global .align 8 .b8 x[{max(len(body.data), 1)}];\n" + PTX.partition(".address_size 64\n")[2]
    assert client.put(path.partition("/globals/")[0], text.encode(), Content_Type=PTX_TYPE).status == 201


def make_texture(client, path, body):
    """Over a buffer: of any length."""
    texture, size = path.removesuffix("/data"), max(len(body.data), 1)
    assert client.put(texture.replace("/textures/", "/buffers/"), {"size": size}).status == 201
    assert client.put(texture, {"dimension": "1d", "format": "u8", "extent": [size], "buffer": texture.rpartition("/")[2]}).status == 201


def found_texture(client, path, body, answer):
    texture = path.removesuffix("/data")
    found_again(lambda path, answer: texture)(client, path, body, answer)
    assert client.delete(texture.replace("/textures/", "/buffers/")).status in (204, 404, 409)


def echoed(client, path, body, answer):
    if answer is None or answer.status != 200 or body.holds is None:
        return
    if answer.headers["Content-Type"] == BATCH:
        assert batch_client.unframe(answer.body)[1] == {"out": body.holds}
    else:
        assert base64.b64decode(answer.json()["segments"][0]["data_b64"]) == body.holds


def put_program(message_of):
    def put(client, path, body):
        assert client.put(path.removesuffix("/runs"), message_of(len(body.holds or bytes(100)))).status == 201
    return put


def drop_program(client, path, body, answer):
    echoed(client, path, body, answer)
    assert client.delete(path.removesuffix("/runs")).status in (204, 404, 409)


V = VICTIM
LAUNCH = launch_vadd(module="none")  # refused by name after all of it has been read
PTX_COMMENT = ("// " + "x" * 76 + "\n").encode()
CASES = [
    Case("sessions_create", "POST", "/v1/sessions", JSON, json_text({"labels": {"a": "b"}}, 201), after=remove_located),
    Case("sessions_put", "PUT", "/v1/sessions/other{n}", JSON, json_text({"labels": {"a": "b"}}, 201), after=remove),
    Case("sessions_create of a snapshot", "POST", "/v1/sessions", SNAPSHOT, octets(422)),
    Case("sessions_put of a snapshot", "PUT", "/v1/sessions/other{n}", SNAPSHOT, octets(422)),
    Case("sessions_patch", "PATCH", V, JSON, json_text({"labels": {"a": "b"}}, 200)),
    Case("sessions_reset", "POST", RESET + "/reset", JSON, json_text({}, 200)),
    Case("sessions_hibernate", "POST", V + "/hibernate", JSON, json_text({}, 403)),
    Case("sessions_wake", "POST", V + "/wake", JSON, json_text({}, 200)),
    Case("moves_create", "POST", V + "/move", JSON, json_text({}, 403)),
    Case("moves_complete", "POST", V + "/move/complete", JSON, json_text({"move": "0" * 64, "to": "http://n2", "id": "s"}, 403), empty=False),
    Case("moves_confirm", "POST", V + "/move/confirm", JSON, json_text({"secret": "0" * 64}, 200), empty=False),
    Case("sessions_heartbeat", "POST", V + "/heartbeat", JSON, json_text({}, 204)),
    Case("sessions_sync", "POST", V + "/sync", JSON, json_text({}, 200)),
    Case("memory_trim", "POST", V + "/memory/trim", JSON, json_text({}, 200)),
    Case("peak_reset", "POST", V + "/memory/peak/reset", JSON, json_text({}, 200)),
    Case("warms_create", "POST", "/v1/cache/warm", JSON, json_text({"nothing": 1}, 400), empty=False),
    Case("logging_put", "PUT", "/v1/admin/logging", JSON, json_text({"levels": {}}, ANYTHING), local=False),
    # The unknown member is refused, so nothing is drained; an empty body would drain.
    Case("drain_post", "POST", "/v1/admin/drain", JSON, json_text({"nothing": 1}, 400), local=False, empty=False),
    Case("devices_patch", "PATCH", "/v1/admin/devices/none:0", JSON, json_text({"settings": {}}, 404), local=False, empty=False),
    Case("devices_reset", "POST", "/v1/admin/devices/none:0/reset", JSON, json_text({"kind": "soft"}, 404), local=False, empty=False),
    Case("resume_post", "POST", "/v1/admin/resume", JSON, json_text({}, 200), local=False),
    Case("buffers_create", "POST", V + "/buffers", JSON, json_text({"size": 64}, 201), after=remove_located),
    Case("buffers_create of octets", "POST", V + "/buffers", OCTETS, octets(201), after=found_again(lambda path, answer: answer.headers["Location"])),
    Case("buffers_put", "PUT", V + "/buffers/b{n}", JSON, json_text({"size": 64}, 201), after=remove),
    Case("buffers_put of octets", "PUT", V + "/buffers/b{n}", OCTETS, octets(201), after=found_again(lambda path, answer: path)),
    Case("data_put", "PUT", V + "/buffers/b{n}/data", OCTETS, octets(204), before=make_buffer,
         after=found_again(lambda path, answer: path.removesuffix("/data"))),
    Case("globals_put", "PUT", V + "/modules/g{n}/globals/x/data", OCTETS, octets(204), before=make_global,
         after=found_again(lambda path, answer: path.removesuffix("/data"))),
    Case("textures_create", "POST", V + "/textures", JSON, json_text({"dimension": "1d", "format": "u8", "extent": [4]}, 201), after=remove_located),
    Case("textures_put", "PUT", V + "/textures/t{n}", JSON, json_text({"dimension": "1d", "format": "u8", "extent": [4]}, 201), after=remove),
    Case("texels_put", "PUT", V + "/textures/u{n}/data", OCTETS, octets(204), before=make_texture, after=found_texture),
    Case("buffers_fill", "POST", V + "/buffers/x/fill", JSON, json_text({"pattern": {"u8": 1}}, 204)),
    Case("buffers_copy", "POST", V + "/buffers/x/copy", JSON, json_text({"from": "y", "size": 8}, 204)),
    Case("buffers_compare", "POST", V + "/buffers/x/compare", JSON, json_text({"with": "y", "size": 8}, 200)),
    Case("shares_open", "POST", V + "/buffers/x/share", JSON, json_text({}, ANYTHING)),
    Case("shares_move", "PUT", V + "/buffers/x/share", JSON, json_text({}, ANYTHING)),
    Case("modules_create", "POST", V + "/modules", PTX_TYPE, padded_text(PTX.encode(), SOURCE_MAX, 201), after=remove_located),
    Case("modules_create of images", "POST", V + "/modules", "application/vnd.gpurest.images", images, after=remove_located),
    Case("modules_put", "PUT", V + "/modules/m{n}", JSON, json_text({"ptx": PTX}, ANYTHING, SOURCE_MAX), after=remove),
    Case("launches_create", "POST", V + "/launches", JSON, json_text(LAUNCH, 404)),
    Case("batches_create as JSON", "POST", V + "/batches", JSON, json_text(SYNC, 200, BATCH_JSON_MAX)),
    Case("batches_create as JSON with a segment", "POST", V + "/batches", JSON, inline_segment(echo), after=echoed),
    Case("batches_create framed", "POST", V + "/batches", BATCH, json_alone(SYNC), SIZES + FRAMED),
    Case("batches_create framed and wrong", "POST", V + "/batches", BATCH, json_alone(BROKEN, 400), FRAMED),
    Case("batches_create framed with a segment", "POST", V + "/batches", BATCH, with_segment(echo), SIZES + FRAMED, after=echoed),
    Case("run_create as JSON", "POST", "/v1/run", JSON, json_text(SYNC, 200, BATCH_JSON_MAX)),
    Case("run_create as JSON with a segment", "POST", "/v1/run", JSON, inline_segment(echo), after=echoed),
    Case("run_create framed", "POST", "/v1/run", BATCH, json_alone(SYNC), SIZES + FRAMED),
    Case("run_create framed and wrong", "POST", "/v1/run", BATCH, json_alone(BROKEN, 400), FRAMED),
    Case("run_create framed with a segment", "POST", "/v1/run", BATCH, with_segment(echo), SIZES + FRAMED, after=echoed),
    Case("programs_put", "PUT", V + "/programs/p{n}", JSON, json_text({"ops": [{"op": "sync"}]}, 201, BATCH_JSON_MAX), after=remove),
    Case("programs_run as JSON", "POST", V + "/programs/p{n}/runs", JSON, json_text({}, 200, BATCH_JSON_MAX), before=put_program(lambda n: SYNC),
         after=drop_program),
    Case("programs_run framed", "POST", V + "/programs/p{n}/runs", BATCH, json_alone({}), SIZES + FRAMED, before=put_program(lambda n: SYNC),
         after=drop_program),
    Case("programs_run framed with a segment", "POST", V + "/programs/p{n}/runs", BATCH, with_segment(echo_run), FRAMED, before=put_program(echo),
         after=drop_program),
]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))


# ---- sending ----

class Refused(Exception):
    """The connection was closed without an answer."""


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body, self.closes = response.status, response.headers, response.read(), response.will_close

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


def request_of(case, path, body, rng, kind=None, chunked=False):
    """Header and body as bytes; sometimes with digests and keys, which change a body's path."""
    lines = [f"{case.method} {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind or case.kind}"]
    if rng.random() < 0.25:
        lines.append("Content-Digest: sha-256=:" + base64.b64encode(hashlib.sha256(body).digest()).decode() + ":")
    if case.method == "POST" and rng.random() < 0.25:
        lines.append(f"Idempotency-Key: key-{os.getpid()}-{next(numbers)}")
    if chunked:
        half = rng.randrange(len(body)) + 1
        chunks = [piece for piece in (body[:half], body[half:]) if piece]
        lines.append("Transfer-Encoding: chunked")
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in chunks) + b"0\r\n\r\n"
    else:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode(), body


def cut(data, rng):
    """Pieces of the data: cuts fall anywhere, and often near the ends, where heads and last bytes are."""
    near = [rng.randrange(min(len(data), 64) + 1), len(data) - rng.randrange(min(len(data), 64) + 1)]
    at = sorted({*(rng.randrange(len(data) + 1) for _ in range(rng.randrange(5))), *rng.sample(near, rng.randrange(3))})
    return [data[a:b] for a, b in zip([0, *at], [*at, len(data)]) if a < b]


class Wire:
    """One connection, on which a request may be sent in pieces and answered before its end."""

    def __init__(self, service):
        self.socket = socket.create_connection((service.host, service.port), timeout=DEADLINE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data, stalls=None):
        """False when the answer or the end came first. `stalls` is called when the server reads nothing."""
        rest = memoryview(data)
        self.socket.setblocking(False)
        deadline = time.monotonic() + DEADLINE_S
        while rest:
            readable, writable, _ = select.select([self.socket], [self.socket], [], STALL_S)
            if readable:
                return False
            assert time.monotonic() < deadline, "the server takes nothing more"
            if not writable and stalls:
                stalls()
            with contextlib.suppress(BlockingIOError):
                try:
                    rest = rest[self.socket.send(rest):] if writable else rest
                except (BrokenPipeError, ConnectionResetError):
                    return False
        return True

    def answer(self, method):
        self.socket.settimeout(DEADLINE_S)
        response = http.client.HTTPResponse(self.socket, method=method)
        try:
            response.begin()
            return Answer(response)
        except (http.client.RemoteDisconnected, http.client.IncompleteRead, ConnectionResetError, BrokenPipeError) as e:
            raise Refused from e

    def still_works(self):
        self.socket.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert self.answer("GET").status == 200

    def close(self):
        self.socket.close()


def exchange(service, case, path, data, rng, pause=None, after_half=None, stalls=None):
    """The answer, or None when the connection was closed without one."""
    wire = Wire(service)
    try:
        whole, pieces = True, cut(data, rng)
        for i, piece in enumerate(pieces):
            if after_half and i == len(pieces) // 2:
                after_half()
            whole = whole and wire.send(piece, stalls)
            if pause and whole:
                pause()
        if stalls:
            stalls()
        answer = wire.answer(case.method)
        assert whole or answer.closes, f"{answer} came before the end of the body, and the connection goes on"
        if not answer.closes:
            wire.still_works()
        return answer
    except Refused:
        return None
    finally:
        wire.close()


def fits(answer, outcome):
    if outcome == ANYTHING:
        return answer is None or answer.status < 500
    if answer is None:
        return False
    return 400 <= answer.status < 500 if outcome == CUT_SHORT else answer.status == outcome


# ---- the service ----

class Place:
    """The service, a session for all the abuse, and a neighbour that must not notice."""

    def __init__(self, service):
        self.service, self.pid = service, service.process.pid
        self.client, self.neighbour = service.client(), service.client()
        self.make_neighbour()
        self.safe = service.children()
        self.make_victim()

    def make_neighbour(self):
        n = self.neighbour
        assert n.put(NEIGHBOUR).status == 201
        assert n.put_cuda(NEIGHBOUR + "/modules/m", VADD).status == 201
        assert n.put_octets(NEIGHBOUR + "/buffers/a", floats(range(1024))).status == 201
        assert n.put_octets(NEIGHBOUR + "/buffers/b", floats(2 * i for i in range(1024))).status == 201
        assert n.put(NEIGHBOUR + "/buffers/c", {"size": 4096}).status == 201

    def make_victim(self):
        for session in (VICTIM, RESET):
            assert self.client.put(session).status in (200, 201)
        for name in "xy":
            assert self.client.put(f"{VICTIM}/buffers/{name}", {"size": 64}).status in (200, 201)
        assert self.client.post("/v1/run", SYNC).status == 200

    def workers(self):
        """The victims' workers: no others are started later."""
        return self.service.children() - self.safe

    def signal(self, number):
        for pid in self.workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def revive(self):
        """Resets the victims after their workers' death."""
        for session in (VICTIM, RESET):
            assert self.client.post(session + "/reset").status == 200
        until(lambda: self.client.post("/v1/run", SYNC).status == 200)
        self.make_victim()

    def check(self):
        assert self.service.process.poll() is None and self.service.process.pid == self.pid, self.service.stderr()[-4000:]
        n = self.neighbour
        assert n.put_octets(NEIGHBOUR + "/buffers/c/data", bytes(4096)).status == 204
        assert n.post(NEIGHBOUR + "/launches", launch_vadd()).status == 200
        assert n.get(NEIGHBOUR + "/buffers/c/data").body == floats(3 * i for i in range(1024))
        assert n.get(NEIGHBOUR).json()["generation"] == 1


@pytest.fixture(scope="module")
def shared(executable, tmp_path_factory):
    print(f"seed {SEED}: GPUREST_TEST_SEED={SEED} does the same again")
    service = Service(executable, tmp_path_factory.mktemp("thresholds"), "--pool-size", "0", "--crash-budget", "0", variables=NO_LIBRARIES)
    place = Place(service)
    yield place
    place.client.close()
    place.neighbour.close()
    service.stop()


@pytest.fixture
def place(shared):
    yield shared
    shared.check()


def each(case, sizes, name):
    """Yields (description, path, body, chance) for each size; each size has its own chance, independent of the others."""
    for size in sizes:
        rng = random.Random(f"{SEED} {name} {case.name} {size}")
        yield f"{case.name}, {size} bytes, seed {SEED}", case.path.format(n=next(numbers)), case.make(size, rng), rng


# ---- tests ----

def test_the_limits_are_those_of_the_service(place):
    limits = {name: limit["max"] for name, limit in place.client.get("/v1/limits").json()["limits"].items()}
    assert (limits["json_body_bytes"], limits["source_body_bytes"], limits["batch_json_bytes"]) == (JSON_MAX, SOURCE_MAX, BATCH_JSON_MAX)


def test_no_endpoint_is_missing(place):
    document = place.client.get("/openapi.json").json()
    wanted = {(method.upper(), path) for path, item in document["paths"].items() for method, operation in item.items()
              if isinstance(operation, dict) and "requestBody" in operation}
    tried = {operation for operation in wanted for case in CASES
             if case.method == operation[0] and len(case.path.split("/")) == len(operation[1].split("/")) and
             all(a == b or b.startswith("{") for a, b in zip(case.path.split("/"), operation[1].split("/")))}
    assert wanted - tried == set()


@each_case
def test_every_size_cut_at_random(place, case):
    for what, path, body, rng in each(case, case.sizes, "cut"):
        chunked = case.kind == JSON and body.data and rng.random() < 0.2
        if case.before:
            case.before(place.client, path, body)
        data = b"".join(request_of(case, path, body.data, rng, chunked=chunked))
        answer = exchange(place.service, case, path, data, rng, pause=lambda: time.sleep(rng.choice((0, 0, 0.001))))
        assert fits(answer, body.outcome), (what, body.outcome, answer)
        if case.after:
            case.after(place.client, path, body, answer)


@each_case
def test_refused_before_the_last_byte(place, case):
    """Refused because of the header; and the same bodies with one changed byte that only their end reveals."""
    for what, path, body, rng in each(case, BESIDE, "refused"):
        head_bytes, data = request_of(case, path, body.data, rng, kind="text/none")
        answer = exchange(place.service, case, path, head_bytes + data, rng, pause=lambda: time.sleep(rng.choice((0, 0.001))))
        assert answer is None or 400 <= answer.status < 500, (what, answer)
        wrong = body.data[:-1] + b"\x01"
        answer = exchange(place.service, case, path, b"".join(request_of(case, path, wrong, rng)), rng)
        assert fits(answer, ANYTHING), (what, answer)
        if case.after:
            case.after(place.client, path, Body(wrong, ANYTHING), answer)


@each_case
def test_clients_that_leave_in_the_middle(place, case):
    for what, path, body, rng in each(case, BESIDE, "leave"):
        data = b"".join(request_of(case, path, body.data, rng))
        wire = Wire(place.service)
        wire.send(data[:rng.randrange(len(data))])
        if rng.random() < 0.5:
            wire.socket.shutdown(socket.SHUT_WR)
            with contextlib.suppress(Refused):
                assert wire.answer(case.method).status >= 400, what
        wire.close()


@pytest.mark.parametrize("case", [case for case in CASES if case.local], ids=lambda case: case.name.replace(" ", "-"))
def test_workers_that_stand_still(place, case):
    """Workers are stopped until all was sent, or the server reads no more; then they continue, and so must everything else."""
    for what, path, body, rng in each(case, BESIDE, "slow"):
        if case.before:
            case.before(place.client, path, body)
        data = b"".join(request_of(case, path, body.data, rng))
        place.signal(signal.SIGSTOP)
        try:
            answer = exchange(place.service, case, path, data, rng, stalls=lambda: place.signal(signal.SIGCONT))
        finally:
            place.signal(signal.SIGCONT)
        assert fits(answer, body.outcome), (what, body.outcome, answer)
        if case.after:
            case.after(place.client, path, body, answer)


@pytest.mark.parametrize("case", [case for case in CASES if case.local], ids=lambda case: case.name.replace(" ", "-"))
def test_workers_that_die(place, case):
    """Workers die in the middle of the body. All sizes of a frame; of other forms two random sizes, since each takes two new workers."""
    sizes = BESIDE if case.kind == BATCH else random.Random(f"{SEED} die {case.name}").sample(BESIDE, 2)
    for what, path, body, rng in each(case, sizes, "die"):
        if case.before:
            case.before(place.client, path, body)
        data = b"".join(request_of(case, path, body.data, rng))
        answer = exchange(place.service, case, path, data, rng, after_half=lambda: place.signal(signal.SIGKILL))
        assert answer is None or answer.status in (body.outcome, 409, 502, 503) or 400 <= answer.status < 500, (what, answer)
        place.revive()
