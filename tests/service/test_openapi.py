"""The OpenAPI document against the service's tables, and against its real answers."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import VADD, floats

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENDPOINT = re.compile(r'^ENDPOINT(?:_BEGIN|_IN)?(?:_AS\(\w+,\s*|\()(\w+),\s*(\w+),\s*"([^"]+)",\s*(\w+),\s*([^,]+),\s*\w+[,)]', re.M)
BOUNDS = ("maximum", "maxLength", "maxItems", "maxProperties")
METHODS = {"get", "put", "post", "delete", "patch"}


def rows():
    return ENDPOINT.findall((ROOT / "service/api/endpoints.def").read_text())


def operations(document):
    for path, item in document["paths"].items():
        for method in METHODS & item.keys():
            yield method, path, item[method]


@pytest.fixture(scope="module")
def document(service):
    client = service.client()
    answer = client.get("/openapi.json")
    client.close()
    assert answer.status == 200
    return answer.json()


def test_every_row_of_the_table_is_an_operation_and_the_other_way_round(document):
    assert {(m.upper(), p, o["operationId"]) for m, p, o in operations(document)} == {(m, p, name) for name, m, p, _, _ in rows()}


def test_scopes_are_those_that_are_asked_for(document):
    wanted = {name: sorted(re.findall(r"SCOPE_(\w+)", scopes)) for name, _, _, _, scopes in rows()}
    for _, _, operation in operations(document):
        scopes = [s for s in wanted[operation["operationId"]] if s not in ("ANY", "NONE")]
        assert scopes == sorted(s.upper() for s in operation.get("x-scopes", [])), operation["operationId"]


def test_codes_are_those_of_the_table(document):
    table = re.findall(r'STATUS\(\w+,\s*(\d+), "(\w+)"', (ROOT / "service/base/status.def").read_text())
    assert document["components"]["schemas"]["ProblemCode"]["enum"] == sorted(code for http, code in table if int(http) >= 400)


def schemas_with_limits(node):
    if isinstance(node, dict):
        if "x-limit" in node:
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from schemas_with_limits(item)


def test_bounds_are_the_limits_of_this_service(client, document):
    limits = client.get("/v1/limits").json()["limits"]
    bounded = list(schemas_with_limits(document))
    assert len(bounded) > 10
    for schema in bounded:
        assert [schema[b] for b in BOUNDS if b in schema] == [limits[schema["x-limit"]]["max"]]


def test_every_success_and_every_request_says_what_it_is(document):
    for method, path, operation in operations(document):
        assert operation["summary"] and operation["tags"], (method, path)
        assert any(status.startswith("2") for status in operation["responses"]), (method, path)
        for status, response in operation["responses"].items():
            response = Checker.resolve_in(document, response)
            assert response["description"], (method, path, status)
            if int(status) >= 400 and "content" in response:
                assert "application/problem+json" in response["content"]
        for media_type, body in operation.get("requestBody", {}).get("content", {}).items():
            assert media_type != "application/json" or "schema" in body


def test_every_created_object_links_on(document):
    for method, path, operation in operations(document):
        if "201" in operation["responses"]:
            links = operation["responses"]["201"]["links"]
            known = {o["operationId"] for _, _, o in operations(document)}
            assert links and all(link["operationId"] in known for link in links.values()), (method, path)


def references(node):
    if isinstance(node, dict):
        yield from (value for name, value in node.items() if name == "$ref" and isinstance(value, str))
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for item in node:
            yield from references(item)


def test_refusals_are_shared_components(document):
    """Each is defined once, used more than once, and is an operation's whole answer of that status."""
    shared = document["components"]["responses"]
    used = [r for r in references(document["paths"]) if r.startswith("#/components/responses/")]
    assert {r.rsplit("/", 1)[1] for r in used} == set(shared) and all(used.count(r) > 1 for r in used)
    for _, _, operation in operations(document):
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                whole = Checker.resolve_in(document, response)
                assert whole["content"]["application/problem+json"]["schema"] == {"$ref": "#/components/schemas/Problem"}
                assert whole["headers"]["X-Request-Id"] and whole["description"]
    texts = [json.dumps(r, sort_keys=True) for _, _, o in operations(document) for s, r in o["responses"].items() if int(s) >= 400 and "$ref" not in r]
    assert len(texts) == len(set(texts)), "what stands twice is shared"


def test_every_reference_leads_somewhere(document):
    for reference in references(document):
        assert Checker.resolve_in(document, {"$ref": reference})


def test_sizes_are_numbers_or_decimal_texts(document):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    for name, least in (("Size", 1), ("Offset", 0)):
        schema = jsonschema.Draft202012Validator(document["components"]["schemas"][name])
        good, bad = [least, 4096, 1 << 53, "4096", str((1 << 53) + 1), str(1 << 62)], [least - 1, (1 << 53) + 1, 1.5, "", "-1", "1.5", "x", "1e3", True]
        assert all(schema.is_valid(value) for value in good) and not any(schema.is_valid(value) for value in bad), name


