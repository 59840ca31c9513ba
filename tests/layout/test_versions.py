"""One version: the project's, in CMakeLists.txt. What cannot read it there repeats it."""
import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"^project\(gpurest VERSION (\d+\.\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]


@pytest.mark.parametrize("place,line", [
    ("service/base/version.h", r'#define GPUREST_VERSION "(.*)"'),
    ("openapi/openapi.yaml", r"  version: (.*)"),
    ("sdk/c/CMakeLists.txt", r"project\(gpurest_sdk VERSION (\S+)"),
    ("sdk/cli/CMakeLists.txt", r"project\(gpurest_cli VERSION (\S+)"),
    ("sdk/python/gpurest/__init__.py", r'__version__ = "(.*)"'),
    ("sdk/rust/Cargo.toml", r'version = "(.*)"'),
    ("sdk/rust/Cargo.lock", r'name = "gpurest"\nversion = "(.*)"'),
])
def test_who_repeats_the_version_has_the_same(place, line):
    assert re.findall(rf"^{line}", (ROOT / place).read_text(), re.M) == [VERSION]


def test_the_header_of_the_c_sdk_has_it_in_parts():
    header = (ROOT / "sdk/c/include/gpurest/gpurest.h").read_text()
    assert re.findall(r"#define GPUREST_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header) == VERSION.split(".")
    assert f'"{VERSION}"; never NULL' in header


@pytest.mark.parametrize("example", ["root_get", "version_get"])
def test_examples_of_the_contract_have_it(example):
    assert json.loads((ROOT / f"openapi/examples/{example}.200.json").read_text())["version"] == VERSION
