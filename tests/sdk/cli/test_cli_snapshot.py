"""session save, load, copy: sessions as files."""
import tarfile

import pytest

from fixtures import executable  # noqa: F401
from service_under_test import Service

OK, FAILED, USAGE, NOT_FOUND, BUSY = 0, 1, 2, 5, 8


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
    copied = gpurest("session", "copy", "snap", f"http://127.0.0.1:{service.port}", "copied", "--device", "cpu")
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


def test_move(gpurest, nodes, tmp_path):
    old, new = nodes
    here, there = ("--url", f"http://127.0.0.1:{old.port}"), ("--url", f"http://127.0.0.1:{new.port}")
    (tmp_path / "x.bin").write_bytes(bytes(range(256)) * 8192)
    assert gpurest(*here, "connect", "mv").returncode == OK
    assert gpurest(*here, "--session", "mv", "buf", "put", "x", "x.bin").returncode == OK
    refused = gpurest(*here, "session", "move", "mv", "http://127.0.0.1:1")
    assert refused.returncode != OK
    assert gpurest(*here, "--session", "mv", "buf", "put", "y", "x.bin").returncode == OK  # it is not held
    moved = gpurest(*here, "session", "move", "mv", there[1])
    assert moved.returncode == OK, moved.stderr
    got = gpurest(*there, "--session", "mv", "buf", "get", "y", "y.bin")
    assert got.returncode == OK and (tmp_path / "y.bin").read_bytes() == (tmp_path / "x.bin").read_bytes(), got.stderr
    gone = gpurest(*here, "--session", "mv", "buf", "get", "x", "z.bin")
    assert gone.returncode == BUSY and b"moved" in gone.stderr


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
