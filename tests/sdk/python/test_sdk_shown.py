"""What people see: what kernels print, objects in notebooks, progress, pickling, docstrings."""
import io
import os
import pickle
import re
import subprocess
import sys
import time
import types

import pytest

import gpurest
from conftest import ROOT, SETTLE_S
from gpurest import errors
from gpurest._transport import progress

def settles(done):
    """Waits for it."""
    end = time.monotonic() + SETTLE_S
    while not (found := done()) and time.monotonic() < end:
        time.sleep(0.01)
    return found


HELLO = 'extern "C" __global__ void hello(int n) { if (threadIdx.x < n) printf("hello %d\\n", threadIdx.x); }'


@pytest.fixture
def hello(session):
    return session.RawKernel(HELLO, "hello")


@pytest.fixture(autouse=True)
def printf_as_at_first():
    before = gpurest.set_printf(True)
    yield
    gpurest.set_printf(before)


# ---- printf ----

def test_what_a_kernel_prints_appears(hello, capsys):
    assert hello(1, 2, (2,)).stdout == "hello 0\nhello 1\n"
    assert capsys.readouterr().out == "hello 0\nhello 1\n"
    later = hello(1, 1, (1,), wait=False)
    later.wait()
    later.wait()
    assert capsys.readouterr().out == "hello 0\n", "once"
    polled = hello(1, 1, (1,), wait=False)
    assert settles(polled.done)
    polled.wait()
    assert capsys.readouterr().out == "hello 0\n"


def test_of_batches_programs_and_runs_too(gpu, session, hello, capsys):
    with session.batch():
        hello(1, 1, (1,))
        hello(1, 2, (2,))
    assert capsys.readouterr().out == "hello 0\nhello 0\nhello 1\n"
    with session.program() as step:
        hello(1, 1, (step.scalar("n", 1),))
    capsys.readouterr()
    assert step.run(n=1).stdout == capsys.readouterr().out == "hello 0\n"
    assert gpu.run(HELLO, "hello", [2], n=2).stdout == capsys.readouterr().out == "hello 0\nhello 1\n"
    with session.batch() as batch:
        hello(1, 1, (1,))
        job = batch.submit_background()
    job.result(60)
    job.result(60)
    assert capsys.readouterr().out == "hello 0\n"


LOUD = r'''extern "C" __global__ void loud(int n) {
    for (int i = 0; i < n; i++) printf("012345678901234567890123456789012345678901234567890123456789012\n"); }'''


def test_text_that_is_cut_says_so(gpu, session):
    gpurest.set_printf(False)
    loud = session.RawKernel(LOUD, "loud")
    for n, cut in ((2, False), (20_000, True)):
        with session.batch():
            queued = loud(1, 1, (n,))
        with session.program() as step:
            loud(1, 1, (n,))
        found = [loud(1, 1, (n,)), loud(1, 1, (n,), wait=False).wait(), queued, queued.result(), step.run(), gpu.run(LOUD, "loud", [n], n=1)]
        assert [one.stdout_truncated for one in found] == [cut] * 6 and all(one.stdout for one in found)


async def test_text_that_is_cut_says_so_with_asyncio(asession):
    gpurest.set_printf(False)
    loud = (await asession.module(LOUD))["loud"]
    for n, cut in ((2, False), (20_000, True)):
        assert (await loud(1, 1, (n,))).stdout_truncated is cut


def test_printf_can_go_elsewhere_or_nowhere(hello, capsys):
    file = io.StringIO()
    assert gpurest.set_printf(file) is True
    hello(1, 1, (1,))
    assert gpurest.set_printf(False) is file
    assert hello(1, 1, (1,)).stdout == "hello 0\n"
    assert gpurest.set_printf(None) is False
    assert capsys.readouterr().out == "" and file.getvalue() == "hello 0\n"


def test_the_environment_turns_it_off():
    code = "import gpurest._shown.printing as p; print(p.set_printf(True))"
    for value, meant in (("0", "False"), ("1", "True")):
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "GPUREST_PRINTF": value, "PYTHONPATH": str(ROOT / "sdk/python")},
                              capture_output=True, text=True, check=True)
        assert done.stdout.strip() == meant


# ---- notebooks ----

def test_objects_are_tables_in_notebooks(gpu, session):
    assert "<td>cpu:0</td>" in gpu._repr_html_() and gpu.url in gpu._repr_html_()
    text = session._repr_html_()
    assert session.id in text and "<td>ready</td>" in text and "launches so far" in text
    assert "<td>cpu:0</td>" in gpurest.cuda.device("cpu")._repr_html_()
    from gpurest.core import Device
    assert "<td>cpu:0</td>" in Device(0)._repr_html_()


def test_who_cannot_be_asked_is_shown_as_text():
    with gpurest.connect("http://127.0.0.1:1", retries=0) as nobody:
        assert nobody._repr_html_() is None


def test_what_is_shown_is_escaped():
    from gpurest._shown.html import table
    assert table("<b>", ["<i>"], [["a & b"]]) == "<table><caption>&lt;b&gt;</caption><tr><th>&lt;i&gt;</th></tr><tr><td>a &amp; b</td></tr></table>"


# ---- progress ----

class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def look(monkeypatch):
    """look() is a terminal, from then on: within the test, since pytest changes sys.stderr before it."""
    return lambda: terminal(monkeypatch)


def terminal(monkeypatch):
    made = Screen()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.delenv("GPUREST_PROGRESS", raising=False)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    return made


def test_bars_appear_after_a_second(look, monkeypatch):
    screen = look()
    assert progress.QUIET_S == 1.0
    meter = progress.Meter(None, 100, "upload")
    meter.add(50)
    assert screen.getvalue() == ""
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    meter.add(50)
    meter.close()
    assert "100 %" in screen.getvalue()


