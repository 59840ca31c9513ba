#!/usr/bin/env python3
"""Stage one of the runtime's table: reads the installed CUDA headers and writes ../runtime/runtime.def anew. What people wrote there is kept:
the first word, what a function needs, and which function of the driver does it. Only names and signatures are taken.

    read_runtime.py [--include /usr/local/cuda/include] [--check]

--check writes nothing and fails if the headers and the table differ."""
import argparse
import pathlib
import re
import sys

from read_headers import expanded, split_parameters

TABLE = pathlib.Path(__file__).resolve().parents[1] / "runtime" / "runtime.def"
HEADERS = ("cuda_runtime_api.h", "cuda_profiler_api.h", "cuda_gl_interop.h", "cuda_egl_interop.h", "cuda_vdpau_interop.h")
DECLARATION = re.compile(r"\bcudaError_t\s+(cuda[A-Z]\w*)\s*\(([^;{]*?)\)\s*;", re.S)
ROW = re.compile(r"^(SUPPORTED|REFUSED|FORWARD|OWN)\((\w+), (\w+), .*?(?:\), (cu\w+))?\)$", re.M)
HEAD = """/* The functions of CUDA's runtime interface %s, in the headers' order. Written by sdk/shim/table/read_runtime.py from the installed headers, and
 * edited by people: the script keeps the first word, `needs` and `driver`.
 *
 * SUPPORTED(symbol, needs, (parameters), (their names)): implemented as run_<symbol>().
 * FORWARD(the same, driver): the driver's function does it, with the same parameters.
 * OWN(the same): implemented under its own name, because it does not set the thread's error.
 * REFUSED(the same): returns cudaErrorNotSupported.
 * SAME(symbol, other): the form of a function for per-thread default streams, which is the other symbol, as in driver.def.
 *
 * needs: NOTHING, INIT (the driver is initialized) or CONTEXT (that of this thread's device is current). */
"""


def declarations(include, *defines):
    """{symbol: [(type, name)]} in the headers' order. Tags of structs and enums are names of types here."""
    found = {}
    for symbol, parameters in DECLARATION.findall(expanded(include, HEADERS, *defines)):
        # A function of a parameter's type has commas and a name within: none of the runtime's own.
        parameters = re.sub(r"\b(struct|enum) ", "", parameters)
        found.setdefault(symbol, split_parameters(parameters))
    return found


def write_rows(plain, per_thread, kept):
    for symbol, parameters in plain.items():
        word, needs, driver = kept.get(symbol, ("REFUSED", "CONTEXT", ""))
        types = ", ".join(f"{kind} {own}".strip() for kind, own in parameters) or "void"
        yield f"{word}({symbol}, {needs}, ({types}), ({', '.join(own for _, own in parameters)}){', ' + driver if driver else ''})"
        for suffix in ("_ptds", "_ptsz"):
            if symbol + suffix in per_thread:
                yield f"SAME({symbol + suffix}, {symbol})"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--include", type=pathlib.Path, default=pathlib.Path("/usr/local/cuda/include"))
    arguments.add_argument("--check", action="store_true")
    chosen = arguments.parse_args()
    kept = {symbol: (word, needs, driver) for word, symbol, needs, driver in ROW.findall(TABLE.read_text() if TABLE.exists() else "")}
    cuda = int(re.search(r"#define CUDART_VERSION\s+(\d+)", (chosen.include / "cuda_runtime_api.h").read_text())[1])
    rows = write_rows(declarations(chosen.include), declarations(chosen.include, "-DCUDA_API_PER_THREAD_DEFAULT_STREAM"), kept)
    text = HEAD % f"{cuda // 1000}.{cuda % 1000 // 10}" + "\n".join(rows) + "\n"
    if not chosen.check:
        TABLE.write_text(text)
    elif text != TABLE.read_text():
        sys.exit(f"{TABLE.name} is not what the headers in {chosen.include} say: run {pathlib.Path(__file__).name} and look at the difference")


if __name__ == "__main__":
    main()
