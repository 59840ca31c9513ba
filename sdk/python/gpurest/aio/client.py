"""The asyncio client itself."""
from __future__ import annotations

from types import TracebackType
from typing import IO, Any, AsyncIterator, Awaitable, Callable, Dict, Generator, List, Mapping, Optional, Sequence, Tuple, Type, Union

from .._session import requests
from .._session import run as _run
from .._session.client import Client
from .._session.handle import Unpicklable
from .._session.kernel import Dims
from .._transport.endpoint import Endpoint, Timeout, token_of
from .._transport import snapshot
from .._transport.heartbeats import Heartbeats
from .._transport.snapshot_base import FileName
from .._transport.wire import Call, Request, Response, any_request
from ..errors import BusyError, ConnectionError_, TimeoutError_
from .background import AsyncBatchJob, AsyncWarmJob
from .detour import AsyncDetours
from .session import AsyncSession
from .transport import AsyncTransport


class _Opening:
    """session(): can be awaited, or entered by `async with`."""

    def __init__(self, client: AsyncClient, name: Optional[str], spec: Dict[str, Any], timeout_ms: Optional[int]) -> None:
        self._client, self._name, self._spec, self._timeout_ms = client, name, spec, timeout_ms
        self._session: Optional[AsyncSession] = None

    async def _open(self) -> AsyncSession:
        info, created = await self._client._transport.do(requests.session_open(self._name, self._spec))
        session = AsyncSession(self._client, self._client._transport.named(self._name, info), created, self._timeout_ms)
        self._client._sessions.append(session)
        self._client._keep(session)
        return session

    def __await__(self) -> Generator[Any, None, AsyncSession]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncSession:
        self._session = await self._open()
        return self._session

    async def __aexit__(self, *_: Any) -> None:
        if self._session is not None:
            await self._session.close()


