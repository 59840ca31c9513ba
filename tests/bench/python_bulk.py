#!/usr/bin/env python3
"""Upload and download through the Python SDK beside bare sockets and beside the C SDK, in one run, as ratios.

    GPURESTD=build/release/service/gpurestd python3 tests/bench/python_bulk.py --c-sdk build/release/sdk/c/libgpurest.so [--mib 512] [--rounds 5] [--json FILE]

The bare peer is a process that sends or takes the same number of bytes over loopback and does nothing with them; the service puts them into
device memory. The C SDK is called within this process (ctypes, which lets go of the interpreter's lock), so both move the same bytes from the
same memory to the same service. Rates are the best of the rounds, which alternate between all."""
import argparse
import ctypes
import json
import os
import pathlib
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "sdk" / "python"))

import gpurest  # noqa: E402
from gpurest import testing  # noqa: E402

PIECE = 4 << 20


def peer(listener, size):
    """The bare server, in a process of its own: "U" takes `size` bytes, "D" sends them; the length comes first."""
    data = bytearray(size)

    def serve(sock):
        with sock:
            while order := sock.recv(9, socket.MSG_WAITALL):
                view = memoryview(data)[:int.from_bytes(order[1:], "little")]
                if order[:1] == b"D":
                    sock.sendall(view)
                    continue
                fill(sock, view)
                sock.sendall(b"k")

    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def fill(sock, view):
    at = 0
    while at < len(view):
        count = sock.recv_into(view[at:at + PIECE])
        if not count:
            raise EOFError("the peer has closed")
        at += count


def bare(port, direction, view, connections):
    """Seconds."""
    socks = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
    part = -(-len(view) // connections)

    def work(sock, piece):
        sock.sendall(direction + len(piece).to_bytes(8, "little"))
        if direction == b"D":
            fill(sock, piece)
        else:
            sock.sendall(piece)
            sock.recv(1)

    threads = [threading.Thread(target=work, args=(sock, view[i * part:(i + 1) * part])) for i, sock in enumerate(socks)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - started
    for sock in socks:
        sock.close()
    return elapsed


def through_sdk(buffer, direction, view, connections):
    buffer.session.client.connections = connections
    started = time.perf_counter()
    if direction == b"D":
        buffer.read_into(view, progress=False)
    else:
        buffer.write(view, progress=False)
    return time.perf_counter() - started


class COptions(ctypes.Structure):
    """gpurest_options"""
    _fields_ = [("struct_size", ctypes.c_size_t), ("url", ctypes.c_char_p), ("token", ctypes.c_char_p), ("token_file", ctypes.c_char_p),
                ("ca_file", ctypes.c_char_p), ("connect_timeout_ms", ctypes.c_int), ("idle_timeout_ms", ctypes.c_int), ("max_retries", ctypes.c_int),
                ("max_connections", ctypes.c_int), ("bulk_connections", ctypes.c_int), ("use_libcurl", ctypes.c_int), ("log", ctypes.c_void_p),
                ("log_arg", ctypes.c_void_p)]


class CSdk:
    """One client of libgpurest with a buffer. It ends with the process."""

    def __init__(self, library, url, size, connections):
        self.library, self.client, self.session, self.buffer = library, ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        options = COptions(ctypes.sizeof(COptions), url.encode(), None, None, None, 5000, 60000, 2, 8, connections, 0, None, None)
        self._must(library.gpurest_open_with(ctypes.byref(self.client), ctypes.byref(options)))
        self._must(library.gpurest_session_open(ctypes.byref(self.session), self.client, None))
        self._must(library.gpurest_alloc(self.session, ctypes.byref(self.buffer), ctypes.c_size_t(size)))

    @staticmethod
    def _must(status):
        if status:
            raise SystemExit(f"the C SDK gave status {status}")

    def move(self, direction, view):
        """Seconds."""
        at, call = (ctypes.c_char * len(view)).from_buffer(view), self.library.gpurest_read if direction == b"D" else self.library.gpurest_write
        started = time.perf_counter()
        self._must(call(self.session, self.buffer, ctypes.c_size_t(0), at, ctypes.c_size_t(len(view))))
        return time.perf_counter() - started


def best_of(ways, rounds):
    """Seconds by name. They take turns, and in every round another one begins: what a way leaves behind is not always the same one's to bear."""
    best, names = dict.fromkeys(ways, 1e9), list(ways)
    for at in range(rounds):
        for name in names[at % len(names):] + names[:at % len(names)]:
            best[name] = min(best[name], ways[name]())
    return best


def measure(gpu, port, size, rounds, library):
    view, rows = memoryview(bytearray(os.urandom(1 << 20) * (size >> 20))), []
    buffer = gpu.buffer(view, progress=False)
    for connections in (1, 4):
        c_sdk = CSdk(library, gpu.url, size, connections) if library else None
        for direction, name in ((b"U", "upload"), (b"D", "download")):
            ways = {"bare": lambda: bare(port, direction, view, connections), "sdk": lambda: through_sdk(buffer, direction, view, connections)}
            if c_sdk:
                ways["c"] = lambda: c_sdk.move(direction, view)
            best = best_of(ways, rounds)
            row = {"what": name, "connections": connections, "bare_gb_s": size / best["bare"] / 1e9, "sdk_gb_s": size / best["sdk"] / 1e9,
                   "ratio": best["bare"] / best["sdk"]}
            rows.append({**row, "c_gb_s": size / best["c"] / 1e9, "c_ratio": best["c"] / best["sdk"]} if c_sdk else row)
    return rows


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--mib", type=int, default=512)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--device", default="cpu")
    options.add_argument("--c-sdk", help="libgpurest.so; without it no column of the C SDK")
    options.add_argument("--json")
    chosen = options.parse_args()
    size = chosen.mib << 20
    library = ctypes.CDLL(os.path.abspath(chosen.c_sdk)) if chosen.c_sdk else None
    listener = socket.create_server(("127.0.0.1", 0))
    child = os.fork()
    if child == 0:
        peer(listener, size)
    try:
        with testing.server(device=chosen.device) as service, gpurest.connect(service.url) as gpu:
            rows = measure(gpu, listener.getsockname()[1], size, chosen.rounds, library)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    print(f"{chosen.mib} MiB over loopback, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, best of {chosen.rounds}")
    print(f"{'':10s} {'connections':>11s} {'SDK GB/s':>9s} {'bare GB/s':>10s} {'ratio':>6s} {'C SDK GB/s':>11s} {'ratio':>6s}")
    for row in rows:
        beside = f" {row['c_gb_s']:11.2f} {row['c_ratio']:6.2f}" if "c_gb_s" in row else ""
        print(f"{row['what']:10s} {row['connections']:11d} {row['sdk_gb_s']:9.2f} {row['bare_gb_s']:10.2f} {row['ratio']:6.2f}{beside}")
    if chosen.json:
        pathlib.Path(chosen.json).write_text(json.dumps({"mib": chosen.mib, "cpus": os.cpu_count(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
