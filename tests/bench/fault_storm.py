#!/usr/bin/env python3
"""Session A computes without pause and checks every result while session B faults again and again.

fault_storm.py HOST:PORT [--token T] [--device ID] [--count 25] [--timeout-ms 500] [--pause-ms 0] [--json FILE]
B does nothing for --pause-ms between a reset and the next fault.
Only the standard library. Ends with 0 when A saw no error and no wrong result and every fault of B was answered as the contract says.
"""
import argparse
import array
import json
import random
import sys
import threading
import time

from checked_client import CheckedClient

VADD = """extern "C" __global__ void vadd(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""
FAULTS = """extern "C" __global__ void illegal(unsigned *p) { *(volatile unsigned *)p = 1; }
extern "C" __global__ void trap(unsigned *p) { asm volatile("trap;"); }
extern "C" __global__ void misaligned(unsigned *p) { *(volatile unsigned *)((char *)p + 1) = 1; }
extern "C" __global__ void endless(unsigned *p) { for (;;) { asm volatile(""); if (*(volatile unsigned *)p == 77) break; } }
"""
# kernel: status, code, results of the CUDA driver (None: not said)
EXPECTED = {
    "illegal": (422, "kernel_fault", {700}),
    "trap": (422, "kernel_fault", {715, 719}),
    "misaligned": (422, "kernel_fault", {716}),
    "endless": (504, "execution_timeout", None),
}
WORDS = 4096
LATE_S = 0.005


def client_of(address, token):
    host, port = address.rsplit(":", 1)
    return CheckedClient(host, int(port), {"Authorization": "Bearer " + token} if token else {})


class Neighbour(threading.Thread):
    """Session A."""

    def __init__(self, address, token, device):
        super().__init__()
        self.client, self.device = client_of(address, token), device
        self.stop, self.ready = threading.Event(), threading.Event()
        self.rounds = self.errors = self.wrong = 0
        self.longest_s = 0.0
        self.durations = []
        self.first_error = None

    def prepare(self):
        base = "/v1/sessions/storm-a"
        self.client.must("PUT", base, {"device": self.device} if self.device else {})
        for name in "abc":
            self.client.must("PUT", f"{base}/buffers/{name}", {"size": 4 * WORDS})
        self.client.must("PUT", f"{base}/modules/m", VADD.encode(), Content_Type="text/x-cuda")

    def round(self, rng):
        base = "/v1/sessions/storm-a"
        # Whole numbers below 2^22: their sums are exact in 32-bit floats.
        a = array.array("f", (rng.randrange(1 << 22) for _ in range(WORDS)))
        b = array.array("f", (rng.randrange(1 << 22) for _ in range(WORDS)))
        expected = array.array("f", (x + y for x, y in zip(a, b)))
        began = time.monotonic()
        self.client.must("PUT", f"{base}/buffers/a/data", a.tobytes(), Content_Type="application/octet-stream")
        self.client.must("PUT", f"{base}/buffers/b/data", b.tobytes(), Content_Type="application/octet-stream")
        launch = {"module": "m", "kernel": "vadd", "grid": [WORDS // 256], "block": [256],
                  "args": [{"buf": "a"}, {"buf": "b"}, {"buf": "c"}, {"i32": WORDS}]}
        self.client.must("POST", f"{base}/launches", launch)
        got = self.client.must("GET", f"{base}/buffers/c/data").body
        took = time.monotonic() - began
        self.durations.append(took)
        self.longest_s = max(self.longest_s, took)
        self.wrong += got != expected.tobytes()
        self.rounds += 1

    def run(self):
        rng = random.Random(1)
        try:
            self.prepare()
        except Exception as error:  # noqa: BLE001 - whatever it was, it is the result of this run
            self.errors, self.first_error = 1, repr(error)
            self.ready.set()
            return
        while not self.stop.is_set():
            try:
                self.round(rng)
            except Exception as error:  # noqa: BLE001
                self.errors += 1
                self.first_error = self.first_error or repr(error)
                time.sleep(0.05)
            self.ready.set()
        self.client.delete("/v1/sessions/storm-a")


def prepare_faults(client):
    base = "/v1/sessions/storm-b"
    client.must("PUT", f"{base}/buffers/p", {"size": 4096})
    client.must("POST", f"{base}/buffers/p/fill", {"pattern": {"u32": 0}})
    client.must("PUT", f"{base}/modules/f", FAULTS.encode(), Content_Type="text/x-cuda")


def one_fault(client, kernel, timeout_ms, on_cuda):
    """What went differently from the contract; None: nothing. And the seconds until the fault was told, and that the reset took until work was possible again."""
    base = "/v1/sessions/storm-b"
    prepare_faults(client)
    argument = {"u64": 16} if kernel == "illegal" else {"buf": "p"}
    launch = {"module": "f", "kernel": kernel, "grid": [1], "block": [32], "args": [argument], "timeout_ms": timeout_ms}
    began = time.monotonic()
    answer = client.post(f"{base}/launches", launch)
    told = time.monotonic() - began
    problem = answer.json()
    want_status, want_code, want_results = EXPECTED[kernel]
    wrong = None
    if (answer.status, problem.get("code")) != (want_status, want_code):
        wrong = f"{kernel}: {answer.status} {problem.get('code')} {str(problem.get('detail'))[:200]}"
    elif on_cuda and want_results and (problem.get("cuda") or {}).get("result") not in want_results:
        wrong = f"{kernel}: cuda {problem.get('cuda')}"
    state = client.must("GET", base).json().get("state")
    if state != "faulted":
        wrong = wrong or f"{kernel}: the session is {state}"
    began = time.monotonic()
    answer = client.post(f"{base}/reset")
    for _ in range(200):  # the pool may be refilling
        if answer.status != 503:
            break
        time.sleep(0.05)
        answer = client.post(f"{base}/reset")
    took = time.monotonic() - began
    if answer.status != 200:
        wrong = wrong or f"{kernel}: reset answered {answer}"
    return wrong, told, took


def median_ms(seconds):
    return round(sorted(seconds)[len(seconds) // 2] * 1e3, 2)


def storm(options, on_cuda):
    client = client_of(options.address, options.token)
    client.must("PUT", "/v1/sessions/storm-b", {"device": options.device} if options.device else {})
    result = {"faults": {}, "told_ms": {}, "unexpected": [], "resets_s": []}
    for kernel in EXPECTED:
        good, tells = 0, []
        for _ in range(options.count):
            time.sleep(options.pause_ms / 1e3)
            try:
                wrong, told, took = one_fault(client, kernel, options.timeout_ms, on_cuda)
            except Exception as error:  # noqa: BLE001
                wrong, told, took = f"{kernel}: {error!r}", 0.0, 0.0
            good += wrong is None
            tells.append(told)
            result["resets_s"].append(took)
            if wrong and len(result["unexpected"]) < 20:
                result["unexpected"].append(wrong)
        result["faults"][kernel] = f"{good} of {options.count}"
        result["told_ms"][kernel] = median_ms(tells)
        print(f"{kernel}: {good} of {options.count} answered as they should", flush=True)
    client.delete("/v1/sessions/storm-b")
    return result


def worker_times(client):
    """Mean seconds that this service's workers took to start and to end, since it began; what a reset without a warm worker waits for."""
    text = client.must("GET", "/metrics").body.decode()
    found = {}
    for what in ("start", "end"):
        total, count = (float(next((line.split()[-1] for line in text.splitlines() if line.startswith(f"gpurest_worker_{what}_seconds_{part}")), 0))
                        for part in ("sum", "count"))
        found[what] = {"count": int(count), "mean_s": round(total / count, 3) if count else None}
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("--token", default="")
    parser.add_argument("--device", default="")
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--timeout-ms", type=int, default=500)
    parser.add_argument("--pause-ms", type=int, default=0)
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    sys.setswitchinterval(1e-4)  # with Python's own 5 ms a reset's answer waits that long for the neighbour's thread
    client = client_of(options.address, options.token)
    devices = client.must("GET", "/v1/devices").json()["items"]
    device = next((d for d in devices if d["id"] == options.device), devices[0])
    neighbour = Neighbour(options.address, options.token, options.device)
    neighbour.start()
    neighbour.ready.wait(60)
    try:
        result = storm(options, device["backend"] == "cuda")
    finally:
        neighbour.stop.set()
        neighbour.join()
    durations, resets = sorted(neighbour.durations) or [0.0], sorted(result.pop("resets_s"))
    result["neighbour"] = {"rounds": neighbour.rounds, "errors": neighbour.errors, "wrong_results": neighbour.wrong,
                           "longest_ms": round(neighbour.longest_s * 1e3, 1), "median_ms": median_ms(durations),
                           "first_error": neighbour.first_error}
    result["reset_ms"] = {"median": median_ms(resets), "longest": round(resets[-1] * 1e3, 1), "late": sum(took > LATE_S for took in resets)}
    result["workers"] = worker_times(client)
    text = json.dumps(result, indent=1)
    print(text)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    good = neighbour.rounds > 0 and not neighbour.errors and not neighbour.wrong and not result["unexpected"]
    print("fault storm:", "passed" if good else "FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
