"""The requests of the REST contract as values: what is sent, and what is made of the answer. Without I/O; both clients use it."""
from __future__ import annotations

import base64
import dataclasses
import json
import math
import re
import secrets
from functools import lru_cache
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union
from urllib.parse import quote, unquote, urlencode

from .._transport.frame import BATCH_TYPE, BytesLike, Untimed, declared, dumps, framed, pack, pack_text, unpack
from .._transport.transport import forget_interrupt as forget_interrupt
from .._transport.wire import GENERATION, JSON_TYPE, OCTETS, Call, Request, Response, json_request, with_body
from .._values.hostmem import parse_bytes
from ..errors import ArgumentError, ProtocolError

Document = Dict[str, Any]
BatchAnswer = Tuple[Document, Dict[str, memoryview]]
EXECUTION_TIMEOUT_MS = 60_000  # the service's default
EXECUTION_TIMEOUT_MS_MAX = 3_600_000
SESSION_S_MAX = 366 * 24 * 3600  # what may be asked for as idle time-out and lifetime; the service may give less
BUFFER = re.compile("/buffers/([^/?]+)")
CLIENT_ID = re.compile("[a-z0-9][a-z0-9_-]{0,62}")
SUCCEEDED = b'"state":"succeeded"'  # of a launch
UNTOLD = b'{"state":"succeeded","gpu_us":null,"stdout":""}'  # of one that was not to be timed and of which there is nothing else to tell
SNAPSHOT_TYPE = "application/vnd.gpurest.snapshot"
SNAPSHOT_WAIT_S = 30  # as long as the service waits for work under way unless it is asked for something else
RESTORE_S = 24 * 3600.0  # it compiles the modules of a snapshot, or reads all of a session's memory
WAIT_S = 10  # how long the service holds a launch's answer unless told otherwise


@lru_cache(maxsize=1024)
def enc(name: str) -> str:
    """As a segment of a path."""
    return quote(name, safe="$:")


def session_path(sid: str) -> str:
    return f"/v1/sessions/{enc(sid)}"


def _object(response: Response) -> Document:
    value = response.json()
    if not isinstance(value, dict):
        raise ProtocolError("the answer is no JSON object", status=response.status)
    return value


def _none(_: Response) -> None:
    return None


def get(path: str) -> Call[Document]:
    return Call(Request("GET", path), _object)


def member(path: str, name: str) -> Call[Any]:
    """One member of what is there."""
    return Call(Request("GET", path), lambda response: _object(response)[name])


def post(path: str, document: Optional[Any] = None) -> Call[Document]:
    return Call(json_request("POST", path, document), _object)


def delete(path: str) -> Call[None]:
    return Call(Request("DELETE", path), _none)


# ---- the cache of compiled code ----

def cache_clear(older_than_s: Optional[float], all: bool) -> Call[Document]:
    query: List[str] = []
    if older_than_s is not None:
        if not older_than_s >= 0:
            raise ArgumentError("older_than_s is a number of seconds, 0 or more")
        query.append(f"older_than_s={math.ceil(older_than_s)}")
    if all:
        query.append("all=1")
    return Call(Request("DELETE", "/v1/cache" + ("?" + "&".join(query) if query else "")), _object)


def _texts(value: Union[str, Sequence[str]]) -> List[str]:
    return [value] if isinstance(value, str) else list(value)


def warm(kernels: Union[str, Sequence[str]], dtypes: Union[str, Sequence[str]], sources: Sequence[Union[str, Mapping[str, Any]]],
         devices: Union[str, Sequence[str]]) -> Call[Document]:
    modules = [module_spec(one, (), {}, ()) if isinstance(one, str) else dict(one) for one in ([sources] if isinstance(sources, str) else sources)]
    parts: Document = {"kernels": _texts(kernels), "dtypes": _texts(dtypes), "modules": modules, "devices": _texts(devices)}
    return post("/v1/cache/warm", {name: part for name, part in parts.items() if part})


def warm_job(wid: str) -> str:
    return f"/v1/cache/warm/{enc(wid)}"


# ---- sessions ----

