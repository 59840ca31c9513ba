"""Three nodes behind each router, as deploy/router configures it: routed by the id, drained, reloaded, killed; nobody else notices."""
import http.client
import json
import os
import pathlib
import ssl
import subprocess
import threading
import time

import pytest

import fleet as fleets
import routers
from conftest import VADD, floats
from kernels import launch
from service_under_test import Client, in_threads, until

CALLS = 600  # answered while or after each change: some 80 of every caller


@pytest.fixture(scope="module", params=routers.ROUTERS)
def fleet(request, executable, tmp_path_factory):
    if routers.missing(request.param):
        pytest.skip(f"{routers.missing(request.param)} is not installed")
    one = fleets.Fleet(executable, tmp_path_factory.mktemp("fleet"), 3)
    try:
        one.route(request.param)
        yield one
    finally:
        one.stop()


@pytest.fixture
def client(fleet):
    one = fleet.client()
    yield one
    one.close()


def node_of(id):
    return id.split(".")[0] if "." in id else id.split("_")[1]


def session_on(fleet, client, node):
    """The id of a new session there."""
    direct = fleet.node(node)
    try:
        return direct.post("/v1/sessions").expect(201).json()["id"]
    finally:
        direct.close()


# ---- routing ----

def test_new_sessions_are_spread_and_found_again(fleet, client):
    ids = []
    until(lambda: ids.append(client.post("/v1/sessions").expect(201).json()["id"]) or {*map(node_of, ids)} == set(fleet.names), lambda: f"only {ids}")
    assert len(ids) < 50
    for id in ids:
        for _ in range(2):
            found = client.get("/v1/sessions/" + id).expect(200).json()
            assert (found["id"], found["node"], found["endpoint"]) == (id, node_of(id), f"https://127.0.0.1:{fleet.ports[node_of(id)]}")
    for id in ids:
        client.delete("/v1/sessions/" + id).expect(204)


def test_a_name_meets_its_session_again_and_is_each_callers_own(fleet, client):
    """As in README.md: every request by the name alone."""
    bob = fleet.client("bob")
    for name in ("demo", "train", "other"):
        path = "/v1/sessions/" + name
        full = client.put(path).expect(201).json()["id"]
        assert client.put(path).expect(200).json()["id"] == full
        assert client.put_octets(path + "/buffers/x", floats(range(256))).expect(201).headers["Location"] == f"/v1/sessions/{full}/buffers/x"
        assert client.put_cuda(path + "/modules/m", VADD).status == 201
        x = {"buf": "x"}
        client.post(path + "/launches", launch("vadd", x, x, x, {"i32": 256}, module="m", block=[256])).expect(200)
        assert client.get(f"/v1/sessions/{full}/buffers/x/data").expect(200).body == floats(2 * i for i in range(256))
        bob.get("/v1/sessions/" + full).expect(404, "session_not_found")
        client.delete(path).expect(204)
    bob.close()


def test_a_session_is_put_where_its_name_says(fleet, client):
    for node in fleet.names:
        assert client.put(f"/v1/sessions/{node}.mine").expect(201).json()["node"] == node
        client.delete(f"/v1/sessions/{node}.mine").expect(204)
    client.put("/v1/sessions/n9.mine").expect(404, "session_not_found")


def test_runs_in_the_background_are_found(fleet, client):
    seen = set()
    for _ in range(6):
        begun = client.post("/v1/run", {"ops": []}, Prefer="respond-async").expect(202)
        seen.add(node_of(begun.json()["id"]))
        assert client.get(begun.headers["Location"], Prefer="wait=60").expect(200).json()["state"] == "succeeded"
    assert len(seen) > 1


def test_an_idempotency_key_meets_the_node_that_knows_it(client):
    for number in range(4):
        ids = set()
        for attempt in range(4):
            answer = client.post("/v1/sessions", Idempotency_Key=f"key-{number}").expect(201)
            assert (answer.headers["Idempotency-Replayed"] == "true") == (attempt > 0)
            ids.add(answer.json()["id"])
        assert len(ids) == 1
        client.delete("/v1/sessions/" + ids.pop()).expect(204)


