"""--state: sessions that outlive the service."""
import json
import os
import signal
import socket
import struct
import subprocess
import tarfile
import time

import pytest

from conftest import floats
from fixtures import NO_LIBRARIES
from service_under_test import Service, until
from test_snapshot import HEADED_MODULE, PROGRAM, SOURCE, TYPE, entries, repacked, variable, word
from test_start_and_auth import token_file


def stop(service):
    service.terminate()
    assert service.wait() == 0


def kill(service):
    service.process.send_signal(signal.SIGKILL)
    service.process.wait()


@pytest.fixture
def mortal(executable, tmp_path):
    """Starts services that a test may kill."""
    started = []

    def start_one(*arguments):
        folder = tmp_path / f"mortal{len(started)}"
        folder.mkdir()
        started.append(Service(executable, folder, *arguments, variables=NO_LIBRARIES))
        return started[-1]

    yield start_one
    for service in started:
        if service.process.poll() is None:
            kill(service)


def left(folder):
    """The files of sessions; not the marks of their names (test_lost_names.py)."""
    return sorted(name for _, _, names in os.walk(folder) for name in names if name != ".lock" and not name.endswith(".live"))


def test_sessions_are_there_again(start, tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    service = start("--state", str(folder))
    client = service.client()
    client.put("/v1/sessions/named", {"labels": {"a": "b"}}).expect(201)
    chosen = client.post("/v1/sessions", {}).expect(201).headers["Location"]
    for path in ("/v1/sessions/named", chosen):
        client.put_cuda(path + "/modules/m", SOURCE).expect(201)
        client.put(path + "/modules/h", HEADED_MODULE).expect(201)
        client.put_octets(path + "/buffers/n", struct.pack("<I", 1)).expect(201)
        client.put_octets(path + "/modules/m/globals/table/data", floats([5, 6, 7, 8])).expect(204)
        client.put(path + "/programs/p", PROGRAM).expect(201)
        client.post(path + "/programs/p/runs", {}).expect(200)
    stop(service)
    assert len(left(folder)) == 2 and all(name.endswith(".tar") for name in left(folder))
    assert "session named is saved" in service.stderr()
    service = start("--state", str(folder))
    client = service.client()
    assert {s["id"] for s in client.get("/v1/sessions").json()["items"]} == {"named", chosen.rpartition("/")[2]}
    service.logged("session named is restored")
    assert client.get("/v1/sessions/named").json()["labels"] == {"a": "b"}
    for path in ("/v1/sessions/named", chosen):
        assert word(client, path) == 32 and variable(client, path, "table") == floats([5, 6, 7, 8])
        client.post(path + "/programs/p/runs", {}).expect(200)
        assert word(client, path) == 32 * 27 + 5
    # what they were stays until they are saved again, for a crash meanwhile
    assert left(folder) == sorted(["named.past.tar", chosen.rpartition("/")[2] + ".past.tar"])
    client.delete(chosen).expect(204)
    assert left(folder) == ["named.past.tar"]
    stop(service)
    assert left(folder) == ["named.past.tar", "named.tar"]


def test_callers_faults_and_damage(start, tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    tokens = token_file(tmp_path / "tokens.json", alice=["read", "write"], bob=["read", "write"])
    alice, bob = ({"Authorization": f"Bearer {name}-secret"} for name in ("alice", "bob"))
    service = start("--state", str(folder), "--tokens", tokens)
    client = service.client()
    for headers, data in ((alice, b"of alice"), (bob, b"of bob..")):
        for name in ("s", "t"):
            client.request("PUT", f"/v1/sessions/{name}", {}, headers).expect(201)
            client.request("PUT", f"/v1/sessions/{name}/buffers/b", data, {**headers, "Content-Type": "application/octet-stream"}).expect(201)
    stop(service)
    damaged = folder / b"alice".hex() / "s.tar"
    content = bytearray(damaged.read_bytes())
    content[content.index(b"of alice")] ^= 1
    damaged.write_bytes(content)
    service = start("--state", str(folder), "--tokens", tokens)
    client = service.client()
    client.request("GET", "/v1/sessions/s", headers=alice).expect(404, "session_not_found")
    assert client.request("GET", "/v1/sessions/t/buffers/b/data", headers=alice).body == b"of alice"
    for name in ("s", "t"):
        assert client.request("GET", f"/v1/sessions/{name}/buffers/b/data", headers=bob).body == b"of bob.."
    assert "session s is not restored, and its file is set aside as s.tar.damaged: buffers/b is damaged" in service.logged("set aside")
    assert left(folder) == ["s.past.tar", "s.tar.damaged", "t.past.tar", "t.past.tar"]
    stop(service)
    tokens = token_file(tmp_path / "others.json", bob=["read"])  # alice's token is gone: her sessions wait for it
    service = start("--state", str(folder), "--tokens", tokens)
    assert service.client().request("GET", "/v1/sessions/t/buffers/b/data", headers=bob).body == b"of bob.."
    assert (folder / b"alice".hex() / "t.tar").exists()


def test_how_it_was_restored_is_told(mortal, tmp_path):
    folder = tmp_path / "state"
    service = mortal("--state", str(folder))
    client = service.client()
    made = client.put("/v1/sessions/s", {}).expect(201).json()
    assert made["restored"] is None and made["saved_at"] is None
    data = client.get("/v1/sessions/s/snapshot").expect(200).body
    told = client.put("/v1/sessions/copy", data, Content_Type=TYPE).expect(201).json()
    assert told["restored"]["from"] == "snapshot" and made["created_at"] <= told["restored"]["taken_at"] <= told["restored"]["at"]
    stop(service)
    service = mortal("--state", str(folder))
    for s in service.client().get("/v1/sessions").json()["items"]:
        assert s["restored"]["from"] == "shutdown" and s["restored"]["at"] == s["created_at"] and s["saved_at"] == s["restored"]["taken_at"]
    kill(service)
    service = mortal("--state", str(folder))  # nothing newer is there than what that one was made from, and it says so
    assert [s["restored"]["from"] for s in service.client().get("/v1/sessions").json()["items"]] == ["periodic"] * 2
    assert "what came later is lost" in service.logged("what came later is lost")


def test_two_services_on_one_folder(executable, mortal, tmp_path):
    folder = tmp_path / "state"
    first = mortal("--state", str(folder))
    first.client().put("/v1/sessions/s", {}).expect(201)
    refused = subprocess.run([executable, "--state", str(folder), "--listen", "127.0.0.1:0", "--backends", "cpu"], capture_output=True,
                             text=True, timeout=120)
    assert refused.returncode == 1 and "another service has " + str(folder) in refused.stderr
    first.client().get("/v1/sessions/s").expect(200)
    kill(first)  # whose lock goes with it
    mortal("--state", str(folder))


def test_periodic_snapshots(mortal, tmp_path):
    folder = tmp_path / "state"
    service = mortal("--state", str(folder), "--snapshot-every", "1")
    client = service.client()
    client.put("/v1/sessions/s", {}).expect(201)
    client.put("/v1/sessions/gone", {}).expect(201)
    for name, word_ in (("s", b"old!"), ("gone", b"gone")):
        client.put_octets(f"/v1/sessions/{name}/buffers/b", word_).expect(201)
    until(lambda: left(folder) == ["gone.past.tar", "s.past.tar"] and b"old!" in (folder / b"anonymous".hex() / "s.past.tar").read_bytes())
    first = until(lambda: client.get("/v1/sessions/s").json()["saved_at"])
    client.put_octets("/v1/sessions/s/buffers/b/data", b"new!").expect(204)
    until(lambda: b"new!" in (folder / b"anonymous".hex() / "s.past.tar").read_bytes())
    second = until(lambda: client.get("/v1/sessions/s").json()["saved_at"] != first and client.get("/v1/sessions/s").json()["saved_at"])
    client.delete("/v1/sessions/gone").expect(204)
    kill(service)
    service = mortal("--state", str(folder), "--snapshot-every", "1")
    client = service.client()
    client.get("/v1/sessions/gone").expect(404)
    told = client.get("/v1/sessions/s").expect(200).json()
    assert told["restored"]["from"] == "periodic" and told["restored"]["taken_at"] >= second
    assert client.get("/v1/sessions/s/buffers/b/data").body == b"new!"
    stop(service)
    service = mortal("--state", str(folder))
    assert service.client().get("/v1/sessions/s").json()["restored"]["from"] == "shutdown"


def test_snapshots_in_between_disturb_nobody_and_are_no_use(start, tmp_path):
    """A session at work all the time has no request refused by them, and what is saved is of one moment: both words of a write, or none. One
    that nobody uses ends at its idle time all the same, and its file goes."""
    folder = tmp_path / "state"
    service = start("--state", str(folder), "--snapshot-every", "1")
    client = service.client()
    client.put("/v1/sessions/idle", {"idle_timeout_s": 5}).expect(201)
    client.put("/v1/sessions/s", {}).expect(201)
    client.put_octets("/v1/sessions/s/buffers/b", bytes(1 << 20)).expect(201)
    path = folder / b"anonymous".hex() / "s.past.tar"
    seen = set()
    count = 0
    while len(seen) < 3:
        count += 1
        client.put_octets("/v1/sessions/s/buffers/b/data", struct.pack("<I", count) * (1 << 18)).expect(204)
        if path.exists():
            with tarfile.open(path) as tar:
                words = tar.extractfile("buffers/b").read()
            assert words == words[:4] * (1 << 18)
            seen.add(words[:4])
        if count % 50 == 0:
            time.sleep(0.3)
    until(lambda: [s["id"] for s in client.get("/v1/sessions").json()["items"]] == ["s"])
    until(lambda: "idle.past.tar" not in left(folder))  # a moment after its session


def test_a_full_disk_loses_nothing(mortal, tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted without the right to")
    try:
        service = mortal("--state", str(folder), "--snapshot-every", "1")
        client = service.client()
        client.put("/v1/sessions/s", {}).expect(201)
        client.put_octets("/v1/sessions/s/buffers/b", b"small").expect(201)
        until(lambda: left(folder) == ["s.past.tar"] and client.get("/v1/sessions/s").json()["saved_at"])
        client.put_octets("/v1/sessions/s/buffers/large", bytes(4 << 20)).expect(201)
        assert "No space left" in service.logged("No space left")
        assert client.get("/v1/sessions/s/buffers/large/data").body == bytes(4 << 20)
        stop(service)
        assert "session s is not saved, its last snapshot stays: No space left on device" in service.stderr()
        assert left(folder) == ["s.past.tar"]
        service = mortal("--state", str(folder))
        client = service.client()
        assert client.get("/v1/sessions/s").json()["restored"]["from"] == "periodic"
        assert client.get("/v1/sessions/s/buffers/b/data").body == b"small"
        client.get("/v1/sessions/s/buffers/large").expect(404)
        kill(service)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_kill_leaves_what_was_saved(executable, start, tmp_path):
    """Files of another start are whole whenever the process dies: here before the first byte of the second save, and within it."""
    folder = tmp_path / "state"
    folder.mkdir()
    (tmp_path / "killed").mkdir()
    service = Service(executable, tmp_path / "killed", "--state", str(folder), variables=NO_LIBRARIES)
    client = service.client()
    client.put("/v1/sessions/s", {}).expect(201)
    client.put_octets("/v1/sessions/s/buffers/b", bytes(64 << 20)).expect(201)
    service.terminate()
    until(lambda: left(folder))  # it is being written, or there already
    service.process.send_signal(signal.SIGKILL)
    service.process.wait()
    found = left(folder)
    assert found and all(name in ("s.tar", "s.part") for name in found)
    service = start("--state", str(folder))
    client = service.client()
    if "s.tar" in found:
        assert client.get("/v1/sessions/s/buffers/b/data").body == bytes(64 << 20)
    else:
        client.get("/v1/sessions/s").expect(404)
    assert "s.part" not in left(folder)


def keyed(client, path, body, key):
    return client.post(path, body, Idempotency_Key=key)


def test_keys_and_results_travel_with_their_session(start, tmp_path):
    folder = tmp_path / "state"
    service = start("--state", str(folder))
    client = service.client()
    for name in ("s", "other"):
        client.put(f"/v1/sessions/{name}", {}).expect(201)
        client.put_cuda(f"/v1/sessions/{name}/modules/m", SOURCE).expect(201)
        client.put_octets(f"/v1/sessions/{name}/buffers/n", struct.pack("<I", 1)).expect(201)
    step = {"module": "m", "kernel": "step", "grid": [1], "block": [32], "args": [{"buf": "n"}, {"u32": 5}]}
    first = keyed(client, "/v1/sessions/s/launches", step, "once").expect(200)
    made = keyed(client, "/v1/sessions/s/buffers", {"size": 8}, "a-buffer").expect(201)
    keyed(client, "/v1/sessions/other/launches", {**step, "kernel": "none"}, "once").expect(404)
    said = {"id": "printed", "module": "p", "kernel": "say", "grid": [1], "block": [1], "args": []}
    client.put_cuda("/v1/sessions/s/modules/p", 'extern "C" __global__ void say() { printf("told\\n"); }').expect(201)
    printed = client.post("/v1/sessions/s/launches", said).expect(200).json()
    read = {"ops": [{"op": "read", "from": "n", "size": 4, "segment": "n"}]}
    good = client.post("/v1/sessions/s/batches", read, Prefer="respond-async").expect(202).headers["Location"]
    bad = client.post("/v1/sessions/s/batches", {"ops": [{"op": "read", "from": "none", "size": 4, "segment": "n"}]},
                      Prefer="respond-async").expect(202).headers["Location"]
    for path in (good, bad):
        until(lambda: client.get(path).json()["state"] in ("succeeded", "failed"))
    result, failed = client.get(good + "/result").expect(200), client.get(bad).json()
    copied = client.get("/v1/sessions/s/snapshot").expect(200).body
    stop(service)
    client = start("--state", str(folder)).client()
    again = keyed(client, "/v1/sessions/s/launches", step, "once").expect(200)
    assert again.body == first.body and again.headers["Idempotency-Replayed"] == "true" and word(client, "/v1/sessions/s") == 8
    keyed(client, "/v1/sessions/s/launches", {**step, "args": [{"buf": "n"}, {"u32": 6}]}, "once").expect(422, "idempotency_key_reused")
    again = keyed(client, "/v1/sessions/s/buffers", {"size": 8}, "a-buffer").expect(201)
    assert again.json() == made.json() and again.headers["Location"] == made.headers["Location"]
    again = keyed(client, "/v1/sessions/other/launches", {**step, "kernel": "none"}, "once").expect(404)
    assert again.json()["code"] == "kernel_not_found" and again.headers["Idempotency-Replayed"] == "true"
    kept = client.get(good + "/result").expect(200)
    assert kept.body == result.body and kept.headers["Content-Type"] == result.headers["Content-Type"]
    told = client.get(bad).json()
    assert told["state"] == "failed" and told["problem"]["code"] == failed["problem"]["code"] and told["problem"]["detail"] == failed["problem"]["detail"]
    # a launch of that id is there, whoever asks for it or sends it again
    told = client.get("/v1/sessions/s/launches/printed").expect(200).json()
    assert told == printed and told["stdout"] == "told\n" and told["gpu_us"] >= 0
    assert client.post("/v1/sessions/s/launches", said).expect(200).json() == printed
    client.post("/v1/sessions/s/launches", {**said, "grid": [2]}).expect(409, "spec_conflict")
    assert {one["id"] for one in client.get("/v1/sessions/s/launches").json()["items"]} == {"printed", first.json()["id"]}
    # a copy under another name has had no requests; its results are there
    client.put("/v1/sessions/copy", copied, Content_Type=TYPE).expect(201)
    client.get("/v1/sessions/copy/launches/printed").expect(404, "launch_not_found")
    keyed(client, "/v1/sessions/copy/launches", step, "once").expect(200)
    assert word(client, "/v1/sessions/copy") == 8 * 3 + 5
    assert client.get(good.replace("/s/", "/copy/") + "/result").expect(200).body == result.body


def test_a_restored_session_is_of_another_generation(start, tmp_path):
    """Entity tags of before are of nothing now, and addresses of before are not used."""
    service = start("--state", str(tmp_path / "state"))
    client = service.client()
    client.put("/v1/sessions/s", {}).expect(201)
    client.put_octets("/v1/sessions/s/buffers/x", b"1234").expect(201)
    tag = client.get("/v1/sessions/s/buffers/x/data").headers["ETag"]
    client.get("/v1/sessions/s/buffers", Gpurest_Generation="1").expect(200)
    client.get("/v1/sessions/s/buffers", Gpurest_Generation="one").expect(400, "invalid_header")
    refused = client.put_octets("/v1/sessions/s/buffers/x/data", b"5678", Gpurest_Generation=str(2**64 - 1)).expect(409, "generation_changed")
    assert "1, not 18446744073709551615" in refused.json()["detail"]
    stop(service)
    client = start("--state", str(tmp_path / "state")).client()
    assert client.get("/v1/sessions/s").json()["generation"] > 1
    client.post("/v1/sessions/s/batches", {"ops": [{"op": "sync"}]}, Gpurest_Generation="1").expect(409, "generation_changed")
    assert client.get("/v1/sessions/s/buffers/x/data", If_None_Match=tag).expect(200).headers["ETag"] != tag


def test_keys_end_with_their_session(client):
    """In another one of that name nothing has been done: whether it is fresh or made from a snapshot of the first."""
    step = {"module": "m", "kernel": "step", "grid": [1], "block": [32], "args": [{"buf": "n"}, {"u32": 5}]}

    def fill():
        client.put("/v1/sessions/s", {}).expect(201)
        client.put_cuda("/v1/sessions/s/modules/m", SOURCE).expect(201)
        client.put_octets("/v1/sessions/s/buffers/n", struct.pack("<I", 1)).expect(201)

    def done_twice():
        return [keyed(client, "/v1/sessions/s/launches", step, "once").expect(200).headers["Idempotency-Replayed"] for _ in range(2)]

    fill()
    saved = client.get("/v1/sessions/s/snapshot").expect(200).body
    assert done_twice() == [None, "true"] and word(client, "/v1/sessions/s") == 8
    client.put("/v1/sessions/s", {}).expect(200)
    client.post("/v1/sessions/s/reset").expect(200)
    assert done_twice() == ["true", "true"]  # the same session
    client.delete("/v1/sessions/s").expect(204)
    client.put("/v1/sessions/s", saved, Content_Type=TYPE).expect(201)
    assert done_twice() == [None, "true"] and word(client, "/v1/sessions/s") == 8
    client.delete("/v1/sessions/s").expect(204)
    fill()
    assert done_twice() == [None, "true"] and word(client, "/v1/sessions/s") == 8
    client.delete("/v1/sessions/s").expect(204)


def test_a_file_of_requests_and_results_is_checked(client):
    client.put("/v1/sessions/s", {}).expect(201)
    keyed(client, "/v1/sessions/s/buffers", {"size": 8}, "k").expect(201)
    job = client.post("/v1/sessions/s/batches", {"ops": []}, Prefer="respond-async").expect(202).headers["Location"]
    until(lambda: client.get(job).json()["state"] in ("succeeded", "failed"))
    parts = entries(client.get("/v1/sessions/s/snapshot").expect(200).body)
    client.delete("/v1/sessions/s").expect(204)
    result = next(name for name in parts if name.startswith("results/"))
    manifest = json.loads(parts["manifest.json"])
    assert manifest["version"] == 4
    for name, content in (("requests/keys.json", b"[]"), ("requests/keys.json", b'{"keys":[{"key":"00"}]}'), (result, b"{}\n"), (result, b"x"),
                          ("requests/keys.json", parts["requests/keys.json"].replace(b"application/json", b"a\\r\\nSet-Cookie: b"))):
        changed = {**parts, name: content}
        changed["manifest.json"] = json.dumps({**manifest, "parts": [{**p, "bytes": len(changed[p["path"]])} for p in manifest["parts"]]}).encode()
        answer = client.put("/v1/sessions/s", repacked(changed), Content_Type=TYPE).expect(422, "snapshot_invalid")
        assert answer.json()["detail"].startswith(name)
        client.get("/v1/sessions/s").expect(404)
    client.put("/v1/sessions/s", repacked(parts), Content_Type=TYPE).expect(201)
    assert keyed(client, "/v1/sessions/s/buffers", {"size": 8}, "k").expect(201).headers["Idempotency-Replayed"] == "true"
    client.delete("/v1/sessions/s").expect(204)


def test_a_list_of_launches_is_checked(client):
    client.put("/v1/sessions/s", {}).expect(201)
    client.put_cuda("/v1/sessions/s/modules/m", 'extern "C" __global__ void none() {}').expect(201)
    for name in ("a", "b"):
        client.post("/v1/sessions/s/launches", {"id": name, "module": "m", "kernel": "none", "grid": [1], "block": [1], "args": []}).expect(200)
    parts = entries(client.get("/v1/sessions/s/snapshot").expect(200).body)
    client.delete("/v1/sessions/s").expect(204)
    manifest = json.loads(parts["manifest.json"])
    name = manifest["parts"][-1]["path"]
    a, b = json.loads(parts[name])["launches"]
    assert (name, a["id"], b["id"]) == ("launches/ended.json", "a", "b")
    wrong = [{**a, "state": "running"}, {**a, "id": "../a"}, {**a, "id": "X"}, {**a, "digest": "00"}, {**a, "grid": [1, 2]}, {**a, "grid": [1, 1, 2**32]},
             {**a, "gpu_ns": -1}, {**a, "finished_ns": str(2**63)}, {**a, "output": "*"}, {**a, "state": "failed"}, {**a, "more": 1}, None, b]
    for content in (b"[]", b'{"launches":{}}', b'{"launches":[],"more":1}', *(json.dumps({"launches": [one, b]}).encode() for one in wrong)):
        changed = {**parts, name: content}
        changed["manifest.json"] = json.dumps({**manifest, "parts": [{**p, "bytes": len(changed[p["path"]])} for p in manifest["parts"]]}).encode()
        client.put("/v1/sessions/s", repacked(changed), Content_Type=TYPE).expect(422, "snapshot_invalid")
        client.get("/v1/sessions/s").expect(404)
    huge = {**a, "gpu_ns": str(2**63 - 1), "created_ns": str(2**63 - 1), "state": "failed", "problem": {"code": "kernel_fault", "detail": "x"}}
    changed = {**parts, name: json.dumps({"launches": [huge, b]}).encode()}
    changed["manifest.json"] = json.dumps({**manifest, "parts": [{**p, "bytes": len(changed[p["path"]])} for p in manifest["parts"]]}).encode()
    client.put("/v1/sessions/s", repacked(changed), Content_Type=TYPE).expect(201)
    told = client.get("/v1/sessions/s/launches/a").expect(200).json()
    assert told["state"] == "failed" and told["problem"]["code"] == "kernel_fault"
    client.delete("/v1/sessions/s").expect(204)


def test_what_is_answered_while_it_saves_is_saved(mortal, tmp_path):
    """Requests on connections that are there already: what comes behind the last snapshot is refused."""
    service = mortal("--state", str(tmp_path / "state"), "--drain-timeout", "30")
    client = service.client()
    for name in ("s", "t"):
        client.put(f"/v1/sessions/{name}", {}).expect(201)
        client.put_octets(f"/v1/sessions/{name}/buffers/b", b"before").expect(201)
        client.put(f"/v1/sessions/{name}/buffers/large", {"size": 128 << 20}).expect(201)
    idle = {name: socket.create_connection((service.host, service.port), timeout=60) for name in ("s", "t")}
    service.terminate()
    until(lambda: " is saved" in service.stderr())
    acknowledged = set()
    for name, connection in idle.items():
        with connection:
            try:
                connection.sendall(f"PUT /v1/sessions/{name}/buffers/b/data HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n"
                                   "Content-Type: application/octet-stream\r\n\r\nafter.".encode())
                if connection.recv(100).startswith(b"HTTP/1.1 204"):
                    acknowledged.add(name)
            except ConnectionError:
                pass
    assert service.wait() == 0
    client = mortal("--state", str(tmp_path / "state")).client()
    for name in ("s", "t"):
        assert client.get(f"/v1/sessions/{name}/buffers/b/data").body == (b"after." if name in acknowledged else b"before")


def test_who_follows_events_over_a_restart_is_told_of_the_gap(start, tmp_path):
    """The numbers go on: else a client's last one would be that of another event of the new process, and those before it would be missed."""
    folder = str(tmp_path / "state")
    service = start("--state", folder)
    client = service.client_in("s")
    client.post("/v1/sessions/s/reset").expect(200)
    seen = [line for line in client.get("/v1/sessions/s/events?timeout_seconds=1", Last_Event_ID="0").body.splitlines() if line.startswith(b"id: ")]
    stop(service)
    client = start("--state", folder).client()
    for _ in range(len(seen) + 2):
        client.post("/v1/sessions/s/reset").expect(200)
    body = client.get("/v1/sessions/s/events?timeout_seconds=1", Last_Event_ID=seen[-1][4:].decode()).body
    assert body.count(b"event: resync") == 1 and body.count(b"event: session.state") >= len(seen) + 2
    assert all(int(line[4:]) > int(seen[-1][4:]) for line in body.splitlines() if line.startswith(b"id: "))


def test_a_new_session_does_not_get_the_bytes_of_one_that_was_not_restored(mortal, tmp_path):
    """Its file waits for a start that can make it, until a client takes the name for another."""
    state, sharing = str(tmp_path / "state"), ("--listen", f"unix:{tmp_path}/socket", "--local-sharing")
    service = mortal("--state", state, *sharing)
    for name in ("s", "t"):
        client = service.client_in(name)
        client.put(f"/v1/sessions/{name}/buffers/b", {"size": 4, "shareable": True}).expect(201)
    stop(service)
    service = mortal("--state", state)
    client = service.client()
    for name in ("s", "t"):
        client.get("/v1/sessions/" + name).expect(404)
    client.put("/v1/sessions/s", {}).expect(201)
    kill(service)
    client = mortal("--state", state, *sharing).client()
    assert client.get("/v1/sessions/s").expect(404).json()["ended"]["reason"] == "node_restarted"
    client.get("/v1/sessions/t/buffers/b/data").expect(200)


def test_a_start_that_fails_takes_nothing_away(executable, mortal, tmp_path):
    state = str(tmp_path / "state")
    service = mortal("--state", state)
    service.client().put("/v1/sessions/s", {}).expect(201)
    stop(service)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        failed = subprocess.run([executable, "--state", state, "--listen", "127.0.0.1:%d" % taken.getsockname()[1], "--backends", "cpu"],
                                capture_output=True, text=True, timeout=120)
    assert failed.returncode == 1 and "session s is restored" in failed.stderr and "Address already in use" in failed.stderr
    client = mortal("--state", state).client()
    assert client.get("/v1/sessions/s").expect(200).json()["restored"]["from"] == "shutdown"
