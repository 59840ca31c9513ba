"""One blocking connection: a request out, an answer in. Bulk bytes go between the socket and the caller's memory without a copy."""
from __future__ import annotations

import _socket
import array
import os
import secrets
import select
import socket
import ssl
import struct
import sys
from time import monotonic
from typing import Callable, Iterator, List, Optional, Protocol, Tuple

from ..errors import ConnectionError_, GpurestError, ProtocolError, TimeoutError_
from .endpoint import Endpoint
from .frame import BytesLike
from .wire import HEAD_BYTES_MAX, ChunkParser, Head, Request, Response, head_of, parse_head, start_of, whole_answer

SEND_BYTES = 2 << 20     # between looks for an early answer
JOIN_BYTES_MAX = 64 << 10  # head and body up to this go out in one call
IDLE_CONNECTION_S = 55.0  # the service closes after 60
RECEIVE_BYTES = 64 << 10
DESCRIPTORS_MAX = 4
PIECE_BYTES_MAX = 8 << 20  # of a body, between reports of progress
PROMPT_US = 5000  # an answer within so long is waited for by the call that reads it; see wait_in_calls()
# How far a request is: nothing is sent; all or nothing is; a part is, perhaps all; all is, and nothing of the answer was taken.
UNSENT, SENDING, SENT_IN_PARTS, AWAITED, TAKEN = range(5)
AT_ONCE_BYTES = 8 << 10  # of a body: a connection that is idle takes it and its head at once, or nothing
Progress = Callable[[int], None]
Lives = Callable[[str], bool]  # whether the service still answers, of the path that is waited for


class Descriptor(Protocol):
    def fileno(self) -> int: ...


