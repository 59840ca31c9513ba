#!/usr/bin/env python3
"""Takes the figures of the service's plan that this machine can give: each with its limit or peer and ours, from one run.

    run.py [--build build/release] [--gpurestd PATH] [--backends cpu] [--mib 1024] [--seconds 2] [--only ROW,ROW] [--json FILE]

Prints a table; --json keeps it. A peer that is not installed is named and its cell left empty. Ratios are of this run alone: on a busy
machine (the load is printed) compare nothing else. Nothing here is a test; the exit status says only whether everything ran."""
import argparse
import ctypes
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

from bench_service import Client, cpu_seconds, gpurestd, memory_kib, nginx
from local_sharing import local_sharing

FOLDER = pathlib.Path(__file__).resolve().parent
TICK = 'extern "C" __global__ void tick(unsigned *p) { if (threadIdx.x == 0) p[0] += 1; }\n'
WILD = 'extern "C" __global__ void wild(unsigned *p) { *(volatile unsigned *)64 = 1; }\n'
BATCH_LAUNCHES, SESSIONS, COMPILES, RESETS = 1000, 20, 15, 10


class Bench:
    def __init__(self, options):
        self.options, self.rows = options, []

    def tool(self, name, *arguments):
        path = pathlib.Path(self.options.build, "tests", "bench", name)
        return subprocess.run([str(path), *map(str, arguments)], capture_output=True, text=True, check=True, timeout=600).stdout

    def service(self, *more):
        return gpurestd(self.options.gpurestd, self.options.backends, *more)

    def row(self, what, ours, unit, peer=None, peer_name="", target="", ratio=None, note=""):
        """ratio: ours to the peer's, in the direction of the target, when it is not ours / peer."""
        ratio = ours / peer if ratio is None and ours is not None and peer else ratio
        self.rows.append({"what": what, "ours": ours, "unit": unit, "peer": peer, "peer_name": peer_name, "ratio": ratio, "target": target,
                          "note": note})
        print(line_of(self.rows[-1]), flush=True)


def number(value):
    return "" if value is None else f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


HEAD = f"{'what':<52} {'ours':>9} {'unit':<8} {'peer':>9} {'ratio':>6}  {'to reach':<16} peer or limit; notes"


def line_of(row):
    about = "; ".join(part for part in (row["peer_name"], row["note"]) if part)
    return (f"{row['what']:<52} {number(row['ours']):>9} {row['unit']:<8} {number(row['peer']):>9} {number(row['ratio']):>6}  "
            f"{row['target']:<16} {about}")


def timed_ms(call):
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3


def median(values):
    return statistics.median(values)


# Rows


def load_of(bench, address, path, pid):
    """What request_rate says, and requests per second of the server's processor time."""
    before = cpu_seconds(pid)
    result = json.loads(bench.tool("request_rate", address, path, "--seconds", bench.options.seconds, "--connections", 8))
    used = cpu_seconds(pid) - before
    # The warm-up's tenth is in the processor time, too.
    result["per_core"] = result["requests"] * 1.1 / used if used else None
    return result


def small_requests(bench):
    with bench.service("--threads", "1") as (address, pid):
        ours = load_of(bench, address, "/livez", pid)
        alone = json.loads(bench.tool("request_rate", address, "/livez", "--seconds", bench.options.seconds, "--connections", 1))
    with nginx(b"ok\n") as server:
        theirs = load_of(bench, server[0], "/file", server[1]) if server else {}
    echo = json.loads(bench.tool("request_rate", "echo", f"{ours['request_bytes']}:{ours['reply_bytes']}", "--seconds", bench.options.seconds,
                                 "--connections", 1))
    name = "nginx, static file" if theirs else "nginx is not installed"
    bench.row("small requests per second of processor time", ours["per_core"], "1/s", theirs.get("per_core"), name, ">= 0.9")
    bench.row("small requests per second, 8 connections", ours["per_second"], "1/s", theirs.get("per_second"), name, "",
              note="one event loop each; the load takes a core of its own")
    bench.row("small request, 1 connection, p50", alone["p50_us"], "us", echo["p50_us"], "raw socket echo of as many bytes")


LATENCY = re.compile(r"^(\w+): p50_us=([\d.]+) p90_us=[\d.]+ p99_us=([\d.]+)", re.M)


def latency_of(bench, address, count):
    found = {name: (float(p50), float(p99)) for name, p50, p99 in LATENCY.findall(bench.tool("launch_latency", address, "--count", count))}
    echo = found.pop("loopback_echo")
    return next(iter(found.values())), echo


def small_launch(bench):
    with bench.service() as (address, _):
        (p50, _), (echo, _) = latency_of(bench, address, 3000)
    target = "<= 40 us (H200)" if bench.options.backends == "cuda" else ""
    bench.row("synchronous small launch, 1 connection, p50", p50, "us", echo, "raw socket echo", target)


