"""Long transfers around the router of a fleet: straight to the node, at the address that its sessions tell, where that can be reached."""
from __future__ import annotations

import logging
import threading
import time
from typing import Any, Dict, Mapping, Optional

from ..errors import ConnectionError_, GpurestError, TimeoutError_
from .connection import Progress
from .endpoint import Endpoint, Timeout
from .transport import Cancel, Counted, Transport
from .wire import Call, Request, Response

BYTES_MIN = 1 << 20  # shorter ones are as fast through the router
CONNECT_S = 1.0
UNREACHABLE_S = 60.0  # until it is tried again
log = logging.getLogger("gpurest.transport")


def length_of(request: Request, into: Optional[memoryview]) -> int:
    return max(len(into) if into is not None else 0, request.body_bytes)


class Detours:
    """Thread-safe. A node that does not answer is left alone for a while, and the router carries its transfers."""

    def __init__(self, main: Transport, token: Optional[str], ca_file: Optional[str]) -> None:
        self._main, self._token, self._ca_file = main, token, ca_file
        self._lock = threading.Lock()
        self._known: Dict[str, Transport] = {}
        self._not_before: Dict[str, float] = {}

    @property
    def requests_sent(self) -> int:
        return sum(one.requests_sent for one in tuple(self._known.values()))

    def close(self) -> None:
        with self._lock:
            known, self._known = self._known, {}
        for one in known.values():
            one.close()

    def send(self, info: Mapping[str, Any], request: Request, into: Optional[memoryview], progress: Optional[Progress], cancel: Optional[Cancel]) -> Response:
        """For a session that is described so."""
        url = info.get("endpoint")
        direct = self._to(url, info.get("node")) if url and length_of(request, into) >= BYTES_MIN else None
        if direct is None:
            return self._main.send(request, into, progress, cancel)
        counted = Counted(progress) if progress else None
        try:
            return direct.send(request, into, counted, cancel)
        except (ConnectionError_, TimeoutError_) as error:
            if not (error.retryable or request.repeatable) or cancel and cancel.set:
                raise
            self._give_up(str(url), error)
            if counted:
                counted.rewind()
            return self._main.send(request, into, progress, cancel)

    def _to(self, url: str, node: Optional[str]) -> Optional[Transport]:
        """None: it cannot be reached, or not as safely as the router."""
        with self._lock:
            found = self._known.get(url)
            if found is not None or time.monotonic() < self._not_before.get(url, 0.0):
                return found
            self._not_before[url] = time.monotonic() + UNREACHABLE_S  # others do not wait for this thread's attempt
        try:
            endpoint = Endpoint.parse(url)
            if endpoint.url == self._main.endpoint.url or endpoint.scheme != "https" == self._main.endpoint.scheme:
                return None
            fresh = Transport(endpoint, self._token, Timeout(CONNECT_S, self._main.timeout.idle), 0, self._ca_file)
            if fresh.do(Call(Request("GET", "/version"), Response.json)).get("node") != node:
                raise GpurestError("another node answers there")
        except GpurestError as error:
            log.info("%s is asked through the router: %s", node, error)
            return None
        fresh.observers, fresh.retries = self._main.observers, self._main.retries
        with self._lock:
            return self._known.setdefault(url, fresh)

    def _give_up(self, url: str, error: GpurestError) -> None:
        log.warning("%s is asked through the router from now on: %s", url, error)
        with self._lock:
            lost = self._known.pop(url, None)
            self._not_before[url] = time.monotonic() + UNREACHABLE_S
        if lost is not None:
            lost.close()
