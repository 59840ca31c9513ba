"""Shapes of built-in kernels over HTTP: measured, asked for by name, shown, kept for the next process. On the cpu device; and on a fake GPU, where a file
says how long each shape takes."""
import hashlib
import json
import os
import pathlib

import pytest

import batch_client
from service_under_test import Service

S = "/v1/sessions/e"
N = 65536
ADD = {"builtin": "add", "dtype": "f32", "args": [{"buf": "a"}, {"buf": "b"}, {"buf": "c"}, {"u64": N}]}
SHAPES = {"default": 256, "threads_128": 128, "threads_512": 512, "threads_1024": 1024}


def tune(client, kernel="add", dtype="f32", values=None, **more):
    return client.post(f"/v1/kernels/{kernel}/tune", {"dtype": dtype, "values": {"n": N} if values is None else values, **more})


def tunings(client, kernel="add"):
    """Of one device: those of a kind know the same."""
    known = client.get(f"/v1/kernels/{kernel}").json()["tunings"]
    return [one for one in known if one["device"] == known[0]["device"]]


def launched(client, session=S, **where):
    """The kernel as it is launched now."""
    if client.put(session, where or None).status == 201:
        for name in "abc":
            assert client.put(f"{session}/buffers/{name}", {"size": 4 * N}).status == 201
    answer = client.post(session + "/launches", ADD, Prefer="wait=60")
    assert answer.status == 200 and answer.json()["state"] == "succeeded", answer
    return answer.json()


def block(client, session=S, **where):
    return launched(client, session, **where)["block"]


def elements_per_thread(client):
    done = launched(client)
    return N / (done["grid"][0] * done["block"][0])


# ---- on the device under test ----

@pytest.fixture
def one(start, tmp_path):
    """A service of its own: choices outlast a test."""
    service = start("--cache", str(tmp_path / "cache"))
    client = service.client()
    yield client
    client.close()
    assert service.process.poll() is None, service.stderr()[-4000:]


def test_what_shapes_there_are(client):
    kernels = {item["name"]: item for item in client.get("/v1/kernels?limit=1000").json()["items"]}
    assert kernels["add"]["candidates"] == list(SHAPES)
    assert kernels["softmax"]["candidates"] == ["default"]
    assert client.get("/v1/kernels/softmax").json()["tunings"] == []


def test_nothing_is_measured_unasked(one):
    assert block(one) == [256, 1, 1]
    assert tunings(one) == []


def test_a_thread_takes_what_is_best_for_its_device(one):
    """Two vectors of four on the cpu device, in whatever blocks; one on a GPU."""
    for candidate in ("default", "threads_512"):
        assert tune(one, candidate=candidate).status == 200
        assert elements_per_thread(one) == (4 if "cuda" in os.environ.get("GPUREST_TEST_BACKENDS", "cpu") else 8)


def test_a_measurement_says_what_it_found_and_launches_follow_it(one):
    answer = tune(one)
    assert answer.status == 200, answer
    done = answer.json()
    assert [c["name"] for c in done["candidates"]] == list(SHAPES)
    assert all(c["outcome"] == "measured" and c["us"] > 0 for c in done["candidates"])
    times = {c["name"]: c["us"] for c in done["candidates"]}
    least = min(times.values())
    assert done["candidate"] == ("default" if least >= times["default"] * 0.97 else min(times, key=times.get))
    assert not done["requested"] and not done["kept"] and done["rounds"] >= 9 and done["bytes"] == 12 * N
    assert done["least_bytes"] <= 12 * N <= done["most_bytes"] == 4 * done["least_bytes"] - 1
    known, = tunings(one)
    assert known == {**{k: v for k, v in done.items() if k != "bytes"}, "candidates": [{"name": c["name"], "us": c["us"]} for c in done["candidates"]]}
    assert block(one) == [SHAPES[done["candidate"]], 1, 1]


def test_a_shape_by_name_and_back(one):
    block(one)
    for name, threads in [*SHAPES.items(), ("default", 256)]:
        answer = tune(one, candidate=name)
        assert answer.status == 200 and answer.json()["candidate"] == name and answer.json()["requested"], answer
        assert {c["name"] for c in answer.json()["candidates"] if c["us"]} == {"default", name}
        assert block(one) == [threads, 1, 1]
    assert len(tunings(one)) == 1


def test_a_choice_is_for_its_dtype_and_sizes(one):
    assert tune(one, candidate="threads_512", dtype="f64").status == 200
    assert tune(one, candidate="threads_128", values={"n": 100}).status == 200
    assert block(one) == [256, 1, 1]
    assert {(t["dtype"], t["candidate"]) for t in tunings(one)} == {("f64", "threads_512"), ("f32", "threads_128")}


