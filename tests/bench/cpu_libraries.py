#!/usr/bin/env python3
"""What the host's libraries do for the cpu device: array programs and single operations with them, without them, and in NumPy, in turns.

    cpu_libraries.py --gpurestd build/release/service/gpurestd [--rounds 7] [--only WORDS]

Two services run side by side, one with `--vendor-libraries off`. A round runs every case in NumPy, with the libraries and without, one after the other, so that
what else the machine does meets all three. Printed per case: milliseconds in the median of the rounds, and the median of the rounds' ratios to NumPy.
A case ends with a number on the host, so nothing is left queued. Results are compared with NumPy's before anything is measured."""
import argparse
import os
import pathlib
import statistics
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "sdk/python"))


# ---- the cases: xp is numpy or gpurest; each makes its data once and returns what is measured ----

def host_array(x):
    return x if isinstance(x, np.ndarray) else x.get()


def k_means(xp):
    """50,000 points in 4 dimensions, 8 centres, 20 steps; the sums of each centre's points are a product with a long sum."""
    rng = np.random.default_rng(0)
    points = (rng.normal(size=(50000, 4)) + 4 * rng.integers(0, 8, (50000, 1))).astype("f4")
    x, first = xp.asarray(points), xp.asarray(points[:8])

    def run():
        centres, numbers = first, xp.arange(8)
        for _ in range(20):
            distances = (centres * centres).sum(1) - 2 * (x @ centres.T)
            mine = (distances.argmin(1)[:, None] == numbers).astype("f4")
            centres = (mine.T @ x) / xp.maximum(mine.sum(0), 1)[:, None]
        return host_array(centres)
    return run


def softmax_regression(xp):
    """20,000 samples of 64 features, 10 classes, 30 steps of gradient descent."""
    rng = np.random.default_rng(1)
    samples = rng.normal(size=(20000, 64)).astype("f4")
    classes = (samples @ rng.normal(size=(64, 10))).argmax(1)
    x, wanted = xp.asarray(samples), xp.asarray(np.eye(10, dtype="f4")[classes])

    def run():
        weights = xp.zeros((64, 10), "f4")
        for _ in range(30):
            scores = x @ weights
            e = xp.exp(scores - scores.max(1, keepdims=True))
            weights = weights - 0.5 / len(samples) * (x.T @ (e / e.sum(1, keepdims=True) - wanted))
        return host_array(weights)
    return run


def product(shape_a, shape_b, dtype):
    def make(xp):
        rng = np.random.default_rng(2)
        a, b = xp.asarray(rng.normal(size=shape_a).astype(dtype)), xp.asarray(rng.normal(size=shape_b).astype(dtype))
        return lambda: host_array(a @ b if shape_a[0] * shape_b[-1] < 1000 else (a @ b)[..., :1, :1])
    return make


def of_matrix(n, dtype, what, definite=False):
    def make(xp):
        x = np.random.default_rng(3).normal(size=(n, n))
        x = (x @ x.T + n * np.eye(n) if definite else x).astype(dtype)
        a = xp.asarray(x)
        return lambda: host_array(what(xp, a))
    return make


