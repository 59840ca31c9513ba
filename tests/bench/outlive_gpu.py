"""How long sessions that hold much memory take to hibernate, wake, be saved, loaded, moved and upgraded, beside raw copies of the same bytes in
the same run; and more sessions than the device holds, which compute in turn. Every byte is checked after each step, on the device by a kernel and
some of them here.

    GPURESTD=build/release/service/gpurestd PYTHONPATH=sdk/python python3 tests/bench/outlive_gpu.py [--device cuda:0] [--gib 1 8 40]
        [--parts raw hibernate snapshot move upgrade turns] [--folder /tmp] [--turns-gib 40] [--sessions 6] [--rounds 2] [--part-s 240] [--total-s 570]

Lines come as they are known; a part that takes longer than --part-s, or is not done at --total-s, is ended and told. --folder has the files and the
--state folders: so many GiB as the largest size, at a time. A move needs the device twice: a size that does not fit twice is left out there and told.
Sleeping sessions need host memory: in turns, one more than do not fit on the device."""
import argparse
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import bench_service
import gpurest
from gpurest.errors import GpurestError

GIB = 1 << 30
RAW_PIECE = GIB
SEED_STEP = 0x632BE59BD9B4E019
SOURCE = r"""
typedef unsigned long long u64;
__device__ u64 value(u64 i, u64 seed, int rounds)
{
    u64 x = (i + seed * 0x632BE59BD9B4E019ull) * 0x9E3779B97F4A7C15ull;
    x ^= x >> 29;
    for (int r = 0; r < rounds; r++)
        x = x * 6364136223846793005ull + 1442695040888963407ull;
    return x;
}
extern "C" __global__ void fill(u64 *p, u64 n, u64 seed)
{
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (u64)blockDim.x)
        p[i] = value(i, seed, 0);
}
extern "C" __global__ void compute(u64 *p, u64 n)
{
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (u64)blockDim.x)
        p[i] = p[i] * 6364136223846793005ull + 1442695040888963407ull;
}
extern "C" __global__ void check(const u64 *p, u64 n, u64 seed, int rounds, u64 *wrong)
{
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (u64)blockDim.x)
        if (p[i] != value(i, seed, rounds))
            atomicAdd(wrong, 1ull);
}
"""
MASK = (1 << 64) - 1


def value(i, seed, rounds):
    x = (i + seed * SEED_STEP) * 0x9E3779B97F4A7C15 & MASK
    x ^= x >> 29
    for _ in range(rounds):
        x = x * 6364136223846793005 + 1442695040888963407 & MASK
    return x


class Late(Exception):
    """A part's time is over."""


class Wrong(Exception):
    """Bytes are not what they must be."""


def say(*words, between=" "):
    print(*words, sep=between, flush=True)