def test_a_node_refuses_what_the_router_would_send_elsewhere(fleet, client):
    id = session_on(fleet, client, "n2")
    direct = fleet.node("n1")
    assert direct.get("/v1/sessions/" + id).expect(421, "wrong_node").json()["node"] == "n2"
    direct.close()
    client.delete("/v1/sessions/" + id).expect(204)


def test_the_router_knows_the_nodes(fleet, client):
    listed = client.get("/v1/nodes", Gpurest_Nodes="n7 up").expect(200).json()["items"]
    assert listed == [{"name": name, "state": "up" if fleet.router.tells_states else None, "endpoint": f"https://127.0.0.1:{fleet.ports[name]}"} for name in fleet.names]
    for name in fleet.names:
        assert {one["node"] for one in client.get("/v1/devices", Gpurest_Node=name).expect(200).json()["items"]} == {name}
    client.get("/v1/devices", Gpurest_Node="n9").expect(404)
    nobody = fleets.TlsClient(fleet.port, fleet.context, "wrong")
    nobody.get("/v1/nodes").expect(401, "unauthenticated")
    nobody.close()


def test_nodes_know_the_clients_behind_the_router(fleet, client):
    """By the PROXY protocol, below TLS: from another loopback address than the router's."""
    other = fleets.TlsClient(fleet.port, fleet.context, "alice-secret", source="127.0.0.7")
    other.get("/version").expect(200)
    other.close()
    until(lambda: any("client=127.0.0.7" in service.stderr() for service in fleet.services.values()))


def answers(client, path):
    """The status; 0 while nobody answers. A connection that failed is not used again."""
    try:
        return client.get(path).status
    except (OSError, http.client.HTTPException):
        client.close()
        return 0


def test_two_routers_find_the_same_sessions(fleet, client):
    """By the hash of a name, and, of what HAProxy has put elsewhere, because the first one tells the second."""
    root = fleet.client("root")
    paths = [f"/v1/sessions/both-{number}" for number in range(16)]
    remembers = isinstance(fleet.router, routers.Haproxy)
    second, other = fleet.second_router()
    try:
        if remembers:
            root.post("/v1/admin/drain", Gpurest_Node="n2").expect(200)
            until(lambda: root.get("/lbz", Gpurest_Node="n2").status == 404 and put_elsewhere(fleet, "n2"))
        nodes = {client.put(path).expect(201).json()["node"] for path in paths}
        assert ("n2" in nodes) != remembers
        if remembers:
            root.post("/v1/admin/resume", Gpurest_Node="n2").expect(200)
        for path in paths:
            # Each use of a session by the first router is told again: an update that the second one missed while it connected comes with it.
            until(lambda path=path: client.get(path).status == 200 and answers(other, path) == 200, f"the second router does not find {path}")
            client.delete(path).expect(204)
    finally:
        root.post("/v1/admin/resume", Gpurest_Node="n2")
        root.close()
        other.close()
        second.stop()


def test_what_no_node_has_is_not_remembered(fleet, client):
    """A router that asks by a name's hash, before it has heard where the name is, must not tell the wrong node to the other one."""
    if not isinstance(fleet.router, routers.Haproxy):
        pytest.skip("it remembers nothing")
    before = fleet.router.remembered()
    client.get("/v1/sessions/nowhere").expect(404, "session_not_found")
    client.put_octets("/v1/sessions/nowhere/buffers/x", b"1234").expect(404, "session_not_found")
    assert fleet.router.remembered() == before
    client.put("/v1/sessions/nowhere").expect(201)
    assert fleet.router.remembered() == before + 1
    client.delete("/v1/sessions/nowhere").expect(204)
    client.post("/v1/run", {"ops": [{"op": "no"}]}, Idempotency_Key="refused").expect(400)
    assert fleet.router.remembered() == before + 2
    stranger = fleets.TlsClient(fleet.port, fleet.context, "wrong")
    stranger.post("/v1/run", {"ops": []}, Idempotency_Key="refused").expect(401)
    stranger.close()
    assert fleet.router.remembered() == before + 2


