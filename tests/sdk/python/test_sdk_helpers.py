"""Helpers on top of the client: ElementwiseKernel, ReductionKernel, autotune, layouts, gpurest.core, the profiler, progress."""
import array
import ast
import importlib.util
import io
import math
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

import gpurest
from conftest import ROOT
from fake_server import fake
from gpurest import core, errors, profiler, testing
from gpurest._session import requests
from gpurest._session.handle import calling_line, named
from gpurest._transport.progress import Meter, bytes_text, line
from sources import SAXPY

PACKAGE = ROOT / "sdk" / "python"


def floats(*values):
    return array.array("f", values)


# ---- CuPy's kernels ----

def test_an_elementwise_kernel(session):
    add = gpurest.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
    x, y = session.buffer(floats(1, 2, 3)), session.buffer(floats(10, 20, 30))
    assert list(add(x, y).get()) == [11, 22, 33] and list(add(x, 0.5).get()) == [1.5, 2.5, 3.5]
    out = session.empty(3, "f4")
    assert add(x, y, out) is out and list(out.get()) == [11, 22, 33]
    integers = session.buffer(array.array("q", [1, 2]))
    assert list(add(integers, integers).get()) == [2, 4]


def test_raw_parameters_several_outputs_and_fixed_types(session):
    shift = gpurest.ElementwiseKernel("raw T x, int32 by", "T left, float64 root", "left = x[(i + by) % n]; root = sqrt((double)x[i])", "shift")
    x = session.buffer(floats(1, 4, 9, 16))
    left, root = session.empty(4, "f4"), session.empty(4, "f8")
    shift(x, 1, left, root)
    assert list(left.get()) == [4, 9, 16, 1] and list(root.get()) == [1, 2, 3, 4]
    left2, root2 = shift(x, 1, size=4)
    assert list(left2.get()) == [4, 9, 16, 1] and root2.dtype.name == "float64"


def test_an_elementwise_kernel_over_more_than_one_grid(session):
    count = 3_000_000
    inc = gpurest.ElementwiseKernel("int32 x", "int32 y", "y = x + 1", "inc")
    x = session.zeros(count, "i4")
    assert bytes(inc(x)) == array.array("i", [1]).tobytes() * count


@pytest.mark.parametrize("wrong", [
    lambda add, s: add(), lambda add, s: add(1.0, 2.0), lambda add, s: add(s.buffer(b"abcd"), 1.0),
    lambda add, s: add(s.empty(3, "f4"), s.empty(3, "f8")),
    lambda add, s: add(s.empty(3, "i4"), 1.5), lambda add, s: add(s.empty(3, "f4"), 1.0, 2.0),
    lambda add, s: gpurest.ElementwiseKernel("T x", "", "", "k"), lambda add, s: gpurest.ElementwiseKernel("T", "T y", "", "k"),
    lambda add, s: gpurest.ElementwiseKernel("T i", "T y", "", "k"), lambda add, s: gpurest.ElementwiseKernel("T x", "T x", "", "k")])
