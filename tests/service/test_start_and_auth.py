"""Settings with which the service refuses to start; tokens, scopes, and that callers do not see each other."""
import hashlib
import json
import os
import signal
import subprocess
import time

import pytest

from service_under_test import environment


def fails(executable, tmp_path, *arguments):
    done = subprocess.run([executable, *arguments], env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    return done.returncode, [line for line in done.stderr.splitlines() if line.startswith("gpurestd: ")]


@pytest.mark.parametrize("address", [":0", "0.0.0.0:0", "[::]:0"])
def test_beyond_loopback(executable, tmp_path, address):
    code, lines = fails(executable, tmp_path, "--listen", address, "--backends", "cpu")
    assert code == 1 and len(lines) == 1 and "--tokens" in lines[0] and "--insecure-no-auth" in lines[0]
    code, lines = fails(executable, tmp_path, "--listen", address, "--backends", "cpu", "--insecure-no-auth")
    assert code == 1 and len(lines) == 1 and "--allow-plaintext" in lines[0]


def test_beyond_loopback_when_it_is_wanted(start):
    service = start("--insecure-no-auth", "--allow-plaintext", listen="0.0.0.0:0")
    assert service.client().get("/livez").status == 200


def test_unix_socket(start, tmp_path):
    service = start("--listen", f"unix:{tmp_path}/s")
    assert service.addresses[1] == f"unix:{tmp_path}/s"


@pytest.mark.parametrize("arguments,word", [
    (["--nonsense"], "--nonsense"), (["--threads", "17"], "--threads"), (["--log-level", "loud"], "--log-level"), (["stray"], "stray"),
])
def test_bad_settings(executable, tmp_path, arguments, word):
    code, lines = fails(executable, tmp_path, *arguments)
    assert code == 2 and len(lines) == 1 and word in lines[0]


@pytest.mark.parametrize("arguments", [["--listen", "nonsense"], ["--listen", "127.0.0.1:99999"], ["--tokens", "missing.json"],
                                       ["--backends", "abacus"]])
def test_settings_that_cannot_work(executable, tmp_path, arguments):
    code, lines = fails(executable, tmp_path, "--backends", "cpu", *arguments)
    assert code == 1 and len(lines) == 1


def test_help_and_version(executable, tmp_path):
    for flag, word in (("--help", "--listen"), ("--version", "gpurestd ")):
        done = subprocess.run([executable, flag], env=environment(tmp_path), capture_output=True, text=True, timeout=60, check=True)
        assert word in done.stdout


def token_file(path, **scopes):
    rows = [{"name": name, "sha256": hashlib.sha256((name + "-secret").encode()).hexdigest(), "scopes": granted} for name, granted in scopes.items()]
    path.write_text(json.dumps({"tokens": rows}))
    path.chmod(0o600)
    return str(path)


ALL = ["read", "write", "compile", "launch", "metrics", "admin"]


@pytest.fixture
def guarded(start, tmp_path):
    return start("--tokens", token_file(tmp_path / "tokens.json", alice=ALL, bob=ALL, reader=["read"]))


def as_caller(service, name):
    return service.client(Authorization=f"Bearer {name}-secret")


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Bearer ", "Basic YTpi", "alice-secret", "Bearer alice-secret2"])
def test_no_or_bad_token(guarded, header):
    client = guarded.client(**({"Authorization": header} if header else {}))
    for path in ("/v1/sessions", "/version", "/nowhere"):
        answer = client.get(path)
        assert answer.status == 401 and answer.code == "unauthenticated" and answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert client.get("/livez").status == 200 and client.get("/readyz").status == 200
    assert client.get("/readyz?verbose=1").status == 401


def test_scopes(guarded):
    reader = as_caller(guarded, "reader")
    assert reader.get("/v1/sessions").status == 200 and reader.get("/version").status == 200
    for answer in (reader.post("/v1/sessions"), reader.put("/v1/sessions/x"), reader.delete("/v1/sessions/x"), reader.get("/readyz?verbose=1")):
        assert answer.status == 403 and answer.code == "insufficient_scope"
    assert as_caller(guarded, "alice").get("/readyz?verbose=1").status == 200


def without_the_request(problem):
    return {name: value for name, value in problem.items() if name not in ("instance", "request_id")}


def test_callers_do_not_see_each_other(guarded):
    alice, bob = as_caller(guarded, "alice"), as_caller(guarded, "bob")
    made = alice.post("/v1/sessions").json()["id"]
    nobodys = made[:-2] + ("00" if made[-2:] != "00" else "11")  # of this process, too: its first characters name that
    foreign, missing = bob.get("/v1/sessions/" + made), bob.get("/v1/sessions/" + nobodys)
    assert foreign.status == missing.status == 404
    assert without_the_request(foreign.json()) == without_the_request(missing.json())
    assert bob.delete("/v1/sessions/" + made).code == "session_not_found"
    assert bob.put_octets(f"/v1/sessions/{made}/buffers/a", b"x").code == "session_not_found"
    assert bob.get("/v1/sessions").json()["items"] == []
    assert bob.put("/v1/sessions/demo").status == 201 and alice.put("/v1/sessions/demo").status == 201, "names are each caller's own"
    assert alice.get("/v1/sessions/" + made).status == 200


def test_tokens_are_read_anew(guarded, tmp_path):
    alice, bob = as_caller(guarded, "alice"), as_caller(guarded, "bob")
    assert alice.put("/v1/sessions/kept").status == 201
    token_file(tmp_path / "tokens.json", alice=ALL, carol=ALL)
    guarded.process.send_signal(signal.SIGHUP)
    while (status := bob.get("/version").status) == 200:  # a client with an unknown token soon has to wait
        pass
    assert status == 401
    assert as_caller(guarded, "carol").get("/version").status == 200
    assert alice.get("/v1/sessions/kept").status == 200, "a caller keeps its sessions"


def starts_with(executable, tmp_path, path):
    return fails(executable, tmp_path, "--listen", "127.0.0.1:0", "--backends", "cpu", "--tokens", str(path))


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o664])
def test_a_tokens_file_that_others_may_write(executable, tmp_path, mode):
    path = tmp_path / "tokens.json"
    token_file(path, alice=ALL)
    path.chmod(mode)
    code, lines = starts_with(executable, tmp_path, path)
    assert code == 1 and len(lines) == 1 and f"(mode {mode:04o}): chmod go-w" in lines[0]
    checked = subprocess.run([executable, "--check-config", "--tokens", str(path)], env=environment(tmp_path), capture_output=True, text=True, timeout=60)
    assert checked.returncode == 2 and "chmod go-w" in checked.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_tokens_file_of_somebody_else(executable, tmp_path):
    path = tmp_path / "tokens.json"
    token_file(path, alice=ALL)
    os.chown(path, 12345, 0)
    code, lines = starts_with(executable, tmp_path, path)
    assert code == 1 and len(lines) == 1 and "user 12345 owns the token file; its owner must be root" in lines[0]


