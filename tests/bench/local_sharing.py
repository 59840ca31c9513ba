"""Memory that a client of the same host maps, beside what a copy within one process takes in the same run."""
import ctypes
import mmap
import os
import statistics
import tempfile
import time

from checked_client import CheckedLocalClient

ROUNDS = 5


def timed_s(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def median_s(call):
    return statistics.median(timed_s(call) for _ in range(ROUNDS))


def address_of(mapped):
    return ctypes.addressof(ctypes.c_char.from_buffer(mapped))


def memcpy_rate(size):
    """Bytes a second, of one thread, between memory that is there already."""
    one, other = mmap.mmap(-1, size), mmap.mmap(-1, size)
    to, source = address_of(one), address_of(other)
    ctypes.memset(to, 1, size)
    ctypes.memset(source, 2, size)
    return size / median_s(lambda: ctypes.memmove(to, source, size))


def local_sharing(bench):
    size = min(bench.options.mib, 256) << 20
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        with bench.service("--listen", f"unix:{path}", "--local-sharing"):
            client, buffer = CheckedLocalClient(path), "/v1/sessions/s/buffers/x"
            client.must("PUT", "/v1/sessions/s")
            client.must("PUT", buffer, {"size": size})
            shared_s = timed_s(lambda: client.must("POST", buffer + "/share"))
            with mmap.mmap(client.take(), size) as mapped:
                mapped[:] = b"x" * size
                rates = {way: size / median_s(lambda: client.must("PUT", buffer + "/share", {"direction": way})) for way in ("to_device", "from_device")}
            memcpy = memcpy_rate(size)
    for way, rate in rates.items():
        bench.row(f"{size >> 20} MiB of mapped memory, {way}", rate / 1e9, "GB/s", memcpy / 1e9, "memcpy() of one thread", ">= 0.9",
                  note=f"sharing it took {shared_s * 1e3:.0f} ms, once")
