"""The library stands beside the command line tool that GPUREST_CLI names, in the same build; GPURESTD names the service."""
import ctypes
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "service"))

from fixtures import executable, named_by, service  # noqa: E402, F401


@pytest.fixture(scope="session")
def build():
    """The build folder."""
    return pathlib.Path(named_by("GPUREST_CLI", "gpurest to test")).resolve().parents[2]


@pytest.fixture(scope="session")
def library(build):
    return build / "sdk" / "shim" / "lib" / "libcuda.so.1"


@pytest.fixture(scope="session")
def driver(library):
    """The library in this process, without a service."""
    return ctypes.CDLL(str(library))


@pytest.fixture
def run_program(build, library, tmp_path):
    """run_program(name, *arguments, url=…, code=0, **environment): one of the programs here; its standard output and standard error."""

    def run(name, *arguments, url, code=0, **environment):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS")}
        done = subprocess.run([build / "tests" / "sdk" / "shim" / "programs" / name, *arguments], capture_output=True, text=True, timeout=300, cwd=tmp_path,
                              env={**kept, "LD_LIBRARY_PATH": str(library.parent), "GPUREST_URL": url, **environment})
        assert done.returncode == code and "Sanitizer" not in done.stderr, (done.returncode, done.stdout, done.stderr)
        return done.stdout, done.stderr

    return run


@pytest.fixture
def url(service):  # noqa: F811
    return f"http://127.0.0.1:{service.port}"
