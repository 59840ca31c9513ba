#!/usr/bin/env python3
"""The wrong calls of wrong_calls.def and wrong_runtime_calls.def, made to NVIDIA's own libraries and over gpurest: prints the rows whose answers differ,
and counts. No run of the tests has it: it needs a GPU.

    genuine_calls.py --programs build/release/tests/sdk/shim/programs --library build/release/sdk/shim/lib --url URL --genuine FOLDERS [--beside N]

--genuine has the folders of NVIDIA's libcuda.so.1 and libcudart.so.13. Each row is a process of its own there, because some crash it."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 60


def answers(program, row, environment):
    """{row: result} of one row, or of all of them; a row that does not answer has what happened instead."""
    try:
        done = subprocess.run([program, *row], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, env={**os.environ, **environment})
    except subprocess.TimeoutExpired:
        return {int(at): "takes too long" for at in row}
    found = {int(at): int(result) for at, result in re.findall(r"^(\d+) (\d+)$", done.stdout, re.M)}
    said = done.stderr.strip().splitlines()
    return found or {int(at): f"ends with {done.returncode} {said[-1] if said else ''}" for at in row} or {-1: done.stderr}


def compare(chosen, name):
    rows = re.findall(r"^CALL\((.*?)\)(?: /\*.*\*/)?$", (HERE / f"{name}.def").read_text(), re.M)
    program = chosen.programs.resolve() / name
    ours = answers(program, [], {"LD_LIBRARY_PATH": str(chosen.library.resolve()), "GPUREST_URL": chosen.url})
    with concurrent.futures.ThreadPoolExecutor(chosen.beside) as pool:
        genuine = {at: result for one in pool.map(lambda at: answers(program, [str(at)], {"LD_LIBRARY_PATH": chosen.genuine}), range(len(rows))) for at, result in one.items()}
    differ = [at for at in range(len(rows)) if genuine.get(at) != ours.get(at)]
    for at in differ:
        print(f"{name} {at}: genuine {genuine.get(at)}, gpurest {ours.get(at)}: CALL({rows[at]})")
    crashes = sum(not isinstance(result, int) for result in genuine.values())
    print(f"{name}: {len(rows)} rows, {len(rows) - len(differ)} alike, {len(differ)} differ, {crashes} of them without an answer of NVIDIA's library", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--programs", "--library"):
        arguments.add_argument(name, type=pathlib.Path, required=True)
    for name in ("--url", "--genuine"):
        arguments.add_argument(name, required=True)
    arguments.add_argument("--beside", type=int, default=os.cpu_count())
    for name in ("wrong_calls", "wrong_runtime_calls"):
        compare(arguments.parse_args(), name)


if __name__ == "__main__":
    main()
