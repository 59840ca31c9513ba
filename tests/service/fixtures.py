"""Fixtures that several folders of tests share. GPURESTD names the executable under test."""
import os
import pathlib

import pytest

from service_under_test import Service


# Each device worker loads these libraries at its start, which takes more than half of its processor time. Tests of compiled kernels pass --cpu-jit;
# tests of the libraries use a service of their own.
NO_LIBRARIES = {"GPUREST_CPU_JIT": "off", "GPUREST_VENDOR_LIBRARIES": "off"}


def named_by(variable="GPURESTD", what="gpurestd to test"):
    """The file that a variable names; skips the test without."""
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} does not name a {what}")
    return str(pathlib.Path(path).resolve())


@pytest.fixture(scope="session")
def executable():
    return named_by()


@pytest.fixture
def start(executable, tmp_path):
    """start(*arguments) runs a service for one test; it must stop in order. With `libraries` its workers load what they load by default."""
    running = []

    def start_one(*arguments, libraries=False, variables=None, **options):
        folder = tmp_path / f"service{len(running)}"
        folder.mkdir()
        chosen = {**({} if libraries else NO_LIBRARIES), **(variables or {})}
        running.append(Service(executable, folder, *arguments, variables=chosen, **options))
        return running[-1]

    yield start_one
    for service in running:
        service.stop()


@pytest.fixture(scope="session")
def service(executable, tmp_path_factory):
    """The service that most tests share."""
    one = Service(executable, tmp_path_factory.mktemp("service"), warm_compiler=True, variables=NO_LIBRARIES)
    yield one
    one.stop()


@pytest.fixture(scope="module")
def vulkan(executable, tmp_path_factory):
    """A service of vulkan devices, lavapipe where there is no GPU."""
    try:
        one = Service(executable, tmp_path_factory.mktemp("vulkan"), "--backends", "vulkan")
    except Exception as why:  # noqa: BLE001 whatever it is, its text tells
        if "no backend has a device" in str(why) or "DEVICE_NOT_FOUND" in str(why):
            pytest.skip("no Vulkan device is here")
        raise
    asked = one.client()
    asked.put("/v1/sessions/asks")
    answer = asked.put("/v1/sessions/asks/modules/m", "#version 450\nvoid main() {}\n", Content_Type="text/x-glsl")
    asked.delete("/v1/sessions/asks")
    asked.close()
    if answer.status == 503 and answer.json()["code"] == "compiler_unavailable":
        one.stop()
        pytest.skip("no compiler for shaders is here: glslang-dev, spirv-tools")
    yield one
    one.stop()


def first(*files):
    """A hook that lets these start first: one process runs a whole file, and a long file that starts late delays the end."""
    def pytest_collection_modifyitems(items):
        items.sort(key=lambda item: item.path.stem not in files)
    return pytest_collection_modifyitems
