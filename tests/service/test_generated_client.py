"""A client generated from the OpenAPI document by a third-party generator: it is complete, compiles, and does the main task on a live
service."""
import importlib
import io
import json
import pathlib
import subprocess
import sys

import pytest

from conftest import VADD, floats

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = "gpurest_generated_client"


@pytest.fixture(scope="module")
def generated(service, tmp_path_factory):
    """The package, imported."""
    pytest.importorskip("openapi_python_client", reason="openapi-python-client is not installed")
    folder = tmp_path_factory.mktemp("generated")
    client = service.client()
    (folder / "openapi.json").write_bytes(client.get("/openapi.json").body)
    client.close()
    made = subprocess.run([sys.executable, "-m", "openapi_python_client", "generate", "--path", str(folder / "openapi.json"), "--meta", "none",
                           "--config", str(ROOT / "openapi/openapi-python-client.yaml"), "--output-path", str(folder / PACKAGE)],
                          cwd=folder, capture_output=True, text=True, timeout=180)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "WARNING" not in made.stdout + made.stderr, made.stdout + made.stderr
    compiled = subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder / PACKAGE)], capture_output=True, text=True, timeout=180)
    assert compiled.returncode == 0, compiled.stdout
    sys.path.insert(0, str(folder))
    yield importlib.import_module(PACKAGE)
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def call(generated, service):
    """call("sessions_put", …): the operation's parsed answer."""
    client = generated.Client(base_url=f"http://127.0.0.1:{service.port}", timeout=60)
    folder = pathlib.Path(generated.__file__).parent / "api"
    places = {file.stem: f"{PACKAGE}.api.{file.parent.name}.{file.stem}" for file in folder.glob("*/*.py")}

    def operation(name, *arguments, **named):
        return importlib.import_module(places[name]).sync_detailed(*arguments, client=client, **named)

    operation.names = set(places) - {"__init__"}
    return operation


def test_every_operation_is_there(call, client):
    document = json.loads(client.get("/openapi.json").body)
    assert call.names == {o["operationId"] for item in document["paths"].values() for method, o in item.items() if method != "parameters"}


def test_it_lists_the_devices(call, client):
    ours = client.get("/v1/devices").json()["items"]
    answer = call("devices_list")
    assert answer.status_code == 200
    assert [(d.id, d.memory.total_bytes, d.state.value) for d in answer.parsed.items] == [(d["id"], d["memory"]["total_bytes"], d["state"]) for d in ours]


def test_it_does_the_main_job(generated, call):
    models, types = (importlib.import_module(f"{PACKAGE}.{name}") for name in ("models", "types"))
    sid, n = "generated", 1000
    a, b = list(range(n)), [2 * i for i in range(n)]
    assert call("sessions_put", sid, body=models.SessionRequest()).status_code == 201
    for name, values in (("a", a), ("b", b)):
        assert call("buffers_put", sid, name, body=types.File(payload=io.BytesIO(floats(values)))).status_code == 201
    assert call("buffers_put", sid, "c", body=models.BufferRequest(size=4 * n)).parsed.size == 4 * n
    module = call("modules_put", sid, "m", body=models.ModuleRequest(source=VADD))
    assert module.status_code == 201 and [k.name for k in module.parsed.kernels] == ["vadd"]
    arguments = [models.BufferArgument(buf=name) for name in "abc"] + [models.Scalar.from_dict({"i32": n})]
    launched = call("launches_create", sid, body=models.LaunchRequest(module="m", kernel="vadd", grid=[4], block=[256], args=arguments))
    assert (launched.status_code, launched.parsed.state.value) == (200, "succeeded")
    assert call("data_get", sid, "c").content == floats(3 * i for i in range(n))
    assert call("sessions_delete", sid).status_code == 204


def test_refusals_are_problems_to_it(generated, call):
    models = importlib.import_module(f"{PACKAGE}.models")
    answer = call("sessions_get", "nobody")
    assert answer.status_code == 404
    assert isinstance(answer.parsed, models.Problem) and answer.parsed.code == models.ProblemCode.SESSION_NOT_FOUND


@pytest.mark.parametrize("argument", [{"buf": "a"}, {"buf": "a", "offset": 4}, {"buf": "a", "offset": "9007199254740993"}, {"i32": 5}, {"u64": "9007199254740993"},
                                      {"f32": 1.5}, {"bool": True}, {"bytes": "AAAA"}, {"struct": [{"i8": 1}, {"buf": "a"}]}])
def test_arguments_survive_its_models(generated, argument):
    models = importlib.import_module(f"{PACKAGE}.models")
    request = {"module": "m", "kernel": "k", "grid": [1], "block": [1], "args": [argument, argument]}
    assert models.LaunchRequest.from_dict(json.loads(json.dumps(request))).to_dict() == request
    op = {"op": "launch", "kernel": "k", "grid": [1], "args": [argument]}
    assert models.BatchRequest.from_dict({"ops": [op]}).to_dict()["ops"] == [op]


@pytest.mark.parametrize("size", [4096, "4096"])
def test_sizes_survive_its_models(generated, size):
    models = importlib.import_module(f"{PACKAGE}.models")
    assert models.BufferRequest.from_dict({"size": size}).to_dict() == {"size": size}


def test_a_module_from_raw_source(generated, call):
    models, types = (importlib.import_module(f"{PACKAGE}.{name}") for name in ("models", "types"))
    assert call("sessions_put", "raw", body=models.SessionRequest()).status_code == 201
    put = call("modules_put", "raw", "m", body=types.File(payload=io.BytesIO(VADD.encode())))
    assert put.status_code == 201 and [k.name for k in put.parsed.kernels] == ["vadd"], put.content
    posted = call("modules_create", "raw", body=types.File(payload=io.BytesIO(VADD.replace("vadd", "other").encode())))
    assert posted.status_code == 201 and posted.parsed.id.startswith("m_"), posted.content
    assert call("sessions_delete", "raw").status_code == 204


def test_a_name_with_a_colon(call, client):
    """The client writes cpu%3A0, which is the same name."""
    device = client.get("/v1/devices").json()["items"][0]["id"]
    answer = call("devices_get", device)
    assert answer.status_code == 200 and answer.parsed.id == device
