"""The array API standard's own tests, https://github.com/data-apis/array-api-tests, of the package as their module. GPUREST_TEST_ARRAY_API names a checkout
with its submodule (what its requirements.txt lists is installed); without it they are skipped. It takes some ten minutes. What fails is listed
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


def test_counts_are_those_that_pytest_tells():
    assert counts("3 failed, 1295 passed, 5 skipped, 33 xfailed in 315.11s (0:05:15)") == {"failed": 3, "passed": 1295, "skipped": 5, "xfailed": 33}


def test_the_array_api_standard(array_service):
    folder = checkout()
    path = os.pathsep.join([str(SDK), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "GPUREST_URL": array_service.url, "PYTHONPATH": path, "ARRAY_API_TESTS_MODULE": "gpurest"}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--disable-deadline", f"--max-examples={EXAMPLES}", "--hypothesis-seed=1",
                           "--xfails-file", str(FAILURES), "array_api_tests"], cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    found = counts(done.stdout.strip().splitlines()[-1])
    print(found)
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    assert not failed and done.returncode == 0, "\n".join(failed) or done.stdout[-4000:] + done.stderr[-4000:]
    right = found["passed"] + found.get("xpassed", 0)
    assert right >= PASSED_LEAST * (right + found["xfailed"]) and right > 1000
