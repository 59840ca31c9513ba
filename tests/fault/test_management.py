"""A management library that answers any call with any error, or never: unreadable values are unknown, nothing else changes, and the watch
goes on."""
import pathlib
import re
import shutil

import pytest

import workload
from campaign import FULL, Campaign, until
from driver import Driver
from kernels import fill7

DEFINITIONS = (pathlib.Path(__file__).resolve().parents[2] / "service/device/cuda/nvml.def").read_text()
FUNCTIONS = re.findall(r"^NVML\((\w+),", DEFINITIONS, re.M)
OF_SETTINGS = re.compile(r"Device(Set|Reset)|DefaultLimit|NumFans")  # asked by operators only
ASKED_AGAIN = [name for name in FUNCTIONS  # after a device monitor's start
               if name not in ("nvmlInit_v2", "nvmlEventSetCreate", "nvmlDeviceRegisterEvents") and not OF_SETTINGS.search(name)]
ERRORS = (1, 2, 3, 4, 6, 9, 10, 15, 16, 17, 18, 23, 999)
LOST = ("nvmlDeviceGetHandleByUUID", 15)  # this one means that the device is gone


@pytest.fixture
def managed(executable, start, tmp_path):
    """(steer, client) of a service on the fake driver and its management library."""
    driver = Driver(executable, tmp_path)
    shutil.copy(pathlib.Path(executable).parents[1] / "tests/support/libnvidia-ml.so.1", tmp_path / "libnvidia-ml.so.1")

    def steer(words):
        (tmp_path / "new").write_text(words)
        (tmp_path / "new").rename(tmp_path / "fake-nvml")

    steer("")
    client = start("--backends", "cuda", "--libcuda", str(driver.path), "--pool-size", "1").client()
    workload.prepare(client)
    until(lambda: device(client)["temperature_c"] == 41, "the library is not asked")
    return steer, client


def device(client):
    return client.get("/v1/devices/cuda:0").json()


def computes(client):
    return client.post(workload.S + "/launches", fill7()).status == 200 and client.get(workload.S + "/buffers/x/data", Range="bytes=0-3").body == b"\7\0\0\0"


def test_every_error_at_every_call_of_the_library(managed):
    steer, client = managed
    with Campaign("errors of the management library", 4, 0.02) as c:
        cases = [(function, error) for function in FUNCTIONS for error in ERRORS if (function, error) != LOST]
        c.random.shuffle(cases)
        for function, error in cases:
            c.note = f"the last: {function} {error}"
            steer(f"{function}:fails={error}")
            c.fault()
            assert device(client)["state"] == "healthy", (function, error)
            assert computes(client)
            steer("")
            until(lambda: device(client)["temperature_c"] == 41, (function, error))
            c.recovered()
            if not c.due():
                break


def restarts(client):
    return client.get("/readyz?verbose=1").json()["devices"][0]["restarts"]


@pytest.mark.skipif(not FULL, reason="each takes a device monitor's whole deadline, 10 s")
def test_calls_of_the_library_that_never_return(managed):
    steer, client = managed
    with Campaign("calls of the library that hang", 0, 0.05) as c:
        for function in ASKED_AGAIN:
            c.note = f"the last: {function}"
            before = restarts(client)
            steer(f"{function}:hangs=1")
            c.fault()
            device(client)
            assert computes(client), "who has a worker goes on"
            steer("")
            until(lambda: restarts(client) > before and client.get("/readyz").status == 200, f"{function}: the monitor is not replaced", 90)
            assert computes(client)
            c.recovered()
            if not c.due():
                break