def session_spec(device: Optional[str], memory_limit: Union[int, str, None], idle_timeout_s: Optional[int], max_lifetime_s: Optional[int],
                 labels: Optional[Mapping[str, str]], memcheck: bool, memory_fraction: Union[float, str, None] = None,
                 pool_bytes_max: Union[int, str, None] = None, fault_domain: Optional[str] = None, fault_domain_required: bool = True,
                 lease_s: Optional[int] = None) -> Document:
    if memory_limit is not None and memory_fraction is not None:
        raise ArgumentError("give either memory_limit, in bytes, or memory_fraction, of the device's memory")
    if fault_domain is None and not fault_domain_required:
        raise ArgumentError("fault_domain_required says how a fault_domain is served: give one")
    spec: Document = {"device": device, "memory_limit": parse_bytes(memory_limit), "memory_fraction": memory_fraction,
                      "pool_bytes_max": parse_bytes(pool_bytes_max), "idle_timeout_s": idle_timeout_s,
                      "max_lifetime_s": max_lifetime_s, "lease_s": lease_s, "labels": dict(labels) if labels else None, "memcheck": memcheck or None,
                      "fault_domain": fault_domain, "fault_domain_required": None if fault_domain_required else False}
    return {key: value for key, value in spec.items() if value is not None}


def session_again(info: Mapping[str, Any]) -> Tuple[Optional[str], Document]:
    """The name and the specification of a session like the one described: under its own id where clients can choose such."""
    wanted = {key: info.get(key) for key in ("device", "pool_bytes_max", "idle_timeout_s", "max_lifetime_s", "lease_s")}
    bound = "memory_limit" if info.get("memory_fraction") is None else "memory_fraction"
    wanted.update({bound: info.get(bound), "labels": info.get("labels") or None, "memcheck": info.get("memcheck") or None})
    if info.get("fault_domain"):
        wanted["fault_domain"] = info["fault_domain"]["name"]
    name = info["id"].rpartition(".")[2]  # without its node: another one may have to make it
    return (name if CLIENT_ID.fullmatch(name) else None), {key: value for key, value in wanted.items() if value is not None}


def session_heartbeat(sid: str) -> Call[None]:
    return Call(Request("POST", session_path(sid) + "/heartbeat"), _none)


def timeout_of(timeout_ms: Optional[int]) -> Optional[int]:
    """An execution deadline that was given for all that has none of its own."""
    if timeout_ms is not None and (isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int) or not 1 <= timeout_ms <= EXECUTION_TIMEOUT_MS_MAX):
        raise ArgumentError(f"timeout_ms is a whole number of milliseconds from 1 to {EXECUTION_TIMEOUT_MS_MAX}, not {timeout_ms!r}")
    return timeout_ms


def session_update(id: str, spec: Document) -> Call[Document]:
    return Call(json_request("PATCH", session_path(id), spec), _object)


def session_open(name: Optional[str], spec: Mapping[str, Any]) -> Call[Tuple[Document, bool]]:
    """(its description, whether it is new). A named one is joined when it exists with the same specification."""
    if name is None:
        request = json_request("POST", "/v1/sessions", dict(spec))
    else:
        request = json_request("PUT", session_path(name), dict(spec) or None)
    return Call(request, lambda response: (_object(response), response.status == 201))


def session_save(sid: str, wait_s: Optional[int], have: Sequence[str] = ()) -> Request:
    """Of a snapshot, without bytes of these digests; its answer comes in pieces. With digests the service reads all before it answers."""
    headers = {} if wait_s is None else {"Prefer": f"wait={int(wait_s)}"}
    path = session_path(sid) + "/snapshot" + (f"?have={','.join(have)}" if have else "")
    return Request("GET", path, headers, answer_s=RESTORE_S if have else float(SNAPSHOT_WAIT_S if wait_s is None else wait_s))


def session_load(data: Sequence[BytesLike], name: Optional[str], device: Optional[str]) -> Call[Tuple[Document, bool]]:
    """(its description, whether it is new)"""
    query = f"?{urlencode({'device': device})}" if device else ""
    request = Request("POST" if name is None else "PUT", ("/v1/sessions" if name is None else session_path(name)) + query, {"Content-Type": SNAPSHOT_TYPE}, data,
                      answer_s=RESTORE_S)
    return Call(request, lambda response: (_object(response), response.status == 201))


def session_reset(sid: str) -> Call[Document]:
    return post(session_path(sid) + "/reset")


def session_sync(sid: str, stream: Optional[str], timeout_ms: Optional[int] = None) -> Call[Document]:
    request = json_request("POST", session_path(sid) + "/sync", {"stream": stream} if stream else {})
    request.answer_s = (timeout_ms or EXECUTION_TIMEOUT_MS) / 1000
    return Call(request, _object)


