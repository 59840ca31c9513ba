"""A scripted server: each connection runs a function of the test on its own thread."""
import contextlib
import json
import socket
import threading


class Peer:
    """The server's end of one connection."""

    def __init__(self, sock):
        self.sock = sock
        self.rest = b""

    def request(self):
        """(request line, headers, body) of the next request; None when the client has closed."""
        while b"\r\n\r\n" not in self.rest:
            piece = self.sock.recv(65536)
            if not piece:
                return None
            self.rest += piece
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        length = int(headers.get("content-length", 0))
        while len(self.rest) < length:
            self.rest += self.sock.recv(1 << 20)
        body, self.rest = self.rest[:length], self.rest[length:]
        return lines[0], headers, body

    def send(self, data):
        self.sock.sendall(data)

    def answer(self, status=200, body=b"", kind="application/json", **headers):
        self.send(answer_bytes(status, body, kind, **headers))


def answer_bytes(status=200, body=b"", kind="application/json", **headers):
    if isinstance(body, (dict, list)):
        body = json.dumps(body).encode()
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


def problem(status, code, **more):
    return {"type": "/problems/" + code, "title": code, "status": status, "detail": code, "code": code, "request_id": "r1", "retryable": False, **more}


class FakeServer:
    def __init__(self, script, path=None):
        """`path`: of a Unix socket to listen at, instead of a port."""
        self.script = script
        self.connections = 0
        self.failures = []
        if path is None:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        else:
            self.listener = socket.create_server(str(path), family=socket.AF_UNIX)
            self.url = f"unix://{path}"
        self.threads = []
        self.socks = []
        self.accepting = threading.Thread(target=self._accept, daemon=True)
        self.accepting.start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            self.socks.append(sock)
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _serve(self, sock):
        try:
            with sock:
                self.script(Peer(sock))
        except OSError:
            pass
        except Exception as error:  # reported by the test, on its own thread
            self.failures.append(error)

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.accepting.join(60)
        for sock in self.socks:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(60)
        assert not self.failures, self.failures


@contextlib.contextmanager
def fake(script, path=None):
    server = FakeServer(script, path)
    try:
        yield server
    finally:
        server.stop()
