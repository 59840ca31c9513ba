#!/usr/bin/env python3
"""What the client spends on an operation in a round trip: two versions of the Python SDK in turns, against one service.

    array_round_trip.py --gpurestd build/release/service/gpurestd OLD NEW [--rounds 15] [--backend cpu]

OLD and NEW are folders that have a package gpurest (sdk/python of two checkouts). Each version is a process of its own; a round runs every case in the one
and then in the other, so that what else the machine does meets both. Printed per case: microseconds per evaluation of the client's processor time and by
the clock, in the median of the rounds, and the median of the rounds' ratios NEW / OLD. "beyond a socket": what a kernel call takes more than a plain
socket's exchange of the same bytes in the same process."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve()
SOURCE = 'extern "C" __global__ void bump(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 1; }'

ONE = 'extern "C" __global__ void bump(float *x) { x[threadIdx.x] += 1; }'

# ---- a version's process ----

def bytes_of(client, call):
    """What a call sends, by the socket's methods or past them."""
    import os
    connection, sent, write = client._transport._free[-1], [], os.write

    class Recorded:
        def __getattr__(self, name):
            return getattr(inner, name)

        def sendall(self, data):
            sent.append(bytes(data))
            return inner.sendall(data)

    def recorded(descriptor, data):
        sent.append(bytes(data))
        return write(descriptor, data)

    inner, connection.sock, os.write = connection.sock, Recorded(), recorded
    try:
        call()
    finally:
        connection.sock, os.write = inner, write
    return sent[0]


def exchange_of(client, call):
    """The bytes of a call, sent by a plain socket of one's own; answers are taken without a look at them."""
    import socket
    sent = bytes_of(client, call)
    plain = socket.create_connection((client._transport.endpoint.host, client._transport.endpoint.port))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exchange():
        plain.sendall(sent)
        return plain.recv(65536)

    return exchange


def cases(gpurest, session):
    import numpy as np
    x = gpurest.asarray(np.arange(16, dtype="f4"), session=session)
    y = gpurest.asarray(np.arange(16, dtype="f4"), session=session)
    wide = gpurest.asarray(np.arange(4096, dtype="f4"), session=session)
    long = gpurest.asarray(np.ones(1 << 20, dtype="f4"), session=session)
    state = [x, 0]
    kernel = session.module(SOURCE).kernel("bump")
    raw = gpurest.RawKernel(ONE, "bump", session=session)
    memory = session.buffer(np.arange(16, dtype="f4"))
    wide_array = gpurest.asarray(np.arange(32, dtype="f4"), session=session)

    def chain():
        z = x
        for _ in range(10):
            z = z * 1.01 + y
        return float(z[3])

    def step():
        state[0] = state[0] * 0.5 + y
        state[0]._flush()

    def new_structure():
        state[1] = state[1] % 4000 + 1
        return float((wide[:state[1]] + 1).sum())

    def ten():
        z = x
        for _ in range(5):
            z = z * 2 + 1
        z._flush()

    def launch():
        kernel((1,), (32,), (memory, 16))

    def launches():
        for _ in range(10):
            kernel((1,), (32,), (memory, 16), wait=False)
        session.sync()

    for one in (chain, step, ten, new_structure, launch, launches):
        one()
    return {"float((x + x).sum())": (lambda: float((x + x).sum()), 300), "the same of 1M numbers": (lambda: float((long + long).sum()), 300), "ten times z * 1.01 + y, an element": (chain, 100), "x = x * 0.5 + y, stored": (step, 300),
            "ten operations (z * 2 + 1), stored": (ten, 100), "float(x[3])": (lambda: float(x[3]), 300), "another size each time": (new_structure, 60), "a kernel call": (launch, 300),
            "kernel[1, 32](…)": (lambda: kernel[1, 32](memory, 16), 300),
            "RawKernel of an array": (lambda: raw((1,), (32,), (wide_array,)), 300), "ten kernel calls, one wait": (launches, 30),
            "a plain socket's exchange of it": (exchange_of(session.client, launch), 300)}


def version(folder, url):
    sys.path.insert(0, folder)
    import gpurest
    with gpurest.connect(url) as client, client.session() as session:
        made = cases(gpurest, session)
        for call, _ in made.values():
            for _ in range(20):
                call()
        print(json.dumps(list(made)), flush=True)
        for line in sys.stdin:
            call, times = made[json.loads(line)]
            used, started = time.thread_time(), time.perf_counter()
            for _ in range(times):
                call()
            print(json.dumps([(time.thread_time() - used) / times * 1e6, (time.perf_counter() - started) / times * 1e6]), flush=True)


# ---- the turns ----

def start(folder, url):
    process = subprocess.Popen([sys.executable, str(HERE), "--version-of", folder, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, json.loads(process.stdout.readline())


def ask(process, name):
    process.stdin.write(json.dumps(name) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def turns(versions, names, rounds):
    """By case, for each version its rounds: [(processor time, time by the clock)]."""
    found = {name: ([], []) for name in names}
    for at in range(rounds):
        for name in names:
            for which in ((0, 1) if at % 2 else (1, 0)):
                found[name][which].append(ask(versions[which], name))
    return found


def told(found):
    print(f"{'us per evaluation, medians':36} {'old cpu':>9} {'new cpu':>9} {'ratio':>7} {'old wall':>9} {'new wall':>9} {'ratio':>7}")
    for name, (old, new) in found.items():
        columns = []
        for at in (0, 1):
            columns += [f"{statistics.median(one[at] for one in old):9.1f}", f"{statistics.median(one[at] for one in new):9.1f}",
                        f"{statistics.median(b[at] / a[at] for a, b in zip(old, new)):7.2f}"]
        print(f"{name:36} " + " ".join(columns))
    beyond = [statistics.median(call[0] - plain[0] for call, plain in zip(found["a kernel call"][which], found["a plain socket's exchange of it"][which]))
              for which in (0, 1)]
    print(f"{'a kernel call beyond a socket, cpu':36} {beyond[0]:9.1f} {beyond[1]:9.1f} {beyond[1] / beyond[0]:7.2f}")


def main():
    if sys.argv[1:2] == ["--version-of"]:
        return version(*sys.argv[2:])
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--gpurestd", required=True)
    options.add_argument("--backend", default="cpu")
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("old")
    options.add_argument("new")
    given = options.parse_args()
    sys.path.insert(0, given.new)
    from gpurest import testing
    with testing.server(executable=given.gpurestd, device=given.backend) as service:
        versions, names = zip(*[start(folder, service.url) for folder in (given.old, given.new)])
        told(turns(versions, names[0], given.rounds))
        for process in versions:
            process.stdin.close()
            process.wait()


if __name__ == "__main__":
    main()
