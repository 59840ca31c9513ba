"""Memory that a client of the same host maps, beside what a copy within one process takes in the same run."""
import array
import ctypes
import json
import mmap
import os
import socket
import statistics
import tempfile
import time

ROUNDS = 5


class LocalClient:
    """HTTP over a Unix socket; `descriptor` is the last one that came along."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.descriptor = -1

    def must(self, method, path, body=None):
        text = json.dumps(body).encode() if body is not None else b""
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        self.socket.sendall(head.encode() + text)
        status, answer = self._answer()
        while status == 100:
            status, answer = self._answer(answer)
        if not 200 <= status < 300:
            raise RuntimeError(f"{method} {path}: {status} {answer[:300]!r}")
        return answer

    def _answer(self, data=b""):
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, data = data.split(b"\r\n\r\n", 1)
        status = int(head.split(b" ")[1])
        if status == 100:
            return status, data
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        length = int(fields.get(b"content-length", 0))
        while len(data) < length:
            data += self._more()
        return status, data

    def _more(self):
        data, ancillary, _, _ = self.socket.recvmsg(1 << 16, socket.CMSG_SPACE(4))
        for _, _, held in ancillary:
            self.descriptor = array.array("i", held[:4])[0]
        if not data:
            raise ConnectionError("the server closed the connection")
        return data


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
            client, buffer = LocalClient(path), "/v1/sessions/s/buffers/x"
            client.must("PUT", "/v1/sessions/s")
            client.must("PUT", buffer, {"size": size})
            shared_s = timed_s(lambda: client.must("POST", buffer + "/share"))
            with mmap.mmap(client.descriptor, size) as mapped:
                mapped[:] = b"x" * size
                rates = {way: size / median_s(lambda: client.must("PUT", buffer + "/share", {"direction": way})) for way in ("to_device", "from_device")}
            memcpy = memcpy_rate(size)
    for way, rate in rates.items():
        bench.row(f"{size >> 20} MiB of mapped memory, {way}", rate / 1e9, "GB/s", memcpy / 1e9, "memcpy() of one thread", ">= 0.9",
                  note=f"sharing it took {shared_s * 1e3:.0f} ms, once")
