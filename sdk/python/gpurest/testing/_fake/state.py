"""What a FakeServer remembers: sessions with their buffers and modules, all in the memory of this process."""
from __future__ import annotations

import re
import secrets
import string
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..._values.scalars import SIZES
from ..._values.signature import Declared, plain, signature
from .local_http import LocalAnswer

_LETTERS = string.ascii_letters + string.digits
_KERNEL = re.compile(r"__global__\b[^;{]*?([A-Za-z_]\w*)\s*\(")
MEMORY_BYTES = 1 << 30  # of the device
INSTANCE = "fake"
BLOCK = 256  # threads where the request leaves the block out


class Refused(Exception):
    """Becomes the problem that the client is answered with."""

    def __init__(self, status: int, code: str, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.more = status, code, detail, more

    def problem(self, path: str) -> Dict[str, Any]:
        """The refusal as the service's problem document."""
        return {"type": f"/problems/{self.code}", "title": self.code, "status": self.status, "detail": self.detail, "instance": path, "code": self.code,
                "request_id": "fake", "retryable": self.status in (429, 503), "retry_after_ms": None, "errors": [], "cuda": None, "compile": None,
                "limit": None, **self.more}


def new_id(letter: str) -> str:
    return f"{letter}_" + "".join(secrets.choice(_LETTERS) for _ in range(22))


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class FakeModule:
    """The kernels that a source declares. Nothing is compiled: what is not understood is taken as it is."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.id = new_id("m")
        self.spec = dict(spec)
        source = str(spec.get("source") or "")
        names = [*_plain_kernels(plain(source)), *spec.get("name_expressions", ())]
        self.kernels: Dict[str, Optional[List[Declared]]] = {name: signature(source, name) for name in names}

    def info(self, cached: bool = False) -> Dict[str, Any]:
        rows = [{"name": name, "mangled": name, "params": _layout(declared), "registers": 0, "shared_bytes": 0, "local_bytes": 0, "const_bytes": 0,
                 "max_threads": 1024} for name, declared in self.kernels.items()]
        return {"id": self.id, "kernels": rows, "globals": [], "arch": "compute_75", "cached": cached, "compile_ms": 0.0, "created_at": now(), "log": ""}


def _plain_kernels(text: str) -> List[str]:
    """The names of those that are no templates."""
    def declared(match: "re.Match[str]") -> str:
        return text[max(text.rfind(end, 0, match.start()) for end in ";}{") + 1:match.start()]

    return list(dict.fromkeys(match.group(1) for match in _KERNEL.finditer(text) if "template" not in declared(match)))


def _layout(declared: Optional[List[Declared]]) -> List[Dict[str, Any]]:
    """Offsets as C lays the parameters out. A parameter of a type that is not understood counts as 8 bytes."""
    rows, at = [], 0
    for one in declared or ():
        size = 8 if one.pointer or one.kind is None else SIZES[one.kind]
        at += -at % size
        rows.append({"offset": at, "size": size, "type": "u64" if one.pointer or one.kind is None else one.kind.replace("i", "u")})
        at += size
    return rows


class FakeProgram:
    """A prepared batch, with the buffers that it makes."""

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        self.name, self.spec = name, dict(spec)
        sizes = {one["id"]: int(one["size"]) for one in spec.get("segments") or ()}
        self.buffers: Dict[str, bytearray] = {op["as"]: bytearray(sizes[op["segment"]] if "segment" in op else int(op["size"]))
                                              for op in spec["ops"] if op["op"] == "alloc"}
        self.created_at = now()
        self.runs = 0

    @property
    def memory_bytes(self) -> int:
        return sum(map(len, self.buffers.values()))

    def info(self) -> Dict[str, Any]:
        launches = sum(op["op"] == "launch" for op in self.spec["ops"])
        return {"name": self.name, "ops": len(self.spec["ops"]), "segments": len(self.spec.get("segments") or ()), "launches": launches,
                "prepared_launches": 0, "graphs": 0, "memory_bytes": self.memory_bytes, "runs": self.runs, "created_at": self.created_at}


class FakeJob:
    """A batch in the background: it is done when it is asked for, so that nobody ever finds it at work."""

    def __init__(self, path: str, body: bytes, problem: Optional[Refused]) -> None:
        self.id = new_id("x")
        self.path = f"{path}/{self.id}"
        self.body, self.problem = body, problem
        self.at = now()

    def info(self) -> Dict[str, Any]:
        found = {"id": self.id, "state": "failed" if self.problem else "succeeded", "created_at": self.at, "started_at": self.at, "finished_at": self.at,
                 "expires_at": self.at}
        return {**found, "problem": self.problem.problem(self.path)} if self.problem else {**found, "result": self.path + "/result"}


class FakeSession:
    def __init__(self, id: str, device: str, spec: Mapping[str, Any], all_sessions: Optional[Mapping[str, "FakeSession"]] = None,
                 generation: int = 1) -> None:
        self.id, self.device, self.spec, self._all = id, device, dict(spec), {} if all_sessions is None else all_sessions
        self.settings = dict(spec)  # as they are now; `spec` is what it was made with
        self.peak_bytes = 0
        self.generation = generation
        self.epoch = 0  # of writing, for entity tags
        self.fault: Optional[Dict[str, Any]] = None
        self.created_at = f"{now()[:-1]}.{time.time_ns() // 1000 % 1_000_000:06}Z"  # tells it from an earlier one of its name
        self.launched = 0
        self.buffers: Dict[str, bytearray] = {}
        self.modules: Dict[str, FakeModule] = {}
        self.launches: Dict[str, Dict[str, Any]] = {}
        self.programs: Dict[str, FakeProgram] = {}
        self.jobs: Dict[str, FakeJob] = {}
        self.keys: Dict[str, LocalAnswer] = {}  # answers by the keys of what may be sent again

    def info(self) -> Dict[str, Any]:
        found = {"id": self.id, "device": self.device, "state": "faulted" if self.fault else "ready", "generation": self.generation,
                 "created_at": self.created_at, "expires_at": now(), "idle_timeout_s": self.settings.get("idle_timeout_s") or 600, "max_lifetime_s": self.spec.get("max_lifetime_s") or 86400,
                 "lease_s": self.settings.get("lease_s") or None, "instance": INSTANCE,
                 "memory_limit": self.memory_limit, "memory_fraction": self.memory_fraction, "pool_bytes_max": self.settings.get("pool_bytes_max"),
                 "memcheck": False, "fault_domain": self.fault_domain, "labels": self.settings.get("labels") or {},
                 "usage": {"device_time_us": 0, "memory_bytes": self.memory_bytes, "buffers": len(self.buffers), "modules": len(self.modules),
                           "launches": self.launched}}
        return {**found, "fault": self.fault} if self.fault else found

    def _domain(self) -> List["FakeSession"]:
        name = self.spec.get("fault_domain")
        return [one for one in self._all.values() if name is not None and one.spec.get("fault_domain") == name]

    @property
    def fault_domain(self) -> Optional[Dict[str, Any]]:
        members = self._domain()
        return {"name": self.spec["fault_domain"], "shared_server": False, "sessions": len(members)} if members else None

    def lose(self, refused: Refused) -> None:
        """By a fault, which is one of all sessions of its domain."""
        self.fault = refused.problem("")
        told = f"session {self.id!r} of the fault domain {self.spec.get('fault_domain')!r} failed ({refused.code}: {refused.detail})"
        for one in self._domain():
            one.fault = one.fault or Refused(503, "fault_domain_lost", told).problem("")

    def patch(self, changes: Mapping[str, Any]) -> None:
        """A limit in bytes and one that is a part of the device's memory replace each other."""
        if "memory_limit" in changes or "memory_fraction" in changes:
            self.settings = {**self.settings, "memory_limit": None, "memory_fraction": None}
        self.settings.update(changes)

    @property
    def memory_fraction(self) -> Optional[float]:
        part = self.settings.get("memory_fraction")
        return float(part[:-1]) / 100 if isinstance(part, str) else part

    @property
    def memory_limit(self) -> Optional[int]:
        part = self.memory_fraction
        return self.settings.get("memory_limit") if part is None else max(1, int(part * MEMORY_BYTES))

    @property
    def memory_bytes(self) -> int:
        return sum(map(len, self.buffers.values())) + sum(one.memory_bytes for one in self.programs.values())

    def check(self) -> None:
        if self.fault is not None:
            raise Refused(409, "session_faulted", "the session has faulted: reset it")

    def reset(self) -> None:
        self.fault = None
        self.generation += 1
        self.peak_bytes = 0
        self.buffers.clear()
        self.modules.clear()
        self.programs.clear()

    def claim(self, size: int) -> None:
        """Refused when the session has no room for so many bytes more."""
        limit = self.memory_limit
        if limit is not None and self.memory_bytes + size > limit:
            raise Refused(403, "quota_exceeded", f"the session's memory_limit is {limit} bytes",
                          limit={"name": "session_memory_bytes", "max": limit, "used": self.memory_bytes, "requested": size})
        self.peak_bytes = max(self.peak_bytes, self.memory_bytes + size)

    def new_buffer(self, id: str, size: int) -> bytearray:
        if not isinstance(size, int) or size < 1:
            raise Refused(400, "invalid_field", "size is at least 1")
        self.claim(size)
        self.buffers[id] = bytearray(size)
        return self.buffers[id]

    def buffer(self, id: Any) -> bytearray:
        if id not in self.buffers:
            raise Refused(404, "buffer_not_found", "no buffer of this id in the session")
        return self.buffers[str(id)]

    def module(self, id: Any) -> FakeModule:
        if id not in self.modules:
            raise Refused(404, "module_not_found", "no module of this id in the session")
        return self.modules[str(id)]

    def compile(self, spec: Mapping[str, Any]) -> Tuple[FakeModule, bool]:
        """(the module, whether it is new): equal input is one module."""
        for known in self.modules.values():
            if known.spec == dict(spec):
                return known, False
        made = FakeModule(spec)
        self.modules[made.id] = made
        return made, True
