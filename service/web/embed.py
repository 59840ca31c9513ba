#!/usr/bin/env python3
"""embed.py OUT.c: embeds the web files of this folder as C."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "scripts"))
from c_text import c_literal  # noqa: E402

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


def main():
    rows = []
    for file in sorted(HERE.iterdir()):
        if file.suffix in TYPES:
            data = file.read_bytes()
            rows.append(f'    {{"{file.name}", "{TYPES[file.suffix]}",\n{c_literal(data)},\n        {len(data)}}},')
    pathlib.Path(sys.argv[1]).write_text(
        "/* Made by service/web/embed.py. */\n#include \"api/about/web_files.h\"\n\nconst struct web_file web_files[] = {\n" + "\n".join(rows)
        + "\n};\nconst size_t web_files_count = sizeof web_files / sizeof web_files[0];\n")


if __name__ == "__main__":
    main()
