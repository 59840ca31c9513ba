"""Kills a service with --state at random moments of saving, of restoring, of snapshots in between, of upgrades under load, and while a client has a
session hibernate, wake, be saved and loaded. Counts kills that hit within, requests that fail before the kill, sessions that are lost, doubled or told
wrongly, and those of which the next start does not tell, or tells wrongly, that they went with the process:
python3 tests/fault/state_kills.py GPURESTD [--kills 500] [--minutes M] [--seed 1] [--ways save load between upgrade sleep]. Each row must have zeros from
"failed" on."""
import argparse
import collections
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "service"))
from service_under_test import Service, until  # noqa: E402

WORDS = 96 * 1024  # of each session's buffer, all of the same value: a write that is not whole shows
LAST = 20  # of those that were deleted, how many are asked for after each start
SLEEP_WORDS = 512 * 1024  # a buffer that leaves the device
WAYS = ("save", "load", "between", "upgrade", "sleep")
WRITERS = 2
STEP_S = 0.04
TYPE = "application/vnd.gpurest.snapshot"


class Unready(Service):
    """One that may be killed before it serves."""

    def _wait_until_serving(self):
        pass


def kill(service):
    service.process.send_signal(signal.SIGKILL)
    service.process.wait()


class Writer(threading.Thread):
    """Changes one session until the service is killed. What was not answered then may have been done or not."""

    def __init__(self, world, service, name):
        super().__init__(daemon=True)
        self.world, self.service, self.name = world, service, name
        self.ends = False

    def step(self, client):
        value = self.world.values[self.name] + 1
        self.world.begun[self.name] = value
        client.put_octets(f"/v1/sessions/{self.name}/buffers/b/data", struct.pack("<I", value) * self.world.words).expect(204)
        self.world.values[self.name] = value
        if self.world.random.random() < 0.5:
            client.close()

    def run(self):
        client = self.service.client()
        while not self.ends:
            try:
                self.step(client)
            except Exception as why:  # noqa: BLE001: http.client has many for a connection that ends
                if not self.ends:
                    self.world.wrong("failed", self.name, f"{type(why).__name__}: {why}")
                return


class Sleeper(threading.Thread):
    """Has one session hibernate and wake, saves it and makes another of it, until the service is killed."""

    def __init__(self, world, service, name):
        super().__init__(daemon=True)
        self.world, self.service, self.path = world, service, "/v1/sessions/" + name
        self.ends, self.step = False, ""

    def steps(self, client):
        self.world.copies += 1
        copy = f"c{self.world.copies}"
        yield "hibernate", lambda: client.post(self.path + "/hibernate").expect(200)
        yield "wake", lambda: client.post(self.path + "/wake").expect(200)
        yield "save", lambda: setattr(self, "file", client.get(self.path + "/snapshot").expect(200).body)
        yield "load", lambda: client.put("/v1/sessions/" + copy, self.file, Content_Type=TYPE).expect(201)
        yield "delete", lambda: client.delete("/v1/sessions/" + copy).expect(204)
        self.world.deleted.append(copy)

    def run(self):
        client = self.service.client()
        while not self.ends:
            for self.step, call in self.steps(client):
                try:
                    call()
                except Exception as why:  # noqa: BLE001: http.client has many for a connection that ends
                    if not self.ends:
                        self.world.wrong("failed", self.path, f"{self.step}: {type(why).__name__}: {why}")
                    return


