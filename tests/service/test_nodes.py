"""A service that is a node of a fleet: its name in ids and answers, and requests that are meant for another node."""
import pytest

from conftest import VADD
from kernels import launch
from test_config import run

MADE = "0123456789ABCDEFGHIJKL"  # what stands behind the node in an id that a service chose


@pytest.fixture
def node(start):
    service = start("--node", "n1", "--endpoint", "http://n1.example.com:8080")
    client = service.client()
    yield client
    client.close()


def refused(answer, name="n2"):
    problem = answer.expect(421, "wrong_node").json()
    assert (problem["node"], problem["retryable"]) == (name, True) and name in problem["detail"]


def test_ids_that_the_service_chooses_name_the_node(node):
    made = node.post("/v1/sessions").expect(201)
    info = made.json()
    assert info["id"].startswith("s_n1_") and len(info["id"]) == len("s_n1_") + 22
    assert made.headers["Location"] == "/v1/sessions/" + info["id"]
    assert (info["node"], info["endpoint"]) == ("n1", "http://n1.example.com:8080")
    assert node.get(made.headers["Location"]).expect(200).json()["id"] == info["id"]


def test_names_that_clients_choose_get_the_node(node):
    for name in ("train", "n1.other"):
        made = node.put("/v1/sessions/" + name).expect(201)
        full = "n1." + name.removeprefix("n1.")
        assert made.json()["id"] == full and made.headers["Location"] == "/v1/sessions/" + full
    assert node.put("/v1/sessions/n1.train").expect(200).json()["id"] == "n1.train"
    for path in ("/v1/sessions/train", "/v1/sessions/n1.train"):
        assert node.get(path).expect(200).json()["id"] == "n1.train"
    assert [one["id"] for one in node.get("/v1/sessions").json()["items"]] == ["n1.other", "n1.train"]
    page = node.get("/v1/sessions?limit=1").json()
    assert [one["id"] for one in node.get("/v1/sessions?limit=1&cursor=" + page["next_cursor"]).json()["items"]] == ["n1.train"]
    node.delete("/v1/sessions/n1.train").expect(204)
    assert node.get("/v1/sessions/train").expect(404, "session_not_found").json()["ended"]["reason"] == "deleted"


def test_what_is_followed_names_the_node(node):
    session = node.put("/v1/sessions/train").expect(201) and "/v1/sessions/train"
    full = "/v1/sessions/n1.train"
    assert node.put(session + "/buffers/a", {"size": 4096}).headers["Location"] == full + "/buffers/a"
    assert node.put_cuda(session + "/modules/m", VADD).headers["Location"] == full + "/modules/m"
    begun = node.post(session + "/launches", launch("vadd", {"buf": "a"}, {"buf": "a"}, {"buf": "a"}, {"i32": 1}, module="m"), Prefer="respond-async").expect(202)
    assert begun.headers["Location"].startswith(full + "/launches/l_n1_")
    batch = node.post(session + "/batches", {"ops": []}, Prefer="respond-async").expect(202)
    assert batch.headers["Location"].startswith(full + "/batches/x_n1_")
    run = node.post("/v1/run", {"ops": []}, Prefer="respond-async").expect(202)
    assert run.headers["Location"].startswith("/v1/run/x_n1_")
    for answer in (begun, batch, run):
        assert node.get(answer.headers["Location"], Prefer="wait=60").expect(200).json()["state"] == "succeeded"
    assert node.get(run.headers["Location"] + "/result").expect(200).status == 200


@pytest.mark.parametrize("method, path", [
    ("GET", "/v1/sessions/n2.train"), ("PUT", "/v1/sessions/n2.train"), ("DELETE", "/v1/sessions/n2.train"), ("PATCH", "/v1/sessions/s_n2_" + MADE),
    ("GET", "/v1/sessions/s_n2_" + MADE), ("PUT", "/v1/sessions/s_n2_" + MADE.lower()), ("POST", f"/v1/sessions/s_n2_{MADE}/heartbeat"),
    ("PUT", "/v1/sessions/n2.train/buffers/b/data"), ("POST", "/v1/sessions/n2.train/launches"), ("GET", "/v1/sessions/n2.train/events"),
    ("PUT", "/v1/sessions/n2.train/programs/p"), ("POST", "/v1/sessions/n2.train/programs/p/runs"), ("GET", f"/v1/sessions/n2.x/launches/l_n1_{MADE}"),
    ("GET", "/v1/run/x_n2_" + MADE), ("GET", f"/v1/run/x_n2_{MADE}/result"), ("DELETE", "/v1/run/x_n2_" + MADE), ("GET", "/v1/cache/warm/w_n2_" + MADE)])
