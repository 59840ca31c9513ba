#!/usr/bin/env python3
"""What a change costs a small request: two builds of the service in turns on one machine.

    two_builds.py OLD NEW REQUEST_RATE [ROUNDS]
    two_builds.py OLD NEW buffers [ROUNDS [ARGUMENTS of both services]]

OLD and NEW are gpurestd, REQUEST_RATE the program of that name, which asks for /livez; "buffers" creates buffers from 4 KiB each and deletes them, over
one connection. Prints each round, the medians of the ratios NEW / OLD (of the time a request takes at the median, of the processor time the service
spends on one, of how often its threads sleep for one, and of requests a second), and the ratio of the lower quartiles of the times: the rounds that other
work on the machine disturbed least."""
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "service"))
from service_under_test import Service  # noqa: E402

SECONDS = 0.25  # short ones: what else runs on the machine changes slowly
BUFFER = b"PUT /v1/sessions/s/buffers/b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: 4096\r\n\r\n" + bytes(4096)
DELETE = b"DELETE /v1/sessions/s/buffers/b HTTP/1.1\r\nHost: localhost\r\n\r\n"


def used(service):
    """Nanoseconds of processor time of all its threads, and how often they slept; those of a service that only answers live on."""
    tasks = list(pathlib.Path(f"/proc/{service.process.pid}/task").iterdir())
    return (sum(int((task / "schedstat").read_text().split()[0]) for task in tasks),
            sum(int((task / "status").read_text().partition("\nvoluntary_ctxt_switches:")[2].split()[0]) for task in tasks))


def ask_for_livez(service, request_rate, connections):
    made = json.loads(subprocess.run([request_rate, f"127.0.0.1:{service.port}", "/livez", "--connections", str(connections), "--seconds", str(SECONDS)],
                                     check=True, capture_output=True, text=True).stdout)
    return made["p50_us"], made["requests"]


def take(connection, status):
    """One answer, which must have that status."""
    got = connection.recv(65536)
    while b"\r\n\r\n" not in got:
        got += connection.recv(65536)
    head, body = got.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 " + status), got
    left = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0] or 0) - len(body)
    while left > 0:
        left -= len(connection.recv(left))


def make_buffers(service):
    """Microseconds of creating and deleting one, at the median, and how many."""
    client = service.client()
    assert client.put("/v1/sessions/s").status in (200, 201)
    client.close()
    times, end = [], time.monotonic() + SECONDS
    with socket.create_connection((service.host, service.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while time.monotonic() < end:
            began = time.perf_counter()
            connection.sendall(BUFFER)
            take(connection, b"201")
            connection.sendall(DELETE)
            take(connection, b"204")
            times.append((time.perf_counter() - began) * 1e6)
    return statistics.median(times), len(times)


def measure(service, what, connections):
    before = used(service)
    p50_us, requests = make_buffers(service) if what == "buffers" else ask_for_livez(service, what, connections)
    processor_ns, sleeps = (now - then for now, then in zip(used(service), before))
    return {"p50_us": p50_us, "cpu_us": processor_ns / 1e3 / requests, "sleeps": sleeps / requests, "per_s": requests / SECONDS}


def in_turns(services, what, connections, rounds):
    ratios, times = {"p50_us": [], "cpu_us": [], "sleeps": [], "per_s": []}, ([], [])
    for i in range(rounds):
        order = (0, 1) if i % 2 == 0 else (1, 0)
        got = dict(sorted((which, measure(services[which], what, connections)) for which in order))
        for which in (0, 1):
            times[which].append(got[which]["p50_us"])
        for ratio in ratios:
            ratios[ratio].append(got[1][ratio] / (got[0][ratio] or 1))
        print(f"{connections:2} connections" + "".join(
            f"  {name} {of['p50_us']:7.1f} us, processor {of['cpu_us']:6.2f} us, {of['sleeps']:4.1f} sleeps, {of['per_s']:6.0f}/s"
            for name, of in zip(("old", "new"), got.values())), flush=True)
    quiet = [statistics.quantiles(of_one, n=4)[0] for of_one in times]
    of = {ratio: statistics.median(all_of_it) for ratio, all_of_it in ratios.items()}
    print(f"{connections:2} connections, medians of new / old: time {of['p50_us']:.3f}, processor {of['cpu_us']:.3f}, sleeps {of['sleeps']:.3f}, "
          f"rate {of['per_s']:.3f}; lower quartiles {quiet[0]:.1f} and {quiet[1]:.1f} us: {quiet[1] / quiet[0]:.3f}", flush=True)


def main(old, new, what, rounds=40, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        services = []
        for name, path in (("old", old), ("new", new)):
            (pathlib.Path(folder) / name).mkdir()
            services.append(Service(path, pathlib.Path(folder) / name, *arguments))
        for connections in (1,) if what == "buffers" else (1, 16):
            in_turns(services, what, connections, int(rounds))
        for service in services:
            service.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
