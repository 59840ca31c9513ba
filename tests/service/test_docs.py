"""README.md and docs/ are true: each command and program runs, or a marker says why not; each link has a target."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

import docs_blocks
import fake_gpu
from docs_blocks import ROOT, blocks_of, install_library, pages, run_page, runs, starts_service, tables_of, uses_library
from fake_gpu import driver  # noqa: F401 - a fixture
from service_under_test import is_sanitized

PAGE_LINES_MAX = 300
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", list(filter(runs, pages())))
def test_the_blocks_of_a_page_run(page, request, executable, tmp_path):
    """Against the shared service, or the one that the page starts."""
    command_line = os.environ.get("GPUREST_CLI") or pathlib.Path(executable).parents[1] / "sdk" / "cli" / "gpurest"
    ports = tmp_path / "ports"
    if page == "docs/howto/dask.md":
        pytest.importorskip("distributed", reason="distributed is not installed")
    if not starts_service(page):
        request.getfixturevalue("client")
        ports.write_text(f"127.0.0.1:{request.getfixturevalue('service').port}\n")
    variables = {}
    if uses_library(page):
        build = pathlib.Path(executable).parents[1]
        if is_sanitized(executable) or not (build / "cmake_install.cmake").exists():
            pytest.skip("a program of the page is linked with libgpurest, which needs a build tree without a sanitizer")
        variables = install_library(build, tmp_path / "prefix")
    wrong = run_page(page, tmp_path, executable, ports, command_line, **variables)
    assert not wrong, wrong


@pytest.mark.parametrize("page", [page for page in pages() if any(block.shown_by == "fake" for block in blocks_of(page))])
def test_what_a_fake_gpu_shows_of_a_page(page, executable, driver, tmp_path):
    command_line = os.environ.get("GPUREST_CLI") or pathlib.Path(executable).parents[1] / "sdk" / "cli" / "gpurest"
    ports = tmp_path / "ports"
    service = fake_gpu.start(executable, tmp_path, driver[1], "--allow-device-settings", "--nvidia-smi", str(fake_gpu.tool(tmp_path, "exit 0")))
    try:
        ports.write_text(f"127.0.0.1:{service.port}\n")
        wrong = run_page(page, tmp_path, executable, ports, command_line, shown_by="fake")
    finally:
        service.stop()
    assert not wrong, wrong


def test_what_a_table_says_is_shown_elsewhere_is_there():
    rows = [(page, row) for page in pages() for _, table in tables_of(page) for row in table if row.shown_by not in ("cpu", "fake")]
    assert rows and not [(page, row) for page, row in rows if not (row.path and (ROOT / row.path).exists())]


def test_every_block_has_a_marker_that_is_known_or_none():
    wrong = [f"{block.page}:{block.line}: {block.marker}" for page in pages() for block in blocks_of(page)
             if block.marker and not block.not_run and not block.prints]
    assert not wrong, "\n".join(wrong)


def test_no_command_hides_in_another_kind_of_block():
    kinds = {(page, kind) for page in pages() for kind in re.findall(r"^(.*?```.+)$", (ROOT / page).read_text(), re.M) if "`" not in kind.strip("`")}
    assert kinds and {kind for _, kind in kinds} <= {"```sh", "```python", "```json", "```yaml"}, kinds
    assert [page for page, kind in kinds if kind == "```yaml"] == ["docs/howto/cuda-ci.md"], "tests/packaging/test_cuda_ci.py runs that one only"


def test_every_how_to_has_an_example_that_runs():
    assert not [page for page in pages() if page.startswith("docs/howto/") and not runs(page)]


def test_each_step_of_the_path_has_one_block_and_goes_on():
    steps = re.split(r"^## ", (ROOT / "docs/guide/path.md").read_text(), flags=re.M)[1:]
    assert [step[:3] for step in steps] == [f"{number}. " for number in range(1, 6)]
    assert all(len(docs_blocks.BLOCK.findall(step)) == 1 and LINK.search(step.rpartition("\nNext: ")[2]) for step in steps)


def test_no_page_is_longer_than_a_reader_takes():
    too_long = {page: lines for page in pages() if (lines := len((ROOT / page).read_text().splitlines())) > PAGE_LINES_MAX}
    assert not too_long


def test_the_index_has_every_page():
    index = (ROOT / "docs/index.md").read_text()
    named = {os.path.normpath(os.path.join("docs", target.split("#")[0])) for target in LINK.findall(index)}
    assert not [page for page in pages() if page.startswith("docs/") and page != "docs/index.md" and page not in named]


def written_pages():
    """All Markdown for readers, not only docs/."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def anchors(path):
    """Anchors of headings, as on GitHub and the site."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", text, re.M)}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no git clone")
def test_every_link_leads_somewhere():
    dead = []
    for name in written_pages():
        text = re.sub(r"^```.*?^```$", "", (ROOT / name).read_text(), flags=re.M | re.S)
        for target in LINK.findall(text):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (ROOT / name).parent / path if path else ROOT / name
            if not file.exists() or anchor and anchor not in anchors(file):
                dead.append(f"{name}: {target}")
    assert not dead, "\n".join(dead)


def test_the_picture_is_what_its_script_draws(tmp_path):
    subprocess.run([sys.executable, ROOT / "scripts/picture.py", tmp_path / "picture.svg"], check=True)
    assert (tmp_path / "picture.svg").read_text() == (ROOT / "docs/img/picture.svg").read_text()


@pytest.mark.parametrize("code,wrong", [("false\n", "exit code 1"), ("curl http://127.0.0.1:8080/nowhere\n", "exit code 22"), ("echo no\n", "does not print")])
def test_a_block_that_is_wrong_is_noticed(monkeypatch, service, executable, tmp_path, code, wrong):
    marker = "prints: yes" if wrong == "does not print" else None
    monkeypatch.setattr(docs_blocks, "blocks_of", lambda page: [docs_blocks.Block(page, 1, "sh", code, marker)])
    (tmp_path / "ports").write_text(f"127.0.0.1:{service.port}\n")
    assert wrong in run_page("page.md", tmp_path, executable, tmp_path / "ports", "gpurest")


def test_the_two_commands_exist():
    """tests/layout/test_commands.py runs the first; this run is the second."""
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^run:", makefile, re.M) and re.search(r"^test:", makefile, re.M)
