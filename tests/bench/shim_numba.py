"""Numba's vectoradd with a wait in each round, as programs write it: prints "numba_launch_and_wait microseconds". shim.py runs it."""
import sys
import time

import numpy as np

np.row_stack = getattr(np, "row_stack", np.vstack)  # NumPy has it no more; releases of numba-cuda ask for it
from numba import cuda  # noqa: E402

N, WARM_UP = 10000, 10


@cuda.jit
def vectoradd(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


def main():
    rounds = int(sys.argv[1])
    a, b = cuda.to_device(np.arange(N, dtype=np.float32)), cuda.to_device(np.ones(N, dtype=np.float32))
    c = cuda.device_array(N, dtype=np.float32)
    configured, times = vectoradd[(N + 255) // 256, 256], []
    for _ in range(WARM_UP + rounds):
        began = time.perf_counter()
        configured(a, b, c)
        cuda.synchronize()
        times.append(time.perf_counter() - began)
    assert c.copy_to_host()[-1] == N
    print(f"numba_launch_and_wait {sorted(times[WARM_UP:])[rounds // 2] * 1e6:.2f}")


if __name__ == "__main__":
    main()
