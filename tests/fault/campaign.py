"""Counts faults and their outcomes; every campaign ends with one line of the report."""
import os
import random
import time

FULL = os.environ.get("GPUREST_TORTURE") == "full"
SECONDS = float(os.environ.get("GPUREST_TORTURE_S", "1500"))
SEED = int(os.environ.get("GPUREST_TORTURE_SEED", "1"))

finished = []


class Campaign:
    """`seconds`: duration of the short form. In the full form it lasts `share` of the total time. Use it as a context; ask due() between
    faults."""

    def __init__(self, name, seconds, share):
        self.name = name
        self.random = random.Random(f"{SEED} {name}")
        self.limit_s = SECONDS * share if FULL else seconds
        self.injected = self.survived = 0
        self.worst_s = 0.0
        self.note = ""

    def __enter__(self):
        self.began = time.monotonic()
        finished.append(self)
        return self

    def __exit__(self, kind, value, trace):
        self.failed = kind is not None
        print(self.line())

    def due(self):
        """False once the time is over; always true until something was injected."""
        return not self.injected or time.monotonic() - self.began < self.limit_s

    def fault(self, count=1):
        self.injected += count
        self.fault_at = time.monotonic()

    def recovered(self, count=1):
        self.survived += count
        self.worst_s = max(self.worst_s, time.monotonic() - self.fault_at)

    def line(self):
        return (f"{self.name:<34} {self.injected:>6} injected {self.survived:>6} survived   worst recovery {self.worst_s:7.3f} s"
                f"{'   ' + self.note if self.note else ''}{'   FAILED' if getattr(self, 'failed', False) else ''}")


def until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.005)
    return value
