#!/usr/bin/env python3
"""Programs for CUDA over gpurest and, on a machine with a GPU, with NVIDIA's own library, in turns: a small program from start to end, launches, waits,
and how many requests they are.

    shim.py --build build/release --url URL [--genuine FOLDERS] [--rounds N] [--python INTERPRETER]

URL is a service beside the programs; FOLDERS have NVIDIA's libcuda.so.1. Numba's part runs where INTERPRETER has Numba."""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
STARTS, LIMIT_S = 10, 120


def run(arguments, environment):
    """(seconds, what it prints, what it says)."""
    began = time.perf_counter()
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT_S, env={**os.environ, **environment})
    seconds = time.perf_counter() - began
    return (seconds, done.stdout, done.stderr) if done.returncode == 0 else (None, "", f"{arguments[0]} ends with {done.returncode}: {done.stderr[-500:]}")


def requests_of(said, call):
    """(calls, requests) of the calls that match, by the trace."""
    requests = [int(n) for n in re.findall(rf"^gpurest: {call} = \w+, [\d.]+ us, (\d+) requests?", said, re.M)]
    return len(requests), sum(requests)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--build", type=pathlib.Path, required=True)
    arguments.add_argument("--url", required=True)
    arguments.add_argument("--genuine")
    arguments.add_argument("--rounds", type=int, default=10000)
    arguments.add_argument("--python", default=sys.executable)
    chosen = arguments.parse_args()
    library, programs = (chosen.build / "sdk/shim/lib").resolve(), (chosen.build / "tests/sdk/shim/programs").resolve()
    ways = {"genuine": {"LD_LIBRARY_PATH": chosen.genuine}} if chosen.genuine else {}
    # What else the program needs of NVIDIA's stands behind our libraries.
    ways["gpurest"] = {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, [str(library), chosen.genuine])), "NUMBA_CUDA_DRIVER": str(library / "libcuda.so.1"), "GPUREST_URL": chosen.url}

    starts = {name: [] for name in ways}
    for _ in range(STARTS):
        for name, environment in ways.items():
            seconds, _, said = run([programs / "vector_add"], environment)
            if seconds is None:
                sys.exit(said)
            starts[name].append(seconds * 1e3)
    for name, times in starts.items():
        print(f"{name}: vector_add from start to end, {STARTS} times: median {statistics.median(times):.0f} ms, least {min(times):.0f}, most {max(times):.0f}", flush=True)
    numba = [chosen.python, str(HERE / "shim_numba.py"), str(chosen.rounds // 10)]
    for name, environment in ways.items():
        for program in ([programs / "speed", str(chosen.rounds)], numba):
            _, out, said = run(program, environment)
            for line in (out or said).splitlines():
                print(f"{name}: {line}", flush=True)
    for program, calls in (([programs / "speed", str(chosen.rounds)], ("cuLaunchKernel", "cuStreamSynchronize", "cuGraphLaunch", "cu\\w+")), (numba, ("cuLaunchKernel\\w*", "cuCtxSynchronize\\w*", "cu\\w+"))):
        said = run(program, {**ways["gpurest"], "GPUREST_TRACE": "1"})[2]
        for call in calls:
            print("trace of {}: {} calls of {} are {} requests".format(pathlib.Path(program[-2]).name, requests_of(said, call)[0], call, requests_of(said, call)[1]))


if __name__ == "__main__":
    main()