@pytest.mark.parametrize("program", routers.ROUTERS)
def test_names_and_keys_meet_their_node_without_tokens(start, tmp_path, program):
    if routers.missing(program):
        pytest.skip(f"{routers.missing(program)} is not installed")
    (tmp_path / "nodes").write_text("".join(f"{node} 127.0.0.1:{start('--node', node).port}\n" for node in ("n1", "n2")))
    port, = fleets.free_ports(1)
    router, client = routers.ROUTERS[program](tmp_path, ["--bind", f"127.0.0.1:{port}", "--no-proxy-protocol"]), Client("127.0.0.1", port)
    try:
        until(lambda: answers(client, "/v1/nodes") == 200 and set(router.states(client).values()) == {"up"})
        for number in range(6):
            made = [client.post("/v1/sessions", Idempotency_Key=f"key-{number}").expect(201).json()["id"] for _ in range(3)]
            assert len(set(made)) == 1
            client.put(f"/v1/sessions/name-{number}").expect(201)
            assert all(client.get(f"/v1/sessions/name-{number}").status == 200 for _ in range(3))
    finally:
        client.close()
        router.stop()


def put_elsewhere(fleet, node):
    """Whether the router knows that the node drains: none of several names comes there, by its hash or otherwise."""
    client = fleet.client()
    made = [client.put(f"/v1/sessions/try-{number}") for number in range(12)]
    for one in made:
        if one.status == 201:
            client.delete(one.headers["Location"]).expect(204)
    client.close()
    return all(one.status == 201 and one.json()["node"] != node for one in made)


def test_the_router_takes_up_a_new_certificate(fleet):
    """Moved over the old one, as those who renew certificates do."""
    def shown():
        return ssl.get_server_certificate(("127.0.0.1", fleet.port)).split()

    def put(pem):
        (fleet.folder / "fresh.pem").write_text(pem)
        os.replace(fleet.folder / "fresh.pem", fleet.folder / "both.pem")
        fleet.router.reload()

    before = (fleet.folder / "both.pem").read_text()
    fleets.make_certificate(fleet.folder, "other.pem", "other-key.pem")
    other = (fleet.folder / "other.pem").read_text()
    put(other + (fleet.folder / "other-key.pem").read_text())
    until(lambda: shown() == other.split(), "the router shows its old certificate")
    put(before)
    until(lambda: shown() == (fleet.folder / "cert.pem").read_text().split(), "the router does not take the old one back")


# ---- clients ----

def run_client(fleet, tmp_path, *command, code=0, **variables):
    done = subprocess.run([*map(str, command)], cwd=tmp_path, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "GPUREST_URL": f"https://127.0.0.1:{fleet.port}", "GPUREST_CA_FILE": str(fleet.folder / "cert.pem"),
                               "GPUREST_TOKEN": "alice-secret", **variables})
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout


PYTHON = """
import array, os, gpurest
source = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'
with gpurest.connect(ca_file=os.environ["GPUREST_CA_FILE"]) as gpu:
    twice = gpu.kernel(source, "twice")
    x = gpu.buffer(array.array("f", range(256)))
    gpu.dispatch(twice, x, threads=256)
    assert list(x.get()) == [2 * i for i in range(256)]
    print(x.session.id)
    with gpu.session(name="by-name") as named:
        x = named.buffer(bytes(range(256)))
        assert bytes(x.get()) == bytes(range(256))
        print(gpu.attach(named.id).id)
"""


def test_the_python_client(fleet, tmp_path):
    ids = run_client(fleet, tmp_path, "python3", "-c", PYTHON, PYTHONPATH=str(routers.ROOT / "sdk" / "python")).split()
    assert len(ids) == 2 and all(node_of(id) in fleet.names for id in ids) and ids[1].endswith(".by-name")


def command_line(fleet, executable, tmp_path):
    cli = os.environ.get("GPUREST_CLI") or pathlib.Path(executable).parents[1] / "sdk" / "cli" / "gpurest"
    return lambda *words, **more: run_client(fleet, tmp_path, cli, *words, HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path), XDG_STATE_HOME=str(tmp_path), **more)