def seconds(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


@contextlib.contextmanager
def limit(left_s):
    """Raises Late in the main thread when so much time is over."""
    def over(*_):
        raise Late

    if left_s <= 0:
        raise Late
    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, left_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Service:
    """A gpurestd with an own folder, which keeps its process over upgrades."""

    def __init__(self, options, folder, *more, node=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.port = bench_service.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = self.folder / "log"
        command = [options.gpurestd, "--listen", f"127.0.0.1:{self.port}", "--backends", options.device.split(":")[0],
                   "--cache", str(options.work / "cache"), "--drain-timeout", "120", "--vendor-libraries", "off", "--pool-size", "0",
                   *(["--node", node] if node else []), *more]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        bench_service.wait_for(lambda: bench_service.reachable(self.port), self.process, f"gpurestd ({self.log})")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            say("  last lines of the log:", *self.log.read_text(errors="replace").splitlines()[-6:], between="\n    ")
        workers = children_of(self.process.pid)
        self.process.kill()  # not in order: --state would save once more
        self.process.wait()
        while any(is_alive(pid) for pid in workers):  # what they hold on the device is wanted by the next part
            time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)

    def starts(self):
        return self.log.read_text(errors="replace").count(" serving")

    def upgrade(self):
        before = self.starts()
        self.process.send_signal(signal.SIGUSR2)
        while self.starts() == before:
            if self.process.poll() is not None:
                raise Wrong("the service ended instead of an upgrade")
            time.sleep(0.02)


def children_of(pid):
    try:
        return {int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()}
    except OSError:
        return set()


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return False


def client_of(service):
    return gpurest.connect(service.url, timeout=600, retries=0, lease_s=None)


class Load:
    """A session that holds bytes of known values, in buffers of at most a piece. `persist` makes each request, again if that is right."""

    def __init__(self, session, options, seed, persist=lambda call: call()):
        self.session, self.options, self.seed, self.persist = session, options, seed, persist
        self.rounds, self.parts = 0, []
        self.module = session.module(SOURCE)
        self.wrong = session.buffer(b"\0" * 8)

    def grow(self, total):
        for at in range(0, total, self.options.piece):
            size = min(self.options.piece, total - at) // 8 * 8
            self.parts.append(self.persist(lambda size=size: self.session.buffer(size=size)))
            number = len(self.parts) - 1
            self.launch("fill", self.parts[-1], gpurest.u64(size // 8), gpurest.u64(self.seed_of(number)))
        return self

    def seed_of(self, number):
        return self.seed * 1000 + number

    def launch(self, kernel, *arguments):
        self.persist(lambda: self.module[kernel]((self.options.blocks,), (256,), arguments, timeout_ms=120_000))

    def touch(self):
        self.persist(lambda: self.parts[0].read(0, 8))

    def compute(self):
        for part in self.parts:
            self.launch("compute", part, gpurest.u64(part.nbytes // 8))
        self.rounds += 1

    def check(self):
        self.persist(lambda: self.wrong.write(b"\0" * 8))
        for number, part in enumerate(self.parts):
            self.launch("check", part, gpurest.u64(part.nbytes // 8), gpurest.u64(self.seed_of(number)), gpurest.i32(self.rounds), self.wrong)
        wrong = int.from_bytes(self.persist(self.wrong.read), "little")
        if wrong:
            raise Wrong(f"{wrong} words are wrong")
        for number, part in enumerate(self.parts):
            for at in (0, part.nbytes // 16, part.nbytes // 8 - 1):
                found = int.from_bytes(self.persist(lambda part=part, at=at: part.read(at * 8, 8)), "little")
                if found != value(at, self.seed_of(number), self.rounds):
                    raise Wrong(f"word {at} of part {number} is {found:x} as read here")

    def over(self, session):
        """The same bytes in another session, which has the same ids."""
        other = Load(session, self.options, self.seed)
        other.rounds = self.rounds
        other.parts = [session._own_buffer(part.id, part.nbytes) for part in self.parts]
        return other


class Driver:
    """Raw copies by the driver itself, or memcpy where there is no GPU."""

    def __init__(self, options):
        self.cuda = options.device.startswith("cuda")
        self.piece = min(RAW_PIECE, options.piece)
        if not self.cuda:
            self.host, self.memory = bytearray(self.piece), {}
            return
        self.library = ctypes.CDLL(os.environ.get("GPUREST_LIBCUDA", "libcuda.so.1"))
        context, self.pinned = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), int(options.device.split(":")[1]))
        self.call("cuCtxSetCurrent", context)
        self.call("cuMemHostAlloc", ctypes.byref(self.pinned), ctypes.c_size_t(self.piece), 0)
        self.host = (ctypes.c_ubyte * self.piece).from_address(self.pinned.value)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise RuntimeError(f"{name}: {code}")

    def reserve(self, size):
        """As many pieces on the device."""
        self.sizes = [min(self.piece, size - at) for at in range(0, size, self.piece)]
        if not self.cuda:
            self.pieces = [bytearray(n) for n in self.sizes]
            return
        self.pieces = [ctypes.c_uint64() for _ in self.sizes]
        for address, n in zip(self.pieces, self.sizes):
            self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(n))
            self.call("cuMemsetD8_v2", address, 7, ctypes.c_size_t(n))
        self.call("cuCtxSynchronize")

    def release(self):
        if self.cuda:
            for address in self.pieces:
                self.call("cuMemFree_v2", address)
        self.pieces = []

    def close(self):
        if self.cuda:
            self.call("cuMemFreeHost", self.pinned)
            self.call("cuDevicePrimaryCtxRelease_v2", 0)

    def out(self, i):
        if self.cuda:
            self.call("cuMemcpyDtoH_v2", self.pinned, self.pieces[i], ctypes.c_size_t(self.sizes[i]))
        else:
            self.host[:self.sizes[i]] = self.pieces[i]

    def back(self, i):
        if self.cuda:
            self.call("cuMemcpyHtoD_v2", self.pieces[i], self.pinned, ctypes.c_size_t(self.sizes[i]))
        else:
            self.pieces[i][:] = self.host[:self.sizes[i]]


def write_all(file, view):
    while view:
        view = view[file.write(view):]


def read_all(file, view):
    while view:
        n = file.readinto(view)
        if not n:
            raise Wrong("a raw file is short")
        view = view[n:]


class Bench:
    def __init__(self, options):
        self.options = options
        self.until = time.monotonic() + options.total_s
        self.number = 0

    def folder(self):
        self.number += 1
        return self.options.work / f"s{self.number}"

    def row(self, what, size, took, note=""):
        say(f"{what:<30} {size / GIB:8.3f} GiB {took:9.3f} s {size / GIB / took if took else 0:8.2f} GiB/s  {note}")

    def service(self, *more, **named):
        return Service(self.options, self.folder(), *more, **named)

    def load(self, client, total, name="one"):
        return Load(client.session(name, device=self.options.device), self.options, 1 + self.number).grow(total)

    # ---- parts ----

    def raw(self, size):
        driver = Driver(self.options)
        path = self.options.work / "raw"
        try:
            driver.reserve(size)
            view = memoryview(driver.host).cast("B")
            every = range(len(driver.sizes))
            self.row("raw device to host", size, seconds(lambda: [driver.out(i) for i in every]))
            self.row("raw host to device", size, seconds(lambda: [driver.back(i) for i in every]))

            def to_file():
                with open(path, "wb", buffering=0) as file:
                    for i in every:
                        driver.out(i)
                        write_all(file, view[:driver.sizes[i]])
                    os.fsync(file.fileno())

            def from_file():
                with open(path, "rb", buffering=0) as file:
                    for i in every:
                        read_all(file, view[:driver.sizes[i]])
                        driver.back(i)

            self.row("raw device to file, synced", size, seconds(to_file))
            self.row("raw file to device", size, seconds(from_file), "the file may be in the page cache")
            view.release()
            driver.release()
        finally:
            path.unlink(missing_ok=True)
            driver.close()

    def hibernate(self, size):
        with self.service("--hibernate-mib", "16777216") as service, client_of(service) as client:
            load = self.load(client, size)
            load.compute()
            self.row("hibernate to host memory", size, seconds(load.session.hibernate))
            if load.session.info()["state"] != "hibernated":
                raise Wrong("it does not hibernate")
            self.row("wake", size, seconds(load.session.wake))
            load.check()
            self.row("hibernate again", size, seconds(load.session.hibernate))
            self.row("wake by the next request", size, seconds(lambda: load.parts[0].read(0, 8)))
            load.compute()
            load.check()

    def snapshot(self, size):
        file = self.options.work / "snapshot.tar"
        try:
            with self.service() as service, client_of(service) as client:
                load = self.load(client, size)
                load.compute()
                self.row("snapshot to a file, synced", size, seconds(lambda: load.session.save(file)), f"{file.stat().st_size} bytes")
                load.check()
                load.session.close()
                began = time.perf_counter()
                other = client.load(file, "two", device=self.options.device)
                self.row("load from the file", size, time.perf_counter() - began)
                load.over(other).check()
                other.close()
        finally:
            file.unlink(missing_ok=True)

    def move(self, size):
        if not self.options.device.startswith("cpu") and 2 * size > self.options.memory:
            return say(f"move {size / GIB:.3f} GiB: left out, the device has {self.options.memory / GIB:.1f} GiB and a move needs the session twice")
        with self.service("--state", str(self.folder()), node="n2") as new, \
                self.service("--state", str(self.folder()), "--move-to", new.url, node="n1") as old, client_of(old) as client:
            load = self.load(client, size)
            load.compute()
            self.row("move between two services", size, seconds(lambda: load.session.move(new.url)))
            load.check()  # by the client, which follows
            load.compute()
            load.check()
            with client_of(new) as there:
                if [one["id"] for one in there.sessions()] != ["n2.one"]:
                    raise Wrong("the new node does not have it")
        self.clear()
        return None

    def upgrade(self, size):
        state = self.folder()
        with self.service("--state", str(state)) as service, client_of(service) as client:
            load = self.load(client, size)
            load.compute()
            waits, ends = [], threading.Event()

            def ask():
                with client_of(service) as other:
                    while not ends.is_set():
                        waits.append(seconds(other.version))
                        time.sleep(0.02)

            asking = threading.Thread(target=ask, daemon=True)
            asking.start()
            took = seconds(service.upgrade)
            ends.set()
            asking.join()
            self.row("upgrade in place", size, took, f"longest wait of a client beside it {max(waits):.3f} s; {len(waits)} requests, none failed")
            load.check()
            load.compute()
            load.check()
        self.clear()

    def clear(self):
        for folder in self.options.work.glob("s*"):
            shutil.rmtree(folder, ignore_errors=True)

    def turns(self, size):
        o, right, refused, loads, began = self.options, 0, [], [], time.perf_counter()

        def persist(call):
            """507 and 503 with Retry-After: not yet, another session is to fall asleep first."""
            while True:
                try:
                    return call()
                except GpurestError as error:
                    if error.status not in (503, 507):
                        raise
                    refused.append(f"{error.status} {error.code}")
                    time.sleep(1)

        more = ["--hibernate-dir", str(o.hibernate_dir)] if o.hibernate_dir else []
        with self.service("--hibernate-mib", "16777216", "--hibernate-after", "1", *more) as service, client_of(service) as client:
            try:
                for n in range(o.sessions):
                    session = persist(lambda n=n: client.session(f"t{n}", device=o.device))
                    took = seconds(lambda n=n, session=session: loads.append(persist(lambda: Load(session, o, 100 + n, persist)).grow(size)))
                    say(f"  session {n} made and filled with {size / GIB:.3f} GiB in {took:.2f} s; {self.states(client)}")
                for turn in range(o.rounds):
                    for n, load in enumerate(loads):
                        there, computed = seconds(load.touch), seconds(load.compute)
                        checked = seconds(load.check)
                        right += 1
                        say(f"  round {turn} session {n}: there after {there:.2f} s, computed in {computed:.2f} s, right ({checked:.2f} s); {self.states(client)}")
            finally:
                say(f"turns: {o.sessions} sessions of {size / GIB:.3f} GiB, {o.sessions * size / GIB:.1f} GiB on a device of {o.memory / GIB:.1f}: {right} of "
                    f"{o.sessions * o.rounds} turns right in {time.perf_counter() - began:.1f} s; asked again {len(refused)} times {sorted(set(refused))}")

    @staticmethod
    def states(client):
        found = [one["state"] for one in client.sessions()]
        return ", ".join(f"{found.count(state)} {state}" for state in sorted(set(found)))


PARTS = ("raw", "hibernate", "snapshot", "move", "upgrade", "turns")


def one_part(bench, part, size):
    left = min(bench.options.part_s, bench.until - time.monotonic())
    try:
        with limit(left):
            getattr(bench, part)(size)
            return True
    except Late:
        say(f"{part} {size / GIB:.3f} GiB: ENDED after {max(left, 0):.0f} s, not done")
    except Exception as error:  # noqa: BLE001: the other parts are wanted nevertheless
        say(f"{part} {size / GIB:.3f} GiB: FAILED: {type(error).__name__}: {error}")
    bench.clear()
    return False


def about(options):
    with Service(options, options.work / "about") as service, client_of(service) as client:
        device = client.device(options.device)
        options.memory = device["memory"]["total_bytes"] if "memory" in device else device["total_memory_bytes"]
        say(f"{device['name']}, {options.memory / GIB:.1f} GiB, {client.version()}")
    lines = dict(line.split(":", 1) for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    say(f"host: {os.cpu_count()} processors, {int(lines['MemAvailable'].split()[0]) / (1 << 20):.1f} GiB of memory free, "
        f"{shutil.disk_usage(options.work).free / GIB:.1f} GiB free in {options.work}, load {os.getloadavg()[0]:.1f}")


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpurestd", default=os.environ.get("GPURESTD", "build/release/service/gpurestd"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--gib", type=float, nargs="+", default=[1, 8, 40])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--folder", default=None, help="of files and --state; default: the system's")
    parser.add_argument("--hibernate-dir", default=None, help="in turns; default: host memory")
    parser.add_argument("--turns-gib", type=float, default=40)
    parser.add_argument("--sessions", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--piece-mib", type=int, default=4096, help="bytes of each buffer")
    parser.add_argument("--blocks", type=int, default=4096)
    parser.add_argument("--part-s", type=float, default=240)
    parser.add_argument("--total-s", type=float, default=570)
    options = parser.parse_args()
    options.gpurestd = str(pathlib.Path(options.gpurestd).resolve())
    options.piece = options.piece_mib << 20
    return options


def main():
    options = parsed()
    options.work = pathlib.Path(tempfile.mkdtemp(prefix="outlive.", dir=options.folder))
    bench, whole = Bench(options), True
    try:
        about(options)
        for part in options.parts:
            for size in [options.turns_gib] if part == "turns" else options.gib:
                whole &= one_part(bench, part, int(size * GIB))
    finally:
        shutil.rmtree(options.work, ignore_errors=True)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
