"""Snapshots: a session as one file, and sessions made from such files."""
import hashlib
import http.client
import io
import json
import random
import struct
import tarfile
import threading

import pytest

from conftest import floats
from fake_gpu import driver, start as start_fake  # noqa: F401
from kernels import BAD_ADDRESS, FAULTS
from service_under_test import until
from test_start_and_auth import token_file

TYPE = "application/vnd.gpurest.snapshot"
SOURCE = r"""
__device__ int counter = 5;
__constant__ float table[4] = {1, 2, 3, 4};
namespace ns { __device__ unsigned long long big[4096]; }
extern "C" __global__ void step(unsigned *p, unsigned k) { if (threadIdx.x == 0) { *p = *p * 3 + k; counter += k; } }
"""
HEADED = '#include "scale.h"\ntemplate <int N> __global__ void scale(float *p) { p[threadIdx.x] *= N * SCALE + HALF; }\n'
HEADED_MODULE = {"source": HEADED, "headers": {"scale.h": "#define SCALE 2\n"}, "options": ["-DHALF=1"], "name_expressions": ["scale<3>"]}
PROGRAM = {"module": "m", "ops": [{"op": "launch", "kernel": "step", "grid": [1], "block": [32], "args": [{"buf": "n"}, {"u32": k}]} for k in range(3)]}


def word(client, session, buffer="n"):
    return struct.unpack("<I", client.get(f"{session}/buffers/{buffer}/data").expect(200).body)[0]


def variable(client, session, name):
    return client.get(f"{session}/modules/m/globals/{name}/data").expect(200).body


@pytest.fixture
def full(client, session):
    """A session with one of everything: modules with and without options, buffers, variables that were changed, a program, labels, limits."""
    client.patch(session, {"labels": {"team": "vision"}, "idle_timeout_s": 777, "memory_limit": str(2**62 - 1)}).expect(200)
    client.put_cuda(session + "/modules/m", SOURCE).expect(201)
    client.put(session + "/modules/h", HEADED_MODULE).expect(201)
    client.put_octets(session + "/buffers/n", struct.pack("<I", 1)).expect(201)
    client.put_octets(session + "/buffers/odd", random.Random(3).randbytes(3 * 2**20 + 17)).expect(201)
    client.put_octets(f"{session}/modules/m/globals/table/data", floats([5, 6, 7, 8])).expect(204)
    client.put(session + "/programs/p", PROGRAM).expect(201)
    client.post(session + "/programs/p/runs", {}).expect(200)
    return session


def snapshot(client, session):
    answer = client.get(session + "/snapshot").expect(200)
    assert answer.headers["Content-Type"] == TYPE and int(answer.headers["Content-Length"]) == len(answer.body)
    return answer.body


def restore(client, path, data, **headers):
    return client.put(path, data, Content_Type=TYPE, **headers)


def entries(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar.getmembers()}


def repacked(parts):
    """The file of these parts, its digests made anew."""
    made = io.BytesIO()
    parts = {name: data for name, data in parts.items() if name != "SHA256SUMS"}
    parts["SHA256SUMS"] = "".join(f"{hashlib.sha256(d).hexdigest()}  {n}\n" for n, d in parts.items()).encode()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in parts.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return made.getvalue()


def gone(client, path):
    client.get(path).expect(404, "session_not_found")


def check_copy(client, full, copy):
    told = client.get(copy).json()
    assert told["labels"] == {"team": "vision"} and told["idle_timeout_s"] == 777 and told["state"] == "ready"
    assert client.get(copy + "/buffers/odd/data").body == random.Random(3).randbytes(3 * 2**20 + 17)
    assert word(client, copy) == 1 * 27 + 0 * 9 + 1 * 3 + 2
    assert variable(client, copy, "counter") == struct.pack("<i", 8) and variable(client, copy, "table") == floats([5, 6, 7, 8])
    # it works on, by itself
    client.post(copy + "/programs/p/runs", {}).expect(200)
    assert word(client, copy) == 32 * 27 + 5 and variable(client, copy, "counter") == struct.pack("<i", 11)
    client.put_octets(copy + "/buffers/f", floats([1, 2])).expect(201)
    client.post(copy + "/launches", {"module": "h", "kernel": "scale<3>", "grid": [1], "block": [2], "args": [{"buf": "f"}]}).expect(200)
    assert client.get(copy + "/buffers/f/data").body == floats([7, 14])
    # what made it, made again, is the same
    client.put_cuda(copy + "/modules/m", SOURCE).expect(200)
    client.put(copy + "/modules/h", HEADED_MODULE).expect(200)
    client.put(copy + "/programs/p", PROGRAM).expect(200)


