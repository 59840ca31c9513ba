#!/usr/bin/env python3
"""docs_pages.py FOLDER: writes the pages of the site into FOLDER, laid out as in the repository, so that the same links work in both.

Written pages are copied. Reference pages are generated: the HTTP API from openapi/, problem codes and settings from the service's
tables, the C API from its headers, the Python API (for mkdocstrings) from the package's exports."""
import ast
import inspect
import json
import operator
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
for folder in ("openapi", "sdk/c/man", "sdk/python"):
    sys.path.insert(0, str(ROOT / folder))
import bundle  # noqa: E402
import gpurest  # noqa: E402
import make_man  # noqa: E402

WRITTEN = ("README.md", "SECURITY.md", "docs/**/*.md", "docs/img/*", "docker/README.md", "docker/monitoring/README.md", "service/README.md",
           "sdk/*/README.md", "sdk/python/docs/*.md", "sdk/python/docs/img/*")
C_HEADERS = ("gpurest.h", "share.h", "texture.h", "builtin.h", "cache.h")
PYTHON_MODULES = ("gpurest.errors", "gpurest.cuda", "gpurest.cuda.profiler", "gpurest.aio", "gpurest.linalg", "gpurest.random", "gpurest.profiler", "gpurest.testing", "gpurest.core", "gpurest.dask")
COMMON_PROBLEMS = list(dict.fromkeys(bundle.COMMON + bundle.COMMON_WITH_BODY + bundle.COMMON_WITH_PATH + bundle.COMMON_OF_POSTS))
SCHEMA_REF = "#/components/schemas/"
SETTING = re.compile(r"^SETTING_(\w+)\((\w+), (.*)\)$", re.M)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
CONSTANT = re.compile(r"^\s*(?:#define\s+)?([A-Z][A-Z0-9_]+)(?:\s*=\s*|\s+)([^,/]+?),?\s*(?:/\*.*)?$", re.M)
STATUS = re.compile(r'^STATUS\(\w+,\s*(\d+), "(\w+)",\s*"([^"]*)",\s*([01])\)', re.M)


def copy_written(out):
    for pattern in WRITTEN:
        for path in ROOT.glob(pattern):
            target = out / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def cell(text):
    """For a table: one line, no bars."""
    return re.sub(r"\s+", " ", str(text)).replace("|", "\\|").strip()


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(cell, row)) + " |" for row in rows]) + "\n"


# ---- the HTTP API ----

def resolved(document, node):
    """The target of a reference; anything else unchanged."""
    while isinstance(node, dict) and "$ref" in node:
        target = document
        for part in node["$ref"][2:].split("/"):
            target = target[part]
        node = target
    return node


def schema_name(schema):
    """A link to the schema if it has a name; else its type."""
    ref = schema.get("$ref", "")
    if ref.startswith(SCHEMA_REF):
        name = ref[len(SCHEMA_REF):]
        return f"[{name}](http-schemas.md#{name.lower()})"
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else kind


def contents(node):
    return ", ".join(f"`{kind}`: {schema_name(body.get('schema', {}))}" for kind, body in node.get("content", {}).items())


def operation_text(document, method, path, operation):
    yield f"### `{method.upper()} {path}`\n"
    yield f"{operation['summary']}. {operation.get('description', '')}\n"
    scopes = operation.get("x-scopes")
    yield f"Operation `{operation['operationId']}`" + (f", scopes {', '.join(f'`{scope}`' for scope in scopes)}" if scopes else "") + ".\n"
    parameters = [resolved(document, parameter) for parameter in operation.get("parameters", [])]
    if parameters:
        yield table(("parameter", "in", "type", ""), [(f"`{one['name']}`", one["in"], schema_name(one.get("schema", {})), one.get("description", ""))
                                                      for one in parameters])
    if "requestBody" in operation:
        body = resolved(document, operation["requestBody"])
        yield f"Body: {contents(body)}. {body.get('description', '')}\n"
    answers = {status: resolved(document, answer) for status, answer in operation["responses"].items()}
    yield table(("answer", "", "body"), [(status, answer["description"], contents(answer)) for status, answer in answers.items() if int(status) < 400])
    problems = [code for status, answer in answers.items() if int(status) >= 400 for code in re.findall(r"(\w+): ", answer["description"])
                if code not in COMMON_PROBLEMS]
    if problems:
        yield "Problems: " + ", ".join(f"`{code}`" for code in problems) + ".\n"


def http_api(document):
    lines = ["# HTTP API\n", document["info"]["description"], "",
             "Made from `openapi/`. A running service has the same contract, with its own limits, at `/openapi.json` and `/docs`.\n",
             "[Problem codes](problem-codes.md) explains all problems. Operations list their own; these may be the answer to any request: "
             + ", ".join(f"`{code}`" for code in COMMON_PROBLEMS) + ".\n"]
    for tag in document["tags"]:
        lines.append(f"## {tag['name']}\n\n{tag['description']}\n")
        for path, item in document["paths"].items():
            for method in bundle.METHODS:
                if tag["name"] in item.get(method, {}).get("tags", ()):
                    lines += operation_text(document, method, path, item[method])
    return "\n".join(lines)


