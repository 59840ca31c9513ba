"""The blocking transport: a pool of connections, retries where the contract allows them, refusal after fork()."""
from __future__ import annotations

import logging
import os
import random
import socket
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, TypeVar

from ..errors import BusyError, ClosedError, ConnectionError_, ForkError, GpurestError, TimeoutError_
from .connection import AWAITED, JOIN_BYTES_MAX, SENDING, UNSENT, Connection, Progress, close_all
from .endpoint import Endpoint, Timeout
from .moves import FOLLOWED_MAX, MOVING_PAUSE_S, MOVING_S, SESSIONS, Moved, Step, endpoint_after, session_of
from .steps import Steps, drive
from .wire import Call, Request, Response, error_of, passed, with_body, with_key

BACKOFF_S = 0.1
BACKOFF_S_MAX = 10.0
POOLED_MAX = 16
LEFT_S = 0.25  # for a service to have done with what was interrupted
LEFT_MAX = 16
Observer = Callable[[Request, Response, float], None]
T = TypeVar("T")
log = logging.getLogger("gpurest.transport")
_pid = os.getpid()  # of now, which a process knows without a call of the system


def _forked() -> None:
    global _pid
    _pid = os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Cancel:
    """Tells the connections of one transfer to stop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: List[Connection] = []
        self.set = False

    def add(self, connection: Connection) -> None:
        with self._lock:
            self._connections.append(connection)
            if self.set:
                connection.abort()

    def stop(self) -> None:
        with self._lock:
            self.set = True
            for connection in self._connections:
                connection.abort()


class TransportBase:
    """What both transports have in common."""

    def __init__(self, endpoint: Endpoint, token: Optional[str], timeout: Timeout, retries: int, ca_file: Optional[str],
                 idempotency_keys: bool = False) -> None:
        self.endpoint = endpoint
        self.timeout = timeout
        self.retries = retries
        self.requests_sent = 0
        self._keys = idempotency_keys
        self._token = token
        self._ca_file = ca_file
        self._tls = endpoint.tls(ca_file)
        self._moves: Dict[str, Moved[Any]] = {}  # by the sessions' ids here
        self._free: List[Any] = []  # connections
        self._closed = False
        self._hurried = False  # nobody waits for what takes long
        self._pid = _pid

    @property
    def watched(self) -> bool:
        """Whether somebody looks at every answer, as profilers do."""
        return False

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._closed

    def _check(self) -> None:
        if self._pid != _pid:
            raise ForkError("this client was made before fork(): connect() again in the child process")
        if self._closed:
            raise ClosedError("the client is closed")

    def _sending(self, request: Request, stopped: Callable[[], bool]) -> Steps[Response]:
        """The successful answer. Yields None for an attempt, and seconds for a pause before the next one. Tries again where that is safe: no
        connection, the service was busy, or a repeatable request broke."""
        if self.retries < 0:
            raise GpurestError("no attempt was made: retries must not be negative")
        attempt, followed, moving_until = 0, 0, time.monotonic() + MOVING_S
        while True:
            last = attempt >= self.retries or stopped()
            began = time.perf_counter()
            try:
                response = yield None
            except (ConnectionError_, TimeoutError_) as error:
                log.debug("%s %s: %s", request.method, request.path, error)
                if last or not may_repeat(error, request) or stopped():
                    raise
                asked_s = None
            else:
                log.debug("%s %s: %d, %.2f ms", request.method, request.path, response.status, 1e3 * (time.perf_counter() - began))
                if response.status < 300 or response.status == 304:
                    return response  # type: ignore[no-any-return]
                close_all(response.descriptors)
                failure = error_of(response, request)
                if followed < FOLLOWED_MAX and self._follow(request, failure):
                    followed += 1
                    continue
                if failure.code == "session_moving" and self.retries and not stopped() and time.monotonic() < moving_until:
                    yield MOVING_PAUSE_S
                    continue
                if last or not may_ask_again(failure):
                    raise failure
                asked_s = retry_after(failure)
            pause = BACKOFF_S * (2 ** attempt) * (0.5 + random.random())
            pause = min(max(pause, asked_s or 0.0), BACKOFF_S_MAX)
            log.warning("%s %s: trying again in %.2f s", request.method, request.path, pause)
            attempt += 1
            yield pause

    # ---- sessions that have moved ----

    def _beside(self, url: str) -> Any:
        """The way to another node."""
        return type(self)(endpoint_after(self.endpoint, url), self._token, self.timeout, self.retries, self._ca_file)

    def _moved(self, request: Request) -> Optional[Moved[Any]]:
        return self._moves.get(session_of(request.path) or "")

    def named(self, sid: Optional[str], info: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a service says of a session, under the id by which requests follow it."""
        return {**info, "id": sid} if sid in self._moves else info

    def _follow(self, request: Request, failure: GpurestError) -> bool:
        """Whether the request may be sent again, to where its session is now."""
        told = failure.problem.get("moved")
        sid = session_of(request.path)
        if failure.code != "session_moved" or not told or sid is None:
            return False
        self._learn(sid, told)
        return True

    def _learn(self, sid: str, told: Mapping[str, Any]) -> Moved[Any]:
        log.info("session %s is at %s now, as %s", sid, told["to"], told["id"])
        self._moves[sid] = moved = Moved(self._beside(told["to"]), told["id"], told["secret"])
        return moved


