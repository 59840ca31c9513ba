"""Bits that PTX leaves open or tells otherwise than GPUs do, the same on every device: with GPUREST_TEST_BACKENDS=cuda a GPU gives them."""
import random
import struct

import pytest

CARRIES = r"""
typedef unsigned long long u64;
// x - y and x + y of 128 bits, then what the condition code adds to a sum after a difference, and takes from a difference after a sum.
extern "C" __global__ void carries(const unsigned *in, unsigned *out)
{
    const unsigned *a = in + 8 * threadIdx.x, *b = a + 4;
    unsigned *o = out + 12 * threadIdx.x;
    asm("sub.cc.u32 %0, %4, %8; subc.cc.u32 %1, %5, %9; subc.cc.u32 %2, %6, %10; subc.u32 %3, %7, %11;"
        : "=&r"(o[0]), "=&r"(o[1]), "=&r"(o[2]), "=&r"(o[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
    u64 low, high, x[2] = {a[0] | (u64)a[1] << 32, a[2] | (u64)a[3] << 32}, y[2] = {b[0] | (u64)b[1] << 32, b[2] | (u64)b[3] << 32};
    asm("add.cc.u64 %0, %2, %4; addc.u64 %1, %3, %5;" : "=&l"(low), "=l"(high) : "l"(x[0]), "l"(x[1]), "l"(y[0]), "l"(y[1]));
    o[4] = (unsigned)low; o[5] = (unsigned)(low >> 32); o[6] = (unsigned)high; o[7] = (unsigned)(high >> 32);
    unsigned unused;
    asm volatile("sub.cc.u32 %0, %2, %3; addc.u32 %1, 0, 0;" : "=&r"(unused), "=r"(o[8]) : "r"(a[0]), "r"(b[0]));
    asm volatile("add.cc.u32 %0, %2, %3; subc.u32 %1, 0, 0;" : "=&r"(unused), "=r"(o[9]) : "r"(a[0]), "r"(b[0]));
    asm volatile("sub.cc.u32 %0, %2, %3; subc.u32 %1, 0, 0;" : "=&r"(unused), "=r"(o[10]) : "r"(a[0]), "r"(b[0]));
    asm volatile("sub.cc.u64 %0, %2, %3; addc.u64 %1, 0, 0;" : "=&l"(low), "=l"(high) : "l"(x[0]), "l"(y[0]));
    o[11] = (unsigned)high;
}
"""
SHUFFLES = r"""
extern "C" __global__ void shuffles(unsigned *out, int how)
{
    unsigned lane = threadIdx.x, v = lane + 100, first = 777, inside = 9, second = 777;
    if (lane >= 16 && how == 1)
        return;
    if (lane < 16) {
        asm volatile("{ .reg .pred p; shfl.sync.idx.b32 %0|p, %3, 20, 31, 0xffff; selp.u32 %1, 1, 0, p; shfl.sync.down.b32 %2, %3, 8, 31, 0xffff; }"
                     : "=&r"(first), "=&r"(inside), "=&r"(second) : "r"(v));
    }
    out[3 * lane] = first; out[3 * lane + 1] = inside; out[3 * lane + 2] = second;
}
"""
EDGES = [0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF]


def number(words):
    return sum(word << 32 * i for i, word in enumerate(words))


def words(value, count=4):
    return [value >> 32 * i & 0xFFFFFFFF for i in range(count)]


def test_carries_of_128_bits(client, session):
    rng = random.Random(3)
    pairs = [[rng.choice(EDGES) if rng.random() < 0.6 else rng.getrandbits(32) for _ in range(8)] for _ in range(256)]
    client.put_cuda(session + "/modules/m", CARRIES).expect(201)
    client.put_octets(session + "/buffers/in", b"".join(struct.pack("<8I", *p) for p in pairs)).expect(201)
    client.put(session + "/buffers/out", {"size": 48 * len(pairs)}).expect(201)
    client.post(session + "/launches", {"module": "m", "kernel": "carries", "grid": [1], "block": [len(pairs)],
                                        "args": [{"buf": "in"}, {"buf": "out"}]}).expect(200)
    got = client.get(session + "/buffers/out/data").body
    for i, pair in enumerate(pairs):
        a, b, low = number(pair[:4]), number(pair[4:]), (1 << 64) - 1
        wanted = words(a - b) + words(a + b) + [int(pair[0] >= pair[4]), 0 if pair[0] + pair[4] > 0xFFFFFFFF else 0xFFFFFFFF,
                                               0 if pair[0] >= pair[4] else 0xFFFFFFFF, int(a & low >= b & low)]
        assert list(struct.unpack_from("<12I", got, 48 * i)) == wanted, pair


@pytest.mark.parametrize("how", [0, 1], ids=["elsewhere", "ended"])
def test_a_shuffle_from_lanes_that_take_no_part(client, session, how):
    client.put_cuda(session + "/modules/m", SHUFFLES).expect(201)
    client.put(session + "/buffers/out", {"size": 384}).expect(201)
    client.post(session + "/launches", {"module": "m", "kernel": "shuffles", "grid": [1], "block": [32], "args": [{"buf": "out"}, {"i32": how}]}).expect(200)
    got = struct.unpack("<96I", client.get(session + "/buffers/out/data").body)
    for lane in range(16):
        assert got[3 * lane:3 * lane + 3] == (0, 1, lane + 108 if lane < 8 else 0), lane
