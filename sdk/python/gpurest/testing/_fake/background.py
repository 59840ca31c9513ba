"""The FakeServer's programs and batches in the background."""
from __future__ import annotations

import json
from typing import Any, Callable, Dict, Tuple
from urllib.parse import urlsplit

from ..._transport.frame import BATCH_TYPE, BytesLike, pack, unpack
from .compute import Model, ProgramComputer
from .local_http import LocalAnswer, LocalRequest, json_answer
from .state import FakeJob, FakeProgram, FakeSession, Refused

Work = Callable[[], Tuple[Dict[str, Any], Dict[str, BytesLike]]]
PROGRAMS_MAX = 16


class FakeBackground:
    """A part of FakeServer: its methods are those of the routes."""

    _models: Dict[str, Model]

    # ---- batches in the background ----

    def _answered(self, request: LocalRequest, session: FakeSession, work: Work) -> LocalAnswer:
        """Does it now; with Prefer: respond-async its outcome is kept as a job, which is one however often it is asked for with its key."""
        if request.headers.get("prefer") != "respond-async":
            return LocalAnswer(200, {"Content-Type": BATCH_TYPE}, _framed(work))
        key = request.headers.get("idempotency-key", "")
        if key not in session.keys:
            answer = self._new_job(request, session, work)
            if not key:
                return answer
            session.keys[key] = answer
        return session.keys[key]

    def _new_job(self, request: LocalRequest, session: FakeSession, work: Work) -> LocalAnswer:
        place = urlsplit(request.target).path
        path = "/v1/run" if place == "/v1/run" else f"/v1/sessions/{session.id}/batches"
        try:
            job = FakeJob(path, _framed(work), None)
        except Refused as refused:
            if refused.code == "quota_exceeded" and not refused.more.get("completed_ops"):  # its memory is taken at once
                raise
            job = FakeJob(path, b"", refused)
        session.jobs[job.id] = job
        answer = json_answer(job.info(), 202)
        return answer._replace(headers={**answer.headers, "Location": job.path, "Preference-Applied": "respond-async"})

    def _job(self, session: FakeSession, xid: str) -> FakeJob:
        if xid not in session.jobs:
            raise Refused(404, "batch_not_found", "no batch of this id, or its result is kept no longer")
        return session.jobs[xid]

    def _job_get(self, _: LocalRequest, session: FakeSession, xid: str) -> LocalAnswer:
        return json_answer(self._job(session, xid).info())

    def _job_result(self, _: LocalRequest, session: FakeSession, xid: str) -> LocalAnswer:
        job = self._job(session, xid)
        if job.problem is not None:
            raise job.problem
        return LocalAnswer(200, {"Content-Type": BATCH_TYPE}, job.body)

    def _job_delete(self, _: LocalRequest, session: FakeSession, xid: str) -> LocalAnswer:
        del session.jobs[self._job(session, xid).id]
        return LocalAnswer(204, {}, b"")

    # ---- programs ----

    def _program(self, session: FakeSession, pid: str) -> FakeProgram:
        if pid not in session.programs:
            raise Refused(404, "program_not_found", "no program of this name in the session")
        return session.programs[pid]

    def _program_list(self, _: LocalRequest, session: FakeSession) -> LocalAnswer:
        return json_answer({"items": [one.info() for one in session.programs.values()], "next_cursor": None})

    def _program_put(self, request: LocalRequest, session: FakeSession, pid: str) -> LocalAnswer:
        spec = json.loads(request.body)
        known = session.programs.get(pid)
        if known is not None and known.spec != spec:
            raise Refused(409, "spec_conflict", "there is another program of this name")
        if known is not None:
            return json_answer(known.info())
        if len(session.programs) >= PROGRAMS_MAX:
            raise Refused(403, "quota_exceeded", f"at most {PROGRAMS_MAX} programs in a session")
        _check_names(session, spec["ops"], spec.get("module"))
        made = FakeProgram(pid, spec)
        session.claim(made.memory_bytes)
        session.programs[pid] = made
        return json_answer(made.info(), 201)

    def _program_get(self, _: LocalRequest, session: FakeSession, pid: str) -> LocalAnswer:
        return json_answer(self._program(session, pid).info())

    def _program_delete(self, _: LocalRequest, session: FakeSession, pid: str) -> LocalAnswer:
        del session.programs[self._program(session, pid).name]
        return LocalAnswer(204, {}, b"")

    def _program_run(self, request: LocalRequest, session: FakeSession, pid: str) -> LocalAnswer:
        program = self._program(session, pid)
        document, segments = unpack(request.body)
        return self._answered(request, session, lambda: ProgramComputer(session, self._models, program).run(document, segments))


def _framed(work: Work) -> bytes:
    return b"".join(pack(*work()))


def _check_names(session: FakeSession, ops: Any, module: Any) -> None:
    """What a program names must be there when it is put."""
    for index, op in enumerate(ops):
        try:
            if op["op"] == "launch" and "builtin" not in op and op["kernel"] not in session.module(op.get("module", module)).kernels:
                raise Refused(404, "kernel_not_found", f"the module has no kernel {op['kernel']!r}")
            if op["op"] == "free" and not op["buf"].startswith("$"):
                raise Refused(400, "invalid_field", "a program frees no buffer of the session: it could not run again")
            for name in (op.get("to"), op.get("from"), *(one.get("buf") for one in op.get("args") or () if isinstance(one, dict))):
                if name and not name.startswith("$") and op["op"] not in ("record", "wait", "elapsed"):
                    session.buffer(name)
        except Refused as refused:
            refused.more.update(op_index=index)
            raise
