"""FakeServer: the service's requests answered within the process, for users' unit tests."""
from __future__ import annotations

import json
import re
import threading
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple
from urllib.parse import unquote, urlsplit

from ..._transport.frame import BATCH_TYPE, unpack
from ...errors import ProtocolError
from .background import FakeBackground
from .compute import Computer, FakeLaunch, Model, compare, copy, fill, piece
from .local_http import LocalAnswer, LocalRequest, LocalServer, json_answer
from .state import INSTANCE, FakeSession, Refused, new_id, now

__all__ = ["FakeServer", "FakeLaunch"]
OCTETS = "application/octet-stream"
DEVICE = "fake:0"
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(?:\d+|\*)")
_SID = r"/v1/sessions/(?P<sid>[^/]+)"


class _Failure(NamedTuple):
    """A scripted refusal."""
    refused: Refused
    method: str
    path: str


class FakeServer(FakeBackground, LocalServer):
    """A stand-in for gpurestd, for tests of programs that use gpurest: no GPU, no compiler, no process.

    Buffers, sessions, batches, faults and resets behave as the contract says. Kernels are Python functions that stand for them:

        with FakeServer() as fake:
            @fake.kernel("saxpy")
            def saxpy(launch, a, x, y, n):
                y[:n] += a * x[:n]

    `launch` has grid, block and shared_bytes; pointers come as NumPy arrays of the declared type (without NumPy as memoryviews) from their
    place to the buffer's end, and may be written; numbers come as Python numbers. What the function raises is the kernel's fault. Sources are
    looked through for declarations, never compiled. `fail()` scripts refusals; `requests` lists what came. Arrays (gpurest.ndarray) make
    kernels of their own, for which nobody has a function: test these against the service, or with record() and replay().
    Thread-safe; one request is answered at a time."""

    def __init__(self) -> None:
        self.requests: List[Tuple[str, str]] = []
        self._models: Dict[str, Model] = {}
        self._failures: List[_Failure] = []
        self._sessions: Dict[str, FakeSession] = {}
        self._generations: Dict[str, int] = {}  # the last ones of sessions that have ended
        self._implicit = FakeSession("implicit", DEVICE, {})
        self._lock = threading.Lock()
        super().__init__()

    def kernel(self, name: str) -> Callable[[Model], Model]:
        """A decorator: the function stands for every kernel of this name (a template by its name expression)."""
        def add(model: Model) -> Model:
            self._models[name] = model
            return model
        return add

    def fail(self, code: str, status: int, *, method: str = "", path: str = "", times: int = 1, detail: str = "as the test asked for") -> None:
        """The next `times` requests of this method (any) whose path contains `path` are answered with this problem."""
        self._failures += [_Failure(Refused(status, code, detail), method, path)] * times

    # ---- requests ----

    def answer(self, request: LocalRequest) -> LocalAnswer:
        """The answer to a request."""
        path = urlsplit(request.target).path
        with self._lock:
            self.requests.append((request.method, request.target))
            try:
                self._scripted(request.method, path)
                return self._routed(request, path)
            except Refused as refused:
                body = json.dumps(refused.problem(path)).encode()
                return LocalAnswer(refused.status, {"Content-Type": "application/problem+json"}, body)
            except (KeyError, ValueError, TypeError, ProtocolError) as error:
                body = json.dumps(Refused(400, "invalid_field", f"{type(error).__name__}: {error}").problem(path)).encode()
                return LocalAnswer(400, {"Content-Type": "application/problem+json"}, body)

    def _scripted(self, method: str, path: str) -> None:
        for at, one in enumerate(self._failures):
            if one.method in ("", method) and one.path in path:
                raise self._failures.pop(at).refused

    def _routed(self, request: LocalRequest, path: str) -> LocalAnswer:
        for pattern, methods in _ROUTES:
            match = pattern.fullmatch(path)
            if match is None:
                continue
            name = methods.get(request.method)
            if name is None:
                raise Refused(405, "method_not_allowed", f"{request.method} {path}")
            named = {key: unquote(value) for key, value in match.groupdict().items()}
            if "sid" in named:
                return self._of_session(name, request, named)
            found: LocalAnswer = getattr(self, name)(request, **named)
            return found
        raise Refused(404, "not_found", f"FakeServer does not have {path}")

    def _of_session(self, name: str, request: LocalRequest, named: Dict[str, str]) -> LocalAnswer:
        sid = named.pop("sid")
        if name != "_session_put" and sid not in self._sessions:
            raise Refused(404, "session_not_found", "no session of this id")
        first: Any = sid if name == "_session_put" else self._sessions[sid]
        wanted, _, instance = request.headers.get("gpurest-generation", "").partition(";")
        if wanted and name != "_session_put" and (int(wanted) != first.generation or instance not in ("", f'instance="{INSTANCE}"')):
            raise Refused(409, "generation_changed", f"the session's generation is {first.generation}, not {wanted}: it was reset or made anew since")
        if name not in ("_session_put", "_session_get", "_session_delete", "_reset", "_heartbeat", "_job_get", "_job_result", "_job_delete"):
            first.check()
        found: LocalAnswer = getattr(self, name)(request, first, **named)
        return found

    # ---- the service ----

    def _alive(self, _: LocalRequest) -> LocalAnswer:
        return LocalAnswer(200, {"Content-Type": "text/plain"}, b"ok\n")

    def _version(self, _: LocalRequest) -> LocalAnswer:
        return json_answer({"server": "gpurest-fake", "version": "1.0.0", "instance": INSTANCE, "api": {"least": "v1", "most": "v1"}, "compiler": None,
                            "backends": [{"name": "fake", "driver": None}]})

    def _device_row(self) -> Dict[str, Any]:
        return {"id": DEVICE, "backend": "fake", "name": "FakeServer", "uuid": "FAKE-0", "compute_capability": "7.5", "state": "healthy",
                "memory": {"total_bytes": 1 << 30, "free_bytes": 1 << 30}, "multiprocessors": 1, "warp_size": 32, "max_threads_per_block": 1024,
                "max_shared_bytes_per_block": 48 << 10, "l2_cache_bytes": 0, "attributes": {}, "unsupported": []}

    def _devices(self, _: LocalRequest) -> LocalAnswer:
        return json_answer({"items": [self._device_row()], "next_cursor": None})

    def _device(self, _: LocalRequest, did: str) -> LocalAnswer:
        if did != DEVICE:
            raise Refused(404, "not_found", "no such device")
        return json_answer(self._device_row())

    def _limits(self, _: LocalRequest) -> LocalAnswer:
        return json_answer({"limits": {"sessions": {"max": 64, "used": len(self._sessions)}}})

    def _run(self, request: LocalRequest) -> LocalAnswer:
        self._implicit.fault = None
        self._implicit.buffers.clear()
        return self._batch(request, self._implicit)

    def _run_job(self, request: LocalRequest, xid: str) -> LocalAnswer:
        found: LocalAnswer = {"GET": self._job_get, "DELETE": self._job_delete}[request.method](request, self._implicit, xid)
        return found

    def _run_result(self, request: LocalRequest, xid: str) -> LocalAnswer:
        return self._job_result(request, self._implicit, xid)

    # ---- sessions ----

    def _session_list(self, _: LocalRequest) -> LocalAnswer:
        return json_answer({"items": [one.info() for one in self._sessions.values()], "next_cursor": None})

    def _session_post(self, request: LocalRequest) -> LocalAnswer:
        return self._session_put(request, new_id("s"))

    def _session_put(self, request: LocalRequest, sid: str) -> LocalAnswer:
        spec = json.loads(request.body or b"{}")
        known = self._sessions.get(sid)
        if known is not None and _in_force(known.spec) != _in_force(spec):
            raise Refused(409, "spec_conflict", "the session exists with another specification")
        if known is None:
            self._sessions[sid] = FakeSession(sid, DEVICE, spec, self._sessions, self._generations.get(sid, 0) + 1)
        return json_answer(self._sessions[sid].info(), 200 if known else 201)

    def _session_get(self, _: LocalRequest, session: FakeSession) -> LocalAnswer:
        return json_answer(session.info())

    def _session_patch(self, request: LocalRequest, session: FakeSession) -> LocalAnswer:
        session.patch({key: value for key, value in json.loads(request.body).items() if value is not None})
        return json_answer(session.info())

    def _session_delete(self, _: LocalRequest, session: FakeSession) -> LocalAnswer:
        del self._sessions[session.id]
        self._generations[session.id] = session.generation
        return LocalAnswer(204, {}, b"")

    def _heartbeat(self, _: LocalRequest, __: FakeSession) -> LocalAnswer:
        return LocalAnswer(204, {}, b"")

    def _reset(self, _: LocalRequest, session: FakeSession) -> LocalAnswer:
        session.reset()
        return json_answer(session.info())

    def _sync(self, _: LocalRequest, __: FakeSession) -> LocalAnswer:
        return json_answer({})

    def _memory(self, _: LocalRequest, session: FakeSession) -> LocalAnswer:
        used = session.memory_bytes
        return json_answer({"allocated_bytes": used, "cached_bytes": 0, "reserved_bytes": used, "free_bytes": (1 << 30) - used, "peak_bytes": session.peak_bytes,
                            "limit_bytes": session.memory_limit, "fragmentation": 0, "fragmentation_reason": None})

    def _reset_peak(self, request: LocalRequest, session: FakeSession) -> LocalAnswer:
        session.peak_bytes = session.memory_bytes
        return self._memory(request, session)

    # ---- buffers ----

    def _buffer_list(self, _: LocalRequest, session: FakeSession) -> LocalAnswer:
        return json_answer({"items": [{"id": id, "size": len(data), "created_at": now()} for id, data in session.buffers.items()], "next_cursor": None})

    def _buffer_post(self, request: LocalRequest, session: FakeSession) -> LocalAnswer:
        return self._buffer_put(request, session, new_id("b"))

    def _buffer_put(self, request: LocalRequest, session: FakeSession, bid: str) -> LocalAnswer:
        filled = request.headers.get("content-type", "").startswith(OCTETS)
        size = len(request.body) if filled else json.loads(request.body)["size"]
        known = session.buffers.get(bid)
        if known is not None and len(known) != size:
            raise Refused(409, "spec_conflict", "the buffer exists with another size")
        data = session.new_buffer(bid, size) if known is None else known
        if filled:
            data[:] = request.body
        return json_answer({"id": bid, "size": size, "created_at": now()}, 201 if known is None else 200)

    def _buffer_get(self, _: LocalRequest, session: FakeSession, bid: str) -> LocalAnswer:
        return json_answer({"id": bid, "size": len(session.buffer(bid)), "created_at": now()})

    def _buffer_delete(self, _: LocalRequest, session: FakeSession, bid: str) -> LocalAnswer:
        session.buffer(bid)
        del session.buffers[bid]
        return LocalAnswer(204, {}, b"")

    def _data_get(self, request: LocalRequest, session: FakeSession, bid: str) -> LocalAnswer:
        data = session.buffer(bid)
        headers = {"Content-Type": OCTETS, "ETag": f'"{session.generation}.{session.epoch}"', "Accept-Ranges": "bytes"}
        match = _RANGE.fullmatch(request.headers.get("range", ""))
        if match is None:
            return LocalAnswer(200, {**headers, "Content-Length": str(len(data))}, bytes(data))
        first, last = int(match.group(1)), min(int(match.group(2)), len(data) - 1)
        if first >= len(data):
            raise Refused(416, "range_not_satisfiable", f"the buffer has {len(data)} bytes")
        return LocalAnswer(206, {**headers, "Content-Range": f"bytes {first}-{last}/{len(data)}"}, bytes(data[first:last + 1]))

    def _data_put(self, request: LocalRequest, session: FakeSession, bid: str) -> LocalAnswer:
        data = session.buffer(bid)
        match = _CONTENT_RANGE.fullmatch(request.headers.get("content-range", f"bytes 0-{len(data) - 1}/*"))
        if match is None or int(match.group(2)) - int(match.group(1)) + 1 != len(request.body):
            raise Refused(400, "length_mismatch", "the body is not as long as the range")
        piece(data, int(match.group(1)), len(request.body))[:] = request.body
        session.epoch += 1
        return LocalAnswer(204, {"ETag": f'"{session.generation}.{session.epoch}"'}, b"")

    def _fill(self, request: LocalRequest, session: FakeSession, bid: str) -> LocalAnswer:
        spec = json.loads(request.body)
        fill(piece(session.buffer(bid), int(spec.get("offset") or 0), spec.get("size")), spec["pattern"])
        return LocalAnswer(204, {}, b"")

    def _copy(self, request: LocalRequest, session: FakeSession, bid: str) -> LocalAnswer:
        spec = json.loads(request.body)
        copy(session.buffer(spec["from"]), session.buffer(bid), spec)
        return LocalAnswer(204, {}, b"")

    def _compare(self, request: LocalRequest, session: FakeSession, bid: str) -> LocalAnswer:
        return json_answer(compare(session.buffer(bid), session.buffer(json.loads(request.body)["with"]), json.loads(request.body)))

    # ---- code ----

    def _module_post(self, request: LocalRequest, session: FakeSession) -> LocalAnswer:
        kind = request.headers.get("content-type", "")
        if not kind.startswith(("application/json", "text/x-cuda")):
            raise Refused(415, "unsupported_media_type", "FakeServer takes sources, no images")
        spec = json.loads(request.body) if kind.startswith("application/json") else {"source": request.body.decode()}
        module, new = session.compile(spec)
        return json_answer(module.info(not new), 201 if new else 200)

    def _module_list(self, _: LocalRequest, session: FakeSession) -> LocalAnswer:
        return json_answer({"items": [one.info() for one in session.modules.values()], "next_cursor": None})

    def _module_get(self, _: LocalRequest, session: FakeSession, mid: str) -> LocalAnswer:
        return json_answer(session.module(mid).info())

    def _module_delete(self, _: LocalRequest, session: FakeSession, mid: str) -> LocalAnswer:
        session.module(mid)
        del session.modules[mid]
        return LocalAnswer(204, {}, b"")

    def _launch_post(self, request: LocalRequest, session: FakeSession) -> LocalAnswer:
        spec = json.loads(request.body)
        computer = Computer(session, self._models)
        computer.launch(spec, session.module(spec.get("module")))
        launch = {"id": spec.get("id") or new_id("l"), "module": spec["module"], "kernel": spec["kernel"], "grid": spec["grid"], "block": spec.get("block"),
                  "shared_bytes": spec.get("shared_bytes") or 0, "stream": spec.get("stream"), "state": "succeeded", "created_at": now(),
                  "gpu_us": 0.0 if spec.get("timing", True) else None, "stdout": "", "stdout_truncated": False}
        session.launches[launch["id"]] = launch
        return json_answer(launch)

    def _launch_list(self, _: LocalRequest, session: FakeSession) -> LocalAnswer:
        return json_answer({"items": list(session.launches.values()), "next_cursor": None})

    def _launch_get(self, _: LocalRequest, session: FakeSession, lid: str) -> LocalAnswer:
        launch: Optional[Dict[str, Any]] = session.launches.get(lid)
        if launch is None:
            raise Refused(404, "launch_not_found", "no launch of this id in the session")
        return json_answer(launch)

    def _batch(self, request: LocalRequest, session: FakeSession) -> LocalAnswer:
        if not request.headers.get("content-type", "").startswith(BATCH_TYPE):
            raise Refused(415, "unsupported_media_type", f"FakeServer takes batches as {BATCH_TYPE}")
        document, segments = unpack(request.body)
        return self._answered(request, session, lambda: Computer(session, self._models).batch(document, segments))


