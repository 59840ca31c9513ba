"""Makes system calls fail, one at a time, within what sessions outlive: a move (at the old and at the new node), the save at the end, the load at the
start, an upgrade, a snapshot that a client takes and loads, hibernation. After each the session is asked for, all of its bytes: one of both, the old or
the new one, is whole, and what is left of the other is gone.

    python3 tests/fault/outlive_faults.py GPURESTD [--scenes move_old move_new move_cut save load upgrade file hibernate] [--most N] [--minutes M] [--seed 1]

Every call of a function that the operation makes is a place, and every error that it can have there a fault; --most takes so many by chance."""
import argparse
import collections
import errno
import http.client
import itertools
import json
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "service"))
from kernels import PTX  # noqa: E402
from service_under_test import Service, until  # noqa: E402
from shim import SHORT, Shim  # noqa: E402
from state_kills import TYPE, Unready, kill  # noqa: E402
from move_kills import free_port  # noqa: E402

FAULTS = {
    "allocate": [errno.ENOMEM],
    "openat": [errno.EMFILE, errno.ENOSPC, errno.EACCES, errno.EIO],
    "open": [errno.EMFILE],
    "read": [SHORT, errno.EINTR, errno.EIO],
    "write": [SHORT, errno.EINTR, errno.ENOSPC, errno.EIO],
    "pread": [SHORT, errno.EINTR, errno.EIO],
    "pwrite": [SHORT, errno.EINTR, errno.ENOSPC, errno.EIO],
    "fsync": [errno.EIO, errno.ENOSPC],
    "renameat": [errno.EIO, errno.ENOSPC],
    "unlinkat": [errno.EIO],
    "mkdirat": [errno.ENOSPC],
    "posix_fallocate": [errno.ENOSPC, errno.EIO],
    "memfd_create": [errno.EMFILE, errno.ENOMEM],
    "ftruncate": [errno.ENOSPC],
    "mmap": [errno.ENOMEM],
    "recv": [errno.ECONNRESET],
    "send": [errno.ECONNRESET],
    "sendmsg": [errno.EPIPE],
    "posix_spawn": [errno.EAGAIN],
    "pthread_create": [errno.EAGAIN],
    "socketpair": [errno.EMFILE],
    "pipe2": [errno.EMFILE],
    "eventfd": [errno.EMFILE],
    "getrandom": [errno.EINTR],
    "execve": [errno.ENOMEM],
}
LAUNCH = {"id": "once", "module": "m", "kernel": "put7", "grid": [1], "block": [1], "args": [{"buf": "ran"}]}
ALWAYS = 1 << 30  # a disk that is full stays so
PLACES_MAX = 40   # of one function: of more, so many spread over all
WORDS = 1 << 16
STEPS = 5  # of a move
SHARES = (-0.5, 0, 0.01, 0.5, 0.999, 1)
HIBERNATED_WORDS = 1 << 20
BROKEN = (http.client.HTTPException, OSError)


class Wrong(AssertionError):
    """What must not be, whatever fails."""


def must(good, what):
    if not good:
        raise Wrong(what)


def tried(call):
    """The answer; None: the connection broke, and nobody knows what was done."""
    try:
        return call()
    except BROKEN:
        return None


def done(answer, status):
    return answer is not None and answer.status == status


