"""The expected results of the corpus kernels, computed on the host from their sources' meaning: a second check beside the stored results of
a GPU. A model gets the launch and its arguments (arrays as lists, with their initial contents) and returns {argument: list}; None in a
list is not compared. Models compute in binary64; `rel` and `absolute` bound the difference that binary32 may have."""
import math
import struct

MODELS = {}
U32, U64 = (1 << 32) - 1, (1 << 64) - 1


def model(*names, rel=0.0, absolute=0.0):
    def keep(function):
        for name in names:
            MODELS[name] = (function, rel, absolute)
        return function

    return keep


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def f16(x):
    """The nearest binary16; infinity beyond its range."""
    try:
        return struct.unpack("<e", struct.pack("<e", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def i32(x):
    return (x & U32) - ((x & 0x80000000) << 1)


def i64(x):
    return (x & U64) - ((x & 1 << 63) << 1)


def float_bits(x):
    return struct.unpack("<i", struct.pack("<f", x))[0]


def quotient(a, b):
    """C's integer division."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a, b):
    return a - b * quotient(a, b)


def blocks(values, count):
    return [values[i:i + count] for i in range(0, len(values), count)]


def geometry(item):
    return item.grid[0], item.block[0]
