"""Sessions that have moved to another node: where each one is now, and how one is moved. docs/design/moves.md has the steps."""
from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from dataclasses import dataclass
from typing import Any, Dict, Generic, Mapping, NamedTuple, Optional, TypeVar
from urllib.parse import quote

from ..errors import ArgumentError, GpurestError
from .endpoint import Endpoint
from .steps import Steps
from .wire import GENERATION, JSON_TYPE, Request, Response, error_of

FOLLOWED_MAX = 8  # nodes that a request is sent on to
MOVING_S = 3600.0  # as long as a session may stand still
MOVING_PAUSE_S = 0.25
SESSIONS = "/v1/sessions/"
OWN_ID = re.compile("s_(?:[a-z0-9-]+_)?[0-9A-Za-z]{22}")  # which the service chose; the next one chooses another
T = TypeVar("T")


def session_of(path: str) -> Optional[str]:
    """The segment of a path that names a session."""
    if not path.startswith(SESSIONS):
        return None
    return re.split("[/?]", path[len(SESSIONS):], maxsplit=1)[0]


@dataclass
class Moved(Generic[T]):
    """A session that is at another node, which is reached by `transport`."""
    transport: T
    id: str
    secret: str
    confirmed: bool = False

    def request(self, before: Request) -> Request:
        """The same there."""
        rest = before.path[len(SESSIONS) + len(session_of(before.path) or ""):]
        return dataclasses.replace(before, path=session_path(self.id) + rest)

    @property
    def confirmation(self) -> Request:
        """What makes the copy there the session; a second one changes nothing."""
        return _json("POST", session_path(self.id) + "/move/confirm", {"secret": self.secret})


def session_path(id: str) -> str:
    return SESSIONS + quote(id, safe="")


def _json(method: str, path: str, document: Mapping[str, Any], headers: Optional[Dict[str, str]] = None, answer_s: float = 0.0) -> Request:
    return Request(method, path, {"Content-Type": JSON_TYPE, **(headers or {})}, (json.dumps(document).encode(),), answer_s=answer_s)


def endpoint_after(before: Endpoint, url: str) -> Endpoint:
    """The node's; a token does not go from https to http."""
    endpoint = Endpoint.parse(url)
    if endpoint.scheme != "https" == before.scheme:
        raise ArgumentError(f"{url} is asked without TLS, unlike {before.url}: the session is not followed there")
    return endpoint


class Step(NamedTuple):
    """`request` to the node of now or, with `there`, to the next one. `into`: the former's answer is the body of this one, to the latter."""
    request: Request
    there: bool = False
    into: Optional[Request] = None


def new_home(sid: str) -> Request:
    """Makes the session at another node: under its name, or an id of that node where a service chose it."""
    name = sid.partition(".")[2] or sid
    own = OWN_ID.fullmatch(name)
    return Request("POST" if own else "PUT", SESSIONS[:-1] if own else session_path(name), {"Content-Type": "application/vnd.gpurest.snapshot"},
                   answer_s=24 * 3600.0)


def moving(sid: str, generation: str, to: str, hold_s: Optional[int], wait_s: Optional[int]) -> Steps[Dict[str, Any]]:
    """What `moved` tells at the end. Whatever fails before: the session goes on where it is, unless its node does not answer any more."""
    headers = {GENERATION: generation, **({} if wait_s is None else {"Prefer": f"wait={int(wait_s)}"})}
    begun: Response = yield Step(_json("POST", session_path(sid) + "/move", {} if hold_s is None else {"hold_s": hold_s}, headers, float(wait_s or 30)))
    move = _good(begun)["move"]
    try:
        made = _good((yield Step(Request("GET", f"{session_path(sid)}/snapshot?move={move}"), into=new_home(sid))))
        end = _json("POST", session_path(sid) + "/move/complete", {"move": move, "to": to, "id": made["id"]}, answer_s=60.0)
        told = _good((yield Step(end)))
    except GpurestError:
        given_up: Response = yield Step(Request("DELETE", f"{session_path(sid)}/move?move={move}"))
        if given_up.status == 421:  # only the answer was lost
            return dict(_object(given_up)["moved"])
        if given_up.status < 300:
            name = sid.partition(".")[2] or sid
            with contextlib.suppress(GpurestError):
                yield Step(Request("DELETE", f"{session_path(name)}/move?move={move}"), there=True)
        raise
    return told


def _object(response: Response) -> Dict[str, Any]:
    found: Dict[str, Any] = json.loads(bytes(response.body))
    return found


def _good(response: Response) -> Dict[str, Any]:
    if response.status >= 300:
        raise error_of(response, Request("POST", "/move"))
    return _object(response)