class Scene:
    """Services that stay from one fault to the next, and the values that their sessions have."""

    words = WORDS

    def __init__(self, executable, seed):
        self.executable, self.random = executable, random.Random(seed)
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="gpurest-faults."))
        self.shims, self.services, self.ports = {}, {}, {}
        self.number = self.starts = 0
        self.tally = collections.Counter()

    def close(self):
        for service in self.services.values():
            if service.process.poll() is None:
                kill(service)
        shutil.rmtree(self.home, ignore_errors=True)

    def shim(self, which):
        if which not in self.shims:
            folder = self.home / ("shim-" + which)
            folder.mkdir()
            self.shims[which] = Shim(self.executable, folder)
        return self.shims[which]

    def start(self, which="one", *more, kind=Service):
        self.starts += 1
        folder = self.home / f"run{self.starts}"
        folder.mkdir()
        self.ports.setdefault(which, free_port())
        self.services[which] = kind(self.executable, folder, "--state", str(self.home / which), *more, listen=f"127.0.0.1:{self.ports[which]}",
                                    variables=self.shim(which).variables)
        return self.services[which]

    def client(self, which="one"):
        return self.services[which].client()

    def alive(self, which="one"):
        process = self.services[which].process
        must(process.poll() is None, f"the service of {which} has ended: {self.services[which].stderr()[-3000:]}")

    def content(self, value):
        return struct.pack("<I", value) * self.words

    def make(self, client, name, value):
        client.put("/v1/sessions/" + name, {"labels": {"a": "b"}}).expect(201)
        client.put(f"/v1/sessions/{name}/modules/m", PTX.encode(), Content_Type="application/vnd.gpurest.ptx").expect(201)
        client.put_octets(f"/v1/sessions/{name}/buffers/b", self.content(value)).expect(201)
        client.put_octets(f"/v1/sessions/{name}/buffers/ran", bytes(4)).expect(201)
        client.post(f"/v1/sessions/{name}/launches", LAUNCH).expect(200)
        client.put_octets(f"/v1/sessions/{name}/buffers/ran/data", bytes(4)).expect(204)

    def value_of(self, client, name):
        data = client.get(f"/v1/sessions/{name}/buffers/b/data").expect(200).body
        value = struct.unpack("<I", data[:4])[0]
        must(data == self.content(value), f"{name} is half of one and half of another")
        client.get(f"/v1/sessions/{name}/modules/m").expect(200)
        if name != "copy":
            until(lambda: client.post(f"/v1/sessions/{name}/launches", LAUNCH).status == 200)  # a move that was given up holds it for a while
            must(client.get(f"/v1/sessions/{name}/buffers/ran/data").expect(200).body == bytes(4), "a launch was run again that was asked for again")
        return value

    def left(self, which, name):
        """Its files. Where a mark says that it has gone, the next start removes what could not be removed."""
        names = [path.name for path in (self.home / which).glob(f"*/{name}.*")]
        return [] if f"{name}.moved" in names else names


class Move(Scene):
    """At one of both nodes something fails; then the client gives up or goes on, and moves it without a fault."""

    which = "old"

    def __init__(self, executable, seed):
        super().__init__(executable, seed)
        self.start("new")
        self.start("old", "--move-to", self.url)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.ports['new']}"

    @property
    def armed(self):
        return self.shim(self.which)

    def steps(self, path, seen):
        """Each answers whether it was done."""
        seen["move"] = seen["told"] = None
        begun = seen["answer"] = self.ask(0, "old", "POST", path + "/move", {"hold_s": 2})
        if not done(begun, 201):
            return
        seen["move"] = begun.json()["move"]
        data = self.ask(1, "old", "GET", f"{path}/snapshot?move={seen['move']}")
        if not done(data, 200) or not done(self.ask(2, "new", "PUT", path, data.body), 201):
            return
        told = self.ask(3, "old", "POST", path + "/move/complete", {"move": seen["move"], "to": self.url, "id": path.rpartition("/")[2]})
        if done(told, 200):
            seen["told"] = told.json()
            self.ask(4, "new", "POST", path + "/move/confirm", {"secret": seen["told"]["secret"]})

    def ask(self, step, which, method, path, body=None):
        return tried(lambda: self.client(which).request(method, path, body, {"Content-Type": TYPE} if isinstance(body, bytes) else {}))

    def settle(self, path, seen):
        """True: it has moved. A client that does not know asks the old node."""
        old, new = self.client("old"), self.client("new")
        here = old.get(path)
        if here.status == 421:
            new.post(path + "/move/confirm", {"secret": here.json()["moved"]["secret"]}).expect(200)
            return True
        must(here.status == 200, f"the old node says {here}")
        must(not seen["told"], "the old node said that it has moved, and has it")
        must(new.get(path).status in (404, 503), "both nodes have it")
        if seen["move"]:
            given_up = old.delete(f"{path}/move?move={seen['move']}")
            if given_up.status in (409, 421):  # a request whose client has gone completes it at this moment
                return self.settle(path, seen)
            must(given_up.status == 204, f"the old node does not give it up: {given_up}")
            # 409: it is still being made, or ended, for a client that has gone
            until(lambda: new.delete(f"{path}/move?move={seen['move']}").status in (204, 404), "the new node does not give it up")
        return False

    def again(self, path):
        seen = {}

        def moved():
            self.steps(path, seen)
            return seen["told"]

        until(moved, lambda: f"it does not move any more: {seen}", 60)

    def round(self, fault):
        self.number += 1
        name = f"s{self.number}"
        path, seen = "/v1/sessions/" + name, {}
        self.make(self.client("old"), name, self.number)
        fault.arm(self.armed)
        self.steps(path, seen)
        fault.disarm(self.armed)
        self.alive("old"), self.alive("new")
        moved = self.settle(path, seen)
        self.tally["moved" if moved else "stayed"] += 1
        must(self.value_of(self.client("new" if moved else "old"), name) == self.number, "it has another content")
        if not moved:
            self.again(path)
            must(self.value_of(self.client("new"), name) == self.number, "it has another content after the move without a fault")
        self.client("new").delete(path).expect(204)
        left = self.left("new", name) + self.left("old", name)
        must(not left or (fault.hits and fault.function == "unlinkat"), f"left: {left}")


