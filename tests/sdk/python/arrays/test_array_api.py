"""The array API standard's own tests, https://github.com/data-apis/array-api-tests, of the package as their module. GPUREST_TEST_ARRAY_API names a checkout
with its submodule (what its requirements.txt lists is installed); without it they are skipped. It takes two to three minutes. What fails is listed
in data/array_api_failures.txt, with the reasons."""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

VARIABLE = "GPUREST_TEST_ARRAY_API"
EXAMPLES = 5  # of each property
LIMIT_S = 3600
PASSED_LEAST = 0.95
FAILURES = pathlib.Path(__file__).with_name("data") / "array_api_failures.txt"
SDK = pathlib.Path(__file__).resolve().parents[4] / "sdk" / "python"


def checkout():
    folder = os.environ.get(VARIABLE)
    if not folder:
        pytest.skip(f"{VARIABLE} names no checkout of https://github.com/data-apis/array-api-tests")
    folder = pathlib.Path(folder).resolve()
    assert (folder / "array-api" / "src").is_dir(), f"{folder}: git submodule update --init"
    for needed in ("ndindex", "pytest_jsonreport"):
        assert importlib.util.find_spec(needed), f"pip install -r {folder}/requirements.txt"
    return folder


def counts(line):
    """The last line of pytest: {"passed": 1400, …}."""
    return {name: int(number) for number, name in re.findall(r"(\d+) (\w+)", line)}


def known():
    return [line for line in FAILURES.read_text().splitlines() if line and not line.startswith("#")]


def unknown(output):
    """The failures that no line of the list is the beginning of."""
    found = [line.partition(" ")[2] for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return [one for one in found if not any(re.match(re.escape(row) + r"(?!\w)", one) for row in known())]


def test_what_the_tests_tell_is_understood():
    assert counts("3 failed, 1295 passed, 5 skipped in 315.11s (0:05:15)") == {"failed": 3, "passed": 1295, "skipped": 5}
    listed = known()[0]
    assert unknown(f"FAILED {listed} - AssertionError\nFAILED {listed}\nERROR {listed}x\nFAILED array_api_tests/test_a.py::test_b - x\n") == \
        [f"{listed}x", "array_api_tests/test_a.py::test_b - x"]


def test_the_array_api_standard(array_service):
    folder = checkout()
    path = os.pathsep.join([str(SDK), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}  # options of our tests
    environment = {**own, "GPUREST_URL": array_service.url, "PYTHONPATH": path, "ARRAY_API_TESTS_MODULE": "gpurest"}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--disable-deadline", f"--max-examples={EXAMPLES}", "--hypothesis-seed=1",
                           "array_api_tests"], cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    found = counts((done.stdout.strip().splitlines() or [""])[-1])
    print(found)
    assert done.returncode in (0, 1) and found.get("passed", 0) > 1000, done.stdout[-4000:] + done.stderr[-4000:]
    assert not unknown(done.stdout)
    assert found["passed"] >= PASSED_LEAST * (found["passed"] + found.get("failed", 0))
