"""Faults of kernels, memory and workers on a named device, beside a neighbour whose every result is checked. Prints the faults injected and
survived, wrong results and the worst recovery; exit code 1 when anything was lost or wrong.

    python3 tests/fault/gpu_full.py --service build/release/service/gpurestd --backend cuda --device cuda:0 [--only kills,endless] [--seconds 480]

With --state FILE the counts continue where the last call with it ended, for any reason: several calls of a few minutes make one
campaign. Each report ends with the parts of a recovery: the time that workers took to start, by phase, and to end.

G1 kernel faults, G2 endless kernels, G3 exhaustion, M3 what one caller leaves for the next, and SIGKILLs of busy workers. --counts short
is for the ordinary test suite."""
import argparse
import hashlib
import http.client
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "service"))

import gpu_exhaustion  # noqa: E402
import gpu_leaks  # noqa: E402
import gpu_kills  # noqa: E402
from gpu_place import Neighbour, Place  # noqa: E402
from gpu_sources import ENDLESS, FAULTS  # noqa: E402
from service_under_test import Service, children_of, role_of  # noqa: E402
from tally import Tally  # noqa: E402

BROKEN = (AssertionError, http.client.HTTPException, OSError)
SCOPES = ["read", "write", "compile", "launch", "metrics", "admin"]
# campaign -> (faults in full, in short, share of the time)
PLANS = {"kills": (1000, 4, 0.42), "faults": (700, 7, 0.25), "endless": (200, 4, 0.1), "leaks": (100, 1, 0.13), "exhaustion": (250, 5, 0.1)}
ENDLESS_MS = 150


class Bench:
    """A service with its callers. `flags`: for every service started here."""

    def __init__(self, options, folder, *flags):
        self.options = options
        names = {"bad": 64, "good": 4, "first": 8, "second": 8}
        rows = [{"name": name, "sha256": hashlib.sha256(name.encode()).hexdigest(), "scopes": SCOPES, "sessions_max": most} for name, most in names.items()]
        folder.mkdir()
        (folder / "tokens").write_text(json.dumps({"tokens": rows}))
        (folder / "tokens").chmod(0o600)
        os.environ["GPUREST_TEST_BACKENDS"] = options.backend
        self.service = Service(options.service, folder, "--tokens", str(folder / "tokens"), "--cache", str(folder / "cache"), *flags,
                               *(["--libcuda", options.libcuda] if options.libcuda else []), *unbudgeted(options.service))

    def workers(self):
        return {child for child in children_of(self.front_end()) if role_of(child) == b"--role=worker"}

    def front_end(self):
        """The service's process id, even if a script has started it and waits for it."""
        own = self.service.process.pid
        return next((child for child in children_of(own) if any(role_of(c) == b"--role=worker" for c in children_of(child))), own)

    def stop(self):
        """Stops the service in order; a script in between ends with it."""
        os.kill(self.front_end(), signal.SIGTERM)
        self.service.wait()
        self.service.stop()

    def client(self, name):
        return self.service.client(Authorization="Bearer " + name)

    def place(self, caller, session):
        return Place(self.client(caller), session, self.options.device)


def unbudgeted(service):
    """Flags without a crash budget, which would refuse a caller with so many faults."""
    text = subprocess.run([service, "--help"], capture_output=True, text=True, timeout=60).stdout
    return ["--crash-budget", "0"] if "--crash-budget" in text else []


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def strike(place, tally, kind, request, codes, lost):
    """One launch that must fail as expected; then a session, the same or a new one, must compute correctly."""
    answer = place.client.post(place.path + "/launches", request)
    at = time.monotonic()
    problem = answer.json() if answer.status >= 400 else {}
    if problem.get("code") not in codes:
        tally.end(kind, lost=f"answered {answer}")
        place.renew()
        return
    state = place.client.get(place.path).json()["state"]
    if (state == "faulted") != lost:
        tally.end(kind, lost=f"the session is {state}")
    else:
        name = (problem.get("cuda") or {}).get("name") or problem["code"]
        tally.end(f"{kind}: {name}", time.monotonic() - at if not lost else place.recover() - at)
    if not place.is_right():
        tally.end(kind, wrong="after it vadd is wrong")
        place.renew()


