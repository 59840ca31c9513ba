"""A program for Numba's CUDA target as people write it: nothing here knows of gpurest."""
import sys

import numpy as np
from numba import cuda, float64


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@cuda.jit
def sum_blocks(x, out):
    """Each block's sum, in shared memory."""
    part = cuda.shared.array(128, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    step = 64
    while step:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])


@cuda.jit
def rows_after_each_other(m):
    """Each row is the one before and one, which other blocks may have made."""
    col = cuda.grid(1)
    grid = cuda.cg.this_grid()
    for row in range(1, m.shape[0]):
        m[row, col] = m[row - 1, m.shape[1] - col - 1] + 1
        grid.sync()


@cuda.reduce
def total(a, b):
    return a + b


def vectoradd(n=10000):
    a = np.arange(n, dtype=np.float32)
    b = np.ones(n, dtype=np.float32)
    c = np.zeros(n, dtype=np.float32)
    add[(n + 127) // 128, 128](a, b, c)  # arrays of the host, copied there and back
    assert (c == a + 1).all()
    device = cuda.to_device(a)
    result = cuda.device_array_like(a)
    for _ in range(20):
        add[(n + 127) // 128, 128](device, device, result)
        cuda.synchronize()
    assert (result.copy_to_host() == 2 * a).all()
    assert (result[10:20].copy_to_host() == 2 * a[10:20]).all()


def reduction(n=100000):
    x = np.arange(n, dtype=np.float64)
    out = cuda.to_device(np.zeros(1))
    sum_blocks[(n + 127) // 128, 128](cuda.to_device(x), out)
    assert out.copy_to_host()[0] == x.sum()
    assert total(x) == x.sum()


@cuda.jit
def say(n):
    print("thread", cuda.threadIdx.x, "of", n)


def printing():
    say[1, 3](np.int32(3))
    cuda.synchronize()


def streams():
    a = cuda.pinned_array(1000, dtype=np.float32)
    a[:] = 3
    stream, begin, end = cuda.stream(), cuda.event(), cuda.event()
    with stream.auto_synchronize():
        begin.record(stream)
        device = cuda.to_device(a, stream=stream)
        add[8, 128, stream](device, device, device)
        end.record(stream)
        device.copy_to_host(a, stream=stream)
    assert (a == 6).all() and cuda.event_elapsed_time(begin, end) > 0
    assert cuda.current_context().get_memory_info().free > 0


def grids():
    m = cuda.to_device(np.zeros((20, 128), dtype=np.int32))
    rows_after_each_other[4, 32](m)
    assert (m.copy_to_host() == np.arange(20)[:, None]).all()


@cuda.jit(lineinfo=True)
def fill(x):
    x[cuda.grid(1)] = 1


def overrun():
    fill[1, 128](cuda.to_device(np.zeros(100, dtype=np.float32)))
    try:
        cuda.synchronize()
    except cuda.cudadrv.driver.CudaAPIError as error:
        assert error.code == 700


for name in sys.argv[1:]:
    globals()[name]()
    print(name)
