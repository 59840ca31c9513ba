#!/usr/bin/env python3
"""The cpu device beside plain C, NumPy and PoCL, taken in one run on one machine: a table of ratios, and JSON.

    cpu_device.py --kernels build/release/tests/bench/cpu_kernels [--rounds 3] [--runs 5] [--json FILE]

One thread is measured in CPU time, two in time passed; each figure is the shortest of all runs in all rounds, and the contestants take
turns in every round. Compiled code on one thread and plain C take turns run by run, so that both meet the same memory: theirs are the 10th
percentiles of the round whose ratio is the middle one. What is not installed is said and left out. "compiled" is the cpu device with libLLVM, "ours"
its interpreter, and "to PoCL/1" is compiled/1 as a multiple of PoCL's time on one thread."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

FOLDER = pathlib.Path(__file__).resolve().parent
MILLION, MATRIX, IMAGE = 1 << 20, 512, 1024

# Kernel -> OpenCL: threads, group.
SHAPES = {"vadd": ([MILLION], [256]), "saxpy": ([128 * 256], [256]), "matmul": ([MATRIX, MATRIX], [16, 16]),
          "matmul_naive": ([MATRIX, MATRIX], [16, 16]), "reduce_seq": ([MILLION // 2], [256]), "softmax": ([IMAGE * 256], [256]),
          "hist_shared": ([64 * 256], [256]), "hist_global": ([64 * 256], [256]), "mandel": ([IMAGE, IMAGE], [16, 16]),
          "heat2d": ([IMAGE, IMAGE], [16, 16])}


def shortest_ms(run, runs, clock):
    best = float("inf")
    for _ in range(runs):
        start = clock()
        run()
        best = min(best, clock() - start)
    return best * 1e3


def clock_for(threads):
    return time.process_time if threads == 1 else time.perf_counter


# Parts, each a process of its own: prints {"name": …, "ms": {kernel: ms}, "check": {kernel: sum}} or {"missing": why}.


def inputs(np):
    return (np.arange(MILLION, dtype=np.float32) % 1000 / 500 - 1).astype(np.float32)


def numpy_kernels(np):
    x = inputs(np)
    y, z = x.copy(), np.empty_like(x)
    a, b, c = (v[:MATRIX * MATRIX].reshape(MATRIX, MATRIX) for v in (x, y, z))
    image, out = x.reshape(IMAGE, IMAGE), z.reshape(IMAGE, IMAGE)

    def saxpy():
        np.add(2.5 * x, z, out=z)

    def softmax():
        e = np.exp(image - image.max(axis=1, keepdims=True))
        np.divide(e, e.sum(axis=1, keepdims=True), out=out)

    def heat2d():
        u, inner = image, image[1:-1, 1:-1]
        out[1:-1, 1:-1] = inner + np.float32(0.2) * (u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1] - 4 * inner)

    def histogram():
        z[:256] = np.bincount(x.view(np.uint8)[:MILLION], minlength=256)

    def reduce():
        z[0] = x.sum()

    return z, {"vadd": lambda: np.add(x, y, out=z), "saxpy": saxpy, "matmul": lambda: np.matmul(a, b, out=c),
               "matmul_naive": lambda: np.matmul(a, b, out=c), "reduce_shfl": reduce, "reduce_seq": reduce, "softmax": softmax,
               "hist_shared": histogram, "hist_global": histogram, "heat2d": heat2d}


def part_numpy(threads, runs):
    try:
        import numpy as np
    except ImportError:
        return {"missing": "NumPy is not installed"}
    z, kernels = numpy_kernels(np)
    ms, check = {}, {}
    for name, run in kernels.items():
        z[:] = 0
        run()
        check[name] = float(z[0] if name.startswith("reduce") else z.sum(dtype=np.float64))
        ms[name] = shortest_ms(run, runs, clock_for(threads))
    return {"name": f"NumPy {np.__version__}", "ms": ms, "check": check}


def opencl_sum(name, data):
    from array import array

    values = array("I" if name.startswith("hist") else "i" if name == "mandel" else "f", data)
    return float(sum(values[:256] if name.startswith("hist") else values[:MILLION // 512] if name == "reduce_seq" else values))


def part_opencl(threads, runs):
    from array import array

    import opencl

    try:
        cpu = opencl.Processor()
    except opencl.Missing as why:
        return {"missing": str(why)}
    program = cpu.build((FOLDER / "cpu_device_kernels.cl").read_text())
    x = array("f", (i % 1000 / 500 - 1 for i in range(MILLION))).tobytes()
    buffers = [cpu.buffer(x), cpu.buffer(x), cpu.buffer(bytes(4 * MILLION))]
    ms, check = {}, {}
    for name, (size, group) in SHAPES.items():
        kernel = cpu.kernel(program, name)
        cpu.arguments(kernel, buffers, MILLION)
        cpu.write(buffers[2], bytes(4 * MILLION))
        cpu.run(kernel, size, group)  # compiled here, which is not measured
        check[name] = opencl_sum(name, cpu.read(buffers[2], 4 * MILLION))
        ms[name] = shortest_ms(lambda: cpu.run(kernel, size, group), runs, clock_for(threads))
    return {"name": cpu.name(), "ms": ms, "check": check}


def run_part(name, threads, runs):
    limits = {variable: str(threads) for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POCL_MAX_PTHREAD_COUNT")}
    done = subprocess.run([sys.executable, __file__, "--part", name, "--threads", str(threads), "--runs", str(runs)],
                          env={**os.environ, **limits}, capture_output=True, text=True, timeout=600)
    if done.returncode:
        return {"missing": "failed: " + done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def run_ours(path, runs):
    done = subprocess.run([path, "--runs", str(runs), "--format", "json"], capture_output=True, text=True, check=True, timeout=600)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["kernel"]: row for row in rows if row["plain_ms"]}


def lower(table, name, value):
    table[name] = min(table.get(name, float("inf")), value)


def measure(options):
    """Contestant -> {"name", "ms"} or {"missing"}; the two-thread ones end in "/2"."""
    found = {"plain/1": {"name": "plain C", "ms": {}}, **{who: {"name": "cpu device", "ms": {}} for who in ("ours/1", "ours/2", "compiled/1", "compiled/2")}}
    turns = {}
    for _ in range(options.rounds):
        for name, row in run_ours(options.kernels, options.runs).items():
            for who, member in (("ours/1", "one_ms"), ("ours/2", "two_ms"), ("compiled/2", "compiled_two_ms")):
                lower(found[who]["ms"], name, row[member])
            turns.setdefault(name, []).append((row["compiled_one_ms"] / row["plain_ms"], row["compiled_one_ms"], row["plain_ms"]))
        for part in ("numpy", "opencl"):
            for threads in (1, 2):
                one = run_part(part, threads, options.runs)
                kept = found.setdefault(f"{part}/{threads}", one)
                for name, value in one.get("ms", {}).items():
                    lower(kept["ms"], name, value)
    for name, rounds in turns.items():
        _, found["compiled/1"]["ms"][name], found["plain/1"]["ms"][name] = sorted(rounds)[len(rounds) // 2]
    return found


def disagreements(found):
    """PoCL's results against NumPy's, where both have them: a fast wrong answer is none."""
    ours, theirs = found["numpy/1"].get("check", {}), found["opencl/1"].get("check", {})
    return [name for name in ours.keys() & theirs.keys() if abs(ours[name] - theirs[name]) > 1e-3 * max(1.0, abs(ours[name])) + 1.0]


def cell(table, name, base):
    value = table.get("ms", {}).get(name)
    return f"{value / base:10.2f}" if value and base else "         -"


def report(found, load):
    print(f"cpu device and peers: times as multiples of plain C (gcc -O3 -march=native -ffast-math, one thread). Load before: {load:.1f} on "
          f"{os.cpu_count()} processors.")
    for who in ("numpy/1", "opencl/1"):
        print(f"{who[:-2]}: {found[who].get('missing') or found[who]['name']}")
    columns = ("ours/1", "compiled/1", "numpy/1", "opencl/1", "ours/2", "compiled/2", "numpy/2", "opencl/2")
    print(f"{'kernel':<20} {'plain ms':>9} " + " ".join(f"{column:>10}" for column in columns) + f" {'to PoCL/1':>10}")
    for name, base in found["plain/1"]["ms"].items():
        cells = " ".join(cell(found[column], name, base) for column in columns)
        pocl = found["opencl/1"].get("ms", {}).get(name)
        print(f"{name:<20} {base:9.4f} {cells} {cell(found['compiled/1'], name, pocl) if pocl else cell({}, name, 1)}")
    for name in disagreements(found):
        print(f"{name}: PoCL's result is not NumPy's")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", default="build/release/tests/bench/cpu_kernels")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--part", choices=["numpy", "opencl"], help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps({"numpy": part_numpy, "opencl": part_opencl}[options.part](options.threads, options.runs)))
        return
    load = os.getloadavg()[0]
    found = measure(options)
    report(found, load)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"load": load, "contestants": found}, indent=1) + "\n")
    sys.exit(1 if disagreements(found) else 0)


if __name__ == "__main__":
    main()
