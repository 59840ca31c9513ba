"""Where the service is: URLs, tokens, time-outs, and how a socket to it is opened."""
from __future__ import annotations

import os
import socket
import ssl
from dataclasses import dataclass
from functools import cached_property
from typing import Optional, Union
from urllib.parse import unquote, urlsplit

from ..errors import ArgumentError, ConnectionError_, TimeoutError_

DEFAULT_URL = "http://127.0.0.1:8080"
SOCKET_BUFFER_BYTES = 4 << 20
KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5))  # seconds, as the service has them


@dataclass(frozen=True)
class Timeout:
    """Seconds. `connect` until a connection is there; `idle` without any progress of a transfer or an answer. Then the service is asked whether it is
    there: if it answers, the wait goes on, for a kernel perhaps. None waits for ever."""
    connect: Optional[float] = 5.0
    idle: Optional[float] = 60.0

    @classmethod
    def of(cls, value: Union[Timeout, float, None]) -> Timeout:
        """Seconds as time-outs; None: the usual ones."""
        if isinstance(value, Timeout):
            return value
        return cls() if value is None else cls(min(5.0, float(value)), float(value))


@dataclass(frozen=True)
class Endpoint:
    """A parsed address. `path` is a Unix socket's; `prefix` stands before every request's path."""
    url: str
    scheme: str
    host: str
    port: int
    path: str
    prefix: str

    @classmethod
    def parse(cls, url: Optional[str]) -> Endpoint:
        """The address that an URL names; without one that of GPUREST_URL. ArgumentError where it is none."""
        url = url or os.environ.get("GPUREST_URL") or DEFAULT_URL
        if "://" not in url:
            url = "http://" + url
        parts = urlsplit(url)
        if parts.username is not None or parts.password is not None:
            raise ArgumentError("a token never stands in the URL: pass token=, or set GPUREST_TOKEN")
        if parts.scheme == "unix":
            if not parts.path or parts.netloc:
                raise ArgumentError(f"{url!r}: a Unix socket is written unix:///absolute/path")
            return cls(url, "unix", "localhost", 0, unquote(parts.path), "")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ArgumentError(f"{url!r} is no address: expected http://, https:// or unix:///")
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            raise ArgumentError(f"{url!r}: {error}") from error
        return cls(url, parts.scheme, parts.hostname, port, "", parts.path.rstrip("/"))

    @cached_property
    def host_header(self) -> str:
        if self.scheme == "unix":
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.scheme == "https" else 80) else f"{host}:{self.port}"

    def tls(self, ca_file: Optional[str]) -> Optional[ssl.SSLContext]:
        """How the connection is encrypted, trusting the certificates of a file or else the system's; None: in the clear."""
        return ssl.create_default_context(cafile=ca_file) if self.scheme == "https" else None

    def open(self, timeout: Optional[float], tls: Optional[ssl.SSLContext]) -> socket.socket:
        """A connected socket; the caller owns it."""
        try:
            return self._open(timeout, tls)
        except socket.timeout as error:
            raise TimeoutError_(f"no connection to {self.url} within {timeout} s", phase="connect", retryable=True) from error
        except OSError as error:
            raise ConnectionError_(f"cannot connect to {self.url}: {error}", retryable=True,
                                   hint="is gpurestd running? GPUREST_URL or connect(url) names another one") from error

    def _open(self, timeout: Optional[float], tls: Optional[ssl.SSLContext]) -> socket.socket:
        if self.scheme == "unix":
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        else:
            sock = socket.create_connection((self.host, self.port), timeout)
        try:
            sock.settimeout(timeout)
            if self.scheme == "unix":
                sock.connect(self.path)
            else:
                tune(sock)
            return tls.wrap_socket(sock, server_hostname=self.host) if tls else sock
        except BaseException:
            sock.close()
            raise


def tune(sock: socket.socket) -> None:
    """A host default such as bbr paces, and costs a part of the rate on loopback; the kernel may not have the other one. Keepalive notices a machine
    that vanished, and keeps those between awake, while an answer takes long."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in KEEPALIVE:
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
    peer = sock.getpeername()[0]
    if hasattr(socket, "TCP_CONGESTION") and (peer == "::1" or peer.startswith("127.")):
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        except OSError:
            pass


def token_of(token: Optional[str]) -> Optional[str]:
    """The argument, else GPUREST_TOKEN, else the first line of GPUREST_TOKEN_FILE."""
    token = token or os.environ.get("GPUREST_TOKEN")
    name = os.environ.get("GPUREST_TOKEN_FILE")
    if not token and name:
        with open(name, encoding="utf-8") as file:
            token = file.readline().strip()
    if token and not all("!" <= c <= "~" for c in token):
        raise ArgumentError("a token consists of visible ASCII characters")
    return token or None
