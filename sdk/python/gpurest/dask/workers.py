"""Dask workers and the services that they use: each worker the one of its own node, with one session that all its threads share."""
from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from distributed.core import Status, error_message
from distributed.diagnostics.plugin import WorkerPlugin

from .._session import requests
from .._session.client import Client
from .._session.default import default_client, set_default
from .._session.handle import is_fault
from .._session.session import Session
from ..arrays._engine.engine import engine_of
from ..arrays.ndarray import ndarray
from ..errors import ArgumentError, ConnectionError_, GpurestError, SessionLostError
from . import serialization

Each = Union[None, str, Mapping[Any, str], Callable[[Any], Optional[str]]]  # for all workers, by worker, or a function of the worker

NAME = "gpurest"
LEASE_S = 30  # of a worker's session: when the worker is killed, the device's memory is free again by then
TOLD_S = 10.0  # in which a task that met a loss is told to have failed; where no task did, the worker closes then
STARTING_LOOK_S = 0.05  # how often workers that are starting are looked at
RELEASE_S = 0.5  # after chunks were let go, their memory is freed; more of them come meanwhile
LABEL = "dask-nanny"
EXCEPTION = ("actual_exception", "actual-exception")  # where a task's result has it; the second name is of older versions of Dask
log = logging.getLogger("gpurest.dask")


def of_worker(worker: Any, what: Each, name: str) -> Optional[str]:
    """What a worker's own is of something that was given for all."""
    if callable(what):
        return what(worker)
    if not isinstance(what, Mapping):
        return what
    host = worker.address.rpartition("://")[2].rpartition(":")[0]
    for key in (worker.name, str(worker.name), worker.address, host):
        if key in what:
            return what[key]
    raise ArgumentError(f"{name} says nothing of worker {worker.name!r} at {worker.address}: it takes workers' names, addresses or hosts, "
                        f"and has {', '.join(map(repr, what))}")


def settle(value: Any) -> None:
    """Has what a task returned in device memory: what failed fails this task, which is the one to be tried again, and takes its time there."""
    if isinstance(value, ndarray):
        value._flush()
    elif isinstance(value, (list, tuple)):
        for one in value:
            settle(one)
    elif isinstance(value, dict):
        settle(list(value.values()))


class SettlingThreadPoolExecutor:
    """A worker's executor, whose tasks end when what they have queued on the device has ended. `heard` is told of each task's exception, before
    the worker is."""

    def __init__(self, inner: Any, heard: Callable[[BaseException], None]) -> None:
        self.inner = inner
        self.heard = heard

    def submit(self, function: Any, /, *args: Any, **options: Any) -> Any:
        """As of any executor."""
        return self.inner.submit(self._settled, function, *args, **options)

    def _settled(self, function: Any, *args: Any, **options: Any) -> Any:
        done = function(*args, **options)
        if not isinstance(done, dict) or done.get("op") not in ("task-finished", "task-erred"):
            return done
        if done["op"] == "task-finished":
            begun = time.time()
            try:
                settle(done["result"])
            except Exception as error:
                done = {"start": done.get("start", begun), "thread": done.get("thread"), **error_message(error), "op": "task-erred",
                        **dict.fromkeys(EXCEPTION, error)}
            done["stop"] = done.get("stop", begun) + time.time() - begun
        if done["op"] == "task-erred":
            for one in [done[name] for name in EXCEPTION if isinstance(done.get(name), BaseException)][:1]:
                self.heard(one)
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class _Shared:
    """The client that all workers of this process use."""

    def __init__(self, client: Client, place: Any) -> None:
        self.client = client
        self.place = place
        self.users = 1


_lock = threading.Lock()
_shared: Optional[_Shared] = None


def _is_of_service(error: Optional[BaseException]) -> bool:
    """It says that some session, or some service, is gone."""
    while error is not None:
        if isinstance(error, (ConnectionError_, SessionLostError)) or isinstance(error, GpurestError) and is_fault(error):
            return True
        error = error.__cause__ or error.__context__
    return False


