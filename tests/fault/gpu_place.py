"""A session that computes, recovers after faults, and a neighbour that never stops checking its results."""
import http.client
import struct
import threading
import time

from gpu_sources import SOURCE

COUNT = 1024
A = struct.pack(f"<{COUNT}f", *range(COUNT))
B = struct.pack(f"<{COUNT}f", *range(0, 2 * COUNT, 2))
SUM = struct.pack(f"<{COUNT}f", *range(0, 3 * COUNT, 3))
VADD = {"module": "k", "kernel": "vadd", "grid": [COUNT // 256], "block": [256], "args": [{"buf": "a"}, {"buf": "b"}, {"buf": "c"}, {"i32": COUNT}]}
RECOVERY_S = 180


class Place:
    def __init__(self, client, session, device):
        self.client, self.path, self.device = client, "/v1/sessions/" + session, device
        self.client.timeout = 120
        self.resets_s = []  # the part until there is a new worker

    def set_up(self):
        """Creates modules and buffers in a session that has just become ready."""
        made = [self.client.put_cuda(self.path + "/modules/k", SOURCE)]
        made += [self.client.put_octets(f"{self.path}/buffers/{name}", data) for name, data in (("a", A), ("b", B), ("p", bytes(4096)))]
        made.append(self.client.put(self.path + "/buffers/c", {"size": len(SUM)}))
        assert all(answer.status in (200, 201) for answer in made), [answer for answer in made if answer.status >= 400]

    def is_right(self):
        assert self.client.post(self.path + "/buffers/c/fill", {"pattern": {"u32": 0}}).status == 204
        self.client.post(self.path + "/launches", VADD).expect(200)
        return self.client.get(self.path + "/buffers/c/data").body == SUM

    def recover(self):
        """Resets the session until it computes; returns the time."""
        until = time.monotonic() + RECOVERY_S
        while True:
            began = time.monotonic()
            reset = self.client.post(self.path + "/reset")
            if reset.status == 200:
                self.resets_s.append(time.monotonic() - began)
                self.set_up()
                assert self.is_right(), "the first result after the fault is wrong"
                return time.monotonic()
            assert reset.status in (409, 429, 503) and time.monotonic() < until, reset
            time.sleep(0.01)

    def renew(self):
        """Replaces the session by a new one, whatever its state."""
        until = time.monotonic() + RECOVERY_S
        while True:
            try:
                self.client.delete(self.path)
                made = self.client.put(self.path, {"device": self.device})
                if made.status in (200, 201):
                    self.set_up()
                    return
            except (AssertionError, http.client.HTTPException, OSError):
                self.client.close()
            assert time.monotonic() < until, "no session can be had any more"
            time.sleep(0.05)

    def drop(self):
        assert self.client.delete(self.path).status == 204


class Neighbour(threading.Thread):
    """Computes until it is stopped. Records wrong results, lost sessions and refused launches; none is expected."""

    def __init__(self, place):
        super().__init__(daemon=True)
        self.place, self.over = place, threading.Event()
        self.rounds, self.worst_s, self.wrong, self.lost = 0, 0.0, [], []
        place.renew()
        assert place.is_right()

    def run(self):
        while not self.over.is_set() and len(self.lost) < 100:
            began = time.monotonic()
            try:
                if not self.place.is_right():
                    self.wrong.append(f"the neighbour's result, round {self.rounds}")
                self.rounds += 1
            except (AssertionError, http.client.HTTPException, OSError) as e:
                self.lost.append(str(e)[:200])
                self.place.client.close()
            self.worst_s = max(self.worst_s, time.monotonic() - began)

    def stop(self):
        self.over.set()
        self.join()
        if not self.lost:
            self.place.drop()
