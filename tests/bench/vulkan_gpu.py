"""A vulkan device beside NumPy, and beside `cuda` (or `cpu`) of the same machine in the same run: demos in GLSL and as SPIR-V, memory
bandwidth, and what a launch costs.

    python3 tests/bench/vulkan_gpu.py --gpurestd build/release/service/gpurestd [--beside cuda] [--rounds 20] [--mib 128]

Wall is the best of some rounds from call to answer, with the data on the device before and after; device is what the device says of its
kernels in the best round. Speed-ups are NumPy's time on the host, as many threads as it takes, over each of the two. Results are checked first.
On lavapipe the figures say that everything runs, and nothing else."""
import argparse
import os
import pathlib
import statistics
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "sdk" / "python"))

import gpurest  # noqa: E402
import gpurest.errors  # noqa: E402
from gpurest import testing  # noqa: E402
from gpurest._transport.frame import device_us, unpack  # noqa: E402

SHADERS = pathlib.Path(__file__).resolve().parent / "shaders"
GOALS = {"vecadd 1M": 20, "matmul 1024": 40, "reduce 1M": 15}  # times faster than NumPy by device time, on an H200
MIB = 1 << 20
BLOCK = 256
CUDA = r"""
extern "C" __global__ void vecadd(const float4 *a, const float4 *b, float4 *c, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4)
        c[i] = make_float4(a[i].x + b[i].x, a[i].y + b[i].y, a[i].z + b[i].z, a[i].w + b[i].w);
}
extern "C" __global__ void nothing(float *to) { to[0] = 1; }
"""


def source(name):
    return (SHADERS / f"{name}.comp").read_text()


class Cell:
    """One figure: `wall` and `device` in microseconds."""

    def __init__(self, wall, device):
        self.wall, self.device = wall, device


def timed(once, rounds):
    """The best round of `once`, which returns the device's microseconds."""
    best = None
    for _ in range(rounds + 2):
        start = time.perf_counter()
        device = once()
        wall = (time.perf_counter() - start) * 1e6
        if best is None or wall < best.wall:
            best = Cell(wall, device)
    return best


def host_time(function, rounds):
    """The best round in microseconds."""
    return timed(lambda: (function(), 0.0)[1], rounds).wall


