"""A program for cuda.core as people write it: nothing here knows of gpurest. The argument is a file of PTX with vecadd(a, b, c, n)."""
import pathlib
import sys

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, ObjectCode, launch

N, BLOCK = 1000, 256


def checked(answer):
    assert answer[0] == driver.CUresult.CUDA_SUCCESS, answer
    return answer[1:]


def to_device(buffer, values):
    checked(driver.cuMemcpyHtoD(int(buffer.handle), values.ctypes.data, values.nbytes))


def to_host(buffer, values):
    checked(driver.cuMemcpyDtoH(values.ctypes.data, int(buffer.handle), values.nbytes))
    return values


def main():
    device = Device()
    device.set_current()
    assert device.name and device.compute_capability.major >= 7
    stream = device.create_stream()
    kernel = ObjectCode.from_ptx(pathlib.Path(sys.argv[1]).read_bytes()).get_kernel("vecadd")
    config = LaunchConfig(grid=(N + BLOCK - 1) // BLOCK, block=BLOCK)
    a, b, c = (device.allocate(4 * N, stream=stream) for _ in range(3))
    values = np.arange(N, dtype=np.float32)
    to_device(a, values)
    to_device(b, 10 * values)
    event = device.create_event() if hasattr(device, "create_event") else None
    launch(stream, config, kernel, a, b, c, np.int32(N))
    if event:
        stream.record(event)
        event.sync()
    stream.sync()
    assert (to_host(c, np.empty_like(values)) == 11 * values).all()
    if hasattr(device, "create_graph_builder"):
        builder = device.create_graph_builder().begin_building()
        launch(builder, config, kernel, a, c, b, np.int32(N))
        launch(builder, config, kernel, a, b, b, np.int32(N))
        graph = builder.end_building().complete()
        graph.launch(stream)
        stream.sync()
        assert (to_host(b, np.empty_like(values)) == 13 * values).all()
    for buffer in (a, b, c):
        buffer.close(stream)
    stream.sync()
    print("PASS")


main()
