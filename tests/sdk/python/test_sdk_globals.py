"""Variables of modules as buffers, and cooperative launches."""
import struct

import pytest

import gpurest
from gpurest import errors

SOURCE = r"""
#include <cooperative_groups.h>
__device__ int counter = 5;
__constant__ float table[4] = {1, 2, 3, 4};
namespace ns { __device__ double deep[2]; }
extern "C" __global__ void step(int by) { atomicAdd(&counter, by); }
extern "C" __global__ void look(float *out) { out[threadIdx.x] = table[threadIdx.x]; ns::deep[1] = 2.5; }
extern "C" __global__ void together(int *out)
{
    atomicAdd(&counter, 1);
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) out[blockIdx.x] = counter;
}
"""


@pytest.fixture
def module(session):
    return session.module(SOURCE)


def test_a_variable_is_a_buffer(session, module):
    counter, table = module.get_global("counter", "i4"), module.get_global("table", "f4")
    assert (counter.nbytes, table.shape, table.name) == (4, (4,), "table")
    module["step"](1, 1, (10,))
    assert list(counter.get()) == [15]
    counter.set(struct.pack("<i", -3))
    module["step"](1, 4, (1,))
    assert list(counter.get()) == [1]
    table.fill(2.5)
    table.write(struct.pack("<f", 9), 4)
    out = session.buffer(size=16)
    module["look"](1, 4, (out,))
    assert struct.unpack("<4f", out.get()) == (2.5, 9, 2.5, 2.5)
    out.copy_from(table, size=8)
    assert out.compare(table)["equal"] is True
    assert list(module.get_global("ns::deep", "f8").get()) == [0, 2.5]
    assert module.get_global(next(row["mangled"] for row in module.globals if row["name"] == "ns::deep")).nbytes == 16


def test_in_batches_and_programs(session, module):
    counter = module.get_global("counter", "i4")
    with session.batch():
        counter.write(struct.pack("<i", 100))
        module["step"](1, 1, (1,))
        read = counter.get_async()
        module["together"](1, 1, (counter,), cooperative=True)  # as an argument
    assert list(read.result()) == [101] and list(counter.get()) == [102]
    with session.program() as program:
        counter.write(struct.pack("<i", 7))
        module["step"](2, 1, (1,))
        program.output("counter", counter)
    assert list(program.run()["counter"]) == [9] == list(counter.get())


def test_what_is_refused(session, module):
    with pytest.raises(errors.NotFoundError, match="counter"):
        module.get_global("nothing")
    with pytest.raises(errors.ArgumentError, match="whole number"):
        module.get_global("counter", "f8")
    counter = module.get_global("counter")
    with pytest.raises(errors.ArgumentError, match="with its module"):
        counter.free()
    with pytest.raises(errors.ArgumentError):
        counter.read(0, 5)
    other = session.client.session()
    with other, pytest.raises(errors.ArgumentError):
        other.buffer(size=4).copy_from(counter)
    together = session.module(SOURCE + "\n")["together"]
    module.free()
    for use in (counter.get, lambda: together(1, 1, (counter,), cooperative=True)):
        with pytest.raises(errors.ClosedError, match="this module was freed"):
            use()


def test_raw_modules(session):
    module = gpurest.RawModule(code=SOURCE, session=session)
    module.get_function("step")(1, 1, (1,))
    assert list(module.get_global("counter", "i4").get())[0] >= 6


def test_cooperative_launches(session, module):
    out = session.buffer(size=4 * 6)
    counter = module.get_global("counter", "i4")
    counter.fill(0)
    module["together"](6, 32, (out,), cooperative=True)
    assert struct.unpack("<6i", out.get()) == (6 * 32,) * 6
    counter.fill(0)
    module["together"][6, 32](out, cooperative=True)
    assert struct.unpack("<6i", out.get()) == (6 * 32,) * 6
    with pytest.raises(errors.GpurestError):
        module["together"](1 << 20, 32, (out,), cooperative=True)
    with session.batch():
        counter.fill(0)
        module["together"](3, 64, (out,), cooperative=True)
    assert struct.unpack("<3i", out.read(0, 12)) == (3 * 64,) * 3


async def test_asyncio(asession):
    module = await asession.module(SOURCE)
    counter = module.get_global("counter", "i4")
    await module["step"](1, 1, (1,))
    assert list(await counter.get()) == [6]
    out = await asession.buffer(size=8)
    await module["together"](2, 32, (out,), cooperative=True)
    assert struct.unpack("<2i", await out.get()) == (70, 70)
