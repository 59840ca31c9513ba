#!/usr/bin/env python3
"""What a GPU service could be made of without this project, on the same GPU: CuPy in the process itself, behind aiohttp (with uvloop where
it is installed) and behind gRPC. No isolation: one process, one context. Each server is a process of its own on loopback.

    peers_gpu.py [--count 2000] [--mib 1024]

Prints one line of JSON: rows {"what", "value", "unit"} or {"what", "missing"}. What does not import is said."""
import argparse
import asyncio
import importlib
import json
import multiprocessing
import socket
import statistics
import time

from bench_service import Client

WARM_UP = 200
SOURCE = 'extern "C" __global__ void tick(unsigned *p) { if (threadIdx.x == 0) p[0] += 1; }'


def missing(*names):
    """The first module that cannot be imported, or None."""
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # a broken installation raises anything
            return f"{name} does not import: {error}".splitlines()[0]
    return None


class Kernel:
    """One launch and the wait for it."""

    def __init__(self):
        import cupy

        self.tick = cupy.RawKernel(SOURCE, "tick")
        self.counter = cupy.zeros(1, cupy.uint32)
        self.stream = cupy.cuda.Stream(non_blocking=True)

    def run(self):
        with self.stream:
            self.tick((1,), (32,), (self.counter,))
        self.stream.synchronize()


def p50_us(call, count):
    for _ in range(WARM_UP):
        call()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def aiohttp_server(port, limit):
    import cupy
    import numpy
    from aiohttp import web

    if not missing("uvloop"):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    kernel, state = Kernel(), {}

    async def launch(request):
        await request.read()
        kernel.run()
        return web.json_response({"state": "succeeded"})

    async def upload(request):
        size, at = int(request.headers["Content-Length"]), 0
        target = state.setdefault("x", cupy.empty(size, cupy.uint8))
        async for piece in request.content.iter_any():
            target[at:at + len(piece)].set(numpy.frombuffer(piece, numpy.uint8))
            at += len(piece)
        cupy.cuda.Device().synchronize()
        return web.json_response({})

    async def download(request):
        return web.Response(body=cupy.asnumpy(state["x"]).tobytes())

    app = web.Application(client_max_size=limit)
    app.add_routes([web.post("/launch", launch), web.put("/data", upload), web.get("/data", download)])
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None, handle_signals=False)


def grpc_server(port, limit):
    from concurrent import futures

    import grpc

    kernel = Kernel()

    def launch(request, context):
        kernel.run()
        return b"{}"

    handler = grpc.method_handlers_generic_handler("peer.Gpu", {"Launch": grpc.unary_unary_rpc_method_handler(launch)})
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


class Running:
    """A server function in a process of its own."""

    def __init__(self, function, limit):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = multiprocessing.get_context("spawn").Process(target=function, args=(self.port, limit), daemon=True)

    def __enter__(self):
        self.process.start()
        deadline = time.monotonic() + 60
        while True:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            if not self.process.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("the server does not start")
            time.sleep(0.05)

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()


def rate(call, size):
    call()
    start = time.perf_counter()
    call()
    return size / (time.perf_counter() - start) / 1e9


def row(what, value, unit):
    return {"what": what, "value": value, "unit": unit}


def cupy_alone(options):
    return [row("CuPy in the process, launch and wait, p50", p50_us(Kernel().run, options.count), "us")]


def behind_aiohttp(options):
    size = options.mib << 20
    with Running(aiohttp_server, size + 1024) as server:
        client, body = Client(f"127.0.0.1:{server.port}"), bytes(size)
        name = "aiohttp+CuPy" if missing("uvloop") else "aiohttp+uvloop+CuPy"
        return [row(name + ", small launch, p50", p50_us(lambda: client.must("POST", "/launch", b"{}"), options.count), "us"),
                row(f"{name}, upload of {options.mib} MiB",
                    rate(lambda: client.must("PUT", "/data", body, kind="application/octet-stream"), size), "GB/s"),
                row(f"{name}, download of {options.mib} MiB", rate(lambda: drain(client, size), size), "GB/s")]


def drain(client, size):
    """As must("GET") does, without keeping what comes."""
    client.socket.sendall(f"GET /data HTTP/1.1\r\nHost: {client.address}\r\n\r\n".encode())
    data = b""
    while b"\r\n\r\n" not in data:
        data += client.socket.recv(1 << 16)
    left, buffer = size - len(data.split(b"\r\n\r\n", 1)[1]), bytearray(1 << 20)
    while left > 0:
        left -= client.socket.recv_into(buffer, min(left, len(buffer)))


def behind_grpc(options):
    import grpc

    with Running(grpc_server, 0) as server, grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        launch = channel.unary_unary("/peer.Gpu/Launch")
        return [row("gRPC+CuPy, small launch, p50", p50_us(lambda: launch(b"{}"), options.count), "us")]


def measured(what, function, options, *needed):
    why = missing(*needed)
    return [{"what": what, "missing": why}] if why else function(options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--mib", type=int, default=1024)
    options = parser.parse_args()
    rows = measured("CuPy in the process", cupy_alone, options, "cupy")
    rows += measured("aiohttp+CuPy", behind_aiohttp, options, "cupy", "aiohttp")
    rows += measured("gRPC+CuPy", behind_grpc, options, "cupy", "grpc")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
