"""Counts of a campaign that several threads work on."""
import threading
import time


class Tally:
    """At most `most` faults, begun within `seconds`."""

    def __init__(self, name, most, seconds):
        self.name, self.most, self.until = name, most, time.monotonic() + seconds
        self.lock = threading.Lock()
        self.begun = self.injected = self.survived = 0
        self.worst_s = self.sum_s = 0.0
        self.worst = ""
        self.wrong, self.lost, self.notes = [], [], []
        self.by_kind = {}

    def take(self):
        """The number of the next fault, or None when there are enough."""
        with self.lock:
            if self.begun >= self.most or time.monotonic() >= self.until:
                return None
            self.begun += 1
            return self.begun - 1

    def end(self, kind, recovery_s=None, lost=None, wrong=None):
        """What became of one: the time until all was right again, or how it was lost, or which wrong result came."""
        with self.lock:
            self.injected += 1
            counts = self.by_kind.setdefault(kind, [0, 0])
            counts[0] += 1
            if wrong is not None:
                self.wrong.append(f"{kind}: {wrong}")
            if lost is not None:
                self.lost.append(f"{kind}: {lost}")
            if lost is None and wrong is None:
                counts[1] += 1
                self.survived += 1
                self.sum_s += recovery_s
                if recovery_s > self.worst_s:
                    self.worst_s, self.worst = recovery_s, f"{kind}, fault {self.injected}, {time.strftime('%H:%M:%S', time.gmtime())}"

    def good(self):
        return self.injected > 0 and self.survived == self.injected and not self.wrong

    def lines(self):
        mean = self.sum_s / self.survived if self.survived else 0.0
        yield (f"{self.name:<28} {self.injected:>6} of {self.most} injected {self.survived:>6} survived {len(self.wrong):>3} wrong"
               f"   recovery: worst {self.worst_s:7.3f} s, mean {mean:7.3f} s")
        for kind, (injected, survived) in sorted(self.by_kind.items()):
            yield f"    {kind:<30} {injected:>6} injected {survived:>6} survived"
        yield f"    the worst: {self.worst}"
        yield from (f"    {note}" for note in self.notes)
        yield from (f"    WRONG {text}" for text in self.wrong[:20])
        yield from (f"    LOST {text}" for text in self.lost[:20])
