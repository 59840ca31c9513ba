#!/usr/bin/env python3
"""embed.py OUT.c: the sources of this folder, CUDA C++ and GLSL, as C, for the executable. A source's first comment becomes its notes."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))
from c_text import c_literal  # noqa: E402


def notes_of(file):
    text = file.read_text()
    if not text.startswith("/*") or "*/" not in text:
        sys.exit(f"{file.name} does not begin with a comment that says what it is for")
    lines = text[2:text.index("*/")].splitlines()
    return "\n".join(line.removeprefix(" *").strip() for line in lines).strip()


def main():
    rows = []
    for file in sorted([*HERE.glob("*.cu"), *HERE.glob("*.cuh"), *HERE.glob("*.comp"), *HERE.glob("*.glsl")]):
        data = file.read_bytes()
        rows.append(f'    {{"{file.name}",\n     {{\n{c_literal(data)},\n        {len(data)}}},\n{c_literal(notes_of(file).encode())}}},')
    pathlib.Path(sys.argv[1]).write_text(
        '/* Made by kernels/embed.py. */\n#include "kernels/kernels.h"\n\nconst struct builtin_source builtin_sources[] = {\n' + "\n".join(rows)
        + "\n};\nconst unsigned builtin_sources_count = sizeof builtin_sources / sizeof builtin_sources[0];\n")


if __name__ == "__main__":
    main()
