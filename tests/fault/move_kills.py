"""Kills the old node, the new node, or the client at random moments of a session's move, and counts kills that hit within the move, and sessions that
are lost or doubled: python3 tests/fault/move_kills.py GPURESTD [--kills 500] [--minutes M] [--seed 1]. Each row must have zeros from "lost" on."""
import argparse
import collections
import datetime
import pathlib
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "service"))
from service_under_test import Service, until  # noqa: E402
from state_kills import kill  # noqa: E402

WORDS = 1 << 20
TYPE = "application/vnd.gpurest.snapshot"
STEP_S = 0.03
VICTIMS = ("old", "new", "both", "client")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Mover(threading.Thread):
    """A client that moves a session, until it is told to die."""

    def __init__(self, world, name):
        super().__init__(daemon=True)
        self.world, self.path = world, "/v1/sessions/" + name
        self.dead = self.told = self.confirmed = False
        self.at = -1  # the step that has begun

    def run(self):
        old, new = (self.world.services[which].client() for which in ("old", "new"))
        try:
            move = old.post(self.path + "/move", {"hold_s": 60}).expect(201).json()["move"]
            steps = (lambda: setattr(self, "data", old.get(f"{self.path}/snapshot?move={move}").expect(200).body),
                     lambda: new.put(self.path, self.data, Content_Type=TYPE).expect(201),
                     lambda: setattr(self, "told", old.post(self.path + "/move/complete", {"move": move, "to": self.world.url("new"),
                                                            "id": self.path.rpartition("/")[2]}).expect(200).json()),
                     lambda: new.post(self.path + "/move/confirm", {"secret": self.told["secret"]}).expect(200),
                     lambda: setattr(self, "confirmed", True))
            for self.at, step in enumerate(steps):
                if self.dead:
                    return
                step()
        except (OSError, AssertionError, ValueError) as error:  # its node has died
            self.error = error
        except Exception as error:  # noqa: BLE001: http.client has many for a connection that ends
            self.error = error


class World:
    """Two nodes with folders of their own, and addresses that stay."""

    def __init__(self, executable, seed):
        self.executable = executable
        self.random = random.Random(seed)
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="gpurest-moves."))
        self.ports = {"old": free_port(), "new": free_port()}
        self.tally, self.found = collections.Counter(), []
        self.services = {}
        self.took = 1.0
        for which in ("new", "old"):
            self.start(which)

    def url(self, which):
        return f"http://127.0.0.1:{self.ports[which]}"

    def start(self, which):
        self.tally["starts"] += 1
        folder = self.home / f"run{self.tally['starts']}"
        folder.mkdir()
        self.services[which] = Service(self.executable, folder, "--state", str(self.home / which), "--snapshot-every", "1", "--move-to", self.url("new"),
                                       listen=f"127.0.0.1:{self.ports[which]}")

    def close(self):
        for service in self.services.values():
            if service.process.poll() is None:
                kill(service)
        shutil.rmtree(self.home, ignore_errors=True)

    def wrong(self, how, what):
        self.tally[how] += 1
        self.found.append(f"{how}: {what}")

    def make(self, name):
        client = self.services["old"].client()
        client.put("/v1/sessions/" + name, {}).expect(201)
        client.put_octets(f"/v1/sessions/{name}/buffers/b", self.value(name)).expect(201)
        until(lambda: self.is_saved(client, name))

    def is_saved(self, client, name):
        """Since now: what has not changed since it was saved is not saved again."""
        after = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        client.patch("/v1/sessions/" + name, {"labels": {"asked": after}}).expect(200)
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            if (client.get("/v1/sessions/" + name).json()["saved_at"] or "") > after:
                return True
            time.sleep(0.02)
        return False

    @staticmethod
    def value(name):
        return struct.pack("<I", int(name[1:]) + 1) * WORDS

    def strike(self, victim, name):
        """At a random moment of the move, or a little behind its end."""
        mover = Mover(self, name)
        began = time.monotonic()
        mover.start()
        if victim is None:
            mover.join()
            self.took = time.monotonic() - began
            return mover
        if self.random.random() < 0.5:  # the short steps, at which it is decided, are hit as often as the long ones
            step = self.random.randrange(5)
            until(lambda: mover.at >= step or not mover.is_alive())
            mover.join(self.random.random() * STEP_S)
        else:
            mover.join(self.random.random() * self.took)
        within = mover.is_alive()
        self.took *= 1.03 if within else 0.9
        self.tally["within"] += within
        if victim == "client":
            mover.dead = True
        hit = {"old": ["old"], "new": ["new"], "both": ["old", "new"], "client": []}[victim]
        for which in hit:
            kill(self.services[which])
        mover.join()
        for which in reversed(hit):
            self.start(which)
        return mover

    def look(self, name, mover):
        """Exactly one of both has it, all of it; and what was told holds."""
        old, new = (self.services[which].client() for which in ("old", "new"))
        path = "/v1/sessions/" + name
        here, there = old.get(path), new.get(path)
        if here.status == 421:
            self.tally["moved"] += 1
            confirmed = new.post(path + "/move/confirm", {"secret": here.json()["moved"]["secret"]})
            if confirmed.status != 200:
                return self.wrong("lost", f"{name} has moved, and the new node says {confirmed.status} {confirmed.body}")
            holder = new
        elif here.status == 200:
            self.tally["stayed"] += 1
            if there.status not in (404, 503) or mover.told:
                return self.wrong("doubled", f"{name} is at the old node; the new one says {there.status}, told {mover.told}")
            holder = old
        else:
            return self.wrong("lost", f"{name}: the old node says {here.status} {here.body}, the new one {there.status}")
        if holder.get(path + "/buffers/b/data").body != self.value(name):
            return self.wrong("half", f"{name} has another content")
        return holder.delete(path).expect(204)


def campaign(executable, victim, kills, seed, seconds=float("inf")):
    """Ends after so many kills, or at the first one behind that time."""
    deadline = time.monotonic() + seconds
    world = World(executable, seed)
    try:
        for number in range(kills + 1):
            if number and time.monotonic() > deadline:
                break
            name = f"s{number}"
            world.make(name)
            world.look(name, world.strike(victim if number else None, name))
            world.tally["kills"] += number > 0
        return world.tally, world.found
    finally:
        world.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("executable", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for each victim, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--victims", nargs="+", choices=VICTIMS, default=VICTIMS)
    o = parser.parse_args()
    print(subprocess.run([o.executable, "--version"], capture_output=True, text=True).stdout.strip())
    print(f"{'killed':8} {'kills':>6} {'within':>7} {'lost':>5} {'doubled':>8} {'half':>5}   it had moved, had stayed")
    bad = []
    for victim in o.victims:
        tally, found = campaign(str(o.executable.resolve()), victim, o.kills, o.seed, 60 * o.minutes)
        bad += found
        print(f"{victim:8} {tally['kills']:6} {tally['within']:7} {tally['lost']:5} {tally['doubled']:8} {tally['half']:5}   {tally['moved']}, {tally['stayed']}", flush=True)
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