def test_a_copy_has_everything_and_works_on(client, full):
    data = snapshot(client, full)
    made = restore(client, "/v1/sessions/copy", data).expect(201)
    assert made.headers["Location"] == "/v1/sessions/copy" and made.json()["usage"]["memory_bytes"] == client.get(full).json()["usage"]["memory_bytes"]
    assert word(client, full) == 32
    check_copy(client, full, "/v1/sessions/copy")
    assert word(client, full) == 32
    restore(client, "/v1/sessions/copy", data).expect(409, "spec_conflict")
    unnamed = client.post("/v1/sessions", data, Content_Type=TYPE).expect(201)
    made = [client.post_octets(unnamed.headers["Location"] + "/buffers", b"x").expect(201).json()["id"],
            client.post(unnamed.headers["Location"] + "/modules", {"source": SOURCE.replace("5", "6")}).expect(201).json()["id"]]
    restore(client, "/v1/sessions/ids", snapshot(client, unnamed.headers["Location"])).expect(201)
    client.get(f"/v1/sessions/ids/buffers/{made[0]}").expect(200)  # also what the service has named keeps its id
    client.get(f"/v1/sessions/ids/modules/{made[1]}").expect(200)
    client.delete("/v1/sessions/ids").expect(204)
    assert word(client, unnamed.headers["Location"]) == 32
    assert entries(snapshot(client, unnamed.headers["Location"]))["buffers/odd"] == entries(data)["buffers/odd"]
    for path in ("/v1/sessions/copy", unnamed.headers["Location"]):
        client.delete(path).expect(204)


def test_any_tool_opens_it(client, full):
    parts = entries(snapshot(client, full))
    manifest = json.loads(parts["manifest.json"])
    assert (manifest["format"], manifest["version"]) == ("gpurest-snapshot", 1)
    assert list(parts) == ["manifest.json", *(part["path"] for part in manifest["parts"]), "SHA256SUMS"]
    assert parts["modules/m.cu"] == SOURCE.encode() and json.loads(parts["modules/h.json"])["source"] == HEADED
    assert parts["buffers/n"] == struct.pack("<I", 32) and json.loads(parts["programs/p.json"]) == PROGRAM
    assert manifest["session"]["memory_limit"] == str(2**62 - 1)
    for line in parts["SHA256SUMS"].decode().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256(parts[name]).hexdigest() == digest
    again = repacked(parts)  # another tool's archive of the same files
    restore(client, "/v1/sessions/copy", again).expect(201)
    assert word(client, "/v1/sessions/copy") == 32
    client.delete("/v1/sessions/copy").expect(204)


# ---- files that are no snapshots, or not whole ----

