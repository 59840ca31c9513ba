"""Numba's own CUDA target runs unchanged on the cpu device. It makes PTX with NVVM, which no GPU is needed for."""
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import ROOT, named_by

PLACES = [pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")), pathlib.Path("/usr/local/cuda"), ROOT / ".nvrtc" / "nvidia" / "cu13"]


def find(*names):
    return next((path for place in PLACES for name in names for path in sorted(place.glob(name))), None)


@pytest.fixture(scope="module")
def cuda_home(tmp_path_factory):
    """A folder in the form that Numba looks for, whether a toolkit or wheels hold the parts."""
    if not importlib.util.find_spec("numba"):
        pytest.skip("numba is not installed: pip install -r tests/requirements.txt")
    parts = {"nvvm/lib64/libnvvm.so.4": find("nvvm/lib64/libnvvm.so.4", "lib/libnvvm.so.4", "lib64/libnvvm.so.4"),
             "nvvm/libdevice/libdevice.10.bc": find("nvvm/libdevice/libdevice.10.bc"), "lib64/libcudart.so": find("lib/libcudart.so.1[23]", "lib64/libcudart.so.1[23]")}
    home = tmp_path_factory.mktemp("cuda")
    for name, path in parts.items():
        if not path:
            pytest.skip(f"{name} is not here: scripts/fetch-nvrtc.sh --tests fetches it where no CUDA toolkit is installed")
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).symlink_to(path)
    (home / "lib64" / "libcudadevrt.a").write_bytes(b"!<arch>\n")  # the cpu device has its functions itself
    return home


def run_numba(cuda_home, url, name, *options):
    program = pathlib.Path(__file__).with_name("numba_program.py")
    return subprocess.run([named_by("GPUREST_CLI", "gpurest to test"), "exec", *options, "--", sys.executable, "-W", "ignore", program, name], capture_output=True, text=True,
                          timeout=600, env={**os.environ, "CUDA_HOME": str(cuda_home), "GPUREST_URL": url})


@pytest.mark.parametrize("name,printed", [("vectoradd", []), ("reduction", []), ("streams", []), ("grids", []), ("printing", [f"thread {i} of 3" for i in range(3)])])
def test_numba_program(cuda_home, url, name, printed):
    done = run_numba(cuda_home, url, name)
    assert done.returncode == 0 and done.stdout.splitlines() == [*printed, name], (done.stdout, done.stderr[-3000:])


def test_numba_program_under_memcheck(cuda_home, url):
    """The report names the kernel as Numba mangles it, and the line of the Python source."""
    done = run_numba(cuda_home, url, "overrun", "--memcheck")
    source = (ROOT / "tests" / "sdk" / "shim" / "numba_program.py").read_text().splitlines()
    line = source.index("    x[cuda.grid(1)] = 1") + 1
    report = [text for text in done.stdout.splitlines() if text.startswith("=====")]
    assert done.returncode == 0 and report[0] == "========= GPUREST MEMCHECK" and report[-1] == "========= ERROR SUMMARY: 2 errors", (done.stdout, done.stderr[-3000:])
    assert report[1] == "========= Invalid __global__ write of size 4 bytes" and report[3] == "=========     by thread (100,0,0) in block (0,0,0)", report
    assert "4fill" in report[2] and report[2].endswith(f" in numba_program.py:{line}"), report
    assert "and is 1 bytes after the nearest allocation" in report[5] and report[5].endswith(" of size 400 bytes"), report