class ServicePlugin(WorkerPlugin):  # type: ignore[misc]
    """Connects a worker to a service when it begins, and ends that when it closes; connect() registers it. Arguments as there."""

    name = NAME

    def __init__(self, url: Each = None, node: Each = None, device: Each = None, **options: Any) -> None:
        self.url, self.node, self.device, self.options = url, node, device, options
        self.told: Dict[str, Any] = {}  # what this worker uses
        self._session: Optional[Session] = None  # that its chunks are in

    async def setup(self, worker: Any) -> None:
        self.worker, self._lost, self._releasing = worker, False, False
        self.client: Optional[Client] = await asyncio.get_running_loop().run_in_executor(None, self._connected)
        self._executors = {name: one for name, one in worker.executors.items() if name not in ("offload", "actor")}
        worker.executors.update({name: SettlingThreadPoolExecutor(one, self._heard) for name, one in self._executors.items()})
        serialization.listeners.append(self._sent)

    async def teardown(self, worker: Any) -> None:
        if getattr(self, "client", None) is None:
            return
        serialization.listeners.remove(self._sent)
        worker.executors.update(self._executors)
        await asyncio.get_running_loop().run_in_executor(None, self._disconnected)

    # ---- the service ----

    def _connected(self) -> Client:
        """Workers of one process share a client, and so have to be of one service."""
        global _shared
        url, node, device = (of_worker(self.worker, one, name) for one, name in ((self.url, "url"), (self.node, "node"), (self.device, "device")))
        with _lock:
            place = (url, device)
            if _shared is not None and _shared.place != place:
                raise ArgumentError(f"worker {self.worker.name!r} is to use {url}, but another worker of its process uses {_shared.place[0]}: workers of "
                                    "several services are processes of their own (LocalCluster(processes=True))")
            if _shared is not None:
                _shared.users += 1
            else:
                _shared = _Shared(self._opened(url, node, device), place)
            self._session = _shared.client.default_session
            self.told = {"url": _shared.client.url, "node": _shared.client.version().get("node"), "device": self._session.device, "session": self._session.id}
            return _shared.client

    def _opened(self, url: Optional[str], node: Optional[str], device: Optional[str]) -> Client:
        client = Client(url, device=device, lease_s=LEASE_S, **self.options)
        try:
            found = client.version().get("node")
            if node is not None and found != node:
                raise ArgumentError(f"worker {self.worker.name!r} at {self.worker.address} is to use the service of node {node!r}, but {client.url} is that "
                                    f"of node {found!r}")
            self._end_left(client)
            self._make_session(client)
        except BaseException:
            client.close()
            raise
        set_default(client)
        return client

    def _owner(self) -> str:
        """Names this worker for as long as its nanny starts it again."""
        return f"{self.worker.scheduler.address} {self.worker.nanny}" if self.worker.nanny else ""

    def _end_left(self, client: Client) -> None:
        """Of a process that this one is in the place of, the session, whose memory would stay until its lease is over."""
        for one in list(client.sessions()) if self._owner() else ():
            if (one.get("labels") or {}).get(LABEL) == self._owner():
                log.info("the session %s of the process before is deleted", one["id"])
                try:
                    client._transport.do(requests.delete(requests.session_path(one["id"])))
                except GpurestError as error:
                    if error.code != "session_not_found":
                        raise

    def _make_session(self, client: Client) -> None:
        labels = {LABEL: self._owner()} if self._owner() else None
        client._make_default(client.session(labels=labels, **client._lasting))

    def _disconnected(self) -> None:
        global _shared
        with _lock:
            if _shared is None or _shared.client is not self.client:
                return
            _shared.users -= 1
            if _shared.users:
                return
            _shared = None
        assert self.client is not None
        if default_client() is self.client:
            set_default(None)
        try:
            self.client.close()
        except GpurestError as error:
            log.info("%s: %s", self.client.url, error)

    # ---- what is lost ----

    def _heard(self, error: BaseException) -> None:
        """Of a task, on its thread."""
        if _is_of_service(error) and self._gone():
            self.worker.loop.add_callback(self._is_lost, error)

    def _gone(self) -> bool:
        """Whether it is this worker's session that is gone, or its service. The client may have made another one by then, without the chunks."""
        session = self._session
        if session is None or session._over or session._lost is not None:
            return True
        try:
            session.info()
        except GpurestError as error:
            return _is_of_service(error)
        return False

    def _is_lost(self, error: BaseException) -> None:
        """With the session all chunks of the worker are lost. Dask knows that of workers which have ended: so this process ends, the nanny starts another,
        and what was lost is computed again. Meanwhile it is given nothing to do. Without a nanny the worker stays, with a new session."""
        if self._lost or self.worker.status not in (Status.running, Status.paused):
            return
        self._lost = True
        if self.worker.nanny is None:
            log.error("%s: %s; chunks that were in it cannot be used any more", self.worker.address, error)
            asyncio.get_running_loop().run_in_executor(None, self._again)
            return
        log.error("%s: %s; the worker starts again, and Dask computes its chunks anew", self.worker.address, error)
        self.worker.status = Status.paused
        asyncio.get_running_loop().call_later(TOLD_S, self._close)

    def _close(self) -> None:
        self.worker.loop.add_callback(self.worker.close, nanny=False, executor_wait=False, reason="gpurest-session-lost")

    def _again(self) -> None:
        """The session that arrays use from now on."""
        try:
            if self.client is not None:
                for one in [one for one in self.client._sessions if one._lost is not None]:
                    one.close()
                self._session = self.client.default_session
        except GpurestError as error:
            log.error("%s: no other session: %s", self.worker.address, error)
        finally:
            self._lost = False

    # ---- what is let go ----

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        if finish in ("released", "forgotten"):
            self._release_soon()
        elif finish == "error" and self._lost and self.worker.nanny is not None:  # it is told to the scheduler before the worker closes
            asyncio.get_running_loop().call_soon(self._close)

    def _sent(self, error: Optional[BaseException]) -> None:
        """A chunk went to another worker or to the disk, or could not. From any thread."""
        if error is None:
            self.worker.loop.add_callback(self._release_soon)
        elif _is_of_service(error):
            self.worker.loop.add_callback(lambda: asyncio.get_running_loop().run_in_executor(None, self._heard, error))

    def _release_soon(self) -> None:
        if not self._releasing:
            self._releasing = True
            asyncio.get_running_loop().call_later(RELEASE_S, self._release)

    def _release(self) -> None:
        self._releasing = False
        asyncio.get_running_loop().run_in_executor(None, self._free)

    def _free(self) -> None:
        try:
            if self.client is not None and not self.client.closed:
                for one in self.client._open_sessions():
                    engine_of(one).release()
        except GpurestError as error:
            log.info("%s: memory of chunks is not freed yet: %s", self.worker.address, error)


