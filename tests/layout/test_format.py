"""C sources are formatted as `make format-check` demands. Only with the version of clang-format that they are written with: each version
formats a little differently."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = "14"  # Debian 12's


def version():
    tool = shutil.which("clang-format")
    said = tool and subprocess.run([tool, "--version"], capture_output=True, text=True, timeout=60).stdout
    found = re.search(r"version (\d+)", said or "")
    return found and found[1]


def test_what_is_laid_out_by_hand_is_there():
    files = [line for line in (ROOT / ".clang-format-ignore").read_text().splitlines() if line and not line.startswith("#")]
    assert files == sorted(files) and not [name for name in files if not (ROOT / name).is_file()]


@pytest.mark.skipif(version() != VERSION, reason=f"clang-format {VERSION} is not installed")
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no git clone")
def test_sources_are_formatted():
    done = subprocess.run(["make", "-s", "format-check"], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
