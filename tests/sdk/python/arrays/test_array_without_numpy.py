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
