"""Programs that nvcc makes run over the library of the runtime, where nvcc is installed; runtime.c has its calls for everywhere else."""
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import named_by

NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
pytestmark = pytest.mark.skipif(not NVCC, reason="nvcc is not here: a CUDA toolkit has it")
WAYS = {"default": [], "per_thread": ["--default-stream", "per-thread"], "ptx": ["-gencode", "arch=compute_75,code=compute_75"], "plain": ["--no-compress"]}


@pytest.mark.parametrize("way", WAYS)
def test_program_of_nvcc(tmp_path, url, way):
    version = subprocess.run([NVCC, "--version"], capture_output=True, text=True, check=True).stdout
    if "release 13." not in version:
        pytest.skip("the library is that of CUDA 13")
    source = pathlib.Path(__file__).with_name("runtime_program.cu")
    subprocess.run([NVCC, "-cudart", "shared", *WAYS[way], source, "-o", tmp_path / "program"], check=True, timeout=600)
    done = subprocess.run([named_by("GPUREST_CLI", "gpurest to test"), "exec", "--", tmp_path / "program"], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "GPUREST_URL": url})
    assert (done.returncode, done.stdout.splitlines()) == (0, ["sum 32640", "sum 0", "PASS"]), done.stderr
