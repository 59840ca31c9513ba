#!/usr/bin/env python3
"""Fault domains on a real GPU: how fast sessions are side by side, and what a fault of one costs the others.

    fault_domains.py GPURESTD --mps FOLDER [--backends cuda] [--seconds 4] [--sessions 2,8] [--faults 20] [--limit-s S] [--members 3] [--log FILE]
                     [--json FILE] [-- MORE ARGUMENTS OF GPURESTD]

FOLDER holds nvidia-cuda-mps-control and nvidia-cuda-mps-server, as a driver's package or its .run file has them. Only the standard library; compiles
with the NVRTC that GPURESTD finds (--nvrtc PATH behind --). Starts the service itself, and prints three tables:

- what works in a session of a domain as it does in one that stands alone: memory, copies, batches, programs, printf, built-in kernels;
- launches a second and their times, by clients that are processes of their own: sessions alone, and the same number in one domain;
- faults of one session of a domain, beside its other members and beside sessions alone: who was lost, who got a wrong result, how long it took.

Ends with 0 if everything worked in a domain, every fault was told as the contract says, and no session outside the domain lost or mistook anything.
Without a GPU, for a try: --backends cpu (there a domain has no server)."""
import argparse
import array
import glob
import json
import multiprocessing
import os
import pathlib
import signal
import socket
import statistics
import struct
import sys
import tempfile
import threading
import time

from checked_client import CheckedClient, Wrong
from service_under_test import Service, until

KERNELS = r"""
extern "C" __global__ void vadd(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void tick(unsigned *p) { if (threadIdx.x == 0) p[0] += 1; }
extern "C" __global__ void illegal(unsigned *p) { *(volatile unsigned *)p = 1; }
extern "C" __global__ void trap(unsigned *p) { asm volatile("trap;"); }
extern "C" __global__ void endless(unsigned *p) { for (;;) { if (*(volatile unsigned *)p == 77) break; } }
extern "C" __global__ void hello(unsigned n) { printf("hello %u\n", n); }
"""
WORDS = 4096
OCTETS, CUDA = {"Content_Type": "application/octet-stream"}, {"Content_Type": "text/x-cuda"}
ALONE, MEMBER = {}, {"fault_domain": "train"}
HEAL_S = 60


def launch(kernel, *args, grid=1, block=32, **more):
    return {"module": "m", "kernel": kernel, "grid": [grid], "block": [block], "args": list(args), **more}


def make(client, name, spec, device):
    base = f"/v1/sessions/{name}"
    client.must("PUT", base, {"device": device, **spec})
    fill(client, base)
    return base


def fill(client, base):
    client.must("PUT", base + "/modules/m", KERNELS.encode(), **CUDA)
    for buffer in "abcp":
        client.must("PUT", f"{base}/buffers/{buffer}", {"size": 4 * WORDS})
    client.must("POST", base + "/buffers/p/fill", {"pattern": {"u32": 0}})