class World:
    """What clients were told, by session: the value that was last acknowledged, and whether a snapshot of the session was told."""

    def __init__(self, executable, seed, words=WORDS, sessions=3):
        self.executable, self.words = executable, words
        self.random = random.Random(seed)
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="gpurest-kills."))
        self.values, self.before, self.saved, self.deleted = {}, {}, set(), []
        self.begun = {}  # a value that was sent, and not acknowledged
        self.tally = collections.Counter()
        self.found = []
        self.took = {way: 0.3 for way in WAYS}
        self.made = self.copies = 0
        service = self.start()
        for _ in range(sessions):
            self.make(service.client())
        service.stop()
        self.check()

    def close(self):
        shutil.rmtree(self.home, ignore_errors=True)

    def start(self, *more, kind=Service):
        self.tally["starts"] += 1
        folder = self.home / f"run{self.tally['starts']}"
        folder.mkdir()
        return kind(self.executable, folder, "--state", str(self.home / "state"), *more)

    def wrong(self, how, session, what):
        self.tally[how] += 1
        self.found.append(f"{how}: session {session}: {what}")

    def make(self, client):
        self.made += 1
        name = f"s{self.made}"
        client.put("/v1/sessions/" + name, {}).expect(201)
        client.put_octets(f"/v1/sessions/{name}/buffers/b", struct.pack("<I", 1) * self.words).expect(201)
        self.values[name] = 1

    def change(self, client):
        """One session gets a new value, maybe one goes and another comes. All of it is acknowledged."""
        name = self.random.choice(sorted(self.values))
        self.before.setdefault(name, self.values[name])
        self.values[name] += 1
        client.put_octets(f"/v1/sessions/{name}/buffers/b/data", struct.pack("<I", self.values[name]) * self.words).expect(204)
        if self.random.random() < 0.3:
            gone = self.random.choice(sorted(self.values))
            client.delete("/v1/sessions/" + gone).expect(204)
            for known in (self.values, self.before):
                known.pop(gone, None)
            self.saved.discard(gone)
            self.deleted.append(gone)
            self.make(client)

    def look_at(self, client, told):
        name = told["id"]
        data = client.get(f"/v1/sessions/{name}/buffers/b/data").expect(200).body
        value = struct.unpack("<I", data[:4])[0]
        source = told["restored"]["from"]
        if data != data[:4] * self.words:
            self.wrong("half", name, "its buffer is of two moments")
        elif source == "shutdown" and value not in (self.values[name], self.begun.get(name)):
            self.wrong("stale", name, f"has {value} and not {self.values[name]}, and is told to be what it was at the end")
        elif not self.before.get(name, self.values[name]) <= value <= max(self.values[name], self.begun.get(name, 0)):
            self.wrong("stale", name, f"has {value}, which is older than its last snapshot")
        self.tally[source] += 1
        self.values[name] = value

    def look_at_copy(self, client, name):
        """What a client has made of a snapshot is whole."""
        data = client.get(f"/v1/sessions/{name}/buffers/b/data").expect(200).body
        if data != data[:4] * self.words:
            self.wrong("half", name, "the buffer of a copy is of two moments")
        client.delete("/v1/sessions/" + name).expect(204)
        self.deleted.append(name)

    def ask_for(self, client, names):
        """What went with the process is told to have, and what was deleted is not."""
        for name in self.values.keys() - set(names):
            self.tally["told"] += 1
            if self.reason_of(client, name) != "node_restarted":
                self.wrong("untold", name, "went with the process, and nobody is told")
        for name in self.deleted[-LAST:]:
            if self.reason_of(client, name) == "node_restarted":
                self.wrong("untold", name, "was deleted, and is told to have gone with the process")

    @staticmethod
    def reason_of(client, name):
        return client.get("/v1/sessions/" + name).expect(404).json().get("ended", {}).get("reason")

    def check(self):
        """All that was told as saved is there, once; nothing that was deleted is; and each is whole. Then everything is saved in order."""
        service = self.start()
        client = service.client()
        found = client.get("/v1/sessions").expect(200).json()["items"]
        names = [told["id"] for told in found]
        for name in self.saved - set(names):
            self.wrong("lost", name, "a snapshot of it was told")
        for name in names:
            if name in self.deleted or names.count(name) > 1:
                self.wrong("doubled", name, "was deleted, or is there twice")
        for told in found:
            if told["id"] in self.values:
                self.look_at(client, told)
            elif told["id"] not in self.deleted:
                self.look_at_copy(client, told["id"])
        self.ask_for(client, names)
        self.values = {name: value for name, value in self.values.items() if name in names}
        self.before.clear()
        self.begun.clear()
        while len(self.values) < 3:
            self.make(client)
        service.stop()
        self.saved = set(self.values)

    def kill_in(self, way):
        """At a random moment of it, or a little behind its end: the time that is taken for it follows what is hit."""
        hit = getattr(self, "kill_in_" + way)(self.random.random() * self.took[way])
        self.took[way] *= 1.03 if hit else 0.9
        self.tally["within"] += hit

    def kill_in_load(self, delay):
        service = self.start(kind=Unready)
        time.sleep(delay)
        hit = not service.port_file.exists()
        kill(service)
        return hit

    def kill_in_save(self, delay):
        service = self.start()
        self.change(service.client())
        service.terminate()
        time.sleep(delay)
        hit = service.process.poll() is None
        kill(service)
        return hit

    def kill_in_between(self, delay):
        """A snapshot is under way if a part of one is there."""
        service = self.start("--snapshot-every", "1")
        self.change(service.client())
        time.sleep(delay)
        self.note_saved(service.client())
        kill(service)
        return any((self.home / "state").glob("*/*.part"))

    def kill_in_upgrade(self, delay):
        service = self.start("--drain-timeout", "60")
        self.change(service.client())
        self.before = {name: self.before.get(name, value) for name, value in self.values.items()}
        writers = [Writer(self, service, name) for name in sorted(self.values)[:WRITERS]]
        for writer in writers:
            writer.start()
        time.sleep(0.05)
        service.process.send_signal(signal.SIGUSR2)
        time.sleep(delay)
        for writer in writers:
            writer.ends = True
        kill(service)
        for writer in writers:
            writer.join()
        return (service.folder / "stdout").read_text().count(" serving") < 2

    def kill_in_sleep(self, delay):
        service = self.start("--snapshot-every", "1", "--hibernate-mib", "1024")
        client = service.client()
        self.change(client)
        sleeper = Sleeper(self, service, self.random.choice(sorted(self.values)))
        sleeper.start()
        time.sleep(delay)
        self.note_saved(client)
        step = self.random.choice(("hibernate", "wake", "save", "load"))
        until(lambda: sleeper.step == step or not sleeper.is_alive())
        time.sleep(self.random.random() * STEP_S)
        sleeper.ends = True
        kill(service)
        sleeper.join()
        self.tally["in " + sleeper.step] += 1
        return True

    def note_saved(self, client):
        self.saved |= {s["id"] for s in client.get("/v1/sessions").json()["items"] if s["saved_at"] and s["id"] in self.values}

    def time_upgrade(self, service):
        began = time.monotonic()
        service.process.send_signal(signal.SIGUSR2)
        until(lambda: (service.folder / "stdout").read_text().count(" serving") > 1, service.stderr)
        return time.monotonic() - began

    def measure(self):
        began = time.monotonic()
        service = self.start()
        self.took["load"] = time.monotonic() - began
        self.took["upgrade"] = 2 * self.time_upgrade(service)  # under load it takes longer
        self.change(service.client())
        began = time.monotonic()
        service.stop()
        self.took["save"] = time.monotonic() - began
        self.saved = set(self.values)
        self.before.clear()
        self.took["between"] = 2.2
        self.took["sleep"] = 1.5