class MoveNew(Move):
    which = "new"


class MoveCut(Move):
    """The client's connection ends at a border of a step, in the request or in the answer; the client has gone, or goes on without the answer."""

    cut = None

    def faults(self):
        self.round(Count())
        return [Cut(self, *place) for place in itertools.product(range(STEPS), ("request", "answer"), SHARES, (False, True))]

    def ask(self, step, which, method, path, body=None):
        if self.cut is None or self.cut.step != step:
            return super().ask(step, which, method, path, body)
        self.cut.hits += 1
        text = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(text)}\r\nContent-Type: {TYPE if isinstance(body, bytes) else 'application/json'}"
        tried(lambda: self.cut.send(self.ports[which], (head + "\r\n\r\n").encode(), text))
        return None


class Kept(Scene):
    """Two sessions in the folder, which are told with each start."""

    names = ("a", "b")

    def __init__(self, executable, seed):
        super().__init__(executable, seed)
        self.value = 1
        client = self.start().client()
        for name in self.names:
            self.make(client, name, self.value)
        self.services["one"].stop()

    def change(self, client):
        self.value += 1
        for name in self.names:
            client.put_octets(f"/v1/sessions/{name}/buffers/b/data", self.content(self.value)).expect(204)

    def stopped(self):
        service = self.services["one"]
        service.stop()

    def all_there(self, client, allowed):
        """`allowed`: the values, and from where each may be told to be."""
        for name in self.names:
            told = client.get("/v1/sessions/" + name).expect(200).json()
            value = self.value_of(client, name)
            must(told["restored"]["from"] in allowed.get(value, ()), f"{name} has {value} from {told['restored']['from']}; may be: {allowed}")
            self.tally[told["restored"]["from"]] += 1


class Save(Kept):
    def round(self, fault):
        client = self.start().client()
        before = self.value_of(client, "a")
        self.change(client)
        client.close()
        fault.arm(self.shim("one"))
        self.services["one"].terminate()
        try:
            self.services["one"].process.wait(30)
        except subprocess.TimeoutExpired:
            kill(self.services["one"])
            raise Wrong(f"it does not end: {self.services['one'].stderr()[-1500:]}") from None
        finally:
            fault.disarm(self.shim("one"))
        self.services["one"].check_stderr()
        client = self.start().client()
        self.all_there(client, {self.value: ("shutdown",), before: ("periodic",)})
        self.change(client)
        client.close()
        self.stopped()


class Load(Kept):
    def round(self, fault):
        fault.arm(self.shim("one"))
        service = self.start(kind=Unready)
        until(lambda: service.port_file.exists() or service.process.poll() is not None, service.stderr)
        fault.disarm(self.shim("one"))
        served = service.process.poll() is None
        self.tally["served" if served else "did not start"] += 1
        if served:
            service._wait_until_serving = lambda: None
            service.host, service.port = "127.0.0.1", self.ports["one"]
            client = service.client()
            for told in client.get("/v1/sessions").expect(200).json()["items"]:
                must(self.value_of(client, told["id"]) == self.value, "it is restored as it was not")
            client.close()
            service.stop()
        client = self.start().client()
        self.all_there(client, {self.value: ("shutdown", "periodic")})
        client.close()
        self.stopped()


