"""The exceptions of the package, and how a problem document of the service becomes one.

Every exception that the package raises on purpose is a `GpurestError`. Attributes that a failure does not have are None.
"""
from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence

__all__ = [
    "GpurestError", "ConnectionError_", "TimeoutError_", "ProtocolError", "AuthError", "NotFoundError", "ValidationError", "ConflictError",
    "ServerError", "ArgumentError", "StridesError", "ForkError", "ClosedError", "AbortedError", "ResourceExhausted", "OutOfMemoryError",
    "BusyError", "CompileError", "CudaError", "IllegalAddressError", "LaunchFailedError", "AssertFailedError", "KernelTimeoutError",
    "SessionLostError",
]


class GpurestError(Exception):
    """The root. `status` is the HTTP status, `code` the word of the service's error table, `hint` what to try next."""

    def __init__(self, message: str, *, status: Optional[int] = None, code: Optional[str] = None, request_id: Optional[str] = None,
                 retryable: bool = False, hint: Optional[str] = None, problem: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retryable = retryable
        self.hint = hint
        self.problem: Dict[str, Any] = dict(problem or {})

    def __str__(self) -> str:
        text = self.message
        if self.hint:
            text += f" ({self.hint})"
        if self.request_id:
            text += f" [request {self.request_id}]"
        return text

    @property
    def op_index(self) -> Optional[int]:
        """Of a failed batch: the index of the operation that failed."""
        value = self.problem.get("op_index")
        return value if isinstance(value, int) else None

    @property
    def completed_ops(self) -> Optional[int]:
        """Of a failed batch: how many operations are known to have completed."""
        value = self.problem.get("completed_ops")
        return value if isinstance(value, int) else None


class ConnectionError_(GpurestError, ConnectionError):
    """The service cannot be reached, or the connection broke before the answer was complete."""


class TimeoutError_(GpurestError, TimeoutError):
    """Something took too long. `phase` is "connect", "idle", "queue" or "kernel"."""

    def __init__(self, message: str, *, phase: str, **more: Any) -> None:
        super().__init__(message, **more)
        self.phase = phase


class ProtocolError(GpurestError):
    """The answer is not what the service's contract promises: another server, or a cut in between."""


class AuthError(GpurestError):
    """No token, a wrong one, or one without the needed scope."""


class NotFoundError(GpurestError, LookupError):
    """No such session, buffer, module, kernel, launch or device."""


class ValidationError(GpurestError, ValueError):
    """The service refused the request's form. `field` is the JSON pointer of the wrong member."""

    def __init__(self, message: str, *, field: Optional[str] = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.field = field


class ConflictError(GpurestError):
    """The object is in a state, or has a specification, that does not allow this."""


class ServerError(GpurestError):
    """The service or its device failed."""


class ArgumentError(GpurestError, TypeError):
    """A kernel argument, or a Python argument of this package, does not fit."""


class StridesError(ArgumentError):
    """The memory is not contiguous in C order."""


class ForkError(GpurestError):
    """The object was made before fork(): a child process makes its own client."""


class ClosedError(GpurestError, ValueError):
    """Used after close() or free()."""


class AbortedError(GpurestError):
    """An operation of a batch that was not done because an earlier one failed: `cause` is that failure."""

    def __init__(self, message: str, *, cause: Optional[BaseException] = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.cause = cause
        self.__cause__ = cause


class ResourceExhausted(GpurestError):
    """A quota, a limit or the server's capacity is used up. `limit` is {"name", "max", "used", "requested"} where known."""

    @property
    def limit(self) -> Dict[str, Any]:
        """What is used up: its `name`, `max`, `used` and `requested`, as far as the service tells."""
        value = self.problem.get("limit")
        return dict(value) if isinstance(value, Mapping) else {}


class OutOfMemoryError(ResourceExhausted, MemoryError):
    """Device memory is exhausted."""

    @property
    def requested(self) -> Optional[int]:
        """Bytes that were asked for; None where it is not told."""
        return self.limit.get("requested")

    @property
    def used(self) -> Optional[int]:
        """Bytes in use before; None where it is not told."""
        return self.limit.get("used")

    @property
    def maximum(self) -> Optional[int]:
        """Bytes that may be used in all; None where it is not told."""
        return self.limit.get("max")


class BusyError(ResourceExhausted):
    """Try again later: `retry_after` is in seconds, None when the service did not say."""

    def __init__(self, message: str, *, retry_after: Optional[float] = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.retry_after = retry_after


class CompileError(GpurestError):
    """The source does not compile. `line` and `column` count from 1; None when the compiler named none."""

    def __init__(self, message: str, *, log: str = "", source: Optional[str] = None, options: Sequence[str] = (),
                 diagnostics: Sequence[Mapping[str, Any]] = (), **more: Any) -> None:
        super().__init__(message, **more)
        self.log = log
        self.source = source
        self.options = tuple(options)
        self.diagnostics = [dict(item) for item in diagnostics]
        first = next((item for item in self.diagnostics if "error" in str(item.get("severity"))), None)
        self.file: Optional[str] = first.get("file") if first else None
        self.line: Optional[int] = (first.get("line") or None) if first else None
        self.column: Optional[int] = (first.get("column") or None) if first else None

    def __str__(self) -> str:
        caret = self._caret()
        return super().__str__() + ("\n" + caret if caret else "")

    def _caret(self) -> str:
        """The line of the source with a caret under the column; else what the compiler wrote."""
        lines = self.source.splitlines() if self.source else []
        if not self.line or self.line > len(lines) or self.file not in (None, "kernel.cu"):
            return self.log.rstrip()
        text = lines[self.line - 1]
        number = f"{self.line:5d} | "
        if not self.column:
            return number + text
        lead = "".join("\t" if c == "\t" else " " for c in text[:self.column - 1])
        return f"{number}{text}\n{' ' * len(number)}{lead}^"


class CudaError(GpurestError):
    """The device reported an error. `name` and `value` are the CUDA driver's; `queued_at` is "file.py:41". `access` is the bad access to memory that ended
    the kernel, as the service tells it ({"error", "kind", "space", "address", "bytes", "kernel", "line", "thread", …}), or None."""

    def __init__(self, message: str, *, kernel: Optional[str] = None, op: Optional[int] = None, queued_at: Optional[str] = None,
                 stdout: str = "", **more: Any) -> None:
        super().__init__(message, **more)
        cuda = self.problem.get("cuda") or {}
        self.name: Optional[str] = cuda.get("name")
        self.value: Optional[int] = cuda.get("result")
        self.access: Optional[Dict[str, Any]] = self.problem.get("access")
        self.kernel = kernel
        self.op = op if op is not None else self.op_index
        self.queued_at = queued_at
        self.stdout = stdout

    def __str__(self) -> str:
        return super().__str__() + (f", queued at {self.queued_at}" if self.queued_at else "")


class IllegalAddressError(CudaError):
    """A kernel touched memory that is not its own, or misaligned."""


class LaunchFailedError(CudaError):
    """A kernel ended abnormally (a trap, an invalid instruction, a failed launch)."""


class AssertFailedError(CudaError):
    """A device-side assert() failed; `stdout` has its text where the service sent it."""


class KernelTimeoutError(CudaError, TimeoutError):
    """The execution deadline (`timeout_ms`) passed; the session's worker was stopped."""


class SessionLostError(CudaError):
    """The session's worker died, was replaced, or the session has ended: all its handles are dead.

    `reason` is "fault" or "reset" (perhaps by somebody else), where the session is still there; "replaced" where it has ended and somebody made a new one
    of its name, which reset() joins; or how it has ended, when reset() makes a new one in its place: "idle" (nobody used it
    for its idle_timeout_s), "lease" (no request, not even a heartbeat, came for its lease_s), "lifetime", "deleted", "restarted" (the service was), or
    "not_found" (the service does not know it, and no more). `ended` is then {"reason", "at", "limit_s"} where the service knows."""

    def __init__(self, message: str, *, reason: str = "fault", cause: Optional[BaseException] = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.reason = reason
        if cause is not None:
            self.__cause__ = cause

    @property
    def ended(self) -> Dict[str, Any]:
        """`reason`, `at` and `limit_s` of a session that has ended, where the service knows; else empty."""
        value = self.problem.get("ended")
        return dict(value) if isinstance(value, Mapping) else {}


TIMEOUT_HINT = "60 s unless timeout_ms= of the call, of session() or of connect() says otherwise; up to 3600000"
_ILLEGAL = {"CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_MISALIGNED_ADDRESS", "CUDA_ERROR_INVALID_ADDRESS_SPACE"}
_BUSY = {"rate_limited", "too_many_in_flight", "overloaded", "no_worker", "not_ready", "draining", "out_of_memory", "session_busy", "buffer_busy", "device_busy",
         "idempotency_in_progress", "wrong_node", "session_moved", "session_moving"}


def from_problem(problem: Mapping[str, Any], *, retry_after: Optional[float] = None, source: Optional[str] = None,
                 options: Sequence[str] = ()) -> GpurestError:
    """The exception for a problem document. `source` and `options` are those of the request, for compile errors."""
    status = int(problem.get("status") or 0)
    code = str(problem.get("code") or "")
    message = str(problem.get("detail") or problem.get("title") or code or f"HTTP {status}")
    more: Dict[str, Any] = {"status": status, "code": code, "request_id": problem.get("request_id"),
                            "retryable": bool(problem.get("retryable")), "problem": problem}
    if code in ("compile_failed", "compiler_crashed", "compile_timeout", "module_invalid"):
        compile_ = problem.get("compile") or {}
        return CompileError(message, log=compile_.get("log") or "", diagnostics=compile_.get("diagnostics") or (), source=source,
                            options=options, **more)
    if code in ("kernel_fault", "execution_timeout"):
        return _kernel_error(code, message, problem, more)
    if code in ("session_faulted", "worker_lost", "fault_domain_lost", "device_overheated", "device_reset", "device_lost"):
        return SessionLostError(message, reason="fault", hint="session.reset() gives it a new worker", **more)
    if code == "generation_changed":
        return SessionLostError(message, reason="reset", hint="what was in it is lost; session.reset() goes on with it as it is now", **more)
    return _plain_error(status, code, message, problem, retry_after, more)


def _kernel_error(code: str, message: str, problem: Mapping[str, Any], more: Dict[str, Any]) -> CudaError:
    name = str((problem.get("cuda") or {}).get("name") or "")
    if code == "execution_timeout":
        return KernelTimeoutError(message, hint=TIMEOUT_HINT, **more)
    if name in _ILLEGAL:
        return IllegalAddressError(message, **more)
    if name == "CUDA_ERROR_ASSERT":
        return AssertFailedError(message, stdout=str(problem.get("stdout") or ""), **more)
    return LaunchFailedError(message, **more)


def _field_of(problem: Mapping[str, Any]) -> Optional[str]:
    entries = problem.get("errors") or []
    first = entries[0] if entries else None
    return str(first["pointer"]) if isinstance(first, Mapping) and first.get("pointer") else None


def _hint_of_limit(problem: Mapping[str, Any]) -> Optional[str]:
    limit = problem.get("limit")
    if isinstance(limit, Mapping) and limit.get("name") in ("sessions", "sessions_total"):
        return "close() a session that is not needed; client.sessions() lists all that this caller has"
    return None


def _plain_error(status: int, code: str, message: str, problem: Mapping[str, Any], retry_after: Optional[float],
                 more: Dict[str, Any]) -> GpurestError:
    if code == "session_not_found":
        ended = problem.get("ended") or {}
        reason = "restarted" if ended.get("reason") == "node_restarted" else str(ended.get("reason") or "not_found")
        return SessionLostError(message, reason=reason, hint=None if ended else "the service ended it or was restarted", **more)
    if status in (401, 403) and code not in ("quota_exceeded", "feature_disabled"):
        return AuthError(message, hint="set GPUREST_TOKEN or pass token=" if status == 401 else None, **more)
    if code == "device_memory_exhausted":
        return OutOfMemoryError(message, **more)
    if code in _BUSY or status == 429:
        return BusyError(message, retry_after=retry_after, **more)
    if code in ("quota_exceeded", "body_too_large"):
        return ResourceExhausted(message, hint=_hint_of_limit(problem), **more)
    if code == "argument_mismatch":
        return ArgumentError(message, **more)
    if status == 404:
        return NotFoundError(message, **more)
    if status in (400, 405, 406, 411, 413, 414, 415, 416, 422, 431) or code == "feature_disabled":
        return ValidationError(message, field=_field_of(problem), **more)
    if status in (409, 412):
        return ConflictError(message, **more)
    if status == 408:
        return TimeoutError_(message, phase="idle", **more)
    return ServerError(message, **more)
