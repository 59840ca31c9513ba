"""A service on a GPU that does not exist: the fake driver and its management library, which a file beside them steers."""
import json
import pathlib
import shutil

import pytest

from conftest import VADD, floats
from kernels import FAULTS, launch, launch_vadd
from service_under_test import Service, until


@pytest.fixture
def driver(executable, tmp_path):
    """steer(words), and the fake libraries' folder."""
    support = pathlib.Path(executable).parents[1] / "tests" / "support"
    libraries = tmp_path / "driver"
    libraries.mkdir()
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        if not (support / name).exists():
            pytest.skip("the fake driver is not built")
        shutil.copy(support / name, libraries / name)

    def steer(words):
        (libraries / "new").write_text(words)
        (libraries / "new").rename(libraries / "fake-nvml")

    steer("")
    return steer, libraries


def start(executable, tmp_path, libraries, *more):
    folder = tmp_path / "service"
    folder.mkdir()
    return Service(executable, folder, "--libcuda", str(libraries / "libcuda.so.1"), "--backends", "cuda", "--vendor-libraries", "off", *more)


def device(client):
    return client.get("/v1/devices/cuda:0").json()


def prepare(client, session, **spec):
    """A session with a module and buffers."""
    assert client.put(session, spec or None).status == 201
    made = client.put_cuda(session + "/modules/m", VADD)
    if made.status == 503:
        pytest.skip("no NVRTC on this machine")
    assert made.status == 201, made
    for name, step in (("a", 1), ("b", 2), ("c", 0)):
        assert client.put_octets(f"{session}/buffers/{name}", floats(step * i for i in range(1024))).status == 201
    assert client.post(session + "/launches", launch_vadd()).status == 200
    return session


def run_for_ever(client, session):
    """The path of a launch that only its deadline, or somebody else, ends."""
    assert client.put_cuda(session + "/modules/f", FAULTS).status == 201
    sent = client.post(session + "/launches", launch("endless", {"buf": "c"}, timeout_ms=600000), Prefer="respond-async")
    assert sent.status == 202, sent
    path = sent.headers["Location"]
    until(lambda: client.get(path).json()["state"] == "running", "it does not begin")
    return path


def events(client, session, kind):
    """What the session's events of that kind told so far."""
    text = client.get(f"{session}/events?timeout_seconds=1&types={kind}", Last_Event_ID="0").body.decode()
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def script_of(libraries):
    """Where the driver's script is; before the service starts."""
    script = pathlib.Path(str(libraries / "libcuda.so.1") + ".script")
    script.write_bytes(bytes(4096))
    return script


def says(script, text):
    """How the driver answers from now on, in running processes, too."""
    with open(script, "r+b") as page:
        page.write(text.encode() + b"\0")


def tool(folder, text):
    """An nvidia-smi that notes how it was called, and by which processes of the service's it is accompanied; then does that."""
    path = folder / "nvidia-smi"
    path.write_text(f'#!/bin/sh\necho "$*" >> {folder}/calls\n'
                    f'for p in $(cat /proc/$PPID/task/*/children 2> /dev/null); do tr "\\0" " " < /proc/$p/cmdline >> {folder}/beside; done\n{text}\n')
    path.chmod(0o755)
    return path
