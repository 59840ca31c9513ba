"""What is known of a launch: the same for both clients, who only ask for it in their own ways."""
from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional

from ..errors import CudaError, GpurestError, from_problem
from .batch import Future, LaunchResult

FINISHED = ("succeeded", "failed", "cancelled")


def located(error: GpurestError, kernel: str, queued_at: str, stdout: str = "") -> GpurestError:
    """Says which kernel it was, and which line asked for it."""
    if isinstance(error, CudaError):
        error.kernel, error.queued_at = error.kernel or kernel, error.queued_at or queued_at
        error.stdout = error.stdout or stdout
    return error


class LaunchTold:
    """A launch as the service told of it last."""

    def __init__(self, info: Mapping[str, Any], kernel: str, queued_at: str) -> None:
        self._info: Dict[str, Any] = dict(info)
        self._kernel = kernel
        self._queued_at = queued_at

    @property
    def id(self) -> str:
        return str(self._info["id"])

    @property
    def state(self) -> str:
        """As last heard: queued, running, succeeded, failed, cancelled."""
        return str(self._info["state"])

    @property
    def gpu_us(self) -> Optional[float]:
        """Device time in microseconds, once it has succeeded."""
        return self._info.get("gpu_us")

    @property
    def stdout(self) -> str:
        """What the kernel printed."""
        return str(self._info.get("stdout") or "")

    @property
    def info(self) -> Dict[str, Any]:
        return dict(self._info)

    def _take_cancelled(self, info: Mapping[str, Any]) -> None:
        self._info.update({name: value for name, value in info.items() if name in ("state", "problem")})

    def _raise_unless_succeeded(self, note: Callable[[GpurestError], None]) -> None:
        """Once it has finished. `note` hears of failures, which may have ended the session."""
        if self.state == "succeeded":
            return
        if self.state == "cancelled":
            raise GpurestError(f"the launch of {self._kernel} was cancelled", code="cancelled")
        error = from_problem(self._info.get("problem") or {"status": 0, "detail": "the launch failed"})
        note(error)
        raise located(error, self._kernel, self._queued_at, self.stdout)


class QueuedTold(LaunchTold):
    """A launch in a batch: known when the batch has run."""

    def __init__(self, kernel: str, future: Future[LaunchResult]) -> None:
        LaunchTold.__init__(self, {}, kernel, "")  # not the client's class, which wants a session
        self._future = future

    @property
    def id(self) -> str:
        raise GpurestError("a launch in a batch has no id of its own")

    @property
    def state(self) -> str:
        if not self._future.done():
            return "queued"
        return "failed" if self._future.exception() is not None else "succeeded"

    @property
    def gpu_us(self) -> Optional[float]:
        return self._future.result().gpu_us if self.state == "succeeded" else None

    @property
    def stdout(self) -> str:
        return self._future.result().stdout if self.state == "succeeded" else ""