class Transport(TransportBase):
    """Thread-safe. Threads take a connection each; the one used last is taken first."""

    _free: List[Connection]

    def __init__(self, endpoint: Endpoint, token: Optional[str], timeout: Timeout, retries: int, ca_file: Optional[str],
                 idempotency_keys: bool = False) -> None:
        super().__init__(endpoint, token, timeout, retries, ca_file, idempotency_keys)
        self.observers: List[Observer] = []
        self._lock = threading.Lock()
        self._left: List[Connection] = []  # of requests that were interrupted

    @property
    def watched(self) -> bool:
        return bool(self.observers)

    # ---- connections ----

    def _take(self) -> Connection:
        if self._closed or self._pid != _pid:
            self._check()  # says so
        if self._left:
            self._see_off()
        return self._waiting() or self._open()

    def _waiting(self) -> Optional[Connection]:
        """One that is there already."""
        while self._free:
            try:
                connection = self._free.pop()
            except IndexError:  # another thread has taken it
                break
            if connection.usable:
                return connection
            connection.close()
        return None

    def _open(self) -> Connection:
        return Connection(self._socket(), self.endpoint, self._token, self.timeout.idle, self._lives)

    def _socket(self) -> socket.socket:
        return self.endpoint.open(self.timeout.connect, self._tls)

    def _lives(self, path: str) -> bool:
        """Whether the service that a request waits for answers another one."""
        if self._hurried:
            return False
        try:
            connection = Connection(self._socket(), self.endpoint, self._token, self.timeout.idle)
        except GpurestError:
            return False
        try:
            connection.exchange(sign_of_life(path))
            return True
        except GpurestError:
            return False
        finally:
            connection.close()

    def _give(self, connection: Connection) -> None:
        """After a request. What is not taken back is closed."""
        with self._lock:
            self.requests_sent += 1
            if connection.reusable and not self._closed and len(self._free) < POOLED_MAX:
                connection.stage = UNSENT
                self._free.append(connection)
                return
        if not connection.left:
            connection.close()

    def _interrupted(self, connection: Connection, request: Request, error: BaseException) -> None:
        """By Ctrl-C, for example. What the request has begun comes before the requests after it: else a write that was interrupted could undo a later one."""
        if request.resumable and connection.stage == UNSENT:
            setattr(error, "unsent", True)
        elif request.resumable and connection.stage in (SENDING, AWAITED):
            connection.left = True
            setattr(error, "unanswered", Unanswered(self, connection, request))
        elif request.method not in ("GET", "HEAD") and len(self._left) < LEFT_MAX:
            connection.leave()
            with self._lock:
                self._left.append(connection)

    def _see_off(self) -> None:
        """A kernel, or whatever takes longer, is in its place on the device by then, and not waited for."""
        until = time.monotonic() + LEFT_S
        left = tuple(self._left)  # others that come meanwhile wait for them, too
        for connection in left:
            connection.see_off(max(0.0, until - time.monotonic()))
        with self._lock:
            self._left = [one for one in self._left if one not in left]

    def close(self) -> None:
        """Closes what is in the pool; threads that are in a request finish it."""
        if self._pid != _pid:
            return
        with self._lock:
            self._closed = True
            free, self._free, self._left = [*self._free, *self._left], [], []
        for connection in free:
            connection.close()
        for moved in tuple(self._moves.values()):
            moved.transport.close()

    def hurry(self, seconds: float) -> None:
        """From now on nothing takes longer, and nothing is tried twice."""
        self.timeout, self.retries, self._hurried = Timeout(seconds, seconds), 0, True
        with self._lock:
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    # ---- requests ----

    def do(self, call: Call[T]) -> T:
        """The parsed answer, or the exception that the answer stands for."""
        return call.parse(self.send(call.request))

    def send(self, request: Request, into: Optional[memoryview] = None, progress: Optional[Progress] = None,
             cancel: Optional[Cancel] = None) -> Response:
        """The successful answer, after further attempts where these are safe."""
        if self._keys:
            request = with_key(request, True)
        if progress or cancel or log.isEnabledFor(logging.DEBUG):
            return self._persistently(request, into, progress, cancel, [])
        outcome: Any
        try:
            outcome = self._once(request, into, None, None)
        except (ConnectionError_, TimeoutError_) as error:
            outcome = error
        else:
            if outcome.status < 300:  # nearly always: nothing but an attempt that succeeds
                return outcome  # type: ignore[no-any-return]
        return self._persistently(request, into, None, None, [outcome])

    def post(self, like: Request, body: bytes) -> Response:
        """As send() of the request that begins as `like` and has this body. In the fewest steps if it is short, while nobody watches and all goes well."""
        connection = None
        if len(body) <= JOIN_BYTES_MAX and self._pid == _pid and not (self._keys or self._moves or self._left or self.observers or log.isEnabledFor(logging.DEBUG)):
            try:
                connection = self._waiting()
            except BaseException as error:
                setattr(error, "unsent", True)
                raise
        if connection is None:
            return self.send(with_body(like, body))
        outcome: Any
        try:
            outcome = connection.post(like, body)
        except BaseException as error:
            connection.reusable = False
            if not isinstance(error, (ConnectionError_, TimeoutError_)):
                if not isinstance(error, Exception):
                    self._interrupted(connection, with_body(like, body), error)
                raise
            outcome = error
        finally:
            self._give(connection)
        if type(outcome) is Response and outcome.status < 300:
            return outcome
        return self._persistently(with_body(like, body), None, None, None, [outcome])

    def _persistently(self, request: Request, into: Optional[memoryview], progress: Optional[Progress], cancel: Optional[Cancel],
                      known: List[Any]) -> Response:
        """`known`: how an attempt ended that was made already."""
        counted = Counted(progress) if progress else None
        doubtful = False  # an attempt was sent, and nobody knows what became of it

        def step(pause: Optional[float]) -> Optional[Response]:
            nonlocal doubtful
            try:
                if pause is None:
                    return _ended(known.pop()) if known else self._once(request, into, counted, cancel)
                time.sleep(pause)
            except (ConnectionError_, TimeoutError_) as error:
                doubtful = doubtful or not hasattr(error, "unsent")
                raise
            except BaseException as error:
                if doubtful:
                    forget_interrupt(error)
                raise
            if counted:
                counted.rewind()
            return None

        return drive(self._sending(request, lambda: bool(cancel and cancel.set)), step)

    def _once(self, request: Request, into: Optional[memoryview], progress: Optional[Progress], cancel: Optional[Cancel]) -> Response:
        moved = self._moved(request) if self._moves else None
        if moved is not None:
            refused = self._confirm(moved)
            return refused or moved.transport._once(moved.request(request), into, progress, cancel)
        try:
            connection = self._take()
        except BaseException as error:
            setattr(error, "unsent", True)
            raise
        started = time.perf_counter() if self.observers else None
        try:
            if cancel:
                cancel.add(connection)
            response = connection.exchange(request, into, progress)
        except BaseException as error:
            connection.reusable = False
            if not isinstance(error, Exception):
                self._interrupted(connection, request, error)
            raise
        finally:
            self._give(connection)
        if started is not None:
            self._observed(request, response, time.perf_counter() - started)
        return response

    def _observed(self, request: Request, response: Response, seconds: float) -> None:
        try:
            for observer in tuple(self.observers):
                observer(request, response, seconds)
        except BaseException as error:
            forget_interrupt(error)  # of a request of its own
            raise

    def _confirm(self, moved: Moved[Any]) -> Optional[Response]:
        """Before the first request there; a refusal is the answer of that."""
        if moved.confirmed:
            return None
        moved.transport.observers = self.observers
        response: Response = moved.transport._once(moved.confirmation, None, None, None)
        moved.confirmed = response.status < 300
        return None if moved.confirmed else response

    def move(self, sid: str, to: str, steps: Steps[Dict[str, Any]]) -> None:
        """Does the steps of moves.moving(), and follows."""
        there = self._beside(to)
        try:
            told = drive(steps, lambda step: self._step(there, step))
        finally:
            there.close()
        self._confirm(self._learn(sid, told))

    def _step(self, there: Transport, step: Step) -> Response:
        if step.into is None:
            return (there if step.there else self)._once(step.request, None, None, None)
        moved = self._moved(step.request)
        if moved is not None:
            return moved.transport._step(there, step._replace(request=moved.request(step.request)))  # type: ignore[no-any-return]
        connection = self._open()
        try:
            head, pieces = connection.stream(step.request)
            if head.status != 200 or head.length is None:
                return Response(head.status, head.headers, b"".join(pieces))
            return there._once(passed(step.into, pieces, head.length), None, None, None)
        finally:
            connection.close()

    def stream(self, request: Request) -> Iterator[bytes]:
        """The body of a successful answer in pieces as they come; the connection is closed at the end."""
        for _ in range(FOLLOWED_MAX):
            moved = self._moved(request)
            if moved is not None:
                self._confirm(moved)
                yield from moved.transport.stream(moved.request(request))
                return
            try:
                yield from self._stream(request)
                return
            except GpurestError as error:
                if not self._follow(request, error):
                    raise

    def _stream(self, request: Request) -> Iterator[bytes]:
        connection = self._open() if not self._closed else self._take()
        try:
            self._check()
            head, pieces = connection.stream(request)
            if head.status != 200:
                raise error_of(Response(head.status, head.headers, b"".join(pieces)), request)
            yield from pieces
        finally:
            connection.close()