def _told_by(dask_worker: Any) -> Dict[str, Any]:
    told: Dict[str, Any] = dask_worker.plugins[NAME].told
    return told


def _stands(dask_worker: Any) -> Tuple[bool, bool]:
    """Whether a worker has the plugin, and whether it is still starting."""
    return NAME in dask_worker.plugins, dask_worker.status.name in ("undefined", "created", "init", "starting")


async def _disconnecting(client: Any) -> None:
    """A worker that is starting does not know the plugin yet, and sets it up a little later."""
    try:
        await client._unregister_worker_plugin(NAME)
        return
    except KeyError:
        log.info("a worker has not set up its service yet")
    while any(has or starts for has, starts in (await client._run(_stands, on_error="ignore")).values()):
        await client.scheduler.broadcast(msg={"op": "plugin-remove", "name": NAME})
        await asyncio.sleep(STARTING_LOOK_S)


async def _connecting(client: Any, plugin: ServicePlugin) -> Dict[str, Dict[str, Any]]:
    try:
        await client._register_plugin(plugin, NAME, False)
    except BaseException:
        with contextlib.suppress(Exception):  # it may not have come as far
            await client._unregister_worker_plugin(NAME)
        raise
    told: Dict[str, Dict[str, Any]] = await client._run(_told_by)
    return told


def connect(client: Any, url: Each = None, *, node: Each = None, device: Each = None, **options: Any) -> Any:
    """Connects each worker of a cluster, also those that come later, to a service, and makes its session, which all its threads share. Returns what
    each uses, by its address: `url`, `node`, `device`, `session`.

    `client`: a distributed.Client; of an asynchronous one the result is to be awaited. `url`: one address for all, where "127.0.0.1" is each worker's
    own node; a dictionary by the workers' names, addresses or hosts; or a function of the Worker. None: each worker's GPUREST_URL. `node`, in the same
    forms: what the service calls its node; another one is refused. `device`: one of the service's devices, for nodes with several: a worker for each.
    `options` as gpurest.connect() takes them, such as `token`.

    A worker whose session or service is lost starts again, if it has a nanny (as LocalCluster's processes and `dask worker` have): Dask computes
    again what was in it. The task that met the loss fails with its error; `retries=` of compute() has it tried again."""
    return client.sync(_connecting, client, ServicePlugin(url, node, device, **options))


def disconnect(client: Any) -> Any:
    """Ends the workers' sessions, and what connect() has set up. Chunks that are in them are lost."""
    return client.sync(_disconnecting, client)


serialization.register()
