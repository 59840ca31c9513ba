"""The blocking client."""
from __future__ import annotations

import concurrent.futures
import os
import threading
from types import TracebackType
from typing import IO, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from .._shown import html
from .._transport.detour import Detours
from .._transport.endpoint import Endpoint, Timeout, token_of
from .._transport.heartbeats import Heartbeats
from .._transport import snapshot
from .._transport.progress import ProgressOption
from .._transport.snapshot_base import FileName
from .._transport.transport import Transport
from .._transport.wire import Request, Response, any_request
from ..errors import ArgumentError, BusyError, ConnectionError_, GpurestError, TimeoutError_
from . import requests, run as _run
from .background import BatchJob, WarmJob
from .batch import Batch, Future
from .buffer import Buffer
from .default import choose_device, chosen_device, close_at_exit, made_by, offer_default, session_made, set_default
from .event import Event
from .handle import Unpicklable
from .kernel import Configured, Dims, Grid, Kernel
from .launch import Launch
from .module import Module
from .pipeline import Pipeline
from .rawkernel import RawKernel
from .session import Session
from .session_base import pages
from .session_state import LEASE_S
from .stream import Stream

T = TypeVar("T")
GROUP_THREADS = 256
MEMORY_LIMITS = ("memory_limit", "memory_fraction")  # of which a session has one


def _device_among(ids: Sequence[str], device: Union[int, str]) -> Optional[str]:
    if isinstance(device, str):
        return next((id for id in ids if device in (id, id.partition(":")[0])), None)
    return ids[device] if 0 <= device.__index__() < len(ids) else None


