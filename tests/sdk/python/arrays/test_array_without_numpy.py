"""Arrays without NumPy: from lists and bytes, to lists and bytes."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

SDK = pathlib.Path(__file__).resolve().parents[4] / "sdk" / "python"
PROGRAM = """
import json, sys
sys.modules["numpy"] = None  # what follows finds none
import gpurest as g

x = g.asarray([[1, 2], [3, 4.5]])
half = g.asarray([1, 2], dtype="f2")
out = bytearray(4)
g.asarray([1, 2], dtype="i2").get(out=out)
try:
    g.asarray([[1], [2, 3]])
except ValueError:
    uneven = "refused"
print(json.dumps({
    "sum": float(x.sum()), "product": (x @ x).get(), "kinds": [str(x.dtype), x.dtype == "float64", str(g.asarray([True]).dtype), str(g.arange(2).dtype)],
    "masked": x[x > 2].tolist(), "picked": x[[1, 0]].tolist(), "bytes": g.asarray(b"abc").get(), "half": half.get(), "out": list(out), "uneven": uneven,
    "scalar": (x * 2)[1, 1].get(), "empty": g.zeros((2, 0)).get(), "text": repr(x), "cube": g.arange(8).reshape(2, 2, 2).tolist()}))
"""


def test_the_other_tests_of_arrays_compare_with_numpy():
    try:
        import numpy  # noqa: F401
    except ImportError:
        pytest.skip("NumPy is not installed: the other tests of arrays are left out")


def test_lists_and_bytes_will_do(array_service):
    environment = {**os.environ, "GPUREST_URL": array_service.url, "PYTHONPATH": str(SDK)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "sum": 10.5, "product": [[7, 11], [16.5, 26.25]], "kinds": ["float64", True, "bool", "int64"], "masked": [3, 4.5],
        "picked": [[3, 4.5], [1, 2]], "bytes": [97, 98, 99], "half": [1, 2], "out": [1, 0, 2, 0], "uneven": "refused", "scalar": 9, "empty": [[], []],
        "text": "array([[1., 2.],\n       [3., 4.5]])", "cube": [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]}


RANDOM = """
import sys
sys.modules["numpy"] = None
import gpurest as g

rng, items = g.random.default_rng(3), [1, 2, 3, 4]
assert len(rng.normal([0, 10], [1, 2]).tolist()) == 2 and rng.poisson([1.0, 100.0], size=(3, 2)).shape == (3, 2)
assert sum(rng.multinomial(5, [0.2, 0.8]).tolist()) == 5 and abs(sum(rng.dirichlet([1, 2]).tolist()) - 1) < 1e-12
assert all(1 <= one < 9 for one in rng.integers([1, 2], [5, 9]).tolist()) and sorted(rng.permutation(4).tolist()) == [0, 1, 2, 3]
assert set(rng.choice([1, 2, 3], 20, p=[0.5, 0, 0.5]).tolist()) == {1, 3} and sum(rng.multivariate_hypergeometric([3, 4], 2).tolist()) == 2
assert rng.multivariate_normal([0, 1], [[1, 0.5], [0.5, 1]], 3).shape == (3, 2)
rng.shuffle(items)
assert sorted(items) == [1, 2, 3, 4]
for wrong, error in ((lambda: rng.normal(0, -1), ValueError), (lambda: rng.normal(0, [1, -1]).get(), ValueError), (lambda: rng.hypergeometric([3], 2, 9).get(), ValueError)):
    try:
        wrong()
    except error:
        continue
    raise AssertionError("not refused")
print("done")
"""


def test_random_numbers(array_service):
    environment = {**os.environ, "GPUREST_URL": array_service.url, "PYTHONPATH": str(SDK)}
    done = subprocess.run([sys.executable, "-c", RANDOM], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
