#!/usr/bin/env python3
"""How small launches scale with clients: launches a second, p50 and p99 of 1, 2, 4, 8, 16 and 32 clients with sessions of their own, on one session,
and in one fault domain, also of at most eight sessions; and of CuPy behind aiohttp, where both are installed.

    scaling.py [--build build/release] [--gpurestd PATH] [--backends cpu] [--clients 1,2,4,8,16,32] [--kinds own,one,domain,eight,peer] [--seconds 2]
               [--timing 0|1] [--minimal 0|1] [--json FILE] [-- MORE FLAGS OF THE SERVICE]

Each client is a thread of the tool `scaling`, which takes processor time, too. Figures of different machines or loads cannot be compared. Nothing here
is a test."""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile

from bench_service import gpurestd
from peers_gpu import Running, aiohttp_server, missing

TOKEN = "scaling"  # of a caller whose sessions are bounded by --workers-max alone
KINDS = {"own": "own sessions", "one": "one session", "domain": "one domain", "eight": "domain of 8", "peer": "aiohttp+CuPy"}
SESSIONS = {"own": ["--sessions", "own"], "one": ["--sessions", "one"], "domain": ["--sessions", "domain"],
            "eight": ["--sessions", "domain", "--most", "8"]}


def tool(options, address, clients, *more):
    path = pathlib.Path(options.build, "tests", "bench", "scaling")
    made = subprocess.run([str(path), address, "--clients", str(clients), "--seconds", str(options.seconds), *more], capture_output=True, text=True,
                          timeout=600)
    return json.loads(made.stdout) if made.returncode == 0 else {"skipped": made.stderr.strip()[-200:]}


def ours(options, kind):
    """Each count of clients on a fresh service, whose flags and token allow as many sessions."""
    entry = {"name": "scaling", "sha256": hashlib.sha256(TOKEN.encode()).hexdigest(), "scopes": ["read", "write", "compile", "launch"], "sessions_max": 64}
    with tempfile.NamedTemporaryFile("w") as tokens:
        json.dump({"tokens": [entry]}, tokens)
        tokens.flush()
        for clients in options.clients:
            with gpurestd(options.gpurestd, options.backends, "--workers-max", "64", "--tokens", tokens.name, *options.more) as (address, _):
                yield clients, tool(options, address, clients, "--token", TOKEN, *SESSIONS[kind], "--timing", str(options.timing),
                                    "--minimal", str(options.minimal))


def peer(options, _):
    absent = missing("aiohttp", "cupy")
    if absent:
        yield 0, {"skipped": absent}
        return
    with Running(aiohttp_server, 1 << 20) as server:
        for clients in options.clients:
            yield clients, tool(options, f"127.0.0.1:{server.port}", clients, "--post", "/launch")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--gpurestd")
    parser.add_argument("--backends", default="cpu")
    parser.add_argument("--clients", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(KINDS))
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--timing", type=int, choices=(0, 1), default=1)
    parser.add_argument("--minimal", type=int, choices=(0, 1), default=0)
    parser.add_argument("--json", default="")
    parser.add_argument("more", nargs="*", help="flags of the service, behind --")
    options = parser.parse_args()
    options.gpurestd = options.gpurestd or str(pathlib.Path(options.build, "service", "gpurestd"))
    print(f"{len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}")
    print(f"{'':<14} {'clients':>7} {'launches/s':>11} {'p50 us':>9} {'p99 us':>9}")
    rows = []
    for kind in options.kinds:
        for clients, row in (peer if kind == "peer" else ours)(options, kind):
            rows.append({"kind": kind, "clients": clients, **row})
            if "skipped" in row:
                print(f"{KINDS[kind]:<14} {clients or '':>7} skipped: {row['skipped']}", flush=True)
                break
            print(f"{KINDS[kind]:<14} {clients:>7} {row['per_second']:>11.0f} {row['p50_us']:>9.1f} {row['p99_us']:>9.1f}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