def test_wrong_elementwise_arguments(session, wrong):
    with pytest.raises(errors.ArgumentError):
        wrong(gpurest.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add"), session)


@pytest.mark.parametrize("count", [1, 255, 256, 257, 70_000])
def test_a_reduction_kernel(session, count):
    values = [(i * 7919) % 1000 for i in range(count)]
    x = session.buffer(array.array("q", values))
    total = gpurest.ReductionKernel("T x, T y", "T out", "x * y", "a + b", "out = a", "0", "dot")
    assert list(total(x, x).get()) == [sum(v * v for v in values)]
    largest = gpurest.ReductionKernel("int64 x", "float64 out", "x", "max(a, b)", "out = sqrt((double)a)", "0", "largest", reduce_type="int64")
    assert list(largest(x).get()) == [math.sqrt(max(values))]


def test_both_take_arrays(gpu):
    x = gpurest.asarray([1.0, 2.0, 3.0], dtype="f4") * 2
    halves = gpurest.ElementwiseKernel("T x", "T y", "y = x / 2", "halves")(x)
    assert isinstance(halves, gpurest.ndarray) and halves.tolist() == [1, 2, 3]
    total = gpurest.ReductionKernel("T x", "T out", "x", "a + b", "out = a", "0", "total")(x + 1)
    assert total.tolist() == 15 and total.shape == ()


def test_a_raw_kernel_takes_arrays(gpu):
    x = gpurest.asarray([1.0, 2.0, 3.0], dtype="f4")
    kernel = gpurest.RawKernel(SAXPY, "saxpy")
    y = x + 1
    kernel((1,), (32,), (2.0, x, y, x.size))
    assert y.tolist() == [4, 7, 10] and (y + x).tolist() == [5, 9, 13]
    with pytest.raises(errors.ArgumentError, match="pointer to f32"):
        kernel((1,), (32,), (2.0, x, gpurest.asarray([1, 2, 3]), x.size))
    with pytest.raises(errors.StridesError):
        kernel((1,), (32,), (2.0, x[::2], y, 2))


# ---- autotune ----

def test_autotune_is_remembered_per_kernel_and_device(session):
    x = session.zeros(10_000, "f4")
    kernel = session.module(SAXPY)["saxpy"]
    best = gpurest.autotune(kernel, (1.0, x, x, 10_000), 10_000, block_sizes=(64, 256), repeats=2)
    assert best in (64, 256) and kernel.for_n(10_000).block == best
    assert session.client.session().module(SAXPY)["saxpy"].for_n(1000).block == best
    with pytest.raises(errors.ArgumentError):
        gpurest.autotune(kernel, (), 1, block_sizes=(4096,))


TILED = r"""
#ifndef ITEMS
#define ITEMS 1
#endif
extern "C" __global__ void tiled(float* x, const float* by, int n, int* seen) {
    for (int k = 0; k < ITEMS; k++) {
        int i = (blockIdx.x * ITEMS + k) * blockDim.x + threadIdx.x;
        if (i < n) x[i] += by[0];
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) { seen[0] = blockDim.x; seen[1] = ITEMS; atomicAdd(seen + 2, 1); }
}
"""


def tuned_kernel(session, **more):
    configs = [gpurest.Config(block=64), gpurest.Config(warps=4, constants={"ITEMS": 2}), gpurest.Config(block=(32, 1, 1), constants={"ITEMS": 4})]
    tuned = gpurest.autotune(session.RawKernel(TILED, "tiled"), configs=configs, key=["n"], repeats=2, **more)
    return tuned, configs, session.zeros(1000, "f4"), session.buffer(floats(1)), session.zeros(3, "i4")


def grid_of(config):
    return -(-1000 // (config.threads * config.constants.get("ITEMS", 1)))


def test_a_choice_is_kept_per_key(session):
    tuned, configs, x, by, seen = tuned_kernel(session, restore=["x"])
    launch = tuned[grid_of](x, by, 1000, seen)
    assert launch.state == "succeeded" and list(x.get()) == [1] * 1000  # trying has left nothing behind
    assert len(tuned.chosen) == 1 and seen.get()[2] == 3 * 3 + 1
    best = next(iter(tuned.chosen.values()))
    assert best in configs and list(seen.get()[:2]) == [best.threads, best.constants.get("ITEMS", 1)]
    tuned[grid_of](x, by, 1000, seen)
    assert seen.get()[2] == 11 and list(x.get()) == [2] * 1000  # known
    tuned[grid_of](x, by, 500, seen)
    assert seen.get()[2] == 21 and list(tuned.chosen) == [(session.client.url, "cpu:0", 1000), (session.client.url, "cpu:0", 500)]
    with session.batch():
        tuned[grid_of](x, by, 500, seen)
        with pytest.raises(errors.GpurestError, match="launch it once before"):
            tuned[grid_of](x, by, 400, seen)
    assert list(x.get()[:500]) == [4] * 500 and seen.get()[2] == 22 and "tiled" in repr(tuned)


def test_configurations_are_pruned(session):
    asked = []

    def prune(configs, args):
        asked.append(args)
        return [one for one in configs if one.constants.get("ITEMS") == 4]

    tuned, configs, x, by, seen = tuned_kernel(session, prune=prune)
    tuned[grid_of](x, by, 1000, seen)
    assert list(asked[0]) == ["x", "by", "n", "seen"] and asked[0]["n"] == 1000 and asked[0]["x"] is x
    assert list(tuned.chosen.values()) == configs[2:] and list(seen.get()) == [32, 4, 1]  # one is left: nothing to try
    for wrong in (lambda configs, args: [], lambda configs, args: [gpurest.Config(block=1)]):
        with pytest.raises(errors.ArgumentError, match="prune"):
            tuned_kernel(session, prune=wrong)[0][grid_of](x, by, 1000, seen)


def test_what_cannot_be_launched_is_left_out(session):
    configs = [gpurest.Config(block=2048), gpurest.Config(shared_bytes=1 << 30), gpurest.Config(block=128)]
    kernel = session.RawKernel(SAXPY, "saxpy")
    tuned = gpurest.autotune(kernel, configs=configs, repeats=1)
    x, y = session.buffer(floats(*range(1000))), session.zeros(1000, "f4")
    tuned.for_n(1000)(0.0, x, y, 1000)
    assert list(tuned.chosen.values()) == configs[2:] and tuned.for_n(1000)(2.0, x, y, 1000).gpu_us > 0 and list(y.get()) == [2.0 * i for i in range(1000)]
    with pytest.raises(errors.ArgumentError, match="none of the configurations"):
        gpurest.autotune(kernel, configs=configs[:2]).for_n(1000)(0.0, x, y, 1000)
    free = gpurest.autotune(kernel, configs=[gpurest.Config()])  # the service chooses the block
    assert free.for_n(1000)(0.0, x, y, 1000).state == "succeeded"


def test_tuning_takes_arrays_and_restores_them(gpu):
    x, by, seen = gpurest.zeros(100, "f4"), gpurest.ones(1, "f4"), gpurest.zeros(3, "i4")
    kernel = gpurest.RawKernel(TILED, "tiled")
    tuned = gpurest.autotune(kernel, configs=[gpurest.Config(block=32), gpurest.Config(block=64)], key=["x"], restore=["x", "seen"], repeats=1)
    tuned.for_n(100)(x, by, 100, seen)
    assert x.tolist() == [1] * 100 and seen.tolist()[2] == 1 and list(tuned.chosen) == [(gpu.url, "cpu:0", ("<f4", (100,)))]


@pytest.mark.parametrize("wrong", [
    lambda k: gpurest.Config(block=64, warps=2), lambda k: gpurest.Config(warps=0), lambda k: gpurest.Config(block=0), lambda k: gpurest.Config(constants={"a b": 1}),
    lambda k: gpurest.Config(constants={"A": None}), lambda k: gpurest.autotune(k, configs=[]), lambda k: gpurest.autotune(k, configs=[5]),
    lambda k: gpurest.autotune(k, configs=[gpurest.Config()], key="n"), lambda k: gpurest.autotune(k, configs=[gpurest.Config()], repeats=0),
    lambda k: gpurest.autotune(k), lambda k: gpurest.autotune(k, (), 5, configs=[gpurest.Config()]), lambda k: gpurest.autotune(k, (), 5, key=["n"]),
    lambda k: gpurest.autotune(k.kernel, configs=[gpurest.Config()]), lambda k: gpurest.autotune(k, configs=[gpurest.Config()]).for_n(0),
    lambda k: gpurest.autotune(k, configs=[gpurest.Config(block=(8, 8)), gpurest.Config()]).for_n(9)(1.0, None, None, 9),
    lambda k: gpurest.autotune(k, configs=[gpurest.Config()], key=["m"]).for_n(9)(1.0, None, None, 9),
    lambda k: gpurest.autotune(k, configs=[gpurest.Config()]).for_n(9)(1.0),
    lambda k: gpurest.autotune(k, configs=[gpurest.Config(), gpurest.Config()], restore=["n"]).for_n(9)(1.0, None, None, 9)])
def test_wrong_configurations(session, wrong):
    with pytest.raises(errors.ArgumentError):
        wrong(session.RawKernel(SAXPY, "saxpy"))


def test_a_configuration_as_options_of_the_compiler():
    config = gpurest.Config(warps=8, constants={"TILE": 16, "EXACT": True, "LOOSE": False, "TYPE": "double", "SCALE": 0.5})
    assert config.defines == ("-DTILE=16", "-DEXACT=1", "-DLOOSE=0", "-DTYPE=double", "-DSCALE=0.5") and config.threads == 256
    assert gpurest.Config(block=(8, 4)).threads == 32 and gpurest.Config().threads is None and config == gpurest.Config(warps=8, constants=dict(config.constants))


# ---- layouts ----

def test_layouts():
    numpy = pytest.importorskip("numpy")
    matrix = numpy.arange(15, dtype="f4").reshape(3, 5)
    padded = gpurest.align(matrix, 32)
    assert padded.shape == (3, 8) and (padded[:, :5] == matrix).all() and not padded[:, 5:].any()
    tiles = gpurest.to_tiles(matrix, (2, 2))
    assert tiles.shape == (2, 3, 2, 2) and tiles.flags.c_contiguous and tiles[0, 1].tolist() == [[2, 3], [7, 8]] and tiles[1, 2].tolist() == [[14, 0], [0, 0]]
    records = numpy.zeros(4, [("x", "f4"), ("n", "i4")])
    records["x"], records["n"] = [1, 2, 3, 4], [5, 6, 7, 8]
    arrays = gpurest.coalesce(records)
    assert list(arrays) == ["x", "n"] and arrays["n"].tolist() == [5, 6, 7, 8] and arrays["x"].flags.c_contiguous
    for wrong in (lambda: gpurest.align(matrix, 3), lambda: gpurest.to_tiles(matrix, (0, 1)), lambda: gpurest.to_tiles(numpy.zeros(3), (1, 1)), lambda: gpurest.coalesce(matrix)):
        with pytest.raises(errors.ArgumentError):
            wrong()


# ---- gpurest.core ----

def test_a_program_written_for_cuda_core(gpu):
    code = "template <typename T> __global__ void vector_add(const T* a, const T* b, T* c, size_t n) { size_t i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; }"
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    options = core.ProgramOptions(std="c++17", arch=f"sm_{device.arch}", define_macro=[("A", "1"), "B"], lineinfo=True, fma=False, max_register_count=64)
    module = core.Program(code, "c++", options).compile("cubin", name_expressions=("vector_add<float>",))
    kernel = module.get_kernel("vector_add<float>")
    a, c = device.session.buffer(floats(*range(100))), device.allocate(400)
    core.launch(stream, core.LaunchConfig(grid=1, block=128), kernel, a, a, c, 100)
    stream.sync()
    assert list(c.view("f4").get()) == [2.0 * i for i in range(100)]
    assert device.name and device.compute_capability[0] >= 1 and core.Device().device_id == 0 and int(device) == 0
    again = core.ObjectCode.from_ptx(module.module.code("ptx"))
    assert len(again.module.kernels) == 1
    with pytest.raises(errors.ArgumentError):
        core.Device(7)
    with pytest.raises(errors.ArgumentError):
        core.Program(code, "fortran")
    assert options.as_list() == ["--std=c++17", "--generate-line-info", "--fmad=false", "--maxrregcount=64", "-DA=1", "-DB"]


# ---- profiler ----

def test_the_profiler_tells_times_apart(session):
    kernel, x = session.module(SAXPY)["saxpy"], session.zeros(1000, "f4")
    single = profiler.benchmark(lambda: kernel(4, 256, (1.0, x, x, 1000)), n_repeat=5, n_warmup=1, client=session.client)
    assert single.requests == [1] * 5 and all(t > 0 for t in single.gpu) and all(t >= 0 for t in single.network) and single.gpu_times is single.gpu

    def batch():
        with session.batch():
            for _ in range(3):
                kernel(4, 256, (1.0, x, x, 1000))

    several = profiler.benchmark(batch, n_repeat=2, n_warmup=0, name="batch", client=session.client)
    assert several.requests == [1, 1] and all(t > 0 for t in several.gpu) and "batch" in str(several) and "GPU" in str(several)
    assert not session.client._transport.observers


def test_the_profiler_tells_client_wire_queue_and_device_apart():
    """Each is what it must be at least, of a service that takes 40 ms and says that it spent 1 + 5 + 7 of them."""
    def script(peer):
        while peer.request():
            time.sleep(0.04)
            peer.answer(body={}, Server_Timing="recv;dur=1.000, queue;dur=5.000, h2d;dur=0.000, kernel;dur=7.000, d2h;dur=0.000")

    def busy_and_asking():
        began = time.thread_time()
        while time.thread_time() - began < 0.01:
            pass
        client._transport.do(requests.get("/version"))

    with fake(script) as server, gpurest.connect(server.url, lease_s=None) as client:
        asked = profiler.benchmark(busy_and_asking, n_repeat=2, n_warmup=0, client=client)
        idle = profiler.benchmark(time.sleep, (0.01,), n_repeat=2, n_warmup=0, client=client)
    for cpu, network, queue, gpu, served, count in zip(asked.cpu, asked.network, asked.queue, asked.gpu, asked.server, asked.requests):
        assert cpu >= 0.01 and queue == pytest.approx(0.005) and gpu == pytest.approx(0.007) and served == pytest.approx(0.013) and count == 1
        assert network >= 0.026, "40 ms without the 13 that the service reports, and without the thread's own"
    assert idle.network == idle.queue == idle.gpu == idle.server == [0.0, 0.0] and idle.requests == [0, 0], "nothing was on a wire"
    text = str(asked)
    assert [text.index(label) for label in ("CPU:", "wire:", "queue:", "GPU:")] == sorted(text.index(label) for label in ("CPU:", "wire:", "queue:", "GPU:"))
    assert "queue: 5000.000 us" in text and "GPU: 7000.000 us" in text and "1.0 requests" in text


def test_device_time_is_that_of_the_launch(session):
    kernel, x = session.module(SAXPY)["saxpy"], session.zeros(1000, "f4")
    told = []
    found = profiler.benchmark(lambda: told.append(kernel(4, 256, (1.0, x, x, 1000)).gpu_us), n_repeat=5, n_warmup=1, client=session.client)
    assert found.gpu == pytest.approx([one / 1e6 for one in told[1:]], abs=1.1e-6)  # Server-Timing has whole microseconds


def test_a_trace_lists_requests(session):
    out = io.StringIO()
    with profiler.trace(session.client, out) as requests:
        x = session.buffer(b"1234")
        x.get()
    assert [(one.method, one.status, one.sent_bytes) for one in requests] == [("PUT", 201, 4), ("GET", 206, 0)] and requests[1].received_bytes == 4
    assert len(out.getvalue().splitlines()) == 2 and "4 bytes up" in out.getvalue() and requests[0].seconds > 0
    x.get()
    assert len(requests) == 2


# ---- progress ----

def test_bars(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.delenv("GPUREST_PROGRESS", raising=False)
    quiet = Meter(None, 100, "upload")
    assert not quiet.active  # no terminal
    shown = Meter(True, 100 << 20, "upload")
    shown.add(50 << 20)
    shown.add(50 << 20)
    shown.close()
    assert "100 %" in screen.getvalue() and "100.0 MiB of 100.0 MiB" in screen.getvalue() and screen.getvalue().endswith("\n")
    monkeypatch.setenv("GPUREST_PROGRESS", "0")
    screen.isatty = lambda: True
    assert not Meter(None, 100, "upload").active
    monkeypatch.delenv("GPUREST_PROGRESS")
    assert Meter(None, 100, "upload").active
    assert "50 %" in line("download", 50, 100, 1.0) and "1 s left" in line("download", 50, 100, 1.0) and bytes_text(1536) == "1.5 KiB"


def test_a_bar_of_somebody_else(session):
    class Bar:
        done = 0

        def update(self, count):
            self.done += count

    bar = Bar()
    session.buffer(b"x" * 200_000, progress=bar)
    assert bar.done == 200_000


# ---- the package itself ----

def test_finding_and_starting_a_service(monkeypatch, tmp_path):
    monkeypatch.delenv("GPURESTD")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert testing.find_executable() is None
    with pytest.raises(errors.GpurestError, match="GPURESTD"):
        testing.Service(tmp_path)
    false = tmp_path / "gpurestd"
    false.write_text("#!/bin/sh\nexit 3\n")
    false.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(errors.GpurestError, match="ended at once"):
        testing.Service(tmp_path)


def test_modules_are_there_when_somebody_asks():
    """Also by `import gpurest` alone, which does not load what few need."""
    source = ("import sys, gpurest\n"
              "assert not {'asyncio', 'gpurest.aio', 'gpurest.profiler', 'gpurest.core'} & set(sys.modules)\n"
              "assert gpurest.profiler.benchmark and gpurest.core.Device and gpurest.aio.AsyncClient is gpurest.AsyncClient\n"
              "assert gpurest.profiler is sys.modules['gpurest.profiler'] and not hasattr(gpurest, 'nothing')\n")
    subprocess.run([sys.executable, "-c", source], check=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)}, timeout=120)


def test_every_module_is_python_3_9():
    for path in (PACKAGE / "gpurest").rglob("*.py"):
        ast.parse(path.read_text(), str(path), feature_version=(3, 9))


def test_nothing_beyond_the_standard_library_is_needed():
    if not hasattr(sys, "stdlib_module_names"):
        pytest.skip("this Python does not list its standard library")
    allowed = set(sys.stdlib_module_names) | {"gpurest", "numpy", "pytest"}
    for path in (PACKAGE / "gpurest").rglob("*.py"):
        if path.parent.name == "dask":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert {name.partition(".")[0] for name in names} <= allowed, path


def test_it_installs_without_a_network(tmp_path):
    for name in ("pip", "setuptools", "wheel"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    shutil.copytree(PACKAGE, tmp_path / "source", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(tmp_path / "target"),
                    str(tmp_path / "source")], check=True, capture_output=True, timeout=300)
    code = "import gpurest, gpurest.core, gpurest.aio; print(gpurest.__file__)"
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(tmp_path / "target"), "PATH": ""}, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(tmp_path / "target")) and (tmp_path / "target" / "gpurest" / "py.typed").exists()


def test_files_stay_readable():
    too_long = [f"{path.name}: {count}" for path in (PACKAGE / "gpurest").rglob("*.py") if (count := len(path.read_text().splitlines())) > 600]
    assert not too_long
    assert (pathlib.Path(PACKAGE) / "gpurest" / "py.typed").exists()


def test_a_line_is_named_as_python_numbers_it():
    text = "found = []\n" + "found.append((named(calling_line()), sys._getframe().f_lineno))\nfound.append((\n    named(\n        calling_line()),\n    sys._getframe().f_lineno - 1))\n" * 60
    scope = {"named": named, "calling_line": calling_line, "sys": sys}
    exec(compile(text, "/somewhere/program.py", "exec"), scope)  # noqa: S102
    assert len(scope["found"]) == 120 and all(told == f"program.py:{line}" for told, line in scope["found"])
    assert [told for told, _ in scope["found"][-2:]] == ["program.py:297", "program.py:300"]
