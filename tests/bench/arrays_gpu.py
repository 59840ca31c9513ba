"""Arrays of the Python SDK beside CuPy and PyTorch where they import, and NumPy on the host: elementwise chains, sums, softmax, products of
matrices, Fourier transforms.

    python3 tests/bench/arrays_gpu.py --gpurestd build/release/service/gpurestd [--backend cuda] [--scale 1.0]

Per row: the best of some rounds, for one operation from call to answer ("wall"), and for ours what the device says that its kernels took
("device"); a second row of ours has the built-in kernels off (gpurest.config.builtins), as far as there are others. CuPy's and PyTorch's wall time ends with their synchronisation; results stay on the device in all three. One run's columns can be
compared with each other, figures of different machines or loads cannot."""
import argparse
import importlib
import pathlib
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "sdk" / "python"))

import gpurest  # noqa: E402
from gpurest import testing  # noqa: E402
from gpurest._transport.frame import device_us, unpack  # noqa: E402
from gpurest.arrays.current import current_engine  # noqa: E402

ROUNDS = 5
ROUNDS_WARM = 2


class Ours:
    def __init__(self, name, builtins):
        self.name, self.builtins, self.module = name, builtins, gpurest

    def put(self, array):
        made = gpurest.asarray(array)
        gpurest.flush()
        return made

    def once(self, function, operands):
        """(wall, device) in microseconds; waits for the result to be in device memory."""
        gpurest.config.builtins = self.builtins
        answers, observers = [], current_engine().session.client._transport.observers
        observers.append(lambda request, response, seconds: answers.append(response))  # arrays ask for times only when somebody looks
        start = time.perf_counter()
        made = function(gpurest, *operands)
        made._flush()
        wall_us = (time.perf_counter() - start) * 1e6
        observers.pop()
        return wall_us, sum(device_us(unpack(one.body)[0]) for one in answers if "vnd.gpurest.batch" in one.headers.get("content-type", ""))

    def fetch(self, made):
        return made.get()


class Foreign:
    """NumPy, CuPy, or PyTorch."""

    def __init__(self, name, module, put, wait, fetch):
        self.name, self.module, self.put, self.wait, self.fetch = name, module, put, wait, fetch

    def once(self, function, operands):
        start = time.perf_counter()
        function(self.module, *operands)
        self.wait()
        return (time.perf_counter() - start) * 1e6, None


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def libraries():
    found = [Ours("gpurest", True), Ours("generated", False), Foreign("NumPy", np, np.asarray, lambda: None, np.asarray)]
    cupy, torch = optional("cupy"), optional("torch")
    if cupy is not None:
        found.append(Foreign("CuPy", cupy, cupy.asarray, cupy.cuda.Device().synchronize, cupy.asnumpy))
    if torch is not None and torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = False
        found.append(Foreign("PyTorch", torch, lambda a: torch.as_tensor(a).cuda(), torch.cuda.synchronize, lambda t: t.cpu().numpy()))
    return found


def chain(n, x, y):
    z = x
    for at in range(10):
        z = z * 1.01 + y
    return z


def softmax(n, x):
    if n.__name__ in ("torch", "gpurest"):
        return n.softmax(x, 1)
    e = n.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def transposed(n, x):
    return x.T.contiguous() if n.__name__ == "torch" else x.T.copy()


def sorted_copy(n, x):
    return n.sort(x)[0] if n.__name__ == "torch" else n.sort(x)


def deviation(n, x):
    return n.std(x, unbiased=False) if n.__name__ == "torch" else n.std(x)