class Client(Unpicklable):
    """One service. Thread-safe: share it freely. Not usable in a forked child, which makes its own.

    `url`: http://, https:// or unix:///path; None: GPUREST_URL, else http://127.0.0.1:8080. `token`: else GPUREST_TOKEN or the file
    GPUREST_TOKEN_FILE. `timeout`: seconds, or a Timeout. `retries`: further attempts where that is safe. `connections`: how many carry one
    transfer above 64 MiB. `device`: the default session's. `idempotency_keys`: launches, batches and other POSTs carry a key by which the
    service does them once, so that they are repeated, too, when a connection breaks. `timeout_ms`: how long a kernel may run unless its call or its
    session says otherwise; None: the service's 60 s.

    The default session lives as long as this process: its idle time-out is the longest that the service gives, and a lease of `lease_s` seconds,
    renewed by a thread of the client, ends it soon after the process, however that ends. A machine that sleeps for longer loses it, too; None: no lease,
    and the service's idle time-out of 600 s."""

    _instead = "pickle client.url, and use gpurest.connect(url) where that is unpickled"

    def __init__(self, url: Optional[str] = None, *, token: Optional[str] = None, timeout: Union[Timeout, float, None] = None, retries: int = 2,
                 ca_file: Optional[str] = None, connections: int = 4, device: Optional[str] = None,
                 idempotency_keys: bool = False, lease_s: Optional[int] = LEASE_S, timeout_ms: Optional[int] = None) -> None:
        if retries < 0 or connections < 1:
            raise ArgumentError("retries are at least 0, connections at least 1")
        self._made_with = {"url": url, "token": token, "timeout": timeout, "retries": retries, "ca_file": ca_file, "connections": connections,
                           "device": device, "idempotency_keys": idempotency_keys, "lease_s": lease_s, "timeout_ms": timeout_ms}
        self.timeout_ms = requests.timeout_of(timeout_ms)
        self._transport = Transport(Endpoint.parse(url), token_of(token), Timeout.of(timeout), retries, ca_file, idempotency_keys)
        self._detours = Detours(self._transport, token_of(token), ca_file)
        self._heartbeats = Heartbeats(self._transport)
        self._lasting: Dict[str, Any] = {}  # what the sessions ask for that the client makes by itself
        if lease_s:
            self._lasting = {"lease_s": lease_s, "idle_timeout_s": requests.SESSION_S_MAX, "max_lifetime_s": requests.SESSION_S_MAX}
        self.connections = connections
        self._device = device
        self._lock = threading.Lock()
        self._default: Optional[Session] = None
        self._placed: Dict[str, Session] = {}  # by device, for those that choose one and make no session of their own
        self._memory_bounds: Dict[Optional[str], Dict[str, Any]] = {}  # of the placed ones, by device (None: of any), as session() takes them
        self._placing: List[Callable[[Session], object]] = []  # called with each new one
        self._sessions: List[Session] = []
        self._executor: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self._known_devices: List[str] = []  # their ids in the service's order, which stays the same as long as it runs
        self._kernels: Dict[str, Dict[str, Any]] = {}
        self._tuned: Dict[Tuple[str, str, str], int] = {}
        close_at_exit(self)

    # ---- life ----

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
        """How many requests went out so far, repeated ones included."""
        return self._transport.requests_sent + self._detours.requests_sent

    def close(self) -> None:
        """Ends the sessions that this client made, and its connections. Idempotent; in a forked child it does nothing."""
        if self.closed or os.getpid() != self._transport._pid:
            return
        with self._lock:
            sessions, self._sessions = self._sessions, []
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True)
        failure: Optional[GpurestError] = None
        for session in sessions:
            try:
                session.close()
            except GpurestError as error:
                failure = error
        self._transport.close()
        self._detours.close()
        if failure is not None:
            raise failure

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        try:
            self.close()
        except GpurestError:
            if kind is None:
                raise

    def __repr__(self) -> str:
        return f"<Client {self.url}{' closed' if self.closed else ''}>"

    def _repr_html_(self) -> Optional[str]:
        """In notebooks: the service's devices. None, so that repr() is shown, while it cannot be asked."""
        try:
            return html.table(f"gpurest, {self.url}", html.DEVICE_HEAD, [html.device_row(one) for one in self.devices()])
        except GpurestError:
            return None

    def _in_background(self, what: Callable[..., T], *args: Any) -> Future[T]:
        self._transport._check()
        with self._lock:
            if self._executor is None:
                self._executor = concurrent.futures.ThreadPoolExecutor(self.connections, "gpurest")
            return Future._around(self._executor.submit(what, *args))

    # ---- the service ----

    def devices(self) -> List[Dict[str, Any]]:
        """Every device, as the service describes it."""
        items: List[Dict[str, Any]] = self._transport.do(requests.member("/v1/devices", "items"))
        return items

    def nodes(self) -> List[Dict[str, Any]]:
        """The nodes of the fleet, as the router knows them: `name`, `state` ("up", "down"), `endpoint` where one is configured. Without a router the one
        node that answers."""
        items: List[Dict[str, Any]] = self._transport.do(requests.member("/v1/nodes", "items"))
        return items

    def device(self, id: str) -> Dict[str, Any]:
        """One device, as the service describes it."""
        return self._transport.do(requests.get(f"/v1/devices/{requests.enc(id)}"))

    def _device_id(self, device: Union[int, str]) -> str:
        """Of a device that is given by its place in the service's list, its id, or a backend's name, which stands for the backend's first."""
        if isinstance(device, bool) or not isinstance(device, str) and not hasattr(device, "__index__"):
            raise ArgumentError(f"a device is a place in the service's list or an id such as 'cuda:0', not {device!r}")
        found = _device_among(self._known_devices, device)
        if found is None:
            self._known_devices = [str(one["id"]) for one in self.devices()]
            found = _device_among(self._known_devices, device)
        if found is None:
            raise ArgumentError(f"there is no device {device!r}; the service has {', '.join(f'{at}: {id}' for at, id in enumerate(self._known_devices))}")
        return found

    def limits(self) -> Dict[str, Dict[str, Optional[int]]]:
        """Each limit's "max" and "used" (None: unknown)."""
        limits: Dict[str, Dict[str, Optional[int]]] = self._transport.do(requests.member("/v1/limits", "limits"))
        return limits

    def kernels(self) -> Iterator[Dict[str, Any]]:
        """The built-in kernels: names, element types, parameters; Session.builtin() launches them."""
        return self._pages("/v1/kernels")

    def _kernel_info(self, name: str) -> Dict[str, Any]:
        """As the service has it; the same as long as it runs."""
        found = self._kernels.get(name)
        if found is None:
            found = self._kernels[name] = self._transport.do(requests.get(f"/v1/kernels/{requests.enc(name)}"))
        return found

    def cache(self) -> Dict[str, Any]:
        """The cache of compiled code: `entries`, `bytes`, `hits` and `misses` of this caller's sources, `limits` of the whole; `all`, with the scope
        admin, is of all callers and the built-in kernels."""
        return self._transport.do(requests.get("/v1/cache"))

    def clear_cache(self, *, older_than_s: Optional[float] = None, all: bool = False) -> Dict[str, Any]:
        """Removes this caller's compiled code from the cache, or only what was not used for so long; `all`, with the scope admin: of all callers and
        of the built-in kernels. Returns `removed_entries` and `removed_bytes`. What is loaded stays."""
        return self._transport.do(requests.cache_clear(older_than_s, all))

    def warm(self, kernels: Union[str, Sequence[str]] = (), *, dtypes: Union[str, Sequence[str]] = (),
             sources: Sequence[Union[str, Mapping[str, Any]]] = (), devices: Union[str, Sequence[str]] = ()) -> WarmJob:
        """Compiles code into the cache ahead of its use, in the background at the service: built-in kernels by name, for `dtypes` (else all
        that each has), and sources, as texts or as {"source": …, "options": […], "headers": {…}, "name_expressions": […]}; for each of
        `devices` (else the default one). A module or launch that needs the same then compiles nothing."""
        info = self._transport.do(requests.warm(kernels, dtypes, sources, devices or self._device or ()))
        return WarmJob(self, info)

    def version(self) -> Dict[str, Any]:
        """What the service says of its version and its build."""
        return self._transport.do(requests.get("/version"))

    def is_live(self) -> bool:
        """The service answers."""
        return self._healthy("/livez")

    def is_ready(self) -> bool:
        """The service takes work."""
        return self._healthy("/readyz")

    def _healthy(self, path: str) -> bool:
        try:
            self._transport.send(Request("GET", path))
            return True
        except (ConnectionError_, TimeoutError_, BusyError):
            return False

    def request(self, method: str, path: str, document: Any = None, *, headers: Optional[Mapping[str, str]] = None,
                idempotency_key: Optional[str] = None) -> Response:
        """Any request with a JSON body, or none: for what this package has no method for. Raises as the methods do."""
        return self._transport.send(any_request(method, path, document, headers, idempotency_key))

    # ---- sessions ----

    def session(self, name: Optional[str] = None, *, device: Optional[str] = None, memory_limit: Union[int, str, None] = None,
                idle_timeout_s: Optional[int] = None, max_lifetime_s: Optional[int] = None, labels: Optional[Mapping[str, str]] = None,
                memcheck: bool = False, memory_fraction: Union[float, str, None] = None, pool_bytes_max: Union[int, str, None] = None,
                fault_domain: Optional[str] = None, fault_domain_required: bool = True, lease_s: Optional[int] = None,
                timeout_ms: Optional[int] = None) -> Session:
        """A new session; with a `name`, the one of that name if there is one. close() ends it only if it was made here. `device`: else the one
        that gpurest.cuda.set_device() chose, if this is the default client, else the one of connect(device=). Its device memory is bounded by
        `memory_limit`, in bytes ("2GiB"), or by `memory_fraction` of the device's (0.5, "80%"); `pool_bytes_max` bounds what its worker keeps
        of freed memory for later. Session.update() changes these bounds.

        Sessions of one `fault_domain` share a GPU side by side and fall together: a fault of one raises SessionLostError with the code
        "fault_domain_lost" in the others until their reset(). Where that needs a server that the service has not, the session is refused, or,
        without `fault_domain_required`, takes turns with the others; info()["fault_domain"] says which.

        The service ends it when nobody used it for `idle_timeout_s` (600; the service may give less than is asked for: see info()), and, with a
        `lease_s`, so long after the end of this process, which renews the lease until then. `timeout_ms`: how long a kernel may run unless its
        call says otherwise; else the client's."""
        timeout_ms = requests.timeout_of(self.timeout_ms if timeout_ms is None else timeout_ms)
        spec = requests.session_spec(device or chosen_device(self) or self._device, memory_limit, idle_timeout_s, max_lifetime_s, labels, memcheck, memory_fraction,
                                     pool_bytes_max, fault_domain, fault_domain_required, lease_s)
        info, created = self._transport.do(requests.session_open(name, spec))
        session = Session(self, self._transport.named(name, info), created, timeout_ms)
        self._keep(session)
        with self._lock:
            self._sessions = [one for one in self._sessions if not one.closed] + [session]
        return session

    def _heartbeats_of_all(self) -> Heartbeats:
        return self._heartbeats

    def _keep(self, session: Session) -> None:
        if session._lease_s is not None:
            self._heartbeats.keep(session)

    def load(self, file: Union[FileName, IO[bytes]], name: Optional[str] = None, *, device: Optional[str] = None,
             timeout_ms: Optional[int] = None, base: Optional[FileName] = None) -> Session:
        """A new session from a file of Session.save(), or from an open one: its buffers, modules, variables, programs, labels and limits, all of it or
        nothing. `name`: None: the service chooses one. `device`: as for session(). close() ends it. Device addresses are new: pointers inside of
        buffers are not translated. `base`: the file that this one was saved beside; one that is damaged or another one is refused."""
        data = snapshot.pieces_of(file, base)
        info, created = self._transport.do(requests.session_load(data, name, device or chosen_device(self) or self._device))
        session = Session(self, info, created, requests.timeout_of(self.timeout_ms if timeout_ms is None else timeout_ms))
        self._keep(session)
        with self._lock:
            self._sessions = [one for one in self._sessions if not one.closed] + [session]
        return session

    def attach(self, id: str) -> Session:
        """The session of this id, made elsewhere; closing it here does not end it."""
        info = self._transport.do(requests.get(requests.session_path(id)))
        session = Session(self, self._transport.named(id, info), False, self.timeout_ms)
        self._keep(session)
        return session

    def sessions(self) -> Iterator[Dict[str, Any]]:
        """All of this caller's sessions, as the service describes them."""
        return self._pages("/v1/sessions")

    def _pages(self, path: str) -> Iterator[Dict[str, Any]]:
        return pages(self._transport.do, path)

    @property
    def default_session(self) -> Session:
        """Made at the first use. buffer(), dispatch() and the other short forms use it. Of the default client: the one on the device that
        gpurest.cuda.set_device() chose."""
        return self._session_on(chosen_device(self))

    def _session_on(self, device: Optional[str]) -> Session:
        """The one on this device, made at the first use; None: on whichever device connect(device=) or the service says."""
        found = self._session_there(device)
        if found is not None:
            return found
        made = self._new_session_on(device)
        with self._lock:
            found = self._open_session(device) or self._open_session(made.device) or made
            found._is_default = True
            self._placed[found.device] = found
            if device is None:
                self._default = found
        if found is not made:
            made.close()
        elif device is None:
            session_made(self, found)
        return found

    def _session_there(self, device: Optional[str]) -> Optional[Session]:
        """As _session_on(), but None if it has not been made, or has ended."""
        with self._lock:
            found = self._open_session(device)
        if found is not None and found._in_doubt:  # asked now, so that what is made next is not made in vain
            found._beat(self._transport.do)
            return None if found._ended else found
        return found

    def _has_session_on(self, device: Optional[str]) -> bool:
        """Whether _session_on() would make none, as far as is known here."""
        with self._lock:
            return self._open_session(device) is not None

    def _make_default(self, session: Session) -> None:
        """Until it is closed or has ended."""
        with self._lock:
            session._is_default = True
            self._placed[session.device] = self._default = session

    def _open_sessions(self) -> List[Session]:
        """Those that this client placed by itself."""
        with self._lock:
            return [one for one in self._placed.values() if not one._over]

    def _open_session(self, device: Optional[str]) -> Optional[Session]:
        """With the lock held."""
        found = self._default if device is None else self._placed.get(device)
        return None if found is None or found._over else found

    def _new_session_on(self, device: Optional[str]) -> Session:
        """With the bounds of its memory that gpurest.cuda was told: the one place where they go into a new session."""
        bounds = self._bounds_on(device)
        made = self.session(device=device, **self._lasting, **bounds)
        try:
            own = self._bounds_on(made.device)
            if own != bounds:  # the service has chosen a device that has some of its own
                made.update(**own)
            for placed in tuple(self._placing):
                placed(made)
        except BaseException:
            made.close()
            raise
        return made

    def _bounds_on(self, device: Optional[str]) -> Dict[str, Any]:
        """Those of the device go before those of any; a limit in bytes and one as a part of the device's memory take each other's place."""
        own, general = self._memory_bounds.get(device, {}), self._memory_bounds.get(None, {})
        limited = bool(set(own) & set(MEMORY_LIMITS))
        return {**{name: value for name, value in general.items() if not limited or name not in MEMORY_LIMITS}, **own}

    def _bound_memory(self, device: Optional[str], name: str, value: Any) -> None:
        bounds = self._memory_bounds.setdefault(device, {})
        for other in MEMORY_LIMITS if name in MEMORY_LIMITS else ():
            bounds.pop(other, None)
        bounds[name] = value

    # ---- one call ----

    def run(self, source: str, kernel: str, args: Sequence[Any] = (), *, n: Optional[int] = None, grid: Optional[Dims] = None,
            block: Optional[Dims] = None, options: Sequence[str] = (), headers: Optional[Mapping[str, str]] = None, shared_bytes: int = 0,
            timeout_ms: Optional[int] = None) -> _run.RunResult:
        """Compiles (or finds in the cache), uploads, launches, downloads and frees in one request, on a session of the service's own.

        `args`: numbers, and host memory as In(…), Out(…), InOut(…). `n`: a number of threads; else `grid` and `block`. How much may
        be read back is the service's limit `batch_answer_bytes`."""
        run = _run.prepare(source, kernel, args, n=n, grid=grid, block=block, options=options, headers=headers, shared_bytes=shared_bytes,
                           timeout_ms=self.timeout_ms if timeout_ms is None else timeout_ms)
        return run.finish(self._transport.do(requests.batch("/v1/run", run.document, run.segments)))

    def run_background(self, source: str, kernel: str, args: Sequence[Any] = (), *, n: Optional[int] = None, grid: Optional[Dims] = None,
                       block: Optional[Dims] = None, options: Sequence[str] = (), headers: Optional[Mapping[str, str]] = None, shared_bytes: int = 0,
                       timeout_ms: Optional[int] = None) -> BatchJob[_run.RunResult]:
        """As run(), without waiting: the arguments' memory is free again on return, and what comes back is put in its place when the job's
        result() is asked for. See Batch.submit_background()."""
        run = _run.prepare(source, kernel, args, n=n, grid=grid, block=block, options=options, headers=headers, shared_bytes=shared_bytes,
                           timeout_ms=self.timeout_ms if timeout_ms is None else timeout_ms)
        info = self._transport.do(requests.in_background(requests.batch("/v1/run", run.document, run.segments)))
        return BatchJob(self, None, requests.run_job(info["id"]), info, run.finish, lambda _: None, source=source, options=options)

    # ---- short forms, on the default session ----

    def buffer(self, data: Any = None, *, size: Optional[int] = None, dtype: Any = None, progress: ProgressOption = None,
               shareable: bool = False) -> Buffer:
        """See Session.buffer()."""
        return self.default_session.buffer(data, size=size, dtype=dtype, progress=progress, shareable=shareable)

    def empty(self, shape: Union[int, Sequence[int]], dtype: Any = "f4") -> Buffer:
        """See Session.empty()."""
        return self.default_session.empty(shape, dtype)

    def module(self, source: str, options: Sequence[str] = (), **more: Any) -> Module:
        """See Session.module()."""
        return self.default_session.module(source, options, **more)

    def glsl(self, source: str, **more: Any) -> Module:
        """See Session.glsl()."""
        return self.default_session.glsl(source, **more)

    def load_spirv(self, image: Any, **more: Any) -> Module:
        """See Session.load_spirv()."""
        return self.default_session.load_spirv(image, **more)

    def create_pipeline(self, module: Module, entry: str = "main", **more: Any) -> Pipeline:
        """See Session.create_pipeline()."""
        return self.default_session.create_pipeline(module, entry, **more)

    def kernel(self, source: str, name: str, options: Sequence[str] = ()) -> RawKernel:
        """One kernel from source, compiled at the first launch, in what is the default session then."""
        return RawKernel(source, name, options, client=self)

    def dispatch(self, kernel: Union[Kernel, RawKernel], *args: Any, groups: Optional[Grid] = None, group_size: Dims = GROUP_THREADS,
                 threads: Optional[int] = None, timeout_ms: Optional[int] = None) -> Launch:
        """Runs a kernel: so many groups of `group_size` threads, or at least so many threads, for at most `timeout_ms`. Waits for the end."""
        if (groups is None) == (threads is None):
            raise ArgumentError("dispatch() takes either groups= or threads=")
        if threads is not None:
            run: Configured = kernel.for_n(threads)
            return run(*args, timeout_ms=timeout_ms)
        return kernel(groups if groups is not None else 1, group_size, args, timeout_ms=timeout_ms)

    def batch(self, **more: Any) -> Batch:
        """See Session.batch()."""
        return self.default_session.batch(**more)

    def stream(self) -> Stream:
        """See Session.stream()."""
        return self.default_session.stream()

    def event(self) -> Event:
        """See Session.event()."""
        return self.default_session.event()

    def wait(self) -> None:
        """Returns when everything that was asked for is done; raises what failed."""
        self.default_session.sync()

    fence = wait


