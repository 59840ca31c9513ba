#!/usr/bin/env python3
"""make_man.py HEADER... FOLDER VERSION: one man page of section 3 for every group of the headers ("/* ==== name: title ====", its comment, and
what is declared up to the next group), and for every function a page that refers to its group's. The first header has the rules of all."""
import pathlib
import re
import sys

GROUP = re.compile(r"^/\* ==== (\w+): (.*?) ====(.*?)\*/", re.M | re.S)
FUNCTION = re.compile(r"\b(gpurest_\w+)\(")


def plain(text):
    """A comment's words: no stars, one blank between them."""
    text = re.sub(r"^\s*/?\*+/?", "", text, flags=re.M).replace("*/", "")
    return re.sub(r"[ \t\n]+", " ", text).strip()


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.split("\n"))


def groups(header):
    found = list(GROUP.finditer(header))
    for match, following in zip(found, found[1:] + [None]):
        body = header[match.end():following.start() if following else header.index("#ifdef __cplusplus\n}")]
        yield match[1], match[2].strip(), plain(match[3]), body


def described(body):
    """(declaration, comment) of every function; a comment stands in front, or behind on the same line."""
    comment, result = "", []
    for block in re.findall(r"/\*.*?\*/|GPUREST_API[^;]*;[^\n]*", body, re.S):
        if block.startswith("/*"):
            comment = plain(block)
            continue
        declaration, _, behind = block.partition(";")
        behind = plain(behind)
        result.append((re.sub(r"\s+", " ", declaration.replace("GPUREST_API ", "")) + ";", behind or comment))
        comment = ""
    return result


def page(include, name, title, intro, body, rules, version):
    functions = described(body)
    lines = [f'.TH GPUREST_{name.upper()} 3 "" "gpurest {version}" "C client of gpurest"', ".SH NAME",
             escaped(", ".join(FUNCTION.search(d)[1] for d, _ in functions)) + " \\- " + escaped(title), ".SH SYNOPSIS", ".nf",
             f".B #include <gpurest/{include}>", ""]
    lines += [f".B {escaped(declaration)}" for declaration, _ in functions] + [".fi", ".SH DESCRIPTION", escaped(intro or title[0].upper() + title[1:] + ".")]
    for declaration, comment in functions:
        lines += [".TP", f".BR {FUNCTION.search(declaration)[1]} ()", escaped(comment or "See above.")]
    lines += [".SH RULES OF ALL FUNCTIONS"] + [line for rule in rules for line in (".IP \\(bu 2", escaped(rule))]
    lines += [".SH SEE ALSO", ".BR gpurest_errors (3)"]
    return "\n".join(lines) + "\n", [FUNCTION.search(d)[1] for d, _ in functions]


def main():
    headers = {pathlib.Path(path).name: pathlib.Path(path).read_text(encoding="utf-8") for path in sys.argv[1:-2]}
    folder, version = pathlib.Path(sys.argv[-2]), sys.argv[-1]
    first = next(iter(headers.values()))
    rules = [plain(rule) for rule in first[:first.index("*/")].split("\n * - ")[1:]]
    folder.mkdir(parents=True, exist_ok=True)
    for include, (name, title, intro, body) in ((include, group) for include, header in headers.items() for group in groups(header)):
        text, functions = page(include, name, title, intro, body, rules, version)
        (folder / f"gpurest_{name}.3").write_text(text, encoding="utf-8")
        for function in functions:
            if function != f"gpurest_{name}":
                (folder / f"{function}.3").write_text(f".so man3/gpurest_{name}.3\n", encoding="utf-8")


if __name__ == "__main__":
    main()