def add_up(client, base, seed):
    """True: the sums are right. Whole numbers, exact in 32-bit floats."""
    a = array.array("f", ((seed * 31 + i * 7) % 65536 for i in range(WORDS)))
    b = array.array("f", ((seed * 17 + i * 3) % 65536 for i in range(WORDS)))
    client.must("PUT", base + "/buffers/a/data", a.tobytes(), **OCTETS)
    client.must("PUT", base + "/buffers/b/data", b.tobytes(), **OCTETS)
    client.must("POST", base + "/launches", launch("vadd", {"buf": "a"}, {"buf": "b"}, {"buf": "c"}, {"i32": WORDS}, grid=WORDS // 256, block=256))
    return client.must("GET", base + "/buffers/c/data").body == array.array("f", (x + y for x, y in zip(a, b))).tobytes()


# ---- what works ----

def large_buffer(client, base):
    bytes_ = 64 << 20
    client.must("PUT", base + "/buffers/large", {"size": bytes_})
    client.must("POST", base + "/buffers/large/fill", {"pattern": {"u32": 0x01020304}})
    got = client.must("GET", base + "/buffers/large/data").body
    client.must("DELETE", base + "/buffers/large")
    assert got == struct.pack("<I", 0x01020304) * (bytes_ // 4), "other bytes came back"


def upload(client, base):
    body = os.urandom(32 << 20)
    client.must("PUT", base + "/buffers/up/data", body, expected=(404,), **OCTETS)
    client.must("PUT", base + "/buffers/up", body, **OCTETS)
    assert client.must("GET", base + "/buffers/up/data").body == body, "other bytes came back"
    client.must("DELETE", base + "/buffers/up")


def prints(client, base):
    answer = client.must("POST", base + "/launches", launch("hello", {"u32": 7}, block=1)).json()
    assert answer["stdout"] == "hello 7\n", answer


def batch(client, base):
    client.must("POST", base + "/buffers/p/fill", {"pattern": {"u32": 0}})
    client.must("POST", base + "/batches", {"ops": [{"op": "launch", **launch("tick", {"buf": "p"})}] * 100})
    got = client.must("GET", base + "/buffers/p/data").body[:4]
    assert got == struct.pack("<I", 100), got
    client.must("POST", base + "/buffers/p/fill", {"pattern": {"u32": 0}})


def streams(client, base):
    for i in range(8):
        client.must("POST", base + "/launches", launch("tick", {"buf": "p"}, stream=f"s{i}"))
    client.must("POST", base + "/sync", {})
    client.must("POST", base + "/buffers/p/fill", {"pattern": {"u32": 0}})


def many_modules(client, base):
    for i in range(20):
        client.must("PUT", f"{base}/modules/n{i}", (KERNELS + f"\n// {i}\n").encode(), **CUDA)
    for i in range(20):
        client.must("DELETE", f"{base}/modules/n{i}")


def memory(client, base):
    assert client.must("GET", base + "/memory").json()["free_bytes"] > 0
    client.must("POST", base + "/memory/trim", {})


WORKS = [("memory of 64 MiB", large_buffer), ("an upload of 32 MiB", upload), ("printf()", prints), ("a batch of 100 launches", batch),
         ("eight streams", streams), ("twenty modules", many_modules), ("memory figures and trim", memory),
         ("right sums", lambda client, base: add_up(client, base, 5) or sys.exit("wrong sums"))]


def outcome(work, client, base):
    try:
        work(client, base)
        return "works"
    except (Wrong, AssertionError, KeyError) as error:
        return str(error)[:160]


def what_works(bench):
    client, right = bench.client(), True
    rows = []
    for name, spec in (("alone", ALONE), ("member", MEMBER)):
        began = time.monotonic()
        base = make(client, name, spec, bench.device)
        rows.append((f"start of a session ({name})", f"{time.monotonic() - began:.2f} s"))
    print(f"\n{'in a session':<28} {'alone':<40} of a domain")
    for title, work in WORKS:
        alone, member = outcome(work, client, "/v1/sessions/alone"), outcome(work, client, "/v1/sessions/member")
        right = right and alone == member == "works"
        print(f"{title:<28} {alone:<40} {member}", flush=True)
    told = client.get("/v1/sessions/member").json()["fault_domain"]
    sandbox = client.get("/v1/devices").json()["items"][0].get("sandbox")
    print(f"fault_domain of the member: {told}; the weakest sandbox on the device: {sandbox}; " + "; ".join(f"{a}: {b}" for a, b in rows))
    for name in ("alone", "member"):
        client.delete("/v1/sessions/" + name)
    return right and (told["shared_server"] or bench.options.backends == "cpu")


# ---- how fast ----

def request_of(base):
    body = json.dumps(launch("tick", {"buf": "p"})).encode()
    return (f"POST {base}/launches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


def read_answer(connection, pending):
    while b"\r\n\r\n" not in pending:
        pending += connection.recv(65536)
    head, _, rest = pending.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise Wrong((head + rest)[:400])
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(rest) < length:
        rest += connection.recv(65536)
    return rest[length:]


def drive(port, base, seconds, go, results):
    """A client of its own process: one launch after the other. Microseconds of each."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request, pending, took = request_of(base), b"", []
    go.wait()
    end = time.perf_counter() + seconds
    try:
        while (began := time.perf_counter()) < end:
            connection.sendall(request)
            pending = read_answer(connection, pending)
            took.append((time.perf_counter() - began) * 1e6)
        results.put(took)
    except (Wrong, OSError) as error:
        results.put(str(error))


def rate(bench, bases):
    go, results = multiprocessing.Barrier(len(bases)), multiprocessing.Queue()
    clients = [multiprocessing.Process(target=drive, args=(bench.service.port, base, bench.options.seconds, go, results)) for base in bases]
    for one in clients:
        one.start()
    took = [results.get() for _ in clients]
    for one in clients:
        one.join()
    wrong = [one for one in took if isinstance(one, str)]
    if wrong:
        raise Wrong(wrong[0])
    every = sorted(one for each in took for one in each)
    return {"launches_per_s": len(every) / bench.options.seconds, "p50_us": statistics.median(every), "p99_us": every[len(every) * 99 // 100]}


def how_fast(bench):
    print(f"\n{'sessions':<10} {'where':<12} {'launches/s':>11} {'p50 µs':>8} {'p99 µs':>8}")
    client, rows = bench.client(), []
    for count in [1, *map(int, bench.options.sessions.split(","))]:
        for where, spec in (("alone", ALONE), ("one domain", MEMBER)):
            bases = [make(client, f"t{i}", spec, bench.device) for i in range(count)]
            row = {"sessions": count, "where": where, **rate(bench, bases)}
            rows.append(row)
            print(f"{count:<10} {where:<12} {row['launches_per_s']:>11,.0f} {row['p50_us']:>8.1f} {row['p99_us']:>8.1f}", flush=True)
            for base in bases:
                client.must("DELETE", base)
    return rows


# ---- faults ----

class Neighbour(threading.Thread):
    """A session that computes and checks without pause. A member of the domain counts its falls and resets itself."""

    def __init__(self, bench, name, spec):
        super().__init__()
        self.client, self.member = bench.client(), bool(spec)
        self.base = make(self.client, name, spec, bench.device)
        self.stop, self.falls, self.rounds, self.lost, self.wrong, self.longest_s = threading.Event(), 0, 0, 0, 0, 0.0
        self.codes, self.first = set(), None

    def heal(self):
        fault = self.client.must("GET", self.base).json().get("fault") or {}
        self.codes.add(fault.get("code"))
        self.first = self.first or str(fault.get("detail"))[:200]
        self.client.must("POST", self.base + "/reset")
        fill(self.client, self.base)
        self.falls += 1

    def once(self):
        began = time.monotonic()
        self.wrong += not add_up(self.client, self.base, self.rounds)
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        self.rounds += 1

    def run(self):
        while not self.stop.is_set():
            try:
                self.once()
            except Exception as error:  # noqa: BLE001 - whatever it was, it is a loss of this session
                if self.member and self.client.get(self.base).json().get("state") == "faulted":
                    try:
                        self.heal()
                        continue
                    except Exception as second:  # noqa: BLE001
                        error = second
                self.lost += 1
                self.first = self.first or repr(error)[:200]
                time.sleep(0.1)


class Culprit:
    """The session of the domain that faults; the service keeps no warm workers, so a new process is its own."""

    def __init__(self, bench):
        self.bench, self.client = bench, bench.client()
        self.worker = self.new_worker(lambda: make(self.client, "culprit", MEMBER, bench.device))
        self.base = "/v1/sessions/culprit"

    def new_worker(self, work):
        before = self.bench.service.children()
        work()
        return self.bench.service.children() - before

    def kernel(self, name):
        arg = {"u64": 64} if name == "illegal" else {"buf": "p"}
        answer = self.client.post(self.base + "/launches", launch(name, arg, timeout_ms=20000))
        return answer.status, answer.json().get("code")

    def killed(self, _):
        sent = self.client.must("POST", self.base + "/launches", launch("endless", {"buf": "p"}, timeout_ms=60000), Prefer="respond-async")
        path = sent.headers["Location"]
        until(lambda: self.client.must("GET", path).json()["state"] == "running", "the endless kernel does not begin")
        for pid in self.worker:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        until(lambda: self.client.must("GET", path).json()["state"] == "failed", "the launch outlives its worker")
        return None, self.client.must("GET", path).json()["problem"]["code"]

    def heal(self):
        until(lambda: self.client.must("GET", self.base).json()["state"] == "faulted", "the session is not faulted", HEAL_S)
        self.worker = self.new_worker(lambda: self.client.must("POST", self.base + "/reset"))
        fill(self.client, self.base)
        assert add_up(self.client, self.base, 1), "wrong sums after a reset"


def faults(bench):
    print(f"\n{'fault':<10} {'times':>6} {'told right':>11} {'heal s (most)':>14} {'members: fell':>14} {'wrong':>6} {'lost':>5}"
          f" {'alone: rounds':>14} {'lost':>5} {'wrong':>6} {'longest s':>10}", flush=True)
    right, rows = True, []
    for kind in ("illegal", "trap", "killed"):
        members = [Neighbour(bench, f"m{i}", MEMBER) for i in range(bench.options.members)]
        alone = [Neighbour(bench, f"alone{i}", ALONE) for i in range(2)]
        culprit = Culprit(bench)
        for one in members + alone:
            one.start()
        told, heals = 0, []
        try:
            ends = time.monotonic() + bench.options.limit_s
            while len(heals) < bench.options.faults and time.monotonic() < ends:
                _, code = culprit.killed(kind) if kind == "killed" else culprit.kernel(kind)
                began = time.monotonic()
                told += code in ({"worker_lost", "fault_domain_lost"} if kind == "killed" else {"kernel_fault", "fault_domain_lost"})
                # before the culprit's reset, whose new process is to be told apart
                until(lambda: all(one.falls > len(heals) for one in members), "a member did not fall, or does not heal", HEAL_S)
                culprit.heal()
                heals.append(time.monotonic() - began)
        except (AssertionError, Wrong) as error:
            print(f"{kind}: {error}")
            right = False
        for one in members + alone:
            one.stop.set()
        for one in members + alone:
            one.join()
        row = {"fault": kind, "times": len(heals), "told_right": told, "heal_s": max(heals, default=0), "members_fell": sum(one.falls for one in members),
               "members_wrong": sum(one.wrong for one in members), "members_lost": sum(one.lost for one in members),
               "alone_rounds": sum(one.rounds for one in alone), "alone_lost": sum(one.lost for one in alone),
               "alone_wrong": sum(one.wrong for one in alone), "alone_longest_s": max(one.longest_s for one in alone)}
        rows.append(row)
        right = right and 0 < told == len(heals) and not (row["members_wrong"] or row["alone_lost"] or row["alone_wrong"])
        print(f"{kind:<10} {row['times']:>6} {told:>11} {row['heal_s']:>14.2f} {row['members_fell']:>14} {row['members_wrong']:>6} {row['members_lost']:>5}"
              f" {row['alone_rounds']:>14} {row['alone_lost']:>5} {row['alone_wrong']:>6} {row['alone_longest_s']:>10.2f}", flush=True)
        print(f"           codes of the members: {sorted(map(str, set().union(*(one.codes for one in members))))}; "
              f"first told: {next((one.first for one in members if one.first), None)}", flush=True)
        for one in alone:
            if one.first:
                print(f"           a session alone: {one.first}")
        for base in [culprit.base, *(one.base for one in members + alone)]:
            bench.client().delete(base)
    return right, rows


# ---- all of it ----

class Bench:
    def __init__(self, options, more):
        self.options, self.more, self.folder = options, more, tempfile.TemporaryDirectory()
        self.device = options.backends + ":0"
        self.service = None

    def client(self):
        one = CheckedClient("127.0.0.1", self.service.port)
        one.timeout = 180
        return one

    def start(self, *arguments):
        folder = pathlib.Path(self.folder.name, str(time.monotonic_ns()))
        folder.mkdir()
        self.service = Service(self.options.gpurestd, folder, "--backends", self.options.backends, "--mps", self.options.mps or "off", "--crash-budget", "0",
                               *arguments, *self.more)

    def stop(self):
        for path in glob.glob("/tmp/gpurest-mps-*/*/log/*.log"):
            print(f"--- {path}\n" + "".join(pathlib.Path(path).read_text(errors="replace").splitlines(True)[-8:]), file=self.log, flush=True)
        print(self.service.stderr(), file=self.log, flush=True)
        self.service.stop()

    def run(self):
        result = {}
        with open(self.options.log or os.devnull, "w") as self.log:
            self.start("--pool-size", "2")
            try:
                result["works"] = what_works(self)
                result["rates"] = how_fast(self)
            finally:
                self.stop()
            self.start("--pool-size", "0")
            try:
                result["faults_right"], result["faults"] = faults(self)
            finally:
                self.stop()
        if self.options.json:
            pathlib.Path(self.options.json).write_text(json.dumps(result, indent=1))
        return 0 if result["works"] and result["faults_right"] else 1


def main():
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments, more = sys.argv[1:cut], sys.argv[cut + 1:]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gpurestd")
    parser.add_argument("--mps", help="folder of nvidia-cuda-mps-control and nvidia-cuda-mps-server")
    parser.add_argument("--backends", default="cuda")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--sessions", default="2,8")
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--limit-s", type=float, default=1e9, help="seconds after which no more faults of a kind are made")
    parser.add_argument("--members", type=int, default=3, help="other sessions of the domain")
    parser.add_argument("--log", help="file for the service's and the servers' logs")
    parser.add_argument("--json")
    options = parser.parse_args(arguments)
    options.gpurestd = str(pathlib.Path(options.gpurestd).resolve())
    sys.exit(Bench(options, more).run())


if __name__ == "__main__":
    main()