def test_the_command_line_and_the_c_client(fleet, executable, tmp_path):
    gpurest = command_line(fleet, executable, tmp_path)
    (tmp_path / "x").write_bytes(floats(range(256)))
    for name in ("by-cli", "n3.placed"):
        gpurest("connect", name)
        gpurest("buf", "put", "x", "x")
        gpurest("buf", "get", "x", "y")
        assert (tmp_path / "y").read_bytes() == floats(range(256))
        assert name in gpurest("sessions", "get", name)
        assert [line.split()[:2] for line in gpurest("nodes").splitlines()[1:]] == [[node, "up" if fleet.router.tells_states else "-"] for node in fleet.names]
        seen = json.loads(gpurest("top", "--fleet", "--json"))["item"]
        assert [(one["name"], one["state"]) for one in seen["nodes"]] == [(node, "up") for node in fleet.names]
        assert [one["id"] for one in seen["devices"]] == [node + "/cpu:0" for node in fleet.names]
        assert {one["id"].split(".")[1]: one["device"].partition("/")[2] for one in seen["sessions"]} == {name.split(".")[-1]: "cpu:0"}
        assert all(one["device"].startswith(one["node"] + "/") for one in seen["sessions"])
        gpurest("disconnect")


# ---- operations ----

def test_an_operator_ends_any_session_through_the_router(fleet, client):
    root = fleet.client("root")
    ids = {node: client.put(f"/v1/sessions/{node}.for-root").expect(201).json()["id"] for node in fleet.names}
    seen = {one["id"]: one["caller"] for node in fleet.names for one in root.get("/v1/admin/sessions", Gpurest_Node=node).expect(200).json()["items"]}
    assert {id: "alice" for id in ids.values()}.items() <= seen.items()
    for id in ids.values():
        client.delete("/v1/admin/sessions/" + id).expect(403, "insufficient_scope")
        root.delete("/v1/admin/sessions/" + id).expect(204)
        assert client.get("/v1/sessions/" + id).expect(404, "session_not_found").json()["ended"]["reason"] == "operator"
    root.close()


class Load:
    """Callers at work: some with a session each, others that make sessions and end them. What goes wrong is kept."""

    def __init__(self, fleet, workers=6, makers=2):
        self.fleet, self.errors, self.calls, self.over = fleet, [], 0, False
        self.lock = threading.Lock()
        self.ready = threading.Semaphore(0)
        self.threads = [threading.Thread(target=self.guarded, args=(work, n)) for work, count in ((self.work, workers), (self.make, makers)) for n in range(count)]
        for thread in self.threads:
            thread.start()
        for _ in self.threads:
            assert self.ready.acquire(timeout=120), self.errors

    def guarded(self, work, number):
        client = self.fleet.client("alice" if number % 2 else "bob")
        try:
            work(client)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test tells
            with self.lock:
                self.errors.append(repr(error))
        finally:
            self.ready.release()
            client.close()

    def called(self, answer, status):
        with self.lock:
            self.calls += 1
            if answer.status != status:
                self.errors.append(repr(answer))
        return answer

    def work(self, client):
        path = "/v1/sessions/" + client.post("/v1/sessions").expect(201).json()["id"]
        client.put_octets(path + "/buffers/x", bytes(4096)).expect(201)
        self.ready.release()
        number = 0
        while not self.over:
            number += 1
            data = number.to_bytes(4, "little") * 1024
            self.called(client.put_octets(path + "/buffers/x/data", data), 204)
            got = self.called(client.get(path + "/buffers/x/data"), 200)
            if got.body != data:
                with self.lock:
                    self.errors.append("another session's bytes")
        client.delete(path).expect(204)

    def make(self, client):
        self.ready.release()
        while not self.over:
            made = self.called(client.post("/v1/sessions"), 201)
            if made.status == 201:
                self.called(client.delete(made.headers["Location"]), 204)

    def go_on(self):
        """Waits until the callers have met what was changed last."""
        count = self.calls + CALLS
        until(lambda: self.calls >= count or self.errors, lambda: f"{self.calls} calls, not {count}", 170)
        assert not self.errors, self.errors[:5]

    def end(self):
        self.over = True
        for thread in self.threads:
            thread.join()
        assert not self.errors, (len(self.errors), self.errors[:5])


def test_drain_reload_and_a_new_node_disturb_nobody(fleet):
    load = Load(fleet)
    root = fleet.client("root")
    try:
        load.go_on()
        root.post("/v1/admin/drain", Gpurest_Node="n1").expect(200)
        load.go_on()
        before = root.get("/metrics", Gpurest_Node="n1").expect(200)
        assert "gpurest_ready 0" in before.body.decode()
        fleet.reload()
        load.go_on()
        root.post("/v1/admin/resume", Gpurest_Node="n1").expect(200)
        fleet.start("n4")
        fleet.names.append("n4")
        fleet.reload()
        load.go_on()
        fleet.await_state({"n1": "up", "n4": "up"})
        until(lambda: put_on(fleet, "n4"), "the new node gets no session")
        fleet.reload()
        load.go_on()
    finally:
        load.end()
        root.close()


