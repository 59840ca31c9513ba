"""The folder of compiled code is full, damaged or removed. Compilation goes on, and nothing wrong is ever loaded."""
import errno
import os
import pathlib
import shutil

import workload
from campaign import Campaign
from kernels import FAULTS, fill7


def entries(folder):
    return [path for path in pathlib.Path(folder).rglob("*") if path.is_file()]


def compiled(client, source=FAULTS):
    """Whether it came from the cache; checks that the code is right."""
    client.delete(workload.S + "/modules/f")
    made = client.put_cuda(workload.S + "/modules/f", source).expect(201)
    assert client.post(workload.S + "/launches", fill7()).status == 200
    assert client.get(workload.S + "/buffers/x/data", Range="bytes=0-3").body == b"\7\0\0\0"
    return made.json()["cached"]


def test_damaged_entries(start, tmp_path):
    service = start("--cache", str(tmp_path / "cache"))
    client = service.client()
    workload.prepare(client)
    with Campaign("damaged entries of the code cache", 3, 0.03) as c:
        while c.due():
            assert compiled(client) or compiled(client)
            entry = c.random.choice(entries(tmp_path / "cache"))
            whole = bytearray(entry.read_bytes())
            where, way = c.random.randrange(len(whole)), c.random.randrange(4)
            if way == 0:
                whole[where] ^= 1 << c.random.randrange(8)
            elif way == 1:
                whole = whole[:where]
            elif way == 2:
                whole += whole[where:]
            else:
                whole[where:where + 64] = c.random.randbytes(64)
            entry.write_bytes(whole)
            c.fault()
            assert not compiled(client), "a damaged entry was taken"
            assert compiled(client), "the entry was not made anew"
            c.recovered()


def test_a_folder_that_goes(start, tmp_path):
    service = start("--cache", str(tmp_path / "cache"))
    client = service.client()
    workload.prepare(client)
    with Campaign("the code cache's folder goes", 2, 0.01) as c:
        for harm in (lambda: shutil.rmtree(tmp_path / "cache"), lambda: (tmp_path / "cache").mkdir(), lambda: os.chmod(tmp_path / "cache", 0)):
            harm()
            c.fault()
            compiled(client)
            c.recovered()
    os.chmod(tmp_path / "cache", 0o700)


def test_a_full_disk(shimmed, tmp_path):
    service, shim = shimmed("--cache", str(tmp_path / "cache"))
    client = service.client()
    workload.prepare(client)
    with Campaign("a full disk", 2, 0.02) as c:
        number = 0
        while c.due():
            for function, error in (("write", errno.ENOSPC), ("write", errno.EDQUOT), ("fsync", errno.ENOSPC), ("openat", errno.EROFS), ("renameat", errno.ENOSPC)):
                number += 1
                source = FAULTS + f"// {number}\n"
                shim.arm(function, c.random.randrange(2), error, times=1000)
                compiled(client, source)
                c.fault(max(1, shim.disarm()))
                left = [path for path in entries(tmp_path / "cache") if path.name.startswith("tmp-")]
                assert not left, left
                compiled(client, source)
                assert compiled(client, source), "kept again once there is room"
                c.recovered(c.injected - c.survived)
