"""Recording what a program and the service say to each other, and playing the service's part later without it."""
from __future__ import annotations

import base64
import json
import os
import pathlib
import re
import threading
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from .._transport.endpoint import Endpoint, Timeout, token_of
from .._transport.transport import Transport
from .._transport.wire import Request
from ..errors import ArgumentError, GpurestError
from ._fake.local_http import NOT_PASSED_ON, LocalAnswer, LocalRequest, LocalServer
from ._fake.state import Refused

FORMAT = "gpurest.recording/1"
ANSWER_S = 310.0  # the longest that the service holds an answer
_SPEAKING = ("content-type", "range", "content-range", "prefer")  # of a request's headers: what it asks for
_SALT = re.compile(rb"-([0-9a-f]{8})-(?=\d)")  # in the names that a session of the SDK chooses


class _Entry(NamedTuple):
    """One request with its answer."""
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    answer: LocalAnswer

    @property
    def key(self) -> Tuple[Any, ...]:
        return self.method, self.target, tuple(sorted(self.headers.items())), self.body


def _speaking(headers: Mapping[str, str]) -> Dict[str, str]:
    return {name: value for name, value in headers.items() if name in _SPEAKING}


def _line(entry: _Entry) -> str:
    return json.dumps({"method": entry.method, "target": entry.target, "headers": dict(entry.headers), "body": base64.b64encode(entry.body).decode(),
                       "status": entry.answer.status, "answer_headers": dict(entry.answer.headers),
                       "answer": base64.b64encode(entry.answer.body).decode()})


def _entry(text: str) -> _Entry:
    row = json.loads(text)
    answer = LocalAnswer(int(row["status"]), row["answer_headers"], base64.b64decode(row["answer"]))
    return _Entry(row["method"], row["target"], row["headers"], base64.b64decode(row["body"]), answer)


class Recorder(LocalServer):
    """Stands between a program and the service at `target`: passes everything on, and writes it to `path`.

    The file holds the requests and answers with all bytes of buffers, but no tokens. Event streams are not passed on."""

    def __init__(self, target: str, path: Union[str, os.PathLike[str]], token: Optional[str] = None, ca_file: Optional[str] = None) -> None:
        self._transport = Transport(Endpoint.parse(target), token_of(token), Timeout(), 0, ca_file)
        self._file = open(path, "w", encoding="utf-8")
        self._file.write(json.dumps({"format": FORMAT}) + "\n")
        self._lock = threading.Lock()
        super().__init__()

    def answer(self, request: LocalRequest) -> LocalAnswer:
        """The service's answer to a request, which is kept."""
        if "text/event-stream" in request.headers.get("accept", ""):
            return _refusal(Refused(501, "feature_disabled", "event streams are not recorded"), request)
        passed = {name: value for name, value in request.headers.items() if name not in (*NOT_PASSED_ON, "host", "authorization", "user-agent", "expect")}
        try:
            got = self._transport._once(Request(request.method, request.target, passed, (request.body,) if request.body else (), ANSWER_S), None, None, None)
        except GpurestError as error:
            return _refusal(Refused(502, "bad_gateway", str(error)), request)
        answer = LocalAnswer(got.status, {name: value for name, value in got.headers.items() if name not in NOT_PASSED_ON}, bytes(got.body))
        with self._lock:
            self._file.write(_line(_Entry(request.method, request.target, _speaking(request.headers), request.body, answer)) + "\n")
        return answer

    def close(self) -> None:
        """Ends the recording."""
        super().close()
        self._transport.close()
        self._file.close()


class Replay(LocalServer):
    """Answers as the service did when `path` was recorded: the program must ask for the same, in the same order.

    Names that the SDK chooses at random are recognised. A request that was not recorded, or not as often, gets a problem that says so, and
    `unexpected` lists it. `left` is how many recorded requests nobody has made."""

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
        if not lines or json.loads(lines[0]).get("format") != FORMAT:
            raise ArgumentError(f"{path} is no recording of the format {FORMAT}")
        self._waiting: List[_Entry] = [_entry(line) for line in lines[1:]]
        self._salts = _salts(b"\n".join(one.target.encode() + b" " + one.body for one in self._waiting))
        self._known: Dict[bytes, bytes] = {}  # this run's random names -> the recording's
        self._lock = threading.Lock()
        self.unexpected: List[str] = []
        super().__init__()

    @property
    def left(self) -> int:
        """What was recorded and has not been asked for."""
        return len(self._waiting)

    def answer(self, request: LocalRequest) -> LocalAnswer:
        """The answer that was recorded for a request."""
        with self._lock:
            wanted = self._as_recorded(request).key
            for at, entry in enumerate(self._waiting):
                if entry.key == wanted:
                    del self._waiting[at]
                    return self._as_asked(entry.answer)
            what = f"{request.method} {request.target}"
            self.unexpected.append(what)
            following = f"{self._waiting[0].method} {self._waiting[0].target}" if self._waiting else "nothing"
            return _refusal(Refused(500, "internal", f"the recording has no {what} with this content; what it has next is {following}"), request)

    def _as_recorded(self, request: LocalRequest) -> _Entry:
        """With the recording's random names for this run's: the first new one stands for the first there, and so on."""
        target = request.target.encode()
        for salt in _salts(target + b" " + request.body):
            if salt not in self._known and len(self._known) < len(self._salts):
                self._known[salt] = self._salts[len(self._known)]
        target, body = (_exchanged(text, self._known) for text in (target, request.body))
        return _Entry(request.method, target.decode(), _speaking(request.headers), body, LocalAnswer(0, {}, b""))

    def _as_asked(self, answer: LocalAnswer) -> LocalAnswer:
        return answer._replace(body=_exchanged(bytes(answer.body), {there: here for here, there in self._known.items()}))


def _salts(text: bytes) -> List[bytes]:
    return list(dict.fromkeys(_SALT.findall(text)))


def _exchanged(text: bytes, names: Mapping[bytes, bytes]) -> bytes:
    return _SALT.sub(lambda match: b"-" + names.get(match.group(1), match.group(1)) + b"-", text)


def _refusal(refused: Refused, request: LocalRequest) -> LocalAnswer:
    return LocalAnswer(refused.status, {"Content-Type": "application/problem+json"}, json.dumps(refused.problem(request.target)).encode())
