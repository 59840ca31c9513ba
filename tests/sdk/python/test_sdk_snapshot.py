"""Sessions as files: Session.save(), Client.load(), in both clients."""
import io
import os
import tarfile

import pytest

from gpurest import errors
from sources import SAXPY


def test_save_and_load(gpu, tmp_path):
    file = tmp_path / "s.tar"
    with gpu.session(labels={"a": "b"}) as s:
        x = s.buffer(size=8 << 20)
        x.write(bytes(range(256)) * (8 << 12))
        s.module(SAXPY)
        s.save(file)
        assert os.listdir(tmp_path) == ["s.tar"] and file.stat().st_mode & 0o77 == 0
        held = io.BytesIO()
        s.save(held, wait_s=5)
        with tarfile.open(file) as tar:
            assert f"buffers/{x.id}" in tar.getnames()
        for source in (file, str(file), io.BytesIO(held.getvalue())):
            with gpu.load(source, device="cpu") as copy:
                assert copy.info()["labels"] == {"a": "b"} and copy.info()["usage"]["modules"] == 1
                assert any(b["id"] == x.id and b["size"] == 8 << 20 for b in copy.buffers())
        with gpu.load(file, "named-copy") as named:
            assert named.id == "named-copy"
            with pytest.raises(errors.GpurestError, match="exists"):
                gpu.load(file, "named-copy")


def test_what_fails_leaves_the_old_file(gpu, tmp_path):
    file = tmp_path / "s.tar"
    with gpu.session() as s:
        s.buffer(size=4096)
        s.save(file)
        before = file.read_bytes()
    with pytest.raises(errors.GpurestError):
        s.save(file)
    assert file.read_bytes() == before and os.listdir(tmp_path) == ["s.tar"]
    for bad in (before[:-2000], b"x" * 4096):
        file.write_bytes(bad)
        with pytest.raises(errors.GpurestError) as refused:
            gpu.load(file, "bad")
        assert refused.value.code == "snapshot_invalid"
    file.write_bytes(b"")
    with pytest.raises(errors.GpurestError, match="empty"):
        gpu.load(file)


def buffers_of(file):
    with tarfile.open(file) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar if m.name.startswith("buffers/")}


def refused(gpu, match, new, old):
    with pytest.raises(errors.GpurestError, match=match):
        gpu.load(new, "refused", base=old)
    assert "refused" not in [s["id"] for s in gpu.sessions()]


def test_beside_an_older_file(gpu, tmp_path):
    """What the older file has is not written again; both make the session. A damaged base, another one and none are refused, and nothing is restored."""
    old, new, again, other, copied = (tmp_path / name for name in ("old.tar", "new.tar", "again.tar", "other.tar", "copied.tar"))
    random = os.urandom(9 << 20)
    with gpu.session() as s:
        _, _, changing = s.buffer(random), s.buffer(random), s.buffer(b"before")
        s.save(old)
        changing.write(b"after!")
        s.save(new, base=old)
        s.save(again, base=new)  # which has the large bytes only by name
        with pytest.raises(errors.ArgumentError, match="itself"):
            s.save(old, base=old)
        with pytest.raises(errors.ArgumentError, match="named"):
            gpu.load(io.BytesIO(new.read_bytes()), base=old)
        changing.write(b"others")
        s.save(other)
    assert new.stat().st_size < 1 << 20 < 18 << 20 < again.stat().st_size
    assert list(buffers_of(again).values()) == [random, random] and list(buffers_of(new).values()) == [b"after!"]
    for source, base in ((new, old), (again, new)):
        with gpu.load(source, base=base) as copy:
            copy.save(copied)
        assert buffers_of(copied) == {**buffers_of(again), **buffers_of(new)}
    with pytest.raises(errors.GpurestError, match="put them back") as without:
        gpu.load(new, "refused")
    assert without.value.code == "snapshot_invalid"
    refused(gpu, "new.tar.* has not the bytes of buffers/", new, new)
    refused(gpu, "other.tar.* has not the bytes of buffers/", again, other)  # of the small one
    whole = old.read_bytes()
    old.write_bytes(whole.replace(random, b"damaged" + random[7:]))
    refused(gpu, "old.tar.*buffers/.* is damaged", new, old)
    with gpu.session() as s, pytest.raises(errors.GpurestError, match="is damaged"):
        s.save(copied, base=old)  # before it is too late
    for cut in (whole[:9 << 20], whole[:700], b"x" * 4096):
        old.write_bytes(cut)
        refused(gpu, "old.tar.*no snapshot", new, old)
    assert sorted(os.listdir(tmp_path)) == ["again.tar", "copied.tar", "new.tar", "old.tar", "other.tar"]


async def test_the_asyncio_client(agpu, tmp_path):
    async with agpu.session() as s:
        x = await s.buffer(bytes(range(256)))
        await s.save(tmp_path / "s.tar", wait_s=30)
        await s.save(tmp_path / "less.tar", base=tmp_path / "s.tar")
        copy = await agpu.load(tmp_path / "less.tar", "async-copy", base=tmp_path / "s.tar")
        assert [b["id"] for b in await copy.buffers()] == [x.id]
        await copy.save(tmp_path / "copy.tar")
        assert buffers_of(tmp_path / "copy.tar") == {f"buffers/{x.id}": bytes(range(256))} and not buffers_of(tmp_path / "less.tar")
        await copy.close()
        with pytest.raises(errors.GpurestError):
            await agpu.load(io.BytesIO(b"nothing"))
