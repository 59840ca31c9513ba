#!/usr/bin/env python3
"""What a router costs: the latency of a small request and of an empty launch, and the rate of long transfers, over one connection, direct, through
HAProxy and through Envoy, in turns in one run; in the clear, and with TLS on both sides of the router.

    GPURESTD=build/release/service/gpurestd python3 tests/bench/routers.py [--mib 256] [--rounds 7] [--requests 300]

The routers are configured by deploy/router/configure.py. Latencies are medians (and 99th percentiles) of all rounds, rates the best of the rounds.
Client, router and service share the machine, so a router also takes processor time from them."""
import argparse
import json
import os
import pathlib
import shutil
import socket
import ssl
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "service"))

import fleet as fleets  # noqa: E402
import routers  # noqa: E402
from kernels import launch  # noqa: E402
from service_under_test import Client, Service, until  # noqa: E402

PIECE = 4 << 20
EMPTY = 'extern "C" __global__ void nothing() {}'


class Way:
    """One connection, with nothing of http.client's cost."""

    def __init__(self, name, port, context):
        self.name, self.micros, self.launches, self.rates = name, [], [], {"upload": [], "download": []}
        self.port, self.context = port, context
        self.connect()

    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self.context.wrap_socket(sock, server_hostname="localhost") if self.context else sock

    def head(self):
        """(length, what came behind the head)."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.more(65536)
        lines, rest = data.split(b"\r\n\r\n", 1)
        assert lines.split(b" ")[1][:1] == b"2", lines
        fields = dict(line.lower().split(b": ", 1) for line in lines.split(b"\r\n")[1:])
        return int(fields.get(b"content-length", 0)), rest

    def more(self, most):
        piece = self.sock.recv(most)
        if not piece:
            raise EOFError(f"{self.name} has closed the connection")
        return piece

    def ask(self, method, path, body=b"", kind="application/json"):
        """Seconds."""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        began = time.perf_counter()
        if len(body) < 65536:
            self.sock.sendall(head + body)
        else:
            self.sock.sendall(head)
            for at in range(0, len(body), PIECE):
                self.sock.sendall(memoryview(body)[at:at + PIECE])
        length, rest = self.head()
        while len(rest) < length:
            rest += self.more(length - len(rest))
        return time.perf_counter() - began

    def download(self, path, into):
        """Seconds."""
        began = time.perf_counter()
        self.sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        length, rest = self.head()
        assert length == len(into)
        into[:len(rest)] = rest
        at = len(rest)
        while at < length:
            at += self.sock.recv_into(into[at:at + PIECE])
        took = time.perf_counter() - began
        self.sock.close()  # the service ends a connection after a long answer
        self.connect()
        return took


def measure(ways, options, control):
    session = "/v1/sessions/" + control.put("/v1/sessions/n1.bench").expect(201).json()["id"]
    control.put_cuda(session + "/modules/m", EMPTY).expect(201)
    data = os.urandom(options.mib << 20)
    control.put(session + "/buffers/x", {"size": len(data)}).expect(201)
    body = json.dumps(launch("nothing", module="m", block=[1])).encode()
    into = memoryview(bytearray(len(data)))
    for _ in range(options.rounds):
        for way in ways:
            for _ in range(options.requests):
                way.micros.append(1e6 * way.ask("GET", session))
                way.launches.append(1e6 * way.ask("POST", session + "/launches", body))
        for way in ways:
            way.rates["upload"].append(len(data) / way.ask("PUT", session + "/buffers/x/data", data, "application/octet-stream") / 2**30)
            way.rates["download"].append(len(data) / way.download(session + "/buffers/x/data", into) / 2**30)
            assert into == data
    control.delete(session).expect(204)


def show(title, ways):
    print(f"{title}\n{'':10}{'GET, us':>16}{'launch, us':>18}{'upload, GiB/s':>16}{'download, GiB/s':>18}")
    for way in ways:
        def shown(micros):
            return f"{statistics.median(micros):.0f} ({statistics.quantiles(micros, n=100)[98]:.0f})"
        print(f"{way.name:10}{shown(way.micros):>16}{shown(way.launches):>18}{max(way.rates['upload']):>16.2f}{max(way.rates['download']):>18.2f}")


def run(folder, options, tls):
    port, *ports, peer = fleets.free_ports(4)
    fleets.make_certificate(folder, "cert.pem", "key.pem")
    (folder / "both.pem").write_text((folder / "cert.pem").read_text() + (folder / "key.pem").read_text())
    node = ["--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem")] if tls else []
    service = Service(options.gpurestd, folder, "--node", "n1", "--trusted-proxy", "127.0.0.1", *node, listen=f"127.0.0.1:{port}")
    started = []
    context = ssl.create_default_context(cafile=str(folder / "cert.pem")) if tls else None
    try:
        for number, program in enumerate(name for name in routers.ROUTERS if not routers.missing(name)):
            (folder / program).mkdir()
            (folder / program / "nodes").write_text(f"n1 127.0.0.1:{port}\n")
            more = ["--cert", folder / "both.pem", "--node-ca", folder / "cert.pem", "--node-name", "localhost"] if tls else []
            started.append((program, ports[number], routers.ROUTERS[program](folder / program, ["--bind", f"127.0.0.1:{ports[number]}", *more, "--peer",
                                                                                             f"r1=127.0.0.1:{peer}"])))
        for _, at, _ in started:
            until(lambda: answers(at, context), "the router does not answer")
        ways = [Way("direct", port, context), *(Way(program, at, context) for program, at, _ in started)]
        control = fleets.TlsClient(port, context, "none") if tls else Client("127.0.0.1", port)
        measure(ways, options, control)
        control.close()
        show("TLS" if tls else "in the clear", ways)
    finally:
        for _, _, router in started:
            router.stop()
        service.process.terminate()
        service.process.wait()


def answers(port, context):
    client = fleets.TlsClient(port, context, "none") if context else Client("127.0.0.1", port)
    try:
        return client.get("/livez").status == 200
    except OSError:
        return False
    finally:
        client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=300)
    options = parser.parse_args()
    options.gpurestd = os.environ["GPURESTD"]
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; {options.mib} MiB, {options.rounds} rounds of {options.requests} requests")
    for tls in (False, True):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="gpurest-routers-"))
        try:
            run(folder, options, tls)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
