#!/usr/bin/env python3
"""What an operator sees while the service works: unpacks a bundle, starts the service from there, has two sessions compute for some seconds, and
meanwhile asks for everything that the dashboard, a scraper and the command line tool show. Prints a digest.

    python3 tests/bench/bundle_load.py build/release/gpurest-bundle.tar.gz [--backend cuda] [--libcuda FILE] [--nvrtc FILE] [--seconds 20]

The figures are of this load on this machine; they show that the sources work and agree with each other, and compare nothing."""
import argparse
import contextlib
import http.client
import json
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "sdk" / "python"))

import gpurest  # noqa: E402

START_S = 60
TOOL_S = 30
WORDS = 1 << 20
SOURCE = """
extern "C" __global__ void step(float *x, float by, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] = x[i] * by + 1.0f;
}
"""
KEPT = re.compile(r"^(gpurest_(launches_total|launch_exec_seconds_(sum|count)|transfer_bytes_total|sessions|workers|device_|compile_|ready|problems_total|batch)"
                  r"|http_server_request_duration_seconds_count)")


class Bundle:
    """Unpacked, with its service running."""

    def __init__(self, archive, folder, flags):
        with tarfile.open(archive) as tar:
            tar.extractall(folder / "unpacked")
        (self.top,) = (folder / "unpacked").iterdir()
        ports = folder / "ports"
        self.log = folder / "log"
        arguments = ["--listen=127.0.0.1:0", f"--port-file={ports}", "--cache=none", "--drain-timeout=1", *flags]
        began = time.monotonic()
        with self.log.open("w") as log:
            self.process = subprocess.Popen([self.top / "bin" / "gpurestd", *arguments], stdin=subprocess.DEVNULL, stderr=log)
        while not ports.exists() or not ports.read_text().endswith("\n"):
            if self.process.poll() is not None or time.monotonic() - began > START_S:
                self.stop()
                raise SystemExit("the bundle's service did not start:\n" + self.log.read_text()[-4000:])
            time.sleep(0.02)
        self.started_s = time.monotonic() - began
        self.port = int(ports.read_text().split()[0].rsplit(":", 1)[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self):
        """The exit status of a stop by SIGTERM."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(START_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TOOL_S)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            body = answer.read().decode()
        if answer.status >= 400:
            raise SystemExit(f"{path}: {answer.status} {body[:500]}")
        return body

    def tool(self, *arguments):
        done = subprocess.run([self.top / "bin" / "gpurest", "--url", self.url, *arguments], capture_output=True, text=True, timeout=TOOL_S, check=False)
        return done.returncode, (done.stdout + done.stderr).rstrip()


# ---- the load ----


class Load:
    """Threads that work until stop(); each its own session."""

    def __init__(self, url):
        self.url = url
        self.over = threading.Event()
        self.counts = {}
        self.failures = []
        self.threads = [threading.Thread(target=self._run, args=(work,), name=work.__name__) for work in (self.launches, self.batches)]
        for one in self.threads:
            one.start()

    def stop(self):
        self.over.set()
        for one in self.threads:
            one.join()

    def _run(self, work):
        try:
            with gpurest.connect(self.url) as gpu, gpu.session(f"load-{work.__name__}", labels={"what": work.__name__}) as session:
                for what in work(session):
                    self.counts[what] = self.counts.get(what, 0) + 1
                    if self.over.is_set():
                        return
        except Exception as error:  # noqa: BLE001 - told in the digest, which then fails
            self.failures.append(f"{work.__name__}: {type(error).__name__}: {error}")

    @staticmethod
    def launches(session):
        """Single launches, uploads and downloads."""
        kernel = session.module(SOURCE).kernel("step")
        data = bytearray(4 * WORDS)
        x = session.buffer(data)
        while True:
            x.write(data)
            yield "uploads"
            for _ in range(20):
                kernel.for_n(WORDS)(x, 0.5, WORDS)
                yield "launches"
            x.read()
            yield "downloads"

    @staticmethod
    def batches(session):
        """Requests of an upload, eight launches and a download each."""
        kernel = session.module(SOURCE).kernel("step")
        data = bytearray(4 * 4096)
        while True:
            with session.batch() as batch:
                x = session.buffer(data)
                for _ in range(8):
                    kernel.for_n(4096)(x, 0.5, 4096)
                x.get_async()
                x.free()
            assert batch.submitted
            yield "batches"


class Changes(threading.Thread):
    """One stretch of /v1/changes: how many events of each kind came."""

    def __init__(self, bundle, seconds):
        super().__init__(name="changes")
        self.bundle, self.seconds, self.seen, self.first_s = bundle, seconds, {}, None
        self.start()

    def run(self):
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.bundle.port, timeout=self.seconds + TOOL_S)
        with contextlib.closing(connection):
            connection.request("GET", f"/v1/changes?timeout_seconds={self.seconds}", headers={"Accept": "text/event-stream"})
            for line in connection.getresponse():
                if line.startswith(b"event:"):
                    kind = line[6:].strip().decode()
                    self.seen[kind] = self.seen.get(kind, 0) + 1
                    self.first_s = self.first_s or time.monotonic() - began


# ---- the digest ----


def samples(text):
    """Lines of Prometheus' text format by name and labels; no buckets."""
    found = {}
    for line in text.splitlines():
        if line and line[0] != "#":
            name, value = line.rsplit(" ", 1)
            if "_bucket" not in name:
                found[name] = float(value)
    return found


def print_metrics(before, during, after):
    print(f"\n/metrics: {len(after)} samples without buckets; those that matter, before, during and after the load")
    rows = {name: (before.get(name, 0.0), during.get(name, 0.0), value) for name, value in after.items() if KEPT.match(name)}
    width = max(map(len, rows))
    for name, row in rows.items():
        if any(row):
            print(f"  {name:{width}} " + " ".join(f"{one:12.6g}" for one in row))


def print_dashboard(device, sessions, limits):
    memory = device["memory"]
    print(f"\n/v1/devices: {device['id']} {device['name']} {device['state']}, {device.get('temperature_c')} C, {device.get('power_w')} W, "
          f"{device.get('utilization_pct')} % busy, {memory['free_bytes']} of {memory['total_bytes']} bytes free")
    print("/v1/sessions:")
    for one in sessions:
        usage = one["usage"]
        print(f"  {one['id']} {one['state']}: {usage['device_time_us'] / 1e6:.3f} s of device time, {usage['memory_bytes']} bytes, "
              f"{usage['buffers']} buffers, {usage['launches']} launches")
    used = [f"{name} {row['used']}/{row['max']}" for name, row in limits.items() if row.get("used")]
    print("/v1/limits in use: " + ", ".join(used))


def measure(bundle, seconds):
    """Prints the digest; True if everything that should have moved has."""
    print(f"started in {bundle.started_s * 1e3:.0f} ms; {json.loads(bundle.get('/version'))['version']}, {bundle.get('/readyz').strip()}")
    before = samples(bundle.get("/metrics"))
    changes, load = Changes(bundle, max(2, int(seconds))), Load(bundle.url)
    time.sleep(seconds / 2)
    during = samples(bundle.get("/metrics"))
    device, sessions, limits = (json.loads(bundle.get(path)) for path in ("/v1/devices", "/v1/sessions", "/v1/limits"))
    status, top = bundle.tool("status"), bundle.tool("top", "--once")
    time.sleep(seconds / 2)
    load.stop()
    changes.join()
    after = samples(bundle.get("/metrics"))
    print(f"load of {seconds:g} s: " + ", ".join(f"{count} {what}" for what, count in sorted(load.counts.items())))
    print_metrics(before, during, after)
    print_dashboard(device["items"][0], sessions["items"], limits["limits"])
    print(f"/v1/changes: {changes.seen}, the first after {changes.first_s if changes.first_s is None else round(changes.first_s, 3)} s")
    for name, (code, text) in (("gpurest status", status), ("gpurest top --once", top)):
        print(f"\n$ {name}   # exit status {code}\n{text}")
    wrong = verdict(load, before, during, after, changes, sessions["items"], (status, top))
    print("\n" + ("; ".join(wrong) if wrong else "all sources answered and agree"))
    return not wrong


def verdict(load, before, during, after, changes, sessions, tools):
    """Sentences about what is wrong."""
    def moved(name, start, end):
        return sum(end.get(key, 0) - start.get(key, 0) for key in end if key.startswith(name))

    wrong = list(load.failures)
    expected = load.counts.get("launches", 0) + 8 * load.counts.get("batches", 0)
    counted = moved('gpurest_launches_total{outcome="succeeded"', before, after)
    if not expected <= counted <= expected + 8:  # what ran when the load was stopped
        wrong.append(f"{counted:g} launches counted, {expected} answered")
    for name in ("gpurest_launches_total", "gpurest_transfer_bytes_total", "http_server_request_duration_seconds_count"):
        if moved(name, before, during) <= 0 or moved(name, during, after) <= 0:
            wrong.append(f"{name} did not move")
    if not changes.seen.get("sessions"):
        wrong.append("no change of sessions was told")
    if not {"load-launches", "load-batches"} <= {one["id"] for one in sessions}:
        wrong.append("the sessions are not listed")
    if any(code not in (0, 9) for code, _ in tools):  # 9: a device that is not well
        wrong.append("the command line tool failed")
    return wrong


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("bundle", type=pathlib.Path)
    options.add_argument("--backend", default="cuda")
    options.add_argument("--libcuda")
    options.add_argument("--nvrtc")
    options.add_argument("--seconds", type=float, default=20)
    given = options.parse_args()
    flags = [f"--{name}={value}" for name, value in (("backends", given.backend), ("libcuda", given.libcuda), ("nvrtc", given.nvrtc)) if value]
    with tempfile.TemporaryDirectory() as folder:
        bundle = Bundle(given.bundle, pathlib.Path(folder), flags)
        try:
            fine = measure(bundle, given.seconds)
        finally:
            code = bundle.stop()
        print(f"stopped with exit status {code}")
    return 0 if fine and code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