def struck(bench, tally, kinds, make):
    """`make(kind)` -> (request, codes, lost). Several sessions at a time."""
    order, resets_s = list(kinds), []

    def work(number):
        place = bench.place("bad", f"struck{number}")
        place.renew()
        while (n := tally.take()) is not None:
            kind = order[n % len(order)]
            try:
                strike(place, tally, kind, *make(kind))
            except BROKEN as e:
                tally.end(kind, lost=f"{type(e).__name__}: {e}")
                place.renew()
        resets_s.extend(place.resets_s)
        place.drop()

    in_threads(bench.options.threads, work)
    if resets_s:
        tally.notes.append(f"of the recovery the reset, with a new worker: worst {max(resets_s):.3f} s, mean {sum(resets_s) / len(resets_s):.3f} s")


def faults(bench, tally):
    def make(kind):
        block, codes, lost = FAULTS[kind]
        return {"module": "k", "kernel": kind, "grid": [1], "block": [block], "args": [{"buf": "p"}], "timeout_ms": 10000}, codes, lost

    struck(bench, tally, FAULTS, make)


def endless(bench, tally):
    def make(kind):
        grid, block = ENDLESS[kind]
        return {"module": "k", "kernel": kind, "grid": grid, "block": block, "args": [{"buf": "p"}], "timeout_ms": ENDLESS_MS}, {"execution_timeout"}, True

    struck(bench, tally, ENDLESS, make)


START = re.compile(r"took (\d+) ms to start: device (\d+), canary (\d+), lock (\d+)")
END = re.compile(r"took (\d+) ms to end")


def phases(service):
    """Over all workers: the mean and the worst of each phase, in milliseconds."""
    text = service.stderr()
    starts = [[int(ms) for ms in found] for found in START.findall(text)]
    rows = {"end": [int(ms) for ms in END.findall(text)], "start": [row[0] for row in starts],
            "process": [max(0, row[0] - sum(row[1:])) for row in starts]}
    rows |= {name: [row[i] for row in starts] for i, name in enumerate(("device", "canary", "lock"), 1)}
    return "workers, ms (mean/worst of so many): " + ", ".join(
        f"{name} {sum(ms) / len(ms):.0f}/{max(ms)} of {len(ms)}" for name, ms in rows.items() if ms)


def replaced(client):
    """Counts of replaced workers by reason. Failed starts and spontaneous deaths are not caused by these tests."""
    found = re.findall(r'^gpurest_worker_restarts_total\{reason="(\w+)"\} (\d+)', client.get("/metrics").body.decode(), re.M)
    return "workers replaced: " + (", ".join(f"{reason} {count}" for reason, count in found if count != "0") or "none")


CAMPAIGNS = {"kills": gpu_kills.kills, "faults": faults, "endless": endless, "exhaustion": gpu_exhaustion.exhaustion}


def beside_a_neighbour(options, folder, name, tally):
    """Kills need a service without warm workers: then every worker belongs to a session."""
    bench = Bench(options, folder / name, "--pool-size", "0" if name == "kills" else str(options.pool), "--workers-max", "64")
    client = bench.client("good")
    assert client.put("/v1/admin/logging", {"levels": {"pool": "debug"}}).status == 200
    monitors, pid = bench.workers(), bench.front_end()
    neighbour = Neighbour(bench.place("good", "neighbour"))
    bench.spared = monitors | bench.workers()
    neighbour.start()
    before = vitals(bench, client)
    CAMPAIGNS[name](bench, tally)
    neighbour.stop()
    after = settled(bench, client, before)
    tally.wrong += neighbour.wrong
    if neighbour.lost:
        tally.lost.append(f"the neighbour: {neighbour.lost[:3]}")
    tally.notes.append(f"neighbour: {neighbour.rounds} rounds, {len(neighbour.wrong)} wrong, {len(neighbour.lost)} lost, the worst {neighbour.worst_s * 1e3:.0f} ms")
    tally.notes.append(f"before -> after: files {before[0]} -> {after[0]}, memory {before[1]} -> {after[1]} MiB, free on the device {before[2]} -> {after[2]} MiB")
    assert bench.service.process.poll() is None and bench.front_end() == pid, "the front-end ended"
    tally.notes += [phases(bench.service), replaced(client)] + troubles(bench.service)
    bench.stop()


