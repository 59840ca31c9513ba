#!/usr/bin/env python3
"""What a change costs a small request: two builds of the service in turns on one machine. two_builds.py OLD NEW REQUEST_RATE [ROUNDS]

OLD and NEW are gpurestd, REQUEST_RATE the program of that name. Prints each round, the medians of the ratios NEW / OLD (of the time a request takes
at the median, and of the processor time the service spends on one), and the ratio of the lower quartiles of the times: the rounds that other work
on the machine disturbed least."""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "service"))
from service_under_test import Service  # noqa: E402

SECONDS = 1  # short ones: what else runs on the machine changes slowly


def processor_ns(service):
    """Of all its threads; those of a service that only answers live on."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{service.process.pid}/task").iterdir())


def measure(service, request_rate, connections):
    before = processor_ns(service)
    made = json.loads(subprocess.run([request_rate, f"127.0.0.1:{service.port}", "/livez", "--connections", str(connections), "--seconds", str(SECONDS)],
                                     check=True, capture_output=True, text=True).stdout)
    return {"p50_us": made["p50_us"], "cpu_us": (processor_ns(service) - before) / 1e3 / made["requests"]}


def main(old, new, request_rate, rounds=10):
    with tempfile.TemporaryDirectory() as folder:
        services = []
        for name, path in (("old", old), ("new", new)):
            (pathlib.Path(folder) / name).mkdir()
            services.append(Service(path, pathlib.Path(folder) / name))
        for connections in (1, 16):
            ratios, times = {"p50_us": [], "cpu_us": []}, ([], [])
            for i in range(int(rounds)):
                order = (0, 1) if i % 2 == 0 else (1, 0)
                got = dict(sorted((which, measure(services[which], request_rate, connections)) for which in order))
                for which in (0, 1):
                    times[which].append(got[which]["p50_us"])
                for what in ratios:
                    ratios[what].append(got[1][what] / got[0][what])
                print(f"{connections:2} connections  old {got[0]['p50_us']:7.1f} us, processor {got[0]['cpu_us']:6.2f} us   "
                      f"new {got[1]['p50_us']:7.1f} us, processor {got[1]['cpu_us']:6.2f} us", flush=True)
            quiet = [statistics.quantiles(of_one, n=4)[0] for of_one in times]
            print(f"{connections:2} connections, medians of new / old: time {statistics.median(ratios['p50_us']):.3f}, "
                  f"processor {statistics.median(ratios['cpu_us']):.3f}; lower quartiles {quiet[0]:.1f} and {quiet[1]:.1f} us: {quiet[1] / quiet[0]:.3f}",
                  flush=True)
        for service in services:
            service.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