def borders(data):
    """Offsets of all headers and of the ends of all parts."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return sorted({at for m in tar.getmembers() for at in (m.offset, m.offset_data, m.offset_data + m.size)})


def small(client, session):
    """A snapshot whose parts fit on a page."""
    client.put_cuda(session + "/modules/m", SOURCE.replace("4096", "4")).expect(201)
    client.put_octets(session + "/buffers/a", bytes(range(256)) * 3).expect(201)
    client.put_octets(session + "/buffers/b", bytes(700)).expect(201)
    client.put(session + "/programs/p", {"ops": [{"op": "sync"}]}).expect(201)
    return snapshot(client, session)


def restore_bad(client, data):
    """A session that is not restored ends behind its answer, so its place is free a little later."""
    answers = []
    until(lambda: answers.append(restore(client, "/v1/sessions/bad", data)) or b"sessions are in use" not in answers[-1].body)
    return answers[-1]


def refused(client, data, status=422, code="snapshot_invalid", words=""):
    answer = restore_bad(client, data).expect(status, code)
    assert words in answer.json()["detail"], answer
    gone(client, "/v1/sessions/bad")


def test_a_cut_file_leaves_no_session(client, session):
    data = small(client, session)
    cuts = {at + d for at in borders(data) for d in (-1, 0, 1)} | set(random.Random(5).sample(range(len(data)), 10))
    end = len(data) - 1024
    for at in sorted(at for at in cuts if 0 < at < end):
        refused(client, data[:at])
    restore_bad(client, data).expect(201)
    client.delete("/v1/sessions/bad").expect(204)


def test_damage_is_found_and_named(client, session):
    data = small(client, session)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = tar.getmembers()
    for m in members:
        for at, words in ((m.offset + 3, ""), (m.offset_data + m.size // 2, m.name if m.name.startswith(("buffers", "variables")) else "")):
            changed = bytearray(data)
            changed[at] ^= 0x20
            answer = restore_bad(client, bytes(changed))
            assert 400 <= answer.status < 500 and words in answer.json()["detail"], (m.name, at, answer)
            gone(client, "/v1/sessions/bad")
        if m.size % 512:
            changed = bytearray(data)
            changed[m.offset_data + m.size] = 1
            refused(client, bytes(changed))


def test_foreign_files(client, session):
    parts = entries(small(client, session))
    manifest = json.loads(parts["manifest.json"])

    def told(**changes):
        return repacked({**parts, "manifest.json": json.dumps({**manifest, **changes}).encode()})

    refused(client, b"hello" * 1000, words="ustar")
    refused(client, bytes(4096), words="manifest.json")
    refused(client, repacked({"readme.txt": b"x"}), words="manifest.json")
    refused(client, told(format="zip"), words="gpurest-snapshot")
    refused(client, told(version=5), words="version 5")
    refused(client, told(more=1), words="/more")
    refused(client, told(parts=manifest["parts"][:-1] + [{**manifest["parts"][-1], "kind": "launch"}]), words="kind")
    refused(client, told(parts=manifest["parts"][::-1]), words="order")
    refused(client, repacked({name: data for name, data in parts.items() if name != "buffers/a"}), words="buffers/a")
    refused(client, repacked({**parts, "buffers/a": b"short"}), words="buffers/a")
    refused(client, repacked({**parts, "modules/m.cu": b"x" * len(parts["modules/m.cu"])}), code="compile_failed", words="modules/m.cu")
    refused(client, told(session={"lease_s": -1}), 400, "invalid_field")
    restore(client, "/v1/sessions/bad?device=nowhere:1", repacked(parts)).expect(404, "device_not_found")
    client.put("/v1/sessions/bad?device=cpu:0", {}).expect(400, "invalid_field")
    # 2**63 and 2**64 - 1 bytes
    for size in (2**63, 2**64 - 1):
        changed = [{**p, "bytes": str(size)} if p["path"] == "buffers/a" else p for p in manifest["parts"]]
        refused(client, told(parts=changed))
    huge = [{**p, "bytes": str(2**62)} if p["path"] == "buffers/a" else p for p in manifest["parts"]]
    answer = restore(client, "/v1/sessions/bad", told(parts=huge))
    assert answer.status in (413, 422, 429, 503, 507) and "buffers/a" in answer.json()["detail"], answer
    gone(client, "/v1/sessions/bad")


def test_the_quota_holds_and_nothing_stays(client, session):
    parts = entries(small(client, session))
    manifest = json.loads(parts["manifest.json"])
    manifest["session"]["memory_limit"] = 800
    answer = restore(client, "/v1/sessions/bad", repacked({**parts, "manifest.json": json.dumps(manifest).encode()}))
    assert answer.code == "quota_exceeded" and "buffers/b" in answer.json()["detail"], answer
    gone(client, "/v1/sessions/bad")


# ---- others, and other work ----

def test_a_snapshot_is_its_owners(start, tmp_path):
    service = start("--tokens", token_file(tmp_path / "tokens.json", alice=["read", "write", "compile", "launch"], bob=["read", "write"]))
    alice, bob = ({"Authorization": f"Bearer {name}-secret"} for name in ("alice", "bob"))
    client = service.client()
    client.request("PUT", "/v1/sessions/s", {}, alice).expect(201)
    client.request("PUT", "/v1/sessions/s/buffers/b", b"mine", {**alice, "Content-Type": "application/octet-stream"}).expect(201)
    client.request("GET", "/v1/sessions/s/snapshot", headers=bob).expect(404, "session_not_found")
    client.request("GET", "/v1/sessions/s/snapshot").expect(401)
    plain = client.request("GET", "/v1/sessions/s/snapshot", headers=alice).expect(200).body
    assert b"alice" not in plain and b"secret" not in plain and hashlib.sha256(b"alice-secret").hexdigest().encode() not in plain
    client.request("PUT", "/v1/sessions/s/modules/m", SOURCE.encode(), {**alice, "Content-Type": "text/x-cuda"}).expect(201)
    data = client.request("GET", "/v1/sessions/s/snapshot", headers=alice).expect(200).body
    refusal = client.request("PUT", "/v1/sessions/s", data, {**bob, "Content-Type": TYPE}).expect(403, "insufficient_scope")
    assert "modules/m.cu" in refusal.json()["detail"]
    client.request("GET", "/v1/sessions/s", headers=bob).expect(404)
    client.request("PUT", "/v1/sessions/s", plain, {**bob, "Content-Type": TYPE}).expect(201)  # his own session of that name
    assert client.request("GET", "/v1/sessions/s/buffers/b/data", headers=bob).body == b"mine"
    client.close()


def test_it_waits_for_launches_up_to_a_bound(client, session):
    client.put_cuda(session + "/modules/m", FAULTS).expect(201)
    client.put(session + "/buffers/x", {"size": 4096}).expect(201)
    launch = client.post(session + "/launches", {"module": "m", "kernel": "endless", "grid": [1], "block": [1], "args": [{"buf": "x"}],
                                                 "timeout_ms": 600000}, Prefer="respond-async").expect(202)
    busy = client.get(session + "/snapshot", Prefer="wait=0").expect(409, "session_busy")
    assert "a launch" in busy.json()["detail"] and busy.json()["retryable"]
    assert client.delete(launch.headers["Location"] + "?force=1").status in (200, 202)
    client.post(session + "/reset", {}).expect(200)
    client.put_cuda(session + "/modules/m", FAULTS).expect(201)
    client.post(session + "/launches", {"module": "m", "kernel": "illegal", "grid": [1], "block": [1], "args": [BAD_ADDRESS]})
    until(lambda: client.get(session).json()["state"] == "faulted", lambda: client.get(session).json())
    client.get(session + "/snapshot").expect(409, "session_faulted")
    client.post(session + "/reset", {}).expect(200)
    client.get(session + "/snapshot").expect(200)


def raw(service):
    connection = http.client.HTTPConnection(service.host, service.port, timeout=60)
    return connection


def test_nothing_changes_while_it_is_read(client, service, session):
    """A client that reads slowly, and one that is gone."""
    client.put_octets(session + "/buffers/b", bytes(64 << 20)).expect(201)
    client.put_cuda(session + "/modules/m", SOURCE).expect(201)
    reader = raw(service)
    reader.request("GET", session + "/snapshot")
    response = reader.getresponse()
    first = response.read(1 << 20)
    for method, path, body in (("PUT", "/buffers/new", {"size": 8}), ("POST", "/buffers/b/fill", {"pattern": {"u8": 1}}), ("DELETE", "/buffers/b", None),
                               ("PUT", "/modules/n", {"source": SOURCE}), ("DELETE", "/modules/m", None), ("POST", "/reset", {}),
                               ("PUT", "/programs/p", {"ops": [{"op": "sync"}]}), ("POST", "/batches", {"ops": [{"op": "sync"}]}),
                               ("POST", "/launches", {"module": "m", "kernel": "step", "grid": [1], "block": [1], "args": [{"buf": "b"}, {"u32": 1}]})):
        answer = client.request(method, session + path, body).expect(409, "session_busy")
        assert "snapshot" in answer.json()["detail"] and answer.json()["retryable"], (method, path)
    client.put_octets(session + "/buffers/b/data", bytes(64 << 20)).expect(409, "session_busy")
    assert client.get(session + "/buffers/b/data", Range="bytes=0-7").body == bytes(8)  # reads go on
    second = snapshot(client, session)                                                   # so do other snapshots
    rest = first + response.read()
    assert entries(rest) == {**entries(second), "manifest.json": entries(rest)["manifest.json"], "SHA256SUMS": entries(rest)["SHA256SUMS"]}
    reader.close()
    until(lambda: client.put(session + "/buffers/new", {"size": 8}).status == 201)
    reader = raw(service)
    reader.request("GET", session + "/snapshot")
    reader.getresponse().read(1000)
    reader.close()
    until(lambda: client.put(session + "/buffers/newer", {"size": 8}).status == 201)


def test_a_client_that_dies_while_it_restores_leaves_nothing(client, service, session):
    client.put_octets(session + "/buffers/b", bytes(8 << 20)).expect(201)
    data = snapshot(client, session)
    for share in (0.3, 0.999):
        writer = raw(service)
        writer.putrequest("PUT", "/v1/sessions/half")
        writer.putheader("Content-Type", TYPE)
        writer.putheader("Content-Length", str(len(data)))
        writer.endheaders()
        writer.send(data[:int(len(data) * share)])
        until(lambda: client.get("/v1/sessions/half").status == 409)  # being restored: nobody sees a part of it
        client.put("/v1/sessions/half", {}).expect(409, "session_busy")
        restore(client, "/v1/sessions/half", data).expect(409, "session_busy")
        assert {s["id"]: s["state"] for s in client.get("/v1/sessions").json()["items"]}["half"] == "starting"
        writer.close()
        until(lambda: client.get("/v1/sessions/half").status == 404)
    restore(client, "/v1/sessions/half", data).expect(201)
    client.delete("/v1/sessions/half").expect(204)


def test_chunked_and_from_another_service(client, start, full):
    data = snapshot(client, full)
    other = start("--no-offload").client()
    answer = other.request("PUT", "/v1/sessions/copy", iter([data[:1], data[1:70000], data[70000:]]), {"Content-Type": TYPE}, encode_chunked=True)
    answer.expect(201)
    check_copy(other, full, "/v1/sessions/copy")
    assert entries(snapshot(other, "/v1/sessions/copy"))["buffers/odd"] == entries(data)["buffers/odd"]
    head = other.head("/v1/sessions/copy/snapshot").expect(200)
    assert int(head.headers["Content-Length"]) > 3 << 20
    other.close()


def test_concurrent_writers_and_snapshots(client, service, session):
    """Every snapshot is of one moment: two buffers that are always written together have the same number."""
    client.put_octets(session + "/buffers/x", bytes(4096)).expect(201)
    client.put_octets(session + "/buffers/y", bytes(4096)).expect(201)
    stop = threading.Event()

    def write():
        writer, number = service.client(), 0
        while not stop.is_set():
            number += 1
            pattern = {"u32": number}
            writer.post(session + "/batches", {"ops": [{"op": "fill", "to": b, "pattern": pattern} for b in "xy"]})
        writer.close()

    thread, taken = threading.Thread(target=write), 0
    thread.start()
    try:
        for _ in range(20):
            answer = client.get(session + "/snapshot")
            if answer.status == 409:
                continue
            taken += 1
            parts = entries(answer.expect(200).body)
            assert parts["buffers/x"] == parts["buffers/y"] and len(set(struct.unpack("<1024I", parts["buffers/x"]))) == 1
    finally:
        stop.set()
        thread.join()
    assert taken


def test_from_a_gpu_to_the_cpu_device(executable, tmp_path, driver, client):  # noqa: F811
    """The fake driver's memory in a snapshot, restored there and on the cpu device."""
    service = start_fake(executable, tmp_path, driver[1])
    try:
        gpu = service.client()
        session = gpu.post("/v1/sessions", {}).expect(201).headers["Location"]
        made = gpu.put_cuda(session + "/modules/m", SOURCE)
        if made.status == 503:
            pytest.skip("no NVRTC on this machine")
        gpu.put_octets(session + "/buffers/b", random.Random(7).randbytes(3 << 20)).expect(201)
        gpu.put_octets(session + "/modules/m/globals/table/data", floats([9, 8, 7, 6])).expect(204)
        data = snapshot(gpu, session)
        for other in (gpu, client):
            restore(other, "/v1/sessions/from-gpu", data).expect(201)
            assert other.get("/v1/sessions/from-gpu/buffers/b/data").body == random.Random(7).randbytes(3 << 20)
            assert variable(other, "/v1/sessions/from-gpu", "table") == floats([9, 8, 7, 6])
            other.delete("/v1/sessions/from-gpu").expect(204)
        gpu.close()
    finally:
        service.stop()


