"""Every Python block of the documentation runs, in order, in one namespace per page."""
import re

import pytest

import gpurest
from conftest import ROOT

DOCS = ROOT / "sdk" / "python"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)


def blocks(page):
    text = (DOCS / page).read_text()
    return [(text[:match.start()].count("\n") + 1, match.group(1)) for match in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_the_blocks_of_a_page_run(page, service, monkeypatch):
    pytest.importorskip("numpy") if "numpy" in (DOCS / page).read_text() else None
    monkeypatch.setenv("GPUREST_URL", service.url)
    monkeypatch.delenv("GPUREST_TOKEN", raising=False)
    gpurest.set_default(None)
    found = blocks(page)
    assert len(found) >= 4
    namespace = {"__name__": "page"}
    try:
        for line, code in found:
            exec(compile("\n" * line + code, str(DOCS / page), "exec"), namespace)
    finally:
        gpurest.default_client().close()
        gpurest.set_default(None)