def test_it_leaves_nothing_behind(one):
    assert tune(one, candidate="threads_512").status == 200
    assert one.get("/v1/sessions").json()["items"] == []
    limits = one.get("/v1/limits").json()["limits"]
    assert limits["sessions"]["used"] == 0
    block(one)
    before = one.get(S + "/buffers").json()["items"]
    assert tune(one, candidate="threads_128").status == 200
    assert one.get(S + "/buffers").json()["items"] == before
    assert len(one.get(S + "/launches").json()["items"]) == 1


def test_programs_and_batches_follow_a_choice_that_changes(one):
    size = 4 * N
    ops = [{"op": "alloc", "as": "$a", "size": size}, {"op": "alloc", "as": "$b", "size": size}, {"op": "alloc", "as": "$c", "size": size},
           {"op": "fill", "to": "$a", "pattern": {"f32": 1}}, {"op": "fill", "to": "$b", "pattern": {"f32": 2}}]
    args = [{"buf": "$a"}, {"buf": "$b"}, {"buf": "$c"}, {"u64": N}]
    back = [{"buf": "$c"}, {"buf": "$b"}, {"buf": "$c"}, {"u64": N}]
    ops += [{"op": "launch", "builtin": "add", "dtype": "f32", "args": args}, {"op": "launch", "builtin": "add", "dtype": "f32", "args": back},
            {"op": "read", "from": "$c", "segment": "c"}]
    assert one.put(S).status == 201
    assert one.put(S + "/programs/p", {"ops": ops}).status == 201
    for candidate in ("default", "threads_512", "threads_128", "default"):
        assert tune(one, candidate=candidate).status == 200
        for path, body in ((S + "/programs/p/runs", {}), (S + "/batches", {"ops": ops}), ("/v1/run", {"ops": ops})):
            answer = batch_client.send(one, path, body, {})
            assert answer.status == 200, (candidate, path, answer)
            assert answer.segments["c"] == b"\0\0\xa0\x40" * N, (candidate, path)


def refused(client, status, code, pointer=None, **request):
    answer = tune(client, **request)
    assert (answer.status, answer.code) == (status, code), answer
    if pointer:
        assert answer.json()["errors"][0]["pointer"] == pointer, answer


def test_what_is_refused(client):
    refused(client, 404, "kernel_not_found", kernel="nothing")
    refused(client, 422, "launch_config_invalid", kernel="softmax", values={"rows": 1, "columns": 1})
    refused(client, 400, "invalid_field", "/dtype", dtype="bool")
    refused(client, 400, "invalid_field", "/candidate", candidate="fast")
    refused(client, 400, "invalid_field", "/values/n", values={})
    refused(client, 400, "invalid_field", "/values/n", values={"n": "many"})
    refused(client, 400, "invalid_field", "/values/n", values={"n": -1})
    refused(client, 400, "unknown_field", "/values/m", values={"n": 1, "m": 1})
    refused(client, 400, "invalid_field", "/values", values=[])
    refused(client, 400, "invalid_field", "/device", device="")
    refused(client, 404, "device_not_found", device="nowhere:7")
    refused(client, 422, "argument_mismatch", "/values", values={"n": str(2 ** 64 - 1)})
    refused(client, 422, "argument_mismatch", "/values/length", kernel="reduce_min_axis", values={"outer": 4, "length": 0, "inner": 1})
    refused(client, 422, "launch_config_invalid", "/candidate", kernel="reduce_sum_axis", values={"outer": 4, "length": 4, "inner": 4}, candidate="warps_4")
    assert client.post("/v1/kernels/add/tune", {"dtype": "f32", "values": {"n": 1}, "fast": True}).code == "unknown_field"
    assert tunings(client) == []


def test_a_kernel_that_faults_ends_nothing_but_the_measurement(one):
    """Of no rows none can be chosen."""
    answer = tune(one, kernel="gather", values={"n": 10, "rows": 0, "width": 1})
    assert answer.status == 422 and answer.code == "kernel_fault", answer
    assert tunings(one, "gather") == []
    assert tune(one, candidate="threads_128").status == 200
    assert block(one) == [128, 1, 1]


def test_it_is_the_operators(start, tmp_path):
    tokens = [{"name": name, "sha256": hashlib.sha256(name.encode()).hexdigest(), "scopes": ["read", "write", "compile", "launch", *more]}
              for name, more in (("user", []), ("boss", ["admin"]))]
    (tmp_path / "tokens").write_text(json.dumps({"tokens": tokens}))
    (tmp_path / "tokens").chmod(0o600)
    service = start("--tokens", str(tmp_path / "tokens"))
    user, boss = service.client(Authorization="Bearer user"), service.client(Authorization="Bearer boss")
    assert tune(user).code == "insufficient_scope"
    assert tune(boss, candidate="threads_512").status == 200
    assert block(user) == [512, 1, 1]
    assert tunings(user)[0]["candidate"] == "threads_512"
    user.close()
    boss.close()