def put_on(fleet, node):
    """Whether a new session came there."""
    client = fleet.client()
    made = client.post("/v1/sessions").expect(201)
    client.delete(made.headers["Location"]).expect(204)
    client.close()
    return made.json()["node"] == node


def name_on(client, node):
    """A name of a session, now there, of which only the router knows that it is that node's."""
    def made(name):
        id = client.put("/v1/sessions/" + name).expect(201).json()["id"]
        if node_of(id) != node:
            client.delete("/v1/sessions/" + id).expect(204)
        return node_of(id) == node
    return next(name for name in map("killed-{}".format, range(100)) if made(name))


def meets_by_name(fleet, client, name):
    """A dead node's session by its name alone is nobody else's. Made anew, it goes elsewhere where the router remembers names."""
    client.get("/v1/sessions/" + name).expect(503, "not_ready")
    if isinstance(fleet.router, routers.Haproxy):
        id = client.put("/v1/sessions/" + name).expect(201).json()["id"]
        assert client.get("/v1/sessions/" + name).expect(200).json()["id"] == id and node_of(id) != "n2"
        client.delete("/v1/sessions/" + id).expect(204)
    else:
        client.put("/v1/sessions/" + name).expect(503, "not_ready")


def ask_keyed(client, path, key):
    return client.post(path, {"ops": []} if path == "/v1/run" else {}, Idempotency_Key=key, Prefer="respond-async")


def key_on(client, node, path):
    """A key of a POST that was answered there."""
    def met(key):
        id = ask_keyed(client, path, key).expect(202 if path == "/v1/run" else 201).json()["id"]
        if path == "/v1/sessions":
            client.delete("/v1/sessions/" + id).expect(204)
        return node_of(id) == node
    return next(key for key in map("killed-{}".format, range(100)) if met(key))


def keeps_keys(fleet, client, keys):
    """What a dead node has done under a key is done by no other one. Keys that nobody knows go elsewhere where the router knows that it is dead."""
    for path, key in keys.items():
        for _ in range(2):
            ask_keyed(client, path, key).expect(503, "not_ready")
        for number in range(8 if isinstance(fleet.router, routers.Haproxy) else 0):
            id = ask_keyed(client, path, f"fresh-{number}").expect(202 if path == "/v1/run" else 201).json()["id"]
            assert node_of(id) != "n2"
            if path == "/v1/sessions":
                client.delete("/v1/sessions/" + id).expect(204)


def test_a_killed_node_harms_no_other_one(fleet, client, executable, tmp_path):
    ids = {name: session_on(fleet, client, name) for name in fleet.names}
    client.put("/v1/sessions/n2.named").expect(201)
    client.put("/v1/sessions/n2.deleted").expect(201)
    client.delete("/v1/sessions/n2.deleted").expect(204)
    by_name = name_on(client, "n2")
    keys = {path: key_on(client, "n2", path) for path in ("/v1/sessions", "/v1/run")}
    fleet.kill("n2")
    for path, key in keys.items():
        ask_keyed(client, path, key).expect(503, "not_ready")  # before the router has noticed
    lost = client.get("/v1/sessions/" + ids["n2"]).expect(503, "not_ready")
    assert lost.headers["Retry-After"] == "2" and lost.json()["retryable"]
    fleet.await_state({"n1": "up", "n2": "down"})
    meets_by_name(fleet, client, by_name)
    keeps_keys(fleet, client, keys)
    seen = json.loads(command_line(fleet, executable, tmp_path)("top", "--fleet", "--json", code=9))["item"]
    assert {one["name"]: one["state"] for one in seen["nodes"]} == {name: "down" if name == "n2" else "up" for name in fleet.names}
    for name, id in ids.items():
        for _ in range(3):
            assert client.get("/v1/sessions/" + id).status == (503 if name == "n2" else 200)
            client.delete(client.post("/v1/sessions").expect(201).headers["Location"]).expect(204)
    fleet.start("n2")
    fleet.await_state({"n2": "up"})
    for name in (ids["n2"], "n2.named", "n2." + by_name):
        assert client.get("/v1/sessions/" + name).expect(404, "session_not_found").json()["ended"]["reason"] == "node_restarted"
    stranger = fleet.client("bob")
    for caller, name in ((stranger, "n2.named"), (client, "n2.deleted"), (client, "n2.never")):
        assert "ended" not in caller.get("/v1/sessions/" + name).expect(404, "session_not_found").json()
    stranger.close()
    client.put("/v1/sessions/n2.named").expect(201)
    client.delete("/v1/sessions/n2.named").expect(204)
    assert client.get("/v1/sessions/n2.named").expect(404, "session_not_found").json()["ended"]["reason"] == "deleted"
    until(lambda: put_on(fleet, "n2"), "the node that is back gets no session")
    for name in set(ids) - {"n2"}:
        client.delete("/v1/sessions/" + ids[name]).expect(204)


