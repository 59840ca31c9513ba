"""Long transfers of the asyncio client around the router of a fleet, as the blocking client's."""
from __future__ import annotations

from typing import Any, Mapping, Optional

from .._transport.detour import DetoursBase, check_node, endpoint_of, log
from .._transport.wire import Call, Request, Response
from ..errors import ConnectionError_, GpurestError, TimeoutError_
from .transport import AsyncTransport


class AsyncDetours(DetoursBase[AsyncTransport]):
    """For one event loop."""

    def __init__(self, main: AsyncTransport, token: Optional[str], ca_file: Optional[str]) -> None:
        super().__init__(main, token, ca_file)
        self._main = main

    @property
    def requests_sent(self) -> int:
        """How many requests have gone around the router."""
        return sum(one.requests_sent for one in self._known.values())

    async def close(self) -> None:
        """Closes all connections."""
        for one in self._forget_all():
            await one.close()

    async def send(self, info: Mapping[str, Any], request: Request, into: Optional[memoryview]) -> Response:
        """For a session that is described so."""
        url = endpoint_of(info, request, into)
        direct = await self._to(url, info.get("node")) if url else None
        if direct is None:
            return await self._main.send(request, into)
        try:
            return await direct.send(request, into)
        except (ConnectionError_, TimeoutError_) as error:
            if not (error.retryable or request.repeatable):
                raise
            lost = self._forget(str(url), error)
            if lost is not None:
                await lost.close()
            return await self._main.send(request, into)

    async def _to(self, url: str, node: Optional[str]) -> Optional[AsyncTransport]:
        """None: it cannot be reached, or not as safely as the router."""
        found, endpoint = self._begin(url)
        if endpoint is None:
            return found
        fresh = AsyncTransport(endpoint, self._token, self._first(), 0, self._ca_file)
        try:
            check_node(await fresh.do(Call(Request("GET", "/version"), Response.json)), node)
        except GpurestError as error:
            log.info("%s is asked through the router: %s", node, error)
            await fresh.close()
            return None
        fresh.retries = self._main.retries
        return self._keep(url, fresh)
