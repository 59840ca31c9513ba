"""--state: what is told of sessions whose names clients chose, and that went with a killed service."""
import os
import subprocess

import pytest

from service_under_test import until
from test_snapshot import TYPE
from test_start_and_auth import as_caller, token_file
from test_state import kill, mortal, stop  # noqa: F401


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def tokens(tmp_path):
    return token_file(tmp_path / "tokens.json", alice=["read", "write"], bob=["read", "write"])


def reason(client, name):
    return client.get("/v1/sessions/" + name).expect(404, "session_not_found").json().get("ended", {}).get("reason")


def marks(folder, caller="anonymous"):
    return sorted(name.removesuffix(".live") for name in os.listdir(folder / caller.encode().hex()) if name.endswith(".live"))


def test_a_killed_service_tells_of_names_that_clients_chose(mortal, folder, tokens):  # noqa: F811
    """Its caller, until the session is made again; not of one that had ended before, and nobody else."""
    def begin():
        service = mortal("--node", "n1", "--state", str(folder), "--tokens", tokens)
        return service, as_caller(service, "alice"), as_caller(service, "bob")

    service, alice, bob = begin()
    for name in ("train", "n1.other", "deleted"):
        alice.put("/v1/sessions/" + name).expect(201)
    for spec in ({"idle_timeout_s": 1}, {"lease_s": 1}, {"max_lifetime_s": 1}):
        alice.put("/v1/sessions/" + next(iter(spec)), spec).expect(201)
    bob.put("/v1/sessions/of-bob").expect(201)
    chosen = alice.post("/v1/sessions").expect(201).json()["id"]
    alice.delete("/v1/sessions/deleted").expect(204)
    until(lambda: marks(folder, "alice") == ["other", "train"])
    kill(service)

    service, alice, bob = begin()
    for name in ("train", "n1.train", "other", "n1.other", chosen):
        assert reason(alice, name) == "node_restarted"
    assert "restarted" in alice.get("/v1/sessions/train/buffers/b").expect(404, "session_not_found").json()["detail"]
    for name in ("deleted", "idle_timeout_s", "lease_s", "max_lifetime_s", "of-bob", "never"):
        assert reason(alice, name) is None
    assert reason(bob, "train") is None and reason(bob, "of-bob") == "node_restarted"
    alice.put("/v1/sessions/train").expect(201)
    alice.delete("/v1/sessions/train").expect(204)
    assert reason(alice, "train") == "deleted"
    kill(service)

    service, alice, bob = begin()
    assert reason(alice, "train") is None and reason(alice, "n1.other") == "node_restarted"
    assert marks(folder, "alice") == ["other"] and marks(folder, "bob") == ["of-bob"]


def test_what_is_restored_is_not_lost_and_what_ends_then_is_deleted(mortal, folder):  # noqa: F811
    service = mortal("--state", str(folder))
    client = service.client()
    for name in ("stays", "goes"):
        client.put("/v1/sessions/" + name).expect(201)
    client.put("/v1/sessions/copy", client.get("/v1/sessions/stays/snapshot").expect(200).body, Content_Type=TYPE).expect(201)
    assert marks(folder) == ["copy", "goes", "stays"]
    stop(service)
    service = mortal("--state", str(folder))
    client = service.client()
    client.put("/v1/sessions/fresh", {}).expect(201)
    client.delete("/v1/sessions/goes").expect(204)
    assert reason(client, "goes") == "deleted"
    kill(service)
    service = mortal("--state", str(folder))
    client = service.client()
    for name in ("stays", "copy"):
        client.get("/v1/sessions/" + name).expect(200)
    assert reason(client, "fresh") == "node_restarted" and reason(client, "goes") is None


def test_a_session_that_did_not_start_leaves_no_mark(mortal, folder):  # noqa: F811
    service = mortal("--state", str(folder))
    client = service.client()
    client.put("/v1/sessions/none", {"device": "cpu:99"}).expect(404)
    client.put("/v1/sessions/none", b"no snapshot", Content_Type=TYPE).expect(422)
    client.put("/v1/sessions/some").expect(201)
    assert marks(folder) == ["some"]


def test_a_full_disk_refuses_no_session_and_a_deleted_one_is_not_told(mortal, folder):  # noqa: F811
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=6", "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted without the right to")
    try:
        service = mortal("--state", str(folder))
        client = service.client()
        names = [f"s{number}" for number in range(5)]
        for name in names:
            client.put("/v1/sessions/" + name).expect(201)
        assert "nobody would be told that session s4 went with it: No space left" in service.logged("session s4 went with it")
        known = marks(folder)
        assert known and known == names[:len(known)]
        client.delete("/v1/sessions/s0").expect(204)
        kill(service)
        service = mortal("--state", str(folder))
        client = service.client()
        assert [reason(client, name) for name in names] == [None] + ["node_restarted"] * (len(known) - 1) + [None] * (5 - len(known))
        kill(service)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_without_a_folder_a_name_bears_no_mark(mortal):  # noqa: F811
    service = mortal("--node", "n1")
    service.client().put("/v1/sessions/train").expect(201)
    kill(service)
    assert reason(mortal("--node", "n1").client(), "train") is None
