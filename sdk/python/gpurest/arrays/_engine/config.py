"""Settings of arrays, for all sessions of the process."""

from __future__ import annotations


class Config:
    """`fusion`: elementwise operations that feed each other become one kernel. `eager`: every operation is sent at once, and fails
    where it stands, for debugging. `builtins`: reductions, running sums, sorts and transposed copies go to the service's built-in kernels where
    these are no slower; off, a kernel is generated for each that can do without. `timeout_s`: how long the kernels of one flush may run.
    `queue_max`: so many pending operations flush by themselves; `inline_bytes_max`: so do so many bytes of queued uploads, and longer ones
    are sent on their own."""

    def __init__(self) -> None:
        self.fusion = True
        self.eager = False
        self.builtins = True
        self.timeout_s = 300.0
        self.queue_max = 256
        self.inline_bytes_max = 32 * 1024 * 1024


config = Config()