def test_textures_come_along(client, session):
    """Those with memory of their own, with an id that the service chose, over a buffer, and over the texels of another."""
    layered = {"dimension": "2d_layered", "extent": [8, 4], "layers": 3, "format": "u8", "channels": 4, "filter": "linear", "surface": True,
               "addressing": ["wrap", "mirror"], "read": "normalized_float", "normalized_coordinates": True}
    client.put(session + "/textures/t", layered).expect(201)
    client.put_octets(session + "/textures/t/data", random.Random(5).randbytes(8 * 4 * 3 * 4)).expect(204)
    chosen = client.post(session + "/textures", {"dimension": "1d", "extent": [13], "format": "f32"}).expect(201).json()["id"]
    client.put_octets(f"{session}/textures/{chosen}/data", floats(range(13))).expect(204)
    client.put_octets(session + "/buffers/b", floats(range(1024))).expect(201)
    client.put(session + "/textures/over", {"dimension": "2d", "extent": [5, 3], "format": "f32", "buffer": "b", "offset": 512, "pitch": 64}).expect(201)
    client.put(session + "/textures/again", {**layered, "filter": "point", "read": "srgb", "buffer": "t.texels"}).expect(201)
    data = snapshot(client, session)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert {"textures/t.json", f"texels/{chosen}", "textures/over.json", "textures/again.json"} < set(tar.getnames())
        assert not {"texels/over", "texels/again"} & set(tar.getnames())
    restore(client, "/v1/sessions/again", data).expect(201)
    for texture in ("t", chosen, "over", "again"):
        told = [client.get(f"{path}/textures/{texture}").expect(200).json() for path in (session, "/v1/sessions/again")]
        own = {"created_at": 0, "object": 0, "surface_object": 0}
        assert {**told[0], **own} == {**told[1], **own}
        assert client.get(f"{session}/textures/{texture}/data").body == client.get(f"/v1/sessions/again/textures/{texture}/data").body
    client.delete("/v1/sessions/again").expect(204)