def close_all(descriptors: List[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())


def readable(sock: Descriptor) -> bool:
    """Something, or the end, is there to be read now."""
    try:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(sock, select.POLLIN)
            return bool(poll.poll(0))
        return bool(select.select([sock], [], [], 0)[0])
    except (OSError, ValueError):
        return True


def wait_in_calls(sock: socket.socket) -> None:
    """From now on read() and write() of the descriptor itself wait, for PROMPT_US, until the socket is told another time-out. What has taken longer is left to Python's own
    calls, which poll before each. So time-outs are exact, although a signal has a call that waits begin anew, unless signals come more often than that. Two polls less are
    0.97 of the processor time of an evaluation (40 rounds in turns in one process, 2026-11-29)."""
    os.set_blocking(sock.fileno(), True)


class Connection:
    """Used by one thread at a time. After any exception it must be closed. Without `lives` every time-out is an exception."""

    def __init__(self, sock: socket.socket, endpoint: Endpoint, token: Optional[str], idle_s: Optional[float], lives: Optional[Lives] = None) -> None:
        self.sock = sock
        self._lives = lives
        self._path = ""  # of the request under way
        self.stage = UNSENT  # as far as it is known to whoever is interrupted
        self.left = False  # see leave()
        self._marks: List[str] = []  # see later()
        self.used_at = monotonic()
        self._endpoint, self._host, self._token, self._idle_s = endpoint, endpoint.host_header, token, idle_s
        self._rest = b""
        self._waits_s = sock.gettimeout()  # as the socket was told
        self._descriptors: List[int] = []
        self._like: Optional[Request] = None  # of what was posted last, unless the socket waits for another time since
        self._start = self._posted = b""  # of that, and all of it
        self._short: Optional[bytes] = None  # its body
        plain = isinstance(sock, _socket.socket) and not isinstance(sock, ssl.SSLSocket)  # gevent's are none: their threads wait for each other in calls
        self._prompt = sys.platform == "linux" and plain and bool(idle_s and self._waits_s)  # Python's own calls need a time-out
        if self._prompt:
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", 0, PROMPT_US))
            wait_in_calls(sock)
        self._look = None if isinstance(sock, ssl.SSLSocket) or not hasattr(select, "poll") else select.poll()
        if self._look is not None:
            self._look.register(sock, select.POLLIN)

    def close(self) -> None:
        self.sock.close()

    def abort(self) -> None:
        """From another thread: whoever waits on the socket wakes up with an error."""
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    @property
    def usable(self) -> bool:
        """For another request: the server has not closed it, will not do so at any moment, and has sent nothing that nobody asked for."""
        if monotonic() - self.used_at >= IDLE_CONNECTION_S:
            return False
        return not (self._rest or self._look.poll(0)) if self._look is not None else not self._answered()

    def _answered(self) -> bool:
        """Bytes of an answer, or the end, are here already."""
        if not isinstance(self.sock, ssl.SSLSocket):
            return bool(self._rest) or readable(self.sock)
        if self._rest:
            return True
        timeout = self.sock.gettimeout()
        self.sock.settimeout(0)
        try:
            self._rest = self.sock.recv(RECEIVE_BYTES)  # what TLS itself has to say is taken, too, and is no answer
            return True
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        except OSError:
            return True
        finally:
            self.sock.settimeout(timeout)

    def exchange(self, request: Request, into: Optional[memoryview] = None, progress: Optional[Progress] = None) -> Response:
        """Sends, and receives the whole answer. A successful body goes to `into`, which it must fill exactly."""
        self.stage = UNSENT
        sent = self._send(request, progress)
        if into is not None or request.takes_descriptor:
            return self._answer(request, sent, into, progress)
        self._wait_for(self._answered_within(request))
        return self._whole_answer(request, sent)

    def post(self, like: Request, body: bytes) -> Response:
        """As exchange() of the request that begins as `like` and has this body, which is short, in the fewest steps: kernels are launched and arrays computed
        by such."""
        self._path, self.stage = like.path, UNSENT
        if like is not self._like:
            self._turn_to(like)
        if body is not self._short:
            self._short, self._posted = body, b"%bContent-Length: %d\r\n\r\n%b" % (self._start, len(body), body)
        self.stage = SENDING if len(body) <= AT_ONCE_BYTES else SENT_IN_PARTS
        try:
            self._put(self._posted)
        except OSError as error:
            self._check_refused(like, error)
            return self._whole_answer(like, False)
        return self._whole_answer(like, True)

    def later(self, request: Request) -> Optional[Response]:
        """The answer to a request that was interrupted at the stages SENDING or AWAITED; None: it was not sent. Another request goes behind it. If the answer
        to that comes first, nothing was sent; or an interrupt has come between the bytes' arrival and their being kept."""
        if self._marks and self.stage == TAKEN:
            raise self._broken(request, None)
        unsure, path = self.stage == SENDING and not self._marks, self._path
        self._marks.append(secrets.token_hex(8))
        self._send(Request("GET", "/livez", {"X-Request-Id": self._marks[-1]}), None)
        self._path = path
        answer = self._whole_answer(request, True)
        if answer.headers.get("x-request-id") not in self._marks:
            return answer
        if unsure:
            return None
        raise ConnectionError_(f"{request.method} {request.path}: the answer was lost by an interrupt")

    def leave(self) -> None:
        """Gives the request under way up: the service hears of it, and closes the connection when it has done with it."""
        self.left = True
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def see_off(self, seconds: float) -> None:
        """Closes a connection that was left, when the service has closed it or after so long."""
        try:
            if hasattr(select, "poll"):
                poll = select.poll()
                poll.register(self.sock, select.POLLIN)
                poll.poll(1000 * seconds)
        except (OSError, ValueError):
            pass
        finally:
            self.close()

    def _put(self, data: bytes) -> None:
        """Sends what a connection nearly always takes at once."""
        if self._prompt:
            try:
                taken = os.write(self.sock.fileno(), data)
            except BlockingIOError:
                taken = 0
            if taken == len(data):
                return
            data = data[taken:]
        self.sock.sendall(data)

    def _get(self) -> bytes:
        """What comes first of an answer, which nearly always comes soon."""
        if self._prompt:
            try:
                return os.read(self.sock.fileno(), RECEIVE_BYTES)
            except BlockingIOError:
                pass
        return self._receive_some()

    def _whole_answer(self, request: Request, sent: bool) -> Response:
        """Nearly always it comes at once. `sent`: the server has taken the whole request."""
        if self._rest:  # it came while a long request was sent
            return self._answer(request, sent, None, None)
        self.stage = AWAITED if sent else TAKEN
        try:
            raw = self._get()
        except OSError as error:
            raise self._no_answer(request, error) from error
        self.stage = TAKEN
        whole = whole_answer(raw, request)
        if whole is None:  # a part of it, or one that tells more
            self._rest = raw
            return self._answer(request, sent, None, None)
        self.reusable, self.used_at = sent, monotonic()
        return whole

    def _answer(self, request: Request, sent: bool, into: Optional[memoryview], progress: Optional[Progress]) -> Response:
        """In its parts."""
        try:
            head = self._head(request)
            self._wait_for(self._idle_s)
            body = self._body(head, into if 200 <= head.status < 300 else None, progress)
        except BaseException:
            close_all(self._descriptors)
            raise
        self.used_at = monotonic()
        self.reusable = sent and head.keep_alive
        response = Response(head.status, head.headers, body)
        if self._descriptors:
            response.descriptors, self._descriptors = self._descriptors, []
        return response

    reusable = False

    def stream(self, request: Request) -> Tuple[Head, Iterator[bytes]]:
        """The head, and the body's pieces as they come."""
        self._send(request, None)
        head = self._head(request)
        self._wait_for(self._idle_s)
        return head, self._pieces(head)

    def _wait_for(self, seconds: Optional[float]) -> None:
        """From now on calls of the socket wait so long. A call of the system, unless it is known there."""
        if seconds != self._waits_s:
            self.sock.settimeout(seconds)
            self._waits_s, self._like = seconds, None
            if self._prompt:
                wait_in_calls(self.sock)

    # ---- sending ----

    def _turn_to(self, like: Request) -> None:
        """What is posted from now on begins as `like`. All of the head but the body's length is kept there, for connections after this one."""
        start = like.start
        if start is None or start[0] is not self._endpoint or start[1] != self._token:
            like.start = start = self._endpoint, self._token, start_of(like, self._host, self._token, self._endpoint.prefix)
        self._wait_for(self._answered_within(like))
        self._like, self._start, self._short = like, start[2], None

    def _send(self, request: Request, progress: Optional[Progress]) -> bool:
        """False: the server answered before it had everything."""
        pieces, body_bytes = request.pieces, request.body_bytes
        raw = head_of(request, self._host, self._token, self._endpoint.prefix, body_bytes)
        self._path = request.path
        try:
            if body_bytes <= JOIN_BYTES_MAX:  # which the connection takes at once: the time-out of before serves
                self.stage = SENDING if body_bytes <= AT_ONCE_BYTES else SENT_IN_PARTS
                self.sock.sendall(b"".join((raw, *pieces)))
                if progress and pieces:
                    progress(body_bytes)
                return True
            self._wait_for(self._idle_s)
            self.stage = SENT_IN_PARTS
            self._send_part(memoryview(raw))
            return all(self._send_piece(piece, progress) for piece in pieces)
        except OSError as error:
            self._check_refused(request, error)
            return False

    def _check_refused(self, request: Request, error: OSError) -> None:
        """Returns where the server may have refused a request before it took all of it: the answer may be there all the same."""
        if isinstance(error, socket.timeout):
            raise TimeoutError_(f"{request.method} {request.path}: the service took no bytes for {self._waits_s} s", phase="idle") from error
        if not isinstance(error, (BrokenPipeError, ConnectionResetError)):
            raise self._broken(request, error) from error

    def _send_piece(self, piece: BytesLike, progress: Optional[Progress]) -> bool:
        view = memoryview(piece).cast("B")
        for at in range(0, len(view), SEND_BYTES):
            if at and self._answered():
                return False
            part = view[at:at + SEND_BYTES]
            self._send_part(part)
            if progress:
                progress(len(part))
        return True

    def _send_part(self, part: memoryview) -> None:
        while part:
            try:
                part = part[self.sock.send(part):]
            except socket.timeout as error:
                self._wait_on(error)

    # ---- receiving ----

    def _answered_within(self, request: Request) -> Optional[float]:
        """Seconds that its answer may take."""
        return None if self._idle_s is None else self._idle_s + request.answer_s

    def _head(self, request: Request) -> Head:
        """The first head that is not an interim one."""
        self._wait_for(self._answered_within(request))
        rest = self._rest
        try:
            while True:
                end = rest.find(b"\r\n\r\n")
                if end >= 0:
                    head, rest = parse_head(rest[:end], request.method), rest[end + 4:]
                    if head.status >= 200:
                        self._rest = rest
                        return head
                elif len(rest) > HEAD_BYTES_MAX:
                    raise ProtocolError("the answer's head is too long")
                else:
                    piece = self._receive_some(request.takes_descriptor)
                    if not piece:
                        raise self._broken(request, None)
                    rest += piece
        except ConnectionError_:
            raise
        except OSError as error:
            raise self._no_answer(request, error) from error

    def _no_answer(self, request: Request, error: OSError) -> GpurestError:
        if isinstance(error, socket.timeout):
            return TimeoutError_(f"{request.method} {request.path}: no answer for {self._waits_s} s", phase="idle")
        return self._broken(request, error)

    def _wait_on(self, error: OSError) -> None:
        """Nothing has come or gone for a time-out: raises the error unless the service still answers. Then what is waited for takes long."""
        if self._lives is None or not self._lives(self._path):
            raise error

    def _receive_some(self, with_descriptors: bool = False) -> bytes:
        while True:
            try:
                return self._receive_with_descriptors() if with_descriptors else self.sock.recv(RECEIVE_BYTES)
            except socket.timeout as error:
                self._wait_on(error)

    def _receive_with_descriptors(self) -> bytes:
        """What comes with the bytes of a Unix socket is kept for the response. One that is not asked for is dropped by the kernel."""
        piece, ancillary, _, _ = self.sock.recvmsg(RECEIVE_BYTES, socket.CMSG_SPACE(DESCRIPTORS_MAX * array.array("i").itemsize),
                                                     getattr(socket, "MSG_CMSG_CLOEXEC", 0))
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                found = array.array("i")
                found.frombytes(data[:len(data) // found.itemsize * found.itemsize])
                self._descriptors += found
        return piece

    def _broken(self, request: Request, error: Optional[OSError]) -> ConnectionError_:
        why = f": {error}" if error else ""
        return ConnectionError_(f"{request.method} {request.path}: the connection to {self._endpoint.url} ended before the answer{why}",
                                retryable=request.repeatable)

    def _body(self, head: Head, into: Optional[memoryview], progress: Optional[Progress]) -> BytesLike:
        if head.length is None:
            body = b"".join(self._pieces(head))
            if into is None:
                return body
            raise ProtocolError("bulk bytes came without their length")
        if into is None:
            if head.length <= len(self._rest):
                body, self._rest = self._rest[:head.length], self._rest[head.length:]
                return body
            into = memoryview(bytearray(head.length))
        elif len(into) != head.length:
            raise ProtocolError(f"{head.length} bytes came where {len(into)} were asked for")
        self._receive(into, progress)
        return into

    def _receive(self, into: memoryview, progress: Optional[Progress]) -> None:
        """Fills `into`: first from what is here already, then straight from the socket."""
        at = min(len(self._rest), len(into))
        into[:at] = self._rest[:at]
        self._rest = self._rest[at:]
        if progress and at:
            progress(at)
        while at < len(into):
            try:
                count = self._receive_into(into[at:at + PIECE_BYTES_MAX])
            except socket.timeout as error:
                raise TimeoutError_(f"no bytes came for {self._idle_s} s, after {at} of {len(into)}", phase="idle") from error
            except OSError as error:
                raise ConnectionError_(f"the connection broke after {at} of {len(into)} bytes: {error}") from error
            if count == 0:
                raise ConnectionError_(f"the answer ended after {at} of {len(into)} bytes")
            at += count
            if progress:
                progress(count)

    def _receive_into(self, place: memoryview) -> int:
        while True:
            try:
                return self.sock.recv_into(place)
            except socket.timeout as error:
                self._wait_on(error)

    def _pieces(self, head: Head) -> Iterator[bytes]:
        """Of a body whose length is not known: chunked, or until the connection ends."""
        chunks = ChunkParser() if head.chunked else None
        left = head.length
        while True:
            piece, self._rest = self._rest, b""
            if left is not None:
                piece = piece[:left]
                left -= len(piece)
            piece = chunks.feed(piece) if chunks else piece
            if piece:
                yield piece
            if (chunks and chunks.done) or left == 0:
                return
            self._rest = self._more()
            if not self._rest:
                if chunks or left:
                    raise ConnectionError_("the answer ended within its body")
                return

    def _more(self) -> bytes:
        try:
            return self._receive_some()
        except socket.timeout as error:
            raise TimeoutError_(f"no bytes came for {self._idle_s} s", phase="idle") from error
        except OSError as error:
            raise ConnectionError_(f"the connection broke: {error}") from error