class Unanswered:
    """The answer to a resumable request whose wait was interrupted: the exception has it as `unanswered`. For one thread at a time. As long as it is
    there the service goes on."""

    def __init__(self, transport: Transport, connection: Connection, request: Request) -> None:
        self._transport, self._connection, self._request = transport, connection, request

    def response(self) -> Optional[Response]:
        """The successful answer, when it comes; None: the request was not sent. Interrupted, it can be asked again."""
        self._transport._check()
        try:
            response = self._connection.later(self._request)
        except Exception:
            self.close()
            raise
        self.close()
        if response is not None and response.status >= 300:
            raise error_of(response, self._request)
        return response

    def close(self) -> None:
        """Gives the request up."""
        self._connection.close()


def forget_interrupt(error: BaseException) -> None:
    """What it tells of a request that was interrupted is not true of the one that it reaches now."""
    error.__dict__.pop("unsent", None)
    later = error.__dict__.pop("unanswered", None)
    if later is not None:
        later.close()


def _ended(outcome: Any) -> Response:
    if isinstance(outcome, BaseException):
        raise outcome
    found: Response = outcome
    return found


def may_repeat(error: GpurestError, request: Request) -> bool:
    """Nothing was sent, or sending it again changes nothing."""
    if isinstance(error, TimeoutError_):
        return error.phase == "connect"
    return error.retryable or request.repeatable