def test_many_clients_at_once_meet_their_own(fleet):
    """Routing holds while connections are shared."""
    wrong = []

    def one(number):
        client = fleet.client("alice" if number % 2 else "bob")
        try:
            path = client.put(f"/v1/sessions/many-{number}").expect(201).headers["Location"]
            for turn in range(10):
                data = bytes([number, turn]) * 512
                client.put_octets(path + "/buffers/x/data" if turn else path + "/buffers/x", data)
                if client.get(f"/v1/sessions/many-{number}/buffers/x/data").body != data:
                    wrong.append((number, turn))
            client.delete(path).expect(204)
        finally:
            client.close()

    in_threads(one, range(8))
    assert not wrong


BULK = """
import os, gpurest
with gpurest.connect(ca_file=os.environ["GPUREST_CA_FILE"]) as client:
    with client.session() as gpu:
        data = os.urandom(3 << 20)
        assert bytes(gpu.buffer(data).get()) == data
        print(gpu.id, *[url for url in client._detours._known])
"""


ASYNC_BULK = """
import asyncio, os, gpurest.aio
async def work():
    async with gpurest.aio.AsyncClient(ca_file=os.environ["GPUREST_CA_FILE"]) as client:
        async with client.session() as gpu:
            data = os.urandom(3 << 20)
            assert bytes(await (await gpu.buffer(data)).get()) == data
            print(gpu.id, *[url for url in client._detours._known])
asyncio.run(work())
"""


@pytest.mark.parametrize("program", [BULK, ASYNC_BULK], ids=["blocking", "asyncio"])
def test_long_transfers_go_to_the_node_itself(fleet, tmp_path, program):
    id, *direct = run_client(fleet, tmp_path, "python3", "-c", program, PYTHONPATH=str(routers.ROOT / "sdk" / "python")).split()
    assert direct == [f"https://127.0.0.1:{fleet.ports[node_of(id)]}"]
    carried = [line for line in fleet.services[node_of(id)].logged("/data").splitlines() if f"/v1/sessions/{id}/buffers/" in line]
    assert carried, "the node has no line of it"


def test_a_reload_that_fails_is_owed(tmp_path):
    """The router may start later than what writes its configuration."""
    nodes, started, done = tmp_path / "nodes", tmp_path / "started", tmp_path / "done"
    nodes.mkdir()
    (nodes / "a").write_text("n1 127.0.0.1:1001\n")
    command = f"echo >> {tmp_path}/tried; test -e {started} && echo >> {done}"
    configure = [routers.CONFIGURE, nodes, "--output", tmp_path / "haproxy.cfg", "--then", command]
    once = subprocess.run(configure, capture_output=True, text=True)
    assert once.returncode == 1 and "the command of --then has failed" in once.stderr
    (tmp_path / "haproxy.cfg").unlink()
    watching = subprocess.Popen([*configure, "--watch"])
    try:
        until(lambda: (tmp_path / "tried").read_text().count("\n") >= 3)
        started.touch()
        until(done.exists)
        (nodes / "b").write_text("n2 127.0.0.1:1002\n")
        until(lambda: done.read_text().count("\n") >= 2)
        assert "127.0.0.1:1002" in (tmp_path / "haproxy.cfg").read_text()
        time.sleep(2.5)  # it is not owed any more
        assert done.read_text().count("\n") == 2
    finally:
        watching.terminate()
        watching.wait()
