"""The notebook among the examples runs as it stands, and shows what it shows there."""
import json

import pytest

import gpurest
from conftest import ROOT

NOTEBOOK = ROOT / "sdk" / "python" / "examples" / "first_steps.ipynb"
shells = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed")
pytest.importorskip("numpy", reason="NumPy is not installed")


@pytest.fixture
def shell(gpu):
    made = shells.InteractiveShell()
    before = gpurest.set_printf(True)
    yield made
    gpurest.set_printf(before)
    made.run_line_magic("unload_ext", "gpurest")


def shown(shell, capsys, source):
    """What a cell leaves below itself: what it printed, and the text of its value."""
    hook, found, values = shell.displayhook, [], []
    hook.write_output_prompt = hook.finish_displayhook = lambda: None
    hook.write_format_data = lambda data, metadata=None: values.append(data["text/plain"])
    capsys.readouterr()
    shell.run_cell(source).raise_error()
    printed = capsys.readouterr().out
    if printed:
        found.append({"name": "stdout", "output_type": "stream", "text": printed.splitlines(True)})
    return found + [{"data": {"text/plain": value.splitlines(True)}, "output_type": "execute_result"} for value in values]


def kept(outputs):
    return [{name: value for name, value in one.items() if name not in ("execution_count", "metadata")} for one in outputs]


def test_the_notebook_shows_what_it_says(shell, capsys):
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert document["nbformat"] == 4 and len(cells) > 5 and [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        assert shown(shell, capsys, "".join(cell["source"])) == kept(cell["outputs"]), cell["id"]