def retry_after(failure: GpurestError) -> Optional[float]:
    return failure.retry_after if isinstance(failure, BusyError) else None


def may_ask_again(failure: GpurestError) -> bool:
    """The service did nothing, or is still at the first attempt, and says that later may be better."""
    if failure.code == "idempotency_in_progress":
        return True
    return isinstance(failure, BusyError) and failure.retryable and failure.status in (421, 429, 503)


def sign_of_life(path: str) -> Request:
    """A request that the service answers at once, while that of `path` waits: of the same session, as those of others may go to other nodes."""
    sid = session_of(path)
    return Request("GET", "/livez" if sid is None else SESSIONS + sid)


class Counted:
    """Progress that can be taken back when an attempt failed."""

    def __init__(self, report: Progress) -> None:
        self._report = report
        self._done = 0

    def __call__(self, count: int) -> None:
        self._done += count
        self._report(count)

    def rewind(self) -> None:
        self._report(-self._done)
        self._done = 0


def server_timing(headers: Mapping[str, str]) -> Dict[str, float]:
    """Milliseconds by name, from Server-Timing."""
    found: Dict[str, float] = {}
    for item in headers.get("server-timing", "").split(","):
        name, _, rest = item.strip().partition(";")
        if name and rest.startswith("dur="):
            try:
                found[name] = float(rest[4:])
            except ValueError:
                continue
    return found
