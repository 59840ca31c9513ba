"""The launches of tests/bench/goldens/kernels.def with the same buffers and numbers as in tests/bench/goldens/item.c, so that the service's
results can be compared with those of an H200 in tests/bench/results/corpus_goldens_h200.txt."""
import math
import pathlib
import re
import struct

TESTS = pathlib.Path(__file__).resolve().parents[1]
SOURCES = TESTS / "corpus"
ROWS = TESTS / "bench" / "goldens" / "kernels.def"
GOLDENS = TESTS / "bench" / "results" / "corpus_goldens_h200.txt"

MASK64 = (1 << 64) - 1
FNV_START, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
SAMPLES = 16  # elements kept of an inexact result

# Letter of a type: bytes of an element, struct code or None, bits of infinity or 0 for an integer.
TYPES = {"b": (1, "B", 0), "i": (4, "i", 0), "u": (4, "I", 0), "l": (8, "Q", 0), "h": (2, "e", 0x7C00), "g": (2, None, 0x7F80),
         "f": (4, "f", 0x7F800000), "d": (8, "d", 0x7FF0000000000000)}
UNSIGNED = {1: "B", 2: "H", 4: "I", 8: "Q"}


class Random:
    """xorshift64*, as in item.c."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        s = self.state
        s ^= (s << 13) & MASK64
        s ^= s >> 7
        s ^= (s << 17) & MASK64
        self.state = s
        return s * 0x2545F4914F6CDD1D & MASK64

    def unit(self):
        return (self.next() >> 11) * 2.0**-53


def float_bits(letter, value):
    if letter == "d":
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    if letter == "f":
        return bits
    if letter == "g":
        return bits >> 16
    return (bits >> 16 & 0x8000) | ((bits >> 13) - (112 << 10) & 0x7FFF)


class Buffer:
    """One array of a launch. `mode` names its initial contents, see kernels.def."""

    def __init__(self, letter, mode, count, random):
        self.letter, self.mode, self.count = letter, mode, count
        self.element_bytes, self.code, self.infinity = TYPES[letter]
        limit = (1 << 8 * self.element_bytes) - 1
        self.initial = struct.pack(f"<{count}{UNSIGNED[self.element_bytes]}", *(self._value(i, random) & limit for i in range(count)))

    compared = property(lambda self: self.mode != "x")

    def _value(self, i, random):
        child = 2 * i + (1 if self.mode == "t" else 2)
        if self.mode == "r":
            return float_bits(self.letter, random.unit() * 8 - 4) if self.infinity else random.next() >> 7
        if self.mode == "p":
            return float_bits(self.letter, random.unit() * 4 + 0.1) if self.infinity else random.next() >> 40
        if self.mode == "s":
            return random.next() % 10
        return {"o": 3 * i + (self.letter == "l"), "q": 4 * i, "c": i * 7 % 64, "m": MASK64 if i else 0,
                "t": child if child < self.count else MASK64, "u": child if child < self.count else MASK64}.get(self.mode, 0)

    def bits(self, data):
        """The elements as unsigned numbers; all NaNs are equal, and sets are sorted."""
        values = struct.unpack(f"<{self.count}{UNSIGNED[self.element_bytes]}", data)
        if self.mode == "w":
            return sorted(values)
        if self.infinity:
            nan = (1 << 8 * self.element_bytes - 1) - 1
            return [nan if value & nan > self.infinity else value for value in values]
        return values

    def numbers(self, data):
        if self.code:
            return list(struct.unpack(f"<{self.count}{self.code}", data))
        halves = struct.unpack(f"<{self.count}H", data)
        return list(struct.unpack(f"<{self.count}f", struct.pack(f"<{self.count}I", *(half << 16 for half in halves))))

    def number_of(self, bits):
        if not self.code:
            return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
        return struct.unpack("<" + self.code, struct.pack("<" + UNSIGNED[self.element_bytes], bits))[0]


class Scalar:
    """kind: the type in the text (f32, f64), or None for an integer as wide as the parameter."""

    def __init__(self, text):
        self.kind = {"f": "f32", "d": "f64"}.get(text[0])
        self.value = float(text[1:]) if self.kind else int(text, 0)

    def argument(self, parameter_bytes):
        kind = self.kind or {2: "u16", 4: "i32", 8: "i64"}[parameter_bytes]
        return {kind: self.value}


class Item:
    """One launch: file, kernel, grid, block, shared_bytes, ulps, tolerance and `arguments`, Buffers and Scalars in order. `in_struct`: the
    arguments are members of one parameter."""

    def __init__(self, file, kernel, grid, block, shared_bytes, ulps, tolerance, arguments):
        self.file, self.kernel, self.grid, self.block, self.shared_bytes = file, kernel, grid, block, shared_bytes
        self.ulps, self.tolerance, self.text = ulps, tolerance, arguments
        self.key = self._key()
        random = Random(self.key)
        tokens = arguments.split(" ")
        self.in_struct = ":" in arguments
        self.arguments = [self._argument(token.split(":")[-1], random) for token in tokens]

    exact = property(lambda self: not self.ulps and not self.tolerance)

    def _key(self):
        h = FNV_START
        for byte in (self.kernel + self.text).encode():
            h = (h ^ byte) * FNV_PRIME & MASK64
        return h | 1

    @staticmethod
    def _argument(token, random):
        return Scalar(token[1:]) if token[0] == "=" else Buffer(token[0], token[1], int(token[2:]), random)

    def buffers(self):
        return [argument for argument in self.arguments if isinstance(argument, Buffer)]


def _numbers(text):
    return [int(part) for part in text.split(",")]


ROW = re.compile(r'^KERNEL\((\w+), (\w+), ((?:\d+, ){3})((?:\d+, ){3})(\d+), ([\d.e-]+), ([\d.e-]+), "([^"]*)"\)', re.M)


def items_of(file):
    """The file's launches, in the table's order."""
    found = ROW.findall(ROWS.read_text())
    return [Item(name, kernel, _numbers(grid[:-2]), _numbers(block[:-2]), int(shared), float(ulps), float(tolerance), arguments)
            for name, kernel, grid, block, shared, ulps, tolerance, arguments in found if name == file]


LINE = re.compile(r"^([0-9a-f]{16}) (\d+) ([0-9a-f]{16})((?: [0-9a-f]+){%d})? \S" % SAMPLES, re.M)


def goldens():
    """(key of the item, number of the buffer) -> (digest, samples)."""
    found = LINE.findall(GOLDENS.read_text())
    return {(int(key, 16), int(buffer)): (int(whole, 16), [int(sample, 16) for sample in samples.split()])
            for key, buffer, whole, samples in found}


def digest(bits):
    h = FNV_START
    for value in bits:
        h = (h ^ value) * FNV_PRIME & MASK64
    return h


def steps(buffer, a, b):
    """Random numbers of that type between a and b."""
    sign = 1 << 8 * buffer.element_bytes - 1
    ordered = [-(value & sign - 1) if value & sign else value for value in (a, b)]
    return abs(ordered[0] - ordered[1])


def agrees(item, buffer, bits, golden):
    """Whether the buffer's elements match the golden: all of them by the digest, else its samples within the item's bounds."""
    wanted, samples = golden
    if digest(bits) == wanted:
        return True
    if item.exact or not buffer.infinity:
        return False
    assert len(samples) == SAMPLES
    return all(_close(item, buffer, bits[s * (buffer.count - 1) // (SAMPLES - 1)], sample) for s, sample in enumerate(samples))


def _close(item, buffer, a, b):
    x, y = buffer.number_of(a), buffer.number_of(b)
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    return steps(buffer, a, b) <= item.ulps or abs(x - y) <= item.tolerance
