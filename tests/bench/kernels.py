"""Built-in kernels beside PyTorch and CuPy in one run: device time by the device's own events, ratios, and achieved over measured copy bandwidth.

    python3 tests/bench/kernels.py --gpurestd build/release/service/gpurestd [--backend cuda] [--rounds 7] [--rows matmul,sorting] [--only add]
                                   [--seconds 140] [--lead 64] [--json out.json]

Every figure is the least of some rounds of the time between two events around many calls, divided by their number. Ours are launches of a program,
so they reach the device as one CUDA graph, and short ones are so many that what its start costs hardly counts; PyTorch's calls are captured as
one graph too (those that cannot be captured run as a loop, marked *).
CuPy's run as a loop and include what its host needs per call where that is longer than the kernel. Operands are the same random numbers for all.
Before the first event the device gets --lead copies to do, so that everything timed is queued behind them by the time that they are done: else the
figures of short kernels hold what the host needs until the first is on its way. With --lead 0 they do. Behind the copies come two calls that are not
timed, since a kernel behind a copy begins some 10 us late.
--rows names groups of cases, --seconds begins no case later than that and says which ones were left, so that a run can be done in parts; each figure
is given up after ROW_SECONDS, with the rounds that it had.
Where a library of the GPU's maker can do a kernel, it is measured too, in a row of its own.
One run's columns can be compared with each other, figures of different machines cannot."""
import argparse
import functools
import importlib
import json
import pathlib
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "service"))

import batch_client  # noqa: E402
import os  # noqa: E402

M = 1 << 20
ROW_SECONDS = 4  # of rounds for one figure; the first round is always done
LEAD_BYTES = 256 * M


def peer(name):
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever keeps it from being used: it is told, not hidden
        print(f"{name}: not here ({type(error).__name__})", file=sys.stderr)
        return None


class Case:
    """`inputs`: arrays by name; `outputs`: bytes by name; `launch(buf)`: (builtin, dtype, args) with buf(name) for a buffer. moved: bytes that must
    cross the memory bus; flops instead for products. torch, cupy: functions of their module and a dict of its arrays, giving a call."""

    def __init__(self, name, inputs, outputs, builtin, dtype, args, moved=0, flops=0, torch=None, cupy=None, calls=None, tf32=False, cast=None):
        self.name, self.inputs, self.outputs, self.builtin, self.dtype, self.args = name, inputs, outputs, builtin, dtype, args
        self.moved, self.flops, self.torch, self.cupy, self.tf32, self.cast = moved, flops, torch, cupy, tf32, cast
        guess_ms = max(moved / 4e9, flops / 3e10)
        many = 50 if builtin.startswith("fft") else 2000 if guess_ms < 0.004 else 400  # each transform has scratch memory of its own
        self.calls = calls or (many if guess_ms < 0.02 else 50 if guess_ms < 0.1 else 40 if guess_ms < 1 else 10)


def u64(n):
    return {"u64": int(n)}


# Making them takes longer than most measurements, and all that are compared want the same ones.
@functools.lru_cache(maxsize=4)
def f32_random(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n, np.float32)


@functools.lru_cache(maxsize=2)
def bf16_random(n, seed=0):
    return bf16_bits(f32_random(n, seed))


def bf16_bits(x):
    bits = x.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def elementwise_cases():
    for n, label in ((M, "1M"), (64 * M, "64M")):
        yield Case(f"add f32 {label}", {"a": lambda n=n: f32_random(n), "b": lambda n=n: f32_random(n, 1)}, {"out": 4 * n}, "add", "f32",
                   ["a", "b", "out", u64(n)], moved=12 * n, torch=lambda t, v: lambda: t.add(v["a"], v["b"], out=v["out"]),
                   cupy=lambda c, v: lambda: c.add(v["a"], v["b"], v["out"]))
    n = 64 * M
    yield Case("exp f32 64M", {"a": lambda: f32_random(n)}, {"out": 4 * n}, "exp", "f32", ["a", "out", u64(n)], moved=8 * n,
               torch=lambda t, v: lambda: t.exp(v["a"], out=v["out"]), cupy=lambda c, v: lambda: c.exp(v["a"], v["out"]))
    yield Case("copy f32 64M", {"a": lambda: f32_random(n)}, {"out": 4 * n}, "copy", "f32", ["a", "out", u64(n)], moved=8 * n,
               torch=lambda t, v: lambda: v["out"].copy_(v["a"]), cupy=lambda c, v: lambda: c.copyto(v["out"], v["a"]))


