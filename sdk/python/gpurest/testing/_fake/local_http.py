"""A small HTTP server on loopback, within the process: what FakeServer, Recorder and Replay answer through."""
from __future__ import annotations

import http.server
import json
import socket
import threading
from types import TracebackType
from typing import Any, Dict, Mapping, NamedTuple, Optional, Type, Union, cast

BytesLike = Union[bytes, bytearray, memoryview]
NOT_PASSED_ON = ("connection", "keep-alive", "transfer-encoding", "content-length", "date", "server")


class LocalRequest(NamedTuple):
    """As it came: `target` is the path with its query, header names are in lower case."""
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class LocalAnswer(NamedTuple):
    """What the local server answers to one request."""

    status: int
    headers: Mapping[str, str]
    body: BytesLike


def json_answer(value: Any, status: int = 200) -> LocalAnswer:
    return LocalAnswer(status, {"Content-Type": "application/json"}, json.dumps(value, separators=(",", ":")).encode())


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def owner(self) -> LocalServer:
        return cast("_Server", self.server).owner

    def _any(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        request = LocalRequest(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, self.rfile.read(length))
        answer = self.owner.answer(request)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        bare = answer.status in (204, 304)
        if not bare and not any(name.lower() == "content-length" for name in answer.headers):
            self.send_header("Content-Length", str(memoryview(answer.body).nbytes))
        self.end_headers()
        if self.command != "HEAD" and not bare:
            self.wfile.write(answer.body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _any

    def setup(self) -> None:
        super().setup()
        self.owner._opened(self.connection)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: this is a test's."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    disable_nagle_algorithm = True

    def __init__(self, owner: LocalServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is none."""


class LocalServer:
    """Serves from its making to close(), or for a `with` block; `url` is its address. Requests come on threads, one per connection."""

    def __init__(self) -> None:
        self._connections: Dict[int, socket.socket] = {}
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def answer(self, request: LocalRequest) -> LocalAnswer:
        """The answer to a request."""
        raise NotImplementedError

    def _opened(self, connection: socket.socket) -> None:
        self._connections[id(connection)] = connection

    def close(self) -> None:
        """Idempotent. Connections that are still open are closed."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for connection in list(self._connections.values()):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the client was faster
        self._connections.clear()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()
