"""Every Python block of the documentation runs, in order, in one namespace per page; and everything public says what it does."""
import importlib
import inspect
import pkgutil
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


# ---- docstrings ----


def public_modules():
    found = ["gpurest", *(one.name for one in pkgutil.walk_packages(gpurest.__path__, "gpurest."))]
    return [name for name in found if not any(part.startswith("_") for part in name.split("."))]


def is_ours(value):
    return str(getattr(value, "__module__", "")).split(".")[0] == "gpurest"


def documented(value, where):
    """(name, docstring) of a class, of all that its instances have, also from rooms that nobody imports, or of a function."""
    if not inspect.isclass(value):
        yield where, inspect.getdoc(value)
        return
    text = value.__doc__ or ""
    yield where, "" if text.startswith(f"{value.__name__}(") else text  # which a dataclass and a tuple write themselves
    for base in (one for one in value.__mro__ if is_ours(one)):
        for name, member in vars(base).items():
            plain = getattr(member, "__func__", member)
            if not name.startswith("_") and (inspect.isfunction(plain) or isinstance(plain, property)):
                yield f"{where}.{name}", inspect.getdoc(getattr(value, name))
            elif not name.startswith("_") and inspect.isclass(plain) and is_ours(plain):
                yield from documented(plain, f"{where}.{name}")


def public_names(module):
    return {name: value for name, value in vars(module).items() if not name.startswith("_") and is_ours(value) and (inspect.isroutine(value) or inspect.isclass(value))}


def test_the_walk_finds_what_is_public():
    found = dict(entry for name, value in public_names(gpurest).items() for entry in documented(value, name))
    assert {"connect", "Session.buffer", "Session.closed", "Buffer.freed", "ndarray.sum", "ndarray.shape", "asarray"} <= set(found) and len(found) > 500

    class Without:
        __module__ = "gpurest.example"

        @property
        def size(self):
            return 1
    assert [name for name, text in documented(Without, "Without") if not text] == ["Without", "Without.size"]


@pytest.mark.parametrize("name", public_modules())
def test_everything_public_says_what_it_does(name):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{error}")
    missing = [] if module.__doc__ else [name]
    for own, value in public_names(module).items():
        missing += [one for one, text in documented(value, own) if not (text or "").strip()]
    assert not missing
