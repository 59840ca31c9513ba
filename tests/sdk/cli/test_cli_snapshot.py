"""session save, load, copy, move: sessions as files, and from node to node."""
import http.client
import http.server
import subprocess
import tarfile
import threading
import time

import pytest

from fixtures import executable  # noqa: F401
from service_under_test import Service, until

OK, FAILED, USAGE, UNREACHABLE, NOT_FOUND = 0, 1, 2, 3, 5


def test_save_load_copy(gpurest, service, tmp_path):
    (tmp_path / "x.bin").write_bytes(bytes(range(256)) * 8192)
    assert gpurest("connect", "snap").returncode == OK
    assert gpurest("--session", "snap", "buf", "put", "x", "x.bin").returncode == OK
    assert gpurest("session", "save", "snap", "s.tar").returncode == OK
    with tarfile.open(tmp_path / "s.tar") as tar:
        assert tar.extractfile("buffers/x").read() == (tmp_path / "x.bin").read_bytes()
    to_pipe = gpurest("session", "save", "snap", "-")
    assert to_pipe.returncode == OK and len(to_pipe.stdout) == (tmp_path / "s.tar").stat().st_size
    loaded = gpurest("session", "load", "s.tar", "loaded")
    assert loaded.returncode == OK and b"loaded is restored" in loaded.stderr
    copied = gpurest("session", "copy", "snap", f"http://127.0.0.1:{service.port}", "copied", "--device", "cpu", TMPDIR="/nowhere")
    assert copied.returncode == OK, copied.stderr
    for name in ("loaded", "copied"):
        got = gpurest("--session", name, "buf", "get", "x", f"{name}.bin")
        assert got.returncode == OK and (tmp_path / f"{name}.bin").read_bytes()[-256:] == bytes(range(256)), got.stderr
        assert gpurest("sessions", "rm", name, "--yes").returncode == OK
    assert sorted(p.name for p in tmp_path.iterdir() if "part" in p.name) == []


def test_refusals(gpurest, tmp_path):
    missing = gpurest("session", "save", "nobody", "s.tar")
    assert missing.returncode == NOT_FOUND and b"unknown session" in missing.stderr and not (tmp_path / "s.tar").exists()
    (tmp_path / "bad.tar").write_bytes(b"x" * 5000)
    bad = gpurest("session", "load", "bad.tar", "bad")
    assert bad.returncode == FAILED and b"ustar" in bad.stderr
    assert gpurest("session", "load", "none.tar", "bad").returncode == FAILED
    for wrong in (("session",), ("session", "save", "a"), ("session", "fly", "a", "b"), ("session", "save", "a", "b", "--device", "cpu")):
        assert gpurest(*wrong).returncode == USAGE


@pytest.fixture
def nodes(executable, tmp_path_factory):  # noqa: F811
    """(the old one, from which sessions may go to the new one; that)"""
    new = Service(executable, tmp_path_factory.mktemp("new"))
    old = Service(executable, tmp_path_factory.mktemp("old"), "--move-to", f"http://127.0.0.1:{new.port}")
    yield old, new
    old.stop()
    new.stop()


def test_events_go_on_at_the_other_node(gpurest, nodes, tool, tmp_path):
    old, new = nodes
    here = ("--url", f"http://127.0.0.1:{old.port}")
    assert gpurest(*here, "connect", "ev").returncode == OK
    told = tmp_path / "told"
    with open(told, "wb") as out, subprocess.Popen([tool, *here, "--session", "ev", "events", "--seconds", "600"], stdout=out) as following:
        try:
            until(lambda: old.client().post("/v1/sessions/ev/reset").status == 200 and b"session.state" in told.read_bytes())
            until(lambda: gpurest(*here, "session", "move", "ev", f"http://127.0.0.1:{new.port}").returncode == OK)
            until(lambda: b"event: resync" in told.read_bytes())
            before = told.read_bytes().count(b"session.state")
            until(lambda: new.client().post("/v1/sessions/ev/reset").status == 200 and told.read_bytes().count(b"session.state") > before)
            numbers = [int(line[4:]) for line in told.read_bytes().splitlines() if line.startswith(b"id: ")]
            assert numbers == sorted(numbers)
            new.client().delete("/v1/sessions/ev").expect(204)
            assert following.wait(120) == OK  # with the session
        finally:
            following.kill()