# ---- buffers ----

def buffer_path(sid: str, bid: str) -> str:
    return f"{session_path(sid)}/buffers/{enc(bid)}"


def buffers_of(request: Request) -> List[str]:
    """The buffers that the service works on while it is at the request: it deletes none of them before."""
    named = BUFFER.search(request.path)
    if named is None:
        return []
    spec = json.loads(b"".join(request.pieces)) if request.headers.get("Content-Type") == JSON_TYPE else {}
    others = (spec.get("from"), spec.get("with"))  # of a copy, of a comparison
    return [unquote(named.group(1)), *(one for one in others if one is not None)]


def texture_path(sid: str, tid: str) -> str:
    return f"{session_path(sid)}/textures/{enc(tid)}"


def texture_create(sid: str, tid: str, spec: Mapping[str, Any]) -> Call[Document]:
    return Call(json_request("PUT", texture_path(sid, tid), spec), _object)


def buffer_create(sid: str, bid: str, size: int, shareable: bool = False) -> Call[Document]:
    spec: Document = {"size": size}
    if shareable:
        spec["shareable"] = True
    return Call(json_request("PUT", buffer_path(sid, bid), spec), _object)


def buffer_create_filled(sid: str, bid: str, data: BytesLike) -> Request:
    return Request("PUT", buffer_path(sid, bid), {"Content-Type": OCTETS}, (data,))


def data_put(sid: str, bid: str, offset: int, data: BytesLike, whole: bool) -> Request:
    headers = {"Content-Type": OCTETS}
    size = memoryview(data).nbytes
    if not whole:
        headers["Content-Range"] = f"bytes {offset}-{offset + size - 1}/*"
    return Request("PUT", buffer_path(sid, bid) + "/data", headers, (data,))


def data_get(sid: str, bid: str, offset: int, size: int, etag: Optional[str] = None) -> Request:
    headers = {"Range": f"bytes={offset}-{offset + size - 1}"}
    if etag:
        headers["If-Match"] = etag
    return Request("GET", buffer_path(sid, bid) + "/data", headers)


def data_head(sid: str, bid: str) -> Call[Optional[str]]:
    """The buffer's present entity tag."""
    return Call(Request("HEAD", buffer_path(sid, bid) + "/data"), lambda response: response.headers.get("etag"))


def buffer_fill(sid: str, bid: str, pattern: Mapping[str, Any], offset: int, size: Optional[int], stream: Optional[str]) -> Call[None]:
    body: Document = {"pattern": dict(pattern), "offset": offset}
    if size is not None:
        body["size"] = size
    if stream:
        body["stream"] = stream
    return Call(json_request("POST", buffer_path(sid, bid) + "/fill", body), _none)


def buffer_copy(sid: str, to: str, offset: int, source: str, from_offset: int, size: Optional[int], stream: Optional[str]) -> Call[None]:
    body: Document = {"from": source, "from_offset": from_offset, "offset": offset}
    if size is not None:
        body["size"] = size
    if stream:
        body["stream"] = stream
    return Call(json_request("POST", buffer_path(sid, to) + "/copy", body), _none)


def buffer_compare(sid: str, bid: str, offset: int, other: str, with_offset: int, size: Optional[int]) -> Call[Document]:
    body: Document = {"with": other, "with_offset": with_offset, "offset": offset}
    if size is not None:
        body["size"] = size
    return Call(json_request("POST", buffer_path(sid, bid) + "/compare", body), _object)


def share_open(sid: str, bid: str, kind: Optional[str] = None) -> Call[Tuple[Document, List[int]]]:
    """The answer, and the descriptors that came with it; they are the caller's."""
    request = json_request("POST", buffer_path(sid, bid) + "/share", None if kind is None else {"as": kind}, takes_descriptor=True)
    return Call(request, lambda response: (_object(response), response.descriptors))


def share_move(sid: str, bid: str, direction: str, offset: int, size: int) -> Call[None]:
    request = json_request("PUT", buffer_path(sid, bid) + "/share", {"direction": direction, "offset": offset, "size": size})
    request.answer_s = EXECUTION_TIMEOUT_MS / 1000  # it waits for kernels before it
    return Call(request, _none)


