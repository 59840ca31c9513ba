"""GPUREST_CLI names the tool under test, GPURESTD the service that it uses."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "service"))

from service_under_test import Service  # noqa: E402


@pytest.fixture(scope="session")
def tool():
    path = os.environ.get("GPUREST_CLI")
    if not path:
        pytest.skip("GPUREST_CLI does not name a gpurest to test")
    return str(pathlib.Path(path).resolve())


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    path = os.environ.get("GPURESTD")
    if not path:
        pytest.skip("GPURESTD does not name a gpurestd to test against")
    one = Service(str(pathlib.Path(path).resolve()), tmp_path_factory.mktemp("service"), warm_compiler=True)
    yield one
    one.stop()


@pytest.fixture
def bare(tool, tmp_path):
    """bare(*arguments, stdin=…, **environment) runs the tool in a new folder, without a service."""

    def run(*arguments, stdin=b"", **environment):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS")}
        done = subprocess.run([tool, *arguments], input=stdin, capture_output=True, cwd=tmp_path, timeout=120,
                              env={**kept, "HOME": str(tmp_path), **environment})
        assert b"Sanitizer" not in done.stderr, done.stderr
        return done

    return run


@pytest.fixture
def gpurest(bare, service):
    """As bare(), with the service's URL."""
    return lambda *arguments, **more: bare(*arguments, **{"GPUREST_URL": f"http://127.0.0.1:{service.port}", **more})
