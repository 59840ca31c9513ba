#!/usr/bin/env python3
"""Session A computes without pause and checks every result while session B faults again and again.

fault_storm.py HOST:PORT [--token T] [--device ID] [--count 25] [--timeout-ms 500] [--json FILE]
Only the standard library. Ends with 0 when A saw no error and no wrong result and every fault of B was answered as the contract says.
"""
import argparse
import array
import http.client
import json
import random
import sys
import threading
import time

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
JSON = {"Content-Type": "application/json"}


class Client:
    """One kept connection; opens it anew once when the server closed it."""

    def __init__(self, address, token):
        self.address, self.token = address, token
        self.connection = http.client.HTTPConnection(address, timeout=60)

    def call(self, method, path, body=None, headers=None):
        headers = dict(headers or {})
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        if isinstance(body, (dict, list)):
            body, headers = json.dumps(body).encode(), {**headers, **JSON}
        try:
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self.connection.close()
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
        return answer.status, answer.read()

    def must(self, method, path, body=None, headers=None):
        status, data = self.call(method, path, body, headers)
        if not 200 <= status < 300:
            raise RuntimeError(f"{method} {path}: {status} {data[:300]!r}")
        return data


class Neighbour(threading.Thread):
    """Session A."""

    def __init__(self, address, token, device):
        super().__init__()
        self.client, self.device = Client(address, token), device
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
        self.client.must("PUT", f"{base}/modules/m", VADD.encode(), {"Content-Type": "text/x-cuda"})

    def round(self, rng):
        base = "/v1/sessions/storm-a"
        octets = {"Content-Type": "application/octet-stream"}
        # Whole numbers below 2^22: their sums are exact in 32-bit floats.
        a = array.array("f", (rng.randrange(1 << 22) for _ in range(WORDS)))
        b = array.array("f", (rng.randrange(1 << 22) for _ in range(WORDS)))
        expected = array.array("f", (x + y for x, y in zip(a, b)))
        began = time.monotonic()
        self.client.must("PUT", f"{base}/buffers/a/data", a.tobytes(), octets)
        self.client.must("PUT", f"{base}/buffers/b/data", b.tobytes(), octets)
        launch = {"module": "m", "kernel": "vadd", "grid": [WORDS // 256], "block": [256],
                  "args": [{"buf": "a"}, {"buf": "b"}, {"buf": "c"}, {"i32": WORDS}]}
        self.client.must("POST", f"{base}/launches", launch)
        got = self.client.must("GET", f"{base}/buffers/c/data")
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
        self.client.call("DELETE", "/v1/sessions/storm-a")


def prepare_faults(client):
    base = "/v1/sessions/storm-b"
    client.must("PUT", f"{base}/buffers/p", {"size": 4096})
    client.must("POST", f"{base}/buffers/p/fill", {"pattern": {"u32": 0}})
    client.must("PUT", f"{base}/modules/f", FAULTS.encode(), {"Content-Type": "text/x-cuda"})


def one_fault(client, kernel, timeout_ms, on_cuda):
    """What went differently from the contract; None: nothing. And the seconds that the reset took until work was possible again."""
    base = "/v1/sessions/storm-b"
    prepare_faults(client)
    argument = {"u64": 16} if kernel == "illegal" else {"buf": "p"}
    launch = {"module": "f", "kernel": kernel, "grid": [1], "block": [32], "args": [argument], "timeout_ms": timeout_ms}
    status, data = client.call("POST", f"{base}/launches", launch)
    problem = json.loads(data)
    want_status, want_code, want_results = EXPECTED[kernel]
    wrong = None
    if (status, problem.get("code")) != (want_status, want_code):
        wrong = f"{kernel}: {status} {problem.get('code')} {str(problem.get('detail'))[:200]}"
    elif on_cuda and want_results and (problem.get("cuda") or {}).get("result") not in want_results:
        wrong = f"{kernel}: cuda {problem.get('cuda')}"
    state = json.loads(client.must("GET", base)).get("state")
    if state != "faulted":
        wrong = wrong or f"{kernel}: the session is {state}"
    began = time.monotonic()
    status, data = client.call("POST", f"{base}/reset")
    for _ in range(200):  # the pool may be refilling
        if status != 503:
            break
        time.sleep(0.05)
        status, data = client.call("POST", f"{base}/reset")
    took = time.monotonic() - began
    if status != 200:
        wrong = wrong or f"{kernel}: reset answered {status} {data[:200]!r}"
    return wrong, took


def storm(address, token, device, count, timeout_ms, on_cuda):
    client = Client(address, token)
    client.must("PUT", "/v1/sessions/storm-b", {"device": device} if device else {})
    result = {"faults": {}, "unexpected": [], "resets_s": []}
    for kernel in EXPECTED:
        good = 0
        for _ in range(count):
            try:
                wrong, took = one_fault(client, kernel, timeout_ms, on_cuda)
            except Exception as error:  # noqa: BLE001
                wrong, took = f"{kernel}: {error!r}", 0.0
            good += wrong is None
            result["resets_s"].append(took)
            if wrong and len(result["unexpected"]) < 20:
                result["unexpected"].append(wrong)
        result["faults"][kernel] = f"{good} of {count}"
        print(f"{kernel}: {good} of {count} answered as they should", flush=True)
    client.call("DELETE", "/v1/sessions/storm-b")
    return result


def worker_times(client):
    """Mean seconds that this service's workers took to start and to end, since it began; what a reset without a warm worker waits for."""
    text = client.must("GET", "/metrics").decode()
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
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    client = Client(options.address, options.token)
    devices = json.loads(client.must("GET", "/v1/devices"))["items"]
    device = next((d for d in devices if d["id"] == options.device), devices[0])
    neighbour = Neighbour(options.address, options.token, options.device)
    neighbour.start()
    neighbour.ready.wait(60)
    try:
        result = storm(options.address, options.token, options.device, options.count, options.timeout_ms, device["backend"] == "cuda")
    finally:
        neighbour.stop.set()
        neighbour.join()
    durations, resets = sorted(neighbour.durations) or [0.0], sorted(result.pop("resets_s"))
    result["neighbour"] = {"rounds": neighbour.rounds, "errors": neighbour.errors, "wrong_results": neighbour.wrong,
                           "longest_ms": round(neighbour.longest_s * 1e3, 1), "median_ms": round(durations[len(durations) // 2] * 1e3, 2),
                           "first_error": neighbour.first_error}
    result["reset_ms"] = {"median": round(resets[len(resets) // 2] * 1e3, 2), "longest": round(resets[-1] * 1e3, 1)}
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
