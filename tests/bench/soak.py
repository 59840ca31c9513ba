#!/usr/bin/env python3
"""Full load for a long time, and whether memory grows under it.

soak.py GPURESTD [--seconds 600] [--warm-up 60] [--interval 10] [--backends cpu] [--no-faults] [--grow-mib 24] [--json FILE]

Starts a service of its own and loads it from several threads: small launches, batches at once and in the background, long uploads and
downloads, buffers and sessions made and deleted, kernels that fault. At intervals the load pauses; then the resident memory of the
front-end and of its workers is read, and the memory that the sessions say they have. Ends with 0 when, after the warm-up, no process has
grown beyond the bound (median of the last third of the readings against that of the first third), each session's own figures are the
same at every reading, and every answer was right. Only the standard library.
"""
import argparse
import array
import json
import os
import pathlib
import random
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

from checked_client import CheckedClient, Wrong
from batch_client import TYPE, frame, unframe, with_sizes
from service_under_test import children_of

SOURCE = """extern "C" __global__ void scale(unsigned *p, unsigned k, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= k;
}
extern "C" __global__ void trap(unsigned *p) { asm volatile("trap;"); }
"""
MIB = 1 << 20
OCTETS = "application/octet-stream"
ROOM_MIB = 16


def batch_frame(message, segments):
    return frame(with_sizes(message, segments), segments.values())


def first_segment(answer):
    message, segments = unframe(answer.body)
    return segments[message["segments"][0]["id"]]


# ---- the load: each does one thing once; `path` is a session with module m and buffers own and room ----

def launches(client, path, rng):
    for _ in range(20):
        k = rng.randrange(1, 1 << 16)
        client.must("PUT", f"{path}/buffers/own/data", struct.pack("<I", 3) * 1024, Content_Type=OCTETS)
        prefer = rng.choice(({}, {"Prefer": "wait=60"}))
        client.must("POST", f"{path}/launches", {"module": "m", "kernel": "scale", "grid": [8], "block": [128],
                                                 "args": [{"buf": "own"}, {"u32": k}, {"u32": 1024}]}, **prefer)
        if client.must("GET", f"{path}/buffers/own/data").body != struct.pack("<I", 3 * k % (1 << 32)) * 1024:
            raise Wrong("a launch gave a wrong result")


