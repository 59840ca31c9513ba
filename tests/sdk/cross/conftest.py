"""GPURESTD names the service that the programs for Windows, which run in Wine, are tested against."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "service"))

from fixtures import executable, service  # noqa: E402, F401

CANNOT = 77
BUILD_DEADLINE_S = 3600  # at the lowest priority, beside all other tests
RUN_DEADLINE_S = 600


@pytest.fixture(scope="session")
def built():
    """The folder with a folder for each target."""
    done = subprocess.run([ROOT / "scripts/cross-clients.sh"], capture_output=True, text=True, timeout=BUILD_DEADLINE_S)
    if done.returncode == CANNOT:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return ROOT / "build/cross"


@pytest.fixture(scope="session")
def wine(tmp_path_factory):
    """wine(program, *arguments, stdin=…, cwd=…, **environment) runs a program for Windows."""
    if not shutil.which("wine"):
        pytest.skip("wine is not installed (Debian's package of this name)")
    prefix = tmp_path_factory.mktemp("wine")
    kept = {"PATH": os.environ["PATH"], "HOME": str(prefix), "WINEPREFIX": str(prefix / "prefix"), "WINEDEBUG": "-all", "LC_ALL": "C.UTF-8",
            "WINEDLLOVERRIDES": "mscoree,mshtml="}  # offers to install nothing

    def run(program, *arguments, stdin=b"", cwd=prefix, **environment):
        return subprocess.run(["wine", str(program), *map(str, arguments)], input=stdin, capture_output=True, cwd=cwd, timeout=RUN_DEADLINE_S,
                              env={**kept, **environment})

    made = run("wineboot", "--init")
    if made.returncode:
        pytest.skip(f"wine does not start here: {made.stderr.decode(errors='replace')[-300:]}")
    yield run
    subprocess.run(["wineserver", "-k"], env=kept, timeout=RUN_DEADLINE_S)


@pytest.fixture
def gpurest(built, wine, service, tmp_path):  # noqa: F811
    """Runs the command line for Windows in the test's folder, with the service's URL."""
    program = built / "x86_64-windows/bin/gpurest.exe"
    return lambda *arguments, **more: wine(program, *arguments, **{"GPUREST_URL": f"http://127.0.0.1:{service.port}", "cwd": tmp_path, **more})