def test_the_next_process_knows_unless_the_file_is_damaged(start, tmp_path):
    folder = tmp_path / "cache"
    client = start("--cache", str(folder)).client()
    before = set((folder / "code-2").iterdir())
    assert tune(client, candidate="threads_512").status == 200
    kept, = tunings(client)
    client.close()
    client = start("--cache", str(folder)).client()
    assert block(client) == [512, 1, 1]
    assert tunings(client) == [{**kept, "kept": True}]
    client.close()
    file, = (f for f in set((folder / "code-2").iterdir()) - before if f.stat().st_size == 48 + 96)
    data = bytearray(file.read_bytes())
    data[60] ^= 1
    file.write_bytes(data)
    client = start("--cache", str(folder)).client()
    assert block(client) == [256, 1, 1] and tunings(client) == [] and not file.exists()
    assert tune(client, candidate="threads_128").status == 200 and block(client) == [128, 1, 1]
    client.close()


# ---- on a fake GPU whose kernels take the time that is written down ----

@pytest.fixture
def gpu(executable, tmp_path):
    """gpu(times, driver) starts a service there; one cache for all of them."""
    library = pathlib.Path(executable).parents[1] / "tests" / "support" / "libcuda.so.1"
    if not library.exists():
        pytest.skip("the fake driver was not built beside GPURESTD")
    running = []

    def start_one(times, driver=13000, devices=1):
        folder = tmp_path / f"gpu{len(running)}"
        folder.mkdir()
        mine = folder / library.name
        mine.write_bytes(library.read_bytes())
        mine.with_name(mine.name + ".driver").write_text(str(driver))
        mine.with_name(mine.name + ".devices").write_text(str(devices))
        mine.with_name(mine.name + ".times").write_text("random 0 1\n" + "".join(f"binary {SHAPES[name]} {us}\n" for name, us in times.items()))
        running.append(Service(executable, folder, "--backends", "cuda", "--libcuda", str(mine), "--vendor-libraries", "off", "--cache", str(tmp_path / "cache")))
        return running[-1].client()

    yield start_one
    for service in running:
        service.stop()


SLOW = {"default": 5000000, "threads_128": 6000000, "threads_512": 3000000, "threads_1024": 4000000}


def test_the_fastest_is_taken_and_kept(gpu):
    client = gpu(SLOW)
    done = tune(client, device="cuda:0").json()
    assert done["candidate"] == "threads_512", done
    for c in done["candidates"]:
        assert SLOW[c["name"]] <= c["us"] < SLOW[c["name"]] + 900000
    assert block(client) == [512, 1, 1]
    again = gpu({name: 1 for name in SHAPES})
    assert block(again) == [512, 1, 1]
    assert tunings(again) == [{**tunings(client)[0], "kept": True}]


def test_a_thread_of_a_gpu_takes_one_vector(gpu):
    assert elements_per_thread(gpu(SLOW)) == 4


def test_what_is_hardly_faster_is_not_taken(gpu):
    client = gpu({"default": 10000000, "threads_128": 9800000, "threads_512": 11000000, "threads_1024": 11000000})
    assert tune(client).json()["candidate"] == "default"
    assert block(client) == [256, 1, 1]


def test_another_driver_is_measured_anew(gpu):
    assert tune(gpu(SLOW)).json()["candidate"] == "threads_512"
    client = gpu({**SLOW, "threads_128": 1000000}, driver=13010)
    assert tunings(client) == [] and block(client) == [256, 1, 1]
    assert tune(client).json()["candidate"] == "threads_128"
    assert block(gpu(SLOW)) == [512, 1, 1] and block(gpu(SLOW, driver=13010)) == [128, 1, 1]


def test_a_shape_of_other_results_is_never_taken(gpu):
    client = gpu({**SLOW, "threads_512": "3000000!"})
    done = tune(client).json()
    assert [(c["name"], c["outcome"]) for c in done["candidates"]] == [
        ("default", "measured"), ("threads_128", "measured"), ("threads_512", "differs"), ("threads_1024", "measured")]
    assert done["candidate"] == "threads_1024" and done["candidates"][2]["us"] is None
    answer = tune(client, candidate="threads_512")
    assert (answer.status, answer.code) == (422, "launch_config_invalid") and "differ" in answer.json()["detail"], answer
    assert block(client) == [1024, 1, 1]


def test_all_devices_of_a_kind_follow(gpu):
    client = gpu(SLOW, devices=3)
    assert block(client, device="cuda:2") == [256, 1, 1]
    assert tune(client, device="cuda:1").json()["candidate"] == "threads_512"
    known = client.get("/v1/kernels/add").json()["tunings"]
    assert [one["device"] for one in known] == ["cuda:0", "cuda:1", "cuda:2"]
    assert all({**one, "device": ""} == {**known[0], "device": ""} for one in known)
    assert block(client) == [512, 1, 1]
