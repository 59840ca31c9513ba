#!/usr/bin/env python3
"""Counts the front-end's user instructions for a small synchronous launch, by function, and its system calls: figures that a busy machine does
not disturb. Needs valgrind and, for the system calls, strace.

    launch_instructions.py [--build build/release] [--gpurestd PATH] [--count 1000] [--rows 40] [-- MORE FLAGS OF launch_latency]

What is counted stands between libmicrohttpd's callbacks and their return: from the request line to the answer given to the library, and the
request's end. Left out are the library's own parsing and writing, the kernel, and the waiting for the worker's answer (call_spin). Two runs of different
length are subtracted, so that preparation does not count. `inclusive` holds what a function calls, once for each way there. Nothing here is a
test."""
import argparse
import collections
import contextlib
import pathlib
import re
import shutil
import subprocess
import tempfile

from bench_service import gpurestd

CALLBACKS = ("exchange_begin", "exchange_call", "exchange_completed")
SPUN = "5"  # with so many processors callers spin for the answer, as they do on a server


def parse(path):
    """(self, inclusive, waiting): costs by function of one dump, and that of call_spin's own loop."""
    own, inclusive, names = collections.Counter(), collections.Counter(), {}
    waiting, function, callee, edge = 0, "", "", False
    for line in path.read_text().splitlines():
        if line.startswith(("fn=", "cfn=")):
            number, _, name = line.split("=", 1)[1].partition(" ")
            name = names.setdefault(number, name)
            if line.startswith("fn="):
                function = name
            else:
                callee = name
        elif line.startswith("calls="):
            edge = True
        elif re.match(r"[+*\d-]\d* \d+$|\* \d+$", line):
            cost = int(line.rsplit(" ", 1)[1])
            inclusive[function] += cost
            if not edge:
                own[function] += cost
            if function == "call_spin" and (not edge or "clock_gettime" in callee or callee == "ring_ready"):
                waiting += cost
            edge = False
    return own, inclusive, waiting


@contextlib.contextmanager
def under_valgrind(options, folder):
    substitute = pathlib.Path(options.build, "tests", "bench", "libunder_valgrind.so").resolve()
    wrapper = pathlib.Path(folder, "gpurestd")
    collect = " ".join(f"--toggle-collect={name}" for name in CALLBACKS)
    wrapper.write_text(f"#!/bin/sh\nLD_PRELOAD={substitute} exec valgrind --tool=callgrind {collect} --dump-line=no --callgrind-out-file={folder}/out "
                       f"{pathlib.Path(options.gpurestd).resolve()} \"$@\"\n")
    wrapper.chmod(0o755)
    with gpurestd(str(wrapper), "cpu", "--spin-cpus", SPUN, "--threads", "1", "--allow-no-sandbox") as found:
        yield found


def instructions(options, folder):
    dumps = []
    with under_valgrind(options, folder) as (address, pid):
        for count in (options.count // 4, options.count // 4 + options.count):
            run_launches(options, address, count)
            subprocess.run(["callgrind_control", "-d", str(pid)], check=True, capture_output=True)
            dumps.append(parse(max(pathlib.Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))))
    (own_a, all_a, wait_a), (own_b, all_b, wait_b) = dumps
    per = lambda a, b: {name: (b[name] - a[name]) / options.count for name in b}
    return per(own_a, own_b), per(all_a, all_b), (wait_b - wait_a) / options.count


def run_launches(options, address, count):
    tool = pathlib.Path(options.build, "tests", "bench", "launch_latency")
    return subprocess.run([str(tool), address, "--count", str(count), *options.more], capture_output=True, text=True,
                          check=True, timeout=600).stdout


def system_calls(options, folder):
    """{name: calls per launch} of the front-end; its workers are not traced."""
    counts = []
    with gpurestd(options.gpurestd, "cpu", "--spin-cpus", SPUN, "--threads", "1") as (address, pid):
        for count in (options.count // 4, options.count // 4 + options.count):
            out = pathlib.Path(folder, f"strace{len(counts)}")
            trace = subprocess.Popen(["strace", "-c", "-f", "-p", str(pid), "-o", str(out)], stderr=subprocess.DEVNULL)
            run_launches(options, address, count)
            trace.terminate()
            trace.wait()
            rows = (line.split() for line in out.read_text().splitlines())
            counts.append({row[-1]: int(row[3]) for row in rows if len(row) >= 5 and row[3].isdigit() and row[-1] != "total"})
    return {name: (counts[1].get(name, 0) - counts[0].get(name, 0)) / options.count for name in counts[1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--gpurestd")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("more", nargs="*")
    options = parser.parse_args()
    options.gpurestd = options.gpurestd or str(pathlib.Path(options.build, "service", "gpurestd"))
    with tempfile.TemporaryDirectory() as folder:
        own, inclusive, waiting = instructions(options, folder)
        total = sum(own.values()) - waiting
        print(f"front-end: {total:.0f} user instructions per launch, and {waiting:.0f} while it waited")
        for name in CALLBACKS + ("exchange_admit", "launches_create", "launch_decode", "launch_submit", "exchange_settle", "exchange_send"):
            print(f"  {name:<24} {inclusive.get(name, 0):8.0f} inclusive")
        print("by function, its own:")
        for name, cost in sorted(own.items(), key=lambda row: -row[1])[:options.rows]:
            print(f"  {name:<40} {cost:8.0f} {inclusive.get(name, 0):9.0f}")
        if shutil.which("strace"):
            calls = system_calls(options, folder)
            print("system calls per launch: " + ", ".join(f"{name} {n:.2f}" for name, n in sorted(calls.items(), key=lambda row: -row[1]) if n >= 0.01))


if __name__ == "__main__":
    main()