def share_close(sid: str, bid: str) -> Call[None]:
    return delete(buffer_path(sid, bid) + "/share")


# ---- modules ----

def module_path(sid: str, mid: str) -> str:
    return f"{session_path(sid)}/modules/{enc(mid)}"


def module_spec(source: str, options: Sequence[str], headers: Mapping[str, str], names: Sequence[str]) -> Document:
    if not isinstance(source, str):
        raise ArgumentError("the source is a str; images are loaded by load()")
    spec: Document = {"source": source}
    if options:
        spec["options"] = list(options)
    if headers:
        spec["headers"] = dict(headers)
    if names:
        spec["name_expressions"] = list(names)
    return spec


def shader_options(defines: Mapping[str, Any], specialization: Mapping[int, Any]) -> List[str]:
    """As the service takes them; of truth values it knows the words of GLSL."""
    def written(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return [f"-D{name}={written(value)}" for name, value in defines.items()] + \
        [f"--specialize={int(number)}={written(value)}" for number, value in specialization.items()]


def shader_spec(language: str, source: str, options: Sequence[str], headers: Mapping[str, str]) -> Document:
    """A module of a shader; of SPIR-V the source is base64."""
    return {**module_spec(source, options, headers, ()), "language": language}


def spirv_spec(data: bytes, specialization: Mapping[int, Any]) -> Document:
    return shader_spec("spirv", base64.b64encode(data).decode(), shader_options({}, specialization), {})


def module_create(sid: str, spec: Document) -> Call[Document]:
    request = json_request("POST", session_path(sid) + "/modules", spec, source=spec["source"], options=spec.get("options", ()))
    return Call(request, _object)


def module_load(sid: str, image: BytesLike, media_type: str) -> Call[Document]:
    return Call(Request("POST", session_path(sid) + "/modules", {"Content-Type": media_type}, (image,)), _object)


def module_code(sid: str, mid: str, form: str) -> Call[bytes]:
    return Call(Request("GET", module_path(sid, mid) + f"/code?format={enc(form)}"), lambda response: bytes(response.body))


# ---- launches ----

def launch_path(sid: str, lid: str) -> str:
    return f"{session_path(sid)}/launches/{enc(lid)}"


def launch(sid: str, spec: Union[Document, str], wait_s: Optional[int], brief: bool = False) -> Call[Union[Document, bytes]]:
    """`spec` as a document or as its text. `wait_s` 0: answered at once; None: the service's default. `brief`: see launching()."""
    like = launching(sid, wait_s, brief, "")
    return Call(with_body(like, spec.encode() if type(spec) is str else dumps(spec)), launch_told)


@lru_cache(maxsize=64)
def launching(sid: str, wait_s: Optional[int], brief: bool, generation: str) -> Request:
    """How all launches in a session begin. `generation`: of it, in which they are done or not at all; "": whatever it is. `brief`: the answer is of interest only where it tells more than that the kernel has ended."""
    headers = {"Content-Type": JSON_TYPE, **({GENERATION: generation} if generation else {})}
    if wait_s is not None:
        headers["Prefer"] = "respond-async" if wait_s == 0 else f"wait={wait_s}"
    elif brief:
        headers["Prefer"] = "return=minimal"
    return Request("POST", session_path(sid) + "/launches", headers, answer_s=WAIT_S if wait_s is None else wait_s)


def launch_told(response: Response) -> Union[Document, bytes]:
    """The description of a launch; or the text of it, where it says that the launch is queued, or has succeeded and printed nothing: few ask for more.
    Nothing else is in doubt there, since within JSON's strings a quote has a backslash before it, and there is one object."""
    body = response.body
    if response.status == 204:
        return UNTOLD
    if isinstance(body, bytes) and body.count(b"{") == 1 and (SUCCEEDED in body and b'"stdout":""' in body or b'"state":"queued"' in body):
        return body
    return _object(response)


def launch_get(sid: str, lid: str, wait_s: int) -> Call[Document]:
    """With `wait_s`, held until the launch is finished or so long."""
    request = Request("GET", launch_path(sid, lid), {"Prefer": f"wait={wait_s}"} if wait_s else {})
    request.answer_s = float(wait_s)
    return Call(request, _object)


def launch_cancel(sid: str, lid: str, force: bool) -> Call[Tuple[int, Document]]:
    """The status (200: it has ended; 202: it ran, and the session has been reset) and the launch as it was."""
    return Call(Request("DELETE", launch_path(sid, lid) + ("?force=1" if force else "")), lambda response: (response.status, _object(response)))


# ---- batches ----

def written(value: Any) -> str:
    """A part of a document as text."""
    return dumps(value).decode()


class Encoded:
    """A batch that is text already. `operations`: so many as `length`; `options`: the other members. `module`: what is compiled for it."""

    def __init__(self, operations: str, length: int, options: str, timeout_ms: int, module: Optional[Mapping[str, Any]] = None) -> None:
        self.operations = operations
        self.length = length
        self.options = options
        self.timeout_ms = timeout_ms
        self.module = module

    def followed_by(self, ops: Sequence[Mapping[str, Any]]) -> Encoded:
        more = written(ops)[1:-1]
        return Encoded(f"{self.operations},{more}" if self.operations else more, self.length + len(ops), self.options, self.timeout_ms, self.module)

    def text(self, segments: Mapping[str, BytesLike]) -> bytes:
        module = f',"module":{written(self.module)}' if self.module is not None else ""
        return f'{{"ops":[{self.operations}],{self.options}{module},"segments":{written(declared(segments)) if segments else "[]"}}}'.encode()


class Repeated(Encoded):
    """One without segments that goes to a session again and again with other names in it: `body` is what this one has, `read()`
    makes of an answer what is known of those before, at whose times nobody looks. For one thread at a time."""

    def __init__(self, sid: str, length: int, options: str, timeout_ms: int) -> None:
        super().__init__("", length, options, timeout_ms)
        self._sid = sid
        self._like: Optional[Request] = None
        self._generation = ""
        self.read = Untimed().read
        self.body = b""
        self.texts: Any = None  # what it was filled with, for those who fill it
        self._end = f'],{options},"segments":[]}}'

    def like(self, generation: str) -> Request:
        """How its requests begin, for that generation of the session."""
        if self._like is None or generation != self._generation:
            self._like, self._generation = _repeating(self._sid, self.timeout_ms, generation), generation
        return self._like

    def fill(self, operations: str, texts: Any) -> None:
        """With these operations, which are made of `texts`, until it is filled again."""
        self.texts = None  # who is interrupted here leaves nothing that looks whole
        self.operations = operations
        self.body = framed(f'{{"ops":[{operations}{self._end}'.encode())
        self.texts = texts


@lru_cache(maxsize=64)
def _repeating(sid: str, timeout_ms: int, generation: str) -> Request:
    """How all of them in a generation of a session begin."""
    headers = {"Content-Type": BATCH_TYPE, "Prefer": "return=minimal", GENERATION: generation}
    return Request("POST", session_path(sid) + "/batches", headers, answer_s=timeout_ms / 1000, resumable=True)


def batch(path: str, document: Union[Mapping[str, Any], Encoded], segments: Mapping[str, BytesLike]) -> Call[BatchAnswer]:
    """The answer: its document, and what was read, by segment."""
    module: Any
    timeout_ms: Any
    if isinstance(document, Encoded):
        pieces = pack_text(document.text(segments), segments)
        module, timeout_ms = document.module, document.timeout_ms
    else:
        pieces = pack(document, segments)
        module, timeout_ms = document.get("module"), document.get("timeout_ms")
    request = Request("POST", path, {"Content-Type": BATCH_TYPE}, pieces, (timeout_ms or EXECUTION_TIMEOUT_MS) / 1000, resumable=isinstance(document, Encoded))
    if module is not None and isinstance(module, Mapping):
        request.source, request.options = module.get("source"), module.get("options", ())
    return Call(request, _batch_answer)


def _batch_answer(response: Response) -> BatchAnswer:
    return unpack(response.body)


def later_batch_answer(response: Response) -> BatchAnswer:
    """Of a resumable request, whichever it was."""
    return ({}, {}) if response.status == 204 else unpack(response.body)


def session_batch(sid: str, document: Union[Mapping[str, Any], Encoded], segments: Mapping[str, BytesLike]) -> Call[BatchAnswer]:
    return batch(session_path(sid) + "/batches", document, segments)


def length_of(document: Union[Mapping[str, Any], Encoded]) -> int:
    """A batch's number of operations."""
    return document.length if isinstance(document, Encoded) else len(document.get("ops", ()))


def freeing(names: Sequence[str]) -> List[Document]:
    """The operations that free buffers."""
    return [{"op": "free", "buf": name} for name in names]


def with_frees(document: Union[Mapping[str, Any], Encoded], names: Sequence[str]) -> Union[Mapping[str, Any], Encoded]:
    """The batch with operations behind its own."""
    if not names:
        return document
    if isinstance(document, Encoded):
        return document.followed_by(freeing(names))
    return {**document, "ops": [*document.get("ops", ()), *freeing(names)]}


def in_background(call: Call[BatchAnswer]) -> Call[Document]:
    """The same without waiting: answered by what is known of the job. With a key of its own, so that it is there once, however often the
    connection breaks."""
    headers = {**call.request.headers, "Prefer": "respond-async", "Idempotency-Key": f'"{secrets.token_hex(16)}"'}
    return Call(dataclasses.replace(call.request, headers=headers, answer_s=0.0), _object)


def session_job(sid: str, xid: str) -> str:
    """The path of a batch in the background."""
    return f"{session_path(sid)}/batches/{enc(xid)}"


def run_job(xid: str) -> str:
    return f"/v1/run/{enc(xid)}"


def job_get(path: str, wait_s: int) -> Call[Document]:
    """With `wait_s`, held until it has ended or so long."""
    request = Request("GET", path, {"Prefer": f"wait={wait_s}"} if wait_s else {})
    request.answer_s = float(wait_s)
    return Call(request, _object)


def job_result(path: str) -> Call[BatchAnswer]:
    return Call(Request("GET", f"{path}/result"), lambda response: unpack(response.body))


def job_end(path: str, force: bool) -> Call[Tuple[int, Optional[Document]]]:
    """The status (200: cancelled; 202: being stopped; 204: it had ended, and its result is dropped) and, but for the last, the job."""
    request = Request("DELETE", path + ("?force=1" if force else ""))
    return Call(request, lambda response: (response.status, None if response.status == 204 else _object(response)))


# ---- programs ----

def program_path(sid: str, name: str) -> str:
    return f"{session_path(sid)}/programs/{enc(name)}"


def program_put(sid: str, name: str, document: Mapping[str, Any]) -> Call[Document]:
    request = json_request("PUT", program_path(sid, name), document)
    request.answer_s = EXECUTION_TIMEOUT_MS / 1000  # built-in kernels are compiled, graphs are made
    return Call(request, _object)


def program_delete(sid: str, name: str) -> Call[None]:
    call = delete(program_path(sid, name))
    call.request.answer_s = EXECUTION_TIMEOUT_MS / 1000  # it waits for a run
    return call


def program_run(sid: str, name: str, document: Mapping[str, Any], segments: Mapping[str, BytesLike], answer_s: float) -> Call[BatchAnswer]:
    pieces = pack(document, segments)
    request = Request("POST", f"{session_path(sid)}/programs/{enc(name)}/runs", {"Content-Type": BATCH_TYPE}, pieces, answer_s)
    return Call(request, lambda response: unpack(response.body))


# ---- lists and events ----

def page(path: str, cursor: Optional[str], limit: int = 1000) -> Call[Document]:
    return get(f"{path}?limit={limit}" + (f"&cursor={quote(cursor, safe='')}" if cursor else ""))


def events(sid: str, types: Sequence[str], timeout_s: int, last_id: Optional[str]) -> Request:
    query: List[str] = [f"timeout_seconds={timeout_s}"]
    if types:
        query.append("types=" + quote(",".join(types), safe=",."))
    headers = {"Accept": "text/event-stream"}
    if last_id is not None:
        headers["Last-Event-ID"] = last_id
    return Request("GET", f"{session_path(sid)}/events?" + "&".join(query), headers)


IMAGE_TYPES: Dict[str, str] = {"ptx": "application/vnd.gpurest.ptx", "cubin": "application/vnd.gpurest.cubin",
                               "fatbin": "application/vnd.gpurest.fatbin"}


def image_type(image: Union[bytes, bytearray, memoryview]) -> str:
    """By its first bytes: an ELF file is a cubin, the fat binary's magic number is its own; else PTX text."""
    start = bytes(memoryview(image)[:4])
    if start == b"\x7fELF":
        return IMAGE_TYPES["cubin"]
    return IMAGE_TYPES["fatbin"] if start == b"\x50\xed\x55\xba" else IMAGE_TYPES["ptx"]
