"""Long transfers around the router of a fleet: straight to the node, at the address that its sessions tell, where that can be reached."""
from __future__ import annotations

import logging
import threading
import time
from typing import Any, Dict, Generic, List, Mapping, Optional, Tuple, TypeVar

from ..errors import ConnectionError_, GpurestError, TimeoutError_
from .connection import Progress
from .endpoint import Endpoint, Timeout
from .transport import Cancel, Counted, Transport, TransportBase
from .wire import Call, Request, Response

BYTES_MIN = 1 << 20  # shorter ones are as fast through the router
CONNECT_S = 1.0
UNREACHABLE_S = 60.0  # until it is tried again
T = TypeVar("T", bound=TransportBase)
log = logging.getLogger("gpurest.transport")


def length_of(request: Request, into: Optional[memoryview]) -> int:
    return max(len(into) if into is not None else 0, request.body_bytes)


class DetoursBase(Generic[T]):
    """What the blocking ones and those of asyncio have in common. A node that does not answer is left alone for a while, and the router carries its
    transfers."""

    def __init__(self, main: TransportBase, token: Optional[str], ca_file: Optional[str]) -> None:
        self._base, self._token, self._ca_file = main, token, ca_file
        self._lock = threading.Lock()
        self._known: Dict[str, T] = {}
        self._not_before: Dict[str, float] = {}

    def _begin(self, url: str) -> Tuple[Optional[T], Optional[Endpoint]]:
        """The way that is known, or where it is to be tried now; neither: the router."""
        with self._lock:
            found = self._known.get(url)
            if found is not None or time.monotonic() < self._not_before.get(url, 0.0):
                return found, None
            self._not_before[url] = time.monotonic() + UNREACHABLE_S  # others do not wait for this attempt
        try:
            endpoint = Endpoint.parse(url)
        except GpurestError as error:
            log.info("%s: %s", url, error)
            return None, None
        main = self._base.endpoint
        less_safe = endpoint.scheme != "https" == main.scheme
        return None, None if endpoint.url == main.url or less_safe else endpoint

    def _first(self) -> Timeout:
        return Timeout(CONNECT_S, self._base.timeout.idle)

    def _keep(self, url: str, fresh: T) -> T:
        with self._lock:
            return self._known.setdefault(url, fresh)

    def _forget(self, url: str, error: GpurestError) -> Optional[T]:
        """What is to be closed."""
        log.warning("%s is asked through the router from now on: %s", url, error)
        with self._lock:
            self._not_before[url] = time.monotonic() + UNREACHABLE_S
            return self._known.pop(url, None)

    def _forget_all(self) -> List[T]:
        with self._lock:
            known, self._known = self._known, {}
        return [*known.values()]


def endpoint_of(info: Mapping[str, Any], request: Request, into: Optional[memoryview]) -> Optional[str]:
    """Where a session that is described so wants this one; None: it is short, or the session does not say."""
    return info.get("endpoint") if length_of(request, into) >= BYTES_MIN else None


def check_node(answer: Mapping[str, Any], node: Optional[str]) -> None:
    """Whether /version is the wanted node's."""
    if answer.get("node") != node:
        raise GpurestError("another node answers there")


class Detours(DetoursBase[Transport]):
    """Thread-safe."""

    def __init__(self, main: Transport, token: Optional[str], ca_file: Optional[str]) -> None:
        super().__init__(main, token, ca_file)
        self._main = main

    @property
    def requests_sent(self) -> int:
        return sum(one.requests_sent for one in tuple(self._known.values()))

    def close(self) -> None:
        for one in self._forget_all():
            one.close()

    def send(self, info: Mapping[str, Any], request: Request, into: Optional[memoryview], progress: Optional[Progress], cancel: Optional[Cancel]) -> Response:
        """For a session that is described so."""
        url = endpoint_of(info, request, into)
        direct = self._to(url, info.get("node")) if url else None
        if direct is None:
            return self._main.send(request, into, progress, cancel)
        counted = Counted(progress) if progress else None
        try:
            return direct.send(request, into, counted, cancel)
        except (ConnectionError_, TimeoutError_) as error:
            if not (error.retryable or request.repeatable) or cancel and cancel.set:
                raise
            lost = self._forget(str(url), error)
            if lost is not None:
                lost.close()
            if counted:
                counted.rewind()
            return self._main.send(request, into, progress, cancel)

    def _to(self, url: str, node: Optional[str]) -> Optional[Transport]:
        """None: it cannot be reached, or not as safely as the router."""
        found, endpoint = self._begin(url)
        if endpoint is None:
            return found
        fresh = Transport(endpoint, self._token, self._first(), 0, self._ca_file)
        try:
            check_node(fresh.do(Call(Request("GET", "/version"), Response.json)), node)
        except GpurestError as error:
            log.info("%s is asked through the router: %s", node, error)
            fresh.close()
            return None
        fresh.observers, fresh.retries = self._main.observers, self._main.retries
        return self._keep(url, fresh)
