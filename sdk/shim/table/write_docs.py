#!/usr/bin/env python3
"""Writes docs/reference/cuda-driver.md and cuda-runtime.md, the lists of functions, from the tables in ../src/driver.def and ../runtime/runtime.def.
--check writes nothing and fails if a page differs."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
ROW = re.compile(r"^(SUPPORTED|FORWARD|OWN|REFUSED)\((\w+), ", re.M)
FAMILIES = ("Device", "Ctx", "GreenCtx", "Module", "Library", "Kernel", "Func", "Launch", "Link", "Mem", "Pointer", "Stream", "Event", "Occupancy", "Graph", "Array", "Tex",
            "Surf", "Mipmapped", "Ipc", "Graphics", "External", "EGL", "GL", "VDPAU", "Multicast", "Checkpoint", "Coredump", "UserObject", "Logs", "Profiler", "Get")
RUNTIME_FAMILIES = ("Device", "Launch", "Func", "Occupancy", "Malloc", "Free", "Mem", "Host", "Pointer", "Stream", "Event", "Graph", "Array", "Texture", "Surface", "Ipc",
                    "Graphics", "External", "EGL", "GL", "VDPAU", "Library", "Logs", "Profiler", "Get", "Set")
TABLE = "| family | supported | refused |\n|---|---|---|\n"
DRIVER_HEAD = """# Functions of the CUDA driver

<!-- Written by sdk/shim/table/write_docs.py from sdk/shim/src/driver.def. -->

[`libcuda.so.1` over gpurest](../howto/cuda-programs.md) has all %d functions of CUDA 13.0's driver interface. %d are supported, and the others return
`CUDA_ERROR_NOT_SUPPORTED` and say so once on standard error. Forms for per-thread default streams (`_ptds`, `_ptsz`) are as the functions they are of.

"""
RUNTIME_HEAD = """# Functions of the CUDA runtime

<!-- Written by sdk/shim/table/write_docs.py from sdk/shim/runtime/runtime.def. -->

[`libcudart.so.13` over gpurest](../howto/cuda-programs.md) has all %d functions of CUDA 13.0's runtime interface, and those with which nvcc's output
registers its kernels. %d are supported, and the others return `cudaErrorNotSupported` and say so once on standard error. Forms for per-thread default
streams (`_ptds`, `_ptsz`) are as the functions they are of.

"""
PAGES = (("cuda-driver.md", "src/driver.def", "cu", FAMILIES, DRIVER_HEAD), ("cuda-runtime.md", "runtime/runtime.def", "cuda", RUNTIME_FAMILIES, RUNTIME_HEAD))


def family_of(symbol, prefix, families):
    for name in sorted(families, key=len, reverse=True):
        if symbol[len(prefix):].startswith(name):
            return name
    return "other"


def page(table, prefix, families, head):
    rows = [(word != "REFUSED", symbol) for word, symbol in ROW.findall((ROOT / "sdk" / "shim" / table).read_text())]
    lines = []
    for family in (*families, "other"):
        cells = [" ".join(f"`{symbol}`" for supported, symbol in sorted(rows) if supported == wanted and family_of(symbol, prefix, families) == family)
                 for wanted in (True, False)]
        if any(cells):
            lines.append(f"| {family} | {cells[0] or '–'} | {cells[1] or '–'} |")
    return head % (len(rows), sum(supported for supported, _ in rows)) + TABLE + "\n".join(lines) + "\n"


def main():
    for name, *what in PAGES:
        path = ROOT / "docs" / "reference" / name
        if sys.argv[1:] != ["--check"]:
            path.write_text(page(*what))
        elif page(*what) != path.read_text():
            sys.exit(f"docs/reference/{name} is not what the table says: run sdk/shim/table/write_docs.py")


if __name__ == "__main__":
    main()
