"""A program for PyCUDA as people write it, with PTX instead of nvcc: nothing here knows of gpurest. The argument is a file of PTX with
vecadd(a, b, c, n)."""
import pathlib
import sys

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as driver
from pycuda.tools import DeviceMemoryPool

N, SHAPE = 1000, {"block": (256, 1, 1), "grid": (4, 1)}

add = driver.module_from_buffer(pathlib.Path(sys.argv[1]).read_bytes()).get_function("vecadd")
values, result = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
add(driver.In(values), driver.In(values), driver.Out(result), np.int32(N), **SHAPE)
assert (result == 2 * values).all()
stream, event, memory, pinned = driver.Stream(), driver.Event(), driver.mem_alloc(values.nbytes), driver.pagelocked_zeros(N, np.float32)
driver.memcpy_htod_async(memory, values, stream)
add(memory, memory, memory, np.int32(N), stream=stream, **SHAPE)
event.record(stream)
driver.memcpy_dtoh_async(pinned, memory, stream)
event.synchronize()
stream.synchronize()
assert (pinned == 2 * values).all()
add.prepare("PPPi")
add.prepared_call(SHAPE["grid"], SHAPE["block"], memory, memory, memory, N)
driver.memcpy_dtoh(pinned, memory)
assert (pinned == 4 * values).all() and add.max_threads_per_block >= 256
assert DeviceMemoryPool().allocate(100)
print("PASS")