def test_a_texture_that_cannot_be_made_leaves_no_session(client, session):
    client.put(session + "/textures/t", {"dimension": "1d", "extent": [4], "format": "f32"}).expect(201)
    data = snapshot(client, session)
    parts = entries(data)
    bad = {**parts, "textures/t.json": parts["textures/t.json"].replace(b'"f32"', b'"f99"')}
    answer = restore(client, "/v1/sessions/bad", repacked(bad))
    assert answer.status in (400, 422) and "textures/t.json" in answer.json()["detail"], answer.body
    client.get("/v1/sessions/bad").expect(404)
    client.get(session + "/snapshot").expect(200)


# ---- without what the client has ----

def sha256(data):
    return hashlib.sha256(data).hexdigest()


def without(client, session, *have):
    answer = client.get(f"{session}/snapshot?have={','.join(have)}").expect(200)
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    return answer.body


def put_back(data, bytes_of):
    """The whole file: `bytes_of` has the missing bytes by their digests."""
    made, parts = io.BytesIO(), entries(data)
    digests = {name: digest for digest, name in (line.split("  ") for line in parts["SHA256SUMS"].decode().splitlines())}
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in parts.items():
            info = tarfile.TarInfo(name.removeprefix("absent/"))
            content = bytes_of[digests[info.name]] if name != info.name else content
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return made.getvalue()