def test_move(gpurest, nodes, tmp_path):
    old, new = nodes
    here, there = ("--url", f"http://127.0.0.1:{old.port}"), ("--url", f"http://127.0.0.1:{new.port}")
    (tmp_path / "x.bin").write_bytes(bytes(range(256)) * 8192)
    assert gpurest(*here, "connect", "mv").returncode == OK
    assert gpurest(*here, "--session", "mv", "buf", "put", "x", "x.bin").returncode == OK
    refused = gpurest(*here, "session", "move", "mv", "http://127.0.0.1:1")
    assert refused.returncode != OK
    assert gpurest(*here, "--session", "mv", "buf", "put", "y", "x.bin").returncode == OK  # it is not held
    moved = gpurest(*here, "session", "move", "mv", there[1], TMPDIR="/nowhere")  # no file is made
    assert moved.returncode == OK, moved.stderr
    got = gpurest(*there, "--session", "mv", "buf", "get", "y", "y.bin")
    assert got.returncode == OK and (tmp_path / "y.bin").read_bytes() == (tmp_path / "x.bin").read_bytes(), got.stderr
    followed = gpurest(*here, "--session", "mv", "buf", "get", "x", "z.bin")
    assert followed.returncode == OK and (tmp_path / "z.bin").read_bytes() == (tmp_path / "x.bin").read_bytes(), followed.stderr
    assert gpurest(*here, "--session", "mv", "buf", "put", "z", "x.bin").returncode == OK
    assert b"x\ny\nz\n" == gpurest(*there, "--session", "mv", "--output", "name", "buffers", "ls").stdout
    saved = gpurest(*here, "session", "save", "mv", "s.tar")
    assert saved.returncode == OK and tarfile.is_tarfile(tmp_path / "s.tar"), saved.stderr