def reduce_cases():
    for n, label in ((M, "1M"), (64 * M, "64M")):
        yield Case(f"sum f32 {label}", {"a": lambda n=n: f32_random(n)}, {"out": 4}, "reduce_sum", "f32", ["a", "out", u64(n)], moved=4 * n,
                   torch=lambda t, v: lambda: t.sum(v["a"]), cupy=lambda c, v: lambda: v["a"].sum())
    n = 64 * M
    yield Case("argmax f32 64M", {"a": lambda: f32_random(n)}, {"out": 8}, "reduce_argmax", "f32", ["a", "out", u64(n)], moved=4 * n,
               torch=lambda t, v: lambda: t.argmax(v["a"]), cupy=lambda c, v: lambda: v["a"].argmax())
    yield Case("var f32 64M", {"a": lambda: f32_random(n)}, {"out": 4}, "reduce_var", "f32", ["a", "out", u64(n), {"f64": 1}], moved=4 * n,
               torch=lambda t, v: lambda: t.var(v["a"]), cupy=lambda c, v: lambda: v["a"].var(ddof=1))
    rows, columns = 65536, 1024
    for name, sizes, shape, axis in (("last", (rows, columns, 1), (rows, columns), 1), ("first", (1, columns, rows), (columns, rows), 0)):
        yield Case(f"sum f32 {name} axis", {"a": lambda: f32_random(rows * columns)}, {"out": 4 * rows}, "reduce_sum_axis", "f32",
                   ["a", "out", *map(u64, sizes)], moved=4 * rows * columns,
                   torch=lambda t, v, s=shape, x=axis: lambda: t.sum(v["a"].view(s), x),
                   cupy=lambda c, v, s=shape, x=axis: lambda: v["a"].reshape(s).sum(x))


def row_cases():
    for rows, columns, label in ((1, 10000, "10K"), (1024, 1024, "1024x1024"), (65536, 1024, "65536x1024")):
        n = rows * columns
        yield Case(f"softmax f32 {label}", {"a": lambda n=n: f32_random(n)}, {"out": 4 * n}, "softmax", "f32",
                   ["a", "out", u64(rows), u64(columns)], moved=8 * n,
                   torch=lambda t, v, s=(rows, columns): lambda: t.softmax(v["a"].view(s), 1))
    n = rows * columns
    yield Case(f"layer norm f32 {label}", {"a": lambda: f32_random(n), "g": lambda: f32_random(columns), "b": lambda: f32_random(columns)},
               {"out": 4 * n}, "layer_norm", "f32", ["a", "g", "b", "out", u64(rows), u64(columns), {"f64": 1e-5}], moved=8 * n,
               torch=lambda t, v: lambda: t.nn.functional.layer_norm(v["a"].view(rows, columns), (columns,), v["g"], v["b"], 1e-5))


def matmul_cases():
    for n in (1024, 8192):
        for dtype, builtin, tf32 in (("f32", "matmul", False), ("f32", "matmul_tf32", True), ("bf16", "matmul", False)):
            each = 2 if dtype == "bf16" else 4
            make = (lambda n=n, s=0: bf16_random(n * n, s)) if dtype == "bf16" else (lambda n=n, s=0: f32_random(n * n, s))
            yield Case(f"matmul {'tf32' if tf32 else dtype} {n}", {"a": make, "b": lambda make=make: make(s=1)}, {"out": each * n * n}, builtin, dtype,
                       ["a", "b", "out", u64(n), u64(n), u64(n), u64(1)], flops=2 * n ** 3, tf32=tf32, cast="bfloat16" if dtype == "bf16" else None,
                       torch=lambda t, v, n=n: lambda: t.matmul(v["a"].view(n, n), v["b"].view(n, n), out=v["out"].view(n, n)),
                       cupy=None if tf32 or dtype == "bf16" else lambda c, v, n=n: lambda: c.matmul(v["a"].reshape(n, n), v["b"].reshape(n, n)))


