#!/usr/bin/env python3
"""Bundles openapi.yaml, paths/*.yaml and components/*.yaml into one OpenAPI document.

bundle.py json        prints it as JSON
bundle.py c OUT.c     writes it as C, in pieces: the service inserts the bounds of schemas with "x-limit"

examples/*.json are example answers.
"x-problems" of an operation lists codes of service/base/status.def; each becomes a response with its HTTP status.
Codes that any request may get (COMMON) are added to all operations. Equal error responses are shared in components.responses.
"x-null-is-absent" of a schema lets its optional members be null.
"""
import hashlib
import json
import pathlib
import re
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))
from c_text import c_literal  # noqa: E402

STATUSES = HERE.parent / "service" / "base" / "status.def"
METHODS = ("get", "put", "post", "delete", "patch")
COMMON = ["invalid_request", "unknown_field", "invalid_header", "framing_mismatch", "unauthenticated", "insufficient_scope", "origin_not_allowed",
          "request_timeout", "uri_too_long", "expectation_failed", "misdirected_request", "wrong_node", "rate_limited", "too_many_in_flight",
          "headers_too_large", "internal", "not_implemented", "overloaded", "out_of_memory", "http_version_not_supported"]
COMMON_WITH_BODY = ["digest_mismatch", "unsupported_digest", "body_too_large", "unsupported_media_type", "length_required"]
COMMON_WITH_PATH = ["not_found"]
COMMON_OF_SESSIONS = ["session_moved", "session_moving", "generation_changed"]
COMMON_OF_POSTS = ["idempotency_in_progress", "idempotency_key_reused", "replay_unavailable"]
BOUNDS = ("maximum", "maxLength", "maxItems", "maxProperties")
TOKEN = re.compile(r'"@limit:(\w+)@"')


def statuses():
    """{code: (HTTP status, title)}, without codes that never leave the service."""
    row = re.compile(r'STATUS\(\w+,\s*(\d+), "(\w+)",\s*"([^"]*)"')
    found = {code: (int(http), title) for http, code, title in row.findall(STATUSES.read_text())}
    return {code: what for code, what in found.items() if what[0] >= 400}


def add_idempotency(operation):
    """Every POST accepts an Idempotency-Key."""
    operation.setdefault("parameters", []).append({"$ref": "#/components/parameters/IdempotencyKey"})
    operation["x-problems"] = operation.get("x-problems", []) + COMMON_OF_POSTS


def add_problems(operation, path, known):
    codes = list(operation.pop("x-problems", [])) + COMMON
    codes += COMMON_WITH_BODY if "requestBody" in operation else []
    codes += COMMON_WITH_PATH if "{" in path else []
    codes += COMMON_OF_SESSIONS if path.startswith("/v1/sessions/{sid}") else []
    by_status = {}
    for code in dict.fromkeys(codes):
        by_status.setdefault(known[code][0], []).append(code)
    for status in sorted(by_status):
        response = operation["responses"].setdefault(str(status), {"description": ""})
        listed = "; ".join(f"{code}: {known[code][1].lower()}" for code in by_status[status])
        response["description"] = f"{response['description']}. {listed}".lstrip(". ")
        response.setdefault("content", {})["application/problem+json"] = {"schema": {"$ref": "#/components/schemas/Problem"}}
        if status in (429, 503):
            response.setdefault("headers", {})["Retry-After"] = {"$ref": "#/components/headers/RetryAfter"}


def add_examples(operation):
    """Answers of a real service in examples/OPERATION.STATUS.json. A test writes them and compares them with live answers."""
    for status, response in operation["responses"].items():
        file = HERE / "examples" / f"{operation['operationId']}.{status}.json"
        if file.exists():
            response["content"]["application/json"]["examples"] = {"answer": {"value": json.loads(file.read_text())}}


def share_responses(root):
    """Moves error responses that several operations share to components.responses."""
    places = {}
    for item in root["paths"].values():
        for operation in (item[method] for method in METHODS if method in item):
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    places.setdefault((status, json.dumps(response, sort_keys=True)), []).append(operation["responses"])
    shared = root["components"].setdefault("responses", {})
    for (status, text), users in sorted(places.items()):
        if len(users) > 1:
            name = f"Refused{status}_{hashlib.sha256(text.encode()).hexdigest()[:6]}"
            shared[name] = json.loads(text)
            for responses in users:
                responses[status] = {"$ref": f"#/components/responses/{name}"}


def add_common_headers(operation):
    for response in operation["responses"].values():
        response.setdefault("headers", {})["X-Request-Id"] = {"$ref": "#/components/headers/RequestId"}


def merged(root, folder, section):
    """Adds each file's members to the root's section; a duplicate name is an error."""
    for file in sorted((HERE / folder).glob("*.yaml")):
        for kind, members in yaml.safe_load(file.read_text()).items():
            target = root.setdefault(section, {}) if kind == section else root.setdefault(section, {}).setdefault(kind, {})
            twice = target.keys() & members.keys()
            if twice:
                raise SystemExit(f"{file.name}: {', '.join(sorted(twice))} twice")
            target.update(members)


def bundle():
    root = yaml.safe_load((HERE / "openapi.yaml").read_text())
    known = statuses()
    merged(root, "paths", "paths")
    merged(root, "components", "components")
    root = json.loads(json.dumps(root))  # YAML anchors share parts; from here on each part is a copy
    widen(root["components"]["schemas"])
    root["components"]["schemas"]["ProblemCode"] = {"type": "string", "enum": sorted(known)}
    for path, item in root["paths"].items():
        for method in METHODS:
            if method in item:
                if method == "post":
                    add_idempotency(item[method])
                add_problems(item[method], path, known)
                add_common_headers(item[method])
                add_examples(item[method])
    share_responses(root)
    return root


def nullable(schema):
    """The service treats null as absent."""
    return {"anyOf": [schema, {"type": "null"}]}


def widen(schemas):
    """Lets optional members of the schemas marked "x-null-is-absent" be null."""
    for schema in schemas.values():
        if schema.pop("x-null-is-absent", False):
            required = schema.get("required", [])
            schema["properties"] = {name: member if name in required else nullable(member) for name, member in schema["properties"].items()}


def with_tokens(node):
    """Replaces the bounds that "x-limit" names by tokens."""
    if isinstance(node, list):
        return [with_tokens(item) for item in node]
    if not isinstance(node, dict):
        return node
    limit = node.get("x-limit")
    return {key: f"@limit:{limit}@" if limit and key in BOUNDS else with_tokens(value) for key, value in node.items()}


def c_source(document):
    parts = TOKEN.split(json.dumps(with_tokens(document), separators=(",", ":"), ensure_ascii=False))
    parts.append("")
    rows = []
    for text, limit in zip(parts[0::2], parts[1::2]):
        rows.append(f"    {{\n{c_literal(text.encode())},\n        {len(text.encode())}, \"{limit}\"}},")
    return ("/* Made by openapi/bundle.py. */\n#include \"api/about/openapi_document.h\"\n\n"
            "const struct openapi_piece openapi_pieces[] = {\n" + "\n".join(rows) + "\n};\n"
            "const size_t openapi_pieces_count = sizeof openapi_pieces / sizeof openapi_pieces[0];\n")


def main(arguments):
    if arguments == ["json"]:
        json.dump(bundle(), sys.stdout, indent=1, ensure_ascii=False)
        print()
    elif len(arguments) == 2 and arguments[0] == "c":
        pathlib.Path(arguments[1]).write_text(c_source(bundle()))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
