"""Events: moments on a stream."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from ..errors import AbortedError, GpurestError

if TYPE_CHECKING:
    from .batch import Batch


class Event:
    """A moment on a stream. `later - earlier` is in milliseconds: both of one batch (the device's measure), or both recorded outside
    batches (the host's clock, after waiting for the stream)."""

    def __init__(self, batch: Optional[Batch], name: str) -> None:
        self.batch = batch
        self.name = name
        self.group: Any = None
        self.at_us: Optional[float] = None
        self.failure: Optional[BaseException] = None

    @property
    def is_done(self) -> bool:
        """Whether it is known to have happened."""
        return self.at_us is not None

    def sync(self) -> None:
        """Returns when the event has happened."""
        self._at()

    def _at(self) -> float:
        self._raise_failure()
        if self.at_us is None and self.batch is not None:
            self.batch._bring(None)
            self._raise_failure()
        if self.at_us is None:
            raise GpurestError("the event's batch has not ended")
        return self.at_us

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise AbortedError("the event was not reached: its batch failed", cause=self.failure)

    def __sub__(self, other: Event) -> float:
        if self.group is not other.group:
            raise GpurestError("the two events are of different requests: record both in one batch")
        return (self._at() - other._at()) / 1000