def test_what_names_another_node_is_refused(node, method, path):
    refused(node.request(method, path))


def test_nothing_of_a_body_for_another_node_is_taken(node):
    refused(node.put_octets("/v1/sessions/n2.train/buffers/b/data", bytes(1 << 20), Expect="100-continue"))


def test_ids_of_no_node_and_of_this_one_are_unknown(node):
    """What a session holds is where the session is, whoever has named it."""
    node.get(f"/v1/sessions/n1.x/launches/l_n2_{MADE}").expect(404, "session_not_found")
    for path in ("/v1/sessions/s_" + MADE, "/v1/sessions/n1.never", "/v1/sessions/s_x_y"):
        node.get(path).expect(404, "session_not_found")
    node.get("/v1/run/x_n1_" + MADE).expect(404, "batch_not_found")
    assert node.put("/v1/sessions/s_n2_plain").expect(201).json()["id"] == "n1.s_n2_plain"


def test_a_header_names_the_node_that_is_meant(node):
    assert node.get("/v1/devices", Gpurest_Node="n1").status == 200
    refused(node.get("/v1/devices", Gpurest_Node="n2"))
    refused(node.post("/v1/sessions", Gpurest_Node="n2"))
    node.get("/v1/devices", Gpurest_Node="N 2").expect(400, "invalid_header")


def test_devices_may_be_named_with_their_node(node):
    assert node.post("/v1/sessions", {"device": "n1/cpu:0"}).expect(201).json()["device"] == "cpu:0"
    refused(node.post("/v1/sessions", {"device": "n2/cpu:0"}))
    node.post("/v1/sessions", {"device": "/cpu:0"}).expect(400, "invalid_field")
    node.post("/v1/sessions", {"device": "n1/"}).expect(400, "invalid_field")


def test_the_node_is_told(node):
    assert {one["node"] for one in node.get("/v1/devices").json()["items"]} == {"n1"}
    assert node.get("/v1/devices/cpu:0").json()["node"] == "n1"
    version = node.get("/version").json()
    assert (version["node"], version["endpoint"]) == ("n1", "http://n1.example.com:8080")
    assert 'node="n1"' in next(line for line in node.get("/metrics").body.decode().splitlines() if line.startswith("gpurest_build_info{"))


def test_the_nodes_are_those_that_the_router_tells(node, client):
    assert client.get("/v1/nodes").json() == {"items": [{"name": None, "state": "up"}], "next_cursor": None}
    assert node.get("/v1/nodes").json()["items"] == [{"name": "n1", "state": "up", "endpoint": "http://n1.example.com:8080"}]
    told = node.get("/v1/nodes", Gpurest_Nodes="n1 up, n2 down https://n2:1,n3, N4 up, n5 odd, n6 up http://n6/path, ,n7  up").json()["items"]
    assert told == [{"name": "n1", "state": "up"}, {"name": "n2", "state": "down", "endpoint": "https://n2:1"}, {"name": "n3", "state": None}]


def test_names_of_files_are_no_ids(node):
    for path in ("/web/dashboard.js", "/web/style.css", "/problems/wrong_node"):
        node.get(path).expect(200)


def test_a_restarted_node_tells_so(start):
    before = start("--node", "n1").client()
    id = before.post("/v1/sessions").expect(201).json()["id"]
    assert before.get("/v1/sessions/" + id).status == 200
    after = start("--node", "n1").client()
    told = after.get("/v1/sessions/" + id).expect(404, "session_not_found").json()
    assert told["ended"]["reason"] == "node_restarted" and "restarted" in told["detail"]
    own = after.post("/v1/sessions").expect(201).json()["id"]
    unknown = own[:-1] + ("A" if own[-1] != "A" else "B")
    assert "ended" not in after.get("/v1/sessions/" + unknown).expect(404, "session_not_found").json()


def test_a_service_without_a_name_has_no_node(client):
    client.get("/v1/sessions/s_n2_" + MADE).expect(404, "session_not_found")
    client.put("/v1/sessions/n2.train").expect(400, "invalid_field")
    assert client.get("/version", Gpurest_Node="n2").status == 200
    assert "node" not in client.get("/version").json()


def test_a_name_that_cannot_stand_in_ids_is_refused(executable, tmp_path):
    for option, value in (("--node", "N1"), ("--node", "n_1"), ("--endpoint", "n1:8080"), ("--endpoint", "http://n1/path")):
        for more in ((), ("--check-config",)):
            got = run(executable, option, value, *more)
            assert got.returncode and option in got.stderr and "expected" not in got.stdout, got