@pytest.fixture
def proxy(nodes):
    """An address of the old node; .cut: the end of the path of requests whose answers break; .at: after how many bytes of the body, None: before any."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            node = http.client.HTTPConnection("127.0.0.1", nodes[0].port, timeout=120)
            node.request(self.command, self.path, body or None, {k: v for k, v in self.headers.items() if k == "Content-Type"})
            answer = node.getresponse()
            found = answer.read()
            node.close()
            cut = bool(proxy.cut) and self.path.split("?")[0].endswith(proxy.cut)
            self.close_connection = cut
            if cut and proxy.at is None:
                return
            self.send_response(answer.status)
            for name in ("Content-Type", "Content-Length"):
                if answer.headers[name]:
                    self.send_header(name, answer.headers[name])
            self.end_headers()
            self.wfile.write(found[:proxy.at] if cut else found)

        do_GET = do_PUT = do_POST = do_DELETE = forward

        def log_message(self, *_):
            pass

    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.cut, proxy.at = None, None
    proxy.url = f"http://127.0.0.1:{proxy.server_port}"
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    yield proxy
    proxy.shutdown()
    thread.join()
    proxy.server_close()


def test_what_breaks_on_the_way(gpurest, nodes, proxy, tmp_path):
    """Half a snapshot makes no session, and the one that it is of goes on; a lost answer to the last step is no lost session."""
    there = f"http://127.0.0.1:{nodes[1].port}"
    (tmp_path / "x.bin").write_bytes(bytes(range(256)) * 8192)
    assert gpurest("--url", proxy.url, "connect", "cut").returncode == OK
    assert gpurest("--url", proxy.url, "--session", "cut", "buf", "put", "x", "x.bin").returncode == OK
    proxy.cut, proxy.at = "/snapshot", 1 << 20
    for arguments in (("copy", "cut", there, "copied"), ("move", "cut", there)):
        broken = gpurest("--url", proxy.url, "session", *arguments)
        assert broken.returncode == UNREACHABLE and b"GET /v1/sessions/cut/snapshot" in broken.stderr, broken.stderr
        until = time.monotonic() + 60  # what had begun there ends when it is seen to be cut
        while (left := gpurest("--url", there, "--output", "name", "sessions", "ls").stdout) and time.monotonic() < until:
            time.sleep(0.1)
        assert left == b""
    assert gpurest("--url", proxy.url, "--session", "cut", "buf", "put", "y", "x.bin").returncode == OK  # it is not held
    assert gpurest("session", "copy", "cut", there, "../x", GPUREST_URL=proxy.url).returncode == USAGE
    proxy.cut, proxy.at = "/move/complete", None
    moved = gpurest("--url", proxy.url, "session", "move", "cut", there)
    assert moved.returncode == OK and b"cut is at " in moved.stderr, moved.stderr
    got = gpurest("--url", there, "--session", "cut", "buf", "get", "y", "y.bin")
    assert got.returncode == OK and (tmp_path / "y.bin").read_bytes() == (tmp_path / "x.bin").read_bytes(), got.stderr


def test_a_session_whose_id_the_service_chose(gpurest, nodes):
    old, new = (f"http://127.0.0.1:{node.port}" for node in nodes)
    own = nodes[0].client().post("/v1/sessions", {}).json()["id"]
    moved = gpurest("--url", old, "session", "move", own, new)
    assert moved.returncode == OK, moved.stderr
    assert gpurest("--url", old, "sessions", "get", own).returncode == OK
    listed = gpurest("--url", new, "--output", "name", "sessions", "ls").stdout.split()
    assert len(listed) == 1 and listed[0].startswith(b"s_") and listed[0] != own.encode()


def test_a_move_to_where_it_is(gpurest, nodes):
    """Nobody is told to delete the only one."""
    here = f"http://127.0.0.1:{nodes[0].port}"
    assert gpurest("--url", here, "connect", "same").returncode == OK
    moved = gpurest("--url", here, "session", "move", "same", here)
    assert moved.returncode == FAILED and b"same is not moved: there is a session same at" in moved.stderr and b"delete" not in moved.stderr
    for arguments in (("move", "same", ""), ("copy", "same", "", "other"), ("move", "--all", "")):
        assert gpurest("--url", here, "session", *arguments).returncode == USAGE
    assert gpurest("--url", here, "--output", "name", "sessions", "ls").stdout == b"same\n"


def test_move_all(gpurest, nodes):
    """One that cannot go holds up no other."""
    old, new = nodes
    here, there = ("--url", f"http://127.0.0.1:{old.port}"), ("--url", f"http://127.0.0.1:{new.port}")
    for where, name in ((here, "a"), (here, "b"), (here, "c"), (there, "b")):
        assert gpurest(*where, "connect", name).returncode == OK
    assert gpurest(*here, "drain", "--yes").returncode == OK
    some = gpurest(*here, "session", "move", "--all", there[1])
    assert some.returncode != OK and b"b is not moved" in some.stderr and b"2 moved, 1 not" in some.stderr
    assert gpurest(*here, "sessions", "ls", "-o", "name").stdout.split() == [b"b"]
    assert sorted(gpurest(*there, "sessions", "ls", "-o", "name").stdout.split()) == [b"a", b"b", b"c"]
    assert gpurest(*there, "sessions", "rm", "b", "--yes").returncode == OK
    assert gpurest(*here, "session", "move", "--all", there[1]).returncode == OK
    assert gpurest(*here, "session", "move", "--all", there[1]).stderr.endswith(b"0 moved, 0 not\n")
    assert gpurest(*here, "session", "save", "--all", "x").returncode == USAGE
