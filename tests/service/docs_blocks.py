"""The commands and programs of README.md and docs/: their places, their markers, and how a page of them is run.

A marker is a comment right above a block:
  <!-- not run: reason -->      the block is skipped
  <!-- prints: text -->         the block is run, its output contains the text, and curl accepts refusals as answers

Rows of a table "| name | command | shown by |" are blocks of one command each. A table with "Python" in its place is one program. What a row is
shown by: "cpu", as the blocks of the page; "fake", by a service on a fake GPU; anything with a path in it, by the test there and not here; or it
is "missing".
"""
import dataclasses
import os
import pathlib
import re
import stat
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN_DEADLINE_S = 600
BLOCK = re.compile(r"(?:^<!-- (?P<marker>.*?) -->\n)?^```(?P<language>sh|python)\n(?P<code>.*?)^```$", re.M | re.S)
TABLE = re.compile(r"^\| name \| (?P<kind>command|Python) \| shown by \|\n\|[-|]+\|\n(?P<rows>(?:\|.*\|\n)+)", re.M)
IMPORTS = "import gpurest\nfrom gpurest import cuda\n"
STARTS_SERVICE = re.compile(r"^gpurestd .*&$", re.M)
USES_LIBRARY = re.compile(r"pkg-config .*gpurest")
# The pages say port 8080; here the service has a free port.
PORT = """
for attempt in $(seq 6000); do [ -s "$PORTS" ] && break; sleep 0.01; done
port=$(grep -v '^unix:' "$PORTS" | head -n 1 | grep -oE '[0-9]+$')
"""
WRAPPERS = {
    "curl": PORT + 'exec "$REAL_CURL" --silent --show-error $CURL_FAILS "${@//:8080/:$port}"',
    "gpurest": PORT + 'export GPUREST_URL=${GPUREST_URL-http://127.0.0.1:$port}\nexec "$REAL_GPUREST" "$@"',
    "python-block": PORT + 'export GPUREST_URL=${GPUREST_URL-http://127.0.0.1:$port}\nexec "$REAL_PYTHON" "$@"',
    "gpurestd": """
arguments=("${@//:8080/:0}")
case " $* " in *' --check-config '* | *' --man '* | *' --help '* | *' --version '*) exec "$REAL_GPURESTD" "$@" ;; esac
case " $* " in *' --listen '* | *' --config '*) ;; *) arguments+=(--listen 127.0.0.1:0) ;; esac
rm -f "$PORTS"
exec "$REAL_GPURESTD" --port-file "$PORTS" --drain-timeout 0 --no-warm-compiler "${arguments[@]}"
""",
}


@dataclasses.dataclass
class Block:
    page: str
    line: int
    language: str
    code: str
    marker: str
    shown_by: str = "cpu"

    def marked(self, kind):
        """The text of the marker of this kind; None without one."""
        return self.marker[len(kind) + 2:] if self.marker and self.marker.startswith(kind + ": ") else None

    @property
    def not_run(self):
        return self.marked("not run")

    @property
    def prints(self):
        return self.marked("prints")


def pages():
    """Every page, by its path in the repository."""
    return ["README.md"] + sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))


@dataclasses.dataclass
class Row:
    line: int
    code: str
    shown_by: str

    @property
    def path(self):
        """Of the test that shows it; None: it is shown by the page's own."""
        found = re.search(r"`([^`]+)`", self.shown_by)
        return found and found[1]


def tables_of(page):
    """(kind, rows) of each table with commands."""
    text = (ROOT / page).read_text()
    for table in TABLE.finditer(text):
        first = text[:table.start("rows")].count("\n") + 1
        cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line[1:-1])] for line in table["rows"].splitlines()]
        assert all(len(row) == 3 for row in cells), f"{page}:{first}: a row has three cells; a bar within one is \\|"
        yield table["kind"], [Row(first + at, row[1].strip("`").replace("\\|", "|"), row[2]) for at, row in enumerate(cells)]


