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


async def test_the_asyncio_client(agpu, tmp_path):
    async with agpu.session() as s:
        x = await s.buffer(bytes(range(256)))
        await s.save(tmp_path / "s.tar", wait_s=30)
        copy = await agpu.load(tmp_path / "s.tar", "async-copy")
        assert [b["id"] for b in await copy.buffers()] == [x.id]
        await copy.close()
        with pytest.raises(errors.GpurestError):
            await agpu.load(io.BytesIO(b"nothing"))