def cases(scale):
    """(name, function, operands, what counts: ("GB/s", bytes moved at least) or ("GFLOP/s", operations))."""
    rng = np.random.default_rng(0)

    def array(*shape):
        return rng.random(shape, dtype="f4")

    long, side, square = int(64e6 * scale), max(64, int(8192 * scale ** 0.5)), max(64, int(4096 * scale ** (1 / 3)) // 16 * 16)
    transforms = max(4, int(8192 * scale))
    z, thousands = (array(transforms, 4096) + 1j * array(transforms, 4096)).astype("c8"), array(transforms, 1000)
    a, b, rows, x, y = array(square, square), array(square, square), array(side, side), array(long), array(long)
    return [
        ("x * 1.01 + y, ten times", chain, (x, y), ("GB/s", 3 * x.nbytes)),
        ("sum", lambda n, one: one.sum(), (x,), ("GB/s", x.nbytes)),
        ("sum over rows", lambda n, one: one.sum(1), (rows,), ("GB/s", rows.nbytes)),
        ("sum over columns", lambda n, one: one.sum(0), (rows,), ("GB/s", rows.nbytes)),
        ("std", deviation, (x,), ("GB/s", 2 * x.nbytes)),
        ("softmax over rows", softmax, (rows,), ("GB/s", 2 * rows.nbytes)),
        ("argmax over rows", lambda n, one: one.argmax(1), (rows,), ("GB/s", rows.nbytes)),
        ("cumsum", lambda n, one: n.cumsum(one, 0), (y[:long // 4],), ("GB/s", 2 * x.nbytes // 4)),
        ("sort", sorted_copy, (y[:long // 4],), ("GB/s", 2 * x.nbytes // 4)),
        ("transposed copy", transposed, (rows,), ("GB/s", 2 * rows.nbytes)),
        ("a @ b, 1024", lambda n, one, other: one @ other, (a[:1024, :1024].copy(), b[:1024, :1024].copy()), ("GFLOP/s", 2 * min(square, 1024) ** 3)),
        ("a @ b.T, 1024", lambda n, one, other: one @ other.T, (a[:1024, :1024].copy(), b[:1024, :1024].copy()), ("GFLOP/s", 2 * min(square, 1024) ** 3)),
        (f"a @ b, {square}", lambda n, one, other: one @ other, (a, b), ("GFLOP/s", 2 * square ** 3)),
        ("z * conj(z) + 2j * z", lambda n, one: one * n.conj(one) + 2j * one, (z,), ("GB/s", 2 * z.nbytes)),
        ("fft of 4096", lambda n, one: n.fft.fft(one), (z,), ("GB/s", 2 * z.nbytes)),
        ("rfft of 4096", lambda n, one: n.fft.rfft(one), (z.real.copy(),), ("GB/s", z.nbytes)),
        ("rfft of 1000", lambda n, one: n.fft.rfft(one), (thousands,), ("GB/s", 2 * thousands.nbytes)),
        ("x[:1000] + 1", lambda n, one: one[:1000] + 1, (x,), ("GB/s", 8000)),
    ]


def measure(library, function, operands):
    rounds, warm = (1, 0) if library.name == "NumPy" else (ROUNDS, ROUNDS_WARM)
    times = [library.once(function, operands) for _ in range(warm + rounds)][warm:]
    device = [one[1] for one in times if one[1] is not None]
    return min(one[0] for one in times), (min(device) if device else None)


def row(case, all_libraries):
    name, function, operands, (unit, amount) = case
    expected = np.asarray(function(np, *operands))
    wide = "c16" if expected.dtype.kind == "c" else "f8"
    expected = expected.astype(wide)
    least = np.sqrt(np.mean(np.abs(expected) ** 2)) if wide == "c16" else 1e-3  # a transform's small numbers are as wrong as its large ones
    for library in all_libraries:
        there = [library.put(one) for one in operands]
        got = np.asarray(library.fetch(function(library.module, *there)), dtype=wide)
        wrong = float(np.max(np.abs(got - expected) / np.maximum(np.abs(expected), least)))
        wall, device = measure(library, function, there)
        rate = amount / ((device or wall) * 1e-6) / 1e9
        told = f"{device:12.1f}" if device is not None else " " * 12
        print(f"{name:24} {library.name:8} {wall:12.1f} {told} {rate:10.1f} {unit:8} {wrong:10.2e}", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--gpurestd", default=testing.find_executable())
    options.add_argument("--backend", default="cuda")
    options.add_argument("--scale", type=float, default=1.0, help="of the work; 0.001 for a look on the cpu device")
    given = options.parse_args()
    with testing.server(executable=given.gpurestd, device=given.backend) as service, gpurest.connect(service.url) as gpu:
        gpurest.set_default(gpu)
        print(f"device {gpu.default_session.device}: {gpu.devices()[0]['name']}")
        print(f"{'':24} {'':8} {'wall us':>12} {'device us':>12} {'rate':>10} {'':8} {'deviation':>10}")
        for case in cases(given.scale):
            row(case, libraries())
        gpurest.set_default(None)


if __name__ == "__main__":
    main()