def blocks_of_tables(page):
    for kind, rows in tables_of(page):
        shown = [row for row in rows if row.shown_by in ("cpu", "fake")]
        if kind == "command":
            yield from (Block(page, row.line, "sh", row.code + "\n", None, row.shown_by) for row in shown)
        else:
            yield Block(page, rows[0].line, "python", IMPORTS + "".join(row.code + "\n" for row in shown), None)


def blocks_of(page):
    text = (ROOT / page).read_text()
    blocks = [Block(page, text[:found.start("code")].count("\n"), found["language"], found["code"], found["marker"]) for found in BLOCK.finditer(text)]
    return sorted([*blocks, *blocks_of_tables(page)], key=lambda block: block.line)


def runs(page):
    return any(block.not_run is None for block in blocks_of(page))


def starts_service(page):
    return any(STARTS_SERVICE.search(block.code) for block in blocks_of(page) if block.not_run is None and block.language == "sh")


def uses_library(page):
    return any(USES_LIBRARY.search(block.code) for block in blocks_of(page) if block.not_run is None and block.language == "sh")


def install_library(build, prefix):
    """Installs the C SDK, as the reader has done, and returns the variables by which it is found there."""
    subprocess.run(["cmake", "--install", build, "--prefix", prefix, "--component", "sdk"], check=True, capture_output=True, timeout=RUN_DEADLINE_S)
    libraries = next(prefix.rglob("libgpurest.so")).parent
    return {"PKG_CONFIG_PATH": str(libraries / "pkgconfig"), "LD_LIBRARY_PATH": str(libraries)}


def put_program(path, text):
    path.write_text("#!/usr/bin/env bash\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def page_script(blocks, out):
    """One shell runs all blocks of a page in their order, so that later blocks see the variables of earlier ones. Python blocks are
    separate programs."""
    lines = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT"]
    for number, block in enumerate(blocks):
        lines += [f"echo '{block.page}:{block.line}' >&2", f"export CURL_FAILS={'' if block.prints else '--fail-with-body'}"]
        code = block.code
        if block.language == "python":
            program = out / f"block{number}.py"
            program.write_text(code)
            code = f"python-block '{program}'\n"
        lines.append(f"{{\n{code}}} >'{out}/{number}.stdout'")
    return "\n".join(lines) + "\n"


def run_page(page, folder, executable, ports, command_line, shown_by="cpu", **variables):
    """Runs what is shown so of the page in folder/work and returns the error, or "". A service that runs already has written `ports`."""
    blocks = [block for block in blocks_of(page) if block.not_run is None and block.shown_by == shown_by]
    programs, work, out = (folder / name for name in ("programs", "work", "out"))
    for made in (programs, work, out):
        made.mkdir()
    for name, text in WRAPPERS.items():
        put_program(programs / name, text)
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(work), "XDG_CACHE_HOME": str(folder / "cache"), "PORTS": str(ports),
           "PYTHONPATH": str(ROOT / "sdk" / "python"), "REAL_PYTHON": sys.executable, "REAL_GPURESTD": str(executable), "REAL_GPUREST": str(command_line),
           "REAL_CURL": subprocess.check_output(["sh", "-c", "command -v curl"], text=True).strip(),
           "GPUREST_BACKENDS": os.environ.get("GPUREST_TEST_BACKENDS", "cpu"), "GPUREST_STAGING_MIB": "16"}
    for name in ("GPUREST_URL", "GPUREST_TOKEN"):
        env.pop(name, None)
    if ports.exists():
        env["GPUREST_URL"] = "http://" + ports.read_text().split()[0]
    env.update(variables)
    done = subprocess.run(["bash", "-c", page_script(blocks, out)], cwd=work, env=env, capture_output=True, text=True, timeout=RUN_DEADLINE_S)
    outputs = [(out / f"{number}.stdout").read_text(errors="replace") if (out / f"{number}.stdout").exists() else "" for number in range(len(blocks))]
    if done.returncode:
        return f"exit code {done.returncode}\n{done.stderr}\n" + "\n".join(outputs)
    return "\n".join(f"{block.page}:{block.line} does not print {block.prints!r} but\n{printed}\n{done.stderr}"
                     for block, printed in zip(blocks, outputs) if block.prints and block.prints not in printed)