class AsyncClient(Unpicklable):
    """See Client; for one event loop."""

    _instead = "pickle client.url, and make a client where that is unpickled"

    def __init__(self, url: Optional[str] = None, *, token: Optional[str] = None, timeout: Union[Timeout, float, None] = None, retries: int = 2,
                 device: Optional[str] = None, ca_file: Optional[str] = None, idempotency_keys: bool = False, timeout_ms: Optional[int] = None) -> None:
        self.timeout_ms = requests.timeout_of(timeout_ms)
        self._transport = AsyncTransport(Endpoint.parse(url), token_of(token), Timeout.of(timeout), retries, ca_file, idempotency_keys)
        self._detours = AsyncDetours(self._transport, token_of(token), ca_file)
        self._device = device
        self._sessions: List[AsyncSession] = []
        self._twin_client: Optional[Client] = None
        self._options: Dict[str, Any] = {"token": token, "timeout": timeout, "retries": retries, "device": device, "ca_file": ca_file, "idempotency_keys": idempotency_keys, "timeout_ms": timeout_ms}
        self._tuned: Dict[Tuple[str, str, str], int] = {}
        self._kernels: Dict[str, Dict[str, Any]] = {}

    def _twin(self) -> Client:
        """For threads: with its own connections, to the same service."""
        if self._twin_client is None:
            self._twin_client = Client(self.url, **self._options)
        return self._twin_client

    def _heartbeats_of_all(self) -> Heartbeats:
        return self._twin()._heartbeats

    def _keep(self, session: AsyncSession) -> None:
        """By a thread, because an event loop may be held up for longer than a lease."""
        if session._lease_s is not None:
            self._heartbeats_of_all().keep(session)

    @property
    def url(self) -> str:
        """The service's address."""
        return self._transport.endpoint.url

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._transport.closed

    @property
    def requests_sent(self) -> int:
        """How many requests this client has sent."""
        return self._transport.requests_sent + self._detours.requests_sent + (self._twin_client.requests_sent if self._twin_client is not None else 0)

    def session(self, name: Optional[str] = None, *, device: Optional[str] = None, memory_limit: Union[int, str, None] = None,
                idle_timeout_s: Optional[int] = None, max_lifetime_s: Optional[int] = None, labels: Optional[Mapping[str, str]] = None,
                memcheck: bool = False, memory_fraction: Union[float, str, None] = None, pool_bytes_max: Union[int, str, None] = None,
                fault_domain: Optional[str] = None, fault_domain_required: bool = True, lease_s: Optional[int] = None,
                timeout_ms: Optional[int] = None) -> _Opening:
        """See Client.session(). `await` it, or enter it by `async with`."""
        spec = requests.session_spec(device or self._device, memory_limit, idle_timeout_s, max_lifetime_s, labels, memcheck, memory_fraction, pool_bytes_max,
                                     fault_domain, fault_domain_required, lease_s)
        return _Opening(self, name, spec, requests.timeout_of(self.timeout_ms if timeout_ms is None else timeout_ms))

    async def load(self, file: Union[FileName, IO[bytes]], name: Optional[str] = None, *, device: Optional[str] = None,
                   timeout_ms: Optional[int] = None, base: Optional[FileName] = None) -> AsyncSession:
        """See Client.load(). Reading the file holds the event loop up as long as the disk does."""
        data = snapshot.pieces_of(file, base)
        info, created = await self._transport.do(requests.session_load(data, name, device or self._device))
        session = AsyncSession(self, info, created, requests.timeout_of(self.timeout_ms if timeout_ms is None else timeout_ms))
        self._keep(session)
        self._sessions.append(session)
        return session

    async def attach(self, id: str) -> AsyncSession:
        """See Client.attach()."""
        info = await self._transport.do(requests.get(requests.session_path(id)))
        session = AsyncSession(self, self._transport.named(id, info), False, self.timeout_ms)
        self._keep(session)
        return session

    async def run(self, source: str, kernel: str, args: Sequence[Any] = (), *, n: Optional[int] = None, grid: Optional[Dims] = None,
                  block: Optional[Dims] = None, options: Sequence[str] = (), headers: Optional[Mapping[str, str]] = None, shared_bytes: int = 0,
                  timeout_ms: Optional[int] = None) -> _run.RunResult:
        """See Client.run()."""
        run = _run.prepare(source, kernel, args, n=n, grid=grid, block=block, options=options, headers=headers, shared_bytes=shared_bytes,
                           timeout_ms=self.timeout_ms if timeout_ms is None else timeout_ms)
        return run.finish(await self._transport.do(requests.batch("/v1/run", run.document, run.segments)))

    async def run_background(self, source: str, kernel: str, args: Sequence[Any] = (), *, n: Optional[int] = None, grid: Optional[Dims] = None,
                             block: Optional[Dims] = None, options: Sequence[str] = (), headers: Optional[Mapping[str, str]] = None,
                             shared_bytes: int = 0, timeout_ms: Optional[int] = None) -> AsyncBatchJob[_run.RunResult]:
        """See Client.run_background()."""
        run = _run.prepare(source, kernel, args, n=n, grid=grid, block=block, options=options, headers=headers, shared_bytes=shared_bytes,
                           timeout_ms=self.timeout_ms if timeout_ms is None else timeout_ms)
        info = await self._transport.do(requests.in_background(requests.batch("/v1/run", run.document, run.segments)))
        return AsyncBatchJob(self, None, requests.run_job(info["id"]), info, run.finish, lambda _: None, source=source, options=options)

    async def devices(self) -> List[Dict[str, Any]]:
        """What the service says of its devices."""
        items: List[Dict[str, Any]] = await self._transport.do(requests.member("/v1/devices", "items"))
        return items

    async def nodes(self) -> List[Dict[str, Any]]:
        """See Client.nodes()."""
        items: List[Dict[str, Any]] = await self._transport.do(requests.member("/v1/nodes", "items"))
        return items

    async def device(self, id: str) -> Dict[str, Any]:
        """What the service says of one device, by its id."""
        return await self._transport.do(requests.get(f"/v1/devices/{requests.enc(id)}"))

    async def sessions(self) -> AsyncIterator[Dict[str, Any]]:
        """See Client.sessions(): `async for one in gpu.sessions()`."""
        async for one in self._all("/v1/sessions"):
            yield one

    async def kernels(self) -> AsyncIterator[Dict[str, Any]]:
        """See Client.kernels()."""
        async for one in self._all("/v1/kernels"):
            yield one

    async def _kernel_info(self, name: str) -> Dict[str, Any]:
        """As the service has it; the same as long as it runs."""
        found = self._kernels.get(name)
        if found is None:
            found = self._kernels[name] = await self._transport.do(requests.get(f"/v1/kernels/{requests.enc(name)}"))
        return found

    async def _all(self, path: str, do: Optional[Callable[[Call[Any]], Awaitable[Any]]] = None) -> AsyncIterator[Dict[str, Any]]:
        cursor: Optional[str] = None
        while True:
            page = await (do or self._transport.do)(requests.page(path, cursor))
            for one in page["items"]:
                yield one
            cursor = page.get("next_cursor")
            if not cursor:
                return

    async def request(self, method: str, path: str, document: Any = None, *, headers: Optional[Mapping[str, str]] = None,
                      idempotency_key: Optional[str] = None) -> Response:
        """See Client.request()."""
        return await self._transport.send(any_request(method, path, document, headers, idempotency_key))

    async def limits(self) -> Dict[str, Any]:
        """The service's limits for this caller, by their names."""
        found: Dict[str, Any] = await self._transport.do(requests.member("/v1/limits", "limits"))
        return found

    async def cache(self) -> Dict[str, Any]:
        """See Client.cache()."""
        return await self._transport.do(requests.get("/v1/cache"))

    async def clear_cache(self, *, older_than_s: Optional[float] = None, all: bool = False) -> Dict[str, Any]:
        """See Client.clear_cache()."""
        return await self._transport.do(requests.cache_clear(older_than_s, all))

    async def warm(self, kernels: Union[str, Sequence[str]] = (), *, dtypes: Union[str, Sequence[str]] = (),
                   sources: Sequence[Union[str, Mapping[str, Any]]] = (), devices: Union[str, Sequence[str]] = ()) -> AsyncWarmJob:
        """See Client.warm()."""
        info = await self._transport.do(requests.warm(kernels, dtypes, sources, devices or self._device or ()))
        return AsyncWarmJob(self, info)

    async def version(self) -> Dict[str, Any]:
        """What the service says of its version and its build."""
        return await self._transport.do(requests.get("/version"))

    async def is_live(self) -> bool:
        """Whether the service answers."""
        return await self._healthy("/livez")

    async def is_ready(self) -> bool:
        """Whether the service takes work."""
        return await self._healthy("/readyz")

    async def _healthy(self, path: str) -> bool:
        try:
            await self._transport.send(Request("GET", path))
            return True
        except (ConnectionError_, TimeoutError_, BusyError):
            return False

    async def close(self) -> None:
        """Closes its sessions and connections; a second time nothing happens."""
        if self._transport.closed:
            return
        for session in self._sessions:
            await session.close()
        if self._twin_client is not None:
            self._twin_client.close()
        await self._detours.close()
        await self._transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()