def test_bytes_that_the_client_has_are_left_out(client, full):
    """Of buffers, one of several staging slices, two with the same bytes; of texels and variables. What was left out can be put back, else
    nothing is restored."""
    large = random.Random(9).randbytes(9 * 2**20 + 5)
    for name in ("large", "twin"):
        client.put_octets(f"{full}/buffers/{name}", large).expect(201)
    client.put(full + "/textures/t", {"dimension": "1d", "extent": [13], "format": "f32"}).expect(201)
    client.put_octets(f"{full}/textures/t/data", floats(range(13))).expect(204)
    whole = entries(snapshot(client, full))
    for nothing in ((), ("0" * 64,)):
        same = entries(without(client, full, *nothing))
        assert list(same) == list(whole) and same["buffers/large"] == large
    some = entries(without(client, full, sha256(large), sha256(floats(range(13))).upper(), sha256(whole["manifest.json"])))
    assert {name for name in some if name.startswith("absent/")} == {"absent/buffers/large", "absent/buffers/twin", "absent/texels/t"}
    assert some["absent/buffers/twin"] == b"" and some["buffers/odd"] == whole["buffers/odd"]
    sums = [line.split("  ") for line in some["SHA256SUMS"].decode().splitlines()]
    assert [name for _, name in sums] == list(whole)[:-1] and [sha256(large), "buffers/twin"] in sums
    places = [name for name in whole if name.split("/")[0] in ("buffers", "texels", "variables")]
    data = without(client, full, *{sha256(whole[name]) for name in places})
    assert len(data) < 2**20 and [name for name in entries(data) if name.startswith("absent/")] == ["absent/" + name for name in places]
    refusal = restore(client, "/v1/sessions/half", data).expect(422, "snapshot_invalid").json()["detail"]
    assert "buffers/large" in refusal and "put them back" in refusal
    wrong = {digest: bytes(len(large)) if digest == sha256(large) else whole[name] for digest, name in sums}
    assert "buffers/large is damaged" in restore(client, "/v1/sessions/half", put_back(data, wrong)).expect(422, "snapshot_invalid").json()["detail"]
    gone(client, "/v1/sessions/half")
    restore(client, "/v1/sessions/copy", put_back(data, {sha256(whole[name]): whole[name] for name in places})).expect(201)
    check_copy(client, full, "/v1/sessions/copy")
    client.delete("/v1/sessions/copy").expect(204)


