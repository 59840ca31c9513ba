"""GPUREST_CLI names the tool under test, GPURESTD the service that it uses."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "service"))

from fixtures import executable, named_by, service  # noqa: E402, F401


@pytest.fixture(scope="session")
def tool():
    return named_by("GPUREST_CLI", "gpurest to test")


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
def gpurest(bare, service):  # noqa: F811
    """As bare(), with the service's URL."""
    return lambda *arguments, **more: bare(*arguments, **{"GPUREST_URL": f"http://127.0.0.1:{service.port}", **more})
