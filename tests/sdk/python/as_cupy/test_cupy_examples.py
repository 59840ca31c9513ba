"""CuPy's own examples with the one changed line: `gpurest.` before cupy's and cupyx's names where they are imported. They are not in this tree:
GPUREST_CUPY_EXAMPLES names the folder `examples` of a checkout of CuPy, else nothing is run."""
import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import ROOT

EXAMPLES = os.environ.get("GPUREST_CUPY_EXAMPLES")
pytestmark = pytest.mark.skipif(not EXAMPLES, reason="GPUREST_CUPY_EXAMPLES does not name the folder examples of a checkout of CuPy")
LIMIT_S = 600
CUSTOM = ["--use-custom-kernel"]
SMALL = ["--n-options", "20", "--n-samples-per-thread", "100", "--n-threads-per-option", "200"]
ERROR = r"Error: (\S+)"

# What runs, with arguments that make it small, and what it must print: text, or a number below a bound.
RUNS = [
    ("kmeans/kmeans.py", ["--num", "1000"], None), ("kmeans/kmeans.py", ["--num", "1000", *CUSTOM], None),
    ("gmm/gmm.py", ["--num", "1000"], (r"test_accuracy : (\S+)[\s\S]*test_accuracy : \1", 101)), ("cg/cg.py", [], (r"GPU :.*\n(\S+)", 1.0)),
    ("finance/black_scholes.py", ["-n", "5000"], None), ("finance/monte_carlo.py", SMALL, (ERROR, 0.5)),
    ("finance/monte_carlo_multigpu.py", ["--gpus", "0", *SMALL], (ERROR, 0.5)), ("gemm/sgemm.py", ["--m", "75", "--n", "66", "--k", "37"], None),
    ("custom_struct/builtin_vectors.py", [], None), ("custom_struct/complex_struct.py", [], None), ("custom_struct/packed_matrix.py", [], None),
    ("peer/peer_matrix.py", [], None),
    *((f"stream/{name}.py", [], None) for name in ("cublas", "cufft", "cupy_event", "cupy_kernel", "cupy_memcpy", "curand", "cusolver", "map_reduce", "thrust")),
]
# What does not run says so by name.
REFUSED = {"jit/elmentwise_op.py": "cupyx.jit.rawkernel", "jit/reduction_simple.py": "cupyx.jit.rawkernel", "jit/reduction_atomic.py": "cupyx.jit.rawkernel",
           "stream/cusparse.py": "cupyx.scipy.sparse.csc_matrix", "cutensor/contraction.py": "cupyx.time.repeat", "cufft/callback/legacy.py": "gpurest.cupy.fft has no config"}
SMALLER = {"cg/cg.py": ("N = 2000", "N = 60"), "stream/map_reduce.py": ("1024**2", "64**2")}  # sizes that no argument sets


def changed(text):
    text = re.sub(r"^import (cupyx?)((?:\.\w+)*) as ", r"import gpurest.\1\2 as ", text, flags=re.M)
    text = re.sub(r"^import (cupyx?)$", r"import gpurest.\1 as \1", text, flags=re.M)
    text = re.sub(r"^import cupyx\.(\w+)$", r"import gpurest.cupyx.\1; from gpurest import cupyx", text, flags=re.M)
    return re.sub(r"^from (cupyx?[\w.]*) import", r"from gpurest.\1 import", text, flags=re.M)


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    for path in pathlib.Path(EXAMPLES).rglob("*"):
        if path.suffix in (".py", ".cu"):
            name = path.relative_to(EXAMPLES).as_posix()
            text = path.read_text()
            if name in SMALLER:
                assert SMALLER[name][0] in text
                text = text.replace(*SMALLER[name])
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(changed(text) if path.suffix == ".py" else text)
    (folder / "plain" / "matplotlib").mkdir(parents=True)  # imported, and used for pictures only
    for name in ("__init__", "pyplot"):
        (folder / "plain" / "matplotlib" / f"{name}.py").write_text("")
    return folder


def run(service, examples, name, arguments):
    environment = {**os.environ, "GPUREST_URL": service.url, "PYTHONPATH": f"{ROOT / 'sdk' / 'python'}:{examples / 'plain'}"}
    return subprocess.run([sys.executable, examples / name, *arguments], cwd=(examples / name).parent, env=environment, capture_output=True, text=True,
                          timeout=LIMIT_S)


@pytest.mark.parametrize("name,arguments,printed", RUNS)
def test_an_example_runs(service, examples, name, arguments, printed):
    done = run(service, examples, name, arguments)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Failed to converge" not in done.stdout
    for found in re.findall(printed[0], done.stdout) if printed else ["0"]:
        assert float(found) < (printed[1] if printed else 1), done.stdout
    assert not printed or re.search(printed[0], done.stdout), done.stdout


@pytest.mark.parametrize("name", REFUSED)
def test_an_example_that_does_not_run_says_why(service, examples, name):
    done = run(service, examples, name, [])
    assert done.returncode == 1 and "MissingError" in done.stderr and REFUSED[name] in done.stderr, done.stderr[-2000:]
