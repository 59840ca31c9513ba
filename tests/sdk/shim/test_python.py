"""cuda.core and PyCUDA run unchanged on the cpu device: allocations, streams, launches of every form, events and graphs."""
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import named_by
from fatbins import ptx

PACKAGES = {"core_program.py": ("cuda.core", "pip install -r tests/requirements.txt"), "pycuda_program.py": ("pycuda", "pip install pycuda compiles it, where a CUDA toolkit is")}


def is_installed(name):
    """A parent that is not there is an error of find_spec."""
    return all(importlib.util.find_spec(".".join(name.split(".")[:parts])) for parts in range(1, name.count(".") + 2))


@pytest.mark.parametrize("program", PACKAGES)
def test_program(tmp_path, url, program):
    package, how = PACKAGES[program]
    if not is_installed(package):
        pytest.skip(f"{package} is not installed: {how}")
    (tmp_path / "kernels.ptx").write_bytes(ptx().rstrip(b"\0"))
    done = subprocess.run([named_by("GPUREST_CLI", "gpurest to test"), "exec", "--", sys.executable, pathlib.Path(__file__).with_name(program), tmp_path / "kernels.ptx"],
                          capture_output=True, text=True, timeout=600, env={**os.environ, "GPUREST_URL": url})
    assert done.returncode == 0 and done.stdout == "PASS\n", (done.stdout, done.stderr[-3000:])
