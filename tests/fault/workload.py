"""One request of every kind, each with its undo, on a session with a module and some buffers."""
import struct

from batch_client import frame, with_sizes
from kernels import FAULTS, PTX, fill7, launch

VADD = """
extern "C" __global__ void vadd(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
"""
S = "/v1/sessions/w"
OCTETS = {"Content-Type": "application/octet-stream"}
BATCH = "application/vnd.gpurest.batch"
MIB = 1 << 20


def floats(values):
    values = list(values)
    return struct.pack(f"<{len(values)}f", *values)


def prepare(client):
    assert client.put(S).status in (200, 201)
    assert client.put_cuda(S + "/modules/f", FAULTS).status in (200, 201)
    for name, size in (("x", 4096), ("y", 4096), ("big", 2 * MIB)):
        assert client.put(f"{S}/buffers/{name}", {"size": size}).status in (200, 201)
    assert client.put(S + "/programs/p", {"ops": [{"op": "launch", **fill7()}]}).status in (200, 201)


def framed():
    message = {"ops": [{"op": "alloc", "as": "$a", "segment": "in"}, {"op": "read", "from": "$a", "segment": "out"}]}
    return frame(with_sizes(message, {"in": b"abcd" * 100}), [b"abcd" * 100])


def request(method, path, body=None, **headers):
    return lambda client: client.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})


def deletion(path):
    return request("DELETE", path)


def nothing(client):
    pass


OPS = [{"op": "alloc", "as": "$t", "size": 64}, {"op": "copy", "from": "x", "to": "$t", "size": 64}, {"op": "launch", **fill7()},
       {"op": "free", "buf": "$t"}]
NEW = "/v1/sessions/new"

# name -> (the request, its undo)
REQUESTS = {
    "version": (request("GET", "/version"), nothing),
    "limits": (request("GET", "/v1/limits"), nothing),
    "devices": (request("GET", "/v1/devices"), nothing),
    "metrics": (request("GET", "/metrics"), nothing),
    "page": (request("GET", "/"), nothing),
    "no path": (request("GET", "/nowhere"), nothing),
    "bad json": (request("POST", "/v1/sessions", b"{", Content_Type="application/json"), nothing),
    "session put": (request("PUT", NEW, {"labels": {"a": "b"}}), deletion(NEW)),
    "session get": (request("GET", S), nothing),
    "session list": (request("GET", "/v1/sessions"), nothing),
    "session patch": (request("PATCH", S, {"labels": {"k": "v"}}), nothing),
    "buffer put": (request("PUT", S + "/buffers/n", {"size": 1000}), deletion(S + "/buffers/n")),
    "buffer of octets": (request("PUT", S + "/buffers/n", b"q" * 5000, **{"Content_Type": OCTETS["Content-Type"]}), deletion(S + "/buffers/n")),
    "buffer list": (request("GET", S + "/buffers"), nothing),
    "data put": (request("PUT", S + "/buffers/x/data", b"z" * 4096, **{"Content_Type": OCTETS["Content-Type"]}), nothing),
    "data put, long": (request("PUT", S + "/buffers/big/data", b"z" * 2 * MIB, **{"Content_Type": OCTETS["Content-Type"]}), nothing),
    "data get": (request("GET", S + "/buffers/x/data", Range="bytes=8-99"), nothing),
    "data get, long": (request("GET", S + "/buffers/big/data"), nothing),
    "fill": (request("POST", S + "/buffers/x/fill", {"pattern": {"u32": 5}}), nothing),
    "copy": (request("POST", S + "/buffers/y/copy", {"from": "x"}), nothing),
    "memory": (request("GET", S + "/memory"), nothing),
    "module of ptx": (request("PUT", S + "/modules/n", PTX.encode(), Content_Type="application/vnd.gpurest.ptx"), deletion(S + "/modules/n")),
    "module from the cache": (request("PUT", S + "/modules/n", FAULTS.encode(), Content_Type="text/x-cuda"), deletion(S + "/modules/n")),
    "module that fails": (request("PUT", S + "/modules/n", b"int x = ;", Content_Type="text/x-cuda"), nothing),
    "launch": (request("POST", S + "/launches", fill7()), nothing),
    "launch that prints": (request("POST", S + "/launches", launch("hello", {"u32": 3})), nothing),
    "launch refused": (request("POST", S + "/launches", launch("none")), nothing),
    "batch": (request("POST", S + "/batches", {"ops": OPS}), nothing),
    "batch, framed": (lambda client: client.request("POST", S + "/batches", framed(), {"Content-Type": BATCH}), nothing),
    "program run": (request("POST", S + "/programs/p/runs", {}), nothing),
    "run": (request("POST", "/v1/run", {"ops": [{"op": "alloc", "as": "$t", "size": 64}]}), nothing),
    "sync": (request("POST", S + "/sync", {}), nothing),
    "reset": (lambda client: client.post("/v1/sessions/r/reset"), nothing),
}
