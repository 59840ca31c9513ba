#!/usr/bin/env python3
r"""Dask over the GPUs of one machine, a service and a Dask worker for each: how much faster two are than one.

    dask_nodes.py [--gpurestd build/release/service/gpurestd] [--backends cuda] [--nodes 1,2] [--packages FOLDER] [--dtype f8]
                  [--sum-gib 4096] [--held-gib 48] [--matmul-gib 160] [--inner 8192] [--square-gib 0] [--chunk-mib 4096] [--threads 4]
                  [--repeats 3] [--json FILE]

sum: of --sum-gib of random numbers that are made on the way. held sum: of --held-gib that the devices hold; a GPU reads them in so little time that
Dask's own part shows. matmul: an array of --matmul-gib, made on the way in chunks of rows, times a matrix of --inner rows and columns that each
node gets once; the product's columns are summed. square: a square matrix of --square-gib times itself, for which each node gets the others'
chunks as bytes; 0 leaves it out. Times are the best of the repeats, after one that compiles. Results are checked: sums against each other and
the mean, products against the product of the sums. Nothing here is a test.

--gpurestd, or the variable GPURESTD, names the service. --packages: a folder with dask and distributed, for machines without a registry that have NumPy.
It works with any Python 3.10 or later on the same kind of processor; elsewhere it is made by

    pip install --target FOLDER --no-compile --no-deps dask distributed toolz cloudpickle fsspec partd locket pyyaml packaging click jinja2 markupsafe \
        msgpack psutil sortedcontainers tblib tornado urllib3 zict importlib_metadata zipp lazy-importer
"""
import argparse
import contextlib
import json
import math
import os
import pathlib
import sys
import time

from bench_service import gpurestd

ROOT = pathlib.Path(__file__).resolve().parents[2]
GIB = 1 << 30
DEADLINE = "600s"


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpurestd", default=os.environ.get("GPURESTD", str(ROOT / "build/release/service/gpurestd")))
    parser.add_argument("--backends", default="cuda")
    parser.add_argument("--nodes", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2])
    parser.add_argument("--packages", default="")
    parser.add_argument("--dtype", default="f8", choices=("f4", "f8"))
    parser.add_argument("--sum-gib", type=float, default=4096)
    parser.add_argument("--held-gib", type=float, default=48)
    parser.add_argument("--matmul-gib", type=float, default=160)
    parser.add_argument("--inner", type=int, default=8192)
    parser.add_argument("--square-gib", type=float, default=0)
    parser.add_argument("--chunk-mib", type=float, default=4096)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", default="")
    return parser.parse_args()


def best_of(repeats, compute):
    times = []
    for _ in range(repeats + 1):
        begun = time.perf_counter()
        result = compute()
        times.append(time.perf_counter() - begun)
    return min(times[1:]), result


def tall(options, gib, columns):
    """Random numbers in chunks of whole rows."""
    import dask.array as da
    width = 4 if options.dtype == "f4" else 8
    rows = max(1, int(options.chunk_mib * (1 << 20)) // (columns * width))
    blocks = max(2, math.ceil(gib * GIB / (rows * columns * width)))
    return da.random.default_rng(7).random((rows * blocks, columns), dtype=options.dtype, chunks=(rows, columns))


def measure(options, client):
    import dask.array as da
    import distributed
    import numpy as np
    rows = {}

    x = tall(options, options.sum_gib, 16384)
    rows["sum"], total = best_of(options.repeats, lambda: float(x.sum(dtype="f8").compute()))
    assert abs(total / x.size - .5) < 1e-2, total
    held = tall(options, options.held_gib, 16384).persist()
    distributed.wait(held)
    rows["held sum"], total = best_of(options.repeats, lambda: float(held.sum(dtype="f8").compute()))
    by_columns = float(held.sum(axis=0, dtype="f8").compute().get().sum())
    assert abs(by_columns - total) <= 1e-9 * total and abs(total / held.size - .5) < 1e-2, (by_columns, total)
    del x, held

    a = tall(options, options.matmul_gib, options.inner)
    b = da.random.default_rng(8).random((options.inner, options.inner), dtype=options.dtype, chunks=options.inner).persist()
    distributed.wait(b)
    rows["matmul"], columns = best_of(options.repeats, lambda: (a @ b).sum(axis=0).compute().get())
    expected = a.sum(axis=0).compute().get().astype("f8") @ b.compute().get().astype("f8")
    assert np.allclose(columns, expected, rtol=1e-2 if options.dtype == "f4" else 1e-9)
    del a, b

    if options.square_gib:
        edge = int(math.sqrt(options.square_gib * GIB / (4 if options.dtype == "f4" else 8)))
        side = max(1, int(math.sqrt(options.chunk_mib * (1 << 20) / (4 if options.dtype == "f4" else 8))))
        s = da.random.default_rng(9).random((edge, edge), dtype=options.dtype, chunks=side).persist()
        distributed.wait(s)
        rows["square"], _ = best_of(options.repeats, lambda: (s @ s).sum(axis=0).compute().get())
    return rows


def on(options, nodes):
    import dask
    from distributed import Client, LocalCluster

    import gpurest
    import gpurest.dask
    with contextlib.ExitStack() as stack:
        urls = []
        for at in range(nodes):
            own = ("--visible-devices", str(at)) if "cuda" in options.backends else ()
            address, _ = stack.enter_context(gpurestd(options.gpurestd, options.backends, "--node", f"n{at}", *own))
            urls.append(f"http://{address}")
        stack.enter_context(dask.config.set({"array.backend": "gpurest", "distributed.worker.memory.spill": False, "distributed.worker.memory.pause": False,
                                             "distributed.worker.memory.terminate": False, "distributed.worker.memory.target": False,
                                             "distributed.comm.timeouts.connect": DEADLINE}))
        cluster = stack.enter_context(LocalCluster(n_workers=nodes, threads_per_worker=options.threads, dashboard_address=":0"))
        client = stack.enter_context(Client(cluster))
        with gpurest.connect(urls[0]) as own:
            gpurest.set_default(own)
            used = gpurest.dask.connect(client, url=dict(enumerate(urls)), node=lambda worker: f"n{worker.name}")
            print(f"{nodes} nodes: {', '.join(sorted(told['node'] + ' ' + told['device'] for told in used.values()))}", flush=True)
            try:
                return measure(options, client)
            finally:
                gpurest.dask.disconnect(client)
                gpurest.set_default(None)


def main():
    options = parsed()
    paths = [str(ROOT / "sdk/python"), *([options.packages] if options.packages else [])]
    sys.path[:0] = paths
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])
    print(f"{len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}; sum of {options.sum_gib} GiB, held {options.held_gib} GiB, matmul of {options.matmul_gib} GiB, "
          f"{options.dtype}, chunks of {options.chunk_mib} MiB, inner {options.inner}")
    rows = {nodes: on(options, nodes) for nodes in options.nodes}
    print(f"{'':<10}" + "".join(f"{f'{nodes} nodes':>12}" for nodes in rows) + f"{'speed-up':>10}")
    for name in rows[options.nodes[0]]:
        times = [rows[nodes][name] for nodes in rows]
        print(f"{name:<10}" + "".join(f"{one:>10.3f} s" for one in times) + f"{times[0] / times[-1]:>10.2f}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
