#!/usr/bin/env python3
"""Writes docs/reference/cuda-driver.md, the list of the driver's functions, from the table in ../src/driver.def. --check writes nothing and fails
if the page differs."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "cuda-driver.md"
ROW = re.compile(r"^(SUPPORTED|REFUSED)\((\w+), (\w+), (\d+), (\w+),", re.M)
FAMILIES = ("Device", "Ctx", "GreenCtx", "Module", "Library", "Kernel", "Func", "Launch", "Link", "Mem", "Pointer", "Stream", "Event", "Occupancy", "Graph", "Array", "Tex",
            "Surf", "Mipmapped", "Ipc", "Graphics", "External", "EGL", "GL", "VDPAU", "Multicast", "Checkpoint", "Coredump", "UserObject", "Logs", "Profiler", "Get")
HEAD = """# Functions of the CUDA driver

<!-- Written by sdk/shim/table/write_docs.py from sdk/shim/src/driver.def. -->

[`libcuda.so.1` over gpurest](../howto/cuda-programs.md) has all %d functions of CUDA 13.0's driver interface. %d are supported, and the others return
`CUDA_ERROR_NOT_SUPPORTED` and say so once on standard error. Forms for per-thread default streams (`_ptds`, `_ptsz`) are as the functions they are of.

| family | supported | refused |
|---|---|---|
"""


def family_of(symbol):
    for name in sorted(FAMILIES, key=len, reverse=True):
        if symbol[2:].startswith(name):
            return name
    return "other"


def page():
    rows = [(word, symbol) for word, symbol, *_ in ROW.findall((ROOT / "sdk/shim/src/driver.def").read_text())]
    supported = sum(word == "SUPPORTED" for word, _ in rows)
    lines = []
    for family in (*FAMILIES, "other"):
        cells = [" ".join(f"`{symbol}`" for word, symbol in sorted(rows) if word == wanted and family_of(symbol) == family) for wanted in ("SUPPORTED", "REFUSED")]
        if any(cells):
            lines.append(f"| {family} | {cells[0] or '–'} | {cells[1] or '–'} |")
    return HEAD % (len(rows), supported) + "\n".join(lines) + "\n"


def main():
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(page())
    elif page() != PAGE.read_text():
        sys.exit(f"{PAGE.relative_to(ROOT)} is not what the table says: run sdk/shim/table/write_docs.py")


if __name__ == "__main__":
    main()
