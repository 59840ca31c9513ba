"""The asyncio transport: a pool of stream connections, the same retries as the blocking one."""
from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any, AsyncIterator, Awaitable, Callable, Coroutine, Dict, List, Optional, Tuple, TypeVar

from .._transport.connection import IDLE_CONNECTION_S, readable
from .._transport.endpoint import Endpoint, tune
from .._transport.frame import BytesLike
from .._transport.moves import FOLLOWED_MAX, Moved, Step
from .._transport.steps import Steps, drive_async
from .._transport.transport import LEFT_MAX, LEFT_S, POOLED_MAX, TransportBase, sign_of_life
from .._transport.wire import HEAD_BYTES_MAX, Call, ChunkParser, Head, Request, Response, error_of, head_of, parse_head, passed, with_key
from ..errors import ConnectionError_, GpurestError, ProtocolError, TimeoutError_

SEND_BYTES = 1 << 20
RECEIVE_BYTES = 1 << 20
T = TypeVar("T")
Lives = Callable[[str], Awaitable[bool]]  # as of blocking connections


class AsyncConnection:
    """Used by one task at a time. After any exception, a cancellation included, it must be closed. Without `lives` every time-out is an exception."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, endpoint: Endpoint, token: Optional[str],
                 idle_s: Optional[float], lives: Optional[Lives] = None) -> None:
        self.used_at = time.monotonic()
        self.reusable = False
        self._reader, self._writer = reader, writer
        self._endpoint, self._token, self._idle_s = endpoint, token, idle_s
        self._lives = lives
        self._path = ""  # of the request under way

    def close(self) -> None:
        """Closes the socket; a second time nothing happens."""
        self._writer.close()

    def leave(self) -> bool:
        """As of blocking connections; False: it must be closed."""
        try:
            if self._writer.can_write_eof():
                self._writer.write_eof()
                return True
        except (OSError, RuntimeError):
            pass
        return False

    async def see_off(self, seconds: float) -> None:
        """As of blocking connections."""
        try:
            await asyncio.wait_for(self._reader.read(1), seconds)
        except (OSError, RuntimeError, asyncio.TimeoutError):
            pass
        finally:
            self.close()

    @property
    def stale(self) -> bool:
        """Whether the service has closed it meanwhile."""
        return self._reader.at_eof() or self._writer.is_closing() or readable(self._writer.get_extra_info("socket"))

    async def exchange(self, request: Request, into: Optional[memoryview]) -> Response:
        """Sends a request and receives its whole answer, the body into `into` where that is given and it succeeds."""
        sent = await self._send(request)
        head = await self.head(request)
        body = await self._body(head, into if 200 <= head.status < 300 else None)
        self.used_at = time.monotonic()
        self.reusable = head.keep_alive and sent
        return Response(head.status, head.headers, body)

    async def _send(self, request: Request) -> bool:
        """False: the server closed before it had everything; its answer may be there all the same."""
        self._path = request.path
        self._writer.write(head_of(request, self._endpoint.host_header, self._token, self._endpoint.prefix))
        try:
            for piece in request.pieces:
                view = memoryview(piece).cast("B")
                for at in range(0, len(view), SEND_BYTES):
                    self._writer.write(view[at:at + SEND_BYTES])
                    await self._within(self._writer.drain, request, 0.0)
            await self._within(self._writer.drain, request, 0.0)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    async def pass_on(self, request: Request, pieces: AsyncIterator[bytes]) -> Response:
        """Sends a body as it comes from elsewhere."""
        self._path = request.path
        self._writer.write(head_of(request, self._endpoint.host_header, self._token, self._endpoint.prefix))
        try:
            async for piece in pieces:
                self._writer.write(piece)
                await self._within(self._writer.drain, request, 0.0)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the answer may be there all the same
        head = await self.head(request)
        return Response(head.status, head.headers, await self._body(head, None))

    async def _patiently(self, work: Callable[[], Coroutine[Any, Any, T]], limit: Optional[float]) -> T:
        """asyncio.TimeoutError when it has not ended within the limit and the service does not answer either: else what is waited for takes long."""
        while True:
            try:
                return await asyncio.wait_for(work(), limit)
            except asyncio.TimeoutError:
                if self._lives is None or not await self._lives(self._path):
                    raise

    async def _within(self, work: Callable[[], Coroutine[Any, Any, T]], request: Request, more_s: float) -> T:
        limit = None if self._idle_s is None else self._idle_s + more_s
        try:
            return await self._patiently(work, limit)
        except asyncio.TimeoutError as error:
            raise TimeoutError_(f"{request.method} {request.path}: nothing came or went for {limit} s", phase="idle") from error

    async def head(self, request: Request) -> Head:
        """The status and header fields of the answer to a request."""
        while True:
            try:
                raw: bytes = await self._within(partial(self._reader.readuntil, b"\r\n\r\n"), request, request.answer_s)
            except asyncio.LimitOverrunError as error:
                raise ProtocolError("the answer's head is too long") from error
            except (asyncio.IncompleteReadError, OSError) as error:
                if isinstance(error, GpurestError):
                    raise
                raise ConnectionError_(f"{request.method} {request.path}: the connection to {self._endpoint.url} ended before the answer",
                                       retryable=request.repeatable) from error
            head = parse_head(raw[:-4], request.method)
            if head.status >= 200:
                return head

    async def send_and_head(self, request: Request) -> Head:
        """Sends a request and receives the head of its answer."""
        await self._send(request)
        return await self.head(request)

    async def _body(self, head: Head, into: Optional[memoryview]) -> BytesLike:
        if head.length is None:
            if into is not None:
                raise ProtocolError("bulk bytes came without their length")
            return b"".join([piece async for piece in self.pieces(head)])
        view = memoryview(bytearray(head.length)) if into is None else into
        if len(view) != head.length:
            raise ProtocolError(f"{head.length} bytes came where {len(view)} were asked for")
        at = 0
        while at < len(view):
            piece = await self._read(min(RECEIVE_BYTES, len(view) - at))
            if not piece:
                raise ConnectionError_(f"the answer ended after {at} of {len(view)} bytes")
            view[at:at + len(piece)] = piece
            at += len(piece)
        return view

    async def _read(self, most: int) -> bytes:
        try:
            return await self._patiently(partial(self._reader.read, most), self._idle_s)
        except asyncio.TimeoutError as error:
            raise TimeoutError_(f"no bytes came for {self._idle_s} s", phase="idle") from error
        except OSError as error:
            raise ConnectionError_(f"the connection broke: {error}") from error

    async def pieces(self, head: Head) -> AsyncIterator[bytes]:
        """Of a body whose length is not known, or of any as it comes."""
        chunks, left = (ChunkParser() if head.chunked else None), head.length
        while left != 0 and not (chunks and chunks.done):
            piece = await self._read(RECEIVE_BYTES if left is None else min(left, RECEIVE_BYTES))
            if not piece:
                if chunks or left:
                    raise ConnectionError_("the answer ended within its body")
                return
            left = None if left is None else left - len(piece)
            piece = chunks.feed(piece) if chunks else piece
            if piece:
                yield piece


class AsyncTransport(TransportBase):
    """For one event loop."""

    _free: List[AsyncConnection]
    _left: Tuple[AsyncConnection, ...] = ()  # of requests that were cancelled
    _leaving: Optional[asyncio.Future[None]] = None

    async def close(self) -> None:
        """Closes all connections."""
        self._closed = True
        free, self._free = [*self._free, *self._left], []
        self._left = ()
        for connection in free:
            connection.close()
        for moved in tuple(self._moves.values()):
            await moved.transport.close()

    async def _take(self) -> AsyncConnection:
        self._check()
        if self._left:  # what a request has begun comes before those after it, of all tasks
            self._leaving = self._leaving or asyncio.ensure_future(self._see_off())
            await asyncio.shield(self._leaving)
        while self._free:
            connection = self._free.pop()
            if time.monotonic() - connection.used_at < IDLE_CONNECTION_S and not connection.stale:
                return connection
            connection.close()
        return await self._connect(self._lives)

    async def _see_off(self) -> None:
        left = self._left
        try:
            await asyncio.gather(*(one.see_off(LEFT_S) for one in left))
        finally:
            self._left = tuple(one for one in self._left if one not in left)
            self._leaving = None

    async def _connect(self, lives: Optional[Lives]) -> AsyncConnection:
        reader, writer = await self._open()
        return AsyncConnection(reader, writer, self.endpoint, self._token, self.timeout.idle, lives)

    async def _lives(self, path: str) -> bool:
        """As the blocking transport's."""
        try:
            connection = await self._connect(None)
        except GpurestError:
            return False
        try:
            await connection.exchange(sign_of_life(path), None)
            return True
        except GpurestError:
            return False
        finally:
            connection.close()

    async def _open(self) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        at = self.endpoint
        limit = max(RECEIVE_BYTES, HEAD_BYTES_MAX)
        try:
            if at.scheme == "unix":
                return await asyncio.wait_for(asyncio.open_unix_connection(at.path, limit=limit), self.timeout.connect)
            reader, writer = await asyncio.wait_for(asyncio.open_connection(at.host, at.port, ssl=self._tls, limit=limit), self.timeout.connect)
            tune(writer.get_extra_info("socket"))
            return reader, writer
        except asyncio.TimeoutError as error:
            raise TimeoutError_(f"no connection to {at.url} within {self.timeout.connect} s", phase="connect", retryable=True) from error
        except OSError as error:
            raise ConnectionError_(f"cannot connect to {at.url}: {error}", retryable=True) from error

    async def do(self, call: Call[T]) -> T:
        """Makes a call's request and gives what its answer means."""
        return call.parse(await self.send(call.request))

    async def send(self, request: Request, into: Optional[memoryview] = None) -> Response:
        """As the blocking transport's."""
        request = with_key(request, self._keys)

        async def step(pause: Optional[float]) -> Optional[Response]:
            if pause is None:
                return await self._once(request, into)
            await asyncio.sleep(pause)
            return None

        return await drive_async(self._sending(request, lambda: False), step)

    async def _once(self, request: Request, into: Optional[memoryview]) -> Response:
        moved = self._moved(request) if self._moves else None
        if moved is not None:
            refused = await self._confirm(moved)
            return refused or await moved.transport._once(moved.request(request), into)
        connection = await self._take()
        self.requests_sent += 1
        try:
            response = await connection.exchange(request, into)
        except BaseException as error:
            if isinstance(error, Exception) or request.method in ("GET", "HEAD") or len(self._left) >= LEFT_MAX or not connection.leave():
                connection.close()
            else:
                self._left += (connection,)
            raise
        if connection.reusable and not self._closed and len(self._free) < POOLED_MAX:
            self._free.append(connection)
        else:
            connection.close()
        return response

    async def _confirm(self, moved: Moved[Any]) -> Optional[Response]:
        if moved.confirmed:
            return None
        response: Response = await moved.transport._once(moved.confirmation, None)
        moved.confirmed = response.status < 300
        return None if moved.confirmed else response

    async def move(self, sid: str, to: str, steps: Steps[Dict[str, Any]]) -> None:
        """As the blocking transport's."""
        there = self._beside(to)

        async def step(step: Step) -> Response:
            return await self._step(there, step)

        try:
            told = await drive_async(steps, step)
        finally:
            await there.close()
        await self._confirm(self._learn(sid, told))

    async def _step(self, there: AsyncTransport, step: Step) -> Response:
        if step.into is None:
            return await (there if step.there else self)._once(step.request, None)
        moved = self._moved(step.request)
        if moved is not None:
            return await moved.transport._step(there, step._replace(request=moved.request(step.request)))  # type: ignore[no-any-return]
        connection = await self._connect(self._lives)
        try:
            head = await connection.send_and_head(step.request)
            if head.status != 200 or head.length is None:
                return Response(head.status, head.headers, b"".join([one async for one in connection.pieces(head)]))
            return await there._passing(step.into, connection.pieces(head), head.length)
        finally:
            connection.close()

    async def _passing(self, request: Request, pieces: AsyncIterator[bytes], length: int) -> Response:
        connection = await self._connect(self._lives)
        try:
            return await connection.pass_on(passed(request, iter(()), length), pieces)
        finally:
            connection.close()

    async def stream(self, request: Request) -> AsyncIterator[bytes]:
        """The body of a successful answer in pieces as they come."""
        for _ in range(FOLLOWED_MAX):
            moved = self._moved(request)
            if moved is not None:
                await self._confirm(moved)
                async for piece in moved.transport.stream(moved.request(request)):
                    yield piece
                return
            try:
                async for piece in self._stream(request):
                    yield piece
                return
            except GpurestError as error:
                if not self._follow(request, error):
                    raise

    async def _stream(self, request: Request) -> AsyncIterator[bytes]:
        self._check()
        connection = await self._connect(self._lives)
        try:
            head = await connection.send_and_head(request)
            if head.status != 200:
                raise error_of(Response(head.status, head.headers, b"".join([one async for one in connection.pieces(head)])), request)
            async for piece in connection.pieces(head):
                yield piece
        finally:
            connection.close()
