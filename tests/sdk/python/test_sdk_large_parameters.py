"""A kernel with as many parameter bytes as CUDA allows, most of them one struct passed as bytes, by every way to launch."""
import struct

import pytest

import gpurest
from gpurest import errors

PARAMETER_BYTES_MAX = 32764
WORDS = (PARAMETER_BYTES_MAX - 12) // 4  # in the struct, beside a pointer and a count
SIZE = 4 * WORDS
BLOCKS, BLOCK = 8, 256
SOURCE = r"""
struct Big { unsigned w[%d]; };
extern "C" __global__ void take(unsigned *out, unsigned n, Big b) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = b.w[i];
}"""
FITS, TOO_LONG = SOURCE % WORDS, SOURCE % (WORDS + 1)


def octets(seed):
    return struct.pack(f"<{WORDS}I", *[(seed * 2654435761 + i * 40503) % 2**32 for i in range(WORDS)])


@pytest.fixture
def take(session):
    kernel = session.module(FITS)["take"]
    assert [p.size for p in kernel.params] == [8, 4, SIZE]
    return kernel


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_launch(session, take, kind):
    out = session.buffer(size=SIZE)
    take(BLOCKS, BLOCK, (out, WORDS, kind(octets(1))))
    assert out.read() == octets(1)


def test_a_batch(session, take):
    with session.batch():
        out = session.buffer(size=SIZE)
        read = []
        for seed in (2, 3):
            take(BLOCKS, BLOCK, (out, WORDS, octets(seed)))
            read.append(out.get_async())
    assert [bytes(one.result()) for one in read] == [octets(2), octets(3)]


def test_a_program(session, take):
    with session.program() as program:
        out = session.buffer(size=SIZE)
        take(BLOCKS, BLOCK, (out, WORDS, octets(4)))
        program.output("out", out)
    for _ in range(2):
        assert bytes(program.run().out) == octets(4)


def test_a_run(gpu):
    out = bytearray(SIZE)
    gpu.run(FITS, "take", (gpurest.Out(out), gpurest.u32(WORDS), octets(5)), n=WORDS)
    assert out == octets(5)


async def test_with_asyncio(asession):
    kernel = (await asession.module(FITS))["take"]
    out = await asession.buffer(size=SIZE)
    await kernel(BLOCKS, BLOCK, (out, WORDS, octets(6)))
    assert await out.read() == octets(6)


def test_one_byte_more_is_told_before_anything_is_sent(session, take):
    out = session.buffer(size=SIZE)
    before = session.client.requests_sent
    with pytest.raises(errors.ArgumentError, match=rf"'b'.*{SIZE + 1} bytes, the parameter has {SIZE}"):
        take(BLOCKS, BLOCK, (out, WORDS, octets(1) + b"x"))
    assert session.client.requests_sent == before


def test_one_byte_more_in_a_run(gpu):
    out = bytearray(SIZE)
    with pytest.raises(errors.ArgumentError, match=f"takes {SIZE} bytes, got {SIZE + 1}"):
        gpu.run(FITS, "take", (gpurest.Out(out), gpurest.u32(WORDS), octets(5) + b"x"), n=WORDS)
    assert out == bytes(SIZE)


def test_an_argument_beyond_the_bound_is_refused_by_its_name(gpu):
    out = bytearray(SIZE)
    with pytest.raises(errors.ValidationError, match=f"{PARAMETER_BYTES_MAX + 1} bytes; the parameters of a kernel have at most {PARAMETER_BYTES_MAX} bytes"):
        gpu.run(FITS, "take", (gpurest.Out(out), gpurest.u32(WORDS), bytes(PARAMETER_BYTES_MAX + 1)), n=WORDS)


def test_a_kernel_with_more_does_not_compile(session):
    with pytest.raises(errors.CompileError, match=f"max {PARAMETER_BYTES_MAX} bytes"):
        session.module(TOO_LONG)