def move(kind, address, mib):
    """Endless transfers of `mib` MiB until killed; started as a process of its own."""
    client, size = Client(address), mib << 20
    path = f"/v1/sessions/{kind}{os.getpid()}"
    client.must("PUT", path)
    client.must("PUT", path + "/buffers/x", {"size": size})
    body = bytes(size)
    print("ready", flush=True)
    while True:
        if kind == "up":
            client.must("PUT", path + "/buffers/x/data", body, kind="application/octet-stream")
        else:
            client.must("GET", path + "/buffers/x/data")


def beside_bulk(bench):
    with bench.service() as (address, _):
        (_, alone), _ = latency_of(bench, address, 3000)
        movers = [subprocess.Popen([sys.executable, __file__, "--move", kind, address], stdout=subprocess.PIPE, text=True) for kind in ("up", "down")]
        try:
            for mover in movers:
                mover.stdout.readline()
            Client(address).request("DELETE", "/v1/sessions/latency")  # which the first run of the tool left
            (_, beside), _ = latency_of(bench, address, 3000)
            moving = all(mover.poll() is None for mover in movers)
        finally:
            for mover in movers:
                mover.kill()
                mover.wait()
    bench.row("small launch p99 beside two bulk transfers", beside, "us", alone, "the same alone", "<= 2",
              note=f"{os.cpu_count()} processors, two of them the transfers'" if moving else "a transfer ended early: not valid")


BULK = re.compile(r"^(upload|download)\s+(\d) connections?\s+raw\s+([\d.]+) GB/s\s+gpurest\s+([\d.]+) GB/s\s+ratio ([\d.]+)\s+\(of raw over one: ([\d.]+)\)",
                  re.M)
BULK_TARGETS = {("upload", "1"): ">= 0.9", ("upload", "4"): ">= 1.3 of one", ("download", "1"): ">= 0.9", ("download", "4"): ">= 1.5 of one"}


def bulk(bench):
    with bench.service() as (address, _):
        found = BULK.findall(bench.tool("bulk", address, bench.options.mib))
    for way, count, raw, ours, ratio, of_one in found:
        bench.row(f"{way} of {bench.options.mib} MiB, {count} connection{'s' if count > '1' else ''}", float(ours), "GB/s", float(raw),
                  f"raw sockets, as many{'; of raw over one: ' + of_one if count > '1' else ''}", BULK_TARGETS[way, count], ratio=float(ratio))


def batch(bench):
    with bench.service() as (address, _):
        client = Client(address)
        client.must("PUT", "/v1/sessions/b")
        client.must("PUT", "/v1/sessions/b/buffers/p", {"size": 4})
        client.must("PUT", "/v1/sessions/b/modules/m", TICK.encode(), kind="text/x-cuda")
        one = {"op": "launch", "module": "m", "kernel": "tick", "grid": [1], "block": [32], "args": [{"buf": "p"}]}
        body = json.dumps({"ops": [one] * BATCH_LAUNCHES}).encode()
        single = {name: value for name, value in one.items() if name != "op"}
        alone = median([timed_ms(lambda: client.must("POST", "/v1/sessions/b/launches", single)) for _ in range(200)])
        times = [timed_ms(lambda: client.must("POST", "/v1/sessions/b/batches", body)) for _ in range(7)]
    bench.row(f"{BATCH_LAUNCHES} launches in one batch, each", median(times) * 1e3 / BATCH_LAUNCHES, "us", alone * 1e3,
              "one launch per request", "<= 5 us (H200)", note="JSON of 100 bytes for each launch included")


def sessions(bench):
    def make(client, count, pause):
        times = []
        for i in range(count):
            times.append(timed_ms(lambda: client.must("PUT", f"/v1/sessions/s{i}")))
            client.must("DELETE", f"/v1/sessions/s{i}")
            time.sleep(pause)  # for the pool to fill again: not measured, and not needed for the answer to be right
        return median(times)

    with bench.service("--pool-size", "4") as (address, _):
        time.sleep(1.5)
        warm = make(Client(address), SESSIONS, 0.5)
    with bench.service("--pool-size", "0") as (address, _):
        cold = make(Client(address), 5, 0.1)
    bench.row("new session, warm pool", warm, "ms", cold, "without a pool: a worker's start", "<= 1 ms")


def resets(bench):
    with bench.service("--pool-size", "4") as (address, _):
        client, times = Client(address), []
        client.must("PUT", "/v1/sessions/r")
        for _ in range(RESETS):
            client.must("PUT", "/v1/sessions/r/modules/w", WILD.encode(), kind="text/x-cuda")
            client.must("PUT", "/v1/sessions/r/buffers/p", {"size": 4})
            status, _ = client.request("POST", "/v1/sessions/r/launches",
                                       {"module": "w", "kernel": "wild", "grid": [1], "block": [1], "args": [{"buf": "p"}]})
            assert status == 422, status
            time.sleep(0.7)
            times.append(timed_ms(lambda: client.must("POST", "/v1/sessions/r/reset")))
    bench.row("session usable again after a fault, by reset", median(times), "ms", None, "", "<= 1 ms", note="pool warm")