class Upgrade(Kept):
    """Fails before, within, or behind the change of executables: whichever goes on has the sessions as they were."""

    def __init__(self, executable, seed):
        super().__init__(executable, seed)
        self.start("one", "--drain-timeout", "20")

    def round(self, fault):
        service = self.services["one"]
        self.change(self.client())
        marks = self.marks()
        fault.arm(self.shim("one"))
        service.process.send_signal(signal.SIGUSR2)
        until(lambda: self.marks() != marks or service.process.poll() is not None, service.stderr)
        fault.disarm(self.shim("one"))
        ended = service.process.poll() is not None
        self.tally["ended" if ended else "upgraded" if self.marks()[0] != marks[0] else "went on"] += 1
        if ended:
            self.start("one", "--drain-timeout", "20")
        client = self.client()
        until(lambda: tried(lambda: client.get("/readyz")), service.stderr)
        found = [name for name in self.names if client.get("/v1/sessions/" + name).status == 200]
        if len(found) < len(self.names):  # it could not be made now, and the log says so: the next start has it
            must(fault.hits, "a session is not there, and nothing has failed")
            self.tally["left for the next start"] += 1
            self.check(client, found)
            client.close()
            self.stopped()
            client = self.start("one", "--drain-timeout", "20").client()
        self.check(client, self.names)

    def check(self, client, names):
        for name in names:
            must(self.value_of(client, name) == self.value, f"{name} is not what it was")

    def marks(self):
        folder = self.services["one"].folder
        return (folder / "stdout").read_text(errors="replace").count(" serving"), (folder / "stderr").read_text(errors="replace").count("not upgraded")


class File(Scene):
    def __init__(self, executable, seed):
        super().__init__(executable, seed)
        self.make(self.start().client(), "a", 1)

    def round(self, fault):
        client = self.client()
        fault.arm(self.shim("one"))
        saved = tried(lambda: client.get("/v1/sessions/a/snapshot"))
        if done(saved, 200):
            tried(lambda: client.put("/v1/sessions/copy", saved.body, Content_Type=TYPE))
        fault.disarm(self.shim("one"))
        self.alive()
        client = self.client()
        must(self.value_of(client, "a") == 1, "the session is not what it was")
        found = client.get("/v1/sessions/copy")
        while found.status == 409:  # it is being ended
            found = client.get("/v1/sessions/copy")
        self.tally["copied" if found.status == 200 else "not"] += 1
        if found.status == 200:
            must(self.value_of(client, "copy") == 1, "the copy is not what it was")
            client.delete("/v1/sessions/copy").expect(204)
        else:
            must(found.status == 404, f"the copy is {found}")
        must(not self.left("one", "copy"), f"left: {self.left('one', 'copy')}")
        whole = client.get("/v1/sessions/a/snapshot").expect(200).body
        client.put("/v1/sessions/copy", whole, Content_Type=TYPE).expect(201)
        client.delete("/v1/sessions/copy").expect(204)


class Hibernate(Scene):
    words = HIBERNATED_WORDS

    def __init__(self, executable, seed):
        super().__init__(executable, seed)
        folder = self.home / "asleep"
        folder.mkdir()
        self.make(self.start("one", "--hibernate-mib", "1024", "--hibernate-dir", str(folder)).client(), "a", 1)

    def round(self, fault):
        client = self.client()
        fault.arm(self.shim("one"))
        asleep = tried(lambda: client.post("/v1/sessions/a/hibernate"))
        awake = tried(lambda: client.post("/v1/sessions/a/wake"))
        fault.disarm(self.shim("one"))
        self.alive()
        self.tally["slept" if done(asleep, 200) else "not"] += 1
        self.tally["woke" if done(awake, 200) else "did not wake"] += 1
        client = self.client()
        must(self.value_of(client, "a") == 1, "it is not what it was")
        must(not list((self.home / "asleep").iterdir()), "a file is left")


SCENES = {"move_old": Move, "move_new": MoveNew, "move_cut": MoveCut, "save": Save, "load": Load, "upgrade": Upgrade, "file": File, "hibernate": Hibernate}