def test_texts_of_numbers_are_those_that_the_service_takes(client, session, document):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = jsonschema.Draft202012Validator(document["components"]["schemas"]["FloatValue"])
    client.put(session + "/buffers/n", {"size": 8}).expect(201)
    good = ["0", "-1.5", "1e5", "+1E-5", "1.", ".5", "-.5e+3", "1e0000005", "9" * 127, "nan", "-NaN", "inf", "+Inf", "-infinity", "0" * 126 + "1"]
    bad = ["", "1 ", " 1", ".", "e5", "1e", "1e+", "--1", "0x1", "1,5", "nan(1)", "infinit", "1.5.2", "1-2", "9" * 128]
    for text, taken in [(text, True) for text in good] + [(text, False) for text in bad]:
        assert schema.is_valid(text) == taken, text
        client.post(session + "/buffers/n/fill", {"pattern": {"f64": text}}).expect(204 if taken else 400)


def test_it_is_valid_openapi(document):
    validator = pytest.importorskip("openapi_spec_validator", reason="openapi-spec-validator is not installed")
    validator.validate(document)


def test_its_sources_are_tidy():
    pytest.importorskip("yamllint", reason="yamllint is not installed")
    run = subprocess.run([sys.executable, "-m", "yamllint", "-s", "-c", "openapi/.yamllint", "openapi"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


# ---- the examples, replayed ----

ORDER = """root_get docs_get web_get livez_get readyz_get lbz_get version_get problems_get openapi_get devices_list devices_get nodes_list limits_get kernels_list kernels_get cache_get warms_create cache_delete drain_post resume_post devices_reset
    sessions_create sessions_put sessions_list admin_list admin_get sessions_get sessions_patch buffers_create buffers_put buffers_list buffers_get buffers_fill
    data_put data_get buffers_copy buffers_compare textures_create textures_put textures_list textures_get modules_create modules_put modules_list modules_get modules_log modules_code
    launches_create launches_list launches_get batches_create run_create programs_put programs_run programs_get programs_list programs_delete memory_get memory_trim peak_reset sessions_sync sessions_heartbeat sessions_wake
    launches_delete textures_delete modules_delete buffers_delete sessions_reset sessions_delete""".split()
OCTETS = {"data_put": bytes(4096)}


def members(value):
    """Member names, without those that depend on the moment: items of lists, and members that only some items have."""
    return set(value) - {"fault", "label", "labels", "node", "links", "_links"} if isinstance(value, dict) else type(value)


class Checker:
    """Validates answers against the document."""

    def __init__(self, document):
        jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
        self.document = document
        self.validator = jsonschema.Draft202012Validator

    def resolve(self, node):
        return self.resolve_in(self.document, node)

    @staticmethod
    def resolve_in(document, node):
        while "$ref" in node:
            target = document
            for part in node["$ref"].lstrip("#/").split("/"):
                target = target[part]
            node = target
        return node

    def check(self, operation, answer):
        responses = operation["responses"]
        assert str(answer.status) in responses, (operation["operationId"], answer)
        response = self.resolve(responses[str(answer.status)])
        for name in response.get("headers", {}):
            if name in ("X-Request-Id", "Location"):
                assert answer.headers[name], (operation["operationId"], name)
        if not response.get("content"):
            assert answer.body == b""
            return
        media_type = answer.headers["Content-Type"].split(";")[0]
        assert media_type in response["content"], (operation["operationId"], media_type)
        if media_type.endswith("json"):
            schema = {**response["content"][media_type]["schema"], "components": self.document["components"]}
            self.validator(schema).validate(answer.json())
        if media_type == "application/json" and answer.status < 300:
            self.check_example(operation, answer.status, response["content"][media_type], answer.json())

    def check_example(self, operation, status, content, answer):
        """The example has the members of a live answer. GPUREST_WRITE_EXAMPLES=1 replaces it by the live one."""
        if os.environ.get("GPUREST_WRITE_EXAMPLES") and operation["operationId"] != "openapi_get":
            file = ROOT / "openapi/examples" / f"{operation['operationId']}.{status}.json"
            file.parent.mkdir(exist_ok=True)
            shown = {name: v[:2] if name == "items" else v[:1000] if isinstance(v, str) else v for name, v in answer.items()}
            file.write_text(json.dumps(shown, indent=1) + "\n")
            return
        for example in content.get("examples", {}).values():
            assert members(example["value"]) == members(answer), operation["operationId"]

    def path(self, path, operation):
        for parameter in map(self.resolve, operation.get("parameters", [])):
            if parameter["in"] == "path":
                path = path.replace("{%s}" % parameter["name"], parameter["example"])
        return path

    def body(self, operation):
        body = self.resolve(operation.get("requestBody", {})).get("content", {}).get("application/json", {})
        examples = [example["value"] for example in body.get("examples", {}).values()]
        assert "$ref" in str(body.get("schema", {})) or not body
        return examples[0] if examples else None


def test_the_examples_work_in_their_order(client, document):
    """The life of a session, run from the examples alone; every answer has the documented shape."""
    checker = Checker(document)
    by_id = {o["operationId"]: (m, p, o) for m, p, o in operations(document)}
    device = client.get("/v1/devices").json()["items"][0]["id"]
    told = 0
    for name in ORDER:
        method, path, operation = by_id[name]
        place = checker.path(path, operation).replace("cpu:0", device)
        headers = {"Content-Type": "application/octet-stream"} if name in OCTETS else {}
        answer = client.request(method.upper(), place, OCTETS.get(name) or checker.body(operation), headers)
        assert answer.status < 300, (name, place, answer)
        checker.check(operation, answer)
        told += 1
        if name == "buffers_put":
            for other in "bc":
                assert client.put_octets(place[:-1] + other, floats(range(1024))).status == 201
        if name == "sessions_create":
            assert client.delete(answer.headers["Location"]).status == 204
    assert told == len(ORDER)


def test_no_operation_lacks_its_replay(document):
    """Operations that are not in ORDER are tested elsewhere, by name."""
    elsewhere = ELSEWHERE
    assert {o["operationId"] for _, _, o in operations(document)} - set(ORDER) == elsewhere


ELSEWHERE = {"batches_get", "batches_result", "batches_delete", "run_get", "run_result", "run_delete"}  # test_batch_async.py
ELSEWHERE |= {"admin_delete"}  # test_operators.py
ELSEWHERE |= {"devices_patch"}  # test_device_settings.py
ELSEWHERE |= {"warms_get", "warms_delete"}  # test_cache.py
ELSEWHERE |= {"metrics_get", "events_get", "logging_get", "logging_put", "logs_get"}  # test_metrics.py, test_events.py, test_logging.py
ELSEWHERE |= {"sessions_hibernate"}  # test_hibernate.py
ELSEWHERE |= {"moves_create", "moves_delete", "moves_complete", "moves_confirm"}  # test_moves.py
ELSEWHERE |= {"snapshots_get"}  # test_snapshot.py
ELSEWHERE |= {"globals_get", "globals_put"}  # test_globals.py
ELSEWHERE |= {"texels_get", "texels_put"}  # test_textures.py
ELSEWHERE |= {"shares_open", "shares_move", "shares_close", "changes_get"}  # test_local_sharing.py, test_changes.py


def test_wrong_requests_get_documented_answers(client, document, vadd):
    checker = Checker(document)
    by_id = {o["operationId"]: o for _, _, o in operations(document)}
    for name, method, path, body in (
            ("sessions_get", "GET", "/v1/sessions/nobody", None),
            ("sessions_put", "PUT", vadd, {"device": "nowhere:7"}),
            ("sessions_create", "POST", "/v1/sessions", {"unknown": 1}),
            ("buffers_put", "PUT", vadd + "/buffers/a", {"size": 1}),
            ("buffers_put", "PUT", vadd + "/buffers/z", {"size": -1}),
            ("modules_create", "POST", vadd + "/modules", {"source": "this is no C"}),
            ("modules_create", "POST", vadd + "/modules", {"source": "", "options": ["--time=x"]}),
            ("launches_create", "POST", vadd + "/launches", {"module": "m", "kernel": "vadd", "grid": [1], "block": [1], "args": []}),
            ("launches_create", "POST", vadd + "/launches", {"module": "m", "kernel": "none", "grid": [1]}),
            ("batches_create", "POST", vadd + "/batches", {"ops": [{"op": "free", "buf": "$x"}]})):
        answer = client.request(method, path, body)
        assert answer.status >= 400 and answer.code
        checker.check(by_id[name], answer)


def test_the_example_of_limits_names_all_of_them(client):
    example = json.loads((ROOT / "openapi/examples/limits_get.200.json").read_text())
    assert list(example["limits"]) == list(client.get("/v1/limits").json()["limits"])


# ---- schemathesis ----

def prepare(client):
    """The objects that openapi/schemathesis.toml expects."""
    session = "/v1/sessions/demo"
    for path in (session, "/v1/sessions/empty"):
        assert client.put(path).status == 201
    assert client.put_cuda(session + "/modules/m", VADD).status == 201
    for name in "abc":
        assert client.put_octets(f"{session}/buffers/{name}", floats(range(1024))).status == 201
    launch = {"id": "first", "module": "m", "kernel": "vadd", "grid": [4], "block": [256],
              "args": [{"buf": "a"}, {"buf": "b"}, {"buf": "c"}, {"i32": 1024}]}
    assert client.post(session + "/launches", launch).status == 200


def test_schemathesis_finds_nothing(start, tmp_path):
    """A small number of examples; SCHEMATHESIS_EXAMPLES=100 for more."""
    pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    service = start()
    client = service.client()
    prepare(client)
    run = subprocess.run([sys.executable, "-m", "schemathesis.cli", "--config-file", str(ROOT / "openapi/schemathesis.toml"), "run",
                          f"http://{service.host}:{service.port}/openapi.json", "--max-examples", os.environ.get("SCHEMATHESIS_EXAMPLES", "5")],
                         cwd=tmp_path, capture_output=True, text=True, timeout=3600)
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    assert service.process.poll() is None
    assert client.get("/livez").status == 200
