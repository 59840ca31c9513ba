"""SIGKILLs of workers with running kernels, beside a neighbour.

There are no warm workers. Once every session has its kernel running, each worker but the neighbour's and the device's monitor is therefore a busy
one: all of them are killed one by one at random moments, and each session then comes back as fast as it can."""
import os
import signal
import threading
import time

BUSY = {"module": "k", "kernel": "endless", "grid": [1], "block": [32], "args": [{"buf": "p"}], "timeout_ms": 120000}
RUNNING_S = 120


class Round:
    """Waits until all are busy, kills, waits until all work again."""

    def __init__(self, bench, tally, count):
        self.bench, self.tally, self.count = bench, tally, count
        self.armed = threading.Barrier(count + 1)
        self.going_on = True

    def session(self, number):
        place = self.bench.place("bad", f"killed{number}")
        place.renew()
        while self.wait_for_all():
            try:
                location = self.begin(place)
                self.armed.wait()
                self.armed.wait()
                self.come_back(place, location)
            except threading.BrokenBarrierError:
                return
            except Exception as e:  # anything at all is a fault that was not survived, and nobody may wait for this thread
                self.tally.end("a busy worker", lost=f"{type(e).__name__}: {e}")
                self.going_on = False
                self.armed.abort()
                return
        place.drop()

    def wait_for_all(self):
        """Whether there is another round; the same answer for all."""
        try:
            self.armed.wait()
        except threading.BrokenBarrierError:
            return False
        return self.going_on

    def begin(self, place):
        sent = place.client.post(place.path + "/launches", BUSY, Prefer="respond-async").expect(202)
        until = time.monotonic() + RUNNING_S
        while place.client.get(sent.headers["Location"]).json()["state"] != "running":
            assert time.monotonic() < until, "the kernel does not start"
            time.sleep(0.002)
        return sent.headers["Location"]

    def come_back(self, place, location):
        ended = place.client.get(location, Prefer="wait=60").json()
        at = time.monotonic()
        if ended["state"] != "failed" or ended["problem"]["code"] != "worker_lost":
            self.tally.end("a busy worker", lost=f"{ended['state']}: {ended.get('problem')}")
            place.renew()
            return
        self.tally.end("a busy worker", place.recover() - at)

    def director(self):
        """The thread that kills."""
        random = self.bench.options.random
        while True:
            taken = [self.tally.take() for _ in range(self.count)]
            self.going_on = taken[-1] is not None
            try:
                self.armed.wait()  # all know whether there is another round
                if not self.going_on:
                    return
                self.armed.wait()  # all are busy
                victims = sorted(self.bench.workers() - self.bench.spared)
                random.shuffle(victims)
                if len(victims) != self.count:
                    self.tally.notes.append(f"{len(victims)} workers for {self.count} busy sessions")
                for pid in victims:
                    time.sleep(random.random() * 0.01)
                    os.kill(pid, signal.SIGKILL)
                self.armed.wait()  # all check the outcome
            except threading.BrokenBarrierError:
                return


def kills(bench, tally):
    count = min(bench.options.threads, tally.most)
    tally.most -= tally.most % count
    turn = Round(bench, tally, count)
    threads = [threading.Thread(target=turn.session, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    turn.director()
    for thread in threads:
        thread.join(120)