def troubles(service):
    """The most severe lines of its log, the first of each kind."""
    seen = {}
    for line in service.stderr().splitlines():
        level, text = re.search(r"level=(\w+)", line), re.search(r'message="?(.*)', line)
        if level and text and level.group(1) in ("warn", "error", "critical"):
            seen.setdefault(re.sub(r"\d+", "#", text.group(1)), []).append(line)
    return [f"log, {len(lines)} times: {lines[0][:300]}" for lines in seen.values()]


def vitals(bench, client):
    """(descriptors, MiB of memory, MiB free on the device) while the service is idle."""
    pid = bench.front_end()
    with open(f"/proc/{pid}/status") as status:
        kib = next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
    free = client.get("/v1/devices/" + bench.options.device).json()["memory"]["free_bytes"]
    return len(os.listdir(f"/proc/{pid}/fd")), kib >> 10, free >> 20


def settled(bench, client, before):
    """The same figures, once they are as before, or after 10 s."""
    until = time.monotonic() + 10
    while True:
        now = vitals(bench, client)
        if now[0] <= before[0] + 2 and abs(now[2] - before[2]) <= 64 or time.monotonic() > until:
            return now
        time.sleep(0.1)


def leaks(options, folder, name, tally):
    bench = Bench(options, folder / name, "--pool-size", "2")
    gpu_leaks.leaks(bench, tally)
    bench.stop()


def run(options, folder, out):
    """True when nothing was lost or wrong."""
    good = True
    chosen = options.only.split(",") if options.only else list(PLANS)
    whole = sum(PLANS[name][2] for name in chosen)
    for name in chosen:
        full, short, share = PLANS[name]
        tally = Tally(name, full if options.counts == "full" else short, options.seconds * share / whole, options.state)
        try:
            if not tally.is_full():
                (leaks if name == "leaks" else beside_a_neighbour)(options, folder, name, tally)
        except BROKEN as e:
            tally.lost.append(f"{type(e).__name__}: {e}")
        tally.keep()
        good = good and tally.good() and not tally.lost
        for line in tally.lines():
            print(line, file=out, flush=True)
    print("all survived" if good else "NOT ALL SURVIVED", file=out, flush=True)
    return good


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--service", required=True, help="the executable, or a script that becomes it by exec")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--device", default="cpu:0")
    parser.add_argument("--libcuda", default="")
    parser.add_argument("--only", default="", help="of " + ",".join(PLANS))
    parser.add_argument("--counts", choices=("full", "short"), default="full")
    parser.add_argument("--seconds", type=float, default=480, help="for all of them together; what does not fit is left out, and the counts say so")
    parser.add_argument("--state", default=None, help="a file with the counts so far, which this call goes on with")
    parser.add_argument("--threads", type=int, default=8, help="sessions that are struck at the same time")
    parser.add_argument("--pool", type=int, default=0, help="warm workers; without them each recovery waits for the old process's end and a new one's start")
    parser.add_argument("--mib", type=int, default=0, help="device memory that is looked through for leaks; 0 = 90 %% of what is free")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    options.service = str(pathlib.Path(options.service).resolve())
    options.random = random.Random(options.seed)
    return options


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as at:
        sys.exit(0 if run(arguments(), pathlib.Path(at), sys.stdout) else 1)