@pytest.mark.parametrize("names", [("alice", "bob"), ("alice", "alice")])
def test_a_token_stands_once(executable, tmp_path, names):
    path = tmp_path / "tokens.json"
    digest = hashlib.sha256(b"shared").hexdigest()
    path.write_text(json.dumps({"tokens": [{"name": name, "sha256": digest if i else digest.upper(), "scopes": ["read"]} for i, name in enumerate(names)]}))
    path.chmod(0o600)
    code, lines = starts_with(executable, tmp_path, path)
    assert code == 1 and len(lines) == 1 and "entry 1: an earlier entry has the same token" in lines[0]
    assert digest not in lines[0].lower()


def test_a_bad_file_leaves_the_tokens_as_they_were(guarded, tmp_path):
    alice = as_caller(guarded, "alice")
    path = tmp_path / "tokens.json"
    for spoil, words in ((lambda: path.chmod(0o666), "chmod go-w"),
                         (lambda: path.write_text(path.read_text().replace('"bob"', '"alice"').replace(hashlib.sha256(b"bob-secret").hexdigest(),
                                                                                                      hashlib.sha256(b"alice-secret").hexdigest())),
                          "an earlier entry has the same token"),
                         (lambda: (path.unlink(), os.mkfifo(path, 0o600)), "does not reach its end: a pipe must end within 10 s")):
        spoil()
        guarded.process.send_signal(signal.SIGHUP)
        assert "the old tokens stay valid" in guarded.logged(words, 120)
        assert alice.get("/version").status == 200 and as_caller(guarded, "bob").get("/version").status == 200
        if path.is_file():
            token_file(path, alice=ALL, bob=ALL)


def test_tokens_from_a_fifo(executable, tmp_path):
    """Nobody writes to the FIFO: that is an error, not a start that never ends."""
    path = tmp_path / "fifo"
    os.mkfifo(path, 0o600)
    code, lines = starts_with(executable, tmp_path, path)
    assert code == 1 and len(lines) == 1 and "does not reach its end: a pipe must end within 10 s" in lines[0]


def test_tokens_from_a_pipe(executable, tmp_path):
    """As <(...) of a shell makes it, with a slow writer."""
    token_file(tmp_path / "tokens.json", alice=ALL)
    script = 'exec "$0" --check-config --tokens <(sleep 0.3; cat "$1"; sleep 0.3; echo)'
    done = subprocess.run(["bash", "-c", script, executable, str(tmp_path / "tokens.json")], env=environment(tmp_path), capture_output=True, text=True,
                          timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_port_file_replaces_a_link_and_follows_none(executable, tmp_path):
    """The service does not write to files that another user has put there, for example in /tmp: neither under the port file's name nor
    under one that is easy to guess."""
    target = tmp_path / "target"
    target.write_text("precious\n")
    for name in "ports", "ports.new":
        (tmp_path / name).symlink_to(target)
    process = subprocess.Popen([executable, "--port-file", str(tmp_path / "ports"), "--listen", "127.0.0.1:0", "--backends", "cpu",
                                "--drain-timeout", "0", "--no-warm-compiler"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=environment(tmp_path), cwd=tmp_path)
    try:
        deadline = time.monotonic() + 60
        while (tmp_path / "ports").is_symlink():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.01)
        assert (tmp_path / "ports").read_text().startswith("127.0.0.1:")
    finally:
        process.terminate()
        assert process.wait(60) == 0
    assert target.read_text() == "precious\n" and not [p for p in tmp_path.iterdir() if p.name.startswith("ports.") and p.name != "ports.new"]
