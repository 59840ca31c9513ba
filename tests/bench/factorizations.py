#!/usr/bin/env python3
"""Factorizations by our kernels and by the device's library (cuSOLVER on a GPU, OpenBLAS on a cpu device), in turns.

    factorizations.py --gpurestd build/release/service/gpurestd [--device cuda] [--sizes 16,128,1024,2048] [--batches 1,8,128] [--rounds 5] [--only WORDS]

For each operation, size and number of matrices: milliseconds on the device, medians of the rounds, and ours / the library's. What the service chooses by itself
is marked by a star. Our kernels take a multiprocessor for each matrix: with large ones they run for minutes, so a size is left out from --ours-max on."""
import argparse
import os
import pathlib
import statistics
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "sdk/python"))

import gpurest  # noqa: E402
from gpurest import testing  # noqa: E402

# name: [(output, elements of T for each matrix; i for int32)], values behind the buffers
CASES = {
    "lu": (["x"], lambda n: [n * n, n, 1, 1], lambda n: [n]),
    "cholesky": (["positive"], lambda n: [n * n, 1], lambda n: [n]),
    "triangular_solve": (["triangle", "x"], lambda n: [n * n], lambda n: [n, n]),
    "qr": (["x"], lambda n: [n * n, n], lambda n: [n, n]),
    "eigh": (["positive"], lambda n: [n, n * n, 1], lambda n: [n]),
    "eig": (["x"], lambda n: [2 * n, 2 * n * n, 1], lambda n: [n]),
    "svd": (["x"], lambda n: [n * n, n, n * n, 1], lambda n: [n, n, n, n]),
}
BEHIND_BATCH = {"triangular_solve": [{"bool": True}, {"bool": False}, {"bool": False}], "eigh": [{"u64": "1"}], "eig": [{"u64": "1"}]}


def inputs(n, kind):
    x = np.random.default_rng(n).normal(size=(n, n))
    return {"x": x.astype(kind), "positive": (x @ x.T + n * np.eye(n)).astype(kind), "triangle": (np.tril(x) + n * np.eye(n)).astype(kind)}


def arguments(name, given, n, batch):
    return [{"buf": one} for one in given] + [{"u64": str(one)} for one in [*CASES[name][2](n), batch]] + BEHIND_BATCH.get(name, [])


class Bench:
    def __init__(self, session):
        self.session = session

    def launch(self, name, dtype, args, engine):
        """(milliseconds on the device, engine); None: it was refused."""
        body = {"builtin": name, "dtype": dtype, "args": args, **({"engine": engine} if engine else {})}
        try:
            done = self.session.client.request("POST", f"/v1/sessions/{self.session.id}/launches", body, headers={"Prefer": "wait=600"}).json()
        except gpurest.errors.GpurestError as error:
            return None, str(error)[:60]
        return done["gpu_us"] / 1000, done["engine"]

    def run(self, name, dtype, n, batch, rounds, ours):
        kind = {"f32": np.float32, "f64": np.float64}[dtype]
        data, buffers = inputs(n, kind), []
        for one in CASES[name][0]:
            buffers.append(self.session.buffer(np.ascontiguousarray(np.broadcast_to(data[one], (batch, n, n)))))
        outputs = [self.session.buffer(size=size * batch * np.dtype(kind).itemsize) for size in CASES[name][1](n)]
        args = arguments(name, [one.id for one in buffers + outputs], n, batch)
        engines = (["builtin"] if ours else []) + ["vendor"]
        times = {engine: [] for engine in engines}
        for _ in range(rounds + 1):
            for engine in engines:
                times[engine].append(self.launch(name, dtype, args, engine)[0])
        chosen = self.launch(name, dtype, args, None)[1]
        for one in buffers + outputs:
            one.free()
        return {engine: statistics.median(found[1:]) if None not in found else None for engine, found in times.items()}, chosen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpurestd", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sizes", default="16,128,1024,2048")
    parser.add_argument("--batches", default="1,8,128")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ours-max", type=int, default=1024, help="greatest size of eigh, eig and svd that our kernels are measured with")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    os.environ["GPURESTD"] = given.gpurestd
    with testing.server(device=given.device) as service, gpurest.connect(service.url) as client, client.session(timeout_ms=600000) as session:
        bench = Bench(session)
        print(client.devices()[0]["name"], client.devices()[0]["libraries"])
        print(f"{'':18s}{'n':>6s}{'batch':>6s}{'ours ms':>12s}{'library ms':>12s}{'ratio':>8s}")
        for name in [one for one in CASES if not given.only or one in given.only.split(",")]:
            for dtype in ("f32", "f64"):
                for n in map(int, given.sizes.split(",")):
                    for batch in map(int, given.batches.split(",")):
                        if n * n * batch > 1 << 25:
                            continue
                        ours = n <= given.ours_max or name not in ("eigh", "eig", "svd")
                        found, chosen = bench.run(name, dtype, n, batch, given.rounds if n < 1024 else 1, ours)
                        texts = [f"{found[one]:.3f}{'*' * (chosen == one)}" if found.get(one) is not None else "-" for one in ("builtin", "vendor")]
                        ratio = found["builtin"] / found["vendor"] if None not in (found.get("builtin"), found.get("vendor")) else None
                        print(f"{name + ' ' + dtype:18s}{n:6d}{batch:6d}{texts[0]:>12s}{texts[1]:>12s}{f'{ratio:.2f}' if ratio else '-':>8s}", flush=True)


if __name__ == "__main__":
    main()
