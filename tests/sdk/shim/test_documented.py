"""Rows of wrong calls that were not compared with NVIDIA's driver: the header's documentation of the function lists the code, where a toolkit has the header."""
import pathlib
import re

import pytest

from conftest import ROOT

HERE = ROOT / "tests" / "sdk" / "shim"
INCLUDE = pathlib.Path("/usr/local/cuda/include")
TABLES = {"wrong_calls.def": ("DOCUMENTED", "cuda.h", "CUDA_ERROR_"), "wrong_runtime_calls.def": ("CALL", "cuda_runtime_api.h", "cudaError")}
# The function under another name there, and what has no list of codes there.
UNDER = {"cuGraphInstantiateWithFlags": "cuGraphInstantiate"}
WITHOUT = {("cuMemPoolGetAccess", "CUDA_ERROR_INVALID_VALUE")}


def documented(header):
    """Codes by function: the comment before each declaration has them."""
    found = {}
    for part in (INCLUDE / header).read_text().split("/**")[1:]:
        comment, _, rest = part.partition("*/")
        name = re.match(r"\s*(?:#if[^\n]*\n|__\w+\s+|extern\s+)*[\w\s*]*?\b(cu(?:da)?[A-Z]\w+)\s*\(", rest)
        if name and "\\return" in comment:
            found.setdefault(name[1], set()).update(re.findall(r"(?:CUDA_ERROR_|cudaError)\w+", comment))
    return found


def rows(table):
    macro, header, prefix = TABLES[table]
    for code, call in re.findall(rf"^{macro}\((\w+), \(?(\w+)\(", (HERE / table).read_text(), re.M):
        if code not in ("SUCCESS", "Success"):
            name = re.sub(r"_v\d$", "", call)
            yield UNDER.get(name, name), prefix + code


@pytest.mark.parametrize("table", TABLES)
def test_codes_are_documented(table):
    if not (INCLUDE / TABLES[table][1]).exists():
        pytest.skip("no CUDA toolkit is installed")
    lists = documented(TABLES[table][1])
    missing = {(call, code) for call, code in rows(table) if code not in lists.get(call, ())}
    assert missing == {row for row in WITHOUT if row[1].startswith(TABLES[table][2])} and len(list(rows(table))) > 80


def test_the_tables_are_long_enough():
    text = "".join((HERE / table).read_text() for table in TABLES)
    assert len(re.findall(r"^(?:CALL|DOCUMENTED)\(", text, re.M)) >= 300