class Vulkan:
    """The demos as shaders, from GLSL or from SPIR-V."""

    def __init__(self, session, spirv):
        self.session, self.name = session, "SPIR-V" if spirv else "GLSL"
        self.pipelines = {name: session.create_pipeline(self.module(name, spirv)) for name in ("vecadd", "matmul", "reduce", "nothing")}

    def module(self, name, spirv):
        made = self.session.glsl(source(name))
        return self.session.load_spirv(made.code("spirv")) if spirv else made

    def run(self, name, groups, buffers, push=()):
        return self.pipelines[name].dispatch(groups, buffers, push).wait().launch.gpu_us

    def vecadd(self, n, a, b, c):
        return self.run("vecadd", (-(-n // 4 // BLOCK),), (a, b, c), (np.uint32(n),))

    def matmul(self, n, a, b, c):
        return self.run("matmul", (n // 64, n // 64), (a, b, c), (np.uint32(n),))

    def reduce(self, n, x, part, total):
        blocks = min(BLOCK, -(-n // BLOCK))
        first = self.pipelines["reduce"].dispatch((blocks,), (x, part), (np.uint32(n),))
        last = self.pipelines["reduce"].dispatch((1,), (part, total), (np.uint32(blocks),)).wait()
        return first.wait().launch.gpu_us + last.launch.gpu_us

    def nothing(self, to):
        return self.run("nothing", (1,), (to,))


class Other:
    """The same on the device beside it: own CUDA C++, and the service's built-in kernels."""

    def __init__(self, session):
        self.session, self.name = session, session.device
        self.kernels = session.compile(CUDA)
        self.matmul_kernel, self.sum_kernel = session.builtin("matmul", np.float32), session.builtin("reduce_sum", np.float32)

    def vecadd(self, n, a, b, c):
        return self.kernels.kernel("vecadd")((-(-n // 4 // BLOCK),), (BLOCK,), (a, b, c, np.uint32(n))).gpu_us

    def matmul(self, n, a, b, c):
        return self.matmul_kernel(a, b, c, n, n, n, 1).gpu_us

    def reduce(self, n, x, part, total):
        return self.sum_kernel(x, total, n).gpu_us

    def nothing(self, to):
        return self.kernels.kernel("nothing")((1,), (1,), (to,)).gpu_us


class Arrays:
    """The same as arrays."""

    def __init__(self, session):
        self.session, self.name = session, f"arrays on {session.device}"

    def once(self, function):
        """The device's microseconds of what `function` makes, which is waited for."""
        answers, observers = [], self.session.client._transport.observers
        observers.append(lambda request, response, seconds: answers.append(response))
        function()._flush()
        observers.pop()
        return sum(device_us(unpack(one.body)[0]) for one in answers if "vnd.gpurest.batch" in one.headers.get("content-type", ""))

    def rows(self, operands):
        a, b, left, right = (gpurest.asarray(one, session=self.session) for one in operands)
        gpurest.flush(self.session)
        return {"vecadd 1M": lambda: a + b, "matmul 1024": lambda: left @ right, "reduce 1M": lambda: a.sum()}


def close(got, expected, rtol):
    np.testing.assert_allclose(got, expected, rtol=rtol)


def read(buffer):
    return np.frombuffer(bytes(buffer.read()), dtype=np.float32)


def demos(side, operands, rounds):
    """{name: Cell} of what is in buffers, checked before it is timed."""
    a, b, left, right = operands
    n, square = a.size, left.shape[0]
    session = side.session
    buffers = [session.buffer(one) for one in operands]
    c, product, part, total = (session.empty(count) for count in (a.size, left.size, BLOCK, 1))
    work = {"vecadd 1M": lambda: side.vecadd(n, buffers[0], buffers[1], c),
            "matmul 1024": lambda: side.matmul(square, buffers[2], buffers[3], product),
            "reduce 1M": lambda: side.reduce(n, buffers[0], part, total)}
    for once in work.values():
        once()
    close(read(c), a + b, 1e-6)
    close(read(product).reshape(left.shape), left @ right, 1e-4)
    close(read(total)[0], a.sum(dtype=np.float64), 1e-5)
    return {name: timed(once, rounds) for name, once in work.items()}


def of_arrays(session, operands, rounds):
    try:
        side = Arrays(session)
        rows = side.rows(operands)
    except gpurest.errors.GpurestError as why:
        print(f"arrays on {session.device}: refused: {str(why)[:160]}")
        return {}
    expected = {"vecadd 1M": operands[0] + operands[1], "matmul 1024": operands[2] @ operands[3], "reduce 1M": operands[0].sum(dtype=np.float64)}
    for name, function in rows.items():
        close(function().get(), expected[name], 1e-4)
    return {name: timed(lambda function=function: side.once(function), rounds) for name, function in rows.items()}


def show_demos(sides, host):
    print(f"{'':<12} {'':<22} {'NumPy us':>9} {'wall us':>9} {'device us':>9} {'x wall':>7} {'x device':>8}  goal")
    for name in host:
        for side, cells in sides.items():
            if name in cells:
                one = cells[name]
                device = one.device or float("nan")
                print(f"{name:<12} {side:<22} {host[name]:9.0f} {one.wall:9.0f} {device:9.1f} {host[name] / one.wall:7.2f} {host[name] / device:8.1f}"
                      f"  {GOALS[name] if side in ('GLSL', 'SPIR-V') else ''}")


def bandwidth(side, mib, rounds):
    """GiB/s: of a kernel that reads two arrays and writes one, out to the device, and back."""
    session, n = side.session, mib * MIB // 4
    data = np.ones(n, np.float32)
    a, b, c = session.buffer(data), session.buffer(data), session.empty(n)
    kernel = timed(lambda: side.vecadd(n, a, b, c), rounds)
    close(read(c)[:: n // 16], 2.0, 0)
    up = timed(lambda: (a.write(data), 0.0)[1], max(3, rounds // 4)).wall
    down = timed(lambda: (c.read(), 0.0)[1], max(3, rounds // 4)).wall
    print(f"{side.name:<22} kernel {3 * data.nbytes / (1 << 30) / (kernel.device * 1e-6):8.1f} GiB/s"
          f"   to the device {data.nbytes / (1 << 30) / (up * 1e-6):6.2f}   from it {data.nbytes / (1 << 30) / (down * 1e-6):6.2f}")


def latency(side, rounds):
    """Of a launch that does nothing, one after the other: median and 99th percentile of the wall, and the device's median."""
    to, walls, devices = side.session.empty(1), [], []
    for _ in range(100 * rounds):
        start = time.perf_counter()
        devices.append(side.nothing(to))
        walls.append((time.perf_counter() - start) * 1e6)
    walls = sorted(walls[len(walls) // 10:])
    print(f"{side.name:<22} wall {statistics.median(walls):7.1f} us, 99 % {walls[len(walls) * 99 // 100]:7.1f} us; device {statistics.median(devices):6.1f} us")


def main():
    parse = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parse.add_argument("--gpurestd", default=os.environ.get("GPURESTD", str(ROOT / "build/release/service/gpurestd")))
    parse.add_argument("--beside", default="cuda", help="the backend beside vulkan: cuda, cpu, or nothing (\"\")")
    parse.add_argument("--rounds", type=int, default=20)
    parse.add_argument("--mib", type=int, default=128, help="size of an array for the bandwidth, below 256")
    parse.add_argument("--side", type=int, default=1024, help="of the matrices, a multiple of 64")
    options = parse.parse_args()

    rng = np.random.default_rng(0)
    a, b = rng.random((2, 1 << 20), dtype=np.float32)
    left, right = rng.random((2, options.side, options.side), dtype=np.float32)
    operands = (a, b, left, right)
    host = {"vecadd 1M": host_time(lambda: a + b, options.rounds), "matmul 1024": host_time(lambda: left @ right, options.rounds),
            "reduce 1M": host_time(lambda: a.sum(), options.rounds)}
    backends = ",".join(one for one in ("vulkan", options.beside) if one)
    with testing.server(device=backends, executable=options.gpurestd) as service, gpurest.Client(service.url, timeout=600) as client:
        for one in client.devices():
            print(f"{one['id']}: {one['name']}, driver {one.get('driver', '?')}")
        with client.session(device="vulkan:0") as vulkan:
            sides = [Vulkan(vulkan, False), Vulkan(vulkan, True)]
            figures = {side.name: demos(side, operands, options.rounds) for side in sides}
            figures[f"arrays on {vulkan.device}"] = of_arrays(vulkan, operands, options.rounds)
            if options.beside:
                with client.session(device=f"{options.beside}:0") as other:
                    beside = Other(other)
                    figures[f"{other.device} by its kernels"] = demos(beside, operands, options.rounds)
                    figures[f"arrays on {other.device}"] = of_arrays(other, operands, options.rounds)
                    show_demos(figures, host)
                    for show in (lambda one: bandwidth(one, options.mib, options.rounds), lambda one: latency(one, options.rounds)):
                        print()
                        for side in (sides[0], beside):
                            show(side)
            else:
                show_demos(figures, host)
                print()
                bandwidth(sides[0], options.mib, options.rounds)
                latency(sides[0], options.rounds)


if __name__ == "__main__":
    main()