def connect(url: Optional[str] = None, *, token: Optional[str] = None, timeout: Union[Timeout, float, None] = None, retries: int = 2,
            ca_file: Optional[str] = None, connections: int = 4, device: Optional[str] = None, idempotency_keys: bool = False,
            lease_s: Optional[int] = LEASE_S, timeout_ms: Optional[int] = None) -> Client:
    """A client; see Client. The first one becomes the default one, for functions without a client, until it is closed; use() chooses another. Nothing
    is sent yet."""
    made = Client(url, token=token, timeout=timeout, retries=retries, ca_file=ca_file, connections=connections, device=device,
                  idempotency_keys=idempotency_keys, lease_s=lease_s, timeout_ms=timeout_ms)
    offer_default(made)
    return made


def use(what: Union[Client, Session, None]) -> None:
    """Makes functions without a client use this client and its default session; or this session, and its client, until it is closed or has ended. None:
    the client that GPUREST_URL and GPUREST_TOKEN describe. The caller still closes what it made. Arrays and buffers stay where they are."""
    if what is None or isinstance(what, Client):
        if what is not None:
            what._transport._check()
        set_default(what)
    elif isinstance(what, Session):
        what._check()
        set_default(what.client)
        choose_device(None)
        what.client._make_default(what)
    else:
        raise ArgumentError(f"use() takes a Client or a Session, not {type(what).__name__}")


made_by(Client)
