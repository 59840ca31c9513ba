"""`make docs`: the site is built without warnings, and each generated page has everything of its source."""
import html
import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD_DEADLINE_S = 900
NO_GENERATOR = ("could not be installed with pip", "install python3-venv")


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    pytest.importorskip("yaml", reason="PyYAML, which reads the document's parts, is not installed")
    folder = tmp_path_factory.mktemp("docs") / "src"
    subprocess.run([sys.executable, ROOT / "scripts/docs_pages.py", folder], check=True, timeout=BUILD_DEADLINE_S)
    return folder


def made(sources, name):
    return (sources / "docs/reference" / f"{name}.md").read_text()


def test_every_operation_stands_on_the_page_of_the_http_api(sources):
    document = json.loads(subprocess.run([sys.executable, ROOT / "openapi/bundle.py", "json"], check=True, capture_output=True, text=True).stdout)
    wanted = {operation["operationId"] for item in document["paths"].values() for operation in item.values() if "operationId" in operation}
    assert wanted == set(re.findall(r"^Operation `(\w+)`", made(sources, "http-api"), re.M))


def test_every_function_stands_on_the_page_of_the_c_api(sources):
    wanted = {name for header in (ROOT / "sdk/c/include/gpurest").glob("*.h") for declaration in re.findall(r"^GPUREST_API [^;]*;", header.read_text(), re.M)
              for name in re.findall(r"\b(gpurest_\w+)\(", declaration)[:1]}
    assert len(wanted) > 50 and wanted == set(re.findall(r"^### (gpurest_\w+)$", made(sources, "c-api"), re.M))


def test_every_setting_and_problem_stands_on_its_page_with_numbers(sources):
    settings = made(sources, "settings")
    names = re.findall(r"^SETTING_\w+\((\w+),", (ROOT / "service/config/config.def").read_text(), re.M)
    assert [name.replace("_", "-") for name in names] == re.findall(r"^\| `--([\w-]+)`", settings, re.M)
    assert not re.findall(r"^\| `--[\w-]+` \| [^|]*[A-Z_]{4,}[^|]* \|.*", settings, re.M), "a default that is still a name"
    assert "| `device_memory_exhausted` | 507 |" in made(sources, "problem-codes")


def test_the_site_is_built_without_a_warning():
    done = subprocess.run([ROOT / "scripts/docs.sh"], capture_output=True, text=True, timeout=BUILD_DEADLINE_S)
    if any(reason in done.stderr for reason in NO_GENERATOR):
        pytest.skip("the site's generator cannot be had here")
    assert done.returncode == 0 and "WARNING" not in done.stdout + done.stderr, done.stdout + done.stderr
    classes = html.unescape((ROOT / "build/docs/site/docs/reference/python-classes/index.html").read_text())
    assert "Device memory of" in classes, "docstrings stand on the page"
