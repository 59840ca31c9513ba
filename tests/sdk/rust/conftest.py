"""GPURESTD names the service that the crate is tested against; the library that it is linked with is in the same build tree."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "service"))

from service_under_test import Service, is_sanitized  # noqa: E402

CRATE = ROOT / "sdk/rust"
TARGET = ROOT / "build/rust"
CARGO_DEADLINE_S = 900


@pytest.fixture(scope="session")
def executable():
    path = os.environ.get("GPURESTD")
    if not path:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    if is_sanitized(path):
        pytest.skip("a library with a sanitizer does not go into a Rust program")
    return pathlib.Path(path).resolve()


@pytest.fixture(scope="session")
def library(executable):
    """The folder of libgpurest."""
    folder = executable.parents[1] / "sdk/c"
    assert (folder / "libgpurest.so.1").exists(), f"{folder} has no libgpurest"
    return folder


@pytest.fixture(scope="session")
def other_url(executable, tmp_path_factory):
    """A node to which sessions may move."""
    one = Service(str(executable), tmp_path_factory.mktemp("other"), warm_compiler=True)
    yield f"http://127.0.0.1:{one.port}"
    one.stop()


@pytest.fixture(scope="session")
def url(executable, other_url, tmp_path_factory):
    one = Service(str(executable), tmp_path_factory.mktemp("service"), "--move-to", other_url, "--hibernate-mib", "64", warm_compiler=True)
    yield f"http://127.0.0.1:{one.port}"
    one.stop()


@pytest.fixture(scope="session")
def cargo(library):
    """cargo(*arguments, …) runs it offline, in the crate's folder. Warnings are errors."""
    if not shutil.which("cargo") or not shutil.which("rustc"):
        pytest.skip("cargo and rustc are not installed (Debian's packages of these names)")

    def run(*arguments, folder=CRATE, **variables):
        # The loader's path is for programs in the documentation, which cargo does not give one.
        env = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), "CARGO_NET_OFFLINE": "true", "RUSTFLAGS": "-D warnings", "RUSTDOCFLAGS": "-D warnings",
               "GPUREST_LIB_DIR": str(library), "LD_LIBRARY_PATH": str(library), **variables}
        return subprocess.run(["cargo", *arguments], cwd=folder, env={name: value for name, value in env.items() if value is not None}, capture_output=True,
                              text=True, timeout=CARGO_DEADLINE_S)

    return run
