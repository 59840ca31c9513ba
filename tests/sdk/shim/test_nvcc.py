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


def built_and_run(source, way, tmp_path, url):
    """Its exit code and its lines."""
    version = subprocess.run([NVCC, "--version"], capture_output=True, text=True, check=True).stdout
    if "release 13." not in version:
        pytest.skip("the library is that of CUDA 13")
    subprocess.run([NVCC, "-cudart", "shared", *WAYS[way], pathlib.Path(__file__).with_name(source), "-o", tmp_path / "program"], check=True, timeout=600)
    done = subprocess.run([named_by("GPUREST_CLI", "gpurest to test"), "exec", "--", tmp_path / "program"], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "GPUREST_URL": url})
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.splitlines()


@pytest.mark.parametrize("way", WAYS)
def test_program_of_nvcc(tmp_path, url, way):
    assert built_and_run("runtime_program.cu", way, tmp_path, url) == ["sum 32640", "sum 0", "PASS"]


def test_textures_of_nvcc(tmp_path, url):
    assert built_and_run("textures_program.cu", "default", tmp_path, url) == ["PASS"]


def test_the_static_runtime_is_told_what_to_do(tmp_path, url):
    (tmp_path / "program.cu").write_text("#include <cstdio>\nint main() { int n; return cudaGetDeviceCount(&n) == cudaSuccess ? 0 : 7; }\n")
    subprocess.run([NVCC, tmp_path / "program.cu", "-o", tmp_path / "program"], check=True, timeout=600)
    done = subprocess.run([named_by("GPUREST_CLI", "gpurest to test"), "exec", "--", tmp_path / "program"], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "GPUREST_URL": url})
    assert done.returncode == 7 and done.stderr.count("-cudart shared") == 1, done.stderr