class Fault:
    def __init__(self, function, after, error, times):
        self.function, self.after, self.error, self.times, self.hits = function, after, error, times, 0

    def arm(self, shim):
        shim.arm(self.function, self.after, self.error, self.times)

    def disarm(self, shim):
        self.hits = shim.disarm()

    def __str__(self):
        return f"{self.function} {errno.errorcode.get(self.error, 'short')} at call {self.after}{' and ever after' if self.times > 1 else ''}"


class Cut:
    """A connection that ends within a request, or within its answer; `share`: of the head if it is negative, else of the body."""

    hits = 0

    def __init__(self, scene, step, part, share, reset):
        self.scene, self.step, self.part, self.share, self.reset = scene, step, part, share, reset
        self.function = "the connection"

    def arm(self, shim):
        self.scene.cut = self

    def disarm(self, shim):
        self.scene.cut = None

    def send(self, port, head, body):
        sent = head[:int(len(head) * -self.share)] if self.share < 0 else head + body[:int(len(body) * self.share)]
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(sent if self.part == "request" else head + body)
            if self.part == "answer":
                self.receive(connection)
            if self.reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def receive(self, connection):
        """So much of the answer: some bytes of its head, or of the longest body."""
        left = 1 if self.share < 0 else 600 + int(self.share * 4 * WORDS)
        while left > 0 and (got := connection.recv(left)):
            left -= len(got)

    def __str__(self):
        return f"step {self.step} cut in the {self.part} at {self.share}{' by a reset' if self.reset else ''}"


class Count:
    """No fault: notes how many calls there are."""

    hits = 0

    def arm(self, shim):
        self.before = {name: shim.calls(name) for name in FAULTS}

    def disarm(self, shim):
        self.calls = {name: shim.calls(name) - self.before[name] for name in FAULTS}


def places(calls):
    """All numbers below, or so many spread over them."""
    return range(calls) if calls <= PLACES_MAX else sorted({i * calls // PLACES_MAX for i in range(PLACES_MAX)})


def faults_of(scene):
    scene.round(Count())
    count = Count()
    scene.round(count)
    for name, errors in FAULTS.items():
        for after, error, times in itertools.product(places(count.calls[name]), errors, (1, ALWAYS)):
            if times == 1 or error in (errno.ENOSPC, errno.EIO, errno.EMFILE, errno.ENOMEM) and name != "allocate":
                yield Fault(name, after, error, times)


def campaign(executable, name, most=None, seed=1, seconds=float("inf")):
    """How many were tried, how many met a call, what was wrong, and what came of them."""
    deadline = time.monotonic() + seconds
    scene = SCENES[name](executable, seed)
    tried_count = hit = 0
    found = []
    try:
        faults = list(scene.faults() if hasattr(scene, "faults") else faults_of(scene))
        scene.random.shuffle(faults)
        scene.tally.clear()
        for fault in faults[:most]:
            if time.monotonic() > deadline:
                break
            try:
                scene.round(fault)
            except (AssertionError, *BROKEN) as error:
                fault.disarm(next(iter(scene.shims.values())))
                found.append(f"{name}: {fault}: {type(error).__name__}: {error}")
                scene.close()
                scene = SCENES[name](executable, seed)
                for other in faults:
                    other.scene = scene
            tried_count += 1
            hit += fault.hits > 0
        return tried_count, hit, len(faults), found, scene.tally
    finally:
        scene.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("executable", type=pathlib.Path)
    parser.add_argument("--scenes", nargs="+", choices=SCENES, default=list(SCENES))
    parser.add_argument("--most", type=int, default=None)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for each scene, at most")
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    print(f"{'failing in':10} {'places':>7} {'tried':>6} {'met':>5} {'wrong':>6}   what came of it")
    bad = []
    for name in o.scenes:
        count, hit, all_of_them, found, tally = campaign(str(o.executable.resolve()), name, o.most, o.seed, 60 * o.minutes)
        bad += found
        print(f"{name:10} {all_of_them:7} {count:6} {hit:5} {len(found):6}   {', '.join(f'{what} {n}' for what, n in sorted(tally.items()))}", flush=True)
        for text in found:
            print("   ", text[:1500], flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
