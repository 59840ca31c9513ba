"""The workflow of docs/howto/cuda-ci.md: its steps, as they stand there, on a small CUDA project. The bundle that GPUREST_BUNDLE names is what the
workflow's cache restores. Steps that install packages are left out; what they bring is this machine's, laid out as they lay it out."""
import dataclasses
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML, which reads the workflow, is not installed")

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "howto" / "cuda-ci.md"
STEP_DEADLINE_S = 600
PYTEST, BUILD, CTEST = "Test kernels of Numba", "Build programs of nvcc", "Test programs of nvcc"
LEFT_OUT = {"Install Debian's packages": "it changes the machine, whose packages the other steps use",
            "Fetch the tests' packages": "it fetches 200 MB; the other steps use those of this Python"}
TOOLKITS = [pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")), pathlib.Path("/usr/local/cuda"), ROOT / ".nvrtc" / "nvidia" / "cu13"]
NUMBA = """import numpy as np
from numba import cuda


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i {bound} x.size:
        x[i] *= 2


def test_double():
    x = np.arange(1000, dtype=np.float32)
    double[4, 256](x)
    assert (x == 2 * np.arange(1000)).all()
"""
PROGRAM = """#include <cstdio>

__global__ void twice(float *x, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i {bound} n)
        x[i] *= 2;
}}

int main()
{{
    const int n = 1000;
    float x[n], *d;
    for (int i = 0; i < n; i++)
        x[i] = i;
    if (cudaMalloc(&d, sizeof x) || cudaMemcpy(d, x, sizeof x, cudaMemcpyHostToDevice))
        return 1;
    twice<<<(n + 255) / 256, 256>>>(d, n);
    if (cudaMemcpy(x, d, sizeof x, cudaMemcpyDeviceToHost)) {{
        puts(cudaGetErrorString(cudaGetLastError()));
        return 1;
    }}
    for (int i = 0; i < n; i++)
        if (x[i] != 2 * i)
            return 1;
    return cudaFree(d);
}}
"""
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(example LANGUAGES CXX CUDA)
enable_testing()
add_executable(double tests/double.cu)
add_test(NAME double COMMAND double)
"""


def workflow():
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    return yaml.safe_load(text)


STEPS = workflow()["jobs"]["cpu"]["steps"]


def write_project(folder, bound="<"):
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests" / "test_double.py").write_text(NUMBA.format(bound=bound))
    (folder / "tests" / "double.cu").write_text(PROGRAM.format(bound=bound))
    (folder / "CMakeLists.txt").write_text(CMAKE)


def find(*names):
    return next((path for place in TOOLKITS for name in names for path in sorted(place.glob(name))), None)


def lay_out_wheels(folder):
    """This machine's parts of a CUDA toolkit in the folders of NVIDIA's packages for pip, without the links that those lack. What is missing is left out."""
    parts = {"lib/libnvvm.so.4": find("lib/libnvvm.so.4", "nvvm/lib64/libnvvm.so.4"), "lib/libcudart.so.13": find("lib/libcudart.so.13", "lib64/libcudart.so.13"),
             "lib/libcudart_static.a": find("lib/libcudart_static.a", "lib64/libcudart_static.a"), "lib/libcudadevrt.a": find("lib/libcudadevrt.a", "lib64/libcudadevrt.a"),
             "nvvm/libdevice": find("nvvm/libdevice"), "nvvm/bin": find("nvvm/bin"), "bin": find("bin"), "include": find("include")}
    for name, path in parts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if path:
            (folder / name).symlink_to(path)


@dataclasses.dataclass
class Runner:
    """Runs steps as a runner of GitHub does: each in a shell of its own, in the project's folder, with what earlier ones added to $PATH and the environment."""
    project: pathlib.Path
    files: pathlib.Path

    def __post_init__(self):
        for name in ("GITHUB_PATH", "GITHUB_ENV"):
            (self.files / name).touch()

    def environment(self):
        added = (self.files / "GITHUB_PATH").read_text().split()
        variables = dict(line.split("=", 1) for line in (self.files / "GITHUB_ENV").read_text().splitlines())
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUREST", "CUDA", "NUMBA", "PYTEST")) and name != "LD_LIBRARY_PATH"}
        return {**kept, "PATH": ":".join([*reversed(added), os.environ["PATH"]]), "GITHUB_PATH": str(self.files / "GITHUB_PATH"),
                "GITHUB_ENV": str(self.files / "GITHUB_ENV"), "HOME": str(self.files), "PYTHONDONTWRITEBYTECODE": "1", **variables}

    def run(self, step):
        environment = {**self.environment(), **step.get("env", {})}
        return subprocess.run(["bash", "-e", "-c", step["run"]], cwd=self.project, env=environment, capture_output=True, text=True, timeout=STEP_DEADLINE_S)


def step_named(name):
    (step,) = [step for step in STEPS if step["name"] == name]
    return step


def missing_for(step):
    """Why the step cannot run on this machine, or None."""
    if step["name"] in LEFT_OUT:
        return LEFT_OUT[step["name"]]
    if step["name"] == PYTEST:
        if not importlib.util.find_spec("numba"):
            return "numba is not installed: pip install -r tests/requirements.txt"
        return None if find("lib/libnvvm.so.4", "nvvm/lib64/libnvvm.so.4") else "NVVM is not here: scripts/fetch-nvrtc.sh --tests fetches it"
    if step["name"] in (BUILD, CTEST):
        toolkit = find("bin/nvcc") and find("lib/libcudart.so.13", "lib64/libcudart.so.13")
        return None if toolkit and shutil.which("g++") else "nvcc of CUDA 13 or g++ is not here: a CUDA toolkit has the first"
    return None


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    """A runner with the project and gpurest's archive in it, after the steps before the first test."""
    archive = os.environ.get("GPUREST_BUNDLE")
    if not archive:
        pytest.skip("GPUREST_BUNDLE does not name a bundle: cmake --build BUILD --target bundle makes one")
    made = Runner(tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("files"))
    write_project(made.project)
    restored = made.project / step_named("Restore gpurest")["with"]["path"]
    restored.parent.mkdir(parents=True)
    restored.symlink_to(pathlib.Path(archive).resolve())
    lay_out_wheels(made.project / f".venv/lib/python3.{sys.version_info.minor}/site-packages/nvidia/cu13")
    (made.files / "GITHUB_PATH").write_text(f"{pathlib.Path(sys.executable).parent}\n")
    return made


@pytest.fixture(scope="module")
def ran(runner):
    """ran(name): the finished process of the step, which runs once, after those before it."""
    done = {}

    def run(name):
        for step in STEPS:
            if "run" in step and "if" not in step and not missing_for(step) and step["name"] not in done:
                done[step["name"]] = runner.run(step)
            if step["name"] == name:
                return done[name]

    return run


@pytest.mark.parametrize("name", [step["name"] for step in STEPS if "run" in step and "if" not in step])
def test_step(name, request):
    if reason := missing_for(step_named(name)):
        pytest.skip(reason)
    done = request.getfixturevalue("ran")(name)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert {PYTEST: "1 passed", CTEST: "100% tests passed, 0 tests failed out of 1"}.get(name, "") in done.stdout


def test_numba_uses_the_toolkit_that_was_made(runner, ran):
    """Not one that the loader knows on this machine."""
    if reason := missing_for(step_named(PYTEST)):
        pytest.skip(reason)
    ran(PYTEST)
    code = "from numba.cuda import cuda_paths, cudadrv; print(cuda_paths.get_cuda_paths()['nvvm'].info, cudadrv.libs.get_cudalib('cudart'))"
    done = runner.run({"run": f'python3 -c "{code}"'})
    home = runner.environment()["CUDA_HOME"]
    assert home.startswith(str(runner.project)) and done.stdout == f"{home}/nvvm/lib64/libnvvm.so.4 {home}/lib64/libcudart.so.13\n", (done.stdout, done.stderr)


@pytest.mark.parametrize("name", [PYTEST, CTEST])
def test_a_kernel_beyond_its_memory_fails_the_job(name, runner, ran):
    """Although its results are right: only --memcheck sees it."""
    if reason := missing_for(step_named(name)):
        pytest.skip(reason)
    assert ran(name).returncode == 0
    write_project(runner.project, bound="<=")
    try:
        if name == CTEST:
            assert runner.run(step_named(BUILD)).returncode == 0
        wrong = runner.run(step_named(name))
        careless = runner.run({"run": step_named(name)["run"].replace("--memcheck ", "")})
    finally:
        write_project(runner.project)
    assert wrong.returncode != 0 and "illegal" in wrong.stdout.lower(), (wrong.stdout, wrong.stderr)
    assert careless.returncode == 0, (careless.stdout, careless.stderr)


def test_what_is_built_is_what_is_kept_and_unpacked():
    """The step runs where the cache has nothing; `make test` makes the bundle, and the others are run with it."""
    build, kept = step_named("Build gpurest"), step_named("Restore gpurest")["with"]["path"]
    folder, target = re.fullmatch(r"make -C (\w+) (\w+)", build["run"]).groups()
    assert build["if"] == f"steps.{step_named('Restore gpurest')['id']}.outputs.cache-hit != 'true'"
    assert step_named("Check out gpurest")["with"]["path"] == folder and kept in step_named("Unpack gpurest")["run"]
    assert re.search(rf"^{target}: setup$", (ROOT / "Makefile").read_text(), re.M)
    assert f"{folder}/build/release/gpurest-bundle.tar.gz" == kept


def test_every_step_has_a_name_and_what_is_left_out_is_a_step():
    names = [step["name"] for step in STEPS]
    assert len(set(names)) == len(names) and LEFT_OUT.keys() <= set(names)
    assert all(("run" in step) != ("uses" in step) for step in STEPS)