def transform(shape):
    def make(xp):
        rng = np.random.default_rng(4)
        x = xp.asarray((rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype("c16"))
        return lambda: host_array(xp.fft.fft(x)[..., :2])
    return make


CASES = {
    "k-means, 50000 x 4, 8 centres, 20 steps": k_means,
    "softmax regression, 20000 x 64 x 10, 30 steps": softmax_regression,
    "(8 x 50000) @ (50000 x 4), f32": product((8, 50000), (50000, 4), "f4"),
    "512 x 512 @ 512 x 512, f32": product((512, 512), (512, 512), "f4"),
    "512 x 512 @ 512 x 512, f64": product((512, 512), (512, 512), "f8"),
    "1024 x 1024 @ 1024 x 1024, f32": product((1024, 1024), (1024, 1024), "f4"),
    "200 of 32 x 32 @ 32 x 32, f64": product((200, 32, 32), (200, 32, 32), "f8"),
    "solve, 300 x 300, f64": of_matrix(300, "f8", lambda xp, a: xp.linalg.solve(a, a[:, :1])[:2]),
    "inv, 300 x 300, f64": of_matrix(300, "f8", lambda xp, a: xp.linalg.inv(a)[:2, :2]),
    "cholesky, 300 x 300, f64": of_matrix(300, "f8", lambda xp, a: xp.linalg.cholesky(a)[:2, :2], True),
    "qr, 300 x 300, f64": of_matrix(300, "f8", lambda xp, a: abs(xp.linalg.qr(a)[1][:2, :2])),
    "eigvalsh, 300 x 300, f64": of_matrix(300, "f8", lambda xp, a: xp.linalg.eigvalsh(a)[:2], True),
    "eigh, 300 x 300, f64": of_matrix(300, "f8", lambda xp, a: xp.linalg.eigh(a)[0][:2], True),
    "svd, 300 x 300, f64": of_matrix(300, "f8", lambda xp, a: xp.linalg.svd(a)[1][:2]),
    "fft, 100 of 1024, c128": transform((100, 1024)),
    "fft, 2^18, c128": transform((1 << 18,)),
}


# ---- the turns ----

class Arrays:
    """gpurest as the cases use it, with one session's arrays."""

    def __init__(self, gpurest, session):
        self.gpurest, self.session, self.linalg, self.fft = gpurest, session, gpurest.linalg, gpurest.fft

    def asarray(self, x):
        return self.gpurest.asarray(x, session=self.session)

    def zeros(self, shape, dtype):
        return self.gpurest.zeros(shape, dtype, session=self.session)

    def arange(self, n):
        return self.gpurest.arange(n, session=self.session)

    def __getattr__(self, name):
        return getattr(self.gpurest, name)


SLOW_MS = 1000  # what takes longer without libraries is measured once


def measure(run):
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) * 1e3


def compare(name, sides, rounds):
    runs = [CASES[name](xp) for xp in sides]
    want, first = runs[0](), []
    for run in runs[1:]:
        got = run()
        assert np.allclose(got, want, rtol=1e-2, atol=1e-2 * np.abs(want).max()), (name, got, want)
        first.append(measure(run))
    times = []
    for _ in range(rounds):
        row = [measure(runs[0]), measure(runs[1])]
        times.append([*row, first[1] if first[1] > SLOW_MS else measure(runs[2])])
    medians = [statistics.median(column) for column in zip(*times)]
    ratios = [statistics.median(row[side] / row[0] for row in times) for side in (1, 2)]
    print(f"{name:48s} {medians[0]:9.2f} {medians[1]:9.2f} {medians[2]:9.2f} {ratios[0]:8.2f} {ratios[1]:8.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpurestd", default=os.environ.get("GPURESTD", "build/release/service/gpurestd"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="cases whose name has these words")
    parser.add_argument("--flags", default="", help="more flags for both services, such as --cpu-jit=auto")
    args = parser.parse_args()
    import gpurest
    from gpurest import testing
    flags = args.flags.split()
    with testing.server(*flags, executable=args.gpurestd) as there, testing.server("--vendor-libraries", "off", *flags, executable=args.gpurestd) as without:
        with gpurest.connect(there.url) as first, gpurest.connect(without.url) as second, first.session() as a, second.session() as b:
            print("milliseconds, and ratios to NumPy")
            print(f"{'':48s} {'NumPy':>9s} {'libraries':>9s} {'ours':>9s} {'lib/np':>8s} {'ours/np':>8s}")
            for name in CASES:
                if args.only in name:
                    compare(name, (np, Arrays(gpurest, a), Arrays(gpurest, b)), args.rounds)


if __name__ == "__main__":
    main()