def batch_of(rng):
    words = rng.choice((16, 1024, 65536, 400000))
    data = array.array("I", [rng.randrange(1 << 31)] * words).tobytes()
    message = {"module": "m", "ops": [{"op": "alloc", "as": "$a", "segment": "a"}, {"op": "alloc", "as": "$b", "size": len(data)},
                                      {"op": "copy", "from": "$a", "to": "$b"},
                                      {"op": "launch", "kernel": "scale", "grid": [(words + 127) // 128], "block": [128],
                                       "args": [{"buf": "$b"}, {"u32": 5}, {"u32": words}]},
                                      {"op": "read", "from": "$b", "segment": "out"}]}
    expected = struct.pack("<I", struct.unpack("<I", data[:4])[0] * 5 % (1 << 32)) * words
    return batch_frame(message, {"a": data}), expected


def batches(client, path, rng):
    body, expected = batch_of(rng)
    where = rng.choice((path + "/batches", "/v1/run"))
    if where == "/v1/run":
        message = {"ops": [{"op": "alloc", "as": "$a", "segment": "a"}, {"op": "read", "from": "$a", "segment": "out"}]}
        expected = rng.randbytes(rng.randrange(1, 100000))
        body = batch_frame(message, {"a": expected})
    if first_segment(client.must("POST", where, body, Content_Type=TYPE)) != expected:
        raise Wrong("a batch gave a wrong result")


def background_batches(client, path, rng):
    body, expected = batch_of(rng)
    job = client.must("POST", path + "/batches", body, (202,), Content_Type=TYPE, Prefer="respond-async").headers["Location"]
    while client.must("GET", job, Prefer="wait=30").json()["state"] in ("queued", "running"):
        pass
    if first_segment(client.must("GET", job + "/result")) != expected:
        raise Wrong("a batch in the background gave a wrong result")
    client.must("DELETE", job)


def bulk(client, path, rng):
    data = rng.randbytes(64 * 1024) * (ROOM_MIB * 16)
    client.must("PUT", f"{path}/buffers/room/data", data, Content_Type=OCTETS)
    if client.must("GET", f"{path}/buffers/room/data").body != data:
        raise Wrong("a download differs from its upload")


def large_answer(client, path, rng):
    size = 65 * MIB + rng.randrange(MIB)
    ops = [{"op": "alloc", "as": "$a", "size": size}, {"op": "fill", "to": "$a", "pattern": {"u8": 7}}, {"op": "read", "from": "$a", "segment": "x"}]
    if first_segment(client.must("POST", path + "/batches", batch_frame({"ops": ops}, {}), Content_Type=TYPE)).count(7) != size:
        raise Wrong("a streamed answer is wrong")


def churn(client, path, rng):
    names = [f"c{i}" for i in range(20)]
    for name in names:
        client.must("PUT", f"{path}/buffers/{name}", {"size": rng.randrange(1, 4 * MIB)})
    for name in names:
        client.must("DELETE", f"{path}/buffers/{name}")


def sessions(client, path, rng):
    other = f"{path}-x{rng.randrange(1 << 30)}"
    prepare(client, other)
    churn(client, other, rng)
    client.must("DELETE", other)


def faults(client, path, rng):
    other = path + "-f"
    client.must("PUT", other, {})
    client.must("PUT", f"{other}/modules/m", SOURCE.encode(), Content_Type="text/x-cuda")
    client.must("PUT", f"{other}/buffers/own", {"size": 4096})
    answer = client.must("POST", f"{other}/launches", {"module": "m", "kernel": "trap", "grid": [1], "block": [32], "args": [{"buf": "own"}]}, (422,))
    if answer.json()["code"] != "kernel_fault":
        raise Wrong(f"a fault was answered {answer}")
    client.must("POST", other + "/reset")
    time.sleep(rng.random() / 2)


def prepare(client, path):
    client.must("PUT", path, {})
    client.must("PUT", f"{path}/modules/m", SOURCE.encode(), Content_Type="text/x-cuda")
    client.must("PUT", f"{path}/buffers/own", {"size": 4096})
    client.must("PUT", f"{path}/buffers/room", {"size": ROOM_MIB * MIB})


class Load(threading.Thread):
    """One kind of work again and again, except while the readings are taken."""

    def __init__(self, soak, work, number):
        super().__init__(name=work.__name__, daemon=True)
        self.soak, self.work, self.rng = soak, work, random.Random(number)
        self.client, self.rounds, self.error = CheckedClient("127.0.0.1", soak.port, timeout=120), 0, None

    def run(self):
        while self.soak.may_go_on():
            try:
                self.work(self.client, self.soak.path, self.rng)
                self.rounds += 1
            except Exception as error:  # noqa: BLE001 - whatever it was, it is the result of this run
                self.error = self.error or f"{self.name}: {error!r}"
                time.sleep(0.2)
        self.client.close()


class Soak:
    path = "/v1/sessions/soak"

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.lock = threading.Condition()
        self.paused = self.ended = False
        self.working = 0
        self.readings = []

    def start(self):
        ports = self.folder / "ports"
        command = [self.options.gpurestd, "--listen", "127.0.0.1:0", "--port-file", str(ports), "--backends", self.options.backends,
                   "--drain-timeout", "2", "--cache", str(self.folder / "cache"), "--log-level", "error", "--result-ttl-s", "5", "--crash-budget", "0"]
        with open(self.folder / "stderr", "wb") as stderr:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)
        deadline = time.monotonic() + 120
        while not ports.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the service does not start")
            time.sleep(0.05)
        self.port = int(ports.read_text().split()[0].rsplit(":", 1)[1])
        self.client = CheckedClient("127.0.0.1", self.port, timeout=120)
        prepare(self.client, self.path)
        kinds = [launches, batches, batches, background_batches, bulk, large_answer, churn, sessions] + ([] if self.options.no_faults else [faults])
        self.loads = [Load(self, kind, i) for i, kind in enumerate(kinds)]
        self.working = len(self.loads)
        for load in self.loads:
            load.start()

    def may_go_on(self):
        with self.lock:
            if self.paused:
                self.working -= 1
                self.lock.notify_all()
                while self.paused and not self.ended:
                    self.lock.wait()
                self.working += 1
            return not self.ended

    def pause(self):
        with self.lock:
            self.paused = True
            if not self.lock.wait_for(lambda: self.working == 0, timeout=180):
                raise SystemExit("the load does not come to a stop: a request hangs")

    def go_on(self, end=False):
        with self.lock:
            self.paused, self.ended = False, end
            self.lock.notify_all()

    def read(self, elapsed):
        """While the load is paused; what is freed in the background has a moment for it."""
        time.sleep(1)
        memory = self.client.must("GET", self.path + "/memory").json()
        usage = self.client.must("GET", self.path).json()["usage"]
        workers = sorted(filter(None, (anonymous_kib(pid) for pid in children_of(self.process.pid))), reverse=True)
        reading = {"s": round(elapsed, 1), "frontend_kib": anonymous_kib(self.process.pid), "workers_kib": workers,
                   "largest_worker_kib": workers[0] if workers else 0, "threads": len(list(pathlib.Path(f"/proc/{self.process.pid}/task").iterdir())),
                   "descriptors": len(os.listdir(f"/proc/{self.process.pid}/fd")),
                   "usage_bytes": usage["memory_bytes"], "buffers": usage["buffers"], "allocated_bytes": memory["allocated_bytes"],
                   "reserved_bytes": memory["reserved_bytes"], "rounds": sum(load.rounds for load in self.loads)}
        self.readings.append(reading)
        print(f"{reading['s']:8.1f} s  front-end {reading['frontend_kib'] / 1024:7.1f} MiB  {len(workers):2d} workers, largest "
              f"{reading['largest_worker_kib'] / 1024:7.1f} MiB  fds {reading['descriptors']:3d}  session: {usage['memory_bytes']} bytes in "
              f"{usage['buffers']} buffers, allocated {memory['allocated_bytes']}, reserved {memory['reserved_bytes']}  rounds {reading['rounds']}",
              flush=True)

    def run(self):
        began = time.monotonic()
        self.start()
        while time.monotonic() - began < self.options.seconds and self.process.poll() is None:
            time.sleep(self.options.interval)
            self.pause()
            self.read(time.monotonic() - began)
            self.go_on()
        self.go_on(end=True)
        for load in self.loads:
            load.join(120)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def verdict(self):
        """What is wrong, in sentences."""
        wrong = [load.error for load in self.loads if load.error]
        wrong += [f"{load.name} did nothing" for load in self.loads if not load.rounds]
        steady = [reading for reading in self.readings if reading["s"] >= self.options.warm_up]
        if len(steady) < 3:
            return wrong + ["too few readings after the warm-up to tell anything"]
        for name in ("usage_bytes", "buffers", "allocated_bytes"):
            if len({reading[name] for reading in steady}) > 1:
                wrong.append(f"{name} of the session changes: {[reading[name] for reading in steady]}")
        for name in ("frontend_kib", "largest_worker_kib"):
            grown = growth_kib(steady, name)
            print(f"{name}: {grown / 1024:+.1f} MiB over the steady part")
            if grown > self.options.grow_mib * 1024:
                wrong.append(f"{name} grew by {grown / 1024:.1f} MiB")
        if growth_kib(steady, "descriptors") > 8:
            wrong.append("the front-end's descriptors grow in number")
        return wrong


def growth_kib(readings, name):
    third = len(readings) // 3
    first, last = ([reading[name] for reading in part] for part in (readings[:third], readings[-third:]))
    return statistics.median(last) - statistics.median(first)


def anonymous_kib(pid):
    """Without what is shared between front-end and worker."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    return int(text.split("RssAnon:")[1].split()[0]) if "RssAnon:" in text else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("gpurestd")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--warm-up", type=float, default=60)
    parser.add_argument("--interval", type=float, default=10)
    parser.add_argument("--backends", default="cpu")
    parser.add_argument("--no-faults", action="store_true")
    parser.add_argument("--grow-mib", type=float, default=24)
    parser.add_argument("--json", help="file for the readings")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(options, pathlib.Path(folder))
        try:
            soak.run()
        finally:
            code = soak.stop()
    wrong = soak.verdict() + ([f"the service ended with {code}"] if code else [])
    print({load.name: load.rounds for load in soak.loads})
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"options": vars(options), "readings": soak.readings, "wrong": wrong}, indent=1) + "\n")
    print("\n".join(wrong) if wrong else "nothing grew, every answer was right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