def sorting_cases():
    n = 16 * M
    yield Case("scan f32 16M", {"a": lambda: f32_random(n)}, {"out": 4 * n}, "scan_sum", "f32", ["a", "out", u64(n), {"bool": False}], moved=8 * n,
               torch=lambda t, v: lambda: t.cumsum(v["a"], 0, out=v["out"]), cupy=lambda c, v: lambda: c.cumsum(v["a"], out=v["out"]))
    yield Case("sort f32 16M", {"a": lambda: f32_random(n)}, {"out": 4 * n}, "sort", "f32", ["a", "out", u64(n), {"bool": False}],
               torch=lambda t, v: lambda: t.sort(v["a"]), cupy=lambda c, v: lambda: c.sort(v["a"]), moved=8 * n)


def movement_cases():
    side = 8192
    yield Case("transpose f32 8192", {"a": lambda: f32_random(side * side)}, {"out": 4 * side * side}, "transpose", "f32",
               ["a", "out", u64(side), u64(side), u64(1)], moved=8 * side * side,
               torch=lambda t, v: lambda: v["out"].view(side, side).copy_(v["a"].view(side, side).t()),
               cupy=lambda c, v: lambda: c.copyto(v["out"].reshape(side, side), v["a"].reshape(side, side).T))
    n = 64 * M
    yield Case("uniform f32 64M", {}, {"out": 4 * n}, "random_uniform", "f32", ["out", u64(n), u64(1), u64(0)], moved=4 * n,
               torch=lambda t, v: lambda: v["out"].uniform_())
    yield Case("normal f32 64M", {}, {"out": 4 * n}, "random_normal", "f32", ["out", u64(n), u64(1), u64(0)], moved=4 * n,
               torch=lambda t, v: lambda: v["out"].normal_())


def fft_cases():
    n = M
    yield Case("fft c64 1M", {"a": lambda: f32_random(2 * n)}, {"out": 8 * n}, "fft", "f32", ["a", "out", u64(n), u64(1), {"bool": False}],
               moved=16 * n, torch=lambda t, v: lambda: t.fft.fft(t.view_as_complex(v["a"].view(-1, 2))),
               cupy=lambda c, v: lambda: c.fft.fft(v["a"].view(c.complex64)))
    batch, size = 4096, 1024
    yield Case("fft c64 4096x1024", {"a": lambda: f32_random(2 * batch * size)}, {"out": 8 * batch * size}, "fft", "f32",
               ["a", "out", u64(size), u64(batch), {"bool": False}], moved=16 * batch * size,
               torch=lambda t, v: lambda: t.fft.fft(t.view_as_complex(v["a"].view(batch, size, 2))))
    n = 16 * M
    yield Case("fft c64 16M", {"a": lambda: f32_random(2 * n)}, {"out": 8 * n}, "fft", "f32", ["a", "out", u64(n), u64(1), {"bool": False}],
               moved=16 * n, torch=lambda t, v: lambda: t.fft.fft(t.view_as_complex(v["a"].view(-1, 2))),
               cupy=lambda c, v: lambda: c.fft.fft(v["a"].view(c.complex64)))
    yield Case("fft c64 1024x4096 first axis", {"a": lambda: f32_random(2 * batch * size)}, {"out": 8 * batch * size}, "fft_axis", "f32",
               ["a", "out", u64(1), u64(size), u64(batch), {"bool": False}], moved=16 * batch * size,
               torch=lambda t, v: lambda: t.fft.fft(t.view_as_complex(v["a"].view(size, batch, 2)), dim=0))