def test_what_a_client_says_it_has_is_checked(client, session):
    for wrong, told in (("x", "'x'"), ("0" * 63, "64 hexadecimal"), ("0" * 65, "64 hexadecimal"), ("0" * 64 + ",", "''"), (",", "''"), ("g" * 64, "ggg"),
                        (",".join(["0" * 64] * 101), "at most 100")):
        assert told in client.get(f"{session}/snapshot?have={wrong}").expect(400, "invalid_field").json()["detail"]
    client.get(f"{session}/snapshot?have=" + "%2C".join(["a" * 64] * 100)).expect(200)
    client.get(f"{session}/snapshot?have={'0' * 64}&have={'1' * 64}").expect(400, "invalid_field")


def test_digests_of_a_client_that_goes_and_of_others(start, tmp_path):
    """A client that is gone holds nothing; a session that sleeps wakes; what others have cannot be asked."""
    service = start("--tokens", token_file(tmp_path / "tokens.json", alice=["read", "write"], bob=["read", "write"]), "--hibernate-mib", "512")
    alice, bob = ({"Authorization": f"Bearer {name}-secret"} for name in ("alice", "bob"))
    client, data = service.client(), random.Random(1).randbytes(32 << 20)
    client.request("PUT", "/v1/sessions/s", {}, alice).expect(201)
    client.request("PUT", "/v1/sessions/s/buffers/b", data, {**alice, "Content-Type": "application/octet-stream"}).expect(201)
    asked = f"/v1/sessions/s/snapshot?have={sha256(data)}"
    for path in (asked, "/v1/sessions/s/snapshot?have=wrong"):
        assert client.request("GET", path, headers=bob).expect(404, "session_not_found").json()["detail"]
    leaving = raw(service)
    leaving.request("GET", asked, headers=alice)
    leaving.close()
    leaving = raw(service)
    leaving.request("GET", f"/v1/sessions/s/snapshot?have={'0' * 64}", headers=alice)
    leaving.getresponse().read(1 << 20)
    leaving.close()
    until(lambda: client.request("PUT", "/v1/sessions/s/buffers/c", {"size": 8}, alice).status in (200, 201))
    client.request("POST", "/v1/sessions/s/hibernate", {}, alice).expect(200)
    assert "absent/buffers/b" in entries(client.request("GET", asked, headers=alice).expect(200).body)
    head = client.request("HEAD", asked, headers=alice).expect(200)
    assert int(head.headers["Content-Length"]) < 1 << 20
    client.close()