def test_tqdm_draws_where_it_is_installed(look, monkeypatch):
    screen = look()

    class Bar:
        made = []

        def __init__(self, total, desc, **more):
            self.n, self.total, self.desc, self.closed = 0, total, desc, False
            Bar.made.append(self)

        def update(self, count):
            self.n += count

        def close(self):
            self.closed = True

    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(auto=types.SimpleNamespace(tqdm=Bar)))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    monkeypatch.setattr(progress, "REDRAW_S", 0.0)
    meter = progress.Meter(None, 100, "download")
    meter.add(60)
    meter.add(40)
    meter.close()
    (bar,) = Bar.made
    assert (bar.n, bar.total, bar.desc, bar.closed) == (100, 100, "download", True) and screen.getvalue() == ""


def test_long_waits_are_told_and_short_ones_are_not(look, monkeypatch):
    screen = look()
    with progress.Waiting("gpurest: compiling"):
        pass
    assert screen.getvalue() == ""
    monkeypatch.setattr(progress, "QUIET_S", 0.01)
    with progress.Waiting("gpurest: compiling"):
        assert settles(screen.getvalue)
    assert screen.getvalue().startswith("\rgpurest: compiling: ") and screen.getvalue().endswith(" s\n")


def test_pipes_see_neither(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.delenv("GPUREST_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "QUIET_S", 0.01)
    with progress.Waiting("gpurest: compiling") as waiting:
        assert waiting._thread is None
    assert not progress.Meter(None, 100, "upload").active and pipe.getvalue() == ""


# ---- pickling ----

def test_handles_say_what_to_pickle_instead(gpu, session, hello):
    with session.batch() as batch:
        pass
    for handle, words in ((gpu, "connect(url)"), (session, "client.attach(id)"), (session.buffer(b"abc"), "buffer.get()"), (session.stream(), "in each process"),
                          (hello.compile(), "source"), (hello.kernel, "RawKernel"), (hello(1, 1, (0,)), "results"), (batch, "results"),
                          (session.builtin("softmax", "f4"), "session.builtin()")):
        with pytest.raises(TypeError) as told:
            pickle.dumps(handle)
        assert f"{type(handle).__name__} objects cannot be pickled" in str(told.value) and words in str(told.value)


def test_kernels_from_source_are_pickled(gpu, capsys):
    kernel = pickle.loads(pickle.dumps(gpurest.RawKernel(HELLO, "hello", ("--std=c++17",))))
    kernel(1, 1, (1,))
    assert capsys.readouterr().out == "hello 0\n"


# ---- IPython ----

@pytest.fixture
def shell(gpu):
    testing_shell = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed")
    made = testing_shell.InteractiveShell()
    made.run_line_magic("load_ext", "gpurest")
    yield made
    made.run_line_magic("unload_ext", "gpurest")
    assert "gpurest" not in made.magics_manager.magics["line"] and "cuda" not in made.magics_manager.magics["cell"]


def test_a_cell_of_cuda_becomes_kernels(shell, capsys):
    result = shell.run_cell("%%cuda --std=c++17\n" + HELLO + '\nextern "C" __global__ void fill(int* x, int v) { x[threadIdx.x] = v; }')
    assert result.success and "hello(" in repr(result.result) and "fill(" in repr(result.result)
    capsys.readouterr()
    assert shell.run_cell("hello[1, 2](2)").success and "hello 0\nhello 1\n" in capsys.readouterr().out
    assert shell.run_cell("import gpurest\nx = gpurest.zeros(4, 'i4')\nfill[1, 4](x, 7)\nassert x.tolist() == [7] * 4").success


def test_the_magic_shows_devices_and_sessions(shell, gpu):
    assert "<td>cpu:0</td>" in shell.run_line_magic("gpurest", "")._repr_html_()
    assert gpu.default_session.id in repr(shell.run_line_magic("gpurest", "session"))
    assert gpu.default_session.id in repr(shell.run_line_magic("gpurest", "sessions"))
    assert "%%cuda" in repr(shell.run_line_magic("gpurest", "help"))
    assert "new worker" in repr(shell.run_line_magic("gpurest", "reset"))
    for wrong in ("nothing", "printf", "printf maybe", "connect a b"):
        with pytest.raises(errors.ArgumentError, match="%gpurest"):
            shell.run_line_magic("gpurest", wrong)
    shell.run_line_magic("gpurest", "printf off")
    assert gpurest.set_printf(True) is False


def test_the_magic_connects(shell, gpu, service):
    assert "cpu:0" in repr(shell.run_line_magic("gpurest", f"connect {service.unix_url}"))
    assert gpurest.default_client().url == service.unix_url
    assert gpurest.zeros(2).tolist() == [0, 0]
    with pytest.raises(errors.GpurestError):
        shell.run_line_magic("gpurest", "connect http://127.0.0.1:1")
    assert gpurest.default_client().url == service.unix_url, "what cannot be reached is not taken"


def plain(text):
    """Without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_tracebacks_are_short(shell, capsys):
    cell = "import gpurest\ndef mine():\n    gpurest.RawKernel('no source', 'f')(1, 1, ())\nmine()"
    assert not shell.run_cell(cell).success
    short = plain(capsys.readouterr().out)
    assert "CompileError" in short and "mine()" in short and "transport.py" not in short and "_session" not in short
    shell.run_line_magic("gpurest", "tracebacks full")
    assert not shell.run_cell(cell).success
    full = plain(capsys.readouterr().out)
    assert "transport.py" in full and len(full.splitlines()) > 2 * len(short.splitlines())
    assert not shell.run_cell("1 / 0").success and "ZeroDivisionError" in capsys.readouterr().out, "others' errors are IPython's"