def campaign(executable, way, kills, seed, seconds=float("inf")):
    """Ends after so many kills, or at the first one behind that time."""
    until = time.monotonic() + seconds
    world = World(executable, seed, SLEEP_WORDS if way == "sleep" else WORDS)
    try:
        world.measure()
        while world.tally["kills"] < kills and time.monotonic() < until:
            world.kill_in(way)
            world.tally["kills"] += 1
            world.check()
        return world.tally, world.found
    finally:
        world.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("executable", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for each way, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    o = parser.parse_args()
    print(subprocess.run([o.executable, "--version"], capture_output=True, text=True).stdout.strip())
    print(f"{'kills in':10} {'kills':>6} {'within':>7} {'failed':>7} {'lost':>5} {'doubled':>8} {'half':>5} {'stale':>6} {'untold':>7}   "
          "restored from: shutdown, periodic; told to be gone; step that was under way")
    bad = []
    for way in o.ways:
        tally, found = campaign(str(o.executable.resolve()), way, o.kills, o.seed, 60 * o.minutes)
        bad += found
        steps = ", ".join(f"{name[3:]} {count}" for name, count in sorted(tally.items()) if name.startswith("in "))
        print(f"{way:10} {tally['kills']:6} {tally['within']:7} {tally['failed']:7} {tally['lost']:5} {tally['doubled']:8} {tally['half']:5} {tally['stale']:6} "
              f"{tally['untold']:7}   {tally['shutdown']}, {tally['periodic']}; {tally['told']}; {steps}", flush=True)
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
