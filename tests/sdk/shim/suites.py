#!/usr/bin/env python3
"""Runs a package's own tests over gpurest, and with NVIDIA's library beside it on a machine with a GPU: prints counts, which tests pass with NVIDIA's
library alone, and the reasons by count. Nothing of theirs is in this tree; the arguments after -- are pytest's (with -n of
pytest-xdist), and name the tests.

    suites.py --url URL --library build/release/sdk/shim/lib [--device cpu:0] [--genuine FOLDERS] --out FOLDER --seconds N -- ARGUMENTS

--out gets NAME.WAY.results, a line of JSON for each part of a test, and NAME.WAY.log, of pytest. A run that takes longer is ended; what it has done
counts. The file is a plugin of pytest, too: it writes these lines."""
import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

PASSED = ("passed", "xfailed")
STICKY = re.compile("CUDA_ERROR_(ILLEGAL_|MISALIGNED_|LAUNCH_FAILED|ASSERT|HARDWARE_|INVALID_PC)|cudaError(Illegal|Misaligned|LaunchFailure|Assert)")
stuck = []  # of this process


def pytest_runtest_logfinish():
    """An error that sticks ends with the process: else all tests after one that faults would fail. pytest-xdist starts another one."""
    if stuck and "PYTEST_XDIST_WORKER" in os.environ:
        os._exit(1)


def pytest_runtest_logreport(report):
    """Results are written in the process that collects them."""
    if report.failed and STICKY.search(report.longreprtext):
        stuck.append(report.nodeid)
    if "PYTEST_XDIST_WORKER" in os.environ or "SUITE_RESULTS" not in os.environ:
        return
    crash = getattr(report.longrepr, "reprcrash", None)
    said = (crash.message if crash else str(report.longrepr)) if report.longrepr else ""
    shim = re.findall(r"^gpurest: .*$", report.capstderr, re.M)
    line = {"test": report.nodeid, "when": report.when, "outcome": report.outcome, "expected": hasattr(report, "wasxfail"), "seconds": round(report.duration, 3), "said": said[:600], "shim": shim[-3:]}
    with open(os.environ["SUITE_RESULTS"], "a") as file:
        file.write(json.dumps(line) + "\n")


def outcomes(path):
    """{test: (outcome, what it said, what the library said)} of all that came to an end."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        part = json.loads(line)
        outcome = part["outcome"]
        if part["expected"]:
            outcome = "xfailed" if outcome == "skipped" else outcome
        if part["when"] != "call" and outcome == "failed":
            outcome = "error"
        if part["when"] not in ("setup", "call", "teardown"):  # the process ended: pytest_runtest_logfinish(), or a crash
            found.setdefault(part["test"], ("crashed", part["said"], part["shim"]))
        elif part["when"] == "call" or outcome != "passed":
            found[part["test"]] = (outcome, part["said"], part["shim"])
    return found


def start(chosen, name, environment):
    results = chosen.out / f"{chosen.name}.{name}.results"
    results.unlink(missing_ok=True)
    path = os.pathsep.join(filter(None, [str(pathlib.Path(__file__).resolve().parent), os.environ.get("PYTHONPATH")]))
    log = (chosen.out / f"{chosen.name}.{name}.log").open("w")
    arguments = [sys.executable, "-m", "pytest", "-q", "-p", "suites", "-p", "no:cacheprovider", "--tb=short", "--max-worker-restart", "10000", *chosen.arguments]
    return results, subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                                     env={**os.environ, **environment, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "SUITE_RESULTS": str(results)})


def wait(program, seconds):
    try:
        program.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGTERM)
        try:
            program.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()


def reason(said, shim):
    """Without what differs from test to test."""
    lines = [line for line in said.splitlines() if line.strip()] or ["it says nothing"]
    text = re.sub(r"0x[0-9a-f]+", "0x…", next((line for line in lines if re.search(r"CUDA_ERROR|cudaError|Error:", line)), lines[-1]))[:140]
    return f"{text} ({shim[-1].removeprefix('gpurest: ')[:100]})" if shim else text


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--name", default="suite")
    arguments.add_argument("--url", required=True)
    arguments.add_argument("--device", default="cpu:0")
    arguments.add_argument("--genuine")
    arguments.add_argument("--library", type=pathlib.Path, required=True)
    arguments.add_argument("--out", type=pathlib.Path, required=True)
    arguments.add_argument("--seconds", type=float, default=1800)
    arguments.add_argument("arguments", nargs="+")
    chosen = arguments.parse_args()
    chosen.out = chosen.out.resolve()
    library = chosen.library.resolve()
    environments = {"genuine": {"LD_LIBRARY_PATH": chosen.genuine}} if chosen.genuine else {}
    environments["gpurest"] = {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, [str(library), chosen.genuine, os.environ.get("LD_LIBRARY_PATH")])),
                               "NUMBA_CUDA_DRIVER": str(library / "libcuda.so.1"), "GPUREST_URL": chosen.url, "GPUREST_DEVICE": chosen.device}
    running = {name: start(chosen, name, environment) for name, environment in environments.items()}
    for _, program in running.values():
        wait(program, chosen.seconds)
    found = {name: outcomes(results) for name, (results, _) in running.items()}
    for name, tests in found.items():
        print(f"{chosen.name}, {name}: {len(tests)} tests: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(collections.Counter(o for o, _, _ in tests.values()).items())))
    wrong = {test: (said, shim) for test, (outcome, said, shim) in found["gpurest"].items()
             if outcome not in (*PASSED, "skipped") and ("genuine" not in found or found["genuine"].get(test, ("?",))[0] in PASSED)}
    print(f"{chosen.name}: {len(wrong)} " + ("pass with NVIDIA's library and fail over gpurest" if "genuine" in found else "do not pass"))
    for why, count in collections.Counter(reason(*what) for what in wrong.values()).most_common():
        print(f"{count:5d} {why}")
    for test, what in wrong.items():
        print(f"  {test}: {reason(*what)}")


if __name__ == "__main__":
    main()