def _in_force(spec: Mapping[str, Any]) -> Dict[str, Any]:
    """What a session is asked to be: what is left out is what it would be."""
    return {"device": DEVICE, "idle_timeout_s": 600, "max_lifetime_s": 86400, **{name: value for name, value in spec.items() if value}}


_ROUTES = [(re.compile(path), methods) for path, methods in (
    (r"/livez|/readyz", {"GET": "_alive"}), (r"/version", {"GET": "_version"}), (r"/v1/devices", {"GET": "_devices"}),
    (r"/v1/devices/(?P<did>[^/]+)", {"GET": "_device"}), (r"/v1/limits", {"GET": "_limits"}), (r"/v1/run", {"POST": "_run"}),
    (r"/v1/run/(?P<xid>[^/]+)", {"GET": "_run_job", "DELETE": "_run_job"}), (r"/v1/run/(?P<xid>[^/]+)/result", {"GET": "_run_result"}),
    (r"/v1/sessions", {"GET": "_session_list", "POST": "_session_post"}),
    (_SID, {"PUT": "_session_put", "GET": "_session_get", "PATCH": "_session_patch", "DELETE": "_session_delete"}), (_SID + "/reset", {"POST": "_reset"}),
    (_SID + "/heartbeat", {"POST": "_heartbeat"}),
    (_SID + "/sync", {"POST": "_sync"}), (_SID + "/memory", {"GET": "_memory"}), (_SID + "/memory/trim", {"POST": "_memory"}),
    (_SID + "/memory/peak/reset", {"POST": "_reset_peak"}),
    (_SID + "/buffers", {"GET": "_buffer_list", "POST": "_buffer_post"}),
    (_SID + "/buffers/(?P<bid>[^/]+)", {"PUT": "_buffer_put", "GET": "_buffer_get", "DELETE": "_buffer_delete"}),
    (_SID + "/buffers/(?P<bid>[^/]+)/data", {"GET": "_data_get", "HEAD": "_data_get", "PUT": "_data_put"}),
    (_SID + "/buffers/(?P<bid>[^/]+)/fill", {"POST": "_fill"}), (_SID + "/buffers/(?P<bid>[^/]+)/copy", {"POST": "_copy"}),
    (_SID + "/buffers/(?P<bid>[^/]+)/compare", {"POST": "_compare"}),
    (_SID + "/modules", {"GET": "_module_list", "POST": "_module_post"}),
    (_SID + "/modules/(?P<mid>[^/]+)", {"GET": "_module_get", "DELETE": "_module_delete"}),
    (_SID + "/launches", {"GET": "_launch_list", "POST": "_launch_post"}), (_SID + "/launches/(?P<lid>[^/]+)", {"GET": "_launch_get"}),
    (_SID + "/batches", {"POST": "_batch"}), (_SID + "/batches/(?P<xid>[^/]+)", {"GET": "_job_get", "DELETE": "_job_delete"}),
    (_SID + "/batches/(?P<xid>[^/]+)/result", {"GET": "_job_result"}), (_SID + "/programs", {"GET": "_program_list"}),
    (_SID + "/programs/(?P<pid>[^/]+)", {"PUT": "_program_put", "GET": "_program_get", "DELETE": "_program_delete"}),
    (_SID + "/programs/(?P<pid>[^/]+)/runs", {"POST": "_program_run"}))]
