"""Counts of a campaign with several threads."""
import json
import os
import pathlib
import threading
import time

KEPT = ("injected", "survived", "worst_s", "sum_s", "worst", "wrong", "lost", "notes", "by_kind")


class Tally:
    """At most `most` faults, begun within `seconds`. With a file the counts continue where the last run with it ended, even if it was
    killed: faults that had not ended are injected again."""

    def __init__(self, name, most, seconds, file=None):
        self.name, self.most, self.until = name, most, time.monotonic() + seconds
        self.lock = threading.Lock()
        self.file, self.kept_at = file and pathlib.Path(file), 0.0
        self.begun = self.injected = self.survived = 0
        self.worst_s = self.sum_s = 0.0
        self.worst = ""
        self.wrong, self.lost, self.notes = [], [], []
        self.by_kind = {}
        if self.file and self.file.exists():
            self.__dict__.update(json.loads(self.file.read_text()).get(name, {}))
            self.begun = self.injected

    def is_full(self):
        return self.begun >= self.most

    def keep(self, at_once=True):
        """Saves the counts, if there is a file; unless `at_once`, at most once a second."""
        if not self.file or (not at_once and time.monotonic() - self.kept_at < 1):
            return
        self.kept_at = time.monotonic()
        known = json.loads(self.file.read_text()) if self.file.exists() else {}
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps({**known, self.name: {key: getattr(self, key) for key in KEPT}}, indent=1))
        os.replace(fresh, self.file)

    def take(self, below=None):
        """The number of the next fault, or None when there are enough, or as many as `below`."""
        with self.lock:
            if self.begun >= (self.most if below is None else min(below, self.most)) or time.monotonic() >= self.until:
                return None
            self.begun += 1
            return self.begun - 1

    def end(self, kind, recovery_s=None, lost=None, wrong=None):
        """Records a fault's outcome: the time until everything worked again, or how it was lost, or the wrong result."""
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
            self.keep(at_once=False)

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
