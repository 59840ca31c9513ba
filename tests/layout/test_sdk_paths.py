"""The SDKs against the OpenAPI document: they use only paths that are in it, and the paths that they do not use are listed here."""
import ast
import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Useless for a program that computes: pages, probes and operators' paths; generic requests reach them, too.
OPERATORS = {"/", "/docs", "/web/{file}", "/openapi.json", "/problems/{code}", "/lbz", "/livez", "/readyz", "/metrics", "/v1/changes", "/v1/admin/drain",
             "/v1/admin/resume", "/v1/admin/logging", "/v1/admin/logs", "/v1/admin/devices/{did}", "/v1/admin/sessions", "/v1/admin/sessions/{sid}", "/v1/limits"}
GLOBALS = "/v1/sessions/{sid}/modules/{mid}/globals/{gname}/data"  # to the SDKs a variable is the buffer that the module's description names
TEXELS = "/v1/sessions/{sid}/textures/{tid}/data"  # and texels are the buffer that the texture names
NOT_THERE = {
    # Lists are for people; generic requests reach them.
    "c": OPERATORS - {"/livez"} | {"/v1/sessions", "/v1/sessions/{sid}/buffers", "/v1/sessions/{sid}/modules", "/v1/sessions/{sid}/modules/{mid}/log",
                      "/v1/sessions/{sid}/programs", "/v1/sessions/{sid}/events", "/v1/devices/{did}", "/v1/kernels", "/v1/nodes",
                      "/v1/run/{xid}", "/v1/run/{xid}/result", GLOBALS, TEXELS, "/v1/sessions/{sid}/textures",
                      "/v1/sessions/{sid}/move", "/v1/sessions/{sid}/move/complete"},
    # A module's log comes with the module: Module.log.
    "python": OPERATORS - {"/livez", "/readyz", "/v1/limits"} | {"/v1/sessions/{sid}/modules/{mid}/log"},
}


@pytest.fixture(scope="module")
def paths():
    pytest.importorskip("yaml", reason="PyYAML, which reads the document's parts, is not installed")
    made = subprocess.run([sys.executable, ROOT / "openapi/bundle.py", "json"], check=True, capture_output=True, text=True)
    return list(json.loads(made.stdout)["paths"])


def segments(path):
    return [re.sub(r"\{[^}]*\}", "{}", part) for part in path.split("?")[0].split("/") if part]


def c_texts():
    for file in sorted((ROOT / "sdk/c/src").rglob("*.c")):
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', file.read_text()):
            yield file, re.sub(r"%[a-z]+", "{}", text)


def python_texts():
    for file in sorted((ROOT / "sdk/python/gpurest").rglob("*.py")):
        if "_fake" in file.parts:  # a service for tests, with its own routes
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.JoinedStr):
                yield file, "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield file, node.value


def asked_for(sdk):
    """Paths in an SDK's string literals, as lists of segments; omits a computed beginning."""
    found = {}
    for file, text in c_texts() if sdk == "c" else python_texts():
        named = re.fullmatch(r"(?:\{\})?((?:/(?:[a-z0-9]+|\{\}))+)(?:\?.*)?", text)
        if named and set(segments(named[1])) != {"{}"}:
            found.setdefault(tuple(segments(named[1])), file.name)
    return found


def stands_in(part, whole):
    return any(all(a == b or a == "{}" for a, b in zip(part, whole[at:])) for at in range(len(whole) - len(part) + 1))


@pytest.mark.parametrize("sdk", ["c", "python"])
def test_an_sdk_asks_for_nothing_that_is_not_in_the_document(paths, sdk):
    known = [segments(path) for path in paths]
    strange = {"/" + "/".join(part): file for part, file in asked_for(sdk).items() if not any(stands_in(part, whole) for whole in known)}
    assert not strange


@pytest.mark.parametrize("sdk", ["c", "python"])
def test_what_an_sdk_has_no_call_for_is_known(paths, sdk):
    parts = asked_for(sdk)
    missing = set()
    for path in paths:
        whole = segments(path)
        tails = [whole[at:] for at in range(len(whole))]
        if not any(len(tail) >= 1 and tail != ["{}"] and any(stands_in(part, tail) and len(part) == len(tail) for part in parts) for tail in tails):
            missing.add(path)
    assert missing == NOT_THERE[sdk] & set(paths), missing ^ (NOT_THERE[sdk] & set(paths))
    assert NOT_THERE[sdk] <= set(paths), "paths that are gone"