def planes_cases():
    images, channels, side = 32, 64, 56
    places = images * channels * side * side
    yield Case("conv2d f32 3x3 32x64x56x56", {"a": lambda: f32_random(places), "w": lambda: f32_random(channels * channels * 9)}, {"out": 4 * places},
               "conv2d", "f32", ["a", "w", "out", *map(u64, (images, 1, channels, side, side, channels, side, side, 3, 3, 1, 1, 1, 1, 1, 1))],
               flops=2 * places * channels * 9,
               torch=lambda t, v: lambda: t.nn.functional.conv2d(v["a"].view(images, channels, side, side), v["w"].view(channels, channels, 3, 3), padding=1))
    side = 8192
    yield Case("correlate2d f32 5x5 8192", {"a": lambda: f32_random(side * side), "w": lambda: f32_random(25)}, {"out": 4 * side * side}, "correlate2d",
               "f32", ["a", "w", "out", u64(1), u64(side), u64(side), {"u32": 2}, {"u32": 2}, {"u32": 0}], moved=8 * side * side,
               torch=lambda t, v: lambda: t.nn.functional.conv2d(v["a"].view(1, 1, side, side), v["w"].view(1, 1, 5, 5), padding=2))


def matrices_cases():
    for n, batch in ((1024, 1), (32, 4096)):
        each, shape, label = 4 * n * n * batch, (batch, n, n), f"{batch}x{n}x{n}"
        make, sizes = (lambda e=each: f32_random(e // 4)), [u64(n), u64(batch)]
        marks = {"order": 4 * n * batch, "exchanges": 4 * batch, "info": 4 * batch}
        yield Case(f"lu f32 {label}", {"a": make}, {"out": each, **marks}, "lu", "f32", ["a", "out", *marks, *sizes], flops=2 * n ** 3 // 3 * batch,
                   torch=lambda t, v, s=shape: lambda: t.linalg.lu_factor(v["a"].view(s)), calls=2)
        yield Case(f"qr f32 {label}", {"a": make}, {"out": each, "tau": 4 * n * batch}, "qr", "f32", ["a", "out", "tau", u64(n), *sizes],
                   flops=4 * n ** 3 // 3 * batch, torch=lambda t, v, s=shape: lambda: t.geqrf(v["a"].view(s)), calls=2)
        yield Case(f"eigh f32 {label}", {"a": make}, {"w": 4 * n * batch, "v": each, "info": 4 * batch}, "eigh", "f32", ["a", "w", "v", "info", *sizes, u64(1)],
                   torch=lambda t, v, s=shape: lambda: t.linalg.eigh(v["a"].view(s)), calls=2)
        yield Case(f"svd f32 {label}", {"a": make}, {"u": each, "s": 4 * n * batch, "v": each, "info": 4 * batch}, "svd", "f32",
                   ["a", "u", "s", "v", "info", *[u64(n)] * 4, u64(batch)], torch=lambda t, v, s=shape: lambda: t.linalg.svd(v["a"].view(s)), calls=2)


ROWS = {"elementwise": elementwise_cases, "reduce": reduce_cases, "rows": row_cases, "matmul": matmul_cases, "sorting": sorting_cases,
        "movement": movement_cases, "fft": fft_cases, "planes": planes_cases, "matrices": matrices_cases}


def chosen_cases(options):
    """Those asked for, as long as there is time; says which ones were left."""
    until, left = time.monotonic() + options.seconds, []
    for case in (case for name in options.rows for case in ROWS[name]() if options.only in case.name):
        if time.monotonic() < until:
            yield case
        else:
            left.append(case.name)
    if left:
        print(f"not begun within {options.seconds} s: {', '.join(left)}", flush=True)


def least_of(rounds, once):
    """Of `rounds` figures behind a first one, or of as many as there is time for."""
    until, least = time.monotonic() + ROW_SECONDS, None
    for _ in range(rounds + 1):
        us = once()
        least = us if least is None else min(least, us)
        if time.monotonic() > until:
            break
    return least


class Ours:
    def __init__(self, gpurestd, options, folder):
        backend = options.backend
        os.environ["GPUREST_TEST_BACKENDS"] = backend
        from service_under_test import Service
        self.service = Service(gpurestd, folder)
        self.client = self.service.client()
        self.client.timeout = 600
        assert self.client.put("/v1/sessions/bench").status == 201
        self.known = {item["name"]: item for item in self.client.get("/v1/kernels?limit=1000").json()["items"]}
        self.libraries = self.client.get("/v1/devices").json()["items"][0]["libraries"]
        self.lead = [{"op": "copy", "from": "lead_from", "to": "lead_to"}] * options.lead
        for name in ("lead_from", "lead_to"):
            assert self.client.put(f"/v1/sessions/bench/buffers/{name}", {"size": LEAD_BYTES if options.lead else 1}).status == 201

    def device(self):
        return self.client.get("/v1/devices").json()["items"][0]["name"]

    def timed(self, ops, calls, rounds):
        """Least time per call, in microseconds, of a program of warm-up and `calls` times ops between two events."""
        program = [{"op": "record", "event": "begin"}] + ops * calls + [{"op": "record", "event": "end"}, {"op": "elapsed", "from": "begin", "to": "end"}]
        path = "/v1/sessions/bench/programs/p"
        answer = self.client.put(path, {"ops": ops * 2 + self.lead + ops * 2 + program, "timeout_ms": 300000})
        assert answer.status == 201, answer

        def once():
            run = batch_client.send(self.client, path + "/runs", {}, {})
            assert run.status == 200, run
            return next(op["elapsed_us"] for op in run.message["ops"] if "elapsed_us" in op) / calls
        least = least_of(rounds, once)
        assert self.client.delete(path).status == 204
        return least

    def library(self, case):
        """The name of the one that can do this case here, or None."""
        libraries = self.known.get(case.builtin, {}).get("libraries", [])
        return next((one["name"] for one in libraries if case.dtype in one["dtypes"] and self.libraries[one["name"]]), None)

    def measure(self, case, rounds, engine="builtin"):
        if case.builtin not in self.known:
            return None
        for name, make in case.inputs.items():
            assert self.client.put_octets(f"/v1/sessions/bench/buffers/{name}", make().tobytes()).status == 201
        for name, size in case.outputs.items():
            assert self.client.put(f"/v1/sessions/bench/buffers/{name}", {"size": size}).status == 201
        launch = {"op": "launch", "builtin": case.builtin, "dtype": case.dtype, "args": [{"buf": a} if isinstance(a, str) else a for a in case.args],
                  "engine": engine}
        us = self.timed([launch], case.calls, rounds)
        for name in [*case.inputs, *case.outputs]:
            assert self.client.delete(f"/v1/sessions/bench/buffers/{name}").status == 204
        return us

    def copy_bandwidth(self, rounds):
        size = 256 * M
        for name in ("a", "b"):
            assert self.client.put(f"/v1/sessions/bench/buffers/{name}", {"size": size}).status == 201
        us = self.timed([{"op": "copy", "from": "a", "to": "b"}], 10, rounds)
        for name in ("a", "b"):
            assert self.client.delete(f"/v1/sessions/bench/buffers/{name}").status == 204
        return 2 * size / us / 1e3


def torch_measure(torch, case, rounds, lead):
    """(microseconds per call, captured as a graph?)"""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = case.tf32
    arrays = {}
    for name, make in case.inputs.items():
        host = torch.from_numpy(make().view(np.int16) if case.cast else make())
        arrays[name] = host.cuda().view(getattr(torch, case.cast)) if case.cast else host.cuda()
    for name, size in case.outputs.items():
        kind = getattr(torch, case.cast or "float32")
        arrays[name] = torch.empty(max(1, size // (2 if case.cast else 4)), dtype=kind, device="cuda")
    call = case.torch(torch, arrays)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    captured = True
    try:
        with torch.cuda.graph(graph):
            for _ in range(case.calls):
                call()
        many = graph.replay
    except Exception:
        captured = False
        torch.cuda.synchronize()

        def many():
            for _ in range(case.calls):
                call()
    return events(torch, call, many, case.calls, rounds, lead), captured


@functools.cache
def torch_lead(torch):
    return [torch.zeros(LEAD_BYTES, dtype=torch.uint8, device="cuda") for _ in range(2)]


def events(torch, call, many, calls, rounds, lead):
    def once():
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        for _ in range(lead):
            torch_lead(torch)[1].copy_(torch_lead(torch)[0])
        call(), call()
        begin.record()
        many()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e3 / calls
    return least_of(rounds, once)


@functools.cache
def cupy_lead(cupy):
    return [cupy.zeros(LEAD_BYTES, cupy.uint8) for _ in range(2)]


def cupy_measure(cupy, case, rounds, lead):
    arrays = {name: cupy.asarray(make()) for name, make in case.inputs.items()}
    for name, size in case.outputs.items():
        arrays[name] = cupy.empty(max(1, size // 4), cupy.float32)
    call = case.cupy(cupy, arrays)
    for _ in range(3):
        call()

    def once():
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        for _ in range(lead):
            cupy.copyto(cupy_lead(cupy)[1], cupy_lead(cupy)[0])
        call(), call()
        begin.record()
        for _ in range(case.calls):
            call()
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(begin, end) * 1e3 / case.calls
    return least_of(rounds, once)


def row_of(case, ours, torch_us, captured, cupy_us, copy, library=None):
    def cell(us, form="{:10.1f}"):
        return form.format(us) if us is not None else " " * 9 + "-"
    text = f"{f'  by {library}' if library else case.name:26s}{cell(ours)}{cell(torch_us)}{' ' if captured else '*'}{cell(cupy_us)}"
    text += cell(torch_us / ours if ours and torch_us else None, "{:10.2f}") + cell(cupy_us / ours if ours and cupy_us else None, "{:10.2f}")
    if ours and case.moved:
        text += f"{case.moved / ours / 1e3:10.0f} GB/s {case.moved / ours / 1e3 / copy:5.2f} of copy"
    if ours and case.flops:
        text += f"{case.flops / ours / 1e6:10.1f} TFLOP/s"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpurestd", required=True)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rows", type=lambda names: names.split(","), default=list(ROWS), help=f"groups of cases, of {','.join(ROWS)}; all")
    parser.add_argument("--seconds", type=float, default=3600, help="no case is begun later")
    parser.add_argument("--lead", type=int, help=f"copies of {LEAD_BYTES // M} MiB that the device does before the first event; 64, without a GPU 0")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if not set(options.rows) <= set(ROWS):
        parser.error(f"--rows takes {','.join(ROWS)}")
    if options.lead is None:
        options.lead = 64 if options.backend == "cuda" else 0
    torch, cupy = (peer("torch"), peer("cupy")) if options.backend == "cuda" else (None, None)
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(str(pathlib.Path(options.gpurestd).resolve()), options, folder)
        copy = ours.copy_bandwidth(options.rounds)
        print(f"{ours.device()}; PyTorch {getattr(torch, '__version__', '-')}, CuPy {getattr(cupy, '__version__', '-')}; copy {copy:.0f} GB/s "
              "(256 MiB, read and written)")
        print(f"{'microseconds':26s}{'gpurest':>10s}{'PyTorch':>10s} {'CuPy':>10s}{'PyT/ours':>10s}{'CuPy/ours':>10s}")
        told = []
        for case in chosen_cases(options):
            own = ours.measure(case, options.rounds)
            torch_us, captured = torch_measure(torch, case, options.rounds, options.lead) if torch and case.torch else (None, True)
            cupy_us = cupy_measure(cupy, case, options.rounds, options.lead) if cupy and case.cupy else None
            print(row_of(case, own, torch_us, captured, cupy_us, copy), flush=True)
            library = ours.library(case)
            by_library = ours.measure(case, options.rounds, "vendor") if library else None
            if library:
                print(row_of(case, by_library, torch_us, captured, cupy_us, copy, library), flush=True)
            told.append({"case": case.name, "ours_us": own, "library": library, "library_us": by_library, "torch_us": torch_us, "torch_graph": captured, "cupy_us": cupy_us, "moved": case.moved,
                         "flops": case.flops, "copy_gb_per_s": copy})
            if torch:
                torch.cuda.empty_cache()
        ours.client.close()
        ours.service.stop()
    if options.json:
        options.json.write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
