#!/usr/bin/env python3
"""Stage one of the driver's table: reads the installed CUDA headers and writes ../src/driver.def anew. What people wrote there is kept: whether
a function is supported, what it needs, and the direction of its parameters. Only names, versions and signatures are taken.

    read_headers.py [--include /usr/local/cuda/include] [--check]

--check writes nothing and fails if the headers and the table differ. A new CUDA version is one run and a look at the difference."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

TABLE = pathlib.Path(__file__).resolve().parents[1] / "src" / "driver.def"
HEADERS = ("cuda.h", "cudaProfiler.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h")
TYPEDEFS = ("cudaTypedefs.h", "cudaProfilerTypedefs.h", "cudaGLTypedefs.h", "cudaEGLTypedefs.h", "cudaVDPAUTypedefs.h")
# What these headers include of other projects; declarations are all that is read, so that empty files do.
FOREIGN = ("GL/gl.h", "EGL/egl.h", "EGL/eglext.h", "vdpau/vdpau.h")
DECLARATION = re.compile(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(([^;{]*?)\)\s*;", re.S)
VERSION = re.compile(r"\bPFN_(cu[A-Z]\w*?)_v(\d+)(_ptds|_ptsz)?\b")
ROW = re.compile(r"^(SUPPORTED|REFUSED)\((\w+), (\w+), (\d+), (\w+), \((.*?)\), \((.*?)\)\)$")
DIRECTIONS = ("IN", "OUT", "INOUT")
HEAD = """/* The functions of CUDA's driver interface %s, in the headers' order. Written by sdk/shim/table/read_headers.py from the installed headers, and
 * edited by people: the script keeps the first word, `needs` and the directions.
 *
 * SUPPORTED(symbol, name, version, needs, (parameters), (their names)): implemented as shim_<symbol>().
 * REFUSED(the same): resolves, and returns CUDA_ERROR_NOT_SUPPORTED.
 * SAME(symbol, name, version, other): the form of a function for per-thread default streams. All streams of the shim run in the order of the
 * calls, so that it is the other symbol.
 *
 * name and version are what cuGetProcAddress() finds a symbol by: the newest whose version is not above the one asked for; 0 = it does not
 * find it. needs: NOTHING, INIT (cuInit was called) or CONTEXT (and a context is current; a device error sticks). */
"""


def expanded(include, headers=HEADERS, *defines):
    """The headers behind the preprocessor."""
    with tempfile.TemporaryDirectory() as folder:
        for name in FOREIGN:
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        text = "".join(f"#include <{name}>\n" for name in headers)
        done = subprocess.run(["gcc", "-E", "-P", *defines, f"-I{folder}", f"-I{include}", "-"], input=text, capture_output=True,
                              text=True, check=True)
    return done.stdout


def split_parameters(text):
    """[(type, name)] of a parameter list."""
    text = " ".join(text.split())
    if text in ("", "void"):
        return []
    out = []
    for part in text.split(","):
        found = re.fullmatch(r"(.*?)(\w+)?((?:\[\w*\])*)", part.strip())
        kind, name, array = found[1].strip(), found[2], found[3]
        if not kind or name in ("int", "long", "char"):
            kind, name = f"{kind} {name}".strip(), None
        out.append((kind + ("*" if array else ""), name or f"p{len(out)}"))
    return out


def direction_of(kind):
    if "*" not in kind:
        return ""
    return "IN" if kind.startswith("const ") and kind.count("*") == 1 else "OUT"


def read_headers(include):
    """{symbol: [(type, name)]} in the headers' order, and {symbol: (name, version)}."""
    declared = {}
    for symbol, parameters in DECLARATION.findall(expanded(include, HEADERS, "-D__CUDA_API_VERSION_INTERNAL")):
        declared.setdefault(symbol, split_parameters(parameters))
    versions = {}
    for header in TYPEDEFS:
        for name, version, threads in VERSION.findall((include / header).read_text()):
            versions.setdefault(name, set()).add((int(version), threads))
    found = {}
    for name, all_of_them in versions.items():
        plain = sorted(version for version, threads in all_of_them if not threads)
        for version, threads in sorted(all_of_them):
            # A form for per-thread default streams has the signature of the newest version that is not newer than it.
            nth = sum(1 for other in plain if other <= version) or 1
            symbol = (name if nth == 1 else f"{name}_v{nth}") + threads
            if symbol in declared and symbol not in found:
                found[symbol] = (name, version)
    return declared, found


def read_table():
    """{symbol: (word, needs, [directions])} as people left it."""
    kept = {}
    if not TABLE.exists():
        return kept
    for line in TABLE.read_text().splitlines():
        row = ROW.match(line)
        if row:
            directions = [part.split()[0] if part.split() and part.split()[0] in DIRECTIONS else "" for part in row[6].split(", ")]
            kept[row[2]] = (row[1], row[5], [] if row[6] == "void" else directions)
    return kept


def write_row(symbol, declared, found, kept):
    name, version = found.get(symbol, (re.sub(r"_(ptds|ptsz)$", "", symbol), 0))
    other = re.sub(r"_(ptds|ptsz)$", "", symbol)
    if other != symbol and other in declared:
        return f"SAME({symbol}, {name}, {version}, {other})"
    parameters = declared[symbol]
    word, needs, directions = kept.get(symbol, ("REFUSED", "CONTEXT", []))
    if len(directions) != len(parameters):
        directions = [direction_of(kind) for kind, _ in parameters]
    types = ", ".join(f"{direction} {kind} {own}".strip() for direction, (kind, own) in zip(directions, parameters)) or "void"
    return f"{word}({symbol}, {name}, {version}, {needs}, ({types}), ({', '.join(own for _, own in parameters)}))"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--include", type=pathlib.Path, default=pathlib.Path("/usr/local/cuda/include"))
    arguments.add_argument("--check", action="store_true")
    chosen = arguments.parse_args()
    declared, found = read_headers(chosen.include)
    kept = read_table()
    cuda = int(re.search(r"#define CUDA_VERSION (\d+)", (chosen.include / "cuda.h").read_text())[1])
    text = HEAD % f"{cuda // 1000}.{cuda % 1000 // 10}" + "\n".join(write_row(symbol, declared, found, kept) for symbol in declared) + "\n"
    if not chosen.check:
        TABLE.write_text(text)
    elif text != TABLE.read_text():
        sys.exit(f"{TABLE.name} is not what the headers in {chosen.include} say: run {pathlib.Path(__file__).name} and look at the difference")


if __name__ == "__main__":
    main()