def nvrtc_ms(arch):
    """NVRTC's own time for a source that it has not seen, in this process; None when there is no library to load."""
    path = os.environ.get("GPUREST_NVRTC", "libnvrtc.so")
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return None
    times, option = [], (ctypes.c_char_p * 1)(f"--gpu-architecture={arch}".encode())
    for i in range(COMPILES):
        program = ctypes.c_void_p()

        def compile_one():
            assert library.nvrtcCreateProgram(ctypes.byref(program), source_number(i + 5000), b"k.cu", 0, None, None) == 0
            assert library.nvrtcCompileProgram(program, 1, option) == 0

        times.append(timed_ms(compile_one))
        library.nvrtcDestroyProgram(ctypes.byref(program))
    return median(times)


def source_number(i):
    return TICK.replace("+= 1", f"+= {i}").encode()


def after_a_pause(call):
    """As people compile: the next worker has had time to get ready."""
    time.sleep(0.5)
    return timed_ms(call)


def compiles(bench):
    with bench.service() as (address, _):
        client = Client(address)

        def put(session, i):
            return client.must("PUT", f"/v1/sessions/{session}/modules/m{i}", source_number(i), kind="text/x-cuda")

        for name in ("c1", "c2"):
            client.must("PUT", f"/v1/sessions/{name}")
        arch = json.loads(put("c1", COMPILES))["arch"]
        at_once = median([timed_ms(lambda: put("c1", i)) for i in range(COMPILES)])
        cold = median([after_a_pause(lambda: put("c1", 2 * COMPILES + i)) for i in range(COMPILES)])
        cached = median([timed_ms(lambda: put("c2", i)) for i in range(COMPILES)])
    own = nvrtc_ms(arch)
    bench.row("compile, cached", cached, "ms", cold, "the same, not cached", "<= 1 ms", note="another session's source, module loaded")
    bench.row("compile, not cached", cold, "ms", own, "NVRTC in a process that stays" if own else "no NVRTC to load", "<= NVRTC + 10 ms",
              note=(f"{cold - own:.1f} ms more, in a process of its own that waited; " if own else "") + f"{at_once:.1f} ms one right after the other")


def idle_memory(bench):
    with bench.service() as (address, pid):
        Client(address).must("GET", "/v1/devices")
        time.sleep(2)
        now = memory_kib(pid)
    bench.row("front-end memory, idle, besides staging", (now["RssAnon"] + now["RssFile"]) / 1024, "MiB", None, "", "<= 32 MiB",
              note=f"RSS {now['VmRSS'] / 1024:.1f} MiB, of it shared with workers {now['RssShmem'] / 1024:.1f}")


def gpu_peers(bench):
    """CuPy alone, behind aiohttp and behind gRPC: a process of its own, which says what is missing."""
    done = subprocess.run([sys.executable, str(FOLDER / "peers_gpu.py"), "--mib", str(bench.options.mib)], capture_output=True, text=True, timeout=600)
    if done.returncode:
        bench.row("peers with a GPU", None, "", None, "failed: " + (done.stderr.strip().splitlines() or ["?"])[-1])
        return
    for row in json.loads(done.stdout.splitlines()[-1]):
        bench.row("peer: " + row["what"], row.get("value"), row.get("unit", ""), None, row.get("missing", ""))


ROWS = {"requests": small_requests, "launch": small_launch, "batch": batch, "beside": beside_bulk, "bulk": bulk, "sharing": local_sharing, "sessions": sessions,
        "resets": resets, "compiles": compiles, "memory": idle_memory, "peers": gpu_peers}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--gpurestd")
    parser.add_argument("--backends", default="cpu")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--only", default=",".join(ROWS), help="of " + " ".join(ROWS))
    parser.add_argument("--json")
    parser.add_argument("--move", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.gpurestd = options.gpurestd or str(pathlib.Path(options.build, "service", "gpurestd"))
    return options


def main():
    options = parse()
    if options.move:
        return move(*options.move, 64)
    bench, load, failed = Bench(options), os.getloadavg()[0], []
    print(f"backend {options.backends}, {os.cpu_count()} processors, load before: {load:.1f}\n{HEAD}", flush=True)
    for name in options.only.split(","):
        try:
            ROWS[name](bench)
        except (RuntimeError, OSError, AssertionError, subprocess.SubprocessError) as error:
            failed.append(name)
            print(f"{name}: failed: {error} {getattr(error, 'stderr', '') or ''}", flush=True)
    if options.json:
        kept = {"backend": options.backends, "processors": os.cpu_count(), "load_before": load, "load_after": os.getloadavg()[0], "rows": bench.rows}
        pathlib.Path(options.json).write_text(json.dumps(kept, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
