"""--state: sessions that outlive the service."""
import os
import signal
import struct

from conftest import floats
from service_under_test import Service, until
from test_snapshot import HEADED_MODULE, PROGRAM, SOURCE, variable, word
from test_start_and_auth import token_file


def stop(service):
    service.terminate()
    assert service.wait() == 0


def left(folder):
    return sorted(name for _, _, names in os.walk(folder) for name in names)


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
    assert "session named is restored" in service.stderr()  # before it was ready
    assert {s["id"] for s in client.get("/v1/sessions").json()["items"]} == {"named", chosen.rpartition("/")[2]}
    assert client.get("/v1/sessions/named").json()["labels"] == {"a": "b"}
    for path in ("/v1/sessions/named", chosen):
        assert word(client, path) == 32 and variable(client, path, "table") == floats([5, 6, 7, 8])
        client.post(path + "/programs/p/runs", {}).expect(200)
        assert word(client, path) == 32 * 27 + 5
    assert left(folder) == []
    client.delete(chosen).expect(204)
    stop(service)
    assert left(folder) == ["named.tar"]


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
    assert left(folder) == ["s.tar.damaged"]
    stop(service)
    tokens = token_file(tmp_path / "others.json", bob=["read"])  # alice's token is gone: her sessions wait for it
    service = start("--state", str(folder), "--tokens", tokens)
    assert service.client().request("GET", "/v1/sessions/t/buffers/b/data", headers=bob).body == b"of bob.."
    assert (folder / b"alice".hex() / "t.tar").exists()


def test_a_kill_leaves_what_was_saved(executable, start, tmp_path):
    """Files of another start are whole whenever the process dies: here before the first byte of the second save, and within it."""
    folder = tmp_path / "state"
    folder.mkdir()
    (tmp_path / "killed").mkdir()
    service = Service(executable, tmp_path / "killed", "--state", str(folder))
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
    assert left(folder) == []
