"""Style rules of the contract beyond validity: what readers and client generators expect of every operation."""
import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
METHODS = ("get", "put", "post", "delete", "patch")


def bundled():
    try:
        import yaml  # noqa: F401
    except ImportError:
        return {"paths": {}, "components": {}}
    made = subprocess.run([sys.executable, ROOT / "openapi/bundle.py", "json"], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(made.stdout)


DOCUMENT = bundled()
OPERATIONS = [(method, path, item[method]) for path, item in DOCUMENT["paths"].items() for method in METHODS if method in item]
pytestmark = pytest.mark.skipif(not OPERATIONS, reason="PyYAML is not installed")
every_operation = pytest.mark.parametrize("method,path,operation", OPERATIONS, ids=[o["operationId"] for _, _, o in OPERATIONS])


def resolved(node):
    while "$ref" in node:
        target = DOCUMENT
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def parameters(operation):
    return [resolved(p) for p in operation.get("parameters", [])]


def json_contents(operation):
    """(place, content) of every JSON body of requests and answers."""
    body = resolved(operation.get("requestBody", {})).get("content", {})
    if "application/json" in body:
        yield "request", body["application/json"]
    for status, response in operation["responses"].items():
        content = resolved(response).get("content", {})
        if status.startswith("2") and "application/json" in content:
            yield status, content["application/json"]


def names_of_members(node):
    if isinstance(node, dict):
        for name, value in node.items():
            yield name
            yield from names_of_members(value)
    elif isinstance(node, list):
        for value in node:
            yield from names_of_members(value)


def test_no_sentence_is_cut_at_its_comma():
    """In YAML's braces a comma ends an unquoted text, and what follows becomes a member."""
    assert [name for name in names_of_members(DOCUMENT) if " " in name] == []


@every_operation
def test_names(method, path, operation):
    """noun_verb; the summary is a title, not a sentence."""
    assert re.fullmatch(r"[a-z]+_[a-z]+", operation["operationId"])
    assert re.fullmatch(r"[A-Z].{2,69}[^.]", operation["summary"]), operation["summary"]


@every_operation
def test_one_tag_that_is_declared(method, path, operation):
    (tag,) = operation["tags"]
    assert tag in {t["name"] for t in DOCUMENT["tags"]}


@every_operation
def test_parameters_are_told_and_complete(method, path, operation):
    in_path = {p["name"] for p in parameters(operation) if p["in"] == "path"}
    assert in_path == set(re.findall(r"\{(\w+)\}", path))
    names = [(p["in"], p["name"]) for p in parameters(operation)]
    assert len(set(names)) == len(names)
    for p in parameters(operation):
        assert p["description"] and "schema" in p, p["name"]
        assert p["in"] != "path" or (p["required"] and "example" in p), p["name"]
        assert p["in"] != "query" or re.fullmatch(r"[a-z_]+", p["name"]), p["name"]


@every_operation
def test_examples_are_of_their_schemas_and_none_is_missing(method, path, operation):
    """At least one successful JSON answer has an example. Exceptions: the document itself, and deletions, whose answers are those of GET."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    shown = {}
    for where, content in json_contents(operation):
        schema = {**content["schema"], "components": DOCUMENT["components"]}
        shown.setdefault("request" if where == "request" else "answer", []).extend(content.get("examples", {}))
        for example in content.get("examples", {}).values():
            jsonschema.Draft202012Validator(schema).validate(example["value"])
    assert all(shown.values()) or operation["operationId"] == "openapi_get" or method == "delete", shown


@every_operation
def test_every_body_says_its_schema(method, path, operation):
    bodies = [resolved(operation.get("requestBody", {}))] + [resolved(r) for r in operation["responses"].values()]
    for body in bodies:
        for media_type, content in body.get("content", {}).items():
            assert content.get("schema"), media_type


def test_tags_are_told_and_used():
    used = {operation["tags"][0] for _, _, operation in OPERATIONS}
    assert {t["name"] for t in DOCUMENT["tags"]} == used
    assert all(t["description"] for t in DOCUMENT["tags"])


def test_members_are_in_snake_case():
    wrong = [f"{name}.{member}" for name, schema in DOCUMENT["components"]["schemas"].items() for member in schema.get("properties", {})
             if not re.fullmatch(r"[a-z][a-z0-9_]*", member)]
    assert not wrong


def test_request_objects_are_closed():
    """An unknown member is the client's mistake, and the schema refuses it."""
    asked = {content["schema"]["$ref"].rsplit("/", 1)[1] for _, _, o in OPERATIONS for where, content in json_contents(o)
             if where == "request" and "$ref" in content["schema"]}
    assert asked
    open_ones = [name for name in asked if DOCUMENT["components"]["schemas"][name].get("additionalProperties") is not False]
    assert not open_ones


def references(node):
    if isinstance(node, dict):
        yield from ([node["$ref"]] if "$ref" in node else [])
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from references(item)


def test_every_component_is_used():
    used = set(references(DOCUMENT))
    unused = [f"#/components/{kind}/{name}" for kind, members in DOCUMENT["components"].items() if kind != "securitySchemes" for name in members]
    assert [name for name in unused if name not in used] == []