def http_schemas(document):
    lines = ["# HTTP schemas\n", "Made from `openapi/`.\n"]
    for name, schema in sorted(document["components"]["schemas"].items()):
        lines.append(f"## {name}\n\n```json\n{json.dumps(schema, indent=2, ensure_ascii=False)}\n```\n")
    return "\n".join(lines)


def problem_codes():
    rows = [(f"`{code}`", status, title, "yes" if retryable == "1" else "") for status, code, title, retryable in
            STATUS.findall(bundle.STATUSES.read_text()) if int(status) >= 400]
    return ("# Problem codes\n\nMade from `service/base/status.def`. The identical request may succeed later where *retryable* says so.\n\n"
            + table(("code", "HTTP status", "title", "retryable"), rows))


# ---- settings ----

def constants():
    """Names of bounds, and their values as written."""
    return {name: value for path in (ROOT / "service").rglob("*.h") for name, value in CONSTANT.findall(path.read_text())}


def number(text, known, depth=8):
    """A constant expression's value; the text if it is not constant."""
    operations = {ast.Mult: operator.mul, ast.Add: operator.add, ast.Sub: operator.sub}

    def value(node):
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name) and depth and node.id in known:
            return number(known[node.id], known, depth - 1)
        if isinstance(node, ast.BinOp) and type(node.op) in operations:
            return operations[type(node.op)](value(node.left), value(node.right))
        raise ValueError(text)

    try:
        return value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError):
        return text


def setting_row(kind, name, rest, known):
    strings = STRING.findall(rest)
    default, values = "", {"SWITCH": "switch", "LIST": "repeatable"}.get(kind, "text")
    if kind == "NUMBER":
        default, least, most = (number(part, known) for part in rest.split(",")[:3])
        values = f"{least} to {most}"
    elif kind == "CHOICE":
        default, values = strings[0], strings[1].replace("|", ", ")
    elif kind == "TEXT":
        default = strings[0]
    return f"`--{name.replace('_', '-')}`", default, values, strings[-1].replace('\\"', '"')


def settings():
    known = constants()
    rows = [setting_row(*found, known) for found in SETTING.findall((ROOT / "service/config/config.def").read_text())]
    return ("# Settings\n\nMade from `service/config/config.def`. [Configure](../operations/configuration.md) says how flags, variables and the file go "
            "together.\n\n" + table(("flag", "default", "values", ""), rows))


# ---- the C API ----

def types_of(body):
    """A group's declarations besides functions."""
    left = re.sub(r"(?:/\*(?:(?!\*/).)*\*/\s*)?GPUREST_API[^;]*;[^\n]*\n", "", body, flags=re.S)
    return re.sub(r"\n{3,}", "\n\n", left).strip()


def c_api():
    headers = {name: (ROOT / "sdk/c/include/gpurest" / name).read_text() for name in C_HEADERS}
    first = headers[C_HEADERS[0]]
    lines = ["# C API\n", "Made from the headers in `sdk/c/include/gpurest`.\n", "Rules that hold everywhere:\n"]
    lines += ["- " + make_man.plain(rule) for rule in first[:first.index("*/")].split("\n * - ")[1:]]
    for include, header in headers.items():
        for name, title, intro, body in make_man.groups(header):
            lines += [f"\n## {name}: {title}\n", f"`#include <gpurest/{include}>`\n", intro + "\n"]
            types = types_of(body)
            if types:
                lines.append(f"```c\n{types}\n```\n")
            for declaration, comment in make_man.described(body):
                lines.append(f"### {make_man.FUNCTION.search(declaration)[1]}\n\n```c\n{declaration}\n```\n\n{comment}\n")
    return "\n".join(lines)


# ---- the Python API ----

def exported(wanted):
    return [name for name in sorted(set(gpurest.__all__), key=str.lower) if wanted(getattr(gpurest, name))]


def python_classes():
    return ("# Python classes\n\nMade from the docstrings of `sdk/python`.\n\n"
            + "\n".join(f"::: gpurest.{name}\n" for name in exported(inspect.isclass)))


def python_functions():
    elementwise = exported(lambda one: isinstance(one, gpurest.ufunc))
    rows = [(f"`{name}`", inspect.getdoc(getattr(gpurest, name)) or "") for name in elementwise]
    return ("# Python functions\n\nMade from the docstrings of `sdk/python`. Functions that NumPy has mean what they mean there; "
            "[arrays](../../sdk/python/docs/arrays.md) lists the differences.\n\n## Elementwise functions\n\n" + table(("function", ""), rows)
            + "\n" + "\n".join(f"::: gpurest.{name}\n" for name in exported(inspect.isfunction)))


def python_modules():
    return ("# Python modules\n\nMade from the docstrings of `sdk/python`.\n\n" + "\n".join(f"::: {name}\n" for name in PYTHON_MODULES))


def main(arguments):
    if len(arguments) != 1:
        raise SystemExit(__doc__)
    out = pathlib.Path(arguments[0])
    if out.exists():
        shutil.rmtree(out)
    copy_written(out)
    document = bundle.bundle()
    made = {"http-api": http_api(document), "http-schemas": http_schemas(document), "problem-codes": problem_codes(), "settings": settings(),
            "c-api": c_api(), "python-classes": python_classes(), "python-functions": python_functions(), "python-modules": python_modules()}
    for name, text in made.items():
        (out / "docs/reference" / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
