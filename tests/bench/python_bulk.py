#!/usr/bin/env python3
"""Upload and download through the Python SDK beside bare sockets, in one run, as ratios.

    GPURESTD=build/release/service/gpurestd python3 tests/bench/python_bulk.py [--mib 512] [--rounds 5] [--json FILE]

The bare peer is a process that sends or takes the same number of bytes over loopback and does nothing with them; the service puts them into
device memory. Rates are the best of the rounds, which alternate between the two."""
import argparse
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


def measure(gpu, port, size, rounds):
    view, rows = memoryview(bytearray(os.urandom(1 << 20) * (size >> 20))), []
    buffer = gpu.buffer(view, progress=False)
    for direction, name in ((b"U", "upload"), (b"D", "download")):
        for connections in (1, 4):
            best = {"bare": 1e9, "sdk": 1e9}
            for _ in range(rounds):
                best["bare"] = min(best["bare"], bare(port, direction, view, connections))
                best["sdk"] = min(best["sdk"], through_sdk(buffer, direction, view, connections))
            rows.append({"what": name, "connections": connections, "bare_gb_s": size / best["bare"] / 1e9, "sdk_gb_s": size / best["sdk"] / 1e9,
                         "ratio": best["bare"] / best["sdk"]})
    return rows


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--mib", type=int, default=512)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--device", default="cpu")
    options.add_argument("--json")
    chosen = options.parse_args()
    size = chosen.mib << 20
    listener = socket.create_server(("127.0.0.1", 0))
    child = os.fork()
    if child == 0:
        peer(listener, size)
    try:
        with testing.server(device=chosen.device) as service, gpurest.connect(service.url) as gpu:
            rows = measure(gpu, listener.getsockname()[1], size, chosen.rounds)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    print(f"{chosen.mib} MiB over loopback, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, best of {chosen.rounds}")
    print(f"{'':10s} {'connections':>11s} {'bare GB/s':>10s} {'SDK GB/s':>9s} {'ratio':>6s}")
    for row in rows:
        print(f"{row['what']:10s} {row['connections']:11d} {row['bare_gb_s']:10.2f} {row['sdk_gb_s']:9.2f} {row['ratio']:6.2f}")
    if chosen.json:
        pathlib.Path(chosen.json).write_text(json.dumps({"mib": chosen.mib, "cpus": os.cpu_count(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
